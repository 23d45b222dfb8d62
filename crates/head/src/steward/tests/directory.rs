//! A state directory that takes nothing: told at once, and no reason to keep whole pools from their hosts.

use super::*;

fn witness(w: &World) -> Option<Vec<u8>> {
    w.rest.files.iter().find(|(name, _)| name.starts_with("witness-")).map(|(_, text)| text.clone())
}
fn told(w: &mut World) -> bool {
    let told = |r: &crate::order::Reason| r.what == "state directory" && r.next.is_some();
    let s = w.status();
    let found = s.reasons.iter().any(told);
    assert_eq!(found, s.health == State::Degraded);
    found
}

#[test]
fn a_full_disk_is_told_before_anything_must_be_written_and_until_there_is_space() {
    let mut w = usual();
    assert!(!told(&mut w));
    w.rest.disk_full = true;
    w.pass(61);
    assert!(told(&mut w));
    assert!(w.events().iter().any(|e| e.starts_with("state directory: its disk is full")));
    w.rest.disk_full = false;
    w.pass(61);
    assert!(!told(&mut w));
    assert!(w.rest.files.keys().all(|name| name != "probe"));
}

#[test]
fn a_whole_pool_is_served_without_a_witness_and_has_one_as_soon_as_there_is_space() {
    for removable in [true, false] {
        let mut w = usual();
        w.good(Order::Shutdown);
        let (old, mut rest) = (witness(&w), w.rest);
        (rest.disk_full, rest.read_only) = (true, !removable);
        let mut w = World::start(rest, 2);
        assert!(w.view.hosts[0].exports[0].ready, "every leg is here");
        assert_eq!(witness(&w).is_none(), removable);
        let s = w.status();
        assert!(s.health == State::Degraded && s.reasons.iter().any(|r| r.what == "pool tank"), "{s:?}");
        (w.rest.disk_full, w.rest.read_only) = (false, false);
        w.pass(61);
        assert!(witness(&w).is_some_and(|new| Some(new) != old));
        assert_eq!(w.status().health, State::Optimal);
    }
}

#[test]
fn a_leg_that_is_missing_keeps_a_pool_away_that_cannot_put_it_on_record() {
    let mut w = usual();
    w.good(Order::Shutdown);
    w.rest.drives.remove("/f/b");
    w.rest.disk_full = true;
    let mut w = World::start(w.rest, 2);
    let s = w.status();
    assert_eq!(s.pools[0].state, State::Offline);
    assert!(s.pools[0].reason.contains("disk is full"), "{}", s.pools[0].reason);
}

#[test]
fn a_witness_that_stayed_behind_proves_no_leg_that_does_not_know_of_its_loss() {
    // Lost while it served, and after a start without a witness; the directory full, and read-only.
    for (restarted, read_only) in [(false, false), (false, true), (true, false), (true, true)] {
        // One mirror: another one's drives would know of the loss.
        let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
        w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
        (w.rest.disk_full, w.rest.read_only) = (true, read_only);
        match restarted {
            true => w = w.crash(2),
            // What the directory still has is left behind as soon as it is known that it takes nothing.
            false => w.pass(61),
        }
        lose(&mut w, 0);
        assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync]);
        let mut rest = w.rest;
        (rest.disk_full, rest.read_only) = (false, false);
        rest.drives.remove("/f/b");
        let mut w = World::start(rest, 3);
        let s = w.status();
        assert_eq!(s.pools[0].state, State::Offline, "{restarted} {read_only}");
        assert!(s.pools[0].reason.contains("cannot be proven"), "{}", s.pools[0].reason);
    }
}
