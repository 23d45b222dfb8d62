//! One session with a target, in either protocol, behind one small door.
//!
//! The owner is a `base::Machine` (the load generator, a simulated host). It
//!
//! - makes an [`Initiator`] from a [`Config`], a range of connection slots that is the initiator's alone
//!   (`first_slot .. first_slot + config.links()`), and `config.memory_bytes()` bytes of its region;
//! - calls `start`, hands it every event (`on_event` says whether it was the initiator's), calls
//!   `end_of_turn` once per turn and `on_timer` at `next_deadline`, and answers `Machine::segments`
//!   with `segments`;
//! - submits commands while `free() > 0`, and takes their ends from `next_done`;
//! - looks at `state()` after `end_of_turn`: `Ready` takes commands; `Down` says why it ended, after
//!   every command under way has ended in `ConnectionLost`. `start` then begins anew.
//!
//! `HostDone` comes only when the kernel has let go of the data of the command, so the owner may use it at once.

use crate::fault::PlanFault;
use base::front::ControllerLife;
use base::view::Secret;
use base::{
    ConnectionId, Duration, Effect, Effects, Event, HostCommand, HostDone, HostIo, HostStatus, Instant,
    Memory, NetError, Outbox, Slice, Want,
};
use core::net::SocketAddr;
use iscsi::initiator::Credential;
use std::collections::VecDeque;

/// Whom to talk to, and as whom.
#[derive(Clone, Debug)]
pub struct Config {
    /// The target's address.
    pub peer: SocketAddr,
    /// Protocol and identities.
    pub target: Target,
}

/// Protocol and identities.
#[derive(Clone, Debug)]
pub enum Target {
    /// NVMe/TCP: an admin connection and `queues` I/O connections.
    Nvme(nvme::host::Config),
    /// iSCSI: one connection.
    Iscsi(iscsi::initiator::Config),
}

impl Config {
    /// Connections that a session has at most.
    pub fn links(&self) -> u16 {
        match &self.target {
            Target::Nvme(c) if c.is_discovery() => 1,
            Target::Nvme(c) => 1 + c.queues,
            Target::Iscsi(_) => 1,
        }
    }
    /// Connections that carry block commands.
    pub fn io_links(&self) -> u16 {
        match &self.target {
            Target::Nvme(_) => self.links() - 1,
            Target::Iscsi(_) => u16::from(!self.is_discovery()),
        }
    }
    /// Commands under way on one connection, at most.
    pub fn depth(&self) -> u16 {
        match &self.target {
            Target::Nvme(c) => c.depth,
            Target::Iscsi(c) => c.depth,
        }
    }
    /// Memory of the region that the session needs, bytes.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.ring_bytes()) * u64::from(self.links())
    }
    /// Whether this is a discovery session.
    pub fn is_discovery(&self) -> bool {
        match &self.target {
            Target::Nvme(c) => c.is_discovery(),
            Target::Iscsi(c) => c.target.is_none(),
        }
    }
    /// `nvme` or `iscsi`.
    pub fn protocol(&self) -> &'static str {
        match &self.target {
            Target::Nvme(_) => "nvme",
            Target::Iscsi(_) => "iscsi",
        }
    }
    /// The target's name; empty for iSCSI discovery.
    pub fn target_name(&self) -> &str {
        match &self.target {
            Target::Nvme(c) => &c.subsystem,
            Target::Iscsi(c) => c.target.as_deref().unwrap_or(""),
        }
    }
    /// Checks the figures.
    pub fn check(&self) -> Result<(), PlanFault> {
        if !(1..=1023).contains(&self.depth()) {
            return Err(PlanFault::Depth { depth: self.depth() });
        }
        match &self.target {
            Target::Nvme(c) if !(1..=1024).contains(&c.queues) => Err(PlanFault::Queues { queues: c.queues }),
            Target::Nvme(c) if c.host_nqn.len() > 223 || c.subsystem.len() > 223 => Err(PlanFault::NqnLong),
            Target::Iscsi(c) if c.initiator.is_empty() || c.initiator.len() > 223 => {
                Err(PlanFault::InitiatorName)
            }
            Target::Iscsi(c) if c.mutual.is_some() && c.chap.is_none() => Err(PlanFault::MutualAlone),
            Target::Nvme(_) | Target::Iscsi(_) => Ok(()),
        }
    }
    /// An outbox holds every header of a full queue, a login, and a block of zeroes.
    fn ring_bytes(&self) -> u32 {
        (24 * 1024 + u32::from(self.depth()) * 128).next_multiple_of(4096)
    }
}

