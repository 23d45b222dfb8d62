//! Drives that lie elsewhere than this head had them.

use super::*;

fn release(w: &mut World) {
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
}
/// The files of the pool in another folder, or back.
fn moved(rest: &Rest, from: &str, to: &str) -> BTreeMap<String, FakeDrive> {
    let there = |path: &String| path.strip_prefix(from).map_or(path.clone(), |rest| format!("{to}{rest}"));
    let mut drives: BTreeMap<String, FakeDrive> =
        rest.drives.iter().map(|(path, d)| (there(path), d.clone())).collect();
    drives.values_mut().for_each(|d| d.held = false);
    drives
}
const THERE: [&str; 4] = ["/g/a", "/g/b", "/g/c", "/g/d"];
/// The pool was released here, imported in another folder by another head, and released there; the files are back, and some
/// are still where the other head had them.
fn back_but_for(left: &[&str], order: impl FnOnce(&mut World)) -> World {
    let mut w = usual();
    release(&mut w);
    let mut other = World::start(Rest { drives: moved(&w.rest, "/f", "/g"), ..Rest::default() }, 7);
    other.good(import(&THERE, false));
    order(&mut other);
    w.rest.drives = moved(&other.rest, "/g", "/f");
    for path in left {
        let drive = w.rest.drives.remove(*path).expect("it is back");
        w.rest.drives.insert(path.replace("/f", "/g"), drive);
    }
    w
}
fn notices(reply: Reply) -> Vec<String> {
    let Reply::Created { notices, .. } = reply else { panic!("it is imported: {reply:?}") };
    notices.iter().map(|n| n.said()).collect()
}

/// The refusal told to attach it where it lay, and nothing but its name let the import find it there.
#[test]
fn an_import_looks_where_this_head_had_the_drives_and_where_whoever_had_them_last() {
    let mut w = back_but_for(&["/f/b", "/f/c"], release);
    w.good(import(&[], false));
    let s = w.status();
    assert_eq!((s.health, s.pools[0].state), (State::Optimal, State::Optimal), "{:?}", s.reasons);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);

    let mut w = back_but_for(&[], release);
    w.rest.drives.remove("/f/b");
    let (_, _, words) = w.refused(import(&[], false));
    assert!(words.contains("missing: [\"/g/b\"]"), "{words}");
    assert!(words.contains("LookedInVain { drives: [\"/f/b\"] }"), "{words}");
    assert!(w.open.is_empty(), "drives that are refused are let go of");
    // With force, what is named is all that counts.
    let mut w = back_but_for(&["/f/b"], release);
    w.good(import(&["/f/a", "/f/c", "/f/d"], true));
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
}

/// One named file is enough where the others lie as they did.
#[test]
fn one_drive_of_a_pool_names_the_others() {
    let mut w = usual();
    release(&mut w);
    let mut other = World::start(Rest { drives: moved(&w.rest, "/f", "/f"), ..Rest::default() }, 7);
    other.good(import(&["/f/a"], false));
    assert_eq!(other.status().pools[0].state, State::Optimal);
    // A drive in memory is nobody's but who asked for it.
    let mut w = World::start(drives(&["/f/a", "ram:b:80M"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "ram:b:80M")]));
    release(&mut w);
    let mut other = World::start(Rest { drives: moved(&w.rest, "/f", "/f"), ..Rest::default() }, 7);
    let told = notices(other.good(import(&["/f/a"], true)));
    assert!(
        told.iter().any(|n| n.contains("ArrayLacksDrive { array: \"mirror-0\", drive: \"ram:b:80M\"")),
        "{told:?}"
    );
}

#[test]
fn a_name_from_before_a_renaming_tells_todays() {
    let mut w = back_but_for(&[], |other| {
        release(other);
        let renamed = Order::PoolImport {
            pool: Some("tank".into()),
            name: Some("lake".into()),
            drives: vec![],
            force: false,
        };
        other.good(renamed);
        other.good(Order::PoolRelease { pool: "lake".into(), force: false, disconnect: false });
    });
    let r = w.order(import(&[], false)).expect_err("it has another name");
    let finding::Why::Pool(PoolRefusal::PoolRenamed { name, pool, uuid }) = &*r.why else { panic!("{r:?}") };
    assert_eq!((name.as_str(), pool.as_str()), ("tank", "lake"));
    assert!(w.open.is_empty(), "they are let go of");
    let named =
        |uuid: &str| Order::PoolImport { pool: Some(uuid.into()), name: None, drives: vec![], force: false };
    w.good(named(uuid));
    assert_eq!(w.status().pools[0].name, "lake");
}

/// It was told at the first move only.
#[test]
fn each_move_from_another_head_tells_which_hosts_a_name_lets_in() {
    let by_name = |told: &[String]| told.iter().any(|n| n.contains("HostWithoutSecret"));
    let secretless = || Order::HostSet {
        name: "esx1".into(),
        disconnect: false,
        settings: HostSettings { chap_secret: Some(None), ..HostSettings::default() },
    };
    let mut w = usual();
    w.good(secretless());
    release(&mut w);
    let told = notices(w.good(import(&[], false)));
    assert!(!by_name(&told), "nobody else had it: {told:?}");
    let mut w = back_but_for(&[], release);
    w.good(secretless());
    let told = notices(w.good(import(&[], false)));
    assert!(by_name(&told), "{told:?}");
}

#[test]
fn an_import_tells_what_the_pool_lacks() {
    let mut w = World::start(drives(&["/f/a", "/f/b", "/f/c", "/f/d", "/f/s"]), 1);
    w.good(tank());
    let spare = Order::SpareAdd { pool: "tank".into(), drive: "/f/s".into(), force: false };
    w.good(spare);
    release(&mut w);
    let told = notices(w.good(import(&[], false)));
    assert_eq!(told, [""; 0]);
    lose(&mut w, 1);
    release(&mut w);
    // Somebody looks, and then the spare's file goes, and a leg that was out.
    w.good(Order::PoolImportable { drives: vec![] });
    w.rest.drives.remove("/f/s");
    w.rest.drives.remove("/f/b");
    let told = notices(w.good(import(&[], false)));
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(
        told[0],
        "Pool(ArrayLacksDrive { array: \"mirror-0\", drive: \"/f/b\", why: Leg(DriveNotFound) })"
    );
    assert!(told[1].contains("/f/s") && told[1].contains("DriveNotFound"), "{told:?}");
    assert!(w.status().pools[0].spares[0].said().contains("DriveNotFound"));
}
