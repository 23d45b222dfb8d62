//! Full feature phase: sequence numbers (RFC 7143 4.2.2), logical units and their unit attentions, tasks, and
//! task management (RFC 7143 4.2.3, 11.5, 11.6).

mod clears;
mod tags;

use self::clears::Clear;
use self::tags::TaskTags;
use super::{CONTROL_ROOM, ConnectionConfig, IMMEDIATE_MAX, MANAGEMENTS_MAX};
use crate::pdu::{
    BHS_BYTES, Bhs, Counters, DIGEST_BYTES, Framing, LogoutResponse, Reject, TaskManagementRequest,
    TaskManagementResponse, data_digest_of, function, function_response, header_digest, padding,
    reject_reason, set_data_len,
};
use crate::scsi::{Sense, Unit, Work, lun_of};
use crate::text::Parameters;
use base::crc::crc32c;
use base::front::{Close, Intervention};
use base::view::{PathState, Principal};
use base::{FrontIo, HostId, Slice, Slots, Tag, VolumeId};
use std::collections::VecDeque;

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Its buffer.
    Buffer,
    /// Data from the host.
    Data,
    /// The head, which carries its command out.
    Submitted,
    /// Room in the outbox, to be answered.
    Answer,
    /// Its end at the head; it was aborted and is not answered.
    Aborting {
        /// Management functions that wait for that end, one bit each.
        awaited_by: u8,
    },
}

/// How a task ends, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// With GOOD, if nothing happens.
    Good,
    /// With CHECK CONDITION and this sense.
    Failed(Sense),
    /// Another session cleared it while it was at the head: with GOOD if the head carries it out all the same,
    /// otherwise with TASK ABORTED.
    Cleared,
    /// Its unit was taken from the host while it was at the head: with GOOD if the head carries it out all the same,
    /// otherwise with LOGICAL UNIT NOT SUPPORTED.
    Gone,
    /// With TASK ABORTED.
    Aborted,
}

impl Ending {
    /// The task cannot be carried out. The first failure counts.
    pub(super) fn fail(&mut self, sense: Sense) {
        match self {
            Self::Good => *self = Self::Failed(sense),
            Self::Cleared => *self = Self::Aborted,
            Self::Gone => *self = Self::Failed(Sense::NO_UNIT),
            Self::Failed(_) | Self::Aborted => {}
        }
    }
    /// Its unit was taken from the host.
    pub(super) fn lose_unit(&mut self) {
        if !self.is_failure() {
            *self = Self::Gone;
        }
    }

    /// Another session cleared the task.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Good => *self = Self::Cleared,
            Self::Failed(_) => *self = Self::Aborted,
            Self::Gone | Self::Cleared | Self::Aborted => {}
        }
    }
    pub(super) fn is_failure(self) -> bool {
        matches!(self, Self::Failed(_) | Self::Aborted)
    }
    pub(super) fn is_cleared(self) -> bool {
        matches!(self, Self::Gone | Self::Cleared | Self::Aborted)
    }
}

/// Which of the command's data the buffer holds.
#[derive(Debug)]
pub(super) enum Holds {
    /// All of them.
    All,
    /// Those that come unasked. The buffer is of the memory for such data: nothing may be asked for while it is held.
    Unasked,
    /// Those that came unasked. The head carries out the first `bytes` of them before the rest has come.
    Early { bytes: u32 },
    /// Those from `base` on: what lies before has been carried out. `kept` has come and waits for the buffer.
    Rest { base: u32, kept: Vec<u8> },
}

/// Why the host sends the data that are still to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// The command announced them, without an R2T.
    Unsolicited,
    /// R2Ts ask for them.
    Solicited {
        /// R2Ts sent.
        r2ts: u32,
        /// Sequences that have ended, one for each R2T.
        ended: u32,
        /// The end of what the R2Ts ask for.
        end: u32,
    },
}

impl Turn {
    /// No R2T has been sent.
    pub(super) const SOLICITED: Self = Self::Solicited { r2ts: 0, ended: 0, end: 0 };
}

/// Data of a task that come from the host (Data-Out).
#[derive(Debug)]
pub(super) struct FromHost {
    /// Bytes that the command defines.
    pub defined: u64,
    /// Bytes that we take of them: no more than the host announced.
    pub wire: u32,
    /// Bytes received, in order, surplus included.
    pub received: u32,
    pub turn: Turn,
    /// End of the current sequence.
    pub sequence_end: u32,
    /// Next DataSN of the current sequence.
    pub data_sn: u32,
}

