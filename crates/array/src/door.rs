//! The door of an array: what the head hands in, what it gets back, and the effects.
//!
//! One `Array` lives on each shard. The head routes changes of a redundant array to `Array::owner`,
//! and reads too where `Array::read_is_local` is false. Whatever concerns the whole array (its members, what is on
//! record) comes from the Steward to the instance of every shard.

use crate::bitmap::Bitmap;
use crate::geometry::{Geometry, Lanes};
use crate::uncleared::map::UnclearedMap;
use base::{DriveError, DriveId, DriveOp, DriveOpKind, Duration, Instant, Slice, Status, Uuid};
use serde::{Deserialize, Serialize};

/// Host commands under way in one instance, at most. The head holds back what is beyond.
pub const COMMANDS_MAX: u32 = 512;
/// Memory that an instance needs for bitmap blocks and copies, bytes.
pub const SCRATCH_BYTES: u32 = crate::buffers::SCRATCH_BYTES;
/// The same of an instance of an array without redundancy.
pub const SINGLE_SCRATCH_BYTES: u32 = crate::buffers::SINGLE_SCRATCH_BYTES;
/// Largest read or write of one command, bytes.
pub const TRANSFER_MAX: u32 = base::front::TRANSFER_MAX;

/// The head's own mark on a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ticket(pub u64);

/// What to do to an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// Array to memory.
    Read,
    /// Memory to array.
    Write,
    /// Zeroes, in any length.
    WriteZeroes,
    /// The range may be forgotten; it reads as zeroes afterwards.
    Deallocate,
    /// What was completed before, on any shard, is durable when this ends.
    Flush,
}

/// One command. Offsets and lengths are multiples of the drives' block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayCommand {
    /// What to do.
    pub kind: Kind,
    /// First byte, in the array's data space.
    pub at: u64,
    /// Bytes; with `at` inside one region on redundant arrays (`Geometry::region_end`). 0 for Flush.
    pub len: u64,
    /// The memory of Read and Write, `len` bytes.
    pub data: Slice,
    /// Durable before it is answered.
    pub fua: bool,
}

/// What a leg is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
pub enum LegState {
    /// Holds everything: is read and written.
    InSync,
    /// Lacks what the bitmap says: is written, never read.
    Rebuilding,
    /// Absent or failed: gets no I/O.
    Missing,
}

/// A drive as a member of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leg {
    /// The drive.
    pub drive: DriveId,
    /// What it is good for.
    pub state: LegState,
    /// Completed writes may be lost at a power cut until a Flush.
    pub volatile_cache: bool,
    /// Deallocated ranges read as zeroes.
    pub deallocate_zeroes: bool,
    /// Byte offset of the uncleared map on the drive (docs/formats/uncleared.md).
    pub map_at: u64,
}

/// The members, as decided by the Steward.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Membership {
    /// Grows with each change.
    pub epoch: u64,
    /// At most `PLACES_MAX`; None where a member has left for good (already on record) or never was. A place keeps
    /// its meaning: a leg never moves to another.
    pub legs: Vec<Option<Leg>>,
}

/// What an instance is made from.
#[derive(Clone, Debug)]
pub struct ArrayConfig {
    /// The array, as written in its bitmap blocks.
    pub uuid: Uuid,
    /// Where things lie.
    pub geometry: Geometry,
    /// The members; already on record.
    pub membership: Membership,
    /// This shard.
    pub shard: u16,
    /// Who changes what.
    pub lanes: Lanes,
    /// `SCRATCH_BYTES` of this shard's memory, page-aligned, this instance's alone (`SINGLE_SCRATCH_BYTES` where there is
    /// no redundancy).
    pub scratch: Slice,
    /// Regions that are dirty at the start, as `merge` found them on the legs in sync.
    pub dirty: Bitmap,
    /// The head went down without `release`: legs in sync may differ in the dirty regions.
    pub unclean: bool,
    /// Pieces that are uncleared at the start, as `UnclearedMap::merge` found them on the legs in sync.
    pub uncleared: UnclearedMap,
    /// Another head may be let in at its drives: `Array::on_shared`.
    pub shared: bool,
}

/// Limits of resync.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pace {
    /// Bytes per second of this instance while hosts are busy: it never gets less.
    pub floor: u64,
    /// Bytes per second of this instance while hosts are quiet, 0 for no limit.
    pub ceiling: u64,
    /// Hosts count as quiet when no command came for so long.
    pub quiet: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { floor: 16 << 20, ceiling: 0, quiet: Duration::from_millis(20) }
    }
}

