//! What a SCSI status means for the owner of the session (SAM-5 5.3, SPC-4 4.5).

use base::{Duration, Fault, FaultKind, HostStatus};

/// SCSI status and sense data in no protocol's words.
pub fn status_of(status: u8, sense: &[u8]) -> HostStatus {
    let now = Duration::ZERO;
    let fault = |kind| Fault { kind, raw: u32::from(status) << 24 };
    match status {
        0x00 => HostStatus::Good,
        0x02 => check_condition(sense),
        // BUSY and TASK SET FULL.
        0x08 | 0x28 => HostStatus::Retry { after: Duration::from_millis(10), fault: fault(FaultKind::Busy) },
        // TASK ABORTED: by task management of another session.
        0x40 => HostStatus::Retry { after: now, fault: fault(FaultKind::Aborted) },
        _ => HostStatus::Failed(fault(FaultKind::Other)),
    }
}

fn check_condition(sense: &[u8]) -> HostStatus {
    let byte = |at: usize| sense.get(at).copied().unwrap_or(0);
    // Fixed format 70h and 71h, descriptor format 72h and 73h.
    let (key, asc, ascq) = match byte(0) & 0x7f {
        0x72 | 0x73 => (byte(1) & 0xf, byte(2), byte(3)),
        _ => (byte(2) & 0xf, byte(12), byte(13)),
    };
    let raw = 2 << 24 | u32::from(key) << 16 | u32::from(asc) << 8 | u32::from(ascq);
    let failed = |kind| HostStatus::Failed(Fault { kind, raw });
    let retry = |kind, ms| HostStatus::Retry { after: Duration::from_millis(ms), fault: Fault { kind, raw } };
    match (key, asc, ascq) {
        // RECOVERED ERROR: done.
        (0x1, ..) => HostStatus::Good,
        // NOT READY, becoming ready.
        (0x2, 0x04, _) => retry(FaultKind::NotReady, 200),
        (0x2, ..) => failed(FaultKind::NotReady),
        (0x3, ..) => failed(FaultKind::Medium),
        (0x5, 0x21, _) => failed(FaultKind::OutOfRange),
        (0x5, 0x25, _) => failed(FaultKind::NoVolume),
        (0x5, ..) => failed(FaultKind::Unsupported),
        (0x6, ..) => retry(FaultKind::Changed, 0),
        (0x7, 0x27, 0x07) => failed(FaultKind::NoSpace),
        (0x7, ..) => failed(FaultKind::WriteProtected),
        (0xb, ..) => retry(FaultKind::Aborted, 0),
        (0xe, ..) => failed(FaultKind::Miscompare),
        _ => failed(FaultKind::Other),
    }
}
