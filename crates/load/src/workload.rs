//! The generator: which blocks come next, read or write, and what a read of them must return.
//!
//! The region is divided into units of one operation. With verification no two operations in flight
//! touch the same unit, so that the expected data of a read is known exactly.

use crate::plan::{Pattern, Plan, VERIFIED_UNITS_MAX};
use base::Prng;

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pick {
    /// Index of the unit.
    pub unit: u64,
    /// Write, not read.
    pub write: bool,
    /// Write: the version to write. Read: the version to find, 0 if it is not known.
    pub version: u32,
}

/// Generates the operations of one run.
#[derive(Debug)]
pub struct Workload {
    pattern: Pattern,
    read_percent: u8,
    rng: Prng,
    units: u64,
    cursor: u64,
    /// Verification: the version that each unit holds, 0 for unknown. Empty without verification.
    versions: Vec<u32>,
    /// Verification: one bit per unit in flight.
    busy: Vec<u64>,
    last_version: u32,
}

impl Workload {
    /// A generator over `units` places; fewer if verification could not remember them.
    pub fn new(plan: &Plan, units: u64) -> Self {
        let units = if plan.verify { units.min(VERIFIED_UNITS_MAX) } else { units };
        let n = if plan.verify { units as usize } else { 0 };
        Self {
            pattern: plan.pattern,
            read_percent: plan.read_percent,
            rng: Prng::new(plan.seed),
            units,
            cursor: 0,
            versions: vec![0; n],
            busy: vec![0; n.div_ceil(64)],
            last_version: 0,
        }
    }
    /// Number of places.
    pub fn units(&self) -> u64 {
        self.units
    }
    /// The next operation; None while every unit is in flight.
    pub fn next_pick(&mut self) -> Option<Pick> {
        let unit = match self.pattern {
            Pattern::Random => self.random()?,
            Pattern::Sequential => {
                let unit = self.idle_from(self.cursor)?;
                self.cursor = (unit + 1) % self.units;
                unit
            }
        };
        let write = !self.rng.chance(u64::from(self.read_percent), 100);
        Some(self.take(unit, write))
    }
    /// Writes every unit once, in order; None after the last.
    pub fn next_prepare(&mut self) -> Option<Pick> {
        (self.cursor < self.units).then(|| {
            self.cursor += 1;
            self.take(self.cursor - 1, true)
        })
    }
    /// Reads every unit whose contents are known, in order; None after the last. Nothing else may be
    /// in flight.
    pub fn next_read_back(&mut self) -> Option<Pick> {
        let rest = self.versions.get(self.cursor as usize..)?;
        let unit = self.cursor + rest.iter().position(|v| *v != 0)? as u64;
        self.cursor = unit + 1;
        Some(self.take(unit, false))
    }
    /// Whether `next_prepare` has given every unit.
    pub fn prepared(&self) -> bool {
        self.cursor >= self.units
    }
    /// Whether `next_read_back` would give another unit.
    pub fn has_read_back(&self) -> bool {
        self.versions.get(self.cursor as usize..).is_some_and(|rest| rest.iter().any(|v| *v != 0))
    }
    /// How much of the region `next_prepare` or `next_read_back` is through with, 0 to 1.
    pub fn position(&self) -> f64 {
        self.cursor as f64 / self.units.max(1) as f64
    }
    /// `next_prepare`, `next_read_back` or a sequential `next_pick` begin at the first unit again.
    pub fn rewind(&mut self) {
        self.cursor = 0;
    }
    /// An operation is over. After a failed write the contents of the unit are unknown.
    pub fn over(&mut self, pick: Pick, good: bool) {
        if self.versions.is_empty() {
            return;
        }
        self.busy[(pick.unit / 64) as usize] &= !(1 << (pick.unit % 64));
        if pick.write {
            self.versions[pick.unit as usize] = if good { pick.version } else { 0 };
        }
    }

    fn take(&mut self, unit: u64, write: bool) -> Pick {
        if write {
            // 0 means unknown; after 2^32 writes a version may come again, 2^32 writes apart.
            self.last_version = self.last_version.checked_add(1).unwrap_or(1);
        }
        if self.versions.is_empty() {
            return Pick { unit, write, version: self.last_version };
        }
        assert!(!self.is_busy(unit), "an operation would overlap another");
        self.busy[(unit / 64) as usize] |= 1 << (unit % 64);
        let version = if write { self.last_version } else { self.versions[unit as usize] };
        Pick { unit, write, version }
    }
    fn is_busy(&self, unit: u64) -> bool {
        self.busy.get((unit / 64) as usize).is_some_and(|word| word >> (unit % 64) & 1 == 1)
    }
    fn random(&mut self) -> Option<u64> {
        for _ in 0..8 {
            let unit = self.rng.below(self.units);
            if !self.is_busy(unit) {
                return Some(unit);
            }
        }
        // Nearly everything is in flight: take the next idle one.
        let from = self.rng.below(self.units);
        self.idle_from(from)
    }
    fn idle_from(&self, from: u64) -> Option<u64> {
        (from..self.units).chain(0..from).find(|u| !self.is_busy(*u))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pattern: Pattern, read_percent: u8, verify: bool) -> Plan {
        Plan { pattern, read_percent, verify, ..Plan::new(vec![]) }
    }

    #[test]
    fn operations_in_flight_never_overlap_and_nothing_comes_when_all_units_are_taken() {
        for pattern in [Pattern::Random, Pattern::Sequential] {
            let mut w = Workload::new(&plan(pattern, 50, true), 70);
            let mut all: Vec<_> = (0..70).map(|_| w.next_pick().unwrap()).collect();
            assert_eq!(w.next_pick(), None);
            all.sort_by_key(|p| p.unit);
            all.iter().enumerate().for_each(|(i, p)| assert_eq!(p.unit, i as u64));
            w.over(all[33], true);
            assert_eq!(w.next_pick().unwrap().unit, 33);
        }
    }

    #[test]
    fn reads_expect_the_last_good_write_and_nothing_after_a_failed_one() {
        let mut w = Workload::new(&plan(Pattern::Sequential, 0, true), 2);
        let (a, b) = (w.next_pick().unwrap(), w.next_pick().unwrap());
        assert!(a.write && b.write && a.version != b.version);
        w.over(a, true);
        w.over(b, false);
        w.rewind();
        let back = w.next_read_back().unwrap();
        assert_eq!(back, Pick { unit: 0, write: false, version: a.version });
        assert_eq!(w.next_read_back(), None);
    }

    #[test]
    fn the_mix_is_what_was_asked_and_the_same_seed_gives_the_same_operations() {
        let make = || {
            let mut w = Workload::new(&plan(Pattern::Random, 70, false), 1000);
            (0..10_000).map(|_| w.next_pick().unwrap()).collect::<Vec<_>>()
        };
        let ops = make();
        let reads = ops.iter().filter(|p| !p.write).count();
        assert!((6800..7200).contains(&reads), "{reads}");
        assert_eq!(ops, make());
    }

    #[test]
    fn preparing_writes_every_unit_once() {
        let mut w = Workload::new(&plan(Pattern::Random, 100, true), 9);
        let picks: Vec<_> = core::iter::from_fn(|| w.next_prepare()).collect();
        assert_eq!(picks.len(), 9);
        picks.iter().for_each(|p| w.over(*p, true));
        w.rewind();
        assert_eq!(core::iter::from_fn(|| w.next_read_back()).count(), 9);
    }
}
