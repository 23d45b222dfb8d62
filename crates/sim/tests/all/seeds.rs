//! A bounded part of what `make sim` does, for `make test`: seeds that never ran before make a test that
//! fails without a reason, so these are always the same ones.

use crate::pass;
use sim::run::{Options, run};

/// Seeds of one test thread.
const EACH: u64 = 40;

#[test]
fn whole_heads_keep_their_promises_in_worlds_0_to_39() {
    pass("swarm", 0..EACH);
}

#[test]
fn whole_heads_keep_their_promises_in_worlds_40_to_79() {
    pass("swarm", EACH..2 * EACH);
}

#[test]
fn whole_heads_keep_their_promises_in_worlds_80_to_119() {
    pass("swarm", 2 * EACH..3 * EACH);
}

#[test]
fn whole_heads_keep_their_promises_in_worlds_120_to_159() {
    pass("swarm", 3 * EACH..4 * EACH);
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_last_event() {
    let mut hashes = vec![];
    for seed in 1000..1010 {
        let [first, again] = [(); 2].map(|()| run(Options::swarm(seed)).unwrap_or_else(|f| panic!("{f:?}")));
        assert_eq!(first.hash, again.hash, "seed {seed} ran in two ways");
        hashes.push(first.hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 10, "another seed is another run");
}
