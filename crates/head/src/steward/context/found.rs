//! What was found where a drive of a pool should be, and is not that drive as it was: files that were truncated, partitions
//! that were made anew, files that were made again empty, drives that changed places.

use crate::steward::context::open::OpenDrive;
use crate::steward::context::probe::Probe;
use array::format::Fault;
use base::DriveKind;
use base::Uuid;
use finding::{DriveFault, DriveOwner, LabelFault, LegCause, OpenFault, Signature};

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
    Other { path: String, what: Unlike },
    /// It is there, and could not be read: it hangs, or fails.
    Mute { path: String, fault: DriveFault },
    /// The drive, which somebody used without the others: it may hold what they lack.
    Apart { drive: Uuid, path: String, pool: String },
    /// The drive, of which it is not known that the other head is shut off it.
    NotShutOut { drive: Uuid, path: String },
    /// The drive itself, whole, and it lies at this path now.
    Moved { drive: Uuid, path: String },
    /// A drive that can be used, by the name that its label says.
    Drive { drive: Uuid, path: String, pool: String },
}

/// What lies there instead of a drive with a label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unlike {
    Holds(Signature),
    Labelled { pool: String },
    NoLabel,
    Label(LabelFault),
}

impl Found {
    pub fn of(probe: &Probe) -> Self {
        let path = probe.info.path.clone();
        let other = |what| Self::Other { path: path.clone(), what };
        match (&probe.label, probe.foreign) {
            (Ok(l), _) if l.drive_bytes > probe.info.bytes => Self::CutOff {
                drive: l.drive,
                bytes: probe.info.bytes,
                needed: l.drive_bytes,
                file: probe.info.kind == DriveKind::File,
                path,
            },
            (Ok(l), _) => Self::Drive { drive: l.drive, pool: l.pool_name.clone(), path },
            (Err(Fault::Absent), Some(holds)) => other(Unlike::Holds(holds)),
            (Err(Fault::Absent), None) => other(Unlike::NoLabel),
            (Err(fault), _) => other(Unlike::Label((*fault).into())),
        }
    }
    /// A drive in use to which somebody else wrote his own.
    pub fn taken(open: &OpenDrive, owner: &DriveOwner) -> Self {
        let path = open.info.path.clone();
        let what = match owner {
            DriveOwner::Signature { holds } => Unlike::Holds(*holds),
            DriveOwner::Pool { pool, .. } => Unlike::Labelled { pool: pool.clone() },
            DriveOwner::Newer => Unlike::Label(LabelFault::Newer),
        };
        Self::Other { path, what }
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
            | Self::NotShutOut { path, .. }
            | Self::Moved { path, .. }
            | Self::Drive { path, .. } => path,
        }
    }
    /// The drive that it is, whether it can be used or not.
    pub fn drive(&self) -> Option<Uuid> {
        match self {
            Self::CutOff { drive, .. }
            | Self::Apart { drive, .. }
            | Self::NotShutOut { drive, .. }
            | Self::Moved { drive, .. }
            | Self::Drive { drive, .. } => Some(*drive),
            Self::Other { .. } | Self::Mute { .. } => None,
        }
    }
    /// What is wrong with it as the drive that was looked for, last seen at `leg`.
    pub fn cause(&self, leg: &str) -> LegCause {
        let leg = leg.to_string();
        match self.clone() {
            Self::CutOff { path, bytes, needed, file, .. } => {
                LegCause::DriveTooSmall { leg, path, bytes, needed_bytes: needed, file }
            }
            Self::Other { path, what: Unlike::Holds(holds) } => {
                LegCause::DriveOverwritten { leg, path, holds }
            }
            Self::Other { what: Unlike::Labelled { pool }, .. } => LegCause::DriveExchanged { leg, pool },
            Self::Other { path, what: Unlike::NoLabel } => LegCause::DriveUnlabelled { leg, path },
            Self::Other { path, what: Unlike::Label(fault) } => {
                LegCause::DriveLabelUnreadable { leg, path, fault }
            }
            Self::Mute { fault, .. } => LegCause::DriveUnreadable { leg, fault },
            Self::Apart { path, pool, .. } => LegCause::DriveDiverged { leg, path, pool },
            Self::NotShutOut { path, .. } => {
                LegCause::DriveUnopened { drive: path, fault: OpenFault::NotShutOut }
            }
            Self::Moved { drive, path } => LegCause::DriveMoved { uuid: drive.to_string(), path },
            Self::Drive { pool, .. } => LegCause::DriveExchanged { leg, pool },
        }
    }
}
