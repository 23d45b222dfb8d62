//! One connection: a submission and a completion queue over NVMe/TCP, admin or I/O.

use super::{Error, Lack, block_status};
use crate::pdu::{
    self, Decoder, DigestReader, Digests, Header, IcReq, IcResp, Incoming, Receiver, Term, Transfer,
    Violation, encode, fes, kind,
};
use crate::spec::command::{DsmRange, Sgl, flags};
use crate::spec::{Cqe, Sqe, StatusField, nvm};
use base::crc::crc32c_append;
use base::{Fault, FaultKind, HostCommand, HostIo, HostStatus, NvmeFault, Op, Slice, Want};
use std::collections::VecDeque;
use zerocopy::IntoBytes;

/// The data of a command.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// None.
    None,
    /// From the controller, to a place in the region.
    In(Slice),
    /// From the controller, so many bytes (at most 4096) into the queue's own buffer.
    Own(u32),
    /// To the controller, from a place in the region.
    Out(Slice),
    /// To the controller, small, copied into the capsule.
    Inline(&'a [u8]),
}

/// Who asked: a block command of the caller, or the session itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Block(u32),
    Session(u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    None,
    In,
    Own,
    Out,
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    owner: Owner,
    direction: Direction,
    data: Slice,
    /// In: bytes that came. Out: bytes that an R2T has asked for.
    moved: u32,
    /// What is left to send of the R2T under way.
    r2t: Option<Transfer>,
    /// The whole out-stream up to here must be sent before the caller's data is free.
    mark: u64,
    digest_wrong: bool,
    /// Answered, but our data is not all sent yet.
    answered: Option<HostStatus>,
}

/// Data on its way in.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    cid: u16,
    left: u32,
    crc: u32,
    digest: bool,
    last: bool,
    success: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Not connected.
    Closed,
    /// ICReq is out.
    AwaitingIcResp,
    /// Capsules flow.
    Open,
}

/// Bytes of data that are still worth a receive of their own.
const DIRECT_MIN: u32 = 16 << 10;
/// Most room in the outbox that one PDU's header and digests need.
const PDU_ROOM: u32 = 192;
/// Bytes of the queue's own buffer.
const OWN_BYTES: usize = 4096;
/// NVMe/TCP 3.6.2.3: MAXH2CDATA is at least this.
const MAXH2CDATA_MIN: u32 = 4096;

/// A queue pair on one connection. See the module for who calls what.
#[derive(Debug)]
pub struct Queue {
    phase: Phase,
    wanted: Digests,
    digests: Digests,
    cpda: u8,
    maxh2cdata: u32,
    in_capsule_max: u32,
    crdt: [u16; 3],
    decoder: Decoder,
    digest: DigestReader,
    arrival: Option<Arrival>,
    /// Bytes of a TermReq's quote to be skipped.
    skip: u32,
    flights: Vec<Option<Flight>>,
    free: Vec<u16>,
    /// Commands under way, at most: what the controller's queue holds.
    limit: u16,
    /// Commands whose R2T waits for room in the outbox, in order.
    sending: VecDeque<u16>,
    answers: VecDeque<(u16, Cqe)>,
    answered_early: u32,
    queued: u64,
    own: Box<[u8; OWN_BYTES]>,
    error: Option<Error>,
}

