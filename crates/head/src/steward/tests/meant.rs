//! What has to be said twice: less redundancy, space that nobody uses, data that is lost.

use super::*;
use crate::order::Notice;
use crate::report::Counters;
use finding::{PoolNotice, PoolRefusal, UnusedSpace, VolumeData, Why};

fn tells_unused(notice: &Notice, path: &str, size: u64) -> bool {
    matches!(notice, Notice::Pool(PoolNotice::DriveSpaceUnused { drive }) if drive.drive == path && drive.bytes == size)
}

fn add(arrays: Vec<ArraySpec>, force: bool) -> Order {
    Order::PoolAdd { pool: "tank".into(), arrays, force }
}
fn single(drive: &str) -> ArraySpec {
    ArraySpec { layout: crate::order::ArrayLayout::Single, drives: vec![drive.into()], weight: None }
}
fn mirror_of(drives: &[&str]) -> ArraySpec {
    ArraySpec {
        layout: crate::order::ArrayLayout::Mirror,
        drives: drives.iter().map(|d| d.to_string()).collect(),
        weight: None,
    }
}
fn world(more: &[&str]) -> World {
    let mut rest = four();
    rest.drives.extend(drives(more).drives);
    World::start(rest, 1)
}
/// Why it is refused; that the order goes through by force.
fn asked(w: &mut World, order: Order, forced: Order) -> Why {
    let r = w.order(order.clone()).expect_err("a refusal");
    assert_eq!(r.kind(), ErrorKind::Unsafe, "{order:?}: {r:?}");
    w.good(forced);
    *r.why
}

#[test]
fn arrays_that_keep_fewer_copies_than_the_pool_are_meant_or_refused_with_the_command_that_mirrors_them() {
    let mut w = world(&["/f/x", "/f/y"]);
    w.good(tank());
    let arrays = || vec![single("/f/x")];
    let words = asked(&mut w, add(arrays(), false), add(arrays(), true));
    let less = |(has, keeps), drives: &[&str], all: &[&str]| {
        let names = |drives: &[&str]| drives.iter().map(|d| d.to_string()).collect::<Vec<_>>();
        let (pool, mirror) = ("tank".to_string(), drives.len() > 1);
        let (drives, mirrors) = (names(drives), vec![names(all)]);
        Why::from(PoolRefusal::LessRedundant { pool, has, keeps, mirror, drives, mirrors })
    };
    assert_eq!(words, less((2, 1), &["/f/x"], &["/f/x"]));
    // From now on the pool keeps no more.
    w.good(add(vec![single("/f/y")], false));
    w.good(Order::ArrayRemove { pool: "tank".into(), arrays: vec!["single-3".into()] });
    w.good(Order::ArrayRemove { pool: "tank".into(), arrays: vec!["single-2".into()] });
    let arrays = || vec![single("/f/x"), single("/f/y")];
    let words = asked(&mut w, add(arrays(), false), add(arrays(), true));
    assert_eq!(words, less((2, 1), &["/f/x"], &["/f/x", "/f/y"]));

    let mut w = world(&["/f/x", "/f/y"]);
    w.good(create("tank", vec![mirror_of(&["/f/a", "/f/b", "/f/c"])]));
    let arrays = || vec![mirror("/f/x", "/f/y")];
    let words = asked(&mut w, add(arrays(), false), add(arrays(), true));
    assert_eq!(words, less((3, 2), &["/f/x", "/f/y"], &["/f/x", "/f/y"]));
    // More copies than the pool has are no loss.
    let mut w = world(&["/f/x", "/f/y"]);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    w.good(add(vec![mirror_of(&["/f/c", "/f/d", "/f/x"])], false));
}

