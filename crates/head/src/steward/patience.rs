//! How long procedures wait.

use crate::steward::runtime::Patience;
use base::Duration;

/// How long after a leg was put out it is tried first to take it back, and how often then. Each return
/// doubles it, so that a drive that comes and goes does not keep its mirror copying.
const RETURN_AFTER: Duration = Duration::from_secs(10);

const RETURN_DOUBLES_MAX: u32 = 6;

/// See `RETURN_AFTER`.
pub(crate) fn return_after(returns: u32) -> Duration {
    RETURN_AFTER * (1 << returns.min(RETURN_DOUBLES_MAX))
}

/// How long a start waits for drives that somebody holds, and how often it looks. A pool with a leg that does not answer is
/// up within `START_MAX`: drives are looked at once more at the end of it, and where they may be today.
pub(crate) const CLAIM_PATIENCE: Duration = Duration::from_secs(4);

/// A pool that needs nothing of a drive that hangs, or is held, serves after that time.
pub(crate) const START_MAX: Duration = Duration::from_secs(10);

const _: () = assert!(CLAIM_PATIENCE.as_secs() + 2 * Patience::PROMPT.look.as_secs() <= START_MAX.as_secs());

pub(crate) const CLAIM_RETRY: Duration = Duration::from_millis(300);

/// How long a drive may take to come back from the kernel.
pub(crate) const RETURN_PATIENCE: Duration = Duration::from_secs(5);

/// How long shards may take to become quiet, and drives to come back from the kernel.
pub(crate) const QUIET_PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked for where it was: hosts wait for it, and a path that leads nowhere costs nothing.
pub(crate) const LOOK_AFTER: Duration = Duration::from_secs(1);
