//! A live pool becomes a system's, and goes back, cut off at every effect of the Steward on the way: the head starts again, serves, and the
//! same orders end what was begun. Every 11th effect, or as `CUT_STEP` says: `CUT_STEP=1 cargo test --release -p sim --test all cut_off`.

use sim::run::{Cut, Doing, End, Options, run};

const ENDS: [End; 3] = [End::Killed, End::PowerCut, End::LinkLost];

/// Cuts off at every so manieth effect, from the first on, until the orders are over before. How many there were.
fn all(doing: Doing, end: End) -> u32 {
    let step = std::env::var("CUT_STEP").ok().and_then(|n| n.parse().ok()).unwrap_or(11);
    for after in (0..).step_by(step) {
        let cut = Cut { doing, after, end, away: None };
        let outcome = run(Options::of_cut(u64::from(after % 5), cut));
        let outcome = outcome.unwrap_or_else(|f| {
            // Once more, with its story: keeping one costs more than the run itself.
            let again = run(Options {
                log: true,
                trace: std::env::var("CUT_TRACE").is_ok(),
                ..Options::of_cut(f.seed, cut)
            });
            println!("{}", again.map_or_else(|f| f.story.join("\n"), |_| String::new()));
            panic!("{cut:?}, seed {}: {}", f.seed, f.what)
        });
        if outcome.troubles == 0 {
            assert!(after > 30, "nothing was cut off: {cut:?}");
            return after;
        }
    }
    unreachable!("orders are over some day")
}

#[test]
fn a_pool_becomes_a_systems_cut_off_at_some_effects() {
    for end in ENDS {
        println!("{end:?}: {} effects", all(Doing::Create, end));
    }
}

#[test]
fn a_pool_is_a_systems_no_more_cut_off_at_some_effects() {
    for end in ENDS {
        println!("{end:?}: {} effects", all(Doing::Leave, end));
    }
}

/// One that was away when the pool became the system's has old bytes where that one votes, until it is back.
#[test]
fn a_leg_that_was_away_has_no_old_votes_once_it_is_back() {
    for after in [20, 60, 100, 10_000] {
        let cut = Cut { doing: Doing::Create, after, end: End::Killed, away: Some(3) };
        run(Options::of_cut(1, cut)).unwrap_or_else(|f| panic!("{cut:?}: {}", f.what));
    }
}
