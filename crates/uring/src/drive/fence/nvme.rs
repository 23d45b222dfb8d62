//! NVMe: Reservation Report, Register, Acquire (NVM Express Base Specification 7.5 to 7.8 and 8.19), by passthrough.
//!
//! The commands are ours, by `NVME_IOCTL_IO_CMD`, and not the kernel's `IOC_PR_…`: those cannot read keys before Linux 6.5, and
//! take a key back as a replacement by zero. Registrants are hosts, by their Host Identifier, on all paths at once.

use super::{Answer, Limit, Reservations, refused, sorted, until_answered};
use crate::drive::nvme::{IO_COMMAND, Passthrough};
use base::fence::{Registrants, Reservation, ReservationKind};
use base::{FenceError, FenceKey, NoFence};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const REGISTER: u8 = 0x0d;
const REPORT: u8 = 0x0e;
const ACQUIRE: u8 = 0x11;
/// Dword 10 of Register: what to do; without a look at the key before; kept over a power cut (CPTPL 11b).
const UNREGISTER: u32 = 1;
const REPLACE: u32 = 2;
const IGNORE_KEY: u32 = 1 << 3;
const PERSISTENT: u32 = 3 << 30;
/// Dword 10 of Acquire: what to do, and the type: exclusive access, registrants only.
const TAKE: u32 = 0;
const PREEMPT_AND_ABORT: u32 = 2;
const TYPE: u8 = 4;
/// Dword 11 of Report: Host Identifiers of 128 bits.
const EXTENDED: u32 = 1;

/// Bytes asked for of a report: 63 or more controllers.
const REPORT_BYTES: usize = 4096;

/// `_IO('N', 0x40)`: the number of the namespace.
const NAMESPACE_ID: libc::c_ulong = 0x4e40;

/// A namespace.
pub(super) struct Namespace<'a> {
    file: &'a File,
    limit: &'a Limit<'a>,
    id: u32,
    /// How reports are asked for.
    format: Cell<u32>,
}

impl<'a> Namespace<'a> {
    /// The namespace behind a block device.
    pub(super) fn of(file: &'a File, limit: &'a Limit<'a>) -> Result<Self, FenceError> {
        // SAFETY: this ioctl takes no argument and touches no memory of ours.
        match unsafe { libc::ioctl(file.as_raw_fd(), NAMESPACE_ID) } {
            id if id > 0 => Ok(Self { file, limit, id: id as u32, format: Cell::new(EXTENDED) }),
            0 => Err(FenceError::Gone),
            _ => Err(refused(&io::Error::last_os_error())),
        }
    }

    /// Issues a command once; the status that the controller gave it, 0 for good.
    fn once(&self, opcode: u8, dwords: [u32; 2], data: &mut [u8]) -> Result<u16, FenceError> {
        let mut command = Passthrough {
            opcode,
            nsid: self.id,
            data: data.as_mut_ptr() as u64,
            data_len: data.len() as u32,
            cdw10: dwords[0],
            cdw11: dwords[1],
            // The kernel's own limit: at its end it resets the controller, which ours must not cause.
            timeout_ms: 0,
            ..Passthrough::default()
        };
        // SAFETY: `command` is the structure of this ioctl and points to `data`, which is as long as it says; both live
        // beyond the call, which returns only once the controller has answered.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), IO_COMMAND, &mut command) } {
            status if status >= 0 => Ok(status as u16 & 0x7ff),
            _ => Err(refused(&io::Error::last_os_error())),
        }
    }

    fn change(&self, opcode: u8, dword: u32, key: u64, other: u64) -> Result<(), FenceError> {
        let mut data = [key.to_le_bytes(), other.to_le_bytes()].concat();
        until_answered(self.limit, || self.once(opcode, [dword, 0], &mut data).map(answer))
    }
}

impl Reservations for Namespace<'_> {
    fn look(&self) -> Result<Registrants, FenceError> {
        let mut data = vec![0u8; REPORT_BYTES];
        until_answered(self.limit, || {
            let status = self.once(REPORT, [REPORT_BYTES as u32 / 4 - 1, self.format.get()], &mut data)?;
            // Host Identifiers have 64 bits here; or 128, as was not tried (status 18h: Host Identifier Inconsistent Format).
            if matches!(status, 0x02 | 0x18) && self.format.get() == EXTENDED {
                self.format.set(0);
                return Ok(Answer::Again { pause: false });
            }
            Ok(answer(status))
        })?;
        registrants(&data, self.format.get() == EXTENDED)
    }
    fn register(&self, key: FenceKey) -> Result<(), FenceError> {
        self.change(REGISTER, REPLACE | IGNORE_KEY | PERSISTENT, 0, key.get())
    }
    fn unregister(&self, key: FenceKey) -> Result<(), FenceError> {
        self.change(REGISTER, UNREGISTER, key.get(), 0)
    }
    fn reserve(&self, key: FenceKey) -> Result<(), FenceError> {
        self.change(ACQUIRE, TAKE | u32::from(TYPE) << 8, key.get(), 0)
    }
    fn preempt(&self, key: FenceKey, victim: FenceKey) -> Result<(), FenceError> {
        self.change(ACQUIRE, PREEMPT_AND_ABORT | u32::from(TYPE) << 8, key.get(), victim.get())
    }
    fn end_commands(&self) -> Result<(), FenceError> {
        // Preempt and Abort has done so.
        Ok(())
    }
}

