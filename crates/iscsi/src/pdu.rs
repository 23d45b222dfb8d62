//! PDUs on the wire (RFC 7143 11): the basic header segment of each, additional headers, padding, digests.
//!
//! A PDU is `BHS (48) | AHS | header digest | data segment | padding | data digest`. A struct here is one
//! BHS; `decode` reads what its sender may set and leaves judgement of the values to the machine, except
//! for what makes the rest of the stream unreadable.

use base::crc::{crc32c, crc32c_append};

/// Length of a basic header segment, bytes.
pub const BHS_BYTES: usize = 48;
/// The tag that names no task (RFC 7143 11.2.1.8).
pub const RESERVED_TAG: u32 = 0xffff_ffff;
/// Length of one digest, bytes.
pub const DIGEST_BYTES: usize = 4;
/// Largest additional header segment, bytes (TotalAHSLength counts words in one byte).
pub const AHS_BYTES_MAX: usize = 255 * 4;

/// A basic header segment as bytes.
pub type Bhs = [u8; BHS_BYTES];

/// Operation codes (RFC 7143 11.2.1.2).
pub mod opcode {
    /// NOP-Out.
    pub const NOP_OUT: u8 = 0x00;
    /// SCSI Command.
    pub const SCSI_COMMAND: u8 = 0x01;
    /// Task Management Function Request.
    pub const TASK_MANAGEMENT_REQUEST: u8 = 0x02;
    /// Login Request.
    pub const LOGIN_REQUEST: u8 = 0x03;
    /// Text Request.
    pub const TEXT_REQUEST: u8 = 0x04;
    /// SCSI Data-Out.
    pub const DATA_OUT: u8 = 0x05;
    /// Logout Request.
    pub const LOGOUT_REQUEST: u8 = 0x06;
    /// SNACK Request.
    pub const SNACK: u8 = 0x10;
    /// NOP-In.
    pub const NOP_IN: u8 = 0x20;
    /// SCSI Response.
    pub const SCSI_RESPONSE: u8 = 0x21;
    /// Task Management Function Response.
    pub const TASK_MANAGEMENT_RESPONSE: u8 = 0x22;
    /// Login Response.
    pub const LOGIN_RESPONSE: u8 = 0x23;
    /// Text Response.
    pub const TEXT_RESPONSE: u8 = 0x24;
    /// SCSI Data-In.
    pub const DATA_IN: u8 = 0x25;
    /// Logout Response.
    pub const LOGOUT_RESPONSE: u8 = 0x26;
    /// Ready To Transfer.
    pub const R2T: u8 = 0x31;
    /// Asynchronous Message.
    pub const ASYNC_MESSAGE: u8 = 0x32;
    /// Reject.
    pub const REJECT: u8 = 0x3f;
}

/// The first byte: the immediate bit.
pub const IMMEDIATE: u8 = 0x40;
/// The second byte: the F bit (T in logins).
pub const FINAL: u8 = 0x80;
/// The second byte of logins and texts: the C bit, more text follows.
pub const CONTINUE: u8 = 0x40;

/// Why a header cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadPdu {
    /// The operation code is unknown, or of the other direction.
    Opcode(u8),
}

/// The operation code of a header, without the immediate bit.
pub fn opcode_of(bhs: &Bhs) -> u8 {
    bhs[0] & 0x3f
}
/// Whether the immediate bit is set.
pub fn is_immediate(bhs: &Bhs) -> bool {
    bhs[0] & IMMEDIATE != 0
}
/// Length of the additional header segments, bytes.
pub fn ahs_len(bhs: &Bhs) -> usize {
    usize::from(bhs[4]) * 4
}
/// Length of the data segment without padding, bytes: at most 2^24 - 1.
pub fn data_len(bhs: &Bhs) -> u32 {
    u32::from_be_bytes([0, bhs[5], bhs[6], bhs[7]])
}
/// Initiator Task Tag.
pub fn task_tag(bhs: &Bhs) -> u32 {
    get32(bhs, 16)
}
/// Number of padding bytes after `len` bytes of data (RFC 7143 11.1: words of four bytes).
pub fn padding(len: u32) -> u32 {
    len.wrapping_neg() & 3
}

/// The header digest over BHS and AHS, as sent (RFC 7143 11.2.3 and A.4).
pub fn header_digest(bhs: &[u8], ahs: &[u8]) -> [u8; 4] {
    crc32c_append(crc32c(bhs), ahs).to_le_bytes()
}
/// The data digest over data and its padding, as sent.
pub fn data_digest(data: &[u8]) -> [u8; 4] {
    data_digest_of(crc32c(data), data.len() as u32)
}
/// The data digest whose data has the CRC32C `crc` and is `len` bytes long: adds the (zero) padding.
pub fn data_digest_of(crc: u32, len: u32) -> [u8; 4] {
    crc32c_append(crc, &[0; 3][..padding(len) as usize]).to_le_bytes()
}

/// Which digests are in force on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Framing {
    /// Headers are followed by a CRC32C.
    pub header_digest: bool,
    /// Data segments are followed by a CRC32C.
    pub data_digest: bool,
}

impl Framing {
    /// Length of everything before the data segment, bytes.
    pub fn header_len(self, ahs: usize) -> usize {
        BHS_BYTES + ahs + if self.header_digest { DIGEST_BYTES } else { 0 }
    }
    /// Length of what follows `data` bytes of data, padding and digest, bytes.
    pub fn trailer_len(self, data: u32) -> usize {
        let digest = if self.data_digest && data > 0 { DIGEST_BYTES } else { 0 };
        padding(data) as usize + digest
    }
    /// Appends a whole PDU: header, digest, data, padding, digest. The header's data length is set here.
    pub fn put(self, out: &mut Vec<u8>, mut bhs: Bhs, data: &[u8]) {
        set_data_len(&mut bhs, data.len() as u32);
        out.extend_from_slice(&bhs);
        if self.header_digest {
            out.extend_from_slice(&header_digest(&bhs, &[]));
        }
        if !data.is_empty() {
            out.extend_from_slice(data);
            out.extend_from_slice(&[0; 3][..padding(data.len() as u32) as usize]);
            if self.data_digest {
                out.extend_from_slice(&data_digest(data));
            }
        }
    }
}

