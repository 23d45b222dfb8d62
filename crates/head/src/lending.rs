//! What each host has of a shard's memory for data, and who waits for some.
//!
//! A buffer is lent to a host from the moment it is granted until it is free again: while the host owes its
//! data (an R2T was sent, a capsule has come in part), while drives work on it, and while the host does not
//! take what it asked for. So a host that sends many commands and then nothing, and one that asks for much and
//! reads nothing, hold the same thing.
//!
//! A host may hold so many times as much as is left (`SHARE`). Alone it gets nearly all; with others each
//! gets an equal part, and some is always left for the one that comes next. Nobody is refused: who may have
//! no more now waits in the line of his host, and the others pass. Hosts take turns. The one whose turn it is,
//! and for which no run of memory is large enough, is not passed.
//!
//! ```text
//! turns:   host a ───▶ host c ───▶ host d        (those who wait)
//!            │           │           │
//! lines:   w2 w5 w7    w1          w3 w4         (their requests, first come first)
//! ```
//!
//! Memory for data that come unasked is counted apart from the rest, as it is kept apart (`arena`): what
//! waits for it blocks a stream, in which data may stand that end what the host holds of the rest.
//!
//! Lines are chains through tables that grow only when commands are admitted: to join and to leave
//! takes constant time and allocates nothing.

use crate::buffers::PAGE;
use base::{Bug, HostId, planted};

/// A host may hold this many times what is left.
pub(crate) const SHARE: u64 = 4;

const NONE: u32 = u32::MAX;

/// What memory is for: an index of the tables here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Data that were asked for, or go out.
    Asked,
    /// Data that come next in their stream, unasked.
    Unasked,
}

impl Purpose {
    pub const ALL: [Purpose; 2] = [Purpose::Unasked, Purpose::Asked];
}

/// First and last of a chain.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

/// Neighbours in a chain.
#[derive(Clone, Copy, Debug)]
struct Place {
    before: u32,
    after: u32,
}

const EMPTY: Chain = Chain { first: NONE, last: NONE };
const NOWHERE: Place = Place { before: NONE, after: NONE };

impl Chain {
    fn push(&mut self, item: u32, place: impl Fn(u32) -> usize, places: &mut [Place]) {
        places[place(item)] = Place { before: self.last, after: NONE };
        match self.last {
            NONE => self.first = item,
            last => places[place(last)].after = item,
        }
        self.last = item;
    }
    fn remove(&mut self, item: u32, place: impl Fn(u32) -> usize, places: &mut [Place]) {
        let Place { before, after } = core::mem::replace(&mut places[place(item)], NOWHERE);
        match before {
            NONE => self.first = after,
            before => places[place(before)].after = after,
        }
        match after {
            NONE => self.last = before,
            after => places[place(after)].before = before,
        }
    }
}

/// One host, or all who are not known.
#[derive(Clone, Copy, Debug)]
struct Account {
    host: Option<HostId>,
    /// Connections that use it; 0: it is free.
    connections: u32,
    /// Bytes lent, by purpose.
    held: [u64; 2],
    /// Requests that wait, by purpose.
    lines: [Chain; 2],
    waiting: u32,
}

/// The accounts of one shard.
#[derive(Debug)]
pub(crate) struct Lending {
    accounts: Vec<Account>,
    /// Places of requests in their lines, by request.
    places: Vec<Place>,
    /// Accounts with a line, by purpose: whose turn it is comes first.
    turns: [Chain; 2],
    /// Places of accounts there: two each.
    turn_places: Vec<Place>,
    /// No run of memory was large enough for the one whose turn it is: nobody passes it.
    pressed: [bool; 2],
    waiting: u32,
}

/// What a buffer of `len` bytes counts.
fn weight(len: u32) -> u64 {
    u64::from(len).max(PAGE)
}

