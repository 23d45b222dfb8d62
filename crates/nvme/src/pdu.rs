//! NVMe/TCP protocol data units (NVMe/TCP 3.6.2), read and written.
//!
//! Reading: [`Decoder::push`] collects one PDU's header from any pieces, checks it, and says how many
//! bytes of data follow. The caller takes the data (and the data digest, with [`DigestReader`]) where it
//! wants it and then pushes the next header. Never more than one header (at most 132 bytes) is kept.
//! Writing: the functions of [`encode`] give a header ready to be sent; data and data digest follow it.

use crate::spec::{Cqe, Sqe};
use base::NvmeFault;
use base::crc::crc32c;
use core::ops::Deref;
use zerocopy::{FromBytes, IntoBytes};

/// Values of PDU-Type.
pub mod kind {
    /// Initialize Connection Request.
    pub const IC_REQ: u8 = 0x00;
    /// Initialize Connection Response.
    pub const IC_RESP: u8 = 0x01;
    /// Host to Controller Terminate Connection Request.
    pub const H2C_TERM: u8 = 0x02;
    /// Controller to Host Terminate Connection Request.
    pub const C2H_TERM: u8 = 0x03;
    /// Command Capsule.
    pub const COMMAND: u8 = 0x04;
    /// Response Capsule.
    pub const RESPONSE: u8 = 0x05;
    /// Host to Controller Data Transfer.
    pub const H2C_DATA: u8 = 0x06;
    /// Controller to Host Data Transfer.
    pub const C2H_DATA: u8 = 0x07;
    /// Ready to Transfer.
    pub const R2T: u8 = 0x09;
}

/// Bits of FLAGS.
pub mod flag {
    /// A header digest follows the header.
    pub const HDGST: u8 = 1;
    /// A data digest follows the data.
    pub const DDGST: u8 = 2;
    /// Last data PDU of the R2T or of the read.
    pub const LAST: u8 = 4;
    /// No response capsule follows this C2HData: the command succeeded.
    pub const SUCCESS: u8 = 8;
}

/// Fatal Error Status of a TermReq (NVMe/TCP 3.6.2.4).
pub mod fes {
    /// Invalid PDU header field; FEI is the field's byte offset.
    pub const INVALID_FIELD: u16 = 1;
    /// PDU sequence error.
    pub const SEQUENCE: u16 = 2;
    /// Header digest error; FEI is the digest received.
    pub const HEADER_DIGEST: u16 = 3;
    /// Data transfer out of range.
    pub const OUT_OF_RANGE: u16 = 4;
    /// Data transfer limit exceeded (or R2T limit).
    pub const LIMIT: u16 = 5;
    /// Unsupported parameter; FEI is the field's byte offset.
    pub const UNSUPPORTED: u16 = 6;
}

/// Bytes of the common header.
pub const COMMON_BYTES: usize = 8;
/// Bytes of ICReq and ICResp.
pub const IC_BYTES: usize = 128;
/// Bytes of a TermReq's own header.
pub const TERM_BYTES: usize = 24;
/// Bytes of a header quoted in a TermReq, at most.
pub const TERM_QUOTE_MAX: usize = 128;
/// Longest HPDA and CPDA: data aligned to (31 + 1) * 4 bytes.
pub const ALIGNMENT_FIELD_MAX: u8 = 31;
/// Bytes of a command capsule's header.
pub const COMMAND_BYTES: usize = COMMON_BYTES + 64;
/// Bytes of a response capsule's header.
pub const RESPONSE_BYTES: usize = COMMON_BYTES + 16;
/// Bytes of the header of H2CData, C2HData and R2T.
pub const DATA_BYTES: usize = 24;

const DIGEST_BYTES: usize = 4;
const HEADER_MAX: usize = IC_BYTES + DIGEST_BYTES;

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receiver {
    /// The controller, from a host.
    Controller,
    /// The host, from a controller.
    Host,
}

