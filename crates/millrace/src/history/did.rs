//! What was done between two readings of the head's counters.

use super::ring::Row;
use head::order::{Figures, TotalTimes, Worked};
use std::time::Duration;

/// Values of a step of a volume or a drive: reads, writes, bytes read, bytes written, each a second; mean times of reads and writes.
pub const VALUES: usize = 6;
/// Values of a step of the head: the same; median and 99th percentile of reads, then of writes; the stages of reads, then of writes.
pub const HEAD_VALUES: usize = VALUES + 4 + 2 * STAGES;
/// Stages of a command.
pub const STAGES: usize = head::path::stages::STAGES;

/// A reading.
#[derive(Clone, Debug)]
pub struct Moment {
    /// When by the wall clock, since 1970.
    pub wall: Duration,
    /// What the head said.
    pub figures: Figures,
}

/// The time between two readings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Between {
    /// By the wall clock.
    pub from: Duration,
    /// See `from`.
    pub to: Duration,
    /// By the clock that nobody sets.
    pub took: Duration,
}

/// Readings that are farther apart say little of each second between them.
const APART_MAX: Duration = Duration::from_millis(5500);
/// The wall clock was set if it went so much faster or slower.
const SET_MIN: Duration = Duration::from_millis(500);
const HALF: Duration = Duration::from_millis(500);

impl Between {
    /// None if nothing can be said of it: it is too long, the clock was set, or the counters are not the same ones.
    pub fn of(before: &Moment, now: &Moment) -> Option<Self> {
        let (from, to) = (before.wall, now.wall);
        let took = Duration::from_nanos(now.figures.at.0.checked_sub(before.figures.at.0)?);
        let same = before.figures.basis == now.figures.basis;
        let set = to.checked_sub(from)?.abs_diff(took) > SET_MIN;
        (same && !set && to > from && !took.is_zero() && took <= APART_MAX).then_some(Self { from, to, took })
    }
    /// The seconds whose middle lies in it.
    pub fn seconds(&self) -> std::ops::Range<u64> {
        let first = |at: Duration| {
            let at = at.saturating_sub(HALF);
            at.as_secs() + u64::from(at.subsec_nanos() > 0)
        };
        first(self.from)..first(self.to)
    }
    /// The second of its middle.
    pub fn middle(&self) -> u64 {
        (self.from + (self.to - self.from) / 2).as_secs()
    }
}

/// Something whose parts add up.
pub trait Sum<const W: usize>: Default {
    /// Adds another one's.
    fn add(&mut self, other: &Self);
    /// As a step, if it was done in so many seconds.
    fn row(&self, seconds: f64) -> Row<W>;
}

/// What a volume or a drive did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Did {
    /// Reads, writes, bytes read, bytes written.
    counts: [u64; 4],
    /// Nanoseconds of reads that were timed, and how many these were; the same of writes.
    times: [(u64, u64); 2],
}

impl Did {
    /// None if a counter went back.
    pub fn between(before: &Worked, now: &Worked) -> Option<Self> {
        let counts = |w: &Worked| {
            let c = &w.counters;
            [c.reads, c.writes, c.read_bytes, c.write_bytes]
        };
        let (mut since, earlier) = (counts(now), counts(before));
        for (now, before) in since.iter_mut().zip(earlier) {
            *now = now.checked_sub(before)?;
        }
        let times = |now: (u64, u64), before: (u64, u64)| {
            Some((now.0.checked_sub(before.0)?, now.1.checked_sub(before.1)?))
        };
        let reads = times(now.read_times, before.read_times)?;
        Some(Self { counts: since, times: [reads, times(now.write_times, before.write_times)?] })
    }
    /// What a step of so many seconds says. Who was timed is not in it: it counts as all.
    pub fn of_row(row: &Row<VALUES>, seconds: f64) -> Self {
        let counts = core::array::from_fn(|i| (f64::from(row[i]) * seconds).round() as u64);
        let times = core::array::from_fn(|i| {
            let mean = f64::from(row[4 + i]);
            if mean.is_finite() { ((mean * counts[i] as f64) as u64, counts[i]) } else { (0, 0) }
        });
        Self { counts, times }
    }
    /// Whether it read or wrote.
    pub fn is_any(&self) -> bool {
        self.counts != [0; 4]
    }
}

