//! A creation that is cut off: the pool is whole, or its drives are free.

use super::*;
use crate::order::{Cause, Importable};
use array::format::CONFIG_AT;
use finding::{LegRefusal, OpenFault, PoolCause, PoolRefusal, UnopenedDrive, Why};

const ALL: [&str; 4] = ["/f/a", "/f/b", "/f/c", "/f/d"];

fn is_unfinished(row: &Importable) -> bool {
    let cause = row.cause.as_ref();
    cause.is_some_and(
        |c| matches!(c, Cause::Pool(PoolCause::PoolNotImportable { why }) if why.name() == "PoolUnfinished"),
    )
}

fn importable(w: &mut World) -> Vec<Importable> {
    let drives = ALL.iter().map(|d| d.to_string()).collect();
    match w.good(Order::PoolImportable { drives }) {
        Reply::Importable(rows) => rows,
        other => panic!("{other:?}"),
    }
}
fn creating(w: &World) -> String {
    String::from_utf8(w.rest.files.get("creating").cloned().unwrap_or_default()).expect("text")
}
/// What the power leaves that goes after `n` effects, while a pool is being made; and whether that was answered.
fn cut(n: u64) -> (Rest, bool, bool) {
    let mut w = World::power_on(four(), 1, n);
    w.run();
    w.send(tank());
    w.run();
    (w.rest, !w.answers.is_empty(), w.effects_left > 0)
}

#[test]
fn a_creation_that_is_cut_off_is_undone_or_brought_to_its_end_at_the_next_start() {
    let (mut undone, mut ended) = (0, 0);
    for n in World::start(four(), 1).effects_done.. {
        let (rest, answered, over) = cut(n);
        let mut w = World::start(rest, 2);
        let pools = w.status().pools;
        assert!(!answered || pools.len() == 1, "cut after effect {n}");
        let told = w
            .events()
            .into_iter()
            .filter(|e| {
                e.starts_with("pool tank: ") && (e.contains("CreationEnded") || e.contains("what: Creation"))
            })
            .count();
        if pools.is_empty() {
            undone += told;
            assert!(importable(&mut w).is_empty(), "cut after effect {n}");
            assert!(!w.rest.files.keys().any(|f| f.starts_with("witness-") || f.starts_with("config-")));
            w.good(tank());
        } else {
            ended += told;
        }
        assert_eq!(w.status().health, State::Optimal, "cut after effect {n}");
        assert!(!creating(&w).contains("tank"), "cut after effect {n}: {}", creating(&w));
        let mut w = w.crash(3);
        assert_eq!((w.status().health, w.status().pools.len()), (State::Optimal, 1), "cut after effect {n}");
        if over {
            break;
        }
    }
    assert!(undone > 20 && ended > 0, "undone {undone}, brought to its end {ended}");
}

#[test]
fn another_head_says_that_a_pool_was_never_finished_and_takes_it_by_no_means() {
    let mut never = 0;
    for n in World::start(four(), 1).effects_done.. {
        let (mut rest, _, over) = cut(n);
        rest.files.clear();
        let mut w = World::start(rest, 7);
        for row in importable(&mut w) {
            assert_eq!(row.state, State::Offline, "cut after effect {n}");
            let Some(Cause::Pool(PoolCause::PoolNotImportable { why })) = row.cause else {
                panic!("cut after effect {n}: {:?}", row.cause)
            };
            if why.name() == "PoolUnfinished" {
                never += 1;
                for force in [false, true] {
                    let r = w.order(import(&ALL, force)).expect_err("nothing is on it");
                    // Drives that were named and have no label yet are told, too.
                    let why = match &*r.why {
                        Why::Pool(PoolRefusal::PoolNotTaken { why, .. }) => why.name(),
                        other => other.name(),
                    };
                    assert_eq!((r.kind(), why), (ErrorKind::NotReady, "PoolUnfinished"));
                }
                let (_, _, words) = w.refused(tank());
                assert!(words.contains("DriveLabelled") && words.contains("unfinished: true"), "{words}");
            } else {
                let Why::Pool(PoolRefusal::PoolDoubtful { doubts, .. }) = &*why else {
                    panic!("cut after effect {n}: {why:?}")
                };
                assert!(doubts.iter().any(|d| d.name() == "NotReleased"), "cut after effect {n}: {doubts:?}");
            }
        }
        if over {
            break;
        }
    }
    assert!(never > 5, "{never}");
}

