//! The TCP binding: bytes in, PDUs, commands, answers, bytes out (NVMe/TCP 3).

mod aborts;
mod answers;
mod establish;
mod transfer;

use super::connect::Login;
use super::controller::Controller;
use super::io::{IoQueue, Plan, Work, status_of};
use super::namespaces::Namespaces;
use super::rx::{Payload, Rx, Step, To, check_sgl};
use super::table::{Completion, Phase, Table, tag as head_tag};
use super::{
    ASKED_MAX, BULK_MIN, CAPSULE_DATA_MAX, ConnectionConfig, DATA_TIME, DIRECT_MIN, H2C_DATA_MAX, LOGIN_TIME,
    RESETS_MAX,
};
use crate::pdu::{
    DATA_BYTES, Decoder, DigestReader, Digests, Header, Incoming, Receiver, Term, Violation, encode, fes,
    kind,
};
use crate::spec::{Sqe, StatusField, nvm};
use base::crc::crc32c_append;
use base::front::{Close, Intervention};
use base::{Answer, Bug, FrontIo, Instant, NvmeFault, Slice, Status, Tag, Want, planted};
use std::collections::VecDeque;

/// What the connection waits for before commands flow.
#[derive(Debug)]
enum Stage {
    /// ICReq.
    AwaitingIc,
    /// Connect.
    AwaitingConnect,
    /// The data of Connect.
    AwaitingConnectData(Box<Login>),
    /// The Steward's answer.
    AwaitingAnswer(Box<Login>),
    /// Nothing: commands flow.
    Live,
    /// The end.
    Closed,
}

/// The queue that Connect made.
#[derive(Debug, Default)]
struct Queue {
    entries: u32,
    head: u32,
    flow_control: bool,
}

#[derive(Debug)]
enum Role {
    None,
    Admin(Box<Controller>),
    Io(Box<IoQueue>),
}

/// Room that the longest answer needs (padded C2HData header, data digest, response), with a
/// TermReq's on top, which must always find room.
const ROOM_MIN: u32 = 128 + 4 + 28 + 152;

/// What follows data: a digest, a response, both, or nothing.
#[derive(Default)]
struct Trailer {
    bytes: [u8; 4 + 28],
    len: usize,
}

impl Trailer {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The keys of interventions that end I/O queues, let them in, and end other controllers; those of commands have their tag.
const QUEUES_ENDED: u16 = u16::MAX;
const QUEUES_BEGUN: u16 = u16::MAX - 1;
const RESETS: core::ops::Range<u16> = QUEUES_BEGUN - RESETS_MAX as u16..QUEUES_BEGUN;

/// One connection of a host. See `base::front` for its inputs.
pub struct Connection {
    config: ConnectionConfig,
    stage: Stage,
    role: Role,
    rx: Rx,
    decoder: Decoder,
    digest: DigestReader,
    digests: Digests,
    hpda: u8,
    queue: Queue,
    table: Table,
    /// Tags whose R2T or answer waits for room, in order.
    out: VecDeque<u16>,
    /// Bytes were offered and not taken: more are not wanted.
    blocked: bool,
    login_deadline: Option<Instant>,
    /// Since when a PDU has been incomplete.
    pdu_since: Option<Instant>,
    /// Commands with an R2T outstanding.
    transfers: u32,
    /// Bytes that the last R2T asked for.
    last_r2t: u32,
    /// Commands whose data will be asked for when less is on its way, in order.
    waiting: VecDeque<u16>,
    /// Bytes of commands that were let ask for their data, and have not got them all.
    asked: u64,
    /// When to look at how old those R2Ts are.
    transfers_check: Option<Instant>,
    /// Transfers that were given up before their data had come, and the bytes of them that may still come.
    given_up: u16,
    late: u64,
    /// Aborts that wait for the end of a command: their intervention, its tag.
    aborts: Vec<(u32, u16)>,
}

/// How often a command's data must fit its buffer: what Compare reads lies beside what it compares with.
fn copies(sqe: &Sqe) -> u32 {
    if sqe.opcode == nvm::COMPARE { 2 } else { 1 }
}

impl Connection {
    /// A connection that has just been accepted. The clock starts with its first input: its first
    /// deadline lies in the past.
    pub fn new(config: ConnectionConfig) -> Self {
        assert!(
            config.queue_depth_max >= 32 && config.queue_depth_max <= 1 << 15,
            "a depth that fits CAP.MQES"
        );
        assert!(config.io_queues_max >= 1, "a controller has at least one I/O queue");
        Self {
            config,
            stage: Stage::AwaitingIc,
            role: Role::None,
            rx: Rx::Header,
            decoder: Decoder::new(Receiver::Controller, H2C_DATA_MAX),
            digest: DigestReader::default(),
            digests: Digests::default(),
            hpda: 0,
            queue: Queue::default(),
            table: Table::new(0),
            out: VecDeque::new(),
            blocked: false,
            login_deadline: None,
            pdu_since: None,
            transfers: 0,
            last_r2t: 0,
            waiting: VecDeque::new(),
            asked: 0,
            transfers_check: None,
            given_up: 0,
            late: 0,
            aborts: Vec::new(),
        }
    }

