//! Flow: the order of the rooms. volume ─▶ pool ─▶ array ─▶ drive, and the way back.
//!
//! A request is cut into spans (one array, one region), each carried out by a flight: here, or on the
//! shard that owns the region. When all flights of a request have ended, its connection completes it. When
//! flights run out, requests wait for their turn; when an array has no credit left, they wait there (`waiters`). Nothing
//! is refused.

use crate::admission::buffers::PAGE;
use crate::admission::scheduler::cost_of;
use crate::layout::{ArrayId, ArrayLayout, VolumeLayout};
use crate::limits;
use crate::mail::{FlightId, Mail, ShardMail};
use crate::path::door::Door;
use crate::path::request::{Flight, Landed, Owner, Phase, worse};
use crate::path::stages::UNTIMED;
use crate::report::DriveReport;
use crate::shard::{ArrayState, Core};
use array::{Array, ArrayCommand, ArrayIo, Kind, LegState, Note, OpView, Ticket};
use base::{
    Bug, DriveError, DriveId, DriveOp, DriveOpKind, Effect, Effects, Instant, Memory, Slice, Slots, Status,
    Token, planted,
};

/// Takes an array's effects, while the array is out of its place in the core.
pub(crate) struct Sink<'a, M: Memory> {
    now: Instant,
    /// When the operation had started whose end the array hears of, or now.
    issued: Instant,
    array: ArrayId,
    /// Commands that have ended: so many credits are free once the array is back in its place.
    ended: u32,
    core: &'a mut Core<M>,
    fx: &'a mut Effects<Mail>,
}

/// Drives that a write goes to.
pub(super) fn legs_of(layout: &ArrayLayout) -> u32 {
    let writable = |leg: &&array::Leg| leg.state != LegState::Missing;
    layout.membership.legs.iter().flatten().filter(writable).count().max(1) as u32
}

/// Marks the ticket of a command that is all of its request: it needs no flight of the shard's.
const WHOLE: u64 = 1 << 63;

/// Scratch memory of an instance, bytes.
pub(super) fn scratch_bytes(redundant: bool) -> u32 {
    if redundant { array::SCRATCH_BYTES } else { array::SINGLE_SCRATCH_BYTES }
}

/// An operation of an array as the world knows it. Arrays get a new number each, so a token is never used for two
/// operations at a time, however long the kernel keeps one.
pub(super) fn token_of(array: ArrayId, tag: u32) -> Token {
    Token(u64::from(array.0) << 32 | u64::from(tag))
}

/// The inverse of `token_of`.
fn parts_of(token: Token) -> (ArrayId, u32) {
    (ArrayId((token.0 >> 32) as u16), token.0 as u32)
}

/// The request that `ticket` belongs to, if it is one of this shard.
fn request_of(flights: &Slots<Flight>, ticket: Ticket) -> Option<u32> {
    if ticket.0 & WHOLE != 0 {
        return Some(ticket.0 as u32);
    }
    match flights[ticket.0 as u32].owner {
        Owner::Request(index) => Some(index),
        Owner::Peer { .. } | Owner::Gone { .. } => None,
    }
}

