//! Hot spares, and drives that take the place of others.

use super::*;
use base::FileName;
use finding::{
    Cause, DriveHelp, LegEvent, LegNotice, Notice, SpareFit, SpareUnfit, StatusCause, StatusNotice,
    VolumeNotice,
};

fn with_spare() -> World {
    let mut rest = four();
    rest.drives.extend(drives(&["/f/s", "/f/t", "/f/u"]).drives);
    let mut w = World::start(rest, 1);
    for order in [tank(), volume("vm1", 9 * MIB), spare("/f/s")] {
        w.good(order);
    }
    w
}
fn spare(drive: &str) -> Order {
    Order::SpareAdd { pool: "tank".into(), drive: drive.into(), force: false }
}
fn replace(old: &str, new: &str) -> Order {
    Order::DriveReplace { old: old.into(), new: new.into(), force: false }
}
fn rm(drive: &str) -> Order {
    Order::DriveRemove { drive: drive.into(), force: false }
}
fn spares(w: &mut World) -> Vec<String> {
    w.status().pools[0].spares.iter().map(|s| format!("{} {}", s.path, s.ready)).collect()
}
/// Every shard has copied everything, and made the legs the same after the crash.
fn well(w: &mut World) {
    for array in w.layout.arrays.clone() {
        for shard in 0..SHARDS {
            w.note(shard, array.id, Note::CrashClean { epoch: array.membership.epoch });
        }
    }
    synced(w, 1);
    assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
}
fn legs_of(w: &mut World) -> Vec<String> {
    w.status().pools[0].arrays[0].legs.iter().map(|l| l.path.clone()).collect()
}

fn notices(w: &mut World) -> Vec<Notice> {
    w.status().notices.into_iter().map(|n| n.notice).collect()
}

/// The spare is not there, nor anything else at its path.
fn missing() -> Cause {
    StatusCause::SpareMissing { spare: "/f/s".into(), pool: "tank".into() }.into()
}

/// The spare is there, and could not be read.
fn mute(fault: DriveFault) -> Cause {
    let why = Box::new(LegCause::DriveUnreadable { leg: "/f/s".into(), fault }.into());
    StatusCause::SpareUnreadable { spare: "/f/s".into(), why }.into()
}

