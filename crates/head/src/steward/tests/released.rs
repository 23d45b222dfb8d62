//! Pools that were let go of, and those that ended with a daemon.

use super::*;
use crate::order::Notice;
use finding::{DriveFault, ImportFault, PoolCause, PoolDoubt, PoolNotice, PoolRefusal, Why};

fn release() -> Order {
    Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false }
}
fn release_by_force() -> Order {
    Order::PoolRelease { pool: "tank".into(), force: true, disconnect: false }
}
fn drive<'a>(w: &'a mut World, path: &str) -> &'a mut FakeDrive {
    w.rest.drives.get_mut(path).expect("a drive")
}
/// Nothing says that the pool is released, and hosts are served.
fn stays(w: &mut World) {
    assert!(w.view.hosts[0].exports[0].ready, "hosts go on");
    assert!(file(w, "pools").contains("tank") && !file(w, "released").contains("tank"));
    assert_eq!(w.status().pools.len(), 1);
}
fn file(w: &World, name: &str) -> String {
    String::from_utf8(w.rest.files.get(name).cloned().unwrap_or_default()).expect("text")
}

#[test]
fn a_released_pool_is_found_again_where_its_files_lay_and_not_on_another_head() {
    let mut w = usual();
    w.good(release());
    w.good(import(&[], false));
    assert_eq!(w.status().health, State::Optimal);
    assert!(!file(&w, "released").contains("[pool"), "a hint is of a pool that is not here");
    w.good(release());
    let mut w = w.crash(2);
    let Reply::Importable(list) = w.good(Order::PoolImportable { drives: vec![] }) else { panic!("a list") };
    assert_eq!((list.len(), list[0].released, list[0].found.len()), (1, true, 4));
    let mut elsewhere = w.rest.clone();
    elsewhere.files.clear();
    w.good(Order::PoolImport { pool: None, name: None, drives: vec![], force: false });
    assert_eq!((w.status().pools[0].name.as_str(), w.status().health), ("tank", State::Optimal));
    let mut other = World::start(elsewhere, 3);
    let (kind, _, words) = other.refused(import(&[], false));
    assert!(
        kind == ErrorKind::NotFound && words.contains("PoolNotFound { pool: Some(\"tank\"), also: []"),
        "{words}"
    );
    other.good(import(&["/f/a", "/f/b", "/f/c", "/f/d"], false));
}

#[test]
fn a_hint_is_no_claim() {
    let mut w = usual();
    w.good(release());
    // The drives are another pool's by now.
    let Order::PoolCreate { arrays, .. } = tank() else { panic!("it makes a pool") };
    let other = Order::PoolCreate {
        name: "other".into(),
        arrays,
        chunk_bytes: None,
        block_bytes: None,
        measure: false,
        force: true,
    };
    w.good(other);
    let (kind, ..) = w.refused(import(&[], false));
    assert_eq!(kind, ErrorKind::NotFound);
    w.good(Order::PoolDestroy { pool: "other".into(), force: false, disconnect: false });
    assert_eq!(w.refused(import(&[], false)).0, ErrorKind::NotFound);
}

#[test]
fn one_leg_of_a_released_mirror_proves_nothing_and_the_words_say_why() {
    let mut w = usual();
    w.good(release());
    w.rest.drives.remove("/f/b");
    let r = w.order(import(&[], false)).expect_err("nothing proves that it is the latest");
    assert_eq!(r.kind(), ErrorKind::Unsafe);
    let doubts = vec![PoolDoubt::ReleasedWithMissing {
        pool: "tank".into(),
        array: "mirror-0".into(),
        missing: vec!["/f/b".into()],
        current: vec!["/f/a".into()],
    }];
    let why = match *r.why {
        Why::Pool(PoolRefusal::PoolNotTaken { why, .. }) => *why,
        why => why,
    };
    assert_eq!(why, PoolRefusal::PoolDoubtful { pool: "tank".into(), doubts }.into());
    w.good(import(&[], true));
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
}

