//! Commands that a session sends on its own: SendTargets on discovery, otherwise those that learn the logical unit.

use super::{ANSWER_BYTES, FoundTarget, OWN_BYTES, PDU_ROOM, STEP_TRIES, Session, Source, Step, tag};
use crate::initiator::receive::Part;
use crate::initiator::{Error, Lack};
use crate::pdu::{LogoutRequest, RESERVED_TAG, TextRequest, TextResponse};
use crate::text::{self, key};
use base::{Duration, HostIo, HostStatus, IscsiFault, Slice};

impl Session {
    /// Sends the command of the current step; false if there is no room (or nothing to send).
    pub(super) fn ask(&mut self, io: &mut impl HostIo) -> bool {
        let mut cdb = [0; 16];
        let mut expected = ANSWER_BYTES;
        match self.step {
            Step::ReportLuns => {
                cdb[0] = 0xa0;
                cdb[8] = 0x10;
            }
            Step::Inquiry => {
                cdb[0] = 0x12;
                expected = 96;
                cdb[4] = 96;
            }
            Step::Identification => {
                cdb[0] = 0x12;
                cdb[1] = 1;
                cdb[2] = 0x83;
                cdb[3] = 0x10;
            }
            Step::Limits => {
                cdb[0] = 0x12;
                cdb[1] = 1;
                cdb[2] = 0xb0;
                cdb[3] = 0x10;
            }
            Step::UnitReady => expected = 0,
            Step::Capacity => {
                cdb[0] = 0x9e;
                cdb[1] = 0x10;
                cdb[13] = 32;
                expected = 32;
            }
            Step::Ready if self.capacity_due => {
                cdb[0] = 0x9e;
                cdb[1] = 0x10;
                cdb[13] = 32;
                expected = 32;
            }
            Step::SendTargets => return self.ask_targets(io),
            Step::Logout => {
                if io.room() < PDU_ROOM {
                    return false;
                }
                let request = LogoutRequest {
                    immediate: true,
                    reason: 0,
                    task_tag: tag::LOGOUT,
                    cid: 0,
                    cmd_sn: self.cmd_sn,
                    exp_stat_sn: self.exp_stat_sn,
                };
                self.send_bhs(request.encode(), io);
                return true;
            }
            Step::Idle | Step::Login | Step::Ready | Step::Ended => return false,
        }
        // The own buffer is emptied for the answer: not while another PDU's data is in it.
        if self.window() == 0 || self.receiver.part() != Part::Header {
            return false;
        }
        self.own.clear();
        self.own_from = 0;
        self.send_command(None, cdb, Slice::default(), expected, Source::None, io)
    }
    fn ask_targets(&mut self, io: &mut impl HostIo) -> bool {
        let mut out = vec![];
        if self.text_tag == RESERVED_TAG {
            text::put(&mut out, key::SEND_TARGETS, "All");
        }
        if io.room() < PDU_ROOM + out.len() as u32 + 8 || self.window() == 0 {
            return false;
        }
        let request = TextRequest {
            immediate: false,
            last: true,
            task_tag: tag::TEXT,
            transfer_tag: self.text_tag,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            ..TextRequest::default()
        };
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        self.send_small(request.encode(), &out, io);
        true
    }
    pub(super) fn on_text(&mut self, r: TextResponse) {
        self.counters(r.counters, true);
        if self.step != Step::SendTargets || r.task_tag != tag::TEXT {
            return self.broken(IscsiFault::TextUnasked);
        }
        let part = &self.own[self.own_from..];
        if self.text.len() + part.len() > 16 * OWN_BYTES {
            return self.broken(IscsiFault::TargetsEndless);
        }
        self.text.extend_from_slice(part);
        if r.transfer_tag != RESERVED_TAG && !r.last {
            self.text_tag = r.transfer_tag;
            self.asked = false;
            return;
        }
        let text = core::mem::take(&mut self.text);
        for pair in text::pairs(&text) {
            let Ok(pair) = pair else { return self.broken(IscsiFault::TargetsInvalid) };
            match (pair.key, self.found.last_mut()) {
                (key::TARGET_NAME, _) => {
                    self.found.push(FoundTarget { name: pair.value.into(), addresses: vec![] });
                }
                (key::TARGET_ADDRESS, Some(target)) => target.addresses.push(pair.value.into()),
                _ => {}
            }
        }
        self.go(Step::Ready);
    }
    /// The current step's command ended.
    pub(super) fn on_step(&mut self, status: HostStatus) {
        let what = match self.step {
            Step::ReportLuns => "REPORT LUNS",
            Step::Inquiry => "INQUIRY",
            Step::Identification | Step::Limits => "a VPD page",
            Step::UnitReady => "TEST UNIT READY",
            Step::Capacity | Step::Ready => "READ CAPACITY (16)",
            Step::Idle | Step::Login | Step::SendTargets | Step::Logout | Step::Ended => return,
        };
        let fault = match status {
            HostStatus::Good => return self.learn(),
            HostStatus::Retry { after, fault } => {
                self.tries += 1;
                if self.tries < STEP_TRIES {
                    self.asked = after > Duration::ZERO;
                    self.pause = self.asked.then(|| self.now + after);
                    return;
                }
                fault
            }
            HostStatus::Failed(fault) => fault,
            HostStatus::ConnectionLost => return,
        };
        match self.step {
            // Pages that not every target has.
            Step::ReportLuns => self.go(Step::Inquiry),
            Step::Identification => self.go(Step::Limits),
            Step::Limits => self.go(Step::UnitReady),
            Step::Ready => {
                self.capacity_due = false;
                self.unit.blocks = 0;
            }
            _ => self.fail(Error::Refused { what, fault }),
        }
    }
    /// The current step's data is in the own buffer.
    fn learn(&mut self) {
        let data = &self.own;
        match self.step {
            Step::ReportLuns => {
                // SPC-4 6.33: a list of eight-byte LUNs after eight bytes of header.
                let lun = self.lun().to_be_bytes();
                let known = data.get(8..).is_some_and(|l| l.chunks_exact(8).any(|l| l == lun));
                // A list that fills our buffer may go on beyond it.
                if !known && data.len() < ANSWER_BYTES as usize {
                    return self.fail(Error::Incapable(Lack::NotMapped));
                }
                self.go(Step::Inquiry);
            }
            Step::Inquiry => {
                // Peripheral qualifier 000b and device type 00h: a disk that is there.
                if data.first() != Some(&0) {
                    return self.fail(Error::Incapable(Lack::NotADisk));
                }
                self.go(Step::Identification);
            }
            Step::Identification => {
                self.unit.naa = find_naa(data.get(4..).unwrap_or(&[]));
                self.go(Step::Limits);
            }
            Step::Limits => {
                // SBC-4 6.6.4: MAXIMUM TRANSFER LENGTH, blocks, at byte 8; kept until the block is known.
                let blocks = data.get(8..12).map_or(0, |b| u32::from_be_bytes(b.try_into().expect("four")));
                self.unit.transfer_max = blocks;
                self.go(Step::UnitReady);
            }
            Step::UnitReady => self.go(Step::Capacity),
            Step::Capacity | Step::Ready => {
                let Some(head) = data.get(..12) else { return self.broken(IscsiFault::CapacityShort) };
                let last = u64::from_be_bytes(head[..8].try_into().expect("eight"));
                let block = u32::from_be_bytes(head[8..].try_into().expect("four"));
                let again = self.step == Step::Ready;
                if !(512..=65536).contains(&block) || again && block != self.unit.block_bytes {
                    return self.fail(Error::Incapable(Lack::BlockSize));
                }
                self.unit.blocks = last.saturating_add(1);
                if again {
                    self.capacity_due = false;
                    self.changes += 1;
                    return;
                }
                let max = u64::from(self.unit.transfer_max) * u64::from(block);
                let ours = u64::from(base::front::TRANSFER_MAX);
                self.unit.transfer_max = if max == 0 { ours } else { max.min(ours) } as u32;
                self.unit.block_bytes = block;
                self.go(Step::Ready);
            }
            Step::Idle | Step::Login | Step::SendTargets | Step::Logout | Step::Ended => {}
        }
    }
}

/// The NAA designator of a logical unit (SPC-4 7.8.6), zero if there is none.
fn find_naa(mut list: &[u8]) -> [u8; 16] {
    let mut naa = [0; 16];
    while let [_, kind, _, len, rest @ ..] = list {
        let len = usize::from(*len).min(rest.len());
        // Association 0 (the logical unit), designator type 3.
        if kind & 0x3f == 3 && len <= 16 {
            naa[..len].copy_from_slice(&rest[..len]);
            break;
        }
        list = &rest[len..];
    }
    naa
}
