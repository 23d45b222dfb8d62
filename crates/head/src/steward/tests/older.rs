//! A drive is an older copy of itself: it was restored from a snapshot, or a stale one was put in its place.

use super::*;
use array::format::{MEMBERSHIP_AT, MembershipRecord, RECORD_BYTES, newest_membership};
use std::collections::BTreeSet;

fn copy_of(w: &World, path: &str) -> FakeDrive {
    FakeDrive { held: false, fails: None, ..w.rest.drives[path].clone() }
}

fn put(w: &mut World, path: &str, copy: &FakeDrive) {
    w.rest.drives.insert(path.into(), copy.clone());
}

/// A head that serves, whose pool was opened by the head before.
fn started_again() -> (World, FakeDrive) {
    let w = usual();
    let before = copy_of(&w, "/f/b");
    (w.crash(2), before)
}

/// The record on a drive.
fn record_on(drive: &FakeDrive) -> Option<MembershipRecord> {
    let slot = |at: u64| {
        let sectors = (0..RECORD_BYTES as u64 / 512).map(|i| at / 512 + i);
        sectors.flat_map(|s| drive.blocks.get(&s).cloned().unwrap_or(vec![0; 512])).collect::<Vec<u8>>()
    };
    let slots = MEMBERSHIP_AT.map(slot);
    newest_membership([&slots[0], &slots[1]]).ok()
}

#[test]
fn a_leg_from_before_the_last_start_is_not_believed_after_a_crash() {
    let (mut w, before) = started_again();
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    put(&mut w, "/f/b", &before);
    let mut w = w.crash(3);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert_eq!(w.status().health, State::Rebuilding);
    assert!(w.events().iter().any(|e| e.contains("drive /f/b: Pool(LegOlder")), "{:?}", w.events());
    // Everything is copied to it: every region is marked.
    assert_eq!(w.layout.arrays[0].dirty.count(), w.layout.arrays[0].geometry.regions());
}

#[test]
fn a_leg_from_before_a_clean_stop_is_not_believed_after_the_crash_behind_it() {
    let mut w = usual();
    w.send(Order::Shutdown);
    w.pass(30);
    assert!(w.stopped.is_some());
    let before = copy_of(&w, "/f/b");
    let mut w = w.crash(2);
    put(&mut w, "/f/b", &before);
    let w = w.crash(3);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn where_all_legs_are_older_the_state_directory_tells_and_the_pool_is_refused() {
    let w = usual();
    let before = w.rest.drives.clone();
    let mut w = w.crash(2);
    w.rest.drives = before;
    let mut w = w.crash(3);
    assert!(w.layout.pools.is_empty());
    let reason = w.status().reasons[0].clone();
    assert!(reason.said().contains("Stale {"), "{reason:?}");
    // Who knows that they are right says so.
    w.good(import(&["/f/a", "/f/b", "/f/c", "/f/d"], true));
    assert_eq!(w.layout.pools.len(), 1);
}

#[test]
fn a_pool_of_one_drive_that_is_older_than_the_state_directory_is_refused() {
    let mut w = World::start(four(), 1);
    let single =
        ArraySpec { layout: crate::order::ArrayLayout::Single, drives: vec!["/f/a".into()], weight: None };
    w.good(create("tank", vec![single]));
    let before = copy_of(&w, "/f/a");
    let mut w = w.crash(2);
    assert_eq!(w.layout.pools.len(), 1);
    put(&mut w, "/f/a", &before);
    let mut w = w.crash(3);
    assert!(w.layout.pools.is_empty());
    assert!(w.status().reasons[0].said().contains("Stale {"), "{:?}", w.status().reasons);
}

#[test]
fn a_leg_that_was_put_out_and_is_older_than_its_loss_is_copied_in_full() {
    let (mut w, before) = started_again();
    w.rest.drives.get_mut("/f/b").expect("it is there").fails = Some(DriveError::Gone);
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    let lost = copy_of(&w, "/f/b");
    for (copy, full) in [(&before, true), (&lost, false)] {
        let mut w = World::start(w.rest.clone(), 5);
        put(&mut w, "/f/b", copy);
        // At a start, and while the pool runs.
        let mut w = if full { w.crash(6) } else { w };
        w.pass(1200);
        assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding], "{:?}", w.events());
        let marked = w.layout.arrays[0].dirty.count() == w.layout.arrays[0].geometry.regions();
        let joined = w.events().iter().any(|e| e.contains("full: true"));
        assert_eq!(marked || joined, full, "{:?}", w.events());
    }
}

#[test]
fn no_host_is_answered_before_each_leg_and_the_witness_have_the_settled_copy() {
    let rest = usual().rest;
    let effects = World::start(rest.clone(), 2).effects_done;
    let mut serves = BTreeSet::new();
    for cut in 1..effects {
        let mut w = World::power_on(rest.clone(), 2, cut);
        w.run();
        let settled = ["/f/a", "/f/b", "/f/c", "/f/d"].map(|path| {
            let record = record_on(&w.rest.drives[path]).expect("each has a record");
            record.is_settled() && record.open
        });
        let published = !w.layout.pools.is_empty();
        assert!(!published || settled == [true; 4], "after {cut} effects: {settled:?}");
        serves.insert(published);
    }
    assert_eq!(serves.len(), 2, "it was cut off before and after");
}

#[test]
fn a_leg_that_does_not_take_the_first_record_is_out_on_record_before_hosts_are_answered() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/b").expect("it is there").full = true;
    let w = w.crash(2);
    let record = record_on(&w.rest.drives["/f/a"]).expect("it has one");
    assert!(record.is_settled());
    assert_ne!(record.arrays[0].legs[1].state, array::format::LegState::InSync);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
}
