//! The volume of the hosts lies where other data was before: on used drives, or in the space of a removed volume. A block
//! that no host has written must be zero, whatever happens.

use sim::run::{Options, run};

#[test]
fn nobody_reads_what_somebody_left() {
    for seed in 0..30 {
        if let Err(failure) = run(Options::volumes(seed)) {
            panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --volumes --story", failure.what);
        }
    }
}