/// None if nothing was timed.
fn mean(ns: u64, timed: u64) -> f32 {
    if timed == 0 { f32::NAN } else { (ns as f64 / timed as f64) as f32 }
}

impl Sum<VALUES> for Did {
    fn add(&mut self, other: &Self) {
        // What was read from a file may be anything.
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine = mine.saturating_add(theirs);
        }
        for (mine, theirs) in self.times.iter_mut().zip(other.times) {
            *mine = (mine.0.saturating_add(theirs.0), mine.1.saturating_add(theirs.1));
        }
    }
    fn row(&self, seconds: f64) -> Row<VALUES> {
        let [reads, writes, read_bytes, write_bytes] = self.counts.map(|n| (n as f64 / seconds) as f32);
        let [read_mean, write_mean] = self.times.map(|(ns, timed)| mean(ns, timed));
        [reads, writes, read_bytes, write_bytes, read_mean, write_mean]
    }
}

/// What the head did: all of its volumes together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HeadDid {
    did: Did,
    /// Times of reads, and of writes.
    ways: [TotalTimes; 2],
}

impl HeadDid {
    /// What these volumes did together; None if that is not known of one of them, or a counter went back.
    pub fn between(
        before: &Figures,
        now: &Figures,
        volumes: impl Iterator<Item = Option<Did>>,
    ) -> Option<Self> {
        let mut did = Did::default();
        for volume in volumes {
            did.add(&volume?);
        }
        let ways = [times_between(&before.reads, &now.reads)?, times_between(&before.writes, &now.writes)?];
        Some(Self { did, ways })
    }
}

fn times_between(before: &TotalTimes, now: &TotalTimes) -> Option<TotalTimes> {
    let mut stages_ns = now.stages_ns;
    for (now, before) in stages_ns.iter_mut().zip(before.stages_ns) {
        *now = now.checked_sub(before)?;
    }
    Some(TotalTimes { all: now.all.since(&before.all)?, stages_ns })
}

impl Sum<HEAD_VALUES> for HeadDid {
    fn add(&mut self, other: &Self) {
        self.did.add(&other.did);
        for (mine, theirs) in self.ways.iter_mut().zip(&other.ways) {
            mine.all.merge(&theirs.all);
            for (mine, theirs) in mine.stages_ns.iter_mut().zip(theirs.stages_ns) {
                *mine += theirs;
            }
        }
    }
    fn row(&self, seconds: f64) -> Row<HEAD_VALUES> {
        let mut row = [f32::NAN; HEAD_VALUES];
        row[..VALUES].copy_from_slice(&self.did.row(seconds));
        for (i, way) in self.ways.iter().enumerate() {
            let timed = way.all.count();
            if timed == 0 {
                continue;
            }
            let ns = |d: Duration| d.as_nanos() as f32;
            row[VALUES - 2 + i] = ns(way.all.mean());
            row[VALUES + 2 * i] = ns(way.all.quantile(500));
            row[VALUES + 2 * i + 1] = ns(way.all.quantile(990));
            for (j, stage) in way.stages_ns.iter().enumerate() {
                row[VALUES + 4 + STAGES * i + j] = mean(*stage, timed);
            }
        }
        row
    }
}

/// Adds up a step that is longer than a second.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Adding<S> {
    step: u64,
    sum: S,
    seconds: f64,
}

