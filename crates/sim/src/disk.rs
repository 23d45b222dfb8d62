//! A simulated drive: sparse sectors, a volatile cache, and every kind of fault.
//!
//! Contents live in three layers: `durable` (what a power cut leaves), `cached` (completed writes that a
//! Flush has not covered), and operations under way. A completed write is visible at once; a power cut
//! keeps any subset of the cached sectors (in any of the versions that passed through the cache since the
//! last Flush) and any subset of the sectors under way. The drive is never kinder than a kernel: operations
//! complete in any order, and overlapping writes under way may land in either order. A sector is a block
//! of the drive, and lands whole or not at all.

mod layer;

use crate::registrants::{Nexus, Registrations};
use crate::world::{Image, Wrong};
use array::format::LABEL_AT;
use base::DriveKind;
use base::{DriveError, DriveInfo, DriveOpKind, Fence, FenceAct, FenceError, FenceKind, Prng};
use layer::{Layer, PAGE};
use std::collections::BTreeSet;

/// One sector's contents. Uniform ones are kept small.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Sector {
    /// The same 16 bytes all over.
    Stamp([u8; 16]),
    Bytes(Box<[u8]>),
}

/// How a sector begins that holds data of a former user of the drive, or of its space.
const JUNK: [u8; 4] = *b"JUNK";

impl Sector {
    fn is_zeroes(&self) -> bool {
        *self == Sector::Stamp([0; 16])
    }
    fn is_junk(&self) -> bool {
        matches!(self, Sector::Stamp(stamp) if stamp[..4] == JUNK)
    }
    fn from(bytes: &[u8]) -> Self {
        let stamp: [u8; 16] = bytes[..16].try_into().expect("a sector is longer");
        if bytes[16..] == bytes[..bytes.len() - 16] {
            Sector::Stamp(stamp)
        } else {
            Sector::Bytes(bytes.into())
        }
    }
    fn copy_to(&self, out: &mut [u8]) {
        match self {
            Sector::Stamp(stamp) => {
                out[..16].copy_from_slice(stamp);
                let mut filled = 16;
                while filled < out.len() {
                    let n = filled.min(out.len() - filled);
                    out.copy_within(..n, filled);
                    filled += n;
                }
            }
            Sector::Bytes(bytes) => out.copy_from_slice(bytes),
        }
    }
}

/// What may go wrong with a drive, from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Reads that end in `Medium`, per million.
    pub read_errors_ppm: u32,
    /// Writes that end in `Medium`, per million. Some of their sectors may have landed.
    pub write_errors_ppm: u32,
    /// Flushes that end in `Medium`, per million: what they should have covered stays where it was.
    pub flush_errors_ppm: u32,
    /// There is no space for what is written (a file, or a thin drive).
    pub full: bool,
    /// Operations are taken and not answered.
    pub hang: bool,
    /// Every operation ends in `Gone`.
    pub gone: bool,
    /// Operations take up to so much longer, microseconds.
    pub slow_us: u64,
    /// Only this machine meets what goes wrong: of a drive with a queue for each shard one queue is ill.
    pub only_for: Option<usize>,
}

impl Faults {
    /// Whether anything is wrong.
    pub fn any(&self) -> bool {
        *self != Faults::default()
    }
    /// What is wrong, as it is counted.
    pub fn wrongs(&self) -> impl Iterator<Item = Wrong> {
        let all = [
            (self.hang, Wrong::Hang),
            (self.gone, Wrong::Drop),
            (self.slow_us > 0, Wrong::Slow),
            (self.write_errors_ppm > 0, Wrong::WriteErrors),
            (self.read_errors_ppm > 0, Wrong::ReadErrors),
            (self.flush_errors_ppm > 0, Wrong::FlushErrors),
            (self.full, Wrong::Full),
        ];
        all.into_iter().filter(|(is, _)| *is).map(|(_, what)| what)
    }
    /// What goes wrong with operations of this machine.
    pub fn met_by(self, machine: usize) -> Faults {
        match self.only_for {
            Some(one) if one != machine => Faults::default(),
            Some(_) | None => self,
        }
    }
}

