//! Hashes of some worlds: who changes the simulator, and no world, finds the same ones.

use super::{kind, run};
use crate::directory;

/// Worlds and their hashes, one a line: kind, seed and hash. A line without a hash has none yet.
pub const HASHES: &str = include_str!("../../tests/hashes.txt");

/// A line of `HASHES` with the hash that its world has now, or with what its world fails by.
pub fn now(line: &str) -> String {
    let mut words = line.split(' ');
    let name = words.next().expect("a line has a word");
    let seed: u64 = words.next().and_then(|n| n.parse().ok()).expect("a seed stands behind the kind");
    let hash = match kind(name) {
        Some((_, world)) => run(world(seed)).map(|o| o.hash).map_err(|failure| failure.what),
        None if name == "directory" => directory::run(seed),
        None => Err("there is no such kind".into()),
    };
    match hash {
        Ok(hash) => format!("{name} {seed} {hash:016x}"),
        Err(what) => format!("{name} {seed} {}", what.lines().next().unwrap_or_default()),
    }
}
