//! Worlds of two whole heads over the same drives: one leads and serves hosts, the other follows and takes over.
//!
//! ```text
//! boot of the first ─▶ orders, system create ─▶ boot of the second ─▶ it has all ─▶ work and faults ─▶ calm: both in, every leg
//! in sync, hosts done ─▶ legs equal, what was ordered is there
//! ```

mod check;
mod cut;
mod options;
mod rows;
mod trouble;

pub use cut::{Cut, Doing, End};
pub use options::{Loss, Options, Outage, Trouble};
pub use rows::{ROWS, Row};

use crate::access::{Access, SLACK, SLACK_OUT};
use crate::disk::Disk;
use crate::host::{Host, Ledger};
use crate::memory::SimMemory;
use crate::operator::{ISCSI, NVME, SECOND, iqn, lets_in, nqn, second_portals};
use crate::run::{Failure, Outcome, quiet};
use crate::volume::Volume;
use crate::world::{ActorId, Step, World};
use base::fence::Process;
use base::view::Protocol;
use base::{Address, Duration, Instant, Prng, Slice, Uuid};
use check::Ordered;
use cluster::HeadNo;
use cluster::watch::Times;
use core::net::SocketAddr;
use head::mail::{ManagerMail, StewardMail};
use head::order::{Answered, ArraySpec, ErrorKind, Event, Order, Reply, State, Status, Weight};
use head::peer::{SystemSettings, SystemView};
use head::steward::{Steward, StewardConfig};
use head::{Deadlines, Shard, ShardConfig};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

const MIB: u64 = 1 << 20;
const VOLUME_BYTES: u64 = 16 * MIB;
/// Virtual time in which everything must be well once faults have stopped.
const CONVERGENCE: Duration = Duration::from_secs(300);
/// An order that is not answered in this time is given up: its head hangs, or is out.
const ORDER_PATIENCE: Duration = Duration::from_secs(8);
const STEPS_MAX: u64 = 20_000_000;
/// Lines of what heads said that a failure prints.
const LOG_LINES: usize = 24;
const LOOK: Duration = Duration::from_millis(300);

/// How long one path is lost that the options name.
const LOST: Duration = Duration::from_secs(6);

const ALARM_TROUBLE: u64 = 1;
const ALARM_LOOK: u64 = 2;
const ALARM_CALM: u64 = 3;
const ALARM_CUT: u64 = 4;
const ALARM_ACCESS: u64 = 5;
const ALARM_OUTAGE: u64 = 6;
const ALARM_DARK: u64 = 7;
const ALARM_ROOM: u64 = 8;
const ALARM_THEN: u64 = 9;
const ALARM_BOOT: u64 = 10;
const ALARM_OUT: u64 = 20;
const ALARM_PATH: u64 = 100;
const ALARM_LOSES: u64 = 200;

#[derive(PartialEq, Eq, Clone, Copy, Debug)]
enum Stage {
    Ordering,
    Joining,
    Working,
    /// Orders about the system are cut off.
    Cutting,
    Calming {
        since: Instant,
    },
}

struct Run {
    options: Options,
    world: World,
    rng: Prng,
    stage: Stage,
    /// When lanes went round last.
    turned: Instant,
    lives: u64,
    /// The system is there: heads begin as one of two.
    system: bool,
    /// The process of this server is out, and is to end.
    out: [bool; 2],
    /// When a server learned that it leads in place of the other one, if it has not served since.
    led: [Option<Instant>; 2],
    /// What heads said last.
    log: VecDeque<String>,
    /// Servers that serve, as far as they have said; the last one leads.
    ready: Vec<usize>,
    orders: VecDeque<Order>,
    asked: u64,
    /// What was asked last, of whom, and when.
    waiting: Option<(u64, usize, Instant, Order)>,
    ordered: Ordered,
    /// Takes from hosts what they log in by.
    access: Option<Access>,
    /// What was asked last is its.
    accessing: bool,
    volume: Rc<RefCell<Volume>>,
    ledgers: Vec<Rc<RefCell<Ledger>>>,
    /// Hosts, in the order of their ledgers.
    hosts: Vec<ActorId>,
    /// Who led in each epoch.
    leaders: BTreeMap<u64, HeadNo>,
    troubles: u32,
    /// A trouble that follows upon another.
    then: Option<Trouble>,
    takeovers: u32,
    /// How often a head was put out.
    outs: u32,
    steps: u64,
    snapshot: Option<Box<Status>>,
    last_look: Option<Box<Status>>,
    view: Option<Box<SystemView>>,
    cut_step: cut::Step,
    /// So many commands of hosts are to end well before they end.
    read_back: u64,
    /// Systems that were, and are not any more.
    systems: u8,
    rested: bool,
    done: bool,
}

