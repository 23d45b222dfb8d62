//! The life of one controller: bring-up, keep-alive, events, aborts, good-bye.
//!
//! ```text
//! Idle ─start─▶ admin link: ICReq ▶ Connect ▶ CAP ▶ CC.EN ▶ CSTS.RDY ▶ Identify Controller
//!   ┌─────────────────────────────────────────────────────────────┘
//!   ├ I/O:       ▶ Host Behavior ▶ Number of Queues ▶ Active List ▶ Identify Namespace ▶ Descriptors
//!   │            ▶ Event Configuration ▶ [I/O links: ICReq ▶ Connect] ▶ Ready
//!   └ discovery: ▶ Discovery Log (header, entries) ▶ Ready
//! Ready ─stop─▶ CC.SHN ▶ Ended
//! ```

use super::queue::{Data, Queue};
use super::{Config, Error, Lack, Namespace};
use crate::pdu::Digests;
use crate::spec::fabrics::{self, fctype, property as prop};
use crate::spec::identify::{self, IDENTIFY_BYTES, cns, nidt};
use crate::spec::log::{DiscoveryEntry, DiscoveryHeader};
use crate::spec::{ConnectData, ConnectFields, Cqe, PropertyFields, Sqe, admin, feature, log, text_of};
use base::front::ControllerLife;
use base::{Duration, HostCommand, HostIo, Instant, Slice, Uuid, Want};
use std::collections::VecDeque;
use zerocopy::{FromBytes, IntoBytes};

/// What the admin queue waits for. The order is that of the bring-up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Idle,
    AwaitingLink,
    Connect,
    Capabilities,
    Enable,
    /// CSTS is asked for; until RDY, again after `CSTS_PAUSE`.
    Status,
    Controller,
    HostBehavior,
    NumberOfQueues,
    ActiveList,
    Namespace,
    Descriptors,
    Events,
    /// The I/O queues connect.
    Queues,
    LogHeader,
    LogEntry,
    Ready,
    Shutdown,
    Ended,
}

/// Purposes of admin commands that run beside the bring-up.
mod purpose {
    /// The step's own command.
    pub const STEP: u16 = 0;
    /// Asynchronous Event Request.
    pub const EVENT: u16 = 1;
    /// Keep Alive.
    pub const KEEP_ALIVE: u16 = 2;
    /// Abort.
    pub const ABORT: u16 = 3;
    /// Get Log Page: Changed Namespace List, after an event.
    pub const CHANGED_LOG: u16 = 4;
    /// Identify Namespace again.
    pub const NAMESPACE_AGAIN: u16 = 5;
    /// Connect, on I/O queues.
    pub const CONNECT: u16 = 6;
    /// Cross-Controller Reset.
    pub const RESET: u16 = 7;
}

/// One entry of a discovery log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoveryRecord {
    /// Subsystem NQN.
    pub subsystem: String,
    /// Address as text.
    pub address: String,
    /// Port as text.
    pub port: String,
    /// 1 referral, 2 NVM subsystem, 3 this discovery subsystem.
    pub subtype: u8,
    /// 3 is TCP.
    pub transport: u8,
}

const ADMIN_DEPTH: u16 = 31;
const CSTS_PAUSE: Duration = Duration::from_millis(10);
/// Entries of a discovery log that we read; nothing distinguishes a target with more from one that lies.
const RECORDS_MAX: u64 = 1024;
const ABORTS_UNDER_WAY: u16 = 4;

/// A Cross-Controller Reset, of which a session has one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reset {
    None,
    Due(ControllerLife),
    UnderWay,
    /// Whether the other controller is over.
    Answered(bool),
}

