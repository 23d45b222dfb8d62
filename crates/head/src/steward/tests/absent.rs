//! Pools whose drives are away: hosts keep what they have, not ready.

use super::*;
use crate::order::{Cause, Event, Notice};
use base::view::Export;
use base::{DriveOpenFault, Duration};
use finding::{ImportFault, OpenFault, PoolCause, PoolDoubt, PoolEvent, PoolNotice, PoolRefusal, Why};

type Away = BTreeMap<String, FakeDrive>;

/// The head after the usual orders and a stop, started again without these drives; and the drives.
fn started_without(paths: &[&str], seed: u64) -> (World, Away) {
    let mut w = usual();
    w.good(Order::Shutdown);
    without(w.rest, paths, seed)
}
fn without(mut rest: Rest, paths: &[&str], seed: u64) -> (World, Away) {
    let away = paths.iter().map(|p| (p.to_string(), rest.drives.remove(*p).expect("a drive"))).collect();
    (World::start(rest, seed), away)
}
const ALL: &[&str] = &["/f/a", "/f/b", "/f/c", "/f/d"];

fn kept_files(w: &World) -> Vec<&String> {
    w.rest.files.keys().filter(|name| name.starts_with("config-")).collect()
}
fn exports(w: &World) -> &[Export] {
    &w.view.hosts[0].exports
}
/// What a host may never see change: all but whether it is ready.
fn face(e: &Export) -> Export {
    Export { ready: false, ..e.clone() }
}

#[test]
fn a_pool_whose_drives_are_away_keeps_its_exports_not_ready_and_they_go_on_as_they_were() {
    let before = face(&usual().view.hosts[0].exports[0]);
    let (mut w, away) = started_without(ALL, 2);
    let kept = exports(&w)[0].clone();
    assert!(!kept.ready);
    assert_eq!(Export { volume: kept.volume, ..before }, kept, "only the head's own number is new");
    let v = &w.layout.volumes[0];
    assert_eq!((v.id, v.ready, v.blocks), (kept.volume, false, 9 * MIB / 4096), "commands end in not ready");

    let s = w.status();
    assert_eq!(
        (s.health, s.pools[0].state, s.volumes[0].state),
        (State::Offline, State::Offline, State::Offline)
    );
    assert_eq!(s.hosts[0].exports, [api::HostExport { volume: "tank/vm1".into(), nsid: 1, lun: 0 }]);
    let reason = &s.reasons[0];
    assert!(reason.said().contains("PoolWithoutDrives"), "{reason:?}");
    assert!(reason.said().contains("VolumesKept") && reason.said().contains("volumes: 1"), "{reason:?}");
    let named = "away: [\"/f/a\", \"/f/b\", \"/f/c\", \"/f/d\"]";
    assert!(reason.said().contains(named), "{reason:?}");
    let remove = Order::VolumeRemove { volume: "tank/vm1".into(), force: true, disconnect: false };
    let r = w.order(remove).expect_err("a refusal");
    assert_eq!((r.kind(), r.field), (ErrorKind::NotReady, "volume"));
    assert!(matches!(&*r.why, Why::Pool(PoolRefusal::PoolAbsent { pool, .. }) if pool == "tank"), "{r:?}");

    w.rest.drives.extend(away);
    w.good(import(&[], false));
    let after = exports(&w)[0].clone();
    assert!(after.ready && face(&after) == kept, "{after:?}");
    assert!(w.layout.volumes[0].ready);
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn a_pool_with_an_array_that_is_away_is_kept_too() {
    let (mut w, away) = started_without(&["/f/c", "/f/d"], 2);
    assert!(!exports(&w)[0].ready);
    assert!(w.open.is_empty(), "the drives that are here are let go of");
    assert!(w.status().reasons[0].said().contains("missing: [\"/f/c\", \"/f/d\"]"));
    w.rest.drives.extend(away);
    w.good(import(&[], false));
    assert!(exports(&w)[0].ready);
}

#[test]
fn numbers_of_an_absent_pool_are_taken() {
    let (mut w, away) = started_without(ALL, 2);
    w.rest.drives.extend(drives(&["/f/e", "/f/g"]).drives);
    w.good(create("other", vec![mirror("/f/e", "/f/g")]));
    w.good(Order::VolumeCreate { pool: "other".into(), name: "x".into(), bytes: 9 * MIB, block_bytes: None });
    let grant = |lun| Order::Export { volume: "other/x".into(), host: "esx1".into(), lun };
    assert_eq!(w.refused(grant(Some(0))).1, "lun");
    w.good(grant(None));
    let numbers = |w: &World| {
        let mut all: Vec<_> = exports(w).iter().map(|e| (e.name.clone(), e.nsid, e.lun)).collect();
        all.sort();
        all
    };
    let expected = [("other/x".to_string(), 2, 1), ("tank/vm1".to_string(), 1, 0)];
    assert_eq!(numbers(&w), expected);
    assert_eq!(
        w.refused(Order::HostRemove { name: "esx1".into(), force: false, disconnect: false }).0,
        ErrorKind::Unsafe
    );
    w.rest.drives.extend(away);
    w.good(import(&[], false));
    assert_eq!(numbers(&w), expected, "nothing was renumbered");
}

#[test]
fn whoever_gives_a_pool_up_takes_it_from_the_hosts() {
    // An absent one, one that is here, and one that is destroyed.
    let (mut w, _) = started_without(ALL, 2);
    assert_eq!(kept_files(&w).len(), 1);
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    assert!(exports(&w).is_empty() && w.layout.volumes.is_empty() && kept_files(&w).is_empty());
    assert!(w.crash(3).status().pools.is_empty());
    for order in [
        Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false },
        Order::PoolDestroy { pool: "tank".into(), force: true, disconnect: false },
    ] {
        let mut w = usual();
        assert_eq!(kept_files(&w).len(), 1);
        w.good(order);
        assert!(exports(&w).is_empty() && kept_files(&w).is_empty());
    }
}