    /// Bytes have arrived in a staging buffer; how many it took.
    pub fn on_bytes(&mut self, now: Instant, bytes: &[u8], io: &mut impl FrontIo) -> usize {
        self.start_clock(now);
        self.blocked = false;
        let taken = self.read(now, bytes, io);
        self.blocked = taken < bytes.len();
        self.end(now, io);
        taken
    }
    /// The digests that both sides agreed on.
    pub fn digests(&self) -> Digests {
        self.digests
    }
    /// Where the next bytes go.
    pub fn want(&self) -> Want {
        match (&self.stage, &self.rx) {
            (Stage::Closed | Stage::AwaitingAnswer(_), _) => Want::Nothing,
            (_, Rx::Parked { .. } | Rx::AwaitingBuffer(_)) => Want::Nothing,
            _ if self.blocked => Want::Nothing,
            (_, Rx::Payload(Payload { to: To::Command(tag), skip: 0, left, at, .. }))
                if *left >= DIRECT_MIN =>
            {
                Want::Direct(self.table[*tag].buffer.part(*at, *left))
            }
            // Large data follow one of the next headers.
            (Stage::Live, Rx::Header) if self.transfers > 0 && self.last_r2t >= BULK_MIN => {
                Want::Header(self.decoder.missing().max(DATA_BYTES as u32))
            }
            _ => Want::Staging,
        }
    }
    /// `n` bytes have arrived in the slice of `Want::Direct`.
    pub fn on_direct(&mut self, now: Instant, n: u32, io: &mut impl FrontIo) {
        let Rx::Payload(payload) = &mut self.rx else {
            unreachable!("bytes came directly only because `want` asked for them")
        };
        let To::Command(tag) = payload.to else { unreachable!("only commands have buffers") };
        assert!(n <= payload.left, "no more came than was wanted");
        if payload.digest {
            let part = self.table[tag].buffer.part(payload.at, n);
            payload.crc = crc32c_append(payload.crc, io.bytes(part));
        }
        payload.at += n;
        payload.left -= n;
        self.resume(now, io);
    }
    /// The buffer that `reserve` could not give at once.
    pub fn on_granted(&mut self, now: Instant, tag: Tag, slice: Slice, io: &mut impl FrontIo) {
        let slot = &mut self.table[tag.0];
        slot.buffer = slice;
        match slot.phase {
            Phase::AwaitingCapsuleBuffer => {
                slot.phase = Phase::AwaitingCapsule;
                let Rx::AwaitingBuffer(payload) = self.rx else {
                    unreachable!("the connection waited for this buffer")
                };
                self.rx = Rx::Payload(payload);
                // The host could not go on without us: its time starts now.
                self.pdu_since = Some(now);
            }
            Phase::AwaitingBuffer => self.buffer_here(tag.0, io),
            other => unreachable!("a buffer was granted to a command that is {other:?}"),
        }
        self.resume(now, io);
    }
    /// The tag's buffer is this one now; the first one may still be written to by a hung drive.
    pub fn on_moved(&mut self, tag: Tag, slice: Slice) {
        self.table[tag.0].buffer = slice;
    }
    /// A submitted command has ended.
    pub fn on_done(&mut self, now: Instant, tag: Tag, status: Status, io: &mut impl FrontIo) {
        let slot = &self.table[tag.0];
        match slot.phase {
            // Reads and writes are one command for the head: it was all.
            Phase::Submitted
                if status == Status::Good && matches!(slot.sqe.opcode, nvm::READ | nvm::WRITE) =>
            {
                if self.out.is_empty() && io.room() >= ROOM_MIN && matches!(self.stage, Stage::Live) {
                    // Nobody is before it, and nothing else waits for its end.
                    self.send_answer(tag.0, io);
                    self.blocked = false;
                    if matches!(self.rx, Rx::Header) {
                        return;
                    }
                } else {
                    self.answer(tag.0, Completion::GOOD);
                }
            }
            Phase::Submitted if status == Status::Good => self.work(tag.0, io),
            Phase::Submitted => self.refuse(tag.0, status),
            Phase::AwaitingBuffer | Phase::AwaitingCapsuleBuffer => {
                // Aborted, or completed with a retry status, while it waited for a buffer: its data, if they are next, belong to
                // nobody.
                if let Rx::AwaitingBuffer(p) = self.rx
                    && p.to == To::Command(tag.0)
                {
                    self.rx = Rx::Payload(Payload::to_nobody(p.rest(), p.digest));
                } else if !slot.gives {
                    self.asked -= u64::from(slot.length);
                }
                self.refuse(tag.0, status);
            }
            other => unreachable!("the head ended a command that is {other:?}"),
        }
        self.resume(now, io);
    }
    /// Answers a command that the head did not carry out.
    fn refuse(&mut self, tag: u16, status: Status) {
        let retry_delay = matches!(&self.role, Role::Io(queue) if queue.retry_delay);
        let slot = &self.table[tag];
        let status = match status {
            Status::Aborted => slot.abort_status(),
            other => status_of(slot.sqe.opcode, other, retry_delay),
        };
        self.answer(tag, Completion::failed(status));
    }
    /// The outbox has more room.
    pub fn on_sent(&mut self, now: Instant, io: &mut impl FrontIo) {
        self.resume(now, io);
    }
    /// The Steward's answer to Connect.
    pub fn on_answer(&mut self, now: Instant, answer: Answer, io: &mut impl FrontIo) {
        match std::mem::replace(&mut self.stage, Stage::AwaitingConnect) {
            Stage::AwaitingAnswer(login) => {
                self.login_deadline = Some(now + LOGIN_TIME);
                self.connected(now, &login, answer, io);
            }
            other => self.stage = other,
        }
        self.resume(now, io);
    }
    /// There is a new view.
    pub fn on_view(&mut self, now: Instant, io: &mut impl FrontIo) {
        let stays = match &mut self.role {
            Role::None => true,
            Role::Admin(controller) => controller.on_view(&self.config, io.view()),
            Role::Io(queue) => {
                let host = io.view().host(queue.host).filter(|h| h.nqns.contains(&queue.hostnqn));
                let was = core::mem::replace(&mut queue.namespaces, Namespaces::of(host));
                let (stays, gone) = (host.is_some(), was.gone_from(&queue.namespaces));
                self.end_commands_of_gone(&gone, io);
                stays
            }
        };
        if !stays {
            self.close(io, Close::Refused(NvmeFault::HostRemoved.into()));
        }
        self.resume(now, io);
    }
    /// Some deadline has passed.
    pub fn on_timer(&mut self, now: Instant, io: &mut impl FrontIo) {
        self.start_clock(now);
        let past = |deadline: Option<Instant>| deadline.is_some_and(|d| d <= now);
        if matches!(self.stage, Stage::Closed) {
            return;
        }
        let login = self.login_deadline.filter(|_| !matches!(self.stage, Stage::AwaitingAnswer(_)));
        if past(login) || past(self.pdu_since.map(|t| t + DATA_TIME)) {
            return self.close(io, Close::Slow);
        }
        if past(self.transfers_check) {
            let waiting = |t: &u16| self.table[*t].phase == Phase::AwaitingData;
            let oldest = self.table.tags().filter(waiting).map(|t| self.table[t].since).min();
            self.transfers_check = oldest.map(|t| t + DATA_TIME);
            if past(self.transfers_check) {
                return self.close(io, Close::Slow);
            }
        }
        // While we do not read (no buffer, no room), we cannot hear whether the host is alive.
        let deaf = self.blocked || matches!(self.rx, Rx::Parked { .. } | Rx::AwaitingBuffer(_));
        if let Role::Admin(controller) = &mut self.role
            && past(controller.keep_alive_deadline())
        {
            if !deaf && !planted(Bug::ExpiryIgnored) {
                return self.close(io, Close::KeepAlive);
            }
            controller.heard(now);
        }
        self.refuse_late_resets(now);
        self.resume(now, io);
    }
    /// When `on_timer` must be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        // Asked in every turn, and nearly always so.
        let commands = matches!((&self.stage, &self.role), (Stage::Live, Role::Io(_)));
        if commands && self.pdu_since.is_none() && self.transfers_check.is_none() {
            return None;
        }
        let (keep_alive, reset) = match &self.role {
            Role::Admin(controller) => (controller.keep_alive_deadline(), controller.resets.deadline()),
            Role::None | Role::Io(_) => (None, None),
        };
        let login = match self.stage {
            Stage::Closed => return None,
            // The Steward may take its time: that is not the host's fault.
            Stage::Live | Stage::AwaitingAnswer(_) => None,
            _ => Some(self.login_deadline.unwrap_or_default()),
        };
        let pdu = self.pdu_since.map(|t| t + DATA_TIME);
        [keep_alive, reset, login, pdu, self.transfers_check].into_iter().flatten().min()
    }

