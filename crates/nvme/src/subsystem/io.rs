//! I/O queues: block commands of the NVM command set, checked and translated.

use super::namespaces::{Namespace, Namespaces};
use super::table::{Completion, Slot};
use crate::spec::command::{DsmRange, NSID_ALL, flags};
use crate::spec::fabrics::fctype;
use crate::spec::{Sqe, StatusField, admin, nvm};
use base::front::{ControllerLife, TRANSFER_MAX};
use base::{Command, HostId, Op, Status};
use zerocopy::FromBytes;

/// What a command needs next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// Nothing: this is its end.
    Answer(Completion),
    /// Data of the host, so many bytes.
    Take { min: u32, max: u32 },
    /// A buffer, and then this many bytes for the host.
    Give(u32),
    /// To be carried out: no data.
    Go,
    /// To wait for an event.
    Hold,
    /// Another command to be ended (Abort).
    Abort,
    /// To be answered well, and the controller's I/O queues to be ended.
    EndQueues,
    /// The head must let I/O queues in; then it is answered.
    BeginQueues(ControllerLife),
    /// Another controller of the host to be ended (Cross-Controller Reset).
    ResetController,
    /// To be answered well, and then the connection ends.
    Leave,
}

impl Plan {
    pub fn refuse(status: StatusField) -> Self {
        Plan::Answer(Completion::failed(status.dnr()))
    }
}

/// Checks that every command passes, whatever it is.
pub(crate) fn check_common(sqe: &Sqe) -> Result<(), Plan> {
    // NVMe Base 3.3.3.1: fused operations are not among ours (FUSES), fabrics allow SGLs only.
    if sqe.flags & flags::FUSE != 0 || sqe.flags & flags::PSDT != flags::PSDT_SGL {
        return Err(Plan::refuse(StatusField::INVALID_FIELD));
    }
    Ok(())
}

/// One I/O queue.
#[derive(Debug)]
pub(crate) struct IoQueue {
    pub host: HostId,
    pub hostnqn: String,
    pub namespaces: Namespaces,
    /// Completions may carry a Command Retry Delay: the host has set ACRE on this controller.
    pub retry_delay: bool,
}

/// What the head does next for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// This, and then ask again with `cursor`.
    Submit { command: Command, cursor: u32 },
    /// Nothing (more).
    Done(Completion),
}

impl IoQueue {
    /// Looks at a command that has just arrived.
    pub fn plan(&self, sqe: &Sqe) -> Plan {
        if let Err(refused) = check_common(sqe) {
            return refused;
        }
        if sqe.opcode == admin::FABRICS {
            return match sqe.fctype() {
                fctype::DISCONNECT if sqe.cdw10.get() & 0xffff == 0 => Plan::Leave,
                fctype::DISCONNECT => Plan::refuse(StatusField::CONNECT_FORMAT),
                // The queue has its Connect already.
                fctype::CONNECT => Plan::refuse(StatusField::COMMAND_SEQUENCE),
                fctype::PROPERTY_GET | fctype::PROPERTY_SET => Plan::refuse(StatusField::INVALID_FIELD),
                _ => Plan::refuse(StatusField::INVALID_OPCODE),
            };
        }
        if !matches!(
            sqe.opcode,
            nvm::FLUSH | nvm::WRITE | nvm::READ | nvm::COMPARE | nvm::WRITE_ZEROES | nvm::DATASET_MANAGEMENT
        ) {
            return Plan::refuse(StatusField::INVALID_OPCODE);
        }
        // Identify Controller VWC bits 2:1 are 11b: Flush alone may name all namespaces.
        if sqe.opcode == nvm::FLUSH && sqe.nsid.get() == NSID_ALL {
            return Plan::Go;
        }
        let Some(namespace) = self.namespaces.get(sqe.nsid.get()) else {
            return Plan::refuse(StatusField::INVALID_NAMESPACE);
        };
        match sqe.opcode {
            nvm::FLUSH => Plan::Go,
            nvm::DATASET_MANAGEMENT => {
                let ranges = (sqe.cdw10.get() & 0xff) + 1;
                // Linux always sends a whole page, however few ranges it has.
                Plan::Take { min: ranges * 16, max: nvm::DSM_RANGES_MAX * 16 }
            }
            _ if outside(namespace, sqe.lba(), u64::from(sqe.blocks())) => {
                Plan::refuse(StatusField::LBA_OUT_OF_RANGE)
            }
            nvm::WRITE_ZEROES => Plan::Go,
            _ => {
                let length = u64::from(sqe.blocks()) * u64::from(namespace.block_bytes);
                if length > u64::from(TRANSFER_MAX) {
                    return Plan::refuse(StatusField::INVALID_FIELD);
                }
                let length = length as u32;
                match sqe.opcode {
                    nvm::READ => Plan::Give(length),
                    _ => Plan::Take { min: length, max: length },
                }
            }
        }
    }

