//! The SCSI layer: what a CDB asks of a logical unit, and how it is answered (SPC-4, SBC-3, SAM-5).
//!
//! Pure: a CDB and a description of the unit go in, `Work` comes out. It does not know PDUs, tasks,
//! buffers or time. Answers with data are written into a scratch buffer of the caller.

pub mod cdb;
pub mod commands;
pub mod inquiry;
pub mod modes;
pub mod sense;

pub use commands::{Asked, Unit, Work, plan};
pub use sense::Sense;

/// SCSI status codes (SAM-5 5.3.1).
pub mod status {
    /// GOOD.
    pub const GOOD: u8 = 0x00;
    /// CHECK CONDITION.
    pub const CHECK_CONDITION: u8 = 0x02;
    /// CONDITION MET.
    pub const CONDITION_MET: u8 = 0x04;
    /// BUSY.
    pub const BUSY: u8 = 0x08;
    /// RESERVATION CONFLICT.
    pub const RESERVATION_CONFLICT: u8 = 0x18;
    /// TASK SET FULL.
    pub const TASK_SET_FULL: u8 = 0x28;
    /// TASK ABORTED.
    pub const TASK_ABORTED: u8 = 0x40;
}

/// A logical unit number of eight bytes as one of ours (SAM-5 4.7): peripheral or flat addressing, first
/// level only. A peripheral address on another bus is taken as a flat one, since there are no buses here
/// and libiscsi writes the LUN of its URL so, even from 256 on. None for what cannot name a unit here.
pub fn lun_of(field: u64) -> Option<u16> {
    if field & 0x0000_ffff_ffff_ffff != 0 {
        return None;
    }
    let first = (field >> 48) as u16;
    match first >> 14 {
        // Peripheral device addressing.
        0 => Some(first),
        // Flat space addressing.
        1 => Some(first & 0x3fff),
        _ => None,
    }
}

/// The eight bytes of a logical unit number: flat addressing from 256 on.
pub fn lun_field(lun: u16) -> u64 {
    let first = if lun < 256 { lun } else { 0x4000 | lun & 0x3fff };
    u64::from(first) << 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luns_survive_both_addressing_methods() {
        for lun in [0, 1, 255, 256, 257, 16383] {
            assert_eq!(lun_of(lun_field(lun)), Some(lun));
        }
        assert_eq!(lun_of(0x4001 << 48), Some(1));
        assert_eq!(lun_of(0x012c << 48), Some(300));
        assert_eq!(lun_field(256), 0x4100 << 48);
    }

    #[test]
    fn luns_of_other_methods_and_levels_name_nothing() {
        for bad in [0xc101 << 48, 0x8000 << 48, 1 << 32, 1] {
            assert_eq!(lun_of(bad), None, "{bad:#x}");
        }
    }
}
