//! Everything that can happen to the state, as plain data: docs/formats/changes.md.

use super::codec::{Coded, coded_enum};
use super::config::{ArrayRow, LegRow, PoolConfig};
use super::extras::{FailedRow, Replacement, ScrubRow, SpareRow};
use super::{Identity, List, PoolRow};
use access::{Grant, Host};
use array::format::MembershipRecord;
use base::codec::{Malformed, Reader, Writer};
use base::view::Portal;
use base::{PortalId, Uuid};
use pool::StripeMap;
use std::sync::Arc;
use volume::{Caps, Run, Volume};

/// The version of the encoding that this program writes. It reads that and the one before.
pub const VERSION: u16 = 1;

coded_enum! {
    /// One change of the state.
    pub enum Change {
        /// The head has these names.
        1 Identified {
            /// Its names.
            identity: Identity,
        },
        /// A host is new, or another than it was.
        2 HostPut {
            /// The whole host, with its secrets.
            host: Host,
        },
        /// A host is forgotten.
        3 HostRemoved {
            /// Its name.
            name: String,
        },
        /// The head listens there.
        4 PortalPut {
            /// Where, and under which number.
            portal: Portal,
        },
        /// It listens there no more.
        5 PortalRemoved {
            /// The portal's number.
            id: PortalId,
        },
        /// A pool is on one of the lists of the state directory.
        6 Listed {
            /// Which one.
            list: List,
            /// The pool, and where its drives lie.
            row: PoolRow,
        },
        /// It is not on that list any more.
        7 Unlisted {
            /// Which one.
            list: List,
            /// The pool.
            pool: Uuid,
        },
        /// A pool of this head is here: it was made, or imported.
        8 PoolCame {
            /// What it is.
            config: PoolConfig,
            /// Generation of that configuration.
            generation: u64,
            /// Who is a member.
            record: MembershipRecord,
        },
        /// A pool is not here any more: it was released, destroyed, or closed by a stop.
        9 PoolLeft {
            /// The pool.
            pool: Uuid,
        },
        /// A pool's configuration has another generation.
        10 Configured {
            /// The pool.
            pool: Uuid,
            /// The new generation.
            generation: u64,
            /// What is different, in this order.
            edits: Vec<Edit>,
        },
        /// A leg or a spare has another path. It is written with the next configuration.
        11 DriveMoved {
            /// The pool.
            pool: Uuid,
            /// The drive.
            drive: Uuid,
            /// Where it lies now.
            path: String,
        },
        /// Another membership record is in force, or the same is known to be everywhere.
        12 Member {
            /// The record; it names its pool.
            record: MembershipRecord,
        },
        /// A pool that this head has is not here; hosts are told what is known of it.
        13 PoolAway {
            /// The pool, and where its drives lay.
            row: PoolRow,
            /// Generation of the configuration that is known of it; 0 if none is.
            generation: u64,
            /// That configuration.
            config: Option<PoolConfig>,
        },
        /// A pool that was away is here, is forgotten, or another head has it.
        14 AwayEnded {
            /// The pool.
            pool: Uuid,
        },
        /// This number was given to a portal last; the portal may be gone.
        15 PortalsCounted {
            /// From 1.
            last: u16,
        },
    }
}

