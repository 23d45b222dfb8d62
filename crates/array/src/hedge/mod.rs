//! Hedged reads: a read that takes far longer than its leg's reads usually do is sent to another leg
//! too. The first answer wins; the other operation goes on in the kernel, with its buffer, to its end.
//!
//! ```text
//! read at leg A ▶ late ▶ also at leg B, into another buffer ▶ one is good ▶ answered from its buffer
//!                                                              └▶ the other is a loser until it ends
//! ```
//!
//! Only reads that any leg in sync may answer are hedged, never copies and never regions that are
//! unclean since a crash: there the owner reads, and makes the legs equal first. A small pool limits hedges, to so
//! many in a hundred reads and to so many bytes (constants below). When the pool is empty, the read waits for its
//! deadline like any other. A loser that misses its deadline counts against its leg like any other read; lateness
//! alone fails no leg.
//!
//! Reads are in a list in the order of their start, linked through their operations, until they are over. A read
//! that takes longer than the floor gets a flight in a second list, which is checked until the read is
//! over. While all reads are fast the second list is empty and costs nothing.

pub(crate) mod state;

use crate::array::Array;
use crate::door::{ArrayIo, Kind};
use crate::flight::{Flight, Job, Legs, NONE, Owner, Phase, bit};
use base::{Bug, DriveError, DriveOpKind, Duration, Instant, planted};
use state::{CREDIT_FOR_ONE, CREDIT_MAX, HEDGES_MAX};

/// No read is late before this time, however fast its leg usually is.
const FLOOR: Duration = Duration::from_millis(5);
/// A read is late after this time, however slow its leg usually is: the other one must still have time.
const CEILING: Duration = Duration::from_millis(250);
/// A read is late after so many times of what is usual.
const FACTOR: u32 = 2;
/// A read is late after this time where nothing is known of its leg.
const UNKNOWN: Duration = Duration::from_millis(50);
/// How often reads beyond the floor are looked at again.
const TICK: Duration = Duration::from_millis(2);
/// Their bytes, of those whose second operation is not over.
const HEDGED_BYTES_MAX: u64 = 4 << 20;

impl Array {
    /// Legs that late reads may be sent to.
    fn hedgeable(&self) -> Legs {
        let stale = self.rebuilding();
        self.in_sync() | if stale != 0 && planted(Bug::HedgeOfRebuilding) { stale } else { 0 }
    }
    /// A host's read was sent to its first leg.
    #[inline]
    pub(crate) fn watch(&mut self, tag: u32) {
        if self.hedgeable().count_ones() < 2 {
            return;
        }
        let hedging = &mut self.hedging;
        hedging.credit = (hedging.credit + 1).min(CREDIT_MAX);
        let before = core::mem::replace(&mut hedging.young.tail, tag);
        let op = &mut self.ops[tag];
        op.watched = true;
        op.previous = before;
        match before {
            NONE => self.hedging.young.head = tag,
            before => self.ops[before].next = tag,
        }
    }
    /// A read without a flight is over, or gets one.
    #[inline]
    pub(crate) fn leave_young(&mut self, previous: u32, next: u32) {
        match previous {
            NONE => self.hedging.young.head = next,
            at => self.ops[at].next = next,
        }
        match next {
            NONE => self.hedging.young.tail = previous,
            at => self.ops[at].previous = previous,
        }
    }
    /// A young read gets a flight and a place in the list of those that are looked at.
    fn grow_old(&mut self, tag: u32) {
        let id = self.give_flight(tag);
        let tail = self.hedging.reads.tail;
        let flight = &mut self.flights[id];
        flight.watched = true;
        flight.previous = tail;
        flight.next = NONE;
        match tail {
            NONE => self.hedging.reads.head = id,
            tail => self.flights[tail].next = id,
        }
        self.hedging.reads.tail = id;
    }
    /// It can be late no more.
    pub(crate) fn unwatch(&mut self, id: u32) {
        let flight = &mut self.flights[id];
        if !core::mem::take(&mut flight.watched) {
            return;
        }
        let previous = core::mem::replace(&mut flight.previous, NONE);
        let next = core::mem::replace(&mut flight.next, NONE);
        match previous {
            NONE => self.hedging.reads.head = next,
            at => self.flights[at].next = next,
        }
        match next {
            NONE => self.hedging.reads.tail = previous,
            at => self.flights[at].previous = previous,
        }
    }
    pub(crate) fn hedge_deadline(&self) -> Option<Instant> {
        let old = self.flights.get(self.hedging.reads.head).map(|oldest| oldest.since);
        let young = self.ops.get(self.hedging.young.head).map(|oldest| oldest.since);
        let oldest = old.into_iter().chain(young).min()?;
        Some((oldest + FLOOR).max(self.hedging.next_at))
    }

