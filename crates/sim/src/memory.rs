//! Memory of simulated machines: zeroes that cost nothing until they are touched, in blocks that are used again.

use base::{Memory, Slice};
use core::ops::Range;
use std::cell::RefCell;

/// Bytes of a block. New ones of at least this size come from the kernel as untouched zero pages, whatever the allocator has
/// learnt about sizes (glibc's mmap threshold grows to 32 MiB).
const BLOCK: usize = 33 << 20;
/// A block remembers page by page where it was written.
const PAGE: usize = 4096;
/// Blocks that a thread keeps: two heads have some ten, and so have hosts.
const KEPT_MOST: usize = 32;

thread_local! {
    /// Blocks of machines that are gone, as they left them. A head that is killed and started again a hundred times would spend
    /// most of its time in the kernel, which clears each page anew and waits for other threads of the process.
    static KEPT: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that are zeroes wherever they were not written.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    written: Vec<bool>,
}

impl Block {
    /// At least so many zeroes.
    fn zeroes(len: usize) -> Self {
        let kept = if len <= BLOCK { KEPT.with_borrow_mut(Vec::pop) } else { None };
        let Some(mut block) = kept else {
            let len = len.max(BLOCK);
            return Self { bytes: vec![0; len], written: vec![false; len.div_ceil(PAGE)] };
        };
        for (page, written) in block.bytes.chunks_mut(PAGE).zip(&mut block.written) {
            if core::mem::take(written) {
                page.fill(0);
            }
        }
        block
    }
    /// Somebody writes there.
    fn writes(&mut self, range: &Range<usize>) {
        self.written[range.start / PAGE..range.end.div_ceil(PAGE)].fill(true);
    }
}

/// A machine's part of the region.
pub struct SimMemory {
    start: u64,
    len: u64,
    block: Block,
}

impl SimMemory {
    /// `len` zero bytes that stand at `start` of the region.
    pub fn new(start: u64, len: u64) -> Self {
        Self { start, len, block: Block::zeroes(len as usize) }
    }
    fn range(&self, s: Slice) -> Range<usize> {
        let at = s.at.checked_sub(self.start).expect("a slice lies before this memory");
        assert!(at + u64::from(s.len) <= self.len, "a slice lies behind this memory");
        at as usize..at as usize + s.len as usize
    }
}

impl Drop for SimMemory {
    fn drop(&mut self) {
        let block = core::mem::take(&mut self.block);
        if block.bytes.len() > BLOCK {
            return;
        }
        // A thread that ends keeps nothing.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEPT_MOST {
                kept.push(block);
            }
        });
    }
}

impl Memory for SimMemory {
    fn extent(&self) -> (u64, u64) {
        (self.start, self.len)
    }
    fn bytes(&self, s: Slice) -> &[u8] {
        &self.block.bytes[self.range(s)]
    }
    fn bytes_mut(&mut self, s: Slice) -> &mut [u8] {
        let range = self.range(s);
        self.block.writes(&range);
        &mut self.block.bytes[range]
    }
    fn copy(&mut self, from: Slice, to: Slice) {
        assert_eq!(from.len, to.len, "a copy keeps its length");
        let (from, to) = (self.range(from), self.range(to));
        self.block.writes(&to);
        self.block.bytes.copy_within(from, to.start);
    }
}