/// The volume as the target describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VolumeInfo {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Size in blocks; 0 once it is gone.
    pub blocks: u64,
    /// Largest transfer of one command, bytes.
    pub transfer_max: u32,
    /// NGUID or NAA designator.
    pub id: [u8; 16],
    /// Grows each time the target said that something changed and it was looked at again.
    pub changes: u64,
}

/// Why a session is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Down {
    /// `stop` was called.
    Stopped,
    /// No connection could be made.
    Unreachable(NetError),
    /// A connection broke.
    Broken,
    /// Not ready in time, or no good-bye in time.
    TimedOut,
    /// The owner gave it up (`reset`).
    Reset,
    /// NVMe says why.
    Nvme(nvme::host::Error),
    /// iSCSI says why.
    Iscsi(iscsi::initiator::Error),
}

impl Down {
    /// Whether trying again is of little use: the target answered and said no.
    pub fn is_refusal(&self) -> bool {
        match self {
            Down::Nvme(e) => {
                matches!(e, nvme::host::Error::Refused { .. } | nvme::host::Error::Incapable(_))
            }
            Down::Iscsi(e) => matches!(
                e,
                iscsi::initiator::Error::LoginRefused(_)
                    | iscsi::initiator::Error::NotTheTarget
                    | iscsi::initiator::Error::Refused { .. }
                    | iscsi::initiator::Error::Incapable(_)
            ),
            Down::Stopped | Down::Unreachable(_) | Down::Broken | Down::TimedOut | Down::Reset => false,
        }
    }
}

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not started.
    Idle,
    /// Connecting and logging in.
    Starting,
    /// Takes commands (or, on discovery, has its findings).
    Ready,
    /// Says good-bye.
    Stopping,
    /// Waits for its connections to end.
    Closing,
    /// Over; `start` begins anew.
    Down(Down),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Closed,
    Connecting,
    Open,
    Closing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Receive {
    None,
    Staging,
    Direct,
}

#[derive(Debug)]
struct Link {
    generation: u32,
    phase: Phase,
    outbox: Outbox,
    sending: bool,
    receiving: Receive,
}

#[derive(Debug)]
enum Session {
    Nvme(Box<nvme::host::Session>),
    Iscsi(Box<iscsi::initiator::Session>),
}

/// One session with a target. See the module for how to use it.
#[derive(Debug)]
pub struct Initiator {
    config: Config,
    first_slot: u32,
    session: Session,
    links: Vec<Link>,
    done: VecDeque<HostDone>,
    state: State,
    /// Why it closes.
    down: Down,
    deadline: Option<Instant>,
    turn: u16,
}

/// Longest time from `start` to Ready, and from `stop` to the last answer.
pub const START_MAX: Duration = Duration::from_secs(20);
/// Bytes of an outbox that the largest command takes.
const COMMAND_ROOM: u32 = 4096 + 512;
const STOP_MAX: Duration = Duration::from_secs(2);

struct Io<'a, M> {
    memory: &'a mut M,
    outbox: &'a mut Outbox,
    done: &'a mut VecDeque<HostDone>,
    connection: u16,
}

impl<M: Memory> HostIo for Io<'_, M> {
    fn bytes(&self, data: Slice) -> &[u8] {
        self.memory.bytes(data)
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.memory.bytes_mut(data)
    }
    fn copy(&mut self, from: Slice, to: Slice) {
        self.memory.copy(from, to);
    }
    fn room(&self) -> u32 {
        self.outbox.room()
    }
    fn header(&mut self, bytes: &[u8]) {
        self.outbox.header(self.memory, bytes);
    }
    fn payload(&mut self, data: Slice) {
        self.outbox.payload(data);
    }
    fn pending(&self) -> u64 {
        self.outbox.pending()
    }
    fn done(&mut self, id: u32, status: HostStatus) {
        self.done.push_back(HostDone { id, connection: self.connection, status });
    }
}

