//! Fences of drives: they keep other heads from a drive (`base::fence`; docs/fencing.md).
//!
//! A command of a fence may take seconds, or never end: it waits for operations of other machines at the drive. So each
//! drive has a queue of its own with a thread that lives while there is work, and another thread watches the limit of
//! each operation:
//!
//! ```text
//! ask ─▶ queue ─▶ worker (in order) ─▶ result ─▶ reported
//!          │         └ in the kernel at its limit: TimedOut is reported, the drive is stuck until it ends,
//!          │           and whatever is asked meanwhile is TimedOut at once
//!          └ not begun at its limit: taken out again, TimedOut
//! ```

pub(super) mod file;
mod nvme;
mod queue;
mod scsi;

use crate::drive::fence::queue::{Asked, Queue, Worker};
use crate::drive::{Drive, run_cold};
use base::fence::Registrants;
use base::{Fence, FenceAct, FenceError, FenceKey, FenceKind, FenceOp};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a command is tried again to which the drive said "not now", unit attentions above all.
const TRIES: u32 = 16;
/// The pause before that, unless there is news to be read at once.
const AGAIN: Duration = Duration::from_millis(20);

type Outcome = Result<Fence, FenceError>;

/// What a drive's fence has to do.
#[derive(Default)]
pub(crate) struct Line {
    queue: Mutex<Queue<Job>>,
    /// The drive is let go of: loops end.
    closed: AtomicBool,
}

struct Job {
    act: FenceAct,
    until: Instant,
    to: Sender<Outcome>,
}

/// Until when an operation may go on.
pub(super) struct Limit<'a> {
    until: Instant,
    closed: &'a AtomicBool,
}

impl Limit<'_> {
    /// An error once there is no time left.
    fn check(&self) -> Result<(), FenceError> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(FenceError::Gone);
        }
        if Instant::now() < self.until { Ok(()) } else { Err(FenceError::TimedOut) }
    }
    /// What is left, nothing if it is over.
    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Queue<Job>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The drive is let go of.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Does `op` after those before it; `report` is called within its limit, in a thread of its own or at once.
    pub(super) fn ask(drive: &Arc<Drive>, op: FenceOp, report: impl FnOnce(Outcome) + Send + 'static) {
        let (to, result) = channel();
        // Who works on it sees the limit a little before who waits for it: it can say more than that time is over.
        let within = op.within();
        let until = Instant::now() + within - within.min(Duration::from_secs(1)) / 10;
        let asked = drive.fence.lock().ask(Job { act: op.act, until, to });
        let Asked::Queued { id, worker } = asked else {
            return report(Err(FenceError::TimedOut));
        };
        if worker == Worker::Needed {
            let drive = Arc::clone(drive);
            run_cold("drive-fence", move || work(&drive));
        }
        let drive = Arc::downgrade(drive);
        run_cold("drive-fence-end", move || {
            let outcome = match result.recv_timeout(within) {
                Ok(outcome) => outcome,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let drive = drive.upgrade();
                    let mut queue = drive.as_ref().map(|d| d.fence.lock());
                    // It may have ended while we took the lock.
                    result.try_recv().unwrap_or_else(|_| {
                        if let Some(queue) = &mut queue {
                            queue.give_up(id);
                        }
                        Err(FenceError::TimedOut)
                    })
                }
            };
            report(outcome);
        });
    }
}

/// Works off a drive's queue.
fn work(drive: &Drive) {
    loop {
        let Some(job) = drive.fence.lock().begin() else { return };
        let outcome = carry_out(drive, job.act, &Limit { until: job.until, closed: &drive.fence.closed });
        let _queue = drive.fence.lock();
        // The asker may have given up.
        let _ = job.to.send(outcome);
    }
}

fn carry_out(drive: &Drive, act: FenceAct, limit: &Limit<'_>) -> Outcome {
    let Some(file) = drive.file() else { return Err(FenceError::None(base::NoFence::Private)) };
    match drive.info.fence {
        FenceKind::None(why) => Err(FenceError::None(why)),
        FenceKind::File => file::carry_out(file, act, limit),
        FenceKind::Scsi => keys(&scsi::Unit { file, limit }, act, limit).map(Fence::Keys),
        FenceKind::Nvme => keys(&nvme::Namespace::of(file, limit)?, act, limit).map(Fence::Keys),
    }
}

/// The commands of a drive with reservations. Each either ends well or says why not; `look` finds the state afterwards.
trait Reservations {
    /// Reads all keys and the reservation.
    fn look(&self) -> Result<Registrants, FenceError>;
    /// Registers this path with `key`, in place of whatever key it had.
    fn register(&self, key: FenceKey) -> Result<(), FenceError>;
    /// Takes this path's key back.
    fn unregister(&self, key: FenceKey) -> Result<(), FenceError>;
    /// Reserves: exclusive access, registrants only.
    fn reserve(&self, key: FenceKey) -> Result<(), FenceError>;
    /// Takes the victim's key away, and its reservation over.
    fn preempt(&self, key: FenceKey, victim: FenceKey) -> Result<(), FenceError>;
    /// Ends what others have at the drive, and returns once it is over, as far as `preempt` does not.
    fn end_commands(&self) -> Result<(), FenceError>;
}

