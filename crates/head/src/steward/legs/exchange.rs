//! Legs come, go, and take each other's places.
//!
//! ```text
//! add      labelled ▶ all regions marked ▶ in the configuration ▶ rebuilding on record ▶ … in sync on record
//! replace  the same beside the old leg ▶ … in sync on record ▶ the old leg leaves
//! leave    out on record ▶ left out of the record ▶ left out of the configuration ▶ its label taken away
//! ```
//!
//! The membership record decides who is a leg. The configuration says who takes whose place, so that a head
//! that comes up after a crash, or imports the pool, goes on with it (docs/mirror.md, "Another drive in a leg's place").

use crate::layout::PoolId;
use crate::order::{Answered, Refusal, Reply};
use crate::steward::context::array::{LegContext, Outlook, PendingChange};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::patience::RETURN_PATIENCE;
use crate::steward::pools::fit::{bytes_needed, check_probes, fits};
use crate::steward::pools::meant::Unused;
use crate::steward::procedures::Procedures;
use crate::steward::state::Edit;
use crate::steward::state::config::{LegRow, geometry_of};
use crate::steward::state::extras::{FailedRow, Replacement};
use crate::steward::words::array_word;
use array::format::{DRIVES_MAX, Label, LegState};
use array::{LEGS_MAX, PLACES_MAX};
use base::{DriveError, DriveInfo, Duration, Uuid};
use finding::{Cause, DriveFault, FailedDrive, LegCause, LegEvent, LegRefusal, OldLeg, PoolRefusal};

/// How often, and how far apart, it is tried to tell every drive that a leg is out.
const GONE_TRIES: u32 = 20;
const GONE_RETRY: Duration = Duration::from_millis(200);

/// Where a new drive goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seat {
    /// The place of a leg that is out.
    Of(usize),
    /// A place of its own.
    Beside,
}

/// What a leg failed to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Untaken {
    Record,
    Config,
}

impl Untaken {
    /// Why the leg is put out.
    pub fn cause(self, fault: DriveFault) -> Cause {
        match self {
            Untaken::Record => LegCause::LegRecordNotTaken { fault }.into(),
            Untaken::Config => LegCause::LegConfigNotTaken { fault }.into(),
        }
    }
}

/// A drive did not take its label.
pub(crate) fn not_labelled(info: &DriveInfo, error: DriveError) -> Refusal {
    let drives = vec![FailedDrive::of(info, error)];
    Refusal::from(PoolRefusal::DrivesNotLabelled { drives }).about("new")
}

/// A drive that is open, with its label.
type Labelled = (base::DriveId, Label, DriveInfo);

/// A drive that leaves: its name, and where it was last seen.
pub(crate) type Leaver = (Uuid, String);

