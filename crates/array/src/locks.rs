//! Range locks: overlapping changes take their turn, in the order in which they came.
//!
//! An entry waits for every earlier entry that it overlaps, held or waiting, and for nothing else. So no entry
//! starves and none can deadlock. An entry counts the entries that it waits for; an entry that leaves
//! decrements the counts behind it. To find overlaps, entries are linked into buckets by the units of
//! `UNIT_BYTES` that they touch; the few that touch many units are in a list of their own.
//!
//! A range that a hung drive holds is *stuck*, and so are the entries that wait for it. Host commands do not wait for
//! a stuck range: they are completed with a retry status.
//!
//! Entries are named by the slot of the flight that they belong to. Nothing is allocated after `new`.

use base::{Bug, planted};

const UNIT_BYTES: u64 = 512 << 10;
const UNITS_MAX: usize = 4;
const BUCKETS: usize = 1024;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    used: bool,
    wide: bool,
    at: u64,
    end: u64,
    order: u64,
    waits_for: u32,
    /// A drive that hangs may keep it for ever, or one that it waits for.
    stuck: bool,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    unit: u64,
    next: u32,
    previous: u32,
}

/// All ranges held or waited for in one instance.
#[derive(Debug)]
pub(crate) struct Locks {
    entries: Vec<Entry>,
    nodes: Vec<Node>,
    buckets: Vec<u32>,
    wide: Vec<u32>,
    order: u64,
    used: u32,
}

fn first_unit(e: &Entry) -> u64 {
    e.at / UNIT_BYTES
}

