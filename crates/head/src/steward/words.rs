//! Words that many procedures say.

use crate::order::{ErrorKind, Refusal};
use access::{AccessError, LUN_MAX};
use base::DriveKind;
pub(crate) use base::size::{print as size, print_free as size_there, print_needed as size_needed};
use base::{DriveError, DriveInfo};
use volume::VolumeError;

/// What a drive did, after "the drive".
pub(crate) fn error_words(error: DriveError) -> String {
    match error {
        DriveError::Medium => "failed to read or write blocks".into(),
        DriveError::Gone => "is gone".into(),
        DriveError::NoSpace => "has no space left (the file system below it is full)".into(),
        DriveError::Cut => "was cut off (its file is shorter than it was)".into(),
        DriveError::TimedOut => "did not answer in time".into(),
        DriveError::Fenced => "refused: another head, or another machine, has reserved this drive".into(),
        // EPERM from a device that may not be written, EROFS from the file system below a file.
        DriveError::Other(errno @ (1 | 30)) => format!("is read-only (error {errno})"),
        DriveError::Other(errno) => format!("failed with error {errno}"),
    }
}

/// What a drive did, after "the drive". A block device has no file system below it.
pub(crate) fn did(info: &DriveInfo, error: DriveError) -> String {
    match error {
        DriveError::NoSpace if info.kind == DriveKind::Block => NO_SPACE_BLOCK.into(),
        _ => error_words(error),
    }
}

/// Why a drive did not take its label, and the command that shows more.
pub(crate) fn not_labelled(info: &DriveInfo, error: DriveError) -> (String, String) {
    let path = &info.path;
    let next = match error {
        DriveError::NoSpace if info.kind == DriveKind::File => format!("df -h {path}"),
        _ => "millrace drive ls".into(),
    };
    (format!("{path} could not be labelled: the drive {}", did(info, error)), next)
}

/// Writes behind the end of a block device fail so, and those that a thin volume has no block for.
pub(crate) const NO_SPACE_BLOCK: &str =
    "has no space left (it became smaller than it was, or is a thin volume whose pool is full)";