impl PoolContext {
    /// The replacement that a drive is to be the new one of.
    pub(crate) fn replaces(&self, new: Uuid) -> Option<&Replacement> {
        self.config().extras.replacements.iter().find(|r| r.new == new)
    }
    /// Where a drive is a leg.
    fn leg_at(&self, drive: Uuid) -> Option<(usize, usize)> {
        let arrays = self.arrays.iter().enumerate();
        arrays.into_iter().find_map(|(a, x)| Some((a, x.legs.iter().position(|l| l.uuid == drive)?)))
    }
    pub(crate) fn is_leg(&self, drive: Uuid) -> bool {
        self.leg_at(drive).is_some()
    }
    pub(crate) fn leaver(&self, array: usize, leg: usize) -> Leaver {
        (self.arrays[array].legs[leg].uuid, self.drive_path(array, leg).to_string())
    }
    /// A replacement that has come to its end: the new drive is in sync, or is no leg (it never became one, or
    /// was removed).
    pub(crate) fn replacement_over(&self) -> Option<&Replacement> {
        self.config().extras.replacements.iter().find(|r| match self.leg_at(r.new) {
            Some((a, l)) => self.leg_state(a, l) == LegState::InSync,
            None => true,
        })
    }
    /// Legs that an array has when what is under way is over.
    pub(crate) fn legs_to_stay(&self, array: usize) -> usize {
        let replaced = |l: &&LegContext| {
            let mut rows = self.config().extras.replacements.iter().filter(|r| r.old == l.uuid);
            rows.any(|r| self.is_leg(r.new))
        };
        let legs = &self.arrays[array].legs;
        legs.len() - legs.iter().filter(replaced).count()
    }
    fn in_sync_without(&self, array: usize, leg: usize) -> usize {
        let others = (0..self.arrays[array].legs.len()).filter(|l| *l != leg);
        others.filter(|l| self.leg_state(array, *l) == LegState::InSync).count()
    }
    /// A leg is one no more: those behind it move up, and what was to change of it is void.
    fn drop_leg(&mut self, array: usize, leg: usize) -> LegContext {
        self.pending.retain_mut(|change| {
            let (PendingChange::Lost { array: a, leg: l, .. }
            | PendingChange::Joined { array: a, leg: l, .. }
            | PendingChange::Synced { array: a, leg: l }) = change;
            let mine = *a == array;
            let gone = mine && *l == leg;
            if mine && *l > leg {
                *l -= 1;
            }
            !gone
        });
        self.arrays[array].legs.remove(leg)
    }
}

impl Procedures {
    /// Order: replace.
    pub(crate) async fn drive_replace(&self, old: &str, new: &str, force: bool) -> Answered {
        let (pool, array, leg) = self.leg_of("old", old)?;
        let (state, mirror, last, leaver, name, out_of) = {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            let (state, mirror) = (p.leg_state(array, leg), p.config().arrays[array].mirror);
            let leaver = p.leaver(array, leg);
            (state, mirror, p.is_last(array, leg), leaver, p.config().name.clone(), p.is_out(array, leg))
        };
        let old_path = leaver.1.clone();
        let itself = new == old_path;
        if !mirror || (last && itself) {
            return Err(LegRefusal::LegNotReplaceable { drive: old_path, pool: name, mirror }.into());
        }
        self.check_not_replaced(pool, array, leg)?;
        if itself && !out_of {
            return Err(LegRefusal::LegServes { drive: old_path, pool: name }.into());
        }
        if itself {
            self.make_way(pool, array, leg, old, state).await?;
            if !self.clear_place(pool, array, leg).await {
                let busy = LegRefusal::DriveStillBusy { drive: old_path, replaces: true };
                return Err(Refusal::from(busy).about("old"));
            }
            let probe = self.probe_new(new, Some((pool, array, leg))).await?;
            return self.place(pool, array, Seat::Of(leg), &probe, force, None).await;
        }
        // The new drive is looked at before the old one is touched.
        let probe = self.probe_new(new, None).await?;
        let good = self.check_new_leg(pool, array, &probe, force).await;
        if let Err(r) = good {
            self.let_go(probe.id);
            return Err(r);
        }
        let seat = if state == LegState::InSync { Seat::Beside } else { Seat::Of(leg) };
        match seat {
            Seat::Beside => self.check_room(pool, array).inspect_err(|_| self.let_go(probe.id))?,
            Seat::Of(_) => {
                self.make_way(pool, array, leg, old, state).await.inspect_err(|_| self.let_go(probe.id))?;
                self.clear_place(pool, array, leg).await;
            }
        }
        let was = match seat {
            Seat::Beside => OldLeg::Serves,
            Seat::Of(_) if out_of => OldLeg::Out,
            Seat::Of(_) => OldLeg::Rebuilding,
        };
        let event = LegEvent::LegReplaced { new: probe.info.path.clone(), old: old_path, was };
        let now = self.cx.now();
        self.context_mut().happened(now, format!("pool {name}"), event);
        let unused = self.unused_as_leg(pool, array, &probe);
        self.place(pool, array, seat, &probe, force, Some(leaver)).await?;
        Ok(Reply::Created { uuid: Uuid::default(), notices: unused.iter().map(Unused::notice).collect() })
    }
    /// A drive takes one place at a time, and one drive a place.
    fn check_not_replaced(&self, pool: PoolId, array: usize, leg: usize) -> Result<(), Refusal> {
        let context = self.context();
        let p = context.pool(pool).expect("orders come one by one");
        let (uuid, path) = p.leaver(array, leg);
        let rows = &p.config().extras.replacements;
        if let Some((a, l)) = rows.iter().find(|r| r.old == uuid).and_then(|r| p.leg_at(r.new)) {
            let new = p.drive_path(a, l).to_string();
            return Err(LegRefusal::LegBeingReplaced { drive: path, new }.into());
        }
        if let Some(r) = p.replaces(uuid).filter(|r| p.is_leg(r.old)) {
            return Err(LegRefusal::LegReplacesAnother { drive: path, old: r.old_path.clone() }.into());
        }
        Ok(())
    }
    /// Room for one more drive.
    fn check_room(&self, pool: PoolId, array: usize) -> Result<(), Refusal> {
        let context = self.context();
        let p = context.pool(pool).expect("orders come one by one");
        if p.arrays[array].legs.len() == PLACES_MAX {
            return Err(LegRefusal::MirrorReplacesOne { mirror: array_word(true, array) }.into());
        }
        let drives = p.arrays.iter().map(|a| a.legs.len()).sum::<usize>() + p.spares.len();
        if drives >= DRIVES_MAX {
            return Err(LegRefusal::TooManyLegs { drives_max: DRIVES_MAX as u64 }.into());
        }
        Ok(())
    }

