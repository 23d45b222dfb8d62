//! Pools that this head had and whose drives are away: hosts keep their namespaces and LUNs, not ready.
//!
//! When everything of such a pool is back it is imported by itself; any doubt is left to the operator.
//!
//! The file `config-UUID` (docs/formats/state.md) is all that is known of such a pool: names, numbers, sizes and
//! grants. Nothing about data is taken from it. If drives are found that lack the last configuration, it has that, too (`later_kept`).

use crate::layout::PoolId;
use crate::order::{Answered, Notice, Order, Refusal, Reply};
use crate::steward::context::absent::{AbsentPool, Kept, Shown};
use crate::steward::context::head::HeadContext;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::pools::import::Claim;
use crate::steward::procedures::Procedures;
use crate::steward::record::kept::{KeptFile, kept_name};
use crate::steward::record::texts::{state_cause, state_refusal};
use crate::steward::state::config::PoolConfig;
use crate::steward::state::{Change, PoolRow};
use array::format::{ConfigSlot, LegVerdict, MembershipRecord};
use base::machine::{StateError, StateOp};
use base::{Bug, Duration, Uuid, VolumeId, planted};
use finding::{Cause, FileFault, PoolEvent, PoolNotice, RecordCause, StateFile};
use std::collections::BTreeSet;

/// Until it is looked whether the drives of an absent pool are back; twice as long each time, up to the most.
pub(crate) const LOOK_FIRST: Duration = Duration::from_secs(5);
const LOOK_MOST: Duration = Duration::from_secs(60);
/// Drives that hung together come back one by one: so long the others are waited for, which are there and do not answer.
const SILENT_PATIENCE: Duration = Duration::from_secs(30);

impl Procedures {
    /// A pool of this head is not here, or not yet. Its hosts are told what is kept of it. The error: that cannot be read.
    pub(crate) async fn miss(&self, row: &PoolRow) -> Result<(), Notice> {
        let (file, trouble) = match self.read_kept_file(row.uuid).await {
            Ok(file) => (file, Ok(())),
            Err(notice) => (None, Err(notice)),
        };
        let (config, file) = file.unzip();
        let mut context = self.context_mut();
        let kept = config.as_ref().zip(file.as_ref()).map(|(config, file)| Kept {
            deallocates: file.deallocates,
            volume_ids: config.volumes.iter().map(|v| (v.uuid, context.volume_number(v.uuid))).collect(),
        });
        let generation = file.map_or(0, |f| f.slot.generation);
        context.apply(Change::PoolAway { row: row.clone(), generation, config });
        let away = context.state().away().iter().find(|a| a.row().uuid == row.uuid).cloned();
        context.absent.extend(away.map(|away| AbsentPool::new(away, kept)));
        trouble
    }
    /// The configuration that is kept there.
    pub(crate) async fn read_kept_config(&self, pool: Uuid) -> Result<Option<PoolConfig>, Notice> {
        Ok(self.read_kept_file(pool).await?.map(|(config, _)| config))
    }
    async fn read_kept_file(&self, pool: Uuid) -> Result<Option<(PoolConfig, KeptFile)>, Notice> {
        let name = kept_name(pool);
        let unreadable = |why| PoolNotice::KeptUnreadable { file: name.clone(), why };
        let bytes = self.read_file(&name).await.map_err(|fault| unreadable(FileFault::State { fault }))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let file = KeptFile::parse(&name, &bytes).map_err(unreadable)?;
        let config = PoolConfig::of_slot(&file.slot)
            .ok()
            .filter(|c| c.uuid == pool)
            .ok_or(PoolNotice::KeptContradicts { file: name })?;
        Ok(Some((config, file)))
    }

    /// What this head has kept of a pool, if that is later than what was found on its drives: those that took it are away, and the loss of the
    /// others is not on record yet. It counts only in a state directory that is as new as the drives.
    pub(crate) async fn later_kept(
        &self,
        found: &ConfigSlot,
        pool: Uuid,
        witness: Option<&MembershipRecord>,
        record: &MembershipRecord,
    ) -> Option<ConfigSlot> {
        let (config, KeptFile { slot, .. }) = self.read_kept_file(pool).await.ok().flatten()?;
        let me = self.context().me();
        let follows = |w: &MembershipRecord| record.head == me && record.ancestors[0] == w.incarnation;
        let is_new = witness.is_some_and(|w| w.incarnation == record.incarnation || follows(w));
        let fits = config.holder == me && config.arrays.len() <= record.arrays.len();
        let is_later = slot.generation > found.generation;
        let counts = is_new && fits && !slot.is_unfinished() && is_later != planted(Bug::OldConfig);
        (counts && !planted(Bug::KeptIsNoConfig)).then_some(slot)
    }

