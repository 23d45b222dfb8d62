//! Uncleared pieces at the door: what is read, what a first write does, when marks count. See `model` for chaos.

use super::bench::{Bench, MAP_AT, MIB, members};
use LegState::{InSync, Missing, Rebuilding};
use array::*;
use base::*;

const PIECE: u64 = 64 << 10;

/// On used drives, with the background kept away.
fn used(states: &[LegState]) -> Bench {
    let mut b = Bench::used(states);
    b.array.pace(Pace { floor: 1, ceiling: 1, quiet: Duration::ZERO });
    b.run();
    b
}

#[test]
fn what_was_never_written_reads_as_zeroes_without_the_drives() {
    let mut b = used(&[InSync, InSync]);
    let at = 200 * MIB;
    b.command(1, Kind::Read, at, 4096);
    b.command(2, Kind::WriteZeroes, at, 3 * PIECE);
    b.command(3, Kind::Deallocate, at, 4096);
    assert_eq!(b.asked(), "");
    assert_eq!(b.done(), [(1, Status::Good), (2, Status::Good), (3, Status::Good)]);
    assert_eq!(b.io.zeroed, [1]);
}

#[test]
fn where_another_head_may_write_a_drive_is_asked_before_zeroes_are_read() {
    let mut b = used(&[InSync, InSync]);
    b.array.on_shared(true);
    let at = 200 * MIB;
    b.command(1, Kind::Read, at, 4096);
    assert_eq!((b.asked_and_ended().as_str(), b.done()), ("0:r209715200", vec![(1, Status::Good)]));
    assert_eq!(b.io.zeroed, [1]);
    // It is shut out: nothing that it holds for zeroes is.
    b.command(2, Kind::Read, at, 4096);
    for leg in [0, 1] {
        assert_eq!(b.done(), vec![]);
        assert_eq!(b.asked_and_failed(DriveError::Fenced), format!("{leg}:r209715200"));
    }
    assert_eq!((b.done(), b.io.zeroed.clone()), (vec![(2, Status::Withheld)], vec![1]));
    for (ticket, kind) in [(3, Kind::WriteZeroes), (4, Kind::Deallocate)] {
        b.command(ticket, kind, at, 4096);
        assert_eq!(b.done(), vec![]);
        b.run();
        assert_eq!(b.done(), vec![(ticket, Status::Good)]);
    }
}

#[test]
fn a_drive_that_cannot_read_what_was_never_written_is_no_trouble() {
    let mut b = used(&[InSync, InSync]);
    b.array.on_shared(true);
    b.command(1, Kind::Read, 200 * MIB, 4096);
    for leg in [0, 1] {
        assert_eq!(b.asked_and_failed(DriveError::Medium), format!("{leg}:r209715200"));
    }
    assert_eq!((b.asked(), b.done(), b.io.zeroed.clone()), (String::new(), vec![(1, Status::Good)], vec![1]));
}

#[test]
fn a_first_write_clears_its_piece_on_all_legs_and_in_the_map_before_its_data() {
    for states in [&[InSync][..], &[InSync, InSync]] {
        let mut b = used(states);
        let at = 200 * MIB;
        b.command(1, Kind::Write, at + 4096, 8192);
        let mut said = vec![];
        while !b.io.ops.is_empty() {
            said.push(b.asked_and_ended());
        }
        let step =
            |verb: &str| (0..states.len()).map(|d| format!("{d}:{verb}")).collect::<Vec<_>>().join(" ");
        let mut expected =
            vec![step(&format!("z{at}")), step("f"), step("map"), step(&format!("w{}", at + 4096))];
        if states.len() > 1 {
            expected.insert(0, step("bitmap"));
        }
        assert_eq!(said, expected);
        assert_eq!(b.done(), [(1, Status::Good)]);
        // From now on the piece is like any other, and its neighbour is not.
        b.command(2, Kind::Write, at, 4096);
        b.command(3, Kind::Read, at + 8192, 4096);
        b.command(4, Kind::Read, at + PIECE, 4096);
        assert_eq!(b.io.zeroed, [4]);
        let data: Vec<&str> = match states.len() {
            1 => vec!["0:w209715200 0:r209723392"],
            _ => vec!["0:w209715200 1:w209715200 0:r209723392", "0:w209715200 1:w209715200 1:r209723392"],
        };
        let asked = b.asked();
        assert!(data.contains(&asked.as_str()), "{asked}");
    }
}

