//! `millrace bench sweep`: depth × jobs × block size, on a target or on a head made here: where is the knee, beyond which
//! more depth buys waiting and no work?

use super::finish::finish;
use super::holds;
use super::options::block;
use super::result::doc::Doc;
use super::result::sweep::{Point, Sweep};
use super::session::{SingleArgs, sessions};
use super::stand::Stand;
use super::target::Url;
use super::watch::{self, Cpu, Live};
use super::work::{StageArgs, WorkArgs, inside, is_null, lanes, outside};
use crate::arguments::count_in;
use crate::failure::Failure;
use crate::screen::Terminal;
use base::size::print;
use clap::{Args, Parser, ValueEnum};
use engine::inner::At;
use finding::CommandFault;
use load::Plan;
use std::time::Duration;

/// `millrace bench sweep`.
#[derive(Args, Debug)]
#[command(after_help = "\
Name a --target or drives. With --target, the sweep uses that volume, and overwrites its data unless --rw only reads. With --drive, it starts a head inside this process, with a pool on these drives. The knee is the depth beyond which more depth only adds waiting.

Examples:
  millrace bench sweep --target nvme://10.0.0.1:4420/NQN/1 --jobs 1,4
  millrace bench sweep --drive null --via volume --bs 512,4k,64k
  millrace bench sweep --drive /dev/nvme1n1 --via nvme --html sweep.html")]
pub struct SweepArgs {
    /// The volume: nvme://ADDRESS:PORT/NQN/NSID or iscsi://ADDRESS:PORT/IQN/LUN
    #[arg(long, value_name = "URL", conflicts_with_all = ["drives", "via"])]
    target: Option<Url>,
    /// NQN to connect with [default: this machine's]
    #[arg(long, value_name = "NQN", requires = "target")]
    host_nqn: Option<String>,
    /// IQN to connect with [default: this machine's]
    #[arg(long, value_name = "IQN", requires = "target")]
    iqn: Option<String>,
    #[command(flatten)]
    stage: StageArgs,
    /// How to reach the volume on the drives
    #[arg(long, value_enum, default_value_t = Via::Nvme, value_name = "WAY")]
    via: Via,
    /// Queue depths of each connection
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,4,16,64,256", value_parser = count_in::<u16>(1..=1023))]
    depths: Vec<u16>,
    /// Numbers of connections
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4", value_parser = count_in::<u16>(1..=64))]
    jobs: Vec<u16>,
    /// Block sizes
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', default_value = "4k", value_parser = block)]
    bs: Vec<u32>,
    #[command(flatten)]
    work: WorkArgs,
}

/// The way to the volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Via {
    /// NVMe/TCP
    Nvme,
    /// iSCSI
    Iscsi,
    /// The volume itself, without a protocol
    Volume,
    /// The drives themselves
    Drives,
}

/// Most points: beyond it nobody waits for the end.
const POINTS_MAX: usize = 400;

/// Runs it and shows it.
pub fn run(args: &SweepArgs, json: bool) -> Result<(), Failure> {
    let mut doc = Doc::begin("sweep");
    watch::listen()?;
    match &args.target {
        Some(url) => holds::check_targets(&as_single(args, url)?, &[url], json)?,
        None => holds::check_drives(&args.stage.all()?, args.stage.force, json)?,
    }
    let mut live = Live::new();
    let sweep = measure(args, &mut live, &mut doc.notes)?;
    live.clear();
    let text = sweep.screen(Terminal::for_stdout());
    doc.notes.extend(sweep.notes());
    let trouble = sweep.points.iter().find_map(|p| p.run.trouble.clone());
    doc.sweep = Some(sweep);
    finish(&doc, &text, json, args.work.html.as_deref())?;
    trouble.map_or(Ok(()), |why| Err(Failure::internal(why)))
}

#[derive(Parser)]
struct AsSingle {
    #[command(flatten)]
    single: SingleArgs,
}

/// What is looked at before a sweep of somebody's target writes there.
fn as_single(args: &SweepArgs, url: &Url) -> Result<SingleArgs, Failure> {
    let (url_text, mix) = (url.to_string(), args.work.mix.to_string());
    let mut words = vec!["bench", "--target", &url_text, "--rw", args.work.rw.word(), "--mix", &mix];
    for (option, value) in [("--host-nqn", &args.host_nqn), ("--iqn", &args.iqn)] {
        words.extend(value.iter().flat_map(|v| [option, &v[..]]));
    }
    let single = AsSingle::try_parse_from(words).map_err(|e| Failure::usage(e.to_string()))?.single;
    Ok(SingleArgs { region: args.work.region, force: args.stage.force, ..single })
}