#[test]
fn a_spare_is_kept_with_the_pool_and_comes_back_with_it() {
    let mut w = with_spare();
    assert_eq!(spares(&mut w), ["/f/s true"]);
    let mut w = w.crash(2);
    assert_eq!(spares(&mut w), ["/f/s true"]);
    assert_eq!(w.status().health, State::Optimal);
    assert!(w.status().drives.iter().any(|d| d.role == DriveRole::Spare && d.path == "/f/s"));
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    let all = ["/f/a", "/f/b", "/f/c", "/f/d", "/f/s"].map(String::from).to_vec();
    w.good(Order::PoolImport { pool: Some("tank".into()), name: None, drives: all, force: false });
    assert_eq!(spares(&mut w), ["/f/s true"]);
    // One that is missing is told, and does not keep the pool from coming up.
    w.rest.drives.remove("/f/s");
    let mut w = w.crash(3);
    assert_eq!(spares(&mut w), ["/f/s false"]);
    assert_eq!(w.status().reasons[0].cause, missing());
    w.good(rm("/f/s"));
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn a_leg_that_fails_for_good_is_replaced_at_once() {
    let mut w = with_spare();
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(1, array, Note::LegFailed { leg: 1, epoch, error: DriveError::Medium });
    w.run();
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert_eq!(legs_of(&mut w), ["/f/a", "/f/s"]);
    assert_eq!(spares(&mut w), [""; 0]);
    let story = w.events();
    let at = |words: &str| {
        story.iter().position(|e| e.contains(words)).unwrap_or_else(|| panic!("{words}: {story:#?}"))
    };
    let steps = [
        at("LegOut { pool: \"tank\", why: Leg(DriveFailed { fault: Medium"),
        at("SpareUsed { spare: \"/f/s\", old: \"/f/b\" }"),
        at("drive /f/s: Leg(LegJoined { pool: \"tank\", new: true, full: true })"),
    ];
    assert!(steps.is_sorted(), "{story:#?}");
    // The bitmaps know what is left, so a crash in the middle does not begin anew.
    let mut w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert_eq!(legs_of(&mut w), ["/f/a", "/f/s"]);
    well(&mut w);
    // The old drive does not come back by mistake.
    let r = w.order(Order::DriveReturn { drive: "/f/b".into() }).expect_err("a refusal");
    let why = LegRefusal::LegWasReplaced { drive: "/f/b".into(), pool: "tank".into() };
    assert_eq!((r.kind(), *r.why), (ErrorKind::Conflict, why.into()));
    let refused = w.refused(spare("/f/b"));
    assert!(refused.2.contains("DriveHasFailed"), "{refused:?}");
    w.good(Order::SpareAdd { pool: "tank".into(), drive: "/f/b".into(), force: true });
    assert_eq!(spares(&mut w), ["/f/b true"]);
}

#[test]
fn a_leg_that_may_come_back_is_given_five_minutes() {
    let mut w = with_spare();
    let gone = |w: &mut World, error| w.rest.drives.get_mut("/f/b").expect("there").fails = error;
    gone(&mut w, Some(DriveError::Gone));
    lose(&mut w, 1);
    w.pass(280);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    gone(&mut w, None);
    w.pass(15);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding], "it comes back by itself");
    synced(&mut w, 1);
    w.pass(100);
    assert_eq!(
        (legs_of(&mut w), spares(&mut w)),
        (vec!["/f/a".into(), "/f/b".into()], vec!["/f/s true".into()])
    );
    gone(&mut w, Some(DriveError::Gone));
    lose(&mut w, 1);
    w.pass(310);
    assert_eq!(legs_of(&mut w), ["/f/a", "/f/s"]);
}

#[test]
fn a_spare_that_fails_when_it_is_needed_leaves_its_turn_to_the_next() {
    let mut w = with_spare();
    w.good(spare("/f/t"));
    w.rest.drives.get_mut("/f/b").expect("there").fails = Some(DriveError::Gone);
    // At looks it is well, and it cannot be opened as a leg.
    w.rest.drives.get_mut("/f/s").expect("there").stuck = true;
    lose(&mut w, 1);
    w.pass(320);
    assert_eq!(legs_of(&mut w), ["/f/a", "/f/t"]);
    assert_eq!(spares(&mut w), ["/f/s false"]);
    assert!(w.events().iter().any(|e| e.contains("SpareNotUsed { spare: \"/f/s\"")));
}

#[test]
fn wherever_the_power_goes_while_a_spare_takes_its_place_the_pool_comes_up_with_its_data() {
    let mut before = with_spare();
    let (array, epoch) = (before.layout.arrays[0].id, before.layout.arrays[0].membership.epoch);
    let fail = Note::LegFailed { leg: 1, epoch, error: DriveError::Medium };
    before.note(1, array, fail);
    before.run();
    let rest = before.rest.clone();
    let effects = {
        let mut w = World::start(rest.clone(), 5);
        let start = w.effects_done;
        w.good(replace("/f/b", "/f/t"));
        w.effects_done - start
    };
    assert!(effects > 20);
    for cut in 0..effects {
        let mut w = World::start(rest.clone(), 5);
        w.effects_left = cut;
        w.send(replace("/f/b", "/f/t"));
        w.run();
        let mut w = w.crash(6);
        assert_eq!(w.legs(0)[0], LegState::InSync, "cut at {cut}");
        assert_eq!(w.layout.volumes.len(), 1);
        if legs_of(&mut w)[1] != "/f/t" {
            // It had not begun to count: the same order again needs no force.
            w.good(replace("/f/b", "/f/t"));
        }
        assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding], "cut at {cut}");
        well(&mut w);
    }
}

