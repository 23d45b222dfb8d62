//! What the front ends may know of the head: who it is, where it listens, which host sees what.
//!
//! The Steward makes a new `View` at every change of configuration and gives it to every shard; a
//! view itself never changes.

use crate::{HostId, PortalId, Uuid, VolumeId};
use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// Largest namespace id, and most namespaces: as many as there can be volumes in the largest system.
pub const NSID_MAX: u32 = 65535;

/// A secret; never printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Everything the front ends may know.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Grows by one at each change.
    pub generation: u64,
    /// Who we are.
    pub system: System,
    /// Where we listen.
    pub portals: Vec<Portal>,
    /// Who may come. Found by name, not by index: ids are sparse.
    pub hosts: Vec<Host>,
}

/// The system's identity: the same on every head, for life.
#[derive(Clone, Debug, Default)]
pub struct System {
    /// The one NVMe subsystem's qualified name.
    pub nqn: String,
    /// The one iSCSI target's name.
    pub iqn: String,
    /// Identity of the system.
    pub uuid: Uuid,
    /// Serial number, at most 20 ASCII characters.
    pub serial: String,
    /// Model, at most 40 ASCII characters.
    pub model: String,
    /// Firmware revision, at most 8 ASCII characters.
    pub firmware: String,
}

/// What is spoken at a portal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Protocol {
    /// NVMe/TCP, I/O and discovery controllers.
    Nvme,
    /// NVMe/TCP, discovery controller only (port 8009).
    Discovery,
    /// iSCSI.
    Iscsi,
}

/// An address that we listen on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Portal {
    /// Its id; NVMe port id and iSCSI portal group tag are this + 1.
    pub id: PortalId,
    /// What is spoken.
    pub protocol: Protocol,
    /// The address; may be unspecified (0.0.0.0), then discovery answers with the connection's own.
    pub address: SocketAddr,
}

impl Portal {
    /// Where a client finds this portal whose connection ends at our address `local`: the same address as it uses itself, if
    /// we listen at all of them. None if it cannot get there: from elsewhere nobody reaches our loopback addresses, and
    /// nobody comes by IPv6 to 0.0.0.0.
    pub fn seen_at(&self, local: IpAddr) -> Option<SocketAddr> {
        let (own, local) = (self.address.ip().to_canonical(), local.to_canonical());
        let reachable = match own {
            IpAddr::V4(own) if own.is_unspecified() => local.is_ipv4(),
            own => !own.is_loopback() || local.is_loopback(),
        };
        let seen = if own.is_unspecified() { local } else { own };
        reachable.then_some(SocketAddr::new(seen, self.address.port()))
    }
}

/// A client that is let in.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Its id.
    pub id: HostId,
    /// Its short name.
    pub name: String,
    /// Its NVMe qualified names.
    pub nqns: Vec<String>,
    /// Its iSCSI names.
    pub iqns: Vec<String>,
    /// If set, it must prove this secret (iSCSI CHAP with its IQN, or `chap_user`, as user name).
    pub chap_secret: Option<Secret>,
    /// CHAP user name; its IQN if empty.
    pub chap_user: String,
    /// If set, we prove this secret to it (mutual CHAP with `System::iqn` as user name).
    pub mutual_secret: Option<Secret>,
    /// What it sees, sorted by `nsid`.
    pub exports: Vec<Export>,
}

/// A volume as one host sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Export {
    /// Namespace id, the same for every host.
    pub nsid: u32,
    /// Logical unit number, this host's own.
    pub lun: u16,
    /// The volume.
    pub volume: VolumeId,
    /// `pool/volume`.
    pub name: String,
    /// For life.
    pub uuid: Uuid,
    /// For life.
    pub nguid: [u8; 16],
    /// NAA designator, for life (locally assigned, or 6 with an OUI).
    pub naa: [u8; 16],
    /// 512 or 4096.
    pub block_bytes: u32,
    /// Size in blocks.
    pub blocks: u64,
    /// Deallocate does something.
    pub deallocate: bool,
    /// Commands can be answered now; if not they end in `NotReady`.
    pub ready: bool,
}

impl View {
    /// The host that has this NVMe name.
    pub fn host_by_nqn(&self, nqn: &str) -> Option<&Host> {
        self.hosts.iter().find(|h| h.nqns.iter().any(|n| n == nqn))
    }
    /// The host that has this iSCSI name (they compare without case once normalised, RFC 3722).
    pub fn host_by_iqn(&self, iqn: &str) -> Option<&Host> {
        self.hosts.iter().find(|h| h.iqns.iter().any(|n| n.eq_ignore_ascii_case(iqn)))
    }
    /// The host with this id, if it is still let in.
    pub fn host(&self, id: HostId) -> Option<&Host> {
        self.hosts.iter().find(|h| h.id == id)
    }
}

impl Host {
    /// The export with this namespace id.
    pub fn by_nsid(&self, nsid: u32) -> Option<&Export> {
        let i = self.exports.binary_search_by_key(&nsid, |e| e.nsid).ok()?;
        Some(&self.exports[i])
    }
    /// The export with this logical unit number.
    pub fn by_lun(&self, lun: u16) -> Option<&Export> {
        self.exports.iter().find(|e| e.lun == lun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portal_is_told_as_the_client_reaches_it() {
        for (portal, local, seen) in [
            ("0.0.0.0:4420", "10.0.0.7", Some("10.0.0.7:4420")),
            ("0.0.0.0:4420", "::ffff:10.0.0.7", Some("10.0.0.7:4420")),
            ("0.0.0.0:4420", "fd00::7", None),
            ("[::]:3260", "10.0.0.7", Some("10.0.0.7:3260")),
            ("[::]:3260", "::ffff:10.0.0.7", Some("10.0.0.7:3260")),
            ("[::]:3260", "fd00::7", Some("[fd00::7]:3260")),
            ("[::ffff:10.0.0.7]:1", "10.0.0.8", Some("10.0.0.7:1")),
            ("10.0.0.7:1", "fd00::7", Some("10.0.0.7:1")),
            ("127.0.0.1:1", "10.0.0.7", None),
            ("[::1]:1", "10.0.0.7", None),
            ("127.0.0.1:1", "::ffff:127.0.0.1", Some("127.0.0.1:1")),
            ("127.0.0.1:1", "::1", Some("127.0.0.1:1")),
        ] {
            let address = portal.parse().expect("an address");
            let portal_of = Portal { id: PortalId(0), protocol: Protocol::Nvme, address };
            let got = portal_of.seen_at(local.parse().expect("an address"));
            assert_eq!(got.map(|a| a.to_string()).as_deref(), seen, "{portal} from {local}");
        }
    }
}
