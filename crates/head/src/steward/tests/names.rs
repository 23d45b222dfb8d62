//! A pool's name means one pool, here or away.

use super::*;
use crate::order::Cause;
use finding::{PoolCause, PoolRefusal, Why};

/// What another system's pool of that name is on, released.
fn strangers(seed: u64, names: [&str; 2]) -> Rest {
    let mut other = World::start(drives(&names), seed);
    other.good(create("tank", vec![mirror(names[0], names[1])]));
    other.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    other.rest
}
fn release(w: &mut World) {
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
}

#[test]
fn a_name_on_record_is_not_taken_by_another_pool_while_its_own_is_away() {
    let mut w = usual();
    let own = w.status().pools[0].uuid;
    w.good(Order::Shutdown);
    let mut rest = w.rest;
    let away = std::mem::take(&mut rest.drives);
    rest.drives = strangers(9, ["/g/a", "/g/b"]).drives;
    let mut w = World::start(rest, 2);
    for force in [false, true] {
        let (kind, _, words) = w.refused(import(&["/g/a", "/g/b"], force));
        assert!(kind == ErrorKind::Conflict && words.contains(&own.to_string()), "{words}");
        let unnamed =
            Order::PoolImport { pool: None, name: None, drives: vec!["/g/a".into(), "/g/b".into()], force };
        assert_eq!(w.refused(unnamed).0, ErrorKind::Conflict);
    }
    assert!(w.open.is_empty(), "drives that are refused are let go of");
    let list = Order::PoolImportable { drives: vec!["/g/a".into(), "/g/b".into()] };
    let Reply::Importable(list) = w.good(list) else { panic!("a list") };
    let Some(Cause::Pool(PoolCause::ImportPreview { clash: Some(clash), .. })) = &list[0].cause else {
        panic!("{:?}", list[0])
    };
    let Why::Pool(PoolRefusal::PoolNameOfAbsent { pool, other, .. }) = &**clash else { panic!("{clash:?}") };
    assert_eq!((&**pool, other), ("tank", &own.to_string()));

    // Beside the stranger's the name finds its own.
    w.rest.drives.extend(away);
    let Reply::Created { notices, .. } = w.good(import(&["/g/a", "/g/b"], false)) else {
        panic!("it is here")
    };
    let named = ["drives: [\"/g/a\", \"/g/b\"]", "PoolNamesakeIgnored { pool: \"tank\""];
    let told = notices.iter().any(|n| named.iter().all(|part| n.said().contains(part)));
    assert!(told, "who named the other one: {notices:?}");
    let s = w.status();
    assert_eq!((s.pools.len(), s.pools[0].uuid, s.pools[0].state), (1, own, State::Optimal));
    let unnamed = Order::PoolImport { pool: None, name: None, drives: vec!["/g/a".into()], force: true };
    let (kind, _, words) = w.refused(unnamed);
    assert!(kind == ErrorKind::Conflict && words.contains(&own.to_string()), "{words}");
}

#[test]
fn a_name_is_free_once_the_pool_that_is_away_is_forgotten() {
    let mut w = usual();
    let own = w.status().pools[0].uuid;
    w.good(Order::Shutdown);
    let mut rest = w.rest;
    rest.drives = strangers(9, ["/g/a", "/g/b"]).drives;
    let mut w = World::start(rest, 2);
    release(&mut w);
    w.good(import(&["/g/a", "/g/b"], false));
    let s = w.status();
    assert!(s.pools.len() == 1 && s.pools[0].uuid != own);
}

#[test]
fn two_names_of_one_drive_are_no_two_drives() {
    let mut rest = drives(&["/f/a", "/f/b", "/dev/loop0", "/dev/loop1"]);
    let mut set = |path: &str, names: &[&str]| {
        let d = rest.drives.get_mut(path).expect("a drive");
        d.places = names.iter().map(|n| base::Place::whole(*n)).collect();
    };
    set("/f/a", &["file 1:7"]);
    set("/dev/loop0", &["device 7:0", "file 1:7"]);
    set("/dev/loop1", &["device 7:1", "file 1:8"]);
    let mut w = World::start(rest, 1);
    for pair in [("/f/a", "/dev/loop0"), ("/dev/loop0", "/f/a")] {
        for force in [false, true] {
            let Order::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, .. } =
                create("tank", vec![mirror(pair.0, pair.1)])
            else {
                unreachable!("it makes a pool")
            };
            let order = Order::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, force };
            let (_, field, words) = w.refused(order);
            assert!(field == "drives" && words.contains("DrivesAreOne { how: Overlap"), "{words}");
        }
    }
    assert!(w.open.is_empty());
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    for order in [
        Order::PoolAdd { pool: "tank".into(), arrays: vec![mirror("/dev/loop0", "/dev/loop1")], force: true },
        Order::SpareAdd { pool: "tank".into(), drive: "/dev/loop0".into(), force: true },
        Order::LegAdd { pool: "tank".into(), mirror: None, drive: "/dev/loop0".into(), force: true },
        Order::DriveReplace { old: "/f/a".into(), new: "/dev/loop0".into(), force: true },
    ] {
        let (kind, _, words) = w.refused(order);
        assert!(
            kind == ErrorKind::Conflict
                && words.contains("DriveOverlapsPool")
                && words.contains("pool: \"tank\""),
            "{words}"
        );
    }
    w.good(Order::SpareAdd { pool: "tank".into(), drive: "/dev/loop1".into(), force: false });
}

