//! Every order is answered, whatever the state directory does.

use super::*;

fn fail_b() -> Order {
    Order::DriveFail { drive: "/f/b".into(), force: true }
}

#[test]
fn what_cannot_be_made_durable_is_refused_before_it_begins() {
    let mut w = usual();
    (w.rest.disk_full, w.rest.read_only) = (true, true);
    let orders = [
        fail_b(),
        Order::DriveReplace { old: "/f/a".into(), new: "/f/x".into(), force: false },
        Order::HostRemove { name: "esx1".into(), force: true, disconnect: true },
        Order::PoolRelease { pool: "tank".into(), force: true, disconnect: true },
    ];
    for order in orders {
        let (kind, _, why) = w.refused(order.clone());
        assert_eq!(kind, ErrorKind::NotReady, "{order:?}");
        assert!(why.contains("NothingDurable"), "{order:?}: {why}");
    }
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    let s = w.status();
    assert_eq!(s.volumes.len(), 1);
    w.pass(2);
    let s = w.status();
    assert!(s.reasons.iter().any(|r| r.said().contains("StateUnwritable")), "{:?}", s.reasons);
    // Whoever only looks is answered, and so is who changes what lies on the drives alone.
    w.good(Order::DriveList { drives: vec![] });
    w.good(volume("vm2", 9 * MIB));
    (w.rest.disk_full, w.rest.read_only) = (false, false);
    w.good(fail_b());
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
}

/// LUN, volume and size of what hosts see.
fn exports(w: &World) -> Vec<(u16, base::Uuid, u64)> {
    let all = w.view.hosts.iter().flat_map(|h| &h.exports);
    all.map(|e| (e.lun, e.uuid, e.blocks)).collect()
}

/// What hosts are told while the drives are away is in the state directory: nothing is taken from them that would come back there.
#[test]
fn what_was_taken_away_does_not_come_back_while_the_drives_are_away() {
    let unexport = || Order::Unexport { volume: "tank/vm1".into(), host: "esx1".into(), disconnect: true };
    let remove = || Order::VolumeRemove { volume: "tank/vm1".into(), force: true, disconnect: true };
    let shrink =
        || Order::VolumeResize { volume: "tank/vm1".into(), bytes: MIB, force: true, disconnect: true };
    for order in [unexport, remove as fn() -> Order, shrink] {
        let mut w = usual();
        let before = exports(&w);
        w.rest.immutable = Some("config-");
        let (_, _, why) = w.refused(order());
        assert!(why.contains("Kept"), "{why}");
        assert_eq!(exports(&w), before, "nothing was taken");
        w.rest.immutable = None;
        w.good(order());
        let after = exports(&w);
        assert_ne!(after, before);
        let mut rest = w.rest.clone();
        rest.drives.clear();
        let w = World::start(rest, 3);
        assert_eq!(exports(&w), after, "as hosts were told last");
    }
}

#[test]
fn a_host_whose_removal_cannot_be_written_keeps_its_exports() {
    let mut w = usual();
    let before = exports(&w);
    w.rest.immutable = Some("hosts");
    w.refused(Order::HostRemove { name: "esx1".into(), force: true, disconnect: true });
    assert_eq!(exports(&w), before);
}

/// A head with one mirror: no other one would tell of a loss.
fn one_mirror() -> World {
    let mut w = World::start(four(), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    w
}

#[test]
fn an_order_that_does_not_end_is_answered_with_what_it_waits_for_and_so_is_the_next_one() {
    let mut w = one_mirror();
    w.rest.immutable = Some("witness-");
    let id = w.send(fail_b());
    w.pass(8);
    let refusal = w.answers[&id].clone().expect_err("nothing takes the record");
    assert_eq!(refusal.kind(), ErrorKind::NotReady);
    for part in ["OrderUnfinished", "drive fail", "seconds: 5", "RecordNotTaken", "Witness"] {
        assert!(refusal.said().contains(part), "{part}: {}", refusal.said());
    }
    // Of any pool.
    let (_, _, why) = w.refused(volume("vm2", 9 * MIB));
    assert!(why.contains("OrderUnfinished") && why.contains("drive fail"), "{why}");
    let s = w.status();
    let reason = s.reasons.iter().find(|r| r.what == "orders").expect("status says so");
    assert!(reason.said().contains("RecordNotTaken"), "{}", reason.said());

    // Whoever only looks is answered meanwhile, and that is not the end of the order.
    w.good(Order::DriveList { drives: vec![] });
    assert!(w.events().iter().all(|e| !e.contains("LateOrderEnded")), "{:?}", w.events());
    let list = w.send(Order::DriveList { drives: vec![] });
    w.rest.immutable = None;
    w.pass(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    let ended = |e: &String| e.contains("LateOrderEnded") && e.contains("refused: None");
    assert_eq!(w.events().iter().filter(|e| ended(e)).count(), 1, "{:?}", w.events());
    assert!(w.answers[&list].is_ok());
    assert!(w.status().reasons.iter().all(|r| r.what != "orders"));
    w.good(volume("vm2", 9 * MIB));
}

#[test]
fn a_head_stops_although_an_order_does_not_end() {
    let mut w = one_mirror();
    w.rest.immutable = Some("witness-");
    w.send(fail_b());
    w.pass(8);
    w.events.push_back(Event::Mail { from: Address::Manager, mail: StewardMail::Stop.into() });
    w.pass(10);
    assert!(w.stopped.is_some());
}
