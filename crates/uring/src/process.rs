//! What the daemon asks of the kernel for the whole process, and the record of its own death.
//!
//! Owns memory locking, limits, the I/O-flusher mark, and the crash record: a file descriptor opened
//! at the start, into which the panic hook or the handler of a fatal signal writes one line. Promise:
//! a handler here calls nothing but async-signal-safe functions. Does not know the readers of that file.
#![allow(unsafe_code)]

use base::fence::Process;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Most bytes of one crash line, the newline included.
pub const CRASH_LINE_MAX: usize = 512;

/// Signals that mean that this process is broken.
const FATAL: [(libc::c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGFPE, "SIGFPE"),
];

/// prctl(2); in the kernel's headers since 5.6, not in every libc.
const PR_SET_IO_FLUSHER: libc::c_int = 57;
/// capability.h: may lock any amount of memory.
const CAP_IPC_LOCK: u32 = 14;

static CRASH_FILE: AtomicI32 = AtomicI32::new(-1);
static RECORDED: AtomicBool = AtomicBool::new(false);

/// Whether this process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Locks every page of the process into memory, those that there are and others as they are first used: a storage
/// server that pages to a disk that it serves itself waits for itself.
///
/// Not all at once: every mapping would be made resident in the call that makes it, and a start would take seconds. What
/// must be there before it is used is made so in the background (`House::make_resident`).
///
/// Errors: without CAP_IPC_LOCK and with a finite RLIMIT_MEMLOCK nothing is locked, since
/// MCL_FUTURE under a limit would make a later allocation fail instead of this call.
pub fn lock_memory() -> io::Result<()> {
    let unlimited = raise_limit(libc::RLIMIT_MEMLOCK, None)? == libc::RLIM_INFINITY;
    if !unlimited && !has_capability(CAP_IPC_LOCK) {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: mlockall takes flags alone and touches no memory of ours but to make it resident.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) })
}

/// Reads the program and its libraries into memory, all that is not there yet: the code that runs when a drive is lost
/// is then not looked for on a drive. Ends early when `stop` says so. What cannot be read is left out.
pub(crate) fn make_program_resident(stop: impl Fn() -> bool) {
    /// The call keeps changes of the address space waiting.
    const STEP: usize = 2 << 20;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (from, to) in maps.lines().filter_map(program_text) {
        for at in (from..to).step_by(STEP) {
            if stop() {
                return;
            }
            // SAFETY: reading pages in changes no contents, and where nothing is mapped any more it is an error.
            unsafe { libc::madvise(at as *mut libc::c_void, STEP.min(to - at), libc::MADV_POPULATE_READ) };
        }
    }
}

/// Where a line of /proc/self/maps says that a file's bytes lie, if it does and they may be read.
fn program_text(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, access) = (words.next()?, words.next()?);
    let (from, to) = range.split_once('-')?;
    let file = words.nth(3)?.starts_with('/') && access.starts_with('r');
    let address = |text| usize::from_str_radix(text, 16).ok();
    file.then(|| Some((address(from)?, address(to)?)))?
}

/// Raises the limit of open files as far as allowed, at most to `wanted`, and returns what it is now.
pub fn raise_files(wanted: u64) -> io::Result<u64> {
    raise_limit(libc::RLIMIT_NOFILE, Some(wanted))
}

/// Marks the process as one that memory reclaim must not wait for (PR_SET_IO_FLUSHER, needs
/// CAP_SYS_RESOURCE): its own allocations then never start I/O that it would have to serve.
pub fn set_io_flusher() -> io::Result<()> {
    // SAFETY: this prctl takes integers alone.
    check(unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) })
}

/// The addresses of this machine that others can reach, in the kernel's order, each once: IPv4, and IPv6 without
/// those of one link alone (they mean nothing without the link). Empty if the kernel does not say.
pub fn addresses() -> Vec<IpAddr> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: getifaddrs writes one pointer to a live variable; what it points to is ours until freeifaddrs.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let mut found: Vec<IpAddr> = Vec::new();
    let mut at = list;
    while !at.is_null() {
        // SAFETY: the list is not freed before the end of this function, and each `ifa_next` is an entry or null.
        let entry = unsafe { &*at };
        at = entry.ifa_next;
        if entry.ifa_addr.is_null() {
            continue;
        }
        // SAFETY: a non-null `ifa_addr` points to a socket address of the family that it names.
        let family = i32::from(unsafe { (*entry.ifa_addr).sa_family });
        let address = match family {
            libc::AF_INET => {
                // SAFETY: of this family it is a sockaddr_in.
                let a = unsafe { &*entry.ifa_addr.cast::<libc::sockaddr_in>() };
                IpAddr::from(a.sin_addr.s_addr.to_ne_bytes())
            }
            libc::AF_INET6 => {
                // SAFETY: of this family it is a sockaddr_in6.
                let a = unsafe { &*entry.ifa_addr.cast::<libc::sockaddr_in6>() };
                IpAddr::from(a.sin6_addr.s6_addr)
            }
            _ => continue,
        };
        let of_one_link = matches!(address, IpAddr::V6(a) if a.segments()[0] & 0xffc0 == 0xfe80);
        if !of_one_link && !found.contains(&address) {
            found.push(address);
        }
    }
    // SAFETY: it came from getifaddrs, and nothing points into it any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// This process, as `base::FenceAct::ShutOut` names the one that it ends.
