//! What rooms ask of a drive, and what it says.

use crate::{DriveId, Slice, Token};

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DriveError {
    /// These blocks cannot be read or written; the drive is otherwise well (EIO, ENODATA, EILSEQ).
    Medium,
    /// The drive is gone (ENODEV, ENXIO, ESHUTDOWN, or it was closed).
    Gone,
    /// The file system under a file drive is full (ENOSPC).
    NoSpace,
    /// The file has become shorter than it was when it was opened: what it holds is not to be believed.
    Cut,
    /// Not answered before the deadline; the operation may still be in the kernel.
    TimedOut,
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
    /// Never written: every block is known to read as zeroes (a new file, RAM).
    pub reads_zeroes: bool,
    /// `block`, `file`, `ram` or `null`.
    pub kind: String,
    /// The drive's canonical path or specification.
    pub path: String,
    /// Model, empty if unknown.
    pub model: String,
    /// Serial number, empty if unknown.
    pub serial: String,
    /// What lies behind `bytes`, less than 4096 bytes: no part of the drive, but others keep their marks at the very end.
    pub end: Vec<u8>,
    /// What its blocks are called, whatever the path: for comparison only. Empty if unknown.
    pub names: Vec<String>,
    /// Names of what its blocks lie in: the disk of a partition, the devices below a mapped one.
    pub lies_in: Vec<String>,
}

impl DriveInfo {
    /// Whether blocks of the other are blocks of this one, too: one is the other by another name, or lies in it. Two that lie in
    /// a third one, as partitions of a disk do, are two.
    pub fn overlaps(&self, other: &Self) -> bool {
        let any = |mine: &[String], theirs: &[String]| mine.iter().any(|n| theirs.contains(n));
        any(&self.names, &other.names) || any(&self.names, &other.lies_in) || any(&self.lies_in, &other.names)
    }
}

/// Why a drive could not be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenError {
    /// Somebody else has it, and may let go of it (after kill -9: the daemon before us).
    pub held: bool,
    /// There is nothing of that name.
    pub missing: bool,
    /// A sentence that names the drive, the cause, and what to do.
    pub words: String,
}

impl From<String> for OpenError {
    fn from(words: String) -> Self {
        Self { held: false, missing: false, words }
    }
}

/// How a drive is, as far as can be told without touching its blocks.
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
    /// It has none any more: what the file holds ends with whoever has it open.
    Removed,
}

#[cfg(test)]
mod tests {
    use super::DriveInfo;

    #[test]
    fn drives_overlap_if_one_is_the_other_or_lies_in_it_and_not_because_both_lie_in_a_third() {
        let drive = |names: &[&str], lies_in: &[&str]| DriveInfo {
            names: names.iter().map(|n| n.to_string()).collect(),
            lies_in: lies_in.iter().map(|n| n.to_string()).collect(),
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
}
