//! `millrace bench drives`: one drive, two drives, … all of them, with nothing above them: do they add up, and where does
//! that end?

use super::finish::finish;
use super::fio;
use super::holds;
use super::options::block;
use super::result::doc::Doc;
use super::result::drives::{Drives, Together};
use super::result::figures::Measured;
use super::stand::{POOL, Stand};
use super::watch::{self, Live};
use super::work::{StageArgs, WorkArgs, in_process, inside};
use crate::arguments::count_in;
use crate::failure::Failure;
use crate::screen::Terminal;
use base::DriveId;
use clap::Args;
use engine::inner::At;
use head::order::{ArraySpec, Order};

/// `millrace bench drives`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads do not change the drives. Before it writes to a drive that holds data, the command asks, unless --force is given.

Examples:
  millrace bench drives --drive /dev/nvme0n1 --drive /dev/nvme1n1 --qd 64
  millrace bench drives --drive ram:1G --copies 4 --rw write --bs 128k")]
pub struct DrivesArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Block size: bytes of one operation
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "4k", value_parser = block)]
    bs: u32,
    /// Queue depth: operations in flight on each drive
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 32, value_parser = count_in::<u16>(1..=1023))]
    qd: u16,
    #[command(flatten)]
    work: WorkArgs,
    /// Do not run fio for comparison, even if it is installed
    #[arg(long)]
    no_fio: bool,
}

/// Most steps: of many drives not every number is measured.
const STEPS_MAX: usize = 16;

/// Runs it and shows it.
pub fn run(args: &DrivesArgs, json: bool) -> Result<(), Failure> {
    let mut doc = Doc::begin("drives");
    watch::listen()?;
    if args.work.rw.shape(args.work.mix).1 < 100 {
        holds::check_drives(&args.stage.all()?, args.stage.force, json)?;
    }
    let mut live = Live::new();
    let drives = measure(args, &mut live, &mut doc.notes)?;
    live.clear();
    let text = drives.screen(Terminal::for_stdout());
    doc.notes.extend(drives.notes());
    let trouble = drives.together.iter().find_map(|t| t.run.trouble.clone());
    doc.drives = Some(drives);
    finish(&doc, &text, json, args.work.html.as_deref())?;
    trouble.map_or(Ok(()), |why| Err(Failure::internal(why)))
}

/// Drives that a run writes to must be nobody's, as those of a pool: the Steward looks, and names what it finds.
fn must_be_free(args: &DrivesArgs, specs: &[String]) -> Result<(), Failure> {
    let (_, reads) = args.work.rw.shape(args.work.mix);
    let doubtful: Vec<&String> = specs.iter().filter(|s| !in_process(s)).collect();
    if reads == 100 || doubtful.is_empty() {
        return Ok(());
    }
    let (shape, _) = args.stage.shape(1, args.bs);
    let mut stand = Stand::start(&shape)?;
    let array = |d: &&String| ArraySpec { drives: vec![d.to_string()], ..ArraySpec::default() };
    stand.order(Order::PoolCreate {
        name: POOL.into(),
        arrays: doubtful.iter().map(array).collect(),
        chunk_bytes: None,
        block_bytes: None,
        measure: false,
        force: args.stage.force,
    })?;
    stand.order(Order::PoolDestroy { pool: POOL.into(), force: true, disconnect: true }).map(|_| ())
}

