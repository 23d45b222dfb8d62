//! Waiters: commands that wait for a credit of an array.
//!
//! An array has as many credits as its in-flight window is large (`window`), and each command under way holds one. While credits are free and
//! nobody waits, a command takes one and nothing else happens. Otherwise it joins its connection's line (`scheduler`); a long command goes
//! on with its next part at the head of that line. What waits at one array holds up nobody who wants another.

use crate::admission::scheduler::{Scheduler, WEIGHT, Whose, cost_of};
use crate::admission::window::Load;
use crate::layout::ArrayId;
use crate::mail::{FlightId, Mail, ShardMail, to_shard};
use crate::path::flow::Started;
use crate::path::request::{Flight, Owner, Parked, Phase};
use crate::shard::{ArrayState, Core, NO_LINK};
use array::Ticket;
use base::{Bug, Effects, Instant, Memory, Slice, Status, planted};

const NO_HOST: u32 = u32::MAX;

impl ArrayState {
    /// Whether a command may start: a credit is free, and it is its turn (`granted`) or nobody waits.
    #[inline]
    pub fn has_credit(&self, granted: bool) -> bool {
        self.busy < self.window.credits && (granted || self.waiters.waiting() == 0)
    }
    /// The array's home has answered with this shard's credits.
    fn on_credits(&mut self, load: Box<Load>) {
        self.waiters.set_parts(&load.claims);
        self.window.on_credits(load);
    }
}

impl<M: Memory> Core<M> {
    /// Whose a request is.
    pub fn whose(&self, index: u32) -> Whose {
        let request = &self.requests[index];
        let host = match request.link {
            NO_LINK => None,
            _ => self.quota.host(request.account),
        };
        Whose {
            volume: request.command.volume,
            host: host.map_or(NO_HOST, |id| id.0),
            shard: self.id,
            link: request.link,
            little: request.little,
        }
    }

    fn waiters(&mut self, array: ArrayId) -> &mut Scheduler {
        &mut self.arrays[array.index()]
            .as_mut()
            .expect("who waits for an array waits for one that is here")
            .waiters
    }

    fn weight_of(&self, whose: Whose) -> u16 {
        let volume = self.volumes.get(whose.volume.index()).and_then(Option::as_ref);
        volume.map_or(WEIGHT, |v| v.weight)
    }

    /// A request waits for a credit of an array. `first`: before the others of its connection.
    pub fn wait_at(&mut self, array: ArrayId, index: u32, first: bool) {
        let whose = self.whose(index);
        let weight = self.weight_of(whose);
        let state = self.arrays[array.index()].as_mut().expect("it has a credit for it some day");
        let line = state.waiters.line_of(whose, weight);
        if first {
            state.waiters.line(line).join_first(&mut self.requests, index);
        } else {
            state.waiters.line(line).join(&mut self.requests, index);
        }
        state.waiters.joined(line);
        let request = &mut self.requests[index];
        request.waits_at = Some(array);
        request.line = line;
        request.phase = Phase::Turn;
        self.list(array);
    }

    fn list(&mut self, array: ArrayId) {
        if self.waiters(array).waiting() == 1 && !self.contended.contains(&array) {
            self.contended.push(array);
        }
    }

    /// A request leaves its line at an array, and joins the queue of turns.
    pub fn wait_at_none(&mut self, index: u32) {
        let request = &mut self.requests[index];
        let Some(array) = request.waits_at.take() else { return };
        let line = request.line;
        let state = self.arrays[array.index()].as_mut().expect("it waits there");
        state.waiters.line(line).leave(&mut self.requests, index);
        state.waiters.left(line);
        if !planted(Bug::AbortedStands) {
            self.turns.push_back(index);
        }
    }

    /// A peer's command leaves the line at an array, if it stands there.
    pub fn take_from_waiters(&mut self, array: ArrayId, shard: u16, flight: FlightId) -> bool {
        let found = self.peers.iter().find(|(_, p)| p.shard == shard && p.flight == flight);
        let Some(index) = found.map(|(index, _)| index) else { return false };
        let line = self.peers[index].line;
        let state = self.arrays[array.index()].as_mut().expect("it waits there");
        state.waiters.line(line).leave(&mut self.peers, index);
        if !planted(Bug::TakenStaysCounted) {
            state.waiters.left(line);
        }
        self.peers.remove(index);
        true
    }

