//! Changes: order, fan-out, the loss of a leg, and when the host command may be completed.
//!
//! A change holds its range from before its bit is set until its last operation is over. It goes to
//! every writable leg. A leg that fails it is out of use at once, but the answer waits until the
//! Steward has put the loss on record. Otherwise a crash could bring up the lost leg alone, without an
//! acknowledged write.
//!
//! The last leg in sync is never given up: if it refuses a change, the host gets the error. Legs that are being
//! rebuilt and took the change then differ from it, so they are given up. If one of them has come in sync
//! meanwhile, the leg that refused is no longer the last one, and is given up itself.
//!
//! Copies (pieces, heals, reads of dirty regions) end like changes, with other targets.

use crate::array::Array;
use crate::door::{ArrayIo, Kind, Note};
use crate::flight::{Flight, Job, Legs, Owner, Phase, Plan, bit, members, status_of};
use base::{Bug, DriveError, DriveOpKind, Instant, Slice, Status, planted, planted_if};

impl Array {
    /// The range is held and the bit is durable: to the drives.
    pub(crate) fn start_legs(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let Flight { plan, job, .. } = self.flights[id];
        match plan {
            Plan::Change => {}
            Plan::Copy if job == Job::Piece && self.pass_uncleared(now, id, io) => return,
            Plan::Copy => {
                self.start_read(now, id, io);
                return;
            }
            Plan::Scrub => {
                self.scrub_write(now, id, io);
                return;
            }
            Plan::Read | Plan::Flush => unreachable!("reads and flushes wait for nothing"),
        }
        if self.in_sync() == 0 {
            self.over(now, id, Status::NotReady, io);
            return;
        }
        if self.flights[id].clears {
            match (self.start_clear(now, id, io), self.flights[id].job) {
                (true, _) => return,
                // Somebody else has cleared it meanwhile, and may have written there.
                (false, Job::Clear) => return self.over(now, id, Status::Good, io),
                (false, _) => {}
            }
        }
        let Flight { at, len, kind, .. } = self.flights[id];
        if kind == Kind::Write && self.map_is_behind(at) {
            // A leg came back that shows zeroes there as long as it has not got the map.
            self.flights[id].clears = true;
            self.await_map(now, id, io);
            return;
        }
        let kind = match kind {
            Kind::Write => DriveOpKind::Write,
            Kind::WriteZeroes => DriveOpKind::WriteZeroes,
            Kind::Deallocate => DriveOpKind::Deallocate,
            Kind::Read | Kind::Flush => unreachable!("not a change"),
        };
        let targets = self.writable();
        self.fan_out(now, id, kind, (at, len), targets, io);
    }

    /// A copy has its data: they go to its target legs.
    pub(crate) fn copy_targets(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let Flight { job, at, len, source, .. } = self.flights[id];
        let others = self.writable() & !bit(source);
        let unclean = self.unclean.as_ref().is_some_and(|u| u.get(self.geometry.region(at)));
        let (caches, stale) = ((others | bit(source)) & self.volatile(), others & self.rebuilding());
        let targets = match job {
            // What is read after a crash must not change back when the power goes: it is forced on every leg, and on
            // the one that it was read from, whose cache may hold it since before the crash.
            Job::Host(_) if caches == 0 || !planted(Bug::CrashCopyCached) => {
                self.flights[id].fua = true;
                others | bit(source) & self.volatile()
            }
            Job::Host(_) => others,
            Job::Piece if unclean && (stale == others || !planted(Bug::CrashCopySkipsInSync)) => others,
            Job::Piece => stale,
            Job::Heal { leg, .. } => others & bit(leg),
            Job::Scrub | Job::Clear | Job::Edge => unreachable!("they copy nothing"),
        };
        self.fan_out(now, id, DriveOpKind::Write, (at, len), targets, io);
        // The source holds it too.
        self.flights[id].wrote |= bit(source);
        if targets == 0 {
            self.settle(now, id, io);
        }
    }

    pub(crate) fn fan_out(
        &mut self,
        now: Instant,
        id: u32,
        kind: DriveOpKind,
        (at, len): (u64, u64),
        targets: Legs,
        io: &mut impl ArrayIo,
    ) {
        self.miss_absent(id);
        let flight = &mut self.flights[id];
        flight.phase = Phase::AwaitingLegs;
        flight.pending = targets.count_ones() as u8;
        flight.wrote = targets;
        let Flight { data, fua, buffer, .. } = *flight;
        let write = kind == DriveOpKind::Write;
        let data = if write { data } else { Slice::default() };
        let caches = if fua && write { self.volatile() } else { 0 };
        let caches = if caches & targets != 0 && planted(Bug::FuaDropped) { 0 } else { caches };
        let at = self.geometry.data_at + at;
        for leg in members(targets) {
            let fua = caches & bit(leg) != 0;
            self.submit(now, Owner::Flight(id), leg, kind, at, len, data, fua, buffer, io);
        }
    }