#[test]
fn orders_about_spares_and_places_that_make_no_sense_are_refused() {
    let mut w = with_spare();
    let small = FakeDrive { bytes: 70 * MIB, ..w.rest.drives["/f/t"].clone() };
    w.rest.drives.insert("/f/small".into(), small);
    let cases = [
        (spare("/f/s"), ErrorKind::Conflict, "DriveInPool { drive: \"/f/s\", pool: \"tank\" }"),
        (spare("/f/a"), ErrorKind::Conflict, "DriveInPool { drive: \"/f/a\", pool: \"tank\" }"),
        (spare("/f/none"), ErrorKind::Invalid, "drive: \"/f/none\", fault: Machine { fault: Missing }"),
        (spare("/f/small"), ErrorKind::Invalid, "SpareTooSmall { drive: \"/f/small\", pool: \"tank\""),
        (
            replace("/f/a", "/f/small"),
            ErrorKind::Invalid,
            "LegTooSmall { drive: \"/f/small\", bytes: 73400320, needed_bytes: ",
        ),
        (replace("/f/a", "/f/s"), ErrorKind::Conflict, "DriveIsSpare { drive: \"/f/s\", pool: \"tank\" }"),
        (replace("/f/a", "/f/b"), ErrorKind::Conflict, "DriveInPool { drive: \"/f/b\", pool: \"tank\" }"),
        (replace("/f/a", "/f/a"), ErrorKind::Conflict, "LegServes"),
        (
            rm("/f/a"),
            ErrorKind::Unsafe,
            "MirrorLeftAlone { drive: \"/f/a\", mirror: \"mirror-0\", pool: \"tank\" }",
        ),
        (rm("/f/none"), ErrorKind::NotFound, "DriveInNoPool"),
    ];
    for (order, kind, words) in cases {
        let text = format!("{order:?}");
        let (k, _, message) = w.refused(order);
        assert!(k == kind && message.contains(words), "{text}: {k:?} {message}");
    }
    // A refused replacement has not touched the old drive.
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    assert_eq!(w.status().health, State::Optimal);
    w.good(rm("/f/s"));
    let mut w = w.crash(2);
    assert_eq!(spares(&mut w), [""; 0]);
}

/// What real drives do when they overheat: silent; the kernel's reset and its time-out; errors, and gone; back
/// after minutes.
#[test]
fn a_drive_that_overheats_is_taken_back_by_bitmap_and_the_events_tell_the_story() {
    let mut w = with_spare();
    w.rest.drives.get_mut("/f/b").expect("there").hangs = true;
    w.pass(60);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    let b = w.rest.drives.get_mut("/f/b").expect("there");
    (b.hangs, b.fails) = (false, Some(DriveError::Gone));
    w.pass(200);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    w.rest.drives.get_mut("/f/b").expect("there").fails = None;
    w.pass(20);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert!(w.status().pools[0].arrays[0].resync.as_ref().is_some_and(|r| r.partial), "only what it missed");
    synced(&mut w, 1);
    w.pass(600);
    assert_eq!(w.status().health, State::Optimal);
    assert_eq!(spares(&mut w), ["/f/s true"], "the spare was not needed");
    let story: Vec<String> = w.events().into_iter().filter(|e| e.starts_with("drive /f/b")).collect();
    let told = [
        "drive /f/b: Leg(LegOut { pool: \"tank\"",
        "drive /f/b: Leg(LegJoined { pool: \"tank\", new: false, full: false })",
        "drive /f/b: Leg(LegSynced { pool: \"tank\" })",
    ];
    assert_eq!(story.len(), told.len(), "{story:#?}");
    assert!(story.iter().zip(told).all(|(e, t)| e.starts_with(t)), "{story:#?}");
}

