//! A head creates a system, or the last head leaves it, and is cut off at a chosen effect of its Steward.
//!
//! ```text
//! hosts at work ─▶ orders, cut off ─▶ a start, as the state directory says ─▶ the same orders ─▶ b joins, or the head is alone ─▶ calm
//! ```
//!
//! This module also plays the daemon: it writes the file `link` before the Steward is asked to create a system, and removes it when the
//! Steward reports that the head left.

use super::{Alarm, Cut, Doing, End, Run, Stage};
use crate::disk::{Disk, DiskOp};
use crate::world::Crash;
use array::format::{CONFIG_AT, CONFIG_BYTES, ConfigSlot, newest_config};
use base::{Address, DriveOpKind, Duration, Uuid};
use cluster::slot::{SLOTS_AT, Slot};
use cluster::{HeadNo, SystemRecord};
use finding::{Cause, PoolCause, PoolRefusal, Why};
use head::order::{Answered, Order, Reply, State, Status};
use head::peer::is_left_behind;
use head::steward::first_files;
use head::steward::state::config::PoolConfig;

/// Where a system has its own records on each drive.
const AREA: (u64, u64) = (3 << 20, 1 << 20);
/// Hosts are at work so long before the first order.
pub(super) const BEFORE: Duration = Duration::from_millis(100);
/// A head that was cut off begins again after this.
const STARTS: Duration = Duration::from_millis(20);
/// In this time hosts' writes have found a leg that is away.
const AWAY: Duration = Duration::from_millis(500);
/// So many commands of hosts end well after all that: most of them read, and every block is met often.
const READ_BACK: u64 = 400;
/// What is left of a former system on drives is of this one.
const FORMER: Uuid = Uuid(*b"a former system ");

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Step {
    #[default]
    Before,
    /// A leg is away, which is found out now.
    Away,
    /// The follower leaves.
    Releasing,
    First,
    /// It was cut off: what the head says when it is there again.
    Fallen,
    /// A pool that is a system's, of which this head knows nothing, is taken all the same.
    Forced,
    Again,
    Over,
}

/// See the module.
#[derive(Default)]
pub(super) struct Cutting {
    pub step: Step,
    /// So many commands of hosts are to end well before they end.
    read_back: u64,
}

impl Cut {
    /// Used drives: of a former system, and others.
    pub(super) fn soil(disks: &mut [Disk], rng: &mut base::Prng) {
        for (tag, disk) in disks.iter_mut().enumerate() {
            disk.soil(AREA.0, AREA.1, tag as u32);
            for head in [HeadNo::A, HeadNo::B] {
                let record = SystemRecord { epoch: 1000, ..SystemRecord::founding(FORMER) };
                let value = SystemRecord { epoch: 1001, ..record.clone() };
                let accepted = Some((1001, value));
                let slot = Slot { head, life: 9, sequence: 77, promised: 1001, decided: record, accepted };
                let (bytes, at) = (slot.encode(), SLOTS_AT[head.index()][1]);
                let len = bytes.len() as u64;
                let op = DiskOp { kind: DriveOpKind::Write, at, len, data: &bytes, fua: true };
                disk.complete(&op, &mut [], rng).expect("a drive that is well");
            }
        }
    }
    fn orders(self, run: &Run) -> Vec<Order> {
        match self.doing {
            Doing::Create => vec![Order::SystemCreate { settings: Box::new(run.settings(0)) }],
            Doing::Leave => vec![Order::HeadRelease { itself: false }, Order::SystemLeave],
        }
    }
    fn crash(self) -> Crash {
        if self.end == End::PowerCut { Crash::PowerCut } else { Crash::Killed }
    }
}

fn of_this(order: &Order) -> bool {
    let force = |o: &Order| matches!(o, Order::PoolImport { force: true, .. });
    matches!(order, Order::SystemCreate { .. } | Order::HeadRelease { .. } | Order::SystemLeave)
        || force(order)
}

