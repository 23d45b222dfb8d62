//! `millrace bench`: load on a target over either protocol, verified and measured.
//!
//! Owns the command line and the printing; `load` decides what is done, `uring` does it. Knows of the
//! daemon nothing but its address: the target may be anybody's.

mod report;
mod target;

use crate::cli::put;
use crate::failure::Failure;
use base::Address;
use clap::{Args, ValueEnum};
use load::{Load, Mail, Pattern, Plan, Target};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use uring::{House, MachineConfig};

pub use report::{Line, Progress, Report, micros};
pub use target::Url;

/// `millrace bench`.
#[derive(Args, Debug)]
#[command(after_help = "\
The target loses what it holds in the region that is used, unless --rw only reads.

Examples:
  millrace bench --target nvme://10.0.0.1:4420/NQN/1 --rw randread --qd 128
  millrace bench --target iscsi://10.0.0.1:3260/IQN/0 --rw randrw --verify
  millrace bench --target nvme://10.0.0.1:4420/NQN/1 --rw write --bs 128k")]
pub struct BenchArgs {
    /// nvme://ADDRESS:PORT/NQN/NSID or iscsi://ADDRESS:PORT/IQN/LUN
    #[arg(long, value_name = "URL")]
    target: Url,
    /// Our host NQN [default: this machine's]
    #[arg(long, value_name = "NQN")]
    host_nqn: Option<String>,
    /// Our iSCSI name [default: this machine's]
    #[arg(long, value_name = "IQN")]
    iqn: Option<String>,
    /// What to do
    #[arg(long, value_enum, default_value_t = Mode::Randread, value_name = "MODE")]
    rw: Mode,
    /// Bytes of one operation
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "4k", value_parser = block)]
    bs: u32,
    /// Operations under way on each connection
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1023))]
    qd: u16,
    /// Connections
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    connections: u16,
    /// Reads among 100 operations, with randrw and rw
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, default_value_t = 70, value_parser = clap::value_parser!(u8).range(0..=100))]
    mix: u8,
    /// Stamp what is written and check what is read
    #[arg(long)]
    verify: bool,
    /// Write every place once before measuring
    #[arg(long)]
    prepare: bool,
    /// Read back and check everything written, at the end
    #[arg(long, requires = "verify")]
    read_back: bool,
    /// Seconds to measure (0: until Ctrl-C)
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 10)]
    seconds: u32,
    /// Load before it that is not counted, seconds
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 0)]
    ramp: u32,
    /// Writes are durable before they are answered
    #[arg(long)]
    fua: bool,
    /// Ask for header and data digests
    #[arg(long)]
    digests: bool,
    /// First byte of the volume that is used
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "0", value_parser = offset)]
    region_at: u64,
    /// Part of the volume that is used [default: the rest]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = api::size::parse)]
    region: Option<u64>,
    /// Seconds for which lost connections and refusals are retried
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 5)]
    patience: u32,
    /// File with the secret that we prove (CHAP)
    #[arg(long, value_name = "FILE")]
    chap_secret_file: Option<PathBuf>,
    /// Our CHAP user name [default: our IQN]
    #[arg(long, value_name = "NAME")]
    chap_user: Option<String>,
    /// File with the secret that the target proves (mutual CHAP)
    #[arg(long, value_name = "FILE", requires = "chap_secret_file")]
    mutual_secret_file: Option<PathBuf>,
    /// Decides every random choice
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1)]
    seed: u64,
    /// Print the progress every second; with --json, one object a line
    #[arg(long)]
    progress: bool,
    /// Stop when the process with this id, our parent, ends
    #[arg(long, value_name = "PID", hide = true)]
    die_with_parent: Option<u32>,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mode {
    /// Reads at random places
    Randread,
    /// Writes at random places
    Randwrite,
    /// Both, at random places
    Randrw,
    /// Reads in order
    Read,
    /// Writes in order
    Write,
    /// Both, in order
    Rw,
}