    /// Order: add a leg.
    pub(crate) async fn leg_add(
        &self,
        pool: &str,
        mirror: Option<String>,
        drive: &str,
        force: bool,
    ) -> Answered {
        let (id, array) = {
            let context = self.context();
            if let Some(holder) = context.holds(drive) {
                return Err(LegRefusal::DriveInPool { drive: drive.into(), pool: holder }.into());
            }
            let p = context.pool_named(pool)?;
            let array = p.mirror_named(mirror.as_deref())?;
            if p.legs_to_stay(array) >= LEGS_MAX {
                let (mirror, legs_max) = (array_word(true, array), LEGS_MAX as u64);
                let (drive, pool) = (drive.into(), pool.into());
                return Err(LegRefusal::MirrorFull { mirror, legs_max, drive, pool }.into());
            }
            (p.id, array)
        };
        self.check_room(id, array)?;
        let about = |r: Refusal| if r.field.is_empty() { r } else { r.about("drive") };
        let probe = self.probe_new(drive, None).await.map_err(about)?;
        if let Err(r) = self.check_new_leg(id, array, &probe, force).await {
            self.let_go(probe.id);
            return Err(about(r));
        }
        let unused = self.unused_as_leg(id, array, &probe);
        if let Some(r) = Unused::refusal(unused.as_slice()).filter(|_| !force) {
            self.let_go(probe.id);
            return Err(about(r));
        }
        self.place(id, array, Seat::Beside, &probe, force, None).await.map_err(about)
    }

    /// A leg leaves for good.
    pub(crate) async fn leg_remove(&self, drive: &str, force: bool) -> Answered {
        let (pool, array, leg) = self.leg_of("drive", drive)?;
        let (name, out) = {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            p.check_removal(array, leg, force)?;
            (p.config().name.clone(), p.is_out(array, leg))
        };
        if !out {
            self.put_out(pool, array, leg, LegCause::LegRemovedByHand, Outlook::Leaves).await?;
        }
        let Some(gone) = self.remove_leg(pool, array, leg).await? else { return Ok(Reply::Done) };
        let now = self.cx.now();
        let event = LegEvent::LegRemoved { leg: gone.path.clone() };
        self.context_mut().happened(now, format!("pool {name}"), event);
        self.strip(&name, gone.uuid, &gone.path, gone.open).await;
        self.write_pools().await?;
        Ok(Reply::Done)
    }

