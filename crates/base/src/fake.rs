//! A head and a host made of plain memory, for tests and fuzzing of front ends and of the host's side. The head
//! follows the rules of the door and panics when a connection breaks them.

use crate::front::{Close, Intervention, TRANSFER_MAX};
use crate::memory::PlainMemory;
use crate::view::View;
use crate::{
    Ask, Command, ConnectionFault, FrontIo, HostIo, HostStatus, Memory, Op, Outbox, Slice, Status, Tag,
};
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Waiting(u32),
    Held(u32),
    /// Without a buffer.
    Bare,
    Submitted(Option<u32>),
}

/// The head's end of one connection.
pub struct Head {
    /// What it shows the connection.
    pub view: View,
    /// The outbox's ring, then the buffers.
    pub memory: PlainMemory,
    /// What has not been sent.
    pub outbox: Outbox,
    /// What was submitted and has not ended.
    pub submitted: VecDeque<(Tag, Command, Slice)>,
    /// Tags that wait for a buffer, in order.
    pub waiting: VecDeque<Tag>,
    /// Tags that were aborted while they waited.
    pub aborted: Vec<Tag>,
    /// What was asked of the Steward.
    pub asks: VecDeque<Ask>,
    /// What it wanted of other connections.
    pub interventions: VecDeque<(u16, Intervention)>,
    /// What it answered them.
    pub obeyed: Vec<(u32, bool)>,
    /// How long buffers were that were asked for data that come unasked.
    pub inline: Vec<u32>,
    /// The tags that hold these buffers.
    pub inline_tags: Vec<Tag>,
    /// Tags that were aborted while they ran.
    pub stopped: Vec<Tag>,
    /// Why it was closed.
    pub closed: Option<Close>,
    /// Who was refused, and why.
    pub refused: Vec<(String, ConnectionFault)>,
    /// How many commands it was admitted with.
    pub admitted: Option<u16>,
    /// No buffer at once: all wait for `grant`.
    pub withholds_buffers: bool,
    /// `admit` refuses.
    pub full: bool,
    outbox_bytes: u32,
    buffer_bytes: u32,
    free: Vec<u32>,
    /// Buffers that are free once their bytes are sent, by mark.
    sending: u32,
    tags: Vec<State>,
}

