//! Words that several topics need.

pub use base::size::{print as size, print_free as size_free};
use finding::{
    AddressFault, AlarmFault, ConnectedHost, ContentFault, DriveFault, FenceFault, FileFault, FollowerFault,
    Immovable, IqnFault, LinkFault, NetFault, NoFence, NqnFault, OutReason, SecretFault, ShutOutFault,
    StateFault, StateFile, TrialFault,
};

/// What a drive did, after "the drive".
pub fn drive_fault(fault: &DriveFault) -> String {
    match fault {
        DriveFault::Medium => "failed to read or write blocks".into(),
        DriveFault::Gone => "is gone".into(),
        DriveFault::NoSpace => "has no space left (the file system below it is full)".into(),
        DriveFault::NoSpaceBlock => {
            "has no space left (it became smaller than it was, or is a thin volume whose pool is full)".into()
        }
        DriveFault::Cut => "was cut off (its file is shorter than it was)".into(),
        DriveFault::TimedOut => "did not answer in time".into(),
        DriveFault::Reserved => "refused: another head, or another machine, has reserved this drive".into(),
        DriveFault::ReadOnly { errno } => format!("is read-only (error {errno})"),
        DriveFault::Errno { errno } => format!("failed with error {errno}"),
    }
}

/// Why a receiver did not take an alarm.
pub fn alarm_fault(fault: &AlarmFault) -> String {
    let said = |answer: &str| match answer {
        "" => String::new(),
        answer => format!(" ({answer})"),
    };
    match fault {
        AlarmFault::NotReached { error } => format!("it cannot be reached: {error}"),
        AlarmFault::BrokenOff { error } => format!("the connection broke off: {error}"),
        AlarmFault::NoTls { error } => format!("TLS with it fails: {error}"),
        AlarmFault::TimedOut { seconds } => format!("it did not answer within {seconds} s"),
        AlarmFault::Refused { status, answer } => format!("it answered {status}{}", said(answer)),
        AlarmFault::NotStarted { error } => format!("the command does not start: {error}"),
        AlarmFault::CommandFailed { status, answer } => {
            format!("the command ended with {status}{}", said(answer))
        }
        AlarmFault::CommandKilled { signal } => format!("signal {signal} ended the command"),
        AlarmFault::FileUnread { path, error } => format!("{path} cannot be read: {error}"),
    }
}

/// Why a portal does not listen.
pub fn net_fault(fault: &NetFault) -> String {
    match fault {
        NetFault::InUse => "another process listens there".into(),
        NetFault::NoAddress => "the address is not this machine's".into(),
        NetFault::Refused => "it was refused".into(),
        NetFault::Errno { errno } => format!("error {errno}"),
    }
}

/// Why an address is not here.
pub fn address_fault(fault: &AddressFault) -> String {
    match fault {
        AddressFault::NoSubnet => {
            "it cannot move here: no interface of this machine has another address of its subnet".into()
        }
        AddressFault::NoInterface => "it cannot move here: this machine has no such interface".into(),
        AddressFault::Foreign => "it does not move: this machine has it by itself".into(),
        AddressFault::NotAllowed => {
            "it cannot move here: the daemon may not configure addresses (CAP_NET_ADMIN)".into()
        }
        AddressFault::Errno { errno } => format!("it cannot move here: error {errno}"),
    }
}

/// What helps.
pub fn address_next(fault: &AddressFault) -> &'static str {
    match fault {
        AddressFault::NoSubnet => {
            "the same with --interface NAME, or another address: ip -brief address shows both"
        }
        AddressFault::NoInterface => "the same with another --interface: ip -brief link shows them",
        AddressFault::Foreign => {
            "the same without --prefix, or remove the address from this machine: ip -brief address"
        }
        AddressFault::NotAllowed => "systemctl edit millrace, and give it CAP_NET_ADMIN",
        AddressFault::Errno { .. } => "ip -brief address",
    }
}

/// Why an address cannot move at all.
pub fn immovable(why: &Immovable) -> &'static str {
    match why {
        Immovable::NotOne => "it is not the address of one machine in a subnet of this size",
        Immovable::Local => "it is good within one machine or on one cable only",
        Immovable::Prefix => "the prefix has 1 to 32 bits for IPv4, 1 to 128 for IPv6",
    }
}

