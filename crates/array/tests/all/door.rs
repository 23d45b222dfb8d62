//! The array at its door, one rule at a time. The order of events is the test's; see `model` for chaos.

use crate::bench::{Bench, MIB, leg, members, self_said};
use LegState::{InSync, Missing, Rebuilding};
use array::*;
use base::*;

#[test]
fn a_single_array_passes_everything_through() {
    let mut b = Bench::new(&[InSync]);
    b.command(1, Kind::Write, 4096, 4096);
    b.command(2, Kind::Read, 0, 4096);
    b.command(3, Kind::Flush, 0, 0);
    b.command(4, Kind::WriteZeroes, 0, 100 * MIB);
    b.command(5, Kind::Deallocate, 8192, 4096);
    assert_eq!(b.asked(), "0:w4096 0:r0 0:f 0:z0 0:d8192");
    for (tag, error) in [DriveError::Medium, DriveError::Gone, DriveError::Medium, DriveError::NoSpace]
        .into_iter()
        .enumerate()
    {
        b.end(tag as u64, Err(error));
    }
    b.end(4, Ok(()));
    let medium = Status::Medium;
    let full = Status::NoSpace;
    assert_eq!(b.done(), [(1, medium), (2, Status::NotReady), (3, medium), (4, full), (5, Status::Good)]);
    assert!(b.array.idle());
}

#[test]
fn a_cold_write_waits_for_its_bit_on_all_legs_and_warm_ones_cost_nothing() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Write, 0, 4096);
    assert_eq!(b.asked(), "0:bitmap 1:bitmap");
    b.end(0, Ok(()));
    assert_eq!(b.asked(), "");
    b.end(1, Ok(()));
    assert_eq!(b.asked(), "0:w0 1:w0");
    b.end(0, Ok(()));
    assert_eq!(b.done(), []);
    b.end(1, Ok(()));
    assert_eq!(b.done(), [(1, Status::Good)]);
    for i in 0..1000 {
        b.command(i, Kind::Write, i % 250 * 4096, 4096);
        assert_eq!(b.run(), 2);
    }
    let p = b.array.progress();
    assert_eq!((p.warm_writes, p.cold_writes, p.bitmap_sets), (1000, 1, 1));
}

#[test]
fn cold_writes_of_one_block_share_the_next_bitmap_write() {
    let mut b = Bench::new(&[InSync, InSync]);
    for i in 0..8 {
        b.command(i, Kind::Write, i * 16 * MIB, 4096);
    }
    assert_eq!(b.run(), 2 + 2 + 8 * 2);
    assert_eq!(b.array.progress().bitmap_sets, 2);
}

#[test]
fn overlapping_writes_take_turns_and_others_do_not_wait() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.command(2, Kind::Write, 0, 8192);
    b.command(3, Kind::Write, 4096, 4096);
    b.command(4, Kind::Write, 8192, 4096);
    assert_eq!(b.asked(), "0:w0 1:w0 0:w8192 1:w8192");
    b.end(1, Ok(()));
    b.end(0, Ok(()));
    assert_eq!(b.asked(), "0:w4096 1:w4096");
}

#[test]
fn a_lost_leg_is_on_record_before_the_write_is_answered() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.done();
    b.command(2, Kind::Write, 0, 4096);
    let tags = b.tags();
    b.end(tags[1], Err(DriveError::Other(5)));
    assert_eq!(b.io.notes, [Note::LegFailed { leg: 1, epoch: 1, error: DriveError::Other(5) }]);
    b.end(tags[0], Ok(()));
    b.command(3, Kind::Write, 8192, 4096);
    assert_eq!(b.asked(), "0:w8192");
    b.end(0, Ok(()));
    b.command(4, Kind::Flush, 0, 0);
    assert_eq!(b.asked(), "0:f");
    b.end(0, Ok(()));
    assert_eq!(b.done(), []);
    b.array.on_membership(b.now, &members(2, &[InSync, Missing]), &mut b.io);
    b.command(5, Kind::Write, 16384, 4096);
    b.run();
    assert_eq!(b.done(), []);
    b.array.on_recorded(b.now, 1, &mut b.io);
    assert_eq!(b.done(), []);
    b.array.on_recorded(b.now, 2, &mut b.io);
    let mut done = b.done();
    done.sort_by_key(|d| d.0);
    assert_eq!(done, [2, 3, 4, 5].map(|t| (t, Status::Good)));
    b.command(6, Kind::Write, 0, 4096);
    b.run();
    assert_eq!(b.done(), [(6, Status::Good)]);
}

