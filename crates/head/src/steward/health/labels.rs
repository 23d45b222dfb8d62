//! The labels of drives in use, and what lies beside them: somebody may overwrite them behind the head's back.
//!
//! ```text
//! both copies and a record are there                  ▶ intact
//! a copy is not, records and a configuration are      ▶ damaged: written again (`labels_mend`)
//! more is gone, so data may be, too                   ▶ lost
//!    ├─ another leg in sync     the leg is put out; `drive return` labels it anew, and everything is copied
//!    └─ none                    told, and nothing is written until the operator says so (`label_restore`)
//! somebody else has written his own there             ▶ foreign: the same, and never overwritten unasked
//! ```
//!
//! What was damaged before a pool came, its import writes again (`mend_labels_found`): whoever did it is gone by now.
//!
//! Who overwrites a drive from its beginning or its end reaches data only behind the records: as long as one of
//! both slots of each is there, data is.

use crate::layout::PoolId;
use crate::order::{Answered, Refusal, Reply};
use crate::steward::context::array::OnRecord;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::probe::Probe;
use crate::steward::context::spare::is_spare;
use crate::steward::health::drives::Records;
use crate::steward::health::signature::Look;
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use crate::steward::state::config::{PoolConfig, geometry_of};
use array::UnclearedMap;
use array::format::{
    ConfigSlot, Fault, LABEL_AT, Label, LegState, MembershipRecord, RECORD_BYTES, label_copy_at, tail_at,
};
use base::{Bug, DriveError, Uuid, planted};
use finding::{DriveArea, DriveFault, DriveOwner, LegCause, LegEvent, LegRefusal, Signature};

/// Bytes that a look reads in front: what stays empty, the label's first copy, both membership records.
const FRONT_BYTES: usize = 16 << 10;
/// Bytes of data before the drive's end that are compared with another leg's.
const COMPARED: u64 = 64 << 10;
/// Comparisons of them: hosts may be writing there.
const COMPARISONS: u32 = 3;

/// What lies where a drive in use has its label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LabelState {
    Intact,
    /// A record is just being written there: the next look tells.
    Unsure,
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
    /// A membership record.
    pub record: bool,
    /// A configuration.
    pub config: bool,
    /// The uncleared map.
    pub map: bool,
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
    record: MembershipRecord,
    generation: u64,
    /// What was written after this may lie where everything else was overwritten, and proves nothing.
    whole_at: Option<OnRecord>,
    /// Of the uncleared map; 0: there is none.
    life: u64,
    /// Another leg in sync.
    other: Option<OpenDrive>,
}

/// What a look reads.
struct Kept<'a> {
    label: &'a Label,
    front: Vec<u8>,
    copy: Vec<u8>,
}

impl LabelState {
    /// Why a leg of which this is left cannot be relied on; None if it can. `others`: legs in sync beside it that lost theirs.
    pub fn cause(&self, drive: &str, last: bool, others: &[String]) -> Option<LegCause> {
        let drive = drive.to_string();
        let others = Some(others.to_vec()).filter(|others| last && !others.is_empty());
        match self {
            Self::Intact | Self::Unsure | Self::Damaged(_) => None,
            Self::Lost(areas) => {
                Some(LegCause::DriveMetadataLost { drive, areas: areas.clone(), last, others })
            }
            Self::Foreign(owner) => {
                Some(LegCause::DriveTakenOver { drive, owner: owner.clone(), last, others })
            }
        }
    }

    /// Whether it says nothing yet: a record is being written, or an order is, whose end decides what becomes of the leg.
    pub fn is_unsettled(&self, ordering: bool, last: bool) -> bool {
        match self {
            Self::Intact => false,
            Self::Unsure => true,
            Self::Damaged(_) => ordering,
            Self::Lost(_) | Self::Foreign(_) => ordering && !last,
        }
    }

    /// Whether the label is not known to be there.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Unsure | Self::Lost(_) | Self::Foreign(_))
    }
}

