//! What was done so far, in counters that only grow: two readings of them make rates.

use super::Counters;
use crate::path::stages::STAGES;
use base::{Coarse, Instant, Uuid};

/// All counters at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Figures {
    /// When.
    pub at: Instant,
    /// Every shard has just told its own. Else some of them are older, and show what happened since in one go later.
    pub fresh: bool,
    /// How often it has changed which shards count here. Two readings with different numbers have nothing in common: what a shard
    /// of the other head did before it took part was counted by nobody.
    pub basis: u64,
    /// Times of all reads.
    pub reads: TotalTimes,
    /// Times of all writes.
    pub writes: TotalTimes,
    /// Of each volume.
    pub volumes: Vec<Worked>,
    /// Of each leg's drive.
    pub drives: Vec<Worked>,
}

/// Where the time went of all commands that were timed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TotalTimes {
    /// How long they took.
    pub all: Coarse,
    /// Nanoseconds in each stage, summed over all of them.
    pub stages_ns: [u64; STAGES],
}

/// What a volume or a drive did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Worked {
    /// Its identity.
    pub uuid: Uuid,
    /// Commands and bytes.
    pub counters: Counters,
    /// Nanoseconds, summed over the reads that were timed, and how many these were.
    pub read_times: (u64, u64),
    /// The same of writes.
    pub write_times: (u64, u64),
}
