//! Arrays on which nothing lies leave a pool again (docs/formats/state.md, "A removal").
//!
//! ```text
//! at rest ▶ drives in the journal ▶ configuration without them ▶ the shards know of them no more ▶ on record
//!         ▶ in the list of pools ▶ labels taken away ▶ out of the journal
//! ```
//!
//! A head that falls before the configuration is on some drive has the pool as it was; afterwards the next start takes the
//! labels away that are left.

use crate::layout::{ArrayId, PoolId};
use crate::mail::ShardMail;
use crate::order::{Answered, Notice, Refusal, Reply};
use crate::steward::context::array::{LegContext, PendingChange};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolContext;
use crate::steward::patience::QUIET_PATIENCE;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{CREATING, POOLS, leaves, path_of};
use crate::steward::state::{Edit, PoolRow};
use array::format::ConfigSlot;
use base::Uuid;
use finding::{PoolEvent, PoolNotice, PoolRefusal};
use pool::StripeMap;
use std::collections::BTreeSet;
use volume::GRANULE_BYTES;

/// What a pool is to lose.
struct Cut {
    pool: PoolId,
    uuid: Uuid,
    name: String,
    /// The first array that leaves; all behind it leave with it.
    first: usize,
    map: StripeMap,
    /// Their names.
    arrays: Vec<String>,
}

impl PoolContext {
    fn names_from(&self, first: usize) -> Vec<String> {
        (first..self.arrays.len()).map(|a| self.array_name(a)).collect()
    }
    /// Which arrays leave if these do, and what is left of the stripe. What was added last is at the end of the pool's space:
    /// it leaves first.
    fn cut_named(&self, names: &[String]) -> Result<(usize, StripeMap), Refusal> {
        let (pool, count) = (self.config().name.clone(), self.arrays.len());
        let find = |name: &String| {
            (0..count).find(|a| self.array_name(*a) == *name).ok_or_else(|| {
                let (array, arrays) = (name.clone(), self.names_from(0));
                PoolRefusal::ArrayUnknown { pool: pool.clone(), array, arrays }
            })
        };
        let named = names.iter().map(find).collect::<Result<BTreeSet<usize>, PoolRefusal>>()?;
        let Some(first) = named.first().copied() else {
            return Err(PoolRefusal::ArrayNotNamed { pool }.into());
        };
        let Some(cut) = (1..=first).rev().find(|a| self.config().map.cut(*a).is_some()) else {
            return Err(PoolRefusal::ArrayIsFirst { pool, array: self.array_name(first) }.into());
        };
        if (cut..count).any(|a| !named.contains(&a)) {
            let missing = (cut..count).filter(|a| !named.contains(a)).map(|a| self.array_name(a)).collect();
            let arrays = named.iter().map(|a| self.array_name(*a)).collect();
            let all = self.names_from(cut);
            return Err(PoolRefusal::ArraysLeaveTogether { pool, arrays, missing, all }.into());
        }
        Ok((cut, self.config().map.cut(cut).expect("found above")))
    }
    /// Refuses to take space away that is somebody's.
    fn check_nothing_lies_behind(&self, map: &StripeMap, arrays: &[String]) -> Result<(), Refusal> {
        let (pool, end) = (&self.config().name, map.bytes() / GRANULE_BYTES);
        let reaches = |v: &&volume::Volume| v.map.runs().any(|run| run.first + run.count > end);
        let volumes: Vec<String> =
            self.config().volumes.iter().filter(reaches).map(|v| format!("{pool}/{}", v.name)).collect();
        let arrays = arrays.to_vec();
        if !volumes.is_empty() {
            return Err(PoolRefusal::ArraysHoldData { volumes, arrays }.into());
        }
        if !self.space().is_free_from(end) {
            return Err(PoolRefusal::ArraysHoldReturned { arrays }.into());
        }
        Ok(())
    }
    /// Refuses while something is under way that the cut would be in the way of. Each drive that stays must learn of it: one
    /// that did not would ask for the arrays that left if it were found alone.
    fn check_calm(&self, first: usize, arrays: &[String]) -> Result<(), Refusal> {
        let pool = self.config().name.clone();
        if self.scrub.run.is_some() {
            return Err(PoolRefusal::PoolBeingScrubbed { pool }.into());
        }
        let leaving: BTreeSet<Uuid> =
            self.arrays[first..].iter().flat_map(|a| &a.legs).map(|l| l.uuid).collect();
        let rows = &self.config().extras.replacements;
        if rows.iter().any(|r| leaving.contains(&r.old) || leaving.contains(&r.new)) {
            return Err(PoolRefusal::ArraysBeingReplaced { arrays: arrays.to_vec() }.into());
        }
        let stay = (0..first).flat_map(|a| (0..self.arrays[a].legs.len()).map(move |l| (a, l)));
        let away =
            stay.into_iter().find(|(a, l)| self.is_out(*a, *l) || self.arrays[*a].legs[*l].open.is_none());
        if let Some((a, l)) = away {
            let (drive, array) = (self.drive_path(a, l).to_string(), self.array_name(a));
            return Err(PoolRefusal::StayingDriveOut { drive, array, pool }.into());
        }
        Ok(())
    }
}

