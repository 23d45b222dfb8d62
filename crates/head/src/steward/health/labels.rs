//! Labels of drives in use: a stray `dd`, `wipefs` or `mkfs` is found within seconds, and not at the next start, which finds no pool.
//!
//! ```text
//! label and records are read at each look ─▶ as they were
//!   └─ not: more is read ─┬─ only copies of the label are bad        written again
//!                         ├─ more is gone, another leg is sound      put out, copied in full on order
//!                         ├─ more is gone, and nothing else has it   an alarm; `restore-label` writes it from this head
//!                         └─ somebody else's bytes                   an alarm; nothing is written there
//! ```
//!
//! Which of them it is depends on what else is left there, so all legs of a look are judged together.

use crate::order::{Cause, State};
use crate::steward::context::array::Outlook;
use crate::steward::context::head::Ill;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::spare::is_spare;
use crate::steward::health::signature::{self, FAR, FAR_BYTES, LOOK_BYTES};
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use array::format::{
    Fault, LABEL_AT, Label, RECORD_BYTES, label_copy_at, newest_config, newest_membership, tail_at,
};
use base::{Bug, DriveError, DriveId, planted};
use finding::{LegCause, LegEvent, Signature, Written};

/// What a look reads in front: what is empty, the label's first copy, both records.
const FRONT_BYTES: usize = 16 << 10;

/// What lies where a pool keeps its own on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    /// Label and records are as they were.
    Whole,
    /// So they are, and somebody else's bytes lie in front of them.
    Front(Signature),
    /// Nothing but copies of the label was overwritten.
    Label,
    /// More was overwritten; and what lies there now.
    Overwritten(Written),
}

impl Kept {
    /// Whether the drive may be believed to hold what was written there.
    pub(crate) fn is_sound(&self) -> bool {
        matches!(self, Kept::Whole | Kept::Label)
    }

    /// Whether somebody else's bytes lie where the pool's records were.
    pub(crate) fn is_of_others(&self) -> bool {
        matches!(self, Kept::Overwritten(written) if *written != Written::Bytes)
    }

    /// What ails a leg in sync for it. `alone`: no other leg has what it holds.
    pub(crate) fn ill(&self, path: &str, alone: bool) -> Option<Ill> {
        let drive = path.to_string();
        let cause: Cause = match self.clone() {
            Kept::Whole => return None,
            Kept::Front(holds) => LegCause::FrontOverwritten { drive, holds },
            Kept::Label => LegCause::LabelDamaged { drive },
            Kept::Overwritten(written) => LegCause::DriveOverwrittenInUse { drive, written, last: alone },
        }
        .into();
        Some(Ill { state: State::Degraded, cause })
    }

    /// Why a leg is put out for it that another one stands in for.
    pub(crate) fn loss(&self, path: &str) -> Option<(Cause, Outlook)> {
        let Kept::Overwritten(written) = self.clone() else { return None };
        let cause = LegCause::DriveOverwrittenInUse { drive: path.into(), written, last: false };
        Some((cause.into(), Outlook::Broken))
    }
}

/// The copies of a label, as they were read.
struct Copies {
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Copies {
    /// Where the copies are that are not this label.
    fn bad(&self, label: &Label) -> Vec<u64> {
        let bytes = label.encode();
        let places = [(&self.second, label_copy_at(label.drive_bytes)), (&self.first, LABEL_AT)];
        places.into_iter().filter(|(copy, _)| **copy != bytes).map(|(_, at)| at).collect()
    }

    /// A copy that is a label, and not this one.
    fn other(&self, label: &Label) -> Option<Written> {
        [&self.first, &self.second].into_iter().find_map(|copy| match Label::decode(copy) {
            Ok(other) if other != *label => Some(Written::Label { pool: other.pool_name }),
            Err(Fault::Newer) => Some(Written::NewerLabel),
            Ok(_) | Err(_) => None,
        })
    }
}

fn has_record(label: &Label, slots: [&[u8]; 2]) -> bool {
    is_spare(label) || newest_membership(slots).is_ok_and(|r| r.pool == label.pool)
}

/// The label's copy in front, and the records, of what was read there.
fn in_front(front: &[u8], label: &Label) -> (Vec<u8>, bool) {
    let at = |at: u64| front.get(at as usize..at as usize + RECORD_BYTES).unwrap_or(&[]);
    (at(LABEL_AT).to_vec(), has_record(label, label.membership_at.map(at)))
}

impl Procedures {
    /// What lies where a pool keeps its own on this drive.
    ///
    /// # Errors
    /// The drive does not read it.
    pub(crate) async fn read_kept(&self, open: &OpenDrive) -> Result<Kept, DriveError> {
        if planted(Bug::LabelsUnseen) {
            return self.cx.read(open.id, LABEL_AT, RECORD_BYTES).await.map(|_| Kept::Whole);
        }
        let label = &open.label;
        let copy = self.cx.read(open.id, label_copy_at(label.drive_bytes), RECORD_BYTES);
        let (front, second) = join::both(self.cx.read(open.id, 0, FRONT_BYTES), copy).await;
        let front = front?;
        let (first, records) = in_front(&front, label);
        let copies = Copies { first, second: second? };
        if !records || !copies.bad(label).is_empty() {
            return self.read_overwritten(open).await;
        }
        let empty = &front[..LABEL_AT as usize];
        if empty.iter().all(|b| *b == 0) {
            return Ok(Kept::Whole);
        }
        let look = signature::Look { bytes: open.info.bytes, pieces: vec![(0, empty.to_vec())] };
        Ok(look.foreign().map_or(Kept::Whole, Kept::Front))
    }

