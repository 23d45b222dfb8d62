//! Links between hosts and the head: they delay, split, stall, fall silent, and break at any byte.

use super::actor::{ActorId, Body};
use super::{Happening, World, Wrong};
use base::{Address, ConnectionId, Duration, Event, Instant, NetError, PortalId, Slice};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::ops::Bound::Included;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a link holds of what its receiver does not take, bytes.
const WINDOW: usize = 256 << 10;
/// Connections that a shard may have, in the simulated kernel.
const PLACES: u64 = 4096;
/// Buffers of what was sent that are kept for what is sent next.
const SPARE_MOST: usize = 16;
/// Nothing arrives on this way any more.
const NEVER: Instant = Instant(u64::MAX);

/// One direction of a link.
#[derive(Default)]
struct Way {
    /// Arrived and not yet received: what each send brought, and how much of the first is taken.
    inbox: VecDeque<Vec<u8>>,
    taken: usize,
    /// When the last bytes sent will arrive: later ones do not overtake.
    last: Instant,
    /// The receiver's receive under way.
    receive: Option<(Option<Slice>, u32)>,
    /// The sender has closed, and that is known at this end.
    ended: bool,
    reported: bool,
    /// The link breaks when so many more bytes have been sent on this way.
    fuse: Option<u64>,
    /// The sender waits for the receiver to take what has arrived.
    held_up: bool,
}

impl Way {
    /// Whether much has arrived that was not asked for yet.
    fn is_full(&self) -> bool {
        self.receive.is_none() && self.inbox.iter().map(Vec::len).sum::<usize>() - self.taken > WINDOW
    }
    /// Fills `memory` with what has arrived, as far as that goes. Buffers that are empty then go to `spare`.
    fn take(&mut self, memory: &mut [u8], spare: &mut Vec<Vec<u8>>) -> usize {
        let mut filled = 0;
        while filled < memory.len()
            && let Some(first) = self.inbox.front()
        {
            let n = (first.len() - self.taken).min(memory.len() - filled);
            memory[filled..filled + n].copy_from_slice(&first[self.taken..self.taken + n]);
            filled += n;
            self.taken += n;
            if self.taken == first.len() {
                let empty = self.inbox.pop_front();
                spare.extend(empty.filter(|_| spare.len() < SPARE_MOST));
                self.taken = 0;
            }
        }
        filled
    }
}

#[derive(Clone, Copy)]
struct End {
    actor: ActorId,
    id: ConnectionId,
    open: bool,
}

struct Link {
    ends: [End; 2],
    /// `ways[i]` leads to `ends[i]`.
    ways: [Way; 2],
    /// What is sent now arrives after this.
    stalled_until: Instant,
    /// What is sent is lost, and nobody gets an event.
    silent: bool,
    /// Its address is at another server: the host's end got an event.
    moved: bool,
    /// When the host gave it up, if nobody got an event.
    left_at: Option<Instant>,
    /// It is between shards of two heads, by this network of their link.
    network: Option<usize>,
    /// The port of the portal that it came to.
    port: u16,
    /// When the end that connects gets the event that it is up.
    up_at: Instant,
}

/// Portals where shards listen for those of the other head have the highest numbers.
const FAR_PORTALS: u32 = u32::MAX - (1 << 18);
/// How long it takes until the end that connects gets the event that the connection is up.
const UP_MICROS: u64 = 30;
/// How long a connection attempt without an answer takes to fail.
const UNANSWERED: Duration = Duration::from_millis(20);

/// The network of the heads' link that an address belongs to: the `n` of 10.9.n.x.
fn network_of(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        IpAddr::V4(ip) if ip.octets()[..2] == [10, 9] => Some(usize::from(ip.octets()[2])),
        _ => None,
    }
}

/// Every link, and the listeners.
#[derive(Default)]
pub(super) struct Links {
    /// By number: those of which an end is open.
    all: BTreeMap<usize, Link>,
    joined: usize,
    spare: Vec<Vec<u8>>,
    by_end: BTreeMap<(ActorId, ConnectionId), (usize, usize)>,
    accepts: u64,
    /// By server and portal: where, and since which call.
    listeners: BTreeMap<(usize, PortalId), (SocketAddr, u64)>,
    listens: u64,
    /// Shards that listen for those of the other head, each for itself.
    far: BTreeMap<SocketAddr, (ActorId, PortalId)>,
}

