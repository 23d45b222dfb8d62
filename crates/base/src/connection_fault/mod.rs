//! Why a connection was ended or rejected, as a type. Its words are the daemon's.

mod iscsi;
mod nvme;

pub use iscsi::IscsiFault;
pub use nvme::NvmeFault;
use serde::{Deserialize, Serialize};

/// Why a connection was ended or rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[serde(tag = "code", content = "fault", rename_all = "snake_case")]
pub enum ConnectionFault {
    /// By the rules of NVMe/TCP.
    Nvme(NvmeFault),
    /// By the rules of iSCSI.
    Iscsi(IscsiFault),
    /// No memory for another connection.
    NoMemory,
    /// No memory for the queue's commands.
    NoMemoryForCommands,
    /// Its host has most of the connections or command slots there are, and the rest is for others.
    HostOverShare,
    /// Too many connections that do not log in.
    TooManyUnauthenticated,
    /// Too many discovery sessions of unknown hosts.
    TooMuchDiscovery,
    /// It kept memory for data that it did not send.
    OwesData,
    /// It kept memory for data that it asked for and did not take.
    TakesNothing,
    /// The other head said something that is not understood.
    NotUnderstood,
    /// It is not the other head.
    NotTheOtherHead,
}

impl From<NvmeFault> for ConnectionFault {
    fn from(fault: NvmeFault) -> Self {
        Self::Nvme(fault)
    }
}

impl From<IscsiFault> for ConnectionFault {
    fn from(fault: IscsiFault) -> Self {
        Self::Iscsi(fault)
    }
}
