//! The write-intent bitmap: a region's bit is durable before its first change, and is cleared lazily.
//!
//! Three sets of this instance's own regions hold the state:
//! - `wanted`: the bit is set in the next block that is written;
//! - `durable`: the bit is known to be set on every leg in sync (a subset of `wanted`);
//! - the image of each block under way: what that write will have made durable.
//!
//! ```text
//! block   quiet ▶ (a bit is wanted, a leg joined, bits may go) ▶ writing ▶ again, if wanted meanwhile
//! clear   quiet ▶ candidates chosen ▶ caches flushed ▶ taken out of wanted and durable ▶ blocks written
//! ```
//!
//! A change waits for the write of its block that holds its bit: the one that starts now, or, when one
//! is under way, the next one, together with all changes that arrive meanwhile. A bit is a candidate for
//! clearing when its region had no change for a while and has none under way, no leg is missing, and no
//! leg lacks the region. The caches are flushed after that was seen, so every leg has the region
//! durably. A change that comes meanwhile takes its region off the candidates; one that comes after
//! finds the bit not durable, and sets it again behind the write that clears it.
//!
//! Own regions are numbered by lane and place in the lane: `local`.

pub(crate) mod state;

use crate::array::Array;
use crate::bitmap::{Bitmap, encode_block};
use crate::buffers::BufferId;
use crate::door::{ArrayIo, LegState, Note, Progress};
use crate::flight::{Flight, List, NONE, Owner, Phase, Plan, bit, members, status_of};
use crate::geometry::BITMAP_BLOCK_BYTES;
use crate::writing::Writing;
use base::{Bug, DriveError, DriveOpKind, Duration, Instant, Slice, Status, planted};
use state::{Block, Clearing, TICK_SHIFT};

/// A region without changes for so long may have its bit cleared.
pub(crate) const CLEAR_AFTER: Duration = Duration::from_secs(5);
/// How often it is looked whether bits may be cleared, and failed work is tried again.
const CLEAR_INTERVAL: Duration = Duration::from_secs(1);

impl Array {
    /// The flight holds its range: is the bit of its region durable?
    pub(crate) fn enter_intent(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let Flight { plan, phase, .. } = self.flights[id];
        if plan == Plan::Scrub && phase == Phase::AwaitingLock {
            self.scrub_read(now, id, io);
            return;
        }
        if !self.geometry.redundant() {
            // No bitmap: it waited for uncleared pieces alone.
            return self.start_legs(now, id, io);
        }
        let local = self.intent.local(self.geometry.region(self.flights[id].at));
        let intent = &mut self.intent;
        intent.changes[local as usize] += 1;
        if intent.clearing != Clearing::Quiet {
            intent.candidates.clear(local);
        }
        self.flights[id].entered = Some(local);
        self.await_bit(now, id, io);
    }
    /// Goes on once the bit of the flight's region is durable on every leg in sync.
    pub(crate) fn await_bit(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let flight = &mut self.flights[id];
        let local = flight.entered.expect("it counts among the changes of its region");
        flight.phase = Phase::AwaitingIntent;
        let host = flight.plan == Plan::Change;
        let durable = self.intent.durable.get(local);
        let early = !durable && host && planted(Bug::DataBeforeBit);
        if durable || early {
            self.counters.warm_writes += u64::from(host);
            self.start_legs(now, id, io);
            if early && !self.intent.wanted.get(local) {
                self.intent.want(local);
                let block = self.intent.block_of(local);
                let state = &mut self.intent.blocks[block as usize];
                state.stale = true;
                state.sets = true;
                self.kick_block(now, block, io);
            }
            return;
        }
        self.counters.cold_writes += u64::from(host);
        self.flights[id].since = now;
        self.intent.want(local);
        let block = self.intent.block_of(local);
        let hung = self.intent.blocks[block as usize].writing.is_some_and(|w| w.late > 0);
        if hung || self.in_sync() == 0 {
            self.over(now, id, Status::NotReady, io);
            return;
        }
        self.push_next(block, id);
        let state = &mut self.intent.blocks[block as usize];
        state.stale = true;
        state.sets = true;
        self.kick_block(now, block, io);
    }
    fn push_next(&mut self, block: u32, id: u32) {
        let list = &mut self.intent.blocks[block as usize].next;
        if list.is_empty() {
            list.head = id;
        } else {
            self.flights[list.tail].next = id;
        }
        list.tail = id;
    }
    /// Takes a flight that waits for its bit out of the line.
    pub(crate) fn leave_block(&mut self, id: u32) {
        let block = self.intent.block_of(self.intent.local(self.geometry.region(self.flights[id].at)));
        let block = &mut self.intent.blocks[block as usize];
        for list in [&mut block.current, &mut block.next] {
            let (mut previous, mut at) = (NONE, list.head);
            while at != NONE && at != id {
                previous = at;
                at = self.flights[at].next;
            }
            if at == NONE {
                continue;
            }
            let next = self.flights[id].next;
            if previous == NONE {
                list.head = next;
            } else {
                self.flights[previous].next = next;
            }
            if list.tail == id {
                list.tail = previous;
            }
            self.flights[id].next = NONE;
            return;
        }
        unreachable!("a flight that waits for its bit is in a line");
    }
    fn take_list(&mut self, list: List, then: impl Fn(&mut Self, u32)) {
        let mut at = list.head;
        while at != NONE {
            let next = core::mem::replace(&mut self.flights[at].next, NONE);
            then(self, at);
            at = next;
        }
    }

