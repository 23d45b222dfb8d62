//! Findings about drives, legs and spares.

use crate::{
    Cause, DriveFault, NewerPart, NewerRecord, OpenFault, ShapeFault, Signature, UnopenedDrive, Why,
};

refusals! {
    /// Why an order about drives, legs and spares was not carried out.
    pub enum LegRefusal {
        /// Several drives of pools have this name.
        DriveNameShared { drive: String, drives: usize } = Invalid @ "drive",
        /// The drive is a spare, and no leg.
        SpareIsNoLeg { drive: String, pool: String } = Conflict @ "drive",
        /// There is no such drive.
        DriveUnknown { drive: String } = NotFound @ "drive",
        /// No imported pool has such a drive.
        DriveInNoPool { drive: String } = NotFound @ "drive",
        /// The leg is out already.
        LegOutAlready { drive: String } = Conflict @ "drive",
        /// The pool does not work without the drive.
        LegIsNeeded {
            drive: String,
            /// It is the last one in sync of a mirror; else it has no mirror.
            mirror: bool,
            /// Another leg that is out.
            out: Option<String>,
            /// It was to leave the pool; else it was to be put out.
            removal: bool,
        } = Conflict @ "drive",
        /// The file of the other leg was removed: that leg is gone once the daemon stops.
        OtherFileRemoved { drive: String, removed: String } = Conflict @ "force",
        /// The drive became the last one in sync while it was to be put out.
        LegBecameLast { drive: String } = Conflict @ "drive",
        /// The leg is being resynced already.
        LegResyncing { drive: String } = Conflict @ "drive",
        /// The drive was one of a pool, where another one has taken its place.
        LegWasReplaced { drive: String, pool: String } = Conflict @ "drive",
        /// The bitmap of a mirror could not be written.
        BitmapNotWritten = NotReady @ "drive",
        /// The drive is not open.
        DriveNotOpen { drive: String } = NotReady @ "drive",
        /// The drive holds data that nothing else holds: it cannot be replaced.
        LegNotReplaceable { drive: String, pool: String, mirror: bool } = Conflict @ "old",
        /// The leg serves, and cannot be replaced by itself.
        LegServes { drive: String, pool: String } = Conflict @ "new",
        /// Operations that were begun before the drive failed are still under way there.
        DriveStillBusy { drive: String, replaces: bool } = NotReady @ "drive",
        /// Operations of the other head that were begun before the drive failed are still under way there.
        DriveBusyOnOther { drive: String } = NotReady @ "drive",
        /// The leg is already being replaced by another drive.
        LegBeingReplaced { drive: String, new: String } = Conflict @ "old",
        /// The leg is itself the replacement of another one.
        LegReplacesAnother { drive: String, old: String } = Conflict @ "old",
        /// A leg of the mirror is being replaced, and there is room for one at a time.
        MirrorReplacesOne { mirror: String } = Conflict @ "old",
        /// The pool would have more drives than there can be, with the new leg.
        TooManyLegs { drives_max: u64 } = Conflict @ "new",
        /// The pool would have more drives than there can be, with the new spare.
        TooManySpares { drives_max: u64 } = Invalid @ "drive",
        /// The drive is one of a pool that is imported.
        DriveInPool { drive: String, pool: String } = Conflict @ "drive",
        /// The drive is a spare.
        DriveIsSpare { drive: String, pool: String } = Conflict @ "new",
        /// The mirror has as many legs as there can be.
        MirrorFull { mirror: String, legs_max: u64, drive: String, pool: String } = Conflict @ "mirror",
        /// A drive of the pool cannot be told yet that the leg was removed.
        LegNotForgotten = NotReady @ "drive",
        /// Drives could not be opened.
        DrivesNotOpened { drives: Vec<UnopenedDrive> } = Invalid @ "drive",
        /// The shape of the drive cannot be understood.
        ShapeInvalid { fault: ShapeFault } = Invalid @ "shape",
        /// No other leg of the mirror is in sync yet.
        MirrorNotInSync { drive: String } = NotReady @ "old",
        /// No other leg of the mirror is there to copy from.
        MirrorWithoutSource = NotReady @ "old",
        /// The drive is too small for the mirror.
        LegTooSmall { drive: String, bytes: u64, needed_bytes: u64 } = Invalid @ "new",
        /// The drive is too small for every mirror of the pool.
        SpareTooSmall { drive: String, pool: String, bytes: u64, needed_bytes: u64 } = Invalid @ "drive",
        /// The drive takes no 512-byte writes, and volumes of the pool have blocks of that size.
        DriveBlocksTooLarge { drive: String } = Invalid @ "new",
        /// The pool has no mirror of this name.
        MirrorUnknown { pool: String, mirror: String, mirrors: Vec<String> } = NotFound @ "mirror",
        /// The pool has no mirror.
        PoolWithoutMirror { pool: String } = Invalid @ "mirror",
        /// The pool has several mirrors, and none was named.
        MirrorNotNamed { pool: String, mirrors: Vec<String> } = Invalid @ "mirror",
        /// Without the drive the mirror would have only one leg in sync.
        MirrorLeftAlone { drive: String, mirror: String, pool: String } = Unsafe @ "drive",
        /// No mirror of the pool could ever use a spare.
        PoolTakesNoSpare { pool: String } = Invalid @ "pool",
        /// The spare does not answer.
        SpareSilent { spare: String } = NotReady @ "",
        /// Another drive lies where the spare was.
        SpareIsOther { spare: String } = Conflict @ "",
        /// What lies at the path of the spare is not that spare.
        SpareNotThere { spare: String, why: Box<Cause> } = Conflict @ "drive",
        /// The spare was not found.
        SpareNotBack { spare: String, why: Box<Cause> } = NotReady @ "drive",
        /// The leg was not found.
        LegNotBack { leg: String, why: Box<Cause> } = NotReady @ "drive",
        /// The last leg in sync was found, and may not return yet.
        LegNotYetBack { leg: String } = NotReady @ "drive",
        /// The last leg in sync is not back yet: the head looks for it.
        LegLookedFor { leg: String } = NotReady @ "drive",
        /// The leg is in sync: there is nothing to return.
        LegInSync { leg: String } = Conflict @ "drive",
        /// A test has shaped the drive to be gone or to hang.
        DriveShapedAway { drive: String, hangs: bool } = Conflict @ "drive",
        /// The file system below the drive's file is full: what it missed does not fit there.
        LegFileSystemFull { drive: String } = NotReady @ "drive",
        /// The drive may not return to its pool.
        LegMayNotReturn { drive: String, pool: String, why: Box<Cause>, instead: Instead } = Conflict @ "drive",
        /// A drive has missed so many membership records that it must be back before others return.
        LegFarBehind { drive: Option<String>, records: u64 } = NotReady @ "drive",
        /// The label of the drive is where it should be.
        LabelIntact { drive: String } = Conflict @ "drive",
        /// The leg is out: it gets its label when it returns.
        LabelOfLegOut { drive: String } = Conflict @ "drive",
        /// Something else was written where the drive had its label.
        LabelTakenOver { drive: String, owner: DriveOwner } = Unsafe @ "force",
        /// More than the label was overwritten, and data may be damaged, too.
        LabelRestoreUnconfirmed {
            drive: String,
            /// What is lost of it; nothing: something else lies there.
            areas: Vec<DriveArea>,
        } = Unsafe @ "yes",
        /// The label could not be written.
        LabelNotRestored { drive: String, fault: DriveFault } = NotReady @ "drive",
        /// The machine has no such drive.
        DriveNotInMachine { drive: String } = NotFound @ "drive",
        /// The drive has no bay whose light could be lit.
        DriveWithoutBay { drive: String, what: NotInBay } = Conflict @ "drive",
        /// Nothing is known by which the light at the drive's bay could be lit.
        BayWithoutLight { drive: String, slot: Option<String> } = Conflict @ "drive",
        /// The light at the drive's bay could not be switched.
        BayLightStuck {
            drive: String,
            path: String,
            /// As the operating system has it.
            error: String,
        } = NotReady @ "drive",
    }
}

