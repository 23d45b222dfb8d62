//! Findings that `status` puts together: what is not optimal about pools, mirrors, spares and portals.

use crate::{Cause, NetFault, SpareUnfit};

findings! {
    /// Why something is not optimal, as `status` shows it.
    pub enum StatusCause {
        /// A leg is not in sync, or something is wrong with its drive.
        LegNotOptimal {
            leg: String,
            mirror: String,
            why: Option<Box<Cause>>,
            /// Why no spare takes its place; empty if one does, or none is needed.
            no_spare_fits: Vec<SpareUnfit>,
            help: Option<WayBack>,
        },
        /// A mirror has only one leg.
        MirrorOneLeg { pool: String, mirror: String, leg: String },
        /// The legs of a mirror are being compared and made the same.
        MirrorComparing { mirror: String },
        /// Blocks could not be read from any leg.
        BlocksUnreadable { array: String, pieces: u64 },
        /// A spare is shaped to be away.
        SpareShapedAway { spare: String, why: Option<Box<Cause>> },
        /// A spare cannot be read.
        SpareUnreadable { spare: String, why: Box<Cause> },
        /// Another drive lies where a spare was.
        SpareElsewhere { spare: String, why: Box<Cause> },
        /// What lies where a spare was is no spare.
        SpareOverwritten { spare: String, pool: String, why: Box<Cause> },
        /// A spare is not there.
        SpareMissing { spare: String, pool: String },
        /// The drive of a spare is not healthy.
        SpareUnhealthy { spare: String, why: Box<Cause> },
        /// A spare fits no mirror of its pool.
        SpareFitsNone { spare: String, pool: String, why: SpareUnfit },
        /// A spare took the place of a drive, and no spare is left: the next drive that fails is not replaced.
        NoSpareLeft { pool: String, spare: String, old: String, seconds: u64 },
        /// The last scrub found bytes in which legs differ, and did not repair them.
        ScrubDiffered {
            pool: String,
            bytes: u64,
            /// Another scrub is under way.
            running: bool,
        },
        /// The volumes of a pool are not ready, as a loss cannot be put on record.
        LossNotOnRecord { why: Box<Cause> },
        /// Records of a pool cannot be written.
        PoolNotRecorded { why: Box<Cause> },
        /// A loss of the pool cannot be put on record.
        PoolLossNotOnRecord,
        /// An array of the pool is not optimal.
        ArrayNotOptimal { array: String, why: Option<Box<Cause>> },
        /// No leg of the array is in sync.
        ArrayWithoutLegs,
        /// A leg of the array is not optimal.
        LegOfArray { leg: String, why: Option<Box<Cause>> },
        /// The legs of the array are being compared and made the same.
        ArrayComparing,
        /// The mirror has no other leg.
        ArrayOneLeg { leg: String },
        /// A portal does not listen.
        PortalClosed {
            protocol: String,
            address: String,
            /// The head at which it should, if that is the other one.
            head: Option<String>,
            fault: Option<NetFault>,
            why: Option<Box<Cause>>,
        },
        /// The head cannot listen at the address.
        PortalFault { fault: NetFault },
        /// The portal is closed, as the head is being stopped.
        PortalStopping,
        /// The portal stays closed until the pools are imported.
        PortalHeld,
        /// The portal is being opened.
        PortalOpening,
    }
}

findings! {
    /// What brings a leg back.
    pub enum WayBack {
        /// What the cause says.
        AsTheCauseSays,
        /// What was found in its place says it.
        AsFound { why: Box<Cause> },
        /// A return, or its removal: another drive takes its place as soon as it is in sync.
        ReturnOrRemove { leg: String, shaped: bool },
        /// Its shape is cleared, then it returns.
        ClearShape { leg: String },
        /// Space in the file system below it.
        FreeFileSystem { leg: String },
        /// Its own space again.
        RestoreSpace { leg: String },
        /// It is attached again.
        Attach { leg: String },
        /// A return, or another drive.
        Return { leg: String },
    }
}

findings! {
    /// What `status` notes.
    pub enum StatusNotice {
        /// A spare took the place of a drive, some time ago.
        SpareStandsIn { pool: String, spare: String, old: String, seconds: u64, spares_left: u64 },
    }
}
