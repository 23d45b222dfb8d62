//! What we write on drives about drives: label, membership record, configuration slots; and how a pool is
//! assembled from what is found. Drawn in docs/formats/.
//!
//! Pure: bytes in, records or verdicts out. A record is read only if its magic, version, checksum and
//! feature bits allow it; otherwise a `Fault` says why it cannot be read.

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

pub use base::record::{Fault, Features, Newer};

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

/// Feature bits of our records (docs/formats/drive.md).
pub mod feature {
    /// Incompat, of labels: the drive is a hot spare and holds nothing of the pool (docs/formats/label.md).
    pub const SPARE: u64 = 1;
    /// Incompat, of configurations: the body goes on behind the exports (docs/formats/config.md).
    pub const EXTRAS: u64 = 1;
    /// Incompat, of configurations: drives take the places of others, or a mirror has another number of legs
    /// than 2 to 4.
    pub const LEGS: u64 = 2;
    /// Incompat, of configurations: a scrub under way knows the good drives of several mirrors.
    pub const PREFERS: u64 = 4;
    /// Incompat, of configurations: the extras end with rate limits of volumes.
    pub const CAPS: u64 = 16;
    /// Incompat, of configurations: the pool is being made, and holds nothing yet.
    pub const UNFINISHED: u64 = 32;
    /// Incompat, of configurations: the extras end with weights of volumes.
    pub const WEIGHTS: u64 = 64;
    /// Incompat, of configurations: something is uncleared (docs/formats/uncleared.md).
    pub const UNCLEARED: u64 = 128;
    /// Incompat, of configurations: two heads share the drives, and decide which may write (docs/rfcs/0007-cluster.md).
    pub const SHARED: u64 = 256;
    /// Incompat, of configurations: the extras end with drives that failed (docs/formats/config.md).
    pub const FAILED: u64 = 512;
    /// Compat, of configurations: no free space holds anything but what is uncleared. Programs that know nothing of it drop it.
    pub const ACCOUNTED: u64 = 1;
    /// What this program knows in configurations.
    pub const CONFIG: u64 =
        EXTRAS | LEGS | PREFERS | CAPS | UNFINISHED | WEIGHTS | UNCLEARED | SHARED | FAILED;
}
