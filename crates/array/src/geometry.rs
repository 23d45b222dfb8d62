//! Where things lie on the drives of one array, and how its data space is cut into regions and lanes.
//!
//! A *region* is what one bit of the write-intent bitmap stands for. Regions are dealt out to `LANES`
//! lanes round robin, and a lane belongs to one shard ([`Lanes`]), so neighbouring regions are
//! worked on by different cores. The bitmap on the drive is ordered by lane, so that each of its blocks
//! has one writer.

use serde::{Deserialize, Serialize};

/// Legs of a mirror, at most.
pub const LEGS_MAX: usize = 4;
/// Places for legs in an array: one more, for a drive that is copied to while the one whose place it takes
/// still serves.
pub const PLACES_MAX: usize = LEGS_MAX + 1;
/// Lanes of an array. More shards than lanes leave some shards without lanes.
pub const LANES: u32 = 16;
/// Bytes of a block of the bitmap on the drive.
pub const BITMAP_BLOCK_BYTES: u32 = 4096;
/// Bytes of its header.
pub const BITMAP_HEADER_BYTES: u32 = 64;
/// Regions that one block of the bitmap speaks of.
pub const BITS_PER_BLOCK: u32 = (BITMAP_BLOCK_BYTES - BITMAP_HEADER_BYTES) * 8;
/// Smallest region, bytes: no command is larger, so none touches more than two.
pub const REGION_BYTES_MIN: u64 = 1 << 20;
/// Regions grow to this before there are more than `REGIONS_WANTED` of them.
const REGION_BYTES_USUAL_MAX: u64 = 64 << 20;
/// More regions than this cost more memory and bitmap than a shorter resync is worth.
const REGIONS_WANTED: u64 = 32 << 10;
/// Most regions of an array: 1 MiB of counters for each shard that owns all lanes.
pub const REGIONS_MAX: u64 = 256 << 10;
/// Data starts at a multiple of this.
const DATA_ALIGN: u64 = 1 << 20;

/// The layout that all legs of an array share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Geometry {
    /// Byte offset of the data space on each drive.
    pub data_at: u64,
    /// Size of the data space, bytes.
    pub data_bytes: u64,
    /// Bytes of a region, a power of two. A `single` array has regions too, which only cut commands.
    pub region_bytes: u64,
    /// Byte offset of the bitmap on each drive.
    pub bitmap_at: u64,
    /// Size of the bitmap in blocks of 4096 bytes; 0 for an array without redundancy.
    pub bitmap_blocks: u32,
}

/// What may be a geometry.
#[derive(Deserialize)]
struct Unchecked {
    data_at: u64,
    data_bytes: u64,
    region_bytes: u64,
    bitmap_at: u64,
    bitmap_blocks: u32,
}

impl TryFrom<Unchecked> for Geometry {
    type Error = &'static str;
    fn try_from(u: Unchecked) -> Result<Self, &'static str> {
        let Unchecked { data_at, data_bytes, region_bytes, bitmap_at, bitmap_blocks } = u;
        let geometry = Self { data_at, data_bytes, region_bytes, bitmap_at, bitmap_blocks };
        geometry.fits().then_some(geometry).ok_or("no Geometry")
    }
}

