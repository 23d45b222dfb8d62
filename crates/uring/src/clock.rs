//! The clock, the entropy and the thread settings of a reactor.

use base::Instant;

/// CLOCK_MONOTONIC, which machines see as `now`.
pub(crate) fn now() -> Instant {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Instant(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// 256 bits of the operating system's entropy.
pub(crate) fn entropy() -> [u64; 4] {
    let mut bytes = [0u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: the pointer and the length are those of a live, writable slice.
        let n = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        assert!(n > 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR), "no entropy");
        filled += n.max(0) as usize;
    }
    core::array::from_fn(|i| u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes")))
}

/// Lets this thread's timers fire within a microsecond (the default slack is 50), as a shaped drive's
/// latency and a machine's deadlines are meant.
pub(crate) fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000 as libc::c_ulong) };
}

/// Binds this thread to `core`. False if that is not allowed or there is no such core.
pub(crate) fn bind_to_core(core: usize) -> bool {
    // SAFETY: an all-zero cpu_set_t is a valid empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if core >= libc::CPU_SETSIZE as usize {
        return false;
    }
    // SAFETY: `core` is within the set, and the set outlives the call.
    unsafe {
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}