#[test]
fn a_pool_that_went_on_at_another_head_is_not_shown_here() {
    let mut w = usual();
    w.good(Order::Shutdown);
    let mut there = World::start(Rest { drives: w.rest.drives.clone(), ..Rest::default() }, 7);
    there.good(import(ALL, true));
    let rest = Rest { drives: there.rest.drives, ..w.rest };
    let mut here = World::start(rest, 8);
    assert!(exports(&here).is_empty(), "its hosts find it there");
    assert!(here.status().reasons[0].said().contains("NotReleased"));
    assert!(kept_files(&here).is_empty());
}

/// `--force` overrides whatever speaks against an import: so the refusal names all of it, and what it did is told.
#[test]
fn a_leg_that_another_head_has_and_that_nothing_proves_is_refused_for_both() {
    let mut theirs = World::start(drives(&["/f/a", "/f/b"]), 1);
    for order in [create("tank", vec![mirror("/f/a", "/f/b")]), volume("vm1", 9 * MIB)] {
        theirs.good(order);
    }
    theirs.good(Order::DriveFail { drive: "/f/a".into(), force: false });
    let mut rest = Rest { drives: theirs.rest.drives, ..Rest::default() };
    rest.drives.remove("/f/b");
    let mut here = World::start(rest, 2);
    let refusal = here.order(import(&["/f/a"], false)).expect_err("another head has it");
    assert_eq!(refusal.kind(), ErrorKind::Unsafe);
    let Reply::Importable(list) = here.good(Order::PoolImportable { drives: vec!["/f/a".into()] }) else {
        panic!("a list")
    };
    let Why::Pool(PoolRefusal::PoolDoubtful { pool, doubts }) = &*refusal.why else { panic!("{refusal:?}") };
    let unproven = PoolDoubt::Unproven {
        pool: "tank".into(),
        array: "mirror-0".into(),
        missing: vec!["/f/b".into()],
        current: vec!["/f/a".into()],
    };
    assert!(pool == "tank" && matches!(doubts[0], PoolDoubt::NotReleased { .. }), "{doubts:?}");
    assert_eq!(doubts[1..], [unproven]);
    let why = refusal.why.clone();
    assert_eq!(list[0].cause, Some(PoolCause::PoolNotImportable { why }.into()));
    let Reply::Created { notices, .. } = here.good(import(&["/f/a"], true)) else { panic!("imported") };
    let told = Notice::from(PoolNotice::UnprovenTakenByForce {
        array: "mirror-0".into(),
        pool: "tank".into(),
        drives: vec!["/f/a".into()],
        missing: vec!["/f/b".into()],
    });
    assert!(notices.contains(&told), "{notices:?}");
    let event = Event::from(PoolEvent::Noticed { notice: Box::new(told) }).said();
    assert!(here.events().iter().any(|e| *e == format!("pool tank: {event}")));
}

