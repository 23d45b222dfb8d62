//! Latency histograms in fixed memory.

use crate::Duration;

/// Octaves above the first, whose values have a bucket each.
const OCTAVES: usize = 32;

/// 16 steps an octave, so a figure is too large by at most 1/16. From 1 ns to about 68 s; longer ones count as that.
/// 4 KiB.
pub type Histogram = Buckets<{ 16 * (OCTAVES + 1) }>;
/// 4 steps an octave, so a figure is too large by at most 1/4. From 1 ns to about 17 s; longer ones count as that.
/// 1 KiB.
pub type Coarse = Buckets<{ 4 * (OCTAVES + 1) }>;

/// How many latencies lay between which bounds. Recording allocates nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Buckets<const BUCKETS: usize> {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    max: Duration,
    sum_ns: u128,
}

impl<const BUCKETS: usize> Default for Buckets<BUCKETS> {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), count: 0, max: Duration::ZERO, sum_ns: 0 }
    }
}

impl<const BUCKETS: usize> core::fmt::Debug for Buckets<BUCKETS> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Histogram({} values, max {:?})", self.count, self.max)
    }
}

impl<const BUCKETS: usize> Buckets<BUCKETS> {
    /// Of an octave.
    const STEPS: usize = BUCKETS / (OCTAVES + 1);
    /// Bits that choose the step.
    const BITS: u32 = Self::STEPS.ilog2();

    /// Values below `STEPS` have a bucket each; then the leading one chooses the octave and the bits below it the step.
    fn bucket(ns: u64) -> usize {
        if ns < Self::STEPS as u64 {
            return ns as usize;
        }
        let octave = 63 - ns.leading_zeros();
        let step = (ns >> (octave - Self::BITS)) as usize & (Self::STEPS - 1);
        (((octave - Self::BITS + 1) as usize) * Self::STEPS + step).min(BUCKETS - 1)
    }
    /// The largest value of bucket `i`, but for the last one, which holds all that is longer.
    fn upper(i: usize) -> u64 {
        if i < Self::STEPS {
            return i as u64;
        }
        let (octave, step) = (i / Self::STEPS - 1, i % Self::STEPS);
        ((Self::STEPS + step + 1) as u64) << octave
    }
    /// Counts one latency.
    pub fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[Self::bucket(ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max = self.max.max(latency);
    }
    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max = self.max.max(other.max);
    }
    /// What was counted since `earlier`; None if that had counted what this has not. The longest is known to its step.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let mut since = self.clone();
        for (mine, theirs) in since.counts.iter_mut().zip(earlier.counts.iter()) {
            *mine = mine.checked_sub(*theirs)?;
        }
        since.count = self.count.checked_sub(earlier.count)?;
        since.sum_ns = self.sum_ns.checked_sub(earlier.sum_ns)?;
        let longest = since.counts.iter().rposition(|n| *n > 0);
        since.max = longest.map_or(Duration::ZERO, |i| Duration::from_nanos(Self::upper(i)).min(self.max));
        Some(since)
    }
    /// Forgets everything, keeps its memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.count = 0;
        self.max = Duration::ZERO;
        self.sum_ns = 0;
    }
    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The longest.
    pub fn max(&self) -> Duration {
        self.max
    }
    /// The mean; zero if nothing was counted.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.sum_ns.checked_div(u128::from(self.count)).unwrap_or(0)) as u64)
    }
    /// A latency that `per_mille` of 1000 values do not exceed (500 is the median), rounded up to its
    /// step; zero if nothing was counted.
    pub fn quantile(&self, per_mille: u32) -> Duration {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1) as u64;
        let mut seen = 0;
        for (i, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Duration::from_nanos(Self::upper(i)).min(self.max);
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::{Buckets, Coarse, Histogram};
    use crate::Duration;

    fn ends_are_near<const BUCKETS: usize>(part: u64, longest: u64) {
        let mut last = 0;
        for ns in (0..5000).chain((5000..longest).step_by(97_654_321)) {
            let i = Buckets::<BUCKETS>::bucket(ns);
            let upper = Buckets::<BUCKETS>::upper(i);
            assert!(i >= last && ns <= upper, "{ns}");
            assert!(upper <= ns + ns / part + 1, "{ns} {upper}");
            last = i;
        }
        assert_eq!(Buckets::<BUCKETS>::bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn every_value_lies_at_most_a_step_below_its_buckets_end() {
        ends_are_near::<{ 16 * 33 }>(16, 1 << 35);
        ends_are_near::<{ 4 * 33 }>(4, 1 << 33);
    }

    #[test]
    fn what_came_since_has_figures_of_its_own() {
        let mut h = Coarse::default();
        h.record(Duration::from_secs(1));
        let before = h.clone();
        assert_eq!(h.since(&before).expect("the same").quantile(990), Duration::ZERO);
        for us in [100, 200, 300] {
            h.record(Duration::from_micros(us));
        }
        let since = h.since(&before).expect("it only grew");
        assert_eq!((since.count(), since.mean()), (3, Duration::from_micros(200)));
        let near = since.quantile(1000).as_nanos();
        assert!((300_000..=375_000).contains(&near) && since.max().as_nanos() == near, "{near}");
        assert_eq!(before.since(&h), None, "it went back");
    }

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut h = Histogram::default();
        assert_eq!((h.quantile(500), h.mean()), (Duration::ZERO, Duration::ZERO));
        for us in 1..=1000 {
            h.record(Duration::from_micros(us));
        }
        let near = |got: Duration, us: u64| {
            let got = got.as_nanos() as u64;
            assert!(got >= us * 1000 && got <= us * 1000 * 17 / 16 + 1, "{got} for {us} us");
        };
        near(h.quantile(500), 500);
        near(h.quantile(990), 990);
        assert_eq!(h.quantile(1000), Duration::from_millis(1));
        let mut other = Histogram::default();
        other.record(Duration::from_secs(1));
        h.merge(&other);
        assert_eq!((h.count(), h.max()), (1001, Duration::from_secs(1)));
        h.clear();
        assert_eq!((h.count(), h.quantile(999)), (0, Duration::ZERO));
    }
}
