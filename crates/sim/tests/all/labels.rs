//! Somebody writes over labels of drives in use.

use sim::run::{Options, run};

#[test]
fn a_label_that_was_written_over_is_told_and_mended() {
    const SEEDS: u64 = 24;
    let (mut rewritten, mut restored) = (0, 0);
    for seed in 0..SEEDS {
        match run(Options::labels(seed)) {
            Ok(o) => {
                let told = |words: &str| u64::from(o.events.iter().any(|e| e.contains(words)));
                rewritten += told("LabelRewritten {");
                restored += told("LabelRestored {");
            }
            Err(failure) => {
                panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --labels --story", failure.what)
            }
        }
    }
    assert!(rewritten > 0 && restored > 0, "{rewritten} rewritten and {restored} restored, of {SEEDS}");
}
