//! Words that many procedures say.

use crate::order::{ErrorKind, Refusal};
use base::DriveKind;
pub(crate) use base::size::{print as size, print_free as size_there};
use base::{DriveError, DriveInfo};

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

/// What helps against a state directory that takes nothing.
pub(crate) const STATE_DISK: &str = "millrace status -v names the state directory: df -h and ls -ld there";

/// How many names a sentence bears.
const SHOWN: usize = 4;

/// Names in a sentence.
pub(crate) fn list(names: &[String]) -> String {
    match names.len() {
        0..=SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN - 1].join(", "), n - (SHOWN - 1)),
    }
}
