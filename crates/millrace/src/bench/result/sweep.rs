//! What `millrace bench sweep` measured, and how it is shown.

use super::figures::{KNEE, Measured, knee, queued};
use super::report::{LARGE, bar, micros};
use crate::screen::{Cell, Look, Table, Terminal};
use base::size::{print, print_count};
use serde::{Deserialize, Serialize};

/// One measurement.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    /// Bytes of one operation.
    pub block_bytes: u32,
    /// Connections.
    pub jobs: u16,
    /// Operations under way on each.
    pub depth: u16,
    /// What was measured.
    pub run: Measured,
}

/// All of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sweep {
    /// What was loaded.
    pub target: String,
    /// `randread` and so on.
    pub rw: String,
    /// Every point, by block size, jobs and depth.
    pub points: Vec<Point>,
}

impl Sweep {
    /// The block sizes, in order.
    pub fn blocks(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.points.iter().map(|p| p.block_bytes).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
    /// The points of one block size.
    pub fn of(&self, block_bytes: u32) -> Vec<&Point> {
        self.points.iter().filter(|p| p.block_bytes == block_bytes).collect()
    }
    /// The knee among the points of one block size.
    pub fn knee(&self, block_bytes: u32) -> Option<&Point> {
        let points = self.of(block_bytes);
        let curve: Vec<(u32, f64)> =
            points.iter().map(|p| (u32::from(p.jobs) * u32::from(p.depth), p.run.total.iops)).collect();
        knee(&curve).map(|i| points[i])
    }
    /// A rate in words.
    pub fn rate_text(point: &Point) -> String {
        if point.block_bytes >= LARGE {
            format!("{:.0} MB/s", point.run.total.mb_per_s)
        } else {
            print_count(point.run.total.iops as u64)
        }
    }
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![];
        if let Some(depth) = self.points.iter().filter_map(|p| p.run.depth).min() {
            notes.push(format!("Depths above {depth} are {depth}: the target's queues hold no more."));
        }
        for block in self.blocks() {
            let points = self.of(block);
            let Some(at) = self.knee(block) else { continue };
            let size = print(block.into());
            let best = points.iter().map(|p| p.run.total.iops).fold(0.0, f64::max);
            notes.push(format!(
                "{size}: the knee is at {} × {}: {:.0} % of the best rate, p99 {}. What is beyond waits.",
                at.jobs,
                at.depth,
                at.run.total.iops / best * 100.0,
                micros(at.run.total.p99_us)
            ));
            let most = points.iter().max_by_key(|p| u32::from(p.jobs) * u32::from(p.depth));
            let least = points.iter().min_by_key(|p| u32::from(p.jobs) * u32::from(p.depth));
            if let (Some(most), Some(least)) = (most, least) {
                if let Some(part) = queued(&most.run, &least.run).filter(|p| *p > 0.5) {
                    notes.push(format!(
                        "{size}: at {} × {} an operation spends {:.0} % of its time in queues.",
                        most.jobs,
                        most.depth,
                        part * 100.0
                    ));
                }
                let rate = most.run.total.iops / best;
                if rate < KNEE {
                    notes.push(format!(
                        "{size}: at {} × {} only {:.0} % of the best rate is left: overload costs work.",
                        most.jobs,
                        most.depth,
                        rate * 100.0
                    ));
                }
            }
            for point in points {
                if let Some(worst) = point.run.starved().first() {
                    notes.push(format!(
                        "{size}, {} × {}: path {} is starved, with {} IOPS of {}.",
                        point.jobs,
                        point.depth,
                        worst.name,
                        print_count(worst.figures.iops as u64),
                        print_count(point.run.total.iops as u64)
                    ));
                }
            }
        }
        notes
    }
    /// The result for people: a map of rates, darker where there is more.
    pub fn screen(&self, terminal: Terminal) -> String {
        let mut out = format!("{}\n", terminal.text(Look::Bold, &format!("{} on {}", self.rw, self.target)));
        for block in self.blocks() {
            let points = self.of(block);
            let best = points.iter().map(|p| p.run.total.iops).fold(0.0, f64::max).max(1e-9);
            let at = self.knee(block);
            let mut table = Table::new(&[
                ">JOBS", ">DEPTH", ">RATE", "", ">OF BEST", ">P50", ">P99", ">P99.9", ">CPU/OP", "",
            ]);
            for point in &points {
                let t = &point.run.total;
                let knee = at.is_some_and(|k| (k.jobs, k.depth) == (point.jobs, point.depth));
                table.row([
                    point.jobs.to_string().into(),
                    point.depth.to_string().into(),
                    Self::rate_text(point).into(),
                    Cell::new(Look::Good, bar(t.iops / best, 16)),
                    format!("{:.0} %", t.iops / best * 100.0).into(),
                    micros(t.p50_us).into(),
                    micros(t.p99_us).into(),
                    micros(t.p999_us).into(),
                    point.run.target_ns.map_or("–".into(), |n| format!("{n:.0} ns")).into(),
                    Cell::new(Look::Warn, if knee { "◀ knee" } else { "" }),
                ]);
            }
            out.push_str(&format!(
                "\n{}\n",
                terminal.text(Look::Bold, &format!("blocks of {}", print(block.into())))
            ));
            out.push_str(&table.print(terminal, 0));
        }
        out
    }
}
