//! A leg that has everything is put in sync on record: who must take that record first, and who need not.

use super::*;

fn fails(w: &mut World, drive: &str, error: Option<DriveError>) {
    w.rest.drives.get_mut(drive).expect("it is there").fails = error;
}
/// The second leg of the first mirror is back, and is being copied to.
fn returned(w: &mut World) {
    lose(w, 1);
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn the_dead_last_leg_of_another_mirror_keeps_nobody_from_being_in_sync_and_is_taken_back_itself() {
    let mut w = usual();
    returned(&mut w);
    for drive in ["/f/d", "/f/c"] {
        fails(&mut w, drive, Some(DriveError::Gone));
        w.pass(6);
    }
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Missing]);
    synced(&mut w, 1);
    w.pass(1);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    // It comes back as another, though it has not got the record that put the other leg in sync.
    let back = FakeDrive { fails: None, held: false, ..w.rest.drives["/f/c"].clone() };
    w.rest.drives.insert("/dev/x".into(), back);
    w.pass(30);
    assert!(w.open.values().any(|spec| spec == "/dev/x"), "{:?}", w.events());
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Missing]);
    // Or the head falls before that: it is current all the same.
    let mut rest = w.rest;
    rest.drives.remove("/f/c");
    rest.drives.remove("/f/d");
    let w = World::start(rest, 2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Missing]);
}

#[test]
fn a_dead_last_leg_is_known_again_however_often_another_leg_came_and_went() {
    let mut w = usual();
    for drive in ["/f/d", "/f/c"] {
        fails(&mut w, drive, Some(DriveError::Gone));
        w.pass(6);
    }
    let mut returns = 0;
    for _ in 0..40 {
        lose(&mut w, 1);
        returns += u32::from(w.order(Order::DriveReturn { drive: "/f/b".into() }).is_ok());
    }
    assert!((5..20).contains(&returns), "{returns}");
    let (kind, _, words) = w.refused(Order::DriveReturn { drive: "/f/b".into() });
    assert!(kind == ErrorKind::NotReady && words.contains("LegFarBehind { drive: Some(\"/f/c\")"), "{words}");
    let mut fallen = w.rest.clone();
    fallen.drives.values_mut().for_each(|d| d.fails = None);
    assert_eq!(World::start(fallen, 2).legs(1)[0], LegState::InSync, "a start believes it");
    // It answers again as it was opened, or comes back as another.
    fails(&mut w, "/f/c", None);
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    synced(&mut w, 1);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
}

#[test]
fn nobody_is_in_sync_by_a_record_that_the_leg_it_was_copied_from_has_not_got() {
    let mut w = usual();
    returned(&mut w);
    fails(&mut w, "/f/a", Some(DriveError::Medium));
    synced(&mut w, 1);
    w.pass(1);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    // Else it would remember itself as the only one in sync, and be believed wherever it is found alone.
    let mut abroad = w.rest.clone();
    abroad.files.clear();
    abroad.drives.remove("/f/a");
    let (_, _, words) = World::start(abroad, 2).refused(import(&["/f/b", "/f/c", "/f/d"], false));
    assert!(words.contains("/f/a") || words.contains("NotReleased"), "{words}");
    // Other changes do not wait for it, and the order of a leg of its own mirror is answered.
    let other = w.layout.arrays[1].id;
    let epoch = w.layout.arrays[1].membership.epoch;
    w.note(0, other, Note::LegFailed { leg: 1, epoch, error: DriveError::Gone });
    w.run();
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Missing]);
    // However long that takes, the leg is in sync when it has; no ancestor is forgotten over it.
    w.pass(600);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert_eq!(w.events().iter().filter(|e| e.contains("/f/b: Leg(LegSynced")).count(), 0);
    let mut rest = w.rest.clone();
    rest.drives.get_mut("/f/a").expect("it is there").fails = None;
    let fallen = World::start(rest, 3);
    assert_eq!(fallen.legs(0)[0], LegState::InSync, "what it has is no older than it may be");
    fails(&mut w, "/f/a", None);
    w.pass(3);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    assert_eq!(w.crash(4).legs(0), [LegState::InSync, LegState::InSync]);
}
