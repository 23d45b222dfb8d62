//! Two heads whose shards reach each other over networks that are late, cut bytes anywhere and break, before the same drives.

use super::wire::{Message, Pairing};
use super::{FarLink, FarSetup, FarSide, Out};
use crate::admission::arena::Arena;
use crate::layout::{ArrayId, ArrayLayout, Layout, PoolId, PoolLayout, VolumeLayout};
use crate::mail::{FlightId, Mail, ShardMail, StewardMail};
use crate::path::door::Door;
use crate::{Deadlines, Shard, ShardConfig};
use array::{Bitmap, Geometry, Lanes, Leg, LegState, Membership};
use base::memory::PlainMemory;
use base::view::View;
use base::{
    Address, Command, ConnectionId, Dma, DriveError, DriveId, DriveOp, DriveOpKind, Duration, Effect,
    Effects, Event, Instant, Machine, NetError, Op, PortalId, Prng, Slice, Status, Tag, Uuid, VolumeId,
};
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use volume::Caps;

const VOLUME: VolumeId = VolumeId(1);
const MEMORY: u64 = 24 << 20;
const STAGING: u32 = 8 << 10;
const STAGED: u32 = 64;
const SLOTS: u32 = 4096;
const DRIVE_BYTES: u64 = 1 << 28;
const BLOCK: u32 = 4096;
/// Places in the volume, one in each region; each worker has one alone, of so many blocks.
const PLACES: u64 = 60;
const BLOCKS: u64 = 8;

/// Tag of a host's flush: no worker has that number.
const FLUSH: Tag = Tag(999);
/// The longest read that a far shard carries out in one command: a power of two of pages.
const PIECE: u32 = 256 << 10;

type Machines = Vec<Shard<PlainMemory>>;

enum Ev {
    Machine(Event<Mail>),
    /// Bytes arrive at this end.
    Bytes(u64, Vec<u8>),
    /// A drive does it now.
    Drive(DriveOp),
    Cut(u64),
}

/// One end of a connection.
struct End {
    machine: usize,
    id: ConnectionId,
    other: u64,
    arrived: VecDeque<u8>,
    wanted: Option<(Option<Slice>, u32)>,
    up: bool,
    broken: bool,
    closed: bool,
}

struct Worker {
    machine: usize,
    place: u64,
    /// What lies there by what it was answered, and what it is writing.
    known: u8,
    doing: Doing,
    data: Slice,
    done: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    Nothing,
    Writes(u8),
    Reads,
}

struct World {
    now: Instant,
    rng: Prng,
    shards: u16,
    machines: Machines,
    queue: BTreeMap<(Instant, u64), (usize, Ev)>,
    seq: u64,
    disks: [BTreeMap<u64, Vec<u8>>; 2],
    ends: BTreeMap<u64, End>,
    listens: BTreeMap<SocketAddr, (usize, PortalId)>,
    accepted: u32,
    staging: Vec<Vec<Slice>>,
    workers: Vec<Worker>,
    silent: BTreeSet<usize>,
    /// Machines that are no more.
    dead: BTreeSet<usize>,
    halted: BTreeSet<usize>,
    quiet: BTreeSet<usize>,
    /// Which meeting each has reported last, and under which number it has parted.
    met: BTreeMap<usize, u32>,
    parted: BTreeMap<usize, u32>,
    /// Bytes that went over networks, and messages sent.
    bytes: u64,
    sends: u64,
    drive: Duration,
    caps: Caps,
    /// Nobody reads.
    only_writes: bool,
    /// Heads that do not reach drives, and know it; and those that have lost their paths.
    lacks: Vec<(u16, u16)>,
    lost: BTreeSet<(u16, u16)>,
    /// Drives that hang, and what they were asked meanwhile, by which machine.
    hangs: BTreeSet<u16>,
    hung: Vec<(usize, DriveOp)>,
    /// Which drives were flushed, by which machine; and commands of `ask` that have ended well, or not while drives hang.
    flushed: Vec<(usize, u16)>,
    flushes: u32,
    refused: u32,
    /// A drive whose leg is out, on record.
    out: Option<u16>,
    /// The number of the last map.
    map: u32,
}

fn region(machine: usize) -> u64 {
    machine as u64 * (MEMORY + (1 << 20))
}

