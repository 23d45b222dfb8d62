//! The REST types that daemon and command line share, and the OpenAPI schemas of them.
//!
//! Owns the JSON shapes under `/api/v1`. Promise: a field that is not
//! known is refused by name; secrets can be sent and are never shown. Does not know machines, HTTP or
//! the Steward's door: the daemon translates.
//!
//! Sizes are bytes, rates are bytes a second, times are `YYYY-MM-DDThh:mm:ssZ`.

mod alarm;
mod drive;
mod error;
mod event;
mod history;
mod host;
mod pool;
mod portal;
mod status;
mod system;
mod text;
mod time;
mod token;
mod volume;

pub use alarm::{
    Alarm, AlarmMessage, AlarmReceiver, AlarmState, AlarmTest, AlarmTested, Alarms, ReceiverState,
};
pub use drive::{Drive, DriveHealth, DriveLocate, DriveReplace, DriveRole, Shape};
pub use error::{Error, ErrorBody};
pub use event::{Event, Events};
pub use finding::{Cause, ErrorKind, Notice, State, Weight};
pub use history::{History, HistoryStages, HistoryTimes};
pub use host::{
    Host, HostAdd, HostCheck, HostChecked, HostConnect, HostExport, HostPath, HostSet, PathRates, Secret,
};
pub use pool::{
    Array, ArrayLayout, ArraySpec, Clearing, Finding, Importable, Leg, LegAdd, Pool, PoolAdd, PoolCreate,
    PoolImport, PoolScrub, Resync, Scrub, Spare, SpareAdd, Zone, ZoneWeight,
};
pub use portal::{Portal, PortalAdd, Protocol};
pub use status::{
    BOUNDS_NS, BUCKETS, Connection, Counters, Created, Daemon, Noticed, Reason, Shard, Stages, Status,
    System, Times,
};
pub use system::{
    Cluster, FenceTrial, Head, HeadAddress, HeadFence, HeadOut, HeadServes, LinkNetwork, LinkRefused,
    SystemCreate, SystemCreated, SystemJoin, SystemLeave, link_notices,
};
pub use time::Time;
pub use token::{Rights, Session, SessionBegin, Token, TokenAdd, TokenAdded, Tokens};
pub use volume::{Export, ExportAdd, Exported, Volume, VolumeCreate, VolumeSet, WEIGHT};

/// Where the resources are, below the server's root.
pub const BASE: &str = "/api/v1";
