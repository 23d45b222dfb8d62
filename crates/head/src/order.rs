//! The door between management (the API server, a test) and the Steward: plain data, both ways.
//!
//! `Address::Manager` mails an `Order` to the Steward with a number of its own; the Steward answers
//! each exactly once with an `Answered` and the same number. Orders that change something are carried
//! out one after the other, in the order of arrival; orders that only look are answered in between.
//! An order answered with `Ok` is durable. A refused order has changed nothing, unless its refusal says so.
//!
//! Sizes are bytes, weights and counts are plain numbers, times are seconds since 1970-01-01 UTC.

use base::Uuid;
use base::machine::Shape;
use base::view::{Protocol, Secret, System};
use core::net::SocketAddr;

/// What a manager wants.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    /// Make a pool of drives. Answered by `Created`. A first resync goes on in the background.
    PoolCreate {
        /// Name of the pool: see `NAME_RULE`.
        name: String,
        /// Its arrays, at least one.
        arrays: Vec<ArraySpec>,
        /// Chunk of the stripe, a power of two from 16 KiB to 4 MiB; 64 KiB if None.
        chunk_bytes: Option<u32>,
        /// Block size of its volumes unless they say otherwise, 512 or 4096; 4096 if None.
        block_bytes: Option<u32>,
        /// Measure the weights of arrays that have none given (writes a few hundred MB to each drive).
        measure: bool,
        /// Use drives that carry something foreign or another pool's label.
        force: bool,
    },
    /// Append arrays to a pool, as a new zone.
    PoolAdd {
        /// The pool.
        pool: String,
        /// What to append.
        arrays: Vec<ArraySpec>,
        /// As in `PoolCreate`.
        force: bool,
    },
    /// Let go of a pool, so that another head may import it. Its volumes vanish from the hosts.
    PoolRelease {
        /// The pool.
        pool: String,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Take a pool found on drives. Answered by `Created` with its UUID.
    PoolImport {
        /// Name or UUID; None: the only one that could be imported.
        pool: Option<String>,
        /// Drives to look at beside this machine's candidates (file drives are found only so).
        drives: Vec<String>,
        /// Take it even if another head did not release it, or a leg cannot be proven current.
        force: bool,
    },
    /// Look for pools that could be imported. Answered by `Importable`.
    PoolImportable {
        /// Drives to look at beside this machine's candidates.
        drives: Vec<String>,
    },
    /// Wipe a pool's labels. Its volumes are lost.
    PoolDestroy {
        /// The pool.
        pool: String,
        /// Even though it has volumes.
        force: bool,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Make a volume. Answered by `Created`.
    VolumeCreate {
        /// The pool.
        pool: String,
        /// Name within the pool: see `NAME_RULE`.
        name: String,
        /// Size; a multiple of the block size.
        bytes: u64,
        /// 512 or 4096; the pool's default if None.
        block_bytes: Option<u32>,
    },
    /// Grow a volume, or with `force` shrink it.
    VolumeResize {
        /// `pool/volume`.
        volume: String,
        /// New size.
        bytes: u64,
        /// Needed to shrink: what lies beyond is lost.
        force: bool,
    },
    /// Give a volume another name.
    VolumeRename {
        /// `pool/volume`.
        volume: String,
        /// New name within the pool.
        name: String,
    },
    /// Change what a volume may have.
    VolumeCaps {
        /// `pool/volume`.
        volume: String,
        /// What to change.
        caps: VolumeCaps,
    },
    /// Remove a volume.
    VolumeRemove {
        /// `pool/volume`.
        volume: String,
        /// Even though it is exported.
        force: bool,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Make a host known.
    HostAdd {
        /// Short name: see `NAME_RULE`.
        name: String,
        /// What is known of it.
        settings: HostSettings,
    },
    /// Change a host.
    HostSet {
        /// The host.
        name: String,
        /// What to change.
        settings: HostSettings,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Forget a host and its exports; its connections end.
    HostRemove {
        /// The host.
        name: String,
        /// Even though volumes are exported to it.
        force: bool,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Listen at an address.
    PortalAdd {
        /// What is spoken there.
        protocol: Protocol,
        /// The address.
        address: SocketAddr,
    },
    /// Listen there no more; connections end.
    PortalRemove {
        /// What is spoken there.
        protocol: Protocol,
        /// The address.
        address: SocketAddr,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Give a volume to a host.
    Export {
        /// `pool/volume`.
        volume: String,
        /// The host.
        host: String,
        /// Logical unit number for iSCSI; the lowest free one if None.
        lun: Option<u16>,
    },
    /// Take a volume from a host.
    Unexport {
        /// `pool/volume`.
        volume: String,
        /// The host.
        host: String,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Our drives and this machine's candidates. Answered by `Drives`.
    DriveList {
        /// Further drives to look at.
        drives: Vec<String>,
    },
    /// Take a drive out of its mirror now.
    DriveFail {
        /// Its path, or its UUID.
        drive: String,
    },
    /// Take a drive back into its mirror: partial resync by bitmap where it can be proven safe.
    DriveReturn {
        /// Its path, or its UUID.
        drive: String,
    },
    /// Put another drive in a leg's place: full resync. A leg in sync serves until that is over.
    DriveReplace {
        /// The leg's drive: path or UUID.
        old: String,
        /// The new drive's path.
        new: String,
        /// As in `PoolCreate`.
        force: bool,
    },
    /// Make a drive behave artificially. Not kept over a restart.
    DriveShape {
        /// Its path, or its UUID.
        drive: String,
        /// From now on; `Shape::default()` ends it.
        shape: Shape,
    },
    /// A drive that will take the place of a leg that fails.
    SpareAdd {
        /// The pool.
        pool: String,
        /// Its path.
        drive: String,
        /// As in `PoolCreate`.
        force: bool,
    },
    /// Take a drive from its pool: a spare, or a leg of a mirror.
    DriveRemove {
        /// Its path, or its UUID.
        drive: String,
        /// Even though a mirror is left without redundancy.
        force: bool,
    },
    /// Add a leg to a mirror: full resync.
    LegAdd {
        /// The pool.
        pool: String,
        /// The mirror, as `status` names it (`mirror-0`); may be None where there is one only.
        mirror: Option<String>,
        /// The new drive's path.
        drive: String,
        /// As in `PoolCreate`.
        force: bool,
    },
    /// The Steward's own: drives whose places others have taken leave.
    Replaced {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// The Steward's own: an absent pool is imported if all its drives are back.
    PoolReturn {
        /// The pool.
        pool: base::Uuid,
    },
    /// The Steward's own: legs that were gone or silent are tried again.
    LegReturn {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// The Steward's own: a spare takes the place of a leg that is out.
    SpareUse {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// Compare the legs of a pool's mirrors.
    PoolScrub {
        /// The pool.
        pool: String,
        /// What to do.
        action: ScrubAction,
    },
    /// The Steward's own: what a scrub has come to is written down, or one that is due begins.
    ScrubKeep {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// Everything there is to know. Answered by `Snapshot`.
    Status,
    /// Events since a number. Answered by `Events`.
    Events {
        /// First number wanted; 0 for all that are kept.
        since: u64,
    },
    /// Stop in order: volumes stop, everything is made durable, drives are marked clean and let go.
    Shutdown,
}

/// Rule for names of pools, volumes and hosts, in words.
pub const NAME_RULE: &str = "1 to 63 characters of a-z A-Z 0-9 . _ - beginning with a letter or digit";

/// What a volume may have. None leaves it as it is, 0 takes a cap away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VolumeCaps {
    /// Commands a second.
    pub iops_max: Option<u32>,
    /// Megabytes (10^6 bytes) of data a second.
    pub mbps_max: Option<u32>,
}

/// What to do about scrubs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScrubAction {
    /// Begin one now.
    Start {
        /// Legs that differ are made equal: by majority where there is one, else as `prefer` says, else not.
        repair: bool,
        /// The drives that count where it is not known which one is right, one for a mirror: paths or UUIDs.
        prefer: Vec<String>,
    },
    /// End the one under way.
    Stop,
    /// Forget what the last one found: it was dealt with.
    Clear,
    /// Begin one so many days after the last one ended.
    Schedule {
        /// 0 for never.
        days: u32,
        /// Those repair, by majority where there is one.
        repair: bool,
    },
}

/// One array of a new pool or zone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArraySpec {
    /// `mirror` (2 to 4 drives); otherwise `single` (1 drive).
    pub mirror: bool,
    /// Paths, `ram:SIZE`, `null:SIZE`; each may have a shape in front, `shape:mbps-max=100@PATH`.
    pub drives: Vec<String>,
    /// Its weight in the stripe, 1 to 64; 1 (or what was measured) if None.
    pub weight: Option<u32>,
}

/// What may be said of a host. `None` leaves a thing as it is (in `HostAdd`: absent).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSettings {
    /// All its NVMe qualified names.
    pub nqns: Option<Vec<String>>,
    /// All its iSCSI names.
    pub iqns: Option<Vec<String>>,
    /// The secret that it must prove; `Some(None)` removes it.
    pub chap_secret: Option<Option<Secret>>,
    /// CHAP user name; empty for its IQN.
    pub chap_user: Option<String>,
    /// The secret that we prove to it; `Some(None)` removes it. Needs a `chap_secret`.
    pub mutual_secret: Option<Option<Secret>>,
}

/// What kind of refusal: decides the HTTP status and the CLI's exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RefusalKind {
    /// The thing named does not exist.
    NotFound,
    /// It exists already, or is in use.
    Conflict,
    /// A field is wrong.
    Invalid,
    /// It would lose data or take something foreign: `force` does it all the same. Of the field `disconnect`: hosts
    /// are connected that would lose something.
    Unsafe,
    /// Not now: something must happen first.
    NotReady,
    /// Not enough room on the drives or in the state directory.
    NoSpace,
    /// Our own or a drive's failure.
    Internal,
}

/// Why an order was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Its kind.
    pub kind: RefusalKind,
    /// The order's field at fault, in this file's spelling.
    pub field: Option<String>,
    /// The cause, one sentence, with the names of what it is about.
    pub message: String,
    /// The command that helps.
    pub next: Option<String>,
}

/// The answer to an order.
pub type Answered = Result<Reply, Refusal>;

/// How an order went well.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// Done.
    Done,
    /// Done, and something new exists.
    Created {
        /// Its identity.
        uuid: Uuid,
        /// Worth knowing; empty if nothing is. Sentences.
        notices: Vec<String>,
    },
    /// To `Status`.
    Snapshot(Box<Snapshot>),
    /// To `DriveList`.
    Drives(Vec<Drive>),
    /// To `PoolImportable`.
    Importable(Vec<Importable>),
    /// To `Events`, oldest first.
    Events(Vec<EventLine>),
}

/// The few states that anything of ours can be in, best first (so that `max` is the worst).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub enum State {
    /// All is well.
    #[default]
    Optimal,
    /// Works, with all redundancy soon back: a resync is under way.
    Rebuilding,
    /// Works, with less redundancy than asked for.
    Degraded,
    /// Does not work, and may once something comes back.
    Offline,
    /// Does not work.
    Failed,
}

impl State {
    /// The word for people and for JSON.
    pub fn word(self) -> &'static str {
        match self {
            State::Optimal => "optimal",
            State::Rebuilding => "rebuilding",
            State::Degraded => "degraded",
            State::Offline => "offline",
            State::Failed => "failed",
        }
    }
}

/// Something wrong, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reason {
    /// How bad.
    pub state: State,
    /// What it is about: `pool tank`, `drive /dev/sdb`, `portal iscsi 10.0.0.1:3260`.
    pub what: String,
    /// The cause, one sentence.
    pub message: String,
    /// The command that helps, if one does.
    pub next: Option<String>,
}

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
    /// Who is connected.
    pub connections: Vec<Connection>,
    /// Shards.
    pub shards: Vec<Shard>,
    /// The latest events, oldest first.
    pub events: Vec<EventLine>,
    /// Worth knowing and nothing wrong: sentences (memory not locked).
    pub notices: Vec<String>,
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
    /// Its state as a leg (candidates: optimal).
    pub state: State,
    /// Why, one sentence; empty if all is well and it is free to use.
    pub reason: String,
    /// Operations that failed or were late, since the start.
    pub errors: u64,
    /// What was done to it, since the start.
    pub counters: Counters,
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
}

