//! Volumes and their exports.

use crate::{Counters, Stages, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A volume: a block device carved out of a pool.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    /// `pool/volume`.
    pub name: String,
    /// Identity.
    pub uuid: String,
    /// NVMe identity, 32 hexadecimal digits.
    pub nguid: String,
    /// SCSI identity: `naa.` and 16 hexadecimal digits (type 3, locally assigned) or 32 (type 6, of an OUI).
    pub naa: String,
    /// NVMe namespace id.
    pub nsid: u32,
    /// Size.
    pub bytes: u64,
    /// Block size.
    pub block_bytes: u32,
    /// Its pool's state.
    pub state: State,
    /// Runs of pool space that it consists of.
    pub runs: u32,
    /// Space of the pool that it takes: its size, up to a multiple of 4 MiB.
    #[serde(default)]
    pub space_bytes: u64,
    /// To whom it is given.
    pub exports: Vec<Exported>,
    /// Commands that its hosts may start in a second; 0 for no cap.
    #[serde(default)]
    pub iops_max: u32,
    /// Megabytes (10^6 bytes) that they may move in a second; 0 for no cap.
    #[serde(default)]
    pub mbps_max: u32,
    /// Its part of what drives do, beside that of other volumes, when they are the limit; 100 is usual.
    #[serde(default = "usual_weight")]
    pub weight: u16,
    /// Commands that had to wait for one of these since the start.
    #[serde(default)]
    pub capped: u64,
    /// What hosts did with it since the start.
    pub counters: Counters,
    /// Where the time of its reads goes; absent if none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_times: Option<Stages>,
    /// Where the time of its writes goes; absent if none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_times: Option<Stages>,
}

/// The weight of a volume of which nothing else is said.
pub const WEIGHT: u16 = 100;

fn usual_weight() -> u16 {
    WEIGHT
}

/// A volume's export.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Exported {
    /// The host; absent if none with these names is known here.
    pub host: Option<String>,
    /// The NVMe and iSCSI names kept in the pool.
    pub names: Vec<String>,
    /// Logical unit number for this host.
    pub lun: u16,
}

/// A volume to make.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCreate {
    /// `pool/volume`.
    pub name: String,
    /// Size, a multiple of the block size.
    pub bytes: u64,
    /// 512 or 4096; the pool's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u32>,
}

/// A change to a volume: a new size, a new name, or caps and weight, one of these at a time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeSet {
    /// New size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// New name within the pool, without the pool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Commands that its hosts may start in a second, 10 or more; 0 takes the cap away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops_max: Option<u32>,
    /// Megabytes (10^6 bytes) that they may move in a second; 0 takes the cap away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mbps_max: Option<u32>,
    /// Its part of what drives do, beside that of other volumes, when they are the limit: 1 to 1000, 100 is usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u16>,
    /// Needed to shrink: what lies beyond the new size is lost.
    #[serde(default)]
    pub force: bool,
}

/// A volume given to a host, as `exports` lists it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// `pool/volume`.
    pub volume: String,
    /// The host; absent if none with these names is known here.
    pub host: Option<String>,
    /// The NVMe and iSCSI names kept in the pool.
    pub names: Vec<String>,
    /// NVMe namespace id.
    pub nsid: u32,
    /// Logical unit number for this host.
    pub lun: u16,
}

/// A volume to give to a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportAdd {
    /// `pool/volume`.
    pub volume: String,
    /// The host.
    pub host: String,
    /// Logical unit number; the lowest free one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lun: Option<u16>,
}
