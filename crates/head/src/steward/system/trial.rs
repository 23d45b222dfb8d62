//! The fence of each drive is tried on a follower before that counts as ready: who takes over trusts fences.
//!
//! ```text
//! leads:    Try on ──────────────▶ shuts the follower off this drive, reads, waits, reads ── Try off ──▶ judges
//! follows:  writes stamps ─ Writes ─▶ until the drive refuses each of its writers                  registers ─ Refused ─▶
//! ```
//!
//! One drive after the other. A follower that has not all that it needs does not take over, and so none does while this goes on. On SCSI
//! the reset ends commands of the head that leads, too: the kernel issues them again, and no leg is put out for it.

use super::upper::{Said, Upper};
use crate::peer::{FenceTrial, TrialFound};
use crate::steward::context::head::HeadContext;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::system::SystemContext;
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use crate::steward::runtime::Patience;
use base::{DriveError, DriveId, Duration, Fence, FenceAct, FenceError, FenceKey, FenceKind, FenceOp, Uuid};
use cluster::Part;
use cluster::fence::PUT_OUT;
use cluster::trial::{Flaw, PLACES, STAMP_BYTES, TRIAL_AT, TRIAL_BYTES, Trial};
use finding::{FollowerFault, SystemEvent, TrialFault};
use std::cell::Cell;

/// Kinds of fences that can be tried.
const KINDS: [FenceKind; 2] = [FenceKind::Scsi, FenceKind::Nvme];
/// A follower that was just let in may still be opening its drives.
const OPEN: Duration = Duration::from_secs(8);
/// Until it has said that it writes.
const WRITES: Duration = Duration::from_secs(10);
/// How long it writes at most, if nobody shuts it out.
const WRITES_MOST: Duration = Duration::from_secs(6);
/// What was at the drive as it confirmed would have landed after this.
const PAUSE: Duration = Duration::from_millis(300);
/// Until it has said how its writes ended.
const OVER: Duration = Duration::from_secs(8);
/// A fence that could not be tried is tried again after this.
const AGAIN: Duration = Duration::from_secs(10);
/// A heartbeat that is under way is waited for, so that it is not refused.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Writes of a place that may fail otherwise: commands that a reset ends may.
const FAILURES: u32 = 8;
/// And the pause behind each.
const FAILED: Duration = Duration::from_millis(20);
/// A drive may be busy with what the reset ended.
const PATIENCE: Patience = Patience { op: Duration::from_secs(3), look: Duration::from_secs(3) };

/// How a place's writer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Written {
    Refused,
    NotRefused,
    Failed(DriveError),
    /// Nobody shut it out in time.
    TooLong,
}

/// What the writers say together.
fn said(written: &[Written], writes: u64) -> Said {
    let first = |wanted: fn(&Written) -> bool| written.iter().copied().find(wanted);
    // One place where writes go on is enough.
    if written.contains(&Written::NotRefused) {
        return Said::NotRefused;
    }
    match first(|w| *w != Written::Refused) {
        None if writes == 0 => Said::Cannot(FollowerFault::RefusedBefore),
        None => Said::Refused,
        Some(Written::Failed(e)) => Said::Cannot(FollowerFault::NotWritten { fault: e.into() }),
        Some(_) => Said::Cannot(FollowerFault::NotShutOut { seconds: WRITES_MOST.as_secs() }),
    }
}

fn fault_of(flaw: Flaw) -> TrialFault {
    match flaw {
        Flaw::Landed => TrialFault::Landed,
        Flaw::Elsewhere => TrialFault::Elsewhere,
        Flaw::LetIn => TrialFault::LetIn,
        Flaw::NotShared => TrialFault::NotShared,
    }
}

impl HeadContext {
    /// Open drives of pools whose fence can be tried: that of a file is a lock and the end of a process.
    fn fenced_drives(&self) -> impl Iterator<Item = &OpenDrive> {
        let shared = self.pools.iter().filter(|p| p.config().shared.is_some());
        let of_pools: Vec<Uuid> = shared.map(|p| p.config().uuid).collect();
        self.open_drives().filter(move |d| KINDS.contains(&d.info.fence) && of_pools.contains(&d.label.pool))
    }
    /// Each of them that the follower reaches was tried on it, and holds. A trial shuts the follower out for a moment.
    pub(in crate::steward) fn fences_hold(&self) -> bool {
        self.fenced_drives().all(|d| self.is_tried(d) || !self.may_be_reached(d.label.drive))
    }
    /// The follower may use a drive: its fence was tried, if that can be done.
    pub(in crate::steward) fn is_tried(&self, drive: &OpenDrive) -> bool {
        let holds =
            |s: &SystemContext| matches!(s.tried().of(drive.label.drive), Some(TrialFound::Holds { .. }));
        !KINDS.contains(&drive.info.fence) || self.system.as_ref().is_none_or(holds)
    }
    /// The follower reaches it, or may be opening it.
    fn may_be_reached(&self, drive: Uuid) -> bool {
        self.system.as_ref().is_none_or(|s| !s.reached().has_no_path(drive))
    }
}

