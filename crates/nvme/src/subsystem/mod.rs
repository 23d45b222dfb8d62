//! The target: one TCP connection of a host, from its first byte to its last.
//!
//! [`Connection`] implements the door of `base::front`. It owns the PDU parser, the command table of one
//! queue, the digests and R2Ts; on an admin queue also the controller: properties, features, log pages,
//! asynchronous events, keep alive. Memory: a few KiB, the command table made when Connect gives the
//! queue's depth (136 bytes per entry), and buffers of the head. Does not know drives, other
//! connections or clocks.
//!
//! A command's way: parsed → (buffer) → (data) → submitted → answered; see `table::Phase`. A
//! connection's way: ICReq → Connect → the Steward's answer → commands; see `connection::Stage`.

mod ana;
mod connect;
mod connection;
mod controller;
mod discovery;
mod features;
mod identify;
mod io;
mod log;
mod namespaces;
mod resets;
mod rx;
mod table;
#[cfg(test)]
mod tests;

pub use connection::Connection;

use base::Duration;
use base::view::Portal;
use core::net::SocketAddr;

/// Bytes of the outbox ring that the head gives each connection: headers and completions only; every
/// payload goes from its buffer.
pub const OUTBOX_BYTES: u32 = 16 << 10;

/// Most in-capsule data, bytes (NVMe/TCP 3.3.2.1.1 demands 8192 on the admin queue).
pub const CAPSULE_DATA_MAX: u32 = 8192;

/// MAXH2CDATA: most data of one H2CData, bytes.
pub const H2C_DATA_MAX: u32 = 1 << 20;

/// A missing piece of payload longer than this is received where it belongs instead of being copied.
pub const DIRECT_MIN: u32 = 8 << 10;
/// From so many bytes on the header of H2CData is received alone, so that none of its data is copied.
pub const BULK_MIN: u32 = 32 << 10;

/// Bytes of data that a connection asks its host for at a time, if it is more than one command's: enough to keep
/// a fast link busy, and so few that they are still in a processor's cache when the last of them has come.
pub const ASKED_MAX: u64 = 1 << 20;

/// Asynchronous Event Requests that a controller holds.
pub const ASYNC_EVENTS_MAX: u16 = 4;

/// Abort commands of a controller that are under way (ACL + 1).
pub const ABORTS_MAX: u8 = 4;

/// Cross-Controller Resets of a controller that are under way (CCRL).
pub const RESETS_MAX: u8 = 4;

/// How long one of them may take (CQT): a drive that answers nothing is given up within that.
pub const QUIESCE_TIME: Duration = Duration::from_secs(5);

/// Time from the first byte to an accepted Connect.
pub const LOGIN_TIME: Duration = Duration::from_secs(10);

/// Time in which a host must send a PDU that it began, or the data of an R2T.
pub const DATA_TIME: Duration = Duration::from_secs(30);

/// Keep alive of a discovery controller that asked for none.
pub const DISCOVERY_KEEP_ALIVE: Duration = Duration::from_secs(120);

/// What a keep alive may be late.
pub const KEEP_ALIVE_GRACE: Duration = Duration::from_secs(2);

/// What the head knows of a new connection.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Our end; reported in discovery where the portal's address is unspecified.
    pub local: SocketAddr,
    /// The host's end.
    pub peer: SocketAddr,
    /// The portal that it came to.
    pub portal: Portal,
    /// Most entries of a queue (MQES + 1), at least 32 and at most 32768.
    pub queue_depth_max: u16,
    /// Most I/O queues of a controller, at least 1.
    pub io_queues_max: u16,
    /// Decides the random numbers of controllers: entropy in production.
    pub seed: u64,
}