#[test]
fn a_write_of_a_whole_piece_needs_no_zeroes() {
    let mut b = used(&[InSync]);
    b.command(1, Kind::Write, 100 * MIB, PIECE);
    let at = 100 * MIB;
    assert_eq!(
        [b.asked_and_ended(), b.asked_and_ended(), b.asked_and_ended()],
        [format!("0:w{at}"), "0:f".into(), "0:map".into()]
    );
    assert_eq!((b.asked(), b.done()), (String::new(), vec![(1, Status::Good)]));
}

#[test]
fn first_writes_of_one_piece_take_turns_and_those_of_others_share_a_map_write() {
    let mut b = used(&[InSync, InSync]);
    let at = 100 * MIB;
    b.command(1, Kind::Write, at, 4096);
    b.command(2, Kind::Write, at + 8192, 4096);
    for n in 0..4 {
        b.command(10 + n, Kind::Write, at + (n + 1) * PIECE, 4096);
    }
    let mut said = String::new();
    while !b.io.ops.is_empty() {
        said += &(b.asked_and_ended() + " ");
    }
    assert_eq!(b.done().len(), 6);
    assert_eq!(said.matches("0:z").count(), 5, "one clearing a piece: {said}");
    assert!(said.matches("0:map").count() <= 3, "{said}");
}

#[test]
fn a_first_write_waits_for_the_record_of_a_leg_that_missed_the_zeroes() {
    let mut b = used(&[InSync, InSync]);
    b.command(1, Kind::Write, 100 * MIB, 4096);
    b.asked_and_ended();
    // The zeroes: leg 1 fails them.
    let tags = b.tags();
    b.end(tags[0], Ok(()));
    b.end(tags[1], Err(DriveError::Medium));
    assert_eq!([b.asked_and_ended(), b.asked()], ["0:f", ""], "leg 1 may be kept after all");
    b.array.on_membership(b.now, &members(2, &[InSync, Missing]), &mut b.io);
    assert_eq!(b.asked(), "");
    b.array.on_recorded(b.now, 2, &mut b.io);
    assert_eq!(b.asked_and_ended(), "0:map");
    b.run();
    assert_eq!(b.done(), [(1, Status::Good)]);
}

#[test]
fn a_leg_that_refuses_the_zeroes_alone_ends_the_write_and_the_piece_stays_as_it_is() {
    let mut b = used(&[InSync]);
    b.command(1, Kind::Write, 100 * MIB, 4096);
    let tags = b.tags();
    b.end(tags[0], Err(DriveError::NoSpace));
    assert_eq!(b.done(), [(1, Status::NoSpace)]);
    b.command(2, Kind::Read, 100 * MIB, 4096);
    assert_eq!((b.asked().as_str(), b.done()), ("", vec![(2, Status::Good)]));
}

#[test]
fn a_map_write_that_hangs_on_the_last_leg_ends_in_not_ready_until_it_is_over() {
    let mut b = used(&[InSync]);
    b.command(1, Kind::Write, 100 * MIB, 4096);
    b.asked_and_ended();
    b.asked_and_ended();
    let map = b.tags()[0];
    b.end(map, Err(DriveError::TimedOut));
    assert_eq!(b.done(), [(1, Status::NotReady)]);
    b.command(2, Kind::Write, 100 * MIB, 4096);
    b.asked_and_ended();
    b.asked_and_ended();
    assert_eq!(b.done(), [(2, Status::NotReady)]);
    b.array.on_drive_late(b.now, map as u32, &mut b.io);
    b.run();
    b.command(3, Kind::Write, 100 * MIB, 4096);
    b.run();
    assert_eq!(b.done(), [(3, Status::Good)]);
}

#[test]
fn returned_space_is_marked_where_it_is_whole_pieces_and_zero_at_its_ends() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.array.pace(Pace { floor: 1, ceiling: 1, quiet: Duration::ZERO });
    b.io.notes.clear();
    // Half a piece, two whole ones, and a block.
    let (at, len) = (50 * MIB + PIECE / 2, PIECE / 2 + 2 * PIECE + 4096);
    b.array.on_returned(b.now, (9, 1), &[(at, len)], &mut b.io);
    let mut said = String::new();
    while !b.io.notes.contains(&Note::Returned { marks: 1 }) {
        said += &(b.asked_and_ended() + " ");
    }
    // All of that was durable before.
    for part in [format!("0:z{at}"), format!("1:z{}", 50 * MIB + 3 * PIECE), "0:map".into(), "1:f".into()] {
        assert!(said.contains(&part), "{part} in {said}");
    }
    b.command(1, Kind::Read, 50 * MIB + PIECE, 4096);
    b.command(2, Kind::Read, 50 * MIB, 4096);
    assert_eq!(b.io.zeroed, [1]);
    assert_eq!(b.asked().matches(":r").count(), 1);
}

