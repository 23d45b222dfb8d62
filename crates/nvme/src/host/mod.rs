//! The host's end of NVMe/TCP: one controller session without sockets.
//!
//! A [`Session`] has one admin connection (link 0) and, for I/O controllers, `queues` I/O connections
//! (links 1 and up). Its owner opens as many connections as [`Session::links_wanted`] says, feeds it
//! what arrives, and sends what it puts into the outbox of each link (the door is `base::host`). Once
//! an error is set, nothing goes on: the owner closes every connection and starts a new session.
//!
//! Every byte from the target is checked: a fault of the target ends in an [`Error`], at bounded memory.

pub mod fuzz;
mod queue;
mod session;
mod status;
#[cfg(test)]
mod tests;

pub use crate::spec::StatusField;
pub use queue::{Data, Queue};
pub use session::{DiscoveryRecord, Session};
pub use status::block_status;

use crate::pdu::Violation;
use base::{Duration, Uuid};

/// Who we are, whom we want, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our host NQN.
    pub host_nqn: String,
    /// Our host identifier.
    pub host_id: [u8; 16],
    /// The subsystem; the well-known discovery NQN opens a discovery controller.
    pub subsystem: String,
    /// The namespace; 0 for the first active one.
    pub nsid: u32,
    /// Ask for header digests.
    pub header_digest: bool,
    /// Ask for data digests.
    pub data_digest: bool,
    /// I/O connections, 1 and up. The controller may grant fewer: then fewer are opened.
    pub queues: u16,
    /// Commands under way on one I/O connection, 1 to 1023. If the controller's queues hold fewer, then fewer:
    /// [`Session::depth`] says how many.
    pub depth: u16,
    /// Ask for SQ flow control. Without it the controller may leave out response capsules of reads; some do so
    /// with it, and that is taken.
    pub flow_control: bool,
    /// Keep-alive timeout; zero for none.
    pub keep_alive: Duration,
}

impl Config {
    /// 1 queue of 32 commands, no digests, keep-alive 5 s, first namespace.
    pub fn new(host_nqn: &str, host_id: [u8; 16], subsystem: &str) -> Self {
        Self {
            host_nqn: host_nqn.into(),
            host_id,
            subsystem: subsystem.into(),
            nsid: 0,
            header_digest: false,
            data_digest: false,
            queues: 1,
            depth: 32,
            flow_control: true,
            keep_alive: Duration::from_secs(5),
        }
    }
    /// Whether this opens a discovery controller.
    pub fn is_discovery(&self) -> bool {
        self.subsystem == crate::spec::DISCOVERY_NQN
    }
}

/// Why a session ended. The owner closes its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The controller broke the protocol.
    Protocol(Violation),
    /// The controller said that we did (fatal error status and information).
    Terminated {
        /// Fatal error status.
        fes: u16,
        /// Fatal error information.
        fei: u32,
    },
    /// The controller refused a command that the session cannot do without.
    Refused {
        /// Which.
        what: &'static str,
        /// Its status.
        status: StatusField,
    },
    /// The controller cannot do what we need.
    Incapable(Lack),
    /// No answer in time: to which command.
    TimedOut(&'static str),
}

/// What a controller or its namespace cannot do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// Its capsules hold too little data.
    CapsuleData,
    /// It wants in-band authentication.
    Authentication,
    /// Its queues hold no command.
    QueueSize,
    /// It reports a fatal status.
    FatalStatus,
    /// No namespace is active for this host.
    NoNamespace,
    /// The namespace is not active for this host.
    NamespaceInactive,
    /// The namespace has blocks of a size that we do not take.
    BlockSize,
    /// Its discovery log has more than 1024 entries.
    DiscoveryLog,
}

/// What is known of the namespace once the session is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Namespace {
    /// Its id.
    pub nsid: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Size in blocks; 0 once it is gone.
    pub blocks: u64,
    /// Largest transfer of one command, bytes.
    pub transfer_max: u32,
    /// NGUID.
    pub nguid: [u8; 16],
    /// UUID, nil if there is none.
    pub uuid: Uuid,
}
