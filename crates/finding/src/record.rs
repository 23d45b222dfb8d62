//! Findings about what is written down: the state directory, membership, configuration.

use crate::{Cause, DriveFault, FileFault, StateFault, StateFile, Why};

refusals! {
    /// Why an order about what is written down was not carried out.
    pub enum RecordRefusal {
        /// The disk of the state directory is full.
        StateNoSpace { what: StateFile } = NoSpace @ "",
        /// The state directory did not do what was asked.
        StateFailed { what: StateFile, fault: StateFault } = Internal @ "",
        /// The state directory takes nothing, so nothing that the order decides could be made durable.
        NothingDurable { fault: StateFault } = NotReady @ "",
        /// An order is not over at its limit, and goes on.
        OrderUnfinished {
            /// The command.
            order: String,
            /// How long it has taken so far.
            seconds: u64,
            /// What it waits for, if that is known.
            waits_for: Option<Box<Cause>>,
        } = NotReady @ "",
        /// A file of the state directory is not written over: something is wrong with it.
        FileNotWrittenOver { why: Box<Cause> } = Conflict @ "",
        /// A file of the state directory could not be read, so nobody knows what it says.
        FileNotRead { why: Box<Cause> } = Conflict @ "",
        /// A file has a row with a field that this program does not know, and the order would contradict it.
        RowNotUnderstood { path: String, row: String, field: String } = Conflict @ "",
        /// A portal has this address.
        PortalAddressTaken = Conflict @ "address",
        /// Another one has this name or number.
        NumberTaken = Conflict @ "",
        /// The thing to be changed no longer exists.
        ChangeTargetGone = NotFound @ "",
        /// The thing to be added exists already.
        ChangeTargetExists = Conflict @ "",
        /// Something else was changed at the same time.
        ChangedMeanwhile = Internal @ "",
        /// The change would contradict the rest of the configuration.
        ChangeInvalid = Internal @ "",
        /// The change would leave an array without a good drive.
        ChangeWithoutDrive = Internal @ "",
        /// A change before this one is missing.
        EarlierChangeMissing = Internal @ "",
    }
}

findings! {
    /// Why something about what is written down is not optimal.
    pub enum RecordCause {
        /// A file of the state directory could not be read or written.
        StateFailed { what: StateFile, fault: StateFault },
        /// The state directory cannot be written.
        StateUnwritable { fault: StateFault },
        /// An order is not over at its limit, and goes on: no other one is carried out.
        OrderUnfinished {
            /// The command.
            order: String,
            /// What it waits for, if that is known.
            waits_for: Option<Box<Cause>>,
        },
        /// The witness of a pool is damaged.
        WitnessDamaged { file: String, path: String },
        /// The membership record could not be written everywhere.
        RecordNotTaken {
            /// What the state directory did.
            why: Box<Cause>,
            /// Last legs of their arrays that did not take it.
            drives: Vec<FailedLeg>,
            /// The record that lies in the state directory is an older one, and would prove a lost leg.
            stale: bool,
        },
        /// A file of the state directory could not be read at the start.
        FileUnreadable { file: String, path: String, why: FileFault },
        /// A file that every head has was missing at the start.
        FileMissing { file: String, path: String },
        /// A row of a file has a field that this program does not know: it grants nothing.
        RowNotUnderstood { file: String, path: String, row: String, field: String },
        /// A file could not be written, may say what an order that was refused wanted, and could not be written as it was.
        FileUnsettled { file: String, path: String, fault: StateFault },
        /// The file `identity` is missing, while other files are there: the head has new names.
        IdentityMissing { file: String },
        /// A file was removed from the state directory while the head ran.
        FileRemoved { file: String },
        /// A file of the state directory was damaged while the head ran.
        FileDamaged { file: String },
        /// A file of the state directory was removed or damaged while the head ran, and cannot be written again.
        FileNotRestored { file: String, why: Box<Cause> },
        /// A file of the daemon was removed from the state directory, and cannot be made again.
        DaemonFileNotMade { file: String, why: Box<Cause> },
        /// The contents of a file are unknown.
        ContentUnknown,
        /// The pool of a witness is away.
        WitnessPoolAway,
        /// A pool is away, and its contents are unknown.
        KeptUnknown,
        /// An order that would have written a file was refused.
        NotWritten { why: Box<Why> },
        /// Another daemon has the state directory.
        StateDirectoryTaken { pid: Option<u32> },
        /// The lock of the state directory cannot be made.
        LockNotMade {
            folder: String,
            /// As the operating system has it.
            error: String,
        },
        /// The crash record cannot be made.
        CrashRecordNotMade {
            path: String,
            /// As the operating system has it.
            error: String,
        },
        /// Pools that the list of pools does not name were found.
        PoolsFound { file: String, why: ListFault, pools: Vec<String> },
        /// The file of hosts was missing, and volumes are exported to hosts that it named.
        HostsMissing { file: String, hosts: Vec<String> },
    }
}

