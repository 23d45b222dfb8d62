//! Figures of the past.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the head, a volume or a drive did, step by step. All columns have one element for each step: element `i` is of the step that
/// begins at `begin + i * step_seconds`. `null` is a step in which nobody looked; of a latency also one in which nothing was timed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// Length of a step, seconds.
    pub step_seconds: u64,
    /// When the first step begins, seconds since 1970-01-01 UTC.
    pub begin: u64,
    /// Reads a second.
    pub reads: Vec<Option<f32>>,
    /// Writes a second.
    pub writes: Vec<Option<f32>>,
    /// Bytes read a second.
    pub read_bytes: Vec<Option<f32>>,
    /// Bytes written a second.
    pub write_bytes: Vec<Option<f32>>,
    /// Mean time of a read, nanoseconds. One command in 64 is timed.
    pub read_mean_ns: Vec<Option<f32>>,
    /// Mean time of a write, nanoseconds.
    pub write_mean_ns: Vec<Option<f32>>,
    /// How the times of commands spread, and where they went; of the head alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<HistoryTimes>,
}

/// How the times of commands spread, and where they went, nanoseconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HistoryTimes {
    /// The median of reads, rounded up to a quarter of an octave, as all that follow but the stages.
    pub read_p50_ns: Vec<Option<f32>>,
    /// What 99 of 100 reads did not exceed.
    pub read_p99_ns: Vec<Option<f32>>,
    /// The median of writes.
    pub write_p50_ns: Vec<Option<f32>>,
    /// What 99 of 100 writes did not exceed.
    pub write_p99_ns: Vec<Option<f32>>,
    /// What a read spent in each stage, in the mean: together they are its mean time.
    pub read_stages: HistoryStages,
    /// What a write spent in each stage, in the mean.
    pub write_stages: HistoryStages,
}

/// Mean time of a command in each stage, nanoseconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HistoryStages {
    /// The wait for memory, and of a write for the host's data.
    pub admitted_ns: Vec<Option<f32>>,
    /// The wait for the volume's caps, and for a credit of its array.
    pub volume_ns: Vec<Option<f32>>,
    /// In the array, until the drive operation starts that ends it.
    pub array_ns: Vec<Option<f32>>,
    /// The last of its drive operations.
    pub drive_ns: Vec<Option<f32>>,
    /// Its answer, until it is on its way.
    pub replied_ns: Vec<Option<f32>>,
}
