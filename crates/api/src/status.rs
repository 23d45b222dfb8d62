//! The head at one moment.

use crate::{
    Cause, Cluster, Drive, Event, HeadServes, Host, Notice, Pool, Portal, Protocol, State, Time, Volume,
};
use base::{ConnectionFault, Uuid};
use core::net::SocketAddr;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something wrong, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// How bad.
    pub state: State,
    /// What it is about: `pool tank`, `drive /dev/sdb`.
    pub what: String,
    /// The cause.
    #[serde(flatten)]
    pub cause: Cause,
    /// The cause, one sentence.
    pub message: String,
    /// The command that helps, if one does.
    pub next: Option<String>,
}

impl Status {
    /// The health, for people: one that is optimal may be so without a spare for the next drive.
    pub fn health_word(&self) -> &'static str {
        let used_up = self.pools.iter().find(|p| p.no_spare).filter(|_| self.health == State::Optimal);
        used_up.map_or(self.health.word(), |p| p.state_word())
    }
}

impl Reason {
    /// A reason whose sentence the daemon adds as it answers.
    pub fn new(state: State, what: impl Into<String>, cause: impl Into<Cause>) -> Self {
        Self { state, what: what.into(), cause: cause.into(), message: String::new(), next: None }
    }
}

/// Something worth knowing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Noticed {
    /// What.
    #[serde(flatten)]
    pub notice: Notice,
    /// The same, one sentence.
    pub message: String,
}

/// What was done since the start; differences over time give rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Counters {
    /// Read commands.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Commands that write (write, zeroes, deallocate).
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Commands that ended in an error.
    pub errors: u64,
}

/// How long commands took, or a part of them. One in 64 is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Times {
    /// The median of those of the last one to two minutes, nanoseconds. This and the next two are rounded up to a
    /// quarter of an octave.
    pub p50_ns: u64,
    /// What 99 of 100 did not exceed.
    pub p99_ns: u64,
    /// What 999 of 1000 did not exceed.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// How many were timed in the last one to two minutes.
    pub timed: u64,
    /// Nanoseconds, summed over all that were timed since the start.
    pub total_ns: u64,
    /// How many these were.
    pub total_timed: u64,
    /// How many of these took longer than one of `BOUNDS_NS` and not longer than the next; the last ones took longer than all.
    /// For metrics alone.
    #[serde(skip)]
    pub buckets: [u64; BUCKETS],
}

/// Upper bounds of the buckets of metrics, nanoseconds: the same for everything, so that they add up.
pub const BOUNDS_NS: [u64; BUCKETS - 1] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    5_000_000_000,
];

/// Buckets of metrics: one for each bound, and one for what is longer than all.
pub const BUCKETS: usize = 17;

/// Where the time of a volume's reads or writes goes, stage by stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Stages {
    /// From its arrival until its answer was gone.
    pub all: Times,
    /// The wait for memory, and of a write for the host's data.
    pub admitted: Times,
    /// The wait for the volume's caps, and for a credit of its array.
    pub volume: Times,
    /// In the array, until the drive operation starts that ends it: writes to the same blocks, the bitmap, the record of a
    /// lost leg, another shard.
    pub array: Times,
    /// The last of its drive operations.
    pub drive: Times,
    /// Its answer, until it is on its way; that of a read until the kernel has taken the data.
    pub replied: Times,
}

impl Stages {
    /// Its parts in order, with their names.
    pub fn parts(&self) -> [(&'static str, &Times); 5] {
        [
            ("admitted", &self.admitted),
            ("volume", &self.volume),
            ("array", &self.array),
            ("drive", &self.drive),
            ("replied", &self.replied),
        ]
    }
}

/// Who the system is, for life.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct System {
    /// NVMe subsystem's qualified name.
    pub nqn: String,
    /// iSCSI target's name.
    pub iqn: String,
    /// Identity.
    #[serde(with = "crate::text")]
    #[schema(value_type = String)]
    pub uuid: Uuid,
    /// Serial number.
    pub serial: String,
    /// Model.
    pub model: String,
    /// Firmware revision, as hosts see it.
    pub firmware: String,
}

