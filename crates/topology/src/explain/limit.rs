//! What limits, as variants with fields. What people read of them is in `crates/millrace/src/words/topology`.

use super::finding::Kind;
use crate::health::Wear;
use serde::Serialize;

/// What limits.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Limit {
    /// Somebody shaped a drive, and it does what that lets it.
    DriveShaped {
        drive: String,
        path: String,
        iops_max: Option<u64>,
        mbps_max: Option<u64>,
        latency_us: Option<u64>,
    },
    /// A volume does what somebody lets it.
    VolumeCapped { volume: String },
    /// A link that several drives share passes no more. `poor`: the drive that it treats worst, if it is seen to.
    SharedLinkFull { link: SharedLink, drives: usize, share: Share, unfair: bool, poor: Option<String> },
    /// Drives move what their own links pass.
    LinkFull { drives: Vec<String>, link: String },
    /// Drives can no more by themselves.
    DrivesFull { drives: Vec<String>, waiting: f64 },
    /// A network port passes no more in this direction.
    PortFull { port: String, direction: Direction },
    /// A shard has no time left. `idle`: shards that have.
    ShardFull { shard: u64, head: Option<String>, connections: usize, idle: Vec<ShardUsed> },
    /// All cores together have no time left.
    CoresFull { cores: usize },
    /// A core has no time left for the network.
    NetworkCoreFull { cpu: u32 },
    /// A drive holds the others of its pool up. `works`: there is load now.
    DriveSlow { drive: String, pool: String, works: bool, why: Slow },
    /// A mirror lacks legs.
    MirrorDegraded { array: String, gone: Vec<String>, serve: usize, legs: usize },
    /// A resync takes a part of its drives.
    Resync { array: String },
    /// A scrub takes a part of its drives.
    Scrub { pool: String },
    /// Writes touch regions that were clean.
    BitmapCold { array: String },
    /// Interrupts take time from a shard. `own`: on its core, else on another thread of that.
    ShardInterrupted { shard: u64, head: Option<String>, per_second: f64, cpu: u32, own: bool },
    /// A path of several does nothing.
    PathIdle { host: String, paths: usize, address: String, session: u64 },
    /// A path of several does little.
    PathStarved { host: String, paths: usize, address: String, session: u64 },
    /// Shards without time compute checksums that hosts asked for.
    Digests { hosts: Vec<String> },
    /// More hosts together get less than fewer did. `full`: something is full, and comes first.
    MoreHostsLess { now: Hosts, before: Hosts, in_flight_before: f64, full: bool },
    /// Commands of a host wait in line.
    TooManyInFlight { host: String, in_flight: f64 },
    /// A host has not enough to do at a time. `all_seen`: of each part of the way a load was seen.
    TooFewInFlight { host: String, all_seen: bool },
    /// Most of what is under way waits in drives of which nobody knows whether they can more.
    WaitInDrives { unmeasured: Vec<String> },
    /// Data of drives crosses to another node.
    FarNode { drives: Vec<String> },
}

impl Limit {
    /// Of which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Limit::DriveShaped { .. } | Limit::VolumeCapped { .. } => Kind::Cap,
            Limit::SharedLinkFull { .. } => Kind::Uplink,
            Limit::LinkFull { .. } => Kind::Link,
            Limit::DrivesFull { .. } => Kind::Drives,
            Limit::PortFull { .. } => Kind::Port,
            Limit::ShardFull { .. } => Kind::Shard,
            Limit::CoresFull { .. } => Kind::Cores,
            Limit::NetworkCoreFull { .. } => Kind::Softirq,
            Limit::DriveSlow { .. } => Kind::SlowDrive,
            Limit::MirrorDegraded { .. } => Kind::Degraded,
            Limit::Resync { .. } | Limit::Scrub { .. } => Kind::Repair,
            Limit::BitmapCold { .. } => Kind::ColdBitmap,
            Limit::ShardInterrupted { .. } => Kind::Interrupts,
            Limit::PathIdle { .. } | Limit::PathStarved { .. } => Kind::Path,
            Limit::Digests { .. } => Kind::Digests,
            Limit::MoreHostsLess { .. } => Kind::MoreHosts,
            Limit::TooManyInFlight { .. } => Kind::TooMany,
            Limit::TooFewInFlight { .. } => Kind::TooFew,
            Limit::WaitInDrives { .. } => Kind::InDrives,
            Limit::FarNode { .. } => Kind::FarNode,
        }
    }
}

/// A link that several drives share.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum SharedLink {
    /// The uplink of a switch.
    Switch { switch: String },
    /// One that somebody made by shapes; `path` is a drive's below it.
    Shapes { number: u64, path: String },
}

/// What drives get of a link, bytes a second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Share {
    /// About as much each.
    Each { bytes: f64 },
    /// From so much to so much.
    Between { least: f64, most: f64 },
}

/// Which way through a network port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From hosts.
    In,
    /// To hosts.
    Out,
}

/// What of its core a shard uses.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ShardUsed {
    /// Its number.
    pub shard: u64,
    /// The part, 0 to 1.
    pub used: f64,
}

/// Hosts, and what they ask for together.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Hosts {
    /// How many.
    pub hosts: usize,
    /// Commands a second.
    pub rate: f64,
}

/// Why a drive is slow.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Slow {
    /// Its link runs below what both ends can.
    LinkTrainedLow { now: String, could: String },
    /// Its slot gives it no more.
    SlotNarrow { now: String },
    /// It is at the temperature from which it makes itself slower.
    Hot { celsius: f32, limit: f32 },
    /// It warns that it is too hot.
    SaysHot { celsius: f32 },
    /// It is worn.
    Worn { wear: Wear },
    /// It has fewer queues than the others.
    FewQueues { queues: u64, usual: f64 },
    /// Its queue takes fewer commands than the others'.
    ShallowQueue { commands: u64, usual: f64 },
    /// Nothing that was read is a reason.
    NotSeen { used: u8, others_most: Option<u8>, throttled_seconds: u64 },
    /// Nothing is a reason, and its health was not read.
    HealthNotRead,
}
