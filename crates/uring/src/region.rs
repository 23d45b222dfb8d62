//! The one region of memory that sockets and drives read and write, and the handle of each machine on its part.

use base::{Memory, Slice};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Huge pages are this large, so the region begins at a multiple of it.
const HUGE: usize = 2 << 20;
/// The region is made resident and registered in such pieces: io_uring takes at most 1 GiB per buffer, and a reactor
/// stands still for as long as one takes (a millisecond, about).
pub(crate) const CHUNK_BITS: u32 = 26;
/// io_uring takes so many registered buffers. What lies behind them (a TiB) is used without.
pub(crate) const CHUNKS_MAX: usize = 1 << 14;
/// So much is made resident in one call. The call keeps changes of the address space waiting, and they others.
const STEP: usize = HUGE;
/// Zeroes at the beginning of the region, from which drives without a better way are zeroed.
pub(crate) const ZEROES: Slice = Slice { at: 0, len: 256 << 10 };

/// Anonymous memory that lives until the last handle on it is gone; the threads that submit to the
/// kernel hold one, and the kernel has ended a thread's operations before the thread can be joined.
pub(crate) struct Region {
    base: *mut u8,
    len: usize,
    /// Bytes from the beginning that were made resident.
    resident: AtomicU64,
}

// SAFETY: the region is plain memory at a fixed address; who may look at which bytes is decided by the
// parts (each handed out once) and by the doors' rule that a machine leaves slices alone that it has
// given to the world.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `len` bytes, populated as they are touched.
    pub(crate) fn map(len: usize) -> io::Result<Arc<Self>> {
        let len = len.next_multiple_of(HUGE);
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nobody's memory.
        let raw = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len + HUGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if raw == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let skip = raw.align_offset(HUGE);
        let base = raw.cast::<u8>().wrapping_add(skip);
        // SAFETY: both ranges lie in the mapping just made and outside of [base, base + len); the advice
        // changes no contents.
        unsafe {
            if skip > 0 {
                libc::munmap(raw, skip);
            }
            if skip < HUGE {
                libc::munmap(base.add(len).cast(), HUGE - skip);
            }
            libc::madvise(base.cast(), len, libc::MADV_HUGEPAGE);
            // A forked child must not share pages that the kernel writes to.
            libc::madvise(base.cast(), len, libc::MADV_DONTFORK);
        }
        Ok(Arc::new(Self { base, len, resident: AtomicU64::new(0) }))
    }
    /// Where `s` lies in this process. Panics if it is not in the region.
    pub(crate) fn pointer(&self, s: Slice) -> *mut u8 {
        assert!(
            s.at <= self.len as u64 && u64::from(s.len) <= self.len as u64 - s.at,
            "a slice lies outside of the region"
        );
        self.base.wrapping_add(s.at as usize)
    }
    /// Pieces to make resident and to register.
    pub(crate) fn chunks(&self) -> usize {
        self.len.div_ceil(1 << CHUNK_BITS)
    }
    /// Where piece `n` lies.
    pub(crate) fn chunk(&self, n: usize) -> libc::iovec {
        let at = n << CHUNK_BITS;
        libc::iovec {
            iov_base: self.base.wrapping_add(at).cast(),
            iov_len: (self.len - at).min(1 << CHUNK_BITS),
        }
    }
    /// Makes piece `n` resident, the one after the last one, while others use the region. False: `stop` said so.
    ///
    /// # Errors
    /// The kernel has no memory.
    pub(crate) fn make_resident(&self, n: usize, stop: impl Fn() -> bool) -> io::Result<bool> {
        let libc::iovec { iov_base, iov_len } = self.chunk(n);
        for at in (0..iov_len).step_by(STEP) {
            if stop() {
                return Ok(false);
            }
            let len = STEP.min(iov_len - at);
            // SAFETY: inside of the mapping; as a touch it makes pages resident and changes no contents.
            let done = unsafe {
                let at = iov_base.cast::<u8>().wrapping_add(at);
                libc::madvise(at.cast(), len, libc::MADV_POPULATE_WRITE)
            };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
            self.resident.fetch_add(len as u64, Ordering::Relaxed);
        }
        Ok(true)
    }
    /// Bytes that were made resident so far.
    pub(crate) fn resident(&self) -> u64 {
        self.resident.load(Ordering::Relaxed)
    }
    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `map` kept; every handle on it is gone.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

/// A machine's part of the region: its own memory, and the staging buffers that are received into.
pub struct RegionPart {
    region: Arc<Region>,
    /// What may be looked at: the staging buffers, then the machine's own.
    visible: (u64, u64),
    /// What the machine may use as it likes.
    own: (u64, u64),
}