/// Which digests ICReq and ICResp agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digests {
    /// Header digest.
    pub header: bool,
    /// Data digest.
    pub data: bool,
}

impl Digests {
    fn of(byte: u8) -> Self {
        Self { header: byte & 1 != 0, data: byte & 2 != 0 }
    }
    fn byte(self) -> u8 {
        u8::from(self.header) | u8::from(self.data) << 1
    }
}

/// Initialize Connection Request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IcReq {
    /// PDU format version: 0.
    pub pfv: u16,
    /// Host PDU data alignment, 0-based dwords: for data PDUs that the controller sends.
    pub hpda: u8,
    /// Digests that the host asks for.
    pub digests: Digests,
    /// R2Ts that one command may have outstanding, 0-based.
    pub maxr2t: u32,
}

/// Initialize Connection Response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IcResp {
    /// PDU format version: 0.
    pub pfv: u16,
    /// Controller PDU data alignment, 0-based dwords: for PDUs with data that the host sends.
    pub cpda: u8,
    /// Digests in use from here on.
    pub digests: Digests,
    /// Most bytes of data in one H2CData.
    pub maxh2cdata: u32,
}

/// What H2CData, C2HData and R2T say about their data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transfer {
    /// The command.
    pub cccid: u16,
    /// Transfer tag of the controller (H2CData and R2T).
    pub ttag: u16,
    /// Offset into the command's data, bytes.
    pub offset: u32,
    /// Length, bytes.
    pub length: u32,
}

/// A Terminate Connection Request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Term {
    /// Fatal error status, see [`fes`].
    pub fes: u16,
    /// Fatal error information.
    pub fei: u32,
}

/// A header, understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// ICReq.
    IcReq(IcReq),
    /// ICResp.
    IcResp(IcResp),
    /// H2CTermReq or C2HTermReq; the data quotes a header.
    Term(Term),
    /// A command, with its in-capsule data.
    Command(Sqe),
    /// A completion.
    Response(Cqe),
    /// H2CData or C2HData.
    Data {
        /// Which part of which command.
        transfer: Transfer,
        /// LAST_PDU.
        last: bool,
        /// SUCCESS (C2HData only).
        success: bool,
    },
    /// R2T.
    R2t(Transfer),
}

/// A header has arrived whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// What it says.
    pub header: Header,
    /// Bytes of data that follow.
    pub data: u32,
    /// A data digest follows the data.
    pub digest: bool,
}

/// The peer broke the protocol; the connection must end with a TermReq.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Fatal error status, see [`fes`].
    pub fes: u16,
    /// Fatal error information.
    pub fei: u32,
    /// What is wrong.
    pub why: NvmeFault,
}

impl Violation {
    /// A violation without further information.
    pub fn new(fes: u16, why: NvmeFault) -> Self {
        Self { fes, fei: 0, why }
    }
    /// A header's field at byte `at` is wrong.
    pub fn field(at: u32, why: NvmeFault) -> Self {
        Self { fes: fes::INVALID_FIELD, fei: at, why }
    }
}

/// What a common header says about the PDU's length.
struct Shape {
    /// Bytes of header and header digest.
    whole: usize,
    /// Bytes of padding behind them.
    pad: u32,
}

/// Collects and checks headers.
#[derive(Clone, Debug)]
pub struct Decoder {
    receiver: Receiver,
    digests: Digests,
    data_max: u32,
    alignment: u32,
    have: usize,
    need: usize,
    pad: u32,
    /// Bytes of the header that came last.
    quote: usize,
    bytes: [u8; HEADER_MAX],
}