/// Sets DataSegmentLength. Panics beyond 24 bits.
pub fn set_data_len(bhs: &mut Bhs, len: u32) {
    assert!(len < 1 << 24, "a data segment is longer than its length field can say");
    bhs[5..8].copy_from_slice(&len.to_be_bytes()[1..]);
}

fn get16(b: &Bhs, at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}
fn get32(b: &Bhs, at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}
fn get64(b: &Bhs, at: usize) -> u64 {
    u64::from(get32(b, at)) << 32 | u64::from(get32(b, at + 4))
}
fn put16(b: &mut Bhs, at: usize, v: u16) {
    b[at..at + 2].copy_from_slice(&v.to_be_bytes());
}
fn put32(b: &mut Bhs, at: usize, v: u32) {
    b[at..at + 4].copy_from_slice(&v.to_be_bytes());
}
fn put64(b: &mut Bhs, at: usize, v: u64) {
    b[at..at + 8].copy_from_slice(&v.to_be_bytes());
}
fn start(opcode: u8, flags: u8) -> Bhs {
    let mut b = [0; BHS_BYTES];
    (b[0], b[1]) = (opcode, flags);
    b
}
fn immediate_bit(immediate: bool) -> u8 {
    if immediate { IMMEDIATE } else { 0 }
}
fn bit(on: bool, mask: u8) -> u8 {
    if on { mask } else { 0 }
}

/// The three counters that every target PDU carries (RFC 7143 4.2.2). For PDUs that do not advance
/// StatSN the field holds the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// StatSN.
    pub stat_sn: u32,
    /// ExpCmdSN.
    pub exp_cmd_sn: u32,
    /// MaxCmdSN.
    pub max_cmd_sn: u32,
}

impl Counters {
    fn get(b: &Bhs) -> Self {
        Self { stat_sn: get32(b, 24), exp_cmd_sn: get32(b, 28), max_cmd_sn: get32(b, 32) }
    }
    fn put(self, b: &mut Bhs) {
        put32(b, 24, self.stat_sn);
        put32(b, 28, self.exp_cmd_sn);
        put32(b, 32, self.max_cmd_sn);
    }
}

/// Residual counts of one direction (RFC 7143 11.4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Residual {
    /// As much as expected.
    #[default]
    None,
    /// So many bytes fewer than expected were transferred.
    Underflow(u32),
    /// So many bytes more than expected would have been transferred.
    Overflow(u32),
}

impl Residual {
    /// What is left when `expected` were announced and the command has `actual` bytes.
    pub fn of(expected: u32, actual: u64) -> Self {
        let expected = u64::from(expected);
        match actual {
            a if a < expected => Self::Underflow((expected - a) as u32),
            a if a > expected => Self::Overflow(u32::try_from(a - expected).unwrap_or(u32::MAX)),
            _ => Self::None,
        }
    }
    fn flags(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Underflow(_) => 0x02,
            Self::Overflow(_) => 0x04,
        }
    }
    fn count(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Underflow(n) | Self::Overflow(n) => n,
        }
    }
    fn get(b: &Bhs) -> Self {
        match b[1] & 0x06 {
            0x02 => Self::Underflow(get32(b, 44)),
            0x04 => Self::Overflow(get32(b, 44)),
            _ => Self::None,
        }
    }
}

/// SCSI Command (RFC 7143 11.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScsiCommand {
    /// Not counted by CmdSN.
    pub immediate: bool,
    /// F: no unsolicited Data-Out follows.
    pub last: bool,
    /// R: data is expected from the target.
    pub read: bool,
    /// W: data will go to the target.
    pub write: bool,
    /// Task attribute: 0 untagged, 1 simple, 2 ordered, 3 head of queue, 4 ACA.
    pub attribute: u8,
    /// Logical unit number, eight bytes.
    pub lun: u64,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// Expected Data Transfer Length, bytes.
    pub expected: u32,
    /// CmdSN.
    pub cmd_sn: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
    /// Command descriptor block.
    pub cdb: [u8; 16],
    /// Length of the immediate data, bytes.
    pub data_len: u32,
}

impl ScsiCommand {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        let mut cdb = [0; 16];
        cdb.copy_from_slice(&b[32..48]);
        Self {
            immediate: is_immediate(b),
            last: b[1] & FINAL != 0,
            read: b[1] & 0x40 != 0,
            write: b[1] & 0x20 != 0,
            attribute: b[1] & 0x07,
            lun: get64(b, 8),
            task_tag: task_tag(b),
            expected: get32(b, 20),
            cmd_sn: get32(b, 24),
            exp_stat_sn: get32(b, 28),
            cdb,
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let flags =
            bit(self.last, FINAL) | bit(self.read, 0x40) | bit(self.write, 0x20) | self.attribute & 0x07;
        let mut b = start(opcode::SCSI_COMMAND | immediate_bit(self.immediate), flags);
        set_data_len(&mut b, self.data_len);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.expected);
        put32(&mut b, 24, self.cmd_sn);
        put32(&mut b, 28, self.exp_stat_sn);
        b[32..48].copy_from_slice(&self.cdb);
        b
    }
}

