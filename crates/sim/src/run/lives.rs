//! Lives of heads: how they begin, serve and end.

use super::options::MIB;
use super::trouble::Found;
use super::{Alarm, Directory, Run};
use crate::access::Access;
use crate::disk::DiskCopy;
use crate::memory::SimMemory;
use crate::world::{Crash, HeadMachine, Wrong};
use base::fence::Process;
use base::{Address, Duration, Instant, Slice, Uuid};
use cluster::HeadNo;
use cluster::watch::Times;
use core::net::SocketAddr;
use head::mail::StewardMail;
use head::order::Order;
use head::peer::{SystemSettings, SystemView};
use head::steward::{Steward, StewardConfig};
use head::{Deadlines, Shard, ShardConfig};
use std::collections::{BTreeMap, VecDeque};

/// A head that does not stop in this time is killed: longer than it waits for anything, as systemd's is.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// Lines of what heads said that a failure prints.
const LOG_LINES: usize = 24;

/// The head of a server.
#[derive(Default)]
pub(super) struct Head {
    /// It lives.
    pub up: bool,
    /// When this life began.
    pub booted: Instant,
    /// This life has been seen to serve its pools.
    pub serves: bool,
    /// It is being stopped in order.
    pub stopping: bool,
    /// Its process is out, and is to end.
    pub out: bool,
    /// When it learned that it leads in place of the other one, if it has not served since.
    pub led: Option<Instant>,
    /// What its state directory is to be when it begins next.
    pub finds: Option<Found>,
}

/// A drive, as it was at some moment.
pub(super) struct OldCopy {
    pub disk: usize,
    pub contents: DiskCopy,
    /// The life of the head in which it was made.
    pub life: u64,
    /// How often a head had come to serve by then.
    pub takeovers: u32,
}

/// All heads.
#[derive(Default)]
pub(super) struct Heads {
    /// By server.
    pub each: [Head; 2],
    /// Those of both.
    pub lives: u64,
    /// The system is there: heads begin as one of two.
    pub system: bool,
    /// Systems that were, and are not any more.
    pub systems: u8,
    /// Servers that serve, as far as they have said; the last one leads.
    pub ready: Vec<usize>,
    /// The server that served last, and when an operator has told it to lead since.
    pub served_last: Option<usize>,
    pub told_to_lead: Option<Instant>,
    /// Who led in each epoch.
    pub leaders: BTreeMap<u64, HeadNo>,
    /// What the leader says of the system.
    pub view: Option<Box<SystemView>>,
    /// How often a head was ready to serve.
    pub takeovers: u32,
    /// How often one was put out.
    pub outs: u32,
    /// Longest time until one served its pools.
    pub slowest_start: Duration,
    /// A drive, as it was at some moment.
    pub copy: Option<OldCopy>,
    /// Of this drive a copy is made when the head ends.
    pub copies_at_end: Option<usize>,
    /// The head ends since it was stopped in order.
    pub stopped_in_order: bool,
    /// What heads said last.
    pub said: VecDeque<String>,
}

impl Heads {
    /// A head says something.
    pub fn log(&mut self, now: Instant, server: usize, words: &str) {
        if self.said.len() == LOG_LINES {
            self.said.pop_front();
        }
        self.said.push_back(format!("{} ms, server {server}: {words}", now.0 / 1_000_000));
    }
}

impl Run {
    /// The system, as daemons would name it: each has another name.
    fn name_of_system(&self) -> Uuid {
        let mut name = *b"two heads of sim";
        name[15] += self.heads.systems;
        Uuid(name)
    }
    pub(super) fn settings(&self, server: usize) -> SystemSettings {
        SystemSettings {
            system: self.name_of_system(),
            me: [HeadNo::A, HeadNo::B][server],
            name: ["left", "right"][server].into(),
            networks: (0..self.options.networks)
                .map(|n| SocketAddr::from(([10, 9, n as u8, 1], 7400)))
                .collect(),
            process: Process { pid: 100 + server as u32, started: self.heads.lives },
            times: Times::default(),
            both_serve: self.options.both,
            said: None,
        }
    }
    /// The head that is asked: the one that last said that it serves.
    pub(super) fn leader(&self) -> Option<usize> {
        self.heads.ready.last().copied().filter(|s| self.world.runs(*s))
    }

