//! Findings about drives, drives, legs and spares and spares.

use crate::Cause;

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
    }
}

findings! {
    /// Why something about drives, legs and spares is not optimal.
    pub enum LegCause {}
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
        /// Something ails the drive.
        DriveIll { why: Box<Cause> } = Error,
        /// Nothing ails the drive any more.
        DriveWell = Note,
    }
}

findings! {
    /// What is worth knowing of drives, legs and spares.
    pub enum LegNotice {}
}
