//! One shard and one load generator in one thread, with no kernel between them: what is left is the
//! work of our own code, and under callgrind it can be counted.
//!
//!     path SCENARIO COMMANDS
//!
//! Only [`shard_event`] and [`shard_turn`] are the product at work; the rest plays the kernel and the
//! host. Counting COMMANDS and twice as many and taking the difference leaves the cost of a command.

use array::{Bitmap, Geometry, Leg, LegState, Membership};
use base::memory::PlainMemory;
use base::view::{Export, Host, Portal, Protocol, System, View};
use base::{
    Address, Answer, Command, ConnectionId, Dma, DriveId, Duration, Effect, Effects, Event, HostId, Instant,
    Machine, Memory, PortalId, Slice, Tag, Uuid, VolumeId,
};
use core::net::SocketAddr;
use head::layout::{ArrayId, ArrayLayout, Layout, PoolId, PoolLayout, VolumeLayout};
use head::mail::{Mail, ShardMail, StewardMail};
use head::path::door::Door;
use head::path::far::wire::Pairing;
use head::path::far::{FarSetup, FarSide};
use head::{Deadlines, Shard, ShardConfig};
use std::collections::VecDeque;
use std::sync::Arc;

const DRIVE_BYTES: u64 = 1 << 40;
const VOLUME_BYTES: u64 = 1 << 36;
const CHUNK: u32 = 64 << 10;
const SHARD_AT: u64 = 1 << 20;
const SHARD_BYTES: u64 = 64 << 20;
const STAGING_AT: u64 = 1 << 32;
const STAGING_BYTES: u32 = 64 << 10;
const STAGING_BUFFERS: u64 = 64;
const LOAD_BYTES: u64 = 64 << 20;
const HOST_IQN: &str = "iqn.2026-01.example:host";
const CONNECTIONS: usize = 8;
const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000001";
const IQN: &str = "iqn.2026-01.example:path";
const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000002";

struct Scenario {
    name: &'static str,
    protocol: Protocol,
    legs: usize,
    arrays: usize,
    read_percent: u8,
    io_bytes: u32,
    depth: u16,
    /// The head is one of two that serve, and has the lanes of all that is asked for.
    is_one_of_two: bool,
}

const fn scenario(
    name: &'static str,
    protocol: Protocol,
    shape: (usize, usize),
    read_percent: u8,
) -> Scenario {
    let (arrays, legs) = shape;
    Scenario { name, protocol, arrays, legs, read_percent, io_bytes: 4096, depth: 32, is_one_of_two: false }
}

const SCENARIOS: &[Scenario] = &[
    scenario("nvme-read-single", Protocol::Nvme, (1, 1), 100),
    scenario("nvme-write-single", Protocol::Nvme, (1, 1), 0),
    scenario("nvme-read-mirrors", Protocol::Nvme, (4, 2), 100),
    scenario("nvme-write-mirrors", Protocol::Nvme, (4, 2), 0),
    scenario("iscsi-read-single", Protocol::Iscsi, (1, 1), 100),
    scenario("iscsi-write-single", Protocol::Iscsi, (1, 1), 0),
    Scenario { depth: 1, ..scenario("nvme-read-qd1", Protocol::Nvme, (1, 1), 100) },
    Scenario { is_one_of_two: true, ..scenario("two-heads-read-mirrors", Protocol::Nvme, (4, 2), 100) },
    Scenario { is_one_of_two: true, ..scenario("two-heads-write-mirrors", Protocol::Nvme, (4, 2), 0) },
];

/// The rooms alone, as far as `rooms` says.
const ROOMS: &[Scenario] = &[
    scenario("rooms-read-single", Protocol::Nvme, (1, 1), 100),
    scenario("rooms-write-single", Protocol::Nvme, (1, 1), 0),
    scenario("rooms-read-mirrors", Protocol::Nvme, (4, 2), 100),
    scenario("rooms-write-mirrors", Protocol::Nvme, (4, 2), 0),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let named = |list: &'static [Scenario]| list.iter().find(|s| args.first().is_some_and(|a| a == s.name));
    let commands = args.get(1).and_then(|n| n.parse().ok());
    if let (Some(scenario), Some(commands)) = (named(ROOMS), commands) {
        return rooms(scenario, commands);
    }
    let (Some(scenario), Some(commands)) = (named(SCENARIOS), commands) else {
        let names: Vec<&str> = SCENARIOS.iter().chain(ROOMS).map(|s| s.name).collect();
        eprintln!("path SCENARIO COMMANDS, with one of {}", names.join(", "));
        std::process::exit(2);
    };
    let report = World::new(scenario).run(scenario, commands);
    assert_eq!((report.errors, report.total.ops), (0, commands), "{report:?}");
}

