//! Tasks from the command to the answer: immediate, unsolicited and solicited data (RFC 7143 4.2.5,
//! 11.7, 11.8), the head's command or commands, Data-In with residuals and collapsed status.

mod early;

use super::session::{Ending, FromHost, Holds, Phase, Ready, Session, Steps, Task, ToHost, Turn};
use super::{ANSWER_BYTES_MAX, CONTROL_ROOM, COPY_STEP, ZERO_STEP};
use crate::pdu::{DataIn, DataOut, R2t, RESERVED_TAG, Residual, ScsiCommand, ScsiResponse, reject_reason};
use crate::scsi::commands::{unmap_check, unmap_descriptor};
use crate::scsi::sense::FIXED_BYTES;
use crate::scsi::{Asked, Sense, Unit, Work, lun_of, modes, plan, status};
use base::crc::crc32c;
use base::{Command, FrontIo, IscsiFault, Op, Slice, Status, Tag, VolumeId};

/// What becomes of a command PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    /// Rejected with this reason.
    Reject(u8),
    /// Answered when its PDU is here; no data of it are kept.
    Instant(Work),
    /// A task; `waits`: its buffer must come before its data do.
    Task { slot: u32, waits: bool },
}

pub(super) const NO_UNIT: Unit =
    Unit { volume: VolumeId(u32::MAX), block_bytes: 512, blocks: 0, deallocate: false, ready: false };

/// Bits of a transfer tag: slot, R2T number, generation. Slots are below 1023, so no tag is all ones.
fn transfer_tag(slot: u32, sequence: u32, generation: u32) -> u32 {
    (generation & 0x3fff) << 18 | (sequence & 0xff) << 10 | slot
}

/// Bytes that a command needs.
struct Needs {
    /// Of the host: so many it defines, and so many come.
    out: u64,
    wire: u32,
    /// For the host, as many as it defines.
    back: u64,
    /// Of memory.
    buffer: u32,
}

impl Needs {
    fn read(bytes: u64) -> Self {
        Self { out: 0, wire: 0, back: bytes, buffer: bytes as u32 }
    }
}