    fn start_clock(&mut self, now: Instant) {
        if self.login_deadline.is_none() && !matches!(self.stage, Stage::Live | Stage::Closed) {
            self.login_deadline = Some(now + LOGIN_TIME);
        }
    }
    /// Goes on with what may have been waiting for this input.
    fn resume(&mut self, now: Instant, io: &mut impl FrontIo) {
        // Bytes that were not taken may be offered again.
        self.blocked = false;
        if !matches!(self.rx, Rx::Header) {
            self.read(now, &[], io);
        }
        self.end(now, io);
    }
    /// The end of every input: events and answers go out, deadlines are set.
    fn end(&mut self, now: Instant, io: &mut impl FrontIo) {
        while let Role::Admin(controller) = &mut self.role {
            let Some((tag, completion)) = controller.next_event() else { break };
            self.answer(tag, completion);
        }
        if !self.waiting.is_empty() {
            self.ask_for_data(io);
        }
        self.flush(now, io);
        if matches!(self.stage, Stage::Closed) {
            return;
        }
        let complete = match &self.rx {
            Rx::Header => self.decoder.is_empty(),
            // We keep the host waiting, not it us.
            Rx::Parked { .. } | Rx::AwaitingBuffer(_) => true,
            Rx::Payload(_) | Rx::Digest(_) => false,
        };
        self.pdu_since = if complete { None } else { self.pdu_since.or(Some(now)) };
        if self.transfers == 0 {
            self.transfers_check = None;
        }
    }