/// What a scrub does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Scrub {
    /// Which one it is: the note of its end repeats it.
    pub number: u32,
    /// It goes on here: bytes of the data space, a multiple of the region. 0 for a new one.
    pub from: u64,
    /// Legs that differ are made equal; otherwise the difference is only reported.
    pub repair: bool,
    /// The leg that counts where it is not known which one is right.
    pub prefer: Option<usize>,
    /// What is compared and mended at once, bytes, a power of two up to 4096: the largest block of the drives. A smaller
    /// one says more: of three legs, two may rot in one another's neighbourhood.
    pub block_bytes: u32,
}

impl Default for Scrub {
    /// A new one that only reports, on any drives.
    fn default() -> Self {
        Self { number: 0, from: 0, repair: false, prefer: None, block_bytes: 4096 }
    }
}

/// What is known of the time that a leg's reads take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Verdict {
    /// About as long as those of the other legs, or it was never found otherwise.
    #[default]
    Well,
    /// Far longer, by the reads of the last seconds.
    Slow,
    /// It was slow, and too little was read since to say whether it is.
    Stale,
}

/// What the head and the Steward must know. `leg` is an index into `Membership::legs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Note {
    /// The leg gets nothing more from this instance. The Steward answers to all instances with a
    /// membership in which it is Missing (then `on_recorded`), or in which it is the only one in sync.
    LegFailed {
        /// Which.
        leg: usize,
        /// The membership in which it failed.
        epoch: u64,
        /// Why.
        error: DriveError,
    },
    /// The same for a leg that did nothing wrong: it is being rebuilt, and may hold what the last leg in sync has not
    /// got. It may come back, and is then copied anew there.
    LegAhead {
        /// Which.
        leg: usize,
        /// The membership in which it was given up.
        epoch: u64,
        /// The last leg in sync.
        last: usize,
        /// What that one did; None: this instance had lost it, and the Steward keeps it.
        error: Option<DriveError>,
    },
    /// Every dirty region of this instance's lanes is on this leg, durably.
    Synced {
        /// Which.
        leg: usize,
        /// The membership in which it was copied.
        epoch: u64,
    },
    /// This instance's lanes are the same on every leg in sync. When all instances have said so, the
    /// Steward calls `on_clean` on all.
    CrashClean {
        /// The membership in force.
        epoch: u64,
    },
    /// The end of `mark_all_dirty`: durable on every leg in sync.
    AllDirty {
        /// From the last such call.
        number: u32,
    },
    /// Blocks that this leg could not read were written again from another.
    Healed {
        /// First byte in the data space.
        at: u64,
        /// Bytes.
        len: u64,
        /// Which.
        leg: usize,
    },
    /// The leg's reads take far longer than the others', or that is no longer so. It stays in use.
    Judged {
        /// Which.
        leg: usize,
        /// What its latest reads say, held against those of the other legs.
        verdict: Verdict,
        /// The membership in force.
        epoch: u64,
    },
    /// A scrub found legs that differ, in whole blocks of `Scrub::block_bytes`.
    Mismatch {
        /// First byte in the data space.
        at: u64,
        /// Bytes.
        len: u64,
        /// Legs that hold something else than `source`, one bit each.
        bad: u8,
        /// The leg that counts as right.
        source: usize,
        /// It is known to be: more than half of the legs say the same.
        known: bool,
        /// The others are written again from there.
        repair: bool,
    },
    /// A scrub could not compare these blocks, twice: a leg cannot read them, or gave no answer.
    Unreadable {
        /// First byte in the data space.
        at: u64,
        /// Bytes.
        len: u64,
    },
    /// The scrub of this instance's regions is over.
    Scrubbed {
        /// From the order.
        number: u32,
    },
    /// The end of `Array::on_returned`: durable on every leg in sync.
    Returned {
        /// From that call.
        marks: u32,
    },
    /// This instance has no uncleared piece.
    AllCleared {
        /// The last call of `Array::on_returned`; 0 before the first.
        marks: u32,
    },
    /// No leg could read these blocks.
    MediumLost {
        /// First byte in the data space.
        at: u64,
        /// Bytes.
        len: u64,
    },
    /// This leg could not read these blocks, and another shard owns them: to be handed to
    /// `Array::on_heal` of the owner. Never leaves the head, and so comes last, as serde numbers variants.
    #[serde(skip)]
    Heal {
        /// First byte in the data space.
        at: u64,
        /// Bytes.
        len: u64,
        /// Which.
        leg: usize,
    },
}