#[test]
fn a_pool_in_memory_ends_with_its_daemon_and_can_be_forgotten() {
    let mut w = World::start(drives(&["ram:a:80M", "ram:b:80M"]), 1);
    w.good(create("tank", vec![mirror("ram:a:80M", "ram:b:80M")]));
    w.good(Order::Shutdown);
    let mut w = World::start(w.rest, 2);
    let s = w.status();
    assert_eq!(s.health, State::Offline);
    let reason = &s.reasons[0];
    assert!(
        reason.said().contains("ram:a:80M")
            && reason.said().contains("PoolMemoryLost")
            && reason.said().contains("empty: false")
    );
    let (kind, _, words) = w.refused(import(&[], false));
    assert!(
        kind == ErrorKind::NotFound && words.contains("PoolMemoryLost") && words.contains("empty: false"),
        "{words}"
    );
    w.good(release());
    let s = w.status();
    assert!(s.pools.is_empty() && s.health == State::Optimal);
    assert!(World::start(w.rest, 3).status().pools.is_empty());
}

/// The advice was the command that had just been refused.
#[test]
fn a_leg_that_was_still_being_copied_cannot_be_taken_and_nothing_advises_it() {
    let mut w = usual();
    lose(&mut w, 1);
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    w.good(release());
    w.rest.drives.remove("/f/a");
    let copied = || {
        let stale = PoolDoubt::Stale {
            pool: "tank".into(),
            array: "mirror-0".into(),
            stale: vec!["/f/b".into()],
            missing: vec!["/f/a".into()],
            whole: false,
        };
        PoolRefusal::PoolDoubtful { pool: "tank".into(), doubts: vec![stale] }
    };
    for force in [false, true] {
        let r = w.order(import(&[], force)).expect_err("nothing holds all of it");
        let why = match *r.why {
            Why::Pool(PoolRefusal::PoolNotTaken { why, .. }) => *why,
            why => why,
        };
        assert_eq!(why, copied().into());
    }
    let Reply::Importable(list) = w.good(Order::PoolImportable { drives: vec![] }) else { panic!("a list") };
    let why = Box::new(copied().into());
    assert_eq!(list[0].cause, Some(PoolCause::PoolNotImportable { why }.into()));
}

/// Drives of others were blamed, and their owners were to be stopped.
#[test]
fn files_of_a_released_pool_that_are_away_are_named_and_nobody_else() {
    let mut w = usual();
    w.rest.drives.extend(drives(&["/dev/theirs"]).drives);
    w.rest.drives.get_mut("/dev/theirs").expect("there").held = true;
    w.held_candidates = true;
    w.good(release());
    for file in ["/f/a", "/f/b", "/f/c", "/f/d"] {
        w.rest.drives.remove(file);
    }
    let r = w.order(import(&[], false)).expect_err("its files are away");
    assert_eq!(r.kind(), ErrorKind::NotFound);
    let files = || ["/f/a", "/f/b", "/f/c", "/f/d"].map(String::from).to_vec();
    let also = vec![ImportFault::NotThere { drives: files() }];
    let why = PoolRefusal::PoolNotFound { pool: Some("tank".into()), also, away: files(), in_use: false };
    assert_eq!(*r.why, why.into());
}

/// It opened them by its own memory first, and then met itself as it went through this machine's drives.
#[test]
fn the_drives_that_are_meant_are_not_said_to_be_in_use_by_this_very_order() {
    let mut w = World::start(drives(&["/dev/a", "/dev/b"]), 1);
    w.held_candidates = true;
    w.good(create("tank", vec![mirror("/dev/a", "/dev/b")]));
    w.good(release());
    let mut there = World::start(Rest { drives: w.rest.drives.clone(), ..Rest::default() }, 7);
    there.good(import(&[], false));
    w.rest.drives = there.rest.drives;
    w.rest.drives.values_mut().for_each(|d| d.held = false);
    let (kind, _, message) = w.refused(import(&[], false));
    assert!(kind == ErrorKind::Unsafe && message.contains("NotReleased"), "{message}");
    assert!(!message.contains("NotOpened") && !message.contains("Locked"), "{message}");
}

