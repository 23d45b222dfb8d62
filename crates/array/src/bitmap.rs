//! Sets of regions, and the blocks in which the write-intent bitmap lies on the drives.
//!
//! The bytes are drawn in `docs/formats/bitmap.md`. A block with a wrong checksum says nothing: the reader must use
//! the block of another leg, or take every region of the block as dirty.

use crate::geometry::{BITMAP_BLOCK_BYTES, BITMAP_HEADER_BYTES, BITS_PER_BLOCK, Geometry};
use base::crc::crc32c;
use base::{Bug, Uuid, planted};
use serde::{Deserialize, Serialize};

/// The first bytes of a block of the bitmap.
pub const BITMAP_MAGIC: [u8; 8] = *b"MRBITMAP";
/// The version of the block's layout.
pub const BITMAP_VERSION: u32 = 1;
const CRC_AT: usize = 60;

/// A set of small numbers, all below a size fixed at the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Bitmap {
    words: Vec<u64>,
    len: u32,
}

/// What may be a bitmap.
#[derive(Deserialize)]
struct Unchecked {
    words: Vec<u64>,
    len: u32,
}

impl TryFrom<Unchecked> for Bitmap {
    type Error = &'static str;
    fn try_from(Unchecked { words, len }: Unchecked) -> Result<Self, &'static str> {
        let beyond = |last: &u64| len % 64 != 0 && last >> (len % 64) != 0;
        if words.len() != (len as usize).div_ceil(64) || words.last().is_some_and(beyond) {
            return Err("no Bitmap");
        }
        Ok(Self { words, len })
    }
}

impl Bitmap {
    /// The empty set of numbers below `len`.
    pub fn new(len: u32) -> Self {
        Self { words: vec![0; (len as usize).div_ceil(64)], len }
    }
    /// All numbers below `len`.
    pub fn full(len: u32) -> Self {
        let mut all = Self::new(len);
        all.fill();
        all
    }
    /// Numbers are below this.
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Whether no number can be in it: it was never given a size.
    pub fn is_nothing(&self) -> bool {
        self.len == 0
    }
    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }
    /// Whether `i` is in the set.
    pub fn get(&self, i: u32) -> bool {
        assert!(i < self.len, "a bitmap was asked beyond its end");
        self.words[(i / 64) as usize] >> (i % 64) & 1 == 1
    }
    /// Puts `i` in; whether it was not there.
    pub fn set(&mut self, i: u32) -> bool {
        let new = !self.get(i);
        self.words[(i / 64) as usize] |= 1 << (i % 64);
        new
    }
    /// Takes `i` out; whether it was there.
    pub fn clear(&mut self, i: u32) -> bool {
        let was = self.get(i);
        self.words[(i / 64) as usize] &= !(1 << (i % 64));
        was
    }
    /// Puts every number in.
    pub fn fill(&mut self) {
        for (i, word) in self.words.iter_mut().enumerate() {
            let bits = (self.len as usize - i * 64).min(64);
            *word = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        }
    }
    /// Takes every number out.
    pub fn clear_all(&mut self) {
        self.words.fill(0);
    }
    /// How many numbers are in the set.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }
    /// Puts in what `other`, a set of the same size, holds.
    pub fn union(&mut self, other: &Bitmap) {
        assert_eq!(self.len, other.len, "bitmaps of different sizes met");
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a |= b;
        }
    }
    /// The smallest number in the set that is `from` or more.
    pub fn next(&self, from: u32) -> Option<u32> {
        let mut i = (from / 64) as usize;
        let mut word = self.words.get(i)? & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                return Some(i as u32 * 64 + word.trailing_zeros());
            }
            i += 1;
            word = *self.words.get(i)?;
        }
    }
    /// The numbers in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let found = self.next(from)?;
            from = found + 1;
            Some(found)
        })
    }
}

/// Why the bytes are not a block of this array's bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BitmapError {
    /// No bitmap block at all: never written, or overwritten.
    Magic,
    /// A layout that this program does not know.
    Version(u32),
    /// Torn or rotten.
    Checksum,
    /// Another array's.
    Foreign,
    /// Another block's: written to the wrong place.
    Misplaced,
}

