//! The instance's scratch memory, cut into buffers that are free only when no drive holds them.
//!
//! An operation that was given up at its deadline may still be in the kernel, so a buffer is counted
//! by the operations on it, not by the work that used it.

use crate::geometry::BITMAP_BLOCK_BYTES;
use base::Slice;

/// Bytes that a resync moves at once, and that a host write to the same place waits for.
pub(crate) const PIECE_BYTES: u32 = 128 << 10;
/// Pieces under way at once in one instance.
pub(crate) const PIECES_MAX: u32 = 4;
/// Copies of bitmap blocks: 16 blocks, each with its successor, and room for those that hang.
const BLOCK_BUFFERS: u32 = 32;
/// Copies of blocks of the uncleared map. A block that finds none waits.
pub(crate) const MAP_BUFFERS: u32 = 32;
/// Pieces' buffers: more than pieces, so that a hung operation does not stop a resync.
const PIECE_BUFFERS: u32 = PIECES_MAX + 2;

/// What an instance needs.
pub(crate) const SCRATCH_BYTES: u32 =
    SINGLE_SCRATCH_BYTES + BLOCK_BUFFERS * BITMAP_BLOCK_BYTES + PIECE_BUFFERS * PIECE_BYTES;
/// What an instance of an array without redundancy needs.
pub(crate) const SINGLE_SCRATCH_BYTES: u32 = MAP_BUFFERS * BITMAP_BLOCK_BYTES;

/// A buffer's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BufferId(u16);

/// All buffers of one instance.
#[derive(Debug)]
pub(crate) struct Buffers {
    slices: Vec<Slice>,
    holders: Vec<u16>,
    maps: Vec<BufferId>,
    blocks: Vec<BufferId>,
    pieces: Vec<BufferId>,
}

impl Buffers {
    /// Cuts up `scratch`. An array without redundancy has no bitmap and copies nothing.
    pub(crate) fn new(scratch: Slice, redundant: bool) -> Self {
        let mut all = Self {
            slices: Vec::new(),
            holders: Vec::new(),
            maps: Vec::new(),
            blocks: Vec::new(),
            pieces: Vec::new(),
        };
        let (least, more) = if redundant {
            (SCRATCH_BYTES, BLOCK_BUFFERS + PIECE_BUFFERS)
        } else {
            (SINGLE_SCRATCH_BYTES, 0)
        };
        assert!(scratch.len >= least, "an array got too little scratch memory");
        let mut from = 0;
        for i in 0..MAP_BUFFERS + more {
            let len = if i < MAP_BUFFERS + BLOCK_BUFFERS { BITMAP_BLOCK_BYTES } else { PIECE_BYTES };
            all.slices.push(scratch.part(from, len));
            all.holders.push(0);
            all.pool_of(i).push(BufferId(i as u16));
            from += len;
        }
        all
    }
    fn pool_of(&mut self, i: u32) -> &mut Vec<BufferId> {
        match i {
            _ if i < MAP_BUFFERS => &mut self.maps,
            _ if i < MAP_BUFFERS + BLOCK_BUFFERS => &mut self.blocks,
            _ => &mut self.pieces,
        }
    }
    /// A buffer for a block of the uncleared map, held once.
    pub(crate) fn map(&mut self) -> Option<BufferId> {
        let id = self.maps.pop()?;
        self.holders[usize::from(id.0)] = 1;
        Some(id)
    }
    /// A buffer for a bitmap block, held once.
    pub(crate) fn block(&mut self) -> Option<BufferId> {
        let id = self.blocks.pop()?;
        self.holders[usize::from(id.0)] = 1;
        Some(id)
    }
    /// A buffer for a piece, held once.
    pub(crate) fn piece(&mut self) -> Option<BufferId> {
        let id = self.pieces.pop()?;
        self.holders[usize::from(id.0)] = 1;
        Some(id)
    }
    /// Where it lies.
    pub(crate) fn slice(&self, id: BufferId) -> Slice {
        self.slices[usize::from(id.0)]
    }
    /// One more holds it.
    pub(crate) fn hold(&mut self, id: BufferId) {
        self.holders[usize::from(id.0)] += 1;
    }
    /// One less holds it; the last one frees it.
    pub(crate) fn release(&mut self, id: BufferId) {
        let holders = &mut self.holders[usize::from(id.0)];
        assert!(*holders > 0, "a buffer was released too often");
        *holders -= 1;
        if *holders == 0 {
            self.pool_of(u32::from(id.0)).push(id);
        }
    }
    /// Whether every buffer is free.
    pub(crate) fn all_free(&self) -> bool {
        self.maps.len() + self.blocks.len() + self.pieces.len() == self.slices.len()
    }
}
