//! Paths of hosts that come and go: each change is an event, and a path that flaps is a count for each interval.
//!
//! What is told is bounded: of one path `CHANGES_TOLD` changes in an interval, of all `PATHS_TOLD` paths; the others are one
//! count. An interval in which some were only counted is followed by one twice as long, up to an hour.

use crate::report::PathId;
use base::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The first interval.
const INTERVAL_MIN: Duration = Duration::from_secs(60);
/// The longest one.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Changes of one path that are told one by one in an interval.
const CHANGES_TOLD: u32 = 4;
/// Paths of which changes are told in one interval.
const PATHS_TOLD: usize = 64;

/// A path and the number of the head that serves it: a portal that moves is another path there.
pub(crate) type PathAt = (u8, PathId);

#[derive(Default)]
struct Row {
    up: bool,
    /// Changes that were told in this interval, and those that were only counted.
    told: u32,
    more: u64,
}

/// What is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathNews {
    /// A path has its first connection.
    Came(PathAt),
    /// It has none any more.
    Left(PathAt),
    /// It came or left so often in an interval, and is up or not.
    Flaps { path: PathAt, times: u64, seconds: u64, up: bool },
    /// So many changes of other paths in an interval.
    Others { times: u64, seconds: u64 },
}

/// Who is there, and what was told of it.
#[derive(Default)]
pub(crate) struct Arrivals {
    rows: BTreeMap<PathAt, Row>,
    /// Changes of paths beyond `PATHS_TOLD`.
    others: u64,
    interval: Option<(Instant, Duration)>,
    /// Something happened after which others may be there.
    stale: bool,
}

impl Arrivals {
    /// Something happened after which others may be there.
    pub fn may_differ(&mut self) {
        self.stale = true;
    }
    /// Whether `note` is to be called.
    pub fn is_stale(&self) -> bool {
        self.stale
    }
    /// These paths have connections now. What is to be told of that, unless nobody needs to hear it (`silent`).
    pub fn note(&mut self, now: Instant, up: &BTreeSet<PathAt>, silent: bool) -> Vec<PathNews> {
        self.stale = false;
        let gone = self.rows.iter().filter(|(path, row)| row.up && !up.contains(path)).map(|(path, _)| *path);
        let came = up.iter().filter(|path| !self.rows.get(path).is_some_and(|row| row.up)).copied();
        let changes: Vec<(PathAt, bool)> = gone.map(|p| (p, false)).chain(came.map(|p| (p, true))).collect();
        let mut news = vec![];
        for (path, is_up) in changes {
            let all_told = self.rows.values().filter(|row| row.told > 0).count();
            let row = self.rows.entry(path).or_default();
            row.up = is_up;
            if silent {
                continue;
            }
            self.interval.get_or_insert((now + INTERVAL_MIN, INTERVAL_MIN));
            if row.told == 0 && all_told >= PATHS_TOLD {
                self.others += 1;
            } else if row.told >= CHANGES_TOLD {
                row.more += 1;
            } else {
                row.told += 1;
                news.push(if is_up { PathNews::Came(path) } else { PathNews::Left(path) });
            }
        }
        if self.interval.is_none() {
            self.rows.retain(|_, row| row.up);
        }
        news
    }
    /// When `on_timer` is to be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.interval.map(|(end, _)| end)
    }
    /// The interval may be over: what is to be told then.
    pub fn on_timer(&mut self, now: Instant) -> Vec<PathNews> {
        let Some((_, length)) = self.interval.filter(|(end, _)| *end <= now) else { return vec![] };
        let seconds = length.as_secs();
        let mut news = vec![];
        for (path, row) in &mut self.rows {
            if row.more > 0 {
                news.push(PathNews::Flaps { path: *path, times: row.more, seconds, up: row.up });
            }
            (row.told, row.more) = (0, 0);
        }
        if self.others > 0 {
            news.push(PathNews::Others { times: self.others, seconds });
            self.others = 0;
        }
        self.rows.retain(|_, row| row.up);
        let next = (length + length).min(INTERVAL_MAX);
        self.interval = (!news.is_empty()).then_some((now + next, next));
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{HostId, PortalId};

    fn path(host: u32, portal: u32) -> PathAt {
        (0, PathId { host: HostId(host), portal: PortalId(portal) })
    }
    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000_000)
    }

    #[test]
    fn a_path_that_comes_and_one_that_leaves_are_told_once() {
        let (mut a, both) = (Arrivals::default(), BTreeSet::from([path(1, 1), path(1, 2)]));
        a.may_differ();
        assert!(a.is_stale());
        assert_eq!(a.note(at(1), &both, false), both.iter().copied().map(PathNews::Came).collect::<Vec<_>>());
        assert!(!a.is_stale());
        assert_eq!(a.note(at(2), &both, false), []);
        assert_eq!(a.note(at(3), &BTreeSet::from([path(1, 2)]), false), [PathNews::Left(path(1, 1))]);
        assert_eq!((a.on_timer(at(60)), a.on_timer(at(61)), a.next_deadline()), (vec![], vec![], None));
        assert_eq!(a.rows.len(), 1, "who is gone is forgotten");
    }

    #[test]
    fn a_path_that_flaps_is_a_few_lines_and_then_a_count_for_each_longer_interval() {
        let (mut a, mut news) = (Arrivals::default(), vec![]);
        let (up, none) = (BTreeSet::from([path(1, 1)]), BTreeSet::new());
        for s in 0..3600 {
            news.extend(a.note(at(s), if s % 2 == 0 { &up } else { &none }, false));
            if a.next_deadline().is_some_and(|end| end <= at(s)) {
                news.extend(a.on_timer(at(s)));
            }
        }
        let flaps = |times, seconds, up| PathNews::Flaps { path: path(1, 1), times, seconds, up };
        let first = [PathNews::Came(path(1, 1)), PathNews::Left(path(1, 1))];
        assert_eq!(news[..4], [first, first].concat());
        assert_eq!(news[4], flaps(57, 60, true));
        assert_eq!(news.iter().filter(|n| matches!(n, PathNews::Flaps { .. })).count(), 5, "{news:?}");
        assert_eq!(news.len(), 5 * 5 + 4, "four changes in each interval: {news:?}");
    }

    #[test]
    fn of_many_paths_at_once_most_are_one_count() {
        let all: BTreeSet<PathAt> = (0..500).map(|host| path(host, 1)).collect();
        let mut a = Arrivals::default();
        assert_eq!(a.note(at(0), &all, false).len(), PATHS_TOLD);
        assert_eq!(a.on_timer(at(60)), [PathNews::Others { times: 436, seconds: 60 }]);
        assert_eq!(a.note(at(61), &BTreeSet::new(), false).len(), PATHS_TOLD, "a new interval");
    }

    #[test]
    fn who_was_there_before_is_no_news_and_is_missed_when_it_leaves() {
        let (mut a, up) = (Arrivals::default(), BTreeSet::from([path(1, 1)]));
        assert_eq!(a.note(at(0), &up, true), []);
        assert_eq!((a.note(at(1), &up, false), a.next_deadline()), (vec![], None));
        assert_eq!(a.note(at(2), &BTreeSet::new(), false), [PathNews::Left(path(1, 1))]);
    }
}
