//! Pools that this head lets go of, in the file `released` (docs/formats/state.md).
//!
//! While a pool is being released, both `released` and `pools` name it: a start that finds that brings the release to its
//! end, if the drives say so already, or takes the pool back. From then on it is a hint where the drives lay, so that an
//! import on the same head finds files too: who a drive is, its label says.

use crate::order::Refusal;
use crate::steward::context::absent::AbsentPool;
use crate::steward::context::probe::Probe;
use crate::steward::pools::import::Claim;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{RELEASED, parse_pools};
use crate::steward::state::config::PoolConfig;
use crate::steward::state::{Change, List, PoolRow};
use array::format::MembershipRecord;
use base::DriveKind;
use base::Uuid;
use finding::{Notice, PoolEvent, PoolRefusal};

impl Claim {
    /// Refuses a pool that was released and that nobody asks for: it may be meant for another head, and may have been at one.
    /// A release by this head that was taken back has left an open record.
    pub fn check_released(
        &self,
        config: &PoolConfig,
        record: &MembershipRecord,
        me: Uuid,
    ) -> Result<(), Refusal> {
        let is_ours = record.head == me;
        if self.asked || !config.holder.is_nil() || is_ours && record.open {
            return Ok(());
        }
        Err(PoolRefusal::PoolWasReleased { pool: config.name.clone(), elsewhere: !is_ours }.into())
    }
}

impl Procedures {
    /// Reads the list.
    pub(crate) async fn read_released(&self, troubles: &mut Vec<Notice>) {
        let rows = self.read_known(RELEASED, |bytes| parse_pools(RELEASED, bytes), troubles).await.flatten();
        for row in rows.unwrap_or_default() {
            self.context_mut().apply(Change::Listed { list: List::Released, row });
        }
    }
    /// A pool is let go of; its drives lie there. Nothing is remembered if that cannot be written.
    pub(crate) async fn list_released(&self, row: PoolRow) -> Result<(), Refusal> {
        self.list(List::Released, row).await
    }
    /// A pool is here again, or is no more.
    pub(crate) async fn forget_released(&self, pool: Uuid) {
        // One that stays is of a pool whose drives say that this head has it, or of none.
        let _ = self.unlist(List::Released, pool).await;
    }
    /// Whether a release by this head was cut off before the list of pools said so, by what was found of the pool: some
    /// drive is marked as released, by this head, and nobody else has had the pool since. Then it is brought to its end,
    /// and the drives are let go of.
    pub(crate) async fn ends_release(&self, row: &PoolRow, probes: &[Probe]) -> bool {
        let latest = probes.iter().filter_map(|p| p.record.as_ref().ok()).max_by_key(|r| r.counter);
        let me = self.context().me();
        let begun = self.context().released().iter().any(|r| r.uuid == row.uuid)
            && newest_config(probes).is_some_and(|c| c.holder.is_nil())
            && latest.is_some_and(|r| r.head == me);
        if !begun {
            return false;
        }
        probes.iter().for_each(|p| self.let_go(p.id));
        self.context_mut().forget_absent(row.uuid);
        // If it stays listed, the next start finds the same.
        let _ = self.write_pools().await;
        self.remove_witness(row.uuid).await;
        self.remove_kept(row.uuid).await;
        if self.context().ready {
            self.publish().await;
        }
        let now = self.cx.now();
        self.context_mut().happened(now, format!("pool {}", row.name), PoolEvent::ReleaseEnded);
        true
    }
    /// Where drives of pools lay that are not here: of one, by name or UUID, or of all.
    pub(crate) fn places_of_absent(&self, pool: Option<&str>) -> Vec<String> {
        let context = self.context();
        let wanted: Option<Uuid> = pool.and_then(|p| p.parse().ok());
        let rows = context.absent.iter().map(AbsentPool::row).chain(context.released());
        let mine = rows.filter(|r| pool.is_none_or(|p| p == r.name) || wanted == Some(r.uuid));
        mine.flat_map(|r| &r.drives).filter(|d| DriveKind::of(d).survives_restart()).cloned().collect()
    }
}

/// The configuration that was written last, of all that were found.
fn newest_config(probes: &[Probe]) -> Option<PoolConfig> {
    let slots = probes.iter().filter_map(|p| p.config.as_ref().ok());
    PoolConfig::of_slot(slots.max_by_key(|c| c.generation)?).ok()
}