    /// The next thing to do for a command whose data (`data`, if it takes any) are here. Called again
    /// after each `Good`, as long as it gives work.
    pub fn work(&self, slot: &Slot, data: &[u8]) -> Work {
        let sqe = &slot.sqe;
        let done = |status: StatusField| Work::Done(Completion::failed(status));
        if sqe.opcode == nvm::FLUSH && sqe.nsid.get() == NSID_ALL {
            return match self.namespaces.after(slot.cursor) {
                Some(n) => Work::Submit { command: command(n, Op::Flush, 0, 0, false), cursor: n.nsid },
                None => done(StatusField::SUCCESS),
            };
        }
        // The view may have changed while data were under way.
        let Some(n) = self.namespaces.get(sqe.nsid.get()) else {
            return done(StatusField::INVALID_NAMESPACE.dnr());
        };
        if sqe.opcode == nvm::DATASET_MANAGEMENT {
            return dataset_management(n, slot, data);
        }
        if slot.cursor > 0 {
            return done(StatusField::SUCCESS);
        }
        let blocks = u64::from(sqe.blocks());
        let cdw12 = sqe.cdw12.get();
        let op = match sqe.opcode {
            nvm::FLUSH => Op::Flush,
            nvm::READ => Op::Read,
            nvm::WRITE => Op::Write,
            nvm::COMPARE => Op::Compare,
            nvm::WRITE_ZEROES => Op::WriteZeroes { deallocate: cdw12 & nvm::DEALLOCATE != 0 },
            _ => unreachable!("`plan` refused other opcodes"),
        };
        if (op.takes_data() || op == Op::Read) && blocks * u64::from(n.block_bytes) != u64::from(slot.length)
        {
            return done(StatusField::INVALID_NAMESPACE.dnr());
        }
        let command = match op {
            Op::Flush => command(n, op, 0, 0, false),
            _ => command(n, op, sqe.lba(), blocks, op.changes() && cdw12 & nvm::FUA != 0),
        };
        Work::Submit { command, cursor: 1 }
    }
}

fn command(n: &Namespace, op: Op, at: u64, blocks: u64, fua: bool) -> Command {
    Command { volume: n.volume, op, at, blocks, fua }
}

fn outside(n: &Namespace, lba: u64, blocks: u64) -> bool {
    lba.checked_add(blocks).is_none_or(|end| end > n.blocks)
}

/// NVM 3.2.3: one Deallocate per range, one after the other; other attributes are hints.
fn dataset_management(n: &Namespace, slot: &Slot, data: &[u8]) -> Work {
    let done = |status: StatusField| Work::Done(Completion::failed(status));
    if slot.sqe.cdw11.get() & nvm::DSM_DEALLOCATE == 0 || !n.deallocate {
        return done(StatusField::SUCCESS);
    }
    let count = (slot.sqe.cdw10.get() & 0xff) as usize + 1;
    let (ranges, _) =
        <[DsmRange]>::ref_from_prefix_with_elems(data, count).expect("the length was checked by `plan`");
    if slot.cursor == 0
        && ranges.iter().any(|r| r.blocks.get() > 0 && outside(n, r.lba.get(), u64::from(r.blocks.get())))
    {
        return done(StatusField::LBA_OUT_OF_RANGE.dnr());
    }
    let rest = ranges.iter().enumerate().skip(slot.cursor as usize);
    match rest.into_iter().find(|(_, r)| r.blocks.get() > 0) {
        Some((i, r)) => Work::Submit {
            command: command(n, Op::Deallocate, r.lba.get(), u64::from(r.blocks.get()), false),
            cursor: i as u32 + 1,
        },
        None => done(StatusField::SUCCESS),
    }
}

/// The protocol's word for how a command ended.
///
/// `NotReady` asks for patience: CRD 1 points at CRDT1 (10 s). NVMe Base 5.27.1.18: only where the host
/// has enabled ACRE (`retry_delay`); the bits were reserved before.
pub(crate) fn status_of(opcode: u8, status: Status, retry_delay: bool) -> StatusField {
    match status {
        Status::Good => StatusField::SUCCESS,
        Status::OutOfRange => StatusField::LBA_OUT_OF_RANGE.dnr(),
        Status::Medium if matches!(opcode, nvm::READ | nvm::COMPARE) => StatusField::READ_ERROR,
        Status::Medium => StatusField::WRITE_FAULT,
        Status::Miscompare { .. } => StatusField::COMPARE_FAILURE.dnr(),
        Status::NotReady => StatusField::NAMESPACE_NOT_READY.crd(u16::from(retry_delay)),
        Status::NoVolume => StatusField::INVALID_NAMESPACE.dnr(),
        Status::Aborted => StatusField::ABORT_REQUESTED,
        Status::NoSpace => StatusField::CAPACITY_EXCEEDED.dnr(),
        Status::WriteProtected => StatusField::WRITE_PROTECTED.dnr(),
        Status::Internal | Status::Withheld | Status::Moved => StatusField::INTERNAL_ERROR,
    }
}