    // Reading.

    fn read(&mut self, now: Instant, bytes: &[u8], io: &mut impl FrontIo) -> usize {
        let mut taken = 0;
        while let Step::Took(n) = self.advance(now, &bytes[taken..], io) {
            taken += n;
        }
        if matches!(self.stage, Stage::Closed) { bytes.len() } else { taken }
    }

    fn advance(&mut self, now: Instant, bytes: &[u8], io: &mut impl FrontIo) -> Step {
        match self.stage {
            Stage::Closed | Stage::AwaitingAnswer(_) => return Step::Wait,
            // Answers before Connect go out at once, so there must be room.
            Stage::AwaitingConnect if io.room() < ROOM_MIN => return Step::Wait,
            _ => {}
        }
        match self.rx {
            Rx::Header if bytes.is_empty() => Step::Wait,
            Rx::Header if self.decoder.is_empty() && !io.goes_on() => Step::Wait,
            Rx::Header => match self.decoder.push(bytes) {
                Err(violation) => {
                    self.fail(violation, io);
                    Step::Wait
                }
                Ok((n, None)) => Step::Took(n),
                Ok((n, Some(incoming))) => {
                    // A new PDU: the last one came whole, so the time starts again.
                    self.pdu_since = None;
                    if let Err(violation) = self.header(now, incoming, io) {
                        self.fail(violation, io);
                    }
                    Step::Took(n + self.take_whole(&bytes[n..], io))
                }
            },
            Rx::Parked { sqe, data, digest } => {
                self.flush(now, io);
                if !self.table.has_room() || !io.has_slot() {
                    return Step::Wait;
                }
                self.rx = Rx::Header;
                self.command(now, sqe, data, digest, io);
                Step::Took(0)
            }
            Rx::AwaitingBuffer(_) => Step::Wait,
            Rx::Payload(payload) if payload.rest() == 0 => {
                if payload.digest {
                    self.rx = Rx::Digest(payload);
                } else {
                    self.payload_here(payload, true, io);
                }
                Step::Took(0)
            }
            Rx::Payload(_) | Rx::Digest(_) if bytes.is_empty() => Step::Wait,
            Rx::Payload(payload) => Step::Took(self.take(payload, bytes, io)),
            Rx::Digest(payload) => {
                let (n, digest) = self.digest.push(bytes);
                if let Some(received) = digest {
                    self.payload_here(payload, received == payload.crc, io);
                }
                Step::Took(n)
            }
        }
    }

