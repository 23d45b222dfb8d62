//! What findings of several topics contain.

use crate::{LabelFault, Why};
use base::{ConnectionFault, NoFence};

findings! {
    /// What a drive did.
    pub enum DriveFault {
        /// It failed to read or write blocks.
        Medium,
        /// It is gone.
        Gone,
        /// The file system below its file is full.
        NoSpace,
        /// It is a block device and ended early: it became smaller, or is a thin volume whose pool is full.
        NoSpaceBlock,
        /// Its file is shorter than it was.
        Cut,
        /// It did not answer in time.
        TimedOut,
        /// Another head or machine has reserved it.
        Reserved,
        /// It may not be written.
        ReadOnly { errno: i32 },
        /// It failed with another error of the kernel.
        Errno { errno: i32 },
    }
}

impl From<base::DriveError> for DriveFault {
    fn from(error: base::DriveError) -> Self {
        match error {
            base::DriveError::Medium => DriveFault::Medium,
            base::DriveError::Gone => DriveFault::Gone,
            base::DriveError::NoSpace => DriveFault::NoSpace,
            base::DriveError::Cut => DriveFault::Cut,
            base::DriveError::TimedOut => DriveFault::TimedOut,
            base::DriveError::Fenced => DriveFault::Reserved,
            // EPERM from a device that may not be written, EROFS from the file system below a file.
            base::DriveError::Other(errno @ (1 | 30)) => DriveFault::ReadOnly { errno },
            base::DriveError::Other(errno) => DriveFault::Errno { errno },
        }
    }
}

impl DriveFault {
    /// The same of this drive: a block device has no file system below it.
    pub fn of(info: &base::DriveInfo, error: base::DriveError) -> Self {
        if error == base::DriveError::NoSpace && info.kind == base::DriveKind::Block {
            DriveFault::NoSpaceBlock
        } else {
            error.into()
        }
    }
}

findings! {
    /// A kind of record on a drive.
    pub enum RecordName {
        /// The label.
        Label,
        /// The membership record.
        Membership,
        /// The configuration of the pool.
        Configuration,
    }
}

findings! {
    /// What of a record is of a newer program.
    pub enum NewerPart {
        /// The layout of its fixed part.
        Version { version: u32 },
        /// Features without which nothing may be written (`ro_compat`), as hex digits.
        RoCompat { bits: String },
        /// Features without which the rest means nothing (`incompat`), as hex digits.
        Incompat { bits: String },
    }
}

impl From<base::record::Newer> for NewerPart {
    fn from(part: base::record::Newer) -> Self {
        use base::record::Newer::{Incompat, RoCompat, Version};
        match part {
            Version(version) => NewerPart::Version { version },
            RoCompat(bits) => NewerPart::RoCompat { bits: format!("{bits:#x}") },
            Incompat(bits) => NewerPart::Incompat { bits: format!("{bits:#x}") },
        }
    }
}

/// A record that this program may not overwrite.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NewerRecord {
    /// Which.
    pub record: RecordName,
    /// What of it is newer.
    pub part: NewerPart,
}

impl crate::Sample for NewerRecord {
    fn sample(field: &str) -> Self {
        Self { record: crate::Sample::sample(field), part: crate::Sample::sample(field) }
    }
}

findings! {
    /// Why a drive was not opened, or is not used as it was.
    pub enum OpenFault {
        /// The machine could not open it.
        Machine { fault: base::DriveOpenFault },
        /// Its specification has a shape that cannot be understood.
        Shape { fault: ShapeFault },
        /// Its prefix is for the head alone, while it makes a pool.
        PrefixInternal { prefix: String, path: String },
        /// It was opened, and could not be read.
        Unreadable { fault: DriveFault },
        /// It has not confirmed that the other head is shut out.
        NotShutOut,
    }
}

