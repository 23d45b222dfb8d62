//! `millrace bench hosts`: several processes as so many hosts, started at one instant, summed; every path of each of them
//! shown apart, and called starved where it is.

use super::finish::finish;
use super::holds;
use super::result::doc::Doc;
use super::result::hosts::Hosts;
use super::session::SingleArgs;
use super::target::Url;
use super::watch::{self, Live};
use crate::arguments::count_in;
use crate::failure::{Exit, Failure};
use crate::screen::Terminal;
use clap::Args;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `millrace bench hosts`.
#[derive(Args, Debug)]
#[command(after_help = "\
Hosts that write to the same volume overwrite each other's data: give --hosts 1 and a volume of its own to each with --also, or only read.

Examples:
  millrace bench hosts --target nvme://10.0.0.1:4420/NQN/1 --hosts 4
  millrace bench hosts --target iscsi://10.0.0.1:3260/IQN/0 --qd 64")]
pub struct HostsArgs {
    #[command(flatten)]
    load: SingleArgs,
    /// Another volume, measured by hosts of its own; may be repeated
    #[arg(long = "also", value_name = "URL")]
    also: Vec<Url>,
    /// Number of hosts (processes) on each volume
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 2, value_parser = count_in::<u16>(1..=64))]
    hosts: u16,
    /// Write a report with plots to this file, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// From starting the processes to their common beginning.
const AHEAD: Duration = Duration::from_secs(1);
/// Load before the measurement, at least: hosts do not connect in the same millisecond.
const RAMP_LEAST: Duration = Duration::from_secs(1);

/// Runs it and shows it.
pub fn run(args: &HostsArgs, json: bool) -> Result<(), Failure> {
    let mut doc = Doc::begin("hosts");
    watch::listen()?;
    let mut live = Live::new();
    live.step("hosts");
    let first = args.load.target.as_ref().ok_or_else(|| Failure::usage("--target is missing"))?;
    let urls: Vec<&Url> = std::iter::once(first).chain(&args.also).collect();
    holds::check_targets(&args.load, &urls, json)?;
    let hosts = measure(args, &live)?;
    live.clear();
    let text = hosts.screen(Terminal::for_stdout());
    doc.notes.extend(hosts.notes());
    let trouble = hosts.hosts.iter().find_map(|(name, r)| Some(format!("{name}: {}", r.failure()?)));
    let interrupted = hosts.interrupted(args.load.seconds);
    doc.notes.extend(interrupted.clone());
    doc.hosts = Some(hosts);
    finish(&doc, &text, json, args.html.as_deref())?;
    match (trouble, interrupted) {
        (Some(why), _) => Err(Failure::internal(why)),
        (None, Some(_)) => Err(Failure::new(Exit::Interrupted, "the measurement was interrupted")
            .with_next("the same again; --seconds 0 measures until Ctrl-C")),
        (None, None) => Ok(()),
    }
}

/// One process.
struct Process {
    name: String,
    child: Child,
    said: JoinHandle<Vec<u8>>,
    /// Its failure, as JSON.
    wailed: JoinHandle<Vec<u8>>,
}

/// Processes that end with the value.
struct Processes(Vec<Process>);

impl Processes {
    fn start(&mut self, name: String, mut command: Command) -> std::io::Result<()> {
        // Ctrl-C at the terminal is ours to pass on: twice would be an end without a report.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let said = collect(child.stdout.take().expect("it was piped"));
        let wailed = collect(child.stderr.take().expect("it was piped"));
        self.0.push(Process { name, child, said, wailed });
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut text = vec![];
        let _ = from.read_to_end(&mut text);
        text
    })
}

/// Why a host ended without a report, in our own words: it says so in JSON, which is for programs.
fn failure_of(name: &str, wailed: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(wailed);
    let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("without saying why");
    let told = serde_json::from_str::<serde_json::Value>(last).unwrap_or_default();
    let of = |key: &str| told["error"][key].as_str().map(str::to_string);
    let failure = Failure::internal(format!("{name}: {}", of("cause").unwrap_or_else(|| last.to_string())));
    failure
        .with_next(of("next").unwrap_or_else(|| "the same by one host: millrace bench --target URL".into()))
}

fn measure(args: &HostsArgs, live: &Live) -> Result<Hosts, Failure> {
    let first = args.load.target.clone().ok_or_else(|| Failure::usage("--target is missing"))?;
    let urls: Vec<Url> = std::iter::once(first).chain(args.also.iter().cloned()).collect();
    let cannot = |e: std::io::Error| Failure::internal(format!("a host cannot be started: {e}"));
    let program = std::env::current_exe().map_err(cannot)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let start = (now + AHEAD).as_millis().to_string();
    let load = args.load.words(RAMP_LEAST);
    let mut all = Processes(vec![]);
    for n in 0..args.hosts {
        for (i, url) in urls.iter().enumerate() {
            let seed = args.load.seed + u64::from(n) * urls.len() as u64 + i as u64;
            let mut command = Command::new(&program);
            command.args(["bench", "--json", "--target", &url.to_string(), "--start-at", &start]);
            command.args(["--seed", &seed.to_string(), "--die-with-parent", &std::process::id().to_string()]);
            // It was looked at once, for all of them.
            command.args(&load).arg("--force");
            let name = if urls.len() > 1 { format!("host {n} to {url}") } else { format!("host {n}") };
            all.start(name, command).map_err(cannot)?;
        }
    }
    live.say(&format!("{} hosts begin together", all.0.len()));
    let mut told = false;
    while all.0.iter_mut().any(|p| matches!(p.child.try_wait(), Ok(None))) {
        if watch::interrupted() && !told {
            told = true;
            for process in &mut all.0 {
                // Whoever has ended already needs no signal.
                let _ = uring::process::interrupt(&mut process.child);
            }
        }
        std::thread::sleep(watch::LOOK);
    }
    let mut hosts = vec![];
    for Process { name, said, wailed, .. } in all.0.drain(..) {
        let report = said.join().ok().and_then(|text| serde_json::from_slice(&text).ok());
        let report = report.ok_or_else(|| failure_of(&name, &wailed.join().unwrap_or_default()))?;
        hosts.push((name, report));
    }
    Ok(Hosts { load: load.join(" "), hosts })
}