impl<M: Memory> ArrayIo for Sink<'_, M> {
    fn drive(&mut self, mut op: DriveOp) {
        figures(&mut self.core.drives, op.drive).in_flight += 1;
        op.token = token_of(self.array, op.token.0 as u32);
        self.core.op_scan.get_or_insert(self.now + limits::OP_SCAN);
        self.fx.push(Effect::Drive(op));
    }
    fn done(&mut self, ticket: Ticket, status: Status) {
        self.ended += 1;
        if ticket.0 & WHOLE != 0 {
            self.core.whole_landed(self.now, ticket.0 as u32, status, self.issued);
        } else {
            self.core.landed.push_back(Landed { flight: ticket.0 as u32, status, issued: self.issued });
        }
    }
    fn zeroes(&mut self, ticket: Ticket, data: Slice) {
        match request_of(&self.core.flights, ticket) {
            Some(_) => self.core.fill_zeroes(data),
            // A peer's memory is the peer's to write.
            None => self.core.flights[ticket.0 as u32].zeroes = data,
        }
    }
    fn note(&mut self, note: Note) {
        self.core.notes.push_back((self.array, note));
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.core.memory.bytes_mut(data)
    }
    fn same(&mut self, a: Slice, b: Slice) -> bool {
        self.core.memory.bytes(a) == self.core.memory.bytes(b)
    }
    fn replace_buffer(&mut self, ticket: Ticket, old: Slice) -> Option<Slice> {
        // A peer's read (a region dirty since a crash) is answered with `NotReady` and comes again.
        let index = request_of(&self.core.flights, ticket)?;
        let request = &mut self.core.requests[index];
        let first = request.read_into()?;
        let detour = request.detour();
        let second = match detour.second {
            Some(second) => second,
            None => self.core.buffers.take_second(first.len)?,
        };
        detour.second = Some(second);
        // A read that hangs a second time hangs in the second buffer: there is no third.
        let offset = u32::try_from(old.at.checked_sub(first.at)?).ok().filter(|o| *o < first.len)?;
        detour.seconds.push((offset, old.len));
        Some(second.part(offset, old.len))
    }
    fn hedge_buffer(&mut self, ticket: Ticket, old: Slice) -> Option<Slice> {
        let index = request_of(&self.core.flights, ticket)?;
        let request = &mut self.core.requests[index];
        let first = request.read_into().filter(|_| request.hedge().is_none())?;
        let offset = u32::try_from(old.at.checked_sub(first.at)?).ok().filter(|o| *o < first.len)?;
        // Hosts' commands come first: a hedge must not make them wait for memory.
        let hedge = self.core.buffers.take_spare(first.len)?;
        request.detour().hedge = Some(hedge);
        Some(hedge.part(offset, old.len))
    }
    fn answer_from_hedge(&mut self, ticket: Ticket, old: Slice, hedge: Slice, read: bool) -> bool {
        let index = request_of(&self.core.flights, ticket).expect("only requests of this shard are hedged");
        let detour = self.core.requests[index].detour();
        let whole = detour.hedge.expect("a hedge has its buffer");
        let part = ((hedge.at - whole.at) as u32, old.len);
        match detour.second {
            None => detour.second = detour.hedge.take(),
            Some(second) if read => {
                self.core.memory.copy(hedge, second.part(part.0, part.1));
                self.core.buffers.release(whole);
                detour.hedge = None;
            }
            Some(_) => return false,
        }
        detour.seconds.push(part);
        true
    }
    fn drop_hedge(&mut self, ticket: Ticket, _: Slice) {
        let index = request_of(&self.core.flights, ticket).expect("only requests of this shard are hedged");
        let whole = self.core.requests[index].detour().hedge.take().expect("a hedge has its buffer");
        self.core.buffers.release(whole);
    }
    fn hold(&mut self, _: u32, data: Slice) {
        self.core.buffers.hold(data);
    }
}

#[inline]
pub(super) fn figures(drives: &mut Vec<DriveReport>, drive: DriveId) -> &mut DriveReport {
    if drives.len() <= drive.index() {
        add_figures(drives, drive);
    }
    &mut drives[drive.index()]
}

/// A drive is used for the first time.
#[cold]
fn add_figures(drives: &mut Vec<DriveReport>, drive: DriveId) {
    let from = drives.len()..=drive.index();
    drives.extend(from.map(|i| DriveReport { drive: DriveId(i as u16), ..DriveReport::default() }));
}

/// What became of an attempt to start a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    /// Everything that may start now has started.
    Yes,
    /// Something has to end first.
    Blocked,
    /// This array has no credit left, or others wait for one.
    Full(ArrayId),
    /// This far shard takes nothing at the moment.
    Far(u16),
}

/// One array's part of a command.
struct Span {
    array: ArrayId,
    at: u64,
    len: u64,
}

