//! What a link is made of: who listens where, who connects from where, and the limits.

use super::identity::{Fingerprint, Identity};
use super::invitation::Invitation;
use super::token::NETWORKS_MAX;
use finding::SystemRefusal;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What a link is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who this head is.
    pub identity: Identity,
    /// What it does, and who the other head is.
    pub side: Side,
    /// Limits; the usual ones are `Limits::default()`.
    pub limits: Limits,
}

/// The head that made the system listens, the one that joined connects.
#[derive(Clone, Debug)]
pub enum Side {
    /// The head that made the system.
    Listens {
        /// Its networks, 1 to 4; the place in the list is the path's number.
        networks: Vec<Listens>,
        /// The other head's certificate, once it joined. Without it nobody gets a path.
        peer: Option<Fingerprint>,
        /// The token that was given out last, used or not.
        invitation: Option<Invitation>,
    },
    /// The head that joined.
    Connects {
        /// Its networks, 1 to 4; the place in the list is the path's number.
        networks: Vec<Connects>,
        /// The other head's certificate.
        peer: Fingerprint,
    },
}

/// A network of the head that listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listens {
    /// Where it listens; never on all addresses of the machine.
    pub own: SocketAddr,
    /// From where the other head connects, once that is known. A path from elsewhere is refused: it would run over another
    /// network than its number says.
    pub peer: Option<IpAddr>,
}

/// A network of the head that connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connects {
    /// Its own address, from which it connects.
    pub own: IpAddr,
    /// Where the other head listens.
    pub peer: SocketAddr,
}

/// Limits of a link. Those of memory are for each path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// From a connection's first moment until its peer is authenticated and greeted.
    pub handshake: Duration,
    /// Bytes that are read of a connection until then.
    pub handshake_bytes: u64,
    /// Connections of a network that are not authenticated yet, at one time; of more the oldest is closed.
    pub unauthenticated: usize,
    /// At least so long between two connections that a network takes.
    pub accept_gap: Duration,
    /// How long the layer above may take to make a join durable.
    pub record: Duration,
    /// Bytes that wait to be sent on a path. With more it is closed.
    pub backlog_bytes: usize,
    /// A path whose peer's kernel says nothing for so long is closed.
    pub silence: Duration,
    /// Until a lost path is tried again, at first and at most; it doubles, and varies by a quarter.
    pub reconnect: (Duration, Duration),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(3),
            handshake_bytes: 16 << 10,
            unauthenticated: 4,
            accept_gap: Duration::from_millis(10),
            record: Duration::from_secs(10),
            backlog_bytes: 8 << 20,
            silence: Duration::from_secs(3),
            reconnect: (Duration::from_millis(100), Duration::from_secs(1)),
        }
    }
}

/// Whether a head can be reached at `ip` alone, from another machine that knows nothing but the address. Addresses of the loopback
/// device are taken: both heads may run on one machine.
pub fn is_link_address(ip: IpAddr) -> bool {
    let all = ip.is_unspecified() || ip.is_multicast();
    match ip {
        IpAddr::V4(ip) => !all && !ip.is_broadcast(),
        // A link-local address means something only together with a port's name, which differs between the heads.
        IpAddr::V6(ip) => !all && !ip.is_unicast_link_local(),
    }
}

impl Settings {
    /// Whether a link can be made of them.
    pub fn check(&self) -> Result<(), SystemRefusal> {
        let (pairs, listens): (Vec<(IpAddr, Option<IpAddr>)>, Vec<SocketAddr>) = match &self.side {
            Side::Listens { networks, .. } => (
                networks.iter().map(|n| (n.own.ip(), n.peer)).collect(),
                networks.iter().map(|n| n.own).collect(),
            ),
            Side::Connects { networks, .. } => (
                networks.iter().map(|n| (n.own, Some(n.peer.ip()))).collect(),
                networks.iter().map(|n| n.peer).collect(),
            ),
        };
        if !(1..=NETWORKS_MAX).contains(&pairs.len()) {
            let networks = pairs.len();
            return Err(SystemRefusal::LinkNetworksInvalid { networks, networks_max: NETWORKS_MAX });
        }
        for (own, peer) in pairs {
            if let Some(bad) = [Some(own), peer].into_iter().flatten().find(|ip| !is_link_address(*ip)) {
                return Err(SystemRefusal::LinkAddressUnusable { address: bad.to_string() });
            }
            if let Some(peer) = peer.filter(|p| p.is_ipv4() != own.is_ipv4()) {
                let (own, address) = (own.to_string(), peer.to_string());
                return Err(SystemRefusal::LinkFamiliesDiffer { own, address });
            }
        }
        if let Some(without) = listens.iter().find(|address| address.port() == 0) {
            return Err(SystemRefusal::LinkPortMissing { address: without.to_string() });
        }
        let twice = (1..listens.len()).find(|at| listens[..*at].contains(&listens[*at]));
        twice.map_or(Ok(()), |at| Err(SystemRefusal::LinkAddressTwice { address: listens[at].to_string() }))
    }
}
