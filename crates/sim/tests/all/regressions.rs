//! Worlds that once failed, each with the reason. A seed means what it means as long as
//! `Options::usual` stays as it is; whoever changes that leaves the stories and, where one still matters,
//! finds a seed that shows it again with the mistake put back (those before this list are planted bugs now:
//! crates/base/src/planted.rs).

use sim::run::{Options, run};

/// Seed, what was seen, and what had been wrong.
const STORIES: [(u64, &str); 11] = [
    (
        47,
        "a block that was read after a crash had been made the same in the legs' caches alone, and the next power cut \
         brought the value before it back",
    ),
    (
        177,
        "a head that began while a drive hung had no pool for good: our own mistake, the operator of this \
         world did not import it when status said so",
    ),
    (
        649,
        "a leg waited for the dead last leg of another mirror to be put in sync on record, and that kept the \
         dead one from being opened anew: orders queued until the daemon was started again",
    ),
    (
        828,
        "the same, with the legs of the other mirror in turn (earlier: a write that was given up on the last leg \
         landed after its host's next login: a limit, which the oracle knows now, docs/faults.md)",
    ),
    (
        1000,
        "a shard turned without end: a resync whose buffers were all held by operations that hung was due, \
         and could do nothing",
    ),
    (
        20038,
        "heads that fell quickly one after the other left legs two records behind, and the pool waited for \
         somebody to say which of them were right (seeds 10549 and 14329 of an earlier head, too)",
    ),
    (
        40273,
        "a bit of a version rotted, on one drive of two, and the pool waited for a newer program: versions were \
         believed before checksums were looked at",
    ),
    (
        103314,
        "a drive had taken another one's place and was pulled before it had the record that the other was out; each attempt \
         to write it was a new record, and after two its own was too old to be named: it was never taken back",
    ),
    (
        205516,
        "a host asked to be let in while one of its queues was ending, and its admin queue began to end only then: it          was let in when the first queue was gone, beside writes of the others",
    ),
    (
        214256,
        "a head fell while it wrote its first record, which one leg alone got; the next head came up without that leg,          which was then held for one that had been used apart, for good",
    ),
    (322, "a comparison on a hung leg got NotReady: it had no second buffer"),
];

#[test]
fn what_was_mended_stays_mended() {
    for (seed, story) in STORIES {
        if let Err(failure) = run(Options::usual(seed)) {
            panic!("seed {seed}: {}\nits story: {story}", failure.what);
        }
    }
}

/// The same of worlds of one mirror of which both legs fall ill (`sim --pairs`).
const PAIRS: [(u64, &str); 1] = [(
    7_700_117,
    "both legs were pulled, one after the other, while an import wrote its first record and its configuration: one leg took the record \
     alone and the other nothing, and the pool was served by a configuration that no drive had",
)];

#[test]
fn worlds_of_pairs_that_failed_once_pass() {
    for (seed, story) in PAIRS {
        run(Options::pairs(seed))
            .unwrap_or_else(|failure| panic!("seed {seed}: {}\nonce: {story}", failure.what));
    }
}
