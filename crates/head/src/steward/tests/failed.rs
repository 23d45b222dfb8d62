//! What was taken out because it failed stays out until somebody returns it, whatever head has the pool.

use super::*;
use finding::{Cause, StatusCause};

fn fail(drive: &str) -> Order {
    Order::DriveFail { drive: drive.into(), force: false }
}
fn give_back(drive: &str) -> Order {
    Order::DriveReturn { drive: drive.into() }
}
fn spare(drive: &str, force: bool) -> Order {
    Order::SpareAdd { pool: "tank".into(), drive: drive.into(), force }
}
fn rm(drive: &str) -> Order {
    Order::DriveRemove { drive: drive.into(), force: false }
}
fn all(w: &mut World, drive: &str) -> Vec<crate::order::Drive> {
    let drives = vec![drive.into()];
    let Reply::Drives(list) = w.good(Order::DriveList { drives }) else { panic!("a list") };
    list.into_iter().filter(|d| d.path == drive).collect()
}
fn with_spare() -> World {
    let mut rest = four();
    rest.drives.extend(drives(&["/f/s", "/f/t"]).drives);
    let mut w = World::start(rest, 1);
    for order in [tank(), volume("vm1", 9 * MIB), spare("/f/s", false)] {
        w.good(order);
    }
    w
}
/// The drive answers, and refuses; it had so many errors by then.
fn breaks(w: &mut World, leg: usize, drive: &str, errors: u64) {
    let id = w.open.iter().find(|(_, spec)| *spec == drive).map(|(id, _)| *id).expect("it is open");
    let counters = crate::report::Counters { errors, ..Default::default() };
    w.figures = vec![crate::report::DriveReport { drive: id, counters, ..Default::default() }];
    w.status();
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(1, array, Note::LegFailed { leg, epoch, error: DriveError::Medium });
    w.run();
}
fn no_spare(w: &mut World) -> Vec<Cause> {
    let reasons = w.status().reasons.into_iter().map(|r| r.cause);
    reasons.filter(|c| matches!(c, Cause::Status(StatusCause::NoSpareLeft { .. }))).collect()
}

#[test]
fn a_drive_that_was_failed_by_order_stays_failed_over_starts_until_it_is_returned() {
    let mut w = usual();
    w.good(fail("/f/b"));
    for life in 2..5 {
        w = w.crash(life);
        w.pass(1000);
        assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing], "life {life}");
        let shown = all(&mut w, "/f/b").remove(0);
        assert_eq!((shown.role, shown.state), (DriveRole::Leg, Some(State::Failed)));
        assert_eq!(shown.cause, Some(LegCause::LegOutByHand.into()), "its reason is kept");
    }
    w.good(give_back("/f/b"));
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    synced(&mut w, 1);
    // What was returned is failed no more.
    let mut w = w.crash(9);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn a_drive_that_failed_by_its_errors_stays_failed_with_them() {
    let mut w = usual();
    breaks(&mut w, 1, "/f/b", 7);
    let mut w = w.crash(2);
    w.pass(600);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    let shown = all(&mut w, "/f/b").remove(0);
    assert_eq!((shown.state, shown.errors), (Some(State::Failed), 7));
    assert_eq!(shown.cause, Some(LegCause::failed(DriveFault::Medium).into()));
}

#[test]
fn a_drive_that_was_only_gone_comes_back_by_itself_over_a_start() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/b").expect("there").fails = Some(DriveError::Gone);
    lose(&mut w, 1);
    w.pass(60);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    w.rest.drives.get_mut("/f/b").expect("there").fails = None;
    let w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn another_head_finds_a_failed_drive_failed() {
    let mut w = usual();
    w.good(fail("/f/b"));
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: true });
    // Nothing but the drives moves.
    let rest = Rest { drives: w.rest.drives.clone(), ..Rest::default() };
    let mut other = World::start(rest, 77);
    other.good(import(&["/f/a", "/f/b", "/f/c", "/f/d"], false));
    other.pass(600);
    assert_eq!(other.legs(0), [LegState::InSync, LegState::Missing]);
    assert_eq!(all(&mut other, "/f/b")[0].cause, Some(LegCause::LegOutByHand.into()));
    other.good(give_back("/f/b"));
    assert_eq!(other.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn wherever_the_power_goes_a_drive_whose_failure_was_answered_stays_failed() {
    let rest = usual().rest.clone();
    let effects = {
        let mut w = World::start(rest.clone(), 5);
        let start = w.effects_done;
        w.good(fail("/f/b"));
        w.effects_done - start
    };
    let mut answered = 0;
    for cut in 0..=effects {
        let mut w = World::start(rest.clone(), 5);
        w.effects_left = cut;
        let id = w.send(fail("/f/b"));
        w.run();
        let done = w.answers.contains_key(&id);
        answered += u32::from(done);
        let mut w = w.crash(6);
        w.pass(60);
        if done {
            assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing], "cut at {cut}");
        }
        assert_eq!(w.legs(0)[0], LegState::InSync, "cut at {cut}");
    }
    assert!(answered > 0, "some cut comes behind the answer");
}

#[test]
fn wherever_the_power_goes_a_drive_whose_return_was_answered_is_failed_no_more() {
    let mut w = usual();
    w.good(fail("/f/b"));
    let rest = w.rest.clone();
    let effects = {
        let mut w = World::start(rest.clone(), 5);
        let start = w.effects_done;
        w.good(give_back("/f/b"));
        w.effects_done - start
    };
    for cut in 0..=effects {
        let mut w = World::start(rest.clone(), 5);
        w.effects_left = cut;
        let id = w.send(give_back("/f/b"));
        w.run();
        let done = w.answers.contains_key(&id);
        let mut w = w.crash(6);
        w.pass(60);
        if done {
            assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding], "cut at {cut}");
        }
        assert_eq!(w.legs(0)[0], LegState::InSync, "cut at {cut}");
    }
}