    /// Starts every block that must be written and can be.
    pub(crate) fn kick_blocks(&mut self, now: Instant, io: &mut impl ArrayIo) {
        for block in 0..self.intent.blocks.len() as u32 {
            self.kick_block(now, block, io);
        }
        self.kick_map(now, io);
    }
    fn kick_block(&mut self, now: Instant, nth: u32, io: &mut impl ArrayIo) {
        let state = &self.intent.blocks[nth as usize];
        if !state.stale || state.writing.is_some() {
            return;
        }
        if self.in_sync() == 0 {
            self.fail_waiters(now, nth, Status::NotReady, io);
            return;
        }
        let Some(buffer) = self.buffers.block() else { return };
        self.write_block(now, nth, buffer, io);
    }
    fn write_block(&mut self, now: Instant, nth: u32, buffer: BufferId, io: &mut impl ArrayIo) {
        let targets = self.writable();
        let place = self.buffers.slice(buffer);
        let intent = &mut self.intent;
        let wanted = &intent.wanted;
        let block = &mut intent.blocks[nth as usize];
        assert!(block.current.is_empty(), "a block is written by one write at a time");
        for i in 0..block.len {
            if wanted.get(block.from + i) {
                block.image.set(i)
            } else {
                block.image.clear(i)
            };
        }
        block.generation += 1;
        block.stale = false;
        block.current = core::mem::replace(&mut block.next, List::EMPTY);
        block.writing = Some(Writing::begun(targets, block.marking));
        let counter =
            if block.sets { &mut self.counters.bitmap_sets } else { &mut self.counters.bitmap_clears };
        *counter += 1;
        block.sets = false;
        let (index, generation, image) = (block.index, block.generation, &block.image);
        let is_set = |i| image.get(i);
        encode_block(&self.geometry, self.uuid, index, generation, is_set, io.bytes_mut(place));
        let at = self.geometry.bitmap_at + u64::from(index) * u64::from(BITMAP_BLOCK_BYTES);
        let len = u64::from(BITMAP_BLOCK_BYTES);
        for leg in members(targets) {
            let kind = DriveOpKind::Write;
            self.submit(now, Owner::Block(nth), leg, kind, at, len, place, true, Some(buffer), io);
        }
        self.buffers.release(buffer);
    }

