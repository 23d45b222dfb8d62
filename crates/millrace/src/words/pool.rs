//! Words about pools.

use super::Said;
use finding::{PoolCause, PoolEvent, PoolNotice, PoolRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &PoolRefusal) -> Said {
    match *f {}
}

/// What happened.
pub fn event(f: &PoolEvent) -> String {
    match *f {}
}

/// Why something is not optimal.
pub fn cause(f: &PoolCause) -> Said {
    match *f {}
}

/// What is worth knowing.
pub fn notice(f: &PoolNotice) -> String {
    match *f {}
}
