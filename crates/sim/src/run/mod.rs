//! One seed: a system is built by orders, hosts work, faults happen; then faults stop and everything must
//! converge; then the checkers run.
//!
//! ```text
//! boot ─▶ orders (pool, volume, hosts, portals, exports) ─▶ work and faults ─▶ calm: faults off,
//! drives returned ─▶ every command ended, every leg in sync ─▶ legs equal, nothing leaked
//! ```

mod check;
mod failed;
pub mod hashes;
mod options;
mod replay;
mod trouble;

pub use options::{Act, Deed, Options, Trouble, Wipe, Wrap};

use crate::access::{Access, SLACK};
use crate::disk::{Disk, DiskCopy};
use crate::host::{Host, Ledger};
use crate::memory::SimMemory;
use crate::operator::Repair;
use crate::operator::{ISCSI, NVME, iqn, lets_in, nqn};
use crate::slow_peer::{self, Habit, SlowPeer};
use crate::volume::Volume;
use crate::world::{ActorId, Crash, Step, World};
use base::view::Protocol;
use base::{Address, Duration, Instant, Prng, Slice};
use head::layout::ArrayId;
use head::mail::{ManagerMail, ShardMail, StewardMail};
use head::order::{Answered, ArraySpec, ErrorKind, HostSettings, Order, Reply, State, Status, VolumeCaps};
use head::steward::{Steward, StewardConfig};
use head::{Deadlines, Shard, ShardConfig};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use volume::GRANULE_BYTES;

const MIB: u64 = 1 << 20;
/// The hosts' volume.
const VOLUME_BYTES: u64 = 16 * MIB;
/// Virtual time in which everything must be well again once faults have stopped.
const CONVERGENCE: Duration = Duration::from_secs(300);
/// Longest time that a command may take, whatever one leg does: promise 7, and the network's part.
pub(crate) const READ_MAX: Duration = Duration::from_millis(2100);
/// What hosts wait beside that while arrays do not come to rest that are halted, once or twice.
const DEALT_MAX: Duration = Duration::from_millis(600);
/// See `READ_MAX`.
pub(crate) const WRITE_MAX: Duration = Duration::from_millis(5100);
/// What hosts that keep buffers may add to it: until they are cut off.
const SLOW_PEERS_MAX: Duration = Duration::from_secs(6);
/// Longest time that a command may take where memory is scarce: others' that a leg keeps for its deadline, and its own.
const SCARCE_MAX: Duration = Duration::from_secs(12);
/// The same where both legs of a mirror hang: hosts get a retry status, and lose no session.
const SCARCE_HUNG_MAX: Duration = Duration::from_secs(22);
/// Events of one run; a healthy one has a hundredth of it.
const STEPS_MAX: u64 = 10_000_000;
/// A drive that was pulled is noticed within this time, even if it is unused.
const NOTICED: Duration = Duration::from_secs(7);
/// How often the operator looks at `status` while there is trouble, and when there is none.
const LOOK: Duration = Duration::from_millis(500);
/// See `LOOK`.
const LOOK_CALM: Duration = Duration::from_millis(50);

/// How a run went.
#[derive(Clone, Debug, Default)]
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
    /// Commands that were lost with one path and sent again by another.
    pub repeated: u64,
    /// Commands of each host that ended well, by server, in worlds of two heads.
    pub by_server: Vec<[u64; 2]>,
    /// Troubles made.
    pub troubles: u32,
    /// How often all lanes went round.
    pub deals: u32,
    /// How often something was taken from a host.
    pub taken: u32,
    /// Longest time that a read took, and a write or a flush.
    pub slowest: (Duration, Duration),
    /// Longest time in which no command of a host ended well, between two that did.
    pub longest_stall: Duration,
    /// The same by one path, while that was up and some were tried there.
    pub longest_path_stall: Duration,
    /// Longest time from the start of a head to the first look at which its pools were served; a head that fell before
    /// that counts for nothing.
    pub slowest_start: Duration,
    /// What the head's own log says.
    pub events: Vec<String>,
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
const ALARM_LANDED: u64 = 4;
const ALARM_MOVE: u64 = 5;
const ALARM_DOOM: u64 = 6;
const ALARM_STOP: u64 = 7;
const ALARM_HOLD: u64 = 8;
const ALARM_DEAL: u64 = 9;
const ALARM_ACCESS: u64 = 10;
const ALARM_HEAL: u64 = 1000;
const ALARM_ACT: u64 = 2000;

