//! A takeover behind drives that do not confirm at once that the head which led is shut off them: nobody has lanes of their mirrors before, and
//! all others are served meanwhile.
//!
//! ```text
//! most voters confirm ▶ pools are taken without these legs, which stay in sync on record ▶ one confirms ▶ it is looked at again, gets the
//! record and the configuration ▶ the lanes of its array are dealt by what all legs say
//!                                                                                     ▶ or 2.5 s are over: it is put out ▶ the same
//! ```
//!
//! An array that cannot do without such a leg keeps its pool away until it confirms. Hosts are told that its volumes are not ready.

use crate::layout::PoolId;
use crate::steward::context::absent::Waits;
use crate::steward::context::array::{LegContext, Outlook};
use crate::steward::context::head::{HeadContext, Stop};
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::join::{self, Boxed};
use crate::steward::legs::exchange::Untaken;
use crate::steward::procedures::Procedures;
use array::format::{LegState, is_current};
use base::{Duration, Uuid};
use cluster::fence::{AGAIN, PUT_OUT};
use finding::{LegCause, OpenFault, PoolCause, ShutOutFault};

/// One that is asked for the first time when its time is over is asked twice.
const LEAST: Duration = Duration::from_millis(600);

/// How long other pools wait for one that cannot do without such a drive. Its hosts would be told that it is not ready, and NVMe hosts wait for 10 s
/// then: drives that confirm late all do so within this.
pub(crate) const OTHERS_WAIT: Duration = Duration::from_millis(500);

/// A drive that has not confirmed, and why not.
type Unconfirmed = (Probe, ShutOutFault);

/// Why a leg is not used yet.
pub(crate) fn not_shut_out(drive: &str) -> LegCause {
    LegCause::DriveUnopened { drive: drive.into(), fault: OpenFault::NotShutOut }
}

impl HeadContext {
    /// Array and leg of the drive with this label, while a takeover waits for it.
    fn leg_behind(&self, pool: PoolId, drive: Uuid) -> Option<(usize, usize)> {
        let p = self.pool(pool).filter(|p| !p.leaving)?;
        let of = |a: usize| {
            let mut legs = p.arrays[a].legs.iter();
            Some((a, legs.position(|leg| leg.uuid == drive && leg.behind.is_some())?))
        };
        (0..p.arrays.len()).find_map(of)
    }
    /// An array of a pool whose lanes, or some of them, nobody has lacks the fence of its last leg, which is late: hosts are told so.
    pub(in crate::steward) fn lacks_fence(&self, p: &PoolContext) -> Option<String> {
        let system = self.system.as_ref()?;
        let late = |leg: &LegContext| {
            let open = leg.open.as_ref().or(leg.behind.as_ref());
            open.is_some_and(|open| system.is_late_drive(open.id))
        };
        let bereft = (0..p.arrays.len()).filter(|a| p.is_bereft_array(*a));
        let mut legs =
            bereft.flat_map(|a| p.arrays[a].legs.iter().enumerate().map(move |(l, leg)| (a, l, leg)));
        legs.find(|(a, l, leg)| p.is_last(*a, *l) && late(leg)).map(|(.., leg)| leg.path.clone())
    }
    /// A takeover waits for some drive.
    pub(in crate::steward) fn waits_behind(&self) -> bool {
        let mut legs = self.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
        legs.any(|leg| leg.behind.is_some()) || self.absent.iter().any(|p| p.waits == Waits::Fence)
    }
}

