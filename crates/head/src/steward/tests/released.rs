//! Pools that were let go of, and those that ended with a daemon.

use super::*;

fn release() -> Order {
    Order::PoolRelease { pool: "tank".into(), disconnect: false }
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
    w.good(Order::PoolImport { pool: None, drives: vec![], force: false });
    assert_eq!((w.status().pools[0].name.as_str(), w.status().health), ("tank", State::Optimal));
    let mut other = World::start(elsewhere, 3);
    let (kind, _, words) = other.refused(import(&[], false));
    assert!(kind == RefusalKind::NotFound && words == "no drive of pool tank was found", "{words}");
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
    assert_eq!(kind, RefusalKind::NotFound);
    w.good(Order::PoolDestroy { pool: "other".into(), force: false, disconnect: false });
    assert_eq!(w.refused(import(&[], false)).0, RefusalKind::NotFound);
}

#[test]
fn one_leg_of_a_released_mirror_proves_nothing_and_the_words_say_why() {
    let mut w = usual();
    w.good(release());
    w.rest.drives.remove("/f/b");
    let (kind, _, words) = w.refused(import(&[], false));
    assert_eq!(kind, RefusalKind::Unsafe);
    let why = "pool tank was released, and of mirror-0 the drive is missing: /f/b; another head may have gone on with it, so nothing proves that /f/a has the latest writes";
    assert!(words.starts_with(why), "{words}");
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
    assert!(reason.message.contains("ram:a:80M") && reason.message.contains("what they held is gone"));
    assert_eq!(reason.next.as_deref(), Some("millrace pool release tank, which forgets it"));
    let (kind, _, words) = w.refused(import(&[], false));
    assert!(kind == RefusalKind::NotFound && words.contains("what they held is gone"), "{words}");
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
    for force in [false, true] {
        let r = w.order(import(&[], force)).expect_err("nothing holds all of it");
        let why = "of mirror-0 of pool tank only /f/b is here, which was still being copied and holds no whole copy; the drive is missing: /f/a";
        assert!(r.message.starts_with(why), "{r:?}");
        assert_eq!(r.next.as_deref(), Some("attach /f/a, then millrace pool import tank"));
    }
    let Reply::Importable(list) = w.good(Order::PoolImportable { drives: vec![] }) else { panic!("a list") };
    assert_eq!(list[0].next.as_deref(), Some("attach /f/a, then millrace pool import tank"));
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
    assert_eq!(r.kind, RefusalKind::NotFound);
    assert_eq!(r.message, "no drive of pool tank was found: /f/a, /f/b, /f/c, /f/d are not there");
    let next = "attach /f/a and /f/b and /f/c and /f/d, then millrace pool import tank; or, where it lies now, millrace pool import tank --drive FILE --drive FILE";
    assert_eq!(r.next.as_deref(), Some(next));
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
    assert!(kind == RefusalKind::Unsafe && message.contains("was not released by"), "{message}");
    assert!(!message.contains("belongs to somebody"), "{message}");
}
