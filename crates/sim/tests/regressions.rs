//! Worlds in which something was once wrong, each with its story. A seed means what it means as long as
//! `Options::swarm` stays as it is; whoever changes that leaves the stories and, where one still matters,
//! finds a seed that shows it again with the mistake put back.

use sim::run::{Options, run};

/// Seed, what was seen, and what had been wrong.
const STORIES: [(u64, &str); 5] = [
    (18, "never optimal again: the Steward waited for news of a mirror that had no dirty bit at the crash"),
    (358, "as 18, with two mirrors of which only one was ever written"),
    (68, "a block held another's stamp: an iSCSI abort was sent for a task tag that a new write had by then"),
    (
        4405,
        "legs differed: our own mistake, the checker looked while a lost connection's writes were under way",
    ),
    (172, "an old value was read: as 68, with a write that its host took for aborted"),
];

#[test]
fn what_was_mended_stays_mended() {
    for (seed, story) in STORIES {
        if let Err(failure) = run(Options::swarm(seed)) {
            panic!("seed {seed}: {}\nits story: {story}", failure.what);
        }
    }
}
