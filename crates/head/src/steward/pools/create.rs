//! Pools are made, grow, and are destroyed.

use crate::layout::PoolId;
use crate::order::{Answered, ArraySpec, Cause, Notice, Refusal, Reply};
use crate::steward::context::array::{ArrayContext, LegContext};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::probe::Probe;
use crate::steward::health::drives::Maps;
use crate::steward::health::shaped;
use crate::steward::join::{self, Boxed};
use crate::steward::pools::fit::{NewPool, check_probes, one_drive};
use crate::steward::pools::meant::{check_meant, less_redundant};
use crate::steward::pools::room::Promised;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{CREATING, POOLS, listed};
use crate::steward::sessions::connected::refuse_in_use;
use crate::steward::state::config::{ArrayRow, LegRow, PoolConfig, array_uuid};
use crate::steward::state::extras::{Extras, Returned};
use crate::steward::state::{Edit, PoolRow};
use access::Grants;
use array::format::{
    BITMAP_AT, ConfigSlot, DRIVES_MAX, Label, LegState, MemberLeg, MembershipRecord, RecordArray, tail_at,
};
use array::{Bitmap, Geometry, UnclearedMap};
use base::DriveKind;
use base::{DriveError, DriveId, Uuid};
use finding::{DriveFault, FailedDrive, LegRefusal, PoolEvent, PoolNotice, PoolRefusal};
use pool::{ArraySpace, CHUNK_BYTES_DEFAULT, PoolError, StripeMap, WEIGHT_MAX};
use std::collections::BTreeSet;
use std::sync::Arc;
use volume::Catalogue;

/// An array that is being made.
struct Plan {
    mirror: bool,
    geometry: Geometry,
    reserved_at: u64,
    weight: u32,
    legs: Vec<Probe>,
    /// Somebody may have had one of the drives before: no host may read what it holds.
    used: bool,
}

/// The generation of the configuration with which a new pool is whole: those before it are written while it is made.
const GENERATION_FIRST: u64 = 3;

impl Procedures {
    /// Order: create.
    pub(crate) async fn pool_create(&self, new: NewPool) -> Answered {
        self.check_read(POOLS)?;
        self.check_read(CREATING)?;
        volume::check_name(&new.name).map_err(|_| PoolRefusal::PoolNameInvalid { name: new.name.clone() })?;
        let taken = {
            let context = self.context();
            context.pools.iter().any(|p| p.config().name == new.name)
                || context.absent.iter().any(|p| p.name() == new.name)
        };
        if taken {
            return Err(PoolRefusal::PoolNameTaken { pool: new.name }.into());
        }
        let chunk = new.chunk_bytes.unwrap_or(CHUNK_BYTES_DEFAULT);
        StripeMap::new(chunk, &[ArraySpace { bytes: 1 << 40, weight: 1 }]).map_err(pool_refusal)?;
        let block_bytes = new.block_bytes.unwrap_or(4096);
        volume::check_block(block_bytes, 512).map_err(|_| PoolRefusal::PoolBlockInvalid { block_bytes })?;
        let uuid = self.context_mut().new_uuid();
        let drives = self.files_to_make(&new.arrays).await;
        let creating = self.list_creating(PoolRow { uuid, name: new.name.clone(), drives }).await;
        creating?;
        let planned = self.plan_arrays(&new.arrays, chunk, 0).await;
        let mut plans = match planned.and_then(|plans| self.meant(plans, None, new.force)) {
            Ok(plans) => plans,
            Err(r) => {
                self.leave_creating(uuid, vec![]).await;
                return Err(r);
            }
        };
        let ready = match self.room_for(plans.iter().map(|p| &p.geometry)).await {
            Ok(room) => self.describe(&new, uuid, (chunk, block_bytes), &mut plans).await.map(|c| (c, room)),
            Err(refusal) => Err(refusal),
        };
        let made = match ready {
            Ok((config, room)) => self.make_pool(config, &plans, room).await,
            Err(refusal) => {
                self.leave_creating(uuid, vec![]).await;
                Err(refusal)
            }
        };
        if made.is_err() {
            plans.iter().flat_map(|p| &p.legs).for_each(|p| self.let_go(p.id));
        }
        let mut notices = made?;
        self.publish().await;
        for probe in plans.iter().flat_map(|p| &p.legs) {
            notices.extend(self.larger_than_below(probe).await);
        }
        let now = self.cx.now();
        let mut context = self.context_mut();
        context.forget_undone(&new.name);
        context.happened(now, format!("pool {}", new.name), PoolEvent::PoolCreated);
        drop(context);
        Ok(Reply::Created { uuid, notices })
    }

