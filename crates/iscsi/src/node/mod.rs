//! The target's end of an iSCSI connection, behind the door of `base::front`.
//!
//! `connection` cuts the stream into PDUs, `login` brings an initiator to full feature phase, `session`
//! keeps sequence numbers, units and task management, `transfer` moves data, `discovery` answers SendTargets.
//! One connection per session, error recovery level 0: a fault on the wire ends the connection,
//! and the host logs in again.

mod connection;
mod discovery;
mod login;
mod session;
mod transfer;

#[cfg(test)]
mod tests;

pub use connection::Connection;

use base::Duration;
use base::view::Portal;
use core::net::SocketAddr;

/// Bytes of a connection's outbox ring.
pub const OUTBOX_BYTES: u32 = 32 << 10;
/// Room that answers with data leave for pings, task management and rejects, bytes.
const CONTROL_ROOM: u32 = 8 << 10;
/// Largest answer that is copied into the ring; larger ones take a buffer.
const ANSWER_BYTES_MAX: usize = 4096;
/// The longest data segment that we take, bytes; declared in MaxRecvDataSegmentLength.
const MAX_RECV: u32 = 256 << 10;
/// Before it is declared (RFC 7143 13.12), and in logins.
const MAX_RECV_DEFAULT: u32 = 8192;
/// MaxBurstLength that we agree to at most: one R2T for the largest write.
const MAX_BURST: u32 = 1 << 20;
/// FirstBurstLength that we agree to at most.
const FIRST_BURST: u32 = 256 << 10;
/// MaxOutstandingR2T that we agree to at most.
const MAX_OUTSTANDING_R2T: u16 = 4;
/// Text of one login or one text exchange, all PDUs together, bytes.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Ping data that is sent back; the rest is dropped. RFC 7143 11.18 bounds it by what the initiator can
/// receive; ours is smaller, since a ping must pass when there is room for nothing else. Initiators send none,
/// or a few bytes.
const PING_BYTES_MAX: usize = 4096;
/// Missing payload is received in place from this size on.
const DIRECT_BYTES_MIN: u32 = 8 << 10;
/// Slots for commands with the I bit, which MaxCmdSN does not hold back.
const IMMEDIATE_MAX: u16 = 8;
/// Task management functions under way.
const MANAGEMENTS_MAX: usize = 8;
/// Bytes of one step of long commands (WRITE SAME with zeroes, UNMAP).
const ZERO_STEP: u64 = 32 << 20;
/// Bytes of one step of commands that go through a buffer many times.
const COPY_STEP: u32 = 256 << 10;

/// A login must be over by then.
pub const LOGIN_TIME: Duration = Duration::from_secs(15);
/// A begun PDU or announced data must make progress within this time.
pub const DATA_TIME: Duration = Duration::from_secs(30);
/// A silent initiator is pinged after this time.
pub const IDLE_TIME: Duration = Duration::from_secs(20);
/// And must say something within this time.
pub const PING_TIME: Duration = Duration::from_secs(15);

/// What a new connection is made with.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionConfig {
    /// Our end; reported in discovery where a portal's address is unspecified.
    pub local: SocketAddr,
    /// The initiator's end.
    pub peer: SocketAddr,
    /// The portal that it came to.
    pub portal: Portal,
    /// Decides our CHAP challenges: entropy in production.
    pub seed: u64,
    /// Tasks at a time: at least 16, at most 1023.
    pub commands_max: u16,
}

impl ConnectionConfig {
    /// Portal group tag and relative target port.
    fn port(&self) -> u16 {
        (self.portal.id.0 + 1) as u16
    }
}
