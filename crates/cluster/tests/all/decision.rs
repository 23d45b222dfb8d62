//! One record for each epoch, in every order of what two heads do.

use cluster::model::{LARGE, SMALL, explore, walk};

#[test]
fn one_record_is_decided_for_each_epoch_in_every_order() {
    let seen = explore(SMALL).expect("one record");
    println!("{seen:?}");
    assert!(seen.states > 10_000 && seen.decided == 1, "{seen:?}: these are not all orders");
}

#[test]
fn one_record_is_decided_for_each_epoch_though_heads_start_again_and_voters_fail_and_change() {
    let mut decided = [0; 4];
    for (scenario, seed) in LARGE.iter().flat_map(|s| (0..20_000).map(move |seed| (s, seed))) {
        match walk(*scenario, seed) {
            Ok(records) => decided[records] += 1,
            Err(what) => panic!("{scenario:?}, seed {seed}: {what}"),
        }
    }
    println!("so many records were decided: {decided:?}");
    assert!(decided.iter().all(|walks| *walks > 100), "{decided:?}: from none to all three");
}

/// Each mistake that can be planted in the decision is one that the model finds.
#[cfg(feature = "planted")]
#[test]
fn every_planted_mistake_lets_two_records_be_decided() {
    use base::planted::{BUGS, Mistake, Worlds, plant};
    for bug in BUGS.iter().filter(|b| b.worlds == Worlds::Decision) {
        plant(Some(Mistake::Bug(bug.bug)));
        let found = (0..bug.within).find(|seed| LARGE.iter().any(|s| walk(*s, *seed).is_err()));
        plant(None);
        println!("{}: {found:?}", bug.name);
        assert!(found.is_some(), "{}: {}", bug.name, bug.what);
    }
}
