//! Every limit of a shard, and of what all shards share, in one place.

use base::Duration;

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
/// One part in this many of the flights is for commands of other shards alone: those hold a slot elsewhere already, and two
/// shards full of flights to each other would wait for ever.
pub const FLIGHTS_FOR_PEERS_SHARE: u32 = 4;
/// Most NVMe controllers of a head; ids from 1 on, of the second of two heads from 8,193 on.
pub const CONTROLLERS_MAX: u16 = 8192;
/// Most iSCSI sessions of a head; handles likewise.
pub const SESSIONS_MAX: u16 = 8192;
/// A host may hold this many times what is left, and a connection this many times what is left of that.
pub const SHARE: u64 = 4;
/// Memory for unsolicited data (`arena`), at least: the longest of them (FirstBurstLength), twice, as
/// compare needs.
pub const INLINE_MIN: u64 = 512 << 10;
/// And one part in so many of what a shard has beyond `SHARD_BYTES_MIN`.
pub const INLINE_SHARE: u64 = 4;
/// Memory for reads that a leg keeps and that are asked of another one: the largest transfer, or many short ones.
pub const SECOND_BYTES: u64 = 1 << 20;
/// Spares for when a drive that hangs keeps memory (`arena`): of the memory for unsolicited data,
pub const INLINE_SPARES: u64 = 2;
/// and of that for the largest command.
pub const LARGE_SPARES: u64 = 1;
/// Part of the common memory that commands may use; connections and arrays have the rest.
pub const ASKED_SHARE: (u64, u64) = (3, 4);
/// Memory for what connections send, at least;
pub const RINGS_MIN: u64 = 512 << 10;
/// and one part in so many of the common memory.
pub const RINGS_SHARE: u64 = 4;
/// Deadline of a host for data that it owes or does not take, while others wait for memory.
pub const HOST_DEADLINE: Duration = Duration::from_secs(5);
/// How often a shard checks that deadline, while somebody waits.
pub const HOST_DEADLINE_CHECK: Duration = Duration::from_millis(500);
/// How often drive operations are checked for missed deadlines.
pub const OP_SCAN: Duration = Duration::from_millis(100);
/// Connections of one host that are asked at a time whether they may have more memory; the rest is asked the next time.
pub const LOOKS_MAX: u32 = 64;
/// Connections that may keep received bytes which they cannot take, before the deadlines of hosts are checked: a quarter of
/// the staging buffers of a shard.
pub const STALLED_MAX: u32 = 32;
/// Least memory of a shard: what the parts of `arena` need, two of which have a spare, a mirror's scratch, and some
/// connections.
pub const SHARD_BYTES_MIN: u64 = (1 + INLINE_SPARES) * INLINE_MIN
    + (1 + LARGE_SPARES) * crate::admission::buffers::BUFFER_MAX
    + SECOND_BYTES
    + ARRAY_BYTES
    + RINGS_MIN;
/// Arrays without redundancy that take as much memory as one with it.
pub const SINGLES_OF_A_MIRROR: u64 = ARRAY_BYTES / array::SINGLE_SCRATCH_BYTES as u64;
/// Memory that each array of redundancy takes.
pub const ARRAY_BYTES: u64 = (array::SCRATCH_BYTES as u64).next_power_of_two();

/// Whether somebody who has `own` may have `more`, if `left` is left for all.
#[inline]
pub fn has_share(own: u64, more: u64, left: u64) -> bool {
    own + more <= SHARE * left.saturating_sub(more)
}

/// Arrays of redundancy that a shard with so many bytes of memory for data has room for.
pub const fn arrays_max(bytes: u64) -> u64 {
    1 + bytes.saturating_sub(SHARD_BYTES_MIN) / INLINE_SHARE * (INLINE_SHARE - 1) / ARRAY_BYTES
}

/// Least memory of a shard whose head has so many arrays of redundancy, bytes.
pub const fn shard_bytes_min(arrays: u64) -> u64 {
    let more = arrays.saturating_sub(1) * ARRAY_BYTES;
    SHARD_BYTES_MIN
        + (more * INLINE_SHARE).div_ceil(INLINE_SHARE - 1).next_multiple_of(crate::admission::buffers::PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_memory_for_so_many_mirrors_has_room_for_them_and_hardly_for_more() {
        for n in 1..200 {
            let least = shard_bytes_min(n);
            assert!((n..=n + 1).contains(&arrays_max(least)), "{n}: {}", arrays_max(least));
            assert!(n == 1 || arrays_max(least - 2 * crate::admission::buffers::PAGE) < n);
        }
        assert!(arrays_max(32 << 20) >= 19);
    }
}
