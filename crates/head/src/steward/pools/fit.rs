//! Whether a drive may become a pool's, and is large enough.

use crate::order::{ArraySpec, ErrorKind, Refusal};
use crate::steward::context::probe::Probe;
use crate::steward::state::config::geometry_of;
use crate::steward::system::cannot;
use crate::steward::words::{refuse, size, size_there};
use array::format::{DRIVE_BYTES_MIN, Label, tail_at};
use base::{DriveKind, FenceKind};

/// What the operator asked for, with `PoolCreate`'s defaults filled in.
pub(crate) struct NewPool {
    pub name: String,
    pub arrays: Vec<ArraySpec>,
    pub chunk_bytes: Option<u32>,
    pub block_bytes: Option<u32>,
    pub measure: bool,
    pub force: bool,
}

pub(crate) fn bad(field: &'static str, message: impl Into<String>) -> Refusal {
    refuse(ErrorKind::Invalid, field, message)
}

/// Two names of one drive.
pub(crate) fn one_drive(a: &Probe, b: &Probe) -> String {
    if let Some(id) = a.info.wwid_with(&b.info) {
        return format!(
            "{} and {} are two paths to one drive ({id}), or to parts of it",
            a.info.path, b.info.path
        );
    }
    match a.info.path == b.info.path {
        true => format!("{} and {} are the same drive", a.spec, b.spec),
        false => format!("{} and {} are one drive, or one lies in the other", a.info.path, b.info.path),
    }
}

/// What speaks against these drives; `shared`: two heads are to use them.
pub(crate) fn check_probes(probes: &[Probe], force: bool, shared: bool) -> Option<Refusal> {
    for (i, p) in probes.iter().enumerate() {
        let path = &p.info.path;
        if DriveKind::of(path).has_name() && probes[..i].iter().any(|q| q.info.path == *path) {
            return Some(bad(
                "drives",
                format!(
                    "{} and {} are the same drive",
                    probes.iter().find(|q| q.info.path == *path)?.spec,
                    p.spec
                ),
            ));
        }
        if p.info.bytes < DRIVE_BYTES_MIN {
            return Some(bad(
                "drives",
                format!(
                    "{path} has {}, and a drive must have at least {}",
                    size_there(p.info.bytes),
                    size(DRIVE_BYTES_MIN)
                ),
            ));
        }
        if let (true, FenceKind::None(why)) = (shared, p.info.fence) {
            return Some(
                refuse(ErrorKind::Conflict, "drives", cannot(path, why))
                    .then(format!("the same with {}", why.instead())),
            );
        }
        if !matches!(p.info.block_bytes, 512 | 4096) {
            return Some(bad(
                "drives",
                format!("{path} has blocks of {} bytes, neither 512 nor 4096", p.info.block_bytes),
            ));
        }
    }
    let objections: Vec<String> =
        probes.iter().filter_map(Probe::objection).map(|why| format!("{why:?}")).collect();
    if objections.is_empty() || force {
        return None;
    }
    let message = format!("{}; what is there would be lost", objections.join("; "));
    Some(
        refuse(ErrorKind::Unsafe, "drives", message)
            .then("the same command with --force, or other drives (millrace drive ls)"),
    )
}

/// For words: how large a drive like this one must be to hold so much in front of its tail.
pub(crate) fn bytes_needed(probe: &Probe, front: u64) -> u64 {
    front + (probe.info.bytes - tail_at(probe.info.bytes))
}

/// For replaced legs: the layout that a new drive must take over.
pub(crate) fn fits(probe: &Probe, like: &Label) -> bool {
    tail_at(probe.info.bytes) >= geometry_of(like).data_at + like.data_bytes
}
