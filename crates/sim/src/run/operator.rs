//! The operator: orders that go to the head that leads, what they are answered, and what is done about `status`.

use super::failed::Failed;
use super::ordered::Ordered;
use super::{Alarm, Directory, LOOK, LOOK_CALM, LOOK_OF_TWO, Run, Stage, Trouble, quiet};
use crate::access::Access;
use crate::moves::{self, Freed};
use crate::operator::{Repair, nursing, second_portals, verdict};
use crate::world::{Crash, Wrong};
use base::{Address, Duration, Instant};
use head::layout::ArrayId;
use head::mail::{ShardMail, StewardMail};
use head::order::{Answered, ErrorKind, HostSettings, Order, Reply, State, Status};
use std::collections::VecDeque;

/// An order to one of two heads that is not answered in this time is given up: its head hangs, or is out.
const ORDER_PATIENCE: Duration = Duration::from_secs(8);
/// An order that waits for space is given again after this.
const SPACE_AGAIN: Duration = Duration::from_millis(700);
/// Lanes go round so often, at most.
const DEALS_MAX: u32 = 60;
/// Where nobody leads for so long although all is well, an operator says who does.
const LEADS_AFTER: Duration = Duration::from_secs(60);
/// Names of things that come and go.
pub(super) const NAMES: u64 = 4;

/// An order that was not answered yet.
pub(super) struct Asked {
    pub id: u64,
    /// Whose head was asked, and when.
    pub server: usize,
    since: Instant,
    order: Order,
    /// It is of the operator who takes things from hosts.
    of_access: bool,
    /// It went to the head that follows.
    elsewhere: bool,
}

/// What is ordered, and what became of it.
#[derive(Default)]
pub(super) struct Orders {
    /// Orders that are still to be given.
    pub queue: VecDeque<Order>,
    /// The next one that changes something goes to the head that follows.
    pub elsewhere: bool,
    /// Until then they wait.
    hold_until: Instant,
    asked: u64,
    pub waiting: Option<Asked>,
    ordered: Ordered,
    /// Drives that an order failed.
    failed: Failed,
    /// What was given back by volumes that came and went.
    freed: Freed,
    /// Takes from hosts what they log in by.
    pub access: Option<Access>,
    pub repair: Repair,
    /// An order about drives has not been followed by a look yet.
    pub moving: bool,
    /// Orders about drives that were given.
    pub moves: u32,
    /// How often all lanes went round, and were to.
    pub deals: u32,
    deals_tried: u32,
    /// When lanes of two heads were to go round last.
    turned: Instant,
}

impl Orders {
    pub fn next_id(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }
    /// All were given and answered.
    pub fn are_given(&self) -> bool {
        self.queue.is_empty() && self.waiting.is_none()
    }
}

