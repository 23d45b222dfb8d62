//! Drives.

use crate::{Cause, Counters, State, Times};
use base::Uuid;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A drive: one of ours, a missing one, or a candidate.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Drive {
    /// Path or specification; empty for a missing one whose path is not known.
    pub path: String,
    /// Identity by our label.
    #[serde(with = "crate::text::option")]
    #[schema(value_type = Option<String>)]
    pub uuid: Option<Uuid>,
    /// `block`, `file`, `ram`, `null`; empty for a missing one.
    pub kind: String,
    /// Model, empty if unknown.
    pub model: String,
    /// Serial number, empty if unknown.
    pub serial: String,
    /// Size, 0 if unknown.
    pub bytes: u64,
    /// Smallest write.
    pub block_bytes: u32,
    /// It may lose completed writes without a flush.
    pub volatile_cache: bool,
    /// Name of its pool.
    pub pool: Option<String>,
    /// What it is to us.
    pub role: DriveRole,
    /// Its state as a leg or spare; none for what is no drive of ours.
    pub state: Option<State>,
    /// Why, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why; empty if all is well.
    pub reason: String,
    /// Its reads take far longer than those of the mirror's other legs, which serve most of them.
    #[serde(default)]
    pub slow: bool,
    /// Operations that failed or were late, since the start.
    pub errors: u64,
    /// What was done to it, since the start.
    pub counters: Counters,
    /// How long its reads take; absent if none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_times: Option<Times>,
    /// How long its writes take; absent if none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_times: Option<Times>,
    /// How it says it is; absent if it does not say, as all but NVMe drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<DriveHealth>,
    /// Its artificial behaviour, if any.
    pub shape: Option<Shape>,
}

impl Drive {
    /// What was seen of the drive itself.
    pub fn is_seen(&mut self, info: &base::DriveInfo) {
        self.path.clone_from(&info.path);
        self.kind = info.kind.word().into();
        self.model.clone_from(&info.model);
        self.serial.clone_from(&info.serial);
        self.bytes = info.bytes;
        self.block_bytes = info.block_bytes;
        self.volatile_cache = info.volatile_cache;
    }
}

/// How a drive says it is: it is asked once a minute.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DriveHealth {
    /// How warm it is, degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub celsius: Option<f32>,
    /// Part of its rated life that is used, percent: 100 and more when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u8>,
    /// Spare blocks that are left, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_percent: Option<u8>,
    /// Data that it could not read or keep whole, times, in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
    /// Seconds in which it made itself slower because of heat, in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_seconds: Option<u64>,
    /// Hours with power, in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<u64>,
    /// It warns of something: `millrace topology` says of what.
    #[serde(default)]
    pub warns: bool,
}

/// Switches the light at a drive's bay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveLocate {
    /// On, or off.
    pub on: bool,
}

/// What a drive is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriveRole {
    /// A leg of a pool of ours.
    Leg,
    /// A leg of a pool of ours that is not there.
    Missing,
    /// A hot spare of a pool of ours.
    Spare,
    /// It failed in a pool of ours, and another drive has its place.
    #[serde(rename = "removed-failed")]
    RemovedFailed,
    /// Nobody's.
    #[default]
    Free,
    /// Carries something foreign.
    Foreign,
    /// Carries a label of a pool that is not imported.
    Labelled,
    /// Could not be opened.
    Unusable,
}

impl DriveRole {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            DriveRole::Leg => "leg",
            DriveRole::Missing => "missing",
            DriveRole::Spare => "spare",
            DriveRole::RemovedFailed => "removed-failed",
            DriveRole::Free => "free",
            DriveRole::Foreign => "foreign",
            DriveRole::Labelled => "labelled",
            DriveRole::Unusable => "unusable",
        }
    }
}

/// Artificial behaviour of a drive; everything is off by default.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shape {
    /// Added to every operation, microseconds.
    pub latency_us: u32,
    /// Upper limit of operations a second, 0 for none.
    pub iops_max: u32,
    /// Upper limit of MB (10^6 bytes) a second, 0 for none.
    pub mbps_max: u32,
    /// Reads that fail, per million.
    pub read_errors_ppm: u32,
    /// Writes that fail, per million.
    pub write_errors_ppm: u32,
    /// Operations are taken and not answered.
    pub hang: bool,
    /// The drive is gone.
    pub gone: bool,
    /// A link that this drive shares with all that name the same number, 0 for none.
    pub uplink: u32,
    /// MB (10^6 bytes) a second of that link in each direction.
    pub uplink_mbps: u32,
    /// This drive's part of the link when it is full, beside the parts of the others; 0 counts as 1.
    pub uplink_share: u32,
}

/// Put another drive in a leg's place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveReplace {
    /// The new drive's path.
    pub new: String,
    /// Use it even if it carries something foreign.
    #[serde(default)]
    pub force: bool,
}

impl From<&base::machine::Shape> for Shape {
    fn from(s: &base::machine::Shape) -> Self {
        Self {
            latency_us: s.latency_us,
            iops_max: s.iops_max,
            mbps_max: s.mbps_max,
            read_errors_ppm: s.read_errors_ppm,
            write_errors_ppm: s.write_errors_ppm,
            hang: s.hang,
            gone: s.gone,
            uplink: s.uplink,
            uplink_mbps: s.uplink_mbps,
            uplink_share: s.uplink_share,
        }
    }
}

impl From<&Shape> for base::machine::Shape {
    fn from(s: &Shape) -> Self {
        Self {
            latency_us: s.latency_us,
            iops_max: s.iops_max,
            mbps_max: s.mbps_max,
            read_errors_ppm: s.read_errors_ppm,
            write_errors_ppm: s.write_errors_ppm,
            hang: s.hang,
            gone: s.gone,
            uplink: s.uplink,
            uplink_mbps: s.uplink_mbps,
            uplink_share: s.uplink_share,
        }
    }
}
