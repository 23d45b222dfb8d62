//! One far shard: what was sent to it and is not answered, what it has sent, and the memory that is granted to it.

use super::{GRANTED_BYTES, GRANTED_MIN, LEFT_MIN, SPENT, wire};
use crate::admission::arena::Arena;
use crate::admission::buffers::{BUFFER_MAX, Buffers, PAGE};
use crate::admission::scheduler::Whose;
use crate::layout::ArrayId;
use crate::mail::FlightId;
use array::{ArrayCommand, Kind};
use base::{Bug, Instant, Slice, Slots, Status, planted, planted_if};
use std::collections::VecDeque;

/// A command of this shard that a far one carries out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub array: ArrayId,
    pub map: u32,
    pub command: ArrayCommand,
    pub whose: Whose,
    /// Its host has given it up.
    pub aborted: bool,
}

/// A command of the far shard that this one carries out.
#[derive(Clone, Copy, Debug)]
struct Theirs {
    /// Memory that was granted to it.
    data: Slice,
    reads: bool,
}

/// A message that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Out {
    /// `Message::Run`, of this flight.
    Run(u32),
    /// `Message::Ran`, with what lies there; it is free once it is sent.
    Ran(wire::Message, Slice),
    Other(wire::Message),
}

/// One far shard.
pub(crate) struct FarLink {
    /// The connection, once both sides have greeted; or the one that is to become it.
    pub open: Option<u32>,
    pub comes: Option<u32>,
    pub out: VecDeque<Out>,
    /// By flight, ours.
    sent: Vec<Option<Sent>>,
    /// By flight, its own.
    theirs: Vec<Option<Theirs>>,
    /// Commands of an earlier connection that are still at drives: nothing new is taken before they are over.
    pub stale: u32,
    /// What is left of the credit that it gives, bytes of its memory.
    credit: u32,
    /// What it lends and no drive there keeps: the credit, and what the commands cost that it has not answered.
    lent: u32,
    /// Since when that is nothing.
    spent_since: Option<Instant>,
    /// Requests that wait for some.
    pub waits: VecDeque<u32>,
    /// Memory that is set aside for it: runs of the shard's.
    granted: Vec<Buffers>,
    runs: Vec<Slice>,
    /// Bytes of that which are its spare, and those of them that are not lent to it now.
    spare: u32,
    unlent: u32,
    /// It has sent what there is no memory for yet.
    pub starved: bool,
    /// Answers on their way, and whether it knows that a drive keeps their memory. If not, that is free once they are sent.
    pub sending: Slots<(Slice, bool)>,
    /// The network that is tried next, and when.
    pub network: usize,
    pub dial_at: Option<Instant>,
    /// Since when there is no connection any more; None: there is one, there was none yet, or it was said that there is none.
    pub down_since: Option<Instant>,
}

/// Memory of a far shard that a command needs, bytes.
pub(super) fn cost_of(command: &ArrayCommand) -> u32 {
    match command.kind {
        Kind::Read | Kind::Write => Buffers::footprint(command.len as u32) as u32,
        Kind::WriteZeroes | Kind::Deallocate | Kind::Flush => 0,
    }
}