/// The sessions of one point at somebody's target: as `millrace bench --target` opens them.
fn theirs(args: &SweepArgs, url: &Url, jobs: u16, depth: u16) -> Result<Vec<load::Config>, Failure> {
    let (jobs, depth, url_text) = (jobs.to_string(), depth.to_string(), url.to_string());
    let mut words = vec!["bench", "--target", &url_text, "--connections", &jobs, "--qd", &depth];
    for (option, value) in [("--host-nqn", &args.host_nqn), ("--iqn", &args.iqn)] {
        words.extend(value.iter().flat_map(|v| [option, &v[..]]));
    }
    let single = AsSingle::try_parse_from(words).map_err(|e| Failure::usage(e.to_string()))?.single;
    sessions(&single, url)
}

/// Runs every point.
pub fn measure(args: &SweepArgs, live: &mut Live, notes: &mut Vec<String>) -> Result<Sweep, Failure> {
    let SweepArgs { target, stage, via, depths, jobs, bs, work, .. } = args;
    let count = depths.len() * jobs.len() * bs.len();
    if count > POINTS_MAX {
        return Err(Failure::usage(format!(
            "--depths, --jobs, --bs: {count} measurements, at most {POINTS_MAX}"
        )));
    }
    let largest = bs.iter().copied().max().unwrap_or(4096);
    let deepest = u64::from(depths.iter().copied().max().unwrap_or(1))
        * u64::from(jobs.iter().copied().max().unwrap_or(1));
    if deepest > DEPTH_MAX && matches!(via, Via::Volume | Via::Drives) {
        return Err(Failure::usage(format!(
            "--depths, --jobs: {deepest} operations under way inside, at most {DEPTH_MAX}"
        )));
    }
    let small = bs.iter().copied().min().unwrap_or(4096);
    let mut place = None;
    let (shape, client) = stage.shape(deepest, largest);
    if target.is_none() {
        let drives = stage.all()?;
        if work.verify && drives.iter().any(|d| is_null(d)) {
            return Err(
                Failure::usage("--verify: a null drive forgets what was written").with_next("--drive ram:1G")
            );
        }
        live.step("pool");
        let mut stand = Stand::start(&shape)?;
        let bytes = stand.pool(&drives, 1, stage.force, WorkArgs::volume_block(small), live)?;
        let region = stage.region(work.region, bytes);
        if !work.unprepared && !drives.iter().all(|d| is_null(d)) {
            live.step("region");
            let whole = WorkArgs { verify: false, ramp: Duration::ZERO, ..work.clone() };
            let plan = Plan {
                prepare: true,
                read_percent: 100,
                ..whole.plan(1 << 20, region, Duration::from_millis(1))
            };
            inside(&stand, At::Volume, &plan, 4, &[], live)?;
        }
        let urls = stand.serve()?;
        place = Some((stand, drives, region, urls));
    }
    let mut points = vec![];
    for (block_bytes, jobs, depth) in
        bs.iter().flat_map(|b| jobs.iter().flat_map(move |j| depths.iter().map(move |d| (*b, *j, *d))))
    {
        if watch::interrupted() {
            break;
        }
        live.step(format!("{} of {count}: {} {jobs} × {depth}", points.len() + 1, print(block_bytes.into())));
        let run = match (&place, target) {
            (Some((stand, drives, region, urls)), _) => {
                let plan = work.plan(
                    block_bytes,
                    region / u64::from(block_bytes) * u64::from(block_bytes),
                    work.seconds,
                );
                let share = (jobs * depth / stage.shards).max(1);
                let over = |url: &Url, depth: u16| {
                    let plan = Plan { sessions: lanes(url, jobs, depth), ..plan.clone() };
                    outside(plan, client, stand.cpu(), live)
                };
                match via {
                    Via::Nvme => over(&urls[0], depth)?,
                    Via::Iscsi => over(&urls[1], depth)?,
                    Via::Volume => inside(stand, At::Volume, &plan, share, &[], live)?,
                    Via::Drives => inside(stand, At::Bare, &plan, share, drives, live)?,
                }
            }
            (None, Some(url)) => {
                let region = work.region.unwrap_or(0) / u64::from(block_bytes) * u64::from(block_bytes);
                let plan = work.plan(block_bytes, region, work.seconds);
                let plan = Plan { sessions: theirs(args, url, jobs, depth)?, ..plan };
                outside(plan, None, &Cpu::default(), live)?
            }
            (None, None) => return Err(Failure::usage("neither a target nor a drive is named")),
        };
        // A target that answers nothing does not do so at the next point either.
        let dead = run.total.ops == 0;
        if let (true, Some(url), Some(why)) = (dead && points.is_empty(), target, &run.trouble) {
            return Err(Failure::internal(format!("the target {url} does not answer: {why}"))
                .with_code(CommandFault::TargetNotAnswering)
                .with_next("millrace portal ls, on the head: it lists where it listens"));
        }
        points.push(Point { block_bytes, jobs, depth, run });
        if dead && target.is_some() {
            notes.push("The target stopped answering: the rest was not measured.".into());
            break;
        }
    }
    if let Some((stand, ..)) = &place {
        notes.extend(stand.notices());
    }
    let target = match (target, via) {
        (Some(url), _) => url.to_string(),
        (None, via) => {
            let way = match via {
                Via::Nvme => "NVMe/TCP to a volume on",
                Via::Iscsi => "iSCSI to a volume on",
                Via::Volume => "a volume on",
                Via::Drives => "bare",
            };
            format!("{way} {} × {}", stage.drives.join(", "), stage.copies)
        }
    };
    Ok(Sweep { target, rw: work.rw.word().into(), points })
}