#[test]
fn a_drive_that_is_away_when_a_creation_is_undone_is_freed_at_a_later_start() {
    let labelled = |n: &u64| {
        let rest = cut(*n).0;
        rest.drives["/f/a"].blocks.get(&8).is_some_and(|b| b.iter().any(|x| *x != 0))
    };
    let n = (World::start(four(), 1).effects_done..).find(labelled).expect("it is labelled once");
    let mut rest = cut(n).0;
    let away = rest.drives.remove("/f/a").expect("it is there");
    let mut w = World::start(rest, 2);
    let told = w.events().into_iter().find(|e| e.contains("WorkUndone { what: Creation")).expect("told");
    assert!(told.contains("left: [\"/f/a\"]"), "{told}");
    assert!(creating(&w).contains("\"/f/a\""));
    w.rest.drives.insert("/f/a".into(), FakeDrive { held: false, ..away });
    assert!(importable(&mut w).iter().all(is_unfinished));
    let mut w = w.crash(3);
    assert!(importable(&mut w).is_empty() && !creating(&w).contains("tank"));
    w.good(tank());
}

/// The files that it had made stayed, with nothing in them but zeroes in place of labels.
#[test]
fn drives_that_were_empty_are_empty_again_after_a_creation_that_came_to_nothing() {
    let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
    w.rest.drives.values_mut().for_each(|d| d.frees = true);
    w.rest.drives.get_mut("/f/b").expect("there").full = true;
    let (_, _, words) = w.refused(create("tank", vec![mirror("/f/a", "/f/b")]));
    assert!(words.contains("DrivesNotLabelled") && words.contains("/f/b"), "{words}");
    assert!(w.open.is_empty() && w.rest.drives.values().all(|d| d.blocks.is_empty()));
    assert!(!creating(&w).contains("tank"));
}

fn undone(w: &mut World) -> Vec<String> {
    w.status().notices.iter().map(|n| n.said()).filter(|n| n.contains("WorkUndone")).collect()
}

/// They stayed, and whoever made the pool again was told that they are there with another size.
#[test]
fn files_that_a_creation_made_which_was_cut_off_are_removed_and_it_is_told_until_the_pool_is_made() {
    let (mut removed, mut named) = (0, 0);
    for n in World::start(four(), 1).effects_done.. {
        let mut w = World::power_on(four(), 1, n);
        w.rest.drives.values_mut().for_each(|d| (d.made, d.frees) = (true, true));
        w.run();
        w.send(tank());
        w.run();
        let (answered, over, listed) = (!w.answers.is_empty(), w.effects_left > 0, creating(&w));
        let mut rest = w.rest;
        // What was written is no hole any more.
        rest.drives.values_mut().for_each(|d| d.zero = d.blocks.is_empty());
        let mut w = World::start(rest, 2);
        if w.status().pools.is_empty() {
            assert!(!answered, "cut after effect {n}");
            named += u32::from(listed.contains("\"made:/f/a\""));
            let told = undone(&mut w);
            assert!(told.len() <= 1 && told.iter().all(|t| t.contains("pool: \"tank\", what: Creation")));
            // One that is not listed yet is empty, and free. What is written before the label is not known to be ours.
            for (path, drive) in &w.rest.drives {
                assert!(
                    drive.blocks.get(&8).is_none_or(|b| b.iter().all(|x| *x == 0)),
                    "cut after effect {n}"
                );
                let is_told = told.iter().any(|t| {
                    t.split("kept: [").nth(1).is_some_and(|kept| {
                        kept.split(']').next().is_some_and(|kept| kept.contains(&format!("\"{path}\"")))
                    })
                });
                assert!(drive.blocks.is_empty() || is_told, "cut after effect {n}: {path}, {told:?}");
            }
            if listed.contains("\"made:/f/a\"") {
                removed += u32::from(w.rest.drives.is_empty());
                assert!(w.rest.drives.values().all(|d| !d.blocks.is_empty()), "cut after effect {n}");
            }
            w.rest.drives = four().drives;
            w.good(tank());
            assert!(undone(&mut w).is_empty());
        } else {
            assert_eq!(w.rest.drives.len(), 4, "cut after effect {n}");
        }
        assert!(!creating(&w).contains("made:"), "cut after effect {n}");
        if over {
            break;
        }
    }
    assert!(removed > 10 && named > removed, "{removed} of {named}");
}

