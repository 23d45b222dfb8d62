//! Slow peers: hosts that start many commands and then send no data, or take none, and perhaps go on as if they had.

use crate::memory::SimMemory;
use base::{
    ConnectionId, Dma, Duration, Effect, Effects, Event, HostCommand, Instant, Machine, Memory, Op, Slice,
};
use load::{Initiator, State};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Bytes of each command.
const LENGTH: u32 = 128 << 10;
/// Bytes of each command of one that presumes: a shard has memory for many of them.
const SHORT: u32 = 4096;
/// Commands under way at a time.
pub const DEPTH: u16 = 128;
/// So often one that dribbles sends a byte.
const DRIP: Duration = Duration::from_secs(1);
/// How long it takes everything that is granted to be granted.
const BRISK: Duration = Duration::from_millis(100);
/// When it takes its commands for answered: they are, then, and wait to be sent.
const ANSWERED: Duration = Duration::from_millis(10);
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
    /// It sends short reads, takes nothing of what they give, and goes on as if all were answered.
    Presumes,
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
    /// Answers that it makes up, when it hears them, and where it reads them; the StatSN of the next one (iSCSI).
    presumed: VecDeque<(Instant, ConnectionId, Vec<u8>)>,
    /// Parts of commands that it has sent, by connection.
    streams: BTreeMap<ConnectionId, Vec<u8>>,
    made_up: Slice,
    stat_sn: Option<u32>,
    made: u32,
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
        let made_up = Slice::new(data.end(), MADE_UP);
        assert!(made_up.end() <= at + bytes, "a host's memory is large enough");
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
            presumed: VecDeque::new(),
            streams: BTreeMap::new(),
            made_up,
            stat_sn: None,
            made: 0,
            over,
            visits: Rc::default(),
        }
    }
    /// Memory that a host of this configuration needs beyond its staging.
    pub fn memory_bytes(config: &load::Config) -> u64 {
        config.memory_bytes() + u64::from(LENGTH) + u64::from(MADE_UP)
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
            Habit::Deaf | Habit::Presumes => {}
        }
    }
    /// So many bytes were sent: an answer to each command among them, which failed.
    fn presume(&mut self, now: Instant, connection: ConnectionId, bytes: u32) {
        let mut parts = vec![];
        self.initiator.segments(connection, usize::MAX, &mut parts);
        let sent = parts.iter().flat_map(|part| self.memory.bytes(*part).to_vec()).take(bytes as usize);
        let stream = self.streams.entry(connection).or_default();
        stream.extend(sent);
        let header = if self.initiator.is_nvme() { CAPSULE } else { BHS };
        let whole = stream.len() - stream.len() % header;
        let mut answers = vec![];
        for command in stream[..whole].chunks_exact(header) {
            if self.initiator.is_nvme() {
                answers.extend(nvme_failure(command));
                self.made += 1;
            } else if command[0] & 0x3f == SCSI_COMMAND {
                let expected = u32::from_be_bytes([command[28], command[29], command[30], command[31]]);
                let stat_sn = self.stat_sn.get_or_insert(expected);
                answers.extend(iscsi_failure(command, *stat_sn));
                *stat_sn = stat_sn.wrapping_add(1);
                self.made += 1;
            }
        }
        stream.drain(..whole);
        self.presumed.push_back((now + ANSWERED, connection, answers));
    }
    /// It hears the answers that it made up.
    fn hear_presumed(&mut self, now: Instant, own: &mut Effects<()>) {
        while let Some((_, connection, answers)) = self.presumed.pop_front_if(|(at, ..)| *at <= now) {
            for some in answers.chunks(MADE_UP as usize) {
                let data = self.made_up.head(some.len() as u32);
                self.memory.bytes_mut(data).copy_from_slice(some);
                let mut heard = vec![];
                let event = Event::Received { connection, data };
                self.initiator.on_event(now, &event, &mut self.memory, &mut heard);
                self.initiator.end_of_turn(now, &mut self.memory, &mut heard);
                own.extend(heard.into_iter().filter(|e| !matches!(e, Effect::Recycle { .. })));
            }
        }
    }
    fn go_on(&mut self, now: Instant, fx: &mut Effects<()>) {
        let mut own = vec![];
        self.hear_presumed(now, &mut own);
        self.initiator.end_of_turn(now, &mut self.memory, &mut own);
        while self.initiator.next_done().is_some() {}
        match self.initiator.state() {
            State::Idle => self.initiator.start(now),
            State::Down(_) => {
                self.ready = None;
                self.next_drip = None;
                self.kept.clear();
                self.drips.clear();
                self.presumed.clear();
                self.streams.clear();
                self.stat_sn = None;
                self.made = 0;
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
                let (op, length) = match self.habit {
                    Habit::Withholds | Habit::Dribbles => (Op::Write, LENGTH),
                    Habit::Deaf => (Op::Read, LENGTH),
                    Habit::Presumes => (Op::Read, SHORT),
                };
                while self.initiator.free() > 0 {
                    let blocks = length / 4096;
                    self.next_id = self.next_id.wrapping_add(1);
                    let (data, at) = (self.data.head(length), self.at);
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
                Effect::Receive { connection, .. } if self.presumes() && !self.is_admin(connection) => {}
                effect => fx.push(effect),
            }
        }
    }
    fn presumes(&self) -> bool {
        self.habit == Habit::Presumes && self.ready.is_some()
    }
}

/// Bytes of a command on the wire: without data and digests.
const CAPSULE: usize = 72;
const BHS: usize = 48;
/// Operation code (RFC 7143 11.2.1.2).
const SCSI_COMMAND: u8 = 0x01;
/// Room for answers that are made up, bytes: for those of a queue full of commands.
const MADE_UP: u32 = DEPTH as u32 * BHS as u32;

/// So many of them in a visit: several queues full.
const MADE_MAX: u32 = 10 * DEPTH as u32;

/// A response capsule (NVMe/TCP 3.6.2.3): LBA Out of Range, not to be retried.
fn nvme_failure(command: &[u8]) -> [u8; 24] {
    let mut pdu = [0; 24];
    [pdu[0], pdu[2], pdu[4]] = [5, 24, 24];
    pdu[20..22].copy_from_slice(&command[10..12]);
    pdu[22..24].copy_from_slice(&((0x4080u16) << 1).to_le_bytes());
    pdu
}

/// A SCSI Response (RFC 7143 11.4): BUSY, with a window of `DEPTH` commands.
fn iscsi_failure(command: &[u8], stat_sn: u32) -> [u8; BHS] {
    let mut pdu = [0; BHS];
    [pdu[0], pdu[1], pdu[3]] = [0x21, 0x80, 0x08];
    pdu[16..20].copy_from_slice(&command[16..20]);
    let cmd_sn = u32::from_be_bytes([command[24], command[25], command[26], command[27]]);
    let counters = [stat_sn, cmd_sn.wrapping_add(1), cmd_sn.wrapping_add(u32::from(DEPTH))];
    for (at, counter) in [24, 28, 32].into_iter().zip(counters) {
        pdu[at..at + 4].copy_from_slice(&counter.to_be_bytes());
    }
    pdu
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
                if let Event::Sent { connection, bytes } = event
                    && self.presumes()
                    && !self.is_admin(connection)
                    && self.made < MADE_MAX
                {
                    self.presume(now, connection, bytes);
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
        let presumed = self.presumed.front().map(|(at, ..)| *at);
        [self.initiator.next_deadline(), self.retry_at, drip, presumed].into_iter().flatten().min()
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
