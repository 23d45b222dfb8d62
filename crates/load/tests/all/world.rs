//! A world in memory: a machine that connects out, and a target connection with a RAM disk for each of
//! its connections. Bytes travel in random pieces, commands end in random order, links are cut at random.

use base::fake::{Head, carry_out};
use base::memory::PlainMemory;
use base::view::{Host, Portal, Protocol, View};
use base::{
    Answer, Ask, ConnectionId, Duration, Effect, Effects, Event, Instant, Machine, Memory, NetError,
    PortalId, Prng, Slice, Status, VolumeId, Want,
};
use std::collections::{BTreeMap, VecDeque};

/// The target's machine for one connection.
pub enum Front {
    Nvme(Box<nvme::subsystem::Connection>),
    Iscsi(Box<iscsi::node::Connection>),
}

macro_rules! each {
    ($front:expr, $c:ident => $e:expr) => {
        match &mut $front {
            Front::Nvme($c) => $e,
            Front::Iscsi($c) => $e,
        }
    };
}

/// The volume.
pub struct Disk {
    pub block_bytes: u32,
    pub bytes: Vec<u8>,
    /// Commands that it has carried out.
    pub commands: u64,
}

impl Disk {
    pub fn new(block_bytes: u32, blocks: u64) -> Self {
        Self { block_bytes, bytes: vec![0; (blocks * u64::from(block_bytes)) as usize], commands: 0 }
    }
}

const OUTBOX_BYTES: u32 = 64 << 10;
const BUFFER_BYTES: u32 = 1 << 20;

struct Server {
    front: Front,
    head: Head,
    /// Bytes that the front would not take yet.
    held: VecDeque<u8>,
    gone: bool,
}

struct Link {
    id: ConnectionId,
    server: Server,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    /// The receive that the client asked for.
    receive: Option<Option<Slice>>,
    sending: bool,
    closing: bool,
    broken: bool,
    reported: bool,
}

/// A machine of `base::Machine` whose memory the world reaches.
pub trait Hosted: Machine {
    fn memory(&mut self) -> &mut PlainMemory;
}

/// Staging buffers are the first bytes of the machine's memory.
pub const STAGING_BYTES: u64 = 64 * STAGING_EACH as u64;
const STAGING_EACH: u32 = 8192;

pub struct World<M: Hosted> {
    pub machine: M,
    pub now: Instant,
    pub rng: Prng,
    pub disk: Disk,
    pub view: View,
    pub protocol: Protocol,
    /// Every connection attempt fails.
    pub deaf: bool,
    /// One link is cut about every so many steps; 0 for never.
    pub cut_every: u64,
    /// One command about every so many is answered `NotReady`; 0 for none.
    pub not_ready_every: u64,
    pub cuts: u64,
    /// Targets do nothing.
    pub frozen: bool,
    pub letters: Vec<M::Mail>,
    links: BTreeMap<usize, Link>,
    fx: Effects<M::Mail>,
    staging: Vec<u32>,
    controllers: u16,
    pub io_queues: u64,
    events: VecDeque<Event<M::Mail>>,
}