    /// A write of a bitmap block ended on one leg; whether it is still waited for.
    pub(crate) fn block_done(
        &mut self,
        now: Instant,
        nth: u32,
        leg: usize,
        result: Result<(), DriveError>,
        io: &mut impl ArrayIo,
    ) -> bool {
        let refused = result.is_err_and(|error| !self.lose(leg, error, io));
        let writing = self.intent.blocks[nth as usize].writing.as_mut().expect("a block under way");
        let keeps = writing.ended(leg, result, refused);
        if writing.pending == 0 {
            self.block_over(now, nth, io);
        }
        keeps
    }
    fn block_over(&mut self, now: Instant, nth: u32, io: &mut impl ArrayIo) {
        let in_sync = self.in_sync();
        let intent = &mut self.intent;
        let block = &mut intent.blocks[nth as usize];
        let writing = block.writing.expect("a block under way");
        if let Some(error) = writing.refused {
            // Old, new or torn on the last leg: bits that both images have still count.
            for i in 0..block.len {
                if !block.image.get(i) {
                    intent.durable.clear(block.from + i);
                }
            }
            block.stale = true;
            block.sets = true;
            if writing.late == 0 {
                block.writing = None;
            }
            self.fail_waiters(now, nth, status_of(error, self.shared), io);
            return;
        }
        block.writing = None;
        block.holds |= writing.took;
        if in_sync & !writing.took != 0 && !planted(Bug::BitMissingOnLeg) || in_sync == 0 {
            // A leg in sync was not among those written to: once more, before anybody relies on it.
            block.stale = true;
            block.sets = true;
            let current = core::mem::replace(&mut block.current, List::EMPTY);
            let behind = core::mem::replace(&mut block.next, List::EMPTY);
            self.take_list(current, |array, id| array.push_next(nth, id));
            self.take_list(behind, |array, id| array.push_next(nth, id));
            self.kick_block(now, nth, io);
            return;
        }
        for i in 0..block.len {
            let local = block.from + i;
            if block.image.get(i) && intent.wanted.get(local) {
                intent.durable.set(local);
            } else {
                intent.durable.clear(local);
            }
        }
        if writing.marks {
            block.marking = false;
        }
        let current = core::mem::replace(&mut block.current, List::EMPTY);
        let mut at = current.head;
        while at != NONE {
            let next = core::mem::replace(&mut self.flights[at].next, NONE);
            if self.flights[at].plan == Plan::Change {
                self.counters.cold_wait_ns += now.since(self.flights[at].since).as_nanos() as u64;
            }
            let local = self.intent.local(self.geometry.region(self.flights[at].at));
            assert!(self.intent.durable.get(local), "a change would start before its bit is durable");
            self.start_legs(now, at, io);
            at = next;
        }
        self.marks_done(io);
        self.resync.poke = true;
        self.kick_blocks(now, io);
    }
    /// A given-up write of a block is really over.
    pub(crate) fn block_late(&mut self, _now: Instant, nth: u32) {
        let block = &mut self.intent.blocks[nth as usize];
        let writing = block.writing.as_mut().expect("a block that waits for a late write");
        writing.late -= 1;
        if writing.late == 0 && writing.pending == 0 {
            block.writing = None;
        }
    }
    fn fail_waiters(&mut self, now: Instant, nth: u32, status: Status, io: &mut impl ArrayIo) {
        let block = &mut self.intent.blocks[nth as usize];
        let lists = [
            core::mem::replace(&mut block.current, List::EMPTY),
            core::mem::replace(&mut block.next, List::EMPTY),
        ];
        self.end_lists(now, lists, status, io);
    }
    /// Ends every flight in these lists.
    pub(crate) fn end_lists(
        &mut self,
        now: Instant,
        lists: [List; 2],
        status: Status,
        io: &mut impl ArrayIo,
    ) {
        for list in lists {
            let mut id = list.head;
            while id != NONE {
                let next = core::mem::replace(&mut self.flights[id].next, NONE);
                self.over(now, id, status, io);
                id = next;
            }
        }
    }

    /// A leg is used for writing that was not before: it gets every block, and no bit counts as durable
    /// on legs in sync that it is not on.
    pub(crate) fn rewrite_blocks(&mut self, leg: usize, forget_durable: bool) {
        for block in &mut self.intent.blocks {
            block.holds &= !bit(leg);
            block.stale = true;
            block.sets = true;
        }
        if forget_durable {
            self.intent.durable.clear_all();
        }
    }