impl Session {
    /// A SCSI command whose CmdSN is right; `odd`: it has an additional header that we do not take.
    pub(super) fn begin_command(&mut self, c: &ScsiCommand, odd: bool, io: &mut impl FrontIo) -> Begun {
        if self.find(c.task_tag).is_some() {
            return Begun::Reject(reject_reason::TASK_IN_PROGRESS);
        }
        if c.task_tag == RESERVED_TAG || c.data_len > 0 && !c.write {
            return Begun::Reject(reject_reason::INVALID_FIELD);
        }
        if c.immediate && !self.takes_immediate() {
            return Begun::Reject(reject_reason::TOO_MANY_IMMEDIATE);
        }
        let first_burst = self.parameters.first_burst.min(c.expected);
        let unsolicited = c.write && !c.last;
        let lun = lun_of(c.lun);
        let (unit, attention) = self.unit(lun);
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        let (view, host) = (io.view(), self.host());
        let asked = Asked { cdb: &c.cdb, lun, unit, attention, view, host, port: self.port };
        let mut work = plan(&asked, &mut scratch);
        self.scratch = scratch;
        // RFC 7143 13.10, 13.11: data that were not agreed upon.
        if unsolicited && self.parameters.initial_r2t
            || c.data_len > 0 && !self.parameters.immediate_data
            || c.data_len > first_burst
        {
            work = Work::Fail(Sense::UNEXPECTED_DATA);
        } else if odd || c.read && c.write {
            // Bidirectional commands and long CDBs: none of ours.
            work = Work::Fail(Sense::INVALID_OPCODE);
        }
        match work {
            Work::Attention(sense) => {
                self.attention_reported(lun);
                work = Work::Fail(sense);
            }
            Work::SenseData => self.attention_reported(lun),
            Work::Luns => self.luns_reported(),
            _ => {}
        }
        let unit = unit.unwrap_or(NO_UNIT);
        let (needs, long) = match work {
            // As most commands.
            Work::Read { blocks, .. } if !c.write => {
                (Needs::read(u64::from(blocks) * u64::from(unit.block_bytes)), false)
            }
            _ => {
                let long = self.scratch.len().min(c.expected as usize) > ANSWER_BYTES_MAX;
                let needs = self.needs(&mut work, &unit, c, long);
                let nothing = needs.out > 0 && needs.wire == 0 && !matches!(work, Work::Fail(_));
                if work.is_instant() && !unsolicited && !long || nothing && !unsolicited {
                    let work = if nothing { Work::Good } else { work };
                    return Begun::Instant(work);
                }
                (needs, long)
            }
        };
        let Needs { out: data_out, wire, back: data_in, buffer: buffer_len } = needs;
        let inline = c.data_len > 0 || unsolicited;
        let unasked = if unsolicited { first_burst } else { c.data_len };
        self.generation = self.generation.wrapping_add(1);
        let answer = if long { core::mem::take(&mut self.scratch) } else { Vec::new() };
        let (task_tag, numbered, generation) = (c.task_tag, !c.immediate, self.generation);
        let slot = self.insert(task_tag, numbered, || Task {
            task_tag,
            numbered,
            held: buffer_len > 0,
            lun_field: c.lun,
            unit,
            work,
            phase: Phase::Buffer,
            ending: match work {
                Work::Fail(sense) => Ending::Failed(sense),
                _ => Ending::Good,
            },
            expected: c.expected,
            buffer: Slice::default(),
            holds: if inline && buffer_len > 0 { Holds::Unasked } else { Holds::All },
            from_host: FromHost {
                defined: data_out,
                wire,
                received: 0,
                turn: if unsolicited { Turn::Unsolicited } else { Turn::SOLICITED },
                sequence_end: first_burst,
                data_sn: 0,
            },
            to_host: ToHost {
                defined: data_in,
                total: if c.read { data_in.min(u64::from(c.expected)) as u32 } else { 0 },
                sent: 0,
                pdus: 0,
            },
            generation,
            steps: Steps::default(),
            answer,
        });
        let granted = match buffer_len {
            0 => Some(Slice::default()),
            len if inline => self.reserve_unasked(slot, unasked, len, io),
            len => io.reserve(Tag(slot as u16), len),
        };
        match granted {
            Some(buffer) => {
                self.tasks[slot].buffer = buffer;
                self.set_phase(slot, Phase::Data);
                Begun::Task { slot, waits: false }
            }
            None => Begun::Task { slot, waits: inline },
        }
    }

    /// What `work` needs. It becomes a failure if the host does not send enough for it.
    fn needs(&self, work: &mut Work, unit: &Unit, c: &ScsiCommand, long: bool) -> Needs {
        let out = work.data_out(unit.block_bytes);
        let announced = if c.write { c.expected } else { 0 };
        let wire = u64::from(announced).min(out) as u32;
        // A command that wants data of a host that has none to send, or not enough to mean anything.
        let least = match work {
            Work::Same { .. } | Work::Unmap { .. } | Work::ModeSelect { .. } => out,
            _ => 0,
        };
        if u64::from(wire) < least {
            *work = Work::Fail(Sense::NOT_ENOUGH_DATA);
        }
        let bytes = |blocks: u32| u64::from(blocks) * u64::from(unit.block_bytes);
        let back = match *work {
            Work::Read { blocks, .. } => bytes(blocks),
            Work::Data | Work::SenseData | Work::Luns => self.scratch.len() as u64,
            _ => 0,
        };
        let buffer = match *work {
            Work::Read { .. } => back as u32,
            Work::Write { .. } => wire.next_multiple_of(unit.block_bytes),
            // What is read to be compared lies behind it.
            Work::Compare { .. } => 2 * wire.next_multiple_of(unit.block_bytes),
            Work::Verify { blocks, .. } | Work::Same { blocks, .. } => {
                bytes(blocks).min(u64::from(COPY_STEP)) as u32
            }
            Work::Unmap { .. } | Work::ModeSelect { .. } => wire,
            Work::Data | Work::SenseData | Work::Luns if long => self.scratch.len() as u32,
            _ => 0,
        };
        Needs { out, wire, back, buffer }
    }