impl Links {
    /// A link between two ends. Its number is not used again in this run: late happenings may still name it.
    fn join(
        &mut self,
        ends: [(ActorId, ConnectionId); 2],
        network: Option<usize>,
        port: u16,
        up_at: Instant,
    ) {
        let index = self.joined;
        self.joined += 1;
        let link = Link {
            ends: ends.map(|(actor, id)| End { actor, id, open: true }),
            ways: [Way::default(), Way::default()],
            stalled_until: Instant(0),
            silent: false,
            moved: false,
            left_at: None,
            network,
            port,
            up_at,
        };
        self.all.insert(index, link);
        for (n, end) in ends.into_iter().enumerate() {
            self.by_end.insert(end, (index, n));
        }
    }
    /// A link that an end leads to.
    fn of_end(&mut self, link: usize) -> &mut Link {
        self.all.get_mut(&link).expect("ends lead to links")
    }
    fn ends_of(&self, id: ActorId) -> Vec<(usize, usize)> {
        let all = (id, ConnectionId(0))..=(id, ConnectionId(u64::MAX));
        self.by_end.range(all).map(|(_, end)| *end).collect()
    }
    fn of_network(&self, network: usize) -> Vec<usize> {
        self.all.iter().filter(|(_, l)| l.network == Some(network)).map(|(link, _)| *link).collect()
    }
    /// The number of the next connection of this shard: its place is that of no open one.
    fn next_of(&mut self, shard: ActorId) -> ConnectionId {
        let all = (Included((shard, ConnectionId(0))), Included((shard, ConnectionId(u64::MAX))));
        assert!(self.by_end.range(all).count() < PLACES as usize, "a head that closes nothing");
        let is_taken = |slot: usize| self.by_end.range(all).any(|((_, id), _)| id.slot() == slot);
        loop {
            self.accepts += 1;
            let id = ConnectionId::new((self.accepts % PLACES) as u32, (self.accepts / PLACES) as u32);
            if !is_taken(id.slot()) {
                return id;
            }
        }
    }
    /// The listener of this port: the one that began last, since the address is there.
    fn listener(&self, port: u16) -> Option<(usize, PortalId, SocketAddr)> {
        let here = self.listeners.iter().filter(|(_, (a, _))| a.port() == port);
        let (server, _) = here.max_by_key(|(_, (_, since))| *since)?.0;
        let portals = self.listeners.range((*server, PortalId(0))..);
        let first = portals.into_iter().find(|((of, _), (a, _))| of == server && a.port() == port)?;
        Some((*server, first.0.1, first.1.0))
    }
}