fn block(text: &str) -> Result<u32, String> {
    match api::size::parse(text)? {
        bytes if bytes.is_multiple_of(512) && bytes <= u64::from(load::IO_BYTES_MAX) => Ok(bytes as u32),
        _ => Err(format!(
            "\"{text}\" is not a multiple of 512 of at most {}",
            api::size::print(load::IO_BYTES_MAX.into())
        )),
    }
}

fn offset(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { api::size::parse(text) }
}

/// Runs it. Fails if anything went wrong at the target.
pub fn run(args: BenchArgs, json: bool) -> Result<(), Failure> {
    if let Some(parent) = args.die_with_parent {
        uring::process::die_with_parent(parent)
            .map_err(|_| Failure::internal(format!("the process {parent} that started this load is gone")))?;
    }
    let plan = plan(&args)?;
    plan.check().map_err(|e| Failure::usage(e).with_next("millrace bench --help"))?;
    // A connection more than files are allowed would fail late and strangely.
    let _ = uring::process::raise_files(65_536);
    let report = carry_out(plan, &args, json)?;
    let nothing = report.total.ops == 0 && report.failure().is_some();
    match (json, args.progress) {
        // A table of zeros hides the reason.
        (true, false) | (false, _) if nothing => {}
        (true, true) => put(&Line::Report(Box::new(report.clone())).text())?,
        (true, false) => put(&crate::cli::pretty(&report))?,
        (false, _) => put(&report.screen(crate::screen::Terminal::for_stdout()))?,
    }
    match report.failure() {
        None => Ok(()),
        Some(why) => {
            let next = hint(&why);
            Err(Failure::internal(why).with_next(next))
        }
    }
}

/// What helps against a failure. The target may be anybody's: if it is ours, it knows more.
fn hint(why: &str) -> &'static str {
    if why.contains("NQN") {
        "millrace status -v and millrace host ls, at the target, for its NQN and its hosts; then --target and --host-nqn"
    } else {
        "millrace status -v and millrace events, at the target"
    }
}

fn plan(args: &BenchArgs) -> Result<Plan, Failure> {
    let read_percent = match args.rw {
        Mode::Randread | Mode::Read => 100,
        Mode::Randwrite | Mode::Write => 0,
        Mode::Randrw | Mode::Rw => args.mix,
    };
    let pattern = match args.rw {
        Mode::Randread | Mode::Randwrite | Mode::Randrw => Pattern::Random,
        Mode::Read | Mode::Write | Mode::Rw => Pattern::Sequential,
    };
    let seconds = |n: u32| Duration::from_secs(n.into());
    Ok(Plan {
        io_bytes: args.bs,
        pattern,
        read_percent,
        fua: args.fua,
        region_at: args.region_at,
        region_bytes: args.region.unwrap_or(0),
        prepare: args.prepare,
        ramp: seconds(args.ramp),
        time: seconds(args.seconds),
        verify: args.verify,
        read_back: args.read_back,
        seed: args.seed,
        progress_every: if args.progress { Duration::from_secs(1) } else { Duration::ZERO },
        patience: seconds(args.patience),
        ..Plan::new(sessions(args)?)
    })
}

