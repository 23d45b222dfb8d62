//! Scrub: reads every leg in sync, piece by piece under the range lock, and compares.
//!
//! ```text
//! piece ▶ AwaitingLock ▶ AwaitingScrub (all legs read) ▶ the same: next piece
//!                                                       ▶ a leg cannot read it: healed, and read again
//!                                                       ▶ they differ: reported; with `repair`: bit, write, read again
//! ```
//!
//! Each instance does its own regions, in the order of their numbers, so that one position stands for all.
//! Under the lock no write of a host is half done, so there are no false alarms. It waits while a leg is
//! being rebuilt or regions are unclean after a crash, since there legs may differ with good reason.
//!
//! Which leg is right: with three or four legs, what more than half of them hold. With two legs, or two against two,
//! this cannot be known without a checksum: the difference is reported, and is repaired only if `repair` is set and the
//! leg to copy from is named. Read errors prove nothing: the leg without errors may be the one that was never written.

pub(crate) mod state;

use crate::array::Array;
use crate::buffers::PIECE_BYTES;
use crate::door::{ArrayIo, Kind, Note, Progress, Scrub};
use crate::flight::{Flight, Job, Legs, Owner, Phase, Plan, bit, members};
use base::{Bug, DriveError, DriveOpKind, Duration, Instant, Slice, planted};
use state::{Piece, Run, Scrubbing};

/// Pieces are multiples of the largest block that a drive may have.
const BLOCK: u32 = 4096;
/// When it cannot go on now, it looks again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Of what a resync may have while hosts are busy, a scrub takes one part in so many: it has no hurry.
const FLOOR_SHARE: u64 = 4;

impl Array {
    /// Begins a scrub, or goes on with one where another instance or life was; None ends it.
    /// `Note::Scrubbed` says that this instance has done its part of this one.
    pub fn scrub(&mut self, now: Instant, order: Option<Scrub>, io: &mut impl ArrayIo) {
        let is_piece = |f: &Flight| f.job == Job::Scrub && f.phase != Phase::AwaitingLate;
        let former = self.flights.iter().any(|(_, flight)| is_piece(flight));
        self.scrub = order.filter(|_| self.geometry.redundant()).map(|order| {
            let sizes = (0..self.geometry.regions()).filter(|r| self.owns(*r)).map(|region| {
                let at = u64::from(region) * self.geometry.region_bytes;
                (at, self.geometry.region_end(at) - at)
            });
            let (mut total, mut done) = (0, 0);
            for (at, len) in sizes {
                total += len;
                done += if at + len <= order.from { len } else { 0 };
            }
            let (next, end) = (order.from, order.from);
            Scrubbing {
                order,
                next,
                end,
                total,
                done,
                piece: if former { Piece::Former } else { Piece::None },
                next_at: now,
                again: false,
                repaired_at: None,
                repair: None,
            }
        });
        self.scrub_step(now, io);
        self.drain(now, io);
    }
    pub(crate) fn scrub_deadline(&self) -> Option<Instant> {
        let scrub = self.scrub.as_ref()?;
        (scrub.piece == Piece::None && !self.rests()).then_some(scrub.next_at)
    }
    pub(crate) fn count_scrub(&self, progress: &mut Progress) {
        if let Some(scrub) = &self.scrub {
            progress.scrub_done = scrub.done;
            progress.scrub_total = scrub.total;
            progress.scrub_from = scrub.next / self.geometry.region_bytes * self.geometry.region_bytes;
        }
    }

