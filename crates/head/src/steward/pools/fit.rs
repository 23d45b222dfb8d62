//! Whether a drive may become a pool's, and is large enough.

use crate::order::{ArraySpec, Cause, Refusal};
use crate::steward::context::probe::Probe;
use crate::steward::state::config::geometry_of;
use array::format::{DRIVE_BYTES_MIN, Label, tail_at};
use base::{DriveKind, FenceKind};
use finding::{OneDrive, PoolRefusal, SystemRefusal};

/// What the operator asked for, with `PoolCreate`'s defaults filled in.
pub(crate) struct NewPool {
    pub name: String,
    pub arrays: Vec<ArraySpec>,
    pub chunk_bytes: Option<u32>,
    pub block_bytes: Option<u32>,
    pub measure: bool,
    pub force: bool,
}

/// In which way two drives are one.
pub(crate) fn one_drive(a: &Probe, b: &Probe) -> OneDrive {
    let (drive, other) = (a.info.path.clone(), b.info.path.clone());
    if let Some(wwid) = a.info.wwid_with(&b.info) {
        return OneDrive::Paths { drive, other, wwid: wwid.to_string() };
    }
    if drive == other {
        OneDrive::Same { drive: a.spec.clone(), other: b.spec.clone() }
    } else {
        OneDrive::Overlap { drive, other }
    }
}

/// What speaks against these drives; `shared`: two heads are to use them.
pub(crate) fn check_probes(probes: &[Probe], force: bool, shared: bool) -> Option<Refusal> {
    for (i, p) in probes.iter().enumerate() {
        let drive = p.info.path.clone();
        if let Some(q) = probes[..i].iter().find(|q| q.info.path == drive)
            && DriveKind::of(&drive).has_name()
        {
            let how = OneDrive::Same { drive: q.spec.clone(), other: p.spec.clone() };
            return Some(PoolRefusal::DrivesAreOne { how }.into());
        }
        if p.info.bytes < DRIVE_BYTES_MIN {
            let (bytes, needed_bytes) = (p.info.bytes, DRIVE_BYTES_MIN);
            return Some(PoolRefusal::DriveTooSmall { drive, bytes, needed_bytes }.into());
        }
        if let (true, FenceKind::None(why)) = (shared, p.info.fence) {
            let why = SystemRefusal::DriveUnshareable { drive, why, new: true };
            return Some(Refusal::from(why).about("drives"));
        }
        if !matches!(p.info.block_bytes, 512 | 4096) {
            let block_bytes = p.info.block_bytes;
            return Some(PoolRefusal::DriveBlocksInvalid { drive, block_bytes }.into());
        }
    }
    let why = objections(probes.iter());
    (!why.is_empty() && !force).then(|| PoolRefusal::DrivesHoldData { why }.into())
}

/// What drives hold that would be lost.
pub(crate) fn objections<'a>(probes: impl Iterator<Item = &'a Probe>) -> Vec<Cause> {
    probes.filter_map(Probe::objection).map(Cause::from).collect()
}

/// How large a drive like this one must be to hold so much in front of its tail.
pub(crate) fn bytes_needed(probe: &Probe, front: u64) -> u64 {
    front + (probe.info.bytes - tail_at(probe.info.bytes))
}

/// For replaced legs: the layout that a new drive must take over.
pub(crate) fn fits(probe: &Probe, like: &Label) -> bool {
    tail_at(probe.info.bytes) >= geometry_of(like).data_at + like.data_bytes
}
