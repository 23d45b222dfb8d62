//! Words about systems.

use super::Said;
use finding::{SystemCause, SystemEvent, SystemNotice, SystemRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &SystemRefusal) -> Said {
    match f {
        SystemRefusal::Stopping => Said::new("the head is stopping").then("millrace status"),
    }
}

/// What happened.
pub fn event(f: &SystemEvent) -> String {
    match f {
        SystemEvent::HeadServes => "the head serves".into(),
    }
}

/// Why something is not optimal.
pub fn cause(f: &SystemCause) -> Said {
    match *f {}
}

/// What is worth knowing.
pub fn notice(f: &SystemNotice) -> String {
    match f {
        SystemNotice::LinkShared { address } => format!(
            "{address} is an address of the link and of a portal: what hosts send there delays heartbeats, so give the link a network of its own"
        ),
    }
}
