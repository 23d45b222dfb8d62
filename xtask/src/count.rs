//! The number of instructions of a command and of a simulated world, compared with the accepted number. Time depends on the
//! machine and its other load; the number of instructions nearly does not, so a test can check it.

use crate::run::{cargo, root, run, target};
use crate::suites;
use std::fmt::Write as _;
use std::process::Command;

/// The figures that were accepted last: a scenario and its instructions a line.
const ACCEPTED: &str = "bench/path/instructions.txt";
/// A figure may rise by so much, per cent: libraries differ between machines.
const RISE_MAX: f64 = 5.0;
/// The same of the simulator: kinds of worlds, and the instructions of one of them.
const WORLDS_ACCEPTED: &str = "bench/path/worlds.txt";
/// The same: what a seed decides moves with everything that a head sends, so that it is a coarser measure.
const WORLDS_RISE_MAX: f64 = 10.0;
/// Seeds of which the mean counts.
const WORLDS: u64 = 4;
/// Commands of the short run; the long one has twice as many, and the difference is theirs alone.
const COMMANDS: u64 = 2000;

/// Counts every scenario in the list; `keep` writes what was counted instead of judging it. With `built` the programs
/// are there. The simulator is the one that tests run: an optimised one takes minutes to build, and would show no more.
///
/// # Errors
/// A sentence: something does not run, or costs more than it did.
pub fn count(keep: bool, built: bool) -> Result<(), String> {
    if !built {
        run(cargo(&["build", "--release", "--locked", "--package", "path"]))?;
        suites::build()?;
    }
    let mut worse = vec![];
    println!("{:<22} {:>12} {:>12} {:>8}", "instructions", "accepted", "now", "change");
    worse.extend(hold(ACCEPTED, RISE_MAX, keep, |name| {
        let (long, short) = (instructions(name, 2 * COMMANDS)?, instructions(name, COMMANDS)?);
        Ok((long - short) / COMMANDS)
    })?);
    worse.extend(hold(WORLDS_ACCEPTED, WORLDS_RISE_MAX, keep, instructions_of_worlds)?);
    if worse.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "too much dearer: {}. Next: make it cheaper, or accept it with make count KEEP=1",
            worse.join(", ")
        ))
    }
}

/// Holds each line of a file, a name and a number, against what `now` says; those that rose by more than `rise_max` per
/// cent. With `keep` none did, and the file says what was counted.
fn hold(
    accepted: &str,
    rise_max: f64,
    keep: bool,
    now: impl Fn(&str) -> Result<u64, String>,
) -> Result<Vec<String>, String> {
    let file = root().join(accepted);
    let lines = std::fs::read_to_string(&file).map_err(|e| format!("{accepted}: {e}"))?;
    let (mut found, mut worse) = (String::new(), vec![]);
    for line in lines.lines() {
        let (name, before) =
            line.split_once(' ').ok_or(format!("{accepted}: '{line}' is not a name and a number"))?;
        let before: f64 = before.trim().parse().map_err(|e| format!("{accepted}: {name}: {e}"))?;
        let now = now(name)?;
        let change = (now as f64 / before - 1.0) * 100.0;
        println!("{name:<22} {before:>12} {now:>12} {change:>+7.1}%");
        writeln!(found, "{name} {now}").expect("strings take all");
        if change > rise_max {
            worse.push(format!("{name} (by more than {rise_max} %)"));
        }
    }
    if keep {
        std::fs::write(&file, found).map_err(|e| format!("{accepted}: {e}"))?;
        worse.clear();
    }
    Ok(worse)
}

/// Instructions of one of the simulator's worlds of this kind, the mean of the first seeds.
fn instructions_of_worlds(kind: &str) -> Result<u64, String> {
    let mut sim = Command::new("valgrind");
    sim.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(target().join("debug/sim"));
    sim.args([&format!("--{kind}"), "--seeds", &WORLDS.to_string()]);
    Ok(collected(sim, &format!("sim --{kind}"))? / WORLDS)
}

/// Instructions of the product while `commands` commands go through it.
fn instructions(scenario: &str, commands: u64) -> Result<u64, String> {
    let mut path = Command::new("valgrind");
    path.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*shard_event*"])
        .arg("--toggle-collect=*path::shard_turn*")
        .arg(target().join("release/path"))
        .args([scenario, &commands.to_string()]);
    collected(path, &format!("path {scenario}"))
}

/// What valgrind says that it collected.
fn collected(mut program: Command, what: &str) -> Result<u64, String> {
    let output = program.output().map_err(|e| format!("valgrind does not run ({e}). Next: make deps"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{what} ended with {}:\n{text}", output.status));
    }
    let collected = text.lines().find_map(|l| l.split_once("Collected : "));
    let (_, number) = collected.ok_or(format!("valgrind says nothing of what it collected:\n{text}"))?;
    number.trim().parse().map_err(|e| format!("valgrind collected '{number}': {e}"))
}
