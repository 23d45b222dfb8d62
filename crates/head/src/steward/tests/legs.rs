//! Legs that join, leave, and take each other's places.

use super::watch::ways_back;
use super::*;
use finding::{
    Cause, DriveFault, Instead, LegCause, LegEvent, LegRefusal, PoolRefusal, StatusCause, WayBack, Why,
};
use std::cell::Cell;
use std::rc::Rc;

fn with_more() -> World {
    let mut rest = four();
    rest.drives.extend(drives(&["/f/n", "/f/m", "/f/o", "/f/p"]).drives);
    let mut w = World::start(rest, 1);
    for order in [tank(), volume("vm1", 9 * MIB)] {
        w.good(order);
    }
    w
}
fn replace(old: &str, new: &str) -> Order {
    Order::DriveReplace { old: old.into(), new: new.into(), force: false }
}
fn add(drive: &str) -> Order {
    let mirror = Some("mirror-0".into());
    Order::LegAdd { pool: "tank".into(), mirror, drive: drive.into(), force: false }
}
fn rm(drive: &str, force: bool) -> Order {
    Order::DriveRemove { drive: drive.into(), force }
}
/// Legs of the first mirror: path, state, and the drive whose place it takes.
fn legs(w: &mut World) -> Vec<String> {
    let s = w.status();
    let words = |l: &crate::order::Leg| {
        let state = format!("{:?}", l.state).to_lowercase();
        let place = l.replaces.as_ref().map_or(String::new(), |old| format!(" for {old}"));
        format!("{} {state}{place}", l.path)
    };
    s.pools[0].arrays[0].legs.iter().map(words).collect()
}
/// Every shard has copied everything to the leg of this drive.
fn copied(w: &mut World, path: &str) {
    let array = w.layout.arrays[0].clone();
    let at = |l: &Option<array::Leg>| l.is_some_and(|l| w.open.get(&l.drive).is_some_and(|p| p == path));
    let place = array.membership.legs.iter().position(at).unwrap_or_else(|| panic!("{path} is a leg"));
    synced(w, place);
}
/// Every region that was dirty at a crash is the same on all legs, and all rebuilding legs have everything.
fn settle(w: &mut World) {
    for array in w.layout.arrays.clone() {
        for shard in 0..SHARDS {
            w.note(shard, array.id, Note::CrashClean { epoch: array.membership.epoch });
        }
    }
    w.run();
    for (place, leg) in w.layout.arrays[0].membership.legs.clone().into_iter().enumerate() {
        if leg.is_some_and(|l| l.state == LegState::Rebuilding) {
            synced(w, place);
        }
    }
    w.pass(6);
}
fn role(w: &mut World, path: &str) -> DriveRole {
    let Reply::Drives(list) = w.good(Order::DriveList { drives: vec![path.into()] }) else {
        panic!("a list")
    };
    list.iter().find(|d| d.path == path).expect("listed").role
}

#[test]
fn the_old_drive_serves_until_the_new_one_is_in_sync_and_then_leaves_without_its_label() {
    let mut w = with_more();
    w.good(replace("/f/a", "/f/n"));
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b optimal", "/f/n rebuilding for /f/a"]);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync, LegState::Rebuilding]);
    let s = w.status();
    assert_eq!(s.health, State::Rebuilding);
    let why = LegCause::LegReplacing { old: "/f/a".into() };
    assert!(s.reasons[0].said().contains(&format!("{why:?}")), "{:?}", s.reasons);
    assert!(s.pools[0].arrays[0].resync.as_ref().is_some_and(|r| r.leg == Some(2) && !r.partial));
    // A crash goes on with it.
    let mut w = w.crash(2);
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b optimal", "/f/n rebuilding for /f/a"]);
    settle(&mut w);
    assert_eq!(legs(&mut w), ["/f/b optimal", "/f/n optimal"]);
    assert_eq!(w.status().health, State::Optimal);
    assert_eq!(role(&mut w, "/f/a"), DriveRole::Free);
    let story: Vec<String> =
        w.events().into_iter().filter(|e| e.contains("/f/n") || e.contains("/f/a")).collect();
    let told = [
        "pool tank: Leg(LegReplaced { new: \"/f/n\", old: \"/f/a\", was: Serves })",
        "drive /f/n: Leg(LegJoined { pool: \"tank\", new: true, full: true })",
        "drive /f/n: Leg(LegSynced { pool: \"tank\" })",
        "drive /f/a: Leg(LegLeaves { pool: \"tank\", why: Leg(LegPlaceTaken { new: \"/f/n\" }) })",
        "drive /f/a: Leg(DriveFreed { pool: \"tank\" })",
    ];
    assert!(story.iter().map(String::as_str).filter(|e| told.contains(e)).eq(told), "{story:#?}");
    // Its place is free, and nobody is confused by it.
    let mut w = w.crash(3);
    assert_eq!(legs(&mut w), ["/f/b optimal", "/f/n optimal"]);
    w.good(replace("/f/b", "/f/a"));
    settle(&mut w);
    assert_eq!(legs(&mut w), ["/f/n optimal", "/f/a optimal"]);
    assert!(w.view.portals.is_empty() && w.layout.volumes[0].ready);
}

