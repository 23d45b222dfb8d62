//! The bitmap of one instance's lanes: which bits are wanted, and which are durable.

use crate::bitmap::Bitmap;
use crate::flight::{Legs, List};
use crate::geometry::{BITS_PER_BLOCK, Geometry, LANES, Lanes};
use crate::writing::Writing;
use base::Instant;

/// Unit of `touched`, as a shift of nanoseconds: 134 ms.
pub(super) const TICK_SHIFT: u32 = 27;

/// Stands for a lane that another shard has.
const NOT_OURS: u8 = u8::MAX;

/// One block of the bitmap, of one of our lanes.
#[derive(Debug)]
pub(super) struct Block {
    /// Its place on the drive.
    pub(super) index: u32,
    /// First of its regions, as `local`.
    pub(super) from: u32,
    /// Number of its regions.
    pub(super) len: u32,
    pub(super) generation: u64,
    pub(super) writing: Option<Writing>,
    /// It must be written (again).
    pub(super) stale: bool,
    /// The next write only clears bits: nothing waits for it.
    pub(super) sets: bool,
    /// What the write under way says, by bit.
    pub(super) image: Bitmap,
    /// Flights whose bits are in the write under way.
    pub(super) current: List,
    /// Flights whose bits are in the next one.
    pub(super) next: List,
    /// Legs that have had a whole block since they joined.
    pub(super) holds: Legs,
    /// It must be written once more before everything counts as marked.
    pub(super) marking: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clearing {
    Quiet,
    /// Caches are being flushed; `spoilt` if something happened that makes it void.
    Flushing {
        pending: u8,
        spoilt: bool,
    },
}

/// The bitmap of one instance's lanes.
#[derive(Debug)]
pub(crate) struct Intent {
    /// The lanes that are ours, and which of these each lane is; `NOT_OURS`.
    lanes: Vec<u32>,
    nth: [u8; LANES as usize],
    per_lane: u32,
    pub(super) blocks: Vec<Block>,
    pub(super) wanted: Bitmap,
    pub(super) durable: Bitmap,
    /// Changes under way, by region.
    pub(super) changes: Vec<u16>,
    /// End of the last change, by region, in ticks.
    pub(super) touched: Vec<u32>,
    pub(super) clearing: Clearing,
    pub(super) candidates: Bitmap,
    pub(super) next_clear: Instant,
    pub(super) marking: bool,
    /// The number of the last `mark_all_dirty`.
    pub(super) mark: u32,
    /// Everything was marked for a leg that has not joined yet.
    pub(super) hold_marks: bool,
    pub(super) dirty: u32,
}

impl Intent {
    pub(crate) fn new(
        geometry: &Geometry,
        (shard, dealt): (u16, &Lanes),
        dirty: &Bitmap,
        epoch: u64,
    ) -> Self {
        let per_lane = if geometry.redundant() { geometry.regions_per_lane() } else { 0 };
        let lanes: Vec<u32> = dealt.of_shard(shard).collect();
        let mut nth = [NOT_OURS; LANES as usize];
        for (n, lane) in lanes.iter().enumerate() {
            nth[*lane as usize] = n as u8;
        }
        let mut blocks = Vec::new();
        let mut from = 0;
        for lane in lanes.iter().copied() {
            for nth in 0..geometry.blocks_per_lane() {
                let len = BITS_PER_BLOCK.min(per_lane.saturating_sub(nth * BITS_PER_BLOCK));
                blocks.push(Block {
                    index: lane * geometry.blocks_per_lane() + nth,
                    from,
                    len,
                    generation: epoch << 32,
                    writing: None,
                    stale: false,
                    sets: false,
                    image: Bitmap::new(len),
                    current: List::EMPTY,
                    next: List::EMPTY,
                    holds: 0,
                    marking: false,
                });
                from += len;
            }
        }
        let mut intent = Self {
            lanes,
            nth,
            per_lane,
            blocks,
            wanted: Bitmap::new(from),
            durable: Bitmap::new(from),
            changes: vec![0; from as usize],
            touched: vec![0; from as usize],
            clearing: Clearing::Quiet,
            candidates: Bitmap::new(from),
            next_clear: Instant(0),
            marking: false,
            mark: 0,
            hold_marks: false,
            dirty: 0,
        };
        if geometry.redundant() {
            for region in dirty.iter() {
                if dealt.of_region(region) == shard {
                    let local = intent.local(region);
                    intent.want(local);
                }
            }
        }
        intent
    }
    /// Number of own regions (some of them beyond the array's end, and never used).
    pub(crate) fn locals(&self) -> u32 {
        self.wanted.len()
    }
    /// An own region's number here.
    pub(crate) fn local(&self, region: u32) -> u32 {
        let lane = self.nth[(region % LANES) as usize];
        assert!(lane != NOT_OURS, "a region of another shard");
        u32::from(lane) * self.per_lane + region / LANES
    }
    /// The region of a number here.
    pub(crate) fn region(&self, local: u32) -> u32 {
        local % self.per_lane * LANES + self.lanes[(local / self.per_lane) as usize]
    }
    /// Regions whose bit is set or about to be.
    pub(crate) fn wanted(&self) -> &Bitmap {
        &self.wanted
    }
    /// Those of them whose bit is known to be set on every leg in sync.
    pub(crate) fn durable(&self) -> &Bitmap {
        &self.durable
    }
    pub(super) fn want(&mut self, local: u32) {
        self.dirty += u32::from(self.wanted.set(local));
    }
    pub(super) fn block_of(&self, local: u32) -> u32 {
        let found = self.blocks.partition_point(|b| b.from + b.len <= local);
        assert!(found < self.blocks.len(), "a region without a block");
        found as u32
    }
    /// The range of a change in this region is free again.
    pub(crate) fn leave(&mut self, now: Instant, local: u32) {
        self.changes[local as usize] -= 1;
        self.touched[local as usize] = (now.0 >> TICK_SHIFT) as u32;
    }
    /// Whether the bit of an own region is durable on every leg in sync.
    pub(crate) fn is_durable(&self, region: u32) -> bool {
        self.durable.get(self.local(region))
    }
    /// Legs that hold every block.
    pub(crate) fn held_by_all_blocks(&self) -> Legs {
        self.blocks.iter().fold(!0, |legs, b| legs & b.holds)
    }
}
