//! One seed: a system of one head, or of two over the same drives, is built by orders, hosts work, faults happen; then
//! faults stop and everything must converge; then the checkers run.
//!
//! ```text
//! boot ─▶ orders (pool, volume, hosts, portals, exports) ─▶ of two: system create, boot of the second, it has all
//!   ─▶ work and faults, or orders about the system that are cut off ─▶ calm: faults off, drives returned
//!   ─▶ every command ended, every leg in sync ─▶ legs equal, nothing leaked
//! ```

mod check;
mod cut;
mod failed;
pub mod hashes;
mod lives;
mod operator;
mod options;
mod ordered;
mod replay;
mod rest;
mod setup;
mod trouble;

pub use options::{
    Act, Cut, Directory, Doing, End, Fault, KINDS, Kind, Loss, Options, Outage, ROWS, Row, Trouble, Wipe,
    Wrap, kind,
};

use crate::access::Access;
use crate::disk::Disk;
use crate::host::Ledger;
use crate::world::{ActorId, Crash, Step, Tally, World, Wrong};
use base::{Duration, FenceKind, Instant, Prng};
use head::mail::ManagerMail;
use head::order::{Event, Reply, State, Status, Weight};
use lives::Heads;
use operator::Orders;
use options::MIB;
use rest::Rests;
use setup::Hosts;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use trouble::Harm;

/// Virtual time in which everything must be well again once faults have stopped.
const CONVERGENCE: Duration = Duration::from_secs(300);
/// Virtual time in which a system is built, or one that is cut off comes to its end.
const BUILT: Duration = Duration::from_secs(90);
/// Hosts that have not carried out their commands by then do so in calm weather.
const WORK_MAX: Duration = Duration::from_secs(900);
/// Events of one run; a healthy one has a hundredth of it.
const STEPS_MAX: u64 = 20_000_000;
/// A drive that was pulled is noticed within this time, even if it is unused.
const NOTICED: Duration = Duration::from_secs(7);
/// A label that was overwritten is there again after this time.
const WIPE_MENDED: Duration = Duration::from_secs(12);
/// How often the operator of one head looks at `status` while there is trouble, and when there is none.
const LOOK: Duration = Duration::from_millis(500);
/// See `LOOK`.
const LOOK_CALM: Duration = Duration::from_millis(50);
/// How often that of two heads does.
const LOOK_OF_TWO: Duration = Duration::from_millis(300);

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
    /// Commands of each host that ended well, by server.
    pub by_server: Vec<[u64; 2]>,
    /// Controllers that hosts had another one end.
    pub ended: u64,
    /// Troubles made.
    pub troubles: u32,
    /// What went wrong, and made a difference.
    pub tally: Tally,
    /// How often a head was ready to serve.
    pub takeovers: u32,
    /// How often all lanes went round.
    pub deals: u32,
    /// How often nothing was under way while hosts rested.
    pub rests: u32,
    /// How often something was taken from a host.
    pub taken: u32,
    /// Longest time that a read took, and a write or a flush.
    pub slowest: (Duration, Duration),
    /// Longest time in which no command of a host ended well, between two that did.
    pub longest_stall: Duration,
    /// The same by one path, while that was up and some were tried there.
    pub longest_path_stall: Duration,
    /// Longest time from the start of a head alone to the first look at which its pools were served; a head that fell
    /// before that counts for nothing.
    pub slowest_start: Duration,
    /// What the head's own log says.
    pub events: Vec<String>,
}

/// A promise was broken, or nothing goes on.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What is wrong: one sentence, and behind it lines of what is not as it should be.
    pub what: String,
    /// The last events, if they were kept.
    pub story: Vec<String>,
}

#[derive(PartialEq, Eq, Clone, Copy, Debug)]
enum Stage {
    Ordering,
    /// The second head comes in.
    Joining,
    Working,
    /// Orders about the system are cut off.
    Cutting,
    Calming {
        since: Instant,
    },
}