impl World {
    fn new(seed: u64, shards: u16, lanes: impl Fn(u32) -> u16) -> Self {
        let mut rng = Prng::new(seed);
        let all = 2 * usize::from(shards);
        let staging_at = |m: usize| (1 << 40) + m as u64 * u64::from(STAGING * STAGED);
        let machine = |m: usize| {
            let head = m / usize::from(shards);
            let own = (0..usize::from(shards)).map(|s| head * usize::from(shards) + s);
            Shard::new(ShardConfig {
                id: (m % usize::from(shards)) as u16,
                shards,
                memory: PlainMemory::new(region(m), MEMORY as usize),
                staging: PlainMemory::new(staging_at(m), (STAGING * STAGED) as usize),
                seed: 1,
                deadlines: Deadlines { read: Duration::from_secs(100), write: Duration::from_secs(100) },
                extents: own.map(|m| (region(m), MEMORY)).collect(),
                connections_max: SLOTS,
                credits: crate::CREDITS,
                turn_pdus: crate::TURN_PDUS,
                flights: crate::FLIGHTS,
            })
        };
        let staging = |m: usize| {
            (0..STAGED).map(|i| Slice::new(staging_at(m) + u64::from(i * STAGING), STAGING)).collect()
        };
        let mut world = Self {
            now: Instant(1_000_000_000),
            drive: Duration::from_micros(rng.between(5, 500)),
            rng,
            shards,
            machines: (0..all).map(machine).collect(),
            queue: BTreeMap::new(),
            seq: 0,
            disks: Default::default(),
            ends: BTreeMap::new(),
            listens: BTreeMap::new(),
            accepted: 0,
            staging: (0..all).map(staging).collect(),
            workers: vec![],
            silent: BTreeSet::new(),
            dead: BTreeSet::new(),
            halted: BTreeSet::new(),
            quiet: BTreeSet::new(),
            met: BTreeMap::new(),
            parted: BTreeMap::new(),
            bytes: 0,
            sends: 0,
            caps: Caps::default(),
            only_writes: false,
            lacks: vec![],
            lost: BTreeSet::new(),
            hangs: BTreeSet::new(),
            hung: vec![],
            flushed: vec![],
            flushes: 0,
            refused: 0,
            out: None,
            map: 0,
        };
        for head in 0..2 {
            // Lanes by head and shard; each head counts its own shards first.
            let number = |lane: u32| {
                let (of, shard) = (lanes(lane) / shards, lanes(lane) % shards);
                if of == head { shard } else { shards + shard }
            };
            world.configure(head, Lanes::new(core::array::from_fn(|l| number(l as u32))));
        }
        world.pair(1);
        world
    }
    fn configure(&mut self, head: u16, lanes: Lanes) {
        self.configure_by(head, lanes, 1);
    }
    fn configure_by(&mut self, head: u16, lanes: Lanes, map: u32) {
        self.map = map;
        let geometry = Geometry::plan(true, 1 << 20, DRIVE_BYTES, 1 << 20).expect("there is room");
        let leg = |n| {
            let lacks = self.lacks.contains(&(head, n)) || self.out == Some(n);
            let state = if lacks { LegState::Missing } else { LegState::InSync };
            let (volatile_cache, deallocate_zeroes) = (!self.lacks.is_empty(), true);
            Some(Leg { drive: DriveId(n), state, volatile_cache, deallocate_zeroes, map_at: 1 << 40 })
        };
        let space = pool::ArraySpace { bytes: geometry.data_bytes, weight: 1 };
        let layout = Arc::new(Layout {
            generation: 1,
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
                membership: Membership {
                    epoch: 1 + u64::from(self.out.is_some()),
                    legs: vec![leg(1), leg(2)],
                },
                lanes,
                map,
                dirty: Arc::new(if map == 1 {
                    Bitmap::new(geometry.regions())
                } else {
                    Bitmap::full(geometry.regions())
                }),
                unclean: false,
                uncleared: Default::default(),
                shared: true,
                lacks_path: self.lacks.iter().any(|(of, _)| *of == head) && self.dead.is_empty(),
            }],
            volumes: vec![VolumeLayout {
                id: VOLUME,
                pool: PoolId(1),
                block_bytes: BLOCK,
                blocks: 16 * volume::GRANULE_BYTES / u64::from(BLOCK),
                map: Arc::new(volume::Map::new(&[volume::Run { first: 0, count: 16 }]).expect("a map")),
                ready: true,
                // The first shard of the first head.
                home: if head == 0 { 0 } else { self.shards },
                caps: self.caps,
                weight: volume::WEIGHT,
            }],
            waits: false,
        });
        let view = Arc::new(View { generation: 1, ..View::default() });
        for s in 0..self.shards {
            let machine = usize::from(head * self.shards + s);
            let room = ShardMail::Room { number: 1, room: crate::mail::Room { mirrors: 1, singles: 0 } };
            let configure = ShardMail::Configure { view: view.clone(), layout: layout.clone() };
            for mail in [room, configure] {
                self.mail(machine, mail);
            }
        }
    }
    fn mail(&mut self, machine: usize, mail: ShardMail) {
        self.push(self.now, machine, Ev::Machine(Event::Mail { from: Address::Steward, mail: mail.into() }));
    }
    /// The heads meet, over two networks.
    fn pair(&mut self, epoch: u64) {
        let addresses: Vec<SocketAddr> =
            ["10.0.0.1:7401", "10.0.1.1:7401"].map(|a| a.parse().expect("an address")).to_vec();
        for machine in 0..self.machines.len() {
            let first = machine < usize::from(self.shards);
            let lives = if first { [1, 2] } else { [2, 1] };
            let side =
                if first { FarSide::Listens(addresses.clone()) } else { FarSide::Dials(addresses.clone()) };
            let (pairing, meeting) = (Pairing { secret: [9; 32], lives, epoch }, epoch as u32);
            self.mail(
                machine,
                ShardMail::Far(Arc::new(FarSetup { meeting, shards: self.shards, pairing, side })),
            );
        }
    }
    fn push(&mut self, at: Instant, machine: usize, event: Ev) {
        self.seq += 1;
        self.queue.insert((at, self.seq), (machine, event));
    }
    fn after(&mut self, from: u64, to: u64) -> Instant {
        self.now + Duration::from_nanos(self.rng.between(from, to))
    }

    /// Workers that write and read places of their own.
    fn employ(&mut self, each: u64) {
        self.run(Duration::from_millis(1));
        for machine in 0..self.machines.len() {
            for n in 0..each {
                let place = machine as u64 * each + n;
                assert!(self.machines[machine].direct_admit(1));
                let data = self.machines[machine].direct_buffer(BLOCK * BLOCKS as u32).expect("memory");
                let doing = Doing::Nothing;
                self.workers.push(Worker { machine, place, known: 0, doing, data, done: 0 });
            }
        }
        (0..self.workers.len()).for_each(|w| self.work(w));
    }
    /// The first head works alone, one command at a time.
    fn employ_one(&mut self) {
        let data = self.machines[0].direct_buffer(BLOCK * BLOCKS as u32).expect("memory");
        assert!(self.machines[0].direct_admit(1));
        let worker = Worker { machine: 0, place: 0, known: 0, doing: Doing::Nothing, data, done: 0 };
        self.workers.push(worker);
        self.work(0);
    }
    /// This machine has nothing under way any more, and waits for its next map.
    fn rests(&mut self, machine: usize) {
        let array = ArrayId(1);
        self.mail(machine, ShardMail::Halt { array, number: 1 });
        self.until(|w| w.halted.contains(&machine));
        self.mail(machine, ShardMail::Quiesce { array, number: 1 });
        self.until(|w| w.quiet.contains(&machine));
    }
    /// Both heads have all lanes of an array dealt to one of them, and some drives are not reached by one.
    fn with_lost_paths(seed: u64, owner: u16, lacks: &[(u16, u16)]) -> Self {
        let mut w = Self::new(seed, 2, |lane| 2 * owner + lane as u16 % 2);
        w.lacks = lacks.to_vec();
        w.run(Duration::from_millis(2));
        (0..4).for_each(|machine| w.rests(machine));
        w.halted.clear();
        w.quiet.clear();
        for head in 0..2 {
            let first = if head == owner { 0 } else { 2 };
            w.configure_by(head, Lanes::new(core::array::from_fn(|l| first + l as u16 % 2)), 2);
        }
        w.run(Duration::from_millis(1));
        w
    }
    /// Of two shards one reads for both.
    fn with_one_reader(seed: u64, reader: usize) -> Self {
        let mut w = Self::new(seed, 1, |_| reader as u16);
        w.run(Duration::from_millis(5));
        w.machines[reader].core_mut().deadlines.read = Duration::from_millis(300);
        w.mail(1 - reader, ShardMail::PathLost { drive: DriveId(1) });
        w.run(Duration::from_millis(1));
        w
    }
    /// Hosts of the other one read so much.
    fn read_pieces(&mut self, reader: usize, pieces: u32) {
        for _ in 0..pieces {
            let data = self.machines[1 - reader].direct_buffer(PIECE).expect("memory");
            self.ask(1 - reader, Op::Read, data);
        }
    }
    /// Of two shards one has all lanes.
    fn with_one_owner(seed: u64, owner: usize) -> Self {
        let mut w = Self::new(seed, 1, |_| owner as u16);
        w.run(Duration::from_millis(5));
        w.machines[owner].core_mut().deadlines.write = Duration::from_millis(300);
        w
    }
    /// Hosts of the other one write these pieces of the volume.
    fn write_pieces(&mut self, owner: usize, pieces: core::ops::Range<u32>) {
        for piece in pieces {
            let data = self.machines[1 - owner].direct_buffer(PIECE).expect("memory");
            self.machines[1 - owner].dma(data, &mut |b| b.fill(7));
            self.ask_at(1 - owner, Op::Write, u64::from(piece * (PIECE / BLOCK)), data);
        }
    }
    /// The leg on this drive is out, and that is on record.
    fn put_out(&mut self, owner: usize, drive: u16) {
        self.out = Some(drive);
        for machine in 0..2 {
            let lanes = Lanes::new([u16::from(machine != owner); array::LANES as usize]);
            self.configure(machine as u16, lanes);
            self.mail(machine, ShardMail::Recorded { array: ArrayId(1), epoch: 2 });
        }
        self.run(Duration::from_millis(10));
    }
    /// The other one writes as much as it is granted while a drive hangs, and one piece more. Returns how many pieces are granted. The
    /// drive keeps those, and its leg is out.
    fn keep_all(&mut self, owner: usize) -> u32 {
        let (_, all) = self.lent(owner);
        self.write_pieces(owner, 0..all + 1);
        self.run(Duration::from_millis(50));
        assert_eq!(self.flushes, all + 1, "their regions are marked");
        self.hangs = [2].into();
        self.write_pieces(owner, 0..all + 1);
        self.run(Duration::from_millis(200));
        assert_eq!((self.flushes, self.lent(owner)), (all + 1, (all, 0)), "one waits");
        self.run(Duration::from_millis(300));
        self.put_out(owner, 2);
        all
    }
    /// Pieces of the reader's memory that are in use or kept by drives, and those that the other one has credit for. While no message is on
    /// its way, that is all that was granted; and what came has never waited for memory.
    fn lent(&mut self, reader: usize) -> (u32, u32) {
        let link = &self.machines[reader].core_mut().far[0];
        assert!(!link.starved, "what came did not fit");
        let (granted, free) = (link.granted_bytes(), link.free_bytes());
        let credit = self.machines[1 - reader].core_mut().far[0].credit();
        assert_eq!(credit, free, "of {granted} bytes");
        let (user, owner) = (self.machines[1 - reader].books().far[0], self.machines[reader].books().far[0]);
        assert_eq!(user.credit + user.sent + owner.kept, owner.granted, "{user:?}, {owner:?}");
        ((granted - free) / PIECE, credit / PIECE)
    }
    /// Drives do what they hung at.
    fn drives_do(&mut self, ops: Vec<(usize, DriveOp)>) {
        for (machine, op) in ops {
            self.push(self.now, machine, Ev::Drive(op));
        }
    }
    fn has_connection(&mut self, machine: usize) -> bool {
        self.machines[machine].core_mut().far[0].open.is_some()
    }
    fn run_while(&mut self, mut goes_on: impl FnMut(&mut Self) -> bool) {
        let began = self.now;
        while goes_on(self) {
            // Shorter than a message is on its way.
            self.run(Duration::from_nanos(500));
            assert!(self.now.since(began) < Duration::from_millis(10), "it does not end");
        }
    }
    /// A host flushes at this machine.
    fn flush(&mut self, machine: usize) {
        self.ask(machine, Op::Flush, Slice::default());
    }
    fn ask(&mut self, machine: usize, op: Op, data: Slice) {
        self.ask_at(machine, op, 0, data);
    }
    fn ask_at(&mut self, machine: usize, op: Op, at: u64, data: Slice) {
        assert!(self.machines[machine].direct_admit(1));
        let blocks = u64::from(data.len / BLOCK);
        let command = Command { volume: VOLUME, op, at, blocks, fua: false };
        let mut fx = vec![];
        let at = (FLUSH, Door::Volume);
        self.machines[machine].direct_submit(self.now, at, command, data, &mut fx);
        self.carry_out(machine, fx);
        let now = self.now;
        self.push(now, machine, Ev::Bytes(u64::MAX, vec![]));
    }
    fn work(&mut self, w: usize) {
        let writes = self.only_writes || self.rng.chance(1, 2);
        let Worker { machine, place, data, known, .. } = self.workers[w];
        let (op, doing) = if writes {
            (Op::Write, Doing::Writes(known.wrapping_add(1).max(1)))
        } else {
            (Op::Read, Doing::Reads)
        };
        if let Doing::Writes(value) = doing {
            self.machines[machine].dma(data, &mut |b| b.fill(value));
        }
        // In regions of all lanes, in turn.
        let at = place % PLACES * (1 << 20) / u64::from(BLOCK) + place / PLACES * BLOCKS;
        let command = Command { volume: VOLUME, op, at, blocks: BLOCKS, fua: false };
        self.workers[w].doing = doing;
        let at = (Tag(w as u16), Door::Volume);
        let mut fx = vec![];
        self.machines[machine].direct_submit(self.now, at, command, data, &mut fx);
        self.carry_out(machine, fx);
        let now = self.now;
        self.push(now, machine, Ev::Bytes(u64::MAX, vec![]));
    }
    fn ended(&mut self, machine: usize) {
        while let Some(done) = self.machines[machine].direct_done() {
            if done.tag == FLUSH {
                match done.status {
                    Status::NotReady if !self.hung.is_empty() => self.refused += 1,
                    status => {
                        assert_eq!(status, Status::Good);
                        self.flushes += 1;
                    }
                }
                continue;
            }
            let w = usize::from(done.tag.0);
            assert_eq!(done.status, Status::Good, "worker {w}");
            let worker = &mut self.workers[w];
            match worker.doing {
                Doing::Writes(value) => worker.known = value,
                Doing::Reads => {
                    let known = worker.known;
                    let mut found = vec![];
                    self.machines[machine].dma(done.data, &mut |b| found = b.to_vec());
                    assert!(found.iter().all(|b| *b == known), "worker {w} reads {} for {known}", found[0]);
                }
                Doing::Nothing => unreachable!("it had nothing to do"),
            }
            let worker = &mut self.workers[w];
            worker.doing = Doing::Nothing;
            worker.done += 1;
            self.work(w);
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        for steps in 0.. {
            assert!(steps < 3_000_000, "it does not end at {:?}", self.now);
            let event = self.queue.first_key_value().map(|((at, _), _)| *at);
            let timers = self.machines.iter().enumerate().filter_map(|(m, s)| Some((s.next_deadline()?, m)));
            let timer = timers.filter(|(_, m)| !self.dead.contains(m)).min();
            let at = event.into_iter().chain(timer.map(|(at, _)| at)).min().unwrap_or(end);
            if at >= end {
                self.now = end;
                return;
            }
            self.now = self.now.max(at);
            let mut fx = vec![];
            let machine = if event == Some(at) {
                let (_, (machine, event)) = self.queue.pop_first().expect("seen above");
                if !self.happen(machine, event, &mut fx) {
                    continue;
                }
                machine
            } else {
                let machine = timer.expect("it is the earliest").1;
                self.machines[machine].on_timer(self.now, &mut fx);
                machine
            };
            self.machines[machine].end_of_turn(self.now, &mut fx);
            self.carry_out(machine, fx);
            self.ended(machine);
        }
    }
    fn happen(&mut self, machine: usize, event: Ev, fx: &mut Effects<Mail>) -> bool {
        if self.dead.contains(&machine) {
            return false;
        }
        match event {
            Ev::Machine(event) => {
                if let Event::Connected { connection, result: Err(_) } = &event {
                    self.ends.retain(|_, e| (e.machine, e.id) != (machine, *connection));
                }
                if let Event::Connected { connection: id, .. } | Event::Accepted { connection: id, .. } =
                    &event
                    && let Some(e) = self.ends.values_mut().find(|e| (e.machine, e.id) == (machine, *id))
                {
                    e.up = true;
                }
                self.machines[machine].on_event(self.now, event, fx);
            }
            Ev::Bytes(u64::MAX, _) => {}
            Ev::Bytes(end, bytes) => {
                let Some(e) = self.ends.get_mut(&end).filter(|e| !e.closed) else { return false };
                e.arrived.extend(bytes);
                return self.deliver(end, fx);
            }
            Ev::Drive(op) if self.lost.contains(&(machine as u16 / self.shards, op.drive.0)) => {
                let result = Err(DriveError::Gone);
                self.machines[machine].on_event(self.now, Event::DriveDone { token: op.token, result }, fx);
            }
            Ev::Drive(op) => {
                let owner = (0..self.machines.len())
                    .find(|m| (region(*m)..region(*m) + MEMORY).contains(&op.data.at))
                    .unwrap_or(machine);
                let disk = &mut self.disks[op.drive.index() - 1];
                match op.kind {
                    DriveOpKind::Write => {
                        self.machines[owner].dma(op.data, &mut |bytes| {
                            for (i, block) in bytes.chunks(BLOCK as usize).enumerate() {
                                disk.insert(op.at + i as u64 * u64::from(BLOCK), block.to_vec());
                            }
                        });
                    }
                    DriveOpKind::Read => {
                        self.machines[owner].dma(op.data, &mut |bytes| {
                            for (i, block) in bytes.chunks_mut(BLOCK as usize).enumerate() {
                                match disk.get(&(op.at + i as u64 * u64::from(BLOCK))) {
                                    Some(there) => block.copy_from_slice(there),
                                    None => block.fill(0),
                                }
                            }
                        });
                    }
                    DriveOpKind::Flush => self.flushed.push((machine, op.drive.0)),
                    _ => {}
                }
                self.machines[machine].on_event(
                    self.now,
                    Event::DriveDone { token: op.token, result: Ok(()) },
                    fx,
                );
            }
            Ev::Cut(end) => {
                let Some(e) = self.ends.get_mut(&end).filter(|e| !e.broken && !e.closed) else {
                    return false;
                };
                e.broken = true;
                let (machine, connection) = (e.machine, e.id);
                self.machines[machine].on_event(self.now, Event::Broken { connection }, fx);
            }
        }
        true
    }
    /// Hands over what has arrived, if that is wanted. True if something was.
    fn deliver(&mut self, end: u64, fx: &mut Effects<Mail>) -> bool {
        let e = self.ends.get_mut(&end).expect("it is there");
        if e.arrived.is_empty() || e.closed {
            return false;
        }
        let Some((into, most)) = e.wanted.take() else { return false };
        let machine = e.machine;
        let data = match into {
            Some(data) => data.head(data.len.min(e.arrived.len() as u32)),
            None => {
                let buffer = self.staging[machine].pop().expect("a staging buffer is free");
                buffer.head(STAGING.min(most).min(e.arrived.len() as u32))
            }
        };
        let bytes: Vec<u8> = e.arrived.drain(..data.len as usize).collect();
        let connection = e.id;
        self.machines[machine].dma(data, &mut |b| b.copy_from_slice(&bytes));
        self.machines[machine].on_event(self.now, Event::Received { connection, data }, fx);
        true
    }
    fn end_of(&self, machine: usize, id: ConnectionId) -> Option<u64> {
        self.ends.iter().find(|(_, e)| (e.machine, e.id) == (machine, id)).map(|(n, _)| *n)
    }
    fn carry_out(&mut self, machine: usize, fx: Effects<Mail>) {
        let head = machine / usize::from(self.shards) * usize::from(self.shards);
        for effect in fx {
            match effect {
                Effect::Drive(op) if self.hangs.contains(&op.drive.0) => self.hung.push((machine, op)),
                Effect::Drive(op) => {
                    let most = self.drive.as_nanos() as u64;
                    let at = self.after(1000, 1000 + most);
                    self.push(at, machine, Ev::Drive(op));
                }
                Effect::Mail { to: Address::Shard(to), mail } => {
                    assert!(to < self.shards, "a letter to a far shard");
                    let from = Address::Shard((machine - head) as u16);
                    let at = self.now + Duration::from_micros(1);
                    self.push(at, head + usize::from(to), Ev::Machine(Event::Mail { from, mail }));
                }
                Effect::Mail { to: Address::Steward, mail } => match mail.for_steward() {
                    Some(StewardMail::FarSilent) => drop(self.silent.insert(machine)),
                    Some(StewardMail::Halted { .. }) => drop(self.halted.insert(machine)),
                    Some(StewardMail::Quiesced { .. }) => drop(self.quiet.insert(machine)),
                    Some(StewardMail::FarMet { meeting }) => drop(self.met.insert(machine, *meeting)),
                    Some(StewardMail::Parted { number }) => drop(self.parted.insert(machine, *number)),
                    _ => {}
                },
                Effect::Listen { portal, address } => {
                    self.listens.insert(address, (machine, portal));
                }
                Effect::Unlisten { portal } => self.listens.retain(|_, l| *l != (machine, portal)),
                Effect::Connect { connection, peer } => {
                    let at = self.after(1000, 100_000);
                    let Some((to, portal)) = self.listens.get(&peer).copied() else {
                        let result = Err(NetError::Refused);
                        self.push(at, machine, Ev::Machine(Event::Connected { connection, result }));
                        continue;
                    };
                    self.accepted += 1;
                    let theirs = ConnectionId::new(self.accepted % SLOTS, self.accepted);
                    let (one, two) = (2 * u64::from(self.accepted), 2 * u64::from(self.accepted) + 1);
                    let end = |machine, id, other| End {
                        machine,
                        id,
                        other,
                        arrived: VecDeque::new(),
                        wanted: None,
                        up: false,
                        broken: false,
                        closed: false,
                    };
                    self.ends.insert(one, end(machine, connection, two));
                    self.ends.insert(two, end(to, theirs, one));
                    let result = Ok(());
                    self.push(at, machine, Ev::Machine(Event::Connected { connection, result }));
                    let accepted = Event::Accepted { connection: theirs, portal, local: peer, peer };
                    self.push(at, to, Ev::Machine(accepted));
                }
                Effect::Receive { connection, into, most, .. } => {
                    let Some(end) = self.end_of(machine, connection) else { continue };
                    let e = self.ends.get_mut(&end).expect("found");
                    assert!(e.wanted.is_none(), "one receive at a time");
                    assert!(e.up, "only a connection that is up brings bytes");
                    e.wanted = Some((into, most));
                    let now = self.now;
                    self.push(now, machine, Ev::Bytes(end, vec![]));
                }
                Effect::Recycle { data } => {
                    let start = data.at / u64::from(STAGING) * u64::from(STAGING);
                    self.staging[machine].push(Slice::new(start, STAGING));
                }
                Effect::Send { connection } => {
                    let mut out = vec![];
                    self.machines[machine].segments(connection, 64, &mut out);
                    let mut bytes = vec![];
                    for segment in out {
                        self.machines[machine].dma(segment, &mut |b| bytes.extend_from_slice(b));
                    }
                    let n = if self.rng.chance(1, 3) {
                        self.rng.between(1, bytes.len() as u64) as usize
                    } else {
                        bytes.len()
                    };
                    bytes.truncate(n);
                    self.bytes += n as u64;
                    self.sends += 1;
                    let Some(end) = self.end_of(machine, connection) else { continue };
                    let other = self.ends[&end].other;
                    let at = self.now + Duration::from_micros(10);
                    if let Some(to) = self.ends.get(&other).map(|e| e.machine) {
                        self.push(at, to, Ev::Bytes(other, bytes));
                    }
                    let sent = Event::Sent { connection, bytes: n as u32 };
                    let at = self.after(500, 15_000);
                    self.push(at, machine, Ev::Machine(sent));
                }
                Effect::Close { connection } => {
                    if let Some(end) = self.end_of(machine, connection) {
                        let e = self.ends.get_mut(&end).expect("found");
                        e.closed = true;
                        let other = e.other;
                        // What it had sent is still taken; what comes does not get there.
                        if let Some(to) = self.ends.get(&other).map(|e| e.machine) {
                            let at = self.now + Duration::from_micros(30);
                            self.push(at, to, Ev::Cut(other));
                        }
                    }
                    let at = self.now + Duration::from_micros(40);
                    self.push(at, machine, Ev::Machine(Event::Closed { connection }));
                }
                _ => {}
            }
        }
    }
    /// A connection between heads breaks, for both ends.
    fn cut_one(&mut self) {
        let open: Vec<u64> =
            self.ends.iter().filter(|(_, e)| !e.broken && !e.closed).map(|(n, _)| *n).collect();
        if open.is_empty() {
            return;
        }
        let end = *self.rng.pick(&open);
        let other = self.ends[&end].other;
        for end in [end, other] {
            let at = self.after(0, 200_000);
            if let Some(machine) = self.ends.get(&end).map(|e| e.machine) {
                self.push(at, machine, Ev::Cut(end));
            }
        }
    }
    /// The second head is no more: what it had at drives is over, and the first one does everything from now on.
    fn second_dies(&mut self) {
        let shards = usize::from(self.shards);
        self.dead = (shards..2 * shards).collect();
        self.queue.retain(|_, (machine, event)| *machine < shards || matches!(event, Ev::Drive(_)));
        let ends: Vec<u64> = self.ends.keys().copied().collect();
        for end in ends {
            let at = self.after(0, 300_000);
            let machine = self.ends[&end].machine;
            self.push(at, machine, Ev::Cut(end));
        }
        let wait = Duration::from_micros(self.rng.between(0, 500));
        self.run(wait);
        let array = ArrayId(1);
        (0..shards).for_each(|m| self.mail(m, ShardMail::FarGone { number: 1 }));
        (0..shards).for_each(|m| self.mail(m, ShardMail::Halt { array, number: 1 }));
        self.until(|w| w.halted.len() == shards);
        (0..shards).for_each(|m| self.mail(m, ShardMail::Quiesce { array, number: 1 }));
        self.until(|w| w.quiet.len() == shards);
        self.configure_by(0, Lanes::dealt(self.shards), self.map + 1);
    }
    fn until(&mut self, over: impl Fn(&Self) -> bool) {
        let began = self.now;
        while !over(self) {
            self.run(Duration::from_micros(20));
            assert!(self.now.since(began) < Duration::from_secs(1), "it does not come to rest");
        }
    }
    fn done(&self) -> Vec<u64> {
        self.workers.iter().map(|w| w.done).collect()
    }
}

