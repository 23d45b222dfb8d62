//! One seed: a system is built by orders, hosts work, faults happen; then faults stop and everything must
//! converge; then the checkers look.
//!
//! ```text
//! boot ─▶ orders (pool, volume, hosts, portals, exports) ─▶ work and faults ─▶ calm: faults off,
//! drives returned ─▶ every command ended, every leg in sync ─▶ legs equal, nothing leaked
//! ```

use crate::disk::{Disk, SECTOR};
use crate::host::{Habits, Host, Ledger};
use crate::memory::SimMemory;
use crate::volume::{Broken, Volume};
use crate::world::{HeadMachine, Kindness, Step, World};
use array::format::{LABEL_AT, Label, RECORD_BYTES};
use base::view::Protocol;
use base::{Address, Duration, Instant, Prng, Slice};
use head::mail::Mail;
use head::order::{Answered, ArraySpec, DriveRole, HostSettings, Order, Reply, Snapshot, State};
use head::steward::{Steward, StewardConfig};
use head::{Deadlines, Shard, ShardConfig};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const MIB: u64 = 1 << 20;
/// Virtual time in which everything must be well again once faults have stopped.
const CONVERGENCE: Duration = Duration::from_secs(300);
/// Longest time that a command may take, whatever one leg does: promise 7, and the network's part.
const READ_MAX: Duration = Duration::from_millis(2100);
/// See `READ_MAX`.
const WRITE_MAX: Duration = Duration::from_millis(5100);
/// Events of one run; a healthy one has a hundredth of it.
const STEPS_MAX: u64 = 10_000_000;
/// Addresses of our portals.
const NVME: &str = "10.0.0.254:4420";
const ISCSI: &str = "10.0.0.254:3260";

/// What kind of trouble a seed makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The head is killed and comes back.
    Kill,
    /// The power goes, for the head and its drives.
    PowerCut,
    /// A link is cut.
    Cut,
    /// A drive takes operations and does not answer for a while.
    Hang,
    /// A drive goes away and comes back.
    Drop,
    /// A drive fails writes for a while.
    WriteErrors,
    /// A drive fails reads for a while.
    ReadErrors,
}

/// Puts something between the world and a shard: a test that watches it.
pub type Wrap = fn(Shard<SimMemory>) -> Box<dyn HeadMachine>;

/// Everything that a seed decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// Shards of the head.
    pub shards: u16,
    /// Legs of each mirror.
    pub legs: usize,
    /// Mirrors.
    pub mirrors: usize,
    /// Drives have volatile caches.
    pub volatile: bool,
    /// One host each.
    pub hosts: Vec<Protocol>,
    /// Commands of each host.
    pub commands: u32,
    /// What may go wrong.
    pub troubles: Vec<Trouble>,
    /// Mean time between troubles.
    pub pause: Duration,
    /// Most troubles, and among them most ends of the head: a head that lives for a few milliseconds at
    /// a time gets nowhere, and teaches nothing that the first dozen lives did not.
    pub troubles_max: u32,
    /// See `troubles_max`.
    pub kills_max: u32,
    /// Memory of each shard, bytes. Plenty: with less than 3 MiB heads come to a stop (docs/faults.md).
    pub shard_bytes: u64,
    /// How kind the world is.
    pub kindness: Kindness,
    /// What hosts do.
    pub habits: Habits,
    /// Keep a story.
    pub tell: bool,
    /// Tell the whole story at once, as it happens, on standard error.
    pub trace: bool,
    /// Shards as they are, if None.
    pub wrap: Option<Wrap>,
}