#[test]
fn a_leg_that_was_taken_out_by_hand_stays_out_and_one_that_comes_and_goes_is_tried_less_often() {
    let mut w = with_spare();
    w.good(rm("/f/s"));
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    w.pass(1000);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    synced(&mut w, 1);
    let mut waits = vec![];
    for _ in 0..4 {
        lose(&mut w, 1);
        let mut seconds = 0;
        while w.legs(0)[1] == LegState::Missing {
            w.pass(1);
            seconds += 1;
        }
        synced(&mut w, 1);
        waits.push(seconds);
    }
    assert!(waits.windows(2).all(|p| p[1] > p[0]) && waits[3] >= 80, "{waits:?}");
}

#[test]
fn a_spare_that_stands_in_is_told_until_another_one_is_there() {
    let mut w = with_spare();
    let hurt = w.open.iter().find(|(_, spec)| *spec == "/f/b").map(|(id, _)| *id).expect("it is open");
    let counters = crate::report::Counters { errors: 7, ..Default::default() };
    w.figures = vec![crate::report::DriveReport { drive: hurt, counters, ..Default::default() }];
    w.status();
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(1, array, Note::LegFailed { leg: 1, epoch, error: DriveError::Medium });
    w.run();
    w.pass(6);
    synced(&mut w, 1);
    w.pass(7200);
    let told: Vec<Cause> = w.status().reasons.into_iter().map(|r| r.cause).collect();
    let [Cause::Status(StatusCause::NoSpareLeft { pool, spare: stands_in, old, seconds })] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((&**pool, &**stands_in, &**old), ("tank", "/f/s", "/f/b"));
    assert!((7200..7210).contains(seconds), "{seconds}");
    // What the old drive did is not forgotten with its place.
    let Reply::Drives(list) = w.good(Order::DriveList { drives: vec!["/f/b".into()] }) else {
        panic!("a list")
    };
    assert_eq!(list.iter().find(|d| d.path == "/f/b").map(|d| d.errors), Some(7));
    w.good(spare("/f/t"));
    assert!(w.status().reasons.is_empty() && notices(&mut w).is_empty());
}

#[test]
fn a_spare_that_stands_in_beside_another_one_is_worth_a_notice_alone() {
    let mut w = with_spare();
    w.good(spare("/f/u"));
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(1, array, Note::LegFailed { leg: 1, epoch, error: DriveError::Medium });
    w.run();
    w.pass(6);
    synced(&mut w, 1);
    w.pass(6);
    let told = notices(&mut w);
    let left = |n: &Notice| matches!(n, Notice::Status(StatusNotice::SpareStandsIn { spares_left: 1, .. }));
    assert!(told.len() == 1 && left(&told[0]), "{told:?}");
    assert!(w.status().reasons.is_empty());
}

/// It was told until the head's next start, or until somebody added a spare that nobody needed.
#[test]
fn a_spare_that_stands_in_no_more_is_told_no_more() {
    for release in [false, true] {
        let mut w = with_spare();
        let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
        w.note(1, array, Note::LegFailed { leg: 1, epoch, error: DriveError::Medium });
        w.run();
        w.pass(6);
        synced(&mut w, 1);
        let used = |w: &mut World| w.status().pools[0].no_spare;
        assert!(used(&mut w));
        if release {
            w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
            let all = ["/f/a", "/f/c", "/f/d", "/f/s"].map(String::from).to_vec();
            w.good(Order::PoolImport { pool: Some("tank".into()), name: None, drives: all, force: false });
            assert!(used(&mut w), "the pool has no spare, whichever head has it");
        } else {
            w.good(replace("/f/s", "/f/t"));
            assert!(used(&mut w), "it serves until everything is copied");
            synced(&mut w, 2);
            w.pass(6);
            assert_eq!(legs_of(&mut w), ["/f/a", "/f/t"]);
            assert!(!used(&mut w));
        }
    }
}