fn sessions(args: &BenchArgs) -> Result<Vec<load::Config>, Failure> {
    let secret = |file: &Option<PathBuf>, name: String, option: &str| -> Result<_, Failure> {
        let Some(file) = file else { return Ok(None) };
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("{option}: cannot read {}: {e}", file.display())))?;
        let secret = base::view::Secret(text.trim_end_matches(['\r', '\n']).as_bytes().to_vec());
        Ok(Some(load::iscsi_host::Credential { name, secret }))
    };
    match &args.target {
        Url::Nvme { peer, nqn, nsid } => {
            let host_nqn = args.host_nqn.clone().unwrap_or_else(target::machine_nqn);
            let mut config = load::nvme_host::Config::new(&host_nqn, target::host_id(&host_nqn), nqn);
            config.nsid = *nsid;
            config.queues = args.connections;
            config.depth = args.qd;
            config.header_digest = args.digests;
            config.data_digest = args.digests;
            Ok(vec![load::Config { peer: *peer, target: Target::Nvme(config) }])
        }
        Url::Iscsi { peer, iqn, lun } => {
            let initiator = args.iqn.clone().unwrap_or_else(target::machine_iqn);
            let user = args.chap_user.clone().unwrap_or_else(|| initiator.clone());
            let chap = secret(&args.chap_secret_file, user, "--chap-secret-file")?;
            let mutual = secret(&args.mutual_secret_file, iqn.clone(), "--mutual-secret-file")?;
            let session = |n: u16| {
                let mut config = load::iscsi_host::Config::new(&initiator, Some(iqn));
                // Sessions of one name at one target need different ISIDs (RFC 7143 10.1.1). Type 10b
                // (80h) is random, so that two loads on one machine do not reinstate each other's.
                let unique = (u64::from(std::process::id()) << 16 | u64::from(n)).to_be_bytes();
                config.isid = [0x80, unique[3], unique[4], unique[5], unique[6], unique[7]];
                config.lun = *lun;
                config.depth = args.qd;
                config.header_digest = args.digests;
                config.data_digest = args.digests;
                config.seed = args.seed ^ u64::from(std::process::id());
                config.chap.clone_from(&chap);
                config.mutual.clone_from(&mutual);
                load::Config { peer: *peer, target: Target::Iscsi(config) }
            };
            Ok((0..args.connections).map(session).collect())
        }
    }
}

/// Runs the plan on a reactor of its own. SIGINT ends the measurement; the report comes all the same.
fn carry_out(plan: Plan, args: &BenchArgs, json: bool) -> Result<Report, Failure> {
    let me = Address::Shard(0);
    let (bytes, slots) = Load::<uring::RegionPart>::needs(&plan);
    let machine = MachineConfig { connections_max: slots, ..MachineConfig::new(me, bytes + 65_536) };
    let (tell, mut news) = mpsc::unbounded_channel();
    let manager = move |_: Address, mail: Mail| {
        let _ = tell.send(mail);
    };
    let config = uring::Config { machines: vec![machine], state_dir: None };
    let mut house = House::build(config, manager).map_err(Failure::internal)?;
    let make = move |part: uring::RegionPart, _: [u64; 4]| {
        let arena = base::Memory::extent(&part);
        Load::new(part, arena, slots)
    };
    house.spawn(me, make).map_err(Failure::internal)?;
    let post = house.post();
    let gone = || Failure::internal("the load generator is gone");
    if !post.send(me, Mail::Start(Box::new(plan))) {
        return Err(gone());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::internal(format!("cannot listen to signals: {e}")))?;
    let report = runtime.block_on(async {
        let mut stopping = false;
        loop {
            let mail = tokio::select! {
                mail = news.recv() => mail.ok_or_else(gone)?,
                _ = tokio::signal::ctrl_c() => {
                    if stopping || !post.send(me, Mail::Stop) {
                        return Err(Failure::internal("ended by a second Ctrl-C"));
                    }
                    stopping = true;
                    continue;
                }
            };
            match mail {
                Mail::Done(report) => return Ok(Report::of(&report)),
                Mail::Refused(why) => return Err(Failure::usage(why).with_next("millrace bench --help")),
                Mail::Progress(p) => {
                    let progress = Progress::of(&p);
                    put(&if json { Line::Progress(progress).text() } else { progress.line(&args.target) })?;
                }
                Mail::Start(_) | Mail::Stop => {}
            }
        }
    })?;
    house
        .stop()
        .map_err(|p| Failure::internal(format!("the load generator ended by a panic: {}", p[0].message)))?;
    Ok(report)
}