/// Wherever the power goes, the mirror has at least the legs in sync that it had, and the same orders bring
/// it to the same end.
#[test]
fn wherever_the_power_goes_while_a_drive_is_replaced_the_others_keep_their_data() {
    fn work(w: &mut World) {
        w.send(replace("/f/a", "/f/n"));
        w.run();
        let there = w.layout.arrays[0].membership.legs.get(2).copied().flatten();
        if w.effects_left > 0 && there.is_some() {
            synced(w, 2);
            w.pass(6);
        }
    }
    let rest = with_more().rest;
    let effects = {
        let mut w = World::start(rest.clone(), 5);
        let start = w.effects_done;
        work(&mut w);
        assert_eq!(w.legs(0), [LegState::InSync; 2]);
        w.effects_done - start
    };
    assert!(effects > 60, "{effects}");
    let (mut old, mut new) = (0, 0);
    for cut in 0..effects {
        let mut w = World::start(rest.clone(), 5);
        w.effects_left = cut;
        work(&mut w);
        let mut w = w.crash(6);
        let in_sync = w.legs(0).iter().filter(|l| **l == LegState::InSync).count();
        let word = legs(&mut w);
        assert!(in_sync >= 2 && w.layout.volumes.len() == 1, "cut at {cut}: {word:?}");
        settle(&mut w);
        match legs(&mut w)[..] {
            [ref a, ref b] if a.starts_with("/f/a ") && b.starts_with("/f/b ") => {
                old += 1;
                w.good(replace("/f/a", "/f/n"));
                settle(&mut w);
            }
            _ => new += 1,
        }
        settle(&mut w);
        assert_eq!(legs(&mut w), ["/f/b optimal", "/f/n optimal"], "cut at {cut}: {word:?}");
        assert_eq!(w.status().health, State::Optimal, "cut at {cut}");
        assert_eq!(role(&mut w, "/f/a"), DriveRole::Free, "cut at {cut}");
    }
    assert!(old > 20 && new > 20, "{old} {new}");
}

#[test]
fn either_drive_may_be_lost_while_one_takes_the_place_of_the_other() {
    // The old one: the new one is copied from the rest, and takes its place all the same.
    let mut w = with_more();
    w.good(replace("/f/a", "/f/n"));
    w.rest.drives.get_mut("/f/a").expect("there").fails = Some(DriveError::Gone);
    lose(&mut w, 0);
    assert_eq!(legs(&mut w), ["/f/a failed", "/f/b optimal", "/f/n rebuilding for /f/a"]);
    // What is left without the new one is not what there was.
    let (kind, _, words) = w.refused(rm("/f/n", false));
    assert!(kind == ErrorKind::Unsafe && words.contains("MirrorLeftAlone { drive: \"/f/n\""), "{words}");
    copied(&mut w, "/f/n");
    w.pass(6);
    assert_eq!(legs(&mut w), ["/f/b optimal", "/f/n optimal"]);
    let why = Box::new(LegCause::failed(DriveFault::Gone).into());
    let keeps = LegEvent::DriveKeepsLabel { pool: "tank".into(), why };
    assert!(w.happened_to("drive /f/a").contains(&keeps.into()));
    // It comes back, and is known for what it is.
    w.rest.drives.get_mut("/f/a").expect("there").fails = None;
    let r = w.order(Order::DriveReturn { drive: "/f/a".into() }).expect_err("a refusal");
    assert_eq!(*r.why, LegRefusal::LegWasReplaced { drive: "/f/a".into(), pool: "tank".into() }.into());
    w.good(add("/f/a"));
    // The new one: the mirror is as it was; the operator chooses.
    let mut w = with_more();
    w.good(replace("/f/a", "/f/n"));
    w.rest.drives.get_mut("/f/n").expect("there").fails = Some(DriveError::Medium);
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(0, array, Note::LegFailed { leg: 2, epoch, error: DriveError::Medium });
    w.run();
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b optimal", "/f/n failed for /f/a"]);
    assert_eq!(ways_back(&mut w), [WayBack::ReturnOrRemove { leg: "/f/n".into(), shaped: false }]);
    w.good(rm("/f/n", false));
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b optimal"]);
    assert_eq!(w.status().health, State::Optimal);
    w.good(replace("/f/a", "/f/m"));
    let mut w = w.crash(2);
    settle(&mut w);
    assert_eq!(legs(&mut w), ["/f/b optimal", "/f/m optimal"]);
}