/// It stayed silent: the pool was degraded with a spare beside it, and nothing said why.
#[test]
fn a_spare_that_fits_the_smaller_mirrors_only_says_so_and_why_when_it_is_looked_for() {
    let mut rest = four();
    for large in ["/f/c", "/f/d"] {
        rest.drives.get_mut(large).expect("there").bytes = 200 * MIB;
    }
    rest.drives.extend(drives(&["/f/s", "/f/t"]).drives);
    rest.drives.get_mut("/f/t").expect("there").bytes = 200 * MIB;
    let mut w = World::start(rest, 1);
    w.good(tank());
    let Reply::Created { notices, .. } = w.good(spare("/f/s")) else { panic!("words about it") };
    let [Notice::Leg(LegNotice::SpareFits { spare: path, fit })] = &notices[..] else {
        panic!("{notices:?}")
    };
    let SpareFit::Some { fits, why } = fit else { panic!("{fit:?}") };
    let SpareUnfit::TooSmall { mirror, bytes, needed_bytes, .. } = why else { panic!("{why:?}") };
    assert_eq!(
        (path.as_str(), &fits[..], mirror.as_str()),
        ("/f/s", &["mirror-0".to_string()][..], "mirror-1")
    );
    assert!((80 * MIB..81 * MIB).contains(bytes) && (200 * MIB..201 * MIB).contains(needed_bytes), "{why:?}");
    let added = LegEvent::SpareAdded { spare: "/f/s".into(), fit: Some(fit.clone()) };
    assert_eq!(w.happened_to("pool tank").last(), Some(&added.into()));
    assert_eq!(w.status().pools[0].spares[0].fit.as_ref(), Some(fit));
    assert_eq!(w.status().health, State::Optimal);
    let (array, epoch) = (w.layout.arrays[1].id, w.layout.arrays[1].membership.epoch);
    w.note(1, array, Note::LegFailed { leg: 0, epoch, error: DriveError::Medium });
    w.run();
    w.pass(60);
    let message = w.status().reasons[0].said().clone();
    assert!(message.contains(&format!("{:?}", [why])), "{message}");
    let (leg, mirror) = ("/f/c".into(), "mirror-1".into());
    let told = LegEvent::NoSpareFits { leg, mirror, spares: vec![why.clone()] }.into();
    assert_eq!(w.happened_to("pool tank").iter().filter(|e| **e == told).count(), 1, "{:?}", w.events());
    // One that fits is used, and of itself it has nothing to tell.
    let Reply::Created { notices, .. } = w.good(spare("/f/t")) else { panic!("words about it") };
    assert!(notices.is_empty(), "{notices:?}");
    w.pass(10);
    assert_eq!(w.legs(1), [LegState::Rebuilding, LegState::InSync]);
}

/// A volume that nothing but 512-byte drives can serve was made all the same: the spare was one in name only.
#[test]
fn a_volume_for_which_a_spare_is_of_no_use_is_not_made() {
    let mut rest = four();
    rest.drives.extend(drives(&["/f/s"]).drives);
    rest.drives.get_mut("/f/s").expect("there").block_bytes = 4096;
    let mut w = World::start(rest, 1);
    for order in [tank(), volume("whole", 9 * MIB), spare("/f/s")] {
        w.good(order);
    }
    let halves = |name: &str| Order::VolumeCreate {
        pool: "tank".into(),
        name: name.into(),
        bytes: 9 * MIB,
        block_bytes: Some(512),
    };
    let r = w.order(halves("b")).expect_err("a refusal");
    assert_eq!((r.kind(), r.field), (ErrorKind::Conflict, "block_bytes"));
    let (spare_path, pool) = ("/f/s".into(), "tank".into());
    let why = VolumeRefusal::SpareBlockTooLarge { spare: spare_path, pool, block_bytes: 512 };
    assert_eq!(*r.why, why.into());
    w.good(rm("/f/s"));
    w.good(halves("b"));
    assert_eq!(w.refused(spare("/f/s")).0, ErrorKind::Invalid, "and the other way round");
}