#[test]
fn a_write_whose_loss_nothing_takes_on_record_ends_in_not_ready_until_something_does() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.done();
    b.command(2, Kind::Write, 0, 4096);
    let tags = b.tags();
    b.end(tags[1], Err(DriveError::Other(5)));
    b.end(tags[0], Ok(()));
    b.array.on_membership(b.now, &members(2, &[InSync, Missing]), &mut b.io);
    b.command(3, Kind::Write, 8192, 4096);
    assert_eq!(b.done(), []);
    b.array.on_loss_not_on_record(b.now, &mut b.io);
    assert_eq!(b.done(), [(2, Status::NotReady)]);
    b.run();
    b.command(4, Kind::Flush, 0, 0);
    b.run();
    assert_eq!(b.done(), [(3, Status::NotReady), (4, Status::NotReady)]);
    b.array.on_recorded(b.now, 2, &mut b.io);
    b.command(5, Kind::Write, 8192, 4096);
    b.run();
    assert_eq!(b.done(), [(5, Status::Good)]);
}

#[test]
fn a_write_that_missed_a_leg_of_whose_loss_others_know_nothing_is_never_answered_early() {
    let mut b = Bench::new(&[InSync, InSync, InSync]);
    b.array.on_membership(b.now, &members(2, &[InSync, InSync, Missing]), &mut b.io);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.array.on_loss_not_on_record(b.now, &mut b.io);
    assert_eq!(b.done(), [(1, Status::NotReady)]);
    b.command(2, Kind::Write, 0, 4096);
    let tags = b.tags();
    b.end(tags[1], Err(DriveError::Other(5)));
    b.end(tags[0], Ok(()));
    assert_eq!(b.done(), []);
    b.array.on_recorded(b.now, 2, &mut b.io);
    assert_eq!(b.done(), []);
    b.array.on_membership(b.now, &members(3, &[InSync, Missing, Missing]), &mut b.io);
    b.array.on_recorded(b.now, 3, &mut b.io);
    assert_eq!(b.done(), [(2, Status::Good)]);
}

#[test]
fn the_last_leg_is_never_lost_and_says_no() {
    let mut b = Bench::new(&[InSync, Missing]);
    for (ticket, error, status) in [
        (1, DriveError::Medium, Status::Medium),
        (2, DriveError::Gone, Status::NotReady),
        (3, DriveError::NoSpace, Status::NoSpace),
        (4, DriveError::Fenced, Status::NotReady),
    ] {
        b.command(ticket, Kind::Write, 0, 4096);
        if ticket == 1 {
            let tags = b.tags();
            b.end(tags[0], Ok(()));
        }
        let tags = b.tags();
        b.end(tags[0], Err(error));
        assert_eq!(b.done(), [(ticket, status)]);
    }
    assert_eq!(b.io.notes, []);
}

#[test]
fn a_leg_that_took_what_the_last_one_refused_is_not_blamed_for_it() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.array.on_membership(b.now, &members(2, &[InSync, Rebuilding]), &mut b.io);
    b.run();
    b.command(0, Kind::Write, 0, 4096);
    b.run();
    b.done();
    b.io.notes.clear();
    b.command(1, Kind::Write, 0, 4096);
    let tags = b.tags();
    b.end(tags[0], Err(DriveError::TimedOut));
    b.end(tags[1], Ok(()));
    assert_eq!(b.io.notes, [Note::LegAhead { leg: 1, epoch: 2, last: 0, error: Some(DriveError::TimedOut) }]);
}

#[test]
fn a_leg_that_refused_what_another_took_goes_when_that_one_comes_in_sync() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.array.on_membership(b.now, &members(2, &[InSync, Rebuilding]), &mut b.io);
    b.command(0, Kind::Write, 0, 4096);
    b.run();
    b.done();
    b.command(1, Kind::Write, 0, 4096);
    let tags = b.tags();
    // The last leg in sync at that moment: it may not be lost.
    b.end(tags[0], Err(DriveError::Medium));
    let lost = |b: &Bench| {
        let lost = |n: &&Note| matches!(n, Note::LegFailed { .. });
        b.io.notes.iter().filter(lost).cloned().collect::<Vec<_>>()
    };
    assert_eq!(lost(&b), []);
    b.array.on_membership(b.now, &members(3, &[InSync, InSync]), &mut b.io);
    b.end(tags[1], Ok(()));
    assert_eq!(lost(&b), [Note::LegFailed { leg: 0, epoch: 3, error: DriveError::Medium }]);
    assert_eq!(b.done(), [], "the loss is not on record yet");
    b.array.on_membership(b.now, &members(4, &[Missing, InSync]), &mut b.io);
    b.array.on_recorded(b.now, 4, &mut b.io);
    assert_eq!(b.done(), [(1, Status::Good)]);
}

