//! Drive operations that rooms ask for, and their results.

pub mod kind;
mod open;

use crate::{DriveId, DriveKind, FenceKind, Slice, Token};
pub use open::{DriveOpenFault, DriveUser, OpenError};
use serde::{Deserialize, Serialize};

/// What to do to a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DriveOpKind {
    /// Drive to memory.
    Read,
    /// Memory to drive.
    Write,
    /// Zeroes on the drive, by whatever means it has; reads give zeroes afterwards.
    WriteZeroes,
    /// The drive may forget the range. Only sent where `DriveInfo::deallocate_zeroes`.
    Deallocate,
    /// Every write that completed before is durable when this ends.
    Flush,
}

/// One operation on one drive. Offsets and lengths are multiples of the drive's block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveOp {
    /// The drive.
    pub drive: DriveId,
    /// What to do.
    pub kind: DriveOpKind,
    /// Byte offset on the drive.
    pub at: u64,
    /// Length in bytes (0 for Flush).
    pub len: u64,
    /// The memory, for Read and Write: `data.len == len`. Any part of the region.
    pub data: Slice,
    /// Write: durable when it completes.
    pub fua: bool,
    /// Comes back with the completion.
    pub token: Token,
}

/// Why a drive operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
pub enum DriveError {
    /// These blocks cannot be read or written; the drive is otherwise well (EIO, ENODATA, EILSEQ).
    Medium,
    /// The drive is gone (ENODEV, ENXIO, ESHUTDOWN, or it was closed).
    Gone,
    /// The file system under a file drive is full (ENOSPC).
    NoSpace,
    /// The file has become shorter than it was when it was opened: its contents cannot be trusted.
    Cut,
    /// Not answered before the deadline; the operation may still be in the kernel.
    TimedOut,
    /// Another head, or another machine, has reserved the drive, and our key is not registered with it (EBADE; SAM-5
    /// RESERVATION CONFLICT). Says nothing of the drive's blocks: no host gets Medium for it.
    Fenced,
    /// Another errno.
    Other(i32),
}

/// What is known of a drive once it is open.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DriveInfo {
    /// Size in bytes.
    pub bytes: u64,
    /// Smallest write, bytes: 512 or 4096.
    pub block_bytes: u32,
    /// The drive may lose completed writes at a power cut until a Flush or FUA.
    pub volatile_cache: bool,
    /// Deallocated ranges read as zeroes.
    pub deallocate_zeroes: bool,
    /// Its file was made as it was opened, or for a pool that came to nothing: it is taken away with the drive, if it holds
    /// nothing then.
    pub made: bool,
    /// Never written: every block is known to read as zeroes (a new file, RAM).
    pub reads_zeroes: bool,
    /// What kind it is.
    pub kind: DriveKind,
    /// By what means others can be kept from it.
    pub fence: FenceKind,
    /// The drive's canonical path or specification.
    pub path: String,
    /// Model, empty if unknown.
    pub model: String,
    /// Serial number, empty if unknown.
    pub serial: String,
    /// What lies behind `bytes`, less than 4096 bytes: no part of the drive, but others keep their marks at the very end.
    pub end: Vec<u8>,
    /// Where its blocks lie, whatever the path: for comparison only. Empty if unknown.
    pub places: Vec<Place>,
}

/// Where blocks of a drive lie: in itself by another name, in the disk of a partition, in the file of a loop device, in the
/// devices below a mapped one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// What they lie in: for comparison only.
    pub within: String,
    /// The first byte there that may be one of the drive's.
    pub first: u64,
    /// Behind the last one.
    pub end: u64,
    /// All bytes between are the drive's; else it is not known which of them.
    pub all: bool,
}

/// What a name that a drive has for life, and on each of its paths, begins with, as in `wwid naa.5000…`.
const WWID: &str = "wwid ";

impl Place {
    /// All of what is called so.
    pub fn whole(within: impl Into<String>) -> Self {
        Self { within: within.into(), first: 0, end: u64::MAX, all: true }
    }
    /// Somewhere in what is called so.
    pub fn somewhere(within: impl Into<String>) -> Self {
        Self { all: false, ..Self::whole(within) }
    }
    /// These bytes of what is called so.
    pub fn range(within: impl Into<String>, first: u64, bytes: u64) -> Self {
        Self { first, end: first.saturating_add(bytes), ..Self::whole(within) }
    }
    /// These bytes of the drive with this name for life.
    pub fn wwid(id: &str, bytes: u64) -> Self {
        Self::range(format!("{WWID}{id}"), 0, bytes)
    }
    /// The same blocks of something that itself lies so: `bytes` of `whole` from `first` on, if that is known.
    #[must_use]
    pub fn part(self, first: Option<u64>, bytes: u64) -> Self {
        match first.filter(|_| self.all) {
            Some(first) => {
                let first = self.first.saturating_add(first);
                Self { first, end: first.saturating_add(bytes).min(self.end), ..self }
            }
            None => Self { all: false, ..self },
        }
    }
    /// Whether a block may be in both. Two places somewhere in a third, as of mapped devices, count as apart: whether they
    /// overlap is not known.
    fn meets(&self, other: &Self) -> bool {
        let same = self.within == other.within && (self.all || other.all);
        same && self.first < other.end && other.first < self.end
    }
}

