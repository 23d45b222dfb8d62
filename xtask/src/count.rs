//! Instructions of a command, held against what they were. Time depends on the machine and on what else it
//! does; the number of instructions nearly not, so a test may hold it.

use crate::run::{cargo, root, run, target};
use std::fmt::Write as _;
use std::process::Command;

/// The figures that were accepted last: a scenario and its instructions a line.
const ACCEPTED: &str = "bench/path/instructions.txt";
/// A figure may rise by so much, per cent: libraries differ between machines.
const RISE_MAX: f64 = 5.0;
/// Commands of the short run; the long one has twice as many, and the difference is theirs alone.
const COMMANDS: u64 = 2000;

/// Counts every scenario in the list; `keep` writes what was counted instead of judging it.
///
/// # Errors
/// A sentence: something does not run, or costs more than it did.
pub fn count(keep: bool) -> Result<(), String> {
    run(cargo(&["build", "--release", "--locked", "--package", "path"]))?;
    let file = root().join(ACCEPTED);
    let accepted = std::fs::read_to_string(&file).map_err(|e| format!("{ACCEPTED}: {e}"))?;
    let (mut found, mut worse) = (String::new(), vec![]);
    println!("{:<22} {:>12} {:>9} {:>8}", "4 KiB, instructions", "accepted", "now", "change");
    for line in accepted.lines() {
        let (name, before) =
            line.split_once(' ').ok_or(format!("{ACCEPTED}: '{line}' is not a name and a number"))?;
        let before: f64 = before.trim().parse().map_err(|e| format!("{ACCEPTED}: {name}: {e}"))?;
        let now = (instructions(name, 2 * COMMANDS)? - instructions(name, COMMANDS)?) / COMMANDS;
        let change = (now as f64 / before - 1.0) * 100.0;
        println!("{name:<22} {before:>12} {now:>9} {change:>+7.1}%");
        writeln!(found, "{name} {now}").expect("strings take all");
        if change > RISE_MAX {
            worse.push(name.to_owned());
        }
    }
    if keep {
        return std::fs::write(&file, found).map_err(|e| format!("{ACCEPTED}: {e}"));
    }
    match worse.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "more than {RISE_MAX} % dearer: {}. Next: make it cheaper, or accept it with make count KEEP=1",
            worse.join(", ")
        )),
    }
}

/// Instructions of the product while `commands` commands go through it.
fn instructions(scenario: &str, commands: u64) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*shard_event*"])
        .arg("--toggle-collect=*path::shard_turn*")
        .arg(target().join("release/path"))
        .args([scenario, &commands.to_string()])
        .output()
        .map_err(|e| format!("valgrind does not run ({e}). Next: make deps"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("path {scenario} ended with {}:\n{text}", output.status));
    }
    let collected = text.lines().find_map(|l| l.split_once("Collected : "));
    let (_, number) = collected.ok_or(format!("valgrind says nothing of what it collected:\n{text}"))?;
    number.trim().parse().map_err(|e| format!("valgrind collected '{number}': {e}"))
}
