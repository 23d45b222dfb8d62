//! Filler: makes the region resident while the machines work.
//!
//! The first touch of memory costs a second for each few GiB, on some machines much more, and hosts wait while a head
//! restarts. So the head touches no memory before it is used. This thread, once it is asked to, touches the rest and
//! registers it piece by piece. Pieces that it has passed stay resident if the memory of the process is locked.
//!
//! It keeps the I/O flusher mark of its parent. Without the mark it could wait for a volume of this process while it
//! holds the lock of the address space, and the thread that serves the volume could wait for that lock.

use crate::drive::Drives;
use crate::fault::{HouseNotice, errno};
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
                        let (bytes, all_bytes) = (region.resident(), region.len() as u64);
                        drives.notice(HouseNotice::NotResident { bytes, all_bytes, errno: errno(&e) });
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