findings! {
    /// What is wrong with the shape of a drive.
    pub enum ShapeFault {
        /// No `@` with a drive follows.
        DriveMissing,
        /// What follows is not one drive.
        DriveInvalid,
        /// There is no such option.
        OptionUnknown { option: String },
        /// The option is given twice.
        OptionTwice { option: String },
        /// The value is not a whole number from 1 to the largest.
        ValueInvalid { option: String, value: String, value_max: u32 },
        /// A rate or a share of a shared link is given without its number.
        UplinkMissing,
        /// The shared link has no rate.
        UplinkRateMissing,
        /// The share of the shared link is too large.
        UplinkShareTooLarge { share_max: u32 },
    }
}

/// A drive that was not opened, or is not used as it was.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct UnopenedDrive {
    /// Its path, or its specification.
    pub drive: String,
    /// Why.
    pub fault: OpenFault,
}

impl UnopenedDrive {
    /// Somebody else has it, and may let go of it.
    pub fn is_held(&self) -> bool {
        matches!(&self.fault, OpenFault::Machine { fault } if fault.is_held())
    }
    /// There is nothing of that name.
    pub fn is_missing(&self) -> bool {
        matches!(&self.fault, OpenFault::Machine { fault } if fault.is_missing())
    }
}

impl From<base::OpenError> for UnopenedDrive {
    fn from(error: base::OpenError) -> Self {
        Self { drive: error.drive, fault: OpenFault::Machine { fault: error.why } }
    }
}

impl crate::Sample for UnopenedDrive {
    fn sample(field: &str) -> Self {
        Self { drive: crate::Sample::sample(field), fault: crate::Sample::sample("fault") }
    }
}

findings! {
    /// Why a receiver did not take an alarm.
    pub enum AlarmFault {
        /// No connection to it could be made.
        NotReached {
            /// As the operating system has it.
            error: String,
        },
        /// The connection broke off.
        BrokenOff {
            /// As the operating system has it.
            error: String,
        },
        /// There is no TLS with it.
        NoTls {
            /// What TLS says.
            error: String,
        },
        /// It did not answer in time.
        TimedOut { seconds: u64 },
        /// It answered with a refusal.
        Refused {
            /// The code of HTTP or SMTP.
            status: u16,
            /// What it said.
            answer: String,
        },
        /// The command does not start.
        NotStarted {
            /// As the operating system has it.
            error: String,
        },
        /// The command failed.
        CommandFailed {
            status: i32,
            /// The last line of its standard error.
            answer: String,
        },
        /// A signal ended the command.
        CommandKilled { signal: i32 },
        /// A file that the receiver needs cannot be read.
        FileUnread {
            path: String,
            /// As the operating system has it.
            error: String,
        },
    }
}

findings! {
    /// Why nobody can be listened to at an address.
    pub enum NetFault {
        /// Somebody else listens there.
        InUse,
        /// The address is not this machine's.
        NoAddress,
        /// It was refused.
        Refused,
        /// Another error of the kernel.
        Errno { errno: i32 },
    }
}

impl From<base::NetError> for NetFault {
    fn from(error: base::NetError) -> Self {
        match error {
            base::NetError::InUse => NetFault::InUse,
            base::NetError::NoAddress => NetFault::NoAddress,
            base::NetError::Refused => NetFault::Refused,
            base::NetError::Other(errno) => NetFault::Errno { errno },
        }
    }
}

findings! {
    /// Why an address that moves cannot be here.
    pub enum AddressFault {
        /// No interface of this machine has another address of its subnet.
        NoSubnet,
        /// This machine has no such interface.
        NoInterface,
        /// This machine has the address by itself.
        Foreign,
        /// The daemon may not configure addresses.
        NotAllowed,
        /// Another error of the kernel.
        Errno { errno: i32 },
    }
}

findings! {
    /// What is wrong with an NVMe qualified name.
    pub enum NqnFault {
        /// It is too long.
        TooLong { bytes_max: usize },
        /// It holds a blank or a control character.
        Blank,
        /// It does not begin as one.
        Prefix,
        /// No year and month follow.
        Month,
        /// It is the name of the discovery subsystem.
        Discovery,
        /// It holds a UUID that is none.
        NoUuid,
    }
}