/// A spare that hung was advised to be removed and added again, and nothing else had it back before the next start.
#[test]
fn a_spare_that_was_not_found_is_one_again_once_it_answers() {
    for (by_hand, hangs) in [(false, true), (true, true), (false, false)] {
        let mut rest = with_spare().rest;
        let drive = FakeDrive { held: false, ..rest.drives["/f/s"].clone() };
        if hangs {
            rest.drives.get_mut("/f/s").expect("there").hangs = true
        } else {
            drop(rest.drives.remove("/f/s"))
        }
        let mut w = World::start(rest, 2);
        w.pass(120);
        assert_eq!(spares(&mut w), ["/f/s false"]);
        // Neither makes anybody overwrite it.
        let why = if hangs { mute(DriveFault::TimedOut) } else { missing() };
        assert_eq!(w.status().reasons[0].cause, why);
        w.rest.drives.insert("/f/s".into(), FakeDrive { hangs: false, held: hangs, ..drive });
        w.hung.clear();
        assert!(w.open.values().all(|spec| spec != "/f/s"), "it was let go of");
        w.rest.drives.get_mut("/f/s").expect("there").held = false;
        if by_hand {
            drop(w.good(Order::DriveReturn { drive: "/f/s".into() }))
        } else {
            w.pass(700)
        }
        assert_eq!(spares(&mut w), ["/f/s true"]);
        assert!(w.events().contains(&"pool tank: Leg(SpareReturned { spare: \"/f/s\" })".to_string()));
        assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
    }
}

/// Only a spare that was open was asked, and whoever came back later was of no use.
#[test]
fn a_spare_that_is_not_open_counts_as_what_it_was_and_is_told_if_that_is_not_known() {
    let halves = || Order::VolumeCreate {
        pool: "tank".into(),
        name: "b".into(),
        bytes: 9 * MIB,
        block_bytes: Some(512),
    };
    let mut rest = four();
    rest.drives.extend(drives(&["/f/s"]).drives);
    rest.drives.get_mut("/f/s").expect("there").block_bytes = 4096;
    let mut w = World::start(rest, 1);
    w.good(tank());
    w.good(spare("/f/s"));
    let mut rest = w.rest.clone();
    // It was to stand in for a leg, and the kernel did not let go of it.
    w.rest.drives.get_mut("/f/s").expect("there").stuck = true;
    w.rest.drives.get_mut("/f/a").expect("there").fails = Some(DriveError::Gone);
    lose(&mut w, 0);
    w.pass(330);
    assert!(!w.status().pools[0].spares[0].ready);
    assert_eq!(w.refused(halves()).0, ErrorKind::Conflict);
    // It was away from the start on.
    rest.drives.remove("/f/s");
    let mut w = World::start(rest, 2);
    let Reply::Created { notices, .. } = w.good(halves()) else { panic!("it is made") };
    assert_eq!(notices, [Notice::from(VolumeNotice::SpareNotSeen { spare: "/f/s".into() })]);
}

#[test]
fn a_spare_is_called_one_by_orders_about_legs() {
    let mut w = with_spare();
    let orders = [
        Order::DriveFail { drive: "/f/s".into(), force: false },
        Order::DriveReturn { drive: "/f/s".into() },
        Order::DriveShape { drive: "/f/s".into(), shape: Default::default() },
    ];
    for order in orders {
        let text = format!("{order:?}");
        let r = w.order(order).expect_err("a refusal");
        let why = LegRefusal::SpareIsNoLeg { drive: "/f/s".into(), pool: "tank".into() };
        assert_eq!((r.kind(), *r.why), (ErrorKind::Conflict, why.into()), "{text}");
    }
}

