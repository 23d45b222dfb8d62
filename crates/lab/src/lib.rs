//! Lab: real Linux kernels and private networks for tests of a storage target.
//!
//! A [`Vm`] is a small QEMU guest with a stock Debian kernel and its NVMe/TCP and iSCSI tools; a
//! [`Net`] is a network namespace that guests, daemons and tools share, so that every test has port
//! 4420 and 3260 for itself and no packet leaves the machine. Both die with the value, and with the
//! process at the latest.
//!
//! Does not know: the product. It is proven against the kernel's own target (`tests/`), so that a red
//! test of the product is not a fault of the lab.
//!
//! Everything is kept under `MILLRACE_LAB_DIR`, else `~/.cache/millrace-lab`: about 0.6 GB for each
//! kernel. Guests are emulated (TCG), so it works on machines without virtualisation, slowly:
//! starting a program costs 20 to 60 ms, and no rate measured from a guest means anything.

mod cpio;
mod host;
mod image;
mod job;
mod net;
mod vm;

pub use host::{cannot, folder, sh, skipped};
pub use image::{Kernel, packages, setup};
pub use job::{Job, Output};
pub use net::{LANS, Net};
pub use vm::{Builder, Vm};