/// Operations that a shard's load generator inside numbers.
const DEPTH_MAX: u64 = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::figures::Measured;
    use crate::bench::result::report::Figures;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        sweep: SweepArgs,
    }

    fn args(words: &str) -> SweepArgs {
        Words::try_parse_from(words.split_whitespace()).expect(words).sweep
    }

    #[test]
    fn depths_beyond_the_targets_queues_are_said_once() {
        let point = |depth: u16, granted| Point {
            block_bytes: 4096,
            jobs: 1,
            depth,
            run: Measured { depth: granted, ..Measured::default() },
        };
        let points = vec![point(64, None), point(128, Some(127)), point(256, Some(127))];
        let notes = Sweep { points, ..Sweep::default() }.notes();
        assert_eq!(
            notes.iter().filter(|n| n.starts_with("Depths above 127 are 127")).count(),
            1,
            "{notes:?}"
        );
    }

    #[test]
    fn every_point_is_measured() {
        for via in ["volume", "drives", "nvme", "iscsi"] {
            let words = format!(
                "sweep --drive null --via {via} --depths 1,4 --jobs 1,2 --bs 512,4k --seconds 0.02 --ramp 0"
            );
            let sweep = measure(&args(&words), &mut Live::new(), &mut vec![])
                .unwrap_or_else(|e| panic!("{via}: {e}"));
            assert_eq!(sweep.points.len(), 8);
            assert!(sweep.points.iter().all(|p| p.run.total.ops > 0 && p.run.errors == 0), "{via}");
            assert!(sweep.screen(Terminal::plain(120)).contains("◀ knee"));
        }
    }

    #[test]
    fn a_target_that_is_dead_is_told_once() {
        // A port that was free just now: nobody listens there.
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let words = format!(
            "sweep --target nvme://127.0.0.1:{port}/nqn.a/1 --depths 1,4 --jobs 1,2 --rw randread --seconds 0.1 --ramp 0"
        );
        let mut notes = vec![];
        let failure = measure(&args(&words), &mut Live::new(), &mut notes).expect_err("nobody listens");
        assert_eq!(
            (failure.exit as u8, failure.code.as_deref()),
            (1, Some("target_not_answering")),
            "{failure}"
        );
        assert!(failure.message.contains(&format!("127.0.0.1:{port}")) && notes.is_empty(), "{failure}");
    }

    #[test]
    fn the_knee_is_found_for_each_block_size() {
        let point = |block_bytes: u32, depth: u16, iops: f64| Point {
            block_bytes,
            jobs: 1,
            depth,
            run: Measured {
                total: Figures { iops, mean_us: f64::from(depth), ..Figures::default() },
                ..Measured::default()
            },
        };
        let sweep = Sweep {
            points: vec![
                point(4096, 1, 10.0),
                point(4096, 8, 97.0),
                point(4096, 64, 100.0),
                point(512, 1, 50.0),
                point(512, 64, 20.0),
            ],
            ..Sweep::default()
        };
        assert_eq!(sweep.knee(4096).map(|p| p.depth), Some(8));
        assert_eq!(sweep.knee(512).map(|p| p.depth), Some(1));
        let notes = sweep.notes().join("\n");
        assert!(notes.contains("only 40 % of the best rate is left"), "{notes}");
        assert!(notes.contains("98 % of its time in queues"), "{notes}");
    }

    #[test]
    fn too_many_points_are_refused_before_anything_is_made() {
        let many = (1..=30).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let words = format!("sweep --drive null --depths {many} --jobs {many}");
        let failure = measure(&args(&words), &mut Live::new(), &mut vec![]).expect_err("too many");
        assert!(failure.message.contains("900 measurements"), "{failure}");
    }
}
