//! Shards without connections or protocols, in virtual time, before drives of a known speed: tests of who gets what.
//!
//! A flow keeps a number of commands under way on one volume from one shard, as a host's queue does. A drive does one
//! operation after the other, each in a time that follows from its length, and answers after a latency.

use crate::layout::{ArrayId, ArrayLayout, Layout, PoolId, PoolLayout, VolumeLayout};
use crate::mail::{Mail, ShardMail, StewardMail};
use crate::path::link::{Io, Life, Link};
use crate::path::request::Landed;
use crate::{Deadlines, Shard, ShardConfig};
use array::{Bitmap, Geometry, Lanes, Leg, LegState, Membership};
use base::memory::PlainMemory;
use base::view::View;
use base::{
    Address, Command, ConnectionId, DriveId, DriveOpKind, Duration, Effect, Event, FrontIo, HostId, Instant,
    Machine, Memory, Op, Outbox, PortalId, Prng, Slice, Status, Tag, Uuid, VolumeId,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use volume::Caps;

/// Bytes of each drive, and of each volume.
const DRIVE_BYTES: u64 = 1 << 30;
const VOLUME_BYTES: u64 = 16 << 20;
/// From one shard to another.
const MAIL: Duration = Duration::from_micros(10);

/// How fast a drive is.
#[derive(Clone, Copy)]
pub struct Speed {
    pub each: Duration,
    pub bytes_per_second: u64,
    pub latency: Duration,
}

/// A queue of a host.
pub struct Flow {
    pub shard: usize,
    pub volume: u32,
    pub depth: u16,
    pub op: Op,
    pub bytes: u32,
    pub fua: bool,
    /// Commands that ended since `Trial::measure`, and how long they took.
    pub done: u64,
    pub took: Duration,
    pub(crate) link: Link,
}

/// A flow of reads of 4096 bytes.
pub fn reader(shard: usize, host: u32, volume: u32, depth: u16) -> Flow {
    let link = Link {
        index: 0,
        id: ConnectionId::new(0, 1),
        local: "10.0.0.1:1".parse().expect("an address"),
        portal: PortalId(1),
        peer: "10.0.0.1:1".parse().expect("an address"),
        host: Some(HostId(host)),
        login: Default::default(),
        life: Life::Open,
        why: None,
        outbox: Outbox::new(Slice::default(), 0),
        ring_bytes: 0,
        login_state: crate::path::link::LoginState::Uncounted,
        spoke: false,
        staged: VecDeque::new(),
        in_line: false,
        came_last: 0,
        visit_left: 0,
        came: 0,
        receiving: None,
        sending: false,
        touched: true,
        known: true,
        timer: None,
        tags: vec![],
        live: 0,
        unsent: 0,
        account: u32::MAX,
        stalled: false,
        deadlines: Default::default(),
        counters: Default::default(),
    };
    let (op, bytes, done, took) = (Op::Read, 4096, 0, Duration::ZERO);
    Flow { shard, volume, depth, op, bytes, fua: false, done, took, link }
}

/// A flow of writes.
pub fn writer(shard: usize, host: u32, volume: u32, depth: u16, bytes: u32) -> Flow {
    Flow { op: Op::Write, bytes, ..reader(shard, host, volume, depth) }
}

impl Flow {
    /// Mean time of a command.
    pub fn mean(&self) -> Duration {
        self.took / (self.done.max(1) as u32)
    }
}

/// The caps of a trial's volumes, which are numbered from 1.
pub type AllCaps = Vec<Caps>;

/// A head of one mirror of two drives.
pub struct Trial {
    now: Instant,
    pub shards: Vec<Shard<PlainMemory>>,
    pub flows: Vec<Flow>,
    speed: Speed,
    /// When each drive is free again.
    free_at: [Instant; 2],
    queue: BTreeMap<(Instant, u64), (usize, Event<Mail>)>,
    seq: u64,
    prng: Prng,
    generation: u64,
    /// Of the volumes; the usual one if there is none.
    pub weights: Vec<u16>,
    /// Commands under way at the drives now, and bytes that they did.
    pub drive_bytes: u64,
    /// Who has which lane, and by which map.
    lanes: Lanes,
    map: u32,
    caps: AllCaps,
    /// Shards that have halted the array, and whose instances are quiet.
    halted: BTreeSet<usize>,
    quiet: BTreeSet<usize>,
    /// Where each write to a drive began and ended, by drive: none may begin at a place where another one is under way.
    changing: Vec<(DriveId, u64, u64, Instant)>,
}

impl Trial {
    pub fn new(shards: u16, speed: Speed, caps: &AllCaps, flows: Vec<Flow>) -> Self {
        Self::with(shards, speed, caps, flows, (crate::CREDITS, crate::FLIGHTS))
    }
    /// The same with so many credits of the array, and so many parts of commands under way on a shard.
    pub fn with(
        shards: u16,
        speed: Speed,
        caps: &AllCaps,
        flows: Vec<Flow>,
        (credits, flights): (u32, u32),
    ) -> Self {
        let bytes = crate::limits::shard_bytes_min(1);
        let region = |s: u16| u64::from(s) * (bytes + (1 << 20));
        let shard = |id: u16| {
            Shard::new(ShardConfig {
                id,
                shards,
                memory: PlainMemory::new(region(id), bytes as usize),
                staging: PlainMemory::new(u64::MAX / 2, 0),
                seed: 1,
                deadlines: Deadlines { read: Duration::from_secs(1000), write: Duration::from_secs(1000) },
                extents: (0..shards).map(|s| (region(s), bytes)).collect(),
                connections_max: 1,
                credits,
                turn_pdus: crate::TURN_PDUS,
                flights,
            })
        };
        let mut trial = Self {
            now: Instant(1_000_000_000),
            shards: (0..shards).map(shard).collect(),
            flows,
            speed,
            free_at: [Instant(0); 2],
            queue: BTreeMap::new(),
            seq: 0,
            prng: Prng::new(7),
            generation: 0,
            weights: vec![],
            drive_bytes: 0,
            lanes: Lanes::dealt(shards),
            map: 1,
            caps: caps.clone(),
            halted: BTreeSet::new(),
            quiet: BTreeSet::new(),
            changing: vec![],
        };
        trial.configure(caps);
        for i in 0..trial.flows.len() {
            let flow = &mut trial.flows[i];
            flow.link.index = i as u32;
            let (shard, depth) = (flow.shard, flow.depth);
            flow.link.tags = vec![u32::MAX; usize::from(depth)];
            flow.link.account = trial.shards[shard].core_mut().quota.open(flow.link.host, flow.link.index);
            assert!(trial.shards[shard].core_mut().admit(u32::from(depth)));
            (0..depth).for_each(|tag| trial.submit(i, Tag(tag)));
        }
        (0..usize::from(shards)).for_each(|s| trial.end_of_turn(s));
        trial
    }

    /// Deals the lanes anew under load, as the Steward does. How long no command could start.
    pub fn deal(&mut self, lanes: Lanes) -> Duration {
        let began = self.now;
        let array = ArrayId(1);
        self.halted.clear();
        self.quiet.clear();
        self.send_all(|| ShardMail::Halt { array, number: 1 });
        self.run_until(|t| t.halted.len() == t.shards.len());
        self.send_all(|| ShardMail::Quiesce { array, number: 1 });
        self.run_until(|t| t.quiet.len() == t.shards.len());
        assert!(self.changing.iter().all(|(.., end)| *end <= self.now), "nothing is at a drive");
        self.lanes = lanes;
        self.map += 1;
        let took = self.now.since(began);
        self.configure(&self.caps.clone());
        took
    }
    /// Takes it back before all are quiet.
    pub fn halt_and_resume(&mut self) {
        let array = ArrayId(1);
        self.send_all(|| ShardMail::Halt { array, number: 1 });
        self.run(Duration::from_micros(50));
        self.send_all(|| ShardMail::Quiesce { array, number: 1 });
        self.run(Duration::from_micros(50));
        self.send_all(|| ShardMail::Resume { array });
    }
    fn send_all(&mut self, mail: impl Fn() -> ShardMail) {
        for s in 0..self.shards.len() {
            // Letters of the Steward take their time, to some shards longer than to others.
            let at = self.now + Duration::from_micros(self.prng.below(40));
            self.push(at, s, Event::Mail { from: Address::Steward, mail: mail().into() });
        }
    }
    fn run_until(&mut self, over: impl Fn(&Self) -> bool) {
        let began = self.now;
        while !over(self) {
            self.run(Duration::from_micros(10));
            assert!(self.now.since(began) < Duration::from_secs(10), "it does not come to rest");
        }
    }

    /// Gives every shard a layout with these volumes.
    pub fn configure(&mut self, caps: &AllCaps) {
        self.generation += 1;
        let geometry = Geometry::plan(true, 1 << 20, DRIVE_BYTES, 1 << 20).expect("there is room");
        let leg = |n| {
            let (state, volatile_cache, deallocate_zeroes) = (LegState::InSync, true, true);
            Some(Leg { drive: DriveId(n), state, volatile_cache, deallocate_zeroes, map_at: 1 << 40 })
        };
        let space = pool::ArraySpace { bytes: geometry.data_bytes, weight: 1 };
        let volume = |(i, caps): (usize, &Caps)| VolumeLayout {
            id: VolumeId(i as u32 + 1),
            pool: PoolId(1),
            block_bytes: 4096,
            blocks: VOLUME_BYTES / 4096,
            map: Arc::new(volume::Map::new(&[volume::Run { first: 4 * i as u64, count: 4 }]).expect("a map")),
            ready: true,
            home: ((i + 1) % self.shards.len()) as u16,
            caps: *caps,
            weight: self.weights.get(i).copied().unwrap_or(volume::WEIGHT),
        };
        let layout = Arc::new(Layout {
            generation: self.generation,
            pools: vec![PoolLayout {
                id: PoolId(1),
                uuid: Uuid([1; 16]),
                map: Arc::new(pool::StripeMap::new(1 << 20, &[space]).expect("a map")),
                arrays: vec![ArrayId(1)],
            }],
            arrays: vec![ArrayLayout {
                id: ArrayId(1),
                uuid: Uuid([2; 16]),
                geometry,
                membership: Membership { epoch: 1, legs: vec![leg(1), leg(2)] },
                lanes: self.lanes,
                map: self.map,
                // As bitmaps that are read say at the worst.
                dirty: Arc::new(if self.map == 1 {
                    Bitmap::new(geometry.regions())
                } else {
                    Bitmap::full(geometry.regions())
                }),
                unclean: false,
                uncleared: Default::default(),
                shared: false,
                lacks_path: false,
            }],
            volumes: caps.iter().enumerate().map(volume).collect(),
            waits: false,
        });
        let view = Arc::new(View { generation: self.generation, ..View::default() });
        for s in 0..self.shards.len() {
            let room = crate::mail::Room { mirrors: layout.arrays.len() as u32, singles: 0 };
            let room = ShardMail::Room { number: 1, room };
            let configure = ShardMail::Configure { view: view.clone(), layout: layout.clone() };
            for mail in [room, configure] {
                self.send(s, Event::Mail { from: Address::Steward, mail: mail.into() });
            }
            self.end_of_turn(s);
        }
    }

    /// Goes on for so long.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let event = self.queue.first_key_value().map(|((at, _), _)| *at);
            let timers = self.shards.iter().enumerate().filter_map(|(s, m)| Some((m.next_deadline()?, s)));
            let timer = timers.min();
            let at = event.into_iter().chain(timer.map(|(at, _)| at)).min().unwrap_or(end);
            if at >= end {
                self.now = end;
                return;
            }
            self.now = self.now.max(at);
            let shard = if event == Some(at) {
                let (_, (shard, event)) = self.queue.pop_first().expect("seen above");
                self.send(shard, event);
                shard
            } else {
                let shard = timer.expect("it is the earliest").1;
                let mut fx = vec![];
                self.shards[shard].on_timer(self.now, &mut fx);
                self.carry_out(shard, fx);
                shard
            };
            self.end_of_turn(shard);
        }
    }

    /// Runs for so long after a time in which everything settles, and counts only then.
    pub fn measure(&mut self, settle: Duration, time: Duration) {
        self.run(settle);
        self.flows.iter_mut().for_each(|f| (f.done, f.took) = (0, Duration::ZERO));
        self.drive_bytes = 0;
        self.run(time);
    }

    /// The host of a flow gives up all its commands: they are sent anew.
    pub fn abort(&mut self, flow: usize) {
        let Flow { shard, link, .. } = &self.flows[flow];
        let (shard, mine) = (*shard, link.tags.clone());
        let mut fx = vec![];
        for request in mine.into_iter().filter(|r| *r != u32::MAX) {
            self.shards[shard].core_mut().abort_request(self.now, request, &mut fx);
        }
        self.carry_out(shard, fx);
        self.end_of_turn(shard);
    }

    fn send(&mut self, shard: usize, event: Event<Mail>) {
        let mut fx = vec![];
        self.shards[shard].on_event(self.now, event, &mut fx);
        self.carry_out(shard, fx);
    }

    fn submit(&mut self, flow: usize, tag: Tag) {
        let f = &mut self.flows[flow];
        let core = self.shards[f.shard].core_mut();
        let at = self.prng.below(VOLUME_BYTES / u64::from(f.bytes.max(4096))) * u64::from(f.bytes / 4096);
        let blocks = u64::from(f.bytes / 4096);
        let command = Command { volume: VolumeId(f.volume), op: f.op, at, blocks, fua: f.fua };
        let data = Slice { at: core.memory.extent().0, len: f.bytes };
        let mut fx = vec![];
        let shard = f.shard;
        Io { now: self.now, core, link: &mut f.link, fx: &mut fx }.submit(tag, command, data);
        self.carry_out(shard, fx);
    }

    /// As `Shard::settle` does, with flows in the place of connections.
    fn end_of_turn(&mut self, shard: usize) {
        self.shards[shard].core_mut().turns_done += 1;
        loop {
            let mut fx = vec![];
            let core = self.shards[shard].core_mut();
            core.notes.clear();
            core.touched.clear();
            while let Some(Landed { flight, status, issued }) = core.landed.pop_front() {
                core.flight_landed(self.now, flight, status, issued, &mut fx);
            }
            let mut completed = vec![];
            while let Some(index) = core.completed.pop_front() {
                let request = &core.requests[index];
                let (flow, tag) = (request.link as usize, request.tag);
                let given_up = request.aborted && request.status == Status::Aborted;
                assert!(request.status == Status::Good || given_up, "{:?}", request.status);
                let f = &mut self.flows[flow];
                f.took += self.now.since(request.started);
                f.done += 1;
                f.link.forget(tag);
                core.retire(&mut f.link, index, Some(self.now));
                completed.push((flow, tag));
            }
            core.start_turns(self.now, &mut fx);
            core.report_quiet(&mut fx);
            let quiet = completed.is_empty() && core.landed.is_empty() && core.completed.is_empty();
            self.carry_out(shard, fx);
            completed.into_iter().for_each(|(flow, tag)| self.submit(flow, tag));
            if quiet {
                break;
            }
        }
    }

    fn carry_out(&mut self, shard: usize, fx: Vec<Effect<Mail>>) {
        for effect in fx {
            match effect {
                Effect::Drive(op) => {
                    let nanos = u128::from(op.len) * 1_000_000_000 / u128::from(self.speed.bytes_per_second);
                    let free_at = &mut self.free_at[op.drive.index() - 1];
                    *free_at =
                        (*free_at).max(self.now) + self.speed.each + Duration::from_nanos(nanos as u64);
                    let at = *free_at + self.speed.latency;
                    self.drive_bytes += op.len;
                    if op.kind == DriveOpKind::Write {
                        let (drive, end) = (op.drive, op.at + op.len);
                        self.changing.retain(|(.., over)| *over > self.now);
                        let meets =
                            |c: &&(DriveId, u64, u64, Instant)| c.0 == drive && c.1 < end && op.at < c.2;
                        let other = self.changing.iter().find(meets);
                        assert!(other.is_none(), "two writes at a time to {}..{end}: {other:?}", op.at);
                        self.changing.push((drive, op.at, end, at));
                    }
                    self.push(at, shard, Event::DriveDone { token: op.token, result: Ok(()) });
                }
                Effect::Mail { to: Address::Shard(to), mail } => {
                    let from = Address::Shard(shard as u16);
                    self.push(self.now + MAIL, usize::from(to), Event::Mail { from, mail });
                }
                Effect::Mail { to: Address::Steward, mail } => match mail.for_steward() {
                    Some(StewardMail::Halted { .. }) => drop(self.halted.insert(shard)),
                    Some(StewardMail::Quiesced { .. }) => drop(self.quiet.insert(shard)),
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn push(&mut self, at: Instant, shard: usize, event: Event<Mail>) {
        self.seq += 1;
        self.queue.insert((at, self.seq), (shard, event));
    }
}