/// Writes block `index` into `out` (4096 bytes). `is_set` is asked for each bit that has a region.
pub fn encode_block(
    geometry: &Geometry,
    array: Uuid,
    index: u32,
    generation: u64,
    mut is_set: impl FnMut(u32) -> bool,
    out: &mut [u8],
) {
    assert_eq!(out.len(), BITMAP_BLOCK_BYTES as usize, "a bitmap block has one size");
    out.fill(0);
    out[..8].copy_from_slice(&BITMAP_MAGIC);
    out[8..12].copy_from_slice(&BITMAP_VERSION.to_le_bytes());
    out[12..16].copy_from_slice(&index.to_le_bytes());
    out[16..32].copy_from_slice(&array.0);
    out[32..40].copy_from_slice(&generation.to_le_bytes());
    out[40..48].copy_from_slice(&geometry.region_bytes.to_le_bytes());
    for bit in 0..BITS_PER_BLOCK {
        if geometry.region_of_bit(index, bit).is_none() {
            break;
        }
        if is_set(bit) {
            out[(BITMAP_HEADER_BYTES + bit / 8) as usize] |= 1 << (bit % 8);
        }
    }
    let crc = crc32c(out);
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Puts the regions whose bits are set in block `index` into `dirty`; its generation if it checks.
pub fn decode_block(
    geometry: &Geometry,
    array: Uuid,
    index: u32,
    block: &[u8],
    dirty: &mut Bitmap,
) -> Result<u64, BitmapError> {
    assert_eq!(block.len(), BITMAP_BLOCK_BYTES as usize, "a bitmap block has one size");
    let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"));
    if block[..8] != BITMAP_MAGIC {
        return Err(BitmapError::Magic);
    }
    let mut zeroed = [0; BITMAP_BLOCK_BYTES as usize];
    zeroed.copy_from_slice(block);
    zeroed[CRC_AT..CRC_AT + 4].fill(0);
    if crc32c(&zeroed) != word(CRC_AT) && !planted(Bug::ChecksumIgnored) {
        return Err(BitmapError::Checksum);
    }
    if word(8) != BITMAP_VERSION {
        return Err(BitmapError::Version(word(8)));
    }
    if block[16..32] != array.0 || long(40) != geometry.region_bytes {
        return Err(BitmapError::Foreign);
    }
    if word(12) != index {
        return Err(BitmapError::Misplaced);
    }
    for bit in 0..BITS_PER_BLOCK {
        let Some(region) = geometry.region_of_bit(index, bit) else { break };
        if block[(BITMAP_HEADER_BYTES + bit / 8) as usize] >> (bit % 8) & 1 == 1 {
            dirty.set(region);
        }
    }
    Ok(long(32))
}

/// The regions that may differ between legs, from the bitmaps of the legs in sync (each
/// `Geometry::bitmap_bytes` long; None for one that could not be read). Blocks that do not check are
/// passed over if another leg's does, since a bit is on every such leg before data are written; where
/// no leg's block checks, every region of it counts as dirty. Returns the set and how many blocks of
/// how many legs did not check.
///
/// A leg that is not in sync may have been written where no bitmap of the others says so (two legs
/// failed at once, and the one that stayed had missed the bits): what its own bitmap says must be added,
/// by another call with it alone: to the set at the start, or by `Array::add_dirty` when it returns.
pub fn merge(geometry: &Geometry, array: Uuid, legs: &[Option<&[u8]>]) -> (Bitmap, u32) {
    let mut dirty = Bitmap::new(geometry.regions());
    let mut bad = 0;
    for index in 0..geometry.bitmap_blocks {
        let at = index as usize * BITMAP_BLOCK_BYTES as usize;
        let mut known = false;
        for leg in legs {
            let block = leg.map(|bytes| &bytes[at..at + BITMAP_BLOCK_BYTES as usize]);
            match block.map(|b| decode_block(geometry, array, index, b, &mut dirty)) {
                Some(Ok(_)) => known = true,
                Some(Err(_)) | None => bad += 1,
            }
        }
        if !known {
            for bit in 0..BITS_PER_BLOCK {
                let Some(region) = geometry.region_of_bit(index, bit) else { break };
                dirty.set(region);
            }
        }
    }
    (dirty, bad)
}

/// Writes a whole bitmap, `Geometry::bitmap_bytes` long, in which `dirty` is set: for a new array
/// (nothing dirty where all drives read zeroes, everything otherwise).
pub fn encode(geometry: &Geometry, array: Uuid, dirty: &Bitmap, out: &mut [u8]) {
    assert_eq!(out.len() as u64, geometry.bitmap_bytes(), "the bitmap has one size");
    for (index, block) in out.chunks_mut(BITMAP_BLOCK_BYTES as usize).enumerate() {
        let index = index as u32;
        let is_set = |bit| geometry.region_of_bit(index, bit).is_some_and(|r| dirty.get(r));
        encode_block(geometry, array, index, 0, is_set, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry::plan(true, 0, 300 << 20, 65536).expect("fits")
    }

    fn sample() -> (Geometry, Uuid, Bitmap, Vec<u8>) {
        let geometry = geometry();
        let array = Uuid::from_random(1, 2);
        let mut dirty = Bitmap::new(geometry.regions());
        for region in [0, 5, 16, 17, 200, geometry.regions() - 1] {
            dirty.set(region);
        }
        let mut bytes = vec![0; geometry.bitmap_bytes() as usize];
        encode(&geometry, array, &dirty, &mut bytes);
        (geometry, array, dirty, bytes)
    }

    #[test]
    fn a_set_counts_and_walks() {
        let mut set = Bitmap::new(130);
        assert!(set.is_empty());
        for i in [0, 63, 64, 129] {
            assert!(set.set(i));
            assert!(!set.set(i));
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert_eq!((set.count(), set.next(65), set.next(130)), (4, Some(129), None));
        assert!(set.clear(63) && !set.clear(63));
        assert_eq!(Bitmap::full(130).count(), 130);
        assert_eq!(Bitmap::full(130).next(129), Some(129));
    }

    #[test]
    fn what_is_written_is_read_and_legs_are_united() {
        let (geometry, array, dirty, bytes) = sample();
        assert_eq!(merge(&geometry, array, &[Some(&bytes)]), (dirty.clone(), 0));
        let mut other = vec![0; bytes.len()];
        let mut more = Bitmap::new(geometry.regions());
        more.set(33);
        encode(&geometry, array, &more, &mut other);
        more.union(&dirty);
        assert_eq!(merge(&geometry, array, &[Some(&bytes), Some(&other)]), (more, 0));
    }

    #[test]
    fn a_block_that_any_flipped_bit_made_wrong_is_refused() {
        let (geometry, array, _, bytes) = sample();
        for at in 0..BITMAP_BLOCK_BYTES as usize {
            let mut block = bytes[..BITMAP_BLOCK_BYTES as usize].to_vec();
            block[at] ^= 1 << (at % 8);
            let mut set = Bitmap::new(geometry.regions());
            assert!(decode_block(&geometry, array, 0, &block, &mut set).is_err(), "byte {at}");
            assert!(set.is_empty());
        }
    }

    #[test]
    fn a_torn_block_means_everything_is_dirty_unless_another_leg_knows() {
        let (geometry, array, dirty, bytes) = sample();
        let mut torn = bytes.clone();
        torn[512..1024].fill(0xff);
        assert_eq!(merge(&geometry, array, &[Some(&torn), Some(&bytes)]), (dirty.clone(), 1));
        let (alone, bad) = merge(&geometry, array, &[Some(&torn), None]);
        assert_eq!(bad, 1 + geometry.bitmap_blocks);
        for region in 0..geometry.regions() {
            assert_eq!(alone.get(region), region % 16 == 0 || dirty.get(region));
        }
        let (nothing, _) = merge(&geometry, array, &[]);
        assert_eq!(nothing.count(), geometry.regions());
    }

    #[test]
    fn foreign_misplaced_and_future_blocks_are_distinguished() {
        let (geometry, array, _, bytes) = sample();
        let size = BITMAP_BLOCK_BYTES as usize;
        let mut set = Bitmap::new(geometry.regions());
        let mut read = |array, index, block: &[u8]| decode_block(&geometry, array, index, block, &mut set);
        assert_eq!(read(Uuid::from_random(3, 4), 0, &bytes[..size]), Err(BitmapError::Foreign));
        assert_eq!(read(array, 1, &bytes[..size]), Err(BitmapError::Misplaced));
        assert_eq!(read(array, 0, &[0; 4096]), Err(BitmapError::Magic));
        let mut future = bytes[..size].to_vec();
        future[8] = 9;
        future[CRC_AT..CRC_AT + 4].fill(0);
        let crc = crc32c(&future);
        future[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(read(array, 0, &future), Err(BitmapError::Version(9)));
    }
}
