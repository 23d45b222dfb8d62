//! Lanes of a pool's arrays are dealt anew while hosts use them.

use super::Marked;
use crate::layout::{ArrayId, PoolId};
use crate::mail::ShardMail;
use crate::order::{Answered, Reply};
use crate::steward::context::array::{ArrayContext, LegContext, PendingChange};
use crate::steward::context::head::{HeadContext, Stop};
use crate::steward::context::pool::PoolContext;
use crate::steward::procedures::Procedures;
use array::Lanes;
use array::format::LegState;
use base::{Bug, Duration, planted, planted_if};
use finding::SystemRefusal;

/// How long it is waited for the end of what a pool's keeper is at.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the arrays of a pool wait for each other's drives to be fenced.
const ALL_PATIENCE: Duration = Duration::from_millis(150);
/// How long hosts wait for arrays that do not come to rest. Then they go on by the map that they have: a drive that hangs must not
/// keep reads of other drives for much longer than it may (promise 7).
const HALT_PATIENCE: Duration = Duration::from_millis(250);

impl HeadContext {
    /// Who is to have the lanes of an array: of a mirror that both heads reach, even ones this head and odd ones the other, or turned round;
    /// among the shards of a head they go round.
    pub(in crate::steward) fn lanes_of(&self, array: ArrayId) -> Lanes {
        let far = if self.far_takes(array) { self.far_shards } else { 0 };
        let (own, turned) = (self.own_shards, self.lanes_turned);
        let owner = |lane: usize| {
            let lane = lane as u16;
            match far {
                0 => (lane + turned) % own,
                _ if (lane + array.0).is_multiple_of(2) => (lane / 2 + turned) % own,
                _ => own + (lane / 2 + turned) % far,
            }
        };
        Lanes::new(core::array::from_fn(owner))
    }
    /// The other head's shards take part, and reach every leg in sync of a mirror.
    fn far_takes(&self, array: ArrayId) -> bool {
        let reached = self.system.as_ref().and_then(|s| s.reached().of_other());
        let (Some(reached), true) = (reached, self.far_shards > 0) else { return false };
        let in_pool = |p: &PoolContext| Some((p.arrays.iter().position(|a| a.id == array)?, p.id));
        let Some((a, p)) = self.pools.iter().find_map(in_pool) else { return false };
        let pool = self.pool(p).expect("just found");
        let mut legs = pool.arrays[a].legs.iter().enumerate();
        let tried = |leg: &LegContext| leg.open.as_ref().is_none_or(|open| self.is_tried(open));
        let uses =
            |leg: &LegContext| reached.contains(&leg.uuid) && (tried(leg) || planted(Bug::ServesUntried));
        let reaches = |(l, leg): (usize, &LegContext)| pool.is_out(a, l) || uses(leg);
        pool.arrays[a].geometry.redundant() && legs.all(reaches)
    }
    /// Some pool's lanes are to be dealt otherwise than they are, and may be.
    pub(in crate::steward) fn lanes_wait(&self) -> bool {
        let wrong = |p: &PoolContext| p.is_bereft() || self.is_dealt_wrongly(p);
        let may = |p: &&PoolContext| !p.leaving && self.may_lose_copy(p);
        self.ready && self.stop == Stop::No && self.pools.iter().filter(may).any(wrong)
    }
    /// Its lanes are not where they should be, or the other head does not reach all of what it has lanes of.
    fn is_dealt_wrongly(&self, pool: &PoolContext) -> bool {
        pool.far_lacks || pool.arrays.iter().any(|a| a.lanes != self.lanes_of(a.id))
    }
    /// No copy to a leg of a pool would begin anew if its lanes were dealt anew; or it cannot end before that, as nobody has some lanes, or
    /// the other head has some and does not reach every leg.
    fn may_lose_copy(&self, pool: &PoolContext) -> bool {
        !pool.is_copying() || pool.is_bereft() || pool.far_lacks || self.other_lacks(pool)
    }
    /// The other head has lanes of an array of a pool, and does not reach every leg of it.
    fn other_lacks(&self, pool: &PoolContext) -> bool {
        let lacks = |a: &ArrayContext| !a.lanes.are_below(self.own_shards) && !self.far_takes(a.id);
        pool.arrays.iter().any(lacks)
    }
    /// Shards of the other head are told of all pools: those of which they do not reach what they have lanes of.
    pub(in crate::steward) fn note_lacks(&mut self) {
        let pools: Vec<PoolId> = self.pools.iter().filter(|p| self.other_lacks(p)).map(|p| p.id).collect();
        for id in pools {
            self.pool_mut(id).expect("just found").lacks_far();
        }
    }
    /// Lanes are to be dealt from another shard on.
    fn turns_lanes(&mut self) {
        self.lanes_turned = (self.lanes_turned + 1) % self.own_shards;
    }
}

