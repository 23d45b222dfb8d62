//! The last leg in sync of a mirror was pulled, and put back: what was opened stays dead, and nothing else holds
//! what it holds. It is looked for, opened anew, and takes its own place.
//!
//! ```text
//! gone, and the last ▶ found by its label, with our own record ▶ no shard has what was opened, and the kernel
//! holds nothing of it ▶ the new one in the context ▶ on record ▶ published
//! ```
//!
//! It stays in sync on record throughout: it is not put out, since without it there is no mirror. What had not been
//! answered when it was pulled may have landed or not; hosts were told that the volume is not ready, and come again.

use crate::layout::PoolId;
use crate::order::{Answered, Refusal};
use crate::steward::context::probe::Probe;
use crate::steward::legs::come_back::Lacking;
use crate::steward::legs::hold::KeeperHold;
use crate::steward::patience::{LOOK_AFTER, RETURN_PATIENCE};
use crate::steward::procedures::Procedures;
use array::format::{LegState, MembershipRecord, is_current};
use base::{DriveError, Instant};
use finding::{LegEvent, LegRefusal};

/// Records that a leg may miss before no other leg returns: half of those that a record names.
const LAG_MAX: u64 = 16;

/// Each of so many looks is at all drives that nobody holds, as it may have another path today.
const LOOKS_NEAR: u32 = 10;

impl crate::steward::context::pool::PoolContext {
    /// Last legs of mirrors that are gone as they were opened, and due to be looked for.
    pub(crate) fn due_to_reopen(&self, now: Instant) -> Vec<(usize, usize)> {
        let mut due = vec![];
        for (a, array) in self.arrays.iter().enumerate().filter(|(_, a)| a.geometry.redundant()) {
            let is_due =
                |l: &usize| array.legs[*l].look_at.is_some_and(|at| at <= now) && self.is_last(a, *l);
            due.extend((0..array.legs.len()).filter(is_due).map(|l| (a, l)));
        }
        due
    }
    /// Whether a last leg of a mirror is gone, and looked for.
    pub(crate) fn is_looked_for(&self) -> bool {
        self.arrays.iter().flat_map(|a| &a.legs).any(|l| l.look_at.is_some())
    }
    /// The last leg of this mirror is gone, and looked for.
    pub(crate) fn lacks_last(&self, array: usize) -> bool {
        let legs = self.arrays[array].legs.iter().enumerate();
        legs.filter(|(_, leg)| leg.look_at.is_some()).any(|(l, _)| self.is_last(array, l))
    }
    /// No leg that is in sync on record is closed at the moment.
    pub(crate) fn all_in_sync_are_open(&self) -> bool {
        let mut legs =
            self.arrays.iter().enumerate().flat_map(|(a, x)| x.legs.iter().enumerate().map(move |l| (a, l)));
        legs.all(|(a, (l, leg))| leg.open.is_some() || self.leg_state(a, l) != LegState::InSync)
    }
}

impl Procedures {
    /// Before a leg returns: a last leg that takes no record, since it is gone or refuses, must not be left so far
    /// behind that records name it no more, or it could neither be opened anew nor be believed at the next start.
    /// Each leg that comes and goes, in whatever mirror, is some records; so from some lag on no leg returns.
    pub(crate) async fn catch_up(&self, pool: PoolId) -> Result<(), Refusal> {
        let lag = || self.context().pool(pool).map_or(0, |p| p.record().lag_max());
        if lag() < LAG_MAX {
            return Ok(());
        }
        // Perhaps it is well by now, and there was nothing to put on record since.
        let (hold, record) = self.record_again(pool).await;
        let failed = match &record {
            Some(record) => self.write_record(pool, record, &[]).await.0,
            None => vec![],
        };
        drop(hold);
        if lag() < LAG_MAX {
            return Ok(());
        }
        let context = self.context();
        let Some(p) = context.pool(pool) else { return Ok(()) };
        let legs = p.arrays.iter().enumerate().flat_map(|(a, x)| (0..x.legs.len()).map(move |l| (a, l)));
        let is_closed = |(a, l): &(usize, usize)| p.is_last(*a, *l) && p.arrays[*a].legs[*l].open.is_none();
        let behind = failed.first().map(|(a, l, _)| (*a, *l)).or_else(|| legs.clone().find(is_closed));
        let drive = behind.map(|(a, l)| p.drive_path(a, l).to_string());
        Err(LegRefusal::LegFarBehind { drive, records: lag() }.into())
    }

