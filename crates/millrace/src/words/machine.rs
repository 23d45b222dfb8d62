//! Words about drives that could not be opened, sizes, the state directory: mostly what the machine below refused.

use super::parts::drive_fault;
use base::{DriveOpenFault, DriveUser, SizeFault, StateFault};
use finding::{DriveFault, OpenFault, ShapeFault};
use std::io;

/// The kernel's words for an error.
pub fn errno_words(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}

/// Why a drive was not opened, or is not used as it was: the drive, the cause, what to do.
pub fn open_fault(drive: &str, fault: &OpenFault) -> String {
    match fault {
        OpenFault::Machine { fault } => drive_open_fault(drive, fault),
        OpenFault::Shape { fault } => format!("{drive}: {}", shape_fault(fault)),
        OpenFault::PrefixInternal { prefix, path } => {
            format!("{drive}: there is no kind of drive `{prefix}`: the path alone, {path}")
        }
        OpenFault::Unreadable { fault } => unreadable(drive, fault),
        OpenFault::NotShutOut => format!("{drive} has not confirmed that the other head is shut out"),
    }
}

/// What a drive did that was opened and could not be read.
pub fn unreadable(drive: &str, fault: &DriveFault) -> String {
    format!("{drive} cannot be read: the drive {}", drive_fault(fault))
}

/// What is wrong with the shape of a drive.
pub fn shape_fault(fault: &ShapeFault) -> String {
    match fault {
        ShapeFault::DriveMissing => "`@` and the drive are missing behind the shape".into(),
        ShapeFault::DriveInvalid => "behind `@` comes one drive, such as /dev/sdb or ram:1G".into(),
        ShapeFault::OptionUnknown { option } => format!(
            "unknown option `{option}` of a shape: latency-us, iops-max, mbps-max, read-errors-ppm, \
             write-errors-ppm, uplink, uplink-mbps, uplink-share, hang and gone exist"
        ),
        ShapeFault::OptionTwice { option } => format!("`{option}` is named twice"),
        ShapeFault::ValueInvalid { option, value, value_max } => {
            format!("{option}: `{value}` is not a whole number from 1 to {value_max}")
        }
        ShapeFault::UplinkMissing => {
            "uplink-mbps and uplink-share need uplink=N, the shared link's number".into()
        }
        ShapeFault::UplinkRateMissing => "uplink needs uplink-mbps=N, what passes the shared link".into(),
        ShapeFault::UplinkShareTooLarge { share_max } => {
            format!("uplink-share is a whole number from 1 to {share_max}")
        }
    }
}

