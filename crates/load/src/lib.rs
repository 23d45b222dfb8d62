//! Load: hosts that drive volumes through either protocol, verify what they read, and measure.
//!
//! - [`Initiator`]: one session with a target, NVMe/TCP or iSCSI, behind one door.
//! - [`Load`]: a machine that carries out a [`Plan`] over several of them and makes a [`Report`].
//! - [`Workload`], [`stamp`]: what comes next, and what it must read back.
//!
//! Promise: an error in the report is a real one. Connections lost and temporary refusals are retried
//! for as long as the patience of the plan lasts; a read is checked only if its expected data is known.
//! Does not know sockets, clocks or how figures are printed.

mod fault;
mod initiator;
mod machine;
mod plan;
mod report;
pub mod stamp;
mod workload;

/// How to reach a target by either protocol: what [`Target`] is made of.
pub use ::{iscsi::initiator as iscsi_host, nvme::host as nvme_host};
pub use fault::{PlanFault, RunFault, WrongRead};
pub use initiator::{Config, Down, Initiator, START_MAX, State, Target, VolumeInfo};
pub use machine::{Load, Mail};
pub use plan::{IO_BYTES_MAX, Pattern, Plan, VERIFIED_UNITS_MAX};
pub use report::{ConnectionFigures, End, Figures, Progress, Report};
pub use workload::{Pick, Workload};