    /// The command's PDU is here, with `data` bytes of immediate data.
    pub(super) fn command_received(&mut self, slot: u32, data: u32, io: &mut impl FrontIo) {
        let task = &mut self.tasks[slot];
        task.from_host.received += data;
        if task.phase == Phase::Data {
            self.next_data(slot, io);
        }
    }

    /// Where `len` bytes at `offset` of a task's data go: what we take of them, and how much that is.
    pub(super) fn place_of(&self, slot: u32, offset: u32, len: u32) -> Slice {
        let task = &self.tasks[slot];
        let wire = task.from_host.wire;
        if task.buffer.len == 0 || offset >= wire {
            return Slice::default();
        }
        task.buffer.part(offset - task.base(), len.min(wire - offset))
    }

    /// The buffer of a task is there.
    pub(super) fn granted(&mut self, slot: u32, buffer: Slice, io: &mut impl FrontIo) {
        let task = &mut self.tasks[slot];
        assert!(task.phase == Phase::Buffer, "a buffer for a task that does not wait for one");
        task.buffer = buffer;
        task.restore(io);
        self.set_phase(slot, Phase::Data);
    }

    /// A Data-Out header: its task and the place of its data. None: its task is over. Data of a failed
    /// task have no place, but end its sequences.
    pub(super) fn begin_data(&mut self, d: &DataOut) -> Result<Option<(u32, Slice)>, IscsiFault> {
        let Some(slot) = self.find(d.task_tag) else {
            return if self.strays { Ok(None) } else { Err(IscsiFault::DataTask) };
        };
        let task = &mut self.tasks[slot];
        match task.phase {
            Phase::Data => {}
            Phase::Aborting { .. } => return Ok(None),
            Phase::Buffer | Phase::Submitted | Phase::Answer => return Err(IscsiFault::DataUnasked),
        }
        match task.from_host.turn {
            Turn::Unsolicited if d.transfer_tag != RESERVED_TAG => {
                return Err(IscsiFault::DataTooEarly);
            }
            Turn::Solicited { r2ts, ended, .. }
                if r2ts == ended || d.transfer_tag != transfer_tag(slot, ended, task.generation) =>
            {
                return if self.strays { Ok(None) } else { Err(IscsiFault::DataTag) };
            }
            Turn::Unsolicited | Turn::Solicited { .. } => {}
        }
        // RFC 7143 13.18, 13.19: PDUs and sequences are in order, and DataSN counts them. 7.9: a gap is
        // like a digest error of what is missing, so the task fails once its data have ended.
        if d.data_sn != task.from_host.data_sn || d.offset != task.from_host.received {
            self.fail(slot, Sense::CRC);
        }
        let task = &self.tasks[slot];
        if task.ending.is_failure() {
            return Ok(Some((slot, Slice::default())));
        }
        let from_host = &task.from_host;
        if d.data_len > from_host.sequence_end.saturating_sub(d.offset) {
            return Err(IscsiFault::DataTooMuch);
        }
        if from_host.turn != Turn::Unsolicited && d.last != (d.offset + d.data_len == from_host.sequence_end)
        {
            return Err(IscsiFault::DataEnd);
        }
        Ok(Some((slot, self.place_of(slot, d.offset, d.data_len))))
    }

    /// A Data-Out's PDU is here.
    pub(super) fn data_received(&mut self, slot: u32, d: &DataOut, io: &mut impl FrontIo) {
        let from_host = &mut self.tasks[slot].from_host;
        from_host.received = from_host.received.saturating_add(d.data_len);
        from_host.data_sn = from_host.data_sn.wrapping_add(1);
        if !d.last {
            return;
        }
        from_host.data_sn = 0;
        match &mut from_host.turn {
            Turn::Unsolicited => from_host.turn = Turn::SOLICITED,
            Turn::Solicited { ended, .. } => {
                *ended += 1;
                from_host.sequence_end =
                    from_host.received.saturating_add(self.parameters.max_burst).min(from_host.wire);
            }
        }
        self.next_data(slot, io);
    }

