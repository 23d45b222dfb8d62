//! Words about NVMe/TCP and iSCSI: why a session with a target ended.

use super::connection_fault;
use load::{iscsi_host, nvme_host};
use nvme_host::StatusField;

/// Why an NVMe session ended.
pub fn nvme_error(error: &nvme_host::Error) -> String {
    use nvme_host::Error as E;
    match error {
        E::Protocol(v) => {
            format!("the controller broke the protocol: {}", connection_fault::nvme_fault(v.why))
        }
        E::Terminated { fes, fei } => {
            format!("the controller ended the connection (fatal error {fes}, information {fei:#x})")
        }
        E::Refused { what, status } => format!("{what} was refused: {}", nvme_status(*status)),
        E::Incapable(lack) => format!("the controller is not usable: {}", nvme_lack(*lack)),
        E::TimedOut(what) => format!("no answer in time: {what}"),
    }
}

/// The standard's name of a status in words, and for a Connect what is likely wrong.
pub fn nvme_status(status: StatusField) -> String {
    let code = status.code();
    let why = match code {
        StatusField::CONNECT_PARAMETERS => "no such subsystem, or no such host: check both NQNs",
        StatusField::CONNECT_HOST => "this host is not let in: check its NQN",
        StatusField::CONNECT_BUSY => "the controller is busy",
        StatusField::CONNECT_FORMAT => "the two sides speak different versions",
        _ => "",
    };
    let name =
        code.name().map_or_else(|| format!("status {:#05x}", code.0), |n| n.to_lowercase().replace('_', " "));
    if why.is_empty() { name } else { format!("{why} ({name})") }
}

fn nvme_lack(lack: nvme_host::Lack) -> &'static str {
    use nvme_host::Lack as L;
    match lack {
        L::CapsuleData => "its capsules hold too little data",
        L::Authentication => "it wants in-band authentication",
        L::QueueSize => "its queues hold no command",
        L::FatalStatus => "it reports a fatal status",
        L::NoNamespace => "no namespace is active for this host",
        L::NamespaceInactive => "the namespace is not active for this host",
        L::BlockSize => "the namespace's block size",
        L::DiscoveryLog => "a discovery log of more than 1024 entries",
    }
}

/// Why an iSCSI session ended.
pub fn iscsi_error(error: &iscsi_host::Error) -> String {
    use iscsi_host::Error as E;
    match error {
        E::Protocol(why) => {
            format!("the target broke the protocol: {}", connection_fault::iscsi_fault(*why))
        }
        E::LoginRefused(status) => {
            let why = match status {
                0x0201 => "authentication failed",
                0x0202 => "this initiator may not use the target",
                0x0203 => "no such target",
                0x0206 => "too many connections",
                0x0301 => "service unavailable",
                0x0302 => "out of resources",
                s if s >> 8 == 1 => "the target has moved",
                _ => "login refused",
            };
            format!("{why} (status {status:#06x})")
        }
        E::NotTheTarget => "the target did not prove that it knows the secret".into(),
        E::Rejected(reason) => format!("the target rejected a PDU (reason {reason:#04x})"),
        E::AskedToGo(event) => format!("the target asked for the end (event {event})"),
        E::Refused { what, fault } => format!("{what} was refused: {:?} ({:#010x})", fault.kind, fault.raw),
        E::Incapable(lack) => format!("the target is not usable: {}", iscsi_lack(*lack)),
        E::TimedOut(what) => format!("no answer in time: {what}"),
    }
}

fn iscsi_lack(lack: iscsi_host::Lack) -> &'static str {
    use iscsi_host::Lack as L;
    match lack {
        L::NotMapped => "the logical unit is not mapped to this initiator",
        L::NotADisk => "the logical unit is not a disk",
        L::BlockSize => "the logical unit's block size",
        L::Outbox => "our outbox is too small for a login",
    }
}