/// Why the machine could not open a drive: the drive, the cause, what to do.
pub fn drive_open_fault(drive: &str, why: &DriveOpenFault) -> String {
    use DriveOpenFault as F;
    match why {
        F::NoSpec => "the drive's specification is empty: give a path, ram:SIZE or null:SIZE".into(),
        F::NoName => format!("{drive}: the name before the comma is empty"),
        F::NoPath { prefix } => format!("{drive}: a path is missing after `{prefix}`"),
        F::Size { fault } => format!("{drive}: {}", size_fault(fault)),
        F::UnevenSize { bytes } => {
            format!("{drive}: a drive of {bytes} bytes is not possible: the size is a multiple of 4096")
        }
        F::BlockSize { value } => format!("{drive}: block={value} is not possible, only 512 and 4096"),
        F::UnknownOption { option } => {
            format!("{drive}: unknown option `{option}`: size=SIZE and block=512 exist")
        }
        F::RamSize { bytes, wanted_bytes } => {
            format!("{drive}: exists with {bytes} bytes, not {wanted_bytes}: give its size")
        }
        F::RamInUse => {
            format!("{drive} is in use by this process: close it first, or choose another name")
        }
        F::RamFull { bytes, free_bytes } => format!(
            "there is no room for a RAM drive of {bytes} bytes: {free_bytes} bytes of memory are free for RAM \
             drives: choose a smaller one"
        ),
        F::RamRefused { bytes, errno } => format!(
            "there is no room for a RAM drive of {bytes} bytes ({}): choose a smaller one",
            errno_words(*errno)
        ),
        F::NumberTaken { number } => {
            format!("{drive} cannot be opened: drive number {number} is taken by another drive")
        }
        F::InUseThrough { device, users } => {
            format!("{drive} is in use through {device}, by {}: unmount or stop that first", all_users(users))
        }
        F::InUse { users } => {
            format!("{drive} is in use by {}: unmount or stop that first", all_users(users))
        }
        F::Open { by } => format!("{drive} is in use by {}", all_users(by)),
        F::Claimed => {
            format!("{drive} is in use by another process: stop what holds it (`fuser -v {drive}` may know)")
        }
        F::Locked => {
            format!("{drive} is in use: another process, or another drive of this head, has locked it")
        }
        F::NotAFile => format!("{drive} is not a regular file"),
        F::NotAFileHere => format!("{drive} is not a regular file: give its path without `file:`"),
        F::Directory => not_a_drive(drive, "a directory"),
        F::NotADrive => not_a_drive(drive, "neither a block device nor a file"),
        F::LargeBlocks { bytes } => format!(
            "{drive} has blocks of {bytes} bytes, and at most 4096 are supported: reformat it with 4096"
        ),
        F::Empty { bytes } => {
            format!("{drive} is empty ({bytes} bytes): insert a medium or give another drive")
        }
        F::OtherSize { bytes, wanted_bytes } => format!(
            "{drive} exists with {bytes} bytes, not {wanted_bytes}: leave the size out to use it as it is, or \
             remove it"
        ),
        F::NoSize => format!("{drive} does not exist: add ?size=SIZE to make it"),
        F::TooSmall { bytes } => format!("{drive} has {bytes} bytes, too few for a drive: at least 4096"),
        F::Missing => {
            format!("{drive} does not exist: check the name, or list drives with `millrace drive ls`")
        }
        F::Forbidden => {
            format!("{drive} may not be opened: run as root, or as a user of the group that owns it")
        }
        F::ReadOnly => format!("{drive} is read-only: a drive must be writable"),
        F::NoMedium => {
            format!("{drive} has no device or medium behind it: check the cabling or the driver")
        }
        F::NoSpace => {
            format!("{drive} does not fit on its file system: free some space or choose a smaller size")
        }
        F::TooManyFiles => {
            format!("{drive}: too many open files: raise RLIMIT_NOFILE (LimitNOFILE in the unit)")
        }
        F::Unreadable => {
            format!("{drive} cannot be read (input/output error): the drive or its cabling is broken")
        }
        F::Short => format!("{drive} cannot be opened: it ended while it was read"),
        F::Errno { errno } => format!("{drive} cannot be opened: {}", errno_words(*errno)),
        F::Silent { milliseconds } => {
            let seconds = *milliseconds as f64 / 1000.0;
            format!("{drive} does not answer: it could not be opened within {seconds} s")
        }
        F::Busy => {
            format!("{drive} does not answer: operations that were begun on it before have not ended")
        }
    }
}

fn not_a_drive(drive: &str, what: &str) -> String {
    format!("{drive} is {what}, not a drive: give a block device, or file:PATH?size=SIZE to make a file")
}

fn all_users(users: &[DriveUser]) -> String {
    users.iter().map(drive_user).collect::<Vec<_>>().join(" and ")
}

