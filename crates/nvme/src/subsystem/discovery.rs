//! The discovery log: the addresses of our subsystem (NVMe Base 5.16.1.23).

use super::ConnectionConfig;
use crate::spec::fabrics::{CNTLID_DYNAMIC, DISCOVERY_NQN};
use crate::spec::log::{
    DiscoveryEntry, DiscoveryHeader, SUBTYPE_CURRENT_DISCOVERY, SUBTYPE_NVM, TREQ, TRTYPE_TCP,
};
use crate::spec::text_nul;
use base::view::{Portal, Protocol, View};
use core::net::{IpAddr, SocketAddr};
use zerocopy::{FromZeros, IntoBytes};

/// The entries that a known host sees; an unknown one sees none.
///
/// The subsystem stands there once per NVMe portal, and the discovery subsystem that answers once, as
/// the current one (type 3): hosts do not follow it, so referrals cannot go in circles.
pub(crate) fn entries(config: &ConnectionConfig, view: &View, known: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if !known {
        return out;
    }
    let local = config.local.ip().to_canonical();
    for portal in view.portals.iter().filter(|p| p.protocol == Protocol::Nvme) {
        if let Some(address) = portal.seen_at(local, view.head) {
            let e = entry(config, portal, address, SUBTYPE_NVM, &view.system.nqn);
            out.extend_from_slice(e.as_bytes());
        }
    }
    let own = SocketAddr::new(local, config.local.port());
    let e = entry(config, &config.portal, own, SUBTYPE_CURRENT_DISCOVERY, DISCOVERY_NQN);
    out.extend_from_slice(e.as_bytes());
    out
}

/// The whole log page.
pub(crate) fn log(config: &ConnectionConfig, view: &View, known: bool) -> Vec<u8> {
    let entries = entries(config, view, known);
    let mut header = DiscoveryHeader::new_zeroed();
    header.generation = view.generation.into();
    header.records = ((entries.len() / size_of::<DiscoveryEntry>()) as u64).into();
    let mut out = header.as_bytes().to_vec();
    out.extend_from_slice(&entries);
    out
}

fn entry(
    config: &ConnectionConfig,
    portal: &Portal,
    at: SocketAddr,
    subtype: u8,
    nqn: &str,
) -> DiscoveryEntry {
    let mut e = DiscoveryEntry::new_zeroed();
    e.trtype = TRTYPE_TCP;
    e.adrfam = match at.ip() {
        IpAddr::V4(_) => 1,
        IpAddr::V6(_) => 2,
    };
    e.subtype = subtype;
    e.treq = TREQ;
    e.portid = ((portal.id.0 + 1) as u16).into();
    e.cntlid = CNTLID_DYNAMIC.into();
    e.asqsz = config.queue_depth_max.into();
    if subtype == SUBTYPE_CURRENT_DISCOVERY {
        // Explicit persistent connections: we hold keep alive and events for them.
        e.eflags = 2.into();
    }
    e.trsvcid = text_nul(&at.port().to_string());
    e.subnqn = text_nul(nqn);
    e.traddr = text_nul(&at.ip().to_string());
    e
}
