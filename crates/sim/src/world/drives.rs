//! Drives at work: operations that end in any order, hang, are torn by a power cut or outlive the head
//! that asked for them; claims that are exclusive.

use super::actor::ActorId;
use super::{Happening, HeadOrHost, World};
use crate::disk::DiskOp;
use crate::registrants::Nexus;
use base::machine::Shape;
use base::{
    Address, DriveError, DriveHealth, DriveId, DriveOp, DriveOpKind, Duration, Event, Instant, OpenError,
    Token,
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
    /// The drive, and which of its appearances was opened; None if nobody has it open.
    place: Option<Opened>,
    /// Tells users of one slot apart.
    nth: u64,
    /// Data of a write whose machine is gone: the kernel still holds the memory as it was.
    orphan: Option<Vec<u8>>,
    /// By which path it came, and whether it was not let in, or was ended there by a reset.
    nexus: Nexus,
    fenced: bool,
}

/// An open drive. One that was unplugged comes back as another: what was opened stays dead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Opened {
    pub disk: usize,
    pub appearance: u32,
}

struct Opening {
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
    open: BTreeMap<DriveId, Opened>,
    ops: Vec<Option<PendingOp>>,
    free: Vec<usize>,
    started: u64,
    closing: Vec<(DriveId, Opened)>,
    opening: Vec<Opening>,
}

impl Drives {
    pub fn idle(&self) -> bool {
        self.ops.iter().all(Option::is_none)
    }
    /// Whether a drive is open as it is there now.
    fn has_open(&self, now: Opened) -> bool {
        self.open.values().any(|d| *d == now)
    }
    fn busy(&self, disk: usize) -> bool {
        self.ops.iter().flatten().any(|p| p.place.is_some_and(|p| p.disk == disk))
    }
}