#[test]
fn without_any_leg_hosts_are_asked_to_retry() {
    let mut b = Bench::new(&[Missing, Missing]);
    for (i, kind) in [Kind::Read, Kind::Write, Kind::WriteZeroes, Kind::Deallocate].into_iter().enumerate() {
        b.command(i as u64, kind, 0, 4096);
    }
    b.command(4, Kind::Flush, 0, 0);
    assert_eq!(b.asked(), "");
    assert_eq!(b.done(), [0, 1, 2, 3, 4].map(|t| (t, Status::NotReady)));
}

#[test]
fn a_given_up_write_on_the_last_leg_keeps_its_range_until_it_is_over() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.done();
    b.command(2, Kind::Write, 0, 8192);
    b.command(3, Kind::Write, 4096, 8192);
    b.command(4, Kind::Write, 8192, 4096);
    let hung = b.tags()[0];
    b.end(hung, Err(DriveError::TimedOut));
    // Hosts do not wait for a drive that may keep it for ever; nothing of what waited has started.
    assert_eq!(b.done(), [(2, Status::NotReady), (3, Status::NotReady)]);
    b.run();
    assert_eq!(b.done(), [(4, Status::Good)]);
    b.command(5, Kind::Write, 0, 4096);
    assert_eq!(b.done(), [(5, Status::NotReady)]);
    b.command(6, Kind::Write, 12288, 4096);
    b.run();
    assert_eq!(b.done(), [(6, Status::Good)]);
    assert_eq!(b.array.ops_on(0), 1);
    b.array.on_drive_late(b.now, hung as u32, &mut b.io);
    b.command(7, Kind::Write, 0, 8192);
    b.run();
    assert_eq!(b.done(), [(7, Status::Good)]);
}

/// Seed 5103: tickets are given out again once they are answered, also beside an operation that is late.
#[test]
fn an_abort_finds_the_command_that_waits_not_an_answered_one_of_the_same_ticket() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.done();
    b.command(2, Kind::Write, 0, 4096);
    let hung = b.tags()[0];
    b.end(hung, Err(DriveError::TimedOut));
    assert_eq!(b.done(), [(2, Status::NotReady)]);
    // It waits for the bit of another region.
    b.command(2, Kind::Write, 64 * MIB, 4096);
    assert_eq!(b.asked(), "0:bitmap");
    b.array.on_abort(b.now, Ticket(2), &mut b.io);
    assert_eq!(b.done(), [(2, Status::Aborted)]);
    b.array.on_drive_late(b.now, hung as u32, &mut b.io);
    b.run();
    assert_eq!(b.done(), [], "an aborted write started");
}

#[test]
fn a_read_moves_to_another_leg_and_the_bad_blocks_are_healed() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Read, 0, 4096);
    assert_eq!(b.asked(), "0:r0");
    b.end(0, Err(DriveError::Medium));
    assert_eq!(b.asked(), "1:r0");
    b.end(0, Ok(()));
    assert_eq!(b.done(), [(1, Status::Good)]);
    assert_eq!(b.asked(), "0:bitmap 1:bitmap");
    b.end(1, Ok(()));
    b.end(0, Ok(()));
    assert_eq!(b.asked(), "1:r0");
    b.end(0, Ok(()));
    assert_eq!(b.asked(), "0:w0");
    b.end(0, Ok(()));
    assert_eq!(b.io.notes, [Note::Healed { at: 0, len: 4096, leg: 0 }]);
    b.command(2, Kind::Read, 4096, 4096);
    let tag = b.tags()[0];
    b.end(tag, Err(DriveError::Medium));
    let tag = b.tags()[0];
    b.end(tag, Err(DriveError::Medium));
    assert_eq!(b.done(), [(2, Status::Medium)]);
    assert_eq!(b.io.notes[1], Note::MediumLost { at: 4096, len: 4096 });
}

