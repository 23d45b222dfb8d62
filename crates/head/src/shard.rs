//! Shard: one core's connections, requests, drive operations, buffers and timers.
//!
//! A turn: every event is handled at once and leaves work in queues (`turns` to start, `landed` flights,
//! `told` requests whose connection must hear); `end_of_turn` empties the queues, then sends what each
//! touched connection has to say, in one send each.
//!
//! ```text
//! bytes ─▶ Connection ─submit─▶ turns ─▶ flow ─▶ array ─▶ Op ─▶ drive
//!   ▲          │                          │ (region of another shard: mail Run)
//!   └─ outbox ◀┴──on_done── told ◀─ landed ◀──────┘
//! ```

mod accept;
mod dues;

use self::accept::Callers;
pub(crate) use self::dues::Dues;
use crate::arena::Arena;
use crate::buffers::{Buffers, PAGE};
use crate::direct::Done;
use crate::gates::Gates;
use crate::layout::{ArrayId, Layout, PoolLayout, VolumeLayout};
use crate::lending::{Lending, Purpose};
use crate::limits;
use crate::link::{Connection, Front, Io, Life, Link};
use crate::mail::Mail;
use crate::report::{ConnectionReport, Counters, DriveReport, Ended, ShardReport};
use crate::request::{Flight, Op, Parked, Phase, Request};
use array::{Array, ArrayConfig, Geometry, Note, Ticket};
use base::front::Close;
use base::view::View;
use base::{
    Address, Bug, ConnectionId, Dma, Duration, Effect, Effects, Event, Instant, Machine, Memory, PortalId,
    Prng, Slice, Slots, Status, Want, planted,
};
use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

pub(crate) const NO_LINK: u32 = u32::MAX;
const NEVER: Instant = Instant(u64::MAX);
/// How long until a portal that could not be opened is tried again.
const RELISTEN: Duration = Duration::from_secs(5);

/// How long drives may take before their operation is given up.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// A read: another leg must still have time (promise 7: 2 s in all).
    pub read: Duration,
    /// Anything else: the loss must still be put on record (promise 7: 5 s in all).
    pub write: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { read: Duration::from_millis(900), write: Duration::from_millis(3500) }
    }
}

/// What a shard is made of.
pub struct ShardConfig<M> {
    /// Which one.
    pub id: u16,
    /// Of how many.
    pub shards: u16,
    /// Its memory for data.
    pub memory: M,
    /// A look at the staging buffers of its world.
    pub staging: M,
    /// For challenges.
    pub seed: u64,
    /// How long drives may take.
    pub deadlines: Deadlines,
    /// Start and length of every shard's memory, by shard.
    pub extents: Vec<(u64, u64)>,
    /// Connections that its world has room for.
    pub connections_max: u32,
}

/// An array as this shard knows it.
pub(crate) struct ArrayState {
    pub array: Array,
    /// Redundant arrays: commands are cut at the ends of regions.
    pub regions: Option<Geometry>,
    pub scratch: Slice,
    /// Commands under way here, for this shard and its peers.
    pub busy: u32,
    pub quiescing: bool,
    /// Epoch of the membership that it knows.
    pub epoch: u64,
}

/// Everything of a shard but its connections.
pub(crate) struct Core<M: Memory> {
    pub id: u16,
    pub shards: u16,
    pub memory: M,
    pub buffers: Arena,
    pub callers: Callers,
    pub deadlines: Deadlines,
    pub extents: Vec<(u64, u64)>,
    pub view: Arc<View>,
    pub layout: Arc<Layout>,
    /// Volumes by id: sparse, small.
    pub volumes: Vec<Option<VolumeLayout>>,
    pub pools: Vec<Option<PoolLayout>>,
    pub volume_counters: Vec<Counters>,
    /// Boxed, so that one is taken out of its place while it works: its effects need the rest.
    pub arrays: Vec<Option<Box<ArrayState>>>,
    /// Scratch of mirrors that will come.
    pub scratch: Vec<Slice>,
    pub requests: Slots<Request>,
    pub promised: u32,
    pub flights: Slots<Flight>,
    pub ops: Slots<Op>,
    pub drives: Vec<DriveReport>,
    /// Who has what of the memory for data, and who waits for some.
    pub lending: Lending,
    /// Connections whose bytes lie in staging buffers, and cannot be taken yet.
    pub stalled: u32,
    /// Commands of capped volumes that wait for their rate.
    pub gates: Gates,
    pub turns: VecDeque<u32>,
    pub landed: VecDeque<(Ticket, Status)>,
    pub told: VecDeque<u32>,
    /// Commands without a connection that have ended.
    pub direct: VecDeque<Done>,
    pub parked: VecDeque<Parked>,
    pub notes: VecDeque<(ArrayId, Note)>,
    pub touched: Vec<u32>,
    pub ending: Vec<u32>,
    pub op_scan: Option<Instant>,
    /// Room for marks of one `Sent`, kept so that nothing is allocated.
    pub marks: Vec<u32>,
}