    /// Of a file that promises more than the file system below it has; None if all is well.
    async fn larger_than_below(&self, probe: &Probe) -> Option<Notice> {
        let bytes = probe.info.bytes;
        let health = self.cx.inspect(probe.id).await.ok().filter(|h| h.sparse)?;
        let free = health.free_bytes.filter(|free| *free < bytes)?;
        let drive = probe.info.path.clone();
        Some(PoolNotice::FileLargerThanBelow { drive, free_bytes: free, bytes }.into())
    }

    /// What a new pool on these drives is, their weights measured if that is wanted.
    async fn describe(
        &self,
        new: &NewPool,
        uuid: Uuid,
        (chunk, block_bytes): (u32, u32),
        plans: &mut [Plan],
    ) -> Result<PoolConfig, Refusal> {
        let drive_block = plans.iter().flat_map(|p| &p.legs).map(|l| l.info.block_bytes).max().unwrap_or(512);
        volume::check_block(block_bytes, drive_block).map_err(|_| {
            let coarse = plans.iter().flat_map(|p| &p.legs).find(|l| l.info.block_bytes == drive_block);
            let drive = coarse.map_or_else(String::new, |l| l.info.path.clone());
            PoolRefusal::PoolBlockTooSmall { drive, drive_block_bytes: drive_block }
        })?;
        if new.measure {
            self.patient().measure(&new.arrays, plans).await?;
        }
        let map = StripeMap::new(chunk, &spaces(plans)).map_err(pool_refusal)?;
        let (holder, created) = {
            let context = self.context();
            (context.me(), context.unix(self.cx.now()))
        };
        let rows = self.rows_of(plans);
        Ok(PoolConfig {
            uuid,
            name: new.name.clone(),
            block_bytes,
            drive_block_bytes: drive_block,
            holder,
            created,
            arrays: rows,
            map: Arc::new(map),
            volumes: Catalogue::default(),
            grants: Grants::default(),
            extras: Extras { uncleared: uncleared_of(plans, 1), ..Extras::default() },
            accounted: true,
            newer_compat: 0,
            shared: self.system(),
        })
    }

