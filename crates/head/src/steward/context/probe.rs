//! A drive that was opened and looked at.

use crate::steward::context::open::OpenDrive;
use array::format::{ConfigSlot, Fault, Features, Label, MembershipRecord, Newer};
use base::{DriveId, DriveInfo};
use finding::{LegCause, NewerRecord, RecordName, Signature};

/// A drive that was opened and looked at.
#[derive(Clone)]
pub(crate) struct Probe {
    /// As it was asked for.
    pub spec: String,
    pub id: DriveId,
    pub info: DriveInfo,
    pub label: Result<Label, Fault>,
    /// The name of what others left there.
    pub foreign: Option<Signature>,
    /// It has failed in a pool that is here: which, and why.
    pub failed: Option<LegCause>,
    /// Our label is there and something else too, in front.
    pub front_written: bool,
    /// Both copies of the label are there and the same. If not, part of the drive was overwritten or cut
    /// off behind our back, and nothing that its records say of its data can be believed.
    pub whole: bool,
    pub record: Result<MembershipRecord, Fault>,
    pub config: Result<ConfigSlot, Fault>,
}

impl Probe {
    /// The label, if the drive has one that may be used.
    pub fn good_label(&self) -> Option<&Label> {
        self.label.as_ref().ok().filter(|l| l.drive_bytes <= self.info.bytes)
    }
    /// What on the drive is of a newer program, so that this one may not write there. Who has found this drive among others has to
    /// ask: what is only newer in part still says whose it is.
    pub fn newer(&self) -> Option<NewerRecord> {
        fn part<R>(read: &Result<R, Fault>, features: impl Fn(&R) -> Features) -> Option<Newer> {
            match read {
                Ok(record) => features(record).forbids_writing(),
                Err(Fault::Newer(part)) => Some(*part),
                Err(Fault::Absent | Fault::Damaged) => None,
            }
        }
        let label = part(&self.label, |l| l.features).map(|p| (RecordName::Label, p));
        let membership = || part(&self.record, |r| r.features).map(|p| (RecordName::Membership, p));
        let config = || part(&self.config, |c| c.features).map(|p| (RecordName::Configuration, p));
        let (record, part) = label.or_else(membership).or_else(config)?;
        Some(NewerRecord { record, part: part.into() })
    }

    /// As a member of an array.
    pub fn opened(&self) -> Option<OpenDrive> {
        Some(OpenDrive { id: self.id, info: self.info.clone(), label: self.good_label()?.clone() })
    }
    /// Why the drive must not be taken without `force`; None if it is free.
    pub fn objection(&self) -> Option<LegCause> {
        if let Some(failed) = &self.failed {
            return Some(failed.clone());
        }
        let drive = self.info.path.clone();
        match (&self.label, self.foreign) {
            (Ok(l), _) => Some(LegCause::DriveLabelled {
                drive,
                pool: l.pool_name.clone(),
                uuid: l.pool.to_string(),
                unfinished: self.config.as_ref().is_ok_and(ConfigSlot::is_unfinished),
            }),
            (Err(Fault::Newer(part)), _) => Some(LegCause::DriveLabelNewer { drive, part: (*part).into() }),
            (Err(Fault::Damaged), _) => Some(LegCause::DriveLabelDamaged { drive }),
            (Err(Fault::Absent), Some(holds)) => Some(LegCause::DriveHolds { drive, holds }),
            (Err(Fault::Absent), None) => None,
        }
    }
}