#[test]
fn a_damaged_file_is_told_and_the_pool_is_imported_from_its_drives_all_the_same() {
    let mut w = usual();
    w.good(Order::Shutdown);
    let name = kept_files(&w)[0].clone();
    let good = w.rest.files[&name].clone();
    let key = b"\"config\": \"";
    let at = good.windows(key.len()).position(|w| w == key).expect("the key") + key.len() + 2 * 100;
    let other = if good[at] == b'f' { b"0" } else { b"f" };
    for damage in
        [b"config = 00\n".to_vec(), good[..at].to_vec(), [&good[..at], other, &good[at + 1..]].concat()]
    {
        let mut rest = w.rest.clone();
        rest.files.insert(name.clone(), damage);
        let (mut w, away) = without(rest, ALL, 2);
        let notices = w.ready.clone().expect("it comes up all the same");
        assert!(notices.iter().any(|n| n.said().contains(&name)), "{notices:?}");
        assert!(exports(&w).is_empty(), "no guess");
        w.rest.drives.extend(away);
        w.good(import(&[], false));
        assert!(exports(&w)[0].ready);
        assert_eq!(w.rest.files[&name].len(), good.len(), "and it is written again");
    }
}

#[test]
fn what_could_not_be_kept_is_told_and_nothing_older_stays() {
    let mut w = usual();
    w.rest.disk_full = true;
    w.good(volume("vm2", 5 * MIB));
    assert!(w.events().iter().any(|e| e.contains("ConfigNotKept { pool: \"tank\", fault: NoSpace }")));
    assert!(kept_files(&w).is_empty());
    w.rest.disk_full = false;
    w.good(volume("vm3", 5 * MIB));
    assert_eq!(kept_files(&w).len(), 1);
}

#[test]
fn whatever_was_answered_is_kept_wherever_the_power_goes() {
    let mut n = 0;
    loop {
        let mut w = World::power_on(four(), 1, n);
        w.run();
        if w.ready.is_some() {
            let second = Order::Export { volume: "tank/vm2".into(), host: "esx1".into(), lun: None };
            for order in [tank(), host(), volume("vm1", 9 * MIB), export(), volume("vm2", 5 * MIB), second] {
                w.send(order);
            }
            w.run();
        }
        let (answered, done) = (w.answers.len(), w.effects_left > 0);
        let (w, _) = without(w.rest, ALL, 2);
        let names: Vec<&str> =
            w.view.hosts.iter().flat_map(|h| &h.exports).map(|e| e.name.as_str()).collect();
        assert!(answered < 4 || names.contains(&"tank/vm1"), "cut after effect {n}: {names:?}");
        assert!(answered < 6 || names == ["tank/vm1", "tank/vm2"], "cut after effect {n}: {names:?}");
        if done {
            break;
        }
        n += 5;
    }
    assert!(n > 100, "there was something to cut: {n}");
}

const BACK: &str = "pool tank: Pool(PoolReturned { silent: false })";

