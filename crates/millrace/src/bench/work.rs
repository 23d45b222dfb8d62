//! What the benchmarks of this process have in common: the load, the drives, the cores.

use super::options::{Mode, seconds, some_seconds};
use super::result::figures::Measured;
use super::session;
use super::stand::{IQN, NQN, Shape, Stand};
use super::target::{self, Url};
use super::watch::{Cpu, Live, Window};
use crate::arguments::{count, count_in};
use crate::failure::Failure;
use crate::words::load::plan_fault;
use base::DriveKind;
use clap::Args;
use engine::inner::At;
use load::{Plan, Target};
use std::path::PathBuf;
use std::time::Duration;

/// The load.
#[derive(Args, Clone, Debug)]
pub struct WorkArgs {
    /// Kind of operations
    #[arg(long, value_enum, default_value_t = Mode::Randread, value_name = "MODE")]
    pub rw: Mode,
    /// Percentage of reads, for randrw and rw
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, default_value_t = 70, value_parser = count_in::<u8>(0..=100))]
    pub mix: u8,
    /// Seconds of each measurement
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "3", value_parser = some_seconds)]
    pub seconds: Duration,
    /// Seconds of load before each measurement starts
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "0.5", value_parser = seconds)]
    pub ramp: Duration,
    /// Mark all written data, and check it when it is read
    #[arg(long)]
    pub verify: bool,
    /// Write with FUA: data is durable before the answer
    #[arg(long)]
    pub fua: bool,
    /// Size of the region of the volume to use [default: by the kind of drives]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = crate::arguments::size)]
    pub region: Option<u64>,
    /// Do not write the region before it is read
    #[arg(long)]
    pub unprepared: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = count)]
    pub seed: u64,
    /// Write a report with plots to this file, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The drives, and the head that is made on them.
#[derive(Args, Clone, Debug)]
pub struct StageArgs {
    /// A drive: a block device, a file, ram:SIZE, null or null:SIZE; shape:OPTIONS@ may be in front
    #[arg(long = "drive", value_name = "DRIVE")]
    pub drives: Vec<String>,
    /// Number of drives to make of each null or ram drive
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = count_in::<u16>(1..=128))]
    pub copies: u16,
    /// Use drives even if they hold data, which is lost
    #[arg(long)]
    pub force: bool,
    /// Number of shards (threads) that serve the load
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = count_in::<u16>(1..=64))]
    pub shards: u16,
    /// Cores of the shards, then of the load generator [default: the first ones, and the last]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = count_in::<u16>(0..=u64::from(u16::MAX)))]
    pub cores: Vec<u16>,
}

impl WorkArgs {
    /// The load on `region_bytes`, with blocks of `io_bytes`.
    pub fn plan(&self, io_bytes: u32, region_bytes: u64, time: Duration) -> Plan {
        let (pattern, read_percent) = self.rw.shape(self.mix);
        // Often enough that the window of CPU times is nearly all of the measurement.
        let progress_every = (time / 8).clamp(Duration::from_millis(10), Duration::from_millis(250));
        Plan {
            io_bytes,
            pattern,
            read_percent,
            fua: self.fua,
            region_bytes,
            ramp: self.ramp,
            time,
            verify: self.verify,
            seed: self.seed,
            progress_every,
            patience: Duration::from_secs(5),
            ..Plan::new(vec![])
        }
    }
    /// Blocks of the volume that carries it.
    pub fn volume_block(io_bytes: u32) -> u32 {
        if io_bytes.is_multiple_of(4096) { 4096 } else { 512 }
    }
}

impl StageArgs {
    /// Every drive.
    pub fn all(&self) -> Result<Vec<String>, Failure> {
        if self.drives.is_empty() {
            return Err(Failure::usage("no drive is named").with_next("--drive null, or --drive /dev/…"));
        }
        let mut all = vec![];
        for given in &self.drives {
            let spec = crate::arguments::drive_path(&whole(given));
            let named = DriveKind::of(plain(&spec)) == DriveKind::Ram { named: true };
            let many = in_process(&spec) && !named;
            if self.copies > 1 && !many {
                return Err(Failure::usage(format!(
                    "--copies: {given} is one drive, and cannot be taken twice"
                ))
                .with_next("name every drive by a --drive of its own"));
            }
            all.extend(std::iter::repeat_n(spec, usize::from(self.copies)));
        }
        Ok(all)
    }
    /// The part of a volume of `bytes` that is used unless the user says: enough to miss caches, little enough to be
    /// written in a moment.
    pub fn region(&self, asked: Option<u64>, bytes: u64) -> u64 {
        let usual = if self.drives.iter().all(|d| is_null(d)) { 64 << 30 } else { 1 << 30 };
        asked.unwrap_or(usual).min(bytes)
    }
    /// The shards, with memory for so many operations of `io_bytes`, and the core of the load generator.
    pub fn shape(&self, operations: u64, io_bytes: u32) -> (Shape, Option<u16>) {
        let cores = if self.cores.is_empty() { crate::config::cores_allowed() } else { self.cores.clone() };
        let shards = usize::from(self.shards);
        // Without a core for each it is better not to bind any.
        let (own, client) = match cores.len() {
            n if n > shards => (cores[..shards].to_vec(), Some(cores[n - 1])),
            n if n == shards => (cores, None),
            _ => (vec![], None),
        };
        let memory = (128 << 20) + 4 * operations * u64::from(io_bytes.max(4096)).next_power_of_two();
        (Shape { shards: self.shards, cores: own, memory }, client)
    }
}