/// What the script is called back for.
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
enum Alarm {
    /// An order that waits may go out.
    Order,
    /// The operator looks at `status`.
    Look,
    /// Drives are moved about.
    Move,
    /// Lanes are dealt anew.
    Deal,
    /// A head begins its next life.
    Boot(usize),
    /// The process of a head that is out ends.
    Out(usize),
    /// Who was asked to stop is killed.
    Stop(usize),
    /// The head falls.
    Doom,
    /// Something is picked that goes wrong.
    Trouble,
    /// The same, of the kind with this number.
    Kind(usize),
    /// This follows upon another trouble.
    Then(Trouble),
    Fault(Fault),
    /// What drives held back has landed.
    Landed,
    /// So many commands of hosts had ended well when it was looked last.
    Waited(Option<u64>),
    Outage,
    /// The power goes.
    Dark,
    /// Orders about the system begin.
    Cut,
    /// It is looked whether anything is under way while hosts begin nothing.
    Rest,
    /// Faults stop.
    Calm,
}

struct Run {
    options: Options,
    world: World,
    rng: Prng,
    stage: Stage,
    /// By the marks that the world knows them by.
    alarms: BTreeMap<u64, Alarm>,
    alarms_set: u64,
    heads: Heads,
    orders: Orders,
    hosts: Hosts,
    harm: Harm,
    rest: Rests,
    cutting: cut::Cutting,
    /// Takes what a head alone decides.
    replica: replay::Replica,
    steps: u64,
    snapshot: Option<Box<Status>>,
    /// What `status` said when it was last looked at.
    last_look: Option<Box<Status>>,
    /// Everything was at rest at the last look.
    rested: bool,
    done: bool,
}

/// Runs one seed to its end.
///
/// # Errors
/// A promise was broken, or nothing goes on.
pub fn run(options: Options) -> Result<Outcome, Box<Failure>> {
    let mut run = Run::new(options);
    run.boot(0);
    if run.two() {
        run.later(LOOK_OF_TWO, Alarm::Look);
    }
    while !run.done {
        if let Err(what) = run.step() {
            let what = what + &run.ills();
            let story = run.world.story.iter().cloned().collect();
            return Err(Box::new(Failure { seed: run.options.seed, what, story }));
        }
    }
    Ok(run.outcome())
}