findings! {
    /// What a drive is that is in no bay.
    pub enum NotInBay {
        /// Memory of the daemon.
        Memory,
        /// One that forgets what is written.
        Null,
        /// A file.
        File { path: String, bytes: u64 },
    }
}

findings! {
    /// What is done with a drive that may not return.
    pub enum Instead {
        /// What the cause says.
        AsItSays,
        /// Everything is copied to it.
        Overwrite { leg: String, drive: String },
        /// It is a drive of a pool of this head that is not imported.
        Import { pool: String, drive: String },
        /// It is a drive of a pool of this head, which knows it at this place.
        PutBack { place: String, drive: String },
    }
}

findings! {
    /// Why something about drives, legs and spares is not optimal.
    pub enum LegCause {
        /// The drive failed.
        DriveFailed { fault: DriveFault, helps: Option<DriveHelp> },
        /// The drive has fewer bytes than it had.
        DriveCutOff { bytes: u64, had_bytes: u64, helps: Option<DriveHelp> },
        /// The drive failed to take the membership record.
        LegRecordNotTaken { fault: DriveFault },
        /// The drive failed to take the pool's configuration.
        LegConfigNotTaken { fault: DriveFault },
        /// The leg was being rebuilt, and may hold writes that its source lacks.
        LegAheadOfSource {
            source: String,
            /// What the source did; None: it had been given up.
            fault: Option<DriveFault>,
        },
        /// The operator put the leg out.
        LegOutByHand,
        /// The operator removed the leg.
        LegRemovedByHand,
        /// Another drive has taken the place of the leg.
        LegPlaceTaken { new: String },
        /// Everything is being copied to the leg.
        LegFullResync,
        /// Everything is being copied to the leg; then it takes the place of another one.
        LegReplacing { old: String },
        /// What the leg missed is being copied to it.
        LegResync,
        /// The drive is smaller than its label says.
        DriveTooSmall { leg: String, path: String, bytes: u64, needed_bytes: u64, file: bool },
        /// What lies at the drive's path holds something else.
        DriveOverwritten { leg: String, path: String, holds: Signature },
        /// What lies at the drive's path has no label.
        DriveUnlabelled { leg: String, path: String },
        /// The label of the drive cannot be used.
        DriveLabelUnreadable { leg: String, path: String, fault: LabelFault },
        /// A record on the drive is of a newer program, which this one may not overwrite.
        DriveNewer { leg: String, path: String, newer: NewerRecord },
        /// The drive is there, and cannot be read.
        DriveUnreadable { leg: String, fault: DriveFault },
        /// The drive was used apart from the others, and may hold newer writes.
        DriveDiverged { leg: String, path: String, pool: String },
        /// The drive lies at another path now.
        DriveMoved { uuid: String, path: String },
        /// A drive of another pool, or another drive of this one, lies at the drive's path.
        DriveExchanged { leg: String, pool: String },
        /// Nothing was found at the drive's path.
        DriveNotFound,
        /// Nothing was found at the drive's path, nor elsewhere.
        DriveAbsent { path: String },
        /// The drive could not be opened.
        DriveUnopened { drive: String, fault: OpenFault },
        /// The drive carries the label of another one.
        DriveLabelOfOther { pool: String },
        /// The drive's label names another place in the pool.
        DriveLabelElsewhere,
        /// The pool was released or destroyed meanwhile.
        PoolGone,
        /// The area of the drive in which a system votes could not be cleared.
        DriveNotCleared { fault: DriveFault },
        /// The drive's label could not be written.
        DriveLabelNotWritten { fault: DriveFault },
        /// A copy of the drive's label was overwritten, and is written again.
        DriveLabelOverwritten { drive: String },
        /// The drive's label was overwritten while it was in use, and more with it: data may be damaged.
        DriveMetadataLost {
            drive: String,
            areas: Vec<DriveArea>,
            /// Nothing else has what it holds.
            last: bool,
            /// Legs of its mirror that lost their labels as well: the one that is restored first is believed.
            others: Option<Vec<String>>,
        },
        /// Something else was written where the drive in use had its label.
        DriveTakenOver {
            drive: String,
            owner: DriveOwner,
            /// Nothing else has what it holds.
            last: bool,
            /// Legs of its mirror that lost their labels as well: the one that is restored first is believed.
            others: Option<Vec<String>>,
        },
        /// The label of the spare was overwritten.
        SpareLabelOverwritten { spare: String, pool: String, owner: Option<DriveOwner> },
        /// The spare has fewer bytes than it had.
        SpareCutOff { spare: String, pool: String, bytes: u64, had_bytes: u64 },
        /// The file of the spare is not at its path any more.
        SpareFileMoved { spare: String },
        /// The file of the spare was removed.
        SpareFileRemoved,
        /// The drive does not answer at the moment, and nothing stands in for it.
        DriveSilent { drive: String, shaped: bool },
        /// The drive's file is not at its path any more.
        DriveFileMoved { drive: String },
        /// The drive's file was removed; another leg has what it holds.
        DriveFileRemoved { drive: String },
        /// The drive's file was removed, and nothing else has what it holds.
        LastFileRemoved,
        /// The file system below the drive's file is full.
        DriveFileSystemFull { drive: String, last: bool },
        /// Writes fail for lack of space: it may be a thin volume whose pool is full.
        DriveThinPoolFull { drive: String },
        /// Operations failed, and nothing stands in for the drive.
        DriveOperationsFailed { drive: String, fault: DriveFault },
        /// The drive is labelled as one of a pool.
        DriveLabelled { drive: String, pool: String, uuid: String, unfinished: bool },
        /// The drive carries a label of a newer program.
        DriveLabelNewer { drive: String, part: NewerPart },
        /// The drive carries a damaged label.
        DriveLabelDamaged { drive: String },
        /// The drive holds other data.
        DriveHolds { drive: String, holds: Signature },
        /// The drive failed in a pool, and nobody has returned it or used it since.
        DriveHasFailed { drive: String, pool: String, why: Box<Cause>, errors: u64 },
    }
}