/// A drive, as it was at some moment.
struct OldCopy {
    disk: usize,
    contents: DiskCopy,
    /// The life of the head in which it was made.
    life: u64,
}

struct Run {
    options: Options,
    world: World,
    rng: Prng,
    stage: Stage,
    down: bool,
    ready: bool,
    /// It is being stopped in order.
    stopping: bool,
    /// A drive, as it was at some moment.
    copy: Option<OldCopy>,
    /// Of this drive a copy is made when the head ends.
    copies_at_end: Option<usize>,
    /// The head ends since it was stopped in order.
    stopped_in_order: bool,
    orders: VecDeque<Order>,
    /// The one that was given last, and until when the next one waits.
    sent: Option<Order>,
    hold_until: Instant,
    asked: u64,
    waiting: Option<u64>,
    volume: Rc<RefCell<Volume>>,
    ledgers: Vec<Rc<RefCell<Ledger>>>,
    /// Whose they are.
    hosts: Vec<ActorId>,
    lives: u64,
    troubles: u32,
    kills: u32,
    /// No drive but this one falls ill before then: a command may meet one ill leg, not two in a row.
    convalescent: (usize, Instant),
    /// Until then a leg that lost its cache may not have been noticed: if the head falls, what was not
    /// flushed may be lost with it (promise 1).
    drained_until: Instant,
    /// Links have kept bytes back.
    stalls: bool,
    /// When this life of the head began.
    booted: Instant,
    /// This life has been seen to serve its pools; and the longest time that it took one.
    serves: bool,
    slowest_start: Duration,
    /// When a drive became ill or well last.
    ailed_at: Instant,
    /// The state directory took nothing once.
    froze: bool,
    /// A drive became ill when it could not be known yet that the state directory takes nothing, which is so still.
    loss_not_on_record: bool,
    /// Some drive was ill once.
    ailed: bool,
    /// Some drive was pulled, and came back as another.
    pulled: bool,
    repair: Repair,
    /// A drive of which something was overwritten, when, and whether the head has said so.
    wiped: Option<(usize, Instant, bool)>,
    steps: u64,
    snapshot: Option<Box<Status>>,
    /// What `status` said when it was last looked at.
    last_look: Option<Box<Status>>,
    at_rest_since: Option<Instant>,
    restless: String,
    /// An operator's order about drives has not been followed by a look yet.
    moving: bool,
    /// What was given back by volumes that came and went.
    freed: crate::moves::Freed,
    /// Takes from hosts what they log in by.
    access: Option<Access>,
    /// The order that was given last is its.
    accessing: bool,
    /// How often all lanes went round, and were to.
    deals: u32,
    deals_tried: u32,
    /// Orders about drives that were given.
    moves: u32,
    /// SlowPeer hosts are to go.
    over: Rc<Cell<bool>>,
    /// Drives that an order failed.
    failed: failed::Failed,
    /// Takes what the head decides.
    replica: replay::Replica,
    done: bool,
}