#[test]
fn what_the_other_head_owns_is_written_there_and_read_by_both() {
    for (shards, seed) in [(1, 1), (2, 2), (3, 3)] {
        let mut world = World::new(seed, shards, |lane| lane as u16 % (2 * shards));
        world.employ(8);
        world.run(Duration::from_millis(60));
        let done = world.done();
        assert!(done.iter().all(|n| *n > 10), "{shards} shards: {done:?}");
        assert!(world.silent.is_empty() && world.bytes > 1 << 20, "{} bytes", world.bytes);
    }
}

#[test]
fn connections_that_break_lose_nothing_and_do_nothing_twice() {
    for seed in 0..6 {
        let shards = 1 + (seed % 3) as u16;
        let mut world = World::new(seed, shards, |lane| lane as u16 % (2 * shards));
        world.employ(6);
        for _ in 0..12 {
            let pause = Duration::from_micros(world.rng.between(50, 10_000));
            world.run(pause);
            world.cut_one();
        }
        let before = world.done();
        world.run(Duration::from_millis(60));
        let done = world.done();
        assert!(done.iter().zip(&before).all(|(now, then)| now > then), "seed {seed}: {before:?}, {done:?}");
        assert!(world.silent.is_empty(), "seed {seed}");
    }
}

#[test]
fn a_cap_holds_over_both_heads_even_if_their_connections_break() {
    for (seed, breaks) in [(1, 0), (2, 20)] {
        let shards = seed as u16;
        let lane = |head: u16| {
            move |l: u32| {
                let (of, shard) = (l as u16 % 2, l as u16 / 2 % shards);
                if of == head { shard } else { shards + shard }
            }
        };
        let mut world = World::new(seed, shards, |l| l as u16 % 2 * shards + l as u16 / 2 % shards);
        world.caps = Caps { iops_max: 5_000, mbps_max: 0 };
        for head in 0..2 {
            world.configure(head, Lanes::new(core::array::from_fn(|l| lane(head)(l as u32))));
        }
        world.employ(8);
        world.run(Duration::from_millis(100));
        let before = world.done();
        for _ in 0..breaks {
            world.run(Duration::from_millis(20));
            world.cut_one();
        }
        world.run(Duration::from_millis(1_000 - 20 * breaks));
        let done = world.done();
        let each: Vec<u64> = done.iter().zip(&before).map(|(now, then)| now - then).collect();
        let all: u64 = each.iter().sum();
        assert!((4_500..5_300).contains(&all), "{breaks} breaks: {all} a second: {each:?}");
        let least = each.iter().min().expect("there are some");
        assert!(
            *least * 3 > all / each.len() as u64,
            "{breaks} breaks: one of them has too little: {each:?}"
        );
    }
}