#[test]
fn the_last_drive_in_sync_is_replaced_without_giving_it_up() {
    let mut w = with_more();
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    w.good(replace("/f/a", "/f/n"));
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b failed", "/f/n rebuilding for /f/a"]);
    copied(&mut w, "/f/n");
    w.pass(6);
    assert_eq!(legs(&mut w), ["/f/b failed", "/f/n optimal"]);
    w.good(replace("/f/b", "/f/m"));
    assert_eq!(legs(&mut w), ["/f/m rebuilding for /f/b", "/f/n optimal"]);
    copied(&mut w, "/f/m");
    w.pass(6);
    assert_eq!(role(&mut w, "/f/b"), DriveRole::RemovedFailed);
}

#[test]
fn a_mirror_of_four_has_room_for_one_that_takes_a_place() {
    let mut w = with_more();
    for (new, place) in [("/f/n", 2), ("/f/m", 3)] {
        w.good(add(new));
        synced(&mut w, place);
    }
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b optimal", "/f/n optimal", "/f/m optimal"]);
    let (kind, _, words) = w.refused(add("/f/o"));
    assert!(
        kind == ErrorKind::Conflict && words.contains("MirrorFull { mirror: \"mirror-0\", legs_max: 4"),
        "{words}"
    );
    w.good(replace("/f/a", "/f/o"));
    assert_eq!(w.legs(0), [[LegState::InSync; 4].as_slice(), &[LegState::Rebuilding]].concat());
    let (_, _, words) = w.refused(replace("/f/b", "/f/p"));
    assert!(words.contains("MirrorReplacesOne"), "{words}");
    let (_, _, words) = w.refused(replace("/f/a", "/f/p"));
    assert!(words.contains("LegBeingReplaced { drive: \"/f/a\", new: \"/f/o\" }"), "{words}");
    let (_, _, words) = w.refused(replace("/f/o", "/f/p"));
    assert!(words.contains("LegReplacesAnother { drive: \"/f/o\", old: \"/f/a\" }"), "{words}");
    let mut w = w.crash(2);
    settle(&mut w);
    assert_eq!(legs(&mut w), ["/f/b optimal", "/f/n optimal", "/f/m optimal", "/f/o optimal"]);
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    let all = ["/f/b", "/f/n", "/f/m", "/f/o", "/f/c", "/f/d"];
    w.good(import(&all, false));
    assert_eq!(w.legs(0), [LegState::InSync; 4]);
}

#[test]
fn a_leg_is_added_and_one_removed_and_redundancy_is_given_up_only_by_force() {
    let mut w = with_more();
    let (_, field, words) =
        w.refused(Order::LegAdd { pool: "tank".into(), mirror: None, drive: "/f/n".into(), force: false });
    let mirrors = "MirrorNotNamed { pool: \"tank\", mirrors: [\"mirror-0\", \"mirror-1\"] }";
    assert!(field == "mirror" && words.contains(mirrors), "{words}");
    w.good(add("/f/n"));
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b optimal", "/f/n rebuilding"]);
    assert_eq!(w.status().health, State::Rebuilding);
    // Of two in sync none is given up for one that is not.
    let (kind, ..) = w.refused(rm("/f/a", false));
    assert_eq!(kind, ErrorKind::Unsafe);
    synced(&mut w, 2);
    w.good(rm("/f/a", false));
    assert_eq!(legs(&mut w), ["/f/b optimal", "/f/n optimal"]);
    assert_eq!(role(&mut w, "/f/a"), DriveRole::Free);
    let mut w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync; 2]);
    let r = w.order(rm("/f/b", false)).expect_err("redundancy is given up by force alone");
    let (drive, mirror, pool) = ("/f/b".into(), "mirror-0".into(), "tank".into());
    assert_eq!(r, LegRefusal::MirrorLeftAlone { drive, mirror, pool }.into());
    w.good(rm("/f/b", true));
    settle(&mut w);
    assert_eq!(legs(&mut w), ["/f/n optimal"]);
    let s = w.status();
    let (pool, mirror, leg) = ("tank".into(), "mirror-0".into(), "/f/n".into());
    let alone = StatusCause::MirrorOneLeg { pool, mirror, leg };
    assert_eq!((s.health, s.reasons[0].cause.clone()), (State::Degraded, alone.into()));
    for force in [false, true] {
        let (kind, _, words) = w.refused(rm("/f/n", force));
        assert!(kind == ErrorKind::Conflict && words.contains("LegIsNeeded"), "{words}");
    }
    let mut w = w.crash(3);
    assert_eq!(legs(&mut w), ["/f/n optimal"]);
    w.good(add("/f/b"));
    settle(&mut w);
    assert_eq!(legs(&mut w), ["/f/n optimal", "/f/b optimal"]);
    assert_eq!(w.status().health, State::Optimal);
    let mut w = w.crash(4);
    settle(&mut w);
    let s = w.status();
    assert_eq!((s.health, s.pools[0].arrays[0].legs.len()), (State::Optimal, 2));
}