/// What helps.
pub fn immovable_next(why: &Immovable) -> &'static str {
    match why {
        Immovable::NotOne => "an address of one machine, with the prefix that ip -brief address shows",
        Immovable::Local => "the same without --prefix: each head has that address by itself",
        Immovable::Prefix => "the same with the prefix that ip -brief address shows for its subnet",
    }
}

/// `n` things: `1 volume`, `2 volumes`.
pub fn count(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// What helps against a state directory that takes nothing.
pub const STATE_DISK: &str = "millrace status -v names the state directory: df -h and ls -ld there";

/// How many names a sentence bears.
const SHOWN: usize = 4;

/// Names in a sentence.
pub fn list(names: &[String]) -> String {
    match names.len() {
        0..=SHOWN => names.join(", "),
        n => format!("{} and {} more", names[..SHOWN - 1].join(", "), n - (SHOWN - 1)),
    }
}

/// A size as a person types it, exactly.
pub fn typed(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let unit = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1u64 << shift));
    unit.map_or(bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// A name that somebody typed: in quotation marks if it holds anything that would not stand out without them.
pub fn shown(name: &str) -> String {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'));
    if plain { name.into() } else { format!("{name:?}") }
}

/// Why nothing of this kind can be called so.
pub fn not_a_name(name: &str, kind: &str) -> String {
    format!(
        "{} is no name of a {kind}: a name has 1 to 63 characters of a-z A-Z 0-9 . _ - and begins with a letter or digit",
        shown(name)
    )
}

/// What is wrong with an NVMe qualified name.
pub fn nqn_fault(fault: &NqnFault) -> String {
    match fault {
        NqnFault::TooLong { bytes_max } => format!("it is longer than {bytes_max} bytes"),
        NqnFault::Blank => "it holds a blank or a control character".into(),
        NqnFault::Prefix => "it does not begin with \"nqn.\"".into(),
        NqnFault::Month => "after \"nqn.\" comes a year and a month, as in nqn.2014-08.org.example".into(),
        NqnFault::Discovery => "it is that of discovery".into(),
        NqnFault::NoUuid => "what follows \"uuid:\" is no UUID".into(),
    }
}

/// What is wrong with an iSCSI name.
pub fn iqn_fault(fault: &IqnFault) -> String {
    match fault {
        IqnFault::TooLong { bytes_max } => format!("it is longer than {bytes_max} bytes"),
        IqnFault::Character => "it holds something else than a-z 0-9 - . : _".into(),
        IqnFault::Prefix => "it begins neither with \"iqn.\" nor \"eui.\" nor \"naa.\"".into(),
        IqnFault::Month => "after \"iqn.\" comes a year and a month, as in iqn.1998-01.com.example".into(),
        IqnFault::Eui => "after \"eui.\" come 16 hexadecimal digits".into(),
        IqnFault::Naa => "after \"naa.\" come 16 or 32 hexadecimal digits".into(),
    }
}

/// What is wrong with a secret, after "the CHAP secret".
pub fn secret_fault(fault: &SecretFault) -> String {
    match fault {
        SecretFault::TooShort { bytes_min } => format!("is shorter than {bytes_min} bytes"),
        SecretFault::TooLong { bytes_max } => format!("is longer than {bytes_max} bytes"),
        SecretFault::NoHex => "begins with 0x, and what follows are not pairs of hexadecimal digits".into(),
        SecretFault::NotPrintable => {
            "holds something else than printable ASCII; write it as 0x and hexadecimal digits".into()
        }
        SecretFault::SameAsOther => "is the same as the CHAP secret".into(),
        SecretFault::Alone => "needs a CHAP secret: only a host that proves itself may ask us to".into(),
    }
}

/// Connected hosts, and `what` goes on after them: `would lose volume tank/vm1`.
pub fn connected(hosts: &[ConnectedHost], what: &str) -> String {
    let connections = |h: &ConnectedHost| count(h.connections, "connection");
    let one = |h: &ConnectedHost| format!("{} ({})", h.host, connections(h));
    match hosts {
        [] => format!("nobody {what}"),
        [h] => format!("host {} is connected ({}) and {what}", h.host, connections(h)),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(one).collect();
            format!("hosts {} and {} are connected and {what}", first.join(", "), one(last))
        }
    }
}

