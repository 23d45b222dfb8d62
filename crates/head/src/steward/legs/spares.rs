//! Legs that are out: those that were gone or silent are taken back when they answer again, and so are spares; hot spares take
//! the place of those that do not. A spare is a drive that belongs to a pool and waits for that.
//!
//! A spare carries a label of the pool and nothing else of it; the pool's configuration lists it. When a leg
//! has been out for good, or for long enough that it will not come back by itself, the first spare that
//! fits is taken from the list, labelled as the leg, and copied in full, like a drive that an operator
//! names. What decides is an order of the Steward's own, so that it never meets another change of the pool.

use crate::layout::PoolId;
use crate::order::{Answered, Order, Refusal, Reply, Spare};
use crate::steward::context::array::{LegContext, Outlook};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::context::spare::SpareContext;
use crate::steward::legs::come_back::Lacking;
use crate::steward::legs::exchange::{Seat, not_labelled};
use crate::steward::pools::fit::{bytes_needed, check_probes, fits};
use crate::steward::procedures::Procedures;
use crate::steward::state::Edit;
use crate::steward::state::extras::SpareRow;
use crate::steward::words::array_word;
use array::format::{DRIVES_MAX, Features, Label, LegState, feature, tail_at};
use base::{Duration, Instant, Uuid};
use finding::{LegEvent, LegNotice, LegRefusal, PoolRefusal, SpareFit, SpareUnfit};

/// How often it is looked whether a leg needs a spare.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// A leg that may come back (it is gone, silent, or was taken out by hand) gets this time: drives that
/// overheat, and cables that are moved, come back within minutes, and then miss little.
pub(crate) const SPARE_AFTER: Duration = Duration::from_secs(300);

/// How long a drive may take to come back from the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
/// In a spare's label: it is no leg.
const NO_ARRAY: u32 = u32::MAX;

