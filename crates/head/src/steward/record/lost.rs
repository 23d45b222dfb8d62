//! Files of the state directory that are not there, though they were: what they said is found out from the others, as far as
//! those know it, and told (docs/formats/state.md, "What is lost").

use crate::steward::context::head::HeadContext;
use crate::steward::context::loss::Loss;
use crate::steward::procedures::Procedures;
use crate::steward::record::kept::KEPT;
use crate::steward::record::texts::{CREATING, EVENTS, HOSTS, IDENTITY, POOLS, PORTALS, RELEASED, WITNESS};
use crate::steward::state::PoolRow;
use crate::steward::state::config::PoolConfig;
use array::format::MembershipRecord;
use base::Uuid;
use base::machine::{StateError, StateOp};
use finding::{ListFault, RecordCause, RecordEvent, RecordNotice};
use std::collections::BTreeSet;

/// Whether a file tells of a head that was, and not only of somebody who tried whether one can be written.
pub(crate) fn tells(name: &str) -> bool {
    [IDENTITY, HOSTS, PORTALS, POOLS, RELEASED, CREATING, EVENTS].contains(&name)
        || name.starts_with(KEPT)
        || name.starts_with(WITNESS)
}

/// A pool as `pools` names it, by its configuration.
fn row_of(config: &PoolConfig) -> PoolRow {
    let legs = config.arrays.iter().flat_map(|a| &a.legs).map(|l| l.path.clone());
    let drives = legs.chain(config.extras.spares.iter().map(|s| s.path.clone())).collect();
    PoolRow { uuid: config.uuid, name: config.name.clone(), drives }
}

impl Procedures {
    /// Names of the files in the state directory that tell of a head.
    pub(crate) async fn files_there(&self) -> BTreeSet<String> {
        let all = self.list_files().await.unwrap_or_default();
        all.into_iter().filter(|n| tells(n)).collect()
    }
    /// Names of all files in the state directory.
    pub(crate) async fn list_files(&self) -> Result<Vec<String>, StateError> {
        let bytes = self.cx.state(StateOp::List).await?;
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_string).collect())
    }

    /// The pools of this head: those that the file `pools` names (None if there is none that can be read), and those that
    /// it should name. What is kept for hosts of pools that this head let go of is removed.
    pub(crate) async fn find_lost(&self, rows: Option<Vec<PoolRow>>) -> Vec<PoolRow> {
        let missing = rows.is_none();
        let mut rows = rows.unwrap_or_default();
        let me = self.context().me();
        let nameless = self.check_read(IDENTITY).is_err();
        let mut lost = vec![];
        for file in self.files_there().await {
            let uuid = file.strip_prefix(KEPT).and_then(|u| u.parse::<Uuid>().ok());
            let is_new = |u: &Uuid| rows.iter().all(|r| r.uuid != *u) && !self.context().is_unknown_pool(*u);
            let Some(uuid) = uuid.filter(is_new) else { continue };
            // One that cannot be read says nothing; it is told if the pool is one of ours.
            let Ok(Some(config)) = self.read_kept_config(uuid).await else { continue };
            let released = self.context().released().iter().any(|r| r.uuid == uuid);
            if config.holder == me || nameless && !released {
                if !released {
                    lost.push(config.name.clone());
                }
                rows.push(row_of(&config));
            } else if released && !nameless {
                self.remove_kept(uuid).await;
            }
        }
        if !lost.is_empty() {
            let why = match missing {
                true if self.check_read(POOLS).is_err() => ListFault::Unread,
                true => ListFault::Missing,
                false => ListFault::Incomplete,
            };
            let (file, now) = (POOLS.to_string(), self.cx.now());
            let cause = RecordCause::PoolsFound { file: file.clone(), why: why.clone(), pools: lost.clone() };
            let loss = Loss { file: String::new(), cause };
            let mut context = self.context_mut();
            if !context.losses.contains(&loss) {
                let found = RecordEvent::PoolsFound { file, why, pools: lost };
                context.happened(now, "state directory", found);
                context.losses.push(loss);
            }
        }
        rows
    }

    /// A witness that is older than it can be in a directory that this head has kept using: that one was restored from a
    /// copy, or took nothing when the head fell. It proves nothing, but other files are as old. That ails nobody by itself.
    pub(crate) fn check_witness_age(
        &self,
        pool: &str,
        witness: Option<&MembershipRecord>,
        found: &MembershipRecord,
    ) {
        let me = self.context().me();
        if !witness.is_some_and(|w| found.head == me && w.counter + 1 < found.counter) {
            return;
        }
        let pool = pool.to_string();
        let notice = RecordNotice::StateOlderThanPool { pool: pool.clone() }.into();
        let now = self.cx.now();
        let mut context = self.context_mut();
        if !context.notices.contains(&notice) {
            context.happened(now, "state directory", RecordEvent::StateOlderThanPool { pool });
            context.notices.push(notice);
        }
    }
}

impl HeadContext {
    /// The file of hosts was not there at the start, and there were hosts.
    pub(crate) fn hosts_lost(&self) -> Option<Loss> {
        let grants = self.configs().flat_map(|c| c.grants.iter()).flat_map(|v| &v.grants);
        let unknown = grants.filter(|g| !self.hosts().iter().any(|h| g.is_for(h)));
        let names: BTreeSet<&String> = unknown.filter_map(|g| g.nqns.first().or(g.iqns.first())).collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        (self.hosts_missing && !names.is_empty()).then(|| Loss {
            file: String::new(),
            cause: RecordCause::HostsMissing { file: HOSTS.into(), hosts: names },
        })
    }
}
