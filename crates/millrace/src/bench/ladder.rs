//! `millrace bench ladder`: the same load at the bare drives, at the arrays on them, at the pool, at the volume, and over
//! both protocols: what does each layer cost?
//!
//! Everything is in this process; the rooms are the product's, entered by `head::path::direct`.

use super::doc::{Doc, finish};
use super::figures::{Measured, queued};
use super::inner::At;
use super::stand::{Stand, Timed};
use super::watch::{self, Live};
use super::work::{ISCSI_DEPTH_MAX, StageArgs, WorkArgs, in_process, inside, is_null, lanes, outside};
use super::{block, holds, micros};
use crate::cli::times::time;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table, Terminal};
use base::size::{print, print_count};
use clap::Args;
use load::Plan;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `millrace bench ladder`.
#[derive(Args, Debug)]
#[command(after_help = "\
A pool is made of the drives, and destroyed at the end: drives that hold data are refused by name until --force. No daemon is needed, and none is asked.

Examples:
  millrace bench ladder --drive null --copies 4
  millrace bench ladder --drive ram:1G --copies 4 --mirror 2 --rw randwrite
  millrace bench ladder --drive /dev/nvme1n1 --qd 128 --html ladder.html")]
pub struct LadderArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Make mirrors of so many drives each, in the order given
    #[arg(long, value_name = "LEGS", allow_hyphen_values = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4))]
    mirror: u16,
    /// Bytes of one operation
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "4k", value_parser = block)]
    bs: u32,
    /// Operations under way on each connection
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1023))]
    qd: u16,
    /// Connections; inside, so many times --qd operations are under way
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=8))]
    jobs: u16,
    #[command(flatten)]
    work: WorkArgs,
}

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

