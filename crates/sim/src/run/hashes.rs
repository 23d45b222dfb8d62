//! Hashes of some worlds: a change of the simulator that is to change no world keeps them (`sim --hashes`, before and after).

use super::{KINDS, run};
use crate::directory;

/// Worlds of each kind.
const SEEDS: u64 = 5;

/// A line for each of some worlds of each kind: kind, seed, and its hash or what it fails by.
pub fn lines() -> impl Iterator<Item = String> {
    let of_kind = |(name, world): super::Kind| {
        (0..SEEDS).map(move |seed| line(name, seed, run(world(seed)).map(|o| o.hash).map_err(|f| f.what)))
    };
    let of_directories = (0..SEEDS).map(|seed| line("directory", seed, directory::run(seed)));
    KINDS.into_iter().flat_map(of_kind).chain(of_directories)
}

fn line(name: &str, seed: u64, hash: Result<u64, String>) -> String {
    match hash {
        Ok(hash) => format!("{name} {seed} {hash:016x}"),
        Err(what) => format!("{name} {seed} {}", what.lines().next().unwrap_or_default()),
    }
}
