//! Command descriptor blocks: which commands there are, and how their fields lie (SPC-4 4.3, SBC-3 5).

/// Operation codes.
pub mod opcode {
    #![allow(missing_docs, reason = "each constant is the command of its name")]
    pub const TEST_UNIT_READY: u8 = 0x00;
    pub const REQUEST_SENSE: u8 = 0x03;
    pub const READ_6: u8 = 0x08;
    pub const WRITE_6: u8 = 0x0a;
    pub const INQUIRY: u8 = 0x12;
    pub const MODE_SELECT_6: u8 = 0x15;
    pub const MODE_SENSE_6: u8 = 0x1a;
    pub const START_STOP_UNIT: u8 = 0x1b;
    pub const PREVENT_ALLOW_MEDIUM_REMOVAL: u8 = 0x1e;
    pub const READ_CAPACITY_10: u8 = 0x25;
    pub const READ_10: u8 = 0x28;
    pub const WRITE_10: u8 = 0x2a;
    pub const WRITE_AND_VERIFY_10: u8 = 0x2e;
    pub const VERIFY_10: u8 = 0x2f;
    pub const PRE_FETCH_10: u8 = 0x34;
    pub const SYNCHRONIZE_CACHE_10: u8 = 0x35;
    pub const WRITE_SAME_10: u8 = 0x41;
    pub const UNMAP: u8 = 0x42;
    pub const MODE_SELECT_10: u8 = 0x55;
    pub const MODE_SENSE_10: u8 = 0x5a;
    pub const READ_16: u8 = 0x88;
    pub const WRITE_16: u8 = 0x8a;
    pub const WRITE_AND_VERIFY_16: u8 = 0x8e;
    pub const VERIFY_16: u8 = 0x8f;
    pub const PRE_FETCH_16: u8 = 0x90;
    pub const SYNCHRONIZE_CACHE_16: u8 = 0x91;
    pub const WRITE_SAME_16: u8 = 0x93;
    pub const SERVICE_ACTION_IN_16: u8 = 0x9e;
    pub const REPORT_LUNS: u8 = 0xa0;
    pub const MAINTENANCE_IN: u8 = 0xa3;
    pub const READ_12: u8 = 0xa8;
    pub const WRITE_12: u8 = 0xaa;
    pub const WRITE_AND_VERIFY_12: u8 = 0xae;
    pub const VERIFY_12: u8 = 0xaf;
}

/// Service actions.
pub mod service_action {
    #![allow(missing_docs, reason = "each constant is the service action of its name")]
    pub const READ_CAPACITY_16: u8 = 0x10;
    pub const GET_LBA_STATUS: u8 = 0x12;
    pub const REPORT_TARGET_PORT_GROUPS: u8 = 0x0a;
    pub const REPORT_SUPPORTED_OPERATION_CODES: u8 = 0x0c;
    pub const REPORT_SUPPORTED_TASK_MANAGEMENT_FUNCTIONS: u8 = 0x0d;
}

/// One supported command: what REPORT SUPPORTED OPERATION CODES says of it (SPC-4 6.35).
#[derive(Clone, Copy, Debug)]
pub struct Supported {
    /// Operation code.
    pub opcode: u8,
    /// Service action, for those that have one.
    pub service_action: Option<u8>,
    /// CDB usage data: a one for each bit that is looked at; its length is the CDB's.
    pub usage: &'static [u8],
}

const fn plain(opcode: u8, usage: &'static [u8]) -> Supported {
    Supported { opcode, service_action: None, usage }
}
const fn action(opcode: u8, service_action: u8, usage: &'static [u8]) -> Supported {
    Supported { opcode, service_action: Some(service_action), usage }
}

const ALL4: u8 = 0xff;
/// CONTROL: only NACA is looked at.
const CONTROL: u8 = 0x04;

