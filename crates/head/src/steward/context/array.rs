//! What the Steward knows of an array and its legs beyond what is decided.

use crate::layout::ArrayId;
use crate::steward::context::found::Found;
use crate::steward::context::open::OpenDrive;
use crate::steward::patience::return_after;
use array::{Bitmap, Geometry, Lanes, UnclearedMap};
use base::{DriveError, DriveId, Instant, Uuid};
use finding::{Cause, LegCause};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) struct ArrayContext {
    pub id: ArrayId,
    pub geometry: Geometry,
    /// Which shard has each lane, and which map of them this is.
    pub lanes: Lanes,
    pub map: u32,
    /// By which map shards of the other head have built it.
    pub far_map: Option<u32>,
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
    /// Under which number shards were asked last to mark every region dirty, and those that have, durably.
    pub all_dirty_number: u32,
    pub all_dirty: BTreeSet<u16>,
    pub legs: Vec<LegContext>,
    pub healed: u64,
    pub medium_lost: u64,
}

pub(crate) struct LegContext {
    /// The drive's own name.
    pub uuid: Uuid,
    /// Its place in the shards' arrays, as long as it is a leg. The record and the configuration count without gaps.
    pub place: usize,
    pub path: String,
    pub open: Option<OpenDrive>,
    /// It is in sync on record, and this is open: a takeover waits until it confirms that the head which led is shut off it. Nobody has lanes
    /// of its array before.
    pub behind: Option<OpenDrive>,
    /// Shards build the array without it until its lanes are dealt.
    pub unseen: bool,
    /// Why it is not in sync; None if it is.
    pub reason: Option<Cause>,
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
    /// What was on record before its label was last seen whole.
    pub whole_at: Option<OnRecord>,
    /// It was put out as its label was lost, and this was open: it is labelled anew before it returns.
    pub unlabelled: Option<OpenDrive>,
}

/// How far records and configurations of a pool were at some time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct OnRecord {
    /// Counter and settled counter of the record in force.
    pub record: (u64, u64),
    /// Generation of the configuration.
    pub config: u64,
}

impl ArrayContext {
    /// The shards begin to compare what may differ.
    pub fn compares(&mut self, since: Instant) {
        self.compared_since = Some(since);
    }
    /// What may have differed is the same on all legs.
    pub fn compared(&mut self) {
        self.unclean = false;
    }
    /// Returned space is to be marked, once more: nobody has, and nothing counts as cleared. Returns the mark's number.
    pub fn marks_again(&mut self) -> u32 {
        self.marks += 1;
        self.marked.clear();
        self.cleared.clear();
        self.marks
    }
    /// Every region is to be marked dirty, under this number: nobody has.
    pub fn marks_all(&mut self, number: u32) {
        self.all_dirty_number = number;
        self.all_dirty.clear();
    }
    /// A shard has. Under another number it says so of a mark that was given up: its bits may have been cleared since.
    pub fn has_marked_all(&mut self, shard: u16, number: u32) {
        if number == self.all_dirty_number {
            self.all_dirty.insert(shard);
        }
    }
    /// Shards of the other head build it by its map.
    pub fn far_reads(&mut self) {
        self.far_map = Some(self.map);
    }
    /// What shards that are not of this head have said is forgotten.
    pub fn far_goes(&mut self, now: Instant, own: u16) {
        self.far_map = None;
        for told in [&mut self.clean, &mut self.marked, &mut self.cleared, &mut self.all_dirty] {
            told.retain(|shard| *shard < own);
        }
        for leg in &mut self.legs {
            leg.synced.retain(|shard| *shard < own);
            leg.slow.retain(|shard| *shard < own);
            leg.is_judged(now);
        }
    }
    /// Shards build it anew, from what its legs say.
    pub fn is_dealt(&mut self, lanes: Lanes, dirty: Bitmap, uncleared: UnclearedMap, bereft: bool) {
        (self.lanes, self.map) = (lanes, self.map + 1);
        (self.dirty, self.uncleared) = (Arc::new(dirty), Arc::new(uncleared));
        self.marks = 0;
        for told in [&mut self.clean, &mut self.marked, &mut self.cleared, &mut self.all_dirty] {
            told.clear();
        }
        for leg in &mut self.legs {
            leg.is_built_anew();
        }
        if bereft && self.geometry.redundant() {
            (self.unclean, self.compared_since) = (true, None);
        }
        // What was still to be compared was the same on all legs by the time that the array was at rest.
        if self.unclean && self.dirty.is_empty() {
            self.compared();
        }
    }
    /// A block of a leg was mended from another.
    pub fn was_healed(&mut self) {
        self.healed += 1;
    }
    /// A block is on no leg any more.
    pub fn lost_medium(&mut self) {
        self.medium_lost += 1;
    }
}

impl LegContext {
    /// It is written from the record with this counter on, and what it lacks is copied: everything, or what it missed.
    pub fn joins(&mut self, counter: u64, full: bool, reason: LegCause) {
        self.joined = counter;
        self.full = full;
        self.synced.clear();
        self.out_since = None;
        self.unlabelled = None;
        self.is_told(reason, None);
    }

    /// Its label was seen whole, when so much was on record.
    pub fn seen_whole(&mut self, at: OnRecord) {
        self.whole_at = Some(at);
    }

