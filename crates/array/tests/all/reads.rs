//! Reads at the door of an array: which leg they go to, and what happens when one is late.

use crate::bench::{Bench, MIB, leg, members};
use LegState::{InSync, Missing, Rebuilding};
use array::*;
use base::*;

impl Bench {
    fn sleep(&mut self, time: Duration) {
        self.now = self.now + time;
    }
    /// Reads one block after the other; each leg takes its own time. How many reads went to each.
    fn read_many(&mut self, reads: u64, took_us: [u64; LEGS_MAX]) -> [u32; LEGS_MAX] {
        let mut counts = [0; LEGS_MAX];
        for i in 0..reads {
            self.command(1000 + i, Kind::Read, i * 7919 % 200 * MIB, 4096);
            let op = self.io.ops.remove(0);
            counts[op.drive.index()] += 1;
            self.sleep(Duration::from_micros(took_us[op.drive.index()]));
            self.end(op.token.0, Ok(()));
        }
        self.done();
        counts
    }
    /// A read that is late: its operation, and the hedge's. It begins at leg 0.
    fn late_read(&mut self, ticket: u64) -> (DriveOp, DriveOp) {
        self.io.hedges.push(Slice::new(5 << 40, 4096));
        self.command(ticket, Kind::Read, 0, 4096);
        let first = self.io.ops.remove(0);
        self.sleep(Duration::from_millis(60));
        self.timer();
        (first, self.io.ops.remove(0))
    }
}

#[test]
fn equal_legs_share_reads_whatever_their_places() {
    for stride in [4096, MIB, 2 * MIB, 4 * MIB] {
        for depth in [1, 2, 8] {
            let mut b = Bench::new(&[InSync, InSync]);
            let mut counts = [0u32; 2];
            for i in 0..400 {
                // Far from the last one, so that no leg is preferred.
                b.command(i, Kind::Read, (i * stride * 33 + i % 2 * 100 * MIB) % (200 * MIB), 4096);
                if b.io.ops.len() >= depth {
                    let op = b.io.ops.remove(0);
                    counts[op.drive.index()] += 1;
                    b.sleep(Duration::from_micros(90 + i % 20));
                    b.end(op.token.0, Ok(()));
                }
            }
            let (low, high) = (counts[0].min(counts[1]), counts[0].max(counts[1]));
            assert!(low * 10 >= high * 9, "stride {stride}, depth {depth}: {counts:?}");
        }
    }
}

#[test]
fn a_sequential_stream_stays_at_one_leg_until_it_has_depth() {
    let mut b = Bench::new(&[InSync, InSync]);
    for i in 0..50 {
        b.command(i, Kind::Read, i * MIB, MIB);
        let op = b.io.ops.remove(0);
        assert_eq!(op.drive, DriveId(0));
        b.end(op.token.0, Ok(()));
    }
    let mut counts = [0u32; 2];
    for i in 50..150 {
        b.command(i, Kind::Read, i * MIB, MIB);
        if b.io.ops.len() == 8 {
            let op = b.io.ops.remove(0);
            counts[op.drive.index()] += 1;
            b.end(op.token.0, Ok(()));
        }
    }
    assert!(counts[0].abs_diff(counts[1]) < 12, "{counts:?}");
}

#[test]
fn a_slow_leg_gets_fewer_reads_is_called_slow_and_is_found_well_again() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.read_many(100, [100, 100, 0, 0]);
    let counts = b.read_many(2000, [100, 8000, 0, 0]);
    assert!(counts[1] < 40, "{counts:?}");
    let counts = b.read_many(150_000, [100, 8000, 0, 0]);
    assert!(counts[1] >= 12, "it is asked now and then: {counts:?}");
    assert_eq!(b.io.notes, [Note::Judged { leg: 1, verdict: Verdict::Slow, epoch: 1 }]);
    let counts = b.read_many(400_000, [100, 100, 0, 0]);
    assert!(counts[1] > 100_000, "{counts:?}");
    assert_eq!(b.io.notes[1], Note::Judged { leg: 1, verdict: Verdict::Well, epoch: 1 });
    assert_eq!(b.io.notes.len(), 2, "being slow fails nobody");
}

