//! What a connection has still to send, in order: small pieces in its own ring, payloads where they are.

use crate::{Memory, Slice};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Part {
    /// Bytes in the ring, whose room comes back once they are sent.
    Ring(Slice),
    /// Bytes elsewhere in the region; once they are sent, what the owner marked so is free again.
    Payload(Slice, Option<u32>),
    /// Everything before this was sent: what the owner marked so is free again.
    Release(u32),
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
        self.parts.iter().find_map(|part| match part {
            Part::Release(mark) | Part::Payload(_, Some(mark)) => Some(*mark),
            Part::Ring(_) | Part::Payload(_, None) => None,
        })
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
        let n = bytes.len() as u32;
        let place = self.ring.part(self.write, n);
        put(memory.bytes_mut(place), bytes);
        self.write += n;
        self.used += n;
        self.pending += u64::from(n);
        self.follow(place);
    }
    /// What lies next in the ring is sent next.
    fn follow(&mut self, place: Slice) {
        match self.parts.back_mut() {
            Some(Part::Ring(last)) if last.end() == place.at => last.len += place.len,
            _ => self.parts.push_back(Part::Ring(place)),
        }
    }
    /// Sends `data` from where it lies; it must stay as it is until it is sent.
    pub fn payload(&mut self, data: Slice) {
        if data.len > 0 {
            self.pending += u64::from(data.len);
            self.parts.push_back(Part::Payload(data, None));
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
        assert!(data.len > 0, "a mark needs data to stand behind");
        let (before, both) = (header.len() as u32, (header.len() + trailer.len()) as u32);
        if before > 0 && both < self.ring.len - self.write {
            // Both lie in one piece: they are put there at once.
            assert!(both <= self.room(), "an outbox ran out of room");
            let place = self.ring.part(self.write, both);
            let (first, second) = memory.bytes_mut(place).split_at_mut(header.len());
            put(first, header);
            self.write += both;
            self.used += both;
            self.pending += u64::from(both) + u64::from(data.len);
            self.follow(place.head(before));
            self.parts.push_back(Part::Payload(data, Some(mark)));
            if before < both {
                put(second, trailer);
                self.parts.push_back(Part::Ring(place.tail(before)));
            }
            return;
        }
        self.header(memory, header);
        self.pending += u64::from(data.len);
        self.parts.push_back(Part::Payload(data, Some(mark)));
        self.header(memory, trailer);
    }
    /// Reports `mark` from `on_sent` once everything before it is sent. False if that is already so.
    #[must_use]
    pub fn release_after(&mut self, mark: u32) -> bool {
        if self.pending > 0 {
            self.parts.push_back(Part::Release(mark));
        }
        self.pending > 0
    }
    /// What to send, in order.
    pub fn segments(&self) -> impl Iterator<Item = Slice> {
        self.parts.iter().filter_map(|p| match p {
            Part::Ring(s) | Part::Payload(s, _) => Some(*s),
            Part::Release(_) => None,
        })
    }
    /// `n` bytes of the front were sent; calls `release` for each mark that this reaches.
    pub fn on_sent(&mut self, n: u32, mut release: impl FnMut(u32)) {
        let mut left = n;
        self.sent += u64::from(n);
        self.pending = self.pending.checked_sub(u64::from(n)).expect("no more is sent than was there");
        while let Some(front) = self.parts.front_mut() {
            match front {
                Part::Release(mark) => release(*mark),
                Part::Ring(s) if s.len > left => {
                    *s = s.tail(left);
                    self.used -= left;
                    return;
                }
                Part::Payload(s, _) if s.len > left => {
                    *s = s.tail(left);
                    return;
                }
                Part::Ring(s) => {
                    left -= s.len;
                    self.used -= s.len;
                }
                Part::Payload(s, mark) => {
                    left -= s.len;
                    if let Some(mark) = *mark {
                        release(mark);
                    }
                }
            }
            self.parts.pop_front();
        }
    }
    /// Gives up what was not sent; calls `release` for every mark that waits.
    pub fn clear(&mut self, mut release: impl FnMut(u32)) {
        for part in self.parts.drain(..) {
            if let Part::Release(mark) | Part::Payload(_, Some(mark)) = part {
                release(mark);
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
