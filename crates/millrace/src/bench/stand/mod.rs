//! Stand: a whole head in this process for as long as a benchmark takes: Steward, shards with load inside, a pool of
//! the drives named, a volume on it, and portals on this machine alone.
//!
//! Nothing here knows the order of the rooms: pools and volumes are made by orders to the Steward, as always, and so
//! drives that hold somebody's data are refused as always. The pool is destroyed at the end.

use super::target::Url;
use super::watch::{Cpu, Live, interrupted};
use crate::failure::{Exit, Failure};
use crate::words::house::{cannot_start, house_notice};
use crate::words::load::load_refusal;
use crate::words::machine::{drive_open_fault, shape_fault};
use base::view::Protocol;
use base::{Address, DriveId, DriveInfo};
use engine::inner::{Ask, At, Inner, Job, News, Tally};
use head::mail::{Mail, ManagerMail, ShardMail, StewardMail};
use head::order::{Answered, ArraySpec, HostSettings, Order, Reply, Status};
use head::path::direct::Place;
use head::path::stages::STAGES;
use head::steward::{Steward, StewardConfig};
use head::{Deadlines, Shard, ShardConfig};
use load::Plan;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use uring::{House, MachineConfig, RegionPart};

/// What a stand is made of.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Threads that carry the load.
    pub shards: u16,
    /// A core for each, as far as they go.
    pub cores: Vec<u16>,
    /// Memory of each shard, bytes.
    pub memory: u64,
}

/// Names of what a stand makes, all of it gone at its end.
pub const POOL: &str = "bench";
const VOLUME: &str = "v";
/// Our host at its portals.
pub const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:6d696c6c-7261-4365-8265-6e6368000001";
/// The same for iSCSI.
pub const IQN: &str = "iqn.2026-01.org.millrace:bench-host";
/// An order that makes something looks at drives, which may be slow.
const ORDER_TIMEOUT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);
/// Ports that are asked for before it is given up.
const PORTS_TRIED: u32 = 8;
const STEWARD_MEMORY: u64 = 64 << 20;

/// Commands that were timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timed {
    /// How many.
    pub commands: u64,
    /// Nanoseconds of each stage, summed.
    pub ns: [u64; STAGES],
}

/// The machines and the ways to them.
pub struct Stand {
    house: Option<House<Mail>>,
    answers: Receiver<(u64, Answered)>,
    shards: Vec<(Sender<Ask>, Receiver<News>)>,
    cpu: Cpu,
    dir: PathBuf,
    orders: u64,
    steward: bool,
    pool: bool,
}

impl Stand {
    /// Starts a head.
    pub fn start(shape: &Shape) -> Result<Self, Failure> {
        Self::build(shape, true)
    }
    /// Starts shards without a Steward, for loads on drives that belong to nobody.
    pub fn bare(shape: &Shape) -> Result<Self, Failure> {
        Self::build(shape, false)
    }