/// Space of a removed volume is marked while a volume grows over what it had cut off: each waits for the last mark.
#[test]
fn a_mark_counts_for_the_ends_that_an_earlier_one_has_left_to_be_written() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.io.notes.clear();
    // More ends than are written at once.
    let mut ends: Vec<(u64, u64)> = (0..8).map(|n| (50 * MIB + n * PIECE, PIECE / 2)).collect();
    b.array.on_returned(b.now, (9, 1), &ends, &mut b.io);
    ends.push((60 * MIB, PIECE / 2));
    b.array.on_returned(b.now, (9, 2), &ends[8..], &mut b.io);
    let mut said = String::new();
    while !b.io.notes.contains(&Note::Returned { marks: 2 }) {
        assert!(!b.io.ops.is_empty(), "both marks come to an end: {said}");
        said += &(b.asked_and_ended() + " ");
    }
    for (at, _) in ends {
        for leg in [0, 1] {
            assert!(said.contains(&format!("{leg}:z{at} ")), "{leg} lacks zeroes at {at}: {said}");
        }
    }
}

#[test]
fn a_mark_does_not_count_by_a_write_of_the_map_that_began_before_it() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.io.notes.clear();
    // Both pieces are in one block.
    b.array.on_returned(b.now, (9, 1), &[(50 * MIB, PIECE)], &mut b.io);
    b.array.on_returned(b.now, (9, 2), &[(50 * MIB + PIECE, PIECE)], &mut b.io);
    let returned = Note::Returned { marks: 2 };
    assert_eq!(b.asked_and_ended(), "0:map 1:map");
    assert!(!b.io.notes.contains(&returned), "it has the first piece alone");
    assert_eq!(b.asked_and_ended(), "0:map 1:map");
    assert!(b.io.notes.contains(&returned));
}

#[test]
fn marks_do_not_count_while_the_loss_of_a_leg_without_them_is_not_on_record() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.io.notes.clear();
    b.array.on_returned(b.now, (9, 1), &[(50 * MIB, PIECE)], &mut b.io);
    let tags = b.tags();
    b.end(tags[0], Ok(()));
    b.end(tags[1], Err(DriveError::Gone));
    b.run();
    let returned = Note::Returned { marks: 1 };
    assert!(!b.io.notes.contains(&returned));
    b.array.on_membership(b.now, &members(2, &[InSync, Missing]), &mut b.io);
    b.run();
    assert!(!b.io.notes.contains(&returned));
    b.array.on_recorded(b.now, 2, &mut b.io);
    b.run();
    assert!(b.io.notes.contains(&returned));
}

#[test]
fn the_background_clears_everything_and_says_so() {
    let mut b = Bench::used(&[InSync, InSync]);
    assert_eq!(b.array.progress().uncleared, b.array.geometry().data_bytes.next_multiple_of(PIECE));
    b.timer();
    b.run();
    assert_eq!(b.array.progress().uncleared, 0);
    assert!(b.io.notes.contains(&Note::AllCleared { marks: 0 }));
    b.command(1, Kind::Read, 0, MIB);
    assert_eq!(b.asked().matches(":r0").count(), 1);
}

#[test]
fn the_background_keeps_to_its_pace_and_stops_for_a_release() {
    let mut b = Bench::used(&[InSync, InSync]);
    b.array.pace(Pace { floor: 8 * MIB, ceiling: 8 * MIB, quiet: Duration::ZERO });
    b.timer();
    let before = b.array.progress().uncleared;
    b.run();
    let begun = b.now;
    for _ in 0..100 {
        let due = b.array.next_deadline().expect("there is work left");
        b.now = due.max(b.now);
        b.timer();
        b.run();
    }
    let (done, took) = (before - b.array.progress().uncleared, b.now.since(begun));
    let rate = done as f64 / took.as_secs_f64() / MIB as f64;
    assert!((7.0..10.0).contains(&rate), "{rate} MiB/s");
    b.array.quiesce(b.now, &mut b.io);
    b.run();
    assert!(b.array.quiesced());
}

#[test]
fn a_leg_that_comes_in_sync_has_the_map_and_nothing_is_copied_that_nobody_reads() {
    let mut b = used(&[InSync, Missing]);
    b.array.mark_all_dirty(b.now, 1, &mut b.io);
    b.run();
    b.array.pace(Pace::default());
    b.io.notes.clear();
    b.array.on_membership(b.now, &members(2, &[InSync, Rebuilding]), &mut b.io);
    let mut said = String::new();
    while !b.io.ops.is_empty() {
        said += &(b.asked_and_ended() + " ");
    }
    assert_eq!(said.matches("1:map").count(), 16, "{said}");
    // The background had begun: five regions of 1 MiB were cleared, and no others are read.
    assert_eq!(said.matches(":r").count(), 5 * 8, "{said}");
    assert!(b.io.notes.contains(&Note::Synced { leg: 1, epoch: 2 }), "{:?}", b.io.notes);
}