/// Something that a scrub found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Finding {
    /// `pool/volume`; None for space that no volume has.
    pub volume: Option<String>,
    /// First byte in the volume, or in pool space.
    pub at: u64,
    /// Bytes.
    pub bytes: u64,
    /// Index of the array.
    pub array: u16,
    /// What, one sentence.
    pub what: String,
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

/// How far a resync is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Resync {
    /// The leg (index in `Array::legs`) that is being written.
    pub leg: u16,
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
    /// To whom it is given.
    pub exports: Vec<Exported>,
    /// Commands that its hosts may start in a second, 0 for no cap.
    pub iops_max: u32,
    /// Megabytes (10^6 bytes) that they may move in a second, 0 for no cap.
    pub mbps_max: u32,
    /// Commands that had to wait for one of these since the start.
    pub capped: u64,
    /// What hosts did with it since the start.
    pub counters: Counters,
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
    /// The shard that serves it.
    pub shard: u16,
    /// NVMe controller id or iSCSI session handle, once it is known.
    pub session: Option<u16>,
    /// NVMe queue id (0: admin), iSCSI connection id.
    pub queue: u16,
    /// Commands so far.
    pub commands: u64,
    /// Commands under way.
    pub in_flight: u32,
}

/// A shard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shard {
    /// Its number.
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