impl World {
    pub(super) fn nobody_listens(&mut self, server: usize) {
        self.links.listeners.retain(|(of, _), _| *of != server);
        let actors = &self.actors;
        self.links.far.retain(|_, (shard, _)| actors[*shard].server != Some(server));
    }
    pub(super) fn listen(&mut self, shard: ActorId, portal: PortalId, address: SocketAddr) {
        if portal.0 >= FAR_PORTALS {
            self.links.far.insert(address, (shard, portal));
            return;
        }
        let server = usize::from(self.nexus_of(shard));
        let links = &mut self.links;
        links.listens += 1;
        let first = links.listeners.insert((server, portal), (address, links.listens)).is_none();
        if first && self.addresses_move {
            self.address_moves(server, address.port());
        }
    }
    pub(super) fn unlisten(&mut self, shard: ActorId, portal: PortalId) {
        self.links.far.retain(|_, l| *l != (shard, portal));
        let server = usize::from(self.nexus_of(shard));
        self.links.listeners.remove(&(server, portal));
    }
    /// The address of a portal is at this server from now on: hosts of the other one hear that it does not know them, and that one hears
    /// nothing any more.
    fn address_moves(&mut self, server: usize, port: u16) {
        let mut moved = vec![];
        for (link, l) in self.links.all.iter_mut().filter(|(_, l)| l.network.is_none() && l.port == port) {
            let elsewhere = self.actors[l.ends[1].actor].server != Some(server);
            // Also a host that hears nothing any more, as its server has no power.
            if elsewhere && !core::mem::replace(&mut l.moved, true) {
                l.silent = true;
                l.ways[0].last = NEVER;
                moved.push(*link);
            }
        }
        for link in moved {
            self.push(self.now() + Duration::from_micros(50), Happening::Hangup { link, to: 0 });
        }
    }
    /// A server has no power: its hosts hear nothing.
    pub(super) fn silence_links_of(&mut self, id: ActorId) {
        for (link, _) in self.links.ends_of(id) {
            self.links.of_end(link).silent = true;
        }
    }
    fn any_link(&mut self) -> Option<usize> {
        let of_hosts = self.links.all.iter().filter(|(_, l)| l.network.is_none());
        let live: Vec<usize> = of_hosts.map(|(link, _)| *link).collect();
        if live.is_empty() { None } else { Some(*self.rng.pick(&live)) }
    }
    /// A link breaks for both ends: at once (bytes under way are lost), or behind one of the next bytes.
    pub fn cut_one_link(&mut self) {
        let Some(link) = self.any_link() else { return };
        self.tally.make(Wrong::CutLink);
        if self.rng.chance(1, 2) {
            self.tally.meet(Wrong::CutLink);
            return self.cut(link);
        }
        let (to, after) = (self.rng.below(2) as usize, self.rng.below(9000));
        self.say(|| format!("link {link} will be cut behind byte {after} towards end {to}"));
        self.links.of_end(link).ways[to].fuse = Some(after);
    }
    /// What is sent on a link waits for a while. If its host gives it up meanwhile, that is lost: what
    /// arrives after a host's next login is promised by nothing on one path (docs/faults.md).
    pub fn stall_one_link(&mut self, time: Duration) {
        let Some(link) = self.any_link() else { return };
        self.tally.make(Wrong::StallLink);
        self.say(|| format!("link {link} stalls for {time:?}"));
        let until = self.now() + time;
        self.links.of_end(link).stalled_until = until;
    }
    /// A link takes bytes and brings them nowhere; nobody gets an event.
    pub fn silence_one_link(&mut self) {
        let Some(link) = self.any_link() else { return };
        self.tally.make(Wrong::SilenceLink);
        self.say(|| format!("link {link} is silent from now on"));
        self.links.of_end(link).silent = true;
    }
    /// The same of what a host has by portals of this port.
    pub fn silence_path(&mut self, host: ActorId, port: u16) {
        let its = |l: &&mut Link| l.network.is_none() && l.ends[0].actor == host && l.port == port;
        self.links.all.values_mut().filter(its).for_each(|l| l.silent = true);
        self.say(|| format!("links of actor {host} by port {port} are silent from now on"));
    }
    /// Hosts whose last connection the head has closed, since somebody asked.
    pub fn take_cut_off(&mut self) -> Vec<ActorId> {
        core::mem::take(&mut self.cut_off)
    }
    /// Since when this host has given up a connection that its head still has: the link brings nothing, not even that.
    pub fn left_in_silence(&self, host: ActorId) -> Option<Instant> {
        let [own, heads] = [0, 1];
        let unnoticed = |l: &&Link| l.network.is_none() && l.ends[own].actor == host && l.ends[heads].open;
        self.links.all.values().filter(unnoticed).filter_map(|l| l.left_at).min()
    }
    /// Servers that a host is connected to by portals of this port.
    pub fn servers_by(&self, host: ActorId, port: u16) -> BTreeSet<usize> {
        let [own, heads] = [0, 1];
        let its = |l: &&Link| {
            l.network.is_none() && l.port == port && l.ends[own].actor == host && l.ends[own].open
        };
        let shards = self.links.all.values().filter(its).map(|l| l.ends[heads].actor);
        shards.filter_map(|shard| self.server_of(shard)).collect()
    }
    pub(super) fn cut_links_of(&mut self, id: ActorId) {
        for (link, _) in self.links.ends_of(id) {
            self.cut(link);
        }
    }
    pub(super) fn drop_ends_of(&mut self, id: ActorId) {
        for (link, end) in self.links.ends_of(id) {
            self.drop_end(link, end);
        }
    }
    fn cut(&mut self, link: usize) {
        self.say(|| format!("link {link} is cut"));
        for to in 0..2 {
            if let Some(l) = self.links.all.get_mut(&link) {
                let way = &mut l.ways[to];
                way.inbox.clear();
                way.taken = 0;
                way.last = NEVER;
                self.push(self.now(), Happening::Hangup { link, to });
            }
        }
    }
    pub(super) fn arrive(&mut self, link: usize, to: usize, bytes: Vec<u8>) {
        if let Some(l) = self.links.all.get_mut(&link).filter(|l| l.ways[to].last < NEVER) {
            l.ways[to].inbox.push_back(bytes);
            self.deliver(link, to);
        }
    }
    pub(super) fn hang_up(&mut self, link: usize, to: usize) {
        let Some(l) = self.links.all.get_mut(&link) else { return };
        l.ways[to].ended = true;
        let end = l.ends[to];
        if end.open && l.ways[1 - to].held_up && !core::mem::replace(&mut l.ways[to].reported, true) {
            // A send that waits for the other end fails, whatever is still to be received.
            let broken = || Event::Broken { connection: end.id };
            let host_broken = || Event::Broken { connection: end.id };
            return self.send_to_either(end.actor, 1, broken, host_broken);
        }
        self.deliver(link, to);
    }

