//! What `millrace bench drives` measured, and how it is shown.

use super::figures::{LINEAR, Measured, bend};
use super::report::{Figures, LARGE, bar, micros};
use crate::screen::{Cell, Look, Table, Terminal};
use base::size::{print, print_count};
use serde::{Deserialize, Serialize};

/// What fio said of one drive.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Fio {
    /// Its version.
    pub version: String,
    /// The command line.
    pub command: String,
    /// Reads and writes together; latencies are fio's completion latencies of the direction with more operations.
    pub total: Figures,
}

/// So many drives together.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Together {
    /// How many, from the first on.
    pub drives: usize,
    /// What they did.
    pub run: Measured,
}

/// All of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Drives {
    /// Every drive, in order.
    pub drives: Vec<String>,
    /// `randread` and so on.
    pub rw: String,
    /// Bytes of one operation.
    pub block_bytes: u32,
    /// Operations under way on each drive.
    pub depth: u16,
    /// Threads that carried the load.
    pub shards: u16,
    /// Each drive alone, in order.
    pub alone: Vec<Measured>,
    /// 1, 2, … of them together.
    pub together: Vec<Together>,
    /// The part of all cores' time that was used while all drives worked together, 0 to 1, by everybody on the machine.
    #[serde(default)]
    pub cores_busy: Option<f64>,
    /// The same load on each drive alone by the installed fio, where the kernel has the drive.
    #[serde(default)]
    pub fio: Vec<Option<Fio>>,
}

impl Drives {
    /// What was measured, in words.
    pub fn subject(&self) -> String {
        let n = crate::screen::count(self.drives.len(), "drive");
        format!("{} {}, {} under way on each of {n}", self.rw, print(self.block_bytes.into()), self.depth)
    }
    /// The rate by which they are compared.
    pub fn rate(&self, m: &Measured) -> f64 {
        if self.block_bytes >= LARGE { m.total.mb_per_s } else { m.total.iops }
    }
    /// The rate in words.
    pub fn rate_text(&self, m: &Measured) -> String {
        if self.block_bytes >= LARGE {
            format!("{:.0} MB/s", m.total.mb_per_s)
        } else {
            format!("{} IOPS", print_count(m.total.iops as u64))
        }
    }
    /// What the first `drives` would do together if they added up: the sum of what each does alone, or so many times
    /// the first.
    pub fn sum(&self, drives: usize) -> f64 {
        let one = self.together.first().map_or(0.0, |t| self.rate(&t.run));
        match self.alone.get(..drives) {
            Some(alone) => alone.iter().map(|m| self.rate(m)).sum(),
            None => one * drives as f64,
        }
    }
    /// Shares of the sum that they reach together.
    pub fn shares(&self) -> Vec<f64> {
        self.together.iter().map(|t| self.rate(&t.run) / self.sum(t.drives).max(1e-9)).collect()
    }
    /// The number of drives from which on they do not add up.
    pub fn bends_at(&self) -> Option<usize> {
        // As if each step were one more of the same.
        let steps: Vec<f64> =
            self.shares().iter().enumerate().map(|(i, share)| share * (i + 1) as f64).collect();
        bend(&steps).map(|i| self.together[i].drives)
    }
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![];
        match self.bends_at() {
            Some(n) => {
                let busy = self.together.iter().find(|t| t.drives == n).and_then(|t| t.run.target_busy);
                let why = match busy {
                    Some(b) if b > 0.95 * f64::from(self.shards) => {
                        "the cores of the shards were all busy: --shards gives more".to_string()
                    }
                    // Where shards wait for their turn on a core, they are not busy and the core is.
                    _ if self.cores_busy.is_some_and(|part| part > 0.95) => {
                        "all cores of this machine were busy, with this and other programs".to_string()
                    }
                    _ => "the cores were not the limit: look at what they share, a PCIe link, a controller or one disk below"
                        .into(),
                };
                notes.push(format!(
                    "From {n} drives on less than {:.0} % of their sum was reached; {why}.",
                    LINEAR * 100.0
                ));
            }
            None if self.together.len() > 1 => {
                notes.push(format!("{} drives add up.", self.drives.len()));
            }
            None => {}
        }
        let rates: Vec<f64> = self.alone.iter().map(|m| self.rate(m)).collect();
        let best = rates.iter().copied().fold(0.0, f64::max);
        for (drive, rate) in self.drives.iter().zip(&rates).filter(|(_, r)| **r < 0.8 * best) {
            notes.push(format!("{drive} has {:.0} % of the fastest drive's rate.", rate / best * 100.0));
        }
        notes
    }
    /// The result for people.
    pub fn screen(&self, terminal: Terminal) -> String {
        let mut out = format!("{}\n\n", terminal.text(Look::Bold, &self.subject()));
        let best = self.together.iter().map(|t| self.rate(&t.run)).fold(0.0, f64::max).max(1e-9);
        let mut table =
            Table::new(&[">DRIVES", ">RATE", "", ">OF SUM", ">CPU/OP", ">P50", ">P99", ">SLOWEST PATH"]);
        for (t, share) in self.together.iter().zip(self.shares()) {
            let slowest = t.run.paths.iter().map(|p| p.figures.iops).fold(f64::INFINITY, f64::min);
            let look = if share < LINEAR { Look::Warn } else { Look::Good };
            table.row([
                t.drives.to_string().into(),
                self.rate_text(&t.run).into(),
                Cell::new(look, bar(self.rate(&t.run) / best, 24)),
                format!("{:.0} %", share * 100.0).into(),
                t.run.target_ns.map_or("–".into(), |n| format!("{n:.0} ns")).into(),
                micros(t.run.total.p50_us).into(),
                micros(t.run.total.p99_us).into(),
                if slowest.is_finite() { print_count(slowest as u64) } else { "–".into() }.into(),
            ]);
        }
        out.push_str(&table.print(terminal, 0));
        if !self.alone.is_empty() {
            let mut each =
                Table::new(&["ALONE", ">RATE", "", ">P50", ">P99", ">P99.9", ">FIO", ">P50", ">P99"]);
            let best = self.alone.iter().map(|m| self.rate(m)).fold(0.0, f64::max).max(1e-9);
            for (i, (drive, m)) in self.drives.iter().zip(&self.alone).enumerate() {
                let beside = self
                    .fio
                    .get(i)
                    .and_then(Option::as_ref)
                    .map(|f| Measured { total: f.total.clone(), ..Measured::default() });
                let beside = |of: &dyn Fn(&Measured) -> String| beside.as_ref().map_or(String::new(), of);
                each.row([
                    drive.clone().into(),
                    self.rate_text(m).into(),
                    Cell::new(Look::Good, bar(self.rate(m) / best, 24)),
                    micros(m.total.p50_us).into(),
                    micros(m.total.p99_us).into(),
                    micros(m.total.p999_us).into(),
                    beside(&|m| self.rate_text(m)).into(),
                    beside(&|m| micros(m.total.p50_us)).into(),
                    beside(&|m| micros(m.total.p99_us)).into(),
                ]);
            }
            out.push('\n');
            out.push_str(&each.print(terminal, 0));
        }
        out
    }
}