    async fn make_pool(
        &self,
        config: PoolConfig,
        plans: &[Plan],
        room: Promised,
    ) -> Result<Vec<Notice>, Refusal> {
        let (uuid, me) = (config.uuid, config.holder);
        let incarnation = self.context_mut().new_incarnation();
        let record = MembershipRecord::first(uuid, me, incarnation, record_rows(&config.arrays, 1));
        let drives = plans.iter().flat_map(|p| &p.legs).map(listed).collect();
        let creating = self.list_creating(PoolRow { uuid, name: config.name.clone(), drives }).await;
        creating?;
        // What the state directory does not take is found out before a drive is touched.
        let noted = self.write_witness(uuid, &record.encode()).await;
        if let Err(why) = noted {
            self.leave_creating(uuid, vec![]).await;
            return Err(PoolRefusal::WitnessNotWritten { why: Box::new(why) }.into());
        }
        let unfinished = config.slot(1).unfinished();
        let arrays = match self.patient().label_all(plans, 0, &config, &unfinished, &record).await {
            Ok(arrays) => arrays,
            Err((r, left)) => {
                self.remove_witness(uuid).await;
                self.leave_creating(uuid, left).await;
                return Err(r);
            }
        };
        let mut notices = vec![];
        if plans.iter().any(|p| p.used) {
            notices.push(PoolNotice::DrivesBeingCleared.into());
        }
        let open: Vec<OpenDrive> =
            arrays.iter().flat_map(|a| &a.legs).filter_map(|l| l.open.clone()).collect();
        let id = match self.settle_in(config, GENERATION_FIRST, record.clone(), arrays, &mut notices) {
            Ok(id) => id,
            Err(r) => {
                let left = self.patient().unlabel_all(&open).await;
                self.remove_witness(uuid).await;
                self.leave_creating(uuid, left).await;
                return Err(r);
            }
        };
        drop(room);
        {
            let mut context = self.context_mut();
            let comes = context.pool(id).expect("it was just added").comes();
            context.journal.proposed(&comes);
        }
        let made = self.patient().put_on_all(id, &record).await;
        if let Err(r) = made {
            self.patient().undo(id).await;
            return Err(r);
        }
        self.came(id);
        self.leave_creating(uuid, vec![]).await;
        let slot = self.context().pool(id).expect("orders come one by one").config_slot();
        // Every drive has it.
        let _ = self.keep_config(id, &slot).await;
        self.start_keeper(id);
        Ok(notices)
    }
    /// The first record of a pool that is being made, its configuration, and the pool among those that this head has.
    async fn put_on_all(&self, id: PoolId, record: &MembershipRecord) -> Result<(), Refusal> {
        let (mut failed, witness) = self.write_record(id, record, &[]).await;
        // The first of them makes it a pool. The other one goes where the first slot says that it is being made: older
        // programs do not read a drive that has such a slot.
        for generation in GENERATION_FIRST - 1..=GENERATION_FIRST {
            if failed.is_empty() && witness.is_ok() {
                let slot =
                    self.context().pool(id).map(|p| p.config().slot(generation)).expect("it was just added");
                failed = self.put_config(id, &slot).await;
            }
        }
        if let Some(r) = self.not_on_record(id, witness, &failed) {
            return Err(r);
        }
        self.write_pools().await?;
        self.context_mut().pool_mut(id).expect("it was just added").serves();
        Ok(())
    }
    /// Why a record or a configuration is not everywhere; None if it is.
    fn not_on_record(
        &self,
        id: PoolId,
        witness: Result<(), impl Into<Cause>>,
        failed: &[(usize, usize, DriveError)],
    ) -> Option<Refusal> {
        if let Err(why) = witness {
            return Some(PoolRefusal::WitnessNotWritten { why: Box::new(why.into()) }.into());
        }
        let (array, leg, error) = failed.first()?;
        let drive = self.context().pool(id)?.drive_path(*array, *leg).to_string();
        Some(PoolRefusal::PoolDriveNotWritten { drive, fault: (*error).into() }.into())
    }
    /// A pool that could not be made leaves nothing behind: its drives are free as they were.
    async fn undo(&self, id: PoolId) {
        // Cut off from here on, no drive says any more that it was whole.
        let slot = self.context().pool(id).map(|p| p.config().slot(GENERATION_FIRST + 1).unfinished());
        if let Some(slot) = slot {
            self.put_config(id, &slot).await;
        }
        let gone = {
            let mut context = self.context_mut();
            let at = context.pools.iter().position(|p| p.id == id);
            at.map(|at| context.pools.remove(at))
        };
        let Some(gone) = gone else { return };
        let open: Vec<OpenDrive> =
            gone.arrays.iter().flat_map(|a| &a.legs).filter_map(|l| l.open.clone()).collect();
        let left = self.unlabel_all(&open).await;
        self.remove_witness(gone.config().uuid).await;
        // No shard knows its drives any more before they are closed.
        self.publish().await;
        if self.write_pools().await.is_ok() {
            self.leave_creating(gone.config().uuid, left).await;
        }
    }

