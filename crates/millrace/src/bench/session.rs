//! A load on a target of either protocol: its options, its sessions, and its run on a reactor of its own.

use super::options::{Mode, block, offset, seconds, some_or_no_end};
use super::target::{self, Url};
use super::watch::{self, Cpu, LOOK};
use crate::arguments::{count, count_in};
use crate::failure::Failure;
use crate::words::house::cannot_start;
use crate::words::load::plan_fault;
use base::Address;
use clap::Args;
use load::nvme_host::{Error, StatusField};
use load::{Down, RunFault};
use load::{Load, Mail, Plan, Target};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use uring::{House, MachineConfig};

/// `millrace bench --target`.
#[derive(Args, Clone, Debug)]
pub struct SingleArgs {
    /// The volume: nvme://ADDRESS:PORT/NQN/NSID or iscsi://ADDRESS:PORT/IQN/LUN
    #[arg(long, value_name = "URL", required = true)]
    pub target: Option<Url>,
    /// Further portals of the target; connections are spread over all portals
    #[arg(long, value_name = "ADDRESS:PORT,...", value_delimiter = ',')]
    pub portals: Vec<SocketAddr>,
    /// NQN to connect with [default: this machine's]
    #[arg(long, value_name = "NQN")]
    pub host_nqn: Option<String>,
    /// IQN to connect with [default: this machine's]
    #[arg(long, value_name = "IQN")]
    pub iqn: Option<String>,
    /// Kind of operations
    #[arg(long, value_enum, default_value_t = Mode::Randread, value_name = "MODE")]
    pub rw: Mode,
    /// Block size: bytes of one operation
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "4k", value_parser = block)]
    pub bs: u32,
    /// Queue depth: operations in flight on each connection
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 32, value_parser = count_in::<u16>(1..=1023))]
    pub qd: u16,
    /// Number of connections
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = count_in::<u16>(1..=128))]
    pub connections: u16,
    /// Percentage of reads, for randrw and rw
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, default_value_t = 70, value_parser = count_in::<u8>(0..=100))]
    pub mix: u8,
    /// Mark all written data, and check it when it is read
    #[arg(long)]
    pub verify: bool,
    /// Write the region once before measuring
    #[arg(long)]
    pub prepare: bool,
    /// Read and check everything written, at the end
    #[arg(long, requires = "verify")]
    pub read_back: bool,
    /// Seconds to measure, such as 10 or 0.5 (0: until Ctrl-C)
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "10", value_parser = some_or_no_end)]
    pub seconds: Duration,
    /// Seconds of load before the measurement starts
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "0", value_parser = seconds)]
    pub ramp: Duration,
    /// Milliseconds to wait after each operation
    #[arg(long, value_name = "MS", allow_hyphen_values = true, default_value_t = 0, value_parser = count_in::<u32>(0..=60_000))]
    pub think: u32,
    /// Write with FUA: data is durable before the answer
    #[arg(long)]
    pub fua: bool,
    /// Use header and data digests
    #[arg(long)]
    pub digests: bool,
    /// Connect without flow control of the submission queue, so that data read need no response behind them (NVMe/TCP)
    #[arg(long)]
    pub disable_sqflow: bool,
    /// Start of the region, as an offset in the volume
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "0", value_parser = offset)]
    pub region_at: u64,
    /// Size of the region of the volume to use [default: the rest]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = crate::arguments::size)]
    pub region: Option<u64>,
    /// Seconds to retry lost and refused connections
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 5, value_parser = count_in::<u32>(0..=u64::from(u32::MAX)))]
    pub patience: u32,
    /// File with the CHAP secret of this host
    #[arg(long, value_name = "FILE")]
    pub chap_secret_file: Option<PathBuf>,
    /// CHAP user name of this host [default: its IQN]
    #[arg(long, value_name = "NAME")]
    pub chap_user: Option<String>,
    /// File with the secret of the target, for mutual CHAP
    #[arg(long, value_name = "FILE", requires = "chap_secret_file")]
    pub mutual_secret_file: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = count)]
    pub seed: u64,
    /// Write even if the region holds data, which is lost
    #[arg(long)]
    pub force: bool,
    /// Print progress every second; with --json, one object per line
    #[arg(long)]
    pub progress: bool,
    /// Begin at this time: milliseconds since 1970-01-01 UTC
    #[arg(long, value_name = "MS", hide = true)]
    pub start_at: Option<u64>,
    /// Stop when the process with this id, our parent, ends
    #[arg(long, value_name = "PID", hide = true)]
    pub die_with_parent: Option<u32>,
}

