//! Worlds are what they were: a change of the simulator that is to change no world keeps all hashes of
//! `tests/hashes.txt`. Who changes the product, or worlds, makes that file anew:
//! `sim --hashes > crates/sim/tests/hashes.txt`.

use sim::run::hashes::{HASHES, now};

/// Tests that share the worlds.
const PARTS: usize = 2;

fn pass(part: usize) {
    let lines = HASHES.lines().skip(part).step_by(PARTS);
    let others: Vec<_> = lines.map(|line| (line, now(line))).filter(|(line, now)| line != now).collect();
    let meant = "if that is meant: sim --hashes > crates/sim/tests/hashes.txt";
    assert!(others.is_empty(), "worlds are not what they were; as they were and are: {others:#?}\n{meant}");
}

#[test]
fn one_half_of_the_worlds_has_the_hashes_that_it_had() {
    pass(0);
}

#[test]
fn the_other_half_of_the_worlds_has_the_hashes_that_it_had() {
    pass(1);
}
