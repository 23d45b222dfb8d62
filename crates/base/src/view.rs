//! What the front ends may know of the head: who it is, where it listens, which host sees what.
//!
//! The Steward makes a new `View` at every change of configuration and gives it to every shard; a
//! view itself never changes.

use crate::{HostId, PortalId, Uuid, VolumeId};
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Largest namespace id, and most namespaces: as many as there can be volumes in the largest system.
pub const NSID_MAX: u32 = 65535;

/// A secret; never printed.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Everything the front ends may know.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct View {
    /// Grows by one at each change.
    pub generation: u64,
    /// Who we are.
    pub system: System,
    /// Where the system listens, at either head.
    pub portals: Vec<Portal>,
    /// Who may come. Found by name, not by index: ids are sparse.
    pub hosts: Vec<Host>,
    /// Whose view this is: head 0 or 1 of the system.
    pub head: u8,
    /// How well each head reaches the volumes, by its number; None: it is a head alone, and hosts see no path states.
    pub paths: Option<[PathState; 2]>,
}

/// How well a head of two reaches the volumes. Whatever it says, it carries out commands: an answer by a slow path is
/// better than an error, so there is no standby and no unavailable here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Default, Hash)]
pub enum PathState {
    /// Hosts should use it.
    #[default]
    Optimized,
    /// Hosts should use the other head as long as that is optimized.
    NonOptimized,
}

/// The system's identity: the same on every head, for life.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// NVMe/TCP, I/O and discovery controllers.
    Nvme,
    /// NVMe/TCP, discovery controller only (port 8009).
    Discovery,
    /// iSCSI.
    Iscsi,
}

/// An address that the system listens on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Portal {
    /// Its id; NVMe port id and iSCSI portal group tag are this + 1.
    pub id: PortalId,
    /// What is spoken.
    pub protocol: Protocol,
    /// The address; may be unspecified (0.0.0.0), then discovery answers with the connection's own.
    pub address: SocketAddr,
    /// Which head has it, and listens there: 0 or 1; 0 of a head alone.
    pub head: u8,
    /// The address moves to the head that leads; None: it is the machine's own business.
    pub moves: Option<Moves>,
}

/// How a head that leads configures an address of the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Moves {
    /// Length of the prefix.
    pub prefix: u8,
    /// On which interface; None: on the one that has another address of the subnet.
    pub interface: Option<Interface>,
}

/// The name of a network interface: 1 to 15 printable characters of ASCII, neither blank nor `/`; not `.` or `..`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Interface([u8; 15]);

impl Interface {
    /// The name.
    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        core::str::from_utf8(&self.0[..len]).expect("only ASCII is taken")
    }
}

impl fmt::Debug for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Interface {
    type Err = ();
    fn from_str(name: &str) -> Result<Self, ()> {
        let good =
            name.bytes().all(|b| b.is_ascii_graphic() && b != b'/') && !matches!(name, "" | "." | "..");
        let mut bytes = [0; 15];
        let room = bytes.get_mut(..name.len()).filter(|_| good).ok_or(())?;
        room.copy_from_slice(name.as_bytes());
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Interface {
    type Error = &'static str;
    fn try_from(name: String) -> Result<Self, &'static str> {
        name.parse().map_err(|()| "no Interface")
    }
}

impl From<Interface> for String {
    fn from(interface: Interface) -> Self {
        interface.as_str().into()
    }
}

/// Why an address cannot move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Immovable {
    /// It is no address of one machine: unspecified, multicast, broadcast, or that of a whole subnet.
    NotOne,
    /// It is good within one machine or on one cable only: loopback, link-local, or IPv4 written as IPv6.
    Local,
    /// The prefix is longer than an address, or 0.
    Prefix,
}

impl Moves {
    /// Whether a head can configure `ip` so.
    pub fn check(&self, ip: IpAddr) -> Result<(), Immovable> {
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        if self.prefix == 0 || self.prefix > bits {
            return Err(Immovable::Prefix);
        }
        let host = host_part(ip, self.prefix);
        let (one, local) = match ip {
            IpAddr::V4(v4) => {
                let all = host.checked_add(1) == 1_u128.checked_shl(u32::from(bits - self.prefix));
                let subnet = self.prefix < 31 && (host == 0 || all);
                (!v4.is_broadcast() && !subnet, v4.is_loopback() || v4.is_link_local())
            }
            IpAddr::V6(v6) => {
                // The first address of a subnet is that of all routers.
                let local = v6.is_loopback() || v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some();
                (local || self.prefix > 126 || host != 0, local)
            }
        };
        if ip.is_unspecified() || ip.is_multicast() || !one {
            return Err(Immovable::NotOne);
        }
        if local { Err(Immovable::Local) } else { Ok(()) }
    }
}