/// Data of a task that go to the host (Data-In) once all is well.
#[derive(Debug)]
pub(super) struct ToHost {
    /// Bytes that the command defines.
    pub defined: u64,
    /// Bytes that the host takes of them: none if it did not say that it reads.
    pub total: u32,
    /// Bytes sent.
    pub sent: u32,
    /// PDUs sent.
    pub pdus: u32,
}

/// Progress of a command that goes to the head in steps.
#[derive(Default, Debug)]
pub(super) struct Steps {
    /// The descriptor of an UNMAP.
    pub descriptor: u32,
    /// Blocks done, of the command or of that descriptor.
    pub blocks: u32,
}

/// One SCSI command under way.
#[derive(Debug)]
pub(super) struct Task {
    pub task_tag: u32,
    /// Counted by CmdSN, so it takes part in the window.
    pub numbered: bool,
    /// The head knows the tag: a buffer was asked for, or a command submitted.
    pub held: bool,
    pub lun_field: u64,
    pub unit: Unit,
    pub work: Work,
    pub phase: Phase,
    pub ending: Ending,
    /// Expected Data Transfer Length.
    pub expected: u32,
    pub buffer: Slice,
    pub holds: Holds,
    pub from_host: FromHost,
    pub to_host: ToHost,
    /// Distinguishes reuses of a slot in transfer tags.
    pub generation: u32,
    pub steps: Steps,
    /// An answer that is too long for the ring, until its buffer is there.
    pub answer: Vec<u8>,
}

/// Something that waits for room in the outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ready {
    R2t(u32),
    Answer(u32),
    Management(usize),
}

/// What follows a management function's response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    Stay,
    Close(Close),
}

#[derive(Clone, Copy, Debug)]
struct Management {
    task_tag: u32,
    waiting: u32,
    /// None: it is a logout.
    response: Option<u8>,
    then: Then,
}

/// Unit attentions of one unit: a bit for each, lowest reported first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Attentions(u8);

impl Attentions {
    const POWER_ON: u8 = 1 << 0;
    const RESET: u8 = 1 << 1;
    const ACCESS: u8 = 1 << 2;
    const CAPACITY: u8 = 1 << 3;
    const LUNS: u8 = 1 << 4;
    /// The sense that reports each bit.
    const SENSES: [Sense; 5] =
        [Sense::POWER_ON, Sense::RESET, Sense::ACCESS_CHANGED, Sense::CAPACITY_CHANGED, Sense::LUNS_CHANGED];

    fn add(&mut self, what: u8, on: bool) {
        self.0 |= if on { what } else { 0 };
    }
    // Each command asks: nearly always there is none.
    fn first(self) -> Option<Sense> {
        if self.0 == 0 { None } else { Some(Self::SENSES[self.0.trailing_zeros() as usize]) }
    }
    /// The first one is reported.
    fn reported(&mut self) {
        // SAM-5 5.14: a power on says everything that a reset would.
        let also = if self.0 & Self::POWER_ON != 0 { Self::RESET } else { 0 };
        self.0 &= self.0.wrapping_sub(1) & !also;
    }
}

#[derive(Clone, Copy, Debug)]
struct KnownUnit {
    lun: u16,
    unit: Unit,
    attentions: Attentions,
}

/// What to do with a numbered PDU, by its CmdSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Take,
    Ignore,
    Gap,
}

/// A session in full feature phase; it has one connection.
#[derive(Debug)]
pub(super) struct Session {
    pub discovery: bool,
    /// What it was let in by, under this name.
    pub principal: Option<Principal>,
    pub initiator: String,
    pub parameters: Parameters,
    pub framing: Framing,
    pub port: u16,
    pub max_recv: u32,
    pub stat_sn: u32,
    pub exp_cmd_sn: u32,
    /// Commands that the window lets in at once.
    window: u32,
    pub tasks: Slots<Task>,
    /// Slots by initiator task tag.
    task_tags: TaskTags,
    numbered: u32,
    immediate: u32,
    pub data_waits: u32,
    pub generation: u32,
    pub ready: VecDeque<Ready>,
    managements: [Option<Management>; MANAGEMENTS_MAX],
    /// Functions of other sessions that wait for tasks of ours.
    clears: Vec<Clear>,
    units: Vec<KnownUnit>,
    /// How well each head reaches them, as this session knows it.
    paths: [PathState; 2],
    /// Answers are made here.
    pub scratch: Vec<u8>,
    /// Data-Out of tasks that were aborted may still arrive.
    pub strays: bool,
    /// The session is over; nothing more is to be done.
    pub closing: Option<Close>,
    /// Text received in the exchange under way.
    pub text_in: Vec<u8>,
    /// Text that is still to be sent.
    pub text_out: Vec<u8>,
}