impl Geometry {
    /// The layout of an array whose smallest drive has `drive_bytes` and is free from `free_at` on.
    /// `chunk_bytes` is the pool's: no region is smaller. None if the drive is too small.
    pub fn plan(redundant: bool, free_at: u64, drive_bytes: u64, chunk_bytes: u64) -> Option<Geometry> {
        let bitmap_at = free_at.next_multiple_of(u64::from(BITMAP_BLOCK_BYTES));
        let mut region_bytes = REGION_BYTES_MIN.max(chunk_bytes.next_power_of_two());
        let room = drive_bytes.checked_sub(bitmap_at)?;
        while room / region_bytes > REGIONS_WANTED
            && (region_bytes < REGION_BYTES_USUAL_MAX || room / region_bytes > REGIONS_MAX - 1)
        {
            region_bytes *= 2;
        }
        let mut plan = Geometry { data_at: 0, data_bytes: room, region_bytes, bitmap_at, bitmap_blocks: 0 };
        if redundant {
            plan.bitmap_blocks = LANES * plan.regions().div_ceil(LANES).div_ceil(BITS_PER_BLOCK);
        }
        plan.data_at = (bitmap_at + plan.bitmap_bytes()).next_multiple_of(DATA_ALIGN);
        // Whole chunks only, so that the stripe never meets a short one.
        let unit = chunk_bytes.max(u64::from(BITMAP_BLOCK_BYTES));
        plan.data_bytes = drive_bytes.checked_sub(plan.data_at)? / unit * unit;
        (plan.data_bytes > 0).then_some(plan)
    }
    /// Whether this array keeps a bitmap and orders its changes by owner.
    pub fn redundant(&self) -> bool {
        self.bitmap_blocks > 0
    }
    /// Bytes of the bitmap on each drive.
    pub fn bitmap_bytes(&self) -> u64 {
        u64::from(self.bitmap_blocks) * u64::from(BITMAP_BLOCK_BYTES)
    }
    /// Number of regions; the last may be short.
    pub fn regions(&self) -> u32 {
        u32::try_from(self.data_bytes.div_ceil(self.region_bytes)).expect("an array has few regions")
    }
    /// The region of byte `at` of the data space.
    pub fn region(&self, at: u64) -> u32 {
        u32::try_from(at >> self.region_bytes.trailing_zeros()).expect("an array has few regions")
    }
    /// The byte after the region of byte `at`: a change of a redundant array must end there or before.
    pub fn region_end(&self, at: u64) -> u64 {
        ((at | (self.region_bytes - 1)) + 1).min(self.data_bytes)
    }
    /// Regions of each lane, rounded up.
    pub fn regions_per_lane(&self) -> u32 {
        self.regions().div_ceil(LANES)
    }
    /// Blocks of the bitmap that each lane has.
    pub fn blocks_per_lane(&self) -> u32 {
        self.bitmap_blocks / LANES
    }
    /// Where the bit of `region` lies: block of the bitmap, bit in that block.
    pub fn bit_of(&self, region: u32) -> (u32, u32) {
        let (lane, nth) = (region % LANES, region / LANES);
        (lane * self.blocks_per_lane() + nth / BITS_PER_BLOCK, nth % BITS_PER_BLOCK)
    }
    /// The region that a bit of the bitmap stands for; None for a bit beyond the last region.
    pub fn region_of_bit(&self, block: u32, bit: u32) -> Option<u32> {
        let lane = block / self.blocks_per_lane();
        let nth = block % self.blocks_per_lane() * BITS_PER_BLOCK + bit;
        let region = nth * LANES + lane;
        (region < self.regions()).then_some(region)
    }
    /// The shard that executes changes of `region`.
    #[inline]
    pub fn owner_of_region(&self, region: u32, lanes: &Lanes) -> u16 {
        if self.redundant() { lanes.of_region(region) } else { 0 }
    }
    /// Panics unless the fields fit together: what is read from a drive is checked before it comes here.
    pub fn check(&self) {
        assert!(self.fits(), "an array's geometry contradicts itself: {self:?}");
    }
    /// Whether the fields fit together.
    pub fn fits(&self) -> bool {
        let sane = self.region_bytes.is_power_of_two()
            && self.region_bytes >= u64::from(BITMAP_BLOCK_BYTES)
            && self.data_bytes > 0
            && self.data_bytes.div_ceil(self.region_bytes) <= REGIONS_MAX
            && self.data_at.checked_add(self.data_bytes).is_some();
        if !sane || !self.redundant() {
            return sane;
        }
        let end = self.bitmap_at.checked_add(self.bitmap_bytes());
        self.bitmap_blocks.is_multiple_of(LANES)
            && u64::from(self.blocks_per_lane()) * u64::from(BITS_PER_BLOCK)
                >= u64::from(self.regions_per_lane())
            && end.is_some_and(|end| end <= self.data_at)
    }
}

