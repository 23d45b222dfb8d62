//! Fencing a drive: what the Steward asks for, so that another head's operations no longer reach the drive, and
//! what it learns (docs/fencing.md). Who is shut out, and when, is decided elsewhere.
//!
//! ```text
//! Look ─▶ Register ─▶ Reserve ─▶ … ─▶ ShutOut ─▶ … ─▶ Unregister
//! ```
//!
//! Every operation may be asked for again, whatever the last one said: it looks first, does what is missing, and looks
//! again. So `Ok` carries the state of the drive, not only the success of a command.

use crate::Duration;
use core::num::NonZeroU64;

/// The key under which a head is registered with a drive (SPC-4 5.12, reservation key; NVM Express Base 8.19): any
/// number but zero, which means "not registered" in both standards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FenceKey(NonZeroU64);

impl FenceKey {
    /// None for zero.
    pub fn new(key: u64) -> Option<Self> {
        NonZeroU64::new(key).map(Self)
    }
    /// The number.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

/// By what means others can be kept from a drive. Known from what the operating system reports, without a command to
/// the drive: `FenceAct::Look` finds whether the drive itself has these commands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FenceKind {
    /// SCSI persistent reservations, then a reset of the logical unit.
    Scsi,
    /// NVMe reservations.
    Nvme,
    /// A file, for heads on one machine: the other's process is killed, then the file's lock is waited for.
    File,
    /// There is none.
    None(NoFence),
}

impl Default for FenceKind {
    fn default() -> Self {
        Self::None(NoFence::Unknown)
    }
}

faults! {
    /// Why a drive cannot be fenced.
    #[serde(tag = "code", rename_all = "snake_case")]
    pub enum NoFence {
        /// Nobody looked.
        Unknown,
        /// It lives in this process: no other machine reaches it.
        Private,
        /// RAM disk, zram, or a null device of the kernel: no other machine reaches it.
        Memory,
        /// A loop device.
        Loop,
        /// A device of device mapper or md.
        Mapped,
        /// A partition.
        Partition,
        /// A driver of the kernel that passes on no reservations.
        Driver,
        /// The drive has no such commands, or not this type of reservation.
        Drive,
    }
}

/// A process of this machine: the daemon of another head, for drives that are files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Process {
    /// Its process id. It can be another's later.
    pub pid: u32,
    /// When it began, in clock ticks since the machine's start (proc(5), `/proc/PID/stat`, field 22): distinguishes it from a
    /// later process with the same id.
    pub started: u64,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FenceAct {
    /// Read the registered keys and the holder. Changes nothing.
    Look,
    /// Register this path to the drive with `key`, in place of whatever key it had.
    Register {
        /// Our own.
        key: FenceKey,
    },
    /// Take the reservation: from then on, only registered heads read and write.
    Reserve {
        /// Our own, registered before.
        key: FenceKey,
    },
    /// Shut another head out. Once this has ended well, none of its operations is at the drive and none that comes
    /// will be carried out; the reservation is ours. Operations of our own that were at the drive may have ended in an
    /// error and are to be issued again.
    ShutOut {
        /// Our own, registered before.
        key: FenceKey,
        /// The other head's. It need not be registered (any more).
        victim: FenceKey,
        /// The other head's process, for a drive that is a file; not looked at otherwise. None if it is known to be
        /// gone.
        process: Option<Process>,
    },
    /// Take our key back, and the reservation with it if it is ours. Also succeeds if it is not registered.
    Unregister {
        /// Our own.
        key: FenceKey,
    },
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FenceOp {
    /// What to do.
    pub act: FenceAct,
    /// The answer comes within this time, an hour at most. After `TimedOut` the operation may still be carried out.
    pub limit: Duration,
}

impl FenceOp {
    /// The answer comes within this time.
    pub fn within(&self) -> Duration {
        self.limit.min(Duration::from_secs(3600))
    }
}

/// The type of a reservation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReservationKind {
    /// Exclusive access, registrants only: SPC-4 type 6h, NVMe type 4h. Ours is always of this type.
    ExclusiveRegistrants,
    /// Another type, as the drive's standard numbers it.
    Other(u8),
}

/// A reservation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reservation {
    /// Whose it is. None: all registrants hold it.
    pub holder: Option<FenceKey>,
    /// Its type.
    pub kind: ReservationKind,
}

/// What a drive says of its registrants.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Registrants {
    /// All keys, ascending; one that several paths have is there as often (NVMe: controllers of one host).
    pub keys: Vec<FenceKey>,
    /// The reservation, if there is one.
    pub reservation: Option<Reservation>,
    /// Counts the changes of keys (SPC-4 PRGENERATION, NVMe GEN); wraps around.
    pub generation: u32,
}

impl Registrants {
    /// Whether `key` is registered.
    pub fn has(&self, key: FenceKey) -> bool {
        self.keys.binary_search(&key).is_ok()
    }
    /// Whether the reservation is of our type, and `key`'s.
    pub fn is_held_by(&self, key: FenceKey) -> bool {
        let ours = Reservation { holder: Some(key), kind: ReservationKind::ExclusiveRegistrants };
        self.reservation == Some(ours)
    }
}

/// How a drive is once an operation has ended well.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// A drive with reservations.
    Keys(Registrants),
    /// A file.
    File {
        /// Another process has it open as a drive.
        others: bool,
    },
}

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FenceError {
    /// This drive cannot be fenced.
    None(NoFence),
    /// Another holds the reservation, or the drive said "reservation conflict" in the end.
    Conflict,
    /// Our own key is not registered (any more): this head may have been shut out.
    NotRegistered,
    /// The file is still another's, and the process named is not there: another one has its id. Nobody was killed.
    NotThatProcess,
    /// The process named is our own. Nobody was killed.
    Ourselves,
    /// No answer within the limit. The operation may still be carried out. Until it has ended, all further ones of
    /// this drive end so at once.
    TimedOut,
    /// The drive is gone, or not open.
    Gone,
    /// The daemon lacks a right: CAP_SYS_ADMIN and CAP_SYS_RAWIO for drives, CAP_KILL for a process of another user.
    Denied,
    /// The drive said that it did, and it is not so.
    NotDone,
    /// Another errno.
    Other(i32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_ours_only_by_our_key_and_our_type() {
        let [a, b] = [0xa1, 0xb1].map(|k| FenceKey::new(k).expect("not zero"));
        let held = |holder, kind| Registrants {
            keys: vec![a, b, b],
            reservation: Some(Reservation { holder, kind }),
            generation: 7,
        };
        let good = held(Some(a), ReservationKind::ExclusiveRegistrants);
        assert!(good.is_held_by(a) && !good.is_held_by(b) && good.has(a) && good.has(b));
        assert!(!held(None, ReservationKind::ExclusiveRegistrants).is_held_by(a));
        assert!(!held(Some(a), ReservationKind::Other(5)).is_held_by(a));
        assert!(!Registrants::default().is_held_by(a) && !Registrants::default().has(a));
        assert_eq!(FenceKey::new(0), None);
    }

    #[test]
    fn a_drive_that_nobody_looked_at_is_not_fenced() {
        assert_eq!(FenceKind::default(), FenceKind::None(NoFence::Unknown));
    }
}