/// A creation that was cut off as its files were opened left empty files that no list named.
#[test]
fn files_are_listed_before_they_are_made() {
    let make = |name: &str, a: &str, b: &str| {
        create(
            name,
            vec![mirror(&format!("file:{a}?size=64M"), &format!("shape:latency-us=1@file:{b}?size=64M"))],
        )
    };
    let (mut made, mut undone_before_labels) = (0, 0);
    for n in World::start(four(), 1).effects_done.. {
        let mut w = World::power_on(four(), 1, n);
        w.run();
        w.send(make("tank", "/f/x", "/f/y"));
        w.run();
        let (over, bare) =
            (w.effects_left > 0, w.rest.drives.get("/f/x").is_some_and(|d| d.blocks.is_empty()));
        let mut rest = w.rest;
        rest.drives.values_mut().for_each(|d| d.zero = d.blocks.is_empty());
        let mut w = World::start(rest, 2);
        if w.status().pools.is_empty() {
            undone_before_labels += u32::from(bare);
            for (path, drive) in &w.rest.drives {
                let left = path.starts_with("/f/x") || path.starts_with("/f/y");
                assert!(!left || !drive.blocks.is_empty(), "cut after effect {n}: {path} is left empty");
            }
        } else {
            made += 1;
        }
        assert!(!creating(&w).contains("made:"), "cut after effect {n}");
        if over {
            break;
        }
    }
    assert!(made > 0 && undone_before_labels > 2, "{made}, {undone_before_labels}");
    // What is refused is on no list, and its files are gone; of a file that was there before nothing is said.
    let mut w = World::start(four(), 1);
    for (a, b) in [("/f/x", "/f/x"), ("/f/x", "/f/a")] {
        let (_, _, words) = w.refused(make("a bad name", a, b));
        assert!(!words.is_empty() && !creating(&w).contains("made:") && w.rest.drives.len() == 4, "{words}");
        let (_, _, words) = w.refused(create("tank", vec![mirror(&format!("file:{a}?size=64M"), "/f/none")]));
        assert!(words.contains("/f/none") && !creating(&w).contains("made:"), "{words}");
        assert_eq!(w.rest.drives.len(), 4);
    }
    w.good(make("tank", "/f/x", "/f/y"));
    let more = [mirror("file:/f/v?size=64M", "/f/none"), mirror("file:/f/v?size=64M", "file:/f/w?size=64M")];
    let [bad, good] = more.map(|m| Order::PoolAdd { pool: "tank".into(), arrays: vec![m], force: false });
    let (_, _, words) = w.refused(bad);
    assert!(words.contains("/f/none") && !creating(&w).contains("/f/v"), "{words}");
    w.good(good);
    assert!(!creating(&w).contains("/f/"));
}

fn grow(drives: [&str; 2]) -> Order {
    Order::PoolAdd { pool: "tank".into(), arrays: vec![mirror(drives[0], drives[1])], force: false }
}
/// What the power leaves that goes after `n` effects of the life in which a pool grows; and whether that was answered.
fn cut_growth(rest: &Rest, new: [&str; 2], n: u64) -> (Rest, bool, bool) {
    let mut w = World::power_on(rest.clone(), 2, n);
    w.run();
    w.send(grow(new));
    w.run();
    (w.rest, !w.answers.is_empty(), w.effects_left > 0)
}
/// A pool with data, and two drives that it has not got yet.
fn to_grow(new: [&str; 2]) -> Rest {
    let mut rest = four();
    rest.drives.extend(drives(&new).drives);
    let mut w = World::start(rest, 1);
    w.good(tank());
    w.good(volume("vm1", 9 * MIB));
    w.rest
}