/// SCSI Response (RFC 7143 11.4). Residuals of bidirectional reads are not offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScsiResponse {
    /// 0: the command ended at the target; 1: target failure.
    pub response: u8,
    /// SCSI status.
    pub status: u8,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// Counters.
    pub counters: Counters,
    /// Number of Data-In (read) or R2T (write) PDUs sent for the command.
    pub exp_data_sn: u32,
    /// Residual.
    pub residual: Residual,
    /// Length of the data segment (sense data with its length prefix), bytes.
    pub data_len: u32,
}

impl ScsiResponse {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            response: b[2],
            status: b[3],
            task_tag: task_tag(b),
            counters: Counters::get(b),
            exp_data_sn: get32(b, 36),
            residual: Residual::get(b),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::SCSI_RESPONSE, FINAL | self.residual.flags());
        (b[2], b[3]) = (self.response, self.status);
        set_data_len(&mut b, self.data_len);
        put32(&mut b, 16, self.task_tag);
        self.counters.put(&mut b);
        put32(&mut b, 36, self.exp_data_sn);
        put32(&mut b, 44, self.residual.count());
        b
    }
}

/// Task management functions (RFC 7143 11.5.1).
pub mod function {
    /// ABORT TASK.
    pub const ABORT_TASK: u8 = 1;
    /// ABORT TASK SET.
    pub const ABORT_TASK_SET: u8 = 2;
    /// CLEAR ACA.
    pub const CLEAR_ACA: u8 = 3;
    /// CLEAR TASK SET.
    pub const CLEAR_TASK_SET: u8 = 4;
    /// LOGICAL UNIT RESET.
    pub const LUN_RESET: u8 = 5;
    /// TARGET WARM RESET.
    pub const TARGET_WARM_RESET: u8 = 6;
    /// TARGET COLD RESET.
    pub const TARGET_COLD_RESET: u8 = 7;
    /// TASK REASSIGN.
    pub const TASK_REASSIGN: u8 = 8;
}

/// Task management responses (RFC 7143 11.6.1).
pub mod function_response {
    /// Function complete.
    pub const COMPLETE: u8 = 0;
    /// Task does not exist.
    pub const NO_TASK: u8 = 1;
    /// LUN does not exist.
    pub const NO_LUN: u8 = 2;
    /// Task still allegiant.
    pub const STILL_ALLEGIANT: u8 = 3;
    /// Task allegiance reassignment not supported.
    pub const NO_REASSIGN: u8 = 4;
    /// Function not supported.
    pub const NOT_SUPPORTED: u8 = 5;
    /// Function authorization failed.
    pub const NOT_AUTHORIZED: u8 = 6;
    /// Function rejected.
    pub const REJECTED: u8 = 255;
}

/// Task Management Function Request (RFC 7143 11.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskManagementRequest {
    /// Not counted by CmdSN.
    pub immediate: bool,
    /// One of `function`.
    pub function: u8,
    /// Logical unit number, eight bytes.
    pub lun: u64,
    /// Initiator Task Tag of this request.
    pub task_tag: u32,
    /// The task that is meant, or `RESERVED_TAG`.
    pub referenced_task_tag: u32,
    /// CmdSN.
    pub cmd_sn: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
    /// CmdSN of the task that is meant.
    pub ref_cmd_sn: u32,
    /// ExpDataSN, for TASK REASSIGN.
    pub exp_data_sn: u32,
}

impl TaskManagementRequest {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            immediate: is_immediate(b),
            function: b[1] & 0x7f,
            lun: get64(b, 8),
            task_tag: task_tag(b),
            referenced_task_tag: get32(b, 20),
            cmd_sn: get32(b, 24),
            exp_stat_sn: get32(b, 28),
            ref_cmd_sn: get32(b, 32),
            exp_data_sn: get32(b, 36),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let first = opcode::TASK_MANAGEMENT_REQUEST | immediate_bit(self.immediate);
        let mut b = start(first, FINAL | self.function & 0x7f);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.referenced_task_tag);
        put32(&mut b, 24, self.cmd_sn);
        put32(&mut b, 28, self.exp_stat_sn);
        put32(&mut b, 32, self.ref_cmd_sn);
        put32(&mut b, 36, self.exp_data_sn);
        b
    }
}

/// Task Management Function Response (RFC 7143 11.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskManagementResponse {
    /// One of `function_response`.
    pub response: u8,
    /// Initiator Task Tag of the request.
    pub task_tag: u32,
    /// Counters.
    pub counters: Counters,
}

impl TaskManagementResponse {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self { response: b[2], task_tag: task_tag(b), counters: Counters::get(b) }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::TASK_MANAGEMENT_RESPONSE, FINAL);
        b[2] = self.response;
        put32(&mut b, 16, self.task_tag);
        self.counters.put(&mut b);
        b
    }
}

/// SCSI Data-Out (RFC 7143 11.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataOut {
    /// F: last of its sequence.
    pub last: bool,
    /// Logical unit number (if the target transfer tag is not reserved).
    pub lun: u64,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// The R2T's tag, or `RESERVED_TAG` for unsolicited data.
    pub transfer_tag: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
    /// Counts the PDUs of one sequence from 0.
    pub data_sn: u32,
    /// Offset in the command's data, bytes.
    pub offset: u32,
    /// Length of the data, bytes.
    pub data_len: u32,
}

impl DataOut {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            last: b[1] & FINAL != 0,
            lun: get64(b, 8),
            task_tag: task_tag(b),
            transfer_tag: get32(b, 20),
            exp_stat_sn: get32(b, 28),
            data_sn: get32(b, 36),
            offset: get32(b, 40),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::DATA_OUT, bit(self.last, FINAL));
        set_data_len(&mut b, self.data_len);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.transfer_tag);
        put32(&mut b, 28, self.exp_stat_sn);
        put32(&mut b, 36, self.data_sn);
        put32(&mut b, 40, self.offset);
        b
    }
}

