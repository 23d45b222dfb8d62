//! Arrays leave a pool: nothing lies on them, their drives are free, and wherever it is cut off the pool is whole.

use super::*;
use array::format::CONFIG_AT;

fn grow(drives: [&str; 2]) -> Order {
    Order::PoolAdd { pool: "tank".into(), arrays: vec![mirror(drives[0], drives[1])], force: false }
}
fn leave(arrays: &[&str]) -> Order {
    Order::ArrayRemove { pool: "tank".into(), arrays: arrays.iter().map(|a| a.to_string()).collect() }
}
fn creating(w: &World) -> String {
    String::from_utf8(w.rest.files.get("creating").cloned().unwrap_or_default()).expect("text")
}
fn pools(w: &World) -> String {
    String::from_utf8(w.rest.files["pools"].clone()).expect("text")
}
fn labelled(drive: &FakeDrive) -> bool {
    drive.blocks.get(&8).is_some_and(|b| b.iter().any(|x| *x != 0))
}
/// A pool of two mirrors with a volume, and a third mirror on which nothing lies.
fn three(new: [&str; 2]) -> World {
    let mut rest = four();
    rest.drives.extend(drives(&new).drives);
    let mut w = World::start(rest, 1);
    w.good(tank());
    w.good(volume("vm1", 9 * MIB));
    w.good(grow(new));
    w
}
/// What the power leaves that goes after `n` effects of the life in which the third mirror leaves; and whether that was answered.
fn cut(rest: &Rest, n: u64) -> (Rest, bool, bool) {
    let mut w = World::power_on(rest.clone(), 2, n);
    w.run();
    w.send(leave(&["mirror-2"]));
    w.run();
    (w.rest, !w.answers.is_empty(), w.effects_left > 0)
}

#[test]
fn an_array_on_which_nothing_lies_leaves_and_its_drives_are_free() {
    for new in [["/f/x", "/f/y"], ["/dev/x", "/dev/y"]] {
        let mut w = three(new);
        let (bytes, third) = (w.status().pools[0].bytes, w.layout.arrays[2].id);
        let Reply::Created { notices, .. } = w.good(leave(&["mirror-2"])) else { panic!("it says how") };
        assert_eq!(notices, []);
        assert_eq!((w.layout.arrays.len(), w.layout.volumes.len()), (2, 1));
        assert!(w.status().pools[0].bytes < bytes);
        assert!(new.iter().all(|d| !labelled(&w.rest.drives[*d]) && !pools(&w).contains(d)));
        assert!(!creating(&w).contains("leaves:") && w.open.len() == 4);
        // What a shard says late of an array that left is nobody's news.
        w.note(0, third, Note::LegFailed { leg: 0, epoch: 1, error: DriveError::Gone });
        w.note(0, third, Note::CrashClean { epoch: 1 });
        w.run();
        assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
        w.good(volume("vm2", 5 * MIB));
        let mut w = w.crash(2);
        assert_eq!(
            (w.status().health, w.layout.arrays.len(), w.layout.volumes.len()),
            (State::Optimal, 2, 2)
        );
        // They are anybody's, of this pool too.
        w.good(create("other", vec![mirror(new[0], new[1])]));
        w.good(Order::PoolDestroy { pool: "other".into(), force: false, disconnect: false });
        w.good(grow(new));
        let mut w = w.crash(3);
        assert_eq!((w.status().health, w.layout.arrays.len()), (State::Optimal, 3));
        w.good(leave(&["mirror-2"]));
    }
}

