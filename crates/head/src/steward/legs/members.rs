//! Membership: loss, return, promotion. One keeper for each pool does one change after the other.
//!
//! ```text
//! loss       out in the context ▶ published ▶ applied by all shards ▶ on record ▶ Recorded   (promise 5)
//! return     rebuilding on record ▶ published ▶ … every shard: Synced ▶ in sync on record ▶ published
//! ```
//!
//! A loss is published before it is on record, because no shard may read from the leg once a write that
//! it lacks is answered. A promotion is on record before it is published, because nobody may read from
//! the leg before a crash would still find it in sync.

use crate::layout::{ArrayId, PoolId};
use crate::mail::ShardMail;
use crate::order::Order;
use crate::steward::context::array::{Outlook, PendingChange, outlook};
use crate::steward::context::found::Found;
use crate::steward::context::head::HeadContext;
use crate::steward::context::pool::PoolContext;
use crate::steward::legs::exchange::Untaken;
use crate::steward::procedures::Procedures;
use crate::steward::status::speed::{Speed, Work};
use array::format::{LegState, MemberLeg, MembershipRecord};
use base::{Bug, DriveError, Duration, Instant, planted};
use finding::{Cause, DriveFault, FailedLeg, LegCause, LegEvent, RecordCause};
use std::collections::VecDeque;
use std::sync::Arc;

