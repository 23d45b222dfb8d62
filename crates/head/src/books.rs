//! Books: what the machines of a head keep account of, for worlds that check whether it adds up. Nobody asks for them in the product.

use crate::layout::ArrayId;
use array::ArrayBooks;
use base::DriveId;
use std::collections::{BTreeMap, BTreeSet};

/// What a shard keeps account of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShardBooks {
    /// Which one.
    pub shard: u16,
    /// Slots for commands that were promised, and tags that connections have.
    pub promised: u32,
    /// See `promised`.
    pub tags: u32,
    /// Requests of hosts.
    pub requests: u32,
    /// Parts of commands under way, its own and those of peers.
    pub flights: u32,
    /// Peers' commands that came in, those by a map that is not known here yet, and those that wait for a credit.
    pub parked: u32,
    /// See `parked`.
    pub early: u32,
    /// See `parked`.
    pub peers: u32,
    /// Those of all three that shards of the other head have sent.
    pub of_far: u32,
    /// Requests in the queue of turns.
    pub turns: u32,
    /// Requests that wait for far shards, there or gone.
    pub far_waits: u32,
    /// Rate limiters that hold something back.
    pub held_back: u32,
    /// Drives that it has used.
    pub drives: Vec<DriveBooks>,
    /// Bytes of memory for data that the buffer quota has down for hosts, and for connections; and requests that wait for some.
    pub hosts_hold: u64,
    /// See `hosts_hold`.
    pub connections_hold: u64,
    /// See `hosts_hold`.
    pub waiting: u32,
    /// Bytes of memory for data in use, and those that connections, arrays and far shards keep for themselves.
    pub used: u64,
    /// See `used`.
    pub kept: u64,
    /// Its arrays.
    pub arrays: Vec<ArrayOnShard>,
    /// Far shards, in the order of their numbers; those of former pairings, some of whose memory drives keep; and their commands at drives.
    pub far: Vec<FarBooks>,
    /// See `far`.
    pub far_left: Vec<FarBooks>,
    /// See `far`.
    pub far_left_stale: u32,
}

/// A drive, as a shard uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveBooks {
    /// Which one.
    pub drive: DriveId,
    /// Operations under way, and those that were given up and that the kernel still holds.
    pub in_flight: u32,
    /// See `in_flight`.
    pub hung: u32,
}

/// An array, as a shard knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayOnShard {
    /// Which one.
    pub id: ArrayId,
    /// By which map its lanes are dealt here.
    pub map: u32,
    /// Epoch of the members that the shard was told.
    pub epoch: u64,
    /// Some of its lanes are those of shards of the other head that are gone.
    pub bereft: bool,
    /// This head lacks a path to a leg in use, as the shard was told with its members, or as it has found since.
    pub lacks_path: bool,
    /// Commands under way, and those that wait for a credit.
    pub busy: u32,
    /// See `busy`.
    pub waiting: u32,
    /// What its instance knows.
    pub instance: ArrayBooks,
}

/// What a shard keeps account of with one of the other head. Numbers are bytes, where nothing else is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FarBooks {
    /// They have a connection, and both sides have greeted.
    pub open: bool,
    /// Memory there: what is left of the credit, and what the commands cost that were sent and are not answered.
    pub credit: u64,
    /// See `credit`.
    pub sent: u64,
    /// Memory here: what is granted to the other one, how much of that is in use, and how much drives keep.
    pub granted: u64,
    /// See `granted`.
    pub in_use: u64,
    /// See `granted`.
    pub kept: u64,
    /// Commands of the other one, by an earlier connection, that are at drives.
    pub stale: u32,
    /// Messages that are to be sent.
    pub messages: u32,
    /// Of the connection: what is ready to be sent, what was sent, what has come, and how much of that was not taken yet.
    pub unsent: u64,
    /// See `unsent`.
    pub gone: u64,
    /// See `unsent`.
    pub came: u64,
    /// See `unsent`.
    pub untaken: u64,
}

/// What the Steward was told by others, and keeps account of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StewardBooks {
    /// It leads, and all is imported.
    pub ready: bool,
    /// Generation of the last configuration, and the one that each shard has in force.
    pub generation: u64,
    /// See `generation`.
    pub applied: Vec<u64>,
    /// Arrays of which shards have said that they sent nothing of them to others any more, and that they are quiet.
    pub halted: BTreeSet<(ArrayId, u16)>,
    /// See `halted`.
    pub quiesced: BTreeSet<(ArrayId, u16)>,
    /// Mirrors and singles that each shard has said that it has room for, and the most mirrors.
    pub rooms: Vec<Option<(u32, u32, u32)>>,
    /// Mirrors and singles that have their room and are not there yet.
    pub promised: (u32, u32),
    /// The last meeting with the other head's shards, and shards here that have a connection with each of them since.
    pub meeting: u32,
    /// See `meeting`.
    pub far_met: BTreeSet<u16>,
    /// What shards have confirmed of arrays.
    pub arrays: Vec<ArrayAtSteward>,
    /// What the other head and drives have confirmed, if this head is one of two.
    pub system: Option<SystemBooks>,
    /// Connections that wait to be let in; shards that have not parted yet; and the number of the parting.
    pub waiting: u32,
    /// See `waiting`.
    pub parting: Vec<u16>,
    /// See `waiting`.
    pub partings: u32,
    /// A file of the state directory is being written.
    pub filing: bool,
    /// Lanes are being dealt anew.
    pub dealing: bool,
}

/// What shards have confirmed of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayAtSteward {
    /// Which one.
    pub id: ArrayId,
    /// The last map.
    pub map: u32,
    /// Shards whose lanes are the same on all legs since the start.
    pub clean: BTreeSet<u16>,
    /// The last mark of returned space, shards that have done their part of it, and those that have no uncleared piece left since.
    pub marks: u32,
    /// See `marks`.
    pub marked: BTreeSet<u16>,
    /// See `marks`.
    pub cleared: BTreeSet<u16>,
    /// Under which number every region was to be marked dirty last, and shards that have.
    pub all_dirty_number: u32,
    /// See `all_dirty_number`.
    pub all_dirty: BTreeSet<u16>,
    /// By leg: shards that have copied what it lacks.
    pub synced: Vec<BTreeSet<u16>>,
}

/// What the other head and drives have confirmed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SystemBooks {
    /// The last file that was sent to the follower, and the last one that it has.
    pub sent: u64,
    /// See `sent`.
    pub had: u64,
    /// The last question about a drive, and the last one that it has let go for.
    pub asked: u64,
    /// See `asked`.
    pub let_go: u64,
    /// Drives that have confirmed that nobody else may write there, and since which epoch the other head was what it was then.
    pub confirmed: BTreeMap<DriveId, u64>,
    /// Drives that have not.
    pub late: BTreeSet<DriveId>,
    /// Files that are shared are being changed.
    pub sharing: bool,
    /// The follower could not keep one of them.
    pub has_not: bool,
}