pub fn identity() -> Process {
    let pid = std::process::id();
    Process { pid, started: started(pid).unwrap_or(0) }
}

/// When a process of this machine began, in clock ticks since the machine's start; None if there is none.
pub fn started(pid: u32) -> Option<u64> {
    started_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Field 22 of proc(5), `/proc/PID/stat`. Field 2 is the program's name, which may have spaces and parentheses.
fn started_in(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Ends this process by SIGTERM when the process `parent` (its parent) ends. An error if `parent`
/// has already gone.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: this prctl takes integers alone.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0) })?;
    // The parent may have died before the mark was set; then nobody would signal us.
    if std::os::unix::process::parent_id() == parent {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// Sends SIGTERM to `child`. `&mut`: it was not yet waited for, or this does nothing.
pub fn terminate(child: &mut std::process::Child) -> io::Result<()> {
    signal(child, libc::SIGTERM)
}

/// Sends SIGINT to `child`, as Ctrl-C does; otherwise as `terminate`.
pub fn interrupt(child: &mut std::process::Child) -> io::Result<()> {
    signal(child, libc::SIGINT)
}

fn signal(child: &mut std::process::Child, signal: libc::c_int) -> io::Result<()> {
    // Once it was waited for, its id may be another process's.
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    let pid = libc::pid_t::try_from(child.id()).expect("the kernel's process ids fit");
    // SAFETY: kill touches no memory; the id of a child that was not waited for names no other process.
    check(unsafe { libc::kill(pid, signal) })
}

/// From now on panics (by `record_crash`) and fatal signals add one line each to `file`, which must
/// be open for appending. Only the first call of a process counts.
pub fn install_crash_record(file: File) -> io::Result<()> {
    let fd = file.into_raw_fd(); // Never closed: it must be there at the very end.
    if CRASH_FILE.compare_exchange(-1, fd, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        return Err(io::Error::from_raw_os_error(libc::EALREADY));
    }
    for (signal, _) in FATAL {
        // SAFETY: an all-zero sigaction is a valid one (no flags, empty mask, default action).
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SA_ONSTACK: after a stack overflow only the alternate stack is left; the standard library
        // gives one to every thread. SA_RESETHAND: raising again in the handler then ends us.
        action.sa_sigaction = on_fatal_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
        // SAFETY: `action` is initialised, and the handler is async-signal-safe (see there).
        check(unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) })?;
    }
    Ok(())
}

/// Crashes are recorded in `file` from now on: the one before was removed. It must be open for appending.
///
/// Errors: `install_crash_record` was not called.
pub fn renew_crash_record(file: &File) -> io::Result<()> {
    let fd = CRASH_FILE.load(Ordering::SeqCst);
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: dup3 touches no memory. `fd` is ours and never closed, and a handler that writes meanwhile finds one file or
    // the other behind it.
    check(unsafe { libc::dup3(file.as_raw_fd(), fd, libc::O_CLOEXEC) }.min(0))
}

/// Adds one line to the crash record: the time and `what` (cut to fit, line breaks as spaces). Only
/// the first of a process is written, so that the abort after a panic does not count twice. Without
/// `install_crash_record` it does nothing.
pub fn record_crash(what: &str) {
    write_record(what.as_bytes());
}

/// One line of the crash record in `line`: `2026-11-21T01:34:33Z what`. Returns its length.
pub fn crash_line(unix_seconds: u64, what: &[u8], line: &mut [u8; CRASH_LINE_MAX]) -> usize {
    line[..20].copy_from_slice(&base::utc::text(unix_seconds));
    line[20] = b' ';
    let mut end = 21;
    for byte in what.iter().take(CRASH_LINE_MAX - 22) {
        line[end] = if byte.is_ascii_control() { b' ' } else { *byte };
        end += 1;
    }
    line[end] = b'\n';
    end + 1
}

/// Async-signal-safe: atomics, clock_gettime, write, raise (signal-safety(7)) and arithmetic.
extern "C" fn on_fatal_signal(signal: libc::c_int) {
    let name = FATAL.iter().find(|(s, _)| *s == signal).map_or("signal", |(_, name)| name);
    let mut what = [0u8; 32];
    let prefix = b"signal ";
    what[..prefix.len()].copy_from_slice(prefix);
    what[prefix.len()..prefix.len() + name.len()].copy_from_slice(name.as_bytes());
    write_record(&what[..prefix.len() + name.len()]);
    // SAFETY: raise touches no memory. The action is the default again, so this ends the process
    // (with a core where they are enabled) as soon as the handler returns.
    unsafe { libc::raise(signal) };
}

fn write_record(what: &[u8]) {
    let fd = CRASH_FILE.load(Ordering::SeqCst);
    if fd < 0 || RECORDED.swap(true, Ordering::SeqCst) {
        return;
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is ours and large enough; clock_gettime is async-signal-safe.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
    let mut line = [0u8; CRASH_LINE_MAX];
    let len = crash_line(u64::try_from(now.tv_sec).unwrap_or(0), what, &mut line);
    // SAFETY: the descriptor is never closed, and `line` has `len` bytes. Its failure cannot be
    // reported to anybody any more.
    unsafe { libc::write(fd, line.as_ptr().cast(), len) };
}

fn raise_limit(resource: libc::__rlimit_resource_t, wanted: Option<u64>) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours and of the right type.
    check(unsafe { libc::getrlimit(resource, &mut limit) })?;
    let wanted = wanted.unwrap_or(libc::RLIM_INFINITY);
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    // First beyond the hard limit, which a privileged process may raise; then up to it.
    for max in [limit.rlim_max.max(wanted), limit.rlim_max] {
        let raised = libc::rlimit { rlim_cur: wanted.min(max), rlim_max: max };
        // SAFETY: setrlimit reads the struct, which is ours.
        if unsafe { libc::setrlimit(resource, &raised) } == 0 {
            return Ok(raised.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

fn has_capability(bit: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).is_some_and(|m| m >> bit & 1 == 1)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_process_is_read_whatever_it_is_called() {
        let stat =
            |name: &str| format!("7 ({name}) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 3 0 8123 9 1 2\n");
        assert_eq!(started_in(&stat("millrace")), Some(8123));
        assert_eq!(started_in(&stat("a) S 9 (b")), Some(8123));
        assert_eq!(started_in("7 (x) S 1"), None);
        let own = identity();
        assert!(own.pid == std::process::id() && own.started > 0);
        assert_eq!(started(u32::MAX), None);
    }

    #[test]
    fn a_crash_is_one_line_however_long_and_broken_its_text() {
        let mut line = [0; CRASH_LINE_MAX];
        let len = crash_line(0, &[b'\n'; 4096], &mut line);
        assert_eq!(len, CRASH_LINE_MAX);
        assert_eq!(line[..len].iter().filter(|b| **b == b'\n').count(), 1);
        assert_eq!(line[len - 1], b'\n');
        let len = crash_line(0, b"panic in shard 0", &mut line);
        assert_eq!(&line[..len], b"1970-01-01T00:00:00Z panic in shard 0\n");
    }

    #[test]
    fn a_file_in_memory_is_found_in_the_list_of_mappings() {
        let text = |line| program_text(line).map(|(from, to)| to - from);
        assert_eq!(
            text("7f0000001000-7f0000003000 r-xp 00001000 fd:00 42   /usr/bin/millrace"),
            Some(0x2000)
        );
        for other in [
            "7f0000001000-7f0000003000 ---p 00001000 fd:00 42   /usr/lib/libc.so.6",
            "7f0000001000-7f0000003000 rw-p 00000000 00:00 0 ",
            "7f0000001000-7f0000003000 rw-p 00000000 00:00 0    [heap]",
            "7f0000001000-7f0000003000 rw-s 00000000 00:0f 9    anon_inode:[io_uring]",
            "",
        ] {
            assert_eq!(text(other), None, "{other}");
        }
        let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
        let here = a_file_in_memory_is_found_in_the_list_of_mappings as fn() as usize;
        let own = maps.lines().filter_map(program_text).find(|(from, to)| (*from..*to).contains(&here));
        assert!(own.is_some(), "the test itself comes from a file");
    }

    #[test]
    fn this_machine_has_its_loopback_address() {
        let own = addresses();
        assert!(own.contains(&IpAddr::from([127, 0, 0, 1])), "{own:?}");
        assert_eq!(own.iter().collect::<std::collections::BTreeSet<_>>().len(), own.len());
    }

    #[test]
    fn the_limit_of_files_never_goes_down() {
        let before = raise_files(0).expect("readable");
        assert!(raise_files(before).expect("readable") >= before);
        assert!(raise_files(16).expect("readable") >= before);
    }

    #[test]
    fn a_parent_that_is_gone_is_noticed() {
        let no_parent = std::os::unix::process::parent_id() + 1_000_000;
        assert_eq!(die_with_parent(no_parent).expect_err("not our parent").raw_os_error(), Some(libc::ESRCH));
        die_with_parent(std::os::unix::process::parent_id()).expect("our parent");
    }
}