impl Run {
    /// Whether orders are cut off in this world, and which.
    fn cut(&self) -> Option<Cut> {
        self.options.cut
    }
    /// It is, and this is one of them.
    pub(super) fn cuts(&self, order: &Order) -> bool {
        self.stage == Stage::Cutting && of_this(order)
    }
    /// Hosts are at work: the orders come.
    pub(super) fn begin_cut(&mut self) {
        let cut = self.cut().expect("a world of a cut");
        self.orders.queue.clear();
        if self.cutting.step == Step::Before
            && let Some(away) = cut.away
        {
            self.cutting.step = Step::Away;
            self.world.unplug(away, false);
            return self.later(AWAY, Alarm::Cut);
        }
        match cut.doing {
            Doing::Create => self.give_orders(cut, Step::First),
            Doing::Leave => {
                self.cutting.step = Step::Releasing;
                self.orders.queue.push_back(Order::HeadRelease { itself: true });
            }
        }
    }
    fn give_orders(&mut self, cut: Cut, step: Step) {
        // The daemon writes its file `link`, if that is not there.
        self.heads.system = true;
        self.cutting.step = step;
        self.orders.queue = cut.orders(self).into();
        if step == Step::First {
            self.world.doom(0, Some(Address::Steward), cut.after, cut.crash());
        }
    }
    /// An order of these was answered.
    pub(super) fn cut_answered(&mut self, order: &Order, answer: Answered) -> Result<(), String> {
        let cut = self.cut().expect("a world of a cut");
        let step = self.cutting.step;
        let reply = answer.map_err(|r| format!("{order:?}, {step:?}, is refused: {:?}", r.why))?;
        match (step, order) {
            (Step::Releasing, _) => {
                // The other daemon forgets its system, and starts alone.
                self.world.fall(1, Crash::Killed);
                self.heads.ready.retain(|s| *s != 1);
                let state = &mut self.world.servers[1].state;
                state.retain(|name, _| !is_left_behind(name));
                let first = first_files(Uuid(*b"the head b alone"));
                state.extend(first.into_iter().map(|(name, contents)| (name.to_string(), contents)));
                self.give_orders(cut, Step::First);
            }
            (Step::Forced, _) => self.give_again(cut),
            (_, Order::SystemCreate { .. }) => {
                let Reply::Created { notices, .. } = reply else { return Err("no answer to create".into()) };
                if !notices.is_empty() {
                    return Err(format!("a system was made, but {notices:?}"));
                }
                self.end_cutting();
                self.second_begins();
            }
            (_, Order::SystemLeave) => {
                self.end_cutting();
                self.world.fall(0, Crash::Killed);
                self.starts_alone();
                self.fell(0, Crash::Killed, STARTS);
            }
            _ => {}
        }
        Ok(())
    }
    fn end_cutting(&mut self) {
        self.cutting.step = Step::Over;
        self.cutting.read_back = self.hosts.good() + READ_BACK;
        self.world.spare();
        for disk in &mut self.world.disks {
            disk.faults.gone = false;
        }
    }
    /// Its file `link` is gone: the daemon removes what else is there of a system, and begins as a head that is alone.
    fn starts_alone(&mut self) {
        self.heads.system = false;
        self.heads.systems += 1;
        self.world.servers[0].state.retain(|name, _| !name.starts_with("system-"));
    }
    /// The orders were cut off.
    pub(super) fn cut_fell(&mut self, crash: Crash) -> Result<(), String> {
        let cut = self.cut().expect("a world of a cut");
        self.harm.troubles += 1;
        self.orders.queue.clear();
        self.fell(0, crash, STARTS);
        if crash == Crash::PowerCut {
            if self.world.runs(1) {
                self.world.fall(1, crash);
            }
            self.world.drives_fall();
            self.hosts.volume.borrow_mut().head_fell(self.options.volatile);
        }
        if cut.end == End::LinkLost {
            self.starts_alone();
        }
        self.cutting.step = Step::Fallen;
        self.check_areas()
    }
    /// The head that was cut off is looked at.
    fn give_again(&mut self, cut: Cut) {
        match cut {
            // Nobody knows of a system any more: the head is alone, as it was to be.
            Cut { doing: Doing::Leave, end: End::LinkLost, .. } => self.end_cutting(),
            _ => self.give_orders(cut, Step::Again),
        }
    }
    /// What goes on from a look at the head.
    pub(super) fn cut_progress(&mut self, snapshot: &Status) -> Result<(), String> {
        let cut = self.cut().expect("a world of a cut");
        self.check_areas()?;
        match self.cutting.step {
            Step::Fallen => {
                let here = snapshot.pools.iter().any(|p| p.name == "tank" && p.state != State::Offline);
                if here {
                    self.give_again(cut);
                    return Ok(());
                }
                let way = |r: &head::order::Reason| of_other_system(&r.cause);
                if cut.end == End::LinkLost && snapshot.reasons.iter().any(way) {
                    self.cutting.step = Step::Forced;
                    let pool = Some("tank".into());
                    self.orders.queue.push_back(Order::PoolImport {
                        pool,
                        name: None,
                        drives: vec![],
                        force: true,
                    });
                    Ok(())
                } else {
                    Err(format!("the pool is not there: {:?}", snapshot.reasons))
                }
            }
            Step::Over
                if self.hosts.good() >= self.cutting.read_back
                    && (self.is_alone() || self.follower_has_all()) =>
            {
                self.calm();
                Ok(())
            }
            _ => Ok(()),
        }
    }
    /// A head that is alone, as it is to be in the end.
    pub(super) fn is_alone(&self) -> bool {
        self.cut().is_some_and(|c| c.doing == Doing::Leave) && self.cutting.step == Step::Over
    }

