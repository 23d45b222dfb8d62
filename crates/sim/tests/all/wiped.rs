//! Something else on the machine overwrites the label of a drive in use, or more of it.

use crate::pass;

#[test]
fn an_overwritten_label_is_said_and_legs_are_equal_at_the_end() {
    const SEEDS: usize = 16;
    let outcomes = pass("wiped", 0..SEEDS as u64);
    let said = |word: &str| outcomes.iter().filter(|o| o.events.iter().any(|e| e.contains(word))).count();
    let (rewritten, lost) = (said("LabelRewritten {"), said("DriveMetadataLost {"));
    assert_eq!(rewritten + lost, SEEDS, "each is said");
    assert!(rewritten > 2 && lost > 2, "{rewritten} labels were written again, {lost} legs were lost");
}
