//! Worlds in which any fault may happen, each kind at a rate of its own.

use crate::pass;
use sim::run::{Options, Trouble};
use std::collections::BTreeSet;

#[test]
fn heads_keep_their_promises_whatever_goes_wrong() {
    for (seed, outcome) in pass("mixed", 0..16).iter().enumerate() {
        println!("{seed}: {} troubles, {} takeovers", outcome.troubles, outcome.takeovers);
    }
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
    assert_eq!(kinds.map(|of| of.len()), [15, 27], "some kind of fault has no world");
}
