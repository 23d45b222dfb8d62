//! Which granules are given away, while volumes come and go and pools grow.

use super::*;
use array::format::{CONFIG_AT, ConfigSlot};

fn make(w: &mut World, name: &str, mib: u64) {
    w.good(volume(name, mib * MIB));
}

fn remove(w: &mut World, name: &str) {
    let volume = format!("tank/{name}");
    w.good(Order::VolumeRemove { volume, force: true, disconnect: false });
}

fn add(w: &mut World, a: &str, b: &str) {
    w.good(Order::PoolAdd { pool: "tank".into(), arrays: vec![mirror(a, b)], force: false });
}

/// Every volume has granules of its own, and what is said to be used is what they have and what rests.
fn check(w: &mut World, resting: u64) {
    let mut runs: Vec<(u64, u64)> =
        w.layout.volumes.iter().flat_map(|v| v.map.runs()).map(|r| (r.first, r.count)).collect();
    runs.sort_unstable();
    let apart = runs.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0);
    assert!(apart, "two volumes have the same space: {runs:?}");
    let sum: u64 = runs.iter().map(|(_, n)| n * volume::GRANULE_BYTES).sum();
    assert_eq!(w.status().pools[0].used_bytes, sum + resting * MIB);
}

fn world() -> World {
    let mut w = World::start(drives(&["/f/a", "/f/b", "/f/c", "/f/d", "/f/e"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    w
}

#[test]
fn space_that_rests_is_nobodys_also_while_the_pool_grows() {
    let mut w = world();
    make(&mut w, "old", 60);
    remove(&mut w, "old");
    check(&mut w, 60);
    add(&mut w, "/f/c", "/f/d");
    check(&mut w, 60);
    make(&mut w, "first", 60);
    check(&mut w, 60);
    w.pass(11);
    check(&mut w, 0);
    make(&mut w, "second", 60);
    check(&mut w, 0);
    // Nobody is left to contradict after a crash.
    let mut w = w.crash(2);
    check(&mut w, 0);
}

#[test]
fn a_full_pool_tells_of_space_that_becomes_free_soon() {
    let mut w = world();
    make(&mut w, "old", 40);
    let pool = w.status().pools[0].clone();
    let free = (pool.bytes - pool.used_bytes) / MIB;
    remove(&mut w, "old");
    assert_eq!(w.status().pools[0].freeing_bytes, 40 * MIB);
    // Waiting helps; then there is asked for more than there will be.
    for mib in [free + 20, free + 60] {
        let r = w.order(volume("new", mib * MIB)).expect_err("a refusal");
        assert_eq!(r.kind(), ErrorKind::NoSpace);
        let (pool, free_bytes, freeing_bytes) = ("tank".into(), free * MIB, 40 * MIB);
        let bytes = mib * MIB;
        let why = VolumeRefusal::NoSpaceForVolume { pool, free_bytes, freeing_bytes, seconds: 10, bytes };
        assert_eq!(*r.why, why.into());
    }
    w.pass(11);
    let pool = &w.status().pools[0];
    assert_eq!((pool.freeing_bytes, pool.used_bytes), (0, 0));
    make(&mut w, "new", free + 20);
    assert_eq!(w.status().volumes[0].space_bytes, (free + 20) * MIB);
}

#[test]
fn what_rests_comes_back_once_whatever_happens_meanwhile() {
    let mut w = world();
    make(&mut w, "old", 40);
    w.good(Order::VolumeResize {
        volume: "tank/old".into(),
        bytes: 20 * MIB,
        force: true,
        disconnect: false,
    });
    remove(&mut w, "old");
    check(&mut w, 40);
    add(&mut w, "/f/c", "/f/d");
    w.pass(20);
    check(&mut w, 0);
    // The pool goes and comes back as another one while something rests.
    make(&mut w, "old", 40);
    remove(&mut w, "old");
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: true });
    w.good(Order::PoolImport { pool: Some("tank".into()), name: None, drives: vec![], force: false });
    make(&mut w, "new", 40);
    w.pass(20);
    check(&mut w, 0);
}

#[test]
fn volumes_that_come_and_go_leave_nothing_behind() {
    let mut w = world();
    let mut there: Vec<String> = vec![];
    for i in 0..60 {
        // What was removed ten seconds ago comes back in the middle of other orders.
        let name = format!("v{i}");
        make(&mut w, &name, 4);
        there.push(name);
        if i % 3 != 0 {
            let gone = there.remove(i % there.len());
            remove(&mut w, &gone);
        }
        if there.len() > 4 {
            remove(&mut w, &there.remove(0));
        }
        w.pass(4);
    }
    w.pass(11);
    check(&mut w, 0);
    assert_eq!(w.status().pools[0].used_bytes, there.len() as u64 * 4 * MIB);
}

#[test]
fn a_file_that_is_larger_than_what_is_free_below_it_is_told_when_a_pool_is_made_of_it() {
    let mut w = World::start(four(), 1);
    w.rest.drives.get_mut("/f/b").expect("it is there").free = Some(20 * MIB);
    w.rest.drives.get_mut("/f/c").expect("it is there").free = Some(200 * MIB);
    let Reply::Created { notices, .. } = w.good(tank()) else { panic!("it was made") };
    let told =
        notices.iter().filter(|n| n.name() == "FileLargerThanBelow").map(|n| n.said()).collect::<Vec<_>>();
    let [told] = &told[..] else { panic!("one is told: {told:?}") };
    let bytes = w.rest.drives["/f/b"].bytes;
    let fields = format!("drive: \"/f/b\", free_bytes: {}, bytes: {bytes}", 20 * MIB);
    assert!(told.contains(&fields), "{told}");
}

/// What volumes gave back is nobody's before every shard has marked it, over crashes and on a head that takes the pool over.
#[test]
fn returned_space_is_free_when_it_is_marked_and_not_before() {
    let mut w = world();
    make(&mut w, "old", 40);
    w.unmarked = true;
    remove(&mut w, "old");
    w.pass(60);
    check(&mut w, 40);
    assert!(w.log.iter().any(|l| l.starts_with("returned 0")), "{:?}", w.log);
    let returned = |w: &World| w.log.iter().find(|l| l.starts_with("returned 0")).cloned();
    let ranges = returned(&w);
    let mut w = w.crash(2);
    assert!(ranges.is_some() && returned(&w) == ranges, "the same is marked anew");
    check(&mut w, 0);
    make(&mut w, "new", 60);
    check(&mut w, 0);
    // Nothing is uncleared: the configuration is one that older programs take.
    let mut w = w.crash(3);
    assert_eq!(returned(&w), None);
    check(&mut w, 0);
}

#[test]
fn a_pool_on_used_drives_begins_with_a_map_that_says_so() {
    let mut rest = drives(&["/f/a", "/f/b", "/f/c"]);
    rest.drives.get_mut("/f/b").expect("there").zero = false;
    let mut w = World::start(rest, 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    let all = |w: &World, a: usize| w.layout.arrays[a].uncleared.bytes(&w.layout.arrays[a].geometry);
    let bytes = w.layout.arrays[0].geometry.data_bytes;
    assert_eq!(
        (all(&w, 0), w.layout.arrays[0].unclean),
        (bytes, false),
        "and nothing has to be made the same"
    );
    make(&mut w, "v", 20);
    check(&mut w, 0);
    let mut w = w.crash(2);
    assert_eq!(all(&w, 0), bytes, "the drives say so");
    // A torn block on one leg is mended from the other.
    let tail = array::format::tail_at(w.rest.drives["/f/a"].bytes) / 512;
    let map = |w: &World, name: &str| {
        let at = |b: &u64| (tail..tail + 2000).contains(b);
        w.rest.drives[name]
            .blocks
            .iter()
            .filter(|(b, _)| at(b))
            .map(|(b, d)| (*b, d.clone()))
            .collect::<Vec<_>>()
    };
    let whole = map(&w, "/f/a");
    let drive = w.rest.drives.get_mut("/f/a").expect("there");
    let (at, _) = whole.iter().find(|(_, d)| d.starts_with(b"MRUNCLRD")).expect("a block of the map");
    drive.blocks.get_mut(at).expect("there")[300] ^= 1;
    let w = w.crash(3);
    assert_eq!(all(&w, 0), bytes);
    let same = |(b, d): &(u64, Vec<u8>)| map(&w, "/f/a").iter().any(|(x, y)| x == b && y == d);
    assert!(whole.iter().all(same), "it is whole again");
}

/// What is uncleared is not known as long as no leg says so: neither junk nor zeroes may be shown for it.
#[test]
fn a_pool_whose_uncleared_map_no_drive_reads_is_not_taken_before_one_does() {
    let mut rest = drives(&["/f/a", "/f/b"]);
    rest.drives.values_mut().for_each(|d| d.zero = false);
    let mut w = World::start(rest, 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    let bytes = w.layout.arrays[0].geometry.data_bytes;
    let tail = array::format::tail_at(w.rest.drives["/f/a"].bytes);
    let reads_not = |w: &mut World, name: &str, blocks: u64, e: DriveError| {
        let range = tail..tail + blocks * 4096;
        w.rest.drives.get_mut(name).expect("there").unread = Some((range, e));
    };
    let uncleared = |w: &World| {
        w.layout
            .arrays
            .first()
            .map(|a| (a.uncleared.bytes(&a.geometry), a.membership.legs.iter().flatten().count()))
    };
    // One that does is enough.
    reads_not(&mut w, "/f/a", 224, DriveError::Other(5));
    let mut w = w.crash(2);
    assert_eq!(uncleared(&w), Some((bytes, 2)));
    reads_not(&mut w, "/f/b", 224, DriveError::TimedOut);
    let mut w = w.crash(3);
    assert_eq!(uncleared(&w), None);
    w.rest.drives.get_mut("/f/b").expect("there").unread = None;
    w.pass(120);
    assert_eq!(uncleared(&w), Some((bytes, 2)), "{:?}", w.events());
    // A bad block says nothing where another leg has it. Where none has, its pieces count as cleared, and it is told.
    reads_not(&mut w, "/f/a", 2, DriveError::Medium);
    let mut w = w.crash(4);
    assert_eq!(uncleared(&w), Some((bytes, 2)));
    reads_not(&mut w, "/f/b", 2, DriveError::Medium);
    let mut w = w.crash(5);
    let left = uncleared(&w).expect("it is there").0;
    assert!(left > 0 && left < bytes, "{left} of {bytes}");
    let told = w.events().iter().any(|e| e.contains("UnclearedMapLost"));
    assert!(told, "{:?}", w.events());
}

#[test]
fn free_space_of_a_pool_that_an_older_program_had_is_returned_as_a_whole() {
    let mut w = world();
    make(&mut w, "v", 20);
    // The older program's configuration says nothing of it.
    for name in ["/f/a", "/f/b"] {
        let drive = w.rest.drives.get_mut(name).expect("there");
        for at in CONFIG_AT {
            let bytes: Vec<u8> =
                (0..16).filter_map(|i| drive.blocks.get(&(at / 512 + i))).flatten().copied().collect();
            let Some(mut slot) = ConfigSlot::decode(&bytes).ok() else { continue };
            slot.features.compat = 0;
            for (i, chunk) in slot.encode().expect("it fits").chunks(512).enumerate() {
                drive.blocks.insert(at / 512 + i as u64, chunk.to_vec());
            }
        }
    }
    let mut w = w.crash(2);
    let marked: Vec<&String> = w.log.iter().filter(|l| l.starts_with("returned 0")).collect();
    assert_eq!(marked.len(), 1, "{:?}", w.log);
    check(&mut w, 0);
    make(&mut w, "new", 20);
    let w = w.crash(3);
    assert!(!w.log.iter().any(|l| l.starts_with("returned")), "once");
}

/// A volume shrinks to a part of a granule and grows again: arrays mark what was cut off before it is a host's again.
#[test]
fn what_a_shrunk_volume_held_is_marked_before_it_grows_over_it() {
    let mut w = world();
    make(&mut w, "v", 40);
    let resize = |mib: u64| Order::VolumeResize {
        volume: "tank/v".into(),
        bytes: mib * MIB,
        force: true,
        disconnect: true,
    };
    w.good(resize(9));
    let (kind, field, words) = w.refused(resize(10));
    assert_eq!((kind, field.as_str()), (ErrorKind::NotReady, "bytes"));
    assert!(words.contains("VolumeJustShrunk { seconds: 10 }"), "{words}");
    w.pass(11);
    let first = w.layout.volumes[0].map.runs().next().expect("a run").first * volume::GRANULE_BYTES;
    let marks = |w: &mut World| {
        let log = core::mem::take(&mut w.log);
        log.into_iter().filter(|line| line.starts_with("returned 0")).collect::<Vec<_>>()
    };
    marks(&mut w);
    w.good(resize(20));
    // One mirror: its data space is the pool's.
    let tail = format!("[({}, {})]", first + 9 * MIB, 3 * MIB);
    let marked = marks(&mut w);
    assert!(marked.len() == 1 && marked[0].ends_with(&tail), "{marked:?}, and not {tail}");
    // Nothing is behind the end of a whole granule.
    w.good(resize(21));
    assert_eq!(marks(&mut w), [""; 0]);
}
