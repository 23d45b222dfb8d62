//! Abort and reset across the connections of a controller: the admin queue asks, the I/O queues carry it out. Also the
//! reset of another controller of the same host.
//!
//! An Abort is answered after its command, so that nothing of an aborted write lands afterwards: drive operations that
//! have not begun never start, and those under way are waited for.

use super::{Completion, Connection, Phase, QUEUES_BEGUN, QUEUES_ENDED, RESETS, Role, head_tag};
use crate::spec::{Sqe, StatusField, admin};
use crate::subsystem::ABORTS_MAX;
use crate::subsystem::controller::Then;
use crate::subsystem::resets::impacted;
use base::front::Intervention;
use base::{Bug, FrontIo, Instant, planted};

impl Connection {
    /// Another connection of the controller wants something of this one.
    pub fn on_intervention(&mut self, now: Instant, id: u32, what: &Intervention, io: &mut impl FrontIo) {
        match what {
            Intervention::AbortCommand { cid, .. } => self.abort_command(id, *cid, io),
            Intervention::RetryDelay { enabled } => {
                if let Role::Io(queue) = &mut self.role {
                    queue.retry_delay = *enabled;
                }
                io.intervened(id, true);
            }
            Intervention::BeginQueues { .. }
            | Intervention::EndQueues
            | Intervention::ResetController { .. }
            | Intervention::ClearTasks { .. } => unreachable!("not an intervention for an NVMe queue"),
        }
        self.resume(now, io);
    }
    /// What this admin queue wanted of others is done.
    pub fn on_intervened(&mut self, now: Instant, key: u16, yes: bool, io: &mut impl FrontIo) {
        let Role::Admin(controller) = &mut self.role else { unreachable!("only admin queues intervene") };
        match key {
            QUEUES_ENDED => {
                if let Then::BeginQueues(life) = controller.on_queues_ended() {
                    io.intervene(QUEUES_BEGUN, Intervention::BeginQueues { life });
                }
            }
            QUEUES_BEGUN => controller.on_queues_begun(),
            key if RESETS.contains(&key) => {
                if let Some(tag) = controller.resets.end(key - RESETS.start) {
                    self.answer(tag, Completion::result(IMMEDIATE_RESET));
                }
            }
            tag => {
                let completion = match self.table[tag].sqe.opcode {
                    admin::ABORT => aborted(yes),
                    // Property Set of CC.
                    admin::FABRICS => {
                        controller.on_queues_begun();
                        Completion::GOOD
                    }
                    _ => Completion::GOOD,
                };
                self.answer(tag, completion);
            }
        }
        self.resume(now, io);
    }

    /// An Abort has come.
    pub(super) fn plan_abort(&mut self, tag: u16, io: &mut impl FrontIo) {
        let sqe = self.table[tag].sqe;
        let (queue, cid) = (sqe.cdw10.get() as u16, (sqe.cdw10.get() >> 16) as u16);
        if queue == 0 {
            let done = self.abort_admin(&sqe, cid, io);
            return self.answer(tag, aborted(done));
        }
        let is_abort = |t: &u16| {
            self.table[*t].phase == Phase::AwaitingQueues && self.table[*t].sqe.opcode == admin::ABORT
        };
        if self.table.tags().filter(is_abort).count() >= usize::from(ABORTS_MAX) {
            return self.answer(tag, Completion::failed(StatusField::ABORT_LIMIT));
        }
        self.table[tag].phase = Phase::AwaitingQueues;
        io.intervene(tag, Intervention::AbortCommand { queue, cid });
    }

    /// A Cross-Controller Reset has come: it is answered once nothing of that controller is left, so that nothing of it
    /// lands afterwards.
    pub(super) fn plan_reset(&mut self, now: Instant, tag: u16, io: &mut impl FrontIo) {
        let life = impacted(&self.table[tag].sqe);
        let Role::Admin(controller) = &mut self.role else { unreachable!("an admin command") };
        match controller.resets.ask(life, tag, now) {
            Ok(begun) => {
                self.table[tag].phase = Phase::AwaitingQueues;
                if let Some(number) = begun {
                    io.intervene(RESETS.start + number, Intervention::ResetController { life });
                }
            }
            Err(status) => self.answer(tag, Completion::failed(status)),
        }
    }
    /// Those that have waited for the Command Quiesce Time are completed with that status: their host may ask again, or wait by itself.
    pub(super) fn refuse_late_resets(&mut self, now: Instant) {
        while let Role::Admin(controller) = &mut self.role
            && let Some(tag) = controller.resets.overdue(now)
        {
            self.answer(tag, Completion::failed(StatusField::INTERNAL_ERROR));
        }
    }

