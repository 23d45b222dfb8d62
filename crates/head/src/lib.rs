//! Head: composes the rooms. One `Shard` per core moves bytes; one `Steward` per head decides.
//!
//! Owns admission, requests, drive operations, buffers, timers (Shard) and membership, configuration,
//! health, procedures (Steward). Promise: what SPECIFICATION.md says, in the kernel's world and in the
//! simulated one alike. Does not know the kernel, a clock, tokio, or how bytes look on the wire.

mod arena;
pub mod buffers;
pub mod caps;
pub mod depth;
pub mod direct;
pub mod fair;
mod flow;
pub mod gates;
pub mod layout;
mod lending;
pub mod limits;
mod lines;
mod link;
pub mod mail;
pub mod order;
mod places;
pub mod report;
mod request;
mod shard;
pub mod stages;
pub mod steward;
#[cfg(test)]
mod trial;

pub use shard::{Deadlines, FLIGHTS, PLACES, Shard, ShardConfig, TURN_PDUS};