/// Runs one seed to its end.
///
/// # Errors
/// A promise was broken, or nothing goes on.
pub fn run(options: Options) -> Result<Outcome, Box<Failure>> {
    let seed = options.seed;
    let mut world = World::new(seed, options.delivery.clone());
    world.log = options.log || options.trace;
    world.trace = options.trace;
    world.addresses_move = options.addresses_move;
    for d in 0..options.mirrors * 2 {
        let mut disk = Disk::new(format!("d{d}"), 64 * MIB + d as u64 * MIB, options.volatile);
        if options.used {
            disk.soil(0, disk.bytes, d as u32 + 1);
        }
        world.disks.push(disk);
    }
    if options.cut.is_some() {
        Cut::soil(&mut world.disks, &mut world.rng);
    }
    if let Some(lying) = options.lying {
        world.disks[lying].fence_lies = true;
    }
    world.add_server(seed ^ 0x7365_7276_6572);
    for (server, clock) in options.clocks.into_iter().enumerate() {
        world.set_clock(server, clock);
    }
    let mut run = Run {
        rng: Prng::new(seed ^ 0x7477_6f68_6561_6473),
        world,
        stage: Stage::Ordering,
        turned: Instant(0),
        lives: 0,
        system: false,
        out: [false; 2],
        led: [None; 2],
        log: VecDeque::new(),
        ready: vec![],
        orders: VecDeque::new(),
        asked: 0,
        waiting: None,
        ordered: Ordered::default(),
        access: None,
        accessing: false,
        volume: Rc::default(),
        ledgers: vec![],
        hosts: vec![],
        leaders: BTreeMap::new(),
        troubles: 0,
        then: None,
        takeovers: 0,
        outs: 0,
        steps: 0,
        snapshot: None,
        last_look: None,
        view: None,
        cut_step: cut::Step::Before,
        read_back: 0,
        systems: 0,
        rested: false,
        done: false,
        options,
    };
    run.orders = run.setup();
    run.boot(0);
    run.world.alarm(LOOK, ALARM_LOOK);
    while !run.done {
        if let Err(what) = run.step() {
            let story = run.world.story.iter().cloned().collect();
            return Err(Box::new(Failure { seed, what, story }));
        }
    }
    let outcome = run.outcome();
    match run.waited_too_long(&outcome) {
        Some(what) => Err(Box::new(Failure { seed, what, story: run.world.story.iter().cloned().collect() })),
        None => Ok(outcome),
    }
}