/// New drives kept a label of the pool, which did not know them: they were refused when it was to grow again.
#[test]
fn an_addition_that_is_cut_off_is_undone_or_brought_to_its_end_at_the_next_start() {
    for new in [["/f/x", "/f/y"], ["/dev/x", "/dev/y"]] {
        let rest = to_grow(new);
        let (mut undone_times, mut ended) = (0, 0);
        for n in World::start(rest.clone(), 2).effects_done.. {
            let (left, answered, over) = cut_growth(&rest, new, n);
            let mut w = World::start(left, 3);
            let arrays = w.layout.arrays.len();
            assert!(arrays == 3 || !answered && arrays == 2, "cut after effect {n}: {arrays}");
            assert_eq!(w.status().health, State::Optimal, "cut after effect {n}: {:?}", w.status().reasons);
            assert!(!creating(&w).contains("tank"), "cut after effect {n}: {}", creating(&w));
            if arrays == 2 {
                undone_times += undone(&mut w).len();
                w.good(grow(new));
                assert!(undone(&mut w).is_empty());
            } else {
                ended += w.events().iter().filter(|e| e.contains("AdditionEnded")).count();
            }
            let mut w = w.crash(4);
            assert_eq!((w.status().health, w.layout.arrays.len()), (State::Optimal, 3), "cut after {n}");
            assert_eq!(w.layout.volumes.len(), 1);
            if over {
                break;
            }
        }
        assert!(undone_times > 5 && ended > 0, "{new:?}: undone {undone_times}, ended {ended}");
    }
}

#[test]
fn another_head_takes_a_pool_whose_growth_was_cut_off_as_it_was_or_as_it_is() {
    let new = ["/f/x", "/f/y"];
    let rest = to_grow(new);
    for n in World::start(rest.clone(), 2).effects_done.. {
        let (mut left, _, over) = cut_growth(&rest, new, n);
        left.files.clear();
        let mut w = World::start(left, 7);
        w.good(import(&["/f/a", "/f/b", "/f/c", "/f/d", "/f/x", "/f/y"], true));
        let arrays = w.layout.arrays.len();
        assert!((2..=3).contains(&arrays), "cut after effect {n}");
        assert_eq!(w.status().health, State::Optimal, "cut after effect {n}: {:?}", w.status().reasons);
        if arrays == 2 {
            let force =
                Order::PoolAdd { pool: "tank".into(), arrays: vec![mirror("/f/x", "/f/y")], force: true };
            w.good(force);
        }
        if over {
            break;
        }
    }
}

/// One drive knew the pool as it would have grown, and was away when the others undid that and went on: their next
/// configuration had the generation of its own.
#[test]
fn a_drive_that_alone_knew_of_a_cut_off_addition_does_not_undo_what_came_after_it() {
    let new = ["/f/x", "/f/y"];
    let rest = to_grow(new);
    let mut apart = 0;
    for n in World::start(rest.clone(), 2).effects_done.. {
        let (left, _, over) = cut_growth(&rest, new, n);
        // What is written to several drives at a time may be on the last of them first.
        let ahead = cut_growth(&rest, new, n + 4).0;
        for (path, changes) in [("/f/a", true), ("/f/a", false), ("/f/d", true), ("/f/d", false)] {
            let mut without = left.clone();
            without.drives.remove(path);
            let away = ahead.drives[path].clone();
            let mut w = World::start(without, 3);
            let arrays = w.layout.arrays.len();
            if arrays == 0 {
                continue;
            }
            if changes {
                w.good(volume("vm2", MIB));
            }
            let volumes = w.layout.volumes.len();
            apart += u32::from(changes && arrays == 2);
            w.rest.drives.insert(path.into(), FakeDrive { held: false, ..away });
            let mut w = w.crash(4);
            let shown = (w.layout.volumes.len(), w.layout.arrays.len());
            let reasons = w.status().reasons;
            assert_eq!(shown, (volumes, arrays), "{path} {changes}, cut after effect {n}: {reasons:?}");
        }
        if over {
            break;
        }
    }
    assert!(apart > 20, "{apart}");
}

