//! Shard: one core's connections, requests, drive operations, buffers and timers.
//!
//! A turn: every event is handled at once and leaves work in queues (`turns`: requests to start, `landed`: flights that ended,
//! `completed`: requests whose connection needs their status). `end_of_turn` empties the queues, then sends the output of each
//! touched connection in one send.
//!
//! ```text
//! bytes ─▶ Connection ─submit─▶ turns ─▶ flow ─▶ array ─▶ Op ─▶ drive
//!   ▲          │                          │ (region of another shard: mail Run)
//!   └─ outbox ◀┴─on_done─ completed ◀─ landed ◀───┘
//! ```

mod accept;
mod checkers;
mod deadlines;
mod far;
mod letters;
mod memory;
mod sight;
mod turn;

use self::accept::ConnectionLimits;
pub(crate) use self::accept::Left;
pub(crate) use self::deadlines::LinkDeadlines;
use self::sight::Sight;
pub use self::turn::TURN_PDUS;
use self::turn::Turn;
use crate::admission::arena::Arena;
use crate::admission::buffer_quota::{BufferQuota, Purpose};
use crate::admission::buffers::PAGE;
use crate::admission::rate_limit::RateLimiters;
use crate::admission::scheduler::Scheduler;
use crate::admission::window::{Governor, Window};
use crate::layout::{ArrayId, Layout, PoolLayout, VolumeLayout};
use crate::limits;
use crate::mail::{Mail, ShardMail, StewardMail, to_steward};
use crate::path::door::Done;
use crate::path::far::{FarLink, FarSetup};
use crate::path::link::{Connection, Front, Io, Life};
use crate::path::request::{Flight, Landed, Orphan, Parked, Phase, Request};
use crate::path::stages::Timing;
use crate::report::{Counters, DriveReport, Ended, PathId};
use array::{Array, ArrayConfig, Geometry, Note};
use base::front::Close;
use base::view::View;
use base::{
    Bug, ConnectionId, Dma, Duration, Effect, Effects, Event, FrontIo, Instant, Machine, Memory, PortalId,
    Prng, Slice, Slots, Status, Want, planted, planted_if,
};
use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

pub(crate) const NO_LINK: u32 = u32::MAX;
const NEVER: Instant = Instant(u64::MAX);
/// How long until a portal that could not be opened is tried again: at first, and at most. The time doubles with each attempt.
const RELISTEN_FIRST: Duration = Duration::from_millis(50);
const RELISTEN: Duration = Duration::from_secs(5);

/// How long an operation of a drive may take before the shard gives it up.
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
    /// PDUs that a turn takes in at most: `TURN_PDUS`, except in tests.
    pub turn_pdus: u32,
    /// Credits of an array while its in-flight window is not made smaller: `CREDITS`, except in tests.
    pub credits: u32,
    /// Parts of commands that are under way at a time, its own and those of other shards: `FLIGHTS`, except in tests.
    pub flights: u32,
}

/// See [`ShardConfig::credits`]: as many as an array has room for.
pub const CREDITS: u32 = array::COMMANDS_MAX;
/// See [`ShardConfig::flights`].
pub const FLIGHTS: u32 = limits::FLIGHTS_MAX;

/// How far an array is from rest. From `Halting` on hosts' commands wait until it is built anew, by another map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum Rest {
    /// It works, or is quiet and `Quiesced` was sent.
    No,
    /// It comes to rest, and then sends `Quiesced`.
    Quiescing,
    /// It waits for the end of what was sent to other shards, and then sends `Halted`.
    Halting,
    Halted,
    /// It is halted and comes to rest, and then sends `Quiesced`.
    Pausing,
    /// It is halted and leaves. It sends `Quiesced` once nobody waits for a drive, whatever drives keep.
    Leaving,
}

impl Rest {
    #[inline]
    pub fn is_halted(self) -> bool {
        self >= Rest::Halting
    }
}