/// SCSI Data-In (RFC 7143 11.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataIn {
    /// F: last of its sequence.
    pub last: bool,
    /// A: the target wants an acknowledgement (error recovery level above 0).
    pub acknowledge: bool,
    /// S: the command's status is here (phase collapse); `residual` counts only then.
    pub status: Option<u8>,
    /// Residual.
    pub residual: Residual,
    /// Logical unit number (if A).
    pub lun: u64,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// Target Transfer Tag, `RESERVED_TAG` without A.
    pub transfer_tag: u32,
    /// Counters; StatSN means something only with a status.
    pub counters: Counters,
    /// Counts the command's Data-In PDUs from 0.
    pub data_sn: u32,
    /// Offset in the command's data, bytes.
    pub offset: u32,
    /// Length of the data, bytes.
    pub data_len: u32,
}

impl DataIn {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            last: b[1] & FINAL != 0,
            acknowledge: b[1] & 0x40 != 0,
            status: (b[1] & 0x01 != 0).then_some(b[3]),
            residual: Residual::get(b),
            lun: get64(b, 8),
            task_tag: task_tag(b),
            transfer_tag: get32(b, 20),
            counters: Counters::get(b),
            data_sn: get32(b, 36),
            offset: get32(b, 40),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut flags = bit(self.last, FINAL) | bit(self.acknowledge, 0x40);
        if self.status.is_some() {
            flags |= 0x01 | self.residual.flags();
        }
        let mut b = start(opcode::DATA_IN, flags);
        b[3] = self.status.unwrap_or(0);
        set_data_len(&mut b, self.data_len);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.transfer_tag);
        self.counters.put(&mut b);
        put32(&mut b, 36, self.data_sn);
        put32(&mut b, 40, self.offset);
        put32(&mut b, 44, if self.status.is_some() { self.residual.count() } else { 0 });
        b
    }
}

/// Ready To Transfer (RFC 7143 11.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct R2t {
    /// Logical unit number.
    pub lun: u64,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// Comes back in the Data-Outs.
    pub transfer_tag: u32,
    /// Counters; StatSN is the next one.
    pub counters: Counters,
    /// Counts the command's R2Ts from 0.
    pub r2t_sn: u32,
    /// Offset in the command's data, bytes.
    pub offset: u32,
    /// Length wanted, bytes.
    pub desired: u32,
}

impl R2t {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            lun: get64(b, 8),
            task_tag: task_tag(b),
            transfer_tag: get32(b, 20),
            counters: Counters::get(b),
            r2t_sn: get32(b, 36),
            offset: get32(b, 40),
            desired: get32(b, 44),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::R2T, FINAL);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.transfer_tag);
        self.counters.put(&mut b);
        put32(&mut b, 36, self.r2t_sn);
        put32(&mut b, 40, self.offset);
        put32(&mut b, 44, self.desired);
        b
    }
}

/// Asynchronous Message (RFC 7143 11.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AsyncMessage {
    /// Logical unit number, for SCSI events.
    pub lun: u64,
    /// Counters.
    pub counters: Counters,
    /// 0 SCSI event, 1 logout wanted, 2 connection will be dropped, 3 session will be dropped, 4 renegotiate.
    pub event: u8,
    /// Vendor code.
    pub vendor_code: u8,
    /// Parameter 1.
    pub parameter1: u16,
    /// Parameter 2.
    pub parameter2: u16,
    /// Parameter 3.
    pub parameter3: u16,
    /// Length of the data segment, bytes.
    pub data_len: u32,
}

impl AsyncMessage {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            lun: get64(b, 8),
            counters: Counters::get(b),
            event: b[36],
            vendor_code: b[37],
            parameter1: get16(b, 38),
            parameter2: get16(b, 40),
            parameter3: get16(b, 42),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::ASYNC_MESSAGE, FINAL);
        set_data_len(&mut b, self.data_len);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, RESERVED_TAG);
        self.counters.put(&mut b);
        (b[36], b[37]) = (self.event, self.vendor_code);
        put16(&mut b, 38, self.parameter1);
        put16(&mut b, 40, self.parameter2);
        put16(&mut b, 42, self.parameter3);
        b
    }
}

/// Text Request (RFC 7143 11.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TextRequest {
    /// Not counted by CmdSN.
    pub immediate: bool,
    /// F: the initiator has said everything.
    pub last: bool,
    /// C: this text goes on in the next PDU.
    pub continues: bool,
    /// Logical unit number, if the transfer tag is not reserved.
    pub lun: u64,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// `RESERVED_TAG` for a new exchange, else the tag of the response.
    pub transfer_tag: u32,
    /// CmdSN.
    pub cmd_sn: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
    /// Length of the text, bytes.
    pub data_len: u32,
}

impl TextRequest {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            immediate: is_immediate(b),
            last: b[1] & FINAL != 0,
            continues: b[1] & CONTINUE != 0,
            lun: get64(b, 8),
            task_tag: task_tag(b),
            transfer_tag: get32(b, 20),
            cmd_sn: get32(b, 24),
            exp_stat_sn: get32(b, 28),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let flags = bit(self.last, FINAL) | bit(self.continues, CONTINUE);
        let mut b = start(opcode::TEXT_REQUEST | immediate_bit(self.immediate), flags);
        set_data_len(&mut b, self.data_len);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.transfer_tag);
        put32(&mut b, 24, self.cmd_sn);
        put32(&mut b, 28, self.exp_stat_sn);
        b
    }
}

/// Text Response (RFC 7143 11.11).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TextResponse {
    /// F: the target has said everything.
    pub last: bool,
    /// C: this text goes on in the next PDU.
    pub continues: bool,
    /// Logical unit number, if the transfer tag is not reserved.
    pub lun: u64,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// `RESERVED_TAG` if this ends the exchange.
    pub transfer_tag: u32,
    /// Counters.
    pub counters: Counters,
    /// Length of the text, bytes.
    pub data_len: u32,
}

