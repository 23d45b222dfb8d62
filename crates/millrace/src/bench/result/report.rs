//! What a load prints: figures for people, JSON for programs.

use crate::bench::target::Url;
use crate::screen::{Cell, Look, Table, Terminal};
use crate::words::load::{down, run_fault, wrong_read};
use base::size::{print, print_count};
use serde::{Deserialize, Serialize};

/// Figures of one kind of operation.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Operations that ended well.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Operations a second.
    pub iops: f64,
    /// 10^6 bytes a second.
    pub mb_per_s: f64,
    /// Mean latency, microseconds.
    pub mean_us: f64,
    /// Median latency, microseconds.
    pub p50_us: f64,
    /// 9 of 10 were faster, microseconds.
    #[serde(default)]
    pub p90_us: f64,
    /// 99 of 100 were faster, microseconds.
    pub p99_us: f64,
    /// 999 of 1000 were faster, microseconds.
    pub p999_us: f64,
    /// The slowest, microseconds.
    pub max_us: f64,
}

impl Figures {
    /// The generator's figures, to be printed.
    pub fn of(f: &load::Figures) -> Self {
        let load::Figures { ops, bytes, iops, mb_per_s, mean_us, p50_us, p90_us, p99_us, p999_us, max_us } =
            *f;
        Self { ops, bytes, iops, mb_per_s, mean_us, p50_us, p90_us, p99_us, p999_us, max_us }
    }
}

/// A connection's figures.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// Index of its session.
    pub session: u16,
    /// Index among the session's connections.
    pub connection: u16,
    /// The target's address.
    pub peer: String,
    /// What it did.
    pub figures: Figures,
}

/// The whole run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// `completed`, `stopped` or `failed`.
    pub end: String,
    /// Why it failed.
    pub reason: Option<String>,
    /// `nvme` or `iscsi`.
    pub protocol: String,
    /// The target's name.
    pub target: String,
    /// Block size of the volume.
    pub block_bytes: u32,
    /// Size of the volume.
    pub volume_bytes: u64,
    /// Part of it that was used.
    pub region_bytes: u64,
    /// Commands under way on each connection, at most: `depth_asked`, or what the target's queues hold.
    #[serde(default)]
    pub depth: u16,
    /// What was asked for (`--qd`).
    #[serde(default)]
    pub depth_asked: u16,
    /// Connections that the target granted.
    #[serde(default)]
    pub connections_open: u16,
    /// Length of the measurement.
    pub seconds: f64,
    /// Reads.
    pub reads: Figures,
    /// Writes.
    pub writes: Figures,
    /// Both.
    pub total: Figures,
    /// Operations that failed for good, by kind.
    pub errors_by_kind: Vec<(String, u64)>,
    /// Their sum, mismatches included.
    pub errors: u64,
    /// Commands sent again after a temporary refusal.
    pub retries: u64,
    /// Sessions lost and opened again.
    pub reconnects: u64,
    /// Blocks read and found to hold what was last written.
    pub verified_blocks: u64,
    /// Blocks read of which it was not known what they hold.
    pub unjudged_blocks: u64,
    /// Operations that read something wrong.
    pub mismatches: u64,
    /// The first of them.
    pub mismatch_examples: Vec<String>,
    /// Every connection.
    pub connections: Vec<Connection>,
}

impl Report {
    /// The generator's report, to be printed.
    pub fn of(r: &load::Report) -> Self {
        let (end, reason) = match &r.end {
            load::End::Completed => ("completed", None),
            load::End::Stopped => ("stopped", None),
            load::End::Failed(why) => ("failed", Some(run_fault(why))),
        };
        let connection = |c: &load::ConnectionFigures| Connection {
            session: c.session,
            connection: c.connection,
            peer: c.peer.clone(),
            figures: Figures::of(&c.figures),
        };
        Self {
            end: end.into(),
            reason,
            protocol: r.protocol.into(),
            target: r.target.clone(),
            block_bytes: r.block_bytes,
            volume_bytes: r.volume_bytes,
            region_bytes: r.region_bytes,
            depth: r.depth,
            depth_asked: r.depth_asked,
            connections_open: r.connections_open,
            seconds: r.time.as_secs_f64(),
            reads: Figures::of(&r.reads),
            writes: Figures::of(&r.writes),
            total: Figures::of(&r.total),
            errors_by_kind: r.errors_by_kind.iter().map(|(k, n)| (format!("{k:?}"), *n)).collect(),
            errors: r.errors,
            retries: r.retries,
            reconnects: r.reconnects,
            verified_blocks: r.verified_blocks,
            unjudged_blocks: r.unjudged_blocks,
            mismatches: r.mismatches,
            mismatch_examples: r.mismatch_examples.iter().map(wrong_read).collect(),
            connections: r.connections.iter().map(connection).collect(),
        }
    }

