//! Everything that was answered, or repaired, before a power cut is there after it, although drives have volatile caches.

use crate::pass;

#[test]
fn nothing_that_is_durable_is_lost_though_the_power_goes_again_and_again() {
    const SEEDS: u64 = 40;
    let troubles: u64 = pass("power", 0..SEEDS).iter().map(|o| u64::from(o.troubles)).sum();
    assert!(troubles > 5 * SEEDS, "in {SEEDS} worlds only {troubles} things went wrong");
}