impl FarLink {
    /// A far shard of so many, with memory that is set aside for it now. None: there is none.
    pub fn new(arena: &mut Arena, shards: u16, far: u16) -> Option<Self> {
        let share =
            (GRANTED_BYTES / u64::from(shards) / u64::from(far)).min(arena.bytes() / 8 / u64::from(far));
        let run = share.clamp(GRANTED_MIN, BUFFER_MAX).next_power_of_two().min(BUFFER_MAX);
        let mut runs = vec![arena.take_kept(run as u32)?];
        while (runs.len() as u64 + 1) * run <= share
            && let Some(more) = arena.take_kept(run as u32)
        {
            runs.push(more);
        }
        Some(Self {
            open: None,
            comes: None,
            out: VecDeque::new(),
            sent: vec![],
            theirs: vec![],
            stale: 0,
            credit: 0,
            lent: 0,
            spent_since: None,
            waits: VecDeque::new(),
            granted: runs.iter().map(|r| Buffers::new(r.at, u64::from(r.len))).collect(),
            runs,
            spare: 0,
            unlent: 0,
            starved: false,
            sending: Slots::with_capacity(64),
            network: 0,
            dial_at: None,
            down_since: None,
        })
    }
    /// Sets memory aside that it is lent when drives keep the rest, if there is some to spare.
    pub fn set_spare_aside(&mut self, arena: &mut Arena) {
        let Some(run) = arena.take_spare(GRANTED_MIN as u32) else { return };
        self.granted.push(Buffers::new(run.at, u64::from(run.len)));
        self.runs.push(run);
        self.spare = run.len;
        self.unlent = run.len;
    }
    /// Bytes that are granted to it.
    pub fn granted_bytes(&self) -> u32 {
        self.runs.iter().map(|r| r.len).sum::<u32>() - self.unlent
    }
    /// Bytes that are granted to it and free: neither in use by its commands nor kept by drives.
    pub fn free_bytes(&self) -> u32 {
        let free: u32 = self.granted.iter().map(|run| (run.bytes() - run.used()) as u32).sum();
        // The other one may know that an answer was sent, and use its memory again, before this shard does.
        free.saturating_sub(self.unlent)
    }
    /// Whether it is to be lent its spare, as drives keep so many bytes of what is granted to it.
    pub fn needs_spare(&self, kept: u64) -> bool {
        self.has_spare() && u64::from(self.granted_bytes()) < kept + LEFT_MIN
    }
    /// Whether it has a spare of which some is not lent to it.
    pub fn has_spare(&self) -> bool {
        self.unlent > 0
    }
    /// Whether some of its spare is lent to it.
    pub fn has_lent_spare(&self) -> bool {
        self.unlent < self.spare
    }
    /// It is lent its spare, until drives let go of as much.
    pub fn lend_spare(&mut self) {
        self.say(wire::Message::Credit { bytes: self.unlent });
        self.unlent = 0;
    }
    /// What is left of the credit that it gives.
    pub fn credit(&self) -> u32 {
        self.credit
    }
    /// Bytes of its memory that those commands need that it was sent and has not answered. For checkers.
    pub fn sent_cost(&self) -> u64 {
        self.sent.iter().flatten().map(|sent| u64::from(cost_of(&sent.command))).sum()
    }
    /// The runs that are set aside for it.
    pub fn runs(&self) -> &[Slice] {
        &self.runs
    }
    /// Longest data of one command that it is sent now, bytes. While it lends little, as drives there keep the rest, that is what there is
    /// credit for: a longer one might wait for more for ever, behind others that take less.
    pub fn piece_max(&self) -> u64 {
        if u64::from(self.lent) >= 2 * GRANTED_MIN {
            return GRANTED_MIN;
        }
        let credit = u64::from(self.credit).max(PAGE);
        GRANTED_MIN.min(1 << credit.ilog2())
    }
    /// Notes whether it lends anything.
    pub fn note_spent(&mut self, now: Instant) {
        let spent = self.open.is_some() && self.lent == 0;
        self.spent_since = if spent { self.spent_since.or(Some(now)) } else { None };
    }
    /// It has lent nothing for so long that no command waits for it.
    pub fn is_spent(&self, now: Instant) -> bool {
        self.lent == 0 && self.spent_since.is_some_and(|since| now >= since + SPENT)
    }
    /// Until when requests wait for it that may wait in vain.
    pub fn waits_until(&self) -> Option<Instant> {
        self.spent_since.filter(|_| !self.waits.is_empty()).map(|since| since + SPENT)
    }
    /// Each kind of thing that may be under way with it, and whether nothing is.
    pub fn idle_parts(&self) -> [(&'static str, bool); 6] {
        [
            ("far messages", self.out.is_empty()),
            ("far waits", self.waits.is_empty()),
            ("far sent", self.sent.iter().all(Option::is_none)),
            ("far received", self.theirs.iter().all(Option::is_none)),
            ("far stale", self.stale == 0),
            ("far answers", self.sending.is_empty()),
        ]
    }

    /// Whether it takes this command now.
    pub fn takes(&self, command: &ArrayCommand) -> bool {
        self.open.is_some() && cost_of(command) <= self.credit
    }
    /// It is to carry out a command.
    pub fn run(&mut self, flight: FlightId, sent: Sent) {
        self.credit -= cost_of(&sent.command);
        let index = flight.0 as usize;
        if self.sent.len() <= index {
            self.sent.resize(index + 1, None);
        }
        self.sent[index] = Some(sent);
        self.out.push_back(Out::Run(flight.0));
    }
    /// It need not any more.
    pub fn abort(&mut self, flight: FlightId, array: ArrayId) {
        let Some(Some(sent)) = self.sent.get_mut(flight.0 as usize) else { return };
        sent.aborted = true;
        self.out.push_back(Out::Other(wire::Message::Abort { flight: flight.0, array }));
    }
    /// What it was sent in this flight.
    pub fn sent(&self, flight: u32) -> Option<&Sent> {
        self.sent.get(flight as usize)?.as_ref()
    }
    /// That is over. `kept`: a drive there keeps its memory.
    pub fn ran(&mut self, flight: u32, kept: bool) -> Option<Sent> {
        let sent = self.sent.get_mut(flight as usize)?.take()?;
        let cost = cost_of(&sent.command);
        if kept {
            self.lent -= cost;
        } else {
            self.credit += cost;
        }
        Some(sent)
    }
    /// More of its memory is ours again.
    pub fn has_credit(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes);
        self.lent = self.lent.saturating_add(bytes);
    }
    /// Says something.
    pub fn say(&mut self, message: wire::Message) {
        self.out.push_back(Out::Other(message));
    }
    /// All that it was sent, by flight.
    pub fn all_sent(&self) -> Vec<u32> {
        (0..self.sent.len() as u32).filter(|f| self.sent[*f as usize].is_some()).collect()
    }
    /// Greets it: so many bytes are lent to it. What drives keep is not: `Credit` follows when they let go. Credit that an earlier connection
    /// did not say any more is part of these bytes; what is said from now on comes on top.
    pub fn greet(&mut self) -> u32 {
        self.out.clear();
        self.free_bytes()
    }
    /// Its connection is up: it lends so much, and gets once more what it has not answered, as far as that suffices. The rest is returned,
    /// and was not sent: drives there keep memory that it had.
    pub fn begins(&mut self, connection: u32, credit: u32) -> Vec<u32> {
        self.open = Some(connection);
        self.comes = None;
        self.down_since = None;
        self.credit = credit;
        self.lent = credit;
        let mut rest = vec![];
        for flight in self.all_sent() {
            let sent = &mut self.sent[flight as usize];
            let cost = cost_of(&sent.as_ref().expect("just seen").command);
            if cost <= self.credit {
                self.credit -= cost;
                self.out.push_back(Out::Run(flight));
            } else {
                *sent = None;
                rest.push(flight);
            }
        }
        rest
    }

