//! The controller behind an admin queue: properties, admin commands, events, keep alive. Knows no
//! transport: it says what a command needs (`Plan`) and how it ends (`Completion`).

use super::ana::Ana;
use super::features::Features;
use super::io::{Plan, check_common};
use super::log::{self, Errors};
use super::namespaces::Namespaces;
use super::resets::{Resets, impacted};
use super::table::Completion;
use super::{
    ASYNC_EVENTS_MAX, ConnectionConfig, DISCOVERY_KEEP_ALIVE, KEEP_ALIVE_GRACE, discovery, identify,
};
use crate::spec::command::NSID_ALL;
use crate::spec::fabrics::{fctype, property};
use crate::spec::feature::{
    EVENT_ANA, EVENT_DISCOVERY, EVENT_NAMESPACE, NOTICE_ANA, NOTICE_DISCOVERY, NOTICE_NAMESPACE,
};
use crate::spec::log::{ANA, CHANGED_MAX, CHANGED_NAMESPACES, DISCOVERY};
use crate::spec::{PropertyFields, Sqe, StatusField, admin};
use base::crc::crc32c;
use base::front::ControllerLife;
use base::view::View;
use base::{Duration, HostId, Instant, Prng};
use std::collections::{BTreeSet, VecDeque};

/// A notice to the host: sent once, then silent until the host has read the log page that it names.
#[derive(Debug, Default)]
struct Notice {
    pending: bool,
    masked: bool,
}

/// One controller.
#[derive(Debug)]
pub(crate) struct Controller {
    pub id: u16,
    /// What hosts name it by; the uniquifier is 0 until it was enabled.
    pub life: ControllerLife,
    pub discovery: bool,
    pub host: Option<HostId>,
    pub namespaces: Namespaces,
    pub errors: Errors,
    pub features: Features,
    /// What Identify reported of paths, for this controller's life; None: nothing, the head was alone when it was made.
    pub ana: Option<Ana>,
    /// Other controllers that it ends.
    pub resets: Resets,
    prng: Prng,
    hostnqn: String,
    cc: u32,
    csts: u32,
    /// The host has disabled the controller; its I/O queues have not all ended.
    resetting: bool,
    /// How often the end of the I/O queues was asked for and has not been answered.
    ending: u32,
    io_queues_max: u16,
    queue_depth_max: u16,
    /// Tags of the Asynchronous Event Requests that wait.
    waiting: VecDeque<u16>,
    namespace_notice: Notice,
    ana_notice: Notice,
    discovery_notice: Notice,
    changed: BTreeSet<u32>,
    /// CRC32C of the discovery log's entries: shows whether a view changed them.
    entries: u32,
    heard: Instant,
}

/// What a new controller is made from.
pub(crate) struct Birth {
    pub id: u16,
    pub discovery: bool,
    pub host: Option<HostId>,
    pub hostnqn: String,
    pub host_id: [u8; 16],
    /// KATO of Connect, milliseconds.
    pub kato: u32,
}

/// What must be done about I/O queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    Nothing,
    BeginQueues(ControllerLife),
    EndQueues,
}

impl Controller {
    pub fn new(birth: Birth, config: &ConnectionConfig, view: &View, now: Instant) -> Self {
        // Keep alive counts in steps of 1 s (KAS), rounded up.
        let mut keep_alive = Duration::from_secs(u64::from(birth.kato).div_ceil(1000));
        if birth.discovery && keep_alive.is_zero() {
            keep_alive = DISCOVERY_KEEP_ALIVE;
        }
        let ana = Ana::of(view).filter(|_| !birth.discovery);
        let notices = match (birth.discovery, &ana) {
            (true, _) => EVENT_DISCOVERY,
            (false, None) => EVENT_NAMESPACE,
            (false, Some(_)) => EVENT_NAMESPACE | EVENT_ANA,
        };
        Self {
            id: birth.id,
            life: ControllerLife { id: birth.id, uniquifier: 0, random: 0 },
            discovery: birth.discovery,
            host: birth.host,
            namespaces: Namespaces::of(birth.host.filter(|_| !birth.discovery).and_then(|h| view.host(h))),
            errors: Errors::default(),
            features: Features::new(
                birth.discovery,
                notices,
                config.io_queues_max,
                keep_alive,
                birth.host_id,
            ),
            ana,
            resets: Resets::default(),
            prng: Prng::new(config.seed),
            hostnqn: birth.hostnqn,
            cc: 0,
            csts: 0,
            resetting: false,
            ending: 0,
            io_queues_max: config.io_queues_max,
            queue_depth_max: config.queue_depth_max,
            waiting: VecDeque::with_capacity(usize::from(ASYNC_EVENTS_MAX)),
            namespace_notice: Notice::default(),
            ana_notice: Notice::default(),
            discovery_notice: Notice::default(),
            changed: BTreeSet::new(),
            entries: crc32c(&discovery::entries(config, view, birth.host.is_some())),
            heard: now,
        }
    }