/// Somebody has overwritten what a leg has of the map, perhaps after a write that is under way had come there.
#[test]
fn a_write_of_the_map_under_way_does_not_count_where_the_map_is_written_anew() {
    let mut b = used(&[InSync, InSync]);
    b.command(1, Kind::Write, 100 * MIB, 4096);
    // The bit, the zeroes and the flush.
    (0..3).for_each(|_| drop(b.asked_and_ended()));
    let former = b.tags();
    b.array.mark_all_dirty(b.now, 7, &mut b.io);
    former.into_iter().for_each(|tag| b.end(tag, Ok(())));
    // Everything is written but the block of this region's lane: 7 blocks in two places each lane.
    let lane = 100 % 16 * 14 * 4096;
    let places = MAP_AT + lane..MAP_AT + lane + 14 * 4096;
    let mut held = vec![];
    while !b.io.ops.is_empty() {
        for op in core::mem::take(&mut b.io.ops) {
            if places.contains(&op.at) {
                held.push(op.token.0);
            } else {
                b.end(op.token.0, Ok(()));
            }
        }
    }
    assert_eq!((held.len(), b.done()), (2, vec![]), "it is written once more, to both legs");
    assert!(!b.io.notes.contains(&Note::AllDirty { number: 7 }));
    held.into_iter().for_each(|tag| b.end(tag, Ok(())));
    b.run();
    assert!(b.io.notes.contains(&Note::AllDirty { number: 7 }));
    assert_eq!(b.done(), [(1, Status::Good)]);
}

#[test]
fn other_shards_send_what_may_be_uncleared_to_the_owner_until_they_know_better() {
    let geometry = Geometry::plan(false, 4 * MIB, 260 * MIB, 65536).expect("fits");
    let instance = |shard| {
        Array::new(ArrayConfig {
            uuid: Uuid::from_random(1, 2),
            geometry,
            membership: members(1, &[InSync]),
            shard,
            lanes: Lanes::dealt(2),
            scratch: Slice::new(0, SINGLE_SCRATCH_BYTES),
            dirty: Bitmap::new(geometry.regions()),
            unclean: false,
            uncleared: UnclearedMap::all(&geometry, 1),
            shared: false,
        })
    };
    let mut b = Bench::used(&[InSync]);
    b.array = instance(0);
    b.io.ops = vec![];
    b.io.notes = vec![];
    let mut other = instance(1);
    // Region 0 is of shard 0, region 1 of shard 1.
    assert_eq!((other.owner(0), other.read_is_local(0, 4096)), (0, false));
    assert_eq!((other.owner(MIB), other.read_is_local(MIB, 4096)), (1, true));
    assert_eq!(other.cut(PIECE - 4096, MIB), 4096);
    b.timer();
    b.run();
    let (region, marks) = b.array.cleared_region(0).expect("everything is cleared");
    assert_eq!((region, marks), (0, 0));
    let mut io = super::bench::Io::default();
    other.on_returned(b.now, (1, 1), &[(0, PIECE)], &mut io);
    other.on_region_cleared(region, marks);
    assert!(!other.read_is_local(0, 4096), "that is older than the mark");
    b.array.on_returned(b.now, (1, 1), &[(0, PIECE)], &mut b.io);
    assert_eq!(b.array.cleared_region(0), None);
    b.run();
    let (region, marks) = b.array.cleared_region(0).expect("it was cleared again");
    other.on_region_cleared(region, marks);
    assert_eq!((other.owner(0), other.read_is_local(0, 4096)), (1, true));
}

#[test]
fn a_write_that_is_taken_back_while_its_piece_is_cleared_never_starts() {
    let mut b = used(&[InSync]);
    b.command(1, Kind::Write, 100 * MIB, 4096);
    b.asked_and_ended();
    b.array.on_abort(b.now, Ticket(1), &mut b.io);
    assert_eq!((b.asked_and_ended(), b.done()), ("0:f".into(), vec![]));
    assert_eq!(b.asked_and_ended(), "0:map");
    assert_eq!((b.asked(), b.done()), (String::new(), vec![(1, Status::Aborted)]));
    assert!(b.array.idle());
}