impl TextResponse {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            last: b[1] & FINAL != 0,
            continues: b[1] & CONTINUE != 0,
            lun: get64(b, 8),
            task_tag: task_tag(b),
            transfer_tag: get32(b, 20),
            counters: Counters::get(b),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::TEXT_RESPONSE, bit(self.last, FINAL) | bit(self.continues, CONTINUE));
        set_data_len(&mut b, self.data_len);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.transfer_tag);
        self.counters.put(&mut b);
        b
    }
}

/// A stage of the login phase (RFC 7143 11.12.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stage {
    /// Security negotiation.
    #[default]
    Security,
    /// Operational negotiation.
    Operational,
    /// The reserved number 2.
    Reserved,
    /// Full feature phase.
    FullFeature,
}

impl Stage {
    fn of(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Security,
            1 => Self::Operational,
            2 => Self::Reserved,
            _ => Self::FullFeature,
        }
    }
    fn bits(self) -> u8 {
        match self {
            Self::Security => 0,
            Self::Operational => 1,
            Self::Reserved => 2,
            Self::FullFeature => 3,
        }
    }
}

/// Login Request (RFC 7143 11.12); always immediate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoginRequest {
    /// T: the initiator is ready for `next`.
    pub transit: bool,
    /// C: this text goes on in the next PDU.
    pub continues: bool,
    /// CSG.
    pub current: Stage,
    /// NSG, meaningful with T.
    pub next: Stage,
    /// Highest version supported.
    pub version_max: u8,
    /// Lowest version supported.
    pub version_min: u8,
    /// Initiator part of the session id.
    pub isid: [u8; 6],
    /// Target session handle; 0 for a new session.
    pub tsih: u16,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// Connection id.
    pub cid: u16,
    /// CmdSN.
    pub cmd_sn: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
    /// Length of the text, bytes.
    pub data_len: u32,
}

impl LoginRequest {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            transit: b[1] & FINAL != 0,
            continues: b[1] & CONTINUE != 0,
            current: Stage::of(b[1] >> 2),
            next: Stage::of(b[1]),
            version_max: b[2],
            version_min: b[3],
            isid: [b[8], b[9], b[10], b[11], b[12], b[13]],
            tsih: get16(b, 14),
            task_tag: task_tag(b),
            cid: get16(b, 20),
            cmd_sn: get32(b, 24),
            exp_stat_sn: get32(b, 28),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let flags = bit(self.transit, FINAL)
            | bit(self.continues, CONTINUE)
            | self.current.bits() << 2
            | if self.transit { self.next.bits() } else { 0 };
        let mut b = start(opcode::LOGIN_REQUEST | IMMEDIATE, flags);
        (b[2], b[3]) = (self.version_max, self.version_min);
        set_data_len(&mut b, self.data_len);
        b[8..14].copy_from_slice(&self.isid);
        put16(&mut b, 14, self.tsih);
        put32(&mut b, 16, self.task_tag);
        put16(&mut b, 20, self.cid);
        put32(&mut b, 24, self.cmd_sn);
        put32(&mut b, 28, self.exp_stat_sn);
        b
    }
}

/// Login statuses: class in the high byte, detail in the low one (RFC 7143 11.13.5).
pub mod login_status {
    /// Success.
    pub const SUCCESS: u16 = 0x0000;
    /// Initiator error (miscellaneous).
    pub const INITIATOR_ERROR: u16 = 0x0200;
    /// Authentication failure.
    pub const AUTHENTICATION_FAILURE: u16 = 0x0201;
    /// The initiator is not allowed access to the target.
    pub const FORBIDDEN: u16 = 0x0202;
    /// The target does not exist.
    pub const NOT_FOUND: u16 = 0x0203;
    /// Requested version not supported.
    pub const UNSUPPORTED_VERSION: u16 = 0x0205;
    /// Too many connections.
    pub const TOO_MANY_CONNECTIONS: u16 = 0x0206;
    /// Missing parameters.
    pub const MISSING_PARAMETER: u16 = 0x0207;
    /// The target does not support the session type.
    pub const SESSION_TYPE: u16 = 0x0209;
    /// No such session to be joined.
    pub const NO_SESSION: u16 = 0x020a;
    /// Invalid request during login.
    pub const INVALID_REQUEST: u16 = 0x020b;
    /// Target error.
    pub const TARGET_ERROR: u16 = 0x0300;
    /// Service unavailable.
    pub const UNAVAILABLE: u16 = 0x0301;
    /// Out of resources.
    pub const OUT_OF_RESOURCES: u16 = 0x0302;
}

/// Login Response (RFC 7143 11.13).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoginResponse {
    /// T: the target agrees to go to `next`.
    pub transit: bool,
    /// C: this text goes on in the next PDU.
    pub continues: bool,
    /// CSG.
    pub current: Stage,
    /// NSG, meaningful with T.
    pub next: Stage,
    /// Highest version supported.
    pub version_max: u8,
    /// Version in force.
    pub version_active: u8,
    /// As in the request.
    pub isid: [u8; 6],
    /// Target session handle, in the last response of a login.
    pub tsih: u16,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// Counters.
    pub counters: Counters,
    /// One of `login_status`.
    pub status: u16,
    /// Length of the text, bytes.
    pub data_len: u32,
}