/// It came back, was a leg again by the record, and the power went before it was told what the pool is today: two drives took part
/// then, and said different things with one generation. The pool stayed away, or had a volume that it had not had before.
#[test]
fn a_drive_that_alone_knew_of_a_change_does_not_undo_what_came_after_it_where_its_return_is_cut_off() {
    let new = ["/f/x", "/f/y"];
    let rest = to_grow(new);
    let cut_order = |grows: bool, n: u64| {
        let mut w = World::power_on(rest.clone(), 2, n);
        w.run();
        w.send(if grows { grow(new) } else { volume("vm2", MIB) });
        w.run();
        (w.rest, w.effects_left > 0)
    };
    let told = |d: &FakeDrive| [CONFIG_AT[0] / 512, CONFIG_AT[1] / 512].map(|b| d.blocks.get(&b).cloned());
    for (grows, path) in [(true, "/f/a"), (true, "/f/d"), (false, "/f/a"), (false, "/f/d")] {
        let mut apart = 0;
        for n in World::start(rest.clone(), 2).effects_done.. {
            let (left, over) = cut_order(grows, n);
            // What is written to several drives at a time may be on the last of them first.
            let ahead = cut_order(grows, n + 4).0;
            let mut without = left.clone();
            let behind = without.drives.remove(path).expect("there");
            let away = &ahead.drives[path];
            let mut w = World::start(without, 3);
            let shown = |w: &World| (w.layout.volumes.len(), w.layout.arrays.len());
            let shows = shown(&w);
            if over {
                break;
            }
            if told(&behind) == told(away) || shows != (1, 2) {
                continue;
            }
            apart += 1;
            w.rest.drives.insert(path.into(), FakeDrive { held: false, ..away.clone() });
            for m in 0.. {
                let mut cut = World::power_on(w.rest.clone(), 4, m);
                cut.run();
                let ended = cut.effects_left > 0;
                let mut w = World::start(cut.rest, 5);
                let reasons = w.status().reasons;
                assert_eq!(shown(&w), shows, "{grows} {path}, cut after effects {n} and {m}: {reasons:?}");
                if ended {
                    break;
                }
            }
        }
        assert!(apart > 0, "{grows} {path}");
    }
}

#[test]
fn only_the_journal_opens_a_file_as_one_that_was_made() {
    let rest = to_grow(["/f/x", "/f/y"]);
    let mut w = World::start(rest, 2);
    let orders = [
        grow(["made:/f/x", "/f/y"]),
        grow(["/f/x", "shape:latency-us=1@made:/f/y"]),
        Order::DriveReplace { old: "/f/a".into(), new: "made:/f/x".into(), force: true },
        create("two", vec![mirror("made:/f/x", "/f/y")]),
    ];
    for order in orders {
        let shown = format!("{order:?}");
        let refusal = w.order(order).expect_err("a name of the journal");
        let Why::Leg(LegRefusal::DrivesNotOpened { drives }) = &*refusal.why else { panic!("{refusal:?}") };
        let made = |d: &UnopenedDrive| matches!(&d.fault, OpenFault::PrefixInternal { prefix, .. } if prefix == "made:");
        assert!(drives.len() == 1 && drives.iter().all(made), "{shown}: {drives:?}");
    }
}

#[test]
fn a_drive_that_is_away_when_an_addition_is_undone_is_freed_at_a_later_start() {
    let new = ["/f/x", "/f/y"];
    let rest = to_grow(new);
    let labelled = |n: &u64| {
        let left = cut_growth(&rest, new, *n).0;
        left.drives["/f/x"].blocks.get(&8).is_some_and(|b| b.iter().any(|x| *x != 0))
    };
    let n = (World::start(rest.clone(), 2).effects_done..).find(labelled).expect("it is labelled once");
    let mut left = cut_growth(&rest, new, n).0;
    let away = left.drives.remove("/f/x").expect("it is there");
    let mut w = World::start(left, 3);
    assert_eq!((w.layout.arrays.len(), w.status().health), (2, State::Optimal));
    let told = undone(&mut w);
    assert!(told.len() == 1 && told[0].contains("left: [\"/f/x\"]"), "{told:?}");
    assert!(creating(&w).contains("\"/f/x\""));
    w.rest.drives.insert("/f/x".into(), FakeDrive { held: false, ..away });
    let (_, _, words) = w.refused(grow(new));
    assert!(words.contains("DriveLabelled { drive: \"/f/x\", pool: \"tank\""), "{words}");
    assert!(creating(&w).contains("\"/f/x\""), "it is still to be freed");
    let mut w = w.crash(4);
    assert!(!creating(&w).contains("tank"));
    w.good(grow(new));
    assert_eq!(w.layout.arrays.len(), 3);
}