    /// All data that were under way are here: ask for more, or begin.
    pub(super) fn next_data(&mut self, slot: u32, io: &mut impl FrontIo) {
        let task = &mut self.tasks[slot];
        let from_host = &mut task.from_host;
        let Turn::Solicited { r2ts, ended, end } = &mut from_host.turn else { return };
        if task.ending.is_failure() {
            // RFC 7143 7.8: the answer waits until every sequence that was asked for has ended.
            if r2ts == ended {
                self.answer(slot, io);
            }
        } else if from_host.received >= from_host.wire {
            self.start(slot, io);
        } else if matches!(task.holds, Holds::Unasked) {
            self.carry_out_early(slot, io);
        } else {
            if *r2ts == 0 {
                *end = from_host.received;
                from_host.sequence_end =
                    from_host.received.saturating_add(self.parameters.max_burst).min(from_host.wire);
            }
            if *end < from_host.wire && !self.ready.contains(&Ready::R2t(slot)) {
                self.ready.push_back(Ready::R2t(slot));
            }
        }
    }

    /// Sends as many R2Ts as are agreed upon. False: there was no room for all.
    pub(super) fn send_r2ts(&mut self, slot: u32, io: &mut impl FrontIo) -> bool {
        loop {
            let counters = self.counters();
            let task = &mut self.tasks[slot];
            let wire = task.from_host.wire;
            let Turn::Solicited { r2ts, ended, end } = &mut task.from_host.turn else {
                unreachable!("R2Ts are sent when the unsolicited data have ended")
            };
            let most = u32::from(self.parameters.max_outstanding_r2t);
            if task.ending.is_failure() || *r2ts - *ended >= most || *end >= wire {
                return true;
            }
            if io.room() < CONTROL_ROOM + 64 {
                return false;
            }
            let desired = self.parameters.max_burst.min(wire - *end);
            let r2t = R2t {
                lun: task.lun_field,
                task_tag: task.task_tag,
                transfer_tag: transfer_tag(slot, *r2ts, task.generation),
                counters,
                r2t_sn: *r2ts,
                offset: *end,
                desired,
            };
            *r2ts += 1;
            *end += desired;
            self.send(r2t.encode(), &[], io);
        }
    }

    /// Answers a task: now, if nobody is before it and there is room.
    fn answer(&mut self, slot: u32, io: &mut impl FrontIo) {
        if self.tasks[slot].ending.is_failure() {
            self.ready.retain(|r| *r != Ready::R2t(slot));
        }
        self.set_phase(slot, Phase::Answer);
        let sent = self.ready.is_empty() && self.may_answer(io) && self.send_answer(slot, io);
        if !sent {
            self.ready.push_back(Ready::Answer(slot));
        }
    }

    /// A task cannot be carried out (any more).
    pub(super) fn fail(&mut self, slot: u32, sense: Sense) {
        self.tasks[slot].ending.fail(sense);
    }

    /// Everything is here: carry it out.
    fn start(&mut self, slot: u32, io: &mut impl FrontIo) {
        let task = &mut self.tasks[slot];
        let size = task.unit.block_bytes;
        match task.work {
            Work::Good | Work::Fail(_) | Work::Attention(_) => return self.answer(slot, io),
            Work::Data | Work::SenseData | Work::Luns => {
                let place = task.buffer.head(task.answer.len() as u32);
                io.bytes_mut(place).copy_from_slice(&task.answer);
                return self.answer(slot, io);
            }
            // Less than a block came: nothing can be done with it.
            Work::Write { .. } | Work::Compare { .. } if task.from_host.wire < size => {
                return self.answer(slot, io);
            }
            Work::Same { .. } => {
                let block = io.bytes_mut(task.buffer);
                let (pattern, rest) = block.split_at_mut(size as usize);
                if pattern.iter().any(|b| *b != 0) {
                    for copy in rest.chunks_exact_mut(size as usize) {
                        copy.copy_from_slice(pattern);
                    }
                } else if let Work::Same { at, blocks, deallocate } = task.work {
                    task.work = Work::Zeroes { at, blocks, deallocate };
                }
            }
            Work::Unmap { .. } => {
                if let Err(sense) = unmap_check(io.bytes(task.buffer), &task.unit) {
                    task.ending.fail(sense);
                    return self.answer(slot, io);
                }
            }
            Work::ModeSelect { ten, .. } => {
                if let Err(sense) = modes::mode_select(ten, io.bytes(task.buffer), size) {
                    task.ending.fail(sense);
                }
                return self.answer(slot, io);
            }
            _ => {}
        }
        self.step(slot, io);
    }