    /// Starts the next piece, if it is time.
    pub(crate) fn scrub_step(&mut self, now: Instant, io: &mut impl ArrayIo) {
        let rests = self.rests();
        let Some(scrub) = &mut self.scrub else { return };
        if scrub.piece != Piece::None || rests || now < scrub.next_at {
            return;
        }
        if scrub.next == scrub.end {
            let region_bytes = self.geometry.region_bytes;
            let first = u32::try_from(scrub.next.div_ceil(region_bytes)).expect("an array has few regions");
            let (geometry, shard, lanes) = (&self.geometry, self.shard, &self.lanes);
            let mut left = first..geometry.regions();
            let Some(region) = left.find(|r| geometry.owner_of_region(*r, lanes) == shard) else {
                let number = scrub.order.number;
                self.scrub = None;
                io.note(Note::Scrubbed { number });
                return;
            };
            scrub.next = u64::from(region) * region_bytes;
            scrub.end = geometry.region_end(scrub.next);
        }
        let Scrubbing { next, end, .. } = *self.scrub.as_ref().expect("seen above");
        let run = self.uncleared_run(next, end - next);
        if run > 0 && !planted(Bug::UnclearedIsCompared) {
            // Legs may differ there with good reason, and hosts do not read it.
            let scrub = self.scrub.as_mut().expect("seen above");
            scrub.next = next + run;
            scrub.done += run;
            self.resync.poke = true;
            return;
        }
        let same = self.same_kind(next, end - next);
        let legs = self.in_sync();
        let ready = legs.count_ones() >= 2 && !self.resync_works();
        let buffer = if ready { self.buffers.piece() } else { None };
        let scrub = self.scrub.as_mut().expect("seen above");
        let Some(buffer) = buffer else {
            scrub.next_at = now + LOOK_AGAIN;
            return;
        };
        let len = u64::from(PIECE_BYTES / legs.count_ones() / BLOCK * BLOCK).min(same);
        scrub.piece = Piece::Own;
        let quiet = now.since(self.last_command) >= self.pace.quiet;
        let rate = if quiet { self.pace.ceiling } else { (self.pace.floor / FLOOR_SHARE).max(1) };
        let wait = (len * 1_000_000_000).checked_div(rate).unwrap_or(0);
        scrub.next_at = scrub.next_at.max(now) + Duration::from_nanos(wait);
        let mut flight = Flight::new(Job::Scrub, Plan::Scrub, Kind::Read, scrub.next, len);
        flight.data = self.buffers.slice(buffer);
        flight.buffer = Some(buffer);
        let id = self.insert(flight);
        self.queue(id);
    }

    /// The piece's range is held: every leg in sync reads it, each into its part of the buffer.
    pub(crate) fn scrub_read(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let legs = self.in_sync();
        let Flight { at, len, buffer, .. } = self.flights[id];
        let fits = u64::from(legs.count_ones()) * len <= u64::from(PIECE_BYTES);
        let counts = self.scrub.as_ref().is_some_and(|scrub| scrub.piece == Piece::Own);
        if legs.count_ones() < 2 || !fits || !counts {
            self.scrub_piece_over(now, id, false, io);
            return;
        }
        let flight = &mut self.flights[id];
        flight.phase = Phase::AwaitingScrub;
        flight.tried = legs;
        flight.pending = legs.count_ones() as u8;
        for leg in members(legs) {
            let (part, at) = (self.scrub_part(id, leg), self.geometry.data_at + at);
            let kind = DriveOpKind::Read;
            self.submit(now, Owner::Flight(id), leg, kind, at, len, part, false, buffer, io);
        }
    }
    /// Where in the buffer `leg` reads to.
    fn scrub_part(&self, id: u32, leg: usize) -> Slice {
        let Flight { tried, data, len, .. } = self.flights[id];
        let nth = (tried & (bit(leg) - 1)).count_ones();
        data.part(nth * len as u32, len as u32)
    }

    pub(crate) fn scrub_read_done(
        &mut self,
        now: Instant,
        id: u32,
        leg: usize,
        result: Result<(), DriveError>,
        io: &mut impl ArrayIo,
    ) {
        if let Err(error) = result {
            self.flights[id].refused = Some(error);
            if error == DriveError::Medium {
                self.flights[id].medium |= bit(leg);
            }
            self.count_error(now, leg, error, io);
        }
        if self.flights[id].pending > 0 {
            return;
        }
        let Flight { refused, medium, at, len, .. } = self.flights[id];
        if refused.is_none() {
            self.compare(now, id, io);
            return;
        }
        self.scrub_piece_over(now, id, false, io);
        for broken in members(medium) {
            // Behind it in line for the range, and before the second try.
            self.heal(now, broken, at, len, io);
        }
        self.scrub_step(now, io);
    }

