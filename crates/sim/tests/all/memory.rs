//! Worlds with the least memory that works, and long commands with unsolicited data: all commands wait for memory, and
//! none waits for ever.

use crate::pass;
use sim::run::{Options, run};

/// A host that is kept waiting for ever gives its session up after some seconds, begins a new one and gets
/// on in that way; so where nothing else is wrong, not one command may be lost.
#[test]
fn nobody_waits_for_ever() {
    for seed in 0..40 {
        let mut options = Options::usual(seed).tight();
        options.troubles.clear();
        options.habits.reset_ppm = 0;
        match run(options) {
            Ok(outcome) => assert_eq!(outcome.lost, 0, "seed {seed}: sessions were given up"),
            Err(failure) => panic!("seed {seed}: {}", failure.what),
        }
    }
}

/// Two reads whose leg hung got NotReady, beside a good leg: there was no memory to ask it.
#[test]
fn a_read_whose_leg_hangs_has_a_second_buffer_however_little_memory_there_is() {
    pass("tight", [50_031, 50_159]);
}

#[test]
fn worlds_with_little_memory_survive_their_troubles() {
    pass("tight", 0..24);
}

/// A leg hung for longer than hosts are patient. The kernel kept the memory of all writes to it, no host got any more, and
/// the head stood still until the leg let go; iSCSI hosts, whose pings stood behind data that waited for memory, gave their
/// sessions up after 10 s. One host with nine commands under way was enough.
#[test]
fn nobody_waits_for_a_leg_that_hangs_for_long_and_keeps_its_memory() {
    pass("scarce", 0..24);
}