impl<M: Memory> Core<M> {
    /// Starts what waits: peers' commands, waiters of arrays that have credits again, and new requests.
    ///
    /// What waits for parts of commands that may be under way holds up the shard's own commands alone. Those of peers hold
    /// a slot elsewhere already: two shards that have all their own parts at each other go on by them.
    pub fn start_turns(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.run_limiters(now, fx);
        let parked = self.start_parked(now, fx);
        if self.serve_all_waiters(now, fx) == Started::Blocked || parked == Started::Blocked {
            return;
        }
        while let Some(index) = self.turns.front().copied() {
            match self.start(now, index, None, fx) {
                Started::Yes => {}
                Started::Blocked => break,
                Started::Full(array) => self.wait_at(array, index, false),
                Started::Far(far) => self.wait_for_far(far, index),
            }
            self.turns.pop_front();
        }
    }

    /// Carries on with a request as far as it goes. `granted`: the array whose next credit is its own.
    pub fn start(
        &mut self,
        now: Instant,
        index: u32,
        granted: Option<ArrayId>,
        fx: &mut Effects<Mail>,
    ) -> Started {
        if self.start_whole(now, index, granted, fx) {
            return Started::Yes;
        }
        self.start_parts(now, index, granted, fx)
    }

    /// Starts a command in parts, or goes on with it.
    #[inline(never)]
    fn start_parts(
        &mut self,
        now: Instant,
        index: u32,
        mut granted: Option<ArrayId>,
        fx: &mut Effects<Mail>,
    ) -> Started {
        let request = &self.requests[index];
        if self.layout.waits || request.bereft && request.aborted {
            return Started::Far(u16::MAX);
        }
        if !self.requests[index].begun {
            match self.begin(index) {
                Ok(()) => {}
                Err(status) => {
                    self.end(index, status);
                    return Started::Yes;
                }
            }
        }
        loop {
            let request = &self.requests[index];
            if request.cursor >= request.length {
                break;
            }
            if request.flights >= limits::FLIGHTS_PER_REQUEST {
                self.requests[index].phase = Phase::Flights;
                return Started::Yes;
            }
            let started = self.launch(now, index, granted.take(), fx);
            if started != Started::Yes {
                return started;
            }
        }
        let request = &mut self.requests[index];
        request.phase = Phase::Flights;
        if request.flights == 0 {
            let status = request.status;
            self.end(index, status);
        }
        Started::Yes
    }

    /// Starts a read or write that is all in one place of one array, on this shard: nearly all are. False:
    /// it has to go the long way.
    #[inline]
    pub fn start_whole(
        &mut self,
        now: Instant,
        index: u32,
        granted: Option<ArrayId>,
        fx: &mut Effects<Mail>,
    ) -> bool {
        let request = &self.requests[index];
        let (command, data) = (request.command, request.data);
        let kind = match command.op {
            base::Op::Read => Kind::Read,
            base::Op::Write => Kind::Write,
            _ => return false,
        };
        let volume = self.volumes.get(command.volume.index()).and_then(Option::as_ref);
        let Some(volume) = volume.filter(|v| v.ready && !request.begun && !request.aborted) else {
            return false;
        };
        let length = u64::from(data.len);
        let fits = command.at.checked_add(command.blocks).is_some_and(|end| end <= volume.blocks);
        if !fits || length == 0 || command.blocks * u64::from(volume.block_bytes) != length {
            return false;
        }
        let at = command.at * u64::from(volume.block_bytes);
        let Span { array, at, len } = self.place(request.door, volume, at, length);
        let state = self.arrays[array.index()].as_mut().expect("a pool's arrays are in its layout");
        let here = match kind {
            Kind::Read => state.array.read_is_local(at, len),
            _ => state.array.owner(at) == self.id,
        };
        if len < length
            || !here
            || state.lacks_path
            || state.rest.is_halted()
            || !state.has_credit(granted == Some(array))
        {
            return false;
        }
        let request = &mut self.requests[index];
        state.window.on_start(cost_of(len), request.little);
        request.begun = true;
        request.length = length;
        request.cursor = length;
        request.flights = 1;
        request.whole = Some(array);
        request.phase = Phase::Flights;
        if request.timed != UNTIMED {
            self.timing.handed(request.timed, now);
        }
        let command = ArrayCommand { kind, at, len, data, fua: command.fua };
        self.take_off(now, Ticket(WHOLE | u64::from(index)), array, command, fx);
        true
    }

