//! Uncleared pieces: they still hold data of another volume, or of a former use of the drive. They read as zeroes.
//!
//! ```text
//! uncleared ▶ first write, or the background: zeroes to all legs ▶ caches flushed ▶ losses on record
//!           ▶ block of the map without the bit, durable on all legs ▶ cleared ▶ the write itself
//! cleared   ▶ space is returned (`on_returned`): block with the bit, durable ▶ uncleared
//! ```
//!
//! Only the owner of a region knows its pieces, also in arrays without redundancy. Other instances know which regions
//! may have some, and send commands for them to the owner (`Array::read_is_local`, `Array::owner`), which reports when a
//! region has none left (`on_region_cleared`). A piece is cleared under the lock of the whole piece, so the first
//! write to it and other commands there take turns. Only space without a volume is marked.
//!
//! A block of the map is written by one write at a time, to every leg that is written. Where legs in sync differ after a
//! crash, *uncleared* counts: a write is answered only when every leg that is in sync on record has the block.

pub(crate) mod map;
pub(crate) mod state;

pub use map::{Mend, Merged, UNCLEARED_AREA_BYTES, UNCLEARED_MAGIC, UnclearedMap};

use crate::array::Array;
use crate::bitmap::Bitmap;
use crate::buffers::BufferId;
use crate::door::{ArrayIo, Kind, Note, Progress};
use crate::flight::{Flight, Job, Legs, List, NONE, Owner, Phase, Plan, members, status_of};
use crate::geometry::{BITMAP_BLOCK_BYTES, BITS_PER_BLOCK};
use crate::writing::Writing;
use base::{Bug, DriveError, DriveOpKind, Duration, Instant, Status, planted, planted_if};
use map::Pieces;
use state::{Block, CLEARS_MAX, Meeting, Touch};