impl Queue {
    /// A queue for at most `depth` commands under way.
    pub fn new(depth: u16, digests: Digests) -> Self {
        assert!(depth > 0, "a queue holds at least one command");
        Self {
            phase: Phase::Closed,
            wanted: digests,
            digests: Digests::default(),
            cpda: 0,
            maxh2cdata: 0,
            in_capsule_max: pdu_in_capsule_admin(),
            crdt: [0; 3],
            decoder: Decoder::new(Receiver::Host, u32::MAX - 1024),
            digest: DigestReader::default(),
            arrival: None,
            skip: 0,
            flights: vec![None; usize::from(depth)],
            free: (0..depth).rev().collect(),
            limit: depth,
            sending: VecDeque::with_capacity(usize::from(depth)),
            answers: VecDeque::with_capacity(usize::from(depth)),
            answered_early: 0,
            queued: 0,
            own: Box::new([0; OWN_BYTES]),
            error: None,
        }
    }
    /// What went wrong, if something did.
    pub fn error(&self) -> Option<Error> {
        self.error
    }
    /// Whether capsules can be sent.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open && self.error.is_none()
    }
    /// Commands that can still be submitted.
    pub fn free(&self) -> u16 {
        if self.is_open() { self.limit.saturating_sub(self.under_way()) } else { 0 }
    }
    /// Commands under way.
    pub fn under_way(&self) -> u16 {
        (self.flights.len() - self.free.len()) as u16
    }
    /// The digests agreed on.
    pub fn digests(&self) -> Digests {
        self.digests
    }
    /// What the controller said of itself: bytes that fit into an I/O capsule (IOCCSZ * 16 - 64), the retry
    /// delays, and how many commands its queue holds.
    pub fn learnt(&mut self, in_capsule_max: u32, crdt: [u16; 3], depth: u16) {
        self.in_capsule_max = in_capsule_max;
        self.crdt = crdt;
        self.limit = depth.min(self.flights.len() as u16);
    }
    /// The queue's own buffer, as the last `Data::Own` left it.
    pub fn own(&self) -> &[u8] {
        &self.own[..]
    }
    /// The next completion of a session command.
    pub fn next_answer(&mut self) -> Option<(u16, Cqe)> {
        self.answers.pop_front()
    }
    /// The command identifier of block command `id`, if it is under way.
    pub fn cid_of(&self, id: u32) -> Option<u16> {
        let at = self.flights.iter().position(|f| f.as_ref().is_some_and(|f| f.owner == Owner::Block(id)))?;
        Some(at as u16)
    }
    /// Ends every block command with `ConnectionLost` and forgets everything else. The owner calls this
    /// once the connection's last operation has ended.
    pub fn on_lost(&mut self, io: &mut impl HostIo) {
        for cid in 0..self.flights.len() as u16 {
            if let Some(f) = self.flights[usize::from(cid)].take() {
                self.free.push(cid);
                if let Owner::Block(id) = f.owner {
                    io.done(id, f.answered.unwrap_or(HostStatus::ConnectionLost));
                }
            }
        }
        *self = Queue {
            limit: self.flights.len() as u16,
            flights: core::mem::take(&mut self.flights),
            free: core::mem::take(&mut self.free),
            sending: core::mem::take(&mut self.sending),
            answers: core::mem::take(&mut self.answers),
            own: core::mem::replace(&mut self.own, Box::new([0; OWN_BYTES])),
            ..Queue::new(1, self.wanted)
        };
        self.sending.clear();
        self.answers.clear();
    }

    /// The connection stands: ICReq goes out (NVMe/TCP 3.6.2.2).
    pub fn on_connected(&mut self, io: &mut impl HostIo) {
        self.phase = Phase::AwaitingIcResp;
        // MAXR2T 0: one R2T at a time for a command; HPDA 0: data PDUs aligned to four bytes.
        let req = IcReq { pfv: 0, hpda: 0, digests: self.wanted, maxr2t: 0 };
        self.header(&encode::ic_req(req), io);
    }

    /// Submits a session command under `purpose`. False without room.
    pub fn submit(&mut self, sqe: Sqe, data: Data<'_>, purpose: u16, io: &mut impl HostIo) -> bool {
        self.send_command(sqe, data, Owner::Session(purpose), io)
    }

    /// Submits a block command. False without room: try again after the next completion or send.
    pub fn submit_block(
        &mut self,
        nsid: u32,
        block_bytes: u32,
        c: &HostCommand,
        io: &mut impl HostIo,
    ) -> bool {
        let (opcode, data) = match c.op {
            Op::Read => (nvm::READ, Data::In(c.data)),
            Op::Write => (nvm::WRITE, Data::Out(c.data)),
            Op::WriteZeroes { .. } => (nvm::WRITE_ZEROES, Data::None),
            Op::Flush => (nvm::FLUSH, Data::None),
            Op::Compare => (nvm::COMPARE, Data::Out(c.data)),
            Op::Deallocate => (nvm::DATASET_MANAGEMENT, Data::None),
        };
        let owner = Owner::Block(c.id);
        let mut sqe = Sqe::new(opcode, 0);
        sqe.nsid = nsid.into();
        match c.op {
            Op::Flush => {}
            Op::Deallocate => {
                let range = DsmRange { attributes: 0.into(), blocks: c.blocks.into(), lba: c.at.into() };
                sqe.cdw11 = nvm::DSM_DEALLOCATE.into();
                return self.send_command(sqe, Data::Inline(range.as_bytes()), owner, io);
            }
            Op::Read | Op::Write | Op::Compare | Op::WriteZeroes { .. } => {
                let mut dword = if c.fua { nvm::FUA } else { 0 };
                if c.op == (Op::WriteZeroes { deallocate: true }) {
                    dword |= nvm::DEALLOCATE;
                }
                sqe.cdw12 = dword.into();
                sqe.set_range(c.at, c.blocks);
                assert!(
                    matches!(data, Data::None)
                        || u64::from(c.data.len) == u64::from(c.blocks) * u64::from(block_bytes),
                    "the data is not as long as the blocks"
                );
            }
        }
        self.send_command(sqe, data, owner, io)
    }

    /// Bytes arrived in a staging buffer. All of them are taken.
    pub fn on_bytes(&mut self, data: Slice, io: &mut impl HostIo) {
        let mut rest = data;
        while rest.len > 0 && self.error.is_none() {
            let n = match (self.skip, self.arrival) {
                (0, None) => match self.decoder.push(io.bytes(rest)) {
                    Ok((n, incoming)) => {
                        if let Some(incoming) = incoming {
                            self.on_header(incoming, io);
                        }
                        n as u32
                    }
                    Err(violation) => return self.violated(violation, io),
                },
                (0, Some(arrival)) if arrival.left > 0 => {
                    let n = arrival.left.min(rest.len);
                    self.place(arrival, rest.head(n), io);
                    n
                }
                (0, Some(arrival)) => {
                    let (n, digest) = self.digest.push(io.bytes(rest));
                    if let Some(digest) = digest {
                        self.arrival_over(arrival, digest == arrival.crc, io);
                    }
                    n as u32
                }
                (skip, _) => {
                    self.skip -= skip.min(rest.len);
                    skip.min(rest.len)
                }
            };
            rest = rest.tail(n);
        }
    }
    /// Where the next bytes go.
    pub fn want(&self) -> Want {
        let Some(arrival) = self.arrival else { return Want::Staging };
        match self.flights.get(usize::from(arrival.cid)) {
            Some(Some(f)) if arrival.left >= DIRECT_MIN && f.direction == Direction::In => {
                Want::Direct(f.data.part(f.moved, arrival.left))
            }
            _ => Want::Staging,
        }
    }
    /// `n` bytes arrived where `want` said.
    pub fn on_direct(&mut self, n: u32, io: &mut impl HostIo) {
        let Some(mut arrival) = self.arrival else { panic!("nothing was wanted directly") };
        let flight = self.flights[usize::from(arrival.cid)].as_mut().expect("its command is under way");
        if arrival.digest {
            arrival.crc = crc32c_append(arrival.crc, io.bytes(flight.data.part(flight.moved, n)));
        }
        flight.moved += n;
        arrival.left -= n;
        self.arrival = Some(arrival);
        if arrival.left == 0 && !arrival.digest {
            self.arrival_over(arrival, true, io);
        }
    }
    /// The outbox has more room.
    pub fn on_sent(&mut self, io: &mut impl HostIo) {
        self.send_data(io);
        if self.answered_early == 0 {
            return;
        }
        let sent = self.queued - io.pending();
        for cid in 0..self.flights.len() as u16 {
            if let Some(Flight { answered: Some(status), mark, .. }) = self.flights[usize::from(cid)]
                && mark <= sent
            {
                self.answered_early -= 1;
                self.end(cid, status, io);
            }
        }
    }

    fn send_command(&mut self, mut sqe: Sqe, data: Data<'_>, owner: Owner, io: &mut impl HostIo) -> bool {
        let inline = if let Data::Inline(bytes) = data { bytes.len() as u32 } else { 0 };
        if self.free() == 0 || io.room() < PDU_ROOM + inline {
            return false;
        }
        if inline > self.in_capsule_max {
            match owner {
                Owner::Block(id) => {
                    let fault = Fault { kind: FaultKind::Unsupported, raw: 0 };
                    io.done(id, HostStatus::Failed(fault));
                }
                Owner::Session(_) => self.fail(Error::Incapable(Lack::CapsuleData)),
            }
            return true;
        }
        let cid = self.free.pop().expect("checked above");
        let (direction, slice) = match data {
            Data::None => (Direction::None, Slice::default()),
            Data::In(s) => (Direction::In, s),
            Data::Own(len) => {
                assert!(len as usize <= OWN_BYTES, "the own buffer holds one page");
                (Direction::Own, Slice::new(0, len))
            }
            Data::Out(s) => (Direction::Out, s),
            Data::Inline(_) => (Direction::None, Slice::default()),
        };
        let in_capsule = match data {
            Data::Out(s) if s.len <= self.in_capsule_max => s.len,
            _ => inline,
        };
        sqe.cid = cid.into();
        sqe.flags |= flags::PSDT_SGL;
        // NVMe/TCP 3.3.2.1: data in the capsule if it fits, else by data PDUs.
        sqe.sgl = if in_capsule > 0 { Sgl::in_capsule(in_capsule) } else { Sgl::transport(slice.len) };
        match self.cpda {
            0 => self.header(&encode::command_unpadded(&sqe, in_capsule, self.digests), io),
            cpda => self.header(&encode::command(&sqe, in_capsule, self.digests, cpda), io),
        }
        let mut moved = 0;
        if in_capsule > 0 {
            let crc = match data {
                Data::Inline(bytes) => {
                    self.header(bytes, io);
                    crc32c_append(0, bytes)
                }
                _ => {
                    moved = slice.len;
                    self.payload(slice, io)
                }
            };
            self.data_digest(crc, io);
        }
        self.flights[usize::from(cid)] = Some(Flight {
            owner,
            direction,
            data: slice,
            moved,
            r2t: None,
            mark: self.queued,
            digest_wrong: false,
            answered: None,
        });
        true
    }
    fn on_header(&mut self, incoming: Incoming, io: &mut impl HostIo) {
        match (self.phase, incoming.header) {
            (Phase::AwaitingIcResp, Header::IcResp(resp)) => self.on_ic_resp(resp, io),
            (_, Header::Term(Term { fes, fei })) => {
                self.skip = incoming.data;
                self.fail(Error::Terminated { fes, fei });
            }
            (Phase::Open, Header::Response(cqe)) => self.on_response(cqe, io),
            (Phase::Open, Header::Data { transfer, last, success }) => {
                let crc = 0;
                let (cid, left, digest) = (transfer.cccid, incoming.data, incoming.digest);
                let arrival = Arrival { cid, left, crc, digest, last, success };
                self.on_data(transfer, arrival, io);
            }
            (Phase::Open, Header::R2t(transfer)) => self.on_r2t(transfer, io),
            _ => self.violated(Violation::new(fes::SEQUENCE, NvmeFault::PduMisplaced), io),
        }
    }
    fn on_ic_resp(&mut self, resp: IcResp, io: &mut impl HostIo) {
        let wrong = if resp.pfv != 0 {
            Some(Violation::field(8, NvmeFault::FormatUnknown))
        } else if resp.cpda > pdu::ALIGNMENT_FIELD_MAX {
            Some(Violation::field(10, NvmeFault::Alignment))
        } else if (resp.digests.header && !self.wanted.header) || (resp.digests.data && !self.wanted.data) {
            Some(Violation::field(11, NvmeFault::DigestUnasked))
        } else if resp.maxh2cdata < MAXH2CDATA_MIN {
            Some(Violation::field(12, NvmeFault::MaxH2cData))
        } else {
            None
        };
        if let Some(violation) = wrong {
            return self.violated(violation, io);
        }
        self.digests = resp.digests;
        self.cpda = resp.cpda;
        // Data PDUs other than the last of a transfer carry whole dwords.
        self.maxh2cdata = resp.maxh2cdata & !3;
        self.decoder.negotiated(resp.digests, 0);
        self.phase = Phase::Open;
    }
    fn on_data(&mut self, t: Transfer, arrival: Arrival, io: &mut impl HostIo) {
        let why = match self.flights.get(usize::from(t.cccid)) {
            Some(Some(f)) if f.answered.is_none() => {
                let reads = matches!(f.direction, Direction::In | Direction::Own);
                let left = f.data.len - f.moved;
                // NVMe/TCP 3.3.2.1.2 allows SUCCESS only with SQ flow control off. SPDK's target sets it all the
                // same, and hosts take it: no command of theirs waits for the SQHD of a response.
                if !reads {
                    Some(NvmeFault::DataUnread)
                } else if t.offset != f.moved || t.length > left {
                    Some(NvmeFault::DataMisplaced)
                } else if arrival.success && !arrival.last {
                    Some(NvmeFault::SuccessNotLast)
                } else if arrival.success && t.length < left {
                    Some(NvmeFault::SuccessTooEarly)
                } else {
                    None
                }
            }
            _ => Some(NvmeFault::DataForNone),
        };
        if let Some(why) = why {
            return self.violated(Violation::new(fes::OUT_OF_RANGE, why), io);
        }
        self.arrival = Some(arrival);
        if arrival.left == 0 {
            self.arrival_over(arrival, true, io);
        }
    }
    fn place(&mut self, mut arrival: Arrival, from: Slice, io: &mut impl HostIo) {
        let flight = self.flights[usize::from(arrival.cid)].as_mut().expect("its command is under way");
        if arrival.digest {
            arrival.crc = crc32c_append(arrival.crc, io.bytes(from));
        }
        match flight.direction {
            Direction::In => io.copy(from, flight.data.part(flight.moved, from.len)),
            Direction::Own => {
                let at = flight.moved as usize;
                self.own[at..at + from.len as usize].copy_from_slice(io.bytes(from));
            }
            Direction::None | Direction::Out => unreachable!("checked when the data was announced"),
        }
        flight.moved += from.len;
        arrival.left -= from.len;
        self.arrival = Some(arrival);
        if arrival.left == 0 && !arrival.digest {
            self.arrival_over(arrival, true, io);
        }
    }
    fn arrival_over(&mut self, arrival: Arrival, digest_right: bool, io: &mut impl HostIo) {
        self.arrival = None;
        let flight = self.flights[usize::from(arrival.cid)].as_mut().expect("its command is under way");
        // NVMe/TCP 3.3.1.2: a wrong data digest ends the command, not the connection.
        flight.digest_wrong |= !digest_right;
        if arrival.success {
            let cqe = Cqe { cid: arrival.cid.into(), ..Cqe::default() };
            self.on_response(cqe, io);
        }
    }
    fn on_response(&mut self, cqe: Cqe, io: &mut impl HostIo) {
        let cid = cqe.cid.get();
        let Some(Some(flight)) = self.flights.get_mut(usize::from(cid)) else {
            return self.violated(Violation::new(fes::SEQUENCE, NvmeFault::AnswerToNone), io);
        };
        if flight.answered.is_some() {
            return self.violated(Violation::new(fes::SEQUENCE, NvmeFault::SecondAnswer), io);
        }
        let short = flight.direction != Direction::None && flight.moved < flight.data.len;
        match flight.owner {
            Owner::Session(purpose) => {
                let mut cqe = cqe;
                if cqe.status().is_good() && (short || flight.digest_wrong) {
                    cqe.status = (StatusField::TRANSIENT_TRANSPORT.0 << 1).into();
                }
                self.flights[usize::from(cid)] = None;
                self.free.push(cid);
                self.answers.push_back((purpose, cqe));
                return;
            }
            Owner::Block(_) => {}
        }
        let mut status = block_status(cqe.status(), self.crdt);
        if status == HostStatus::Good && (short || flight.digest_wrong) {
            status = block_status(StatusField::TRANSIENT_TRANSPORT, self.crdt);
        }
        if flight.r2t.take().is_some() {
            self.sending.retain(|c| *c != cid);
        }
        if flight.mark > self.queued - io.pending() && flight.direction == Direction::Out {
            flight.answered = Some(status);
            self.answered_early += 1;
        } else {
            self.end(cid, status, io);
        }
    }
    fn end(&mut self, cid: u16, status: HostStatus, io: &mut impl HostIo) {
        let flight = self.flights[usize::from(cid)].take().expect("it is under way");
        self.free.push(cid);
        if let Owner::Block(id) = flight.owner {
            io.done(id, status);
        }
    }
    fn on_r2t(&mut self, t: Transfer, io: &mut impl HostIo) {
        let (code, why) = match self.flights.get_mut(usize::from(t.cccid)) {
            Some(Some(f)) if f.direction == Direction::Out && f.answered.is_none() => {
                if f.r2t.is_some() {
                    (fes::LIMIT, NvmeFault::R2tLimit)
                } else if t.length == 0 || t.offset != f.moved || t.length > f.data.len - f.moved {
                    (fes::OUT_OF_RANGE, NvmeFault::R2tMisplaced)
                } else {
                    f.moved += t.length;
                    f.r2t = Some(t);
                    self.sending.push_back(t.cccid);
                    return self.send_data(io);
                }
            }
            _ => (fes::INVALID_FIELD, NvmeFault::R2tForRead),
        };
        self.violated(Violation::new(code, why), io);
    }
    /// Sends what R2Ts asked for, as long as there is room (NVMe/TCP 3.6.2.7).
    fn send_data(&mut self, io: &mut impl HostIo) {
        while let Some(&cid) = self.sending.front() {
            if io.room() < PDU_ROOM {
                return;
            }
            let flight = self.flights[usize::from(cid)].as_mut().expect("its command is under way");
            let left = flight.r2t.expect("an R2T is under way");
            let n = left.length.min(self.maxh2cdata);
            let piece = Transfer { length: n, ..left };
            let last = n == left.length;
            let rest = Transfer { offset: left.offset + n, length: left.length - n, ..left };
            flight.r2t = (!last).then_some(rest);
            let from = flight.data.part(left.offset, n);
            self.header(&encode::h2c_data(piece, last, self.digests, self.cpda), io);
            let crc = self.payload(from, io);
            self.data_digest(crc, io);
            self.flights[usize::from(cid)].as_mut().expect("still under way").mark = self.queued;
            if last {
                self.sending.pop_front();
            }
        }
    }
    fn header(&mut self, bytes: &[u8], io: &mut impl HostIo) {
        self.queued += bytes.len() as u64;
        io.header(bytes);
    }
    /// Sends data from where it lies; gives its CRC if digests are in use.
    fn payload(&mut self, data: Slice, io: &mut impl HostIo) -> u32 {
        self.queued += u64::from(data.len);
        io.payload(data);
        if self.digests.data { crc32c_append(0, io.bytes(data)) } else { 0 }
    }
    fn data_digest(&mut self, crc: u32, io: &mut impl HostIo) {
        if self.digests.data {
            self.header(&pdu::digest_bytes(crc), io);
        }
    }
    /// NVMe/TCP 3.5.1.2: a fatal error is reported by H2CTermReq, then the connection ends.
    fn violated(&mut self, violation: Violation, io: &mut impl HostIo) {
        let term = Term { fes: violation.fes, fei: violation.fei };
        if io.room() >= PDU_ROOM && self.phase != Phase::Closed {
            let pdu = encode::term(kind::H2C_TERM, term, self.decoder.quote());
            self.header(&pdu, io);
        }
        self.fail(Error::Protocol(violation));
    }
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

/// NVMe/TCP 3.3.2.1.1: capsules of the admin queue hold up to 8192 bytes of data; so does Connect's.
const fn pdu_in_capsule_admin() -> u32 {
    8192
}
