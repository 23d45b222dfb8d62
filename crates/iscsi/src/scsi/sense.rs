//! Sense data: why a command ended in CHECK CONDITION (SPC-4 4.5).

use base::Status;

/// Sense keys (SPC-4 4.5.6).
pub mod key {
    #![allow(missing_docs, reason = "each constant is the sense key of its name")]
    pub const NO_SENSE: u8 = 0x0;
    pub const NOT_READY: u8 = 0x2;
    pub const MEDIUM_ERROR: u8 = 0x3;
    pub const HARDWARE_ERROR: u8 = 0x4;
    pub const ILLEGAL_REQUEST: u8 = 0x5;
    pub const UNIT_ATTENTION: u8 = 0x6;
    pub const DATA_PROTECT: u8 = 0x7;
    pub const ABORTED_COMMAND: u8 = 0xb;
    pub const MISCOMPARE: u8 = 0xe;
}

/// Length of fixed format sense data as we send it, bytes.
pub const FIXED_BYTES: usize = 18;

/// One sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sense {
    /// Sense key.
    pub key: u8,
    /// Additional sense code.
    pub asc: u8,
    /// Additional sense code qualifier.
    pub ascq: u8,
    /// INFORMATION.
    pub information: Option<u32>,
    /// The byte at fault, of the CDB (true) or of the parameter list (false) (SPC-4 4.5.2.4.2).
    pub field: Option<(bool, u16)>,
}

impl Sense {
    /// A sense without details.
    pub const fn new(key: u8, asc: u8, ascq: u8) -> Self {
        Self { key, asc, ascq, information: None, field: None }
    }
    /// Nothing to report.
    pub const NONE: Self = Self::new(key::NO_SENSE, 0, 0);
    /// INVALID COMMAND OPERATION CODE.
    pub const INVALID_OPCODE: Self =
        Self { field: Some((true, 0)), ..Self::new(key::ILLEGAL_REQUEST, 0x20, 0) };
    /// LOGICAL BLOCK ADDRESS OUT OF RANGE.
    pub const OUT_OF_RANGE: Self = Self::new(key::ILLEGAL_REQUEST, 0x21, 0);
    /// LOGICAL UNIT NOT SUPPORTED.
    pub const NO_UNIT: Self = Self::new(key::ILLEGAL_REQUEST, 0x25, 0);
    /// PARAMETER LIST LENGTH ERROR.
    pub const LIST_LENGTH: Self = Self::new(key::ILLEGAL_REQUEST, 0x1a, 0);
    /// SAVING PARAMETERS NOT SUPPORTED.
    pub const NO_SAVING: Self = Self::new(key::ILLEGAL_REQUEST, 0x39, 0);
    /// LOGICAL UNIT IS IN PROCESS OF BECOMING READY.
    pub const BECOMING_READY: Self = Self::new(key::NOT_READY, 0x04, 0x01);
    /// POWER ON, RESET, OR BUS DEVICE RESET OCCURRED.
    pub const POWER_ON: Self = Self::new(key::UNIT_ATTENTION, 0x29, 0);
    /// BUS DEVICE RESET FUNCTION OCCURRED.
    pub const RESET: Self = Self::new(key::UNIT_ATTENTION, 0x29, 0x03);
    /// ASYMMETRIC ACCESS STATE CHANGED (SPC-4 5.15.2.3).
    pub const ACCESS_CHANGED: Self = Self::new(key::UNIT_ATTENTION, 0x2a, 0x06);
    /// CAPACITY DATA HAS CHANGED.
    pub const CAPACITY_CHANGED: Self = Self::new(key::UNIT_ATTENTION, 0x2a, 0x09);
    /// REPORTED LUNS DATA HAS CHANGED.
    pub const LUNS_CHANGED: Self = Self::new(key::UNIT_ATTENTION, 0x3f, 0x0e);
    /// PROTOCOL SERVICE CRC ERROR (RFC 7143 11.4.7.2).
    pub const CRC: Self = Self::new(key::ABORTED_COMMAND, 0x47, 0x05);
    /// UNEXPECTED UNSOLICITED DATA (RFC 7143 11.4.7.2).
    pub const UNEXPECTED_DATA: Self = Self::new(key::ABORTED_COMMAND, 0x0c, 0x0c);
    /// NOT ENOUGH UNSOLICITED DATA (RFC 7143 11.4.7.2).
    pub const NOT_ENOUGH_DATA: Self = Self::new(key::ABORTED_COMMAND, 0x0c, 0x0d);

    /// Aborted by the target, not by the host: the host tries again.
    pub const ABORTED: Self = Self::new(key::ABORTED_COMMAND, 0, 0);

