//! Words about legs.

use super::Said;
use finding::{LegCause, LegEvent, LegNotice, LegRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &LegRefusal) -> Said {
    match *f {}
}

/// What happened.
pub fn event(f: &LegEvent) -> String {
    match *f {}
}

/// Why something is not optimal.
pub fn cause(f: &LegCause) -> Said {
    match *f {}
}

/// What is worth knowing.
pub fn notice(f: &LegNotice) -> String {
    match *f {}
}
