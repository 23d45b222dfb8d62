//! The volume map: where each byte of a thick volume lies in pool space.

use crate::{BYTES_MAX, GRANULE_BYTES, RUNS_MAX};
use base::codec::{Malformed, Reader, Writer};

/// A run of pool space, in granules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// First granule of pool space.
    pub first: u64,
    /// Number of granules, at least 1.
    pub count: u64,
}

/// Runs of pool space in the volume's order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Map {
    /// First granule of the volume in each run, and the run. Neighbours in both spaces are one run.
    runs: Vec<(u64, Run)>,
}

impl Map {
    /// A map of these runs. None if there are more than `RUNS_MAX`, or an empty one.
    pub fn new(runs: &[Run]) -> Option<Self> {
        Self::default().grown(runs)
    }
    /// This map with `runs` behind its end.
    pub fn grown(&self, runs: &[Run]) -> Option<Self> {
        let mut map = self.clone();
        for run in runs {
            let next = map.granules();
            match map.runs.last_mut() {
                _ if run.count == 0 => return None,
                Some((_, last)) if last.first + last.count == run.first => last.count += run.count,
                _ => map.runs.push((next, *run)),
            }
        }
        (map.runs.len() <= RUNS_MAX).then_some(map)
    }
    /// This map cut to `granules`, and what is free again.
    pub fn shrunk(&self, granules: u64) -> (Self, Vec<Run>) {
        let (mut map, mut freed) = (Self::default(), vec![]);
        for (at, run) in &self.runs {
            let keep = granules.saturating_sub(*at).min(run.count);
            if keep > 0 {
                map.runs.push((*at, Run { first: run.first, count: keep }));
            }
            if keep < run.count {
                freed.push(Run { first: run.first + keep, count: run.count - keep });
            }
        }
        (map, freed)
    }
    /// Where byte `at` of the volume lies in pool space, and for how many bytes the two run in step.
    /// Panics beyond the end.
    #[inline]
    pub fn locate(&self, at: u64) -> (u64, u64) {
        let (first, run) = match &self.runs[..] {
            [run] => *run,
            runs => runs[runs.partition_point(|(first, _)| *first <= at / GRANULE_BYTES) - 1],
        };
        let inner = at - first * GRANULE_BYTES;
        let len = run.count * GRANULE_BYTES;
        assert!(inner < len, "byte {at} lies beyond the end of the volume");
        (run.first * GRANULE_BYTES + inner, len - inner)
    }
    /// The way back: which byte of the volume lies at byte `at` of pool space.
    pub fn locate_back(&self, at: u64) -> Option<u64> {
        let granule = at / GRANULE_BYTES;
        let (first, run) =
            self.runs.iter().find(|(_, r)| granule >= r.first && granule - r.first < r.count)?;
        Some((first + granule - run.first) * GRANULE_BYTES + at % GRANULE_BYTES)
    }
    /// The runs, in the volume's order.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = Run> + '_ {
        self.runs.iter().map(|(_, r)| *r)
    }
    /// Granules in all.
    pub fn granules(&self) -> u64 {
        self.runs.last().map_or(0, |(at, r)| at + r.count)
    }
    /// Writes the map down (docs/formats/config.md, "volume map").
    pub fn encode(&self, w: &mut Writer) {
        w.u16(self.runs.len() as u16);
        for (_, run) in &self.runs {
            w.u64(run.first).u64(run.count);
        }
    }
    /// Reads what `encode` wrote. Whether runs overlap others' is for the owner of the space to say.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut map = Self::default();
        for _ in 0..r.u16()? {
            let run = Run { first: r.u64()?, count: r.u64()? };
            let limit = BYTES_MAX / GRANULE_BYTES;
            if run.first > limit || run.count > limit || map.granules() > limit {
                return Err(Malformed);
            }
            map = map.grown(&[run]).ok_or(Malformed)?;
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    fn run(first: u64, count: u64) -> Run {
        Run { first, count }
    }

    #[test]
    fn bytes_are_found_across_runs_and_back() {
        let map = Map::new(&[run(10, 2), run(12, 1), run(3, 1)]).expect("a good map");
        assert_eq!(map.runs().collect::<Vec<_>>(), [run(10, 3), run(3, 1)], "neighbours are one run");
        assert_eq!(map.locate(0), (10 * GRANULE_BYTES, 3 * GRANULE_BYTES));
        assert_eq!(map.locate(3 * GRANULE_BYTES - 1), (13 * GRANULE_BYTES - 1, 1));
        assert_eq!(map.locate(3 * GRANULE_BYTES + 9), (3 * GRANULE_BYTES + 9, GRANULE_BYTES - 9));
        assert_eq!(map.locate_back(12 * GRANULE_BYTES + 1), Some(2 * GRANULE_BYTES + 1));
        assert_eq!(map.locate_back(0), None);
    }

    #[test]
    fn growing_and_shrinking_keep_what_stays_where_it_is() {
        for seed in 0..100 {
            let mut rng = Prng::new(seed);
            let mut next = 0;
            let mut some = |rng: &mut Prng| -> Vec<Run> {
                (0..rng.between(1, 5))
                    .map(|_| {
                        next += rng.below(3);
                        let r = run(next, rng.between(1, 4));
                        next += r.count;
                        r
                    })
                    .collect()
            };
            let map = Map::new(&some(&mut rng)).expect("a good map");
            let grown = map.grown(&some(&mut rng)).expect("a good map");
            let to = rng.between(0, grown.granules());
            let (cut, freed) = grown.shrunk(to);
            assert_eq!(cut.granules(), to);
            assert_eq!(freed.iter().map(|r| r.count).sum::<u64>(), grown.granules() - to);
            for g in 0..to {
                assert_eq!(cut.locate(g * GRANULE_BYTES).0, grown.locate(g * GRANULE_BYTES).0);
            }
            for g in 0..map.granules() {
                assert_eq!(map.locate(g * GRANULE_BYTES).0, grown.locate(g * GRANULE_BYTES).0);
            }
            let mut w = Writer::default();
            grown.encode(&mut w);
            assert_eq!(Map::decode(&mut Reader(&w.0)), Ok(grown));
            for cut in 0..w.0.len() {
                assert_eq!(Map::decode(&mut Reader(&w.0[..cut])), Err(Malformed));
            }
        }
    }

    #[test]
    fn empty_runs_and_endless_ones_are_refused() {
        assert_eq!(Map::new(&[run(0, 0)]), None);
        let many: Vec<Run> = (0..=RUNS_MAX as u64).map(|i| run(2 * i, 1)).collect();
        assert_eq!(Map::new(&many), None);
        let mut w = Writer::default();
        w.u16(1).u64(u64::MAX).u64(u64::MAX);
        assert_eq!(Map::decode(&mut Reader(&w.0)), Err(Malformed));
    }
}
