//! `millrace tune`: shows what is set, changes it on request, measures whether that helps, and takes it back.

mod measure;
mod place;

use super::files::Files;
use super::hosts::{self, HostSystem};
use super::recording::MachineArgs;
use crate::arguments::count_in;
use crate::bench;
use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table, Terminal, count};
use crate::words::topology as words;
use clap::{Args, Parser};
use place::Place;
use std::path::{Path, PathBuf};
use std::time::Duration;
use topology::Machine;
use topology::tune::{Group, Setting, Verdict, settings};

/// `millrace tune`.
#[derive(Args, Debug)]
#[command(after_help = "\
Without --apply, --persist or --measure nothing is changed.

Examples:
  millrace tune
  millrace tune -v  # with reasons and risks
  millrace tune --apply --only block,cpu
  millrace tune --undo
  millrace tune --measure -- --target nvme://10.0.0.1:4420/NQN/1 --seconds 5
  millrace tune --for linux  # settings for hosts
  millrace tune --machine machine.rec")]
pub struct TuneArgs {
    #[command(flatten)]
    machine: MachineArgs,
    /// Change all settings that are not as they should be, until the machine restarts
    #[arg(long, conflicts_with_all = ["undo", "machine", "for_host"])]
    apply: bool,
    /// Restore all settings as they were
    #[arg(long, conflicts_with_all = ["machine", "for_host"])]
    undo: bool,
    /// Change them now and at every start of the machine (sysctl.d, udev, systemd)
    #[arg(long, conflicts_with_all = ["undo", "machine", "for_host"])]
    persist: bool,
    /// Measure the load given after -- with each group changed and unchanged, and keep the changes that help
    #[arg(long, conflicts_with_all = ["apply", "undo", "persist", "machine", "for_host"])]
    measure: bool,
    /// Measurements of each group, with and without its change
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count_in::<u32>(3..=100))]
    rounds: u32,
    /// Only these groups: cpu, interrupts, block, memory, network, pcie
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', value_parser = group)]
    only: Vec<Group>,
    /// Print the settings for hosts of this kind instead
    #[arg(long = "for", value_name = "SYSTEM", id = "for_host")]
    for_host: Option<HostSystem>,
    /// Show reasons and risks
    #[arg(short, long)]
    verbose: bool,
    /// File that records the changes
    #[arg(long, value_name = "FILE", default_value = "/var/lib/millrace/tune.json")]
    record: PathBuf,
    /// Treat this folder as the root of the machine
    #[arg(long, value_name = "FOLDER", default_value = "/", hide = true)]
    root: PathBuf,
    /// The load for --measure: options of millrace bench
    #[arg(last = true, requires = "measure", value_name = "BENCH")]
    bench: Vec<String>,
}

/// The load that is told behind `--`.
#[derive(Parser, Debug)]
#[command(name = "millrace tune --measure --", no_binary_name = true)]
struct Loads {
    #[command(flatten)]
    load: bench::SingleArgs,
}

/// Changes, measures, keeps and restores, group by group.
fn measure(
    args: &TuneArgs,
    place: &mut Place,
    settings: &[Setting],
    context: &Context,
) -> Result<String, Failure> {
    let mut load = Loads::try_parse_from(&args.bench)
        .map_err(|e| {
            // The first paragraph says what; the rest of it is about a command of another name.
            let text = e.to_string();
            let what: Vec<&str> = text.split("\n\n").next().unwrap_or("").split_whitespace().collect();
            let what = what.join(" ");
            Failure::usage(format!("the load behind --: {}", what.trim_start_matches("error: "))).with_next(
                "millrace tune --measure -- --target nvme://ADDRESS:PORT/NQN/NSID --rw randread --qd 32",
            )
        })?
        .load;
    // What comes first after a change is not what stays.
    load.ramp = load.ramp.max(Duration::from_secs(1));
    let load = bench::Repeated::new(load, context.json)?;
    let mut live = bench::Live::new();
    let run = |what: &str| {
        live.step(what);
        let report = load.run(|p| {
            live.progress(p);
            Ok(())
        });
        let run = |r: bench::Report| measure::Run { iops: r.total.iops, p99_us: r.total.p99_us };
        Ok(report?.map(run))
    };
    let measured = measure::groups(place, settings, args.rounds, run)?;
    live.clear();
    Ok(context.show(&measured, |m| measure::screen(m, context.terminal)))
}

fn group(text: &str) -> Result<Group, String> {
    Group::ALL.into_iter().find(|g| g.word() == text).ok_or_else(|| {
        let all: Vec<&str> = Group::ALL.iter().map(|g| g.word()).collect();
        format!("\"{text}\" is no group: {}", all.join(", "))
    })
}

/// Carries it out.
pub fn run(args: &TuneArgs, context: &Context) -> Result<String, Failure> {
    if let Some(system) = args.for_host {
        return hosts::print(system, context);
    }
    let mut place = Place { files: Files::new(&args.root), record: args.record.clone() };
    if args.undo {
        let report = place.undo()?;
        return Ok(context.show(&report, |r| r.screen(context.terminal)));
    }
    let recording = if args.root == Path::new("/") {
        args.machine.recording(context, false)?
    } else {
        topology::Recorder::begin(&mut place.files, "", false).end()
    };
    let machine = Machine::of(&recording);
    let mut settings = settings(&machine, &recording);
    settings.retain(|s| args.only.is_empty() || args.only.contains(&s.group));
    if args.measure {
        return measure(args, &mut place, &settings, context);
    }
    if args.apply || args.persist {
        let mut report = place.apply(&settings)?;
        if args.persist {
            place.persist(&settings, &args.only, &mut report)?;
        }
        return Ok(context.show(&report, |r| r.screen(context.terminal)));
    }
    Ok(context.show(&words::tuned(&settings), |_| screen(&settings, args.verbose, context.terminal)))
}

/// The table of settings.
fn screen(settings: &[Setting], verbose: bool, terminal: Terminal) -> String {
    let mut table = Table::new(&["SETTING", "FOUND", "WANTED", ""]).prose();
    let mut last = None;
    for s in settings {
        if last != Some(s.group) {
            table.row([Cell::new(Look::Bold, s.group.word()), "".into(), "".into(), "".into()]);
            last = Some(s.group);
        }
        let look = match s.verdict {
            Verdict::Good => Look::Good,
            Verdict::Change(_) => Look::Warn,
            Verdict::Advice | Verdict::Shown => Look::Plain,
        };
        let said = words::setting(s);
        let mut note = said.how.map_or(String::new(), |how| format!("by hand: {how}"));
        if verbose && s.verdict != Verdict::Good {
            let risk = if said.risk.is_empty() { String::new() } else { format!(". Risk: {}", said.risk) };
            let why = format!("{}{risk}", said.why);
            note = if note.is_empty() { why } else { format!("{why}; {note}") };
        }
        let name = format!("  {}", said.name);
        table
            .branch([name.into(), Cell::new(look, said.found), said.wanted.into(), note.into()], "  ".into());
    }
    let mut out = table.print(terminal, 0);
    let to_change = settings.iter().filter(|s| matches!(s.verdict, Verdict::Change(_))).count();
    let by_hand = settings.iter().filter(|s| matches!(s.verdict, Verdict::Advice)).count();
    out.push('\n');
    out.push_str(&match (to_change, by_hand) {
        (0, 0) => "Everything is as a head wants it.\n".to_string(),
        (n, by_hand) => format!("{} to change, and {by_hand} to change by hand.\n", count(n, "setting")),
    });
    if to_change > 0 {
        out.push_str(&terminal.next("millrace tune -v, or millrace tune --apply"));
    }
    out
}
