//! Something else on the machine overwrites the label of a drive in use, or more of it.

use sim::run::{Options, run};

#[test]
fn an_overwritten_label_is_said_and_legs_are_equal_at_the_end() {
    const SEEDS: u64 = 16;
    let (mut rewritten, mut lost) = (0, 0);
    for seed in 0..SEEDS {
        match run(Options::wiped(seed)) {
            Ok(o) => {
                let told = |word: &str| u64::from(o.events.iter().any(|e| e.contains(word)));
                rewritten += told("LabelRewritten {");
                lost += told("DriveMetadataLost {");
            }
            Err(failure) => {
                panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --wiped --story", failure.what)
            }
        }
    }
    assert_eq!(rewritten + lost, SEEDS, "each is said");
    assert!(rewritten > 2 && lost > 2, "{rewritten} labels were written again, {lost} legs were lost");
}