#[test]
fn a_given_up_read_goes_on_only_in_another_buffer() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Read, 0, 4096);
    let tag = b.tags()[0];
    b.end(tag, Err(DriveError::TimedOut));
    assert_eq!(b.done(), [(1, Status::NotReady)]);
    b.command(2, Kind::Read, 0, 4096);
    let old = b.tags()[0];
    b.io.spare = Some(Slice::new(7 << 40, 4096));
    b.end(old, Err(DriveError::TimedOut));
    assert_eq!(b.io.ops[0].data, Slice::new(7 << 40, 4096));
    assert_ne!(b.io.ops[0].token.0, old, "a tag is not used again while the kernel holds it");
}

#[test]
fn a_leg_that_hangs_four_reads_is_failed() {
    let mut b = Bench::new(&[InSync, Missing, InSync]);
    for i in 0..12 {
        b.io.spare = Some(Slice::new(7 << 40, 4096));
        b.command(i, Kind::Read, 0, 4096);
        let first = b.io.ops[0];
        let tag = b.tags()[0];
        b.end(tag, if first.drive == DriveId(0) { Err(DriveError::TimedOut) } else { Ok(()) });
        b.run();
    }
    assert_eq!(b.io.notes, [Note::LegFailed { leg: 0, epoch: 1, error: DriveError::TimedOut }]);
    assert!(b.done().iter().all(|d| d.1 == Status::Good));
}

/// Another shard may have written to the leg since it joined, have called it synced, and seen it in sync by the time of the answer.
#[test]
fn a_flush_covers_a_leg_that_joins_while_it_is_under_way() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.command(1, Kind::Flush, 0, 0);
    let flush = b.io.ops.remove(0);
    assert_eq!((flush.kind, flush.drive), (DriveOpKind::Flush, DriveId(0)));
    b.array.on_membership(b.now, &members(2, &[InSync, Rebuilding]), &mut b.io);
    b.end(flush.token.0, Ok(()));
    let joined = |op: &DriveOp| (op.kind, op.drive) == (DriveOpKind::Flush, DriveId(1));
    assert!(b.io.ops.iter().any(joined));
    assert_eq!(b.done(), [], "the leg that joined may hold in its cache what the flush covers");
    b.run();
    assert_eq!(b.done(), [(1, Status::Good)]);
}

#[test]
fn a_flush_goes_to_a_rebuilding_leg_too_and_a_read_does_not() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.array.on_membership(b.now, &members(2, &[InSync, Rebuilding]), &mut b.io);
    b.run();
    b.command(1, Kind::Flush, 0, 0);
    assert_eq!(b.asked(), "0:f 1:f");
    for i in 0..20 {
        b.command(10 + i, Kind::Read, i * MIB, 4096);
    }
    assert!(b.io.ops.iter().all(|op| op.drive == DriveId(0)));
}

#[test]
fn marks_stay_until_the_leg_comes_and_are_reported_when_durable() {
    let mut b = Bench::new(&[InSync]);
    assert_eq!(b.asked(), "");
    let geometry = Geometry::plan(true, 4 * MIB, 260 * MIB, 65536).expect("fits");
    let legs = vec![leg(0, InSync), None];
    let mut b = Bench::with(geometry, Membership { epoch: 1, legs }, Bitmap::new(geometry.regions()), false);
    b.array.mark_all_dirty(b.now, 7, &mut b.io);
    let tags = b.tags();
    assert_eq!(tags.len(), 16);
    for tag in &tags[..15] {
        b.end(*tag, Ok(()));
    }
    assert_eq!(b.io.notes, []);
    b.end(tags[15], Ok(()));
    assert_eq!(b.io.notes, [Note::AllDirty { number: 7 }]);
    b.now = b.now + Duration::from_secs(60);
    b.timer();
    assert_eq!(b.asked(), "");
    b.array.unmark();
    b.now = b.now + Duration::from_secs(2);
    b.timer();
    assert_eq!(b.asked(), "0:f");
}

/// A write that was begun for a mark which was given up may lack what was cleared since.
#[test]
fn a_mark_is_reported_under_its_number_and_not_by_writes_for_an_earlier_one() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.array.mark_all_dirty(b.now, 1, &mut b.io);
    let earlier = b.tags();
    b.array.unmark();
    b.array.mark_all_dirty(b.now, 2, &mut b.io);
    for tag in earlier {
        b.end(tag, Ok(()));
    }
    assert_eq!(b.io.notes, []);
    b.run();
    assert_eq!(b.io.notes, [Note::AllDirty { number: 2 }]);
}

