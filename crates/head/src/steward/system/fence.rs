//! Nobody serves from a drive before the other head is shut off it: every drive that a leader takes goes through here.

use crate::steward::context::array::{ArrayContext, Outlook};
use crate::steward::context::head::{HeadContext, Stop};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::probe::Probe;
use crate::steward::context::system::SystemContext;
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use crate::steward::state::config::PoolConfig;
use crate::steward::system::behind::not_shut_out;
use base::fence::ReservationKind;
use base::{
    Bug, DriveError, DriveId, DriveInfo, Duration, Fence, FenceAct, FenceError, FenceKey, FenceKind, FenceOp,
    Uuid, planted,
};
use cluster::fence::{AGAIN, ASK, PUT_OUT};
use finding::{OpenFault, ShutOutFault, SystemEvent, SystemNotice, UnopenedDrive};
use std::cell::Cell;
use std::rc::Rc;

/// Where a system has its own records on each drive, offset and length.
const AREA: (u64, u64) = (3 << 20, 1 << 20);
/// How long a file is waited for before the process is killed that has it.
const LET_GO: Duration = Duration::from_millis(60);
/// The same of a process that is well and hears that it is out: it stops in order or executes itself anew, and the kernel takes its time to
/// let go for it, since it clears the memory first. Hosts wait for no longer than that takes.
const LEAVE: Duration = Duration::from_secs(2);
/// How long a takeover in which enough drives have confirmed waits for the rest.
const REST: Duration = Duration::from_millis(100);
/// How long a drive may take to register a head.
const REGISTER: Duration = Duration::from_secs(1);

