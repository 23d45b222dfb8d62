//! What the Steward says of everything, for `status`.

use super::EventLine;
use crate::path::stages::STAGES;
use crate::report::Digests;
pub use api::Reason;
use base::Uuid;
use base::machine::Shape;
use base::view::{Interface, Moves, Protocol, System};
use cluster::HeadNo;
use core::net::SocketAddr;
pub use finding::State;

/// The head at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// Seconds since 1970-01-01 UTC.
    pub at: u64,
    /// Seconds since the head started.
    pub uptime: u64,
    /// Who we are.
    pub system: SystemInfo,
    /// The worst of everything below.
    pub health: State,
    /// Why it is not better, worst first; empty when optimal.
    pub reasons: Vec<Reason>,
    /// Drives that we hold, or miss.
    pub drives: Vec<Drive>,
    /// Pools, by name.
    pub pools: Vec<Pool>,
    /// Volumes, by name.
    pub volumes: Vec<Volume>,
    /// Hosts, by name. Never their secrets.
    pub hosts: Vec<Host>,
    /// Where we listen.
    pub portals: Vec<PortalState>,
    /// What each head of a system does, by its number, as the one that leads knows it.
    pub heads: Option<[Served; 2]>,
    /// Who is connected.
    pub connections: Vec<Connection>,
    /// Shards.
    pub shards: Vec<Shard>,
    /// The latest events, oldest first.
    pub events: Vec<EventLine>,
    /// Worth knowing and nothing wrong.
    pub notices: Vec<super::Notice>,
}

/// Who we are, as `Snapshot` tells it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SystemInfo {
    /// NVMe subsystem's qualified name.
    pub nqn: String,
    /// iSCSI target's name.
    pub iqn: String,
    /// Identity.
    pub uuid: Uuid,
    /// Serial number.
    pub serial: String,
    /// Model.
    pub model: String,
    /// Version of the program.
    pub firmware: String,
}

impl From<&System> for SystemInfo {
    fn from(s: &System) -> Self {
        Self {
            nqn: s.nqn.clone(),
            iqn: s.iqn.clone(),
            uuid: s.uuid,
            serial: s.serial.clone(),
            model: s.model.clone(),
            firmware: s.firmware.clone(),
        }
    }
}

/// What was done so far; differences over time give rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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

/// A drive: one of ours, a missing one, or a candidate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Drive {
    /// Path or specification; empty for a missing one whose path is not known.
    pub path: String,
    /// Identity by our label; nil for a candidate.
    pub uuid: Uuid,
    /// `block`, `file`, `ram`, `null`; empty for a missing one.
    pub kind: String,
    /// Model, empty if unknown.
    pub model: String,
    /// Serial number, empty if unknown.
    pub serial: String,
    /// Size in bytes, 0 if unknown.
    pub bytes: u64,
    /// Smallest write, bytes.
    pub block_bytes: u32,
    /// It may lose completed writes without a flush.
    pub volatile_cache: bool,
    /// Name of its pool.
    pub pool: Option<String>,
    /// What it is to us.
    pub role: DriveRole,
    /// Its state as a leg or spare; None for what is no drive of ours.
    pub state: Option<State>,
    /// Why, one sentence; empty if all is well and it is free to use.
    pub reason: String,
    /// Its reads take far longer than those of the mirror's other legs, which serve most of them.
    pub slow: bool,
    /// Operations that failed or were late, since the start.
    pub errors: u64,
    /// What was done to it, since the start.
    pub counters: Counters,
    /// How long its reads took, if some were timed,
    pub reads: Option<Spread>,
    /// and its writes.
    pub writes: Option<Spread>,
    /// Its artificial behaviour, if any.
    pub shape: Option<Shape>,
}

/// What a drive is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum DriveRole {
    /// A leg of a pool of ours.
    Leg,
    /// A leg of a pool of ours that is not there.
    Missing,
    /// A hot spare of a pool of ours.
    Spare,
    /// Nobody's.
    #[default]
    Free,
    /// Carries something foreign: `reason` names it.
    Foreign,
    /// Carries a label of a pool that is not imported: `reason` names it.
    Labelled,
    /// Could not be opened: `reason` says why.
    Unusable,
}

/// A pool.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Identity.
    pub uuid: Uuid,
    /// State: the worst of its arrays'.
    pub state: State,
    /// Why, one sentence; empty when optimal.
    pub reason: String,
    /// Chunk of the stripe, bytes.
    pub chunk_bytes: u32,
    /// Space for volumes, bytes.
    pub bytes: u64,
    /// Of these, given to volumes.
    pub used_bytes: u64,
    /// Of these, what is no volume's any more and becomes free within seconds, when no write to it can be left at a drive.
    pub resting_bytes: u64,
    /// Space that holds what somebody left is being cleared.
    pub clearing: Option<Clearing>,
    /// Block size of new volumes.
    pub block_bytes: u32,
    /// Zones of the stripe map, in order.
    pub zones: Vec<Zone>,
    /// Its arrays, in order.
    pub arrays: Vec<Array>,
    /// Its scrubs.
    pub scrub: Scrub,
    /// Its hot spares, in the order in which they are used.
    pub spares: Vec<Spare>,
}