impl Kept<'_> {
    fn at(&self, at: u64) -> &[u8] {
        self.front.get(at as usize..at as usize + RECORD_BYTES).unwrap_or(&[])
    }

    /// The label's copies.
    fn copies(&self) -> [&[u8]; 2] {
        [self.at(LABEL_AT), &self.copy]
    }

    /// Which copies are not the label, as far as this program reads it.
    fn damage(&self) -> Damage {
        let [first, second] = self.copies().map(|copy| Label::decode(copy).as_ref() != Ok(self.label));
        Damage { first, second, ..Damage::default() }
    }

    /// What others left where we leave everything empty.
    fn holds_in_front(&self) -> Option<Signature> {
        let empty = &self.front[..LABEL_AT as usize];
        let look = || Look { bytes: self.label.drive_bytes, pieces: vec![(0, empty.to_vec())] };
        if empty.iter().all(|b| *b == 0) { None } else { look().foreign() }
    }

    /// The membership records of its own pool.
    fn records(&self) -> impl Iterator<Item = MembershipRecord> {
        let decoded = self.label.membership_at.into_iter().map(|at| MembershipRecord::decode(self.at(at)));
        decoded.filter_map(Result::ok).filter(|r| r.pool == self.label.pool)
    }

    fn is_whole(&self) -> bool {
        self.damage() == Damage::default()
            && (is_spare(self.label) || self.records().next().is_some())
            && self.holds_in_front().is_none()
    }

    /// Whose label lies there instead. An older state of a drive's own label is nobody else's.
    fn owner(&self) -> Option<DriveOwner> {
        self.copies().into_iter().find_map(|copy| match Label::decode(copy) {
            Ok(other) if (other.pool, other.drive) != (self.label.pool, self.label.drive) => {
                Some(DriveOwner::Pool { pool: other.pool_name, uuid: other.pool.to_string() })
            }
            Err(Fault::Newer(_)) => Some(DriveOwner::Newer),
            Ok(_) | Err(_) => None,
        })
    }
}