/// They were made without a word: half of the larger drive was nobody's.
#[test]
fn a_mirror_that_leaves_more_than_a_tenth_of_a_drive_unused_is_meant_or_refused() {
    let sized = |names: &[(&str, u64)]| {
        let mut w = world(&names.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (name, mib) in names {
            w.rest.drives.get_mut(*name).expect("it is there").bytes = mib * MIB;
        }
        w
    };
    let mut w = sized(&[("/f/x", 64), ("/f/y", 128), ("/f/z", 70)]);
    let pool = |force| match create("two", vec![mirror("/f/x", "/f/y")]) {
        Order::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, .. } => {
            Order::PoolCreate { name, arrays, chunk_bytes, block_bytes, measure, force }
        }
        other => other,
    };
    let words = asked(&mut w, pool(false), pool(true));
    let unused = |drive: &str, bytes: u64, unused: u64| {
        let drives =
            vec![UnusedSpace { drive: drive.into(), bytes: bytes * MIB, unused_bytes: unused * MIB }];
        Why::from(PoolRefusal::MirrorLeavesUnused { drives })
    };
    assert_eq!(words, unused("/f/y", 128, 64));
    w.good(Order::PoolDestroy { pool: "two".into(), force: false, disconnect: false });
    // A tenth is no waste.
    w.good(create("two", vec![mirror("/f/x", "/f/z")]));

    let mut w = sized(&[("/f/x", 64), ("/f/y", 128), ("/f/z", 160)]);
    w.good(tank());
    let arrays = || vec![mirror("/f/x", "/f/y")];
    let words = asked(&mut w, add(arrays(), false), add(arrays(), true));
    assert_eq!(words, unused("/f/y", 128, 64));
    let leg = |force| Order::LegAdd {
        pool: "tank".into(),
        mirror: Some("mirror-0".into()),
        drive: "/f/z".into(),
        force,
    };
    let words = asked(&mut w, leg(false), leg(true));
    assert!(
        matches!(&words, Why::Pool(PoolRefusal::MirrorLeavesUnused { drives })
            if drives.len() == 1 && drives[0].drive == "/f/z" && drives[0].bytes == 160 * MIB),
        "{words:?}"
    );
    let mut w = sized(&[("/f/x", 64), ("/f/y", 128), ("/f/z", 160)]);
    w.good(tank());
    let replace = Order::DriveReplace { old: "/f/a".into(), new: "/f/z".into(), force: false };
    let Reply::Created { notices, .. } = w.good(replace) else { panic!("it says so") };
    assert!(notices.len() == 1 && tells_unused(&notices[0], "/f/z", 160 * MIB), "{notices:?}");
    let spare = Order::SpareAdd { pool: "tank".into(), drive: "/f/y".into(), force: false };
    let Reply::Created { notices, .. } = w.good(spare) else { panic!("it says so") };
    assert!(notices.iter().any(|n| tells_unused(n, "/f/y", 128 * MIB)), "{notices:?}");
}

/// Whoever typed --force for one thing had said yes to the others unseen.
#[test]
fn a_refusal_names_all_that_force_would_override() {
    let mut w = world(&["/f/x", "/f/y"]);
    w.good(create("old", vec![mirror("/f/x", "/f/y")]));
    w.good(tank());
    w.good(Order::PoolRelease { pool: "old".into(), force: false, disconnect: false });
    w.rest.files.remove("released");
    let mut w = w.crash(2);
    w.rest.drives.get_mut("/f/y").expect("it is there").bytes = 200 * MIB;
    let r = w.order(add(vec![single("/f/x")], false)).expect_err("a refusal");
    let Why::Pool(PoolRefusal::SeveralObjections { first, others }) = &*r.why else { panic!("{r:?}") };
    assert!(matches!(**first, Why::Pool(PoolRefusal::LessRedundant { keeps: 1, .. })), "{first:?}");
    let Why::Pool(PoolRefusal::DrivesHoldData { why }) = &others[0] else { panic!("{others:?}") };
    assert!(why.len() == 1 && why[0].said().contains("/f/x"), "{why:?}");
    assert!(!w.open.values().any(|d| d == "/f/x"), "it is let go of");
    assert!(w.rest.drives["/f/x"].blocks.get(&8).is_some_and(|b| b.iter().any(|x| *x != 0)));
    w.good(add(vec![single("/f/x")], true));
}

/// It was gone by one command, with 400 GB of somebody's data.
#[test]
fn a_volume_that_may_hold_data_is_removed_only_by_who_says_so() {
    let remove = |disconnect| Order::VolumeRemove { volume: "tank/vm1".into(), force: false, disconnect };
    let rid = |w: &mut World, data: VolumeData| {
        let r = w.order(remove(false)).expect_err("a refusal");
        assert_eq!((r.kind(), r.field), (ErrorKind::Unsafe, "disconnect"));
        let why = PoolRefusal::VolumeHoldsData { volume: "tank/vm1".into(), data, force: false };
        assert_eq!(*r.why, why.into());
        assert_eq!(w.layout.volumes.len(), 1);
        w.good(remove(true));
        assert!(w.layout.volumes.is_empty());
    };
    let world = || {
        let mut w = World::start(four(), 1);
        w.good(tank());
        w.good(volume("vm1", 9 * MIB));
        w
    };
    // Made in this life of the head, and never written.
    let mut w = world();
    let id = w.layout.volumes[0].id;
    w.volumes = vec![(id, Counters { reads: 7, read_bytes: 7 * 4096, ..Counters::default() })];
    w.good(remove(false));
    // Written by hosts of one shard.
    let mut w = world();
    let id = w.layout.volumes[0].id;
    w.volumes = vec![(id, Counters { writes: 3, write_bytes: 3 * MIB, ..Counters::default() })];
    rid(&mut w, VolumeData::Written { bytes: 3 * MIB });
    // A write that failed may have reached a drive.
    let mut w = world();
    let id = w.layout.volumes[0].id;
    w.volumes = vec![(id, Counters { errors: 1, ..Counters::default() })];
    rid(&mut w, VolumeData::Unknown);
    // Of a life before nobody has counted.
    rid(&mut world().crash(2), VolumeData::Unknown);
    let mut w = world();
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    w.good(import(&[], false));
    rid(&mut w, VolumeData::Unknown);
}