impl PoolContext {
    /// The spares, as `status` tells them.
    pub(crate) fn spares_shown(&self) -> Vec<Spare> {
        let spare = |s: &SpareContext| Spare {
            path: s.path.clone(),
            uuid: s.uuid,
            bytes: s.open.as_ref().map_or(0, |o| o.info.bytes),
            ready: s.ready().is_some(),
            cause: s.reason().filter(|_| s.ready().is_none()).map(Into::into),
            reason: String::new(),
            fit: self.fit_of(s),
            fits: String::new(),
        };
        self.spares.iter().map(spare).collect()
    }
    /// Mirrors, by their place in the pool.
    fn mirrors(&self) -> impl Iterator<Item = usize> {
        (0..self.arrays.len()).filter(|a| self.config().arrays[*a].mirror)
    }
    /// For which mirrors a spare cannot stand in; None if it fits every one. One that is not there is of no use, and
    /// tells why itself.
    pub(crate) fn fit_of(&self, spare: &SpareContext) -> Option<SpareFit> {
        let open = spare.ready()?;
        let unfit = self.mirrors().filter_map(|a| Some((a, self.unfit(&spare.path, open, a)?)));
        let unfit: Vec<(usize, SpareUnfit)> = unfit.collect();
        let fits = self.mirrors().filter(|a| !unfit.iter().any(|(u, _)| u == a));
        let fits: Vec<String> = fits.map(|a| array_word(true, a)).collect();
        let (_, why) = unfit.into_iter().next()?;
        Some(if fits.is_empty() { SpareFit::Nowhere { why } } else { SpareFit::Some { fits, why } })
    }
    /// Why a spare at this path cannot stand in for a leg of a mirror. None if it can.
    fn unfit(&self, path: &str, spare: &OpenDrive, mirror: usize) -> Option<SpareUnfit> {
        let (block, geometry) = (spare.info.block_bytes, &self.arrays[mirror].geometry);
        let front = geometry.data_at + geometry.data_bytes;
        if self.needs_smaller_blocks(block) {
            return Some(SpareUnfit::Blocks { spare: path.into() });
        }
        let (bytes, tail) = (spare.info.bytes, tail_at(spare.info.bytes));
        (tail < front).then(|| {
            let needed_bytes = front + (bytes - tail);
            SpareUnfit::TooSmall { spare: path.into(), mirror: array_word(true, mirror), bytes, needed_bytes }
        })
    }
    /// Whether volumes write less than a drive of such blocks takes.
    fn needs_smaller_blocks(&self, block: u32) -> bool {
        block > self.config().drive_block_bytes && self.config().volumes.iter().any(|v| v.block_bytes < block)
    }
    /// The first spare that no volume of such blocks leaves a use for, and that has one now.
    pub(crate) fn spare_made_useless(&self, block_bytes: u32) -> Option<&SpareContext> {
        let loses = |s: &&SpareContext| {
            // One that hangs, or is away, comes back as what it was.
            let block = s.block_bytes.unwrap_or(0);
            block > self.config().drive_block_bytes
                && block > block_bytes
                && !self.needs_smaller_blocks(block)
        };
        self.spares.iter().find(loses)
    }
    /// The spares of which nobody knows whether the first volume of such blocks leaves a use for them.
    pub(crate) fn spares_unseen(&self, block_bytes: u32) -> Vec<String> {
        if block_bytes >= 4096 || self.config().volumes.iter().any(|v| v.block_bytes < 4096) {
            return vec![];
        }
        self.spares.iter().filter(|s| s.block_bytes.is_none()).map(|s| s.path.clone()).collect()
    }
    /// What keeps the spares that are there from the place of a leg that is out, if every one of them: each with its
    /// reason.
    pub(crate) fn no_spare_fits(&self, mirror: usize) -> Option<Vec<SpareUnfit>> {
        let ready = self.spares.iter().filter_map(|s| Some((s, s.ready()?)));
        let unfit: Option<Vec<SpareUnfit>> = ready.map(|(s, o)| self.unfit(&s.path, o, mirror)).collect();
        unfit.filter(|list| !list.is_empty())
    }
    /// Legs that wait for a spare while none fits, of which no event said so: with the event.
    fn newly_unfit(&self) -> Vec<(usize, usize, LegEvent)> {
        let mut out = vec![];
        for a in self.mirrors() {
            let waits = |(l, leg): &(usize, &LegContext)| {
                let out = self.is_out(a, *l) && leg.outlook != Outlook::Leaves;
                out && leg.out_since.is_some() && leg.told_unfit != leg.out_since
            };
            let Some(spares) = self.no_spare_fits(a) else { continue };
            let legs = self.arrays[a].legs.iter().enumerate().filter(waits);
            out.extend(legs.map(|(l, leg)| {
                let (leg, mirror) = (leg.path.clone(), array_word(true, a));
                (a, l, LegEvent::NoSpareFits { leg, mirror, spares: spares.clone() })
            }));
        }
        out
    }
    /// The first leg that needs a spare, and the spare for it.
    fn match_spare(&self, now: Instant) -> Option<(usize, usize, SpareContext)> {
        for (a, array) in self.arrays.iter().enumerate().filter(|(a, _)| self.config().arrays[*a].mirror) {
            let in_sync = |(l, leg): (usize, &LegContext)| {
                leg.open.is_some() && self.leg_state(a, l) == LegState::InSync
            };
            if !array.legs.iter().enumerate().any(in_sync) {
                continue;
            }
            for (l, leg) in array.legs.iter().enumerate() {
                let out = self.leg_state(a, l).is_out();
                let long = leg
                    .out_since
                    .is_some_and(|at| leg.outlook == Outlook::Broken || now.since(at) >= SPARE_AFTER);
                // One that was to take the place of another that is there: the operator chose it, and chooses again.
                let awaited = self.replaces(leg.uuid).is_some_and(|r| self.is_leg(r.old));
                if !out || !long || awaited {
                    continue;
                }
                let wanted =
                    |s: &&SpareContext| s.ready().is_some_and(|o| self.unfit(&s.path, o, a).is_none());
                if let Some(spare) = self.spares.iter().find(wanted) {
                    return Some((a, l, spare.clone()));
                }
            }
        }
        None
    }
    /// Some leg is to be tried again.
    pub(crate) fn has_legs_due(&self, now: Instant) -> bool {
        !self.due_to_return(now).is_empty() || !self.due_to_reopen(now).is_empty()
    }
    /// Legs that are out and may be back.
    fn due_to_return(&self, now: Instant) -> Vec<(usize, usize)> {
        let mut due = vec![];
        for (a, array) in self.arrays.iter().enumerate() {
            for (l, leg) in array.legs.iter().enumerate() {
                let out = self.leg_state(a, l).is_out();
                let time = leg.return_at.is_some_and(|at| at <= now);
                if out && time && leg.outlook == Outlook::MayReturn {
                    due.push((a, l));
                }
            }
        }
        due
    }
    /// Whether a drive carries a label of this pool and is none of its drives any more: it may be used again.
    pub(crate) fn retired(&self, probe: &Probe) -> bool {
        let Some(label) = probe.good_label() else { return false };
        let mut legs = self.record().arrays.iter().flat_map(|a| &a.legs);
        label.pool == self.config().uuid
            && self.config().extras.failed(label.drive).is_none()
            && !legs.any(|l| l.drive == label.drive)
            && !self.spares.iter().any(|s| s.uuid == label.drive)
    }
}