#[test]
fn what_a_returning_legs_bitmap_says_is_copied_too() {
    let mut b = Bench::new(&[InSync, Missing]);
    let mut own = Bitmap::new(b.array.geometry().regions());
    own.set(7);
    b.array.add_dirty(b.now, &own, &mut b.io);
    b.array.on_membership(b.now, &members(2, &[InSync, Rebuilding]), &mut b.io);
    b.array.pace(Pace { floor: 1 << 40, ceiling: 0, quiet: Duration::from_millis(0) });
    let mut copied = 0;
    for _ in 0..100 {
        for op in core::mem::take(&mut b.io.ops) {
            let data = op.kind == DriveOpKind::Write && op.at >= b.array.geometry().data_at;
            copied += if data { op.len } else { 0 };
            b.end(op.token.0, Ok(()));
        }
        b.timer();
    }
    assert_eq!(copied, MIB);
}

#[test]
fn deallocate_leaves_zeroes_and_is_written_where_a_leg_does_not_promise_that() {
    let geometry = Geometry::plan(true, 4 * MIB, 260 * MIB, 65536).expect("fits");
    let legs = vec![leg(0, InSync), leg(9, InSync)];
    let dirty = Bitmap::new(geometry.regions());
    let mut b = Bench::with(geometry, Membership { epoch: 1, legs }, dirty, false);
    b.command(1, Kind::Deallocate, 0, 4096);
    b.end(0, Ok(()));
    b.end(1, Ok(()));
    assert_eq!(b.asked(), "0:bitmap 9:bitmap 0:z0 9:z0");
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Deallocate, 0, 4096);
    b.end(0, Ok(()));
    b.end(1, Ok(()));
    assert_eq!(b.asked(), "0:bitmap 1:bitmap 0:d0 1:d0");
}

#[test]
fn bits_go_after_a_while_behind_a_flush_and_not_while_a_leg_is_missing() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    for _ in 0..12 {
        b.now = b.now + Duration::from_millis(400);
        b.timer();
        assert_eq!(b.asked(), "");
    }
    b.now = b.now + Duration::from_secs(2);
    b.timer();
    assert_eq!(b.asked(), "0:f 1:f");
    b.end(0, Ok(()));
    assert_eq!(b.asked(), "");
    b.end(1, Ok(()));
    assert_eq!(b.asked(), "0:bitmap 1:bitmap");
    b.end(0, Ok(()));
    b.end(1, Ok(()));
    assert!(b.array.idle() && b.array.next_deadline().is_none(), "an idle array sleeps");
    assert_eq!(b.array.progress().dirty_regions, 0);

    let mut b = Bench::new(&[InSync, Missing]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.now = b.now + Duration::from_secs(100);
    b.timer();
    assert_eq!((b.asked(), b.array.next_deadline()), (String::new(), None));
}

#[test]
fn a_returning_leg_gets_what_changed_and_no_more() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.command(1, Kind::Write, 5 * MIB, 4096);
    b.run();
    b.array.on_membership(b.now, &members(2, &[InSync, Rebuilding]), &mut b.io);
    let mut copied = 0;
    let mut flushed = false;
    while let Some(op) = b.io.ops.pop() {
        let bitmap = op.kind == DriveOpKind::Write && op.at < b.array.geometry().data_at;
        match op.kind {
            DriveOpKind::Write if !bitmap => {
                assert_eq!((op.drive, flushed), (DriveId(1), false));
                copied += op.len;
            }
            DriveOpKind::Flush => {
                assert_eq!(op.drive, DriveId(1));
                flushed = true;
            }
            DriveOpKind::Read => assert_eq!(op.drive, DriveId(0)),
            DriveOpKind::Write | DriveOpKind::WriteZeroes | DriveOpKind::Deallocate => {}
        }
        b.end(op.token.0, Ok(()));
        if b.io.ops.is_empty() && !flushed {
            b.now = b.now + Duration::from_millis(50);
            b.timer();
        }
    }
    assert_eq!((copied, flushed), (MIB, true));
    assert_eq!(b.io.notes, [Note::Synced { leg: 1, epoch: 2 }]);
    let p = b.array.progress();
    assert_eq!((p.resync_done, p.resync_total), (MIB, MIB));
}

#[test]
fn resync_keeps_to_its_pace_while_hosts_are_busy() {
    let mut b = Bench::new(&[InSync, Missing]);
    b.array.mark_all_dirty(b.now, 7, &mut b.io);
    b.run();
    assert_eq!(b.io.notes, [Note::AllDirty { number: 7 }]);
    b.array.pace(Pace { floor: MIB, ceiling: 0, quiet: Duration::from_millis(20) });
    b.command(1, Kind::Read, 0, 4096);
    b.run();
    b.array.on_membership(b.now, &members(2, &[InSync, Rebuilding]), &mut b.io);
    b.run();
    let start = b.now;
    while b.now.since(start) < Duration::from_secs(2) {
        b.now = b.now + Duration::from_millis(5);
        b.command(2, Kind::Read, 0, 4096);
        b.timer();
        b.run();
    }
    let done = b.array.progress().resync_done;
    assert!((3 * MIB / 2..=5 * MIB / 2).contains(&done), "{done} bytes in two seconds at 1 MiB/s");
}

