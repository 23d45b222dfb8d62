//! An operator takes from hosts what they log in by, or a volume, and gives it back, while they log in and work. Nothing is
//! carried out for a host by what it may not have any more.

use sim::run::{Options, run};
use sim::two;

#[test]
fn nobody_is_let_in_by_what_was_taken_away() {
    const SEEDS: u64 = 20;
    let mut taken = 0;
    for seed in 0..SEEDS {
        match run(Options::access(seed)) {
            Ok(o) => taken += u64::from(o.taken),
            Err(failure) => {
                panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --access --story", failure.what)
            }
        }
    }
    assert!(taken > 10 * SEEDS, "in {SEEDS} worlds something was taken only {taken} times");
}

#[test]
fn nor_at_the_other_head() {
    const SEEDS: u64 = 10;
    let mut taken = 0;
    for seed in 0..SEEDS {
        match two::run(two::Options::access(seed)) {
            Ok(o) => taken += u64::from(o.taken),
            Err(failure) => {
                let again = format!("sim --seed {seed} --access --heads 2 --story");
                panic!("seed {seed}: {}\nsee it again: {again}", failure.what)
            }
        }
    }
    assert!(taken > 3 * SEEDS, "in {SEEDS} worlds something was taken only {taken} times");
}