#[test]
fn who_is_left_alone_does_what_the_other_had_not_answered() {
    for seed in 0..12 {
        let shards = 1 + (seed % 3) as u16;
        let mut world = World::new(seed, shards, |lane| lane as u16 % (2 * shards));
        world.employ(6);
        let pause = Duration::from_micros(world.rng.between(500, 20_000));
        world.run(pause);
        let (before, mine) = (world.done(), usize::from(shards) * 6);
        world.second_dies();
        world.run(Duration::from_millis(30));
        let done = world.done();
        let goes_on = done.iter().zip(&before).take(mine).all(|(now, then)| now > &(then + 3));
        assert!(goes_on, "seed {seed}: {before:?}, {done:?}");
        for machine in 0..usize::from(shards) {
            let shard = &world.machines[machine];
            let workers = u64::from(BLOCK) * BLOCKS * 6;
            assert_eq!(shard.buffers_used(), shard.buffers_kept() + workers, "all memory is back");
        }
    }
}

#[test]
fn a_meeting_is_reported_under_its_number() {
    let mut world = World::new(4, 2, |lane| lane as u16 % 4);
    world.run(Duration::from_millis(5));
    let all = |meeting| (0..4).map(|machine| (machine, meeting)).collect::<BTreeMap<usize, u32>>();
    assert_eq!(world.met, all(1));
    (0..4).for_each(|machine| world.mail(machine, ShardMail::FarGone { number: 1 }));
    world.run(Duration::from_millis(5));
    world.pair(2);
    world.run(Duration::from_millis(200));
    assert_eq!(world.met, all(2));
}