impl Session {
    pub(super) fn new(config: &ConnectionConfig, parameters: Parameters, slots: u16) -> Self {
        Self {
            discovery: false,
            principal: None,
            initiator: String::new(),
            parameters,
            framing: Framing { header_digest: parameters.header_digest, data_digest: parameters.data_digest },
            port: config.port(),
            max_recv: 0,
            stat_sn: 0,
            exp_cmd_sn: 0,
            window: u32::from(config.commands_max - IMMEDIATE_MAX),
            tasks: Slots::with_capacity(u32::from(slots)),
            task_tags: TaskTags::new(slots),
            numbered: 0,
            immediate: 0,
            data_waits: 0,
            generation: 0,
            // Each task and each management function is in it at most once.
            ready: VecDeque::with_capacity(usize::from(slots) + MANAGEMENTS_MAX),
            managements: [None; MANAGEMENTS_MAX],
            clears: Vec::new(),
            units: Vec::new(),
            paths: Default::default(),
            scratch: Vec::with_capacity(if slots > 0 { super::ANSWER_BYTES_MAX } else { 0 }),
            strays: false,
            closing: None,
            text_in: Vec::new(),
            text_out: Vec::new(),
        }
    }

    /// RFC 7143 4.2.2.1: the window is as wide as there are free slots, and never shrinks from its end.
    pub(super) fn counters(&self) -> Counters {
        let max_cmd_sn = self.exp_cmd_sn.wrapping_add(self.window - self.numbered).wrapping_sub(1);
        Counters { stat_sn: self.stat_sn, exp_cmd_sn: self.exp_cmd_sn, max_cmd_sn }
    }

    /// The counters for a PDU that has a StatSN of its own.
    pub(super) fn advance(&mut self) -> Counters {
        let counters = self.counters();
        self.stat_sn = self.stat_sn.wrapping_add(1);
        counters
    }

    /// RFC 7143 4.2.2.1: duplicates and what lies outside of the window are ignored. On the only
    /// connection of a session commands come in order, so a gap can never be filled.
    pub(super) fn order(&mut self, cmd_sn: u32, immediate: bool) -> Order {
        if immediate {
            return Order::Take;
        }
        if cmd_sn == self.exp_cmd_sn {
            if self.numbered == self.window {
                return Order::Ignore; // the window is closed
            }
            self.exp_cmd_sn = cmd_sn.wrapping_add(1);
            return Order::Take;
        }
        let width = self.window - self.numbered;
        if cmd_sn.wrapping_sub(self.exp_cmd_sn) < width { Order::Gap } else { Order::Ignore }
    }

    /// Whether one more command with the I bit can be taken.
    pub(super) fn takes_immediate(&self) -> bool {
        self.immediate < u32::from(IMMEDIATE_MAX)
    }

    /// Sends a PDU whose data are bytes of ours. There must be room.
    pub(super) fn send(&self, mut bhs: Bhs, data: &[u8], io: &mut impl FrontIo) {
        set_data_len(&mut bhs, data.len() as u32);
        let (head, len) = self.head(&bhs);
        io.header(&head[..len]);
        if !data.is_empty() {
            io.header(data);
            let (trailer, used) = self.trailer(data.len() as u32, || crc32c(data));
            io.header(&trailer[..used]);
        }
    }

    /// A header with its digest, and how much of it there is.
    pub(super) fn head(&self, bhs: &Bhs) -> ([u8; BHS_BYTES + DIGEST_BYTES], usize) {
        let mut head = [0; BHS_BYTES + DIGEST_BYTES];
        head[..BHS_BYTES].copy_from_slice(bhs);
        if !self.framing.header_digest {
            return (head, BHS_BYTES);
        }
        head[BHS_BYTES..].copy_from_slice(&header_digest(bhs, &[]));
        (head, BHS_BYTES + DIGEST_BYTES)
    }

