//! What this head has decided: who it is, who may come, where it listens, which pools it has and what they are. It is all that a
//! second head must know to go on; docs/rfcs/0006-state-and-change.md says what is not part of it.
//!
//! ```text
//! a procedure proposes a Change ─▶ check: refused, nothing has happened
//!                                ─▶ durable: drives and files that the change concerns
//!                                ─▶ apply: cannot fail ─▶ published, answered
//! ```
//!
//! Plain data: no IO, no time, nothing shared that could change, no sentence. Two states that took the same changes are equal.

mod apply;
pub mod change;
mod check;
mod codec;
pub mod config;
pub mod extras;
pub mod journal;
#[cfg(test)]
mod tests;

pub use change::{Change, Edit};
pub use check::Invalid;

use access::Hosts;
use array::format::{ConfigSlot, MembershipRecord};
use base::view::Portal;
use base::{PortalId, Uuid};
use config::PoolConfig;
use std::sync::Arc;

/// Pools on a list, the latest ones.
const LISTED_MAX: usize = 64;

/// The names of a head, for life.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Its own.
    pub uuid: Uuid,
    /// NVMe qualified name of its subsystem.
    pub nqn: String,
    /// iSCSI name of its target.
    pub iqn: String,
    /// Serial number, at most 20 ASCII characters.
    pub serial: String,
}

/// A pool in a list of the state directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolRow {
    /// The pool.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Where its drives lie, or lay.
    pub drives: Vec<String>,
}

/// A list of pools in the state directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    /// Pools that are being made, and drives that come to a pool or leave it.
    Creating,
    /// Pools that this head let go of.
    Released,
}

/// A pool that this head has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    config: PoolConfig,
    generation: u64,
    record: MembershipRecord,
}

impl Pool {
    /// A pool that comes: it is part of a state once that applied `PoolCame`.
    pub fn coming(config: PoolConfig, generation: u64, record: MembershipRecord) -> Self {
        Self { config, generation, record }
    }
    /// The same of the next generation.
    pub fn renewed(&self) -> Self {
        Self { generation: self.generation + 1, ..self.clone() }
    }
    /// What it is.
    pub fn config(&self) -> &PoolConfig {
        &self.config
    }
    /// Generation of that configuration.
    pub fn generation(&self) -> u64 {
        self.generation
    }
    /// Who is a member.
    pub fn record(&self) -> &MembershipRecord {
        &self.record
    }
    /// Its configuration as it lies on drives.
    pub fn slot(&self) -> ConfigSlot {
        self.config.slot(self.generation)
    }
}

/// A pool that this head has, and whose drives are away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Away {
    row: PoolRow,
    generation: u64,
    config: Option<PoolConfig>,
}

impl Away {
    /// Its name, and where its drives lay.
    pub fn row(&self) -> &PoolRow {
        &self.row
    }
    /// What it was when something of it was written last, and the generation of that; None if that is not known, or is another
    /// head's now.
    pub fn config(&self) -> Option<(&PoolConfig, u64)> {
        self.config.as_ref().map(|c| (c, self.generation))
    }
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Changes that it took.
    number: u64,
    identity: Identity,
    hosts: Hosts,
    portals: Vec<Portal>,
    /// The number that was given to a portal last, from 1; 0 before the first.
    portal_last: u16,
    creating: Vec<PoolRow>,
    released: Vec<PoolRow>,
    /// By UUID, as are those that are away: the order in which they came says nothing.
    pools: Vec<Arc<Pool>>,
    away: Vec<Arc<Away>>,
}

impl State {
    /// How many changes it took; they are counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }
    /// The names of this head.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }
    /// Who may come.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }
    /// Where it listens, in the order in which portals were added.
    pub fn portals(&self) -> &[Portal] {
        &self.portals
    }
    /// The number that was given to a portal last.
    pub fn portal_last(&self) -> u16 {
        self.portal_last
    }
    /// A list, oldest first.
    pub fn list(&self, list: List) -> &[PoolRow] {
        match list {
            List::Creating => &self.creating,
            List::Released => &self.released,
        }
    }
    /// The pools that this head has and that are here, by UUID.
    pub fn pools(&self) -> &[Arc<Pool>] {
        &self.pools
    }
    /// One of them.
    pub fn pool(&self, uuid: Uuid) -> Option<&Arc<Pool>> {
        self.pools.iter().find(|p| p.config.uuid == uuid)
    }
    /// Those that are away, by UUID.
    pub fn away(&self) -> &[Arc<Away>] {
        &self.away
    }
    /// Two states that say the same, wherever their drives lie and however many changes each took.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let plain = |s: &Self| Self { number: 0, ..s.clone() };
        plain(self) == plain(other)
    }
}

/// What a change concerns: what becomes durable before it is applied, and who is told of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Concerned {
    /// Files of the state directory.
    pub files: Vec<String>,
    /// Drives whose metadata says it.
    pub drives: Vec<Uuid>,
    /// Every shard is told.
    pub shards: bool,
}

impl State {
    /// What a change of this state concerns.
    pub fn concerned(&self, change: &Change) -> Concerned {
        let file = |name: &str| vec![name.to_string()];
        let drives = |pool: Uuid| {
            let legs = self.pool(pool).into_iter().flat_map(|p| &p.config.arrays).flat_map(|a| &a.legs);
            legs.map(|l| l.drive).collect::<Vec<_>>()
        };
        let legs = |config: &PoolConfig| -> Vec<Uuid> {
            config.arrays.iter().flat_map(|a| &a.legs).map(|l| l.drive).collect()
        };
        let none = Concerned::default;
        match change {
            Change::Identified { .. } => Concerned { files: file("identity"), shards: true, ..none() },
            Change::HostPut { .. } | Change::HostRemoved { .. } => {
                Concerned { files: file("hosts"), shards: true, ..none() }
            }
            Change::PortalPut { .. } | Change::PortalRemoved { .. } | Change::PortalsCounted { .. } => {
                Concerned { files: file("portals"), shards: true, ..none() }
            }
            Change::Listed { list, .. } | Change::Unlisted { list, .. } => {
                let name = match list {
                    List::Creating => "creating",
                    List::Released => "released",
                };
                Concerned { files: file(name), ..none() }
            }
            Change::PoolCame { config, .. } => {
                let files = vec![
                    "pools".into(),
                    format!("config-{}", config.uuid),
                    format!("witness-{}", config.uuid),
                ];
                Concerned { files, drives: legs(config), shards: true }
            }
            Change::PoolLeft { pool } => {
                Concerned { files: file("pools"), drives: drives(*pool), shards: true }
            }
            Change::Configured { pool, .. } => {
                Concerned { files: vec![format!("config-{pool}")], drives: drives(*pool), shards: true }
            }
            Change::DriveMoved { .. } => Concerned { files: file("pools"), ..none() },
            Change::Member { record } => Concerned {
                files: vec![format!("witness-{}", record.pool)],
                drives: drives(record.pool),
                shards: true,
            },
            Change::PoolAway { .. } | Change::AwayEnded { .. } => {
                Concerned { files: file("pools"), shards: true, ..none() }
            }
        }
    }
}

/// The portal's number in the file and for hosts: NVMe port id, portal group tag and relative port are this.
pub(crate) fn portal_number(id: PortalId) -> u16 {
    (id.0 + 1) as u16
}