impl RegionPart {
    /// A handle on `[staging, end)` of which `[own, end)` is the machine's. Only one may be made for any
    /// byte, as it gives out references.
    pub(crate) fn new(region: Arc<Region>, staging: u64, own: u64, end: u64) -> Self {
        assert!(staging <= own && own <= end && end <= region.len() as u64, "a part lies in the region");
        Self { region, visible: (staging, end), own: (own, end) }
    }
    /// Parts the handle: the staging buffers (its `extent`), and the machine's own memory. So a machine
    /// can read what arrived while it writes to its own.
    pub fn split(self) -> (RegionPart, RegionPart) {
        let (staging, own) = ((self.visible.0, self.own.0), self.own);
        let staging = Self { region: Arc::clone(&self.region), visible: staging, own: staging };
        (staging, Self { region: self.region, visible: own, own })
    }
    fn check(&self, s: Slice) -> *mut u8 {
        assert!(
            s.at >= self.visible.0 && s.end() <= self.visible.1,
            "a machine looks at memory that is not its own"
        );
        self.region.pointer(s)
    }
}

impl Memory for RegionPart {
    /// The machine's own memory. Staging buffers lie outside of it: their bytes may be looked at too,
    /// but they are the world's to give out.
    fn extent(&self) -> (u64, u64) {
        (self.own.0, self.own.1 - self.own.0)
    }
    fn bytes(&self, s: Slice) -> &[u8] {
        let at = self.check(s);
        // SAFETY: in the part of this only handle, so nobody in this process writes there but through
        // `&mut self`. The kernel may, in slices given to it, which the machine does not look at until
        // they come back; if it did, it would see some bytes, never freed memory.
        unsafe { std::slice::from_raw_parts(at, s.len as usize) }
    }
    fn bytes_mut(&mut self, s: Slice) -> &mut [u8] {
        let at = self.check(s);
        // SAFETY: as in `bytes`; `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(at, s.len as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> RegionPart {
        RegionPart::new(Region::map(1 << 20).unwrap(), 4096, 8192, 16384)
    }

    #[test]
    fn a_part_is_zero_at_first_and_keeps_what_is_written() {
        let mut p = part();
        assert_eq!(p.extent(), (8192, 8192));
        assert_eq!(p.bytes(Slice::new(8192, 8)), [0; 8]);
        p.bytes_mut(Slice::new(16380, 4)).copy_from_slice(b"last");
        assert_eq!(p.bytes(Slice::new(16380, 4)), b"last");
        assert_eq!(p.bytes(Slice::new(4096, 4)), [0; 4], "staging buffers may be looked at");
    }

    /// Pages of the region that are in memory, of 4 KiB.
    fn pages_there(region: &Region) -> usize {
        let mut pages = vec![0u8; region.len() / 4096];
        // SAFETY: the mapping is there, and the vector has a byte for each of its pages.
        assert_eq!(unsafe { libc::mincore(region.base.cast(), region.len(), pages.as_mut_ptr()) }, 0);
        pages.iter().filter(|p| **p & 1 == 1).count()
    }

    #[test]
    fn memory_is_there_as_it_is_touched_and_all_of_a_piece_once_it_was_made_resident() {
        let region = Region::map((1 << CHUNK_BITS) + (6 << 20)).expect("mapped");
        assert_eq!(
            (pages_there(&region), region.chunks()),
            (0, 2),
            "the mapping itself makes nothing resident"
        );
        let at = (1u64 << CHUNK_BITS) + 4096;
        let mut part = RegionPart::new(Arc::clone(&region), at, at, at + 8192);
        part.bytes_mut(Slice::new(at, 5)).copy_from_slice(b"early");
        assert_eq!(region.make_resident(1, || true).ok(), Some(false));
        assert_eq!(region.make_resident(1, || false).ok(), Some(true));
        assert_eq!(pages_there(&region), (6 << 20) / 4096, "the second piece, which ends with the region");
        assert_eq!(region.resident(), 6 << 20);
        assert_eq!(part.bytes(Slice::new(at, 5)), b"early", "what was written before stays");
    }

    #[test]
    #[should_panic(expected = "not its own")]
    fn bytes_after_the_part_may_not_be_looked_at() {
        part().bytes(Slice::new(16380, 5));
    }

    #[test]
    #[should_panic(expected = "not its own")]
    fn bytes_before_the_part_may_not_be_written() {
        part().bytes_mut(Slice::new(4095, 1));
    }

    #[test]
    #[should_panic(expected = "outside of the region")]
    fn a_slice_beyond_the_region_has_no_address() {
        Region::map(1 << 20).unwrap().pointer(Slice::new(u64::MAX - 4, 8));
    }
}