/// An operation that the drive has taken.
#[derive(Debug)]
pub struct DiskOp<'a> {
    /// What.
    pub kind: DriveOpKind,
    /// Byte offset.
    pub at: u64,
    /// Bytes.
    pub len: u64,
    /// Data of a write.
    pub data: &'a [u8],
    /// Durable when it completes.
    pub fua: bool,
}

/// What a drive held at some moment.
#[derive(Debug)]
pub struct DiskCopy(Layer);

/// A drive.
#[derive(Debug)]
pub struct Disk {
    /// Its specification, as `OpenDrive` names it.
    pub spec: String,
    /// Size, bytes.
    pub bytes: u64,
    /// Bytes of a sector: 512 or 4096.
    pub sector: u64,
    /// It has a volatile cache.
    pub volatile_cache: bool,
    /// Ranges that were deallocated read as zeroes; if not, they stay as they are.
    pub deallocate_zeroes: bool,
    /// Which of its appearances this is: it grows when the drive is unplugged.
    pub appearance: u32,
    /// Whoever opens it reads from it, and waits if it hangs (a file); else its operations hang alone.
    pub opening_reads: bool,
    /// What goes wrong.
    pub faults: Faults,
    /// By what means it is fenced.
    pub fence: FenceKind,
    /// It says that it shuts a head out, and takes its commands all the same.
    pub fence_lies: bool,
    /// The registered keys. They outlive power cuts, unless the drive forgets them.
    pub registrations: Registrations,
    durable: Layer,
    cached: Layer,
    /// Sectors that rotted once.
    rotted: BTreeSet<u64>,
    /// Its registrations go with its power.
    pub forgets_keys: bool,
    /// They did, and nobody has asked for them since.
    forgot: bool,
    /// Something else than its heads made of it what it is.
    altered: Option<Wrong>,
}

impl Disk {
    /// An empty drive, all zeroes, with sectors of 4096 bytes.
    pub fn new(spec: String, bytes: u64, volatile_cache: bool) -> Self {
        Self {
            spec,
            bytes,
            sector: 4096,
            volatile_cache,
            deallocate_zeroes: true,
            appearance: 0,
            opening_reads: false,
            faults: Faults::default(),
            fence: FenceKind::Scsi,
            fence_lies: false,
            registrations: Registrations::default(),
            durable: Layer::default(),
            cached: Layer::default(),
            rotted: BTreeSet::new(),
            forgets_keys: false,
            forgot: false,
            altered: None,
        }
    }

    /// What an opener learns.
    pub fn info(&self) -> DriveInfo {
        DriveInfo {
            bytes: self.bytes,
            block_bytes: self.sector as u32,
            volatile_cache: self.volatile_cache,
            deallocate_zeroes: self.deallocate_zeroes,
            reads_zeroes: self.durable.is_empty() && self.cached.is_empty(),
            kind: DriveKind::Block,
            fence: self.fence,
            path: self.spec.clone(),
            model: "simulated".into(),
            serial: self.spec.clone(),
            ..DriveInfo::default()
        }
    }

    /// Whether a head is registered here as one that is in.
    pub fn is_in(&self, nexus: Nexus) -> bool {
        self.registrations.key(nexus).is_some_and(|key| !cluster::record::is_outside(key))
    }
    /// Whether an operation that arrives by this path is let in.
    pub fn admits(&self, nexus: Nexus) -> bool {
        self.fence_lies || self.registrations.admits(nexus)
    }
    /// What a head asks for of the drive's fence, as far as it changes who may come: what is at the drive is the world's.
    ///
    /// # Errors
    /// As `base::FenceAct` says; then nothing has changed.
    pub fn carry_out_fence(&mut self, nexus: Nexus, act: FenceAct) -> Result<Fence, FenceError> {
        if self.faults.gone {
            return Err(FenceError::Gone);
        }
        match self.fence {
            FenceKind::None(why) => Err(FenceError::None(why)),
            // Who else has the file is the world's to know.
            FenceKind::File => Ok(Fence::File { others: false }),
            FenceKind::Scsi | FenceKind::Nvme => self.registrations.carry_out(nexus, act).map(Fence::Keys),
        }
    }