impl<M: Memory> Core<M> {
    /// Remembers to look at the link in the end of the turn.
    pub fn touch(&mut self, link: &mut Link) {
        if !link.touched {
            link.touched = true;
            self.touched.push(link.index);
        }
    }
    /// Promises slots for a connection of this depth.
    pub fn admit(&mut self, commands: u32) -> bool {
        if self.promised + commands > limits::REQUESTS_MAX {
            return false;
        }
        self.promised += commands;
        // Twice: an answered command keeps its slot until the kernel has taken the answer, and the
        // host may send the next one meanwhile.
        let need = 2 * self.promised;
        if need > self.requests.capacity() {
            let more = (need - self.requests.capacity()).max(256);
            self.requests.reserve(more);
            self.lending.reserve(self.requests.capacity());
        }
        true
    }
    /// A buffer for a request now, or a place in line.
    pub fn take_or_wait(&mut self, account: u32, index: u32, len: u32, purpose: Purpose) -> Option<Slice> {
        // Nobody overtakes those of his host who wait, or the one whose turn it is.
        let data = if self.may_take(account, len, purpose) { self.take(len, purpose) } else { None };
        match data {
            Some(data) => self.lend(account, index, data, purpose),
            None => {
                self.requests[index].purpose = purpose;
                self.lending.wait(account, purpose, index);
            }
        }
        data
    }
    /// Whether a host may have so much more, without passing anybody who waits.
    #[inline]
    fn may_take(&self, account: u32, len: u32, purpose: Purpose) -> bool {
        self.lending.passes(account, purpose)
            && (self.buffers.is_roomy()
                || self.lending.may(account, purpose, len, self.buffers.left(purpose)))
    }
    /// A buffer that nobody waits for.
    pub fn take_spare(&mut self, account: u32, len: u32) -> Option<Slice> {
        if self.may_take(account, len, Purpose::Asked) { self.buffers.take_spare(len) } else { None }
    }
    fn take(&mut self, len: u32, purpose: Purpose) -> Option<Slice> {
        match purpose {
            Purpose::Asked => self.buffers.take_asked(len),
            Purpose::Unasked => self.buffers.take_inline(len),
        }
    }
    /// The request has this buffer.
    #[inline]
    pub fn lend(&mut self, account: u32, index: u32, data: Slice, purpose: Purpose) {
        let request = &mut self.requests[index];
        (request.buffer, request.purpose, request.phase) = (Some(data), purpose, Phase::Connection);
        self.lending.lend(account, purpose, data.len);
    }
    /// The next one for whom there is memory now: hosts take turns, and who has his share is passed.
    fn next_granted(&mut self, purpose: Purpose) -> Option<(u32, Slice)> {
        let last = self.lending.last(purpose);
        while let Some((account, index)) = self.lending.first(purpose) {
            let Phase::Buffer(len) = self.requests[index].phase else {
                panic!("only those who wait are in line")
            };
            if self.lending.may(account, purpose, len, self.buffers.left(purpose)) {
                let data = self.take(len, purpose);
                self.lending.press(purpose, data.is_none());
                let data = data?;
                self.lending.leave(account, purpose, index);
                if self.lending.first(purpose).is_some_and(|(first, _)| first == account) {
                    self.lending.next_turn(account, purpose);
                }
                self.lend(account, index, data, purpose);
                return Some((index, data));
            }
            self.lending.next_turn(account, purpose);
            if account == last {
                break;
            }
        }
        self.lending.press(purpose, false);
        None
    }
    /// A request leaves its line.
    pub fn wait_no_more(&mut self, index: u32) {
        let Request { account, purpose, .. } = self.requests[index];
        self.lending.leave(account, purpose, index);
    }
    /// Ends a request that nobody needs any more.
    pub fn retire(&mut self, link: &mut Link, index: u32) {
        let Request { buffer, second, account, purpose, .. } = self.requests[index];
        self.requests.free(index);
        link.live -= 1;
        if let Some(data) = buffer {
            self.lending.back(account, purpose, data.len);
            self.buffers.release(data);
        }
        if let Some(data) = second {
            self.buffers.release(data);
        }
    }
}