#[test]
fn a_shard_parts_under_the_number_that_it_was_told_last_however_often_that_was() {
    let mut world = World::new(4, 2, |lane| lane as u16 % 4);
    world.run(Duration::from_millis(5));
    world.parted.clear();
    for number in [5, 6, 9] {
        (0..2).for_each(|machine| world.mail(machine, ShardMail::FarGone { number }));
    }
    world.run(Duration::from_millis(5));
    assert_eq!(world.parted, BTreeMap::from([(0, 9), (1, 9)]));
}

#[test]
fn who_meets_nobody_says_so_after_a_second() {
    let mut world = World::new(1, 2, |lane| lane as u16 % 4);
    world.run(Duration::from_millis(10));
    world.listens.clear();
    let all: Vec<u64> = world.ends.keys().copied().collect();
    for end in all {
        let machine = world.ends[&end].machine;
        let now = world.now;
        world.push(now, machine, Ev::Cut(end));
    }
    world.run(Duration::from_millis(900));
    assert!(world.silent.is_empty());
    world.run(Duration::from_millis(300));
    assert_eq!(world.silent.len(), 4);
}

#[test]
fn an_owner_s_own_write_and_every_read_cost_no_message_and_a_forwarded_write_two() {
    let count = |own: bool, only_writes: bool| {
        let mut world = World::new(5, 1, move |_| u16::from(!own));
        world.run(Duration::from_millis(5));
        let before = [world.sends, world.bytes];
        world.only_writes = only_writes;
        world.employ_one();
        world.run(Duration::from_millis(50));
        (world.sends - before[0], world.bytes - before[1], world.done()[0])
    };
    for only_writes in [true, false] {
        let (sends, _, done) = count(true, only_writes);
        assert!(sends == 0 && done > 50, "{sends} sends for {done} commands of an owner");
    }
    // One message brings the data, one the answer. The last write may be on its way.
    let (_, bytes, done) = count(false, true);
    let each = 2 * super::wire::HEADER_BYTES as u64 + BLOCKS * u64::from(BLOCK);
    assert!(
        done > 50 && (done * each..=(done + 1) * each).contains(&bytes),
        "{bytes} bytes for {done} writes"
    );
}

