//! Files, for heads on one machine: the other's process is killed if it has the file, then its last operation is waited for.
//!
//! A head that opens a shared file as a drive holds two locks on it. The flock shows everybody else that the file is in use. The
//! second lock, of the open file and over all bytes (fcntl(2), F_OFD_SETLK), distinguishes heads: a head that gets it exclusively has
//! the file alone. The flock cannot do that: the kernel drops a shared flock before it makes it exclusive, and does not restore it if
//! another one is there. The kernel keeps both locks until nothing refers to the open file, so operations of a killed process
//! keep them until they are over.

use super::Limit;
use base::fence::Process;
use base::{Fence, FenceAct, FenceError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// How often a lock is asked for that another has.
const LOCK_STEP: Duration = Duration::from_millis(2);
/// How often a process is looked for whose id changes hands just then.
const LOOKS: u32 = 8;

/// A lock over all bytes of an open file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::drive) enum Lock {
    Shared,
    Exclusive,
    None,
}

fn whole(lock: Lock) -> libc::flock {
    let kind = match lock {
        Lock::Shared => libc::F_RDLCK,
        Lock::Exclusive => libc::F_WRLCK,
        Lock::None => libc::F_UNLCK,
    };
    libc::flock { l_type: kind as i16, l_whence: libc::SEEK_SET as i16, l_start: 0, l_len: 0, l_pid: 0 }
}

/// Takes or changes a lock of ours without waiting. What we had before stays if that fails.
///
/// # Errors
/// EAGAIN: another has one that does not go with it.
pub(in crate::drive) fn lock(file: &File, lock: Lock) -> io::Result<()> {
    let wanted = whole(lock);
    // SAFETY: this fcntl reads one `struct flock`, which is alive.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &wanted) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether another open file has a lock that does not go with an exclusive one.
fn is_others(file: &File) -> io::Result<bool> {
    let mut asked = whole(Lock::Exclusive);
    // SAFETY: this fcntl reads and writes one `struct flock`, which is alive.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut asked) } {
        0 => Ok(i32::from(asked.l_type) != libc::F_UNLCK),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Files have no keys: reserving one is to have it open, and registering one to share it.
pub(super) fn carry_out(file: &File, act: FenceAct, limit: &Limit<'_>) -> Result<Fence, FenceError> {
    let look = || is_others(file).map(|others| Fence::File { others }).map_err(|e| failed(&e));
    match act {
        FenceAct::Register { .. } => {
            // It may have been opened for this head alone. The second lock first: it is changed at once or not at all.
            lock(file, Lock::Shared).map_err(|e| failed(&e))?;
            rustix::fs::flock(file, FlockOperation::NonBlockingLockShared).map_err(|e| failed(&e.into()))?;
            look()
        }
        FenceAct::Look | FenceAct::Reserve { .. } | FenceAct::Unregister { .. } => look(),
        FenceAct::ShutOut { process, .. } => {
            if process == Some(crate::process::identity()) {
                return Err(FenceError::Ourselves);
            }
            let (mut victim, mut found) = (process, None);
            while let Err(e) = lock(file, Lock::Exclusive) {
                if e.raw_os_error() != Some(libc::EAGAIN) {
                    return Err(failed(&e));
                }
                // Only one that has the file still: who has let go of it may have started anew, as the same process.
                if let Some(victim) = victim.take() {
                    found = Some(kill(victim, limit)?);
                    continue;
                }
                match (limit.check(), found) {
                    (Err(FenceError::TimedOut), Some(End::Another)) => {
                        return Err(FenceError::NotThatProcess);
                    }
                    (checked, _) => checked?,
                }
                std::thread::sleep(LOCK_STEP);
            }
            lock(file, Lock::Shared).map_err(|e| failed(&e))?;
            Ok(Fence::File { others: false })
        }
    }
}

fn failed(error: &io::Error) -> FenceError {
    FenceError::Other(crate::fault::errno(error))
}

/// How a process was found that is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It is over: all its threads have ended, and none of its memory is there.
    Over,
    /// Its id is another's, who is left alone.
    Another,
}

/// Ends the process named and waits until it is over; another one with its id is left alone.
fn kill(victim: Process, limit: &Limit<'_>) -> Result<End, FenceError> {
    let Some(pid) = i32::try_from(victim.pid).ok().and_then(Pid::from_raw) else { return Ok(End::Over) };
    for _ in 0..LOOKS {
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(Errno::SRCH) => return Ok(End::Over),
            // A thread of some process.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(End::Another),
            Err(e) => return Err(failed(&e.into())),
        };
        let started = crate::process::started(victim.pid);
        if is_over(&process, Duration::ZERO)? {
            // What was read may be of the next one with this id.
            match started {
                Some(started) if started != victim.started => continue,
                Some(_) | None => return Ok(End::Over),
            }
        }
        // It was there before and after its start was read: that is its own.
        if started != Some(victim.started) {
            return Ok(End::Another);
        }
        return match pidfd_send_signal(&process, Signal::KILL) {
            Err(Errno::PERM) => Err(FenceError::Denied),
            Err(Errno::SRCH) => Ok(End::Over),
            Err(e) => Err(failed(&e.into())),
            Ok(()) if is_over(&process, limit.left())? => Ok(End::Over),
            Ok(()) => Err(FenceError::TimedOut),
        };
    }
    Ok(End::Another)
}

/// Whether a process ends within some time.
fn is_over(process: &OwnedFd, within: Duration) -> Result<bool, FenceError> {
    let end = std::time::Instant::now() + within;
    loop {
        let left = end.saturating_duration_since(std::time::Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Ok(n) => return Ok(n > 0),
            Err(Errno::INTR) => {}
            Err(e) => return Err(failed(&e.into())),
        }
    }
}