/// Carries out `act`: looks, does what is missing, and looks again. What a command said counts only where the drive
/// does not show what was wanted.
fn keys(drive: &impl Reservations, act: FenceAct, limit: &Limit<'_>) -> Result<Registrants, FenceError> {
    let look = || limit.check().and_then(|()| drive.look());
    let before = look()?;
    match act {
        FenceAct::Look => Ok(before),
        FenceAct::Register { key } => {
            let said = drive.register(key);
            let after = look()?;
            // Another path of ours may have had the key before: then it proves nothing for this one.
            let count = |r: &Registrants| r.keys.iter().filter(|k| **k == key).count();
            match said {
                Ok(()) if after.has(key) => Ok(after),
                Err(_) if count(&after) > count(&before) => Ok(after),
                said => Err(said.err().unwrap_or(FenceError::NotDone)),
            }
        }
        FenceAct::Reserve { key } => reserve(drive, key, before, limit),
        FenceAct::ShutOut { key, victim, process: _ } => {
            if key == victim {
                return Err(FenceError::Ourselves);
            }
            if !before.has(key) {
                return Err(FenceError::NotRegistered);
            }
            let mut now = before;
            if now.has(victim) {
                let said = drive.preempt(key, victim);
                now = look()?;
                if !now.has(key) {
                    // It was quicker.
                    return Err(FenceError::NotRegistered);
                }
                if now.has(victim) {
                    return Err(said.err().unwrap_or(FenceError::NotDone));
                }
            }
            // From here on nothing new of it is let in; what it has at the drive is not over yet. It is ended even if its
            // key was gone before: the head that removed it may not have come so far.
            reserve(drive, key, now, limit)?;
            limit.check()?;
            drive.end_commands()?;
            let after = look()?;
            match (after.has(key), after.has(victim), after.is_held_by(key)) {
                (false, _, _) => Err(FenceError::NotRegistered),
                (true, false, true) => Ok(after),
                (true, _, _) => Err(FenceError::NotDone),
            }
        }
        FenceAct::Unregister { key } => {
            if !before.has(key) {
                return Ok(before);
            }
            let said = drive.unregister(key);
            let after = look()?;
            if after.keys.len() < before.keys.len() {
                Ok(after)
            } else {
                Err(said.err().unwrap_or(FenceError::NotDone))
            }
        }
    }
}

fn reserve(
    drive: &impl Reservations,
    key: FenceKey,
    before: Registrants,
    limit: &Limit<'_>,
) -> Result<Registrants, FenceError> {
    if !before.has(key) {
        return Err(FenceError::NotRegistered);
    }
    if before.is_held_by(key) {
        return Ok(before);
    }
    if before.reservation.is_some() {
        return Err(FenceError::Conflict);
    }
    let said = drive.reserve(key);
    limit.check()?;
    let after = drive.look()?;
    match (after.has(key), after.is_held_by(key)) {
        (_, true) => Ok(after),
        (false, false) => Err(FenceError::NotRegistered),
        (true, false) if after.reservation.is_some() => Err(FenceError::Conflict),
        (true, false) => Err(said.err().unwrap_or(FenceError::NotDone)),
    }
}

/// What a drive's answer to one command means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Good,
    /// Try again, at once or after a pause.
    Again {
        pause: bool,
    },
    Failed(FenceError),
}

/// Issues a command until it is answered for good, as often and as long as that makes sense.
fn until_answered(
    limit: &Limit<'_>,
    mut command: impl FnMut() -> Result<Answer, FenceError>,
) -> Result<(), FenceError> {
    for _ in 0..TRIES {
        limit.check()?;
        match command()? {
            Answer::Good => return Ok(()),
            Answer::Failed(why) => return Err(why),
            Answer::Again { pause } => std::thread::sleep(if pause { AGAIN } else { Duration::ZERO }),
        }
    }
    Err(FenceError::Other(libc::EBUSY))
}

/// An errno of an ioctl.
fn refused(error: &io::Error) -> FenceError {
    match error.raw_os_error().unwrap_or(libc::EIO) {
        libc::EPERM | libc::EACCES => FenceError::Denied,
        libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN => FenceError::Gone,
        libc::ENOTTY | libc::EOPNOTSUPP => FenceError::None(base::NoFence::Driver),
        libc::EBADE => FenceError::Conflict,
        other => FenceError::Other(other),
    }
}

/// Keys as they were read, in order.
fn sorted(keys: impl Iterator<Item = u64>) -> Vec<FenceKey> {
    let mut keys: Vec<FenceKey> = keys.filter_map(FenceKey::new).collect();
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests;
