//! What is read from and written to drives about drives. Only the Steward writes there.

use crate::layout::PoolId;
use crate::order::Refusal;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::context::witness::{Witness, puts_out};
use crate::steward::health::shaped;
use crate::steward::health::signature::{FAR, FAR_BYTES, LOOK_BYTES, Look};
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::MADE;
use crate::steward::runtime::Patience;
use crate::steward::state::Change;
use crate::steward::state::config::geometry_of;
use array::format::{
    ConfigSlot, Fault, LABEL_AT, Label, LegState, MembershipRecord, RECORD_BYTES, config_bytes,
    label_copy_at, newest_config, newest_label, newest_membership,
};
use array::{Bitmap, Geometry, UnclearedMap};
use base::machine::Shape;
use base::{Bug, DriveError, DriveId, DriveInfo, Duration, Uuid, planted};
use finding::{Cause, OpenFault, Signature, UnopenedDrive};

/// What a drive holds of its pool, the newest of each that can be read.
pub(crate) struct Records {
    pub record: Result<MembershipRecord, Fault>,
    pub config: Result<ConfigSlot, Fault>,
    /// Generation of the older one.
    pub older: Option<u64>,
}

/// How one write of a record went: nothing to say, a leg that failed, or what is wrong with the witness.
type Written = Result<Option<(usize, usize, DriveError)>, Cause>;

/// What a leg's maps say when it is labelled.
#[derive(Clone, Copy)]
pub(crate) struct Maps<'a> {
    pub geometry: &'a Geometry,
    pub array: Uuid,
    /// Regions that may differ between legs, of a mirror.
    pub dirty: &'a Bitmap,
    pub uncleared: &'a UnclearedMap,
}

/// What became of a configuration that was written.
pub(crate) struct WrittenConfig {
    /// Legs that failed to take it.
    pub failed: Vec<(usize, usize, DriveError)>,
    /// Whether a start that believes what it finds finds it.
    pub found: ConfigFound,
}

/// Whether a start that believes what it finds finds a configuration.
pub(crate) enum ConfigFound {
    /// None does: no leg took it.
    Never,
    /// It may find a leg alone that lacks it, before the loss of that one is on record: some leg in sync of each array lacks it, and so does
    /// the state directory, for this reason.
    Perhaps(Refusal),
    /// Each does.
    Always,
}

impl PoolContext {
    /// Of each leg in sync of an array: whether it is reached, and is none of those that failed.
    fn in_sync_but(&self, array: usize, failed: &[(usize, usize, DriveError)]) -> impl Iterator<Item = bool> {
        let reachable = self.reachable();
        let legs = 0..self.arrays[array].legs.len();
        legs.filter(move |l| self.leg_state(array, *l) == LegState::InSync).map(move |l| {
            reachable.iter().any(|(x, m, _)| (*x, *m) == (array, l))
                && !failed.iter().any(|(x, m, _)| (*x, *m) == (array, l))
        })
    }
    /// Whether some leg in sync of this array is none of those that failed.
    pub fn is_whole_without(&self, array: usize, failed: &[(usize, usize, DriveError)]) -> bool {
        self.in_sync_but(array, failed).any(|took| took)
    }
    /// Whether all legs in sync of some array are none of those that failed.
    fn has_array_without(&self, failed: &[(usize, usize, DriveError)]) -> bool {
        (0..self.arrays.len()).any(|a| self.in_sync_but(a, failed).all(|took| took))
    }
}

/// The beginning and the end of a drive, where others leave their signatures.
fn look_places(info: &DriveInfo) -> [(u64, usize); 2] {
    let len = (LOOK_BYTES as u64).min(info.bytes / 4096 * 4096);
    let block = u64::from(info.block_bytes.max(512));
    [(0, len as usize), ((info.bytes - len) / block * block, len as usize)]
}