fn bucket_of(unit: u64) -> usize {
    (unit.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % BUCKETS
}

fn overlap(a: &Entry, b: &Entry) -> bool {
    a.at < b.end && b.at < a.end
}

impl Locks {
    /// Room for entries `0..capacity`.
    pub(crate) fn new(capacity: u32) -> Self {
        let n = capacity as usize;
        let free = Entry { used: false, wide: false, at: 0, end: 0, order: 0, waits_for: 0, stuck: false };
        Self {
            entries: vec![free; n],
            nodes: vec![Node { unit: 0, next: NONE, previous: NONE }; n * UNITS_MAX],
            buckets: vec![NONE; BUCKETS],
            wide: Vec::with_capacity(n),
            order: 0,
            used: 0,
        }
    }
    /// Whether nothing is held or waited for.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }
    /// Whether `id` holds its range.
    pub(crate) fn held(&self, id: u32) -> bool {
        let entry = &self.entries[id as usize];
        entry.used && entry.waits_for == 0
    }
    /// Takes the range for `id`, or puts it in line; whether it is held now.
    pub(crate) fn acquire(&mut self, id: u32, at: u64, len: u64) -> bool {
        assert!(len > 0, "a lock of nothing");
        let (first, last) = (at / UNIT_BYTES, (at + len - 1) / UNIT_BYTES);
        let wide = last - first >= UNITS_MAX as u64;
        assert!(!self.entries[id as usize].used, "a flight locks once");
        self.order += 1;
        let entry =
            Entry { used: true, wide, at, end: at + len, order: self.order, waits_for: 0, stuck: false };
        let (mut waits_for, mut stuck) = (0, false);
        if !self.is_alone(&entry) {
            self.each_overlap(id, &entry, |other| {
                waits_for += 1;
                stuck |= other.stuck;
            });
        }
        if waits_for > 0 && planted(Bug::NoRangeLock) {
            (waits_for, stuck) = (0, false);
        }
        self.entries[id as usize] = Entry { waits_for, stuck, ..entry };
        self.used += 1;
        if wide {
            self.wide.push(id);
        } else {
            for (k, unit) in (first..=last).enumerate() {
                self.link(id as usize * UNITS_MAX + k, unit);
            }
        }
        waits_for == 0
    }
    /// `id` leaves, held or waiting; entries that hold their range now go to `granted`.
    pub(crate) fn release(&mut self, id: u32, mut granted: impl FnMut(u32)) {
        let entry = self.entries[id as usize];
        assert!(entry.used, "a lock was released twice");
        self.entries[id as usize].used = false;
        self.used -= 1;
        if entry.wide {
            self.wide.retain(|w| *w != id);
        } else {
            let units = (entry.end - 1) / UNIT_BYTES - first_unit(&entry) + 1;
            for k in 0..units as usize {
                self.unlink(id as usize * UNITS_MAX + k);
            }
        }
        if self.is_alone(&entry) {
            return;
        }
        // Two borrows of self: the overlaps are found on the entries as they stand, and counted down
        // behind; so walk first into the entries by index.
        let mut walk = Walk::start(self, &entry);
        while let Some(other) = walk.next(self, id, &entry) {
            let behind = &mut self.entries[other as usize];
            if behind.order > entry.order && !planted(Bug::NoRangeLock) {
                assert!(behind.waits_for > 0, "a waiting range was not counted");
                behind.waits_for -= 1;
                if behind.waits_for == 0 {
                    behind.stuck = false;
                    granted(other);
                }
            }
        }
    }
    /// Whether a quick check shows that no entry overlaps one that is not linked yet: it touches one unit, like most,
    /// the bucket of that unit is empty, and no entry is wide.
    #[inline]
    fn is_alone(&self, entry: &Entry) -> bool {
        let unit = first_unit(entry);
        let narrow = unit == (entry.end - 1) / UNIT_BYTES && self.wide.is_empty();
        narrow && self.buckets[bucket_of(unit)] == NONE
    }
    fn each_overlap(&self, id: u32, entry: &Entry, mut f: impl FnMut(&Entry)) {
        let mut walk = Walk::start(self, entry);
        while let Some(other) = walk.next(self, id, entry) {
            f(&self.entries[other as usize]);
        }
    }
    /// `id` may keep its range for ever: so may all that wait for it, each of which is handed to `waits`.
    pub(crate) fn stick(&mut self, id: u32, waits: &mut Vec<u32>) {
        self.entries[id as usize].stuck = true;
        waits.clear();
        let mut next = Some(id);
        let mut done = 0;
        while let Some(id) = next {
            let entry = self.entries[id as usize];
            let mut walk = Walk::start(self, &entry);
            while let Some(other) = walk.next(self, id, &entry) {
                let behind = &mut self.entries[other as usize];
                if behind.order > entry.order && !core::mem::replace(&mut behind.stuck, true) {
                    waits.push(other);
                }
            }
            next = waits.get(done).copied();
            done += 1;
        }
    }
    /// Whether an entry that waits for this range may wait for ever.
    pub(crate) fn is_stuck(&self, id: u32) -> bool {
        self.entries[id as usize].stuck
    }
    fn link(&mut self, node: usize, unit: u64) {
        let bucket = bucket_of(unit);
        let next = self.buckets[bucket];
        self.nodes[node] = Node { unit, next, previous: NONE };
        if next != NONE {
            self.nodes[next as usize].previous = node as u32;
        }
        self.buckets[bucket] = node as u32;
    }
    fn unlink(&mut self, node: usize) {
        let Node { unit, next, previous } = self.nodes[node];
        if previous == NONE {
            self.buckets[bucket_of(unit)] = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
    }
}

/// Finds every used entry that overlaps one, each once.
enum Walk {
    /// A wide entry looks at all.
    All {
        next: u32,
    },
    /// Others look through the buckets of their units, and then through the wide ones.
    Units {
        unit: u64,
        last: u64,
        node: u32,
    },
    Wide {
        next: usize,
    },
}

impl Walk {
    fn start(locks: &Locks, entry: &Entry) -> Walk {
        if entry.wide {
            return Walk::All { next: 0 };
        }
        let unit = first_unit(entry);
        Walk::Units { unit, last: (entry.end - 1) / UNIT_BYTES, node: locks.buckets[bucket_of(unit)] }
    }
    fn next(&mut self, locks: &Locks, id: u32, entry: &Entry) -> Option<u32> {
        loop {
            match self {
                Walk::All { next } => {
                    let other = *next;
                    let found = locks.entries.get(other as usize)?;
                    *next += 1;
                    if other != id && found.used && overlap(found, entry) {
                        return Some(other);
                    }
                }
                Walk::Units { unit, last, node } if *node == NONE => {
                    if unit == last {
                        *self = Walk::Wide { next: 0 };
                    } else {
                        *unit += 1;
                        *node = locks.buckets[bucket_of(*unit)];
                    }
                }
                Walk::Units { unit, node, .. } => {
                    let other = *node / UNITS_MAX as u32;
                    let seen = locks.nodes[*node as usize];
                    *node = seen.next;
                    let found = &locks.entries[other as usize];
                    // A pair that shares several units is counted in the first one only.
                    let here = seen.unit == *unit && *unit == first_unit(entry).max(first_unit(found));
                    if here && other != id && overlap(found, entry) {
                        return Some(other);
                    }
                }
                Walk::Wide { next } => {
                    let other = *locks.wide.get(*next)?;
                    *next += 1;
                    if other != id && overlap(&locks.entries[other as usize], entry) {
                        return Some(other);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn overlapping_ranges_are_granted_one_by_one_in_order_and_others_at_once() {
        let mut locks = Locks::new(4);
        assert!(locks.acquire(0, 0, 8192));
        assert!(locks.acquire(1, 8192, 8192));
        assert!(!locks.acquire(2, 4096, 8192));
        assert!(!locks.acquire(3, 4096, 4096));
        let mut granted = Vec::new();
        locks.release(0, |id| granted.push(id));
        assert!(granted.is_empty(), "2 still waits for 1, and 3 waits behind 2");
        locks.release(1, |id| granted.push(id));
        assert_eq!(granted, [2]);
        locks.release(2, |id| granted.push(id));
        assert_eq!(granted, [2, 3]);
        assert!(locks.held(3));
        locks.release(3, |_| unreachable!("nobody waits"));
        assert!(locks.is_empty());
    }

    #[test]
    fn locks_behave_like_the_plain_definition() {
        for seed in 0..300 {
            let mut rng = Prng::new(seed);
            let mut locks = Locks::new(24);
            // (id, at, end) in order of arrival.
            let mut model: Vec<(u32, u64, u64)> = Vec::new();
            for _ in 0..300 {
                let id = rng.below(24) as u32;
                let mut granted = Vec::new();
                if let Some(at) = model.iter().position(|e| e.0 == id) {
                    let before: Vec<u32> = held(&model);
                    model.remove(at);
                    locks.release(id, |g| granted.push(g));
                    let mut want: Vec<u32> =
                        held(&model).into_iter().filter(|h| !before.contains(h)).collect();
                    want.sort_unstable();
                    granted.sort_unstable();
                    assert_eq!(granted, want);
                } else {
                    let len =
                        if rng.chance(1, 6) { rng.between(1, 16 << 20) } else { rng.between(1, 1 << 20) };
                    let at = rng.below(24 << 20);
                    model.push((id, at, at + len));
                    assert_eq!(locks.acquire(id, at, len), held(&model).contains(&id));
                }
            }
        }
        fn held(model: &[(u32, u64, u64)]) -> Vec<u32> {
            let free = |i: usize| model[..i].iter().all(|o| o.1 >= model[i].2 || model[i].1 >= o.2);
            (0..model.len()).filter(|i| free(*i)).map(|i| model[i].0).collect()
        }
    }
}
