//! How many connections a shard accepts, in three classes: unauthenticated connections, discovery sessions of unknown hosts, and
//! connections of known hosts.
//!
//! **Unauthenticated connections** have not logged in yet. A connection takes memory for its output with its first answer, not before: one
//! that connects and stays silent costs a table entry. Half of the world's connections, and half of the memory for outputs, are for
//! connections that got as far as asking to be let in (NVMe-oF Connect, the end of an iSCSI login). When unauthenticated connections have
//! the other half, the oldest of them makes room for the next. A login takes milliseconds, so hosts get in while others connect and do
//! nothing. (Each connection used to take its output at accept. Four thousand silent connections kept all hosts out of a head with little
//! memory, until their deadline.)
//!
//! **Discovery sessions of unknown hosts** were let in without a known name: discovery is open to anybody. They may stay as long as they
//! like, so they have a class of their own with smaller limits: on connections, and with them the head's controller ids and session
//! handles, on memory for outputs, and on slots for commands. When there are too many, approximately the one that has been silent the
//! longest makes room: the first in line is put out, unless it has sent something since its last turn. Then it goes to the end of the line
//! once more. (They used to count as hosts. Eight thousand discovery controllers of unknown hosts took all controller ids, and no host could
//! connect until their keep-alive ended.)
//!
//! **Connections of known hosts.** Anybody can claim a known name, and a known host may misbehave. So each host may have four times what
//! is left of the connections, of the memory for outputs and of the slots for commands, as with the memory for data (`buffer_quota`), or
//! more while plenty is left. The next connection, under whatever name, still gets something. The Steward limits controller ids and session
//! handles in the same way. The other two classes have no more connections and memory for outputs than hosts leave, but always enough that
//! a new connection can log in while one host has its most. A connection whose login is refused is unauthenticated again. (One name took
//! every output of a head, and with them every other host's way in.)
//!
//! A connection that is ending counts until its end: its output may hold memory until the peer takes it. If room is needed, nobody waits
//! for that.

use super::{Connection, Core, NO_LINK, Shard};
use crate::admission::buffers::Buffers;
use crate::limits::{self, CONTROLLERS_MAX, SESSIONS_MAX, has_share};
use crate::mail::Mail;
use crate::path::far::{FarFront, is_far};
use crate::path::link::{Front, Io, Life, Link, LoginState};
use crate::report::Counters;
use base::front::Close;
use base::{ConnectionFault, ConnectionId, Effect, Effects, HostId, Instant, Memory, Outbox, PortalId};
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Unauthenticated connections that there may be at least.
const UNAUTHENTICATED_MIN: u32 = 32;
/// Discovery controllers, and discovery sessions, of unknown hosts that the whole head may have: a quarter of
/// the ids that there are.
const DISCOVERY_MAX: u32 = CONTROLLERS_MAX as u32 / 4;
const _: () = assert!(SESSIONS_MAX >= CONTROLLERS_MAX);
/// Of one shard, at least.
const DISCOVERY_MIN: u32 = 8;
/// Discovery sessions have at most one part in so many of the memory for outputs and of the slots for commands.
const DISCOVERY_SHARE: u32 = 8;

/// A host may have more than its share while this much is left for others: connections, bytes of memory for outputs, slots.
const PLENTY: Usage = Usage { connections: 1024, outputs: 4 << 20, slots: 32 << 10 };

/// A class of connections with a limit, oldest first. Entries of connections that have left are dropped when their turn comes.
#[derive(Default)]
struct Class {
    max: u32,
    count: u32,
    line: VecDeque<(u32, ConnectionId)>,
    /// Of their outputs.
    bytes: u64,
    bytes_max: u64,
}

/// What connections of a shard may still be promised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// Bytes of memory for outputs.
    pub outputs: u64,
    /// Slots for commands.
    pub slots: u32,
}

/// What the connections of a host have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Usage {
    connections: u64,
    /// Bytes of memory for outputs.
    outputs: u64,
    slots: u64,
}

/// Counts the connections of each class, and says how many there may be.
pub(crate) struct ConnectionLimits {
    hosts: BTreeMap<HostId, Usage>,
    /// Connections of all hosts.
    host_connections: u32,
    /// Connections that the world has room for, and how many of them are at least for unauthenticated ones.
    connections_max: u32,
    unauthenticated_min: u32,
    unauthenticated: Class,
    /// Unauthenticated connections that were answered, and so have an output.
    answered: VecDeque<(u32, ConnectionId)>,
    discovery: Class,
    /// Slots for commands of discovery sessions.
    slots: u32,
    slots_max: u32,
    /// A connection has taken something since the last look.
    changed: bool,
}

