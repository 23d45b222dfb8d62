//! When a head that was put out may be let in again: one that is put out again and again for the same cause comes back at growing intervals,
//! since each time its hosts wait, and so do the leader's.

use crate::watch::Why;
use base::{Bug, Duration, Instant, planted};

/// A head that was in for this long has come back for good.
const STEADY: Duration = Duration::from_secs(60);
/// The first pause; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(2);
/// No pause is longer.
const LONGEST: Duration = Duration::from_secs(60);

/// The returns of the other head, as the head that leads has seen them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Returns {
    /// Why it was put out last, without what was measured.
    cause: Option<core::mem::Discriminant<Why>>,
    /// Since when it is in, or was.
    since: Option<Instant>,
    /// The pause before its last return.
    pause: Duration,
    not_before: Option<Instant>,
}

impl Returns {
    /// It is let in.
    pub fn is_in(&mut self, now: Instant) {
        self.since = Some(now);
        self.not_before = None;
    }
    /// It is put out.
    pub fn is_out(&mut self, now: Instant, why: Why) {
        let cause = Some(core::mem::discriminant(&why));
        let steady = self.since.is_none_or(|since| now.since(since) >= STEADY);
        // A process that has ended is followed by another one, an operator knows what he does, and paths have a rule of their own.
        let counts = matches!(why, Why::Silent | Why::Still { .. } | Why::Cut { .. });
        self.pause = if counts && !steady && self.cause == cause && !planted(Bug::ReturnsAtOnce) {
            (self.pause * 2).clamp(FIRST, LONGEST)
        } else {
            Duration::ZERO
        };
        self.cause = cause;
        self.not_before = (!self.pause.is_zero()).then(|| now + self.pause);
    }
    /// Whether it may be let in.
    pub fn may_return(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| now >= at)
    }
    /// Before this it is not let in.
    pub fn not_before(&self) -> Option<Instant> {
        self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(1_000_000_000 + ms * 1_000_000)
    }

    /// Out and in again for the same cause, as soon as it may be: the pauses, in seconds.
    fn pauses(times: usize, why: Why, in_for: u64) -> Vec<u64> {
        let (mut returns, mut now, mut pauses) = (Returns::default(), 0, vec![]);
        for _ in 0..times {
            returns.is_in(at(now));
            now += in_for;
            returns.is_out(at(now), why);
            let pause = returns.not_before().map_or(0, |t| t.since(at(now)).as_millis() as u64);
            assert!(pause == 0 || !returns.may_return(at(now + pause - 1)));
            assert!(returns.may_return(at(now + pause)));
            now += pause;
            pauses.push(pause / 1000);
        }
        pauses
    }

    #[test]
    fn the_same_cause_again_takes_longer_each_time() {
        assert_eq!(pauses(9, Why::Silent, 1500), [0, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn one_that_stayed_in_comes_back_at_once() {
        assert_eq!(pauses(3, Why::Silent, 60_000), [0, 0, 0]);
    }

    #[test]
    fn a_process_that_ends_is_not_made_to_wait() {
        assert_eq!(pauses(4, Why::Ended, 100), [0, 0, 0, 0]);
        assert_eq!(pauses(4, Why::Asked, 100), [0, 0, 0, 0]);
    }

    #[test]
    fn another_cause_counts_anew() {
        let mut returns = Returns::default();
        for why in [Why::Silent, Why::Silent, Why::Still { silent: Duration::ZERO }] {
            returns.is_in(at(0));
            returns.is_out(at(100), why);
        }
        assert!(returns.may_return(at(100)));
    }
}