    /// Order of the Steward's own: replacements that have come to their end are brought to it.
    pub(crate) async fn replaced(&self, pool: PoolId) -> Answered {
        loop {
            let found = {
                let context = self.context();
                let p = context.pool(pool).filter(|p| !p.leaving);
                p.and_then(|p| {
                    let r = p.replacement_over()?.clone();
                    let (old, new) = (p.leg_at(r.old), p.leg_at(r.new));
                    let new = new.map(|(a, l)| p.drive_path(a, l).to_string());
                    Some((p.config().name.clone(), r, old, new))
                })
            };
            let Some((name, row, old, new)) = found else { return Ok(Reply::Done) };
            if let Some(new) = new {
                let mut open = None;
                if let Some((array, leg)) = old {
                    if !self.context().pool(pool).is_some_and(|p| p.is_out(array, leg)) {
                        let why = LegCause::LegPlaceTaken { new };
                        self.put_out(pool, array, leg, why, Outlook::Leaves).await?;
                    }
                    open = self.remove_leg(pool, array, leg).await?.and_then(|gone| gone.open);
                }
                self.strip(&name, row.old, &row.old_path, open).await;
            }
            // Until now a crash would have gone on with it.
            if self.context().pool(pool).is_none() {
                return Ok(Reply::Done);
            }
            self.configure(pool, vec![Edit::ReplacementRemoved { old: row.old }]).await?;
            self.write_pools().await?;
        }
    }

