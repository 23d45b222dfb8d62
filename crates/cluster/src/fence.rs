//! Rules for every part that shuts a head off drives: its deadlines, and which keys must go (docs/rfcs/0007-cluster.md, "Keys
//! say who may write"). The loop that asks drives is in the head (`head`, `steward/system/fence.rs`).

use crate::record::{are_of_one_head, is_outside};
use base::fence::Registrants;
use base::{Duration, FenceKey};

/// A drive is asked so long at most, and then counts as late.
pub const ASK: Duration = Duration::from_millis(200);
/// A drive that failed to answer is asked again after this.
pub const AGAIN: Duration = Duration::from_millis(300);
/// A head that leads passes on what drives answer for so long after a look at the voters began that found nothing newer. Who was cut off
/// may still reach a drive that the other one does not, and that one puts the leg out.
pub const SIGHT: Duration = Duration::from_millis(1500);
/// Behind this a leg that has not confirmed is to be put out: it exceeds `SIGHT`, with a margin for clocks that differ by a fifth each.
pub const PUT_OUT: Duration = Duration::from_millis(2500);

/// A key that is there and of a process that is out, of the head that `theirs` is any key of; `again`: the key under which it is in.
pub fn stale_key(there: &Registrants, theirs: FenceKey, again: Option<FenceKey>) -> Option<FenceKey> {
    let theirs = |k: &&FenceKey| are_of_one_head(**k, theirs) && !is_outside(**k) && Some(**k) != again;
    there.keys.iter().find(theirs).copied()
}