coded_enum! {
    /// What is different in a pool's configuration.
    pub enum Edit {
        /// The pool has another name.
        1 Renamed {
            /// Its name.
            name: String,
        },
        /// A head has it; nil: it is released.
        2 Held {
            /// That head.
            holder: Uuid,
        },
        /// The largest of its drives' smallest writes.
        3 DriveBlock {
            /// Bytes.
            bytes: u32,
        },
        /// A volume is new, or has another name, size or place.
        4 VolumePut {
            /// The volume with its map.
            volume: Volume,
        },
        /// A volume is gone, with its number, exports, caps and weight.
        5 VolumeRemoved {
            /// The volume.
            volume: Uuid,
        },
        /// A volume has this namespace id.
        6 Numbered {
            /// The volume.
            volume: Uuid,
            /// Its NSID (NVMe Base 3.2.1.3), the same for every host.
            nsid: u32,
        },
        /// A volume is exported to a host; an export to a host of one of these names gives way.
        7 Exported {
            /// The volume.
            volume: Uuid,
            /// The host's names, and its LUN.
            grant: Grant,
        },
        /// It is exported to nobody of these names any more.
        8 Unexported {
            /// The volume.
            volume: Uuid,
            /// The host's names; the LUN does not matter.
            grant: Grant,
        },
        /// A volume's caps; none: it has none.
        9 Capped {
            /// The volume.
            volume: Uuid,
            /// What its hosts may start in a second.
            caps: Caps,
        },
        /// A volume's weight.
        10 Weighed {
            /// The volume.
            volume: Uuid,
            /// 1 to 1000.
            weight: u16,
        },
        /// Its scrubs: schedule, the last one, the one under way.
        11 Scrubbed {
            /// All of that.
            scrub: ScrubRow,
        },
        /// Volumes have given back these runs: they are nobody's, and not free.
        12 SpaceReturned {
            /// The runs, granules.
            runs: Vec<Run>,
        },
        /// Of what was returned this is free: every array has marked it.
        13 SpaceFreed {
            /// The runs, granules.
            runs: Vec<Run>,
        },
        /// The arrays have uncleared maps from now on.
        14 MapsBegun {},
        /// Nothing is uncleared any more.
        15 MapsEnded {},
        /// All free space is returned: an older program, which left it, said nothing of what it holds.
        16 AllReturned {},
        /// Arrays are part of it.
        17 ArraysAdded {
            /// The new ones, behind those that are there.
            rows: Vec<ArrayRow>,
            /// The stripe over all of them.
            map: Arc<StripeMap>,
        },
        /// Arrays are no part of it any more.
        18 ArraysRemoved {
            /// The first that goes; those behind it go, too.
            first: u32,
            /// The stripe over those that stay.
            map: Arc<StripeMap>,
        },
        /// A drive is a leg.
        19 LegPut {
            /// The array.
            array: u32,
            /// Its place; that of the last and one more: beside the others.
            leg: u32,
            /// The drive.
            row: LegRow,
        },
        /// A leg is none any more; those behind it move up.
        20 LegRemoved {
            /// The array.
            array: u32,
            /// Its place.
            leg: u32,
        },
        /// A drive is a hot spare, the last one.
        21 SparePut {
            /// The drive.
            row: SpareRow,
        },
        /// It is none any more.
        22 SpareRemoved {
            /// The drive.
            drive: Uuid,
        },
        /// A drive takes another's place.
        23 ReplacementPut {
            /// Which one whose.
            row: Replacement,
        },
        /// That is over.
        24 ReplacementRemoved {
            /// The drive that leaves, or has left.
            old: Uuid,
        },
        /// Two heads share its drives, and no others take it; nil: none do any more.
        25 Shared {
            /// The system of the two.
            system: Uuid,
        },
        /// A drive has failed, and stays so until somebody returns it; or something else is known of one that has.
        26 FailedPut {
            /// All that is known.
            row: FailedRow,
        },
        /// A drive that had failed is used again, or is forgotten.
        27 FailedRemoved {
            /// The drive.
            drive: Uuid,
        },
    }
}

impl Change {
    /// The pool that it is about.
    pub fn pool(&self) -> Option<Uuid> {
        match self {
            Self::PoolCame { config, .. } => Some(config.uuid),
            Self::Member { record } => Some(record.pool),
            Self::PoolLeft { pool }
            | Self::Configured { pool, .. }
            | Self::DriveMoved { pool, .. }
            | Self::AwayEnded { pool } => Some(*pool),
            Self::PoolAway { row, .. } => Some(row.uuid),
            Self::Identified { .. }
            | Self::HostPut { .. }
            | Self::HostRemoved { .. }
            | Self::PortalPut { .. }
            | Self::PortalRemoved { .. }
            | Self::PortalsCounted { .. }
            | Self::Listed { .. }
            | Self::Unlisted { .. } => None,
        }
    }
    /// The bytes: version, number, the change.
    pub fn encode(&self, number: u64) -> Vec<u8> {
        let mut w = Writer::default();
        w.u16(VERSION).u64(number);
        self.put(&mut w);
        w.0
    }
    /// Reads what `encode` wrote.
    ///
    /// # Errors
    /// It is of another version, of an unknown kind, cut off, or longer than its fields.
    pub fn decode(bytes: &[u8]) -> Result<(u64, Self), Malformed> {
        let mut r = Reader(bytes);
        if r.u16()? != VERSION {
            return Err(Malformed);
        }
        let (number, change) = (r.u64()?, Self::get(&mut r)?);
        if r.0.is_empty() { Ok((number, change)) } else { Err(Malformed) }
    }
}
