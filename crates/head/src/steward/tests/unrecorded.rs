//! Losses that nothing takes on record: neither the last leg nor the state directory.

use super::*;

/// A head that lost a leg and can tell nobody.
fn stuck() -> World {
    let mut w = usual();
    w.rest.drives.values_mut().for_each(|d| d.fails = Some(DriveError::Medium));
    w.rest.disk_full = true;
    w.log.clear();
    lose(&mut w, 1);
    w
}
fn told(w: &World, word: &str) -> usize {
    w.log.iter().filter(|l| l.starts_with(word)).count()
}

#[test]
fn hosts_hear_not_ready_in_time_and_only_after_every_shard_has_stopped_reading() {
    let mut w = stuck();
    w.pass(1);
    assert_eq!(
        (told(&w, "recorded"), told(&w, "unrecorded")),
        (0, 0),
        "nothing holds the record: {:?}",
        w.log
    );
    assert!(w.layout.volumes[0].ready && w.view.hosts[0].exports[0].ready);
    w.pass(1);
    let expected = ["configured 0", "configured 1", "configured 0", "configured 1"].map(String::from);
    assert_eq!(w.log[..4], expected, "the loss, then not ready");
    assert_eq!(w.log[4..], ["unrecorded 0 1", "unrecorded 1 1", "unrecorded 0 2", "unrecorded 1 2"]);
    assert!(!w.layout.volumes[0].ready && !w.view.hosts[0].exports[0].ready);

    let s = w.status();
    assert_eq!((s.pools[0].state, s.volumes[0].state), (State::Offline, State::Offline));
    let reason = s.reasons.iter().find(|r| r.what == "pool tank" && r.state == State::Offline).expect("told");
    for part in ["LossNotOnRecord", "what: Witness", "drive: \"/f/a\""] {
        assert!(reason.said().contains(part), "{part}: {}", reason.said());
    }
    let told_once = |w: &mut World| w.events().iter().filter(|e| e.contains("LossNotRecorded")).count();
    w.pass(20);
    assert_eq!(told_once(&mut w), 1);
    assert_eq!(told(&w, "unrecorded"), 4);
}

#[test]
fn volumes_are_ready_again_when_the_witness_or_the_leg_takes_the_record() {
    for witness in [true, false] {
        let mut w = stuck();
        w.pass(5);
        assert!(!w.layout.volumes[0].ready);
        w.log.clear();
        if witness {
            w.rest.disk_full = false
        } else {
            w.rest.drives.values_mut().for_each(|d| d.fails = None)
        }
        w.pass(1);
        let recorded = w.log.iter().position(|l| l.starts_with("recorded 1")).expect("told");
        let ready = w.log.iter().rposition(|l| l.starts_with("configured")).expect("published");
        assert!(recorded < ready, "{:?}", w.log);
        assert!(w.layout.volumes[0].ready);
        assert!(w.events().iter().any(|e| e.contains("LossRecorded")));
        assert!(w.status().pools[0].state < State::Offline);
    }
}

#[test]
fn a_record_that_takes_a_moment_is_no_trouble() {
    let mut w = stuck();
    w.pass(1);
    w.rest.disk_full = false;
    w.pass(5);
    assert!(told(&w, "recorded") > 0 && told(&w, "unrecorded") == 0, "{:?}", w.log);
    assert!(w.layout.volumes[0].ready);
}

#[test]
fn a_head_that_can_put_a_loss_nowhere_stops_all_the_same() {
    let mut w = stuck();
    assert!(w.order(Order::Shutdown).is_err(), "the pool cannot be marked as closed");
    assert!(w.open.is_empty(), "its drives are let go of");
}
