//! The uncleared map: how an array is cut into pieces, and the blocks in which the map lies on a leg.
//!
//! The bytes are drawn in `docs/formats/uncleared.md`. Each block has two slots, written in turn: a write that is
//! torn leaves the block's older copy.

use crate::bitmap::Bitmap;
use crate::geometry::{BITMAP_BLOCK_BYTES, BITMAP_HEADER_BYTES, BITS_PER_BLOCK, Geometry, LANES};
use base::Uuid;
use base::crc::crc32c;
use serde::{Deserialize, Serialize};

/// The first bytes of a block of the map.
pub const UNCLEARED_MAGIC: [u8; 8] = *b"MRUNCLRD";
/// The version of the block's layout.
pub const UNCLEARED_VERSION: u32 = 1;
/// Bytes of the map's area on a leg.
pub const UNCLEARED_AREA_BYTES: u64 = (LANES * BLOCKS_PER_LANE * SLOTS * BITMAP_BLOCK_BYTES) as u64;
/// Blocks of a lane, at most.
const BLOCKS_PER_LANE: u32 = 7;
/// Places of a block: the next copy never overwrites the newest one.
const SLOTS: u32 = 2;
/// Smallest piece, bytes.
const PIECE_BYTES_MIN: u64 = 64 << 10;
const CRC_AT: usize = 60;

/// How an array is cut into pieces. A piece lies in one region; the last one of the array may be short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pieces {
    /// Bytes of a piece, a power of two.
    pub(crate) bytes: u64,
    /// Pieces of a region.
    pub(crate) per_region: u32,
    /// Pieces of a lane, those beyond the array's end included.
    pub(crate) per_lane: u32,
    data_bytes: u64,
}

impl Pieces {
    /// The smallest pieces of which the map has room for all.
    pub(crate) fn of(geometry: &Geometry) -> Self {
        let mut bytes = PIECE_BYTES_MIN.min(geometry.region_bytes);
        let most = BLOCKS_PER_LANE * BITS_PER_BLOCK / geometry.regions_per_lane();
        while geometry.region_bytes / bytes > u64::from(most) {
            bytes *= 2;
        }
        let per_region = (geometry.region_bytes / bytes) as u32;
        let per_lane = geometry.regions_per_lane() * per_region;
        Self { bytes, per_region, per_lane, data_bytes: geometry.data_bytes }
    }
    /// Number of pieces of the array.
    pub(crate) fn count(&self) -> u32 {
        self.data_bytes.div_ceil(self.bytes) as u32
    }
    /// The piece of byte `at`.
    #[inline]
    pub(crate) fn piece(&self, at: u64) -> u32 {
        (at >> self.bytes.trailing_zeros()) as u32
    }
    /// Where a piece begins, and the byte after its end.
    pub(crate) fn range(&self, piece: u32) -> (u64, u64) {
        let at = u64::from(piece) * self.bytes;
        (at, (at + self.bytes).min(self.data_bytes))
    }
    /// Blocks that a lane has.
    pub(crate) fn blocks_per_lane(&self) -> u32 {
        self.per_lane.div_ceil(BITS_PER_BLOCK)
    }
    /// The lane of a piece, and its number there.
    pub(crate) fn in_lane(&self, piece: u32) -> (u32, u32) {
        let (region, nth) = (piece / self.per_region, piece % self.per_region);
        (region % LANES, region / LANES * self.per_region + nth)
    }
    /// The piece with this number in a lane; it may lie beyond the array's end.
    pub(crate) fn of_lane(&self, lane: u32, nth: u32) -> u32 {
        (nth / self.per_region * LANES + lane) * self.per_region + nth % self.per_region
    }
    /// Bits of a block, those of pieces beyond the array's end included.
    pub(crate) fn bits_of(&self, block: u32) -> u32 {
        BITS_PER_BLOCK.min(self.per_lane - block * BITS_PER_BLOCK)
    }
    /// Where this copy of a block lies in the map's area.
    pub(crate) fn slot_at(lane: u32, block: u32, generation: u64) -> u64 {
        let slot = (lane * BLOCKS_PER_LANE + block) * SLOTS + (generation % u64::from(SLOTS)) as u32;
        u64::from(slot) * u64::from(BITMAP_BLOCK_BYTES)
    }
}

