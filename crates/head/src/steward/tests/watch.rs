//! Drives that nobody uses, or that nothing can stand in for, and what is told of them.

use super::*;
use crate::report::{Counters, DriveReport};
use finding::{Cause, DriveFault, DriveHelp, LegCause, LegEvent, StatusCause, WayBack};

fn single() -> World {
    let mut w = World::start(four(), 1);
    let alone =
        ArraySpec { layout: crate::order::ArrayLayout::Single, drives: vec!["/f/a".into()], weight: None };
    w.good(create("tank", vec![alone]));
    w
}

/// What helps the legs that are not well, as status tells it.
pub(super) fn ways_back(w: &mut World) -> Vec<WayBack> {
    let help = |cause| match cause {
        Cause::Status(StatusCause::LegNotOptimal { help, .. }) => help,
        _ => None,
    };
    w.status().reasons.into_iter().filter_map(|r| help(r.cause)).collect()
}

/// The file system below this drive is full.
fn full(path: &str, last: bool) -> String {
    format!("{:?}", LegCause::DriveFileSystemFull { drive: path.into(), last })
}

/// The drive that is open at this path.
fn id_of(w: &World, path: &str) -> DriveId {
    *w.open.iter().find(|(_, spec)| *spec == path).expect("it is open").0
}

fn errors(w: &mut World, path: &str, n: u64, last_error: DriveError) {
    let counters = Counters { errors: n, ..Counters::default() };
    let drive = id_of(w, path);
    w.figures.retain(|f| f.drive != drive);
    w.figures.push(DriveReport { drive, counters, last_error: Some(last_error), ..DriveReport::default() });
}

#[test]
fn a_leg_that_vanishes_while_nobody_uses_it_is_put_out() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/b").expect("it is there").fails = Some(DriveError::Gone);
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert!(
        w.events().iter().any(
            |e| e.contains("drive /f/b: Leg(LegOut { pool: \"tank\", why: Leg(DriveFailed { fault: Gone")
        )
    );
}

#[test]
fn what_an_order_changed_of_a_drive_is_seen_at_once() {
    let mut w = usual();
    let shape = |w: &mut World, path: &str, gone| {
        let shape = Shape { gone, ..Shape::default() };
        w.good(Order::DriveShape { drive: path.into(), shape });
    };
    let legs = |w: &mut World| {
        let s = w.status();
        s.pools[0].arrays[0].legs.iter().map(|l| l.state).collect::<Vec<_>>()
    };
    shape(&mut w, "/f/b", true);
    shape(&mut w, "/f/a", true);
    assert_eq!(legs(&mut w), [State::Offline, State::Failed]);
    shape(&mut w, "/f/a", false);
    assert_eq!(legs(&mut w), [State::Optimal, State::Failed]);
    shape(&mut w, "/f/b", false);
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(legs(&mut w), [State::Optimal, State::Rebuilding]);
}

#[test]
fn a_leg_that_hangs_is_put_out_after_three_looks_and_one_that_is_late_once_stays() {
    let mut w = usual();
    let hang = |w: &mut World, on| w.rest.drives.get_mut("/f/b").expect("it is there").hangs = on;
    hang(&mut w, true);
    w.pass(7);
    hang(&mut w, false);
    w.pass(20);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    hang(&mut w, true);
    w.pass(25);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
}

#[test]
fn a_file_that_was_cut_off_is_noticed_and_its_leg_put_out() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/b").expect("it is there").cut = Some(40 * MIB);
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert!(w.status().reasons[0].said().contains("DriveCutOff"), "{:?}", w.status().reasons);
}

#[test]
fn the_only_drive_stays_and_status_says_what_ails_it_until_it_is_well() {
    let mut w = single();
    w.rest.drives.get_mut("/f/a").expect("it is there").fails = Some(DriveError::Gone);
    w.pass(6);
    let s = w.status();
    assert_eq!(
        (s.health, s.drives[0].state, s.pools[0].state),
        (State::Offline, Some(State::Offline), State::Offline)
    );
    let helps = Some(DriveHelp::Attach { drive: "/f/a".into() });
    let gone = LegCause::DriveFailed { fault: DriveFault::Gone, helps };
    assert!(s.reasons[0].said().contains(&format!("{gone:?}")), "{:?}", s.reasons);
    w.pass(60);
    assert_eq!(w.events().iter().filter(|e| e.contains("fault: Gone")).count(), 1, "told once");
    w.rest.drives.get_mut("/f/a").expect("it is there").fails = None;
    w.pass(6);
    assert_eq!(w.status().health, State::Optimal);
    assert!(w.events().last().is_some_and(|e| e == "drive /f/a: Leg(DriveHealthy)"));
}

