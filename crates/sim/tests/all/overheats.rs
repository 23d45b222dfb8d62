//! What real NVMe drives do when they get too hot, in virtual time, with hosts at work throughout and no operator.
//!
//! ```text
//! 5 s: commands are not answered ▶ 35 s: the kernel resets it ▶ 65 s: its own time-out of the reset ▶ 95 s: errors,
//! and the drive is gone ▶ 275 s: it is back, as another device
//! ```

use base::Duration;
use sim::run::{Act, Fault, Options, Outcome, run};

fn at(seconds: u64, fault: Fault) -> Act {
    Act { after: Duration::from_secs(seconds), fault }
}

/// Hosts are at work all the time: drives take their time for each operation.
fn slowly(seed: u64, script: Vec<Act>, commands: u32) -> Outcome {
    let mut options = Options::calm(seed);
    options.legs = 2;
    options.mirrors = 1;
    options.script = script;
    options.commands = commands;
    options.delivery.drive_us = 100_000;
    options.habits.depth = 1;
    options.habits.reset_ppm = 0;
    options.habits.abort_permille = 0;
    // Comparisons that fail, and deallocation where it is not offered, are failures that prove nothing here.
    options.habits.compare_permille = 0;
    options.habits.deallocate_permille = 0;
    options.ill_max = 1;
    run(options).unwrap_or_else(|f| panic!("seed {seed}: {}", f.what))
}

#[test]
fn a_drive_that_overheats_keeps_no_host_waiting_and_comes_back_by_itself_with_what_it_missed() {
    for seed in 0..2 {
        let script = vec![at(5, Fault::hangs(1)), at(95, Fault::pulled(1)), at(275, Fault::heals(1))];
        let o = slowly(seed, script, 6000);
        assert!(o.time > Duration::from_secs(280), "hosts were at work throughout: {:?}", o.time);
        // `run` has compared the legs, and held each command against promise 7.
        assert_eq!((o.failed, o.lost), (0, 0), "no host noticed");
        let count = |words: &str| o.events.iter().filter(|e| e.contains(words)).count();
        let story = [
            "d1: Leg(LegOut { pool: \"tank\"",
            "LegJoined { pool: \"tank\", new: false, full: false }",
            "d1: Leg(LegSynced { pool: \"tank\" })",
        ];
        for words in story {
            assert_eq!(count(words), 1, "{words}: {:#?}", o.events);
        }
        assert_eq!(count("LegJoined"), 1, "and that was partial: {:#?}", o.events);
    }
}