    /// Padding and digest after `len` bytes of data, and how much of it there is; `crc`: the CRC32C of the data.
    pub(super) fn trailer(&self, len: u32, crc: impl FnOnce() -> u32) -> ([u8; 8], usize) {
        let pad = padding(len) as usize;
        let mut trailer = [0; 8];
        if !self.framing.data_digest {
            return (trailer, pad);
        }
        trailer[pad..pad + DIGEST_BYTES].copy_from_slice(&data_digest_of(crc(), len));
        (trailer, pad + DIGEST_BYTES)
    }

    /// RFC 7143 11.17: says that a PDU was not acted upon.
    pub(super) fn reject(&mut self, reason: u8, bhs: &Bhs, io: &mut impl FrontIo) {
        let counters = self.advance();
        self.send(Reject { reason, counters, ..Reject::default() }.encode(), bhs, io);
    }

    // Units.

    /// The units that the host sees now; attentions for what has changed (SAM-5 5.14).
    pub(super) fn refresh(&mut self, login: bool, io: &impl FrontIo) {
        let host = self.host().and_then(|id| io.view().host(id));
        let exports = host.map_or(&[][..], |h| &h.exports);
        // SPC-4 5.15.2.3: a change of any group is reported to every session.
        let paths = [0, 1].map(|head| io.view().path_of(head));
        let other_paths = core::mem::replace(&mut self.paths, paths) != paths && !login;
        let old = core::mem::take(&mut self.units);
        let same_luns = old.len() == exports.len()
            && exports.iter().all(|e| old.iter().any(|o| o.lun == e.lun && o.unit.volume == e.volume));
        for export in exports {
            let unit = Unit::of(export);
            let before = old.iter().find(|o| o.lun == export.lun);
            let mut attentions = before.map_or(Attentions::default(), |o| o.attentions);
            match before {
                Some(o) if o.unit.volume == unit.volume => {
                    let resized = (o.unit.blocks, o.unit.block_bytes) != (unit.blocks, unit.block_bytes);
                    attentions.add(Attentions::CAPACITY, resized);
                }
                // A unit that this session has not met begins with a power on.
                Some(_) | None => attentions.add(Attentions::POWER_ON, true),
            }
            attentions.add(Attentions::ACCESS, other_paths);
            attentions.add(Attentions::LUNS, !login && !same_luns);
            self.units.push(KnownUnit { lun: export.lun, unit, attentions });
        }
        self.units.sort_unstable_by_key(|u| u.lun);
    }

    /// The host whose session it is, if it is known.
    pub(super) fn host(&self) -> Option<HostId> {
        self.principal.map(|p| p.host)
    }

    fn place(&self, lun: Option<u16>) -> Option<usize> {
        self.units.binary_search_by_key(&lun?, |u| u.lun).ok()
    }
    pub(super) fn unit(&self, lun: Option<u16>) -> (Option<Unit>, Option<Sense>) {
        match self.place(lun) {
            Some(i) => (Some(self.units[i].unit), self.units[i].attentions.first()),
            None => (None, None),
        }
    }
    /// The first attention of the unit is reported.
    pub(super) fn attention_reported(&mut self, lun: Option<u16>) {
        if let Some(i) = self.place(lun) {
            self.units[i].attentions.reported();
        }
    }
    /// SPC-4 6.33: REPORT LUNS returns the list, so no unit needs to report that it changed.
    pub(super) fn luns_reported(&mut self) {
        for unit in &mut self.units {
            unit.attentions.0 &= !Attentions::LUNS;
        }
    }

    // Tasks.

    pub(super) fn find(&self, task_tag: u32) -> Option<u32> {
        self.task_tags.find(task_tag)
    }

    #[inline]
    pub(super) fn insert(&mut self, task_tag: u32, numbered: bool, task: impl FnOnce() -> Task) -> u32 {
        let slot = self.tasks.insert_with(task).expect("the window and the immediate limit leave a slot");
        self.task_tags.insert(task_tag, slot);
        if numbered {
            self.numbered += 1;
        } else {
            self.immediate += 1;
        }
        slot
    }

