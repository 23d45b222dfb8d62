//! Aborts of block commands, and functions that end the tasks of all hosts on the unit (RFC 7143 11.5, 11.6).
//!
//! A command may end, and its slot go to another one, while its abort waits for room or is under way.
//! So an abort that was not sent is dropped with its command, and a response counts only for the command
//! that the abort named. (The simulator's hosts once ended a new write by an abort of an old read, filled its
//! buffer again, and read the wrong block's data later.)

use super::{Flight, PDU_ROOM, Session, tag};
use crate::pdu::{self, RESERVED_TAG, TaskManagementRequest, TaskManagementResponse};
use base::{Fault, FaultKind, HostIo, HostStatus};

/// CLEAR TASK SET, or LOGICAL UNIT RESET.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clear {
    None,
    /// It is to be sent.
    Due(u8),
    /// It was, before the command with this CmdSN: those before that are meant.
    Sent(u32),
}

impl Session {
    /// Asks the target to abort block command `id`; it still ends by `done`. False if it is not under
    /// way. `pump` must be called afterwards.
    pub fn abort(&mut self, id: u32) -> bool {
        let Some(slot) = self.flights.iter().position(|f| f.as_ref().is_some_and(|f| f.id == Some(id)))
        else {
            return false;
        };
        if !self.aborts.contains(&(slot as u32)) {
            self.aborts.push_back(slot as u32);
        }
        true
    }
    /// Asks the target to end all tasks on the unit, those of other hosts too, by CLEAR TASK SET or by a reset of the unit;
    /// block commands that are under way then end by `done`. False if it cannot now. `pump` must be called afterwards.
    pub fn clear(&mut self, reset: bool) -> bool {
        let can = self.is_ready() && self.clear == Clear::None;
        if can {
            self.clear =
                Clear::Due(if reset { pdu::function::LUN_RESET } else { pdu::function::CLEAR_TASK_SET });
        }
        can
    }
    /// Sends what `clear` asked for.
    fn send_clear(&mut self, io: &mut impl HostIo) {
        let Clear::Due(function) = self.clear else { return };
        if io.room() < PDU_ROOM {
            return;
        }
        self.clear = Clear::Sent(self.cmd_sn);
        let request = TaskManagementRequest {
            immediate: true,
            function,
            lun: self.lun(),
            task_tag: tag::CLEAR,
            referenced_task_tag: RESERVED_TAG,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            ref_cmd_sn: 0,
            exp_data_sn: 0,
        };
        self.send_bhs(request.encode(), io);
    }
    /// No answer comes any more to what was under way.
    fn cleared(&mut self, response: u8, io: &mut impl HostIo) {
        let Clear::Sent(until) = core::mem::replace(&mut self.clear, Clear::None) else { return };
        if response != pdu::function_response::COMPLETE {
            return;
        }
        for slot in 0..self.flights.len() {
            let is_meant = |f: &Flight| until.wrapping_sub(f.cmd_sn).wrapping_sub(1) < 1 << 31;
            let meant = self.flights[slot].filter(|f| f.id.is_some() && f.answered.is_none() && is_meant(f));
            if meant.is_some() {
                let fault = Fault { kind: FaultKind::Aborted, raw: 0 };
                self.answer(slot as u32, HostStatus::Failed(fault), io);
            }
        }
    }
    /// Sends what `abort` and `clear` asked for.
    pub(super) fn send_aborts(&mut self, io: &mut impl HostIo) {
        self.send_clear(io);
        while let Some(&slot) = self.aborts.front() {
            if io.room() < PDU_ROOM || self.aborting[slot as usize].is_some() {
                return;
            }
            self.aborts.pop_front();
            if let Some(f) = self.flights[slot as usize] {
                self.aborting[slot as usize] = Some(f.cmd_sn);
                let request = TaskManagementRequest {
                    immediate: true,
                    function: pdu::function::ABORT_TASK,
                    lun: self.lun(),
                    task_tag: tag::ABORT | slot,
                    referenced_task_tag: slot,
                    cmd_sn: self.cmd_sn,
                    exp_stat_sn: self.exp_stat_sn,
                    ref_cmd_sn: f.cmd_sn,
                    exp_data_sn: 0,
                };
                self.send_bhs(request.encode(), io);
            }
        }
    }
    pub(super) fn on_task_management(&mut self, r: TaskManagementResponse, io: &mut impl HostIo) {
        self.counters(r.counters, true);
        if r.task_tag == tag::CLEAR {
            return self.cleared(r.response, io);
        }
        let slot = r.task_tag & !tag::ABORT;
        let meant = self.aborting.get_mut(slot as usize).and_then(Option::take);
        let flight = self.flights.get(slot as usize).copied().flatten();
        // Complete, or no such task: either way no answer to it will come any more.
        if flight.is_some_and(|f| Some(f.cmd_sn) == meant && f.answered.is_none())
            && r.response <= pdu::function_response::NO_TASK
        {
            let fault = Fault { kind: FaultKind::Aborted, raw: 0 };
            self.answer(slot, HostStatus::Failed(fault), io);
        }
    }
}