    /// Checks a command and prepares its request.
    fn begin(&mut self, index: u32) -> Result<(), Status> {
        let request = &self.requests[index];
        let command = request.command;
        if request.aborted {
            return Err(Status::Aborted);
        }
        let volume = self.volumes.get(command.volume.index()).and_then(Option::as_ref);
        let volume = volume.ok_or(Status::NoVolume)?;
        let end = command.at.checked_add(command.blocks);
        if command.op != base::Op::Flush && end.is_none_or(|end| end > volume.blocks) {
            return Err(Status::OutOfRange);
        }
        if !volume.ready {
            return Err(Status::NotReady);
        }
        let pool = self.pools[usize::from(volume.pool.0)].as_ref().expect("a volume's pool is in its layout");
        let length = match command.op {
            base::Op::Flush => pool.arrays.len() as u64,
            _ => command.blocks * u64::from(volume.block_bytes),
        };
        if matches!(command.op, base::Op::Read | base::Op::Write | base::Op::Compare) {
            assert_eq!(u64::from(request.data.len), length, "the front end brings the command's data");
        }
        let compare = match command.op {
            // A turn that waited for memory would stop those behind it, who hold some.
            base::Op::Compare if length > 0 => {
                let (buffer, length) = (request.buffer.expect("it brought data"), length as u32);
                assert!(buffer.len >= 2 * length, "the front end reserves twice the length for a compare");
                Some(buffer.tail(buffer.len - length))
            }
            _ => None,
        };
        let request = &mut self.requests[index];
        request.length = length;
        request.begun = true;
        request.compare = compare;
        Ok(())
    }

    /// Where byte `at` behind a door lies, and how many of `len` bytes from there are in one place: in one
    /// chunk, and in one region where regions have owners.
    #[inline]
    fn place(&self, door: Door, volume: &VolumeLayout, at: u64, len: u64) -> Span {
        let pool = self.pools[usize::from(volume.pool.0)].as_ref().expect("a volume's pool is in its layout");
        let (array, at, one) = match door {
            Door::Volume => {
                let (pool_at, run) = volume.map.locate(at);
                let (array, at, chunk) = pool.map.locate(pool_at);
                (array, at, chunk.min(run))
            }
            Door::Pool => pool.map.locate(at),
            Door::Array(array) => (usize::from(array), at, len),
        };
        let array = pool.arrays[array];
        let state = self.arrays[array.index()].as_ref().expect("a pool's arrays are in its layout");
        let mut len = one.min(len);
        if len > state.window.piece {
            len = len.min(state.window.piece - at % state.window.piece);
        }
        if let Some(geometry) = &state.regions {
            len = len.min(geometry.region_end(at) - at);
        }
        len = state.array.cut(at, len);
        Span { array, at, len }
    }

    /// The next span of a request.
    fn span(&self, index: u32) -> Span {
        let request = &self.requests[index];
        let volume = self.volumes[request.command.volume.index()].as_ref().expect("checked by begin");
        if request.command.op == base::Op::Flush {
            let pool = self.pools[usize::from(volume.pool.0)].as_ref().expect("checked by begin");
            return Span { array: pool.arrays[request.cursor as usize], at: 0, len: 0 };
        }
        let at = request.command.at * u64::from(volume.block_bytes) + request.cursor;
        self.place(request.door, volume, at, request.length - request.cursor)
    }