findings! {
    /// A part of a drive that the head keeps for itself.
    pub enum DriveArea {
        /// The membership records.
        Records,
        /// The configurations of the pool.
        Configuration,
        /// What lies at its end, the last data among it.
        End,
    }
}

findings! {
    /// Who wrote to a drive in use.
    pub enum DriveOwner {
        /// It holds something else.
        Signature { holds: Signature },
        /// It carries the label of another drive.
        Pool { pool: String, uuid: String },
        /// It carries a label of a newer program.
        Newer,
    }
}

findings! {
    /// What helps a drive that failed.
    pub enum DriveHelp {
        /// It was shaped so: clear its shape.
        ClearShape { drive: String },
        /// Attach it again: hosts wait for it.
        Attach { drive: String },
        /// A spare is one again once it answers.
        AwaitSpare { spare: String },
        /// Restore what lay at its end.
        Restore { drive: String },
    }
}

findings! {
    /// What is wrong with a label.
    pub enum LabelFault {
        /// It is not there.
        Absent,
        /// It is of a newer program.
        Newer,
        /// It is damaged.
        Damaged,
    }
}

findings! {
    /// Why a spare cannot stand in for a leg of a mirror.
    pub enum SpareUnfit {
        /// It takes no 512-byte writes, and volumes of the pool have blocks of that size.
        Blocks { spare: String },
        /// It is too small.
        TooSmall { spare: String, mirror: String, bytes: u64, needed_bytes: u64 },
    }
}

