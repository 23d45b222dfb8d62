//! SCSI: PERSISTENT RESERVE IN and OUT, and the reset of a logical unit.
//!
//! The commands are ours, by `SG_IO`, and not the kernel's `IOC_PR_…`: those report "check condition" for every
//! failure, number the same conflict differently from kernel to kernel, and cannot read keys before Linux 6.5. The
//! sense data shows whether to try again.

use super::{Answer, Limit, Reservations, refused, sorted, until_answered};
use base::fence::{Registrants, Reservation, ReservationKind};
use base::{FenceError, FenceKey, NoFence};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// SPC-4 6.15 and 6.16, operation codes and service actions.
const RESERVE_IN: u8 = 0x5e;
const RESERVE_OUT: u8 = 0x5f;
const READ_KEYS: u8 = 0;
const READ_RESERVATION: u8 = 1;
const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const PREEMPT: u8 = 4;
const REGISTER_AND_IGNORE_EXISTING_KEY: u8 = 6;
/// Exclusive access, registrants only, of the logical unit as a whole (scope 0h).
const TYPE: u8 = 6;
/// Byte 20 of the parameters: the registration outlives a power cut of the drive.
const APTPL: u8 = 1;

/// Bytes asked for of what is read: 1,023 keys.
const IN_BYTES: usize = 8192;
const OUT_BYTES: usize = 24;
const SENSE_BYTES: usize = 64;
/// The kernel's own limit of a command, after which it begins to reset things. Ours is kept elsewhere: a shorter one
/// here would have a drive reset that is only busy.
const TIMEOUT_MS: u32 = 60_000;

/// `scsi/sg.h`.
const SG_IO: libc::c_ulong = 0x2285;
const SG_SCSI_RESET: libc::c_ulong = 0x2284;
/// A logical unit, and nothing larger if that fails.
const RESET_DEVICE_ALONE: libc::c_int = 0x1 | 0x100;
const TO_DRIVE: i32 = -2;
const FROM_DRIVE: i32 = -3;

/// `struct sg_io_hdr`.
#[repr(C)]
struct SgIo {
    interface: i32,
    direction: i32,
    cdb_len: u8,
    sense_max: u8,
    iovecs: u16,
    data_len: u32,
    data: *mut u8,
    cdb: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    id: i32,
    user: *mut u8,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_len: u8,
    host_status: u16,
    driver_status: u16,
    left: i32,
    took_ms: u32,
    info: u32,
}
const _: () = assert!(size_of::<SgIo>() == 88);

/// A logical unit by one path.
pub(super) struct Unit<'a> {
    pub(super) file: &'a File,
    pub(super) limit: &'a Limit<'a>,
}

impl Unit<'_> {
    fn once(&self, cdb: &[u8; 10], direction: i32, data: &mut [u8]) -> Result<Answer, FenceError> {
        let mut sense = [0u8; SENSE_BYTES];
        let mut io = SgIo {
            interface: i32::from(b'S'),
            direction,
            cdb_len: cdb.len() as u8,
            sense_max: SENSE_BYTES as u8,
            iovecs: 0,
            data_len: data.len() as u32,
            data: data.as_mut_ptr(),
            cdb: cdb.as_ptr(),
            sense: sense.as_mut_ptr(),
            timeout_ms: TIMEOUT_MS,
            flags: 0,
            id: 0,
            user: std::ptr::null_mut(),
            status: 0,
            masked_status: 0,
            message_status: 0,
            sense_len: 0,
            host_status: 0,
            driver_status: 0,
            left: 0,
            took_ms: 0,
            info: 0,
        };
        // SAFETY: `io` is the structure of this ioctl; what it points to is as long as it says and lives beyond the call,
        // which returns only once the command is over.
        if unsafe { libc::ioctl(self.file.as_raw_fd(), SG_IO, &mut io) } < 0 {
            return Err(refused(&io::Error::last_os_error()));
        }
        let sense = &sense[..usize::from(io.sense_len).min(SENSE_BYTES)];
        Ok(answer(io.status, io.host_status, sense))
    }

    fn read(&self, action: u8) -> Result<Vec<u8>, FenceError> {
        let mut data = vec![0u8; IN_BYTES];
        let [high, low] = (IN_BYTES as u16).to_be_bytes();
        let cdb = [RESERVE_IN, action, 0, 0, 0, 0, 0, high, low, 0];
        until_answered(self.limit, || self.once(&cdb, FROM_DRIVE, &mut data))?;
        Ok(data)
    }

    /// `key`: the one that this path is registered with. `other`: what it is to become, or whom this is about.
    fn write(&self, action: u8, kind: u8, key: u64, other: u64, flags: u8) -> Result<(), FenceError> {
        let (cdb, mut data) = out(action, kind, key, other, flags);
        until_answered(self.limit, || self.once(&cdb, TO_DRIVE, &mut data))
    }
}

