//! The protocol of a connection with a far shard: greetings, then messages.

use super::link::FarLink;
use super::wire::{GREETING_BYTES, Greeting, HEADER_BYTES, Message};
use super::{RING_BYTES, ROOM, SILENT};
use crate::admission::lines::Place;
use crate::mail::FlightId;
use crate::path::link::{Io, Life};
use crate::path::request::Parked;
use array::Kind;
use base::front::Close;
use base::{Bug, ConnectionFault, FrontIo, Instant, Memory, Slice, Status, Want, planted, planted_if};

const BROKEN: Close = Close::Protocol(ConnectionFault::NotUnderstood);
const NOT_THE_OTHER_HEAD: Close = Close::Refused(ConnectionFault::NotTheOtherHead);
const SLOW: Close = Close::Slow;

/// Ends the connection at once.
fn end<M: Memory>(io: &mut Io<'_, M>, why: Close) {
    io.close(why);
    if let Life::Ending { until } = &mut io.link.life {
        *until = io.now;
    }
}

/// One connection.
pub(crate) struct FarFront {
    /// The far shard, once it is known.
    far: Option<u16>,
    /// This side has greeted.
    greeted: bool,
    /// Both have.
    open: bool,
    until: Instant,
    /// The greeting or header that comes, and how much of it is there.
    head: [u8; GREETING_BYTES],
    have: usize,
    /// It is all there, and waits for memory, or for the end of what came by the connection before.
    blocked: bool,
    /// If it waits for memory, when it is sent back instead.
    refused_at: Option<Instant>,
    /// Data of this length have waited in vain. None are waited for before there is memory for some again.
    too_long: u32,
    /// Data that come: of which message, where to, and how many are there.
    data: Option<(Message, Slice, u32)>,
    /// Data that come of a write which is sent back: its flight, and how many are left.
    dropped: Option<(u32, u32)>,
}

