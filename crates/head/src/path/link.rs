//! A connection as the shard keeps it: the protocol's machine, and the link that serves it.

use crate::admission::buffer_quota::{Holder, Purpose};
use crate::admission::scheduler::cost_of;
use crate::mail::{Mail, StewardMail, to_steward};
use crate::path::far::{FarFront, is_far};
use crate::path::request::{Phase, Request};
use crate::report::{Counters, Digests, Login, PathId};
use crate::shard::Core;
use crate::shard::{Left, LinkDeadlines};
use base::front::{Close, Intervention};
use base::view::{Portal, Protocol, View};
use base::{
    Answer, Ask, Bug, Command, ConnectionFault, ConnectionId, Duration, Effects, FrontIo, HostId, Instant,
    Memory, Outbox, PortalId, Slice, Status, Tag, Want, planted,
};
use core::net::SocketAddr;
use finding::LoginFate;
use std::collections::VecDeque;

/// How long a connection that this head ends may take to send its last PDU.
pub const CLOSE_LINGER: Duration = Duration::from_secs(5);
/// A connection whose commands cost no more than that in all has little: it waits for each of them.
const LITTLE: u64 = 64 << 10;
const NO_REQUEST: u32 = u32::MAX;
/// Slots for each command that a connection may have under way: an answered command keeps its slot until the kernel has
/// taken the answer, and the host may send the next one meanwhile.
pub const SLOTS_EACH: u32 = 2;

/// The protocol's side of a connection.
pub(crate) enum Front {
    Nvme(Box<nvme::subsystem::Connection>),
    Iscsi(Box<iscsi::node::Connection>),
    Far(Box<FarFront>),
}

/// `$else` is for a connection of the other head's shards, which knows nothing of that.
macro_rules! each {
    ($front:expr, $c:ident => $e:expr) => {
        each!($front, $c => $e, else $c => $e)
    };
    ($front:expr, $c:ident => $e:expr, else $far:ident => $else:expr) => {
        match $front {
            Front::Nvme($c) => $e,
            Front::Iscsi($c) => $e,
            #[allow(unused_variables)]
            Front::Far($far) => $else,
        }
    };
}

impl Front {
    pub fn new(portal: Portal, local: SocketAddr, peer: SocketAddr, seed: u64) -> Self {
        match portal.protocol {
            Protocol::Nvme | Protocol::Discovery => {
                Front::Nvme(Box::new(nvme::subsystem::Connection::new(nvme::subsystem::ConnectionConfig {
                    local,
                    peer,
                    portal,
                    queue_depth_max: crate::limits::QUEUE_DEPTH_MAX,
                    io_queues_max: crate::limits::IO_QUEUES_MAX,
                    seed,
                })))
            }
            Protocol::Iscsi => {
                Front::Iscsi(Box::new(iscsi::node::Connection::new(iscsi::node::ConnectionConfig {
                    local,
                    peer,
                    portal,
                    seed,
                    commands_max: crate::limits::ISCSI_COMMANDS_MAX,
                })))
            }
        }
    }
    /// The most of `outbox_bytes`.
    pub const OUTBOX_BYTES_MAX: u32 = if nvme::subsystem::OUTBOX_BYTES > iscsi::node::OUTBOX_BYTES {
        nvme::subsystem::OUTBOX_BYTES
    } else {
        iscsi::node::OUTBOX_BYTES
    };
    pub fn outbox_bytes(protocol: Protocol) -> u32 {
        match protocol {
            Protocol::Nvme | Protocol::Discovery => nvme::subsystem::OUTBOX_BYTES,
            Protocol::Iscsi => iscsi::node::OUTBOX_BYTES,
        }
    }
    #[inline(always)]
    pub fn want(&self) -> Want {
        each!(self, c => c.want())
    }
    pub fn digests(&self) -> Digests {
        match self {
            Front::Nvme(c) => Digests { header: c.digests().header, data: c.digests().data },
            Front::Iscsi(c) => {
                let (header, data) = c.digests();
                Digests { header, data }
            }
            Front::Far(_) => Digests::default(),
        }
    }
    #[inline(always)]
    pub fn next_deadline(&self) -> Option<Instant> {
        each!(self, c => c.next_deadline())
    }
    pub fn on_bytes<M: Memory>(&mut self, now: Instant, bytes: &[u8], io: &mut Io<'_, M>) -> usize {
        each!(self, c => c.on_bytes(now, bytes, io))
    }
    pub fn on_direct<M: Memory>(&mut self, now: Instant, n: u32, io: &mut Io<'_, M>) {
        each!(self, c => c.on_direct(now, n, io))
    }
    pub fn on_granted<M: Memory>(&mut self, now: Instant, tag: Tag, data: Slice, io: &mut Io<'_, M>) {
        each!(self, c => c.on_granted(now, tag, data, io), else _far => ())
    }
    pub fn on_moved(&mut self, tag: Tag, data: Slice) {
        each!(self, c => c.on_moved(tag, data), else _far => ())
    }
    pub fn on_done<M: Memory>(&mut self, now: Instant, tag: Tag, status: Status, io: &mut Io<'_, M>) {
        each!(self, c => c.on_done(now, tag, status, io), else _far => ())
    }
    pub fn on_sent<M: Memory>(&mut self, now: Instant, io: &mut Io<'_, M>) {
        each!(self, c => c.on_sent(now, io), else _far => ())
    }
    pub fn on_answer<M: Memory>(&mut self, now: Instant, answer: Answer, io: &mut Io<'_, M>) {
        each!(self, c => c.on_answer(now, answer, io), else _far => ())
    }
    pub fn on_intervention<M: Memory>(
        &mut self,
        now: Instant,
        id: u32,
        what: &Intervention,
        io: &mut Io<'_, M>,
    ) {
        each!(self, c => c.on_intervention(now, id, what, io), else _far => ())
    }
    pub fn on_intervened<M: Memory>(&mut self, now: Instant, key: u16, yes: bool, io: &mut Io<'_, M>) {
        each!(self, c => c.on_intervened(now, key, yes, io), else _far => ())
    }
    pub fn on_view<M: Memory>(&mut self, now: Instant, io: &mut Io<'_, M>) {
        each!(self, c => c.on_view(now, io), else _far => ())
    }
    pub fn on_timer<M: Memory>(&mut self, now: Instant, io: &mut Io<'_, M>) {
        each!(self, c => c.on_timer(now, io))
    }
}

