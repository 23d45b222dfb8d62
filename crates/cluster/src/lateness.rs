//! How late something has been lately, at most: a head on a loaded machine waits longer before it takes the other one for dead.

use base::{Duration, Instant};

/// What was later than usual counts for this long, and for twice that at most.
const WINDOW: Duration = Duration::from_secs(5);

/// The most by which something was late in the last `WINDOW`, and a part of the one before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    since: Instant,
    most: Duration,
    before: Duration,
}

impl Lateness {
    /// It was so late now.
    pub fn note(&mut self, now: Instant, late: Duration) {
        self.turn(now);
        self.most = self.most.max(late);
    }
    /// The most by which it was late lately.
    pub fn most(&self, now: Instant) -> Duration {
        let mut seen = *self;
        seen.turn(now);
        seen.most.max(seen.before)
    }
    fn turn(&mut self, now: Instant) {
        let age = now.since(self.since);
        if age >= WINDOW {
            self.before = if age < WINDOW * 2 { self.most } else { Duration::ZERO };
            self.most = Duration::ZERO;
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }
    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_latest_counts_until_it_is_long_ago() {
        let mut late = Lateness::default();
        assert_eq!(late.most(at(0)), ms(0));
        late.note(at(20_000), ms(40));
        late.note(at(21_000), ms(200));
        late.note(at(24_000), ms(10));
        assert_eq!(late.most(at(24_999)), ms(200));
        late.note(at(26_000), ms(30));
        assert_eq!((late.most(at(26_000)), late.most(at(30_999))), (ms(200), ms(200)));
        late.note(at(31_500), ms(20));
        assert_eq!(late.most(at(31_500)), ms(30));
        assert_eq!(late.most(at(90_000)), ms(0));
    }
}
