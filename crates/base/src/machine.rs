//! The door between a machine (a shard, the Steward, a load generator) and its world (the kernel, the
//! simulator).
//!
//! The world calls `on_event` for everything that happened, then `end_of_turn` once, then carries out
//! the effects in order and sleeps until something happens or `next_deadline` is reached (then it
//! calls `on_timer`). A machine never waits and never calls the world.

use crate::{
    ConnectionId, DriveError, DriveHealth, DriveId, DriveInfo, DriveOp, Fence, FenceError, FenceOp, Instant,
    OpenError, PortalId, Slice, Token,
};
use core::net::SocketAddr;
use serde::{Deserialize, Serialize};

/// Slots for connections of a machine's own, behind those of connections that it accepts.
pub const OWN_SLOTS: u32 = 256;

/// Who mail is for or from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// One of the shards.
    Shard(u16),
    /// The Steward.
    Steward,
    /// The manager of this head: the HTTP server, or a test.
    Manager,
}

/// A network failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
pub enum NetError {
    /// The address is in use.
    InUse,
    /// The address is not this machine's.
    NoAddress,
    /// The peer refused.
    Refused,
    /// Another errno.
    Other(i32),
}

/// An operation on the state directory: small files, replaced atomically and durably.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateOp {
    /// The whole file; `Missing` if there is none.
    Read {
        /// Name below the state directory, without `/`.
        name: String,
    },
    /// Replaces the file: old or new contents after a crash, new once this is done.
    Write {
        /// Name below the state directory, without `/`.
        name: String,
        /// New contents.
        contents: Vec<u8>,
    },
    /// Appends durably; the file is made if missing, and cut to its newest half beyond `bytes_max`.
    Append {
        /// Name below the state directory, without `/`.
        name: String,
        /// What to append.
        contents: Vec<u8>,
        /// Bound of the file's size.
        bytes_max: u64,
    },
    /// Removes the file; it may be missing.
    Remove {
        /// Name below the state directory, without `/`.
        name: String,
    },
    /// Whether the directory would take a file of so many bytes, as far as its file system says so without writing
    /// anything: an error if it would not, else the names of all files, as `List` gives them.
    Look {
        /// The file's size.
        bytes: u64,
    },
    /// Names of all files, one a line, sorted.
    List,
    /// Drives worth looking at, one specification a line: block devices of this machine that nobody
    /// holds. Files are known only where a configuration names them.
    Candidates,
    /// Milliseconds since 1970-01-01 UTC, as decimal text.
    Clock,
}

/// Why a state operation failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateError {
    /// No such file.
    Missing,
    /// The disk is full.
    NoSpace,
    /// Something else.
    Failed(StateFault),
    /// A file was replaced, and it is not known whether that outlives a crash: after one it is the old file or the new one.
    Unsettled(StateFault),
}

/// What else failed at the state directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum StateFault {
    /// No state directory is configured.
    NoDirectory,
    /// No file of the state directory has such a name.
    Name { name: String },
    /// The file is larger than any of ours.
    TooLarge { path: String, bytes_max: u64 },
    /// The file system is read-only.
    ReadOnly { path: String },
    /// The daemon may not write there.
    Forbidden { path: String, errno: i32 },
    /// Another error of the kernel.
    Errno { path: String, errno: i32 },
}

/// Artificial behaviour of a drive: a user's lab tool and our test kit. All off by default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    /// Added to every operation, microseconds.
    pub latency_us: u32,
    /// Upper limit of operations per second, 0 for none.
    pub iops_max: u32,
    /// Upper limit of MB (10^6 bytes) per second, 0 for none.
    pub mbps_max: u32,
    /// Reads that fail with `Medium`, per million.
    pub read_errors_ppm: u32,
    /// Writes that fail with `Medium`, per million.
    pub write_errors_ppm: u32,
    /// Operations are taken and not answered until this is off again.
    pub hang: bool,
    /// The drive is gone: every operation fails with `Gone`.
    pub gone: bool,
    /// A link that this drive shares with all that name the same number, 0 for none.
    pub uplink: u32,
    /// MB (10^6 bytes) per second of that link in each direction, 1 or more if there is one.
    pub uplink_mbps: u32,
    /// This drive's part of the link when it is full, beside the parts of the others; 0 counts as 1.
    pub uplink_share: u32,
}