/// The order of `Halt` and `Quiesce` keeps this from happening; here it happens all the same.
#[test]
fn a_command_by_an_old_map_is_sent_back_and_done_by_the_new_one() {
    let mut world = World::new(7, 1, |_| 1);
    world.run(Duration::from_millis(5));
    world.only_writes = true;
    // The second head has the next map, by which all lanes are the first one's, and that does not know it yet.
    world.rests(1);
    world.configure_by(1, Lanes::new([1; array::LANES as usize]), 2);
    world.run(Duration::from_millis(2));
    world.employ_one();
    world.run(Duration::from_millis(5));
    assert_eq!(world.done(), [0], "nobody carries it out");
    world.rests(0);
    world.configure_by(0, Lanes::new([0; array::LANES as usize]), 2);
    let sends = world.sends;
    world.run(Duration::from_millis(10));
    assert!(world.done()[0] > 5 && world.sends <= sends + 2, "it goes on here");
}

/// What the head with all paths has written may lie in the cache of a drive that the other one does not reach.
#[test]
fn a_flush_reaches_every_leg_though_its_head_does_not() {
    for seed in 0..20 {
        let mut w = World::with_lost_paths(seed, 0, &[(1, 2)]);
        let sends = w.sends;
        w.flush(1);
        w.run(Duration::from_millis(5));
        assert_eq!((w.flushes, w.sends), (1, sends), "seed {seed}: a head with all paths asks nobody");
        let by: Vec<usize> = w.flushed.drain(..).map(|(machine, _)| machine).collect();
        assert_eq!(by, [1, 1], "seed {seed}");
        w.flush(3);
        w.flush(2);
        if seed % 2 == 1 {
            // It is sent again by the next connection, and answered once.
            w.cut_one();
        }
        w.run(Duration::from_millis(200));
        assert_eq!(w.flushes, 3, "seed {seed}");
        for drive in [1, 2] {
            let by: BTreeSet<usize> =
                w.flushed.iter().filter(|(_, d)| *d == drive).map(|(machine, _)| *machine).collect();
            assert_eq!(by, BTreeSet::from([0, 1]), "seed {seed}: drive {drive}");
        }
    }
}

/// A leg that was not reached is put out by then.
#[test]
fn a_flush_at_a_head_that_is_gone_is_done_again() {
    for seed in 0..20 {
        let mut w = World::with_lost_paths(seed, 1, &[(0, 2)]);
        w.drive = Duration::from_secs(10);
        w.flush(0);
        w.run(Duration::from_micros(100));
        w.drive = Duration::from_micros(100);
        w.second_dies();
        w.run(Duration::from_millis(10));
        assert_eq!(w.flushes, 1, "seed {seed}");
        let here: Vec<_> = w.flushed.iter().filter(|(machine, _)| *machine < 2).collect();
        assert_eq!(here, [&(0, 1)], "seed {seed}");
    }
}

/// Its hosts need not know which head reaches the drives.
#[test]
fn a_head_that_reaches_no_leg_serves_by_the_other_one() {
    let mut w = World::with_lost_paths(7, 0, &[(1, 1), (1, 2)]);
    w.employ(2);
    w.run(Duration::from_millis(100));
    assert!(w.done().iter().all(|done| *done > 5), "{:?}", w.done());
}