    /// Leaves a leg that is out, which is on record, out of the record and then of the configuration.
    async fn remove_leg(
        &self,
        pool: PoolId,
        array: usize,
        leg: usize,
    ) -> Result<Option<LegContext>, Refusal> {
        self.wait_until_gone(pool, array, leg).await?;
        let _hold = self.hold_keeper(pool).await;
        self.write_without(pool, array, leg).await
    }
    /// A leg's place is free once no drive that takes part can be ignorant of its loss. If some drive could
    /// not take the record of it, the keeper puts that one out, and a later record says so. A last leg that is gone
    /// is not put out: until it is back it cannot be told.
    async fn wait_until_gone(&self, pool: PoolId, array: usize, leg: usize) -> Result<(), Refusal> {
        for _ in 0..GONE_TRIES {
            let (free, gone) = {
                let context = self.context();
                let Some(p) = context.pool(pool) else { return Ok(()) };
                (p.record().next(p.record().head, 1).is_gone(array, leg), p.is_looked_for())
            };
            if free {
                return Ok(());
            }
            if gone {
                break;
            }
            // The same record, however often: each new one uses up a name of an ancestor, and a last leg that comes
            // back to a record that does not name its own any more is not believed.
            let (hold, record) = self.record_again(pool).await;
            if let Some(record) = record {
                self.write_down(pool, &record, &[]).await;
            }
            drop(hold);
            self.cx.sleep(GONE_RETRY).await;
        }
        Err(LegRefusal::LegNotForgotten.into())
    }
    async fn write_without(
        &self,
        pool: PoolId,
        array: usize,
        leg: usize,
    ) -> Result<Option<LegContext>, Refusal> {
        let (record, changed) = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            let Some(p) = context.pool(pool) else { return Ok(None) };
            let mut record = p.record().next(me, incarnation);
            record.remove(array, leg);
            record.arrays[array].epoch = record.counter;
            let changed = p.changed(&record);
            (record, changed)
        };
        // On record first: once the shards know of no such leg, bits are cleared that it would need.
        let mut record = record;
        match self.write_down(pool, &record, &[]).await {
            None => return Ok(None),
            Some(true) => record.settle(),
            Some(false) => {}
        }
        let edits = {
            let context = self.context();
            let Some(p) = context.pool(pool) else { return Ok(None) };
            let gone = p.arrays[array].legs[leg].uuid;
            let over = p.config().extras.replacements.iter().filter(|r| r.new == gone);
            let removed = Edit::LegRemoved { array: array as u32, leg: leg as u32 };
            let over = over.map(|r| Edit::ReplacementRemoved { old: r.old });
            let failed = p.config().extras.failed(gone);
            let failed = failed.map(|row| FailedRow { removed: true, ..row.clone() });
            let failed = failed.map(|row| Edit::FailedPut { row });
            core::iter::once(removed).chain(over).chain(failed).collect()
        };
        let planned = self.plan(pool, edits).await?;
        let failed = self.write_config(pool, &planned.slot()).await.failed;
        self.propose_losses(pool, failed, Untaken::Config);
        let gone = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool) else { return Ok(None) };
            p.propose(record.clone());
            let gone = p.drop_leg(array, leg);
            context.decide(pool, &record);
            context.departs(Some((gone.uuid, gone.path.clone())));
            gone
        };
        self.decided(planned);
        self.publish().await;
        self.recorded(&changed);
        Ok(Some(gone))
    }
    /// Takes our mark from a drive that is none of ours any more, if it answers, and says how that went. One that has failed keeps its
    /// label.
    async fn strip(&self, pool: &str, uuid: Uuid, path: &str, open: Option<OpenDrive>) {
        let found = match open {
            Some(open) => Ok(Some((open.id, open.label, open.info))),
            None => self.find_label(uuid, path).await,
        };
        let done = match found {
            Ok(None) => return,
            Ok(Some((id, label, info))) => {
                let failed = self.context().failed_here(Some(&label), &info);
                let done = match &failed {
                    Some(_) => self.clear_records(id, &label).await,
                    None => self.unlabel_drive(id, &label).await,
                };
                self.let_go_wholly(id, RETURN_PATIENCE).await;
                done.map_err(|e| LegCause::failed(e.into())).and(failed.map_or(Ok(()), Err))
            }
            Err(why) => Err(why),
        };
        let pool = pool.to_string();
        let event = match done {
            Ok(()) => LegEvent::DriveFreed { pool },
            Err(why) => LegEvent::DriveKeepsLabel { pool, why: Box::new(why.into()) },
        };
        let now = self.cx.now();
        self.context_mut().happened(now, format!("drive {path}"), event);
    }
    /// The drive that was last seen at a path, if that is still it.
    pub(super) async fn find_label(&self, uuid: Uuid, path: &str) -> Result<Option<Labelled>, LegCause> {
        if self.context().holds(path).is_some() {
            return Ok(None);
        }
        let probe = self.probe(path).await.map_err(LegCause::from)?;
        let ours = |l: &&Label| l.drive == uuid && probe.newer().is_none();
        let label = probe.good_label().filter(ours).cloned();
        if label.is_none() {
            self.let_go(probe.id);
        }
        Ok(label.map(|label| (probe.id, label, probe.info)))
    }

    /// Looks at a drive that is to become a leg: in the place of `out`, which may have lain at the same path.
    async fn probe_new(&self, new: &str, out: Option<(PoolId, usize, usize)>) -> Result<Probe, Refusal> {
        if let Some((pool, spare)) = self.context().spare_named(new) {
            let pool = self.context().pool(pool).map_or(String::new(), |p| p.config().name.clone());
            return Err(LegRefusal::DriveIsSpare { drive: spare.path, pool }.into());
        }
        let leg = self.context().leg_named(new).filter(|leg| Some(*leg) != out);
        if let Some((pool, array, leg)) = leg {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            let (drive, pool) = (p.drive_path(array, leg).into(), p.config().name.clone());
            return Err(Refusal::from(LegRefusal::DriveInPool { drive, pool }).about("new"));
        }
        let probe = self.patient().probe(new).await;
        probe.map_err(|e| Refusal::from(LegRefusal::from(e)).about("new"))
    }
    async fn make_way(
        &self,
        pool: PoolId,
        array: usize,
        leg: usize,
        old: &str,
        state: LegState,
    ) -> Result<(), Refusal> {
        match state {
            LegState::Out | LegState::JustOut => Ok(()),
            LegState::InSync | LegState::Rebuilding | LegState::RebuildingFull => {
                let others = self.context().pool(pool).is_some_and(|p| {
                    let legs = 0..p.arrays[array].legs.len();
                    legs.into_iter().any(|l| l != leg && p.leg_state(array, l) == LegState::InSync)
                });
                if !others {
                    return Err(LegRefusal::MirrorNotInSync { drive: old.into() }.into());
                }
                let why = LegCause::LegOutByHand;
                self.put_out(pool, array, leg, why, Outlook::Leaves).await
            }
        }
    }
    /// Lets go of what stands in a leg's place; false if the kernel still holds operations on it.
    pub(crate) async fn clear_place(&self, pool: PoolId, array: usize, leg: usize) -> bool {
        let open = {
            let mut context = self.context_mut();
            context.pool_mut(pool).and_then(|p| p.arrays[array].legs[leg].open.take())
        };
        let Some(open) = open else { return true };
        self.publish().await;
        self.let_go_wholly(open.id, RETURN_PATIENCE).await
    }
    /// A new drive becomes a leg, in a place that is empty. It is let go of if that is refused.
    pub(crate) async fn place(
        &self,
        pool: PoolId,
        array: usize,
        seat: Seat,
        probe: &Probe,
        force: bool,
        replaces: Option<Leaver>,
    ) -> Answered {
        match self.put_in_place(pool, array, seat, probe, force, replaces).await {
            Ok(leg) => self.joined(pool, array, leg).await,
            Err(r) => {
                self.let_go(probe.id);
                return Err(if r.field.is_empty() { r } else { r.about("new") });
            }
        }
        self.write_pools().await?;
        Ok(Reply::Done)
    }
    /// That much of a drive stays unused as a leg of an array.
    fn unused_as_leg(&self, pool: PoolId, array: usize, probe: &Probe) -> Option<Unused> {
        let context = self.context();
        let geometry = context.pool(pool)?.arrays[array].geometry;
        let used = bytes_needed(probe, geometry.data_at + geometry.data_bytes);
        Unused::of(&probe.info.path, probe.info.bytes, used)
    }
    /// Whether a drive may become a leg of an array.
    async fn check_new_leg(
        &self,
        pool: PoolId,
        array: usize,
        probe: &Probe,
        force: bool,
    ) -> Result<(), Refusal> {
        let one = core::slice::from_ref(probe);
        let apart = match self.check_drives_apart(one) {
            Ok(()) => self.check_listed(one, Some(pool)).await,
            refused => refused,
        };
        apart.map_err(|r| r.about("new"))?;
        let context = self.context();
        let p = context.pool(pool).ok_or_else(|| Refusal::from(PoolRefusal::PoolGone).about("old"))?;
        if let Some(r) =
            check_probes(core::slice::from_ref(probe), force || p.retired(probe), self.is_in_system())
        {
            return Err(r.about("new"));
        }
        let like = p.arrays[array].legs.iter().find_map(|l| l.open.as_ref());
        let like = like.ok_or(LegRefusal::MirrorWithoutSource)?;
        if !fits(probe, &like.label) {
            let front = geometry_of(&like.label).data_at + like.label.data_bytes;
            let (drive, bytes) = (probe.info.path.clone(), probe.info.bytes);
            let needed_bytes = bytes_needed(probe, front);
            return Err(LegRefusal::LegTooSmall { drive, bytes, needed_bytes }.into());
        }
        let block = probe.info.block_bytes;
        if block > p.config().drive_block_bytes && p.config().volumes.iter().any(|v| v.block_bytes < block) {
            return Err(LegRefusal::DriveBlocksTooLarge { drive: probe.info.path.clone() }.into());
        }
        Ok(())
    }
    async fn put_in_place(
        &self,
        pool: PoolId,
        array: usize,
        seat: Seat,
        probe: &Probe,
        force: bool,
        replaces: Option<Leaver>,
    ) -> Result<usize, Refusal> {
        self.check_new_leg(pool, array, probe, force).await?;
        if let Seat::Of(leg) = seat {
            self.wait_until_gone(pool, array, leg).await?;
        }
        let was = probe.good_label().map(|l| l.drive);
        let (like, config, record, uuid, dirty_uuid, used_again, leaver) = {
            let mut context = self.context_mut();
            let uuid = context.new_uuid();
            let created = context.unix(self.cx.now());
            let p = context.pool(pool).ok_or_else(|| Refusal::from(PoolRefusal::PoolGone).about("old"))?;
            let mut there = p.arrays[array].legs.iter().filter_map(|l| l.open.as_ref());
            let like = there.next().expect("the check has seen one").label.clone();
            let like = Label { created, ..like };
            let leaver = match seat {
                Seat::Of(leg) => Some(context.failed_row(p, array, leg, created)),
                Seat::Beside => None,
            };
            let used_again = p.used_again(was, &probe.info);
            (like, p.config().clone(), p.record().clone(), uuid, p.array_uuid(array), used_again, leaver)
        };
        // A spare is one no more in the same write that makes it a leg.
        let spares = config.extras.spares.iter().filter(|s| Some(s.drive) == was);
        let mut edits: Vec<Edit> = spares.map(|s| Edit::SpareRemoved { drive: s.drive }).collect();
        let stands_in = !edits.is_empty();
        // One that failed stays listed; and so does any in whose place a spare is.
        let failed = leaver.filter(|row| stands_in || config.extras.failed(row.drive).is_some());
        if let Some(row) = failed {
            let spare = if stands_in { uuid } else { Uuid::default() };
            edits.push(Edit::FailedPut { row: FailedRow { removed: true, spare, ..row } });
        }
        edits.extend(used_again);
        let row = LegRow { drive: uuid, path: probe.info.path.clone() };
        let leg = match seat {
            Seat::Of(leg) => leg,
            Seat::Beside => config.arrays[array].legs.len(),
        };
        edits.push(Edit::LegPut { array: array as u32, leg: leg as u32, row });
        if let Some((old, old_path)) = replaces {
            // Who waited for the one that leaves now waits for this one.
            let waited = config.extras.replacements.iter().filter(|r| r.new == old);
            edits
                .extend(waited.map(|r| Edit::ReplacementPut { row: Replacement { new: uuid, ..r.clone() } }));
            edits.push(Edit::ReplacementPut { row: Replacement { old, old_path, new: uuid } });
        }
        if probe.info.block_bytes > config.drive_block_bytes {
            edits.push(Edit::DriveBlock { bytes: probe.info.block_bytes });
        }
        let planned = self.plan(pool, edits).await.map_err(|r| {
            let field = if r.field.is_empty() { "" } else { "new" };
            r.about(field)
        })?;
        let label = Label {
            drive: uuid,
            leg: leg as u32,
            legs: planned.next().config().arrays[array].legs.len() as u32,
            drive_bytes: probe.info.bytes,
            block_bytes: probe.info.block_bytes,
            ..like
        };
        let slot = planned.slot();
        // Until the next record names it, the new drive is nobody's leg: a crash here leaves it as a drive
        // that "was replaced once".
        let geometry = crate::steward::state::config::geometry_of(&label);
        let all = array::Bitmap::full(geometry.regions());
        // The uncleared map comes with what is copied, before the leg counts as in sync.
        let uncleared = array::UnclearedMap::none();
        let maps = crate::steward::health::drives::Maps {
            geometry: &geometry,
            array: dirty_uuid,
            dirty: &all,
            uncleared: &uncleared,
        };
        let written = self.label_drive(probe.id, &label, maps, &record, &slot).await;
        written.map_err(|e| not_labelled(&probe.info, e))?;
        self.mark_all(pool, array).await?;
        self.write_pools_and(Some((pool, &probe.info.path))).await?;
        let failed = self.write_config(pool, &slot).await.failed;
        self.propose_losses(pool, failed, Untaken::Config);
        self.decided(planned);
        let mut departed = None;
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.spares.retain(|s| Some(s.uuid) != was);
            let open = Some(OpenDrive { id: probe.id, info: probe.info.clone(), label });
            let (legs, path) = (&mut p.arrays[array].legs, probe.info.path.clone());
            match legs.get_mut(leg) {
                Some(l) => {
                    departed = Some((l.uuid, l.path.clone()));
                    l.becomes(uuid, open, &path);
                }
                None => {
                    let mut places = 0..PLACES_MAX;
                    let place = places.find(|p| legs.iter().all(|l| l.place != *p));
                    let place = place.expect("who puts a drive beside others has looked for room");
                    legs.push(LegContext::new(uuid, place, path, open, 0));
                }
            }
            p.pending.push_back(PendingChange::Joined { array, leg, full: true, new: true });
        }
        self.context_mut().departs(departed);
        Ok(leg)
    }
}