/// The Reservation Status data structure, in its plain or its extended form.
fn registrants(data: &[u8], extended: bool) -> Result<Registrants, FenceError> {
    let (first, size, key_at) = if extended { (64, 64, 8) } else { (24, 24, 16) };
    let count = usize::from(u16::from_le_bytes([data[5], data[6]]));
    let list = data[first..].get(..count * size).ok_or(FenceError::Other(libc::EOVERFLOW))?;
    let key = |c: &[u8]| u64::from_le_bytes(c[key_at..key_at + 8].try_into().expect("eight bytes"));
    let holds = |c: &[u8]| c[2] & 1 == 1;
    let holder = list.chunks_exact(size).find(|c| holds(c)).and_then(|c| FenceKey::new(key(c)));
    let reservation = match data[4] {
        0 => None,
        TYPE => Some(Reservation { holder, kind: ReservationKind::ExclusiveRegistrants }),
        // 5 and 6: all registrants hold it.
        other => Some(Reservation {
            holder: holder.filter(|_| !matches!(other, 5 | 6)),
            kind: ReservationKind::Other(other),
        }),
    };
    let generation = u32::from_le_bytes([data[0], data[1], data[2], data[3]]);
    Ok(Registrants { keys: sorted(list.chunks_exact(size).map(key)), reservation, generation })
}

/// What a status means: its type in bits 10:8, its code in bits 7:0.
fn answer(status: u16) -> Answer {
    match status {
        0 => Answer::Good,
        0x083 => Answer::Failed(FenceError::Conflict),
        // Invalid opcode, invalid field.
        0x001 | 0x002 => Answer::Failed(FenceError::None(NoFence::Drive)),
        // Invalid namespace.
        0x00b => Answer::Failed(FenceError::Gone),
        // Abort requested, command interrupted, namespace not ready; a path that is not (any more).
        0x007 | 0x021 | 0x082 | 0x300..=0x3ff => Answer::Again { pause: true },
        _ => Answer::Failed(FenceError::Other(libc::EIO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_in_both_forms_and_nonsense_is_an_error() {
        let [a, b] = [0xa1u64, 0xb1].map(|k| FenceKey::new(k).expect("not zero"));
        for extended in [false, true] {
            let (first, size, key_at) = if extended { (64, 64, 8) } else { (24, 24, 16) };
            let mut data = vec![0u8; 512];
            data[0] = 7;
            data[4] = 4;
            data[5] = 2;
            for (i, key) in [b, a].into_iter().enumerate() {
                data[first + i * size + key_at..][..8].copy_from_slice(&key.get().to_le_bytes());
            }
            data[first + size + 2] = 1;
            let seen = registrants(&data, extended).expect("good");
            assert_eq!((seen.keys.as_slice(), seen.generation), ([a, b].as_slice(), 7));
            assert!(seen.is_held_by(a) && !seen.is_held_by(b));
            data[4] = 6;
            let seen = registrants(&data, extended).expect("good").reservation;
            assert_eq!(seen, Some(Reservation { holder: None, kind: ReservationKind::Other(6) }));
            data[4] = 0;
            assert_eq!(registrants(&data, extended).expect("good").reservation, None);
            data[6] = 1;
            assert_eq!(registrants(&data, extended), Err(FenceError::Other(libc::EOVERFLOW)));
        }
    }

    #[test]
    fn a_status_says_whether_to_try_again() {
        assert_eq!(answer(0), Answer::Good);
        assert_eq!(answer(0x83), Answer::Failed(FenceError::Conflict));
        assert_eq!(answer(1), Answer::Failed(FenceError::None(NoFence::Drive)));
        assert_eq!(answer(0x371), Answer::Again { pause: true }, "a path was lost");
        assert_eq!(answer(0x281), Answer::Failed(FenceError::Other(libc::EIO)));
        assert_eq!(IO_COMMAND, 0xc048_4e43);
    }
}
