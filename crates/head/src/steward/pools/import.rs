//! Pools come: by import, also at the start (`start`).

mod gather;

pub(crate) use gather::{Unfit, faults, held_faults};

use crate::layout::PoolId;
use crate::order::{Answered, Cause, ErrorKind, Importable, Notice, Refusal, Reply, State};
use crate::steward::context::absent::AbsentPool;
use crate::steward::context::array::{ArrayContext, LegContext, Outlook};
use crate::steward::context::found::Found;
use crate::steward::context::head::HeadContext;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::context::spare::SpareContext;
use crate::steward::health::drives::{ConfigFound, WrittenConfig};
use crate::steward::health::shaped::{bare, split};
use crate::steward::lanes::Marked;
use crate::steward::legs::failed::{forget_used, outlook_of};
use crate::steward::patience::return_after;
use crate::steward::pools::judge::Judged;
use crate::steward::pools::leave::no_witness;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::POOLS;
use crate::steward::state::config::{PoolConfig, geometry_of};
use crate::steward::state::{Change, Pool, PoolRow};
use crate::steward::system::behind::{OTHERS_WAIT, not_shut_out};
use crate::steward::words::array_word;
use access::Grant;
use array::Lanes;
use array::format::{ConfigSlot, LegState, LegVerdict, MemberLeg, MembershipRecord};
use base::DriveKind;
use base::machine::StateOp;
use base::{Bug, Uuid, planted};
use finding::{
    DriveFault, ImportFault, LegCause, PoolCause, PoolDoubt, PoolEvent, PoolNotice, PoolRefusal, Why,
};
use gather::{file_of, others_held};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How a pool is taken.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Claim {
    /// An operator asks for it. What a head takes by itself it must have had last.
    pub asked: bool,
    /// Even if another head did not release it, or a leg cannot be proven current.
    pub force: bool,
    /// Under this name from now on.
    pub name: Option<String>,
}

/// Pools that were found by a name that means another one: each with its drives.
fn namesakes(name: &str, foreign: &[Probe]) -> Vec<Notice> {
    let mut pools: BTreeMap<Uuid, Vec<String>> = BTreeMap::new();
    for (p, label) in foreign.iter().filter_map(|p| Some((p, p.good_label()?))) {
        pools.entry(label.pool).or_default().push(p.info.path.clone());
    }
    let left = |(uuid, drives): (Uuid, Vec<String>)| {
        PoolNotice::PoolNamesakeIgnored { pool: name.into(), uuid: uuid.to_string(), drives }.into()
    };
    pools.into_iter().map(left).collect()
}

impl Procedures {
    /// Block devices of this machine that nobody holds.
    pub(crate) async fn candidates(&self) -> Vec<String> {
        match self.cx.state(StateOp::Candidates).await {
            Ok(bytes) => String::from_utf8_lossy(&bytes).lines().map(str::to_string).collect(),
            Err(_) => vec![],
        }
    }

