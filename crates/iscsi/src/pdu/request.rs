//! What an initiator sends: one struct per PDU (RFC 7143 11).

use super::*;

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
    pub(super) fn of(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Security,
            1 => Self::Operational,
            2 => Self::Reserved,
            _ => Self::FullFeature,
        }
    }
    pub(super) fn bits(self) -> u8 {
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
        b[2] = self.version_max;
        b[3] = self.version_min;
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