#[test]
fn a_full_file_system_is_told_until_there_is_space_again() {
    let mut w = single();
    errors(&mut w, "/f/a", 3, DriveError::NoSpace);
    w.rest.drives.get_mut("/f/a").expect("it is there").free = Some(0);
    w.pass(6);
    let s = w.status();
    assert_eq!((s.health, s.drives[0].errors), (State::Degraded, 3));
    assert!(s.reasons[0].said().contains(&full("/f/a", true)), "{:?}", s.reasons);
    w.pass(3600);
    assert_eq!(w.status().health, State::Degraded, "nobody writes, and it is still full");
    w.rest.drives.get_mut("/f/a").expect("it is there").free = Some(10 * MIB);
    w.pass(6);
    assert_eq!(w.status().health, State::Optimal);
    assert_eq!(w.events().iter().filter(|e| e.contains("drive /f/a")).count(), 2, "its begin and its end");
}

#[test]
fn a_mirror_is_told_that_the_file_system_below_a_leg_is_full_before_it_loses_it() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/b").expect("it is there").free = Some(0);
    w.pass(6);
    let s = w.status();
    assert_eq!((s.health, w.legs(0)), (State::Degraded, vec![LegState::InSync, LegState::InSync]));
    assert!(s.reasons[0].said().contains(&full("/f/b", false)), "{:?}", s.reasons);
    w.rest.drives.get_mut("/f/b").expect("it is there").free = Some(10 * MIB);
    w.pass(6);
    assert_eq!(w.status().health, State::Optimal);
}

/// It was tried again and again, and failed again and again.
#[test]
fn a_leg_that_a_full_file_system_put_out_is_back_once_there_is_space_and_not_before() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/b").expect("it is there").free = Some(0);
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(1, array, Note::LegFailed { leg: 1, epoch, error: DriveError::NoSpace });
    w.run();
    w.pass(600);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    let s = w.status();
    assert!(s.reasons[0].said().contains("DriveFailed { fault: NoSpace,"), "{:?}", s.reasons);
    assert_eq!(ways_back(&mut w), [WayBack::FreeFileSystem { leg: "/f/b".into() }]);
    let comings = |w: &mut World| {
        w.events().iter().filter(|e| e.contains("LegJoined { pool: \"tank\", new: false")).count()
    };
    assert_eq!(comings(&mut w), 0, "{:?}", w.events());
    let (kind, _, message) = w.refused(Order::DriveReturn { drive: "/f/b".into() });
    assert!(kind == ErrorKind::NotReady && message.contains("LegFileSystemFull"), "{message}");
    w.rest.drives.get_mut("/f/b").expect("it is there").free = Some(10 * MIB);
    w.pass(60);
    assert_eq!((w.legs(0)[1], comings(&mut w)), (LegState::Rebuilding, 1));
}

#[test]
fn a_drive_that_another_has_reserved_is_told_as_that_and_not_as_broken() {
    let mut w = single();
    errors(&mut w, "/f/a", 3, DriveError::Fenced);
    w.pass(6);
    let reason = w.status().reasons.remove(0);
    let reserved = LegCause::DriveOperationsFailed { drive: "/f/a".into(), fault: DriveFault::Reserved };
    assert!(reason.said().contains(&format!("{reserved:?}")), "{reason:?}");
}

