//! Pools and their arrays.

use crate::{Cause, State, Time};
use base::Uuid;
use finding::{Difference, SpareFit};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool: arrays, striped.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Identity.
    #[serde(with = "crate::text")]
    #[schema(value_type = String)]
    pub uuid: Uuid,
    /// The worst of its arrays' states.
    pub state: State,
    /// Why, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why; empty when optimal.
    pub reason: String,
    /// Chunk of the stripe.
    pub chunk_bytes: u32,
    /// Space for volumes.
    pub bytes: u64,
    /// Of these, given to volumes.
    pub used_bytes: u64,
    /// Of `used_bytes`, what was given back and becomes free within seconds.
    #[serde(default)]
    pub freeing_bytes: u64,
    /// Space that holds what a removed volume, or whoever had the drives before, left: it reads as zeroes, and is being cleared.
    #[serde(default)]
    pub clearing: Option<Clearing>,
    /// Block size of new volumes.
    pub block_bytes: u32,
    /// Zones of the stripe map, in order.
    pub zones: Vec<Zone>,
    /// Its arrays, in order.
    pub arrays: Vec<Array>,
    /// The scrub under way, or the last one; and when the next one begins.
    pub scrub: Scrub,
    /// Its hot spares, in the order in which they are used.
    pub spares: Vec<Spare>,
    /// A spare took the place of a drive, and none is left for the next one.
    #[serde(default)]
    pub no_spare: bool,
}

/// A hot spare: a drive that takes the place of a leg that fails.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Spare {
    /// Its path; the last known one if it is missing.
    pub path: String,
    /// Its identity.
    #[serde(with = "crate::text")]
    #[schema(value_type = String)]
    pub uuid: Uuid,
    /// Size, 0 if unknown.
    pub bytes: u64,
    /// It is there.
    pub ready: bool,
    /// Why, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why not; empty if it is.
    pub reason: String,
    /// For which mirrors it cannot stand in; absent if it can for every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub fit: Option<SpareFit>,
    /// Which mirrors it can stand in for, and why not for others; empty if for every one.
    #[serde(default)]
    pub fits: String,
}

/// A drive to become a spare.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SpareAdd {
    /// Its path.
    pub drive: String,
    /// Use it even if it carries something foreign.
    #[serde(default)]
    pub force: bool,
}

/// A drive to become a leg of a mirror.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LegAdd {
    /// Its path.
    pub drive: String,
    /// The mirror, as `mirror-0`; may be left out where the pool has one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<String>,
    /// Use it even if it carries something foreign.
    #[serde(default)]
    pub force: bool,
}

/// A part of a pool, striped over some of its arrays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Zone {
    /// Bytes of pool space.
    pub bytes: u64,
    /// The arrays in it.
    pub weights: Vec<ZoneWeight>,
}

/// An array's share of a zone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ZoneWeight {
    /// Index in the pool's arrays.
    pub array: u16,
    /// Its weight.
    pub weight: u32,
}

/// How an array keeps its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArrayLayout {
    /// One drive.
    #[default]
    Single,
    /// Two to four drives with the same data.
    Mirror,
}

impl ArrayLayout {
    /// Of an array that is a mirror, or not.
    pub fn of(mirror: bool) -> Self {
        if mirror { ArrayLayout::Mirror } else { ArrayLayout::Single }
    }
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            ArrayLayout::Single => "single",
            ArrayLayout::Mirror => "mirror",
        }
    }
}

/// An array: one redundancy group of drives.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Array {
    /// How it keeps its data.
    pub layout: ArrayLayout,
    /// Its state.
    pub state: State,
    /// Why, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why; empty when optimal.
    pub reason: String,
    /// Bytes for data.
    pub bytes: u64,
    /// Its legs, in order.
    pub legs: Vec<Leg>,
    /// Bytes that one bit of the bitmap covers.
    pub region_bytes: u64,
    /// Regions marked dirty now.
    pub regions_dirty: u64,
    /// All regions.
    pub regions: u64,
    /// Membership counter.
    pub epoch: u64,
    /// The resync under way.
    pub resync: Option<Resync>,
    /// Writes of hosts that found their region marked, since the start: they cost the bitmap nothing.
    pub warm_writes: u64,
    /// Writes of hosts that waited until their region was marked on every leg.
    pub cold_writes: u64,
    /// Writes of bitmap blocks that mark regions, each to all legs at once.
    pub bitmap_sets: u64,
    /// Writes of bitmap blocks that only clear marks.
    pub bitmap_clears: u64,
    /// Nanoseconds that cold writes waited for the bitmap, summed.
    pub bitmap_wait_ns: u64,
    /// Reads that were late and were sent to another leg too, since the start.
    pub hedged_reads: u64,
    /// Those of them that were answered from there.
    pub hedged_reads_won: u64,
}

/// A drive as a member of an array.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Leg {
    /// The drive's path; the last known one if it is missing.
    pub path: String,
    /// The drive's identity.
    #[serde(with = "crate::text")]
    #[schema(value_type = String)]
    pub uuid: Uuid,
    /// `optimal`: in sync; `rebuilding`: being resynced; `failed`: out; `offline`: missing, or not
    /// proven current.
    pub state: State,
    /// Why, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why; empty when optimal.
    pub reason: String,
    /// Its reads take far longer than those of the other legs, which serve most of them.
    pub slow: bool,
    /// The drive whose place it takes once it is in sync; that one serves until then, if it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