/// Writes a block into `out` (4096 bytes). `is_set` is asked for each bit of a piece.
pub(crate) fn encode_block(
    pieces: &Pieces,
    (array, life): (Uuid, u64),
    (lane, block): (u32, u32),
    generation: u64,
    is_set: impl Fn(u32) -> bool,
    out: &mut [u8],
) {
    assert_eq!(out.len(), BITMAP_BLOCK_BYTES as usize, "a block of the map has one size");
    out.fill(0);
    out[..8].copy_from_slice(&UNCLEARED_MAGIC);
    out[8..12].copy_from_slice(&UNCLEARED_VERSION.to_le_bytes());
    out[12..16].copy_from_slice(&block.to_le_bytes());
    out[16..32].copy_from_slice(&array.0);
    out[32..40].copy_from_slice(&generation.to_le_bytes());
    out[40..48].copy_from_slice(&pieces.bytes.to_le_bytes());
    out[48..52].copy_from_slice(&lane.to_le_bytes());
    out[52..60].copy_from_slice(&life.to_le_bytes());
    for bit in 0..pieces.bits_of(block) {
        if is_set(bit) {
            out[(BITMAP_HEADER_BYTES + bit / 8) as usize] |= 1 << (bit % 8);
        }
    }
    let crc = crc32c(out);
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
}

/// What bytes are that should be a copy of a block.
enum Copy<'a> {
    /// Never written in this life, or another array's.
    Absent,
    /// Torn or rotten.
    Damaged,
    /// Whole, with its generation and bits.
    Whole(u64, &'a [u8]),
}

fn decode_block<'a>(
    pieces: &Pieces,
    (array, life): (Uuid, u64),
    (lane, index): (u32, u32),
    block: &'a [u8],
) -> Copy<'a> {
    let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"));
    if block[..8] != UNCLEARED_MAGIC {
        return Copy::Absent;
    }
    let mut zeroed = block.to_vec();
    zeroed[CRC_AT..CRC_AT + 4].fill(0);
    if crc32c(&zeroed) != word(CRC_AT) {
        return Copy::Damaged;
    }
    let ours = word(8) == UNCLEARED_VERSION
        && block[16..32] == array.0
        && (long(40), long(52)) == (pieces.bytes, life)
        && (word(48), word(12)) == (lane, index);
    if ours { Copy::Whole(long(32), &block[BITMAP_HEADER_BYTES as usize..]) } else { Copy::Absent }
}

/// The map of one array.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct UnclearedMap {
    /// From the pool's configuration: blocks of another life say nothing. 0: there is no map.
    pub(crate) life: u64,
    /// Pieces that read as zeroes, whatever lies there, by their place in the data space. Empty: there is no map, and
    /// nothing is uncleared.
    pub(crate) pieces: Bitmap,
    /// The newest generation of each block, by lane and block.
    pub(crate) newest: Vec<u64>,
}

/// What may be a map.
#[derive(Deserialize)]
struct Unchecked {
    life: u64,
    pieces: Bitmap,
    newest: Vec<u64>,
}

impl TryFrom<Unchecked> for UnclearedMap {
    type Error = &'static str;
    fn try_from(Unchecked { life, pieces, newest }: Unchecked) -> Result<Self, &'static str> {
        let blocks = if life == 0 { 0 } else { (LANES * BLOCKS_PER_LANE) as usize };
        if (life == 0) != pieces.is_nothing() || newest.len() != blocks {
            return Err("no UnclearedMap");
        }
        Ok(Self { life, pieces, newest })
    }
}

impl UnclearedMap {
    /// Whether it is a map of an array of this geometry, or none.
    pub fn fits(&self, geometry: &Geometry) -> bool {
        self.pieces.is_nothing() || self.pieces.len() == Pieces::of(geometry).count()
    }
    /// Everything is uncleared. `life` is not 0.
    pub fn all(geometry: &Geometry, life: u64) -> Self {
        assert!(life != 0, "a map has a life");
        let pieces = Pieces::of(geometry);
        let newest = vec![1; (LANES * BLOCKS_PER_LANE) as usize];
        Self { life, pieces: Bitmap::full(pieces.count()), newest }
    }
    /// Nothing is, and there is no map.
    pub fn none() -> Self {
        Self::default()
    }
    /// The map's life; 0: there is no map.
    pub fn life(&self) -> u64 {
        self.life
    }
    /// Numbers of the pieces that are uncleared.
    pub fn pieces(&self) -> impl Iterator<Item = u32> {
        self.pieces.iter()
    }
    /// Whether nothing is uncleared.
    pub fn is_clear(&self) -> bool {
        self.pieces.is_empty()
    }
    /// Whether every block of it was read from some drive.
    pub fn is_written(&self, geometry: &Geometry) -> bool {
        let blocks = Pieces::of(geometry).blocks_per_lane();
        (0..LANES).all(|lane| (0..blocks).all(|block| self.newest(lane, block) != 0))
    }