/// Runs one seed to its end.
pub fn run(options: Options) -> Result<Outcome, Box<Failure>> {
    let seed = options.seed;
    let mut world = World::new(seed, options.delivery.clone());
    world.log = options.log || options.trace;
    world.trace = options.trace;
    let more = if options.moves > 0 { crate::moves::MORE_DRIVES } else { 0 };
    for d in 0..options.mirrors * options.legs + more {
        let mut disk = Disk::new(format!("d{d}"), 64 * MIB + d as u64 * MIB, options.volatile);
        disk.sector = u64::from(options.block_bytes);
        disk.deallocate_zeroes = options.deallocate_zeroes || d == 0;
        if options.used {
            disk.soil(0, disk.bytes, d as u32 + 1);
        }
        disk.opening_reads = Prng::new(seed ^ (0x6f70_656e + d as u64)).chance(1, 2);
        world.disks.push(disk);
    }
    let mut run = Run {
        rng: Prng::new(seed ^ 0x7472_6f75_626c),
        options,
        world,
        stage: Stage::Booting,
        down: true,
        ready: false,
        orders: VecDeque::new(),
        sent: None,
        hold_until: Instant(0),
        asked: 0,
        waiting: None,
        volume: Rc::default(),
        ledgers: vec![],
        hosts: vec![],
        stopping: false,
        copy: None,
        copies_at_end: None,
        stopped_in_order: false,
        lives: 0,
        troubles: 0,
        kills: 0,
        convalescent: (0, Instant(0)),
        drained_until: Instant(0),
        stalls: false,
        booted: Instant(0),
        serves: false,
        slowest_start: Duration::ZERO,
        ailed_at: Instant(0),
        froze: false,
        loss_not_on_record: false,
        ailed: false,
        pulled: false,
        repair: Repair::default(),
        wiped: None,
        steps: 0,
        snapshot: None,
        last_look: None,
        at_rest_since: None,
        restless: String::new(),
        moving: false,
        freed: crate::moves::Freed::default(),
        access: None,
        accessing: false,
        deals: 0,
        deals_tried: 0,
        moves: 0,
        over: Rc::default(),
        failed: failed::Failed::default(),
        replica: replay::Replica::default(),
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
        repeated: 0,
        by_server: vec![],
        troubles: run.troubles,
        deals: run.deals,
        taken: run.access.as_ref().map_or(0, Access::taken),
        slowest: run.ledgers.iter().fold(Default::default(), |(r, w): (Duration, Duration), l| {
            let l = l.borrow();
            (r.max(l.slowest_read), w.max(l.slowest_write))
        }),
        longest_path_stall: Duration::ZERO,
        longest_stall: run.ledgers.iter().fold(Duration::ZERO, |most, l| most.max(l.borrow().longest_stall)),
        slowest_start: run.slowest_start,
        events: run
            .last_look
            .iter()
            .flat_map(|s| &s.events)
            .map(|e| format!("{}: {:?}", e.what, e.event))
            .collect(),
    })
}

