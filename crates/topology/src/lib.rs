//! Topology: what a machine is made of, read from a tree of files and nothing else.
//!
//! Owns the recording (files of sysfs and proc as text), what follows from it (sockets, PCIe tree, links, drives,
//! ports, interrupts, what the head does on them) and the picture of it. A [`Source`] hands out files; it is the only
//! way to a machine, so that another person's machine is read like this one, and a test's like both.
//! Promise: any recording gives a [`Machine`]: what is known is in it, what could not be read is named in `gaps`,
//! nothing panics, and nothing is concluded from what was not seen. Does not know the head's rooms, clocks or files.

mod cpu;
mod drive;
pub mod explain;
mod gap;
mod health;
mod interrupt;
mod machine;
mod net;

mod pci;
pub mod plan;
mod record;
mod recording;
mod status;
mod svg;
pub mod tune;

pub use cpu::{Cpu, Node, Socket, cores_busy};
pub use drive::{Activity, Drive, DriveKind, Temperature, Usual};
pub use gap::Gap;
pub use health::{Health, Silent, Warning, Wear};
pub use interrupt::Interrupt;
pub use machine::{Machine, Measured, SharedBank, size};
pub use net::{Port, payload_share};
pub use pci::{Class, Device, Lanes, Link, PortKind, Speed};
pub use record::{Recorder, plain_name};
pub use recording::{Clock, FILE_MAX, Missing, Reading, Recording, RecordingError, Source, hex, ranges};
pub use status::{Own, OwnShard};
pub use svg::{Label, escape, svg};