/// Who uses a drive, after "by".
pub fn drive_user(user: &DriveUser) -> String {
    match user {
        DriveUser::Lvm { name } => format!("the LVM volume {name}"),
        DriveUser::Encrypted { name } => format!("the encrypted device {name}"),
        DriveUser::Multipath { name } => format!("the multipath device {name}"),
        DriveUser::Mapped { name } => format!("the mapped device {name}"),
        DriveUser::Md { name } => format!("the md array {name}"),
        DriveUser::Device { name } => format!("the device {name}"),
        DriveUser::Mount { path } => format!("the file system mounted at {path}"),
        DriveUser::Swap => "swap".into(),
        DriveUser::ThisHead => "this head, as another drive".into(),
        DriveUser::Process { pid, command } if command.is_empty() => format!("process {pid}"),
        DriveUser::Process { pid, command } => format!("process {pid} ({command})"),
        DriveUser::AnotherProcess => "another process".into(),
    }
}

/// Why a text is no size.
pub fn size_fault(fault: &SizeFault) -> String {
    match fault {
        SizeFault::NotASize { text } => {
            format!("\"{text}\" is not a size: write a number with K, M, G, T or P, such as 400G")
        }
        SizeFault::TooLarge { text } => {
            format!("\"{text}\" is too large: sizes end below 8192P (2^63 bytes)")
        }
        SizeFault::Fraction { text } => format!("\"{text}\" is not a whole number of bytes"),
        SizeFault::Nothing { text } => format!("\"{text}\" is too small: a size is at least one byte"),
    }
}

/// What failed at the state directory: the head quotes it.
pub fn state_fault(fault: &StateFault) -> String {
    match fault {
        StateFault::NoDirectory => "no state directory is configured: set `state_dir`".into(),
        StateFault::Name { name } => format!("`{name}` is not a name of a state file"),
        StateFault::TooLarge { path, bytes_max } => {
            format!("{path}: larger than {bytes_max} bytes, so it is not one of ours")
        }
        StateFault::ReadOnly { path } => format!("{path}: its file system is read-only"),
        StateFault::Forbidden { path, errno } => {
            format!("{path}: {}: make it writable for the user of the daemon", errno_words(*errno))
        }
        StateFault::Errno { path, errno } => format!("{path}: {}", errno_words(*errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_was_not_opened_is_named_with_what_is_wrong() {
        let shape = |fault| OpenFault::Shape { fault };
        let option = || "iops-max".to_string();
        for (fault, sentence) in [
            (
                OpenFault::Machine { fault: DriveOpenFault::ReadOnly },
                "/d is read-only: a drive must be writable",
            ),
            (
                OpenFault::PrefixInternal { prefix: "made:".into(), path: "/f".into() },
                "/d: there is no kind of drive `made:`: the path alone, /f",
            ),
            (
                OpenFault::Unreadable { fault: DriveFault::TimedOut },
                "/d cannot be read: the drive did not answer in time",
            ),
            (OpenFault::NotShutOut, "/d has not confirmed that the other head is shut out"),
            (shape(ShapeFault::DriveMissing), "/d: `@` and the drive are missing behind the shape"),
            (shape(ShapeFault::DriveInvalid), "/d: behind `@` comes one drive, such as /dev/sdb or ram:1G"),
            (shape(ShapeFault::OptionTwice { option: option() }), "/d: `iops-max` is named twice"),
            (
                shape(ShapeFault::ValueInvalid { option: option(), value: "x".into(), value_max: 9 }),
                "/d: iops-max: `x` is not a whole number from 1 to 9",
            ),
        ] {
            assert_eq!(open_fault("/d", &fault), sentence);
        }
    }

    /// A sentence stands behind a colon, and says nothing that only programmers print.
    #[test]
    fn every_fault_of_a_drive_that_was_not_opened_has_words() {
        let shapes = ShapeFault::samples().into_iter().map(|fault| OpenFault::Shape { fault });
        for fault in OpenFault::samples().into_iter().chain(shapes) {
            let sentence = open_fault("/d", &fault);
            assert!(sentence.starts_with("/d") && !sentence.ends_with('.'), "{sentence}");
            assert!(!sentence.contains('{') && !sentence.contains('"'), "{sentence}");
        }
    }
}