/// A spare that is missing is called by the path that it had last, and another pool's leg may lie there today.
#[test]
fn a_path_that_a_missing_spare_and_a_leg_have_is_refused() {
    let mut w = with_spare();
    w.good(create("two", vec![mirror("/f/t", "/f/u")]));
    for p in &mut w.steward.procedures.context_mut().pools {
        for s in &mut p.spares {
            (s.open, s.path) = (None, "/f/t".into());
        }
    }
    let called = "/f/t".to_string();
    let orders = [
        Order::DriveFail { drive: called.clone(), force: false },
        Order::DriveReturn { drive: called.clone() },
        Order::DriveRemove { drive: called.clone(), force: true },
        Order::DriveReplace { old: called.clone(), new: "/f/x".into(), force: false },
        Order::DriveShape { drive: called, shape: Default::default() },
    ];
    for order in orders {
        let text = format!("{order:?}");
        let r = w.order(order).expect_err("a refusal");
        let why = LegRefusal::DriveNameShared { drive: "/f/t".into(), drives: 2 };
        assert_eq!((r.kind(), *r.why), (ErrorKind::Invalid, why.into()), "{text}");
    }
}

/// It was told as ready until it was needed, and then was of no use.
#[test]
fn a_spare_that_goes_under_a_running_head_is_told_and_stands_in_for_nobody() {
    type Change = fn(&mut FakeDrive, bool);
    let ill = |why: LegCause| -> Cause {
        StatusCause::SpareUnhealthy { spare: "/f/s".into(), why: Box::new(why.into()) }.into()
    };
    let silent = LegCause::DriveFailed {
        fault: DriveFault::TimedOut,
        helps: Some(DriveHelp::AwaitSpare { spare: "/f/s".into() }),
    };
    let cut_off = LegCause::SpareCutOff {
        spare: "/f/s".into(),
        pool: "tank".into(),
        bytes: 40 * MIB,
        had_bytes: drives(&["/f/s"]).drives["/f/s"].bytes,
    };
    let cases: [(&str, Change, Cause); 5] = [
        ("removed", |d, on| d.name = if on { FileName::Removed } else { FileName::There }, missing()),
        (
            "moved",
            |d, on| d.name = if on { FileName::Moved } else { FileName::There },
            ill(LegCause::SpareFileMoved { spare: "/f/s".into() }),
        ),
        ("gone", |d, on| d.fails = on.then_some(DriveError::Gone), mute(DriveFault::Gone)),
        ("hangs", |d, on| d.hangs = on, ill(silent)),
        ("cut", |d, on| d.cut = on.then_some(40 * MIB), ill(cut_off)),
    ];
    for (case, change, why) in cases {
        let mut w = with_spare();
        w.good(spare("/f/t"));
        w.pass(30);
        assert_eq!(
            (spares(&mut w), w.status().health),
            (vec!["/f/s true".into(), "/f/t true".into()], State::Optimal)
        );
        change(w.rest.drives.get_mut("/f/s").expect("there"), true);
        let file = w.rest.drives["/f/s"].clone();
        if case == "removed" {
            // Whoever looks for it by its name finds nothing.
            w.pass(6);
            w.rest.drives.remove("/f/s");
        }
        w.pass(35);
        assert_eq!(spares(&mut w), ["/f/s false", "/f/t true"], "{case}");
        let s = w.status();
        assert_eq!((s.health, s.reasons.len()), (State::Degraded, 1), "{case}: {:?}", s.reasons);
        assert_eq!(s.reasons[0].cause, why, "{case}");
        let told = w.events().into_iter().filter(|e| e.contains("SpareUnusable { spare: \"/f/s\"")).count();
        assert_eq!(told, 1, "{case}: {:?}", w.events());
        // The other one is used.
        w.rest.drives.get_mut("/f/a").expect("there").fails = Some(DriveError::Gone);
        lose(&mut w, 0);
        w.pass(330);
        assert!(legs_of(&mut w).contains(&"/f/t".to_string()), "{case}");
        w.rest
            .drives
            .insert("/f/s".into(), FakeDrive { held: w.open.values().any(|spec| spec == "/f/s"), ..file });
        change(w.rest.drives.get_mut("/f/s").expect("there"), false);
        w.hung.clear();
        w.pass(700);
        assert_eq!(spares(&mut w), ["/f/s true"], "{case}: it is back");
    }
}