/// The line whose first connection makes room.
#[derive(Clone, Copy)]
enum Line {
    Unauthenticated,
    Answered,
    Discovery,
}

impl ConnectionLimits {
    pub fn new(connections_max: u32, shards: u16, outputs_bytes: u64) -> Self {
        let shards = u32::from(shards.max(1));
        let unauthenticated = Class {
            max: (connections_max / 2).max(UNAUTHENTICATED_MIN),
            bytes_max: outputs_bytes / 2,
            ..Class::default()
        };
        let discovery = Class {
            max: (DISCOVERY_MAX / shards).min(connections_max / 4).max(DISCOVERY_MIN),
            bytes_max: outputs_bytes / u64::from(DISCOVERY_SHARE),
            ..Class::default()
        };
        let slots_max = limits::REQUESTS_MAX / DISCOVERY_SHARE / shards;
        Self {
            hosts: BTreeMap::new(),
            host_connections: 0,
            connections_max,
            // Where there is room for few connections, hosts have most of them.
            unauthenticated_min: (connections_max / 8).max(UNAUTHENTICATED_MIN).min(connections_max / 4),
            unauthenticated,
            answered: VecDeque::new(),
            discovery,
            slots: 0,
            slots_max,
            changed: false,
        }
    }
    /// Connections that hosts and discovery sessions may have together.
    fn logged_in_max(&self) -> u32 {
        self.connections_max.saturating_sub(self.unauthenticated_min)
    }
    /// Unauthenticated connections that there may be: never fewer than one, so that somebody can log in.
    fn unauthenticated_max(&self) -> u32 {
        let left = self.connections_max.saturating_sub(self.host_connections + self.discovery.count);
        self.unauthenticated.max.min(left).max(1)
    }
    fn discovery_max(&self) -> u32 {
        self.discovery.max.min(self.logged_in_max().saturating_sub(self.host_connections))
    }
    fn on_accepted(&mut self, link: &Link) {
        self.changed = true;
        self.unauthenticated.count += 1;
        self.unauthenticated.line.push_back((link.index, link.id));
    }
    fn on_answered(&mut self, link: &Link) {
        match link.login_state {
            LoginState::Unauthenticated => {
                self.unauthenticated.bytes += output(link);
                self.answered.push_back((link.index, link.id));
            }
            // Its first PDU was its whole login.
            LoginState::Discovery => self.discovery.bytes += output(link),
            LoginState::Uncounted | LoginState::Host => return,
        }
        self.changed = true;
    }
    /// The connection asks to be let in; its host may be known or not.
    pub fn on_asked(&mut self, link: &mut Link) {
        let discovers = link.host.is_none() && link.login_state == LoginState::Unauthenticated;
        // A discovery session may log in as a host after its first Connect was refused.
        if discovers || link.host.is_some() {
            self.leave(link);
        }
        if discovers {
            link.login_state = LoginState::Discovery;
            link.spoke = false;
            self.discovery.count += 1;
            self.discovery.bytes += output(link);
            self.discovery.line.push_back((link.index, link.id));
            self.changed = true;
        }
    }
    /// The connection was let in, with slots for its commands.
    pub fn on_admitted(&mut self, link: &mut Link) {
        if link.login_state == LoginState::Discovery {
            self.slots += link.tags.len() as u32;
            self.changed = true;
        } else if let (LoginState::Uncounted, Some(host)) = (link.login_state, link.host) {
            link.login_state = LoginState::Host;
            self.hosts.entry(host).or_default().add(Usage::of(link));
            self.host_connections += 1;
            self.changed = true;
        }
    }
    /// Whether one more of its host's connections may be let in, with slots for so many commands. The first always may.
    ///
    /// # Errors
    /// Why not.
    pub fn may_come(&self, link: &Link, slots: u16, left: Left) -> Result<(), ConnectionFault> {
        let own = link.host.and_then(|h| self.hosts.get(&h));
        let Some(own) = own.filter(|_| link.login_state == LoginState::Uncounted) else { return Ok(()) };
        let connections = self.logged_in_max().saturating_sub(self.host_connections + self.discovery.count);
        let more = Usage { slots: slots.into(), ..Usage::of(link) };
        // Its output is left, too, if it has it already.
        let left = Usage {
            connections: connections.into(),
            outputs: left.outputs + output(link),
            slots: left.slots.into(),
        };
        if own.may_have(more, left) { Ok(()) } else { Err(ConnectionFault::HostOverShare) }
    }
    /// The login was refused: the connection is unauthenticated again.
    pub fn on_refused(&mut self, link: &mut Link) {
        if link.login_state == LoginState::Uncounted && matches!(link.life, Life::Open | Life::Ending { .. })
        {
            link.login_state = LoginState::Unauthenticated;
            self.on_accepted(link);
            if link.outbox.ring().len > 0 {
                self.on_answered(link);
            }
        }
    }
    /// The connection leaves its class: it logs in as a host's, or it is over.
    pub fn leave(&mut self, link: &mut Link) {
        let class = match link.login_state {
            LoginState::Unauthenticated => &mut self.unauthenticated,
            LoginState::Discovery => {
                self.slots -= link.tags.len() as u32;
                &mut self.discovery
            }
            LoginState::Uncounted => return,
            LoginState::Host => {
                link.login_state = LoginState::Uncounted;
                let host = link.host.expect("it has a host");
                let own = self.hosts.get_mut(&host).expect("its connections are counted");
                own.take(Usage::of(link));
                if own.connections == 0 {
                    self.hosts.remove(&host);
                }
                self.host_connections -= 1;
                return;
            }
        };
        class.count -= 1;
        class.bytes -= output(link);
        link.login_state = LoginState::Uncounted;
    }
    /// Whether a class may be above its limit, so that `make_room` must look.
    pub fn changed(&self) -> bool {
        self.changed
    }
    /// `left`: bytes of memory for outputs.
    fn who_makes_room(&self, left: u64) -> Option<Line> {
        let Self { unauthenticated, discovery, .. } = self;
        // One connection must be able to log in, however little there is.
        let one = Buffers::footprint(Front::OUTBOX_BYTES_MAX);
        let too_much_discovery = discovery.count > self.discovery_max()
            || discovery.bytes > discovery.bytes_max
            || self.slots > self.slots_max;
        // One discovery session may stay, however little there is: then the limit is one.
        if too_much_discovery && discovery.count > 1 {
            return Some(Line::Discovery);
        }
        let over = unauthenticated.bytes > unauthenticated.bytes_max.min(left.max(one));
        over.then_some(Line::Answered)
    }
    fn line(&mut self, line: Line) -> (&mut VecDeque<(u32, ConnectionId)>, LoginState) {
        match line {
            Line::Unauthenticated => (&mut self.unauthenticated.line, LoginState::Unauthenticated),
            Line::Answered => (&mut self.answered, LoginState::Unauthenticated),
            Line::Discovery => (&mut self.discovery.line, LoginState::Discovery),
        }
    }
}