impl Head {
    /// A head with an outbox of `outbox_bytes`, and `buffers` buffers of `buffer_bytes` each.
    pub fn new(view: View, outbox_bytes: u32, buffers: u32, buffer_bytes: u32) -> Self {
        let len = outbox_bytes + buffers * buffer_bytes;
        Self {
            view,
            memory: PlainMemory::new(0, len as usize),
            outbox: Outbox::new(Slice::new(0, outbox_bytes), 256),
            submitted: VecDeque::new(),
            waiting: VecDeque::new(),
            aborted: Vec::new(),
            asks: VecDeque::new(),
            interventions: VecDeque::new(),
            obeyed: Vec::new(),
            inline: Vec::new(),
            inline_tags: Vec::new(),
            stopped: Vec::new(),
            closed: None,
            refused: vec![],
            admitted: None,
            withholds_buffers: false,
            full: false,
            outbox_bytes,
            buffer_bytes,
            free: (0..buffers).collect(),
            sending: 0,
            tags: Vec::new(),
        }
    }
    fn slice(&self, buffer: u32, len: u32) -> Slice {
        Slice::new(u64::from(self.outbox_bytes + buffer * self.buffer_bytes), len)
    }
    /// Gives the tag that has waited for the longest time its buffer, if one is free.
    pub fn grant(&mut self) -> Option<(Tag, Slice)> {
        let State::Waiting(len) = self.tags[self.waiting.front()?.index()] else {
            unreachable!("a waiting tag waits")
        };
        if len > self.buffer_bytes {
            return None;
        }
        let buffer = self.free.pop()?;
        let tag = self.waiting.pop_front()?;
        self.tags[tag.index()] = State::Held(buffer);
        let slice = self.slice(buffer, len);
        // The contents are undefined.
        self.memory.bytes_mut(slice).fill(0xee);
        Some((tag, slice))
    }
    /// The submitted command number `at`, from the oldest, ends: its tag is the connection's again.
    pub fn take_submitted(&mut self, at: usize) -> Option<(Tag, Command, Slice)> {
        let (tag, command, data) = self.submitted.remove(at)?;
        let State::Submitted(buffer) = self.tags[tag.index()] else { unreachable!("it was submitted") };
        self.tags[tag.index()] = buffer.map_or(State::Bare, State::Held);
        Some((tag, command, data))
    }
    /// A tag that was aborted while it waited for its buffer: `on_done(Aborted)` is due.
    pub fn take_aborted(&mut self) -> Option<Tag> {
        let tag = self.aborted.pop()?;
        self.tags[tag.index()] = State::Bare;
        Some(tag)
    }
    /// No buffer is found for the tag that has waited for the longest time: `on_done` is due.
    pub fn give_up(&mut self) -> Option<Tag> {
        let tag = self.waiting.pop_front()?;
        self.tags[tag.index()] = State::Bare;
        Some(tag)
    }
    /// Whether the tag was aborted while it ran; forgets it.
    pub fn take_stopped(&mut self, tag: Tag) -> bool {
        let found = self.stopped.iter().position(|t| *t == tag);
        found.map(|at| self.stopped.remove(at)).is_some()
    }
    /// Bytes that the world sends now, at most `n`.
    pub fn sent(&mut self, n: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for s in self.outbox.segments() {
            let left = (n as usize) - out.len();
            out.extend_from_slice(self.memory.bytes(s.head(s.len.min(left as u32))));
        }
        let (free, sending) = (&mut self.free, &mut self.sending);
        self.outbox.on_sent(out.len() as u32, |mark| {
            free.push(mark);
            *sending -= 1;
        });
        out
    }
    /// Tags under way, and buffers whose bytes are being sent.
    pub fn under_way(&self) -> usize {
        self.tags.iter().filter(|t| **t != State::Free).count() + self.sending as usize
    }
    fn end(&mut self, tag: Tag) -> Option<u32> {
        self.inline_tags.retain(|t| *t != tag);
        match std::mem::replace(&mut self.tags[tag.index()], State::Free) {
            State::Held(buffer) => Some(buffer),
            State::Bare => None,
            other => panic!("{tag:?} ended while it was {other:?}"),
        }
    }
}

impl FrontIo for Head {
    fn view(&self) -> &View {
        &self.view
    }
    fn admit(&mut self, commands_max: u16) -> Result<(), ConnectionFault> {
        assert!(self.admitted.is_none(), "a connection is admitted once");
        if self.full {
            return Err(ConnectionFault::NoMemoryForCommands);
        }
        self.admitted = Some(commands_max);
        self.tags = vec![State::Free; usize::from(commands_max)];
        Ok(())
    }
    fn reserve(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        assert!(len > 0 && len <= 2 * TRANSFER_MAX, "a buffer of {len} bytes");
        assert_eq!(self.tags[tag.index()], State::Free, "a tag is under way already");
        self.tags[tag.index()] = State::Waiting(len);
        self.waiting.push_back(tag);
        if self.withholds_buffers || self.waiting.len() > 1 {
            return None;
        }
        self.grant().map(|(_, slice)| slice)
    }
    fn reserve_inline(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        self.inline.push(len);
        self.inline_tags.push(tag);
        self.reserve(tag, len)
    }
    fn submit(&mut self, tag: Tag, command: Command, data: Slice) {
        let buffer = match self.tags[tag.index()] {
            State::Held(buffer) => Some(buffer),
            State::Free | State::Bare => None,
            other => panic!("{tag:?} was submitted while it was {other:?}"),
        };
        assert_eq!(data.len > 0, command.op.takes_data() || command.op == Op::Read);
        self.tags[tag.index()] = State::Submitted(buffer);
        self.submitted.push_back((tag, command, data));
    }
    fn has_slot(&self) -> bool {
        self.sending < self.tags.len().max(1) as u32
    }
    fn finish(&mut self, tag: Tag) {
        let buffer = self.end(tag);
        self.free.extend(buffer);
    }
    fn finish_after_send(&mut self, tag: Tag) {
        if let Some(buffer) = self.end(tag) {
            if self.outbox.release_after(buffer) {
                self.sending += 1;
            } else {
                self.free.push(buffer);
            }
        }
    }
    fn abort(&mut self, tag: Tag) {
        if self.waiting.contains(&tag) {
            self.waiting.retain(|t| *t != tag);
            self.aborted.push(tag);
        } else {
            self.stopped.push(tag);
        }
    }
    fn bytes(&self, data: Slice) -> &[u8] {
        self.memory.bytes(data)
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.memory.bytes_mut(data)
    }
    fn room(&self) -> u32 {
        self.outbox.room()
    }
    fn header(&mut self, bytes: &[u8]) {
        assert!(self.closed.is_none(), "sent after close");
        self.outbox.header(&mut self.memory, bytes);
    }
    fn payload(&mut self, data: Slice) {
        self.outbox.payload(data);
    }
    fn ask(&mut self, ask: Ask) {
        self.asks.push_back(ask);
    }
    fn refused(&mut self, name: &str, why: ConnectionFault) {
        self.refused.push((name.into(), why));
    }
    fn intervene(&mut self, key: u16, what: Intervention) {
        self.interventions.push_back((key, what));
    }
    fn intervened(&mut self, id: u32, yes: bool) {
        self.obeyed.push((id, yes));
    }
    fn close(&mut self, why: Close) {
        assert!(self.closed.is_none(), "a connection closes once");
        self.closed = Some(why);
    }
}

