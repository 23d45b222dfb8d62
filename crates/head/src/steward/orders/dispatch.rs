//! Orders: who does what; and those about drives.

use crate::layout::PoolId;
use crate::mail::ShardMail;
use crate::order::{Answered, Drive, DriveRole, Order, Refusal, Reply};
use crate::steward::context::array::{Outlook, PendingChange};
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::join::{self, Boxed};
use crate::steward::legs::come_back::Lacking;
use crate::steward::patience::RETURN_PATIENCE;
use crate::steward::pools::fit::NewPool;
use crate::steward::pools::import::Claim;
use crate::steward::procedures::Procedures;
use array::format::{Label, LegState};
use base::machine::Shape;
use base::{Duration, FileName};
use finding::{LegCause, LegRefusal, PoolRefusal, UnopenedDrive};

/// How long the bitmap may take to be marked in full.
const MARK_PATIENCE: Duration = Duration::from_secs(30);

impl Procedures {
    /// Carries out an order that changes something, or looks at drives.
    pub(crate) async fn execute(&self, order: Order) -> Answered {
        match order {
            Order::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, force } => {
                self.pool_create(NewPool { name, arrays, chunk_bytes, block_bytes, measure, force }).await
            }
            Order::PoolAdd { pool, arrays, force } => self.pool_add(&pool, arrays, force).await,
            Order::ArrayRemove { pool, arrays } => self.array_remove(&pool, arrays).await,
            Order::PoolRelease { pool, force, disconnect } => {
                self.pool_release(&pool, force, disconnect).await
            }
            Order::PoolImport { pool, name, drives, force } => {
                self.pool_import(pool, drives, Claim { asked: true, force, name }).await
            }
            Order::PoolImportable { drives } => self.pool_importable(drives).await,
            Order::PoolDestroy { pool, force, disconnect } => {
                self.pool_destroy(&pool, force, disconnect).await
            }
            Order::VolumeCreate { pool, name, bytes, block_bytes } => {
                self.volume_create(&pool, &name, bytes, block_bytes).await
            }
            Order::VolumeResize { volume, bytes, force, disconnect } => {
                self.volume_resize(&volume, bytes, force, disconnect).await
            }
            Order::VolumeRename { volume, name } => self.volume_rename(&volume, &name).await,
            Order::VolumeCaps { volume, caps } => self.volume_caps(&volume, caps).await,
            Order::VolumeRemove { volume, force, disconnect } => {
                self.volume_remove(&volume, force, disconnect).await
            }
            Order::HostAdd { name, settings } => self.host_add(name, settings).await,
            Order::HostSet { name, settings, disconnect } => self.host_set(&name, settings, disconnect).await,
            Order::HostCheck { name, chap_secret, mutual_secret } => {
                self.host_check(&name, chap_secret.as_ref(), mutual_secret.as_ref())
            }
            Order::HostRemove { name, force, disconnect } => self.host_remove(&name, force, disconnect).await,
            Order::PortalAdd { protocol, address, moves, head } => {
                self.portal_add(protocol, address, moves, head).await
            }
            Order::PortalRemove { protocol, address, disconnect } => {
                self.portal_remove(protocol, address, disconnect).await
            }
            Order::Export { volume, host, lun } => self.export(&volume, &host, lun).await,
            Order::Unexport { volume, host, disconnect } => self.unexport(&volume, &host, disconnect).await,
            Order::DriveList { drives } => self.drive_list(drives).await,
            Order::DriveFail { drive, force } => self.drive_fail(&drive, force).await,
            Order::DriveReturn { drive } => {
                let answer = self.drive_return(&drive).await;
                self.look_now().await;
                answer
            }
            Order::LabelRestore { drive, yes, force } => self.label_restore(&drive, yes, force).await,
            Order::LabelsMend { pool } => self.labels_mend(pool).await,
            Order::DriveReplace { old, new, force } => self.drive_replace(&old, &new, force).await,
            Order::DriveShape { drive, shape } => self.drive_shape(&drive, shape),
            Order::SpareAdd { pool, drive, force } => self.spare_add(&pool, &drive, force).await,
            Order::DriveRemove { drive, force } => self.drive_remove(&drive, force).await,
            Order::LegAdd { pool, mirror, drive, force } => self.leg_add(&pool, mirror, &drive, force).await,
            Order::Replaced { pool } => self.replaced(pool).await,
            Order::PoolReturn { pool } => self.pool_return(pool).await,
            Order::StateRestore { files } => self.state_restore(files).await,
            Order::LegReturn { pool } => self.legs_return(pool).await,
            Order::LegFailed { pool } => self.legs_failed(pool).await,
            Order::SpareUse { pool } => self.spare_use(pool).await,
            Order::PoolScrub { pool, action } => self.pool_scrub(&pool, action).await,
            Order::ScrubKeep { pool } => self.scrub_keep(pool).await,
            Order::SpaceMarked { pool } => self.space_marked(pool).await,
            Order::LanesDeal => self.deal_lanes(false).await,
            Order::FarJoins => self.far_joins().await,
            Order::LanesTurn => self.turn_lanes().await,
            Order::Status | Order::Figures | Order::Events { .. } => self.look(order).await,
            Order::Happened { .. } => unreachable!("taken as it comes"),
            Order::SystemCreate { settings } => self.system_create(*settings).await,
            Order::System => self.system_view().map(|v| Reply::System(Box::new(v))),
            Order::HeadLead => self.head_lead().await,
            Order::HeadRelease { itself } => self.head_release(itself).await,
            Order::SystemLeave => self.system_leave().await,
            Order::HeadFence { off } => self.head_fence(off).await,
            Order::Shutdown => self.shutdown().await,
        }
    }

    /// Refuses a name that several drives of pools have: the first of them may not be the one that is meant.
    pub(crate) fn check_one_meant(&self, field: &'static str, drive: &str) -> Result<(), Refusal> {
        let several = self.context().drives_called(drive);
        if several < 2 {
            return Ok(());
        }
        let why = LegRefusal::DriveNameShared { drive: drive.into(), drives: several };
        Err(Refusal::from(why).about(field))
    }
    pub(crate) fn leg_of(&self, field: &'static str, drive: &str) -> Result<(PoolId, usize, usize), Refusal> {
        self.check_one_meant(field, drive)?;
        let context = self.context();
        context.leg_named(drive).ok_or_else(|| {
            let spare = context.spare_named(drive).and_then(|(pool, _)| context.pool(pool));
            if let Some(pool) = spare {
                let pool = pool.config().name.clone();
                let why = LegRefusal::SpareIsNoLeg { drive: drive.into(), pool };
                return Refusal::from(why).about(field);
            }
            Refusal::from(LegRefusal::DriveInNoPool { drive: drive.into() }).about(field)
        })
    }

    /// Order: list.
    async fn drive_list(&self, extra: Vec<String>) -> Answered {
        let mut out = self.snapshot(false).await.drives;
        let candidates = self.candidates().await;
        let specs: Vec<String> = extra.into_iter().chain(candidates).collect();
        let mut unique: Vec<&String> = vec![];
        for s in &specs {
            if !unique.contains(&s) && self.context().holds(s).is_none() {
                unique.push(s);
            }
        }
        let patient = &self.patient();
        let probes: Vec<Boxed<'_, (String, Result<Probe, UnopenedDrive>)>> = unique
            .into_iter()
            .map(|s| -> Boxed<'_, _> { Box::pin(async move { (s.clone(), patient.probe(s).await) }) })
            .collect();
        for (spec, result) in join::all(probes).await {
            match result {
                Ok(p) if list_failed(&mut out, &p) => self.let_go(p.id),
                Ok(p) => {
                    let role = match (&p.label, p.foreign) {
                        (Ok(_), _)
                        | (Err(array::format::Fault::Newer(_) | array::format::Fault::Damaged), _) => {
                            DriveRole::Labelled
                        }
                        (Err(_), Some(_)) => DriveRole::Foreign,
                        (Err(_), None) => DriveRole::Free,
                    };
                    out.push(Drive {
                        path: p.info.path.clone(),
                        uuid: p.label.as_ref().ok().map(|l| l.drive),
                        kind: p.info.kind.word().into(),
                        model: p.info.model.clone(),
                        serial: p.info.serial.clone(),
                        bytes: p.info.bytes,
                        block_bytes: p.info.block_bytes,
                        volatile_cache: p.info.volatile_cache,
                        pool: p.label.as_ref().ok().map(|l| l.pool_name.clone()),
                        role,
                        cause: p.objection().map(Into::into),
                        // What it did while it was a drive of ours is not forgotten when another takes its place.
                        errors: self.context().errors_of_departed(&p.info.path),
                        ..Drive::default()
                    });
                    self.let_go(p.id);
                }
                Err(e) => out.push(Drive {
                    shape: self.context().shapes_at_start.get(&spec).map(Into::into),
                    path: spec,
                    role: DriveRole::Unusable,
                    cause: Some(LegCause::from(e).into()),
                    ..Drive::default()
                }),
            }
        }
        Ok(Reply::Drives(out))
    }

    /// Order: fail.
    pub(crate) async fn drive_fail(&self, drive: &str, force: bool) -> Answered {
        let (pool, array, leg) = self.leg_of("drive", drive)?;
        let (last, out, mirror, path, other) = {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            let out = p.is_out(array, leg);
            let mut others = (0..p.arrays[array].legs.len()).filter(|l| *l != leg);
            let other = others.find(|l| p.is_out(array, *l));
            let other = other.map(|l| p.drive_path(array, l).to_string());
            let mirror = p.config().arrays[array].mirror;
            (p.is_last(array, leg), out, mirror, p.drive_path(array, leg).to_string(), other)
        };
        if out {
            return Err(LegRefusal::LegOutAlready { drive: path }.into());
        }
        if last {
            return Err(LegRefusal::LegIsNeeded { drive: path, mirror, out: other, removal: false }.into());
        }
        if !force {
            self.leaves_a_named_leg(pool, array, leg).await?;
        }
        self.put_out(pool, array, leg, LegCause::LegOutByHand, Outlook::ByHand).await?;
        self.legs_failed(pool).await
    }

    /// Whether a mirror is left with a leg in sync that the next start finds. A file that was removed while it is open works
    /// as before, and is gone once the daemon stops; what cannot be asked is taken as there.
    async fn leaves_a_named_leg(&self, pool: PoolId, array: usize, leg: usize) -> Result<(), Refusal> {
        let (path, others) = {
            let context = self.context();
            let Some(p) = context.pool(pool) else { return Ok(()) };
            if p.leg_state(array, leg) != LegState::InSync {
                return Ok(());
            }
            let legs = p.arrays[array].legs.iter().enumerate();
            let in_sync = legs.filter(|(l, _)| *l != leg && p.leg_state(array, *l) == LegState::InSync);
            let open =
                in_sync.map(|(l, x)| (p.drive_path(array, l).to_string(), x.open.as_ref().map(|o| o.id)));
            (p.drive_path(array, leg).to_string(), open.collect::<Vec<_>>())
        };
        let mut removed = None;
        for (other, open) in others {
            let Some(open) = open else { return Ok(()) };
            match self.cx.inspect(open).await {
                Ok(health) if health.name == FileName::Removed => removed = Some(other),
                Ok(_) | Err(_) => return Ok(()),
            }
        }
        let Some(removed) = removed else { return Ok(()) };
        Err(LegRefusal::OtherFileRemoved { drive: path, removed }.into())
    }

    /// A leg is put out by the keeper, and that is on record.
    pub(crate) async fn put_out(
        &self,
        pool: PoolId,
        array: usize,
        leg: usize,
        why: impl Into<finding::Cause>,
        outlook: Outlook,
    ) -> Result<(), Refusal> {
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.pending.push_back(PendingChange::Lost { array, leg, why: why.into(), outlook, there: None });
        }
        let procedures = self.clone();
        self.cx
            .until(move || {
                let context = procedures.context();
                let quiet =
                    |p: &crate::steward::context::pool::PoolContext| !p.keeping && p.pending.is_empty();
                context.pool(pool).is_none_or(|p| {
                    p.leaving || (quiet(p) && (p.is_out(array, leg) || p.is_last(array, leg)))
                })
            })
            .await;
        let still = self
            .context()
            .pool(pool)
            .filter(|p| p.is_last(array, leg))
            .map(|p| p.drive_path(array, leg).to_string());
        match still {
            Some(drive) => Err(LegRefusal::LegBecameLast { drive }.into()),
            None => Ok(()),
        }
    }

    /// Order: return. The drive is claimed anew: that succeeds only when nothing of ours is left on it (promise 5).
    pub(crate) async fn drive_return(&self, drive: &str) -> Answered {
        self.check_one_meant("drive", drive)?;
        let found = self.leg_of("drive", drive);
        let (pool, array, leg) = match found {
            Ok(leg) => leg,
            Err(r) if self.context().spare_named(drive).is_some() => {
                let spare = self.context().spare_named(drive).filter(|(_, s)| s.open.is_none());
                let Some((pool, spare)) = spare else { return Err(r) };
                return self.patient().come_back(pool, Lacking::Spare(spare.uuid)).await;
            }
            // It may have another path today: then its label says whose it is.
            Err(r) => {
                let Ok(probe) = self.patient().probe(drive).await else { return Err(r) };
                let label = probe.good_label().cloned();
                self.let_go_wholly(probe.id, RETURN_PATIENCE).await;
                let label = label.ok_or(r)?;
                let found = self.leg_of("drive", &label.drive.to_string());
                found.map_err(|r| self.once_a_drive(drive, &label).unwrap_or(r))?
            }
        };
        let (state, path) = {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            (p.leg_state(array, leg), p.drive_path(array, leg).to_string())
        };
        match state {
            LegState::Rebuilding | LegState::RebuildingFull => {
                return Err(LegRefusal::LegResyncing { drive: path }.into());
            }
            LegState::InSync => return self.return_in_sync(pool, array, leg).await,
            LegState::Out | LegState::JustOut => {}
        }
        self.come_back(pool, Lacking::Leg { array, leg, named: drive.into() }).await
    }
    /// A drive that carries the label of a pool that is here, and is none of its drives.
    fn once_a_drive(&self, drive: &str, label: &Label) -> Option<Refusal> {
        let context = self.context();
        let pool = context.pools.iter().find(|p| p.config().uuid == label.pool)?;
        let pool = pool.config().name.clone();
        Some(LegRefusal::LegWasReplaced { drive: drive.into(), pool }.into())
    }
    /// Every region of an array counts as dirty, durably, before a leg joins that lacks everything: from then on
    /// the bitmaps say what is left to copy, over any crash.
    pub(crate) async fn mark_all(&self, pool: PoolId, array: usize) -> Result<(), Refusal> {
        let (id, number) = {
            let mut context = self.context_mut();
            let number = context.next_number();
            let gone = || Refusal::from(PoolRefusal::PoolGone).about("drive");
            let p = context.pool_mut(pool).ok_or_else(gone)?;
            p.arrays[array].marks_all(number);
            (p.arrays[array].id, number)
        };
        self.tell_shards(|| ShardMail::MarkAll { array: id, number });
        let procedures = self.clone();
        let marked = move || {
            let context = procedures.context();
            let said = |p: &PoolContext| p.have_all_said(&p.arrays[array], &p.arrays[array].all_dirty);
            context.pool(pool).is_some_and(said)
        };
        // Orders come one by one: a last leg that is gone takes no bitmap, and who waited for that would keep it from being
        // opened anew.
        let (procedures, done) = (self.clone(), marked.clone());
        let lacks = move || procedures.context().pool(pool).is_some_and(|p| p.lacks_last(array));
        self.cx.until_within(MARK_PATIENCE, move || done() || lacks()).await;
        if marked() {
            return Ok(());
        }
        self.tell_shards(|| ShardMail::Unmark { array: id });
        Err(LegRefusal::BitmapNotWritten.into())
    }
    /// Waits until the keeper has dealt with a returned leg.
    pub(crate) async fn joined(&self, pool: PoolId, array: usize, leg: usize) {
        let procedures = self.clone();
        self.cx
            .until(move || {
                let context = procedures.context();
                let done = |p: &crate::steward::context::pool::PoolContext| {
                    !p.keeping && !p.pending.iter().any(|w| matches!(w, PendingChange::Joined { array: a, leg: l, .. } if (*a, *l) == (array, leg)))
                };
                context.pool(pool).is_none_or(|p| p.leaving || done(p))
            })
            .await;
    }

    /// Order: shape.
    pub(crate) fn drive_shape(&self, drive: &str, shape: Shape) -> Answered {
        crate::steward::health::shaped::complete(&shape)
            .map_err(|fault| LegRefusal::ShapeInvalid { fault })?;
        let was = self.context_mut().shapes_at_start.remove(drive);
        let found = self.leg_of("drive", drive);
        let (pool, array, leg) = match (found, &was) {
            (Ok(leg), _) => leg,
            // It is no leg yet, for what it was shaped to be.
            (Err(_), Some(_)) => {
                self.shape_later(drive, shape);
                return Ok(Reply::Done);
            }
            (Err(r), None) => return Err(r),
        };
        let open = self.context().pool(pool).and_then(|p| p.arrays[array].legs[leg].open.clone());
        match (open, &was) {
            (Some(open), _) => self.shape(open.id, shape),
            (None, Some(_)) => self.shape_later(drive, shape),
            (None, None) => {
                return Err(LegRefusal::DriveNotOpen { drive: drive.into() }.into());
            }
        }
        Ok(Reply::Done)
    }
    /// A drive that is not open behaves so when it is.
    pub(crate) fn shape_later(&self, drive: &str, shape: Shape) {
        if shape != Shape::default() {
            self.context_mut().shapes_at_start.insert(drive.into(), shape);
        }
    }
}

/// Completes what is listed of a drive that has failed and was removed by what was seen of it now; false: it is none.
fn list_failed(listed: &mut [Drive], probe: &Probe) -> bool {
    let label = probe.label.as_ref().ok();
    let is_it = |d: &&mut Drive| {
        let itself = label.map_or(d.path == probe.info.path, |l| d.uuid == Some(l.drive));
        d.role == DriveRole::RemovedFailed && itself
    };
    let known = listed.iter_mut().find(is_it).filter(|_| probe.failed.is_some());
    known.map(|d| d.is_seen(&probe.info)).is_some()
}