    /// What goes over a network of the heads' link waits for a while; what waits too long is over.
    pub(super) fn stall_network(&mut self, network: usize, time: Duration, gives_up: Duration) {
        let until = self.now() + time;
        for link in self.links.of_network(network) {
            self.links.of_end(link).stalled_until = until;
            if time >= gives_up {
                self.push(self.now() + gives_up, Happening::Cut { link });
            }
        }
    }
    /// Connections of a network of the heads' link break.
    pub(super) fn cut_network_links(&mut self, network: usize) {
        for link in self.links.of_network(network) {
            self.cut(link);
        }
    }
    /// A shard goes to one of the other head.
    fn connect_far(&mut self, from: ActorId, id: ConnectionId, peer: SocketAddr, network: usize) {
        let listens = self.links.far.get(&peer).copied();
        let there = listens.filter(|(shard, _)| {
            let server = self.server_of(*shard).expect("a shard is of a server");
            self.servers[server].runs && !self.network_is_cut(network)
        });
        let Some((shard, portal)) = there else {
            let failed = Event::Connected { connection: id, result: Err(NetError::Refused) };
            return self.post(from, UNANSWERED, super::HeadOrHost::Head(failed));
        };
        let theirs = self.links.next_of(shard);
        let up_at = self.now + Duration::from_micros(UP_MICROS);
        self.links.join([(from, id), (shard, theirs)], Some(network), peer.port(), up_at);
        self.send_to_head(shard, Event::Accepted { connection: theirs, portal, local: peer, peer });
        let ok = || Event::Connected { connection: id, result: Ok(()) };
        self.send_to_either(from, UP_MICROS, ok, || unreachable!("hosts go to no shard of their own"));
    }

