//! The door of the host (initiator) side: what a caller asks of a session with a target, and what the
//! connection machines of both protocols ask of their owner.

use crate::{Duration, Op, Slice};

/// One block command to a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostCommand {
    /// The caller's own; comes back in `HostDone`. Must differ from those under way.
    pub id: u32,
    /// What to do.
    pub op: Op,
    /// First block, in the volume's blocks.
    pub at: u64,
    /// Number of blocks; 0 for Flush.
    pub blocks: u32,
    /// Durable before it is answered.
    pub fua: bool,
    /// Where read data goes and written data lies; not touched by the caller until the command ends.
    pub data: Slice,
}

/// What a target's answer means, in no protocol's words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FaultKind {
    /// Beyond the last block.
    OutOfRange,
    /// The medium failed.
    Medium,
    /// Compare found a difference.
    Miscompare,
    /// There is no space behind the volume.
    NoSpace,
    /// The volume takes no writes.
    WriteProtected,
    /// Ended by an abort.
    Aborted,
    /// The volume cannot answer now.
    NotReady,
    /// The target's queue was full.
    Busy,
    /// Something changed at the target (unit attention); the command was not carried out.
    Changed,
    /// A data digest did not match, or data was missing.
    Transport,
    /// No such namespace or logical unit.
    NoVolume,
    /// The target does not know the command or one of its fields.
    Unsupported,
    /// Anything else.
    Other,
}

impl FaultKind {
    /// Every kind, in order.
    pub const ALL: [FaultKind; 13] = [
        FaultKind::OutOfRange,
        FaultKind::Medium,
        FaultKind::Miscompare,
        FaultKind::NoSpace,
        FaultKind::WriteProtected,
        FaultKind::Aborted,
        FaultKind::NotReady,
        FaultKind::Busy,
        FaultKind::Changed,
        FaultKind::Transport,
        FaultKind::NoVolume,
        FaultKind::Unsupported,
        FaultKind::Other,
    ];
}

/// A target's answer other than success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What it means.
    pub kind: FaultKind,
    /// The protocol's own. NVMe: status code type << 8 | status code. SCSI: status << 24 | sense key
    /// << 16 | additional sense code << 8 | its qualifier.
    pub raw: u32,
}

/// How a host's command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum HostStatus {
    /// Done.
    Good,
    /// Not done; the same command would fail again.
    Failed(Fault),
    /// Not done; worth another try after this time.
    Retry {
        /// The least time to wait.
        after: Duration,
        /// What the target said.
        fault: Fault,
    },
    /// The connection was lost first: it is unknown whether the command was carried out.
    ConnectionLost,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostDone {
    /// From the command.
    pub id: u32,
    /// Which of the session's I/O connections carried it, 0 and up.
    pub connection: u16,
    /// How it ended.
    pub status: HostStatus,
}

/// What a host-side connection can do. Its owner implements it over an outbox; tests over vectors.
pub trait HostIo {
    /// Bytes of a command's data.
    fn bytes(&self, data: Slice) -> &[u8];
    /// Bytes of a command's data.
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8];
    /// Copies received bytes from a staging buffer to their place.
    fn copy(&mut self, from: Slice, to: Slice);
    /// Room for headers and small pieces in the outbox, bytes.
    fn room(&self) -> u32;
    /// Sends small pieces (copied). Panics without room.
    fn header(&mut self, bytes: &[u8]);
    /// Sends part of a command's data from where it lies.
    fn payload(&mut self, data: Slice);
    /// Bytes handed over by `header` and `payload` that are not yet sent.
    fn pending(&self) -> u64;
    /// A command ended; its data is the caller's again.
    fn done(&mut self, id: u32, status: HostStatus);
}
