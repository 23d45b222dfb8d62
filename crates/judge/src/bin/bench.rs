//! How near to the machine's limit we are, as `make bench` starts it: `bench [--rounds N] [--seconds N] [--only WORDS]`.
//!
//! Each row is two programs under the same load by the same client, in turn (A B A B …), target on one core and client
//! on the other; the median of the rounds' ratios counts. A is a bare program that only receives and sends
//! (`bench/peak`), or ourselves in another shape; B is ourselves. What cannot be measured here says why. Ends with 1 if
//! a row falls short.

use judge::{Head, binary, load};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const TARGET_CORE: &str = "0";
const CLIENT_CORE: &str = "1";
const USAGE: &str =
    "bench: it takes --rounds N, --seconds N of each measurement, --only WORDS of a row's name";

/// Who is loaded.
#[derive(Clone, Copy, PartialEq)]
enum Who {
    /// Our daemon over NVMe/TCP: null drive, blocks of 4096 or 512.
    Nvme(u32),
    /// Our daemon over iSCSI.
    Iscsi(u32),
    /// The bare NVMe/TCP program; it sleeps between turns, or spins.
    BareNvme(u32, bool),
    /// The bare iSCSI program.
    BareIscsi(u32),
}

/// How a row is judged.
#[derive(Clone, Copy)]
enum Judged {
    /// B's rate is at least so much of A's.
    Rate(f64),
    /// The same; or where the client is the limit, B's CPU time for each command at most so many ns above A's.
    RateOrCpu(f64, f64),
    /// B's CPU time for each command is at most so many ns above A's.
    Cpu(f64),
    /// B's mean latency is at most so many µs above A's.
    Latency(f64),
}