impl Decoder {
    /// A decoder for a new connection: no digests yet; `data_max` is the most data that one PDU may carry.
    pub fn new(receiver: Receiver, data_max: u32) -> Self {
        Self {
            receiver,
            digests: Digests::default(),
            data_max,
            alignment: 4,
            have: 0,
            need: COMMON_BYTES,
            pad: 0,
            quote: 0,
            bytes: [0; HEADER_MAX],
        }
    }
    /// What ICReq and ICResp agreed on: digests, and our own HPDA or CPDA for data sent to us.
    pub fn negotiated(&mut self, digests: Digests, alignment_field: u8) {
        self.digests = digests;
        self.alignment = (u32::from(alignment_field) + 1) * 4;
    }
    /// Bytes that the header under way lacks, as far as is known.
    pub fn missing(&self) -> u32 {
        (self.need - self.have) as u32 + self.pad
    }
    /// Whether no byte of a header has come yet.
    pub fn is_empty(&self) -> bool {
        self.have == 0
    }
    /// What has come of the header that was at fault (the last one, whole or not), to be quoted in a
    /// TermReq.
    pub fn quote(&self) -> &[u8] {
        &self.bytes[..self.quote.min(TERM_QUOTE_MAX)]
    }
    /// Takes bytes of the header: how many, and the header once it is whole. Call it again with the rest
    /// as long as it takes bytes and gives None; after a header, take its data first.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(usize, Option<Incoming>), Violation> {
        if let Some(incoming) = self.plain_command(bytes) {
            return Ok((COMMAND_BYTES, Some(incoming)));
        }
        if self.have == 0
            && let Some((common, _)) = bytes.split_first_chunk()
            && let Ok(Shape { whole, pad: 0 }) = self.check_common(common)
            && let Some(header) = bytes.get(..whole)
            && let Ok(incoming) = self.finish(header)
        {
            // Nearly all headers: whole, and right. They are read where they lie; the copy is for `quote`, and
            // of one size where that can be.
            match bytes.first_chunk::<COMMAND_BYTES>() {
                Some(some) if whole <= COMMAND_BYTES => self.bytes[..COMMAND_BYTES].copy_from_slice(some),
                _ => self.bytes[..whole].copy_from_slice(header),
            }
            self.quote = whole;
            return Ok((whole, Some(incoming)));
        }
        let mut taken = 0;
        loop {
            let n = (self.need - self.have).min(bytes.len() - taken);
            self.bytes[self.have..self.have + n].copy_from_slice(&bytes[taken..taken + n]);
            self.have += n;
            self.quote = self.have;
            taken += n;
            if self.have < self.need {
                return Ok((taken, None));
            }
            if self.need == COMMON_BYTES {
                // The length is judged before anything else of the PDU is waited for.
                let common = self.bytes.first_chunk().expect("there is room for the longest header");
                Shape { whole: self.need, pad: self.pad } = self.check_common(common)?;
                continue;
            }
            break;
        }
        // Padding between header and data is skipped, never kept.
        let n = (self.pad as usize).min(bytes.len() - taken);
        self.pad -= n as u32;
        taken += n;
        if self.pad > 0 {
            return Ok((taken, None));
        }
        let incoming = self.finish(&self.bytes[..self.have])?;
        self.have = 0;
        self.need = COMMON_BYTES;
        Ok((taken, Some(incoming)))
    }

    /// A whole command capsule without digests and padding, known by its first four bytes: what comes most,
    /// by far. None: it may be one all the same, and is to be looked at in detail.
    #[inline]
    fn plain_command(&mut self, bytes: &[u8]) -> Option<Incoming> {
        const HLEN: u8 = COMMAND_BYTES as u8;
        let header = bytes.first_chunk::<COMMAND_BYTES>()?;
        let (common, sqe) = header.split_first_chunk::<COMMON_BYTES>()?;
        let data = u32_at(common, 4).checked_sub(COMMAND_BYTES as u32)?;
        let pdo = if data > 0 { HLEN } else { 0 };
        let plain = self.have == 0
            && self.receiver == Receiver::Controller
            && self.digests == Digests::default()
            && self.alignment == 4
            && common[..4] == [kind::COMMAND, 0, HLEN, pdo]
            && data <= self.data_max;
        if !plain {
            return None;
        }
        self.bytes[..COMMAND_BYTES].copy_from_slice(header);
        self.quote = COMMAND_BYTES;
        let sqe = Sqe::read_from_bytes(sqe).ok()?;
        Some(Incoming { header: Header::Command(sqe), data, digest: false })
    }

    /// Initialization and termination PDUs carry no digests (NVMe/TCP 3.3.1).
    fn header_digest(&self, kind: u8) -> bool {
        self.digests.header && !matches!(kind, kind::IC_REQ..=kind::C2H_TERM)
    }
    fn data_digest(&self, flags: u8) -> bool {
        self.digests.data && flags & flag::DDGST != 0
    }

    /// Checks the common header.
    fn check_common(&self, common: &[u8; COMMON_BYTES]) -> Result<Shape, Violation> {
        let kind = common[0];
        let (receiver, hlen) = match kind {
            kind::IC_REQ => (Receiver::Controller, IC_BYTES),
            kind::IC_RESP => (Receiver::Host, IC_BYTES),
            kind::H2C_TERM => (Receiver::Controller, TERM_BYTES),
            kind::C2H_TERM => (Receiver::Host, TERM_BYTES),
            kind::COMMAND => (Receiver::Controller, COMMAND_BYTES),
            kind::RESPONSE => (Receiver::Host, RESPONSE_BYTES),
            kind::H2C_DATA => (Receiver::Controller, DATA_BYTES),
            kind::C2H_DATA | kind::R2T => (Receiver::Host, DATA_BYTES),
            _ => return Err(Violation::field(0, NvmeFault::PduType)),
        };
        if receiver != self.receiver {
            return Err(Violation::field(0, NvmeFault::PduDirection));
        }
        if usize::from(common[2]) != hlen {
            return Err(Violation::field(2, NvmeFault::HeaderLength));
        }
        let mut flags = 0;
        if self.header_digest(kind) {
            flags |= flag::HDGST;
        }
        if common[1] & flag::HDGST != flags {
            return Err(Violation::field(1, NvmeFault::HeaderDigestFlag));
        }
        let whole = hlen + if self.header_digest(kind) { DIGEST_BYTES } else { 0 };
        let plen = u32_at(common, 4);
        let carries = matches!(kind, kind::COMMAND | kind::H2C_DATA | kind::C2H_DATA);
        let term = matches!(kind, kind::H2C_TERM | kind::C2H_TERM);
        let data_max = if term { TERM_QUOTE_MAX as u32 } else { self.data_max };
        let bare = Ok(Shape { whole, pad: 0 });
        if plen < whole as u32 {
            return Err(Violation::field(4, NvmeFault::PduShort));
        }
        if plen == whole as u32 {
            return bare;
        }
        if term {
            if plen > whole as u32 + data_max {
                return Err(Violation::field(4, NvmeFault::PduLong));
            }
            return bare;
        }
        if !carries {
            return Err(Violation::field(4, NvmeFault::PduBeyondHeader));
        }
        // NVMe/TCP 3.6.1: PDO points at the data and is a multiple of what the receiver asked for.
        let pdo = u32::from(common[3]);
        if pdo < whole as u32 || pdo > plen || !pdo.is_multiple_of(self.alignment) {
            return Err(Violation::field(3, NvmeFault::DataOffset));
        }
        if self.digests.data != (common[1] & flag::DDGST != 0) {
            return Err(Violation::field(1, NvmeFault::DataDigestFlag));
        }
        let digest = if self.data_digest(common[1]) { DIGEST_BYTES as u32 } else { 0 };
        let Some(data) = (plen - pdo).checked_sub(digest) else {
            return Err(Violation::field(4, NvmeFault::NoRoomForDigest));
        };
        if data > data_max {
            return Err(Violation::field(4, NvmeFault::PduLong));
        }
        Ok(Shape { whole, pad: pdo - whole as u32 })
    }

    /// Reads a header, whole with its digest, whose common part is right.
    fn finish(&self, b: &[u8]) -> Result<Incoming, Violation> {
        if self.header_digest(b[0]) {
            let (header, digest) = b.split_at(usize::from(b[2]));
            let received = u32_at(digest, 0);
            if crc32c(header) != received {
                return Err(Violation {
                    fes: fes::HEADER_DIGEST,
                    fei: received,
                    why: NvmeFault::HeaderDigest,
                });
            }
        }
        let (plen, whole) = (u32_at(b, 4), b.len() as u32);
        let transfer = || Transfer {
            cccid: u16_at(b, 8),
            ttag: u16_at(b, 10),
            offset: u32_at(b, 12),
            length: u32_at(b, 16),
        };
        let header = match b[0] {
            kind::IC_REQ => Header::IcReq(IcReq {
                pfv: u16_at(b, 8),
                hpda: b[10],
                digests: Digests::of(b[11]),
                maxr2t: u32_at(b, 12),
            }),
            kind::IC_RESP => Header::IcResp(IcResp {
                pfv: u16_at(b, 8),
                cpda: b[10],
                digests: Digests::of(b[11]),
                maxh2cdata: u32_at(b, 12),
            }),
            kind::H2C_TERM | kind::C2H_TERM => Header::Term(Term { fes: u16_at(b, 8), fei: u32_at(b, 10) }),
            kind::COMMAND => Header::Command(
                Sqe::read_from_bytes(&b[COMMON_BYTES..COMMAND_BYTES]).expect("64 bytes are an SQE"),
            ),
            kind::RESPONSE => Header::Response(
                Cqe::read_from_bytes(&b[COMMON_BYTES..RESPONSE_BYTES]).expect("16 bytes are a CQE"),
            ),
            kind::H2C_DATA | kind::C2H_DATA => Header::Data {
                transfer: transfer(),
                last: b[1] & flag::LAST != 0,
                success: b[1] & flag::SUCCESS != 0,
            },
            kind::R2T => Header::R2t(transfer()),
            _ => unreachable!("the type was checked with the common header"),
        };
        let (mut data, mut digest) = (plen - whole, false);
        if data > 0 && matches!(b[0], kind::COMMAND | kind::H2C_DATA | kind::C2H_DATA) {
            digest = self.data_digest(b[1]);
            data = plen - u32::from(b[3]) - if digest { DIGEST_BYTES as u32 } else { 0 };
        }
        if let Header::Data { transfer, .. } = header
            && transfer.length != data
        {
            return Err(Violation::field(16, NvmeFault::DataLength));
        }
        Ok(Incoming { header, data, digest })
    }
}

