//! Whole heads in simulated worlds. One program, since every test program costs a link.

mod access;
mod allocations;
mod contract;
mod cut_system;
mod dealt;
mod directory;
mod failed;
mod files;
mod hangs;
mod memory;
mod mixed;
mod older;
mod overheats;
mod pairs;
mod parts;
mod power;
mod regressions;
mod seeds;
mod slow_peers;
mod starts;
mod two_heads;
mod volumes;
mod waits;
mod wiped;

use sim::run::{Outcome, kind, run};

/// Runs these worlds of a kind, which must pass.
fn pass(name: &str, seeds: impl IntoIterator<Item = u64>) -> Vec<Outcome> {
    let (_, world) = kind(name).expect("a kind");
    let passes = |seed| {
        run(world(seed)).unwrap_or_else(|failure| {
            panic!("seed {seed}: {}\nsee it again: sim --{name} --seed {seed} --story", failure.what)
        })
    };
    seeds.into_iter().map(passes).collect()
}
