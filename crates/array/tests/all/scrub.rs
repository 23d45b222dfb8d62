//! A scrub at the door of an array: what it reads, what it says, what it mends.

use crate::bench::{Bench, MIB, members};
use LegState::{InSync, Missing};
use array::*;
use base::*;

/// An array whose drives hold `contents(leg, block)` in every byte of a block.
fn run(b: &mut Bench, contents: impl FnMut(u16, u64) -> u8, bad: &[(u16, u64)]) -> Vec<String> {
    run_in(b, 4096, contents, bad)
}
/// The same with blocks of `size` bytes.
fn run_in(
    b: &mut Bench,
    size: u64,
    mut contents: impl FnMut(u16, u64) -> u8,
    bad: &[(u16, u64)],
) -> Vec<String> {
    let geometry = *b.array.geometry();
    let mut writes = vec![];
    let mut healed: Vec<(u16, u64)> = vec![];
    for _ in 0..200_000 {
        if b.io.ops.is_empty() {
            match b.array.next_deadline() {
                Some(at) if b.array.progress().scrub_total > 0 || !b.array.idle() => {
                    b.now = b.now.max(at);
                    b.timer();
                }
                _ => return writes,
            }
        }
        for op in core::mem::take(&mut b.io.ops) {
            let mut result = Ok(());
            if op.at >= geometry.data_at && op.kind != DriveOpKind::Flush {
                let first = (op.at - geometry.data_at) / size;
                for (i, block) in (first..first + op.len / size).enumerate() {
                    let is_bad = bad.contains(&(op.drive.0, block)) && !healed.contains(&(op.drive.0, block));
                    match op.kind {
                        DriveOpKind::Read if is_bad => result = Err(DriveError::Medium),
                        DriveOpKind::Read => {
                            let byte = contents(op.drive.0, block);
                            let at = op.data.at as usize + i * size as usize;
                            b.io.scratch[at..at + size as usize].fill(byte);
                        }
                        _ => healed.push((op.drive.0, block)),
                    }
                }
                if op.kind == DriveOpKind::Write {
                    let byte = b.io.scratch[op.data.at as usize];
                    writes.push(format!("{}:{first}+{}={byte}", op.drive, op.len / size));
                }
            }
            b.end(op.token.0, result);
        }
        b.array.check_invariants();
    }
    panic!("a scrub does not end");
}

fn begin(b: &mut Bench, order: Scrub) {
    b.array.scrub(b.now, Some(order), &mut b.io);
}
fn alarms(b: &Bench) -> Vec<Note> {
    b.io.notes
        .iter()
        .filter(|n| matches!(n, Note::Mismatch { .. } | Note::Unreadable { .. }))
        .copied()
        .collect()
}

#[test]
fn legs_that_are_the_same_raise_no_alarm_and_cost_no_bit() {
    let mut b = Bench::new(&[InSync, InSync]);
    begin(&mut b, Scrub::default());
    let total = b.array.progress().scrub_total;
    assert_eq!(total, b.array.geometry().data_bytes);
    assert_eq!(run(&mut b, |_, block| block as u8, &[]), [""; 0]);
    assert_eq!(b.io.notes, [Note::Scrubbed { number: 0 }]);
    let p = b.array.progress();
    assert_eq!((p.scrub_total, p.bitmap_sets, p.dirty_regions), (0, 0, 0));
}

#[test]
fn two_legs_that_differ_are_reported_and_nothing_is_written() {
    let mut b = Bench::new(&[InSync, InSync]);
    begin(&mut b, Scrub::default());
    let writes = run(&mut b, |leg, block| u8::from(leg == 1 && (block == 7 || block == 8)), &[]);
    assert_eq!(writes, [""; 0]);
    let expected = Note::Mismatch { at: 7 * 4096, len: 8192, bad: 2, source: 0, known: false, repair: false };
    assert_eq!(alarms(&b), [expected]);
}

