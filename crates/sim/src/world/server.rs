//! A server: the machine on which one head runs, with a kernel, a clock, a state directory and ways to the drives of its own.

use super::actor::ActorId;
use super::state::Pending;
use super::{Doom, World, Wrong};
use base::fence::Process;
use base::{Address, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a server's clock shows. It runs at a rate of its own, and began at a time of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// Nanoseconds that it counts in a microsecond.
    pub rate: u64,
    /// What it showed at the beginning of the world.
    pub began: u64,
}

impl Default for Clock {
    /// The world's own.
    fn default() -> Self {
        Self { rate: 1000, began: 0 }
    }
}

impl Clock {
    /// What it shows at a time of the world.
    pub(super) fn shows(self, at: Instant) -> Instant {
        if self == Self::default() {
            return at;
        }
        let passed = u128::from(at.0) * u128::from(self.rate) / 1000;
        Instant(self.began + u64::try_from(passed).expect("worlds are short"))
    }
    /// The first time of the world at which it shows this.
    pub(super) fn when(self, shows: Instant) -> Instant {
        if self == Self::default() {
            return shows;
        }
        let passed = u128::from(shows.0.saturating_sub(self.began)) * 1000;
        Instant(u64::try_from(passed.div_ceil(u128::from(self.rate))).unwrap_or(u64::MAX))
    }
}

/// A server does nothing for a while, and then goes on as if nothing had been.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Until then.
    pub until: Instant,
    /// Its kernel stands still, too: what it was to send to drives leaves it after the pause.
    pub kernel: bool,
}

/// What happens to a write that fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The file stays as it was.
    Refused,
    /// The same, and nobody knows.
    Unsettled,
    /// The file was replaced, and nobody knows.
    Landed,
}

/// One of the servers.
pub struct Server {
    pub(super) addresses: BTreeMap<Address, ActorId>,
    /// The state directory.
    pub state: BTreeMap<String, Vec<u8>>,
    /// Since then it takes nothing, and lets go of nothing.
    pub frozen_at: Option<Instant>,
    /// What happens to the next writes of files.
    pub refuses: VecDeque<Refusal>,
    /// An operation there takes up to so many microseconds, if that is longer than usual.
    pub(super) slow_us: u64,
    /// Its clock of the day has been set forward by so many milliseconds, or back.
    pub day_ms: i64,
    pub(super) pending: Pending,
    /// How its head falls next, and its later ones.
    pub(super) dooms: VecDeque<Doom>,
    pub(super) clock: Clock,
    pub(super) pause: Option<Pause>,
    /// Machines of its head that stand still alone, each until then.
    pub(super) standing: BTreeMap<Address, Instant>,
    /// Drives to which it has lost the path, by their places.
    pub(super) lost: BTreeSet<usize>,
    /// A process of it runs.
    pub(super) runs: bool,
    /// By what the kernel knows it.
    pub process: Option<Process>,
    /// That process has a link to the other one: its daemon knows that it is one of two.
    pub linked: bool,
    /// It has power.
    pub(super) powered: bool,
}

impl Server {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            addresses: BTreeMap::new(),
            state: BTreeMap::new(),
            frozen_at: None,
            refuses: VecDeque::new(),
            slow_us: 0,
            day_ms: 0,
            pending: Pending::new(seed),
            dooms: VecDeque::new(),
            clock: Clock::default(),
            pause: None,
            standing: BTreeMap::new(),
            lost: BTreeSet::new(),
            runs: false,
            process: None,
            linked: true,
            powered: true,
        }
    }
}