    /// Its label is lost: by what is open it is known once it returns.
    pub fn loses_label(&mut self) {
        self.unlabelled = self.open.clone();
    }

    /// Shards know nothing of what they have copied to it, nor how fast it is, and find out anew.
    pub fn is_built_anew(&mut self) {
        self.unseen = false;
        self.synced.clear();
        self.slow.clear();
    }
    /// It is put out.
    pub fn goes(&mut self, now: Instant, why: Cause, outlook: Outlook) {
        self.behind = None;
        self.reason = Some(why);
        self.synced.clear();
        self.slow.clear();
        self.told_slow = false;
        self.quiet_since = None;
        self.out_since = Some(now);
        self.outlook = outlook;
        self.is_tried_again(now);
    }
    /// Why it is not in sync, and what was found instead.
    pub fn is_told(&mut self, reason: LegCause, found: Option<Found>) {
        self.reason = Some(reason.into());
        self.found = found;
    }
    /// What was found instead of it.
    pub fn finds(&mut self, found: Found) {
        self.found = Some(found);
    }
    /// Its drive is open, at this path.
    pub fn takes(&mut self, open: Option<OpenDrive>, path: &str) {
        self.open = open;
        self.path = path.into();
    }
    /// Another drive takes its place.
    pub fn becomes(&mut self, uuid: Uuid, open: Option<OpenDrive>, path: &str) {
        self.uuid = uuid;
        (self.behind, self.unlabelled) = (None, None);
        self.takes(open, path);
    }
    /// Its drive lies there today.
    pub fn lies_at(&mut self, path: &str) {
        self.path = path.into();
    }
    /// What is open is none of its own any more.
    pub fn let_go(&mut self) -> Option<OpenDrive> {
        self.open.take()
    }
    /// A takeover waits for it.
    pub fn waits_behind(&mut self, open: OpenDrive, why: LegCause) {
        (self.behind, self.unseen, self.reason) = (Some(open), true, Some(why.into()));
    }
    /// Nobody waits for it any more.
    pub fn waits_no_more(&mut self) {
        self.behind = None;
    }
    /// It has confirmed: it is used once lanes are dealt.
    pub fn has_confirmed(&mut self, open: Option<OpenDrive>) {
        (self.open, self.behind, self.reason) = (open, None, None);
    }
    /// What was opened is gone for good. It is looked for.
    pub fn dies(&mut self) -> Option<OpenDrive> {
        let dead = self.open.take();
        self.dead = dead.as_ref().map(|o| o.id).or(self.dead);
        dead
    }
    /// The drive of a last leg that was gone is open anew.
    pub fn is_back(&mut self, open: Option<OpenDrive>, path: &str) {
        self.takes(open, path);
        self.dead = None;
        self.is_there();
    }
    /// What was opened is gone, or is not; it is looked for at once.
    pub fn is_gone(&mut self, gone: bool, now: Instant) {
        self.look_at = gone.then(|| self.look_at.unwrap_or(now));
    }
    /// It is not looked for any more.
    pub fn is_there(&mut self) {
        self.look_at = None;
        self.looks = 0;
    }
    /// It was looked for, and is once more then.
    pub fn is_looked_for(&mut self, at: Instant) {
        self.look_at = Some(at);
        self.looks += 1;
    }
    /// It is tried to take it back, the later the more often that was done.
    pub fn is_tried_again(&mut self, now: Instant) {
        self.return_at = Some(now + return_after(self.returns));
    }
    /// It has come back by itself.
    pub fn has_returned(&mut self) {
        self.returns += 1;
    }
    /// It was told that no spare fits in its place, this time.
    pub fn unfit_told(&mut self) {
        self.told_unfit = self.out_since;
    }
    /// It was told that it is slow, or that it is well again.
    pub fn slow_told(&mut self, slow: bool) {
        self.told_slow = slow;
    }
    /// Whether some shard finds it slow may have changed.
    pub fn is_judged(&mut self, now: Instant) {
        self.quiet_since = self.slow.is_empty().then(|| self.quiet_since.unwrap_or(now));
    }
    pub fn new(uuid: Uuid, place: usize, path: String, open: Option<OpenDrive>, joined: u64) -> Self {
        let (reason, found, synced, slow, told_slow, quiet_since) = Default::default();
        let (full, out_since, outlook, return_at, returns) = Default::default();
        let (look_at, looks, dead, told_unfit, unlabelled, whole_at) = Default::default();
        Self {
            uuid,
            place,
            path,
            open,
            behind: None,
            unseen: false,
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
            unlabelled,
            whole_at,
        }
    }
}

/// What a pool's keeper shall bring about.
#[derive(Clone, Debug)]
pub(crate) enum PendingChange {
    /// A leg is out. `there`: shards of the other head say so, which is in since this epoch; None: it is known here.
    Lost { array: usize, leg: usize, why: Cause, outlook: Outlook, there: Option<u64> },
    /// A leg is there (its drive is open in the context) and is resynced.
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
        DriveError::Gone
        | DriveError::TimedOut
        | DriveError::NoSpace
        | DriveError::Cut
        | DriveError::Fenced => Outlook::MayReturn,
    }
}