/// A host's world: memory, an outbox for each connection, and the commands that ended.
pub struct Host {
    /// Rings of the outboxes, and whatever else the test puts there.
    pub memory: PlainMemory,
    /// What has not been sent, by connection.
    pub outboxes: Vec<Outbox>,
    /// The connection that is served.
    pub link: usize,
    /// Commands that ended, with how.
    pub done: Vec<(u32, HostStatus)>,
}

impl Host {
    /// Memory of `bytes`, and a connection for each of `rings` in it.
    pub fn new(rings: &[Slice], bytes: u64) -> Self {
        let outboxes = rings.iter().map(|ring| Outbox::new(*ring, 64)).collect();
        Self { memory: PlainMemory::new(0, bytes as usize), outboxes, link: 0, done: Vec::new() }
    }
}

impl HostIo for Host {
    fn bytes(&self, data: Slice) -> &[u8] {
        self.memory.bytes(data)
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.memory.bytes_mut(data)
    }
    fn copy(&mut self, from: Slice, to: Slice) {
        self.memory.copy(from, to);
    }
    fn room(&self) -> u32 {
        self.outboxes[self.link].room()
    }
    fn header(&mut self, bytes: &[u8]) {
        self.outboxes[self.link].header(&mut self.memory, bytes);
    }
    fn payload(&mut self, data: Slice) {
        self.outboxes[self.link].payload(data);
    }
    fn pending(&self) -> u64 {
        self.outboxes[self.link].pending()
    }
    fn done(&mut self, id: u32, status: HostStatus) {
        self.done.push((id, status));
    }
}

/// Carries out `command` on a volume of blocks of `block_bytes`; `data` is its part of the tag's buffer.
pub fn carry_out(volume: &mut [u8], block_bytes: u32, command: &Command, data: &mut [u8]) -> Status {
    let block = u64::from(block_bytes);
    let end = command.at.checked_add(command.blocks).and_then(|end| end.checked_mul(block));
    let Some(end) = end.filter(|end| *end <= volume.len() as u64) else { return Status::OutOfRange };
    let place = &mut volume[(command.at * block) as usize..end as usize];
    match command.op {
        Op::Read => data.copy_from_slice(place),
        Op::Write => place.copy_from_slice(data),
        Op::WriteZeroes { .. } | Op::Deallocate => place.fill(0),
        Op::Flush => {}
        Op::Compare => {
            if let Some(at) = place.iter().zip(data).position(|(a, b)| *a != *b) {
                return Status::Miscompare { at: at as u32 };
            }
        }
    }
    Status::Good
}
