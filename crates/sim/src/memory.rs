//! Memory of simulated machines: zeroes that cost nothing until they are touched.

use base::{Memory, Slice};

/// Blocks of at least this size come from the kernel as untouched zero pages and go back when they are
/// freed, whatever the allocator has learnt about sizes (glibc's mmap threshold grows to 32 MiB). A head
/// that is killed and started again a hundred times would spend most of its time filling memory.
const UNTOUCHED: usize = 33 << 20;

/// A machine's part of the region.
pub struct SimMemory {
    start: u64,
    len: u64,
    bytes: Vec<u8>,
}

impl SimMemory {
    /// `len` zero bytes that stand at `start` of the region.
    pub fn new(start: u64, len: u64) -> Self {
        Self { start, len, bytes: vec![0; UNTOUCHED.max(len as usize)] }
    }
    fn range(&self, s: Slice) -> core::ops::Range<usize> {
        let at = s.at.checked_sub(self.start).expect("a slice lies before this memory");
        assert!(at + u64::from(s.len) <= self.len, "a slice lies behind this memory");
        at as usize..at as usize + s.len as usize
    }
}

impl Memory for SimMemory {
    fn extent(&self) -> (u64, u64) {
        (self.start, self.len)
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
