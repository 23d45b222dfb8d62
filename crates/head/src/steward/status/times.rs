//! Where the time of commands went: of what shards have timed, the last one to two minutes, and sums since the start.

use crate::order::{self, Stages, TotalTimes};
use crate::path::stages::{STAGES, Stage};
use crate::report::ShardReport;
use crate::steward::sessions::arrivals::PathAt;
use api::{BOUNDS_NS, BUCKETS};
use base::{Coarse, DriveId, Duration, Instant, VolumeId};
use std::collections::BTreeMap;

/// How long a window is: figures are of the one that fills and the one before it.
const WINDOW: Duration = Duration::from_secs(60);

/// What a sum is kept of: all of it, and its stages.
const PARTS: usize = STAGES + 1;

/// Of volumes or drives by number; of each its reads and its writes (`true`).
type By<K, T> = BTreeMap<(K, bool), T>;

/// What is kept of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum PathTime {
    /// Its reads.
    Read,
    /// Its writes.
    Write,
    /// The wait of both for caps and for a credit of the array.
    Queue,
}

#[derive(Debug, Default)]
struct Window {
    volumes: By<VolumeId, [Coarse; PARTS]>,
    paths: BTreeMap<(PathAt, PathTime), Coarse>,
    drives: By<DriveId, Coarse>,
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ns: u64,
    timed: u64,
    /// By `BOUNDS_NS`.
    buckets: [u64; BUCKETS],
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// When the window began that fills.
    since: Instant,
    fills: Window,
    full: Window,
    volumes: By<VolumeId, [Sum; PARTS]>,
    paths: BTreeMap<(PathAt, PathTime), Sum>,
    drives: By<DriveId, Sum>,
    /// Of the reads and the writes of all volumes, also of those that are gone.
    total: [TotalTimes; 2],
}

impl Sum {
    fn count(&mut self, ns: u64) {
        self.ns = self.ns.saturating_add(ns);
        self.timed += 1;
        self.buckets[BOUNDS_NS.partition_point(|bound| *bound < ns)] += 1;
    }
    fn add(&mut self, other: &Sum) {
        self.ns = self.ns.saturating_add(other.ns);
        self.timed += other.timed;
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
    }
}

fn spread<'a>(of: impl Iterator<Item = &'a Coarse>, sum: &Sum) -> order::Times {
    let mut both = Coarse::default();
    of.for_each(|h| both.merge(h));
    let ns = |d: Duration| d.as_nanos() as u64;
    order::Times {
        p50_ns: ns(both.quantile(500)),
        p99_ns: ns(both.quantile(990)),
        p999_ns: ns(both.quantile(999)),
        max_ns: ns(both.max()),
        mean_ns: ns(both.mean()),
        timed: both.count(),
        total_ns: sum.ns,
        total_timed: sum.timed,
        buckets: sum.buckets,
    }
}

impl Times {
    /// What a shard of this head has told.
    pub fn add(&mut self, now: Instant, head: u8, report: &ShardReport) {
        self.turn(now);
        for timed in &report.timed {
            let key = (timed.volume, timed.write);
            let parts = self.fills.volumes.entry(key).or_default();
            let sums = self.volumes.entry(key).or_default();
            let all: u64 = timed.ns.iter().sum();
            let total = &mut self.total[usize::from(timed.write)];
            total.all.record(Duration::from_nanos(all));
            for (sum, ns) in total.stages_ns.iter_mut().zip(&timed.ns) {
                *sum = sum.saturating_add(*ns);
            }
            for (i, ns) in [all].iter().chain(&timed.ns).enumerate() {
                parts[i].record(Duration::from_nanos(*ns));
                sums[i].count(*ns);
            }
            let Some(path) = timed.path else { continue };
            let what = if timed.write { PathTime::Write } else { PathTime::Read };
            for (what, ns) in [(what, all), (PathTime::Queue, timed.ns[Stage::Volume as usize])] {
                let key = ((head, path), what);
                self.fills.paths.entry(key).or_default().record(Duration::from_nanos(ns));
                self.paths.entry(key).or_default().count(ns);
            }
        }
        for op in &report.timed_ops {
            let key = (op.drive, op.write);
            self.fills.drives.entry(key).or_default().record(Duration::from_nanos(op.ns));
            self.drives.entry(key).or_default().count(op.ns);
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
    /// Forgets paths that are no more: of a host or a portal that was removed, of a head that is gone.
    pub fn keep_paths(&mut self, stays: impl Fn(PathAt) -> bool) {
        self.fills.paths.retain(|(path, _), _| stays(*path));
        self.full.paths.retain(|(path, _), _| stays(*path));
        self.paths.retain(|(path, _), _| stays(*path));
    }
    /// Of a volume's reads, or of its writes; None if none was ever timed.
    pub fn volume(&self, volume: VolumeId, write: bool) -> Option<Stages> {
        let key = (volume, write);
        let sums = self.volumes.get(&key)?;
        let windows = [&self.fills, &self.full].into_iter().filter_map(|w| w.volumes.get(&key));
        let of = |i: usize| spread(windows.clone().map(|parts| &parts[i]), &sums[i]);
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
    /// Of all reads, or of all writes.
    pub fn total(&self, write: bool) -> &TotalTimes {
        &self.total[usize::from(write)]
    }
    /// Of a volume's reads, or of its writes: nanoseconds, and how many were timed.
    pub fn volume_sum(&self, volume: VolumeId, write: bool) -> (u64, u64) {
        self.volumes.get(&(volume, write)).map_or((0, 0), |sums| (sums[0].ns, sums[0].timed))
    }
    /// The same of a drive under all the numbers that it has had.
    pub fn drive_sum<'a>(&self, ids: impl Iterator<Item = &'a DriveId>, write: bool) -> (u64, u64) {
        let sums = ids.filter_map(|id| self.drives.get(&(*id, write)));
        sums.fold((0, 0), |(ns, timed), sum| (ns + sum.ns, timed + sum.timed))
    }
    /// Of a path; None if none of it was ever timed.
    pub fn path(&self, path: PathAt, what: PathTime) -> Option<order::Times> {
        let key = (path, what);
        let sum = self.paths.get(&key)?;
        let windows = [&self.fills, &self.full].into_iter().filter_map(|w| w.paths.get(&key));
        Some(spread(windows, sum))
    }
    /// Of the reads, or the writes, of a drive under all the numbers that it has had; None if none was ever timed.
    pub fn drive<'a>(
        &self,
        ids: impl Iterator<Item = &'a DriveId> + Clone,
        write: bool,
    ) -> Option<order::Times> {
        let keys = ids.map(|id| (*id, write));
        let (mut total, mut any) = (Sum::default(), false);
        for sum in keys.clone().filter_map(|key| self.drives.get(&key)) {
            total.add(sum);
            any = true;
        }
        let windows = [&self.fills, &self.full].into_iter();
        let lately = windows.flat_map(|w| keys.clone().filter_map(|key| w.drives.get(&key)));
        any.then(|| spread(lately, &total))
    }
}

#[cfg(test)]
mod tests {
    use super::{PathTime, Times};
    use crate::path::stages::{Timed, TimedOp};
    use crate::report::{PathId, ShardReport};
    use api::BOUNDS_NS;
    use base::{DriveId, Duration, HostId, Instant, PortalId, VolumeId};

