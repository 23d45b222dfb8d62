//! An order fails a drive, and the head falls: the drive stays failed until somebody returns it.

use crate::pass;

#[test]
fn a_drive_that_an_order_failed_stays_failed_whatever_becomes_of_the_head() {
    const SEEDS: usize = 16;
    let by_hand = |e: &String| e.contains("LegOutByHand");
    let failed = pass("failed", 0..SEEDS as u64).iter().filter(|o| o.events.iter().any(by_hand)).count();
    assert!(failed > SEEDS / 2, "drives were failed: {failed} of {SEEDS} heads report it");
}