    /// Marks every own region, durably, before a leg that lacks everything becomes a member, or after somebody overwrote what
    /// a leg has of the bitmap: `Note::AllDirty` says when, with this number. Every block of the uncleared map is written
    /// again, too. Bits are not cleared until a leg joins, or `unmark`.
    pub fn mark_all_dirty(&mut self, now: Instant, number: u32, io: &mut impl ArrayIo) {
        self.spoil_clearing();
        for local in 0..self.intent.locals() {
            if self.intent.region(local) < self.geometry.regions() {
                self.intent.want(local);
            }
        }
        self.intent.marking = true;
        self.intent.mark = number;
        self.intent.hold_marks = true;
        for block in &mut self.intent.blocks {
            block.marking = true;
            block.stale = true;
            block.sets = true;
            // What is under way may have been begun for an earlier mark that was given up, and lack what was cleared since.
            if let Some(writing) = &mut block.writing {
                writing.marks = false;
            }
        }
        self.rewrite_map(self.in_sync());
        self.marks_done(io);
        self.kick_blocks(now, io);
        self.kick_map(now, io);
        self.drain(now, io);
    }

    /// Adds what the bitmap of a returning leg says, before the membership in which it is rebuilding.
    pub fn add_dirty(&mut self, now: Instant, dirty: &Bitmap, io: &mut impl ArrayIo) {
        assert_eq!(dirty.len(), self.geometry.regions(), "a bitmap has a bit for each region");
        let before = self.intent.dirty;
        for region in dirty.iter() {
            if self.owns(region) {
                let local = self.intent.local(region);
                self.intent.want(local);
            }
        }
        let targets = self.rebuilding();
        if self.intent.dirty > before && targets != 0 {
            self.begin_resync(targets);
        }
        self.drain(now, io);
    }
    /// The leg for which everything was marked does not come.
    pub fn unmark(&mut self) {
        self.intent.hold_marks = false;
    }
    pub(crate) fn leg_joined(&mut self) {
        self.intent.hold_marks = false;
    }
    pub(crate) fn marks_done(&mut self, io: &mut impl ArrayIo) {
        if self.intent.marking && self.intent.blocks.iter().all(|b| !b.marking) && !self.lacks_map() {
            self.intent.marking = false;
            io.note(Note::AllDirty { number: self.intent.mark });
        }
    }

    // ---- clearing ----