    /// What went wrong, in a sentence; None if nothing did.
    pub fn failure(&self) -> Option<String> {
        if let Some(why) = &self.reason {
            return Some(format!("the load ended early: {why}"));
        }
        if self.mismatches > 0 {
            let example =
                self.mismatch_examples.first().map_or(String::new(), |e| format!(" (the first: {e})"));
            return Some(format!("{} reads found something else than was written{example}", self.mismatches));
        }
        if self.errors > 0 {
            let kinds: Vec<String> = self.errors_by_kind.iter().map(|(k, n)| format!("{k} {n}")).collect();
            return Some(format!("{} operations failed: {}", self.errors, kinds.join(", ")));
        }
        None
    }

    /// How the load was smaller than asked for, in sentences: the target grants no more.
    pub fn limits(&self) -> Vec<String> {
        let open = usize::from(self.connections_open);
        let depth = (self.depth < self.depth_asked).then(|| {
            format!(
                "{} on each connection instead of {}: the target's queues hold no more.",
                self.depth, self.depth_asked
            )
        });
        // Results that were kept by older versions do not say how many there were.
        let fewer = (1..self.connections.len()).contains(&open) && self.reason.is_none();
        let connections = fewer.then(|| {
            format!("{open} connections instead of {}: the target grants no more.", self.connections.len())
        });
        depth.into_iter().chain(connections).collect()
    }

    /// The report for people.
    pub fn screen(&self, terminal: Terminal) -> String {
        let mut out = format!(
            "{} {}  {} of {}, blocks of {}, {:.1} s\n\n",
            terminal.text(Look::Bold, &self.protocol),
            self.target,
            print(self.region_bytes),
            print(self.volume_bytes),
            self.block_bytes,
            self.seconds
        );
        let mut table =
            Table::new(&["", ">IOPS", ">MB/S", ">MEAN", ">P50", ">P99", ">P99.9", ">MAX", ">OPERATIONS"]);
        for (name, f) in [("read", &self.reads), ("write", &self.writes), ("total", &self.total)] {
            if f.ops > 0 || name == "total" {
                table.row([
                    name.into(),
                    print_count(f.iops as u64).into(),
                    format!("{:.0}", f.mb_per_s).into(),
                    micros(f.mean_us).into(),
                    micros(f.p50_us).into(),
                    micros(f.p99_us).into(),
                    micros(f.p999_us).into(),
                    micros(f.max_us).into(),
                    f.ops.to_string().into(),
                ]);
            }
        }
        out.push_str(&table.print(terminal, 0));
        let mut facts = Table::new(&["", ""]);
        let mut row = |name: &str, value: Cell| facts.row([Cell::new(Look::Dim, name), value]);
        for limit in self.limits() {
            row("depth", Cell::new(Look::Warn, limit));
        }
        let kinds: Vec<String> = self.errors_by_kind.iter().map(|(k, n)| format!("{k} {n}")).collect();
        let look = if self.errors == 0 { Look::Good } else { Look::Bad };
        row("errors", Cell::new(look, format!("{} {}", self.errors, kinds.join(", ")).trim()));
        if self.verified_blocks + self.unjudged_blocks > 0 {
            row(
                "verified",
                format!("{} blocks, {} not judged", self.verified_blocks, self.unjudged_blocks).into(),
            );
        }
        for example in &self.mismatch_examples {
            row("mismatch", Cell::new(Look::Bad, example.clone()));
        }
        if self.retries + self.reconnects > 0 {
            row("retried", format!("{} commands, {} sessions", self.retries, self.reconnects).into());
        }
        if self.connections.len() > 1 {
            let iops: Vec<String> =
                self.connections.iter().map(|c| print_count(c.figures.iops as u64)).collect();
            row("connections", format!("IOPS {}", iops.join(", ")).into());
        }
        format!("{out}\n{}", facts.print(terminal, 0))
    }
}

/// Blocks from which on bytes say more than operations.
pub const LARGE: u32 = 64 << 10;

/// Microseconds with a digit behind the point, as single operations need.
pub fn micros_fine(us: f64) -> String {
    if us < 100.0 { format!("{us:.1} µs") } else { micros(us) }
}

/// Microseconds as people read them.
pub fn micros(us: f64) -> String {
    match us {
        ..1000.0 => format!("{us:.0} µs"),
        ..1e6 => format!("{:.1} ms", us / 1e3),
        _ => format!("{:.1} s", us / 1e6),
    }
}

