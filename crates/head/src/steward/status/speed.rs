//! How fast long work is: from samples that are taken whether somebody looks or not.

use crate::layout::{ArrayId, PoolId};
use base::{Duration, Instant, Uuid};
use std::collections::VecDeque;

/// Samples that are kept, and how far apart they are at least.
const SAMPLES_MAX: usize = 4;
const APART: Duration = Duration::from_secs(1);
/// A rate over less time says nothing.
const SPAN_MIN: Duration = Duration::from_millis(200);

/// Long work on an array whose speed is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Work {
    /// The resync of a leg, by its drive.
    Leg(Uuid),
    /// Legs in sync are made the same.
    Array(ArrayId),
    /// Space is cleared.
    Clearing(PoolId),
}

/// What was done at some moments, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Speed {
    samples: VecDeque<(Instant, u64)>,
}

impl Speed {
    /// Of work that begins now.
    pub fn begun(now: Instant) -> Self {
        Self { samples: VecDeque::from([(now, 0)]) }
    }
    /// So many bytes are done now.
    pub fn note(&mut self, now: Instant, done: u64) {
        if self.samples.back().is_some_and(|(_, before)| *before > done) {
            // It began anew.
            self.samples.clear();
        }
        if self.samples.back().is_none_or(|(at, _)| now.since(*at) >= APART) {
            self.samples.push_back((now, done));
        }
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }
    /// Bytes a second over the samples, and the seconds left for the rest of `total`.
    pub fn of(&self, now: Instant, done: u64, total: u64) -> (u64, Option<u64>) {
        let Some((at, before)) = self.samples.front() else { return (0, None) };
        let span = now.since(*at);
        if span < SPAN_MIN {
            return (0, None);
        }
        let bytes = u128::from(done.saturating_sub(*before));
        let rate = (bytes * 1_000_000_000 / span.as_nanos()) as u64;
        (rate, total.saturating_sub(done).checked_div(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(1_000_000_000 + ms * 1_000_000)
    }

    #[test]
    fn one_look_is_enough_where_samples_were_taken() {
        let mut speed = Speed::begun(at(0));
        assert_eq!(speed.of(at(100), 10, 100), (0, None), "too soon to say");
        assert_eq!(speed.of(at(1000), 10, 100), (10, Some(9)));
        for s in 1..=20 {
            speed.note(at(s * 5000), s * 5000);
        }
        // What was long ago does not count: the last samples are of 5 to 20 seconds ago.
        assert_eq!(speed.of(at(101_000), 101_000, 201_000), (1000, Some(100)));
        assert_eq!(speed.of(at(110_000), 100_000, 200_000).0, 600, "it stands still");
    }

    #[test]
    fn work_that_begins_anew_has_a_rate_of_its_own() {
        let mut speed = Speed::begun(at(0));
        speed.note(at(5000), 5_000_000);
        speed.note(at(10_000), 0);
        assert_eq!(speed.of(at(11_000), 100, 1100), (100, Some(10)));
        assert_eq!(Speed::default().of(at(0), 5, 10), (0, None));
    }
}
