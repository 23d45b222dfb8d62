//! The simulated world: one thread, virtual time, one seed.
//!
//! It carries out the effects of a head's machines and of hosts. Everything that happens is one entry of
//! a queue ordered by time and by the order in which it was asked for, so that the same seed gives the
//! same run. Every event goes into a hash that proves it. Links, drives and the state directory have
//! files of their own; this file has time, turns, lives, and the log.

mod actor;
pub mod books;
mod directories;
mod drive_checker;
mod drives;
mod fences;
mod heads;
mod links;
mod peers;
mod server;
mod state;
mod tally;
mod told;

pub use drive_checker::Image;
pub use server::{Clock, Pause, Refusal, Server};
pub use tally::{Table, Tally, Wrong};

pub use actor::{ActorId, Books, HeadMachine, HostMachine, STAGING_PIECE};

use crate::disk::Disk;
use actor::{Actor, Body, HeadOrHost, kind_of};
use base::{Address, Duration, Effect, Effects, Event, Instant, NetError, Prng, Slice};
use core::cmp::Reverse;
use drive_checker::DriveChecker;
use drives::Drives;
use fences::Fences;
use head::layout::ArrayId;
use head::mail::{Mail, ManagerMail};
use head::steward::state::State;
use head::steward::state::journal::JournalEntry;
use links::Links;
use peers::{PeerHappening, Peers};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use told::Told;

/// What a look at the state directory takes.
const LOOK_TIME: Duration = Duration::from_micros(10);
/// Lines of a story.
const STORY_LINES: usize = 400;

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
    Cut {
        link: usize,
    },
    DriveDone {
        op: usize,
        nth: u64,
    },
    /// An operation leaves its server's kernel.
    DriveArrives {
        op: usize,
        nth: u64,
    },
    /// Something about a network of the link.
    Peer {
        path: usize,
        what: PeerHappening,
    },
    /// A drive that was not opened at once may be now.
    OpenAgain,
    /// A fence goes on, or its time is over.
    Fence {
        nth: u64,
    },
    /// For the script that drives the world.
    Alarm {
        mark: u64,
    },
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

/// How the world delivers operations, bytes and mail: the delays, chosen per seed.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Longest delay of a drive operation, microseconds.
    pub drive_us: u64,
    /// Longest delay of bytes on a link, microseconds.
    pub link_us: u64,
    /// Longest delay of mail between machines of the head, microseconds.
    pub mail_us: u64,
    /// Sends are cut into pieces, so many times in a thousand.
    pub split_permille: u64,
    /// Longest time that a file of the state directory takes to become durable, microseconds; 0: next to none.
    pub state_us: u64,
    /// Of 1000 operations, those that lie at their drive for long; and fences that begin late. Where two heads share drives.
    pub late_permille: u64,
}

impl Default for Delivery {
    fn default() -> Self {
        Self { drive_us: 200, link_us: 50, mail_us: 3, split_permille: 100, state_us: 0, late_permille: 0 }
    }
}

/// How a life of the head ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// The process is killed; the kernel finishes what it has taken.
    Killed,
    /// The power goes, for the head and its drives.
    PowerCut,
}

/// A head falls before it has carried out so many more effects.
struct Doom {
    /// Effects of this machine alone.
    machine: Option<ActorId>,
    effects: u32,
    crash: Crash,
}

/// What a step of the world reports to its script.
#[derive(Debug)]
pub enum Step {
    /// Something happened.
    Happened,
    /// An alarm of the script's.
    Alarm(u64),
    /// Mail for the manager.
    ToManager {
        /// The manager of the head of this server.
        server: usize,
        /// The letter.
        mail: ManagerMail,
    },
    /// The life of the head of this server has ended, as `doom` said.
    Fell {
        /// Whose.
        server: usize,
        /// How.
        crash: Crash,
    },
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
    host_turns: u64,
    /// Servers, each with one head: one, or two that reach the same drives.
    pub servers: Vec<Server>,
    /// Machines of all heads.
    heads: Vec<ActorId>,
    links: Links,
    peers: Peers,
    /// The drives.
    pub disks: Vec<Disk>,
    drives: Drives,
    fences: Fences,
    drive_checker: DriveChecker,
    told: Told,
    to_manager: VecDeque<(usize, ManagerMail)>,
    /// When the last letter from one machine to another arrives.
    mailed: BTreeMap<(ActorId, ActorId), Instant>,
    /// Hosts whose last connection the head has closed, since the last call.
    cut_off: Vec<ActorId>,
    fell: Option<(usize, Crash)>,
    /// How kind it is.
    pub delivery: Delivery,
    /// What went wrong, and made a difference.
    pub tally: Tally,
    segments: Vec<Slice>,
    /// Room for the effects of a turn, kept.
    head_fx: Effects<Mail>,
    host_fx: Effects<()>,
    /// The last events, for a readable story.
    pub story: VecDeque<String>,
    /// Where two servers share drives: addresses of portals go to the last listener, and hosts of the other one get an event.
    /// Else they stay connected with whom they were.
    pub addresses_move: bool,
    /// Keep a story (slow).
    pub log: bool,
    /// Tell it on standard error, too.
    pub trace: bool,
}

