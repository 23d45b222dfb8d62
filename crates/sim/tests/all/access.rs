//! An operator takes from hosts what they log in by, or a volume, and gives it back, while they log in and work. Nothing is
//! carried out for a host by what it may not have any more.

use crate::pass;

/// Takes at least so often from hosts of these worlds, each on average.
fn takes(name: &str, seeds: u64, least: u64) {
    let taken: u64 = pass(name, 0..seeds).iter().map(|o| u64::from(o.taken)).sum();
    assert!(taken > least * seeds, "in {seeds} worlds something was taken only {taken} times");
}

#[test]
fn nobody_is_let_in_by_what_was_taken_away() {
    takes("access", 20, 10);
}

#[test]
fn nor_at_the_other_head() {
    takes("heads-access", 10, 3);
}
