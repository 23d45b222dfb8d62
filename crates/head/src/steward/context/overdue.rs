//! The order that nobody waits for any more.

use base::Instant;

/// An order that was not over at its limit, and goes on.
#[derive(Clone, Debug)]
pub(crate) struct Overdue {
    /// The command.
    pub order: &'static str,
    /// When it began.
    pub since: Instant,
}