impl LoginResponse {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            transit: b[1] & FINAL != 0,
            continues: b[1] & CONTINUE != 0,
            current: Stage::of(b[1] >> 2),
            next: Stage::of(b[1]),
            version_max: b[2],
            version_active: b[3],
            isid: [b[8], b[9], b[10], b[11], b[12], b[13]],
            tsih: get16(b, 14),
            task_tag: task_tag(b),
            counters: Counters::get(b),
            status: get16(b, 36),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let flags = bit(self.transit, FINAL)
            | bit(self.continues, CONTINUE)
            | self.current.bits() << 2
            | if self.transit { self.next.bits() } else { 0 };
        let mut b = start(opcode::LOGIN_RESPONSE, flags);
        (b[2], b[3]) = (self.version_max, self.version_active);
        set_data_len(&mut b, self.data_len);
        b[8..14].copy_from_slice(&self.isid);
        put16(&mut b, 14, self.tsih);
        put32(&mut b, 16, self.task_tag);
        self.counters.put(&mut b);
        put16(&mut b, 36, self.status);
        b
    }
}

/// Logout Request (RFC 7143 11.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogoutRequest {
    /// Not counted by CmdSN.
    pub immediate: bool,
    /// 0 close the session, 1 close the connection, 2 remove the connection for recovery.
    pub reason: u8,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// The connection that is meant (reasons 1 and 2).
    pub cid: u16,
    /// CmdSN.
    pub cmd_sn: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
}

impl LogoutRequest {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            immediate: is_immediate(b),
            reason: b[1] & 0x7f,
            task_tag: task_tag(b),
            cid: get16(b, 20),
            cmd_sn: get32(b, 24),
            exp_stat_sn: get32(b, 28),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let first = opcode::LOGOUT_REQUEST | immediate_bit(self.immediate);
        let mut b = start(first, FINAL | self.reason & 0x7f);
        put32(&mut b, 16, self.task_tag);
        put16(&mut b, 20, self.cid);
        put32(&mut b, 24, self.cmd_sn);
        put32(&mut b, 28, self.exp_stat_sn);
        b
    }
}

/// Logout Response (RFC 7143 11.15).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogoutResponse {
    /// 0 closed, 1 no such connection, 2 recovery not supported, 3 cleanup failed.
    pub response: u8,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// Counters.
    pub counters: Counters,
    /// Seconds to wait before reconnecting.
    pub time2wait: u16,
    /// Seconds for which tasks are kept.
    pub time2retain: u16,
}

impl LogoutResponse {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            response: b[2],
            task_tag: task_tag(b),
            counters: Counters::get(b),
            time2wait: get16(b, 40),
            time2retain: get16(b, 42),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::LOGOUT_RESPONSE, FINAL);
        b[2] = self.response;
        put32(&mut b, 16, self.task_tag);
        self.counters.put(&mut b);
        put16(&mut b, 40, self.time2wait);
        put16(&mut b, 42, self.time2retain);
        b
    }
}

/// SNACK Request (RFC 7143 11.16).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Snack {
    /// 0 data or R2T, 1 status, 2 DataACK, 3 R-Data.
    pub kind: u8,
    /// Logical unit number, for DataACK.
    pub lun: u64,
    /// Initiator Task Tag.
    pub task_tag: u32,
    /// Target Transfer Tag or SNACK Tag.
    pub transfer_tag: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
    /// First missing number.
    pub begin: u32,
    /// How many are missing; 0 for all.
    pub run: u32,
}

impl Snack {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            kind: b[1] & 0x0f,
            lun: get64(b, 8),
            task_tag: task_tag(b),
            transfer_tag: get32(b, 20),
            exp_stat_sn: get32(b, 28),
            begin: get32(b, 40),
            run: get32(b, 44),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::SNACK, FINAL | self.kind & 0x0f);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.transfer_tag);
        put32(&mut b, 28, self.exp_stat_sn);
        put32(&mut b, 40, self.begin);
        put32(&mut b, 44, self.run);
        b
    }
}

/// Reasons of a Reject (RFC 7143 11.17.1).
pub mod reject_reason {
    /// Data (payload) digest error.
    pub const DATA_DIGEST: u8 = 0x02;
    /// SNACK reject.
    pub const SNACK: u8 = 0x03;
    /// Protocol error.
    pub const PROTOCOL_ERROR: u8 = 0x04;
    /// Command not supported.
    pub const NOT_SUPPORTED: u8 = 0x05;
    /// Immediate command reject: too many immediate commands.
    pub const TOO_MANY_IMMEDIATE: u8 = 0x06;
    /// Task in progress.
    pub const TASK_IN_PROGRESS: u8 = 0x07;
    /// Invalid data acknowledgement.
    pub const INVALID_DATA_ACK: u8 = 0x08;
    /// Invalid PDU field.
    pub const INVALID_FIELD: u8 = 0x09;
    /// Long operation reject: out of resources.
    pub const OUT_OF_RESOURCES: u8 = 0x0a;
    /// Waiting for logout.
    pub const WAITING_FOR_LOGOUT: u8 = 0x0c;
}

/// Reject (RFC 7143 11.17); the data segment is the rejected header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reject {
    /// One of `reject_reason`.
    pub reason: u8,
    /// Counters.
    pub counters: Counters,
    /// DataSN or R2TSN, for rejected data.
    pub data_sn: u32,
    /// Length of the data segment, bytes.
    pub data_len: u32,
}

impl Reject {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self { reason: b[2], counters: Counters::get(b), data_sn: get32(b, 36), data_len: data_len(b) }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::REJECT, FINAL);
        b[2] = self.reason;
        set_data_len(&mut b, self.data_len);
        put32(&mut b, 16, RESERVED_TAG);
        self.counters.put(&mut b);
        put32(&mut b, 36, self.data_sn);
        b
    }
}

/// NOP-Out (RFC 7143 11.18).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NopOut {
    /// Not counted by CmdSN.
    pub immediate: bool,
    /// Logical unit number, as in the NOP-In answered.
    pub lun: u64,
    /// `RESERVED_TAG`: no answer wanted.
    pub task_tag: u32,
    /// The tag of the NOP-In answered, or `RESERVED_TAG`.
    pub transfer_tag: u32,
    /// CmdSN.
    pub cmd_sn: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
    /// Length of the ping data, bytes.
    pub data_len: u32,
}