impl Options {
    /// The options that belong to `seed`: each seed is another world.
    pub fn swarm(seed: u64) -> Self {
        let mut rng = Prng::new(seed ^ 0x5157_4152_4d00);
        let all = [
            Trouble::Kill,
            Trouble::PowerCut,
            Trouble::Cut,
            Trouble::Hang,
            Trouble::Drop,
            Trouble::WriteErrors,
            Trouble::ReadErrors,
        ];
        let troubles = all.into_iter().filter(|_| rng.chance(2, 5)).collect();
        let protocols = [Protocol::Nvme, Protocol::Iscsi];
        let hosts = (0..2).map(|_| *rng.pick(&protocols)).collect();
        let legs = if rng.chance(3, 4) { 2 } else { 3 };
        Self {
            shard_bytes: 24 * MIB,
            seed,
            shards: rng.between(1, 3) as u16,
            legs,
            mirrors: if legs == 2 { rng.between(1, 2) as usize } else { 1 },
            volatile: rng.chance(1, 2),
            hosts,
            commands: 1000,
            troubles,
            pause: Duration::from_millis(rng.between(3, 80)),
            troubles_max: 150,
            kills_max: 12,
            kindness: Kindness {
                drive_us: rng.between(20, 2000),
                link_us: rng.between(10, 500),
                split_permille: rng.below(300),
            },
            habits: Habits {
                commands: 1000,
                depth: rng.between(1, 16) as u32,
                blocks: rng.between(8, 400),
                write_permille: rng.between(200, 800),
                flush_permille: rng.below(60),
                zero_permille: rng.below(60),
                abort_permille: rng.below(30),
                fua_permille: rng.below(200),
                blocks_max: rng.between(1, 8),
                reset_ppm: rng.below(1500),
            },
            tell: false,
            trace: false,
            wrap: None,
        }
    }
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Hash of everything that happened.
    pub hash: u64,
    /// Virtual time that passed.
    pub time: Duration,
    /// Commands that ended well, in an error, or with their connection.
    pub good: u64,
    /// See `good`.
    pub failed: u64,
    /// See `good`.
    pub lost: u64,
    /// Troubles made.
    pub troubles: u32,
}

/// A promise was broken, or nothing goes on.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What is wrong, one sentence.
    pub what: String,
    /// The last events, if they were kept.
    pub story: Vec<String>,
}

#[derive(PartialEq, Eq, Clone, Copy, Debug)]
enum Stage {
    Booting,
    Ordering,
    Working,
    Calming { since: Instant },
}

const ALARM_TROUBLE: u64 = 1;
const ALARM_BOOT: u64 = 2;
const ALARM_LOOK: u64 = 3;
const ALARM_HEAL: u64 = 1000;

struct Run {
    options: Options,
    world: World,
    rng: Prng,
    stage: Stage,
    down: bool,
    ready: bool,
    orders: VecDeque<Order>,
    asked: u64,
    waiting: Option<u64>,
    volume: Rc<RefCell<Volume>>,
    ledgers: Vec<Rc<RefCell<Ledger>>>,
    set_up: bool,
    lives: u64,
    troubles: u32,
    kills: u32,
    steps: u64,
    snapshot: Option<Box<Snapshot>>,
    /// What `status` said when it was last looked at.
    last_look: Option<Box<Snapshot>>,
    at_rest_since: Option<Instant>,
    restless: String,
    done: bool,
}

/// Runs one seed to its end.
pub fn run(options: Options) -> Result<Outcome, Box<Failure>> {
    let seed = options.seed;
    let mut world = World::new(seed, options.kindness.clone());
    world.tell = options.tell || options.trace;
    world.trace = options.trace;
    for d in 0..options.mirrors * options.legs {
        world.disks.push(Disk::new(format!("d{d}"), 64 * MIB + d as u64 * MIB, options.volatile));
    }
    let mut run = Run {
        rng: Prng::new(seed ^ 0x7472_6f75_626c),
        options,
        world,
        stage: Stage::Booting,
        down: true,
        ready: false,
        orders: VecDeque::new(),
        asked: 0,
        waiting: None,
        volume: Rc::default(),
        ledgers: vec![],
        set_up: false,
        lives: 0,
        troubles: 0,
        kills: 0,
        steps: 0,
        snapshot: None,
        last_look: None,
        at_rest_since: None,
        restless: String::new(),
        done: false,
    };
    run.boot();
    while !run.done {
        if let Err(what) = run.step() {
            let story = run.world.story.iter().cloned().collect();
            return Err(Box::new(Failure { seed, what, story }));
        }
    }
    let sum = |f: fn(&Ledger) -> u64| run.ledgers.iter().map(|l| f(&l.borrow())).sum();
    Ok(Outcome {
        hash: run.world.hash(),
        time: run.world.now().since(Instant(0)),
        good: sum(|l| l.good),
        failed: sum(|l| l.failed),
        lost: sum(|l| l.lost),
        troubles: run.troubles,
    })
}