/// How far the end of a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// It speaks.
    Open,
    /// We end it: its protocol machine gets no more inputs, its last words go out until then.
    Ending { until: Instant },
    /// `Effect::Close` is under way.
    Closing,
    /// The world has let go; its last commands are at the drives.
    Closed,
}

/// The class in which `accept` counts a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoginState {
    /// It has not asked to be let in, or was refused.
    Unauthenticated,
    /// A discovery session of an unknown host.
    Discovery,
    /// In no class: its host is known and its login is under way, or it is over. It makes room for nobody.
    Uncounted,
    /// A connection of a known host, counted among that host's.
    Host,
}

/// Everything about a connection that is not protocol.
pub(crate) struct Link {
    pub index: u32,
    pub id: ConnectionId,
    pub portal: PortalId,
    pub local: SocketAddr,
    pub peer: SocketAddr,
    pub host: Option<HostId>,
    pub login: Login,
    pub life: Life,
    pub why: Option<Close>,
    /// Without memory until its first answer, which takes `ring_bytes`.
    pub outbox: Outbox,
    pub ring_bytes: u32,
    /// The class that it counts in.
    pub login_state: LoginState,
    /// It has sent something since it was last first in line to make room; see `accept`.
    pub spoke: bool,
    /// Bytes of staging buffers that the protocol has not taken yet: buffer, and how much it took.
    pub staged: VecDeque<(Slice, u32)>,
    /// It stands in line for a turn that has room for them; and how many PDUs came at a time of late.
    pub in_line: bool,
    pub came_last: u32,
    /// What is left of the PDUs that it may send before others have their turn, if it is cut off in their midst.
    pub visit_left: u32,
    /// Bytes that it has sent.
    pub came: u64,
    /// Where the receive under way will put its bytes: None for staging.
    pub receiving: Option<Option<Slice>>,
    pub sending: bool,
    /// In the list of links to look at in the end of this turn.
    pub touched: bool,
    /// It has asked the Steward something, so its end is reported to the Steward.
    pub known: bool,
    /// Earliest wake-up that is in the timer heap.
    pub timer: Option<Instant>,
    /// The request of each tag.
    pub tags: Vec<u32>,
    /// Requests that still exist, with or without a tag, and those of them that have none: their answers are not sent yet.
    pub live: u32,
    pub unsent: u32,
    /// The account of its host in the buffer quota, once it is admitted.
    pub account: u32,
    /// Its bytes lie in a staging buffer, and cannot be taken yet.
    pub stalled: bool,
    /// What it owes, as the last check found.
    pub deadlines: LinkDeadlines,
    pub counters: Counters,
}

/// A connection.
pub(crate) struct Connection {
    pub front: Front,
    pub link: Link,
}