impl Procedures {
    /// Starts the keeper of a pool.
    pub(crate) fn start_keeper(&self, pool: PoolId) {
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.keep(pool).await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_record(pool).await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_clean(pool).await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_scrubs(pool).await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_spares(pool).await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_returned(pool).await });
    }

    async fn keep(&self, pool: PoolId) {
        loop {
            let procedures = self.clone();
            let anything = move || {
                // While the pool is let go of, who does that writes its last record.
                let due = |p: &PoolContext| !p.pending.is_empty() || p.lacks_settled_copy();
                let works = |p: &PoolContext| !p.leaving && !p.held && due(p);
                procedures.context().pool(pool).is_none_or(works)
            };
            self.cx.until(anything).await;
            let pending = match self.context_mut().pool_mut(pool) {
                None => return,
                Some(p) => {
                    p.is_kept(true);
                    next_pending(&mut p.pending)
                }
            };
            match pending.first() {
                None => {
                    let failed = self.write_settled_copy(pool).await;
                    self.propose_losses(pool, failed, Untaken::Record);
                }
                Some(PendingChange::Lost { .. }) => self.lose(pool, pending).await,
                Some(&PendingChange::Joined { array, leg, full, new }) => {
                    self.join_leg(pool, array, leg, full, new).await;
                }
                Some(&PendingChange::Synced { array, leg }) => self.promote(pool, array, leg).await,
            }
            if let Some(p) = self.context_mut().pool_mut(pool) {
                p.is_kept(false);
            }
        }
    }

    /// Legs that failed to take something are put out, unless they are the last.
    pub(crate) fn propose_losses(
        &self,
        pool: PoolId,
        failed: Vec<(usize, usize, DriveError)>,
        what: Untaken,
    ) {
        if let Some(p) = self.context_mut().pool_mut(pool) {
            for (array, leg, error) in failed {
                let open = p.arrays[array].legs.get(leg).and_then(|l| l.open.as_ref());
                let why = what.cause(open.map_or_else(|| error.into(), |o| o.fault(error)));
                p.pending.push_back(PendingChange::Lost {
                    array,
                    leg,
                    why,
                    outlook: outlook(error),
                    there: None,
                });
            }
        }
    }

    /// Legs are lost.
    async fn lose(&self, pool: PoolId, pending: Vec<PendingChange>) {
        let pending = self.lost_for_all(pool, pending).await;
        let (put_out, changed) = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            let Some(p) = context.pool_mut(pool) else { return };
            let mut record = p.record().next(me, incarnation);
            let put_out = context.take_out(pool, &mut record, pending, self.cx.now());
            if put_out.is_empty() {
                return;
            }
            let p = context.pool_mut(pool).expect("seen above");
            let changed = p.changed(&record);
            p.propose(record);
            (put_out, changed)
        };
        self.publish().await;
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.loses();
        }
        self.put_on_record(pool, &changed, &[]).await;
        let broken =
            |p: &PoolContext| put_out.iter().any(|(a, l)| p.arrays[*a].legs[*l].outlook == Outlook::Broken);
        if self.context().pool(pool).is_some_and(broken) {
            self.context_mut().orders.push_back((None, Order::LegFailed { pool }));
        }
        for (array, leg) in put_out {
            let procedures = self.clone();
            self.cx.spawn(async move { procedures.look_if_cut_off(pool, array, leg).await });
        }
    }

    /// A leg was put out, on record by now. What it met may be that it became smaller: then that is told, with what helps.
    async fn look_if_cut_off(&self, pool: PoolId, array: usize, leg: usize) {
        let open = {
            let context = self.context();
            let p = context.pool(pool).filter(|p| !p.leaving);
            let l = p.and_then(|p| p.arrays.get(array)?.legs.get(leg));
            let Some(l) = l.filter(|l| l.outlook == Outlook::MayReturn) else { return };
            let Some(open) = l.open.clone() else { return };
            open
        };
        let Ok(health) = self.cx.inspect(open.id).await else { return };
        let now = self.cx.now();
        let mut context = self.context_mut();
        let p = context.pool_mut(pool).filter(|p| p.is_out(array, leg));
        let l = p.and_then(|p| p.arrays[array].legs.get_mut(leg));
        let Some(l) = l.filter(|l| l.open.as_ref().is_some_and(|o| o.id == open.id)) else { return };
        let Some(found) = Found::cut_off(&open, health.bytes) else { return };
        if l.reason.as_ref().is_some_and(says_cut_off) {
            l.finds(found);
            return;
        }
        let what = format!("drive {}", l.path);
        l.is_told(found.cause(&l.path), Some(found));
        let event = LegEvent::LegCutOff { bytes: health.bytes, needed_bytes: open.label.drive_bytes };
        context.happened(now, what, event);
    }

    /// A leg is there, again or as a `new` one: it is written from now on, and what it lacks is copied.
    async fn join_leg(&self, pool: PoolId, array: usize, leg: usize, full: bool, new: bool) {
        let now = self.cx.now();
        if !full {
            self.add_dirty_of(pool, array, leg).await;
        }
        let changed = {
            let mut context = self.context_mut();
            let me = context.me();
            let incarnation = context.new_incarnation();
            let Some(p) = context.pool_mut(pool) else { return };
            if p.arrays[array].legs.get(leg).is_none_or(|l| l.open.is_none()) {
                return;
            }
            let mut record = p.record().next(me, incarnation);
            // If everything is to be copied, every bit was set before: the bitmaps know.
            let state = LegState::Rebuilding;
            let drive = p.arrays[array].legs[leg].uuid;
            let legs = &mut record.arrays[array].legs;
            let row = MemberLeg::new(drive, state);
            match legs.get_mut(leg) {
                Some(place) => *place = row,
                None => legs.push(row),
            }
            record.arrays[array].epoch = record.counter;
            let changed = p.changed(&record);
            let reason = match (full, p.replaces(drive)) {
                (true, Some(old)) if p.is_leg(old.old) => {
                    LegCause::LegReplacing { old: old.old_path.clone() }
                }
                (true, _) => LegCause::LegFullResync,
                (false, _) => LegCause::LegResync,
            };
            p.arrays[array].legs[leg].joins(record.counter, full, reason);
            p.propose(record);
            context.speeds.insert(Work::Leg(drive), Speed::begun(now));
            let p = context.pool(pool).expect("seen above");
            let what = format!("drive {}", p.drive_path(array, leg));
            // Whose place it takes was told as the order was carried out.
            let event = LegEvent::LegJoined { pool: p.config().name.clone(), new, full };
            context.happened(now, what, event);
            changed
        };
        self.put_on_record(pool, &[], &[]).await;
        self.publish().await;
        self.recorded(&changed);
    }

    /// A leg that returns may have been written where no other bitmap says so: what its own says is
    /// copied too. A bitmap that cannot be read says everything.
    async fn add_dirty_of(&self, pool: PoolId, array: usize, leg: usize) {
        let found = self.context().pool(pool).map(|p| {
            let a = &p.arrays[array];
            (a.id, a.geometry, p.config().array_uuid(array), a.legs[leg].open.clone())
        });
        let Some((id, geometry, uuid, Some(open))) = found else { return };
        if geometry.redundant() && !planted(Bug::OwnBitmapIgnored) && !planted(Bug::WipedByBitmap) {
            let own = self.read_bitmap(&open).await;
            let dirty = Arc::new(array::merge(&geometry, uuid, &[own.as_deref()]).0);
            self.tell_shards(|| ShardMail::AddDirty { array: id, dirty: dirty.clone() });
        }
    }

    /// Makes the record in the context durable, and then tells the shards that these arrays' epochs are. A pool
    /// that is let go of is not waited for once its hosts were told (`watch_record`). Legs that `had` it are passed over.
    pub(crate) async fn put_on_record(
        &self,
        pool: PoolId,
        changed: &[(ArrayId, u64)],
        had: &[(usize, usize)],
    ) {
        let began = self.cx.now();
        let record = self.context_mut().pool_mut(pool).map(|p| {
            p.records(Some(began));
            p.record().clone()
        });
        let Some(record) = record else { return };
        let written = (!changed.is_empty() && planted(Bug::LossNotRecorded))
            || self.write_down(pool, &record, had).await.is_some();
        if written {
            self.recorded(changed);
            self.end_of_recording(pool).await;
        } else if let Some(p) = self.context_mut().pool_mut(pool) {
            p.records(None);
        }
    }
    /// Writes a record to where it must be, however long that takes. A leg that fails to take it is proposed as lost;
    /// true if none is. None if the pool is let go of meanwhile.
    pub(crate) async fn write_down(
        &self,
        pool: PoolId,
        record: &MembershipRecord,
        had: &[(usize, usize)],
    ) -> Option<bool> {
        loop {
            let (failed, witness) = self.write_record(pool, record, had).await;
            {
                let mut context = self.context_mut();
                let p = context.pool_mut(pool)?;
                if p.has_taken(&failed, &witness) {
                    context.decide(pool, record);
                    return Some(failed.is_empty());
                }
                if p.leaving && (p.unrecorded || !p.losing) {
                    return None;
                }
            }
            self.cx.sleep(RETRY).await;
        }
    }
    pub(crate) fn recorded(&self, changed: &[(ArrayId, u64)]) {
        for (array, epoch) in changed {
            self.tell_shards(|| ShardMail::Recorded { array: *array, epoch: *epoch });
        }
    }

    /// Tells the shards when the first resync after a crash is over on all of them.
    async fn watch_clean(&self, pool: PoolId) {
        loop {
            let procedures = self.clone();
            let due = move || {
                let context = procedures.context();
                context.pool(pool).is_none_or(|p| {
                    !p.leaving && p.arrays.iter().any(|a| a.unclean && p.have_all_said(a, &a.clean))
                })
            };
            self.cx.until(due).await;
            let (now, mut done) = (self.cx.now(), vec![]);
            {
                let mut context = self.context_mut();
                let Some(p) = context.pool_mut(pool) else { return };
                let (what, mut lines) = (format!("pool {}", p.config().name), vec![]);
                for a in 0..p.arrays.len() {
                    if !p.arrays[a].unclean || !p.have_all_said(&p.arrays[a], &p.arrays[a].clean) {
                        continue;
                    }
                    p.arrays[a].compared();
                    done.push(p.arrays[a].id);
                    lines.extend(p.compared(a, now));
                }
                lines.into_iter().for_each(|l| context.happened(now, what.clone(), l));
            }
            for array in done {
                self.tell_shards(|| ShardMail::Clean { array });
            }
        }
    }
}