/// How far the clearing of space is that reads as zeroes whatever the drives hold there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Clearing {
    /// Bytes of the arrays left to clear.
    pub left_bytes: u64,
    /// Bytes a second, lately.
    pub rate: u64,
    /// Seconds left at that rate.
    pub seconds_left: Option<u64>,
}

/// How far a resync is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Resync {
    /// Index of the leg that is being written; null where all legs are in use and are made the same, after the array was
    /// made or the daemon crashed.
    pub leg: Option<u16>,
    /// By bitmap, not everything.
    pub partial: bool,
    /// Bytes made the same so far.
    pub done_bytes: u64,
    /// Bytes there were to do.
    pub total_bytes: u64,
    /// Bytes a second, lately.
    pub rate: u64,
    /// Seconds left at that rate.
    pub seconds_left: Option<u64>,
}

/// One array of a new pool or zone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// How it keeps its data.
    pub layout: ArrayLayout,
    /// Paths, `ram:SIZE`, `null:SIZE`; each may have a shape in front, `shape:mbps-max=100@PATH`.
    pub drives: Vec<String>,
    /// Weight in the stripe, 1 to 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

impl ArraySpec {
    /// It keeps two or more copies.
    pub fn is_mirror(&self) -> bool {
        self.layout == ArrayLayout::Mirror
    }
}

/// A pool to make.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolCreate {
    /// Its name.
    pub name: String,
    /// Its arrays, at least one.
    pub arrays: Vec<ArraySpec>,
    /// Chunk of the stripe, a power of two from 16 KiB to 4 MiB; 64 KiB if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_bytes: Option<u32>,
    /// Block size of its volumes, 512 or 4096; 4096 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u32>,
    /// Measure the weights (writes to every drive).
    #[serde(default)]
    pub measure: bool,
    /// Use drives that carry something foreign, or of which much stays unused.
    #[serde(default)]
    pub force: bool,
}

/// Arrays to append to a pool, as a new zone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolAdd {
    /// What to append.
    pub arrays: Vec<ArraySpec>,
    /// Use drives that carry something foreign, that keep fewer copies than the pool, or of which much stays unused.
    #[serde(default)]
    pub force: bool,
}

/// A pool to take.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolImport {
    /// Name or UUID; the only one there is if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The name that it has from now on; its own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Drives to look at beside the machine's own (files are found where they lay last, and where this says).
    #[serde(default)]
    pub drives: Vec<String>,
    /// Take it even if another head did not release it, or a leg cannot be proven current.
    #[serde(default)]
    pub force: bool,
}

/// A pool that lies on drives here and is not imported; or a drive that another process holds, so that it is not
/// known what lies on it: then `name` is empty, and `reason` says which drive and who.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Importable {
    /// Name.
    pub name: String,
    /// Identity; nil if it is not known.
    #[serde(with = "crate::text")]
    #[schema(value_type = String)]
    pub uuid: Uuid,
    /// The state that it would have.
    pub state: State,
    /// Why, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why it cannot be imported as it is, or what to know; one sentence.
    pub reason: String,
    /// The command that imports it.
    pub next: Option<String>,
    /// The last head that had it released it.
    pub released: bool,
    /// Drives found, by path.
    pub found: Vec<String>,
    /// Drives missing, by identity.
    pub missing: Vec<String>,
}

/// The scrub of a pool's mirrors under way, or the last one; and when the next one begins.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Scrub {
    /// One is under way.
    pub running: bool,
    /// It repairs.
    pub repair: bool,
    /// Bytes of the mirrors compared so far.
    pub done_bytes: u64,
    /// Bytes there are to compare.
    pub total_bytes: u64,
    /// Bytes a second, lately.
    pub rate: u64,
    /// Seconds left at that rate.
    pub seconds_left: Option<u64>,
    /// When the last one came to its end, UTC.
    pub last_ended: Option<Time>,
    /// One begins so many days after that; 0 for never.
    pub every_days: u32,
    /// Those repair.
    pub schedule_repairs: bool,
    /// Bytes in which legs differed.
    pub differed_bytes: u64,
    /// Of these, written again.
    pub repaired_bytes: u64,
    /// Bytes that could not be compared.
    pub unreadable_bytes: u64,
    /// The first of what was found since the head started, by volume.
    pub findings: Vec<Finding>,
    /// Places that it was found in, of which `findings` has the first.
    #[serde(default)]
    pub places: u64,
}

/// Something that a scrub found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// `pool/volume`; absent for space that no volume has.
    pub volume: Option<String>,
    /// First byte in the volume, or in pool space.
    pub at: u64,
    /// Bytes.
    pub bytes: u64,
    /// Index of the array.
    pub array: u16,
    /// What, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub difference: Option<Difference>,
    /// What, one sentence.
    pub what: String,
    /// It was written again.
    pub repaired: bool,
}

/// What to do about a pool's scrubs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "lowercase", tag = "action")]
pub enum PoolScrub {
    /// Begin one now.
    Start {
        /// Make legs that differ equal: by majority where there is one, else as `prefer` says, else not at all.
        #[serde(default)]
        repair: bool,
        /// The drives that count where it cannot be known which one is right, one for a mirror: paths or UUIDs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        prefer: Vec<String>,
    },
    /// End the one under way.
    Stop,
    /// Forget what the last one found: it was dealt with.
    Clear,
    /// Begin one so many days after the last one ended.
    Schedule {
        /// 0 for never.
        days: u32,
        /// Those repair.
        #[serde(default)]
        repair: bool,
    },
}