    /// The next command of a task for the head; if there is none, its answer.
    fn step(&mut self, slot: u32, io: &mut impl FrontIo) {
        match self.tasks[slot].next_command(io) {
            Some((command, data)) => {
                self.tasks[slot].held = true;
                self.set_phase(slot, Phase::Submitted);
                io.submit(Tag(slot as u16), command, data);
            }
            None => self.answer(slot, io),
        }
    }

    /// The head has ended a task's command, or gave up finding it a buffer; `held`: the stream waits for
    /// that buffer, and goes on without it.
    pub(super) fn done(&mut self, slot: u32, result: Status, held: bool, io: &mut impl FrontIo) {
        match self.tasks[slot].phase {
            Phase::Aborting { awaited_by } => self.aborted(slot, awaited_by, io),
            Phase::Buffer => {
                self.fail(slot, Sense::of(result, true).unwrap_or(Sense::ABORTED));
                self.set_phase(slot, Phase::Data);
                if !held {
                    self.next_data(slot, io);
                }
            }
            Phase::Submitted => {
                let task = &self.tasks[slot];
                // Most commands are one step, and all is well.
                if result == Status::Good
                    && matches!(task.work, Work::Read { .. } | Work::Write { .. })
                    && !matches!(task.holds, Holds::Early { .. })
                {
                    self.answer(slot, io);
                    return self.answer_clears(io);
                }
                let write = !matches!(task.work, Work::Read { .. } | Work::Verify { .. });
                let result = match result {
                    Status::Miscompare { at } => Status::Miscompare { at: at + task.base() },
                    other => other,
                };
                match Sense::of(result, write) {
                    Some(sense) => {
                        self.fail(slot, sense);
                        self.answer(slot, io);
                    }
                    None if matches!(task.holds, Holds::Early { .. }) => self.carried_out_early(slot, io),
                    None => self.step(slot, io),
                }
            }
            Phase::Data | Phase::Answer => unreachable!("the head ends what it was given"),
        }
        self.answer_clears(io);
    }

    /// Sends a task's data and status. False: there was no room for all.
    pub(super) fn send_answer(&mut self, slot: u32, io: &mut impl FrontIo) -> bool {
        let task = &self.tasks[slot];
        let total = task.to_host.total;
        if task.ending.is_failure() || total == 0 {
            let from_host = &task.from_host;
            let (task_tag, held) = (task.task_tag, task.held);
            let (status, sense, defined) = match task.ending {
                Ending::Aborted => (status::TASK_ABORTED, None, from_host.defined),
                Ending::Failed(sense) => (status::CHECK_CONDITION, Some(sense), from_host.defined),
                Ending::Good | Ending::Gone | Ending::Cleared => {
                    (status::GOOD, None, task.to_host.defined.max(from_host.defined))
                }
            };
            let residual = Residual::of(task.expected, defined);
            let r2ts = match from_host.turn {
                Turn::Unsolicited => 0,
                Turn::Solicited { r2ts, .. } => r2ts,
            };
            self.remove(slot);
            self.send_response(task_tag, status, residual, r2ts, sense, io);
            if held {
                io.finish(Tag(slot as u16));
            }
            return true;
        }
        let mut sent = task.to_host.sent;
        while sent < total {
            if io.room() < CONTROL_ROOM + 64 {
                return false;
            }
            sent = self.send_piece(slot, io);
        }
        true
    }