/// The process that answers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Daemon {
    /// Version of the program.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Its state directory.
    pub state_dir: String,
    /// The pools were not imported at the start, because it had crashed three times in a minute.
    pub management_only: bool,
    /// Memory for data, and what its machines need beside it, bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// The part of it that is for data, all shards together, bytes: `memory` of the configuration.
    #[serde(default)]
    pub memory_data_bytes: u64,
    /// How much of that was made resident so far; in the background, after a start.
    #[serde(default)]
    pub memory_resident_bytes: u64,
}

/// A connection of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Connection {
    /// The host, once it is known.
    pub host: Option<String>,
    /// What is spoken.
    pub protocol: Protocol,
    /// Its address.
    #[schema(value_type = String)]
    pub peer: SocketAddr,
    /// The head that serves it, of a system of two: `a` or `b`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The shard of that head.
    pub shard: u16,
    /// NVMe controller id or iSCSI session handle, once it is known.
    pub session: Option<u16>,
    /// NVMe queue id (0: admin), iSCSI connection id.
    pub queue: u16,
    /// Commands so far.
    pub commands: u64,
    /// Commands under way.
    pub in_flight: u32,
    /// Both sides compute a checksum over each header.
    #[serde(default)]
    pub header_digest: bool,
    /// Both sides compute a checksum over all data.
    #[serde(default)]
    pub data_digest: bool,
}

/// A shard: the part of the head that runs on one core.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Shard {
    /// Its head, of a system of two: `a` or `b`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Its number at that head.
    pub shard: u16,
    /// Its connections.
    pub connections: u32,
    /// Commands so far.
    pub commands: u64,
    /// Requests under way.
    pub requests: u32,
    /// Drive operations under way.
    pub drive_ops: u32,
    /// Buffer bytes in use.
    pub buffer_bytes: u64,
    /// Buffer bytes there are.
    pub buffer_bytes_max: u64,
    /// Connections ended because the peer broke the protocol.
    pub protocol_errors: u64,
    /// What the last of these was, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub last_protocol_fault: Option<ConnectionFault>,
    /// What the last of these was; empty if there was none.
    pub last_protocol_error: String,
    /// The longest turn of the last one to two minutes, microseconds by the clock. In a turn a shard handles all that
    /// has happened; who comes in the midst of it waits for its end.
    pub longest_turn_us: u64,
    /// Turns that took longer than they should, which is 5 ms.
    pub long_turns: u64,
}

/// The head at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The moment.
    pub at: Time,
    /// Seconds since the head started.
    pub uptime_seconds: u64,
    /// The process that answers.
    pub daemon: Daemon,
    /// Who the system is.
    pub system: System,
    /// The worst of everything below.
    pub health: State,
    /// Why it is not better, worst first.
    pub reasons: Vec<Reason>,
    /// Drives that we hold, or miss.
    pub drives: Vec<Drive>,
    /// Pools, by name.
    pub pools: Vec<Pool>,
    /// Volumes, by name.
    pub volumes: Vec<Volume>,
    /// Hosts, by name.
    pub hosts: Vec<Host>,
    /// Where we listen.
    pub portals: Vec<Portal>,
    /// Who is connected.
    pub connections: Vec<Connection>,
    /// Shards.
    pub shards: Vec<Shard>,
    /// The latest events, oldest first.
    pub events: Vec<Event>,
    /// Worth knowing and nothing wrong.
    pub notices: Vec<Noticed>,
    /// The same of less weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub minor_notices: Vec<Noticed>,
    /// Both heads, if this is one of a system of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// What each head of a system does for hosts, by its number, as the one that leads knows it: a part of `cluster`.
    #[serde(skip)]
    pub serves: Option<[HeadServes; 2]>,
}

/// Something new exists.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Created {
    /// Its identity, if it has one for life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Worth knowing.
    #[serde(default)]
    pub notices: Vec<Noticed>,
}

impl Default for Connection {
    /// One of an address that says nothing: for parts of a status.
    fn default() -> Self {
        Self {
            host: None,
            protocol: Protocol::default(),
            peer: SocketAddr::from(([0, 0, 0, 0], 0)),
            head: None,
            shard: 0,
            session: None,
            queue: 0,
            commands: 0,
            in_flight: 0,
            header_digest: false,
            data_digest: false,
        }
    }
}
