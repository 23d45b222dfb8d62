//! Words about records.

use super::Said;
use finding::{RecordCause, RecordEvent, RecordNotice, RecordRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &RecordRefusal) -> Said {
    match *f {}
}

/// What happened.
pub fn event(f: &RecordEvent) -> String {
    match *f {}
}

/// Why something is not optimal.
pub fn cause(f: &RecordCause) -> Said {
    match *f {}
}

/// What is worth knowing.
pub fn notice(f: &RecordNotice) -> String {
    match *f {}
}
