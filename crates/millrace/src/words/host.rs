//! Words about hosts.

use super::Said;
use finding::{HostCause, HostEvent, HostNotice, HostRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &HostRefusal) -> Said {
    match *f {}
}

/// What happened.
pub fn event(f: &HostEvent) -> String {
    match *f {}
}

/// Why something is not optimal.
pub fn cause(f: &HostCause) -> Said {
    match *f {}
}

/// What is worth knowing.
pub fn notice(f: &HostNotice) -> String {
    match *f {}
}