/// Why two heads cannot use a drive, and what to do instead.
pub fn no_fence(why: &NoFence) -> &'static str {
    match why {
        NoFence::Unknown => "it is not known whether this drive can be fenced: open it again",
        NoFence::Private => {
            "the drive lives in the memory of one process, so a second head cannot reach it: give a drive that both reach"
        }
        NoFence::Memory => {
            "the drive lives in the memory of one machine, so a second head cannot reach it: give a drive that both reach"
        }
        NoFence::Loop => "a loop device takes no reservations: give the file or the device behind it",
        NoFence::Mapped => {
            "device mapper and md drop a part of what a fence needs: give the drive below, by one of its own paths"
        }
        NoFence::Partition => "reservations are of whole drives: give the whole drive",
        NoFence::Driver => {
            "the kernel's driver of this drive passes on no reservations: give a SCSI, SAS or NVMe drive"
        }
        NoFence::Drive => {
            "the drive takes no reservation of the type exclusive access, registrants only: use another drive, or power the other head off by its BMC before its pools are taken over"
        }
    }
}

/// What two heads can use instead.
pub fn no_fence_instead(why: &NoFence) -> &'static str {
    match why {
        NoFence::Unknown | NoFence::Private | NoFence::Memory => "a drive that both heads reach",
        NoFence::Loop => "the file or the drive behind the loop device (losetup -l)",
        NoFence::Mapped => "the drive below the device mapper or md, by its own path (lsblk -s)",
        NoFence::Partition => "a whole drive instead of a partition",
        NoFence::Driver | NoFence::Drive => "a SCSI, SAS or NVMe drive with persistent reservations",
    }
}

/// What the state directory did.
pub fn state_fault(what: &StateFile, fault: &StateFault) -> String {
    let what = match what {
        StateFile::Named { file } => format!("the file {file}"),
        StateFile::Witness => "the witness record".into(),
        StateFile::OldWitness => "an old witness record".into(),
        StateFile::Log => "the event log".into(),
        StateFile::Kept { pool: None } => "the kept configuration".into(),
        StateFile::Kept { pool: Some(pool) } => format!("the kept configuration of pool {pool}"),
    };
    match fault {
        StateFault::Missing => format!("{what} is missing from the state directory"),
        StateFault::NoSpace => format!("{what} could not be written: the state directory's disk is full"),
        StateFault::Failed { why } => {
            format!("{what} could not be read or written: {}", super::machine::state_fault(why))
        }
    }
}

/// Why two heads cannot use this drive.
pub fn drive_unshareable(drive: &str, why: &NoFence) -> String {
    format!("{drive} cannot be used by two heads: {}", no_fence(why))
}

/// Why a command that fences a drive failed.
pub fn fence_fault(fault: &FenceFault) -> String {
    match fault {
        FenceFault::NoFence { why } => no_fence(why).into(),
        FenceFault::Conflict => "another holds the reservation".into(),
        FenceFault::NotRegistered => "this head's key is not registered there".into(),
        FenceFault::NotThatProcess => {
            "another process has the file than the one that was to be killed".into()
        }
        FenceFault::Ourselves => "the process that was to be killed is this head's own".into(),
        FenceFault::TimedOut => "the drive did not answer in time".into(),
        FenceFault::Gone => "the drive is gone".into(),
        FenceFault::Denied => "the daemon lacks the rights CAP_SYS_ADMIN and CAP_SYS_RAWIO".into(),
        FenceFault::NotDone => "the drive said that it did, and it is not so".into(),
        FenceFault::Errno { errno } => format!("error {errno}"),
    }
}

/// That a drive has not confirmed that the other head is shut out.
pub fn not_shut_out(drive: &str, why: &ShutOutFault) -> String {
    let last = match why {
        ShutOutFault::NoFence { why } => return drive_unshareable(drive, why),
        ShutOutFault::Registered => ": another head is still registered there, or this one is not".into(),
        ShutOutFault::Failed { fault } => format!(": {}", fence_fault(fault)),
        ShutOutFault::Unknown => String::new(),
    };
    format!("{drive} has not confirmed that the other head is shut out{last}")
}

