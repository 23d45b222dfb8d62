//! The simulated world: one thread, virtual time, one seed.
//!
//! It carries out the effects of a head's machines and of hosts: links that delay, split and cut; drives
//! that reorder, tear, fail and hang; a state directory; mail between machines. Everything that happens
//! is one entry of a queue ordered by time and by the order in which it was asked for, so that the same
//! seed gives the same run. Every event is folded into a hash that proves it.

use crate::disk::{Disk, DiskOp};
use base::machine::Shape;
use base::{
    Address, ConnectionId, Dma, DriveError, DriveHealth, DriveId, DriveOp, DriveOpKind, Duration, Effect,
    Effects, Event, Instant, Machine, NetError, OpenError, PortalId, Prng, Slice, StateError, StateOp,
};
use core::cmp::Reverse;
use core::net::{Ipv4Addr, SocketAddr};
use head::mail::Mail;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// A machine of the head.
pub trait HeadMachine: Machine<Mail = Mail> + Dma {
    /// Nothing is under way, and nothing is kept that should be free; else what, one sentence.
    fn at_rest(&self) -> Result<(), String>;
}

impl<M: base::Memory> HeadMachine for head::Shard<M>
where
    head::Shard<M>: Dma,
{
    fn at_rest(&self) -> Result<(), String> {
        if !self.idle() || self.arrays().any(|(_, a)| !a.idle()) {
            return Err("a shard has something under way".into());
        }
        let (used, kept) = (self.buffers_used(), self.buffers_kept());
        if used != kept {
            return Err(format!("{used} bytes of a shard's buffers are in use, and {kept} accounted for"));
        }
        self.arrays().for_each(|(_, a)| a.check_invariants());
        Ok(())
    }
}

impl HeadMachine for head::steward::Steward {
    fn at_rest(&self) -> Result<(), String> {
        if self.idle() { Ok(()) } else { Err("the Steward is not idle".into()) }
    }
}

/// A host: a machine that writes no mail.
pub trait HostMachine: Machine<Mail = ()> + Dma {}
impl<T: Machine<Mail = ()> + Dma> HostMachine for T {}

/// Who an event is for: an index into `World::actors`.
pub type ActorId = usize;

enum Body {
    Head(Box<dyn HeadMachine>),
    Host(Box<dyn HostMachine>),
}

struct Actor {
    body: Body,
    /// Tells lives of the same place apart: events of an earlier life are dropped.
    life: u32,
    timer: Option<Instant>,
    staging: Vec<Slice>,
    starved: Vec<usize>,
}

/// One direction of a link.
#[derive(Default)]
struct Way {
    /// Arrived and not yet received: what each send brought, and how much of the first is taken.
    inbox: VecDeque<Vec<u8>>,
    taken: usize,
    /// When the last bytes sent will arrive: later ones do not overtake.
    last: Instant,
    /// The receiver's receive under way.
    receive: Option<Option<Slice>>,
    /// The sender has closed, and that is known at this end.
    ended: bool,
    told: bool,
}

impl Way {
    /// Fills `memory` with what has arrived, as far as that goes.
    fn take(&mut self, memory: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < memory.len()
            && let Some(first) = self.inbox.front()
        {
            let n = (first.len() - self.taken).min(memory.len() - filled);
            memory[filled..filled + n].copy_from_slice(&first[self.taken..self.taken + n]);
            (filled, self.taken) = (filled + n, self.taken + n);
            if self.taken == first.len() {
                self.inbox.pop_front();
                self.taken = 0;
            }
        }
        filled
    }
}

impl Actor {
    /// Gives `with` the bytes of `data`, which must be this machine's.
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) {
        assert!(self.try_dma(data, with), "a machine names memory of its own");
    }
    fn try_dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        match &mut self.body {
            Body::Head(m) => m.dma(data, with),
            Body::Host(m) => m.dma(data, with),
        }
    }
}

#[derive(Clone, Copy)]
struct End {
    actor: ActorId,
    id: ConnectionId,
    open: bool,
}

struct Link {
    ends: [End; 2],
    /// `ways[i]` leads to `ends[i]`.
    ways: [Way; 2],
}

enum Happening {
    Event {
        actor: ActorId,
        life: u32,
        event: HeadOrHost,
    },
    Timer {
        actor: ActorId,
        life: u32,
        at: Instant,
    },
    Arrive {
        link: usize,
        to: usize,
        bytes: Vec<u8>,
    },
    Hangup {
        link: usize,
        to: usize,
    },
    DriveDone {
        op: usize,
    },
    /// For the script that drives the world.
    Alarm {
        mark: u64,
    },
}