/// An array as this shard knows it.
pub(crate) struct ArrayState {
    /// Some of its lanes are those of far shards that are gone.
    pub bereft: bool,
    pub array: Array,
    /// Redundant arrays: commands are cut at the ends of regions.
    pub regions: Option<Geometry>,
    pub scratch: Slice,
    /// Commands under way here, for this shard and its peers.
    pub busy: u32,
    pub rest: Rest,
    /// The number under which the Steward asked for it last.
    pub rest_number: u32,
    /// A leg in use is not reached from here, as far as the array knows.
    pub lacks_path: bool,
    /// This head has let go of one since then, and has no lanes: the other head does all that is to be done.
    pub path_lost: bool,
    /// By which map lanes are dealt here.
    pub map: u32,
    /// Epoch of the membership that it knows.
    pub epoch: u64,
    /// Drives that a write goes to.
    pub legs: u32,
    /// Commands that wait for a credit.
    pub waiters: Scheduler,
    /// The in-flight window: how many credits there are,
    pub window: Window,
    /// and what decides that for all shards, if this is the array's home.
    pub governor: Governor,
}

/// Everything of a shard but its connections.
pub(crate) struct Core<M: Memory> {
    pub id: u16,
    /// Shards of this head. Those of the other one have the numbers behind.
    pub shards: u16,
    pub far_setup: Option<Arc<FarSetup>>,
    pub far: Vec<FarLink>,
    /// There are far shards, or there were and something of theirs is left.
    pub meets_far: bool,
    /// Arrays leave, since this head has just begun to lead: what cannot be answered is done again.
    pub leaving: bool,
    /// The number of the pairing of two heads; links of former pairings, some of whose memory drives hold; commands that came by those
    /// links and are at drives; and whether the Steward waits for a report of their end.
    pub far_pairing: u32,
    pub far_left: Vec<FarLink>,
    pub far_left_stale: u32,
    pub far_parts: bool,
    /// Requests that wait for far shards that are gone, until somebody else has what was theirs.
    pub far_waits: VecDeque<u32>,
    pub memory: M,
    pub buffers: Arena,
    /// Drives keep so much of it that nobody waits for more: commands end in a status that makes hosts retry.
    pub exhausted: bool,
    pub limits: ConnectionLimits,
    pub deadlines: Deadlines,
    /// Credits of each array while its window is not made smaller.
    pub credits: u32,
    pub extents: Vec<(u64, u64)>,
    pub view: Arc<View>,
    pub layout: Arc<Layout>,
    /// Volumes by id: sparse, small.
    pub volumes: Vec<Option<VolumeLayout>>,
    pub pools: Vec<Option<PoolLayout>>,
    pub volume_counters: Vec<Counters>,
    /// What connections did that have ended, by path.
    pub ended: BTreeMap<PathId, Counters>,
    /// Boxed, so that an array can be taken out while it works: its effects need the rest.
    pub arrays: Vec<Option<Box<ArrayState>>>,
    /// Scratch of mirrors that will come.
    pub scratch: Vec<Slice>,
    /// The same for arrays without redundancy.
    pub single_scratch: Vec<Slice>,
    pub requests: Slots<Request>,
    pub promised: u32,
    pub flights: Slots<Flight>,
    /// Of those, the shard's own at most.
    pub flights_own: u32,
    /// Operations that the kernel keeps, of arrays that are gone.
    pub orphans: Vec<Orphan>,
    pub drives: Vec<DriveReport>,
    /// What each host holds of the memory for data, and who waits for some.
    pub quota: BufferQuota,
    /// Connections whose bytes lie in staging buffers, and cannot be taken yet.
    pub stalled: u32,
    /// Commands of capped volumes that wait for their rate.
    pub limiters: RateLimiters,
    /// What this turn may still take in of what hosts have sent.
    pub turn: Turn,
    pub turns: VecDeque<u32>,
    /// Turns since the start.
    pub turns_done: u64,
    pub landed: VecDeque<Landed>,
    pub completed: VecDeque<u32>,
    /// Until when answers count that depend on what drives hold.
    pub sight: Sight,
    /// Where the time of commands goes.
    pub timing: Timing,
    /// Commands without a connection that have ended.
    pub direct: VecDeque<Done>,
    pub parked: VecDeque<Parked>,
    /// The same by a map that this shard does not know yet.
    pub early: Vec<Parked>,
    /// Arrays that have waiters, and the peers' commands among these.
    pub contended: Vec<ArrayId>,
    pub peers: Slots<Parked>,
    pub notes: VecDeque<(ArrayId, Note)>,
    pub touched: Vec<u32>,
    pub ending: Vec<u32>,
    pub op_scan: Option<Instant>,
    /// Room for marks of one `Sent`, kept so that nothing is allocated.
    pub marks: Vec<u32>,
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
    /// When to check the hosts' deadlines, while somebody waits; and the number of this time of waiting.
    look: Option<Instant>,
    looks: u32,
    /// When portals that could not be opened are tried again.
    relisten: Option<Instant>,
    relisten_after: Duration,
    prng: Prng,
    protocol_errors: u64,
    /// Connections with far shards, and how many were made from here.
    far_connections: Vec<u32>,
    far_next: Option<Arc<FarSetup>>,
    /// `FarMet` was sent: all of them are connected.
    met: bool,
    /// The number of the parting that the Steward has told of last, and of the last one behind which all connections with the other head
    /// have ended.
    parting: u32,
    parted: u32,
    first_slot: u32,
    dials: u32,
}

