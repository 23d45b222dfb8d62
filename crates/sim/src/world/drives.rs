//! Drives at work: operations that end in any order, hang, are torn by a power cut or outlive the head
//! that asked for them; exclusive claims.

use super::actor::ActorId;
use super::drive_checker::Asked;
use super::{Happening, HeadOrHost, World, Wrong};
use crate::disk::{Disk, DiskOp};
use crate::registrants::Nexus;
use base::machine::Shape;
use base::{
    Address, DriveError, DriveHealth, DriveId, DriveOp, DriveOpKind, DriveOpenFault, Duration, Event,
    Instant, OpenError, Token,
};
use std::collections::BTreeMap;

/// How long the kernel is asked for a claim that an earlier life may still have (`uring::drive`).
const CLAIM_TIME: Duration = Duration::from_secs(1);
/// How often what hangs looks whether it may go on.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A drive operation under way.
struct PendingOp {
    actor: ActorId,
    life: u32,
    op: DriveOp,
    /// The drive, and which of its appearances was opened; None if it is not open.
    place: Option<Opened>,
    /// Tells users of one slot apart.
    nth: u64,
    /// When it was asked for, and whether a leg of the drive's array was out by then.
    asked: Instant,
    beside_absent: bool,
    /// Data of a write whose machine is gone: the kernel still holds the memory as it was.
    orphan: Option<Vec<u8>>,
    /// By which path it comes, and whether it was not let in, or was ended there by a reset.
    nexus: Nexus,
    fenced: bool,
    /// It has left the kernel. Worlds of one head know no difference.
    arrived: bool,
    /// The path was lost: no event comes.
    unheard: bool,
    /// Its server sends no more of it: what lands may be a part.
    torn: bool,
}

/// An open drive. One that was unplugged comes back as another: what was opened stays dead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Opened {
    pub disk: usize,
    pub appearance: u32,
}

struct Opening {
    server: usize,
    actor: ActorId,
    life: u32,
    token: Token,
    drive: DriveId,
    disk: usize,
    since: Instant,
}

/// What is open and under way.
#[derive(Default)]
pub(super) struct Drives {
    /// By server, and the number that its head has given them.
    open: BTreeMap<(usize, DriveId), Opened>,
    ops: Vec<Option<PendingOp>>,
    free: Vec<usize>,
    started: u64,
    closing: Vec<((usize, DriveId), Opened)>,
    opening: Vec<Opening>,
}

impl Drives {
    pub fn idle(&self) -> bool {
        self.ops.iter().all(Option::is_none)
    }
    /// Whether a drive is open as it is there now.
    fn has_open(&self, server: usize, now: Opened) -> bool {
        self.open.iter().any(|((by, _), d)| *by == server && *d == now)
    }
    fn busy(&self, server: usize, disk: usize) -> bool {
        let there = |p: &PendingOp| p.place.is_some_and(|p| p.disk == disk);
        self.ops.iter().flatten().any(|p| usize::from(p.nexus) == server && there(p))
    }
}

