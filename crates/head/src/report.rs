//! Figures that a shard reports to the Steward, for `status` and metrics. Counters only grow.

use crate::layout::ArrayId;
use crate::path::stages::{Timed, TimedOp};
use array::Progress;
use base::{ConnectionId, DriveError, DriveId, HostId, PortalId, VolumeId};
use core::net::SocketAddr;
use serde::{Deserialize, Serialize};

/// Commands and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Reads that ended well.
    pub reads: u64,
    /// Writes (and write zeroes) that ended well.
    pub writes: u64,
    /// Flushes, deallocates, compares.
    pub others: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Commands that ended in an error.
    pub errors: u64,
    /// Nanoseconds spent, summed over all commands.
    pub busy_ns: u64,
    /// Commands that had to wait for their volume's caps.
    pub capped: u64,
}

/// How a command ended, for counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// A read of so many bytes, well.
    Read(u64),
    /// A write of so many bytes, well.
    Write(u64),
    /// Another one, well.
    Other,
    /// In an error.
    Error,
}

impl Counters {
    /// Counts one command, which took so long.
    pub(crate) fn count(&mut self, ended: Ended, busy_ns: u64) {
        self.busy_ns += busy_ns;
        match ended {
            Ended::Read(bytes) => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Ended::Write(bytes) => {
                self.writes += 1;
                self.write_bytes += bytes;
            }
            Ended::Other => self.others += 1,
            Ended::Error => self.errors += 1,
        }
    }
    /// Adds another's figures.
    pub fn add(&mut self, o: &Counters) {
        self.reads += o.reads;
        self.writes += o.writes;
        self.others += o.others;
        self.read_bytes += o.read_bytes;
        self.write_bytes += o.write_bytes;
        self.errors += o.errors;
        self.busy_ns += o.busy_ns;
        self.capped += o.capped;
    }
}

/// Checksums that a connection's two sides compute over what they exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Digests {
    /// Over headers.
    pub header: bool,
    /// Over data.
    pub data: bool,
}

/// As what a connection was admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// NVMe controller id or iSCSI session handle; None before it is admitted.
    pub session: Option<u16>,
    /// Its NVMe queue: 0 is the admin queue, and the only one of iSCSI.
    pub queue: u16,
    /// It only asks what there is.
    pub discovery: bool,
}

/// A path: all that a host has over one portal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct PathId {
    /// The host.
    pub host: HostId,
    /// Where it came in.
    pub portal: PortalId,
}

/// One connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// Its id on this shard.
    pub connection: ConnectionId,
    /// Where it came in.
    pub portal: PortalId,
    /// Its address.
    pub peer: SocketAddr,
    /// Who it is, once known.
    pub host: Option<HostId>,
    /// As what it was admitted.
    pub login: Login,
    /// Commands under way.
    pub commands: u32,
    /// What was agreed.
    pub digests: Digests,
    /// What it did.
    pub counters: Counters,
}

impl ConnectionReport {
    /// The path that it is a part of, if a host is let in by it and uses volumes.
    pub fn path(&self) -> Option<PathId> {
        let host = self.host.filter(|_| self.login.session.is_some() && !self.login.discovery)?;
        Some(PathId { host, portal: self.portal })
    }
}

/// One drive, as this shard uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveReport {
    /// The drive.
    pub drive: DriveId,
    /// What it did for this shard.
    pub counters: Counters,
    /// Operations that missed their deadline.
    pub timeouts: u64,
    /// How the last one failed that did.
    pub last_error: Option<DriveError>,
    /// Operations under way.
    pub in_flight: u32,
    /// Operations given up on that the kernel still holds.
    pub hung: u32,
}

/// Everything that a shard reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShardReport {
    /// Which shard.
    pub shard: u16,
    /// Its connections.
    pub connections: Vec<ConnectionReport>,
    /// What connections did that have ended, by path.
    pub ended: Vec<(PathId, Counters)>,
    /// Its volumes' figures.
    pub volumes: Vec<(VolumeId, Counters)>,
    /// Its drives' figures.
    pub drives: Vec<DriveReport>,
    /// Its part of each array's work.
    pub arrays: Vec<(ArrayId, Progress)>,
    /// Memory for data: bytes in use, and in all.
    pub buffers_used: u64,
    /// See `buffers_used`.
    pub buffers_bytes: u64,
    /// Commands that wait for memory.
    pub waiting: u32,
    /// Connections closed because they broke the protocol.
    pub protocol_errors: u64,
    /// Commands that were timed since the last report, as far as there was room.
    pub timed: Vec<Timed>,
    /// Drive operations that were timed since the last report, as far as there was room.
    pub timed_ops: Vec<TimedOp>,
}