    /// Keeps what hosts shall be told if the pool's drives are not found at the next start, and what counts if drives are found that lack
    /// it.
    ///
    /// # Errors
    /// It is not kept, which is told: nothing is, then.
    pub(crate) async fn keep_config(&self, pool: PoolId, slot: &ConfigSlot) -> Result<(), Refusal> {
        let found =
            self.context().pool(pool).map(|p| (p.config().uuid, p.config().name.clone(), p.deallocates()));
        let Some((uuid, name, deallocates)) = found else { return Ok(()) };
        let file = kept_name(uuid);
        let contents = KeptFile { slot: slot.clone(), deallocates }.bytes(&file);
        let op = StateOp::Write { name: file, contents };
        let Err(error) = self.change_file(op).await else { return Ok(()) };
        self.not_kept(uuid, &name, &error).await;
        Err(state_refusal(StateFile::Kept { pool: Some(name) }, &error))
    }
    async fn not_kept(&self, uuid: Uuid, name: &str, error: &StateError) {
        // What it was before would tell hosts of volumes that are not there.
        self.remove_kept(uuid).await;
        let now = self.cx.now();
        let event = PoolEvent::ConfigNotKept { pool: name.into(), fault: error.into() };
        self.context_mut().happened(now, format!("pool {name}"), event);
    }
    /// What is kept of a pool that is away, once more.
    pub(crate) async fn keep_absent(&self, pool: Uuid) -> Result<(), Cause> {
        let file = {
            let context = self.context();
            let absent = context.absent.iter().find(|p| p.uuid() == pool);
            let kept = absent.and_then(|p| p.known().zip(p.kept.as_ref()));
            let file = |((config, generation), kept): ((&PoolConfig, u64), &Kept)| KeptFile {
                slot: config.slot(generation),
                deallocates: kept.deallocates,
            };
            kept.map(file).ok_or(RecordCause::KeptUnknown)?
        };
        let name = kept_name(pool);
        let op = StateOp::Write { contents: file.bytes(&name), name };
        self.change_file(op).await.map_err(|e| state_cause(StateFile::Kept { pool: None }, &e))
    }
    /// The pool is not this head's any more.
    pub(crate) async fn remove_kept(&self, pool: Uuid) {
        // One that stays is found at the next start to be of a pool that this head let go of.
        let _ = self.change_file(StateOp::Remove { name: kept_name(pool) }).await;
    }

    /// Looks now and then whether the drives of absent pools are back.
    pub(crate) async fn watch_absent(&self) {
        // Drives that somebody else may be using are not opened: only what appears, or lay there before.
        let mut known: BTreeSet<String> = self.candidates().await.into_iter().collect();
        loop {
            let procedures = self.clone();
            self.cx.until(move || procedures.context().absent.iter().any(|p| p.look_at.is_some())).await;
            self.cx.sleep(LOOK_FIRST).await;
            if !self.context().absent.iter().any(|p| p.look_at.is_some_and(|at| at <= self.cx.now())) {
                continue;
            }
            let here: BTreeSet<String> = self.candidates().await.into_iter().collect();
            known.retain(|c| here.contains(c));
            let now = self.cx.now();
            let mut context = self.context_mut();
            let context = &mut *context;
            if context.held || context.ordering || !context.orders.is_empty() {
                continue;
            }
            context.appear(here.difference(&known).cloned().collect());
            for p in context.absent.iter_mut().filter(|p| p.look_at.is_some_and(|at| at <= now)) {
                let wait = Duration::from_secs(LOOK_FIRST.as_secs() << p.looks.min(8)).min(LOOK_MOST);
                p.is_looked_for_again(now + wait);
                context.orders.push_back((None, Order::PoolReturn { pool: p.uuid() }));
            }
        }
    }