    /// Bytes of the data space that are uncleared.
    pub fn bytes(&self, geometry: &Geometry) -> u64 {
        let pieces = Pieces::of(geometry);
        let len = |p: u32| pieces.range(p).1 - pieces.range(p).0;
        self.pieces.iter().map(len).sum()
    }
    /// The newest generation of a block; 0 if it was never written.
    pub(crate) fn newest(&self, lane: u32, block: u32) -> u64 {
        self.newest.get((lane * BLOCKS_PER_LANE + block) as usize).copied().unwrap_or(0)
    }
    /// The map's area as it lies on a leg, `UNCLEARED_AREA_BYTES` long.
    pub fn encode(&self, geometry: &Geometry, array: Uuid) -> Vec<u8> {
        let pieces = Pieces::of(geometry);
        let mut area = vec![0; UNCLEARED_AREA_BYTES as usize];
        if self.pieces.is_nothing() {
            return area;
        }
        for lane in 0..LANES {
            for block in 0..pieces.blocks_per_lane() {
                let generation = self.newest(lane, block);
                let at = Pieces::slot_at(lane, block, generation) as usize;
                let out = &mut area[at..at + BITMAP_BLOCK_BYTES as usize];
                let is_set = |bit| {
                    let piece = pieces.of_lane(lane, block * BITS_PER_BLOCK + bit);
                    piece < pieces.count() && self.pieces.get(piece)
                };
                encode_block(&pieces, (array, self.life), (lane, block), generation, is_set, out);
            }
        }
        area
    }
    /// What the areas of the legs in sync say together (each `UNCLEARED_AREA_BYTES` long, None for one that could not be
    /// read). Where legs differ, *uncleared* counts: no write there was answered before all of them said otherwise. A leg whose
    /// copy is damaged, or older than two writes of the block can leave it, says nothing if another one has a newer copy
    /// (docs/formats/uncleared.md).
    pub fn merge(geometry: &Geometry, array: Uuid, life: u64, legs: &[Option<&[u8]>]) -> Merged {
        let pieces = Pieces::of(geometry);
        let mut map = Self {
            life,
            pieces: Bitmap::new(pieces.count()),
            newest: vec![0; (LANES * BLOCKS_PER_LANE) as usize],
        };
        let (mut mends, mut lost) = (vec![], 0);
        for lane in 0..LANES {
            for block in 0..pieces.blocks_per_lane() {
                let place = (lane, block);
                // Of each leg the newest copy that is whole, and whether one is damaged.
                let mut copies = vec![];
                for (leg, area) in legs.iter().enumerate().filter_map(|(i, a)| Some((i, (*a)?))) {
                    let mut damaged = false;
                    let mut newest: Option<(u64, &[u8])> = None;
                    let mut before = None;
                    for slot in 0..SLOTS {
                        let at = Pieces::slot_at(lane, block, u64::from(slot)) as usize;
                        let block = &area[at..][..BITMAP_BLOCK_BYTES as usize];
                        match decode_block(&pieces, (array, life), place, block) {
                            Copy::Absent => {}
                            Copy::Damaged => damaged = true,
                            Copy::Whole(generation, bits) if newest.is_none_or(|(g, _)| g < generation) => {
                                before = newest.replace((generation, bits)).map(|(g, _)| g);
                            }
                            Copy::Whole(generation, _) => before = Some(generation),
                        }
                    }
                    copies.push((leg, newest, before, damaged));
                }
                let with_copy = copies.iter().filter_map(|(_, copy, before, _)| Some(((*copy)?, *before)));
                let Some(((generation, bits), before)) = with_copy.max_by_key(|((g, _), _)| *g) else {
                    lost += u32::from(copies.iter().any(|(.., damaged)| *damaged));
                    continue;
                };
                let behind = |copy: &Option<(u64, &[u8])>| copy.is_none_or(|(g, _)| g < generation);
                // One write of a block follows the other, on all legs: no leg lacks two.
                let older =
                    |copy: &Option<(u64, &[u8])>| copy.is_some_and(|(g, _)| before.is_some_and(|b| g < b));
                let says_nothing =
                    |copy: &Option<(u64, &[u8])>, damaged: bool| damaged && behind(copy) || older(copy);
                for (leg, ..) in copies.iter().filter(|(_, copy, _, damaged)| says_nothing(copy, *damaged)) {
                    let is_set = |bit: u32| bits[(bit / 8) as usize] >> (bit % 8) & 1 == 1;
                    let mut bytes = vec![0; BITMAP_BLOCK_BYTES as usize];
                    encode_block(&pieces, (array, life), place, generation, is_set, &mut bytes);
                    mends.push(Mend { leg: *leg, at: Pieces::slot_at(lane, block, generation), bytes });
                }
                let believed = copies.iter().filter(|(_, copy, _, damaged)| !says_nothing(copy, *damaged));
                let whole: Vec<&[u8]> = believed.filter_map(|(_, copy, ..)| Some((*copy)?.1)).collect();
                map.newest[(lane * BLOCKS_PER_LANE + block) as usize] = generation;
                for bit in 0..pieces.bits_of(block) {
                    let piece = pieces.of_lane(lane, block * BITS_PER_BLOCK + bit);
                    let says = |bits: &&[u8]| bits[(bit / 8) as usize] >> (bit % 8) & 1 == 1;
                    if piece < pieces.count() && whole.iter().any(says) {
                        map.pieces.set(piece);
                    }
                }
            }
        }
        Merged { map, mends, lost }
    }
}

