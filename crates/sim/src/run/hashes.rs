//! Hashes of some worlds: who changes the simulator, and no world, finds the same ones.

use super::{Options, run};
use crate::{directory, two};

/// Worlds and their hashes, one a line: kind, seed and hash. A line without a hash has none yet.
pub const HASHES: &str = include_str!("../../tests/hashes.txt");

/// A line of `HASHES` with the hash that its world has now, or with what its world fails by.
pub fn now(line: &str) -> String {
    let mut words = line.split(' ');
    let kind = words.next().expect("a line has a word");
    let seed: u64 = words.next().and_then(|n| n.parse().ok()).expect("a seed stands behind the kind");
    let hash = match hash_of(kind, seed) {
        Ok(hash) => format!("{hash:016x}"),
        Err(what) => what.lines().next().unwrap_or_default().into(),
    };
    format!("{kind} {seed} {hash}")
}

fn hash_of(kind: &str, seed: u64) -> Result<u64, String> {
    let one = |options: Options| run(options).map(|o| o.hash).map_err(|f| f.what);
    let two = |options: two::Options| two::run(options).map(|o| o.hash).map_err(|f| f.what);
    match kind {
        "swarm" => one(Options::swarm(seed)),
        "usual" => one(Options::usual(seed)),
        "tight" => one(Options::usual(seed).tight()),
        "pairs" => one(Options::pairs(seed)),
        "seesaw" => one(Options::seesaw(seed)),
        "frozen" => one(Options::frozen(seed)),
        "older" => one(Options::older(seed)),
        "failed" => one(Options::failed(seed)),
        "wiped" => one(Options::wiped(seed)),
        "power" => one(Options::power(seed)),
        "dealt" => one(Options::dealt(seed)),
        "access" => one(Options::access(seed)),
        "volumes" => one(Options::volumes(seed)),
        "scarce" => one(Options::scarce(seed)),
        "slow-peers" => one(Options::beside_slow_peers(seed)),
        "calm" => one(Options::calm(seed)),
        "directory" => directory::run(seed),
        "heads" => two(two::Options::swarm(seed)),
        "one-path" => two(two::Options::one_path(seed)),
        "paths" => two(two::Options::paths(seed)),
        "outages" => two(two::Options::outages(seed)),
        "turns" => two(two::Options::turns(seed)),
        "full" => two(two::Options::full(seed)),
        "waits" => two(two::Options::waits(seed)),
        "cuts" => two(two::Options::cuts(seed)),
        "heads-access" => two(two::Options::access(seed)),
        other => Err(format!("there is no kind {other}")),
    }
}