/// One core's share of the data path.
pub struct Shard<M: Memory> {
    pub(crate) core: Core<M>,
    staging: M,
    connections: Slots<Connection>,
    /// World's slot to index of connection.
    by_slot: Vec<u32>,
    timers: BinaryHeap<Reverse<(Instant, u32, ConnectionId)>>,
    listening: Vec<PortalId>,
    /// When to look who owes what, while somebody waits.
    look: Option<Instant>,
    looks: u32,
    /// When portals that could not be opened are tried again.
    relisten: Option<Instant>,
    prng: Prng,
    protocol_errors: u64,
}

impl<M: Memory> Shard<M> {
    /// A shard without configuration: it waits for `Mail::Configure`.
    pub fn new(config: ShardConfig<M>) -> Self {
        let (start, bytes) = config.memory.extent();
        let first = start.next_multiple_of(PAGE);
        let buffers = Arena::new(first, (start + bytes - first) / PAGE * PAGE);
        let mut flights = Slots::default();
        flights.reserve(limits::FLIGHTS_MAX);
        Self {
            core: Core {
                id: config.id,
                shards: config.shards,
                memory: config.memory,
                callers: Callers::new(config.connections_max, config.shards, buffers.rings_max()),
                buffers,
                deadlines: config.deadlines,
                extents: config.extents,
                view: Arc::default(),
                layout: Arc::default(),
                volumes: vec![],
                pools: vec![],
                volume_counters: vec![],
                arrays: vec![],
                scratch: vec![],
                requests: Slots::default(),
                promised: 0,
                flights,
                ops: Slots::with_capacity(limits::FLIGHTS_MAX),
                drives: vec![],
                lending: Lending::new(),
                stalled: 0,
                gates: Gates::default(),
                turns: VecDeque::with_capacity(1024),
                landed: VecDeque::with_capacity(1024),
                told: VecDeque::with_capacity(1024),
                direct: VecDeque::new(),
                parked: VecDeque::with_capacity(1024),
                notes: VecDeque::new(),
                touched: Vec::with_capacity(1024),
                ending: Vec::with_capacity(64),
                op_scan: None,
                marks: Vec::with_capacity(1024),
            },
            staging: config.staging,
            connections: Slots::with_capacity(64),
            by_slot: vec![],
            timers: BinaryHeap::with_capacity(1024),
            listening: vec![],
            look: None,
            looks: 0,
            relisten: None,
            prng: Prng::new(config.seed),
            protocol_errors: 0,
        }
    }

    /// Nothing is under way: no request, flight, drive operation or buffer but those of connections
    /// and arrays themselves. For tests after quiescence.
    pub fn idle(&self) -> bool {
        self.core.requests.is_empty() && self.core.flights.is_empty() && self.core.ops.is_empty()
    }
    /// Bytes of buffers in use.
    pub fn buffers_used(&self) -> u64 {
        self.core.buffers.used()
    }
    /// Bytes of buffers that connections and arrays keep for themselves: all that is in use when idle.
    pub fn buffers_kept(&self) -> u64 {
        let open = self.connections.iter().filter(|(_, c)| c.link.life != Life::Closed);
        let rings = open.map(|(_, c)| c.link.outbox.ring()).filter(|s| s.len > 0);
        let scratch = self.core.arrays.iter().flatten().map(|a| a.scratch).filter(|s| s.len > 0);
        rings.chain(scratch).chain(self.core.scratch.iter().copied()).map(|s| Buffers::footprint(s.len)).sum()
    }
    /// For tests that are its connections.
    #[cfg(test)]
    pub(crate) fn core_mut(&mut self) -> &mut Core<M> {
        &mut self.core
    }
    /// Connections that exist.
    pub fn connections(&self) -> u32 {
        self.connections.len()
    }
    /// Access to the array machines, for checkers.
    pub fn arrays(&self) -> impl Iterator<Item = (ArrayId, &Array)> {
        let arrays = self.core.arrays.iter().enumerate();
        arrays.filter_map(|(i, a)| a.as_ref().map(|a| (ArrayId(i as u16), &a.array)))
    }
    /// The staging memory, for worlds that move bytes themselves.
    pub fn staging_mut(&mut self) -> &mut M {
        &mut self.staging
    }