findings! {
    /// What is wrong with an iSCSI name.
    pub enum IqnFault {
        /// It is too long.
        TooLong { bytes_max: usize },
        /// It holds a character that iSCSI names do not have.
        Character,
        /// It does not begin as one.
        Prefix,
        /// No year and month follow `iqn.`.
        Month,
        /// No 16 hexadecimal digits follow `eui.`.
        Eui,
        /// No 16 or 32 hexadecimal digits follow `naa.`.
        Naa,
    }
}

findings! {
    /// What is wrong with a CHAP secret. Never the secret.
    pub enum SecretFault {
        /// It is too short.
        TooShort { bytes_min: usize },
        /// It is too long.
        TooLong { bytes_max: usize },
        /// It begins with `0x`, and no pairs of hexadecimal digits follow.
        NoHex,
        /// It holds something other than printable ASCII.
        NotPrintable,
        /// The mutual secret is the secret of the host.
        SameAsOther,
        /// There is a mutual secret, and none of the host.
        Alone,
    }
}

findings! {
    /// What became of somebody who came to a portal.
    pub enum LoginFate {
        /// It was not let in.
        Rejected {
            /// As the connection found it.
            why: ConnectionFault
        },
        /// It broke the protocol, or kept others waiting.
        CutOff {
            /// As the connection found it.
            why: ConnectionFault
        },
        /// It was let in, and no volume is exported to it.
        SeesNothing,
        /// It asked for discovery, and no host has its name.
        FindsNothing,
    }
}

/// A host that is connected.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
pub struct ConnectedHost {
    /// Its name.
    pub host: String,
    /// How many connections it has.
    pub connections: u64,
}

impl crate::Sample for ConnectedHost {
    fn sample(_: &str) -> Self {
        Self { host: "esx1".into(), connections: 2 }
    }
}

findings! {
    /// What was to be read or written in the state directory.
    pub enum StateFile {
        /// A file, by its name.
        Named { file: String },
        /// The witness record of a pool.
        Witness,
        /// A witness record that proves nothing any more.
        OldWitness,
        /// The event log.
        Log,
        /// What is kept of a pool for the time in which it is away.
        Kept { pool: Option<String> },
    }
}

findings! {
    /// What the state directory did.
    pub enum StateFault {
        /// There is no such file.
        Missing,
        /// Its disk is full.
        NoSpace,
        /// It failed.
        Failed { why: base::machine::StateFault },
    }
}

impl From<&base::machine::StateError> for StateFault {
    fn from(error: &base::machine::StateError) -> Self {
        match error {
            base::machine::StateError::Missing => StateFault::Missing,
            base::machine::StateError::NoSpace => StateFault::NoSpace,
            base::machine::StateError::Failed(error) | base::machine::StateError::Unsettled(error) => {
                StateFault::Failed { why: error.clone() }
            }
        }
    }
}

findings! {
    /// Why a command that fences a drive failed.
    pub enum FenceFault {
        /// The drive cannot be fenced.
        NoFence { why: NoFence },
        /// Another holds the reservation.
        Conflict,
        /// This head's key is not registered there.
        NotRegistered,
        /// The file is another process's, and the one that was to be killed is not there.
        NotThatProcess,
        /// The process that was to be killed is this one.
        Ourselves,
        /// The drive did not answer in time.
        TimedOut,
        /// The drive is gone.
        Gone,
        /// The daemon lacks a right.
        Denied,
        /// The drive said that it did, and it is not so.
        NotDone,
        /// Another error of the kernel.
        Errno { errno: i32 },
    }
}

impl From<base::FenceError> for FenceFault {
    fn from(error: base::FenceError) -> Self {
        match error {
            base::FenceError::None(why) => FenceFault::NoFence { why },
            base::FenceError::Conflict => FenceFault::Conflict,
            base::FenceError::NotRegistered => FenceFault::NotRegistered,
            base::FenceError::NotThatProcess => FenceFault::NotThatProcess,
            base::FenceError::Ourselves => FenceFault::Ourselves,
            base::FenceError::TimedOut => FenceFault::TimedOut,
            base::FenceError::Gone => FenceFault::Gone,
            base::FenceError::Denied => FenceFault::Denied,
            base::FenceError::NotDone => FenceFault::NotDone,
            base::FenceError::Other(errno) => FenceFault::Errno { errno },
        }
    }
}