impl Run {
    fn new(options: Options) -> Self {
        let seed = options.seed;
        let two = options.heads == 2;
        let mut world = World::new(seed, options.delivery.clone());
        world.log = options.log || options.trace;
        world.trace = options.trace;
        world.addresses_move = options.addresses_move;
        let more = if options.moves > 0 { crate::moves::MORE_DRIVES } else { 0 };
        for d in 0..options.mirrors * options.legs + more {
            let mut disk = Disk::new(format!("d{d}"), 64 * MIB + d as u64 * MIB, options.volatile);
            disk.sector = u64::from(options.block_bytes);
            disk.forgets_keys = options.forgets_keys;
            if options.files {
                disk.fence = FenceKind::File;
            }
            disk.deallocate_zeroes = options.deallocate_zeroes || d == 0;
            if options.used {
                disk.soil(0, disk.bytes, d as u32 + 1);
            }
            disk.opening_reads = Prng::new(seed ^ (0x6f70_656e + d as u64)).chance(1, 2);
            world.disks.push(disk);
        }
        if options.cut.is_some() {
            Cut::soil(&mut world.disks, &mut world.rng);
        }
        if let Some(lying) = options.lying {
            world.disks[lying].fence_lies = true;
        }
        if two {
            world.add_server(seed ^ 0x7365_7276_6572);
            for (server, clock) in options.clocks.into_iter().enumerate() {
                world.set_clock(server, clock);
            }
        }
        let mut run = Self {
            rng: Prng::new(seed ^ if two { 0x7477_6f68_6561_6473 } else { 0x7472_6f75_626c }),
            options,
            world,
            stage: Stage::Ordering,
            alarms: BTreeMap::new(),
            alarms_set: 0,
            heads: Heads::default(),
            orders: Orders::default(),
            hosts: Hosts::default(),
            harm: Harm::default(),
            rest: Rests::default(),
            cutting: cut::Cutting::default(),
            replica: replay::Replica::default(),
            steps: 0,
            snapshot: None,
            last_look: None,
            rested: false,
            done: false,
        };
        run.orders.queue = run.setup();
        run
    }
    /// Whether this is a world of two heads.
    fn two(&self) -> bool {
        self.options.heads == 2
    }
    fn outcome(&self) -> Outcome {
        let ledgers = &self.hosts.ledgers;
        let sum = |f: fn(&Ledger) -> u64| ledgers.iter().map(|l| f(&l.borrow())).sum();
        let most = |f: fn(&Ledger) -> Duration| {
            let all = ledgers.iter().map(|l| f(&l.borrow()));
            all.max().unwrap_or_default()
        };
        let mut tally = self.world.tally;
        tally.add(Wrong::ClearTasks, sum(|l| l.clears), sum(|l| l.cleared));
        let events = self.last_look.iter().flat_map(|s| &s.events);
        Outcome {
            hash: self.world.hash(),
            time: self.world.now().since(Instant(0)),
            good: sum(|l| l.good),
            failed: sum(|l| l.failed),
            lost: sum(|l| l.lost),
            repeated: sum(|l| l.repeated),
            by_server: self.commands_by_server(),
            ended: sum(|l| l.ended),
            troubles: self.harm.troubles,
            tally,
            takeovers: self.heads.takeovers,
            deals: self.orders.deals,
            rests: self.rest.had,
            taken: self.orders.access.as_ref().map_or(0, Access::taken),
            slowest: (most(|l| l.slowest_read), most(|l| l.slowest_write)),
            longest_stall: most(|l| l.longest_stall),
            longest_path_stall: most(|l| l.longest_path_stall),
            slowest_start: self.heads.slowest_start,
            events: events.map(|e| format!("{}: {:?}", e.what, e.event)).collect(),
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
        self.hosts.actors.iter().zip(&self.hosts.ledgers).map(of_host).collect()
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(format!("it does not end: {STEPS_MAX} events, and still {:?}", self.stage));
        }
        let step = self.world.step();
        if !self.two() {
            self.replay(matches!(step, Step::ToManager { mail: ManagerMail::Answered { .. }, .. }))?;
        }
        match step {
            Step::Happened => {}
            Step::Alarm(mark) => self.alarm(mark),
            Step::Fell { crash, .. } if self.stage == Stage::Cutting => self.cut_fell(crash)?,
            Step::Fell { server, crash } => {
                let after = self.time_of_a_start();
                self.fell(server, crash, after);
            }
            Step::ToManager { server, mail } => self.mail(server, mail)?,
            Step::Quiet => return Err("nothing will ever happen again".into()),
        }
        self.order();
        if self.world.log {
            for (i, ledger) in self.hosts.ledgers.iter().enumerate() {
                let lines = ledger.borrow_mut().log.as_mut().map(core::mem::take).unwrap_or_default();
                lines.into_iter().for_each(|l| self.world.say(|| format!("host {i}: {l}")));
            }
        }
        self.lose_paths_of_hosts();
        let turns = self.world.host_turns();
        let seen = core::mem::replace(&mut self.hosts.turns_checked, turns) != turns;
        self.check_hosts(seen)?;
        self.check_surface(seen)?;
        self.progress()
    }
    /// A second state takes what the head has decided; now and then the two are compared.
    fn replay(&mut self, compare: bool) -> Result<(), String> {
        let entries = self.world.journal(0);
        if entries.is_empty() && !compare {
            return Ok(());
        }
        let before = self.replica.in_sync();
        self.replica.take(entries)?;
        let cuts = self.options.cuts_in_sync && self.stage == Stage::Working;
        if cuts && self.replica.in_sync() > before && self.rng.chance(1, 2) {
            self.doom(Crash::PowerCut);
        }
        match self.world.decided(0).filter(|_| self.heads.each[0].up) {
            Some(state) => self.replica.compare(&state),
            None => Ok(()),
        }
    }
    fn mail(&mut self, server: usize, mail: ManagerMail) -> Result<(), String> {
        match mail {
            ManagerMail::Ready { .. } => self.becomes_ready(server)?,
            ManagerMail::Answered { id, answer } => {
                match self.orders.waiting.take_if(|asked| asked.id == id) {
                    Some(asked) => self.answered(asked, answer)?,
                    None => {
                        if let Ok(Reply::System(view)) = answer {
                            self.viewed(server, view)?;
                        }
                    }
                }
            }
            ManagerMail::Peer(work) => self.world.peer_work(server, work),
            // A head that becomes the first of a system goes on with what it serves.
            ManagerMail::Leads(true) if self.leader() == Some(server) => {}
            ManagerMail::Leads(true) => {
                self.heads.each[server].led = Some(self.world.now());
                self.harm.lost_cache |= self.may_lack_cache();
            }
            ManagerMail::Out(why) => self.comes_out(server, &format!("{why:?}")),
            ManagerMail::Stopped if self.heads.each[server].stopping => self.stopped(server),
            ManagerMail::Happened(line) => {
                // What orders did to pools, and imports, the log has by the orders.
                if !matches!(line.event, Event::Pool(_)) || line.weight > Weight::Note {
                    self.heads.log(self.world.now(), server, &format!("{:?}", line.event));
                }
                self.world.say(|| format!("server {server}: {}: {:?}", line.what, line.event));
            }
            // Portals of these worlds have addresses that stay.
            ManagerMail::Addresses { .. } | ManagerMail::Announce(_) => {}
            ManagerMail::Leads(false) | ManagerMail::FromPeer(_) | ManagerMail::Stopped => {}
        }
        Ok(())
    }

