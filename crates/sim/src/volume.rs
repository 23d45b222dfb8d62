//! What all hosts of a world know together: the blocks of a volume, checked by the oracle.

use crate::oracle::{Block, Stale, WriteId, ZEROES, shows};
use base::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a stamp; a block is filled with its stamp.
pub const STAMP: usize = 16;

/// One volume, block by block.
pub struct Volume {
    blocks: BTreeMap<u64, Block>,
    /// Those with writes that a Flush would cover: of all that were ever touched they are few.
    unflushed: BTreeSet<u64>,
    /// Blocks in which a leg rotted, and the last write that had begun then.
    rotten: BTreeMap<u64, WriteId>,
    /// Rotten blocks may be zeroes.
    zeroed: bool,
    /// Those that were written since: a power cut may bring the rotten ones back.
    overwritten: BTreeMap<u64, WriteId>,
    /// When they were: who reads since before may have been at the drive when it was rotten.
    mended: BTreeMap<u64, u64>,
    /// Counts reads that begin and blocks that are mended.
    moment: u64,
    writes: WriteId,
    cuts: u32,
    /// A drive holds operations back: a write that was given up on the last leg may land although its host
    /// was let in again (docs/faults.md).
    pub hangs: bool,
    /// What was answered since the last look.
    pub answers: Vec<Answer>,
}

/// A block whose change was answered while no other change was under way there.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The block.
    pub block: u64,
    /// When the command began.
    pub began: Instant,
    /// The change, if it failed: perhaps nothing of it was ever begun.
    pub failed: Option<WriteId>,
}

/// A write under way, for all its blocks.
#[derive(Debug, Clone)]
pub struct Write {
    /// Its name.
    pub id: WriteId,
    at: u64,
    fua: bool,
    replaced: Vec<Vec<WriteId>>,
    cuts: u32,
}

/// A read under way, for all its blocks.
#[derive(Debug, Clone)]
pub struct Read {
    at: u64,
    handles: Vec<u32>,
    /// When it began, as `Volume::moment`.
    began: u64,
}

/// A Flush under way.
#[derive(Debug, Clone)]
pub struct Flush(Vec<(u64, Vec<WriteId>)>, u32);

/// A promise was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// A block holds what it must not.
    Stale {
        /// The block.
        block: u64,
        /// What was found and what might have been.
        what: Stale,
    },
    /// A block is no whole stamp, or another block's.
    Garbled {
        /// The block.
        block: u64,
        /// Its first bytes.
        head: [u8; STAMP],
    },
    /// A comparison failed that could not.
    Miscompared {
        /// The first block.
        at: u64,
    },
}

impl Default for Volume {
    fn default() -> Self {
        Self {
            blocks: BTreeMap::new(),
            unflushed: BTreeSet::new(),
            rotten: BTreeMap::new(),
            zeroed: false,
            overwritten: BTreeMap::new(),
            mended: BTreeMap::new(),
            moment: 0,
            writes: 1,
            cuts: 0,
            hangs: false,
            answers: vec![],
        }
    }
}