    /// The same of a drive of which label or records are not as they were: all of it is read where others leave their signatures.
    async fn read_overwritten(&self, open: &OpenDrive) -> Result<Kept, DriveError> {
        let (label, info) = (&open.label, &open.info);
        let block = u64::from(info.block_bytes.max(512));
        let end = (info.bytes - LOOK_BYTES as u64) / block * block;
        let copy_at = label_copy_at(label.drive_bytes);
        let mut places = vec![(0, LOOK_BYTES), (end, LOOK_BYTES), (copy_at, RECORD_BYTES)];
        let far = FAR.into_iter().filter(|at| at + FAR_BYTES as u64 <= info.bytes);
        places.extend(far.map(|at| (at, FAR_BYTES)));
        let slots =
            label.config_at.map(|at| -> Boxed<'_, _> { Box::pin(self.read_config_slot(open.id, at)) });
        let (read, slots) = join::both(self.read_all(open.id, &places), join::all(slots.into())).await;
        let read = read.into_iter().collect::<Result<Vec<_>, _>>()?;
        let slots = slots.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (first, records) = in_front(&read[0], label);
        let copies = Copies { first, second: read[2].clone() };
        if let Some(other) = copies.other(label).filter(|_| !planted(Bug::OthersOverwritten)) {
            return Ok(Kept::Overwritten(other));
        }
        let mut pieces: Vec<(u64, Vec<u8>)> = places.iter().map(|(at, _)| *at).zip(read).collect();
        pieces.push((info.bytes, info.end.clone()));
        let look = signature::Look { bytes: info.bytes + info.end.len() as u64, pieces };
        if let Some(holds) = look.foreign().filter(|_| !planted(Bug::OthersOverwritten)) {
            return Ok(Kept::Overwritten(Written::Holds { holds }));
        }
        let config = is_spare(label) || newest_config([&slots[0], &slots[1]]).is_ok();
        // A spare holds nothing else that would tell: as long as one copy is left, the drive is that spare.
        let known = !is_spare(label) || copies.bad(label).len() < 2;
        let whole_map = !copies.bad(label).contains(&copy_at) || self.has_its_map(open).await?;
        let label_alone = records && config && known && whole_map || planted(Bug::OthersOverwritten);
        Ok(if label_alone { Kept::Label } else { Kept::Overwritten(Written::Bytes) })
    }

    /// Whether the uncleared map, which lies in front of the label's second copy, is whole, if there is one.
    pub(super) async fn has_its_map(&self, open: &OpenDrive) -> Result<bool, DriveError> {
        let life = {
            let context = self.context();
            let pool = context.pools.iter().find(|p| p.config().uuid == open.label.pool);
            pool.and_then(|p| Some(p.config().extras.uncleared.as_ref()?.life))
        };
        let Some(life) = life.filter(|_| !is_spare(&open.label)) else { return Ok(true) };
        let area =
            self.cx.read(open.id, tail_at(open.label.drive_bytes), array::UNCLEARED_AREA_BYTES as usize);
        let area = area.await?;
        let uuid = crate::steward::state::config::array_uuid(open.label.pool, open.label.array as usize);
        let geometry = crate::steward::state::config::geometry_of(&open.label);
        let merged = array::UnclearedMap::merge(&geometry, uuid, life, &[Some(&area)]);
        // Where nothing of it is left, it was zeroed.
        Ok(merged.lost == 0 && merged.map.is_written())
    }

    /// Only copies of a label were overwritten: they are written again.
    pub(crate) async fn rewrite_label(&self, open: &OpenDrive, pool: &str) {
        let (label, id) = (&open.label, open.id);
        if self.write_label(id, label).await.is_ok() {
            let now = self.cx.now();
            let event = LegEvent::LabelRewritten { pool: pool.into() };
            self.context_mut().happened(now, format!("drive {}", open.info.path), event);
        }
    }

    /// Writes the copies of a label that are not there, the first one last.
    pub(super) async fn write_label(&self, id: DriveId, label: &Label) -> Result<(), DriveError> {
        let first = self.cx.read(id, LABEL_AT, RECORD_BYTES).await?;
        let second = self.cx.read(id, label_copy_at(label.drive_bytes), RECORD_BYTES).await?;
        for at in (Copies { first, second }).bad(label) {
            self.cx.write(id, at, &label.encode()).await?;
        }
        Ok(())
    }
}