    /// Calls the script back.
    fn later(&mut self, after: Duration, alarm: Alarm) {
        self.alarms_set += 1;
        self.alarms.insert(self.alarms_set, alarm);
        self.world.alarm(after, self.alarms_set);
    }
    fn alarm(&mut self, mark: u64) {
        let works = self.stage == Stage::Working;
        match self.alarms.remove(&mark).expect("the world knows only alarms of ours") {
            Alarm::Order => {}
            Alarm::Look => self.look(),
            Alarm::Move if works => {
                self.move_drives();
                self.next_move();
            }
            Alarm::Deal if works => {
                self.deal();
                self.next_deal();
            }
            Alarm::Boot(server) if !self.world.runs(server) => self.boot(server),
            Alarm::Out(server) => self.end_process(server),
            // Its supervisor has no more patience.
            Alarm::Stop(server) if self.heads.each[server].stopping => self.ends(server, Crash::Killed),
            Alarm::Doom if works => self.doom(Crash::Killed),
            Alarm::Trouble if works => {
                self.trouble();
                self.next_trouble();
            }
            Alarm::Kind(nth) if works => {
                self.trouble_of_kind(nth);
                self.next_of_kind(nth);
            }
            Alarm::Then(trouble) if works => self.pick(trouble),
            // A path is lost, and a head falls, while hosts work, or not at all.
            Alarm::Fault(Fault::Path { lost: true, .. } | Fault::Fall { .. }) if !works => {}
            Alarm::Fault(fault) => self.happens(fault),
            Alarm::Landed => self.look_for_hangs(),
            Alarm::Waited(before) if works => self.look_for_waits(before),
            Alarm::Outage => self.begin_outage(),
            Alarm::Dark => self.power_goes(),
            Alarm::Cut => self.begin_cut(),
            Alarm::Rest => self.rest.due = true,
            Alarm::Calm => self.calm(),
            // It comes too late.
            Alarm::Boot(_)
            | Alarm::Stop(_)
            | Alarm::Doom
            | Alarm::Trouble
            | Alarm::Kind(_)
            | Alarm::Then(_)
            | Alarm::Waited(_)
            | Alarm::Move
            | Alarm::Deal => {}
        }
    }