/// A pool that lies on drives here and is not imported; or a drive that somebody holds, of which nothing else is
/// known: then the name is empty, and `reason` says which drive and who.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Importable {
    /// Name.
    pub name: String,
    /// Identity.
    pub uuid: Uuid,
    /// State that it would have; `Offline` or `Failed` if it cannot be imported as it is.
    pub state: State,
    /// Why not, or what to know; empty if all is well.
    pub reason: String,
    /// The command that imports it.
    pub next: Option<String>,
    /// It was released by the last head that had it.
    pub released: bool,
    /// Drives found, by path.
    pub found: Vec<String>,
    /// Drives missing, by identity.
    pub missing: Vec<Uuid>,
}

/// How weighty an event is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub enum Weight {
    /// Something was done.
    #[default]
    Note,
    /// Somebody should look.
    Warning,
    /// Something broke.
    Error,
}

impl Weight {
    /// The word for people and for JSON.
    pub fn word(self) -> &'static str {
        match self {
            Weight::Note => "note",
            Weight::Warning => "warning",
            Weight::Error => "error",
        }
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventLine {
    /// Grows by one with each event, for life of the state directory.
    pub number: u64,
    /// Seconds since 1970-01-01 UTC.
    pub at: u64,
    /// How weighty.
    pub weight: Weight,
    /// What it is about: `pool tank`, `drive /dev/sdb`, `host esx1`.
    pub what: String,
    /// What happened, one sentence.
    pub message: String,
}