/// The product: one event.
#[inline(never)]
fn shard_event(shard: &mut Shard<PlainMemory>, now: Instant, event: Event<Mail>, fx: &mut Effects<Mail>) {
    shard.on_event(now, event, fx);
}

/// The product: the end of a turn.
#[inline(never)]
fn shard_turn(shard: &mut Shard<PlainMemory>, now: Instant, fx: &mut Effects<Mail>) {
    shard.end_of_turn(now, fx);
}

/// The product: a command that no front end brings. Its name makes it counted as an event.
#[inline(never)]
fn shard_event_direct(
    shard: &mut Shard<PlainMemory>,
    now: Instant,
    tag: Tag,
    command: Command,
    data: Slice,
    fx: &mut Effects<Mail>,
) {
    shard.direct_submit(now, (tag, Door::Volume), command, data, fx);
}

/// `commands` commands from the volume on, as many at a time as the scenario is deep, on drives that answer at once.
/// Counted is all that a shard does for them from the command that a front end has understood, with its memory
/// granted, to the word that it has ended: its request, the rate limiters of capped volumes, volume, pool and array, the
/// operations for the drives, what they answer, and the counters. Not counted: bytes of a protocol, sockets, rings.
fn rooms(scenario: &Scenario, commands: u64) {
    let mut shard = World::new(scenario).shard;
    let depth = scenario.depth;
    assert!(shard.direct_admit(depth.into()), "there is room");
    let buffer = |shard: &mut Shard<PlainMemory>| shard.direct_buffer(scenario.io_bytes).expect("memory");
    let mut idle: Vec<(Tag, Slice)> = (0..depth).map(|i| (Tag(i), buffer(&mut shard))).collect();
    let mut random = base::Prng::new(1);
    let op = if scenario.read_percent == 100 { base::Op::Read } else { base::Op::Write };
    let (mut begun, mut ended, mut now) = (0, 0, Instant(1_000_000));
    let (mut fx, mut asked): (Effects<Mail>, Effects<Mail>) =
        (Vec::with_capacity(4096), Vec::with_capacity(4096));
    while ended < commands {
        now = now + Duration::from_micros(10);
        while begun < commands
            && let Some((tag, data)) = idle.pop()
        {
            // Few regions, as in `World::run`.
            let at = random.below(16 << 10);
            let command = Command { volume: VolumeId(1), op, at, blocks: 1, fua: false };
            shard_event_direct(&mut shard, now, tag, command, data, &mut fx);
            begun += 1;
        }
        shard_turn(&mut shard, now, &mut fx);
        while let Some(done) = shard.direct_done() {
            assert_eq!(done.status, base::Status::Good);
            idle.push((done.tag, done.data));
            ended += 1;
        }
        core::mem::swap(&mut fx, &mut asked);
        for effect in asked.drain(..) {
            if let Effect::Drive(op) = effect {
                let event = Event::DriveDone { token: op.token, result: Ok(()) };
                shard_event(&mut shard, now, event, &mut fx);
            }
        }
    }
}

/// Bytes on their way to one end of a connection, and that end's receive, if it waits.
#[derive(Default)]
struct Inbound {
    connection: ConnectionId,
    bytes: VecDeque<u8>,
    waits: Option<Option<Slice>>,
}

struct World {
    now: Instant,
    shard: Shard<PlainMemory>,
    to_shard: VecDeque<Event<Mail>>,
    shard_in: Vec<Inbound>,
    staging_free: Vec<Slice>,
    load: load::Load<PlainMemory>,
    to_load: VecDeque<Event<load::Mail>>,
    load_in: Vec<Inbound>,
    report: Option<Box<load::Report>>,
}