    /// Sends one Data-In out of a task's buffer; the last one ends the task. Returns where the next one begins.
    fn send_piece(&mut self, slot: u32, io: &mut impl FrontIo) -> u32 {
        let p = &self.parameters;
        let task = &mut self.tasks[slot];
        let to_host = &mut task.to_host;
        let (offset, total) = (to_host.sent, to_host.total);
        // RFC 7143 13.13: a sequence of Data-In is no longer than a burst.
        let burst_left = p.max_burst - offset % p.max_burst;
        let len = (total - offset).min(p.peer_max_recv).min(burst_left);
        to_host.sent += len;
        let over = to_host.sent == total;
        let data_sn = to_host.pdus;
        to_host.pdus += 1;
        let (task_tag, place) = (task.task_tag, task.buffer.part(offset, len));
        let residual = if over { Residual::of(task.expected, to_host.defined) } else { Residual::None };
        if over {
            self.remove(slot);
        }
        let piece = DataIn {
            last: len == burst_left || over,
            status: over.then_some(status::GOOD),
            residual,
            task_tag,
            transfer_tag: RESERVED_TAG,
            counters: if over { self.advance() } else { self.counters() },
            data_sn,
            offset,
            data_len: len,
            ..DataIn::default()
        };
        let (head, head_len) = self.head(&piece.encode());
        let (trailer, trailer_len) = self.trailer(len, || crc32c(io.bytes(place)));
        let (head, trailer) = (&head[..head_len], &trailer[..trailer_len]);
        if over {
            io.finish_with(Tag(slot as u16), head, place, trailer);
        } else {
            io.header(head);
            io.payload(place);
            io.header(trailer);
        }
        offset + len
    }

    /// A command that needs no task; its data lie in the scratch buffer.
    pub(super) fn answer_now(
        &mut self,
        c: &ScsiCommand,
        work: Work,
        failed: Option<Sense>,
        io: &mut impl FrontIo,
    ) {
        let failed = match work {
            Work::Fail(sense) => Some(sense),
            _ => failed,
        };
        let data = matches!(work, Work::Data | Work::SenseData | Work::Luns) && failed.is_none();
        let scratch = core::mem::take(&mut self.scratch);
        let total = if data && c.read { scratch.len().min(c.expected as usize) } else { 0 };
        // What the command defines, whether or not the host has room for it.
        let defined = match (failed, data) {
            (Some(_), _) => 0,
            (None, true) => scratch.len() as u64,
            (None, false) => self.defined(c, work),
        };
        let residual = Residual::of(c.expected, defined);
        if total == 0 {
            let status = if failed.is_some() { status::CHECK_CONDITION } else { status::GOOD };
            self.send_response(c.task_tag, status, residual, 0, failed, io);
        } else {
            let mut sent = 0;
            let mut data_sn = 0;
            while sent < total {
                let len = (total - sent).min(self.parameters.peer_max_recv as usize);
                let over = sent + len == total;
                let piece = DataIn {
                    last: over,
                    status: over.then_some(status::GOOD),
                    residual,
                    task_tag: c.task_tag,
                    transfer_tag: RESERVED_TAG,
                    counters: if over { self.advance() } else { self.counters() },
                    data_sn,
                    offset: sent as u32,
                    ..DataIn::default()
                };
                self.send(piece.encode(), &scratch[sent..sent + len], io);
                sent += len;
                data_sn += 1;
            }
        }
        self.scratch = scratch;
    }

    /// Bytes that a command defines which is answered without its data being moved.
    fn defined(&self, c: &ScsiCommand, work: Work) -> u64 {
        if work != Work::Good {
            return 0;
        }
        let lun = lun_of(c.lun);
        let Some(unit) = self.unit(lun).0 else { return 0 };
        // A write without announced data: the overflow is all of it.
        let view = base::view::View::default();
        let asked =
            Asked { cdb: &c.cdb, lun, unit: Some(unit), attention: None, view: &view, host: None, port: 0 };
        plan(&asked, &mut Vec::new()).data_out(unit.block_bytes)
    }