impl ArrayContext {
    /// Returned space is being marked.
    fn is_marking(&self, shards: u16) -> bool {
        self.marks > 0 && self.marked.len() < usize::from(shards)
    }
}

impl HeadContext {
    /// The other head, which is gone, has no way to any drive of an array any more: what it had begun there is over. A leg that is out does
    /// not count.
    fn is_shut_off(&self, p: &PoolContext, array: usize) -> bool {
        let Some(system) = self.system.as_ref() else { return true };
        let legs = p.arrays[array].legs.iter().enumerate().filter(|(l, _)| !p.is_out(array, *l));
        let shut_out = |leg: &LegContext| {
            let open = leg.open.as_ref();
            leg.behind.is_none() && open.is_none_or(|open| system.has_shut_out(open.id, p.far_epoch))
        };
        legs.into_iter().all(|(_, leg)| shut_out(leg)) || planted(Bug::LanesUnfenced)
    }
    /// Arrays of a pool whose lanes may be dealt now, and whether some of them are nobody's. None: no array's may.
    fn to_deal(&self, pool: PoolId) -> Option<(bool, Vec<ArrayId>)> {
        let p = self.pool(pool)?;
        if !p.is_bereft() {
            return Some((false, p.array_ids()));
        }
        let may = |a: &usize| self.is_shut_off(p, *a);
        if self.far_shards > 0 {
            // The lanes of those that wait must not be taken for those of shards that have come meanwhile.
            return (0..p.arrays.len()).all(|a| may(&a)).then(|| (true, p.array_ids()));
        }
        let some = (0..p.arrays.len()).filter(|a| p.is_bereft_array(*a)).filter(may);
        let some: Vec<ArrayId> = some.map(|a| p.arrays[a].id).collect();
        (!some.is_empty()).then_some((true, some))
    }
}

impl PoolContext {
    fn array_ids(&self) -> Vec<ArrayId> {
        self.arrays.iter().map(|a| a.id).collect()
    }
    /// All that its arrays have to do with is on record and known to all shards, and every leg that takes part is there.
    fn may_deal(&self) -> bool {
        let rests = self.keeper_rests() && self.pending.is_empty();
        let settled = !self.leaving && !self.losing && !self.unrecorded && !self.is_proposed();
        let there = |a: usize| {
            let legs = self.arrays[a].legs.iter().enumerate();
            legs.filter(|(l, _)| !self.is_out(a, *l)).all(|(_, leg)| leg.open.is_some())
        };
        let all = |a: usize| there(a) && (!self.arrays[a].is_marking(self.shards) || self.is_bereft());
        rests && settled && (0..self.arrays.len()).all(all)
    }
    /// Something is copied to a leg of it.
    pub(in crate::steward) fn is_copying(&self) -> bool {
        let legs = |a: usize| (0..self.arrays[a].legs.len()).any(|l| self.rebuilds(a, l));
        (0..self.arrays.len()).any(legs)
    }
    /// Some shard has lost a leg of it: it comes to no rest before that is on record.
    fn loses_leg(&self) -> bool {
        self.pending.iter().any(|w| matches!(w, PendingChange::Lost { .. }))
    }
}

