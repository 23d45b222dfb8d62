//! The uncleared pieces of one instance, and the blocks of its map.

use crate::bitmap::Bitmap;
use crate::flight::{Legs, List, bit};
use crate::geometry::{BITS_PER_BLOCK, Geometry, Lanes};
use crate::uncleared::map::{Pieces, UnclearedMap};
use crate::writing::Writing;
use base::Instant;
use std::collections::VecDeque;

/// Clearings in the background, and writes of zeroes to the ends of returned space, under way at once.
pub(crate) const CLEARS_MAX: u32 = 4;

/// A block of the map, of one of our lanes.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) lane: u32,
    pub(super) index: u32,
    /// The number of its first piece here.
    pub(super) from: u32,
    pub(super) generation: u64,
    pub(super) writing: Option<Writing>,
    /// It must be written (again).
    pub(super) stale: bool,
    /// Flights whose pieces the write under way says are cleared.
    pub(super) current: List,
    /// Those of the next one.
    pub(super) next: List,
    /// Legs that have had it since they joined.
    pub(super) holds: Legs,
    /// It must be written once more before the marks are durable.
    pub(super) marking: bool,
}

/// The uncleared pieces of one instance.
#[derive(Debug)]
pub(crate) struct Uncleared {
    pub(super) pieces: Pieces,
    /// Regions of all lanes that may have uncleared pieces. Empty: none has.
    pub(super) regions: Bitmap,
    /// Own pieces, numbered by lane. Empty until there is one.
    pub(super) own: Bitmap,
    pub(super) left: u32,
    pub(super) blocks: Vec<Block>,
    /// The map's life, 0 while there is no map.
    pub(super) life: u64,
    /// A leg in sync lacks a block.
    pub(super) behind: bool,
    /// Which of the Steward's marks was the last.
    pub(super) marks: u32,
    /// It is not durable yet, or ends of the returned space are not zero yet.
    pub(super) marking: bool,
    /// Ends of returned space that share a piece with something else: to be written with zeroes.
    pub(super) edges: VecDeque<(u64, u64)>,
    /// Clearings and edges under way.
    pub(super) works: u32,
    /// Where the background goes on, and when.
    pub(super) cursor: u32,
    pub(super) next_at: Instant,
    /// That nothing is left was reported after this mark.
    pub(super) reported: Option<u32>,
}