impl Usage {
    /// One connection.
    fn of(link: &Link) -> Self {
        let outputs = Buffers::footprint(link.ring_bytes);
        Self { connections: 1, outputs, slots: link.tags.len() as u64 }
    }
    fn add(&mut self, more: Self) {
        self.connections += more.connections;
        self.outputs += more.outputs;
        self.slots += more.slots;
    }
    fn take(&mut self, less: Self) {
        self.connections -= less.connections;
        self.outputs -= less.outputs;
        self.slots -= less.slots;
    }
    /// Whether a host with this usage may have `more` of what is `left`.
    fn may_have(&self, more: Self, left: Self) -> bool {
        let may =
            |own: u64, more: u64, left: u64, plenty: u64| left >= more + plenty || has_share(own, more, left);
        may(self.connections, more.connections, left.connections, PLENTY.connections)
            && may(self.outputs, more.outputs, left.outputs, PLENTY.outputs)
            && may(self.slots, more.slots, left.slots, PLENTY.slots)
    }
}

/// Bytes of memory that the output of a connection takes.
fn output(link: &Link) -> u64 {
    let ring = link.outbox.ring();
    if ring.len > 0 { Buffers::footprint(ring.len) } else { 0 }
}

impl<M: Memory> Core<M> {
    /// Takes memory for the output of a connection that gives its first answer. False: there is none.
    pub fn open_outbox(&mut self, link: &mut Link) -> bool {
        let Some(ring) = self.buffers.take_ring(link.ring_bytes) else { return false };
        link.outbox = Outbox::new(ring, limits::OUTBOX_PARTS);
        self.limits.on_answered(link);
        true
    }
}

