//! Two heads that decide, shut each other out and let each other in again. `SEEDS=n` goes through more worlds, `SEED=n` prints what happened in one.

use cluster::world::{Calm, Outcome, Took, calm, run, story};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn two_heads_never_serve_side_by_side_and_all_is_well_in_the_end() {
    let mut sum = Outcome::default();
    for seed in number("FROM").unwrap_or(0)..number("SEEDS").unwrap_or(300) {
        let o = run(seed).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        sum.epochs += o.epochs;
        sum.leads += o.leads;
        sum.serves += o.serves;
        sum.put_out += o.put_out;
        sum.let_in += o.let_in;
        sum.follows += o.follows;
        sum.writes += o.writes;
        sum.refused += o.refused;
        sum.healed_ms = sum.healed_ms.max(o.healed_ms);
    }
    println!("{sum:?}");
    let often = [sum.serves, sum.put_out, sum.let_in, sum.refused];
    assert!(often.iter().all(|n| *n > 100), "{sum:?}: too little happens in these worlds");
}

#[test]
fn what_happened_in_one_world_is_printed() {
    let seed = number("SEED");
    let (result, story) = story(seed.unwrap_or(0));
    if seed.is_some() {
        story.iter().for_each(|line| println!("{line}"));
        println!("{result:?}");
    }
    assert!(story.len() > 20, "{story:?}");
}

/// Lives through worlds that are calm but for one thing: the longest times.
fn calms(what: Calm, seeds: u64) -> Took {
    let mut most = Took::default();
    for seed in 0..number("CALM").unwrap_or(seeds) {
        let took = calm(seed, what).unwrap_or_else(|words| panic!("{what:?}, seed {seed}: {words}"));
        most.over_ms = most.over_ms.max(took.over_ms);
        most.back_ms = most.back_ms.max(took.back_ms);
        most.changes += took.changes;
    }
    println!("{what:?}: {most:?}");
    most
}

#[test]
fn nobody_takes_over_while_nothing_happens() {
    assert_eq!(calms(Calm::Nothing, 12).changes, 0);
}

#[test]
fn a_head_that_is_killed_is_followed_within_half_a_second() {
    let most = calms(Calm::Kill, 80);
    assert!(most.over_ms <= 500 && most.back_ms <= 5000, "{most:?}");
}

#[test]
fn a_head_that_is_silent_is_followed_within_a_second_and_comes_back() {
    for what in [Calm::Pause, Calm::Power, Calm::Cut] {
        let most = calms(what, 50);
        assert!(most.over_ms <= 1000 && most.back_ms <= 5000, "{what:?}: {most:?}");
    }
}

/// Each mistake that can be planted in the member and the fence is one that some world finds.
#[cfg(feature = "planted")]
#[test]
fn every_planted_mistake_is_found_by_a_world() {
    use base::planted::{BUGS, Mistake, Worlds, plant};
    // Those that take long are looked for by `mutants`.
    let prompt = |within| within > 0 && within <= number("WITHIN").unwrap_or(600);
    for bug in BUGS.iter().filter(|b| b.worlds == Worlds::System && prompt(b.within)) {
        plant(Some(Mistake::Bug(bug.bug)));
        let found = (0..bug.within).find_map(|seed| run(seed).err().map(|what| (seed, what)));
        plant(None);
        let words = format!("{found:?}");
        println!("{}: {words:.150}", bug.name);
        assert!(found.is_some(), "{}: {}", bug.name, bug.what);
    }
}
