//! Free space of a pool, in granules: first fit, few runs.

/// A request for more granules than are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom {
    /// Granules that are free.
    pub free: u64,
}

/// Which granules are given away, as sorted runs `(first, count)` that neither touch nor overlap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Granules {
    count: u64,
    used: Vec<(u64, u64)>,
}

impl Granules {
    /// `count` granules, all free.
    pub fn new(count: u64) -> Self {
        Self { count, used: vec![] }
    }
    /// Granules in all.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Granules that are free.
    pub fn free(&self) -> u64 {
        self.count - self.used.iter().map(|(_, n)| n).sum::<u64>()
    }
    /// Whether everything from granule `from` on is free.
    pub fn is_free_from(&self, from: u64) -> bool {
        self.used.last().is_none_or(|(first, count)| first + count <= from)
    }
    /// Notes that a run is given away. False (and nothing changes) if part of it is already, or lies
    /// beyond the end.
    pub fn claim(&mut self, first: u64, count: u64) -> bool {
        let Some(end) = first.checked_add(count).filter(|e| *e <= self.count && count > 0) else {
            return false;
        };
        let i = self.used.partition_point(|(f, _)| *f < first);
        let after_previous = i == 0 || self.used[i - 1].0 + self.used[i - 1].1 <= first;
        let before_next = self.used.get(i).is_none_or(|(f, _)| end <= *f);
        if !after_previous || !before_next {
            return false;
        }
        self.used.insert(i, (first, count));
        self.merge(i);
        true
    }
    /// Takes `count` granules: right behind `after` if there is room (so that a volume that grows stays
    /// one run), then the first hole that holds all, then holes from the largest.
    pub fn take(&mut self, count: u64, after: Option<u64>) -> Result<Vec<(u64, u64)>, NoRoom> {
        if count > self.free() {
            return Err(NoRoom { free: self.free() });
        }
        let mut out = vec![];
        let mut left = count;
        if let Some((first, n)) = after.and_then(|a| self.holes().find(|(f, _)| *f == a)) {
            self.give(&mut out, first, n.min(left), &mut left);
        }
        while left > 0 {
            let fits = self.holes().find(|(_, n)| *n >= left);
            let largest = || self.holes().max_by_key(|(first, n)| (*n, u64::MAX - first));
            let (first, n) = fits.or_else(largest).expect("there is as much free as was asked for");
            self.give(&mut out, first, n.min(left), &mut left);
        }
        Ok(out)
    }
    fn give(&mut self, out: &mut Vec<(u64, u64)>, first: u64, count: u64, left: &mut u64) {
        assert!(self.claim(first, count), "a hole is free");
        out.push((first, count));
        *left -= count;
    }
    /// Runs that are free.
    pub fn holes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let starts = core::iter::once(0).chain(self.used.iter().map(|(f, n)| f + n));
        let ends = self.used.iter().map(|(f, _)| *f).chain(core::iter::once(self.count));
        starts.zip(ends).map(|(start, end)| (start, end - start)).filter(|(_, n)| *n > 0)
    }
    fn merge(&mut self, i: usize) {
        if i + 1 < self.used.len() && self.used[i].0 + self.used[i].1 == self.used[i + 1].0 {
            self.used[i].1 += self.used.remove(i + 1).1;
        }
        if i > 0 && self.used[i - 1].0 + self.used[i - 1].1 == self.used[i].0 {
            self.used[i - 1].1 += self.used.remove(i).1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn free_space_agrees_with_a_plain_list_of_bits() {
        for seed in 0..100 {
            let mut rng = Prng::new(seed);
            let count = rng.between(1, 60);
            let mut granules = Granules::new(count);
            let mut bits = vec![false; count as usize];
            let mut held: Vec<(u64, u64)> = vec![];
            for _ in 0..100 {
                if rng.chance(1, 2) {
                    let want = rng.between(1, 12);
                    let free = bits.iter().filter(|b| !**b).count() as u64;
                    match granules.take(want, held.last().map(|(f, n)| f + n)) {
                        Err(NoRoom { free: said }) => assert!(said == free && want > free),
                        Ok(runs) => {
                            assert_eq!(runs.iter().map(|(_, n)| n).sum::<u64>(), want);
                            for (f, n) in &runs {
                                for b in &mut bits[*f as usize..(*f + *n) as usize] {
                                    assert!(!*b, "a granule was given twice");
                                    *b = true;
                                }
                            }
                            held.extend(runs);
                        }
                    }
                } else if !held.is_empty() {
                    // What is left is claimed anew, as it is from a configuration.
                    let (f, n) = held.swap_remove(rng.below(held.len() as u64) as usize);
                    bits[f as usize..(f + n) as usize].fill(false);
                    granules = Granules::new(count);
                    assert!(
                        held.iter().all(|(f, n)| granules.claim(*f, *n)),
                        "runs that were given do not overlap"
                    );
                }
                assert_eq!(granules.free(), bits.iter().filter(|b| !**b).count() as u64);
                let from = rng.below(count + 1);
                assert_eq!(granules.is_free_from(from), bits[from as usize..].iter().all(|b| !b));
            }
        }
    }

    #[test]
    fn a_run_that_is_taken_or_outside_cannot_be_claimed() {
        let mut g = Granules::new(10);
        assert!(g.claim(2, 3));
        for (first, count) in [(2, 1), (4, 1), (1, 2), (0, 10), (8, 3), (u64::MAX, 2), (7, 0)] {
            assert!(!g.claim(first, count), "{first} {count}");
        }
        assert!(g.claim(5, 5));
        assert_eq!(g.take(3, None), Err(NoRoom { free: 2 }));
        assert_eq!(g.take(2, None), Ok(vec![(0, 2)]));
    }

    #[test]
    fn growing_prefers_the_space_right_behind() {
        let mut g = Granules::new(10);
        assert!(g.claim(4, 2));
        assert_eq!(g.take(3, Some(6)), Ok(vec![(6, 3)]));
        assert_eq!(g.take(5, Some(9)), Ok(vec![(9, 1), (0, 4)]));
    }
}