impl Lending {
    pub fn new() -> Self {
        Self {
            accounts: vec![],
            places: vec![],
            turns: [EMPTY; 2],
            turn_places: vec![],
            pressed: [false; 2],
            waiting: 0,
        }
    }
    /// Room for requests with indices below `requests`.
    pub fn reserve(&mut self, requests: u32) {
        self.places.resize((requests as usize).max(self.places.len()), NOWHERE);
    }
    /// The account of one more connection of a host.
    pub fn open(&mut self, host: Option<HostId>) -> u32 {
        let own = self.accounts.iter().position(|a| a.connections > 0 && a.host == host);
        let free = || self.accounts.iter().position(|a| a.connections == 0);
        let index = own.or_else(free).unwrap_or(self.accounts.len());
        if index == self.accounts.len() {
            let account = Account { host, connections: 0, held: [0; 2], lines: [EMPTY; 2], waiting: 0 };
            self.accounts.push(account);
            self.turn_places.resize(2 * self.accounts.len(), NOWHERE);
        }
        let account = &mut self.accounts[index];
        (account.host, account.connections) = (host, account.connections + 1);
        index as u32
    }
    /// One of its connections is over, and everything of it.
    pub fn close(&mut self, account: u32) {
        let account = &mut self.accounts[account as usize];
        account.connections -= 1;
        let over = account.connections == 0;
        assert!(!over || account.held == [0; 2] && account.waiting == 0, "a host that is gone holds memory");
    }
    /// Whether the account may have `len` bytes more of which `left` are left. Who has none may.
    #[inline]
    pub fn may(&self, account: u32, purpose: Purpose, len: u32, left: u64) -> bool {
        let held = self.accounts[account as usize].held[purpose as usize];
        let more = weight(len);
        held == 0 || planted(Bug::LentUncounted) || held + more <= SHARE * left.saturating_sub(more)
    }
    /// Whether it need not wait behind others.
    #[inline]
    pub fn passes(&self, account: u32, purpose: Purpose) -> bool {
        if self.waiting == 0 {
            return true;
        }
        let line = self.accounts[account as usize].lines[purpose as usize];
        !self.pressed[purpose as usize] && line.first == NONE
    }
    /// A buffer of `len` bytes was granted.
    #[inline]
    pub fn lend(&mut self, account: u32, purpose: Purpose, len: u32) {
        self.accounts[account as usize].held[purpose as usize] += weight(len);
    }
    /// It is free again.
    #[inline]
    pub fn back(&mut self, account: u32, purpose: Purpose, len: u32) {
        self.accounts[account as usize].held[purpose as usize] -= weight(len);
    }
    /// A request waits.
    pub fn wait(&mut self, account: u32, purpose: Purpose, request: u32) {
        let line = &mut self.accounts[account as usize].lines[purpose as usize];
        let first = line.first == NONE;
        line.push(request, |r| r as usize, &mut self.places);
        if first {
            self.take_turn(account, purpose);
        }
        self.accounts[account as usize].waiting += 1;
        self.waiting += 1;
    }
    /// A request waits no more.
    pub fn leave(&mut self, account: u32, purpose: Purpose, request: u32) {
        let line = &mut self.accounts[account as usize].lines[purpose as usize];
        line.remove(request, |r| r as usize, &mut self.places);
        if line.first == NONE {
            self.leave_turns(account, purpose);
            if self.turns[purpose as usize].first == NONE {
                self.pressed[purpose as usize] = false;
            }
        }
        self.accounts[account as usize].waiting -= 1;
        self.waiting -= 1;
    }
    /// Whose turn it is, and the first in its line.
    pub fn first(&self, purpose: Purpose) -> Option<(u32, u32)> {
        let account = self.turns[purpose as usize].first;
        let line = self.accounts.get(account as usize)?.lines[purpose as usize];
        Some((account, line.first))
    }
    /// The turn goes on to the next. The account still waits.
    pub fn next_turn(&mut self, account: u32, purpose: Purpose) {
        self.leave_turns(account, purpose);
        self.take_turn(account, purpose);
    }
    /// The account at which the turns end.
    pub fn last(&self, purpose: Purpose) -> u32 {
        self.turns[purpose as usize].last
    }
    /// Whether the one whose turn it is found no run that is large enough.
    pub fn press(&mut self, purpose: Purpose, pressed: bool) {
        self.pressed[purpose as usize] = pressed;
    }
    /// Requests in lines.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }
    /// And those of others.
    pub fn waiting_beside(&self, account: u32) -> u32 {
        self.waiting - self.accounts[account as usize].waiting
    }

