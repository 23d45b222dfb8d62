//! What an instance has under way: flights (host commands, pieces of a resync, heals), and drive
//! operations.
//!
//! ```text
//! change  AwaitingLock ▶ AwaitingIntent ▶ AwaitingLegs ▶ (AwaitingCache) ▶ (AwaitingRecord) ▶ over
//! copy    AwaitingLock ▶ AwaitingIntent ▶ AwaitingSource ▶ AwaitingLegs ▶ (AwaitingRecord) ▶ over
//! scrub   AwaitingLock ▶ AwaitingScrub ▶ (AwaitingIntent ▶ AwaitingLegs) ▶ over
//! read    (no flight) ▶ over, or if it fails or is late: AwaitingSource ▶ over
//! flush   AwaitingLegs ▶ (AwaitingRecord) ▶ over
//! clear   AwaitingLock ▶ AwaitingIntent ▶ AwaitingLegs ▶ (AwaitingCache) ▶ (AwaitingRecord) ▶ AwaitingMap ▶ over, or the change
//! ```
//!
//! `AwaitingLate`: answered, but an operation that was given up may still land on a leg that is in use,
//! so the range stays locked until it is really over.

use crate::buffers::BufferId;
use crate::door::{Kind, Ticket};
use base::{DriveError, DriveId, DriveOpKind, Instant, Slice, Status};

/// A set of legs, one bit each.
pub(crate) type Legs = u8;

/// The set that holds only `leg`.
pub(crate) fn bit(leg: usize) -> Legs {
    1 << leg
}

/// The members of a set of legs.
pub(crate) fn members(legs: Legs) -> impl Iterator<Item = usize> {
    let mut left = legs & ((1 << crate::geometry::PLACES_MAX) - 1);
    core::iter::from_fn(move || {
        let leg = (left != 0).then_some(left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        leg
    })
}

/// For whom a flight flies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// A host's command.
    Host(Ticket),
    /// A part of the region that the resync is at.
    Piece,
    /// Blocks that `leg` could not read; `rest` bytes follow after these.
    Heal { leg: usize, rest: u64 },
    /// A piece of a scrub.
    Scrub,
    /// Uncleared pieces that the background clears.
    Clear,
    /// A part of a piece that was returned: it is written with zeroes.
    Edge,
}

/// How a flight flies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// From any leg in sync, without order.
    Read,
    /// To every writable leg, in order.
    Change,
    /// From one leg in sync to others, in order.
    Copy,
    /// To every cache.
    Flush,
    /// From every leg in sync, under the lock; then perhaps to some.
    Scrub,
}

/// What a flight waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::enum_variant_names)] // STYLE: phases are named for what they wait for.
pub(crate) enum Phase {
    /// For earlier changes of the same blocks.
    AwaitingLock,
    /// For the region's bit to be durable.
    AwaitingIntent,
    /// For the leg that it reads.
    AwaitingSource,
    /// For all the legs that it compares.
    AwaitingScrub,
    /// For the legs that it changes or flushes.
    AwaitingLegs,
    /// For the flush that makes zeroes durable (there is no FUA for them).
    AwaitingCache,
    /// For the loss of a leg to be on record.
    AwaitingRecord,
    /// For the block of the uncleared map that says that its pieces are cleared.
    AwaitingMap,
    /// Nobody: answered; its range is free when its given-up operations are over.
    AwaitingLate,
}

/// One flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) job: Job,
    pub(crate) plan: Plan,
    pub(crate) kind: Kind,
    pub(crate) phase: Phase,
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) data: Slice,
    pub(crate) fua: bool,
    /// The scratch buffer of a piece or heal, held once by the flight itself.
    pub(crate) buffer: Option<BufferId>,
    /// Operations that it waits for.
    pub(crate) pending: u8,
    /// Given-up operations on legs that stay in use.
    pub(crate) late: u8,
    /// Legs that have it all.
    pub(crate) wrote: Legs,
    /// Legs lost on the way (or before), whose loss is in no membership yet.
    pub(crate) missed: Legs,
    /// It is answered only when this membership is on record.
    pub(crate) needs_epoch: u64,
    /// Reads: legs that failed it, and those that did with a medium error.
    pub(crate) tried: Legs,
    pub(crate) medium: Legs,
    /// The leg being read, or read last.
    pub(crate) source: usize,
    /// A leg that may not be lost refused it.
    pub(crate) refused: Option<DriveError>,
    /// A leg could not be read, as it is reserved by another.
    pub(crate) fenced: bool,
    /// Changes: that leg, and whatever leg did so before it.
    pub(crate) refusers: Legs,
    /// It holds its range, or waits for it.
    pub(crate) locked: bool,
    /// It clears its pieces, before what else it does; and does so by its own data.
    pub(crate) clears: bool,
    pub(crate) whole: bool,
    /// Its host took it back meanwhile.
    pub(crate) aborted: bool,
    /// Reads: they are answered with zeroes, whatever lies there.
    pub(crate) zeroes: bool,
    /// The region, by its number in `Intent`, among whose changes it counts.
    pub(crate) entered: Option<u32>,
    /// Reads: the operation at `source`, and a second one at another leg, into a buffer of its own.
    pub(crate) first: u32,
    pub(crate) hedge: u32,
    pub(crate) hedge_data: Slice,
    /// It is in the list of reads that may become late.
    pub(crate) watched: bool,
    /// Next in the list of those who wait for the same bitmap block, or of reads that are watched.
    pub(crate) next: u32,
    pub(crate) previous: u32,
    /// Hosts' changes: when it came.
    pub(crate) came: Instant,
    /// When it began to wait for the bitmap, or for the leg that it reads.
    pub(crate) since: Instant,
}