    /// Abort of a command of this very queue: those that wait can be ended.
    fn abort_admin(&mut self, abort: &Sqe, cid: u16, io: &mut impl FrontIo) -> bool {
        let victim = self.table.find(cid).filter(|_| abort.cid.get() != cid);
        match victim.map(|tag| (tag, self.table[tag].phase)) {
            Some((tag, Phase::AwaitingEvent)) => {
                if let Role::Admin(controller) = &mut self.role {
                    controller.unhold(tag);
                }
                self.answer(tag, Completion::failed(StatusField::ABORT_REQUESTED));
                true
            }
            Some((tag, Phase::AwaitingTurn)) => {
                self.waiting.retain(|t| *t != tag);
                self.answer(tag, Completion::failed(StatusField::ABORT_REQUESTED));
                true
            }
            Some((tag, Phase::AwaitingBuffer)) => {
                io.abort(head_tag(tag));
                true
            }
            _ => false,
        }
    }

    /// Abort of a command of this I/O queue. It is answered with the command.
    fn abort_command(&mut self, id: u32, cid: u16, io: &mut impl FrontIo) {
        let io_queue = matches!(self.role, Role::Io(_));
        let Some(tag) = self.table.find(cid).filter(|_| io_queue) else { return io.intervened(id, false) };
        if !self.stop_command(tag, io) {
            return io.intervened(id, false);
        }
        self.aborts.push((id, tag));
    }

    /// Ends the commands on namespaces that the host does not see any more: what is not at a drive never starts.
    pub(super) fn end_commands_of_gone(&mut self, gone: &[u32], io: &mut impl FrontIo) {
        if gone.is_empty() {
            return;
        }
        let meant = |t: &u16| gone.contains(&self.table[*t].sqe.nsid.get());
        let tags: Vec<u16> = self.table.tags().filter(meant).collect();
        if !tags.is_empty() && planted(Bug::UnexportedStarts) {
            return;
        }
        for tag in tags {
            self.table[tag].gone = true;
            self.stop_command(tag, io);
        }
    }

    /// Ends a command of this I/O queue without carrying out more of it. False: it has an answer already.
    fn stop_command(&mut self, tag: u16, io: &mut impl FrontIo) -> bool {
        let slot = &mut self.table[tag];
        match slot.phase {
            Phase::AwaitingBuffer | Phase::AwaitingCapsuleBuffer | Phase::Submitted => {
                if !slot.aborted {
                    io.abort(head_tag(tag));
                }
            }
            // Nothing was done for it yet.
            Phase::AwaitingTurn => {
                self.waiting.retain(|t| *t != tag);
                self.answer(tag, Completion::failed(self.table[tag].abort_status()));
            }
            // It is in line for its R2T: its answer goes in its place.
            Phase::AwaitingR2t => {
                self.asked -= u64::from(slot.length);
                slot.phase = Phase::AwaitingRoom;
                slot.answer = Completion::failed(slot.abort_status());
            }
            Phase::AwaitingData => self.abort_transfer(tag),
            // The host is sending its capsule; the command cannot end before that does.
            Phase::AwaitingCapsule => {}
            Phase::AwaitingRoom | Phase::Free | Phase::AwaitingEvent | Phase::AwaitingQueues => return false,
        }
        self.table[tag].aborted = true;
        true
    }

    /// A command was answered: so are the aborts that wait for it.
    pub(super) fn answer_aborts(&mut self, tag: u16, status: StatusField, io: &mut impl FrontIo) {
        if self.aborts.is_empty() {
            return;
        }
        self.aborts.retain(|(id, of)| {
            if *of == tag {
                io.intervened(*id, status == StatusField::ABORT_REQUESTED);
            }
            *of != tag
        });
    }
}

/// Dword 0 of Cross-Controller Reset, bit 0: it is done, and no log page will report it.
const IMMEDIATE_RESET: u32 = 1;

/// NVMe Base 5.1: bit 0 set is "not aborted".
fn aborted(done: bool) -> Completion {
    Completion::result(u32::from(!done))
}