impl Procedures {
    /// The same procedures for work on drives that serve nobody yet.
    pub(crate) fn patient(&self) -> Self {
        self.with(self.cx.with(Patience::ORDER))
    }
    /// Claims, opens, shapes and looks at a drive, within `Patience::look`.
    pub(crate) async fn probe(&self, spec: &str) -> Result<Probe, UnopenedDrive> {
        if let Some(path) = shaped::bare(spec).strip_prefix(MADE) {
            // Of the journal alone: by that name it goes with the drive if it holds nothing.
            let fault = OpenFault::PrefixInternal { prefix: MADE.into(), path: path.into() };
            return Err(UnopenedDrive { drive: spec.into(), fault });
        }
        self.probe_listed(spec).await
    }
    /// The same of a drive as the file `creating` has it.
    pub(crate) async fn probe_listed(&self, spec: &str) -> Result<Probe, UnopenedDrive> {
        let misshaped = |fault| UnopenedDrive { drive: spec.into(), fault: OpenFault::Shape { fault } };
        let (shape, bare) = shaped::split(spec).map_err(misshaped)?;
        let shape = shape.or_else(|| self.context().shapes_at_start.get(bare).cloned());
        let end = self.cx.now() + self.cx.patience().look;
        let mut id = self.context_mut().new_drive();
        let kept = self.in_system(|s| s.take_standby(bare)).flatten();
        let opened = match kept {
            // What was open for a takeover is taken over as it is.
            Some(OpenDrive { id: open, info, .. }) => {
                self.context_mut().free_drive(id);
                id = open;
                Ok(info)
            }
            None => self.cx.open(id, bare).await,
        };
        let info = match opened {
            Ok(info) => info,
            Err(e) => {
                let mut context = self.context_mut();
                if !self.cx.is_opening(id) {
                    context.free_drive(id);
                }
                if e.why.is_missing() {
                    // What lay there once is not what ails the drive that is missing there now.
                    context.found.remove(bare);
                }
                return Err(e.into());
            }
        };
        if let Some(shape) = &shape {
            self.shape(id, shape.clone());
        }
        let path = info.path.clone();
        let looked = self.cx.until_end(end, self.look_as_member(spec, id, info)).await;
        match looked.unwrap_or(Err((path, DriveError::TimedOut))) {
            Ok(probe) => Ok(probe),
            Err((path, error)) => {
                if shape.is_some() {
                    // Nobody could name it any more to have it answer what it was asked.
                    self.shape(id, Shape::default());
                }
                self.let_go(id);
                self.context_mut().note_mute(path.clone(), error.into());
                Err(UnopenedDrive { drive: path, fault: OpenFault::Unreadable { fault: error.into() } })
            }
        }
    }
    /// Looks once more at a drive that was looked at. An error names it.
    pub(crate) async fn look_again(&self, probe: Probe) -> Result<Probe, (String, DriveError)> {
        let Probe { spec, id, info, .. } = probe;
        self.look_at(&spec, id, info).await.inspect_err(|_| self.let_go(id))
    }
    /// Looks at a drive that is open. An error names it.
    pub(crate) async fn look_at(
        &self,
        spec: &str,
        id: DriveId,
        info: DriveInfo,
    ) -> Result<Probe, (String, DriveError)> {
        let fail = |e| (info.path.clone(), e);
        let mut places = look_places(&info).to_vec();
        if info.bytes >= array::format::DRIVE_BYTES_MIN {
            places.push((label_copy_at(info.bytes), RECORD_BYTES));
        }
        let mut read = self.read_all(id, &places).await.into_iter();
        let mut next = || read.next().unwrap_or(Ok(vec![])).map_err(fail);
        let (head, tail, second) = (next()?, next()?, next()?);
        let first = head.get(LABEL_AT as usize..LABEL_AT as usize + RECORD_BYTES).unwrap_or(&[]);
        let label = newest_label(first, &second);
        let (mut record, mut config, mut whole) = (Err(Fault::Absent), Err(Fault::Absent), false);
        if let Some(l) = label.as_ref().ok().filter(|l| l.drive_bytes <= info.bytes) {
            let copy = self.cx.read(id, label_copy_at(l.drive_bytes), RECORD_BYTES);
            let (copy, read) = join::both(copy, self.read_records(id, l)).await;
            let read = read.map_err(fail)?;
            (record, config) = (read.record, read.config);
            let copy = &copy.map_err(fail)?;
            whole = Label::decode(first).is_ok_and(|a| Label::decode(copy).is_ok_and(|b| a == b));
        }
        let front_written = label.is_ok() && head[..LABEL_AT as usize].iter().any(|b| *b != 0);
        let foreign = match label {
            // Our own records may look like somebody's by chance; what is in front of them may not.
            Ok(_) if whole => {
                Look { bytes: info.bytes, pieces: vec![(0, head[..LABEL_AT as usize].to_vec())] }
            }
            Ok(_) | Err(_) => self.look_around(id, &info, (head.clone(), tail)).await.map_err(fail)?,
        };
        let foreign = foreign.foreign();
        let failed = self.context().failed_here(label.as_ref().ok(), &info);
        Ok(Probe {
            failed,
            spec: spec.into(),
            id,
            info,
            label,
            foreign,
            front_written,
            whole,
            record,
            config,
        })
    }
    /// What tells what others have left on a drive, with its beginning and its end.
    async fn look_around(
        &self,
        id: DriveId,
        info: &DriveInfo,
        (head, tail): (Vec<u8>, Vec<u8>),
    ) -> Result<Look, DriveError> {
        let (bytes, end) = (info.bytes + info.end.len() as u64, info.end.clone());
        let mut pieces = vec![(0, head), (look_places(info)[1].0, tail), (info.bytes, end)];
        let far = FAR.into_iter().filter(|at| at + FAR_BYTES as u64 <= info.bytes);
        let far: Vec<(u64, usize)> = far.map(|at| (at, FAR_BYTES)).collect();
        for (read, (at, _)) in self.read_all(id, &far).await.into_iter().zip(&far) {
            pieces.push((*at, read?));
        }
        Ok(Look { bytes, pieces })
    }