/// Calls the session with the `HostIo` of link `$link`.
macro_rules! with {
    ($self:ident, $link:expr, $memory:expr, $nvme:ident => $n:expr, $iscsi:ident => $i:expr, $io:ident) => {{
        let first_io = match $self.session {
            Session::Nvme(_) => 1,
            Session::Iscsi(_) => 0,
        };
        let link: u16 = $link;
        let mut io = Io {
            memory: $memory,
            outbox: &mut $self.links[usize::from(link)].outbox,
            done: &mut $self.done,
            connection: link.saturating_sub(first_io),
        };
        let $io = &mut io;
        match &mut $self.session {
            Session::Nvme($nvme) => $n,
            Session::Iscsi($iscsi) => $i,
        }
    }};
}

impl Initiator {
    /// Whether it speaks NVMe: then its first connection is the admin queue's.
    pub fn is_nvme(&self) -> bool {
        matches!(self.session, Session::Nvme(_))
    }
    /// A session that has not begun. `at` is where its `config.memory_bytes()` bytes begin.
    pub fn new(config: Config, first_slot: u32, at: u64) -> Self {
        let (n, ring) = (config.links(), config.ring_bytes());
        let parts = usize::from(config.depth()) * 4 + 64;
        let link = |i: u16| Link {
            generation: 0,
            phase: Phase::Closed,
            outbox: Outbox::new(Slice::new(at + u64::from(ring) * u64::from(i), ring), parts),
            sending: false,
            receiving: Receive::None,
        };
        let commands = usize::from(config.depth()) * usize::from(n);
        Self {
            first_slot,
            session: match &config.target {
                Target::Nvme(c) => Session::Nvme(Box::new(nvme::host::Session::new(c.clone()))),
                Target::Iscsi(c) => Session::Iscsi(Box::new(iscsi::initiator::Session::new(c.clone()))),
            },
            links: (0..n).map(link).collect(),
            done: VecDeque::with_capacity(commands + 8),
            state: State::Idle,
            down: Down::Stopped,
            deadline: None,
            turn: 0,
            config,
        }
    }
    /// From its next session on, an iSCSI host proves this secret, or none. Nothing happens while a session is up.
    pub fn prove(&mut self, secret: Option<&Secret>) {
        let Target::Iscsi(config) = &mut self.config.target else { return };
        if config.chap.as_ref().map(|c| &c.secret) == secret
            || !matches!(self.state, State::Idle | State::Down(_))
        {
            return;
        }
        let credential =
            |secret: &Secret| Credential { name: config.initiator.clone(), secret: secret.clone() };
        config.chap = secret.map(credential);
        self.session = Session::Iscsi(Box::new(iscsi::initiator::Session::new(config.clone())));
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }
    /// The volume; all zero before the first Ready.
    pub fn info(&self) -> VolumeInfo {
        match &self.session {
            Session::Nvme(s) => {
                let n = s.namespace();
                let (block_bytes, blocks, transfer_max) = (n.block_bytes, n.blocks, n.transfer_max);
                VolumeInfo { block_bytes, blocks, transfer_max, id: n.nguid, changes: s.changes() }
            }
            Session::Iscsi(s) => {
                let u = s.unit();
                let (block_bytes, blocks, transfer_max) = (u.block_bytes, u.blocks, u.transfer_max);
                VolumeInfo { block_bytes, blocks, transfer_max, id: u.naa, changes: s.changes() }
            }
        }
    }
    /// What an NVMe discovery session found.
    pub fn nvme_records(&self) -> &[nvme::host::DiscoveryRecord] {
        match &self.session {
            Session::Nvme(s) => s.records(),
            Session::Iscsi(_) => &[],
        }
    }
    /// What an iSCSI discovery session found.
    pub fn iscsi_targets(&self) -> &[iscsi::initiator::FoundTarget] {
        match &self.session {
            Session::Nvme(_) => &[],
            Session::Iscsi(s) => s.found(),
        }
    }
    /// Begins: connections are asked for at the next `end_of_turn`. Only when Idle or Down.
    pub fn start(&mut self, now: Instant) {
        assert!(matches!(self.state, State::Idle | State::Down(_)), "a session begins once at a time");
        match &mut self.session {
            Session::Nvme(s) => s.start(),
            Session::Iscsi(s) => s.start(),
        }
        self.state = State::Starting;
        self.deadline = Some(now + START_MAX);
    }
    /// Logs out and closes; ends in `Down(Stopped)`. Commands under way end in `ConnectionLost`.
    pub fn stop(&mut self, now: Instant) {
        match self.state {
            State::Idle => self.state = State::Down(Down::Stopped),
            State::Starting | State::Ready => {
                match &mut self.session {
                    Session::Nvme(s) => s.stop(),
                    Session::Iscsi(s) => s.stop(),
                }
                self.state = State::Stopping;
                self.deadline = Some(now + STOP_MAX);
            }
            State::Stopping | State::Closing | State::Down(_) => {}
        }
    }
    /// Closes every connection at once, without good-bye; ends in `Down(Reset)`.
    pub fn reset<X>(&mut self, fx: &mut Effects<X>) {
        if matches!(self.state, State::Starting | State::Ready | State::Stopping) {
            self.fail(Down::Reset, fx);
        }
    }
    /// I/O connections, and commands under way on each of them at most: what was asked for, or what the target
    /// grants, once it has said so.
    pub fn granted(&self) -> (u16, u16) {
        match &self.session {
            Session::Nvme(s) => (s.io_links(), s.depth()),
            Session::Iscsi(_) => (self.config.io_links(), self.config.depth()),
        }
    }
    /// Commands that can be submitted now.
    pub fn free(&self) -> u32 {
        match (&self.session, self.state) {
            (Session::Nvme(s), State::Ready) => (1..=s.io_links()).map(|l| u32::from(s.free(l))).sum(),
            (Session::Iscsi(s), State::Ready) => u32::from(s.free()),
            _ => 0,
        }
    }
    /// Whether every connection's outbox has room for any command: its header, and a block of zeroes that it brings.
    /// Else `submit` may say no until more was sent.
    pub fn has_room(&self) -> bool {
        self.links.iter().all(|l| l.outbox.room() >= COMMAND_ROOM)
    }
    /// Submits a command on the connection with the most room; false if there is none now. What it puts
    /// into an outbox is sent at `end_of_turn`. For Read, Write and Compare `c.data` must be as long as
    /// the blocks, and at most `transfer_max` bytes.
    pub fn submit(&mut self, c: &HostCommand, memory: &mut impl Memory) -> bool {
        if self.state != State::Ready {
            return false;
        }
        let link = match &self.session {
            Session::Iscsi(_) => 0,
            Session::Nvme(s) => {
                let n = s.io_links();
                let (mut best, mut most) = (0, 0);
                for i in 0..n {
                    let link = 1 + (self.turn + i) % n;
                    if s.free(link) > most {
                        best = link;
                        most = s.free(link);
                    }
                }
                if best == 0 {
                    return false;
                }
                self.turn = best % n;
                best
            }
        };
        with!(self, link, memory, s => s.submit(link, c, io), s => s.submit(c, io), io)
    }
    /// Asks the target to abort command `id`, which still ends by `next_done`: with `Aborted` or with
    /// how it ended. False if it is not under way.
    pub fn abort(&mut self, id: u32) -> bool {
        match &mut self.session {
            Session::Nvme(s) => s.abort(id),
            Session::Iscsi(s) => s.abort(id),
        }
    }
    /// Asks the target to end all commands on the volume, those of other hosts too, by CLEAR TASK SET or by a reset of the logical unit;
    /// those of this session end by `next_done`. False if that cannot be asked now, or not by this protocol.
    pub fn clear(&mut self, reset: bool) -> bool {
        match &mut self.session {
            Session::Nvme(_) => false,
            Session::Iscsi(s) => self.state == State::Ready && s.clear(reset),
        }
    }
    /// What another controller of the target knows this session's by, if it is Ready and can be ended so (NVMe's Cross-Controller Reset).
    pub fn life(&self) -> Option<ControllerLife> {
        match &self.session {
            Session::Nvme(s) if self.state == State::Ready => s.life(),
            Session::Nvme(_) | Session::Iscsi(_) => None,
        }
    }
    /// Has the target end another controller of ours. False: it cannot now. The answer comes by `take_reset`, if this session lives.
    pub fn reset_other(&mut self, life: ControllerLife) -> bool {
        match &mut self.session {
            Session::Nvme(s) => self.state == State::Ready && s.reset_other(life),
            Session::Iscsi(_) => false,
        }
    }
    /// Whether the other controller is over, and all that it had under way; once it is answered.
    pub fn take_reset(&mut self) -> Option<bool> {
        match &mut self.session {
            Session::Nvme(s) => s.take_reset(),
            Session::Iscsi(_) => None,
        }
    }
    /// The next command that ended.
    pub fn next_done(&mut self) -> Option<HostDone> {
        self.done.pop_front()
    }
    /// Whether `connection` is one of the session's, past or present.
    pub fn owns(&self, connection: ConnectionId) -> bool {
        let slot = connection.slot() as u64;
        let first = u64::from(self.first_slot);
        (first..first + self.links.len() as u64).contains(&slot)
    }
    /// Something happened. False if it was not about one of the session's connections.
    pub fn on_event<X>(
        &mut self,
        now: Instant,
        event: &Event<X>,
        memory: &mut impl Memory,
        fx: &mut Effects<X>,
    ) -> bool {
        let connection = match event {
            Event::Connected { connection, .. }
            | Event::Received { connection, .. }
            | Event::Sent { connection, .. }
            | Event::Broken { connection }
            | Event::Closed { connection } => *connection,
            Event::Accepted { .. }
            | Event::DriveDone { .. }
            | Event::DriveOpened { .. }
            | Event::DriveInspected { .. }
            | Event::Fenced { .. }
            | Event::DriveClosed { .. }
            | Event::Listening { .. }
            | Event::State { .. }
            | Event::Mail { .. } => return false,
        };
        if !self.owns(connection) {
            return false;
        }
        let link = (connection.slot() as u32 - self.first_slot) as u16;
        let at = usize::from(link);
        if connection != self.id(link) {
            // An earlier use of the slot: nothing of it is ours any more.
            return true;
        }
        match event {
            Event::Connected { result, .. } if self.links[at].phase == Phase::Connecting => match result {
                Ok(()) => {
                    self.links[at].phase = Phase::Open;
                    with!(self, link, memory, s => s.on_connected(link, io), s => s.on_connected(io), io);
                }
                Err(e) => {
                    self.links[at].phase = Phase::Closed;
                    self.fail(Down::Unreachable(*e), fx);
                }
            },
            Event::Connected { result, .. } => {
                // Close was asked for first. A connection that never stood has nothing to close.
                if result.is_err() && self.links[at].phase == Phase::Closing {
                    self.links[at].phase = Phase::Closed;
                }
            }
            Event::Received { data, .. } => {
                let how = core::mem::replace(&mut self.links[at].receiving, Receive::None);
                let open = self.links[at].phase == Phase::Open && self.state != State::Closing;
                match how {
                    Receive::Staging => {
                        if open {
                            with!(self, link, memory,
                                s => s.on_bytes(now, link, *data, io), s => s.on_bytes(now, *data, io), io);
                        }
                        fx.push(Effect::Recycle { data: *data });
                    }
                    Receive::Direct if open => {
                        with!(self, link, memory,
                            s => s.on_direct(link, data.len, io), s => s.on_direct(data.len, io), io);
                    }
                    Receive::Direct | Receive::None => {}
                }
            }
            Event::Sent { bytes, .. } => {
                let l = &mut self.links[at];
                l.sending = false;
                l.outbox.on_sent(*bytes, |_| ());
                if l.phase == Phase::Open {
                    with!(self, link, memory, s => s.on_sent(link, io), s => s.on_sent(io), io);
                }
            }
            Event::Broken { .. } => self.fail(Down::Broken, fx),
            Event::Closed { .. } => self.links[at].phase = Phase::Closed,
            _ => unreachable!("filtered above"),
        }
        true
    }
    /// `next_deadline` has been reached.
    pub fn on_timer<X>(&mut self, now: Instant, fx: &mut Effects<X>) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.deadline = None;
            self.fail(Down::TimedOut, fx);
        }
    }
    /// When it wants to be woken without an event.
    pub fn next_deadline(&self) -> Option<Instant> {
        let own = match (&self.session, self.state) {
            (_, State::Idle | State::Down(_) | State::Closing) => None,
            (Session::Nvme(s), _) => s.next_deadline(),
            (Session::Iscsi(s), _) => s.next_deadline(),
        };
        [own, self.deadline].into_iter().flatten().min()
    }
    /// Every event of the turn was delivered and every command submitted: goes on with the session, and
    /// asks for receives and sends. Call it again if commands are submitted afterwards.
    pub fn end_of_turn<X>(&mut self, now: Instant, memory: &mut impl Memory, fx: &mut Effects<X>) {
        if matches!(self.state, State::Starting | State::Ready | State::Stopping) {
            self.advance(now, memory, fx);
        }
        for link in 0..self.links.len() as u16 {
            let id = self.id(link);
            let want = match &self.session {
                Session::Nvme(s) => s.want(link),
                Session::Iscsi(s) => s.want(),
            };
            let l = &mut self.links[usize::from(link)];
            if l.phase != Phase::Open {
                continue;
            }
            if l.receiving == Receive::None {
                let into = match want {
                    Want::Direct(slice) => Some(slice),
                    Want::Staging | Want::Header(_) | Want::Nothing => None,
                };
                l.receiving = if into.is_some() { Receive::Direct } else { Receive::Staging };
                fx.push(Effect::Receive { connection: id, into, most: u32::MAX, batch: 0 });
            }
            if l.outbox.pending() > 0 && !l.sending {
                l.sending = true;
                fx.push(Effect::Send { connection: id });
            }
        }
        if self.state == State::Closing && self.links.iter().all(|l| l.phase == Phase::Closed) {
            // Nothing of any connection is left in the kernel: now the commands' data is free.
            for link in 0..self.links.len() as u16 {
                let l = &mut self.links[usize::from(link)];
                l.outbox.clear(|_| ());
                l.sending = false;
                l.receiving = Receive::None;
                with!(self, link, memory, s => s.on_lost(link, io), s => s.on_lost(io), io);
            }
            self.state = State::Down(self.down);
            self.deadline = None;
        }
    }
    /// For `Machine::segments`.
    pub fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        let link = connection.slot() as u32 - self.first_slot;
        out.extend(self.links[link as usize].outbox.segments().take(max));
    }

    fn id(&self, link: u16) -> ConnectionId {
        ConnectionId::new(self.first_slot + u32::from(link), self.links[usize::from(link)].generation)
    }
    fn advance<X>(&mut self, now: Instant, memory: &mut impl Memory, fx: &mut Effects<X>) {
        with!(self, 0, memory, s => s.on_link0(now, io), s => s.pump(now, io), io);
        let (error, ready, ended, wanted) = match &self.session {
            Session::Nvme(s) => (s.error().map(Down::Nvme), s.is_ready(), s.is_ended(), s.links_wanted()),
            Session::Iscsi(s) => {
                (s.error().map(Down::Iscsi), s.is_ready(), s.is_ended(), u16::from(s.link_wanted()))
            }
        };
        if let Some(down) = error {
            return self.fail(down, fx);
        }
        if ended {
            return self.fail(Down::Stopped, fx);
        }
        if ready && self.state == State::Starting {
            self.state = State::Ready;
            self.deadline = None;
        }
        for link in 0..wanted {
            let l = &mut self.links[usize::from(link)];
            if l.phase == Phase::Closed {
                l.generation = l.generation.wrapping_add(1);
                l.phase = Phase::Connecting;
                l.sending = false;
                l.receiving = Receive::None;
                fx.push(Effect::Connect { connection: self.id(link), peer: self.config.peer });
            }
        }
    }
    /// Closes what stands; the first reason counts.
    fn fail<X>(&mut self, down: Down, fx: &mut Effects<X>) {
        if matches!(self.state, State::Closing | State::Down(_) | State::Idle) {
            return;
        }
        self.down = if self.state == State::Stopping { Down::Stopped } else { down };
        self.state = State::Closing;
        self.deadline = None;
        for link in 0..self.links.len() as u16 {
            let id = self.id(link);
            let l = &mut self.links[usize::from(link)];
            if matches!(l.phase, Phase::Open | Phase::Connecting) {
                if l.phase == Phase::Open && l.outbox.pending() > 0 && !l.sending {
                    // A TermReq, if there is one, may still get out.
                    l.sending = true;
                    fx.push(Effect::Send { connection: id });
                }
                l.phase = Phase::Closing;
                fx.push(Effect::Close { connection: id });
            }
        }
    }
}