impl NopOut {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            immediate: is_immediate(b),
            lun: get64(b, 8),
            task_tag: task_tag(b),
            transfer_tag: get32(b, 20),
            cmd_sn: get32(b, 24),
            exp_stat_sn: get32(b, 28),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::NOP_OUT | immediate_bit(self.immediate), FINAL);
        set_data_len(&mut b, self.data_len);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.transfer_tag);
        put32(&mut b, 24, self.cmd_sn);
        put32(&mut b, 28, self.exp_stat_sn);
        b
    }
}

/// NOP-In (RFC 7143 11.19).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NopIn {
    /// Logical unit number, comes back in the answer.
    pub lun: u64,
    /// The tag of the NOP-Out answered, or `RESERVED_TAG`.
    pub task_tag: u32,
    /// `RESERVED_TAG`: no answer wanted.
    pub transfer_tag: u32,
    /// Counters.
    pub counters: Counters,
    /// Length of the ping data, bytes.
    pub data_len: u32,
}

impl NopIn {
    /// Reads a header.
    pub fn decode(b: &Bhs) -> Self {
        Self {
            lun: get64(b, 8),
            task_tag: task_tag(b),
            transfer_tag: get32(b, 20),
            counters: Counters::get(b),
            data_len: data_len(b),
        }
    }
    /// Makes the header.
    pub fn encode(&self) -> Bhs {
        let mut b = start(opcode::NOP_IN, FINAL);
        set_data_len(&mut b, self.data_len);
        put64(&mut b, 8, self.lun);
        put32(&mut b, 16, self.task_tag);
        put32(&mut b, 20, self.transfer_tag);
        self.counters.put(&mut b);
        b
    }
}

/// What an initiator sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant is the PDU of its name")]
pub enum Request {
    NopOut(NopOut),
    ScsiCommand(ScsiCommand),
    TaskManagement(TaskManagementRequest),
    Login(LoginRequest),
    Text(TextRequest),
    DataOut(DataOut),
    Logout(LogoutRequest),
    Snack(Snack),
}

impl Request {
    /// Reads a header that came from an initiator.
    pub fn decode(b: &Bhs) -> Result<Self, BadPdu> {
        Ok(match opcode_of(b) {
            opcode::NOP_OUT => Self::NopOut(NopOut::decode(b)),
            opcode::SCSI_COMMAND => Self::ScsiCommand(ScsiCommand::decode(b)),
            opcode::TASK_MANAGEMENT_REQUEST => Self::TaskManagement(TaskManagementRequest::decode(b)),
            opcode::LOGIN_REQUEST => Self::Login(LoginRequest::decode(b)),
            opcode::TEXT_REQUEST => Self::Text(TextRequest::decode(b)),
            opcode::DATA_OUT => Self::DataOut(DataOut::decode(b)),
            opcode::LOGOUT_REQUEST => Self::Logout(LogoutRequest::decode(b)),
            opcode::SNACK => Self::Snack(Snack::decode(b)),
            other => return Err(BadPdu::Opcode(other)),
        })
    }
}

/// What a target sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant is the PDU of its name")]
pub enum Response {
    NopIn(NopIn),
    ScsiResponse(ScsiResponse),
    TaskManagement(TaskManagementResponse),
    Login(LoginResponse),
    Text(TextResponse),
    DataIn(DataIn),
    Logout(LogoutResponse),
    R2t(R2t),
    AsyncMessage(AsyncMessage),
    Reject(Reject),
}

impl Response {
    /// Reads a header that came from a target.
    pub fn decode(b: &Bhs) -> Result<Self, BadPdu> {
        Ok(match opcode_of(b) {
            opcode::NOP_IN => Self::NopIn(NopIn::decode(b)),
            opcode::SCSI_RESPONSE => Self::ScsiResponse(ScsiResponse::decode(b)),
            opcode::TASK_MANAGEMENT_RESPONSE => Self::TaskManagement(TaskManagementResponse::decode(b)),
            opcode::LOGIN_RESPONSE => Self::Login(LoginResponse::decode(b)),
            opcode::TEXT_RESPONSE => Self::Text(TextResponse::decode(b)),
            opcode::DATA_IN => Self::DataIn(DataIn::decode(b)),
            opcode::LOGOUT_RESPONSE => Self::Logout(LogoutResponse::decode(b)),
            opcode::R2T => Self::R2t(R2t::decode(b)),
            opcode::ASYNC_MESSAGE => Self::AsyncMessage(AsyncMessage::decode(b)),
            opcode::REJECT => Self::Reject(Reject::decode(b)),
            other => return Err(BadPdu::Opcode(other)),
        })
    }
}

/// One additional header segment (RFC 7143 11.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahs<'a> {
    /// 1 extended CDB, 2 bidirectional read length.
    pub kind: u8,
    /// Its bytes after AHSType, without padding; the first is reserved or specific.
    pub bytes: &'a [u8],
}

/// The additional header segments of a PDU. Ends at the first whose length does not fit, with an error.
pub fn ahs_segments(mut bytes: &[u8]) -> impl Iterator<Item = Result<Ahs<'_>, BadAhs>> {
    core::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let segment = (|| {
            let (head, rest) = bytes.split_first_chunk::<3>()?;
            let len = usize::from(u16::from_be_bytes([head[0], head[1]]));
            // AHSLength counts what follows AHSType; the whole is padded to words.
            let whole = (3 + len).next_multiple_of(4);
            (len > 0 && whole <= bytes.len()).then(|| (Ahs { kind: head[2], bytes: &rest[..len] }, whole))
        })();
        match segment {
            Some((ahs, whole)) => {
                bytes = &bytes[whole..];
                Some(Ok(ahs))
            }
            None => {
                bytes = &[];
                Some(Err(BadAhs))
            }
        }
    })
}