impl<M: Memory> Shard<M> {
    /// A shard without configuration: it waits for `ShardMail::Configure`.
    pub fn new(config: ShardConfig<M>) -> Self {
        let (start, bytes) = config.memory.extent();
        let first = start.next_multiple_of(PAGE);
        let buffers = Arena::new(first, (start + bytes - first) / PAGE * PAGE);
        let mut flights = Slots::default();
        flights.reserve(config.flights);
        Self {
            core: Core {
                id: config.id,
                shards: config.shards,
                far_setup: None,
                far: vec![],
                meets_far: false,
                leaving: false,
                far_pairing: 0,
                far_left: vec![],
                far_left_stale: 0,
                far_parts: false,
                far_waits: VecDeque::new(),
                memory: config.memory,
                limits: ConnectionLimits::new(config.connections_max, config.shards, buffers.rings_max()),
                buffers,
                deadlines: config.deadlines,
                credits: config.credits,
                extents: config.extents,
                view: Arc::default(),
                layout: Arc::default(),
                volumes: vec![],
                pools: vec![],
                volume_counters: vec![],
                ended: BTreeMap::new(),
                arrays: vec![],
                scratch: vec![],
                single_scratch: vec![],
                requests: Slots::default(),
                promised: 0,
                flights,
                flights_own: config.flights - (config.flights / limits::FLIGHTS_FOR_PEERS_SHARE).max(1),
                orphans: vec![],
                drives: vec![],
                quota: BufferQuota::new(),
                stalled: 0,
                limiters: RateLimiters::default(),
                turn: Turn::new(config.turn_pdus),
                turns: VecDeque::with_capacity(1024),
                turns_done: 0,
                landed: VecDeque::with_capacity(1024),
                completed: VecDeque::with_capacity(1024),
                sight: Sight::default(),
                timing: Timing::new(),
                direct: VecDeque::new(),
                exhausted: false,
                parked: VecDeque::with_capacity(1024),
                early: vec![],
                contended: Vec::with_capacity(16),
                peers: Slots::with_capacity(if config.shards > 1 { 1024 } else { 0 }),
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
            relisten_after: RELISTEN_FIRST,
            prng: Prng::new(config.seed),
            protocol_errors: 0,
            far_connections: vec![],
            far_next: None,
            met: false,
            parting: 0,
            parted: 0,
            first_slot: config.connections_max,
            dials: 0,
        }
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
                link.spoke = true;
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

    /// Offers staged bytes to the protocol, if this turn has room for them, and asks for more when it took all.
    #[inline]
    fn pump(&mut self, now: Instant, index: u32, fx: &mut Effects<Mail>) {
        let Some(Connection { link, .. }) = self.connections.get_mut(index) else { return };
        let waits = link.life == Life::Open && !link.staged.is_empty() && !self.core.turn.visit(now, link);
        if !waits {
            self.take_in(now, index, fx);
        }
    }

    /// Goes on with those in line, as far as this turn has room.
    #[inline(never)]
    fn go_on(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        while let Some(index) = self.core.turn.next() {
            // The connection that stood there may be gone, and another one may have its index.
            if let Some(Connection { link, .. }) = self.connections.get_mut(index)
                && self.core.turn.come(link)
            {
                self.core.touch(link);
                self.take_in(now, index, fx);
            }
        }
    }

    #[inline(always)]
    fn take_in(&mut self, now: Instant, index: u32, fx: &mut Effects<Mail>) {
        let Some(Connection { front, link }) = self.connections.get_mut(index) else { return };
        let some = !link.staged.is_empty();
        while link.life == Life::Open
            && let Some((data, taken)) = link.staged.front().copied()
        {
            let bytes = self.staging.bytes(data.tail(taken));
            let n = front.on_bytes(now, bytes, &mut Io { now, core: &mut self.core, link, fx });
            self.core.turn.took(n as u32);
            let taken = taken + n as u32;
            if taken < data.len {
                link.staged[0].1 = taken;
                break;
            }
            link.staged.pop_front();
            fx.push(Effect::Recycle { data });
        }
        if some {
            let more = link.life == Life::Open && !link.staged.is_empty();
            self.core.turn.leave(now, link, more);
        }
        if link.life != Life::Open {
            link.staged.drain(..).for_each(|(data, _)| fx.push(Effect::Recycle { data }));
            self.core.stall(link);
            return;
        }
        self.core.stall(link);
        if link.staged.is_empty() && link.receiving.is_none() {
            let (into, most, batch) = match front.want() {
                Want::Staging => (None, u32::MAX, self.core.turn.batch(link)),
                Want::Header(most) => (None, most, 0),
                Want::Direct(data) => (Some(data), data.len, 0),
                Want::Nothing => return,
            };
            link.receiving = Some(into);
            fx.push(Effect::Receive { connection: link.id, into, most, batch });
        }
    }

    /// The connection begins to end: commands that wait never start, those under way are aborted.
    fn abort_all(&mut self, now: Instant, index: u32, fx: &mut Effects<Mail>) {
        let link = &self.connections[index].link;
        if link.known {
            let lost = link.why != Some(Close::Logout) && link.tags.iter().any(|r| *r != u32::MAX);
            let mail = StewardMail::Ending { connection: link.id, lost };
            fx.push(to_steward(mail));
            if planted(Bug::LoginBeforeWritesEnd) {
                let mail = StewardMail::Gone { connection: link.id, why: None };
                fx.push(to_steward(mail));
            }
        }
        let mine: Vec<u32> = link.tags.iter().copied().filter(|r| *r != u32::MAX).collect();
        if !mine.is_empty() && planted(Bug::LostStarts) {
            return;
        }
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
            self.core.limits.leave(link);
            self.core.touch(link);
            fx.push(Effect::Close { connection: id });
            if was_open {
                self.abort_all(now, index, fx);
            }
        }
    }

    fn closed(&mut self, now: Instant, id: ConnectionId, fx: &mut Effects<Mail>) {
        // A connection that was refused at accept is in no table.
        let Some(index) = self.index_of(id) else { return };
        self.by_slot[id.slot()] = NO_LINK;
        if let Front::Far(_) = self.connections[index].front {
            self.connections[index].link.outbox.clear(|_| ());
            self.far_closed(now, index, fx);
        }
        let link = &mut self.connections[index].link;
        link.life = Life::Closed;
        link.receiving = None;
        link.staged.drain(..).for_each(|(data, _)| fx.push(Effect::Recycle { data }));
        self.core.stall(link);
        self.core.limits.leave(link);
        if link.outbox.ring().len > 0 {
            self.core.buffers.release_ring(link.outbox.ring());
        }
        let mut sent = vec![];
        link.outbox.clear(|mark| sent.push(mark));
        link.unsent -= sent.len() as u32;
        for request in sent {
            self.core.retire(link, request, None);
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
                self.core.retire(link, request, None);
            }
        }
        self.core.touch(link);
    }