/// A drive operation that is in the kernel, as an instance remembers it. Who serves the instance keeps no second
/// table of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpView {
    /// On which drive.
    pub drive: DriveId,
    /// What it does there.
    pub kind: DriveOpKind,
    /// Bytes.
    pub len: u64,
    /// Its memory.
    pub data: Slice,
    /// When it was asked for.
    pub since: Instant,
    /// `ArrayIo::hold` was called for it.
    pub held: bool,
    /// It was reported as `TimedOut`.
    pub given_up: bool,
}

/// What an instance can do. Implemented by the head, and by tests.
pub trait ArrayIo {
    /// Starts a drive operation. Its token is the instance's tag; the end comes by `on_drive_done`,
    /// never at once.
    fn drive(&mut self, op: DriveOp);
    /// A command is over. May be called from within `on_command`.
    fn done(&mut self, ticket: Ticket, status: Status);
    /// The read `ticket` finds nothing but zeroes; its `data` are filled with them. `done` follows.
    fn zeroes(&mut self, ticket: Ticket, data: Slice);
    /// Something that the Steward must know.
    fn note(&mut self, note: Note);
    /// The bytes of a part of the instance's own scratch.
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8];
    /// Whether two parts of the instance's own scratch, of the same length, hold the same.
    fn same(&mut self, a: Slice, b: Slice) -> bool;
    /// Another buffer of the same length for a read whose first one is still in the kernel: the
    /// command will be answered from the new one. None if there is none now.
    fn replace_buffer(&mut self, ticket: Ticket, old: Slice) -> Option<Slice> {
        let _ = (ticket, old);
        None
    }
    /// A second buffer for a read that is late, of the length of `old`: it is read from another leg
    /// too. None if there is none to spare. `answer_from_hedge` or `drop_hedge` follows, in one turn or
    /// later; there is at most one for a command at a time.
    fn hedge_buffer(&mut self, ticket: Ticket, old: Slice) -> Option<Slice> {
        let _ = (ticket, old);
        None
    }
    /// The command will be answered from `hedge` instead of `old`; whether that can be. If `read`, the data
    /// are there, and then it always can.
    fn answer_from_hedge(&mut self, ticket: Ticket, old: Slice, hedge: Slice, read: bool) -> bool {
        let _ = (ticket, old, hedge, read);
        unreachable!("there is no hedge without a buffer")
    }
    /// The hedge is not needed for an answer.
    fn drop_hedge(&mut self, ticket: Ticket, hedge: Slice) {
        let _ = (ticket, hedge);
    }
    /// The operation `tag` goes on although its command may be answered before it ends: its memory stays
    /// taken until the drive lets go of it (`OpView::held`).
    fn hold(&mut self, tag: u32, data: Slice) {
        let _ = (tag, data);
    }
}

/// How far work in the background is, and what the bitmap costs. Sums of this instance's lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Resync of rebuilding legs: bytes done and in all; equal when nothing is left to do.
    pub resync_done: u64,
    /// See `resync_done`.
    pub resync_total: u64,
    /// Bytes not yet known to be the same on every leg after a crash, or since the array was made.
    pub crash_left: u64,
    /// How many there were of them at first.
    pub crash_total: u64,
    /// Bytes of uncleared pieces.
    pub uncleared: u64,
    /// Regions marked dirty.
    pub dirty_regions: u32,
    /// Regions of this instance's lanes.
    pub regions: u32,
    /// Writes of hosts that found their region's bit durable.
    pub warm_writes: u64,
    /// Writes of hosts that had to wait for their region's bit.
    pub cold_writes: u64,
    /// Blocks of the bitmap written to set bits or for a new leg (counted once for all legs).
    pub bitmap_sets: u64,
    /// Blocks of the bitmap written only to clear bits.
    pub bitmap_clears: u64,
    /// Nanoseconds that cold writes waited for the bitmap, summed.
    pub cold_wait_ns: u64,
    /// Blocks of data read again from another leg and healed.
    pub healed: u64,
    /// Scrub: bytes of this instance's regions done and in all, 0 in all when none is under way; and the
    /// byte from which on it goes on: all its regions before are done.
    pub scrub_done: u64,
    /// See `scrub_done`.
    pub scrub_total: u64,
    /// See `scrub_done`.
    pub scrub_from: u64,
    /// Late reads that were sent to another leg too, and those that were answered from there.
    pub hedges_sent: u64,
    /// See `hedges_sent`.
    pub hedges_won: u64,
}