impl<M: Memory> Shard<M> {
    pub(super) fn accepted(
        &mut self,
        now: Instant,
        id: ConnectionId,
        portal: PortalId,
        addresses: (SocketAddr, SocketAddr),
        fx: &mut Effects<Mail>,
    ) {
        let (local, peer) = addresses;
        if is_far(portal) {
            let front = Front::Far(Box::new(FarFront::comes(now)));
            self.add_far(id, front, portal, addresses);
            return;
        }
        let view = &self.core.view;
        let Some(portal) = view.portals.iter().find(|p| p.id == portal && p.head == view.head).copied()
        else {
            // The portal was just removed, or went to the other head: the peer may try again later.
            fx.push(Effect::Close { connection: id });
            return;
        };
        while self.core.limits.unauthenticated.count >= self.core.limits.unauthenticated_max() {
            self.put_out(now, Line::Unauthenticated, fx);
        }
        let front = Front::new(portal, local, peer, self.prng.next_u64());
        let bytes = Front::outbox_bytes(portal.protocol);
        let index = self.add_connection(id, front, portal.id, addresses, bytes);
        let link = &mut self.connections[index].link;
        link.login_state = LoginState::Unauthenticated;
        self.core.limits.on_accepted(link);
    }
    /// Puts a connection into the tables, in no class.
    pub(crate) fn add_connection(
        &mut self,
        id: ConnectionId,
        front: Front,
        portal: PortalId,
        (local, peer): (SocketAddr, SocketAddr),
        ring_bytes: u32,
    ) -> u32 {
        let link = Link {
            index: 0,
            id,
            portal,
            local,
            peer,
            host: None,
            login: Default::default(),
            life: Life::Open,
            why: None,
            outbox: Outbox::new(Default::default(), 0),
            ring_bytes,
            login_state: LoginState::Uncounted,
            spoke: false,
            staged: VecDeque::with_capacity(2),
            in_line: false,
            came_last: 0,
            visit_left: 0,
            came: 0,
            receiving: None,
            sending: false,
            touched: false,
            known: false,
            timer: None,
            tags: vec![],
            live: 0,
            unsent: 0,
            account: u32::MAX,
            stalled: false,
            deadlines: Default::default(),
            counters: Counters::default(),
        };
        let mut connection = Connection { front, link };
        let index = loop {
            match self.connections.insert(connection) {
                Ok(index) => break index,
                Err(back) => connection = back,
            }
            self.connections.reserve(64);
        };
        let link = &mut self.connections[index].link;
        link.index = index;
        self.core.turn.reserve(self.connections.len());
        let link = &mut self.connections[index].link;
        self.core.touch(link);
        if self.by_slot.len() <= id.slot() {
            self.by_slot.resize(id.slot() + 1, NO_LINK);
        }
        self.by_slot[id.slot()] = index;
        index
    }

    /// Ends unauthenticated connections and discovery sessions above their limits, and drops stale entries of the lines.
    pub(super) fn make_room(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if !core::mem::take(&mut self.core.limits.changed) {
            return;
        }
        for line in [Line::Unauthenticated, Line::Answered, Line::Discovery] {
            let limits = &mut self.core.limits;
            let max = 2 * (limits.unauthenticated.max + limits.discovery.max) as usize;
            let (line, login_state) = limits.line(line);
            if line.len() > max {
                let here = |c: &Connection, id| c.link.id == id && c.link.login_state == login_state;
                // A connection that was refused several times has as many entries.
                let mut seen = BTreeSet::new();
                line.retain(|(index, id)| {
                    self.connections.get(*index).is_some_and(|c| here(c, *id)) && seen.insert(*index)
                });
            }
        }
        while let Some(line) = self.core.limits.who_makes_room(self.core.buffers.rings_left()) {
            self.put_out(now, line, fx);
        }
    }

