//! Who changes what the keeper of a pool works on keeps it from its work meanwhile. One does so after the other.

use crate::layout::PoolId;
use crate::steward::context::pool::PoolContext;
use crate::steward::procedures::Procedures;

/// The keeper of a pool does nothing as long as this lives, and nobody else holds it. Not dropped while the context is borrowed.
#[must_use]
pub(crate) struct KeeperHold {
    procedures: Procedures,
    pool: PoolId,
}

impl Drop for KeeperHold {
    fn drop(&mut self) {
        if let Some(p) = self.procedures.context_mut().pool_mut(self.pool) {
            p.hold(false);
        }
    }
}

impl Procedures {
    /// Keeps the keeper from its work, once it has ended what it is at. Holders follow each other: what one of them has proposed is on
    /// record, or is not any more, before the next one proposes something.
    pub(crate) async fn hold_keeper(&self, pool: PoolId) -> KeeperHold {
        let procedures = self.clone();
        self.cx.until(move || procedures.context().pool(pool).is_none_or(|p| !p.held)).await;
        let hold = self.take_hold(pool);
        let procedures = self.clone();
        self.cx.until(move || procedures.context().pool(pool).is_none_or(|p| !p.keeping)).await;
        hold
    }
    /// The same, if that needs no waiting.
    pub(crate) fn hold_resting_keeper(&self, pool: PoolId) -> Option<KeeperHold> {
        let rests = self.context().pool(pool).is_some_and(PoolContext::keeper_rests);
        rests.then(|| self.take_hold(pool))
    }
    fn take_hold(&self, pool: PoolId) -> KeeperHold {
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.hold(true);
        }
        KeeperHold { procedures: self.clone(), pool }
    }
}