/// What happened.
#[derive(Debug)]
pub enum Event<M> {
    /// A peer connected to a portal. The machine must ask for a Receive or Close it.
    Accepted {
        /// The new connection.
        connection: ConnectionId,
        /// Where it arrived.
        portal: PortalId,
        /// Our address on it.
        local: SocketAddr,
        /// The peer's address.
        peer: SocketAddr,
    },
    /// The end of an `Effect::Connect`. On failure the id is free again.
    Connected {
        /// The connection.
        connection: ConnectionId,
        /// How it ended.
        result: Result<(), NetError>,
    },
    /// Bytes arrived. For a staging receive, `data` is a buffer of the world's that must be given back
    /// by `Effect::Recycle`; for a direct one it is the filled beginning of the asked slice.
    Received {
        /// The connection.
        connection: ConnectionId,
        /// The bytes, at least one.
        data: Slice,
    },
    /// The first `bytes` bytes of the connection's segments were taken by the kernel.
    Sent {
        /// The connection.
        connection: ConnectionId,
        /// How many, at least one.
        bytes: u32,
    },
    /// The peer closed or the link failed: nothing more will be received. Comes at most once. The
    /// machine must answer with Close, now or later.
    Broken {
        /// The connection.
        connection: ConnectionId,
    },
    /// The end after `Effect::Close`: no operation of it is left in the kernel, its memory is the
    /// machine's again and its slot may be used by another.
    Closed {
        /// The connection.
        connection: ConnectionId,
    },
    /// A drive operation ended, in any order, exactly once for each.
    DriveDone {
        /// From the operation.
        token: Token,
        /// How it ended.
        result: Result<(), DriveError>,
    },
    /// The end of `Effect::OpenDrive`: every machine of the head may now use the drive.
    DriveOpened {
        /// From the effect.
        token: Token,
        /// What the drive is, or why it could not be opened.
        result: Result<DriveInfo, OpenError>,
    },
    /// The end of `Effect::InspectDrive`.
    DriveInspected {
        /// From the effect.
        token: Token,
        /// How it is; `Gone` if it is not there.
        result: Result<DriveHealth, DriveError>,
    },
    /// The end of `Effect::Fence`, within the operation's limit, exactly once for each.
    Fenced {
        /// From the effect.
        token: Token,
        /// How the drive is now, or why not.
        result: Result<Fence, FenceError>,
    },
    /// The end of `Effect::CloseDrive`: no operation of anybody is left in the kernel and our claim
    /// on the drive is gone.
    DriveClosed {
        /// The drive.
        drive: DriveId,
    },
    /// The end of `Effect::Listen`.
    Listening {
        /// The portal.
        portal: PortalId,
        /// The address in use (its port, if 0 was asked for), or why not.
        result: Result<SocketAddr, NetError>,
    },
    /// The end of `Effect::State`.
    State {
        /// From the effect.
        token: Token,
        /// The contents for Read, List, Candidates and Clock; empty otherwise.
        result: Result<Vec<u8>, StateError>,
    },
    /// Mail, in order for each pair of sender and receiver.
    Mail {
        /// The sender.
        from: Address,
        /// The letter.
        mail: M,
    },
}

