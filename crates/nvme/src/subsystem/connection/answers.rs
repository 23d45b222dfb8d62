//! Answers go out in order, when there is room.

use super::{Connection, ROOM_MIN, Role, Stage, Trailer};
use crate::pdu::{Transfer, digest_bytes, encode};
use crate::spec::Cqe;
use crate::subsystem::table::{Completion, Phase, tag as head_tag};
use base::crc::crc32c;
use base::{FrontIo, Instant};

impl Connection {
    /// The command has ended; its answer goes out when there is room, in order.
    pub(super) fn answer(&mut self, tag: u16, completion: Completion) {
        let slot = &mut self.table[tag];
        slot.answer = completion;
        slot.phase = Phase::AwaitingRoom;
        if !completion.status.is_good()
            && let Role::Admin(controller) = &mut self.role
        {
            controller.note_error(&slot.sqe, completion.status);
        }
        self.out.push_back(tag);
    }

    pub(super) fn flush(&mut self, now: Instant, io: &mut impl FrontIo) {
        if matches!(self.stage, Stage::Closed) {
            return;
        }
        while io.room() >= ROOM_MIN {
            let Some(tag) = self.out.pop_front() else { break };
            match self.table[tag].phase {
                Phase::AwaitingR2t => self.send_r2t(now, tag, io),
                Phase::AwaitingRoom => self.send_answer(tag, io),
                other => unreachable!("a command that is {other:?} has nothing to send"),
            }
        }
    }

    pub(super) fn send_answer(&mut self, tag: u16, io: &mut impl FrontIo) {
        let slot = &self.table[tag];
        let (cid, answer, held) = (slot.sqe.cid.get(), slot.answer, slot.held);
        let data = slot.buffer.head(slot.length.min(slot.buffer.len));
        let gives = slot.gives && answer.status.is_good() && data.len > 0;
        // NVMe/TCP 3.6.2.8: SUCCESS stands for the response, whose SQHD is not needed without flow control.
        let success = gives && !self.queue.flow_control && (answer.dw0, answer.dw1) == (0, 0);
        let response = (!success).then(|| self.response(cid, answer));
        self.answer_aborts(tag, answer.status, io);
        // The host may use its identifier again. The head keeps its buffer until it is sent.
        self.table.release(tag);
        if gives {
            let t = Transfer { cccid: cid, ttag: 0, offset: 0, length: data.len };
            let mut both = Trailer::default();
            let response = response.as_deref().unwrap_or_default();
            let trailer = if self.digests.data {
                both.push(&digest_bytes(crc32c(io.bytes(data))));
                both.push(response);
                both.bytes()
            } else {
                response
            };
            let tag = head_tag(tag);
            match self.hpda {
                0 => {
                    let header = encode::c2h_data_unpadded(t, true, success, self.digests);
                    io.finish_with(tag, &header, data, trailer);
                }
                hpda => {
                    let header = encode::c2h_data(t, true, success, self.digests, hpda);
                    io.finish_with(tag, &header, data, trailer);
                }
            }
            return;
        }
        if let Some(response) = response {
            io.header(&response);
        }
        if held {
            io.finish(head_tag(tag));
        }
    }

    pub(super) fn response(&self, cid: u16, completion: Completion) -> encode::Response {
        let head = if self.queue.flow_control { self.queue.head as u16 } else { 0 };
        let cqe = Cqe {
            dw0: completion.dw0.into(),
            dw1: completion.dw1.into(),
            sqhd: head.into(),
            sqid: 0.into(),
            cid: cid.into(),
            status: (completion.status.0 << 1).into(),
        };
        encode::response(&cqe, self.digests)
    }
    pub(super) fn respond(&mut self, io: &mut impl FrontIo, cid: u16, completion: Completion) {
        let response = self.response(cid, completion);
        io.header(&response);
    }
}