/// The bits of an address behind its prefix.
fn host_part(ip: IpAddr, prefix: u8) -> u128 {
    let (value, bits) = match ip {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let mask = 1_u128.checked_shl(bits - u32::from(prefix)).map_or(u128::MAX, |one| one - 1);
    value & mask
}

/// An address of the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moving {
    /// The address.
    pub ip: IpAddr,
    /// How it is configured.
    pub moves: Moves,
}

impl Moving {
    /// Whether `other` is an address of the same subnet.
    pub fn is_beside(&self, other: IpAddr) -> bool {
        let subnet = |ip: IpAddr| match ip {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) ^ host_part(ip, self.moves.prefix),
            IpAddr::V6(v6) => v6.to_bits() ^ host_part(ip, self.moves.prefix),
        };
        self.ip.is_ipv4() == other.is_ipv4() && subnet(self.ip) == subnet(other)
    }
}

impl Portal {
    /// Where a client finds this portal whose connection ends at the address `local` of `head`: the same address as it uses
    /// itself, if we listen at all of them. None if it cannot get there: a client elsewhere does not reach our loopback addresses,
    /// IPv6 does not reach 0.0.0.0, and the addresses of the other head are not known here.
    pub fn seen_at(&self, local: IpAddr, head: u8) -> Option<SocketAddr> {
        let (own, local) = (self.address.ip().to_canonical(), local.to_canonical());
        let reachable = match own {
            own if own.is_unspecified() && self.head != head => false,
            IpAddr::V4(own) if own.is_unspecified() => local.is_ipv4(),
            own => !own.is_loopback() || local.is_loopback(),
        };
        let seen = if own.is_unspecified() { local } else { own };
        reachable.then_some(SocketAddr::new(seen, self.address.port()))
    }
}

/// A client that is let in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Generation of the first view with these secrets and this user name. Each head counts for its own shards.
    #[serde(skip)]
    pub proof_generation: u64,
    /// What it sees, sorted by `nsid`.
    pub exports: Vec<Export>,
}

/// What a login is let in by: the host that has the name, and what this host must prove.
///
/// A login takes several messages, and an order of the operator may come between any two of them. So a login is compared
/// with the present view where it is let in, and a session whenever the view changes (`View::admits`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Principal {
    /// The host.
    pub host: HostId,
    /// `Host::proof_generation`; 0 over NVMe, where hosts prove nothing.
    pub proof_generation: u64,
}

/// The name by which a host logs in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginName<'a> {
    /// NVMe qualified name.
    Nqn(&'a str),
    /// iSCSI name.
    Iqn(&'a str),
}

/// A volume as one host sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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
    /// The path states through this head that hosts see; None: nothing, it is a head alone.
    pub fn path(&self) -> Option<PathState> {
        self.paths.map(|_| self.path_of(self.head))
    }
    /// How well a head reaches the volumes; a head alone does it as well as can be.
    pub fn path_of(&self, head: u8) -> PathState {
        self.paths.map_or(PathState::Optimized, |paths| paths[usize::from(head)])
    }
    /// Whether this head listens at the portal with this id.
    pub fn listens(&self, id: PortalId) -> bool {
        self.portals.iter().any(|p| p.id == id && p.head == self.head)
    }
    /// The host that has this NVMe name.
    pub fn host_by_nqn(&self, nqn: &str) -> Option<&Host> {
        self.hosts.iter().find(|h| h.nqns.iter().any(|n| n == nqn))
    }
    /// The host that has this iSCSI name (they compare without case once normalised, RFC 3722).
    pub fn host_by_iqn(&self, iqn: &str) -> Option<&Host> {
        self.hosts.iter().find(|h| h.iqns.iter().any(|n| n.eq_ignore_ascii_case(iqn)))
    }
    /// What a login by this name is let in by; None: no host has the name.
    pub fn principal(&self, name: LoginName<'_>) -> Option<Principal> {
        let (host, proof_generation) = match name {
            LoginName::Nqn(nqn) => (self.host_by_nqn(nqn)?, 0),
            LoginName::Iqn(iqn) => self.host_by_iqn(iqn).map(|h| (h, h.proof_generation))?,
        };
        Some(Principal { host: host.id, proof_generation })
    }
    /// Whether a login that was judged as this principal would be judged so now. An unknown host has nothing that can be
    /// taken away.
    pub fn admits(&self, name: LoginName<'_>, principal: Option<Principal>) -> bool {
        principal.is_none() || self.principal(name) == principal
    }
    /// Whether the system has the portal with this id, at either head. A head that closes its portals shows none, and
    /// ends no session for that.
    pub fn has_portal(&self, id: PortalId) -> bool {
        self.portals.is_empty() || self.portals.iter().any(|p| p.id == id)
    }
    /// The host with this id, if it is still let in.
    pub fn host(&self, id: HostId) -> Option<&Host> {
        self.hosts.iter().find(|h| h.id == id)
    }
}

