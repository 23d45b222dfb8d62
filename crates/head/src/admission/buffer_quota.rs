//! The buffer quota: what each host holds of a shard's memory for data, and who waits for some.
//!
//! A buffer belongs to a host from the moment it is granted until it is free again: while the host owes its data (an R2T was sent, a capsule
//! has arrived in part), while drives work on it, and while the host does not take what it asked for. So a host that sends many commands and
//! then nothing holds as much as one that asks for much and reads nothing.
//!
//! A host may hold `SHARE` times what is left. A host that is alone gets nearly all; several get equal parts, and some is always left for
//! the next one. Nobody is refused: a host that may have no more waits in a line, and the others pass. Hosts take turns. If no run of memory
//! is large enough for the host whose turn it is, nobody passes it.
//!
//! Within its host each connection is treated as the host is among hosts: it has a line of its own, takes turns, and may hold `SHARE` times
//! what is left of its host's part. So a path that is dead leaves some memory for those that work, and what it frees when it is cut off does
//! not go to the next dead path alone. (A host's requests once stood in one line. A working connection behind twelve dead ones waited for
//! four deadlines.)
//!
//! ```text
//! turns:   host a ───────▶ host c ───▶ host d        (hosts that wait)
//!            │               │           │
//!            a1 ──▶ a3       c1          d2          (their connections that wait)
//!            │      │        │           │
//! lines:   w2 w5    w7       w1          w3 w4       (their requests, first come, first served)
//! ```
//!
//! Memory for unsolicited data is counted apart from the rest, as it is kept apart (`arena`): a request that waits for it blocks its stream,
//! and behind it may stand data that free what the host holds of the rest.
//!
//! Lines are chains through tables that grow only when connections and commands are admitted: joining and leaving take constant time and
//! allocate nothing.

use crate::admission::buffers::PAGE;
use crate::limits::{SHARE, has_share};
use base::front::TRANSFER_MAX;
use base::{Bug, HostId, planted};

/// For connections that have nothing yet: one part in so many of what their host may hold, at most a largest command.
const RESERVE_SHARE: u64 = 8;

const NONE: u32 = u32::MAX;

/// What memory is for; indexes the tables here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Data that were asked for, or that go out.
    Asked,
    /// Unsolicited data: they come next in their stream.
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

/// One host, or all unknown peers together.
#[derive(Clone, Copy, Debug)]
struct Account {
    host: Option<HostId>,
    /// Connections that use it; 0: it is free.
    connections: u32,
    /// Bytes held, by purpose.
    held: [u64; 2],
    /// Connections with a line, by purpose: whose turn it is comes first.
    links: [Chain; 2],
    waiting: u32,
}

/// One connection, by its index.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Bytes held, by purpose.
    held: [u64; 2],
    /// Requests that wait, by purpose.
    lines: [Chain; 2],
    waiting: u32,
}

const NO_LINE: Line = Line { held: [0; 2], lines: [EMPTY; 2], waiting: 0 };

/// Who holds memory: a connection, by its index, and the account of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    pub account: u32,
    pub link: u32,
}

