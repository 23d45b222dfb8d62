//! `millrace bench ladder`: the same load at the bare drives, at the arrays on them, at the pool, at the volume, and over
//! both protocols: what does each layer cost?
//!
//! Everything is in this process; the rooms are the product's, entered by `head::path::direct`.

use super::finish::finish;
use super::holds;
use super::options::block;
use super::result::doc::Doc;
use super::result::ladder::{Ladder, StageMean, Step};
use super::stand::{Stand, Timed};
use super::watch::{self, Live};
use super::work::{ISCSI_DEPTH_MAX, StageArgs, WorkArgs, in_process, inside, is_null, lanes, outside};
use crate::arguments::count_in;
use crate::failure::Failure;
use crate::screen::Terminal;
use base::size::print;
use clap::Args;
use engine::inner::At;
use load::Plan;
use std::time::Duration;

/// `millrace bench ladder`.
#[derive(Args, Debug)]
#[command(after_help = "\
The command creates a pool on the drives inside this process, and destroys it at the end. Drives that hold data are refused unless --force is given. No daemon is needed.

Examples:
  millrace bench ladder --drive null --copies 4
  millrace bench ladder --drive ram:1G --copies 4 --mirror 2 --rw randwrite
  millrace bench ladder --drive /dev/nvme1n1 --qd 128 --html ladder.html")]
pub struct LadderArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Drives in each mirror, in the order given; 1 for no mirrors
    #[arg(long, value_name = "LEGS", allow_hyphen_values = true, default_value_t = 1, value_parser = count_in::<u16>(1..=4))]
    mirror: u16,
    /// Block size: bytes of one operation
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "4k", value_parser = block)]
    bs: u32,
    /// Queue depth: operations in flight on each connection
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 32, value_parser = count_in::<u16>(1..=1023))]
    qd: u16,
    /// Number of connections; without a protocol, multiplies --qd
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = count_in::<u16>(1..=8))]
    jobs: u16,
    #[command(flatten)]
    work: WorkArgs,
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
}