impl DriveInfo {
    /// Whether the two share blocks: one is the other by another name, or lies in it. Two drives in a third one, as partitions
    /// of a disk are, share none.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.places.iter().any(|a| other.places.iter().any(|b| a.meets(b)))
    }
    /// The name for life by which both are the same, if they are two paths to it.
    pub fn wwid_with(&self, other: &Self) -> Option<&str> {
        let same = self
            .places
            .iter()
            .find(|a| a.within.starts_with(WWID) && other.places.iter().any(|b| a.meets(b)));
        same.map(|p| &p.within[WWID.len()..])
    }
}

/// How a drive is, as far as can be known without touching its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveHealth {
    /// Its size now, bytes.
    pub bytes: u64,
    /// Bytes that its file system has left, for a file.
    pub free_bytes: Option<u64>,
    /// The file has holes: writes there need space of its file system.
    pub sparse: bool,
    /// Whether it is found again by its path, for a file.
    pub name: FileName,
}

/// Where the name of an open file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FileName {
    /// Where it was as it was opened; what has no name of its own counts as there.
    #[default]
    There,
    /// Elsewhere: nothing, or another file, is at its path.
    Moved,
    /// It has no name any more: its contents end when the file is closed.
    Removed,
}

#[cfg(test)]
mod tests {
    use super::{DriveInfo, Place};

    #[test]
    fn drives_overlap_if_one_is_the_other_or_lies_in_it_and_not_because_both_lie_in_a_third() {
        let drive = |names: &[&str], lies_in: &[&str]| DriveInfo {
            places: names
                .iter()
                .map(|n| Place::whole(*n))
                .chain(lies_in.iter().map(|n| Place::somewhere(*n)))
                .collect(),
            ..DriveInfo::default()
        };
        let disk = drive(&["device 8:0"], &[]);
        let (first, second) =
            (drive(&["device 8:1"], &["device 8:0"]), drive(&["device 8:2"], &["device 8:0"]));
        let mapped = drive(&["device 253:0"], &["device 8:1", "device 8:0"]);
        for (a, b) in [(&disk, &first), (&disk, &mapped), (&first, &mapped), (&disk, &disk)] {
            assert!(a.overlaps(b) && b.overlaps(a));
        }
        for (a, b) in [(&first, &second), (&second, &mapped), (&DriveInfo::default(), &DriveInfo::default())]
        {
            assert!(!a.overlaps(b) && !b.overlaps(a));
        }
    }

    #[test]
    fn parts_of_a_third_overlap_if_their_ranges_do() {
        let drive = |places: Vec<Place>| DriveInfo { places, ..DriveInfo::default() };
        let part = |first, bytes| drive(vec![Place::range("file 1:7", first, bytes)]);
        let (first, second, both) = (part(0, 100), part(100, 100), part(50, 100));
        assert!(!first.overlaps(&second) && !second.overlaps(&first));
        assert!(both.overlaps(&first) && both.overlaps(&second));
        // A part of a part, and what lies somewhere in a part.
        let disk = Place::range("device 8:0", 0, 1000);
        let (a, b) = (disk.clone().part(Some(100), 300), disk.clone().part(Some(400), 600));
        assert_eq!((a.first, a.end, b.end), (100, 400, 1000));
        let nested = a.clone().part(Some(290), 100);
        assert_eq!((nested.first, nested.end), (390, 400), "no part is larger than what it lies in");
        let mapped = drive(vec![a.clone().part(None, 50)]);
        assert!(mapped.overlaps(&drive(vec![a])) && mapped.overlaps(&drive(vec![nested])));
        assert!(!mapped.overlaps(&drive(vec![b])) && mapped.overlaps(&drive(vec![disk])));
    }

    #[test]
    fn two_paths_to_a_drive_are_known_by_its_name_for_life() {
        let path = |number: &str, id: &str| DriveInfo {
            places: vec![Place::range(number, 0, 100), Place::wwid(id, 100)],
            ..DriveInfo::default()
        };
        let (a, b, c) =
            (path("device 8:0", "naa.5"), path("device 8:16", "naa.5"), path("device 8:32", "naa.6"));
        assert!(a.overlaps(&b) && !a.overlaps(&c));
        assert_eq!((a.wwid_with(&b), a.wwid_with(&c)), (Some("naa.5"), None));
        let first = |d: &DriveInfo| DriveInfo {
            places: d.places.iter().map(|p| p.clone().part(Some(10), 20)).collect(),
            ..DriveInfo::default()
        };
        assert!(first(&a).overlaps(&first(&b)) && first(&a).overlaps(&b), "partitions of it");
    }
}