#[test]
fn errors_of_hosts_operations_are_told_for_a_minute_after_the_last() {
    let mut w = single();
    for n in 1..=20 {
        errors(&mut w, "/f/a", n, DriveError::Medium);
        w.pass(5);
    }
    assert_eq!(w.status().health, State::Degraded);
    assert_eq!(w.events().iter().filter(|e| e.contains("drive /f/a")).count(), 1, "however often");
    w.pass(66);
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn errors_that_a_mirror_answers_for_are_an_event_and_no_bad_state() {
    let mut w = usual();
    for n in 1..=20 {
        errors(&mut w, "/f/b", n, DriveError::Medium);
        w.pass(5);
    }
    let s = w.status();
    assert_eq!((s.health, s.reasons.len()), (State::Optimal, 0), "hosts were served: {:?}", s.reasons);
    assert_eq!(s.drives.iter().find(|d| d.path == "/f/b").map(|d| d.errors), Some(20));
    let told = |w: &mut World| w.events().iter().filter(|e| e.contains("DriveErrors")).count();
    assert_eq!(told(&mut w), 1, "however often");
    // Alone it is not ill for what was before.
    lose(&mut w, 0);
    w.pass(6);
    assert!(w.status().reasons.iter().all(|r| !r.said().contains("DriveOperationsFailed")));
    errors(&mut w, "/f/b", 21, DriveError::Medium);
    w.pass(6);
    assert!(
        w.status()
            .reasons
            .iter()
            .any(|r| r.said().contains("/f/b") && r.said().contains("DriveOperationsFailed"))
    );
}

#[test]
fn what_a_drive_did_is_counted_over_its_returns() {
    let mut w = usual();
    errors(&mut w, "/f/b", 7, DriveError::Medium);
    lose(&mut w, 1);
    let of_b = |s: &Status| s.drives.iter().find(|d| d.path == "/f/b").map(|d| d.errors);
    assert_eq!(of_b(&w.status()), Some(7));
    let before = id_of(&w, "/f/b");
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_ne!(id_of(&w, "/f/b"), before, "it was opened anew");
    assert_eq!(of_b(&w.status()), Some(7));
    let drive = id_of(&w, "/f/b");
    let counters = Counters { errors: 2, ..Counters::default() };
    w.figures.push(DriveReport { drive, counters, ..DriveReport::default() });
    assert_eq!(of_b(&w.status()), Some(9));
}

#[test]
fn looking_at_drives_for_ever_does_not_use_up_their_numbers() {
    let mut w = usual();
    for _ in 0..700 {
        w.good(Order::DriveList { drives: (0..100).map(|n| format!("/f/none{n}")).collect() });
    }
    assert!(w.status().health == State::Optimal);
}

#[test]
fn a_head_that_was_just_started_sees_that_a_file_system_is_full() {
    let mut w = single();
    w.rest.drives.get_mut("/f/a").expect("it is there").free = Some(0);
    let mut w = w.crash(2);
    w.pass(6);
    let s = w.status();
    assert_eq!(s.health, State::Degraded, "nobody has written yet");
    assert!(s.reasons[0].said().contains(&full("/f/a", true)), "{:?}", s.reasons);
    w.rest.drives.get_mut("/f/a").expect("it is there").free = Some(10 * MIB);
    w.pass(6);
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn a_file_that_was_removed_or_moved_is_told_while_it_can_still_be_saved() {
    use base::FileName::{Moved, Removed, There};
    let name = |w: &mut World, path: &str, name| w.rest.drives.get_mut(path).expect("there").name = name;
    let told = |w: &mut World| {
        w.pass(6);
        let s = w.status();
        (s.health, s.reasons.first().map(|r| r.said()).unwrap_or_default())
    };
    let mut w = usual();
    name(&mut w, "/f/b", Removed);
    let drive = || "/f/b".to_string();
    let (state, message) = told(&mut w);
    let removed = format!("{:?}", LegCause::DriveFileRemoved { drive: drive() });
    assert!(state == State::Degraded && message.contains(&removed), "{message}");
    assert_eq!(w.legs(0), [LegState::InSync; 2], "it holds what it held, and serves");
    assert_eq!(w.events().iter().filter(|e| e.contains("DriveFileRemoved")).count(), 1, "told once");
    name(&mut w, "/f/b", Moved);
    let (state, message) = told(&mut w);
    let moved = format!("{:?}", LegCause::DriveFileMoved { drive: drive() });
    assert!(state == State::Degraded && message.contains(&moved), "{message}");
    name(&mut w, "/f/b", There);
    assert_eq!(told(&mut w).0, State::Optimal);
    // Beside a file that has a name no more the other leg is kept, and nothing keeps that one.
    name(&mut w, "/f/b", Removed);
    let r = w.order(Order::DriveFail { drive: "/f/a".into(), force: false }).expect_err("a refusal");
    assert_eq!((r.kind(), r.field), (ErrorKind::Conflict, "force"));
    let (drive, removed) = ("/f/a".into(), "/f/b".into());
    assert_eq!(*r.why, LegRefusal::OtherFileRemoved { drive, removed }.into());
    assert_eq!(w.legs(0), [LegState::InSync; 2]);
    let mut other = World::start(w.rest.clone(), 2);
    name(&mut other, "/f/b", Removed);
    other.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    w.good(Order::DriveFail { drive: "/f/a".into(), force: true });
    assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync]);
    let mut w = single();
    name(&mut w, "/f/a", Removed);
    let (state, message) = told(&mut w);
    assert!(state == State::Degraded && message.contains("LastFileRemoved"), "{message}");
}

