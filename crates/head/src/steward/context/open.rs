//! A drive that is open, with its label.

use array::format::Label;
use base::{DriveError, DriveId, DriveInfo};
use finding::DriveFault;

#[derive(Clone)]
pub(crate) struct OpenDrive {
    pub id: DriveId,
    pub info: DriveInfo,
    pub label: Label,
}

impl OpenDrive {
    /// What it did.
    pub(crate) fn fault(&self, error: DriveError) -> DriveFault {
        DriveFault::of(&self.info, error)
    }
}
