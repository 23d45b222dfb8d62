//! What an operator does while hosts work and things break: a scrub, in one world of four.
//!
//! Nothing rots in these worlds, so a scrub that says that legs differ is a false alarm, whatever hosts
//! write beside it and however often the head is ended in the middle.

use head::order::{Order, ScrubAction, Snapshot};

/// Orders that follow those that build the system.
pub fn orders(seed: u64) -> Option<Order> {
    let action = ScrubAction::Start { repair: seed % 8 == 3, prefer: None };
    (seed % 4 == 3).then(|| Order::PoolScrub { pool: "tank".into(), action })
}

/// What a scrub must not have said.
pub fn verdict(snapshot: &Snapshot) -> Result<(), String> {
    for pool in &snapshot.pools {
        if pool.scrub.differed_bytes > 0 {
            return Err(format!("a scrub raised a false alarm: {:?}", pool.scrub));
        }
    }
    Ok(())
}