impl HeadContext {
    /// Puts legs out in `record`, the next one of that pool, and in the context; false if nobody was left to put out.
    pub(crate) fn take_out(
        &mut self,
        pool: PoolId,
        record: &mut MembershipRecord,
        pending: Vec<PendingChange>,
        now: Instant,
    ) -> Vec<(usize, usize)> {
        let Some(p) = self.pool_mut(pool) else { return vec![] };
        let (mut events, mut put_out) = (vec![], vec![]);
        for change in pending {
            let PendingChange::Lost { array, leg, why, outlook, .. } = change else {
                unreachable!("chosen by kind")
            };
            let legs = &record.arrays[array].legs;
            // Every shard reports the loss: the first one is told, also where both share a record.
            if legs.get(leg).is_none_or(|l| l.state.is_out()) {
                continue;
            }
            let others = (0..legs.len()).any(|l| l != leg && legs[l].state == LegState::InSync);
            if legs[leg].state == LegState::InSync && !others {
                // Promise 7: the last good leg is never ejected.
                continue;
            }
            record.put_out(array, leg);
            record.arrays[array].epoch = record.counter;
            put_out.push((array, leg));
            let pool = p.config().name.clone();
            let row = &mut p.arrays[array].legs[leg];
            row.goes(now, why.clone(), outlook);
            let why = Box::new(why);
            let event = match outlook {
                Outlook::MayReturn | Outlook::Broken | Outlook::ByHand => LegEvent::LegOut { pool, why },
                Outlook::Leaves => LegEvent::LegLeaves { pool, why },
            };
            events.push((format!("drive {}", row.path), event));
        }
        for (what, event) in events {
            self.happened(now, what, event);
        }
        put_out
    }
    /// The shards are about to be told of all arrays: notes from when on they compare what may differ in the new ones.
    pub(crate) fn note_comparisons(&mut self, now: Instant) {
        let mut lines = vec![];
        for p in &mut self.pools {
            for a in 0..p.arrays.len() {
                if p.arrays[a].unclean && p.arrays[a].compared_since.is_none() {
                    p.arrays[a].compares(now);
                    self.speeds.insert(Work::Array(p.arrays[a].id), Speed::begun(now));
                    lines.extend(p.comparing(a).map(|l| (format!("pool {}", p.config().name), l)));
                }
            }
        }
        lines.into_iter().for_each(|(what, l)| self.happened(now, what, l));
    }
}

