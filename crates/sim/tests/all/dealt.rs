//! Lanes go from shard to shard while hosts work and things break, and nothing is lost.

use crate::pass;

#[test]
fn lanes_go_round_under_load_and_faults_and_nothing_is_lost() {
    const SEEDS: u64 = 30;
    let deals: u64 = pass("dealt", 0..SEEDS).iter().map(|o| u64::from(o.deals)).sum();
    assert!(deals > 20 * SEEDS, "in {SEEDS} worlds lanes went round only {deals} times");
}