#[test]
fn a_pool_of_which_every_leg_of_a_mirror_is_gone_stays_until_force_lets_go_of_it() {
    let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
    for order in [create("tank", vec![mirror("/f/a", "/f/b")]), volume("vm1", 9 * MIB)] {
        w.good(order);
    }
    w.rest.drives.values_mut().for_each(|d| d.fails = Some(DriveError::Gone));
    let before = w.rest.files.clone();
    let r = w.order(release()).expect_err("nothing can be marked");
    assert_eq!((r.kind(), r.field), (ErrorKind::NotReady, "force"));
    assert!(
        r.why.name() == "ReleaseNotMarked" && r.said().contains("FailedDrive { drive: \"/f/a\", fault: Gone"),
        "{r:?}"
    );
    let but_events = |files: &BTreeMap<String, Vec<u8>>| {
        files.iter().filter(|(n, _)| *n != "events").map(|(n, f)| (n.clone(), f.clone())).collect::<Vec<_>>()
    };
    assert_eq!(but_events(&w.rest.files), but_events(&before), "nothing was changed");
    assert_eq!(w.status().pools.len(), 1);
    let Reply::Created { notices, .. } = w.good(release_by_force()) else { panic!("it tells something") };
    assert!(notices.iter().any(|n| n.name() == "MirrorsNotMarked"), "{notices:?}");
    assert!(w.status().pools.is_empty() && !file(&w, "pools").contains("tank"));
    w.rest.drives.values_mut().for_each(|d| d.fails = None);
    let mut other = World::start(Rest { drives: w.rest.drives, ..Rest::default() }, 2);
    assert_eq!(other.refused(import(&["/f/a", "/f/b"], false)).0, ErrorKind::Unsafe);
    other.good(import(&["/f/a", "/f/b"], true));
}

#[test]
fn volumes_that_would_end_with_a_release_take_force() {
    let mut w = World::start(drives(&["ram:a,80M", "ram:b,80M"]), 1);
    let create = || create("tank", vec![mirror("ram:a,80M", "ram:b,80M")]);
    w.good(create());
    w.good(release());
    w.rest.drives.values_mut().for_each(|d| d.blocks.clear());
    for order in [create(), volume("vm1", 9 * MIB)] {
        w.good(order);
    }
    let r = w.order(release()).expect_err("its volume would be lost");
    assert_eq!((r.kind(), r.field), (ErrorKind::Unsafe, "force"));
    assert!(
        matches!(&*r.why, Why::Pool(PoolRefusal::PoolInMemory { drives, volumes: 1, .. }) if *drives == ["ram:a,80M", "ram:b,80M"]),
        "{r:?}"
    );
    assert_eq!(w.status().pools.len(), 1);
    let Reply::Created { notices, .. } = w.good(release_by_force()) else { panic!("what to know") };
    assert!(
        matches!(&notices[..], [Notice::Pool(PoolNotice::PoolInMemory { drives })] if *drives == ["ram:a,80M", "ram:b,80M"]),
        "{notices:?}"
    );
    assert!(w.status().pools.is_empty());
}

#[test]
fn what_proves_the_leg_that_has_the_last_writes_outlives_a_release_that_marks_nothing() {
    let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    // What only the state directory has on record: /f/b is out, and /f/a, the last one, cannot take that.
    drive(&mut w, "/f/a").full = true;
    lose(&mut w, 1);
    w.rest.drives.values_mut().for_each(|d| d.fails = Some(DriveError::Gone));
    w.good(release_by_force());
    w.rest.drives.values_mut().for_each(|d| (d.fails, d.full) = (None, false));
    let mut w = w.crash(2);
    w.good(import(&[], false));
    assert_eq!(w.legs(0)[0], LegState::InSync);
    assert_ne!(w.legs(0)[1], LegState::InSync, "it lacks what was written since");
}