/// Whether the drive failed as one does that became smaller.
fn says_cut_off(cause: &Cause) -> bool {
    match cause {
        Cause::Leg(LegCause::DriveCutOff { .. }) => true,
        Cause::Leg(cause) => cause.fault() == Some(&DriveFault::Cut),
        _ => false,
    }
}

const RETRY: Duration = Duration::from_millis(200);

/// The first pending change, and all further losses if it is one: they share a record. Losses come first.
fn next_pending(pending: &mut VecDeque<PendingChange>) -> Vec<PendingChange> {
    let losses = losses(pending);
    if losses.is_empty() { pending.pop_front().into_iter().collect() } else { losses }
}
/// Takes the losses out of the pending changes.
pub(crate) fn losses(pending: &mut VecDeque<PendingChange>) -> Vec<PendingChange> {
    let is_loss = |w: &PendingChange| matches!(w, PendingChange::Lost { .. });
    let (losses, rest): (Vec<PendingChange>, Vec<PendingChange>) = pending.drain(..).partition(is_loss);
    pending.extend(rest);
    losses
}

impl PoolContext {
    /// What the bitmaps of an array said at the start: as much is compared, and copied where legs differ.
    fn unclean_bytes(&self, array: usize) -> u64 {
        let a = &self.arrays[array];
        u64::from(a.dirty.count()) * a.geometry.region_bytes
    }
    /// What is told when an array's drives begin to be compared; None if no region is marked.
    fn comparing(&self, array: usize) -> Option<LegEvent> {
        let (bytes, mirror) = (self.unclean_bytes(array), self.array_name(array));
        (bytes > 0).then_some(LegEvent::MirrorCompares { mirror, bytes })
    }
    /// What is told when that is over on all shards.
    fn compared(&self, array: usize, now: Instant) -> Option<LegEvent> {
        let (bytes, mirror) = (self.unclean_bytes(array), self.array_name(array));
        let seconds = now.since(self.arrays[array].compared_since?).as_secs();
        (bytes > 0).then_some(LegEvent::MirrorCompared { mirror, bytes, seconds })
    }
    /// Whether the record is where it must be, after an attempt to write it; legs that failed are proposed as lost.
    pub(crate) fn has_taken(
        &mut self,
        failed: &[(usize, usize, DriveError)],
        witness: &Result<(), Cause>,
    ) -> bool {
        let (mut last, mut stuck) = (vec![], false);
        for (array, leg, error) in failed {
            if self.is_last(*array, *leg) {
                // It stays, and so the witness alone must hold what it could not take.
                stuck |= witness.is_err();
                last.push(FailedLeg { drive: self.drive_path(*array, *leg).into(), fault: (*error).into() });
            } else {
                let why = Untaken::Record.cause((*error).into());
                let outlook = outlook(*error);
                let (array, leg) = (*array, *leg);
                self.pending.push_back(PendingChange::Lost { array, leg, why, outlook, there: None });
            }
        }
        let Err(why) = witness else {
            self.is_troubled(None);
            return true;
        };
        let provable = self.loss_is_provable(self.record(), failed);
        let why = Box::new(why.clone());
        let trouble = RecordCause::RecordNotTaken { why, drives: last, stale: !provable };
        self.is_troubled(Some(trouble.into()));
        // Without a witness the record must at least be on every leg that goes on (or that is put out next).
        !stuck && provable && failed.len() < self.reachable().len()
    }
    /// Arrays whose epoch is another in `new`.
    pub(crate) fn changed(&self, new: &MembershipRecord) -> Vec<(ArrayId, u64)> {
        let rows = self.arrays.iter().zip(&self.record().arrays).zip(&new.arrays);
        rows.filter(|((_, old), new)| old.epoch != new.epoch).map(|((a, _), new)| (a.id, new.epoch)).collect()
    }
}