    fn take_turn(&mut self, account: u32, purpose: Purpose) {
        let place = |a: u32| 2 * a as usize + purpose as usize;
        self.turns[purpose as usize].push(account, place, &mut self.turn_places);
    }
    fn leave_turns(&mut self, account: u32, purpose: Purpose) {
        let place = |a: u32| 2 * a as usize + purpose as usize;
        self.turns[purpose as usize].remove(account, place, &mut self.turn_places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Purpose::{Asked, Unasked};
    use base::Prng;
    use std::collections::VecDeque;

    const MIB: u32 = 1 << 20;

    /// What a host may have of 100 MiB when it takes MiB by MiB, and others hold so much already.
    fn most(lending: &mut Lending, account: u32, others: u64) -> u64 {
        let mut own = 0;
        while lending.may(account, Asked, MIB, (100 - others - own) << 20) {
            lending.lend(account, Asked, MIB);
            own += 1;
        }
        own
    }

    #[test]
    fn each_host_more_gets_an_equal_part_of_what_is_left_and_some_stays() {
        let mut lending = Lending::new();
        let accounts: Vec<u32> = (0..5).map(|h| lending.open(Some(HostId(h)))).collect();
        let mut others = 0;
        for (account, expected) in accounts.into_iter().zip([80, 16, 3, 1, 0]) {
            // Alone, then beside those who came before and give nothing back.
            let own = if others < 100 { most(&mut lending, account, others) } else { 0 };
            assert_eq!(own, expected, "beside {others} MiB");
            others += own;
        }
    }

    #[test]
    fn who_has_nothing_may_have_one_command_whatever_is_left() {
        let mut lending = Lending::new();
        let (a, b) = (lending.open(Some(HostId(1))), lending.open(None));
        lending.lend(a, Asked, MIB);
        assert!(!lending.may(a, Asked, MIB, 1 << 20) && lending.may(b, Asked, MIB, 1 << 20));
        assert!(lending.may(a, Unasked, MIB, 1 << 20), "they are counted apart");
        lending.back(a, Asked, MIB);
        assert!(lending.may(a, Asked, MIB, 0));
    }

    #[test]
    fn connections_of_a_host_share_its_account_and_its_place_is_used_again() {
        let mut lending = Lending::new();
        let a = lending.open(Some(HostId(1)));
        assert_eq!((lending.open(Some(HostId(1))), lending.open(Some(HostId(2)))), (a, a + 1));
        lending.close(a);
        lending.close(a);
        assert_eq!(lending.open(Some(HostId(3))), a);
    }

    /// Lines and turns against a list of lists, with requests that leave from anywhere.
    #[test]
    fn lines_are_in_order_and_turns_go_round_whoever_leaves() {
        for seed in 0..50 {
            let mut rng = Prng::new(seed);
            let mut lending = Lending::new();
            lending.reserve(64);
            let accounts: Vec<u32> = (0..5).map(|h| lending.open(Some(HostId(h)))).collect();
            let mut model: VecDeque<(u32, Vec<u32>)> = VecDeque::new();
            for _ in 0..2000 {
                let request = rng.below(64) as u32;
                let held = model.iter().position(|(_, line)| line.contains(&request));
                match held {
                    None => {
                        let account = *rng.pick(&accounts);
                        lending.wait(account, Asked, request);
                        match model.iter_mut().find(|(a, _)| *a == account) {
                            Some((_, line)) => line.push(request),
                            None => model.push_back((account, vec![request])),
                        }
                    }
                    Some(i) => {
                        lending.leave(model[i].0, Asked, request);
                        model[i].1.retain(|r| *r != request);
                        if model[i].1.is_empty() {
                            model.remove(i);
                        }
                    }
                }
                if rng.chance(1, 3)
                    && let Some((account, _)) = lending.first(Asked)
                {
                    lending.next_turn(account, Asked);
                    model.rotate_left(1);
                }
                let first = model.front().map(|(account, line)| (*account, line[0]));
                assert_eq!(lending.first(Asked), first);
                assert_eq!(lending.last(Asked), model.back().map_or(NONE, |(a, _)| *a));
                let all: usize = model.iter().map(|(_, line)| line.len()).sum();
                assert_eq!(lending.waiting(), all as u32);
                assert_eq!(lending.first(Unasked), None);
            }
        }
    }
}
