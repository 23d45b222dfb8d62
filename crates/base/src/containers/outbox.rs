//! What a connection has still to send, in order: small pieces in its own ring, payloads where they are.

use crate::{Memory, Slice};
use std::collections::VecDeque;

/// No mark.
const NONE: u32 = u32::MAX;

/// What is sent in a row: bytes in the ring, then bytes elsewhere in the region; either may be none. Most answers are one.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Where in the ring, and how many bytes. Their room comes back once they are sent.
    at: u32,
    len: u32,
    data: Slice,
    /// Once all that is sent: what the owner marked so is free again.
    mark: u32,
}

impl Part {
    fn bytes(&self) -> u32 {
        self.len + self.data.len
    }
    /// Whether more bytes may come behind those in the ring.
    fn is_open(&self) -> bool {
        self.data.len == 0 && self.mark == NONE
    }
}

/// Length of most headers: of a response, and of C2HData without digest (NVMe/TCP).
const USUAL: usize = 24;

/// One connection's output. At most one send is in flight, so parts are sent from the front.
#[derive(Debug)]
pub struct Outbox {
    ring: Slice,
    write: u32,
    used: u32,
    parts: VecDeque<Part>,
    pending: u64,
    sent: u64,
}

impl Outbox {
    /// An empty outbox over `ring`, which holds headers and small answers.
    pub fn new(ring: Slice, parts_max: usize) -> Self {
        Self { ring, write: 0, used: 0, parts: VecDeque::with_capacity(parts_max), pending: 0, sent: 0 }
    }
    /// Bytes that `header` can still take.
    pub fn room(&self) -> u32 {
        self.ring.len - self.used
    }
    /// Bytes yet to be sent.
    pub fn pending(&self) -> u64 {
        self.pending
    }
    /// Bytes ever sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }
    /// The mark that `on_sent` reports next.
    pub fn next_mark(&self) -> Option<u32> {
        self.parts.iter().map(|part| part.mark).find(|mark| *mark != NONE)
    }
    /// Copies `bytes` into the ring. Panics without room: ask `room` before taking on a command.
    pub fn header(&mut self, memory: &mut impl Memory, bytes: &[u8]) {
        assert!(bytes.len() as u64 <= u64::from(self.room()), "an outbox ran out of room");
        if bytes.is_empty() {
            return;
        }
        let until_end = (self.ring.len - self.write) as usize;
        if bytes.len() < until_end {
            self.piece(memory, bytes);
        } else {
            let (now, later) = bytes.split_at(until_end);
            self.piece(memory, now);
            self.write = 0;
            if !later.is_empty() {
                self.piece(memory, later);
            }
        }
    }
    /// Bytes that lie in the ring in one piece.
    fn piece(&mut self, memory: &mut impl Memory, bytes: &[u8]) {
        let (at, len) = (self.write, bytes.len() as u32);
        put(memory.bytes_mut(self.ring.part(at, len)), bytes);
        self.write += len;
        self.used += len;
        self.pending += u64::from(len);
        self.follow(at, len, Slice::default(), NONE);
    }
    /// Bytes that lie next in the ring, then `data`, are sent next.
    fn follow(&mut self, at: u32, len: u32, data: Slice, mark: u32) {
        match self.parts.back_mut() {
            Some(last) if last.is_open() && last.at + last.len == at => {
                last.len += len;
                last.data = data;
                last.mark = mark;
            }
            _ => self.parts.push_back(Part { at, len, data, mark }),
        }
    }
    /// Sends `data` from where it lies; it must stay as it is until it is sent.
    pub fn payload(&mut self, data: Slice) {
        if data.len > 0 {
            self.pending += u64::from(data.len);
            self.follow(self.write, 0, data, NONE);
        }
    }
    /// Sends `header`, `data` from where they lie, and `trailer`; reports `mark` from `on_sent` once the data
    /// are sent. Panics without room, or without data.
    pub fn framed(
        &mut self,
        memory: &mut impl Memory,
        header: &[u8],
        data: Slice,
        trailer: &[u8],
        mark: u32,
    ) {
        assert!(data.len > 0 && mark != NONE, "a mark needs data to stand behind");
        let (before, both) = (header.len() as u32, (header.len() + trailer.len()) as u32);
        if both < self.ring.len - self.write {
            // Both lie in one piece: they are put there at once.
            assert!(both <= self.room(), "an outbox ran out of room");
            let at = self.write;
            let (first, second) = memory.bytes_mut(self.ring.part(at, both)).split_at_mut(header.len());
            put(first, header);
            self.write += both;
            self.used += both;
            self.pending += u64::from(both) + u64::from(data.len);
            self.follow(at, before, data, mark);
            if before < both {
                put(second, trailer);
                let (at, len) = (at + before, both - before);
                self.parts.push_back(Part { at, len, data: Slice::default(), mark: NONE });
            }
            return;
        }
        self.header(memory, header);
        self.pending += u64::from(data.len);
        self.follow(self.write, 0, data, mark);
        self.header(memory, trailer);
    }
    /// Reports `mark` from `on_sent` once everything before it is sent. False if that is already so.
    #[must_use]
    pub fn release_after(&mut self, mark: u32) -> bool {
        if self.pending == 0 {
            return false;
        }
        match self.parts.back_mut() {
            Some(last) if last.mark == NONE => last.mark = mark,
            _ => self.parts.push_back(Part { at: self.write, len: 0, data: Slice::default(), mark }),
        }
        true
    }
    /// What to send, in order.
    pub fn segments(&self) -> impl Iterator<Item = Slice> {
        let both = |p: &Part| [self.ring.part(p.at, p.len), p.data];
        self.parts.iter().flat_map(both).filter(|s| s.len > 0)
    }
    /// `n` bytes of the front were sent; calls `release` for each mark that this reaches.
    pub fn on_sent(&mut self, n: u32, mut release: impl FnMut(u32)) {
        let mut left = n;
        self.sent += u64::from(n);
        self.pending = self.pending.checked_sub(u64::from(n)).expect("no more is sent than was there");
        while let Some(front) = self.parts.front_mut() {
            let bytes = front.bytes();
            if left < bytes {
                let of_ring = left.min(front.len);
                front.at += of_ring;
                front.len -= of_ring;
                front.data = front.data.tail(left - of_ring);
                self.used -= of_ring;
                return;
            }
            left -= bytes;
            self.used -= front.len;
            if front.mark != NONE {
                release(front.mark);
            }
            self.parts.pop_front();
        }
    }
    /// Gives up what was not sent; calls `release` for every mark that waits.
    pub fn clear(&mut self, mut release: impl FnMut(u32)) {
        for part in self.parts.drain(..) {
            if part.mark != NONE {
                release(part.mark);
            }
        }
        self.write = 0;
        self.used = 0;
        self.pending = 0;
    }
    /// The ring's memory, to be given back when the connection ends.
    pub fn ring(&self) -> Slice {
        self.ring
    }
}