/// Every command that we carry out. What is not here ends in INVALID COMMAND OPERATION CODE.
#[rustfmt::skip]
pub const SUPPORTED: &[Supported] = &[
    plain(opcode::TEST_UNIT_READY, &[0x00, 0, 0, 0, 0, CONTROL]),
    plain(opcode::REQUEST_SENSE, &[0x03, 0x01, 0, 0, ALL4, CONTROL]),
    plain(opcode::READ_6, &[0x08, 0x1f, ALL4, ALL4, ALL4, CONTROL]),
    plain(opcode::WRITE_6, &[0x0a, 0x1f, ALL4, ALL4, ALL4, CONTROL]),
    plain(opcode::INQUIRY, &[0x12, 0x01, ALL4, ALL4, ALL4, CONTROL]),
    plain(opcode::MODE_SELECT_6, &[0x15, 0x11, 0, 0, ALL4, CONTROL]),
    plain(opcode::MODE_SENSE_6, &[0x1a, 0x08, ALL4, ALL4, ALL4, CONTROL]),
    plain(opcode::START_STOP_UNIT, &[0x1b, 0x01, 0, 0x0f, 0xf7, CONTROL]),
    plain(opcode::PREVENT_ALLOW_MEDIUM_REMOVAL, &[0x1e, 0, 0, 0, 0x03, CONTROL]),
    plain(opcode::READ_CAPACITY_10, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, CONTROL]),
    plain(opcode::READ_10, &[0x28, 0xf8, ALL4, ALL4, ALL4, ALL4, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::WRITE_10, &[0x2a, 0xf8, ALL4, ALL4, ALL4, ALL4, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::WRITE_AND_VERIFY_10, &[0x2e, 0xf6, ALL4, ALL4, ALL4, ALL4, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::VERIFY_10, &[0x2f, 0xf6, ALL4, ALL4, ALL4, ALL4, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::PRE_FETCH_10, &[0x34, 0x02, ALL4, ALL4, ALL4, ALL4, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::SYNCHRONIZE_CACHE_10, &[0x35, 0x02, ALL4, ALL4, ALL4, ALL4, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::WRITE_SAME_10, &[0x41, 0xf8, ALL4, ALL4, ALL4, ALL4, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::UNMAP, &[0x42, 0x01, 0, 0, 0, 0, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::MODE_SELECT_10, &[0x55, 0x11, 0, 0, 0, 0, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::MODE_SENSE_10, &[0x5a, 0x18, ALL4, ALL4, 0, 0, 0, ALL4, ALL4, CONTROL]),
    plain(opcode::READ_16, &[0x88, 0xf8, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::WRITE_16, &[0x8a, 0xf8, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::WRITE_AND_VERIFY_16, &[0x8e, 0xf6, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::VERIFY_16, &[0x8f, 0xf6, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::PRE_FETCH_16, &[0x90, 0x02, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::SYNCHRONIZE_CACHE_16, &[0x91, 0x02, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::WRITE_SAME_16, &[0x93, 0xf9, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    action(opcode::SERVICE_ACTION_IN_16, service_action::READ_CAPACITY_16,
        &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    action(opcode::SERVICE_ACTION_IN_16, service_action::GET_LBA_STATUS,
        &[0x9e, 0x12, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::REPORT_LUNS, &[0xa0, 0, ALL4, 0, 0, 0, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    action(opcode::MAINTENANCE_IN, service_action::REPORT_TARGET_PORT_GROUPS,
        &[0xa3, 0xea, 0, 0, 0, 0, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    action(opcode::MAINTENANCE_IN, service_action::REPORT_SUPPORTED_OPERATION_CODES,
        &[0xa3, 0x0c, 0x87, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    action(opcode::MAINTENANCE_IN, service_action::REPORT_SUPPORTED_TASK_MANAGEMENT_FUNCTIONS,
        &[0xa3, 0x0d, 0x80, 0, 0, 0, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::READ_12, &[0xa8, 0xf8, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::WRITE_12, &[0xaa, 0xf8, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::WRITE_AND_VERIFY_12, &[0xae, 0xf6, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
    plain(opcode::VERIFY_12, &[0xaf, 0xf6, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, ALL4, 0, CONTROL]),
];

/// A CDB with the reading of its fields.
#[derive(Clone, Copy, Debug)]
pub struct Cdb<'a>(pub &'a [u8; 16]);

impl Cdb<'_> {
    /// Operation code.
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }
    /// Service action of the commands that have one in byte 1.
    pub fn service_action(&self) -> u8 {
        self.0[1] & 0x1f
    }
    /// Length by the operation code's group (SPC-4 4.2.5.1); 0 for the groups without a fixed length.
    pub fn len(&self) -> usize {
        match self.0[0] >> 5 {
            0 => 6,
            1 | 2 => 10,
            4 => 16,
            5 => 12,
            _ => 0,
        }
    }
    /// Whether the group has no fixed length.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Two bytes.
    pub fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }
    /// Four bytes.
    pub fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) << 16 | u32::from(self.u16(at + 2))
    }
    /// Eight bytes.
    pub fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) << 32 | u64::from(self.u32(at + 4))
    }
    /// LOGICAL BLOCK ADDRESS and number of blocks of the block commands (SBC-3 5), by the CDB's length.
    pub fn range(&self) -> (u64, u64) {
        match self.len() {
            6 => {
                let at = u64::from(self.0[1] & 0x1f) << 16 | u64::from(self.u16(2));
                // SBC-3: for READ(6) and WRITE(6) zero means 256.
                (at, if self.0[4] == 0 { 256 } else { u64::from(self.0[4]) })
            }
            10 => (u64::from(self.u32(2)), u64::from(self.u16(7))),
            12 => (u64::from(self.u32(2)), u64::from(self.u32(6))),
            _ => (self.u64(2), u64::from(self.u32(10))),
        }
    }
    /// The CONTROL byte.
    pub fn control(&self) -> u8 {
        match self.len() {
            0 => 0,
            n => self.0[n - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_data_is_as_long_as_the_cdb_and_begins_with_the_opcode() {
        for s in SUPPORTED {
            let mut cdb = [0; 16];
            cdb[0] = s.opcode;
            assert_eq!(s.usage.len(), Cdb(&cdb).len(), "{:#x}", s.opcode);
            assert_eq!(s.usage[0], s.opcode);
            if let Some(action) = s.service_action {
                assert_eq!(s.usage[1] & 0x1f & action, action);
            }
        }
    }

    #[test]
    fn ranges_are_read_by_length() {
        let of = |bytes: &[u8]| {
            let mut cdb = [0; 16];
            cdb[..bytes.len()].copy_from_slice(bytes);
            Cdb(&cdb).range()
        };
        assert_eq!(of(&[0x08, 0xff, 1, 2, 0, 0]), (0x1f_0102, 256));
        assert_eq!(of(&[0x28, 0, 1, 2, 3, 4, 0, 5, 6, 0]), (0x0102_0304, 0x0506));
        assert_eq!(of(&[0xa8, 0, 1, 2, 3, 4, 0, 1, 0, 0, 0, 0]), (0x0102_0304, 0x1_0000));
        assert_eq!(of(&[0x88, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0]), (1 << 56 | 2, 7));
    }
}
