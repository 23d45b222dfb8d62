//! While the head is stopped, a drive is exchanged for an older copy of itself: the head distinguishes the copy from the drive.

use sim::run::{Options, run};

#[test]
fn an_older_copy_of_a_drive_is_never_read() {
    const SEEDS: u64 = 16;
    let mut found = 0;
    for seed in 0..SEEDS {
        match run(Options::older(seed)) {
            Ok(o) => found += u64::from(o.events.iter().any(|e| e.contains("LegOlder {"))),
            Err(failure) => {
                panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --older --story", failure.what)
            }
        }
    }
    assert!(found > SEEDS / 2, "drives were exchanged: {found} of {SEEDS} heads report it");
}
