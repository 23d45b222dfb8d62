//! What the Steward decides: who is a member, and what is on record.
//!
//! This instance reports a leg that failed and stops using it at once (`lost`). The Steward answers, to
//! all instances, with a membership in which the leg is Missing; then it puts that on record; then
//! `on_recorded`. Two shards may lose two legs at the same time. The Steward then keeps the last one in
//! sync although a shard had lost it. That shard takes the leg back, and writes that had not reached the leg end in an
//! error that hosts retry.

use crate::array::Array;
use crate::door::{ArrayIo, Leg, LegState, Membership, Note};
use crate::flight::{Legs, Phase, bit, members};
use base::{Bug, Instant, planted};

fn works(leg: Option<Leg>) -> bool {
    leg.is_some_and(|l| l.state != LegState::Missing)
}

impl Array {
    /// The Steward's decision. From the return of this call on a Missing leg gets no new operation.
    /// An epoch that is not newer is ignored.
    pub fn on_membership(&mut self, now: Instant, membership: &Membership, io: &mut impl ArrayIo) {
        assert!(membership.legs.len() <= self.legs.len(), "an array has few legs");
        if membership.epoch <= self.epoch {
            return;
        }
        self.epoch = membership.epoch;
        let (mut joined, mut promoted): (Legs, Legs) = (0, 0);
        for i in 0..self.legs.len() {
            let new = membership.legs.get(i).copied().flatten();
            let local = &mut self.legs[i];
            let old = local.leg;
            let same = matches!((old, new), (Some(a), Some(b)) if a.drive == b.drive);
            let demoted = same
                && old.is_some_and(|l| l.state == LegState::InSync)
                && new.is_some_and(|l| l.state == LegState::Rebuilding);
            if works(old) && (!works(new) || !same || demoted) {
                local.missing_since = self.epoch;
                local.lost = false;
                local.kept = false;
                self.loss_decided(i);
            }
            let local = &mut self.legs[i];
            local.leg = new;
            if works(new) && (!works(old) || !same || demoted) {
                joined |= bit(i);
                local.lost = false;
                local.errors = 0;
            } else if same
                && old.is_some_and(|l| l.state == LegState::Rebuilding)
                && new.is_some_and(|l| l.state == LegState::InSync)
            {
                promoted |= bit(i);
            }
        }
        self.legs_changed();
        self.spoil_clearing();
        self.forget_latency(joined);
        for leg in members(joined) {
            let in_sync = self.in_sync() & bit(leg) != 0;
            self.rewrite_blocks(leg, in_sync);
            self.leg_joined();
        }
        for leg in members(promoted & !self.intent.held_by_all_blocks()) {
            self.rewrite_blocks(leg, true);
        }
        if !planted(Bug::MapMissingOnLeg) {
            self.rewrite_map(joined | promoted & !self.uncleared.held_by_all_blocks());
        }
        self.resync_legs_changed();
        self.resync_joined(joined);
        self.take_back(io);
        self.review(now, io);
        self.kick_blocks(now, io);
        self.drain(now, io);
    }

    /// Somebody wrote over what lies on a leg: every block of bitmap and map is written to all legs in use once more.
    /// `Note::MapsRewritten` says when.
    pub fn rewrite_maps(&mut self, now: Instant, io: &mut impl ArrayIo) {
        let legs = members(self.writable());
        self.spoil_clearing();
        for leg in legs {
            self.rewrite_blocks(leg, self.in_sync() & bit(leg) != 0);
        }
        self.rewrite_map(self.writable());
        self.rewrites_maps = true;
        self.maps_rewritten(io);
        self.kick_blocks(now, io);
        self.drain(now, io);
    }

    /// Says so once every leg in use has every block.
    pub(crate) fn maps_rewritten(&mut self, io: &mut impl ArrayIo) {
        let held = self.intent.held_by_all_blocks() & self.uncleared.held_by_all_blocks();
        let legs = self.writable();
        if self.rewrites_maps && legs != 0 && legs & !held == 0 {
            self.rewrites_maps = false;
            io.note(Note::MapsRewritten { epoch: self.epoch });
        }
    }

