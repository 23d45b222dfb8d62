//! The door between management (the API server, a test) and the Steward: plain data, both ways.
//!
//! `Address::Manager` mails an `Order` to the Steward with a number of its own; the Steward answers
//! each exactly once with an `Answered` and the same number. Orders that change something are carried
//! out one after the other, in the order of arrival; orders that only read are answered in between.
//! An order answered with `Ok` is durable. A refused order has changed nothing, unless its refusal says so.
//!
//! Sizes are bytes, weights and counts are plain numbers, times are seconds since 1970-01-01 UTC.

use crate::peer::{SystemSettings, SystemView};
use base::machine::Shape;
use base::view::{Moves, Protocol, Secret};
use base::{Instant, Uuid};
use core::net::SocketAddr;

mod figures;
mod snapshot;

pub use api::{ArraySpec, HostChecked, PoolScrub};
pub use figures::{Figures, TotalTimes, Worked};
pub use finding::{Cause, ErrorKind, Event, Notice, Refusal, Weight};
pub use snapshot::*;

/// What a manager wants.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    /// Make a pool of drives. Answered by `Created`. A first resync goes on in the background.
    PoolCreate {
        /// Name of the pool: see `volume::check_name`.
        name: String,
        /// Its arrays, at least one.
        arrays: Vec<ArraySpec>,
        /// Chunk of the stripe, a power of two from 16 KiB to 4 MiB; 64 KiB if None.
        chunk_bytes: Option<u32>,
        /// Block size of its volumes unless they say otherwise, 512 or 4096; 4096 if None.
        block_bytes: Option<u32>,
        /// Measure the weights of arrays that have none given (writes a few hundred MB to each drive).
        measure: bool,
        /// Use drives that carry something foreign or another pool's label, and mirrors that leave much of a drive unused.
        force: bool,
    },
    /// Append arrays to a pool, as a new zone.
    PoolAdd {
        /// The pool.
        pool: String,
        /// What to append.
        arrays: Vec<ArraySpec>,
        /// As in `PoolCreate`; even though they keep fewer copies than the pool's other arrays.
        force: bool,
    },
    /// Take the arrays that were added last from a pool, on which nothing lies. Answered by `Created` without an identity.
    ArrayRemove {
        /// The pool.
        pool: String,
        /// Their names, as `status` has them (`mirror-1`).
        arrays: Vec<String>,
    },
    /// Let go of a pool, so that another head may import it. Its volumes vanish from the hosts.
    PoolRelease {
        /// The pool.
        pool: String,
        /// Even though its drives cannot be marked as released, or what it holds ends by it.
        force: bool,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Take a pool found on drives. Answered by `Created` with its UUID.
    PoolImport {
        /// Name or UUID; None: the only one that could be imported.
        pool: Option<String>,
        /// The name that it has from now on; its own if None.
        name: Option<String>,
        /// Drives to look at beside this machine's candidates (files are found where they lay last, and where this says).
        drives: Vec<String>,
        /// Take it even if another head did not release it, or a leg cannot be proven current.
        force: bool,
    },
    /// Look for pools that could be imported. Answered by `Importable`.
    PoolImportable {
        /// Drives to look at beside this machine's candidates.
        drives: Vec<String>,
    },
    /// Wipe a pool's labels. Its volumes are lost.
    PoolDestroy {
        /// The pool.
        pool: String,
        /// Even though it has volumes.
        force: bool,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Make a volume. Answered by `Created`.
    VolumeCreate {
        /// The pool.
        pool: String,
        /// Name within the pool: see `volume::check_name`.
        name: String,
        /// Size; a multiple of the block size.
        bytes: u64,
        /// 512 or 4096; the pool's default if None.
        block_bytes: Option<u32>,
    },
    /// Grow a volume, or with `force` shrink it.
    VolumeResize {
        /// `pool/volume`.
        volume: String,
        /// New size.
        bytes: u64,
        /// Needed to shrink: what lies beyond is lost.
        force: bool,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Give a volume another name.
    VolumeRename {
        /// `pool/volume`.
        volume: String,
        /// New name within the pool.
        name: String,
    },
    /// Change what a volume may have.
    VolumeCaps {
        /// `pool/volume`.
        volume: String,
        /// What to change.
        caps: VolumeCaps,
    },
    /// Remove a volume.
    VolumeRemove {
        /// `pool/volume`.
        volume: String,
        /// Even though it is exported.
        force: bool,
        /// Even though hosts are connected that lose something by it, or it may hold data.
        disconnect: bool,
    },
    /// Make a host known.
    HostAdd {
        /// Short name: see `volume::check_name`.
        name: String,
        /// What is known of it.
        settings: HostSettings,
    },
    /// Change a host.
    HostSet {
        /// The host.
        name: String,
        /// What to change.
        settings: HostSettings,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Say whether a host has these secrets. Answered by `HostChecked`.
    HostCheck {
        /// The host.
        name: String,
        /// The secret that it must prove.
        chap_secret: Option<Secret>,
        /// The secret that we prove to it.
        mutual_secret: Option<Secret>,
    },
    /// Forget a host and its exports; its connections end.
    HostRemove {
        /// The host.
        name: String,
        /// Even though volumes are exported to it.
        force: bool,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Listen at an address.
    PortalAdd {
        /// What is spoken there.
        protocol: Protocol,
        /// The address.
        address: SocketAddr,
        /// It moves to the other head while its own is out.
        moves: Option<Moves>,
        /// Which head has it; None: the one that leads.
        head: Option<u8>,
    },
    /// Listen there no more; connections end.
    PortalRemove {
        /// What is spoken there.
        protocol: Protocol,
        /// The address.
        address: SocketAddr,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Give a volume to a host.
    Export {
        /// `pool/volume`.
        volume: String,
        /// The host.
        host: String,
        /// Logical unit number for iSCSI; the lowest free one if None.
        lun: Option<u16>,
    },
    /// Take a volume from a host.
    Unexport {
        /// `pool/volume`.
        volume: String,
        /// The host.
        host: String,
        /// Even though hosts are connected that lose something by it.
        disconnect: bool,
    },
    /// Our drives and this machine's candidates. Answered by `Drives`.
    DriveList {
        /// Further drives to look at.
        drives: Vec<String>,
    },
    /// Take a drive out of its mirror now.
    DriveFail {
        /// Its path, or its UUID.
        drive: String,
        /// Even though only files without a name are left in sync, which are gone once the daemon stops.
        force: bool,
    },
    /// Take a drive back into its mirror: partial resync by bitmap where it can be proven safe.
    DriveReturn {
        /// Its path, or its UUID.
        drive: String,
    },
    /// Write the label of a leg in sync anew, and all else that the head keeps on its drive, from what the head knows.
    LabelRestore {
        /// Its path, or its UUID.
        drive: String,
        /// Even though data of the drive may be damaged, too.
        yes: bool,
        /// Even though something else was written there.
        force: bool,
    },
    /// Put another drive in a leg's place: full resync. A leg in sync serves until that is over.
    DriveReplace {
        /// The leg's drive: path or UUID.
        old: String,
        /// The new drive's path.
        new: String,
        /// As in `PoolCreate`.
        force: bool,
    },
    /// Make a drive behave artificially. Not kept over a restart.
    DriveShape {
        /// Its path, or its UUID.
        drive: String,
        /// From now on; `Shape::default()` ends it.
        shape: Shape,
    },
    /// A drive that will take the place of a leg that fails.
    SpareAdd {
        /// The pool.
        pool: String,
        /// Its path.
        drive: String,
        /// As in `PoolCreate`.
        force: bool,
    },
    /// Take a drive from its pool: a spare, or a leg of a mirror.
    DriveRemove {
        /// Its path, or its UUID.
        drive: String,
        /// Even though a mirror is left without redundancy.
        force: bool,
    },
    /// Add a leg to a mirror: full resync.
    LegAdd {
        /// The pool.
        pool: String,
        /// The mirror, as `status` names it (`mirror-0`); may be None where there is one only.
        mirror: Option<String>,
        /// The new drive's path.
        drive: String,
        /// As in `PoolCreate`.
        force: bool,
    },
    /// The Steward's own: drives that were replaced leave the pool.
    Replaced {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// The Steward's own: an absent pool is imported if all its drives are back.
    PoolReturn {
        /// The pool.
        pool: base::Uuid,
    },
    /// The Steward's own: files of the state directory that were removed or damaged are written again.
    StateRestore {
        /// Their names.
        files: Vec<String>,
    },
    /// The Steward's own: legs that were gone or silent are tried again.
    LegReturn {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// The Steward's own: legs that are out for good are listed in the configuration.
    LegFailed {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// The Steward's own: copies of labels that were overwritten are written again.
    LabelsMend {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// The Steward's own: a spare takes the place of a leg that is out.
    SpareUse {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// Compare the legs of a pool's mirrors.
    PoolScrub {
        /// The pool.
        pool: String,
        /// What to do.
        action: PoolScrub,
    },
    /// The Steward's own: what a scrub has come to is written down, or one that is due begins.
    ScrubKeep {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// The Steward's own: returned space that the arrays have marked is free.
    SpaceMarked {
        /// The pool.
        pool: crate::layout::PoolId,
    },
    /// The Steward's own: lanes are dealt anew where other shards should have them.
    LanesDeal,
    /// Of the Steward's own: shards of the other head take part from now on, and pools become known to them.
    FarJoins,
    /// Lanes go round by one shard, of every array: for tests.
    LanesTurn,
    /// The whole status. Answered by `Snapshot`.
    Status,
    /// What was done so far, of a head that leads or is alone. Answered by `Figures`; it costs far less than `Status`.
    Figures,
    /// Events since a number. Answered by `Events`.
    Events {
        /// First number wanted; 0 for all that are kept.
        since: u64,
    },
    /// The daemon's own: something happened at the API. Taken by a head that does not lead, too.
    Happened {
        /// What.
        event: Box<finding::SystemEvent>,
    },
    /// This head becomes head a of a system, alone in it until another one joins.
    SystemCreate {
        /// Of what; `system` is new, so that nobody takes what is left of a former one for it. Answered by `Created`.
        settings: Box<SystemSettings>,
    },
    /// What the system is, from this head's view. Answered by `System`.
    System,
    /// This head leads, although the other one alone has the latest hosts and portals.
    HeadLead,
    /// Puts the other head out, and has every drive fence it.
    HeadFence {
        /// An operator says that it is switched off: drives that cannot confirm are believed to be left alone.
        off: bool,
    },
    /// The other head leaves the system: it is put out, and removed from the record once every drive has fenced it.
    HeadRelease {
        /// That head says so itself: it is answered at once, since it is not there any more when that is done. Else it must be out.
        itself: bool,
    },
    /// The one head that is left goes back to be alone: its pools are no system's any more, and no drive has its key. The daemon then
    /// starts anew.
    SystemLeave,
    /// Stop in order: volumes stop, everything is made durable, drives are marked clean and let go.
    Shutdown,
}

/// What an order needs before it may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing: it only looks at what is there.
    Nothing,
    /// That no order before it goes on still. It decides nothing that the state directory must take: it changes what lies on the
    /// pools' drives alone (volumes and exports), carries on something of the head's own, or helps a head whose directory takes
    /// nothing.
    ItsTurn,
    /// A state directory that can be written, too.
    StateDirectory,
}

impl Order {
    /// What it needs.
    pub fn needs(&self) -> Needs {
        match self {
            Self::PoolImportable { .. } | Self::DriveList { .. } | Self::HostCheck { .. } => Needs::Nothing,
            Self::Status | Self::Figures | Self::Events { .. } | Self::System => Needs::Nothing,
            Self::Happened { .. } | Self::DriveShape { .. } | Self::StateRestore { .. } => Needs::ItsTurn,
            Self::Replaced { .. } | Self::PoolReturn { .. } => Needs::ItsTurn,
            Self::LegReturn { .. } | Self::LegFailed { .. } | Self::LabelsMend { .. } => Needs::ItsTurn,
            Self::ScrubKeep { .. } | Self::SpaceMarked { .. } | Self::PoolScrub { .. } => Needs::ItsTurn,
            Self::VolumeCreate { .. } | Self::VolumeResize { .. } | Self::VolumeRename { .. } => {
                Needs::ItsTurn
            }
            Self::VolumeCaps { .. } | Self::VolumeRemove { .. } => Needs::ItsTurn,
            Self::Export { .. } | Self::Unexport { .. } => Needs::ItsTurn,
            Self::LanesDeal | Self::FarJoins | Self::LanesTurn => Needs::ItsTurn,
            Self::HeadLead | Self::HeadFence { .. } | Self::HeadRelease { .. } => Needs::ItsTurn,
            Self::SystemLeave | Self::Shutdown => Needs::ItsTurn,
            Self::PoolCreate { .. } | Self::PoolAdd { .. } | Self::ArrayRemove { .. } => {
                Needs::StateDirectory
            }
            Self::PoolRelease { .. } | Self::PoolImport { .. } => Needs::StateDirectory,
            Self::PoolDestroy { .. } | Self::SystemCreate { .. } => Needs::StateDirectory,
            Self::HostAdd { .. } | Self::HostSet { .. } | Self::HostRemove { .. } => Needs::StateDirectory,
            Self::PortalAdd { .. } | Self::PortalRemove { .. } => Needs::StateDirectory,
            Self::DriveFail { .. } | Self::DriveReturn { .. } => Needs::StateDirectory,
            Self::DriveReplace { .. } | Self::SpareAdd { .. } | Self::SpareUse { .. } => {
                Needs::StateDirectory
            }
            Self::DriveRemove { .. } | Self::LegAdd { .. } | Self::LabelRestore { .. } => {
                Needs::StateDirectory
            }
        }
    }

    /// The command that gives it, or a name in the same form for what the head asks of itself.
    pub fn command(&self) -> &'static str {
        match self {
            Self::PoolCreate { .. } => "pool create",
            Self::PoolAdd { .. } => "pool add",
            Self::ArrayRemove { .. } => "pool rm",
            Self::PoolRelease { .. } => "pool release",
            Self::PoolImport { .. } | Self::PoolImportable { .. } | Self::PoolReturn { .. } => "pool import",
            Self::PoolDestroy { .. } => "pool destroy",
            Self::PoolScrub { .. } | Self::ScrubKeep { .. } => "pool scrub",
            Self::VolumeCreate { .. } => "volume create",
            Self::VolumeResize { .. } => "volume resize",
            Self::VolumeRename { .. } => "volume rename",
            Self::VolumeCaps { .. } => "volume set",
            Self::VolumeRemove { .. } | Self::SpaceMarked { .. } => "volume rm",
            Self::HostAdd { .. } => "host add",
            Self::HostSet { .. } => "host set",
            Self::HostCheck { .. } => "host check",
            Self::HostRemove { .. } => "host rm",
            Self::PortalAdd { .. } => "portal add",
            Self::PortalRemove { .. } => "portal rm",
            Self::Export { .. } => "export",
            Self::Unexport { .. } => "unexport",
            Self::DriveList { .. } => "drive ls",
            Self::DriveFail { .. } | Self::LegFailed { .. } => "drive fail",
            Self::DriveReturn { .. } | Self::LegReturn { .. } => "drive return",
            Self::DriveReplace { .. } | Self::Replaced { .. } | Self::SpareUse { .. } => "drive replace",
            Self::DriveShape { .. } => "drive shape",
            Self::LabelRestore { .. } | Self::LabelsMend { .. } => "drive restore-label",
            Self::SpareAdd { .. } | Self::LegAdd { .. } => "pool add",
            Self::DriveRemove { .. } => "drive rm",
            Self::StateRestore { .. } => "state restore",
            Self::LanesDeal | Self::LanesTurn => "lanes deal",
            Self::FarJoins => "head join",
            Self::Status | Self::Happened { .. } => "status",
            Self::Figures => "top",
            Self::Events { .. } => "events",
            Self::SystemCreate { .. } => "system create",
            Self::System | Self::HeadLead => "head ls",
            Self::HeadFence { .. } => "head fence",
            Self::HeadRelease { .. } => "head release",
            Self::SystemLeave => "system leave",
            Self::Shutdown => "stop",
        }
    }
}

/// What a volume may have. None leaves it as it is, 0 takes a cap away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VolumeCaps {
    /// Commands a second.
    pub iops_max: Option<u32>,
    /// Megabytes (10^6 bytes) of data a second.
    pub mbps_max: Option<u32>,
    /// Its share of what drives do, when volumes compete (`volume::WEIGHTS`).
    pub weight: Option<u16>,
}

/// What may be said of a host. `None` leaves a thing as it is (in `HostAdd`: absent).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSettings {
    /// All its NVMe qualified names.
    pub nqns: Option<Vec<String>>,
    /// All its iSCSI names.
    pub iqns: Option<Vec<String>>,
    /// The secret that it must prove; `Some(None)` removes it.
    pub chap_secret: Option<Option<Secret>>,
    /// CHAP user name; empty for its IQN.
    pub chap_user: Option<String>,
    /// The secret that we prove to it; `Some(None)` removes it. Needs a `chap_secret`.
    pub mutual_secret: Option<Option<Secret>>,
}

/// The answer to an order.
pub type Answered = Result<Reply, Refusal>;

/// How an order went well.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// Done.
    Done,
    /// Done, and something new exists.
    Created {
        /// Its identity.
        uuid: Uuid,
        /// Worth knowing; empty if nothing is.
        notices: Vec<Notice>,
    },
    /// To `Status`.
    Snapshot(Box<Status>),
    /// To `DriveList`.
    Drives(Vec<Drive>),
    /// To `PoolImportable`.
    Importable(Vec<Importable>),
    /// To `HostCheck`.
    HostChecked(HostChecked),
    /// To `System`.
    System(Box<SystemView>),
    /// To `Figures`.
    Figures(Box<Figures>),
    /// To `Events`, oldest first.
    Events(Vec<api::Event>),
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventLine {
    /// Grows by one with each event, for life of the state directory.
    pub number: u64,
    /// Seconds since 1970-01-01 UTC.
    pub at: u64,
    /// When by the clock that nobody sets and that begins with the machine's start; None in lines of older programs.
    pub monotonic: Option<Instant>,
    /// How weighty.
    pub weight: Weight,
    /// What it is about: `pool tank`, `drive /dev/sdb`, `host esx1`.
    pub what: String,
    /// What happened.
    pub event: Event,
}

impl EventLine {
    /// As it is answered. The daemon adds the sentence.
    pub fn answered(&self) -> api::Event {
        api::Event {
            number: self.number,
            at: Time(self.at),
            monotonic_ms: self.monotonic.map(|at| at.0 / 1_000_000),
            weight: self.weight,
            head: None,
            what: self.what.clone(),
            event: self.event.clone(),
            message: String::new(),
        }
    }
}
