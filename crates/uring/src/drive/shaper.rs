//! Artificial limits and delays of a drive, shared by all reactors.

use base::machine::Shape;
use base::{DriveError, DriveId, DriveOp, DriveOpKind, Instant, Prng};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Unused allowance of a rate limit that is kept, so that late timers do not lower the rate.
const BURST_NS: u64 = 10_000_000;

/// A drive counts as one of those that load a shared link for so long after its last operation.
const ACTIVE_NS: u64 = 50_000_000;

/// A link that several drives share, as below a switch. It has each rate once for reads and once for writes.
///
/// While all parts are equal, operations pass in the order in which they come, and a host that asks for more gets more. Where
/// they differ, as below a switch that divides unfairly, each drive that loads the link gets its part of the rate.
#[derive(Debug, Default)]
pub(crate) struct Uplink(Mutex<[Direction; 2]>);

#[derive(Debug, Default)]
struct Direction {
    next: u64,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    drive: DriveId,
    share: u64,
    seen: Option<u64>,
    next: u64,
}

impl Uplink {
    fn directions(&self) -> std::sync::MutexGuard<'_, [Direction; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, drive: DriveId, share: u32) {
        self.leave(drive);
        for direction in &mut *self.directions() {
            let member = Member { drive, share: u64::from(share.max(1)), seen: None, next: 0 };
            direction.members.push(member);
        }
    }

    fn leave(&self, drive: DriveId) {
        for direction in &mut *self.directions() {
            direction.members.retain(|m| m.drive != drive);
        }
    }

    /// When `bytes` of a drive may pass.
    fn admit(&self, now: Instant, drive: DriveId, write: bool, bytes: u64, mbps: u32) -> u64 {
        let Direction { next, members } = &mut self.directions()[usize::from(write)];
        let cost = bytes * 1000 / u64::from(mbps.max(1));
        if members.iter().all(|m| m.share == members[0].share) {
            return pace(next, now, cost);
        }
        let active = |m: &Member| m.drive == drive || m.seen.is_some_and(|at| at + ACTIVE_NS > now.0);
        let all: u64 = members.iter().filter(|m| active(m)).map(|m| m.share).sum();
        let Some(member) = members.iter_mut().find(|m| m.drive == drive) else { return now.0 };
        member.seen = Some(now.0);
        pace(&mut member.next, now, cost * all / member.share)
    }
}

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
    /// The drive, as the link that it shares knows it.
    uplink: Option<(Arc<Uplink>, DriveId)>,
    /// When the next operation may start, by each limit, nanoseconds.
    next_by_iops: u64,
    next_by_bytes: u64,
    prng: Prng,
}