/// An additional header segment is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadAhs;

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn every_request_survives_the_wire() {
        let mut prng = Prng::new(1);
        for opcode in [0u8, 1, 2, 3, 4, 5, 6, 0x10] {
            for _ in 0..200 {
                let mut b = [0; BHS_BYTES];
                prng.fill(&mut b);
                b[0] = opcode;
                let once = Request::decode(&b).expect("known opcode");
                let bytes = match once {
                    Request::NopOut(p) => p.encode(),
                    Request::ScsiCommand(p) => p.encode(),
                    Request::TaskManagement(p) => p.encode(),
                    Request::Login(mut p) => {
                        p.transit = true;
                        let again = LoginRequest::decode(&p.encode());
                        assert_eq!(again, p);
                        continue;
                    }
                    Request::Text(p) => p.encode(),
                    Request::DataOut(p) => p.encode(),
                    Request::Logout(p) => p.encode(),
                    Request::Snack(p) => p.encode(),
                };
                assert_eq!(Request::decode(&bytes), Ok(once));
            }
        }
    }

    #[test]
    fn every_response_survives_the_wire() {
        let mut prng = Prng::new(2);
        for opcode in [0x20u8, 0x21, 0x22, 0x24, 0x26, 0x31, 0x32, 0x3f] {
            for _ in 0..200 {
                let mut b = [0; BHS_BYTES];
                prng.fill(&mut b);
                b[0] = opcode;
                let once = Response::decode(&b).expect("known opcode");
                let bytes = match once {
                    Response::NopIn(p) => p.encode(),
                    Response::ScsiResponse(p) => p.encode(),
                    Response::TaskManagement(p) => p.encode(),
                    Response::Text(p) => p.encode(),
                    Response::Logout(p) => p.encode(),
                    Response::R2t(p) => p.encode(),
                    Response::AsyncMessage(p) => p.encode(),
                    Response::Reject(p) => p.encode(),
                    Response::DataIn(_) | Response::Login(_) => unreachable!("not in the list"),
                };
                assert_eq!(Response::decode(&bytes), Ok(once));
            }
        }
        let p = DataIn { last: true, status: Some(8), residual: Residual::Underflow(9), ..DataIn::default() };
        assert_eq!(DataIn::decode(&p.encode()), p);
        let p = LoginResponse {
            transit: true,
            next: Stage::FullFeature,
            status: 0x201,
            ..LoginResponse::default()
        };
        assert_eq!(LoginResponse::decode(&p.encode()), p);
    }

    #[test]
    fn a_command_lies_in_its_bytes_as_the_rfc_draws_it() {
        let p = ScsiCommand {
            immediate: true,
            last: true,
            read: true,
            write: false,
            attribute: 1,
            lun: 0x0001_0000_0000_0000,
            task_tag: 0x1122_3344,
            expected: 512,
            cmd_sn: 7,
            exp_stat_sn: 9,
            cdb: [0x28, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            data_len: 0x010203,
        };
        let b = p.encode();
        assert_eq!(&b[..12], &[0x41, 0xc1, 0, 0, 0, 1, 2, 3, 0, 1, 0, 0]);
        assert_eq!(&b[16..34], &[0x11, 0x22, 0x33, 0x44, 0, 0, 2, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x28, 0]);
    }

    #[test]
    fn opcodes_of_the_other_direction_are_refused() {
        let mut b = [0; BHS_BYTES];
        for op in 0..64u8 {
            b[0] = op;
            let request = matches!(op, 0..=6 | 0x10);
            let response = matches!(op, 0x20..=0x26 | 0x31 | 0x32 | 0x3f);
            assert_eq!(Request::decode(&b).is_ok(), request, "{op:#x}");
            assert_eq!(Response::decode(&b).is_ok(), response, "{op:#x}");
        }
    }

    #[test]
    fn the_digest_of_the_rfcs_example_is_right() {
        // RFC 7143 A.4: an iSCSI read command PDU.
        let mut b = [0u8; BHS_BYTES];
        b[..2].copy_from_slice(&[0x01, 0xc0]);
        b[16] = 0x14;
        b[22] = 0x04;
        b[27] = 0x14;
        b[31] = 0x18;
        b[32] = 0x28;
        b[40] = 0x02;
        assert_eq!(header_digest(&b, &[]), [0x56, 0x3a, 0x96, 0xd9]);
    }

    #[test]
    fn padding_and_digests_follow_the_data() {
        let f = Framing { header_digest: true, data_digest: true };
        let mut out = vec![];
        f.put(&mut out, NopIn::default().encode(), b"hello");
        assert_eq!(out.len(), f.header_len(0) + 5 + f.trailer_len(5));
        assert_eq!(out.len(), 52 + 8 + 4);
        assert_eq!(out[60..], crc32c(b"hello\0\0\0").to_le_bytes());
        assert_eq!((padding(0), padding(1), padding(4)), (0, 3, 0));
    }

    #[test]
    fn cut_off_additional_headers_are_an_error() {
        let whole = [0, 5, 2, 0, 0, 0, 2, 0, 0, 3, 1, 0, 9, 9, 0, 0];
        let all: Vec<_> = ahs_segments(&whole).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], Ok(Ahs { kind: 2, bytes: &[0, 0, 0, 2, 0] }));
        assert_eq!(ahs_segments(&whole[..12]).last(), Some(Err(BadAhs)));
        assert_eq!(ahs_segments(&[0, 0, 1, 0]).last(), Some(Err(BadAhs)));
        assert_eq!(ahs_segments(&[0xff, 0xff]).last(), Some(Err(BadAhs)));
    }
}
