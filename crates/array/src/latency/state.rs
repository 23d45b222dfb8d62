//! What is known of the time that a leg's reads take.

use crate::door::Verdict;
use base::{Duration, Instant};

/// Size classes of reads: up to 16 KiB, up to 128 KiB, larger.
pub(super) const CLASSES: usize = 3;
/// Reads further apart than this are rare.
const RARE: Duration = Duration::from_millis(200);
/// Reads of a class that a leg must have ended within a window to be compared.
const ENOUGH: u32 = 4;
/// Times are counted by their binary logarithm; the last step holds what is longer too (8 s).
const STEPS: usize = 32;

/// When legs are compared.
#[derive(Debug, Default)]
pub(crate) struct Judging {
    pub(super) look_at: Instant,
    pub(super) window_end: Instant,
    /// A leg is called slow.
    pub(super) slow: bool,
}

/// Reads of a window by the time that they took, for each class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window([[u32; STEPS]; CLASSES]);

impl Window {
    pub(super) fn add(&mut self, class: usize, took: u64) {
        // At most one for each read of five seconds.
        self.0[class][(took.max(1).ilog2() as usize).min(STEPS - 1)] += 1;
    }
    /// The step in which the median lies; None where reads are too few.
    pub(super) fn median(&self, class: usize) -> Option<usize> {
        let counts = &self.0[class];
        let half = Some(counts.iter().sum::<u32>()).filter(|n| *n >= ENOUGH)?.div_ceil(2);
        let mut below = 0;
        counts.iter().position(|n| {
            below += n;
            below >= half
        })
    }
}

/// What is known of a leg's reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latency {
    /// Nanoseconds, 0 where nothing was read yet.
    pub(super) mean: [u64; CLASSES],
    pub(super) high: [u64; CLASSES],
    /// The last read that was sent there, or that ended; the last one that ended.
    pub(super) seen_at: Instant,
    ended_at: Instant,
    /// Reads sent there since the legs last changed: at a tie, the leg with fewer is next.
    pub(crate) picked: u64,
    /// The last verdict that was reported.
    pub(super) reported: Verdict,
    /// Whether the last windows found it slow, and how many of them in a row said so.
    pub(super) accused: bool,
    pub(super) times: u8,
    /// How many times in a row nothing was known of it.
    pub(super) unknown: u8,
    /// The reads of this window.
    pub(super) window: Window,
}

// It is asked for every read, from another file.
#[inline]
pub(super) fn class_of(len: u64) -> usize {
    usize::from(len > 16 << 10) + usize::from(len > 128 << 10)
}

impl Latency {
    #[inline]
    pub(super) fn sample(&mut self, now: Instant, class: usize, took: u64) {
        // Where reads are rare, one of them says more.
        let shift = if now >= self.ended_at + RARE { 1 } else { 4 };
        self.ended_at = now;
        let (mean, high) = (&mut self.mean[class], &mut self.high[class]);
        if *mean == 0 {
            *mean = took.max(1);
            *high = 2 * took.max(1);
            return;
        }
        *mean = (*mean - (*mean >> shift) + (took >> shift)).max(1);
        // Up by an eighth, down by a thousandth: it comes to rest where one read of 128 is above it.
        *high = if took > *high { (*high + *high / 8 + 1).min(took) } else { *high - *high / 1024 };
    }
    /// A read takes so long and has not ended: enough to send fewer there, before the first one ends.
    pub(crate) fn late(&mut self, len: u64, age: Duration) {
        let mean = &mut self.mean[class_of(len)];
        *mean += (age.as_nanos() as u64 >> 4).saturating_sub(*mean >> 4);
    }
    /// What nearly all reads of this size stay below; None if nothing is known.
    pub(crate) fn usual(&self, len: u64) -> Option<Duration> {
        let high = self.high[class_of(len)];
        (high > 0).then(|| Duration::from_nanos(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn the_usual_latency_is_what_nearly_all_reads_stay_below() {
        let mut rng = Prng::new(1);
        let mut latency = Latency::default();
        for _ in 0..20_000 {
            // One in twenty takes ten times as long.
            let took = if rng.chance(1, 20) { 1_000_000 } else { rng.between(80_000, 120_000) };
            latency.sample(Instant(0), 0, took);
        }
        let usual = latency.usual(4096).expect("there were reads");
        assert!(usual > Duration::from_micros(500) && usual <= Duration::from_micros(1000), "{usual:?}");
        assert_eq!(latency.usual(1 << 20), None, "other sizes are other classes");
        // It follows when the drive is fast again.
        (0..5000).for_each(|_| latency.sample(Instant(0), 0, 100_000));
        assert!(latency.usual(4096).expect("known") < Duration::from_micros(200));
    }
}