    /// Takes a pool whose drives are open. They are let go of if it is refused.
    pub(crate) async fn take(
        &self,
        uuid: Uuid,
        mut probes: Vec<Probe>,
        claim: &Claim,
    ) -> Result<Vec<Notice>, Refusal> {
        // One at a time: a start and an order that each have a leg would both go on from theirs.
        let procedures = self.clone();
        self.cx.until(move || !procedures.context().importing.contains(&uuid)).await;
        let is_here = |p: &&PoolContext| p.config().uuid == uuid && !p.leaving;
        let here = self.context().pools.iter().find(is_here).map(|p| p.config().name.clone());
        let taken = match here {
            Some(pool) => Err(PoolRefusal::PoolImportedAlready { pool }.into()),
            None => {
                self.check_unknown_pool(uuid)?;
                self.context_mut().importing.insert(uuid);
                let mut behind;
                (probes, behind) = self.fenced_or_behind(probes).await;
                let end = self.cx.now() + OTHERS_WAIT;
                let taken = loop {
                    let taken = self.try_take(uuid, (&probes, &behind), claim).await;
                    if taken.is_ok() || claim.asked || !self.needs(uuid, &probes, &behind).await {
                        break taken;
                    }
                    let confirmed;
                    (confirmed, behind) = self.ask_behind(behind).await;
                    if self.cx.now() >= end && !behind.is_empty() {
                        self.is_kept_behind(uuid, Some(&behind));
                    }
                    probes.extend(confirmed);
                };
                self.context_mut().importing.remove(&uuid);
                if taken.is_ok() {
                    self.wait_behind(uuid, behind);
                } else {
                    self.is_kept_behind(uuid, None);
                    behind.iter().for_each(|p| self.let_go(p.id));
                }
                taken
            }
        };
        match taken {
            Ok(notices) => {
                // Drives that were replaced once still carry the pool's label.
                let used: BTreeSet<_> = self.context().open_drives().map(|o| o.id).collect();
                probes.iter().filter(|p| !used.contains(&p.id)).for_each(|p| self.let_go(p.id));
                self.end_removal(uuid).await;
                self.end_addition(uuid).await;
                Ok(notices)
            }
            Err(r) => {
                probes.iter().for_each(|p| self.let_go(p.id));
                self.keep_unless_elsewhere(uuid, &probes).await;
                Err(r)
            }
        }
    }
    /// `behind`: drives that have not confirmed yet that the other head is shut off them.
    async fn try_take(
        &self,
        uuid: Uuid,
        (probes, behind): (&[Probe], &[Probe]),
        claim: &Claim,
    ) -> Result<Vec<Notice>, Refusal> {
        let Judged { mut config, generation, record, assembly, mut notices } =
            self.judge(uuid, probes, claim.force).await?;
        claim.check_released(&config, &record, self.context().me())?;
        let joins = self.is_in_system() && config.shared != self.system();
        for p in probes {
            let cleared = if joins { self.clear_area(p.id).await } else { self.clear_newcomer(p).await };
            cleared.map_err(|e| {
                let (drive, fault) = (p.info.path.clone(), DriveFault::of(&p.info, e));
                Refusal::from(PoolRefusal::VotesNotCleared { drive, fault }).about("pool")
            })?;
        }
        let behind_of =
            |drive: Uuid| behind.iter().find(|p| p.good_label().is_some_and(|l| l.drive == drive));
        let mut legs =
            record.arrays.iter().zip(&assembly.arrays).flat_map(|(r, a)| r.legs.iter().zip(&a.legs));
        let missing = |(row, verdict): (&MemberLeg, &LegVerdict)| {
            *verdict == LegVerdict::Missing { in_sync: true } && behind_of(row.drive).is_none()
        };
        if legs.any(missing) {
            self.outlast_other_head().await;
        }
        self.compare_kept(&config, generation);
        let found = Change::PoolCame { config: config.clone(), generation, record: record.clone() };
        self.context_mut().journal.found(&found);
        if let Some(name) = &claim.name {
            config.name.clone_from(name);
        }
        self.check_name_free(uuid, &config.name)?;
        config.account(generation + 1);
        let (was_open, now) = (record.open, self.cx.now());
        let mut next = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            record.next(me, incarnation)
        };
        next.open = true;
        let mut arrays = vec![];
        let (config_name, mut lagging) = (config.name.clone(), vec![]);
        let (mut used, mut kept_apart) = (BTreeSet::new(), BTreeSet::new());
        for (i, verdict) in assembly.arrays.iter().take(config.arrays.len()).enumerate() {
            let mut legs = vec![];
            for (l, judged) in verdict.legs.iter().enumerate() {
                let uuid = next.arrays[i].legs[l].drive;
                let probe = probes.iter().find(|p| p.good_label().is_some_and(|x| x.drive == uuid));
                let apart = *judged == LegVerdict::Apart;
                kept_apart.extend(probe.filter(|_| apart).map(|p| p.id));
                let open = probe.filter(|_| !apart).and_then(Probe::opened);
                let was_in_sync = next.arrays[i].legs[l].state == LegState::InSync;
                let failed = config.extras.failed(uuid).filter(|row| !row.removed).map(|row| row.cause());
                let current = *judged == LegVerdict::Current;
                let failed = failed.filter(|_| current || !planted(Bug::FailedComesBack));
                // One with a damaged label may have the last record: it is not believed.
                let older = *judged == LegVerdict::Stale { full: true }
                    && was_in_sync
                    && probe.is_some_and(|p| p.whole);
                let waits = behind_of(uuid).filter(|_| *judged == LegVerdict::Missing { in_sync: true });
                let waits = waits.and_then(Probe::opened);
                let (state, why): (_, Option<Cause>) = match judged {
                    LegVerdict::Current => (LegState::InSync, None),
                    LegVerdict::Missing { in_sync: true } if waits.is_some() => (LegState::InSync, None),
                    // Until somebody returns it.
                    LegVerdict::Stale { .. } | LegVerdict::Missing { in_sync: false } if failed.is_some() => {
                        (LegState::Out, failed.clone())
                    }
                    LegVerdict::Stale { full: false } => {
                        (LegState::Rebuilding, Some(LegCause::LegResync.into()))
                    }
                    // Why a leg in sync starts from nothing.
                    LegVerdict::Stale { full: true } if older => {
                        (LegState::RebuildingFull, Some(PoolCause::LegOlderCopy.into()))
                    }
                    LegVerdict::Stale { full: true } => {
                        (LegState::RebuildingFull, Some(LegCause::LegFullResync.into()))
                    }
                    LegVerdict::Apart => (LegState::Out, Some(PoolCause::LegMayBeNewer.into())),
                    LegVerdict::Missing { in_sync: true } => {
                        (LegState::JustOut, Some(LegCause::DriveNotFound.into()))
                    }
                    LegVerdict::Missing { in_sync: false } => {
                        (LegState::Out, Some(LegCause::DriveNotFound.into()))
                    }
                };
                if state.is_out() {
                    next.put_out(i, l);
                } else {
                    next.arrays[i].legs[l] = MemberLeg::new(uuid, state);
                }
                used.extend(open.as_ref().map(|o| o.id));
                let row = &mut config.arrays[i].legs[l];
                row.drive = uuid;
                if let Some(p) = probe {
                    row.path = p.info.path.clone();
                    if p.front_written {
                        notices.push(PoolNotice::FrontWritten { drive: p.info.path.clone() }.into());
                    }
                }
                let out = state.is_out();
                let found = match open.as_ref().or(waits.as_ref()) {
                    None => self.context().found_for(uuid, &row.path),
                    Some(_) => None,
                };
                if let Some(f @ Found::CutOff { .. }) = &found {
                    row.path = f.path().into();
                }
                let as_found = found.as_ref().map(|f| Cause::from(f.cause(&row.path)));
                let failed = failed.filter(|_| out);
                let why = failed.clone().or(as_found).or(why);
                if older && found.is_none() {
                    let event = PoolEvent::LegOlder { pool: config_name.clone() };
                    lagging.push((row.path.clone(), event));
                }
                if let Some(why) = why.clone().filter(|_| out) {
                    let (pool, why) = (config_name.clone(), Box::new(why));
                    lagging.push((row.path.clone(), PoolEvent::LegOutAtImport { pool, why }));
                }
                let mut leg = LegContext {
                    out_since: out.then_some(now),
                    return_at: out.then_some(now),
                    reason: why,
                    found,
                    full: state == LegState::RebuildingFull,
                    outlook: failed.as_ref().map_or(Outlook::MayReturn, outlook_of),
                    ..LegContext::new(uuid, l, row.path.clone(), open, next.counter)
                };
                if let Some(open) = waits {
                    let why = not_shut_out(&open.info.path);
                    leg.waits_behind(open, why);
                }
                legs.push(leg);
            }
            forget_used(&mut config.extras.failed, &next.arrays[i]);
            next.arrays[i].epoch = next.counter;
            let is_current = |l: &usize| next.arrays[i].legs[*l].state == LegState::InSync;
            let geometry = (0..legs.len())
                .filter(is_current)
                .find_map(|l| legs[l].open.as_ref())
                .map(|o| geometry_of(&o.label));
            let geometry = geometry.expect("an array that is taken has a current leg");
            let rows = next.arrays[i].legs.iter().zip(&legs);
            let there: Vec<Marked> =
                rows.map(|(row, leg)| Marked { state: row.state, open: leg.open.clone() }).collect();
            let dirty = self.assemble_dirty(&geometry, config.array_uuid(i), &there).await;
            let open = (0..legs.len()).filter(is_current).filter_map(|l| legs[l].open.clone()).collect();
            let uncleared = self.assemble_uncleared(&config, i, &geometry, open, &mut notices).await?;
            let id = self.context_mut().new_array();
            let waits = legs.iter().any(|leg| leg.behind.is_some()) && !planted(Bug::LanesBehindFence);
            let nobody = self.context().own_shards;
            arrays.push(ArrayContext {
                id,
                geometry,
                lanes: if waits {
                    Lanes::new(core::array::from_fn(|_| nobody))
                } else {
                    self.context().lanes_of(id)
                },
                map: 1,
                far_map: None,
                // A head that stops in order leaves no bit but of what may differ: beside a leg that is out, or where a
                // comparison had not come to its end. Without a bit no shard will have anything to report.
                unclean: geometry.redundant()
                    && !dirty.is_empty()
                    && (was_open || !planted(Bug::StopForgetsUnclean)),
                compared_since: None,
                dirty: Arc::new(dirty),
                clean: BTreeSet::new(),
                uncleared: Arc::new(uncleared),
                marks: 0,
                marked: BTreeSet::new(),
                cleared: BTreeSet::new(),
                all_dirty_number: 0,
                all_dirty: BTreeSet::new(),
                legs,
                healed: 0,
                medium_lost: 0,
            });
        }
        let mut spares = vec![];
        for row in &mut config.extras.spares {
            let probe = probes.iter().find(|p| p.good_label().is_some_and(|l| l.drive == row.drive));
            if let Some(p) = probe {
                row.path = p.info.path.clone();
                used.insert(p.id);
            }
            let open = probe.and_then(Probe::opened);
            let found = match open {
                None => self.context().found_for(row.drive, &row.path),
                Some(_) => None,
            };
            let block_bytes = open.as_ref().map(|o| o.info.block_bytes);
            let look_at = open.is_none().then(|| now + return_after(0));
            let (uuid, path) = (row.drive, row.path.clone());
            spares.push(SpareContext { uuid, path, open, found, block_bytes, look_at, looks: 0, ill: None });
        }
        for p in probes.iter().filter(|p| !used.contains(&p.id) && !kept_apart.contains(&p.id)) {
            let (drive, pool) = (p.info.path.clone(), config.name.clone());
            notices.push(PoolNotice::DriveHasLeft { drive, pool }.into());
        }
        let room = self.room_for(arrays.iter().map(|a| &a.geometry)).await?;
        config.holder = self.context().me();
        config.shared = self.system();
        let id = self.settle_in(config, generation, next, arrays, &mut notices)?;
        drop(room);
        if let Err(r) = self.put_first_record(id).await {
            self.context_mut().pools.retain(|p| p.id != id);
            // Another import may have published it: no shard has its drives any more before they are closed.
            if self.context().ready {
                self.publish().await;
            }
            return Err(r);
        }
        self.came(id);
        self.mend_labels_found(id, probes).await;
        let drives = probes.iter().filter(|p| used.contains(&p.id)).map(|p| p.info.path.clone()).collect();
        {
            let mut context = self.context_mut();
            let p = context.pool_mut(id).expect("it was just added");
            p.serves();
            p.has_spares(spares);
            let what = format!("pool {}", p.config().name);
            context.happened(now, what, PoolEvent::PoolImported { drives, unclean: was_open });
            for (path, event) in lagging {
                context.happened(now, format!("drive {path}"), event);
            }
        }
        self.start_keeper(id);
        Ok(notices)
    }

    /// A name means one pool, whether that one is here or away: else its volumes would be another's.
    fn check_name_free(&self, uuid: Uuid, name: &str) -> Result<(), Refusal> {
        let context = self.context();
        let here = context.pools.iter().map(|p| p.config()).find(|c| c.uuid == uuid || c.name == name);
        // Of two that are on record under one name, whichever comes first has it.
        let on_record = context.absent.iter().any(|p| p.uuid() == uuid && p.name() == name);
        let away = context.absent.iter().find(|p| p.name() == name && !on_record);
        let pool = name.to_string();
        let r = match (here, away) {
            (Some(c), _) if c.uuid == uuid => PoolRefusal::PoolNameTaken { pool },
            (Some(c), _) => {
                PoolRefusal::PoolNameOfOther { pool, uuid: uuid.to_string(), other: c.uuid.to_string() }
            }
            (None, Some(p)) => PoolRefusal::PoolNameOfAbsent {
                pool,
                uuid: uuid.to_string(),
                other: p.uuid().to_string(),
                why: Box::new(p.cause().clone()),
            },
            (None, None) => return Ok(()),
        };
        Err(Refusal::from(r).about("pool"))
    }

    /// Puts a pool in the context: numbers that clash with other pools' are changed.
    pub(crate) fn settle_in(
        &self,
        mut config: PoolConfig,
        generation: u64,
        record: MembershipRecord,
        arrays: Vec<ArrayContext>,
        notices: &mut Vec<Notice>,
    ) -> Result<PoolId, Refusal> {
        let mut context = self.context_mut();
        let uuid = config.uuid;
        let is_other = |c: &&PoolConfig| c.uuid != uuid;
        let rows: Vec<(Uuid, u32)> = config.grants.iter().map(|g| (g.volume, g.nsid)).collect();
        for (volume, nsid) in rows {
            let others: Vec<(&PoolConfig, Uuid, u32)> = context
                .configs()
                .filter(is_other)
                .flat_map(|c| c.grants.iter().map(move |g| (c, g.volume, g.nsid)))
                .collect();
            if let Some((pool, holder, _)) = others.iter().find(|(.., n)| *n == nsid) {
                let holder = pool.volumes.by_uuid(*holder).map_or("", |v| &*v.name);
                let holder = format!("{}/{holder}", pool.name);
                let own = config.grants.iter().map(|g| g.nsid);
                let taken = others.iter().map(|(.., n)| *n).chain(own);
                let free = access::lowest_free(taken, 1, base::view::NSID_MAX)
                    .map_err(|_| PoolRefusal::NoNumberForPool)?;
                config.grants.number(volume, free);
                let name = config.volumes.by_uuid(volume).map_or(String::new(), |v| v.name.clone());
                let volume = format!("{}/{name}", config.name);
                let changed = PoolNotice::NamespaceChanged { volume, nsid: free, was: nsid, holder };
                notices.push(changed.into());
            }
        }
        for host in context.hosts().iter() {
            let mine: Vec<_> = config.grants.for_host(host).collect();
            for (volume, _, lun) in mine {
                let others: Vec<u32> = context
                    .configs()
                    .filter(is_other)
                    .flat_map(|c| c.grants.for_host(host))
                    .map(|(_, _, l)| u32::from(l))
                    .collect();
                if others.contains(&u32::from(lun)) {
                    let own: Vec<u32> = config.grants.for_host(host).map(|(_, _, l)| u32::from(l)).collect();
                    let free =
                        access::lowest_free(others.into_iter().chain(own), 0, u32::from(access::LUN_MAX))
                            .map_err(|_| PoolRefusal::NoNumberForPool)?;
                    let there = config.grants.given_to(host).find(|(v, _)| *v == volume);
                    if let Some(grant) = there.map(|(_, g)| Grant { lun: free as u16, ..g.clone() }) {
                        config.grants.put(volume, grant);
                    }
                    let (host, pool) = (host.name.clone(), config.name.clone());
                    notices.push(PoolNotice::LunChanged { host, pool, lun: free, was: lun.into() }.into());
                }
            }
        }
        let ids: Vec<Uuid> = config.volumes.iter().map(|v| v.uuid).collect();
        let volume_ids: BTreeMap<Uuid, _> =
            ids.into_iter().map(|v| (v, context.volume_id(uuid, v))).collect();
        let (id, shards) = (context.new_pool(), context.own_shards);
        let pool = Pool::coming(config, generation, record);
        context.pools.push(PoolContext::coming(id, pool, arrays, volume_ids, shards));
        Ok(id)
    }

    /// The first record and configuration of a pool that was just imported.
    async fn put_first_record(&self, id: PoolId) -> Result<(), Refusal> {
        let (record, slot) = {
            let mut context = self.context_mut();
            let p = context.pool_mut(id).expect("it was just added");
            p.comes_as(p.state().renewed());
            p.uses_generation(p.generation());
            let comes = p.comes();
            let (record, slot) = (p.record().clone(), p.config_slot());
            context.journal.proposed(&comes);
            (record, slot)
        };
        let (failed, witness) = self.write_record(id, &record, &[]).await;
        if let Err(why) = witness {
            let no = || no_witness(why.clone());
            // Where every leg of a pool on record is here and has the record, it takes no witness to know the truth.
            if !failed.is_empty() || !self.context().has_every_leg(id) {
                return Err(no());
            }
            // The next loss goes on record on the legs that are left. An older witness that could not be removed
            // either, of a directory that became read-only, proves nothing any more once it is two records behind.
            let record = self.next_record(id).expect("it was just added");
            if !self.write_record(id, &record, &[]).await.0.is_empty() {
                return Err(no());
            }
            self.context_mut().pool_mut(id).expect("it was just added").is_troubled(Some(why));
        }
        self.settle_first_record(id, failed).await?;
        let WrittenConfig { failed, found } = self.write_config(id, &slot).await;
        if let ConfigFound::Perhaps(why) = found {
            return Err(why);
        }
        let lost = self.lost_at_import(id, failed)?;
        self.context_mut().pool_mut(id).expect("it was just added").pending.extend(lost);
        Ok(())
    }

    /// Order: import.
    pub(crate) async fn pool_import(
        &self,
        pool: Option<String>,
        drives: Vec<String>,
        claim: Claim,
    ) -> Answered {
        let force = claim.force;
        if let Some(name) = &claim.name {
            volume::check_name(name).map_err(|_| PoolRefusal::PoolNameInvalid { name: name.clone() })?;
        }
        let wanted: Option<Uuid> = pool.as_ref().and_then(|p| p.parse().ok());
        let here = {
            let context = self.context();
            let mut pools = context.pools.iter().filter(|p| !p.leaving).map(|p| p.config());
            pools.find(|c| Some(&c.name) == pool.as_ref() || Some(c.uuid) == wanted).map(|c| c.name.clone())
        };
        if let Some(pool) = here {
            return Err(PoolRefusal::PoolImportedAlready { pool }.into());
        }
        let absent = self.places_of_absent(pool.as_deref());
        // With force, named drives are all that counts: so the operator chooses a side.
        let only_named = force && !drives.is_empty();
        let said = drives.clone();
        let named: Vec<String> = drives.into_iter().chain(if only_named { vec![] } else { absent }).collect();
        let (mut probes, failures) = self.patient().gather_named(&named).await;
        // What is not where it was explains more than what somebody else uses.
        let is_away = |path: &String| failures.iter().any(|f| f.missing && f.is(path));
        let away: Vec<String> = named.iter().map(|spec| file_of(spec)).filter(is_away).collect();
        let mut also = faults(failures);
        // Of drives that nobody named those matter that somebody holds: the pool may be on them.
        let mut held = vec![];
        if !only_named {
            // Those that are open by now are held by this very order.
            let open =
                |c: &String| named.iter().any(|n| bare(n) == c) || probes.iter().any(|p| p.info.path == *c);
            let candidates: Vec<String> = self.candidates().await.into_iter().filter(|c| !open(c)).collect();
            let (more, failed) = self.patient().gather(&candidates, None).await;
            self.add_others(&mut probes, more);
            held = failed.into_iter().filter(|f| f.held && away.is_empty()).collect();
        }
        let label = |p: &Probe| p.good_label().expect("gathered by label").clone();
        let is_wanted = |p: &Probe| {
            let (l, config) = (label(p), p.config.as_ref().ok().and_then(|c| PoolConfig::of_slot(c).ok()));
            let name = config.map_or(l.pool_name, |c| c.name);
            pool.as_ref().is_none_or(|w| *w == name || wanted == Some(l.pool))
        };
        let (mut mine, mut others): (Vec<Probe>, Vec<Probe>) = probes.into_iter().partition(is_wanted);
        let mut left: Vec<Notice> = vec![];
        // A name on record means the pool on record, as soon as anything of that one is found.
        let own = self.context().absent.iter().find(|p| Some(p.name()) == pool.as_deref()).map(|p| p.uuid());
        if mine.iter().any(|p| Some(label(p).pool) == own) {
            let (own, foreign): (Vec<Probe>, Vec<Probe>) =
                mine.into_iter().partition(|p| Some(label(p).pool) == own);
            mine = own;
            left = namesakes(pool.as_deref().unwrap_or(""), &foreign);
            others.extend::<Vec<Probe>>(foreign);
        }
        let renamed = pool.as_deref().and_then(|name| self.renamed(name, &others));
        others.iter().for_each(|p| self.let_go(p.id));
        let uuids: BTreeSet<Uuid> = mine.iter().map(|p| label(p).pool).collect();
        let Some(uuid) = uuids.first().copied() else {
            if let Some(name) = &pool
                && let Some(row) =
                    self.context().absent.iter().find(|p| p.name() == *name || wanted == Some(p.uuid()))
                && !row.drives().is_empty()
                && row.drives().iter().all(|d| DriveKind::of(d).is_volatile())
            {
                return Err(ended_with_the_daemon(row.name(), row.drives()).into());
            }
            if let Some(renamed) = renamed {
                return Err(renamed);
            }
            let in_use = !held.is_empty() && also.is_empty();
            if !away.is_empty() {
                also.push(ImportFault::NotThere { drives: away.clone() });
            }
            also.extend(others_held(held.len()));
            return Err(PoolRefusal::PoolNotFound { pool, also, away, in_use }.into());
        };
        if uuids.len() > 1 {
            mine.iter().for_each(|p| self.let_go(p.id));
            return Err(
                PoolRefusal::SeveralPools { pools: uuids.iter().map(Uuid::to_string).collect() }.into()
            );
        }
        // Another head may have moved it, or this one: whoever had it last wrote where its drives lay.
        if !only_named {
            let tried = |path: &String| {
                held.iter().any(|f| f.is(path))
                    || named.iter().any(|n| file_of(n) == *path)
                    || mine.iter().any(|p| p.info.path == *path)
            };
            let last: Vec<String> = places_on(&mine).into_iter().filter(|path| !tried(path)).collect();
            let (more, failed) = self.patient().gather(&last, Some(uuid)).await;
            self.add_others(&mut mine, more);
            held.extend(failed.into_iter().filter(|f| f.held));
        }
        // A drive that is missing may be one that somebody holds: the one where it lay last, more than any other.
        let configs = mine.iter().filter_map(|p| PoolConfig::of_slot(p.config.as_ref().ok()?).ok());
        let places: BTreeSet<String> =
            configs.flat_map(|c| c.arrays).flat_map(|a| a.legs).map(|l| l.path).collect();
        let (theirs, held): (Vec<Unfit>, Vec<Unfit>) =
            held.into_iter().partition(|f| places.iter().any(|path| f.is(path)));
        let refused = |r: &Refusal| r.kind() == ErrorKind::Unsafe || r.kind() == ErrorKind::NotFound;
        // Cut off before the list of pools names it, it was not lost from there.
        let on_record = {
            let context = self.context();
            context.absent.iter().any(|p| p.uuid() == uuid)
                || context.pools.iter().any(|p| p.config().uuid == uuid)
        };
        let released_here = self.context().released().iter().any(|r| r.uuid == uuid);
        if !on_record && !released_here {
            let drives = mine.iter().map(|p| p.info.path.clone()).collect();
            // A directory that takes nothing keeps nothing for the hosts either.
            let _ = self.list_released(PoolRow { uuid, name: label(&mine[0]).pool_name, drives }).await;
        }
        // Others of its drives were found where they were: with force they would be left out.
        let is_said = |p: &&Probe| said.iter().any(|spec| file_of(spec) == p.info.path);
        let unsaid: Vec<String> = if said.is_empty() {
            vec![]
        } else {
            mine.iter().filter(|p| !is_said(p)).map(|p| p.info.path.clone()).collect()
        };
        let had_last = self.had_last(&mine);
        let taken = self.take(uuid, mine, &claim).await;
        if taken.is_err() && !on_record {
            self.remove_kept(uuid).await;
            if !released_here {
                self.forget_released(uuid).await;
            }
        }
        if let Some(r) = taken.as_ref().err().filter(|r| refused(r)) {
            // Where this head had them; the refusal tells where they lay last.
            let told = missing_of(r);
            let drives: Vec<String> = away.into_iter().filter(|path| !told.contains(&path)).collect();
            if !drives.is_empty() {
                also.push(ImportFault::LookedInVain { drives });
            }
            also.extend(held_faults(theirs));
            also.extend(others_held(held.len()));
            if !unsaid.is_empty() {
                also.push(ImportFault::NotNamed { drives: unsaid });
            }
        }
        let notices = taken.map_err(|r| {
            if also.is_empty() {
                r
            } else {
                let field = r.field;
                Refusal::from(PoolRefusal::PoolNotTaken { why: r.why, also }).about(field)
            }
        })?;
        let was_ours = self.context().absent.iter().any(|p| p.uuid() == uuid);
        {
            let now = self.cx.now();
            let mut context = self.context_mut();
            context.absent.retain(|p| p.uuid() != uuid);
            context.hold(false);
            let name =
                context.pools.iter().find(|p| p.config().uuid == uuid).map(|p| p.config().name.clone());
            let what = format!("pool {}", name.as_deref().unwrap_or(""));
            notices.iter().for_each(|n| context.noticed(now, what.clone(), n.clone()));
        }
        self.shape_missing(&named, uuid);
        self.publish().await;
        // It is imported: what follows from a list that could not be written is told.
        let unlisted = self.check_read(POOLS).and(self.write_pools().await).err();
        let unlisted = unlisted.map(|r| PoolNotice::PoolNotListed { why: r.why }.into());
        self.forget_released(uuid).await;
        let lacks = self.context().lacks(uuid);
        let mut notices: Vec<Notice> = lacks.into_iter().chain(notices).chain(unlisted).chain(left).collect();
        // Who had it last may have asked its hosts for a secret.
        if !had_last || !was_ours && !released_here {
            notices.extend(self.context().open_by_name(Some(uuid), None).into_iter().map(Notice::from));
        }
        Ok(Reply::Created { uuid, notices })
    }

    /// Whether this head was the last one that had a pool, by what was found of it.
    fn had_last(&self, probes: &[Probe]) -> bool {
        let latest = probes.iter().filter_map(|p| p.record.as_ref().ok()).max_by_key(|r| r.counter);
        latest.is_some_and(|r| r.head == self.context().me())
    }
    /// A pool was asked for by the name under which this head let go of it, and has another one on its drives.
    fn renamed(&self, name: &str, probes: &[Probe]) -> Option<Refusal> {
        let context = self.context();
        let absent = context.absent.iter().map(AbsentPool::row);
        let rows = absent.chain(context.released()).map(|r| (&r.name, r.uuid));
        rows.filter(|(was, _)| *was == name).find_map(|(_, uuid)| {
            let is_mine = |p: &&Probe| p.good_label().is_some_and(|l| l.pool == uuid);
            let configs = probes.iter().filter(is_mine).filter_map(|p| p.config.as_ref().ok());
            let config = PoolConfig::of_slot(configs.max_by_key(|c| c.generation)?).ok()?;
            let (pool, uuid) = (config.name, uuid.to_string());
            (pool != name).then(|| PoolRefusal::PoolRenamed { name: name.into(), pool, uuid }.into())
        })
    }

    /// Drives that were named with a shape that keeps them away are legs that are out: when they are looked for again, they
    /// still have it.
    fn shape_missing(&self, named: &[String], pool: Uuid) {
        for spec in named {
            let Ok((Some(shape), path)) = split(spec) else { continue };
            let missing = |p: &PoolContext| {
                p.config().uuid == pool
                    && p.arrays.iter().flat_map(|a| &a.legs).any(|l| l.path == path && l.open.is_none())
            };
            if self.context().pools.iter().any(missing) {
                self.shape_later(path, shape);
            }
        }
    }

    /// Order: what could be imported.
    pub(crate) async fn pool_importable(&self, drives: Vec<String>) -> Answered {
        let absent = self.places_of_absent(None);
        let specs: Vec<String> = drives.into_iter().chain(absent).chain(self.candidates().await).collect();
        let (found, failures) = self.patient().gather(&specs, None).await;
        let mut probes = vec![];
        self.add_others(&mut probes, found);
        let mut pools: BTreeMap<Uuid, Vec<Probe>> = BTreeMap::new();
        for p in probes {
            pools.entry(p.good_label().expect("gathered by label").pool).or_default().push(p);
        }
        let mut out = vec![];
        for (uuid, probes) in pools {
            // A drive that was one of a pool that is here: there is nothing to import.
            if self.context().pools.iter().any(|p| p.config().uuid == uuid) {
                probes.iter().for_each(|p| self.let_go(p.id));
                continue;
            }
            let found: Vec<String> = probes.iter().map(|p| p.info.path.clone()).collect();
            let label_name = probes[0].good_label().map_or(String::new(), |l| l.pool_name.clone());
            let row = match self.judge(uuid, &probes, false).await {
                Ok(j) => {
                    let legs: Vec<&LegVerdict> = j.assembly.arrays.iter().flat_map(|a| &a.legs).collect();
                    let missing = legs.iter().any(|l| matches!(l, LegVerdict::Missing { .. }));
                    let stale = legs.iter().any(|l| matches!(l, LegVerdict::Stale { .. }));
                    let state = if missing {
                        State::Degraded
                    } else if stale {
                        State::Rebuilding
                    } else {
                        State::Optimal
                    };
                    let drives = j.record.arrays.iter().flat_map(|a| &a.legs).map(|l| l.drive);
                    let is_here =
                        |d: &Uuid| probes.iter().any(|p| p.good_label().is_some_and(|l| l.drive == *d));
                    let clash = self.check_name_free(uuid, &j.config.name).err().map(|r| r.why);
                    let (pool, notices) = (j.config.name.clone(), j.notices);
                    let tells = clash.is_some() || !notices.is_empty();
                    Importable {
                        cause: tells.then(|| PoolCause::ImportPreview { pool, clash, notices }.into()),
                        reason: String::new(),
                        next: None,
                        name: j.config.name,
                        uuid,
                        state,
                        released: j.config.holder.is_nil(),
                        found,
                        missing: drives.filter(|d| !is_here(d)).map(|d| d.to_string()).collect(),
                    }
                }
                Err(r) => Importable {
                    name: label_name,
                    uuid,
                    state: State::Offline,
                    cause: Some(PoolCause::PoolNotImportable { why: r.why }.into()),
                    found,
                    ..Importable::default()
                },
            };
            probes.iter().for_each(|p| self.let_go(p.id));
            out.push(row);
        }
        // Of a drive that somebody holds it is not known what lies on it.
        out.extend(failures.into_iter().filter(|f| f.held).map(|f| Importable {
            state: State::Offline,
            cause: Some(PoolCause::PoolDrivesInUse { also: vec![f.why] }.into()),
            ..Importable::default()
        }));
        Ok(Reply::Importable(out))
    }
}