#[test]
fn wherever_the_power_goes_while_a_leg_joins_or_leaves_no_data_is_lost() {
    type Work = (fn(&mut World), &'static [&'static str], &'static [&'static str]);
    let joins: Work =
        (|w| w.next_order = w.send(add("/f/n")) + 1, &["/f/a", "/f/b"], &["/f/a", "/f/b", "/f/n"]);
    let leaves: Work = (|w| w.next_order = w.send(rm("/f/b", true)) + 1, &["/f/a", "/f/b"], &["/f/a"]);
    for (work, before, after) in [joins, leaves] {
        let rest = with_more().rest;
        let effects = {
            let mut w = World::start(rest.clone(), 5);
            let start = w.effects_done;
            work(&mut w);
            w.run();
            w.effects_done - start
        };
        let mut seen = [0, 0];
        for cut in 0..effects {
            let mut w = World::start(rest.clone(), 5);
            w.effects_left = cut;
            work(&mut w);
            w.run();
            let mut w = w.crash(6);
            assert_eq!(w.legs(0)[0], LegState::InSync, "cut at {cut}");
            settle(&mut w);
            let paths: Vec<String> =
                w.status().pools[0].arrays[0].legs.iter().map(|l| l.path.clone()).collect();
            seen[usize::from(paths == after)] += 1;
            assert!(paths == before || paths == after, "cut at {cut}: {paths:?}");
            assert!(w.legs(0).iter().all(|l| *l == LegState::InSync), "cut at {cut}");
            assert_eq!(w.layout.volumes.len(), 1);
        }
        assert!(seen[0] > 3 && seen[1] > 3, "{seen:?}");
    }
}

#[test]
fn a_drive_that_left_long_ago_and_one_that_was_away_meanwhile_are_no_other_history() {
    let mut w = with_more();
    let old = w.rest.drives["/f/a"].clone();
    w.good(Order::DriveFail { drive: "/f/d".into(), force: false });
    let away = w.rest.drives["/f/d"].clone();
    w.good(replace("/f/a", "/f/n"));
    copied(&mut w, "/f/n");
    w.pass(6);
    for _ in 0..40 {
        lose(&mut w, 1);
        let _ = w.order(Order::DriveReturn { drive: "/f/b".into() });
        copied(&mut w, "/f/b");
    }
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    // Copies from before, as they may lie in somebody's drawer.
    let mut rest = w.rest.clone();
    rest.drives.insert("/f/a".into(), FakeDrive { held: false, ..old });
    rest.drives.insert("/f/d".into(), FakeDrive { held: false, ..away });
    let mut w = World::start(rest, 7);
    w.good(import(&["/f/a", "/f/b", "/f/c", "/f/d", "/f/n"], false));
    assert_eq!(legs(&mut w), ["/f/b optimal", "/f/n optimal"]);
    // It was failed by an order, and waits for another one.
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Missing]);
    w.good(Order::DriveReturn { drive: "/f/d".into() });
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn another_drive_in_the_same_place_takes_it() {
    let mut w = with_more();
    // One that serves stays.
    assert_eq!(w.refused(replace("/f/b", "/f/b")).0, ErrorKind::Conflict);
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    // The old one is still there: its label says so.
    let (kind, field, words) = w.refused(replace("/f/b", "/f/b"));
    assert_eq!((kind, &*field), (ErrorKind::Unsafe, "new"), "{words}");
    assert!(words.contains("DriveHasFailed { drive: \"/f/b\", pool: \"tank\""), "{words}");
    // Another one was put where it was.
    w.rest.drives.get_mut("/f/b").expect("there").blocks.clear();
    w.good(replace("/f/b", "/f/b"));
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b rebuilding"]);
    copied(&mut w, "/f/b");
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b optimal"]);
    assert_eq!(w.status().health, State::Optimal);
    // The same drive, everything on it given up.
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    let uuid = w.status().pools[0].arrays[0].legs[1].uuid;
    w.good(Order::DriveReplace { old: uuid.to_string(), new: "/f/b".into(), force: true });
    copied(&mut w, "/f/b");
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b optimal"]);
}

