//! The session: login, bring-up of the logical unit, block commands, pings, aborts, logout.
//!
//! ```text
//! Idle ─start─▶ Login ▶ normal:    REPORT LUNS ▶ INQUIRY ▶ VPD 83h ▶ VPD B0h ▶ TEST UNIT READY ▶
//!                       │          READ CAPACITY (16) ▶ Ready
//!                       └ discovery: SendTargets ▶ Ready
//! Ready ─stop─▶ Logout ▶ Ended
//! ```

mod aborts;
mod bringup;

use super::login::{Login, Next};
use super::receive::{Part, Receiver};
use super::{Config, Error, Lack, Unit, sense};
use crate::pdu::{
    self, AsyncMessage, DataIn, DataOut, Framing, NopIn, NopOut, R2t, RESERVED_TAG, Residual, Response,
    ScsiCommand, ScsiResponse,
};
use crate::text::Parameters;
use aborts::Clear;
use base::crc::crc32c_append;
use base::{
    Duration, Fault, FaultKind, HostCommand, HostIo, HostStatus, Instant, IscsiFault, Op, Slice, Want,
};
use std::collections::VecDeque;

/// A target that a discovery session found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundTarget {
    /// Its iSCSI name.
    pub name: String,
    /// Its addresses: `address:port,portal group tag`.
    pub addresses: Vec<String>,
}

/// What the session waits for. The order is that of the bring-up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Idle,
    Login,
    SendTargets,
    ReportLuns,
    Inquiry,
    Identification,
    Limits,
    UnitReady,
    Capacity,
    Ready,
    Logout,
    Ended,
}

/// Where a command's outgoing data lies.
#[derive(Clone, Copy, Debug)]
enum Source {
    None,
    Region(Slice),
    /// UNMAP parameter list.
    Unmap([u8; 24]),
    /// One block of zeroes, for WRITE SAME.
    Zeroes(u32),
}

impl Source {
    fn len(&self) -> u32 {
        match self {
            Source::None => 0,
            Source::Region(s) => s.len,
            Source::Unmap(list) => list.len() as u32,
            Source::Zeroes(n) => *n,
        }
    }
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// The caller's, or None for the session's own (then data goes into the own buffer).
    id: Option<u32>,
    /// Read data goes here.
    into: Slice,
    /// Expected Data Transfer Length of a read.
    expected: u32,
    source: Source,
    cmd_sn: u32,
    /// Read: bytes that came. Write: bytes sent or promised so far.
    moved: u32,
    data_sn: u32,
    r2t_sn: u32,
    /// Bursts that wait for room in the outbox.
    bursts: u8,
    /// An R2T is being served.
    solicited: bool,
    /// The whole out-stream up to here must be sent before the caller's data is free.
    mark: u64,
    answered: Option<HostStatus>,
}

/// Data-Outs that wait for room in the outbox.
#[derive(Clone, Copy, Debug)]
struct Burst {
    slot: u32,
    transfer_tag: u32,
    offset: u32,
    left: u32,
    data_sn: u32,
}

/// Tags of the session's own PDUs beside commands.
mod tag {
    /// The login.
    pub const LOGIN: u32 = 0;
    /// NOP-Out.
    pub const PING: u32 = 0x8000_0000;
    /// Text.
    pub const TEXT: u32 = 0x8000_0001;
    /// Logout.
    pub const LOGOUT: u32 = 0x8000_0002;
    /// Task management: this and the slot of the command that is meant.
    pub const ABORT: u32 = 0x4000_0000;
    /// Task management of all tasks on the unit.
    pub const CLEAR: u32 = 0x6000_0000;
}

const DIRECT_MIN: u32 = 16 << 10;
const PDU_ROOM: u32 = 64;
const OWN_BYTES: usize = 64 << 10;
const ANSWER_BYTES: u32 = 4096;
/// Unit attentions and other reasons to repeat a command of the bring-up.
const STEP_TRIES: u32 = 100;

