//! What is known of addresses that move, and of the connections to them.

use crate::steward::sessions::table::Place;
use base::view::{Interface, Moving, Portal};
use core::net::{IpAddr, SocketAddr};
use finding::AddressFault;
use std::collections::BTreeMap;

/// Where an address is.
pub(crate) type Whereabouts = Result<Interface, AddressFault>;

/// What is known of addresses that move.
#[derive(Default)]
pub(crate) struct Addresses {
    /// Of the latest order to the manager, and of the latest that it has carried out.
    asked: u64,
    answered: u64,
    here: BTreeMap<IpAddr, Whereabouts>,
    silent: bool,
    /// While this head does not lead: those of the head that does.
    of_leader: Vec<Moving>,
    /// Connections of hosts: our address, and theirs.
    connections: BTreeMap<Place, (SocketAddr, SocketAddr)>,
    /// The follower has not been told of them as they are.
    news: bool,
}

impl Addresses {
    /// The number of the next order to the manager.
    pub fn next_order(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }
    pub fn is_answered(&self, number: u64) -> bool {
        self.answered >= number
    }
    /// Where an address is; None: nobody has said.
    pub fn whereabouts(&self, ip: IpAddr) -> Option<&Whereabouts> {
        self.here.get(&ip)
    }
    /// Addresses that the head that leads is to have, which is not this one.
    pub fn of_leader(&self) -> &[Moving] {
        &self.of_leader
    }
    pub fn leader_has(&mut self, all: Vec<Moving>) {
        self.of_leader = all;
    }
    /// What the manager says. Those of which it says something else than before, and whether the network cannot be told from now on.
    pub fn on_told(
        &mut self,
        number: u64,
        here: Vec<(IpAddr, Whereabouts)>,
        silent: bool,
    ) -> (Vec<(IpAddr, Option<Whereabouts>, Whereabouts)>, bool) {
        self.answered = self.answered.max(number);
        let before = core::mem::take(&mut self.here);
        self.here = here.into_iter().collect();
        let other = |(ip, is): (&IpAddr, &Whereabouts)| (*ip, before.get(ip).cloned(), is.clone());
        let changed = self.here.iter().filter(|(ip, is)| before.get(*ip) != Some(*is)).map(other).collect();
        let hushed = silent && !self.silent;
        self.silent = silent;
        (changed, hushed)
    }

    /// A connection asks to be let in.
    pub fn comes(&mut self, place: Place, local: SocketAddr, peer: SocketAddr) {
        self.news |= self.connections.insert(place, (local, peer)) != Some((local, peer));
    }
    /// A connection is over.
    pub fn goes(&mut self, place: Place) {
        self.news |= self.connections.remove(&place).is_some();
    }
    /// A follower is to be told of all of them.
    pub fn is_news(&mut self) {
        self.news = true;
    }
    pub fn has_news(&self) -> bool {
        self.news
    }
    /// Connections to one of these addresses, at most so many, for the follower.
    pub fn take_news(&mut self, portals: &[Moving], most: usize) -> Vec<(SocketAddr, SocketAddr)> {
        self.news = false;
        let moves = |local: &SocketAddr| portals.iter().any(|m| m.ip == local.ip().to_canonical());
        let canonical = |a: SocketAddr| SocketAddr::new(a.ip().to_canonical(), a.port());
        let all = self.connections.values().filter(|(local, _)| moves(local));
        all.take(most).map(|(local, peer)| (canonical(*local), canonical(*peer))).collect()
    }
}

/// The addresses of portals that move, each once.
pub(crate) fn moving<'a>(portals: impl Iterator<Item = &'a Portal>) -> Vec<Moving> {
    let mut all: Vec<Moving> =
        portals.filter_map(|p| Some(Moving { ip: p.address.ip(), moves: p.moves? })).collect();
    all.sort_by_key(|m| m.ip);
    all.dedup_by_key(|m| m.ip);
    all
}