impl FarFront {
    /// A peer connects.
    pub fn comes(now: Instant) -> Self {
        Self {
            far: None,
            greeted: false,
            open: false,
            until: now + SILENT,
            head: [0; GREETING_BYTES],
            have: 0,
            blocked: false,
            refused_at: None,
            too_long: u32::MAX,
            data: None,
            dropped: None,
        }
    }
    /// This side connects to a far shard.
    pub fn goes(now: Instant, far: u16) -> Self {
        Self { far: Some(far), ..Self::comes(now) }
    }
    /// The far shard, if it is known.
    pub fn far(&self) -> Option<u16> {
        self.far
    }
    /// Something of it waits.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }
    /// Nothing has come in part, and nothing that came waits.
    pub fn is_idle(&self) -> bool {
        !self.blocked && self.have == 0 && self.data.is_none() && self.dropped.is_none()
    }
    pub fn want(&self) -> Want {
        // Who goes there greets once the connection is up: before that there is nothing to ask for.
        let connects = self.far.is_some() && !self.greeted;
        match &self.data {
            _ if self.blocked || connects => Want::Nothing,
            Some((_, data, got)) => Want::Direct(data.tail(*got)),
            None => Want::Staging,
        }
    }
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.open { self.refused_at } else { Some(self.until) }
    }
    pub fn on_timer<M: Memory>(&mut self, now: Instant, io: &mut Io<'_, M>) {
        if !self.open && now >= self.until {
            end(io, SLOW);
        } else if self.open {
            self.go_on(now, io);
        }
    }
    /// Sends this side's greeting.
    pub fn greet<M: Memory>(&mut self, io: &mut Io<'_, M>) {
        let (Some(far), Some(setup)) = (self.far, io.core.far_setup.clone()) else { return };
        let credit = io.core.far[usize::from(far)].greet();
        let greeting = Greeting { from: io.core.id, to: far, credit };
        self.greeted = true;
        io.header(&greeting.encode(&setup.pairing));
    }
    pub fn on_bytes<M: Memory>(&mut self, now: Instant, bytes: &[u8], io: &mut Io<'_, M>) -> usize {
        let mut taken = 0;
        while !self.blocked && taken < bytes.len() {
            let bytes = &bytes[taken..];
            if let Some((_, data, got)) = &mut self.data {
                let n = bytes.len().min((data.len - *got) as usize);
                io.core.memory.bytes_mut(data.part(*got, n as u32)).copy_from_slice(&bytes[..n]);
                *got += n as u32;
                taken += n;
                if *got == data.len {
                    self.on_all(now, io);
                }
                continue;
            }
            if let Some((flight, left)) = self.dropped {
                let n = bytes.len().min(left as usize);
                taken += n;
                self.dropped = Some((flight, left - n as u32)).filter(|(_, left)| *left > 0);
                if self.dropped.is_none() {
                    self.sends_back(flight, io);
                }
                continue;
            }
            let n = bytes.len().min(self.head_bytes() - self.have);
            self.head[self.have..self.have + n].copy_from_slice(&bytes[..n]);
            self.have += n;
            taken += n;
            if self.have == self.head_bytes() {
                self.blocked = true;
                self.go_on(now, io);
            }
        }
        taken
    }
    fn head_bytes(&self) -> usize {
        if self.open { HEADER_BYTES } else { GREETING_BYTES }
    }
    /// Takes the message that had to wait, if it need not wait any more.
    pub fn go_on<M: Memory>(&mut self, now: Instant, io: &mut Io<'_, M>) {
        if !self.blocked {
            return;
        }
        let head = self.head;
        let done = if self.open {
            match Message::decode(head.first_chunk().expect("a header is shorter")) {
                Ok(message) => self.on_message(now, message, io),
                Err(_) => {
                    end(io, BROKEN);
                    false
                }
            }
        } else {
            self.on_greeting(&head, io)
        };
        if done {
            self.blocked = false;
            self.refused_at = None;
            self.have = 0;
        }
    }
    pub fn on_direct<M: Memory>(&mut self, now: Instant, n: u32, io: &mut Io<'_, M>) {
        let Some((_, data, got)) = &mut self.data else { return };
        *got += n;
        if *got == data.len {
            self.on_all(now, io);
        }
    }

    /// False: it is not taken yet.
    fn on_greeting<M: Memory>(&mut self, bytes: &[u8; GREETING_BYTES], io: &mut Io<'_, M>) -> bool {
        let setup = io.core.far_setup.clone();
        let said = setup.and_then(|s| Greeting::decode(bytes, &s.pairing).ok());
        let far = |g: &Greeting| io.core.far.get(usize::from(g.from));
        let Some(greeting) = said.filter(|g| g.to == io.core.id && far(g).is_some()) else {
            end(io, NOT_THE_OTHER_HEAD);
            return false;
        };
        if self.far.is_some_and(|far| far != greeting.from) {
            end(io, NOT_THE_OTHER_HEAD);
            return false;
        }
        self.far = Some(greeting.from);
        let link = &io.core.far[usize::from(greeting.from)];
        if link.open.is_some() || link.stale > 0 && !planted(Bug::GreetedBeforeEnd) {
            // What came by the connection before must be over first.
            return false;
        }
        if !self.greeted {
            self.greet(io);
        }
        self.open = true;
        io.core.far_begins(io.now, greeting.from, io.link.index, greeting.credit);
        true
    }
    fn link<'a, M: Memory>(&self, io: &'a mut Io<'_, M>) -> &'a mut FarLink {
        let far = self.far.expect("it has greeted");
        &mut io.core.far[usize::from(far)]
    }
    /// A message's header is there. False: it waits for memory.
    fn on_message<M: Memory>(&mut self, now: Instant, message: Message, io: &mut Io<'_, M>) -> bool {
        match message {
            Message::Run { command, .. } if command.data.len > 0 => {
                let link = self.link(io);
                if !link.waits.is_empty() && planted(Bug::CreditWaits) {
                    return false;
                }
                let Some(data) = link.grant(command.data.len) else {
                    link.starved = true;
                    return self.refuses(now, message, io);
                };
                if command.data.len >= self.too_long {
                    self.too_long = u32::MAX;
                }
                match command.kind {
                    Kind::Write => self.data = Some((message, data, 0)),
                    _ => self.run(message, data, io),
                }
            }
            Message::Run { .. } => self.run(message, Slice::default(), io),
            Message::Ran { flight, data: len, .. } if len > 0 => {
                let sent = self.link(io).sent(flight).map(|s| s.command);
                match sent.filter(|c| c.kind == Kind::Read && c.data.len == len) {
                    Some(command) => self.data = Some((message, command.data, 0)),
                    None => end(io, BROKEN),
                }
            }
            Message::Ran { .. } => self.ran(now, message, io),
            Message::Abort { flight, array } => {
                let shard = io.core.shards + self.far.expect("it has greeted");
                io.core.abort_for_peer(now, shard, FlightId(flight), array, io.fx);
            }
            Message::Heal { array, map, at, len, leg } => {
                let leg = usize::from(leg);
                io.core.with_array_of(now, (array, map), io.fx, |a, io| a.on_heal(now, leg, at, len, io));
            }
            Message::Cleared { array, map, region, marks } => {
                io.core.with_array_of(now, (array, map), io.fx, |a, _| a.on_region_cleared(region, marks));
            }
            Message::Lease { volume, kind, cost } => {
                let shard = io.core.shards + self.far.expect("it has greeted");
                io.core.on_lease(now, shard, volume, kind, cost, io.fx);
            }
            Message::Leased { volume, kind, cost } => io.core.on_leased(now, volume, kind, cost),
            Message::Credit { bytes } => {
                self.link(io).has_credit(bytes);
                io.core.far_has_credit(self.far.expect("it has greeted"));
            }
        }
        true
    }
    /// There is no memory in one piece for this command, though it has credit: a drive may keep a page here and there. False: it waits. What
    /// comes behind it waits too, and may be what the other head needs to send its own, so that has an end.
    #[cold]
    fn refuses<M: Memory>(&mut self, now: Instant, message: Message, io: &mut Io<'_, M>) -> bool {
        let Message::Run { flight, command, .. } = message else { return true };
        let len = command.data.len;
        let at = *self.refused_at.get_or_insert(now + ROOM);
        if len < self.too_long && now < at {
            return false;
        }
        self.too_long = self.too_long.min(len);
        match command.kind {
            // Once it is answered, its memory there may be another's: all of it comes first.
            Kind::Write => self.dropped = Some((flight, len)),
            Kind::Read | Kind::WriteZeroes | Kind::Deallocate | Kind::Flush => self.sends_back(flight, io),
        }
        true
    }
    fn sends_back<M: Memory>(&self, flight: u32, io: &mut Io<'_, M>) {
        let status = Status::Moved;
        self.link(io).say(Message::Ran { flight, status, age: 0, zeroes: false, kept: false, data: 0 });
    }
    /// All data of a message are there.
    fn on_all<M: Memory>(&mut self, now: Instant, io: &mut Io<'_, M>) {
        let (message, data, _) = self.data.take().expect("it has come");
        match message {
            Message::Run { .. } => self.run(message, data, io),
            _ => self.ran(now, message, io),
        }
    }
    fn run<M: Memory>(&mut self, message: Message, data: Slice, io: &mut Io<'_, M>) {
        let Message::Run { flight, array, map, mut command, mut whose } = message else { return };
        if !self.link(io).takes_on(flight, data, command.kind == Kind::Read) {
            return end(io, BROKEN);
        }
        let shard = io.core.shards + self.far.expect("it has greeted");
        command.data = data;
        whose.shard = shard;
        io.core.send_cleared(shard, array, &command, io.fx);
        io.core.park(Parked {
            shard,
            flight: FlightId(flight),
            array,
            map,
            command,
            whose,
            place: Place::default(),
            line: 0,
        });
    }
    fn ran<M: Memory>(&mut self, now: Instant, message: Message, io: &mut Io<'_, M>) {
        let Message::Ran { flight, status, age, zeroes, kept, .. } = message else { return };
        let reads = || self.link(io).sent(flight).is_some_and(|s| s.command.kind == Kind::Read);
        let costs = !kept && status != Status::Good && planted_if(Bug::FailedReadCosts, reads);
        let Some(sent) = self.link(io).ran(flight, kept || costs) else { return end(io, BROKEN) };
        if status == Status::Moved {
            io.core.far_sends_back(flight);
        }
        if zeroes {
            io.core.fill_zeroes(sent.command.data);
        }
        let issued = Instant(now.0.saturating_sub(age));
        io.core.flight_landed(now, flight, status, issued, io.fx);
        io.core.far_has_credit(self.far.expect("it has greeted"));
    }
    /// Its connection is over: memory that was to be filled is nobody's. Returns that memory if it was granted to the far shard.
    pub fn ends(&mut self) -> Option<Slice> {
        let (message, data, _) = self.data.take()?;
        matches!(message, Message::Run { .. }).then_some(data)
    }
    /// Memory for its output.
    pub const OUTBOX_BYTES: u32 = RING_BYTES;
}
