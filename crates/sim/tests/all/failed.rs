//! An order fails a drive, and the head falls: the drive stays failed until somebody returns it.

use sim::run::{Options, run};

#[test]
fn a_drive_that_an_order_failed_stays_failed_whatever_becomes_of_the_head() {
    const SEEDS: u64 = 16;
    let mut failed = 0;
    for seed in 0..SEEDS {
        match run(Options::failed(seed)) {
            Ok(o) => failed += u64::from(o.events.iter().any(|e| e.contains("LegOutByHand"))),
            Err(failure) => {
                panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --failed --story", failure.what)
            }
        }
    }
    assert!(failed > SEEDS / 2, "drives were failed: {failed} of {SEEDS} heads report it");
}