#[test]
fn the_majority_of_three_is_right_and_the_other_one_is_written_again() {
    let mut b = Bench::new(&[InSync, InSync, InSync]);
    begin(&mut b, Scrub { repair: true, ..Scrub::default() });
    let mut reads = 0;
    let rotten = |leg: u16, block: u64| {
        reads += u32::from(leg == 0 && block == 3000);
        // Mended once it was written: the second reading finds it well.
        if leg == 0 && block == 3000 && reads == 1 { 9 } else { 5 }
    };
    let writes = run(&mut b, rotten, &[]);
    assert_eq!(writes, ["0:3000+1=5"]);
    let expected =
        Note::Mismatch { at: 3000 * 4096, len: 4096, bad: 1, source: 1, known: true, repair: true };
    assert_eq!(alarms(&b), [expected]);
    assert_eq!(b.array.progress().bitmap_sets, 1, "the bit of the region comes first");
}

#[test]
fn of_three_legs_two_may_rot_in_neighbouring_sectors() {
    let mut b = Bench::new(&[InSync, InSync, InSync]);
    begin(&mut b, Scrub { repair: true, block_bytes: 512, ..Scrub::default() });
    // Each is well once it was written, which is when the piece is read again.
    let mut reads = [0; 2];
    let rotten = |leg: u16, block: u64| {
        reads[0] += u32::from((leg, block) == (1, 801));
        reads[1] += u32::from((leg, block) == (2, 803));
        let is_rotten =
            (leg, block) == (1, 801) && reads[0] == 1 || (leg, block) == (2, 803) && reads[1] <= 2;
        if is_rotten { 9 } else { 5 }
    };
    assert_eq!(run_in(&mut b, 512, rotten, &[]), ["1:801+1=5", "2:803+1=5"]);
    // The second one was reported twice: it was seen beside the first.
    assert!(alarms(&b).iter().all(|n| matches!(n, Note::Mismatch { known: true, .. })), "{:?}", alarms(&b));
    // With blocks of 4096 bytes nobody would be right.
    let mut b = Bench::new(&[InSync, InSync, InSync]);
    begin(&mut b, Scrub { repair: true, ..Scrub::default() });
    let rotten = |leg, block| if (leg, block) == (1, 801) || (leg, block) == (2, 803) { 9 } else { 5 };
    assert_eq!(run_in(&mut b, 512, rotten, &[]), [""; 0]);
    assert!(alarms(&b).iter().all(|n| matches!(n, Note::Mismatch { known: false, .. })), "{:?}", alarms(&b));
}

#[test]
fn of_two_legs_the_preferred_one_counts_and_a_drive_that_lies_is_left_alone() {
    let mut b = Bench::new(&[InSync, InSync]);
    begin(&mut b, Scrub { repair: true, prefer: Some(1), ..Scrub::default() });
    let writes = run(&mut b, |leg, block| u8::from(leg == 1 && block == 5), &[]);
    assert_eq!(writes, ["0:5+1=1"], "it says good and does not keep it");
    let expected =
        |repair| Note::Mismatch { at: 5 * 4096, len: 4096, bad: 1, source: 1, known: false, repair };
    assert_eq!(alarms(&b), [expected(true), expected(false)]);
    assert_eq!(*b.io.notes.last().expect("it ended"), Note::Scrubbed { number: 0 });
}

#[test]
fn a_repair_never_guesses_which_leg_is_right() {
    // Two legs, and nobody says which one counts; two against two of four; a leg that is none is named.
    for (legs, prefer) in [(2, None), (4, None), (2, Some(3)), (4, Some(4))] {
        let mut b = Bench::new(&vec![InSync; legs]);
        begin(&mut b, Scrub { repair: true, prefer, ..Scrub::default() });
        let half = legs as u16 / 2;
        let writes = run(&mut b, |leg, block| u8::from(leg >= half && block == 5), &[]);
        assert_eq!(writes, [""; 0], "{legs} legs, {prefer:?}");
        let reported = alarms(&b);
        let [Note::Mismatch { at, len, known, repair, .. }] = reported[..] else { panic!("{reported:?}") };
        assert_eq!((at, len, known, repair), (5 * 4096, 4096, false, false));
    }
    // Of four legs that are two against two the preferred one counts.
    let mut b = Bench::new(&[InSync; 4]);
    begin(&mut b, Scrub { repair: true, prefer: Some(3), ..Scrub::default() });
    let mut reads = 0;
    let differs = |leg: u16, block: u64| {
        reads += u32::from(leg == 0 && block == 5);
        u8::from((leg >= 2 || reads > 1) && block == 5)
    };
    let mut writes = run(&mut b, differs, &[]);
    writes.sort();
    assert_eq!(writes, ["0:5+1=1", "1:5+1=1"]);
}