#[test]
fn a_leg_that_is_slow_from_its_first_moment_under_writes_is_read_now_and_then_and_called_slow() {
    let mut b = Bench::new(&[InSync, InSync]);
    // Leg 1 has writes under way all the time, since it takes so long for them; no read would go there.
    let mut writes = vec![];
    for i in 0..8 {
        b.command(i, Kind::Write, i * MIB, 4096);
    }
    while let Some(op) = b.io.ops.pop() {
        let data = op.at >= b.array.geometry().data_at;
        if data && op.drive == DriveId(1) { writes.push(op) } else { b.end(op.token.0, Ok(())) }
    }
    assert_eq!(writes.len(), 8);
    let counts = b.read_many(150_000, [100, 8000, 0, 0]);
    assert!((10..250).contains(&counts[1]), "{counts:?}");
    assert_eq!(b.io.notes, [Note::Judged { leg: 1, verdict: Verdict::Slow, epoch: 1 }]);
}

#[test]
fn a_hiccup_of_a_few_reads_and_what_was_read_at_creation_accuse_nobody() {
    let mut b = Bench::new(&[InSync, InSync]);
    // The first reads of a new mirror, one of them behind something else; then nothing; then the same again.
    for _ in 0..40 {
        b.read_many(2, [90, 60_000, 0, 0]);
        b.read_many(1, [90, 90, 0, 0]);
        b.sleep(Duration::from_secs(7));
    }
    assert_eq!(b.io.notes, [], "too few in any five seconds");
    // Much is read, and now and then one takes long.
    for _ in 0..200 {
        b.read_many(100, [100, 100, 0, 0]);
        b.read_many(4, [100, 200_000, 0, 0]);
    }
    assert_eq!(b.io.notes, [], "the median is as it was");
}

#[test]
fn a_leg_is_called_slow_as_long_as_there_is_something_to_say_it_by() {
    let slow = Note::Judged { leg: 1, verdict: Verdict::Slow, epoch: 1 };
    let stale = Note::Judged { leg: 1, verdict: Verdict::Stale, epoch: 1 };
    let mut b = Bench::new(&[InSync, InSync]);
    b.read_many(250_000, [100, 8000, 0, 0]);
    assert_eq!(b.io.notes, [slow]);
    // Nobody reads any more: it asks to be woken, which ends, and takes the word back.
    let mut woken = 0;
    while b.io.notes.len() == 1 {
        let at = b.array.next_deadline().expect("a flag that would stay has a deadline");
        b.now = b.now.max(at);
        b.timer();
        woken += 1;
        assert!(woken < 10, "the flag stays");
    }
    assert_eq!(b.io.notes, [slow, stale]);
    b.timer();
    assert_eq!(b.array.next_deadline(), None, "idle is idle");
    b.sleep(Duration::from_secs(60));
    b.read_many(250_000, [100, 8000, 0, 0]);
    assert_eq!(b.io.notes, [slow, stale, slow], "it is still as it was");
}

#[test]
fn the_only_leg_is_not_called_slow_and_stops_being_it() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.read_many(3000, [20_000, 0, 0, 0]);
    assert_eq!(b.io.notes, []);
    let mut b = Bench::new(&[InSync, InSync]);
    b.read_many(250_000, [100, 8000, 0, 0]);
    b.array.on_membership(b.now, &members(2, &[Missing, InSync]), &mut b.io);
    b.io.notes.clear();
    b.read_many(3000, [100, 8000, 0, 0]);
    assert_eq!(b.io.notes, [Note::Judged { leg: 1, verdict: Verdict::Stale, epoch: 2 }]);
}

#[test]
fn a_late_read_is_sent_to_another_leg_and_the_first_answer_wins() {
    let mut b = Bench::new(&[InSync, InSync]);
    let (first, hedge) = b.late_read(1);
    assert_eq!((first.drive, hedge.drive), (DriveId(0), DriveId(1)));
    assert_ne!(first.data, hedge.data);
    b.end(hedge.token.0, Ok(()));
    assert_eq!(b.done(), [(1, Status::Good)]);
    assert_eq!(b.io.hedged, [(hedge.data, true)]);
    assert_eq!(b.io.held, [first.token.0 as u32], "the drive still has the first buffer");
    assert!(!b.array.idle());
    b.end(first.token.0, Ok(()));
    b.array.check_invariants();
    assert!(b.array.idle());
    // The other way round: the hedge was not needed.
    b.io.hedged.clear();
    let (first, hedge) = b.late_read(2);
    b.end(first.token.0, Ok(()));
    assert_eq!((b.done(), b.io.hedged.clone()), (vec![(2, Status::Good)], vec![(hedge.data, false)]));
    assert_eq!(b.io.held.last(), Some(&(hedge.token.0 as u32)));
    b.end(hedge.token.0, Err(DriveError::Medium));
    let p = b.array.progress();
    assert_eq!((p.hedges_sent, p.hedges_won), (2, 1));
    b.array.check_invariants();
}

