//! Asymmetric Namespace Access (NVMe Base 2.0 8.1): the path state that a controller reports to its host.
//!
//! One group has all namespaces, as a head reaches all volumes equally well. Only two states are ever reported, and commands are
//! carried out in both.

use super::namespaces::Namespaces;
use crate::spec::log::{AnaGroup, AnaHeader};
use base::view::{PathState, View};
use zerocopy::{FromZeros, IntoBytes};

/// The one group, in which every namespace is for life.
pub(crate) const GROUP: u32 = 1;
/// ANATT, in seconds. No transition takes time here, but it may not be 0.
pub(crate) const TRANSITION_SECONDS: u8 = 10;
/// ANACAP (NVMe Base 2.0 5.17.2.1): *optimized* (bit 0) and *non-optimized* (bit 1) are reported, and a namespace's group
/// does not change while a controller has it (bit 6).
pub(crate) const CAPABILITIES: u8 = 1 | 1 << 1 | 1 << 6;

/// One controller's path.
#[derive(Debug)]
pub(crate) struct Ana {
    state: PathState,
    /// How often the log page has changed since the controller was reset.
    changes: u64,
}

impl Ana {
    /// None: the head is alone, and there is nothing to report.
    pub fn of(view: &View) -> Option<Self> {
        Some(Self { state: view.path()?, changes: 0 })
    }
    /// The controller was reset: its count starts again (NVMe Base 2.0 5.16.1.13).
    pub fn reset(&mut self) {
        self.changes = 0;
    }
    /// There is a new view; `listed`: there are other namespaces than before. True: the state is another one.
    ///
    /// It is reported also while the group has no namespace: the host may keep what it read last, and believe it when
    /// a namespace comes.
    pub fn on_view(&mut self, view: &View, listed: bool) -> bool {
        let was = core::mem::replace(&mut self.state, view.path_of(view.head));
        let changed = was != self.state;
        self.changes += u64::from(changed || listed);
        changed
    }
    /// The log page (NVMe Base 2.0 5.16.1.13): the group, if it has a namespace of this host. `groups_only`: without the ids.
    pub fn log(&self, namespaces: &Namespaces, groups_only: bool) -> Vec<u8> {
        let mut header = AnaHeader::new_zeroed();
        header.changes = self.changes.into();
        let count = namespaces.iter().count();
        if count == 0 {
            return header.as_bytes().to_vec();
        }
        header.groups = 1.into();
        let mut group = AnaGroup::new_zeroed();
        group.id = GROUP.into();
        // 0 would say that changes are not counted.
        group.changes = (self.changes + 1).into();
        group.state = match self.state {
            PathState::Optimized => AnaGroup::OPTIMIZED,
            PathState::NonOptimized => AnaGroup::NON_OPTIMIZED,
        };
        let listed = if groups_only { 0 } else { count };
        group.namespaces = (listed as u32).into();
        let mut out = [header.as_bytes(), group.as_bytes()].concat();
        out.extend(namespaces.iter().take(listed).flat_map(|n| n.nsid.to_le_bytes()));
        out
    }
}
