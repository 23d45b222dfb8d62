//! The other head's shards, as one shard reaches them: one connection for each of them (docs/rfcs/0008-both-serve.md).
//!
//! ```text
//! flow ─ Run ─▶ FarLink.out ─▶ outbox ═══▶ FarFront of the other one ─▶ parked ─▶ array
//!    ▲                                                                             │
//!    └──── flight landed ◀─ FarFront ◀═══ outbox ◀─ out ◀──────────────────── Ran ◀┘
//! ```
//!
//! What a far shard sends lies in memory that was set aside for it (`FarLink::granted`), which drives alone free: neither head waits
//! for the other one's hosts, so two full heads cannot wait for each other. A command without credit for its data waits at the shard
//! it came in at.
//!
//! A drive that hangs keeps memory of commands that are answered. When it keeps nearly all that was granted, a spare is lent, and what
//! the drive lets go of first takes the place of that. While even the spare is kept, commands end in `NotReady`. What has credit but no
//! memory in one piece is sent back, and comes again in the shortest parts.

mod front;
mod link;
mod speak;
#[cfg(test)]
mod tests;
pub mod wire;

pub(crate) use front::FarFront;
pub(crate) use link::{FarLink, Out, Sent};

use base::{Duration, PortalId};
use core::net::SocketAddr;

/// Where a shard listens for those of the other head on a network of the link: no other shard has that number, and no portal of hosts.
pub(crate) fn far_portal(shard: u16, network: usize) -> PortalId {
    PortalId(u32::MAX - u32::from(shard) * NETWORKS_MAX - network as u32)
}
/// Networks of a link, at most.
const NETWORKS_MAX: u32 = 4;
/// Memory for headers that are to be sent to one far shard, bytes.
pub(crate) const RING_BYTES: u32 = 64 << 10;
/// Memory that a head sets aside for what the other one sends, bytes.
pub(crate) const GRANTED_BYTES: u64 = 32 << 20;
/// What is granted to one far shard, at least, bytes.
const GRANTED_MIN: u64 = 256 << 10;
/// While drives leave a far shard less than that of what was granted to it, it is lent its spare, bytes.
const LEFT_MIN: u64 = 64 << 10;
/// How long a command waits for memory in one piece before it is sent back. All that its shard has sent behind it waits as long.
const ROOM: Duration = Duration::from_millis(100);
/// How long commands wait for a far shard that lends nothing, as drives keep all of it. It lends its spare before that.
const SPENT: Duration = Duration::from_millis(500);
/// How long until a connection that failed is tried again, by the next network.
pub(crate) const DIAL_AGAIN: Duration = Duration::from_millis(50);
/// A shard that has no connection for this long reports it: the other head is put out.
pub(crate) const SILENT: Duration = Duration::from_secs(1);

/// How the shards of two heads meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FarSetup {
    /// Which meeting this is, as the Steward of this head counts them.
    pub meeting: u32,
    /// Shards of the other head.
    pub shards: u16,
    /// Which processes these are.
    pub pairing: wire::Pairing,
    /// Which side connects.
    pub side: FarSide,
}

/// Which side connects. Addresses are those of each network for shard 0; the others have the ports behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FarSide {
    /// The other head's shards connect to this head's.
    Listens(Vec<SocketAddr>),
    /// This head's shards connect to the other head's.
    Dials(Vec<SocketAddr>),
}

/// The address of a shard.
pub(crate) fn address_of(first: SocketAddr, shard: u16) -> SocketAddr {
    SocketAddr::new(first.ip(), first.port().wrapping_add(shard))
}

/// Whether a portal is for shards of the other head.
pub(crate) fn is_far(portal: PortalId) -> bool {
    portal.0 > u32::MAX - NETWORKS_MAX * (1 << 16)
}
