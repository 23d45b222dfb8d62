//! Worlds with a mistake in them.

use base::planted::{Mistake, Worlds, armed, plant};
use cluster::model::{LARGE, walk};
use sim::run::{KINDS, kind, run};
use std::panic::{UnwindSafe, catch_unwind};

/// Worlds that have a driver of their own.
const OTHERS: [&str; 3] = ["system", "decision", "directory"];
/// Kinds that show nothing which others do not show: of one head, in which nothing goes wrong, or nothing but hosts.
const LEFT_OUT: [&str; 6] = ["usual", "tight", "calm", "access", "slow-peers", "one-path"];

/// Where a planted bug is looked for, by the name of the kind.
pub fn name(worlds: Worlds) -> &'static str {
    match worlds {
        Worlds::Swarm => "swarm",
        Worlds::Tight => "tight",
        Worlds::Pairs => "pairs",
        Worlds::Seesaw => "seesaw",
        Worlds::Frozen => "frozen",
        Worlds::Older => "older",
        Worlds::Failed => "failed",
        Worlds::Wiped => "wiped",
        Worlds::Power => "power",
        Worlds::Dealt => "dealt",
        Worlds::Access => "access",
        Worlds::Decision => "decision",
        Worlds::System => "system",
        Worlds::Directory => "directory",
        Worlds::Heads => "heads",
        Worlds::Paths => "paths",
        Worlds::Outages => "outages",
        Worlds::Turns => "turns",
        Worlds::Full => "full",
        Worlds::Mixed => "mixed",
        Worlds::Waits => "waits",
        Worlds::Volumes => "volumes",
        Worlds::SlowPeers => SLOW_PEERS,
        Worlds::Scarce => "scarce",
    }
}

const SLOW_PEERS: &str = "slow-peers";

/// Kinds in which mutants made by rule are looked for, those of two heads first.
pub fn kinds() -> Vec<&'static str> {
    let named = KINDS.iter().map(|(name, _)| *name).filter(|name| !LEFT_OUT.contains(name));
    let (two, one): (Vec<_>, Vec<_>) = named.partition(|name| kind(name).is_some_and(|k| k.1(0).heads == 2));
    two.into_iter().chain(OTHERS).chain(one).collect()
}

/// Whether a world armed the mistake, and what it failed by because of it.
pub fn with(mistake: Mistake, kind: &str, seed: u64) -> (bool, Option<String>) {
    plant(Some(mistake));
    let by = failure(kind, seed);
    let armed = armed() > 0;
    plant(None);
    // What fails unarmed fails without the mistake.
    let by = by.filter(|_| armed && failure(kind, seed).is_none());
    (armed, by)
}

/// What a seed fails by, if it does: the first words of the checker, without what is of one seed alone.
fn failure(name: &str, seed: u64) -> Option<String> {
    match name {
        "decision" => attempt(|| LARGE.iter().try_for_each(|s| walk(*s, seed).map(|_| ()))),
        "system" => attempt(|| cluster::world::run(seed).map(|_| ())),
        "directory" => attempt(|| sim::directory::run(seed).map(|_| ())),
        _ => attempt(|| {
            let (name, options) = kind(name).expect("a kind");
            let outcome = run(options(seed)).map_err(|failure| failure.what)?;
            if name == SLOW_PEERS && outcome.lost > 0 { Err("sessions given up".into()) } else { Ok(()) }
        }),
    }
}

fn attempt(world: impl FnOnce() -> Result<(), String> + UnwindSafe) -> Option<String> {
    match catch_unwind(world) {
        Ok(result) => result.err().map(|what| one_line(&what)),
        Err(panic) => Some(one_line(&words(&*panic))),
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    format!("assertion: {text}")
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().replace(['|', '\t'], "/");
    line.chars().take(72).collect()
}