    fn progress(&mut self) -> Result<(), String> {
        let now = self.world.now();
        match self.stage {
            Stage::Ordering | Stage::Joining | Stage::Cutting if now.since(Instant(0)) > BUILT => {
                Err(format!("the system does not come up: {:?}, {:?}", self.stage, self.cutting.step))
            }
            // Of one head the last answer begins the work.
            Stage::Ordering | Stage::Joining => {
                let ready = match self.stage {
                    Stage::Joining => self.follower_has_all(),
                    // A world in which a system is made while hosts are at work.
                    _ => self.options.cut.is_some() && self.orders.are_given() && self.last_look.is_some(),
                };
                if ready {
                    self.begin_work();
                }
                Ok(())
            }
            Stage::Cutting => {
                if let Some(snapshot) = self.snapshot.take() {
                    self.cut_progress(&snapshot)?;
                    self.last_look = Some(snapshot);
                }
                Ok(())
            }
            Stage::Working => self.works(),
            Stage::Calming { since } if now.since(since) > CONVERGENCE => {
                Err(format!("not well again after {CONVERGENCE:?} without faults"))
            }
            Stage::Calming { since } => self.calms_down(since),
        }
    }
    fn works(&mut self) -> Result<(), String> {
        let two = self.two();
        let disks = &self.world.disks;
        let ill = || disks.iter().any(|d| d.faults.any());
        // The operator of one head helps only where something is wrong that will not go by itself.
        let helps = |s: &mut Box<Status>| two || s.health != State::Optimal && !ill();
        if let Some(snapshot) = self.snapshot.take_if(helps) {
            self.check_paths(&snapshot)?;
            if !self.world.disks.iter().any(|d| d.faults.any()) {
                self.nurse(&snapshot);
            }
            self.last_look = Some(snapshot);
            if two {
                self.change_something();
                self.rest_if_due();
            }
        }
        if core::mem::take(&mut self.rest.due) {
            self.look_at_rest()?;
        }
        // Hosts of two heads work for a time.
        if two {
            return Ok(());
        }
        let given = self.orders.access.as_ref().is_none_or(Access::is_done);
        let done = self.hosts.are_finished()
            && given
            && self.heads.each[0].up
            && self.orders.moves >= self.options.moves;
        if given && self.orders.access.is_some() {
            self.hosts.stop();
        }
        if done || self.world.now().since(Instant(0)) > WORK_MAX {
            self.calm();
        }
        Ok(())
    }
    fn calms_down(&mut self, since: Instant) -> Result<(), String> {
        let two = self.two();
        let given = self.orders.access.as_ref().is_none_or(Access::is_done);
        let finished = given && self.hosts.are_finished();
        // Somebody has looked at every drive since.
        let looked = two || self.world.now().since(since) > NOTICED;
        if finished && looked && self.repairs() {
            self.snapshot = None;
            return Ok(());
        }
        let Some(snapshot) = self.snapshot.take() else { return Ok(()) };
        let well = snapshot.health == State::Optimal && quiet(&snapshot) && !snapshot.pools.is_empty();
        // Of two heads nobody is asked, and who leads has looked at each drive by then.
        let mended = |at: Instant| self.world.now().since(at.max(since)) > WIPE_MENDED;
        let said = self.harm.wiped.is_none_or(|(_, at, said)| said || two && mended(at));
        // A drive that is in use has confirmed what it was asked for.
        let confirmed = || self.heads.view.as_ref().is_some_and(|v| v.late.is_empty());
        let there = !two || self.is_alone() || self.follower_has_all() && confirmed();
        let calm = well && finished && looked && said && there;
        if !calm {
            self.nurse(&snapshot);
        }
        self.last_look = Some(snapshot);
        // Twice, so that no letter between machines is overlooked.
        let rests = calm && self.rests().is_ok();
        if core::mem::replace(&mut self.rested, rests) && rests {
            self.done = true;
            self.check_books()?;
            self.check()?;
            self.check_cut()?;
        }
        Ok(())
    }
    /// Faults stop.
    fn calm(&mut self) {
        self.world.say(|| "faults stop".into());
        self.stage = Stage::Calming { since: self.world.now() };
        self.harm.ailed_at = self.world.now();
        self.hosts.over.set(true);
        self.world.mend_networks();
        self.world.all_paths_are_back();
        self.world.let_fences_go_on();
        self.directories_take();
        // In older kinds one that is still to come comes.
        if !self.options.rates.is_empty() {
            self.world.spare();
        }
        self.pace();
        for disk in &mut self.world.disks {
            disk.faults = Default::default();
        }
        self.orders.access.iter_mut().for_each(Access::calm);
        if self.two() {
            self.hosts.stop();
        } else {
            self.later(trouble::LANDED_AFTER, Alarm::Landed);
        }
        self.snapshot = None;
    }
}

/// Nothing is copied, compared or cleared.
fn quiet(snapshot: &Status) -> bool {
    snapshot.pools.iter().all(|p| p.clearing.is_none() && p.arrays.iter().all(|a| a.resync.is_none()))
}