// Orders and answers.
impl Run {
    /// The next order waits for so long.
    fn hold(&mut self, time: Duration) {
        self.orders.hold_until = self.world.now() + time;
        self.later(time, Alarm::Order);
    }
    /// The head that was asked does not answer any more: it has done it, or not.
    pub(super) fn forget_order(&mut self, server: usize) {
        if let Some(asked) = self.orders.waiting.take_if(|asked| asked.server == server) {
            self.orders.ordered.doubt(&asked.order);
            if asked.of_access {
                self.orders.access.iter_mut().for_each(Access::is_unknown);
            }
        }
    }
    /// The next order goes out, if there is one and somebody takes it.
    pub(super) fn order(&mut self) {
        let now = self.world.now();
        if let Some(Asked { server, since, .. }) = self.orders.waiting {
            if self.two() && now.since(since) > ORDER_PATIENCE {
                self.forget_order(server);
            }
            return;
        }
        let Some(server) = self.leader().filter(|s| !self.heads.each[*s].stopping) else { return };
        if now < self.orders.hold_until {
            return;
        }
        if let Some(turns) = self.options.turns
            && self.stage == Stage::Working
            && self.orders.queue.is_empty()
            && now.since(self.orders.turned) >= turns
        {
            self.orders.turned = now;
            self.orders.queue.push_back(Order::LanesTurn);
        }
        let ordered = self.orders.queue.pop_front();
        let of_access = ordered.is_none();
        let next = |access: &mut Access| access.next(now);
        let Some(mut order) = ordered.or_else(|| self.orders.access.as_mut().and_then(next)) else { return };
        if let Order::SystemCreate { settings } = &mut order {
            // Its name is that of the first head, which is known now.
            **settings = self.settings(server);
        }
        if self.stage == Stage::Ordering && matches!(order, Order::VolumeRemove { .. }) {
            self.soil();
        }
        self.orders.failed.ordered(&order);
        self.orders.ordered.doubt(&order);
        let elsewhere = self.goes_elsewhere(server, &order);
        let server = if elsewhere { 1 - server } else { server };
        let id = self.orders.next_id();
        let mail = StewardMail::Order { id, order: order.clone() };
        self.orders.waiting = Some(Asked { id, server, since: now, order, of_access, elsewhere });
        self.world.manage(server, Address::Steward, mail);
    }
    /// Whether an order goes to the head that follows instead of the one that leads.
    fn goes_elsewhere(&mut self, leader: usize, order: &Order) -> bool {
        let changes = self.stage == Stage::Working && *order != Order::Status;
        let there = self.orders.elsewhere && self.two() && self.world.runs(1 - leader);
        let goes = changes && there && !self.has_directory(1 - leader, Directory::Unlinked);
        if goes {
            self.orders.elsewhere = false;
            self.world.tally.make(Wrong::AskFollower);
        }
        goes
    }
    pub(super) fn answered(&mut self, asked: Asked, answer: Answered) -> Result<(), String> {
        let Asked { server, since, order, of_access, elsewhere, .. } = asked;
        if elsewhere {
            self.world.tally.meet(Wrong::AskFollower);
        }
        if answer.is_ok() && self.leader() == Some(server) {
            self.world.check_directories(server)?;
        }
        if self.cuts(&order) {
            return self.cut_answered(&order, answer);
        }
        let refused = answer.as_ref().err().map(|refusal| refusal.kind());
        match refused {
            None => self.orders.ordered.confirm(&order),
            Some(_) => self.orders.ordered.doubt(&order),
        }
        if of_access {
            return self.access_answered(refused);
        }
        if refused.is_none() {
            self.orders.failed.carried_out(&order);
            self.orders.deals += u32::from(order == Order::LanesTurn);
            let done = match order {
                Order::LanesTurn => Some(Wrong::TurnLanes),
                Order::VolumeResize { .. } => Some(Wrong::Resize),
                Order::PoolScrub { .. } => Some(Wrong::Scrub),
                Order::HeadFence { .. } => Some(Wrong::FenceFollower),
                Order::HeadRelease { .. } => Some(Wrong::LeaveAndJoin),
                _ if self.orders.moving && moves::is_move(&order) => Some(Wrong::MoveDrives),
                _ => None,
            };
            done.into_iter().for_each(|what| self.world.tally.meet(what));
            if matches!(order, Order::PoolCreate { .. } | Order::PoolAdd { .. }) {
                self.pace();
            }
        }
        let ordering = self.stage == Stage::Ordering;
        match answer {
            Ok(Reply::Snapshot(snapshot)) => self.looked(server, since, snapshot),
            Ok(_) => {
                match order {
                    Order::VolumeRemove { .. } if ordering => self.after_former(),
                    Order::HeadRelease { .. } => self.has_left(1 - server),
                    Order::SystemCreate { .. } => {
                        self.stage = Stage::Joining;
                        if self.options.both {
                            self.orders.queue.extend(second_portals());
                        }
                        self.second_begins();
                    }
                    _ => {}
                }
                Ok(())
            }
            // Its space is free when every shard has marked it.
            Err(r) if ordering && self.options.former && r.kind() == ErrorKind::NoSpace => {
                self.orders.queue.push_front(order);
                self.hold(SPACE_AGAIN);
                Ok(())
            }
            // A drive was late, and who makes the system tries again.
            Err(r) if matches!(order, Order::SystemCreate { .. }) && r.kind() == ErrorKind::Internal => {
                self.orders.queue.push_front(order);
                Ok(())
            }
            Err(refusal) if ordering => Err(format!("an order was refused: {refusal:?}")),
            Err(refusal) => {
                self.world.say(|| format!("{order:?} is refused: {:?}", refusal.why));
                Ok(())
            }
        }
    }
    fn access_answered(&mut self, refused: Option<ErrorKind>) -> Result<(), String> {
        let now = self.world.now();
        let falls = self.two() && self.options.ails();
        let Some(access) = &mut self.orders.access else { return Ok(()) };
        match refused {
            // The host has it already, or the pool is not here yet.
            Some(kind) if kind != ErrorKind::Conflict && falls => access.is_refused(now),
            _ => access.answered(now, refused.is_none())?,
        }
        let due = access.next_deadline().map(|at| at.since(now));
        due.into_iter().for_each(|after| self.later(after, Alarm::Order));
        Ok(())
    }
    /// The first volume has gone: at once, a little later or never the head falls.
    fn after_former(&mut self) {
        let pause = Duration::from_millis(self.rng.below(15_000));
        self.hold(pause);
        if self.rng.chance(1, 2) {
            let crash = if self.rng.chance(1, 2) { Crash::Killed } else { Crash::PowerCut };
            self.ends(0, crash);
        }
    }