    /// A flush goes to every volatile cache that may hold a completed write.
    pub(crate) fn start_flush(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        if self.in_sync() == 0 {
            self.over(now, id, Status::NotReady, io);
            return;
        }
        self.flights[id].phase = Phase::AwaitingLegs;
        self.flights[id].wrote = self.writable();
        self.miss_absent(id);
        let targets = self.writable() & self.volatile();
        let targets = if targets != 0 && planted(Bug::FlushNowhere) { 0 } else { targets };
        self.flush_legs(now, id, targets, io);
        if targets == 0 {
            self.settle(now, id, io);
        }
    }

    /// A leg joined while a flush was under way: other shards may have written to it what the flush must cover, and it may be in sync by
    /// the time of the answer.
    #[cold]
    fn flush_joined(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let joined = self.writable() & !self.flights[id].wrote;
        self.flights[id].wrote |= joined;
        self.flush_legs(now, id, joined & self.volatile(), io);
        if joined & self.volatile() == 0 {
            self.settle(now, id, io);
        }
    }

    fn flush_legs(&mut self, now: Instant, id: u32, targets: Legs, io: &mut impl ArrayIo) {
        self.flights[id].pending = targets.count_ones() as u8;
        for leg in members(targets) {
            self.submit(
                now,
                Owner::Flight(id),
                leg,
                DriveOpKind::Flush,
                0,
                0,
                Slice::default(),
                false,
                None,
                io,
            );
        }
    }

    /// An operation of a flight ended; whether the flight waits for it although it was given up.
    pub(crate) fn flight_done(
        &mut self,
        now: Instant,
        id: u32,
        tag: u32,
        leg: usize,
        result: Result<(), DriveError>,
        io: &mut impl ArrayIo,
    ) -> bool {
        let flight = &mut self.flights[id];
        flight.pending -= 1;
        let Flight { phase, plan, pending, .. } = *flight;
        if phase == Phase::AwaitingSource {
            self.source_done(now, id, tag, leg, result, io);
            return false;
        }
        if phase == Phase::AwaitingScrub {
            self.scrub_read_done(now, id, leg, result, io);
            return false;
        }
        let mut keeps = false;
        let result = match plan {
            Plan::Flush if result.is_err() && planted(Bug::FlushErrorIgnored) => Ok(()),
            Plan::Change if result.is_err() && planted(Bug::WriteErrorIgnored) => Ok(()),
            _ => result,
        };
        if let Err(error) = result {
            self.flights[id].wrote &= !bit(leg);
            if self.lose(leg, error, io) {
                self.miss(id, leg);
            } else {
                self.flights[id].refused = Some(error);
                self.flights[id].refusers |= bit(leg);
                // It may still land on a leg that is in use, so no later change may pass it.
                let lands = plan != Plan::Flush && phase == Phase::AwaitingLegs;
                keeps = error == DriveError::TimedOut && lands;
                self.flights[id].late += u8::from(keeps);
            }
        }
        if pending == 0 {
            self.settle(now, id, io);
        }
        keeps
    }

    /// All operations of a change, copy or flush are over.
    #[inline]
    fn settle(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        if self.flights[id].refused.is_some() {
            self.refused_by_others(id, io);
        }
        let Flight { job, refused, plan, kind, wrote, late, fua, phase, missed, needs_epoch, clears, .. } =
            self.flights[id];
        if let (Job::Host(ticket), Plan::Change, Kind::Write, None) = (job, plan, kind, refused)
            && (late, missed, clears) == (0, 0, false)
            && needs_epoch <= self.recorded
            && wrote & self.in_sync() != 0
        {
            // Nearly all: every leg in use has it, and nothing must come on record before the answer.
            self.unlock(now, id);
            self.flights.free(id);
            self.commands -= 1;
            return io.done(ticket, Status::Good);
        }
        if let Some(error) = refused {
            let Flight { refusers, source, .. } = self.flights[id];
            // A source that refuses its own copy holds the same as those that took it.
            let same = plan == Plan::Flush || plan == Plan::Copy && refusers == bit(source);
            if !same && !planted_if(Bug::RefusedStaysRebuilding, || self.rebuilding() & wrote != 0) {
                let last = members(refusers).next().expect("somebody refused it");
                for leg in members(self.rebuilding() & wrote) {
                    self.give_up_ahead(leg, last, Some(error), io);
                    self.miss(id, leg);
                }
            }
            // Another leg may have taken it, and be lost by something else since: other shards read there until
            // that is on record, and what they saw must not change back after the error.
            self.miss_absent(id);
            self.flights[id].phase = Phase::AwaitingRecord;
            if late == 0 || planted(Bug::LateWriteFreesRange) {
                self.unlock(now, id);
            } else if self.flights[id].locked {
                self.stick(id);
            }
            self.try_finish(now, id, io);
            return;
        }
        if plan == Plan::Flush && self.writable() & !wrote != 0 && !planted(Bug::FlushMissesJoined) {
            return self.flush_joined(now, id, io);
        }
        let cached = wrote & self.volatile() & self.writable();
        let zeroes = plan == Plan::Change && kind != Kind::Write;
        if (fua && zeroes || clears)
            && cached != 0
            && phase == Phase::AwaitingLegs
            && !(clears && planted(Bug::ClearedBeforeFlush))
            && !planted(Bug::ZeroesNotFlushed)
        {
            self.flights[id].phase = Phase::AwaitingCache;
            self.flush_legs(now, id, cached, io);
            return;
        }
        self.flights[id].phase = Phase::AwaitingRecord;
        if !clears {
            // The order of changes is settled: those behind may go on while this one waits for the record.
            self.unlock(now, id);
        }
        self.try_finish(now, id, io);
    }