/// The accounts of one shard.
#[derive(Debug)]
pub(crate) struct BufferQuota {
    accounts: Vec<Account>,
    /// By connection.
    lines: Vec<Line>,
    /// Places of connections in their hosts' chains: two each.
    link_places: Vec<Place>,
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

impl BufferQuota {
    pub fn new() -> Self {
        Self {
            accounts: vec![],
            lines: vec![],
            link_places: vec![],
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
    /// The account of one more connection of a host, which has this index.
    pub fn open(&mut self, host: Option<HostId>, link: u32) -> u32 {
        let lines = (link as usize + 1).max(self.lines.len());
        self.lines.resize(lines, NO_LINE);
        self.link_places.resize(2 * lines, NOWHERE);
        let own = self.accounts.iter().position(|a| a.connections > 0 && a.host == host);
        let free = || self.accounts.iter().position(|a| a.connections == 0);
        let index = own.or_else(free).unwrap_or(self.accounts.len());
        if index == self.accounts.len() {
            let account = Account { host, connections: 0, held: [0; 2], links: [EMPTY; 2], waiting: 0 };
            self.accounts.push(account);
            self.turn_places.resize(2 * self.accounts.len(), NOWHERE);
        }
        let account = &mut self.accounts[index];
        account.host = host;
        account.connections += 1;
        index as u32
    }
    /// Whose account it is.
    pub fn host(&self, account: u32) -> Option<HostId> {
        self.accounts.get(account as usize).and_then(|a| a.host)
    }
    /// A connection is over, and everything of it.
    pub fn close(&mut self, who: Holder) {
        let line = &self.lines[who.link as usize];
        assert!(line.held == [0; 2] && line.waiting == 0, "a connection that is gone holds memory");
        let account = &mut self.accounts[who.account as usize];
        account.connections -= 1;
        let over = account.connections == 0;
        assert!(!over || account.held == [0; 2] && account.waiting == 0, "a host that is gone holds memory");
    }
    /// Whether its host may have `len` more bytes, if `left` are left. A host that holds none may.
    #[inline]
    pub fn host_may(&self, who: Holder, purpose: Purpose, len: u32, left: u64) -> bool {
        let held = self.accounts[who.account as usize].held[purpose as usize];
        let more = weight(len);
        held == 0 || has_share(held, more, left) || planted(Bug::LentUncounted)
    }
    /// Whether the connection may have `len` more bytes of its host's part. A connection that holds none may.
    #[inline]
    pub fn link_may(&self, who: Holder, purpose: Purpose, len: u32, left: u64) -> bool {
        let held = self.lines[who.link as usize].held[purpose as usize];
        let more = weight(len);
        let host = self.accounts[who.account as usize].held[purpose as usize];
        let rest = (SHARE * left).saturating_sub(host) / (SHARE + 1);
        let reserve = u64::from(TRANSFER_MAX).min((host + rest) / RESERVE_SHARE);
        held == 0 || held + more <= SHARE * rest.saturating_sub(more + reserve) || planted(Bug::LentUncounted)
    }
    /// Whether it need not wait behind others.
    #[inline]
    pub fn passes(&self, who: Holder, purpose: Purpose) -> bool {
        if self.waiting == 0 {
            return true;
        }
        let line = self.lines[who.link as usize].lines[purpose as usize];
        !self.pressed[purpose as usize] && line.first == NONE
    }
    /// A buffer of `len` bytes was granted.
    #[inline]
    pub fn take(&mut self, who: Holder, purpose: Purpose, len: u32) {
        self.accounts[who.account as usize].held[purpose as usize] += weight(len);
        self.lines[who.link as usize].held[purpose as usize] += weight(len);
    }
    /// It is free again.
    #[inline]
    pub fn give_back(&mut self, who: Holder, purpose: Purpose, len: u32) {
        self.accounts[who.account as usize].held[purpose as usize] -= weight(len);
        self.lines[who.link as usize].held[purpose as usize] -= weight(len);
    }
    /// A request of this connection waits.
    pub fn wait(&mut self, who: Holder, purpose: Purpose, request: u32) {
        let own = &mut self.lines[who.link as usize];
        own.waiting += 1;
        let line = &mut own.lines[purpose as usize];
        let first = line.first == NONE;
        line.push(request, |r| r as usize, &mut self.places);
        if first {
            self.take_link_turn(who, purpose);
        }
        self.accounts[who.account as usize].waiting += 1;
        self.waiting += 1;
    }
    /// A request leaves its line.
    pub fn leave(&mut self, who: Holder, purpose: Purpose, request: u32) {
        let own = &mut self.lines[who.link as usize];
        own.waiting -= 1;
        let line = &mut own.lines[purpose as usize];
        line.remove(request, |r| r as usize, &mut self.places);
        if line.first == NONE {
            self.leave_link_turns(who, purpose);
            if self.turns[purpose as usize].first == NONE {
                self.pressed[purpose as usize] = false;
            }
        }
        self.accounts[who.account as usize].waiting -= 1;
        self.waiting -= 1;
    }
    /// The connection whose turn it is, and the first request in its line.
    pub fn first(&self, purpose: Purpose) -> Option<(Holder, u32)> {
        let account = self.turns[purpose as usize].first;
        let link = self.accounts.get(account as usize)?.links[purpose as usize].first;
        Some((Holder { account, link }, self.lines[link as usize].lines[purpose as usize].first))
    }
    /// A request of the connection whose turn it was has left: the turn goes on to the next connection of its host, if it
    /// still waits, and to the next host, if this one still waits.
    pub fn granted(&mut self, who: Holder, purpose: Purpose) {
        if self.lines[who.link as usize].lines[purpose as usize].first != NONE {
            self.next_link(who, purpose);
        }
        if self.turns[purpose as usize].first == who.account {
            self.next_turn(who.account, purpose);
        }
    }
    /// The turn goes on to the next connection of the host. This one still waits.
    pub fn next_link(&mut self, who: Holder, purpose: Purpose) {
        let place = |l: u32| 2 * l as usize + purpose as usize;
        let links = &mut self.accounts[who.account as usize].links[purpose as usize];
        links.remove(who.link, place, &mut self.link_places);
        links.push(who.link, place, &mut self.link_places);
    }
    /// The connection at which the turns of a host end.
    pub fn last_link(&self, account: u32, purpose: Purpose) -> u32 {
        self.accounts[account as usize].links[purpose as usize].last
    }
    /// The turn goes on to the next host. The account still waits.
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
    /// Bytes that all hosts hold, and all connections. For checkers.
    pub fn held(&self) -> (u64, u64) {
        let hosts: u64 = self.accounts.iter().flat_map(|account| account.held).sum();
        let connections: u64 = self.lines.iter().flat_map(|line| line.held).sum();
        (hosts, connections)
    }
    /// Requests in lines.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }
    /// Requests of other hosts in lines.
    pub fn waiting_beside(&self, account: u32) -> u32 {
        self.waiting - self.accounts[account as usize].waiting
    }
    /// Requests of other connections in lines.
    pub fn waiting_beside_link(&self, link: u32) -> u32 {
        self.waiting - self.lines[link as usize].waiting
    }

    fn take_link_turn(&mut self, who: Holder, purpose: Purpose) {
        let links = &mut self.accounts[who.account as usize].links[purpose as usize];
        let first = links.first == NONE;
        links.push(who.link, |l| 2 * l as usize + purpose as usize, &mut self.link_places);
        if first {
            self.take_turn(who.account, purpose);
        }
    }
    fn leave_link_turns(&mut self, who: Holder, purpose: Purpose) {
        let links = &mut self.accounts[who.account as usize].links[purpose as usize];
        links.remove(who.link, |l| 2 * l as usize + purpose as usize, &mut self.link_places);
        if links.first == NONE {
            self.leave_turns(who.account, purpose);
        }
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
    fn most(quota: &mut BufferQuota, who: Holder, others: u64) -> u64 {
        let mut own = 0;
        while quota.host_may(who, Asked, MIB, (100 - others - own) << 20) {
            quota.take(who, Asked, MIB);
            own += 1;
        }
        own
    }

    /// Who has this index is one more connection of this host.
    fn open(quota: &mut BufferQuota, host: u32, link: u32) -> Holder {
        Holder { account: quota.open(Some(HostId(host)), link), link }
    }

    #[test]
    fn each_host_more_gets_an_equal_part_of_what_is_left_and_some_stays() {
        let mut quota = BufferQuota::new();
        let all: Vec<Holder> = (0..5).map(|h| open(&mut quota, h, h)).collect();
        let mut others = 0;
        for (who, expected) in all.into_iter().zip([80, 16, 3, 1, 0]) {
            // Alone, then beside those who came before and give nothing back.
            let own = if others < 100 { most(&mut quota, who, others) } else { 0 };
            assert_eq!(own, expected, "beside {others} MiB");
            others += own;
        }
    }

    #[test]
    fn each_connection_more_of_a_host_gets_a_part_of_what_is_left_of_the_hosts_and_those_with_little_come_first()
     {
        let mut quota = BufferQuota::new();
        let mut left = 100u64 << 20;
        let may = |quota: &BufferQuota, who, left| {
            quota.host_may(who, Asked, MIB, left) && quota.link_may(who, Asked, MIB, left)
        };
        for (link, expected) in [63, 12, 3, 1, 1, 0].into_iter().enumerate() {
            let who = open(&mut quota, 1, link as u32);
            let mut own = 0;
            while may(&quota, who, left) {
                quota.take(who, Asked, MIB);
                own += 1;
                left -= u64::from(MIB);
            }
            assert_eq!(own, expected, "connection {link}");
        }
        // One MiB that comes back is for who has nothing, not for those that have some.
        quota.give_back(Holder { account: 0, link: 0 }, Asked, MIB);
        left += u64::from(MIB);
        let who_may: Vec<u32> =
            (0..6).filter(|link| may(&quota, Holder { account: 0, link: *link }, left)).collect();
        assert_eq!(who_may, [5]);
    }

    #[test]
    fn who_has_nothing_may_have_one_command_whatever_is_left() {
        let mut quota = BufferQuota::new();
        let a = open(&mut quota, 1, 0);
        let b = Holder { account: quota.open(None, 1), link: 1 };
        quota.take(a, Asked, MIB);
        assert!(!quota.host_may(a, Asked, MIB, 1 << 20) && quota.host_may(b, Asked, MIB, 1 << 20));
        assert!(quota.host_may(a, Unasked, MIB, 1 << 20), "they are counted apart");
        quota.give_back(a, Asked, MIB);
        assert!(quota.host_may(a, Asked, MIB, 0) && quota.link_may(a, Asked, MIB, 0));
    }

    #[test]
    fn connections_of_a_host_share_its_account_and_its_place_is_used_again() {
        let mut quota = BufferQuota::new();
        let a = open(&mut quota, 1, 0);
        let second = open(&mut quota, 1, 1);
        assert_eq!(second.account, a.account);
        assert_eq!(open(&mut quota, 2, 2).account, a.account + 1);
        quota.close(a);
        quota.close(second);
        assert_eq!(open(&mut quota, 3, 0).account, a.account);
    }

    /// Lines and turns against lists of lists, with requests that leave from anywhere.
    #[test]
    fn lines_are_in_order_and_turns_go_round_whoever_leaves() {
        type Lines = VecDeque<(u32, Vec<u32>)>;
        for seed in 0..50 {
            let mut rng = Prng::new(seed);
            let mut quota = BufferQuota::new();
            quota.reserve(64);
            // Two connections of each host.
            let places: Vec<Holder> = (0..10).map(|l| open(&mut quota, l / 2, l)).collect();
            let mut model: VecDeque<(u32, Lines)> = VecDeque::new();
            for _ in 0..2000 {
                let request = rng.below(64) as u32;
                let has = |links: &Lines| links.iter().position(|(_, line)| line.contains(&request));
                match model.iter().position(|(_, links)| has(links).is_some()) {
                    None => {
                        let who @ Holder { account, link } = *rng.pick(&places);
                        quota.wait(who, Asked, request);
                        let known = model.iter().position(|(a, _)| *a == account);
                        let at = known.unwrap_or_else(|| {
                            model.push_back((account, Lines::new()));
                            model.len() - 1
                        });
                        match model[at].1.iter_mut().find(|(l, _)| *l == link) {
                            Some((_, line)) => line.push(request),
                            None => model[at].1.push_back((link, vec![request])),
                        }
                    }
                    Some(i) => {
                        let (account, links) = &mut model[i];
                        let k = has(links).expect("found");
                        let place = Holder { account: *account, link: links[k].0 };
                        quota.leave(place, Asked, request);
                        let granted = i == 0 && k == 0 && links[0].1[0] == request;
                        links[k].1.retain(|r| *r != request);
                        if links[k].1.is_empty() {
                            links.remove(k);
                        } else if granted {
                            links.rotate_left(1);
                        }
                        if links.is_empty() {
                            model.remove(i);
                        } else if granted {
                            model.rotate_left(1);
                        }
                        if granted {
                            quota.granted(place, Asked);
                        }
                    }
                }
                if rng.chance(1, 3)
                    && let Some((who, _)) = quota.first(Asked)
                {
                    if rng.chance(1, 2) {
                        quota.next_turn(who.account, Asked);
                        model.rotate_left(1);
                    } else {
                        quota.next_link(who, Asked);
                        model[0].1.rotate_left(1);
                    }
                }
                let holder = |account, link| Holder { account, link };
                let first = model.front().map(|(a, links)| (holder(*a, links[0].0), links[0].1[0]));
                assert_eq!(quota.first(Asked), first);
                assert_eq!(quota.last(Asked), model.back().map_or(NONE, |(a, _)| *a));
                let lines = || model.iter().flat_map(|(_, links)| links);
                let all: usize = lines().map(|(_, line)| line.len()).sum();
                assert_eq!(quota.waiting(), all as u32);
                for Holder { link, .. } in &places {
                    let own = lines().find(|(l, _)| l == link).map_or(0, |(_, line)| line.len());
                    assert_eq!(quota.waiting_beside_link(*link), (all - own) as u32);
                }
                assert_eq!(quota.first(Unasked), None);
            }
        }
    }
}
