//! Drives as the array must expect them: caches that forget, writes that land in part, late or never.

use super::memory::Stamps;
use array::Geometry;
use base::{DriveError, DriveOp, DriveOpKind, Prng};
use std::collections::{BTreeMap, BTreeSet};

pub const BLOCK: u64 = 4096;
/// Where the uncleared map lies on every drive.
pub const MAP_AT: u64 = 1 << 40;
/// What blocks hold that somebody wrote before the array was made, or before their space was returned: `JUNK` and more.
pub const JUNK: u64 = 1 << 62;

/// One drive. Data blocks are stamps; the bitmap is bytes, in sectors of 512 for tearing.
pub struct Drive {
    geometry: Geometry,
    pub durable: Vec<u64>,
    /// Completed and not flushed: for each block the values in order, with the time of completion.
    cache: BTreeMap<u64, Vec<(u64, u64)>>,
    pub bitmap: Vec<u8>,
    pub map: Vec<u8>,
    pub volatile: bool,
    pub deallocate_zeroes: bool,
    pub bad: BTreeSet<u64>,
    pub gone: bool,
    clock: u64,
}

impl Drive {
    pub fn new(geometry: Geometry, volatile: bool, deallocate_zeroes: bool) -> Self {
        Self {
            geometry,
            durable: vec![0; (geometry.data_bytes / BLOCK) as usize],
            cache: BTreeMap::new(),
            bitmap: vec![0; geometry.bitmap_bytes() as usize],
            map: vec![0; array::UNCLEARED_AREA_BYTES as usize],
            volatile,
            deallocate_zeroes,
            bad: BTreeSet::new(),
            gone: false,
            clock: 1,
        }
    }
    /// It was somebody's before: every block holds something, on each drive another thing.
    pub fn used(mut self, number: u64) -> Self {
        for (block, value) in self.durable.iter_mut().enumerate() {
            *value = JUNK + (number << 32) + block as u64;
        }
        self
    }
    pub fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
    pub fn value(&self, block: u64) -> u64 {
        match self.cache.get(&block) {
            Some(values) => values.last().expect("never empty").0,
            None => self.durable[block as usize],
        }
    }
    pub fn is_bitmap(&self, op: &DriveOp) -> bool {
        op.kind != DriveOpKind::Flush && (op.at < self.geometry.data_at || op.at >= MAP_AT)
    }
    pub fn blocks(&self, op: &DriveOp) -> core::ops::Range<u64> {
        let at = op.at - self.geometry.data_at;
        at / BLOCK..(at + op.len) / BLOCK
    }
    fn put(&mut self, block: u64, value: u64, fua: bool) {
        self.bad.remove(&block);
        if self.volatile && !fua {
            let at = self.clock;
            self.cache.entry(block).or_default().push((value, at));
        } else {
            self.cache.remove(&block);
            self.durable[block as usize] = value;
        }
    }
    /// The operation takes effect, wholly (`part` None) or on a random part of its blocks.
    pub fn apply(
        &mut self,
        op: &DriveOp,
        begun: u64,
        memory: &mut Stamps,
        part: Option<&mut Prng>,
    ) -> Result<(), DriveError> {
        self.clock += 1;
        let mut part = part;
        let mut lands = || part.as_deref_mut().is_none_or(|rng| rng.chance(1, 2));
        if self.is_bitmap(op) {
            assert!(op.kind == DriveOpKind::Write && op.fua, "the bitmap is written through");
            let (area, from) = if op.at >= MAP_AT {
                (&mut self.map, (op.at - MAP_AT) as usize)
            } else {
                (&mut self.bitmap, (op.at - self.geometry.bitmap_at) as usize)
            };
            let bytes = memory.block_bytes(op.data).to_vec();
            for sector in 0..8 {
                if lands() {
                    area[from + sector * 512..][..512].copy_from_slice(&bytes[sector * 512..][..512]);
                }
            }
            return Ok(());
        }
        match op.kind {
            DriveOpKind::Read => {
                for (i, block) in self.blocks(op).enumerate() {
                    if self.bad.contains(&block) {
                        return Err(DriveError::Medium);
                    }
                    memory.set(op.data.at + i as u64 * BLOCK, self.value(block));
                }
            }
            DriveOpKind::Write => {
                for (i, block) in self.blocks(op).enumerate() {
                    let value = memory.get(op.data.at + i as u64 * BLOCK);
                    if lands() {
                        self.put(block, value, op.fua);
                    }
                }
            }
            // Forgotten, but not zero: this drive goes on showing the old.
            DriveOpKind::Deallocate if !self.deallocate_zeroes => {}
            DriveOpKind::WriteZeroes | DriveOpKind::Deallocate => {
                for block in self.blocks(op) {
                    if lands() {
                        self.put(block, 0, false);
                    }
                }
            }
            DriveOpKind::Flush => self.flush(begun),
        }
        Ok(())
    }
    /// What was completed before `begun` is durable.
    pub fn flush(&mut self, begun: u64) {
        let durable = &mut self.durable;
        self.cache.retain(|block, values| {
            while values.first().is_some_and(|(_, at)| *at < begun) {
                durable[*block as usize] = values.remove(0).0;
            }
            !values.is_empty()
        });
    }
    /// A power cut: of each block, what was durable or any later value is left.
    pub fn power_cut(&mut self, rng: &mut Prng) {
        for (block, values) in core::mem::take(&mut self.cache) {
            let kept = rng.below(values.len() as u64 + 1) as usize;
            if kept > 0 {
                self.durable[block as usize] = values[kept - 1].0;
            }
        }
    }
}
