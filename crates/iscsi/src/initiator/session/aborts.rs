//! Aborts of block commands (RFC 7143 11.5, 11.6).
//!
//! A command may end, and its slot go to another one, while its abort waits for room or is under way.
//! So an abort that was not sent is dropped with its command, and a response counts only for the command
//! that the abort named. (The simulator's hosts once ended a new write by an abort of an old read, filled its
//! buffer again, and read the wrong block's data later.)

use super::{PDU_ROOM, Session, tag};
use crate::pdu::{self, TaskManagementRequest, TaskManagementResponse};
use base::{Fault, FaultKind, HostIo, HostStatus};

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
    /// Sends what `abort` asked for.
    pub(super) fn send_aborts(&mut self, io: &mut impl HostIo) {
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
