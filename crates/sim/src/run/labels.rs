//! Labels that somebody wrote over: what must be said of them, and by when.

use super::failed::named;
use super::options::Overwrite;
use crate::disk::Disk;
use array::format::{BITMAP_AT, LABEL_AT, Label, RECORD_BYTES, label_copy_at, tail_at};
use base::{Duration, Instant, Uuid};
use finding::{Cause, Event, LegCause, LegEvent};
use head::order::{Drive, DriveRole, Order, Status};
use std::collections::BTreeMap;

/// Within this time `status` says that a label was overwritten: a look every 5 s, one that had begun, and slow drives.
const SAID: Duration = Duration::from_secs(15);

/// Drives that somebody wrote over.
#[derive(Default)]
pub struct Labels {
    /// By number: what was written where, until an order names the drive.
    others: BTreeMap<usize, (u64, Vec<u8>)>,
    /// By path: since when something must be said.
    unsaid: BTreeMap<String, Instant>,
}

impl Labels {
    /// Somebody writes over a drive.
    pub fn overwrite(&mut self, now: Instant, number: usize, disk: &mut Disk, what: Overwrite) {
        let zeroes = |len: u64| vec![0; len as usize];
        let record = RECORD_BYTES as u64;
        let (copy, tail) = (label_copy_at(disk.bytes), tail_at(disk.bytes));
        let others = match what {
            Overwrite::First => {
                disk.is_overwritten(LABEL_AT, &zeroes(record));
                None
            }
            Overwrite::Copies => {
                disk.is_overwritten(LABEL_AT, &zeroes(record));
                disk.is_overwritten(copy, &zeroes(record));
                None
            }
            Overwrite::Ends => {
                disk.is_overwritten(0, &zeroes(BITMAP_AT));
                disk.is_overwritten(tail, &zeroes(1 << 20));
                None
            }
            Overwrite::FileSystem => {
                let mut bytes = vec![0x5a; 4 * RECORD_BYTES];
                // The magic of ext4's super block.
                bytes[1024 + 56..1024 + 58].copy_from_slice(b"\x53\xef");
                Some((0, bytes))
            }
            Overwrite::OtherLabel => {
                let label = Label {
                    pool: Uuid([0xee; 16]),
                    drive: Uuid([0xef; 16]),
                    legs: 2,
                    block_bytes: disk.sector as u32,
                    data_at: 8 << 20,
                    data_bytes: 16 << 20,
                    region_bytes: 1 << 20,
                    pool_name: "other".into(),
                    ..Label::usual(disk.bytes)
                };
                Some((LABEL_AT, label.encode()))
            }
        };
        if let Some((at, bytes)) = others {
            disk.is_overwritten(at, &bytes);
            self.others.insert(number, (at, bytes));
        }
        self.unsaid.insert(disk.spec.clone(), now);
    }

    /// A head begins: nobody could look before.
    pub fn reborn(&mut self, now: Instant) {
        self.unsaid.values_mut().for_each(|since| *since = now);
    }

    /// An order goes out: whatever it does with a drive that it names is meant.
    pub fn ordered(&mut self, order: &Order) {
        for drive in named(order) {
            self.unsaid.remove(drive);
            self.others.retain(|number, _| *drive != format!("d{number}"));
        }
    }

    /// What `status` says, beside what lies on the drives.
    pub fn verdict(&mut self, now: Instant, snapshot: &Status, disks: &[Disk]) -> Result<(), String> {
        for (number, (at, bytes)) in &self.others {
            let mut there = vec![0; bytes.len()];
            disks[*number].read(*at, &mut there);
            if there != *bytes {
                return Err(format!(
                    "labels: what somebody wrote on d{number} was written over, and no order said so"
                ));
            }
        }
        self.unsaid.retain(|drive, _| !says(snapshot, drive));
        // A head without its pools has another trouble, which it tells.
        let serves = snapshot.pools.iter().all(|p| !p.arrays.is_empty());
        match self.unsaid.iter().find(|(_, since)| serves && now.since(**since) > SAID) {
            Some((drive, _)) => Err(format!("labels: that of {drive} was written over, and nobody says so")),
            None => Ok(()),
        }
    }
}

/// Whether something is said of the label of a drive.
fn says(snapshot: &Status, drive: &str) -> bool {
    let rewritten = snapshot.events.iter().any(|e| {
        e.what == format!("drive {drive}") && matches!(e.event, Event::Leg(LegEvent::LabelRewritten { .. }))
    });
    rewritten || snapshot.drives.iter().any(|d| d.path == drive && d.cause.as_ref().is_some_and(is_of_label))
}

fn is_of_label(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Leg(
            LegCause::LabelDamaged { .. }
                | LegCause::DriveOverwrittenInUse { .. }
                | LegCause::FrontOverwritten { .. }
        )
    )
}

/// What an operator does about it. What nothing else holds comes first: from there the rest is copied.
pub fn nursing(snapshot: &Status) -> Vec<Order> {
    let ours = snapshot.drives.iter().filter(|d| matches!(d.role, DriveRole::Leg | DriveRole::Missing));
    let order = |d: &Drive| match &d.cause {
        Some(Cause::Leg(
            LegCause::DriveOverwrittenInUse { last: true, .. } | LegCause::FrontOverwritten { .. },
        )) => Some(Order::DriveRestoreLabel { drive: d.path.clone(), force: true, disconnect: true }),
        Some(Cause::Leg(LegCause::DriveOverwrittenInUse { last: false, .. })) => {
            Some(Order::DriveReplace { old: d.path.clone(), new: d.path.clone(), force: true })
        }
        _ => None,
    };
    ours.filter_map(order).collect()
}