/// What a machine wants done.
#[derive(Debug)]
pub enum Effect<M> {
    /// Receive once, by a connection that is up. At most one receive of a connection is under way.
    Receive {
        /// The connection.
        connection: ConnectionId,
        /// None: into a staging buffer that the world chooses when bytes are there (so that idle
        /// connections hold none). Some: at most so many bytes, here; the world may wait until all
        /// of it is there.
        into: Option<Slice>,
        /// Most bytes that a staging buffer may take.
        most: u32,
        /// About how many PDUs may come at once: a world that has other work may ask for them later, so that they do. 0: at once.
        batch: u32,
    },
    /// A staging buffer is free again: the `data` of its `Received`.
    Recycle {
        /// The buffer.
        data: Slice,
    },
    /// Send what `Machine::segments` says. At most one send of a connection is under way; the next may
    /// be asked for after its `Sent`.
    Send {
        /// The connection.
        connection: ConnectionId,
    },
    /// End a connection; ends in `Closed`. Receives and sends under way may or may not be reported.
    Close {
        /// The connection.
        connection: ConnectionId,
    },
    /// Open a connection of our own; ends in `Connected`. The machine chooses the id. Of a machine that listens, slots must be among the
    /// `OWN_SLOTS` behind the world's limit for connections that are accepted; of another, below that limit.
    Connect {
        /// Chosen by the machine.
        connection: ConnectionId,
        /// To whom.
        peer: SocketAddr,
    },
    /// Listen at an address; ends in `Listening`. Every shard does so for every portal.
    Listen {
        /// The portal.
        portal: PortalId,
        /// Its address.
        address: SocketAddr,
    },
    /// Listen no more; connections stay.
    Unlisten {
        /// The portal.
        portal: PortalId,
    },
    /// Do something to a drive; ends in `DriveDone`.
    Drive(DriveOp),
    /// Claim and open a drive for the whole head; ends in `DriveOpened`. The Steward only.
    OpenDrive {
        /// Comes back.
        token: Token,
        /// Its new id.
        drive: DriveId,
        /// A path, `ram:SIZE`, `null:SIZE`.
        spec: String,
        /// A file may be open at another head, too: its lock is shared with heads that open it the same way. Other drives are claimed
        /// for this machine alone, as ever; what other machines do to them, a fence decides.
        shared: bool,
    },
    /// Let go of a drive; ends in `DriveClosed` after everybody's last operation. The Steward only.
    CloseDrive {
        /// The drive.
        drive: DriveId,
    },
    /// Look at an open drive from outside, without an operation of its own; ends in `DriveInspected`. The
    /// Steward only.
    InspectDrive {
        /// Comes back.
        token: Token,
        /// The drive.
        drive: DriveId,
    },
    /// Keep another head from an open drive, or look who can reach it; ends in `Fenced`. Operations of one drive are
    /// carried out in order, beside everything else: neither the machine nor other drives wait for it. The Steward only.
    Fence {
        /// Comes back.
        token: Token,
        /// The drive.
        drive: DriveId,
        /// What to do, and how long it may take.
        op: FenceOp,
    },
    /// Change a drive's artificial behaviour at once. The Steward only.
    ShapeDrive {
        /// The drive.
        drive: DriveId,
        /// From now on.
        shape: Shape,
    },
    /// Work on the state directory; ends in `State`; carried out in order. The Steward only.
    State {
        /// Comes back.
        token: Token,
        /// What to do.
        op: StateOp,
    },
    /// Mail.
    Mail {
        /// For whom.
        to: Address,
        /// The letter.
        mail: M,
    },
}

/// Effects of a turn, in order.
pub type Effects<M> = Vec<Effect<M>>;

/// A deterministic state machine that lives in a world.
pub trait Machine {
    /// What it writes to other machines.
    type Mail: Send + core::fmt::Debug + 'static;
    /// Something happened.
    fn on_event(&mut self, now: Instant, event: Event<Self::Mail>, fx: &mut Effects<Self::Mail>);
    /// `next_deadline` has been reached.
    fn on_timer(&mut self, now: Instant, fx: &mut Effects<Self::Mail>);
    /// Every event of this turn was delivered: batch, send, check.
    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<Self::Mail>);
    /// When it wants to be woken without an event.
    fn next_deadline(&self) -> Option<Instant>;
    /// What `Effect::Send` sends now, in order, appended to `out` (at most `max` slices).
    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>);
}

/// Access to the memory that a machine owns, for worlds that move bytes themselves (the simulator).
/// The kernel's world needs it not: there the region belongs to the world.
pub trait Dma {
    /// Gives `with` the bytes of `data`, if they lie in this machine's part of the region; false if not.
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool;
}