#[test]
fn a_pool_is_imported_by_itself_once_all_its_drives_are_back_and_not_before() {
    let (mut w, mut away) = started_without(ALL, 2);
    let kept = exports(&w)[0].clone();
    for path in ["/f/b", "/f/d", "/f/a"] {
        w.rest.drives.insert(path.into(), away.remove(path).expect("a drive"));
        w.pass(120);
        assert!(!exports(&w)[0].ready && w.open.is_empty(), "after {path}");
    }
    w.rest.drives.extend(away);
    w.pass(65);
    assert!(exports(&w)[0].ready && face(&exports(&w)[0]) == kept);
    assert_eq!(w.status().health, State::Optimal, "no leg was put out");
    assert!(w.events().contains(&BACK.to_string()));
    let (kind, _, words) = w.refused(import(&[], false));
    assert!(kind == ErrorKind::Conflict && words.contains("PoolImportedAlready"), "{words}");
    let mut w = w.crash(3);
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn a_drive_that_was_out_already_is_not_waited_for_and_one_under_another_path_is_found() {
    let mut w = usual();
    lose(&mut w, 1);
    w.good(Order::Shutdown);
    let (mut w, mut away) = without(w.rest, ALL, 2);
    away.remove("/f/b");
    let a = away.remove("/f/a").expect("a drive");
    w.rest.drives.insert("/dev/nvme7n1".into(), a);
    w.rest.drives.extend(away);
    w.pass(65);
    assert!(exports(&w)[0].ready);
    assert!(w.events().contains(&BACK.to_string()));
}

#[test]
fn what_an_operator_must_decide_is_not_imported_by_itself() {
    // Another head has it by force, or it was released there: this one has lost its say.
    for released in [false, true] {
        let mut w = usual();
        w.good(Order::Shutdown);
        let mut there = World::start(Rest { drives: w.rest.drives.clone(), ..Rest::default() }, 7);
        there.good(import(ALL, true));
        there.good(if released {
            Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false }
        } else {
            Order::Shutdown
        });
        let (mut w, _) = without(w.rest, ALL, 2);
        w.rest.drives.extend(there.rest.drives);
        w.rest.drives.values_mut().for_each(|d| d.held = false);
        w.pass(300);
        assert!(w.layout.arrays.is_empty() && w.open.is_empty(), "released there: {released}");
        assert!(!w.events().contains(&BACK.to_string()));
    }
    // It was released here.
    let (mut w, away) = started_without(ALL, 2);
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    w.rest.drives.extend(away);
    w.pass(300);
    assert!(w.layout.arrays.is_empty() && w.status().pools.is_empty());
}

/// A drive that somebody holds.
fn locked(drive: &str) -> ImportFault {
    let fault = OpenFault::Machine { fault: DriveOpenFault::Locked };
    ImportFault::NotOpened { drive: drive.into(), fault }
}

#[test]
fn drives_that_somebody_holds_are_counted_where_a_pool_is_looked_for_and_named_in_the_list() {
    let mut rest = drives(&["/dev/a", "/dev/b"]);
    rest.drives.values_mut().for_each(|d| d.held = true);
    let mut w = World::power_on(rest, 1, u64::MAX);
    w.rest.drives.values_mut().for_each(|d| d.held = true);
    w.run();
    // The kernel does not know who uses them: they are candidates all the same.
    w.held_candidates = true;
    let refusal = w.order(import(&[], false)).expect_err("they are held");
    let also = vec![ImportFault::OthersInUse { count: 2 }];
    let none = PoolRefusal::PoolNotFound { pool: Some("tank".into()), also, away: vec![], in_use: true };
    assert_eq!(*refusal.why, none.into());
    let Reply::Importable(list) = w.good(Order::PoolImportable { drives: vec![] }) else { panic!("a list") };
    let held = |path: &str| {
        let also = vec![locked(path)];
        ("", Some(PoolCause::PoolDrivesInUse { also }.into()))
    };
    let told: Vec<(&str, Option<Cause>)> = list.iter().map(|i| (&*i.name, i.cause.clone())).collect();
    assert_eq!(told, [held("/dev/a"), held("/dev/b")]);
}

/// The legs that lack were hidden behind a list of whatever else was in use on the machine.
#[test]
fn an_import_that_lacks_a_leg_names_that_one_first_and_counts_what_others_use() {
    let mut w = World::start(drives(&["/dev/a", "/dev/b"]), 1);
    w.good(create("tank", vec![mirror("/dev/a", "/dev/b")]));
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    let mut rest = Rest { drives: w.rest.drives, ..Rest::default() };
    rest.drives.extend(drives(&["/dev/x", "/dev/y"]).drives);
    for at_its_place in [false, true] {
        let mut w = World::start(rest.clone(), 7);
        w.held_candidates = true;
        ["/dev/x", "/dev/y"].iter().for_each(|d| w.rest.drives.get_mut(*d).expect("there").held = true);
        if at_its_place {
            w.rest.drives.get_mut("/dev/b").expect("there").held = true
        } else {
            drop(w.rest.drives.remove("/dev/b"))
        }
        let refusal = w.order(import(&[], false)).expect_err("a leg is missing");
        let Why::Pool(PoolRefusal::PoolNotTaken { why, also }) = &*refusal.why else { panic!("{refusal:?}") };
        let place = at_its_place.then(|| locked("/dev/b"));
        let all: Vec<ImportFault> =
            place.into_iter().chain([ImportFault::OthersInUse { count: 2 }]).collect();
        assert_eq!(*also, all);
        let Why::Pool(PoolRefusal::PoolDoubtful { doubts, .. }) = &**why else { panic!("{why:?}") };
        let lacks_b = |d: &PoolDoubt| matches!(d, PoolDoubt::ReleasedWithMissing { missing, .. } if *missing == ["/dev/b"]);
        assert!(doubts.iter().all(lacks_b), "{doubts:?}");
    }
}