/// One initiator session on one connection. See the module.
#[derive(Debug)]
pub struct Session {
    config: Config,
    step: Step,
    asked: bool,
    tries: u32,
    /// A command of the bring-up waits until then.
    pause: Option<Instant>,
    login: Login,
    parameters: Parameters,
    framing: Framing,
    receiver: Receiver,
    flights: Vec<Option<Flight>>,
    free: Vec<u32>,
    bursts: VecDeque<Burst>,
    answered_early: u32,
    queued: u64,
    cmd_sn: u32,
    max_cmd_sn: u32,
    exp_stat_sn: u32,
    /// Data of PDUs other than Data-In, and of our own commands.
    own: Vec<u8>,
    /// Where the data of the PDU that arrives begins in `own`.
    own_from: usize,
    text: Vec<u8>,
    text_tag: u32,
    unit: Unit,
    found: Vec<FoundTarget>,
    aborts: VecDeque<u32>,
    /// CmdSN of the command that an ABORT TASK under way means, by slot: the slot may have another one
    /// by the time of the response.
    aborting: Vec<Option<u32>>,
    clear: Clear,
    pong: Option<NopIn>,
    ping_at: Option<Instant>,
    ping_sent: bool,
    capacity_due: bool,
    changes: u64,
    error: Option<Error>,
    now: Instant,
}

