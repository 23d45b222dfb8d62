//! Connections that have not said who they are: how many there may be, and what they may cost.
//!
//! A connection takes memory for its output with its first answer, not before: who connects and is silent costs a
//! table entry. Half of the world's places for connections, and half of the memory for outputs, are for those
//! who got as far as asking to be let in (NVMe-oF Connect, the end of an iSCSI login). When strangers have
//! the other half, the one that has been there the longest makes room for the next: who logs in takes
//! milliseconds, so hosts get in while others only come. (Each took its output at accept. Four thousand silent
//! connections kept all hosts out of a head with little memory, until their deadline.)

use super::{Connection, Core, NO_LINK, Shard};
use crate::buffers::Buffers;
use crate::limits;
use crate::link::{Front, Io, Life, Link};
use crate::mail::{Fate, Mail};
use crate::report::Counters;
use base::front::Close;
use base::{ConnectionId, Effect, Effects, Instant, Memory, Outbox, PortalId};
use core::net::SocketAddr;
use std::collections::VecDeque;

/// Places for connections that strangers may have at least.
const STRANGERS_MIN: u32 = 32;

/// Who is told to the operator when a stranger makes room.
const CROWDED: &str = "too many connections that do not log in";

/// The strangers of one shard, the oldest first. Those who have left are found out when their turn comes.
pub(crate) struct Strangers {
    max: u32,
    count: u32,
    silent: VecDeque<(u32, ConnectionId)>,
    /// Those who were answered, and the bytes of their outputs.
    answered: VecDeque<(u32, ConnectionId)>,
    bytes: u64,
    bytes_max: u64,
}

impl Strangers {
    pub fn new(connections_max: u32, outputs_bytes: u64) -> Self {
        Self {
            max: (connections_max / 2).max(STRANGERS_MIN),
            count: 0,
            silent: VecDeque::new(),
            answered: VecDeque::new(),
            bytes: 0,
            bytes_max: outputs_bytes / 2,
        }
    }
    fn on_accepted(&mut self, link: &Link) {
        self.count += 1;
        self.silent.push_back((link.index, link.id));
    }
    fn on_answered(&mut self, link: &Link) {
        if link.stranger {
            self.bytes += Buffers::footprint(link.outbox.ring().len);
            self.answered.push_back((link.index, link.id));
        }
    }
    /// It has asked to be let in, or ends.
    pub fn leave(&mut self, link: &mut Link) {
        if core::mem::take(&mut link.stranger) {
            self.count -= 1;
            let ring = link.outbox.ring();
            self.bytes -= if ring.len > 0 { Buffers::footprint(ring.len) } else { 0 };
        }
    }
    /// The answered ones have more memory than they may.
    pub fn crowded(&self) -> bool {
        self.bytes > self.bytes_max
    }
}