    /// Whether any bit may be cleared: every member is present.
    fn may_clear(&self) -> bool {
        let present = |s: &crate::local_leg::LocalLeg| {
            s.leg.is_none_or(|leg| leg.state != LegState::Missing && !s.lost)
        };
        let all = self.legs.iter().all(present);
        !self.intent.hold_marks && self.in_sync() != 0 && (all || planted(Bug::BitClearedDegraded))
    }
    /// Whether this region's bit may be cleared as far as legs are concerned.
    fn everywhere(&self, local: u32) -> bool {
        let unclean = self.unclean.as_ref().is_some_and(|u| u.get(self.intent.region(local)));
        let copied = self.rebuilding() == 0 || self.resync.has_copied(local);
        if unclean {
            copied && planted(Bug::BitClearedUnclean)
        } else {
            copied || planted(Bug::BitClearedRebuilding)
        }
    }
    pub(crate) fn clear_deadline(&self) -> Option<Instant> {
        let stale = self.intent.blocks.iter().any(|b| b.stale && b.writing.is_none()) || self.map_is_stale();
        let clears = self.intent.dirty > 0 && self.intent.clearing == Clearing::Quiet && self.may_clear();
        (stale || clears).then_some(self.intent.next_clear)
    }
    pub(crate) fn can_clear_more(&self) -> bool {
        self.intent.dirty > 0
            && self.may_clear()
            && self.intent.wanted.iter().any(|local| self.everywhere(local))
    }
    pub(crate) fn clear_tick(&mut self, now: Instant, io: &mut impl ArrayIo) {
        let due = self.quiescing || now >= self.intent.next_clear;
        if !due {
            return;
        }
        self.intent.next_clear = now + CLEAR_INTERVAL;
        if self.intent.clearing != Clearing::Quiet || self.intent.dirty == 0 || !self.may_clear() {
            return;
        }
        let age = if self.quiescing { 0 } else { (CLEAR_AFTER.as_nanos() >> TICK_SHIFT) as u32 + 1 };
        let tick = (now.0 >> TICK_SHIFT) as u32;
        self.intent.candidates.clear_all();
        let mut next = self.intent.wanted.next(0);
        while let Some(local) = next {
            let quiet = tick.wrapping_sub(self.intent.touched[local as usize]) >= age;
            if quiet && self.intent.changes[local as usize] == 0 && self.everywhere(local) {
                self.intent.candidates.set(local);
            }
            next = self.intent.wanted.next(local + 1);
        }
        if self.intent.candidates.is_empty() {
            return;
        }
        let caches = self.writable() & self.volatile();
        let caches = if caches != 0 && planted(Bug::BitClearedBeforeFlush) { 0 } else { caches };
        self.intent.clearing = Clearing::Flushing { pending: caches.count_ones() as u8, spoilt: false };
        for leg in members(caches) {
            self.submit(now, Owner::Clear, leg, DriveOpKind::Flush, 0, 0, Slice::default(), false, None, io);
        }
        if caches == 0 {
            self.clear_now(now, io);
        }
    }
    pub(crate) fn clear_flushed(
        &mut self,
        now: Instant,
        leg: usize,
        result: Result<(), DriveError>,
        io: &mut impl ArrayIo,
    ) -> bool {
        if let Err(error) = result {
            self.lose(leg, error, io);
        }
        let Clearing::Flushing { pending, spoilt } = &mut self.intent.clearing else {
            unreachable!("a flush for a clearing that is not");
        };
        *pending -= 1;
        *spoilt |= result.is_err();
        if *pending == 0 {
            self.clear_now(now, io);
        }
        false
    }
    /// The caches are flushed: the candidates that are left lose their bits.
    fn clear_now(&mut self, now: Instant, io: &mut impl ArrayIo) {
        let spoilt = matches!(self.intent.clearing, Clearing::Flushing { spoilt: true, .. });
        self.intent.clearing = Clearing::Quiet;
        if spoilt || !self.may_clear() {
            return;
        }
        let intent = &mut self.intent;
        let mut next = intent.candidates.next(0);
        while let Some(local) = next {
            assert_eq!(intent.changes[local as usize], 0, "a region under change lost its bit");
            if intent.wanted.clear(local) {
                intent.dirty -= 1;
            }
            intent.durable.clear(local);
            let block = intent.block_of(local);
            intent.blocks[block as usize].stale = true;
            next = intent.candidates.next(local + 1);
        }
        self.kick_blocks(now, io);
    }
    /// Something happened to the legs: a clearing under way is void.
    pub(crate) fn spoil_clearing(&mut self) {
        if let Clearing::Flushing { spoilt, .. } = &mut self.intent.clearing {
            *spoilt = true;
        }
    }

    pub(crate) fn intent_idle(&self) -> bool {
        let quiet = |b: &Block| b.writing.is_none_or(|w| w.pending == 0) && !b.stale;
        self.intent.clearing == Clearing::Quiet
            && (self.in_sync() == 0 || self.intent.blocks.iter().all(quiet))
    }
    pub(crate) fn count_intent(&self, progress: &mut Progress) {
        progress.dirty_regions = self.intent.dirty;
        let regions = (0..self.intent.locals()).filter(|l| self.intent.region(*l) < self.geometry.regions());
        progress.regions = regions.count() as u32;
    }
    pub(crate) fn check_intent(&self) {
        let intent = &self.intent;
        assert_eq!(intent.dirty, intent.wanted.count(), "dirty regions are counted");
        for local in intent.durable.iter() {
            assert!(intent.wanted.get(local), "a durable bit is wanted");
        }
        if self.geometry.redundant() {
            for (id, flight) in self.flights.iter() {
                let changes = matches!(flight.plan, Plan::Change | Plan::Copy);
                if changes
                    && flight.locked
                    && matches!(flight.phase, Phase::AwaitingSource | Phase::AwaitingLegs)
                {
                    let local = intent.local(self.geometry.region(flight.at));
                    assert!(intent.wanted.get(local), "flight {id} changes a region without its bit");
                }
            }
        }
    }
}
