//! The namespaces that one host sees: a copy made when the view changes, so that commands find theirs
//! by one binary search.

use base::view::Host;
use base::{Uuid, VolumeId};
use std::collections::BTreeSet;

/// Largest namespace id, and most namespaces (NN, MNAN).
pub const NSID_MAX: u32 = 1024;

/// One namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    pub nsid: u32,
    pub volume: VolumeId,
    pub uuid: Uuid,
    pub blocks: u64,
    pub block_bytes: u32,
    pub deallocate: bool,
}

/// All of a host's namespaces, by id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Namespaces(Vec<Namespace>);

impl Namespaces {
    pub fn of(host: Option<&Host>) -> Self {
        let exports = host.map_or(&[][..], |h| &h.exports);
        let one = |e: &base::view::Export| Namespace {
            nsid: e.nsid,
            volume: e.volume,
            uuid: e.uuid,
            blocks: e.blocks,
            block_bytes: e.block_bytes,
            deallocate: e.deallocate,
        };
        Self(exports.iter().filter(|e| (1..=NSID_MAX).contains(&e.nsid)).map(one).collect())
    }
    pub fn get(&self, nsid: u32) -> Option<&Namespace> {
        let i = self.0.binary_search_by_key(&nsid, |n| n.nsid).ok()?;
        Some(&self.0[i])
    }
    pub fn iter(&self) -> impl Iterator<Item = &Namespace> {
        self.0.iter()
    }
    /// The first namespace after `nsid`.
    pub fn after(&self, nsid: u32) -> Option<&Namespace> {
        self.0.get(self.0.partition_point(|n| n.nsid <= nsid))
    }
    /// Ids that came, went, or are not what they were in `old`.
    pub fn changed_since(&self, old: &Namespaces) -> BTreeSet<u32> {
        let ids = old.0.iter().chain(&self.0).map(|n| n.nsid);
        ids.filter(|id| old.get(*id) != self.get(*id)).collect()
    }
}
