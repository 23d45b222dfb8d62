//! Memory as a drive: shared by all reactors of the process, copied word by word. Concurrent operations on the
//! same blocks may then mix words, as on a real drive, but are not undefined behaviour.

use crate::fault::errno;
use base::DriveOpenFault;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const WORD: usize = size_of::<u64>();
/// Runs at least this long are given back to the system instead of being filled with zeroes.
const GIVE_BACK_BYTES: u64 = 256 << 10;
const PAGE: u64 = 4096;

/// A drive in memory.
pub(crate) struct Ram {
    base: *mut u8,
    bytes: u64,
    /// Somebody has it open: one claim at a time, as with every drive.
    claimed: AtomicBool,
}

// SAFETY: the memory is only accessed by atomic loads and stores of words.
unsafe impl Send for Ram {}
// SAFETY: as above.
unsafe impl Sync for Ram {}

/// Part of the machine's memory that RAM drives leave to everybody else, and the least of it.
const SPARED_SHARE: u64 = 16;
const SPARED_MIN: u64 = 256 << 20;

/// All drives of this process, for their promises: a page that was never written is promised and not used.
static ALL: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());

/// Named drives of this process; they live as long as it does.
static NAMED: Mutex<BTreeMap<String, Arc<Ram>>> = Mutex::new(BTreeMap::new());

