//! What the Steward says to shards, of its own head and of the other one.

use super::follow::Configured;
use super::letters;
use crate::layout::{ArrayId, Layout};
use crate::mail::ShardMail;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::system::far::Numbers;
use crate::steward::procedures::Procedures;
use crate::steward::system::Upper;
use base::view::View;
use base::{Bug, planted};
use std::sync::Arc;

/// The array that a letter is about: only shards that know it get it.
fn array_of(letter: &ShardMail) -> Option<ArrayId> {
    match letter {
        ShardMail::Recorded { array, .. }
        | ShardMail::LossNotOnRecord { array }
        | ShardMail::Clean { array }
        | ShardMail::MarkAll { array, .. }
        | ShardMail::AddDirty { array, .. }
        | ShardMail::Unmark { array }
        | ShardMail::Returned { array, .. }
        | ShardMail::AllCleared { array, .. }
        | ShardMail::Pace { array, .. }
        | ShardMail::Scrub { array, .. }
        | ShardMail::Quiesce { array, .. }
        | ShardMail::Halt { array, .. }
        | ShardMail::Resume { array } => Some(*array),
        _ => None,
    }
}

impl Procedures {
    /// What a head that is out has put on record is no record: nothing may be answered by it.
    fn may_tell(&self) -> bool {
        let is_over = self.context().system.as_ref().is_some_and(|s| s.part() == cluster::Part::Over);
        !is_over || planted(Bug::OutRecords)
    }
    /// Sends the same to every shard that takes part and knows of what it is about.
    pub(crate) fn tell_shards(&self, mut mail: impl FnMut() -> ShardMail) {
        if !self.may_tell() {
            return;
        }
        let own = self.context().own_shards;
        for shard in 0..own {
            self.cx.to_shard(shard, mail());
        }
        let far = self.context().far_shards > 0;
        if far
            && let letter = mail()
            && self.far_knows(&letter)
        {
            self.send_far(None, &letter);
        }
    }
    /// Sends something to one shard.
    pub(crate) fn tell_shard(&self, shard: u16, mail: ShardMail) {
        let (own, all) = {
            let context = self.context();
            (context.own_shards, context.shards())
        };
        match shard.checked_sub(own) {
            None => self.cx.to_shard(shard, mail),
            Some(far) if shard < all && self.may_tell() && self.far_knows(&mail) => {
                self.send_far(Some(far), &mail)
            }
            // It has left meanwhile.
            Some(_) => {}
        }
    }
    /// Gives shards of this head a configuration, and those of the other one theirs.
    pub(crate) fn tell_configuration(&self, own: (View, Layout), far: Option<(View, Layout)>) {
        if !self.may_tell() {
            return;
        }
        let shards = self.context().own_shards;
        self.configure_own(own.0, Arc::new(own.1));
        let Some((view, layout)) = far else { return };
        let drives = {
            let context = self.context();
            let legs = context.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
            let waits = |open: &OpenDrive| {
                context.system.as_ref().is_some_and(|s| s.reached().waits_for_look(open.label.drive))
            };
            // A drive that is about to be tried would refuse the follower meanwhile.
            let usable =
                |open: &&OpenDrive| !waits(open) && (context.is_tried(open) || planted(Bug::ServesUntried));
            let open = legs.filter_map(|l| l.open.as_ref()).filter(usable);
            open.map(|open| (open.id, open.label.drive)).collect()
        };
        let letter = ShardMail::Configure { view: Arc::new(view), layout: Arc::new(layout) };
        let Some(letter) = letters::encode(&letter) else { return };
        let (numbers, secret) = (Numbers { shards, drives }, self.context().far_secret);
        self.send_upper(Upper::Configure(Configured { secret, numbers, letter }));
    }
    fn far_knows(&self, letter: &ShardMail) -> bool {
        let context = self.context();
        array_of(letter).is_none_or(|array| context.shards_of(array) > context.own_shards)
    }
    /// A letter that does not travel stays here: it is of connections, or of the clock.
    fn send_far(&self, shard: Option<u16>, letter: &ShardMail) {
        if let Some(letter) = letters::encode(letter) {
            self.send_upper(Upper::ToShard { shard, letter });
        }
    }
    /// A link that takes nothing any more is one to a head that hears nothing any more.
    fn send_upper(&self, message: Upper) {
        self.in_system(|s| {
            if s.tell().send(message.encode()).is_err() {
                s.tell().on_silent();
            }
        });
    }
}