#[test]
fn an_array_stays_while_something_lies_on_it_or_speaks_against_it() {
    let mut w = three(["/f/x", "/f/y"]);
    let no = |w: &mut World, arrays: &[&str]| {
        let r = w.order(leave(arrays)).expect_err("a refusal");
        assert_eq!(w.layout.arrays.len(), 3);
        assert!(!creating(w).contains("leaves:"));
        (r.kind(), r.said())
    };
    let (kind, words) = no(&mut w, &["mirror-7"]);
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(
        words.contains("ArrayUnknown") && words.contains("[\"mirror-0\", \"mirror-1\", \"mirror-2\"]"),
        "{words}"
    );
    let (_, words) = no(&mut w, &[]);
    assert!(words.contains("ArrayNotNamed"), "{words}");
    // What the pool was made with stays, whatever else is named.
    for arrays in [&["mirror-0"][..], &["mirror-1", "mirror-2"]] {
        let (_, words) = no(&mut w, arrays);
        assert!(words.contains("ArrayIsFirst"), "{words}");
    }
    // A volume that reaches it, and its space for a while after it is gone.
    w.good(volume("big", 150 * MIB));
    let (kind, words) = no(&mut w, &["mirror-2"]);
    assert_eq!(kind, ErrorKind::Conflict);
    assert!(words.contains("ArraysHoldData { volumes: [\"tank/big\"], arrays: [\"mirror-2\"] }"), "{words}");
    w.good(Order::VolumeRemove { volume: "tank/big".into(), force: false, disconnect: true });
    let (kind, words) = no(&mut w, &["mirror-2"]);
    assert!(kind == ErrorKind::NotReady && words.contains("ArraysHoldReturned"), "{words}");
    w.pass(20);
    // A scrub, and a drive that would not learn of it.
    w.good(Order::PoolScrub {
        pool: "tank".into(),
        action: crate::order::PoolScrub::Start { repair: false, prefer: vec![] },
    });
    let (_, words) = no(&mut w, &["mirror-2"]);
    assert!(words.contains("PoolBeingScrubbed { pool: \"tank\" }"), "{words}");
    w.good(Order::PoolScrub { pool: "tank".into(), action: crate::order::PoolScrub::Stop });
    w.good(Order::DriveFail { drive: "/f/b".into(), force: false });
    let (kind, words) = no(&mut w, &["mirror-2"]);
    assert!(
        kind == ErrorKind::NotReady
            && words.contains("StayingDriveOut { drive: \"/f/b\", array: \"mirror-0\""),
        "{words}"
    );
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    synced(&mut w, 1);
    w.restless = true;
    let (kind, words) = no(&mut w, &["mirror-2"]);
    assert!(kind == ErrorKind::NotReady && words.contains("ArraysStillBusy"), "{words}");
    assert!(w.log.iter().any(|l| l.starts_with("resume 0")), "its shards go on with it");
    w.restless = false;
    w.good(leave(&["mirror-2"]));
}

#[test]
fn what_was_added_together_leaves_together_and_what_was_added_last_leaves_first() {
    let new = ["/f/p", "/f/q", "/f/r", "/f/s", "/f/t", "/f/u"];
    let mut rest = four();
    rest.drives.extend(drives(&new).drives);
    let mut w = World::start(rest, 1);
    w.good(tank());
    let both = vec![mirror(new[0], new[1]), mirror(new[2], new[3])];
    w.good(Order::PoolAdd { pool: "tank".into(), arrays: both, force: false });
    w.good(grow([new[4], new[5]]));
    let everything = "all: [\"mirror-2\", \"mirror-3\", \"mirror-4\"]";
    for arrays in [&["mirror-2"][..], &["mirror-3", "mirror-4"], &["mirror-2", "mirror-4"]] {
        let r = w.order(leave(arrays)).expect_err("a refusal");
        assert!(r.why.name() == "ArraysLeaveTogether" && r.said().contains(everything), "{r:?}");
    }
    w.good(leave(&["mirror-4"]));
    let r = w.order(leave(&["mirror-3"])).expect_err("a refusal");
    assert!(r.said().contains("all: [\"mirror-2\", \"mirror-3\"]"), "{r:?}");
    w.good(leave(&["mirror-3", "mirror-2"]));
    let mut w = w.crash(2);
    assert_eq!((w.status().health, w.layout.arrays.len()), (State::Optimal, 2));
    assert!(new.iter().all(|d| !labelled(&w.rest.drives[*d])));
}