    /// Hands the next span of a request to its array.
    fn launch(
        &mut self,
        now: Instant,
        index: u32,
        granted: Option<ArrayId>,
        fx: &mut Effects<Mail>,
    ) -> Started {
        let command = self.requests[index].command;
        // A volume may go or shrink while its commands wait for a turn.
        let volume = self.volumes.get(command.volume.index()).and_then(Option::as_ref);
        if volume.is_none_or(|v| !v.ready || command.at + command.blocks > v.blocks) {
            return self.leave_rest(index);
        }
        let Span { array, at, len } = self.span(index);
        let request = &self.requests[index];
        let buffer = request.compare.unwrap_or(request.data);
        let kind = match command.op {
            base::Op::Read | base::Op::Compare => Kind::Read,
            base::Op::Write => Kind::Write,
            base::Op::WriteZeroes { .. } => Kind::WriteZeroes,
            base::Op::Deallocate => Kind::Deallocate,
            base::Op::Flush => Kind::Flush,
        };
        let data = match kind {
            Kind::Read | Kind::Write => buffer.part(request.cursor as u32, len as u32),
            Kind::WriteZeroes | Kind::Deallocate | Kind::Flush => Slice::default(),
        };
        let state = self.arrays[array.index()].as_ref().expect("a pool's arrays are in its layout");
        if state.rest.is_halted() && !planted(Bug::HaltUnheeded) {
            return Started::Full(array);
        }
        let (map, unreached, in_pages) = (state.map, request.unreached, request.in_pages);
        let place = match kind {
            _ if state.lacks_path || unreached.is_some() => {
                match self.place_by_path(state, (kind, at, len), unreached.is_some()) {
                    Some(place) => place,
                    None => return Started::Far(u16::MAX),
                }
            }
            Kind::Read if state.array.read_is_local(at, len) => self.id,
            Kind::Flush => self.id,
            Kind::Read | Kind::Write | Kind::WriteZeroes | Kind::Deallocate => state.array.owner(at),
        };
        let here = place == self.id;
        if here && unreached.is_some_and(|again| now < again) {
            self.op_scan.get_or_insert(now + limits::OP_SCAN);
            return Started::Far(u16::MAX);
        }
        if here && !state.has_credit(granted == Some(array)) {
            return Started::Full(array);
        }
        let (mut len, mut data) = (len, data);
        if let Some(far) = place.checked_sub(self.shards) {
            let there = self.far.get(usize::from(far)).filter(|_| !state.bereft);
            let Some(link) = there else { return Started::Far(u16::MAX) };
            let piece = if in_pages { PAGE } else { link.piece_max() };
            if data.len > 0 && len > piece {
                len = piece;
                data = data.head(len as u32);
            }
            if !link.takes(&ArrayCommand { kind, at, len, data, fua: command.fua }) {
                return if link.is_spent(now) { self.leave_rest(index) } else { Started::Far(far) };
            }
        }
        if self.flights.len() >= self.flights_own {
            return Started::Blocked;
        }
        let flight = Flight {
            owner: Owner::Request(index),
            array,
            at: (!here).then_some(place),
            zeroes: Slice::default(),
        };
        let Ok(flight) = self.flights.insert(flight) else { return Started::Blocked };
        let request = &mut self.requests[index];
        request.flights += 1;
        request.cursor += if kind == Kind::Flush { 1 } else { len };
        if request.timed != UNTIMED {
            self.timing.handed(request.timed, now);
        }
        let (command, little) = (ArrayCommand { kind, at, len, data, fua: command.fua }, request.little);
        if here {
            let state = self.arrays[array.index()].as_mut().expect("found above");
            state.window.on_start(cost_of(len), little);
            self.take_off(now, Ticket(u64::from(flight)), array, command, fx);
        } else {
            let mail =
                ShardMail::Run { flight: FlightId(flight), array, map, command, whose: self.whose(index) };
            self.send_to_shard(place, mail, fx);
        }
        Started::Yes
    }

    /// What has not started of a request does not start: its host is to try it again.
    #[cold]
    fn leave_rest(&mut self, index: u32) -> Started {
        let request = &mut self.requests[index];
        request.cursor = request.length;
        request.status = worse(request.status, Status::NotReady);
        Started::Yes
    }

    #[inline]
    pub fn take_off(
        &mut self,
        now: Instant,
        ticket: Ticket,
        array: ArrayId,
        command: ArrayCommand,
        fx: &mut Effects<Mail>,
    ) {
        let slot = &mut self.arrays[array.index()];
        let mut state = slot.take().expect("a command is for an array that is here");
        state.busy += 1;
        self.enter(now, now, array, state, fx, |array, io| array.on_command(now, ticket, command, io));
    }