    /// Ends the first connection in line, which then counts no more.
    fn put_out(&mut self, now: Instant, line: Line, fx: &mut Effects<Mail>) {
        loop {
            let (queue, login_state) = self.core.limits.line(line);
            let first = queue.pop_front().expect("those who are counted are in line");
            let Some(Connection { link, .. }) = self.connections.get_mut(first.0) else { continue };
            if link.id != first.1 || link.login_state != login_state {
                continue;
            }
            if login_state == LoginState::Discovery && core::mem::take(&mut link.spoke) {
                self.core.limits.line(line).0.push_back(first);
                continue;
            }
            let why = if login_state == LoginState::Discovery {
                ConnectionFault::TooMuchDiscovery
            } else {
                ConnectionFault::TooManyUnauthenticated
            };
            self.core.limits.leave(link);
            Io { now, core: &mut self.core, link, fx }.cut_off(Close::Slow, why);
            return;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::mail::{ShardMail, StewardMail};
    use crate::shard::{Deadlines, ShardConfig};
    use base::front::Close;
    use base::memory::PlainMemory;
    use base::view::{Host, Portal, Protocol, System, View};
    use base::{Address, Answer, Ask, Event, HostId, Machine, Slice};

    const MEMORY: usize = crate::limits::SHARD_BYTES_MIN as usize;
    pub(in crate::shard) const STAGING: u64 = 1 << 30;
    pub(in crate::shard) const NOW: Instant = Instant(1_000_000_000);
    pub(in crate::shard) const NVME: PortalId = PortalId(0);
    pub(in crate::shard) const ISCSI: PortalId = PortalId(1);
    const OURS: &str = "nqn.2026-01.test:head";
    pub(in crate::shard) const NQN: &str = "nqn.2026-01.test:host";
    pub(in crate::shard) const IQN: &str = "iqn.2026-01.test:host";
    const OTHER_NQN: &str = "nqn.2026-01.test:other";
    const OTHER_IQN: &str = "iqn.2026-01.test:other";
    const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";

    pub(in crate::shard) struct World {
        pub(in crate::shard) shard: Shard<PlainMemory>,
        next: u32,
        /// Connections that the shard has closed.
        closed: Vec<ConnectionId>,
        rejected: Vec<ConnectionFault>,
        gone: Vec<Option<Close>>,
        asks: Vec<Ask>,
        sends: Vec<ConnectionId>,
        /// Nobody takes what is sent.
        deaf: bool,
    }

    impl World {
        pub(in crate::shard) fn new() -> Self {
            Self::with(MEMORY)
        }
        fn with(bytes: usize) -> Self {
            Self::with_turns(bytes, crate::TURN_PDUS)
        }
        pub(in crate::shard) fn with_turns(bytes: usize, turn_pdus: u32) -> Self {
            let mut world = Self {
                shard: Shard::new(ShardConfig {
                    id: 0,
                    shards: 1,
                    memory: PlainMemory::new(0, bytes),
                    staging: PlainMemory::new(STAGING, 1 << 20),
                    seed: 1,
                    deadlines: Deadlines::default(),
                    extents: vec![(0, bytes as u64)],
                    connections_max: 4096,
                    credits: crate::CREDITS,
                    flights: crate::FLIGHTS,
                    turn_pdus,
                }),
                next: 0,
                closed: vec![],
                rejected: vec![],
                gone: vec![],
                asks: vec![],
                sends: vec![],
                deaf: false,
            };
            let portal = |id, protocol, address: &str| Portal {
                id,
                protocol,
                address: address.parse().expect("an address"),
                head: 0,
                moves: None,
            };
            let portals = vec![
                portal(NVME, Protocol::Nvme, "10.0.0.1:4420"),
                portal(ISCSI, Protocol::Iscsi, "10.0.0.1:3260"),
            ];
            let host = |n, nqn: &str, iqn: &str| Host {
                id: HostId(n),
                nqns: vec![nqn.into()],
                iqns: vec![iqn.into()],
                ..Host::default()
            };
            let hosts = vec![host(1, NQN, IQN), host(2, OTHER_NQN, OTHER_IQN)];
            let system =
                System { nqn: OURS.into(), iqn: "iqn.2026-01.test:target".into(), ..System::default() };
            let mail = ShardMail::Configure {
                view: View { portals, hosts, system, ..View::default() }.into(),
                layout: Layout::default().into(),
            };
            world.on(Event::Mail { from: Address::Steward, mail: mail.into() });
            world
        }
        pub(in crate::shard) fn on(&mut self, event: Event<Mail>) {
            let mut fx = vec![];
            self.shard.on_event(NOW, event, &mut fx);
            self.shard.end_of_turn(NOW, &mut fx);
            let (closed, sends) = (self.closed.len(), self.sends.len());
            for effect in fx {
                match effect {
                    Effect::Close { connection } => self.closed.push(connection),
                    Effect::Send { connection } => self.sends.push(connection),
                    Effect::Mail { mail: Mail::Steward(mail), .. } => match *mail {
                        StewardMail::LoginOutcome { fate, .. } => {
                            let (finding::LoginFate::Rejected { why } | finding::LoginFate::CutOff { why }) =
                                fate
                            else {
                                panic!("a shard rejects or cuts off: {fate:?}")
                            };
                            self.rejected.push(why)
                        }
                        StewardMail::Gone { why, .. } => self.gone.push(why),
                        StewardMail::Ask { ask, .. } => self.asks.push(ask),
                        _ => {}
                    },
                    _ => {}
                }
            }
            let taken = if self.deaf { self.sends.len() } else { sends };
            for i in taken..self.sends.len() {
                let (connection, mut parts) = (self.sends[i], vec![]);
                self.shard.segments(connection, 16, &mut parts);
                let bytes = parts.iter().map(|p| p.len).sum();
                self.on(Event::Sent { connection, bytes });
            }
            for i in closed..self.closed.len() {
                self.on(Event::Closed { connection: self.closed[i] });
            }
        }
        pub(in crate::shard) fn accept(&mut self, portal: PortalId) -> ConnectionId {
            let id = ConnectionId::new(self.next, 0);
            self.next += 1;
            let local = "10.0.0.1:4420".parse().expect("an address");
            let peer = "10.0.0.9:5000".parse().expect("an address");
            self.on(Event::Accepted { connection: id, portal, local, peer });
            id
        }
        /// The Steward lets it in.
        fn let_in(&mut self, connection: ConnectionId, id: u16) {
            let mail = ShardMail::Answer { connection, answer: Answer::Admitted { id } };
            self.on(Event::Mail { from: Address::Steward, mail: mail.into() });
        }
        /// A peer comes and asks to be let in; true if the Steward is asked.
        pub(in crate::shard) fn log_in(
            &mut self,
            protocol: PortalId,
            name: &str,
            entries: u16,
        ) -> ConnectionId {
            let (peer, asks) = (self.accept(protocol), self.asks.len());
            if protocol == NVME {
                self.say(peer, &ic_req());
                let subsystem = if [NQN, OTHER_NQN].contains(&name) { OURS } else { DISCOVERY };
                self.say(peer, &connect(subsystem, name, entries));
            } else {
                self.say(peer, &login(name));
            }
            assert_eq!(self.asks.len(), asks + 1, "the Steward is asked: {:?}", self.rejected.last());
            self.let_in(peer, (self.next % 4096) as u16 + 1);
            peer
        }
        pub(in crate::shard) fn is_here(&self, connection: ConnectionId) -> bool {
            !self.closed.contains(&connection)
        }
        fn say(&mut self, connection: ConnectionId, bytes: &[u8]) {
            let data = Slice::new(STAGING, bytes.len() as u32);
            self.shard.staging_mut().bytes_mut(data).copy_from_slice(bytes);
            self.on(Event::Received { connection, data });
        }
        /// A host comes and is answered, respectively brought before the Steward.
        fn both_protocols_work(&mut self) {
            let host = self.accept(NVME);
            self.say(host, &ic_req());
            assert_eq!(self.sends.last(), Some(&host), "ICResp goes out");
            let host = self.accept(ISCSI);
            let asks = self.asks.len();
            self.say(host, &login("iqn.2026-01.test:a"));
            assert_eq!(self.asks.len(), asks + 1, "the Steward is asked: {:?}", self.rejected.last());
        }
    }

    fn ic_req() -> [u8; 128] {
        let mut pdu = [0; 128];
        pdu[2] = 128;
        pdu[4] = 128;
        pdu
    }
    /// A command capsule with Connect for an admin queue, its data behind it.
    fn connect(subsystem: &str, host: &str, entries: u16) -> Vec<u8> {
        let mut pdu = vec![0; 72 + 1024];
        let bytes = pdu.len() as u32;
        pdu[0] = 4;
        pdu[2] = 72;
        pdu[3] = 72;
        pdu[4..8].copy_from_slice(&bytes.to_le_bytes());
        let (sqe, data) = pdu[8..].split_at_mut(64);
        sqe[0] = 0x7f;
        sqe[1] = 0x40;
        sqe[2] = 1;
        sqe[4] = 1;
        sqe[32..36].copy_from_slice(&1024u32.to_le_bytes());
        sqe[39] = 1;
        sqe[44..46].copy_from_slice(&(entries - 1).to_le_bytes());
        data[0] = 1;
        data[16] = 0xff;
        data[17] = 0xff;
        data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
        data[512..512 + host.len()].copy_from_slice(host.as_bytes());
        pdu
    }
    /// A discovery login that has all it needs in its first PDU.
    fn login(name: &str) -> Vec<u8> {
        let text = format!("InitiatorName={name}\0SessionType=Discovery\0AuthMethod=None\0");
        let mut pdu = vec![0; 48];
        // Immediate Login; from the security stage to full feature at once.
        pdu[0] = 0x43;
        pdu[1] = 0x83;
        pdu[7] = text.len() as u8;
        pdu[8] = 0x40;
        pdu.extend_from_slice(text.as_bytes());
        pdu.resize(pdu.len().next_multiple_of(4), 0);
        pdu
    }

    #[test]
    fn silent_connections_cost_no_memory_and_keep_nobody_out() {
        let mut world = World::new();
        for n in 0..20_000 {
            world.accept(if n % 2 == 0 { NVME } else { ISCSI });
        }
        assert_eq!(world.shard.buffers_used(), 0);
        assert_eq!(world.closed.len(), 20_000 - 2048);
        assert!(world.rejected.iter().all(|why| *why == ConnectionFault::TooManyUnauthenticated));
        assert_eq!(world.rejected.len(), world.closed.len());
        assert_eq!(world.closed[0], ConnectionId::new(0, 0), "the oldest goes first");
        world.both_protocols_work();
    }

    #[test]
    fn who_is_ended_by_way_of_another_controller_gets_no_time_for_last_words() {
        let mut world = World { deaf: true, ..World::new() };
        let [host, other] = [(); 2].map(|()| {
            let host = world.accept(NVME);
            world.say(host, &ic_req());
            assert_eq!(world.sends.last(), Some(&host), "ICResp waits to be taken");
            host
        });
        let mut ends = |connection, why| {
            let mail = ShardMail::Drop { connection, why };
            world.on(Event::Mail { from: Address::Steward, mail: mail.into() });
            world.closed.clone()
        };
        assert_eq!(ends(host, Close::Replaced), []);
        assert_eq!(ends(host, Close::Reset), [host], "not even who had some already");
        assert_eq!(ends(other, Close::Reset), [host, other]);
    }

    #[test]
    fn those_who_say_hello_and_no_more_make_room_for_the_next() {
        let mut world = World::new();
        for _ in 0..10_000 {
            let peer = world.accept(NVME);
            world.say(peer, &ic_req());
            assert_eq!(world.sends.last(), Some(&peer));
        }
        assert!(world.shard.buffers_used() <= crate::limits::RINGS_MIN / 2);
        assert_eq!(world.shard.buffers_used(), world.shard.buffers_kept());
        world.both_protocols_work();
    }

    #[test]
    fn those_who_asked_to_be_let_in_stay() {
        let mut world = World::new();
        let host = world.accept(ISCSI);
        world.say(host, &login("iqn.2026-01.test:a"));
        for _ in 0..5000 {
            let peer = world.accept(NVME);
            world.say(peer, &ic_req());
        }
        assert!(!world.closed.contains(&host));
    }

    #[test]
    fn discovery_sessions_make_room_for_each_other_and_none_for_hosts() {
        let mut world = World::new();
        let hosts = [world.log_in(NVME, NQN, 32), world.log_in(ISCSI, IQN, 0)];
        let used = world.shard.buffers_used();
        let discovery: Vec<ConnectionId> = (0..9000)
            .map(|n| {
                world.log_in([NVME, ISCSI][n % 2], ["nqn.test:nobody", "iqn.2026-01.test:nobody"][n % 2], 32)
            })
            .collect();
        assert!(hosts.iter().all(|h| world.is_here(*h)), "hosts do not make room for discovery");
        let here: Vec<bool> = discovery.iter().map(|v| world.is_here(*v)).collect();
        let (count, first) = (here.iter().filter(|h| **h).count(), here.iter().position(|h| *h));
        assert!(count >= 2 && here[9000 - count..].iter().all(|h| *h), "the oldest go: {first:?}, {count}");
        assert!(world.shard.buffers_used() - used <= limits::RINGS_MIN / 8);
        assert!(
            world.rejected.iter().all(|why| *why == ConnectionFault::TooMuchDiscovery),
            "{:?}",
            world.rejected.last()
        );
        let hosts = [world.log_in(NVME, NQN, 32), world.log_in(ISCSI, IQN, 0)];
        world.both_protocols_work();
        assert!(hosts.iter().all(|h| world.is_here(*h)));
    }

    #[test]
    fn a_discovery_session_that_sends_stays_longer_than_silent_ones() {
        let mut world = World::new();
        let busy = world.log_in(ISCSI, "iqn.2026-01.test:busy", 0);
        for n in 0..500u32 {
            world.log_in(ISCSI, "iqn.2026-01.test:silent", 0);
            // A ping that wants no answer: NOP-Out, immediate, without a tag.
            let mut ping = vec![0; 48];
            ping[0] = 0x40;
            ping[1] = 0x80;
            ping[16..24].fill(0xff);
            ping[27] = 1;
            world.say(busy, &ping);
            assert!(world.is_here(busy), "sent away after {n} others");
        }
        for _ in 0..500 {
            world.log_in(ISCSI, "iqn.2026-01.test:silent", 0);
        }
        assert!(!world.is_here(busy), "silent at last");
    }

    #[test]
    fn deep_queues_of_discovery_sessions_leave_slots_for_hosts() {
        let mut world = World::with(256 << 20);
        for _ in 0..600 {
            world.log_in(NVME, "nqn.test:nobody", 1023);
        }
        assert!(world.rejected.contains(&ConnectionFault::TooMuchDiscovery), "they are reported");
        assert!(world.shard.core.promised <= limits::REQUESTS_MAX / 8);
        let host = world.log_in(NVME, NQN, 1023);
        assert!(world.is_here(host));
    }

    #[test]
    fn a_known_name_takes_its_share_and_leaves_a_way_in_for_other_hosts() {
        for (protocol, name, bytes) in [(NVME, NQN, MEMORY), (ISCSI, IQN, MEMORY), (NVME, NQN, 256 << 20)] {
            let mut world = World::with(bytes);
            (0..5000).for_each(|_| _ = world.log_in(protocol, name, 1023));
            let had = world.shard.core.limits.hosts[&HostId(1)];
            let refused =
                world.rejected.iter().filter(|why| **why == ConnectionFault::HostOverShare).count() as u64;
            assert_eq!(had.connections + refused, 5000, "{:?}", world.rejected.last());
            assert!(had.connections >= 4, "{had:?}");
            for (protocol, name) in [(NVME, OTHER_NQN), (ISCSI, OTHER_IQN)] {
                let refused =
                    world.rejected.iter().filter(|why| **why == ConnectionFault::HostOverShare).count();
                let host = world.log_in(protocol, name, 32);
                assert!(world.is_here(host));
                assert_eq!(
                    world.rejected.iter().filter(|why| **why == ConnectionFault::HostOverShare).count(),
                    refused
                );
            }
            world.both_protocols_work();
        }
    }

    /// 1,000 controllers with 9 I/O queues each, on one shard: what an honest host may bring when there is room.
    #[test]
    fn one_host_may_have_ten_thousand_queues_when_there_is_room() {
        let mut world = World::with(1 << 30);
        world.shard.core.limits = ConnectionLimits::new(16384, 1, world.shard.core.buffers.rings_max());
        (0..10_000).for_each(|_| _ = world.log_in(NVME, NQN, 8));
        assert_eq!(world.rejected, []);
        let deep = Usage { connections: 1, outputs: 0, slots: 128 };
        let own = Usage { connections: 9_999, outputs: 0, slots: 1_000 * 36 + 8_999 * 128 };
        let left = Usage {
            connections: world.shard.core.limits.logged_in_max().into(),
            outputs: 1 << 30,
            slots: u64::from(limits::REQUESTS_MAX) - own.slots,
        };
        assert!(own.may_have(deep, left), "of the usual depth, too");
    }

    #[test]
    fn a_connection_that_is_refused_again_and_again_is_counted_once() {
        let mut world = World::new();
        world.shard.core.limits.connections_max = 64;
        let peer = world.accept(NVME);
        world.say(peer, &ic_req());
        for _ in 0..20_000 {
            world.say(peer, &connect(OURS, NQN, 32)[..]);
            let mail = ShardMail::Answer { connection: peer, answer: Answer::Full };
            world.on(Event::Mail { from: Address::Steward, mail: mail.into() });
        }
        assert!(world.is_here(peer));
        let limits = &world.shard.core.limits;
        assert!(limits.unauthenticated.count == 1 && limits.hosts.is_empty());
        assert!(limits.unauthenticated.line.len() + limits.answered.len() < 12_000, "lines are tidied up");
        (0..4096).for_each(|_| _ = world.accept(NVME));
        assert!(!world.is_here(peer), "it makes room");
    }

    #[test]
    fn a_host_that_leaves_gives_its_share_back() {
        let mut world = World::new();
        for _ in 0..20 {
            let here: Vec<ConnectionId> = (0..4).map(|_| world.log_in(NVME, NQN, 32)).collect();
            assert!(here.iter().all(|c| world.is_here(*c)));
            here.iter().for_each(|c| world.on(Event::Broken { connection: *c }));
        }
        assert!(world.rejected.is_empty() && world.shard.core.limits.hosts.is_empty());
        assert_eq!(world.shard.buffers_used(), world.shard.buffers_kept());
    }

    #[test]
    fn discovery_sessions_leave_most_numbers_of_the_head_to_hosts() {
        for shards in [1, 2, 7, 64, 128] {
            let limits = ConnectionLimits::new(16384, shards, 1 << 30);
            let all = u32::from(shards) * limits.discovery.max;
            assert!(all <= u32::from(CONTROLLERS_MAX) / 4, "{shards} shards: {all}");
        }
    }

    #[test]
    fn a_protocol_error_before_login_is_reported_with_its_reason() {
        let mut w = World::new();
        for portal in [NVME, ISCSI] {
            let peer = w.accept(portal);
            w.say(peer, &[0x77; 4096]);
            assert!(!w.is_here(peer));
            assert!(matches!(w.gone.pop(), Some(Some(Close::Protocol(_)))), "{:?}", w.rejected);
        }
        // Who only goes is no news.
        let peer = w.accept(NVME);
        w.on(Event::Closed { connection: peer });
        assert!(w.gone.is_empty());
    }
}