    fn send_response(
        &mut self,
        task_tag: u32,
        status: u8,
        residual: Residual,
        exp_data_sn: u32,
        sense: Option<Sense>,
        io: &mut impl FrontIo,
    ) {
        let response = ScsiResponse {
            response: 0,
            status,
            task_tag,
            counters: self.advance(),
            exp_data_sn,
            residual,
            data_len: 0,
        };
        // RFC 7143 11.4.7: sense data after their length.
        let mut data = [0; 2 + FIXED_BYTES];
        let len = match sense {
            Some(sense) => {
                data[1] = FIXED_BYTES as u8;
                data[2..].copy_from_slice(&sense.fixed());
                data.len()
            }
            None => 0,
        };
        self.send(response.encode(), &data[..len], io);
    }
}

impl Task {
    /// The next command for the head and its data; steps on.
    fn next_command(&mut self, io: &impl FrontIo) -> Option<(Command, Slice)> {
        let size = self.unit.block_bytes;
        let volume = self.unit.volume;
        let command = |op, at, blocks, fua| Command { volume, op, at, blocks, fua };
        // Less than a block at the end is not carried out.
        let base = self.base();
        let whole = (self.from_host.wire - base) / size * size;
        let done = u64::from(base / size);
        // Commands that the head gets in one step are done after it.
        let once = self.phase != Phase::Submitted;
        match self.work {
            Work::Read { at, blocks } if once => {
                Some((command(Op::Read, at, u64::from(blocks), false), self.buffer))
            }
            Work::Write { at, fua, .. } if once && whole > 0 => {
                Some((command(Op::Write, at + done, u64::from(whole / size), fua), self.buffer.head(whole)))
            }
            Work::Compare { at, .. } if once && whole > 0 => Some((
                command(Op::Compare, at + done, u64::from(whole / size), false),
                self.buffer.head(whole),
            )),
            Work::Flush if once => Some((command(Op::Flush, 0, 0, false), Slice::default())),
            Work::Read { .. }
            | Work::Write { .. }
            | Work::Compare { .. }
            | Work::Flush
            | Work::Good
            | Work::Fail(_)
            | Work::Attention(_)
            | Work::Data
            | Work::SenseData
            | Work::Luns
            | Work::ModeSelect { .. } => None,
            Work::Verify { at, blocks } | Work::Same { at, blocks, .. } => {
                let n = (blocks - self.steps.blocks).min(self.buffer.len / size);
                let from = at + u64::from(self.steps.blocks);
                self.steps.blocks += n;
                let op = if matches!(self.work, Work::Same { .. }) { Op::Write } else { Op::Read };
                (n > 0).then(|| (command(op, from, u64::from(n), false), self.buffer.head(n * size)))
            }
            Work::Zeroes { at, blocks, deallocate } => {
                let n = u64::from(blocks - self.steps.blocks).min(ZERO_STEP / u64::from(size));
                let from = at + u64::from(self.steps.blocks);
                self.steps.blocks += n as u32;
                let op = Op::WriteZeroes { deallocate };
                (n > 0).then(|| (command(op, from, n, false), Slice::default()))
            }
            Work::Unmap { .. } => {
                let steps = &mut self.steps;
                let list = io.bytes(self.buffer);
                let count = unmap_check(list, &self.unit).expect("judged before the first step");
                while (steps.descriptor as usize) < count {
                    let (at, blocks) =
                        unmap_descriptor(list, steps.descriptor as usize).expect("index is below the count");
                    let left = blocks - steps.blocks;
                    if left == 0 {
                        steps.descriptor += 1;
                        steps.blocks = 0;
                        continue;
                    }
                    let n = u64::from(left).min(ZERO_STEP / u64::from(size));
                    let from = at + u64::from(steps.blocks);
                    steps.blocks += n as u32;
                    return Some((command(Op::Deallocate, from, n, false), Slice::default()));
                }
                None
            }
        }
    }
}