    /// The operation completes now, with its effect. Reads fill `out`.
    pub fn complete(&mut self, op: &DiskOp, out: &mut [u8], rng: &mut Prng) -> Result<(), DriveError> {
        if self.faults.gone {
            return Err(DriveError::Gone);
        }
        if op.kind != DriveOpKind::Flush && !self.exists(op) {
            return Err(DriveError::Other(22));
        }
        match op.kind {
            DriveOpKind::Read => {
                if rng.chance(u64::from(self.faults.read_errors_ppm), 1_000_000) {
                    return Err(DriveError::Medium);
                }
                self.read(op.at, out);
                Ok(())
            }
            DriveOpKind::Write | DriveOpKind::WriteZeroes if self.faults.full => Err(DriveError::NoSpace),
            DriveOpKind::Write | DriveOpKind::WriteZeroes | DriveOpKind::Deallocate => {
                if rng.chance(u64::from(self.faults.write_errors_ppm), 1_000_000) {
                    self.apply(op, rng, true);
                    return Err(DriveError::Medium);
                }
                self.apply(op, rng, false);
                if op.fua {
                    for sector in op.at / self.sector..(op.at + op.len) / self.sector {
                        self.make_durable(sector);
                    }
                }
                Ok(())
            }
            DriveOpKind::Flush => {
                let errors = self.faults.write_errors_ppm.max(self.faults.flush_errors_ppm);
                if rng.chance(u64::from(errors), 1_000_000) {
                    return Err(DriveError::Medium);
                }
                self.durable.take(core::mem::take(&mut self.cached));
                Ok(())
            }
        }
    }
    /// What is wrong with the drive, or with what it holds, if an operation has met that which ended so.
    pub fn has_met(&self, op: &DiskOp, result: Result<(), DriveError>) -> Option<Wrong> {
        let sectors = op.at / self.sector..(op.at + op.len) / self.sector;
        let rotted = || self.rotted.range(sectors).next().is_some();
        match (op.kind, result) {
            (_, Err(DriveError::Gone)) => Some(Wrong::Drop),
            (_, Err(DriveError::NoSpace)) => Some(Wrong::Full),
            (DriveOpKind::Read, Err(DriveError::Medium)) => Some(Wrong::ReadErrors),
            (DriveOpKind::Flush, Err(DriveError::Medium)) if self.faults.write_errors_ppm == 0 => {
                Some(Wrong::FlushErrors)
            }
            (_, Err(DriveError::Medium)) => Some(Wrong::WriteErrors),
            (DriveOpKind::Read, Ok(())) if self.altered.is_some() && op.at == LABEL_AT => self.altered,
            (DriveOpKind::Read, Ok(())) => rotted().then_some(Wrong::Rot),
            _ => None,
        }
    }
    /// Whole blocks, at least one, on the drive.
    fn exists(&self, op: &DiskOp) -> bool {
        let whole = op.at.is_multiple_of(self.sector) && op.len.is_multiple_of(self.sector) && op.len > 0;
        whole && op.at.checked_add(op.len).is_some_and(|end| end <= self.bytes)
    }

    /// Reads without faults: what the drive holds now.
    pub fn read(&self, at: u64, out: &mut [u8]) {
        out.fill(0);
        let range = at / self.sector..(at + out.len() as u64) / self.sector;
        // Cached ones lie over the durable ones.
        for layer in [&self.durable, &self.cached] {
            for (sector, contents) in layer.range(range.clone()) {
                let from = (sector * self.sector - at) as usize;
                contents.copy_to(&mut out[from..from + self.sector as usize]);
            }
        }
    }

