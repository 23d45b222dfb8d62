//! Pools that this head lets go of, in the file `released` (docs/formats/state.md).
//!
//! While a pool is being released, both `released` and `pools` name it: a start that finds that brings the release to its
//! end, if the drives say so already, or takes the pool back. From then on it is a hint where the drives lay, so that an
//! import on the same head finds files too: who a drive is, its label says.

use crate::order::{Refusal, Weight};
use crate::steward::Office;
use crate::steward::health::drives::Probe;
use crate::steward::record::config::PoolConfig;
use crate::steward::record::files::{PoolRow, parse_pools, pools_text};
use base::Uuid;

/// The file.
pub(crate) const RELEASED: &str = "released";
const RELEASED_IS: &str = "# Pools that this head let go of, and where their drives lay.";
/// So many pools are remembered, the latest ones.
const POOLS_MAX: usize = 64;

/// Whether a drive lives in the memory of the daemon that made it, and ends with it.
pub(crate) fn in_memory(spec: &str) -> bool {
    spec.starts_with("ram:") || spec.starts_with("null:")
}

/// Whether a drive has no name by which it could be meant again: each `ram:1G` is another.
pub(crate) fn anonymous(spec: &str) -> bool {
    let ram = spec.strip_prefix("ram:").is_some_and(|rest| !rest.contains(','));
    ram || spec.starts_with("null:")
}

/// Puts a pool last in a list, in place of what stood there of it. Drives that end with this daemon are found nowhere, and a
/// pool of no other drives is not listed. The oldest pools give way.
pub(crate) fn relist(rows: &mut Vec<PoolRow>, row: PoolRow) {
    rows.retain(|r| r.uuid != row.uuid);
    let drives: Vec<String> = row.drives.into_iter().filter(|d| !in_memory(d)).collect();
    if !drives.is_empty() {
        rows.push(PoolRow { drives, ..row });
    }
    let surplus = rows.len().saturating_sub(POOLS_MAX);
    rows.drain(..surplus);
}

impl Office {
    /// Reads the list.
    pub(crate) async fn read_released(&self, troubles: &mut Vec<String>) {
        let follows = "pools that were let go of are found by --drive alone, and none is released";
        let rows = self.read_known(RELEASED, follows, parse_pools, troubles).await.flatten();
        self.desk_mut().released = rows.unwrap_or_default();
    }
    /// A pool is let go of; its drives lie there. Nothing is remembered if that cannot be written.
    pub(crate) async fn list_released(&self, row: PoolRow) -> Result<(), Refusal> {
        let before = self.desk().released.clone();
        relist(&mut self.desk_mut().released, row);
        let written = self.write_released().await;
        if written.is_err() {
            self.desk_mut().released = before;
        }
        written
    }
    /// A pool is here again, or is no more.
    pub(crate) async fn forget_released(&self, pool: Uuid) {
        let before = self.desk().released.len();
        self.desk_mut().released.retain(|r| r.uuid != pool);
        if self.desk().released.len() != before {
            // One that stays is of a pool whose drives say that this head has it, or of none.
            let _ = self.write_released().await;
        }
    }
    pub(crate) async fn write_released(&self) -> Result<(), Refusal> {
        let contents = pools_text(RELEASED_IS, &self.desk().released);
        self.write_file(RELEASED, contents).await
    }
    /// Whether a release by this head was cut off before the list of pools said so, by what was found of the pool: some
    /// drive is marked as released, by this head, and nobody else has had the pool since. Then it is brought to its end,
    /// and the drives are let go of.
    pub(crate) async fn ends_release(&self, row: &PoolRow, probes: &[Probe]) -> bool {
        let latest = probes.iter().filter_map(|p| p.record.as_ref().ok()).max_by_key(|r| r.counter);
        let me = self.desk().system.uuid;
        let begun = self.desk().released.iter().any(|r| r.uuid == row.uuid)
            && newest_config(probes).is_some_and(|c| c.holder.is_nil())
            && latest.is_some_and(|r| r.head == me);
        if !begun {
            return false;
        }
        probes.iter().for_each(|p| self.let_go(p.id));
        self.desk_mut().absent.retain(|p| p.uuid != row.uuid);
        // If it stays listed, the next start finds the same.
        let _ = self.write_pools().await;
        self.remove_witness(row.uuid).await;
        self.remove_kept(row.uuid).await;
        if self.desk().ready {
            self.publish().await;
        }
        let now = self.cx.now();
        let message = "its release had been cut off, and was brought to its end";
        self.desk_mut().event(now, Weight::Note, format!("pool {}", row.name), message);
        true
    }
    /// Where drives of pools lay that are not here: of one, by name or UUID, or of all.
    pub(crate) fn places_of_absent(&self, pool: Option<&str>) -> Vec<String> {
        let desk = self.desk();
        let wanted: Option<Uuid> = pool.and_then(|p| p.parse().ok());
        let absent = desk.absent.iter().map(|p| (&p.name, p.uuid, &p.drives));
        let released = desk.released.iter().map(|r| (&r.name, r.uuid, &r.drives));
        let mine = absent
            .chain(released)
            .filter(|(name, uuid, _)| pool.is_none_or(|p| p == name.as_str()) || wanted == Some(*uuid));
        mine.flat_map(|(.., drives)| drives).filter(|d| !in_memory(d)).cloned().collect()
    }
}

/// The configuration that was written last, of all that were found.
fn newest_config(probes: &[Probe]) -> Option<PoolConfig> {
    let slots = probes.iter().filter_map(|p| p.config.as_ref().ok());
    PoolConfig::of_slot(slots.max_by_key(|c| c.generation)?).ok()
}