impl World {
    pub(super) fn drive(&mut self, actor: ActorId, op: DriveOp) {
        let nexus = self.nexus_of(actor);
        let place = self.drives.open.get(&(nexus.into(), op.drive)).copied();
        self.drives.started += 1;
        let nth = self.drives.started;
        let life = self.actors[actor].life;
        if self.trace {
            let DriveOp { token, kind, at, len, fua, .. } = &op;
            let spec = place.map(|p| self.disks[p.disk].spec.clone()).unwrap_or_default();
            let fua = if *fua { ", FUA" } else { "" };
            let words = format!("head actor {actor} to {spec}: {token:?} {kind:?} at {at}, {len} bytes{fua}");
            self.say(|| words);
        }
        let shared = self.is_shared();
        let fenced = !shared && place.is_some_and(|p| !self.disks[p.disk].admits(nexus));
        let writes = place.filter(|_| op.kind == DriveOpKind::Write);
        let mut pending = PendingOp {
            actor,
            life,
            op,
            place,
            nth,
            asked: self.now(),
            beside_absent: writes.is_some_and(|p| self.is_beside_absent(p.disk)),
            orphan: None,
            nexus,
            fenced,
            arrived: !shared,
            unheard: false,
            torn: false,
        };
        match place {
            Some(_) if shared => {}
            Some(place) => self.tell_checker(&mut pending, place, fenced),
            None => self.checker_nowhere(actor, op.kind),
        }
        let index = match self.drives.free.pop() {
            Some(i) => {
                self.drives.ops[i] = Some(pending);
                i
            }
            None => {
                self.drives.ops.push(Some(pending));
                self.drives.ops.len() - 1
            }
        };
        if shared {
            return self.leaves_later(index, nth);
        }
        let slow = place.map_or(0, |p| self.disks[p.disk].faults.slow_us);
        let slow = if slow > 0 { self.takes_longer(slow) } else { 0 };
        let at = self.now() + Duration::from_micros(5 + self.rng.below(self.delivery.drive_us) + slow);
        self.push(at, Happening::DriveDone { op: index, nth });
    }
    /// A slow drive takes up to so much longer.
    fn takes_longer(&mut self, most_us: u64) -> u64 {
        self.tally.meet(Wrong::Slow);
        self.rng.between(most_us / 2, most_us)
    }
    /// An operation comes to its drive, which lets it in or not.
    fn tell_checker(&mut self, pending: &mut PendingOp, place: Opened, refused: bool) {
        let &mut PendingOp { nth, actor, op, asked, beside_absent, ref mut orphan, .. } = pending;
        let orphan = orphan.as_deref_mut();
        let asked = Asked { nth, actor, op, place, at: asked, beside_absent, orphan };
        if refused || self.disks[place.disk].appearance != place.appearance {
            self.checker_in_vain(&asked);
        } else {
            self.checker_asked(asked);
        }
    }
    /// A drive does an operation, or part of it (`tear`), on memory as it is now.
    fn carry(&mut self, pending: &PendingOp, tear: bool) -> Result<(), DriveError> {
        if self.trace {
            let (token, part) = (pending.op.token, if tear || pending.torn { "a part of " } else { "" });
            let (fenced, actor) = (if pending.fenced { "not " } else { "" }, pending.actor);
            self.say(|| format!("head actor {actor}: {part}{token:?} is {fenced}done"));
        }
        let Some(Opened { disk, appearance }) = pending.place else { return Err(DriveError::Gone) };
        let Self { actors, heads, disks, rng, tally, .. } = self;
        let disk = &mut disks[disk];
        if disk.appearance != appearance {
            tally.meet(Wrong::Unplug);
            return Err(DriveError::Gone);
        }
        if pending.fenced {
            return Err(DriveError::Fenced);
        }
        let tear = tear || pending.torn;
        let op = &pending.op;
        let faults = disk.faults;
        disk.faults = faults.met_by(pending.actor);
        let mut result = Ok(());
        let mut land = |data: &[u8], out: &mut [u8]| {
            let op = DiskOp { kind: op.kind, at: op.at, len: op.len, data, fua: op.fua };
            if tear {
                disk.tear(&op, rng);
            } else {
                result = disk.complete(&op, out, rng);
                if let Some(what) = disk.has_met(&op, result) {
                    tally.meet(what);
                }
            }
        };
        if let Some(data) = &pending.orphan {
            if op.kind != DriveOpKind::Read {
                land(data, &mut []);
            }
            disk.faults = faults;
            return result;
        }
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
        disk.faults = faults;
        result
    }
    pub(super) fn drive_done(&mut self, index: usize, nth: u64) {
        let Some(pending) = self.drives.ops[index].take_if(|p| p.nth == nth) else { return };
        let hangs = |p: Opened| {
            let disk = &self.disks[p.disk];
            disk.faults.met_by(pending.actor).hang && disk.appearance == p.appearance
        };
        if pending.place.is_some_and(hangs) {
            // It looks again later: hung operations complete when the drive comes back.
            let at = self.now() + LOOK_AGAIN;
            self.drives.ops[index] = Some(pending);
            self.tally.meet(Wrong::Hang);
            self.checker_hangs(nth);
            self.push(at, Happening::DriveDone { op: index, nth });
            return;
        }
        self.drives.free.push(index);
        self.checker_ends(nth);
        let result = self.carry(&pending, false);
        let result = if pending.unheard { Err(DriveError::Gone) } else { result };
        self.checker_ended(nth, result);
        let PendingOp { actor, life, op, nexus, .. } = pending;
        if self.actors[actor].life == life {
            let event = HeadOrHost::Head(Event::DriveDone { token: op.token, result });
            self.post(actor, Duration::from_nanos(1), event);
        }
        self.open_waiting();
        self.close_waiting(nexus.into());
    }
    /// The head that asked is gone. The kernel goes on with what it has taken; claims last as long.
    pub(super) fn orphan_ops(&mut self, server: usize) {
        for i in 0..self.drives.ops.len() {
            let Self { drives, actors, heads, .. } = self;
            let its = |p: &&mut PendingOp| p.orphan.is_none() && usize::from(p.nexus) == server;
            let Some(pending) = drives.ops[i].as_mut().filter(its) else { continue };
            let mut copy = vec![];
            if pending.op.kind == DriveOpKind::Write {
                let mut take = |bytes: &mut [u8]| copy.extend_from_slice(bytes);
                let found = heads.iter().any(|id| actors[*id].try_dma(pending.op.data, &mut take));
                assert!(found, "drives work on memory of heads");
            }
            pending.orphan = Some(copy);
        }
        self.forget_claims(server);
    }
    /// The power is gone: drives have heard of any part of what was under way.
    pub(super) fn tear_ops(&mut self) {
        self.tally.make(Wrong::DrivesPowerCut);
        if !self.drives.idle() || self.disks.iter().any(Disk::has_cached) {
            self.tally.meet(Wrong::DrivesPowerCut);
        }
        for i in 0..self.drives.ops.len() {
            let Some(pending) = self.drives.ops[i].take() else { continue };
            self.drives.free.push(i);
            let _ = self.carry(&pending, true);
        }
        for disk in &mut self.disks {
            if disk.power_cut(&mut self.rng) {
                self.tally.make(Wrong::ForgetKeys);
            }
        }
        for server in 0..self.servers.len() {
            self.forget_claims(server);
        }
    }
    /// Whether the head that leads has this drive open, as it is there now.
    pub(super) fn is_open(&self, disk: usize) -> bool {
        let there = Opened { disk, appearance: self.disks[disk].appearance };
        self.drives.has_open(self.drive_checker.heads.lead(), there)
    }
    /// The unit is reset: what came by other paths than `own` is over, having landed in part or not at all. What came by
    /// that one is sent again by the kernel, and goes on.
    pub(super) fn reset_unit(&mut self, disk: usize, own: Nexus) {
        for i in 0..self.drives.ops.len() {
            let here =
                |p: &mut PendingOp| p.arrived && p.nexus != own && p.place.is_some_and(|p| p.disk == disk);
            let Some(mut pending) = self.drives.ops[i].take_if(here) else { continue };
            let _ = self.carry(&pending, true);
            pending.fenced = true;
            self.checker_ended(pending.nth, Err(DriveError::Fenced));
            self.drives.ops[i] = Some(pending);
        }
    }
    /// Whether another head than this has a drive open, or the kernel still works on it for that one.
    pub(super) fn others_have(&self, disk: usize, own: Nexus) -> bool {
        let Drives { open, closing, ops, .. } = &self.drives;
        let theirs = |by: usize, at: &Opened| by != usize::from(own) && at.disk == disk;
        open.iter().any(|((by, _), at)| theirs(*by, at))
            || closing.iter().any(|((by, _), at)| theirs(*by, at))
            || ops.iter().flatten().any(|p| p.place.is_some_and(|at| theirs(p.nexus.into(), &at)))
    }
    /// Which drive is open under this number of a server's head, if it is the one that is there now and is reached.
    pub(super) fn there(&self, server: usize, drive: DriveId) -> Option<usize> {
        let opened = self.drives.open.get(&(server, drive)).filter(|o| self.has_path(server, o.disk))?;
        (self.disks[opened.disk].appearance == opened.appearance).then_some(opened.disk)
    }
    fn forget_claims(&mut self, server: usize) {
        self.drives.open.retain(|(of, _), _| *of != server);
        self.drives.closing.retain(|((of, _), _)| *of != server);
        self.drives.opening.retain(|o| o.server != server);
    }
    /// One drive loses its power, and with it what it had not made durable; or it is only pulled and put
    /// back. What is under way ends in an error, and what was opened is dead: only a new claim helps. What has not
    /// come to it does not land.
    pub fn unplug(&mut self, disk: usize, power: bool) {
        self.tally.make(if power { Wrong::DrivePower } else { Wrong::Unplug });
        if power && self.disks[disk].has_cached() {
            self.tally.meet(Wrong::DrivePower);
        }
        self.pull(disk, power);
    }
    fn pull(&mut self, disk: usize, power: bool) {
        for i in 0..self.drives.ops.len() {
            let here = |p: &mut PendingOp| p.arrived && p.place.is_some_and(|p| p.disk == disk);
            let Some(pending) = self.drives.ops[i].take_if(here) else { continue };
            let _ = self.carry(&pending, true);
            self.drives.ops[i] = Some(pending);
        }
        let Self { disks, rng, drive_checker, now, tally, .. } = self;
        if power {
            if disks[disk].power_cut(rng) {
                tally.make(Wrong::ForgetKeys);
            }
            drive_checker.drained.insert(disk, *now);
        }
        disks[disk].appearance += 1;
        disks[disk].faults.gone = true;
    }