impl Host {
    /// Whether it must prove the same as another version of it.
    pub fn proves_as(&self, other: &Host) -> bool {
        self.chap_secret == other.chap_secret
            && self.chap_user == other.chap_user
            && self.mutual_secret == other.mutual_secret
    }

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
    fn an_address_of_one_machine_moves_and_nothing_else() {
        let check =
            |ip: &str, prefix| Moves { prefix, interface: None }.check(ip.parse().expect("an address"));
        for (ip, prefix) in [
            ("10.1.0.5", 24),
            ("10.1.0.0", 31),
            ("10.1.0.5", 32),
            ("10.1.0.5", 1),
            ("fd00::5", 64),
            ("fd00::5", 128),
        ] {
            assert_eq!(check(ip, prefix), Ok(()), "{ip}/{prefix}");
        }
        for (ip, prefix, why) in [
            ("10.1.0.5", 0, Immovable::Prefix),
            ("10.1.0.5", 33, Immovable::Prefix),
            ("fd00::5", 129, Immovable::Prefix),
            ("10.1.0.0", 24, Immovable::NotOne),
            ("10.1.0.255", 24, Immovable::NotOne),
            ("255.255.255.255", 32, Immovable::NotOne),
            ("0.0.0.0", 32, Immovable::NotOne),
            ("224.0.0.1", 24, Immovable::NotOne),
            ("::", 64, Immovable::NotOne),
            ("ff02::1", 64, Immovable::NotOne),
            ("fd00::", 64, Immovable::NotOne),
            ("127.0.0.1", 8, Immovable::Local),
            ("169.254.1.1", 16, Immovable::Local),
            ("::1", 128, Immovable::Local),
            ("fe80::1", 64, Immovable::Local),
            ("::ffff:10.1.0.5", 120, Immovable::Local),
        ] {
            assert_eq!(check(ip, prefix), Err(why), "{ip}/{prefix}");
        }
    }

    #[test]
    fn a_subnet_is_distinguished_from_another() {
        let beside = |ip: &str, prefix, other: &str| {
            let moving = Moving { ip: ip.parse().expect("one"), moves: Moves { prefix, interface: None } };
            moving.is_beside(other.parse().expect("one"))
        };
        assert!(beside("10.1.0.5", 24, "10.1.0.200") && beside("fd00::5", 64, "fd00::ff"));
        assert!(!beside("10.1.0.5", 24, "10.1.1.5") && !beside("fd00::5", 64, "fd00:0:0:1::5"));
        assert!(!beside("10.1.0.5", 24, "fd00::5") && !beside("10.1.0.5", 32, "10.1.0.6"));
        assert!(beside("10.1.0.5", 1, "99.0.0.1"));
    }

    #[test]
    fn names_of_interfaces_are_those_that_the_kernel_takes() {
        for name in ["e", "enp3s0f1np1.1234", "bond0:1"] {
            let parsed = name.parse::<Interface>();
            assert_eq!(parsed.ok().as_ref().map(Interface::as_str), Some(name).filter(|n| n.len() < 16));
        }
        for name in ["", ".", "..", "a/b", "a b", "ü", "sixteen-letters-"] {
            assert_eq!(name.parse::<Interface>(), Err(()), "{name}");
        }
    }

    #[test]
    fn a_portal_is_shown_as_the_client_reaches_it() {
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
            let portal_of =
                Portal { id: PortalId(0), protocol: Protocol::Nvme, address, head: 1, moves: None };
            let local_ip: IpAddr = local.parse().expect("an address");
            let got = portal_of.seen_at(local_ip, 1);
            assert_eq!(got.map(|a| a.to_string()).as_deref(), seen, "{portal} from {local}");
            // At the other head it is shown as far as it has an address of its own.
            let seen = seen.filter(|_| !address.ip().is_unspecified());
            let got = portal_of.seen_at(local_ip, 0);
            assert_eq!(
                got.map(|a| a.to_string()).as_deref(),
                seen,
                "{portal} from {local} of the other head"
            );
        }
    }

    #[test]
    fn a_head_alone_has_no_path_state() {
        let [optimized, other] = [PathState::Optimized, PathState::NonOptimized];
        for head in [0, 1] {
            let view = View { head, ..View::default() };
            assert_eq!((view.path(), view.path_of(0), view.path_of(1)), (None, optimized, optimized));
        }
        let of = |head| View { head, paths: Some([optimized, other]), ..View::default() };
        assert_eq!((of(0).path(), of(1).path()), (Some(optimized), Some(other)));
        assert_eq!((of(1).path_of(0), of(0).path_of(1)), (optimized, other));
    }

    #[test]
    fn a_head_listens_at_its_own_portals() {
        let address = "10.0.0.7:4420".parse().expect("an address");
        let portal =
            |id, head| Portal { id: PortalId(id), protocol: Protocol::Nvme, address, head, moves: None };
        let view = View { portals: vec![portal(3, 0), portal(4, 1)], head: 1, ..View::default() };
        assert!(view.listens(PortalId(4)) && !view.listens(PortalId(3)) && !view.listens(PortalId(0)));
    }
}