    /// Hedges what is late.
    pub(crate) fn hedge_tick(&mut self, now: Instant, io: &mut impl ArrayIo) {
        if now < self.hedging.next_at {
            return;
        }
        while let Some(oldest) = self.ops.get(self.hedging.young.head)
            && now.since(oldest.since) >= FLOOR
        {
            self.grow_old(self.hedging.young.head);
        }
        let mut id = self.hedging.reads.head;
        while id != NONE {
            let Flight { next, since, source, len, .. } = self.flights[id];
            let age = now.since(since);
            if age < FLOOR {
                break;
            }
            self.hedging.next_at = now + TICK;
            let usual = self.legs[source].latency.usual(len);
            if age >= usual.map_or(UNKNOWN, |usual| (usual * FACTOR).clamp(FLOOR, CEILING)) {
                self.unwatch(id);
                self.legs[source].latency.late(len, age);
                self.hedge(now, id, io);
            }
            id = next;
        }
    }

    fn hedge(&mut self, now: Instant, id: u32, io: &mut impl ArrayIo) {
        let Flight { job, source, tried, len, data, at, kind, phase, .. } = self.flights[id];
        assert!(kind == Kind::Read && phase == Phase::AwaitingSource, "only reads under way are watched");
        let Job::Host(ticket) = job else { unreachable!("only hosts' reads are watched") };
        let pool = &self.hedging;
        let empty =
            pool.credit < CREDIT_FOR_ONE || pool.out == HEDGES_MAX || pool.out_bytes + len > HEDGED_BYTES_MAX;
        let legs = self.hedgeable() & !tried & !bit(source);
        if empty || legs == 0 {
            return;
        }
        let Some(buffer) = io.hedge_buffer(ticket, data) else { return };
        assert_eq!(buffer.len, data.len, "a hedge reads as much as its read");
        let leg = self.choose_among(now, legs, at, len).expect("there is a leg, as was seen above");
        self.hedging.credit -= CREDIT_FOR_ONE;
        self.hedging.sent += 1;
        self.hedging.out += 1;
        self.hedging.out_bytes += len;
        let drive_at = self.geometry.data_at + at;
        let owner = Owner::Flight(id);
        let tag = self.submit(now, owner, leg, DriveOpKind::Read, drive_at, len, buffer, false, None, io);
        self.ops[tag].share = true;
        let flight = &mut self.flights[id];
        flight.hedge = tag;
        flight.hedge_data = buffer;
        flight.pending += 1;
    }

    /// One of the two operations of a hedged read was good: the other one is not needed any more.
    pub(crate) fn settle_hedge(&mut self, id: u32, winner: u32, io: &mut impl ArrayIo) {
        let Flight { job, first, hedge, data, hedge_data, pending, .. } = self.flights[id];
        if hedge == NONE {
            return;
        }
        let Job::Host(ticket) = job else { unreachable!("only hosts' reads are hedged") };
        let won = winner == hedge;
        if pending > 0 {
            let loser = if won { first } else { hedge };
            self.disown_read(loser, io);
            self.flights[id].pending -= 1;
            if won {
                // The pool counts the memory of operations that are still at a drive.
                self.ops[loser].share = true;
                self.hedging.out += 1;
                self.hedging.out_bytes += u64::from(data.len);
            }
        }
        self.flights[id].hedge = NONE;
        if won {
            self.hedging.won += 1;
            let moved = io.answer_from_hedge(ticket, data, hedge_data, true);
            assert!(moved, "what was read is taken");
            self.flights[id].data = hedge_data;
        } else {
            io.drop_hedge(ticket, hedge_data);
        }
    }

    /// One of the two operations of a hedged read failed: the other one is waited for alone. False if
    /// there is none, and the read must go on by itself.
    pub(crate) fn hedge_failed(
        &mut self,
        id: u32,
        tag: u32,
        error: DriveError,
        io: &mut impl ArrayIo,
    ) -> bool {
        let Flight { job, hedge, data, hedge_data, pending, .. } = self.flights[id];
        let Job::Host(ticket) = job else { unreachable!("only hosts' reads are hedged") };
        if tag == hedge {
            self.flights[id].hedge = NONE;
            io.drop_hedge(ticket, hedge_data);
            return pending > 0;
        }
        if error != DriveError::TimedOut {
            return true;
        }
        // What was given up may still arrive in the first buffer: the answer comes from the other one.
        self.flights[id].hedge = NONE;
        if io.answer_from_hedge(ticket, data, hedge_data, false) {
            self.flights[id].first = hedge;
            self.flights[id].data = hedge_data;
            return true;
        }
        self.disown_read(hedge, io);
        self.flights[id].pending -= 1;
        io.drop_hedge(ticket, hedge_data);
        false
    }

    /// The operation runs to its end and keeps its memory until then, but nothing waits for it.
    fn disown_read(&mut self, tag: u32, io: &mut impl ArrayIo) {
        let op = &mut self.ops[tag];
        op.owner = Owner::Loser;
        if !planted(Bug::LoserBufferFree) {
            op.held = true;
            io.hold(tag, op.data);
        }
    }
}