    fn build(shape: &Shape, steward: bool) -> Result<Self, Failure> {
        // Each stand has its own: a process may have several.
        static STANDS: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("millrace-bench-{}-{}", std::process::id(), STANDS.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        let (tell, answers) = channel();
        let (ready, is_ready) = channel();
        let manager = move |_: Address, mail: Mail| {
            let Mail::Manager(mail) = mail else { return };
            match *mail {
                ManagerMail::Answered { id, answer } => drop(tell.send((id, answer))),
                ManagerMail::Ready { .. } => drop(ready.send(())),
                _ => {}
            }
        };
        let mut machines: Vec<MachineConfig> = (0..shape.shards)
            .map(|n| MachineConfig {
                core: shape.cores.get(usize::from(n)).map(|c| usize::from(*c)),
                connections_max: 1024,
                ..MachineConfig::new(Address::Shard(n), shape.memory)
            })
            .collect();
        if steward {
            machines.push(MachineConfig {
                connections_max: 0,
                staging_buffers: 1,
                ..MachineConfig::new(Address::Steward, STEWARD_MEMORY)
            });
        }
        let config = uring::Config { machines, state_dir: Some(dir.clone()) };
        let mut house = House::build(config, manager).map_err(cannot_start)?;
        let extent = |n: u16| house.extent(Address::Shard(n)).expect("the shard is in the configuration");
        let extents: Vec<(u64, u64)> = (0..shape.shards).map(extent).collect();
        let (cpu, mut shards, count) = (Cpu::default(), vec![], shape.shards);
        for id in 0..count {
            let ((ask, asks), (news, told)) = (channel(), channel());
            let (extents, cpu) = (extents.clone(), cpu.clone());
            let make = move |part: RegionPart, entropy: [u64; 4]| {
                cpu.register();
                let (staging, memory) = part.split();
                let config = ShardConfig {
                    id,
                    shards: count,
                    memory,
                    staging,
                    seed: entropy[0],
                    deadlines: Deadlines::default(),
                    extents,
                    connections_max: 1024,
                    credits: head::CREDITS,
                    turn_pdus: head::TURN_PDUS,
                    flights: head::FLIGHTS,
                };
                Inner::new(Shard::new(config), (id, count), asks, news)
            };
            engine::spawn_inner(&mut house, Address::Shard(id), Box::new(make)).map_err(cannot_start)?;
            shards.push((ask, told));
        }
        if steward {
            let make = move |memory: RegionPart, entropy: [u64; 4]| {
                let (version, notices) = (env!("CARGO_PKG_VERSION").into(), vec![]);
                let shapes = BTreeMap::new();
                let hold = None;
                Steward::new(StewardConfig {
                    memory,
                    shards: count,
                    entropy,
                    version,
                    hold,
                    notices,
                    system: None,
                    state_directory: String::new(),
                    shapes,
                })
            };
            house.spawn(Address::Steward, make).map_err(cannot_start)?;
            let slow = |_| Failure::internal("the head in this process did not start");
            is_ready.recv_timeout(ORDER_TIMEOUT).map_err(slow)?;
        }
        house.make_resident_now();
        Ok(Self { house: Some(house), answers, shards, cpu, dir, orders: 0, steward, pool: false })
    }

    fn house(&self) -> &House<Mail> {
        self.house.as_ref().expect("it stands until it is dropped")
    }
    /// The CPU time of its shards.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }
    /// What the kernel did not allow: sentences.
    pub fn notices(&self) -> Vec<String> {
        let said = |n| crate::words::notice(&house_notice(n).into());
        self.house().watch().notices().into_iter().map(said).collect()
    }

    /// Gives an order and waits for the answer.
    pub fn order(&mut self, order: Order) -> Result<Reply, Failure> {
        self.orders += 1;
        let id = self.orders;
        let _ = self.house().post().send(Address::Steward, StewardMail::Order { id, order }.into());
        loop {
            let gone = |_| Failure::internal("the head in this process does not answer");
            let (of, answer) = self.answers.recv_timeout(ORDER_TIMEOUT).map_err(gone)?;
            if of == id {
                return answer.map_err(|r| {
                    let said = crate::words::why(&r.why);
                    let unsafe_one = r.kind() == head::order::ErrorKind::Unsafe;
                    let next = said.next.or_else(|| unsafe_one.then(|| FORCE.into()));
                    Failure { next, ..Failure::new(Exit::Refused, said.message) }
                });
            }
        }
    }

    /// Makes a pool of the drives, `legs` of them to each mirror, and a volume over nearly all of it. Waits until the
    /// legs are equal.
    pub fn pool(
        &mut self,
        drives: &[String],
        legs: usize,
        force: bool,
        block: u32,
        live: &Live,
    ) -> Result<u64, Failure> {
        let array = |d: &[String]| ArraySpec {
            layout: head::order::ArrayLayout::of(legs > 1),
            drives: d.to_vec(),
            weight: None,
        };
        let arrays = drives.chunks(legs).map(array).collect();
        let (chunk_bytes, block_bytes) = (None, Some(block));
        self.order(Order::PoolCreate {
            name: POOL.into(),
            arrays,
            chunk_bytes,
            block_bytes,
            measure: false,
            force,
        })?;
        self.pool = true;
        let snapshot = self.snapshot()?;
        let pool = snapshot.pools.first().ok_or_else(|| Failure::internal("the pool is not there"))?;
        // Whole granules of the pool, some kept for what the pool itself writes down.
        let bytes = (pool.bytes - pool.used_bytes) / VOLUME_UNIT * VOLUME_UNIT;
        if bytes == 0 {
            return Err(Failure::usage("the drives are too small for a volume").with_next("--drive ram:1G"));
        }
        self.order(Order::VolumeCreate {
            pool: POOL.into(),
            name: VOLUME.into(),
            bytes,
            block_bytes: Some(block),
        })?;
        self.wait_for_legs(live)?;
        Ok(bytes)
    }

    fn wait_for_legs(&mut self, live: &Live) -> Result<(), Failure> {
        loop {
            let snapshot = self.snapshot()?;
            let resyncs = snapshot.pools.iter().flat_map(|p| &p.arrays).filter_map(|a| a.resync.as_ref());
            let (done, total) = resyncs.fold((0, 0), |(d, t), r| (d + r.done_bytes, t + r.total_bytes));
            if total == 0 && snapshot.health == head::order::State::Optimal {
                live.clear();
                return Ok(());
            }
            live.say(&format!("legs are made equal: {} %", 100 * done / total.max(1)));
            if interrupted() {
                return Err(Failure::internal("ended by Ctrl-C"));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn snapshot(&mut self) -> Result<Status, Failure> {
        match self.order(Order::Status)? {
            Reply::Snapshot(snapshot) => Ok(*snapshot),
            other => Err(Failure::internal(format!("no status, but {other:?}"))),
        }
    }

    /// What was timed of the volume's commands so far.
    pub fn timed(&mut self) -> Result<Timed, Failure> {
        let snapshot = self.snapshot()?;
        let stages = snapshot.volumes.iter().flat_map(|v| [v.read_times, v.write_times]).flatten();
        Ok(stages.fold(Timed::default(), |mut sum, s| {
            sum.commands += s.all.total_timed;
            for (ns, (_, part)) in sum.ns.iter_mut().zip(s.parts()) {
                *ns += part.total_ns;
            }
            sum
        }))
    }

    /// Opens portals on this machine, lets our host in, and says where the volume is by either protocol.
    pub fn serve(&mut self) -> Result<[Url; 2], Failure> {
        let (nvme, iscsi) = (self.portal(Protocol::Nvme)?, self.portal(Protocol::Iscsi)?);
        let settings = HostSettings {
            nqns: Some(vec![NQN.into()]),
            iqns: Some(vec![IQN.into()]),
            ..HostSettings::default()
        };
        // The first pool may have brought a host of its own: ours has its own name.
        self.order(Order::HostAdd { name: "bench-host".into(), settings })?;
        let (volume, host) = (format!("{POOL}/{VOLUME}"), "bench-host".into());
        self.order(Order::Export { volume, host, lun: Some(0) })?;
        let snapshot = self.snapshot()?;
        let nsid = snapshot.volumes.first().map_or(1, |v| v.nsid);
        let system = &snapshot.system;
        Ok([
            Url::Nvme { peer: nvme, nqn: system.nqn.clone(), nsid },
            Url::Iscsi { peer: iscsi, iqn: system.iqn.clone(), lun: 0 },
        ])
    }

    /// Opens a portal at a port of this machine that nobody has.
    fn portal(&mut self, protocol: Protocol) -> Result<SocketAddr, Failure> {
        let mut refused = None;
        for _ in 0..PORTS_TRIED {
            let any = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr());
            let address = any.map_err(|e| Failure::internal(format!("no port of 127.0.0.1 is free: {e}")))?;
            match self.order(Order::PortalAdd { protocol, address, moves: None, head: None }) {
                Ok(_) => return Ok(address),
                // Somebody was quicker.
                Err(why) => refused = Some(why),
            }
        }
        Err(refused.expect("it was tried"))
    }

    /// Opens a drive that no pool uses.
    pub fn open(&self, drive: DriveId, spec: &str) -> Result<DriveInfo, Failure> {
        let (shape, bare) = head::steward::split_shape(spec)
            .map_err(|fault| Failure::usage(format!("{spec}: {}", shape_fault(&fault))))?;
        self.ask(0, Ask::Open(drive, bare.into(), shape));
        loop {
            match self.shards[0].1.recv_timeout(ORDER_TIMEOUT) {
                Ok(News::Opened(result)) => {
                    return result.map_err(|e| Failure::usage(drive_open_fault(&e.drive, &e.why)));
                }
                Ok(_) => {}
                Err(_) => return Err(Failure::internal(format!("{spec} could not be opened in time"))),
            }
        }
    }

    fn ask(&self, shard: usize, ask: Ask) {
        let _ = self.shards[shard].0.send(ask);
        // Any mail wakes it.
        let _ = self.house().post().send(Address::Shard(shard as u16), ShardMail::Report.into());
    }

    /// Puts load on it from inside, by all shards; `tell` hears how it goes.
    pub fn run(
        &self,
        at: At,
        plan: &Plan,
        depth: u16,
        mut tell: impl FnMut(&load::Progress),
    ) -> Result<Tally, Failure> {
        for shard in 0..self.shards.len() {
            let plan = Plan { seed: plan.seed + shard as u64, ..plan.clone() };
            self.ask(shard, Ask::Run(Box::new(Job { at: at.clone(), plan, depth })));
        }
        let mut all: Option<Tally> = None;
        let mut stopping = false;
        let mut refused = None;
        for (i, (_, news)) in self.shards.iter().enumerate() {
            let begin = Instant::now();
            let limit = plan.ramp + plan.time + ORDER_TIMEOUT;
            loop {
                if interrupted() && !stopping {
                    stopping = true;
                    (0..self.shards.len()).for_each(|s| self.ask(s, Ask::Stop));
                }
                match news.recv_timeout(LOOK) {
                    // One shard's progress stands for all: they do the same.
                    Ok(News::Progress(mut p)) if i == 0 => {
                        let n = self.shards.len() as f64;
                        (p.iops, p.mb_per_s, p.ops) = (p.iops * n, p.mb_per_s * n, p.ops * n as u64);
                        tell(&p);
                    }
                    Ok(News::Done(tally)) => {
                        match &mut all {
                            Some(all) => all.merge(&tally),
                            None => all = Some(*tally),
                        }
                        break;
                    }
                    Ok(News::Refused(why)) => {
                        refused = Some(why);
                        break;
                    }
                    Ok(News::Progress(_) | News::Opened(_)) => {}
                    // Preparing takes as long as it takes.
                    Err(RecvTimeoutError::Timeout) if plan.prepare || begin.elapsed() < limit => {}
                    Err(_) => return Err(Failure::internal("the load inside does not end")),
                }
            }
        }
        match (refused, all) {
            (Some(why), _) => Err(Failure::usage(load_refusal(why))),
            (None, Some(all)) => Ok(all),
            (None, None) => Err(Failure::internal("there is no shard")),
        }
    }

    /// The drives of `infos` as places of a bare load.
    pub fn places(infos: &[(DriveId, DriveInfo)]) -> Vec<Place> {
        infos.iter().map(|(id, info)| Place { drives: vec![*id], at: 0, bytes: info.bytes }).collect()
    }
}

/// A volume is made of whole granules.
const VOLUME_UNIT: u64 = 64 << 20;
const FORCE: &str = "--force, if what the drive holds may be lost";

impl Drop for Stand {
    fn drop(&mut self) {
        if self.pool {
            // Drives are left as nobody's. What fails here is said by the next pool that is made of them.
            let _ = self.order(Order::PoolDestroy { pool: POOL.into(), force: true, disconnect: true });
        }
        if self.steward {
            let _ = self.order(Order::Shutdown);
        }
        if let Some(house) = self.house.take() {
            let _ = house.stop();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