#[test]
fn a_spare_that_was_used_leaves_the_pool_optimal_without_one_and_the_drive_listed() {
    let mut w = with_spare();
    breaks(&mut w, 1, "/f/b", 3);
    w.pass(6);
    synced(&mut w, 1);
    w.pass(6);
    for life in [2, 3] {
        let told = no_spare(&mut w);
        let [Cause::Status(StatusCause::NoSpareLeft { pool, spare, old, .. })] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!((&**pool, &**spare, &**old), ("tank", "/f/s", "/f/b"));
        let status = w.status();
        assert!(status.pools[0].no_spare, "life {life}");
        let shown = all(&mut w, "/f/b");
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert_eq!((shown[0].role, shown[0].errors), (DriveRole::RemovedFailed, 3), "life {life}");
        assert_eq!(shown[0].cause, Some(LegCause::failed(DriveFault::Medium).into()));
        w = w.crash(life);
        for array in w.layout.arrays.clone() {
            for shard in 0..SHARDS {
                w.note(shard, array.id, Note::CrashClean { epoch: array.membership.epoch });
            }
        }
        w.run();
        assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
    }
    // It becomes a spare again only if that is meant; and whoever has a spare again is told no more.
    let (kind, field, said) = w.refused(spare("/f/b", false));
    assert_eq!((kind, field.as_str()), (ErrorKind::Unsafe, "drive"), "{said}");
    assert!(said.contains("DriveHasFailed { drive: \"/f/b\", pool: \"tank\""), "{said}");
    w.good(spare("/f/b", true));
    assert!(no_spare(&mut w).is_empty() && !w.status().pools[0].no_spare);
    assert_eq!(all(&mut w, "/f/b").iter().map(|d| d.role).collect::<Vec<_>>(), [DriveRole::Spare]);
    let mut w = w.crash(9);
    assert!(no_spare(&mut w).is_empty() && !w.status().pools[0].no_spare);
}

#[test]
fn a_failed_drive_that_was_blanked_is_known_by_its_place_and_is_forgotten_by_name() {
    let mut w = with_spare();
    breaks(&mut w, 1, "/f/b", 3);
    w.pass(6);
    synced(&mut w, 1);
    w.pass(6);
    w.rest.drives.get_mut("/f/b").expect("there").blocks.clear();
    let refused = w.refused(spare("/f/b", false));
    assert!(refused.2.contains("DriveHasFailed"), "{refused:?}");
    w.good(rm("/f/b"));
    assert!(w.events().iter().any(|e| e.contains("FailedForgotten")));
    assert_eq!(all(&mut w, "/f/b").iter().map(|d| d.role).collect::<Vec<_>>(), [DriveRole::Free]);
    w.good(spare("/f/b", false));
}

#[test]
fn what_a_removed_drive_says_of_the_pool_is_gone_from_it() {
    let mut w = with_spare();
    breaks(&mut w, 1, "/f/b", 3);
    w.pass(6);
    synced(&mut w, 1);
    w.pass(6);
    let b = &w.rest.drives["/f/b"];
    let zero = |at: u64| b.blocks.get(&(at / 512)).is_none_or(|x| x.iter().all(|x| *x == 0));
    assert!(array::format::MEMBERSHIP_AT.into_iter().chain(array::format::CONFIG_AT).all(zero));
    assert!(!zero(array::format::LABEL_AT), "it is told from a good drive by its label");
}

#[test]
fn a_failed_leg_that_an_operator_replaces_is_listed_too_and_not_called_a_use_of_a_spare() {
    let mut w = with_spare();
    w.good(rm("/f/s"));
    breaks(&mut w, 1, "/f/b", 2);
    w.good(Order::DriveReplace { old: "/f/b".into(), new: "/f/t".into(), force: false });
    synced(&mut w, 1);
    w.pass(6);
    assert_eq!(all(&mut w, "/f/b").iter().map(|d| d.role).collect::<Vec<_>>(), [DriveRole::RemovedFailed]);
    assert!(no_spare(&mut w).is_empty());
}

#[test]
fn a_failed_drive_in_its_own_place_again_as_a_new_one_is_failed_no_more() {
    let mut w = usual();
    w.good(fail("/f/b"));
    let itself = |force| Order::DriveReplace { old: "/f/b".into(), new: "/f/b".into(), force };
    assert!(w.refused(itself(false)).2.contains("DriveHasFailed"));
    w.good(itself(true));
    synced(&mut w, 1);
    w.pass(6);
    assert_eq!(w.status().health, State::Optimal);
    assert_eq!(all(&mut w, "/f/b").iter().map(|d| d.role).collect::<Vec<_>>(), [DriveRole::Leg]);
    let w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
}

/// What is wrong is with the pool's other drive, and nothing is to be overwritten for it.
#[test]
fn a_return_that_the_pool_cannot_note_is_refused_for_that() {
    let mut w = World::start(four(), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    w.rest.drives.get_mut("/f/a").expect("there").full = true;
    let (_, _, why) = w.refused(Order::DriveReturn { drive: "/f/b".into() });
    assert!(why.contains("NoDriveWritten") && !why.contains("Overwrite"), "{why}");
    w.rest.drives.get_mut("/f/a").expect("there").full = false;
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}