    /// A head begins a life.
    pub(super) fn boot(&mut self, server: usize) {
        self.heads.lives += 1;
        let head = &mut self.heads.each[server];
        head.up = true;
        head.booted = self.world.now();
        head.serves = false;
        head.stopping = false;
        drop(self.orders.waiting.take_if(|asked| asked.server == server));
        if self.options.script.is_empty() && !self.two() {
            self.heads.copy = None;
        }
        self.exchange_directory(server);
        let linked = self.finds_directory(server);
        self.world.servers[server].linked = linked;
        self.world.servers[server].process = Some(self.settings(server).process);
        self.world.power_on(server);
        self.world.convert_state(server);
        let shards = self.options.shards;
        let place = server as u64;
        let extents: Vec<(u64, u64)> =
            (0..shards).map(|s| ((1 + u64::from(s) + 50 * place) << 32, self.options.shard_bytes)).collect();
        let seed = self.options.seed.wrapping_mul(1000) + self.heads.lives;
        for id in 0..shards {
            let (at, bytes) = extents[usize::from(id)];
            let shard = Shard::new(ShardConfig {
                // Of two heads as many as the simulated kernel has places for: those behind are for connections with far
                // shards.
                connections_max: if self.two() { 4096 } else { 64 },
                credits: self.options.credits,
                turn_pdus: self.options.turn_pdus,
                flights: self.options.flights,
                id,
                shards,
                memory: SimMemory::new(at, bytes),
                staging: SimMemory::new(at + bytes, MIB),
                seed: seed + u64::from(id),
                deadlines: Deadlines::default(),
                extents: extents.clone(),
            });
            let shard: Box<dyn HeadMachine> = match self.options.wrap {
                Some(wrap) => wrap(shard),
                None => Box::new(shard),
            };
            self.world.put_head(server, Address::Shard(id), shard, Slice::new(at + bytes, MIB as u32));
        }
        let mut steward = Steward::new(StewardConfig {
            system: (self.heads.system && linked).then(|| self.settings(server)),
            memory: SimMemory::new((1 + place) << 48, 8 * MIB),
            shards,
            entropy: [seed, 1, 2, 3 + place],
            version: "sim".into(),
            hold: None,
            notices: vec![],
            state_directory: "/s".into(),
            shapes: BTreeMap::new(),
        });
        if !self.two() {
            steward.keep_journal();
            self.replica.reborn();
        }
        let staging = Slice::new((1 + place) << 52, 1 << 16);
        let id = self.world.put_head(server, Address::Steward, Box::new(steward), staging);
        self.world.nudge(id);
    }
    /// A head says that it serves.
    pub(super) fn becomes_ready(&mut self, server: usize) -> Result<(), String> {
        // Of what the two heads serve it has nothing, and nobody asks it.
        if self.has_directory(server, Directory::Unlinked) {
            return Ok(());
        }
        self.watch_takeover(server);
        // Until now the other one may have answered, by what legs and caches held. From now on what is read is made the
        // same first.
        if self.heads.each[server].led.take().is_some() {
            let lost = core::mem::take(&mut self.harm.lost_cache) || self.may_lack_cache();
            self.hosts.volume.borrow_mut().head_fell(lost && self.options.volatile);
        }
        self.heads.ready.retain(|s| *s != server);
        self.heads.ready.push(server);
        self.heads.served_last = Some(server);
        self.heads.takeovers += 1;
        if !self.two() {
            return self.replica.ready();
        }
        self.pace();
        if self.heads.system {
            self.ask_who_leads(server);
        }
        Ok(())
    }

