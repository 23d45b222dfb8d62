//! Every limit of a shard, in one place.

/// Deepest NVMe I/O queue that a host may ask for, entries.
pub const QUEUE_DEPTH_MAX: u16 = 1024;
/// I/O queues of one NVMe controller.
pub const IO_QUEUES_MAX: u16 = 64;
/// Commands of one iSCSI session that may be under way.
pub const ISCSI_COMMANDS_MAX: u16 = 128;
/// Sum of granted queue depths of one shard: 10,000 queues of 128.
pub const REQUESTS_MAX: u32 = 10_000 * 128;
/// Array commands of one shard that are under way, its own and its peers'.
pub const FLIGHTS_MAX: u32 = 4096;
/// Flights of one request that are under way; a longer command goes on as they end.
pub const FLIGHTS_PER_REQUEST: u32 = 64;
/// Parts of an outbox: each command leaves at most a header, a payload, a trailer and a release.
pub const OUTBOX_PARTS: usize = 256;
/// Share of the memory that data may hold that were asked for (R2T) or go out (reads); the rest is for
/// data that come unasked and block their stream. Those end by drive completions alone, if the command
/// is no longer than what comes unasked.
pub const SOLICITED_SHARE: (u64, u64) = (3, 4);