    fn index_of(&self, id: ConnectionId) -> Option<u32> {
        let index = *self.by_slot.get(id.slot())?;
        let connection = self.connections.get(index)?;
        (connection.link.id == id).then_some(index)
    }

    /// Gives one input to a connection's protocol machine, unless the connection is ending.
    fn with(
        &mut self,
        now: Instant,
        index: u32,
        fx: &mut Effects<Mail>,
        input: impl FnOnce(&mut Front, &mut Io<'_, M>),
    ) {
        let Some(Connection { front, link }) = self.connections.get_mut(index) else { return };
        if link.life == Life::Open {
            self.core.touch(link);
            input(front, &mut Io { now, core: &mut self.core, link, fx });
        }
    }

    fn received(&mut self, now: Instant, id: ConnectionId, data: Slice, fx: &mut Effects<Mail>) {
        let index = self.index_of(id);
        let Some(Connection { front, link }) = index.and_then(|i| self.connections.get_mut(i)) else {
            panic!("bytes arrived for a connection that was closed");
        };
        link.came += u64::from(data.len);
        match link.receiving.take().expect("bytes arrive only when asked for") {
            None if link.life == Life::Open => {
                link.heard = true;
                link.staged.push_back((data, 0));
            }
            None => fx.push(Effect::Recycle { data }),
            Some(_) if link.life == Life::Open => {
                front.on_direct(now, data.len, &mut Io { now, core: &mut self.core, link, fx });
            }
            Some(_) => {}
        }
        self.core.touch(link);
    }

    /// Offers staged bytes to the protocol and asks for more when it took all.
    fn pump(&mut self, now: Instant, index: u32, fx: &mut Effects<Mail>) {
        let Some(Connection { front, link }) = self.connections.get_mut(index) else { return };
        while link.life == Life::Open
            && let Some((data, taken)) = link.staged.front().copied()
        {
            let bytes = self.staging.bytes(data.tail(taken));
            let n = front.on_bytes(now, bytes, &mut Io { now, core: &mut self.core, link, fx });
            let taken = taken + n as u32;
            if taken < data.len {
                link.staged[0].1 = taken;
                break;
            }
            link.staged.pop_front();
            fx.push(Effect::Recycle { data });
        }
        if link.life != Life::Open {
            link.staged.drain(..).for_each(|(data, _)| fx.push(Effect::Recycle { data }));
            self.core.stall(link);
            return;
        }
        self.core.stall(link);
        if !link.stalled && link.receiving.is_none() {
            let (into, most) = match front.want() {
                Want::Staging => (None, u32::MAX),
                Want::Header(most) => (None, most),
                Want::Direct(data) => (Some(data), data.len),
                Want::Nothing => return,
            };
            link.receiving = Some(into);
            fx.push(Effect::Receive { connection: link.id, into, most });
        }
    }

    /// The end begins: commands that wait never start, those under way are aborted.
    fn abort_all(&mut self, now: Instant, index: u32, fx: &mut Effects<Mail>) {
        let link = &self.connections[index].link;
        if link.known {
            let mail = Mail::Ending { connection: link.id };
            fx.push(Effect::Mail { to: Address::Steward, mail });
            if planted(Bug::LoginBeforeWritesEnd) {
                let mail = Mail::Gone { connection: link.id, why: None };
                fx.push(Effect::Mail { to: Address::Steward, mail });
            }
        }
        let mine: Vec<u32> = link.tags.iter().copied().filter(|r| *r != u32::MAX).collect();
        for request in mine {
            self.core.abort_request(now, request, fx);
        }
    }

    fn broken(&mut self, now: Instant, id: ConnectionId, fx: &mut Effects<Mail>) {
        let Some(index) = self.index_of(id) else { return };
        let link = &mut self.connections[index].link;
        if matches!(link.life, Life::Open | Life::Ending { .. }) {
            let was_open = link.life == Life::Open;
            link.life = Life::Closing;
            self.core.callers.leave(link);
            self.core.touch(link);
            fx.push(Effect::Close { connection: id });
            if was_open {
                self.abort_all(now, index, fx);
            }
        }
    }

    fn closed(&mut self, id: ConnectionId, fx: &mut Effects<Mail>) {
        // A connection that was refused at accept is in no table.
        let Some(index) = self.index_of(id) else { return };
        self.by_slot[id.slot()] = NO_LINK;
        let link = &mut self.connections[index].link;
        link.life = Life::Closed;
        link.receiving = None;
        link.staged.drain(..).for_each(|(data, _)| fx.push(Effect::Recycle { data }));
        self.core.stall(link);
        self.core.callers.leave(link);
        if link.outbox.ring().len > 0 {
            self.core.buffers.release_ring(link.outbox.ring());
        }
        let mut sent = vec![];
        link.outbox.clear(|mark| sent.push(mark));
        for request in sent {
            self.core.retire(link, request);
        }
        // What is with the connection will never go on; what is under way ends by itself.
        for tag in 0..link.tags.len() {
            let request = link.tags[tag];
            if request != u32::MAX
                && matches!(self.core.requests[request].phase, Phase::Connection | Phase::Buffer(_))
            {
                link.forget(base::Tag(tag as u16));
                if matches!(self.core.requests[request].phase, Phase::Buffer(_)) {
                    self.core.wait_no_more(request);
                }
                self.core.retire(link, request);
            }
        }
        self.core.touch(link);
    }

    /// Tells connections how their commands ended.
    fn tell(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        while let Some(index) = self.core.told.pop_front() {
            let request = &mut self.core.requests[index];
            let (tag, status, moved) = (request.tag, request.status, core::mem::take(&mut request.moved));
            request.phase = Phase::Connection;
            request.compare = None;
            let request = &self.core.requests[index];
            let (ended, took) = (ended(request), now.since(request.started).as_nanos() as u64);
            if let Some(counters) = self.core.volume_counters.get_mut(request.command.volume.index()) {
                counters.count(ended, took);
            }
            if request.link == NO_LINK {
                self.core.tell_direct(index);
                continue;
            }
            let Connection { front, link } = &mut self.connections[request.link];
            link.counters.count(ended, took);
            self.core.touch(link);
            match link.life {
                Life::Open => {
                    if moved {
                        front.on_moved(tag, self.core.requests[index].buffer.expect("it moved to another"));
                    }
                    front.on_done(now, tag, status, &mut Io { now, core: &mut self.core, link, fx });
                }
                // The world may still hold the buffer until it has let go of the connection.
                Life::Ending { .. } | Life::Closing => {}
                Life::Closed => {
                    link.forget(tag);
                    self.core.retire(link, index);
                }
            }
        }
    }

    /// Gives free memory to those who wait for it: first what blocks a stream, else in turn.
    fn grant(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if self.core.lending.waiting() == 0 {
            return;
        }
        for purpose in Purpose::ALL {
            while let Some((index, data)) = self.core.next_granted(purpose) {
                let request = &self.core.requests[index];
                let (link, tag) = (request.link, request.tag);
                self.with(now, link, fx, |front, io| front.on_granted(now, tag, data, io));
            }
        }
    }

    /// Everything that events left behind, until nothing is left to do.
    fn settle(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        loop {
            while let Some((ticket, status)) = self.core.landed.pop_front() {
                self.core.landed(ticket, status, fx);
            }
            self.tell(now, fx);
            self.grant(now, fx);
            self.make_room(now, fx);
            while let Some(index) = self.core.ending.pop() {
                self.abort_all(now, index, fx);
            }
            // Only what was touched so far: a pump touches nothing new but its own link.
            for i in 0..self.core.touched.len() {
                let index = self.core.touched[i];
                self.pump(now, index, fx);
            }
            self.core.start_turns(now, fx);
            let quiet =
                self.core.landed.is_empty() && self.core.told.is_empty() && self.core.ending.is_empty();
            if quiet && !self.core.callers.changed() {
                break;
            }
        }
        while let Some((array, note)) = self.core.notes.pop_front() {
            let state = self.core.arrays[array.index()].as_ref();
            let to = match (note, state) {
                (Note::Heal { at, .. }, Some(state)) => Address::Shard(state.array.owner(at)),
                _ => Address::Steward,
            };
            fx.push(Effect::Mail { to, mail: Mail::Note { array, note } });
        }
        self.core.report_quiet(fx);
    }

    /// Sends what touched connections have to say, ends those that have said it all.
    fn flush(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        let mut touched = core::mem::take(&mut self.core.touched);
        for index in touched.drain(..) {
            let Some(Connection { front, link }) = self.connections.get_mut(index) else { continue };
            link.touched = false;
            let speaks = matches!(link.life, Life::Open | Life::Ending { .. });
            if speaks && !link.sending && link.outbox.pending() > 0 {
                link.sending = true;
                fx.push(Effect::Send { connection: link.id });
            }
            match link.life {
                Life::Open => {
                    let next = front.next_deadline();
                    if next.is_some_and(|at| link.timer.is_none_or(|t| at < t)) {
                        link.timer = next;
                        self.timers.push(Reverse((next.expect("checked"), index, link.id)));
                    }
                }
                Life::Ending { until } => {
                    if link.outbox.pending() == 0 || now >= until {
                        link.life = Life::Closing;
                        self.core.callers.leave(link);
                        fx.push(Effect::Close { connection: link.id });
                    } else if link.timer.is_none_or(|t| until < t) {
                        link.timer = Some(until);
                        self.timers.push(Reverse((until, index, link.id)));
                    }
                }
                Life::Closing => {}
                Life::Closed => {
                    if link.live == 0 {
                        let gone = self.connections.remove(index).link;
                        self.core.promised -= gone.tags.len() as u32;
                        if !gone.tags.is_empty() {
                            self.core.lending.close(gone.account);
                        }
                        self.protocol_errors += u64::from(matches!(gone.why, Some(Close::Protocol(_))));
                        if gone.known && !planted(Bug::LoginBeforeWritesEnd) {
                            let mail = Mail::Gone { connection: gone.id, why: gone.why };
                            fx.push(Effect::Mail { to: Address::Steward, mail });
                        }
                    }
                }
            }
        }
        // The list keeps its room; nothing touches a link while it is looked at.
        self.core.touched = touched;
    }

    fn configure(&mut self, now: Instant, view: Arc<View>, layout: Arc<Layout>, fx: &mut Effects<Mail>) {
        let core = &mut self.core;
        (core.view, core.layout) = (view, layout.clone());
        core.volumes.clear();
        for volume in &layout.volumes {
            set(&mut core.volumes, volume.id.index(), volume.clone());
            if core.volume_counters.len() <= volume.id.index() {
                core.volume_counters.resize(volume.id.index() + 1, Counters::default());
            }
        }
        core.pools.clear();
        for pool in &layout.pools {
            set(&mut core.pools, usize::from(pool.id.0), pool.clone());
        }
        core.apply_arrays(now, &layout, fx);
        core.set_gates(now, fx);

        self.listen(fx);
        let view = self.core.view.clone();
        self.listening.retain(|id| {
            let stays = view.portals.iter().any(|p| p.id == *id);
            if !stays {
                fx.push(Effect::Unlisten { portal: *id });
            }
            stays
        });
        let all: Vec<u32> = self.connections.iter().map(|(i, _)| i).collect();
        for index in all {
            self.with(now, index, fx, |front, io| front.on_view(now, io));
        }
        fx.push(Effect::Mail { to: Address::Steward, mail: Mail::Applied { generation: layout.generation } });
    }

    /// Opens portals that are not open.
    fn listen(&mut self, fx: &mut Effects<Mail>) {
        for portal in &self.core.view.portals {
            if !self.listening.contains(&portal.id) {
                self.listening.push(portal.id);
                fx.push(Effect::Listen { portal: portal.id, address: portal.address });
            }
        }
    }

    fn on_mail(&mut self, now: Instant, from: Address, mail: Mail, fx: &mut Effects<Mail>) {
        match mail {
            Mail::Configure { view, layout } => self.configure(now, view, layout, fx),
            Mail::Recorded { array, epoch } => {
                self.core.with_array(now, array, fx, |a, io| a.on_recorded(now, epoch, io));
            }
            Mail::Unrecorded { array } => {
                self.core.with_array(now, array, fx, |a, io| a.on_unrecorded(now, io))
            }
            Mail::Clean { array } => self.core.with_array(now, array, fx, |a, io| a.on_clean(now, io)),
            Mail::MarkAll { array } => {
                self.core.with_array(now, array, fx, |a, io| a.mark_all_dirty(now, io))
            }
            Mail::AddDirty { array, dirty } => {
                self.core.with_array(now, array, fx, |a, io| a.add_dirty(now, &dirty, io));
            }
            Mail::Unmark { array } => self.core.with_array(now, array, fx, |a, _| a.unmark()),
            Mail::Scrub { array, order } => {
                self.core.with_array(now, array, fx, |a, io| a.scrub(now, order, io));
            }
            Mail::Pace { array, pace } => self.core.with_array(now, array, fx, |a, _| a.pace(pace)),
            Mail::Answer { connection, answer } => {
                if let Some(index) = self.index_of(connection) {
                    self.with(now, index, fx, |front, io| front.on_answer(now, answer, io));
                }
            }
            Mail::Obey { connection, id, what } => {
                if let Some(index) = self.index_of(connection) {
                    self.with(now, index, fx, |front, io| front.on_intervention(now, id, &what, io));
                }
            }
            Mail::Intervened { connection, key, yes } => {
                if let Some(index) = self.index_of(connection) {
                    self.with(now, index, fx, |front, io| front.on_intervened(now, key, yes, io));
                }
            }
            Mail::Drop { connection, why } => {
                if let Some(index) = self.index_of(connection) {
                    self.with(now, index, fx, |_, io| base::FrontIo::close(io, why));
                }
            }
            Mail::Quiesce { array } => self.core.quiesce(now, array, fx),
            Mail::Room { mirrors } => {
                let (mirrors, mirrors_max) = self.core.keep_scratch(mirrors);
                fx.push(Effect::Mail { to: from, mail: Mail::HasRoom { mirrors, mirrors_max } });
            }
            Mail::Resume { array } => self.core.resume(now, array, fx),
            Mail::Report => {
                let report = Box::new(self.report());
                fx.push(Effect::Mail { to: from, mail: Mail::Reported(report) });
            }
            Mail::Run { flight, array, command } => {
                let Address::Shard(shard) = from else { panic!("only shards ask shards") };
                self.core.parked.push_back(Parked { shard, flight, array, command });
            }
            Mail::Ran { flight, status } => self.core.flight_landed(flight.0, status, fx),
            Mail::Abort { flight, array } => {
                let Address::Shard(shard) = from else { panic!("only shards ask shards") };
                self.core.abort_for_peer(now, shard, flight, array, fx);
            }
            Mail::Lease { volume, kind, cost } => {
                let Address::Shard(peer) = from else { panic!("only shards ask shards") };
                self.core.on_lease(now, peer, volume, kind, cost, fx);
            }
            Mail::Leased { volume, kind, cost } => self.core.on_leased(now, volume, kind, cost),
            Mail::Hold { data } => self.core.buffers.hold(data),
            Mail::Unhold { data } => {
                self.core.buffers.release(data);
            }
            Mail::Note { array, note: Note::Heal { at, len, leg } } => {
                self.core.with_array(now, array, fx, |a, io| a.on_heal(now, leg, at, len, io));
            }
            Mail::Applied { .. }
            | Mail::Note { .. }
            | Mail::Ask { .. }
            | Mail::Intervene { .. }
            | Mail::Obeyed { .. }
            | Mail::Ending { .. }
            | Mail::Gone { .. }
            | Mail::Turned { .. }
            | Mail::Listening { .. }
            | Mail::Quiesced { .. }
            | Mail::HasRoom { .. }
            | Mail::Reported(_)
            | Mail::Order { .. }
            | Mail::Answered { .. }
            | Mail::Ready { .. }
            | Mail::Happened(_)
            | Mail::Stop
            | Mail::Stopped => panic!("this letter is not for a shard: {mail:?}"),
        }
    }

    fn report(&self) -> ShardReport {
        let core = &self.core;
        let connections = self.connections.iter().map(|(_, c)| ConnectionReport {
            connection: c.link.id,
            portal: c.link.portal,
            peer: c.link.peer,
            host: c.link.host,
            commands: c.link.live,
            counters: c.link.counters,
        });
        let volumes = core.layout.volumes.iter().map(|v| (v.id, core.volume_counters[v.id.index()]));
        let arrays = core.arrays.iter().enumerate();
        ShardReport {
            shard: core.id,
            connections: connections.collect(),
            volumes: volumes.collect(),
            drives: core.drives.iter().filter(|d| **d != DriveReport::default()).copied().collect(),
            arrays: arrays
                .filter_map(|(i, a)| a.as_ref().map(|a| (ArrayId(i as u16), a.array.progress())))
                .collect(),
            buffers_used: core.buffers.used(),
            buffers_bytes: core.buffers.bytes(),
            waiting: core.lending.waiting(),
            protocol_errors: self.protocol_errors,
        }
    }
}

/// How a request ended, for counters.
fn ended(request: &Request) -> Ended {
    match (request.status, request.command.op) {
        (Status::Good, base::Op::Read) => Ended::Read(request.length),
        (Status::Good, base::Op::Write | base::Op::WriteZeroes { .. } | base::Op::CompareAndWrite) => {
            Ended::Write(request.length)
        }
        (Status::Good | Status::Miscompare { .. }, _) => Ended::Other,
        _ => Ended::Error,
    }
}

/// Puts `item` at `index` of a sparse table.
pub(crate) fn set<T>(table: &mut Vec<Option<T>>, index: usize, item: T) {
    if table.len() <= index {
        table.resize_with(index + 1, || None);
    }
    table[index] = Some(item);
}

/// A new array machine for this shard.
pub(crate) fn build_array(
    core_id: u16,
    shards: u16,
    layout: &crate::layout::ArrayLayout,
    scratch: Slice,
) -> Array {
    Array::new(ArrayConfig {
        uuid: layout.uuid,
        geometry: layout.geometry,
        membership: layout.membership.clone(),
        shard: core_id,
        shards,
        scratch,
        dirty: (*layout.dirty).clone(),
        unclean: layout.unclean,
    })
}

impl<M: Memory> Machine for Shard<M> {
    type Mail = Mail;