    /// Legs refused a change that were the last in sync at that moment. If one that took it is in sync by now, they are
    /// lost as any leg that fails a change, and the change is not refused.
    #[cold]
    fn refused_by_others(&mut self, id: u32, io: &mut impl ArrayIo) {
        let Flight { refused, refusers, plan, wrote, .. } = self.flights[id];
        let Some(error) = refused else { return };
        if plan == Plan::Flush || wrote & self.in_sync() == 0 || planted(Bug::RefuserStays) {
            return;
        }
        for leg in members(refusers) {
            if self.lose(leg, error, io) {
                self.miss(id, leg);
                self.flights[id].refusers &= !bit(leg);
            }
        }
        if refusers != 0 && self.flights[id].refusers == 0 {
            self.flights[id].refused = None;
        }
    }

    /// Answers the flight if nothing must come on record before. An error waits too: other shards may
    /// still read the lost leg, and who saw one value after the answer must not see another.
    #[inline]
    pub(crate) fn try_finish(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let Flight { phase, job, refused, at, missed, needs_epoch, wrote, clears, .. } = self.flights[id];
        assert_eq!(phase, Phase::AwaitingRecord);
        // A region counts as clean after a crash only when a leg that does not have the same is on
        // record as missing: reads there are answered without looking again.
        let waits = match job {
            Job::Piece => self.unclean.as_ref().is_some_and(|u| u.get(self.geometry.region(at))),
            Job::Host(_) | Job::Clear | Job::Edge => true,
            Job::Heal { .. } | Job::Scrub => false,
        };
        let early = || match job {
            Job::Host(_) if refused.is_some() && planted(Bug::ErrorBeforeRecord) => true,
            // A leg that lacks the zeroes may be kept after all, where another shard has lost the other one.
            Job::Host(_) | Job::Clear if clears => planted(Bug::ClearedBeforeRecord),
            Job::Host(_) => planted(Bug::LossNotAwaited),
            Job::Clear | Job::Edge | Job::Piece | Job::Heal { .. } | Job::Scrub => false,
        };
        if waits && (missed != 0 || needs_epoch > self.recorded) && !early() {
            // Shards that do not know yet that the leg is lost would read there once hosts are served again.
            let decided = missed == 0;
            if self.loss_not_on_record && decided && matches!(job, Job::Host(_)) {
                let status = match refused {
                    Some(error @ DriveError::Fenced) => status_of(error, self.shared),
                    _ => Status::NotReady,
                };
                self.over(now, id, status, io);
            }
            return;
        }
        if clears && refused.is_none() && wrote & self.in_sync() != 0 {
            return self.await_map(now, id, io);
        }
        let status = match refused {
            Some(error) => status_of(error, self.shared),
            // Every leg that has it was lost meanwhile, and one that lacks it was not.
            None if wrote & self.in_sync() == 0 => Status::NotReady,
            None => Status::Good,
        };
        self.over(now, id, status, io);
    }

    /// The end of a flight: the answer, and what follows from it.
    #[inline]
    pub(crate) fn over(&mut self, now: Instant, id: u32, status: Status, io: &mut impl ArrayIo) {
        let Flight { late, job, at, len, wrote, .. } = self.flights[id];
        self.answer(id, status, io);
        if late > 0 {
            self.flights[id].phase = Phase::AwaitingLate;
        } else {
            self.retire(now, id);
        }
        let good = status == Status::Good;
        match job {
            Job::Host(_) => {}
            Job::Piece => self.piece_over(len, good),
            Job::Scrub => self.scrub_written(),
            Job::Clear | Job::Edge => self.work_over(now, job, at, len, good),
            Job::Heal { leg, rest } => {
                self.heals -= 1;
                if good && wrote & bit(leg) != 0 {
                    self.counters.healed += 1;
                    io.note(Note::Healed { at, len, leg });
                    if rest > 0 {
                        self.heal(now, leg, at + len, rest, io);
                    }
                }
            }
        }
    }

    /// A given-up operation of an answered flight is really over.
    pub(crate) fn flight_late(&mut self, now: Instant, id: u32) {
        self.flights[id].late -= 1;
        if self.flights[id].late > 0 {
            return;
        }
        match self.flights[id].phase {
            Phase::AwaitingLate => self.retire(now, id),
            Phase::AwaitingRecord => self.unlock(now, id),
            Phase::AwaitingLegs | Phase::AwaitingCache => {}
            Phase::AwaitingMap => unreachable!("what was refused is not cleared"),
            Phase::AwaitingLock | Phase::AwaitingIntent | Phase::AwaitingSource | Phase::AwaitingScrub => {
                unreachable!("only changes at drives have late operations")
            }
        }
    }
}