impl Procedures {
    /// Order: arrays on which nothing lies leave their pool.
    pub(crate) async fn array_remove(&self, pool: &str, names: Vec<String>) -> Answered {
        self.check_read(POOLS)?;
        self.check_read(CREATING)?;
        let cut = {
            let context = self.context();
            let p = context.pool_named(pool)?;
            let (first, map) = p.cut_named(&names)?;
            let arrays = p.names_from(first);
            p.check_nothing_lies_behind(&map, &arrays)?;
            p.check_calm(first, &arrays)?;
            Cut { pool: p.id, uuid: p.config().uuid, name: p.config().name.clone(), first, map, arrays }
        };
        let arrays = self.stop_arrays(&cut).await?;
        let hold = self.hold_keeper(cut.pool).await;
        let gone = self.take_off(&cut).await;
        drop(hold);
        let legs = match gone {
            Ok(legs) => legs,
            Err(r) => {
                self.resume_arrays(&arrays);
                return Err(r);
            }
        };
        let listed = self.write_pools().await;
        let open: Vec<OpenDrive> = legs.iter().filter_map(|l| l.open.clone()).collect();
        let kept = self.unlabel_all(&open).await;
        open.iter().for_each(|o| self.let_go(o.id));
        // One that keeps its label says so here, once: it is refused by name until `--force`.
        let paths: Vec<String> = legs.iter().map(|l| l.path.clone()).collect();
        if listed.is_ok() {
            self.done_with(cut.uuid, &paths).await;
        }
        let labelled = |l: &&LegContext| l.open.as_ref().is_none_or(|o| kept.contains(&o.info.path));
        let keeps = |l: &LegContext| {
            PoolNotice::DriveKeepsPoolLabel { drive: l.path.clone(), pool: cut.name.clone() }.into()
        };
        let notices: Vec<Notice> = legs.iter().filter(labelled).map(keeps).collect();
        let free = legs.iter().filter(|l| !labelled(l)).map(|l| l.path.clone()).collect();
        {
            let now = self.cx.now();
            let mut context = self.context_mut();
            legs.into_iter().for_each(|l| context.departs(Some((l.uuid, l.path))));
            let what = format!("pool {}", cut.name);
            context.happened(now, what.clone(), PoolEvent::ArraysLeft { arrays: cut.arrays.clone(), free });
            notices.iter().for_each(|n| context.noticed(now, what.clone(), n.clone()));
        }
        listed?;
        Ok(Reply::Created { uuid: Uuid::default(), notices })
    }