    /// A drive that says that it is a system's has no bytes of anybody else where that one votes, now and
    /// after a power cut.
    fn check_areas(&self) -> Result<(), String> {
        for disk in self.world.disks.iter().filter(|d| systems(d).iter().any(Option::is_some)) {
            let sectors = AREA.0 / disk.sector..(AREA.0 + AREA.1) / disk.sector;
            if let Some(sector) = sectors.into_iter().find(|s| disk.is_junk(*s)) {
                return Err(format!("{} is a system's, and has old bytes in sector {sector}", disk.spec));
            }
            for head in [HeadNo::A, HeadNo::B] {
                let mut bytes = vec![0; cluster::slot::SLOT_BYTES];
                disk.read(SLOTS_AT[head.index()][1], &mut bytes);
                if Slot::decode(head, &bytes).is_ok_and(|s| s.decided.system == FORMER) {
                    return Err(format!("{} has votes of a former system", disk.spec));
                }
            }
        }
        Ok(())
    }
    /// What must be so in the end.
    pub(super) fn check_cut(&self) -> Result<(), String> {
        let Some(cut) = self.cut() else { return Ok(()) };
        self.check_areas()?;
        let system = match cut.doing {
            Doing::Create => Some(self.settings(0).system),
            Doing::Leave => None,
        };
        for disk in &self.world.disks {
            let (named, registered) = (systems(disk), disk.registrations.look());
            // A drive that came back, or a pool that was taken by force, is reported once.
            let once = cut.away.is_some() || cut.end == End::LinkLost;
            let good = if once { newest(disk) == system } else { named.iter().all(|s| *s == system) };
            // Who does not know of its system takes no key from drives.
            let free = system.is_some() || cut.end == End::LinkLost || registered.keys.is_empty();
            if !good || !free {
                return Err(format!("{} in the end: {named:?}, {registered:?}", disk.spec));
            }
        }
        Ok(())
    }
}

fn config(disk: &Disk, at: u64) -> Vec<u8> {
    let mut bytes = vec![0; CONFIG_BYTES as usize];
    disk.read(at, &mut bytes);
    bytes
}

/// Which system each of a drive's configurations names.
fn systems(disk: &Disk) -> [Option<Uuid>; 2] {
    CONFIG_AT.map(|at| PoolConfig::of_slot(&ConfigSlot::decode(&config(disk, at)).ok()?).ok()?.shared)
}

/// Which the newest of them names.
fn newest(disk: &Disk) -> Option<Uuid> {
    let slots = CONFIG_AT.map(|at| config(disk, at));
    PoolConfig::of_slot(&newest_config([&slots[0], &slots[1]]).ok()?).ok()?.shared
}

/// Whether a pool is away because it is of a system that this head is not in, so that it may be imported by force.
fn of_other_system(cause: &Cause) -> bool {
    match cause {
        Cause::Pool(PoolCause::PoolNotImported { why, .. }) => {
            matches!(**why, Why::Pool(PoolRefusal::PoolOfOtherSystem { .. }))
        }
        Cause::Pool(PoolCause::VolumesKept { why, .. }) => of_other_system(why),
        _ => false,
    }
}