impl Shaper {
    /// A shaper that does nothing; `seed` decides which operations fail once errors are asked for.
    pub(crate) fn new(seed: u64) -> Self {
        let state = State {
            shape: Shape::default(),
            uplink: None,
            next_by_iops: 0,
            next_by_bytes: 0,
            prng: Prng::new(seed),
        };
        Self { active: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// The link of this number, if this drive shares it.
    pub(crate) fn uplink(&self, number: u32) -> Option<Arc<Uplink>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (link, _) = state.uplink.as_ref().filter(|_| state.shape.uplink == number)?;
        Some(Arc::clone(link))
    }

    /// Behaves so from now on; `link` is the one that other drives share under the shape's number.
    pub(crate) fn set(&self, shape: Shape, drive: DriveId, link: Option<Arc<Uplink>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let active = shape != Shape::default();
        if let Some((old, drive)) = state.uplink.take() {
            old.leave(drive);
        }
        if shape.uplink > 0 && shape.uplink_mbps > 0 {
            let link = link.unwrap_or_default();
            link.join(drive, shape.uplink_share);
            state.uplink = Some((link, drive));
        }
        // Debts of the old limits are forgiven.
        state.next_by_iops = 0;
        state.next_by_bytes = 0;
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
        if let (Some((link, drive)), DriveOpKind::Read | DriveOpKind::Write) = (&state.uplink, op.kind) {
            let write = op.kind == DriveOpKind::Write;
            start = start.max(link.admit(now, *drive, write, op.len, state.shape.uplink_mbps));
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
    use base::{Slice, Token};

    fn op(kind: DriveOpKind, len: u64) -> DriveOp {
        DriveOp { drive: DriveId(0), kind, at: 0, len, data: Slice::default(), fua: false, token: Token(0) }
    }

    fn starts(shape: Shape, len: u64) -> Vec<u64> {
        let shaper = Shaper::new(1);
        shaper.set(shape, DriveId(0), None);
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
        shaper.set(Shape { hang: true, ..Shape::default() }, DriveId(0), None);
        assert!(shaper.holds());
        shaper.set(Shape::default(), DriveId(0), None);
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
        shaper.set(
            Shape { read_errors_ppm: 100_000, write_errors_ppm: 1_000_000, ..Shape::default() },
            DriveId(0),
            None,
        );
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
        shaper.set(Shape { hang: true, gone: true, ..Shape::default() }, DriveId(0), None);
        let gone = Verdict::At(Instant(5), Some(DriveError::Gone));
        assert_eq!(shaper.admit(Instant(5), &op(DriveOpKind::Read, 512)), gone);
    }

    /// Bytes that each of some drives moves in a second over one link of 1,000 MB/s with these shares, while all
    /// have eight operations of 100 kB under way all the time.
    fn over_a_link(shares: &[u32], write: impl Fn(usize) -> bool) -> Vec<u64> {
        let mut link = None;
        let drive = |(i, share): (usize, &u32)| {
            let shaper = Shaper::new(1);
            let shape = Shape { uplink: 7, uplink_mbps: 1000, uplink_share: *share, ..Shape::default() };
            shaper.set(shape, DriveId(i as u16), link.take());
            link = shaper.uplink(7);
            assert!(link.is_some() && shaper.uplink(8).is_none());
            shaper
        };
        let drives: Vec<Shaper> = shares.iter().enumerate().map(drive).collect();
        let mut moved = vec![0; drives.len()];
        let mut due: Vec<(u64, usize)> = (0..8).flat_map(|_| (0..drives.len()).map(|i| (0, i))).collect();
        loop {
            let first = (0..due.len()).min_by_key(|at| due[*at].0).expect("always some");
            let (at, i) = due[first];
            if at > 1_000_000_000 {
                return moved;
            }
            let kind = if write(i) { DriveOpKind::Write } else { DriveOpKind::Read };
            let Verdict::At(end, None) = drives[i].admit(Instant(at), &op(kind, 100_000)) else { panic!() };
            // Time goes on also where the burst lets everything through.
            due[first].0 = end.0.max(at + 1);
            moved[i] += 100_000;
        }
    }

    fn near(moved: u64, mb: u64) -> bool {
        moved.abs_diff(mb * 1_000_000) < mb * 1_000_000 / 20
    }

    #[test]
    fn drives_below_one_link_share_it_equally_and_each_direction_for_itself() {
        let moved = over_a_link(&[1, 1, 1, 1], |_| false);
        assert!(moved.iter().all(|m| near(*m, 250)), "{moved:?}");
        let moved = over_a_link(&[1, 1], |i| i == 0);
        assert!(moved.iter().all(|m| near(*m, 1000)), "{moved:?}");
    }

    #[test]
    fn an_unfair_link_gives_each_its_part_and_one_alone_everything() {
        let moved = over_a_link(&[3, 1, 1], |_| false);
        assert!(near(moved[0], 600) && near(moved[1], 200) && near(moved[2], 200), "{moved:?}");
        assert!(near(over_a_link(&[3], |_| true)[0], 1000));
        // Somebody who only writes takes nothing of the readers' direction.
        let moved = over_a_link(&[3, 1], |i| i == 0);
        assert!(moved.iter().all(|m| near(*m, 1000)), "{moved:?}");
    }

    #[test]
    fn who_leaves_a_link_leaves_it_to_the_others() {
        let [a, b] = [Shaper::new(1), Shaper::new(2)];
        let shape = |share| Shape { uplink: 1, uplink_mbps: 100, uplink_share: share, ..Shape::default() };
        a.set(shape(1), DriveId(0), None);
        b.set(shape(9), DriveId(1), a.uplink(1));
        a.set(Shape::default(), DriveId(0), None);
        assert!(a.uplink(1).is_none() && !a.is_active());
        let link = b.uplink(1).expect("it is still there");
        assert_eq!(link.directions()[0].members.len(), 1);
    }
}
