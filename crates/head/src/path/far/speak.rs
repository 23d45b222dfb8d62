//! What goes to far shards and comes from them, beside their connections: commands, answers, and what becomes of both when a
//! connection is over.

use super::wire::Message;
use super::{FarLink, Out, Sent};
use crate::layout::ArrayId;
use crate::limits;
use crate::mail::{FlightId, Mail, ShardMail, to_shard};
use crate::path::request::{Owner, Parked, Phase};
use crate::shard::{ArrayState, Core};
use array::{ArrayCommand, Kind, Ticket};
use base::{Bug, DriveId, Duration, Effects, Instant, Memory, Op, Slice, Status, planted, planted_if};

/// How long a read that finds no leg is tried again.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// Where a command is carried out on an array of which this head does not reach every leg, as far as it was told or as a read that
    /// `failed` has found. What a head does not reach goes to the head that does: a read of which no leg in sync is reached here; and a
    /// flush, as what the other head has written may lie in a cache that no flush from here gets to. None: that head is gone.
    #[cold]
    pub fn place_by_path(
        &self,
        state: &ArrayState,
        (kind, at, len): (Kind, u64, u64),
        failed: bool,
    ) -> Option<u16> {
        let far = self.far.len() as u16;
        match kind {
            Kind::Flush if planted(Bug::FlushHere) => Some(self.id),
            Kind::Flush => (far > 0).then(|| self.shards + self.id % far),
            Kind::Read if self.reads_here(state, at, len, failed) => Some(self.id),
            Kind::Read | Kind::Write | Kind::WriteZeroes | Kind::Deallocate => Some(state.array.lane_of(at)),
        }
    }
    fn reads_here(&self, state: &ArrayState, at: u64, len: u64, failed: bool) -> bool {
        let other_has_lane = state.array.lane_of(at) >= self.shards;
        let reached = state.array.reaches_leg() && !state.path_lost && !(failed && other_has_lane);
        state.array.read_is_local(at, len) && (reached || planted(Bug::ReadsIgnoreReach))
    }
    /// How a part of a request has ended that was carried out here: a read that found no leg moves.
    #[inline]
    pub fn ended_here(&mut self, now: Instant, index: u32, status: Status) -> Status {
        if status == Status::NotReady && self.reads_again(now, index) { Status::Moved } else { status }
    }
    /// Whether a read that found no leg is done again. While a path is lost, lanes move to the head that reaches the drive, or the head
    /// without the path ends: hosts that were told to wait would wait for longer.
    #[cold]
    #[inline(never)]
    fn reads_again(&mut self, now: Instant, index: u32) -> bool {
        let request = &self.requests[index];
        let reads = matches!(request.command.op, Op::Read | Op::Compare);
        let volume = self.volumes.get(request.command.volume.index()).and_then(Option::as_ref);
        let ready = !self.far.is_empty() && volume.is_some_and(|v| v.ready);
        // A drive that was late may fill its buffer yet.
        let own = request.detour.is_none();
        let soon = request.unreached.is_none() || now.since(request.started) < PATIENCE;
        if !reads || !ready || !own || !soon || planted(Bug::ReadsIgnoreReach) {
            return false;
        }
        self.requests[index].unreached = Some(now + limits::OP_SCAN);
        true
    }
    /// This head has let go of a drive, as it has no path to it any more. The other head does all of an array of which this one has no
    /// lanes. What it has lanes of is dealt anew by the head that leads.
    pub fn loses_path(&mut self, drive: DriveId) {
        let shards = self.shards;
        for state in self.arrays.iter_mut().flatten() {
            if state.array.uses(drive) && !state.array.has_lanes_below(shards) {
                state.lacks_path = true;
                state.path_lost = true;
            }
        }
    }
    /// A peer sent a command here perhaps only because it does not know that the region has no uncleared pieces any more.
    pub fn send_cleared(
        &mut self,
        peer: u16,
        array: ArrayId,
        command: &ArrayCommand,
        fx: &mut Effects<Mail>,
    ) {
        let Some(state) = self.arrays.get(array.index()).and_then(Option::as_ref) else { return };
        if (command.kind == Kind::Read || !state.array.geometry().redundant())
            && let Some((region, marks)) = state.array.cleared_region(command.at)
        {
            let mail = ShardMail::Cleared { array, map: state.map, region, marks };
            self.send_to_shard(peer, mail, fx);
        }
    }
    /// A peer's command has ended here.
    pub fn answer_peer(
        &mut self,
        owner: Owner,
        status: Status,
        (issued, zeroes): (Instant, Slice),
        now: Instant,
        fx: &mut Effects<Mail>,
    ) {
        let Owner::Peer { shard, flight } = owner else { panic!("only a peer is answered by mail") };
        match shard.checked_sub(self.shards) {
            None => fx.push(to_shard(shard, ShardMail::Ran { flight, status, issued, zeroes })),
            Some(far) => {
                let age = now.0.saturating_sub(issued.0);
                self.answer_far(far, flight, status, age, zeroes.len > 0);
            }
        }
    }
    /// A peer's host gave up a command that flies here.
    pub fn abort_for_peer(
        &mut self,
        now: Instant,
        shard: u16,
        flight: FlightId,
        array: ArrayId,
        fx: &mut Effects<Mail>,
    ) {
        let owner = Owner::Peer { shard, flight };
        if let Some(i) = self.parked.iter().position(|p| p.shard == shard && p.flight == flight) {
            self.parked.remove(i);
            self.answer_peer(owner, Status::Aborted, (now, Slice::default()), now, fx);
            return;
        }
        if let Some(i) = self.early.iter().position(|p| p.shard == shard && p.flight == flight) {
            self.early.remove(i);
            self.answer_peer(owner, Status::Aborted, (now, Slice::default()), now, fx);
            return;
        }
        if self.take_from_waiters(array, shard, flight) {
            self.answer_peer(owner, Status::Aborted, (now, Slice::default()), now, fx);
            return;
        }
        let found = self.flights.iter().find(|(_, f)| f.owner == owner).map(|(index, _)| index);
        // If it is not here its answer is in the mail already.
        if let Some(index) = found {
            self.with_array(now, array, fx, |a, io| a.on_abort(now, Ticket(u64::from(index)), io));
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
    /// A far shard sends a part of a request back: it had no memory in one piece, or another map. In the shortest parts it has memory for
    /// all that it gives credit for.
    pub fn far_sends_back(&mut self, flight: u32) {
        if let Owner::Request(index) = self.flights[flight].owner {
            self.requests[index].in_pages = true;
        }
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
    /// A far shard has greeted, and was: what was sent to it before is sent again, but for what was given up and what it has no memory for.
    pub fn far_begins(&mut self, now: Instant, far: u16, connection: u32, credit: u32) {
        let link = &mut self.far[usize::from(far)];
        let given_up: Vec<u32> =
            link.all_sent().into_iter().filter(|f| link.sent(*f).is_some_and(|s| s.aborted)).collect();
        let resent = !given_up.is_empty() && planted(Bug::ResentAfterAbort);
        let given_up = if resent { vec![] } else { given_up };
        for flight in &given_up {
            link.ran(*flight, true);
        }
        let rest = link.begins(connection, credit);
        for flight in given_up {
            self.far_landed(now, flight, Status::Aborted);
        }
        // Their requests are done anew, and wait here for credit.
        for flight in rest {
            self.far_landed(now, flight, Status::Moved);
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
        if !planted_if(Bug::EarlyStays, || self.early.iter().any(|p| p.shard == shard)) {
            self.early.retain(&mut is_theirs);
        }
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
            let (data, _) = link.sending.remove(index);
            if !planted_if(Bug::HalfSentStays, || data.len > 0) {
                link.release(data);
            }
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
            request.aborted = (request.aborted || sent.aborted) && !planted(Bug::AbortForgotten);
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