impl World {
    /// Adds a second server, which reaches the same drives; its number.
    pub fn add_server(&mut self, seed: u64) -> usize {
        self.servers.push(Server::new(seed));
        self.servers.len() - 1
    }
    /// Servers with drives that several of them reach.
    pub(super) fn is_shared(&self) -> bool {
        self.servers.len() > 1
    }
    /// On which server an actor lives; None for a host.
    pub(super) fn server_of(&self, actor: ActorId) -> Option<usize> {
        self.actors[actor].server
    }
    /// Sets a server's clock. Not while a process runs on it.
    pub fn set_clock(&mut self, server: usize, clock: Clock) {
        self.servers[server].clock = clock;
    }
    /// What the clock of an actor shows.
    pub(super) fn now_of(&self, actor: ActorId) -> Instant {
        self.server_of(actor).map_or(self.now, |s| self.servers[s].clock.shows(self.now))
    }
    /// The machines of a head.
    pub(super) fn machines_of(&self, server: usize) -> Vec<ActorId> {
        self.heads.iter().copied().filter(|id| self.actors[*id].server == Some(server)).collect()
    }
    /// A server stands still. What is for its processes waits, in order: one that stands still already does so no longer for it.
    pub fn pause(&mut self, server: usize, pause: Pause) {
        if self.stands(server) {
            return;
        }
        self.say(|| format!("server {server} stands still until {:?}: {pause:?}", pause.until));
        self.tally.make(Wrong::Pause);
        self.drive_checker.heads.upset(pause.until);
        self.servers[server].pause = Some(pause);
    }
    /// A machine of a server's head stands still, and the others go on: that thread waits for memory, say.
    pub fn pause_machine(&mut self, server: usize, address: Address, until: Instant) {
        if self.stands(server) {
            return;
        }
        self.say(|| format!("{address:?} of server {server} stands still until {until:?}"));
        self.tally.make(standing(address));
        self.drive_checker.heads.upset(until);
        self.servers[server].standing.insert(address, until);
    }
    /// Whether a server or a machine of its head stands still.
    pub(super) fn stands(&self, server: usize) -> bool {
        let Server { pause, standing, .. } = &self.servers[server];
        let untils = standing.values().copied().chain(pause.map(|p| p.until));
        untils.max().is_some_and(|until| until > self.now)
    }
    /// Until when a machine of a server stands still, if it does, and what of it stands.
    pub(super) fn is_standing(&self, server: usize, actor: ActorId) -> Option<(Instant, Wrong)> {
        let whole = self.is_paused(server).map(|p| p.until);
        let address = self.actors[actor].address;
        let alone = address.and_then(|a| self.servers[server].standing.get(&a).copied());
        let alone = alone.filter(|until| *until > self.now);
        let what = if whole.is_some() { Wrong::Pause } else { standing(address?) };
        whole.max(alone).map(|until| (until, what))
    }
    /// Until when a server stands still, if it does.
    pub fn is_paused(&self, server: usize) -> Option<Pause> {
        self.servers[server].pause.filter(|p| p.until > self.now)
    }
    /// A killed server is not paused any more.
    pub(super) fn goes_on(&mut self, server: usize) {
        self.servers[server].pause = None;
        self.servers[server].standing.clear();
    }
    /// Whether a process runs there.
    pub fn runs(&self, server: usize) -> bool {
        self.servers[server].runs
    }
    /// A server has power, and a process of it begins. If the last one was only killed, the kernel still has its operations, and claims on
    /// drives wait for them.
    pub fn power_on(&mut self, server: usize) {
        self.goes_on(server);
        if !core::mem::replace(&mut self.servers[server].powered, true) {
            self.end_ops_of(server);
        }
    }
    /// A server loses its path to a drive, or has it again.
    pub fn lose_path(&mut self, server: usize, disk: usize, lost: bool) {
        self.say(|| {
            format!("server {server} and d{disk}: the path is {}", if lost { "lost" } else { "back" })
        });
        self.drive_checker.heads.upset(self.now);
        if lost {
            self.tally.make(Wrong::LosePath);
            self.servers[server].lost.insert(disk);
            if self.has_no_path(server) {
                self.tally.make(Wrong::LoseAllPaths);
            }
            self.answers_are_lost(server, disk);
        } else {
            self.servers[server].lost.remove(&disk);
        }
    }
    /// Whether a server has its path to a drive.
    pub fn has_path(&self, server: usize, disk: usize) -> bool {
        !self.servers[server].lost.contains(&disk)
    }
    /// Whether a server reaches no drive.
    pub(super) fn has_no_path(&self, server: usize) -> bool {
        self.servers[server].lost.len() == self.disks.len()
    }
    /// Every server reaches every drive.
    pub fn has_all_paths(&self) -> bool {
        self.servers.iter().all(|s| s.lost.is_empty())
    }
    /// No path is lost any more.
    pub fn all_paths_are_back(&mut self) {
        self.servers.iter_mut().for_each(|s| s.lost.clear());
    }
}

/// As what it is counted that a machine stands still alone.
fn standing(address: Address) -> Wrong {
    match address {
        Address::Steward => Wrong::PauseSteward,
        Address::Shard(_) | Address::Manager => Wrong::PauseShard,
    }
}