impl World {
    pub(super) fn drive(&mut self, actor: ActorId, op: DriveOp) {
        let place = self.drives.open.get(&op.drive).copied();
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
        let nexus = self.nexus_of(actor);
        let fenced = place.is_some_and(|p| !self.disks[p.disk].registrations.admits(nexus));
        match place {
            Some(place) if !fenced && self.disks[place.disk].appearance == place.appearance => {
                self.surface_asked(nth, actor, &op, place);
            }
            Some(place) => self.surface_in_vain(&op, place.disk),
            None => {}
        }
        let pending = PendingOp { actor, life, op, place, nth, orphan: None, nexus, fenced };
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
        let slow = place.map_or(0, |p| self.disks[p.disk].faults.slow_us);
        let slow = if slow > 0 { self.rng.between(slow / 2, slow) } else { 0 };
        let at = self.now() + Duration::from_micros(5 + self.rng.below(self.kindness.drive_us) + slow);
        self.push(at, Happening::DriveDone { op: index, nth });
    }
    /// A drive does an operation, or part of it (`tear`), on memory as it is now.
    fn carry(&mut self, pending: &PendingOp, tear: bool) -> Result<(), DriveError> {
        let Some(Opened { disk, appearance }) = pending.place else { return Err(DriveError::Gone) };
        let Self { actors, heads, disks, rng, .. } = self;
        let disk = &mut disks[disk];
        if disk.appearance != appearance {
            return Err(DriveError::Gone);
        }
        if pending.fenced {
            return Err(DriveError::Fenced);
        }
        let op = &pending.op;
        let faults = disk.faults.clone();
        disk.faults = faults.met_by(pending.actor);
        let mut result = Ok(());
        let mut land = |data: &[u8], out: &mut [u8]| {
            let op = DiskOp { kind: op.kind, at: op.at, len: op.len, data, fua: op.fua };
            if tear {
                disk.tear(&op, rng);
            } else {
                result = disk.complete(&op, out, rng);
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
            self.surface_hangs(nth);
            self.push(at, Happening::DriveDone { op: index, nth });
            return;
        }
        self.drives.free.push(index);
        self.surface_ends(nth);
        let result = self.carry(&pending, false);
        self.surface_ended(nth, result);
        let PendingOp { actor, life, op, .. } = pending;
        if self.actors[actor].life == life {
            let event = HeadOrHost::Head(Event::DriveDone { token: op.token, result });
            self.post(actor, Duration::from_nanos(1), event);
        }
        self.open_waiting();
        if let Some(id) = self.addresses.get(&Address::Steward).copied() {
            self.close_waiting(id);
        }
    }
    /// The head that asked is gone. The kernel goes on with what it has taken; claims last as long.
    pub(super) fn orphan_ops(&mut self) {
        for i in 0..self.drives.ops.len() {
            let Self { drives, actors, heads, .. } = self;
            let Some(pending) = drives.ops[i].as_mut().filter(|p| p.orphan.is_none()) else { continue };
            let mut copy = vec![];
            if pending.op.kind == DriveOpKind::Write {
                let mut take = |bytes: &mut [u8]| copy.extend_from_slice(bytes);
                let found = heads.iter().any(|id| actors[*id].try_dma(pending.op.data, &mut take));
                assert!(found, "drives work on memory of heads");
            }
            pending.orphan = Some(copy);
        }
        self.forget_claims();
    }
    /// The power is gone: drives have heard of any part of what was under way.
    pub(super) fn tear_ops(&mut self) {
        for i in 0..self.drives.ops.len() {
            let Some(pending) = self.drives.ops[i].take() else { continue };
            self.drives.free.push(i);
            let _ = self.carry(&pending, true);
        }
        for disk in &mut self.disks {
            disk.power_cut(&mut self.rng);
        }
        self.forget_claims();
    }
    /// Whether the head has this drive open, as it is there now.
    pub(super) fn is_open(&self, disk: usize) -> bool {
        self.drives.has_open(Opened { disk, appearance: self.disks[disk].appearance })
    }
    /// The unit is reset: what came by other paths than `own` is over, having landed in part or not at all. What came by
    /// that one is sent again by the kernel, and goes on.
    pub(super) fn reset_unit(&mut self, disk: usize, own: Nexus) {
        for i in 0..self.drives.ops.len() {
            let here = |p: &mut PendingOp| p.nexus != own && p.place.is_some_and(|p| p.disk == disk);
            let Some(mut pending) = self.drives.ops[i].take_if(here) else { continue };
            let _ = self.carry(&pending, true);
            pending.fenced = true;
            self.drives.ops[i] = Some(pending);
        }
    }
    /// Which drive of the machine is open under this number, if it is the one that is there now.
    pub(super) fn there(&self, drive: DriveId) -> Option<usize> {
        let opened = self.drives.open.get(&drive)?;
        (self.disks[opened.disk].appearance == opened.appearance).then_some(opened.disk)
    }
    fn forget_claims(&mut self) {
        self.drives.open.clear();
        self.drives.closing.clear();
        self.drives.opening.clear();
    }
    /// One drive loses its power, and with it what it had not made durable; or it is only pulled and put
    /// back. What is under way ends in an error, and what was opened is dead: only a new claim helps.
    pub fn unplug(&mut self, disk: usize, power: bool) {
        for i in 0..self.drives.ops.len() {
            let here = |p: &mut PendingOp| p.place.is_some_and(|p| p.disk == disk);
            let Some(pending) = self.drives.ops[i].take_if(here) else { continue };
            let _ = self.carry(&pending, true);
            self.drives.ops[i] = Some(pending);
        }
        let Self { disks, rng, surface, now, .. } = self;
        if power {
            disks[disk].power_cut(rng);
            surface.drained.insert(disk, *now);
        }
        disks[disk].appearance += 1;
        disks[disk].faults.gone = true;
    }

    pub(super) fn open_drive(&mut self, actor: ActorId, token: Token, drive: DriveId, spec: &str) {
        match self.disks.iter().position(|d| d.spec == spec) {
            Some(disk) => {
                let life = self.actors[actor].life;
                let since = self.now();
                self.drives.opening.push(Opening { actor, life, token, drive, disk, since });
                self.open_waiting();
                if !self.drives.opening.is_empty() {
                    self.push(self.now() + LOOK_AGAIN, Happening::OpenAgain);
                }
            }
            None => {
                let result = Err(format!("there is no drive {spec}").into());
                self.tell_head(actor, Event::DriveOpened { token, result });
            }
        }
    }
    pub(super) fn close_drive(&mut self, actor: ActorId, drive: DriveId) {
        if let Some(opened) = self.drives.open.remove(&drive) {
            self.drives.closing.push((drive, opened));
        }
        self.close_waiting(actor);
    }
    fn close_waiting(&mut self, id: ActorId) {
        for (drive, opened) in core::mem::take(&mut self.drives.closing) {
            if self.drives.busy(opened.disk) {
                self.drives.closing.push((drive, opened));
            } else {
                self.tell_head(id, Event::DriveClosed { drive });
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
            let ours = self.drives.has_open(now) || self.drives.closing.iter().any(|(_, d)| *d == now);
            // An exclusive claim: operations of an earlier life still hold the drive, and are waited for a while.
            let busy = self.drives.busy(disk);
            let patient = self.now().since(opening.since) < CLAIM_TIME;
            // Whoever opens a file reads from it; whoever opens a device does not.
            let d = &self.disks[disk];
            let faults = d.faults.met_by(opening.actor);
            let hangs = faults.hang && d.opening_reads && !faults.gone;
            if !ours && (busy && patient || !busy && hangs) {
                self.drives.opening.push(opening);
                continue;
            }
            let held = ours || busy;
            let d = &self.disks[disk];
            let result = if held {
                Err(OpenError { held: true, missing: false, words: format!("{} is in use", d.spec) })
            } else if faults.gone {
                Err(format!("{} is not there", d.spec).into())
            } else {
                Ok(d.info())
            };
            if result.is_ok() {
                self.drives.open.insert(opening.drive, now);
            }
            if self.actors[opening.actor].life == opening.life {
                self.tell_head(opening.actor, Event::DriveOpened { token: opening.token, result });
            }
        }
    }
    pub(super) fn inspect_drive(&mut self, actor: ActorId, token: Token, drive: DriveId) {
        let alive = |p: &&Opened| {
            let disk = &self.disks[p.disk];
            !disk.faults.met_by(actor).gone && disk.appearance == p.appearance
        };
        let result = match self.drives.open.get(&drive).filter(alive) {
            Some(p) => Ok(DriveHealth { bytes: self.disks[p.disk].bytes, ..DriveHealth::default() }),
            None => Err(DriveError::Gone),
        };
        self.tell_head(actor, Event::DriveInspected { token, result });
    }
    pub(super) fn shape(&mut self, drive: DriveId, shape: &Shape) {
        if let Some(opened) = self.drives.open.get(&drive) {
            let faults = &mut self.disks[opened.disk].faults;
            faults.hang = shape.hang;
            faults.gone = shape.gone;
            faults.slow_us = u64::from(shape.latency_us);
            faults.read_errors_ppm = shape.read_errors_ppm;
            faults.write_errors_ppm = shape.write_errors_ppm;
        }
    }
}
