//! Lanes go from shard to shard while hosts work and things break, and nothing is lost.

use sim::run::{Options, run};

#[test]
fn lanes_go_round_under_load_and_faults_and_nothing_is_lost() {
    const SEEDS: u64 = 30;
    let mut deals = 0;
    for seed in 0..SEEDS {
        match run(Options::dealt(seed)) {
            Ok(o) => deals += u64::from(o.deals),
            Err(failure) => {
                panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --dealt --story", failure.what)
            }
        }
    }
    assert!(deals > 20 * SEEDS, "in {SEEDS} worlds lanes went round only {deals} times");
}