impl World {
    fn new(scenario: &Scenario) -> Self {
        let mut shard = Shard::new(ShardConfig {
            id: 0,
            shards: 1,
            memory: PlainMemory::new(SHARD_AT, SHARD_BYTES as usize),
            staging: PlainMemory::new(STAGING_AT, (u64::from(STAGING_BYTES) * STAGING_BUFFERS) as usize),
            seed: 1,
            deadlines: Deadlines::default(),
            extents: vec![(SHARD_AT, SHARD_BYTES)],
            connections_max: CONNECTIONS as u32,
            credits: head::CREDITS,
            turn_pdus: head::TURN_PDUS,
            flights: head::FLIGHTS,
        });
        let (view, layout) = configuration(scenario);
        let arrays = layout.arrays.len() as u32;
        let room = head::mail::Room { mirrors: arrays, singles: arrays };
        let room = ShardMail::Room { number: 1, room };
        let configure = ShardMail::Configure { view: Arc::new(view), layout: Arc::new(layout) };
        for mail in [room, configure] {
            shard.on_event(
                Instant(1),
                Event::Mail { from: Address::Steward, mail: mail.into() },
                &mut vec![],
            );
        }
        if scenario.is_one_of_two {
            let pairing = Pairing { secret: [1; 32], lives: [1, 2], epoch: 1 };
            let side = FarSide::Listens(vec![SocketAddr::from(([127, 0, 0, 2], 7401))]);
            let far = ShardMail::Far(Arc::new(FarSetup { meeting: 1, shards: 1, pairing, side }));
            let sight = ShardMail::Sight { until: Some(Instant(u64::MAX)) };
            for mail in [far, sight] {
                let event = Event::Mail { from: Address::Steward, mail: mail.into() };
                shard.on_event(Instant(1), event, &mut vec![]);
            }
        }
        shard.end_of_turn(Instant(1), &mut vec![]);
        let inbound = || (0..CONNECTIONS).map(|_| Inbound::default()).collect();
        Self {
            now: Instant(1_000_000),
            shard,
            to_shard: VecDeque::new(),
            shard_in: inbound(),
            staging_free: (0..STAGING_BUFFERS)
                .map(|i| Slice::new(STAGING_AT + i * u64::from(STAGING_BYTES), STAGING_BYTES))
                .collect(),
            load: load::Load::new(
                PlainMemory::new(0, LOAD_BYTES as usize + STAGING_BYTES as usize),
                (0, LOAD_BYTES),
                CONNECTIONS as u32,
            ),
            to_load: VecDeque::new(),
            load_in: inbound(),
            report: None,
        }
    }

    fn run(mut self, scenario: &Scenario, commands: u64) -> Box<load::Report> {
        let plan = load::Plan {
            io_bytes: scenario.io_bytes,
            read_percent: scenario.read_percent,
            // Few regions: all of them are written before long, and the bitmap is warm.
            region_bytes: 64 << 20,
            time: Duration::ZERO,
            ops_max: commands,
            verify: false,
            progress_every: Duration::ZERO,
            ..load::Plan::new(vec![scenario.target()])
        };
        let mail = load::Mail::Start(Box::new(plan));
        self.to_load.push_back(Event::Mail { from: Address::Manager, mail });
        loop {
            self.now = self.now + Duration::from_micros(10);
            self.load_turn();
            self.shard_turn();
            if let Some(report) = self.report {
                return report;
            }
        }
    }

    fn load_turn(&mut self) {
        let mut fx: Effects<load::Mail> = vec![];
        while let Some(event) = self.to_load.pop_front() {
            self.load.on_event(self.now, event, &mut fx);
        }
        if self.load.next_deadline().is_some_and(|at| at <= self.now) {
            self.load.on_timer(self.now, &mut fx);
        }
        self.load.end_of_turn(self.now, &mut fx);
        for effect in fx {
            match effect {
                Effect::Connect { connection, peer } => {
                    for inbound in [&mut self.shard_in, &mut self.load_in] {
                        inbound[connection.slot()] = Inbound { connection, ..Inbound::default() };
                    }
                    self.to_load.push_back(Event::Connected { connection, result: Ok(()) });
                    self.to_shard.push_back(Event::Accepted {
                        connection,
                        portal: PortalId(0),
                        local: peer,
                        peer,
                    });
                }
                Effect::Send { connection } => {
                    let mut parts = vec![];
                    self.load.segments(connection, 1024, &mut parts);
                    let memory = self.load.memory_mut();
                    let to = &mut self.shard_in[connection.slot()].bytes;
                    parts.iter().for_each(|part| to.extend(memory.bytes(*part)));
                    let bytes = parts.iter().map(|s| s.len).sum();
                    self.to_load.push_back(Event::Sent { connection, bytes });
                }
                Effect::Receive { connection, into, .. } => {
                    self.load_in[connection.slot()].waits = Some(into);
                }
                Effect::Close { connection } => {
                    self.load_in[connection.slot()].waits = None;
                    self.to_load.push_back(Event::Closed { connection });
                    self.to_shard.push_back(Event::Broken { connection });
                }
                Effect::Mail { mail: load::Mail::Done(report), .. } => self.report = Some(report),
                Effect::Mail { mail: load::Mail::Refused(why), .. } => panic!("{why:?}"),
                Effect::Mail { .. } | Effect::Recycle { .. } => {}
                other => panic!("a load generator does not ask for {other:?}"),
            }
        }
        for slot in 0..CONNECTIONS {
            self.deliver_to_shard(slot);
        }
    }