/// A hot spare.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spare {
    /// Its path; the last known one if it is missing.
    pub path: String,
    /// Its identity.
    pub uuid: Uuid,
    /// Size in bytes, 0 if unknown.
    pub bytes: u64,
    /// It is there.
    pub ready: bool,
    /// Why not, one sentence.
    pub reason: String,
    /// Which mirrors it can stand in for, and why not for others; empty if for every one.
    pub fits: String,
}

/// The scrub of a pool under way, or the last one; and when the next one begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scrub {
    /// One is under way.
    pub running: bool,
    /// It repairs.
    pub repair: bool,
    /// Bytes of the mirrors compared so far.
    pub done_bytes: u64,
    /// Bytes there are to compare.
    pub total_bytes: u64,
    /// Bytes a second, lately.
    pub rate: u64,
    /// Seconds left at that rate.
    pub eta: Option<u64>,
    /// Seconds since 1970-01-01 UTC when the last one came to its end.
    pub last_ended: Option<u64>,
    /// One begins so many days after that; 0 for never.
    pub every_days: u32,
    /// Those repair.
    pub schedule_repairs: bool,
    /// Bytes in which legs differed.
    pub differed_bytes: u64,
    /// Of these, written again.
    pub repaired_bytes: u64,
    /// Bytes that could not be compared.
    pub unreadable_bytes: u64,
    /// The first of what was found since the head started, by volume.
    pub findings: Vec<Finding>,
    /// Places that it was found in, of which `findings` has the first.
    pub places: u64,
}

/// Something that a scrub found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// `pool/volume`; None for space that no volume has.
    pub volume: Option<String>,
    /// First byte in the volume, or in pool space.
    pub at: u64,
    /// Bytes.
    pub bytes: u64,
    /// Index of the array.
    pub array: u16,
    /// What.
    pub what: finding::Difference,
    /// It was written again.
    pub repaired: bool,
}

/// A zone: a part of a pool striped over some of its arrays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Zone {
    /// Bytes of pool space.
    pub bytes: u64,
    /// Arrays (index in `Pool::arrays`) and their weights.
    pub weights: Vec<(u16, u32)>,
}

/// An array.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Array {
    /// Two or more legs.
    pub mirror: bool,
    /// State.
    pub state: State,
    /// Why, one sentence; empty when optimal.
    pub reason: String,
    /// Bytes for data.
    pub bytes: u64,
    /// Its legs, in order.
    pub legs: Vec<Leg>,
    /// Bytes that one bit of the bitmap covers.
    pub region_bytes: u64,
    /// Bitmap: regions marked dirty now.
    pub regions_dirty: u64,
    /// Bitmap: all regions.
    pub regions: u64,
    /// Membership counter.
    pub epoch: u64,
    /// The resync under way.
    pub resync: Option<Resync>,
    /// Writes of hosts that found their region marked, since the start: they cost the bitmap nothing.
    pub warm_writes: u64,
    /// Writes of hosts that waited until their region was marked on every leg.
    pub cold_writes: u64,
    /// Writes of bitmap blocks that mark regions, each to all legs at once.
    pub bitmap_sets: u64,
    /// Writes of bitmap blocks that only clear marks.
    pub bitmap_clears: u64,
    /// Nanoseconds that cold writes waited for the bitmap, summed.
    pub cold_wait_ns: u64,
    /// Reads that were late and were sent to another leg too, since the start; and those answered from there.
    pub hedges_sent: u64,
    /// See `hedges_sent`.
    pub hedges_won: u64,
}

/// A drive as a member of an array.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Leg {
    /// The drive's path; the last known one if it is missing.
    pub path: String,
    /// The drive's identity.
    pub uuid: Uuid,
    /// `Optimal`: in sync. `Rebuilding`: written and being resynced. `Failed`: out. `Offline`: missing, or
    /// not proven current.
    pub state: State,
    /// Why, one sentence.
    pub reason: String,
    /// Its reads take far longer than those of the other legs, which serve most of them.
    pub slow: bool,
    /// The drive whose place it takes once it is in sync.
    pub replaces: Option<String>,
}

/// How far the clearing of space is that reads as zeroes without the drives.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Clearing {
    /// Bytes of the arrays left to clear.
    pub left_bytes: u64,
    /// Bytes a second, lately.
    pub rate: u64,
    /// Seconds left at that rate.
    pub eta: Option<u64>,
}

