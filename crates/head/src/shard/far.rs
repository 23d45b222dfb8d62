//! Connections with far shards: made, used, lost (`path::far`).

use super::Shard;
use crate::mail::{Mail, StewardMail, to_steward};
use crate::path::far::wire::{HEADER_BYTES, Message};
use crate::path::far::{
    DIAL_AGAIN, FarFront, FarLink, FarSetup, FarSide, Out, SILENT, Sent, address_of, far_portal,
};
use crate::path::link::{Connection, Front, Life};
use base::{ConnectionId, Effect, Effects, Instant, Memory, NetError, PortalId};
use core::net::SocketAddr;
use std::sync::Arc;

impl<M: Memory> Shard<M> {
    /// A connection with a far shard, or with a peer that claims to be one.
    pub(super) fn add_far(
        &mut self,
        id: ConnectionId,
        front: Front,
        portal: PortalId,
        addresses: (SocketAddr, SocketAddr),
    ) -> u32 {
        let index = self.add_connection(id, front, portal, addresses, FarFront::OUTBOX_BYTES);
        self.far_connections.push(index);
        self.core.meets_far = true;
        index
    }
    /// The other head's shards take part from now on.
    pub(super) fn set_far(&mut self, now: Instant, setup: Arc<FarSetup>, fx: &mut Effects<Mail>) {
        if self.core.far_setup.as_ref() != Some(&setup) {
            self.change_far(now, Some(setup), fx);
        }
    }
    /// They do not any more.
    pub(super) fn part_from_far(&mut self, now: Instant, number: u32, fx: &mut Effects<Mail>) {
        self.parting = number;
        self.change_far(now, None, fx);
    }
    fn change_far(&mut self, now: Instant, next: Option<Arc<FarSetup>>, fx: &mut Effects<Mail>) {
        self.core.meets_far = true;
        self.far_next = next;
        self.leave_far(now, fx);
        self.begin_if_alone(now, fx);
    }
    fn begin_far(&mut self, now: Instant, setup: Arc<FarSetup>, fx: &mut Effects<Mail>) {
        let (shards, far) = (self.core.shards, setup.shards);
        self.met = false;
        for _ in 0..far {
            match FarLink::new(&mut self.core.buffers, shards, far) {
                Some(mut link) => {
                    link.dial_at = matches!(setup.side, FarSide::Dials(_)).then_some(now);
                    self.core.far.push(link);
                }
                None => {
                    // What there is for some of them is of no use.
                    let few: Vec<FarLink> = self.core.far.drain(..).collect();
                    self.core.far_left.extend(few);
                    fx.push(to_steward(StewardMail::FarSilent));
                    return;
                }
            }
        }
        // What there is for all of them comes first.
        for link in &mut self.core.far {
            link.set_spare_aside(&mut self.core.buffers);
        }
        if let FarSide::Listens(addresses) = &setup.side {
            for (n, first) in addresses.iter().enumerate() {
                let portal = far_portal(self.core.id, n);
                fx.push(Effect::Listen { portal, address: address_of(*first, self.core.id) });
            }
        }
        self.core.far_setup = Some(setup);
    }
    fn leave_far(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        let Some(setup) = self.core.far_setup.take() else { return };
        if let FarSide::Listens(addresses) = &setup.side {
            for n in 0..addresses.len() {
                fx.push(Effect::Unlisten { portal: far_portal(self.core.id, n) });
            }
        }
        for index in self.far_connections.clone() {
            let id = self.connections[index].link.id;
            self.broken(now, id, fx);
        }
    }
    /// A connection of our own is up, or not.
    pub(super) fn connected(
        &mut self,
        now: Instant,
        id: ConnectionId,
        result: Result<(), NetError>,
        fx: &mut Effects<Mail>,
    ) {
        let Some(index) = self.index_of(id) else { return };
        match result {
            Ok(()) => {
                self.with(now, index, fx, |front, io| {
                    if let Front::Far(far) = front {
                        far.greet(io);
                    }
                });
            }
            // Nothing of it is left in the world.
            Err(_) => self.closed(now, id, fx),
        }
    }
    /// Goes to far shards that there is no connection with, and ends what waits for others in vain.
    pub(super) fn dial(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        for far in 0..self.core.far.len() {
            // They are answered.
            if self.core.far[far].waits_until().is_some_and(|at| at <= now) {
                self.core.far_has_credit(far as u16);
            }
        }
        let Some(setup) = self.core.far_setup.clone() else { return };
        for far in 0..self.core.far.len() {
            let link = &mut self.core.far[far];
            if link.down_since.is_some_and(|since| now >= since + SILENT) {
                link.down_since = None;
                fx.push(to_steward(StewardMail::FarSilent));
            }
            let due = link.dial_at.is_some_and(|at| at <= now) && link.open.is_none() && link.comes.is_none();
            let FarSide::Dials(addresses) = &setup.side else { continue };
            if !due || link.stale > 0 {
                continue;
            }
            link.dial_at = None;
            let first = addresses[link.network % addresses.len()];
            link.network += 1;
            self.dials += 1;
            let id = ConnectionId::new(self.first_slot + far as u32, self.dials);
            let peer = address_of(first, far as u16);
            let front = Front::Far(Box::new(FarFront::goes(now, far as u16)));
            let nowhere = SocketAddr::new(peer.ip(), 0);
            let index = self.add_far(id, front, far_portal(self.core.id, 0), (nowhere, peer));
            self.core.far[far].comes = Some(index);
            fx.push(Effect::Connect { connection: id, peer });
        }
    }
    /// When `dial` has something to do.
    pub(super) fn next_dial(&self) -> Option<Instant> {
        let of = |link: &FarLink| {
            let dial =
                link.dial_at.filter(|_| link.stale == 0 && link.open.is_none() && link.comes.is_none());
            let silent = link.down_since.map(|since| since + SILENT);
            [dial, silent, link.waits_until()].into_iter().flatten().min()
        };
        self.core.far.iter().filter_map(of).min()
    }
    /// Puts what is to be said to far shards into their connections' outboxes.
    pub(super) fn speak_far(&mut self) {
        for far in 0..self.core.far.len() {
            let core = &mut self.core;
            let Some(index) = core.far[far].open else { continue };
            let Some(Connection { link, .. }) = self.connections.get_mut(index) else { continue };
            if core.far[far].out.is_empty() || link.life != Life::Open {
                continue;
            }
            core.touch(link);
            while link.outbox.room() as usize >= HEADER_BYTES
                && let Some(out) = core.far[far].out.pop_front()
            {
                match out {
                    Out::Run(flight) => {
                        let Some(sent) = core.far[far].sent(flight).copied() else { continue };
                        let Sent { array, map, command, whose, .. } = sent;
                        let message = Message::Run { flight, array, map, command, whose };
                        link.outbox.header(&mut core.memory, &message.encode());
                        if message.data() > 0 {
                            link.outbox.payload(command.data);
                        }
                    }
                    Out::Ran(message, data) if data.len > 0 => {
                        let mark = core.far[far].sends(&message, data);
                        link.outbox.framed(&mut core.memory, &message.encode(), data, &[], mark);
                    }
                    Out::Ran(message, _) | Out::Other(message) => {
                        link.outbox.header(&mut core.memory, &message.encode());
                    }
                }
            }
        }
    }
    /// The end of a turn of a shard that meets those of another head.
    #[cold]
    #[inline(never)]
    pub(super) fn turn_with_far(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        // What ended may have made room for what far shards have sent.
        self.feed_far(now, fx);
        self.settle(now, fx);
        if !self.core.far.is_empty() {
            self.core.far.iter_mut().for_each(|link| link.note_spent(now));
            self.speak_far();
            self.report_met(fx);
        }
        if self.core.far_is_left() {
            fx.push(to_steward(StewardMail::Parted { number: self.parted }));
        }
        let core = &mut self.core;
        core.meets_far = !core.far.is_empty()
            || core.far_setup.is_some()
            || core.far_parts
            || !core.far_left.is_empty()
            || !self.far_connections.is_empty();
    }
    /// The world has taken bytes of a connection. False: it is a host's.
    #[cold]
    #[inline(never)]
    pub(super) fn has_sent_far(&mut self, index: u32, bytes: u32) -> bool {
        let Connection { front: Front::Far(front), link } = &mut self.connections[index] else {
            return false;
        };
        link.sending = false;
        self.core.touch(link);
        let mut marks = vec![];
        link.outbox.on_sent(bytes, |mark| marks.push(mark));
        let far = front.far();
        for mark in marks {
            self.far_sent(far.expect("it was answered"), mark);
        }
        true
    }
    /// An answer was sent: its memory is free, unless a drive keeps it.
    fn far_sent(&mut self, far: u16, mark: u32) {
        if let Some(link) = self.core.far.get_mut(usize::from(far)) {
            link.has_sent(mark);
        }
    }
    /// The world has let go of a connection with a far shard.
    pub(super) fn far_closed(&mut self, now: Instant, index: u32, fx: &mut Effects<Mail>) {
        self.far_connections.retain(|i| *i != index);
        let Front::Far(front) = &mut self.connections[index].front else { return };
        let (incoming, far) = (front.ends(), front.far());
        let Some(far) = far.filter(|far| usize::from(*far) < self.core.far.len()) else {
            return self.begin_if_alone(now, fx);
        };
        let dials = self.core.far_setup.as_ref().is_some_and(|s| matches!(s.side, FarSide::Dials(_)));
        let link = &mut self.core.far[usize::from(far)];
        if link.comes == Some(index) {
            link.comes = None;
            link.dial_at = dials.then_some(now + DIAL_AGAIN);
        }
        if link.open == Some(index) {
            link.open = None;
            link.down_since = Some(now);
            link.dial_at = dials.then_some(now);
            self.core.far_ends(far, incoming);
        }
        self.begin_if_alone(now, fx);
    }
    /// The other head is gone, and so are all connections with it: the next one may come.
    fn begin_if_alone(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if self.core.far_setup.is_some() || !self.far_connections.is_empty() {
            return;
        }
        let all: Vec<FarLink> = self.core.far.drain(..).collect();
        self.core.far_pairing += 1;
        self.core.far_parts = true;
        self.parted = self.parting;
        if !all.is_empty() {
            self.core.forsake_arrays();
        }
        all.into_iter().for_each(|link| self.core.far_is_gone(link));
        if let Some(setup) = self.far_next.take() {
            self.begin_far(now, setup, fx);
        }
    }
    /// Reports to the Steward, once, that there is a connection with every far shard.
    pub(super) fn report_met(&mut self, fx: &mut Effects<Mail>) {
        let Some(meeting) = self.core.far_setup.as_ref().map(|setup| setup.meeting) else { return };
        if !self.met && self.core.far.iter().all(|link| link.open.is_some()) {
            self.met = true;
            fx.push(to_steward(StewardMail::FarMet { meeting }));
        }
    }
    /// Looks at what far shards have sent that had to wait.
    fn feed_far(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        for at in 0..self.far_connections.len() {
            let index = self.far_connections[at];
            if let Front::Far(far) = &self.connections[index].front
                && far.is_blocked()
            {
                self.with(now, index, fx, |front, io| {
                    if let Front::Far(far) = front {
                        far.go_on(now, io);
                    }
                });
            }
        }
    }
}