#[test]
fn the_only_drive_that_does_not_answer_is_told_at_the_first_look() {
    let mut w = single();
    w.rest.drives.get_mut("/f/a").expect("there").hangs = true;
    w.good(Order::DriveShape { drive: "/f/a".into(), shape: Shape { hang: true, ..Shape::default() } });
    w.pass(3);
    let s = w.status();
    assert_eq!(s.health, State::Degraded);
    let silent = LegCause::DriveSilent { drive: "/f/a".into(), shaped: true };
    assert!(s.reasons[0].said().contains(&format!("{silent:?}")), "{:?}", s.reasons);
    w.pass(20);
    assert_eq!(w.status().health, State::Offline);
    w.rest.drives.get_mut("/f/a").expect("there").hangs = false;
    w.pass(6);
    assert_eq!(w.status().health, State::Optimal);
}

/// "Free space in the file system of /dev/loop1", of which there is none.
#[test]
fn a_block_device_that_has_no_space_is_told_as_cut_off_or_thin() {
    for cut in [false, true] {
        let mut w = World::start(drives(&["/dev/loop1", "/dev/loop2"]), 1);
        w.good(create("tank", vec![mirror("/dev/loop1", "/dev/loop2")]));
        if cut {
            w.rest.drives.get_mut("/dev/loop2").expect("it is there").cut = Some(40 * MIB);
        }
        let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
        w.note(1, array, Note::LegFailed { leg: 1, epoch, error: DriveError::NoSpace });
        w.run();
        let reason = w.status().reasons[0].clone();
        if cut {
            let size = w.rest.drives["/dev/loop2"].bytes;
            let path = || "/dev/loop2".to_string();
            let (bytes, needed_bytes) = (40 * MIB, size);
            let why = LegCause::DriveTooSmall { leg: path(), path: path(), bytes, needed_bytes, file: false };
            assert!(reason.said().contains(&format!("{why:?}")), "{reason:?}");
            let told = LegEvent::LegCutOff { bytes, needed_bytes };
            assert!(w.happened_to("drive /dev/loop2").contains(&told.into()), "{:?}", w.events());
        } else {
            assert!(reason.said().contains("DriveFailed { fault: NoSpaceBlock"), "{reason:?}");
            assert_eq!(ways_back(&mut w), [WayBack::RestoreSpace { leg: "/dev/loop2".into() }]);
        }
    }
}

/// It said "drive return", which was refused at once as too small.
#[test]
fn a_leg_in_sync_that_was_cut_off_is_not_to_be_returned_as_it_is() {
    let mut w = World::start(drives(&["/dev/a", "/dev/b"]), 1);
    w.good(create("tank", vec![mirror("/dev/a", "/dev/b")]));
    w.rest.drives.get_mut("/dev/b").expect("it is there").cut = Some(40 * MIB);
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    // What helps it goes by what was found.
    let (path, needed_bytes) = (|| "/dev/b".to_string(), w.rest.drives["/dev/b"].bytes);
    let bytes = 40 * MIB;
    let small = LegCause::DriveTooSmall { leg: path(), path: path(), bytes, needed_bytes, file: false };
    assert_eq!(ways_back(&mut w), [WayBack::AsFound { why: Box::new(small.into()) }]);
}