    /// Data of a command that lie whole behind their header, as those of small writes mostly do, go to their
    /// buffer in one step; how many bytes they are. What is not as plain as that waits for `take`.
    fn take_whole(&mut self, bytes: &[u8], io: &mut impl FrontIo) -> usize {
        let Rx::Payload(Payload { to: To::Command(tag), skip: 0, left, tail: 0, at, crc, digest: false }) =
            self.rx
        else {
            return 0;
        };
        let Some(data) = bytes.get(..left as usize) else { return 0 };
        let place = self.table[tag].buffer.part(at, left);
        io.bytes_mut(place).copy_from_slice(data);
        let whole =
            Payload { to: To::Command(tag), skip: 0, left: 0, tail: 0, at: at + left, crc, digest: false };
        self.payload_here(whole, true, io);
        data.len()
    }

    /// Takes bytes of a payload.
    fn take(&mut self, mut p: Payload, bytes: &[u8], io: &mut impl FrontIo) -> usize {
        let wanted = p.skip == 0 && p.left > 0;
        let most = if p.skip > 0 {
            p.skip
        } else if wanted {
            p.left
        } else {
            p.tail
        };
        let n = bytes.len().min(most as usize);
        let piece = &bytes[..n];
        if p.digest {
            p.crc = crc32c_append(p.crc, piece);
        }
        let n32 = n as u32;
        match p.to {
            To::Command(tag) if wanted => {
                let place = self.table[tag].buffer.part(p.at, n32);
                io.bytes_mut(place).copy_from_slice(piece);
            }
            To::Connect if wanted => {
                let Stage::AwaitingConnectData(login) = &mut self.stage else {
                    unreachable!("data of Connect follow Connect")
                };
                login.data_mut()[p.at as usize..][..n].copy_from_slice(piece);
            }
            To::Command(_) | To::Connect | To::Nobody => {}
        }
        match (p.skip > 0, wanted) {
            (true, _) => p.skip -= n32,
            (_, true) => {
                p.left -= n32;
                p.at += n32;
            }
            _ => p.tail -= n32,
        }
        self.rx = Rx::Payload(p);
        n
    }

    /// A payload is whole, its digest right or wrong.
    fn payload_here(&mut self, payload: Payload, sound: bool, io: &mut impl FrontIo) {
        self.rx = Rx::Header;
        match payload.to {
            To::Nobody => {}
            To::Connect => self.connect_data_here(sound, io),
            To::Command(tag) => {
                let slot = &mut self.table[tag];
                slot.corrupt |= !sound;
                slot.received = payload.at;
                let transfer = slot.phase == Phase::AwaitingData;
                if slot.received < slot.length {
                    if transfer && slot.aborted {
                        self.give_up(tag);
                    }
                    return;
                }
                if transfer {
                    self.transfers -= 1;
                    self.asked -= u64::from(slot.length);
                }
                self.data_here(tag, io);
            }
        }
    }

    /// A header is whole.
    fn header(&mut self, now: Instant, incoming: Incoming, io: &mut impl FrontIo) -> Result<(), Violation> {
        let sequence = Violation::new(fes::SEQUENCE, NvmeFault::PduSequence);
        match (&self.stage, incoming.header) {
            (Stage::AwaitingIc, Header::IcReq(request)) => return self.initialize(request, io),
            (_, Header::Term(_)) => self.close(io, Close::Protocol(NvmeFault::HostEnded.into())),
            (Stage::AwaitingConnect | Stage::Live, Header::Command(sqe)) => {
                if incoming.data > CAPSULE_DATA_MAX {
                    return Err(Violation::field(4, NvmeFault::CapsuleData));
                }
                if matches!(self.stage, Stage::AwaitingConnect) {
                    self.before_connect(sqe, incoming.data, incoming.digest, io);
                } else if self.table.has_room() && io.has_slot() {
                    self.command(now, sqe, incoming.data, incoming.digest, io);
                } else if !self.table.has_room() && self.out.is_empty() {
                    return Err(Violation::new(fes::LIMIT, NvmeFault::QueueOverrun));
                } else {
                    self.rx = Rx::Parked { sqe, data: incoming.data, digest: incoming.digest };
                }
            }
            (Stage::Live, Header::Data { transfer, last, .. }) => {
                return self.transfer_header(transfer, last, incoming.digest);
            }
            _ => return Err(sequence),
        }
        Ok(())
    }