/// SPC-4 6.16: the command, and its parameters.
fn out(action: u8, kind: u8, key: u64, other: u64, flags: u8) -> ([u8; 10], [u8; OUT_BYTES]) {
    let mut data = [0u8; OUT_BYTES];
    data[..8].copy_from_slice(&key.to_be_bytes());
    data[8..16].copy_from_slice(&other.to_be_bytes());
    data[20] = flags;
    ([RESERVE_OUT, action, kind, 0, 0, 0, 0, 0, OUT_BYTES as u8, 0], data)
}

impl Reservations for Unit<'_> {
    fn look(&self) -> Result<Registrants, FenceError> {
        let mut seen = None;
        // Two commands: keys may change in between, but then both have another generation.
        until_answered(self.limit, || {
            let (keys, held) = (self.read(READ_KEYS)?, self.read(READ_RESERVATION)?);
            if keys[..4] != held[..4] {
                return Ok(Answer::Again { pause: false });
            }
            seen = Some(registrants(&keys, &held)?);
            Ok(Answer::Good)
        })?;
        Ok(seen.expect("it was answered for good"))
    }
    fn register(&self, key: FenceKey) -> Result<(), FenceError> {
        self.write(REGISTER_AND_IGNORE_EXISTING_KEY, 0, 0, key.get(), APTPL)
    }
    fn unregister(&self, key: FenceKey) -> Result<(), FenceError> {
        self.write(REGISTER, 0, key.get(), 0, APTPL)
    }
    fn reserve(&self, key: FenceKey) -> Result<(), FenceError> {
        self.write(RESERVE, TYPE, key.get(), 0, 0)
    }
    /// Not PREEMPT AND ABORT: LIO passes by what it should abort, or hangs (docs/fencing.md).
    fn preempt(&self, key: FenceKey, victim: FenceKey) -> Result<(), FenceError> {
        self.write(PREEMPT, TYPE, key.get(), victim.get(), 0)
    }
    fn end_commands(&self) -> Result<(), FenceError> {
        let what = RESET_DEVICE_ALONE;
        // SAFETY: this ioctl reads one int, which is alive.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), SG_SCSI_RESET, &what) } {
            0 => Ok(()),
            _ => Err(refused(&io::Error::last_os_error())),
        }
    }
}

/// SPC-4 6.15.2 and 6.15.3: what READ KEYS and READ RESERVATION gave.
fn registrants(keys: &[u8], held: &[u8]) -> Result<Registrants, FenceError> {
    let number = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
    let key = |b: &[u8]| u64::from_be_bytes(b[..8].try_into().expect("eight bytes"));
    let len = number(&keys[4..]) as usize;
    let list = keys[8..].get(..len).ok_or(FenceError::Other(libc::EOVERFLOW))?;
    let reservation = (number(&held[4..]) >= 16).then(|| Reservation {
        holder: FenceKey::new(key(&held[8..])),
        kind: match held[21] & 15 {
            TYPE => ReservationKind::ExclusiveRegistrants,
            other => ReservationKind::Other(other),
        },
    });
    Ok(Registrants { keys: sorted(list.chunks_exact(8).map(key)), reservation, generation: number(keys) })
}

/// What the statuses of a command mean (SAM-5 5.3.1; `scsi/scsi_status.h`).
fn answer(status: u8, host_status: u16, sense: &[u8]) -> Answer {
    let again = Answer::Again { pause: true };
    match (host_status, status) {
        (0, 0x00) => Answer::Good,
        (0, 0x02) => sense_answer(sense),
        (0, 0x18) => Answer::Failed(FenceError::Conflict),
        // Busy, task set full, task aborted.
        (0, 0x08 | 0x28 | 0x40) => again,
        // No connection, no such target, the transport has given up.
        (0x01 | 0x04 | 0x0f, _) => Answer::Failed(FenceError::Gone),
        (0x03, _) => Answer::Failed(FenceError::Other(libc::ETIMEDOUT)),
        // Busy bus, aborted, error, reset, soft error, at once, requeue, disrupted: its own sent again, ours not.
        (0x02 | 0x05 | 0x07 | 0x08 | 0x0b..=0x0e, _) => again,
        _ => Answer::Failed(FenceError::Other(libc::EIO)),
    }
}

