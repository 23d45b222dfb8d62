//! A drive that is open, with its label.

use crate::steward::words::did;
use array::format::Label;
use base::{DriveError, DriveId, DriveInfo};

#[derive(Clone)]
pub(crate) struct OpenDrive {
    pub id: DriveId,
    pub info: DriveInfo,
    pub label: Label,
}

impl OpenDrive {
    /// What it did, after "the drive".
    pub(crate) fn did(&self, error: DriveError) -> String {
        did(&self.info, error)
    }
}
