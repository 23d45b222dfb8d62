//! Findings about drives, legs and spares.

use crate::{Cause, DriveFault, Signature, Why};

refusals! {
    /// Why an order about drives, legs and spares was not carried out.
    pub enum LegRefusal {
        /// Several drives of pools have this name.
        DriveNameShared { drive: String, drives: usize } = Invalid @ "drive",
        /// The drive is a spare, and no leg.
        SpareIsNoLeg { drive: String, pool: String } = Conflict @ "drive",
        /// No imported pool has such a drive.
        DriveOfNoPool { drive: String } = NotFound @ "drive",
        /// The leg is out already.
        LegOutAlready { drive: String } = Conflict @ "drive",
        /// The drive holds what nothing else holds: the pool needs it.
        LegIsNeeded {
            drive: String,
            /// It is the last one in sync of a mirror; else it has no mirror.
            mirror: bool,
            /// Another leg that is out.
            out: Option<String>,
        } = Conflict @ "drive",
        /// The other leg's file was removed, and it is gone once the daemon stops.
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
        /// The leg serves, and was to be replaced by itself.
        LegServes { drive: String, pool: String } = Conflict @ "new",
        /// Operations that were begun before the drive failed are still under way there.
        DriveStillBusy { drive: String, replaces: bool } = NotReady @ "drive",
        /// The same at the other head.
        DriveBusyOnOther { drive: String } = NotReady @ "drive",
        /// Another drive takes the place of the leg already.
        LegBeingReplaced { drive: String, new: String } = Conflict @ "old",
        /// The leg is about to take the place of another one.
        LegReplacesAnother { drive: String, old: String } = Conflict @ "old",
        /// A leg of the mirror is being replaced, and there is room for one at a time.
        MirrorReplacesOne { mirror: String } = Conflict @ "old",
        /// The pool has as many drives as there can be, with the one that comes.
        LegsAtMost { most: u64 } = Conflict @ "new",
        /// The pool has as many drives as there can be.
        SparesAtMost { most: u64 } = Invalid @ "drive",
        /// The drive is one of a pool that is imported.
        DriveInPool { drive: String, pool: String } = Conflict @ "drive",
        /// The drive is a spare.
        DriveIsSpare { drive: String, pool: String } = Conflict @ "new",
        /// The mirror has as many legs as there can be.
        MirrorFull { mirror: String, most: u64, drive: String, pool: String } = Conflict @ "mirror",
        /// Some drive of the pool cannot be told yet that the leg has left.
        LegNotForgotten = NotReady @ "drive",
        /// The drive could not be opened; `error` is what the machine says.
        DriveNotOpened { error: String } = Invalid @ "drive",
        /// No other leg of the mirror is in sync yet.
        MirrorNotInSync { drive: String } = NotReady @ "old",
        /// The pool is let go of.
        LegPoolGone = NotFound @ "pool",
        /// No other leg of the mirror is there to copy from.
        MirrorWithoutSource = NotReady @ "old",
        /// The drive is too small for the mirror.
        LegTooSmall { drive: String, bytes: u64, needed_bytes: u64 } = Invalid @ "new",
        /// The drive is too small for every mirror of the pool.
        SpareTooSmall { drive: String, pool: String, bytes: u64, needed_bytes: u64 } = Invalid @ "drive",
        /// The drive takes no 512-byte writes, and volumes of the pool have blocks of that size.
        DriveBlocksTooLarge { drive: String } = Invalid @ "new",
        /// The drive did not take its label.
        DriveNotLabelled { drive: String, fault: DriveFault } = Internal @ "new",
        /// The pool has no mirror of this name.
        MirrorUnknown { pool: String, mirror: String, mirrors: Vec<String> } = NotFound @ "mirror",
        /// The pool has no mirror.
        PoolWithoutMirror { pool: String } = Invalid @ "mirror",
        /// The pool has several mirrors, and none was named.
        MirrorNotNamed { pool: String, mirrors: Vec<String> } = Invalid @ "mirror",
        /// The drive holds data of the pool that nothing else holds: it cannot be removed.
        LegOnlyCopy { drive: String, pool: String } = Conflict @ "drive",
        /// The drive is the last one in sync of its mirror.
        LegLastInSync { drive: String } = Conflict @ "drive",
        /// Without the drive the mirror has one leg in sync.
        MirrorLeftAlone { drive: String, mirror: String, pool: String } = Unsafe @ "drive",
        /// No mirror of the pool could ever use a spare.
        PoolTakesNoSpare { pool: String } = Invalid @ "pool",
        /// The spare does not answer.
        SpareSilent { spare: String } = NotReady @ "",
        /// Another drive lies where the spare was.
        SpareIsOther { spare: String } = Conflict @ "",
        /// What lies there is not the spare that was there.
        SpareNotThere { spare: String, why: Box<Cause> } = Conflict @ "drive",
        /// The spare was not found.
        SpareNotBack { spare: String, why: Box<Cause> } = NotReady @ "drive",
        /// The leg was not found.
        LegNotBack { leg: String, why: Box<Cause> } = NotReady @ "drive",
        /// The last leg in sync was found, and may not return yet.
        LegNotYetBack { leg: String } = NotReady @ "drive",
        /// The last leg in sync is not back; it is looked for.
        LegLookedFor { leg: String } = NotReady @ "drive",
        /// The leg is in sync: there is nothing to return.
        LegInSync { leg: String } = Conflict @ "drive",
        /// A test has shaped the drive to be gone or to hang.
        DriveShapedAway { drive: String, hangs: bool } = Conflict @ "drive",
        /// The file system below the drive's file is full: what it missed does not fit there.
        LegFileSystemFull { drive: String } = NotReady @ "drive",
        /// The drive may not return to its pool.
        LegMayNotReturn { drive: String, pool: String, why: Box<Cause>, instead: Instead } = Conflict @ "drive",
        /// The drive cannot be shaped so.
        ShapeInvalid { fault: base::machine::ShapeFault } = Invalid @ "shape",
        /// A drive has missed so many membership records that it must be back before others return.
        LegFarBehind { drive: Option<String>, records: u64 } = NotReady @ "drive",
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
        /// It was being rebuilt, and may hold what its source has not got. `fault` is what became of that; None: it had
        /// been given up.
        LegAheadOfSource { source: String, fault: Option<DriveFault> },
        /// The operator put the leg out.
        LegOutByHand,
        /// The operator removed the leg.
        LegRemovedByHand,
        /// Another drive has taken the place of the leg.
        LegPlaceTaken { new: String },
        /// Everything is being copied to the leg.
        LegCopied,
        /// Everything is being copied to the leg; then it takes the place of another one.
        LegCopiedToReplace { old: String },
        /// What the leg missed is being copied to it.
        LegCatchesUp,
        /// The drive is smaller than its label says.
        DriveTooSmall { leg: String, path: String, bytes: u64, needed_bytes: u64, file: bool },
        /// What lies at the drive's path holds something else.
        DriveOverwritten { leg: String, path: String, holds: Signature },
        /// What lies at the drive's path has no label.
        DriveUnlabelled { leg: String, path: String },
        /// The label of the drive cannot be used.
        DriveLabelUnreadable { leg: String, path: String, fault: LabelFault },
        /// The drive is there, and cannot be read.
        DriveMute { leg: String, fault: DriveFault },
        /// The drive was used without the others.
        DriveApart { leg: String, path: String, pool: String },
        /// The drive lies elsewhere now.
        DriveMoved { uuid: String, path: String },
        /// Another drive of a pool lies at the drive's path.
        DriveExchanged { leg: String, pool: String },
        /// Nothing was found at the drive's path.
        DriveNotFound,
        /// Nothing was found at the drive's path, nor elsewhere.
        DriveNowhere { path: String },
        /// The drive could not be opened; `error` is what the machine says.
        DriveUnopened { error: String },
        /// The drive carries the label of another one.
        DriveLabelOfOther { pool: String },
        /// The drive's label says another place in the pool.
        DriveLabelElsewhere,
        /// The pool was let go of meanwhile.
        DrivePoolGone,
        /// The drive could not be cleared for the system of two heads.
        DriveNotCleared { fault: DriveFault },
        /// The drive's configuration could not be written.
        DriveConfigNotWritten { fault: DriveFault },
        /// The drive's label could not be written.
        DriveLabelNotWritten { fault: DriveFault },
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
        /// Writes fail for want of space: a thin volume whose pool is full, it seems.
        DriveThinPoolFull { drive: String },
        /// Operations failed, and nothing stands in for the drive.
        DriveOperationsFailed { drive: String, fault: DriveFault },
        /// The drive is labelled as one of a pool.
        DriveLabelled { drive: String, pool: String, uuid: String, unfinished: bool },
        /// The drive carries a label of a newer program.
        DriveLabelNewer { drive: String },
        /// The drive carries a damaged label.
        DriveLabelDamaged { drive: String },
        /// The drive holds something of somebody else.
        DriveHolds { drive: String, holds: Signature },
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
        /// Its reads take far longer than those of the other legs.
        LegSlow { pool: String } = Warning,
        /// It is as fast as the others again.
        LegFast { pool: String } = Note,
        /// It was slow, and is hardly read now.
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
        SpareBack { spare: String } = Note,
        /// A spare is well again.
        SpareWell { spare: String } = Note,
        /// A spare can stand in for nobody.
        SpareOfNoUse { spare: String, why: Box<Cause> } = Warning,
        /// The last leg in sync, which was gone, is back.
        LastLegBack { pool: String } = Note,
        /// A leg that was put out turned out to be smaller than it was.
        LegCutOff { bytes: u64, needed_bytes: u64 } = Error,
        /// A leg is written from now on, and copied to.
        LegJoined { pool: String, new: bool, full: bool } = Note,
        /// A leg is in sync.
        LegSynced { pool: String } = Note,
        /// A leg was put out.
        LegOut { pool: String, why: Box<Cause> } = Error,
        /// A leg leaves its pool.
        LegLeaves { pool: String, why: Box<Cause> } = Note,
        /// What may differ between the legs of a mirror is being compared.
        MirrorCompares { mirror: String, bytes: u64 } = Note,
        /// It was, and they are the same.
        MirrorCompared { mirror: String, bytes: u64, seconds: u64 } = Note,
        /// A loss can be put on record nowhere: volumes are not ready. `why` is what the last attempt met.
        LossNotRecorded { why: Option<Box<Cause>> } = Error,
        /// The loss is on record.
        LossRecorded = Note,
        /// The other head lost its path to the drive, and starts over without it.
        PathLostThere = Warning,
        /// This head lost its path to the drive, and the other one takes over.
        PathLostHere = Warning,
        /// Operations on a drive failed, and its mirror answered hosts.
        DriveErred { fault: DriveFault } = Warning,
        /// A drive is not well, and nothing stands in for it.
        DriveIll { why: Box<Cause> } = Error,
        /// A drive is well again.
        DriveWell = Note,
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

impl From<base::record::Fault> for LabelFault {
    fn from(fault: base::record::Fault) -> Self {
        match fault {
            base::record::Fault::Absent => LabelFault::Absent,
            base::record::Fault::Newer => LabelFault::Newer,
            base::record::Fault::Damaged => LabelFault::Damaged,
        }
    }
}
