//! Why a load is not carried out, or ends early, and what a read found instead of what was written.

use crate::initiator::Down;
use crate::stamp::Mismatch;
use core::net::SocketAddr;

/// Why a plan cannot be carried out. Sizes are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum PlanFault {
    /// Another run is under way.
    Busy,
    /// It has no sessions.
    NoSessions,
    /// An operation is no multiple of 512 bytes, or too large.
    IoBytes { bytes: u32 },
    /// More than 100 reads among 100 operations.
    ReadPercent { percent: u8 },
    /// The region does not begin and end at multiples of 512.
    RegionUneven,
    /// A discovery session carries no load.
    Discovery,
    /// No depth that a session can have.
    Depth { depth: u16 },
    /// No number of queues that a session can have.
    Queues { queues: u16 },
    /// An NQN has more than 223 bytes.
    NqnLong,
    /// An iSCSI name has no bytes, or more than 223.
    InitiatorName,
    /// Mutual CHAP without CHAP.
    MutualAlone,
    /// It needs more buffers than there are.
    Buffers { bytes: u64, there_bytes: u64 },
    /// It needs more connections than can be made.
    Connections { wanted: u32, possible: u32 },
    /// Its sessions lead to volumes of different size.
    SizesDiffer,
    /// An operation is no multiple of the volume's block.
    IoBlock { bytes: u32, block_bytes: u32 },
    /// The region does not fit the volume.
    RegionBeyond { at: u64, bytes: u64, volume_bytes: u64 },
    /// The region holds no operation.
    RegionSmall { bytes: u64, io_bytes: u32 },
    /// An operation needs too many commands.
    ManyCommands { bytes: u32, transfer_bytes: u32 },
}

/// Why a run ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum RunFault {
    /// The plan does not fit the volume.
    Plan(PlanFault),
    /// A session cannot be had.
    Down { peer: SocketAddr, why: Down },
}

/// A read that found something else than was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongRead {
    /// The target.
    pub peer: SocketAddr,
    /// The byte of the volume.
    pub at: u64,
    /// What it holds.
    pub holds: Mismatch,
    /// The version that was written there.
    pub written: u64,
}
