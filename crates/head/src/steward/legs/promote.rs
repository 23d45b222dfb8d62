//! A leg is in sync again, as the record says: docs/formats/membership.md, "Order of writing".
//!
//! ```text
//! every shard: Synced ▶ the record on every leg of the mirror that is in sync ▶ on all other places ▶ published
//!                          └─ one did not take it ▶ the leg stays as it was ▶ tried again
//! ```
//!
//! Nothing here is waited for: what else the keeper has to put on record, and who looks for the very leg that did
//! not take this one, come first.

use crate::layout::PoolId;
use crate::steward::context::array::PendingChange;
use crate::steward::context::pool::PoolContext;
use crate::steward::join;
use crate::steward::legs::exchange::Untaken;
use crate::steward::procedures::Procedures;
use crate::steward::state::Change;
use array::format::{LegState, MembershipRecord};
use base::{DriveError, Duration};
use finding::LegEvent;

/// When it is tried again to put a leg in sync.
const AGAIN: Duration = Duration::from_secs(2);

impl PoolContext {
    /// The legs of a mirror that are in sync, without this one; None if one of them is not open.
    fn others_in_sync(&self, array: usize, leg: usize) -> Option<Vec<(usize, usize)>> {
        let legs = self.arrays[array].legs.iter().enumerate();
        let mut others = legs.filter(|(l, _)| *l != leg && self.leg_state(array, *l) == LegState::InSync);
        others.try_fold(vec![], |mut all, (l, context)| {
            context.open.as_ref()?;
            all.push((array, l));
            Some(all)
        })
    }
    /// The record that puts a leg in sync: the one that was refused before, if nothing was put on record since.
    fn promotion(
        &self,
        array: usize,
        leg: usize,
        new: impl FnOnce() -> MembershipRecord,
    ) -> MembershipRecord {
        let is_same = |r: &MembershipRecord| r.arrays[array].legs[leg].state == LegState::InSync;
        match &self.refused {
            Some((record, stands_in)) if *stands_in == self.record().incarnation && is_same(record) => {
                record.clone()
            }
            _ => new(),
        }
    }
}

impl Procedures {
    /// Every shard that has lanes of the array has copied what the leg lacks.
    pub(in crate::steward) async fn promote(&self, pool: PoolId, array: usize, leg: usize) {
        let (record, first) = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            let Some(p) = context.pool_mut(pool) else { return };
            if !p.rebuilds(array, leg) || !p.is_synced(array, leg) {
                return;
            }
            let record = p.promotion(array, leg, || {
                let mut record = p.record().next(me, incarnation);
                record.arrays[array].legs[leg].state = LegState::InSync;
                record.arrays[array].epoch = record.counter;
                record
            });
            (record, p.others_in_sync(array, leg))
        };
        let failed = match &first {
            Some(legs) => self.write_to(pool, legs, &record).await,
            None => return self.promote_later(pool, array, leg),
        };
        if !failed.is_empty() {
            self.take_back_promotion(pool, array, leg, record);
            self.propose_losses(pool, failed, Untaken::Record);
            return self.promote_later(pool, array, leg);
        }
        let now = self.cx.now();
        let changed = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool) else { return };
            let changed = p.changed(&record);
            p.propose(record);
            p.promotion_refused(None);
            p.arrays[array].legs[leg].reason = None;
            let what = format!("drive {}", p.drive_path(array, leg));
            let event = LegEvent::LegSynced { pool: p.config().name.clone() };
            context.happened(now, what, event);
            changed
        };
        self.put_on_record(pool, &[], &first.unwrap_or_default()).await;
        self.publish().await;
        self.recorded(&changed);
        self.look_soon();
    }

    /// Puts a record on these legs alone; returns those that failed to take it.
    async fn write_to(
        &self,
        pool: PoolId,
        legs: &[(usize, usize)],
        record: &MembershipRecord,
    ) -> Vec<(usize, usize, DriveError)> {
        self.context_mut().journal.proposed(&Change::Member { record: record.clone() });
        let targets = self.context().pool(pool).map(PoolContext::reachable).unwrap_or_default();
        let targets = targets.into_iter().filter(|(a, l, _)| legs.contains(&(*a, *l)));
        let bytes = &record.encode();
        let results = join::all(self.record_writes(targets, record, bytes)).await;
        results.into_iter().filter_map(|r| r.ok().flatten()).collect()
    }

    /// A record that puts a leg in sync was not taken by all who must have it first. Some may have it, so whatever
    /// comes next comes behind it, and takes it back. It is not written by itself: if it is tried again before
    /// anything else is put on record, it is the same record that is tried, so that trying uses up no names of
    /// ancestors.
    fn take_back_promotion(&self, pool: PoolId, array: usize, leg: usize, record: MembershipRecord) {
        let mut context = self.context_mut();
        let (me, incarnation) = (context.me(), context.new_incarnation());
        let Some(p) = context.pool_mut(pool) else { return };
        let stands_in = p
            .refused
            .as_ref()
            .is_some_and(|(r, name)| r.incarnation == record.incarnation && *name == p.record().incarnation);
        if stands_in {
            return;
        }
        let mut behind = record.next(me, incarnation);
        behind.arrays[array].legs[leg].state = p.leg_state(array, leg);
        behind.arrays[array].epoch = p.record().arrays[array].epoch;
        p.propose(behind);
        p.promotion_refused(Some((record, incarnation)));
    }

    fn promote_later(&self, pool: PoolId, array: usize, leg: usize) {
        let procedures = self.clone();
        self.cx.spawn(async move {
            procedures.cx.sleep(AGAIN).await;
            if let Some(p) = procedures.context_mut().pool_mut(pool) {
                p.pending.push_back(PendingChange::Synced { array, leg });
            }
        });
    }
}
