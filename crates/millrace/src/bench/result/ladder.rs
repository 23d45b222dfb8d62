//! What `millrace bench ladder` measured, and how it is shown.

use super::figures::{Measured, queued};
use super::report::{LARGE, bar, micros, micros_fine};
use crate::cli::times::time;
use crate::screen::{Cell, Look, Table, Terminal};
use base::size::{print, print_count};
use serde::{Deserialize, Serialize};

/// One step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Step {
    /// `drive`, `array`, `pool`, `volume`, `nvme`, `iscsi`.
    pub name: String,
    /// With all operations under way.
    pub deep: Measured,
    /// With one operation under way.
    pub alone: Measured,
    /// Where the time of an operation went inside the head, with all of them under way; empty for bare drives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageMean>,
}

/// A stage of commands.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StageMean {
    /// `admitted`, `volume`, `array`, `drive`, `replied`.
    pub stage: String,
    /// The mean of the commands that were timed, microseconds.
    pub mean_us: f64,
}

/// The whole ladder.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Ladder {
    /// Every drive.
    pub drives: Vec<String>,
    /// Drives of each mirror; 1 for none.
    pub legs: u16,
    /// Threads that carried the load.
    pub shards: u16,
    /// `randread` and so on.
    pub rw: String,
    /// Reads among 100 operations.
    pub read_percent: u8,
    /// Bytes of one operation.
    pub block_bytes: u32,
    /// Operations under way on each connection.
    pub depth: u16,
    /// Connections.
    pub jobs: u16,
    /// The part of the volume that was used, bytes.
    pub region_bytes: u64,
    /// From the drive up.
    pub steps: Vec<Step>,
}

/// A step's name for people.
pub fn title(name: &str) -> &str {
    match name {
        "drive" => "bare drives",
        "array" => "+ array",
        "pool" => "+ pool",
        "volume" => "+ volume",
        "nvme" => "over NVMe/TCP",
        "iscsi" => "over iSCSI",
        other => other,
    }
}

impl Ladder {
    /// What was measured, in words.
    pub fn subject(&self) -> String {
        let mut kinds: Vec<(String, usize)> = vec![];
        for drive in &self.drives {
            match kinds.last_mut().filter(|(d, _)| d == drive) {
                Some((_, n)) => *n += 1,
                None => kinds.push((drive.clone(), 1)),
            }
        }
        let kinds: Vec<String> =
            kinds.into_iter().map(|(d, n)| if n == 1 { d } else { format!("{n} × {d}") }).collect();
        let legs = if self.legs > 1 { format!(", mirrors of {}", self.legs) } else { String::new() };
        let mix = match self.read_percent {
            0 | 100 => String::new(),
            n => format!(" ({n} % reads)"),
        };
        format!(
            "{}{mix} {}, {} × {} under way, on {}{legs}",
            self.rw,
            print(self.block_bytes.into()),
            self.jobs,
            self.depth,
            kinds.join(", ")
        )
    }
    /// The rate by which steps are compared, and its unit.
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
    /// CPU time that a step adds to the one below it, nanoseconds for each operation.
    pub fn added(&self, index: usize) -> Option<f64> {
        // Both protocols stand on the volume.
        let below = match &self.steps[index].name[..] {
            "nvme" | "iscsi" => self.steps.iter().position(|s| s.name == "volume")?,
            _ => index.checked_sub(1)?,
        };
        Some(self.steps[index].deep.target_ns? - self.steps[below].deep.target_ns?)
    }
    /// What a reader must be told.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![];
        for step in &self.steps {
            let title = title(&step.name);
            if let Some(part) = queued(&step.deep, &step.alone).filter(|p| *p > 0.5)
                && matches!(&step.name[..], "nvme" | "iscsi")
            {
                notes.push(format!(
                    "{title}: an operation spent {:.0} % of its time in queues. Less depth would have the same rate sooner: millrace bench sweep finds how much.",
                    part * 100.0
                ));
            }
            if let (Some(client), Some(target)) = (step.deep.client_busy, step.deep.target_busy)
                && client > 0.95
                && target < 0.9
            {
                notes.push(format!("{title}: the load generator was the limit ({:.0} % of its core busy, the shards {:.0} %).", client * 100.0, target * 100.0));
            }
            let starved = step.deep.starved();
            if let Some(worst) = starved.first() {
                notes.push(format!(
                    "{title}: {} of {} paths had less than half of what the others had, {} among them.",
                    starved.len(),
                    step.deep.paths.len(),
                    worst.name
                ));
            }
        }
        notes
    }
    /// Where the time went at each step.
    fn stages(&self, terminal: Terminal) -> String {
        let heads =
            ["WHERE THE TIME GOES", ">IN ALL", ">ADMITTED", ">VOLUME", ">ARRAY", ">DRIVE", ">REPLIED"];
        let mut table = Table::new(&heads);
        for step in self.steps.iter().filter(|s| !s.stages.is_empty()) {
            let all: f64 = step.stages.iter().map(|s| s.mean_us).sum();
            let times = [all].into_iter().chain(step.stages.iter().map(|s| s.mean_us));
            let cells = times.map(|us| time((us * 1e3) as u64));
            table.row([Cell::new(Look::Bold, title(&step.name))].into_iter().chain(cells));
        }
        if table.is_empty() { String::new() } else { format!("\n{}", table.print(terminal, 0)) }
    }
    /// The ladder for people.
    pub fn screen(&self, terminal: Terminal) -> String {
        let mut out = format!("{}\n\n", terminal.text(Look::Bold, &self.subject()));
        let best = self.steps.iter().map(|s| self.rate(&s.deep)).fold(0.0, f64::max);
        let ns = |n: Option<f64>| n.map_or("–".into(), |n| format!("{n:.0} ns"));
        let mut table = Table::new(&["", ">RATE", "", ">CPU/OP", ">+", ">ALONE", ">P50", ">P99", ">P99.9"])
            .optional(&["P99.9"])
            .optional(&["P50"]);
        for (i, step) in self.steps.iter().enumerate() {
            let total = &step.deep.total;
            let added = self.added(i).map_or(String::new(), |n| format!("{n:+.0}"));
            table.row([
                Cell::new(Look::Bold, title(&step.name)),
                self.rate_text(&step.deep).into(),
                Cell::new(Look::Good, bar(self.rate(&step.deep) / best.max(1e-9), BAR)),
                ns(step.deep.target_ns).into(),
                Cell::new(Look::Dim, added),
                micros_fine(step.alone.total.mean_us).into(),
                micros(total.p50_us).into(),
                micros(total.p99_us).into(),
                micros(total.p999_us).into(),
            ]);
        }
        out.push_str(&table.print(terminal, 0));
        out.push_str(&self.stages(terminal));
        for step in self.steps.iter().filter(|s| s.deep.paths.len() > 1) {
            let paths = &step.deep.paths;
            let rates: Vec<String> = paths.iter().map(|p| print_count(p.figures.iops as u64)).collect();
            let line = terminal.paragraph(
                Look::Dim,
                "",
                &format!("{}: IOPS by path {}", step.name, rates.join(" ")),
                2,
            );
            out.push_str(if step == &self.steps[0] { "\n" } else { "" });
            out.push_str(&line);
        }
        out
    }
}

/// Columns of the longest bar.
const BAR: usize = 24;
