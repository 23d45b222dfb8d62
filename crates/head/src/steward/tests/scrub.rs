//! Scrubs: begun, kept over crashes, told by volume and offset, begun by schedule.

use super::*;
use crate::order::PoolScrub;
use array::Scrub;
use finding::{Difference, PoolEvent, PoolNotice};

fn scrub(action: PoolScrub) -> Order {
    Order::PoolScrub { pool: "tank".into(), action }
}
fn start(repair: bool) -> Order {
    scrub(PoolScrub::Start { repair, prefer: vec![] })
}
/// Every shard says that it is over.
fn end_scrub(w: &mut World) {
    for ((shard, array), (order, _)) in core::mem::take(&mut w.scrubs) {
        w.note(shard, array, Note::Scrubbed { number: order.number });
    }
    w.pass(1);
}

#[test]
fn a_scrub_goes_to_every_shard_and_its_end_is_told_and_kept() {
    let mut w = usual();
    w.good(start(false));
    assert_eq!(w.scrubs.len(), 2 * usize::from(SHARDS));
    let number = w.scrubs.values().next().expect("they have it").0.number;
    let expected = Scrub { number, block_bytes: 512, ..Scrub::default() };
    assert!(w.scrubs.values().all(|(order, _)| *order == expected));
    let s = w.status().pools[0].scrub.clone();
    assert!(s.running && !s.repair && s.last_ended.is_none() && s.total_bytes > 0, "{s:?}");
    end_scrub(&mut w);
    let s = w.status();
    assert!(!s.pools[0].scrub.running && s.pools[0].scrub.last_ended.is_some());
    assert_eq!(s.health, State::Optimal);
    assert!(w.events().iter().any(|e| e == "pool tank: Pool(ScrubClean)"));
    let mut w = w.crash(2);
    assert!(w.status().pools[0].scrub.last_ended.is_some(), "it is kept with the pool");
}

#[test]
fn differences_are_told_by_volume_and_offset() {
    let mut w = usual();
    w.good(start(false));
    let array = w.layout.arrays[0].id;
    // The volume has the first granules of the pool: its second chunk lies on the other array.
    let (at, len) = (65536, 8192);
    w.note(1, array, Note::Mismatch { at, len, bad: 2, source: 0, known: false, repair: false });
    w.note(0, array, Note::Unreadable { at: 40 * MIB, len: 65536 });
    end_scrub(&mut w);
    let s = w.status();
    let scrub = &s.pools[0].scrub;
    assert_eq!((scrub.differed_bytes, scrub.repaired_bytes, scrub.unreadable_bytes), (8192, 0, 65536));
    assert_eq!(scrub.findings[0].volume.as_deref(), Some("tank/vm1"));
    assert_eq!((scrub.findings[0].at, scrub.findings[0].bytes), (131_072, 8192));
    assert_eq!(scrub.findings[1].volume, None);
    let told = PoolEvent::ScrubFound {
        volume: Some("tank/vm1".into()),
        array: 0,
        first_byte: 131_072,
        last_byte: 139_263,
        what: Difference::Unknown { drives: vec![Some("/f/b".into())], from: Some("/f/a".into()) },
    };
    let told = format!("pool tank: {:?}", crate::order::Event::from(told));
    assert!(w.events().contains(&told), "{:#?}", w.events());
    assert_eq!(s.health, State::Degraded);
    let reason = s.reasons[0].said();
    assert!(reason.contains("ScrubDiffered { pool: \"tank\", bytes: 8192, running: false }"), "{reason}");
    // A scrub that repairs ends that.
    let prefer = &["/f/b"];
    w.good(scrub_with(true, prefer));
    assert!(w.scrubs.iter().any(|((_, a), (o, _))| *a == array && o.repair && o.prefer == Some(1)));
    let others = w.scrubs.iter().filter(|((_, a), _)| *a != array);
    assert!(others.into_iter().all(|(_, (o, _))| !o.repair), "nothing was said of the other mirror");
    w.note(1, array, Note::Mismatch { at, len, bad: 1, source: 1, known: false, repair: true });
    end_scrub(&mut w);
    assert_eq!(w.status().health, State::Optimal);
    assert_eq!(w.status().pools[0].scrub.repaired_bytes, 8192);
}
fn scrub_with(repair: bool, prefer: &[&str]) -> Order {
    scrub(PoolScrub::Start { repair, prefer: prefer.iter().map(|d| d.to_string()).collect() })
}