findings! {
    /// For which mirrors a spare cannot stand in.
    pub enum SpareFit {
        /// It fits some alone.
        Some { fits: Vec<String>, why: SpareUnfit },
        /// It fits none.
        Nowhere { why: SpareUnfit },
    }
}

findings! {
    /// What a leg was that another drive takes the place of.
    pub enum OldLeg {
        /// It serves.
        Serves,
        /// It is out.
        Out,
        /// It was not in sync yet.
        Rebuilding,
    }
}

events! {
    /// What happened to drives, legs and spares.
    pub enum LegEvent {
        /// Reads of the leg take far longer than those of the other legs.
        LegSlow { pool: String } = Warning,
        /// The leg is as fast as the others again.
        LegFast { pool: String } = Note,
        /// The leg was slow, and is hardly read now.
        LegHardlyRead { pool: String } = Note,
        /// A drive takes the place of a leg.
        LegReplaced { new: String, old: String, was: OldLeg } = Note,
        /// A leg was removed.
        LegRemoved { leg: String } = Note,
        /// The label was taken from a drive that has left its pool.
        DriveFreed { pool: String } = Note,
        /// A drive that has left its pool keeps its label.
        DriveKeepsLabel { pool: String, why: Box<Cause> } = Warning,
        /// A spare was added.
        SpareAdded { spare: String, fit: Option<SpareFit> } = Note,
        /// A spare was removed.
        SpareRemoved { spare: String } = Note,
        /// A spare takes the place of a leg.
        SpareUsed { spare: String, old: String } = Warning,
        /// A spare could not take the place of a leg.
        SpareNotUsed { spare: String, why: Box<Why> } = Error,
        /// No spare fits in the place of a leg that is out.
        NoSpareFits { leg: String, mirror: String, spares: Vec<SpareUnfit> } = Warning,
        /// A spare that was away is back.
        SpareReturned { spare: String } = Note,
        /// A spare is healthy again.
        SpareHealthy { spare: String } = Note,
        /// A spare cannot be used.
        SpareUnusable { spare: String, why: Box<Cause> } = Warning,
        /// The last leg in sync, which was gone, is back.
        LastLegReturned { pool: String } = Note,
        /// Copies of a drive's label that were overwritten are written again.
        LabelRewritten {
            pool: String,
            /// The copy in front.
            first: bool,
            /// The copy at the end.
            second: bool,
        } = Warning,
        /// Copies of a drive's label that were damaged before the import are written again.
        LabelRewrittenAtImport {
            pool: String,
            /// The copy in front.
            first: bool,
            /// The copy at the end.
            second: bool,
        } = Warning,
        /// The operator had the label of a drive written anew: data of the drive may be damaged.
        LabelRestored { pool: String } = Warning,
        /// A leg is smaller than it was.
        LegCutOff { bytes: u64, needed_bytes: u64 } = Error,
        /// A leg joined or returned, and is being resynced.
        LegJoined { pool: String, new: bool, full: bool } = Note,
        /// A leg is in sync.
        LegSynced { pool: String } = Note,
        /// A leg was put out.
        LegOut { pool: String, why: Box<Cause> } = Error,
        /// A leg leaves its pool.
        LegLeaves { pool: String, why: Box<Cause> } = Note,
        /// The legs of a mirror are being compared and made the same.
        MirrorCompares { mirror: String, bytes: u64 } = Note,
        /// The legs of a mirror are the same again.
        MirrorCompared { mirror: String, bytes: u64, seconds: u64 } = Note,
        /// The loss of a drive can be put on record nowhere: volumes of the pool are not ready.
        LossNotRecorded {
            /// What the last attempt met.
            why: Option<Box<Cause>>,
        } = Error,
        /// The loss of a drive is on record, and the volumes of the pool are ready again.
        LossRecorded = Note,
        /// The other head lost its path to the drive, and starts over without it.
        PathLostThere = Warning,
        /// This head lost its path to the drive, and the other one takes over.
        PathLostHere = Warning,
        /// Operations on a drive failed, and its mirror answered hosts.
        DriveErrors { fault: DriveFault } = Warning,
        /// A drive is not healthy, and nothing stands in for it.
        DriveUnhealthy { why: Box<Cause> } = Error,
        /// A drive is healthy again.
        DriveHealthy = Note,
        /// A drive that had failed and was removed is not listed any more.
        FailedForgotten { pool: String } = Note,
    }
}