    /// What others have left on a drive of ours, whatever is left of our own.
    pub(crate) async fn signature_in_use(
        &self,
        id: DriveId,
        info: &DriveInfo,
    ) -> Result<Option<Signature>, DriveError> {
        let mut read = self.read_all(id, &look_places(info)).await.into_iter();
        let mut next = || read.next().expect("as many as were asked for");
        let (head, tail) = (next()?, next()?);
        Ok(self.look_around(id, info, (head, tail)).await?.foreign())
    }

    /// The records of a drive with this label.
    pub(crate) async fn read_records(&self, id: DriveId, label: &Label) -> Result<Records, DriveError> {
        let places = label.membership_at.map(|at| (at, RECORD_BYTES));
        let slots = label.config_at.map(|at| -> Boxed<'_, _> { Box::pin(self.read_config_slot(id, at)) });
        let (read, slots) = join::both(self.read_all(id, &places), join::all(slots.into())).await;
        // A place that can never be read again leaves the older one of the two. One that was not read now may hold the newer one.
        let there = |read: &Result<Vec<u8>, DriveError>| match read {
            Ok(bytes) => Ok(bytes.clone()),
            Err(DriveError::Medium) => Ok(vec![]),
            Err(e) => Err(*e),
        };
        let slots = [&there(&slots[0])?, &there(&slots[1])?];
        let generations =
            slots.iter().filter_map(|bytes| ConfigSlot::decode(bytes).ok()).map(|c| c.generation);
        Ok(Records {
            record: newest_membership([&there(&read[0])?, &there(&read[1])?]),
            config: newest_config([slots[0], slots[1]]),
            older: generations.min(),
        })
    }

    /// Reads several places at once: a slow drive takes its time once, and not for each.
    pub(crate) async fn read_all(
        &self,
        id: DriveId,
        places: &[(u64, usize)],
    ) -> Vec<Result<Vec<u8>, DriveError>> {
        let one = |(at, len): &(u64, usize)| -> Boxed<'_, _> { Box::pin(self.cx.read(id, *at, *len)) };
        join::all(places.iter().map(one).collect()).await
    }
    /// What can be read of a slot: its first block, and the rest if that says how long it is.
    async fn read_config_slot(&self, id: DriveId, at: u64) -> Result<Vec<u8>, DriveError> {
        let first = self.cx.read(id, at, RECORD_BYTES).await?;
        match config_bytes(&first) {
            Some(n) if n > RECORD_BYTES as u64 => self.cx.read(id, at, n as usize).await,
            Some(_) | None => Ok(first),
        }
    }
    /// Changes how an open drive behaves, until it is let go of.
    pub(crate) fn shape(&self, id: DriveId, shape: Shape) {
        self.cx.shape(id, shape.clone());
        let mut context = self.context_mut();
        if shape == Shape::default() {
            context.shapes.remove(&id);
        } else {
            context.shapes.insert(id, shape);
        }
    }
    /// Lets go of a drive that nobody else uses.
    pub(crate) fn let_go(&self, id: DriveId) {
        {
            let mut context = self.context_mut();
            context.shapes.remove(&id);
            context.ills.remove(&id);
            if let Some(system) = context.system_mut() {
                system.is_closed(id, |id| self.cx.leaves(id));
            }
        }
        self.cx.close(id);
    }
    /// Lets go of a drive and waits until nothing of ours is left on it.
    pub(crate) async fn let_go_wholly(&self, id: DriveId, patience: Duration) -> bool {
        self.let_go(id);
        let cx = self.cx.clone();
        self.cx.until_within(patience, move || cx.closed(id)).await
    }

    /// Makes a drive ours: clears what would be mistaken, writes maps, membership and configuration, and the
    /// label last (docs/formats/drive.md).
    pub(crate) async fn label_drive(
        &self,
        id: DriveId,
        label: &Label,
        maps: Maps<'_>,
        record: &MembershipRecord,
        config: &ConfigSlot,
    ) -> Result<(), DriveError> {
        self.clear_drive(id, label).await?;
        let Maps { geometry, array, dirty, uncleared } = maps;
        if geometry.redundant() {
            let mut bytes = vec![0; geometry.bitmap_bytes() as usize];
            array::encode(geometry, array, dirty, &mut bytes);
            self.cx.write(id, geometry.bitmap_at, &bytes).await?;
        }
        if uncleared.life() != 0 {
            let at = array::format::tail_at(label.drive_bytes);
            self.cx.write(id, at, &uncleared.encode(geometry, array)).await?;
        }
        self.cx.write(id, label.membership_at[record.slot()], &record.encode()).await?;
        let bytes = config.encode().expect("the caller checked that it fits");
        self.cx.write(id, label.config_at[config.slot()], &bytes).await?;
        self.put_label(id, label).await
    }
    /// Makes a drive ours that holds nothing of a pool yet.
    pub(crate) async fn label_alone(&self, id: DriveId, label: &Label) -> Result<(), DriveError> {
        self.clear_drive(id, label).await?;
        self.put_label(id, label).await
    }
    /// The last step: from here on it is ours.
    pub(crate) async fn put_label(&self, id: DriveId, label: &Label) -> Result<(), DriveError> {
        self.cx.flush(id).await?;
        self.cx.write(id, label_copy_at(label.drive_bytes), &label.encode()).await?;
        self.cx.write(id, LABEL_AT, &label.encode()).await
    }
    /// Takes away what would be mistaken, by us or by others.
    async fn clear_drive(&self, id: DriveId, label: &Label) -> Result<(), DriveError> {
        self.fence_new(id).await?;
        let zeroes = vec![0u8; array::format::ALIGNMENT as usize];
        let (front, copy_at) = (label.config_at[0] as usize, label_copy_at(label.drive_bytes));
        // The old labels go first: a crash from here on leaves a drive that is nobody's.
        self.cx.write(id, LABEL_AT, &zeroes[..RECORD_BYTES]).await?;
        self.cx.write(id, copy_at, &zeroes[..RECORD_BYTES]).await?;
        self.cx.write(id, 0, &zeroes[..front.min(zeroes.len())]).await?;
        for at in label.config_at {
            self.cx.write(id, at, &zeroes[..RECORD_BYTES]).await?;
        }
        // btrfs and ZFS keep copies of their own further in; what matters is the end, where GPT and md look.
        let tail_at = array::format::tail_at(label.drive_bytes);
        self.cx.write(id, tail_at, &zeroes).await?;
        let block = u64::from(label.block_bytes);
        let rest = (label.drive_bytes - tail_at - zeroes.len() as u64) / block * block;
        if rest > 0 {
            self.cx.write(id, tail_at + zeroes.len() as u64, &zeroes[..rest as usize]).await?;
        }
        Ok(())
    }
    /// Takes our mark from a drive.
    pub(crate) async fn unlabel_drive(&self, id: DriveId, label: &Label) -> Result<(), DriveError> {
        let zeroes = [0u8; RECORD_BYTES];
        self.cx.write(id, LABEL_AT, &zeroes).await?;
        self.cx.write(id, label_copy_at(label.drive_bytes), &zeroes).await?;
        self.clear_records(id, label).await
    }

    /// Takes a pool's records from a drive that leaves it: what they say of the pool becomes older and older.
    pub(crate) async fn clear_records(&self, id: DriveId, label: &Label) -> Result<(), DriveError> {
        let zeroes = [0u8; RECORD_BYTES];
        for at in label.membership_at.into_iter().chain(label.config_at) {
            self.cx.write(id, at, &zeroes).await?;
        }
        Ok(())
    }

    /// The uncleared map of a leg. Blocks of it that are bad on the drive count as damaged.
    ///
    /// # Errors
    /// The drive does not answer, or not us. That says nothing of what lies there.
    pub(crate) async fn read_uncleared(&self, open: &OpenDrive) -> Result<Vec<u8>, DriveError> {
        let (at, bytes) = (array::format::tail_at(open.label.drive_bytes), array::UNCLEARED_AREA_BYTES);
        match self.cx.read(open.id, at, bytes as usize).await {
            // A head that stood still for a while finds that the drive took too long.
            Err(DriveError::TimedOut) => self.cx.read(open.id, at, bytes as usize).await,
            Err(DriveError::Medium) => self.read_good_blocks(open.id, at, bytes as usize).await,
            read => read,
        }
    }
    /// The same, block by block. One that cannot be read looks damaged: it has its magic, and no good checksum.
    async fn read_good_blocks(&self, id: DriveId, at: u64, bytes: usize) -> Result<Vec<u8>, DriveError> {
        let block = array::BITMAP_BLOCK_BYTES as usize;
        let mut out = Vec::with_capacity(bytes);
        while out.len() < bytes {
            let end = out.len() + block;
            match self.cx.read(id, at + out.len() as u64, block).await {
                Ok(read) => out.extend(read),
                Err(DriveError::Medium) => {
                    out.extend(array::UNCLEARED_MAGIC);
                    out.resize(end, 0xff);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(out)
    }
    /// The bitmap of a leg; None if it cannot be read.
    pub(crate) async fn read_bitmap(&self, open: &OpenDrive) -> Option<Vec<u8>> {
        let g = geometry_of(&open.label);
        self.cx.read(open.id, g.bitmap_at, g.bitmap_bytes() as usize).await.ok()
    }

    /// The writes that put a record on these drives.
    pub(crate) fn record_writes<'a>(
        &'a self,
        targets: impl Iterator<Item = (usize, usize, OpenDrive)>,
        record: &'a MembershipRecord,
        bytes: &'a [u8],
    ) -> Vec<Boxed<'a, Written>> {
        let one = |(a, l, open): (usize, usize, OpenDrive)| -> Boxed<'a, Written> {
            Box::pin(async move {
                let at = open.label.membership_at[record.slot()];
                Ok(self.cx.write(open.id, at, bytes).await.err().map(|e| (a, l, e)))
            })
        };
        targets.map(one).collect()
    }

    /// Puts a record on every reachable drive, but for those that `had` it, and in the witness. Returns the legs
    /// that failed to take it, and how the witness went.
    pub(crate) async fn write_record(
        &self,
        pool: PoolId,
        record: &MembershipRecord,
        had: &[(usize, usize)],
    ) -> (Vec<(usize, usize, DriveError)>, Result<(), Cause>) {
        let (targets, uuid) = {
            let mut context = self.context_mut();
            let Some(p) = context.pool(pool) else { return (vec![], Ok(())) };
            let found = (p.reachable(), p.config().uuid);
            context.journal.proposed(&Change::Member { record: record.clone() });
            found
        };
        let bytes = &record.encode();
        let targets = targets.into_iter().filter(|(a, l, _)| !had.contains(&(*a, *l)));
        let mut writes = self.record_writes(targets, record, bytes);
        let (mut failed, mut witness) = (vec![], Ok(()));
        // Of its record the settled copy says nothing new: whoever has not got it is as well off with the record.
        let is_copy = record.is_settled();
        if puts_out(record) && !is_copy {
            // The witness first: if it can neither be replaced nor removed, it would prove the leg that is lost, and what the
            // legs that are left had from then on would be a history apart from that one's.
            witness = self.write_witness(uuid, bytes).await;
            if planted(Bug::RecordedBeforeLegs) {
                let arrays =
                    self.context().pool(pool).map(|p| p.arrays.iter().map(|a| a.id).collect::<Vec<_>>());
                let epochs = record.arrays.iter().map(|a| a.epoch);
                self.recorded(&arrays.unwrap_or_default().into_iter().zip(epochs).collect::<Vec<_>>());
            }
            if witness.is_err() {
                let removable = self.context_mut().pool_mut(pool).is_some_and(|p| {
                    p.witness_is(p.witness.missed(false), p.known_on_legs);
                    p.known_on_legs
                });
                self.remove_stale_witness(pool, uuid, removable).await;
                if !self.context().pool(pool).is_none_or(|p| p.loss_is_provable(record, &[])) {
                    return (vec![], witness);
                }
            }
        } else {
            writes.push(Box::pin(async move { self.write_witness(uuid, bytes).await.map(|()| None) }));
        }
        for result in join::all(writes).await {
            match result {
                Ok(Some(failure)) => failed.push(failure),
                Ok(None) => {}
                Err(words) => witness = Err(words),
            }
        }
        let on_each = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool) else { return (failed, witness) };
            let on_all = failed.is_empty()
                && p.record().incarnation == record.incarnation
                // A last leg that is being opened anew has not got it.
                && p.all_in_sync_are_open();
            let on_each = p.is_on_each_array(record, &failed);
            match witness {
                Ok(()) => p.witness_is(Witness::Newest, on_each),
                Err(_) if is_copy => {}
                Err(_) => {
                    let missed = p.witness.missed(on_all && !puts_out(record));
                    p.witness_is(missed, p.known_on_legs || on_each);
                }
            }
            if on_all {
                context.settle(pool, record);
            }
            on_each
        };
        if witness.is_err() && !is_copy {
            // One that stayed behind would prove a leg that does not know of its loss. Where some array's legs have not
            // got the record, the older one may be all that knows of a loss: there it stays.
            self.remove_stale_witness(pool, uuid, on_each).await;
        }
        (failed, witness)
    }

    /// Every leg that takes part has the pool's record: each gets its settled copy, and so does the witness. Returns the legs
    /// that failed to take it.
    pub(crate) async fn write_settled_copy(&self, pool: PoolId) -> Vec<(usize, usize, DriveError)> {
        let record = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool).filter(|p| p.record().is_settled()) else { return vec![] };
            p.has_settled_copy();
            p.record().clone()
        };
        if planted(Bug::OlderCopyBelieved) {
            return vec![];
        }
        self.write_record(pool, &record, &[]).await.0
    }

    async fn remove_stale_witness(&self, pool: PoolId, uuid: Uuid, removable: bool) {
        let is_there = self.context().pool(pool).is_some_and(|p| p.witness != Witness::Gone);
        if is_there
            && removable
            && self.remove_witness(uuid).await
            && let Some(p) = self.context_mut().pool_mut(pool)
        {
            p.witness_is(Witness::Gone, p.known_on_legs);
        }
    }

    /// Puts the pool's configuration on every reachable drive, then in the state directory.
    pub(crate) async fn write_config(&self, pool: PoolId, slot: &ConfigSlot) -> WrittenConfig {
        let all = self.context().pool(pool).map_or(0, |p| p.reachable().len());
        let failed = self.put_config(pool, slot).await;
        if failed.len() >= all {
            return WrittenConfig { failed, found: ConfigFound::Never };
        }
        let kept = self.keep_config(pool, slot).await;
        let whole = self.context().pool(pool).is_some_and(|p| p.has_array_without(&failed));
        let found = match kept {
            Err(why) if !whole => ConfigFound::Perhaps(why),
            Ok(()) | Err(_) => ConfigFound::Always,
        };
        WrittenConfig { failed, found }
    }
    /// The same on the drives alone.
    pub(crate) async fn put_config(
        &self,
        pool: PoolId,
        slot: &ConfigSlot,
    ) -> Vec<(usize, usize, DriveError)> {
        self.put_config_below(pool, slot, usize::MAX).await
    }
    /// The same on the drives of the arrays before `end`.
    pub(crate) async fn put_config_below(
        &self,
        pool: PoolId,
        slot: &ConfigSlot,
        end: usize,
    ) -> Vec<(usize, usize, DriveError)> {
        let targets = self.context().pool(pool).map(|p| p.reachable()).unwrap_or_default();
        let bytes = slot.encode().expect("the caller checked that it fits");
        let bytes = &bytes;
        let writes: Vec<Boxed<'_, Option<(usize, usize, DriveError)>>> = targets
            .into_iter()
            .filter(|(a, ..)| *a < end)
            .map(|(a, l, open)| -> Boxed<'_, _> {
                Box::pin(async move {
                    let at = open.label.config_at[slot.slot()];
                    self.cx.write(open.id, at, bytes).await.err().map(|e| (a, l, e))
                })
            })
            .collect();
        join::all(writes).await.into_iter().flatten().collect()
    }
}
