//! What we write on drives about drives: label, membership record, configuration slots; and how a pool is
//! assembled from what is found. Drawn in docs/formats/.
//!
//! Pure: bytes in, records or verdicts out. A record is read only if its magic, version, checksum and
//! feature bits allow it; what cannot be read is said in `Fault`'s words.

mod assemble;
mod label;
mod membership;
mod slot;

pub use assemble::{
    ArrayVerdict, Assembly, Found, LegVerdict, Return, Side, Verdict, assemble, is_current, judge_return,
};
pub use label::{Label, newest_label};
pub use membership::{Incarnation, LegState, MemberLeg, MembershipRecord, RecordArray, newest_membership};
pub use slot::{ConfigSlot, config_bytes, newest_config};

use base::crc::crc32c_append;
use base::{Bug, planted};

/// Label, first copy, at this byte of the drive.
pub const LABEL_AT: u64 = 4096;
/// Membership slots at these bytes.
pub const MEMBERSHIP_AT: [u64; 2] = [8192, 12288];
/// Configuration slots at these bytes.
pub const CONFIG_AT: [u64; 2] = [1 << 20, 2 << 20];
/// Bytes of a configuration slot.
pub const CONFIG_BYTES: u64 = 1 << 20;
/// The first bitmap lies here.
pub const BITMAP_AT: u64 = 4 << 20;
/// Bytes of label and membership record.
pub const RECORD_BYTES: usize = 4096;
/// Smallest drive that is labelled, bytes.
pub const DRIVE_BYTES_MIN: u64 = 64 << 20;
/// Data begins and ends at multiples of this, bytes.
pub const ALIGNMENT: u64 = 1 << 20;
/// Most drives of a pool.
pub const DRIVES_MAX: usize = 128;
/// Most arrays of a pool.
pub const ARRAYS_MAX: usize = 128;
/// Most legs of a mirror, with one that takes another's place.
pub const RECORD_LEGS_MAX: usize = crate::geometry::PLACES_MAX;

/// Where the reserved end of a drive of this size begins; data must end before.
pub fn tail_at(drive_bytes: u64) -> u64 {
    (drive_bytes / ALIGNMENT).saturating_sub(1) * ALIGNMENT
}

/// Where the second copy of the label lies on a drive of this size.
pub fn label_copy_at(drive_bytes: u64) -> u64 {
    tail_at(drive_bytes) + ALIGNMENT - RECORD_BYTES as u64
}

/// Why a record cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// There is none: the magic is not there.
    Absent,
    /// It was written by a newer program, in a way that this one must not read.
    Newer,
    /// It is damaged: the checksum or a field is wrong.
    Damaged,
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Fault::Absent => "absent",
            Fault::Newer => "written by a newer version of millrace",
            Fault::Damaged => "damaged",
        })
    }
}

/// Feature bits (docs/formats/drive.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Others may ignore these.
    pub compat: u64,
    /// Others may look and not write.
    pub ro_compat: u64,
    /// Others must not even look.
    pub incompat: u64,
}

impl Features {
    /// What this program knows in every kind of record.
    pub const KNOWN: Features = Features { compat: 0, ro_compat: 0, incompat: 0 };
    /// Incompat, of labels: the drive is a hot spare and holds nothing of the pool (docs/formats/label.md).
    pub const SPARE: u64 = 1;
    /// Incompat, of configurations: the body goes on behind the exports (docs/formats/config.md).
    pub const EXTRAS: u64 = 1;
    /// Incompat, of configurations: drives take the places of others, or a mirror has another number of legs
    /// than 2 to 4.
    pub const LEGS: u64 = 2;
    /// Incompat, of configurations: a scrub under way was told the good drives of several mirrors.
    pub const PREFERS: u64 = 4;
    /// Incompat, of configurations: the extras end with caps of volumes.
    pub const CAPS: u64 = 16;
    /// Incompat, of configurations: the pool is being made, and holds nothing yet.
    pub const UNFINISHED: u64 = 32;
    /// Incompat, of configurations: the extras end with weights of volumes.
    pub const WEIGHTS: u64 = 64;
    /// Incompat, of configurations: something is uncleared (docs/formats/uncleared.md).
    pub const UNCLEARED: u64 = 128;
    /// Compat, of configurations: no free space holds anything but what is uncleared. Programs that know nothing of it drop it.
    pub const ACCOUNTED: u64 = 1;
    /// What this program knows in configurations.
    pub const CONFIG: u64 = Self::EXTRAS
        | Self::LEGS
        | Self::PREFERS
        | Self::CAPS
        | Self::UNFINISHED
        | Self::WEIGHTS
        | Self::UNCLEARED;
    /// Whether this program may write what carries these bits.
    pub fn writable(self) -> bool {
        self.ro_compat & !Self::KNOWN.ro_compat == 0
    }
    fn readable(self, known: u64) -> bool {
        self.incompat & !(Self::KNOWN.incompat | known) == 0
    }
}

const VERSION: u32 = 1;
const HEADER_BYTES: usize = 40;

/// The CRC32C of `bytes` with the four bytes of the checksum itself (at 12) taken as zero.
fn checksum(bytes: &[u8]) -> u32 {
    let crc = crc32c_append(0, &bytes[..12]);
    crc32c_append(crc32c_append(crc, &[0; 4]), &bytes[16..])
}

/// The common 40 bytes: magic, version, checksum (filled in later), features.
fn header(magic: &[u8; 8], features: Features) -> base::codec::Writer {
    let mut w = base::codec::Writer::default();
    w.bytes(magic).u32(VERSION).u32(0).u64(features.compat).u64(features.ro_compat).u64(features.incompat);
    w
}

/// Fills in the checksum.
fn seal(bytes: &mut [u8]) {
    let crc = checksum(bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// The common 40 bytes of a record, and what follows.
struct Opened<'a> {
    features: Features,
    crc: u32,
    newer: bool,
    rest: base::codec::Reader<'a>,
}

impl<'a> Opened<'a> {
    /// The fields, if the record has this checksum. One of a newer layout keeps its checksum here too: a bit
    /// that rotted in the version is damage, and does not make everybody wait for a newer program.
    fn checked(self, checksum: u32) -> Result<(Features, base::codec::Reader<'a>), Fault> {
        match (self.crc == checksum || planted(Bug::ChecksumIgnored), self.newer) {
            (false, _) => Err(Fault::Damaged),
            (true, true) => Err(Fault::Newer),
            (true, false) => Ok((self.features, self.rest)),
        }
    }
}

/// Looks at magic, version and features (`known` are incompat bits of this kind of record); the checksum is
/// the caller's, who knows the length.
fn open<'a>(magic: &[u8; 8], known: u64, bytes: &'a [u8]) -> Result<Opened<'a>, Fault> {
    let mut r = base::codec::Reader(bytes);
    if r.bytes(8).map_err(|_| Fault::Absent)? != magic {
        return Err(Fault::Absent);
    }
    let damaged = |_| Fault::Damaged;
    let version = r.u32().map_err(damaged)?;
    let crc = r.u32().map_err(damaged)?;
    let features = Features {
        compat: r.u64().map_err(damaged)?,
        ro_compat: r.u64().map_err(damaged)?,
        incompat: r.u64().map_err(damaged)?,
    };
    let newer = version > VERSION || version == VERSION && !features.readable(known);
    if version == 0 { Err(Fault::Damaged) } else { Ok(Opened { features, crc, newer, rest: r }) }
}