    fn at(seconds: u64) -> Instant {
        Instant(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn figures_are_of_the_last_two_minutes_and_sums_of_all() {
        let (volume, drive, other) = (VolumeId(3), DriveId(1), DriveId(2));
        let report = |us: u64| ShardReport {
            timed: vec![Timed { volume, path: None, write: true, ns: [0, us * 1000, 0, us * 3000, 0] }],
            timed_ops: vec![TimedOp { drive, write: false, ns: us * 1000 }],
            ..ShardReport::default()
        };
        let mut times = Times::default();
        assert_eq!((times.volume(volume, true), times.drive([drive].iter(), false)), (None, None));
        times.add(at(1), 0, &report(100));
        times.add(at(30), 0, &report(300));
        let found = times.volume(volume, true).expect("two were timed");
        assert_eq!((found.all.timed, found.all.mean_ns, found.all.max_ns), (2, 800_000, 1_200_000));
        assert!((400_000..=500_000).contains(&found.all.p50_ns), "{found:?}");
        let parts = found.parts().map(|(_, p)| (p.mean_ns, p.total_ns));
        assert_eq!(parts, [(0, 0), (200_000, 400_000), (0, 0), (600_000, 1_200_000), (0, 0)]);
        assert_eq!(times.volume(volume, false), None, "nothing was read");
        // The first window is full, and still counts.
        times.add(at(61), 0, &report(500));
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
        assert_eq!(times.volume_sum(volume, true), (3_600_000, 3));
        assert_eq!(times.drive_sum([drive, other].iter(), false), (900_000, 3));
        times.forget(volume);
        assert_eq!((times.volume(volume, true), times.volume_sum(volume, true)), (None, (0, 0)));
        let total = times.total(true);
        assert_eq!((total.all.count(), total.stages_ns), (3, [0, 900_000, 0, 2_700_000, 0]), "they go on");
        assert_eq!(times.total(false).all.count(), 0);
    }

    #[test]
    fn a_path_has_times_of_its_own_at_each_head_and_buckets_that_add_up() {
        let path = PathId { host: HostId(1), portal: PortalId(4) };
        let timed = |write, us: u64| Timed {
            volume: VolumeId(3),
            path: Some(path),
            write,
            ns: [0, us * 250, 0, us * 750, 0],
        };
        let report = |timed| ShardReport { timed, ..ShardReport::default() };
        let mut times = Times::default();
        times.add(at(1), 0, &report(vec![timed(false, 100), timed(false, 101), timed(true, 10_000_000)]));
        times.add(at(1), 1, &report(vec![timed(false, 1)]));
        let of = |times: &Times, head, what| times.path((head, path), what).expect("some were timed");
        let reads = of(&times, 0, PathTime::Read);
        assert_eq!((reads.total_timed, reads.total_ns), (2, 201_000));
        let at_bound = BOUNDS_NS.iter().position(|b| *b == 100_000).expect("a bound");
        assert_eq!((reads.buckets[at_bound], reads.buckets[at_bound + 1]), (1, 1), "a bound is within");
        assert_eq!(of(&times, 0, PathTime::Write).buckets[BOUNDS_NS.len()], 1, "longer than all bounds");
        let queue = of(&times, 0, PathTime::Queue);
        assert_eq!((queue.total_timed, queue.total_ns), (3, 25_250 + 25_000 + 2_500_000_000));
        assert_eq!(of(&times, 1, PathTime::Read).total_timed, 1);
        assert!(BOUNDS_NS.is_sorted());
        times.keep_paths(|(head, _)| head == 0);
        assert_eq!((times.path((1, path), PathTime::Read), of(&times, 0, PathTime::Read)), (None, reads));
    }
}