/// Why the fence of a drive does not hold, or could not be tried.
pub fn trial_fault(fault: &TrialFault) -> String {
    match fault {
        TrialFault::Landed => {
            "a write of the follower landed after the drive had confirmed that the follower is shut out".into()
        }
        TrialFault::Elsewhere => {
            "what the follower writes is not seen by the head that leads: the two heads reach different drives"
                .into()
        }
        TrialFault::LetIn => {
            "the drive confirmed that the follower is shut out, and went on to take its writes".into()
        }
        TrialFault::NotShared => {
            "the follower writes to this drive, but the head that leads does not see its registration: their two paths to the drive do not share reservations".into()
        }
        TrialFault::Failed { fault } => fence_fault(fault),
        TrialFault::NoFollower => "there is no follower any more".into(),
        TrialFault::Follower { why } => format!("the follower {}", follower_fault(why)),
        TrialFault::NoWrites { seconds } => {
            format!("the follower did not say within {seconds} s that it writes there")
        }
        TrialFault::NoEnd { seconds } => {
            format!("the follower did not say within {seconds} s how its writes ended")
        }
        TrialFault::Unreadable { fault } => {
            format!("what lies there cannot be read: the drive {}", drive_fault(fault))
        }
    }
}

/// Why a follower could not do its part, after "the follower".
fn follower_fault(fault: &FollowerFault) -> String {
    match fault {
        FollowerFault::RefusedBefore => "is refused there before it was shut out".into(),
        FollowerFault::NotWritten { fault } => {
            format!("could not write there: the drive {}", drive_fault(fault))
        }
        FollowerFault::NotShutOut { seconds } => {
            format!("wrote there for {seconds} s, and was not shut out in the meantime")
        }
        FollowerFault::NotOpened { seconds } => format!("has not opened it within {seconds} s"),
        FollowerFault::NotRegistered { fault } => {
            format!("is not registered there: {}", fence_fault(fault))
        }
        FollowerFault::NotRegisteredAgain { fault } => {
            format!("is not registered there again: {}", fence_fault(fault))
        }
    }
}

/// The versions of a head.
fn versions(oldest: u16, newest: u16) -> String {
    if oldest == newest { format!("version {newest}") } else { format!("versions {oldest} to {newest}") }
}

/// Why the other head is refused at the link.
pub fn link_fault(fault: &LinkFault) -> String {
    match fault {
        LinkFault::Garbage => "what came is not what a head sends".into(),
        LinkFault::OtherSystem => "the other head is of another system".into(),
        LinkFault::SameHead => "the other head says that it is this one".into(),
        LinkFault::FormerLife => "the other head's process has ended, and another one is there".into(),
        LinkFault::Version { oldest, newest, own_oldest, own_newest } => format!(
            "the other head speaks {} of the link, and this one {}",
            versions(*oldest, *newest),
            versions(*own_oldest, *own_newest)
        ),
    }
}

/// What helps, if it lasts.
pub fn link_next(fault: &LinkFault) -> String {
    match fault {
        LinkFault::Garbage | LinkFault::FormerLife => "millrace head ls, in a moment".into(),
        LinkFault::OtherSystem => "millrace system leave --force on the head that is not of this system, then millrace system join there".into(),
        LinkFault::SameHead => "put the state directory of that head back from a backup of its own: it has a copy of this head's".into(),
        LinkFault::Version { newest, own_oldest, .. } if newest < own_oldest => {
            format!("update Millrace on the other head to a release that speaks version {own_oldest} of the link")
        }
        LinkFault::Version { oldest, .. } => {
            format!("update Millrace on this head to a release that speaks version {oldest} of the link")
        }
    }
}

