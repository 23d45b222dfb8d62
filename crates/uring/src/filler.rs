//! Filler: makes the region resident while the machines work.
//!
//! First touches of memory cost a second for each few GiB, on some machines much more, and a head that stands up again
//! has hosts that wait. So nothing is touched before it is used, and this thread, once it is asked to, touches the rest and
//! has it registered piece by piece. Whatever it has passed is there for good if the process's memory is locked.
//!
//! It keeps the mark of an I/O flusher that it has from its parent: if it waited for a volume that this process
//! serves, while it holds the lock of the address space, who serves that volume might wait for it.

use crate::drive::Drives;
use crate::mail::{Control, Routes};
use crate::process;
use crate::region::Region;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The running thread; dropped, it stops.
pub(crate) struct Filler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Filler {
    /// Begins. Every reactor gets an event for each piece that is there.
    pub(crate) fn start<M: Send + 'static>(
        region: Arc<Region>,
        routes: Arc<Routes<M>>,
        drives: Arc<Drives>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let body = move || {
            let stop = || stopped.load(Ordering::Relaxed);
            for n in 0..region.chunks() {
                match region.make_resident(n, stop) {
                    Ok(true) => routes.broadcast(|| Control::Resident(n)),
                    Ok(false) => return,
                    Err(e) => {
                        let (mib, all) = (region.resident() >> 20, region.len() >> 20);
                        drives.notice(format!(
                            "Only {mib} of {all} MiB of memory could be had ahead ({e}), the rest is asked for as it is \
                             used: give less (memory in head.toml)"
                        ));
                        break;
                    }
                }
            }
            process::make_program_resident(stop);
        };
        // Without it everything works, and costs a little more.
        let thread = thread::Builder::new().name("memory".into()).spawn(body).ok();
        Self { stop, thread }
    }
    /// Waits until everything is there, or cannot be had.
    pub(crate) fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}
