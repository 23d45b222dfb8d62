//! The namespaces that one host sees: a copy made when the view changes, so that commands find theirs
//! by one binary search.

use base::view::{Host, NSID_MAX};
use base::{Uuid, VolumeId};
use std::collections::BTreeSet;

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
    /// The same ids, whatever they stand for.
    pub fn same_ids(&self, other: &Namespaces) -> bool {
        self.iter().map(|n| n.nsid).eq(other.iter().map(|n| n.nsid))
    }
    /// Ids that came, went, or are not what they were in `old`.
    pub fn changed_since(&self, old: &Namespaces) -> BTreeSet<u32> {
        let ids = old.0.iter().chain(&self.0).map(|n| n.nsid);
        ids.filter(|id| old.get(*id) != self.get(*id)).collect()
    }
    /// Ids that stand for nothing in `new`, or for another volume.
    pub fn gone_from(&self, new: &Namespaces) -> Vec<u32> {
        let stays = |n: &Namespace| new.get(n.nsid).is_some_and(|m| m.volume == n.volume);
        self.iter().filter(|n| !stays(n)).map(|n| n.nsid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::view::Export;

    #[test]
    fn a_host_sees_every_namespace_that_the_system_can_have() {
        let export = |nsid| Export { nsid, ..Export::default() };
        let ids = [0, 1, 1024, 1025, NSID_MAX, NSID_MAX + 1];
        let host = Host { exports: ids.map(export).to_vec(), ..Host::default() };
        let seen = Namespaces::of(Some(&host));
        let ids: Vec<u32> = seen.iter().map(|n| n.nsid).collect();
        assert_eq!(ids, [1, 1024, 1025, NSID_MAX]);
        assert_eq!(seen.after(1024).map(|n| n.nsid), Some(1025));
        assert!(seen.get(NSID_MAX).is_some() && seen.get(NSID_MAX + 1).is_none());
    }
}