/// Of the head that leads.
impl Procedures {
    /// Tries the fences of all drives on the follower that this epoch let in, until each of them holds; false: it is out before.
    pub(super) async fn try_fences(&self, epoch: u64) -> bool {
        self.in_system(|s| s.trials().is_new());
        self.try_fences_again(epoch).await
    }
    async fn try_fences_again(&self, epoch: u64) -> bool {
        let mut tried = false;
        // A follower that is out while some fence is known to fail leaves nothing to try and nothing to wait for.
        while self.is_in_since(epoch) {
            for drive in self.drives_to_try() {
                if !self.is_in_since(epoch) {
                    return false;
                }
                // While others were tried it may have left its pool, or lacked its path for long enough.
                if self.is_worth_trying(&drive) {
                    let found = self.try_fence(&drive).await;
                    if !self.is_in_since(epoch) {
                        return false;
                    }
                    tried = true;
                    self.note_trial(&drive, found);
                }
            }
            if self.fences_hold() {
                self.forget_left();
                if tried {
                    self.note_fences();
                }
                return self.is_in_since(epoch);
            }
            let procedures = self.clone();
            self.cx
                .until_within(AGAIN, move || !procedures.is_in_since(epoch) || procedures.fences_hold())
                .await;
        }
        false
    }
    /// Tries those that the follower reaches later, until it is out: a drive that comes to a pool, or to which it had no path. Its shards use
    /// none of them before.
    pub(super) async fn try_others(&self, epoch: u64) {
        while self.is_in_since(epoch) {
            let procedures = self.clone();
            self.cx.until(move || !procedures.is_in_since(epoch) || !procedures.fences_hold()).await;
            self.try_fences_again(epoch).await;
        }
    }
    fn fenced_drives(&self) -> Vec<OpenDrive> {
        self.context().fenced_drives().cloned().collect()
    }
    /// A fence that does not hold is not tried again on the same process: what was seen once may happen.
    fn drives_to_try(&self) -> Vec<OpenDrive> {
        self.forget_left();
        let drives = self.fenced_drives();
        let context = self.context();
        let Some(system) = context.system.as_ref() else { return vec![] };
        let open =
            |d: &OpenDrive| matches!(system.tried().of(d.label.drive), None | Some(TrialFound::NotTried(_)));
        drives.into_iter().filter(|d| open(d) && context.may_be_reached(d.label.drive)).collect()
    }
    /// Drives that have left their pools are forgotten here and by the follower.
    fn forget_left(&self) {
        let known: Vec<Uuid> = self.fenced_drives().iter().map(|d| d.label.drive).collect();
        self.in_system(|s| {
            if s.trials().only(&known) {
                let all = s.tried().all();
                let _ = s.tell().send(Upper::Fences(all).encode());
            }
        });
    }
    fn fences_hold(&self) -> bool {
        self.context().fences_hold()
    }
    fn is_worth_trying(&self, drive: &OpenDrive) -> bool {
        let context = self.context();
        context.is_open(drive.id) && context.may_be_reached(drive.label.drive)
    }
    fn note_trial(&self, drive: &OpenDrive, found: TrialFound) {
        let (path, now) = (drive.info.path.clone(), self.cx.now());
        let what = match found.clone() {
            TrialFound::Holds { .. } => None,
            TrialFound::Fails(why) => Some(SystemEvent::FenceFails { drive: path.clone(), why }),
            TrialFound::NotTried(why) => {
                let again_seconds = AGAIN.as_secs();
                Some(SystemEvent::FenceUntried { drive: path.clone(), why, again_seconds })
            }
        };
        let news = self.in_system(|s| {
            let news = s.trials().found(drive.label.drive, FenceTrial { path, found });
            let all = s.tried().all();
            let _ = s.tell().send(Upper::Fences(all).encode());
            news
        });
        let reached = self.context().may_be_reached(drive.label.drive);
        if let (Some(true), Some(what), true) = (news, what, reached) {
            self.context_mut().happened(now, "system", what);
        }
    }
    fn note_fences(&self) {
        let all = self.context().system.as_ref().map_or(vec![], |s| s.tried().all());
        let took = |t: &FenceTrial| match t.found {
            TrialFound::Holds { ms } => Some(ms),
            TrialFound::Fails(_) | TrialFound::NotTried(_) => None,
        };
        let took: Vec<u64> = all.iter().filter_map(took).collect();
        let Some((least, most)) = took.iter().min().zip(took.iter().max()) else { return };
        let (now, drives) = (self.cx.now(), took.len() as u64);
        let hold = SystemEvent::FencesHold { drives, least_milliseconds: *least, most_milliseconds: *most };
        self.context_mut().happened(now, "system", hold);
    }
    /// Waits until the follower has said something of the trial that was begun last.
    async fn follower_says(&self, within: Duration) -> Option<Said> {
        let procedures = self.clone();
        let said = move || {
            procedures
                .context()
                .system
                .as_ref()
                .is_none_or(|s| s.tried().has_said() || !s.member().follower_is_in())
        };
        self.cx.until_within(within, said).await;
        self.in_system(|s| s.trials().take_said()).flatten()
    }
    async fn try_fence(&self, drive: &OpenDrive) -> TrialFound {
        let begin = self.in_system(|s| {
            let number = s.trials().begins();
            let life = s.member().known().head(s.member().me().other()).life;
            (Trial { life, number }, s.own_key(), s.rival())
        });
        let Some((trial, key, Some(victim))) = begin else {
            return TrialFound::NotTried(TrialFault::NoFollower);
        };
        let (number, uuid) = (trial.number, drive.label.drive);
        let tell = |on| {
            let _ = self.in_system(|s| s.tell().send(Upper::Try { number, drive: uuid, on }.encode()));
        };
        tell(true);
        match self.follower_says(WRITES).await {
            Some(Said::Writes) => {}
            Some(Said::Cannot(why)) => return TrialFound::NotTried(TrialFault::Follower { why }),
            Some(Said::Refused | Said::NotRefused) | None => {
                tell(false);
                return TrialFound::NotTried(TrialFault::NoWrites { seconds: WRITES.as_secs() });
            }
        }
        let looked = self.shut_out_writer(drive.id, FenceAct::ShutOut { key, victim, process: None }).await;
        tell(false);
        let over = self.follower_says(OVER).await;
        let (ms, at_once, later) = match looked {
            Ok(looked) => looked,
            Err(found) => return found,
        };
        let refused = match over {
            Some(Said::Refused) => Ok(true),
            Some(Said::NotRefused) => Ok(false),
            Some(Said::Cannot(why)) => Err(TrialFault::Follower { why }),
            Some(Said::Writes) | None => Err(TrialFault::NoEnd { seconds: OVER.as_secs() }),
        };
        // What landed late tells enough, whatever the follower says.
        match (trial.judge(&at_once, &later, refused != Ok(false)), refused) {
            (Err(Flaw::LetIn), _) if self.hides(drive.id, victim).await => {
                TrialFound::Fails(TrialFault::NotShared)
            }
            (Err(flaw), _) => TrialFound::Fails(fault_of(flaw)),
            (Ok(()), Err(why)) => TrialFound::NotTried(why),
            (Ok(()), Ok(_)) => TrialFound::Holds { ms },
        }
    }
    /// Whether a drive does not show this head that the follower is registered, who has just registered again.
    async fn hides(&self, id: DriveId, follower: FenceKey) -> bool {
        let looked = self.cx.fence(id, FenceOp { act: FenceAct::Look, limit: PUT_OUT }).await;
        matches!(looked, Ok(Fence::Keys(there)) if !there.has(follower))
    }
    /// Shuts the writer out, and reads what lies there: at once and later. With how many milliseconds that took the drive.
    async fn shut_out_writer(
        &self,
        id: DriveId,
        act: FenceAct,
    ) -> Result<(u64, Vec<u8>, Vec<u8>), TrialFound> {
        let begin = self.cx.now();
        self.cx.fence(id, FenceOp { act, limit: PUT_OUT }).await.map_err(|e| match e {
            FenceError::None(_) | FenceError::NotDone => {
                TrialFound::Fails(TrialFault::Failed { fault: e.into() })
            }
            _ => TrialFound::NotTried(TrialFault::Failed { fault: e.into() }),
        })?;
        let took = self.cx.now().since(begin).as_millis() as u64;
        let procedures = self.with(self.cx.with(PATIENCE));
        let read = async || {
            let lies = procedures.cx.read(id, TRIAL_AT, TRIAL_BYTES).await;
            lies.map_err(|e| TrialFound::NotTried(TrialFault::Unreadable { fault: e.into() }))
        };
        let at_once = read().await?;
        self.cx.sleep(PAUSE).await;
        Ok((took, at_once, read().await?))
    }
}

