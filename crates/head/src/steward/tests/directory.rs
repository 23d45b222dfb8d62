//! A state directory that takes nothing: told at once, and no reason to keep whole pools from their hosts.

use super::*;

fn witness(w: &World) -> Option<Vec<u8>> {
    w.rest.files.iter().find(|(name, _)| name.starts_with("witness-")).map(|(_, text)| text.clone())
}
fn told(w: &mut World) -> bool {
    let unwritable = |r: &crate::order::Reason| r.cause.name() == "StateUnwritable";
    let told = |r: &crate::order::Reason| r.what == "state directory" && unwritable(r);
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
    assert!(w.events().iter().any(|e| e.contains("StateUnwritable { fault: NoSpace }")));
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
    assert!(s.pools[0].said().contains("NoSpace"), "{}", s.pools[0].said());
}

#[test]
fn a_witness_that_stayed_behind_proves_no_leg_that_does_not_know_of_its_loss() {
    // Lost while it served, and after a start without a witness; the directory full, and read-only.
    for (restarted, read_only) in [(false, false), (false, true), (true, false), (true, true)] {
        // One mirror: another one's drives would know of the loss.
        let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
        w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
        (w.rest.disk_full, w.rest.read_only) = (true, read_only);
        if restarted {
            w = w.crash(2)
        } else {
            w.pass(61)
        }
        lose(&mut w, 0);
        assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync]);
        let mut rest = w.rest;
        (rest.disk_full, rest.read_only) = (false, false);
        rest.drives.remove("/f/b");
        let mut w = World::start(rest, 3);
        let s = w.status();
        assert_eq!(s.pools[0].state, State::Offline, "{restarted} {read_only}");
        assert!(
            s.pools[0].said().contains(
                "Unproven { pool: \"tank\", array: \"mirror-0\", missing: [\"/f/b\"], current: [\"/f/a\"] }"
            ),
            "{}",
            s.pools[0].said()
        );
    }
}

/// A mirror of a pool with so many mirrors loses a leg in the second in which the directory became read-only.
fn lost_at_the_freeze(mirrors: usize) -> World {
    let pairs = [("/f/a", "/f/b"), ("/f/c", "/f/d")];
    let pairs = &pairs[..mirrors];
    let names: Vec<&str> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let mut w = World::start(drives(&names), 1);
    w.good(create("tank", pairs.iter().map(|(a, b)| mirror(a, b)).collect()));
    w.good(volume("v", 1 << 20));
    (w.rest.disk_full, w.rest.read_only) = (true, true);
    lose(&mut w, 0);
    w
}

#[test]
fn a_loss_waits_while_an_older_witness_would_prove_the_leg_that_is_lost() {
    let mut w = lost_at_the_freeze(1);
    w.pass(2);
    assert!(!w.layout.volumes[0].ready, "{:?}", w.events());
    let s = w.status();
    let told = s.reasons.iter().find(|r| r.what == "pool tank" && r.state == State::Offline).expect("told");
    assert!(told.said().contains("RecordNotTaken") && told.said().contains("stale: true"), "{told:?}");
    // Nothing was answered, so whatever the next head finds may go on: the leg that is left says nothing yet.
    let mut rest = w.rest.clone();
    (rest.disk_full, rest.read_only) = (false, false);
    let after = World::start(rest, 2);
    assert_eq!(after.legs(0), [LegState::InSync, LegState::InSync]);
    // The same head, once the directory takes something.
    (w.rest.disk_full, w.rest.read_only) = (false, false);
    w.pass(1);
    assert!(w.layout.volumes[0].ready, "{:?}", w.events());
    let mut rest = w.rest;
    rest.drives.remove("/f/b");
    let s = World::start(rest, 3).status();
    assert_eq!(s.pools[0].state, State::Offline, "the witness knows of the loss");
}

#[test]
fn a_loss_that_every_leg_of_another_mirror_knows_waits_for_no_witness() {
    let mut w = lost_at_the_freeze(2);
    w.pass(5);
    assert!(w.layout.volumes[0].ready, "{:?}", w.events());
    let mut rest = w.rest;
    (rest.disk_full, rest.read_only) = (false, false);
    rest.drives.remove("/f/b");
    rest.drives.remove("/f/d");
    let mut w = World::start(rest, 3);
    let s = w.status();
    assert_eq!(s.pools[0].state, State::Offline);
    assert!(
        s.pools[0]
            .said()
            .contains("Stale { pool: \"tank\", array: \"mirror-0\", stale: [\"/f/a\"], missing: [\"/f/b\"]"),
        "{}",
        s.pools[0].said()
    );
}

#[test]
fn a_directory_that_becomes_read_only_is_noticed_within_a_second() {
    let mut w = usual();
    (w.rest.disk_full, w.rest.read_only) = (true, true);
    w.pass(2);
    assert!(told(&mut w));
    (w.rest.disk_full, w.rest.read_only) = (false, false);
    w.pass(2);
    assert!(!told(&mut w));
}
