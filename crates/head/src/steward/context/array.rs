//! What the Steward knows of an array and its legs beyond what is decided.

use crate::layout::ArrayId;
use crate::steward::context::found::Found;
use crate::steward::context::open::OpenDrive;
use array::{Bitmap, Geometry, UnclearedMap};
use base::{DriveError, DriveId, Instant, Uuid};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) struct ArrayDesk {
    pub id: ArrayId,
    pub geometry: Geometry,
    pub dirty: Arc<Bitmap>,
    pub unclean: bool,
    /// When shards were first told of it: from then on they compare what may differ.
    pub compared_since: Option<Instant>,
    /// Shards whose lanes are the same on all legs since the start.
    pub clean: BTreeSet<u16>,
    /// What the maps said at the start; the last mark of returned space since, the shards that have done their part of it, and those
    /// that have no uncleared piece left since then.
    pub uncleared: Arc<UnclearedMap>,
    pub marks: u32,
    pub marked: BTreeSet<u16>,
    pub cleared: BTreeSet<u16>,
    /// Shards that have marked every region dirty, durably.
    pub all_dirty: BTreeSet<u16>,
    pub legs: Vec<LegDesk>,
    pub healed: u64,
    pub medium_lost: u64,
}

pub(crate) struct LegDesk {
    /// The drive's own name.
    pub uuid: Uuid,
    /// Its place in the shards' arrays, as long as it is a leg. The record and the configuration count without gaps.
    pub place: usize,
    pub path: String,
    pub open: Option<OpenDrive>,
    /// Why it is not in sync: one sentence.
    pub reason: String,
    /// It is out, and this is what was found instead.
    pub found: Option<Found>,
    /// Shards that have copied what it lacks.
    pub synced: BTreeSet<u16>,
    /// Epoch in which it joined.
    pub joined: u64,
    /// Everything is copied to it, not only what the bitmaps marked when it went.
    pub full: bool,
    /// Shards whose reads of it take far longer than those of other legs.
    pub slow: BTreeSet<u16>,
    /// An event said that it is slow, and none that it is well again.
    pub told_slow: bool,
    /// No shard finds it slow since then.
    pub quiet_since: Option<Instant>,
    /// When it was put out or missed first, by this head; and what is to be expected of it.
    pub out_since: Option<Instant>,
    pub outlook: Outlook,
    /// `out_since` of when an event told that no spare fits in its place.
    pub told_unfit: Option<Instant>,
    /// When it is tried to take it back, and how often that was done.
    pub return_at: Option<Instant>,
    pub returns: u32,
    /// The last one in sync, gone as it was opened: when it is looked for, and how often it was. And what was opened,
    /// once nobody uses it.
    pub look_at: Option<Instant>,
    pub looks: u32,
    pub dead: Option<DriveId>,
}

impl LegDesk {
    pub fn new(uuid: Uuid, place: usize, path: String, open: Option<OpenDrive>, joined: u64) -> Self {
        let (reason, found, synced, slow, told_slow, quiet_since) = Default::default();
        let (full, out_since, outlook, return_at, returns) = Default::default();
        let (look_at, looks, dead, told_unfit) = Default::default();
        Self {
            uuid,
            place,
            path,
            open,
            reason,
            found,
            synced,
            joined,
            full,
            slow,
            told_slow,
            quiet_since,
            out_since,
            outlook,
            told_unfit,
            return_at,
            returns,
            look_at,
            looks,
            dead,
        }
    }
}

/// What a pool's keeper shall bring about.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    /// A leg is out.
    Lost { array: usize, leg: usize, why: String, outlook: Outlook },
    /// A leg is there (its drive is open on the desk) and is resynced.
    Joined { array: usize, leg: usize, full: bool, new: bool },
    /// A leg has everything.
    Synced { array: usize, leg: usize },
}

/// What may be expected of a leg that is out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Outlook {
    /// It is gone or silent, and may come back.
    #[default]
    MayReturn,
    /// It answers and refuses.
    Broken,
    /// The operator took it out, and will say when it comes back.
    ByHand,
    /// It leaves the pool.
    Leaves,
}

/// A drive that answers and refuses does not come back by itself; one that is gone or silent may.
pub(crate) fn outlook(error: DriveError) -> Outlook {
    match error {
        DriveError::Medium | DriveError::Other(_) => Outlook::Broken,
        DriveError::Gone | DriveError::TimedOut | DriveError::NoSpace | DriveError::Cut => Outlook::MayReturn,
    }
}