/// `null` is a short word for a large one.
fn whole(spec: &str) -> String {
    match spec.strip_suffix("null") {
        Some(before) if before.is_empty() || before.ends_with('@') => format!("{before}null:1T"),
        _ => spec.into(),
    }
}

/// Without its shape.
fn plain(spec: &str) -> &str {
    if spec.starts_with("shape:") { spec.split_once('@').map_or(spec, |(_, d)| d) } else { spec }
}

/// Whether it is a drive that forgets all.
pub fn is_null(spec: &str) -> bool {
    let spec = plain(spec);
    spec == "null" || DriveKind::of(spec) == DriveKind::Null
}

/// Whether it holds nobody's data for certain.
pub fn in_process(spec: &str) -> bool {
    is_null(spec) || DriveKind::of(plain(spec)).is_volatile()
}

/// Sessions with one of a stand's portals: `jobs` connections of depth `depth`.
pub fn lanes(url: &Url, jobs: u16, depth: u16) -> Vec<load::Config> {
    match url {
        Url::Nvme { peer, nqn, nsid } => {
            let mut config = load::nvme_host::Config::new(NQN, target::host_id(NQN), nqn);
            (config.nsid, config.queues, config.depth) = (*nsid, jobs, depth);
            vec![load::Config { peer: *peer, target: Target::Nvme(config) }]
        }
        Url::Iscsi { peer, iqn, lun } => {
            let session = |n: u16| {
                let mut config = load::iscsi_host::Config::new(IQN, Some(iqn));
                let [a, b] = n.to_be_bytes();
                // Type 10b: random (RFC 7143 10.1.1); ours are the only sessions there.
                config.isid = [0x80, 0, 0, 0, a, b];
                (config.lun, config.depth) = (*lun, depth.min(ISCSI_DEPTH_MAX));
                load::Config { peer: *peer, target: Target::Iscsi(config) }
            };
            (0..jobs).map(session).collect()
        }
    }
}

/// Commands that a session of ours may have under way at our own target.
pub const ISCSI_DEPTH_MAX: u16 = 128;

/// Runs `plan` from inside; `depth` operations for each shard.
pub fn inside(
    stand: &Stand,
    at: At,
    plan: &Plan,
    depth: u16,
    names: &[String],
    live: &Live,
) -> Result<Measured, Failure> {
    let mut window = Window::default();
    let tally = stand.run(at, plan, depth, |p| {
        window.see(p, stand.cpu(), &Cpu::default());
        live.progress(p);
    })?;
    Ok(Measured::of_tally(&tally, names, window.spent()))
}

/// Runs `plan` over the network, by a load generator on `core`. `target`: threads whose CPU time is to be told.
pub fn outside(plan: Plan, core: Option<u16>, target: &Cpu, live: &Live) -> Result<Measured, Failure> {
    plan.check().map_err(|why| Failure::usage(plan_fault(&why)))?;
    let (client, mut window) = (Cpu::default(), Window::default());
    let report = session::carry_out(plan, core, &client.clone(), |p| {
        window.see(p, target, &client);
        live.progress(p);
        Ok(())
    })?;
    Ok(Measured::of_report(&report, window.spent()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(drives: &[&str], copies: u16) -> StageArgs {
        let drives = drives.iter().map(|d| d.to_string()).collect();
        StageArgs { drives, copies, force: false, shards: 1, cores: vec![] }
    }

    #[test]
    fn null_is_a_large_drive_also_behind_a_shape() {
        let all = stage(&["null", "shape:latency-us=9@null", "null:4G"], 1).all().expect("drives");
        assert_eq!(all, ["null:1T", "shape:latency-us=9@null:1T", "null:4G"]);
        assert!(all.iter().all(|d| is_null(d) && in_process(d)));
        assert!(!is_null("ram:1G") && in_process("shape:iops-max=5@ram:1G") && !in_process("/dev/null"));
    }

    #[test]
    fn copies_are_for_drives_that_can_be_taken_twice() {
        assert_eq!(stage(&["ram:64M"], 3).all().expect("three").len(), 3);
        for one in ["/dev/sdb", "ram:a,64M", "file:/x?size=1G"] {
            assert!(stage(&[one], 2).all().expect_err(one).message.contains("cannot be taken twice"));
            assert_eq!(stage(&[one], 1).all().expect("one").len(), 1);
        }
        assert!(stage(&[], 1).all().expect_err("none").message.contains("no drive"));
    }

    #[test]
    fn the_load_generator_has_a_core_of_its_own_if_there_is_one() {
        let with =
            |cores: &[u16], shards: u16| StageArgs { cores: cores.to_vec(), shards, ..stage(&["null"], 1) };
        let (shape, client) = with(&[2, 5, 7], 1).shape(32, 4096);
        assert_eq!((shape.cores, client), (vec![2], Some(7)));
        let (shape, client) = with(&[2, 5], 2).shape(32, 4096);
        assert_eq!((shape.cores, client), (vec![2, 5], None));
        let (shape, client) = with(&[2], 2).shape(32, 4096);
        assert_eq!((shape.cores, client), (vec![], None));
    }
}