enum HeadOrHost {
    Head(Event<Mail>),
    Host(Event<()>),
}

struct PendingOp {
    actor: ActorId,
    life: u32,
    disk: usize,
    op: DriveOp,
}

struct Entry {
    at: Instant,
    seq: u64,
    what: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, o: &Self) -> bool {
        self.seq == o.seq
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, o: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Entry {
    fn cmp(&self, o: &Self) -> core::cmp::Ordering {
        (self.at, self.seq).cmp(&(o.at, o.seq))
    }
}

/// How kind the world is; chosen per seed.
#[derive(Clone, Debug)]
pub struct Kindness {
    /// Longest delay of a drive operation, microseconds.
    pub drive_us: u64,
    /// Longest delay of bytes on a link, microseconds.
    pub link_us: u64,
    /// Sends are cut into pieces, so many times in a thousand.
    pub split_permille: u64,
}

impl Default for Kindness {
    fn default() -> Self {
        Self { drive_us: 200, link_us: 50, split_permille: 100 }
    }
}

/// What a step of the world told its script.
#[derive(Debug)]
pub enum Step {
    /// Something happened.
    Happened,
    /// An alarm of the script's.
    Alarm(u64),
    /// Mail for the manager.
    ToManager(Mail),
    /// Nothing is left to happen.
    Quiet,
}

/// The world.
pub struct World {
    now: Instant,
    seq: u64,
    /// The one source of chance.
    pub rng: Prng,
    hash: u64,
    queue: BinaryHeap<Reverse<Entry>>,
    actors: Vec<Actor>,
    /// Index of shard 0's actor; shards follow, the Steward comes after them.
    addresses: BTreeMap<Address, ActorId>,
    heads: Vec<ActorId>,
    links: Vec<Option<Link>>,
    free_links: Vec<usize>,
    by_end: BTreeMap<(ActorId, ConnectionId), (usize, usize)>,
    accepts: u64,
    listeners: BTreeMap<PortalId, SocketAddr>,
    /// The drives of the machine.
    pub disks: Vec<Disk>,
    drives: BTreeMap<DriveId, usize>,
    ops: Vec<Option<PendingOp>>,
    free_ops: Vec<usize>,
    closing: Vec<(DriveId, usize)>,
    opening: Vec<(ActorId, u32, base::Token, DriveId, usize)>,
    /// The state directory.
    pub state: BTreeMap<String, Vec<u8>>,
    to_manager: VecDeque<Mail>,
    /// How kind it is.
    pub kindness: Kindness,
    segments: Vec<Slice>,
    /// Room for the effects of a turn, kept.
    head_fx: Effects<Mail>,
    host_fx: Effects<()>,
    /// The last events, for a readable story.
    pub story: VecDeque<String>,
    /// Keep a story (slow).
    pub tell: bool,
    /// Tell it on standard error, too.
    pub trace: bool,
}

impl World {
    /// An empty world.
    pub fn new(seed: u64, kindness: Kindness) -> Self {
        Self {
            now: Instant(1_000_000_000),
            seq: 0,
            rng: Prng::new(seed),
            hash: 0xcbf2_9ce4_8422_2325,
            queue: BinaryHeap::new(),
            actors: vec![],
            addresses: BTreeMap::new(),
            heads: vec![],
            links: vec![],
            free_links: vec![],
            by_end: BTreeMap::new(),
            accepts: 0,
            listeners: BTreeMap::new(),
            disks: vec![],
            drives: BTreeMap::new(),
            ops: vec![],
            free_ops: vec![],
            closing: vec![],
            opening: vec![],
            state: BTreeMap::new(),
            to_manager: VecDeque::new(),
            kindness,
            segments: vec![],
            head_fx: vec![],
            host_fx: vec![],
            story: VecDeque::new(),
            tell: false,
            trace: false,
        }
    }
    /// Virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// The hash of everything that happened.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Adds or replaces a machine of the head. Its staging buffers lie in `staging`, cut into pieces.
    pub fn put_head(&mut self, address: Address, machine: Box<dyn HeadMachine>, staging: Slice) -> ActorId {
        let body = Body::Head(machine);
        match self.addresses.get(&address) {
            Some(&id) => {
                let life = self.actors[id].life + 1;
                self.actors[id] = actor(body, life, staging);
                id
            }
            None => {
                self.actors.push(actor(body, 0, staging));
                self.addresses.insert(address, self.actors.len() - 1);
                self.heads.push(self.actors.len() - 1);
                self.actors.len() - 1
            }
        }
    }
    /// Adds a host.
    pub fn put_host(&mut self, machine: Box<dyn HostMachine>, staging: Slice) -> ActorId {
        self.actors.push(actor(Body::Host(machine), 0, staging));
        self.actors.len() - 1
    }
    /// Gives a machine a turn without an event, so that it may begin.
    pub fn nudge(&mut self, id: ActorId) {
        self.turn(id, None);
    }
    /// Mail from the manager.
    pub fn manage(&mut self, to: Address, mail: Mail) {
        let id = self.addresses[&to];
        self.post(
            id,
            Duration::from_micros(1),
            HeadOrHost::Head(Event::Mail { from: Address::Manager, mail }),
        );
    }
    /// Calls the script back.
    pub fn alarm(&mut self, after: Duration, mark: u64) {
        self.push(self.now + after, Happening::Alarm { mark });
    }
    /// No drive has anything to do, and every machine of the head is at rest.
    pub fn at_rest(&self) -> Result<(), String> {
        if self.ops.iter().any(Option::is_some) {
            return Err("drives have operations under way".into());
        }
        for id in &self.heads {
            if let Body::Head(machine) = &self.actors[*id].body {
                machine.at_rest()?;
            }
        }
        Ok(())
    }
    /// A line of the story.
    pub fn say(&mut self, text: impl FnOnce() -> String) {
        if self.tell {
            if self.story.len() == 400 {
                self.story.pop_front();
            }
            let line = format!("{:>12.3} ms  {}", self.now.0 as f64 / 1e6, text());
            if self.trace {
                eprintln!("{line}");
            }
            self.story.push_back(line);
        }
    }

    /// The head is killed: its machines are gone, its connections break, and what it had asked of the
    /// drives lands or not. With `power`, the drives lose what they had not made durable.
    pub fn kill_head(&mut self, power: bool) {
        self.say(|| format!("the head is killed{}", if power { " by a power cut" } else { "" }));
        for i in 0..self.ops.len() {
            let Some(pending) = self.ops[i].take() else { continue };
            self.free_ops.push(i);
            // The data as it is when the machine goes: the kernel holds the memory and goes on (a kill),
            // or the drive hears of a part of it (a power cut).
            if pending.disk != usize::MAX {
                let tear = power || self.rng.chance(1, 2);
                let _ = self.carry(pending.disk, &pending.op, tear);
            }
        }
        if power {
            for disk in &mut self.disks {
                disk.power_cut(&mut self.rng);
            }
        }
        for id in self.heads.clone() {
            if power {
                self.cut_links_of(id);
            }
            self.actors[id].life += 1;
            self.actors[id].timer = None;
            let ends: Vec<(usize, usize)> = self
                .by_end
                .range((id, ConnectionId(0))..=(id, ConnectionId(u64::MAX)))
                .map(|(_, v)| *v)
                .collect();
            for (link, end) in ends {
                self.drop_end(link, end);
            }
        }
        self.drives.clear();
        self.closing.clear();
        self.opening.clear();
        self.listeners.clear();
        self.to_manager.clear();
    }

    fn cut_links_of(&mut self, id: ActorId) {
        let links: Vec<usize> = self
            .by_end
            .range((id, ConnectionId(0))..=(id, ConnectionId(u64::MAX)))
            .map(|(_, (link, _))| *link)
            .collect();
        for link in links {
            self.cut(link);
        }
    }
    /// A link breaks for both ends; bytes under way are lost.
    pub fn cut_one_link(&mut self) {
        let live: Vec<usize> = (0..self.links.len()).filter(|i| self.links[*i].is_some()).collect();
        if live.is_empty() {
            return;
        }
        let link = *self.rng.pick(&live);
        self.cut(link);
    }
    fn cut(&mut self, link: usize) {
        self.say(|| format!("link {link} is cut"));
        for to in 0..2 {
            if let Some(l) = &mut self.links[link] {
                (l.ways[to].inbox, l.ways[to].taken) = Default::default();
                l.ways[to].last = Instant(u64::MAX);
                self.push(self.now, Happening::Hangup { link, to });
            }
        }
    }

    /// Lets the next thing happen.
    pub fn step(&mut self) -> Step {
        if let Some(mail) = self.to_manager.pop_front() {
            return Step::ToManager(mail);
        }
        let Some(Reverse(entry)) = self.queue.pop() else { return Step::Quiet };
        self.now = self.now.max(entry.at);
        match entry.what {
            Happening::Event { actor, life, event } => {
                if self.actors[actor].life == life {
                    self.turn(actor, Some(event));
                }
            }
            Happening::Timer { actor, life, at } => {
                if self.actors[actor].life == life && self.actors[actor].timer == Some(at) {
                    self.actors[actor].timer = None;
                    self.timer(actor);
                }
            }
            Happening::Arrive { link, to, bytes } => {
                if let Some(l) = self.links[link].as_mut().filter(|l| l.ways[to].last < Instant(u64::MAX)) {
                    l.ways[to].inbox.push_back(bytes);
                    self.deliver(link, to);
                }
            }
            Happening::Hangup { link, to } => {
                if let Some(l) = &mut self.links[link] {
                    l.ways[to].ended = true;
                    self.deliver(link, to);
                }
            }
            Happening::DriveDone { op } => self.drive_done(op),
            Happening::Alarm { mark } => return Step::Alarm(mark),
        }
        Step::Happened
    }

    // ---- turns

    fn turn(&mut self, id: ActorId, event: Option<HeadOrHost>) {
        let now = self.now;
        if let Some(event) = &event {
            self.fold(id, event);
        }
        match &mut self.actors[id].body {
            Body::Head(m) => {
                let mut fx = core::mem::take(&mut self.head_fx);
                if let Some(HeadOrHost::Head(e)) = event {
                    m.on_event(now, e, &mut fx);
                }
                m.end_of_turn(now, &mut fx);
                self.head_fx = self.carry_out(id, fx, |w, id, to, mail| w.mail(id, to, mail));
            }
            Body::Host(m) => {
                let mut fx = core::mem::take(&mut self.host_fx);
                if let Some(HeadOrHost::Host(e)) = event {
                    m.on_event(now, e, &mut fx);
                }
                m.end_of_turn(now, &mut fx);
                self.host_fx = self.carry_out(id, fx, |_, _, _, ()| {});
            }
        }
        self.arm(id);
    }
    fn timer(&mut self, id: ActorId) {
        let now = self.now;
        self.say(|| format!("timer of actor {id}"));
        match &mut self.actors[id].body {
            Body::Head(m) => {
                let mut fx = core::mem::take(&mut self.head_fx);
                m.on_timer(now, &mut fx);
                m.end_of_turn(now, &mut fx);
                self.head_fx = self.carry_out(id, fx, |w, id, to, mail| w.mail(id, to, mail));
            }
            Body::Host(m) => {
                let mut fx = core::mem::take(&mut self.host_fx);
                m.on_timer(now, &mut fx);
                m.end_of_turn(now, &mut fx);
                self.host_fx = self.carry_out(id, fx, |_, _, _, ()| {});
            }
        }
        self.arm(id);
    }
    fn arm(&mut self, id: ActorId) {
        let actor = &self.actors[id];
        let next = match &actor.body {
            Body::Head(m) => m.next_deadline(),
            Body::Host(m) => m.next_deadline(),
        };
        if let Some(at) = next.map(|at| at.max(self.now))
            && actor.timer.is_none_or(|t| at < t)
        {
            let life = actor.life;
            self.actors[id].timer = Some(at);
            self.push(at, Happening::Timer { actor: id, life, at });
        }
    }
    fn fold(&mut self, id: ActorId, event: &HeadOrHost) {
        let mut h = self.hash;
        let mut add = |x: u64| h = (h ^ x).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        add(id as u64);
        add(self.now.0);
        match event {
            HeadOrHost::Head(e) => add(kind_of(e)),
            HeadOrHost::Host(e) => add(kind_of(e)),
        }
        self.hash = h;
        if self.tell {
            let text = match event {
                HeadOrHost::Head(e) => format!("head actor {id}: {e:?}"),
                HeadOrHost::Host(e) => format!("host actor {id}: {e:?}"),
            };
            self.say(|| text.chars().take(3000).collect());
        }
    }

    fn carry_out<M>(
        &mut self,
        id: ActorId,
        mut fx: Effects<M>,
        mut mail: impl FnMut(&mut Self, ActorId, Address, M),
    ) -> Effects<M> {
        let life = self.actors[id].life;
        for effect in fx.drain(..) {
            match effect {
                Effect::Receive { connection, into } => self.receive(id, connection, into),
                Effect::Recycle { data } => {
                    let piece = STAGING_PIECE;
                    self.actors[id].staging.push(Slice::new(data.at, piece));
                    for link in core::mem::take(&mut self.actors[id].starved) {
                        self.deliver(link, 0);
                        self.deliver(link, 1);
                    }
                }
                Effect::Send { connection } => self.send(id, connection),
                Effect::Close { connection } => self.close(id, connection),
                Effect::Connect { connection, peer } => self.connect(id, connection, peer),
                Effect::Listen { portal, address } => {
                    self.listeners.insert(portal, address);
                    self.tell_head(id, Event::Listening { portal, result: Ok(address) });
                }
                Effect::Unlisten { portal } => {
                    self.listeners.remove(&portal);
                }
                Effect::Drive(op) => self.drive(id, life, op),
                Effect::OpenDrive { token, drive, spec } => {
                    match self.disks.iter().position(|d| d.spec == spec) {
                        Some(disk) => {
                            self.opening.push((id, life, token, drive, disk));
                            self.open_waiting();
                        }
                        None => {
                            let result = Err(format!("there is no drive {spec}").into());
                            self.tell_head(id, Event::DriveOpened { token, result });
                        }
                    }
                }
                Effect::CloseDrive { drive } => {
                    if let Some(disk) = self.drives.remove(&drive) {
                        self.closing.push((drive, disk));
                    }
                    self.close_waiting(id);
                }
                Effect::InspectDrive { token, drive } => {
                    let disk = self.drives.get(&drive).map(|disk| &self.disks[*disk]);
                    let result = match disk.filter(|d| !d.faults.gone) {
                        Some(d) => Ok(DriveHealth { bytes: d.bytes, free_bytes: None }),
                        None => Err(DriveError::Gone),
                    };
                    self.tell_head(id, Event::DriveInspected { token, result });
                }
                Effect::ShapeDrive { drive, shape } => self.shape(drive, &shape),
                Effect::State { token, op } => {
                    let result = self.state_op(op);
                    self.tell_head(id, Event::State { token, result });
                }
                Effect::Mail { to, mail: letter } => mail(self, id, to, letter),
            }
        }
        fx
    }

    fn mail(&mut self, from: ActorId, to: Address, mail: Mail) {
        if to == Address::Manager {
            self.to_manager.push_back(mail);
            return;
        }
        let sender = *self.addresses.iter().find(|(_, id)| **id == from).expect("heads have addresses").0;
        let Some(&id) = self.addresses.get(&to) else { return };
        // Mail of one pair stays in order: the delay is the same for all.
        self.post(id, Duration::from_micros(3), HeadOrHost::Head(Event::Mail { from: sender, mail }));
    }
    fn tell_head(&mut self, id: ActorId, event: Event<Mail>) {
        let delay = Duration::from_micros(1 + self.rng.below(20));
        self.post(id, delay, HeadOrHost::Head(event));
    }
    fn tell_either(
        &mut self,
        id: ActorId,
        delay_us: u64,
        head: impl FnOnce() -> Event<Mail>,
        host: impl FnOnce() -> Event<()>,
    ) {
        let event = match self.actors[id].body {
            Body::Head(_) => HeadOrHost::Head(head()),
            Body::Host(_) => HeadOrHost::Host(host()),
        };
        self.post(id, Duration::from_micros(delay_us), event);
    }
    fn post(&mut self, actor: ActorId, delay: Duration, event: HeadOrHost) {
        let life = self.actors[actor].life;
        self.push(self.now + delay, Happening::Event { actor, life, event });
    }
    fn push(&mut self, at: Instant, what: Happening) {
        self.seq += 1;
        self.queue.push(Reverse(Entry { at, seq: self.seq, what }));
    }

    // ---- links

    fn connect(&mut self, host: ActorId, id: ConnectionId, peer: SocketAddr) {
        let portal = self.listeners.iter().find(|(_, a)| a.port() == peer.port()).map(|(p, a)| (*p, *a));
        let shards: Vec<ActorId> = self
            .addresses
            .iter()
            .filter(|(a, _)| matches!(a, Address::Shard(_)))
            .map(|(_, id)| *id)
            .collect();
        let Some((portal, local)) = portal else {
            let failed = || Event::Connected { connection: id, result: Err(NetError::Refused) };
            let host_failed = || Event::Connected { connection: id, result: Err(NetError::Refused) };
            self.tell_either(host, 30, failed, host_failed);
            return;
        };
        let shard = *self.rng.pick(&shards);
        self.accepts += 1;
        let theirs = ConnectionId::new((self.accepts % 4096) as u32, (self.accepts / 4096) as u32);
        let end = |actor, id| End { actor, id, open: true };
        let link = Link { ends: [end(host, id), end(shard, theirs)], ways: [Way::default(), Way::default()] };
        let index = match self.free_links.pop() {
            Some(i) => {
                self.links[i] = Some(link);
                i
            }
            None => {
                self.links.push(Some(link));
                self.links.len() - 1
            }
        };
        self.by_end.insert((host, id), (index, 0));
        self.by_end.insert((shard, theirs), (index, 1));
        let from = SocketAddr::from((
            Ipv4Addr::new(10, 0, 0, (host % 250) as u8 + 1),
            40000 + (self.accepts % 20000) as u16,
        ));
        self.tell_head(shard, Event::Accepted { connection: theirs, portal, local, peer: from });
        let ok = || Event::Connected { connection: id, result: Ok(()) };
        let host_ok = || Event::Connected { connection: id, result: Ok(()) };
        self.tell_either(host, 30, ok, host_ok);
    }
    fn receive(&mut self, id: ActorId, connection: ConnectionId, into: Option<Slice>) {
        let Some(&(link, end)) = self.by_end.get(&(id, connection)) else { return };
        let way = &mut self.links[link].as_mut().expect("ends lead to links").ways[end];
        assert!(way.receive.is_none(), "two receives of one connection are under way");
        way.receive = Some(into);
        self.deliver(link, end);
    }
    /// Gives the receiver what is there, or tells it that the other end is gone.
    fn deliver(&mut self, link: usize, to: usize) {
        let Some(l) = &mut self.links[link] else { return };
        let end = l.ends[to];
        if !end.open {
            return;
        }
        let way = &mut l.ways[to];
        if way.inbox.is_empty() {
            if way.ended && !way.told {
                way.told = true;
                let connection = end.id;
                self.tell_either(
                    end.actor,
                    1,
                    || Event::Broken { connection },
                    || Event::Broken { connection },
                );
            }
            return;
        }
        let Some(into) = way.receive else { return };
        let place = match into {
            Some(slice) => slice,
            None => match self.actors[end.actor].staging.pop() {
                Some(piece) => piece,
                None => {
                    self.actors[end.actor].starved.push(link);
                    return;
                }
            },
        };
        way.receive = None;
        let mut filled = 0;
        self.actors[end.actor].dma(place, &mut |memory| filled = way.take(memory));
        assert!(filled > 0, "a receive gets at least a byte");
        let data = place.head(filled as u32);
        let connection = end.id;
        let (head, host) = (|| Event::Received { connection, data }, || Event::Received { connection, data });
        self.tell_either(end.actor, 1, head, host);
    }
    fn send(&mut self, id: ActorId, connection: ConnectionId) {
        let Some(&(link, end)) = self.by_end.get(&(id, connection)) else { return };
        let mut segments = core::mem::take(&mut self.segments);
        segments.clear();
        match &self.actors[id].body {
            Body::Head(m) => m.segments(connection, 1024, &mut segments),
            Body::Host(m) => m.segments(connection, 1024, &mut segments),
        }
        let total: u64 = segments.iter().map(|s| u64::from(s.len)).sum();
        assert!(total > 0, "a send of nothing");
        let split = self.rng.chance(self.kindness.split_permille, 1000);
        let taken = if split { self.rng.between(1, total) } else { total };
        let mut bytes = Vec::with_capacity(taken as usize);
        for s in &segments {
            let n = u64::from(s.len).min(taken - bytes.len() as u64) as u32;
            if n > 0 {
                self.actors[id].dma(s.head(n), &mut |piece| bytes.extend_from_slice(piece));
            }
        }
        self.segments = segments;
        let bytes_sent = taken as u32;
        let delay = Duration::from_micros(1 + self.rng.below(self.kindness.link_us));
        let l = self.links[link].as_mut().expect("ends lead to links");
        let way = &mut l.ways[1 - end];
        if way.last < Instant(u64::MAX) {
            let at = (self.now + delay).max(way.last);
            way.last = at;
            self.push(at, Happening::Arrive { link, to: 1 - end, bytes });
        }
        let sent = || Event::Sent { connection, bytes: bytes_sent };
        let host_sent = || Event::Sent { connection, bytes: bytes_sent };
        let late = 1 + self.rng.below(10);
        self.tell_either(id, late, sent, host_sent);
    }
    fn close(&mut self, id: ActorId, connection: ConnectionId) {
        if let Some(&(link, end)) = self.by_end.get(&(id, connection)) {
            self.drop_end(link, end);
        }
        // Late enough for the `Sent` of a send under way.
        self.tell_either(id, 15, || Event::Closed { connection }, || Event::Closed { connection });
    }
    fn drop_end(&mut self, link: usize, end: usize) {
        let l = self.links[link].as_mut().expect("ends lead to links");
        l.ends[end].open = false;
        self.by_end.remove(&(l.ends[end].actor, l.ends[end].id));
        if l.ends[1 - end].open {
            let at = if l.ways[1 - end].last == Instant(u64::MAX) {
                self.now
            } else {
                l.ways[1 - end].last.max(self.now)
            };
            self.push(at + Duration::from_micros(1), Happening::Hangup { link, to: 1 - end });
        } else {
            self.links[link] = None;
            // The number is not used again in this run: late happenings may still name it.
        }
    }
    // ---- drives

    fn drive(&mut self, actor: ActorId, life: u32, op: DriveOp) {
        let disk = self.drives.get(&op.drive).copied();
        let pending = PendingOp { actor, life, disk: disk.unwrap_or(usize::MAX), op };
        let index = match self.free_ops.pop() {
            Some(i) => {
                self.ops[i] = Some(pending);
                i
            }
            None => {
                self.ops.push(Some(pending));
                self.ops.len() - 1
            }
        };
        let at = self.now + Duration::from_micros(5 + self.rng.below(self.kindness.drive_us));
        self.push(at, Happening::DriveDone { op: index });
    }
    /// A drive does an operation, or part of it (`tear`), on memory as it is now.
    fn carry(&mut self, disk: usize, op: &DriveOp, tear: bool) -> Result<(), DriveError> {
        let Self { actors, heads, disks, rng, .. } = self;
        let disk = &mut disks[disk];
        let mut result = Ok(());
        let mut land = |data: &[u8], out: &mut [u8]| {
            let op = DiskOp { kind: op.kind, at: op.at, len: op.len, data, fua: op.fua };
            if tear {
                disk.tear(&op, rng);
            } else {
                result = disk.complete(&op, out, rng);
            }
        };
        // Memory of any machine of the head: drives work for peers too.
        let found = match op.kind {
            DriveOpKind::Read => {
                heads.iter().any(|id| actors[*id].try_dma(op.data, &mut |out| land(&[], out)))
            }
            DriveOpKind::Write => {
                heads.iter().any(|id| actors[*id].try_dma(op.data, &mut |data| land(data, &mut [])))
            }
            DriveOpKind::WriteZeroes | DriveOpKind::Deallocate | DriveOpKind::Flush => {
                land(&[], &mut []);
                true
            }
        };
        assert!(found, "drives work on memory of heads");
        result
    }
    fn drive_done(&mut self, index: usize) {
        let Some(pending) = self.ops[index].take() else { return };
        if pending.disk != usize::MAX && self.disks[pending.disk].faults.hang {
            // It looks again later: hung operations complete when the drive comes back.
            let at = self.now + Duration::from_millis(20);
            self.ops[index] = Some(pending);
            self.push(at, Happening::DriveDone { op: index });
            return;
        }
        self.free_ops.push(index);
        let PendingOp { actor, life, disk, op } = pending;
        let result = if disk == usize::MAX { Err(DriveError::Gone) } else { self.carry(disk, &op, false) };
        if self.actors[actor].life == life {
            let event = HeadOrHost::Head(Event::DriveDone { token: op.token, result });
            self.post(actor, Duration::from_nanos(1), event);
        }
        self.open_waiting();
        let steward = self.addresses.get(&Address::Steward).copied();
        if let Some(id) = steward {
            self.close_waiting(id);
        }
    }
    fn busy(&self, disk: usize) -> bool {
        self.ops.iter().flatten().any(|p| p.disk == disk)
    }
    fn close_waiting(&mut self, id: ActorId) {
        let waiting = core::mem::take(&mut self.closing);
        for (drive, disk) in waiting {
            if self.busy(disk) {
                self.closing.push((drive, disk));
            } else {
                self.tell_head(id, Event::DriveClosed { drive });
            }
        }
    }
    fn open_waiting(&mut self) {
        let waiting = core::mem::take(&mut self.opening);
        for (actor, life, token, drive, disk) in waiting {
            // An exclusive claim: operations of an earlier life still hold the drive.
            let held =
                self.drives.values().any(|d| *d == disk) || self.closing.iter().any(|(_, d)| *d == disk);
            if self.busy(disk) && !held {
                self.opening.push((actor, life, token, drive, disk));
                continue;
            }
            let d = &self.disks[disk];
            let result = if held {
                Err(OpenError { held: true, words: format!("{} is in use", d.spec) })
            } else if d.faults.gone {
                Err(format!("{} is not there", d.spec).into())
            } else {
                Ok(d.info())
            };
            if result.is_ok() {
                self.drives.insert(drive, disk);
            }
            if self.actors[actor].life == life {
                self.tell_head(actor, Event::DriveOpened { token, result });
            }
        }
    }
    fn shape(&mut self, drive: DriveId, shape: &Shape) {
        if let Some(disk) = self.drives.get(&drive) {
            let faults = &mut self.disks[*disk].faults;
            faults.hang = shape.hang;
            faults.gone = shape.gone;
            faults.read_errors_ppm = shape.read_errors_ppm;
            faults.write_errors_ppm = shape.write_errors_ppm;
        }
    }

    // ---- the state directory

    fn state_op(&mut self, op: StateOp) -> Result<Vec<u8>, StateError> {
        match op {
            StateOp::Read { name } => self.state.get(&name).cloned().ok_or(StateError::Missing),
            StateOp::Write { name, contents } => {
                self.state.insert(name, contents);
                Ok(vec![])
            }
            StateOp::Append { name, contents, bytes_max } => {
                let file = self.state.entry(name).or_default();
                file.extend(contents);
                if file.len() as u64 > bytes_max {
                    let half = file.len() / 2;
                    file.drain(..half);
                }
                Ok(vec![])
            }
            StateOp::Remove { name } => {
                self.state.remove(&name);
                Ok(vec![])
            }
            StateOp::List => Ok(self.state.keys().map(|k| format!("{k}\n")).collect::<String>().into_bytes()),
            StateOp::Candidates => {
                Ok(self.disks.iter().map(|d| format!("{}\n", d.spec)).collect::<String>().into_bytes())
            }
            StateOp::Clock => Ok(format!("{}", 1_800_000_000 + self.now.0 / 1_000_000_000).into_bytes()),
        }
    }
}

/// Bytes of a staging buffer.
pub const STAGING_PIECE: u32 = 16 << 10;

fn actor(body: Body, life: u32, staging: Slice) -> Actor {
    let pieces = staging.len / STAGING_PIECE;
    let staging = (0..pieces).rev().map(|i| staging.part(i * STAGING_PIECE, STAGING_PIECE)).collect();
    Actor { body, life, timer: None, staging, starved: vec![] }
}

fn kind_of<M>(event: &Event<M>) -> u64 {
    match event {
        Event::Accepted { connection, .. } => 1 << 56 ^ connection.0,
        Event::Connected { connection, result } => 2 << 56 ^ connection.0 ^ u64::from(result.is_ok()) << 40,
        Event::Received { connection, data } => 3 << 56 ^ connection.0 ^ u64::from(data.len) << 32,
        Event::Sent { connection, bytes } => 4 << 56 ^ connection.0 ^ u64::from(*bytes) << 32,
        Event::Broken { connection } => 5 << 56 ^ connection.0,
        Event::Closed { connection } => 6 << 56 ^ connection.0,
        Event::DriveDone { token, result } => 7 << 56 ^ token.0 ^ u64::from(result.is_ok()) << 40,
        Event::DriveOpened { token, .. } => 8 << 56 ^ token.0,
        Event::DriveInspected { token, result } => 13 << 56 ^ token.0 ^ u64::from(result.is_ok()) << 40,
        Event::DriveClosed { drive } => 9 << 56 ^ u64::from(drive.0),
        Event::Listening { portal, .. } => 10 << 56 ^ u64::from(portal.0),
        Event::State { token, .. } => 11 << 56 ^ token.0,
        Event::Mail { .. } => 12 << 56,
    }
}
