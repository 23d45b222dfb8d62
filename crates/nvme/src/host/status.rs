//! What a completion means for the owner of the session.

use crate::spec::StatusField;
use base::{Duration, Fault, FaultKind, HostStatus};

/// A completion's status in no protocol's words. `crdt` are the controller's Command Retry Delay Times,
/// in units of 100 ms (NVMe Base 5.17.2.1).
pub fn block_status(status: StatusField, crdt: [u16; 3]) -> HostStatus {
    use StatusField as S;
    if status.is_good() {
        return HostStatus::Good;
    }
    let kind = match status.code() {
        S::LBA_OUT_OF_RANGE => FaultKind::OutOfRange,
        S::CAPACITY_EXCEEDED => FaultKind::NoSpace,
        S::READ_ERROR | S::WRITE_FAULT => FaultKind::Medium,
        S::COMPARE_FAILURE => FaultKind::Miscompare,
        S::WRITE_PROTECTED => FaultKind::WriteProtected,
        S::ABORT_REQUESTED | S::ABORTED_SQ_DELETED | S::ABORTED_FAILED_FUSED => FaultKind::Aborted,
        S::NAMESPACE_NOT_READY | S::INTERRUPTED => FaultKind::NotReady,
        S::DATA_TRANSFER_ERROR | S::TRANSIENT_TRANSPORT => FaultKind::Transport,
        S::INVALID_NAMESPACE => FaultKind::NoVolume,
        S::INVALID_OPCODE | S::INVALID_FIELD => FaultKind::Unsupported,
        _ => FaultKind::Other,
    };
    let fault = Fault { kind, raw: u32::from(status.code().0) };
    let worth_it = match kind {
        FaultKind::NotReady | FaultKind::Transport | FaultKind::Busy | FaultKind::Changed => true,
        FaultKind::Other => true,
        FaultKind::OutOfRange
        | FaultKind::Medium
        | FaultKind::Miscompare
        | FaultKind::NoSpace
        | FaultKind::WriteProtected
        | FaultKind::Aborted
        | FaultKind::NoVolume
        | FaultKind::Unsupported => false,
    };
    if status.is_dnr() || !worth_it {
        return HostStatus::Failed(fault);
    }
    // NVMe Base 4.2.3.1 CRD: 0 says "at once"; we leave a target that is not ready some air.
    let after = match status.retry_delay() {
        0 => Duration::from_millis(20),
        n => Duration::from_millis(100) * u32::from(crdt[usize::from(n) - 1]),
    };
    HostStatus::Retry { after, fault }
}
