//! What has to be said twice: less redundancy, space that nobody uses, data that is lost.

use super::*;
use crate::report::Counters;

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
/// The refusal, in one line; that the order goes through by force.
fn asked(w: &mut World, order: Order, forced: Order) -> String {
    let r = w.order(order.clone()).expect_err("a refusal");
    assert_eq!(r.kind(), ErrorKind::Unsafe, "{order:?}: {r:?}");
    w.good(forced);
    format!("{}\n{}", r.said(), r.next().expect("a way on"))
}

#[test]
fn arrays_that_keep_fewer_copies_than_the_pool_are_meant_or_refused_with_the_command_that_mirrors_them() {
    let mut w = world(&["/f/x", "/f/y"]);
    w.good(tank());
    let arrays = || vec![single("/f/x")];
    let words = asked(&mut w, add(arrays(), false), add(arrays(), true));
    assert_eq!(
        words,
        "pool tank keeps 2 copies of everything, and the single drive /f/x would keep 1: if that drive fails, data of volumes is lost\n\
         millrace pool add tank mirror /f/x DRIVE, or the same command with --force"
    );
    // From now on the pool keeps no more.
    w.good(add(vec![single("/f/y")], false));
    w.good(Order::ArrayRemove { pool: "tank".into(), arrays: vec!["single-3".into()] });
    w.good(Order::ArrayRemove { pool: "tank".into(), arrays: vec!["single-2".into()] });
    let arrays = || vec![single("/f/x"), single("/f/y")];
    let words = asked(&mut w, add(arrays(), false), add(arrays(), true));
    assert!(words.contains("millrace pool add tank mirror /f/x /f/y, or"), "{words}");

    let mut w = world(&["/f/x", "/f/y"]);
    w.good(create("tank", vec![mirror_of(&["/f/a", "/f/b", "/f/c"])]));
    let arrays = || vec![mirror("/f/x", "/f/y")];
    let words = asked(&mut w, add(arrays(), false), add(arrays(), true));
    assert!(words.contains("keeps 3 copies of everything, and a mirror of 2 would keep 2"), "{words}");
    assert!(words.contains("millrace pool add tank mirror /f/x /f/y DRIVE, or"), "{words}");
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
    assert_eq!(
        words,
        "64M of the 128M of /f/y would stay unused: each drive of a mirror holds as much as its smallest one\n\
         the same command with drives of one size, or with --force"
    );
    w.good(Order::PoolDestroy { pool: "two".into(), force: false, disconnect: false });
    // A tenth is no waste.
    w.good(create("two", vec![mirror("/f/x", "/f/z")]));

    let mut w = sized(&[("/f/x", 64), ("/f/y", 128), ("/f/z", 160)]);
    w.good(tank());
    let arrays = || vec![mirror("/f/x", "/f/y")];
    let words = asked(&mut w, add(arrays(), false), add(arrays(), true));
    assert!(words.contains("64M of the 128M of /f/y would stay unused"), "{words}");
    let leg = |force| Order::LegAdd {
        pool: "tank".into(),
        mirror: Some("mirror-0".into()),
        drive: "/f/z".into(),
        force,
    };
    let words = asked(&mut w, leg(false), leg(true));
    assert!(words.contains("of the 160M of /f/z would stay unused"), "{words}");
    let mut w = sized(&[("/f/x", 64), ("/f/y", 128), ("/f/z", 160)]);
    w.good(tank());
    let replace = Order::DriveReplace { old: "/f/a".into(), new: "/f/z".into(), force: false };
    let Reply::Created { notices, .. } = w.good(replace) else { panic!("it says so") };
    assert!(
        notices.len() == 1 && notices[0].said().contains("of the 160M of /f/z would stay unused"),
        "{notices:?}"
    );
    let spare = Order::SpareAdd { pool: "tank".into(), drive: "/f/y".into(), force: false };
    let Reply::Created { notices, .. } = w.good(spare) else { panic!("it says so") };
    assert!(
        notices.iter().any(|n| n.said().contains("of the 128M of /f/y would stay unused")),
        "{notices:?}"
    );
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
    for part in
        ["would keep 1", "DriveLabelled { drive: \"/f/x\", pool: \"old\"", "what is there would be lost"]
    {
        assert!(r.said().contains(part), "{part}: {r:?}");
    }
    assert!(r.next().as_deref().is_some_and(|n| n.contains("overrides all of this")), "{r:?}");
    assert!(!w.open.values().any(|d| d == "/f/x"), "it is let go of");
    assert!(w.rest.drives["/f/x"].blocks.get(&8).is_some_and(|b| b.iter().any(|x| *x != 0)));
    w.good(add(vec![single("/f/x")], true));
}

/// It was gone by one command, with 400 GB of somebody's data.
#[test]
fn a_volume_that_may_hold_data_is_removed_only_by_who_says_so() {
    let remove = |disconnect| Order::VolumeRemove { volume: "tank/vm1".into(), force: false, disconnect };
    let rid = |w: &mut World, part: &str| {
        let r = w.order(remove(false)).expect_err("a refusal");
        assert_eq!((r.kind(), r.field), (ErrorKind::Unsafe, "disconnect"));
        assert!(r.said().contains(part), "{r:?}");
        assert_eq!(r.next().as_deref(), Some("millrace volume rm tank/vm1 --yes"));
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
    rid(&mut w, "hosts wrote 3M to volume tank/vm1: its data would be lost");
    // A write that failed may have reached a drive.
    let mut w = world();
    let id = w.layout.volumes[0].id;
    w.volumes = vec![(id, Counters { errors: 1, ..Counters::default() })];
    rid(&mut w, "volume tank/vm1 may hold data");
    // Of a life before nobody has counted.
    rid(&mut world().crash(2), "volume tank/vm1 may hold data");
    let mut w = world();
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    w.good(import(&[], false));
    rid(&mut w, "volume tank/vm1 may hold data");
}