impl Volume {
    /// A write of `blocks` blocks begins (of zeroes, or of stamps).
    pub fn write_starts(&mut self, at: u64, blocks: u32, fua: bool, zeroes: bool) -> Write {
        self.writes += 1;
        let id = if zeroes { self.writes | ZEROES } else { self.writes };
        let replaced = (at..at + u64::from(blocks)).map(|b| self.block(b).write_starts(id)).collect();
        Write { id, at, fua, replaced, cuts: self.cuts }
    }
    /// It was answered with success.
    pub fn write_ends(&mut self, write: Write) {
        // Answered before a power cut, and heard of after it: the cut may have taken it, but it lands no more.
        if write.cuts != self.cuts && !write.fua {
            return self.advice_ends(write);
        }
        for (i, replaced) in write.replaced.into_iter().enumerate() {
            let block = write.at + i as u64;
            self.block(block).write_ends(write.id, replaced, write.fua);
            if !write.fua {
                self.unflushed.insert(block);
            }
            if self.rotten.get(&block).is_some_and(|then| *then < write.id & !ZEROES) {
                self.overwritten.extend(self.rotten.remove(&block).map(|then| (block, then)));
                self.moment += 1;
                self.mended.insert(block, self.moment);
            }
        }
    }
    /// A write is answered, well or not, at the end of a command that began then.
    pub fn answered(&mut self, write: &Write, began: Instant, good: bool) {
        for i in 0..write.replaced.len() as u64 {
            let block = write.at + i;
            if self.block(block).is_quiet_but_for(write.id) {
                let failed = (!good).then_some(write.id);
                self.answers.push(Answer { block, began, failed });
            }
        }
    }
    /// It may have been carried out, block by block, or not (a deallocation that was answered with success, say); but it
    /// is over.
    pub fn advice_ends(&mut self, write: Write) {
        self.write_lost(&write);
        self.write_settled(&write);
    }
    /// A leg rots in this block.
    pub fn rots(&mut self, block: u64) {
        self.rotten.insert(block, self.writes);
    }
    /// A leg is zeroed in this block, behind everybody's back.
    pub fn zeroes(&mut self, block: u64) {
        self.zeroed = true;
        self.rots(block);
    }
    /// Whether a leg rotted there, and was not written since.
    pub fn is_rotten(&self, block: u64) -> bool {
        self.rotten.contains_key(&block)
    }
    /// Whether these may be the contents of a block to which nothing is under way.
    pub fn may_hold(&self, block: u64, bytes: &[u8]) -> bool {
        let possible = |id: WriteId| match self.blocks.get(&block) {
            Some(b) => b.possible().iter().any(|w| shows(*w) == id),
            None => id == 0,
        };
        unstamp(block, bytes).is_ok_and(possible)
    }
    /// Whether it was at some moment since a read began.
    fn was_rotten(&self, block: u64, began: u64) -> bool {
        self.is_rotten(block) || self.mended.get(&block).is_some_and(|at| *at > began)
    }
    /// Fills `out` with something that the blocks may hold now.
    pub fn guess(&mut self, at: u64, block_bytes: usize, out: &mut [u8]) {
        for (i, bytes) in out.chunks_mut(block_bytes).enumerate() {
            let block = at + i as u64;
            let id = *self.block(block).possible().last().expect("something is possible");
            if id == 0 || id & ZEROES != 0 { bytes.fill(0) } else { stamp(id, block, block_bytes, bytes) }
        }
    }
    /// A comparison with `data` ended: equal, or not.
    pub fn compare_ends(
        &mut self,
        read: Read,
        data: &[u8],
        block_bytes: usize,
        equal: bool,
    ) -> Result<(), Broken> {
        if equal {
            return self.read_ends(read, Some(data), block_bytes);
        }
        let mut certain = true;
        for (i, handle) in read.handles.iter().enumerate() {
            let block = read.at + i as u64;
            let given = unstamp(block, &data[i * block_bytes..][..block_bytes])?;
            certain &= !self.was_rotten(block, read.began) && self.block(block).is_certain(*handle, given);
        }
        let at = read.at;
        self.read_ends(read, None, block_bytes)?;
        if certain { Err(Broken::Miscompared { at }) } else { Ok(()) }
    }
    /// It failed.
    pub fn write_failed(&mut self, write: &Write) {
        for i in 0..write.replaced.len() as u64 {
            self.block(write.at + i).write_failed(write.id);
        }
    }
    /// It was never answered.
    pub fn write_lost(&mut self, write: &Write) {
        for i in 0..write.replaced.len() as u64 {
            self.block(write.at + i).write_lost(write.id);
        }
    }
    /// The host whose connection was lost is back.
    pub fn write_settled(&mut self, write: &Write) {
        for i in 0..write.replaced.len() as u64 {
            self.block(write.at + i).write_settled(write.id);
        }
    }
    /// A read begins.
    pub fn read_starts(&mut self, at: u64, blocks: u32) -> Read {
        let all = at..at + u64::from(blocks);
        self.moment += 1;
        Read { at, handles: all.map(|b| self.block(b).read_starts()).collect(), began: self.moment }
    }
    /// It ended with data, or without.
    pub fn read_ends(&mut self, read: Read, data: Option<&[u8]>, block_bytes: usize) -> Result<(), Broken> {
        let mut first = Ok(());
        for (i, handle) in read.handles.into_iter().enumerate() {
            let block = read.at + i as u64;
            let found = data.map(|d| unstamp(block, &d[i * block_bytes..][..block_bytes])).transpose();
            let ended = match found {
                Ok(found) => {
                    let zeroed = self.zeroed && found == Some(0) && self.was_rotten(block, read.began);
                    let ended = self.block(block).read_ends(handle, found);
                    ended.or_else(|what| if zeroed { Ok(()) } else { Err(Broken::Stale { block, what }) })
                }
                Err(broken) => {
                    let _ = self.block(block).read_ends(handle, None);
                    if self.was_rotten(block, read.began) { Ok(()) } else { Err(broken) }
                }
            };
            first = first.and(ended);
        }
        first
    }
    /// A Flush begins.
    pub fn flush_starts(&self) -> Flush {
        let covered = self.unflushed.iter().map(|b| (*b, self.blocks[b].flush_starts()));
        Flush(covered.collect(), self.cuts)
    }
    /// It was answered with success.
    pub fn flush_ends(&mut self, flush: Flush) {
        if flush.1 != self.cuts {
            return;
        }
        for (b, covered) in flush.0 {
            let block = self.block(b);
            block.flush_ends(&covered);
            if block.is_flushed() {
                self.unflushed.remove(&b);
            }
        }
    }
    /// The head that leads fell, and the other one goes on serving.
    pub fn leader_fell(&mut self) {
        self.blocks.values_mut().for_each(Block::leader_fell);
    }
    /// The head fell; with `caches` drives lost some of the writes that were not durable.
    pub fn head_fell(&mut self, caches: bool) {
        self.blocks.values_mut().for_each(Block::head_fell);
        if caches {
            self.power_cut();
        }
    }
    fn power_cut(&mut self) {
        self.cuts += 1;
        self.rotten.append(&mut self.overwritten);
        self.unflushed.clear();
        self.blocks.values_mut().for_each(Block::power_cut);
    }
    /// Blocks that were ever touched.
    pub fn touched(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }
    fn block(&mut self, b: u64) -> &mut Block {
        self.blocks.entry(b).or_default()
    }
}

