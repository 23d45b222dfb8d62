//! Cuts what arrives into PDUs: header, data, padding, digests.

use super::Error;
use crate::pdu::{self, AHS_BYTES_MAX, BHS_BYTES, Bhs, DIGEST_BYTES, Framing};
use base::IscsiFault;
use base::crc::{crc32c, crc32c_append};

/// What the next bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Header, AHS and header digest; so many bytes are still missing at least.
    Header,
    /// Data, so many bytes left.
    Data(u32),
    /// Padding and data digest.
    Trailer,
}

/// Collects the header and the trailer of one PDU; data passes by it.
#[derive(Debug)]
pub struct Receiver {
    framing: Framing,
    part: Part,
    header: [u8; BHS_BYTES + AHS_BYTES_MAX + DIGEST_BYTES],
    have: usize,
    need: usize,
    crc: u32,
    trailer: [u8; 3 + DIGEST_BYTES],
    data_max: u32,
}

impl Receiver {
    /// For a new connection; `data_max` is the longest data segment that we said we take.
    pub fn new(data_max: u32) -> Self {
        Self {
            framing: Framing::default(),
            part: Part::Header,
            header: [0; BHS_BYTES + AHS_BYTES_MAX + DIGEST_BYTES],
            have: 0,
            need: BHS_BYTES,
            crc: 0,
            trailer: [0; 3 + DIGEST_BYTES],
            data_max,
        }
    }
    /// Digests are in force from the next PDU on.
    pub fn negotiated(&mut self, framing: Framing) {
        self.framing = framing;
    }
    /// What the next bytes are.
    pub fn part(&self) -> Part {
        self.part
    }
    /// The header of the PDU whose data or trailer comes.
    pub fn bhs(&self) -> &Bhs {
        self.header.first_chunk().expect("a header is 48 bytes")
    }
    /// Takes header bytes: how many, and whether the header is whole now.
    pub fn header(&mut self, bytes: &[u8]) -> Result<(usize, bool), Error> {
        let mut taken = 0;
        loop {
            let n = (self.need - self.have).min(bytes.len() - taken);
            self.header[self.have..self.have + n].copy_from_slice(&bytes[taken..taken + n]);
            self.have += n;
            taken += n;
            if self.have < self.need {
                return Ok((taken, false));
            }
            let whole = self.framing.header_len(pdu::ahs_len(self.bhs()));
            if self.need == whole {
                break;
            }
            if pdu::data_len(self.bhs()) > self.data_max {
                return Err(Error::Protocol(IscsiFault::SegmentTooLong));
            }
            self.need = whole;
        }
        let covered = BHS_BYTES + pdu::ahs_len(self.bhs());
        if self.framing.header_digest
            && crc32c(&self.header[..covered]).to_le_bytes() != self.header[covered..self.need]
        {
            return Err(Error::Protocol(IscsiFault::HeaderDigestWrong));
        }
        if pdu::data_len(self.bhs()) > self.data_max {
            return Err(Error::Protocol(IscsiFault::SegmentTooLong));
        }
        self.have = 0;
        self.need = BHS_BYTES;
        self.crc = 0;
        self.part = match pdu::data_len(self.bhs()) {
            0 => Part::Header,
            n => Part::Data(n),
        };
        Ok((taken, true))
    }
    /// Data bytes went by. True if the PDU is whole now.
    pub fn data(&mut self, bytes: &[u8]) -> bool {
        let Part::Data(left) = self.part else { panic!("no data is expected") };
        if self.framing.data_digest {
            self.crc = crc32c_append(self.crc, bytes);
        }
        let left = left - bytes.len() as u32;
        if left > 0 {
            self.part = Part::Data(left);
            return false;
        }
        let len = self.framing.trailer_len(pdu::data_len(self.bhs()));
        self.part = if len == 0 { Part::Header } else { Part::Trailer };
        len == 0
    }
    /// Takes trailer bytes: how many, and whether the PDU is whole now.
    pub fn trailer(&mut self, bytes: &[u8]) -> Result<(usize, bool), Error> {
        let len = self.framing.trailer_len(pdu::data_len(self.bhs()));
        let n = (len - self.have).min(bytes.len());
        self.trailer[self.have..self.have + n].copy_from_slice(&bytes[..n]);
        self.have += n;
        if self.have < len {
            return Ok((n, false));
        }
        self.have = 0;
        self.part = Part::Header;
        let pad = pdu::padding(pdu::data_len(self.bhs())) as usize;
        if self.framing.data_digest
            && crc32c_append(self.crc, &self.trailer[..pad]).to_le_bytes() != self.trailer[pad..len]
        {
            // RFC 7143 7.2: without recovery within the connection, the session ends.
            return Err(Error::Protocol(IscsiFault::DataDigestWrong));
        }
        Ok((n, true))
    }
}