    fn on_event(&mut self, now: Instant, event: Event<Mail>, fx: &mut Effects<Mail>) {
        match event {
            Event::Accepted { connection, portal, local, peer } => {
                self.accepted(now, connection, portal, (local, peer), fx);
            }
            Event::Received { connection, data } => self.received(now, connection, data, fx),
            Event::Sent { connection, bytes } => {
                let index = self.index_of(connection).expect("a send ends before its connection is closed");
                let link = &mut self.connections[index].link;
                link.sending = false;
                let core = &mut self.core;
                core.touch(link);
                let mut marks = core::mem::take(&mut core.marks);
                link.outbox.on_sent(bytes, |mark| marks.push(mark));
                for request in marks.drain(..) {
                    core.retire(link, request);
                }
                core.marks = marks;
                self.with(now, index, fx, |front, io| front.on_sent(now, io));
            }
            Event::Broken { connection } => self.broken(now, connection, fx),
            Event::Closed { connection } => self.closed(connection, fx),
            Event::DriveDone { token, result } => self.core.op_done(now, token.0 as u32, result, fx),
            Event::Listening { portal, result } => {
                if result.is_err() {
                    // Whoever has the address may let go of it.
                    self.listening.retain(|p| *p != portal);
                    self.relisten.get_or_insert(now + RELISTEN);
                }
                fx.push(Effect::Mail { to: Address::Steward, mail: Mail::Listening { portal, result } });
            }
            Event::Mail { from, mail } => self.on_mail(now, from, mail, fx),
            Event::Connected { .. }
            | Event::DriveOpened { .. }
            | Event::DriveInspected { .. }
            | Event::DriveClosed { .. }
            | Event::State { .. } => panic!("a shard did not ask for this: {event:?}"),
        }
    }

