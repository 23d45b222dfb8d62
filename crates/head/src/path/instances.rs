//! The arrays of a shard: they come and go as the layout says, come to rest, and are built anew.

use crate::admission::scheduler::Scheduler;
use crate::admission::window::{Governor, Window};
use crate::layout::{ArrayId, ArrayLayout, Layout};
use crate::limits;
use crate::mail::{Mail, Room, StewardMail, to_steward};
use crate::path::flow::{legs_of, scratch_bytes, token_of};
use crate::path::request::Orphan;
use crate::shard::{ArrayState, Core, Rest, build_array, set};
use base::{Bug, Effects, Instant, Memory, planted, planted_if};

impl ArrayState {
    /// What this head reaches of its legs, as it is told with its members.
    fn set_reach(&mut self, wanted: &ArrayLayout) {
        self.lacks_path = wanted.lacks_path;
        self.path_lost = false;
    }
}

impl<M: Memory> Core<M> {
    /// Makes, changes and drops arrays as the layout says.
    pub fn apply_arrays(&mut self, now: Instant, layout: &Layout, fx: &mut Effects<Mail>) {
        self.unready_reads();
        self.requeue_waiters();
        self.wait_for_far_no_more();
        self.leaving &= layout.waits;
        for wanted in &layout.arrays {
            if let Some(state) = self.arrays.get_mut(wanted.id.index()).and_then(Option::as_mut) {
                state.array.on_shared(wanted.shared);
            }
            match self.arrays.get(wanted.id.index()).and_then(Option::as_ref) {
                None => self.add_array(wanted),
                Some(state) if state.map != wanted.map => self.build_anew(wanted),
                Some(state) if state.epoch < wanted.membership.epoch => {
                    let state = self.arrays[wanted.id.index()].as_mut().expect("found above");
                    state.epoch = wanted.membership.epoch;
                    state.legs = legs_of(wanted);
                    let differs = || state.path_lost || state.lacks_path != wanted.lacks_path;
                    if !planted_if(Bug::FormerReach, differs) {
                        state.set_reach(wanted);
                    }
                    self.with_array(now, wanted.id, fx, |a, io| {
                        a.on_membership(now, &wanted.membership, io);
                    });
                }
                Some(_) => {}
            }
        }
        for i in 0..self.arrays.len() {
            if let Some(state) = &self.arrays[i]
                && !layout.arrays.iter().any(|a| a.id.index() == i)
            {
                assert_eq!(state.busy, 0, "an array leaves the layout after it was quiesced");
                self.buffers.release(state.scratch);
                let id = ArrayId(i as u16);
                let orphans = state.array.ops().map(|(tag, op)| Orphan { token: token_of(id, tag), op });
                self.orphans.extend(orphans);
                self.arrays[i] = None;
            }
        }
        for parked in core::mem::take(&mut self.early) {
            self.park(parked);
        }
        // Lanes are dealt behind the fence of a head that is out: nothing of it lands any more.
        if self.arrays.iter().flatten().all(|state| !state.bereft) {
            self.requests.iter_mut().for_each(|(_, request)| request.bereft = false);
        }
    }
    /// Lanes are dealt by another map: what was halted goes on by that.
    fn build_anew(&mut self, wanted: &ArrayLayout) {
        let state = self.arrays[wanted.id.index()].as_mut().expect("it is here");
        let rests = state.rest.is_halted() && state.busy == 0 && state.array.has_no_ops();
        assert!(
            rests || planted(Bug::DealtUnquiet),
            "an array gets another map after it was halted and quiesced"
        );
        state.array = build_array(self.id, wanted, state.scratch);
        state.epoch = wanted.membership.epoch;
        state.legs = legs_of(wanted);
        state.set_reach(wanted);
        state.map = wanted.map;
        state.rest = Rest::No;
        state.bereft = false;
    }

    /// Keeps memory for so many arrays in all: as far as there is some, and no more. Also: the most mirrors that it is meant for.
    pub fn keep_scratch(&mut self, Room { mirrors, singles }: Room) -> (Room, u32) {
        let units = limits::arrays_max(self.buffers.bytes()) * limits::SINGLES_OF_A_MIRROR;
        let used = u64::from(singles);
        let most = (units.saturating_sub(used) / limits::SINGLES_OF_A_MIRROR) as u32;
        let mirrors_kept = self.keep_one_kind(true, mirrors.min(most), mirrors);
        let room = units.saturating_sub(u64::from(mirrors) * limits::SINGLES_OF_A_MIRROR) as u32;
        let singles_kept = self.keep_one_kind(false, singles.min(room), singles);
        (Room { mirrors: mirrors_kept, singles: singles_kept }, most)
    }
    fn keep_one_kind(&mut self, redundant: bool, take_to: u32, keep: u32) -> u32 {
        let here = self.arrays.iter().flatten().filter(|a| a.regions.is_some() == redundant).count() as u32;
        let bytes = scratch_bytes(redundant);
        let kept = if redundant { &mut self.scratch } else { &mut self.single_scratch };
        while here + (kept.len() as u32) < take_to
            && let Some(scratch) = self.buffers.take_kept(bytes)
        {
            kept.push(scratch);
        }
        while here + kept.len() as u32 > keep
            && let Some(scratch) = kept.pop()
        {
            self.buffers.release(scratch);
        }
        here + kept.len() as u32
    }