#[test]
fn what_was_found_goes_when_a_scrub_finds_the_legs_the_same_or_the_operator_says_so() {
    let mut w = usual();
    let differs = |w: &mut World| {
        w.good(start(false));
        let array = w.layout.arrays[0].id;
        w.note(1, array, Note::Mismatch { at: 0, len: 4096, bad: 2, source: 0, known: false, repair: false });
        end_scrub(w);
        assert_eq!(w.status().health, State::Degraded);
    };
    let nothing_found = |w: &mut World| {
        let s = w.status();
        assert_eq!(s.health, State::Optimal, "{:?}", s.reasons);
        let scrub = &s.pools[0].scrub;
        assert!(scrub.findings.is_empty() && scrub.differed_bytes == 0 && scrub.last_ended.is_some());
    };
    differs(&mut w);
    w.good(start(false));
    end_scrub(&mut w);
    nothing_found(&mut w);
    assert_eq!(w.refused(scrub(PoolScrub::Clear)).0, ErrorKind::Conflict);
    differs(&mut w);
    w.good(scrub(PoolScrub::Clear));
    nothing_found(&mut w);
    nothing_found(&mut w.crash(2));
}

/// What a shard says of the one may come when the other one has begun.
#[test]
fn the_end_of_a_scrub_that_was_stopped_is_not_that_of_the_next_one() {
    let mut w = usual();
    w.good(start(false));
    let former = w.scrubs.clone();
    w.good(scrub(PoolScrub::Stop));
    w.good(start(false));
    for ((shard, array), (order, _)) in former {
        w.note(shard, array, Note::Scrubbed { number: order.number });
    }
    w.pass(1);
    assert!(w.status().pools[0].scrub.running);
    end_scrub(&mut w);
    assert!(!w.status().pools[0].scrub.running);
}

#[test]
fn a_scrub_goes_on_after_a_crash_where_it_was() {
    let mut w = usual();
    w.good(start(true));
    let array = w.layout.arrays[0].id;
    w.note(0, array, Note::Mismatch { at: 0, len: 4096, bad: 2, source: 0, known: true, repair: true });
    // One array is half through, the other one has one shard that is done.
    let second = w.layout.arrays[1].id;
    for ((shard, a), (_, progress)) in &mut w.scrubs {
        progress.scrub_from = if *a == array { (9 + u64::from(*shard)) * MIB } else { 3 * MIB };
    }
    let (Scrub { number, .. }, _) = w.scrubs.remove(&(1, second)).expect("it has one");
    w.note(1, second, Note::Scrubbed { number });
    w.pass(90);
    let mut w = w.crash(2);
    assert_eq!(w.scrubs.len(), 0);
    w.pass(15);
    let from = |w: &World, shard, i: usize| w.scrubs[&(shard, w.layout.arrays[i].id)].0;
    assert_eq!((from(&w, 0, 0).from, from(&w, 1, 0).from, from(&w, 0, 1).from), (9 * MIB, 9 * MIB, 3 * MIB));
    assert!(from(&w, 0, 0).repair);
    end_scrub(&mut w);
    let s = w.status().pools[0].scrub.clone();
    assert!(!s.running);
    assert_eq!((s.differed_bytes, s.repaired_bytes), (4096, 4096), "what was found before counts");
}

#[test]
fn a_mirror_that_differs_everywhere_fills_no_log() {
    let mut w = usual();
    w.good(start(false));
    let array = w.layout.arrays[0].id;
    let piece = 40 << 10;
    let mut differ = |from: u64, pieces: u64| {
        for i in 0..pieces {
            let at = from + i * piece;
            w.note(
                1,
                array,
                Note::Mismatch { at, len: piece, bad: 2, source: 0, known: false, repair: false },
            );
        }
    };
    // Nobody's space, in one piece; and then many places apart.
    differ(40 * MIB, 100);
    for i in 0..60 {
        differ(20 * MIB + i * 128 * 1024, 1);
    }
    end_scrub(&mut w);
    let told = w.events().iter().filter(|e| e.contains("ScrubFound")).count();
    assert_eq!(told, 5, "{:#?}", w.events());
    let end = w.events().into_iter().find(|e| e.contains("ScrubDiffered")).expect("its end");
    let bytes = 160 * piece;
    assert!(end.contains(&format!("differed_bytes: {bytes},")) && end.contains("places: Some("), "{end}");
    let s = w.status().pools[0].scrub.clone();
    assert_eq!(s.differed_bytes, bytes);
    assert_eq!(s.findings.len(), 50);
    assert!(
        s.places > 50 && end.contains(&format!("places: Some({})", s.places)),
        "{} places; {end}",
        s.places
    );
}