    /// A task is over, and its slot free; the window widens by it.
    pub(super) fn remove(&mut self, slot: u32) {
        let task = &self.tasks[slot];
        self.data_waits -= u32::from(task.phase == Phase::Data);
        self.task_tags.remove(task.task_tag, slot);
        if task.numbered {
            self.numbered -= 1;
        } else {
            self.immediate -= 1;
        }
        self.tasks.free(slot);
    }

    pub(super) fn set_phase(&mut self, slot: u32, phase: Phase) {
        let before = core::mem::replace(&mut self.tasks[slot].phase, phase);
        self.data_waits -= u32::from(before == Phase::Data);
        self.data_waits += u32::from(phase == Phase::Data);
    }

    // Task management.

    /// A task management request. False if there is no room for one more.
    pub(super) fn manage(&mut self, r: &TaskManagementRequest, io: &mut impl FrontIo) -> bool {
        let Some(slot) = self.managements.iter().position(Option::is_none) else { return false };
        let mut management = Management {
            task_tag: r.task_tag,
            waiting: 0,
            response: Some(function_response::COMPLETE),
            then: Then::Stay,
        };
        let lun = lun_of(r.lun);
        let known = self.place(lun);
        let mut abort_where: Option<fn(&Task, u64) -> bool> = None;
        // Units whose tasks of other sessions end too (SAM-5 7.5, 7.7, 7.12; RFC 7143 11.5.1).
        let mut everywhere: Vec<VolumeId> = vec![];
        let reset = r.function != function::CLEAR_TASK_SET;
        match r.function {
            function::ABORT_TASK => match self.find(r.referenced_task_tag) {
                Some(task) => {
                    if self.abort(task, slot, io) {
                        management.waiting += 1;
                    }
                }
                // RFC 7143 11.6.1: a command that is still to come counts as come and gone.
                None if r.ref_cmd_sn == self.exp_cmd_sn && self.order(r.ref_cmd_sn, false) == Order::Take => {
                }
                None => management.response = Some(function_response::NO_TASK),
            },
            function::ABORT_TASK_SET | function::CLEAR_TASK_SET | function::LUN_RESET => match known {
                None => management.response = Some(function_response::NO_LUN),
                Some(i) => {
                    let reset = r.function == function::LUN_RESET;
                    self.units[i].attentions.add(Attentions::RESET, reset);
                    if r.function != function::ABORT_TASK_SET {
                        everywhere.push(self.units[i].unit.volume);
                    }
                    abort_where = Some(|task, lun| lun_of(task.lun_field) == lun_of(lun));
                }
            },
            function::TARGET_WARM_RESET => {
                for unit in &mut self.units {
                    unit.attentions.add(Attentions::RESET, true);
                    everywhere.push(unit.unit.volume);
                }
                abort_where = Some(|_, _| true);
            }
            // RFC 7143 11.5.1: it would end all sessions of all hosts, and lets us say who may do that:
            // no host.
            function::TARGET_COLD_RESET => management.response = Some(function_response::NOT_AUTHORIZED),
            function::TASK_REASSIGN => management.response = Some(function_response::NO_REASSIGN),
            _ => management.response = Some(function_response::NOT_SUPPORTED),
        }
        if let Some(meant) = abort_where {
            management.waiting = self.abort_all(slot, |task| meant(task, r.lun), io);
        }
        if !everywhere.is_empty() {
            management.waiting += 1;
            io.intervene(slot as u16, Intervention::ClearTasks { units: everywhere.into(), reset });
        }
        self.begin_management(slot, management);
        true
    }

    /// A logout that ends nothing, and why (RFC 7143 11.15.1).
    pub(super) fn refuse_logout(&mut self, task_tag: u32, response: u8, io: &mut impl FrontIo) {
        let counters = self.advance();
        let response = LogoutResponse { response, task_tag, counters, ..LogoutResponse::default() };
        self.send(response.encode(), &[], io);
    }
    /// A logout: everything under way ends before it is answered.
    pub(super) fn logout(&mut self, task_tag: u32, io: &mut impl FrontIo) -> bool {
        let Some(slot) = self.managements.iter().position(Option::is_none) else { return false };
        let waiting = self.abort_all(slot, |_| true, io);
        let then = Then::Close(Close::Logout);
        self.begin_management(slot, Management { task_tag, waiting, response: None, then });
        true
    }