    /// Flights that missed this leg now wait for this epoch to be on record.
    fn loss_decided(&mut self, leg: usize) {
        let epoch = self.epoch;
        for (_, flight) in self.flights.iter_mut() {
            if flight.missed & bit(leg) != 0 {
                flight.missed &= !bit(leg);
                flight.needs_epoch = flight.needs_epoch.max(epoch);
            }
        }
    }

    /// If the only leg in sync is one that was lost here, the Steward keeps it: it is used again, once
    /// none of the operations that were given up on it can land any more.
    pub(crate) fn take_back(&mut self, io: &mut impl ArrayIo) {
        let is_in_sync = |s: &crate::local_leg::LocalLeg| s.leg.is_some_and(|l| l.state == LegState::InSync);
        let mut decided = (0..self.legs.len()).filter(|i| is_in_sync(&self.legs[*i]));
        if let (Some(only), None) = (decided.next(), decided.next())
            && self.legs[only].lost
            && !self.legs[only].kept
        {
            self.legs[only].kept = true;
            self.legs_changed();
            self.disown(only, io);
        }
        for leg in 0..self.legs.len() {
            let local = &self.legs[leg];
            if !local.kept || local.given_up > 0 && !planted(Bug::TakenBackEarly) {
                continue;
            }
            self.disown(leg, io);
            self.legs[leg].kept = false;
            self.legs[leg].lost = false;
            self.legs[leg].errors = 0;
            self.legs_changed();
            self.rewrite_blocks(leg, true);
            self.rewrite_map(bit(leg));
            self.resync.poke = true;
        }
    }

    /// The loss of this leg will never be on record: what was not written there ends in an error. A
    /// rebuilding leg may hold some of it, by a write or by a copy, and perhaps we have called it
    /// synced: it is given up, and the errors wait for the record of that.
    fn disown(&mut self, leg: usize, io: &mut impl ArrayIo) {
        let epoch = self.epoch;
        let rebuilding = self.rebuilding();
        for other in members(rebuilding) {
            self.give_up_ahead(other, leg, None, io);
        }
        for id in 0..self.flights.capacity() {
            let Some(flight) = self.flights.get_mut(id) else { continue };
            if flight.missed & bit(leg) == 0 {
                continue;
            }
            flight.missed &= !bit(leg);
            flight.lacks_kept(leg, epoch);
            for other in members(rebuilding) {
                self.miss(id, other);
            }
        }
    }

    /// The loss that made `epoch` is on record on every drive that can be reached, and every shard has
    /// confirmed that it starts no more reads there: held answers go out.
    pub fn on_recorded(&mut self, now: Instant, epoch: u64, io: &mut impl ArrayIo) {
        self.recorded = self.recorded.max(epoch.min(self.epoch));
        self.loss_not_on_record = false;
        self.resync.poke = true;
        self.review(now, io);
        self.drain(now, io);
    }

    /// Nothing takes the record of this membership, which all shards obey, and no shard answers a read any more:
    /// until `on_recorded`, commands that must wait for it end in `NotReady`. They may or may not have happened,
    /// and nobody sees which before that is settled.
    pub fn on_loss_not_on_record(&mut self, now: Instant, io: &mut impl ArrayIo) {
        self.loss_not_on_record = true;
        self.review(now, io);
        self.drain(now, io);
    }

    /// Looks again at every flight that waits for a record.
    pub(crate) fn review(&mut self, now: Instant, io: &mut impl ArrayIo) {
        for id in 0..self.flights.capacity() {
            if self.flights.get(id).is_some_and(|f| f.phase == Phase::AwaitingRecord) {
                self.try_finish(now, id, io);
            }
        }
    }

    /// Commands of hosts under way, for the head's accounting.
    pub fn commands(&self) -> u32 {
        self.commands
    }
}