impl Session {
    /// A session that has not begun.
    pub fn new(config: Config) -> Self {
        assert!(config.depth > 0 && config.depth < 1024, "depth is 1 to 1023");
        let depth = usize::from(config.depth);
        // One more slot than the depth: the session's own command never waits for the caller's.
        let slots = depth as u32 + 1;
        Self {
            step: Step::Idle,
            asked: false,
            tries: 0,
            pause: None,
            login: Login::new(&config),
            parameters: Parameters::default(),
            framing: Framing::default(),
            receiver: Receiver::new(config.max_recv),
            flights: vec![None; slots as usize],
            free: (0..slots).rev().collect(),
            bursts: VecDeque::with_capacity(2 * slots as usize),
            answered_early: 0,
            queued: 0,
            cmd_sn: 1,
            max_cmd_sn: 1,
            exp_stat_sn: 0,
            own: Vec::with_capacity(OWN_BYTES),
            own_from: 0,
            text: vec![],
            text_tag: RESERVED_TAG,
            unit: Unit::default(),
            found: vec![],
            aborts: VecDeque::with_capacity(depth),
            aborting: vec![None; slots as usize],
            clear: Clear::None,
            pong: None,
            ping_at: None,
            ping_sent: false,
            capacity_due: false,
            changes: 0,
            error: None,
            now: Instant::default(),
            config,
        }
    }
    /// Begins, or begins again after the connection was lost (`on_lost`): a connection is wanted.
    pub fn start(&mut self) {
        self.step = Step::Login;
        self.asked = false;
        self.tries = 0;
        self.pause = None;
        self.error = None;
        self.pong = None;
        self.ping_at = None;
        self.ping_sent = false;
        self.framing = Framing::default();
        self.receiver = Receiver::new(self.config.max_recv);
        self.queued = 0;
        self.answered_early = 0;
        self.cmd_sn = 1;
        self.max_cmd_sn = 1;
        self.exp_stat_sn = 0;
        self.text_tag = RESERVED_TAG;
        self.capacity_due = false;
        self.text.clear();
        self.own.clear();
        self.own_from = 0;
        self.found.clear();
        self.aborts.clear();
        self.aborting.fill(None);
        self.clear = Clear::None;
        self.bursts.clear();
    }
    /// Whether a connection is wanted.
    pub fn link_wanted(&self) -> bool {
        !matches!(self.step, Step::Idle | Step::Ended)
    }
    /// Whether block commands (or, on discovery, the targets) are there.
    pub fn is_ready(&self) -> bool {
        self.step == Step::Ready && self.error.is_none()
    }
    /// Whether `stop` is through.
    pub fn is_ended(&self) -> bool {
        self.step == Step::Ended
    }
    /// What went wrong, if something did.
    pub fn error(&self) -> Option<Error> {
        self.error
    }
    /// The logical unit.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }
    /// Grows each time the unit's capacity was read again after a unit attention.
    pub fn changes(&self) -> u64 {
        self.changes
    }
    /// What a discovery session found.
    pub fn found(&self) -> &[FoundTarget] {
        &self.found
    }
    /// What was agreed at login.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
    /// Block commands that can still be submitted: free slots within the target's window.
    pub fn free(&self) -> u16 {
        if !self.is_ready() {
            return 0;
        }
        // The last slot is the session's own.
        let slots = self.free.len().saturating_sub(1) as u32;
        slots.min(self.window()) as u16
    }
    /// Submits a block command; false without room: try again after the next answer or send.
    pub fn submit(&mut self, c: &HostCommand, io: &mut impl HostIo) -> bool {
        if self.free() == 0 {
            return false;
        }
        let mut cdb = [0; 16];
        cdb[2..10].copy_from_slice(&c.at.to_be_bytes());
        cdb[10..14].copy_from_slice(&c.blocks.to_be_bytes());
        let fua = if c.fua { 0x08 } else { 0 };
        let (mut read, mut source) = (Slice::default(), Source::None);
        match c.op {
            Op::Read => {
                cdb[0] = 0x88;
                cdb[1] = fua;
                read = c.data;
            }
            Op::Write => {
                cdb[0] = 0x8a;
                cdb[1] = fua;
                source = Source::Region(c.data);
            }
            Op::Flush => {
                // SBC-4 5.29: from block 0, to the end.
                cdb = [0; 16];
                cdb[0] = 0x91;
            }
            Op::WriteZeroes { deallocate } => {
                // SBC-4 5.56: one block of zeroes, written everywhere; bit 3 is UNMAP.
                cdb[0] = 0x93;
                cdb[1] = if deallocate { 0x08 } else { 0 };
                source = Source::Zeroes(self.unit.block_bytes);
            }
            Op::Deallocate => {
                // SBC-4 5.35: the list's length stands in the CDB; one descriptor.
                cdb = [0; 16];
                cdb[0] = 0x42;
                cdb[8] = 24;
                let mut list = [0; 24];
                list[1] = 22;
                list[3] = 16;
                list[8..16].copy_from_slice(&c.at.to_be_bytes());
                list[16..20].copy_from_slice(&c.blocks.to_be_bytes());
                source = Source::Unmap(list);
            }
            // VERIFY (16), BYTCHK 01b: the data is compared with the medium.
            Op::Compare => {
                cdb[0] = 0x8f;
                cdb[1] = 0x02;
                source = Source::Region(c.data);
            }
        }
        self.send_command(Some(c.id), cdb, read, read.len, source, io)
    }
    /// Logs out, then `is_ended`. Commands under way are lost.
    pub fn stop(&mut self) {
        match self.step {
            Step::Idle | Step::Ended => {}
            Step::Login => self.step = Step::Ended,
            _ => {
                self.step = Step::Logout;
                self.asked = false;
            }
        }
    }
    /// The connection stands: the login begins.
    pub fn on_connected(&mut self, io: &mut impl HostIo) {
        let (request, text) = self.login.first(&self.config);
        self.send_login(request, &text, io);
        self.asked = true;
    }
    /// Bytes arrived in a staging buffer; all are taken.
    pub fn on_bytes(&mut self, now: Instant, data: Slice, io: &mut impl HostIo) {
        self.now = now;
        let mut rest = data;
        while rest.len > 0 && self.error.is_none() {
            let taken = match self.receiver.part() {
                Part::Header => self.receiver.header(io.bytes(rest)).map(|(n, whole)| {
                    if whole {
                        self.on_header(io);
                    }
                    n as u32
                }),
                Part::Data(left) => {
                    let n = left.min(rest.len);
                    self.place(rest.head(n), io);
                    Ok(n)
                }
                Part::Trailer => self.receiver.trailer(io.bytes(rest)).map(|(n, whole)| {
                    if whole {
                        self.on_pdu(io);
                    }
                    n as u32
                }),
            };
            match taken {
                Ok(n) => rest = rest.tail(n),
                Err(e) => return self.fail(e),
            }
        }
    }
    /// Where the next bytes go.
    pub fn want(&self) -> Want {
        match self.receiver.part() {
            Part::Data(left) if left >= DIRECT_MIN && self.error.is_none() => match self.arriving() {
                Some(f) if f.id.is_some() => Want::Direct(f.into.part(f.moved, left)),
                _ => Want::Staging,
            },
            _ => Want::Staging,
        }
    }
    /// `n` bytes arrived where `want` said.
    pub fn on_direct(&mut self, n: u32, io: &mut impl HostIo) {
        let at = pdu::task_tag(self.receiver.bhs()) as usize;
        let flight = self.flights[at].as_mut().expect("its command is under way");
        let place = flight.into.part(flight.moved, n);
        flight.moved += n;
        if self.receiver.data(io.bytes(place)) {
            self.on_pdu(io);
        }
    }
    /// The outbox has more room.
    pub fn on_sent(&mut self, io: &mut impl HostIo) {
        self.send_data(io);
        if self.answered_early == 0 {
            return;
        }
        let sent = self.queued - io.pending();
        for slot in 0..self.flights.len() as u32 {
            if let Some(Flight { answered: Some(status), mark, .. }) = self.flights[slot as usize]
                && mark <= sent
            {
                self.answered_early -= 1;
                self.end(slot, status, io);
            }
        }
    }
    /// The connection is gone and nothing of it is left: block commands end in `ConnectionLost`.
    pub fn on_lost(&mut self, io: &mut impl HostIo) {
        for slot in 0..self.flights.len() as u32 {
            if let Some(flight) = self.flights[slot as usize].take() {
                self.free.push(slot);
                if let Some(id) = flight.id {
                    io.done(id, flight.answered.unwrap_or(HostStatus::ConnectionLost));
                }
            }
        }
        self.bursts.clear();
        if self.step != Step::Ended {
            self.step = Step::Idle;
        }
    }
    /// When `pump` wants to be called without an event.
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.pause, self.ping_at].into_iter().flatten().min()
    }
    /// Goes on with what is due: after every other input, and when `next_deadline` is reached.
    pub fn pump(&mut self, now: Instant, io: &mut impl HostIo) {
        self.now = now;
        if self.error.is_some() || self.step <= Step::Login || self.step == Step::Ended {
            return;
        }
        if self.pause.is_some_and(|at| at <= now) {
            self.pause = None;
            self.asked = false;
        }
        if !self.asked && self.pause.is_none() {
            self.asked = self.ask(io);
        }
        if let Some(nop) = self.pong
            && io.room() >= PDU_ROOM
        {
            // RFC 7143 11.18: the answer carries the target's tag, and wants no answer itself.
            self.pong = None;
            self.send_nop(RESERVED_TAG, nop.transfer_tag, nop.lun, io);
        }
        self.send_aborts(io);
        if self.ping_at.is_some_and(|at| at <= now) {
            if self.ping_sent {
                return self.fail(Error::TimedOut("NOP-In"));
            }
            if io.room() >= PDU_ROOM {
                self.send_nop(tag::PING, RESERVED_TAG, 0, io);
                self.ping_sent = true;
            }
            self.ping_at = Some(now + self.config.ping);
        }
    }

    fn lun(&self) -> u64 {
        // SAM-5 4.7.7: peripheral addressing below 256, flat space above.
        let lun = u64::from(self.config.lun);
        if lun < 256 { lun << 48 } else { (0x4000 | lun) << 48 }
    }
    /// Commands that the target takes now (RFC 7143 4.2.2.1, serial number arithmetic).
    fn window(&self) -> u32 {
        let n = self.max_cmd_sn.wrapping_sub(self.cmd_sn).wrapping_add(1);
        if n > 1 << 30 { 0 } else { n }
    }
    fn go(&mut self, step: Step) {
        self.step = step;
        self.asked = false;
        self.tries = 0;
    }
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
    fn broken(&mut self, why: IscsiFault) {
        self.fail(Error::Protocol(why));
    }

    fn send_nop(&mut self, task_tag: u32, transfer_tag: u32, lun: u64, io: &mut impl HostIo) {
        let nop = NopOut {
            immediate: true,
            lun,
            task_tag,
            transfer_tag,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            data_len: 0,
        };
        self.send_bhs(nop.encode(), io);
    }
    fn send_login(&mut self, mut request: pdu::LoginRequest, text: &[u8], io: &mut impl HostIo) {
        request.cmd_sn = self.cmd_sn;
        request.exp_stat_sn = self.exp_stat_sn;
        request.task_tag = tag::LOGIN;
        if io.room() < PDU_ROOM + text.len() as u32 + 8 {
            return self.fail(Error::Incapable(Lack::Outbox));
        }
        self.send_small(request.encode(), text, io);
    }
    fn send_bhs(&mut self, bhs: pdu::Bhs, io: &mut impl HostIo) {
        self.header(&bhs, io);
        if self.framing.header_digest {
            self.header(&pdu::header_digest(&bhs, &[]), io);
        }
    }
    fn send_small(&mut self, mut bhs: pdu::Bhs, data: &[u8], io: &mut impl HostIo) {
        pdu::set_data_len(&mut bhs, data.len() as u32);
        self.send_bhs(bhs, io);
        if !data.is_empty() {
            self.header(data, io);
            self.trailer(crc32c_append(0, data), data.len() as u32, io);
        }
    }
    fn trailer(&mut self, crc: u32, len: u32, io: &mut impl HostIo) {
        self.header(&[0; 3][..pdu::padding(len) as usize], io);
        if self.framing.data_digest {
            self.header(&pdu::data_digest_of(crc, len), io);
        }
    }
    fn header(&mut self, bytes: &[u8], io: &mut impl HostIo) {
        self.queued += bytes.len() as u64;
        if !bytes.is_empty() {
            io.header(bytes);
        }
    }
    /// Sends part of a command's data with padding and digest.
    fn send_source(&mut self, source: &Source, from: u32, len: u32, io: &mut impl HostIo) {
        let mut crc = 0;
        match source {
            Source::None => {}
            Source::Region(s) => {
                let part = s.part(from, len);
                self.queued += u64::from(len);
                io.payload(part);
                if self.framing.data_digest {
                    crc = crc32c_append(0, io.bytes(part));
                }
            }
            Source::Unmap(list) => {
                let part = &list[from as usize..(from + len) as usize];
                crc = crc32c_append(0, part);
                self.header(part, io);
            }
            Source::Zeroes(_) => {
                let mut left = len as usize;
                while left > 0 {
                    let part = &[0; 512][..left.min(512)];
                    crc = crc32c_append(crc, part);
                    self.header(part, io);
                    left -= part.len();
                }
            }
        }
        self.trailer(crc, len, io);
    }
    /// Room that a PDU with `len` bytes of this source needs in the outbox.
    fn room_for(source: &Source, len: u32) -> u32 {
        match source {
            Source::None | Source::Region(_) => PDU_ROOM,
            Source::Unmap(_) | Source::Zeroes(_) => PDU_ROOM + len,
        }
    }
    fn send_command(
        &mut self,
        id: Option<u32>,
        cdb: [u8; 16],
        into: Slice,
        expected: u32,
        source: Source,
        io: &mut impl HostIo,
    ) -> bool {
        let p = self.parameters;
        let write = source.len();
        let first = p.first_burst.min(write);
        // RFC 7143 13.10, 13.11: immediate data fits one segment and the first burst.
        let immediate = if p.immediate_data { first.min(p.peer_max_recv) } else { 0 };
        if io.room() < Self::room_for(&source, immediate) {
            return false;
        }
        let unsolicited = if p.initial_r2t { 0 } else { first - immediate };
        let slot = self.free.pop().expect("a free slot was counted before");
        let command = ScsiCommand {
            immediate: false,
            last: unsolicited == 0,
            read: write == 0 && expected > 0,
            write: write > 0,
            attribute: 1,
            lun: self.lun(),
            task_tag: slot,
            expected: if write > 0 { write } else { expected },
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            cdb,
            data_len: immediate,
        };
        self.send_bhs(command.encode(), io);
        if immediate > 0 {
            self.send_source(&source, 0, immediate, io);
        }
        self.flights[slot as usize] = Some(Flight {
            id,
            into,
            expected,
            source,
            cmd_sn: self.cmd_sn,
            moved: if write > 0 { immediate + unsolicited } else { 0 },
            data_sn: 0,
            r2t_sn: 0,
            bursts: u8::from(unsolicited > 0),
            solicited: false,
            mark: self.queued,
            answered: None,
        });
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        if unsolicited > 0 {
            let (transfer_tag, offset, left) = (RESERVED_TAG, immediate, unsolicited);
            self.bursts.push_back(Burst { slot, transfer_tag, offset, left, data_sn: 0 });
            self.send_data(io);
        }
        true
    }
    /// Sends Data-Outs as long as there is room (RFC 7143 11.7).
    fn send_data(&mut self, io: &mut impl HostIo) {
        while let Some(mut burst) = self.bursts.front().copied() {
            let source = self.flights[burst.slot as usize].expect("its command is under way").source;
            let n = burst.left.min(self.parameters.peer_max_recv);
            if io.room() < Self::room_for(&source, n) {
                return;
            }
            let solicited = burst.transfer_tag != RESERVED_TAG;
            let pdu = DataOut {
                last: n == burst.left,
                lun: if solicited { self.lun() } else { 0 },
                task_tag: burst.slot,
                transfer_tag: burst.transfer_tag,
                exp_stat_sn: self.exp_stat_sn,
                data_sn: burst.data_sn,
                offset: burst.offset,
                data_len: n,
            };
            self.send_bhs(pdu.encode(), io);
            self.send_source(&source, burst.offset, n, io);
            burst.offset += n;
            burst.left -= n;
            burst.data_sn += 1;
            let mark = self.queued;
            let flight = self.flights[burst.slot as usize].as_mut().expect("still under way");
            flight.mark = mark;
            if burst.left == 0 {
                flight.bursts -= 1;
                flight.solicited &= !solicited;
                self.bursts.pop_front();
            } else {
                *self.bursts.front_mut().expect("it was there") = burst;
            }
        }
    }

    /// The flight whose Data-In arrives.
    fn arriving(&self) -> Option<&Flight> {
        if pdu::opcode_of(self.receiver.bhs()) != pdu::opcode::DATA_IN {
            return None;
        }
        self.flights.get(pdu::task_tag(self.receiver.bhs()) as usize)?.as_ref()
    }
    /// A header is whole: what its data needs is checked before any of it is taken.
    fn on_header(&mut self, io: &mut impl HostIo) {
        let bhs = *self.receiver.bhs();
        let len = pdu::data_len(&bhs);
        if pdu::opcode_of(&bhs) == pdu::opcode::DATA_IN {
            let d = DataIn::decode(&bhs);
            let own = OWN_BYTES as u32;
            let wrong = match self.arriving() {
                None => Some(IscsiFault::DataInForNone),
                Some(f) if f.answered.is_some() => Some(IscsiFault::DataInLate),
                Some(f) if d.offset != f.moved || len > f.expected - f.moved => {
                    Some(IscsiFault::DataInMisplaced)
                }
                Some(f) if d.data_sn != f.data_sn => Some(IscsiFault::DataInNumber),
                Some(f) if f.source.len() > 0 => Some(IscsiFault::DataInForWrite),
                Some(f) if f.id.is_none() && f.expected > own => Some(IscsiFault::DataInBeyondBuffer),
                Some(_) => None,
            };
            if let Some(why) = wrong {
                return self.broken(why);
            }
            let at = d.task_tag as usize;
            self.flights[at].as_mut().expect("checked above").data_sn += 1;
        } else {
            if len as usize > OWN_BYTES {
                return self.broken(IscsiFault::AnswerLong);
            }
            // Behind what a command of our own may have read already.
            self.own_from = self.own.len();
        }
        if len == 0 {
            self.on_pdu(io);
        }
    }
    fn place(&mut self, from: Slice, io: &mut impl HostIo) {
        match self.arriving().copied() {
            Some(f) if f.id.is_some() => io.copy(from, f.into.part(f.moved, from.len)),
            _ => {
                let room = OWN_BYTES - self.own.len();
                self.own.extend_from_slice(&io.bytes(from)[..room.min(from.len as usize)]);
            }
        }
        if self.arriving().is_some() {
            let at = pdu::task_tag(self.receiver.bhs()) as usize;
            self.flights[at].as_mut().expect("it arrives").moved += from.len;
        }
        if self.receiver.data(io.bytes(from)) {
            self.on_pdu(io);
        }
    }
    /// A PDU arrived whole.
    fn on_pdu(&mut self, io: &mut impl HostIo) {
        let response = match Response::decode(self.receiver.bhs()) {
            Ok(r) => r,
            Err(_) => return self.broken(IscsiFault::Opcode),
        };
        match (self.step, response) {
            (Step::Idle | Step::Ended, _) => {}
            (Step::Login, Response::Login(r)) => self.on_login(r, io),
            (Step::Login, _) => self.broken(IscsiFault::PduInLogin),
            (_, Response::Login(_)) => self.broken(IscsiFault::LoginResponseLate),
            (_, Response::NopIn(r)) => {
                self.counters(r.counters, r.task_tag != RESERVED_TAG);
                if r.task_tag == tag::PING {
                    self.ping_sent = false;
                }
                if r.transfer_tag != RESERVED_TAG {
                    self.pong = Some(r);
                }
            }
            (_, Response::ScsiResponse(r)) => self.on_scsi_response(r, io),
            (_, Response::DataIn(r)) => self.on_data_in(r, io),
            (_, Response::R2t(r)) => self.on_r2t(r, io),
            (_, Response::TaskManagement(r)) => self.on_task_management(r, io),
            (_, Response::Text(r)) => self.on_text(r),
            (_, Response::Logout(r)) => {
                self.counters(r.counters, true);
                if self.step == Step::Logout {
                    self.step = Step::Ended;
                }
            }
            (_, Response::AsyncMessage(AsyncMessage { event, counters, .. })) => {
                self.counters(counters, true);
                if event != 0 {
                    self.fail(Error::AskedToGo(event));
                }
            }
            (_, Response::Reject(r)) => self.fail(Error::Rejected(r.reason)),
        }
        if pdu::opcode_of(self.receiver.bhs()) != pdu::opcode::DATA_IN {
            self.own.truncate(self.own_from);
        }
    }
    /// RFC 7143 4.2.2: the window never shrinks, and every status has its number.
    fn counters(&mut self, c: pdu::Counters, status: bool) {
        if c.max_cmd_sn.wrapping_sub(self.max_cmd_sn) < 1 << 30 {
            self.max_cmd_sn = c.max_cmd_sn;
        }
        if status {
            if c.stat_sn != self.exp_stat_sn {
                return self.broken(IscsiFault::StatSn);
            }
            self.exp_stat_sn = self.exp_stat_sn.wrapping_add(1);
        }
    }
    fn on_login(&mut self, r: pdu::LoginResponse, io: &mut impl HostIo) {
        // The first response says where StatSN begins.
        self.exp_stat_sn = r.counters.stat_sn.wrapping_add(1);
        self.max_cmd_sn = r.counters.max_cmd_sn;
        let next = self.login.on_response(&self.config, &r, &self.own[self.own_from..]);
        match next {
            Err(e) => self.fail(e),
            Ok(Next::Send(request, text)) => self.send_login(request, &text, io),
            Ok(Next::Done(parameters)) => {
                self.parameters = parameters;
                self.framing =
                    Framing { header_digest: parameters.header_digest, data_digest: parameters.data_digest };
                self.receiver.negotiated(self.framing);
                if !self.config.ping.is_zero() {
                    self.ping_at = Some(self.now + self.config.ping);
                }
                let discovery = self.config.target.is_none();
                self.go(if discovery { Step::SendTargets } else { Step::ReportLuns });
            }
        }
    }
    fn on_data_in(&mut self, r: DataIn, io: &mut impl HostIo) {
        self.counters(r.counters, r.status.is_some());
        if let Some(status) = r.status
            && self.error.is_none()
        {
            self.ended(r.task_tag, status, &[], r.residual, io);
        }
    }
    fn on_scsi_response(&mut self, r: ScsiResponse, io: &mut impl HostIo) {
        self.counters(r.counters, true);
        if self.error.is_some() {
            return;
        }
        match self.flights.get(r.task_tag as usize) {
            Some(Some(f)) if f.answered.is_none() => {}
            _ => return self.broken(IscsiFault::AnswerToNone),
        }
        if r.response != 0 {
            let fault = Fault { kind: FaultKind::Other, raw: 0xff00_0000 | u32::from(r.response) };
            return self.answer(r.task_tag, HostStatus::Failed(fault), io);
        }
        // RFC 7143 11.4.7: two bytes of length, then the sense data.
        let mut copy = [0; 32];
        let sense = if r.data_len > 0 { self.own[self.own_from..].get(2..).unwrap_or(&[]) } else { &[] };
        let n = sense.len().min(copy.len());
        copy[..n].copy_from_slice(&sense[..n]);
        self.own.truncate(self.own_from);
        self.ended(r.task_tag, r.status, &copy[..n], r.residual, io);
    }
    /// A command ended with a SCSI status.
    fn ended(&mut self, slot: u32, status: u8, sense: &[u8], residual: Residual, io: &mut impl HostIo) {
        let Some(Some(f)) = self.flights.get(slot as usize).copied() else {
            return self.broken(IscsiFault::AnswerToNone);
        };
        let mut result = sense::status_of(status, sense);
        let missing = f.source.len() == 0 && f.moved < f.expected || f.source.len() > f.moved;
        let transport = Fault { kind: FaultKind::Transport, raw: 0 };
        if result == HostStatus::Good && f.id.is_some() && (missing || residual != Residual::None) {
            result = HostStatus::Retry { after: Duration::from_millis(20), fault: transport };
        }
        if let HostStatus::Retry { fault: Fault { kind: FaultKind::Changed, raw }, .. } = result
            // CAPACITY DATA HAS CHANGED, MODE PARAMETERS CHANGED, REPORTED LUNS DATA HAS CHANGED.
            && matches!(raw & 0xffff, 0x2a09 | 0x2a01 | 0x3f0e)
            && self.step == Step::Ready
            && !self.capacity_due
        {
            self.capacity_due = true;
            self.asked = false;
        }
        self.answer(slot, result, io);
    }
    fn answer(&mut self, slot: u32, status: HostStatus, io: &mut impl HostIo) {
        let sent = self.queued - io.pending();
        let flight = self.flights[slot as usize].as_mut().expect("checked by the caller");
        if flight.bursts > 0 {
            flight.bursts = 0;
            self.bursts.retain(|b| b.slot != slot);
        }
        let flight = self.flights[slot as usize].as_mut().expect("checked by the caller");
        if matches!(flight.source, Source::Region(_)) && flight.mark > sent {
            flight.answered = Some(status);
            self.answered_early += 1;
        } else {
            self.end(slot, status, io);
        }
    }
    fn end(&mut self, slot: u32, status: HostStatus, io: &mut impl HostIo) {
        let flight = self.flights[slot as usize].take().expect("it is under way");
        self.aborts.retain(|s| *s != slot);
        self.free.push(slot);
        match flight.id {
            Some(id) => io.done(id, status),
            None => self.on_step(status),
        }
    }
    fn on_r2t(&mut self, r: R2t, io: &mut impl HostIo) {
        self.counters(r.counters, false);
        let wrong = match self.flights.get_mut(r.task_tag as usize) {
            Some(Some(f)) if f.source.len() > 0 && f.answered.is_none() => {
                if f.solicited {
                    Some(IscsiFault::R2tLimit)
                } else if r.r2t_sn != f.r2t_sn || r.transfer_tag == RESERVED_TAG {
                    Some(IscsiFault::R2tNumber)
                } else if r.desired == 0
                    || r.desired > self.parameters.max_burst
                    || r.offset != f.moved
                    || r.desired > f.source.len() - f.moved
                {
                    Some(IscsiFault::R2tMisplaced)
                } else {
                    f.r2t_sn += 1;
                    f.moved += r.desired;
                    f.bursts += 1;
                    f.solicited = true;
                    None
                }
            }
            _ => Some(IscsiFault::R2tForNone),
        };
        match wrong {
            Some(why) => self.broken(why),
            None => {
                let (slot, transfer_tag) = (r.task_tag, r.transfer_tag);
                let (offset, left) = (r.offset, r.desired);
                self.bursts.push_back(Burst { slot, transfer_tag, offset, left, data_sn: 0 });
                self.send_data(io);
            }
        }
    }
}