impl PoolContext {
    /// The mirror that is called so, or the only one.
    fn mirror_named(&self, word: Option<&str>) -> Result<usize, Refusal> {
        let mirrors: Vec<usize> =
            (0..self.arrays.len()).filter(|a| self.config().arrays[*a].mirror).collect();
        let found = match (word, &mirrors[..]) {
            (Some(word), _) => mirrors.iter().find(|a| array_word(true, **a) == word).copied(),
            (None, [one]) => Some(*one),
            (None, _) => None,
        };
        found.ok_or_else(|| {
            let mirrors: Vec<String> = mirrors.iter().map(|a| array_word(true, *a)).collect();
            let pool = self.config().name.clone();
            match word {
                Some(word) => LegRefusal::MirrorUnknown { pool, mirror: word.into(), mirrors }.into(),
                None if mirrors.is_empty() => LegRefusal::PoolWithoutMirror { pool }.into(),
                None => LegRefusal::MirrorNotNamed { pool, mirrors }.into(),
            }
        })
    }
    /// Whether a leg may be removed. The last good one never is; redundancy is given up only if that is meant.
    fn check_removal(&self, array: usize, leg: usize, force: bool) -> Result<(), Refusal> {
        let (drive, pool) = (self.drive_path(array, leg).to_string(), self.config().name.clone());
        if !self.config().arrays[array].mirror {
            return Err(LegRefusal::LegIsNeeded { drive, mirror: false, out: None, removal: true }.into());
        }
        if self.is_last(array, leg) {
            return Err(LegRefusal::LegIsNeeded { drive, mirror: true, out: None, removal: true }.into());
        }
        // Who gives up a replacement is left with the legs that there were, unless the old one was lost meanwhile.
        let uuid = self.arrays[array].legs[leg].uuid;
        let old = self.replaces(uuid).and_then(|r| self.leg_at(r.old));
        let comes = old.is_some_and(|(a, l)| self.leg_state(a, l) == LegState::InSync);
        let alone = !comes && (self.in_sync_without(array, leg) < 2 || self.arrays[array].legs.len() == 2);
        if alone && !force {
            let mirror = array_word(true, array);
            return Err(LegRefusal::MirrorLeftAlone { drive, mirror, pool }.into());
        }
        Ok(())
    }
}
