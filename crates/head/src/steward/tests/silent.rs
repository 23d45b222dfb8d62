//! Drives that hang while they are opened, or looked at: nobody waits for them longer than was said.

use super::world::{FakeDrive, Told, World, create, drives, import, lose, mirror, synced, usual};
use crate::order::{Order, Reply, State};
use crate::steward::patience::START_MAX;
use crate::steward::runtime::{OPEN_PATIENCE, Patience};
use array::LegState;
use base::{DriveOpenFault, Duration, Instant};
use finding::OpenFault;

/// The usual head, started again with these drives stuck; how long it took.
fn started_beside(stuck: &[&str]) -> (World, Duration) {
    let mut w = usual();
    w.good(Order::Shutdown);
    for path in stuck {
        w.rest.drives.get_mut(*path).expect("there").stuck = true;
    }
    let w = World::start(w.rest, 2);
    let took = w.now.since(Instant(1_000_000_000));
    (w, took)
}
/// What is found of a drive that is not opened in time, as tests print it.
fn unopened(drive: &str) -> String {
    let fault = DriveOpenFault::Silent { milliseconds: OPEN_PATIENCE.as_millis() as u64 };
    let fault = OpenFault::Machine { fault };
    format!("drive: {drive:?}, fault: {fault:?}")
}
fn ready(w: &World) -> bool {
    w.view.hosts[0].exports[0].ready
}

#[test]
fn a_leg_that_cannot_be_opened_is_out_at_a_start_and_back_once_it_can() {
    let (mut w, took) = started_beside(&["/f/b"]);
    assert!(took < START_MAX, "{took:?}");
    assert!(ready(&w));
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert!(w.events().iter().any(|e| e.contains(&unopened("/f/b"))), "{:?}", w.events());
    w.pass(60);
    assert_eq!(w.opening.len(), 1, "whoever hangs is asked once");
    w.unstick("/f/b");
    assert!(w.open.values().all(|spec| spec != "/f/b"), "what nobody waits for any more is closed");
    w.pass(20);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    synced(&mut w, 1);
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn a_pool_of_which_every_leg_hangs_is_absent_with_words_and_served_when_they_answer() {
    let all = ["/f/a", "/f/b", "/f/c", "/f/d"];
    let (mut w, took) = started_beside(&all);
    assert!(took < START_MAX && !ready(&w), "{took:?}");
    let reason = w.status().pools[0].said().clone();
    assert!(reason.contains(&unopened("/f/a")), "{reason}");
    for path in all {
        w.pass(10);
        assert!(!ready(&w));
        w.unstick(path);
    }
    w.pass(65);
    assert!(ready(&w));
    assert_eq!(w.status().health, State::Optimal, "no leg was put out");
}

/// It waited for an operator, where a start beside the same drives would have taken it at once.
#[test]
fn a_pool_of_which_every_leg_hung_is_served_by_those_that_answer_again() {
    let (mut w, _) = started_beside(&["/f/a", "/f/b", "/f/c", "/f/d"]);
    w.pass(10);
    for path in ["/f/a", "/f/c"] {
        w.unstick(path);
    }
    w.pass(20);
    assert!(!ready(&w), "the others may answer in a moment");
    w.pass(200);
    assert!(ready(&w), "{:?}", w.status().reasons);
    assert_eq!(w.legs(0)[0], LegState::InSync);
    assert_ne!(w.legs(0)[1], LegState::InSync);
    assert!(w.events().iter().any(|e| e.contains("PoolReturned { silent: true }")));
}

#[test]
fn a_drive_of_nobody_that_hangs_keeps_nothing_away() {
    let mut w = usual();
    w.good(Order::Shutdown);
    // One leg is elsewhere, so that every device is looked at.
    let moved = w.rest.drives.remove("/f/b").expect("there");
    w.rest.drives.insert("/dev/sdb".into(), moved);
    let stuck = FakeDrive { stuck: true, ..drives(&["/dev/sda"]).drives["/dev/sda"].clone() };
    w.rest.drives.insert("/dev/sda".into(), stuck);
    let mut w = World::start(w.rest, 2);
    let took = w.now.since(Instant(1_000_000_000));
    assert!(took < START_MAX && ready(&w), "{took:?}");
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn orders_that_name_a_drive_that_hangs_are_answered_with_words() {
    let mut w = usual();
    lose(&mut w, 1);
    for (path, stuck) in [("/f/x", true), ("/f/y", false)] {
        let spare = FakeDrive { stuck, hangs: !stuck, ..drives(&[path]).drives[path].clone() };
        w.rest.drives.insert(path.into(), spare);
    }
    w.rest.drives.get_mut("/f/b").expect("there").hangs = true;
    let fresh = |path: &str| {
        let (old, new) = ("/f/b".to_string(), path.to_string());
        let (pool, drive, force) = ("tank".to_string(), path.to_string(), false);
        [
            create("other", vec![mirror(path, "/f/z")]),
            import(&[path], true),
            Order::DriveReplace { old, new, force },
            Order::SpareAdd { pool: pool.clone(), drive: drive.clone(), force },
            Order::LegAdd { pool, mirror: None, drive, force },
            Order::DriveReturn { drive: path.into() },
        ]
    };
    let back = Order::DriveReturn { drive: "/f/b".into() };
    for order in fresh("/f/x").into_iter().chain(fresh("/f/y")).chain([back.clone()]) {
        let (text, begin) = (format!("{order:?}"), w.now);
        let (_, _, words) = w.refused(order);
        assert!(!words.is_empty() && w.now.since(begin) < Patience::ORDER.look, "{text}: {words}");
    }
    let Reply::Drives(list) = w.good(Order::DriveList { drives: vec!["/f/x".into()] }) else {
        panic!("a list")
    };
    let x = list.iter().find(|d| d.path == "/f/x").expect("listed");
    assert!(x.said().contains(&unopened("/f/x")), "{}", x.said());
    // And it is taken when it answers.
    w.rest.drives.get_mut("/f/b").expect("there").hangs = false;
    w.good(back);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn drives_that_are_slow_but_answer_become_a_pool() {
    let mut w = usual();
    for path in ["/f/x", "/f/y"] {
        let slow = Duration::from_millis(1800);
        w.rest.drives.insert(path.into(), FakeDrive { slow, ..drives(&[path]).drives[path].clone() });
    }
    w.good(create("other", vec![mirror("/f/x", "/f/y")]));
    assert_eq!(w.status().pools.len(), 2);
}

#[test]
fn a_pool_is_imported_once_also_by_an_order_beside_the_start() {
    let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    w.good(Order::Shutdown);
    let mut rest = w.rest;
    // One leg is somebody's, and the other is so slow that the start looks at it alone when it gives up waiting.
    rest.drives.get_mut("/f/a").expect("there").slow = Duration::from_millis(700);
    let mut w = World::power_on(rest, 2, u64::MAX);
    w.rest.drives.get_mut("/f/b").expect("there").held = true;
    w.run();
    w.pass(3);
    w.rest.drives.get_mut("/f/b").expect("there").held = false;
    assert!(w.layout.arrays.is_empty(), "it is being imported");
    let (_, _, words) =
        w.refused(Order::PoolImport { pool: Some("tank".into()), name: None, drives: vec![], force: false });
    assert!(words.contains("PoolImportedAlready"), "it does not go on from the other leg: {words}");
    w.rest.drives.get_mut("/f/a").expect("there").slow = Duration::ZERO;
    w.pass(90);
    assert_eq!((w.layout.arrays.len(), w.status().pools.len()), (1, 1));
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}