impl Procedures {
    /// Order: the lanes of all arrays go round by one shard.
    pub(crate) async fn turn_lanes(&self) -> Answered {
        self.context_mut().turns_lanes();
        self.deal_lanes(true).await
    }
    /// Order of the Steward's own: pools whose lanes are dealt otherwise than they should be are dealt anew. One with a leg that is
    /// copied to waits until that is over, unless `copying` ones are meant, too: the copy would begin from the beginning.
    pub(crate) async fn deal_lanes(&self, copying: bool) -> Answered {
        let all: Vec<(PoolId, String)> = {
            let context = self.context();
            let wanted = |p: &&PoolContext| p.shards < context.shards() || context.is_dealt_wrongly(p);
            let may = |p: &&PoolContext| copying || context.may_lose_copy(p);
            let pools = context.pools.iter().filter(|p| !p.leaving).filter(may);
            pools.filter(wanted).map(|p| (p.id, p.config().name.clone())).collect()
        };
        let bereft: Vec<PoolId> = {
            let context = self.context();
            let is = |id: &PoolId| context.pool(*id).is_some_and(PoolContext::is_bereft);
            all.iter().map(|(id, _)| *id).filter(is).collect()
        };
        if !bereft.is_empty() {
            self.wait_for_fences(bereft).await;
        }
        let mut restless = vec![];
        for (pool, name) in all {
            if !self.deal(pool).await {
                restless.push(name);
            }
        }
        if restless.is_empty() {
            return Ok(Reply::Done);
        }
        Err(SystemRefusal::LanesNotMoved { pools: restless }.into())
    }
    /// Deals the lanes of a pool's arrays as they should be. False: they did not come to rest, and go on as they were.
    async fn deal(&self, pool: PoolId) -> bool {
        if self.context().to_deal(pool).is_none() {
            return false;
        }
        let procedures = self.clone();
        let free = move || {
            let context = procedures.context();
            context.pool(pool).is_some_and(PoolContext::may_deal)
        };
        if !self.cx.until_within(PATIENCE, free).await {
            return false;
        }
        let Some((bereft, arrays)) = self.context().to_deal(pool) else { return false };
        // Nobody else changes what a leg is until this is over, and no space is marked.
        let Some(_hold) = self.hold_resting_keeper(pool) else { return false };
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.deals(true);
        }
        let patience = if bereft { PATIENCE } else { HALT_PATIENCE };
        let halted = self.halt(pool, &arrays, (bereft, patience)).await;
        let dealt = halted && self.build_anew(pool, &arrays, bereft).await;
        if halted && !dealt {
            self.resume(&arrays);
        }
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.deals(false);
        }
        dealt
    }
    /// Waits until the drives of pools have confirmed that the other head, which is gone, has no way to them any more. Those of one array do not
    /// wait for those of another for long.
    async fn wait_for_fences(&self, pools: Vec<PoolId>) {
        for (patience, all) in [(ALL_PATIENCE, true), (PATIENCE, false)] {
            let (procedures, pools) = (self.clone(), pools.clone());
            let ready = move || {
                let context = procedures.context();
                let here = pools.iter().filter_map(|id| context.pool(*id));
                let bereft = here
                    .flat_map(|p| (0..p.arrays.len()).filter(|a| p.is_bereft_array(*a)).map(move |a| (p, a)));
                let shut_off: Vec<bool> = bereft.map(|(p, a)| context.is_shut_off(p, a)).collect();
                if all { !shut_off.contains(&false) } else { shut_off.contains(&true) || shut_off.is_empty() }
            };
            self.cx.until_within(patience, ready).await;
        }
    }
    /// Nothing is under way on these arrays any more, and what comes waits. False: they do not come to rest, and go on.
    async fn halt(&self, pool: PoolId, arrays: &[ArrayId], (bereft, patience): (bool, Duration)) -> bool {
        let number = self.context_mut().asks_for_rest(arrays);
        let end = self.cx.now() + patience;
        // The first step keeps shards from sending each other anything; the second ends what is under way.
        let halt: fn(ArrayId, u32) -> ShardMail = |array, number| ShardMail::Halt { array, number };
        let quiesce: fn(ArrayId, u32) -> ShardMail = |array, number| ShardMail::Quiesce { array, number };
        let told: [fn(&HeadContext, &[ArrayId]) -> bool; 2] =
            [HeadContext::are_halted, HeadContext::are_quiet];
        for (letter, told) in [halt, quiesce].into_iter().zip(told) {
            for array in arrays {
                self.tell_shards(|| letter(*array, number));
            }
            let (procedures, all) = (self.clone(), arrays.to_vec());
            let rests = move || told(&procedures.context(), &all);
            let (procedures, over) = (self.clone(), rests.clone());
            let hopeless = move || {
                let context = procedures.context();
                // A head that goes meanwhile has said nothing of what it has at drives.
                let has_parted = |p: &PoolContext| p.is_bereft() != bereft && !planted(Bug::PartingUnheeded);
                context.stop != Stop::No || context.pool(pool).is_none_or(|p| p.loses_leg() || has_parted(p))
            };
            let given_up = hopeless.clone();
            self.cx.until_within(end.since(self.cx.now()), move || over() || hopeless()).await;
            if !rests() || given_up() {
                self.resume(arrays);
                return false;
            }
        }
        true
    }
    /// Halted arrays go on by the map that they have.
    fn resume(&self, arrays: &[ArrayId]) {
        for array in arrays {
            self.tell_shards(|| ShardMail::Resume { array: *array });
        }
    }
    /// What the legs of halted arrays say is their next map, which every shard builds them by.
    /// `bereft`: whoever had some of their lanes is gone, and may have left legs different wherever a bit stands.
    /// False: what they say cannot be read, or the pool is gone.
    async fn build_anew(&self, pool: PoolId, arrays: &[ArrayId], bereft: bool) -> bool {
        let Some(config) = self.context().pool(pool).map(|p| p.config().clone()) else { return false };
        let (mut found, mut notices) = (vec![], vec![]);
        let dealt = |a: &usize| {
            let context = self.context();
            context.pool(pool).and_then(|p| p.arrays.get(*a)).is_some_and(|array| arrays.contains(&array.id))
        };
        for a in (0..config.arrays.len()).filter(dealt) {
            let (geometry, legs) = {
                let context = self.context();
                let Some(p) = context.pool(pool) else { return false };
                let legs = p.arrays[a].legs.iter().enumerate();
                let marked = |(l, leg): (usize, &LegContext)| Marked {
                    state: p.leg_state(a, l),
                    open: leg.open.clone(),
                };
                (p.arrays[a].geometry, legs.map(marked).collect::<Vec<_>>())
            };
            let dirty = self.assemble_dirty(&geometry, config.array_uuid(a), &legs).await;
            let in_sync = legs.into_iter().filter(|l| l.state == LegState::InSync);
            let in_sync = in_sync.filter_map(|l| l.open).collect();
            let read = self.assemble_uncleared(&config, a, &geometry, in_sync, &mut notices).await;
            let Ok(uncleared) = read else { return false };
            found.push((a, dirty, uncleared));
        }
        {
            let (now, what) = (self.cx.now(), format!("pool {}", config.name));
            let mut context = self.context_mut();
            notices.into_iter().for_each(|n| context.noticed(now, what.clone(), n));
            for (nth, (a, mut dirty, mut uncleared)) in found.into_iter().enumerate() {
                let Some(p) = context.pool(pool) else { return false };
                let lanes = context.lanes_of(p.arrays[a].id);
                let Some(p) = context.pool_mut(pool) else { return false };
                if planted_if(Bug::DealtByOldBits, || dirty != *p.arrays[a].dirty) {
                    dirty = (*p.arrays[a].dirty).clone();
                }
                let differs = || uncleared != *p.arrays[a].uncleared;
                if nth > 0 && planted_if(Bug::FirstMapOnly, differs)
                    || planted_if(Bug::DealtByOldMap, differs)
                {
                    uncleared = (*p.arrays[a].uncleared).clone();
                }
                let differs = bereft && p.arrays[a].geometry.redundant() && !dirty.is_empty();
                let clean = differs && planted(Bug::BereftIsClean);
                p.arrays[a].is_dealt(lanes, dirty, uncleared, bereft && !clean);
                p.scrub.begins_anew(a);
            }
            let (shards, epoch) = (context.shards(), context.system.as_ref().map_or(0, |s| s.other_since()));
            if let Some(p) = context.pool_mut(pool) {
                // Of the arrays that still wait for their fences, some lanes are nobody's.
                if !p.is_bereft()
                    || arrays.len() == p.arrays.len()
                    || planted_if(Bug::KnownToAll, || p.shards != shards)
                {
                    p.is_known_to(shards);
                    p.is_dealt_to(epoch);
                }
            }
        }
        self.publish().await;
        self.scrub_again(pool);
        true
    }
}