    /// A command has come: the host lives.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
    }
    /// When the host's silence has lasted too long.
    pub fn keep_alive_deadline(&self) -> Option<Instant> {
        let time = self.features.keep_alive;
        (!time.is_zero()).then_some(self.heard + time + KEEP_ALIVE_GRACE)
    }
    /// A command failed.
    pub fn note_error(&mut self, sqe: &Sqe, status: StatusField) {
        self.errors.note(sqe, status);
    }

    /// Looks at a command that has just arrived.
    pub fn plan(&mut self, sqe: &Sqe) -> Plan {
        if let Err(refused) = check_common(sqe) {
            return refused;
        }
        if sqe.opcode == admin::FABRICS {
            return self.fabrics(sqe);
        }
        // NVMe Base 3.5.1: until the controller is enabled and ready, fabrics commands alone.
        if !self.is_ready() {
            return Plan::refuse(StatusField::COMMAND_SEQUENCE);
        }
        match sqe.opcode {
            admin::IDENTIFY => Plan::Give(crate::spec::identify::IDENTIFY_BYTES),
            admin::GET_LOG_PAGE => log::plan(self, sqe),
            admin::GET_FEATURES => self.features.plan_get(sqe, self.io_queues_max),
            admin::SET_FEATURES => self.features.plan_set(sqe, self.io_queues_max),
            admin::KEEP_ALIVE => Plan::Answer(Completion::GOOD),
            admin::ASYNC_EVENT if self.waiting.len() == usize::from(ASYNC_EVENTS_MAX) => {
                Plan::refuse(StatusField::ASYNC_EVENT_LIMIT)
            }
            admin::ASYNC_EVENT => Plan::Hold,
            admin::ABORT if !self.discovery => Plan::Abort,
            admin::CROSS_CONTROLLER_RESET if self.discovery => Plan::refuse(StatusField::INVALID_OPCODE),
            // A controller does not end itself this way.
            admin::CROSS_CONTROLLER_RESET if impacted(sqe).id == self.id => {
                Plan::refuse(StatusField::INVALID_FIELD)
            }
            admin::CROSS_CONTROLLER_RESET => Plan::ResetController,
            _ => Plan::refuse(StatusField::INVALID_OPCODE),
        }
    }

    /// Makes the data for a command that `plan` gave a buffer.
    pub fn fill(
        &mut self,
        config: &ConnectionConfig,
        view: &View,
        sqe: &Sqe,
    ) -> Result<Vec<u8>, StatusField> {
        match sqe.opcode {
            admin::IDENTIFY => identify::answer(self, config, view, sqe),
            admin::GET_LOG_PAGE => log::answer(self, config, view, sqe),
            _ => Ok(self.features.data(sqe)),
        }
    }
    /// Data of the host have come: only Set Features takes any.
    pub fn on_data(&mut self, data: &[u8]) -> Completion {
        self.features.set_data(data)
    }

    fn fabrics(&mut self, sqe: &Sqe) -> Plan {
        let fields = PropertyFields::of(sqe);
        match sqe.fctype() {
            fctype::PROPERTY_GET => self.property_get(&fields),
            fctype::PROPERTY_SET => self.property_set(&fields),
            // The queue has its Connect already.
            fctype::CONNECT => Plan::refuse(StatusField::COMMAND_SEQUENCE),
            // NVMe Base 6.4: only I/O queues are disconnected one by one.
            fctype::DISCONNECT => Plan::refuse(StatusField::INVALID_QUEUE_TYPE),
            _ => Plan::refuse(StatusField::INVALID_OPCODE),
        }
    }

    fn capabilities(&self) -> u64 {
        let mqes = u64::from(self.queue_depth_max) - 1;
        // Contiguous queues; ready within 15 * 500 ms; the NVM command set.
        mqes | 1 << 16 | 15 << 24 | 1 << 37
    }
    fn property_get(&self, fields: &PropertyFields) -> Plan {
        let value = match (fields.attrib & 7, fields.offset.get()) {
            (1, property::CAP) => self.capabilities(),
            (0, property::VS) => u64::from(identify::VERSION),
            (0, property::CC) => u64::from(self.cc),
            (0, property::CSTS) => u64::from(self.csts),
            _ => return Plan::refuse(StatusField::INVALID_FIELD),
        };
        Plan::Answer(Completion { dw0: value as u32, dw1: (value >> 32) as u32, ..Completion::GOOD })
    }
    fn property_set(&mut self, fields: &PropertyFields) -> Plan {
        if fields.attrib & 7 != 0 || fields.offset.get() != property::CC {
            return Plan::refuse(StatusField::INVALID_FIELD);
        }
        match self.configure(fields.value.get() as u32) {
            Then::Nothing => Plan::Answer(Completion::GOOD),
            Then::BeginQueues(life) => Plan::BeginQueues(life),
            Then::EndQueues => {
                self.ending += 1;
                Plan::EndQueues
            }
        }
    }

    /// Admin commands are taken.
    fn is_ready(&self) -> bool {
        self.csts & property::CSTS_READY != 0 && !self.resetting
    }
    /// The host writes CC. I/O queues have to end before CSTS says that it is done, or writes of before the
    /// reset would land after it; and before CSTS says that it is ready, they must be let in.
    #[must_use]
    fn configure(&mut self, cc: u32) -> Then {
        let mut then = Then::Nothing;
        let was = std::mem::replace(&mut self.cc, cc);
        let (enabled, enable) = (was & property::CC_ENABLE != 0, cc & property::CC_ENABLE != 0);
        let (stopped, stop) = (was & property::CC_SHUTDOWN != 0, cc & property::CC_SHUTDOWN != 0);
        if enabled && !enable {
            self.features.reset(self.io_queues_max);
            self.namespace_notice = Notice::default();
            self.ana_notice = Notice::default();
            self.discovery_notice = Notice::default();
            self.ana.iter_mut().for_each(Ana::reset);
            self.changed.clear();
            self.resetting = true;
        }
        if !enabled && enable && !self.resetting {
            then = self.enable();
        }
        if stop && !stopped {
            self.csts |= property::CSTS_SHUTDOWN_OCCURRING;
        } else if !stop {
            self.csts &= !property::CSTS_SHUTDOWN;
        }
        let ends = enabled && !enable || stop && !stopped;
        if !ends {
            then
        } else if self.discovery {
            // A discovery controller has no I/O queues.
            self.settle()
        } else {
            Then::EndQueues
        }
    }
    /// The I/O queues have ended, as they were asked to, and so have their commands.
    pub fn on_queues_ended(&mut self) -> Then {
        self.ending -= 1;
        if self.ending == 0 { self.settle() } else { Then::Nothing }
    }
    /// I/O queues are let in.
    pub fn on_queues_begun(&mut self) {
        if self.cc & property::CC_ENABLE != 0 && !self.resetting {
            self.csts |= property::CSTS_READY;
        }
    }
    /// CSTS says what CC asked for.
    fn settle(&mut self) -> Then {
        let mut then = Then::Nothing;
        if std::mem::take(&mut self.resetting) {
            self.csts &= property::CSTS_SHUTDOWN;
            if self.cc & property::CC_ENABLE != 0 {
                then = self.enable();
            }
        }
        if self.cc & property::CC_SHUTDOWN != 0 {
            self.csts &= !property::CSTS_SHUTDOWN;
            self.csts |= property::CSTS_SHUTDOWN_COMPLETE;
        }
        then
    }
    fn enable(&mut self) -> Then {
        // Command set, memory page and arbitration are all 0; the entry sizes are the fixed ones
        // (a discovery controller has no I/O queues and so no use for them).
        let modes = self.cc & 0x3ff0;
        let sizes = (self.cc >> 16 & 0xf, self.cc >> 20 & 0xf);
        let fits = modes == 0 && (sizes == (6, 4) || self.discovery);
        self.csts = match (fits, self.discovery) {
            (false, _) => property::CSTS_FATAL,
            (true, true) => property::CSTS_READY,
            (true, false) => 0,
        };
        if !fits || self.discovery {
            return Then::Nothing;
        }
        let uniquifier = self.life.uniquifier.checked_add(1).unwrap_or(1);
        self.life = ControllerLife { id: self.id, uniquifier, random: self.prng.next_u64() };
        Then::BeginQueues(self.life)
    }
    /// Whether the controller was disabled and Asynchronous Event Requests wait that die with it.
    pub fn take_dead_event(&mut self) -> Option<u16> {
        if self.is_ready() { None } else { self.waiting.pop_front() }
    }

    /// An Asynchronous Event Request waits now.
    pub fn hold(&mut self, tag: u16) {
        self.waiting.push_back(tag);
    }
    /// The host aborted a request that waits.
    pub fn unhold(&mut self, tag: u16) {
        self.waiting.retain(|t| *t != tag);
    }
    /// The next event to report, and the command that carries it. Apart from what I/O queues run at each input.
    #[cold]
    pub fn next_event(&mut self) -> Option<(u16, Completion)> {
        let events = self.features.events;
        for (notice, enabled, what) in [
            (&mut self.namespace_notice, EVENT_NAMESPACE, NOTICE_NAMESPACE),
            (&mut self.ana_notice, EVENT_ANA, NOTICE_ANA),
            (&mut self.discovery_notice, EVENT_DISCOVERY, NOTICE_DISCOVERY),
        ] {
            if notice.pending && !notice.masked && events & enabled != 0 {
                let tag = self.waiting.pop_front()?;
                *notice = Notice { pending: false, masked: true };
                return Some((tag, Completion::result(what)));
            }
        }
        None
    }
    /// The host has read a log page and taken note of its event.
    pub fn page_read(&mut self, page: u8) {
        match page {
            CHANGED_NAMESPACES => {
                self.changed.clear();
                self.namespace_notice = Notice::default();
            }
            ANA => self.ana_notice = Notice::default(),
            DISCOVERY => self.discovery_notice = Notice::default(),
            _ => {}
        }
    }
    /// The Changed Namespace List, 4096 bytes.
    pub fn changed_list(&self) -> Vec<u8> {
        let mut out: Vec<u8> = if self.changed.len() > CHANGED_MAX {
            NSID_ALL.to_le_bytes().to_vec()
        } else {
            self.changed.iter().flat_map(|id| id.to_le_bytes()).collect()
        };
        out.resize(CHANGED_MAX * 4, 0);
        out
    }

    /// There is a new view. False: the host is no longer let in.
    #[must_use]
    pub fn on_view(&mut self, config: &ConnectionConfig, view: &View) -> bool {
        if self.discovery {
            // Hosts may become known, or unknown, while their discovery controller stays.
            self.host = view.host_by_nqn(&self.hostnqn).map(|h| h.id);
            let entries = crc32c(&discovery::entries(config, view, self.host.is_some()));
            self.discovery_notice.pending |= entries != self.entries;
            self.entries = entries;
            return true;
        }
        let Some(host) = self.host.and_then(|h| view.host(h)) else { return false };
        // A host whose name was taken away is another host from now on.
        if !host.nqns.contains(&self.hostnqn) {
            return false;
        }
        let namespaces = Namespaces::of(Some(host));
        let changed = namespaces.changed_since(&self.namespaces);
        self.namespace_notice.pending |= !changed.is_empty();
        if let Some(ana) = &mut self.ana {
            self.ana_notice.pending |= ana.on_view(view, !namespaces.same_ids(&self.namespaces));
        }
        self.changed.extend(changed);
        self.namespaces = namespaces;
        true
    }
}
