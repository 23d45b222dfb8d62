//! Slow peers: hosts that start many commands and then send no data, or take none.

use crate::memory::SimMemory;
use base::{
    ConnectionId, Dma, Duration, Effect, Effects, Event, HostCommand, Instant, Machine, Memory, Op, Slice,
};
use load::{Initiator, State};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes of each command.
const LENGTH: u32 = 128 << 10;
/// Commands under way at a time.
pub const DEPTH: u16 = 128;
/// So often one that dribbles sends a byte.
const DRIP: Duration = Duration::from_secs(1);
/// How long it takes everything that is granted to be granted.
const BRISK: Duration = Duration::from_millis(100);
/// Until it comes again, once it was cut off.
const RETURN: Duration = Duration::from_millis(5);

/// What a slow peer does once it is let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Habit {
    /// It sends writes, and never their data.
    Withholds,
    /// It sends writes, and a byte of their data now and then.
    Dribbles,
    /// It sends reads, and takes nothing of what they give.
    Deaf,
}

/// A host with such a habit, on a volume of its own.
pub struct SlowPeer {
    initiator: Initiator,
    habit: Habit,
    memory: SimMemory,
    data: Slice,
    staging: u64,
    next_id: u32,
    /// The first block of all its commands.
    pub at: u64,
    /// When it was let in, and what has come since.
    ready: Option<Instant>,
    kept: Vec<Event<()>>,
    /// Sends that wait for their drip.
    drips: Vec<ConnectionId>,
    next_drip: Option<Instant>,
    retry_at: Option<Instant>,
    /// For the script: the host is to go.
    over: Rc<Cell<bool>>,
    /// How often it was let in.
    pub visits: Rc<Cell<u64>>,
}

impl SlowPeer {
    /// A host with memory `[at, at + bytes)`, of which the first `staging` bytes are the world's. It goes when
    /// `over` is set.
    pub fn new(
        config: load::Config,
        habit: Habit,
        memory: (u64, u64),
        staging: u64,
        over: Rc<Cell<bool>>,
    ) -> Self {
        let (at, bytes) = memory;
        let data = Slice::new(at + staging + config.memory_bytes(), LENGTH);
        assert!(data.end() <= at + bytes, "a host's memory is large enough");
        Self {
            initiator: Initiator::new(config, 0, at + staging),
            habit,
            memory: SimMemory::new(at, bytes),
            data,
            staging,
            next_id: 0,
            at: 0,
            ready: None,
            kept: vec![],
            drips: vec![],
            next_drip: None,
            retry_at: None,
            over,
            visits: Rc::default(),
        }
    }
    /// Memory that a host of this configuration needs beyond its staging.
    pub fn memory_bytes(config: &load::Config) -> u64 {
        config.memory_bytes() + u64::from(LENGTH)
    }
    /// An admin connection is served as it should be.
    fn is_admin(&self, connection: ConnectionId) -> bool {
        self.initiator.is_nvme() && connection.slot() == 0
    }
    fn dribbles(&self, now: Instant) -> bool {
        self.habit == Habit::Dribbles && self.ready.is_some_and(|at| now >= at + BRISK)
    }
    /// What arrives once it is let in.
    fn keep(&mut self, connection: ConnectionId, data: Slice, fx: &mut Effects<()>) {
        match self.habit {
            Habit::Withholds => {
                let start = self.memory.extent().0;
                if data.at < start + self.staging {
                    fx.push(Effect::Recycle { data });
                }
                fx.push(Effect::Receive { connection, into: None, most: u32::MAX, batch: 0 });
            }
            Habit::Dribbles => self.kept.push(Event::Received { connection, data }),
            // Nothing more is received.
            Habit::Deaf => {}
        }
    }
    fn go_on(&mut self, now: Instant, fx: &mut Effects<()>) {
        let mut own = vec![];
        self.initiator.end_of_turn(now, &mut self.memory, &mut own);
        while self.initiator.next_done().is_some() {}
        match self.initiator.state() {
            State::Idle => self.initiator.start(now),
            State::Down(_) => {
                self.ready = None;
                self.next_drip = None;
                self.kept.clear();
                self.drips.clear();
                if self.over.get() {
                    self.retry_at = None;
                } else if *self.retry_at.get_or_insert(now + RETURN) <= now {
                    self.retry_at = None;
                    self.initiator.start(now);
                }
            }
            State::Ready if self.over.get() => self.initiator.reset(&mut own),
            State::Ready => {
                if self.ready.is_none() {
                    self.ready = Some(now);
                    self.visits.set(self.visits.get() + 1);
                }
                let op = if self.habit == Habit::Deaf { Op::Read } else { Op::Write };
                while self.initiator.free() > 0 {
                    let blocks = LENGTH / 4096;
                    self.next_id = self.next_id.wrapping_add(1);
                    let (data, at) = (self.data, self.at);
                    let command = HostCommand { id: self.next_id, op, at, blocks, fua: false, data };
                    if !self.initiator.submit(&command, &mut self.memory) {
                        break;
                    }
                }
                if self.dribbles(now) {
                    for event in core::mem::take(&mut self.kept) {
                        self.initiator.on_event(now, &event, &mut self.memory, &mut own);
                    }
                    if self.next_drip.is_none_or(|at| at <= now) {
                        self.next_drip = Some(now + DRIP);
                        fx.extend(self.drips.drain(..).map(|connection| Effect::Send { connection }));
                    }
                }
            }
            State::Starting | State::Stopping | State::Closing => {}
        }
        self.initiator.end_of_turn(now, &mut self.memory, &mut own);
        for effect in own {
            match effect {
                Effect::Send { connection } if self.dribbles(now) && !self.is_admin(connection) => {
                    self.drips.push(connection);
                }
                effect => fx.push(effect),
            }
        }
    }
}

impl Machine for SlowPeer {
    type Mail = ();
    fn on_event(&mut self, now: Instant, event: Event<()>, fx: &mut Effects<()>) {
        match event {
            Event::Received { connection, data } if self.ready.is_some() && !self.is_admin(connection) => {
                if !self.dribbles(now) {
                    return self.keep(connection, data, fx);
                }
                self.initiator.on_event(now, &Event::Received { connection, data }, &mut self.memory, fx);
            }
            event => {
                if let Event::Broken { connection } | Event::Closed { connection } = &event {
                    self.drips.retain(|c| c != connection);
                }
                self.initiator.on_event(now, &event, &mut self.memory, fx);
            }
        }
    }
    fn on_timer(&mut self, now: Instant, fx: &mut Effects<()>) {
        if self.initiator.next_deadline().is_some_and(|at| at <= now) {
            self.initiator.on_timer(now, fx);
        }
    }
    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<()>) {
        self.go_on(now, fx);
    }
    fn next_deadline(&self) -> Option<Instant> {
        let drips = self.habit == Habit::Dribbles && self.initiator.state() == State::Ready;
        let drip = self.ready.filter(|_| drips);
        let drip = drip.map(|at| self.next_drip.unwrap_or(at + BRISK));
        [self.initiator.next_deadline(), self.retry_at, drip].into_iter().flatten().min()
    }
    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        let before = out.len();
        self.initiator.segments(connection, max, out);
        if self.next_drip.is_some() && !self.is_admin(connection) {
            out.truncate(before + 1);
            out[before..].iter_mut().for_each(|s| *s = s.head(1));
        }
    }
}

impl Dma for SlowPeer {
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        let (start, bytes) = self.memory.extent();
        let inside = start <= data.at && data.end() <= start + bytes;
        if inside {
            with(self.memory.bytes_mut(data));
        }
        inside
    }
}