#[test]
fn a_pool_is_imported_by_each_drive_once_whatever_names_it_has() {
    let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    release(&mut w);
    // The same blocks by another name.
    let mut again = w.rest.drives["/f/a"].clone();
    again.places = vec![base::Place::whole("file 1:7")];
    w.rest.drives.get_mut("/f/a").expect("a drive").places = again.places.clone();
    w.rest.drives.insert("/dev/loop0".into(), again);
    let mut w = World::start(Rest { drives: w.rest.drives, ..Rest::default() }, 2);
    let (_, _, words) = w.refused(import(&["/f/a", "/dev/loop0", "/f/b"], true));
    assert!(words.contains("how: Overlap { drive: \"/f/a\", other: \"/dev/loop0\" }"), "{words}");
    assert!(w.open.is_empty());
    // One that nobody named is passed over.
    w.good(import(&["/f/a", "/f/b"], false));
    assert_eq!(w.legs(0), [LegState::InSync; 2]);
}

/// Two drives of a SAN, each seen by two paths.
fn by_two_paths(first: &Rest) -> Rest {
    let mut rest = first.clone();
    for (path, other, id) in [("/dev/sda", "/dev/sdc", "naa.5a"), ("/dev/sdb", "/dev/sdd", "naa.5b")] {
        let drive = rest.drives.get_mut(path).expect("a drive");
        (drive.places, drive.held) = (vec![base::Place::wwid(id, drive.bytes)], false);
        let again = drive.clone();
        rest.drives.insert(other.into(), again);
    }
    rest
}

#[test]
fn two_paths_of_one_drive_are_no_mirror() {
    let mut w = World::start(by_two_paths(&drives(&["/dev/sda", "/dev/sdb"])), 1);
    let r = w.order(create("tank", vec![mirror("/dev/sda", "/dev/sdc")])).expect_err("one drive");
    assert!(
        r.said().contains("Paths { drive: \"/dev/sda\", other: \"/dev/sdc\", wwid: \"naa.5a\" }"),
        "{r:?}"
    );
    w.good(create("tank", vec![mirror("/dev/sda", "/dev/sdb")]));
    let (_, _, words) =
        w.refused(Order::SpareAdd { pool: "tank".into(), drive: "/dev/sdc".into(), force: true });
    let overlaps = "DriveOverlapsPool { drive: \"/dev/sda\", other: \"/dev/sdc\", pool: \"tank\" }";
    assert!(words.contains(overlaps), "{words}");
}

#[test]
fn a_pool_whose_drives_have_two_paths_each_is_found_by_one_of_them() {
    let mut w = World::start(drives(&["/dev/sda", "/dev/sdb"]), 1);
    w.good(create("tank", vec![mirror("/dev/sda", "/dev/sdb")]));
    w.good(volume("vm1", 9 * MIB));
    // At a start, where both have other paths than they had.
    let mut rest = by_two_paths(&w.rest);
    rest.drives.remove("/dev/sda");
    let mut started = World::start(rest, 2);
    assert_eq!(started.status().health, State::Optimal, "{:?}", started.status().reasons);
    // By another head that looks for it.
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    let mut other = World::start(Rest { files: BTreeMap::new(), ..by_two_paths(&w.rest) }, 7);
    let list = Order::PoolImportable { drives: vec![] };
    let Reply::Importable(list) = other.good(list) else { panic!("a list") };
    assert!(list.len() == 1 && list[0].state == State::Optimal, "{list:?}");
    other.good(import(&[], false));
    assert_eq!(other.legs(0), [LegState::InSync; 2]);
}