/// Collects the four bytes of a data digest.
#[derive(Clone, Copy, Debug, Default)]
pub struct DigestReader {
    have: usize,
    bytes: [u8; DIGEST_BYTES],
}

impl DigestReader {
    /// Takes bytes: how many, and the digest once it is whole (and is then ready for the next one).
    pub fn push(&mut self, bytes: &[u8]) -> (usize, Option<u32>) {
        let n = (DIGEST_BYTES - self.have).min(bytes.len());
        self.bytes[self.have..self.have + n].copy_from_slice(&bytes[..n]);
        self.have += n;
        if self.have < DIGEST_BYTES {
            return (n, None);
        }
        self.have = 0;
        (n, Some(u32::from_le_bytes(self.bytes)))
    }
}

/// The four bytes of a data digest whose CRC32C is `crc`.
pub fn digest_bytes(crc: u32) -> [u8; 4] {
    crc.to_le_bytes()
}

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}
fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// Room for any header, padding included.
const ENCODED_MAX: usize = TERM_BYTES + TERM_QUOTE_MAX;
/// Room for the header of H2CData or C2HData without padding.
const DATA_ROOM: usize = DATA_BYTES + DIGEST_BYTES;
/// Room for the header of a command capsule without padding.
const COMMAND_ROOM: usize = COMMAND_BYTES + DIGEST_BYTES;