struct Row {
    name: &'static str,
    a: (Who, &'static str),
    b: (Who, &'static str),
    judged: Judged,
}

/// One measurement.
#[derive(Clone, Copy, Default)]
struct Run {
    iops: f64,
    mb_per_s: f64,
    mean_us: f64,
    /// CPU time of the target for each command, ns.
    target_ns: f64,
    /// Busy shares of their cores.
    target: f64,
    client: f64,
}

struct Bench {
    head: Head,
    rounds: usize,
    seconds: f64,
    only: String,
    failed: u32,
}

fn rows() -> Vec<Row> {
    use Judged::{Cpu, Latency, Rate, RateOrCpu};
    use Who::{BareIscsi, BareNvme, Iscsi, Nvme};
    let mut rows = vec![];
    let shapes = [
        ("1 × 32", "--connections 1 --qd 32"),
        ("1 × 128", "--connections 1 --qd 128"),
        ("4 × 32", "--connections 4 --qd 32"),
        ("4 × 128", "--connections 4 --qd 128"),
        ("16 × 8", "--connections 16 --qd 8"),
        ("4 × 4", "--connections 4 --qd 4"),
        ("64 × 1", "--connections 64 --qd 1"),
    ];
    let leak = |text: String| -> &'static str { text.leak() };
    for (shape, words) in shapes {
        let load = leak(format!("--rw randread --bs 4k {words}"));
        let name = leak(format!("NVMe 4K randread {shape}"));
        rows.push(Row { name, a: (BareNvme(4096, false), load), b: (Nvme(4096), load), judged: Rate(0.92) });
    }
    for (shape, words) in &shapes[..5] {
        let load = leak(format!("--rw randwrite --bs 4k {words}"));
        let name = leak(format!("NVMe 4K randwrite {shape}"));
        let judged = RateOrCpu(0.92, 80.0);
        rows.push(Row { name, a: (BareNvme(4096, true), load), b: (Nvme(4096), load), judged });
    }
    for (rw, wait) in [("read", false), ("write", true)] {
        let load = leak(format!("--rw {rw} --bs 128k --qd 32"));
        let name = leak(format!("NVMe 128K {rw} 1 × 32"));
        let judged = if wait { RateOrCpu(0.90, 80.0) } else { Rate(0.90) };
        rows.push(Row { name, a: (BareNvme(4096, wait), load), b: (Nvme(4096), load), judged });
    }
    let load = "--rw randread --bs 4k --qd 1";
    rows.push(Row {
        name: "NVMe 4K randread alone, latency",
        a: (BareNvme(4096, false), load),
        b: (Nvme(4096), load),
        judged: Latency(1.5),
    });
    let load = "--rw randread --bs 4k --connections 4 --qd 32";
    rows.push(Row {
        name: "NVMe digests, of without",
        a: (Nvme(4096), load),
        b: (Nvme(4096), "--rw randread --bs 4k --connections 4 --qd 32 --digests"),
        judged: Rate(0.80),
    });
    for (rw, jobs) in [("randread", 1), ("randread", 4), ("randwrite", 1), ("randwrite", 4)] {
        let load = leak(format!("--rw {rw} --bs 4k --connections {jobs} --qd 32"));
        let name = leak(format!("iSCSI 4K {rw} {jobs} × 32, of NVMe"));
        rows.push(Row { name, a: (Nvme(4096), load), b: (Iscsi(4096), load), judged: Rate(0.85) });
        let name = leak(format!("iSCSI 4K {rw} {jobs} × 32"));
        rows.push(Row { name, a: (BareIscsi(4096), load), b: (Iscsi(4096), load), judged: Rate(0.85) });
    }
    let load = "--rw randread --bs 512 --connections 16 --qd 128";
    rows.push(Row {
        name: "NVMe 512 randread 16 × 128, CPU",
        a: (BareNvme(512, true), load),
        b: (Nvme(512), load),
        judged: Cpu(120.0),
    });
    rows
}

/// Figures of the issue that no row has, and why.
const UNMEASURED: &[(&str, &str)] = &[
    ("first command after a second of idleness", "the load generator makes no pauses yet"),
    ("iSCSI 512 16 × 128, CPU", "the bare iSCSI program only spins: its CPU time says nothing"),
    ("16 volumes", "one load generator has one volume: the rows above have 16 connections to one"),
    ("instructions of the rooms", "make count counts them (rooms-read-mirrors, rooms-write-mirrors)"),
    ("shaped drives, weights, mirrors", "make rates measures them"),
    ("zram", "needs a zram device of its own: millrace bench ladder --drive /dev/zramN --force"),
    ("1,000 controllers", "needs more sockets than one load generator opens"),
];

fn main() -> ExitCode {
    let (mut rounds, mut seconds, mut only) = (5, 1.5, String::new());
    let words: Vec<String> = std::env::args().skip(1).collect();
    for pair in words.chunks(2) {
        match pair {
            [name, n] if name == "--rounds" && n.parse().is_ok_and(|n: usize| n > 0) => {
                rounds = n.parse().expect("seen");
            }
            [name, n] if name == "--seconds" && n.parse().is_ok_and(|n: f64| n >= 0.5) => {
                seconds = n.parse().expect("seen");
            }
            [name, text] if name == "--only" => only.clone_from(text),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let mut bench = Bench { head: head(), rounds, seconds, only, failed: 0 };
    println!(
        "\ntarget on core {TARGET_CORE}, client on core {CLIENT_CORE}, {rounds} rounds of {seconds} s, A and B in turn; busy: target + client\n"
    );
    println!(
        "{:<34} {:>9} {:>9} {:>8} {:>15} {:>9}  {:<9} {:<9} ",
        "row", "A", "B", "ratio", "spread", "wanted", "busy A", "busy B"
    );
    for row in rows() {
        if row.name.contains(&bench.only) {
            bench.row(&row);
        }
    }
    if bench.only.is_empty() {
        println!();
        UNMEASURED.iter().for_each(|(what, why)| println!("not measured: {what} ({why})"));
    }
    if bench.failed == 0 {
        return ExitCode::SUCCESS;
    }
    println!("\n{} rows fall short.", bench.failed);
    ExitCode::FAILURE
}

/// Our daemon with one shard on a null drive, and a volume of each block size.
fn head() -> Head {
    let mut head = Head::prepare("bench");
    let mut config = fs::read_to_string(head.dir.join("head.toml")).expect("head.toml");
    config.push_str("shards = 1\n");
    fs::write(head.dir.join("head.toml"), config).expect("head.toml");
    head.start();
    head.cli("portal add nvme 127.0.0.1:4420");
    head.cli("portal add iscsi 127.0.0.1:3260");
    head.cli("pool create tank null:1T");
    head.cli("volume create tank/v --size 256G --block 4096");
    head.cli("volume create tank/w --size 256G --block 512");
    for command in load::allow(&["v", "w"]) {
        head.try_cli(&command);
    }
    pin(head.pid(), TARGET_CORE);
    head
}

/// A process with all its threads on one core, before others as far as we are allowed to say so.
fn pin(pid: u32, core: &str) {
    for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let thread = thread.file_name().into_string().expect("a number");
        for words in [["taskset", "-cp", core, &thread], ["chrt", "-rp", "10", &thread]] {
            let quiet =
                Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
            quiet.expect("util-linux is there");
        }
    }
}

/// Nanoseconds that a process has run, all its threads together.
fn cpu_ns(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts = threads.filter_map(|t| fs::read_to_string(t.path().join("schedstat")).ok());
    texts.filter_map(|t| t.split(' ').next()?.parse::<f64>().ok()).sum()
}

/// A bare program, gone with the value.
struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Bench {
    fn row(&mut self, row: &Row) {
        let (mut a, mut b) = (vec![], vec![]);
        for _ in 0..self.rounds {
            a.push(self.measure(row.a.0, row.a.1));
            b.push(self.measure(row.b.0, row.b.1));
        }
        let verdict = verdict(row.judged, &a, &b);
        self.failed += u32::from(!verdict.good);
        let shown = |runs: &[Run]| verdict.shown.of(runs);
        let busy =
            |runs: &[Run]| format!("{:.2}+{:.2}", median(runs, |r| r.target), median(runs, |r| r.client));
        println!(
            "{:<34} {:>9} {:>9} {:>8} {:>15} {:>9}  {:<9} {:<9} {}",
            row.name,
            shown(&a),
            shown(&b),
            verdict.value,
            verdict.spread,
            verdict.wanted,
            busy(&a),
            busy(&b),
            if verdict.good { "pass" } else { "falls short" }
        );
    }

    /// One load on one target.
    fn measure(&self, who: Who, words: &str) -> Run {
        let peak = |name: &str| binary().with_file_name(name);
        let spawn = |program: PathBuf, address: &str, block: u32, wait: bool| {
            let mut command = self.head.net.command(program);
            command.args([address, "--block", &block.to_string()]).args(wait.then_some("--wait"));
            let child = command.stdout(Stdio::null()).spawn().expect("the bare program starts");
            pin(child.id(), TARGET_CORE);
            Bare(child)
        };
        let volume = |block: u32| if block == 512 { "w" } else { "v" };
        let (bare, url) = match who {
            Who::Nvme(block) => (None, load::target(&self.head, load::Protocol::Nvme, volume(block))),
            Who::Iscsi(block) => (None, load::target(&self.head, load::Protocol::Iscsi, volume(block))),
            Who::BareNvme(block, wait) => {
                let bare = spawn(peak("peak-nvme"), "127.0.0.1:4499", block, wait);
                (Some(bare), load::names("nvme://127.0.0.1:4499/nqn.peak/1"))
            }
            Who::BareIscsi(block) => {
                let bare = spawn(peak("peak-iscsi"), "127.0.0.1:3299", block, false);
                (Some(bare), load::names("iscsi://127.0.0.1:3299/iqn.2026-01.org.peak/0"))
            }
        };
        let target = bare.as_ref().map_or(self.head.pid(), |b| b.0.id());
        let mut command = self.head.net.command(binary());
        command.args(["bench", "--json", "--progress", "--ramp", "1", "--region", "1G"]);
        // The generator measures whole seconds; the busy shares are taken inside of them.
        let whole = self.seconds.ceil().max(1.0);
        command.args(["--seconds", &format!("{whole:.0}")]);
        command.args(words.split_whitespace()).args(url.split_whitespace());
        let child = command.stdout(Stdio::piped()).spawn().expect("the load starts");
        pin(child.id(), CLIENT_CORE);
        if let Some(bare) = &bare {
            // A thread for each connection, by now.
            std::thread::sleep(Duration::from_millis(300));
            pin(bare.0.id(), TARGET_CORE);
        }
        std::thread::sleep(Duration::from_millis(1100));
        let (client, begin) = (child.id(), Instant::now());
        let before = [cpu_ns(target), cpu_ns(client)];
        std::thread::sleep(Duration::from_secs_f64((whole - 0.6).max(0.3)));
        let after = [cpu_ns(target), cpu_ns(client)];
        let time = begin.elapsed().as_nanos() as f64;
        let output = child.wait_with_output().expect("the load ends");
        let text = String::from_utf8_lossy(&output.stdout);
        let last: Value = text.lines().last().and_then(|l| serde_json::from_str(l).ok()).unwrap_or_default();
        let report = &last["report"];
        assert_eq!(report["errors"], 0, "{words}: {text}");
        let total = |key: &str| report["total"][key].as_f64().expect("a figure");
        let iops = total("iops");
        Run {
            iops,
            mb_per_s: total("mb_per_s"),
            mean_us: total("mean_us"),
            target_ns: (after[0] - before[0]) / (iops * time / 1e9).max(1.0),
            target: (after[0] - before[0]) / time,
            client: (after[1] - before[1]) / time,
        }
    }
}

/// What a row shows of its two sides.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shown {
    Rate,
    Large,
    Cpu,
    Latency,
}

impl Shown {
    fn of(self, runs: &[Run]) -> String {
        match self {
            Shown::Rate => format!("{:.0} K", median(runs, |r| r.iops) / 1e3),
            Shown::Large => format!("{:.1} GB/s", median(runs, |r| r.mb_per_s) / 1e3),
            Shown::Cpu => format!("{:.0} ns", median(runs, |r| r.target_ns)),
            Shown::Latency => format!("{:.1} µs", median(runs, |r| r.mean_us)),
        }
    }
}

struct Verdict {
    value: String,
    spread: String,
    wanted: String,
    shown: Shown,
    good: bool,
}

fn verdict(judged: Judged, a: &[Run], b: &[Run]) -> Verdict {
    let paired =
        |of: &dyn Fn(&Run, &Run) -> f64| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| of(a, b)).collect() };
    let ratio = |least: f64| {
        let ratios = paired(&|a, b| b.iops / a.iops);
        let value = middle(&ratios);
        // Large blocks are read as bytes.
        let large = a.iter().any(|r| r.mb_per_s * 1e6 > 60_000.0 * r.iops);
        Verdict {
            value: format!("{value:.3}"),
            spread: spread(&ratios, 3),
            wanted: format!("≥ {least:.2}"),
            shown: if large { Shown::Large } else { Shown::Rate },
            good: value >= least,
        }
    };
    let more = |unit: &str, most: f64, shown: Shown, of: &dyn Fn(&Run) -> f64| {
        let more = paired(&|a, b| of(b) - of(a));
        let value = middle(&more);
        Verdict {
            value: format!("{value:+.1}{unit}"),
            spread: spread(&more, 1),
            wanted: format!("≤ +{most}{unit}"),
            shown,
            good: value <= most,
        }
    };
    match judged {
        Judged::Rate(least) => ratio(least),
        Judged::RateOrCpu(least, most) => {
            let rate = ratio(least);
            let limited = median(b, |r| r.client) > 0.95 && median(b, |r| r.target) < 0.95;
            if rate.good || !limited { rate } else { more("ns", most, Shown::Cpu, &|r| r.target_ns) }
        }
        Judged::Cpu(most) => more("ns", most, Shown::Cpu, &|r| r.target_ns),
        Judged::Latency(most) => more("µs", most, Shown::Latency, &|r| r.mean_us),
    }
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    middle(&runs.iter().map(of).collect::<Vec<_>>())
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n.is_multiple_of(2) { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 } else { sorted[n / 2] }
}