impl Run {
    /// Half of all worlds have a small in-flight window at each array, so that commands wait for it.
    fn credits(&self) -> u32 {
        let mut rng = Prng::new(self.options.seed ^ 0x706c_6163_6573);
        if rng.chance(1, 2) { rng.between(2, 6) as u32 } else { head::CREDITS }
    }
    /// In half of the worlds of scarce memory few parts of commands are under way at a time, so that commands wait for those.
    fn flights(&self) -> u32 {
        let mut rng = Prng::new(self.options.seed ^ 0x666c_6967_6874);
        if self.options.scarce && rng.chance(1, 2) { rng.between(4, 40) as u32 } else { head::FLIGHTS }
    }
    /// In a third of all worlds a turn takes in little of what hosts have sent, so that their bytes wait for the next one.
    fn turn_pdus(&self) -> u32 {
        let mut rng = Prng::new(self.options.seed ^ 0x0074_7572_6e73);
        if rng.chance(1, 3) { rng.between(1, 4) as u32 } else { head::TURN_PDUS }
    }
    fn boot(&mut self) {
        self.lives += 1;
        self.world.convert_state(0);
        self.booted = self.world.now();
        self.down = false;
        self.ready = false;
        self.waiting = None;
        self.serves = false;
        self.stopping = false;
        if self.options.script.is_empty() {
            self.copy = None;
        }
        let shards = self.options.shards;
        let extents: Vec<(u64, u64)> =
            (0..shards).map(|s| ((1 + u64::from(s)) << 32, self.options.shard_bytes)).collect();
        let seed = self.options.seed.wrapping_mul(1000) + self.lives;
        for id in 0..shards {
            let (at, bytes) = extents[usize::from(id)];
            let staging = at + bytes;
            let shard = Shard::new(ShardConfig {
                connections_max: 64,
                credits: self.credits(),
                turn_pdus: self.turn_pdus(),
                flights: self.flights(),
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
            self.world.put_head(0, Address::Shard(id), shard, Slice::new(staging, MIB as u32));
        }
        let memory = SimMemory::new(1 << 48, 8 * MIB);
        let mut steward = Steward::new(StewardConfig {
            system: None,
            memory,
            shards,
            entropy: [seed, 1, 2, 3],
            version: "sim".into(),
            hold: None,
            notices: vec![],
            state_directory: "/s".into(),
            shapes: BTreeMap::new(),
        });
        steward.keep_journal();
        self.replica.reborn();
        let id = self.world.put_head(0, Address::Steward, Box::new(steward), Slice::new(1 << 50, 1 << 16));
        self.world.nudge(id);
    }

    /// A second state takes what the head has decided; now and then the two are compared.
    fn replay(&mut self, compare: bool) -> Result<(), String> {
        let entries = self.world.journal(0);
        let compare = compare || !entries.is_empty();
        let before = self.replica.in_sync();
        self.replica.take(entries)?;
        let cuts = self.options.cuts_in_sync && matches!(self.stage, Stage::Working);
        if cuts && self.replica.in_sync() > before && self.rng.chance(1, 2) {
            self.doom(Crash::PowerCut);
        }
        match self.world.decided(0).filter(|_| compare && !self.down) {
            Some(state) => self.replica.compare(&state),
            None => Ok(()),
        }
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
        let step = self.world.step();
        self.replay(matches!(step, Step::ToManager { mail: ManagerMail::Answered { .. }, .. }))?;
        match step {
            Step::Happened => {}
            Step::Alarm(mark) => self.alarm(mark),
            Step::Fell { crash, .. } => self.fell(crash),
            Step::ToManager { mail: ManagerMail::Ready { .. }, .. } => {
                self.ready = true;
                self.replica.ready()?;
                if self.stage == Stage::Booting {
                    self.stage = Stage::Ordering;
                    self.orders = self.setup();
                }
            }
            Step::ToManager { mail: ManagerMail::Answered { id, answer }, .. }
                if self.waiting == Some(id) =>
            {
                self.waiting = None;
                self.answered(answer)?;
            }
            Step::ToManager { mail: ManagerMail::Stopped, .. } if self.stopping && !self.down => {
                self.stopped()
            }
            // Heads of these worlds are alone: nothing goes to another one.
            Step::ToManager { .. } => {}
            Step::Quiet => return Err("nothing will ever happen again".into()),
        }
        if self.ready && !self.down && !self.stopping && self.waiting.is_none() {
            self.order();
        }
        for (i, ledger) in self.ledgers.iter().enumerate() {
            if self.world.log {
                let lines = ledger.borrow_mut().log.as_mut().map(core::mem::take).unwrap_or_default();
                lines.into_iter().for_each(|l| self.world.say(|| format!("host {i}: {l}")));
            }
        }
        self.check_hosts()?;
        self.check_surface()?;
        self.progress()
    }

    /// The orders that build the system, as an operator would give them.
    fn setup(&mut self) -> VecDeque<Order> {
        let legs = self.options.legs;
        let mut arrays: Vec<_> = (0..self.options.mirrors)
            .map(|m| ArraySpec {
                layout: head::order::ArrayLayout::of(legs > 1),
                drives: (0..legs).map(|l| format!("d{}", m * legs + l)).collect(),
                weight: None,
            })
            .collect();
        let later = if self.options.grown { arrays.split_off(1) } else { vec![] };
        let mut orders = VecDeque::from([Order::PoolCreate {
            name: "tank".into(),
            arrays,
            chunk_bytes: None,
            block_bytes: Some(self.options.block_bytes),
            measure: false,
            force: false,
        }]);
        if !later.is_empty() {
            // The answer says how much there is to fill.
            orders.push_back(Order::Status);
            orders.push_back(Order::PoolAdd { pool: "tank".into(), arrays: later, force: false });
        }
        if self.options.former {
            // It takes nearly all that there is, so that the hosts' volume has to wait for its space.
            orders.push_back(Order::Status);
            orders.push_back(Order::VolumeRemove {
                volume: "tank/filler".into(),
                force: true,
                disconnect: true,
            });
        }
        orders.extend([Order::VolumeCreate {
            pool: "tank".into(),
            name: "v".into(),
            bytes: VOLUME_BYTES,
            block_bytes: Some(self.options.block_bytes),
        }]);
        if self.options.iops_max.is_some() {
            let caps = VolumeCaps { iops_max: self.options.iops_max, ..VolumeCaps::default() };
            orders.push_back(Order::VolumeCaps { volume: "tank/v".into(), caps });
        }
        orders.extend(lets_in(self.options.hosts.len()));
        for i in 0..self.options.slow_peers.len() {
            let host = self.options.hosts.len() + i;
            let settings = HostSettings {
                nqns: Some(vec![nqn(host)]),
                iqns: Some(vec![iqn(host)]),
                ..HostSettings::default()
            };
            if i == 0 {
                orders.push_back(Order::VolumeCreate {
                    pool: "tank".into(),
                    name: "w".into(),
                    bytes: MIB,
                    block_bytes: Some(4096),
                });
            }
            orders.push_back(Order::HostAdd { name: format!("h{host}"), settings });
            orders.push_back(Order::Export {
                volume: "tank/w".into(),
                host: format!("h{host}"),
                lun: Some(0),
            });
        }
        let wiped = self.options.script.iter().any(|act| matches!(act.deed, Deed::Wipe(_)));
        // What rotted or was wiped differs indeed, and stays `degraded` until somebody has it repaired.
        if !wiped && !self.options.troubles.contains(&Trouble::Rot) {
            orders.extend(crate::operator::orders(self.options.seed));
        }
        orders.push_back(Order::Status);
        orders
    }

    /// The next order waits for so long.
    fn hold(&mut self, time: Duration) {
        self.hold_until = self.world.now() + time;
        self.world.alarm(time, ALARM_HOLD);
    }
    /// The volume that goes had data all over its space.
    fn soil(&mut self) {
        for disk in 0..self.options.mirrors * self.options.legs {
            if let Some((at, len)) = self.data_space(disk) {
                self.world.disks[disk].soil(at, len, 0);
            }
        }
    }
    /// The first volume has gone: at once, a little later or never the head falls.
    fn former_is_gone(&mut self) {
        let pause = Duration::from_millis(self.rng.below(15_000));
        self.hold(pause);
        if self.rng.chance(1, 2) {
            let crash = if self.rng.chance(1, 2) { Crash::Killed } else { Crash::PowerCut };
            self.ends(crash);
        }
    }

    fn order(&mut self) {
        if self.world.now() < self.hold_until {
            return;
        }
        let ordered = self.orders.pop_front();
        self.accessing = ordered.is_none();
        let next = |access: &mut Access| access.next(self.world.now());
        if let Some(order) = ordered.or_else(|| self.access.as_mut().and_then(next)) {
            if self.stage == Stage::Ordering && matches!(order, Order::VolumeRemove { .. }) {
                self.soil();
            }
            self.failed.ordered(&order);
            self.sent = Some(order.clone());
            self.asked += 1;
            self.waiting = Some(self.asked);
            self.world.manage(0, Address::Steward, StewardMail::Order { id: self.asked, order });
        }
    }

    /// Arrays copy and clear as slowly as this world wants it, or as usual again.
    fn pace(&mut self) {
        if self.options.pace == 0 || self.down {
            return;
        }
        let slow = array::Pace { floor: self.options.pace, ceiling: self.options.pace, ..Default::default() };
        let pace = if matches!(self.stage, Stage::Calming { .. }) { Default::default() } else { slow };
        for shard in 0..self.options.shards {
            for array in 0..self.options.mirrors {
                let mail = ShardMail::Pace { array: ArrayId(array as u16), pace };
                self.world.manage(0, Address::Shard(shard), mail);
            }
        }
    }

    fn answered(&mut self, answer: Answered) -> Result<(), String> {
        let sent = self.sent.take();
        if let Some(access) = self.access.as_mut().filter(|_| self.accessing) {
            access.answered(self.world.now(), answer.is_ok())?;
            let due = access.next_deadline().map(|at| at.since(self.world.now()));
            due.into_iter().for_each(|after| self.world.alarm(after, ALARM_ACCESS));
            return Ok(());
        }
        if answer.is_ok() {
            self.failed.carried_out(sent.as_ref());
        }
        self.deals += u32::from(sent == Some(Order::LanesTurn) && answer.is_ok());
        if answer.is_ok() && matches!(sent, Some(Order::PoolCreate { .. } | Order::PoolAdd { .. })) {
            self.pace();
        }
        match (self.stage, answer) {
            (Stage::Ordering, Ok(_)) if matches!(sent, Some(Order::VolumeRemove { .. })) => {
                self.former_is_gone();
                Ok(())
            }
            // Its space is free when every shard has marked it.
            (Stage::Ordering, Err(r)) if self.options.former && r.kind() == ErrorKind::NoSpace => {
                self.orders.extend(sent);
                self.orders.rotate_right(1);
                self.hold(Duration::from_millis(700));
                Ok(())
            }
            (_, Ok(Reply::Snapshot(snapshot))) => {
                if !self.options.troubles.contains(&Trouble::Rot) {
                    crate::operator::verdict(&snapshot)?;
                }
                self.freed.verdict(self.world.now(), &snapshot)?;
                self.failed.verdict(&snapshot)?;
                self.hear_of_wipe(&snapshot)?;
                let served = |p: &head::order::Pool| !p.arrays.is_empty() && p.state != State::Offline;
                if !self.serves && !snapshot.pools.is_empty() && snapshot.pools.iter().all(served) {
                    self.serves = true;
                    self.pace();
                    if self.lives > 1 {
                        let took = self.world.now().since(self.booted);
                        self.slowest_start = self.slowest_start.max(took);
                    }
                }
                if self.stage == Stage::Ordering {
                    if self.orders.is_empty() {
                        self.stage = Stage::Working;
                        self.begin_work(&snapshot);
                    } else {
                        // The hosts' volume comes to lie on what is added, or half of it.
                        let half = self.options.former || !self.options.seed.is_multiple_of(2);
                        let left = if half { VOLUME_BYTES / 2 } else { 0 };
                        self.orders.push_front(filler(&snapshot, left));
                    }
                }
                let moving = self.moving || !self.orders.is_empty();
                if snapshot.health == State::Optimal && quiet(&snapshot) && !moving {
                    self.world.checker_look();
                }
                self.moving &= !self.orders.is_empty();
                self.snapshot = Some(snapshot);
                Ok(())
            }
            (Stage::Ordering, Err(refusal)) => Err(format!("an order was refused: {refusal:?}")),
            (_, Err(refusal)) => {
                self.world.say(|| format!("the order is refused: {:?}", refusal.why));
                Ok(())
            }
            (_, Ok(_)) => Ok(()),
        }
    }

    fn begin_work(&mut self, snapshot: &Status) {
        for (i, protocol) in self.options.hosts.clone().into_iter().enumerate() {
            let (peer, target) = match protocol {
                Protocol::Nvme | Protocol::Discovery => {
                    let id = [i as u8 + 1; 16];
                    let mut c = nvme::host::Config::new(&nqn(i), id, &snapshot.system.nqn);
                    c.queues = self.rng.between(1, 3) as u16;
                    c.header_digest = self.rng.chance(1, 4);
                    c.data_digest = self.rng.chance(1, 4);
                    c.flow_control = self.rng.chance(3, 4);
                    (NVME, load::Target::Nvme(c))
                }
                Protocol::Iscsi => {
                    let mut c = iscsi::initiator::Config::new(&iqn(i), Some(&snapshot.system.iqn));
                    c.header_digest = self.rng.chance(1, 4);
                    c.data_digest = self.rng.chance(1, 4);
                    c.immediate_data = self.rng.chance(1, 2);
                    c.initial_r2t = self.rng.chance(1, 2);
                    if self.options.tight {
                        // Most writes come in part unasked, and in part on request.
                        c.immediate_data = true;
                        c.first_burst = 512 * Prng::new(self.options.seed + i as u64).between(1, 64) as u32;
                    }
                    if self.options.scarce {
                        // Up to the most that the head offers.
                        c.first_burst = 512 << Prng::new(self.options.seed + i as u64).between(0, 9);
                        c.max_burst = c.first_burst.max(1 << 16);
                    }
                    (ISCSI, load::Target::Iscsi(c))
                }
            };
            let config = load::Config { peer: peer.parse().expect("an address"), target };
            let mut habits = self.options.habits.clone();
            habits.commands = self.options.commands;
            habits.block_bytes = self.options.block_bytes;
            habits.zeroes_fua = protocol == Protocol::Nvme;
            if self.options.looker && i + 1 == self.options.hosts.len() {
                habits.depth = 1;
                habits.short_permille = 1000;
                habits.write_permille = 0;
            }
            let at = (100 + i as u64) << 32;
            let bytes = MIB + Host::memory_bytes(&config, &habits);
            let seed = self.rng.next_u64();
            let host = Host::new(config, habits, (at, bytes), MIB, self.volume.clone(), seed);
            host.ledger.borrow_mut().log = self.world.log.then(Vec::new);
            self.ledgers.push(host.ledger.clone());
            let id = self.world.put_host(Box::new(host), Slice::new(at, MIB as u32));
            self.hosts.push(id);
            self.world.nudge(id);
        }
        for i in 0..self.options.slow_peers.len() {
            self.begin_stinginess(i, snapshot);
        }
        for (i, act) in self.options.script.iter().enumerate() {
            self.world.alarm(act.after, ALARM_ACT + i as u64);
        }
        self.world.alarm(LOOK, ALARM_LOOK);
        if self.options.access > 0 {
            let (hosts, ledgers) = (self.options.hosts.clone(), self.ledgers.clone());
            self.access = Some(Access::new(self.options.seed, hosts, ledgers, SLACK, self.options.access));
        }
        self.next_trouble();
        self.next_move();
        self.next_deal();
    }

    /// One of the hosts that keep buffers.
    fn begin_stinginess(&mut self, i: usize, snapshot: &Status) {
        let (protocol, habit) = self.options.slow_peers[i];
        let host = if self.options.kin { 0 } else { self.options.hosts.len() + i };
        let (peer, target) = match protocol {
            Protocol::Nvme | Protocol::Discovery => {
                let mut c = nvme::host::Config::new(&nqn(host), [host as u8 + 1; 16], &snapshot.system.nqn);
                c.depth = slow_peer::DEPTH;
                c.queues = 2;
                // Answers that are made up do not say how far the queue is read.
                c.flow_control = habit != Habit::Presumes;
                (NVME, load::Target::Nvme(c))
            }
            Protocol::Iscsi => {
                let mut c = iscsi::initiator::Config::new(&iqn(host), Some(&snapshot.system.iqn));
                c.depth = slow_peer::DEPTH;
                c.immediate_data = i.is_multiple_of(2);
                c.initial_r2t = false;
                c.isid[5] = i as u8 + 2;
                (ISCSI, load::Target::Iscsi(c))
            }
        };
        let config = load::Config { peer: peer.parse().expect("an address"), target };
        let at = (200 + i as u64) << 32;
        let bytes = MIB + SlowPeer::memory_bytes(&config);
        let mut host = SlowPeer::new(config, habit, (at, bytes), MIB, self.over.clone());
        if self.options.kin {
            // On the volume of the one that works, of which it writes the blocks before: what came of a write that was cut
            // off may be there.
            host.at = self.options.habits.blocks;
        }
        let id = self.world.put_host(Box::new(host), Slice::new(at, MIB as u32));
        self.world.nudge(id);
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
                let calm = matches!(self.stage, Stage::Calming { .. });
                self.world.alarm(if calm { LOOK_CALM } else { LOOK }, ALARM_LOOK);
            }
            ALARM_LANDED => self.look_for_hangs(),
            ALARM_MOVE if self.stage == Stage::Working => {
                self.move_drives();
                self.next_move();
            }
            ALARM_DEAL if self.stage == Stage::Working => {
                self.deal();
                self.next_deal();
            }
            // Its supervisor has no more patience.
            ALARM_STOP if self.stopping && !self.down => self.ends(Crash::Killed),
            ALARM_DOOM if self.stage == Stage::Working => self.doom(Crash::Killed),
            mark if mark >= ALARM_ACT => self.act((mark - ALARM_ACT) as usize),
            mark if mark >= ALARM_HEAL => self.heal((mark - ALARM_HEAL) as usize),
            _ => {}
        }
    }