impl Procedures {
    /// Whether this head is one of two.
    pub(crate) fn is_in_system(&self) -> bool {
        self.context().system.is_some()
    }
    /// The system of two that this head is one of.
    pub(crate) fn system(&self) -> Option<Uuid> {
        self.context().system.as_ref().map(|s| s.member().known().system)
    }
    /// Registers this head with a drive under its own key, in place of whatever key it had there.
    pub(crate) async fn register(&self, drive: DriveId) -> Result<Fence, FenceError> {
        let key = self.context().system.as_ref().map(|s| s.own_key()).expect("one of two");
        self.cx.fence(drive, FenceOp { act: FenceAct::Register { key }, limit: REGISTER }).await
    }
    /// Takes this head's own key from a drive.
    pub(super) async fn unregister(&self, drive: DriveId) {
        let key = self.context().system.as_ref().map(|s| s.own_key()).expect("one of two");
        let _ = self.cx.fence(drive, FenceOp { act: FenceAct::Unregister { key }, limit: REGISTER }).await;
    }
    /// Takes the key of every process of the other head that is out from a drive, once. With `anew` this head registers first: only where
    /// nothing is served from the drive, since who was shut out in the meantime would let itself in again. True: it has confirmed.
    async fn fence_once(&self, drive: DriveId, kind: FenceKind, anew: bool) -> Result<bool, FenceError> {
        if anew {
            self.register(drive).await?;
        }
        let told = |context: &HeadContext| {
            let of = |s: &SystemContext| (s.own_key(), s.victim(), s.is_believed_off(), s.other_lets_go());
            context.system.as_ref().map(of)
        };
        let (key, victim, believed, lets_go) = told(&self.context()).expect("one of two");
        let op = |act| FenceOp { act, limit: ASK };
        let mut there = match victim {
            Some((victim, process)) => {
                let act = |process| FenceAct::ShutOut { key, victim, process };
                let mut there = Err(FenceError::TimedOut);
                if kind == FenceKind::File {
                    // A process that has let go of a file need not be killed: it may have started anew by now, and would be again.
                    let limit = if lets_go && !believed { LEAVE } else { LET_GO };
                    there = self.cx.fence(drive, FenceOp { act: act(None), limit }).await;
                }
                if there == Err(FenceError::TimedOut) {
                    let process = process.filter(|_| kind == FenceKind::File);
                    there = self.cx.fence(drive, op(act(process))).await;
                }
                match there {
                    Err(FenceError::Conflict) => self.take_reservation(drive, key).await?,
                    Err(_) if believed => return Ok(true),
                    Err(FenceError::TimedOut) if planted(Bug::LateFenceIsGood) => return Ok(true),
                    there => there?,
                }
            }
            // The other one is in, or there never was one.
            None => {
                match self.cx.fence(drive, FenceOp { act: FenceAct::Reserve { key }, limit: REGISTER }).await
                {
                    Err(FenceError::Conflict) => self.take_reservation(drive, key).await?,
                    there => there?,
                }
            }
        };
        loop {
            let stale = match &there {
                Fence::File { others } => return Ok(victim.is_none() || !others),
                Fence::Keys(keys) if !keys.has(key) => return Ok(false),
                Fence::Keys(keys) => self.context().system.as_ref().and_then(|s| s.stale_key(keys)),
            };
            // One of a life before that: the drive was away when that one was shut out.
            let Some(victim) = stale.filter(|_| !planted(Bug::StaleKeyStays)) else { return Ok(true) };
            there = self.cx.fence(drive, op(FenceAct::ShutOut { key, victim, process: None })).await?;
        }
    }
    /// The other head's path holds the reservation, under another key than that of the process that is out. If that head is in, the
    /// reservation stands for both; else it is taken away with the key, under which nobody serves: who only votes registers again.
    async fn take_reservation(&self, drive: DriveId, key: FenceKey) -> Result<Fence, FenceError> {
        let op = |act, limit| FenceOp { act, limit };
        let looked = self.cx.fence(drive, op(FenceAct::Look, REGISTER)).await?;
        let Fence::Keys(there) = &looked else { return Err(FenceError::Conflict) };
        let both = there.reservation.filter(|r| r.kind == ReservationKind::ExclusiveRegistrants);
        let holder = both.and_then(|r| r.holder).ok_or(FenceError::Conflict)?;
        let (theirs, is_in) = {
            let context = self.context();
            let member = context.system.as_ref().expect("one of two").member();
            let (record, other) = (member.known(), member.me().other());
            let theirs = cluster::record::are_of_one_head(holder, record.key_outside(other));
            (theirs, record.is_in(other) && record.key(other) == Some(holder))
        };
        match (theirs, is_in) {
            (false, _) => Err(FenceError::Conflict),
            (true, true) => Ok(looked),
            (true, false) => {
                let act = FenceAct::ShutOut { key, victim: holder, process: None };
                self.cx.fence(drive, op(act, ASK)).await
            }
        }
    }
    /// The same, again and again until it has confirmed, or for so long.
    pub(super) async fn fence_drive(
        &self,
        (id, info): (DriveId, &DriveInfo),
        anew: bool,
        patience: Duration,
    ) -> Result<(), ShutOutFault> {
        if let FenceKind::None(why) = info.fence {
            return Err(ShutOutFault::NoFence { why });
        }
        if planted(Bug::TakenUnfenced) {
            let _ = self.register(id).await;
            self.in_system(|s| {
                let standing = s.others_standing();
                s.confirms(id, standing)
            });
            return Ok(());
        }
        let first = || {
            let any = |s: &SystemContext| s.has_any_confirmed();
            self.context().system.as_ref().is_some_and(any) && planted(Bug::FirstFenceServes)
        };
        let end = self.cx.now() + patience;
        loop {
            let standing = self.context().system.as_ref().expect("one of two").others_standing();
            let asks = self.fence_once(id, info.fence, anew);
            let last = match self.cx.unless(first, asks).await.unwrap_or(Ok(true)) {
                Ok(true) => {
                    if self.in_system(|s| s.confirms(id, standing)) == Some(true) {
                        return Ok(());
                    }
                    // A process of the other head came or went meanwhile, and the drive was asked for the one before.
                    continue;
                }
                Ok(false) => ShutOutFault::Registered,
                Err(FenceError::None(why)) => return Err(ShutOutFault::NoFence { why }),
                Err(e) => ShutOutFault::Failed { fault: e.into() },
            };
            self.cx.sleep(AGAIN.min(end.since(self.cx.now()))).await;
            if self.cx.now() >= end {
                self.in_system(|s| s.is_late(id, &info.path));
                return Err(last);
            }
        }
    }
    /// Drives have confirmed: waits until the voters say that nothing newer is decided. Until then nothing is read or written there that
    /// counts.
    pub(super) async fn may_serve(&self) {
        let Some(before) = self.in_system(|s| {
            s.tell().on_confirmed();
            s.serves()
        }) else {
            return;
        };
        let procedures = self.clone();
        let serves = move || procedures.context().system.as_ref().is_none_or(|s| s.serves() > before);
        self.cx.until(serves).await;
    }
    /// At a takeover: all drives that are open at once, until enough of them have confirmed. The mirrors of those that have not by then wait
    /// for them (`behind`), and no others.
    pub(super) async fn fence_standby(&self) {
        self.open_voters().await;
        let until = self.cx.now() + PUT_OUT;
        let enough = |p: &Self| {
            let context = p.context();
            let most = context.system.as_ref().is_none_or(SystemContext::has_most_confirmed);
            most || context.stop != Stop::No
        };
        let goes_on = Rc::new(Cell::new(false));
        let (procedures, over) = (self.clone(), goes_on.clone());
        self.cx.spawn(async move {
            let waits = procedures.clone();
            procedures.cx.until(move || enough(&waits)).await;
            procedures.cx.sleep(REST).await;
            over.set(true);
            procedures.cx.changed();
        });
        loop {
            let drives: Vec<(DriveId, DriveInfo)> = {
                let context = self.context();
                let system = context.system.as_ref().expect("one of two");
                let open = system.standby().values().map(|d| (d.id, d.info.clone()));
                open.filter(|(id, _)| !system.has_confirmed(*id)).collect()
            };
            let ids: Vec<DriveId> = drives.iter().map(|(id, _)| *id).collect();
            self.in_system(|s| ids.iter().for_each(|id| s.waits_for(*id, until)));
            let one =
                |(id, info): (DriveId, DriveInfo)| -> Boxed<'_, Option<(DriveId, DriveInfo, ShutOutFault)>> {
                    Box::pin(async move {
                        let why = self.fence_drive((id, &info), true, PUT_OUT).await.err()?;
                        Some((id, info, why))
                    })
                };
            let all = join::all(drives.into_iter().map(one).collect());
            let Some(late) = self.cx.unless(|| goes_on.get(), all).await else { break };
            let late: Vec<_> = late.into_iter().flatten().collect();
            if planted(Bug::FencesGivenUp) {
                self.let_standby_go();
                break;
            }
            if late.is_empty() || enough(self) {
                break;
            }
            for (id, info, why) in late {
                self.is_overdue(id, &info, why);
            }
            self.cx.sleep(AGAIN).await;
        }
        self.may_serve().await;
    }
    /// A takeover waits for a drive for too long: it is told once.
    pub(super) fn is_overdue(&self, id: DriveId, drive: &DriveInfo, why: ShutOutFault) {
        if self.in_system(|s| s.is_overdue(id, self.cx.now())) == Some(true) {
            self.is_not_fenced(drive, why);
        }
    }
    fn is_not_fenced(&self, drive: &DriveInfo, why: ShutOutFault) {
        let now = self.cx.now();
        let what = SystemEvent::DriveNotShutOff { drive: drive.path.clone(), why };
        self.context_mut().happened(now, "system", what);
    }
    /// Of drives that are to be taken: those from which the other head is shut out, looked at again, since something of its may have
    /// landed until then. The others are let go of, and told.
    pub(crate) async fn fenced(&self, probes: Vec<Probe>) -> Vec<Probe> {
        if !self.is_in_system() {
            return probes;
        }
        let one = |p: Probe| -> Boxed<'_, Option<Probe>> {
            Box::pin(async move {
                let done = if self.has_confirmed(p.id) {
                    Ok(())
                } else {
                    self.fence_drive((p.id, &p.info), true, PUT_OUT).await
                };
                if let Err(why) = done {
                    self.is_not_fenced(&p.info, why);
                    self.context_mut().note_not_shut_out(&p);
                    self.let_go(p.id);
                    return None;
                }
                Some(p)
            })
        };
        let news = probes.iter().any(|p| !self.has_confirmed(p.id));
        let fenced: Vec<Option<Probe>> = join::all(probes.into_iter().map(one).collect()).await;
        let fenced: Vec<Probe> = fenced.into_iter().flatten().collect();
        if news && !fenced.is_empty() {
            // They may be the voters that are to be asked: of a pool that is taken, nothing else is open.
            self.are_open(&fenced);
            self.may_serve().await;
        }
        let again = |p: Probe| -> Boxed<'_, Result<Probe, (String, DriveError)>> {
            Box::pin(async move {
                if planted(Bug::NotLookedAgain) {
                    return Ok(p);
                }
                self.look_again(p).await
            })
        };
        let looked = join::all(fenced.into_iter().map(again).collect()).await;
        let mut good = vec![];
        for probe in looked {
            match probe {
                Ok(probe) => good.push(probe),
                Err((drive, error)) => {
                    let now = self.cx.now();
                    let event = SystemEvent::DriveNotLookedAt { drive, fault: error.into() };
                    self.context_mut().happened(now, "system", event);
                }
            }
        }
        self.are_open(&good);
        good
    }
    /// A leg in sync of a pool that is taken is not among the drives that have confirmed: waits until nobody may pass on what it reads
    /// there any more. Only then may the pool change without it.
    pub(crate) async fn outlast_other_head(&self) {
        let until = self.context().system.as_ref().and_then(|s| s.other_sees_until());
        let left = until.map(|at| at.since(self.cx.now()));
        if let Some(left) = left.filter(|left| !left.is_zero() && !planted(Bug::MissingLegUnawaited)) {
            self.cx.sleep(left).await;
        }
    }
    /// Drives may vote from now on, by their labels.
    pub(super) fn are_open(&self, probes: &[Probe]) {
        for (uuid, id) in probes.iter().filter_map(|p| Some((p.good_label()?.drive, p.id))) {
            self.in_system(|s| s.is_open(uuid, id));
        }
    }
    pub(in crate::steward) fn has_confirmed(&self, id: DriveId) -> bool {
        self.context().system.as_ref().is_some_and(|s| s.has_confirmed(id))
    }
    /// The same of one drive.
    pub(crate) async fn fence_probe(&self, probe: Probe) -> Result<Probe, UnopenedDrive> {
        let drive = probe.info.path.clone();
        let unconfirmed = || UnopenedDrive { drive, fault: OpenFault::NotShutOut };
        self.fenced(vec![probe]).await.pop().ok_or_else(unconfirmed)
    }
    /// Looks at a drive that is open. One that was away when this head was let in refuses it: then it registers, but stays so only with a
    /// drive of a pool of this system. Nothing is served from it before it is `fenced`.
    pub(crate) async fn look_as_member(
        &self,
        spec: &str,
        id: DriveId,
        info: DriveInfo,
    ) -> Result<Probe, (String, DriveError)> {
        let looked = self.look_at(spec, id, info.clone()).await;
        let refused = matches!(looked, Err((_, DriveError::Fenced)));
        if !refused || !self.is_in_system() || self.register(id).await.is_err() {
            return looked;
        }
        let again = self.look_at(spec, id, info).await;
        if again.as_ref().is_ok_and(|p| self.is_of_system(p)) {
            return again;
        }
        self.unregister(id).await;
        looked
    }
    /// Whether a drive is of a pool of this system.
    pub(super) fn is_of_system(&self, probe: &Probe) -> bool {
        let config = probe.config.as_ref().ok().and_then(|slot| PoolConfig::of_slot(slot).ok());
        config.is_some_and(|c| c.shared.is_some() && c.shared == self.system())
    }
    /// Clears what lies where a system has its own records (docs/formats/system.md): old bytes would be taken for votes.
    pub(crate) async fn clear_area(&self, id: DriveId) -> Result<(), DriveError> {
        self.cx.zero(id, AREA.0, AREA.1).await
    }
    /// Before a drive is told that its pool is a system's, which that became while the drive was away.
    pub(crate) async fn clear_newcomer(&self, probe: &Probe) -> Result<(), DriveError> {
        let config = probe.config.as_ref().ok().and_then(|slot| PoolConfig::of_slot(slot).ok());
        let news = config.is_some_and(|c| c.shared != self.system());
        if self.is_in_system() && news { self.clear_area(probe.id).await } else { Ok(()) }
    }
    /// Before a new drive is labelled: the other head is shut out, and what lies in the system's area is cleared.
    pub(crate) async fn fence_new(&self, id: DriveId) -> Result<(), DriveError> {
        if !self.is_in_system() {
            return Ok(());
        }
        // No process of the other head has it, if it is a file: nobody need be killed for it.
        let info = DriveInfo { fence: FenceKind::Scsi, ..DriveInfo::default() };
        self.fence_drive((id, &info), true, PUT_OUT).await.map_err(|_| DriveError::Fenced)?;
        self.may_serve().await;
        self.clear_area(id).await
    }
    /// The other head was put out while this one serves: it wrote nothing but votes and beats, so what is served goes on, and drives are
    /// asked until each has confirmed.
    pub(super) async fn shut_out(&self) {
        let drives = self.open_drives_of_pools();
        let one = |drive: OpenDrive| -> Boxed<'_, ()> {
            Box::pin(async move {
                let it = (drive.id, &drive.info);
                if let Err(why) = self.fence_drive(it, false, PUT_OUT).await {
                    self.is_not_fenced(&drive.info, why);
                    self.lose_unfenced(&drive);
                    // Hosts of one that has no other leg are told that it is not ready.
                    self.publish_now();
                    let open = || self.context().is_open(drive.id) && self.is_out();
                    while open() {
                        match self.fence_drive(it, false, AGAIN).await {
                            Ok(()) => break,
                            // It fails at once: nobody else would get a turn.
                            Err(ShutOutFault::NoFence { .. }) => self.cx.sleep(AGAIN).await,
                            Err(_) => {}
                        }
                    }
                    // One that was let go of meanwhile is fenced anew before it is used again.
                    if !self.context().is_open(drive.id) {
                        self.in_system(|s| s.is_not_late(drive.id));
                    }
                }
            })
        };
        let over = || !self.is_out();
        let all = join::all(drives.into_iter().map(one).collect());
        if self.cx.unless(over, all).await.is_some() {
            self.in_system(|s| s.tell().on_fenced());
        }
    }
    /// A drive in use has not confirmed in time that the other head is shut off it: its mirror goes on without it, if another leg is in
    /// sync. The last one is waited for.
    fn lose_unfenced(&self, drive: &OpenDrive) {
        let mut context = self.context_mut();
        for p in &mut context.pools {
            let leg_of = |array: &ArrayContext| {
                array.legs.iter().position(|leg| leg.open.as_ref().is_some_and(|o| o.id == drive.id))
            };
            let place = p.arrays.iter().enumerate().find_map(|(a, array)| Some((a, leg_of(array)?)));
            let place = place.filter(|(a, l)| !p.is_out(*a, *l) && !p.is_last(*a, *l));
            let Some((array, leg)) = place.filter(|_| !planted(Bug::UnfencedLegStays)) else { continue };
            let why = not_shut_out(&drive.info.path).into();
            p.is_to_lose(array, leg, why, Outlook::MayReturn);
        }
    }
    /// A head that becomes one of two shares the drives that it serves from. Notices tell which of them it cannot.
    pub(super) async fn share_drives(&self) -> Vec<SystemNotice> {
        let mut wrong = vec![];
        for drive in self.drives_in_use().iter().filter(|d| !self.has_confirmed(d.id)) {
            let failed = self.fence_drive((drive.id, &drive.info), true, PUT_OUT).await.err();
            let path = drive.info.path.clone();
            wrong.extend(failed.map(|why| SystemNotice::DriveNotShutOff { drive: path, why }));
        }
        wrong
    }
    /// Drives of legs and spares.
    pub(super) fn open_drives_of_pools(&self) -> Vec<OpenDrive> {
        self.context().open_drives().cloned().collect()
    }
    /// Those of them that are not out of their pool: what is out is fenced, and cleared, before it comes back.
    pub(super) fn drives_in_use(&self) -> Vec<OpenDrive> {
        let mut drives = self.open_drives_of_pools();
        let context = self.context();
        for pool in &context.pools {
            for (a, array) in pool.arrays.iter().enumerate() {
                for leg in (0..array.legs.len()).filter(|l| pool.is_out(a, *l)) {
                    let out = array.legs[leg].open.as_ref().map(|open| open.id);
                    drives.retain(|d| Some(d.id) != out);
                }
            }
        }
        drives
    }
    /// Of a head that leads while the other one is out: how many of the drives that are open have confirmed that, and how many are open.
    pub(in crate::steward) fn shut_off(&self) -> Option<(u16, u16)> {
        let leads = self.context().system.as_ref().is_some_and(|s| s.part() == cluster::Part::Leader);
        let drives = self.open_drives_of_pools();
        let confirmed = drives.iter().filter(|d| self.has_confirmed(d.id)).count();
        (leads && self.is_out()).then_some((confirmed as u16, drives.len() as u16))
    }
    /// Whether the other head is in since this epoch.
    pub(in crate::steward) fn is_in_since(&self, epoch: u64) -> bool {
        self.context().system.as_ref().is_some_and(|s| {
            let (record, other) = (s.member().known(), s.member().me().other());
            record.is_in(other) && record.head(other).since == epoch
        })
    }
    /// Whether the other head is out.
    pub(in crate::steward) fn is_out(&self) -> bool {
        self.context().system.as_ref().is_some_and(|s| s.victim().is_some())
    }
}
