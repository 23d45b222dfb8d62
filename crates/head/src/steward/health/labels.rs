//! The labels of drives in use, and what lies beside them: somebody may overwrite them behind the head's back.
//!
//! ```text
//! both copies are there ▶ intact
//! a copy is not, the records and configurations are   ▶ damaged: written again (`labels_mend`)
//! more is gone, so data may be, too                   ▶ lost
//!    ├─ another leg in sync     the leg is put out; `drive return` labels it anew, and everything is copied
//!    └─ none                    told, and nothing is written until the operator says so (`label_restore`)
//! somebody else has written his own there             ▶ foreign: the same, and never overwritten unasked
//! ```
//!
//! Who overwrites a drive from its beginning or its end reaches data only behind the records: as long as one of
//! both slots of each is there, data is.

use crate::layout::PoolId;
use crate::order::{Answered, Refusal, Reply};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::probe::Probe;
use crate::steward::health::drives::Records;
use crate::steward::join;
use crate::steward::legs::exchange::Untaken;
use crate::steward::procedures::Procedures;
use crate::steward::state::config::{PoolConfig, geometry_of};
use array::UnclearedMap;
use array::format::{
    ALIGNMENT, ConfigSlot, Fault, LABEL_AT, Label, LegState, MembershipRecord, RECORD_BYTES, is_current,
    label_copy_at, tail_at,
};
use base::{Bug, DriveError, Uuid, planted};
use finding::{DriveArea, DriveFault, DriveOwner, LegCause, LegEvent, LegRefusal};

/// Bytes of data before the drive's end that are compared with another leg's.
const COMPARED: u64 = 64 << 10;
/// Comparisons of them: hosts may be writing there.
const COMPARISONS: u32 = 3;

/// What lies where a drive in use has its label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LabelState {
    Intact,
    Damaged(Damage),
    Lost(Vec<DriveArea>),
    Foreign(DriveOwner),
}

/// What of a drive is to be written again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Damage {
    /// The first copy of the label.
    pub first: bool,
    /// The second one.
    pub second: bool,
    /// The newest membership record.
    pub record: bool,
    /// A configuration.
    pub config: bool,
}

/// A leg and what is open of it.
#[derive(Clone, Copy)]
pub(crate) struct LegAt<'a> {
    pub pool: PoolId,
    pub array: usize,
    pub leg: usize,
    pub open: &'a OpenDrive,
}

/// What is known of a pool before its drive is read: what lies there may be newer.
struct Known {
    pool: Uuid,
    record: MembershipRecord,
    generation: u64,
    /// Of the uncleared map; 0: there is none.
    life: u64,
    /// Another leg in sync.
    other: Option<OpenDrive>,
}

impl LabelState {
    /// Why a leg of which this is left cannot be relied on; None if it can.
    pub fn cause(&self, drive: &str, last: bool) -> Option<LegCause> {
        let drive = drive.to_string();
        match self {
            Self::Intact | Self::Damaged(_) => None,
            Self::Lost(areas) => Some(LegCause::DriveMetadataLost { drive, areas: areas.clone(), last }),
            Self::Foreign(owner) => Some(LegCause::DriveTakenOver { drive, owner: owner.clone(), last }),
        }
    }
}

impl Procedures {
    /// Compares both copies of the label with what is known; anything else is inspected.
    pub(crate) async fn check_label(&self, at: LegAt<'_>) -> Result<LabelState, DriveError> {
        if self.has_label(at.open).await? || planted(Bug::LabelUnwatched) {
            return Ok(LabelState::Intact);
        }
        self.inspect_label(at).await
    }

    /// Whether both copies of its label are on a drive.
    pub(crate) async fn has_label(&self, open: &OpenDrive) -> Result<bool, DriveError> {
        let copies = self.read_all(open.id, &copies_of(&open.label)).await;
        let copies: Result<Vec<bool>, DriveError> =
            copies.into_iter().map(|copy| Ok(is_label(&copy?, &open.label))).collect();
        Ok(copies?.into_iter().all(|good| good))
    }