/// How it goes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// What it is doing.
    pub phase: String,
    /// Part of the phase that is done, 0 to 1.
    pub done: Option<f64>,
    /// Seconds since the start.
    pub seconds: f64,
    /// Operations a second, lately.
    pub iops: f64,
    /// 10^6 bytes a second, lately.
    pub mb_per_s: f64,
    /// 99 of 100 were faster, lately, microseconds.
    pub p99_us: f64,
    /// Operations that failed for good so far.
    pub errors: u64,
    /// Sessions opened again so far.
    pub reconnects: u64,
    /// Blocks verified so far.
    pub verified_blocks: u64,
    /// Why a session is not ready, if one is not.
    pub trouble: Option<String>,
}

impl Progress {
    /// The generator's progress, to be printed.
    pub fn of(p: &load::Progress) -> Self {
        Self {
            phase: p.phase.into(),
            done: p.done,
            seconds: p.elapsed.as_secs_f64(),
            iops: p.iops,
            mb_per_s: p.mb_per_s,
            p99_us: p.p99_us,
            errors: p.errors,
            reconnects: p.reconnects,
            verified_blocks: p.verified_blocks,
            trouble: p.trouble.as_ref().map(down),
        }
    }
    /// One line for people.
    pub fn line(&self, target: &Url) -> String {
        let protocol = match target {
            Url::Nvme { .. } => "nvme",
            Url::Iscsi { .. } => "iscsi",
        };
        let trouble = self.trouble.as_ref().map_or(String::new(), |t| format!("  {t}"));
        format!(
            "{protocol} {:>5.0} s  {:<12} {:>7} IOPS {:>6.0} MB/s  p99 {:>7}  errors {}{trouble}\n",
            self.seconds,
            self.phase,
            print_count(self.iops as u64),
            self.mb_per_s,
            micros(self.p99_us),
            self.errors
        )
    }
}

/// One line of `--json --progress`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// How it goes.
    Progress(Progress),
    /// How it ended.
    Report(Box<Report>),
}

impl Line {
    /// The line, with its end.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data") + "\n"
    }
}

/// A bar of `part` of `width` columns, in eighths.
pub fn bar(part: f64, width: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    out.extend(
        [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8).filter(|_| !eighths.is_multiple_of(8)),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_is_read() {
        let report = Report {
            end: "completed".into(),
            errors_by_kind: vec![("Medium".into(), 2)],
            ..Default::default()
        };
        for line in [
            Line::Progress(Progress { phase: "ramp".into(), ..Default::default() }),
            Line::Report(Box::new(report)),
        ] {
            assert_eq!(serde_json::from_str::<Line>(&line.text()).expect("JSON"), line);
        }
    }

    #[test]
    fn a_run_fails_for_errors_mismatches_and_an_early_end() {
        let good = Report { end: "completed".into(), ..Default::default() };
        assert_eq!(good.failure(), None);
        let early = Report { reason: Some("no such target".into()), ..good.clone() };
        assert!(early.failure().expect("early").contains("no such target"));
        let wrong =
            Report { mismatches: 3, errors: 3, mismatch_examples: vec!["block 7".into()], ..good.clone() };
        assert!(wrong.failure().expect("wrong").contains("block 7"));
        let failed = Report { errors: 2, errors_by_kind: vec![("Medium".into(), 2)], ..good };
        assert!(failed.failure().expect("failed").contains("Medium 2"));
    }

    #[test]
    fn a_load_smaller_than_asked_for_is_said_once() {
        let terminal = Terminal::plain(120);
        let connection =
            |n| Connection { session: 0, connection: n, peer: "a".into(), figures: Figures::default() };
        let report = Report {
            end: "completed".into(),
            depth: 127,
            depth_asked: 128,
            connections_open: 2,
            connections: (0..3).map(connection).collect(),
            ..Report::default()
        };
        let text = report.screen(terminal);
        assert_eq!(text.matches("127 on each connection instead of 128").count(), 1, "{text}");
        assert_eq!(text.matches("2 connections instead of 3").count(), 1, "{text}");
        let whole = Report { depth: 128, connections_open: 3, ..report };
        assert!(whole.limits().is_empty() && !whole.screen(terminal).contains("instead of"));
        let json = serde_json::to_value(&whole).expect("plain data");
        assert_eq!((&json["depth"], &json["depth_asked"]), (&128.into(), &128.into()));
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!([micros(12.3), micros(1234.0), micros(2_500_000.0)], ["12 µs", "1.2 ms", "2.5 s"]);
    }

    #[test]
    fn a_bar_is_as_long_as_its_part() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53125, 4), "██▏");
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(7.0, 2), "██");
    }
}
