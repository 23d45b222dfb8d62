//! The head's end of one connection, and a disk in RAM.

use base::front::{Close, Intervention};
use base::memory::PlainMemory;
use base::view::View;
use base::{Ask, Command, FrontIo, Memory, Op, Outbox, Slice, Status, Tag};
use std::collections::VecDeque;

/// The volume.
pub struct Disk {
    pub block_bytes: u32,
    pub bytes: Vec<u8>,
    pub commands: u64,
}

impl Disk {
    pub fn new(block_bytes: u32, blocks: u64) -> Self {
        Self { block_bytes, bytes: vec![0; (blocks * u64::from(block_bytes)) as usize], commands: 0 }
    }
    pub fn carry_out(&mut self, c: &Command, data: &mut [u8]) -> Status {
        self.commands += 1;
        let block = u64::from(self.block_bytes);
        let Some(end) = c.at.checked_add(c.blocks).and_then(|e| e.checked_mul(block)) else {
            return Status::OutOfRange;
        };
        if end > self.bytes.len() as u64 {
            return Status::OutOfRange;
        }
        let place = &mut self.bytes[(c.at * block) as usize..end as usize];
        match c.op {
            Op::Read => data.copy_from_slice(place),
            Op::Write => place.copy_from_slice(data),
            Op::WriteZeroes { .. } | Op::Deallocate => place.fill(0),
            Op::Flush => {}
            Op::Compare => {
                if let Some(at) = place.iter().zip(data.iter()).position(|(a, b)| a != b) {
                    return Status::Miscompare { at: at as u32 };
                }
            }
        }
        Status::Good
    }
}

const RING: u32 = 64 << 10;
const BUFFER: u32 = 1 << 20;

/// The head's end of one connection.
pub struct Head {
    pub view: View,
    pub memory: PlainMemory,
    outbox: Outbox,
    pub submitted: VecDeque<(Tag, Command, Slice)>,
    waiting: VecDeque<(Tag, u32)>,
    /// Tags that were aborted while they waited for a buffer, or before they ended.
    pub aborted: VecDeque<Tag>,
    pub asks: Vec<Ask>,
    /// What it wants of other connections, which do nothing.
    pub wishes: VecDeque<u16>,
    pub closed: Option<Close>,
    free: Vec<u32>,
    held: Vec<Option<u32>>,
}

impl Head {
    /// A head with `buffers` buffers for this connection.
    pub fn new(view: View, buffers: u32) -> Self {
        Self {
            view,
            memory: PlainMemory::new(0, (RING + buffers * BUFFER) as usize),
            outbox: Outbox::new(Slice::new(0, RING), 64),
            submitted: VecDeque::new(),
            waiting: VecDeque::new(),
            aborted: VecDeque::new(),
            asks: vec![],
            wishes: VecDeque::new(),
            closed: None,
            free: (0..buffers).collect(),
            held: vec![],
        }
    }
    fn give(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        let buffer = self.free.pop()?;
        self.held[tag.index()] = Some(buffer);
        Some(Slice::new(u64::from(RING + buffer * BUFFER), len))
    }
    pub fn grant(&mut self) -> Option<(Tag, Slice)> {
        let (tag, len) = *self.waiting.front()?;
        let slice = self.give(tag, len)?;
        self.waiting.pop_front();
        Some((tag, slice))
    }
    pub fn take_submitted(&mut self, at: usize) -> (Tag, Command, Slice) {
        self.submitted.remove(at).expect("it is there")
    }
    pub fn sent(&mut self, n: u32) -> Vec<u8> {
        let mut out = vec![];
        for s in self.outbox.segments() {
            let left = n - out.len() as u32;
            out.extend_from_slice(self.memory.bytes(s.head(s.len.min(left))));
        }
        let free = &mut self.free;
        self.outbox.on_sent(out.len() as u32, |buffer| free.push(buffer));
        out
    }
}

impl FrontIo for Head {
    fn view(&self) -> &View {
        &self.view
    }
    fn admit(&mut self, commands_max: u16) -> Result<(), &'static str> {
        self.held = vec![None; usize::from(commands_max)];
        Ok(())
    }
    fn reserve(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        assert!(len <= BUFFER && self.held[tag.index()].is_none());
        if let Some(slice) = self.give(tag, len) {
            return Some(slice);
        }
        self.waiting.push_back((tag, len));
        None
    }
    fn submit(&mut self, tag: Tag, command: Command, data: Slice) {
        self.submitted.push_back((tag, command, data));
    }
    fn finish(&mut self, tag: Tag) {
        let buffer = self.held[tag.index()].take();
        self.free.extend(buffer);
    }
    fn finish_after_send(&mut self, tag: Tag) {
        if let Some(buffer) = self.held[tag.index()].take()
            && !self.outbox.release_after(buffer)
        {
            self.free.push(buffer);
        }
    }
    fn abort(&mut self, tag: Tag) {
        // What waits for a buffer, or has not started, never starts.
        let waits = self.waiting.iter().position(|w| w.0 == tag);
        let submitted = self.submitted.iter().position(|s| s.0 == tag);
        if let Some(at) = waits {
            self.waiting.remove(at);
            self.aborted.push_back(tag);
        } else if let Some(at) = submitted {
            self.submitted.remove(at);
            self.aborted.push_back(tag);
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
    fn intervene(&mut self, key: u16, _: Intervention) {
        self.wishes.push_back(key);
    }
    fn intervened(&mut self, _: u32, _: bool) {
        unreachable!("nobody here speaks for a connection to another")
    }
    fn close(&mut self, why: Close) {
        self.closed = Some(why);
    }
}