/// Where the drives of a pool lay when it was told last, as those that were found say. Paths alone: a drive in memory is made by
/// whoever asks for it.
fn places_on(probes: &[Probe]) -> Vec<String> {
    let configs = probes.iter().filter_map(|p| PoolConfig::of_slot(p.config.as_ref().ok()?).ok());
    let paths = configs.flat_map(|c| {
        let legs = c.arrays.into_iter().flat_map(|a| a.legs).map(|l| l.path);
        legs.chain(c.extras.spares.into_iter().map(|s| s.path)).collect::<Vec<_>>()
    });
    let paths: BTreeSet<String> = paths.filter(|path| path.starts_with('/')).collect();
    paths.into_iter().collect()
}

/// The drives that a refusal says are missing.
fn missing_of(r: &Refusal) -> Vec<&String> {
    let Why::Pool(PoolRefusal::PoolDoubtful { doubts, .. }) = &*r.why else { return vec![] };
    let missing = |d| match d {
        &PoolDoubt::NotReleased { .. } => &[][..],
        PoolDoubt::ReleasedWithMissing { missing, .. }
        | PoolDoubt::Unproven { missing, .. }
        | PoolDoubt::InMemory { missing, .. }
        | PoolDoubt::Missing { missing, .. }
        | PoolDoubt::Stale { missing, .. } => &missing[..],
    };
    doubts.iter().flat_map(missing).collect()
}