/// Why a head was put out.
pub fn out_reason(why: &OutReason) -> String {
    match why {
        OutReason::Ended => "its process has ended".into(),
        OutReason::Still { silent_milliseconds: ms } => {
            format!("the link was silent for {ms} ms and its heartbeat on the drives stood still")
        }
        OutReason::Cut { silent_milliseconds: ms } => {
            format!("the link was silent for {ms} ms although it lives")
        }
        OutReason::Unconfirmed => "it did not confirm a change within 1 s".into(),
        OutReason::NotKept { why } => format!("it could not keep a change: {}", super::why(why).message),
        OutReason::Asked => "an operator said so".into(),
        OutReason::LostPath => "it lost its path to a drive that this head reaches".into(),
    }
}

/// One of two heads, by its letter and its name.
pub fn head_called(head: &str, name: &str) -> String {
    if name.is_empty() { format!("head {head}") } else { format!("head {head} ({name})") }
}

/// Why a file of the state directory could not be read, by its path or its name.
pub fn file_fault(file: &str, fault: &FileFault) -> String {
    let file =
        if file.contains('/') { file.into() } else { format!("the file {file} of the state directory") };
    match fault {
        FileFault::State { fault: StateFault::Failed { why } } => super::machine::state_fault(why),
        FileFault::Content { row, why } if row.is_empty() => format!("{file}: {}", content_fault(why)),
        FileFault::Content { row, why } => format!("{file}, {row}: {}", content_fault(why)),
        FileFault::OldLine { line: 0 } => format!("{file}, as a former version wrote it, is not understood"),
        FileFault::OldLine { line } => {
            format!("{file}, as a former version wrote it: line {line} is not understood")
        }
        _ => format!("{file} {}", whole_fault(fault)),
    }
}

/// What is wrong with a file as a whole.
fn whole_fault(fault: &FileFault) -> String {
    match fault {
        FileFault::State { fault: StateFault::Missing } => "is missing".into(),
        FileFault::State { .. } => "cannot be read".into(),
        FileFault::NotText => "is not UTF-8 text".into(),
        FileFault::Empty => "is empty".into(),
        FileFault::NoEnd => "has no end: it was cut off, or written by another program".into(),
        FileFault::Checksum => "has another checksum than it says: it was damaged, or edited by hand".into(),
        FileFault::Syntax { error } => format!("is not understood: {error}"),
        FileFault::Version { version } => {
            format!("has version {version} of its format, which a newer program wrote")
        }
        FileFault::OtherFile { name } => format!("is a copy of the file {name}"),
        FileFault::FieldMissing { field } => format!("does not say {field}"),
        FileFault::FieldUnknown { field } => {
            format!("has the field {field}, which this version does not know and a newer one wrote")
        }
        FileFault::OldLine { .. } | FileFault::Content { .. } => unreachable!("said by the caller"),
    }
}

/// What is wrong with something in a file of the state directory.
pub fn content_fault(fault: &ContentFault) -> String {
    match fault {
        ContentFault::NoUuid { value } => format!("{value:?} is no UUID"),
        ContentFault::Serial => "serial is longer than 20 printable characters".into(),
        ContentFault::Secret { key, fault } => format!("{key} {}", secret_fault(fault)),
        ContentFault::Refused { why } => super::why(why).message,
        ContentFault::NoPortal { value } => {
            format!("{value:?} is no protocol, address, number, head, prefix and interface of a portal")
        }
        ContentFault::PortalNumberTwice { number } => format!("two portals have the number {number}"),
        ContentFault::PortalAddressTwice => "another portal has the same address".into(),
        ContentFault::PortalImmovable { address } => {
            format!("{address} cannot move from head to head with this prefix")
        }
        ContentFault::PortalMovesOtherwise { address } => {
            format!("it moves in another way than that of {address}")
        }
        ContentFault::NoHex { key } => format!("{key} is not in hex digits, or damaged"),
        ContentFault::Config { fault } => format!("config is {}", super::leg::label_fault(fault)),
        ContentFault::ConfigTooLong => "config is too long".into(),
        ContentFault::NoRights { value } => format!("{value:?} are no rights of a token: read or full"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_against_a_fence_says_what_to_do_instead() {
        for why in NoFence::ALL {
            let (reason, way) = no_fence(why).split_once(": ").expect("a reason and a way on");
            assert!(reason.len() > 20 && way.len() > 10, "{why:?}");
            assert!(!no_fence_instead(why).is_empty(), "{why:?}");
        }
    }
}
