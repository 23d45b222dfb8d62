//! Resync: copies what a rebuilding leg lacks, and makes legs in sync the same after a crash.
//!
//! ```text
//! quiet ▶ copying (region by region, piece by piece) ▶ flushing the targets ▶ synced
//! ```
//!
//! A pass takes the dirty regions as they are when a leg joins: what is dirtied later is written to the
//! leg by the change itself. Pieces are copies under the range lock, so a host's write waits for at
//! most one piece. Each instance does its own lanes. It reports `Synced` only after a flush that began
//! after it knew of the leg, even if it had nothing to copy: earlier flushes of its hosts did not
//! go to that leg. A region that no leg can read fails the pass, which is tried again later.
//!
//! Pace: the floor while hosts are busy, the ceiling while they are quiet.

pub(crate) mod state;

use crate::array::Array;
use crate::buffers::{PIECE_BYTES, PIECES_MAX};
use crate::door::{ArrayIo, Kind, Note, Progress};
use crate::flight::{Flight, Job, Legs, Owner, Plan, bit, members};
use base::{Bug, DriveError, DriveOpKind, Duration, Instant, Slice, Status, planted};
use state::{Current, Pass};

/// A region that could not be copied is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// How long until a pass without a buffer looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Array {
    /// Legs joined as rebuilding: a new pass, over everything dirty now, to all that are rebuilding.
    pub(crate) fn begin_resync(&mut self, targets: Legs) {
        self.resync.targets = targets;
        self.resync.need.clear_all();
        self.resync.need.union(self.intent.wanted());
        self.resync.cursor = 0;
        self.resync.failed = false;
        self.resync.retry_at = None;
        self.resync.total = u64::from(self.resync.need.count()) * self.geometry.region_bytes;
        self.resync.done = 0;
        if let Some(current) = &mut self.resync.current {
            current.void = true;
        }
        self.spoil_sync();
        if self.resync.pass == Pass::Quiet {
            self.resync.pass = Pass::Copying;
        }
        self.resync.poke = true;
    }
    fn spoil_sync(&mut self) {
        if let Pass::Flushing { spoilt, .. } = &mut self.resync.pass {
            *spoilt = true;
        }
    }
    /// The legs in use have changed.
    pub(crate) fn resync_legs_changed(&mut self) {
        self.resync.targets &= self.rebuilding();
        self.spoil_sync();
        self.resync.poke = true;
    }

    fn lacks(&self, local: u32) -> bool {
        let unclean = self.unclean.as_ref();
        let targets = self.resync.targets & self.rebuilding() != 0;
        targets && self.resync.need.get(local)
            || unclean.is_some_and(|u| {
                let region = self.intent.region(local);
                region < self.geometry.regions() && u.get(region)
            })
    }
    /// Legs may differ with good reason: one is being rebuilt, or there was a crash.
    pub(crate) fn resync_works(&self) -> bool {
        self.rebuilding() != 0 || self.unclean.is_some()
    }
    fn has_work(&self) -> bool {
        self.resync.pass == Pass::Copying || self.unclean.is_some() && !self.resync.clean_reported
    }

    /// Starts what may be started now.
    pub(crate) fn resync_step(&mut self, now: Instant, io: &mut impl ArrayIo) {
        self.resync.poke = false;
        if self.rests() || !self.started || self.in_sync() == 0 || !self.has_work() {
            return;
        }
        if matches!(self.resync.pass, Pass::Flushing { .. }) {
            return;
        }
        if let Some(retry_at) = self.resync.retry_at {
            if now < retry_at {
                return;
            }
            self.resync.retry_at = None;
            self.resync.failed = false;
            self.resync.cursor = 0;
        }
        loop {
            if self.resync.current.is_none() && !self.next_region() {
                self.scan_over(now, io);
                return;
            }
            let current = self.resync.current.as_ref().expect("a region under way");
            let all_issued = current.next == current.end || !current.good || current.void;
            if all_issued || current.in_flight == PIECES_MAX || now < self.resync.next_at {
                if !all_issued || current.in_flight > 0 {
                    return;
                }
                if self.must_flush() {
                    self.flush_region(now, io);
                } else {
                    self.region_over();
                }
                continue;
            }
            if !self.issue_piece(now) {
                return;
            }
            while let Some(id) = self.ready.pop_front() {
                self.enter_intent(now, id, io);
            }
        }
    }
    fn next_region(&mut self) -> bool {
        while self.resync.cursor < self.resync.need.len() {
            let local = self.resync.cursor;
            self.resync.cursor += 1;
            if self.lacks(local) {
                let next = u64::from(self.intent.region(local)) * self.geometry.region_bytes;
                let end = self.geometry.region_end(next);
                self.resync.current =
                    Some(Current { local, next, end, in_flight: 0, good: true, void: false, flushed: false });
                return true;
            }
        }
        false
    }
    fn issue_piece(&mut self, now: Instant) -> bool {
        let Current { next, end, .. } = *self.resync.current.as_ref().expect("a region under way");
        let run = self.uncleared_run(next, end - next);
        if run > 0 {
            let current = self.resync.current.as_mut().expect("a region under way");
            current.next = next + run;
            current.in_flight += 1;
            let id = self.insert(Flight::new(Job::Piece, Plan::Copy, Kind::Write, next, run));
            self.queue(id);
            return true;
        }
        let same = self.same_kind(next, end - next);
        let Some(buffer) = self.buffers.piece() else {
            // Operations that were given up hold them all: a deadline of "now" would come up for ever.
            self.resync.next_at = now + LOOK_AGAIN;
            return false;
        };
        let slice = self.buffers.slice(buffer);
        let current = self.resync.current.as_mut().expect("a region under way");
        let (at, len) = (current.next, same.min(u64::from(PIECE_BYTES)));
        current.next += len;
        current.in_flight += 1;
        let quiet = now.since(self.last_command) >= self.pace.quiet;
        let rate = if quiet { self.pace.ceiling } else { self.pace.floor };
        let wait = (len * 1_000_000_000).checked_div(rate).unwrap_or(0);
        self.resync.next_at = self.resync.next_at.max(now) + Duration::from_nanos(wait);
        let mut flight = Flight::new(Job::Piece, Plan::Copy, Kind::Write, at, len);
        flight.data = slice.head(len as u32);
        flight.buffer = Some(buffer);
        let id = self.insert(flight);
        self.queue(id);
        true
    }
    /// The range of a piece is held: whether there is nothing to copy, as it reads as zeroes whatever lies there. Under the lock
    /// alone that is sure: a write that clears it may have begun before a leg joined.
    pub(crate) fn pass_uncleared(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) -> bool {
        let Flight { at, len, buffer, .. } = self.flights[id];
        let uncleared = self.is_uncleared(at, len);
        if buffer.is_none() && !uncleared {
            // Some of it was written meanwhile: the region is done once more.
            self.resync.current.as_mut().expect("a region under way").void = true;
        }
        let passes = buffer.is_none() || uncleared;
        if passes {
            self.over(now, id, Status::Good, io);
        }
        passes
    }
    /// A region counts as clean after a crash when its legs hold the same *durably*: reads there are answered without
    /// another look, and what they find must not change back when the power goes. Pieces are not forced one by one, as
    /// many a drive flushes its whole cache for each.
    fn must_flush(&self) -> bool {
        let current = self.resync.current.as_ref().expect("a region under way");
        let unclean = self.unclean.as_ref().is_some_and(|u| u.get(self.intent.region(current.local)));
        let whole = current.good && !current.void && !current.flushed;
        whole && unclean && self.volatile() != 0 && !planted(Bug::CrashRegionCached)
    }
    fn flush_region(&mut self, now: Instant, io: &mut impl ArrayIo) {
        let current = self.resync.current.as_mut().expect("a region under way");
        current.flushed = true;
        current.in_flight = 1;
        let at = current.end - 1;
        let id = self.insert(Flight::new(Job::Piece, Plan::Flush, Kind::Flush, at, 0));
        self.start_flush(now, id, io);
    }
    /// A piece, or the flush behind them, ended.
    pub(crate) fn piece_over(&mut self, len: u64, good: bool) {
        let current = self.resync.current.as_mut().expect("a region under way");
        current.in_flight -= 1;
        current.good &= good;
        if good {
            self.resync.done = (self.resync.done + len).min(self.resync.total);
        }
        self.resync.poke = true;
    }
    fn region_over(&mut self) {
        let current = self.resync.current.take().expect("a region under way");
        if current.void {
            return;
        }
        if !current.good {
            self.resync.failed = true;
            return;
        }
        self.resync.need.clear(current.local);
        let region = self.intent.region(current.local);
        if let Some(unclean) = &mut self.unclean {
            unclean.clear(region);
        }
    }
    fn scan_over(&mut self, now: Instant, io: &mut impl ArrayIo) {
        if self.resync.failed {
            self.resync.retry_at = Some(now + RETRY_AFTER);
            return;
        }
        let left = (0..self.intent.locals()).any(|local| self.lacks(local));
        if left {
            // A pass that began anew behind the cursor.
            self.resync.cursor = 0;
            self.resync.poke = true;
            return;
        }
        if self.unclean.is_some() && !self.resync.clean_reported {
            self.resync.clean_reported = true;
            io.note(Note::CrashClean { epoch: self.epoch });
        }
        if self.resync.pass != Pass::Copying {
            return;
        }
        let targets = self.resync.targets & self.rebuilding();
        if targets == 0 {
            self.resync.pass = Pass::Quiet;
            return;
        }
        // Its bitmap must be whole before it may be relied on.
        let lacks_bits = targets & !self.intent.held_by_all_blocks() != 0;
        let lacks_map = targets & !self.uncleared.held_by_all_blocks() != 0;
        if lacks_bits || lacks_map && !planted(Bug::MapMissingOnLeg) {
            return;
        }
        let caches = targets & self.volatile();
        let caches = if caches != 0 && planted(Bug::SyncedWithoutFlush) { 0 } else { caches };
        self.resync.pass = Pass::Flushing { pending: caches.count_ones() as u8, spoilt: false };
        for leg in members(caches) {
            self.submit(now, Owner::Sync, leg, DriveOpKind::Flush, 0, 0, Slice::default(), false, None, io);
        }
        if caches == 0 {
            self.synced(io);
        }
    }
    pub(crate) fn sync_flushed(
        &mut self,
        _now: Instant,
        leg: usize,
        result: Result<(), DriveError>,
        io: &mut impl ArrayIo,
    ) -> bool {
        if let Err(error) = result {
            self.lose(leg, error, io);
        }
        let Pass::Flushing { pending, spoilt } = &mut self.resync.pass else {
            unreachable!("a flush for a resync that is not");
        };
        *pending -= 1;
        *spoilt |= result.is_err();
        if *pending == 0 {
            self.synced(io);
        }
        false
    }
    fn synced(&mut self, io: &mut impl ArrayIo) {
        let spoilt = matches!(self.resync.pass, Pass::Flushing { spoilt: true, .. });
        if spoilt {
            self.resync.pass = Pass::Copying;
            self.resync.poke = true;
            return;
        }
        self.resync.pass = Pass::Quiet;
        for leg in members(self.resync.targets & self.rebuilding()) {
            io.note(Note::Synced { leg, epoch: self.epoch });
        }
    }

    /// The Steward says that every lane is clean after the crash: reads are local everywhere again.
    pub fn on_clean(&mut self, now: Instant, io: &mut impl ArrayIo) {
        if let Some(unclean) = &self.unclean {
            let ours = unclean.iter().any(|region| self.owns(region));
            assert!(!ours, "an array was called clean that is not");
        }
        self.unclean = None;
        self.drain(now, io);
    }

    pub(crate) fn resync_deadline(&self) -> Option<Instant> {
        if self.rests() || self.in_sync() == 0 || !self.has_work() {
            return None;
        }
        if self.resync.retry_at.is_some() {
            return self.resync.retry_at;
        }
        let current = self.resync.current.as_ref()?;
        let waits =
            current.good && !current.void && current.next < current.end && current.in_flight < PIECES_MAX;
        waits.then_some(self.resync.next_at)
    }
    pub(crate) fn count_resync(&self, progress: &mut Progress) {
        progress.resync_total = self.resync.total;
        progress.crash_total = self.resync.crash_total;
        progress.resync_done =
            if self.resync.pass == Pass::Copying { self.resync.done } else { self.resync.total };
        if let Some(unclean) = &self.unclean {
            // A region counts until it is done; of the one under way what was copied does not, so that
            // whoever watches sees something move.
            let current = self.resync.current.filter(|c| unclean.get(self.intent.region(c.local)));
            let copied = current.map_or(0, |c| {
                let begin = u64::from(self.intent.region(c.local)) * self.geometry.region_bytes;
                let pieces = if c.flushed { 0 } else { c.in_flight };
                (c.next - begin).saturating_sub(u64::from(pieces * PIECE_BYTES))
            });
            progress.crash_left = self.unclean_bytes() - copied;
        }
    }
    /// Bytes of our lanes that may differ between legs in sync.
    pub(crate) fn unclean_bytes(&self) -> u64 {
        let Some(unclean) = &self.unclean else { return 0 };
        let ours = unclean.iter().filter(|r| self.owns(*r) && *r < self.geometry.regions());
        let begin = |region: u32| u64::from(region) * self.geometry.region_bytes;
        ours.map(|r| self.geometry.region_end(begin(r)) - begin(r)).sum()
    }
    /// A leg whose content a pass relied on is in use no more, or again.
    pub(crate) fn resync_joined(&mut self, joined: Legs) {
        if joined & self.rebuilding() != 0 {
            let targets = self.rebuilding();
            self.begin_resync(targets);
        }
        assert!(joined == 0 || members(joined).all(|leg| bit(leg) & self.writable() != 0));
    }
}