/// How far a resync is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Resync {
    /// The leg (index in `Array::legs`) that is being written. None: all are in use, and are made the same where they
    /// may differ, since a crash or since the array was made.
    pub leg: Option<u16>,
    /// By bitmap, not everything.
    pub partial: bool,
    /// Bytes made the same so far.
    pub done_bytes: u64,
    /// Bytes there were to do.
    pub total_bytes: u64,
    /// Bytes a second, lately.
    pub rate: u64,
    /// Seconds left at that rate.
    pub eta: Option<u64>,
}

/// A volume.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Volume {
    /// `pool/volume`.
    pub name: String,
    /// Identity.
    pub uuid: Uuid,
    /// NVMe identity.
    pub nguid: [u8; 16],
    /// SCSI identity.
    pub naa: [u8; 16],
    /// Namespace id.
    pub nsid: u32,
    /// Size.
    pub bytes: u64,
    /// Block size.
    pub block_bytes: u32,
    /// State: its pool's.
    pub state: State,
    /// Runs of pool space that it consists of.
    pub runs: u32,
    /// Space of the pool that it takes: its size, up to whole granules.
    pub space_bytes: u64,
    /// To whom it is given.
    pub exports: Vec<Exported>,
    /// Commands that its hosts may start in a second, 0 for no cap.
    pub iops_max: u32,
    /// Megabytes (10^6 bytes) that they may move in a second, 0 for no cap.
    pub mbps_max: u32,
    /// Its part of what drives do, beside that of others, when they are the limit.
    pub weight: u16,
    /// Commands that had to wait for one of these since the start.
    pub capped: u64,
    /// What hosts did with it since the start.
    pub counters: Counters,
    /// Where the time of its reads went, if some were timed,
    pub reads: Option<Stages>,
    /// and of its writes.
    pub writes: Option<Stages>,
}

/// How long commands took, or a part of them: those that were timed in the last one to two minutes, and all that were
/// timed since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spread {
    /// The median, nanoseconds; this and the next two are rounded up to a quarter of an octave.
    pub p50_ns: u64,
    /// What 99 of 100 did not exceed.
    pub p99_ns: u64,
    /// What 999 of 1000 did not exceed.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// How many these are of.
    pub timed: u64,
    /// Nanoseconds of all that were timed since the start,
    pub total_ns: u64,
    /// and how many they were.
    pub total_timed: u64,
}

/// How long a volume's reads, or its writes, took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stages {
    /// From their arrival until their answer was gone.
    pub all: Spread,
    /// The parts of it, by `Stage`, in order.
    pub parts: [Spread; STAGES],
}

/// A volume given to a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exported {
    /// The host's name; None if no host with the names kept in the pool is known here.
    pub host: Option<String>,
    /// The names kept in the pool.
    pub names: Vec<String>,
    /// Logical unit number for this host.
    pub lun: u16,
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Host {
    /// Short name.
    pub name: String,
    /// NVMe qualified names.
    pub nqns: Vec<String>,
    /// iSCSI names.
    pub iqns: Vec<String>,
    /// It proves a secret over iSCSI; otherwise it is identified, not authenticated.
    pub authenticated: bool,
    /// We prove a secret to it.
    pub mutual: bool,
    /// CHAP user name; empty for its IQN.
    pub chap_user: String,
    /// Volumes given to it: `pool/volume`, namespace id, logical unit number.
    pub exports: Vec<(String, u32, u16)>,
    /// Its connections now.
    pub connections: u32,
}

/// A portal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalState {
    /// What is spoken.
    pub protocol: Protocol,
    /// Its address.
    pub address: SocketAddr,
    /// Listening on every shard.
    pub listening: bool,
    /// Why not; empty if it is.
    pub reason: String,
    /// Connections that came in by it and are there.
    pub connections: u32,
    /// Whose it is, of two heads.
    pub head: Option<HeadNo>,
    /// The head that listens there in its place.
    pub instead: Option<HeadNo>,
    /// How its address moves to the head that leads.
    pub moves: Option<Moves>,
    /// The interface of this head that has it.
    pub on: Option<Interface>,
}

/// What a head of a system does for hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Served {
    /// Hosts that are connected there.
    pub hosts: u32,
    /// Commands of hosts so far.
    pub commands: u64,
    /// Lanes of arrays that it has.
    pub lanes: u32,
    /// Lanes that there are.
    pub lanes_all: u32,
}

/// A connection of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The host's short name, once it is known.
    pub host: Option<String>,
    /// What is spoken.
    pub protocol: Protocol,
    /// Its address.
    pub peer: SocketAddr,
    /// The head that serves it, of a system of two.
    pub head: Option<HeadNo>,
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
    /// Checksums that were agreed.
    pub digests: Digests,
}

/// A shard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shard {
    /// Its head, of a system of two.
    pub head: Option<HeadNo>,
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
    /// What the last of these was.
    pub last_protocol_error: String,
}