fn spread(values: &[f64], digits: usize) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{low:.digits$}–{high:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(iops: f64, target_ns: f64, target: f64, client: f64) -> Run {
        Run { iops, mb_per_s: iops * 4096.0 / 1e6, target_ns, target, client, mean_us: 1e6 / iops }
    }

    #[test]
    fn the_median_of_the_paired_ratios_counts() {
        let a = [100.0, 200.0, 100.0].map(|n| run(n, 10.0, 1.0, 0.5));
        let b = [95.0, 180.0, 10.0].map(|n| run(n, 10.0, 1.0, 0.5));
        let v = verdict(Judged::Rate(0.90), &a, &b);
        assert_eq!((v.value.as_str(), v.spread.as_str(), v.good), ("0.900", "0.100–0.950", true));
        assert!(!verdict(Judged::Rate(0.92), &a, &b).good);
    }

    #[test]
    fn where_the_client_is_the_limit_the_targets_time_counts() {
        let a = [run(100.0, 500.0, 0.8, 1.0)];
        let limited = [run(80.0, 570.0, 0.8, 1.0)];
        let v = verdict(Judged::RateOrCpu(0.92, 80.0), &a, &limited);
        assert_eq!((v.value.as_str(), v.good, v.shown), ("+70.0ns", true, Shown::Cpu));
        let slow = [run(80.0, 570.0, 1.0, 0.8)];
        assert!(!verdict(Judged::RateOrCpu(0.92, 80.0), &a, &slow).good);
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let mut names: Vec<&str> = rows().iter().map(|r| r.name).collect();
        names.sort_unstable();
        let n = names.len();
        names.dedup();
        assert_eq!(names.len(), n);
    }
}