/// Of a follower.
impl Procedures {
    /// The head that leads begins or ends a trial.
    pub(super) fn is_tried(&self, number: u64, drive: Uuid, on: bool) {
        if !self.follows() {
            return;
        }
        if !on {
            self.in_system(|s| s.trials().ends(number));
            return;
        }
        self.in_system(|s| s.trials().runs(number));
        let procedures = self.clone();
        self.cx.spawn(async move {
            let said = procedures.take_trial(number, drive).await;
            procedures.in_system(|s| s.trials().ends(number));
            procedures.says(number, said);
        });
    }
    pub(in crate::steward) fn follows(&self) -> bool {
        self.context().system.as_ref().is_some_and(|s| s.part() == Part::Follower)
    }
    fn says(&self, number: u64, said: Said) {
        let _ = self.in_system(|s| s.tell().send(Upper::Tried { number, said }.encode()));
    }
    /// The trial goes on. One that leads meanwhile writes nothing more: it would take that for what its own follower writes.
    fn goes_on(&self, number: u64) -> bool {
        self.follows() && self.context().system.as_ref().is_some_and(|s| s.tried().is_running(number))
    }
    async fn take_trial(&self, number: u64, drive: Uuid) -> Said {
        let stands = |procedures: &Procedures| {
            let context = procedures.context();
            context.system.as_ref().filter(|s| s.tried().may_run()).and_then(|s| s.open_drive(drive))
        };
        let procedures = self.clone();
        self.cx
            .until_within(OPEN, move || stands(&procedures).is_some() || !procedures.goes_on(number))
            .await;
        let Some(id) = stands(self) else {
            return Said::Cannot(FollowerFault::NotOpened { seconds: OPEN.as_secs() });
        };
        if let Err(e) = self.register(id).await {
            return Said::Cannot(FollowerFault::NotRegistered { fault: e.into() });
        }
        self.in_system(|s| s.tell().on_trial(drive));
        let procedures = self.clone();
        let beats = move || {
            procedures.context().system.as_ref().is_some_and(|s| s.member().heartbeat_is_under_way_on(drive))
        };
        self.cx.until_within(HEARTBEAT, move || !beats()).await;
        let said = self.write_stamps(number, id).await;
        // Registered again only if the head that leads says so: who shuts this one out for good does not.
        let procedures = self.clone();
        let ended = self.cx.until_within(WRITES_MOST, move || !procedures.goes_on(number)).await;
        let again = if ended && self.follows() { self.register(id).await.err() } else { None };
        self.in_system(|s| s.tell().on_tried(drive));
        match again {
            Some(e) => Said::Cannot(FollowerFault::NotRegisteredAgain { fault: e.into() }),
            None => said,
        }
    }
    /// Writes at depth until the drive refuses each place.
    async fn write_stamps(&self, number: u64, id: DriveId) -> Said {
        let life = self.context().system.as_ref().map_or(0, |s| s.member().life());
        let (trial, writes) = (Trial { life, number }, Cell::new(0u64));
        let one = |place: usize| -> Boxed<'_, Written> {
            let writes = &writes;
            Box::pin(async move { self.write_place(trial, id, place, writes).await })
        };
        let written = join::all((0..PLACES).map(one).collect()).await;
        said(&written, writes.get())
    }
    async fn write_place(&self, trial: Trial, id: DriveId, place: usize, writes: &Cell<u64>) -> Written {
        let procedures = self.with(self.cx.with(PATIENCE));
        let end = self.cx.now() + WRITES_MOST;
        let at = TRIAL_AT + (place * STAMP_BYTES) as u64;
        let (mut failures, mut count) = (0, 0);
        loop {
            // What begins after the end was told comes after the fence, too: it must be refused.
            let last = !self.goes_on(trial.number);
            count += 1;
            match procedures.cx.write(id, at, &trial.stamp(count)).await {
                Ok(()) if last => return Written::NotRefused,
                Ok(()) => {
                    writes.set(writes.get() + 1);
                    if writes.get() == 1 {
                        self.says(trial.number, Said::Writes);
                    }
                }
                Err(DriveError::Fenced) => return Written::Refused,
                Err(e) => {
                    failures += 1;
                    if failures == FAILURES {
                        return Written::Failed(e);
                    }
                    self.cx.sleep(FAILED).await;
                }
            }
            if self.cx.now() >= end {
                return Written::TooLong;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_wrote_and_was_refused_everywhere_says_so() {
        let all = [Written::Refused; PLACES];
        let but = |other: Written| {
            let mut some = all;
            some[5] = other;
            some
        };
        assert_eq!(said(&all, 40), Said::Refused);
        assert!(matches!(said(&all, 0), Said::Cannot(_)), "it was no trial");
        assert_eq!(said(&but(Written::NotRefused), 40), Said::NotRefused);
        for other in [Written::Failed(DriveError::Medium), Written::TooLong] {
            assert!(matches!(said(&but(other), 40), Said::Cannot(_)));
        }
        let mut both = but(Written::NotRefused);
        both[0] = Written::TooLong;
        assert_eq!(said(&both, 40), Said::NotRefused, "one place where writes go on is enough");
    }
}