#[test]
fn what_is_read_after_a_crash_is_forced_on_every_leg_before_the_answer() {
    let geometry = Geometry::plan(true, 4 * MIB, 260 * MIB, 65536).expect("fits");
    let mut dirty = Bitmap::new(geometry.regions());
    dirty.set(3);
    let mut b = Bench::with(geometry, members(1, &[InSync, InSync]), dirty, true);
    b.command(1, Kind::Read, 3 * MIB + 512 * 1024, 4096);
    let mut forced = vec![];
    while b.io.done.is_empty() {
        // Pieces are copied beside it: they are longer.
        for op in core::mem::take(&mut b.io.ops) {
            if op.kind == DriveOpKind::Write && op.len == 4096 && op.at >= geometry.data_at {
                assert!(b.io.done.is_empty());
                forced.push((op.drive, op.fua));
            }
            b.end(op.token.0, Ok(()));
        }
        b.now = b.now + Duration::from_millis(50);
        b.timer();
    }
    forced.sort_by_key(|(drive, _)| drive.index());
    // The one that it was read from, too: its cache may hold it since before the crash.
    assert_eq!(forced, [(DriveId(0), true), (DriveId(1), true)]);
    assert_eq!(b.done(), [(1, Status::Good)]);
}

#[test]
fn a_region_is_clean_after_a_crash_when_the_caches_were_flushed() {
    let geometry = Geometry::plan(true, 4 * MIB, 260 * MIB, 65536).expect("fits");
    let mut dirty = Bitmap::new(geometry.regions());
    dirty.set(3);
    let mut b = Bench::with(geometry, members(1, &[InSync, InSync]), dirty, true);
    let (mut copied, mut flushed) = (0, vec![]);
    while flushed.len() < 2 {
        for op in core::mem::take(&mut b.io.ops) {
            match op.kind {
                DriveOpKind::Write if op.at >= geometry.data_at => {
                    assert!(flushed.is_empty(), "nothing is copied behind the flush");
                    copied += op.len;
                }
                DriveOpKind::Flush => flushed.push(op.drive),
                DriveOpKind::Write | DriveOpKind::Read => {}
                DriveOpKind::WriteZeroes | DriveOpKind::Deallocate => unreachable!("a copy is a write"),
            }
            assert_eq!(b.io.notes, []);
            b.end(op.token.0, Ok(()));
        }
        b.now = b.now + Duration::from_millis(50);
        b.timer();
    }
    assert_eq!((copied, flushed), (MIB, vec![DriveId(0), DriveId(1)]));
    assert_eq!(b.io.notes, [Note::CrashClean { epoch: 1 }]);
    b.command(1, Kind::Read, 3 * MIB, 4096);
    assert_eq!(b.run(), 1, "from then on a read is a read");
}

#[test]
fn after_a_crash_a_dirty_read_makes_the_legs_the_same_first() {
    let geometry = Geometry::plan(true, 4 * MIB, 260 * MIB, 65536).expect("fits");
    let mut dirty = Bitmap::new(geometry.regions());
    dirty.set(3);
    let mut b = Bench::with(geometry, members(1, &[InSync, InSync]), dirty, true);
    assert!(!b.io.ops.is_empty(), "the crash resync begins by itself");
    b.command(1, Kind::Read, 4 * MIB, 4096);
    assert!(b.done().is_empty());
    let clean =
        b.io.ops
            .iter()
            .filter(|op| op.kind == DriveOpKind::Read && op.at == geometry.data_at + 4 * MIB)
            .count();
    assert_eq!(clean, 1, "a clean region is read at once");
    b.command(2, Kind::Read, 3 * MIB + 512 * 1024, 4096);
    let mut order = Vec::new();
    while !b.io.ops.is_empty() || b.done().is_empty() && order.len() < 1000 {
        for op in core::mem::take(&mut b.io.ops) {
            order.push(self_said(&geometry, &op));
            b.end(op.token.0, Ok(()));
            if let Some(at) = b.io.done.iter().position(|d| d.0 == 2) {
                let place = (3 * MIB + 512 * 1024).to_string();
                assert!(order.iter().any(|o| o.contains(&format!("w{place}"))), "answered before the copy");
                assert_eq!(b.io.done.remove(at).1, Status::Good);
            }
        }
        b.now = b.now + Duration::from_millis(30);
        b.timer();
    }
    assert!(b.io.notes.contains(&Note::CrashClean { epoch: 1 }));
    b.array.on_clean(b.now, &mut b.io);
    assert!(b.array.read_is_local(3 * MIB, 4096));
}

