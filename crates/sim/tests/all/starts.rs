//! Heads that start while drives hang: because the power went, or with operations of the former life at the drives (the
//! daemon was killed).

use base::Duration;
use sim::run::{Act, Fault, Options, Outcome, run};
use sim::world::Crash;

/// A pool whose other legs are well is served within 10 s of the start; the look that sees it comes each half second.
const UP: Duration = Duration::from_millis(10_500);

fn at(millis: u64, fault: Fault) -> Act {
    Act { after: Duration::from_millis(millis), fault }
}

/// Hosts are at work throughout, and no operator.
fn world(seed: u64, mirrors: usize, script: Vec<Act>) -> Outcome {
    let mut options = Options::calm(seed);
    options.legs = 2;
    options.mirrors = mirrors;
    options.script = script;
    options.commands = 2000;
    options.delivery.drive_us = 50_000;
    options.habits.depth = 1;
    options.habits.reset_ppm = 0;
    options.habits.abort_permille = 0;
    options.ill_max = 2;
    run(options).unwrap_or_else(|f| panic!("seed {seed}: {}", f.what))
}

fn reports(o: &Outcome, words: &str) -> bool {
    o.events.iter().any(|e| e.contains(words))
}

#[test]
fn a_head_that_starts_beside_a_leg_that_hangs_serves_within_ten_seconds_and_takes_it_back() {
    for seed in 0..12 {
        let end = if seed % 2 == 0 { Crash::Killed } else { Crash::PowerCut };
        let script = vec![at(3000, Fault::hangs(1)), at(3010, Fault::fall(end)), at(40_000, Fault::heals(1))];
        let o = world(seed, 1 + (seed / 2 % 2) as usize, script);
        assert!(o.time > Duration::from_secs(40), "seed {seed}: hosts were at work throughout: {:?}", o.time);
        assert!(o.slowest_start < UP, "seed {seed}: {:?}", o.slowest_start);
        // `run` has seen every leg in sync at the end, and compared them.
        // One that cannot be opened was not found, and one that is open cannot be read.
        assert!(
            reports(&o, "d1: Pool(LegOutAtImport { pool: \"tank\", why: "),
            "seed {seed}: {:#?}",
            o.events
        );
        assert!(reports(&o, "d1: Leg(LegSynced { pool: \"tank\" })"), "seed {seed}: {:#?}", o.events);
    }
}

#[test]
fn a_pool_of_which_all_legs_hang_at_a_start_is_served_when_they_answer() {
    for seed in 0..8 {
        let end = if seed % 2 == 0 { Crash::Killed } else { Crash::PowerCut };
        let mut script =
            vec![at(3000, Fault::hangs(0)), at(3000, Fault::hangs(1)), at(3010, Fault::fall(end))];
        script.extend([at(30_000, Fault::heals(0)), at(32_000, Fault::heals(1))]);
        let o = world(seed, 1, script);
        // Which of the two is looked at first is the draw's.
        let held = reports(&o, "fault: Locked");
        let silent = reports(&o, "fault: Silent") || reports(&o, "fault: TimedOut");
        assert!(
            reports(&o, "PoolStaysAway { pool: \"tank\"") && if end == Crash::Killed { held } else { silent },
            "seed {seed}: {:#?}",
            o.events
        );
        assert!(o.time > Duration::from_secs(32), "seed {seed}: {:?}", o.time);
    }
}
