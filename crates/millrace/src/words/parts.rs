//! Words that several topics need.

pub use base::size::{print as size, print_free as size_free};
use finding::{
    AddressFault, ConnectedHost, DriveFault, Immovable, IqnFault, NetFault, NoFence, NqnFault, SecretFault, StateFault, StateFile,
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

/// Why a portal does not listen.
pub fn net_fault(fault: &NetFault) -> String {
    match fault {
        NetFault::InUse => "somebody else listens there".into(),
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
        StateFault::Failed { error } => format!("{what} could not be read or written: {error}"),
    }
}