/// Copies bytes of the same number.
#[inline]
fn put(to: &mut [u8], bytes: &[u8]) {
    match (<&mut [u8; USUAL]>::try_from(&mut *to), <&[u8; USUAL]>::try_from(bytes)) {
        // A copy of known length is no call.
        (Ok(to), Ok(bytes)) => *to = *bytes,
        _ => to.copy_from_slice(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::PlainMemory;

    #[test]
    fn the_ring_wraps_and_marks_come_after_their_bytes() {
        let mut memory = PlainMemory::new(100, 64);
        let mut out = Outbox::new(Slice::new(100, 8), 8);
        out.header(&mut memory, b"abcdef");
        out.payload(Slice::new(120, 10));
        assert!(out.release_after(7));
        let mut freed = vec![];
        out.on_sent(6, |t| freed.push(t));
        assert!(freed.is_empty());
        out.header(&mut memory, b"123456");
        assert_eq!(out.room(), 2);
        assert_eq!(out.segments().map(|s| s.len).collect::<Vec<_>>(), [10, 2, 4]);
        out.on_sent(11, |t| freed.push(t));
        assert_eq!(freed, [7]);
        out.on_sent(5, |t| freed.push(t));
        assert_eq!((out.pending(), out.room()), (0, 8));
        assert!(!out.release_after(8));
    }

    #[test]
    fn framed_data_are_free_once_they_are_sent_whatever_follows() {
        let mut memory = PlainMemory::new(100, 64);
        let mut out = Outbox::new(Slice::new(100, 8), 8);
        let mut freed = vec![];
        out.framed(&mut memory, b"abc", Slice::new(120, 10), b"de", 7);
        assert_eq!(out.segments().map(|s| s.len).collect::<Vec<_>>(), [3, 10, 2]);
        out.on_sent(12, |t| freed.push(t));
        assert_eq!((freed.as_slice(), out.room()), (&[][..], 6));
        out.on_sent(1, |t| freed.push(t));
        assert_eq!((freed.as_slice(), out.pending()), (&[7][..], 2));
        out.framed(&mut memory, b"x", Slice::new(120, 10), b"", 8);
        out.clear(|t| freed.push(t));
        assert_eq!((freed.as_slice(), out.pending(), out.room()), (&[7, 8][..], 0, 8));
    }
}