#[test]
fn what_a_leg_cannot_read_is_healed_and_what_none_can_is_reported() {
    let mut b = Bench::new(&[InSync, InSync]);
    begin(&mut b, Scrub::default());
    let writes = run(&mut b, |_, _| 3, &[(0, 100), (1, 40_000)]);
    assert_eq!(writes.len(), 2, "{writes:?}");
    assert!(writes[0].starts_with("0:96+16=3") && writes[1].starts_with("1:40000+16=3"), "{writes:?}");
    assert_eq!(alarms(&b), []);
    assert_eq!(b.io.notes.iter().filter(|n| matches!(n, Note::Healed { .. })).count(), 2);
    let mut b = Bench::new(&[InSync, InSync]);
    begin(&mut b, Scrub::default());
    run(&mut b, |_, _| 3, &[(0, 100), (1, 100)]);
    assert_eq!(alarms(&b), [Note::Unreadable { at: 96 * 4096, len: 65536 }]);
}

/// What is to be mended of a piece is kept in one place: what one piece had found could be written where the other one had.
#[test]
fn a_scrub_that_begins_anew_waits_for_the_piece_of_the_one_before() {
    let mut b = Bench::new(&[InSync, InSync, InSync]);
    let repair = Scrub { repair: true, ..Scrub::default() };
    begin(&mut b, repair);
    let before = core::mem::take(&mut b.io.ops);
    assert_eq!(before.len(), 3);
    b.array.scrub(b.now, None, &mut b.io);
    begin(&mut b, Scrub { number: 7, from: 64 * MIB, ..repair });
    assert_eq!(b.asked(), "", "the drives have the first one's piece");
    for op in before {
        // Leg 0 differs.
        let byte = u8::from(op.drive == DriveId(0));
        b.io.scratch[op.data.at as usize..][..op.data.len as usize].fill(byte);
        b.end(op.token.0, Ok(()));
    }
    let data_at = b.array.geometry().data_at;
    let next: Vec<u64> = b.io.ops.iter().map(|op| op.at - data_at).collect();
    assert_eq!((next, alarms(&b)), (vec![64 * MIB; 3], vec![]));
    assert_eq!(run(&mut b, |_, _| 3, &[]), [""; 0]);
    assert_eq!(b.io.notes, [Note::Scrubbed { number: 7 }]);
}

#[test]
fn a_scrub_goes_on_where_it_is_asked_to_and_yields_to_hosts() {
    let mut b = Bench::new(&[InSync, InSync]);
    let from = 200 * MIB;
    begin(&mut b, Scrub { from, ..Scrub::default() });
    let (mut lowest, began) = (u64::MAX, b.now);
    let mut bytes = 0;
    while b.array.progress().scrub_total > 0 && bytes < 8 * MIB {
        for op in core::mem::take(&mut b.io.ops) {
            if op.kind == DriveOpKind::Read && op.data.at < 1 << 40 {
                lowest = lowest.min(op.at - b.array.geometry().data_at);
                bytes += op.len / 2;
            }
            b.end(op.token.0, Ok(()));
        }
        // A host is busy all the time.
        b.command(1, Kind::Read, 0, 4096);
        b.done();
        b.now = b.now + Duration::from_millis(1);
        b.timer();
    }
    assert_eq!(lowest, from);
    let rate = bytes as f64 / b.now.since(began).as_secs_f64() / MIB as f64;
    assert!((3.0..5.0).contains(&rate), "a quarter of the floor of 16 MiB/s, not {rate}");
    b.array.scrub(b.now, None, &mut b.io);
    b.run();
    assert_eq!(b.array.progress().scrub_total, 0);
}

#[test]
fn a_scrub_waits_while_a_leg_is_missing() {
    let mut b = Bench::new(&[InSync, InSync]);
    b.array.on_membership(b.now, &members(2, &[InSync, Missing]), &mut b.io);
    b.run();
    begin(&mut b, Scrub::default());
    for _ in 0..20 {
        b.now = b.now + Duration::from_secs(1);
        b.timer();
        assert!(b.io.ops.iter().all(|op| op.kind != DriveOpKind::Read));
        b.run();
    }
    assert_eq!(b.io.notes, []);
}