    /// The record in the context, to be written once more while the keeper is held.
    pub(crate) async fn record_again(&self, pool: PoolId) -> (KeeperHold, Option<MembershipRecord>) {
        let hold = self.hold_keeper(pool).await;
        let record = self.context_mut().pool_mut(pool).map(|p| {
            // A promotion that was refused before is tried as it was only while nothing was written behind it.
            p.promotion_refused(None);
            p.record().clone()
        });
        (hold, record)
    }

    /// Looks for legs that are due, and takes back those that are found.
    pub(crate) async fn reopen_last_legs(&self, pool: PoolId) {
        let now = self.cx.now();
        let due: Vec<(usize, usize, bool)> = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool).filter(|p| !p.leaving) else { return };
            let due = p.due_to_reopen(now);
            due.into_iter()
                .map(|(a, l)| {
                    let leg = &mut p.arrays[a].legs[l];
                    let everywhere = leg.looks.is_multiple_of(LOOKS_NEAR);
                    leg.is_looked_for(now + LOOK_AFTER);
                    (a, l, everywhere)
                })
                .collect()
        };
        for (array, leg, everywhere) in due {
            // Why it is not back is told by `status`.
            if self.come_back(pool, Lacking::LastLeg { array, leg, everywhere }).await.is_err() {
                self.leave_last_leg(pool, array, leg).await;
            }
        }
    }
    /// Order: return, of a leg that is in sync on record. It is looked for at once if it is the last one, and what
    /// was opened is gone.
    pub(crate) async fn return_in_sync(&self, pool: PoolId, array: usize, leg: usize) -> Answered {
        let (path, open, last) = {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            let l = &p.arrays[array].legs[leg];
            (l.path.clone(), l.open.clone(), p.is_last(array, leg))
        };
        let gone = match open {
            Some(open) => self.cx.inspect(open.id).await == Err(DriveError::Gone),
            None => true,
        };
        if !gone || !last {
            return Err(LegRefusal::LegInSync { leg: path }.into());
        }
        let back = self.come_back(pool, Lacking::LastLeg { array, leg, everywhere: true }).await;
        back.map_err(|_| LegRefusal::LegLookedFor { leg: path }.into())
    }
    /// The leg that was found takes the place of what was opened; None if it may not, or not yet.
    pub(in crate::steward) async fn swap_last(
        &self,
        pool: PoolId,
        array: usize,
        leg: usize,
        probe: &Probe,
    ) -> Option<()> {
        // The keeper may wait for this very drive, so nobody waits for the keeper.
        let hold = self.hold_resting_keeper(pool)?;
        let (dead, before) = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            let p = context.pool_mut(pool)?;
            // Nobody else went on from it, and it was not overwritten.
            let ours = probe.whole
                && probe.newer().is_none()
                && probe.good_label().is_some_and(|l| l.array == array as u32)
                && is_current(probe.record.as_ref().ok(), p.record());
            if !ours || p.leaving || !p.is_last(array, leg) {
                return None;
            }
            let dead = p.arrays[array].legs[leg].dies();
            if dead.is_some() {
                // The shards need a number for a mirror without this leg. It is written nowhere: a crash finds the
                // leg in sync, as it is.
                let mut record = p.record().next(me, incarnation);
                record.arrays[array].epoch = record.counter;
                p.propose(record);
            }
            (dead, p.arrays[array].legs[leg].dead)
        };
        self.publish().await;
        // Nothing of ours may be left in the kernel (promise 5).
        let left = match (dead, before) {
            (Some(dead), _) => self.let_go_wholly(dead.id, RETURN_PATIENCE).await,
            (None, before) => before.is_none_or(|id| self.cx.closed(id)),
        };
        if !left {
            return None;
        }
        let now = self.cx.now();
        let changed = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            let p = context.pool_mut(pool)?;
            let row = &mut p.arrays[array].legs[leg];
            row.is_back(probe.opened(), &probe.info.path);
            let mut record = p.record().next(me, incarnation);
            record.arrays[array].epoch = record.counter;
            let changed = p.changed(&record);
            p.propose(record);
            let drive = p.arrays[array].legs[leg].uuid;
            let event = LegEvent::LastLegReturned { pool: p.config().name.clone() };
            context.happened(now, format!("drive {}", probe.info.path), event);
            context.moved(pool, drive, &probe.info.path);
            changed
        };
        self.put_on_record(pool, &[], &[]).await;
        self.publish().await;
        self.recorded(&changed);
        drop(hold);
        self.look_soon();
        let _ = self.write_pools().await;
        Some(())
    }
}
