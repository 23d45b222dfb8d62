//! Reads: which leg, what if it fails, and how its blocks are healed.
//!
//! A read takes no lock: while a write is unanswered it may return old or new (promise 3). It
//! goes to a leg in sync with little to do, close to where that leg read last. An error moves it to
//! the next leg; the host never waits for the healing. Healing is a copy under the range lock from a
//! leg that can read, by the owner of the region.

use crate::array::{Array, HEALS_MAX};
use crate::buffers::PIECE_BYTES;
use crate::door::{ArrayIo, Kind, Note, Ticket};
use crate::flight::{DriveTag, Flight, Job, NONE, Owner, Phase, Plan, bit, members, status_of};
use base::{Bug, DriveError, DriveOp, DriveOpKind, Duration, Instant, Slice, Status, Token, planted};

/// Weighted read errors at which a leg is failed.
const ERRORS_MAX: u32 = 32;
/// One weighted error is forgotten after this time.
const ERROR_FORGOTTEN: Duration = Duration::from_secs(10);

fn weight(error: DriveError) -> u32 {
    match error {
        DriveError::Medium => 1,
        DriveError::NoSpace | DriveError::Fenced | DriveError::Other(_) => 4,
        DriveError::TimedOut => 8,
        DriveError::Gone | DriveError::Cut => ERRORS_MAX,
    }
}

impl Array {
    /// A host's read of blocks that every leg in sync may answer.
    pub(crate) fn read(&mut self, now: Instant, ticket: Ticket, at: u64, data: Slice, io: &mut impl ArrayIo) {
        let len = u64::from(data.len);
        let stale = self.rebuilding();
        let stale = if stale != 0 && planted(Bug::ReadOfRebuilding) { stale } else { 0 };
        let Some(leg) = self.choose_among(now, self.in_sync() | stale, at, len) else {
            io.done(ticket, Status::NotReady);
            return;
        };
        self.commands += 1;
        let local = &mut self.legs[leg];
        local.in_flight += 1;
        local.last_end = at + len;
        let drive = local.leg.expect("a leg in sync is a member").drive;
        let (owner, kind) = (Owner::Read(ticket), DriveOpKind::Read);
        let tag = || DriveTag::new(now, owner, leg, drive, kind, at, len, data, None);
        let tag = self.ops.insert_with(tag).expect("there is a tag for each operation of each command");
        self.watch(tag);
        let at = self.geometry.data_at + at;
        let token = Token(u64::from(tag));
        io.drive(DriveOp { drive, kind: DriveOpKind::Read, at, len, data, fua: false, token });
    }

    /// It is good, and nothing went wrong on the way.
    #[inline]
    pub(crate) fn read_good(&mut self, now: Instant, ticket: Ticket, tag: u32, io: &mut impl ArrayIo) {
        let DriveTag { leg, since, len, watched, previous, next, .. } = self.ops[tag];
        self.ops.free(tag);
        if watched {
            self.leave_young(previous, next);
        }
        let local = &mut self.legs[leg];
        local.in_flight -= 1;
        local.answers(now);
        // A leg without another is chosen whatever its reads take, and judged beside nobody.
        if self.geometry.redundant() {
            self.note_latency(now, leg, len, since, io);
        }
        self.commands -= 1;
        io.done(ticket, Status::Good);
    }

    /// It failed, or is late: from now on it needs more than a tag.
    pub(crate) fn give_flight(&mut self, tag: u32) -> u32 {
        let DriveTag { owner, leg, since, at, len, data, watched, previous, next, .. } = self.ops[tag];
        if watched {
            self.leave_young(previous, next);
            self.ops[tag].watched = false;
        }
        let Owner::Read(ticket) = owner else { unreachable!("only hosts' reads have no flight") };
        let mut flight = Flight::new(Job::Host(ticket), Plan::Read, Kind::Read, at, len);
        flight.phase = Phase::AwaitingSource;
        flight.data = data;
        flight.since = since;
        flight.source = leg;
        flight.first = tag;
        flight.pending = 1;
        let id = self.insert(flight);
        self.ops[tag].owner = Owner::Flight(id);
        id
    }

    /// The first half of a copy.
    pub(crate) fn start_read(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        self.flights[id].phase = Phase::AwaitingSource;
        match self.choose_leg(now, id) {
            Some(leg) => self.read_from(now, id, leg, io),
            None => self.read_lost(now, id, Status::NotReady, io),
        }
    }

    fn read_from(&mut self, now: Instant, id: u32, leg: usize, io: &mut impl ArrayIo) {
        let flight = &mut self.flights[id];
        flight.source = leg;
        flight.since = now;
        flight.pending = 1;
        let Flight { at, len, data, buffer, .. } = *flight;
        self.legs[leg].last_end = at + len;
        let at = self.geometry.data_at + at;
        let owner = Owner::Flight(id);
        let tag = self.submit(now, owner, leg, DriveOpKind::Read, at, len, data, false, buffer, io);
        self.flights[id].first = tag;
    }