impl World {
    /// An empty world.
    pub fn new(seed: u64, delivery: Delivery) -> Self {
        Self {
            now: Instant(1_000_000_000),
            seq: 0,
            rng: Prng::new(seed),
            hash: 0xcbf2_9ce4_8422_2325,
            queue: BinaryHeap::new(),
            actors: vec![],
            host_turns: 0,
            servers: vec![Server::new(seed)],
            heads: vec![],
            links: Links::default(),
            peers: Peers::default(),
            disks: vec![],
            drives: Drives::default(),
            fences: Fences::default(),
            drive_checker: DriveChecker::default(),
            told: Told::default(),
            to_manager: VecDeque::new(),
            mailed: BTreeMap::new(),
            cut_off: vec![],
            fell: None,
            delivery,
            tally: Tally::default(),
            segments: vec![],
            head_fx: vec![],
            host_fx: vec![],
            story: VecDeque::new(),
            addresses_move: false,
            log: false,
            trace: false,
        }
    }
    /// Virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// How many turns hosts have had: they see and do nothing without one.
    pub fn host_turns(&self) -> u64 {
        self.host_turns
    }
    /// The hash of everything that happened.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Adds or replaces a machine of a server's head. Its staging buffers lie in `staging`, cut into pieces.
    pub fn put_head(
        &mut self,
        server: usize,
        address: Address,
        machine: Box<dyn HeadMachine>,
        staging: Slice,
    ) -> ActorId {
        let body = Body::Head(machine);
        let place = Some((server, address));
        self.servers[server].runs = true;
        match self.servers[server].addresses.get(&address) {
            Some(&id) => {
                let life = self.actors[id].life + 1;
                self.actors[id] = Actor::new(body, life, staging, place);
                id
            }
            None => {
                self.actors.push(Actor::new(body, 0, staging, place));
                self.servers[server].addresses.insert(address, self.actors.len() - 1);
                self.heads.push(self.actors.len() - 1);
                self.actors.len() - 1
            }
        }
    }
    /// Which of the actors a machine of a server's head is.
    pub fn actor_of(&self, server: usize, address: Address) -> ActorId {
        self.servers[server].addresses[&address]
    }
    /// Adds a host.
    pub fn put_host(&mut self, machine: Box<dyn HostMachine>, staging: Slice) -> ActorId {
        self.actors.push(Actor::new(Body::Host(machine), 0, staging, None));
        self.actors.len() - 1
    }
    /// Gives a machine a turn without an event, so that it may begin.
    pub fn nudge(&mut self, id: ActorId) {
        self.turn(id, Turn::Nudge);
    }
    /// Mail from the manager of a server.
    pub fn manage(&mut self, server: usize, to: Address, mail: impl Into<Mail>) {
        let id = self.actor_of(server, to);
        self.post(
            id,
            Duration::from_micros(1),
            HeadOrHost::Head(Event::Mail { from: Address::Manager, mail: mail.into() }),
        );
    }
    /// Calls the script back.
    pub fn alarm(&mut self, after: Duration, mark: u64) {
        self.push(self.now + after, Happening::Alarm { mark });
    }
    /// No drive has anything to do, and every machine of the head is at rest.
    pub fn at_rest(&self) -> Result<(), String> {
        if !self.drives.idle() {
            return Err("drives have operations under way".into());
        }
        self.heads_at_rest(|_| true)
    }
    /// Machines of the heads of these servers are at rest.
    pub fn heads_at_rest(&self, servers: impl Fn(usize) -> bool) -> Result<(), String> {
        let mut all = (0..self.servers.len()).filter(|server| servers(*server));
        all.try_for_each(|server| self.machines_at_rest(server, |_| true))
    }
    /// Shards of a server's head are at rest, if a process of it runs.
    pub fn shards_at_rest(&self, server: usize) -> Result<(), String> {
        if !self.runs(server) {
            return Ok(());
        }
        self.machines_at_rest(server, |address| matches!(address, Address::Shard(_)))
    }
    fn machines_at_rest(&self, server: usize, which: impl Fn(&Address) -> bool) -> Result<(), String> {
        for (address, id) in self.servers[server].addresses.iter().filter(|(address, _)| which(address)) {
            if let Body::Head(machine) = &self.actors[*id].body {
                machine.at_rest().map_err(|why| format!("server {server}, {address:?}: {why}"))?;
            }
        }
        Ok(())
    }
    /// Whether legs of an array may differ at a byte of it, since a crash: as far as whoever owns it knows.
    pub fn is_unclean(&self, array: ArrayId, at: u64) -> bool {
        let lives = |id: &&ActorId| self.server_of(**id).is_some_and(|s| self.servers[s].runs);
        self.heads.iter().filter(lives).any(|id| match &self.actors[*id].body {
            Body::Head(machine) => machine.is_unclean(array, at),
            Body::Host(_) => false,
        })
    }
    /// What the Steward of a server has decided since the last call.
    pub fn journal(&mut self, server: usize) -> Vec<JournalEntry> {
        let id = self.servers[server].addresses.get(&Address::Steward);
        match id.map(|id| &mut self.actors[*id].body) {
            Some(Body::Head(machine)) => machine.journal(),
            Some(Body::Host(_)) | None => vec![],
        }
    }
    /// All that it has decided.
    pub fn decided(&self, server: usize) -> Option<std::cell::Ref<'_, State>> {
        match &self.actors[*self.servers[server].addresses.get(&Address::Steward)?].body {
            Body::Head(machine) => machine.decided(),
            Body::Host(_) => None,
        }
    }
    /// A line of the story.
    pub fn say(&mut self, text: impl FnOnce() -> String) {
        if self.log {
            if self.story.len() == STORY_LINES {
                self.story.pop_front();
            }
            let line = format!("{:>12.3} ms  {}", self.now.0 as f64 / 1e6, text());
            if self.trace {
                eprintln!("{line}");
            }
            self.story.push_back(line);
        }
    }

    // ---- lives

    /// The life of a server's head ends before it carries out the effect after `effects` more: in the middle of a
    /// turn, as a rule. `Step::Fell` says when. Effects of all its machines count, or of one. Of several ends each
    /// begins to count when the one before it has come: the later ones are of later lives.
    pub fn doom(&mut self, server: usize, machine: Option<Address>, effects: u32, crash: Crash) {
        let machine = machine.map(|address| self.actor_of(server, address));
        self.servers[server].dooms.push_back(Doom { machine, effects, crash });
    }
    /// How many ends are still to come for the head of a server.
    pub fn dooms(&self, server: usize) -> usize {
        self.servers[server].dooms.len()
    }
    /// Nobody falls who has not yet.
    pub fn spare(&mut self) {
        self.servers.iter_mut().for_each(|s| s.dooms.clear());
    }
    /// The head of a server is gone: its machines, its connections, its claims. After a kill, what it had asked of
    /// drives lands. After a power cut any part of it does, and drives of one server alone lose what they had not made
    /// durable. Drives that servers share are elsewhere, and keep their power: what had not come to them is nowhere.
    pub fn fall(&mut self, server: usize, crash: Crash) {
        self.say(|| format!("the head of server {server} falls: {crash:?}"));
        let power = crash == Crash::PowerCut;
        let what = if power { Wrong::PowerCut } else { Wrong::Kill };
        self.tally.make(what);
        if !self.has_no_ops(server) {
            self.tally.meet(what);
        }
        let drives_too = power && !self.is_shared();
        match crash {
            Crash::Killed => self.orphan_ops(server),
            Crash::PowerCut if drives_too => self.tear_ops(),
            Crash::PowerCut => self.drop_ops_of(server),
        }
        self.checker_fell(server, drives_too);
        self.head_ends(server, crash);
        self.peer_falls(server, power);
        self.servers[server].powered &= !power;
        self.goes_on(server);
    }
    /// The drives lose their power, when no server has any.
    pub fn drives_fall(&mut self) {
        self.say(|| "the drives lose their power".into());
        self.tear_ops();
        self.checker_lost_power();
    }
    fn head_ends(&mut self, server: usize, crash: Crash) {
        self.state_fell(server, crash == Crash::PowerCut);
        for id in self.machines_of(server) {
            if crash == Crash::PowerCut && self.is_shared() {
                self.silence_links_of(id);
            } else if crash == Crash::PowerCut {
                self.cut_links_of(id);
            }
            self.actors[id].life += 1;
            self.actors[id].timer = None;
            self.drop_ends_of(id);
        }
        self.keep_remains(server);
        self.told.falls(server, &self.machines_of(server));
        self.nobody_listens(server);
        self.to_manager.retain(|(of, _)| *of != server);
        self.servers[server].runs = false;
    }

    /// Lets the next thing happen.
    pub fn step(&mut self) -> Step {
        if let Some((server, mail)) = self.to_manager.pop_front() {
            return Step::ToManager { server, mail };
        }
        let Some(Reverse(entry)) = self.queue.pop() else { return Step::Quiet };
        self.now = self.now.max(entry.at);
        let Some(entry) = self.unless_paused(entry) else { return Step::Happened };
        match entry.what {
            Happening::Event { actor, life, event } => {
                if self.actors[actor].life == life {
                    if let (HeadOrHost::Head(Event::State { token, .. }), Some(server)) =
                        (&event, self.server_of(actor))
                    {
                        self.state_answered(server, *token);
                    }
                    self.fold(actor, &event);
                    self.turn(actor, Turn::Event(event));
                }
            }
            Happening::Timer { actor, life, at } => {
                if self.actors[actor].life == life && self.actors[actor].timer == Some(at) {
                    self.actors[actor].timer = None;
                    self.say(|| format!("timer of actor {actor}"));
                    self.turn(actor, Turn::Timer);
                }
            }
            Happening::Arrive { link, to, bytes } => self.arrive(link, to, bytes),
            Happening::Hangup { link, to } => self.hang_up(link, to),
            Happening::Cut { link } => self.break_link(link),
            Happening::DriveDone { op, nth } => self.drive_done(op, nth),
            Happening::DriveArrives { op, nth } => self.drive_arrives(op, nth),
            Happening::Peer { path, what } => self.peer_happens(path, what),
            Happening::OpenAgain => self.open_again(),
            Happening::Fence { nth } => self.fence_goes_on(nth),
            Happening::Alarm { mark } => return Step::Alarm(mark),
        }
        match self.fell.take() {
            Some((server, crash)) => {
                self.fall(server, crash);
                Step::Fell { server, crash }
            }
            None => Step::Happened,
        }
    }
    /// What is for a server that stands still happens when that is over.
    fn unless_paused(&mut self, entry: Entry) -> Option<Entry> {
        if !self.is_shared() {
            return Some(entry);
        }
        let until = match &entry.what {
            Happening::Event { actor, .. } | Happening::Timer { actor, .. } => {
                self.server_of(*actor).and_then(|s| self.is_standing(s, *actor))
            }
            Happening::DriveArrives { op, nth } => {
                let pause = self.server_of_op(*op, *nth).and_then(|s| self.is_paused(s));
                pause.filter(|p| p.kernel).map(|p| (p.until, Wrong::Pause))
            }
            _ => None,
        };
        match until {
            Some((until, what)) => {
                self.tally.meet(what);
                self.push(until, entry.what);
                None
            }
            None => Some(entry),
        }
    }

    // ---- turns

    fn turn(&mut self, id: ActorId, turn: Turn) {
        let now = self.now_of(id);
        match &mut self.actors[id].body {
            Body::Head(m) => {
                let mut fx = core::mem::take(&mut self.head_fx);
                match turn {
                    Turn::Event(HeadOrHost::Head(e)) => m.on_event(now, e, &mut fx),
                    Turn::Timer => m.on_timer(now, &mut fx),
                    Turn::Event(HeadOrHost::Host(_)) | Turn::Nudge => {}
                }
                m.end_of_turn(now, &mut fx);
                let leads = m.leads();
                self.checker_hears(id, leads);
                self.head_fx = self.carry_out(id, fx, |w, id, to, mail| w.mail(id, to, mail));
                self.steward_has_moved(id);
            }
            Body::Host(m) => {
                self.host_turns += 1;
                let mut fx = core::mem::take(&mut self.host_fx);
                match turn {
                    Turn::Event(HeadOrHost::Host(e)) => m.on_event(now, e, &mut fx),
                    Turn::Timer => m.on_timer(now, &mut fx),
                    Turn::Event(HeadOrHost::Head(_)) | Turn::Nudge => {}
                }
                m.end_of_turn(now, &mut fx);
                self.host_fx = self.carry_out(id, fx, |_, _, _, ()| {});
            }
        }
        self.arm(id);
    }
    fn arm(&mut self, id: ActorId) {
        let actor = &self.actors[id];
        let clock = actor.server.map(|s| self.servers[s].clock).unwrap_or_default();
        if let Some(at) = actor.next_deadline().map(|at| clock.when(at).max(self.now))
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
        if self.log {
            let text = match event {
                HeadOrHost::Head(e) => format!("head actor {id}: {e:?}"),
                HeadOrHost::Host(e) => format!("host actor {id}: {e:?}"),
            };
            self.say(|| text.chars().take(3000).collect());
        }
    }
    /// Whether the head falls before its next effect.
    fn falls(&mut self, id: ActorId) -> bool {
        if self.fell.is_some() || !matches!(self.actors[id].body, Body::Head(_)) {
            return false;
        }
        let Some(server) = self.server_of(id) else { return false };
        let dooms = &mut self.servers[server].dooms;
        let counts = |d: &&mut Doom| d.machine.is_none_or(|m| m == id);
        let Some(doom) = dooms.front_mut().filter(counts) else { return false };
        if doom.effects > 0 {
            doom.effects -= 1;
            return false;
        }
        self.fell = Some((server, doom.crash));
        dooms.pop_front();
        true
    }

    fn carry_out<M>(
        &mut self,
        id: ActorId,
        mut fx: Effects<M>,
        mut mail: impl FnMut(&mut Self, ActorId, Address, M),
    ) -> Effects<M> {
        for effect in fx.drain(..) {
            if self.falls(id) {
                break;
            }
            match effect {
                Effect::Receive { connection, into, most, .. } => self.receive(id, connection, into, most),
                Effect::Recycle { data } => {
                    self.actors[id].staging.push(Slice::new(data.at, STAGING_PIECE));
                    self.deliver_starved(id);
                }
                Effect::Send { connection } => self.send(id, connection),
                Effect::Close { connection } => self.close(id, connection),
                Effect::Connect { connection, peer } => self.connect(id, connection, peer),
                Effect::Listen { portal, address } => {
                    // Addresses of the system are not those of a head that begins alone.
                    let there = self.server_of(id).is_none_or(|s| self.servers[s].linked);
                    if there {
                        self.listen(id, portal, address);
                    }
                    let result = if there { Ok(address) } else { Err(NetError::NoAddress) };
                    self.send_to_head(id, Event::Listening { portal, result });
                }
                Effect::Unlisten { portal } => self.unlisten(id, portal),
                Effect::Drive(op) => self.drive(id, op),
                Effect::OpenDrive { token, drive, spec, .. } => self.open_drive(id, token, drive, &spec),
                Effect::CloseDrive { drive } => self.close_drive(id, drive),
                Effect::InspectDrive { token, drive } => self.inspect_drive(id, token, drive),
                Effect::Fence { token, drive, op } => self.fence(id, token, drive, op),
                Effect::ShapeDrive { drive, shape } => self.shape(id, drive, &shape),
                Effect::State { token, op } => self.state(id, token, op),
                Effect::Mail { to, mail: letter } => mail(self, id, to, letter),
            }
        }
        fx
    }

    fn mail(&mut self, from: ActorId, to: Address, mail: Mail) {
        self.letter_is_written(from, to, &mail);
        let Actor { server, address, .. } = self.actors[from];
        let (server, sender) = server.zip(address).expect("hosts write no mail");
        let mail = match mail {
            Mail::Manager(mail) => return self.to_manager.push_back((server, *mail)),
            other => other,
        };
        let Some(&id) = self.servers[server].addresses.get(&to) else { return };
        // Mail of one pair stays in order.
        let delay = Duration::from_micros(1 + self.rng.below(self.delivery.mail_us));
        let last = self.mailed.entry((from, id)).or_default();
        *last = (self.now + delay).max(*last);
        let (at, life) = (*last, self.actors[id].life);
        let event = HeadOrHost::Head(Event::Mail { from: sender, mail });
        self.push(at, Happening::Event { actor: id, life, event });
    }
    fn send_to_head(&mut self, id: ActorId, event: Event<Mail>) {
        let delay = Duration::from_micros(1 + self.rng.below(20));
        self.post(id, delay, HeadOrHost::Head(event));
    }
    fn send_to_either(
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
}

/// What a turn begins with.
enum Turn {
    Event(HeadOrHost),
    Timer,
    Nudge,
}