/// One whose drives are gone is in the way for ever otherwise: the pool is offline with it.
#[test]
fn an_array_whose_drives_are_ill_leaves_too_and_says_which_keep_their_label() {
    let mut w = three(["/f/x", "/f/y"]);
    w.good(Order::DriveShape { drive: "/f/y".into(), shape: Shape { gone: true, ..Shape::default() } });
    w.pass(6);
    assert_eq!(w.status().health, State::Degraded);
    let Reply::Created { notices, .. } = w.good(leave(&["mirror-2"])) else { panic!("it says how") };
    assert!(
        notices.len() == 1 && notices[0].said().contains("DriveKeepsPoolLabel { drive: \"/f/y\""),
        "{notices:?}"
    );
    assert_eq!((w.status().health, w.layout.arrays.len()), (State::Optimal, 2));
    assert!(labelled(&w.rest.drives["/f/y"]) && !labelled(&w.rest.drives["/f/x"]));
    assert!(!creating(&w).contains("leaves:"));
    w.rest.drives.get_mut("/f/y").expect("it is there").fails = None;
    let mut w = w.crash(2);
    let (_, _, words) = w.refused(grow(["/f/x", "/f/y"]));
    assert!(words.contains("DriveLabelled { drive: \"/f/y\", pool: \"tank\""), "{words}");
    let force = Order::PoolAdd { pool: "tank".into(), arrays: vec![mirror("/f/x", "/f/y")], force: true };
    w.good(force);
    assert_eq!(w.crash(3).status().health, State::Optimal);
}

#[test]
fn a_drive_that_stays_and_cannot_be_told_keeps_the_array_in_the_pool() {
    let mut w = three(["/f/x", "/f/y"]);
    w.rest.drives.get_mut("/f/d").expect("it is there").full = true;
    let (kind, _, words) = w.refused(leave(&["mirror-2"]));
    assert!(
        kind == ErrorKind::Internal && words.contains("StayingDriveNotTold { drive: \"/f/d\""),
        "{words}"
    );
    assert_eq!(w.layout.arrays.len(), 3);
    assert!(!creating(&w).contains("leaves:") && w.log.iter().any(|l| l.starts_with("resume")));
    w.rest.drives.get_mut("/f/d").expect("it is there").full = false;
    w.pass(400);
    w.good(volume("big", 150 * MIB));
    let mut w = w.crash(2);
    assert_eq!((w.layout.arrays.len(), w.layout.volumes.len()), (3, 2));
    assert!(w.status().health < State::Offline, "{:?}", w.status().reasons);
}

#[test]
fn a_removal_that_is_cut_off_did_not_happen_or_is_brought_to_its_end_at_the_next_start() {
    for new in [["/f/x", "/f/y"], ["/dev/x", "/dev/y"]] {
        let rest = three(new).rest;
        let (mut stayed, mut ended) = (0, 0);
        for n in World::start(rest.clone(), 2).effects_done.. {
            let (left, answered, over) = cut(&rest, n);
            let mut w = World::start(left, 3);
            let arrays = w.layout.arrays.len();
            assert!(arrays == 2 || !answered && arrays == 3, "cut after effect {n}: {arrays}");
            assert_eq!(w.status().health, State::Optimal, "cut after effect {n}: {:?}", w.status().reasons);
            assert!(!creating(&w).contains("tank"), "cut after effect {n}: {}", creating(&w));
            assert_eq!(w.layout.volumes.len(), 1, "cut after effect {n}");
            if arrays == 2 {
                ended += w.events().iter().filter(|e| e.contains("RemovalEnded")).count();
                assert!(new.iter().all(|d| !labelled(&w.rest.drives[*d])), "cut after effect {n}");
                assert!(new.iter().all(|d| !pools(&w).contains(d)), "cut after effect {n}: {}", pools(&w));
                w.good(grow(new));
            } else {
                stayed += 1;
                w.good(leave(&["mirror-2"]));
            }
            let mut w = w.crash(4);
            let shown = (w.status().health, w.layout.arrays.len());
            assert_eq!(shown, (State::Optimal, 5 - arrays), "cut after effect {n}");
            if over {
                break;
            }
        }
        assert!(stayed > 2 && ended > 5, "{new:?}: stayed {stayed}, ended {ended}");
    }
}