    /// The read of a flight (plan Read, or the first half of a Copy) ended.
    pub(crate) fn source_done(
        &mut self,
        now: Instant,
        id: u32,
        tag: u32,
        leg: usize,
        result: Result<(), DriveError>,
        io: &mut impl ArrayIo,
    ) {
        if result.is_ok() {
            self.settle_hedge(id, tag, io);
        }
        let flight = self.flights[id];
        match (result, flight.plan) {
            (Ok(()), Plan::Read) if flight.zeroes => self.read_zeroes(now, id, io),
            (Ok(()), Plan::Read) => {
                self.answer(id, Status::Good, io);
                self.retire(now, id);
                for broken in members(flight.medium) {
                    self.heal(now, broken, flight.at, flight.len, io);
                }
            }
            (Ok(()), Plan::Copy) => {
                // While it read, legs may have changed: one that was given up here may be in use again, without
                // the bit, and the one that was read may be out.
                let sure = self.intent.is_durable(self.geometry.region(flight.at));
                if flight.job == Job::Piece && planted(Bug::CopyRacesWrite) {
                    self.unlock(now, id);
                }
                if sure && self.in_sync() & bit(leg) != 0 {
                    self.copy_targets(now, id, io);
                } else {
                    self.await_bit(now, id, io);
                }
            }
            (Ok(()), Plan::Change | Plan::Flush | Plan::Scrub) => {
                unreachable!("only reads and copies have a source")
            }
            (Err(error), _) => self.source_failed(now, id, tag, leg, error, io),
        }
    }

    /// A drive has let this head read blocks that were never written.
    fn read_zeroes(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let Flight { job: Job::Host(ticket), data, .. } = self.flights[id] else {
            unreachable!("only hosts read what was never written")
        };
        io.zeroes(ticket, data);
        self.answer(id, Status::Good, io);
        self.retire(now, id);
    }

    fn source_failed(
        &mut self,
        now: Instant,
        id: u32,
        tag: u32,
        leg: usize,
        error: DriveError,
        io: &mut impl ArrayIo,
    ) {
        self.unwatch(id);
        let flight = &mut self.flights[id];
        flight.tried |= bit(leg);
        let bad = error == DriveError::Fenced && planted(Bug::FencedIsBad);
        if error == DriveError::Medium || bad {
            flight.medium |= bit(leg);
        }
        if error == DriveError::Fenced && !bad && matches!(flight.job, Job::Host(_)) {
            // Its blocks may be good: the holder of the reservation reads them, and the host must retry.
            flight.fenced = true;
        }
        self.count_error(now, leg, error, io);
        let was_hedge = self.flights[id].hedge == tag;
        if self.flights[id].hedge != NONE && self.hedge_failed(id, tag, error, io) {
            return;
        }
        let Flight { job, medium, data, fenced, .. } = self.flights[id];
        // The given-up read may still arrive in its buffer, so no answer may come from there.
        if error == DriveError::TimedOut && !was_hedge && !planted(Bug::ReadIntoHeldBuffer) {
            let another = match job {
                Job::Host(ticket) => io.replace_buffer(ticket, data),
                Job::Piece | Job::Heal { .. } | Job::Scrub | Job::Clear | Job::Edge => None,
            };
            let Some(another) = another else {
                self.read_lost(now, id, Status::NotReady, io);
                return;
            };
            assert_eq!(another.len, data.len, "a buffer is replaced by one of its size");
            self.flights[id].data = another;
        }
        match self.choose_leg(now, id) {
            Some(next) => self.read_from(now, id, next, io),
            // They cannot read blocks that no host needs, and they let this head try.
            None if medium != 0 && !fenced && self.flights[id].zeroes => self.read_zeroes(now, id, io),
            None if medium != 0 && !fenced => {
                let Flight { at, len, .. } = self.flights[id];
                io.note(Note::MediumLost { at, len });
                self.read_lost(now, id, Status::Medium, io);
            }
            None => {
                let error = if fenced { DriveError::Fenced } else { error };
                self.read_lost(now, id, status_of(error, self.shared), io);
            }
        }
    }

    fn read_lost(&mut self, now: Instant, id: u32, status: Status, io: &mut impl ArrayIo) {
        self.over(now, id, status, io);
    }

    pub(crate) fn count_error(&mut self, now: Instant, leg: usize, error: DriveError, io: &mut impl ArrayIo) {
        let local = &mut self.legs[leg];
        let forgotten = now.since(local.errors_at).as_nanos() / ERROR_FORGOTTEN.as_nanos();
        if forgotten > 0 {
            local.errors = local.errors.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX));
            local.errors_at = now;
        }
        local.errors = local.errors.saturating_add(weight(error));
        if local.errors >= ERRORS_MAX {
            self.lose(leg, error, io);
        }
    }

    /// Blocks that `leg` could not read, found by any shard: the owner of their region writes them
    /// again from another leg. Never crosses a region's end.
    pub fn on_heal(&mut self, now: Instant, leg: usize, at: u64, len: u64, io: &mut impl ArrayIo) {
        assert!(at + len <= self.geometry.region_end(at), "a heal crosses the end of its region");
        self.heal(now, leg, at, len, io);
        self.drain(now, io);
    }

    pub(crate) fn heal(&mut self, now: Instant, leg: usize, at: u64, len: u64, io: &mut impl ArrayIo) {
        let possible = self.in_sync() & bit(leg) != 0 && self.in_sync() != bit(leg);
        if !possible || !self.geometry.redundant() {
            return;
        }
        if self.owner(at) != self.shard {
            io.note(Note::Heal { at, len, leg });
            return;
        }
        if self.heals == HEALS_MAX {
            return;
        }
        let Some(buffer) = self.buffers.piece() else { return };
        let piece = len.min(u64::from(PIECE_BYTES));
        let job = Job::Heal { leg, rest: len - piece };
        let mut flight = Flight::new(job, Plan::Copy, Kind::Write, at, piece);
        flight.data = self.buffers.slice(buffer).head(piece as u32);
        flight.buffer = Some(buffer);
        flight.since = now;
        self.heals += 1;
        let id = self.insert(flight);
        self.queue(id);
    }
}
