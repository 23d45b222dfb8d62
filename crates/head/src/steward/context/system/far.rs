//! Shards of one head that take part in what the other one leads.

use crate::layout::Layout;
use array::LegState;
use base::view::View;
use base::{Bug, DriveId, Uuid, planted};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What both parts know of it.
#[derive(Default)]
pub(crate) struct Far {
    /// The leader's part: so many shards of the follower are ready to take part.
    offered: Option<u16>,
    /// It was told why they do not.
    told: bool,
    /// How often the follower was asked something about a drive, and the last one that it let go of.
    asked: u64,
    let_go: u64,
    /// What it said last to the question whether it reaches a drive.
    looked: Option<(u64, bool)>,
    /// The follower's part: it has all files of the leader's, and has said that its shards are ready.
    has_all: bool,
    serves: bool,
    given: Option<Given>,
}

/// What the leader has given shards here, in the numbers of this head.
pub(crate) struct Given {
    pub view: Arc<View>,
    pub layout: Arc<Layout>,
    /// What the leader calls drives of this head.
    names: BTreeMap<DriveId, DriveId>,
}

/// Numbers of shards and drives, as the leader sent them with a layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    /// Shards of the leader's own.
    pub shards: u16,
    /// Which drives it means, by their labels.
    pub drives: BTreeMap<DriveId, Uuid>,
}

impl Numbers {
    /// A layout of the leader's as it is for shards here: their numbers come first, and drives are those that are open here. The others
    /// are missing, and the array lacks a path. A leg in sync of an array with lanes here is never missing: its operations fail, so that
    /// this head is put out instead of going on without the leg.
    pub fn translate(
        &self,
        mut layout: Layout,
        shards: u16,
        open: impl Fn(Uuid) -> Option<DriveId>,
    ) -> Layout {
        let number = |shard: u16| match shard.checked_sub(self.shards) {
            Some(own) => own,
            None => shards + shard,
        };
        layout.volumes.iter_mut().for_each(|v| v.home = number(v.home));
        for array in &mut layout.arrays {
            array.lanes = array.lanes.renumbered(number);
            let has_lanes = (0..shards).any(|shard| array.lanes.has(shard));
            for leg in array.membership.legs.iter_mut().flatten() {
                let drive = self.drives.get(&leg.drive).and_then(|uuid| open(*uuid));
                leg.drive = drive.unwrap_or_default();
                if drive.is_some() {
                    continue;
                }
                array.lacks_path |= leg.state != LegState::Missing;
                if leg.state != LegState::InSync || !has_lanes || planted(Bug::OwnerSkipsUnreached) {
                    leg.state = LegState::Missing;
                }
            }
        }
        layout
    }
}

impl Given {
    /// What the leader calls this drive, if it knows it.
    pub fn name_of(&self, drive: DriveId) -> Option<DriveId> {
        self.names.get(&drive).copied()
    }
}

impl Far {
    /// So many shards of the follower are ready; None: there is none any more.
    pub fn offers(&mut self, shards: Option<u16>) {
        self.offered = shards;
        self.told = false;
    }
    /// The follower is asked something about a drive: the question's number.
    pub fn asks(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }
    /// It has.
    pub fn has_let_go(&mut self, number: u64) {
        self.let_go = self.let_go.max(number);
    }
    /// Whether it has: questions are asked one after the other.
    pub fn let_go(&self, number: u64) -> bool {
        self.let_go >= number
    }
    /// The last question, and the last one for which it has let go. For checkers.
    pub fn questions(&self) -> (u64, u64) {
        (self.asked, self.let_go)
    }
    /// It says whether it reaches a drive.
    pub fn has_looked(&mut self, number: u64, reached: bool) {
        self.looked = Some((number, reached));
    }
    /// What it said, if that is to this question.
    pub fn looked(&self, number: u64) -> Option<bool> {
        self.looked.filter(|(of, _)| *of == number).map(|(_, reached)| reached)
    }
    /// Those that are.
    pub fn offered(&self) -> Option<u16> {
        self.offered
    }
    /// Somebody is to be told why they do not take part. False: somebody was.
    pub fn tells(&mut self) -> bool {
        !core::mem::replace(&mut self.told, true)
    }
    /// All files of the leader's are here.
    pub fn has_all(&mut self) {
        self.has_all = true;
    }
    /// Whether the leader may be told that shards here are ready, once drives are open.
    pub fn may_serve(&self) -> bool {
        self.has_all && !self.serves
    }
    /// It is told.
    pub fn serves(&mut self) {
        self.serves = true;
    }
    /// Shards here get this.
    pub fn is_given(&mut self, view: Arc<View>, layout: Arc<Layout>, names: BTreeMap<DriveId, DriveId>) {
        self.given = Some(Given { view, layout, names });
    }
    /// What they have.
    pub fn given(&self) -> Option<&Given> {
        self.given.as_ref()
    }
    /// They are about to lose it.
    pub fn take_given(&mut self) -> Option<Given> {
        self.given.take()
    }
}