    /// INVALID FIELD IN CDB, at byte `at`.
    pub const fn invalid_cdb(at: u16) -> Self {
        Self { field: Some((true, at)), ..Self::new(key::ILLEGAL_REQUEST, 0x24, 0) }
    }
    /// INVALID FIELD IN PARAMETER LIST, at byte `at`.
    pub const fn invalid_list(at: u16) -> Self {
        Self { field: Some((false, at)), ..Self::new(key::ILLEGAL_REQUEST, 0x26, 0) }
    }

    /// What a block command's end means; None if it is good. `write`: it was writing.
    pub fn of(status: Status, write: bool) -> Option<Self> {
        Some(match status {
            Status::Good => return None,
            Status::OutOfRange => Self::OUT_OF_RANGE,
            Status::Medium if write => Self::new(key::MEDIUM_ERROR, 0x0c, 0),
            Status::Medium => Self::new(key::MEDIUM_ERROR, 0x11, 0),
            Status::Miscompare { at } => {
                Self { information: Some(at), ..Self::new(key::MISCOMPARE, 0x1d, 0) }
            }
            Status::NotReady => Self::BECOMING_READY,
            Status::NoVolume => Self::NO_UNIT,
            Status::Aborted => Self::ABORTED,
            // SPACE ALLOCATION FAILED WRITE PROTECT: hosts take it as "no space", not as a bad disk.
            Status::NoSpace => Self::new(key::DATA_PROTECT, 0x27, 7),
            Status::WriteProtected => Self::new(key::DATA_PROTECT, 0x27, 0),
            Status::Internal | Status::Withheld | Status::Moved => Self::new(key::HARDWARE_ERROR, 0x44, 0),
        })
    }

    /// Fixed format (SPC-4 4.5.3): what D_SENSE 0 promises.
    pub fn fixed(&self) -> [u8; FIXED_BYTES] {
        let mut b = [0; FIXED_BYTES];
        b[0] = 0x70;
        b[2] = self.key;
        if let Some(information) = self.information {
            b[0] |= 0x80;
            b[3..7].copy_from_slice(&information.to_be_bytes());
        }
        b[7] = (FIXED_BYTES - 8) as u8;
        b[12] = self.asc;
        b[13] = self.ascq;
        b[15..18].copy_from_slice(&self.specific());
        b
    }

    /// Descriptor format (SPC-4 4.5.2), for hosts that ask for it; appended to `out`.
    pub fn descriptors(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0x72, self.key, self.asc, self.ascq, 0, 0, 0, 0]);
        if let Some(information) = self.information {
            out.extend_from_slice(&[0x00, 0x0a, 0x80, 0]);
            out.extend_from_slice(&u64::from(information).to_be_bytes());
        }
        if self.field.is_some() {
            let [a, b, c] = self.specific();
            out.extend_from_slice(&[0x02, 0x06, 0, 0, a, b, c, 0]);
        }
        out[start + 7] = (out.len() - start - 8) as u8;
    }

    fn specific(&self) -> [u8; 3] {
        match self.field {
            Some((cdb, at)) => {
                let [high, low] = at.to_be_bytes();
                [0x80 | if cdb { 0x40 } else { 0 }, high, low]
            }
            None => [0; 3],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_sense_says_where_the_fault_is() {
        let b = Sense::invalid_cdb(2).fixed();
        assert_eq!(b, [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xc0, 0, 2]);
        let b = Sense::of(Status::Miscompare { at: 513 }, false).expect("not good").fixed();
        assert_eq!((b[0], b[2], &b[3..7], b[12]), (0xf0, 0x0e, &[0, 0, 2, 1][..], 0x1d));
    }

    #[test]
    fn descriptor_sense_carries_the_same() {
        let mut out = vec![];
        Sense::of(Status::Miscompare { at: 1 }, false).expect("not good").descriptors(&mut out);
        assert_eq!(out, [0x72, 0x0e, 0x1d, 0, 0, 0, 0, 12, 0, 10, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        out.clear();
        Sense::NO_UNIT.descriptors(&mut out);
        assert_eq!(out, [0x72, 5, 0x25, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn every_status_has_its_sense() {
        let of = |s, w| Sense::of(s, w).map(|s| (s.key, s.asc, s.ascq));
        assert_eq!(of(Status::Good, true), None);
        assert_eq!(of(Status::Medium, true), Some((3, 0x0c, 0)));
        assert_eq!(of(Status::Medium, false), Some((3, 0x11, 0)));
        assert_eq!(of(Status::NotReady, false), Some((2, 4, 1)));
        assert_eq!(of(Status::WriteProtected, true), Some((7, 0x27, 0)));
        assert_eq!(of(Status::Internal, true), Some((4, 0x44, 0)));
        assert_eq!(of(Status::NoVolume, true), Some((5, 0x25, 0)));
    }
}