    /// Other sessions have done their part of the function in this slot.
    pub(super) fn intervened(&mut self, slot: usize) {
        self.one_less(slot);
    }
    fn one_less(&mut self, slot: usize) {
        let management = self.managements[slot].as_mut().expect("a function that waits is in its slot");
        management.waiting -= 1;
        if management.waiting == 0 {
            self.ready.push_back(Ready::Management(slot));
        }
    }

    fn begin_management(&mut self, slot: usize, management: Management) {
        self.managements[slot] = Some(management);
        if management.waiting == 0 {
            self.ready.push_back(Ready::Management(slot));
        }
    }

    fn abort_all(&mut self, by: usize, meant: impl Fn(&Task) -> bool, io: &mut impl FrontIo) -> u32 {
        let mut waiting = 0;
        for slot in 0..self.tasks.capacity() {
            if self.tasks.get(slot).is_some_and(&meant) && self.abort(slot, by, io) {
                waiting += 1;
            }
        }
        waiting
    }

    /// Aborts a task. True if its end must be waited for.
    fn abort(&mut self, slot: u32, by: usize, io: &mut impl FrontIo) -> bool {
        match self.tasks[slot].phase {
            Phase::Buffer | Phase::Submitted => {
                self.set_phase(slot, Phase::Aborting { awaited_by: 1 << by });
                io.abort(Tag(slot as u16));
                true
            }
            Phase::Aborting { awaited_by } => {
                self.set_phase(slot, Phase::Aborting { awaited_by: awaited_by | 1 << by });
                true
            }
            // Nothing of it is at the head. RFC 7143 4.2.3.3 would wait for the answers to its R2Ts;
            // Linux (fast_abort) does not send them, so we let them come and drop them (4.2.3.4).
            Phase::Data => {
                self.ready.retain(|r| *r != Ready::R2t(slot));
                let held = self.tasks[slot].held;
                self.remove(slot);
                if held {
                    io.finish(Tag(slot as u16));
                }
                self.strays = true;
                false
            }
            // Its answer goes out before ours does.
            Phase::Answer => false,
        }
    }

    /// An aborted task has ended at the head.
    pub(super) fn aborted(&mut self, slot: u32, awaited_by: u8, io: &mut impl FrontIo) {
        self.remove(slot);
        io.finish(Tag(slot as u16));
        self.strays = true;
        for by in 0..MANAGEMENTS_MAX {
            if awaited_by & 1 << by != 0 {
                self.one_less(by);
            }
        }
    }

    fn answer_management(&mut self, slot: usize, io: &mut impl FrontIo) {
        let management = self.managements[slot].take().expect("a function is answered once");
        let counters = self.advance();
        let task_tag = management.task_tag;
        let bhs = match management.response {
            Some(response) => TaskManagementResponse { response, task_tag, counters }.encode(),
            None => LogoutResponse {
                response: 0,
                task_tag,
                counters,
                time2wait: self.parameters.time2wait,
                time2retain: 0,
            }
            .encode(),
        };
        self.send(bhs, &[], io);
        if let Then::Close(why) = management.then {
            self.closing = Some(why);
        }
    }

    /// Whether the session goes on, and an answer has room.
    pub(super) fn may_answer(&self, io: &impl FrontIo) -> bool {
        self.closing.is_none() && io.room() >= CONTROL_ROOM + 256
    }
    /// Whether something waits for room.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }
    /// Sends what is ready, in order, as far as there is room.
    pub(super) fn pump(&mut self, io: &mut impl FrontIo) {
        while self.may_answer(io)
            && let Some(front) = self.ready.front().copied()
        {
            let over = match front {
                Ready::R2t(slot) => self.send_r2ts(slot, io),
                Ready::Answer(slot) => self.send_answer(slot, io),
                Ready::Management(slot) => {
                    self.answer_management(slot, io);
                    true
                }
            };
            if !over {
                return;
            }
            self.ready.pop_front();
        }
    }

    /// RFC 7143 11.16: there is nothing to be sent again at error recovery level 0.
    pub(super) fn snack(&mut self, bhs: &Bhs, io: &mut impl FrontIo) {
        self.reject(reject_reason::SNACK, bhs, io);
    }
}
