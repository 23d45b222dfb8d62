//! Words about portals.

use super::Said;
use finding::{PortalCause, PortalEvent, PortalRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &PortalRefusal) -> Said {
    match *f {}
}

/// What happened.
pub fn event(f: &PortalEvent) -> String {
    match *f {}
}

/// Why something is not optimal.
pub fn cause(f: &PortalCause) -> Said {
    match *f {}
}
