//! Where the time of commands went: of what shards have timed, the last one to two minutes, and sums since the start.

use crate::order::{self, Stages};
use crate::path::stages::{STAGES, Stage};
use crate::report::ShardReport;
use base::{Coarse, DriveId, Duration, Instant, VolumeId};
use std::collections::BTreeMap;

/// How long a window is: figures are of the one that fills and the one before it.
const WINDOW: Duration = Duration::from_secs(60);

/// What a sum is kept of: all of it, and its stages.
const PARTS: usize = STAGES + 1;

/// Of volumes or drives by number; of each its reads and its writes (`true`).
type By<K, T> = BTreeMap<(K, bool), T>;

#[derive(Debug, Default)]
struct Window {
    volumes: By<VolumeId, [Coarse; PARTS]>,
    drives: By<DriveId, Coarse>,
}

/// Nanoseconds, and of how many.
type Sum = (u64, u64);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// When the window began that fills.
    since: Instant,
    fills: Window,
    full: Window,
    volumes: By<VolumeId, [Sum; PARTS]>,
    drives: By<DriveId, Sum>,
}

fn count(sum: &mut Sum, ns: u64) {
    (sum.0, sum.1) = (sum.0.saturating_add(ns), sum.1 + 1);
}

fn spread<'a>(of: impl Iterator<Item = &'a Coarse>, sum: Option<&Sum>) -> order::Times {
    let mut both = Coarse::default();
    of.for_each(|h| both.merge(h));
    let ns = |d: Duration| d.as_nanos() as u64;
    let (total_ns, total_timed) = sum.copied().unwrap_or_default();
    order::Times {
        p50_ns: ns(both.quantile(500)),
        p99_ns: ns(both.quantile(990)),
        p999_ns: ns(both.quantile(999)),
        max_ns: ns(both.max()),
        mean_ns: ns(both.mean()),
        timed: both.count(),
        total_ns,
        total_timed,
    }
}

impl Times {
    /// What a shard has told.
    pub fn add(&mut self, now: Instant, report: &ShardReport) {
        self.turn(now);
        for timed in &report.timed {
            let key = (timed.volume, timed.write);
            let parts = self.fills.volumes.entry(key).or_default();
            let sums = self.volumes.entry(key).or_default();
            let all = [timed.ns.iter().sum()];
            for (i, ns) in all.iter().chain(&timed.ns).enumerate() {
                parts[i].record(Duration::from_nanos(*ns));
                count(&mut sums[i], *ns);
            }
        }
        for op in &report.timed_ops {
            let key = (op.drive, op.write);
            self.fills.drives.entry(key).or_default().record(Duration::from_nanos(op.ns));
            count(self.drives.entry(key).or_default(), op.ns);
        }
    }
    /// Begins another window when it is time.
    pub fn turn(&mut self, now: Instant) {
        let age = now.since(self.since);
        if age >= WINDOW {
            self.full = core::mem::take(&mut self.fills);
            self.since = now;
        }
        if age >= 2 * WINDOW {
            self.full = Window::default();
        }
    }
    /// Forgets a volume that is gone: its number may be another's next.
    pub fn forget(&mut self, volume: VolumeId) {
        for write in [false, true] {
            self.fills.volumes.remove(&(volume, write));
            self.full.volumes.remove(&(volume, write));
            self.volumes.remove(&(volume, write));
        }
    }
    /// Of a volume's reads, or of its writes; None if none was ever timed.
    pub fn volume(&self, volume: VolumeId, write: bool) -> Option<Stages> {
        let key = (volume, write);
        let sums = self.volumes.get(&key)?;
        let windows = [&self.fills, &self.full].into_iter().filter_map(|w| w.volumes.get(&key));
        let of = |i: usize| spread(windows.clone().map(|parts| &parts[i]), Some(&sums[i]));
        let part = |stage: Stage| of(stage as usize + 1);
        Some(Stages {
            all: of(0),
            admitted: part(Stage::Admitted),
            volume: part(Stage::Volume),
            array: part(Stage::Array),
            drive: part(Stage::Drive),
            replied: part(Stage::Replied),
        })
    }
    /// Of the reads, or the writes, of a drive under all the numbers that it has had; None if none was ever timed.
    pub fn drive<'a>(
        &self,
        ids: impl Iterator<Item = &'a DriveId> + Clone,
        write: bool,
    ) -> Option<order::Times> {
        let keys = ids.map(|id| (*id, write));
        let (mut total, mut any) = ((0, 0), false);
        for (ns, timed) in keys.clone().filter_map(|key| self.drives.get(&key)) {
            (total.0, total.1, any) = (total.0 + ns, total.1 + timed, true);
        }
        let windows = [&self.fills, &self.full].into_iter();
        let lately = windows.flat_map(|w| keys.clone().filter_map(|key| w.drives.get(&key)));
        any.then(|| spread(lately, Some(&total)))
    }
}

#[cfg(test)]
mod tests {
    use super::Times;
    use crate::path::stages::{Timed, TimedOp};
    use crate::report::ShardReport;
    use base::{DriveId, Duration, Instant, VolumeId};

    fn at(seconds: u64) -> Instant {
        Instant(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn figures_are_of_the_last_two_minutes_and_sums_of_all() {
        let (volume, drive, other) = (VolumeId(3), DriveId(1), DriveId(2));
        let report = |us: u64| ShardReport {
            timed: vec![Timed { volume, write: true, ns: [0, us * 1000, 0, us * 3000, 0] }],
            timed_ops: vec![TimedOp { drive, write: false, ns: us * 1000 }],
            ..ShardReport::default()
        };
        let mut times = Times::default();
        assert_eq!((times.volume(volume, true), times.drive([drive].iter(), false)), (None, None));
        times.add(at(1), &report(100));
        times.add(at(30), &report(300));
        let found = times.volume(volume, true).expect("two were timed");
        assert_eq!((found.all.timed, found.all.mean_ns, found.all.max_ns), (2, 800_000, 1_200_000));
        assert!((400_000..=500_000).contains(&found.all.p50_ns), "{found:?}");
        let parts = found.parts().map(|(_, p)| (p.mean_ns, p.total_ns));
        assert_eq!(parts, [(0, 0), (200_000, 400_000), (0, 0), (600_000, 1_200_000), (0, 0)]);
        assert_eq!(times.volume(volume, false), None, "nothing was read");
        // The first window is full, and still counts.
        times.add(at(61), &report(500));
        assert_eq!(times.volume(volume, true).expect("timed").all.timed, 3);
        let read = times.drive([drive, other].iter(), false).expect("timed");
        assert_eq!((read.timed, read.mean_ns, read.total_timed), (3, 300_000, 3));
        // It counts no more when the second one is.
        times.turn(at(122));
        let found = times.volume(volume, true).expect("timed");
        assert_eq!((found.all.timed, found.all.total_timed, found.all.total_ns), (1, 3, 3_600_000));
        // Nothing for long: no figures, and the sums stay.
        times.turn(at(500));
        let found = times.volume(volume, true).expect("timed");
        assert_eq!((found.all.timed, found.all.p999_ns, found.all.total_timed), (0, 0, 3));
        times.forget(volume);
        assert_eq!(times.volume(volume, true), None);
    }
}