impl Uncleared {
    pub(crate) fn new(
        geometry: &Geometry,
        map: &UnclearedMap,
        (shard, lanes): (u16, &Lanes),
        epoch: u64,
        in_sync: Legs,
    ) -> Self {
        let pieces = Pieces::of(geometry);
        let mut blocks = vec![];
        for (nth, lane) in lanes.of_shard(shard).enumerate() {
            for index in 0..pieces.blocks_per_lane() {
                let generation = (epoch << 32).max(map.newest(lane, index));
                // The next copy must not lie where the newest one does.
                let generation = generation + (generation + map.newest(lane, index)) % 2;
                blocks.push(Block {
                    lane,
                    index,
                    from: nth as u32 * pieces.per_lane + index * BITS_PER_BLOCK,
                    generation,
                    writing: None,
                    stale: false,
                    current: List::EMPTY,
                    next: List::EMPTY,
                    holds: in_sync,
                    marking: false,
                });
            }
        }
        let mut uncleared = Self {
            pieces,
            regions: Bitmap::default(),
            own: Bitmap::default(),
            left: 0,
            blocks,
            life: map.life,
            behind: false,
            marks: 0,
            marking: false,
            edges: VecDeque::new(),
            works: 0,
            cursor: 0,
            next_at: Instant(0),
            reported: (map.life == 0).then_some(0),
        };
        if !map.is_clear() {
            uncleared.regions = Bitmap::new(geometry.regions());
            for piece in map.pieces.iter() {
                let region = piece / pieces.per_region;
                uncleared.regions.set(region);
                if lanes.of_region(region) == shard {
                    uncleared.set(piece);
                }
            }
        }
        uncleared
    }
    /// Whether any region may have uncleared pieces.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        !self.regions.is_nothing()
    }
    #[inline]
    pub(super) fn may_have(&self, region: u32) -> bool {
        self.any() && self.regions.get(region)
    }
    /// Regions of all lanes that may have some.
    pub(crate) fn regions(&self) -> impl Iterator<Item = u32> {
        self.regions.iter()
    }
    /// Own pieces.
    pub(crate) fn own_pieces(&self) -> impl Iterator<Item = u32> {
        self.own.iter().map(move |local| self.of_local(local))
    }
    /// Bytes of a piece.
    pub(crate) fn piece_bytes(&self) -> u64 {
        self.pieces.bytes
    }
    /// The last mark, whether it is under way, and the life of the map.
    pub(crate) fn mark(&self) -> (u32, bool, u64) {
        (self.marks, self.marking, self.life)
    }
    /// An own piece's number here.
    pub(super) fn local(&self, piece: u32) -> u32 {
        let (lane, nth) = self.pieces.in_lane(piece);
        self.blocks[self.first_block(lane) as usize].from + nth
    }
    fn first_block(&self, lane: u32) -> u32 {
        self.blocks.iter().position(|b| b.lane == lane).expect("a piece of an own lane") as u32
    }
    /// The piece with a number here; it may lie beyond the array's end.
    pub(super) fn of_local(&self, local: u32) -> u32 {
        let lane = local / self.pieces.per_lane * self.pieces.blocks_per_lane();
        self.pieces.of_lane(self.blocks[lane as usize].lane, local % self.pieces.per_lane)
    }
    pub(super) fn block_of(&self, piece: u32) -> u32 {
        let (lane, nth) = self.pieces.in_lane(piece);
        self.first_block(lane) + nth / BITS_PER_BLOCK
    }
    pub(super) fn is_set(&self, piece: u32) -> bool {
        self.left > 0 && self.own.get(self.local(piece))
    }
    pub(super) fn set(&mut self, piece: u32) {
        if self.own.is_nothing() {
            self.own =
                Bitmap::new(self.blocks.len() as u32 / self.pieces.blocks_per_lane() * self.pieces.per_lane);
        }
        let local = self.local(piece);
        self.left += u32::from(self.own.set(local));
    }
    pub(super) fn clear(&mut self, piece: u32) {
        if !self.is_set(piece) {
            return;
        }
        let local = self.local(piece);
        self.left -= u32::from(self.own.clear(local));
        let region = piece / self.pieces.per_region;
        let first = self.local(region * self.pieces.per_region);
        if self.own.next(first).is_none_or(|next| next >= first + self.pieces.per_region) {
            self.forget(region);
        }
    }
    /// The region has none any more.
    pub(super) fn forget(&mut self, region: u32) {
        if self.any() {
            self.regions.clear(region);
            if self.regions.is_empty() {
                self.regions = Bitmap::default();
            }
        }
    }
    /// Own pieces in this range, all of one region, that are uncleared: none, some, or all of them.
    pub(super) fn touch(&self, at: u64, len: u64) -> Touch {
        let (first, last) = (self.pieces.piece(at), self.pieces.piece(at + len - 1));
        if !self.may_have(first / self.pieces.per_region) {
            return Touch::None;
        }
        match (first..=last).filter(|p| self.is_set(*p)).count() as u32 {
            0 => Touch::None,
            n if n == last - first + 1 => Touch::All,
            _ => Touch::Some,
        }
    }
    /// Whether nothing is under way, and no block waits to be written.
    pub(crate) fn idle(&self) -> bool {
        self.works == 0 && self.blocks.iter().all(|b| b.writing.is_none_or(|w| w.pending == 0) && !b.stale)
    }
    /// Legs that hold every block.
    pub(crate) fn held_by_all_blocks(&self) -> Legs {
        if self.life == 0 {
            return !0;
        }
        self.blocks.iter().fold(!0, |legs, b| legs & b.holds)
    }
    /// A leg is used for writing that was not before, or lost what it had: it gets every block, if there is a map.
    pub(crate) fn rewrite(&mut self, leg: usize) {
        if self.life == 0 {
            return;
        }
        for block in &mut self.blocks {
            block.holds &= !bit(leg);
            block.stale = true;
            // What is under way may have come there before what the leg had was overwritten.
            if let Some(writing) = &mut block.writing {
                writing.took &= !bit(leg);
            }
        }
    }
}

/// How much of a range is uncleared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Touch {
    None,
    Some,
    All,
}

/// What a command finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meeting {
    /// No uncleared piece, or none that changes anything.
    Nothing,
    /// Nothing but zeroes: it is over.
    Zeroes,
    /// A piece that must be cleared before it is written.
    ClearFirst,
}