/// Which shard has each lane of an array: it alone changes the regions of that lane, and writes its blocks of the bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lanes([u16; LANES as usize]);

impl Lanes {
    /// Lanes that are dealt to so many shards, from the first one, one after the other.
    pub fn dealt(shards: u16) -> Self {
        assert!(shards > 0, "somebody has each lane");
        Self(core::array::from_fn(|lane| lane as u16 % shards))
    }
    /// Each lane's shard.
    pub fn new(owners: [u16; LANES as usize]) -> Self {
        Self(owners)
    }
    /// The same lanes, of shards that have other numbers.
    pub fn renumbered(self, number: impl FnMut(u16) -> u16) -> Self {
        Self(self.0.map(number))
    }
    /// Whether this shard has a lane.
    pub fn has(&self, shard: u16) -> bool {
        self.0.contains(&shard)
    }
    /// Whether only shards below this number have lanes.
    pub fn are_below(&self, shards: u16) -> bool {
        self.0.iter().all(|shard| *shard < shards)
    }
    /// The shard that has the lane of this region.
    #[inline]
    pub fn of_region(&self, region: u32) -> u16 {
        self.0[(region % LANES) as usize]
    }
    /// The lanes that this shard has, in ascending order.
    pub fn of_shard(&self, shard: u16) -> impl Iterator<Item = u32> {
        (0..LANES).filter(move |lane| self.0[*lane as usize] == shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn plans_fit_and_have_a_sane_number_of_regions() {
        for bytes in
            [8 << 20, 64 << 20, GIB, 100 * GIB, 3840 * 1_000_000_000, 30_720 * 1_000_000_000, 1 << 50]
        {
            for redundant in [false, true] {
                let plan = Geometry::plan(redundant, 3 << 20, bytes, 65536).expect("fits");
                plan.check();
                assert!(u64::from(plan.regions()) <= REGIONS_MAX, "{plan:?}");
                assert!(plan.data_at + plan.data_bytes <= bytes);
                assert_eq!(plan.redundant(), redundant);
            }
        }
        assert_eq!(
            Geometry::plan(true, 3 << 20, 3840 * 1_000_000_000, 65536).expect("fits").region_bytes,
            64 << 20
        );
    }

    #[test]
    fn a_drive_that_is_too_small_has_no_plan() {
        assert_eq!(Geometry::plan(true, 3 << 20, 4 << 20, 65536), None);
        assert_eq!(Geometry::plan(true, 3 << 20, 0, 65536), None);
        assert_eq!(Geometry::plan(false, u64::MAX - 9000, 1 << 30, 65536), None);
    }

    #[test]
    fn every_region_has_a_bit_of_its_own_in_its_lanes_blocks() {
        let geometry = Geometry {
            data_at: 64 << 20,
            data_bytes: 600_000 * 4096 / 3,
            region_bytes: 4096,
            bitmap_at: 0,
            bitmap_blocks: 16,
        };
        geometry.check();
        let mut seen = std::collections::BTreeSet::new();
        for region in 0..geometry.regions() {
            let (block, bit) = geometry.bit_of(region);
            assert!(seen.insert((block, bit)));
            assert_eq!(block / geometry.blocks_per_lane(), region % LANES);
            assert_eq!(geometry.region_of_bit(block, bit), Some(region));
        }
    }

    #[test]
    fn a_geometry_that_contradicts_itself_is_noticed() {
        let good = Geometry::plan(true, 0, GIB, 65536).expect("fits");
        for bad in [
            Geometry { region_bytes: 3 << 20, ..good },
            Geometry { bitmap_blocks: 17, ..good },
            Geometry { data_at: good.bitmap_at, ..good },
            Geometry { data_bytes: 0, ..good },
            Geometry { data_bytes: u64::MAX, ..good },
            Geometry { region_bytes: 0, ..good },
        ] {
            assert!(!bad.fits(), "{bad:?}");
        }
    }
}