    /// Gives free credits to waiters, in the scheduler's order. `Blocked`: no flights are left for the shard's own commands.
    pub fn serve_all_waiters(&mut self, now: Instant, fx: &mut Effects<Mail>) -> Started {
        let (mut i, mut all) = (0, Started::Yes);
        // Usually nobody waits anywhere.
        while let Some(array) = self.contended.get(i).copied() {
            if self.serve_waiters(now, array, fx) == Started::Blocked {
                all = Started::Blocked;
            }
            if self.waiters(array).waiting() == 0 {
                self.contended.swap_remove(i);
            } else {
                i += 1;
            }
        }
        all
    }

    #[inline(never)]
    fn serve_waiters(&mut self, now: Instant, array: ArrayId, fx: &mut Effects<Mail>) -> Started {
        let mut all = Started::Yes;
        loop {
            let state = self.arrays[array.index()].as_mut().expect("somebody waits there");
            if !state.has_credit(true) {
                return all;
            }
            let next = match all {
                // Until it is built anew only what peers have sent goes on.
                _ if state.rest.is_halted() => state.waiters.next_of_peers(),
                Started::Blocked => state.waiters.next_of_peers().filter(|_| !planted(Bug::PeersBehindOwn)),
                Started::Yes | Started::Full(_) | Started::Far(_) => state.waiters.next(),
            };
            let Some(line) = next else { return all };
            if state.waiters.is_own(line) {
                let index = state.waiters.line(line).next(&mut self.requests).expect("somebody waits there");
                let last = state.waiters.left(line);
                self.requests[index].waits_at = None;
                let before = self.requests[index].cursor;
                let started = self.start(now, index, Some(array), fx);
                let after = self.requests.get(index).map_or(before, |r| r.cursor);
                let bytes = after.saturating_sub(before);
                if started == Started::Blocked && bytes == 0 {
                    // It stays where it was. Peers' commands need none of what it waits for.
                    self.wait_at(array, index, true);
                    all = Started::Blocked;
                    continue;
                }
                let state = self.arrays[array.index()].as_mut().expect("somebody waited there");
                state.waiters.charge(line, cost_of(bytes));
                if last {
                    state.window.on_start(cost_of(bytes), true);
                }
                match started {
                    Started::Yes => {}
                    Started::Blocked => {
                        self.turns.push_front(index);
                        all = Started::Blocked;
                    }
                    Started::Full(at) => self.wait_at(at, index, true),
                    Started::Far(far) => self.wait_for_far(far, index),
                }
            } else {
                let index = state.waiters.line(line).first().expect("somebody waits there");
                let parked = &self.peers[index];
                let owner = Owner::Peer { shard: parked.shard, flight: parked.flight };
                let (command, little) = (parked.command, parked.whose.little);
                let Ok(flight) =
                    self.flights.insert(Flight { owner, array, at: None, zeroes: Slice::default() })
                else {
                    return Started::Blocked;
                };
                let waiters = &mut state.waiters;
                waiters.line(line).leave(&mut self.peers, index);
                let last = waiters.left(line);
                waiters.charge(line, cost_of(command.len));
                state.window.on_start(cost_of(command.len), little || last);
                self.peers.remove(index);
                self.take_off(now, Ticket(u64::from(flight)), array, command, fx);
            }
        }
    }

    /// A peer's command comes in. One by a map that is not known here yet waits for that, as does one on an array that comes: the other
    /// head's shards, and those here after a takeover, may know of it first.
    pub fn park(&mut self, parked: Parked) {
        let known = self.arrays.get(parked.array.index()).and_then(Option::as_ref).map(|s| s.map);
        let comes = self.layout.waits || parked.shard >= self.shards;
        if known.map_or(comes, |map| map < parked.map) && !planted(Bug::EarlyRefused) {
            self.early.push(parked);
        } else {
            self.parked.push_back(parked);
        }
    }