    /// All drives lose their power at the same moment, and servers keep theirs. Each is as `unplug` says.
    pub fn unplug_all(&mut self) {
        self.tally.make(Wrong::DrivesPower);
        if !self.drives.idle() || self.disks.iter().any(Disk::has_cached) {
            self.tally.meet(Wrong::DrivesPower);
        }
        (0..self.disks.len()).for_each(|disk| self.pull(disk, true));
        self.drive_checker.heads.upset(self.now);
    }

    pub(super) fn open_drive(&mut self, actor: ActorId, token: Token, drive: DriveId, spec: &str) {
        match self.disks.iter().position(|d| d.spec == spec) {
            Some(disk) => {
                let life = self.actors[actor].life;
                let since = self.now();
                let server = usize::from(self.nexus_of(actor));
                self.drives.opening.push(Opening { server, actor, life, token, drive, disk, since });
                self.open_waiting();
                if !self.drives.opening.is_empty() {
                    self.push(self.now() + LOOK_AGAIN, Happening::OpenAgain);
                }
            }
            None => {
                let result = Err(OpenError::new(spec, DriveOpenFault::Missing));
                self.send_to_head(actor, Event::DriveOpened { token, result });
            }
        }
    }
    pub(super) fn close_drive(&mut self, actor: ActorId, drive: DriveId) {
        let server = usize::from(self.nexus_of(actor));
        if let Some(opened) = self.drives.open.remove(&(server, drive)) {
            self.drives.closing.push(((server, drive), opened));
        }
        self.close_waiting(server);
    }
    fn close_waiting(&mut self, server: usize) {
        let Some(id) = self.servers[server].addresses.get(&Address::Steward).copied() else { return };
        for ((of, drive), opened) in core::mem::take(&mut self.drives.closing) {
            if of != server || self.drives.busy(of, opened.disk) {
                self.drives.closing.push(((of, drive), opened));
            } else {
                self.send_to_head(id, Event::DriveClosed { drive });
            }
        }
    }
    /// Somebody waited for a drive to be opened.
    pub(super) fn open_again(&mut self) {
        self.open_waiting();
        if !self.drives.opening.is_empty() {
            self.push(self.now() + LOOK_AGAIN, Happening::OpenAgain);
        }
    }
    fn open_waiting(&mut self) {
        for opening in core::mem::take(&mut self.drives.opening) {
            let disk = opening.disk;
            let now = Opened { disk, appearance: self.disks[disk].appearance };
            let server = opening.server;
            let closing = |((by, _), d): &((usize, DriveId), Opened)| *by == server && *d == now;
            let ours = self.drives.has_open(server, now) || self.drives.closing.iter().any(closing);
            // An exclusive claim: operations of an earlier life still hold the drive, and are waited for a while.
            let busy = self.drives.busy(server, disk);
            let patient = self.now().since(opening.since) < CLAIM_TIME;
            // Whoever opens a file reads from it; whoever opens a device does not.
            let d = &self.disks[disk];
            let mut faults = d.faults.met_by(opening.actor);
            faults.gone |= !self.has_path(server, disk);
            let hangs = faults.hang && d.opening_reads && !faults.gone;
            if !ours && (busy && patient || !busy && hangs) {
                self.drives.opening.push(opening);
                continue;
            }
            let held = ours || busy;
            let d = &self.disks[disk];
            let result = if held {
                Err(OpenError::new(&d.spec, DriveOpenFault::Locked))
            } else if faults.gone {
                Err(OpenError::new(&d.spec, DriveOpenFault::NoMedium))
            } else {
                Ok(d.info())
            };
            if result.is_ok() {
                self.drives.open.insert((server, opening.drive), now);
            }
            if self.actors[opening.actor].life == opening.life {
                self.send_to_head(opening.actor, Event::DriveOpened { token: opening.token, result });
            }
        }
    }
    pub(super) fn inspect_drive(&mut self, actor: ActorId, token: Token, drive: DriveId) {
        let server = usize::from(self.nexus_of(actor));
        let alive = |p: &&Opened| {
            let disk = &self.disks[p.disk];
            !disk.faults.met_by(actor).gone
                && disk.appearance == p.appearance
                && self.has_path(server, p.disk)
        };
        let result = match self.drives.open.get(&(server, drive)).filter(alive) {
            Some(p) => Ok(DriveHealth { bytes: self.disks[p.disk].bytes, ..DriveHealth::default() }),
            None => Err(DriveError::Gone),
        };
        self.send_to_head(actor, Event::DriveInspected { token, result });
    }
    pub(super) fn shape(&mut self, actor: ActorId, drive: DriveId, shape: &Shape) {
        let server = usize::from(self.nexus_of(actor));
        if let Some(opened) = self.drives.open.get(&(server, drive)) {
            let faults = &mut self.disks[opened.disk].faults;
            faults.hang = shape.hang;
            faults.gone = shape.gone;
            faults.slow_us = u64::from(shape.latency_us);
            faults.read_errors_ppm = shape.read_errors_ppm;
            faults.write_errors_ppm = shape.write_errors_ppm;
        }
    }
}