#[test]
fn scrubs_begin_by_schedule() {
    let mut w = usual();
    w.good(scrub(PoolScrub::Schedule { days: 1, repair: true }));
    w.pass(23 * 3600);
    assert!(w.scrubs.is_empty());
    w.pass(2 * 3600);
    assert_eq!(w.scrubs.len(), 2 * usize::from(SHARDS));
    assert!(w.scrubs.values().all(|(order, _)| order.repair));
    end_scrub(&mut w);
    w.pass(20 * 3600);
    assert!(w.scrubs.is_empty(), "a day after the last one");
    let mut w = w.crash(2);
    assert_eq!((w.status().pools[0].scrub.every_days, w.status().pools[0].scrub.schedule_repairs), (1, true));
    w.good(scrub(PoolScrub::Schedule { days: 0, repair: false }));
    w.pass(30 * 3600);
    assert!(w.scrubs.is_empty());
}

#[test]
fn what_cannot_be_scrubbed_is_refused_with_the_reason() {
    let mut w = usual();
    let kind = |r: (ErrorKind, String, String)| r.0;
    assert_eq!(kind(w.refused(scrub(PoolScrub::Stop))), ErrorKind::Conflict);
    w.good(start(false));
    let twice = w.refused(start(false));
    assert_eq!(twice.2, "Pool(PoolBeingScrubbed { pool: \"tank\" })");
    w.good(scrub(PoolScrub::Stop));
    assert!(w.scrubs.is_empty() && !w.status().pools[0].scrub.running);
    assert_eq!(kind(w.refused(scrub_with(true, &["/f/zz"]))), ErrorKind::NotFound);
    assert_eq!(kind(w.refused(scrub_with(false, &["/f/a"]))), ErrorKind::Invalid);
    let mut w = World::start(four(), 1);
    w.good(create(
        "tank",
        vec![ArraySpec {
            layout: crate::order::ArrayLayout::Single,
            drives: vec!["/f/a".into()],
            weight: None,
        }],
    ));
    assert!(w.refused(start(false)).2.contains("NothingToScrub"));
}

#[test]
fn a_pool_that_is_released_in_the_middle_of_a_scrub_goes_on_where_it_is_imported() {
    let mut w = usual();
    w.good(start(false));
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    w.scrubs.clear();
    let drives = ["/f/a", "/f/b", "/f/c", "/f/d"].map(String::from).to_vec();
    w.good(Order::PoolImport { pool: Some("tank".into()), name: None, drives, force: false });
    w.pass(15);
    assert_eq!(w.scrubs.len(), 2 * usize::from(SHARDS));
}

fn differ(w: &mut World, array: usize, at: u64, repair: bool) {
    let id = w.layout.arrays[array].id;
    w.note(1, id, Note::Mismatch { at, len: 4096, bad: 2, source: 0, known: false, repair });
    w.run();
}