findings! {
    /// What is worth knowing of drives, legs and spares.
    pub enum LegNotice {
        /// The spare cannot stand in for every mirror.
        SpareFits { spare: String, fit: SpareFit },
    }
}

impl LegCause {
    /// A drive that failed, with nothing said of what helps.
    pub fn failed(fault: DriveFault) -> Self {
        Self::DriveFailed { fault, helps: None }
    }
    /// Whether a leg is put out for what was found to be overwritten.
    pub fn puts_out(&self) -> bool {
        matches!(self, Self::DriveMetadataLost { last: false, .. } | Self::DriveTakenOver { last: false, .. })
    }

    /// What the drive did, if it failed.
    pub fn fault(&self) -> Option<&DriveFault> {
        match self {
            Self::DriveFailed { fault, .. }
            | Self::LegRecordNotTaken { fault }
            | Self::LegConfigNotTaken { fault } => Some(fault),
            _ => None,
        }
    }
}

impl From<UnopenedDrive> for LegRefusal {
    fn from(drive: UnopenedDrive) -> Self {
        Self::DrivesNotOpened { drives: vec![drive] }
    }
}

impl From<UnopenedDrive> for LegCause {
    fn from(UnopenedDrive { drive, fault }: UnopenedDrive) -> Self {
        Self::DriveUnopened { drive, fault }
    }
}

impl From<base::record::Fault> for LabelFault {
    fn from(fault: base::record::Fault) -> Self {
        match fault {
            base::record::Fault::Absent => LabelFault::Absent,
            base::record::Fault::Newer(_) => LabelFault::Newer,
            base::record::Fault::Damaged => LabelFault::Damaged,
        }
    }
}