#[test]
fn a_pool_of_which_one_leg_is_gone_is_released_by_the_other() {
    let mut w = usual();
    drive(&mut w, "/f/b").fails = Some(DriveError::Gone);
    let Reply::Created { notices, .. } = w.good(release()) else { panic!("it tells something") };
    let told = PoolNotice::DriveNotMarked { drive: "/f/b".into(), fault: DriveFault::Gone };
    assert_eq!(notices, [Notice::from(told)]);
    drive(&mut w, "/f/b").fails = None;
    w.good(import(&[], false));
    assert_eq!(w.status().pools[0].name, "tank");
}

#[test]
fn a_release_that_its_drives_refuse_leaves_the_pool_as_it_was() {
    let mut w = usual();
    for path in ["/f/c", "/f/d"] {
        drive(&mut w, path).full = true;
    }
    let (kind, _, words) = w.refused(release());
    assert!(
        kind == ErrorKind::NotReady && words.contains("ReleaseNotMarked") && words.contains("mirror-1"),
        "{words}"
    );
    stays(&mut w);
    for path in ["/f/c", "/f/d"] {
        drive(&mut w, path).full = false;
    }
    let mut w = w.crash(2);
    stays(&mut w);
    w.good(release());
    assert!(w.status().pools.is_empty());
}

#[test]
fn a_release_that_the_state_directory_refuses_leaves_the_pool_as_it_was() {
    let witness =
        |w: &World| w.rest.files.keys().find(|n| n.starts_with("witness-")).cloned().expect("there");
    let name: &'static str = witness(&usual()).leak();
    for refused in ["released", "pools", name] {
        let mut w = usual();
        w.rest.refused = Some(refused);
        w.refused(release());
        w.rest.refused = None;
        w.pass(61);
        stays(&mut w);
        assert_eq!(w.status().health, State::Optimal, "{refused}");
        let mut w = w.crash(2);
        stays(&mut w);
    }
}