    /// All legs have the piece in memory.
    fn compare(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let Flight { tried, len, .. } = self.flights[id];
        let first = self.scrub_part(id, tried.trailing_zeros() as usize);
        let same = members(tried).all(|leg| io.same(first, self.scrub_part(id, leg)));
        let order = self.scrub.as_ref().filter(|scrub| scrub.piece == Piece::Own).map(|scrub| scrub.order);
        let Some(order) = order.filter(|_| !same) else {
            self.scrub_piece_over(now, id, true, io);
            return;
        };
        let repaired_at = self.scrub.as_ref().and_then(|s| s.repaired_at);
        let mut offset = 0;
        while offset < len as u32 {
            let Some(run) = self.next_run(id, offset, order, io) else { break };
            offset = run.offset + run.len;
            // What differs again where it was just mended is reported and left alone: the drive lies.
            let sure = run.known || order.prefer == Some(run.source);
            let mend = order.repair && sure && repaired_at.is_none_or(|last| run.at > last);
            let Run { at, len, bad, source, known, .. } = run;
            io.note(Note::Mismatch { at, len: len.into(), bad, source, known, repair: mend });
            if mend {
                let scrub = self.scrub.as_mut().expect("seen above");
                scrub.repair = Some(run);
                self.enter_intent(now, id, io);
                return;
            }
        }
        self.scrub_piece_over(now, id, true, io);
    }
    /// The first blocks from `offset` of the piece that differ, as far as they do in the same way.
    fn next_run(&self, id: u32, offset: u32, order: Scrub, io: &mut impl ArrayIo) -> Option<Run> {
        let Flight { at, len, .. } = self.flights[id];
        let (mut found, block): (Option<Run>, u32) = (None, order.block_bytes);
        for offset in (offset..len as u32).step_by(block as usize) {
            let verdict = self.judge_block(id, offset, order, io);
            match (&mut found, verdict) {
                (None, None) => {}
                (None, Some((bad, source, known))) => {
                    let at = at + u64::from(offset);
                    found = Some(Run { at, len: block, offset, bad, source, known });
                }
                (Some(run), Some(verdict)) if (run.bad, run.source, run.known) == verdict => run.len += block,
                (Some(_), _) => break,
            }
        }
        found
    }
    /// Which legs are wrong in a block, which one is right, and whether that is known. None if all are equal.
    fn judge_block(
        &self,
        id: u32,
        offset: u32,
        Scrub { prefer, block_bytes, .. }: Scrub,
        io: &mut impl ArrayIo,
    ) -> Option<(Legs, usize, bool)> {
        let legs = self.flights[id].tried;
        let mut like = |a: usize, b: usize| {
            let part = |leg| self.scrub_part(id, leg).part(offset, block_bytes);
            io.same(part(a), part(b))
        };
        let mut alike = [0 as Legs; crate::geometry::PLACES_MAX];
        for a in members(legs) {
            for b in members(legs) {
                alike[a] |= if like(a, b) { bit(b) } else { 0 };
            }
        }
        if members(legs).all(|leg| alike[leg] == legs) {
            return None;
        }
        let most = members(legs).find(|leg| 2 * alike[*leg].count_ones() > legs.count_ones());
        let source = most.or(prefer.filter(|leg| legs & bit(*leg) != 0));
        let source = source.or_else(|| members(legs).min_by_key(|leg| (self.legs[*leg].errors, *leg)))?;
        Some((legs & !alike[source], source, most.is_some()))
    }

    /// The bit of the region is durable: the wrong legs get what the right one has.
    pub(crate) fn scrub_write(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let run = self.scrub.as_mut().and_then(|s| s.repair.take());
        let Some(run) = run.filter(|run| self.in_sync() & bit(run.source) != 0) else {
            self.scrub_piece_over(now, id, false, io);
            return;
        };
        let targets = run.bad & self.in_sync();
        let part = self.scrub_part(id, run.source).part(run.offset, run.len);
        let flight = &mut self.flights[id];
        flight.phase = Phase::AwaitingLegs;
        flight.pending = targets.count_ones() as u8;
        flight.wrote = targets | bit(run.source);
        let (buffer, at) = (flight.buffer, self.geometry.data_at + run.at);
        for leg in members(targets) {
            let kind = DriveOpKind::Write;
            self.submit(now, Owner::Flight(id), leg, kind, at, run.len.into(), part, false, buffer, io);
        }
        if let Some(scrub) = &mut self.scrub {
            scrub.repaired_at = Some(run.at);
        }
        if targets == 0 {
            self.scrub_piece_over(now, id, false, io);
        }
    }
    /// The repair of a piece ended: it is read again.
    pub(crate) fn scrub_written(&mut self) {
        if let Some(scrub) = &mut self.scrub {
            scrub.piece = Piece::None;
            scrub.again = false;
            self.resync.poke = true;
        }
    }

    /// A piece was compared, or could not be (then it is tried once more).
    fn scrub_piece_over(&mut self, now: Instant, id: u32, compared: bool, io: &mut impl ArrayIo) {
        let Flight { at, len, .. } = self.flights[id];
        self.retire(now, id);
        let degraded = self.in_sync().count_ones() < 2;
        let Some(scrub) = &mut self.scrub else { return };
        self.resync.poke = true;
        if core::mem::replace(&mut scrub.piece, Piece::None) == Piece::Former {
            return;
        }
        assert_eq!(scrub.next, at, "a scrub has one piece under way");
        if compared || scrub.again {
            if !compared {
                io.note(Note::Unreadable { at, len });
            }
            scrub.next = at + len;
            scrub.done += len;
            scrub.again = false;
            scrub.repaired_at = None;
        } else {
            // While legs are missing nothing is said of the piece: it waits.
            scrub.again = !degraded;
        }
    }
}