findings! {
    /// Why a drive has not confirmed that the other head is shut out.
    pub enum ShutOutFault {
        /// It cannot be fenced.
        NoFence { why: NoFence },
        /// Another head is still registered there, or this one is not.
        Registered,
        /// A command failed.
        Failed { fault: FenceFault },
        /// All that is known is that it has not.
        Unknown,
    }
}

findings! {
    /// Why the fence of a drive does not hold, or could not be tried.
    pub enum TrialFault {
        /// A write of the follower landed after the drive had confirmed that it is shut out.
        Landed,
        /// The two heads reach different drives.
        Elsewhere,
        /// The drive went on to take the follower's writes.
        LetIn,
        /// The two heads' paths do not share reservations.
        NotShared,
        /// A command of the fence failed.
        Failed { fault: FenceFault },
        /// There is no follower any more.
        NoFollower,
        /// The follower could not do its part.
        Follower { why: FollowerFault },
        /// The follower did not say that it writes there.
        NoWrites { seconds: u64 },
        /// The follower did not say how its writes ended.
        NoEnd { seconds: u64 },
        /// What it wrote cannot be read.
        Unreadable { fault: DriveFault },
    }
}

findings! {
    /// Why a follower could not do its part in the trial of a fence.
    pub enum FollowerFault {
        /// It is refused there before it was shut out.
        RefusedBefore,
        /// It could not write there.
        NotWritten { fault: DriveFault },
        /// It wrote there, and was not shut out in the meantime.
        NotShutOut { seconds: u64 },
        /// It has not opened the drive.
        NotOpened { seconds: u64 },
        /// It is not registered there.
        NotRegistered { fault: FenceFault },
        /// It is not registered there again.
        NotRegisteredAgain { fault: FenceFault },
    }
}

findings! {
    /// Why the other head is refused at the link, or a network of it is closed.
    pub enum LinkFault {
        /// What came is not what a head sends.
        Garbage,
        /// The other head is of another system.
        OtherSystem,
        /// The other head says that it is this one.
        SameHead,
        /// The other head's process has ended, and another one is there.
        FormerLife,
        /// No version is common.
        Version {
            /// Of the other head.
            oldest: u16,
            /// Of the other head.
            newest: u16,
            /// Of this head.
            own_oldest: u16,
            /// Of this head.
            own_newest: u16,
        },
    }
}

findings! {
    /// Why a head was put out.
    pub enum OutReason {
        /// Its process has ended.
        Ended,
        /// The link was silent, and its heartbeat on the drives stood still.
        Still { silent_milliseconds: u64 },
        /// The link was silent, although it lives.
        Cut { silent_milliseconds: u64 },
        /// It did not confirm a change in time.
        Unconfirmed,
        /// It could not keep a file that it must have.
        NotKept { why: Box<Why> },
        /// An operator said so.
        Asked,
        /// It lost its path to a drive that the other head reaches.
        LostPath,
    }
}

findings! {
    /// Why a file of the state directory could not be read.
    pub enum FileFault {
        /// The state directory failed.
        State { fault: StateFault },
        /// It is not UTF-8 text.
        NotText,
        /// It is empty.
        Empty,
        /// It has no end: it was cut off, or another program wrote it.
        NoEnd,
        /// Its checksum is another one: it was damaged, or edited by hand.
        Checksum,
        /// It cannot be understood.
        Syntax {
            /// As the decoder has it.
            error: String,
        },
        /// It has another version of the format.
        Version { version: u64 },
        /// It is another file, by what it says of itself.
        OtherFile { name: String },
        /// A field is missing.
        FieldMissing { field: String },
        /// A field that this program does not know, and that may restrict what the file says.
        FieldUnknown { field: String },
        /// A line in the format of a former version cannot be understood. 0 stands for the file as a whole.
        OldLine { line: u64 },
        /// Something in it cannot be used.
        Content {
            /// The row, as operators call it; empty for the file as a whole.
            row: String,
            why: ContentFault,
        },
    }
}