#[test]
fn a_leg_that_was_let_go_of_and_still_holds_writes_keeps_the_pool_from_being_released() {
    let mut w = usual();
    lose(&mut w, 1);
    drive(&mut w, "/f/b").stuck = true;
    let (kind, ..) = w.refused(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(kind, ErrorKind::NotReady);
    let (kind, _, words) = w.refused(release());
    assert!(
        kind == ErrorKind::NotReady && words.contains("HoldsFormer") && words.contains("/f/b"),
        "{words}"
    );
    stays(&mut w);
}

/// A release that was cut off after each of its effects: the state of the world then.
fn cut_off() -> impl Iterator<Item = (u64, World)> {
    let begin = usual().effects_done;
    let end = {
        let mut w = usual();
        w.good(release());
        w.effects_done
    };
    (begin..=end).map(|n| {
        let mut w = World::power_on(four(), 1, n);
        w.run();
        for order in [tank(), volume("vm1", 9 * MIB), host(), export(), release()] {
            w.send(order);
            w.run();
        }
        (n, w)
    })
}

#[test]
fn a_release_that_is_cut_off_has_happened_or_not() {
    let (mut kept, mut ended) = (0, 0);
    for (n, w) in cut_off() {
        let answered = w.answers.len() == 5;
        let mut w = w.crash(2);
        if w.status().pools.is_empty() {
            ended += 1;
            let left = w.rest.files.keys().find(|f| f.starts_with("config-"));
            assert!(left.is_none() && !file(&w, "pools").contains("tank"), "effect {n}: {left:?}");
            let drives = w.rest.drives.clone();
            let mut other = World::start(Rest { drives, ..Rest::default() }, 3);
            other.good(import(&["/f/a", "/f/b", "/f/c", "/f/d"], false));
            w.good(import(&[], false));
        } else {
            kept += 1;
            assert!(!answered, "effect {n}: it was answered");
        }
        stays(&mut w);
        assert_eq!(w.status().health, State::Optimal, "effect {n}");
    }
    assert!(kept > 5 && ended > 5, "{kept} {ended}");
}

#[test]
fn a_pool_whose_release_was_cut_off_is_not_taken_back_from_another_head() {
    for (n, w) in cut_off() {
        let mut rest = w.rest;
        let mut other = World::start(Rest { drives: rest.drives, ..Rest::default() }, 3);
        if other.order(import(&["/f/a", "/f/b", "/f/c", "/f/d"], false)).is_err() {
            continue;
        }
        rest.drives = other.rest.drives;
        let mut w = World::start(rest, 4);
        w.pass(70);
        assert!(w.layout.arrays.is_empty(), "effect {n}: the other head has it");
    }
}

/// A start took it, with what the other head had done there, and nothing said so.
#[test]
fn a_start_takes_no_pool_that_was_released_since() {
    let waits = |w: &mut World, elsewhere: bool| {
        w.pass(300);
        assert!(w.layout.arrays.is_empty() && w.open.is_empty(), "released elsewhere: {elsewhere}");
        let s = w.status();
        let why = PoolRefusal::PoolWasReleased { pool: "tank".into(), elsewhere };
        assert!(s.reasons[0].said().contains(&format!("{why:?}")), "{:?}", s.reasons);
        assert_eq!(s.health, State::Offline);
        assert!(w.view.hosts[0].exports.is_empty(), "its hosts may find it elsewhere");
    };
    // This head fell, and another one had the pool meanwhile.
    let w = usual();
    let mut other = World::start(Rest { drives: w.rest.drives.clone(), ..Rest::default() }, 7);
    for order in [import(&["/f/a", "/f/b", "/f/c", "/f/d"], true), volume("theirs", 9 * MIB), release()] {
        other.good(order);
    }
    let mut w = World::start(Rest { drives: other.rest.drives, ..w.rest }, 2);
    waits(&mut w, true);
    w.good(import(&[], false));
    let s = w.status();
    assert_eq!((s.health, s.volumes.len()), (State::Optimal, 2), "{:?}", s.reasons);
    assert_eq!(w.crash(3).status().health, State::Optimal, "it is this head's again");
    // This head released it, and its state directory is a copy from before.
    let mut w = usual();
    let files = w.rest.files.clone();
    w.good(release());
    waits(&mut World::start(Rest { files, ..w.rest }, 2), false);
}

/// It was released without a word, and the next head wanted proof that nobody had gone on with the leg in memory.
#[test]
fn a_leg_in_memory_stays_behind_and_the_mirror_is_imported_without_it() {
    let mut w = World::start(drives(&["/f/a", "ram:a,80M"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "ram:a,80M")]));
    w.good(volume("vm1", 9 * MIB));
    w.pass(5);
    let Reply::Created { notices, .. } = w.good(release()) else { panic!("what to know") };
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        matches!(&notices[0], Notice::Pool(PoolNotice::DriveStaysBehind { drive, .. }) if drive == "ram:a,80M"),
        "{notices:?}"
    );
    let mut there = Rest { drives: w.rest.drives, ..Rest::default() };
    there.drives.remove("ram:a,80M");
    there.drives.extend(drives(&["/f/n"]).drives);
    let mut other = World::start(there, 2);
    other.good(import(&["/f/a"], false));
    let s = other.status();
    assert_eq!((s.health, s.volumes.len()), (State::Degraded, 1), "{:?}", s.reasons);
    let replace = Order::DriveReplace { old: "ram:a,80M".into(), new: "/f/n".into(), force: false };
    other.good(replace);
    synced(&mut other, 1);
    assert_eq!(other.status().health, State::Optimal, "{:?}", other.status().reasons);
}

#[test]
fn a_mirror_whose_one_leg_in_sync_lies_in_memory_is_released_by_force_alone() {
    let mut w = World::start(drives(&["/f/a", "ram:a,80M"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "ram:a,80M")]));
    w.good(volume("vm1", 9 * MIB));
    lose(&mut w, 0);
    let r = w.order(release()).expect_err("what it holds would be lost");
    let why = PoolRefusal::ArrayInMemory {
        pool: "tank".into(),
        array: "mirror-0".into(),
        drives: vec!["ram:a,80M".into()],
        others: vec!["/f/a".into()],
        volumes: 1,
    };
    assert_eq!(*r.why, why.into());
    w.good(release_by_force());
}