    // Commands.

    /// A command has come and there is a slot for it. Its in-capsule data follow.
    fn command(&mut self, now: Instant, sqe: Sqe, data: u32, digest: bool, io: &mut impl FrontIo) {
        self.queue.head = (self.queue.head + 1) % self.queue.entries;
        let duplicate = self.table.find(sqe.cid.get()).is_some();
        let tag = self.table.insert(sqe, now, duplicate);
        if data > 0 {
            self.rx = Rx::Payload(Payload::to_nobody(data, digest));
        }
        if let Role::Admin(controller) = &mut self.role {
            controller.heard(now);
        }
        let plan = match &mut self.role {
            _ if duplicate => Plan::refuse(StatusField::COMMAND_ID_CONFLICT),
            Role::Admin(controller) => controller.plan(&sqe),
            Role::Io(queue) => queue.plan(&sqe),
            Role::None => unreachable!("a live connection has a role"),
        };
        if let Role::Admin(controller) = &mut self.role {
            while let Some(dead) = controller.take_dead_event() {
                self.table.release(dead);
            }
        }
        match plan {
            Plan::Answer(completion) => self.answer(tag, completion),
            Plan::Leave => {
                self.answer(tag, Completion::GOOD);
                self.flush(now, io);
                self.close(io, Close::Logout);
            }
            Plan::Hold => {
                self.table[tag].phase = Phase::AwaitingEvent;
                let Role::Admin(controller) = &mut self.role else {
                    unreachable!("events are the controller's")
                };
                controller.hold(tag);
            }
            Plan::Go => self.work(tag, io),
            Plan::Abort => self.plan_abort(tag, io),
            Plan::BeginQueues(life) => {
                self.table[tag].phase = Phase::AwaitingQueues;
                io.intervene(tag, Intervention::BeginQueues { life });
            }
            Plan::ResetController => self.plan_reset(now, tag, io),
            Plan::EndQueues => {
                self.answer(tag, Completion::GOOD);
                io.intervene(QUEUES_ENDED, Intervention::EndQueues);
            }
            Plan::Give(length) => {
                if let Err(status) = check_sgl(&sqe.sgl, length, length, None) {
                    return self.answer(tag, Completion::failed(status.dnr()));
                }
                let slot = &mut self.table[tag];
                slot.gives = true;
                slot.length = length;
                self.reserve(tag, length, io);
            }
            Plan::Take { min, max } => match check_sgl(&sqe.sgl, min, max, Some(data)) {
                Err(status) => self.answer(tag, Completion::failed(status.dnr())),
                Ok(None) => {
                    let slot = &mut self.table[tag];
                    slot.length = sqe.sgl.length.get();
                    slot.phase = Phase::AwaitingTurn;
                    self.waiting.push_back(tag);
                    self.ask_for_data(io);
                }
                Ok(Some(skip)) => {
                    let left = sqe.sgl.length.get();
                    let to = To::Command(tag);
                    let payload = Payload { to, skip, left, tail: data - skip - left, at: 0, crc: 0, digest };
                    let slot = &mut self.table[tag];
                    slot.held = true;
                    slot.length = left;
                    match io.reserve_inline(head_tag(tag), left * copies(&sqe)) {
                        Some(buffer) => {
                            slot.buffer = buffer;
                            slot.phase = Phase::AwaitingCapsule;
                            self.rx = Rx::Payload(payload);
                        }
                        None => {
                            slot.phase = Phase::AwaitingCapsuleBuffer;
                            self.rx = Rx::AwaitingBuffer(payload);
                        }
                    }
                }
            },
        }
    }