impl Link {
    /// The holder of its buffers, once it is admitted.
    #[inline]
    pub fn holder(&self) -> Holder {
        Holder { account: self.account, link: self.index }
    }
    /// The path that it is a part of, once its host is let in to use volumes.
    pub fn path(&self) -> Option<PathId> {
        let host = self.host.filter(|_| self.login.session.is_some() && !self.login.discovery)?;
        Some(PathId { host, portal: self.portal })
    }
    pub fn request(&self, tag: Tag) -> Option<u32> {
        self.tags.get(tag.index()).copied().filter(|r| *r != NO_REQUEST)
    }
    /// The tag is free for the next command; its request is the caller's to end.
    pub fn forget(&mut self, tag: Tag) -> u32 {
        let index = self.request(tag).expect("a tag that ends was under way");
        self.tags[tag.index()] = NO_REQUEST;
        index
    }
}

/// What a protocol machine sees of the head while it handles one input.
pub(crate) struct Io<'a, M: Memory> {
    pub now: Instant,
    pub core: &'a mut Core<M>,
    pub link: &'a mut Link,
    pub fx: &'a mut Effects<Mail>,
}

impl<M: Memory> Io<'_, M> {
    fn open(&mut self, tag: Tag, phase: Phase, buffer: Option<Slice>, purpose: Purpose) -> u32 {
        assert!(self.link.request(tag).is_none(), "a tag is under way already");
        let (who, now) = (self.link.holder(), self.now);
        let request = || Request { phase, buffer, purpose, ..Request::new(who.link, tag, who.account, now) };
        let Some(index) = self.core.requests.insert_with(request) else {
            panic!("admission reserves slots for every tag, under way and being sent");
        };
        self.link.tags[tag.index()] = index;
        self.link.live += 1;
        index
    }
    /// Opens a request with a buffer, or puts it in line for one.
    #[inline]
    fn take_or_wait(&mut self, tag: Tag, len: u32, purpose: Purpose) -> Option<Slice> {
        let data = self.core.take_in_turn(self.link.holder(), len, purpose);
        match data {
            Some(_) => drop(self.open(tag, Phase::Connection, data, purpose)),
            None => {
                let index = self.open(tag, Phase::Buffer(len), None, purpose);
                self.core.wait_for_memory(index);
            }
        }
        data
    }
    fn touch(&mut self) {
        self.core.touch(self.link);
    }
    /// Ends a connection now: what it has not taken yet, it does not get.
    pub fn cut_off(&mut self, how: Close, why: ConnectionFault) {
        self.send_away(LoginFate::CutOff { why }, how);
        self.hurry();
    }
    /// Last words that its peer has not taken yet are not waited for.
    fn hurry(&mut self) {
        if let Life::Ending { until } = &mut self.link.life {
            *until = self.now;
            self.touch();
        }
    }
    /// Ends a connection whose host may be in order, and reports why.
    pub fn send_away(&mut self, fate: LoginFate, how: Close) {
        if self.link.life == Life::Open {
            self.report_outcome(fate, String::new());
            self.close(how);
        }
    }
    /// Reports how a login, or a connection, came out.
    pub fn report_outcome(&mut self, fate: LoginFate, name: String) {
        let (portal, peer) = (self.link.portal, self.link.peer);
        let mail = StewardMail::LoginOutcome { fate, portal, peer, name };
        self.fx.push(to_steward(mail));
    }
}

