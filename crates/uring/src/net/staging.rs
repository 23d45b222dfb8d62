//! Staging: the receive buffers that the kernel takes when bytes arrive, so that idle connections hold no
//! memory (a provided buffer ring, Linux 5.19).
//!
//! The kernel fills buffers in the order in which it got them. If it had all of them, each would come round only after
//! all others and would have left the processor's cache: the kernel would write cold memory, and we would read cold
//! memory. So the kernel has no more than a turn takes, and gets the buffer next that came back last. When it runs out,
//! it gets more.

use crate::region::Region;
use crate::ring::Ring;
use base::Slice;
use io_uring::types::BufRingEntry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// Size of a staging buffer, bytes: a full autotuned burst of a 100 Gb/s link, one TSO segment.
pub(crate) const STAGING_BYTES: u32 = 64 << 10;

/// The group of provided buffers of one ring.
pub(crate) struct Staging {
    /// Where the buffers lie in the region.
    start: u64,
    region: Arc<Region>,
    /// The ring shared with the kernel, in pages of its own.
    ring: *mut BufRingEntry,
    mapped: usize,
    mask: u16,
    tail: u16,
    /// Given to the machine, by buffer.
    out: Vec<bool>,
    /// Neither with the machine nor with the kernel; the last one is the next one.
    here: Vec<u16>,
    /// How many the kernel has, and how many it should have.
    given: u16,
    wanted: u16,
    /// Taken, and not found, since the kernel was last called; and both in the busiest turn of this stretch.
    taken: u16,
    missing: u16,
    most: u16,
    turns: u32,
}

/// The kernel has as many buffers as the busiest turn of a stretch took. So many turns are one.
const STRETCH: u32 = 4096;
/// It has at least so many.
const WANTED_MIN: u16 = 2;

impl Staging {
    /// Bytes of the region that `buffers` of them take.
    pub(crate) fn bytes(buffers: u16) -> u64 {
        u64::from(buffers) * u64::from(STAGING_BYTES)
    }

    /// Registers `buffers` (a power of two) buffers that lie at `start` of the region.
    pub(crate) fn new(ring: &mut Ring, region: Arc<Region>, start: u64, buffers: u16) -> io::Result<Self> {
        assert!(buffers.is_power_of_two() && buffers <= 1 << 15, "staging buffers are a power of two");
        let mapped = (usize::from(buffers) * size_of::<BufRingEntry>()).next_multiple_of(4096);
        // SAFETY: a new anonymous mapping touches nobody's memory.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut staging = Self {
            start,
            region,
            ring: at.cast(),
            mapped,
            mask: buffers - 1,
            tail: 0,
            out: vec![false; usize::from(buffers)],
            here: (0..buffers).rev().collect(),
            given: 0,
            wanted: WANTED_MIN,
            taken: 0,
            missing: 0,
            most: 0,
            turns: 0,
        };
        // SAFETY: page-aligned, large enough, unmapped only when the reactor has dropped the ring; the
        // buffers lie in the region, which lives longer.
        unsafe { ring.register_staging(at as u64, buffers)? };
        staging.before_enter();
        Ok(staging)
    }

    /// The kernel has filled `len` bytes of buffer `id`.
    pub(crate) fn take(&mut self, id: u16, len: u32) -> Slice {
        assert!(!self.out[usize::from(id)], "the kernel gave out a staging buffer twice");
        assert!(len <= STAGING_BYTES, "the kernel filled more than a staging buffer");
        self.out[usize::from(id)] = true;
        self.given -= 1;
        self.taken += 1;
        self.buffer(id).head(len)
    }

    /// The machine gives a buffer back: the slice that it got, or a part of it.
    pub(crate) fn recycle(&mut self, data: Slice) {
        let id = data.at.checked_sub(self.start).expect("a recycled slice is a staging buffer")
            / u64::from(STAGING_BYTES);
        let id = u16::try_from(id)
            .ok()
            .filter(|id| *id <= self.mask)
            .expect("a recycled slice is a staging buffer");
        assert!(std::mem::take(&mut self.out[usize::from(id)]), "a staging buffer was recycled twice");
        self.here.push(id);
    }

    /// Whether the kernel has a buffer left, or can be given one.
    pub(crate) fn has_free(&self) -> bool {
        self.given > 0 || !self.here.is_empty()
    }

    /// The kernel had none when bytes came.
    pub(crate) fn ran_out(&mut self) {
        self.missing += 1;
    }

    /// The machine has given back what it will before the kernel is called: that gets what it shall have.
    pub(crate) fn before_enter(&mut self) {
        let needed = std::mem::take(&mut self.taken).saturating_add(std::mem::take(&mut self.missing));
        self.most = self.most.max(needed);
        self.turns += 1;
        if self.turns == STRETCH {
            self.wanted = WANTED_MIN.max(std::mem::take(&mut self.most));
            self.turns = 0;
        }
        self.wanted = self.wanted.max(needed).min(self.mask + 1);
        self.provide();
    }

    fn buffer(&self, id: u16) -> Slice {
        Slice::new(self.start + u64::from(id) * u64::from(STAGING_BYTES), STAGING_BYTES)
    }

    fn provide(&mut self) {
        let before = self.given;
        while self.given < self.wanted
            && let Some(id) = self.here.pop()
        {
            let address = self.region.pointer(self.buffer(id)) as u64;
            let at = self.tail.wrapping_add(self.given - before);
            // SAFETY: the index is below the number of entries, which all lie in our mapping; the kernel reads
            // an entry only once the tail says that it is there.
            unsafe {
                let entry = &mut *self.ring.add(usize::from(at & self.mask));
                entry.set_addr(address);
                entry.set_len(STAGING_BYTES);
                entry.set_bid(id);
            }
            self.given += 1;
        }
        if self.given == before {
            return;
        }
        self.tail = self.tail.wrapping_add(self.given - before);
        // SAFETY: the tail lies in the first entry's reserved field, aligned to two bytes, and is accessed
        // only atomically from here on; the release store publishes the entries.
        unsafe {
            let tail = BufRingEntry::tail(self.ring).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`. The reactor drops its ring before this, and the kernel pins
        // what it still uses.
        unsafe { libc::munmap(self.ring.cast(), self.mapped) };
    }
}
