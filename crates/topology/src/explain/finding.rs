//! What may limit a head.

use super::figure::Figure;
use super::limit::Limit;
use serde::Serialize;

/// What kind of limit. The order is that of importance: what stands first hides what follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Somebody set it.
    Cap,
    /// A link that several drives share passes no more.
    Uplink,
    /// A drive's own link passes no more.
    Link,
    /// Drives can no more by themselves.
    Drives,
    /// A network port passes no more.
    Port,
    /// A shard has no time left.
    Shard,
    /// All cores together have no time left, whoever uses them.
    Cores,
    /// A core has no time left for the network.
    Softirq,
    /// A drive is slower than those beside it.
    SlowDrive,
    /// A mirror lacks a leg.
    Degraded,
    /// A resync or scrub takes its part.
    Repair,
    /// Writes wait for the bitmap.
    ColdBitmap,
    /// Interrupts take time from a shard.
    Interrupts,
    /// A path of several does nothing, or little.
    Path,
    /// Shards compute checksums that hosts asked for.
    Digests,
    /// More hosts together get less than fewer did.
    MoreHosts,
    /// Commands wait in line.
    TooMany,
    /// There is not enough to do at a time.
    TooFew,
    /// Most of what is under way waits in drives of which nobody knows whether they can more.
    InDrives,
    /// Data crosses from node to node.
    FarNode,
}

impl Kind {
    /// Something passes no more: what comes beside it can wait.
    pub(super) fn is_full(self) -> bool {
        match self {
            Kind::Cap
            | Kind::Uplink
            | Kind::Link
            | Kind::Drives
            | Kind::Port
            | Kind::Shard
            | Kind::Cores
            | Kind::Softirq => true,
            Kind::SlowDrive
            | Kind::Degraded
            | Kind::Repair
            | Kind::ColdBitmap
            | Kind::Interrupts
            | Kind::Path
            | Kind::Digests
            | Kind::MoreHosts
            | Kind::TooMany
            | Kind::TooFew
            | Kind::InDrives
            | Kind::FarNode => false,
        }
    }
}

/// Something that limits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// Of which kind.
    pub kind: Kind,
    /// What it is about: names of pools, drives, hosts; empty for the whole head.
    pub about: Vec<String>,
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// The numbers that it follows from.
    pub arithmetic: Vec<Figure>,
}

impl Finding {
    pub(super) fn new(limit: Limit, about: Vec<String>, arithmetic: Vec<Figure>) -> Self {
        Self { kind: limit.kind(), about, limit, arithmetic }
    }
}