impl<M: Memory> FrontIo for Io<'_, M> {
    fn view(&self) -> &View {
        &self.core.view
    }
    fn admit(&mut self, commands_max: u16) -> Result<(), ConnectionFault> {
        assert!(self.link.tags.is_empty(), "a connection is admitted once");
        let left = Left { outputs: self.core.buffers.rings_left(), slots: self.core.slots_left() };
        self.core.limits.may_come(self.link, commands_max, left)?;
        if !self.core.admit(u32::from(commands_max)) {
            return Err(ConnectionFault::NoMemoryForCommands);
        }
        self.link.tags = vec![NO_REQUEST; usize::from(commands_max)];
        self.core.limits.on_admitted(self.link);
        // Who only asks what there is may have no commands, and needs no account of what they hold.
        if commands_max > 0 {
            self.link.account = self.core.quota.open(self.link.host, self.link.index);
        }
        Ok(())
    }
    fn reserve(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        self.take_or_wait(tag, len, Purpose::Asked)
    }
    fn reserve_inline(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        self.take_or_wait(tag, len, Purpose::Unasked)
    }
    fn reserve_spare(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        let data = self.core.take_spare(self.link.holder(), len)?;
        self.open(tag, Phase::Connection, Some(data), Purpose::Asked);
        Some(data)
    }
    fn submit(&mut self, tag: Tag, command: Command, data: Slice) {
        let index = match self.link.request(tag) {
            Some(index) => index,
            None => self.open(tag, Phase::Connection, None, Purpose::Asked),
        };
        let request = &mut self.core.requests[index];
        assert_eq!(request.phase, Phase::Connection, "a tag is submitted while it is with its connection");
        request.command = command;
        request.data = data;
        request.phase = Phase::Turn;
        let came = core::mem::replace(&mut request.started, self.now);
        request.cursor = 0;
        request.length = 0;
        request.status = Status::Good;
        request.begun = false;
        request.little = u64::from(self.link.live) * cost_of(u64::from(data.len)) <= LITTLE;
        if self.core.timing.is_due() {
            self.core.time(index, self.link.path(), came, self.now);
        }
        self.core.arrive(self.now, index, self.fx);
    }
    #[inline]
    fn goes_on(&mut self) -> bool {
        self.core.turn.take()
    }
    #[inline]
    fn has_slot(&self) -> bool {
        // Then all that it has under way may end, and still wait for the kernel. Before it is admitted it has none.
        self.link.unsent < self.link.tags.len().max(1) as u32 || planted(Bug::UnsentUncounted)
    }
    fn finish(&mut self, tag: Tag) {
        let index = self.link.forget(tag);
        self.core.retire(self.link, index, Some(self.now));
    }
    fn finish_after_send(&mut self, tag: Tag) {
        let index = self.link.forget(tag);
        if self.link.outbox.release_after(index) {
            self.link.unsent += 1;
            self.core.requests[index].phase = Phase::Sending;
        } else {
            self.core.retire(self.link, index, Some(self.now));
        }
    }
    fn finish_with(&mut self, tag: Tag, header: &[u8], data: Slice, trailer: &[u8]) {
        let index = self.link.forget(tag);
        self.link.unsent += 1;
        self.core.requests[index].phase = Phase::Sending;
        self.link.outbox.framed(&mut self.core.memory, header, data, trailer, index);
        self.touch();
    }
    fn abort(&mut self, tag: Tag) {
        if let Some(index) = self.link.request(tag) {
            self.core.abort_request(self.now, index, self.fx);
        }
    }
    fn bytes(&self, data: Slice) -> &[u8] {
        self.core.memory.bytes(data)
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.core.memory.bytes_mut(data)
    }
    fn room(&self) -> u32 {
        if self.link.outbox.ring().len == 0 { self.link.ring_bytes } else { self.link.outbox.room() }
    }
    fn header(&mut self, bytes: &[u8]) {
        if self.link.outbox.ring().len == 0 {
            let open = self.link.life == Life::Open;
            if !open || !self.core.open_outbox(self.link) {
                let why = ConnectionFault::NoMemory;
                self.send_away(LoginFate::Rejected { why }, Close::Refused(why));
                return;
            }
        }
        self.link.outbox.header(&mut self.core.memory, bytes);
        self.touch();
    }
    fn payload(&mut self, data: Slice) {
        self.link.outbox.payload(data);
        self.touch();
    }
    fn ask(&mut self, ask: Ask) {
        self.link.known = true;
        self.link.host = ask.host();
        let (queue, discovery) = match ask {
            Ask::NvmeAdmin { discovery, .. } | Ask::Iscsi { discovery, .. } => (0, discovery),
            Ask::NvmeIo { queue, .. } => (queue, false),
        };
        self.link.login = Login { session: None, queue, discovery };
        self.core.limits.on_asked(self.link);
        let mail = StewardMail::Ask {
            connection: self.link.id,
            portal: self.link.portal,
            local: self.link.local,
            peer: self.link.peer,
            ask,
        };
        self.fx.push(to_steward(mail));
    }
    fn refused(&mut self, name: &str, why: ConnectionFault) {
        self.report_outcome(LoginFate::Rejected { why }, name.into());
    }
    fn intervene(&mut self, key: u16, what: Intervention) {
        let mail = StewardMail::Intervene { connection: self.link.id, key, what };
        self.fx.push(to_steward(mail));
    }
    fn intervened(&mut self, id: u32, yes: bool) {
        let mail = StewardMail::Obeyed { connection: self.link.id, id, yes };
        self.fx.push(to_steward(mail));
    }
    fn close(&mut self, why: Close) {
        if self.link.life == Life::Open {
            if let Close::Protocol(what) = why
                && !is_far(self.link.portal)
            {
                let name = self.link.host.and_then(|id| self.core.view.host(id)).map(|h| h.name.clone());
                self.report_outcome(LoginFate::CutOff { why: what }, name.unwrap_or_default());
            }
            self.link.life = Life::Ending { until: self.now + CLOSE_LINGER };
            self.link.why = Some(why);
            self.core.ending.push(self.link.index);
            self.touch();
        }
        if why == Close::Reset {
            self.hurry();
        }
    }
}