fn measure(args: &DrivesArgs, live: &mut Live, notes: &mut Vec<String>) -> Result<Drives, Failure> {
    let DrivesArgs { stage, bs, qd, work, .. } = args;
    let specs = stage.all()?;
    must_be_free(args, &specs)?;
    let n = specs.len();
    let (shape, _) = stage.shape(u64::from(*qd) * n as u64, *bs);
    live.step("drives");
    let stand = Stand::bare(&shape)?;
    let mut open = vec![];
    for (i, spec) in specs.iter().enumerate() {
        let id = DriveId(i as u16);
        open.push((id, stand.open(id, spec)?));
    }
    let places = Stand::places(&open);
    let region = |drives: u64| {
        work.region.map_or(0, |bytes| bytes.saturating_mul(drives)) / u64::from(*bs) * u64::from(*bs)
    };
    let mut run = |name: String, from: usize, to: usize| -> Result<Measured, Failure> {
        live.step(name);
        let count = to - from;
        // Depth belongs to the drives; each shard has its share.
        let depth = (*qd * count as u16 / stage.shards).max(1);
        let at = At::Drives(places[from..to].to_vec());
        inside(&stand, at, &work.plan(*bs, region(count as u64), work.seconds), depth, &specs[from..to], live)
    };
    let (mut together, mut cores_busy) = (vec![], None);
    let step = n.div_ceil(STEPS_MAX);
    for drives in (1..=n).filter(|i| *i == 1 || *i == n || i.is_multiple_of(step)) {
        if watch::interrupted() {
            break;
        }
        let before = watch::cores();
        let run = run(format!("{drives} of {n} drives"), 0, drives)?;
        cores_busy = topology::cores_busy(&before, &watch::cores());
        together.push(Together { drives, run });
    }
    // One slow drive among many is not seen in their sum.
    let mut alone = vec![];
    let all_same = specs.iter().all(|s| *s == specs[0]) && in_process(&specs[0]);
    for (i, spec) in specs.iter().enumerate().filter(|_| !all_same) {
        if watch::interrupted() {
            break;
        }
        alone.push(run(spec.clone(), i, i + 1)?);
    }
    notes.extend(stand.notices());
    // fio opens the drives itself: ours are closed first.
    drop(stand);
    let known = || specs.iter().any(|s| kernel_path(s).is_some());
    let mut beside = vec![];
    match (args.no_fio || !known(), fio::installed()) {
        (true, _) => {}
        (false, None) => notes.push("fio is not installed: nothing stands beside our own figures.".into()),
        (false, Some(version)) => {
            for spec in &specs {
                live.step(format!("fio {spec}"));
                let path = kernel_path(spec).filter(|_| !watch::interrupted());
                beside.push(path.map(|p| fio::run(p, &version, work, *bs, *qd)).transpose()?);
            }
        }
    }
    Ok(Drives {
        fio: beside,
        drives: specs.clone(),
        rw: work.rw.word().into(),
        block_bytes: *bs,
        depth: *qd,
        shards: stage.shards,
        alone,
        together,
        cores_busy,
    })
}

/// The path of a drive that the kernel has and nobody shapes.
fn kernel_path(spec: &str) -> Option<&str> {
    if in_process(spec) || spec.starts_with("shape:") {
        return None;
    }
    let path = base::drive_kind::path_in(spec);
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::report::Figures;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        drives: DrivesArgs,
    }

    fn run(words: &str) -> Result<Drives, Failure> {
        let args = Words::try_parse_from(words.split_whitespace()).expect(words).drives;
        measure(&args, &mut Live::new(), &mut vec![])
    }

    #[test]
    fn each_number_of_drives_is_measured_and_every_drive_seen() {
        let drives = run("drives --drive null --copies 3 --seconds 0.02 --ramp 0 --qd 4").expect("it runs");
        assert_eq!(drives.together.iter().map(|t| t.drives).collect::<Vec<_>>(), [1, 2, 3]);
        for t in &drives.together {
            assert_eq!(t.run.paths.len(), t.drives);
            assert!(t.run.paths.iter().all(|p| p.figures.ops > 0), "{t:?}");
        }
        assert!(drives.screen(Terminal::plain(100)).contains("OF SUM"));
    }

    #[test]
    fn reads_leave_a_drive_as_it_is_and_writes_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("drive");
        let mut data = vec![7u8; 64 << 20];
        data[..4].copy_from_slice(b"XFSB");
        std::fs::write(&path, &data).expect("written");
        let words = format!("drives --drive {} --seconds 0.5 --ramp 0 --qd 2 --no-fio", path.display());
        let read = run(&words).expect("it is only read");
        assert!(read.together[0].run.total.ops > 0);
        let refused = run(&format!("{words} --rw randwrite")).expect_err("it holds data");
        assert!(refused.message.contains("XFS"), "{refused}");
        assert!(std::fs::read(&path).expect("read") == data, "nothing was written");
    }

    #[test]
    fn fio_gets_what_the_kernel_has() {
        assert_eq!(kernel_path("/dev/sdb"), Some("/dev/sdb"));
        assert_eq!(kernel_path("file:/x?size=1G&block=512"), Some("/x"));
        for none in ["null:1T", "ram:1G", "shape:latency-us=1@/dev/sdb"] {
            assert_eq!(kernel_path(none), None);
        }
    }

    #[test]
    fn where_the_sum_bends_is_found_against_what_each_does_alone() {
        let run =
            |iops: f64| Measured { total: Figures { iops, ..Figures::default() }, ..Measured::default() };
        let together = |rates: &[f64]| {
            let one = |(i, r): (usize, &f64)| Together { drives: i + 1, run: run(*r) };
            rates.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let same =
            Drives { drives: names.clone(), together: together(&[100.0, 198.0, 220.0]), ..Drives::default() };
        assert_eq!(same.bends_at(), Some(3));
        // The second drive is slow by itself: that is no bend.
        let alone = [100.0, 10.0, 100.0].map(run).to_vec();
        let mixed =
            Drives { drives: names, together: together(&[100.0, 110.0, 209.0]), alone, ..Drives::default() };
        assert_eq!(mixed.bends_at(), None);
        assert!(mixed.notes().iter().any(|n| n.starts_with("b has 10 %")), "{:?}", mixed.notes());
    }
}
