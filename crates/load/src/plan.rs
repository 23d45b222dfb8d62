//! The plan of a run: targets, load and duration.

use crate::fault::PlanFault;
use crate::initiator::Config;
use base::Duration;

/// Order in which places are visited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Uniformly random.
    Random,
    /// From the region's first byte to its last and again, over all connections together.
    Sequential,
}

/// One run. `Plan::new` gives sensible values for everything but the targets.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The sessions to open: NVMe sessions have `queues` I/O connections each, iSCSI sessions one.
    /// All must lead to the same volume, or verification would compare one volume with the writes to another.
    pub sessions: Vec<Config>,
    /// Bytes of one operation: a multiple of 512 and of the volume's block, at most 4 MiB. What is
    /// larger than the target takes in one command is split.
    pub io_bytes: u32,
    /// Order of places.
    pub pattern: Pattern,
    /// Reads among 100 operations.
    pub read_percent: u8,
    /// Writes are to be durable before they are answered.
    pub fua: bool,
    /// First byte of the region of the volume that is used.
    pub region_at: u64,
    /// Length of the region in bytes; 0 for the rest of the volume.
    pub region_bytes: u64,
    /// Before measuring, every place of the region is written once (reads of unwritten places measure
    /// nothing real, and cannot be verified).
    pub prepare: bool,
    /// Load that is not counted, before the measurement.
    pub ramp: Duration,
    /// Length of the measurement; zero: until `ops_max` or `Mail::Stop`.
    pub time: Duration,
    /// Operations to measure; 0: until the time is over.
    pub ops_max: u64,
    /// Pause between the end of an operation and the next one in its stead, from the end of preparing on.
    pub think: Duration,
    /// Writes carry stamps and reads of places written in this run are checked.
    pub verify: bool,
    /// After the measurement every place written in this run is read and checked.
    pub read_back: bool,
    /// What is read is looked at: the report says where the first byte lies that is not zero.
    pub looks: bool,
    /// Decides every random choice.
    pub seed: u64,
    /// Interval of `Mail::Progress`; zero for none.
    pub progress_every: Duration,
    /// How long lost connections and temporary refusals are retried before they count as errors.
    pub patience: Duration,
}

impl Plan {
    /// 4 KiB random reads and writes half and half, 5 s, verified.
    pub fn new(sessions: Vec<Config>) -> Self {
        Self {
            sessions,
            io_bytes: 4096,
            pattern: Pattern::Random,
            read_percent: 50,
            fua: false,
            region_at: 0,
            region_bytes: 0,
            prepare: false,
            ramp: Duration::ZERO,
            time: Duration::from_secs(5),
            ops_max: 0,
            think: Duration::ZERO,
            verify: true,
            read_back: false,
            looks: false,
            seed: 1,
            progress_every: Duration::from_secs(1),
            patience: Duration::from_secs(60),
        }
    }
    /// Checks what can be checked before connecting.
    pub fn check(&self) -> Result<(), PlanFault> {
        if self.sessions.is_empty() {
            return Err(PlanFault::NoSessions);
        }
        if self.io_bytes == 0 || !self.io_bytes.is_multiple_of(512) || self.io_bytes > IO_BYTES_MAX {
            return Err(PlanFault::IoBytes { bytes: self.io_bytes });
        }
        if self.read_percent > 100 {
            return Err(PlanFault::ReadPercent { percent: self.read_percent });
        }
        if !self.region_at.is_multiple_of(512) || !self.region_bytes.is_multiple_of(512) {
            return Err(PlanFault::RegionUneven);
        }
        if self.sessions.iter().any(|s| s.is_discovery()) {
            return Err(PlanFault::Discovery);
        }
        self.sessions.iter().try_for_each(|s| s.check())
    }
}

/// Largest operation, bytes.
pub const IO_BYTES_MAX: u32 = 4 << 20;
/// Most places that are verified in one run; a larger region is cut to it (4 bytes of memory each).
pub const VERIFIED_UNITS_MAX: u64 = 1 << 26;
