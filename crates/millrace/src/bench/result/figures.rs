//! What was measured, and the arithmetic on it: medians, knees, bends, starved paths.

use super::report::Figures;
use crate::bench::watch::Spent;
use crate::words::load::wrong_inside;
use base::Histogram;
use engine::inner::Tally;
use serde::{Deserialize, Serialize};

/// One path's part of a run: a connection, a drive, an array.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Path {
    /// Its name.
    pub name: String,
    /// What it did.
    pub figures: Figures,
}

/// One run. Keys may be added.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Length of the measurement.
    pub seconds: f64,
    /// Reads.
    pub reads: Figures,
    /// Writes.
    pub writes: Figures,
    /// Both.
    pub total: Figures,
    /// Every path apart: a sum hides a starved one.
    pub paths: Vec<Path>,
    /// Commands under way on each connection, where the target's queues hold fewer than were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u16>,
    /// CPU time of the target's threads, nanoseconds for each operation.
    pub target_ns: Option<f64>,
    /// CPU time of the client's threads, nanoseconds for each operation.
    pub client_ns: Option<f64>,
    /// Cores that the target's threads kept busy.
    pub target_busy: Option<f64>,
    /// Cores that the client's threads kept busy.
    pub client_busy: Option<f64>,
    /// Operations that failed or found something wrong.
    pub errors: u64,
    /// Volume blocks (from inside: of 512 bytes) found to hold what was written.
    pub verified: u64,
    /// What went wrong first, in words.
    pub trouble: Option<String>,
}

impl Measured {
    /// What was counted inside.
    pub fn of_tally(tally: &Tally, names: &[String], spent: Spent) -> Self {
        let figures = |f: &(Histogram, u64)| Figures::of(&load::Figures::of(&f.0, f.1, tally.time));
        let mut total = tally.reads.clone();
        total.0.merge(&tally.writes.0);
        total.1 += tally.writes.1;
        let paths = tally.paths.iter().zip(names).map(|(f, n)| Path { name: n.clone(), figures: figures(f) });
        let failed = (tally.errors > 0).then(|| "an operation failed".to_string());
        Self {
            seconds: tally.time.as_secs_f64(),
            reads: figures(&tally.reads),
            writes: figures(&tally.writes),
            total: figures(&total),
            paths: paths.collect(),
            errors: tally.errors + tally.mismatches,
            verified: tally.verified,
            trouble: tally.example.as_ref().map(wrong_inside).or(failed),
            ..Self::default()
        }
        .with(spent)
    }
    /// What a load over the network reported.
    pub fn of_report(report: &load::Report, spent: Spent) -> Self {
        let printed = super::report::Report::of(report);
        let path = |c: &super::report::Connection| Path {
            name: format!("{}.{}", c.session, c.connection),
            figures: c.figures.clone(),
        };
        Self {
            seconds: printed.seconds,
            depth: (printed.depth < printed.depth_asked).then_some(printed.depth),
            trouble: printed.failure(),
            paths: printed.connections.iter().map(path).collect(),
            reads: printed.reads,
            writes: printed.writes,
            total: printed.total,
            errors: printed.errors,
            verified: printed.verified_blocks,
            ..Self::default()
        }
        .with(spent)
    }
    fn with(self, spent: Spent) -> Self {
        let Spent { target_ns, client_ns, target_busy, client_busy } = spent;
        Self { target_ns, client_ns, target_busy, client_busy, ..self }
    }
    /// Paths that had less than half of the median path's operations.
    pub fn starved(&self) -> Vec<&Path> {
        let rates: Vec<f64> = self.paths.iter().map(|p| p.figures.iops).collect();
        let Some(usual) = median(&rates) else { return vec![] };
        self.paths.iter().filter(|p| p.figures.iops < STARVED * usual).collect()
    }
}

/// A path with less than this part of the median is called starved.
const STARVED: f64 = 0.5;
/// The knee is the smallest load with this part of the best rate.
pub const KNEE: f64 = 0.95;
/// Growth bends where a step has less than this part of what it would have if it were linear.
pub const LINEAR: f64 = 0.9;

/// The middle value; the mean of the two middle ones of an even number.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match (n, n % 2) {
        (0, _) => None,
        (_, 1) => Some(sorted[n / 2]),
        _ => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

/// The knee of a curve of load and rate: the index of the least load that reaches nearly the best rate. Beyond it more
/// depth buys waiting, and no work.
pub fn knee(points: &[(u32, f64)]) -> Option<usize> {
    let best = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let enough = points.iter().enumerate().filter(|(_, p)| best > 0.0 && p.1 >= KNEE * best);
    enough.min_by_key(|(_, p)| p.0).map(|(i, _)| i)
}

/// Where the rate of 1..n of something stops growing with n: the index of the first that falls short of its share.
pub fn bend(rates: &[f64]) -> Option<usize> {
    let one = *rates.first()?;
    rates.iter().enumerate().position(|(i, rate)| *rate < LINEAR * one * (i + 1) as f64)
}

/// The part of an operation's time that it waited in some queue: what is beyond the time that it takes alone.
pub fn queued(deep: &Measured, alone: &Measured) -> Option<f64> {
    let (deep, alone) = (deep.total.mean_us, alone.total.mean_us);
    (deep > 0.0 && alone > 0.0).then(|| (1.0 - alone / deep).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn the_knee_is_the_least_load_near_the_best() {
        let curve = [(1, 10.0), (4, 40.0), (16, 96.0), (64, 100.0), (256, 99.0)];
        assert_eq!(knee(&curve), Some(2));
        // A collapse beyond it does not move it, nor does the order.
        let collapsed = [(256, 5.0), (16, 97.0), (64, 100.0), (1, 9.0)];
        assert_eq!(knee(&collapsed), Some(1));
        assert_eq!(knee(&[(1, 7.0)]), Some(0));
        assert_eq!(knee(&[(1, 0.0)]), None);
        assert_eq!(knee(&[]), None);
    }

    #[test]
    fn growth_bends_where_a_share_is_missing() {
        assert_eq!(bend(&[100.0, 199.0, 298.0]), None);
        assert_eq!(bend(&[100.0, 195.0, 250.0, 251.0]), Some(2));
        assert_eq!(bend(&[]), None);
    }

    #[test]
    fn a_starved_path_is_named() {
        let path = |name: &str, iops: f64| Path {
            name: name.into(),
            figures: Figures { iops, ..Figures::default() },
        };
        let run = Measured {
            paths: vec![path("a", 100.0), path("b", 4.0), path("c", 90.0)],
            ..Measured::default()
        };
        assert_eq!(run.starved().iter().map(|p| &p.name[..]).collect::<Vec<_>>(), ["b"]);
        assert!(Measured::default().starved().is_empty());
    }

    #[test]
    fn the_time_in_queues_is_what_an_operation_alone_does_not_take() {
        let run = |mean_us: f64| Measured {
            total: Figures { mean_us, ..Figures::default() },
            ..Measured::default()
        };
        assert_eq!(queued(&run(100.0), &run(25.0)), Some(0.75));
        assert_eq!(queued(&run(20.0), &run(25.0)), Some(0.0));
        assert_eq!(queued(&run(0.0), &run(25.0)), None);
    }
}