/// `n` things: `1 volume`, `2 volumes`.
pub(crate) fn count(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// The same of a number that is counted for long.
pub(crate) fn count_of(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// An array as `status` names it: `mirror-0`, `single-3`.
pub(crate) fn array_word(mirror: bool, index: usize) -> String {
    format!("{}-{index}", if mirror { "mirror" } else { "single" })
}

/// A refusal about a field, with the command that shows what there is of such things.
pub(crate) fn refuse(kind: ErrorKind, field: &'static str, message: impl Into<String>) -> Refusal {
    let next = match (kind, field) {
        (ErrorKind::Internal, _) | (_, "") => "millrace events, or journalctl -u millrace -n 20",
        (_, "drive" | "drives" | "old" | "new" | "prefer") => "millrace drive ls",
        (_, "host" | "nqns" | "iqns" | "chap_user" | "chap_secret" | "mutual_secret") => "millrace host ls",
        (_, "volume" | "bytes" | "lun") => "millrace volume ls",
        (_, "address") => "millrace portal ls",
        (_, "pool" | "arrays" | "weight" | "chunk_bytes" | "block_bytes") => "millrace pool ls",
        (..) => "millrace status",
    };
    Refusal::sentence(kind, field, message, Some(next.into()))
}

/// The command that helps, if there is one.
pub(crate) fn then_try(refusal: Refusal, next: Option<String>) -> Refusal {
    match next {
        Some(next) => refusal.then(next),
        None => refusal,
    }
}

pub(crate) fn volume_refusal(e: VolumeError) -> Refusal {
    let kind = match e {
        VolumeError::NameTaken(_) => ErrorKind::Conflict,
        VolumeError::TooMany | VolumeError::TooScattered => ErrorKind::NoSpace,
        VolumeError::Name(_)
        | VolumeError::SizeZero
        | VolumeError::SizeTooLarge(_)
        | VolumeError::SizeUneven { .. }
        | VolumeError::BlockSize(_)
        | VolumeError::BlockTooSmall { .. } => ErrorKind::Invalid,
    };
    let next = match &e {
        VolumeError::Name(_) => "the same command with a name such as vm1".into(),
        VolumeError::NameTaken(_) | VolumeError::TooMany | VolumeError::TooScattered => {
            "millrace volume ls".into()
        }
        VolumeError::SizeZero | VolumeError::SizeTooLarge(_) => {
            "the same command with a size such as --size 100G".into()
        }
        VolumeError::SizeUneven { bytes, block_bytes } => {
            format!("the same command with --size {}", bytes.next_multiple_of(u64::from(*block_bytes)))
        }
        VolumeError::BlockSize(_) | VolumeError::BlockTooSmall { .. } => {
            "the same command with --block 4096".into()
        }
    };
    refuse(kind, e.field(), e.to_string()).then(next)
}

pub(crate) fn access_refusal(e: AccessError) -> Refusal {
    let kind = match e {
        AccessError::HostTaken(_) | AccessError::NameOfAnother { .. } => ErrorKind::Conflict,
        AccessError::Lun(n) if n <= LUN_MAX => ErrorKind::Conflict,
        AccessError::NoHost(_) => ErrorKind::NotFound,
        AccessError::TooManyHosts | AccessError::Full => ErrorKind::NoSpace,
        AccessError::HostName(_)
        | AccessError::Nameless
        | AccessError::TooManyNames
        | AccessError::Nqn { .. }
        | AccessError::Iqn { .. }
        | AccessError::Secret { .. }
        | AccessError::ChapUser
        | AccessError::Lun(_) => ErrorKind::Invalid,
    };
    let next = match &e {
        AccessError::NoHost(_) | AccessError::TooManyHosts | AccessError::TooManyNames => {
            "millrace host ls".into()
        }
        AccessError::HostName(_) => "the same command with a name such as web1".into(),
        AccessError::HostTaken(name) => {
            format!("millrace host show {name}, or millrace host set {name} to change it")
        }
        AccessError::Nameless => "the same command with --nqn NQN, or --iqn IQN, or both".into(),
        AccessError::Nqn { .. } => "cat /etc/nvme/hostnqn, on the host".into(),
        AccessError::Iqn { .. } => "cat /etc/iscsi/initiatorname.iscsi, on the host".into(),
        AccessError::NameOfAnother { host, .. } => format!("millrace host show {host}"),
        AccessError::Secret { .. } => "openssl rand -hex 12 > FILE, and the same command with it".into(),
        AccessError::ChapUser => "the same command with --chap-user NAME".into(),
        AccessError::Lun(_) => "the same command without --lun, which takes the lowest free one".into(),
        AccessError::Full => "millrace volume ls".into(),
    };
    refuse(kind, e.field(), e.to_string()).then(next)
}

/// Why a portal does not listen.
pub(crate) fn net_words(e: base::NetError) -> String {
    match e {
        base::NetError::InUse => "somebody else listens there".into(),
        base::NetError::NoAddress => "the address is not this machine's".into(),
        base::NetError::Refused => "it was refused".into(),
        base::NetError::Other(errno) => format!("error {errno}"),
    }
}

/// Why an address is not here.
pub(crate) fn address_words(why: crate::mail::NoAddress) -> String {
    match why {
        crate::mail::NoAddress::NoSubnet => {
            "it cannot move here: no interface of this machine has another address of its subnet".into()
        }
        crate::mail::NoAddress::NoInterface => {
            "it cannot move here: this machine has no such interface".into()
        }
        crate::mail::NoAddress::Foreign => "it does not move: this machine has it by itself".into(),
        crate::mail::NoAddress::NotAllowed => {
            "it cannot move here: the daemon may not configure addresses (CAP_NET_ADMIN)".into()
        }
        crate::mail::NoAddress::Other(errno) => format!("it cannot move here: error {errno}"),
    }
}

/// What helps.
pub(crate) fn address_next(why: crate::mail::NoAddress) -> &'static str {
    match why {
        crate::mail::NoAddress::NoSubnet => {
            "the same with --interface NAME, or another address: ip -brief address shows both"
        }
        crate::mail::NoAddress::NoInterface => "the same with another --interface: ip -brief link shows them",
        crate::mail::NoAddress::Foreign => {
            "the same without --prefix, or remove the address from this machine: ip -brief address"
        }
        crate::mail::NoAddress::NotAllowed => "systemctl edit millrace, and give it CAP_NET_ADMIN",
        crate::mail::NoAddress::Other(_) => "ip -brief address",
    }
}

/// Why an address cannot move at all.
pub(crate) fn cannot_move(why: base::view::Immovable) -> &'static str {
    match why {
        base::view::Immovable::NotOne => "it is not the address of one machine in a subnet of this size",
        base::view::Immovable::Local => "it is good within one machine or on one cable only",
        base::view::Immovable::Prefix => "the prefix has 1 to 32 bits for IPv4, 1 to 128 for IPv6",
    }
}

/// What helps.
pub(crate) fn cannot_move_next(why: base::view::Immovable) -> &'static str {
    match why {
        base::view::Immovable::NotOne => {
            "an address of one machine, with the prefix that ip -brief address shows"
        }
        base::view::Immovable::Local => "the same without --prefix: each head has that address by itself",
        base::view::Immovable::Prefix => {
            "the same with the prefix that ip -brief address shows for its subnet"
        }
    }
}

/// What helps against a state directory that takes nothing.
pub(crate) const STATE_DISK: &str = "millrace status -v names the state directory: df -h and ls -ld there";