/// A leg that is out adds to the redundancy that can be had again: it goes only if that is meant.
#[test]
fn a_leg_of_three_that_is_out_is_removed_by_force_where_one_in_sync_is_left() {
    let mut w = with_more();
    w.good(add("/f/n"));
    synced(&mut w, 2);
    for drive in ["/f/b", "/f/n"] {
        w.good(Order::DriveFail { drive: drive.into(), force: false });
    }
    let r = w.order(rm("/f/n", false)).expect_err("redundancy is given up by force alone");
    let (drive, mirror, pool) = ("/f/n".into(), "mirror-0".into(), "tank".into());
    assert_eq!(r, LegRefusal::MirrorLeftAlone { drive, mirror, pool }.into());
    w.good(rm("/f/n", true));
    settle(&mut w);
    assert_eq!(w.status().pools[0].arrays[0].legs.len(), 2);
    // With two in sync it needs no force.
    let mut w = with_more();
    w.good(add("/f/n"));
    synced(&mut w, 2);
    w.good(Order::DriveFail { drive: "/f/n".into(), force: false });
    w.good(rm("/f/n", false));
}

#[test]
fn a_name_that_two_drives_have_is_refused() {
    let mut w = with_more();
    // `ram:1G` twice: the little world has a path once, so the context is told that it is the same.
    for array in &mut w.steward.procedures.context_mut().pools[0].arrays {
        array.legs[1].path = "ram:1G".into();
    }
    let r = w.order(Order::DriveFail { drive: "ram:1G".into(), force: false }).expect_err("a refusal");
    assert_eq!((r.kind(), r.field), (ErrorKind::Invalid, "drive"));
    assert_eq!(*r.why, LegRefusal::DriveNameShared { drive: "ram:1G".into(), drives: 2 }.into());
}

#[test]
fn the_rate_of_a_resync_is_known_at_the_first_look() {
    let mut w = with_more();
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    for array in w.layout.arrays.clone() {
        for shard in 0..SHARDS {
            let progress =
                array::Progress { resync_done: 8 * MIB, resync_total: 16 * MIB, ..Default::default() };
            w.scrubs.insert((shard, array.id), (array::Scrub::default(), progress));
        }
    }
    w.now = w.now + base::Duration::from_secs(4);
    let s = w.status();
    let resync = s.pools[0].arrays[0].resync.clone().expect("it is resynced");
    assert_eq!((resync.done_bytes, resync.total_bytes), (16 * MIB, 32 * MIB));
    assert_eq!((resync.rate, resync.seconds_left), (4 * MIB, Some(4)), "since it began");
}

/// The end of a refusal to `drive return`: carried out as it is printed.
fn follow(w: &mut World, drive: &str) -> (Cause, Order) {
    let r = w.order(Order::DriveReturn { drive: drive.into() }).expect_err("a refusal");
    let Why::Leg(LegRefusal::LegMayNotReturn { why, instead, .. }) = *r.why else { panic!("{r:?}") };
    let (old, new) = match (&*why, instead) {
        (_, Instead::Overwrite { leg, drive }) => (leg, drive),
        // It may be the one that is right: that comes first.
        (Cause::Leg(LegCause::DriveDiverged { leg, path, pool }), Instead::AsItSays) if pool == "tank" => {
            (leg.clone(), path.clone())
        }
        (why, instead) => panic!("{why:?} {instead:?}"),
    };
    (*why, Order::DriveReplace { old, new, force: true })
}

#[test]
fn a_return_that_is_refused_leaves_the_drive_where_it_was_with_its_shape() {
    let mut w = with_more();
    let shape = Shape { latency_us: 7, ..Shape::default() };
    w.good(Order::DriveShape { drive: "/f/b".into(), shape: shape.clone() });
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    w.rest.drives.get_mut("/f/b").expect("there").free = Some(0);
    let r = w.order(Order::DriveReturn { drive: "/f/b".into() }).expect_err("nothing fits there");
    assert_eq!(r, LegRefusal::LegFileSystemFull { drive: "/f/b".into() }.into());
    let s = w.status();
    let d = s.drives.iter().find(|d| d.path == "/f/b").expect("it is there");
    assert_eq!(
        (d.role, d.state, d.shape.as_ref()),
        (DriveRole::Leg, Some(State::Failed), Some(&(&shape).into()))
    );
    assert_eq!(ways_back(&mut w), [WayBack::Return { leg: "/f/b".into() }]);
    w.rest.drives.get_mut("/f/b").expect("there").free = None;
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    synced(&mut w, 1);
    let s = w.status();
    assert_eq!(s.health, State::Optimal);
    assert_eq!(
        s.drives.iter().find(|d| d.path == "/f/b").and_then(|d| d.shape.clone()),
        Some((&shape).into())
    );
}

#[test]
fn a_leg_that_is_shaped_to_hang_while_it_takes_anothers_place_is_cleared_first() {
    let mut w = with_more();
    w.good(replace("/f/a", "/f/n"));
    w.good(Order::DriveShape { drive: "/f/n".into(), shape: Shape { hang: true, ..Shape::default() } });
    w.good(Order::DriveFail { drive: "/f/n".into(), force: false });
    assert_eq!(ways_back(&mut w), [WayBack::ReturnOrRemove { leg: "/f/n".into(), shaped: true }]);
}