    /// The operator looks at `status`, and of two heads asks who leads.
    pub(super) fn look(&mut self) {
        let two = self.two();
        if two {
            self.look_at_directory();
        }
        let leader = self.leader();
        if let Some(leader) = leader.filter(|_| two) {
            self.ask_who_leads(leader);
        }
        if two && leader.is_none() {
            self.look_for_leader();
        }
        let asks = if two {
            leader.is_some() && self.stage != Stage::Ordering
        } else {
            self.orders.waiting.is_none()
        };
        if asks && self.orders.queue.is_empty() {
            self.orders.queue.push_back(Order::Status);
        }
        let next = match self.stage {
            _ if two => LOOK_OF_TWO,
            Stage::Calming { .. } => LOOK_CALM,
            _ => LOOK,
        };
        self.later(next, Alarm::Look);
    }
    /// As far as their directories say neither head has the latest hosts and portals, as where those took nothing while it led. After a time
    /// an operator has that one lead which served last.
    fn look_for_leader(&mut self) {
        let (Stage::Calming { since }, Some(server)) = (self.stage, self.heads.served_last) else { return };
        let now = self.world.now();
        let since = self.heads.told_to_lead.map_or(since, |told| told.max(since));
        if !self.heads.each[server].up || now.since(since) < LEADS_AFTER {
            return;
        }
        self.heads.told_to_lead = Some(now);
        self.world.say(|| format!("an operator has the head of server {server} lead"));
        let id = self.orders.next_id();
        self.world.manage(server, Address::Steward, StewardMail::Order { id, order: Order::HeadLead });
    }
    /// What `status` says, which was asked for then.
    fn looked(&mut self, server: usize, asked: Instant, snapshot: Box<Status>) -> Result<(), String> {
        self.check_ages()?;
        let leads = self.leader() == Some(server);
        if leads && snapshot.health == State::Optimal {
            self.harm.well_at = asked;
        }
        // A head with a damaged file lets nobody in by it, and says so.
        if leads && !self.has_directory(server, Directory::Damaged) {
            self.orders.ordered.verdict(&snapshot)?;
        }
        if !self.options.troubles.contains(&Trouble::Rot) {
            verdict(&snapshot)?;
        }
        self.orders.failed.verdict(&snapshot)?;
        self.hear_of_wipe(&snapshot)?;
        if !self.two() {
            self.orders.freed.verdict(self.world.now(), &snapshot)?;
            self.note_start(&snapshot);
        }
        let moving = self.orders.moving || !self.two() && !self.orders.queue.is_empty();
        if self.stage == Stage::Ordering {
            self.last_look = Some(snapshot.clone());
            if !self.two() && self.orders.queue.is_empty() {
                self.begin_work();
            } else if !self.two() {
                let filler = self.filler(&snapshot);
                self.orders.queue.push_front(filler);
            }
        }
        if leads && snapshot.health == State::Optimal && quiet(&snapshot) && !moving {
            self.world.checker_look();
        }
        self.orders.moving &= !self.orders.queue.is_empty();
        self.snapshot = Some(snapshot);
        Ok(())
    }
    /// The first look at which a head alone serves its pools.
    fn note_start(&mut self, snapshot: &Status) {
        let served = |p: &head::order::Pool| !p.arrays.is_empty() && p.state != State::Offline;
        let head = &mut self.heads.each[0];
        if head.serves || snapshot.pools.is_empty() || !snapshot.pools.iter().all(served) {
            return;
        }
        head.serves = true;
        if self.heads.lives > 1 {
            let took = self.world.now().since(head.booted);
            self.heads.slowest_start = self.heads.slowest_start.max(took);
        }
        self.pace();
    }
    /// Arrays copy and clear as slowly as this world wants it, or as usual again.
    pub(super) fn pace(&mut self) {
        let slow = self.options.slow_pace();
        if slow == 0 {
            return;
        }
        let slow = array::Pace { floor: slow, ceiling: slow, ..Default::default() };
        let pace = if matches!(self.stage, Stage::Calming { .. }) { Default::default() } else { slow };
        for server in 0..self.options.heads {
            let hears =
                if self.two() { self.heads.ready.contains(&server) } else { self.heads.each[server].up };
            for shard in (0..self.options.shards).filter(|_| hears) {
                for array in 0..self.options.mirrors {
                    let mail = ShardMail::Pace { array: ArrayId(array as u16), pace };
                    self.world.manage(server, Address::Shard(shard), mail);
                }
            }
        }
    }
}