#[test]
fn several_mirrors_are_repaired_from_a_drive_each_and_over_a_crash() {
    let mut w = usual();
    let twice = w.order(scrub_with(true, &["/f/a", "/f/b"])).expect_err("one of them counts");
    let (drive, other) = ("/f/b".into(), "/f/a".into());
    assert_eq!(
        *twice.why,
        finding::PoolRefusal::PreferTwice { drive, other, array: "mirror-0".into() }.into()
    );
    w.good(scrub_with(true, &["/f/b", "/f/c"]));
    let prefers = |w: &World, array: usize| -> Vec<(bool, Option<usize>)> {
        let id = w.layout.arrays[array].id;
        let mine = w.scrubs.iter().filter(|((_, a), _)| *a == id);
        mine.map(|(_, (order, _))| (order.repair, order.prefer)).collect()
    };
    let told = |w: &World| (prefers(w, 0), prefers(w, 1));
    let expected = (vec![(true, Some(1)); 2], vec![(true, Some(0)); 2]);
    assert_eq!(told(&w), expected);
    let mut w = w.crash(2);
    w.pass(15);
    assert_eq!(told(&w), expected);
    end_scrub(&mut w);
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn a_repair_says_what_it_leaves_alone() {
    let notices = |w: &mut World, order: Order| match w.good(order) {
        Reply::Created { notices, .. } => notices,
        other => panic!("{other:?}"),
    };
    let mut w = usual();
    assert_eq!(notices(&mut w, start(false)), []);
    differ(&mut w, 0, 0, false);
    end_scrub(&mut w);
    let unknown = |arrays: &[&str]| {
        let arrays = arrays.iter().map(|a| a.to_string()).collect();
        crate::order::Notice::from(PoolNotice::RepairUnknown { arrays })
    };
    assert_eq!(notices(&mut w, start(true)), [unknown(&["mirror-0", "mirror-1"])]);
    end_scrub(&mut w);
    w.good(start(false));
    differ(&mut w, 0, 0, false);
    end_scrub(&mut w);
    assert_eq!(
        notices(&mut w, scrub_with(true, &["/f/d"])),
        [
            unknown(&["mirror-0"]),
            PoolNotice::PreferNeedless { drive: "/f/d".into(), array: "mirror-1".into() }.into()
        ]
    );
    end_scrub(&mut w);
    w.good(start(false));
    differ(&mut w, 0, 0, false);
    end_scrub(&mut w);
    assert_eq!(notices(&mut w, scrub_with(true, &["/f/a"])), []);
}

#[test]
fn what_was_found_is_kept_until_a_later_scrub_has_come_to_its_end() {
    let mut w = usual();
    w.good(start(false));
    differ(&mut w, 0, 0, false);
    end_scrub(&mut w);
    let found = |w: &mut World| {
        let s = w.status();
        let scrub = &s.pools[0].scrub;
        (s.health, scrub.findings.iter().map(|f| f.at).collect::<Vec<_>>())
    };
    assert_eq!(found(&mut w), (State::Degraded, vec![0]));
    // While the next one is under way, both are told, each once.
    w.good(start(false));
    assert_eq!(found(&mut w), (State::Degraded, vec![0]));
    differ(&mut w, 0, 0, false);
    differ(&mut w, 0, 8192, false);
    assert_eq!(found(&mut w), (State::Degraded, vec![0, 8192]));
    // One that is stopped has not looked everywhere: what it found is added.
    w.good(scrub(PoolScrub::Stop));
    assert_eq!(found(&mut w), (State::Degraded, vec![0, 8192]));
    let mut w = w.crash(2);
    assert_eq!(found(&mut w), (State::Degraded, vec![]), "where it was stands in the events");
    w.good(start(false));
    end_scrub(&mut w);
    assert_eq!(found(&mut w), (State::Optimal, vec![]));
}

#[test]
fn a_first_scrub_that_is_stopped_has_found_something_and_has_not_ended() {
    let mut w = usual();
    w.good(scrub(PoolScrub::Schedule { days: 1, repair: false }));
    w.good(start(false));
    differ(&mut w, 0, 0, false);
    w.good(scrub(PoolScrub::Stop));
    let s = w.status();
    assert_eq!((s.health, s.pools[0].scrub.differed_bytes), (State::Degraded, 4096));
    assert_eq!(s.pools[0].scrub.last_ended, None);
    assert!(!s.pools[0].scrub.running, "the next one is not due since none has ended");
    w.pass(3600);
    assert!(w.scrubs.is_empty());
    w.good(scrub(PoolScrub::Clear));
    assert_eq!(w.status().health, State::Optimal);
    assert_eq!(w.crash(2).status().health, State::Optimal);
}

#[test]
fn one_look_tells_the_rate_of_a_scrub_and_the_time_left() {
    let mut w = usual();
    w.good(start(false));
    for (at, done) in [(5, 1), (5, 2), (5, 3)] {
        for (_, progress) in w.scrubs.values_mut() {
            progress.scrub_done = done * 5 * MIB;
        }
        w.pass(at);
    }
    // 2 arrays and 2 shards, 1 MiB each in a second.
    let s = w.status().pools[0].scrub.clone();
    assert!((3 * MIB..=4 * MIB).contains(&s.rate), "{s:?}");
    assert!(s.seconds_left.is_some_and(|left| left > 0 && left < 60), "{s:?}");
}