    /// Asks for the buffers of those commands in line whose data may be asked for now.
    fn ask_for_data(&mut self, io: &mut impl FrontIo) {
        while let Some(tag) = self.waiting.front().copied() {
            let slot = &self.table[tag];
            let length = slot.length;
            if self.asked > 0 && self.asked + u64::from(length) > ASKED_MAX {
                return;
            }
            self.waiting.pop_front();
            self.asked += u64::from(length);
            self.reserve(tag, length * copies(&slot.sqe), io);
        }
    }
    /// Asks for the buffer of a command whose data travel in data PDUs.
    fn reserve(&mut self, tag: u16, length: u32, io: &mut impl FrontIo) {
        let slot = &mut self.table[tag];
        slot.held = true;
        slot.phase = Phase::AwaitingBuffer;
        if let Some(buffer) = io.reserve(head_tag(tag), length) {
            slot.buffer = buffer;
            self.buffer_here(tag, io);
        }
    }
    fn buffer_here(&mut self, tag: u16, io: &mut impl FrontIo) {
        let slot = &mut self.table[tag];
        if !slot.gives {
            slot.phase = Phase::AwaitingR2t;
            self.out.push_back(tag);
            return;
        }
        match &mut self.role {
            Role::Io(_) => self.work(tag, io),
            Role::Admin(controller) => {
                let completion = match controller.fill(&self.config, io.view(), &slot.sqe) {
                    Ok(bytes) => {
                        io.bytes_mut(slot.buffer.head(slot.length)).copy_from_slice(&bytes);
                        Completion::GOOD
                    }
                    Err(status) => Completion::failed(status.dnr()),
                };
                self.answer(tag, completion);
            }
            Role::None => unreachable!("a live connection has a role"),
        }
    }

    /// All data of the host are in the buffer.
    fn data_here(&mut self, tag: u16, io: &mut impl FrontIo) {
        let slot = &self.table[tag];
        // NVMe/TCP 3.3.1.2: a wrong data digest costs the command, not the connection.
        if slot.corrupt {
            return self.answer(tag, Completion::failed(StatusField::TRANSIENT_TRANSPORT));
        }
        if slot.aborted {
            return self.answer(tag, Completion::failed(slot.abort_status()));
        }
        match &mut self.role {
            Role::Io(_) => self.work(tag, io),
            Role::Admin(controller) => {
                let before = controller.features.retry_delay();
                let completion = controller.on_data(io.bytes(slot.buffer.head(slot.length)));
                let enabled = controller.features.retry_delay();
                if enabled == before {
                    return self.answer(tag, completion);
                }
                self.table[tag].phase = Phase::AwaitingQueues;
                io.intervene(tag, Intervention::RetryDelay { enabled });
            }
            Role::None => unreachable!("a live connection has a role"),
        }
    }

    /// Submits the next (or only) block command of a command.
    fn work(&mut self, tag: u16, io: &mut impl FrontIo) {
        let Role::Io(queue) = &self.role else { unreachable!("block commands come on I/O queues") };
        let slot = &mut self.table[tag];
        let data = slot.buffer.head(slot.length.min(slot.buffer.len));
        // Only Dataset Management has in its data what to do.
        let ranges = if slot.sqe.opcode == nvm::DATASET_MANAGEMENT { io.bytes(data) } else { &[] };
        let work = queue.work(slot, ranges);
        match work {
            Work::Done(completion) => self.answer(tag, completion),
            Work::Submit { command, cursor } => {
                slot.cursor = cursor;
                slot.held = true;
                slot.phase = Phase::Submitted;
                let moves = command.op.takes_data() || command.op == base::Op::Read;
                io.submit(head_tag(tag), command, if moves { data } else { Slice::default() });
            }
        }
    }

    /// The host broke the protocol: it gets the place of the fault, and the connection ends (NVMe/TCP 3.5).
    fn fail(&mut self, violation: Violation, io: &mut impl FrontIo) {
        let term = Term { fes: violation.fes, fei: violation.fei };
        let bytes = encode::term(kind::C2H_TERM, term, self.decoder.quote());
        io.header(&bytes);
        self.close(io, Close::Protocol(violation.why.into()));
    }
    fn close(&mut self, io: &mut impl FrontIo, why: Close) {
        if !matches!(self.stage, Stage::Closed) {
            self.stage = Stage::Closed;
            io.close(why);
        }
    }
}