    /// What a reader of the whole drive would get now.
    pub fn copy(&self) -> DiskCopy {
        let mut sectors = self.durable.clone();
        sectors.take(self.cached.clone());
        DiskCopy(sectors)
    }
    /// Somebody puts a copy in the drive's place.
    pub fn put_copy(&mut self, copy: DiskCopy) {
        self.durable = copy.0;
        self.cached = Layer::default();
        self.altered = Some(Wrong::OlderCopy);
    }

    /// Changes a bit of a sector behind everybody's back.
    pub fn rot(&mut self, at: u64, rng: &mut Prng) {
        let mut bytes = vec![0; self.sector as usize];
        let sector = at / self.sector;
        self.read(sector * self.sector, &mut bytes);
        let i = rng.below(self.sector) as usize;
        bytes[i] ^= 1 << rng.below(8);
        self.durable.insert(sector, Sector::from(&bytes));
        self.cached.remove(sector);
        self.rotted.insert(sector);
    }
    /// Somebody overwrites a range with zeroes behind everybody's back.
    pub fn wipe(&mut self, at: u64, len: u64) {
        self.altered = Some(Wrong::Wipe);
        for sector in self.sectors(at, len) {
            self.rotted.insert(sector);
            self.durable.remove(sector);
            self.cached.remove(sector);
        }
    }

    /// Whether this sector rotted, once.
    pub fn has_rotted(&self, sector: u64) -> bool {
        self.rotted.contains(&sector)
    }

    /// Sectors in a range of bytes in which two drives differ, in what they hold, or hold durably.
    pub fn unlike(&self, other: &Disk, at: u64, len: u64, durable: bool) -> Vec<u64> {
        let range = at / self.sector..(at + len) / self.sector;
        let layers = [&self.durable, &self.cached, &other.durable, &other.cached];
        let mut pages: Vec<u64> = layers.into_iter().flat_map(|l| l.pages(range.clone())).collect();
        pages.sort_unstable();
        pages.dedup();
        let unlike = pages.into_iter().flat_map(|page| {
            let (own, others) = (self.page(page, durable), other.page(page, durable));
            let all = own.into_iter().zip(others).zip(page * PAGE..);
            all.filter(|((own, other), _)| own != other).map(|(_, sector)| sector)
        });
        unlike.filter(|sector| range.contains(sector)).collect()
    }
    /// Whether two drives hold the same in a sector.
    pub fn agrees(&self, other: &Disk, sector: u64) -> bool {
        self.holds(sector, false) == other.holds(sector, false)
    }
    /// What a sector holds; None for zeroes.
    fn holds(&self, sector: u64, durable: bool) -> Option<&Sector> {
        let cached = self.cached.get(sector).filter(|_| !durable);
        cached.or(self.durable.get(sector)).filter(|s| !s.is_zeroes())
    }
    /// The same of the sectors of a page.
    fn page(&self, page: u64, durable: bool) -> [Option<&Sector>; PAGE as usize] {
        let [below, above] = [self.durable.page(page), self.cached.page(page).filter(|_| !durable)];
        core::array::from_fn(|i| {
            let [below, above] = [below, above].map(|layer| layer.and_then(|page| page[i].as_ref()));
            above.or(below).filter(|s| !s.is_zeroes())
        })
    }
    /// Whether anything is in the cache.
    pub fn has_cached(&self) -> bool {
        !self.cached.is_empty()
    }
    /// Whether something in a range of bytes would be lost with the cache.
    pub fn is_cached(&self, at: u64, len: u64) -> bool {
        let range = at / self.sector..(at + len) / self.sector;
        self.cached.range(range).any(|(s, _)| self.holds(s, false) != self.holds(s, true))
    }
    /// The block of a bitmap at this byte, as a power cut would leave it, and as it reads now.
    pub fn images(&self, at: u64) -> [Option<Image>; 2] {
        let read = |s: &Sector| match s {
            Sector::Stamp(_) => None,
            Sector::Bytes(bytes) => Image::read(bytes),
        };
        [true, false].map(|durable| self.holds(at / self.sector, durable).and_then(read))
    }

