//! What a target sends: one struct per PDU (RFC 7143 11).

use super::*;

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
        b[2] = self.response;
        b[3] = self.status;
        set_data_len(&mut b, self.data_len);
        put32(&mut b, 16, self.task_tag);
        self.counters.put(&mut b);
        put32(&mut b, 36, self.exp_data_sn);
        put32(&mut b, 44, self.residual.count());
        b
    }
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
        b[36] = self.event;
        b[37] = self.vendor_code;
        put16(&mut b, 38, self.parameter1);
        put16(&mut b, 40, self.parameter2);
        put16(&mut b, 42, self.parameter3);
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
        b[2] = self.version_max;
        b[3] = self.version_active;
        set_data_len(&mut b, self.data_len);
        b[8..14].copy_from_slice(&self.isid);
        put16(&mut b, 14, self.tsih);
        put32(&mut b, 16, self.task_tag);
        self.counters.put(&mut b);
        put16(&mut b, 36, self.status);
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