impl<M: Memory> Core<M> {
    /// Memory for the output of a connection that says its first words. False: there is none.
    pub fn open_outbox(&mut self, link: &mut Link) -> bool {
        let Some(ring) = self.buffers.take_ring(link.ring_bytes) else { return false };
        link.outbox = Outbox::new(ring, limits::OUTBOX_PARTS);
        self.strangers.on_answered(link);
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
        let Some(portal) = self.core.view.portals.iter().find(|p| p.id == portal).copied() else {
            // The portal was just removed: the peer may try again later.
            fx.push(Effect::Close { connection: id });
            return;
        };
        while self.core.strangers.count >= self.core.strangers.max {
            self.evict(now, |s| &mut s.silent, fx);
        }
        let front = Front::new(portal, local, peer, self.prng.next_u64());
        let link = Link {
            index: 0,
            id,
            portal: portal.id,
            peer,
            host: None,
            life: Life::Open,
            why: None,
            outbox: Outbox::new(Default::default(), 0),
            ring_bytes: Front::outbox_bytes(portal.protocol),
            stranger: true,
            staged: VecDeque::with_capacity(2),
            receiving: None,
            sending: false,
            touched: false,
            known: false,
            timer: None,
            tags: vec![],
            live: 0,
            account: u32::MAX,
            stalled: false,
            dues: Default::default(),
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
        self.core.strangers.on_accepted(link);
        self.core.touch(link);
        if self.by_slot.len() <= id.slot() {
            self.by_slot.resize(id.slot() + 1, NO_LINK);
        }
        self.by_slot[id.slot()] = index;
    }

    /// Strangers make room for others' answers; those who have left, leave their lines.
    pub(super) fn make_room(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        let Strangers { max, silent, answered, .. } = &mut self.core.strangers;
        for line in [silent, answered] {
            if line.len() > 2 * *max as usize {
                let here = |c: &Connection, id| c.link.id == id && c.link.stranger;
                line.retain(|(index, id)| self.connections.get(*index).is_some_and(|c| here(c, *id)));
            }
        }
        while self.core.strangers.crowded() {
            self.evict(now, |s| &mut s.answered, fx);
        }
    }

    /// The oldest of these strangers is sent away.
    fn evict(
        &mut self,
        now: Instant,
        line: impl Fn(&mut Strangers) -> &mut VecDeque<(u32, ConnectionId)>,
        fx: &mut Effects<Mail>,
    ) {
        loop {
            let (index, id) =
                line(&mut self.core.strangers).pop_front().expect("those who are counted are in line");
            let Some(Connection { link, .. }) = self.connections.get_mut(index) else { continue };
            if link.id == id && link.stranger {
                let mut io = Io { now, core: &mut self.core, link, fx };
                io.send_away(Fate::CutOff, Close::Slow, CROWDED);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::shard::{Deadlines, ShardConfig};
    use base::memory::PlainMemory;
    use base::view::{Portal, Protocol, View};
    use base::{Address, Ask, Event, Machine, Slice};

    const MEMORY: usize = crate::limits::SHARD_BYTES_MIN as usize;
    const STAGING: u64 = 1 << 30;
    const NOW: Instant = Instant(1_000_000_000);
    const NVME: PortalId = PortalId(0);
    const ISCSI: PortalId = PortalId(1);

    struct World {
        shard: Shard<PlainMemory>,
        next: u32,
        /// Connections that the shard has closed.
        closed: Vec<ConnectionId>,
        turned: Vec<&'static str>,
        asks: Vec<Ask>,
        sends: Vec<ConnectionId>,
    }

    impl World {
        fn new() -> Self {
            let mut world = Self {
                shard: Shard::new(ShardConfig {
                    id: 0,
                    shards: 1,
                    memory: PlainMemory::new(0, MEMORY),
                    staging: PlainMemory::new(STAGING, 4096),
                    seed: 1,
                    deadlines: Deadlines::default(),
                    extents: vec![(0, MEMORY as u64)],
                    connections_max: 4096,
                }),
                next: 0,
                closed: vec![],
                turned: vec![],
                asks: vec![],
                sends: vec![],
            };
            let portal = |id, protocol, address: &str| Portal {
                id,
                protocol,
                address: address.parse().expect("an address"),
            };
            let portals = vec![
                portal(NVME, Protocol::Nvme, "10.0.0.1:4420"),
                portal(ISCSI, Protocol::Iscsi, "10.0.0.1:3260"),
            ];
            let mail = Mail::Configure {
                view: View { portals, ..View::default() }.into(),
                layout: Layout::default().into(),
            };
            world.on(Event::Mail { from: Address::Steward, mail });
            world
        }
        fn on(&mut self, event: Event<Mail>) {
            let mut fx = vec![];
            self.shard.on_event(NOW, event, &mut fx);
            self.shard.end_of_turn(NOW, &mut fx);
            let (closed, sends) = (self.closed.len(), self.sends.len());
            for effect in fx {
                match effect {
                    Effect::Close { connection } => self.closed.push(connection),
                    Effect::Send { connection } => self.sends.push(connection),
                    Effect::Mail { mail: Mail::Turned { why, .. }, .. } => self.turned.push(why),
                    Effect::Mail { mail: Mail::Ask { ask, .. }, .. } => self.asks.push(ask),
                    _ => {}
                }
            }
            for i in sends..self.sends.len() {
                let (connection, mut parts) = (self.sends[i], vec![]);
                self.shard.segments(connection, 16, &mut parts);
                let bytes = parts.iter().map(|p| p.len).sum();
                self.on(Event::Sent { connection, bytes });
            }
            for i in closed..self.closed.len() {
                self.on(Event::Closed { connection: self.closed[i] });
            }
        }
        fn accept(&mut self, portal: PortalId) -> ConnectionId {
            let id = ConnectionId::new(self.next, 0);
            self.next += 1;
            let local = "10.0.0.1:4420".parse().expect("an address");
            let peer = "10.0.0.9:5000".parse().expect("an address");
            self.on(Event::Accepted { connection: id, portal, local, peer });
            id
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
            self.say(host, &login());
            assert_eq!(self.asks.len(), asks + 1, "the Steward is asked: {:?}", self.turned.last());
        }
    }

    fn ic_req() -> [u8; 128] {
        let mut pdu = [0; 128];
        (pdu[2], pdu[4]) = (128, 128);
        pdu
    }
    /// A discovery login that has all it needs in its first PDU.
    fn login() -> Vec<u8> {
        let text = b"InitiatorName=iqn.2026-01.test:a\0SessionType=Discovery\0AuthMethod=None\0";
        let mut pdu = vec![0; 48];
        // Immediate Login; from the security stage to full feature at once.
        (pdu[0], pdu[1], pdu[7], pdu[8]) = (0x43, 0x83, text.len() as u8, 0x40);
        pdu.extend_from_slice(text);
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
        assert!(world.turned.iter().all(|why| *why == CROWDED));
        assert_eq!(world.turned.len(), world.closed.len());
        assert_eq!(world.closed[0], ConnectionId::new(0, 0), "the oldest goes first");
        world.both_protocols_work();
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
        world.say(host, &login());
        for _ in 0..5000 {
            let peer = world.accept(NVME);
            world.say(peer, &ic_req());
        }
        assert!(!world.closed.contains(&host));
    }
}
