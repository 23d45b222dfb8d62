//! A simulated drive: sparse sectors, a volatile cache, and every fault on the menu.
//!
//! Contents live in three layers: `durable` (what a power cut leaves), `cached` (completed writes that a
//! Flush has not covered), and operations under way. A completed write is visible at once; a power cut
//! keeps any subset of the cached sectors and any subset of the sectors under way. The drive is never
//! kinder than a kernel: operations complete in any order, and overlapping writes under way may land in
//! either order.

use base::{DriveError, DriveInfo, DriveOpKind, Prng};
use std::collections::BTreeMap;

/// Bytes of a sector, the unit in which writes tear.
pub const SECTOR: u64 = 4096;

/// One sector's contents. Uniform ones are kept small.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Sector {
    /// The same 16 bytes all over.
    Stamp([u8; 16]),
    Bytes(Box<[u8]>),
}

impl Sector {
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
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Reads that end in `Medium`, per million.
    pub read_errors_ppm: u32,
    /// Writes that end in `Medium`, per million. Some of their sectors may have landed.
    pub write_errors_ppm: u32,
    /// Operations are taken and not answered.
    pub hang: bool,
    /// Every operation ends in `Gone`.
    pub gone: bool,
}

impl Faults {
    /// Whether anything is wrong.
    pub fn any(&self) -> bool {
        self.hang || self.gone || self.read_errors_ppm > 0 || self.write_errors_ppm > 0
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

/// A drive.
#[derive(Debug)]
pub struct Disk {
    /// Its specification, as `OpenDrive` names it.
    pub spec: String,
    /// Size, bytes.
    pub bytes: u64,
    /// It has a volatile cache.
    pub volatile_cache: bool,
    /// What goes wrong.
    pub faults: Faults,
    durable: BTreeMap<u64, Sector>,
    cached: BTreeMap<u64, Sector>,
}

impl Disk {
    /// An empty drive, all zeroes.
    pub fn new(spec: String, bytes: u64, volatile_cache: bool) -> Self {
        let (durable, cached) = Default::default();
        Self { spec, bytes, volatile_cache, faults: Faults::default(), durable, cached }
    }

    /// What an opener learns.
    pub fn info(&self) -> DriveInfo {
        DriveInfo {
            bytes: self.bytes,
            block_bytes: SECTOR as u32,
            volatile_cache: self.volatile_cache,
            deallocate_zeroes: true,
            reads_zeroes: self.durable.is_empty() && self.cached.is_empty(),
            kind: "sim".into(),
            path: self.spec.clone(),
            model: "simulated".into(),
            serial: self.spec.clone(),
        }
    }

    /// The operation completes now, with its effect. Reads fill `out`.
    pub fn complete(&mut self, op: &DiskOp, out: &mut [u8], rng: &mut Prng) -> Result<(), DriveError> {
        if self.faults.gone {
            return Err(DriveError::Gone);
        }
        let end = op.at.checked_add(op.len);
        if end.is_none_or(|end| end > self.bytes) {
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
            DriveOpKind::Write | DriveOpKind::WriteZeroes | DriveOpKind::Deallocate => {
                if rng.chance(u64::from(self.faults.write_errors_ppm), 1_000_000) {
                    self.apply(op, |_| rng.chance(1, 2));
                    return Err(DriveError::Medium);
                }
                self.apply(op, |_| true);
                if op.fua {
                    for sector in op.at / SECTOR..(op.at + op.len) / SECTOR {
                        self.make_durable(sector);
                    }
                }
                Ok(())
            }
            DriveOpKind::Flush => {
                self.flush();
                Ok(())
            }
        }
    }

    /// Reads without faults: what the drive holds now.
    pub fn read(&self, at: u64, out: &mut [u8]) {
        for (i, part) in out.chunks_mut(SECTOR as usize).enumerate() {
            let sector = at / SECTOR + i as u64;
            match self.cached.get(&sector).or_else(|| self.durable.get(&sector)) {
                Some(s) => s.copy_to(part),
                None => part.fill(0),
            }
        }
    }

    /// Changes bytes behind everybody's back.
    pub fn rot(&mut self, at: u64, rng: &mut Prng) {
        let mut bytes = vec![0; SECTOR as usize];
        self.read(at / SECTOR * SECTOR, &mut bytes);
        let i = rng.below(SECTOR) as usize;
        bytes[i] ^= 1 << rng.below(8);
        self.durable.insert(at / SECTOR, Sector::from(&bytes));
        self.cached.remove(&(at / SECTOR));
    }

    /// Part of an operation lands although it is never answered (the head was killed, or the power cut).
    pub fn tear(&mut self, op: &DiskOp, rng: &mut Prng) {
        if !matches!(op.kind, DriveOpKind::Read | DriveOpKind::Flush) && op.at + op.len <= self.bytes {
            self.apply(op, |_| rng.chance(1, 2));
        }
    }

    /// The power is cut: any subset of what was not flushed survives.
    pub fn power_cut(&mut self, rng: &mut Prng) {
        for (sector, contents) in core::mem::take(&mut self.cached) {
            if rng.chance(1, 2) {
                self.durable.insert(sector, contents);
            }
        }
    }

    /// Sectors that hold something, in a range of bytes.
    pub fn sectors(&self, at: u64, len: u64) -> Vec<u64> {
        let range = at / SECTOR..(at + len) / SECTOR;
        let mut all: Vec<u64> =
            self.durable.range(range.clone()).chain(self.cached.range(range)).map(|(s, _)| *s).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn apply(&mut self, op: &DiskOp, mut keep: impl FnMut(u64) -> bool) {
        let target = if self.volatile_cache { &mut self.cached } else { &mut self.durable };
        for i in 0..op.len / SECTOR {
            let sector = op.at / SECTOR + i;
            if !keep(sector) {
                continue;
            }
            let contents = if op.kind == DriveOpKind::Write {
                Sector::from(&op.data[(i * SECTOR) as usize..][..SECTOR as usize])
            } else {
                Sector::Stamp([0; 16])
            };
            target.insert(sector, contents);
        }
    }
    fn make_durable(&mut self, sector: u64) {
        if let Some(contents) = self.cached.remove(&sector) {
            self.durable.insert(sector, contents);
        }
    }
    fn flush(&mut self) {
        self.durable.append(&mut self.cached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(at: u64, byte: u8, fua: bool) -> DiskOp<'static> {
        let data = match byte {
            0..=1 => &[1; SECTOR as usize],
            2 => &[2; SECTOR as usize],
            _ => &[3; SECTOR as usize],
        };
        DiskOp { kind: DriveOpKind::Write, at, len: SECTOR, data, fua }
    }

    #[test]
    fn a_power_cut_spares_what_was_flushed_and_what_was_forced() {
        let mut lost = 0;
        for seed in 0..64 {
            let mut rng = Prng::new(seed);
            let mut disk = Disk::new("d".into(), 1 << 20, true);
            disk.complete(&write(0, 1, false), &mut [], &mut rng).expect("written");
            let flush = DiskOp { kind: DriveOpKind::Flush, at: 0, len: 0, data: &[], fua: false };
            disk.complete(&flush, &mut [], &mut rng).expect("flushed");
            disk.complete(&write(SECTOR, 2, true), &mut [], &mut rng).expect("forced");
            disk.complete(&write(2 * SECTOR, 3, false), &mut [], &mut rng).expect("cached");
            disk.power_cut(&mut rng);
            let mut out = vec![0; 3 * SECTOR as usize];
            disk.read(0, &mut out);
            assert_eq!((out[0], out[SECTOR as usize]), (1, 2));
            lost += u32::from(out[2 * SECTOR as usize] == 0);
        }
        assert!(lost > 10 && lost < 54, "cached writes are lost sometimes: {lost} of 64");
    }

    #[test]
    fn sectors_that_are_not_uniform_survive_too() {
        let mut disk = Disk::new("d".into(), 1 << 20, false);
        let mut op = write(0, 0, false);
        let data: Vec<u8> = (0..SECTOR).map(|i| (i % 251) as u8).collect();
        op.data = &data;
        disk.complete(&op, &mut [], &mut Prng::new(1)).expect("written");
        let mut out = vec![0; SECTOR as usize];
        disk.read(0, &mut out);
        assert_eq!(out, op.data);
        let beyond = disk.complete(&write(1 << 20, 1, false), &mut [], &mut Prng::new(1));
        assert_eq!(beyond, Err(DriveError::Other(22)));
    }
}