#[test]
fn an_abort_stops_what_has_not_started_and_nothing_else() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Write, 0, 4096);
    b.array.on_abort(b.now, Ticket(1), &mut b.io);
    b.array.on_abort(b.now, Ticket(77), &mut b.io);
    assert_eq!(b.done(), [(1, Status::Aborted)]);
    assert_eq!(b.run(), 2, "the bit is set, the data are not written");
    b.command(2, Kind::Write, 0, 4096);
    b.array.on_abort(b.now, Ticket(2), &mut b.io);
    assert_eq!(b.done(), []);
    b.run();
    assert_eq!(b.done(), [(2, Status::Good)]);
}

#[test]
#[should_panic(expected = "crosses the end of its region")]
fn a_change_across_regions_is_the_heads_mistake() {
    Bench::new(&[InSync, InSync]).command(1, Kind::Write, MIB - 4096, 8192);
}

#[test]
#[should_panic(expected = "beyond the end")]
fn a_command_beyond_the_end_is_the_heads_mistake() {
    let mut b = Bench::new(&[InSync]);
    let end = b.array.geometry().data_bytes;
    b.command(1, Kind::Read, end - 4096, 8192);
}

#[test]
fn how_far_legs_are_made_the_same_is_reported_from_the_first_piece_on() {
    let geometry = Geometry::plan(true, 4 * MIB, 260 * MIB, 65536).expect("fits");
    let membership = Membership { epoch: 1, legs: vec![leg(0, InSync), leg(1, InSync)] };
    let mut b = Bench::with(geometry, membership, Bitmap::full(geometry.regions()), true);
    let left = |b: &Bench| (b.array.progress().crash_left, b.array.progress().crash_total);
    assert_eq!(left(&b), (geometry.data_bytes, geometry.data_bytes));
    let mut before = geometry.data_bytes;
    for _ in 0..100_000 {
        for op in core::mem::take(&mut b.io.ops) {
            b.end(op.token.0, Ok(()));
        }
        let now = left(&b).0;
        let step = before.checked_sub(now).expect("it never grows");
        assert!(step <= geometry.region_bytes.min(4 * MIB), "a piece after the other: {step}");
        before = now;
        match b.array.next_deadline() {
            Some(at) => b.now = b.now.max(at),
            None if b.io.ops.is_empty() => break,
            None => {}
        }
        b.timer();
    }
    assert_eq!(left(&b), (0, geometry.data_bytes));
}

#[test]
fn a_last_leg_that_hangs_on_flush_alone_says_no_each_time_its_deadline_comes() {
    let mut b = Bench::new(&[InSync, Missing]);
    for ticket in 1..9 {
        b.command(ticket, Kind::Flush, 0, 0);
    }
    let hung = b.tags();
    assert_eq!(hung.len(), 8, "each host's flush is at the drive, none waits behind another");
    for tag in hung {
        b.end(tag, Err(DriveError::TimedOut));
    }
    assert_eq!(b.done(), (1..9).map(|t| (t, Status::NotReady)).collect::<Vec<_>>());
}

#[test]
fn where_memory_is_missed_an_array_whose_last_leg_hangs_takes_no_more_until_it_lets_go() {
    for legs in [&[InSync][..], &[InSync, Missing]] {
        let mut b = Bench::new(legs);
        b.command(1, Kind::Write, 0, 4096);
        b.run();
        b.command(2, Kind::Write, 0, 4096);
        let hung = b.tags()[0];
        b.end(hung, Err(DriveError::TimedOut));
        b.done();
        b.array.spare_memory(true);
        b.command(3, Kind::Write, 4096, 4096);
        b.command(4, Kind::Read, 4096, 4096);
        assert_eq!(b.asked(), "");
        assert_eq!(b.done(), [(3, Status::NotReady), (4, Status::NotReady)]);
        b.array.on_drive_late(b.now, hung as u32, &mut b.io);
        b.command(5, Kind::Write, 4096, 4096);
        assert_eq!(b.asked(), "0:w4096");
    }
}