findings! {
    /// What is wrong with something in a file of the state directory that is whole.
    pub enum ContentFault {
        /// The value is no UUID.
        NoUuid { value: String },
        /// The serial number is too long, or not printable.
        Serial,
        /// A secret cannot be used.
        Secret { key: String, fault: SecretFault },
        /// A name cannot be used.
        Refused { why: Box<Why> },
        /// It is no portal.
        NoPortal { value: String },
        /// Two portals have the number.
        PortalNumberTwice { number: u16 },
        /// Two portals have the same address.
        PortalAddressTwice,
        /// The address cannot move.
        PortalImmovable { address: String },
        /// The address moves in another way than that of another portal.
        PortalMovesOtherwise { address: String },
        /// The value is not in hex digits.
        NoHex { key: String },
        /// The configuration is damaged.
        Config {
            /// As the decoder has it.
            fault: LabelFault,
        },
        /// The configuration is too long.
        ConfigTooLong,
        /// The rights of a token are none that this program knows.
        NoRights { value: String },
    }
}

findings! {
    /// What is wrong with the file that holds the key of the link.
    pub enum KeyFault {
        /// Others than its owner can read or write it.
        Open { mode: u32 },
        /// It cannot be read.
        NotRead { errno: i32 },
        /// It cannot be written.
        NotWritten { errno: i32 },
        /// It is larger than any that a head writes.
        TooLarge { bytes_max: u64 },
        /// The file is not whole, or has something that this program does not know.
        File { why: FileFault },
        /// The key is not that of the certificate.
        Mismatch,
    }
}

findings! {
    /// What is wrong with the token by which a head joins. Never the token.
    pub enum TokenFault {
        /// It does not begin as a token does.
        NotAToken,
        /// It is of another version.
        Version {
            version: char,
            /// The one that this program reads.
            own: char,
        },
        /// It holds a character that tokens do not have.
        Character { character: char },
        /// It was cut off, mistyped, or joined with something else.
        Damaged,
        /// It is whole, and names no address of a head.
        NoAddress,
    }
}

findings! {
    /// Why the other head of a system does not let this one join.
    pub enum JoinDenial {
        /// No version of the join exchange is common.
        Version,
        /// The token is of another system.
        OtherSystem,
        /// No token is open.
        NotInvited,
        /// The token has expired.
        Expired,
        /// Another head has joined by it.
        Used,
        /// The secret is not that of the token.
        Forged,
        /// The other head could not make it durable.
        NotRecorded,
        /// The heads have different numbers of networks.
        Networks,
        /// The other head has another peer already.
        Taken,
        /// What was sent is no request to join.
        Malformed,
    }
}

findings! {
    /// Why the other head is not reached on a network of the link.
    pub enum UnreachedFault {
        /// This head's own address cannot be used.
        OwnAddress { errno: i32 },
        /// Nobody listens at the other head's address: its machine is there, its process is not.
        Nobody,
        /// The other head's address does not answer.
        Network {
            /// As the operating system has it.
            error: String,
        },
        /// The handshake did not end in time.
        Slow,
        /// What answers has another certificate, or one whose key it does not have.
        NotThePeer,
        /// The other head does not know this head's certificate.
        NotKnownThere,
        /// The handshake failed.
        Handshake {
            /// As TLS has it.
            error: String,
        },
        /// The other head did not understand the greeting.
        Greeting,
        /// The answer is of a newer version.
        AnswerNewer,
        /// No version of the link is common.
        Version,
        /// The other head takes the connection for one of another network.
        OtherNetwork,
    }
}

/// An address of the other head that was tried.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TriedAddress {
    /// Which.
    pub address: String,
    /// Why it did not lead there.
    pub why: UnreachedFault,
}

impl crate::Sample for TriedAddress {
    fn sample(_: &str) -> Self {
        Self { address: crate::Sample::sample("address"), why: UnreachedFault::Nobody }
    }
}
