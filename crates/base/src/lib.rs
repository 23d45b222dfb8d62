//! Base: the words that every room shares, and nothing that any room decides.
//!
//! Owns addresses, time, tokens, the memory door, the effect sinks, the machine door, a few small
//! containers, and how sizes are written. Promise: plain data, no clock, no thread, no entropy, no I/O. Does not know any room.

#[macro_use]
mod faults;
pub mod command;
mod connection_fault;
mod containers;
pub mod drive;
mod encoding;
pub mod fake;
pub mod fence;
pub mod front;
pub mod host;
pub mod id;
pub mod machine;
pub mod memory;
pub mod planted;
pub mod prng;
pub mod time;
pub mod view;

pub use command::{Command, Op, Status};
pub use connection_fault::{ConnectionFault, IscsiFault, NvmeFault};
pub use containers::{histogram, outbox, slots};
pub use drive::kind::{self as drive_kind, DriveKind};
pub use drive::{DriveError, DriveHealth, DriveInfo, DriveOp, DriveOpKind, FileName, Place};
pub use drive::{DriveOpenFault, DriveUser, OpenError};
pub use encoding::{codec, crc, record, size, utc};
pub use fence::{Fence, FenceAct, FenceError, FenceKey, FenceKind, FenceOp, NoFence};
pub use front::{Answer, Ask, FrontIo, Tag, Want};
pub use histogram::{Coarse, Histogram};
pub use host::{Fault, FaultKind, HostCommand, HostDone, HostIo, HostStatus};
pub use id::{ConnectionId, DriveId, HostId, PortalId, Token, Uuid, VolumeId};
pub use machine::{Address, Dma, Effect, Effects, Event, Machine, NetError, StateError, StateFault, StateOp};
pub use memory::{Memory, Slice};
pub use outbox::Outbox;
pub use planted::{Bug, planted, planted_if};
pub use prng::Prng;
pub use size::SizeFault;
pub use slots::Slots;
pub use time::{Duration, Instant};