    /// Brings the arrays that leave to rest: no volume lies there, but legs may be compared or copied.
    async fn stop_arrays(&self, cut: &Cut) -> Result<Vec<ArrayId>, Refusal> {
        let (arrays, number) = {
            let mut context = self.context_mut();
            let p = context.pool(cut.pool).expect("orders come one by one");
            let arrays: Vec<ArrayId> = p.arrays[cut.first..].iter().map(|a| a.id).collect();
            let number = context.asks_for_rest(&arrays);
            (arrays, number)
        };
        for array in &arrays {
            self.tell_shards(|| ShardMail::Quiesce { array: *array, number });
        }
        let (procedures, all) = (self.clone(), arrays.clone());
        let quiet = move || procedures.context().are_quiet(&all);
        if self.cx.until_within(QUIET_PATIENCE, quiet).await {
            return Ok(arrays);
        }
        self.resume_arrays(&arrays);
        let (arrays, seconds) = (cut.arrays.clone(), QUIET_PATIENCE.as_secs());
        Err(PoolRefusal::ArraysStillBusy { arrays, seconds }.into())
    }
    fn resume_arrays(&self, arrays: &[ArrayId]) {
        for array in arrays {
            self.tell_shards(|| ShardMail::Resume { array: *array });
        }
    }
    /// The arrays are no part of the pool any more, durably; or all is as it was. Returns their legs.
    async fn take_off(&self, cut: &Cut) -> Result<Vec<LegContext>, Refusal> {
        let drives: Vec<String> = {
            let context = self.context();
            let p = context.pool(cut.pool).expect("orders come one by one");
            // A leg may have been lost while the arrays came to rest.
            p.check_calm(cut.first, &cut.arrays)?;
            let leaving = p.arrays[cut.first..].iter().flat_map(|a| &a.legs).filter(|l| l.open.is_some());
            leaving.map(|l| leaves(&l.path)).collect()
        };
        self.list_addition(cut.uuid, &cut.name, drives.clone()).await?;
        let map = cut.map.clone().into();
        let edit = Edit::ArraysRemoved { first: cut.first as u32, map };
        let planned = self.plan(cut.pool, vec![edit]).await?;
        if let Err(r) = self.put_on_stayers(cut, &planned.slot()).await {
            // Whoever has it would go on without the arrays, and whoever lacks it with them.
            drop(planned);
            self.configure_again(cut.pool).await?;
            let paths: Vec<String> = drives.iter().map(|d| path_of(d).to_string()).collect();
            self.done_with(cut.uuid, &paths).await;
            return Err(r);
        }
        self.decided(planned);
        let legs = {
            let mut context = self.context_mut();
            let p = context.pool_mut(cut.pool).expect("orders come one by one");
            let mut record = p.record().clone();
            record.arrays.truncate(cut.first);
            p.propose(record);
            p.promotion_refused(None);
            let is_here = |w: &PendingChange| {
                let (PendingChange::Lost { array, .. }
                | PendingChange::Joined { array, .. }
                | PendingChange::Synced { array, .. }) = w;
                *array < cut.first
            };
            p.pending.retain(is_here);
            p.scrub.forget_arrays(cut.first);
            let legs: Vec<LegContext> = p.arrays.drain(cut.first..).flat_map(|a| a.legs).collect();
            legs
        };
        // No shard uses a drive any more before its label goes.
        self.publish().await;
        // The record may name more than the configuration does; but with drives that are gone, heads that fall one after the
        // other would find less of what tells their records apart.
        self.next_record(cut.pool);
        self.put_on_record(cut.pool, &[], &[]).await;
        // The other slot says it, too: no slot of a drive asks for the arrays that left.
        self.configure_again(cut.pool).await?;
        Ok(legs)
    }
    /// Writes a configuration to the drives that stay, and to the state directory. All take it, or it is refused.
    async fn put_on_stayers(&self, cut: &Cut, slot: &ConfigSlot) -> Result<(), Refusal> {
        let failed = self.put_config_below(cut.pool, slot, cut.first).await;
        let Some((a, l, error)) = failed.first() else {
            // Every drive that stays has it.
            let _ = self.keep_config(cut.pool, slot).await;
            return Ok(());
        };
        let drive = self.context().pool(cut.pool).map_or(String::new(), |p| p.drive_path(*a, *l).to_string());
        Err(PoolRefusal::StayingDriveNotTold { drive, fault: (*error).into() }.into())
    }

    /// The pool was imported: arrays that were leaving it when the life before ended have left, and their drives are free
    /// again; or they are still there.
    pub(crate) async fn end_removal(&self, uuid: Uuid) {
        let (row, members) = {
            let context = self.context();
            let row = context.creating().iter().find(|r| r.uuid == uuid).cloned();
            let Some((row, p)) = row.zip(context.pools.iter().find(|p| p.config().uuid == uuid)) else {
                return;
            };
            let legs = p.arrays.iter().flat_map(|a| &a.legs).map(|l| l.uuid);
            let members: BTreeSet<Uuid> = legs.chain(p.spares.iter().map(|s| s.uuid)).collect();
            let (drives, here) = (row.drives.iter().filter(|d| leaves(path_of(d)) == **d), p.row().drives);
            let drives = drives.map(|d| path_of(d).to_string()).partition::<Vec<_>, _>(|d| here.contains(d));
            ((p.config().name.clone(), drives), members)
        };
        let (name, (here, gone)) = row;
        // The configuration that lacks them was not on any drive yet.
        self.done_with(uuid, &here).await;
        if gone.is_empty() {
            return;
        }
        let listed = self.look_for_listed(&PoolRow { uuid, name: name.clone(), drives: gone.clone() }).await;
        let is_member = |l: &array::format::Label| members.contains(&l.drive);
        let ours = listed.found.iter().filter(|p| p.good_label().is_some_and(|l| !is_member(l)));
        let open: Vec<OpenDrive> = ours.filter_map(|p| p.opened()).collect();
        let failed = self.unlabel_all(&open).await;
        listed.found.iter().for_each(|p| self.let_go(p.id));
        let left: Vec<String> = failed.into_iter().chain(listed.away).collect();
        let free = open.iter().map(|o| o.info.path.clone()).filter(|p| !left.contains(p)).collect();
        let (what, now) = (format!("pool {name}"), self.cx.now());
        self.context_mut().happened(now, what, PoolEvent::RemovalEnded { free, left: left.clone() });
        if self.check_read(POOLS).and(self.write_pools().await).is_ok() {
            let done: Vec<String> = gone.into_iter().filter(|d| !left.contains(d)).collect();
            self.done_with(uuid, &done).await;
        }
    }
}
