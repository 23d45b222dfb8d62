//! What only an NVMe drive reports: its health. The kernel offers this by a command to the controller, not as a
//! file (`NVME_IOCTL_ADMIN_CMD`, `linux/nvme_ioctl.h`). The command here only reads.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;

/// Bytes of the log page.
pub const HEALTH_LEN: usize = 512;

/// NVM Express Base Specification, Get Log Page: the opcode, and the SMART / Health Information page.
const GET_LOG_PAGE: u8 = 0x02;
const HEALTH: u32 = 0x02;
/// The controller as a whole, not one of its namespaces.
const EVERY_NAMESPACE: u32 = 0xffff_ffff;

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Passthrough {
    pub opcode: u8,
    pub flags: u8,
    pub reserved: u16,
    pub nsid: u32,
    pub cdw2: u32,
    pub cdw3: u32,
    pub metadata: u64,
    pub data: u64,
    pub metadata_len: u32,
    pub data_len: u32,
    pub cdw10: u32,
    pub cdw11: u32,
    pub cdw12: u32,
    pub cdw13: u32,
    pub cdw14: u32,
    pub cdw15: u32,
    pub timeout_ms: u32,
    pub result: u32,
}

/// `_IOWR('N', number, struct nvme_passthru_cmd)`.
const fn request(number: libc::c_ulong) -> libc::c_ulong {
    3 << 30 | (size_of::<Passthrough>() as libc::c_ulong) << 16 | (b'N' as libc::c_ulong) << 8 | number
}
/// To a controller.
const ADMIN_COMMAND: libc::c_ulong = request(0x41);
/// To a namespace.
pub(super) const IO_COMMAND: libc::c_ulong = request(0x43);
const _: () = assert!(size_of::<Passthrough>() == 72);

/// The SMART / Health Information log page of a controller, `nvme0`, as it comes. It may take as long as the kernel has
/// patience with the controller (a minute): a shorter limit of ours would have the kernel reset a drive that is only busy.
///
/// Errors: the name is none of a controller or it is not there (`NotFound`); no right (`PermissionDenied`); the controller
/// refused, with its status.
pub fn health(controller: &str) -> io::Result<[u8; HEALTH_LEN]> {
    let number = controller.strip_prefix("nvme").unwrap_or("");
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = File::open(format!("/dev/{controller}"))?;
    // What is no device would be asked something else by the same number.
    if !file.metadata()?.file_type().is_char_device() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut page = [0u8; HEALTH_LEN];
    let dwords = HEALTH_LEN as u32 / 4 - 1;
    let mut command = Passthrough {
        opcode: GET_LOG_PAGE,
        nsid: EVERY_NAMESPACE,
        data: page.as_mut_ptr() as u64,
        data_len: HEALTH_LEN as u32,
        cdw10: dwords << 16 | HEALTH,
        ..Passthrough::default()
    };
    // SAFETY: `command` is the structure of this ioctl and points to `page`, which is as long as it says; both live beyond
    // the call, which returns only once the controller has answered, and the kernel writes no more than that.
    match unsafe { libc::ioctl(file.as_raw_fd(), ADMIN_COMMAND, &mut command) } {
        0 => Ok(page),
        status if status > 0 => Err(io::Error::other(format!("NVMe status {status:#x}"))),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_that_are_none_are_not_asked() {
        for name in ["", "nvme", "nvme0n1", "nvme-fabrics", "null", "../dev/null", "nvme4294967295"] {
            assert_eq!(health(name).map_err(|e| e.kind()).err(), Some(io::ErrorKind::NotFound), "{name}");
        }
        assert_eq!(ADMIN_COMMAND, 0xc048_4e41);
    }
}