    fn progress(&mut self) -> Result<(), String> {
        match self.stage {
            Stage::Booting | Stage::Ordering => {
                if self.world.now().since(Instant(0)) > Duration::from_secs(60) {
                    return Err(format!("the system does not come up: {:?}", self.stage));
                }
            }
            Stage::Working => {
                let ill = self.world.disks.iter().any(|d| d.faults.any());
                if !ill && let Some(snapshot) = self.snapshot.take_if(|s| s.health != State::Optimal) {
                    self.nurse(&snapshot);
                    self.last_look = Some(snapshot);
                }
                let finished = self.ledgers.iter().all(|l| l.borrow().finished);
                let given = self.access.as_ref().is_none_or(Access::is_done);
                if given && self.access.is_some() {
                    self.ledgers.iter().for_each(|l| l.borrow_mut().stop = true);
                }
                if finished && given && !self.down && self.moves >= self.options.moves {
                    self.calm();
                } else if self.world.now().since(Instant(0)) > Duration::from_secs(900) {
                    // Long enough: hosts may finish in calm weather.
                    self.calm();
                }
            }
            Stage::Calming { since } => {
                let finished = self.ledgers.iter().all(|l| l.borrow().finished);
                let optimal = self.snapshot.as_ref().is_some_and(|s| s.health == State::Optimal && quiet(s));
                // Somebody has looked at every drive since.
                let looked = self.world.now().since(since) > NOTICED;
                if finished && looked && self.repairs() {
                    self.snapshot = None;
                    return Ok(());
                }
                if finished && optimal && looked && self.wiped.is_none_or(|(.., said)| said) {
                    // Twice, so that no letter between machines is overlooked.
                    self.last_look = self.snapshot.take();
                    let rested = self.at_rest_since.take();
                    match self.world.at_rest() {
                        Ok(()) if rested.is_some() => {
                            self.done = true;
                            self.world.check_books(&[0])?;
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

    /// What rotted is repaired before the legs are looked at, where it is known how.
    fn repairs(&mut self) -> bool {
        let quiet = !self.ailed && self.lives == 1 && !self.options.troubles.contains(&Trouble::RotMetadata);
        let Some(snapshot) = self.snapshot.as_ref().filter(|_| quiet) else { return false };
        let scrub = snapshot.pools.first().map(|p| p.scrub.clone()).unwrap_or_default();
        let order = self.repair.go_on(self.options.legs, self.options.mirrors, &scrub);
        self.orders.extend(order);
        self.repair.is_under_way()
    }

    /// Faults stop.
    fn calm(&mut self) {
        self.world.say(|| "faults stop".into());
        self.stage = Stage::Calming { since: self.world.now() };
        self.ailed_at = self.world.now();
        self.over.set(true);
        self.access.iter_mut().for_each(Access::calm);
        self.pace();
        for disk in &mut self.world.disks {
            disk.faults = Default::default();
        }
        self.world.servers[0].frozen_at = None;
        self.world.alarm(trouble::LANDED_AFTER, ALARM_LANDED);
        self.snapshot = None;
    }
}

/// Nothing is copied, compared or cleared.
pub(crate) fn quiet(snapshot: &Status) -> bool {
    snapshot.pools.iter().all(|p| p.clearing.is_none() && p.arrays.iter().all(|a| a.resync.is_none()))
}

/// A volume that leaves `left` bytes of what is free.
fn filler(snapshot: &Status, left: u64) -> Order {
    let free: u64 = snapshot.pools.iter().map(|p| p.bytes - p.used_bytes).sum();
    let bytes = (free - left) / GRANULE_BYTES * GRANULE_BYTES;
    Order::VolumeCreate { pool: "tank".into(), name: "filler".into(), bytes, block_bytes: None }
}