    /// Finds out what is left of a drive in use of which a copy of the label is not there.
    async fn inspect_label(&self, at: LegAt<'_>) -> Result<LabelState, DriveError> {
        let label = &at.open.label;
        let Some(known) = self.known_of(at) else { return Ok(LabelState::Intact) };
        let mut copies = self.read_all(at.open.id, &copies_of(label)).await.into_iter();
        let mut next = || copies.next().expect("as many as were asked for");
        let (first, second) = (next()?, next()?);
        let mut damage = Damage {
            first: !is_label(&first, label),
            second: !is_label(&second, label),
            ..Damage::default()
        };
        if !damage.first && !damage.second {
            return Ok(LabelState::Intact);
        }
        if let Some(owner) = owner_of([&first, &second], label) {
            return Ok(LabelState::Foreign(owner));
        }
        if let Some(holds) = self.signature_in_use(at.open.id, &at.open.info).await? {
            return Ok(LabelState::Foreign(DriveOwner::Signature { holds }));
        }
        let Records { record, config } = self.read_records(at.open.id, label).await?;
        let record = record.ok().filter(|r| r.pool == known.pool);
        let config = config.ok().filter(|c| is_of(c, known.pool));
        let mut lost = vec![];
        if record.is_none() {
            lost.push(DriveArea::Records);
        }
        if config.is_none() {
            lost.push(DriveArea::Configuration);
        }
        if damage.second && !self.has_its_end(at, &known).await? {
            lost.push(DriveArea::End);
        }
        if !lost.is_empty() {
            return Ok(LabelState::Lost(lost));
        }
        damage.record =
            record.is_none_or(|r| r.counter <= known.record.counter && !is_current(Some(&r), &known.record));
        damage.config = config.is_none_or(|c| c.generation < known.generation);
        Ok(LabelState::Damaged(damage))
    }

    fn known_of(&self, at: LegAt<'_>) -> Option<Known> {
        let context = self.context();
        let p = context.pool(at.pool).filter(|p| !p.leaving)?;
        let array = p.arrays.get(at.array)?;
        let others = array.legs.iter().enumerate().filter(|(l, _)| *l != at.leg);
        let in_sync = others.filter(|(l, _)| p.leg_state(at.array, *l) == LegState::InSync);
        Some(Known {
            pool: p.config().uuid,
            record: p.record().clone(),
            generation: p.generation(),
            life: p.config().extras.uncleared.as_ref().map_or(0, |u| u.life),
            other: in_sync.filter_map(|(_, leg)| leg.open.clone()).next(),
        })
    }