impl Procedures {
    /// Order: add a spare.
    pub(crate) async fn spare_add(&self, pool: &str, drive: &str, force: bool) -> Answered {
        let (id, there) = {
            let context = self.context();
            if let Some(holder) = context.holds(drive) {
                return Err(LegRefusal::DriveInPool { drive: drive.into(), pool: holder }.into());
            }
            let p = context.pool_named(pool)?;
            if !p.config().arrays.iter().any(|a| a.mirror) {
                return Err(LegRefusal::PoolTakesNoSpare { pool: pool.into() }.into());
            }
            (p.id, p.spares.len() + p.arrays.iter().map(|a| a.legs.len()).sum::<usize>())
        };
        if there >= DRIVES_MAX {
            return Err(LegRefusal::TooManySpares { drives_max: DRIVES_MAX as u64 }.into());
        }
        let probe = self.patient().probe(drive).await;
        let probe = probe.map_err(LegRefusal::from)?;
        let added = match self.check_drives_apart(core::slice::from_ref(&probe)) {
            Ok(()) => self.label_spare(id, &probe, force).await,
            Err(r) => Err(r.about("drive")),
        };
        if let Err(r) = added {
            self.let_go(probe.id);
            return Err(r);
        }
        self.write_pools().await?;
        let now = self.cx.now();
        let path = &probe.info.path;
        let (fit, unused) = {
            let context = self.context();
            let p = context.pool(id);
            let spare =
                p.and_then(|p| p.spares.iter().find(|s| s.open.as_ref().is_some_and(|o| o.id == probe.id)));
            let fit = p.zip(spare).and_then(|(p, s)| p.fit_of(s));
            (fit, p.and_then(|p| p.unused_as_spare(&probe)))
        };
        let event = LegEvent::SpareAdded { spare: path.clone(), fit: fit.clone() };
        self.context_mut().happened(now, format!("pool {pool}"), event);
        let fits = fit.map(|fit| LegNotice::SpareFits { spare: path.clone(), fit });
        let unused = unused.map(|u| u.notice());
        let notices = fits.into_iter().map(Into::into).chain(unused).collect();
        Ok(Reply::Created { uuid: Uuid::default(), notices })
    }
    async fn label_spare(&self, pool: PoolId, probe: &Probe, force: bool) -> Result<(), Refusal> {
        let (config, uuid, created, retired, smallest) = {
            let mut context = self.context_mut();
            let (uuid, created) = (context.new_uuid(), context.unix(self.cx.now()));
            let p = context.pool(pool).ok_or(PoolRefusal::PoolGone)?;
            let mirrors = p.arrays.iter().filter(|a| a.geometry.redundant());
            let smallest = mirrors.map(|a| a.geometry.data_at + a.geometry.data_bytes).min().unwrap_or(0);
            (p.config().clone(), uuid, created, p.retired(probe), smallest)
        };
        let (path, name) = (probe.info.path.clone(), config.name.clone());
        let one = core::slice::from_ref(probe);
        let listed = self.check_listed(one, Some(pool)).await.err();
        let shared = self.is_in_system();
        if let Some(r) = listed.or_else(|| check_probes(one, force || retired, shared)) {
            return Err(if r.field.is_empty() { r } else { r.about("drive") });
        }
        if tail_at(probe.info.bytes) < smallest {
            let (bytes, needed_bytes) = (probe.info.bytes, bytes_needed(probe, smallest));
            return Err(LegRefusal::SpareTooSmall { drive: path, pool: name, bytes, needed_bytes }.into());
        }
        let block = probe.info.block_bytes;
        if block > config.drive_block_bytes && config.volumes.iter().any(|v| v.block_bytes < block) {
            return Err(Refusal::from(LegRefusal::DriveBlocksTooLarge { drive: path }).about("drive"));
        }
        let usual = Label::usual(probe.info.bytes);
        let data_at = 5 << 20;
        let label = Label {
            features: Features { incompat: feature::SPARE, ..Features::default() },
            pool: config.uuid,
            drive: uuid,
            array: NO_ARRAY,
            legs: 1,
            block_bytes: block,
            data_at,
            data_bytes: tail_at(probe.info.bytes) - data_at,
            region_bytes: 1 << 20,
            created,
            pool_name: name.clone(),
            ..usual
        };
        let labelled = self.label_alone(probe.id, &label).await;
        labelled.map_err(|e| not_labelled(&probe.info, e).about("drive"))?;
        // The label first: a drive that the configuration does not list is nobody's.
        let row = SpareRow { drive: uuid, path: path.clone() };
        let was = probe.good_label().map(|l| l.drive);
        let edits = {
            let context = self.context();
            let p = context.pool(pool).ok_or(PoolRefusal::PoolGone)?;
            // Who adds a spare has seen that the last one was used.
            let mut edits = p.spares_seen();
            edits.extend(p.used_again(was, &probe.info));
            edits.push(Edit::SparePut { row });
            edits
        };
        if let Err(r) = self.configure(pool, edits).await {
            let _ = self.unlabel_drive(probe.id, &label).await;
            return Err(r);
        }
        let open = OpenDrive { id: probe.id, info: probe.info.clone(), label };
        if let Some(p) = self.context_mut().pool_mut(pool) {
            let block_bytes = Some(block);
            let open = Some(open);
            p.spares.push(SpareContext {
                uuid,
                path,
                open,
                found: None,
                block_bytes,
                look_at: None,
                looks: 0,
                ill: None,
            });
        }
        Ok(())
    }