/// The end of a pool whose drives were in memory.
pub(crate) fn ended_with_the_daemon(pool: &str, drives: &[String]) -> PoolRefusal {
    let empty = drives.iter().all(|d| !DriveKind::of(d).keeps_data());
    PoolRefusal::PoolMemoryLost { pool: pool.into(), drives: drives.to_vec(), empty }
}

impl HeadContext {
    /// Legs and spares of a pool that was just imported without them.
    fn lacks(&self, pool: Uuid) -> Vec<Notice> {
        let Some(p) = self.pools.iter().find(|p| p.config().uuid == pool) else { return vec![] };
        let arrays = p.arrays.iter().zip(&p.config().arrays).enumerate();
        let legs = arrays.flat_map(|(i, (a, row))| {
            let lacks = a.legs.iter().filter(|l| l.open.is_none());
            lacks.map(move |l| {
                let (array, drive) = (array_word(row.mirror, i), l.path.clone());
                PoolNotice::ArrayLacksDrive {
                    array,
                    drive,
                    why: Box::new(l.reason.clone().unwrap_or_else(|| LegCause::DriveNotFound.into())),
                }
            })
        });
        let spares = p.spares.iter().filter(|s| s.open.is_none()).map(|s| PoolNotice::SpareUnusable {
            spare: s.path.clone(),
            why: Box::new(s.reason().unwrap_or(LegCause::DriveNotFound).into()),
        });
        legs.chain(spares).map(Notice::from).collect()
    }
}

impl PoolContext {
    /// As the state directory tells it.
    pub(crate) fn row(&self) -> PoolRow {
        let legs = self.arrays.iter().flat_map(|a| &a.legs).map(|l| &l.path);
        PoolRow {
            uuid: self.config().uuid,
            name: self.config().name.clone(),
            drives: legs.chain(self.spares.iter().map(|s| &s.path)).cloned().collect(),
        }
    }
    /// The configuration in the context, as a slot.
    pub(crate) fn config_slot(&self) -> ConfigSlot {
        self.state().slot()
    }
}
