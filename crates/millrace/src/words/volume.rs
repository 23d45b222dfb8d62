//! Words about volumes.

use super::Said;
use finding::{VolumeEvent, VolumeNotice, VolumeRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &VolumeRefusal) -> Said {
    match *f {}
}

/// What happened.
pub fn event(f: &VolumeEvent) -> String {
    match *f {}
}

/// What is worth knowing.
pub fn notice(f: &VolumeNotice) -> String {
    match *f {}
}
