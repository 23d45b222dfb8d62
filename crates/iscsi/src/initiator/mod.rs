//! The initiator's end of iSCSI: one session of one connection, without sockets.
//!
//! A [`Session`] logs in, learns the logical unit (or lists targets, on a discovery session), and then
//! carries block commands. Its owner opens the connection, feeds it what arrives, and sends what it puts
//! into the outbox (the door is `base::host`). After an error the session does nothing more: the owner closes
//! the connection and starts the session anew (error recovery level 0).
//!
//! Every byte from the target is checked: a fault of the target ends in an [`Error`], at bounded memory.

pub mod fuzz;
mod login;
mod receive;
mod sense;
mod session;
#[cfg(test)]
mod tests;

pub use sense::status_of;
pub use session::{FoundTarget, Session};

use base::view::Secret;
use base::{Duration, Fault, IscsiFault};

/// A CHAP name and secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// CHAP_N.
    pub name: String,
    /// The shared secret.
    pub secret: Secret,
}

/// Who we are, whom we want, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our iSCSI name.
    pub initiator: String,
    /// Our part of the session identifier: sessions at one target under one name need different ones.
    pub isid: [u8; 6],
    /// The target's iSCSI name; None opens a discovery session.
    pub target: Option<String>,
    /// The logical unit.
    pub lun: u16,
    /// If set, CHAP is offered, and nothing else.
    pub chap: Option<Credential>,
    /// If set, the target must prove itself too (needs `chap`).
    pub mutual: Option<Credential>,
    /// Offer MD5 alone; else SHA-256 and then MD5. Some targets take the number of SHA-256 for SHA-1.
    pub chap_md5_only: bool,
    /// Ask for header digests.
    pub header_digest: bool,
    /// Ask for data digests.
    pub data_digest: bool,
    /// Offer of InitialR2T: No allows data without R2T, up to FirstBurstLength.
    pub initial_r2t: bool,
    /// Offer of ImmediateData.
    pub immediate_data: bool,
    /// Offer of FirstBurstLength, bytes.
    pub first_burst: u32,
    /// Offer of MaxBurstLength, bytes.
    pub max_burst: u32,
    /// Our MaxRecvDataSegmentLength, bytes.
    pub max_recv: u32,
    /// Commands under way, 1 to 1023; the target's window may be smaller.
    pub depth: u16,
    /// A NOP-Out goes out this often, and must be answered before the next one; zero for none.
    pub ping: Duration,
    /// Decides the challenges of mutual CHAP: the world's entropy.
    pub seed: u64,
}

impl Config {
    /// 32 commands, no digests, no CHAP, immediate and unsolicited data, a ping every 5 s, LUN 0.
    pub fn new(initiator: &str, target: Option<&str>) -> Self {
        Self {
            initiator: initiator.into(),
            isid: [0x80, 0, 0, 0, 0, 1],
            target: target.map(Into::into),
            lun: 0,
            chap: None,
            mutual: None,
            chap_md5_only: false,
            header_digest: false,
            data_digest: false,
            initial_r2t: false,
            immediate_data: true,
            first_burst: 65_536,
            max_burst: 1 << 20,
            max_recv: 262_144,
            depth: 32,
            ping: Duration::from_secs(5),
            seed: 0,
        }
    }
}

/// Why a session ended. The owner closes its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The target broke the protocol.
    Protocol(IscsiFault),
    /// The login was refused: class and detail (RFC 7143 11.13.5).
    LoginRefused(u16),
    /// The target did not prove itself (mutual CHAP).
    NotTheTarget,
    /// The target rejected a PDU (RFC 7143 11.17.1).
    Rejected(u8),
    /// The target asked us to go, or said that it will drop us (RFC 7143 11.9.1).
    AskedToGo(u8),
    /// A command that the session cannot do without was refused.
    Refused {
        /// Which.
        what: &'static str,
        /// What the target said.
        fault: Fault,
    },
    /// The target cannot do what we need.
    Incapable(Lack),
    /// No answer in time: to which PDU.
    TimedOut(&'static str),
}

/// What a target or its logical unit cannot do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The logical unit is not mapped to this initiator.
    NotMapped,
    /// The logical unit is not a disk.
    NotADisk,
    /// The logical unit has blocks of a size that we do not take.
    BlockSize,
    /// Our outbox is too small for a login.
    Outbox,
}

/// What is known of the logical unit once the session is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unit {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Size in blocks.
    pub blocks: u64,
    /// Largest transfer of one command, bytes.
    pub transfer_max: u32,
    /// NAA designator of VPD page 83h, zero if there is none.
    pub naa: [u8; 16],
}