    /// Whether what lies in front of the label's second copy was left alone: some block of the uncleared map is there, or the
    /// last data is what another leg has. A drive without either has nothing that tells, and is believed.
    async fn has_its_end(&self, at: LegAt<'_>, known: &Known) -> Result<bool, DriveError> {
        let geometry = geometry_of(&at.open.label);
        let uuid = self.context().pool(at.pool).map(|p| p.array_uuid(at.array)).unwrap_or_default();
        if known.life != 0 {
            let area = self.read_uncleared(at.open).await?;
            if UnclearedMap::merge(&geometry, uuid, known.life, &[Some(&area)]).map.is_written() {
                return Ok(true);
            }
        }
        let Some(other) = &known.other else { return Ok(known.life == 0) };
        let len = COMPARED.min(geometry.data_bytes);
        let place = geometry.data_at + geometry.data_bytes - len;
        for _ in 0..COMPARISONS {
            let one = self.cx.read(at.open.id, place, len as usize);
            let (one, two) = join::both(one, self.cx.read(other.id, place, len as usize)).await;
            match two {
                Ok(two) if one? == two => return Ok(true),
                Ok(_) => {}
                // It cannot tell.
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Order of the Steward's own: copies of labels that were overwritten are written again, where nothing else is lost.
    pub(crate) async fn labels_mend(&self, pool: PoolId) -> Answered {
        let legs = match self.context().pool(pool).filter(|p| p.serving && !p.leaving) {
            Some(p) => p.reachable(),
            None => return Ok(Reply::Done),
        };
        for (array, leg, open) in legs {
            let at = LegAt { pool, array, leg, open: &open };
            if let Ok(LabelState::Damaged(damage)) = self.check_label(at).await {
                self.mend_label(at, damage).await?;
            }
        }
        Ok(Reply::Done)
    }

    async fn mend_label(&self, at: LegAt<'_>, damage: Damage) -> Result<(), Refusal> {
        let OpenDrive { id, label, .. } = at.open;
        let copies = [(damage.second, label_copy_at(label.drive_bytes)), (damage.first, LABEL_AT)];
        for (_, place) in copies.iter().filter(|(damaged, _)| *damaged) {
            let written = self.cx.write(*id, *place, &label.encode()).await;
            written.map_err(|e| not_restored(at.open, e))?;
        }
        if damage.record {
            self.put_record_again(at.pool).await;
        }
        if damage.config {
            self.configure_again(at.pool).await?;
        }
        if damage.second {
            self.write_maps_again(at.pool, at.array).await?;
        }
        let now = self.cx.now();
        let mut context = self.context_mut();
        let Some(p) = context.pool(at.pool) else { return Ok(()) };
        let (pool, what) = (p.config().name.clone(), format!("drive {}", at.open.info.path));
        let Damage { first, second, .. } = damage;
        context.happened(now, what, LegEvent::LabelRewritten { pool, first, second });
        Ok(())
    }

    /// The record in force, on every leg once more. A leg that does not take it is proposed as lost.
    async fn put_record_again(&self, pool: PoolId) {
        if let Some(record) = self.record_again(pool).await {
            let (failed, _) = self.write_record(pool, &record, &[]).await;
            self.propose_losses(pool, failed, Untaken::Record);
        }
        self.free_keeper(pool);
    }

    /// The shards write bitmap and uncleared map of an array to all its legs.
    async fn write_maps_again(&self, pool: PoolId, array: usize) -> Result<(), Refusal> {
        self.mark_all(pool, array).await?;
        let id = self.context().pool(pool).and_then(|p| p.arrays.get(array).map(|a| a.id));
        if let Some(array) = id {
            self.tell_shards(|| crate::mail::ShardMail::Unmark { array });
        }
        Ok(())
    }

    /// Order: restore a label. Everything that this head keeps on the drive of a leg in sync is written there anew.
    pub(crate) async fn label_restore(&self, drive: &str, yes: bool, force: bool) -> Answered {
        let (pool, array, leg) = self.leg_of("drive", drive)?;
        let (out, open, path) = {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            let path = p.drive_path(array, leg).to_string();
            (p.is_out(array, leg), p.arrays[array].legs[leg].open.clone(), path)
        };
        if out {
            return Err(LegRefusal::LabelOfLegOut { drive: path }.into());
        }
        let open = open.ok_or(LegRefusal::DriveNotOpen { drive: path.clone() })?;
        let at = LegAt { pool, array, leg, open: &open };
        let state = self.check_label(at).await.map_err(|e| not_restored(&open, e))?;
        match state {
            LabelState::Intact => return Err(LegRefusal::LabelIntact { drive: path }.into()),
            LabelState::Foreign(owner) if !force => {
                return Err(LegRefusal::LabelTakenOver { drive: path, owner }.into());
            }
            LabelState::Lost(areas) if !yes => {
                return Err(LegRefusal::LabelRestoreUnconfirmed { drive: path, areas }.into());
            }
            LabelState::Foreign(_) if !yes => {
                return Err(LegRefusal::LabelRestoreUnconfirmed { drive: path, areas: vec![] }.into());
            }
            LabelState::Damaged(damage) => self.mend_label(at, damage).await?,
            LabelState::Lost(_) | LabelState::Foreign(_) => self.write_anew(at).await?,
        }
        self.look_now().await;
        Ok(Reply::Done)
    }

    async fn write_anew(&self, at: LegAt<'_>) -> Result<(), Refusal> {
        let failed = |e| not_restored(at.open, e);
        let record = self.record_again(at.pool).await;
        let cleared = self.clear_around(at.open).await;
        let written = match (&record, &cleared) {
            (Some(record), Ok(())) => self.write_record(at.pool, record, &[]).await.0,
            _ => vec![],
        };
        self.free_keeper(at.pool);
        cleared.map_err(failed)?;
        if let Some((.., e)) = written.iter().find(|(a, l, _)| (*a, *l) == (at.array, at.leg)) {
            return Err(failed(*e));
        }
        self.propose_losses(at.pool, written, Untaken::Record);
        let slot = self.context().pool(at.pool).map(|p| p.config_slot());
        if let Some(slot) = slot {
            let (bytes, place) =
                (slot.encode().expect("it lies on the drives"), at.open.label.config_at[slot.slot()]);
            self.cx.write(at.open.id, place, &bytes).await.map_err(failed)?;
        }
        // The other slot, too.
        self.configure_again(at.pool).await?;
        self.restore_votes(at.open).await.map_err(failed)?;
        self.write_maps_again(at.pool, at.array).await?;
        self.put_label(at.open.id, &at.open.label).await.map_err(failed)?;
        let now = self.cx.now();
        let mut context = self.context_mut();
        if let Some(p) = context.pool(at.pool) {
            let (pool, what) = (p.config().name.clone(), format!("drive {}", at.open.info.path));
            context.happened(now, what, LegEvent::LabelRestored { pool });
        }
        Ok(())
    }

    /// Takes away what somebody else left around our own: in front of the configurations, their beginnings, and behind the
    /// uncleared map.
    async fn clear_around(&self, open: &OpenDrive) -> Result<(), DriveError> {
        let OpenDrive { id, label, .. } = open;
        let zeroes = vec![0u8; ALIGNMENT as usize];
        let front = label.config_at[0].min(ALIGNMENT) as usize;
        self.cx.write(*id, 0, &zeroes[..front]).await?;
        for at in label.config_at {
            self.cx.write(*id, at, &zeroes[..RECORD_BYTES]).await?;
        }
        let map_end = tail_at(label.drive_bytes) + array::UNCLEARED_AREA_BYTES;
        let block = u64::from(label.block_bytes);
        let end = label.drive_bytes / block * block;
        for at in (map_end..end).step_by(zeroes.len()) {
            let len = (end - at).min(zeroes.len() as u64) as usize;
            self.cx.write(*id, at, &zeroes[..len]).await?;
        }
        Ok(())
    }

    /// Labels the drive of a leg that was put out because its label was lost, before it returns: it is known by what was
    /// opened then. It gets no record, so that everything is copied to it, over any crash. Another drive comes back as it is.
    pub(crate) async fn relabel(
        &self,
        pool: PoolId,
        array: usize,
        leg: usize,
        probe: Probe,
    ) -> Result<Probe, Refusal> {
        let lost = self.context().pool(pool).and_then(|p| p.arrays[array].legs[leg].unlabelled.clone());
        let Some(lost) = lost.filter(|lost| is_still(lost, &probe)) else { return Ok(probe) };
        let info = probe.info.clone();
        let failed = |e: DriveError| not_restored(&OpenDrive { info: info.clone(), ..lost.clone() }, e);
        if let Err(e) = self.label_alone(probe.id, &lost.label).await {
            self.let_go(probe.id);
            return Err(failed(e));
        }
        self.look_again(probe).await.map_err(|(_, e)| failed(e))
    }
}

/// Where the copies of a label lie.
fn copies_of(label: &Label) -> [(u64, usize); 2] {
    [LABEL_AT, label_copy_at(label.drive_bytes)].map(|at| (at, RECORD_BYTES))
}

/// Whether these bytes are a label, as far as this program reads it.
fn is_label(bytes: &[u8], label: &Label) -> bool {
    Label::decode(bytes).as_ref() == Ok(label)
}

/// Whose label lies there instead. An older state of a drive's own label is nobody else's.
fn owner_of(copies: [&[u8]; 2], label: &Label) -> Option<DriveOwner> {
    copies.into_iter().find_map(|copy| match Label::decode(copy) {
        Ok(other) if (other.pool, other.drive) != (label.pool, label.drive) => {
            Some(DriveOwner::Pool { pool: other.pool_name, uuid: other.pool.to_string() })
        }
        Err(Fault::Newer) => Some(DriveOwner::Newer),
        Ok(_) | Err(_) => None,
    })
}

fn is_of(slot: &ConfigSlot, pool: Uuid) -> bool {
    PoolConfig::of_slot(slot).is_ok_and(|config| config.uuid == pool)
}

/// Whether a drive that was found is the one that was open, and nobody else's by now.
fn is_still(lost: &OpenDrive, probe: &Probe) -> bool {
    let (was, is) = (&lost.info, &probe.info);
    let same =
        (&was.path, was.bytes, &was.serial, &was.places) == (&is.path, is.bytes, &is.serial, &is.places);
    let free = match &probe.label {
        Ok(label) => (label.pool, label.drive) == (lost.label.pool, lost.label.drive),
        Err(Fault::Newer) => false,
        Err(Fault::Absent | Fault::Damaged) => true,
    };
    same && free && probe.foreign.is_none()
}

fn not_restored(open: &OpenDrive, error: DriveError) -> Refusal {
    let (drive, fault) = (open.info.path.clone(), DriveFault::of(&open.info, error));
    LegRefusal::LabelNotRestored { drive, fault }.into()
}
