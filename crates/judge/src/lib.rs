//! Judge: the finished program in the hands of real hosts and tools.
//!
//! A [`Head`] is a running daemon with its own state, drives in files and a network of its own; tests
//! (`tests/`) set it up by the command line as an operator does, and check it with programs of others:
//! kernels, libiscsi, QEMU, tshark, and a peer that behaves badly (`peer.rs`).
//!
//! Does not know: any crate of the product. What is seen here is seen by every user.

mod fio;
mod head;
pub mod legs;
pub mod load;
pub mod measure;
pub mod paths;
pub mod peers;
pub mod soak;

pub use fio::{Paced, Seen, fio_verify};
pub use head::{Head, Refusal, binary, fence, packed};

use std::time::{Duration, Instant};

/// Waits until `what` holds; panics with its name after so many seconds.
pub fn until(what: &str, seconds: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !holds() {
        assert!(Instant::now() < deadline, "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