impl SingleArgs {
    /// The words that another process is told to do the same: without target, seed and where it ends.
    pub fn words(&self, ramp_least: Duration) -> Vec<String> {
        let mut words: Vec<String> = vec![];
        let mut say = |option: &str, value: String| words.extend([option.to_string(), value]);
        say("--rw", self.rw.word().into());
        say("--bs", self.bs.to_string());
        say("--qd", self.qd.to_string());
        say("--connections", self.connections.to_string());
        say("--mix", self.mix.to_string());
        say("--seconds", self.seconds.as_secs_f64().to_string());
        say("--ramp", self.ramp.max(ramp_least).as_secs_f64().to_string());
        say("--region-at", self.region_at.to_string());
        say("--patience", self.patience.to_string());
        say("--think", self.think.to_string());
        for portal in &self.portals {
            say("--portals", portal.to_string());
        }
        for (option, value) in [
            ("--host-nqn", self.host_nqn.clone()),
            ("--iqn", self.iqn.clone()),
            ("--region", self.region.map(|n| n.to_string())),
            ("--chap-secret-file", self.chap_secret_file.as_ref().map(|p| p.display().to_string())),
            ("--chap-user", self.chap_user.clone()),
            ("--mutual-secret-file", self.mutual_secret_file.as_ref().map(|p| p.display().to_string())),
        ] {
            if let Some(value) = value {
                say(option, value);
            }
        }
        for (flag, set) in [
            ("--verify", self.verify),
            ("--prepare", self.prepare),
            ("--read-back", self.read_back),
            ("--fua", self.fua),
            ("--digests", self.digests),
            ("--disable-sqflow", self.disable_sqflow),
        ] {
            words.extend(set.then(|| flag.to_string()));
        }
        words
    }
}

/// What helps against a failure. The target may be anybody's: if it is ours, it knows more.
pub fn hint(end: &load::End) -> &'static str {
    let about_names = match end {
        load::End::Failed(RunFault::Down { why: Down::Nvme(Error::Refused { status, .. }), .. }) => {
            [StatusField::CONNECT_PARAMETERS, StatusField::CONNECT_HOST].contains(&status.code())
        }
        load::End::Failed(_) | load::End::Completed | load::End::Stopped => false,
    };
    if about_names {
        "millrace status -v and millrace host ls, at the target, for its NQN and its hosts; then --target and --host-nqn"
    } else {
        "millrace status -v and millrace events, at the target"
    }
}

/// What a load does in its sessions.
pub fn plan(args: &SingleArgs, sessions: Vec<load::Config>) -> Plan {
    let (pattern, read_percent) = args.rw.shape(args.mix);
    Plan {
        io_bytes: args.bs,
        pattern,
        read_percent,
        fua: args.fua,
        region_at: args.region_at,
        region_bytes: args.region.unwrap_or(0),
        prepare: args.prepare,
        ramp: args.ramp,
        think: Duration::from_millis(args.think.into()),
        time: args.seconds,
        verify: args.verify,
        read_back: args.read_back,
        seed: args.seed,
        progress_every: if args.progress { Duration::from_secs(1) } else { Duration::ZERO },
        patience: Duration::from_secs(args.patience.into()),
        ..Plan::new(sessions)
    }
}