impl Procedures {
    async fn read_kept<'a>(&self, open: &'a OpenDrive) -> Result<Kept<'a>, DriveError> {
        let label = &open.label;
        let copy = self.cx.read(open.id, label_copy_at(label.drive_bytes), RECORD_BYTES);
        let (front, copy) = join::both(self.cx.read(open.id, 0, FRONT_BYTES), copy).await;
        Ok(Kept { label, front: front?, copy: copy? })
    }

    /// Who has written his own to a drive in use.
    async fn owner_of(&self, open: &OpenDrive, kept: &Kept<'_>) -> Result<Option<DriveOwner>, DriveError> {
        if let Some(owner) = kept.owner() {
            return Ok(Some(owner));
        }
        let holds = self.signature_in_use(open.id, &open.info).await?;
        Ok(holds.map(|holds| DriveOwner::Signature { holds }))
    }

    /// What is left of what the head keeps on a leg's drive. As long as everything is, only little is read.
    pub(crate) async fn check_label(&self, at: LegAt<'_>) -> Result<LabelState, DriveError> {
        if self.read_kept(at.open).await?.is_whole() || planted(Bug::LabelUnwatched) {
            return Ok(LabelState::Intact);
        }
        let Some(known) = self.known_of(at) else { return Ok(LabelState::Unsure) };
        let kept = self.read_kept(at.open).await?;
        if kept.is_whole() {
            return Ok(LabelState::Intact);
        }
        if let Some(owner) = self.owner_of(at.open, &kept).await? {
            return Ok(LabelState::Foreign(owner));
        }
        let Records { config, older, .. } = self.read_records(at.open.id, &at.open.label).await?;
        let config = config.ok().filter(|c| is_of(c, at.open.label.pool));
        let mut damage = kept.damage();
        let mut lost = vec![];
        let is_old =
            |r: &MembershipRecord| known.whole_at.is_none_or(|at| (r.counter, r.settled) <= at.record);
        if !kept.records().any(|r| is_old(&r)) {
            lost.push(DriveArea::Records);
        }
        let is_old = |generation| known.whole_at.is_none_or(|at| generation <= at.config);
        if !config.iter().any(|c| is_old(older.unwrap_or(c.generation))) {
            lost.push(DriveArea::Configuration);
        }
        if damage.second && !self.has_its_end(at, &known).await? {
            lost.push(DriveArea::End);
        }
        if !lost.is_empty() {
            return Ok(LabelState::Lost(lost));
        }
        let newest = kept.records().max_by_key(|r| (r.counter, r.settled));
        damage.record = kept.records().count() < 2
            || newest.is_none_or(|r| r.counter <= known.record.counter && r != known.record);
        damage.config = config.is_none_or(|c| c.generation < known.generation);
        damage.map = damage.second && known.life != 0;
        Ok(LabelState::Damaged(damage))
    }

    /// The same of a drive by its label alone, of a spare or of a follower's: one copy that is left says that it is the drive.
    pub(crate) async fn check_known_label(&self, open: &OpenDrive) -> Result<LabelState, DriveError> {
        let kept = self.read_kept(open).await?;
        if kept.is_whole() || planted(Bug::LabelUnwatched) {
            return Ok(LabelState::Intact);
        }
        if let Some(owner) = self.owner_of(open, &kept).await? {
            return Ok(LabelState::Foreign(owner));
        }
        let damage = kept.damage();
        Ok(if damage.first && damage.second { LabelState::Lost(vec![]) } else { LabelState::Damaged(damage) })
    }

    fn known_of(&self, at: LegAt<'_>) -> Option<Known> {
        let context = self.context();
        // A leg that joins gets its first record from the keeper, and what is proposed has not reached the drives.
        let p = context.pool(at.pool).filter(|p| !p.leaving && p.keeper_rests())?;
        let array = p.arrays.get(at.array)?;
        let others = array.legs.iter().enumerate().filter(|(l, _)| *l != at.leg);
        let in_sync = others.filter(|(l, _)| p.leg_state(at.array, *l) == LegState::InSync);
        Some(Known {
            record: p.record().clone(),
            whole_at: array.legs.get(at.leg)?.whole_at,
            generation: p.generation(),
            life: p.config().extras.uncleared.as_ref().map_or(0, |u| u.life),
            other: in_sync.filter_map(|(_, leg)| leg.open.clone()).next(),
        })
    }

    /// Whether what lies in front of the label's second copy was left alone: the last data is what another leg has, or the
    /// uncleared map is there. A drive without either has nothing that tells, and is believed.
    async fn has_its_end(&self, at: LegAt<'_>, known: &Known) -> Result<bool, DriveError> {
        let geometry = geometry_of(&at.open.label);
        let Some(other) = &known.other else {
            if known.life == 0 {
                return Ok(true);
            }
            let uuid = self.context().pool(at.pool).map(|p| p.array_uuid(at.array)).unwrap_or_default();
            let area = self.read_uncleared(at.open).await?;
            let merged = UnclearedMap::merge(&geometry, uuid, known.life, &[Some(&area)]);
            return Ok(merged.map.is_written(&geometry));
        };
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
        let (legs, spares) = match self.context().pool(pool).filter(|p| p.serving && !p.leaving) {
            Some(p) => (p.reachable(), p.spares.iter().filter_map(|s| s.open.clone()).collect::<Vec<_>>()),
            None => return Ok(Reply::Done),
        };
        for (array, leg, open) in legs {
            let at = LegAt { pool, array, leg, open: &open };
            if let Ok(LabelState::Damaged(damage)) = self.check_label(at).await {
                self.mend_label(at, damage).await?;
            }
        }
        for open in spares {
            if let Ok(LabelState::Damaged(damage)) = self.check_known_label(&open).await {
                self.mend_copies(pool, &open, damage).await?;
            }
        }
        Ok(Reply::Done)
    }

    /// A pool comes, and nobody uses it yet: copies of labels that were damaged meanwhile are written again. What cannot be
    /// mended so, the first look tells.
    pub(crate) async fn mend_labels_found(&self, pool: PoolId, probes: &[Probe]) {
        for open in probes.iter().filter(|p| !p.whole).filter_map(Probe::opened) {
            let Some((damage, array)) = self.damage_found(pool, &open).await else { continue };
            if let Some(array) = array.filter(|_| damage.second)
                && self.write_map_found(pool, array, &open).await.is_err()
            {
                continue;
            }
            if self.write_copies(&open, damage).await.is_ok() {
                let Damage { first, second, .. } = damage;
                self.label_happened(pool, &open, |pool| LegEvent::LabelRewrittenAtImport {
                    pool,
                    first,
                    second,
                });
            }
        }
    }

    /// What of the label of a drive of a pool that comes is to be written again, and of which array the drive is a leg.
    async fn damage_found(&self, pool: PoolId, open: &OpenDrive) -> Option<(Damage, Option<usize>)> {
        let (leg, in_sync) = {
            let context = self.context();
            let p = context.pool(pool)?;
            let leg = p.reachable().into_iter().find(|(.., o)| o.id == open.id).map(|(a, l, _)| (a, l));
            if leg.is_none() && !p.config().extras.spares.iter().any(|s| s.drive == open.label.drive) {
                return None;
            }
            (leg, leg.is_some_and(|(a, l)| p.leg_state(a, l) == LegState::InSync))
        };
        let state = match leg.filter(|_| in_sync) {
            Some((array, leg)) => self.check_label(LegAt { pool, array, leg, open }).await,
            // All of it is copied anew, or nothing lies there.
            None => self.check_known_label(open).await,
        };
        match state {
            Ok(LabelState::Damaged(damage)) => Some((damage, leg.map(|(array, _)| array))),
            Ok(_) | Err(_) => None,
        }
    }

    /// The uncleared map lies in front of the label's second copy, and may be damaged with it.
    async fn write_map_found(&self, pool: PoolId, array: usize, open: &OpenDrive) -> Result<(), DriveError> {
        let area = {
            let context = self.context();
            let array = context.pool(pool).map(|p| (&p.arrays[array], p.array_uuid(array)));
            let array = array.filter(|(a, _)| a.uncleared.life() != 0);
            array.map(|(a, uuid)| a.uncleared.encode(&a.geometry, uuid))
        };
        match area {
            Some(area) => self.cx.write(open.id, tail_at(open.label.drive_bytes), &area).await,
            None => Ok(()),
        }
    }

    async fn mend_label(&self, at: LegAt<'_>, damage: Damage) -> Result<(), Refusal> {
        if damage.record {
            self.write_records(at).await?;
        }
        if damage.config {
            self.configure_again(at.pool).await?;
        }
        if damage.map {
            self.write_maps_again(at.pool, at.array).await?;
        }
        self.mend_copies(at.pool, at.open, damage).await
    }

    async fn mend_copies(&self, pool: PoolId, open: &OpenDrive, damage: Damage) -> Result<(), Refusal> {
        self.write_copies(open, damage).await?;
        let Damage { first, second, .. } = damage;
        self.label_happened(pool, open, |pool| LegEvent::LabelRewritten { pool, first, second });
        Ok(())
    }

    async fn write_copies(&self, open: &OpenDrive, damage: Damage) -> Result<(), Refusal> {
        let OpenDrive { id, label, .. } = open;
        let Damage { first, second, .. } = damage;
        for (_, place) in
            [(second, label_copy_at(label.drive_bytes)), (first, LABEL_AT)].iter().filter(|c| c.0)
        {
            let written = self.cx.write(*id, *place, &label.encode()).await;
            written.map_err(|e| not_restored(open, e))?;
        }
        Ok(())
    }

    /// The record in force, in both slots: a torn write of the next one must leave another. Only on this leg: what is written
    /// to one that has lost its label, too, would look as if it were all there.
    async fn write_records(&self, at: LegAt<'_>) -> Result<(), Refusal> {
        let mut written = Ok(());
        let (_hold, record) = self.record_again(at.pool).await;
        if let Some(record) = record {
            let writes = at.open.label.membership_at.map(|place| -> Boxed<'_, _> {
                let bytes = record.encode();
                Box::pin(async move { self.cx.write(at.open.id, place, &bytes).await })
            });
            written = join::all(writes.into()).await.into_iter().collect();
        }
        written.map_err(|e| not_restored(at.open, e))
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
        // It may be about to write a record there.
        drop(self.hold_keeper(pool).await);
        let state = self.check_label(at).await.map_err(|e| not_restored(&open, e))?;
        match state {
            LabelState::Intact | LabelState::Unsure => {
                return Err(LegRefusal::LabelIntact { drive: path }.into());
            }
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
        // Another leg that lost its label, too, may be put out from now on.
        self.look_soon();
        Ok(Reply::Done)
    }

    async fn write_anew(&self, at: LegAt<'_>) -> Result<(), Refusal> {
        let failed = |e| not_restored(at.open, e);
        self.clear_around(at.open).await.map_err(failed)?;
        self.write_records(at).await?;
        // Both slots of the configuration.
        for _ in 0..2 {
            self.configure_again(at.pool).await?;
        }
        self.restore_votes(at.open).await.map_err(failed)?;
        self.write_maps_again(at.pool, at.array).await?;
        self.put_label(at.open.id, &at.open.label).await.map_err(failed)?;
        self.label_happened(at.pool, at.open, |pool| LegEvent::LabelRestored { pool });
        Ok(())
    }

    fn label_happened(&self, pool: PoolId, open: &OpenDrive, event: impl FnOnce(String) -> LegEvent) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        let Some(name) = context.pool(pool).map(|p| p.config().name.clone()) else { return };
        context.happened(now, format!("drive {}", open.info.path), event(name));
    }

    /// Takes away what somebody else left in front of our own, between records and configurations, and behind the label's copy.
    async fn clear_around(&self, open: &OpenDrive) -> Result<(), DriveError> {
        let label = &open.label;
        let block = u64::from(label.block_bytes);
        let record = RECORD_BYTES as u64;
        let gaps = [
            (0, LABEL_AT),
            (label.membership_at[1] + record, label.config_at[0]),
            (label_copy_at(label.drive_bytes) + record, label.drive_bytes / block * block),
        ];
        for (from, to) in gaps.into_iter().filter(|(from, to)| from < to) {
            self.cx.write(open.id, from, &vec![0; (to - from) as usize]).await?;
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
        Err(Fault::Newer(_)) => false,
        Err(Fault::Absent | Fault::Damaged) => true,
    };
    same && free && probe.foreign.is_none()
}

fn not_restored(open: &OpenDrive, error: DriveError) -> Refusal {
    let (drive, fault) = (open.info.path.clone(), DriveFault::of(&open.info, error));
    LegRefusal::LabelNotRestored { drive, fault }.into()
}