impl Run {
    fn boot(&mut self) {
        self.lives += 1;
        (self.down, self.ready, self.waiting) = (false, false, None);
        let shards = self.options.shards;
        let extents: Vec<(u64, u64)> =
            (0..shards).map(|s| ((1 + u64::from(s)) << 32, self.options.shard_bytes)).collect();
        let seed = self.options.seed.wrapping_mul(1000) + self.lives;
        for id in 0..shards {
            let (at, bytes) = extents[usize::from(id)];
            let staging = at + bytes;
            let shard = Shard::new(ShardConfig {
                id,
                shards,
                memory: SimMemory::new(at, bytes),
                staging: SimMemory::new(staging, MIB),
                seed: seed + u64::from(id),
                deadlines: Deadlines::default(),
                extents: extents.clone(),
            });
            let shard = match self.options.wrap {
                Some(wrap) => wrap(shard),
                None => Box::new(shard),
            };
            self.world.put_head(Address::Shard(id), shard, Slice::new(staging, MIB as u32));
        }
        let memory = SimMemory::new(1 << 48, 8 * MIB);
        let steward = Steward::new(StewardConfig {
            memory,
            shards,
            entropy: [seed, 1, 2, 3],
            version: "sim".into(),
            hold: None,
            notices: vec![],
        });
        let id = self.world.put_head(Address::Steward, Box::new(steward), Slice::new(1 << 50, 1 << 16));
        self.world.nudge(id);
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(format!(
                "it does not end: {STEPS_MAX} events, and still {:?}{}",
                self.stage,
                self.ills()
            ));
        }
        match self.world.step() {
            Step::Happened => {}
            Step::Alarm(mark) => self.alarm(mark),
            Step::ToManager(Mail::Ready { .. }) => {
                self.ready = true;
                if self.stage == Stage::Booting {
                    self.stage = Stage::Ordering;
                    self.orders = self.setup();
                }
            }
            Step::ToManager(Mail::Answered { id, answer }) if self.waiting == Some(id) => {
                self.waiting = None;
                self.answered(answer)?;
            }
            Step::ToManager(Mail::Answered { .. } | Mail::Stopped | Mail::Happened(_)) => {}
            Step::ToManager(other) => return Err(format!("the manager got a strange letter: {other:?}")),
            Step::Quiet => return Err("nothing will ever happen again".into()),
        }
        if self.ready && !self.down && self.waiting.is_none() {
            self.order();
        }
        for (i, ledger) in self.ledgers.iter().enumerate() {
            if self.world.tell {
                let lines = ledger.borrow_mut().told.as_mut().map(core::mem::take).unwrap_or_default();
                lines.into_iter().for_each(|l| self.world.say(|| format!("host {i}: {l}")));
            }
            if let Some(broken) = ledger.borrow().broken.first() {
                return Err(tell(i, broken));
            }
        }
        self.progress()
    }

    /// The orders that build the system, as an operator would give them.
    fn setup(&mut self) -> VecDeque<Order> {
        let legs = self.options.legs;
        let arrays = (0..self.options.mirrors)
            .map(|m| ArraySpec {
                mirror: legs > 1,
                drives: (0..legs).map(|l| format!("d{}", m * legs + l)).collect(),
                weight: None,
            })
            .collect();
        let mut orders = VecDeque::from([
            Order::PoolCreate {
                name: "tank".into(),
                arrays,
                chunk_bytes: None,
                block_bytes: None,
                measure: false,
                force: false,
            },
            Order::VolumeCreate {
                pool: "tank".into(),
                name: "v".into(),
                bytes: 16 * MIB,
                block_bytes: Some(4096),
            },
            Order::PortalAdd { protocol: Protocol::Nvme, address: NVME.parse().expect("an address") },
            Order::PortalAdd { protocol: Protocol::Iscsi, address: ISCSI.parse().expect("an address") },
        ]);
        for i in 0..self.options.hosts.len() {
            let settings = HostSettings {
                nqns: Some(vec![nqn(i)]),
                iqns: Some(vec![iqn(i)]),
                ..HostSettings::default()
            };
            orders.push_back(Order::HostAdd { name: format!("h{i}"), settings });
            orders.push_back(Order::Export { volume: "tank/v".into(), host: format!("h{i}"), lun: Some(0) });
        }
        orders.extend(crate::operator::orders(self.options.seed));
        orders.push_back(Order::Status);
        orders
    }

    fn order(&mut self) {
        if let Some(order) = self.orders.pop_front() {
            self.asked += 1;
            self.waiting = Some(self.asked);
            self.world.manage(Address::Steward, Mail::Order { id: self.asked, order });
        }
    }

    fn answered(&mut self, answer: Answered) -> Result<(), String> {
        match (self.stage, answer) {
            (_, Ok(Reply::Snapshot(snapshot))) => {
                crate::operator::verdict(&snapshot)?;
                if self.stage == Stage::Ordering {
                    self.stage = Stage::Working;
                    self.begin_work(&snapshot);
                }
                self.snapshot = Some(snapshot);
                Ok(())
            }
            (Stage::Ordering, Err(refusal)) => Err(format!("an order was refused: {refusal:?}")),
            (_, _) => Ok(()),
        }
    }

    fn begin_work(&mut self, snapshot: &Snapshot) {
        for (i, protocol) in self.options.hosts.clone().into_iter().enumerate() {
            let (peer, target) = match protocol {
                Protocol::Nvme | Protocol::Discovery => {
                    let id = [i as u8 + 1; 16];
                    let mut c = nvme::host::Config::new(&nqn(i), id, &snapshot.system.nqn);
                    c.queues = self.rng.between(1, 3) as u16;
                    (c.header_digest, c.data_digest) = (self.rng.chance(1, 4), self.rng.chance(1, 4));
                    c.flow_control = self.rng.chance(3, 4);
                    (NVME, load::Target::Nvme(c))
                }
                Protocol::Iscsi => {
                    let mut c = iscsi::initiator::Config::new(&iqn(i), Some(&snapshot.system.iqn));
                    (c.header_digest, c.data_digest) = (self.rng.chance(1, 4), self.rng.chance(1, 4));
                    c.immediate_data = self.rng.chance(1, 2);
                    c.initial_r2t = self.rng.chance(1, 2);
                    (ISCSI, load::Target::Iscsi(c))
                }
            };
            let config = load::Config { peer: peer.parse().expect("an address"), target };
            let mut habits = self.options.habits.clone();
            habits.commands = self.options.commands;
            let at = (100 + i as u64) << 32;
            let bytes = MIB + Host::memory_bytes(&config, habits.depth);
            let seed = self.rng.next_u64();
            let host = Host::new(config, habits, (at, bytes), MIB, self.volume.clone(), seed);
            host.ledger.borrow_mut().told = self.world.tell.then(Vec::new);
            self.ledgers.push(host.ledger.clone());
            let id = self.world.put_host(Box::new(host), Slice::new(at, MIB as u32));
            self.world.nudge(id);
        }
        self.set_up = true;
        self.next_trouble();
    }

    fn next_trouble(&mut self) {
        if !self.options.troubles.is_empty() && self.troubles < self.options.troubles_max {
            let mean = self.options.pause.as_micros() as u64;
            let after = Duration::from_micros(self.rng.between(mean / 4, mean * 2));
            self.world.alarm(after, ALARM_TROUBLE);
        }
    }

    fn alarm(&mut self, mark: u64) {
        match mark {
            ALARM_BOOT => self.boot(),
            ALARM_TROUBLE if self.stage == Stage::Working => {
                self.trouble();
                self.next_trouble();
            }
            ALARM_LOOK => {
                if self.orders.is_empty() && self.waiting.is_none() {
                    self.orders.push_back(Order::Status);
                }
                self.world.alarm(Duration::from_millis(50), ALARM_LOOK);
            }
            mark if mark >= ALARM_HEAL => self.heal((mark - ALARM_HEAL) as usize),
            _ => {}
        }
    }

    fn trouble(&mut self) {
        self.troubles += 1;
        let trouble = *self.rng.pick(&self.options.troubles.clone());
        self.world.say(|| format!("trouble: {trouble:?}"));
        // One drive at a time, so that there is always a leg to live on.
        let ill = self.world.disks.iter().any(|d| d.faults.any());
        let disk = self.rng.below(self.world.disks.len() as u64) as usize;
        let until = Duration::from_micros(self.rng.between(100, 8_000_000));
        match trouble {
            Trouble::Kill | Trouble::PowerCut if !self.down && self.kills < self.options.kills_max => {
                self.kills += 1;
                let power = trouble == Trouble::PowerCut;
                self.world.kill_head(power);
                if power {
                    self.volume.borrow_mut().power_cut();
                }
                self.down = true;
                let pause = Duration::from_micros(self.rng.between(10, 20_000));
                self.world.alarm(pause, ALARM_BOOT);
            }
            Trouble::Kill | Trouble::PowerCut => {}
            Trouble::Cut => self.world.cut_one_link(),
            Trouble::Hang | Trouble::Drop | Trouble::WriteErrors | Trouble::ReadErrors
                if !ill && self.all_well() =>
            {
                let faults = &mut self.world.disks[disk].faults;
                match trouble {
                    Trouble::Hang => faults.hang = true,
                    Trouble::Drop => faults.gone = true,
                    Trouble::WriteErrors => faults.write_errors_ppm = 300_000,
                    _ => faults.read_errors_ppm = 300_000,
                }
                self.world.alarm(until, ALARM_HEAL + disk as u64);
            }
            Trouble::Hang | Trouble::Drop | Trouble::WriteErrors | Trouble::ReadErrors => {}
        }
    }

    /// Whether every leg was in sync when last looked at; asks for a new look.
    fn all_well(&mut self) -> bool {
        let well = self.snapshot.take().is_some_and(|s| s.health == State::Optimal);
        if self.orders.is_empty() {
            self.orders.push_back(Order::Status);
        }
        well
    }

    fn heal(&mut self, disk: usize) {
        self.world.say(|| format!("drive d{disk} is well again"));
        self.world.disks[disk].faults = Default::default();
        self.orders.push_back(Order::DriveReturn { drive: format!("d{disk}") });
        self.snapshot = None;
        self.orders.push_back(Order::Status);
    }

    fn progress(&mut self) -> Result<(), String> {
        match self.stage {
            Stage::Booting | Stage::Ordering => {
                if self.world.now().since(Instant(0)) > Duration::from_secs(60) {
                    return Err(format!("the system does not come up: {:?}", self.stage));
                }
            }
            Stage::Working => {
                if self.ledgers.iter().all(|l| l.borrow().finished) && !self.down {
                    self.calm();
                } else if self.world.now().since(Instant(0)) > Duration::from_secs(900) {
                    // Long enough: hosts may finish in calm weather.
                    self.calm();
                }
            }
            Stage::Calming { since } => {
                let finished = self.ledgers.iter().all(|l| l.borrow().finished);
                let optimal = self.snapshot.as_ref().is_some_and(|s| s.health == State::Optimal && quiet(s));
                if finished && optimal {
                    // Twice, so that no letter between machines is overlooked.
                    self.snapshot = None;
                    let rested = self.at_rest_since.take();
                    match self.world.at_rest() {
                        Ok(()) if rested.is_some() => {
                            self.done = true;
                            return self.check();
                        }
                        Ok(()) => self.at_rest_since = Some(self.world.now()),
                        Err(why) => self.restless = why,
                    }
                }
                if let Some(snapshot) = self.snapshot.take() {
                    self.nurse(&snapshot);
                    self.last_look = Some(snapshot);
                }
                if self.world.now().since(since) > CONVERGENCE {
                    return Err(format!(
                        "not well again after {CONVERGENCE:?} without faults{}",
                        self.ills()
                    ));
                }
            }
        }
        Ok(())
    }

    /// What is not as it should be: unfinished hosts, and the reasons of the last `status`.
    fn ills(&self) -> String {
        let mut lines = vec![];
        for (i, ledger) in self.ledgers.iter().enumerate() {
            let l = ledger.borrow();
            if !l.finished {
                lines.push(format!("host {i} has ended {} commands", l.good + l.failed + l.lost));
            }
        }
        if !self.restless.is_empty() {
            lines.push(self.restless.clone());
        }
        match &self.last_look {
            None => lines.push("no status was answered".into()),
            Some(s) => {
                lines.push(format!("the system is {}", s.health.word()));
                lines.extend(
                    s.reasons.iter().map(|r| format!("{}: {} {}", r.what, r.state.word(), r.message)),
                );
                for array in s.pools.iter().flat_map(|p| &p.arrays) {
                    let legs: Vec<_> = array
                        .legs
                        .iter()
                        .map(|l| format!("{} {} {}", l.path, l.state.word(), l.reason))
                        .collect();
                    lines.push(format!("array, epoch {}: {legs:?}, resync {:?}", array.epoch, array.resync));
                }
                let drives = s
                    .drives
                    .iter()
                    .map(|d| format!("drive {} {:?} {}: {}", d.path, d.role, d.state.word(), d.reason));
                lines.extend(drives);
                lines.extend(
                    s.events.iter().rev().take(12).rev().map(|e| format!("event: {}: {}", e.what, e.message)),
                );
            }
        }
        lines.iter().map(|l| format!("\n    {l}")).collect()
    }

    /// Faults stop.
    fn calm(&mut self) {
        self.world.say(|| "faults stop".into());
        self.stage = Stage::Calming { since: self.world.now() };
        for disk in &mut self.world.disks {
            disk.faults = Default::default();
        }
        self.snapshot = None;
        self.world.alarm(Duration::from_millis(10), ALARM_LOOK);
    }

    /// Does what `status` says, as an operator would: drives that are out are taken back.
    fn nurse(&mut self, snapshot: &Snapshot) {
        if !self.orders.is_empty() {
            return;
        }
        for drive in &snapshot.drives {
            let out =
                matches!(drive.state, State::Failed | State::Offline) || drive.role == DriveRole::Missing;
            if out && drive.role != DriveRole::Free {
                self.orders.push_back(Order::DriveReturn { drive: drive.path.clone() });
            }
        }
        if snapshot.pools.is_empty() {
            self.orders.push_back(Order::PoolImport { pool: None, drives: vec![], force: false });
        }
    }

    /// Everything was answered in time, and legs hold the same, byte for byte.
    fn check(&mut self) -> Result<(), String> {
        // Promise 7. While the head is down nobody answers, and when it is back there is much to do.
        if self.kills == 0 {
            for (i, ledger) in self.ledgers.iter().enumerate() {
                let (read, write) = (ledger.borrow().slowest_read, ledger.borrow().slowest_write);
                if read > READ_MAX || write > WRITE_MAX {
                    return Err(format!("host {i} waited {read:?} for a read and {write:?} for a write"));
                }
            }
        }
        let legs = self.options.legs;
        for mirror in 0..self.options.mirrors {
            let first = mirror * legs;
            let mut label = vec![0; RECORD_BYTES];
            self.world.disks[first].read(LABEL_AT, &mut label);
            let label = Label::decode(&label).map_err(|f| format!("the label of d{first} is {f}"))?;
            let (at, len) = (label.data_at, label.data_bytes);
            for leg in 1..legs {
                let (a, b) = (&self.world.disks[first], &self.world.disks[first + leg]);
                let mut sectors = a.sectors(at, len);
                sectors.extend(b.sectors(at, len));
                for sector in sectors {
                    let (mut x, mut y) = (vec![0; SECTOR as usize], vec![0; SECTOR as usize]);
                    a.read(sector * SECTOR, &mut x);
                    b.read(sector * SECTOR, &mut y);
                    if x != y {
                        let place = sector * SECTOR - at;
                        return Err(format!(
                            "legs d{first} and d{} differ at byte {place} of the array: {:?} and {:?}",
                            first + leg,
                            &x[..16],
                            &y[..16]
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

fn quiet(snapshot: &Snapshot) -> bool {
    snapshot.pools.iter().all(|p| p.arrays.iter().all(|a| a.resync.is_none()))
}

fn tell(host: usize, broken: &Broken) -> String {
    match broken {
        Broken::Stale { block, what } => {
            format!("host {host} read write {} in block {block}; allowed were {:?}", what.found, what.allowed)
        }
        Broken::Garbled { block, head } => {
            format!("host {host} read {head:?} in block {block}, which is no stamp of it")
        }
    }
}

fn nqn(i: usize) -> String {
    format!("nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000000{i}")
}

fn iqn(i: usize) -> String {
    format!("iqn.1994-05.com.example:h{i}")
}