// Drives that two servers share: an operation has two moments.
impl World {
    /// It waits in its server's kernel.
    fn leaves_later(&mut self, op: usize, nth: u64) {
        let at = self.now() + Duration::from_micros(1 + self.rng.below(self.delivery.drive_us));
        self.push(at, Happening::DriveArrives { op, nth });
    }
    pub(super) fn server_of_op(&self, op: usize, nth: u64) -> Option<usize> {
        let pending = self.drives.ops[op].as_ref().filter(|p| p.nth == nth)?;
        Some(pending.nexus.into())
    }
    /// It is at its drive, which looks whether its server may; what was let in lands later, whatever becomes of the
    /// registration.
    pub(super) fn drive_arrives(&mut self, op: usize, nth: u64) {
        let Some(mut pending) = self.drives.ops[op].take_if(|p| p.nth == nth) else { return };
        let (nexus, place) = (pending.nexus, pending.place);
        let disk = place.map(|p| p.disk);
        let lost = disk.is_some_and(|d| !self.has_path(nexus.into(), d));
        let fenced = disk.is_some_and(|d| !self.disks[d].admits(nexus));
        let slow = disk.map_or(0, |d| self.disks[d].faults.slow_us);
        let slow = if slow > 0 { self.takes_longer(slow) } else { 0 };
        let late = self.rng.chance(self.delivery.late_permille, 1000) && !lost && !fenced;
        let late = if late { self.rng.below(900_000) } else { 0 };
        let takes = 5 + self.rng.below(self.delivery.drive_us) + slow + late;
        if let Some(place) = place {
            self.tell_checker(&mut pending, place, lost || fenced);
        }
        if lost {
            self.tally.meet(Wrong::LosePath);
            if self.has_no_path(nexus.into()) {
                self.tally.meet(Wrong::LoseAllPaths);
            }
        }
        pending.arrived = true;
        pending.fenced = fenced;
        if lost {
            pending.place = None;
        }
        self.drives.ops[op] = Some(pending);
        self.push(self.now() + Duration::from_micros(takes), Happening::DriveDone { op, nth });
    }
    /// What a server had at a drive to which it loses the path lands, and no event comes.
    pub(super) fn answers_are_lost(&mut self, server: usize, disk: usize) {
        let its = |p: &&mut PendingOp| {
            usize::from(p.nexus) == server && p.place.is_some_and(|p| p.disk == disk) && p.arrived
        };
        self.drives.ops.iter_mut().flatten().filter(its).for_each(|p| p.unheard = true);
    }
    /// The power of a server is cut: what had not left it is gone, of the rest any part lands.
    pub(super) fn drop_ops_of(&mut self, server: usize) {
        self.orphan_ops(server);
        for i in 0..self.drives.ops.len() {
            let its = |p: &&mut PendingOp| usize::from(p.nexus) == server;
            let Some(pending) = self.drives.ops[i].as_mut().filter(its) else { continue };
            if pending.arrived {
                pending.torn = self.rng.chance(1, 2);
            } else {
                self.drives.ops[i] = None;
                self.drives.free.push(i);
            }
        }
    }
    /// A server comes anew to its drives: these end what is left of its last life.
    pub(super) fn end_ops_of(&mut self, server: usize) {
        for i in 0..self.drives.ops.len() {
            let its = |p: &mut PendingOp| usize::from(p.nexus) == server;
            if let Some(pending) = self.drives.ops[i].take_if(its) {
                self.drives.free.push(i);
                let _ = self.carry(&pending, true);
                self.checker_ended(pending.nth, Err(DriveError::Gone));
            }
        }
    }
    /// Whether a change of this place has left a head, and has not come to its drive.
    pub(super) fn is_on_its_way(&self, disk: usize, at: u64, len: u64) -> bool {
        let there = |p: &PendingOp| {
            let DriveOp { kind, at: from, len: bytes, .. } = p.op;
            let changes = !matches!(kind, DriveOpKind::Read | DriveOpKind::Flush);
            changes && p.place.is_some_and(|p| p.disk == disk) && from < at + len && at < from + bytes
        };
        self.drives.ops.iter().flatten().any(|p| !p.arrived && there(p))
    }
    /// Whether an operation has not come to its drive for so long.
    pub(super) fn is_late_on_its_way(&self, time: Duration) -> bool {
        self.drives.ops.iter().flatten().any(|p| !p.arrived && self.now().since(p.asked) > time)
    }
    /// No operation of this server is at a drive, or on its way there.
    pub fn has_no_ops(&self, server: usize) -> bool {
        !self.drives.ops.iter().flatten().any(|p| usize::from(p.nexus) == server)
    }
}