/// The sessions that a load on `url` needs.
pub fn sessions(args: &SingleArgs, url: &Url) -> Result<Vec<load::Config>, Failure> {
    let secret = |file: &Option<PathBuf>, name: String, option: &str| -> Result<_, Failure> {
        let Some(file) = file else { return Ok(None) };
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("{option}: cannot read {}: {e}", file.display())))?;
        let secret = base::view::Secret(text.trim_end_matches(['\r', '\n']).as_bytes().to_vec());
        Ok(Some(load::iscsi_host::Credential { name, secret }))
    };
    let spread = |peer: &SocketAddr| [&[*peer][..], &args.portals].concat();
    match url {
        Url::Nvme { peer, nqn, nsid } => {
            let host_nqn = args.host_nqn.clone().unwrap_or_else(target::machine_nqn);
            let mut config = load::nvme_host::Config::new(&host_nqn, target::host_id(&host_nqn), nqn);
            config.nsid = *nsid;
            config.depth = args.qd;
            config.header_digest = args.digests;
            config.data_digest = args.digests;
            config.flow_control = !args.disable_sqflow;
            let portals = spread(peer);
            let (each, more) =
                (args.connections / portals.len() as u16, usize::from(args.connections) % portals.len());
            let queues = |n: usize| each + u16::from(n < more);
            let session = |(n, peer): (usize, &SocketAddr)| {
                let config = load::nvme_host::Config { queues: queues(n), ..config.clone() };
                load::Config { peer: *peer, target: Target::Nvme(config) }
            };
            Ok(portals.iter().enumerate().filter(|(n, _)| queues(*n) > 0).map(session).collect())
        }
        Url::Iscsi { peer, iqn, lun } => {
            let initiator = args.iqn.clone().unwrap_or_else(target::machine_iqn);
            let user = args.chap_user.clone().unwrap_or_else(|| initiator.clone());
            let chap = secret(&args.chap_secret_file, user, "--chap-secret-file")?;
            let mutual = secret(&args.mutual_secret_file, iqn.clone(), "--mutual-secret-file")?;
            let portals = spread(peer);
            let session = |n: u16| {
                let peer = portals[usize::from(n) % portals.len()];
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
                load::Config { peer, target: Target::Iscsi(config) }
            };
            Ok((0..args.connections).map(session).collect())
        }
    }
}

/// Runs the plan on a reactor of its own, bound to `core`, whose CPU time `cpu` counts. SIGINT ends the measurement;
/// the report comes all the same.
pub fn carry_out(
    plan: Plan,
    core: Option<u16>,
    cpu: &Cpu,
    mut tell: impl FnMut(&load::Progress) -> Result<(), Failure>,
) -> Result<load::Report, Failure> {
    let me = Address::Shard(0);
    let (bytes, slots) = Load::<uring::RegionPart>::needs(&plan);
    let machine = MachineConfig {
        connections_max: slots,
        core: core.map(usize::from),
        ..MachineConfig::new(me, bytes + 65_536)
    };
    let (say, news) = channel();
    let manager = move |_: Address, mail: Mail| drop(say.send(mail));
    let config = uring::Config { machines: vec![machine], state_dir: None };
    let mut house = House::build(config, manager).map_err(cannot_start)?;
    let cpu = cpu.clone();
    let make = move |part: uring::RegionPart, _: [u64; 4]| {
        cpu.register();
        let arena = base::Memory::extent(&part);
        Load::new(part, arena, slots)
    };
    engine::spawn_load(&mut house, me, Box::new(make)).map_err(cannot_start)?;
    house.make_resident_now();
    let post = house.post();
    let gone = || Failure::internal("the load generator is gone");
    if !post.send(me, Mail::Start(Box::new(plan))) {
        return Err(gone());
    }
    let mut stopping = false;
    let report = loop {
        match watch::interrupts() {
            0 => {}
            1 if stopping => {}
            1 => {
                stopping = true;
                let _ = post.send(me, Mail::Stop);
            }
            _ => return Err(Failure::internal("ended by a second Ctrl-C")),
        }
        match news.recv_timeout(LOOK) {
            Ok(Mail::Done(report)) => break report,
            Ok(Mail::Refused(why)) => {
                return Err(Failure::usage(plan_fault(&why)).with_next("millrace bench --help"));
            }
            Ok(Mail::Progress(p)) => tell(&p)?,
            Ok(Mail::Start(_) | Mail::Stop) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(gone()),
        }
    };
    house
        .stop()
        .map_err(|p| Failure::internal(format!("the load generator ended by a panic: {}", p[0].message)))?;
    Ok(*report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SingleArgs,
    }

    /// Each session's portal, with its connections.
    fn spread(words: &str) -> Vec<(u16, u16)> {
        let args = Line::parse_from(std::iter::once("bench").chain(words.split(' '))).args;
        let all = sessions(&args, args.target.as_ref().expect("it is there")).expect("good");
        all.iter().map(|s| (s.peer.port(), s.io_links())).collect()
    }

    #[test]
    fn connections_are_spread_over_all_portals() {
        let nvme = "--target nvme://127.0.0.1:1/nqn.a/1 --portals 127.0.0.1:2,127.0.0.1:3";
        assert_eq!(spread(&format!("{nvme} --connections 5")), [(1, 2), (2, 2), (3, 1)]);
        assert_eq!(spread(nvme), [(1, 1)]);
        let iscsi = "--target iscsi://127.0.0.1:1/iqn.a/0 --portals 127.0.0.1:2 --connections 3";
        assert_eq!(spread(iscsi), [(1, 1), (2, 1), (1, 1)]);
    }
}
