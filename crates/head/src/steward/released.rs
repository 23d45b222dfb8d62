//! Where the drives of pools lay that this head let go of: so that an import on the same head finds files too.
//!
//! Hints and nothing else: who a drive is, its label says. Kept in the file `released` (docs/formats/state.md), whose
//! loss costs the operator a `--drive`.

use super::Office;
use super::files::{PoolRow, parse_pools, pools_text};
use base::Uuid;
use base::machine::StateOp;

const FILE: &str = "released";
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

impl Office {
    /// Reads the hints. The error is a sentence.
    pub(crate) async fn read_released(&self) -> Result<(), String> {
        let bytes = self.read_file(FILE).await?.unwrap_or_default();
        let rows = parse_pools(&bytes)
            .map_err(|e| format!("the file {FILE} of the state directory, line {}: {}", e.line, e.message))?;
        self.desk_mut().released = rows;
        Ok(())
    }
    /// A pool was let go of; its drives lay there.
    pub(crate) async fn remember_released(&self, row: PoolRow) {
        let drives: Vec<String> = row.drives.iter().filter(|d| !in_memory(d)).cloned().collect();
        {
            let rows = &mut self.desk_mut().released;
            rows.retain(|r| r.uuid != row.uuid);
            if !drives.is_empty() {
                rows.push(PoolRow { drives, ..row });
            }
            let surplus = rows.len().saturating_sub(POOLS_MAX);
            rows.drain(..surplus);
        }
        self.write_released().await;
    }
    /// A pool is here again, or is no more.
    pub(crate) async fn forget_released(&self, pool: Uuid) {
        let before = self.desk().released.len();
        self.desk_mut().released.retain(|r| r.uuid != pool);
        if self.desk().released.len() != before {
            self.write_released().await;
        }
    }
    async fn write_released(&self) {
        let contents = pools_text(&self.desk().released).into_bytes();
        // A hint that cannot be kept is worth no refusal: the operator can name the drives.
        let _ = self.cx.state(StateOp::Write { name: FILE.into(), contents }).await;
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
