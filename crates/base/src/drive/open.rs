//! Why a drive could not be opened, and who has it.

use crate::size::SizeFault;
use serde::{Deserialize, Serialize};

/// A drive could not be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenError {
    /// Its path, or its specification.
    pub drive: String,
    /// Why.
    pub why: DriveOpenFault,
}

impl OpenError {
    /// `drive` could not be opened.
    pub fn new(drive: impl Into<String>, why: DriveOpenFault) -> Self {
        Self { drive: drive.into(), why }
    }
}

/// Why a drive could not be opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum DriveOpenFault {
    /// The specification is empty.
    NoSpec,
    /// The name of a RAM drive is empty.
    NoName,
    /// No path follows the prefix.
    NoPath { prefix: String },
    /// The size cannot be understood.
    Size { fault: SizeFault },
    /// The size is not a multiple of 4096.
    UnevenSize { bytes: u64 },
    /// No block size that exists.
    BlockSize { value: String },
    /// No option that exists.
    UnknownOption { option: String },
    /// The RAM drive of this name has another size.
    RamSize { bytes: u64, wanted_bytes: u64 },
    /// The RAM drive of this name is open in this process.
    RamInUse,
    /// More memory than is free for RAM drives.
    RamFull { bytes: u64, free_bytes: u64 },
    /// The kernel gave no memory for a RAM drive.
    RamRefused { bytes: u64, errno: i32 },
    /// Another drive has the number.
    NumberTaken { number: u16 },
    /// Somebody uses a loop device over it.
    InUseThrough { device: String, users: Vec<DriveUser> },
    /// These use it and can be stopped.
    InUse { users: Vec<DriveUser> },
    /// These processes have it open.
    Open { by: Vec<DriveUser> },
    /// A process that is not known has claimed it.
    Claimed,
    /// Another process, or another drive of this head, has locked the file.
    Locked,
    /// A file that is to be a drive is something else.
    NotAFile,
    /// What was named `file:` is something else.
    NotAFileHere,
    /// It is a directory.
    Directory,
    /// It is neither a block device nor a file.
    NotADrive,
    /// Its blocks are larger than 4096 bytes.
    LargeBlocks { bytes: u64 },
    /// It has no medium.
    Empty { bytes: u64 },
    /// The file is there with another size.
    OtherSize { bytes: u64, wanted_bytes: u64 },
    /// The file is not there, and no size was given to make it.
    NoSize,
    /// The file is smaller than a block.
    TooSmall { bytes: u64 },
    /// There is nothing of that name.
    Missing,
    /// The daemon may not open it.
    Forbidden,
    /// It cannot be written.
    ReadOnly,
    /// No device or medium is behind it.
    NoMedium,
    /// It does not fit on its file system.
    NoSpace,
    /// The process has too many open files.
    TooManyFiles,
    /// It cannot be read.
    Unreadable,
    /// It ended while it was read.
    Short,
    /// Another error of the kernel.
    Errno { errno: i32 },
    /// It did not answer in time.
    Silent { milliseconds: u64 },
    /// Operations that were begun on it before have not ended.
    Busy,
}

impl DriveOpenFault {
    /// Somebody else has it, and may let go of it (after kill -9: the daemon before us).
    pub fn is_held(&self) -> bool {
        use DriveOpenFault as F;
        matches!(
            self,
            F::InUseThrough { .. } | F::InUse { .. } | F::Open { .. } | F::Claimed | F::Locked | F::Busy
        )
    }
    /// There is nothing of that name.
    pub fn is_missing(&self) -> bool {
        matches!(self, DriveOpenFault::Missing | DriveOpenFault::NoSize)
    }
}

/// Who uses a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum DriveUser {
    /// A logical volume.
    Lvm { name: String },
    /// An encrypted device.
    Encrypted { name: String },
    /// A multipath device.
    Multipath { name: String },
    /// Another mapped device.
    Mapped { name: String },
    /// An md array.
    Md { name: String },
    /// Another device of the kernel.
    Device { name: String },
    /// A file system that is mounted there.
    Mount { path: String },
    /// Swap.
    Swap,
    /// This head, as another drive.
    ThisHead,
    /// A process, with its command line if that is known.
    Process { pid: u32, command: String },
    /// A process that is not known.
    AnotherProcess,
}