    fn add_array(&mut self, wanted: &ArrayLayout) {
        let redundant = wanted.geometry.redundant();
        let kept = if redundant { &mut self.scratch } else { &mut self.single_scratch };
        let scratch = kept.pop().expect("the Steward has asked whether there is room for another array");
        let array = build_array(self.id, wanted, scratch);
        let epoch = wanted.membership.epoch;
        let regions = wanted.geometry.redundant().then_some(wanted.geometry);
        let state = ArrayState {
            array,
            regions,
            scratch,
            busy: 0,
            rest: Rest::No,
            rest_number: 0,
            bereft: false,
            lacks_path: wanted.lacks_path,
            path_lost: false,
            map: wanted.map,
            epoch,
            legs: legs_of(wanted),
            waiters: Scheduler::new(self.id),
            window: Window::new(wanted.id, self.credits),
            governor: Governor::new(self.shards),
        };
        set(&mut self.arrays, wanted.id.index(), Box::new(state));
    }

    /// Brings an array to rest.
    pub fn quiesce(&mut self, now: Instant, id: ArrayId, number: u32, fx: &mut Effects<Mail>) {
        let Some(state) = self.arrays.get_mut(id.index()).and_then(Option::as_mut) else { return };
        state.rest_number = number;
        if state.rest.is_halted() {
            state.rest = Rest::Pausing;
            state.array.pause();
        } else {
            state.rest = Rest::Quiescing;
            self.with_array(now, id, fx, |a, io| a.quiesce(now, io));
        }
    }

    /// Hosts' commands on this array wait from now on.
    pub fn halt(&mut self, id: ArrayId, number: u32) {
        if let Some(state) = self.arrays.get_mut(id.index()).and_then(Option::as_mut) {
            state.rest = Rest::Halting;
            state.rest_number = number;
        }
    }

    /// An array that is halted leaves: operations at drives end without an answer.
    pub fn leave(&mut self, now: Instant, id: ArrayId, number: u32, fx: &mut Effects<Mail>) {
        if let Some(state) = self.arrays.get_mut(id.index()).and_then(Option::as_mut) {
            state.rest = Rest::Leaving;
            state.rest_number = number;
            state.array.pause();
            self.leaving = true;
        }
        self.with_array(now, id, fx, |a, io| a.on_loss_not_on_record(now, io));
    }

    /// Takes `halt` and `quiesce` back.
    pub fn resume(&mut self, now: Instant, id: ArrayId, fx: &mut Effects<Mail>) {
        if let Some(state) = self.arrays.get_mut(id.index()).and_then(Option::as_mut) {
            state.rest = Rest::No;
        }
        self.with_array(now, id, fx, |a, io| a.resume(now, io));
    }

    /// Reports to the Steward which arrays have come to rest.
    pub fn report_quiet(&mut self, fx: &mut Effects<Mail>) {
        for (i, state) in self.arrays.iter_mut().enumerate() {
            // Asked in every turn, of every array.
            let Some(state) = state.as_mut().filter(|s| !matches!(s.rest, Rest::No | Rest::Halted)) else {
                continue;
            };
            let (array, number) = (ArrayId(i as u16), state.rest_number);
            let mail = match state.rest {
                Rest::Halting if !self.flights.iter().any(|(_, f)| f.array == array && f.at.is_some()) => {
                    state.rest = Rest::Halted;
                    StewardMail::Halted { array, number }
                }
                Rest::Quiescing if state.busy == 0 && state.array.quiesced() => {
                    state.rest = Rest::No;
                    StewardMail::Quiesced { array, number }
                }
                // Whoever led decides nothing any more that it could wait for.
                Rest::Leaving if state.busy == 0 && state.array.is_still() => {
                    state.rest = Rest::Halted;
                    StewardMail::Quiesced { array, number }
                }
                // What is built anew must leave nothing in the kernel: it would land by locks that nobody keeps.
                Rest::Pausing
                    if state.busy == 0 && state.array.idle() && state.array.has_no_ops()
                        || planted(Bug::DealtUnquiet) =>
                {
                    state.rest = Rest::Halted;
                    StewardMail::Quiesced { array, number }
                }
                _ => continue,
            };
            fx.push(to_steward(mail));
        }
    }
}