impl Flight {
    /// `leg` was lost here and stays in use, and this flight is not on it: it is refused, once the membership of `epoch` is on
    /// record.
    #[cold]
    pub(crate) fn lacks_kept(&mut self, leg: usize, epoch: u64) {
        self.refused.get_or_insert(DriveError::TimedOut);
        self.refusers |= bit(leg);
        self.needs_epoch = self.needs_epoch.max(epoch);
    }
    pub(crate) fn new(job: Job, plan: Plan, kind: Kind, at: u64, len: u64) -> Self {
        Self {
            job,
            plan,
            kind,
            phase: Phase::AwaitingLock,
            at,
            len,
            data: Slice::default(),
            fua: false,
            buffer: None,
            pending: 0,
            late: 0,
            wrote: 0,
            missed: 0,
            needs_epoch: 0,
            tried: 0,
            medium: 0,
            source: 0,
            refused: None,
            fenced: false,
            refusers: 0,
            locked: false,
            clears: false,
            whole: false,
            aborted: false,
            zeroes: false,
            entered: None,
            first: NONE,
            hedge: NONE,
            hedge_data: Slice::default(),
            watched: false,
            next: NONE,
            previous: NONE,
            came: Instant(0),
            since: Instant(0),
        }
    }
}

/// No flight.
pub(crate) const NONE: u32 = u32::MAX;

/// Whose a drive operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A host's read: most need no flight. They get one when they fail or are late.
    Read(Ticket),
    /// A flight's.
    Flight(u32),
    /// A bitmap block's.
    Block(u32),
    /// A block's of the uncleared map.
    Map(u32),
    /// The flush before bits are cleared.
    Clear,
    /// The flush after a resync.
    Sync,
    /// A read that was answered by its hedge, or the other way round: it counts for its leg only.
    Loser,
    /// Nobody's any more: given up, on a leg that is out of use, or a read.
    Nobody,
}

/// A drive operation; its index is the tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveTag {
    pub(crate) owner: Owner,
    pub(crate) leg: usize,
    pub(crate) buffer: Option<BufferId>,
    pub(crate) drive: DriveId,
    pub(crate) kind: DriveOpKind,
    /// When it began.
    pub(crate) since: Instant,
    /// Hosts' reads: where in the data space.
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) data: Slice,
    /// Its memory is held for it: its command may be over before it.
    pub(crate) held: bool,
    /// It is in the list of young reads (`hedge`), after one and before another.
    pub(crate) watched: bool,
    pub(crate) previous: u32,
    pub(crate) next: u32,
    /// It holds a share of the pool for hedges.
    pub(crate) share: bool,
    /// Given up at the deadline; the tag stays taken until the drive lets go of it.
    pub(crate) given_up: bool,
}

impl DriveTag {
    /// An operation that begins now, in no list and with nothing of its own.
    #[inline]
    #[allow(clippy::too_many_arguments)] // each is what it does
    pub(crate) fn new(
        since: Instant,
        owner: Owner,
        leg: usize,
        drive: DriveId,
        kind: DriveOpKind,
        at: u64,
        len: u64,
        data: Slice,
        buffer: Option<BufferId>,
    ) -> Self {
        Self {
            owner,
            leg,
            buffer,
            drive,
            kind,
            since,
            at,
            len,
            data,
            held: false,
            watched: false,
            previous: NONE,
            next: NONE,
            share: false,
            given_up: false,
        }
    }
}

/// A list of flights, linked through `Flight::next`, or of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NONE, tail: NONE };
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

/// The status that a host gets when the last good leg refuses, on drives that two heads share or not.
pub(crate) fn status_of(error: DriveError, shared: bool) -> Status {
    match error {
        DriveError::Medium | DriveError::Cut | DriveError::Other(_) => Status::Medium,
        DriveError::NoSpace => Status::NoSpace,
        // A reservation says nothing of the blocks. That of the other head is reported to no host: hosts would wait here, although they reach the blocks through the other head.
        DriveError::Fenced if shared => Status::Withheld,
        DriveError::Gone | DriveError::TimedOut | DriveError::Fenced => Status::NotReady,
    }
}
