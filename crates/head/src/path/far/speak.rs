//! What goes to far shards and comes from them, beside their connections: commands, answers, and what becomes of both when a
//! connection is over.

use super::wire::Message;
use super::{FarLink, Out, Sent};
use crate::mail::{FlightId, Mail, ShardMail, to_shard};
use crate::path::request::{Owner, Parked, Phase};
use crate::shard::{ArrayState, Core};
use array::Kind;
use base::{Bug, Effects, Instant, Memory, Slice, Status, planted};

impl<M: Memory> Core<M> {
    /// Writes to another shard, of either head.
    #[inline]
    pub fn send_to_shard(&mut self, shard: u16, mail: ShardMail, fx: &mut Effects<Mail>) {
        match shard.checked_sub(self.shards) {
            None => fx.push(to_shard(shard, mail)),
            Some(far) => self.send_to_far(far, mail),
        }
    }
    #[inline(never)]
    fn send_to_far(&mut self, far: u16, mail: ShardMail) {
        // Letters to a head that is gone are dropped.
        let Some(link) = self.far.get_mut(usize::from(far)) else { return };
        match mail {
            ShardMail::Run { flight, array, map, command, whose } => {
                link.run(flight, Sent { array, map, command, whose, aborted: false });
            }
            ShardMail::Abort { flight, array } => link.abort(flight, array),
            ShardMail::Heal { array, map, at, len, leg } => {
                link.say(Message::Heal { array, map, at, len, leg: leg as u8 });
            }
            ShardMail::Cleared { array, map, region, marks } => {
                link.say(Message::Cleared { array, map, region, marks });
            }
            ShardMail::Lease { volume, kind, cost } => link.say(Message::Lease { volume, kind, cost }),
            ShardMail::Leased { volume, kind, cost } => link.say(Message::Leased { volume, kind, cost }),
            other => unreachable!("this letter goes to no far shard: {other:?}"),
        }
    }
    /// Where a command is carried out on an array of which this head does not reach every leg. A flush goes to the head that reaches all:
    /// what that one has written may lie in a cache that no flush from here gets to. None: that head is gone.
    #[cold]
    pub fn place_by_path(&self, state: &ArrayState, kind: Kind, at: u64, len: u64) -> Option<u16> {
        let far = self.far.len() as u16;
        match kind {
            Kind::Flush if planted(Bug::FlushHere) => Some(self.id),
            Kind::Flush => (far > 0).then(|| self.shards + self.id % far),
            Kind::Read if state.array.reaches_leg() && state.array.read_is_local(at, len) => Some(self.id),
            Kind::Read | Kind::Write | Kind::WriteZeroes | Kind::Deallocate => Some(state.array.lane_of(at)),
        }
    }
    /// A command of a far shard has ended here.
    #[inline(never)]
    pub fn answer_far(&mut self, far: u16, flight: FlightId, status: Status, age: u64, zeroes: bool) {
        if let Some(link) = self.far.get_mut(usize::from(far)) {
            link.answers(flight, status, age, zeroes);
        }
    }
    /// The far shard whose memory this is.
    pub fn far_of(&mut self, data: Slice) -> Option<&mut FarLink> {
        self.far.iter_mut().chain(&mut self.far_left).find(|link| link.has_granted(data))
    }
    /// A far shard can be sent something again: requests that wait for it join the queue of turns.
    pub fn far_has_credit(&mut self, far: u16) {
        let waits = &mut self.far[usize::from(far)].waits;
        self.turns.extend(waits.drain(..));
    }
    /// A request waits for a far shard.
    #[inline(never)]
    pub fn wait_for_far(&mut self, far: u16, index: u32) {
        self.requests[index].phase = Phase::Turn;
        let link = self.far.get_mut(usize::from(far));
        link.map_or(&mut self.far_waits, |link| &mut link.waits).push_back(index);
    }
    /// All requests that wait for far shards join the queue of turns: other shards may have their lanes now.
    pub fn wait_for_far_no_more(&mut self) {
        self.turns.extend(self.far_waits.drain(..));
        self.far.iter_mut().for_each(|link| self.turns.extend(link.waits.drain(..)));
    }
    /// It does so no more.
    #[inline(never)]
    pub fn wait_for_no_far(&mut self, index: u32) {
        for waits in self.far.iter_mut().map(|link| &mut link.waits).chain([&mut self.far_waits]) {
            if let Some(at) = waits.iter().position(|i| *i == index) {
                waits.remove(at);
                self.turns.push_back(index);
            }
        }
    }
    /// A far shard has greeted, and was: what was sent to it before is sent again, but for what was given up.
    pub fn far_begins(&mut self, now: Instant, far: u16, connection: u32, credit: u32) {
        let link = &mut self.far[usize::from(far)];
        let given_up: Vec<u32> =
            link.all_sent().into_iter().filter(|f| link.sent(*f).is_some_and(|s| s.aborted)).collect();
        let given_up = if planted(Bug::ResentAfterAbort) { vec![] } else { given_up };
        for flight in &given_up {
            link.ran(*flight, true);
        }
        link.begins(connection, credit);
        for flight in given_up {
            self.far_landed(now, flight, Status::Aborted);
        }
        self.far_has_credit(far);
        self.ask_limiters_again(now, self.shards + far);
    }
    fn far_landed(&mut self, now: Instant, flight: u32, status: Status) {
        // A request's flights alone are at far shards.
        self.flight_landed(now, flight, status, now, &mut vec![]);
    }
    /// A far shard's connection is over. Commands that it had sent and that have not begun never start; those at drives end without an answer.
    pub fn far_ends(&mut self, far: u16, incoming: Option<Slice>) {
        let shard = self.shards + far;
        let mut gone: Vec<FlightId> = vec![];
        let mut is_theirs = |p: &Parked| {
            let theirs = p.shard == shard;
            if theirs {
                gone.push(p.flight);
            }
            !theirs
        };
        self.parked.retain(&mut is_theirs);
        self.early.retain(&mut is_theirs);
        let waiting: Vec<_> =
            self.peers.iter().filter(|(_, p)| p.shard == shard).map(|(_, p)| (p.array, p.flight)).collect();
        for (array, flight) in waiting {
            self.take_from_waiters(array, shard, flight);
            gone.push(flight);
        }
        let pairing = self.far_pairing;
        let link = &mut self.far[usize::from(far)];
        if let Some(data) = incoming {
            link.release(data);
        }
        gone.into_iter().for_each(|flight| link.forgets(flight));
        for (_, flight) in self.flights.iter_mut() {
            if let Owner::Peer { shard: from, flight: id } = flight.owner
                && from == shard
                && let Some(data) = link.outlives(id)
            {
                flight.owner = Owner::Gone { far, pairing, data };
            }
        }
        for out in core::mem::take(&mut link.out) {
            if let Out::Ran(_, data) = out {
                link.release(data);
            }
        }
        let sending: Vec<u32> = link.sending.iter().map(|(i, _)| i).collect();
        for index in sending {
            let data = link.sending.remove(index);
            link.release(data);
        }
    }
    /// The other head is out: what was sent to it is done anew, by whoever has the lanes then.
    pub fn far_is_gone(&mut self, mut link: FarLink) {
        self.far_waits.append(&mut link.waits);
        for flight in link.all_sent() {
            let sent = link.ran(flight, true).expect("just seen");
            let Owner::Request(index) = self.flights.remove(flight).owner else { continue };
            let request = &mut self.requests[index];
            request.flights -= 1;
            request.again = true;
            request.aborted = request.aborted || sent.aborted;
            request.bereft = true;
            request.cursor = request.length;
            if request.flights == 0 && request.phase == Phase::Flights {
                let status = request.status;
                self.end(index, status);
            }
        }
        self.far_left_stale += link.stale;
        self.far_left.push(link);
    }
    /// Nobody has the lanes of far shards that are gone: what concerns them waits until they are dealt anew.
    pub fn forsake_arrays(&mut self) {
        let shards = self.shards;
        for state in self.arrays.iter_mut().flatten() {
            state.bereft = state.array.is_bereft_of(shards);
        }
    }
    /// A command has ended that a far shard had sent, by a connection that is over.
    #[inline(never)]
    pub fn far_outlived(&mut self, far: u16, pairing: u32, data: Slice) {
        if pairing == self.far_pairing {
            self.far[usize::from(far)].stale -= 1;
        } else {
            self.far_left_stale -= 1;
        }
        if let Some(link) = self.far_of(data).filter(|_| data.len > 0) {
            link.release(data);
        }
    }
    /// Memory that was granted to shards of a head that is gone is this shard's again, once no drive has any of it. True when nothing is under
    /// way any more that they had sent, once.
    pub fn far_is_left(&mut self) -> bool {
        let mut left = core::mem::take(&mut self.far_left);
        left.retain(|link| {
            let free = link.is_free();
            if free {
                for run in link.runs() {
                    self.buffers.release(*run);
                }
            }
            !free
        });
        self.far_left = left;
        let parted = self.far_parts && self.far_left_stale == 0;
        self.far_parts &= !parted;
        parted
    }
    /// Each kind of thing that may be under way with far shards, and whether nothing is.
    pub fn far_idle_parts(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let left = [("left memory", self.far_left.is_empty()), ("left commands", self.far_left_stale == 0)];
        self.far.iter().flat_map(FarLink::idle_parts).chain(left)
    }
}