    /// Memory for what it sends, or asks for. None: there is none now.
    pub fn grant(&mut self, len: u32) -> Option<Slice> {
        self.granted.iter_mut().find_map(|run| run.take(len))
    }
    fn run_of(&mut self, data: Slice) -> Option<&mut Buffers> {
        self.granted.iter_mut().find(|run| run.contains(data))
    }
    fn is_shared(&self, data: Slice) -> bool {
        self.granted.iter().any(|run| run.contains(data) && run.is_shared(data))
    }
    /// Whether this is memory that is granted to it.
    pub fn has_granted(&self, data: Slice) -> bool {
        self.granted.iter().any(|run| run.contains(data))
    }
    /// A drive keeps it.
    pub fn hold(&mut self, data: Slice) {
        if let Some(run) = self.run_of(data) {
            run.hold(data);
        }
    }
    /// One of its holders lets go. True: it is free.
    pub fn release(&mut self, data: Slice) -> bool {
        data.len == 0 || self.run_of(data).is_some_and(|run| run.release(data))
    }
    /// A drive lets go of what it had kept although the command was answered. As much as was lent of the spare is not lent any more.
    pub fn let_go(&mut self, data: Slice) {
        if !self.release(data) {
            return;
        }
        let bytes = Buffers::footprint(data.len) as u32;
        let back = bytes.min(self.spare - self.unlent);
        self.unlent += back;
        if bytes > back {
            self.say(wire::Message::Credit { bytes: bytes - back });
        }
    }

    /// It has sent a command. False: it has one of that name already, and the memory is free again.
    pub fn takes_on(&mut self, flight: u32, data: Slice, reads: bool) -> bool {
        let index = flight as usize;
        if self.theirs.len() <= index {
            self.theirs.resize(index + 1, None);
        }
        let free = self.theirs[index].is_none();
        if free {
            self.theirs[index] = Some(Theirs { data, reads });
        } else {
            self.release(data);
        }
        free
    }
    /// That command is over: it is answered.
    pub fn answers(&mut self, flight: FlightId, status: Status, age: u64, zeroes: bool) {
        let Some(theirs) = self.theirs.get_mut(flight.0 as usize).and_then(Option::take) else { return };
        let brings = theirs.reads && status == Status::Good && !zeroes;
        let data = if brings { theirs.data.len } else { 0 };
        // A read after a crash is a copy too: a leg that is late with its part keeps what was read.
        let stays = theirs.reads && zeroes && planted(Bug::ZeroedReadStays);
        let kept = if brings { self.is_shared(theirs.data) } else { !stays && !self.release(theirs.data) };
        let message = wire::Message::Ran { flight: flight.0, status, age, zeroes, kept, data };
        self.out.push_back(Out::Ran(message, if brings { theirs.data } else { Slice::default() }));
    }
    /// An answer goes out, with what lies there. Returns the mark of its end.
    pub fn sends(&mut self, answer: &wire::Message, data: Slice) -> u32 {
        let slots = &mut self.sending;
        if slots.len() == slots.capacity() {
            slots.reserve(slots.capacity().max(64));
        }
        let kept = matches!(answer, wire::Message::Ran { kept: true, .. });
        let Ok(mark) = slots.insert((data, kept)) else { panic!("room was made") };
        mark
    }
    /// That is sent.
    pub fn has_sent(&mut self, mark: u32) {
        match self.sending.remove(mark) {
            (data, true) => self.let_go(data),
            (data, false) => drop(self.release(data)),
        }
    }
    /// What it has sent and has not begun is dropped.
    pub fn forgets(&mut self, flight: FlightId) {
        if let Some(theirs) = self.theirs.get_mut(flight.0 as usize).and_then(Option::take)
            && !planted_if(Bug::ForgottenStays, || theirs.data.len > 0)
        {
            self.release(theirs.data);
        }
    }
    /// What it has sent is at drives, and its connection is over: when that ends, nobody is answered.
    pub fn outlives(&mut self, flight: FlightId) -> Option<Slice> {
        let theirs = self.theirs.get_mut(flight.0 as usize)?.take()?;
        self.stale += 1;
        Some(theirs.data)
    }
    /// Nobody uses any of the memory that is granted to it.
    pub fn is_free(&self) -> bool {
        self.granted.iter().all(|run| run.used() == 0)
    }
}