    /// Peers' commands that came in: they start, or wait in line. `Blocked`: there are no flights left for anybody.
    pub fn start_parked(&mut self, now: Instant, fx: &mut Effects<Mail>) -> Started {
        while let Some(parked) = self.parked.front() {
            let (array, command, whose) = (parked.array, parked.command, parked.whose);
            let owner = Owner::Peer { shard: parked.shard, flight: parked.flight };
            let Some(state) = self.arrays.get_mut(array.index()).and_then(Option::as_mut) else {
                self.parked.pop_front();
                self.answer_peer(owner, Status::NotReady, (now, Slice::default()), now, fx);
                continue;
            };
            if state.map > parked.map && !planted(Bug::RunByOldMap) {
                self.parked.pop_front();
                self.answer_peer(owner, Status::Moved, (now, Slice::default()), now, fx);
                continue;
            }
            if state.has_credit(false) {
                let Ok(flight) =
                    self.flights.insert(Flight { owner, array, at: None, zeroes: Slice::default() })
                else {
                    return Started::Blocked;
                };
                state.window.on_start(cost_of(command.len), whose.little);
                self.parked.pop_front();
                self.take_off(now, Ticket(u64::from(flight)), array, command, fx);
                continue;
            }
            let weight = self.weight_of(whose);
            let mut parked = self.parked.pop_front().expect("looked at above");
            parked.line = self.waiters(array).line_of(whose, weight);
            let line = parked.line;
            if self.peers.len() == self.peers.capacity() {
                self.peers.reserve(self.peers.capacity().max(64));
            }
            let Ok(index) = self.peers.insert(parked) else { panic!("room was made") };
            let state = self.arrays[array.index()].as_mut().expect("found above");
            state.waiters.line(line).join(&mut self.peers, index);
            state.waiters.joined(line);
            self.list(array);
        }
        Started::Yes
    }

    /// All waiters queue anew: volumes and arrays have changed.
    pub fn requeue_waiters(&mut self) {
        while let Some(array) = self.contended.pop() {
            while let Some(line) = self.waiters(array).next() {
                let state = self.arrays[array.index()].as_mut().expect("somebody waits there");
                if state.waiters.is_own(line) {
                    let index = state.waiters.line(line).next(&mut self.requests).expect("somebody waits");
                    state.waiters.left(line);
                    self.requests[index].waits_at = None;
                    self.turns.push_back(index);
                } else {
                    let index = state.waiters.line(line).next(&mut self.peers).expect("somebody waits");
                    state.waiters.left(line);
                    let parked = self.peers.remove(index);
                    self.parked.push_back(parked);
                }
            }
            *self.waiters(array) = Scheduler::new(self.id);
        }
    }

    /// A measured interval of an array's operations is over: sends its load to the array's home.
    #[cold]
    pub fn end_window(
        &mut self,
        now: Instant,
        array: ArrayId,
        state: &mut ArrayState,
        fx: &mut Effects<Mail>,
    ) {
        let Some(mut load) = state.window.on_window(now, self.turns_done) else { return };
        state.waiters.claims(&mut load.claims);
        let home = array.0 % self.shards;
        if home == self.id {
            state.governor.on_load(now, home, &mut load);
            state.on_credits(load);
        } else {
            fx.push(to_shard(home, ShardMail::Load(load)));
        }
    }

    /// A peer reports its load.
    pub fn on_load(&mut self, now: Instant, peer: u16, mut load: Box<Load>, fx: &mut Effects<Mail>) {
        match self.arrays.get_mut(load.array.index()).and_then(Option::as_mut) {
            Some(state) => state.governor.on_load(now, peer, &mut load),
            // It is gone, or not here yet.
            None => load.credits = array::COMMANDS_MAX,
        }
        fx.push(to_shard(peer, ShardMail::Credits(load)));
    }

    /// The array's home has answered with this shard's credits.
    pub fn on_credits(&mut self, load: Box<Load>) {
        if let Some(state) = self.arrays.get_mut(load.array.index()).and_then(Option::as_mut) {
            state.on_credits(load);
        }
    }
}

#[cfg(test)]
mod tests;