// What the operator does.
impl Run {
    /// Does what `status` says, as an operator would: drives that are out are taken back.
    pub(super) fn nurse(&mut self, snapshot: &Status) {
        if self.options.nursed && self.orders.queue.is_empty() {
            // What was failed stays so while there are faults.
            if matches!(self.stage, Stage::Calming { .. }) {
                self.orders.queue.extend(nursing(snapshot));
            }
            return;
        }
        let scripted = !self.options.script.is_empty() && self.harm.wiped.is_none();
        if !self.orders.queue.is_empty() || scripted || !self.world.has_all_paths() {
            return;
        }
        if self.options.moves > 0 {
            let drives = self.drives();
            self.orders.queue.extend(moves::mend(snapshot, &drives));
        }
        self.orders.queue.extend(nursing(snapshot));
    }
    fn drives(&self) -> Vec<String> {
        self.world.disks.iter().map(|d| d.spec.clone()).collect()
    }
    /// What rotted is repaired before the legs are looked at, where it is known how.
    pub(super) fn repairs(&mut self) -> bool {
        let rots = self.options.troubles.contains(&Trouble::RotMetadata);
        let quiet = !self.harm.ailed && self.heads.lives == 1 && !rots;
        let Some(snapshot) = self.snapshot.as_ref().filter(|_| quiet) else { return false };
        let scrub = snapshot.pools.first().map(|p| p.scrub.clone()).unwrap_or_default();
        let order = self.orders.repair.go_on(self.options.legs, self.options.mirrors, &scrub);
        self.orders.queue.extend(order);
        self.orders.repair.is_under_way()
    }

    /// When the operator does something next.
    pub(super) fn next_move(&mut self) {
        if self.options.moves > 0 && !self.two() {
            let after = Duration::from_micros(self.rng.between(1_000, 600_000));
            self.later(after, Alarm::Move);
        }
    }
    /// Drives are replaced, added, removed: while all of them are well, since nobody gives up one beside one that
    /// is ill.
    pub(super) fn move_drives(&mut self) {
        let up = if self.two() { self.leader().is_some() } else { self.heads.each[0].up };
        if !up || !self.may_move_drives() || !self.orders.are_given() {
            return;
        }
        // Of two heads what was looked at last is at hand.
        let looked = if self.two() { self.last_look.clone() } else { self.snapshot.take() };
        let Some(snapshot) = looked else {
            self.orders.queue.push_back(Order::Status);
            return;
        };
        let drives = self.drives();
        if self.rng.chance(1, 2)
            && let Some(order) = moves::next_volume(&mut self.rng, &snapshot)
        {
            self.world.say(|| format!("the operator: {order:?}"));
            self.orders.freed.order(self.world.now(), &order, &snapshot);
            self.orders.queue.push_back(order);
        }
        if let Some(order) = moves::next(&mut self.rng, &snapshot, &drives, self.options.mirrors) {
            self.world.say(|| format!("the operator: {order:?}"));
            self.orders.moving = true;
            self.orders.moves += 1;
            self.world.tally.make(Wrong::MoveDrives);
            self.orders.queue.push_back(order);
        }
        self.orders.queue.push_back(Order::Status);
    }

    /// When lanes are dealt anew.
    pub(super) fn next_deal(&mut self) {
        if let Some(pause) = self.options.deals {
            // Not again and again while a drive hangs.
            let hangs = self.orders.deals_tried > self.orders.deals + 5;
            let pause = if hangs { pause.max(Duration::from_secs(1)) } else { pause };
            let micros = self.rng.between(100, 2 * pause.as_micros() as u64);
            self.later(Duration::from_micros(micros), Alarm::Deal);
        }
    }
    /// Other shards get the lanes of every array, whatever is ill.
    pub(super) fn deal(&mut self) {
        // A leg that lacks everything is copied from the beginning each time.
        let more = self.orders.deals_tried < DEALS_MAX && !self.orders.queue.contains(&Order::LanesTurn);
        if more && self.heads.each[0].up {
            self.orders.deals_tried += 1;
            self.world.say(|| "lanes go round".into());
            self.turn_lanes();
        }
    }

    /// Something is made or removed that must be so after a takeover, too.
    pub(super) fn change_something(&mut self) {
        if !self.orders.queue.is_empty() {
            return;
        }
        let n = self.rng.below(NAMES);
        let order = match self.rng.below(4) {
            0 => Order::VolumeCreate {
                pool: "tank".into(),
                name: format!("x{n}"),
                bytes: 1 << 20,
                block_bytes: None,
            },
            1 => Order::VolumeRemove { volume: format!("tank/x{n}"), force: true, disconnect: true },
            2 => {
                let nqns = vec![format!("nqn.2014-08.com.example:g{n}")];
                let settings = HostSettings { nqns: Some(nqns), ..HostSettings::default() };
                Order::HostAdd { name: format!("g{n}"), settings }
            }
            _ => Order::HostRemove { name: format!("g{n}"), force: true, disconnect: true },
        };
        self.orders.queue.push_back(order);
    }
}