    /// How long a server takes until its next life begins.
    pub(super) fn time_of_a_start(&mut self) -> Duration {
        if self.two() {
            Duration::from_millis(self.rng.between(20, 3000))
        } else {
            Duration::from_micros(self.rng.between(10, 20_000))
        }
    }
    /// A head's life is over. It begins another later.
    pub(super) fn fell(&mut self, server: usize, crash: Crash, after: Duration) {
        let served = self.heads.ready.contains(&server);
        self.harm.disturbed_at = self.world.now();
        self.heads.ready.retain(|s| *s != server);
        self.heads.each[server].up = false;
        self.heads.each[server].out = false;
        self.heads.log(self.world.now(), server, "its process has ended");
        let lacks_cache = self.may_lack_cache();
        self.harm.lost_cache |= lacks_cache && served;
        let mut volume = self.hosts.volume.borrow_mut();
        if !self.two() {
            // Drives lose their power with their only server.
            let cut = crash == Crash::PowerCut || lacks_cache;
            volume.head_fell(cut && self.options.volatile);
        } else if served {
            // What is read is made the same on every leg once whoever wrote it has fallen: nobody else's end does that. A
            // follower that serves goes on as it did until it leads.
            let goes_on = self.options.both && self.world.runs(1 - server);
            let lost = lacks_cache && self.options.volatile;
            if goes_on { volume.leader_fell() } else { volume.head_fell(lost) }
        }
        drop(volume);
        if self.two() {
            self.forget_order(server);
        } else {
            self.orders.access.iter_mut().for_each(Access::is_unknown);
        }
        self.later(after, Alarm::Boot(server));
        match self.heads.copies_at_end.take() {
            Some(disk) => self.copy_drive(disk),
            // Of two heads the other one goes on with the drive.
            None if self.two() => {}
            None => self.exchange_at_end(crash, served),
        }
    }
    /// A head's life ends now.
    pub(super) fn ends(&mut self, server: usize, crash: Crash) {
        if self.world.runs(server) {
            self.world.fall(server, crash);
            let after = self.time_of_a_start();
            self.fell(server, crash, after);
        }
    }

    /// The head is asked to stop. It is ended when it says that it has, or when that takes too long.
    pub(super) fn stop(&mut self, server: usize) {
        let serves = self.heads.ready.contains(&server);
        if serves && !self.heads.each[server].stopping && self.harm.kills < self.options.kills_max {
            self.harm.kills += 1;
            self.heads.each[server].stopping = true;
            self.world.tally.make(Wrong::Stop);
            self.world.manage(server, Address::Steward, StewardMail::Stop);
            self.later(STOP_PATIENCE, Alarm::Stop(server));
        }
    }
    /// It has.
    pub(super) fn stopped(&mut self, server: usize) {
        let crash = if self.rng.chance(1, 2) { Crash::Killed } else { Crash::PowerCut };
        self.heads.stopped_in_order = true;
        self.world.tally.meet(Wrong::Stop);
        self.ends(server, crash);
    }

    /// A head is put out. Its process executes itself anew, as soon as its manager has read that.
    pub(super) fn comes_out(&mut self, server: usize, why: &str) {
        self.world.say(|| format!("server {server}: {why}"));
        self.heads.ready.retain(|s| *s != server);
        self.heads.each[server].out = true;
        self.heads.outs += 1;
        self.heads.log(self.world.now(), server, why);
        let soon = Duration::from_micros(self.rng.below(1000));
        self.later(soon, Alarm::Out(server));
    }
    /// The process of a head that is out ends, and begins anew.
    pub(super) fn end_process(&mut self, server: usize) {
        if let Some(pause) = self.world.is_paused(server) {
            // Its manager goes on with the rest of it.
            let after = pause.until.since(self.world.now());
            return self.later(after, Alarm::Out(server));
        }
        if self.world.runs(server) && core::mem::take(&mut self.heads.each[server].out) {
            self.world.fall(server, Crash::Killed);
            let after = Duration::from_millis(self.rng.between(1, 20));
            self.fell(server, Crash::Killed, after);
        }
    }

    /// The second head comes into a system that was made.
    pub(super) fn second_begins(&mut self) {
        self.heads.system = true;
        self.world.link_servers(self.options.networks);
        self.boot(1);
    }
    pub(super) fn ask_who_leads(&mut self, server: usize) {
        let id = self.orders.next_id();
        self.world.manage(server, Address::Steward, StewardMail::Order { id, order: Order::System });
    }
    /// What a head says of its system.
    pub(super) fn viewed(&mut self, server: usize, view: Box<SystemView>) -> Result<(), String> {
        if view.part == cluster::Part::Leader {
            let other =
                self.heads.leaders.insert(view.record.epoch, view.me).filter(|other| *other != view.me);
            if other.is_some() {
                return Err(format!("two heads lead in epoch {}", view.record.epoch));
            }
        }
        if self.leader() == Some(server) {
            self.heads.view = Some(view);
        }
        Ok(())
    }
    pub(super) fn follower_has_all(&self) -> bool {
        let both = [HeadNo::A, HeadNo::B];
        let has_all = |v: &SystemView| both.iter().all(|h| v.record.is_in(*h) && v.record.has_latest(*h));
        self.heads.view.as_deref().is_some_and(has_all)
    }
}