impl Run {
    fn outcome(&self) -> Outcome {
        let sum = |f: fn(&Ledger) -> u64| self.ledgers.iter().map(|l| f(&l.borrow())).sum();
        let events = self.last_look.iter().flat_map(|s| &s.events);
        Outcome {
            hash: self.world.hash(),
            time: self.world.now().since(Instant(0)),
            good: sum(|l| l.good),
            failed: sum(|l| l.failed),
            lost: sum(|l| l.lost),
            troubles: self.troubles,
            deals: 0,
            taken: self.access.as_ref().map_or(0, Access::taken),
            slowest: self.ledgers.iter().fold(Default::default(), |(r, w): (Duration, Duration), l| {
                let l = l.borrow();
                (r.max(l.slowest_read), w.max(l.slowest_write))
            }),
            longest_stall: self
                .ledgers
                .iter()
                .fold(Duration::ZERO, |most, l| most.max(l.borrow().longest_stall)),
            longest_path_stall: self
                .ledgers
                .iter()
                .fold(Duration::ZERO, |most, l| most.max(l.borrow().longest_path_stall)),
            slowest_start: Duration::ZERO,
            repeated: sum(|l| l.repeated),
            by_server: self.commands_by_server(),
            events: [format!("{} takeovers", self.takeovers), format!("{} ended paths", sum(|l| l.ended))]
                .into_iter()
                .chain(events.map(|e| format!("{}: {:?}", e.what, e.event)))
                .collect(),
        }
    }
    /// Commands of each host that ended well, by the server that its path leads to in the end.
    fn commands_by_server(&self) -> Vec<[u64; 2]> {
        let of_host = |(host, ledger): (&ActorId, &Rc<RefCell<Ledger>>)| {
            let mut by_server = [0; 2];
            for (port, good) in &ledger.borrow().by_port {
                self.world.servers_by(*host, *port).into_iter().for_each(|s| by_server[s] += good);
            }
            by_server
        };
        self.hosts.iter().zip(&self.ledgers).map(of_host).collect()
    }
    /// The system, as daemons would name it: each has another name.
    fn name_of_system(&self) -> Uuid {
        let mut name = *b"two heads of sim";
        name[15] += self.systems;
        Uuid(name)
    }
    fn settings(&self, server: usize) -> SystemSettings {
        SystemSettings {
            system: self.name_of_system(),
            me: [HeadNo::A, HeadNo::B][server],
            name: ["left", "right"][server].into(),
            networks: (0..self.options.networks)
                .map(|n| SocketAddr::from(([10, 9, n as u8, 1], 7400)))
                .collect(),
            process: Process { pid: 100 + server as u32, started: self.lives },
            times: Times::default(),
            both_serve: self.options.both,
            said: None,
        }
    }
    /// A head begins a life.
    fn boot(&mut self, server: usize) {
        self.lives += 1;
        self.world.power_on(server);
        let (shards, place) = (self.options.shards, server as u64);
        let extents: Vec<(u64, u64)> =
            (0..shards).map(|s| ((1 + u64::from(s) + 50 * place) << 32, self.options.shard_bytes)).collect();
        let seed = self.options.seed.wrapping_mul(1000) + self.lives;
        for id in 0..shards {
            let (at, bytes) = extents[usize::from(id)];
            let shard = Shard::new(ShardConfig {
                // As many as the simulated kernel has places for: those behind are for connections with far shards.
                connections_max: 4096,
                credits: head::CREDITS,
                turn_pdus: head::TURN_PDUS,
                flights: head::FLIGHTS,
                id,
                shards,
                memory: SimMemory::new(at, bytes),
                staging: SimMemory::new(at + bytes, MIB),
                seed: seed + u64::from(id),
                deadlines: Deadlines::default(),
                extents: extents.clone(),
            });
            let staging = Slice::new(at + bytes, MIB as u32);
            self.world.put_head(server, Address::Shard(id), Box::new(shard), staging);
        }
        self.world.convert_state(server);
        let steward = Steward::new(StewardConfig {
            system: self.system.then(|| self.settings(server)),
            memory: SimMemory::new((1 + place) << 48, 8 * MIB),
            shards,
            entropy: [seed, 1, 2, 3 + place],
            version: "sim".into(),
            hold: None,
            notices: vec![],
            state_directory: "/s".into(),
            shapes: BTreeMap::new(),
        });
        let staging = Slice::new((1 + place) << 52, 1 << 16);
        let id = self.world.put_head(server, Address::Steward, Box::new(steward), staging);
        self.world.nudge(id);
    }
    /// A head's life is over; it begins another later.
    fn fell(&mut self, server: usize, after: Duration) {
        let served = self.ready.contains(&server);
        self.ready.retain(|s| *s != server);
        self.out[server] = false;
        self.log(server, "its process has ended");
        // What is read is made the same on every leg once whoever wrote it has fallen: nobody else's end does that. A follower that serves goes on as it did until it leads.
        if served {
            let goes_on = self.options.both && self.world.runs(1 - server);
            let mut volume = self.volume.borrow_mut();
            if goes_on { volume.leader_fell() } else { volume.head_fell(false) }
        }
        self.forget_order(server);
        self.world.alarm(after, ALARM_BOOT + server as u64);
    }
    /// The head that was asked does not answer any more: it has done it, or not.
    fn forget_order(&mut self, server: usize) {
        if let Some((.., order)) = self.waiting.take_if(|(_, of, ..)| *of == server) {
            self.ordered.is_unknown(&order);
            if core::mem::take(&mut self.accessing) {
                self.access.iter_mut().for_each(Access::is_unknown);
            }
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(format!("it does not end: still {:?}{}", self.stage, self.ills()));
        }
        match self.world.step() {
            Step::Happened => {}
            Step::Alarm(mark) => self.alarm(mark),
            Step::Fell { crash, .. } if self.stage == Stage::Cutting => self.cut_fell(crash)?,
            Step::Fell { server, .. } => {
                let after = self.pause_of_a_start();
                self.fell(server, after);
            }
            Step::ToManager { server, mail } => self.mail(server, mail)?,
            Step::Quiet => return Err("nothing will ever happen again".into()),
        }
        self.order();
        for (i, ledger) in self.ledgers.iter().enumerate() {
            if self.world.log {
                let lines = ledger.borrow_mut().log.as_mut().map(core::mem::take).unwrap_or_default();
                lines.into_iter().for_each(|l| self.world.say(|| format!("host {i}: {l}")));
            }
        }
        self.lose_paths_of_hosts();
        self.check_hosts()?;
        self.check_surface()?;
        self.progress()
    }
    fn mail(&mut self, server: usize, mail: ManagerMail) -> Result<(), String> {
        match mail {
            ManagerMail::Ready { .. } => {
                self.check_wait(server)?;
                // Until now the other one may have answered, by what legs and caches held. From now on what is read is made the same first.
                if self.led[server].take().is_some() {
                    self.volume.borrow_mut().head_fell(false);
                }
                self.ready.retain(|s| *s != server);
                self.ready.push(server);
                self.takeovers += 1;
                self.pace();
                if self.system {
                    self.ask_who_leads(server);
                }
                Ok(())
            }
            ManagerMail::Answered { id, answer } => match self.waiting.take_if(|(asked, ..)| *asked == id) {
                Some((.., order)) => self.answered(server, order, answer),
                None => match answer {
                    Ok(Reply::System(view)) => self.viewed(server, view),
                    _ => Ok(()),
                },
            },
            ManagerMail::Peer(work) => {
                self.world.peer_work(server, work);
                Ok(())
            }
            // Portals of these worlds have addresses that stay.
            ManagerMail::Addresses { .. } | ManagerMail::Announce(_) => Ok(()),
            // A head that becomes the first of a system goes on with what it serves.
            ManagerMail::Leads(true) if self.leader() == Some(server) => Ok(()),
            ManagerMail::Leads(true) => {
                self.led[server] = Some(self.world.now());
                Ok(())
            }
            // The process executes itself anew, as soon as its manager has read that.
            ManagerMail::Out(why) => {
                let words = format!("{why:?}");
                self.world.say(|| format!("server {server}: {words}"));
                self.ready.retain(|s| *s != server);
                self.out[server] = true;
                self.outs += 1;
                self.log(server, &words);
                let soon = Duration::from_micros(self.rng.below(1000));
                self.world.alarm(soon, ALARM_OUT + server as u64);
                Ok(())
            }
            ManagerMail::Happened(line) => {
                // What orders did to pools, and imports, the log has by the orders.
                if !matches!(line.event, Event::Pool(_)) || line.weight > Weight::Note {
                    self.log(server, &format!("{:?}", line.event));
                }
                self.world.say(|| format!("server {server}: {}: {:?}", line.what, line.event));
                Ok(())
            }
            ManagerMail::Leads(false) | ManagerMail::FromPeer(_) | ManagerMail::Stopped => Ok(()),
        }
    }
    fn log(&mut self, server: usize, words: &str) {
        if self.log.len() == LOG_LINES {
            self.log.pop_front();
        }
        let ms = self.world.now().0 / 1_000_000;
        self.log.push_back(format!("{ms} ms, server {server}: {words}"));
    }
    fn ask_who_leads(&mut self, server: usize) {
        self.asked += 1;
        let mail = StewardMail::Order { id: self.asked, order: Order::System };
        self.world.manage(server, Address::Steward, mail);
    }