/// Fills blocks with the stamp of a write.
pub fn stamp(id: WriteId, at: u64, block_bytes: usize, out: &mut [u8]) {
    for (i, block) in out.chunks_mut(block_bytes).enumerate() {
        let mut mark = [0; STAMP];
        mark[..8].copy_from_slice(&id.to_le_bytes());
        mark[8..].copy_from_slice(&(at + i as u64).to_le_bytes());
        block[..STAMP].copy_from_slice(&mark);
        let mut filled = STAMP;
        while filled < block.len() {
            let n = filled.min(block.len() - filled);
            block.copy_within(..n, filled);
            filled += n;
        }
    }
}

/// The write and the block that a stamp names, if it is one.
pub fn mark_of(bytes: &[u8]) -> Option<(WriteId, u64)> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    (word(0) != 0).then(|| (word(0), word(8)))
}

/// Which write filled this block.
fn unstamp(block: u64, bytes: &[u8]) -> Result<WriteId, Broken> {
    let head: [u8; STAMP] = bytes[..STAMP].try_into().expect("a block is longer");
    let id = WriteId::from_le_bytes(head[..8].try_into().expect("8 bytes"));
    let at = u64::from_le_bytes(head[8..].try_into().expect("8 bytes"));
    let whole = bytes[STAMP..] == bytes[..bytes.len() - STAMP];
    if !whole || (id != 0 && at != block) || (id == 0 && at != 0) {
        return Err(Broken::Garbled { block, head });
    }
    Ok(id)
}

/// The block that a stamp names, though a bit of it may have rotted; None where there is none.
pub fn block_of(bytes: &[u8]) -> Option<u64> {
    let mut marks = bytes.chunks(STAMP).take(5).collect::<Vec<_>>();
    marks.sort_unstable();
    let mark = marks[2];
    let id = WriteId::from_le_bytes(mark[..8].try_into().expect("8 bytes"));
    let at = u64::from_le_bytes(mark[8..].try_into().expect("8 bytes"));
    (id != 0).then_some(at)
}