/// What was timed between two moments.
fn means(before: &Timed, after: &Timed) -> Vec<StageMean> {
    let commands = after.commands.saturating_sub(before.commands);
    if commands == 0 {
        return vec![];
    }
    let names = api::Stages::default().parts().map(|(name, _)| name);
    let ns = after.ns.iter().zip(&before.ns).map(|(after, before)| after.saturating_sub(*before));
    let mean = |(name, ns): (&str, u64)| StageMean {
        stage: name.into(),
        mean_us: ns as f64 / commands as f64 / 1e3,
    };
    names.into_iter().zip(ns).map(mean).collect()
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

/// Longest measurement of single operations.
const ALONE_MAX: Duration = Duration::from_secs(1);
/// Blocks by which the region is written before it is read.
const PREPARE_BYTES: u32 = 1 << 20;

/// Runs it and shows it.
pub fn run(args: &LadderArgs, json: bool) -> Result<(), Failure> {
    let mut doc = Doc::begin("ladder");
    watch::listen()?;
    holds::check_drives(&args.stage.all()?, args.stage.force, json)?;
    let mut live = Live::new();
    let ladder = climb(args, &mut live, &mut doc.notes)?;
    live.clear();
    let text = ladder.screen(Terminal::for_stdout());
    let failed = ladder.steps.iter().find_map(|s| Some((s.name.clone(), s.deep.trouble.clone()?)));
    doc.notes.extend(ladder.notes());
    doc.ladder = Some(ladder);
    finish(&doc, &text, json, args.work.html.as_deref())?;
    match failed {
        None => Ok(()),
        Some((step, why)) => Err(Failure::internal(format!("{step}: {why}"))),
    }
}

/// Measures every step.
pub fn climb(args: &LadderArgs, live: &mut Live, notes: &mut Vec<String>) -> Result<Ladder, Failure> {
    let LadderArgs { stage, mirror, bs, qd, jobs, work } = args;
    let (drives, legs) = (stage.all()?, usize::from(*mirror));
    if !drives.len().is_multiple_of(legs) {
        let n = drives.len();
        return Err(Failure::usage(format!("--mirror {legs}: {n} drives are not so many times {legs}")));
    }
    if work.verify && drives.iter().any(|d| is_null(d)) {
        return Err(
            Failure::usage("--verify: a null drive forgets what was written").with_next("--drive ram:1G")
        );
    }
    let depth = qd * jobs;
    let (shape, client) = stage.shape(u64::from(depth), *bs);
    live.step("pool");
    let mut stand = Stand::start(&shape)?;
    let only_reads = |f: Failure| match f.next {
        Some(next) if next.starts_with("--force") => Failure {
            next: Some(format!("{next}, or millrace bench drives --rw randread, which only reads")),
            ..f
        },
        _ => f,
    };
    let made = stand.pool(&drives, legs, stage.force, WorkArgs::volume_block(*bs), live);
    let bytes = made.map_err(only_reads)?;
    let region = stage.region(work.region, bytes) / u64::from(*bs) * u64::from(*bs);
    if !work.unprepared && !drives.iter().all(|d| is_null(d)) {
        live.step("region");
        let time = Duration::from_millis(1);
        let whole = WorkArgs { verify: false, ramp: Duration::ZERO, ..work.clone() };
        let plan = Plan { prepare: true, read_percent: 100, ..whole.plan(PREPARE_BYTES, region, time) };
        inside(&stand, At::Volume, &plan, 4, &[], live)?;
    }
    let mut steps = vec![];
    let names = |at: &At| match at {
        At::Bare => drives.clone(),
        _ => drives.chunks(legs).map(|d| d.join(" + ")).collect(),
    };
    let alone_for = work.seconds.min(ALONE_MAX);
    for (name, at) in [("drive", At::Bare), ("array", At::Arrays), ("pool", At::Pool), ("volume", At::Volume)]
    {
        if watch::interrupted() {
            break;
        }
        live.step(name);
        let names = names(&at);
        // Each shard has its share of what is under way.
        let share = (depth / stage.shards).max(1);
        let before = stand.timed()?;
        let deep = inside(&stand, at.clone(), &work.plan(*bs, region, work.seconds), share, &names, live)?;
        let stages = means(&before, &stand.timed()?);
        let alone = inside(&stand, at, &work.plan(*bs, region, alone_for), 1, &names, live)?;
        steps.push(Step { name: name.into(), deep, alone, stages });
    }
    if *qd > ISCSI_DEPTH_MAX {
        notes.push(format!("The iSCSI step had {ISCSI_DEPTH_MAX} commands under way on each connection: a session takes no more."));
    }
    let urls = stand.serve()?;
    for (name, url) in ["nvme", "iscsi"].into_iter().zip(&urls) {
        if watch::interrupted() {
            break;
        }
        live.step(name);
        let run = |stand: &Stand, jobs: u16, qd: u16, time: Duration| {
            let plan = Plan { sessions: lanes(url, jobs, qd), ..work.plan(*bs, region, time) };
            outside(plan, client, stand.cpu(), live)
        };
        let before = stand.timed()?;
        let deep = run(&stand, *jobs, *qd, work.seconds)?;
        let stages = means(&before, &stand.timed()?);
        let alone = run(&stand, 1, 1, alone_for)?;
        steps.push(Step { name: name.into(), deep, alone, stages });
    }
    notes.extend(stand.notices());
    if !drives.iter().all(|d| in_process(d)) && region < 4 << 30 {
        notes.push(format!(
            "{} of each volume were used: a drive's own cache may hold that. --region makes it more.",
            print(region)
        ));
    }
    let (_, read_percent) = work.rw.shape(work.mix);
    Ok(Ladder {
        drives,
        legs: *mirror,
        shards: stage.shards,
        rw: work.rw.word().into(),
        read_percent,
        block_bytes: *bs,
        depth: *qd,
        jobs: *jobs,
        region_bytes: region,
        steps,
    })
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

/// Blocks from which on bytes say more than operations.
pub const LARGE: u32 = 64 << 10;

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
    fn notes(&self) -> Vec<String> {
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

/// A bar of `part` of `width` columns, in eighths.
pub fn bar(part: f64, width: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    out.extend(
        [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8).filter(|_| !eighths.is_multiple_of(8)),
    );
    out
}

/// Microseconds with a digit behind the point, as single operations need.
pub fn micros_fine(us: f64) -> String {
    if us < 100.0 { format!("{us:.1} µs") } else { micros(us) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        ladder: LadderArgs,
    }

    fn args(words: &str) -> LadderArgs {
        Words::try_parse_from(words.split_whitespace()).expect(words).ladder
    }

    fn ladder(words: &str) -> Ladder {
        let mut notes = vec![];
        climb(&args(words), &mut Live::new(), &mut notes).unwrap_or_else(|e| panic!("{words}: {e}"))
    }

    fn sound(ladder: &Ladder) {
        let names: Vec<&str> = ladder.steps.iter().map(|s| &s.name[..]).collect();
        assert_eq!(names, ["drive", "array", "pool", "volume", "nvme", "iscsi"]);
        for step in &ladder.steps {
            assert_eq!(step.stages.is_empty(), step.name == "drive", "{}: {:?}", step.name, step.stages);
            for run in [&step.deep, &step.alone] {
                assert!(run.total.ops > 0 && run.errors == 0, "{}: {run:?}", step.name);
            }
        }
    }

    #[test]
    fn a_ladder_of_milliseconds_has_every_step() {
        let words = "ladder --drive null --copies 4 --mirror 2 --seconds 0.1 --ramp 0.01 --qd 8 --jobs 2";
        let ladder = ladder(words);
        sound(&ladder);
        assert_eq!(ladder.steps[0].deep.paths.len(), 4, "every drive apart");
        assert_eq!(ladder.steps[1].deep.paths.len(), 2, "every array apart");
        assert_eq!(ladder.steps[4].deep.paths.len(), 2, "every connection apart");
        let text = ladder.screen(Terminal::plain(120));
        assert!(text.contains("+ volume") && text.contains("over iSCSI"), "{text}");
        let lines = text.lines().skip_while(|l| !l.contains("WHERE THE TIME GOES"));
        let lines: Vec<&str> = lines.take_while(|l| !l.is_empty()).collect();
        assert!(
            lines.len() == 6 && lines[0].ends_with("REPLIED") && lines[5].starts_with("over iSCSI"),
            "{text}"
        );
    }

    #[test]
    fn what_is_written_at_one_step_is_checked_there() {
        let words = "ladder --drive ram:256M --copies 2 --mirror 2 --rw randrw --verify --seconds 0.2 \
                     --ramp 0.05 --qd 4 --region 1M --bs 8k";
        let ladder = ladder(words);
        sound(&ladder);
        for step in &ladder.steps {
            assert!(step.deep.verified > 0, "{}: {:?}", step.name, step.deep);
        }
    }

    #[test]
    fn a_drive_that_holds_data_is_refused_and_keeps_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("drive");
        let mut data = vec![0u8; 64 << 20];
        data[..6].copy_from_slice(b"LUKS\xba\xbe");
        std::fs::write(&path, &data).expect("written");
        let words = format!("ladder --drive {} --seconds 0.01 --ramp 0", path.display());
        let failure = climb(&args(&words), &mut Live::new(), &mut vec![]).expect_err("it holds data");
        assert!(failure.message.contains("LUKS"), "{failure}");
        assert!(failure.next.as_ref().is_some_and(|n| n.contains("--force")), "{failure}");
        assert!(std::fs::read(&path).expect("read") == data, "nothing was written");
    }

    #[test]
    fn what_cannot_be_is_told_before_anything_is_made() {
        let fails =
            |words: &str| climb(&args(words), &mut Live::new(), &mut vec![]).expect_err(words).message;
        assert!(fails("ladder --drive null --copies 3 --mirror 2").contains("3 drives"));
        assert!(fails("ladder --drive null --verify").contains("forgets"));
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