    /// Opens the drives of new arrays and checks everything that can be checked. On refusal they are let go of.
    async fn plan_arrays(&self, specs: &[ArraySpec], chunk: u32, there: usize) -> Result<Vec<Plan>, Refusal> {
        if specs.is_empty() {
            return Err(PoolRefusal::PoolWithoutArrays.into());
        }
        let drives: usize = specs.iter().map(|s| s.drives.len()).sum();
        if specs.len() > pool::ARRAYS_MAX || drives + there > DRIVES_MAX {
            return Err(too_many_arrays().into());
        }
        let mut seen = BTreeSet::new();
        for spec in specs {
            let n = spec.drives.len();
            if spec.is_mirror() && !(2..=array::LEGS_MAX).contains(&n) {
                let legs_max = array::LEGS_MAX as u64;
                return Err(PoolRefusal::MirrorSizeInvalid { legs: n as u64, legs_max }.into());
            }
            if !spec.is_mirror() && n != 1 {
                return Err(PoolRefusal::SingleSizeInvalid { legs: n as u64 }.into());
            }
            if let Some(weight) = spec.weight.filter(|w| !(1..=WEIGHT_MAX).contains(w)) {
                return Err(PoolRefusal::ArrayWeightInvalid { weight, weight_max: WEIGHT_MAX }.into());
            }
            for d in &spec.drives {
                if let Some(pool) = self.context().holds(d) {
                    return Err(
                        Refusal::from(LegRefusal::DriveInPool { drive: d.clone(), pool }).about("drives")
                    );
                }
                let bare = shaped::bare(d);
                if DriveKind::of(bare).has_name() && !seen.insert(bare.to_string()) {
                    return Err(PoolRefusal::DriveNamedTwice { drive: d.clone() }.into());
                }
            }
        }
        let all: Vec<&String> = specs.iter().flat_map(|s| &s.drives).collect();
        let patient = self.patient();
        let probes: Vec<Boxed<'_, _>> =
            all.into_iter().map(|s| -> Boxed<'_, _> { Box::pin(patient.probe(s)) }).collect();
        let results = join::all(probes).await;
        let (mut good, mut unopened) = (vec![], vec![]);
        for r in results {
            match r {
                Ok(p) => good.push(p),
                Err(e) => unopened.push(e),
            }
        }
        let refusal = if unopened.is_empty() {
            let refused = match self.check_drives_apart(&good) {
                Ok(()) => self.check_listed(&good, None).await.err(),
                Err(r) => Some(r),
            };
            refused.or_else(|| check_probes(&good, true, self.is_in_system()))
        } else {
            Some(Refusal::from(LegRefusal::DrivesNotOpened { drives: unopened }).about("drives"))
        };
        if let Some(r) = refusal {
            good.iter().for_each(|p| self.let_go(p.id));
            return Err(r);
        }
        let mut probes = good.into_iter();
        let (mut plans, mut too_small) = (vec![], vec![]);
        for spec in specs {
            let legs: Vec<Probe> = probes.by_ref().take(spec.drives.len()).collect();
            let smallest = legs.iter().map(|p| tail_at(p.info.bytes)).min().expect("an array has drives");
            // Once for the size of a bitmap, and again with room for the second head's in front.
            let first = Geometry::plan(spec.is_mirror(), BITMAP_AT, smallest, u64::from(chunk));
            let reserve = first.map_or(0, |g| g.bitmap_bytes());
            match Geometry::plan(spec.is_mirror(), BITMAP_AT + reserve, smallest, u64::from(chunk)) {
                Some(geometry) => {
                    let used = !legs.iter().all(|p| p.info.reads_zeroes);
                    let weight = spec.weight.unwrap_or(1);
                    plans.push(Plan {
                        mirror: spec.is_mirror(),
                        geometry,
                        reserved_at: BITMAP_AT,
                        weight,
                        legs,
                        used,
                    });
                }
                None => too_small.extend(legs),
            }
        }
        if let Some(p) = too_small.first() {
            let r = PoolRefusal::DriveTooSmallForChunk {
                drive: p.info.path.clone(),
                bytes: p.info.bytes,
                chunk_bytes: u64::from(chunk),
            };
            plans.iter().flat_map(|p| &p.legs).chain(&too_small).for_each(|p| self.let_go(p.id));
            return Err(r.into());
        }
        Ok(plans)
    }
    /// New arrays, if nothing speaks against them or `force` overrides it. On refusal their drives are let go of.
    fn meant(&self, plans: Vec<Plan>, less: Option<Refusal>, force: bool) -> Result<Vec<Plan>, Refusal> {
        if !force && let Err(r) = check_meant(plans.iter().map(|p| &p.legs[..]), less) {
            plans.iter().flat_map(|p| &p.legs).for_each(|p| self.let_go(p.id));
            return Err(r);
        }
        Ok(plans)
    }

    /// Refuses drives of which one is another by another name, or lies in it, among these and those in use: a mirror of
    /// one drive with itself loses both legs at once. Nobody can mean that.
    pub(crate) fn check_drives_apart(&self, probes: &[Probe]) -> Result<(), Refusal> {
        for (i, p) in probes.iter().enumerate() {
            if let Some(q) = probes[..i].iter().find(|q| q.info.overlaps(&p.info)) {
                return Err(PoolRefusal::DrivesAreOne { how: one_drive(q, p) }.into());
            }
            if let Some((path, pool)) = self.context().overlapping(&p.info) {
                let (drive, pool, other) = (path.into(), pool.into(), p.info.path.clone());
                return Err(PoolRefusal::DriveOverlapsPool { drive, other, pool }.into());
            }
        }
        Ok(())
    }
    /// The configuration's rows of new arrays; the drives get their names.
    fn rows_of(&self, plans: &[Plan]) -> Vec<ArrayRow> {
        let mut context = self.context_mut();
        plans
            .iter()
            .map(|p| ArrayRow {
                mirror: p.mirror,
                weight: p.weight,
                data_bytes: p.geometry.data_bytes,
                region_bytes: p.geometry.region_bytes,
                legs: p
                    .legs
                    .iter()
                    .map(|l| LegRow { drive: context.new_uuid(), path: l.info.path.clone() })
                    .collect(),
            })
            .collect()
    }

    /// Labels the drives of new arrays, all at once. `first` is the index of the first of them in the pool. With a refusal
    /// come the paths of drives that still have their label.
    async fn label_all(
        &self,
        plans: &[Plan],
        first: usize,
        config: &PoolConfig,
        slot: &ConfigSlot,
        record: &MembershipRecord,
    ) -> Result<Vec<ArrayContext>, (Refusal, Vec<String>)> {
        if slot.encode().is_none() {
            let why = PoolRefusal::PoolConfigTooLarge { pool: config.name.clone() };
            return Err((Refusal::from(why).about("arrays"), vec![]));
        }
        let created = self.context().unix(self.cx.now());
        let life = config.extras.uncleared.as_ref().map_or(0, |u| u.life);
        let mut arrays = vec![];
        let mut writes: Vec<Boxed<'_, Result<(), FailedDrive>>> = vec![];
        for (i, plan) in plans.iter().enumerate() {
            let index = first + i;
            let map = Arc::new(if plan.used {
                UnclearedMap::all(&plan.geometry, life)
            } else {
                UnclearedMap::none()
            });
            let mut legs = vec![];
            for (l, probe) in plan.legs.iter().enumerate() {
                let label = Label {
                    pool: config.uuid,
                    drive: config.arrays[index].legs[l].drive,
                    array: index as u32,
                    leg: l as u32,
                    legs: plan.legs.len() as u32,
                    block_bytes: probe.info.block_bytes,
                    bitmap_bytes: plan.geometry.bitmap_bytes() as u32,
                    bitmap_at: [plan.geometry.bitmap_at, plan.reserved_at],
                    data_at: plan.geometry.data_at,
                    data_bytes: plan.geometry.data_bytes,
                    region_bytes: plan.geometry.region_bytes,
                    created,
                    pool_name: config.name.clone(),
                    ..Label::usual(probe.info.bytes)
                };
                let (uuid, array) = (label.drive, array_uuid(config.uuid, index));
                let open = OpenDrive { id: probe.id, info: probe.info.clone(), label: label.clone() };
                let map = map.clone();
                writes.push(Box::pin(async move {
                    let clean = Bitmap::new(plan.geometry.regions());
                    let maps = Maps { geometry: &plan.geometry, array, dirty: &clean, uncleared: &map };
                    let written = self.label_drive(probe.id, &label, maps, record, slot).await;
                    written.map_err(|e| FailedDrive::of(&probe.info, e))
                }));
                legs.push(LegContext::new(uuid, l, probe.info.path.clone(), Some(open), record.counter));
            }
            let id = self.context_mut().new_array();
            arrays.push(ArrayContext {
                id,
                geometry: plan.geometry,
                lanes: self.context().lanes_of(id),
                map: 1,
                far_map: None,
                dirty: Arc::new(Bitmap::new(plan.geometry.regions())),
                unclean: false,
                uncleared: map,
                marks: 0,
                marked: BTreeSet::new(),
                cleared: BTreeSet::new(),
                compared_since: None,
                clean: BTreeSet::new(),
                all_dirty_number: 0,
                all_dirty: BTreeSet::new(),
                legs,
                healed: 0,
                medium_lost: 0,
            });
        }
        let drives: Vec<FailedDrive> = join::all(writes).await.into_iter().filter_map(Result::err).collect();
        if drives.is_empty() {
            return Ok(arrays);
        }
        let open: Vec<OpenDrive> =
            arrays.iter().flat_map(|a| &a.legs).filter_map(|l| l.open.clone()).collect();
        let left = self.unlabel_all(&open).await;
        Err((PoolRefusal::DrivesNotLabelled { drives }.into(), left))
    }

    /// Finds weights where none are given: how fast an array's drives read what was just written there (reads of
    /// unwritten flash never reach the medium). The same pattern goes to every leg, so they stay the same.
    async fn measure(&self, specs: &[ArraySpec], plans: &mut [Plan]) -> Result<(), Refusal> {
        let mut rates = vec![];
        for plan in &*plans {
            let mut rate = 0;
            for leg in &plan.legs {
                rate += self.read_rate(leg.id, plan.geometry.data_at).await.map_err(|e| {
                    let drive = leg.info.path.clone();
                    PoolRefusal::MeasureFailed { drive, fault: DriveFault::of(&leg.info, e) }
                })?;
            }
            rates.push(rate.max(1));
        }
        let slowest = *rates.iter().min().expect("a pool has arrays");
        for ((plan, spec), rate) in plans.iter_mut().zip(specs).zip(&rates) {
            // Quarters of the slowest: fine enough for any mixed set, and the pattern stays short.
            let weight = (rate * 4 + slowest / 2) / slowest;
            plan.weight = spec.weight.unwrap_or((weight as u32).clamp(1, WEIGHT_MAX));
        }
        // 4:8:8:8 is 1:2:2:2 with a pattern four times as long, and harder to read.
        let common = plans.iter().fold(0, |d, p| greatest_divisor(d, p.weight));
        plans.iter_mut().for_each(|p| p.weight /= common);
        Ok(())
    }
    /// Bytes a second.
    async fn read_rate(&self, id: DriveId, at: u64) -> Result<u64, base::DriveError> {
        let places: Vec<u64> = (0..MEASURE_PIECES).map(|i| at + i * MEASURE_PIECE as u64).collect();
        self.fill(id, &places, 0xa5).await?;
        let start = self.cx.now();
        for batch in places.chunks(8) {
            let reads: Vec<Boxed<'_, _>> = batch
                .iter()
                .map(|p| -> Boxed<'_, _> { Box::pin(self.cx.read(id, *p, MEASURE_PIECE)) })
                .collect();
            join::all(reads).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        let nanos = self.cx.now().since(start).as_nanos().max(1) as u64;
        // No volume may show it, and a drive that read zeroes does so again.
        self.fill(id, &places, 0).await?;
        Ok((MEASURE_PIECES * MEASURE_PIECE as u64 * 1000).saturating_mul(1_000_000) / nanos)
    }

    /// Writes one byte all over these places, `MEASURE_PIECE` bytes each.
    async fn fill(&self, id: DriveId, places: &[u64], byte: u8) -> Result<(), base::DriveError> {
        let pattern = vec![byte; MEASURE_PIECE];
        for batch in places.chunks(8) {
            let writes: Vec<Boxed<'_, _>> =
                batch.iter().map(|p| -> Boxed<'_, _> { Box::pin(self.cx.write(id, *p, &pattern)) }).collect();
            join::all(writes).await.into_iter().collect::<Result<Vec<()>, _>>()?;
        }
        Ok(())
    }

    /// Order: add.
    pub(crate) async fn pool_add(&self, pool: &str, specs: Vec<ArraySpec>, force: bool) -> Answered {
        self.check_read(POOLS)?;
        self.check_read(CREATING)?;
        let (id, uuid, chunk, there, old_rows, map, drive_block, less) = {
            let context = self.context();
            let p = context.pool_named(pool)?;
            let there = p.arrays.iter().map(|a| a.legs.len()).sum();
            (
                p.id,
                p.config().uuid,
                p.config().map.chunk_bytes() as u32,
                there,
                p.config().arrays.len(),
                p.config().map.clone(),
                p.config().drive_block_bytes,
                less_redundant(p, &specs),
            )
        };
        let files = self.files_to_make(&specs).await;
        if !files.is_empty() {
            let listed = self.list_addition(uuid, pool, files.clone()).await;
            listed?;
        }
        let planned = self.plan_arrays(&specs, chunk, there).await;
        let plans = match planned.and_then(|plans| self.meant(plans, less, force)) {
            Ok(plans) => plans,
            Err(r) => {
                self.done_with(uuid, &files).await;
                return Err(r);
            }
        };
        let ready = async {
            let room = self.room_for(plans.iter().map(|p| &p.geometry)).await?;
            let drives = plans.iter().flat_map(|p| &p.legs);
            let block = drives.clone().map(|l| l.info.block_bytes).max().unwrap_or(512).max(drive_block);
            let least =
                self.context().pool(id).and_then(|p| p.config().volumes.iter().map(|v| v.block_bytes).min());
            if let Some(l) = drives.clone().find(|l| least.is_some_and(|least| least < l.info.block_bytes)) {
                let why = LegRefusal::DriveBlocksTooLarge { drive: l.info.path.clone() };
                return Err(Refusal::from(why).about("drives"));
            }
            let map = map.append(&spaces(&plans)).map_err(pool_refusal)?;
            Ok((map, room, block))
        };
        let made = match ready.await {
            Ok((map, room, block)) => {
                let rows = self.rows_of(&plans);
                // Nobody else changes the pool meanwhile: orders come one by one, and the keeper waits.
                let _hold = self.hold_keeper(id).await;
                self.append_arrays(id, old_rows, &plans, (map, room), rows, block).await
            }
            Err(r) => {
                self.done_with(uuid, &files).await;
                Err(r)
            }
        };
        if made.is_err() {
            plans.iter().flat_map(|p| &p.legs).for_each(|p| self.let_go(p.id));
        }
        made?;
        self.publish().await;
        self.write_pools().await?;
        // Until the list names them, the next start finds them by this.
        let drives = plans.iter().flat_map(|p| &p.legs).map(listed);
        self.done_with(uuid, &drives.chain(files).collect::<Vec<_>>()).await;
        let now = self.cx.now();
        let mut context = self.context_mut();
        context.forget_undone(pool);
        context.happened(now, format!("pool {pool}"), PoolEvent::ArraysAdded);
        Ok(Reply::Done)
    }
    async fn append_arrays(
        &self,
        id: crate::layout::PoolId,
        first: usize,
        plans: &[Plan],
        (map, room): (StripeMap, Promised),
        rows: Vec<ArrayRow>,
        block: u32,
    ) -> Result<(), Refusal> {
        let (uuid, had_block, mut record) = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            let p = context.pool(id).ok_or(PoolRefusal::PoolGone)?;
            (p.config().uuid, p.config().drive_block_bytes, p.record().next(me, incarnation))
        };
        record.arrays.extend(record_rows(&rows, record.counter));
        let drives: Vec<String> = plans.iter().flat_map(|p| &p.legs).map(listed).collect();
        let mut edits = vec![Edit::ArraysAdded { rows, map: Arc::new(map) }];
        if plans.iter().any(|p| p.used) {
            edits.push(Edit::MapsBegun {});
        }
        if block != had_block {
            edits.push(Edit::DriveBlock { bytes: block });
        }
        let planned = match self.plan(id, edits).await {
            Ok(planned) => planned,
            Err(r) => {
                self.done_with(uuid, &drives).await;
                return Err(r.about("arrays"));
            }
        };
        let (config, slot) = (planned.next().config().clone(), planned.slot());
        let generation = slot.generation - 1;
        self.list_addition(uuid, &config.name, drives.clone()).await?;
        // The record first: it may hold more arrays than the configuration, never fewer (see `judge`).
        let (failed, witness) = self.write_record(id, &record, &[]).await;
        let trouble = self.not_on_record(id, witness, &failed);
        if let Some(p) = self.context_mut().pool_mut(id) {
            // Written in part or not, this is the record that the next one follows.
            let mut kept = record.clone();
            kept.arrays.truncate(first);
            p.propose(kept);
        }
        if let Some(r) = trouble {
            self.done_with(uuid, &drives).await;
            return Err(r);
        }
        // Earlier than the configuration that is there: whoever finds both goes by that one. What follows takes this slot.
        let unfinished = config.slot(generation.saturating_sub(1).max(1)).unfinished();
        let arrays = match self.label_all(plans, first, &config, &unfinished, &record).await {
            Ok(arrays) => arrays,
            Err((r, left)) => {
                self.free_again(uuid, &drives, &left).await;
                return Err(r);
            }
        };
        // The drives that were there before say first that the new ones belong to the pool.
        let all = self.context().pool(id).map_or(0, |p| p.reachable().len());
        let failed = self.put_config(id, &slot).await;
        if failed.len() >= all {
            let open: Vec<OpenDrive> =
                arrays.iter().flat_map(|a| &a.legs).filter_map(|l| l.open.clone()).collect();
            let left = self.unlabel_all(&open).await;
            self.free_again(uuid, &drives, &left).await;
            return Err(PoolRefusal::NoDriveWritten { pool: config.name.clone() }.into());
        }
        // Those of the drives that fail to take it are put out by the next one.
        let _ = self.keep_config(id, &slot).await;
        {
            let mut context = self.context_mut();
            let p = context.pool_mut(id).expect("orders come one by one");
            p.arrays.extend(arrays);
            p.propose(record.clone());
            context.decide(id, &record);
        }
        self.decided(planned);
        drop(room);
        self.put_config(id, &slot).await;
        // The new drives' other slot says that they are being added: older programs do not read a drive that has such a slot.
        self.configure_again(id).await
    }
    /// Drives that were to be added are free, but for those that kept their label.
    async fn free_again(&self, pool: Uuid, drives: &[String], left: &[String]) {
        let freed: Vec<String> =
            drives.iter().filter(|d| !left.iter().any(|l| d.ends_with(l.as_str()))).cloned().collect();
        self.done_with(pool, &freed).await;
    }

    /// Order: destroy.
    pub(crate) async fn pool_destroy(&self, pool: &str, force: bool, disconnect: bool) -> Answered {
        self.check_read(POOLS)?;
        let (id, uuid, volumes, row) = {
            let context = self.context();
            let p = context.pool_named(pool)?;
            (p.id, p.config().uuid, p.config().volumes.iter().len(), p.row())
        };
        if volumes > 0 && !force {
            return Err(PoolRefusal::PoolHasVolumes { pool: pool.into(), volumes: volumes as u64 }.into());
        }
        if !disconnect {
            self.ask_other_hosts().await;
            let pool = pool.to_string();
            let hosts = self.context().users_of_volumes(uuid, None, None);
            refuse_in_use(hosts, |hosts| PoolRefusal::PoolDestroyInUse { pool, force, hosts })?;
        }
        self.list_released(row).await?;
        let mut unlisted = self.rest(id).await;
        if unlisted.is_ok() {
            unlisted = self.write_pools().await;
            match unlisted {
                Ok(()) => self.left(id),
                Err(_) => self.go_on(id).await,
            }
        }
        if let Err(r) = unlisted {
            self.forget_released(uuid).await;
            return Err(r);
        }
        // Without it no start takes the pool for one that was lost, whichever drives still have their labels.
        self.remove_kept(uuid).await;
        let open: Vec<OpenDrive> = {
            let context = self.context();
            let p = context.pool(id).expect("orders come one by one");
            let spares = p.spares.iter().filter_map(|s| s.open.clone());
            p.arrays.iter().flat_map(|a| &a.legs).filter_map(|l| l.open.clone()).chain(spares).collect()
        };
        let mut failed = vec![];
        for o in &open {
            if let Err(e) = self.unlabel_drive(o.id, &o.label).await {
                failed.push(FailedDrive::of(&o.info, e));
            }
        }
        self.forget(&[id], crate::steward::patience::QUIET_PATIENCE).await;
        self.remove_witness(uuid).await;
        self.leave_creating(uuid, vec![]).await;
        self.forget_released(uuid).await;
        let now = self.cx.now();
        self.context_mut().happened(now, format!("pool {pool}"), PoolEvent::PoolDestroyed);
        if failed.is_empty() {
            Ok(Reply::Done)
        } else {
            Err(PoolRefusal::DrivesKeepLabels { drives: failed }.into())
        }
    }
}

/// How much is written and read to measure: 32 MiB of each drive.
const MEASURE_PIECE: usize = 256 << 10;
const MEASURE_PIECES: u64 = 128;

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// What a configuration says if the drives of some array were somebody's before: a map whose life begins with it.
fn uncleared_of(plans: &[Plan], generation: u64) -> Option<Returned> {
    plans.iter().any(|p| p.used).then(|| Returned { life: generation, ..Returned::default() })
}

fn spaces(plans: &[Plan]) -> Vec<ArraySpace> {
    plans.iter().map(|p| ArraySpace { bytes: p.geometry.data_bytes, weight: p.weight }).collect()
}

fn pool_refusal(e: PoolError) -> Refusal {
    match e {
        PoolError::Chunk(chunk_bytes) => PoolRefusal::ChunkInvalid { chunk_bytes },
        PoolError::Weight { weight, .. } => {
            PoolRefusal::ArrayWeightInvalid { weight, weight_max: WEIGHT_MAX }
        }
        PoolError::Arrays(0) => PoolRefusal::PoolWithoutArrays,
        PoolError::Arrays(_) => too_many_arrays(),
        PoolError::TooSmall { array } => PoolRefusal::ArrayTooSmall { index: array as u64 },
    }
    .into()
}

fn too_many_arrays() -> PoolRefusal {
    PoolRefusal::TooManyArrays { arrays_max: pool::ARRAYS_MAX as u64, drives_max: DRIVES_MAX as u64 }
}

/// Rows of a membership record in which everybody is in sync.
fn record_rows(rows: &[ArrayRow], epoch: u64) -> Vec<RecordArray> {
    let leg = |l: &LegRow| MemberLeg::new(l.drive, LegState::InSync);
    rows.iter().map(|r| RecordArray { epoch, rivals: 0, legs: r.legs.iter().map(leg).collect() }).collect()
}