    pub(super) fn connect(&mut self, host: ActorId, id: ConnectionId, peer: SocketAddr) {
        if let Some(network) = network_of(peer) {
            return self.connect_far(host, id, peer, network);
        }
        let listener = self.links.listener(peer.port());
        let at = listener.map_or(0, |(server, ..)| server);
        let portal = listener.map(|(_, portal, address)| (portal, address));
        let shards: Vec<ActorId> = self.servers[at]
            .addresses
            .iter()
            .filter(|(a, _)| matches!(a, Address::Shard(_)))
            .map(|(_, id)| *id)
            .collect();
        let Some((portal, local)) = portal else {
            let failed = || Event::Connected { connection: id, result: Err(NetError::Refused) };
            let host_failed = || Event::Connected { connection: id, result: Err(NetError::Refused) };
            self.send_to_either(host, 30, failed, host_failed);
            return;
        };
        let shard = *self.rng.pick(&shards);
        let theirs = self.links.next_of(shard);
        let accepts = self.links.accepts;
        let up_at = self.now + Duration::from_micros(UP_MICROS);
        self.links.join([(host, id), (shard, theirs)], None, peer.port(), up_at);
        let from = SocketAddr::from((
            Ipv4Addr::new(10, 0, 0, (host % 250) as u8 + 1),
            40000 + (accepts % 20000) as u16,
        ));
        self.send_to_head(shard, Event::Accepted { connection: theirs, portal, local, peer: from });
        let ok = || Event::Connected { connection: id, result: Ok(()) };
        let host_ok = || Event::Connected { connection: id, result: Ok(()) };
        self.send_to_either(host, UP_MICROS, ok, host_ok);
    }
    pub(super) fn receive(&mut self, id: ActorId, connection: ConnectionId, into: Option<Slice>, most: u32) {
        let Some(&(link, end)) = self.links.by_end.get(&(id, connection)) else { return };
        let all = self.links.of_end(link);
        assert!(end == 1 || self.now >= all.up_at, "a connection is asked for bytes before it is up");
        let way = &mut all.ways[end];
        assert!(way.receive.is_none(), "two receives of one connection are under way");
        way.receive = Some((into, most));
        self.deliver(link, end);
    }
    /// A staging buffer is free again: those who waited for one get what has arrived.
    pub(super) fn deliver_starved(&mut self, id: ActorId) {
        for link in core::mem::take(&mut self.actors[id].starved) {
            self.deliver(link, 0);
            self.deliver(link, 1);
        }
    }
    /// Gives the receiver what is there, or an event that the other end is gone.
    fn deliver(&mut self, link: usize, to: usize) {
        let Some(l) = self.links.all.get_mut(&link) else { return };
        let end = l.ends[to];
        if !end.open {
            return;
        }
        let way = &mut l.ways[to];
        if way.inbox.is_empty() {
            if way.ended && !way.reported {
                way.reported = true;
                let connection = end.id;
                self.send_to_either(
                    end.actor,
                    1,
                    || Event::Broken { connection },
                    || Event::Broken { connection },
                );
            }
            return;
        }
        let Some((into, most)) = way.receive else { return };
        let place = match into {
            Some(slice) => slice,
            None => match self.actors[end.actor].staging.pop() {
                Some(piece) => piece.head(most.min(piece.len)),
                None => {
                    self.actors[end.actor].starved.push(link);
                    return;
                }
            },
        };
        way.receive = None;
        let mut filled = 0;
        let spare = &mut self.links.spare;
        self.actors[end.actor].dma(place, &mut |memory| filled = way.take(memory, spare));
        assert!(filled > 0, "a receive gets at least a byte");
        let data = place.head(filled as u32);
        let connection = end.id;
        let (head, host) = (|| Event::Received { connection, data }, || Event::Received { connection, data });
        self.send_to_either(end.actor, 1, head, host);
        let l = self.links.of_end(link);
        let (from, way) = (l.ends[1 - to], &mut l.ways[to]);
        if way.held_up && !way.is_full() {
            way.held_up = false;
            self.send(from.actor, from.id);
        }
    }
    pub(super) fn send(&mut self, id: ActorId, connection: ConnectionId) {
        let Some(&(link, end)) = self.links.by_end.get(&(id, connection)) else { return };
        let way = &mut self.links.of_end(link).ways[1 - end];
        if way.is_full() {
            way.held_up = true;
            return;
        }
        let bytes = self.bytes_to_send(id, connection);
        let bytes_sent = bytes.len() as u32;
        self.carry_bytes(link, 1 - end, bytes);
        let sent = || Event::Sent { connection, bytes: bytes_sent };
        let host_sent = || Event::Sent { connection, bytes: bytes_sent };
        let late = 1 + self.rng.below(10);
        self.send_to_either(id, late, sent, host_sent);
    }
    /// What the kernel takes of a connection's segments: all, or the beginning.
    fn bytes_to_send(&mut self, id: ActorId, connection: ConnectionId) -> Vec<u8> {
        let mut segments = core::mem::take(&mut self.segments);
        segments.clear();
        match &self.actors[id].body {
            Body::Head(m) => m.segments(connection, 1024, &mut segments),
            Body::Host(m) => m.segments(connection, 1024, &mut segments),
        }
        let total: u64 = segments.iter().map(|s| u64::from(s.len)).sum();
        assert!(total > 0, "a send of nothing");
        let split = self.rng.chance(self.delivery.split_permille, 1000);
        let taken = if split { self.rng.between(1, total) } else { total };
        let mut bytes = self.links.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.reserve(taken as usize);
        for s in &segments {
            let n = u64::from(s.len).min(taken - bytes.len() as u64) as u32;
            if n > 0 {
                self.actors[id].dma(s.head(n), &mut |piece| bytes.extend_from_slice(piece));
            }
        }
        self.segments = segments;
        bytes
    }
    fn carry_bytes(&mut self, link: usize, to: usize, mut bytes: Vec<u8>) {
        let delay = Duration::from_micros(1 + self.rng.below(self.delivery.link_us));
        let now = self.now();
        let l = self.links.of_end(link);
        let stalled = l.stalled_until;
        let of_host = l.network.is_none();
        let way = &mut l.ways[to];
        if way.last == NEVER || l.silent {
            if l.silent {
                self.tally.meet(Wrong::SilenceLink);
            }
            return;
        }
        if of_host && stalled > now {
            self.tally.meet(Wrong::StallLink);
        }
        let breaks = way.fuse.is_some_and(|left| left < bytes.len() as u64);
        if breaks {
            self.tally.meet(Wrong::CutLink);
        }
        if let Some(left) = &mut way.fuse {
            bytes.truncate(bytes.len().min(*left as usize));
            *left -= bytes.len() as u64;
        }
        let at = (now + delay).max(way.last).max(stalled);
        way.last = at;
        if !bytes.is_empty() {
            self.push(at, Happening::Arrive { link, to, bytes });
        }
        if breaks {
            self.push(at, Happening::Cut { link });
        }
    }
    pub(super) fn break_link(&mut self, link: usize) {
        if !self.links.all.contains_key(&link) {
            return;
        }
        self.say(|| format!("link {link} breaks"));
        for to in 0..2 {
            let l = self.links.of_end(link);
            l.ways[to].last = NEVER;
            self.push(self.now(), Happening::Hangup { link, to });
        }
    }
    pub(super) fn close(&mut self, id: ActorId, connection: ConnectionId) {
        if let Some(&(link, end)) = self.links.by_end.get(&(id, connection)) {
            let [own, heads] = [0, 1];
            let l = &self.links.all[&link];
            let (host, of_host) = (l.ends[own].actor, l.network.is_none());
            self.drop_end(link, end);
            let here = |l: &Link| l.ends[own].actor == host && l.ends[heads].open;
            if of_host && end == heads && !self.links.all.values().any(here) {
                self.cut_off.push(host);
            }
        }
        // Late enough for the `Sent` of a send under way.
        self.send_to_either(id, 15, || Event::Closed { connection }, || Event::Closed { connection });
    }
    fn drop_end(&mut self, link: usize, end: usize) {
        let now = self.now();
        let l = self.links.all.get_mut(&link).expect("ends lead to links");
        l.ends[end].open = false;
        self.links.by_end.remove(&(l.ends[end].actor, l.ends[end].id));
        if !l.ends[1 - end].open {
            self.links.all.remove(&link);
            return;
        }
        let way = &mut l.ways[1 - end];
        let stalled = l.stalled_until > now;
        let at = if stalled || way.last == NEVER { now } else { way.last.max(now) };
        if stalled {
            way.last = NEVER;
        }
        if l.silent {
            l.left_at = Some(now);
            return;
        }
        self.push(at + Duration::from_micros(1), Happening::Hangup { link, to: 1 - end });
    }
}