/// One host's session with one controller. See the module.
#[derive(Debug)]
pub struct Session {
    config: Config,
    step: Step,
    /// The step's command is on its way.
    asked: bool,
    admin: Queue,
    io: Vec<Queue>,
    /// I/O queues that answered Connect.
    connected: u16,
    granted: u16,
    /// Commands under way on one I/O queue: `config.depth`, or what the controller's queues hold.
    depth: u16,
    controller: u16,
    namespace: Namespace,
    crdt: [u16; 3],
    mdts_bytes: u32,
    in_capsule_max: u32,
    connect_sent: Vec<bool>,
    records: Vec<DiscoveryRecord>,
    records_due: u64,
    poll_at: Option<Instant>,
    keep_alive_at: Option<Instant>,
    keep_alive_sent: Option<Instant>,
    events_due: bool,
    changed_log_due: bool,
    namespace_due: bool,
    /// The own buffer of the admin queue is in use beside the bring-up.
    chore: bool,
    aborts: VecDeque<(u16, u16)>,
    aborts_under_way: u16,
    /// As others may name this controller; None: they cannot.
    life: Option<ControllerLife>,
    reset: Reset,
    changes: u64,
    error: Option<Error>,
    now: Instant,
}

impl Session {
    /// A session that has not begun.
    pub fn new(config: Config) -> Self {
        assert!(config.depth > 0 && config.depth < 1024, "depth is 1 to 1023");
        let digests = Digests { header: config.header_digest, data: config.data_digest };
        let queues = if config.is_discovery() { 0 } else { config.queues };
        Self {
            step: Step::Idle,
            asked: false,
            admin: Queue::new(ADMIN_DEPTH, digests),
            io: (0..queues).map(|_| Queue::new(config.depth, digests)).collect(),
            connected: 0,
            granted: queues,
            depth: config.depth,
            controller: 0,
            namespace: Namespace::default(),
            crdt: [0; 3],
            mdts_bytes: 0,
            in_capsule_max: 0,
            connect_sent: vec![false; usize::from(queues)],
            records: vec![],
            records_due: 0,
            poll_at: None,
            keep_alive_at: None,
            keep_alive_sent: None,
            events_due: false,
            changed_log_due: false,
            namespace_due: false,
            chore: false,
            aborts: VecDeque::with_capacity(usize::from(config.depth) * usize::from(queues)),
            aborts_under_way: 0,
            life: None,
            reset: Reset::None,
            changes: 0,
            error: None,
            now: Instant::default(),
            config,
        }
    }
    /// Begins, or begins again after every link was lost (`on_lost`).
    pub fn start(&mut self) {
        self.step = Step::AwaitingLink;
        self.asked = false;
        self.connected = 0;
        self.error = None;
        self.granted = self.io.len() as u16;
        self.poll_at = None;
        self.keep_alive_at = None;
        self.keep_alive_sent = None;
        self.events_due = false;
        self.changed_log_due = false;
        self.namespace_due = false;
        self.chore = false;
        self.aborts_under_way = 0;
        self.aborts.clear();
        self.life = None;
        self.reset = Reset::None;
        self.records.clear();
    }
    /// How many connections should stand now: link 0 first, then the I/O links.
    pub fn links_wanted(&self) -> u16 {
        match self.step {
            Step::Idle | Step::Ended => 0,
            step if step < Step::Queues => 1,
            Step::LogHeader | Step::LogEntry => 1,
            _ => 1 + self.granted,
        }
    }
    /// Whether block commands (or, on discovery, the records) are there.
    pub fn is_ready(&self) -> bool {
        self.step == Step::Ready && self.error().is_none()
    }
    /// Whether `stop` is through.
    pub fn is_ended(&self) -> bool {
        self.step == Step::Ended
    }
    /// What went wrong, if something did.
    pub fn error(&self) -> Option<Error> {
        let queues = || core::iter::once(&self.admin).chain(&self.io);
        self.error.or_else(|| queues().find_map(Queue::error))
    }
    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }
    /// Grows each time the namespace was looked at again after an event.
    pub fn changes(&self) -> u64 {
        self.changes
    }
    /// The controller's id.
    pub fn controller(&self) -> u16 {
        self.controller
    }
    /// What another controller of the subsystem knows this one by, if it can end it (Cross-Controller Reset).
    pub fn life(&self) -> Option<ControllerLife> {
        self.life
    }
    /// Has this controller end another one; false: it cannot now. `on_link0` must be called afterwards.
    pub fn reset_other(&mut self, life: ControllerLife) -> bool {
        let can = self.is_ready() && self.life.is_some() && matches!(self.reset, Reset::None);
        if can {
            self.reset = Reset::Due(life);
        }
        can
    }
    /// Its answer, once: whether the other one is over, and all that it had under way.
    pub fn take_reset(&mut self) -> Option<bool> {
        let Reset::Answered(good) = self.reset else { return None };
        self.reset = Reset::None;
        Some(good)
    }
    /// What a discovery controller said.
    pub fn records(&self) -> &[DiscoveryRecord] {
        &self.records
    }
    /// Block commands that link `link` (1 and up) can still take.
    pub fn free(&self, link: u16) -> u16 {
        match self.step {
            Step::Ready => self.io.get(usize::from(link) - 1).map_or(0, Queue::free),
            _ => 0,
        }
    }
    /// Commands under way on one I/O link, at most: what was asked for, or what the controller's queues hold,
    /// once it has said so.
    pub fn depth(&self) -> u16 {
        self.depth
    }
    /// I/O links in use.
    pub fn io_links(&self) -> u16 {
        self.granted
    }
    /// Submits a block command on `link` (1 and up); false without room.
    pub fn submit(&mut self, link: u16, c: &HostCommand, io: &mut impl HostIo) -> bool {
        self.step == Step::Ready
            && self.io[usize::from(link) - 1].submit_block(
                self.namespace.nsid,
                self.namespace.block_bytes,
                c,
                io,
            )
    }
    /// Asks the controller to abort block command `id`; it still ends by `done`. False if it is not
    /// under way. `on_link0` must be called afterwards.
    pub fn abort(&mut self, id: u32) -> bool {
        let found = self.io.iter().enumerate().find_map(|(i, q)| Some((i as u16 + 1, q.cid_of(id)?)));
        let Some((queue, cid)) = found else { return false };
        self.aborts.push_back((queue, cid));
        true
    }
    /// Says good-bye: shuts the controller down, then `is_ended`. Commands under way are lost.
    pub fn stop(&mut self) {
        match self.step {
            Step::Idle | Step::Ended => {}
            // Nothing to say good-bye to.
            step if step < Step::Controller || !self.admin.is_open() => self.step = Step::Ended,
            _ => {
                self.step = Step::Shutdown;
                self.asked = false;
            }
        }
    }
    /// Link `link` stands.
    pub fn on_connected(&mut self, link: u16, io: &mut impl HostIo) {
        self.queue(link).on_connected(io);
    }
    /// Bytes arrived on `link`, in a staging buffer; all are taken.
    pub fn on_bytes(&mut self, now: Instant, link: u16, data: Slice, io: &mut impl HostIo) {
        self.now = now;
        self.queue(link).on_bytes(data, io);
        self.after(link, io);
    }
    /// Where the next bytes of `link` go.
    pub fn want(&self, link: u16) -> Want {
        match link {
            0 => self.admin.want(),
            n => self.io[usize::from(n) - 1].want(),
        }
    }
    /// `n` bytes arrived on `link` where `want` said.
    pub fn on_direct(&mut self, link: u16, n: u32, io: &mut impl HostIo) {
        self.queue(link).on_direct(n, io);
    }
    /// The outbox of `link` has more room.
    pub fn on_sent(&mut self, link: u16, io: &mut impl HostIo) {
        self.queue(link).on_sent(io);
    }
    /// The connection of `link` is gone and nothing of it is left: its block commands end in
    /// `ConnectionLost`.
    pub fn on_lost(&mut self, link: u16, io: &mut impl HostIo) {
        self.queue(link).on_lost(io);
        if !self.is_ended() {
            self.step = Step::Idle;
        }
    }
    /// When `on_link0` wants to be called without an event.
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.poll_at, self.keep_alive_at].into_iter().flatten().min()
    }
    /// Goes on with what is due on the admin link, whose outbox `io` is: after every other input, and
    /// when `next_deadline` is reached.
    pub fn on_link0(&mut self, now: Instant, io: &mut impl HostIo) {
        self.now = now;
        if self.error().is_some() || !self.admin.is_open() {
            return;
        }
        if self.step == Step::AwaitingLink {
            self.go(Step::Connect);
        }
        if self.poll_at.is_some_and(|at| at <= now) {
            self.poll_at = None;
            self.asked = false;
        }
        if self.step == Step::Queues && self.connected == self.granted {
            self.go(Step::Ready);
        }
        if !self.asked && self.poll_at.is_none() {
            self.asked = self.ask(io);
        }
        if self.step >= Step::Queues {
            self.beside(io);
        }
        self.keep_alive(io);
    }

    fn queue(&mut self, link: u16) -> &mut Queue {
        match link {
            0 => &mut self.admin,
            n => &mut self.io[usize::from(n) - 1],
        }
    }
    fn go(&mut self, step: Step) {
        self.step = step;
        self.asked = false;
    }
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
    /// After input on `link`: an I/O link that opened sends Connect; answers are looked at.
    fn after(&mut self, link: u16, io: &mut impl HostIo) {
        if link == 0 {
            while let Some((purpose, cqe)) = self.admin.next_answer() {
                self.on_answer(purpose, cqe);
            }
            return;
        }
        let at = usize::from(link) - 1;
        while let Some((_, cqe)) = self.io[at].next_answer() {
            if !cqe.status().is_good() {
                let what = "Connect of an I/O queue";
                return self.fail(Error::Refused { what, status: cqe.status() });
            }
            // Only now, since Connect's own data always fits into its capsule (NVMe/TCP 3.3.2.1.1).
            self.io[at].learnt(self.in_capsule_max, self.crdt, self.depth);
            self.connected += 1;
        }
        if self.step == Step::Queues && self.io[at].is_open() && !self.connect_sent[at] {
            let fields = self.connect(link, self.depth);
            let data = ConnectData::new(
                self.config.host_id,
                self.controller,
                &self.config.subsystem,
                &self.config.host_nqn,
            );
            self.connect_sent[at] =
                self.io[at].submit(fields, Data::Inline(data.as_bytes()), purpose::CONNECT, io);
        }
    }
    /// NVMe Base 6.3 Connect. SQSIZE is 0-based, and a queue of n entries holds n - 1 commands.
    fn connect(&self, queue: u16, depth: u16) -> Sqe {
        let kato = if queue == 0 { self.config.keep_alive.as_millis() as u32 } else { 0 };
        let cattr = if self.config.flow_control || queue == 0 { 0 } else { fabrics::CATTR_NO_FLOW_CONTROL };
        ConnectFields {
            opcode: admin::FABRICS,
            fctype: fctype::CONNECT,
            qid: queue.into(),
            sqsize: depth.into(),
            cattr,
            kato: kato.into(),
            ..ConnectFields::default()
        }
        .sqe()
    }

    /// Sends the command of the current step; false if there is no room (or nothing to send).
    fn ask(&mut self, io: &mut impl HostIo) -> bool {
        let identify = |cns: u8, nsid: u32| {
            let mut sqe = Sqe::new(admin::IDENTIFY, 0);
            sqe.nsid = nsid.into();
            sqe.cdw10 = u32::from(cns).into();
            (sqe, Data::Own(IDENTIFY_BYTES))
        };
        let feature = |id: u8, value: u32| {
            let mut sqe = Sqe::new(admin::SET_FEATURES, 0);
            sqe.cdw10 = u32::from(id).into();
            sqe.cdw11 = value.into();
            (sqe, Data::None)
        };
        let nsid = self.namespace.nsid;
        let connect_data;
        let mut behavior = [0u8; feature::HOST_BEHAVIOR_BYTES as usize];
        let (sqe, data) = match self.step {
            Step::Connect => {
                connect_data = ConnectData::new(
                    self.config.host_id,
                    fabrics::CNTLID_DYNAMIC,
                    &self.config.subsystem,
                    &self.config.host_nqn,
                );
                (self.connect(0, ADMIN_DEPTH), Data::Inline(connect_data.as_bytes()))
            }
            Step::Capabilities => (property_get(prop::CAP, true), Data::None),
            Step::Enable => (property_set(prop::CC, prop::CC_HOST), Data::None),
            Step::Status => (property_get(prop::CSTS, false), Data::None),
            Step::Controller => identify(cns::CONTROLLER, 0),
            Step::HostBehavior => {
                // NVMe Base 5.27.1.18: byte 0, Advanced Command Retry Enable.
                behavior[0] = 1;
                (feature(feature::HOST_BEHAVIOR, 0).0, Data::Inline(&behavior))
            }
            Step::NumberOfQueues => {
                let n = u32::from(self.config.queues) - 1;
                feature(feature::NUMBER_OF_QUEUES, n << 16 | n)
            }
            Step::ActiveList => identify(cns::ACTIVE_LIST, 0),
            Step::Namespace => identify(cns::NAMESPACE, nsid),
            Step::Descriptors => identify(cns::DESCRIPTORS, nsid),
            Step::Events => feature(feature::ASYNC_EVENT, feature::EVENT_NAMESPACE),
            Step::LogHeader => (get_log(log::DISCOVERY, 0, 1024), Data::Own(1024)),
            Step::LogEntry => {
                let at = 1024 * (1 + self.records.len() as u64);
                (get_log(log::DISCOVERY, at, 1024), Data::Own(1024))
            }
            Step::Shutdown => (property_set(prop::CC, prop::CC_HOST | 1 << 14), Data::None),
            Step::Idle | Step::AwaitingLink | Step::Queues | Step::Ready | Step::Ended => return false,
        };
        self.admin.submit(sqe, data, purpose::STEP, io)
    }
    fn on_answer(&mut self, purpose: u16, cqe: Cqe) {
        match purpose {
            purpose::STEP => self.on_step(cqe),
            purpose::EVENT => {
                self.events_due = true;
                // NVMe Base 5.2: a notice names the log page that has to be read before the next comes.
                if cqe.status().is_good() && cqe.dw0.get() == feature::NOTICE_NAMESPACE {
                    self.changed_log_due = true;
                } else if !cqe.status().is_good() {
                    self.events_due = false;
                }
            }
            purpose::KEEP_ALIVE => {
                self.keep_alive_sent = None;
                if !cqe.status().is_good() {
                    self.fail(Error::Refused { what: "Keep Alive", status: cqe.status() });
                }
            }
            purpose::ABORT => self.aborts_under_way -= 1,
            // Immediate Reset Successful. A host that learns that it goes on would have to read the log page.
            purpose::RESET => {
                self.reset = Reset::Answered(cqe.status().is_good() && cqe.dw0.get() & 1 == 1);
            }
            purpose::CHANGED_LOG => {
                self.chore = false;
                self.namespace_due = true;
            }
            purpose::NAMESPACE_AGAIN => {
                self.chore = false;
                if cqe.status().is_good() {
                    self.learn_namespace();
                    self.changes += 1;
                }
            }
            _ => unreachable!("a purpose that nobody uses"),
        }
    }
    /// The current step's command was answered.
    fn on_step(&mut self, cqe: Cqe) {
        let (step, status) = (self.step, cqe.status());
        if !status.is_good() {
            let what = match step {
                Step::Connect => "Connect",
                Step::Capabilities | Step::Enable | Step::Status => "a property",
                Step::Controller => "Identify Controller",
                Step::NumberOfQueues => "Number of Queues",
                Step::ActiveList => "Active Namespace ID list",
                Step::Namespace => "Identify Namespace",
                Step::LogHeader | Step::LogEntry => "Get Log Page",
                Step::Shutdown => return self.go(Step::Ended),
                // Not every controller has these, and the session lives without.
                Step::HostBehavior => return self.go(Step::NumberOfQueues),
                Step::Descriptors => return self.go(Step::Events),
                Step::Events => return self.go(Step::Queues),
                Step::Idle | Step::AwaitingLink | Step::Queues | Step::Ready | Step::Ended => return,
            };
            return self.fail(Error::Refused { what, status });
        }
        match step {
            Step::Connect => {
                self.controller = cqe.dw0.get() as u16;
                // NVMe Base 6.3: AUTHREQ in bits 31:16 of dword 0.
                if cqe.dw0.get() >> 16 != 0 {
                    return self.fail(Error::Incapable(Lack::Authentication));
                }
                self.go(Step::Capabilities);
            }
            Step::Capabilities => {
                // NVMe Base 3.1.4.1: MQES in bits 15:0, 0-based. A queue of n entries holds n - 1 commands.
                let most = cqe.dw0.get() as u16;
                if most == 0 && !self.config.is_discovery() {
                    return self.fail(Error::Incapable(Lack::QueueSize));
                }
                self.depth = self.config.depth.min(most);
                self.go(Step::Enable);
            }
            Step::Enable => self.go(Step::Status),
            Step::Status => {
                let csts = cqe.dw0.get();
                if csts & prop::CSTS_FATAL != 0 {
                    return self.fail(Error::Incapable(Lack::FatalStatus));
                }
                if csts & prop::CSTS_READY != 0 {
                    self.go(Step::Controller);
                } else {
                    self.poll_at = Some(self.now + CSTS_PAUSE);
                }
            }
            Step::Controller => self.learn_controller(),
            Step::HostBehavior => self.go(Step::NumberOfQueues),
            Step::NumberOfQueues => {
                // NVMe Base 5.27.1.5: granted submission and completion queues, 0-based.
                let (s, c) = (cqe.dw0.get() as u16, (cqe.dw0.get() >> 16) as u16);
                self.granted = s.min(c).saturating_add(1).min(self.io.len() as u16);
                self.namespace.nsid = self.config.nsid;
                self.go(if self.config.nsid == 0 { Step::ActiveList } else { Step::Namespace });
            }
            Step::ActiveList => {
                let first = u32::from_le_bytes(self.admin.own()[..4].try_into().expect("four bytes"));
                if first == 0 {
                    return self.fail(Error::Incapable(Lack::NoNamespace));
                }
                self.namespace.nsid = first;
                self.go(Step::Namespace);
            }
            Step::Namespace => {
                self.learn_namespace();
                let n = self.namespace;
                if n.blocks == 0 {
                    return self.fail(Error::Incapable(Lack::NamespaceInactive));
                }
                if !(512..=65536).contains(&n.block_bytes) {
                    return self.fail(Error::Incapable(Lack::BlockSize));
                }
                self.go(Step::Descriptors);
            }
            Step::Descriptors => {
                self.namespace.uuid = find_uuid(self.admin.own());
                self.go(Step::Events);
            }
            Step::Events => {
                self.events_due = true;
                self.connect_sent.fill(false);
                self.go(Step::Queues);
            }
            Step::LogHeader => {
                let header = DiscoveryHeader::read_from_prefix(self.admin.own()).expect("1024 bytes").0;
                self.records_due = header.records.get();
                if self.records_due > RECORDS_MAX {
                    return self.fail(Error::Incapable(Lack::DiscoveryLog));
                }
                self.go(if self.records_due == 0 { Step::Ready } else { Step::LogEntry });
            }
            Step::LogEntry => {
                let e = DiscoveryEntry::read_from_prefix(self.admin.own()).expect("1024 bytes").0;
                // Addresses and ports are padded with spaces by some, with NULs by others.
                let text = |b: &[u8]| {
                    let end = b.iter().position(|c| *c == 0).unwrap_or(b.len());
                    String::from_utf8_lossy(&b[..end]).trim_end().to_string()
                };
                self.records.push(DiscoveryRecord {
                    subsystem: text_of(&e.subnqn).unwrap_or_default().into(),
                    address: text(&e.traddr),
                    port: text(&e.trsvcid),
                    subtype: e.subtype,
                    transport: e.trtype,
                });
                let all = self.records.len() as u64 == self.records_due;
                self.go(if all { Step::Ready } else { Step::LogEntry });
            }
            Step::Shutdown => self.go(Step::Ended),
            Step::Idle | Step::AwaitingLink | Step::Queues | Step::Ready | Step::Ended => {}
        }
        if self.keep_alive_at.is_none() && self.step > Step::Status && !self.config.keep_alive.is_zero() {
            self.keep_alive_at = Some(self.now + self.config.keep_alive / 2);
        }
    }
    fn learn_controller(&mut self) {
        let c = identify::Controller::read_from_bytes(self.admin.own()).expect("4096 bytes");
        if self.config.is_discovery() {
            return self.go(Step::LogHeader);
        }
        // IOCCSZ counts 16 bytes each and includes the 64 of the command itself.
        let capsule = c.ioccsz.get().saturating_mul(16).saturating_sub(64);
        self.in_capsule_max = if c.icdoff.get() == 0 { capsule } else { 0 };
        self.crdt = c.crdt.map(|t| t.get());
        // MDTS is a power of two of the smallest page; 0 is no limit. We never ask for more than 1 MiB.
        let shift = if c.mdts == 0 { 8 } else { c.mdts.min(8) };
        self.mdts_bytes = 4096 << shift;
        // NVMe Base 5.17.2.1 MAXCMD: commands of one queue that it works on; 0 is silence.
        if c.maxcmd.get() > 0 {
            self.depth = self.depth.min(c.maxcmd.get());
        }
        self.life = (c.ccrl > 0 && c.ciu > 0).then_some(ControllerLife {
            id: self.controller,
            uniquifier: c.ciu,
            random: c.cirn.get(),
        });
        self.go(if self.crdt == [0; 3] { Step::NumberOfQueues } else { Step::HostBehavior });
    }
    fn learn_namespace(&mut self) {
        let n = identify::Namespace::read_from_bytes(self.admin.own()).expect("4096 bytes");
        self.namespace.blocks = n.nsze.get();
        if n.nsze.get() > 0 {
            self.namespace.block_bytes = n.block_bytes();
            self.namespace.nguid = n.nguid;
        }
        self.namespace.transfer_max = self.mdts_bytes;
    }
    /// What runs beside the bring-up and afterwards: events, the changed namespace, aborts.
    fn beside(&mut self, io: &mut impl HostIo) {
        if self.events_due {
            let sqe = Sqe::new(admin::ASYNC_EVENT, 0);
            self.events_due = !self.admin.submit(sqe, Data::None, purpose::EVENT, io);
        }
        if self.changed_log_due && !self.chore {
            let sqe = get_log(log::CHANGED_NAMESPACES, 0, IDENTIFY_BYTES);
            self.chore = self.admin.submit(sqe, Data::Own(IDENTIFY_BYTES), purpose::CHANGED_LOG, io);
            self.changed_log_due = !self.chore;
        }
        if self.namespace_due && !self.chore {
            let mut sqe = Sqe::new(admin::IDENTIFY, 0);
            sqe.nsid = self.namespace.nsid.into();
            sqe.cdw10 = u32::from(cns::NAMESPACE).into();
            self.chore = self.admin.submit(sqe, Data::Own(IDENTIFY_BYTES), purpose::NAMESPACE_AGAIN, io);
            self.namespace_due = !self.chore;
        }
        if let Reset::Due(life) = self.reset {
            let mut sqe = Sqe::new(admin::CROSS_CONTROLLER_RESET, 0);
            sqe.cdw10 = (u32::from(life.uniquifier) << 16 | u32::from(life.id)).into();
            sqe.cdw12 = (life.random as u32).into();
            sqe.cdw13 = ((life.random >> 32) as u32).into();
            if self.admin.submit(sqe, Data::None, purpose::RESET, io) {
                self.reset = Reset::UnderWay;
            }
        }
        while let Some(&(queue, cid)) = self.aborts.front() {
            if self.aborts_under_way == ABORTS_UNDER_WAY {
                return;
            }
            let mut sqe = Sqe::new(admin::ABORT, 0);
            sqe.cdw10 = (u32::from(cid) << 16 | u32::from(queue)).into();
            if !self.admin.submit(sqe, Data::None, purpose::ABORT, io) {
                return;
            }
            self.aborts.pop_front();
            self.aborts_under_way += 1;
        }
    }
    /// NVMe Base 3.9: a command twice per timeout; a controller that does not answer one within the
    /// timeout is gone.
    fn keep_alive(&mut self, io: &mut impl HostIo) {
        let Some(at) = self.keep_alive_at.filter(|at| *at <= self.now) else { return };
        match self.keep_alive_sent {
            Some(sent) if self.now.since(sent) >= self.config.keep_alive => {
                self.fail(Error::TimedOut("Keep Alive"));
            }
            Some(_) => {}
            None => {
                let sqe = Sqe::new(admin::KEEP_ALIVE, 0);
                if self.admin.submit(sqe, Data::None, purpose::KEEP_ALIVE, io) {
                    self.keep_alive_sent = Some(self.now);
                }
            }
        }
        self.keep_alive_at = Some(at.max(self.now) + self.config.keep_alive / 2);
    }
}

