//! Head: composes the rooms. One `Shard` per core moves bytes; one `Steward` per head decides.
//!
//! Owns admission, requests, drive operations, buffers, timers (Shard) and membership, configuration,
//! health, procedures (Steward). Promise: what SPECIFICATION.md says, in the kernel's world and in the
//! simulated one alike. Does not know the kernel, a clock, tokio, or how bytes look on the wire.

pub mod admission;
pub mod books;
pub mod layout;
pub mod limits;
pub mod mail;
pub mod order;
pub mod path;
pub mod peer;
pub mod report;
mod shard;
pub mod steward;

pub use array::format::DRIVE_BYTES_MIN;
pub use shard::{CREDITS, Deadlines, FLIGHTS, Shard, ShardConfig, TURN_PDUS};