    /// The orders that build the system, as an operator would give them.
    fn setup(&self) -> VecDeque<Order> {
        let array = |m: usize| ArraySpec {
            layout: head::order::ArrayLayout::Mirror,
            drives: (0..2).map(|l| format!("d{}", 2 * m + l)).collect(),
            weight: None,
        };
        let volume = Order::VolumeCreate {
            pool: "tank".into(),
            name: "v".into(),
            bytes: VOLUME_BYTES,
            block_bytes: Some(4096),
        };
        let mut orders = VecDeque::from([
            Order::PoolCreate {
                name: "tank".into(),
                arrays: (0..self.options.mirrors).map(array).collect(),
                chunk_bytes: None,
                block_bytes: Some(4096),
                measure: false,
                force: false,
            },
            volume,
        ]);
        orders.extend(lets_in(self.options.hosts.len()));
        orders.push_back(Order::Status);
        if self.options.cut.is_some_and(|c| c.doing == Doing::Create) {
            return orders;
        }
        orders.push_back(Order::SystemCreate { settings: Box::new(self.settings(0)) });
        orders
    }
    /// The head that is asked: the one that last said that it serves.
    fn leader(&self) -> Option<usize> {
        self.ready.last().copied().filter(|s| self.world.runs(*s))
    }
    fn order(&mut self) {
        let now = self.world.now();
        if let Some((_, server, since, _)) = &self.waiting {
            let (server, since) = (*server, *since);
            if now.since(since) > ORDER_PATIENCE {
                self.forget_order(server);
            }
            return;
        }
        let Some(server) = self.leader() else { return };
        if let Some(turns) = self.options.turns
            && self.stage == Stage::Working
            && self.orders.is_empty()
            && now.since(self.turned) >= turns
        {
            self.turned = now;
            self.orders.push_back(Order::LanesTurn);
        }
        let ordered = self.orders.pop_front();
        self.accessing = ordered.is_none();
        let next = |access: &mut Access| access.next(now);
        let Some(mut order) = ordered.or_else(|| self.access.as_mut().and_then(next)) else { return };
        if let Order::SystemCreate { settings } = &mut order {
            // Its name is that of the first head, which is known now.
            **settings = self.settings(server);
        }
        self.asked += 1;
        self.ordered.is_asked(&order);
        let mail = StewardMail::Order { id: self.asked, order: order.clone() };
        self.waiting = Some((self.asked, server, now, order));
        self.world.manage(server, Address::Steward, mail);
    }
    fn answered(&mut self, server: usize, order: Order, answer: Answered) -> Result<(), String> {
        if self.cuts(&order) {
            return self.cut_answered(&order, answer);
        }
        if let Some(access) = self.access.as_mut().filter(|_| core::mem::take(&mut self.accessing)) {
            let now = self.world.now();
            let kind = answer.as_ref().err().map(|refusal| refusal.kind());
            match kind {
                None => self.ordered.is_done(&order),
                Some(_) => self.ordered.is_unknown(&order),
            }
            match kind {
                // The host has it already, or the pool is not here yet.
                Some(kind) if kind != ErrorKind::Conflict && self.options.ails() => access.is_refused(now),
                _ => access.answered(now, kind.is_none())?,
            }
            let due = access.next_deadline().map(|at| at.since(now));
            due.into_iter().for_each(|after| self.world.alarm(after, ALARM_ACCESS));
            return Ok(());
        }
        match answer {
            // A drive was late, and who makes the system tries again.
            Err(refusal)
                if matches!(order, Order::SystemCreate { .. }) && refusal.kind() == ErrorKind::Internal =>
            {
                self.orders.push_front(order);
                Ok(())
            }
            Err(refusal) if self.stage == Stage::Ordering => {
                Err(format!("an order was refused: {refusal:?}"))
            }
            Err(refusal) => {
                self.world.say(|| format!("{order:?} is refused: {:?}", refusal.why));
                self.ordered.is_unknown(&order);
                Ok(())
            }
            Ok(Reply::Snapshot(snapshot)) => {
                if self.leader() == Some(server) {
                    self.ordered.verdict(&snapshot).map_err(|e| format!("{e}{}", self.ills()))?;
                    if snapshot.health == State::Optimal && quiet(&snapshot) {
                        self.world.checker_look();
                    }
                }
                if self.stage == Stage::Ordering {
                    self.last_look = Some(snapshot.clone());
                }
                self.snapshot = Some(snapshot);
                Ok(())
            }
            Ok(_) => {
                self.ordered.is_done(&order);
                if matches!(order, Order::PoolCreate { .. }) {
                    self.pace();
                }
                if matches!(order, Order::SystemCreate { .. }) {
                    self.system = true;
                    self.stage = Stage::Joining;
                    self.world.link_servers(self.options.networks);
                    if self.options.both {
                        self.orders.extend(second_portals());
                    }
                    self.boot(1);
                }
                Ok(())
            }
        }
    }
    /// What a head says of its system.
    fn viewed(&mut self, server: usize, view: Box<SystemView>) -> Result<(), String> {
        if view.part == cluster::Part::Leader {
            let other = self.leaders.insert(view.record.epoch, view.me).filter(|other| *other != view.me);
            if other.is_some() {
                return Err(format!("two heads lead in epoch {}", view.record.epoch));
            }
        }
        if self.leader() == Some(server) {
            self.view = Some(view);
        }
        Ok(())
    }
    fn follower_has_all(&self) -> bool {
        let both = [HeadNo::A, HeadNo::B];
        self.view.as_ref().is_some_and(|v| both.iter().all(|h| v.record.is_in(*h) && v.record.has_latest(*h)))
    }

