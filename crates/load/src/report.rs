//! The results of a run as plain figures.

use crate::fault::{RunFault, WrongRead};
use crate::initiator::Down;
use base::Histogram;
use base::{Duration, FaultKind};

/// Figures of one kind of operation, or of one connection.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Figures {
    /// Operations that ended well.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Operations per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Mean latency, microseconds.
    pub mean_us: f64,
    /// Median latency, microseconds.
    pub p50_us: f64,
    /// 9 of 10 were faster, microseconds.
    pub p90_us: f64,
    /// 99 of 100 were faster, microseconds.
    pub p99_us: f64,
    /// 999 of 1000 were faster, microseconds.
    pub p999_us: f64,
    /// The slowest, microseconds.
    pub max_us: f64,
}

impl Figures {
    /// Figures of what `latencies` counted in `time`.
    pub fn of(latencies: &Histogram, bytes: u64, time: Duration) -> Self {
        let us = |d: Duration| d.as_nanos() as f64 / 1e3;
        let per_s = |n: f64| if time.is_zero() { 0.0 } else { n / time.as_secs_f64() };
        Self {
            ops: latencies.count(),
            bytes,
            iops: per_s(latencies.count() as f64),
            mb_per_s: per_s(bytes as f64 / 1e6),
            mean_us: us(latencies.mean()),
            p50_us: us(latencies.quantile(500)),
            p90_us: us(latencies.quantile(900)),
            p99_us: us(latencies.quantile(990)),
            p999_us: us(latencies.quantile(999)),
            max_us: us(latencies.max()),
        }
    }
}

/// One I/O connection.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ConnectionFigures {
    /// Index of its session in the plan.
    pub session: u16,
    /// Index among the session's I/O connections.
    pub connection: u16,
    /// The target's address.
    pub peer: String,
    /// Reads and writes together.
    pub figures: Figures,
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// As planned.
    Completed,
    /// By `Mail::Stop`.
    Stopped,
    /// Early.
    Failed(RunFault),
}

/// The whole run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// How it ended.
    pub end: End,
    /// `nvme` or `iscsi`, of the first session.
    pub protocol: &'static str,
    /// The target's name.
    pub target: String,
    /// Volume block size, bytes.
    pub block_bytes: u32,
    /// Volume size, bytes.
    pub volume_bytes: u64,
    /// Part of the volume that was used, bytes.
    pub region_bytes: u64,
    /// Commands under way on each connection, at most: `depth_asked`, or what the target's queues hold.
    pub depth: u16,
    /// What the plan asked for.
    pub depth_asked: u16,
    /// Connections that carried operations: as many as `connections`, or what the target granted.
    pub connections_open: u16,
    /// Length of the measurement.
    pub time: Duration,
    /// Reads.
    pub reads: Figures,
    /// Writes.
    pub writes: Figures,
    /// Both.
    pub total: Figures,
    /// Operations that failed for good, all phases, by kind; kinds that did not occur are left out.
    pub errors_by_kind: Vec<(FaultKind, u64)>,
    /// Their sum, mismatches included: 0 means that nothing went wrong.
    pub errors: u64,
    /// Commands sent again after a temporary refusal.
    pub retries: u64,
    /// Sessions that were lost and opened again.
    pub reconnects: u64,
    /// Volume blocks read and found to hold what was last written.
    pub verified_blocks: u64,
    /// Volume blocks read of which it was not known what they hold.
    pub unjudged_blocks: u64,
    /// Operations that read something wrong.
    pub mismatches: u64,
    /// The first of them.
    pub mismatch_examples: Vec<WrongRead>,
    /// Where the first operation in the volume read something other than zeroes, if the plan `looks`: a byte of the volume.
    pub not_zero_at: Option<u64>,
    /// Every I/O connection.
    pub connections: Vec<ConnectionFigures>,
}

/// A live view of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Progress {
    /// What it is doing: `connecting`, `preparing`, `ramp`, `measuring`, `draining`, `reading back`,
    /// `closing`.
    pub phase: &'static str,
    /// Part of the phase that is done, 0 to 1; None if unknown.
    pub done: Option<f64>,
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Sessions ready, of `sessions`.
    pub ready: u16,
    /// Sessions of the plan.
    pub sessions: u16,
    /// Operations since the last progress.
    pub ops: u64,
    /// Operations per second since the last progress.
    pub iops: f64,
    /// 10^6 bytes per second since the last progress.
    pub mb_per_s: f64,
    /// Latency that 99 of 100 operations did not exceed since the last progress, microseconds.
    pub p99_us: f64,
    /// Operations that failed for good, mismatches included, since the start.
    pub errors: u64,
    /// Commands sent again, since the start.
    pub retries: u64,
    /// Sessions opened again, since the start.
    pub reconnects: u64,
    /// Blocks verified since the start.
    pub verified_blocks: u64,
    /// Why a session is not ready, if one is not: the last reason.
    pub trouble: Option<Down>,
}