/// A drive whose place was remembered was opened twice, and the one without the shape won.
#[test]
fn a_drive_that_an_import_names_with_a_shape_has_it_though_its_place_is_known() {
    let mut w = usual();
    let shapes = |w: &mut World| {
        let drives = w.status().drives;
        let drive = drives.iter().find(|d| d.path == "/f/b");
        drive.and_then(|d| d.shape.as_ref()).map_or(0, |s| s.latency_us)
    };
    release(&mut w);
    w.good(import(&["shape:latency-us=7@/f/b"], false));
    assert_eq!((shapes(&mut w), w.legs(0)), (7, vec![LegState::InSync; 2]));
    release(&mut w);
    let (_, _, words) = w.refused(import(&["shape:hang@/f/b"], false));
    assert!(words.contains("missing: [\"/f/b\"]"), "{words}");
    w.good(import(&["/f/a", "shape:hang@/f/b", "/f/c", "/f/d"], true));
    assert_eq!(w.legs(0)[0], LegState::InSync);
    assert_ne!(w.legs(0)[1], LegState::InSync);
    w.pass(60);
    assert_ne!(w.legs(0)[1], LegState::InSync, "it still hangs when it is tried again");
    w.good(Order::DriveShape { drive: "/f/b".into(), shape: Shape::default() });
    w.pass(60);
    assert_eq!(w.legs(0)[1], LegState::Rebuilding);
}

#[test]
fn a_pool_is_imported_under_another_name_where_its_own_is_taken_and_keeps_it() {
    let renamed = |pool: &str, name: &str| Order::PoolImport {
        pool: Some(pool.into()),
        name: Some(name.into()),
        drives: vec!["/g/a".into(), "/g/b".into()],
        force: false,
    };
    let mut w = usual();
    w.rest.drives.extend(strangers(9, ["/g/a", "/g/b"]).drives);
    let uuid = {
        let list = Order::PoolImportable { drives: vec!["/g/a".into(), "/g/b".into()] };
        let Reply::Importable(list) = w.good(list) else { panic!("a list") };
        let Some(Cause::Pool(PoolCause::ImportPreview { clash: Some(clash), .. })) = &list[0].cause else {
            panic!("{list:?}")
        };
        assert_eq!(clash.name(), "PoolNameOfOther");
        list[0].uuid.to_string()
    };
    assert_eq!(w.refused(renamed(&uuid, "tank")).0, ErrorKind::Conflict);
    let (kind, field, _) = w.refused(renamed(&uuid, "a/b"));
    assert_eq!((kind, &*field), (ErrorKind::Invalid, "name"));
    w.good(renamed(&uuid, "tank2"));
    let names = |w: &mut World| w.status().pools.into_iter().map(|p| p.name).collect::<Vec<_>>();
    assert_eq!(names(&mut w), ["tank", "tank2"]);
    w.good(Order::VolumeCreate { pool: "tank2".into(), name: "v".into(), bytes: 9 * MIB, block_bytes: None });
    let mut w = w.crash(2);
    assert_eq!(names(&mut w), ["tank", "tank2"]);
    assert_eq!(w.status().health, State::Optimal);
    // On its own head, too, whoever had it before.
    w.good(Order::PoolRelease { pool: "tank2".into(), force: false, disconnect: false });
    let mut other = World::start(Rest { files: BTreeMap::new(), ..w.rest }, 8);
    other.good(Order::PoolImport {
        pool: Some("tank2".into()),
        name: None,
        drives: vec!["/g/a".into(), "/g/b".into()],
        force: false,
    });
    assert_eq!(names(&mut other), ["tank2"]);
}

/// Pools are imported side by side: one that looked at a drive kept the other one, whose leg it was, from seeing it.
#[test]
fn a_leg_where_another_pool_had_one_is_found_though_both_look_at_once() {
    let mut w = World::start(drives(&["/dev/a", "/dev/b", "/dev/c", "/dev/d"]), 1);
    for order in [
        create("tank", vec![mirror("/dev/a", "/dev/b")]),
        create("two", vec![mirror("/dev/c", "/dev/d")]),
        Order::Shutdown,
    ] {
        w.good(order);
    }
    let mut rest = w.rest;
    let moved = rest.drives.remove("/dev/b").expect("there");
    // The other pool looks at it for a while.
    rest.drives.insert("/dev/d".into(), FakeDrive { slow: base::Duration::from_millis(500), ..moved });
    let mut w = World::power_on(rest, 2, u64::MAX);
    w.held_candidates = true;
    w.run();
    let s = w.status();
    let tank = s.pools.iter().find(|p| p.name == "tank").expect("it is here");
    assert_eq!(tank.state, State::Optimal, "{tank:?}");
}