    fn begin_work(&mut self) {
        let snapshot = self.last_look.clone().expect("it was looked at");
        for (i, protocol) in self.options.hosts.clone().into_iter().enumerate() {
            let (peer, target) = match protocol {
                Protocol::Nvme | Protocol::Discovery => {
                    let c = nvme::host::Config::new(&nqn(i), [i as u8 + 1; 16], &snapshot.system.nqn);
                    (NVME, load::Target::Nvme(c))
                }
                Protocol::Iscsi => {
                    let c = iscsi::initiator::Config::new(&iqn(i), Some(&snapshot.system.iqn));
                    (ISCSI, load::Target::Iscsi(c))
                }
            };
            let second =
                SECOND.iter().find(|(p, _)| *p == protocol).filter(|_| self.options.both && i % 2 == 1);
            let peer = second.map_or(peer, |(_, address)| address);
            let config = load::Config { peer: peer.parse().expect("an address"), target };
            let mut habits = self.options.habits.clone();
            habits.zeroes_fua = protocol == Protocol::Nvme;
            // This one stays where it is, whatever the others do.
            let stays = self.options.used && i == 0;
            if stays {
                habits.reset_ppm = 0;
            }
            let failover = self.options.failover && protocol == Protocol::Nvme;
            let other = ((failover || self.options.in_turns) && !stays).then(|| second_path(&config));
            let at = (150 + i as u64) << 32;
            let rings = other.as_ref().map_or(0, load::Config::memory_bytes);
            let bytes = MIB + Host::memory_bytes(&config, &habits) + rings;
            let seed = self.rng.next_u64();
            let mut host = Host::new(config, habits, (at, bytes), MIB, self.volume.clone(), seed);
            if let Some(other) = other {
                host = if failover { host.with_failover(other) } else { host.with_second_path(other) };
            }
            host.ledger.borrow_mut().log = self.world.log.then(Vec::new);
            self.ledgers.push(host.ledger.clone());
            let id: ActorId = self.world.put_host(Box::new(host), Slice::new(at, MIB as u32));
            self.hosts.push(id);
            self.world.nudge(id);
        }
        match self.options.cut {
            Some(_) => {
                self.stage = Stage::Cutting;
                self.world.alarm(cut::BEFORE, ALARM_CUT);
            }
            None => {
                self.stage = Stage::Working;
                self.world.alarm(self.options.work, ALARM_CALM);
                if self.options.access {
                    let (hosts, ledgers) = (self.options.hosts.clone(), self.ledgers.clone());
                    let slack = if self.options.ails() { SLACK_OUT } else { SLACK };
                    self.access = Some(Access::new(self.options.seed, hosts, ledgers, slack, u32::MAX));
                }
                if let Some(loss) = self.options.loses.clone() {
                    self.begin_loss(&loss);
                }
                if let Some(outage) = self.options.outage {
                    self.world.alarm(outage.begins, ALARM_OUTAGE);
                }
                self.next_trouble();
            }
        }
    }
    /// A server loses its paths to drives, one after the other or at once, and has them all back later.
    fn begin_loss(&mut self, loss: &Loss) {
        for (n, disk) in loss.disks.iter().enumerate() {
            let which = (10 * loss.server + disk) as u64;
            let after = loss.apart * n as u32;
            if after.is_zero() {
                self.path_goes(which);
            } else {
                self.world.alarm(after, ALARM_LOSES + which);
            }
            self.world.alarm(loss.back, ALARM_PATH + which);
        }
    }
    fn path_goes(&mut self, which: u64) {
        if self.stage == Stage::Working {
            self.world.lose_path((which / 10) as usize, (which % 10) as usize, true);
        }
    }
    fn alarm(&mut self, mark: u64) {
        match mark {
            mark if mark >= ALARM_LOSES => self.path_goes(mark - ALARM_LOSES),
            ALARM_TROUBLE if self.stage == Stage::Working => {
                self.trouble();
                self.next_trouble();
            }
            ALARM_LOOK => {
                if let Some(leader) = self.leader() {
                    self.ask_who_leads(leader);
                    if self.orders.is_empty() && self.stage != Stage::Ordering {
                        self.orders.push_back(Order::Status);
                    }
                }
                self.world.alarm(LOOK, ALARM_LOOK);
            }
            ALARM_CALM => self.calm(),
            ALARM_CUT => self.begin_cut(),
            ALARM_OUTAGE => self.begin_outage(),
            ALARM_DARK => self.power_goes(),
            ALARM_ROOM => self.directories_take(),
            ALARM_THEN => self.then(),
            mark if mark >= ALARM_PATH => self.path_is_back(mark - ALARM_PATH),
            mark if mark >= ALARM_OUT => self.is_out((mark - ALARM_OUT) as usize),
            mark if mark >= ALARM_BOOT => {
                let server = (mark - ALARM_BOOT) as usize;
                if !self.world.runs(server) {
                    self.boot(server);
                }
            }
            _ => {}
        }
    }
    fn progress(&mut self) -> Result<(), String> {
        let now = self.world.now();
        match self.stage {
            Stage::Ordering | Stage::Joining => {
                if now.since(Instant(0)) > Duration::from_secs(90) {
                    return Err(format!("the system does not come up: {:?}{}", self.stage, self.ills()));
                }
                let ordered = self.orders.is_empty() && self.waiting.is_none();
                let ready = match self.stage {
                    Stage::Joining => self.follower_has_all(),
                    // A world in which a system is made while hosts are at work.
                    _ => self.options.cut.is_some() && ordered && self.last_look.is_some(),
                };
                if ready {
                    self.begin_work();
                }
            }
            Stage::Cutting => {
                if now.since(Instant(0)) > Duration::from_secs(90) {
                    return Err(format!("it does not go on: {:?}{}", self.cut_step, self.ills()));
                }
                if let Some(snapshot) = self.snapshot.take() {
                    self.cut_progress(&snapshot)?;
                    self.last_look = Some(snapshot);
                }
            }
            Stage::Working => {
                if let Some(snapshot) = self.snapshot.take() {
                    self.check_paths(&snapshot)?;
                    self.nurse(&snapshot);
                    self.last_look = Some(snapshot);
                    self.change_something();
                }
            }
            Stage::Calming { since } => {
                if now.since(since) > CONVERGENCE {
                    return Err(format!(
                        "not well again after {CONVERGENCE:?} without faults{}",
                        self.ills()
                    ));
                }
                let Some(snapshot) = self.snapshot.take() else { return Ok(()) };
                let well =
                    snapshot.health == State::Optimal && quiet(&snapshot) && !snapshot.pools.is_empty();
                self.nurse(&snapshot);
                self.last_look = Some(snapshot);
                let given = self.access.as_ref().is_none_or(Access::is_done);
                let finished = given && self.ledgers.iter().all(|l| l.borrow().finished);
                // A drive that is in use has confirmed what it was asked for.
                let confirmed = || self.view.as_ref().is_some_and(|v| v.late.is_empty());
                let there = self.is_alone() || self.follower_has_all() && confirmed();
                if !(well && finished && there && self.rests().is_ok()) {
                    self.rested = false;
                } else if core::mem::replace(&mut self.rested, true) {
                    self.done = true;
                    return self.check_books().and_then(|()| self.check()).and_then(|()| self.check_cut());
                }
            }
        }
        Ok(())
    }
}

/// The way of such a host to the other head: the same name, and a session of its own beside the first one.
fn second_path(first: &load::Config) -> load::Config {
    let mut config = first.clone();
    let protocol = match &mut config.target {
        load::Target::Nvme(_) => Protocol::Nvme,
        load::Target::Iscsi(c) => {
            c.isid[5] += 1;
            Protocol::Iscsi
        }
    };
    let ours = if protocol == Protocol::Nvme { NVME } else { ISCSI };
    let theirs = SECOND.iter().find(|(p, _)| *p == protocol).expect("of both protocols").1;
    let [ours, theirs] = [ours, theirs].map(|a| a.parse().expect("an address"));
    config.peer = if first.peer == ours { theirs } else { ours };
    config
}
