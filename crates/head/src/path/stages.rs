//! Where the time of commands goes. One read or write in 64, chosen by chance, carries stamps of the turns in which it
//! came to each stage; the Steward makes figures of them. What a stamp says is true to a turn: a shard reads the clock
//! once in each.

use crate::report::PathId;
use base::{DriveId, Instant, Prng, Slots, VolumeId};
use serde::{Deserialize, Serialize};

/// Of so many commands one is timed, in the mean.
pub const ONE_IN: u64 = 64;
/// Timed commands under way on a shard; beyond these none is timed until one has ended.
const FLYING_MAX: u32 = 512;
/// Timed commands, and as many drive operations, that a shard keeps until the Steward asks, which is each second.
const KEPT_MAX: usize = 4096;
/// A request that is not timed.
pub(crate) const UNTIMED: u16 = u16::MAX;

/// How many stages there are.
pub const STAGES: usize = 5;

/// What a command waits for, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Memory for its data; a write's data, from the host.
    Admitted,
    /// Its volume's caps, and a credit of its array.
    Volume,
    /// Its array, until the drive operation starts that ends it: writes to the same blocks, the bitmap, a record of a lost
    /// leg, the shard that owns the region.
    Array,
    /// The last of its drive operations.
    Drive,
    /// Its answer: until that is on its way, and until the kernel has taken the data of a read.
    Replied,
}

/// A command that was timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timed {
    /// Of which volume.
    pub volume: VolumeId,
    /// By which path it came; None: no host sent it.
    pub path: Option<PathId>,
    /// A write, or a read.
    pub write: bool,
    /// Nanoseconds, by stage.
    pub ns: [u64; STAGES],
}

/// A drive operation that was timed: a read or a write that ended well.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimedOp {
    /// On which drive.
    pub drive: DriveId,
    /// A write, or a read.
    pub write: bool,
    /// Nanoseconds from its start to its end.
    pub ns: u64,
}

/// When a command under way came to its stages.
#[derive(Clone, Copy, Debug)]
struct Stamps {
    volume: VolumeId,
    path: Option<PathId>,
    write: bool,
    came: Instant,
    admitted: Instant,
    handed: Option<Instant>,
    issued: Instant,
    landed: Option<Instant>,
}

/// What a shard times.
#[derive(Debug)]
pub(crate) struct Timing {
    /// Commands until the next that is timed, and drive operations.
    commands: u32,
    ops: u32,
    chance: Prng,
    flying: Slots<Stamps>,
    timed: Vec<Timed>,
    timed_ops: Vec<TimedOp>,
}

impl Timing {
    /// With all the memory that it will need.
    pub fn new() -> Self {
        let mut flying = Slots::default();
        flying.reserve(FLYING_MAX);
        Self {
            commands: 1,
            ops: 1,
            chance: Prng::new(ONE_IN),
            flying,
            timed: Vec::with_capacity(KEPT_MAX),
            timed_ops: Vec::with_capacity(KEPT_MAX),
        }
    }

    /// A step of one would always meet the same of 16 volumes that take turns.
    fn step(chance: &mut Prng) -> u32 {
        1 + chance.below(2 * ONE_IN - 1) as u32
    }
    /// Whether the next command is to be timed.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.commands -= 1;
        self.commands == 0
    }
    /// A read or write has come at `came` and has all that it needs. Its number for the calls below.
    #[cold]
    pub fn begin(
        &mut self,
        (volume, path): (VolumeId, Option<PathId>),
        write: Option<bool>,
        came: Instant,
        now: Instant,
    ) -> u16 {
        self.commands = Self::step(&mut self.chance);
        let Some(write) = write else { return UNTIMED };
        let stamps =
            Stamps { volume, path, write, came, admitted: now, handed: None, issued: now, landed: None };
        self.flying.insert(stamps).map_or(UNTIMED, |index| index as u16)
    }
    /// A part of it was handed to an array: the first one counts.
    #[cold]
    pub fn handed(&mut self, index: u16, now: Instant) {
        self.flying[u32::from(index)].handed.get_or_insert(now);
    }
    /// A part of it has ended at its array, and the operation that ended it had started at `issued`. The last one counts.
    #[cold]
    pub fn landed(&mut self, index: u16, issued: Instant, now: Instant) {
        let stamps = &mut self.flying[u32::from(index)];
        stamps.issued = issued;
        stamps.landed = Some(now);
    }
    /// It is over; `answered`: it was carried out, and when its answer was gone.
    #[cold]
    pub fn end(&mut self, index: u16, answered: Option<Instant>) {
        let Stamps { volume, path, write, came, admitted, handed, issued, landed } =
            self.flying.remove(u32::from(index));
        let (Some(handed), Some(landed), Some(now)) = (handed, landed, answered) else { return };
        if self.timed.len() < KEPT_MAX {
            // What a read joins may have started before it.
            let issued = issued.clamp(handed, landed);
            let marks = [came, admitted, handed, issued, landed, now];
            let ns = core::array::from_fn(|i| marks[i + 1].0.saturating_sub(marks[i].0));
            self.timed.push(Timed { volume, path, write, ns });
        }
    }
    /// A read or write of a drive went well.
    #[inline]
    pub fn op(&mut self, drive: DriveId, write: bool, ns: u64) {
        self.ops -= 1;
        if self.ops == 0 {
            self.keep_op(TimedOp { drive, write, ns });
        }
    }
    #[cold]
    fn keep_op(&mut self, op: TimedOp) {
        self.ops = Self::step(&mut self.chance);
        if self.timed_ops.len() < KEPT_MAX {
            self.timed_ops.push(op);
        }
    }
    /// What was timed since it was asked last.
    pub fn take(&mut self) -> (Vec<Timed>, Vec<TimedOp>) {
        let taken = (self.timed.clone(), self.timed_ops.clone());
        self.timed.clear();
        self.timed_ops.clear();
        taken
    }
    /// Nothing that is timed is under way. For checkers.
    pub fn is_idle(&self) -> bool {
        self.flying.is_empty()
    }
}