impl<S> Adding<S> {
    /// Goes on with a step that was begun before a restart.
    pub fn resume<const W: usize>(&mut self, step: u64, did: &S, seconds: f64)
    where
        S: Sum<W>,
    {
        self.step = step;
        self.sum.add(did);
        self.seconds += seconds;
    }
    /// Adds what was done in some time to the step of its middle. The one before that, if this is another one, is complete.
    pub fn add<const W: usize>(
        &mut self,
        step_seconds: u64,
        between: &Between,
        did: &S,
    ) -> Option<(u64, Row<W>)>
    where
        S: Sum<W>,
    {
        let step = between.middle() / step_seconds;
        let complete =
            (step != self.step && self.seconds > 0.0).then(|| (self.step, self.sum.row(self.seconds)));
        if step != self.step {
            *self = Self { step, sum: S::default(), seconds: 0.0 };
        }
        self.sum.add(did);
        self.seconds += between.took.as_secs_f64();
        complete
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use base::{Coarse, Instant, Uuid};
    use head::order::Counters;

    /// So many reads of the same time.
    fn times(mut reads: u64) -> Coarse {
        let (mut all, mut some) = (Coarse::default(), Coarse::default());
        some.record(Duration::from_micros(100));
        while reads > 0 {
            if reads % 2 == 1 {
                all.merge(&some);
            }
            let same = some.clone();
            some.merge(&same);
            reads /= 2;
        }
        all
    }

    /// A reading of a head with one volume, with so much behind it.
    pub fn moment(wall: f64, at: f64, reads: u64) -> Moment {
        let all = times(reads);
        let worked = |n| Worked {
            uuid: Uuid([n; 16]),
            counters: Counters { reads, read_bytes: 4096 * reads, ..Counters::default() },
            read_times: (100_000 * reads, reads),
            write_times: (0, 0),
        };
        let figures = Figures {
            at: Instant((at * 1e9) as u64),
            fresh: true,
            basis: 1,
            reads: TotalTimes { all, stages_ns: [0, 0, 20_000 * reads, 80_000 * reads, 0] },
            writes: TotalTimes::default(),
            volumes: vec![worked(1)],
            drives: vec![worked(9)],
        };
        Moment { wall: Duration::from_secs_f64(wall), figures }
    }

    #[test]
    fn a_second_belongs_to_what_its_middle_lies_in() {
        let seconds = |from: f64, to: f64| {
            let between = Between::of(&moment(from, from, 0), &moment(to, to, 0));
            between.map(|b| (b.seconds(), b.middle()))
        };
        assert_eq!(seconds(100.01, 101.02), Some((100..101, 100)));
        assert_eq!(seconds(100.4, 101.1), Some((100..101, 100)));
        assert_eq!(seconds(100.01, 101.6), Some((100..102, 100)), "an answer that was late");
        assert_eq!(seconds(101.6, 102.01), Some((102..102, 101)), "and the next one");
        assert_eq!(seconds(100.0, 105.0), Some((100..105, 102)));
        assert_eq!(seconds(100.0, 106.0), None, "nobody looked");
        assert_eq!(seconds(100.0, 100.0), None);
    }

    #[test]
    fn a_clock_that_was_set_and_another_head_have_no_step() {
        let of = |before: Moment, now: Moment| Between::of(&before, &now).is_some();
        assert!(of(moment(100.0, 5.0, 0), moment(101.3, 6.0, 0)));
        for (wall, at) in [(102.0, 6.0), (99.0, 6.0), (4000.0, 6.0), (0.0, 6.0), (101.0, 4.0), (101.0, 5.0)] {
            assert!(!of(moment(100.0, 5.0, 0), moment(wall, at, 0)), "{wall} {at}");
        }
        let mut other = moment(101.0, 6.0, 0);
        other.figures.basis = 2;
        assert!(!of(moment(100.0, 5.0, 0), other));
    }

    #[test]
    fn rates_and_times_are_those_of_the_difference() {
        let (before, now) = (moment(100.0, 5.0, 10), moment(102.0, 7.0, 210));
        let did = Did::between(&before.figures.volumes[0], &now.figures.volumes[0]).expect("it only grew");
        assert!(did.is_any());
        let row = did.row(2.0);
        assert_eq!(row[..5], [100.0, 0.0, 409_600.0, 0.0, 100_000.0]);
        assert!(row[5].is_nan(), "nothing was written");
        let all = HeadDid::between(&before.figures, &now.figures, [Some(did)].into_iter()).expect("as well");
        let row = all.row(2.0);
        assert_eq!(row[..5], [100.0, 0.0, 409_600.0, 0.0, 100_000.0]);
        assert!((100_000.0..=125_000.0).contains(&row[6]) && row[6] == row[7], "{row:?}");
        assert_eq!(row[10..15], [0.0, 0.0, 20_000.0, 80_000.0, 0.0]);
        assert!(row[8..10].iter().chain(&row[15..]).all(|x| x.is_nan()), "{row:?}");
        let back = HeadDid::between(&now.figures, &before.figures, [Some(did)].into_iter());
        assert_eq!((Did::between(&now.figures.volumes[0], &before.figures.volumes[0]), back), (None, None));
        assert_eq!(HeadDid::between(&before.figures, &now.figures, [Some(did), None].into_iter()), None);
    }
}
