//! A drive is exchanged for an older copy of itself, while the head is stopped, after it fell, or while the leg is out: the head
//! distinguishes the copy from the drive.

use crate::pass;

#[test]
fn an_older_copy_of_a_drive_is_never_read() {
    const SEEDS: usize = 24;
    let outcomes = pass("older", 0..SEEDS as u64);
    let count = |event: fn(&String) -> bool| outcomes.iter().filter(|o| o.events.iter().any(event)).count();
    let found = count(|e| e.contains("LegOlder {"));
    let returned = count(|e| e.contains("LegJoined {") && e.contains("full: true"));
    println!("{found} {returned}");
    assert!(found > SEEDS / 3, "drives were exchanged: {found} of {SEEDS} heads report it");
    assert!(
        returned > SEEDS / 8,
        "legs that were out were exchanged: {returned} of {SEEDS} return by a full copy"
    );
}
