//! A drive is exchanged for an older copy of itself, while the head is stopped, after it fell, or while the leg is out: the head
//! distinguishes the copy from the drive.

use sim::run::{Options, run};

#[test]
fn an_older_copy_of_a_drive_is_never_read() {
    const SEEDS: u64 = 24;
    let (mut found, mut returned) = (0, 0);
    for seed in 0..SEEDS {
        match run(Options::older(seed)) {
            Ok(o) => {
                found += u64::from(o.events.iter().any(|e| e.contains("LegOlder {")));
                let full = |e: &String| e.contains("LegJoined {") && e.contains("full: true");
                returned += u64::from(o.events.iter().any(full));
            }
            Err(failure) => {
                panic!("seed {seed}: {}\nsee it again: sim --seed {seed} --older --story", failure.what)
            }
        }
    }
    println!("{found} {returned}");
    assert!(found > SEEDS / 3, "drives were exchanged: {found} of {SEEDS} heads report it");
    assert!(
        returned > SEEDS / 8,
        "legs that were out were exchanged: {returned} of {SEEDS} return by a full copy"
    );
}
