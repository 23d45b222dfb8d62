//! A block command of a host, independent of the protocol, and how it ended.

use crate::VolumeId;

/// What a host wants done to a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Op {
    /// Data from the volume into the request's buffer.
    Read,
    /// Data from the request's buffer to the volume.
    Write,
    /// Zeroes; `deallocate` lets the volume free the space (the blocks must still read as zeroes).
    WriteZeroes {
        /// The host allows the space to be freed.
        deallocate: bool,
    },
    /// The host no longer needs these blocks; they read as zeroes or as before (promise 2:
    /// zeroes on every leg, or nothing is passed down).
    Deallocate,
    /// Every write completed before, on any connection, is durable when this ends. Covers the volume.
    Flush,
    /// Ends in `Miscompare` unless the volume holds what the buffer holds.
    Compare,
}

impl Op {
    /// Whether the host sends data along.
    pub fn takes_data(self) -> bool {
        matches!(self, Op::Write | Op::Compare)
    }
    /// Whether the volume may hold other bytes afterwards.
    pub fn changes(self) -> bool {
        !matches!(self, Op::Read | Op::Flush | Op::Compare)
    }
}

/// One block command. Blocks are the volume's own blocks (512 or 4096 bytes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The volume.
    pub volume: VolumeId,
    /// What to do.
    pub op: Op,
    /// First block. The front end need not check the range: `OutOfRange` says it.
    pub at: u64,
    /// Number of blocks, at least 1 (0 for Flush).
    pub blocks: u64,
    /// Durable before it is answered (Force Unit Access).
    pub fua: bool,
}

/// How a command ended. Each protocol maps these to its own status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub enum Status {
    /// Done.
    Good,
    /// Beyond the volume's last block.
    OutOfRange,
    /// Some block could not be read from any leg.
    Medium,
    /// Compare found a difference `at` bytes into the data.
    Miscompare {
        /// Byte offset of the first difference.
        at: u32,
    },
    /// The volume cannot answer now and may later: hosts should retry with patience.
    NotReady,
    /// The volume is gone, or is not this host's.
    NoVolume,
    /// Ended by the host's abort or by the end of its connection.
    Aborted,
    /// Below some drive there is no room for new blocks (a full file system).
    NoSpace,
    /// The volume takes no writes.
    WriteProtected,
    /// Our own failure.
    Internal,
    /// Another head has shut this one off the drives, or may have: no answer is given, and the host's connection ends, so that it goes
    /// to where it is served. Front ends never see it.
    Withheld,
    /// The lanes have moved meanwhile: the command must be routed again. Front ends never see this status.
    Moved,
}