/// Bytes that the background clears at once, unless a piece is larger.
const CLEAR_BYTES: u64 = 4 << 20;
/// What could not be cleared is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Array {
    /// Whether this shard owns the pieces of this region, also in an array without redundancy.
    pub(crate) fn owns_pieces(&self, region: u32) -> bool {
        self.piece_owner(region) == self.shard
    }
    fn piece_owner(&self, region: u32) -> u16 {
        self.lanes.of_region(region)
    }
    /// The shard that executes changes here because of uncleared pieces; None: any shard.
    #[inline]
    pub(crate) fn uncleared_owner(&self, at: u64) -> Option<u16> {
        let region = self.geometry.region(at);
        self.uncleared.may_have(region).then(|| self.piece_owner(region))
    }
    /// Whether reads here may be answered by this instance as far as uncleared pieces are concerned.
    pub(crate) fn uncleared_is_local(&self, first: u32, last: u32) -> bool {
        (first..=last).all(|region| !self.uncleared.may_have(region) || self.owns_pieces(region))
    }
    /// How many of `len` bytes from `at` on one command may have: where pieces may be uncleared it stays in one of them.
    #[inline]
    pub fn cut(&self, at: u64, len: u64) -> u64 {
        if !self.uncleared.any() {
            return len;
        }
        let len = len.min(self.geometry.region_end(at) - at);
        if !self.uncleared.may_have(self.geometry.region(at)) {
            return len;
        }
        let (_, end) = self.uncleared.pieces.range(self.uncleared.pieces.piece(at));
        len.min(end - at)
    }
    /// The mark of `on_returned` that this instance knows, if the region of `at`, one of its own, has no uncleared piece: then
    /// the shard that asked need not come here because of them.
    pub fn cleared_region(&self, at: u64) -> Option<(u32, u32)> {
        let region = self.geometry.region(at);
        let clear = self.owns_pieces(region) && !self.uncleared.may_have(region);
        clear.then_some((region, self.uncleared.marks))
    }
    /// Its owner says so.
    pub fn on_region_cleared(&mut self, region: u32, marks: u32) {
        if self.owns_pieces(region) {
            return;
        }
        let stale = marks != self.uncleared.marks;
        if !stale || planted_if(Bug::ClearedIsOldNews, || self.uncleared.may_have(region)) {
            self.uncleared.forget(region);
        }
    }
    /// The Steward says that no instance has uncleared pieces since this mark.
    pub fn on_all_cleared(&mut self, marks: u32) {
        if marks == self.uncleared.marks && self.uncleared.left == 0 {
            self.uncleared.regions = Bitmap::default();
        }
    }

    /// A command where pieces may be uncleared: what is answered at once, and what remains to be done. `Write` comes back
    /// with `true` if its piece must be cleared first.
    pub(crate) fn meet_uncleared(&self, kind: Kind, at: u64, len: u64) -> Meeting {
        let region = self.geometry.region(at);
        if !self.uncleared.may_have(region) {
            return Meeting::Nothing;
        }
        if !self.owns_pieces(region) {
            // An array without redundancy cuts no command where it has no reason to.
            assert!(
                kind == Kind::Flush,
                "a command for uncleared pieces came to a shard that does not own them"
            );
        }
        let touch = self.uncleared.touch(at, len);
        match (kind, touch) {
            (_, Touch::None) => Meeting::Nothing,
            (Kind::WriteZeroes | Kind::Deallocate | Kind::Read, Touch::All) => Meeting::Zeroes,
            (Kind::WriteZeroes | Kind::Deallocate, Touch::Some) => Meeting::Nothing,
            (Kind::Write, Touch::All) => Meeting::ClearFirst,
            (Kind::Read | Kind::Write, Touch::Some) => {
                unreachable!("a command reaches beyond its piece where some are uncleared")
            }
            (Kind::Flush, _) => unreachable!("a flush has no range"),
        }
    }
    /// The range that a change locks: whole pieces, if it clears one.
    pub(crate) fn piece_range(&self, at: u64) -> (u64, u64) {
        let (from, end) = self.uncleared.pieces.range(self.uncleared.pieces.piece(at));
        (from, end - from)
    }
    /// Whether no byte here may be read as it lies there.
    pub(crate) fn is_uncleared(&self, at: u64, len: u64) -> bool {
        self.uncleared.touch(at, len) == Touch::All
    }
    /// How many bytes from `at` on, at most `len` and in one region, are uncleared without a gap.
    pub(crate) fn uncleared_run(&self, at: u64, len: u64) -> u64 {
        let end = at + len;
        let mut to = at;
        while to < end && self.is_uncleared(to, 1) {
            to = self.uncleared.pieces.range(self.uncleared.pieces.piece(to)).1.min(end);
        }
        to - at
    }
    /// How many bytes from `at` on, at most `len` and in one region, are of one kind: uncleared or not.
    pub(crate) fn same_kind(&self, at: u64, len: u64) -> u64 {
        if !self.uncleared.may_have(self.geometry.region(at)) {
            return len;
        }
        let end = at + len;
        let (kind, mut to) = (self.is_uncleared(at, 1), at);
        while to < end && self.is_uncleared(to, 1) == kind {
            to = self.uncleared.pieces.range(self.uncleared.pieces.piece(to)).1.min(end);
        }
        to - at
    }

    // ---- clearing ----

    /// The flight holds its piece (or pieces), and the bit of the region is durable: zeroes to all legs. False: there is nothing
    /// to clear any more.
    pub(crate) fn start_clear(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) -> bool {
        let Flight { job, at, len, .. } = self.flights[id];
        if !self.is_uncleared(at, len) {
            self.flights[id].clears = false;
            return false;
        }
        let (from, bytes) = match job {
            Job::Host(_) => self.piece_range(at),
            Job::Clear | Job::Edge | Job::Piece | Job::Heal { .. } | Job::Scrub => (at, len),
        };
        let targets = self.writable();
        // A write of the whole piece needs no zeroes before it.
        let whole = matches!(job, Job::Host(_)) && (from, bytes) == (at, len);
        let kind = if whole { DriveOpKind::Write } else { DriveOpKind::WriteZeroes };
        let part = !whole && (from, bytes) != (at, len);
        let (from, bytes) = if part && planted(Bug::PartOfPieceCleared) { (at, len) } else { (from, bytes) };
        self.flights[id].whole = whole;
        self.fan_out(now, id, kind, (from, bytes), targets, io);
        true
    }
    /// Every leg in use has the zeroes, durably, and the loss of others is on record: now the map.
    pub(crate) fn await_map(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let nth = self.uncleared.block_of(self.uncleared.pieces.piece(self.flights[id].at));
        let block = &mut self.uncleared.blocks[nth as usize];
        if block.writing.is_some_and(|w| w.late > 0) || self.in_sync() == 0 {
            return self.over(now, id, Status::NotReady, io);
        }
        self.flights[id].phase = Phase::AwaitingMap;
        let block = &mut self.uncleared.blocks[nth as usize];
        block.stale = true;
        let list = &mut block.next;
        if list.is_empty() {
            list.head = id;
        } else {
            self.flights[list.tail].next = id;
        }
        list.tail = id;
        self.kick_map_block(now, nth, io);
    }
    /// Starts every block that must be written and can be.
    pub(crate) fn kick_map(&mut self, now: Instant, io: &mut impl ArrayIo) {
        for nth in 0..self.uncleared.blocks.len() as u32 {
            self.kick_map_block(now, nth, io);
        }
    }
    fn kick_map_block(&mut self, now: Instant, nth: u32, io: &mut impl ArrayIo) {
        let block = &self.uncleared.blocks[nth as usize];
        if !block.stale || block.writing.is_some() {
            return;
        }
        if self.in_sync() == 0 {
            return self.fail_map_waiters(now, nth, Status::NotReady, io);
        }
        let Some(buffer) = self.buffers.map() else {
            // Where a drive hangs it may keep them for ever.
            if self.given_up > 0 {
                self.fail_map_waiters(now, nth, Status::NotReady, io);
            }
            return;
        };
        self.write_map_block(now, nth, buffer, io);
    }
    fn write_map_block(&mut self, now: Instant, nth: u32, buffer: BufferId, io: &mut impl ArrayIo) {
        let targets = self.writable();
        let place = self.buffers.slice(buffer);
        let block = &mut self.uncleared.blocks[nth as usize];
        assert!(block.current.is_empty(), "a block is written by one write at a time");
        block.generation += 1;
        block.stale = false;
        block.current = core::mem::replace(&mut block.next, List::EMPTY);
        block.writing = Some(Writing::begun(targets, block.marking));
        let Block { lane, index, from, generation, current, .. } = *block;
        let mut cleared = vec![];
        let mut id = current.head;
        while id != NONE {
            let (first, last) = self.pieces_of(id);
            cleared.push(self.uncleared.local(first)..=self.uncleared.local(last));
            id = self.flights[id].next;
        }
        let uncleared = &self.uncleared;
        let is_set = |bit: u32| {
            let local = from + bit;
            uncleared.left > 0
                && uncleared.own.get(local)
                && !cleared.iter().any(|range| range.contains(&local))
        };
        let out = io.bytes_mut(place);
        map::encode_block(
            &uncleared.pieces,
            (self.uuid, uncleared.life),
            (lane, index),
            generation,
            is_set,
            out,
        );
        let at = Pieces::slot_at(lane, index, generation);
        for leg in members(targets) {
            let at = self.legs[leg].leg.expect("a member").map_at + at;
            let (kind, len) = (DriveOpKind::Write, u64::from(BITMAP_BLOCK_BYTES));
            self.submit(now, Owner::Map(nth), leg, kind, at, len, place, true, Some(buffer), io);
        }
        self.buffers.release(buffer);
    }
    /// The pieces that a flight clears, the first and the last.
    fn pieces_of(&self, id: u32) -> (u32, u32) {
        let Flight { at, len, .. } = self.flights[id];
        (self.uncleared.pieces.piece(at), self.uncleared.pieces.piece(at + len - 1))
    }
    /// A write of a block ended on one leg; whether it is still waited for although it was given up.
    pub(crate) fn map_done(
        &mut self,
        now: Instant,
        nth: u32,
        leg: usize,
        result: Result<(), DriveError>,
        io: &mut impl ArrayIo,
    ) -> bool {
        let refused = result.is_err_and(|error| !self.lose(leg, error, io));
        let writing = self.uncleared.blocks[nth as usize].writing.as_mut().expect("a block under way");
        let keeps = writing.ended(leg, result, refused);
        if writing.pending == 0 {
            self.map_block_over(now, nth, io);
        }
        keeps
    }
    fn map_block_over(&mut self, now: Instant, nth: u32, io: &mut impl ArrayIo) {
        let in_sync = self.in_sync();
        let block = &mut self.uncleared.blocks[nth as usize];
        let writing = block.writing.expect("a block under way");
        if let Some(error) = writing.refused {
            // Old, new or torn on the last leg: what was to be cleared still reads as zeroes here, as it does there.
            block.stale = true;
            if writing.late == 0 {
                block.writing = None;
            }
            return self.fail_map_waiters(now, nth, status_of(error, self.shared), io);
        }
        block.writing = None;
        block.holds |= writing.took;
        self.see_behind();
        let block = &mut self.uncleared.blocks[nth as usize];
        let current = core::mem::replace(&mut block.current, List::EMPTY);
        if in_sync & !writing.took != 0 || in_sync == 0 {
            // A leg in sync was not among those written to: once more, before anybody relies on it.
            block.stale = true;
            let behind = block.next;
            match (current.is_empty(), behind.is_empty()) {
                (true, _) => {}
                (false, true) => block.next = current,
                (false, false) => {
                    self.flights[current.tail].next = behind.head;
                    self.uncleared.blocks[nth as usize].next = List { head: current.head, tail: behind.tail };
                }
            }
            return self.kick_map_block(now, nth, io);
        }
        if writing.marks {
            block.marking = false;
        }
        let mut id = current.head;
        while id != NONE {
            let next = core::mem::replace(&mut self.flights[id].next, NONE);
            self.piece_cleared(now, id, io);
            id = next;
        }
        self.marks_step(io);
        self.marks_done(io);
        self.resync.poke = true;
        self.kick_map(now, io);
    }
    /// What this flight cleared is cleared: it goes on.
    fn piece_cleared(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let (first, last) = self.pieces_of(id);
        (first..=last).for_each(|piece| self.uncleared.clear(piece));
        let Flight { job, whole, aborted, .. } = self.flights[id];
        self.flights[id].clears = false;
        // A leg that was lost since may not have the block: alone, it would show zeroes.
        self.miss_absent(id);
        match job {
            Job::Host(_) if aborted && !planted(Bug::ClearedStarts) => {
                self.over(now, id, Status::Aborted, io)
            }
            Job::Host(_) if !whole => self.start_legs(now, id, io),
            Job::Host(_) | Job::Clear => {
                self.flights[id].phase = Phase::AwaitingRecord;
                self.unlock(now, id);
                self.try_finish(now, id, io);
            }
            Job::Edge | Job::Piece | Job::Heal { .. } | Job::Scrub => unreachable!("they clear no piece"),
        }
    }
    fn fail_map_waiters(&mut self, now: Instant, nth: u32, status: Status, io: &mut impl ArrayIo) {
        let block = &mut self.uncleared.blocks[nth as usize];
        let lists = [
            core::mem::replace(&mut block.current, List::EMPTY),
            core::mem::replace(&mut block.next, List::EMPTY),
        ];
        self.end_lists(now, lists, status, io);
    }
    /// A given-up write of a block is really over.
    pub(crate) fn map_late(&mut self, nth: u32) {
        let block = &mut self.uncleared.blocks[nth as usize];
        let writing = block.writing.as_mut().expect("a block that waits for a late write");
        writing.late -= 1;
        if writing.late == 0 && writing.pending == 0 {
            block.writing = None;
        }
    }

    // ---- space that is returned ----

    /// These ranges of the data space are nobody's any more (nothing of theirs is under way at a drive): nobody may read
    /// what lies there. `marks` grows with each call; `life` is that of the map, from the configuration. Whole pieces are marked, what is left of others is written with
    /// zeroes. `Note::Returned` follows when that is durable on every leg in sync. Every instance gets the call, with the same ranges.
    /// Calls before it need not have come to their end: the note then counts for them, too.
    pub fn on_returned(
        &mut self,
        now: Instant,
        (life, marks): (u64, u32),
        ranges: &[(u64, u64)],
        io: &mut impl ArrayIo,
    ) {
        if self.uncleared.life != life {
            assert_eq!(self.uncleared.left, 0, "a map ends when nothing is uncleared");
            self.uncleared.life = life;
            // Legs that joined meanwhile have what was written since; what is not written says that all is clear.
            self.uncleared.blocks.iter_mut().for_each(|block| block.holds = !0);
        }
        self.uncleared.marks = marks;
        self.uncleared.marking = true;
        self.uncleared.reported = None;
        for (at, len) in ranges {
            let (mut from, end) = (*at, at + len);
            assert!(end <= self.geometry.data_bytes, "space beyond the end of the array was returned");
            while from < end {
                let to = self.geometry.region_end(from).min(end);
                self.region_returned(from, to);
                from = to;
                if from < end && planted(Bug::FirstRegionMarked) {
                    break;
                }
            }
        }
        self.marks_step(io);
        self.kick_map(now, io);
        self.clear_step(now, io);
        self.drain(now, io);
    }
    fn region_returned(&mut self, from: u64, to: u64) {
        let region = self.geometry.region(from);
        let own = self.owns_pieces(region);
        let pieces = self.uncleared.pieces;
        for piece in pieces.piece(from)..=pieces.piece(to - 1) {
            let (at, end) = pieces.range(piece);
            let (part_at, part_end) = (at.max(from), end.min(to));
            let edge = (part_at, part_end - part_at);
            if (part_at, part_end) == (at, end) {
                if !self.uncleared.any() {
                    self.uncleared.regions = Bitmap::new(self.geometry.regions());
                }
                self.uncleared.regions.set(region);
                if own {
                    self.uncleared.set(piece);
                    let nth = self.uncleared.block_of(piece);
                    let block = &mut self.uncleared.blocks[nth as usize];
                    block.stale = !planted(Bug::MarksNotDurable);
                    block.marking = true;
                    // What is under way may have been begun for an earlier mark, and lacks this one.
                    if let Some(writing) = &mut block.writing {
                        writing.marks = false;
                    }
                }
            } else if own && !self.uncleared.edges.contains(&edge) && !planted(Bug::EdgesNotZeroed) {
                self.uncleared.edges.push_back(edge);
            }
        }
        if planted_if(Bug::MarksNotDurable, || self.uncleared.blocks.iter().any(|b| b.marking)) {
            self.uncleared.blocks.iter_mut().for_each(|b| b.marking = false);
        }
    }
    /// Says so when all marks are durable and all edges zero, and when nothing is uncleared any more.
    fn marks_step(&mut self, io: &mut impl ArrayIo) {
        // A leg whose loss is not on record counts after a crash, and lacks the marks.
        let sure = self.losses_are_on_record();
        let uncleared = &mut self.uncleared;
        let all = || uncleared.blocks.iter().all(|b| !b.marking);
        if uncleared.marking
            && !uncleared.behind
            && uncleared.edges.is_empty()
            && uncleared.works == 0
            && (sure || planted_if(Bug::MarksBeforeRecord, all))
        {
            let mut marking = uncleared.blocks.iter().filter(|b| b.marking);
            let last = marking.next();
            let on_its_way = || last.is_some_and(|b| b.writing.is_some()) && marking.next().is_none();
            uncleared.marking = last.is_some() && !planted_if(Bug::MarkOnItsWay, on_its_way);
            if !uncleared.marking {
                io.note(Note::Returned { marks: uncleared.marks });
            }
        }
        if !uncleared.marking && uncleared.left == 0 && uncleared.reported != Some(uncleared.marks) {
            uncleared.reported = Some(uncleared.marks);
            io.note(Note::AllCleared { marks: uncleared.marks });
        }
    }

    // ---- the background ----

    /// Starts what may be started now.
    pub(crate) fn clear_step(&mut self, now: Instant, io: &mut impl ArrayIo) {
        if self.rests() || !self.started || self.in_sync() == 0 {
            return;
        }
        self.marks_step(io);
        while self.uncleared.works < CLEARS_MAX && now >= self.uncleared.next_at {
            let (job, at, len) = match self.uncleared.edges.pop_front() {
                Some((at, len)) => (Job::Edge, at, len),
                // Marks first: an order waits for their space.
                None if self.uncleared.marking => break,
                None => match self.next_clear_run() {
                    Some((at, len)) => (Job::Clear, at, len),
                    None => break,
                },
            };
            self.uncleared.works += 1;
            if job == Job::Clear {
                let quiet = now.since(self.last_command) >= self.pace.quiet;
                let rate = if quiet { self.pace.ceiling } else { self.pace.floor };
                let wait = (len * 1_000_000_000).checked_div(rate).unwrap_or(0);
                self.uncleared.next_at = self.uncleared.next_at.max(now) + Duration::from_nanos(wait);
            }
            let mut flight = Flight::new(job, Plan::Change, Kind::WriteZeroes, at, len);
            flight.clears = job == Job::Clear;
            // The zeroes must be durable before the space is handed out.
            flight.fua = true;
            let id = self.insert(flight);
            self.queue(id);
            while let Some(id) = self.ready.pop_front() {
                self.enter_intent(now, id, io);
            }
        }
    }
    /// The next own pieces to clear: of one region and one block of the map.
    fn next_clear_run(&mut self) -> Option<(u64, u64)> {
        if self.uncleared.left == 0 {
            return None;
        }
        let uncleared = &mut self.uncleared;
        // Those under way are passed; the round begins anew when they are over.
        let first = uncleared.own.next(uncleared.cursor).or_else(|| {
            let again = (uncleared.works == 0).then(|| uncleared.own.next(0)).flatten();
            if again.is_some() {
                uncleared.cursor = 0;
            }
            again
        })?;
        let in_block = |local: u32| local % uncleared.pieces.per_lane / BITS_PER_BLOCK;
        let most = (CLEAR_BYTES / uncleared.pieces.bytes).max(1) as u32;
        let mut last = first;
        while last + 1 < uncleared.own.len()
            && last + 1 - first < most
            && (last + 1) / uncleared.pieces.per_region == first / uncleared.pieces.per_region
            && in_block(last + 1) == in_block(first)
            && uncleared.own.get(last + 1)
        {
            last += 1;
        }
        uncleared.cursor = last + 1;
        let (at, _) = uncleared.pieces.range(uncleared.of_local(first));
        let (_, end) = uncleared.pieces.range(uncleared.of_local(last));
        Some((at, end - at))
    }
    /// A clearing or an edge is over.
    pub(crate) fn work_over(&mut self, now: Instant, job: Job, at: u64, len: u64, good: bool) {
        self.uncleared.works -= 1;
        if !good {
            self.uncleared.next_at = now + RETRY_AFTER;
            if job == Job::Edge {
                self.uncleared.edges.push_back((at, len));
            }
        }
        self.resync.poke = true;
    }
    /// When the background goes on by itself. While something of it is under way, the end of that is awaited.
    pub(crate) fn uncleared_deadline(&self) -> Option<Instant> {
        let uncleared = &self.uncleared;
        let unreported = uncleared.left > 0 || uncleared.reported != Some(uncleared.marks);
        let due = !uncleared.edges.is_empty() || !uncleared.marking && unreported;
        let can = !self.rests() && self.in_sync() != 0 && uncleared.works == 0;
        (due && can).then_some(uncleared.next_at)
    }
    /// Whether a block of the map waits to be written.
    pub(crate) fn map_is_stale(&self) -> bool {
        self.uncleared.blocks.iter().any(|b| b.stale && b.writing.is_none())
    }
    pub(crate) fn count_uncleared(&self, progress: &mut Progress) {
        progress.uncleared = u64::from(self.uncleared.left) * self.uncleared.pieces.bytes;
    }
    /// Legs joined, or are used again: they get the whole map before they count as in sync.
    pub(crate) fn rewrite_map(&mut self, legs: Legs) {
        members(legs).for_each(|leg| self.uncleared.rewrite(leg));
        self.see_behind();
    }
    fn see_behind(&mut self) {
        self.uncleared.behind = self.in_sync() & !self.uncleared.held_by_all_blocks() != 0;
    }
    /// Whether a leg in sync lacks a block of the map.
    pub(crate) fn lacks_map(&self) -> bool {
        self.uncleared.life != 0 && self.in_sync() & !self.uncleared.held_by_all_blocks() != 0
    }

    /// Whether a leg in sync lacks the block of the piece at `at`.
    pub(crate) fn map_is_behind(&self, at: u64) -> bool {
        self.uncleared.behind && {
            let nth = self.uncleared.block_of(self.uncleared.pieces.piece(at));
            self.in_sync() & !self.uncleared.blocks[nth as usize].holds != 0
        }
    }
    pub(crate) fn check_uncleared(&self) {
        let uncleared = &self.uncleared;
        assert_eq!(uncleared.left, uncleared.own.count(), "uncleared pieces are counted");
        let works = self.flights.iter().filter(|(_, f)| matches!(f.job, Job::Clear | Job::Edge));
        let works = works.filter(|(_, f)| f.phase != Phase::AwaitingLate);
        assert_eq!(works.count() as u32, uncleared.works, "clearings are counted");
        for local in uncleared.own.iter() {
            let piece = uncleared.of_local(local);
            assert!(uncleared.may_have(piece / uncleared.pieces.per_region), "a piece without its region");
        }
    }
}