/// Whatever keeps a drive from its return, the command that the refusal names puts it back by a full copy.
#[test]
fn a_drive_that_may_not_return_replaces_itself_as_the_refusal_says() {
    type Spoil = fn(FakeDrive) -> FakeDrive;
    let overwritten: Spoil = |b| FakeDrive { blocks: Default::default(), ..b };
    let foreign: Spoil = |_| {
        let mut other = World::start(drives(&["/f/b", "/f/x"]), 9);
        other.good(create("other", vec![mirror("/f/b", "/f/x")]));
        other.rest.drives["/f/b"].clone()
    };
    // Another head took this leg alone, by force, and went on from it.
    let diverged: Spoil = |b| {
        let mut other = World::start(Rest { drives: [("/f/b".into(), b)].into(), ..Rest::default() }, 9);
        other.good(import(&["/f/b"], true));
        other.good(volume("theirs", MIB));
        other.rest.drives["/f/b"].clone()
    };
    let cases: [(Spoil, &str, &str); 4] = [
        (overwritten, "/f/b", "DriveLabelUnreadable"),
        (foreign, "/f/b", "DriveLabelOfOther"),
        (diverged, "/f/b", "DriveDiverged"),
        (diverged, "/f/moved", "DriveDiverged"),
    ];
    for (spoil, at, why) in cases {
        let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
        for order in [create("tank", vec![mirror("/f/a", "/f/b")]), volume("vm1", 9 * MIB), Order::Shutdown] {
            w.good(order);
        }
        let b = w.rest.drives.remove("/f/b").expect("there");
        let mut w = w.crash(2);
        w.rest.drives.insert(at.into(), FakeDrive { held: false, ..spoil(b) });
        let (cause, order) = follow(&mut w, at);
        assert_eq!(cause.name(), why);
        w.good(order);
        let place = if at == "/f/b" { "" } else { " for /f/b" };
        assert_eq!(legs(&mut w), ["/f/a optimal", &format!("{at} rebuilding{place}")], "{why}");
        assert!(
            w.status().pools[0].arrays[0].resync.as_ref().is_some_and(|r| !r.partial),
            "{why}: all is copied"
        );
        copied(&mut w, at);
        w.pass(6);
        assert_eq!(w.status().health, State::Optimal, "{why}: {:?}", w.status().reasons);
    }
}