    fn deliver_to_shard(&mut self, slot: usize) {
        let inbound = &mut self.shard_in[slot];
        let Some(into) = inbound.waits.filter(|_| !inbound.bytes.is_empty()) else { return };
        let Some(place) = into.or_else(|| self.staging_free.pop()) else { return };
        inbound.waits = None;
        let n = inbound.bytes.len().min(place.len as usize);
        let (data, connection) = (place.head(n as u32), inbound.connection);
        let bytes: Vec<u8> = inbound.bytes.drain(..n).collect();
        self.shard.dma(data, &mut |to| to.copy_from_slice(&bytes));
        self.to_shard.push_back(Event::Received { connection, data });
    }

    fn deliver_to_load(&mut self, slot: usize) {
        let inbound = &mut self.load_in[slot];
        let Some(into) = inbound.waits.filter(|_| !inbound.bytes.is_empty()) else { return };
        let place = into.unwrap_or(Slice::new(LOAD_BYTES, STAGING_BYTES));
        inbound.waits = None;
        let n = inbound.bytes.len().min(place.len as usize);
        let (data, connection) = (place.head(n as u32), inbound.connection);
        let bytes: Vec<u8> = inbound.bytes.drain(..n).collect();
        self.load.memory_mut().bytes_mut(data).copy_from_slice(&bytes);
        // One staging buffer: it is read at once.
        let mut fx = vec![];
        self.load.on_event(self.now, Event::Received { connection, data }, &mut fx);
        assert!(fx.iter().all(|e| matches!(e, Effect::Recycle { .. })), "effects come with the turn");
    }

    /// Turns of the shard until it has nothing more to do: drives answer at once.
    fn shard_turn(&mut self) {
        let mut fx: Effects<Mail> = Vec::with_capacity(4096);
        while !self.to_shard.is_empty() {
            while let Some(event) = self.to_shard.pop_front() {
                shard_event(&mut self.shard, self.now, event, &mut fx);
            }
            shard_turn(&mut self.shard, self.now, &mut fx);
            for effect in fx.drain(..) {
                match effect {
                    Effect::Drive(op) => {
                        self.to_shard.push_back(Event::DriveDone { token: op.token, result: Ok(()) });
                    }
                    Effect::Send { connection } => {
                        let mut parts = vec![];
                        self.shard.segments(connection, 1024, &mut parts);
                        let to = &mut self.load_in[connection.slot()].bytes;
                        for part in &parts {
                            self.shard.dma(*part, &mut |from| to.extend(&*from));
                        }
                        let bytes = parts.iter().map(|s| s.len).sum();
                        self.to_shard.push_back(Event::Sent { connection, bytes });
                    }
                    Effect::Receive { connection, into, .. } => {
                        self.shard_in[connection.slot()].waits = Some(into);
                    }
                    Effect::Recycle { data } => {
                        let at = data.at - (data.at - STAGING_AT) % u64::from(STAGING_BYTES);
                        self.staging_free.push(Slice::new(at, STAGING_BYTES));
                    }
                    Effect::Mail { to: Address::Steward, mail: Mail::Steward(asked) } => {
                        let answer = match *asked {
                            StewardMail::Ask { connection, .. } => {
                                ShardMail::Answer { connection, answer: Answer::Admitted { id: 1 } }
                            }
                            StewardMail::Intervene { connection, key, .. } => {
                                ShardMail::Intervened { connection, key, yes: false }
                            }
                            _ => continue,
                        };
                        self.to_shard.push_back(Event::Mail { from: Address::Steward, mail: answer.into() });
                    }
                    Effect::Close { connection } => {
                        self.shard_in[connection.slot()].waits = None;
                        self.to_shard.push_back(Event::Closed { connection });
                    }
                    Effect::Mail { .. } | Effect::Listen { .. } => {}
                    other => panic!("a shard does not ask for {other:?}"),
                }
            }
            for slot in 0..CONNECTIONS {
                self.deliver_to_shard(slot);
            }
        }
        for slot in 0..CONNECTIONS {
            self.deliver_to_load(slot);
        }
    }
}