/// A header ready to be sent, its digest and padding included, in room for `N` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<const N: usize = ENCODED_MAX> {
    bytes: [u8; N],
    len: u8,
}

impl<const N: usize> Deref for Encoded<N> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Headers to send.
pub mod encode {
    use super::*;

    fn start<const N: usize>(kind: u8, flags: u8, hlen: usize) -> Encoded<N> {
        let mut e = Encoded { bytes: [0; N], len: hlen as u8 };
        e.bytes[0] = kind;
        e.bytes[1] = flags;
        e.bytes[2] = hlen as u8;
        e
    }
    fn put<const N: usize>(e: &mut Encoded<N>, at: usize, bytes: &[u8]) {
        e.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn plen<const N: usize>(e: &mut Encoded<N>, plen: u32) {
        put(e, 4, &plen.to_le_bytes());
    }

    /// Sets PDO, PLEN and digest flags, appends header digest and padding.
    #[inline]
    fn seal<const N: usize>(e: &mut Encoded<N>, data: u32, digests: Digests, alignment_field: u8) {
        let hlen = usize::from(e.len);
        let mut len = hlen + if digests.header { DIGEST_BYTES } else { 0 };
        let mut total = len as u32;
        e.bytes[1] |= if digests.header { flag::HDGST } else { 0 };
        if data > 0 {
            len = len.next_multiple_of((usize::from(alignment_field) + 1) * 4);
            e.bytes[3] = len as u8;
            total = len as u32 + data;
            if digests.data {
                e.bytes[1] |= flag::DDGST;
                total += DIGEST_BYTES as u32;
            }
        }
        plen(e, total);
        if digests.header {
            let crc = crc32c(&e.bytes[..hlen]);
            put(e, hlen, &crc.to_le_bytes());
        }
        e.len = len as u8;
    }

    fn ic(kind: u8, pfv: u16, pda: u8, digests: Digests, last: u32) -> Encoded {
        let mut e = start(kind, 0, IC_BYTES);
        plen(&mut e, IC_BYTES as u32);
        put(&mut e, 8, &pfv.to_le_bytes());
        e.bytes[10] = pda;
        e.bytes[11] = digests.byte();
        put(&mut e, 12, &last.to_le_bytes());
        e
    }
    /// ICReq.
    pub fn ic_req(r: IcReq) -> Encoded {
        ic(kind::IC_REQ, r.pfv, r.hpda, r.digests, r.maxr2t)
    }
    /// ICResp.
    pub fn ic_resp(r: IcResp) -> Encoded {
        ic(kind::IC_RESP, r.pfv, r.cpda, r.digests, r.maxh2cdata)
    }
    /// H2CTermReq or C2HTermReq (`kind`), quoting the header at fault.
    pub fn term(kind: u8, term: Term, quote: &[u8]) -> Encoded {
        let quote = &quote[..quote.len().min(TERM_QUOTE_MAX)];
        let mut e = start(kind, 0, TERM_BYTES);
        plen(&mut e, (TERM_BYTES + quote.len()) as u32);
        put(&mut e, 8, &term.fes.to_le_bytes());
        put(&mut e, 10, &term.fei.to_le_bytes());
        put(&mut e, TERM_BYTES, quote);
        e.len = (TERM_BYTES + quote.len()) as u8;
        e
    }
    fn capsule<const N: usize>(sqe: &Sqe, data: u32, digests: Digests, cpda: u8) -> Encoded<N> {
        let mut e = start(kind::COMMAND, 0, COMMAND_BYTES);
        put(&mut e, COMMON_BYTES, sqe.as_bytes());
        seal(&mut e, data, digests, cpda);
        e
    }
    /// CapsuleCmd with `data` bytes in the capsule; CPDA as ICResp said.
    pub fn command(sqe: &Sqe, data: u32, digests: Digests, cpda: u8) -> Encoded {
        capsule(sqe, data, digests, cpda)
    }
    /// CapsuleCmd to a controller that asks for no padding.
    pub fn command_unpadded(sqe: &Sqe, data: u32, digests: Digests) -> Encoded<COMMAND_ROOM> {
        capsule(sqe, data, digests, 0)
    }
    /// A response capsule's header.
    pub type Response = Encoded<{ RESPONSE_BYTES + DIGEST_BYTES }>;

    /// CapsuleResp.
    pub fn response(cqe: &Cqe, digests: Digests) -> Response {
        let mut e = start(kind::RESPONSE, 0, RESPONSE_BYTES);
        put(&mut e, COMMON_BYTES, cqe.as_bytes());
        seal(&mut e, 0, digests, 0);
        e
    }
    fn transfer<const N: usize>(kind: u8, flags: u8, t: Transfer) -> Encoded<N> {
        let mut e = start(kind, flags, DATA_BYTES);
        put(&mut e, 8, &t.cccid.to_le_bytes());
        put(&mut e, 10, &t.ttag.to_le_bytes());
        put(&mut e, 12, &t.offset.to_le_bytes());
        put(&mut e, 16, &t.length.to_le_bytes());
        e
    }
    /// H2CData; CPDA as ICResp said.
    pub fn h2c_data(t: Transfer, last: bool, digests: Digests, cpda: u8) -> Encoded {
        let mut e = transfer(kind::H2C_DATA, if last { flag::LAST } else { 0 }, t);
        seal(&mut e, t.length, digests, cpda);
        e
    }
    fn c2h<const N: usize>(t: Transfer, last: bool, success: bool, digests: Digests, hpda: u8) -> Encoded<N> {
        let flags = if last { flag::LAST } else { 0 } | if success { flag::SUCCESS } else { 0 };
        let mut e = transfer(kind::C2H_DATA, flags, t);
        seal(&mut e, t.length, digests, hpda);
        e
    }
    /// C2HData; HPDA as ICReq said. `t.ttag` is reserved: 0.
    pub fn c2h_data(t: Transfer, last: bool, success: bool, digests: Digests, hpda: u8) -> Encoded {
        c2h(t, last, success, digests, hpda)
    }
    /// C2HData to a host that asks for no padding.
    pub fn c2h_data_unpadded(t: Transfer, last: bool, success: bool, digests: Digests) -> Encoded<DATA_ROOM> {
        c2h(t, last, success, digests, 0)
    }
    /// R2T.
    pub fn r2t(t: Transfer, digests: Digests) -> Encoded<DATA_ROOM> {
        let mut e = transfer(kind::R2T, 0, t);
        seal(&mut e, 0, digests, 0);
        e
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Digests = Digests { header: true, data: true };

    fn decode(
        receiver: Receiver,
        digests: Digests,
        alignment: u8,
        bytes: &[u8],
    ) -> Result<Incoming, Violation> {
        let mut found = None;
        // Every way to cut the header in two, and byte by byte.
        for cut in 0..=bytes.len() {
            let mut d = Decoder::new(receiver, 1 << 20);
            d.negotiated(digests, alignment);
            let (n, first) = d.push(&bytes[..cut])?;
            let got = match first {
                Some(incoming) => incoming,
                None => d.push(&bytes[n..])?.1.expect("a whole header"),
            };
            assert_eq!(*found.get_or_insert(got), got);
        }
        Ok(found.expect("at least one cut"))
    }

    #[test]
    fn headers_survive_any_cut_with_digests_and_alignment() {
        let t = Transfer { cccid: 7, ttag: 9, offset: 4096, length: 512 };
        for digests in [Digests::default(), BOTH] {
            for pda in [0, 3, 31] {
                let sqe = Sqe::new(1, 0x1234);
                let e = encode::command(&sqe, 100, digests, pda);
                assert_eq!(e.len() % ((usize::from(pda) + 1) * 4), 0);
                let got = decode(Receiver::Controller, digests, pda, &e).expect("valid");
                assert_eq!(got, Incoming { header: Header::Command(sqe), data: 100, digest: digests.data });
                let e = encode::c2h_data(t, true, true, digests, pda);
                let got = decode(Receiver::Host, digests, pda, &e).expect("valid");
                let header = Header::Data { transfer: t, last: true, success: true };
                assert_eq!(got, Incoming { header, data: 512, digest: digests.data });
                let e = encode::h2c_data(t, false, digests, pda);
                let got = decode(Receiver::Controller, digests, pda, &e).expect("valid");
                assert_eq!(got.header, Header::Data { transfer: t, last: false, success: false });
                let e = encode::r2t(t, digests);
                assert_eq!(decode(Receiver::Host, digests, pda, &e).expect("valid").header, Header::R2t(t));
            }
        }
    }

    #[test]
    fn initialization_is_laid_out_as_the_standard_says() {
        let e = encode::ic_req(IcReq { pfv: 0, hpda: 3, digests: BOTH, maxr2t: 5 });
        assert_eq!(e.len(), 128);
        assert_eq!(e[..16], [0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 3, 3, 5, 0, 0, 0]);
        let e = encode::term(kind::C2H_TERM, Term { fes: 1, fei: 0x01020304 }, &[1, 2, 3]);
        assert_eq!(e[..16], [3, 0, 24, 0, 27, 0, 0, 0, 1, 0, 4, 3, 2, 1, 0, 0]);
        assert_eq!(e[24..], [1, 2, 3]);
        let got = decode(Receiver::Host, BOTH, 0, &e[..24]).expect("valid");
        assert_eq!((got.header, got.data), (Header::Term(Term { fes: 1, fei: 0x01020304 }), 3));
    }

    #[test]
    fn nonsense_is_refused_as_soon_as_it_can_be_seen() {
        let check = |at: usize, value: &[u8], fei: u32| {
            let mut e = encode::command(&Sqe::default(), 100, Digests::default(), 0).to_vec();
            e[at..at + value.len()].copy_from_slice(value);
            let mut d = Decoder::new(Receiver::Controller, 8192);
            let violation = d.push(&e[..8]).expect_err("invalid");
            assert_eq!((violation.fes, violation.fei), (fes::INVALID_FIELD, fei), "{:?}", violation.why);
            assert_eq!(d.quote(), &e[..8]);
        };
        check(0, &[0x55], 0);
        check(0, &[kind::R2T], 0);
        check(1, &[flag::HDGST], 1);
        check(1, &[flag::DDGST], 1);
        check(2, &[71], 2);
        check(3, &[70], 3);
        check(3, &[74], 3);
        check(3, &[200], 3);
        check(4, &0x8000_0000u32.to_le_bytes(), 4);
        check(4, &u32::MAX.to_le_bytes(), 4);
        check(4, &71u32.to_le_bytes(), 4);
        check(4, &(72u32 + 8193).to_le_bytes(), 4);
    }

    #[test]
    fn a_wrong_header_digest_is_reported_with_what_was_received() {
        let mut e = encode::command(&Sqe::default(), 0, BOTH, 0).to_vec();
        e[20] ^= 1;
        let violation = decode(Receiver::Controller, BOTH, 0, &e).expect_err("invalid");
        assert_eq!((violation.fes, violation.fei), (fes::HEADER_DIGEST, u32_at(&e, 72)));
    }

    #[test]
    fn a_data_length_that_does_not_fit_is_refused() {
        let t = Transfer { length: 512, ..Transfer::default() };
        let mut e = encode::h2c_data(t, true, Digests::default(), 0).to_vec();
        e[16] = 1;
        assert_eq!(decode(Receiver::Controller, Digests::default(), 0, &e).expect_err("invalid").fei, 16);
    }
}