#[test]
fn where_memory_is_missed_a_leg_that_hangs_beside_a_good_one_keeps_nobody_away() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.command(2, Kind::Read, 0, 4096);
    let hung = b.tags()[0];
    b.io.spare = Some(Slice::new(7 << 40, 4096));
    b.end(hung, Err(DriveError::TimedOut));
    b.run();
    b.done();
    b.array.spare_memory(true);
    b.command(3, Kind::Write, 4096, 4096);
    assert_eq!(b.asked(), "0:w4096 1:w4096");
}

#[test]
fn where_memory_is_missed_a_leg_that_keeps_some_goes_out_and_never_the_last() {
    let mut b = Bench::new(&[InSync, InSync]);
    assert!(!b.array.put_out_hung(b.now, &mut b.io));
    b.command(1, Kind::Read, 0, 4096);
    let hung = b.tags()[0];
    b.io.spare = Some(Slice::new(7 << 40, 4096));
    b.end(hung, Err(DriveError::TimedOut));
    assert_eq!(b.io.notes, []);
    assert!(b.array.put_out_hung(b.now, &mut b.io));
    assert_eq!(b.io.notes, [Note::LegFailed { leg: 0, epoch: 1, error: DriveError::TimedOut }]);
    assert!(!b.array.put_out_hung(b.now, &mut b.io), "it is out already");
    let other = b.tags()[0];
    b.end(other, Err(DriveError::TimedOut));
    assert!(!b.array.put_out_hung(b.now, &mut b.io));
    assert_eq!(b.io.notes.len(), 1, "the last leg stays");
}

#[test]
fn a_last_leg_that_answers_nothing_is_tried_with_one_short_command_at_a_time() {
    for legs in [&[InSync][..], &[InSync, Missing]] {
        let mut b = Bench::new(legs);
        b.command(1, Kind::Write, 0, 4096);
        b.run();
        b.now = b.now + Duration::from_secs(1);
        b.command(2, Kind::Write, 0, 4096);
        let hung = b.tags()[0];
        b.now = b.now + Duration::from_secs(3);
        b.end(hung, Err(DriveError::TimedOut));
        b.done();
        b.command(3, Kind::Write, 4096, 4096);
        b.command(4, Kind::Read, 4096, 4096);
        assert_eq!(b.done(), [(3, Status::NotReady), (4, Status::NotReady)]);
        b.now = b.now + Duration::from_secs(1);
        b.command(5, Kind::Read, MIB, 128 << 10);
        assert_eq!(b.done(), [(5, Status::NotReady)], "it is too long");
        b.command(6, Kind::Read, 4096, 4096);
        b.command(7, Kind::Read, 4096, 4096);
        assert_eq!(b.done(), [(7, Status::NotReady)]);
        let tried = b.tags();
        assert_eq!(tried.len(), 1);
        b.now = b.now + Duration::from_secs(3);
        b.end(tried[0], Err(DriveError::TimedOut));
        b.done();
        // It has been silent for four seconds, and is tried after as long again.
        b.now = b.now + Duration::from_secs(3);
        b.command(8, Kind::Read, 4096, 4096);
        assert_eq!(b.done(), [(8, Status::NotReady)]);
        b.array.on_drive_late(b.now, hung as u32, &mut b.io);
        b.command(9, Kind::Read, 4096, 4096);
        b.run();
        assert_eq!(b.done(), [(9, Status::Good)], "it answers again");
    }
}

/// Seed 206 of `scarce`: two shards lost different legs, and the one that was kept hung.
#[test]
fn a_write_does_not_wait_for_the_loss_of_a_leg_that_is_kept() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.command(1, Kind::Write, 0, 4096);
    b.run();
    b.done();
    b.command(2, Kind::Write, 0, 4096);
    b.command(3, Kind::Write, 4096, 4096);
    let tags = b.tags();
    b.end(tags[0], Err(DriveError::TimedOut));
    assert_eq!(b.io.notes, [Note::LegFailed { leg: 0, epoch: 1, error: DriveError::TimedOut }]);
    // Another shard lost the other one first: this one stays.
    b.array.on_membership(b.now, &members(2, &[InSync, Missing]), &mut b.io);
    b.array.on_recorded(b.now, 2, &mut b.io);
    for tag in &tags[1..] {
        b.end(*tag, Err(DriveError::TimedOut));
    }
    assert_eq!(b.done(), [(2, Status::NotReady), (3, Status::NotReady)]);
}