impl Hosts {
    /// Ctrl-C came before the end: the figures are of less time than was asked for. `seconds` 0: that is the end.
    fn interrupted(&self, time: Duration) -> Option<String> {
        let least = self.hosts.iter().map(|(_, r)| r.seconds).fold(f64::INFINITY, f64::min);
        (!time.is_zero() && watch::interrupted()).then(|| {
            format!("interrupted: the figures are of {least:.1} s instead of {} s.", time.as_secs_f64())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::report::{Connection, Figures, Report};

    fn host(name: &str, rates: &[f64]) -> (String, Report) {
        let connection = |(i, iops): (usize, &f64)| Connection {
            session: 0,
            connection: i as u16,
            peer: "a".into(),
            figures: Figures { iops: *iops, ..Figures::default() },
        };
        let total = Figures { iops: rates.iter().sum(), p99_us: rates.len() as f64, ..Figures::default() };
        let connections = rates.iter().enumerate().map(connection).collect();
        (name.into(), Report { total, connections, ..Report::default() })
    }

    #[test]
    fn a_host_that_fails_is_told_in_words() {
        let json = Failure::internal("nobody listens").with_next("millrace portal ls").json("bench");
        let failure = failure_of("host 1", format!("a warning\n{json}\n").as_bytes());
        assert_eq!(failure.to_string(), "error: host 1: nobody listens\nNext: millrace portal ls");
        assert!(failure_of("host 1", b"").to_string().contains("without saying why"));
        assert!(failure_of("host 1", b"Killed").to_string().starts_with("error: host 1: Killed"));
    }

    #[test]
    fn a_load_is_told_to_others_as_it_was_told_to_us() {
        #[derive(clap::Parser)]
        struct Words {
            #[command(flatten)]
            hosts: HostsArgs,
        }
        let parse = |words: Vec<String>| <Words as clap::Parser>::try_parse_from(words).map(|w| w.hosts.load);
        let given =
            "hosts --target nvme://127.0.0.1:4420/nqn.a/1 --seconds 2.5 --ramp 0.25 --qd 7 --patience 3";
        let load = parse(given.split(' ').map(str::to_string).collect()).expect(given);
        assert_eq!((load.seconds, load.ramp), (Duration::from_millis(2500), Duration::from_millis(250)));
        let told = |least| {
            let mut words = vec!["hosts".into(), "--target".into(), "nvme://127.0.0.1:4420/nqn.a/1".into()];
            words.extend(load.words(least));
            parse(words).expect("what one process says another reads")
        };
        assert_eq!(told(Duration::ZERO).words(Duration::ZERO), load.words(Duration::ZERO));
        assert_eq!(told(RAMP_LEAST).ramp, RAMP_LEAST);
        for wrong in ["--seconds x", "--seconds -1", "--seconds 0.001", "--ramp -0.5", "--ramp inf"] {
            let words = format!("hosts --target nvme://127.0.0.1:4420/nqn.a/1 {wrong}");
            assert!(parse(words.split(' ').map(str::to_string).collect()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_load_that_the_target_limits_is_said_once() {
        let limited = |name: &str| {
            let (name, report) = host(name, &[100.0]);
            (name, Report { depth: 127, depth_asked: 128, connections_open: 1, ..report })
        };
        let hosts = Hosts { load: String::new(), hosts: vec![limited("a"), limited("b")] };
        let said = hosts.notes().iter().filter(|n| n.starts_with("127 on each connection")).count();
        assert_eq!(said, 1, "{:?}", hosts.notes());
    }

    #[test]
    fn rates_are_summed_and_a_starved_path_is_named() {
        let hosts =
            Hosts { load: String::new(), hosts: vec![host("a", &[100.0, 90.0]), host("b", &[110.0, 3.0])] };
        let together = hosts.together();
        assert_eq!((together.total.iops, together.total.p99_us, together.paths.len()), (303.0, 2.0, 4));
        let notes = hosts.notes();
        assert!(notes[0].starts_with("b, connection 0.1 is starved"), "{notes:?}");
        assert!(notes[1].contains("3 % of the fastest"), "{notes:?}");
        assert!(hosts.screen(Terminal::plain(100)).contains("2 hosts together"));
    }
}