/// Nobody has said anything of the paths yet.
#[test]
fn a_read_that_finds_no_leg_is_done_by_the_head_that_has_its_lane() {
    let mut w = World::new(3, 2, |lane| lane as u16 % 2);
    w.employ(2);
    w.run(Duration::from_millis(5));
    w.lost = [(1, 1), (1, 2)].into();
    let before = w.done();
    w.run(Duration::from_millis(100));
    let done = w.done();
    assert!(done.iter().zip(&before).all(|(now, then)| *now > then + 5), "{before:?}, {done:?}");
}

/// Its lane may move to the other head, or the path come back.
#[test]
fn a_read_that_finds_no_leg_where_its_lane_is_looks_for_one_again() {
    let mut w = World::new(3, 1, |_| 1);
    w.run(Duration::from_millis(5));
    w.lost = [(1, 1), (1, 2)].into();
    let data = w.machines[1].direct_buffer(BLOCK).expect("memory");
    w.ask(1, Op::Read, data);
    w.run(Duration::from_millis(500));
    assert_eq!(w.flushes, 0, "nobody reaches a leg");
    w.lost.clear();
    w.run(Duration::from_millis(200));
    assert_eq!(w.flushes, 1, "it was read");
}

#[test]
fn a_head_without_lanes_passes_on_whatever_it_did_by_a_path_that_is_lost() {
    for owner in [0, 1] {
        let mut w = World::new(5, 2, |lane| 2 * owner + lane as u16 % 2);
        w.run(Duration::from_millis(5));
        (2..4).for_each(|machine| w.mail(machine, ShardMail::PathLost { drive: DriveId(1) }));
        w.run(Duration::from_millis(1));
        let sends = w.sends;
        w.flush(2);
        w.run(Duration::from_millis(5));
        assert_eq!((w.flushes, w.sends > sends), (1, owner == 0));
    }
}

#[test]
fn memory_that_a_drive_keeps_over_a_break_is_lent_when_it_lets_go_and_once() {
    let cases = [0, 1].into_iter().flat_map(|r| ["unmet", "greeted", "at last"].map(|l| (r, l)));
    for (reader, lets_go) in cases {
        let case = format!("reader {reader}, {lets_go}");
        let mut w = World::with_one_reader(11, reader);
        let (used, all) = w.lent(reader);
        assert!(used == 0 && all > 1, "{case}");
        w.hangs = [1, 2].into();
        w.read_pieces(reader, 1);
        w.run(Duration::from_millis(600));
        assert_eq!((w.refused, w.lent(reader)), (1, (1, all - 1)), "{case}: the drive was given up");
        let mut late = core::mem::take(&mut w.hung);
        w.cut_one();
        match lets_go {
            "unmet" => {
                w.run_while(|w| w.has_connection(reader));
                w.drives_do(core::mem::take(&mut late));
            }
            "greeted" => {
                // The one that connects has greeted, and knows of no answer yet.
                let sends = w.sends;
                w.run_while(|w| w.sends == sends);
                w.drives_do(core::mem::take(&mut late));
            }
            _ => {}
        }
        let kept = late.len() as u32;
        w.run(Duration::from_millis(20));
        assert_eq!(w.lent(reader), (kept, all - kept), "{case}: they have met again");
        // As much as may be sent is sent, and finds room. The rest waits at home.
        w.read_pieces(reader, all);
        w.run(Duration::from_millis(10));
        assert_eq!((w.hung.len() as u32, w.lent(reader)), (all - kept, (all, 0)), "{case}");
        w.hangs.clear();
        let hung = core::mem::take(&mut w.hung);
        w.drives_do(hung);
        w.run(Duration::from_millis(50));
        assert_eq!((w.flushes, w.lent(reader)), (all, (kept, all - kept)), "{case}: all is read");
        w.drives_do(late);
        w.run(Duration::from_millis(5));
        assert_eq!(w.lent(reader), (0, all), "{case}");
    }
}

/// It is sent again as far as there is memory for it.
#[test]
fn what_was_not_answered_before_a_break_waits_at_home_while_a_drive_keeps_its_memory() {
    for reader in [0, 1] {
        let mut w = World::with_one_reader(12, reader);
        let (_, all) = w.lent(reader);
        w.hangs = [1, 2].into();
        w.read_pieces(reader, all - 1);
        w.run(Duration::from_millis(5));
        assert_eq!((w.hung.len() as u32, w.lent(reader)), (all - 1, (all - 1, 1)), "reader {reader}");
        w.cut_one();
        w.run_while(|w| w.has_connection(0) || w.has_connection(1));
        // One of the drives answers before the next connection. The other one is given up before that, too.
        let hung = core::mem::take(&mut w.hung);
        let (late, well): (Vec<_>, Vec<_>) = hung.into_iter().partition(|(_, op)| op.drive == DriveId(2));
        let kept = late.len() as u32;
        assert!(all - kept < all - 1 && !well.is_empty(), "reader {reader}: not all may be sent again");
        w.drives_do(well);
        w.run(Duration::from_millis(500));
        assert!(w.has_connection(0) && w.has_connection(1), "reader {reader}");
        assert_eq!((w.hung.len() as u32, w.lent(reader)), (all - kept, (all, 0)), "reader {reader}");
        w.hangs.clear();
        let hung = core::mem::take(&mut w.hung);
        w.drives_do(hung);
        w.run(Duration::from_millis(50));
        assert_eq!((w.flushes, w.refused), (all - 1, 0), "reader {reader}: all is read");
        assert_eq!(w.lent(reader), (kept, all - kept), "reader {reader}");
        w.drives_do(late);
        w.run(Duration::from_millis(5));
        assert_eq!(w.lent(reader), (0, all), "reader {reader}");
    }
}

#[test]
fn a_command_by_a_name_that_is_taken_leaves_the_other_one_s_memory_alone() {
    let mut link = FarLink::new(&mut Arena::new(0, MEMORY), 1, 1).expect("memory");
    for taken_on in [true, false] {
        let data = link.grant(BLOCK).expect("memory");
        assert_eq!(link.takes_on(7, data, false), taken_on);
    }
    assert_eq!(link.free_bytes(), link.granted_bytes() - BLOCK);
    link.forgets(FlightId(7));
    assert_eq!(link.free_bytes(), link.granted_bytes());
}