    fn on_timer(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        while let Some(Reverse((at, index, id))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            let Some(connection) = self.connections.get_mut(index) else { continue };
            let link = &mut connection.link;
            // Entries of earlier owners of this slot, and of times that were moved forward, are stale.
            if link.id != id || link.timer != Some(at) {
                continue;
            }
            link.timer = None;
            self.core.touch(link);
            if connection.front.next_deadline().is_some_and(|d| d <= now) {
                self.with(now, index, fx, |front, io| front.on_timer(now, io));
            }
        }
        if self.relisten.is_some_and(|at| at <= now) {
            self.relisten = None;
            self.listen(fx);
        }
        if self.look.is_some_and(|at| at <= now) {
            self.look_at_dues(now, fx);
        }
        self.core.on_timer(now, fx);
    }

    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.settle(now, fx);
        self.flush(now, fx);
        if self.look.is_some() || self.core.is_crowded() {
            self.plan_look(now);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        // A minimum by hand: this is asked once or twice in every turn.
        let mut first = self.timers.peek().map_or(NEVER, |Reverse((at, ..))| *at);
        for at in [self.core.op_scan, self.relisten, self.look, self.core.gates.next_deadline()]
            .into_iter()
            .flatten()
        {
            first = first.min(at);
        }
        for state in self.core.arrays.iter().flatten() {
            first = first.min(state.array.next_deadline().unwrap_or(NEVER));
        }
        (first < NEVER).then_some(first)
    }

    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        if let Some(index) = self.index_of(connection) {
            out.extend(self.connections[index].link.outbox.segments().take(max));
        }
    }
}

impl<M: Memory> Dma for Shard<M> {
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        for memory in [&mut self.core.memory, &mut self.staging] {
            let (start, bytes) = memory.extent();
            if start <= data.at && data.end() <= start + bytes {
                with(memory.bytes_mut(data));
                return true;
            }
        }
        false
    }
}
