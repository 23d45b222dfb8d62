//! The last leg of a mirror is pulled and put back.

use super::*;
use finding::LegRefusal;

/// The second leg is out, and the first one is gone as it was opened.
fn pulled() -> World {
    let mut w = usual();
    for path in ["/f/b", "/f/a"] {
        w.rest.drives.get_mut(path).expect("it is there").fails = Some(DriveError::Gone);
        w.pass(6);
    }
    assert_eq!(w.status().health, State::Offline, "{:?}", w.status().reasons);
    w
}
fn is_open(w: &World, path: &str) -> bool {
    w.open.values().any(|spec| spec == path)
}

#[test]
fn the_last_leg_that_was_pulled_comes_back_by_itself_wherever_it_is_found() {
    let mut w = pulled();
    w.pass(60);
    assert!(is_open(&w, "/f/a"), "it is kept until there is something better");
    let back = FakeDrive { fails: None, held: false, ..w.rest.drives["/f/a"].clone() };
    w.rest.drives.insert("/dev/x".into(), back);
    w.pass(30);
    assert!(is_open(&w, "/dev/x") && !is_open(&w, "/f/a"));
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert_eq!(w.status().health, State::Degraded, "{:?}", w.status().reasons);
    assert!(w.events().iter().any(|e| e.contains("drive /dev/x: Leg(LastLegReturned")));
    // The other one can be copied to again, and the next start finds all of this.
    w.rest.drives.get_mut("/f/b").expect("it is there").fails = None;
    w.pass(120);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    w.rest.drives.remove("/f/a");
    let mut w = w.crash(2);
    assert_eq!(w.status().health, State::Rebuilding, "{:?}", w.status().reasons);
}

#[test]
fn an_operator_who_returns_the_last_leg_has_it_looked_for_at_once() {
    let mut w = pulled();
    let give_back = || Order::DriveReturn { drive: "/f/a".into() };
    let refused = w.order(give_back()).expect_err("it is away");
    assert_eq!(refused, LegRefusal::LegLookedFor { leg: "/f/a".into() }.into());
    let back = FakeDrive { fails: None, held: false, ..w.rest.drives["/f/a"].clone() };
    w.rest.drives.insert("/dev/x".into(), back);
    assert_eq!(w.order(give_back()), Ok(Reply::Done));
    assert!(is_open(&w, "/dev/x") && !is_open(&w, "/f/a"));
    let refused = w.order(Order::DriveReturn { drive: "/dev/x".into() }).expect_err("it is well");
    assert_eq!(refused, LegRefusal::LegInSync { leg: "/dev/x".into() }.into());
}

#[test]
fn an_older_copy_of_the_last_leg_is_not_taken_for_it() {
    let old = usual().rest.drives["/f/a"].clone();
    let mut w = pulled();
    w.rest.drives.insert("/dev/x".into(), FakeDrive { held: false, ..old });
    w.pass(120);
    assert!(!is_open(&w, "/dev/x") && is_open(&w, "/f/a"));
    assert_eq!(w.status().health, State::Offline);
}

/// The drive that was at `path` is found at `now_at`, and well.
fn put_back(w: &mut World, path: &str, now_at: &str) {
    let back = FakeDrive { fails: None, held: false, ..w.rest.drives[path].clone() };
    w.rest.drives.insert(now_at.into(), back);
}

/// Each attempt to tell it that the other is out put up to twenty records on the witness, which it did not get: after
/// two attempts its own record was too old to be named, and it was not taken back, whoever asked for it.
#[test]
fn a_drive_that_took_the_place_of_another_and_was_pulled_at_once_comes_back() {
    let mut rest = four();
    rest.drives.extend(drives(&["/f/n"]).drives);
    let mut w = World::start(rest, 1);
    for order in [tank(), volume("vm1", 9 * MIB)] {
        w.good(order);
    }
    w.rest.drives.get_mut("/f/b").expect("it is there").fails = Some(DriveError::Gone);
    w.pass(6);
    w.good(Order::DriveReplace { old: "/f/a".into(), new: "/f/n".into(), force: false });
    synced(&mut w, 2);
    // Before the old one has left.
    w.rest.drives.get_mut("/f/n").expect("it is there").fails = Some(DriveError::Gone);
    w.pass(120);
    assert!(w.events().iter().any(|e| {
        e.contains("/f/a: Leg(LegLeaves { pool: \"tank\", why: Leg(LegPlaceTaken { new: \"/f/n\" }) })")
    }));
    assert_eq!(w.status().health, State::Offline, "{:?}", w.status().reasons);
    put_back(&mut w, "/f/n", "/dev/x");
    w.pass(30);
    assert!(w.events().iter().any(|e| e.contains("drive /dev/x: Leg(LastLegReturned")));
    assert_eq!(w.status().health, State::Degraded, "{:?}", w.status().reasons);
    assert!(w.events().iter().any(|e| e.contains("/f/a: Leg(DriveFreed")));
}
