//! What a plan finds, as variants with fields. What people read of it is in `crates/millrace/src/words/topology`.

use serde::Serialize;

/// A part of the way of commands that may be full.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Part {
    /// A drive by itself.
    Drive { drive: String },
    /// The link of a drive.
    DriveLink { drive: String, link: String },
    /// What a drive gets of a link that divides unfairly.
    DriveShare { drive: String, of: Box<Part> },
    /// The uplink of a switch.
    Uplink { switch: String, link: String },
    /// The link of an HBA.
    HbaLink { hba: String, link: String },
    /// The uplink of a bank that somebody described.
    BankUplink { bank: String, link: Option<String> },
    /// A link that somebody made by shapes.
    ShapesLink { number: u64 },
    /// All network ports together.
    Ports { ports: usize },
    /// All shards together.
    Shards { shards: u64 },
}

/// What is full.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Full {
    /// The first of what is.
    pub part: Part,
    /// What passes it.
    pub passes: Passes,
    /// Others that are full with it.
    pub others: usize,
    /// These are of the same kind and pass as much.
    pub alike: bool,
}

/// What passes a part, a second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Passes {
    /// Commands are what fills it.
    Commands { commands: f64 },
    /// Bytes are.
    Bytes { bytes: f64 },
}

/// Why another layout of the same drives is better.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Gain {
    /// Fewer pairs of legs share a switch.
    SwitchesApart { pairs: usize, before: usize },
    /// Fewer pairs of legs share a node.
    NodesApart { pairs: usize, before: usize },
    /// A load is so many times as fast with these weights.
    Faster { load: &'static str, factor: f64, weights: Vec<u32> },
}

/// What is not known of a place.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Unknown {
    /// No port's speed is known, so the network is not counted.
    Network,
    /// Hosts ask the head for so many commands a second, so drives are not seen alone.
    BesideLoad { rate: f64 },
    /// The shards are counted as they serve these commands now.
    ShardsAsTheyServe { write: bool, bytes: f64 },
    /// The shards are not counted.
    Shards,
    /// What drives themselves can is not known for all loads.
    Drives { drives: Vec<String> },
    /// Each pool is planned as if it worked alone.
    OtherPools,
}

/// Why there is no plan.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum PlanError {
    /// There is no such drive.
    NoDrive { drive: String },
    /// A drive is named twice.
    DriveTwice { drive: String },
    /// An array without drives, without weight, or no array at all.
    NoArray,
}

/// Why a description is of no possible machine. `of` is what has the key: `drive a`, `bank left`, `[head]`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum DescriptionError {
    /// A number is not above 0.
    NotPositive { key: &'static str, of: String, value: f64 },
    /// There is no such link.
    NoLink { of: String, link: String },
    /// Two banks have one name.
    BankTwice { bank: String },
    /// Two drives have one name.
    DriveTwice { drive: String },
    /// So many drives cannot be.
    DriveCount { drive: String, count: usize, most: usize },
    /// A drive hangs in a bank that is not described.
    NoBank { drive: String, bank: String },
    /// Such ports cannot be.
    Port { mbit: u64, count: usize },
    /// A head has one shard at least.
    NoShard,
}

/// Why a head sits where it does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum SeatReason {
    /// No port and no drive tells its node.
    NodesUnknown,
    /// No port tells its node, so shards are where drives are.
    WithDrives { nodes: Vec<u32> },
    /// Shards are where ports are.
    WithPorts { nodes: Vec<u32> },
    /// Data of drives at these nodes cross to the ports.
    DrivesFar { nodes: Vec<u32> },
    /// These CPUs and their siblings are left to interrupts and everything else.
    CpusLeft { cpus: Vec<u32> },
    /// One thread of each core is used.
    OneThread,
}
