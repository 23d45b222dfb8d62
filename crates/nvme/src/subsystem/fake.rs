//! A head made of plain memory, for tests and fuzzing: it keeps the door's rules and panics when a
//! connection breaks them.

use super::OUTBOX_BYTES;
use base::front::{Close, Intervention, TRANSFER_MAX};
use base::memory::PlainMemory;
use base::view::View;
use base::{Ask, Command, FrontIo, Memory, Outbox, Slice, Tag};
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
pub(crate) struct FakeIo {
    pub view: View,
    pub memory: PlainMemory,
    pub outbox: Outbox,
    /// What was submitted and has not ended.
    pub submitted: VecDeque<(Tag, Command, Slice)>,
    /// Tags that wait for a buffer, in order.
    pub waiting: VecDeque<Tag>,
    /// Tags that were aborted while they waited.
    pub aborted: Vec<Tag>,
    pub asks: Vec<Ask>,
    /// What it wanted of other queues, and what it answered them.
    pub wishes: VecDeque<(u16, Intervention)>,
    pub obeyed: Vec<(u32, bool)>,
    /// Tags that were aborted while they ran.
    pub stopped: Vec<Tag>,
    pub closed: Option<Close>,
    /// Who was refused, and why.
    pub refused: Vec<(String, &'static str)>,
    pub admitted: Option<u16>,
    /// No buffer at once: all wait for `grant`.
    pub stingy: bool,
    /// `admit` refuses.
    pub full: bool,
    buffer_bytes: u32,
    free: Vec<u32>,
    /// Buffers that are free once their bytes are sent, by mark.
    sending: u32,
    tags: Vec<State>,
}

impl FakeIo {
    /// A head with `buffers` buffers of `buffer_bytes` each.
    pub fn new(view: View, buffers: u32, buffer_bytes: u32) -> Self {
        let len = OUTBOX_BYTES + buffers * buffer_bytes;
        Self {
            view,
            memory: PlainMemory::new(0, len as usize),
            outbox: Outbox::new(Slice::new(0, OUTBOX_BYTES), 256),
            submitted: VecDeque::new(),
            waiting: VecDeque::new(),
            aborted: Vec::new(),
            asks: Vec::new(),
            wishes: VecDeque::new(),
            obeyed: Vec::new(),
            stopped: Vec::new(),
            closed: None,
            refused: vec![],
            admitted: None,
            stingy: false,
            full: false,
            buffer_bytes,
            free: (0..buffers).collect(),
            sending: 0,
            tags: Vec::new(),
        }
    }
    fn slice(&self, buffer: u32, len: u32) -> Slice {
        Slice::new(u64::from(OUTBOX_BYTES + buffer * self.buffer_bytes), len)
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
        Some((tag, self.slice(buffer, len)))
    }
    /// A submitted command ends: its tag is the connection's again.
    pub fn take_submitted(&mut self) -> Option<(Tag, Command, Slice)> {
        let (tag, command, data) = self.submitted.pop_front()?;
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
        match std::mem::replace(&mut self.tags[tag.index()], State::Free) {
            State::Held(buffer) => Some(buffer),
            State::Bare => None,
            other => panic!("{tag:?} ended while it was {other:?}"),
        }
    }
}

impl FrontIo for FakeIo {
    fn view(&self) -> &View {
        &self.view
    }
    fn admit(&mut self, commands_max: u16) -> Result<(), &'static str> {
        assert!(self.admitted.is_none(), "a connection is admitted once");
        if self.full {
            return Err("full");
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
        if self.stingy || self.waiting.len() > 1 {
            return None;
        }
        self.grant().map(|(_, slice)| slice)
    }
    fn submit(&mut self, tag: Tag, command: Command, data: Slice) {
        let buffer = match self.tags[tag.index()] {
            State::Held(buffer) => Some(buffer),
            State::Free | State::Bare => None,
            other => panic!("{tag:?} was submitted while it was {other:?}"),
        };
        assert_eq!(data.len > 0, command.op.takes_data() || command.op == base::Op::Read);
        self.tags[tag.index()] = State::Submitted(buffer);
        self.submitted.push_back((tag, command, data));
    }
    fn finish(&mut self, tag: Tag) {
        let buffer = self.end(tag);
        self.free.extend(buffer);
    }
    fn finish_after_send(&mut self, tag: Tag) {
        if let Some(buffer) = self.end(tag) {
            self.sending += 1;
            assert!(self.outbox.release_after(buffer), "its bytes have just been handed over");
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
        self.outbox.header(&mut self.memory, bytes);
    }
    fn payload(&mut self, data: Slice) {
        self.outbox.payload(data);
    }
    fn pending(&self) -> u64 {
        self.outbox.pending()
    }
    fn ask(&mut self, ask: Ask) {
        self.asks.push(ask);
    }
    fn refused(&mut self, name: &str, why: &'static str) {
        self.refused.push((name.into(), why));
    }
    fn intervene(&mut self, key: u16, what: Intervention) {
        self.wishes.push_back((key, what));
    }
    fn intervened(&mut self, id: u32, yes: bool) {
        self.obeyed.push((id, yes));
    }
    fn close(&mut self, why: Close) {
        assert!(self.closed.is_none(), "a connection closes once");
        self.closed = Some(why);
    }
}
