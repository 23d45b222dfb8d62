//! uring: the kernel world. It carries out what machines ask for (`base::machine`) on Linux's io_uring.
//!
//! Owns sockets, drives, the region of memory, timers, mail between machines, the state directory and
//! the threads they live on. Promise: a buffer that the kernel holds is never reused before its
//! completion; `Closed`, `DriveDone` and `DriveClosed` come exactly once and only when the kernel holds
//! nothing any more; a machine that sleeps costs no CPU. Does not know layouts, sessions or protocols.
//!
//! ```text
//!   House ── one thread per machine ──▶ Reactor: reap ▶ on_event… ▶ on_timer ▶ end_of_turn ▶ effects ▶ enter
//!     │                                   │ net (sockets)   disk (drive ops)   staging (receive buffers)
//!     └── Drives (opened once for all), Routes (mail), Portals, notices
//! ```

// The rest of the project forbids unsafe code; here it cannot be avoided, as the kernel reads and
// writes memory behind the compiler's back. Every block says which promise makes it sound.
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

mod clock;
mod count;
mod drive;
mod fault;
mod filler;
mod house;
mod mail;
mod net;
mod probe;
pub mod process;
mod reactor;
mod region;
mod ring;
mod state;

pub use count::Counting;
pub use drive::nvme;
pub use fault::{HouseNotice, SetupFault, errno};
pub use house::{Config, House, MachineConfig, Panicked, Watch};
pub use mail::Post;
pub use net::{address, ethtool};
pub use probe::{Support, probe};
pub use reactor::{Counters, TURN_BUDGET};
pub use region::RegionPart;
pub use state::{Taken, candidates, on_state, taken};
