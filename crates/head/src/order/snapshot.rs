//! What the Steward says of everything, for `status`: the words of the API. Sentences are added by the daemon.

pub use api::{
    Array, ArrayLayout, Clearing, Connection, Counters, Drive, DriveRole, Exported, Finding, HeadServes,
    Host, HostExport, HostPath, Importable, Leg, PathRates, Pool, Portal, Reason, Resync, Scrub, Shard,
    Spare, Stages, Status, System as SystemInfo, Time, Times, Volume, Zone, ZoneWeight,
};
pub use finding::State;