impl Procedures {
    /// Of drives of a pool that is taken: those that have confirmed, looked at again, and at a takeover those that it still waits for.
    pub(crate) async fn fenced_or_behind(&self, probes: Vec<Probe>) -> (Vec<Probe>, Vec<Probe>) {
        if self.context().ready || !self.is_in_system() {
            return (self.fenced(probes).await, vec![]);
        }
        // One that was opened a moment ago has not been asked yet.
        let until = self.cx.now() + PUT_OUT;
        let is_new = |p: &Probe| {
            let context = self.context();
            let system = context.system.as_ref();
            system.is_some_and(|s| s.is_waited_for(p.id).is_none() && !s.has_confirmed(p.id))
        };
        let (new, old): (Vec<Probe>, Vec<Probe>) = probes.into_iter().partition(is_new);
        self.in_system(|s| new.iter().for_each(|p| s.waits_for(p.id, until)));
        let (mut here, mut behind) =
            if new.is_empty() { (vec![], vec![]) } else { self.ask_behind(new).await };
        let (confirmed, waits): (Vec<Probe>, Vec<Probe>) =
            old.into_iter().partition(|p| self.has_confirmed(p.id));
        here.extend(self.fenced(confirmed).await);
        behind.extend(waits);
        (here, behind)
    }
    /// Asks drives once more, all at once; those that have confirmed, looked at again, and the others.
    pub(crate) async fn ask_behind(&self, behind: Vec<Probe>) -> (Vec<Probe>, Vec<Probe>) {
        let one = |p: Probe| -> Boxed<'_, Result<Probe, Unconfirmed>> {
            Box::pin(async move {
                match self.fence_drive((p.id, &p.info), true, AGAIN).await {
                    Ok(()) => Ok(p),
                    Err(why) => Err((p, why)),
                }
            })
        };
        let (mut confirmed, mut still) = (vec![], vec![]);
        for asked in join::all(behind.into_iter().map(one).collect()).await {
            match asked {
                Ok(probe) => confirmed.push(probe),
                Err((probe, why)) => {
                    self.is_overdue(probe.id, &probe.info, why);
                    still.push(probe);
                }
            }
        }
        if !still.is_empty() && confirmed.is_empty() {
            // Some refuse at once.
            self.cx.sleep(AGAIN).await;
        }
        if !confirmed.is_empty() {
            // They may be the voters that are to be asked.
            self.are_open(&confirmed);
            self.may_serve().await;
        }
        (self.fenced(confirmed).await, still)
    }
    /// Whether a pool that was refused could be taken with these drives that have not confirmed: some array cannot do without them.
    pub(crate) async fn needs(&self, pool: Uuid, here: &[Probe], behind: &[Probe]) -> bool {
        let is_wanted = {
            let context = self.context();
            context.stop == Stop::No && context.absent.iter().any(|p| p.uuid() == pool)
        };
        let all: Vec<Probe> = here.iter().chain(behind).cloned().collect();
        is_wanted && !behind.is_empty() && self.judge(pool, &all, false).await.is_ok()
    }
    /// A pool was taken: the legs whose drives have not confirmed are waited for. The drives of others are let go of.
    pub(crate) fn wait_behind(&self, uuid: Uuid, behind: Vec<Probe>) {
        let pool = self.context().pools.iter().find(|p| p.config().uuid == uuid && !p.leaving).map(|p| p.id);
        for probe in behind {
            let drive = probe.good_label().map(|l| l.drive).unwrap_or_default();
            match pool.filter(|id| self.context().leg_behind(*id, drive).is_some()) {
                None => self.let_go(probe.id),
                Some(pool) => {
                    let procedures = self.clone();
                    self.cx.spawn(async move { procedures.wait_for_leg(pool, drive, probe).await });
                }
            }
        }
    }
    async fn wait_for_leg(&self, pool: PoolId, drive: Uuid, probe: Probe) {
        let (id, info) = (probe.id, probe.info.clone());
        let until = self.context().system.as_ref().and_then(|s| s.is_waited_for(id));
        let mut patience = until.map_or(LEAST, |at| at.since(self.cx.now())).max(LEAST);
        loop {
            let procedures = self.clone();
            let over = move || procedures.context().leg_behind(pool, drive).is_none();
            match self.cx.unless(over, self.fence_drive((id, &info), true, patience)).await {
                // An operator has replaced it, or the pool leaves.
                None => return self.let_go(id),
                Some(Ok(())) => break,
                Some(Err(why)) => {
                    self.is_overdue(id, &info, why);
                    if self.lose_behind(pool, drive) {
                        return self.let_go(id);
                    }
                    // The last one, by now.
                    self.publish_now();
                    patience = AGAIN;
                    self.cx.sleep(AGAIN).await;
                }
            }
        }
        self.are_open(core::slice::from_ref(&probe));
        self.may_serve().await;
        let Ok(probe) = self.look_again(probe).await else {
            return self.end_behind(pool, drive);
        };
        let _hold = self.hold_keeper(pool).await;
        let is_back = self.take_behind(pool, drive, &probe);
        if is_back {
            let slot = self.context().pool(pool).map(|p| p.config_slot());
            if let Some(slot) = slot {
                let failed = self.put_config(pool, &slot).await;
                self.propose_losses(pool, failed, Untaken::Config);
            }
            self.put_on_record(pool, &[], &[]).await;
        } else {
            self.end_behind(pool, drive);
            self.let_go(probe.id);
        }
    }
    /// It has confirmed, and is what it was: it is used from the next deal of lanes on.
    fn take_behind(&self, pool: PoolId, drive: Uuid, probe: &Probe) -> bool {
        let mut context = self.context_mut();
        let (me, incarnation) = (context.me(), context.new_incarnation());
        let Some((a, l)) = context.leg_behind(pool, drive) else { return false };
        let Some(p) = context.pool_mut(pool) else { return false };
        let ours = probe.whole
            && probe.newer().is_none()
            && probe.good_label().is_some_and(|label| label.drive == drive && label.array == a as u32)
            && is_current(probe.record.as_ref().ok(), p.record())
            && p.leg_state(a, l) == LegState::InSync;
        if !ours {
            return false;
        }
        p.arrays[a].legs[l].has_confirmed(probe.opened());
        let record = p.record().next(me, incarnation);
        p.propose(record);
        true
    }
    /// It is not what it was, or cannot be read: the mirror goes on without it. The last one is looked for.
    fn end_behind(&self, pool: PoolId, drive: Uuid) {
        if self.lose_behind(pool, drive) {
            return;
        }
        let now = self.cx.now();
        let mut context = self.context_mut();
        let Some((a, l)) = context.leg_behind(pool, drive) else { return };
        if let Some(p) = context.pool_mut(pool) {
            p.arrays[a].legs[l].waits_no_more();
            p.arrays[a].legs[l].is_gone(true, now);
        }
    }
    /// The mirror goes on without it. False: it is the last one in sync.
    fn lose_behind(&self, pool: PoolId, drive: Uuid) -> bool {
        let mut context = self.context_mut();
        let Some((array, leg)) = context.leg_behind(pool, drive) else { return true };
        let Some(p) = context.pool_mut(pool) else { return true };
        if p.is_last(array, leg) {
            return false;
        }
        let why = not_shut_out(p.drive_path(array, leg)).into();
        p.arrays[array].legs[leg].waits_no_more();
        p.is_to_lose(array, leg, why, Outlook::MayReturn);
        true
    }
    /// Drives of a pool that is away have not confirmed, and an array cannot do without them; None: that is over.
    pub(crate) fn is_kept_behind(&self, pool: Uuid, behind: Option<&[Probe]>) {
        let drives = |behind: &[Probe]| behind.iter().map(|p| p.info.path.clone()).collect();
        if let Some(p) = self.context_mut().absent.iter_mut().find(|p| p.uuid() == pool) {
            p.is_behind(behind.map(|b| PoolCause::PoolBehindFence { drives: drives(b) }));
        }
        self.cx.changed();
    }
}