#[test]
fn a_pool_whose_drives_somebody_holds_keeps_nobody_else_waiting() {
    let mut w = World::start(four(), 1);
    for order in [
        create("tank", vec![mirror("/f/a", "/f/b")]),
        create("other", vec![mirror("/f/c", "/f/d")]),
        volume("vm1", 9 * MIB),
        Order::VolumeCreate { pool: "other".into(), name: "vm2".into(), bytes: 9 * MIB, block_bytes: None },
        host(),
        export(),
        Order::Export { volume: "other/vm2".into(), host: "esx1".into(), lun: None },
    ] {
        w.good(order);
    }
    let ready = |w: &World| exports(w).iter().map(|e| (e.name.clone(), e.ready)).collect::<BTreeMap<_, _>>();
    let both = |tank| BTreeMap::from([("tank/vm1".to_string(), tank), ("other/vm2".to_string(), true)]);
    let mut w = World::power_on(w.rest, 2, u64::MAX);
    let begin = w.now;
    for path in ["/f/a", "/f/b"] {
        w.rest.drives.get_mut(path).expect("a drive").held = true;
    }
    w.run();
    assert!(w.ready.is_some() && w.now.since(begin) < Duration::from_secs(4), "{:?}", w.now.since(begin));
    assert_eq!(ready(&w), both(false));
    let reasons = w.status().reasons;
    let held = format!("{:?}", locked("/f/a"));
    assert!(reasons.iter().any(|r| r.said().contains(&held)), "{reasons:?}");
    for path in ["/f/a", "/f/b"] {
        w.rest.drives.get_mut(path).expect("a drive").held = false;
    }
    w.pass(5);
    assert_eq!(ready(&w), both(true));
}

#[test]
fn a_namespace_id_that_is_taken_is_changed_with_an_event_and_no_other_is() {
    let w = usual();
    let mut there = drives(&["/f/x", "/f/y"]);
    there.drives.extend(w.rest.drives);
    let mut there = World::start(there, 3);
    there.good(create("other", vec![mirror("/f/x", "/f/y")]));
    let own = |name: &str| Order::VolumeCreate {
        pool: "other".into(),
        name: name.into(),
        bytes: MIB,
        block_bytes: None,
    };
    there.good(own("mine"));
    there.good(import(ALL, true));
    let words = "NamespaceChanged { volume: \"tank/vm1\", nsid: 2, was: 1, holder: \"other/mine\" }";
    assert!(there.events().iter().any(|e| e.contains(words)), "{:?}", there.events());
    // It keeps that number where it is free.
    let mut here = World::start(Rest { drives: there.rest.drives, ..Rest::default() }, 4);
    here.good(import(ALL, true));
    assert!(!here.events().iter().any(|e| e.contains("NamespaceChanged")), "{:?}", here.events());
    assert_eq!(here.status().volumes.iter().find(|v| v.name.ends_with("vm1")).map(|v| v.nsid), Some(2));
}

/// It said "the drives are missing: ;" and "attach , or …".
#[test]
fn drives_that_are_all_here_and_older_than_what_this_head_remembers_are_told_as_such() {
    let mut w = usual();
    let older = w.rest.drives.clone();
    for _ in 0..3 {
        lose(&mut w, 1);
        w.good(Order::DriveReturn { drive: "/f/b".into() });
        synced(&mut w, 1);
    }
    w.rest.drives = older;
    let mut w = w.crash(2);
    let reason = w.status().reasons[0].clone();
    let stale = PoolDoubt::Stale {
        pool: "tank".into(),
        array: "mirror-0".into(),
        stale: vec!["/f/a".into(), "/f/b".into()],
        missing: vec![],
        whole: true,
    };
    assert!(reason.said().contains(&format!("{stale:?}")), "{reason:?}");
}