/// The other mirror's legs know the record by which the stale leg is out: so the one with the later writes is of the same line,
/// and was copied over as soon as it was there.
#[test]
fn a_leg_with_later_writes_than_the_one_that_was_taken_by_force_is_not_copied_over() {
    let all = ["/f/a", "/f/b", "/f/c", "/f/d"];
    let mut w = World::start(drives(&all), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b"), mirror("/f/c", "/f/d")]));
    w.good(volume("vm1", 9 * MIB));
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    let mut rest = w.rest.clone();
    rest.files.clear();
    rest.drives.values_mut().for_each(|d| d.held = false);
    let later = rest.drives.remove("/f/a").expect("there");
    let mut w = World::start(rest, 7);
    w.good(import(&["/f/b", "/f/c", "/f/d"], true));
    w.pass(6);
    let before = later.blocks.clone();
    w.rest.drives.insert("/f/a".into(), later);
    for life in [8, 9] {
        w.pass(40);
        assert!(legs(&mut w).contains(&"/f/b optimal".to_string()), "{:?}", legs(&mut w));
        assert!(!legs(&mut w).iter().any(|l| l.starts_with("/f/a rebuilding")), "{:?}", legs(&mut w));
        let told = w.status().reasons.iter().any(|r| r.said().contains("DriveDiverged"));
        assert!(told, "{:?}", w.status().reasons);
        w = w.crash(life);
    }
    let data = |blocks: &std::collections::BTreeMap<u64, _>| blocks.len();
    assert_eq!(data(&w.rest.drives["/f/a"].blocks), data(&before));
}

#[test]
fn a_drive_that_was_cut_off_while_the_head_was_down_is_told_with_its_sizes() {
    let mut w = with_more();
    for order in
        [Order::SpareAdd { pool: "tank".into(), drive: "/f/n".into(), force: false }, Order::Shutdown]
    {
        w.good(order);
    }
    let mut rest = w.rest.clone();
    let whole = rest.drives["/f/b"].bytes;
    for drive in ["/f/b", "/f/n"] {
        let d = rest.drives.get_mut(drive).expect("there");
        d.bytes = 70 * MIB;
        d.blocks.retain(|block, _| *block < 70 * MIB / 512);
    }
    let mut w = World::start(rest, 2);
    let small = |path: &str| LegCause::DriveTooSmall {
        leg: path.into(),
        path: path.into(),
        bytes: 70 * MIB,
        needed_bytes: whole,
        file: true,
    };
    let told = w.status().reasons;
    assert_eq!(told.len(), 2);
    for (reason, path) in told.iter().zip(["/f/b", "/f/n"]) {
        assert!(reason.said().contains(&format!("{:?}", small(path))), "{reason:?}");
    }
    // To try it all the same is no help, and says what is.
    let r = w.order(Order::DriveReturn { drive: "/f/b".into() }).expect_err("too small");
    let why = Box::new(small("/f/b").into());
    let (drive, pool, instead) = ("/f/b".into(), "tank".into(), Instead::AsItSays);
    assert_eq!(r, LegRefusal::LegMayNotReturn { drive, pool, why, instead }.into());
    w.rest.drives.get_mut("/f/b").expect("there").bytes = whole;
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert!(w.status().pools[0].arrays[0].resync.as_ref().is_some_and(|r| !r.partial), "its end was lost");
    synced(&mut w, 1);
    // One that is gone altogether is another thing.
    w.good(Order::Shutdown);
    w.rest.drives.remove("/f/b");
    let mut w = w.crash(3);
    let away = StatusCause::LegNotOptimal {
        leg: "/f/b".into(),
        mirror: "mirror-0".into(),
        why: Some(Box::new(LegCause::DriveNotFound.into())),
        no_spare_fits: vec![],
        help: Some(WayBack::Attach { leg: "/f/b".into() }),
    };
    assert_eq!(w.status().reasons[0].cause, away.into());
}

#[test]
fn a_file_that_was_made_again_empty_while_the_head_was_down_is_told_with_the_order_that_takes_it() {
    let mut w = with_more();
    w.good(Order::Shutdown);
    let mut rest = w.rest.clone();
    rest.drives.get_mut("/f/b").expect("there").blocks.clear();
    let mut w = World::start(rest, 2);
    let reason = w.status().reasons[0].clone();
    let why = LegCause::DriveUnlabelled { leg: "/f/b".into(), path: "/f/b".into() };
    let why = format!("{why:?}");
    assert!(reason.said().contains(&why), "{reason:?}");
    let told = |e: &String| e.starts_with("drive /f/b: ") && e.contains(&why);
    assert!(w.events().iter().any(told), "a pool that comes up degraded says so: {:#?}", w.events());
    w.good(Order::DriveReplace { old: "/f/b".into(), new: "/f/b".into(), force: true });
    assert_eq!(legs(&mut w), ["/f/a optimal", "/f/b rebuilding"]);
    copied(&mut w, "/f/b");
    assert_eq!(w.status().health, State::Optimal);
}

/// A drive that was pulled stays open until the head has noticed; what lies elsewhere with its label is the drive itself.
#[test]
fn a_pulled_drive_that_lies_elsewhere_is_not_overwritten_before_it_is_let_go_of() {
    let mut w = World::start(drives(&["/f/a", "/f/b", "/f/s", "/f/n", "/f/m"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    w.good(Order::SpareAdd { pool: "tank".into(), drive: "/f/s".into(), force: false });
    for (from, to, other) in [("/f/b", "/f/y", "/f/n"), ("/f/s", "/f/z", "/f/m")] {
        let itself = FakeDrive { held: false, ..w.rest.drives[from].clone() };
        w.rest.drives.insert(to.into(), itself);
        let make = || {
            let Order::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, .. } =
                create(&to.replace("/f/", "over-"), vec![mirror(to, other)])
            else {
                panic!("it makes a pool")
            };
            Order::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, force: true }
        };
        let add = Order::PoolAdd { pool: "tank".into(), arrays: vec![mirror(to, other)], force: true };
        w.rest.drives.get_mut(from).expect("there").fails = Some(DriveError::Gone);
        for order in [make(), add] {
            let r = w.order(order.clone()).expect_err("the drive itself, pulled and put elsewhere");
            let (drive, pool, place) = (to.into(), "tank".into(), Some(from.into()));
            let why = PoolRefusal::DriveListed { drive, pool, place, removable: true };
            assert_eq!((r.kind(), *r.why), (ErrorKind::Conflict, why.into()), "{order:?}");
        }
        // A copy of a drive that is well in its place is anybody's.
        w.rest.drives.get_mut(from).expect("there").fails = None;
        w.good(make());
    }
}

/// The refusal of a return named a command that destroyed another pool of the same head.
#[test]
fn a_drive_of_another_pool_of_this_head_is_put_back_and_never_overwritten() {
    let single =
        ArraySpec { layout: crate::order::ArrayLayout::Single, drives: vec!["/f/x".into()], weight: None };
    let mut w = World::start(drives(&["/f/x", "/f/p", "/f/q", "/f/z", "/f/y", "/f/n", "/f/r"]), 1);
    for order in [
        create("one", vec![single]),
        create("tank", vec![mirror("/f/p", "/f/q")]),
        create("two", vec![mirror("/f/y", "/f/z")]),
        create("more", vec![mirror("/f/n", "/f/r")]),
        Order::Shutdown,
    ] {
        w.good(order);
    }
    // The only drive of a pool where a leg of another one was, and a leg of a third where one of a fourth was.
    let only = w.rest.drives.remove("/f/x").expect("there");
    let leg = w.rest.drives.remove("/f/p").expect("there");
    w.rest.drives.insert("/f/z".into(), only);
    w.rest.drives.insert("/f/n".into(), leg);
    let mut w = w.crash(2);
    let r = w.order(Order::DriveReturn { drive: "/f/z".into() }).expect_err("another drive");
    let of_other = |drive: &str, pool: &str, other: &str, instead| {
        let why = Box::new(LegCause::DriveLabelOfOther { pool: other.into() }.into());
        LegRefusal::LegMayNotReturn { drive: drive.into(), pool: pool.into(), why, instead }
    };
    let import = Instead::Import { pool: "one".into(), drive: "/f/z".into() };
    assert_eq!(r, of_other("/f/z", "two", "one", import).into());
    let r = w.order(Order::DriveReturn { drive: "/f/n".into() }).expect_err("another drive");
    let put_back = Instead::PutBack { place: "/f/p".into(), drive: "/f/n".into() };
    assert_eq!(r, of_other("/f/n", "more", "tank", put_back).into());
    let over = |drive: &str| {
        [
            Order::DriveReplace { old: "/f/z".into(), new: drive.into(), force: true },
            Order::SpareAdd { pool: "two".into(), drive: drive.into(), force: true },
            Order::LegAdd { pool: "two".into(), mirror: None, drive: drive.into(), force: true },
            Order::PoolAdd { pool: "two".into(), arrays: vec![mirror(drive, "/f/free")], force: true },
        ]
    };
    w.rest.drives.extend(drives(&["/f/free"]).drives);
    for order in over("/f/z").into_iter().chain(over("/f/n")) {
        let r = w.order(order.clone()).expect_err("it is a drive of this head");
        // A path that a leg has is refused before anybody looks what lies there.
        let named = matches!(
            *r.why,
            Why::Pool(PoolRefusal::DriveListed { .. }) | Why::Leg(LegRefusal::DriveInPool { .. })
        );
        assert!(named, "{order:?}: {r:?}");
    }
    let r = w
        .order(Order::DriveReplace { old: "/f/z".into(), new: "/f/z".into(), force: true })
        .expect_err("the only drive of a pool");
    let (drive, pool) = ("/f/z".into(), "one".into());
    let listed = PoolRefusal::DriveListed { drive, pool, place: None, removable: false };
    assert_eq!((r.field, *r.why), ("new", listed.into()));
    // What lies elsewhere is not taken for another drive, and its UUID takes it from there.
    let s = w.status();
    let tank = s.pools.iter().find(|p| p.name == "tank").expect("it is here");
    let moved = &tank.arrays[0].legs[0];
    assert!(moved.said().contains("DriveMoved") && moved.said().contains("/f/n"), "{}", moved.said());
    let uuid = moved.uuid;
    w.good(Order::DriveReturn { drive: uuid.to_string() });
    let import =
        Order::PoolImport { pool: Some("one".into()), name: None, drives: vec!["/f/z".into()], force: false };
    w.good(import);
    // Let go of, it is anybody's.
    w.good(Order::PoolRelease { pool: "one".into(), force: true, disconnect: false });
    w.good(Order::DriveReplace { old: "/f/z".into(), new: "/f/z".into(), force: true });
}

/// Everything is to be marked in the first mirror. Whether it was, within the time that there is for that.
fn marks_all(w: &mut World) -> Option<bool> {
    let (procedures, marked) = (w.steward.procedures.clone(), Rc::new(Cell::new(None)));
    let pool = procedures.context().pools[0].id;
    let (cx, says) = (procedures.cx.clone(), marked.clone());
    cx.spawn(async move { says.set(Some(procedures.mark_all(pool, 0).await.is_ok())) });
    w.run();
    w.pass(31);
    marked.get()
}

/// By then its bits may have been cleared again.
#[test]
fn what_shards_say_of_a_mark_that_was_given_up_does_not_count_for_the_next_one() {
    let mut w = usual();
    w.late = true;
    assert_eq!(marks_all(&mut w), Some(false), "no shard says anything");
    assert_eq!(marks_all(&mut w), Some(false), "all say that they have done it for the first one");
    w.late = false;
    assert_eq!(marks_all(&mut w), Some(true));
}