    /// Completes commands: gives their status to their connections.
    fn complete(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if now > self.core.sight.until {
            self.core.keep_reads(now);
        }
        while let Some(index) = self.core.completed.pop_front() {
            let request = &mut self.core.requests[index];
            let (tag, status, moved) = (request.tag, request.status, core::mem::take(&mut request.moved));
            request.phase = Phase::Connection;
            request.compare = None;
            let request = &self.core.requests[index];
            let ended = ended(request.status, request.command.op, request.length);
            let took = now.0.saturating_sub(request.started.0);
            if let Some(counters) = self.core.volume_counters.get_mut(request.command.volume.index()) {
                counters.count(ended, took);
            }
            if request.link == NO_LINK {
                self.core.complete_direct(now, index);
                continue;
            }
            let Connection { front, link } = &mut self.connections[request.link];
            link.counters.count(ended, took);
            self.core.touch(link);
            match link.life {
                Life::Open if status == Status::Withheld => {
                    Io { now, core: &mut self.core, link, fx }.close(Close::Withheld);
                }
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
                    self.core.retire(link, index, None);
                }
            }
        }
    }

    /// Grants free memory to requests that wait for it: first to those that block a stream, then in turn.
    fn grant(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if self.core.quota.waiting() == 0 {
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
            // Else the compiler works out a score of addresses before the loop, in every turn; most turns need two.
            let this = core::hint::black_box(&mut *self);
            while let Some(Landed { flight, status, issued }) = this.core.landed.pop_front() {
                this.core.flight_landed(now, flight, status, issued, fx);
            }
            this.complete(now, fx);
            this.grant(now, fx);
            this.make_room(now, fx);
            while let Some(index) = this.core.ending.pop() {
                this.abort_all(now, index, fx);
            }
            // Only what was touched so far: a pump touches nothing new but its own link.
            for i in 0..this.core.touched.len() {
                let index = this.core.touched[i];
                this.pump(now, index, fx);
            }
            if this.core.turn.is_over_full() {
                this.go_on(now, fx);
            }
            this.core.start_turns(now, fx);
            let quiet =
                this.core.landed.is_empty() && this.core.completed.is_empty() && this.core.ending.is_empty();
            if quiet && !this.core.limits.changed() {
                break;
            }
        }
        while let Some((array, note)) = self.core.notes.pop_front() {
            let Note::Heal { at, len, leg } = note else {
                fx.push(to_steward(StewardMail::Note { array, note }));
                continue;
            };
            if let Some(state) = &self.core.arrays[array.index()] {
                let mail = ShardMail::Heal { array, map: state.map, at, len, leg };
                self.core.send_to_shard(state.array.owner(at), mail, fx);
            }
        }
        self.core.report_quiet(fx);
    }

    /// Sends the output of touched connections, and closes those that are ending and have sent everything.
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
                        self.core.limits.leave(link);
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
                        if !planted_if(Bug::PromisedStays, || !gone.tags.is_empty()) {
                            self.core.promised -= gone.tags.len() as u32;
                        }
                        if !gone.tags.is_empty() {
                            self.core.quota.close(gone.holder());
                        }
                        if let Some(path) = gone.path() {
                            self.core.ended.entry(path).or_default().add(&gone.counters);
                        }
                        self.protocol_errors += u64::from(matches!(gone.why, Some(Close::Protocol(_))));
                        // A protocol error is reported even if it came before the login.
                        let broke = matches!(gone.why, Some(Close::Protocol(_)));
                        if (gone.known || broke) && !planted(Bug::LoginBeforeWritesEnd) {
                            let mail = StewardMail::Gone { connection: gone.id, why: gone.why };
                            fx.push(to_steward(mail));
                        }
                    }
                }
            }
        }
        // The list keeps its room; nothing touches a link while it is looked at.
        self.core.touched = touched;
    }
}