fn property(kind: u8, offset: u32) -> PropertyFields {
    let mut fields = PropertyFields::of(&Sqe::new(admin::FABRICS, 0));
    fields.fctype = kind;
    fields.offset = offset.into();
    fields
}

fn property_get(offset: u32, eight: bool) -> Sqe {
    let mut fields = property(fctype::PROPERTY_GET, offset);
    fields.attrib = u8::from(eight);
    fields.sqe()
}

fn property_set(offset: u32, value: u32) -> Sqe {
    let mut fields = property(fctype::PROPERTY_SET, offset);
    fields.value = u64::from(value).into();
    fields.sqe()
}

/// Get Log Page of `bytes` bytes at `at` (NVMe Base 5.16: number of dwords, 0-based).
fn get_log(page: u8, at: u64, bytes: u32) -> Sqe {
    let mut sqe = Sqe::new(admin::GET_LOG_PAGE, 0);
    sqe.nsid = crate::spec::command::NSID_ALL.into();
    let dwords = bytes / 4 - 1;
    sqe.cdw10 = (u32::from(page) | (dwords & 0xffff) << 16).into();
    sqe.cdw12 = (at as u32).into();
    sqe.cdw13 = ((at >> 32) as u32).into();
    sqe
}

/// The UUID of a namespace identification descriptor list (NVMe Base 5.17.2.4), nil if there is none.
fn find_uuid(mut list: &[u8]) -> Uuid {
    while let [kind, len, _, _, rest @ ..] = list {
        let len = usize::from(*len);
        if *kind == 0 || len == 0 || len > rest.len() {
            break;
        }
        if *kind == nidt::UUID
            && let Ok(uuid) = <[u8; 16]>::try_from(&rest[..len])
        {
            return Uuid(uuid);
        }
        list = &rest[len..];
    }
    Uuid::default()
}
