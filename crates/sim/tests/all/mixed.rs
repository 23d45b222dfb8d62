//! Worlds in which any fault may happen, each kind at a rate of its own.

use crate::pass;
use base::Duration;
use sim::run::{Options, Outcome, Trouble, run};
use sim::world::Wrong;
use std::collections::BTreeSet;

#[test]
fn heads_keep_their_promises_whatever_goes_wrong() {
    for (seed, outcome) in pass("mixed", 0..16).iter().enumerate() {
        let Outcome { troubles, takeovers, rests, .. } = outcome;
        println!("{seed}: {troubles} troubles, {takeovers} takeovers, {rests} rests");
    }
}

/// A head whose directory had lost its part in the system began one of its own at once, and fenced the one that led.
#[test]
fn a_head_without_its_record_does_not_fence_the_one_that_leads() {
    run(Options::mixed(378)).unwrap_or_else(|f| panic!("{}", f.what));
}

/// What was given must be back, and both heads, drives and directories must agree, while a world goes on.
#[test]
fn hosts_rest_in_the_middle_of_a_world() {
    let mut options = Options::two_heads(7);
    options.outage = None;
    options.work = Duration::from_secs(12);
    options.troubles = vec![Trouble::ResetNetwork];
    options.rates = vec![Duration::from_millis(600)];
    let outcome = run(options).unwrap_or_else(|f| panic!("{}", f.what));
    println!("{} rests beside {} troubles", outcome.rests, outcome.troubles);
    assert!((1..=3).contains(&outcome.rests), "{} rests", outcome.rests);
}

/// Those of the other head wait until that one leads; no volume goes, or hosts would drop their disks.
#[test]
fn hosts_keep_their_volumes_as_a_leader_is_stopped() {
    for seed in 0..8 {
        let mut options = Options::powered(seed);
        options.outage = None;
        options.work = Duration::from_secs(8);
        options.kills_max = u32::MAX;
        options.troubles = vec![Trouble::Stop];
        options.rates = vec![Duration::from_millis(700)];
        let outcome = run(options).unwrap_or_else(|f| panic!("seed {seed}: {}", f.what));
        assert!(outcome.tally.met(Wrong::Stop) > 0, "seed {seed}: no head was stopped");
    }
}

/// Only these happen to two heads, often; each happens, and makes a difference.
fn are_met(kinds: &[(Trouble, Wrong)]) {
    let mut options = Options::two_heads(7);
    options.outage = None;
    options.work = Duration::from_secs(8);
    options.troubles = kinds.iter().map(|(trouble, _)| *trouble).collect();
    options.rates = vec![Duration::from_millis(500); kinds.len()];
    let outcome = run(options).unwrap_or_else(|f| panic!("{}", f.what));
    println!("{:?}", outcome.tally);
    for (_, what) in kinds {
        assert!(outcome.tally.made(*what) > 0, "{what:?} never happened");
        assert!(outcome.tally.met(*what) > 0, "{what:?} made no difference");
    }
    assert_eq!(outcome.tally.made(Wrong::Hang), 0, "no drive was to hang");
}

#[test]
fn what_goes_wrong_is_counted_where_it_makes_a_difference() {
    are_met(&[
        (Trouble::Kill, Wrong::Kill),
        (Trouble::PauseSteward, Wrong::PauseSteward),
        (Trouble::SlowNetwork, Wrong::SlowNetwork),
        (Trouble::ResetNetwork, Wrong::ResetNetwork),
    ]);
    are_met(&[
        (Trouble::PauseShard, Wrong::PauseShard),
        (Trouble::SlowDirectory, Wrong::SlowDirectory),
        (Trouble::AskFollower, Wrong::AskFollower),
    ]);
}

#[test]
fn every_kind_of_fault_has_worlds_and_a_rate_in_each() {
    let worlds: Vec<Options> = (0..2000).map(Options::mixed).collect();
    let of_one = worlds.iter().filter(|o| o.heads == 1).count() * 100 / worlds.len();
    assert!((20..=30).contains(&of_one), "{of_one} of 100 have one head");
    let mut kinds = [BTreeSet::new(), BTreeSet::new()];
    for options in &worlds {
        assert!(!options.troubles.is_empty(), "seed {}: nothing happens", options.seed);
        assert_eq!(options.troubles.len(), options.rates.len(), "seed {}", options.seed);
        // Its name, without what belongs to it.
        let name = |t: &Trouble| format!("{t:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
        kinds[options.heads - 1].extend(options.troubles.iter().map(name));
    }
    println!("{kinds:#?}");
    assert_eq!(kinds.map(|of| of.len()), [16, 43], "some kind of fault has no world");
}