/// What the maps of several legs say together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged {
    /// The map.
    pub map: UnclearedMap,
    /// Blocks that are damaged on a leg, and whole and newer on another: to be written, durably, before the array serves.
    pub mends: Vec<Mend>,
    /// Blocks that are damaged on every leg that ever had them: their pieces count as cleared.
    pub lost: u32,
}

/// A block of the map that a leg lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mend {
    /// Index among the legs that were merged.
    pub leg: usize,
    /// Where in the area, bytes.
    pub at: u64,
    /// The block.
    pub bytes: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: u64 = 7;

    fn sample() -> (Geometry, Uuid, UnclearedMap) {
        let geometry = Geometry::plan(true, 0, 3 << 30, 65536).expect("fits");
        let pieces = Pieces::of(&geometry);
        let mut map = UnclearedMap::all(&geometry, LIFE);
        for p in (0..pieces.count()).filter(|p| p % 3 == 0) {
            map.pieces.clear(p);
        }
        (geometry, Uuid::from_random(1, 2), map)
    }

    #[test]
    fn pieces_are_small_and_the_map_has_room_for_all_of_them() {
        let tera = 1_000_000_000_000;
        for (bytes, piece_kib) in [
            (64 << 20, 64),
            (128 * tera / 1000, 64),
            (256 * tera / 1000, 128),
            (960 * tera / 1000, 512),
            (3840 * tera / 1000, 2048),
            (15_360 * tera / 1000, 8192),
            (1 << 50, 1 << 19),
        ] {
            for redundant in [false, true] {
                let geometry = Geometry::plan(redundant, 4 << 20, bytes, 65536).expect("fits");
                let pieces = Pieces::of(&geometry);
                assert_eq!(pieces.bytes >> 10, piece_kib, "{bytes}");
                assert!(pieces.blocks_per_lane() <= BLOCKS_PER_LANE);
                assert!(pieces.bytes <= geometry.region_bytes);
            }
        }
    }

    #[test]
    fn each_piece_has_a_bit_of_its_own() {
        let (geometry, ..) = sample();
        let pieces = Pieces::of(&geometry);
        for piece in 0..pieces.count() {
            let (lane, nth) = pieces.in_lane(piece);
            assert!(nth < pieces.per_lane);
            assert_eq!(pieces.of_lane(lane, nth), piece);
        }
        let (last, end) = pieces.range(pieces.count() - 1);
        assert!(last < end && end == geometry.data_bytes);
    }

    #[test]
    fn a_map_survives_and_rot_anywhere_is_noticed() {
        let (geometry, array, map) = sample();
        let area = map.encode(&geometry, array);
        assert_eq!(area.len() as u64, UNCLEARED_AREA_BYTES);
        let read = UnclearedMap::merge(&geometry, array, LIFE, &[Some(&area)]);
        assert_eq!((&read.map.pieces, read.mends.len(), read.lost), (&map.pieces, 0, 0));
        let at = Pieces::slot_at(3, 0, 1) as usize;
        for byte in (0..4096).step_by(61) {
            let mut rotten = area.clone();
            rotten[at + byte] ^= 4;
            let alone = UnclearedMap::merge(&geometry, array, LIFE, &[Some(&rotten)]);
            assert!(alone.map.pieces.count() < map.pieces.count(), "byte {byte}: no bit is believed");
            // Without its magic it was never written, as far as anybody can know.
            assert_eq!(alone.lost, u32::from(byte >= 8));
            let both = UnclearedMap::merge(&geometry, array, LIFE, &[Some(&rotten), Some(&area)]);
            assert_eq!((&both.map.pieces, both.lost), (&map.pieces, 0), "another leg knows");
            for mend in &both.mends {
                assert_eq!(mend.leg, 0);
                rotten[mend.at as usize..][..4096].copy_from_slice(&mend.bytes);
            }
            assert!(byte < 8 || rotten == area, "it is mended");
        }
        let other = Uuid::from_random(5, 6);
        assert!(
            UnclearedMap::merge(&geometry, other, LIFE, &[Some(&area)]).map.is_clear(),
            "another array's"
        );
        let later = UnclearedMap::merge(&geometry, array, LIFE + 1, &[Some(&area)]);
        assert!(later.map.is_clear() && later.lost == 0, "blocks of another life say nothing");
        let nothing = UnclearedMap::none().encode(&geometry, array);
        assert!(UnclearedMap::merge(&geometry, array, LIFE, &[Some(&nothing), None]).map.is_clear());
    }

    #[test]
    fn the_newer_copy_counts_and_a_torn_one_leaves_the_older() {
        let (geometry, array, map) = sample();
        let pieces = Pieces::of(&geometry);
        let mut area = map.encode(&geometry, array);
        let at = Pieces::slot_at(0, 0, 2) as usize;
        assert_ne!(at, Pieces::slot_at(0, 0, 1) as usize);
        encode_block(&pieces, (array, LIFE), (0, 0), 2, |_| false, &mut area[at..at + 4096]);
        let newer = UnclearedMap::merge(&geometry, array, LIFE, &[Some(&area)]).map;
        assert_eq!(newer.newest(0, 0), 2);
        assert!(
            newer.pieces.iter().all(|p| pieces.in_lane(p).0 != 0),
            "the newer copy says that all is clear"
        );
        area[at + 512..at + 1024].fill(0xff);
        let torn = UnclearedMap::merge(&geometry, array, LIFE, &[Some(&area)]);
        assert_eq!((torn.map.pieces, torn.map.newest[0], torn.lost), (map.pieces, 1, 0));
    }

    #[test]
    fn where_legs_differ_uncleared_counts() {
        let (geometry, array, map) = sample();
        let mut less = map.clone();
        let gone: Vec<u32> = map.pieces.iter().take(5).collect();
        for piece in &gone {
            less.pieces.clear(*piece);
        }
        let (a, b) = (map.encode(&geometry, array), less.encode(&geometry, array));
        let read = UnclearedMap::merge(&geometry, array, LIFE, &[Some(&a), Some(&b)]);
        assert_eq!((read.map.pieces, read.mends), (map.pieces, vec![]));
    }

    #[test]
    fn a_map_that_was_restored_from_before_two_writes_says_nothing_and_is_mended() {
        let (geometry, array, map) = sample();
        let pieces = Pieces::of(&geometry);
        let old = map.encode(&geometry, array);
        let mut now = old.clone();
        for generation in [2, 3] {
            let at = Pieces::slot_at(0, 0, generation) as usize;
            let one = legs_after(&geometry, array, &old, &now);
            assert!(one.mends.is_empty() && one.map.pieces == map.pieces, "a leg may lack one write");
            encode_block(&pieces, (array, LIFE), (0, 0), generation, |_| false, &mut now[at..at + 4096]);
        }
        let two = legs_after(&geometry, array, &old, &now);
        assert!(
            two.map.pieces.iter().all(|p| pieces.in_lane(p).0 != 0),
            "what was written is not taken for unwritten"
        );
        assert_eq!(two.mends.iter().map(|m| m.leg).collect::<Vec<_>>(), [1]);
    }

    fn legs_after(geometry: &Geometry, array: Uuid, old: &[u8], now: &[u8]) -> Merged {
        UnclearedMap::merge(geometry, array, LIFE, &[Some(now), Some(old)])
    }
}