    /// Order of the Steward's own: a pool of this head is imported as at a start, if nothing of it is missing that was
    /// there when it was used last. What an operator would have to decide, an operator decides.
    pub(crate) async fn pool_return(&self, uuid: Uuid) -> Answered {
        let (row, specs) = {
            let context = self.context();
            let Some(p) = context.absent.iter().find(|p| p.uuid() == uuid) else { return Ok(Reply::Done) };
            let specs: Vec<String> = p.drives().iter().chain(&context.appeared).cloned().collect();
            (p.row().clone(), specs)
        };
        let specs: Vec<String> = specs.into_iter().chain(self.added_to(&row)).collect();
        let me = self.context().me();
        let (found, failures) = self.gather(&specs, Some(uuid)).await;
        let mut probes = vec![];
        self.add_others(&mut probes, found);
        if self.ends_release(&row, &probes).await {
            return Ok(Reply::Done);
        }
        let mutes = |path: &str| {
            let mut about = failures.iter().filter(|f| f.is(path));
            about.any(|f| !f.missing && !f.held)
        };
        let (mut complete, mut silent) = (false, false);
        if let Ok(j) = self.judge(uuid, &probes, false).await
            && j.config.holder == me
        {
            let legs = j
                .assembly
                .arrays
                .iter()
                .zip(&j.config.arrays)
                .flat_map(|(a, row)| a.legs.iter().zip(&row.legs));
            let away = legs.filter(|(l, _)| matches!(l, LegVerdict::Missing { in_sync: true }));
            let away: Vec<&str> = away.map(|(_, row)| row.path.as_str()).collect();
            complete = away.is_empty();
            // A start does not wait for a leg that hangs either.
            silent = !complete && away.iter().all(|path| mutes(path));
        }
        let (now, mut waited) = (self.cx.now(), false);
        if let Some(p) = self.context_mut().absent.iter_mut().find(|p| p.uuid() == uuid) {
            waited = p.is_silent(silent, now).is_some_and(|since| now.since(since) >= SILENT_PATIENCE);
        }
        if !complete && !waited {
            probes.iter().for_each(|p| self.let_go(p.id));
            self.keep_unless_elsewhere(uuid, &probes).await;
            return Ok(Reply::Done);
        }
        let notices = self.take(uuid, probes, &Claim::default()).await?;
        let now = self.cx.now();
        {
            let mut context = self.context_mut();
            context.absent.retain(|p| p.uuid() != uuid);
            let what = format!("pool {}", row.name);
            context.happened(now, what.clone(), PoolEvent::PoolReturned { silent: !complete });
            notices.into_iter().for_each(|n| context.noticed(now, what.clone(), n));
        }
        self.publish().await;
        self.forget_released(uuid).await;
        // Where its drives lie now is a hint: it is listed already.
        let _ = self.write_pools().await;
        Ok(Reply::Done)
    }

    /// A pool could not be taken. If its drives say that another head has it, or let go of it, since what is
    /// kept here was written, hosts find it there: two ways to the same volume with different contents are none.
    pub(crate) async fn keep_unless_elsewhere(&self, pool: Uuid, probes: &[Probe]) {
        let newest =
            probes.iter().filter_map(|p| p.config.as_ref().ok()).max_by_key(|c| c.generation).cloned();
        let Some(slot) = newest else { return };
        let Ok(config) = PoolConfig::of_slot(&slot) else { return };
        let went = {
            let mut context = self.context_mut();
            let me = context.me();
            let absent = context.absent.iter_mut().find(|p| p.uuid() == pool);
            let is_later = |p: &&mut AbsentPool| {
                p.known().is_some_and(|(_, known)| slot.generation > known && config.holder != me)
            };
            let row = absent.filter(is_later).map(|p| {
                p.is_elsewhere();
                p.row().clone()
            });
            if let Some(row) = row.clone() {
                context.apply(Change::PoolAway { row, generation: 0, config: None });
            }
            row.is_some()
        };
        if went {
            self.remove_kept(pool).await;
            if self.context().ready {
                self.publish().await;
            }
        }
    }
}

impl HeadContext {
    /// Every pool that hosts may know of.
    pub fn shown(&self) -> impl Iterator<Item = Shown<'_>> {
        self.shown_with(false)
    }
    /// The same, with or without those that leave: their volumes are not ready.
    pub fn shown_with(&self, leaving: bool) -> impl Iterator<Item = Shown<'_>> {
        let here = self.pools.iter().filter(move |p| leaving || !p.leaving).map(|p| Shown {
            id: Some(p.id),
            config: p.config(),
            volume_ids: &p.volume_ids,
            ready: !p.leaving && p.serving && p.complete() && !p.unrecorded && self.lacks_fence(p).is_none(),
            deallocates: p.deallocates(),
        });
        // One that is being imported is in the context and among the absent.
        let is_here = |p: &&AbsentPool| self.pools.iter().any(|x| x.config().uuid == p.uuid());
        let absent = self.absent.iter().filter(move |p| !is_here(p));
        let absent = absent.filter_map(|p| p.known().zip(p.kept.as_ref()));
        here.chain(absent.map(|((config, _), k)| Shown {
            id: None,
            config,
            volume_ids: &k.volume_ids,
            ready: false,
            deallocates: k.deallocates,
        }))
    }
    /// Configurations whose namespace ids and LUNs are taken, those of absent pools included.
    pub fn configs(&self) -> impl Iterator<Item = &PoolConfig> {
        let absent = self.absent.iter().filter_map(AbsentPool::known).map(|(config, _)| config);
        let away = absent.filter(|c| self.pools.iter().all(|p| p.config().uuid != c.uuid));
        self.pools.iter().map(|p| p.config()).chain(away)
    }
    /// The number under which shards knew this volume while its pool was absent, or a new one.
    pub fn volume_id(&mut self, pool: Uuid, volume: Uuid) -> VolumeId {
        let kept = self.absent.iter().find(|p| p.uuid() == pool).and_then(|p| p.kept.as_ref());
        let known = kept.and_then(|k| k.volume_ids.get(&volume).copied());
        known.unwrap_or_else(|| self.volume_number(volume))
    }
}

impl PoolContext {
    /// Hosts may deallocate: zeroes are there afterwards on every leg, written where a drive does not promise them.
    pub fn deallocates(&self) -> bool {
        true
    }
}
