//! The simulated drive.

use base::{DriveError, DriveOpKind, Prng};
use core::ops::Range;
use sim::disk::{Disk, DiskOp};
use std::collections::BTreeMap;

const SECTOR: u64 = 4096;

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

const SECTORS: u64 = 64;

/// Where sectors lie.
fn bytes(sectors: &Range<u64>) -> (u64, u64) {
    (sectors.start * SECTOR, (sectors.end - sectors.start) * SECTOR)
}

/// A drive, and what it must hold: two plain maps, whose changes draw from the same source.
struct Checked {
    disk: Disk,
    cached: BTreeMap<u64, u8>,
    durable: BTreeMap<u64, u8>,
    rng: Prng,
    same: Prng,
}

impl Checked {
    fn new(seed: u64) -> Self {
        let disk = Disk::new("d".into(), SECTORS * SECTOR, true);
        let (cached, durable) = (BTreeMap::new(), BTreeMap::new());
        Self { disk, cached, durable, rng: Prng::new(seed), same: Prng::new(seed) }
    }
    fn complete(&mut self, op: &DiskOp) {
        self.disk.complete(op, &mut [], &mut self.rng).expect("no fault");
        assert!(!self.same.chance(0, 1_000_000));
    }
    fn write(&mut self, sectors: Range<u64>, byte: u8, fua: bool) {
        let (at, len) = bytes(&sectors);
        let data = vec![byte; len as usize];
        self.complete(&DiskOp { kind: DriveOpKind::Write, at, len, data: &data, fua });
        for sector in sectors.clone() {
            if let Some(older) = self.cached.insert(sector, byte)
                && self.same.chance(1, 2)
            {
                self.durable.insert(sector, older);
            }
        }
        for sector in sectors.filter(|_| fua) {
            self.durable.extend(self.cached.remove(&sector).map(|byte| (sector, byte)));
        }
    }
    fn flush(&mut self) {
        self.complete(&DiskOp { kind: DriveOpKind::Flush, at: 0, len: 0, data: &[], fua: false });
        self.durable.append(&mut self.cached);
    }
    fn power_cut(&mut self) {
        self.disk.power_cut(&mut self.rng);
        for (sector, byte) in core::mem::take(&mut self.cached) {
            if self.same.chance(1, 2) {
                self.durable.insert(sector, byte);
            }
        }
    }
    fn wipe(&mut self, sectors: Range<u64>) {
        let (at, len) = bytes(&sectors);
        self.disk.wipe(at, len);
        self.cached.retain(|sector, _| !sectors.contains(sector));
        self.durable.retain(|sector, _| !sectors.contains(sector));
    }
    fn put_copy(&mut self) {
        self.disk.put_copy(self.disk.copy());
        self.durable.append(&mut self.cached);
    }
    fn holds(&self, sector: u64, durable: bool) -> u8 {
        let cached = self.cached.get(&sector).filter(|_| !durable);
        cached.or(self.durable.get(&sector)).copied().unwrap_or_default()
    }
    fn check(&self, sectors: Range<u64>) {
        let (at, len) = bytes(&sectors);
        let mut out = vec![9; len as usize];
        self.disk.read(at, &mut out);
        for (sector, contents) in sectors.clone().zip(out.chunks(SECTOR as usize)) {
            assert!(*contents == [self.holds(sector, false); SECTOR as usize], "sector {sector}");
        }
        let has = |s: &u64| self.cached.contains_key(s) || self.durable.contains_key(s);
        assert_eq!(self.disk.sectors(at, len), sectors.clone().filter(has).collect::<Vec<_>>());
        let mut cached = sectors.filter(|s| self.cached.contains_key(s));
        let is_cached = cached.any(|s| self.holds(s, false) != self.holds(s, true));
        assert_eq!(self.disk.is_cached(at, len), is_cached);
        assert_eq!(self.disk.info().reads_zeroes, self.cached.is_empty() && self.durable.is_empty());
    }
}

/// Sectors lie in pages: what one operation does, and what a power cut spares, is not for others beside it.
#[test]
fn a_drive_holds_sector_by_sector_what_plain_maps_would_hold() {
    let mut differed = [0; 2];
    for seed in 0..16 {
        let mut rng = Prng::new(seed);
        let mut both = [Checked::new(seed + 100), Checked::new(seed + 200)];
        for _ in 0..200 {
            let one = &mut both[rng.below(2) as usize];
            let start = rng.below(SECTORS);
            let sectors = start..rng.between(start + 1, SECTORS.min(start + 20));
            match rng.below(16) {
                0 => one.flush(),
                1 => one.power_cut(),
                2 | 3 => one.wipe(sectors.clone()),
                4 => one.put_copy(),
                5 => one.wipe(0..SECTORS),
                _ => one.write(sectors.clone(), rng.below(3) as u8, rng.chance(1, 4)),
            }
            both.iter().for_each(|one| one.check(sectors.clone()));
            let [a, b] = &both;
            let (at, len) = bytes(&sectors);
            for durable in [false, true] {
                let differ = |s: &u64| a.holds(*s, durable) != b.holds(*s, durable);
                let differ: Vec<u64> = sectors.clone().filter(differ).collect();
                assert_eq!(a.disk.unlike(&b.disk, at, len, durable), differ, "seed {seed}");
                differed[usize::from(durable)] += differ.len();
            }
        }
    }
    assert!(differed.iter().all(|n| *n > 1000), "drives differ often enough: {differed:?}");
}