findings! {
    /// What is wrong with the list of pools.
    pub enum ListFault {
        /// It cannot be read.
        Unread,
        /// It is missing.
        Missing,
        /// It does not name all pools that this head had.
        Incomplete,
    }
}

/// The last leg of its array that did not take something.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct FailedLeg {
    /// Its drive.
    pub drive: String,
    /// What that did.
    pub fault: DriveFault,
}

impl crate::Sample for FailedLeg {
    fn sample(_: &str) -> Self {
        Self { drive: "/dev/nvme0n1".into(), fault: DriveFault::Medium }
    }
}

events! {
    /// What happened to what is written down.
    pub enum RecordEvent {
        /// The state directory cannot be written.
        StateUnwritable { fault: StateFault } = Warning,
        /// An order that was not over at its limit has ended.
        LateOrderEnded {
            /// The command.
            order: String,
            /// How long it took.
            seconds: u64,
            /// Why it was refused in the end; None: it was carried out.
            refused: Option<Box<Why>>,
        } = Note,
        /// The state directory can be written again.
        StateWritable = Note,
        /// A file of the state directory could not be read.
        FileUnreadable { file: String, path: String, why: FileFault } = Warning,
        /// A file that every head has was missing at the start.
        FileMissing { file: String, path: String } = Warning,
        /// A row of a file has a field that this program does not know: it grants nothing.
        RowNotUnderstood { path: String, row: String, field: String } = Warning,
        /// A file may say what an order that was refused wanted.
        FileUnsettled { path: String, fault: StateFault } = Warning,
        /// The file `identity` is missing, while other files are there: the head has new names.
        IdentityMissing { file: String } = Warning,
        /// The list of pools does not name some that were found.
        PoolsFound { file: String, why: ListFault, pools: Vec<String> } = Warning,
        /// The state directory is older than a pool.
        StateOlderThanPool { pool: String } = Warning,
        /// Files were removed from the state directory while the head ran.
        FilesRemoved { files: Vec<String> } = Warning,
        /// Files of the state directory were damaged while the head ran.
        FilesDamaged { files: Vec<String> } = Warning,
        /// Files that were removed are in their place again.
        FilesReturned { files: Vec<String> } = Note,
        /// Files that were removed or damaged were written again.
        FilesRestored { files: Vec<String> } = Note,
        /// A file was removed or damaged, and cannot be written again.
        FileNotRestored { file: String, why: Box<Cause> } = Warning,
    }
}

findings! {
    /// What is worth knowing of what is written down.
    pub enum RecordNotice {
        /// A file of the state directory could not be read.
        FileUnreadable { file: String, path: String, why: FileFault },
        /// The event log could not be read.
        LogUnreadable { file: String, fault: StateFault },
        /// The event log could not be written.
        LogNotWritten { fault: StateFault },
        /// The file `identity` is missing, while other files are there: the head has new names.
        IdentityMissing { file: String },
        /// The names of this head could not be written: it has others after the next start.
        IdentityNotWritten { why: Box<Why> },
        /// The state directory is older than a pool.
        StateOlderThanPool { pool: String },
        /// Files of the state directory were removed or damaged while the head ran, and written again.
        FilesRestored { files: Vec<String> },
    }
}
