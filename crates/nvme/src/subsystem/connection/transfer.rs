//! Data that an R2T asks for: the R2T, its H2CData, and what happens to them when the command is aborted.
//!
//! A command that is aborted while its data are on their way is answered at once. Data that the host has sent by then
//! still arrive, and are read and dropped. Each transfer that is given up changes the transfer tags, so that late data
//! are never taken for data of the tag's next command.

use super::{Completion, Connection, Phase};
use crate::pdu::{Transfer, Violation, encode, fes};
use crate::subsystem::DATA_TIME;
use crate::subsystem::rx::{Payload, Rx, To};
use base::{FrontIo, Instant, NvmeFault};

impl Connection {
    /// One R2T for all the data: no host allows fewer than one (MAXR2T is 0-based).
    pub(super) fn send_r2t(&mut self, now: Instant, tag: u16, io: &mut impl FrontIo) {
        let ttag = tag | self.given_up.unbounded_shl(self.tag_bits());
        let slot = &mut self.table[tag];
        slot.phase = Phase::AwaitingData;
        slot.since = now;
        slot.ttag = ttag;
        let t = Transfer { cccid: slot.sqe.cid.get(), ttag, offset: 0, length: slot.length };
        self.transfers += 1;
        self.last_r2t = slot.length;
        self.transfers_check.get_or_insert(now + DATA_TIME);
        io.header(&encode::r2t(t, self.digests));
    }

    /// NVMe/TCP 3.6.2.7: a part of the data that an R2T asked for.
    pub(super) fn transfer_header(&mut self, t: Transfer, last: bool, digest: bool) -> Result<(), Violation> {
        let tag = t.ttag & !u16::MAX.unbounded_shl(self.tag_bits());
        let awaited = self.table.get(tag).filter(|s| s.phase == Phase::AwaitingData && s.ttag == t.ttag);
        let Some(slot) = awaited else {
            let Some(late) = self.late.checked_sub(u64::from(t.length)) else {
                return Err(Violation::field(10, NvmeFault::TransferTag));
            };
            self.late = late;
            self.rx = Rx::Payload(Payload::to_nobody(t.length, digest));
            return Ok(());
        };
        if slot.sqe.cid.get() != t.cccid {
            return Err(Violation::field(8, NvmeFault::TransferCommand));
        }
        let end = u64::from(t.offset) + u64::from(t.length);
        if end > u64::from(slot.length) {
            return Err(Violation::new(fes::OUT_OF_RANGE, NvmeFault::BeyondR2t));
        }
        if t.offset != slot.received || t.length == 0 {
            return Err(Violation::field(12, NvmeFault::DataOrder));
        }
        // NVMe/TCP 3.6.2.7: LAST_PDU stands in the last one of an R2T, and in no other.
        if last && end < u64::from(slot.length) {
            return Err(Violation::field(1, NvmeFault::LastTooEarly));
        }
        if !last && end == u64::from(slot.length) {
            return Err(Violation::field(1, NvmeFault::LastMissing));
        }
        let to = To::Command(tag);
        self.rx = Rx::Payload(Payload { to, skip: 0, left: t.length, tail: 0, at: t.offset, crc: 0, digest });
        Ok(())
    }

    /// The host has aborted a command whose data are awaited. In the midst of a PDU, whose bytes may be on
    /// their way into the buffer already, the end of that PDU comes first.
    pub(super) fn abort_transfer(&mut self, tag: u16) {
        match self.rx {
            Rx::Payload(p) | Rx::Digest(p) if p.to == To::Command(tag) => {}
            _ => self.give_up(tag),
        }
    }

    /// A command is answered although not all of its data have come.
    pub(super) fn give_up(&mut self, tag: u16) {
        let slot = &self.table[tag];
        self.late += u64::from(slot.length - slot.received);
        self.given_up = self.given_up.wrapping_add(1);
        self.transfers -= 1;
        self.asked -= u64::from(slot.length);
        self.answer(tag, Completion::failed(self.table[tag].abort_status()));
    }

    fn tag_bits(&self) -> u32 {
        u16::BITS - (self.table.len() - 1).leading_zeros()
    }
}