#[test]
fn no_read_is_hedged_before_it_is_far_beyond_what_is_usual() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.read_many(400, [30_000, 30_000, 0, 0]);
    b.io.hedges.push(Slice::new(5 << 40, 4096));
    b.command(1, Kind::Read, 0, 4096);
    b.io.ops.clear();
    for _ in 0..20 {
        b.sleep(Duration::from_millis(2));
        b.timer();
    }
    assert_eq!(b.asked(), "", "it takes 30 ms usually, and 40 have passed");
    b.sleep(Duration::from_millis(60));
    b.timer();
    assert_eq!(b.io.ops.len(), 1);
}

#[test]
fn hedges_go_to_legs_in_sync_only_and_not_where_legs_may_differ() {
    for states in [[InSync, Rebuilding], [InSync, Missing]] {
        let mut b = Bench::new(&states);
        b.run();
        b.io.hedges.push(Slice::new(5 << 40, 4096));
        b.command(1, Kind::Read, 0, 4096);
        b.tags();
        b.sleep(Duration::from_millis(800));
        b.timer();
        let reads = b.io.ops.iter().filter(|op| op.kind == DriveOpKind::Read && op.data.at >= 5 << 40);
        assert_eq!(reads.count(), 0);
    }
    let geometry = Geometry::plan(true, 4 * MIB, 260 * MIB, 65536).expect("fits");
    let dirty = Bitmap::full(geometry.regions());
    let membership = Membership { epoch: 1, legs: vec![leg(0, InSync), leg(1, InSync)] };
    let mut b = Bench::with(geometry, membership, dirty, true);
    b.io.ops.clear();
    b.io.hedges.push(Slice::new(5 << 40, 4096));
    b.command(1, Kind::Read, 100 * MIB, 4096);
    b.sleep(Duration::from_millis(800));
    b.timer();
    assert_eq!(b.io.hedges.len(), 1, "in an unclean region the owner reads, and copies, and answers");
}

#[test]
fn few_reads_are_hedged_and_the_others_wait_for_their_deadline() {
    let mut b = Bench::new(&[InSync, InSync]);
    for round in 0..4 {
        for i in 0..200 {
            b.io.hedges.push(Slice::new(5 << 40, 4096));
            b.command(round * 1000 + i, Kind::Read, i * MIB, 4096);
        }
        let firsts: Vec<DriveOp> = b.io.ops.drain(..).collect();
        b.sleep(Duration::from_millis(300));
        b.timer();
        let hedges: Vec<DriveOp> = b.io.ops.drain(..).collect();
        // 32 at once after quiet times, one in 32 reads otherwise.
        assert!(hedges.len() <= if round == 0 { 32 } else { 7 }, "{}", hedges.len());
        firsts.iter().chain(&hedges).for_each(|op| b.end(op.token.0, Ok(())));
        b.array.check_invariants();
    }
}

#[test]
fn a_leg_whose_losers_miss_their_deadline_is_failed_and_the_last_one_never() {
    let mut b = Bench::new(&[InSync, InSync]);
    let mut hung = vec![];
    for i in 0..80 {
        b.io.hedges.push(Slice::new((5 + i) << 40, 4096));
        b.command(i, Kind::Read, i * 3 * MIB, 4096);
        let op = b.io.ops.remove(0);
        if op.drive == DriveId(1) {
            b.sleep(Duration::from_millis(100));
            b.end(op.token.0, Ok(()));
            continue;
        }
        b.sleep(Duration::from_millis(300));
        b.timer();
        if let Some(hedge) = b.io.ops.pop() {
            b.end(hedge.token.0, Ok(()));
        }
        b.sleep(Duration::from_millis(600));
        b.end(op.token.0, Err(DriveError::TimedOut));
        hung.push(op);
        b.sleep(Duration::from_millis(500));
    }
    let failed = |n: &&Note| matches!(n, Note::LegFailed { .. });
    assert_eq!(
        b.io.notes.iter().filter(failed).collect::<Vec<_>>(),
        [&Note::LegFailed { leg: 0, epoch: 1, error: DriveError::TimedOut }]
    );
    assert!((4..=5).contains(&hung.len()), "{}", hung.len());
    assert!(b.done().iter().all(|d| d.1 == Status::Good));
    b.array.on_membership(b.now, &members(2, &[Missing, InSync]), &mut b.io);
    for op in hung {
        b.array.on_drive_late(b.now, op.token.0 as u32, &mut b.io);
    }
    b.run();
    b.array.check_invariants();
}