/// Such as that of a read after a crash, which is copied to the other legs before it is answered.
#[test]
fn memory_of_an_answer_that_a_drive_keeps_as_well_is_lent_again_once() {
    for drive_first in [true, false] {
        let mut link = FarLink::new(&mut Arena::new(0, MEMORY), 1, 1).expect("memory");
        let data = link.grant(BLOCK).expect("memory");
        assert!(link.takes_on(7, data, true));
        link.hold(data);
        link.answers(FlightId(7), Status::Good, 0, false);
        let Some(Out::Ran(answer, brings)) = link.out.pop_front() else { panic!("it is answered") };
        assert_eq!(brings, data);
        assert!(matches!(answer, Message::Ran { kept: true, data: BLOCK, .. }), "{answer:?}");
        let mark = link.sends(&answer, data);
        if drive_first {
            link.let_go(data);
        } else {
            link.has_sent(mark);
        }
        assert!(link.out.is_empty() && !link.is_free(), "the other one has it yet");
        if drive_first {
            link.has_sent(mark);
        } else {
            link.let_go(data);
        }
        let said: Vec<Out> = link.out.drain(..).collect();
        assert!(matches!(said[..], [Out::Other(Message::Credit { bytes: BLOCK })]), "{said:?}");
        assert!(link.is_free());
    }
}

/// A drive that hangs may do so for hours. Its leg is out, and the other one is well.
#[test]
fn a_command_goes_on_though_a_drive_keeps_all_that_was_granted() {
    for owner in [0, 1] {
        let mut w = World::with_one_owner(13, owner);
        let all = w.keep_all(owner);
        assert_eq!(w.flushes, 2 * (all + 1), "owner {owner}: what waited is written");
        assert_eq!(w.lent(owner), (all, 1), "owner {owner}: the spare is lent");
        w.write_pieces(owner, 0..all);
        w.run(Duration::from_millis(50));
        assert_eq!(w.flushes, 3 * all + 2, "owner {owner}: so are others");
        w.hangs.clear();
        let late = core::mem::take(&mut w.hung);
        w.drives_do(late);
        w.run(Duration::from_millis(5));
        assert_eq!(w.lent(owner), (0, all), "owner {owner}: the spare is back");
    }
}

#[test]
fn a_command_is_answered_soon_though_drives_keep_even_the_spare() {
    for owner in [0, 1] {
        let mut w = World::with_one_owner(14, owner);
        let all = w.keep_all(owner);
        w.hangs = [1, 2].into();
        w.write_pieces(owner, 0..1);
        w.run(Duration::from_millis(450));
        assert_eq!((w.refused, w.lent(owner)), (1, (all + 1, 0)), "owner {owner}");
        // Who waits already, and who comes later.
        w.write_pieces(owner, 1..3);
        w.run(Duration::from_millis(600));
        w.write_pieces(owner, 3..4);
        w.run(Duration::from_millis(1));
        assert_eq!((w.refused, w.lent(owner)), (4, (all + 1, 0)), "owner {owner}");
        w.hangs.clear();
        let (late, done) = (core::mem::take(&mut w.hung), w.flushes);
        w.drives_do(late);
        w.run(Duration::from_millis(20));
        assert_eq!(w.lent(owner), (0, all), "owner {owner}");
        w.write_pieces(owner, 1..4);
        w.run(Duration::from_millis(50));
        assert_eq!(w.flushes, done + 3, "owner {owner}: they are written");
    }
}

#[test]
fn a_spare_that_was_lent_is_made_up_for_by_what_a_drive_lets_go_of_first() {
    let mut arena = Arena::new(0, MEMORY);
    let mut link = FarLink::new(&mut arena, 1, 1).expect("memory");
    let granted = link.granted_bytes();
    link.set_spare_aside(&mut arena);
    assert_eq!((link.granted_bytes(), link.free_bytes()), (granted, granted), "nothing of it is lent");
    let kept: Vec<Slice> = (0..granted / PIECE).map(|_| link.grant(PIECE).expect("memory")).collect();
    let all = u64::from(granted);
    assert!(!link.needs_spare(all / 2) && link.needs_spare(all));
    link.lend_spare();
    assert_eq!((link.granted_bytes(), link.free_bytes()), (granted + PIECE, PIECE));
    assert!(link.has_lent_spare() && !link.needs_spare(all), "there is one");
    for (n, data) in (1..).zip(&kept) {
        link.let_go(*data);
        // The credit for the spare came first.
        assert_eq!(link.out.len(), n, "{n}");
    }
    let credit = |out: &Out| matches!(out, Out::Other(Message::Credit { bytes: PIECE }));
    assert!(link.out.iter().all(credit) && !link.has_lent_spare());
    assert_eq!((link.granted_bytes(), link.free_bytes()), (granted, granted));
}

/// Who waits for more may wait for ever, behind others that take less.
#[test]
fn a_command_takes_what_credit_there_is_while_little_is_lent() {
    let mut link = FarLink::new(&mut Arena::new(0, MEMORY), 1, 1).expect("memory");
    let cases = [
        (2 * PIECE, PIECE),
        (2 * PIECE - BLOCK, PIECE),
        (PIECE - BLOCK, PIECE / 2),
        (3 * BLOCK, 2 * BLOCK),
        (0, BLOCK),
    ];
    for (credit, piece) in cases {
        assert!(link.begins(0, credit).is_empty());
        assert_eq!(link.piece_max(), u64::from(piece), "of {credit} bytes");
    }
}

/// Such as pages that a drive keeps here and there.
#[test]
fn what_has_credit_and_no_memory_in_one_piece_comes_again_in_pages_and_holds_nobody_up() {
    for owner in [0, 1] {
        let mut w = World::with_one_owner(15, owner);
        let link = &mut w.machines[owner].core_mut().far[0];
        let runs = link.runs().to_vec();
        let begins_piece = |page: Slice| {
            let run = runs.iter().find(|run| (run.at..run.end()).contains(&page.at)).expect("a run");
            (page.at - run.at).is_multiple_of(u64::from(PIECE))
        };
        let pages: Vec<Slice> = core::iter::from_fn(|| link.grant(BLOCK)).collect();
        pages.iter().filter(|page| !begins_piece(**page)).for_each(|page| assert!(link.release(*page)));
        // The other one learns what is free.
        w.cut_one();
        w.run(Duration::from_millis(20));
        let free = w.machines[owner].core_mut().far[0].free_bytes();
        assert!(w.machines[1 - owner].core_mut().far[0].credit() == free && free > 2 * PIECE);
        w.write_pieces(owner, 0..1);
        w.write_pieces(owner, 4..5);
        w.run(Duration::from_millis(50));
        let waits = w.machines[owner].core_mut().far[0].starved;
        assert!(waits && w.flushes == 0, "owner {owner}: memory may be free soon");
        w.run(Duration::from_millis(100));
        assert_eq!(w.flushes, 2, "owner {owner}");
        let written =
            |disk: &BTreeMap<u64, Vec<u8>>| disk.values().filter(|b| b.iter().all(|b| *b == 7)).count();
        let all = 2 * (PIECE / BLOCK) as usize;
        assert_eq!([written(&w.disks[0]), written(&w.disks[1])], [all, all], "owner {owner}");
        // All that was lent is there again.
        let credit = w.machines[1 - owner].core_mut().far[0].credit();
        assert_eq!((credit, w.machines[owner].core_mut().far[0].free_bytes()), (free, free));
    }
}
