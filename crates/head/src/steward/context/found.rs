//! What was found where a drive of a pool should be, and is not that drive as it was: files that were truncated, partitions
//! that were made anew, files that were made again empty, drives that changed places.

use crate::steward::context::open::OpenDrive;
use crate::steward::context::probe::Probe;
use array::format::Fault;
use base::DriveKind;
use base::Uuid;

/// What lies at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The drive, shorter than its label says.
    CutOff {
        drive: Uuid,
        path: String,
        /// Bytes that are there, and that its label says.
        bytes: u64,
        needed: u64,
        /// It is a file: who can write it can make it as long as it was.
        file: bool,
    },
    /// Something else, or what cannot be told from that.
    Other { path: String, words: String },
    /// It is there, and could not be read: it hangs, or fails.
    Mute { path: String, words: String },
    /// The drive, which somebody used without the others: it may hold what they lack.
    Apart { drive: Uuid, path: String, pool: String },
    /// The drive itself, whole, and it lies at this path now.
    Moved { drive: Uuid, path: String },
    /// A drive that can be used, by the name that its label says.
    Drive { drive: Uuid, path: String, pool: String },
}

impl Found {
    pub fn of(probe: &Probe) -> Self {
        let path = probe.info.path.clone();
        let other = |words: String| Self::Other { path: path.clone(), words };
        match (&probe.label, probe.foreign) {
            (Ok(l), _) if l.drive_bytes > probe.info.bytes => Self::CutOff {
                drive: l.drive,
                bytes: probe.info.bytes,
                needed: l.drive_bytes,
                file: probe.info.kind == DriveKind::File,
                path,
            },
            (Ok(l), _) => Self::Drive { drive: l.drive, pool: l.pool_name.clone(), path },
            (Err(Fault::Absent), Some(name)) => other(format!("what is there now holds {name}")),
            (Err(Fault::Absent), None) => {
                other("what is there now has no label: it is empty, or another".into())
            }
            (Err(fault), _) => other(format!("its label is {fault}")),
        }
    }
    /// A drive that was opened whole and has so many bytes now; None if it is whole.
    pub fn cut_off(open: &OpenDrive, bytes: u64) -> Option<Self> {
        (bytes < open.label.drive_bytes).then(|| Self::CutOff {
            drive: open.label.drive,
            path: open.info.path.clone(),
            bytes,
            needed: open.label.drive_bytes,
            file: open.info.kind == DriveKind::File,
        })
    }
    pub fn path(&self) -> &str {
        match self {
            Self::CutOff { path, .. }
            | Self::Other { path, .. }
            | Self::Mute { path, .. }
            | Self::Apart { path, .. }
            | Self::Moved { path, .. }
            | Self::Drive { path, .. } => path,
        }
    }
    /// The drive that it is, whether it can be used or not.
    pub fn drive(&self) -> Option<Uuid> {
        match self {
            Self::CutOff { drive, .. }
            | Self::Apart { drive, .. }
            | Self::Moved { drive, .. }
            | Self::Drive { drive, .. } => Some(*drive),
            Self::Other { .. } | Self::Mute { .. } => None,
        }
    }
    /// What is wrong with it as the drive that was looked for: one sentence.
    pub fn words(&self) -> String {
        match self {
            Self::CutOff { bytes, needed, .. } => {
                format!("it is too small: {bytes} of its {needed} bytes are there")
            }
            Self::Other { words, .. } | Self::Mute { words, .. } => words.clone(),
            Self::Apart { .. } => {
                "it was used apart from the others meanwhile, and may hold later writes than the pool".into()
            }
            Self::Moved { path, .. } => format!("it lies at {path} now"),
            Self::Drive { pool, .. } => format!("another drive is there now, of pool {pool}"),
        }
    }
    /// What helps a leg whose drive was last seen at `leg`. What was cut off or overwritten is lost, so everything is
    /// copied to it.
    pub fn way_back(&self, leg: &str) -> String {
        match self {
            Self::CutOff { path, needed, file: true, .. } => {
                format!("truncate -s {needed} {path}, then millrace drive return {path}")
            }
            // A loop device learns of the size of its file when it is told to look.
            Self::CutOff { path, needed, file: false, .. } if path.starts_with("/dev/loop") => format!(
                "truncate -s '>{needed}' $(losetup -nO BACK-FILE {path}), losetup -c {path}, then millrace drive return {path}; or millrace drive replace {leg} NEW"
            ),
            Self::CutOff { path, needed, file: false, .. } => format!(
                "make it {needed} bytes again (blockdev --getsize64 {path} tells), then millrace drive return {path}; or millrace drive replace {leg} NEW"
            ),
            // By its UUID: another drive may be called by that path.
            Self::Moved { drive, .. } => format!("millrace drive return {drive}"),
            Self::Drive { .. } => {
                format!("attach the drive that was there, or millrace drive replace {leg} NEW")
            }
            Self::Apart { path, pool, .. } => format!(
                "if what {path} holds is right: millrace pool release {pool} --yes, then millrace pool import {pool} --force --drive {path}; if what the pool has now is: millrace drive replace {leg} {path} --force, which overwrites {path}"
            ),
            Self::Other { path, .. } => {
                format!("millrace drive replace {leg} {path} --force (copies everything to it)")
            }
            Self::Mute { .. } => {
                format!("millrace drive return {leg}, once it answers, or millrace drive replace {leg} NEW")
            }
        }
    }
}
