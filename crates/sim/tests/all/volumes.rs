//! The hosts' volume lies where somebody had data before: on drives that were somebody's, or in the space of a volume that
//! was removed. A block that no host has written is zero, whatever happens.

use sim::run::{Options, run};

#[test]
fn nobody_reads_what_somebody_left() {
    for seed in 0..30 {
        if let Err(failure) = run(Options::volumes(seed)) {
            panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --volumes --story", failure.what);
        }
    }
}