impl Ram {
    /// Claims the drive of this name, or makes one. Says whether it is new.
    ///
    /// # Errors
    /// No memory, another size, or claimed already.
    pub(crate) fn open(name: Option<&str>, bytes: u64) -> Result<(Arc<Self>, bool), DriveOpenFault> {
        let Some(name) = name else { return Ok((Self::claim_new(bytes)?, true)) };
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ram) = named.get(name) else {
            let ram = Self::claim_new(bytes)?;
            named.insert(name.to_owned(), Arc::clone(&ram));
            return Ok((ram, true));
        };
        if ram.bytes != bytes {
            return Err(DriveOpenFault::RamSize { bytes: ram.bytes, wanted_bytes: bytes });
        }
        if ram.claimed.swap(true, Ordering::SeqCst) {
            return Err(DriveOpenFault::RamInUse);
        }
        Ok((Arc::clone(ram), false))
    }

    fn claim_new(bytes: u64) -> Result<Arc<Self>, DriveOpenFault> {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let promised: u64 = all.iter().map(|(base, len)| len - resident(*base, *len)).sum();
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        if let Some(free) = free_bytes(&meminfo, promised)
            && bytes > free
        {
            return Err(DriveOpenFault::RamFull { bytes, free_bytes: free });
        }
        // SAFETY: a new anonymous mapping touches nobody's memory; it reads as zeroes.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            let errno = errno(&std::io::Error::last_os_error());
            return Err(DriveOpenFault::RamRefused { bytes, errno });
        }
        // SAFETY: our own mapping; the advice changes no contents.
        unsafe { libc::madvise(base, bytes as usize, libc::MADV_HUGEPAGE) };
        all.insert(base.addr(), bytes);
        Ok(Arc::new(Self { base: base.cast(), bytes, claimed: AtomicBool::new(true) }))
    }

    /// Gives the claim up; a named drive keeps its contents.
    pub(crate) fn release(&self) {
        self.claimed.store(false, Ordering::SeqCst);
    }

    fn words(&self, at: u64, len: usize) -> &[AtomicU64] {
        assert!(at.is_multiple_of(WORD as u64) && len.is_multiple_of(WORD), "blocks are whole words");
        assert!(at <= self.bytes && len as u64 <= self.bytes - at, "in the drive");
        // SAFETY: in the mapping, aligned (it begins at a page), and only ever accessed atomically while
        // it is shared.
        unsafe { std::slice::from_raw_parts(self.base.add(at as usize).cast(), len / WORD) }
    }

    /// Copies `len` bytes from `at` to memory.
    ///
    /// # Safety
    /// `to` is valid for writing `len` bytes and nobody else accesses them meanwhile.
    pub(crate) unsafe fn read(&self, at: u64, to: *mut u8, len: usize) {
        for (i, word) in self.words(at, len).iter().enumerate() {
            // SAFETY: i * WORD + WORD <= len, by the caller's promise writable.
            unsafe { to.add(i * WORD).cast::<u64>().write_unaligned(word.load(Ordering::Relaxed)) };
        }
    }

    /// Copies `len` bytes of memory to `at`.
    ///
    /// # Safety
    /// `from` is valid for reading `len` bytes and nobody writes them meanwhile.
    pub(crate) unsafe fn write(&self, at: u64, from: *const u8, len: usize) {
        for (i, word) in self.words(at, len).iter().enumerate() {
            // SAFETY: i * WORD + WORD <= len, by the caller's promise readable.
            word.store(unsafe { from.add(i * WORD).cast::<u64>().read_unaligned() }, Ordering::Relaxed);
        }
    }

    /// Makes `len` bytes from `at` read as zeroes.
    pub(crate) fn zero(&self, mut at: u64, mut len: u64) {
        if len >= GIVE_BACK_BYTES && at.is_multiple_of(PAGE) {
            let pages = len - len % PAGE;
            self.words(at, pages as usize);
            // The advice that also works on memory that is locked, as all of the daemon's is. (The usual one is refused
            // there. Nobody looked, and whole MiB that hosts had zeroed kept what was in them.)
            // SAFETY: whole pages of our private anonymous mapping, checked by `words`; they read as zeroes
            // afterwards. For a concurrent reader this is a store of zeroes.
            let given_back = unsafe {
                libc::madvise(self.base.add(at as usize).cast(), pages as usize, libc::MADV_DONTNEED_LOCKED)
            };
            if given_back == 0 {
                at += pages;
                len -= pages;
            }
        }
        for word in self.words(at, len as usize) {
            word.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for Ram {
    fn drop(&mut self) {
        // Before the address can be another drive's, which waits for the lock with its mapping.
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.base.addr());
        // SAFETY: the mapping made in `claim_new`; no reference is left.
        unsafe { libc::munmap(self.base.cast(), self.bytes as usize) };
    }
}

/// Bytes that another RAM drive may have, out of /proc/meminfo, when others were promised so many that they
/// have not used yet; None if the machine does not say.
fn free_bytes(meminfo: &str, promised: u64) -> Option<u64> {
    let of = |key: &str| {
        let rest = meminfo.lines().find_map(|l| l.strip_prefix(key))?;
        rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    let spared = (of("MemTotal:")? / SPARED_SHARE).max(SPARED_MIN);
    Some(of("MemAvailable:")?.saturating_sub(promised).saturating_sub(spared))
}

/// Bytes of a mapping that are in memory.
fn resident(base: usize, bytes: u64) -> u64 {
    const STEP: u64 = 1 << 30;
    let mut pages = vec![0u8; (STEP.min(bytes).div_ceil(PAGE)) as usize];
    let mut at = 0;
    let mut out = 0;
    while at < bytes {
        let len = STEP.min(bytes - at);
        let start = std::ptr::without_provenance_mut(base + at as usize);
        // SAFETY: `pages` has a byte for each page of `len`; the addresses are only looked up.
        let said = unsafe { libc::mincore(start, len as usize, pages.as_mut_ptr()) };
        if said == 0 {
            let there = pages[..len.div_ceil(PAGE) as usize].iter().filter(|p| **p & 1 == 1).count();
            out += (there as u64 * PAGE).min(len);
        }
        at += len;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_memory_has_no_room_for_is_refused_and_promises_count() {
        const GIB: u64 = 1 << 30;
        let machine = |available: u64| {
            format!("MemTotal: {} kB\nMemFree: 1 kB\nMemAvailable:   {} kB\n", 32 << 20, available << 20)
        };
        assert_eq!(free_bytes(&machine(24), 0), Some(22 * GIB));
        assert_eq!(free_bytes(&machine(24), 20 * GIB), Some(2 * GIB));
        assert_eq!(free_bytes(&machine(24), 30 * GIB), Some(0));
        assert_eq!(free_bytes("MemTotal: 5 kB", 0), None);

        let refused = Ram::open(None, 1 << 60).map(|_| ()).expect_err("no machine has so much");
        assert!(matches!(refused, DriveOpenFault::RamFull { bytes, .. } if bytes == 1 << 60), "{refused:?}");
    }

    #[test]
    fn what_was_zeroed_reads_as_zeroes_in_locked_memory_too() {
        let len = 2 * GIVE_BACK_BYTES as usize;
        let (ram, _) = Ram::open(None, 1 << 20).expect("room");
        for lock in [false, true] {
            // SAFETY: our own mapping; no contents change. Where it is not allowed, this shows less.
            let locked = lock && unsafe { libc::mlock(ram.base.cast(), ram.bytes as usize) } == 0;
            let mut bytes = vec![7u8; len];
            // SAFETY: a buffer of our own.
            unsafe { ram.write(0, bytes.as_ptr(), len) };
            ram.zero(0, len as u64 - 512);
            // SAFETY: as above.
            unsafe { ram.read(0, bytes.as_mut_ptr(), len) };
            let (zeroed, kept) = bytes.split_at(len - 512);
            assert!(zeroed.iter().all(|b| *b == 0), "locked: {locked}");
            assert!(kept.iter().all(|b| *b == 7), "locked: {locked}");
        }
    }

    #[test]
    fn what_was_written_of_a_drive_is_in_memory_and_the_rest_is_promised() {
        let (ram, _) = Ram::open(None, 8 << 20).expect("room");
        let bytes = vec![7u8; 3 << 20];
        let resident = || resident(ram.base.addr(), ram.bytes);
        assert_eq!(resident(), 0);
        // SAFETY: a buffer of our own.
        unsafe { ram.write(0, bytes.as_ptr(), bytes.len()) };
        assert!((3 << 20..=8 << 20).contains(&resident()), "{}", resident());
    }
}
