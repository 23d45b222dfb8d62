//! Everything that was answered, or repaired, before a power cut is there after it, although drives have volatile caches.

use sim::run::{Options, run};

#[test]
fn nothing_that_is_durable_is_lost_though_the_power_goes_again_and_again() {
    const SEEDS: u64 = 40;
    let mut troubles = 0;
    for seed in 0..SEEDS {
        match run(Options::power(seed)) {
            Ok(o) => troubles += u64::from(o.troubles),
            Err(failure) => {
                panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --power --story", failure.what)
            }
        }
    }
    assert!(troubles > 5 * SEEDS, "in {SEEDS} worlds only {troubles} things went wrong");
}
