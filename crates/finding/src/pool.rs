//! Findings about pools.

use crate::{
    Cause, ConnectedHost, DriveFault, FileFault, NewerPart, NewerRecord, Notice, OpenFault, Sample,
    StateFault, Why,
};

refusals! {
    /// Why an order about pools was not carried out.
    pub enum PoolRefusal {
        /// This is no name of a pool.
        PoolNameInvalid { name: String } = Invalid @ "name",
        /// There is a pool of this name.
        PoolNameTaken { pool: String } = Conflict @ "name",
        /// The chunk is no power of two, or out of range.
        ChunkInvalid { chunk_bytes: u32 } = Invalid @ "chunk_bytes",
        /// The block size of the pool is neither 512 nor 4096.
        PoolBlockInvalid { block_bytes: u32 } = Invalid @ "block_bytes",
        /// The block size of the pool is 512, and a drive takes only larger writes.
        PoolBlockTooSmall { drive: String, drive_block_bytes: u32 } = Invalid @ "block_bytes",
        /// No array is named for the pool.
        PoolWithoutArrays = Invalid @ "arrays",
        /// The pool would have more arrays or drives than there can be.
        TooManyArrays { arrays_max: u64, drives_max: u64 } = Invalid @ "arrays",
        /// The mirror has too few or too many drives.
        MirrorSizeInvalid { legs: u64, legs_max: u64 } = Invalid @ "arrays",
        /// The single array has several drives, or none.
        SingleSizeInvalid { legs: u64 } = Invalid @ "arrays",
        /// The weight of the array is out of range.
        ArrayWeightInvalid { weight: u32, weight_max: u32 } = Invalid @ "weight",
        /// The array is too small to be striped.
        ArrayTooSmall { index: u64 } = Invalid @ "arrays",
        /// The drive is named twice.
        DriveNamedTwice { drive: String } = Invalid @ "drives",
        /// The drive has no room for the records, a bitmap and one chunk.
        DriveTooSmallForChunk { drive: String, bytes: u64, chunk_bytes: u64 } = Invalid @ "drives",
        /// Two of the drives are one.
        DrivesAreOne { how: OneDrive } = Invalid @ "drives",
        /// The drive is one of a pool that is imported by another name, or lies in it.
        DriveOverlapsPool { drive: String, other: String, pool: String } = Conflict @ "drives",
        /// The configuration of the pool does not fit its place on the drives.
        PoolConfigTooLarge { pool: String } = NoSpace @ "",
        /// Drives could not be labelled.
        DrivesNotLabelled { drives: Vec<FailedDrive> } = Internal @ "drives",
        /// The drive failed while it was measured.
        MeasureFailed { drive: String, fault: DriveFault } = Internal @ "measure",
        /// The latest membership record could not be written to the state directory.
        WitnessNotWritten { why: Box<Cause> } = Internal @ "",
        /// The records of the pool could not be written to a drive.
        PoolDriveNotWritten { drive: String, fault: DriveFault } = Internal @ "",
        /// The pool was released or destroyed meanwhile.
        PoolGone = NotFound @ "pool",
        /// No drive of the pool could be written.
        NoDriveWritten { pool: String } = Internal @ "",
        /// The pool has volumes, which would be lost.
        PoolHasVolumes { pool: String, volumes: u64 } = Unsafe @ "pool",
        /// The pool is destroyed, and drives still carry its label.
        DrivesKeepLabels { drives: Vec<FailedDrive> } = Internal @ "",
        /// The drive is too small.
        DriveTooSmall { drive: String, bytes: u64, needed_bytes: u64 } = Invalid @ "drives",
        /// The drive has blocks of neither 512 nor 4096 bytes.
        DriveBlocksInvalid { drive: String, block_bytes: u32 } = Invalid @ "drives",
        /// The drives hold other data, or belong to another pool.
        DrivesHoldData { why: Vec<Cause> } = Unsafe @ "drives",
        /// Much of the drives would stay unused in a mirror with smaller ones.
        MirrorLeavesUnused { drives: Vec<UnusedSpace> } = Unsafe @ "drives",
        /// The arrays would keep fewer copies than the pool does.
        LessRedundant {
            pool: String,
            /// Copies of everything that the pool keeps.
            has: u64,
            /// Copies that the first such array would keep.
            keeps: u64,
            /// That array is a mirror.
            mirror: bool,
            /// Its drives.
            drives: Vec<String>,
            /// The new drives as mirrors of as many legs, as far as there are drives for it.
            mirrors: Vec<Vec<String>>,
        } = Unsafe @ "arrays",
        /// Several things speak against it, and force overrides all of them.
        SeveralObjections { first: Box<Why>, others: Vec<Why> } = Unsafe @ "drives",
        /// The volume that would be removed may hold data.
        VolumeHoldsData { volume: String, data: VolumeData, force: bool } = Unsafe @ "disconnect",
        /// The head's memory has no room for the scratch of so many arrays.
        MemoryFullForArrays { arrays: u64, memory_bytes_min: u64 } = NoSpace @ "memory",
        /// The head's memory has no room for the scratch of so many mirrors.
        MemoryFullForMirrors { mirrors_max: u64, mirrors: u64, memory_bytes_min: u64 } = NoSpace @ "memory",
        /// Hosts use so much of the head's memory that there is none for the scratch of another array.
        MemoryBusy = NotReady @ "memory",
        /// None of the pool's drives was found.
        PoolWithoutDrives = NotFound @ "pool",
        /// The pool was written by a newer version, in a way that forbids this one to write there.
        PoolNewer { pool: String, drive: String, newer: NewerRecord } = NotReady @ "pool",
        /// Two of the drives found of the pool are one.
        PoolDrivesAreOne { pool: String, how: OneDrive } = Conflict @ "pool",
        /// One of two drives is a copy of the other.
        DriveCopied { drive: String, other: String } = Conflict @ "pool",
        /// No drive of the pool carries a readable membership record.
        PoolRecordUnreadable { pool: String } = Internal @ "pool",
        /// The pool was changed in two places apart from each other.
        PoolDiverged { pool: String, sides: Vec<PoolSide> } = Unsafe @ "pool",
        /// No drive of the pool carries a readable configuration.
        PoolConfigUnreadable { pool: String } = Internal @ "pool",
        /// The configuration of the pool contradicts itself.
        PoolConfigContradicts { pool: String, generation: u64 } = Internal @ "pool",
        /// Membership and configuration of the pool contradict each other.
        PoolRecordContradicts { pool: String } = Internal @ "pool",
        /// The creation of the pool was cut off, and nothing was stored on it.
        PoolUnfinished { pool: String, drives: Vec<String> } = NotReady @ "pool",
        /// The pool is of a system of two heads, and this head is in another one or in none.
        PoolOfOtherSystem {
            pool: String,
            /// This head is in a system, too.
            in_system: bool,
        } = Unsafe @ "pool",
        /// The pool was released, so no head imports it by itself.
        PoolWasReleased {
            pool: String,
            /// By another head than this one, which had it before.
            elsewhere: bool,
        } = NotReady @ "pool",
        /// The drives that were found do not prove that the pool may be imported.
        PoolDoubtful { pool: String, doubts: Vec<PoolDoubt> } = Unsafe @ "pool",
        /// The pool is imported already.
        PoolImportedAlready { pool: String } = Conflict @ "pool",
        /// The area of a drive in which a system votes could not be cleared.
        VotesNotCleared { drive: String, fault: DriveFault } = Internal @ "",
        /// Another imported pool has the same name.
        PoolNameOfOther { pool: String, uuid: String, other: String } = Conflict @ "pool",
        /// Another pool of this head, which is not imported now, has the same name.
        PoolNameOfAbsent { pool: String, uuid: String, other: String, why: Box<Cause> } = Conflict @ "pool",
        /// No LUN or namespace id is free for a volume of the pool.
        NoNumberForPool = NoSpace @ "pool",
        /// The last drive in sync of an array could not be written as the pool was imported.
        LastNotWritten { drive: String, fault: DriveFault } = Internal @ "pool",
        /// No drive of the pool was found.
        PoolNotFound {
            /// None: any pool.
            pool: Option<String>,
            also: Vec<ImportFault>,
            /// Places where nothing is.
            away: Vec<String>,
            /// It may be on a drive that is in use.
            in_use: bool,
        } = NotFound @ "pool",
        /// The pool's drives were in the memory of a daemon that has ended.
        PoolMemoryLost {
            pool: String,
            drives: Vec<String>,
            /// They keep nothing of what is written to them.
            empty: bool,
        } = NotFound @ "pool",
        /// Several pools could be meant.
        SeveralPools { pools: Vec<String> } = Conflict @ "pool",
        /// The pool has another name on its drives.
        PoolRenamed { name: String, pool: String, uuid: String } = NotFound @ "pool",
        /// The pool was not imported, and more was found while its drives were looked for.
        PoolNotTaken { why: Box<Why>, also: Vec<ImportFault> } = Unsafe @ "pool",
        /// Hosts are connected that would lose the volumes of the pool that would be released.
        PoolReleaseInUse { pool: String, force: bool, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
        /// Hosts are connected that would lose the volumes of the pool that would be destroyed.
        PoolDestroyInUse { pool: String, force: bool, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
        /// The pool belongs to this head, and is not imported now.
        PoolAbsent { pool: String, why: Box<Cause> } = NotReady @ "pool",
        /// There is no pool of this name.
        PoolUnknown { pool: String } = NotFound @ "pool",
        /// The drive belongs to a pool of this head, and force never overwrites such a drive.
        DriveListed {
            drive: String,
            pool: String,
            /// Where the pool that is imported knows it; None if the pool is away.
            place: Option<String>,
            /// It can be removed from the pool.
            removable: bool,
        } = Conflict @ "drives",
        /// The pool lies in the memory of this daemon alone.
        PoolInMemory { pool: String, drives: Vec<String>, volumes: u64 } = Unsafe @ "force",
        /// An array lies in the memory of this daemon alone: its other drives are not in sync.
        ArrayInMemory {
            pool: String,
            array: String,
            drives: Vec<String>,
            /// Its drives that are not in sync.
            others: Vec<String>,
            volumes: u64,
        } = Unsafe @ "force",
        /// No drive of an array can be marked as released.
        ReleaseNotMarked { pool: String, array: String, drives: Vec<FailedDrive> } = NotReady @ "force",
        /// A drive of the pool does not finish its operations.
        PoolNotAtRest {
            drive: String,
            why: DriveBusy,
            /// It was shaped to hang.
            shaped: bool,
        } = NotReady @ "pool",
        /// A drive of the pool still holds operations.
        PoolStillBusy { seconds: u64 } = NotReady @ "pool",
        /// The drive could not be marked as closed.
        PoolNotClosed { drive: String, fault: DriveFault } = Internal @ "pool",
        /// The pool has no array of this name.
        ArrayUnknown { pool: String, array: String, arrays: Vec<String> } = NotFound @ "array",
        /// No array is named.
        ArrayNotNamed { pool: String } = Invalid @ "array",
        /// The pool was created with this array, which cannot be removed.
        ArrayIsFirst { pool: String, array: String } = Conflict @ "array",
        /// The arrays can only be removed together with others.
        ArraysLeaveTogether {
            pool: String,
            arrays: Vec<String>,
            /// Those that are not named.
            missing: Vec<String>,
            /// All that have to leave.
            all: Vec<String>,
        } = Conflict @ "array",
        /// Data of volumes lies on the arrays.
        ArraysHoldData { volumes: Vec<String>, arrays: Vec<String> } = Conflict @ "array",
        /// The arrays hold space that volumes returned and that is not free yet.
        ArraysHoldReturned { arrays: Vec<String> } = NotReady @ "array",
        /// The pool is being scrubbed.
        PoolBeingScrubbed { pool: String } = Conflict @ "pool",
        /// A drive of the arrays is being replaced.
        ArraysBeingReplaced { arrays: Vec<String> } = Conflict @ "array",
        /// A drive that stays is away or out, and would not learn which arrays the pool has.
        StayingDriveOut { drive: String, array: String, pool: String } = NotReady @ "pool",
        /// A drive of the arrays still holds operations.
        ArraysStillBusy { arrays: Vec<String>, seconds: u64 } = NotReady @ "array",
        /// A drive that stays could not be told which arrays the pool has.
        StayingDriveNotTold { drive: String, fault: DriveFault } = Internal @ "pool",
        /// The pool has no mirror to scrub.
        NothingToScrub { pool: String } = Invalid @ "pool",
        /// The pool is not being scrubbed.
        NoScrub { pool: String } = Conflict @ "pool",
        /// The last scrub found nothing, or what it found was cleared.
        NothingToClear { pool: String } = Conflict @ "pool",
        /// A drive is preferred, but no repair was asked for.
        PreferWithoutRepair = Invalid @ "prefer",
        /// The preferred drive does not belong to the pool.
        PreferUnknown { drive: String } = NotFound @ "prefer",
        /// Two drives of one mirror are preferred.
        PreferTwice { drive: String, other: String, array: String } = Invalid @ "prefer",
        /// No uncleared map of an array can be read.
        UnclearedMapUnreadable { drive: String, fault: DriveFault } = NotReady @ "pool",
        /// The volume was removed meanwhile.
        VolumeGone = NotFound @ "volume",
        /// The volume has shrunk a moment ago, and writes to what was cut off may be under way.
        VolumeJustShrunk { seconds: u64 } = NotReady @ "bytes",
        /// The other head is gone, and its work on the pool is being taken over.
        PoolBeingTakenOver = NotReady @ "pool",
    }
}

findings! {
    /// Why something about pools is not optimal.
    pub enum PoolCause {
        /// The pool is being imported.
        PoolImporting,
        /// Drives of the pool are in use.
        PoolDrivesInUse { also: Vec<ImportFault> },
        /// Drives of the pool have not confirmed yet that the other head is shut off.
        PoolBehindFence { drives: Vec<String> },
        /// The pool could not be imported at the start.
        PoolNotImported {
            pool: String,
            why: Box<Why>,
            also: Vec<ImportFault>,
            /// Nothing of it was found, and its drives lay there.
            away: Vec<String>,
            /// Those of them that are shaped to be gone or to hang.
            shaped: Vec<String>,
        },
        /// The daemon crashed repeatedly: pools wait for the operator.
        PoolHeldBack { pool: String, crashes: u64 },
        /// The pool is not imported now, and hosts still see its volumes, not ready.
        VolumesKept { why: Box<Cause>, volumes: u64 },
        /// The pool cannot be imported as it is.
        PoolNotImportable { why: Box<Why> },
        /// The pool can be imported, with these notices.
        ImportPreview {
            pool: String,
            /// Its name is taken.
            clash: Option<Box<Why>>,
            notices: Vec<Notice>,
        },
        /// The drive lacks the last membership record, as an older copy does: everything is being copied to it.
        LegOlderCopy,
        /// The drive may hold newer writes than the pool.
        LegMayBeNewer,
        /// The drive could not be written as the pool was imported.
        LegNotWritten { fault: DriveFault },
        /// The drive lies in the memory of this daemon, and the pool was released.
        LegStaysBehind,
    }
}

events! {
    /// What happened to pools.
    pub enum PoolEvent {
        /// The pool was created.
        PoolCreated = Note,
        /// Arrays were added to the pool.
        ArraysAdded = Note,
        /// The pool was destroyed.
        PoolDestroyed = Note,
        /// The pool was imported.
        PoolImported {
            drives: Vec<String>,
            /// It had not been stopped in order.
            unclean: bool,
        } = Note,
        /// A notice about the pool.
        Noticed { notice: Box<Notice> } = Warning,
        /// More was found while drives of the pool were looked for at the start.
        ImportMet { what: ImportFault } = Warning,
        /// A drive in sync lacks the last membership record: everything is being copied to it.
        LegOlder { pool: String } = Warning,
        /// A drive of the pool was out when the pool was imported.
        LegOutAtImport { pool: String, why: Box<Cause> } = Warning,
        /// The pool was released.
        PoolReleased = Note,
        /// The pool was forgotten: its drives are away.
        PoolForgotten = Note,
        /// A release of the pool that a crash had interrupted was finished.
        ReleaseEnded = Note,
        /// The drives of the pool are back, and it was imported automatically.
        PoolReturned {
            /// Some of its drives do not answer.
            silent: bool,
        } = Note,
        /// The configuration that hosts see while the pool is away could not be saved.
        ConfigNotKept { pool: String, fault: StateFault } = Warning,
        /// Arrays left the pool.
        ArraysLeft { arrays: Vec<String>, free: Vec<String> } = Note,
        /// A removal of arrays that a crash had interrupted was finished.
        RemovalEnded {
            free: Vec<String>,
            /// Drives that may still have their label.
            left: Vec<String>,
        } = Note,
        /// A creation of the pool that a crash had interrupted was finished.
        CreationEnded = Note,
        /// An addition of arrays that a crash had interrupted was finished.
        AdditionEnded = Note,
        /// A creation or addition that a crash had interrupted was undone.
        WorkUndone { what: CutOffWork, drives: Leftovers } = Warning,
        /// A scrub began.
        ScrubBegan { repair: bool } = Note,
        /// The scrub was stopped.
        ScrubStopped = Note,
        /// What the last scrub found was cleared by the operator.
        ScrubCleared = Note,
        /// The schedule of scrubs was changed; 0 days are none.
        ScrubScheduled { days: u32 } = Note,
        /// A scrub found a difference.
        ScrubFound {
            /// None: space that no volume has.
            volume: Option<String>,
            array: u64,
            /// First byte in the volume, or in the pool's space.
            first_byte: u64,
            last_byte: u64,
            what: Difference,
        } = Warning,
        /// The scrub is over, and found nothing.
        ScrubClean = Note,
        /// The scrub is over, and could not read everything.
        ScrubUnreadable {
            pool: String,
            unreadable_bytes: u64,
            /// How many, if not all were told.
            places: Option<u64>,
        } = Warning,
        /// The scrub is over, and found differences.
        ScrubDiffered {
            pool: String,
            differed_bytes: u64,
            repaired_bytes: u64,
            unreadable_bytes: u64,
            /// How many, if not all were told.
            places: Option<u64>,
        } = Warning,
    }
}

findings! {
    /// What is worth knowing of pools.
    pub enum PoolNotice {
        /// What the drives held reads as zeroes, and is cleared in the background.
        DrivesBeingCleared,
        /// The file is sparse, and its file system has no room for all of it.
        FileLargerThanBelow { drive: String, free_bytes: u64, bytes: u64 },
        /// Much of the drive would stay unused.
        DriveSpaceUnused { drive: UnusedSpace },
        /// A copy of the label is damaged.
        LabelCopyDamaged { drive: String },
        /// By force, an array was taken from a leg that lacks later writes.
        StaleTakenByForce { array: String, pool: String, drive: String, missing: Vec<String> },
        /// By force, an array was taken from legs that are not proven to be the latest.
        UnprovenTakenByForce { array: String, pool: String, drives: Vec<String>, missing: Vec<String> },
        /// Another pool of the same name was left alone.
        PoolNamesakeIgnored { pool: String, uuid: String, drives: Vec<String> },
        /// Something wrote to the first 4K of the drive.
        FrontWritten { drive: String },
        /// The drive no longer belongs to the pool.
        DriveHasLeft { drive: String, pool: String },
        /// The volume has another namespace id now.
        NamespaceChanged { volume: String, nsid: u32, was: u32, holder: String },
        /// The host sees a volume of the pool as another LUN now.
        LunChanged { host: String, pool: String, lun: u32, was: u32 },
        /// The array lacks a drive.
        ArrayLacksDrive { array: String, drive: String, why: Box<Cause> },
        /// The spare cannot be used.
        SpareUnusable { spare: String, why: Box<Cause> },
        /// The list of pools could not be written.
        PoolNotListed { why: Box<Why> },
        /// The pool lies in the memory of this daemon: no other head can import it.
        PoolInMemory { drives: Vec<String> },
        /// The drive lies in the memory of this daemon and stays behind.
        DriveStaysBehind { drive: String, array: String },
        /// The drive could not be marked as released.
        DriveNotMarked { drive: String, fault: DriveFault },
        /// Not every mirror is marked as released.
        MirrorsNotMarked { pool: String },
        /// The drive has left the pool, and keeps its label.
        DriveKeepsPoolLabel { drive: String, pool: String },
        /// Differences in these mirrors are reported and not repaired.
        RepairUnknown { arrays: Vec<String> },
        /// The drive is preferred, and its mirror had no difference.
        PreferNeedless { drive: String, array: String },
        /// The uncleared map of the drive is damaged, and could not be mended.
        UnclearedMapDamaged { drive: String, fault: DriveFault },
        /// The uncleared map is damaged on every drive of an array.
        UnclearedMapLost { pool: String, array: u64 },
        /// A creation or addition that a crash had interrupted was undone.
        WorkUndone { pool: String, what: CutOffWork, drives: Leftovers },
        /// The witness record of a pool that was imported could not be read.
        WitnessUnreadable { why: Box<Cause> },
        /// The saved configuration of a pool that is away cannot be read.
        KeptUnreadable { file: String, why: FileFault },
        /// The saved configuration of a pool that is away contradicts itself.
        KeptContradicts { file: String },
        /// The pool is not imported.
        PoolStaysAway { pool: String, why: Box<Cause> },
        /// The daemon crashed repeatedly: pools wait for the operator.
        PoolsHeldBack { crashes: u64 },
    }
}

findings! {
    /// In which way two drives are one.
    pub enum OneDrive {
        /// They are two paths to one drive, or to parts of it.
        Paths { drive: String, other: String, wwid: String },
        /// They are the same drive.
        Same { drive: String, other: String },
        /// They are one drive, or one lies in the other.
        Overlap { drive: String, other: String },
    }
}

findings! {
    /// What a volume may hold.
    pub enum VolumeData {
        /// Nobody knows whether it was ever written.
        Unknown,
        /// Hosts wrote so much, and nothing before that.
        Written { bytes: u64 },
        /// Hosts wrote so much since the daemon started.
        WrittenSinceStart { bytes: u64 },
    }
}

findings! {
    /// Who knows one of two histories of a pool.
    pub enum PoolSide {
        /// Drives.
        Drives { drives: Vec<String> },
        /// This head, in its state directory.
        Remembered,
    }
}

findings! {
    /// What speaks against taking a pool.
    pub enum PoolDoubt {
        /// Another head has it.
        NotReleased { pool: String, holder: String },
        /// It was released, and another head may have gone on with drives that are missing.
        ReleasedWithMissing { pool: String, array: String, missing: Vec<String>, current: Vec<String> },
        /// Drives are missing, and the others cannot be proven to have the latest writes.
        Unproven { pool: String, array: String, missing: Vec<String>, current: Vec<String> },
        /// All drives of an array were in the memory of a daemon that has ended.
        InMemory { pool: String, array: String, missing: Vec<String> },
        /// All drives of an array are missing.
        Missing { pool: String, array: String, missing: Vec<String> },
        /// Nothing is here but drives that lack writes.
        Stale {
            pool: String,
            array: String,
            stale: Vec<String>,
            missing: Vec<String>,
            /// One of them has all but later writes: force takes it.
            whole: bool,
        },
    }
}

findings! {
    /// What else turned up as drives of a pool were looked for.
    pub enum ImportFault {
        /// A drive could not be opened.
        NotOpened { drive: String, fault: OpenFault },
        /// The drive is not as it was.
        NotItself { drive: String, why: Box<Cause> },
        /// The drive is one of another pool.
        OfOtherPool { drive: String, pool: String },
        /// The drive has no label.
        LabelAbsent { drive: String },
        /// The drive's label is of a newer version.
        LabelNewer { drive: String, part: NewerPart },
        /// The drive's label is damaged.
        LabelDamaged { drive: String },
        /// Nothing is where the drives were.
        NotThere { drives: Vec<String> },
        /// So many more drives are in use.
        MoreInUse { count: u64 },
        /// So many drives are in use that nobody named.
        OthersInUse { count: u64 },
        /// Drives were looked for there, too.
        LookedInVain { drives: Vec<String> },
        /// With force these drives, which are here and were not named, would not count.
        NotNamed { drives: Vec<String> },
    }
}

impl ImportFault {
    /// The drive that is there and has no label that this program reads.
    pub fn without_label(&self) -> Option<&str> {
        match self {
            Self::LabelAbsent { drive } | Self::LabelNewer { drive, .. } | Self::LabelDamaged { drive } => {
                Some(drive)
            }
            _ => None,
        }
    }
}

findings! {
    /// Why a drive cannot come to rest.
    pub enum DriveBusy {
        /// It still holds operations that were begun before it failed.
        HoldsFormer,
        /// It does not answer.
        Silent,
        /// Operations do not end.
        Hangs { operations: u64 },
    }
}

findings! {
    /// What a scrub found at a place. A drive that has left meanwhile is None.
    pub enum Difference {
        /// The legs could not all be read.
        Unreadable,
        /// Drives differed from the other legs and were written again.
        Repaired { drives: Vec<Option<String>> },
        /// Drives differ from the other legs, which agree.
        Differs { drives: Vec<Option<String>> },
        /// Drives differed from one that the operator prefers, and were written again from there.
        RepairedAsTold { drives: Vec<Option<String>>, from: Option<String> },
        /// Drives differed from another one and were written again from there; nobody knows which one was right.
        RepairedUnknown { drives: Vec<Option<String>>, from: Option<String> },
        /// Drives differ, and nobody knows which one is right.
        Unknown { drives: Vec<Option<String>>, from: Option<String> },
    }
}

findings! {
    /// What had been cut off.
    pub enum CutOffWork {
        /// The creation of a pool.
        Creation,
        /// Arrays were being added.
        Addition,
    }
}

/// A drive, and what it did.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct FailedDrive {
    /// Its path.
    pub drive: String,
    /// What it did.
    pub fault: DriveFault,
    /// It is a file.
    pub file: bool,
}

impl FailedDrive {
    /// This drive, and what it did.
    pub fn of(info: &base::DriveInfo, error: base::DriveError) -> Self {
        Self {
            drive: info.path.clone(),
            fault: DriveFault::of(info, error),
            file: info.kind == base::DriveKind::File,
        }
    }
}

impl Sample for FailedDrive {
    fn sample(_: &str) -> Self {
        Self { drive: String::sample("drive"), fault: DriveFault::Medium, file: false }
    }
}

/// A drive of which much stays unused.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct UnusedSpace {
    /// Its path.
    pub drive: String,
    /// Of the whole drive.
    pub bytes: u64,
    /// That nothing is stored on.
    pub unused_bytes: u64,
}

impl Sample for UnusedSpace {
    fn sample(_: &str) -> Self {
        Self { drive: String::sample("drive"), bytes: 8 << 30, unused_bytes: 4 << 30 }
    }
}

/// What became of the drives of something that was undone.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Leftovers {
    /// They are free again.
    pub freed: Vec<String>,
    /// Files that were made for it and are removed.
    pub removed: Vec<String>,
    /// Files that were made for it and hold something of somebody else.
    pub kept: Vec<String>,
    /// They may still have its label.
    pub left: Vec<String>,
}

impl Sample for Leftovers {
    fn sample(_: &str) -> Self {
        Self { freed: vec![String::sample("drive")], ..Self::default() }
    }
}

impl PoolRefusal {
    /// Several refusals of one order that force overrides together; one stays as it is.
    pub fn together(mut all: Vec<crate::Refusal>) -> Option<crate::Refusal> {
        if all.len() < 2 {
            return all.pop();
        }
        let field = all[0].field;
        let mut whys = all.into_iter().map(|r| r.why);
        let (first, others) = (whys.next()?, whys.map(|why| *why).collect());
        Some(crate::Refusal::from(Self::SeveralObjections { first, others }).about(field))
    }
}