impl Scenario {
    fn target(&self) -> load::Config {
        let target = match self.protocol {
            Protocol::Iscsi => {
                let mut config = load::iscsi_host::Config::new(HOST_IQN, Some(IQN));
                config.depth = self.depth;
                load::Target::Iscsi(config)
            }
            Protocol::Nvme | Protocol::Discovery => {
                let mut config = load::nvme_host::Config::new(HOST_NQN, [2; 16], NQN);
                config.depth = self.depth;
                load::Target::Nvme(config)
            }
        };
        load::Config { peer: address(), target }
    }
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4420))
}

/// One host, one volume, and the arrays of the scenario striped together.
fn configuration(scenario: &Scenario) -> (View, Layout) {
    let export = Export {
        nsid: 1,
        lun: 0,
        volume: VolumeId(1),
        name: "pool/volume".into(),
        block_bytes: 4096,
        blocks: VOLUME_BYTES / 4096,
        ready: true,
        ..Export::default()
    };
    let host = Host {
        id: HostId(1),
        name: "host".into(),
        nqns: vec![HOST_NQN.into()],
        iqns: vec![HOST_IQN.into()],
        exports: vec![export],
        ..Host::default()
    };
    let view = View {
        generation: 1,
        system: System { nqn: NQN.into(), iqn: IQN.into(), ..System::default() },
        portals: vec![Portal {
            id: PortalId(0),
            protocol: scenario.protocol,
            address: address(),
            head: 0,
            moves: None,
        }],
        hosts: vec![host],
        ..View::default()
    };
    let geometry = Geometry::plan(scenario.legs > 1, 64 << 10, DRIVE_BYTES, u64::from(CHUNK));
    let geometry = geometry.expect("the drive is large enough");
    let leg = |drive: usize| Leg {
        drive: DriveId(drive as u16),
        state: LegState::InSync,
        volatile_cache: false,
        deallocate_zeroes: true,
        map_at: DRIVE_BYTES,
    };
    let arrays = 0..scenario.arrays;
    let array = |i: usize| ArrayLayout {
        id: ArrayId(i as u16),
        uuid: Uuid([i as u8 + 1; 16]),
        geometry,
        membership: Membership {
            epoch: 1,
            legs: (0..scenario.legs).map(|l| Some(leg(i * scenario.legs + l))).collect(),
        },
        lanes: array::Lanes::dealt(1),
        map: 1,
        dirty: Arc::new(Bitmap::new(geometry.regions())),
        unclean: false,
        uncleared: Default::default(),
        shared: scenario.is_one_of_two,
        lacks_path: false,
    };
    let spaces: Vec<pool::ArraySpace> =
        arrays.clone().map(|_| pool::ArraySpace { bytes: geometry.data_bytes, weight: 1 }).collect();
    let run = volume::Run { first: 0, count: VOLUME_BYTES / volume::GRANULE_BYTES };
    let layout = Layout {
        waits: false,
        generation: 1,
        pools: vec![PoolLayout {
            id: PoolId(1),
            uuid: Uuid([9; 16]),
            map: Arc::new(pool::StripeMap::new(CHUNK, &spaces).expect("a map")),
            arrays: arrays.clone().map(|i| ArrayId(i as u16)).collect(),
        }],
        arrays: arrays.map(array).collect(),
        volumes: vec![VolumeLayout {
            id: VolumeId(1),
            pool: PoolId(1),
            block_bytes: 4096,
            blocks: VOLUME_BYTES / 4096,
            map: Arc::new(volume::Map::new(&[run]).expect("a map")),
            ready: true,
            home: 0,
            caps: Default::default(),
            weight: volume::WEIGHT,
        }],
    };
    (view, layout)
}