    /// Part of an operation lands although it is never answered (the power was cut).
    pub fn tear(&mut self, op: &DiskOp, rng: &mut Prng) {
        if !matches!(op.kind, DriveOpKind::Read | DriveOpKind::Flush) && self.exists(op) {
            self.apply(op, rng, true);
        }
    }

    /// The keys of heads were lost with the power, and are asked for the first time since.
    pub fn misses_keys(&mut self) -> bool {
        core::mem::take(&mut self.forgot)
    }
    /// The power is cut: any subset of what was not flushed survives. True: keys of heads did not.
    pub fn power_cut(&mut self, rng: &mut Prng) -> bool {
        let forgets = self.forgets_keys && self.registrations != Registrations::default();
        if forgets {
            self.registrations = Registrations::default();
            self.forgot = true;
        }
        for (sector, contents) in core::mem::take(&mut self.cached).into_sectors() {
            if rng.chance(1, 2) {
                self.durable.insert(sector, contents);
            }
        }
        forgets
    }

    /// Every second sector of a range of bytes holds data of its own, durably: the drive was used before.
    pub fn soil(&mut self, at: u64, len: u64, tag: u32) {
        for sector in (at / self.sector..(at + len) / self.sector).step_by(2) {
            let mut stamp = [0; 16];
            stamp[..4].copy_from_slice(&JUNK);
            stamp[4..8].copy_from_slice(&tag.to_le_bytes());
            stamp[8..].copy_from_slice(&sector.to_le_bytes());
            self.cached.remove(sector);
            self.durable.insert(sector, Sector::Stamp(stamp));
        }
    }
    /// Whether a sector holds that, durably or as it reads now.
    pub fn is_junk(&self, sector: u64) -> bool {
        [true, false].into_iter().any(|durable| self.holds(sector, durable).is_some_and(Sector::is_junk))
    }

    /// Whether a sector holds zeroes, durably and as it reads now.
    pub fn is_zero(&self, sector: u64) -> bool {
        [true, false].into_iter().all(|durable| self.holds(sector, durable).is_none())
    }

    /// Sectors that hold something, in a range of bytes.
    pub fn sectors(&self, at: u64, len: u64) -> Vec<u64> {
        let range = at / self.sector..(at + len) / self.sector;
        let mut all: Vec<u64> =
            self.durable.range(range.clone()).chain(self.cached.range(range)).map(|(s, _)| s).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// A write lands, or with `torn` any part of it: each sector whole or not at all.
    fn apply(&mut self, op: &DiskOp, rng: &mut Prng, torn: bool) {
        if op.kind == DriveOpKind::Deallocate && !self.deallocate_zeroes {
            return;
        }
        for i in 0..op.len / self.sector {
            if torn && rng.chance(1, 2) {
                continue;
            }
            let contents = if op.kind == DriveOpKind::Write {
                Sector::from(&op.data[(i * self.sector) as usize..][..self.sector as usize])
            } else {
                Sector::Stamp([0; 16])
            };
            let sector = op.at / self.sector + i;
            if !self.volatile_cache {
                self.durable.insert(sector, contents);
            } else if let Some(older) = self.cached.insert(sector, contents)
                && rng.chance(1, 2)
            {
                // The cache had written the older one out already.
                self.durable.insert(sector, older);
            }
        }
    }
    fn make_durable(&mut self, sector: u64) {
        if let Some(contents) = self.cached.remove(sector) {
            self.durable.insert(sector, contents);
        }
    }
}