#[test]
fn a_read_whose_both_legs_fail_it_ends_in_an_error_once() {
    for (first_error, hedge_error) in [
        (DriveError::Medium, DriveError::Medium),
        (DriveError::TimedOut, DriveError::Medium),
        (DriveError::Medium, DriveError::TimedOut),
    ] {
        for hedge_first in [false, true] {
            let mut b = Bench::new(&[InSync, InSync]);
            let (first, hedge) = b.late_read(1);
            if hedge_first {
                b.end(hedge.token.0, Err(hedge_error));
                b.end(first.token.0, Err(first_error));
            } else {
                b.end(first.token.0, Err(first_error));
                b.end(hedge.token.0, Err(hedge_error));
            }
            assert_eq!(b.done().len(), 1, "{first_error:?} {hedge_error:?} {hedge_first}");
            for (op, error) in [(first, first_error), (hedge, hedge_error)] {
                if error == DriveError::TimedOut {
                    b.array.on_drive_late(b.now, op.token.0 as u32, &mut b.io);
                }
            }
            b.array.check_invariants();
            assert!(b.array.idle());
        }
    }
}

/// A reservation of another says nothing of the blocks: they are read by whoever holds it, if the host comes back. If that may be the
/// other head, nothing is reported: a host with a retry status would wait here, although the other head serves it.
#[test]
fn a_read_that_a_reserved_leg_refused_is_never_reported_as_a_medium_error() {
    use DriveError::{Fenced, Gone, Medium};
    let all = [[Fenced, Fenced], [Fenced, Medium], [Medium, Fenced], [Fenced, Gone]];
    for (errors, shared) in all.into_iter().flat_map(|e| [(e, false), (e, true)]) {
        let mut b = Bench::new(&[InSync, InSync]);
        b.array.on_shared(shared);
        b.command(1, Kind::Read, 0, 4096);
        for error in errors {
            let op = b.io.ops.remove(0);
            b.end(op.token.0, Err(error));
        }
        let status = if shared { Status::Withheld } else { Status::NotReady };
        assert_eq!(b.done(), [(1, status)], "{errors:?}");
        let lost = |n: &Note| matches!(n, Note::MediumLost { .. });
        assert!(!b.io.notes.iter().any(lost), "{errors:?}: {:?}", b.io.notes);
        b.array.check_invariants();
    }
}

#[test]
fn a_leg_that_falls_silent_gets_few_reads_before_the_first_one_has_timed_out() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.read_many(400, [100, 100, 0, 0]);
    let (mut silent, mut flying) = (0, vec![]);
    let began = b.now;
    let mut ticket = 10_000;
    while b.now.since(began) < Duration::from_millis(800) {
        // Sixteen reads are under way all the time; leg 1 answers none of them.
        while flying.len() < 16 {
            b.io.hedges.push(Slice::new((5 + ticket) << 40, 4096));
            b.command(ticket, Kind::Read, ticket * 7919 % 200 * MIB, 4096);
            flying.push(ticket);
            ticket += 1;
        }
        b.sleep(Duration::from_micros(200));
        b.timer();
        for op in core::mem::take(&mut b.io.ops) {
            if op.drive == DriveId(1) {
                silent += 1;
            } else {
                b.end(op.token.0, Ok(()));
            }
        }
        let done = b.done();
        flying.retain(|t| !done.iter().any(|d| d.0 == *t));
        b.io.hedges.clear();
    }
    assert!(silent < 12, "{silent} reads went to the silent leg");
    assert!(b.array.progress().hedges_won >= silent, "and all of them were answered by the other one");
}
