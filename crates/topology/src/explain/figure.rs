//! The numbers that a limit follows from. Rates are a second, parts 0 to 1, times microseconds unless a name says so.

use crate::machine::Crowd;
use serde::Serialize;

/// A step of the arithmetic behind a limit.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Figure {
    /// What a shaped drive does.
    DriveDoes { operations: f64, bytes: f64 },
    /// Commands of a volume, of those that it may have.
    CommandsOfCap { commands: f64, most: u64 },
    /// Bytes of a volume, of those that it may have.
    BytesOfCap { bytes: f64, most: u64 },
    /// What a link moves of what it passes as payload; `link`: its name, if it has one.
    LinkMoves { link: Option<String>, bytes: f64, most: f64 },
    /// A drive that a link treats badly, beside one that it treats well.
    LinkPrefers { poor: Waits, rich: Waits },
    /// The shares in which somebody made a link divide.
    LinkShares { shares: Vec<u64> },
    /// What was measured of single drives does not hold while their link is full.
    WeightsWrong,
    /// Drives that get less may be asked for less.
    MayBeAskedLess,
    /// What a port moves of what it carries as payload.
    PortMoves { bytes: f64, most: f64, speed_mbit: u64, mtu: u64 },
    /// What a drive does that can no more.
    DriveWorks { drive: String, write: bool, rate: f64, us: f64, under_way: f64, known_by: Known },
    /// What a shard used of its core.
    ShardUses { shard: u64, head: Option<String>, used: f64 },
    /// What a command costs on these cores.
    CommandCosts { rate: f64, cores: f64 },
    /// Whose interrupts they are mostly, and what they take of a CPU.
    InterruptsOf { action: String, cpu: u32, used: f64 },
    /// What soft interrupts take of a core.
    SoftirqTakes { used: f64 },
    /// Connections with digests.
    DigestsOn { connections: usize, of: usize, carry: f64 },
    /// No portal offers TLS, so none is counted.
    NoTls,
    /// Who uses the cores.
    CoresUsed { used: f64, cores: usize, shards: f64 },
    /// How long a shard that had work waited for its core, at most.
    ShardsWaited { most: f64 },
    /// How long shards waited is not known.
    ShardsWaitedUnknown,
    /// What hosts did before.
    CrowdBefore { crowd: Crowd },
    /// What hosts do now.
    CrowdNow { crowd: Crowd },
    /// What a drive's link passes beside the usual one, and what the pool's reads would be. `now`: as its weights are, where
    /// that is less.
    PoolReads {
        pool: String,
        own_mb: f64,
        usual_mb: f64,
        arrays: usize,
        slowest_mb: f64,
        weighted_mb: f64,
        now_mb: Option<f64>,
    },
    /// How long a read takes here, and on the drive in the middle.
    ReadTakes { us: f64, usual: f64 },
    /// What a resync reads and writes.
    ResyncMoves { bytes: f64, seconds_left: Option<u64> },
    /// What reads of a mirror have left.
    ReadsLeft { part: f64 },
    /// How fast regions become dirty.
    RegionsDirtied { fresh: f64, writes: f64, dirty: u64, regions: u64 },
    /// What a scrub reads.
    ScrubMoves { bytes: f64 },
    /// What a path does beside the best one.
    PathDoes { rate: f64, in_flight: f64, best: f64 },
    /// What crosses between nodes.
    Crosses { bytes: f64 },
    /// For small blocks the home socket can be the crowded one.
    MeasureNodes,
    /// What is under way in drives, and what hosts keep in flight.
    InDrives { operations: f64, drives: usize, us: f64, in_flight: f64 },
    /// Little's law of a host.
    Little { in_flight: f64, us: f64, rate: f64 },
    /// What would be enough in flight.
    Enough { bare_us: f64, waits: f64, in_flight: f64 },
    /// What a host needs in flight to fill what would be full next.
    Needs { rate: f64, part: Part, needs: f64, in_flight: f64, connections: usize },
    /// Parts of the way of which no load was seen.
    NotSeen { parts: Vec<Unseen> },
}

/// Commands of a drive that wait.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Waits {
    /// The drive.
    pub drive: String,
    /// How many.
    pub commands: f64,
    /// How long each.
    pub us: f64,
}

/// How it is known that a drive can no more.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Known {
    /// So many a second were measured of it alone.
    Measured { rate: f64 },
    /// Before this one took so long in the mean.
    Before { us: f64 },
}

/// A part of the way that may be full.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Part {
    /// A shard.
    Shard { shard: u64 },
    /// A drive.
    Drive { drive: String },
    /// The link of a drive.
    Link { drive: String },
    /// The uplink of a switch.
    Uplink { switch: String },
    /// A network port.
    Port { port: String },
}

/// Parts of the way of which no load was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unseen {
    /// The drives.
    Drives,
    /// The network.
    Network,
    /// The shards.
    Shards,
}