impl<M: Hosted> World<M> {
    pub fn new(machine: M, protocol: Protocol, seed: u64, disk: Disk, view: View) -> Self {
        Self {
            machine,
            now: Instant(1_000_000_000),
            rng: Prng::new(seed),
            disk,
            view,
            protocol,
            deaf: false,
            cut_every: 0,
            not_ready_every: 0,
            cuts: 0,
            frozen: false,
            letters: vec![],
            links: BTreeMap::new(),
            fx: vec![],
            staging: (0..64).collect(),
            controllers: 0,
            io_queues: 0,
            events: VecDeque::new(),
        }
    }
    pub fn mail(&mut self, mail: M::Mail) {
        self.events.push_back(Event::Mail { from: base::Address::Manager, mail });
    }
    /// Runs until `until` says so; panics after `steps_max` steps.
    pub fn run(&mut self, steps_max: u64, mut until: impl FnMut(&mut Self) -> bool) {
        for _ in 0..steps_max {
            self.step();
            if until(self) {
                return;
            }
        }
        panic!("not done after {steps_max} steps at {:?}; {}", self.now, self.describe());
    }
    fn describe(&self) -> String {
        let mut out = String::new();
        for (slot, l) in &self.links {
            out += &format!(
                "slot {slot}: to_server {} to_client {} receive {:?} sending {} held {} submitted {} closed {:?}; ",
                l.to_server.len(),
                l.to_client.len(),
                l.receive,
                l.sending,
                l.server.held.len(),
                l.server.head.submitted.len(),
                l.server.head.closed
            );
        }
        out
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_nanos(self.rng.between(100, 3000));
        if self.machine.next_deadline().is_some_and(|at| at <= self.now) {
            self.machine.on_timer(self.now, &mut self.fx);
        }
        let moved = self.links_move();
        let mut n = self.events.len();
        while n > 0 {
            let event = self.events.pop_front().expect("counted");
            self.machine.on_event(self.now, event, &mut self.fx);
            n -= 1;
        }
        self.machine.end_of_turn(self.now, &mut self.fx);
        let acted = !self.fx.is_empty();
        self.carry_out();
        if !moved && !acted && self.events.is_empty() {
            // Idle: on to whatever is due next.
            let servers =
                self.links.values_mut().filter_map(|l| each!(l.server.front, c => c.next_deadline()));
            let servers: Vec<_> = if self.frozen { vec![] } else { servers.collect() };
            let next = servers.into_iter().chain(self.machine.next_deadline()).min();
            self.now = self.now.max(next.expect("an idle world waits for something"));
        }
    }
    fn carry_out(&mut self) {
        for effect in core::mem::take(&mut self.fx) {
            match effect {
                Effect::Connect { connection, .. } => self.connect(connection),
                Effect::Close { connection } => {
                    let link = self.links.get_mut(&connection.slot()).expect("it stands");
                    assert_eq!(link.id, connection);
                    link.closing = true;
                }
                Effect::Receive { connection, into, .. } => {
                    let link = self.links.get_mut(&connection.slot()).expect("it stands");
                    assert!(link.receive.is_none() && !link.closing, "one receive at a time");
                    assert!(into.is_none_or(|s| s.len > 0), "an empty receive");
                    link.receive = Some(into);
                }
                Effect::Send { connection } => {
                    let link = self.links.get_mut(&connection.slot()).expect("it stands");
                    assert!(!link.sending, "one send at a time");
                    link.sending = true;
                }
                Effect::Recycle { data } => {
                    self.staging.push((data.at / u64::from(STAGING_EACH)) as u32);
                    assert!(self.staging.len() <= 64, "a buffer was given back twice");
                }
                Effect::Mail { mail, .. } => self.letters.push(mail),
                other => panic!("{other:?} is not for this world"),
            }
        }
    }
    fn connect(&mut self, connection: ConnectionId) {
        if self.deaf {
            let result = Err(NetError::Refused);
            return self.events.push_back(Event::Connected { connection, result });
        }
        let portal = Portal {
            id: PortalId(0),
            protocol: self.protocol,
            address: "127.0.0.1:1".parse().unwrap(),
            head: 0,
            moves: None,
        };
        let (local, peer) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        let front = match self.protocol {
            Protocol::Nvme | Protocol::Discovery => {
                Front::Nvme(Box::new(nvme::subsystem::Connection::new(nvme::subsystem::ConnectionConfig {
                    local,
                    peer,
                    portal,
                    queue_depth_max: 128,
                    io_queues_max: 8,
                    seed: 1,
                })))
            }
            Protocol::Iscsi => {
                Front::Iscsi(Box::new(iscsi::node::Connection::new(iscsi::node::ConnectionConfig {
                    local,
                    peer,
                    portal,
                    seed: self.rng.next_u64(),
                    commands_max: 64,
                })))
            }
        };
        // Few buffers, so that commands wait for them. An iSCSI write whose first part is in the stream
        // holds its buffer until the rest has come from behind other such writes: there must be one for
        // each that may be under way.
        let buffers = if self.protocol == Protocol::Iscsi { 10 } else { 6 };
        let head = Head::new(self.view.clone(), OUTBOX_BYTES, buffers, BUFFER_BYTES);
        let server = Server { front, head, held: VecDeque::new(), gone: false };
        let link = Link {
            id: connection,
            server,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            receive: None,
            sending: false,
            closing: false,
            broken: false,
            reported: false,
        };
        assert!(self.links.insert(connection.slot(), link).is_none(), "the slot is in use");
        self.events.push_back(Event::Connected { connection, result: Ok(()) });
    }
    /// Every link does a random part of what it can. False if nothing could move.
    fn links_move(&mut self) -> bool {
        let mut moved = false;
        let slots: Vec<usize> = self.links.keys().copied().collect();
        for slot in slots {
            let mut link = self.links.remove(&slot).expect("listed");
            let keep = self.link_moves(&mut link, &mut moved);
            if keep {
                self.links.insert(slot, link);
            } else {
                self.events.push_back(Event::Closed { connection: link.id });
            }
        }
        moved
    }
    fn link_moves(&mut self, link: &mut Link, moved: &mut bool) -> bool {
        let connection = link.id;
        if link.closing {
            *moved = true;
            return false;
        }
        if self.cut_every > 0 && self.rng.chance(1, self.cut_every) && !link.broken {
            link.broken = true;
            self.cuts += 1;
        }
        // The client sends a piece of what it has.
        if link.sending && !link.broken {
            let mut segments = vec![];
            self.machine.segments(connection, 16, &mut segments);
            let mut left = self.rng.between(1, 20_000) as u32;
            let mut bytes = 0;
            for s in segments {
                let n = s.len.min(left);
                link.to_server.extend(self.machine.memory().bytes(s.head(n)));
                left -= n;
                bytes += n;
            }
            link.sending = false;
            *moved = true;
            assert!(bytes > 0, "a send of nothing");
            self.events.push_back(Event::Sent { connection, bytes });
        }
        if !link.broken && !self.frozen {
            *moved |= self.server_moves(link);
        }
        // The client gets a piece of what there is.
        if link.receive.is_some() && !link.to_client.is_empty() && !link.broken {
            let n = (self.rng.between(1, 9000) as usize).min(link.to_client.len()) as u32;
            let data = match link.receive.take().expect("checked") {
                Some(into) => into.head(n.min(into.len)),
                None => {
                    let buffer = self.staging.pop().expect("staging buffers come back");
                    Slice::new(u64::from(buffer * STAGING_EACH), n.min(STAGING_EACH))
                }
            };
            for b in self.machine.memory().bytes_mut(data) {
                *b = link.to_client.pop_front().expect("counted");
            }
            *moved = true;
            self.events.push_back(Event::Received { connection, data });
        }
        let over = link.server.gone && link.to_client.is_empty();
        if (link.broken || over) && !link.reported {
            link.reported = true;
            *moved = true;
            self.events.push_back(Event::Broken { connection });
        }
        true
    }
    fn server_moves(&mut self, link: &mut Link) -> bool {
        let (now, rng, s) = (self.now, &mut self.rng, &mut link.server);
        let mut moved = false;
        if s.gone {
            link.to_server.clear();
            return false;
        }
        if each!(s.front, c => c.next_deadline()).is_some_and(|at| at <= now) {
            each!(s.front, c => c.on_timer(now, &mut s.head));
            moved = true;
        }
        if s.head.closed.is_none() {
            match each!(s.front, c => c.want()) {
                Want::Direct(slice) => {
                    let n = (rng.between(1, 9000) as u32).min(slice.len).min(link.to_server.len() as u32);
                    if s.held.is_empty() && n > 0 {
                        for b in s.head.memory.bytes_mut(slice.head(n)) {
                            *b = link.to_server.pop_front().expect("counted");
                        }
                        each!(s.front, c => c.on_direct(now, n, &mut s.head));
                        moved = true;
                    }
                }
                Want::Staging | Want::Header(_) => {
                    let n = (rng.between(1, 9000) as usize).min(link.to_server.len());
                    s.held.extend(link.to_server.drain(..n));
                }
                Want::Nothing => {}
            }
            if !s.held.is_empty() {
                let bytes = s.held.make_contiguous().to_vec();
                let n = each!(s.front, c => c.on_bytes(now, &bytes, &mut s.head));
                s.held.drain(..n);
                moved |= n > 0;
            }
        }
        if s.head.closed.is_none()
            && let Some((tag, slice)) = s.head.grant()
        {
            each!(s.front, c => c.on_granted(now, tag, slice, &mut s.head));
            moved = true;
        }
        if s.head.closed.is_none()
            && let Some(ask) = s.head.asks.pop_front()
        {
            let id = match ask {
                Ask::NvmeAdmin { .. } | Ask::Iscsi { .. } => {
                    self.controllers += 1;
                    self.controllers
                }
                Ask::NvmeIo { controller, .. } => {
                    self.io_queues += 1;
                    controller
                }
            };
            each!(s.front, c => c.on_answer(now, Answer::Admitted { id }, &mut s.head));
            moved = true;
        }
        if s.head.closed.is_none()
            && let Some((key, _)) = s.head.interventions.pop_front()
        {
            each!(s.front, c => c.on_intervened(now, key, false, &mut s.head));
            moved = true;
        }
        if s.head.closed.is_none()
            && let Some(tag) = s.head.take_aborted()
        {
            each!(s.front, c => c.on_done(now, tag, Status::Aborted, &mut s.head));
            moved = true;
        }
        // Commands end in any order, and are carried out only then: what is lost with the connection
        // never starts. A world with a command at the disk is not idle: time does not jump.
        moved |= s.head.closed.is_none() && !s.head.submitted.is_empty();
        if s.head.closed.is_none() && !s.head.submitted.is_empty() && rng.chance(2, 3) {
            let at = rng.below(s.head.submitted.len() as u64) as usize;
            let (tag, command, data) = s.head.take_submitted(at).expect("it is there");
            let status = if s.head.take_stopped(tag) {
                Status::Aborted
            } else if self.not_ready_every > 0 && rng.chance(1, self.not_ready_every) {
                Status::NotReady
            } else {
                let disk = &mut self.disk;
                disk.commands += 1;
                carry_out(&mut disk.bytes, disk.block_bytes, &command, s.head.memory.bytes_mut(data))
            };
            each!(s.front, c => c.on_done(now, tag, status, &mut s.head));
            moved = true;
        }
        let n = rng.between(1, 20_000) as u32;
        let out = s.head.sent(n);
        if !out.is_empty() {
            link.to_client.extend(out);
            moved = true;
            if s.head.closed.is_none() {
                each!(s.front, c => c.on_sent(now, &mut s.head));
            }
        } else if s.head.closed.is_some() {
            s.gone = true;
            moved = true;
        }
        moved
    }
    /// Every target learns a new view.
    pub fn change_view(&mut self, change: impl FnOnce(&mut View)) {
        change(&mut self.view);
        self.view.generation += 1;
        for l in self.links.values_mut() {
            l.server.head.view = self.view.clone();
            if l.server.head.closed.is_none() {
                each!(l.server.front, c => c.on_view(self.now, &mut l.server.head));
            }
        }
    }
    /// How the target ended the connections that stand, for asking why.
    pub fn close_reasons(&self) -> Vec<String> {
        self.links.values().filter_map(|l| l.server.head.closed.map(|c| format!("{c:?}"))).collect()
    }
}

/// A view with one host and one volume.
pub fn view(host: Host, block_bytes: u32, blocks: u64) -> View {
    let mut view = View { generation: 1, ..View::default() };
    view.system.nqn = "nqn.2026-01.org.example:target".into();
    view.system.iqn = "iqn.2026-01.org.example:target".into();
    view.system.serial = "1".into();
    view.system.model = "test".into();
    view.system.firmware = "1".into();
    let mut host = host;
    host.exports.push(base::view::Export {
        nsid: 3,
        lun: 0,
        volume: VolumeId(7),
        name: "tank/v".into(),
        nguid: [9; 16],
        naa: [0x30; 16],
        block_bytes,
        blocks,
        deallocate: true,
        ready: true,
        ..Default::default()
    });
    view.hosts.push(host);
    view
}
