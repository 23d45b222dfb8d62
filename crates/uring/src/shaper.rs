//! Artificial behaviour of a drive, shared by all reactors.

use base::machine::Shape;
use base::{DriveError, DriveOp, DriveOpKind, Instant, Prng};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Unused allowance of a rate limit that is kept, so that late timers do not lower the rate.
const BURST_NS: u64 = 10_000_000;

/// What is to happen to an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Go on at this time; fail then if there is an error.
    At(Instant, Option<DriveError>),
    /// Neither done nor answered until the shape changes.
    Hold,
}

/// The shape of one drive.
#[derive(Debug)]
pub(crate) struct Shaper {
    /// Whether there is anything to ask; unshaped drives cost one load.
    active: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    shape: Shape,
    /// When the next operation may start, by each limit, nanoseconds.
    next_by_iops: u64,
    next_by_bytes: u64,
    prng: Prng,
}

impl Shaper {
    /// A shaper that does nothing; `seed` decides which operations fail once errors are asked for.
    pub(crate) fn new(seed: u64) -> Self {
        let state =
            State { shape: Shape::default(), next_by_iops: 0, next_by_bytes: 0, prng: Prng::new(seed) };
        Self { active: AtomicBool::new(false), state: Mutex::new(state) }
    }

    pub(crate) fn set(&self, shape: Shape) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let active = shape != Shape::default();
        // Debts of the old limits are forgiven.
        (state.next_by_iops, state.next_by_bytes) = (0, 0);
        state.shape = shape;
        self.active.store(active, Ordering::SeqCst);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// Whether what the drive has done is not to be answered now.
    pub(crate) fn holds(&self) -> bool {
        let hangs = || self.state.lock().unwrap_or_else(PoisonError::into_inner).shape.hang;
        self.is_active() && hangs()
    }

    /// What is to happen to `op`, which begins now.
    pub(crate) fn admit(&self, now: Instant, op: &DriveOp) -> Verdict {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let shape = &state.shape;
        if shape.gone {
            return Verdict::At(now, Some(DriveError::Gone));
        }
        if shape.hang {
            return Verdict::Hold;
        }
        let ppm = match op.kind {
            DriveOpKind::Read => shape.read_errors_ppm,
            DriveOpKind::Write | DriveOpKind::WriteZeroes | DriveOpKind::Deallocate => shape.write_errors_ppm,
            DriveOpKind::Flush => 0,
        };
        let failed = ppm > 0 && state.prng.chance(u64::from(ppm), 1_000_000);
        let mut start = now.0;
        if shape.iops_max > 0 {
            let cost = 1_000_000_000 / u64::from(shape.iops_max);
            start = start.max(pace(&mut state.next_by_iops, now, cost));
        }
        if shape.mbps_max > 0 && matches!(op.kind, DriveOpKind::Read | DriveOpKind::Write) {
            // MB/s are bytes per microsecond.
            let cost = op.len * 1000 / u64::from(shape.mbps_max);
            start = start.max(pace(&mut state.next_by_bytes, now, cost));
        }
        let at = Instant(start + u64::from(shape.latency_us) * 1000);
        Verdict::At(at, failed.then_some(DriveError::Medium))
    }
}

/// The start of the next thing that takes `cost` nanoseconds of a limit.
fn pace(next: &mut u64, now: Instant, cost: u64) -> u64 {
    let start = (*next).max(now.0.saturating_sub(BURST_NS));
    *next = start + cost;
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{DriveId, Slice, Token};

    fn op(kind: DriveOpKind, len: u64) -> DriveOp {
        DriveOp { drive: DriveId(0), kind, at: 0, len, data: Slice::default(), fua: false, token: Token(0) }
    }

    fn starts(shape: Shape, len: u64) -> Vec<u64> {
        let shaper = Shaper::new(1);
        shaper.set(shape);
        let now = Instant(1_000_000_000);
        let start = |_| match shaper.admit(now, &op(DriveOpKind::Write, len)) {
            Verdict::At(at, None) => at.0 - now.0,
            other => panic!("{other:?}"),
        };
        (0..1000).map(start).collect()
    }

    #[test]
    fn a_drive_without_a_shape_is_not_asked() {
        let shaper = Shaper::new(1);
        assert!(!shaper.is_active() && !shaper.holds());
        shaper.set(Shape { hang: true, ..Shape::default() });
        assert!(shaper.holds());
        shaper.set(Shape::default());
        assert!(!shaper.is_active() && !shaper.holds());
    }

    #[test]
    fn a_thousand_operations_at_a_thousand_iops_take_a_second_less_the_burst() {
        let at = starts(Shape { iops_max: 1000, ..Shape::default() }, 512);
        assert_eq!(at[999], 989_000_000);
    }

    #[test]
    fn a_thousand_operations_of_100_kb_at_100_mb_per_second_take_a_second_less_the_burst() {
        let at = starts(Shape { mbps_max: 100, ..Shape::default() }, 100_000);
        assert_eq!(at[999], 989_000_000);
    }

    #[test]
    fn latency_is_added_to_every_operation() {
        assert!(starts(Shape { latency_us: 250, ..Shape::default() }, 512).iter().all(|at| *at == 250_000));
    }

    #[test]
    fn errors_come_as_often_as_asked_and_never_to_a_flush() {
        let shaper = Shaper::new(7);
        shaper.set(Shape { read_errors_ppm: 100_000, write_errors_ppm: 1_000_000, ..Shape::default() });
        let fails = |kind| {
            let hit = |_: &usize| shaper.admit(Instant(0), &op(kind, 512)) != Verdict::At(Instant(0), None);
            (0..10_000).filter(hit).count()
        };
        assert!((800..1200).contains(&fails(DriveOpKind::Read)));
        assert_eq!(fails(DriveOpKind::Write), 10_000);
        assert_eq!(fails(DriveOpKind::Flush), 0);
    }

    #[test]
    fn gone_wins_over_hung() {
        let shaper = Shaper::new(1);
        shaper.set(Shape { hang: true, gone: true, ..Shape::default() });
        let gone = Verdict::At(Instant(5), Some(DriveError::Gone));
        assert_eq!(shaper.admit(Instant(5), &op(DriveOpKind::Read, 512)), gone);
    }
}