#[test]
fn another_head_takes_a_pool_of_which_an_array_was_leaving_with_it_or_without_it() {
    let rest = three(["/f/x", "/f/y"]).rest;
    let mut seen = [0; 4];
    for n in World::start(rest.clone(), 2).effects_done.. {
        let (mut left, _, over) = cut(&rest, n);
        left.files.clear();
        let mut w = World::start(left, 7);
        w.good(import(&["/f/a", "/f/b", "/f/c", "/f/d", "/f/x", "/f/y"], true));
        let arrays = w.layout.arrays.len();
        assert!((2..=3).contains(&arrays), "cut after effect {n}");
        seen[arrays] += 1;
        assert_eq!(w.status().health, State::Optimal, "cut after effect {n}: {:?}", w.status().reasons);
        if arrays == 2 {
            let arrays = vec![mirror("/f/x", "/f/y")];
            w.good(Order::PoolAdd { pool: "tank".into(), arrays, force: true });
        }
        if over {
            break;
        }
    }
    assert!(seen[2] > 5 && seen[3] > 2, "{seen:?}");
}

/// One drive alone knows the pool without the array, and is away while the others go on with it and store something there.
#[test]
fn a_drive_that_alone_knew_of_a_cut_off_removal_does_not_take_an_array_away_that_is_in_use() {
    let rest = three(["/f/x", "/f/y"]).rest;
    let told = |d: &FakeDrive| [CONFIG_AT[0] / 512, CONFIG_AT[1] / 512].map(|b| d.blocks.get(&b).cloned());
    let mut apart = 0;
    for n in World::start(rest.clone(), 2).effects_done.. {
        let (left, _, over) = cut(&rest, n);
        // What is written to several drives at a time may be on the last of them first.
        let ahead = cut(&rest, n + 4).0;
        for path in ["/f/a", "/f/d"] {
            let mut without = left.clone();
            let behind = without.drives.remove(path).expect("there");
            let away = ahead.drives[path].clone();
            let knew = told(&behind) != told(&away);
            let mut w = World::start(without, 3);
            if w.layout.arrays.len() != 3 {
                continue;
            }
            w.good(volume("big", 150 * MIB));
            apart += u32::from(knew);
            w.rest.drives.insert(path.into(), FakeDrive { held: false, ..away });
            for m in 0.. {
                let mut cut = World::power_on(w.rest.clone(), 4, m);
                cut.run();
                let ended = cut.effects_left > 0;
                let mut w = World::start(cut.rest, 5);
                let shown = (w.layout.volumes.len(), w.layout.arrays.len());
                let reasons = w.status().reasons;
                assert_eq!(shown, (2, 3), "{path}, cut after effects {n} and {m}: {reasons:?}");
                if ended || !knew {
                    break;
                }
            }
        }
        if over {
            break;
        }
    }
    assert!(apart > 0, "no drive ever knew it alone");
}

#[test]
fn a_drive_that_is_away_when_a_removal_is_brought_to_its_end_is_freed_at_a_later_start() {
    let rest = three(["/f/x", "/f/y"]).rest;
    let first = World::start(rest.clone(), 2).effects_done;
    let is_cut = |n: &u64| {
        let left = cut(&rest, *n).0;
        let w = World::start(left, 3);
        w.layout.arrays.len() == 2
    };
    let n = (first..).find(is_cut).expect("it is brought to its end once");
    let mut left = cut(&rest, n).0;
    let away = left.drives.remove("/f/x").expect("it is there");
    let mut w = World::start(left, 3);
    assert_eq!((w.layout.arrays.len(), w.status().health), (2, State::Optimal));
    assert!(w.events().iter().any(|e| e.contains("left: [\"/f/x\"]")), "{:?}", w.events());
    assert!(creating(&w).contains("\"leaves:/f/x\"") && !creating(&w).contains("/f/y"));
    w.rest.drives.insert("/f/x".into(), FakeDrive { held: false, ..away });
    let mut w = w.crash(4);
    assert!(!creating(&w).contains("tank") && !labelled(&w.rest.drives["/f/x"]));
    w.good(grow(["/f/x", "/f/y"]));
}
