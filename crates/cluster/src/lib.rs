//! Cluster: two heads share drives. This crate decides, by blocks on the drives, which heads are in, which one leads, and which one is shut out.
//!
//! ```text
//!   heartbeats by the link ─┐                              ┌─▶ read and write blocks on voters
//!   heartbeats on drives ───┼─▶ watch ─▶ suspect ─▶ decider ─┤
//!   time ───────────────────┘                           │    └─▶ decided: one record for each epoch
//!                                                       ▼
//!                          fence: the other's key is gone from every drive ─▶ serve
//! ```
//!
//! Owns: the system record and its epochs (docs/formats/system.md), heartbeats and suspicion, and which keys must go from a
//! drive. Promises: one record for each epoch; no head serves while another one's key is on a drive that it serves
//! from. Does not know pools, volumes and hosts, how bytes travel, or what time it is. Why so: docs/rfcs/0007-cluster.md.

pub mod decide;
pub mod fence;
pub mod heartbeat;
pub mod lateness;
pub mod link;
pub mod member;
pub mod message;
pub mod model;
pub mod parts;
pub mod record;
pub mod slot;
pub mod trial;
mod voters;
pub mod watch;
pub mod world;

pub use decide::{Ask, Decider, Outcome};
pub use heartbeat::Heartbeat;
pub use member::{Member, Part};

pub use record::{HeadNo, HeadRow, HeadState, SystemRecord, Voter};
pub use slot::Slot;