    /// Order: remove a drive, a spare or a leg.
    pub(crate) async fn drive_remove(&self, drive: &str, force: bool) -> Answered {
        self.check_one_meant("drive", drive)?;
        let spare = self.context().spare_named(drive);
        if spare.is_none()
            && self.context().leg_named(drive).is_none()
            && let Some(answer) = self.forget_failed(drive).await
        {
            return answer;
        }
        match spare {
            Some((pool, spare)) => self.spare_remove(pool, spare).await,
            None => self.leg_remove(drive, force).await,
        }
    }
    async fn spare_remove(&self, pool: PoolId, spare: SpareContext) -> Answered {
        let name = self.context().pool(pool).expect("just found").config().name.clone();
        self.configure(pool, vec![Edit::SpareRemoved { drive: spare.uuid }]).await?;
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.spares.retain(|s| s.uuid != spare.uuid);
        }
        if let Some(open) = &spare.open {
            // What keeps its label is of a pool that does not list it: it may be used again.
            let _ = self.unlabel_drive(open.id, &open.label).await;
            self.let_go_wholly(open.id, PATIENCE).await;
        }
        self.write_pools().await?;
        let now = self.cx.now();
        let event = LegEvent::SpareRemoved { spare: spare.path };
        self.context_mut().happened(now, format!("pool {name}"), event);
        Ok(Reply::Done)
    }

    /// Order of the Steward's own: legs of the pool that may be back are tried. Nothing is said if they are not.
    pub(crate) async fn legs_return(&self, pool: PoolId) -> Answered {
        self.reopen_last_legs(pool).await;
        self.spares_return(pool).await;
        let now = self.cx.now();
        let due = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool).filter(|p| !p.leaving) else { return Ok(Reply::Done) };
            let due = p.due_to_return(now);
            for (a, l) in &due {
                let leg = &mut p.arrays[*a].legs[*l];
                leg.is_tried_again(now);
            }
            due.into_iter().map(|(a, l)| (a, l, p.arrays[a].legs[l].uuid.to_string())).collect::<Vec<_>>()
        };
        for (array, leg, drive) in due {
            if self.drive_return(&drive).await.is_ok()
                && let Some(p) = self.context_mut().pool_mut(pool)
            {
                p.arrays[array].legs[leg].has_returned();
            }
        }
        Ok(Reply::Done)
    }

    /// Looks for spares that were not found.
    async fn spares_return(&self, pool: PoolId) {
        let now = self.cx.now();
        let due: Vec<Uuid> = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool) else { return };
            let due = p.spares.iter_mut().filter(|s| s.is_due(now));
            due.map(|s| {
                s.is_looked_for(now);
                s.uuid
            })
            .collect()
        };
        for spare in due {
            // Why it is not back is in the context.
            let _ = self.come_back(pool, Lacking::Spare(spare)).await;
        }
    }
    /// Looks now and then whether a leg of the pool is back, needs a spare, or has been replaced.
    pub(crate) async fn watch_spares(&self, pool: PoolId) {
        let mut interval = LOOK_INTERVAL;
        loop {
            // Hosts wait for a last leg that is gone: nothing else is waited for then.
            let procedures = self.clone();
            let due = move || {
                let (context, now) = (procedures.context(), procedures.cx.now());
                let idle = context.orders.is_empty() && !context.ordering;
                idle && context.pool(pool).is_some_and(|p| !p.leaving && !p.due_to_reopen(now).is_empty())
            };
            self.cx.until_within(interval, due).await;
            self.tell_unfit(pool);
            let (back, needed, over, failed) = {
                let (context, now) = (self.context(), self.cx.now());
                let Some(p) = context.pool(pool) else { return };
                interval =
                    if p.is_looked_for() { crate::steward::patience::LOOK_AFTER } else { LOOK_INTERVAL };
                if p.leaving || !context.orders.is_empty() || context.ordering {
                    continue;
                }
                let needed = !p.spares.is_empty() && p.match_spare(now).is_some();
                let missed = p.spares.iter().any(|s| s.is_due(now));
                let back = missed || p.has_legs_due(now);
                (back, needed, p.replacement_over().is_some(), !p.failed_unlisted().is_empty())
            };
            if failed {
                self.context_mut().orders.push_back((None, Order::LegFailed { pool }));
            }
            if over {
                self.context_mut().orders.push_back((None, Order::Replaced { pool }));
            }
            if back {
                self.context_mut().orders.push_back((None, Order::LegReturn { pool }));
            }
            if needed {
                self.context_mut().orders.push_back((None, Order::SpareUse { pool }));
            }
        }
    }

    /// Tells once of each leg that is out why no spare takes its place.
    fn tell_unfit(&self, pool: PoolId) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        let Some(p) = context.pool_mut(pool).filter(|p| !p.leaving) else { return };
        let name = p.config().name.clone();
        let told = p.newly_unfit();
        for (a, l, _) in &told {
            let leg = &mut p.arrays[*a].legs[*l];
            leg.unfit_told();
        }
        for (.., event) in told {
            context.happened(now, format!("pool {name}"), event);
        }
    }

    /// Order of the Steward's own: a spare takes the place of a leg, if one still needs it.
    pub(crate) async fn spare_use(&self, pool: PoolId) -> Answered {
        let now = self.cx.now();
        let found = self.context().pool(pool).filter(|p| !p.leaving).and_then(|p| p.match_spare(now));
        let Some((array, leg, spare)) = found else { return Ok(Reply::Done) };
        let (old, name) = {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            let l = &p.arrays[array].legs[leg];
            (l.path.clone(), p.config().name.clone())
        };
        // Why is told where it was taken out.
        let event = LegEvent::SpareUsed { spare: spare.path.clone(), old: old.clone() };
        self.context_mut().happened(now, format!("pool {name}"), event);
        let result = self.use_spare(pool, array, leg, &spare).await;
        if let Err(r) = &result {
            // It is none that can be relied on: without it, the next one is tried.
            let now = self.cx.now();
            let (spare_path, why) = (spare.path.clone(), r.why.clone());
            let event = LegEvent::SpareNotUsed { spare: spare_path, why };
            self.context_mut().happened(now, format!("pool {name}"), event);
            if let Some(p) = self.context_mut().pool_mut(pool)
                && let Some(s) = p.spares.iter_mut().find(|s| s.uuid == spare.uuid)
            {
                s.let_go();
            }
        }
        result
    }
    async fn use_spare(&self, pool: PoolId, array: usize, leg: usize, spare: &SpareContext) -> Answered {
        let open = spare.open.as_ref().expect("it was found");
        // It is opened as a leg next: nobody looks at what is let go of.
        if let Some(p) = self.context_mut().pool_mut(pool)
            && let Some(s) = p.spares.iter_mut().find(|s| s.uuid == spare.uuid)
        {
            s.let_go();
        }
        if !self.let_go_wholly(open.id, PATIENCE).await {
            return Err(LegRefusal::SpareSilent { spare: spare.path.clone() }.into());
        }
        let probe = self.probe(&spare.path).await;
        let probe = probe.map_err(LegRefusal::from)?;
        let ours = probe.newer().is_none() && probe.good_label().is_some_and(|l| l.drive == spare.uuid);
        let like = {
            let context = self.context();
            let p = context.pool(pool);
            p.and_then(|p| p.arrays[array].legs.iter().find_map(|l| Some(l.open.as_ref()?.label.clone())))
        };
        if !ours || !like.is_some_and(|like| fits(&probe, &like)) {
            self.let_go(probe.id);
            return Err(LegRefusal::SpareIsOther { spare: spare.path.clone() }.into());
        }
        self.clear_place(pool, array, leg).await;
        let replaces = self.context().pool(pool).map(|p| p.leaver(array, leg));
        self.place(pool, array, Seat::Of(leg), &probe, true, replaces).await?;
        Ok(Reply::Done)
    }
}