    /// Gives one input to an array that is out of its place, and puts it back.
    #[inline]
    fn enter(
        &mut self,
        now: Instant,
        issued: Instant,
        id: ArrayId,
        mut state: Box<ArrayState>,
        fx: &mut Effects<Mail>,
        input: impl FnOnce(&mut Array, &mut Sink<'_, M>),
    ) {
        let mut sink = Sink { now, issued, array: id, ended: 0, core: self, fx };
        input(&mut state.array, &mut sink);
        let ended = sink.ended;
        if ended > 0 {
            state.busy -= ended;
            state.window.full &= state.waiters.waiting() > 0;
        }
        self.arrays[id.index()] = Some(state);
    }

    /// A command ended that its request was handed over as: this is its end.
    #[inline]
    fn whole_landed(&mut self, now: Instant, index: u32, status: Status, issued: Instant) {
        let status = self.ended_here(now, index, status);
        let request = &mut self.requests[index];
        assert!(request.whole.take().is_some(), "it had one command, which was whole");
        request.flights = 0;
        request.takes(status);
        let status = request.status;
        if request.timed != UNTIMED {
            self.timing.landed(request.timed, issued, now);
        }
        self.end(index, status);
    }

    /// A flight ended, here or on another shard.
    pub fn flight_landed(
        &mut self,
        now: Instant,
        flight: u32,
        status: Status,
        issued: Instant,
        fx: &mut Effects<Mail>,
    ) {
        let Flight { owner, at, zeroes, .. } = self.flights.remove(flight);
        match owner {
            Owner::Request(index) => {
                let timed = self.requests[index].timed;
                if timed != UNTIMED {
                    self.timing.landed(timed, issued, now);
                }
                let status = if at.is_none() { self.ended_here(now, index, status) } else { status };
                self.part_landed(index, status);
            }
            peer @ Owner::Peer { .. } => self.answer_peer(peer, status, (issued, zeroes), now, fx),
            Owner::Gone { far, pairing, data } => self.far_outlived(far, pairing, data),
        }
    }
    /// What a read found is nothing but zeroes.
    pub fn fill_zeroes(&mut self, data: Slice) {
        if data.len > 0 {
            self.memory.bytes_mut(data).fill(0);
        }
    }

    #[inline]
    fn part_landed(&mut self, index: u32, status: Status) {
        let request = &mut self.requests[index];
        request.flights -= 1;
        request.takes(status);
        if request.again || request.status != Status::Good {
            request.cursor = request.length;
        }
        if request.phase == Phase::Flights {
            if request.cursor < request.length {
                request.phase = Phase::Turn;
                self.turns.push_back(index);
            } else if request.flights == 0 {
                let status = request.status;
                self.end(index, status);
            }
        }
    }
    /// Does a request anew of which a part was at a head that is out, or found no leg.
    #[cold]
    fn begin_again(&mut self, index: u32) {
        let request = &mut self.requests[index];
        request.again = false;
        request.cursor = 0;
        request.status = Status::Good;
        request.phase = Phase::Turn;
        self.turns.push_back(index);
    }

    /// Reads under way of volumes that are not ready will not show what they find: while a loss is not on record, a
    /// crash may take it back.
    pub(super) fn unready_reads(&mut self) {
        for (_, request) in self.requests.iter_mut().filter(|(_, r)| r.phase == Phase::Flights) {
            let reads = matches!(request.command.op, base::Op::Read | base::Op::Compare);
            let volume = self.volumes.get(request.command.volume.index()).and_then(Option::as_ref);
            if reads && volume.is_none_or(|v| !v.ready) {
                request.status = worse(request.status, Status::NotReady);
            }
        }
    }

    /// A request has ended: its connection completes it in this turn.
    pub fn end(&mut self, index: u32, status: Status) {
        let request = &mut self.requests[index];
        assert_eq!(request.flights, 0, "a request ends after its flights");
        let mut status = status;
        if self.leaving && status == Status::NotReady {
            // Its loss goes on no record of the head that led before.
            request.again = true;
            status = Status::Good;
        }
        if request.again && status == Status::Good {
            if !request.aborted || request.bereft {
                return self.begin_again(index);
            }
            status = Status::Aborted;
        }
        request.status = status;
        request.phase = Phase::Completed;
        if request.detour.is_some() || request.compare.is_some() {
            self.leave_first(index);
            self.compare(index);
        }
        self.completed.push_back(index);
    }

    /// What a comparison that went well found.
    fn compare(&mut self, index: u32) {
        let request = &mut self.requests[index];
        if let (Some(found), Status::Good) = (request.compare, request.status) {
            let at = request.data;
            let differs =
                self.memory.bytes(found).iter().zip(self.memory.bytes(at)).position(|(a, b)| a != b);
            if let Some(at) = differs {
                request.status = Status::Miscompare { at: at as u32 };
            }
        }
    }

    /// A read that some drive still holds the buffer of is answered from its second one; a comparison
    /// goes by what lies there.
    fn leave_first(&mut self, index: u32) {
        let request = &mut self.requests[index];
        let (Some(first), Some(detour)) = (request.read_into(), &mut request.detour) else { return };
        let (Some(second), seconds) = (detour.second.take(), core::mem::take(&mut detour.seconds)) else {
            return;
        };
        let compares = request.compare.is_some();
        if request.status != Status::Good {
            self.buffers.release(second);
            return;
        }
        if compares {
            // The first one is part of the command's buffer, and ends with it; so does the second.
            detour.second = Some(second);
            request.compare = Some(second);
        } else {
            request.buffer = Some(second);
            request.moved = true;
            let offset = (request.data.at - first.at) as u32;
            request.data = second.part(offset, request.data.len);
        }
        // What was read to the second buffer stays; what lies between comes from the first.
        let mut parts = seconds;
        parts.sort_unstable();
        parts.push((first.len, 0));
        let mut at = 0;
        for (from, len) in parts {
            if at < from {
                self.memory.copy(first.part(at, from - at), second.part(at, from - at));
            }
            at = from + len;
        }
        if !compares {
            self.buffers.release(first);
        }
    }

    /// What is not at a drive yet never starts.
    pub fn abort_request(&mut self, now: Instant, index: u32, fx: &mut Effects<Mail>) {
        let request = &mut self.requests[index];
        request.aborted = true;
        match request.phase {
            Phase::Buffer(_) => {
                self.wait_no_more(index);
                self.end(index, Status::Aborted);
            }
            Phase::RateLimit => {
                self.leave_limiter(index);
                self.end(index, Status::Aborted);
            }
            Phase::Turn | Phase::Flights => {
                self.wait_at_none(index);
                if !self.requests[index].bereft {
                    self.wait_for_no_far(index);
                }
                let request = &mut self.requests[index];
                if request.begun && request.cursor < request.length {
                    request.cursor = request.length;
                    request.status = worse(request.status, Status::Aborted);
                }
                let mine: Vec<(u32, ArrayId, Option<u16>)> = self
                    .flights
                    .iter()
                    .filter(|(_, f)| f.owner == Owner::Request(index))
                    .map(|(i, f)| (i, f.array, f.at))
                    .collect();
                if let Some(array) = self.requests[index].whole {
                    let ticket = Ticket(WHOLE | u64::from(index));
                    self.with_array(now, array, fx, |a, io| a.on_abort(now, ticket, io));
                }
                for (flight, array, at) in mine {
                    match at {
                        None => {
                            let ticket = Ticket(u64::from(flight));
                            self.with_array(now, array, fx, |a, io| a.on_abort(now, ticket, io));
                        }
                        Some(shard) => {
                            let mail = ShardMail::Abort { flight: FlightId(flight), array };
                            self.send_to_shard(shard, mail, fx);
                        }
                    }
                }
            }
            Phase::Connection | Phase::Completed | Phase::Sending => {}
        }
    }

    /// Gives one input to an array, if it is (still) here.
    pub fn with_array(
        &mut self,
        now: Instant,
        id: ArrayId,
        fx: &mut Effects<Mail>,
        input: impl FnOnce(&mut Array, &mut Sink<'_, M>),
    ) {
        let Some(state) = self.arrays.get_mut(id.index()).and_then(Option::take) else { return };
        self.enter(now, now, id, state, fx, input);
    }

    /// The same, unless its lanes are dealt by another map, or are about to be.
    pub fn with_array_of(
        &mut self,
        now: Instant,
        (id, map): (ArrayId, u32),
        fx: &mut Effects<Mail>,
        input: impl FnOnce(&mut Array, &mut Sink<'_, M>),
    ) {
        if self
            .arrays
            .get(id.index())
            .and_then(Option::as_ref)
            .is_some_and(|s| s.map == map && !s.rest.is_halted())
        {
            self.with_array(now, id, fx, input);
        }
    }

    /// The kernel let go of an operation.
    #[inline]
    pub fn op_done(
        &mut self,
        now: Instant,
        token: Token,
        result: Result<(), DriveError>,
        fx: &mut Effects<Mail>,
    ) {
        let (id, tag) = parts_of(token);
        let Some(mut state) = self.arrays.get_mut(id.index()).and_then(Option::take) else {
            return self.orphan_done(token, fx);
        };
        let OpView { drive, kind, len, data, since, held, given_up } = state.array.op(tag);
        let figures = figures(&mut self.drives, drive);
        if given_up {
            figures.hung -= 1;
            self.let_go(data, fx);
            return self.enter(now, now, id, state, fx, |array, io| array.on_drive_late(now, tag, io));
        }
        figures.in_flight -= 1;
        if held {
            self.buffers.release(data);
        }
        let (counters, took) = (&mut figures.counters, now.0.saturating_sub(since.0));
        counters.busy_ns += took;
        match (result, kind) {
            (Ok(()), DriveOpKind::Read) => {
                counters.reads += 1;
                counters.read_bytes += len;
                self.timing.op(drive, false, took);
                state.window.on_op(kind, len, took, 1);
            }
            (Ok(()), DriveOpKind::Write | DriveOpKind::WriteZeroes) => {
                counters.writes += 1;
                counters.write_bytes += len;
                self.timing.op(drive, true, took);
                state.window.on_op(kind, len, took, state.legs);
            }
            (Ok(()), DriveOpKind::Deallocate | DriveOpKind::Flush) => counters.others += 1,
            (Err(error), _) => {
                counters.errors += 1;
                figures.last_error = Some(error);
            }
        }
        if now >= state.window.end {
            self.end_window(now, id, &mut state, fx);
        }
        self.enter(now, since, id, state, fx, |array, io| array.on_drive_done(now, tag, result, io));
    }

    /// The kernel let go of an operation whose array is gone.
    fn orphan_done(&mut self, token: Token, fx: &mut Effects<Mail>) {
        let at = self.orphans.iter().position(|o| o.token == token).expect("an operation ends once");
        let OpView { drive, data, held, given_up, .. } = self.orphans.swap_remove(at).op;
        let figures = figures(&mut self.drives, drive);
        if given_up {
            figures.hung -= 1;
            self.let_go(data, fx);
            return;
        }
        figures.in_flight -= 1;
        if held {
            self.buffers.release(data);
        }
    }

    /// Whether no operation is in the kernel.
    pub fn has_no_ops(&self) -> bool {
        self.orphans.is_empty() && self.arrays.iter().flatten().all(|state| state.array.has_no_ops())
    }

    /// Answers that depend on what drives hold wait for the next look at the voters.
    #[cold]
    pub fn keep_reads(&mut self, now: Instant) {
        self.sight.keep_reads(now, &mut self.completed, &self.requests);
        self.op_scan.get_or_insert(now + limits::OP_SCAN);
    }
    /// Deadlines of drive operations and of arrays.
    pub fn on_timer(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if self.op_scan.is_some_and(|at| at <= now) {
            self.scan_ops(now, fx);
            self.sight.withhold_overdue(now, &mut self.completed, &mut self.requests);
            self.op_scan = (!self.has_no_ops() || self.sight.keeps()).then_some(now + limits::OP_SCAN);
            // Reads that found no leg here look for one again.
            self.turns.extend(self.far_waits.drain(..));
        }
        for i in 0..self.arrays.len() {
            let due = self.arrays[i].as_ref().and_then(|a| a.array.next_deadline());
            if due.is_some_and(|at| at <= now) {
                self.with_array(now, ArrayId(i as u16), fx, |a, io| a.on_timer(now, io));
            }
        }
    }
}