/// SPC-4 4.5: sense data of both formats.
fn sense_answer(sense: &[u8]) -> Answer {
    let at = |i: usize| sense.get(i).copied().unwrap_or(0);
    let (key, code) = match at(0) & 0x7f {
        0x70 | 0x71 => (at(2) & 15, at(12)),
        0x72 | 0x73 => (at(1) & 15, at(2)),
        // A check condition without a reason.
        _ => return Answer::Again { pause: true },
    };
    match (key, code) {
        (0x1, _) => Answer::Good,
        // Unit attention: news, and this command was not begun.
        (0x6, _) => Answer::Again { pause: false },
        // Not ready, aborted command.
        (0x2 | 0xb, _) => Answer::Again { pause: true },
        // Illegal request: no such command, or a field of it or of its parameters is not known.
        (0x5, 0x20 | 0x24 | 0x26) => Answer::Failed(FenceError::None(NoFence::Drive)),
        _ => Answer::Failed(FenceError::Other(libc::EIO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_from_statuses_and_sense_of_both_formats() {
        let again = |pause| Answer::Again { pause };
        let fixed = |key: u8, code: u8| {
            let mut sense = vec![0x70, 0, key];
            sense.resize(18, 0);
            sense[12] = code;
            sense
        };
        assert_eq!(answer(0, 0, &[]), Answer::Good);
        assert_eq!(answer(0x18, 0, &[]), Answer::Failed(FenceError::Conflict));
        // A unit attention: another took the reservation away; the unit was reset.
        assert_eq!(answer(2, 0, &fixed(6, 0x2a)), again(false));
        assert_eq!(answer(2, 0, &[0x72, 6, 0x29, 3]), again(false));
        assert_eq!(answer(2, 0, &fixed(2, 4)), again(true));
        assert_eq!(answer(2, 0, &fixed(5, 0x20)), Answer::Failed(FenceError::None(NoFence::Drive)));
        assert_eq!(answer(2, 0, &[0x72, 5, 0x24]), Answer::Failed(FenceError::None(NoFence::Drive)));
        assert_eq!(answer(2, 0, &fixed(3, 0x11)), Answer::Failed(FenceError::Other(libc::EIO)));
        assert_eq!(answer(2, 0, &[]), again(true));
        assert_eq!(answer(0x08, 0, &[]), again(true));
        assert_eq!(answer(0, 0x0e, &[]), again(true));
        assert_eq!(answer(0, 1, &[]), Answer::Failed(FenceError::Gone));
        assert_eq!(answer(0, 3, &[]), Answer::Failed(FenceError::Other(libc::ETIMEDOUT)));
    }

    #[test]
    fn keys_and_holder_are_read_and_nonsense_is_an_error() {
        let mut keys = [0u8; 64];
        keys[..8].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 24]);
        for (i, key) in [0xb1u64, 0xa1, 0xb1].into_iter().enumerate() {
            keys[8 + 8 * i..][..8].copy_from_slice(&key.to_be_bytes());
        }
        let mut held = [0u8; 64];
        held[..8].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 16]);
        held[8..16].copy_from_slice(&0xa1u64.to_be_bytes());
        held[21] = 6;
        let [a, b] = [0xa1, 0xb1].map(|k| FenceKey::new(k).expect("not zero"));
        let seen = registrants(&keys, &held).expect("good");
        assert_eq!((seen.keys.as_slice(), seen.generation), ([a, b, b].as_slice(), 9));
        assert!(seen.is_held_by(a));
        // All registrants hold it: the key is zero.
        held[8..16].fill(0);
        held[21] = 8;
        let seen = registrants(&keys, &held).expect("good").reservation;
        assert_eq!(seen, Some(Reservation { holder: None, kind: ReservationKind::Other(8) }));
        held[7] = 0;
        assert_eq!(registrants(&keys, &held).expect("good").reservation, None);
        keys[5] = 1;
        assert_eq!(registrants(&keys, &held), Err(FenceError::Other(libc::EOVERFLOW)), "longer than it is");
    }

    #[test]
    fn a_preempt_names_our_key_first_and_the_victims_second() {
        let (cdb, data) = out(PREEMPT, TYPE, 0xa1, 0xb1, 0);
        assert_eq!(cdb, [0x5f, 4, 6, 0, 0, 0, 0, 0, 24, 0]);
        assert_eq!((data[7], data[15], data[20]), (0xa1, 0xb1, 0));
    }
}
