//! PDUs on the wire (RFC 7143 11): the basic header segment of each, additional headers, padding, digests.
//!
//! A PDU is `BHS (48) | AHS | header digest | data segment | padding | data digest`. A struct here is one
//! BHS; `decode` reads the fields that its sender may set. The machine checks the values, except for those that
//! make the rest of the stream unreadable.

mod request;
mod response;

pub use request::*;
pub use response::*;

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
    let crc = crc32c(bhs);
    if ahs.is_empty() { crc } else { crc32c_append(crc, ahs) }.to_le_bytes()
}
/// The data digest over data and its padding, as sent.
pub fn data_digest(data: &[u8]) -> [u8; 4] {
    data_digest_of(crc32c(data), data.len() as u32)
}
/// The data digest whose data has the CRC32C `crc` and is `len` bytes long: adds the (zero) padding.
pub fn data_digest_of(crc: u32, len: u32) -> [u8; 4] {
    match padding(len) {
        0 => crc,
        pad => crc32c_append(crc, &[0; 3][..pad as usize]),
    }
    .to_le_bytes()
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
    b[0] = opcode;
    b[1] = flags;
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