/// How a request ended, for counters.
fn ended(status: Status, op: base::Op, bytes: u64) -> Ended {
    match (status, op) {
        (Status::Good, base::Op::Read) => Ended::Read(bytes),
        (Status::Good, base::Op::Write | base::Op::WriteZeroes { .. }) => Ended::Write(bytes),
        // An abort by the host is not an error.
        (Status::Good | Status::Miscompare { .. } | Status::Aborted, _) => Ended::Other,
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
pub(crate) fn build_array(core_id: u16, layout: &crate::layout::ArrayLayout, scratch: Slice) -> Array {
    Array::new(ArrayConfig {
        uuid: layout.uuid,
        geometry: layout.geometry,
        membership: layout.membership.clone(),
        shard: core_id,
        lanes: layout.lanes,
        scratch,
        dirty: (*layout.dirty).clone(),
        unclean: layout.unclean,
        uncleared: (*layout.uncleared).clone(),
        shared: layout.shared,
    })
}

impl<M: Memory> Machine for Shard<M> {
    type Mail = Mail;

    fn on_event(&mut self, now: Instant, event: Event<Mail>, fx: &mut Effects<Mail>) {
        match event {
            Event::Accepted { connection, portal, local, peer } => {
                self.accepted(now, connection, portal, (local, peer), fx);
            }
            // There is nothing in these three to be dropped, which the compiler does not see by itself.
            Event::Received { connection, data } => {
                core::mem::forget(event);
                self.received(now, connection, data, fx);
            }
            Event::Sent { connection, bytes } => {
                core::mem::forget(event);
                let index = self.index_of(connection).expect("a send ends before its connection is closed");
                if self.core.meets_far && self.has_sent_far(index, bytes) {
                    return;
                }
                let link = &mut self.connections[index].link;
                link.sending = false;
                let core = &mut self.core;
                core.touch(link);
                let mut marks = core::mem::take(&mut core.marks);
                link.outbox.on_sent(bytes, |mark| marks.push(mark));
                link.unsent -= marks.len() as u32;
                for request in marks.drain(..) {
                    core.retire(link, request, Some(now));
                }
                core.marks = marks;
                self.with(now, index, fx, |front, io| front.on_sent(now, io));
            }
            Event::Broken { connection } => self.broken(now, connection, fx),
            Event::Closed { connection } => self.closed(now, connection, fx),
            Event::Connected { connection, result } => self.connected(now, connection, result, fx),
            Event::DriveDone { token, result } => {
                core::mem::forget(event);
                self.core.op_done(now, token, result, fx);
            }
            Event::Listening { portal, result } => {
                match result {
                    Ok(_) => self.relisten_after = RELISTEN_FIRST,
                    // Whoever has the address may let go of it.
                    Err(_) => {
                        self.listening.retain(|p| *p != portal);
                        if self.relisten.is_none() {
                            self.relisten = Some(now + self.relisten_after);
                            self.relisten_after = (self.relisten_after * 2).min(RELISTEN);
                        }
                    }
                }
                fx.push(to_steward(StewardMail::Listening { portal, result }));
            }
            Event::Mail { from, mail: Mail::Shard(mail) } => self.on_mail(now, from, mail, fx),
            Event::DriveOpened { .. }
            | Event::DriveInspected { .. }
            | Event::Fenced { .. }
            | Event::DriveClosed { .. }
            | Event::State { .. }
            | Event::Mail { .. } => panic!("a shard did not ask for this: {event:?}"),
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
            // What it waits for may have arrived already: this is seen when its turn comes.
            if link.in_line {
                continue;
            }
            if connection.front.next_deadline().is_some_and(|d| d <= now) {
                self.with(now, index, fx, |front, io| front.on_timer(now, io));
            }
        }
        if self.relisten.is_some_and(|at| at <= now) {
            self.relisten = None;
            self.listen(fx);
        }
        if self.look.is_some_and(|at| at <= now) {
            self.check_deadlines(now, fx);
        }
        if self.core.meets_far {
            self.dial(now, fx);
        }
        self.core.on_timer(now, fx);
    }

    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.core.turns_done += 1;
        self.core.turn.begin(now);
        self.settle(now, fx);
        if self.core.meets_far {
            self.turn_with_far(now, fx);
        }
        self.flush(now, fx);
        if self.look.is_some() || self.core.is_short_of_memory() {
            self.plan_look(now);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        // A minimum by hand: this is asked once or twice in every turn.
        let mut first = self.timers.peek().map_or(NEVER, |Reverse((at, ..))| *at);
        if self.core.turn.is_over_full() {
            return Some(Instant(0));
        }
        if self.core.meets_far {
            first = first.min(self.next_dial().unwrap_or(NEVER));
        }
        for at in [self.core.op_scan, self.relisten, self.look, self.core.limiters.next_deadline()]
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

#[cfg(test)]
mod tests {
    use super::ended;
    use crate::report::Ended;
    use base::{Op, Status};

    #[test]
    fn what_a_host_aborts_is_no_error_of_the_volume() {
        assert!(matches!(ended(Status::Aborted, Op::Write, 4096), Ended::Other));
        assert!(matches!(ended(Status::Medium, Op::Read, 4096), Ended::Error));
        assert!(matches!(ended(Status::Good, Op::Read, 4096), Ended::Read(4096)));
    }
}
