//! The one region of memory that sockets and drives read and write.
//!
//! Every byte that the kernel (or the simulator's devices) ever touches lies in this region, which
//! lives as long as the world does. A mistake in a machine can send wrong bytes, but
//! never freed memory.

/// `len` bytes at byte `at` of the region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Slice {
    /// Offset in the region, bytes.
    pub at: u64,
    /// Length, bytes.
    pub len: u32,
}

impl Slice {
    /// `len` bytes at `at`.
    pub fn new(at: u64, len: u32) -> Self {
        Self { at, len }
    }
    /// The part of `len` bytes that begins `from` bytes into this one. Panics if it does not fit.
    pub fn part(self, from: u32, len: u32) -> Self {
        assert!(from <= self.len && len <= self.len - from, "a part of a slice lies outside of it");
        Self { at: self.at + u64::from(from), len }
    }
    /// The first `len` bytes.
    pub fn head(self, len: u32) -> Self {
        self.part(0, len)
    }
    /// What follows the first `from` bytes.
    pub fn tail(self, from: u32) -> Self {
        self.part(from, self.len - from)
    }
    /// The byte after the last one.
    pub fn end(self) -> u64 {
        self.at + u64::from(self.len)
    }
}

/// A machine's own part of the region. Slices of other machines' parts may be handed to drives, but
/// their bytes may not be looked at.
pub trait Memory {
    /// Offset and length of the part that this handle may look at, bytes.
    fn extent(&self) -> (u64, u64);
    /// The bytes of `s`. Panics outside of the own part.
    fn bytes(&self, s: Slice) -> &[u8];
    /// The bytes of `s`, to be written. Panics outside of the own part.
    fn bytes_mut(&mut self, s: Slice) -> &mut [u8];
    /// Copies `from` to `to`, which have the same length and do not overlap. Worlds that can do it in
    /// one step replace this.
    fn copy(&mut self, from: Slice, to: Slice) {
        assert_eq!(from.len, to.len, "a copy keeps its length");
        let mut piece = [0; 4096];
        let mut at = 0;
        while at < from.len {
            let n = (from.len - at).min(piece.len() as u32);
            piece[..n as usize].copy_from_slice(self.bytes(from.part(at, n)));
            self.bytes_mut(to.part(at, n)).copy_from_slice(&piece[..n as usize]);
            at += n;
        }
    }
}

/// Plain memory, for tests and the simulator.
pub struct PlainMemory {
    start: u64,
    bytes: Vec<u8>,
}

impl PlainMemory {
    /// `len` zero bytes that stand at `start` of the region.
    pub fn new(start: u64, len: usize) -> Self {
        Self { start, bytes: vec![0; len] }
    }
    fn range(&self, s: Slice) -> core::ops::Range<usize> {
        let at = s.at.checked_sub(self.start).expect("a slice lies before this memory") as usize;
        at..at + s.len as usize
    }
}

impl Memory for PlainMemory {
    fn extent(&self) -> (u64, u64) {
        (self.start, self.bytes.len() as u64)
    }
    fn bytes(&self, s: Slice) -> &[u8] {
        &self.bytes[self.range(s)]
    }
    fn bytes_mut(&mut self, s: Slice) -> &mut [u8] {
        let range = self.range(s);
        &mut self.bytes[range]
    }
    fn copy(&mut self, from: Slice, to: Slice) {
        assert_eq!(from.len, to.len, "a copy keeps its length");
        let (from, to) = (self.range(from), self.range(to));
        self.bytes.copy_within(from, to.start);
    }
}
