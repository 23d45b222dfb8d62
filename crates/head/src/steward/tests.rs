//! Tests of the Steward at its door, in a little world: drives in memory, a state directory in memory,
//! shards that obey at once. A crash keeps what was written and forgets the rest.

use super::{Steward, StewardConfig};
use crate::layout::{ArrayId, Layout};
use crate::mail::{Mail, ManagerMail, ShardMail, StewardMail};
use crate::order::{Answered, ArraySpec, DriveRole, ErrorKind, HostSettings, Order, Reply, State, Status};
use crate::report::ShardReport;
use array::{LegState, Note, Verdict};
use base::machine::{Shape, StateError, StateOp};
use base::memory::PlainMemory;
use base::view::{Protocol, Secret, View};
use base::{Address, DriveError, DriveId, DriveInfo, DriveOp, DriveOpKind, Effect, Event, Instant, Machine};
use finding::{
    DriveFault, FileFault, HostRefusal, LegCause, LegEvent, LegRefusal, PoolRefusal, PortalRefusal,
    RecordCause, RecordNotice, VolumeRefusal, Why,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const SHARDS: u16 = 2;
const MIB: u64 = 1 << 20;

mod absent;
mod addresses;
mod connected;
mod directory;
mod failed;
mod far;
mod features;
mod figures;
mod hold;
mod labels;
mod legs;
mod limit;
mod lost;
mod meant;
mod moved;
mod names;
mod older;
mod promote;
mod propose;
mod released;
mod reopen;
mod scrub;
mod shrink;
mod silent;
mod space;
mod spares;
mod stop;
mod unfinished;
mod unrecorded;
mod vanished;
mod watch;
mod world;

use world::*;

#[test]
fn a_pool_a_volume_a_host_and_an_export_are_there_again_after_a_crash() {
    let mut w = usual();
    w.good(Order::PortalAdd {
        protocol: Protocol::Iscsi,
        address: "10.0.0.1:3260".parse().expect("an address"),
        moves: None,
        head: None,
    });
    let before = w.view.hosts[0].exports[0].clone();
    assert_eq!((before.nsid, before.lun, before.blocks, before.ready), (1, 0, 9 * MIB / 4096, true));
    let mut w = w.crash(2);
    let after = w.view.hosts[0].exports[0].clone();
    assert_eq!(
        (after.uuid, after.nguid, after.naa, after.nsid, after.lun),
        (before.uuid, before.nguid, before.naa, 1, 0)
    );
    assert_eq!(w.view.portals.len(), 1);
    assert!(w.view.hosts[0].chap_secret == Some(Secret(b"a secret of esx1".to_vec())));
    assert!(w.layout.arrays.iter().all(|a| !a.unclean), "no region was dirty, so no legs can differ");
    let s = w.status();
    assert_eq!((s.pools.len(), s.volumes.len(), s.hosts.len(), s.portals[0].listening), (1, 1, 1, true));
    assert!(!format!("{s:?}").contains("a secret"), "no secret is shown");
}

#[test]
fn a_portal_keeps_its_number_for_its_life_and_nobody_gets_it_soon_after() {
    let mut w = usual();
    let at = |port: u16| core::net::SocketAddr::from(([10, 0, 0, 1], port));
    let add =
        |port| Order::PortalAdd { protocol: Protocol::Iscsi, address: at(port), moves: None, head: None };
    let numbers =
        |w: &World| w.view.portals.iter().map(|p| (p.address.port(), p.id.0 + 1)).collect::<Vec<_>>();
    w.good(add(3260));
    // Refused: the address is in use.
    w.refused(add(99));
    w.good(add(3261));
    w.good(add(3262));
    assert_eq!(numbers(&w), [(3260, 1), (3261, 2), (3262, 3)]);
    for port in [3260, 3262] {
        w.good(Order::PortalRemove { protocol: Protocol::Iscsi, address: at(port), disconnect: true });
    }
    let mut w = w.crash(2);
    assert_eq!(numbers(&w), [(3261, 2)]);
    w.good(add(3263));
    let w = w.crash(3);
    assert_eq!(numbers(&w), [(3261, 2), (3263, 4)]);
}

#[test]
fn stopping_in_order_leaves_clean_arrays_and_lets_go_of_the_drives() {
    let mut w = usual();
    w.good(Order::PortalAdd {
        protocol: Protocol::Iscsi,
        address: "10.0.0.1:3260".parse().expect("an address"),
        moves: None,
        head: None,
    });
    w.views.clear();
    w.good(Order::Shutdown);
    assert!(w.open.is_empty());
    let seen = |v: &View| !v.portals.is_empty() && v.hosts[0].exports.is_empty();
    assert!(!w.views.iter().any(|v| seen(v)), "a host that comes again at once sees its volumes, or nobody");
    let w = w.crash(2);
    assert!(w.layout.arrays.iter().all(|a| !a.unclean));
    assert!(w.view.hosts[0].exports[0].ready);
}

#[test]
fn what_was_answered_is_there_wherever_the_power_goes() {
    // The same orders, cut off after every single effect.
    let orders = || [tank(), volume("vm1", 9 * MIB), host(), export(), volume("vm2", 5 * MIB)];
    let mut n = 0;
    loop {
        let mut w = World::power_on(four(), 1, n);
        w.run();
        let answered = if w.ready.is_some() {
            for order in orders() {
                w.send(order);
            }
            w.run();
            w.answers.len()
        } else {
            0
        };
        assert!(w.answers.values().all(Result::is_ok), "{:?}", w.answers);
        let done = w.effects_left > 0;
        let mut w = w.crash(2);
        let s = w.status();
        let there = [
            s.pools.iter().any(|p| p.name == "tank" && p.state <= State::Rebuilding),
            s.volumes.iter().any(|v| v.name == "tank/vm1" && v.state <= State::Rebuilding),
            s.hosts.iter().any(|h| h.name == "esx1"),
            s.hosts
                .iter()
                .any(|h| h.exports == [api::HostExport { volume: "tank/vm1".into(), nsid: 1, lun: 0 }]),
            s.volumes.iter().any(|v| v.name == "tank/vm2"),
        ];
        for (i, there) in there.iter().enumerate().take(answered) {
            assert!(there, "order {i} was answered and is lost after effect {n}");
        }
        // And the rest can be done: with force, since a cut-off creation leaves labels.
        if !there[0] {
            let Order::PoolCreate { name, arrays, .. } = tank() else { unreachable!() };
            w.good(Order::PoolCreate {
                name,
                arrays,
                chunk_bytes: None,
                block_bytes: None,
                measure: false,
                force: true,
            });
        }
        for (order, there) in orders().into_iter().zip(there).skip(1) {
            if !there {
                w.good(order);
            }
        }
        if done {
            break;
        }
        n += if n < 400 { 7 } else { 3 };
    }
    assert!(n > 50, "there was something to cut: {n}");
}

#[test]
fn a_lost_leg_is_off_every_shard_then_on_record_and_only_then_recorded() {
    let mut w = usual();
    w.log.clear();
    lose(&mut w, 1);
    let epoch = w.layout.arrays[0].membership.epoch;
    let expected =
        ["configured 0", "configured 1", &format!("recorded 0 {epoch}"), &format!("recorded 1 {epoch}")];
    assert_eq!(w.log, expected);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert_eq!(w.legs(1), [LegState::InSync, LegState::InSync]);
    let s = w.status();
    assert_eq!((s.health, s.pools[0].state), (State::Degraded, State::Degraded));
    assert!(s.reasons[0].said().contains("/f/b"), "{:?}", s.reasons);
    assert!(s.reasons[0].said().contains("help: Some(Return { leg: \"/f/b\" })"), "{:?}", s.reasons);
    assert!(w.view.hosts[0].exports[0].ready);
    // After a crash the leg is there, and is known to lack something.
    let w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn the_leg_that_was_lost_does_not_come_up_alone() {
    let mut w = usual();
    lose(&mut w, 1);
    let mut rest = w.rest.clone();
    let good = FakeDrive { held: false, ..rest.drives.remove("/f/a").expect("is there") };
    let mut w = World::start(rest, 2);
    let s = w.status();
    assert_eq!(s.pools[0].state, State::Offline);
    assert!(
        s.pools[0]
            .said()
            .contains("Stale { pool: \"tank\", array: \"mirror-0\", stale: [\"/f/b\"], missing: [\"/f/a\"]"),
        "{}",
        s.pools[0].said()
    );
    assert!(w.layout.arrays.is_empty() && w.layout.volumes.iter().all(|v| !v.ready));
    // With its mirror it comes up; or by the operator's word.
    let mut forced = World::start(w.rest.clone(), 3);
    forced.good(import(&[], true));
    assert_eq!(forced.legs(0), [LegState::Missing, LegState::InSync]);
    w.rest.drives.insert("/f/a".into(), good);
    w.good(import(&[], false));
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn a_missing_drive_is_tolerated_at_home_and_not_abroad() {
    let mut w = usual();
    w.good(Order::Shutdown);
    let mut rest = w.rest.clone();
    rest.drives.remove("/f/d");
    let mut home = World::start(rest.clone(), 2);
    assert_eq!(home.status().health, State::Degraded);
    assert_eq!(home.legs(1), [LegState::InSync, LegState::Missing]);
    rest.files.clear();
    let mut abroad = World::start(rest, 3);
    let all = ["/f/a", "/f/b", "/f/c"];
    let (kind, _, words) = abroad.refused(import(&all, false));
    assert!(kind == ErrorKind::Unsafe && words.contains("NotReleased"), "{words}");
    abroad.good(import(&all, true));
    assert_eq!(abroad.legs(1), [LegState::InSync, LegState::Missing]);
}

#[test]
fn a_returned_leg_is_resynced_and_in_sync_once_every_shard_says_so() {
    let mut w = usual();
    lose(&mut w, 1);
    let old = w.layout.arrays[0].membership.legs[1].expect("said").drive;
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert_ne!(w.layout.arrays[0].membership.legs[1].expect("said").drive, old, "it was claimed anew");
    assert_eq!(w.status().health, State::Rebuilding);
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(0, array, Note::Synced { leg: 1, epoch });
    w.run();
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding], "one shard is not all");
    w.note(1, array, Note::Synced { leg: 1, epoch });
    w.run();
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    assert_eq!(w.status().health, State::Optimal);
    let mut w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    let (kind, _, words) = w.refused(Order::DriveReturn { drive: "/f/b".into() });
    assert!(kind == ErrorKind::Conflict && words.contains("LegInSync"), "{words}");
}

#[test]
fn a_missing_leg_is_found_again_under_another_path() {
    let mut w = usual();
    w.good(Order::Shutdown);
    let mut rest = w.rest.clone();
    let moved = rest.drives.remove("/f/d").expect("is there");
    let mut w = World::start(rest, 2);
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Missing]);
    w.rest.drives.insert("/f/moved".into(), FakeDrive { held: false, ..moved });
    w.good(Order::DriveReturn { drive: "/f/moved".into() });
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Rebuilding]);
    let w = w.crash(3);
    assert_eq!(w.legs(1), [LegState::InSync, LegState::Rebuilding], "the new path is known");
    let (kind, field, _) = { w }.refused(Order::DriveReturn { drive: "/f/nowhere".into() });
    assert_eq!((kind, field.as_str()), (ErrorKind::NotFound, "drive"));
}

#[test]
fn a_failure_from_before_the_return_does_not_count() {
    let mut w = usual();
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    lose(&mut w, 1);
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    w.note(0, array, Note::LegFailed { leg: 1, epoch, error: DriveError::Gone });
    w.run();
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn a_leg_that_is_given_up_for_what_the_last_one_did_is_not_blamed_and_returns_by_itself() {
    let mut w = usual();
    lose(&mut w, 1);
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(0, array, Note::LegAhead { leg: 1, epoch, last: 0, error: Some(DriveError::Medium) });
    w.run();
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    let why = LegCause::LegAheadOfSource { source: "/f/a".into(), fault: Some(DriveFault::Medium) };
    let told = LegEvent::LegOut { pool: "tank".into(), why: Box::new(why.into()) };
    assert_eq!(w.happened_to("drive /f/b").last(), Some(&told.into()));
    w.pass(60);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn two_legs_lost_at_once_leave_one() {
    let mut w = usual();
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    w.note(0, array, Note::LegFailed { leg: 0, epoch, error: DriveError::TimedOut });
    w.note(1, array, Note::LegFailed { leg: 1, epoch, error: DriveError::TimedOut });
    w.run();
    assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync]);
    assert!(w.layout.arrays[0].membership.epoch > epoch, "the shard that had lost it takes it back");
}

#[test]
fn the_operator_fails_and_replaces_drives_but_never_the_last() {
    let mut w = usual();
    w.good(Order::DriveFail { drive: "/f/a".into(), force: false });
    assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync]);
    let last = w.order(Order::DriveFail { drive: "/f/b".into(), force: false }).expect_err("the last one");
    assert_eq!((last.kind(), last.field), (ErrorKind::Conflict, "drive"));
    let (drive, out) = ("/f/b".into(), Some("/f/a".into()));
    assert_eq!(*last.why, LegRefusal::LegIsNeeded { drive, mirror: true, out, removal: false }.into());
    let new = drives(&["/f/new"]).drives.remove("/f/new").expect("made");
    w.rest.drives.insert("/f/new".into(), new);
    w.good(Order::DriveReplace { old: "/f/a".into(), new: "/f/new".into(), force: false });
    assert_eq!(w.legs(0), [LegState::Rebuilding, LegState::InSync]);
    synced(&mut w, 0);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    let mut w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    assert!(w.status().drives.iter().any(|d| d.path == "/f/new"));
    // The old one is no leg any more, and is listed as one that failed.
    w.pass(6);
    let Ok(Reply::Drives(list)) = w.order(Order::DriveList { drives: vec!["/f/a".into()] }) else {
        panic!("a list")
    };
    let old = list.iter().find(|d| d.path == "/f/a").expect("listed");
    let by_hand = LegCause::LegOutByHand.into();
    assert_eq!(
        (old.role, old.state, old.cause.as_ref()),
        (DriveRole::RemovedFailed, Some(State::Failed), Some(&by_hand))
    );
}

#[test]
fn a_pool_goes_to_another_head_and_takes_its_exports_along() {
    let mut w = usual();
    let uuid = w.view.hosts[0].exports[0].uuid;
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    assert!(w.layout.arrays.is_empty() && w.open.is_empty());
    assert_eq!(w.status().pools.len(), 0);
    let mut rest = w.rest.clone();
    rest.files.clear();
    let mut w = World::start(rest, 77);
    let paths = ["/f/a", "/f/b", "/f/c", "/f/d"];
    let Reply::Importable(list) = w.good(Order::PoolImportable { drives: paths.map(String::from).to_vec() })
    else {
        panic!("a list")
    };
    assert_eq!((list.len(), list[0].released, list[0].state), (1, true, State::Optimal));
    assert!(w.open.is_empty(), "looking holds nothing");
    w.good(import(&paths, false));
    w.good(host());
    let export = &w.view.hosts[0].exports[0];
    assert_eq!((export.uuid, export.name.as_str()), (uuid, "tank/vm1"));
    let (kind, _, words) = w.refused(import(&paths, false));
    assert!(kind == ErrorKind::Conflict && words.contains("PoolImportedAlready"), "{words}");
}

#[test]
fn two_heads_that_went_on_apart_are_told_from_one_another() {
    let mut w = usual();
    w.good(Order::Shutdown);
    let (mut here, mut there) = (w.rest.clone(), w.rest.clone());
    there.files.clear();
    there.drives.retain(|name, _| name != "/f/a" && name != "/f/c");
    let mut other = World::start(there, 5);
    other.good(import(&["/f/b", "/f/d"], true));
    here.drives.retain(|name, _| name != "/f/b" && name != "/f/d");
    let mut here = World::start(here, 6).rest;
    for name in ["/f/b", "/f/d"] {
        here.drives.insert(name.into(), other.rest.drives[name].clone());
    }
    let mut w = World::start(here, 7);
    let s = w.status();
    assert_eq!(s.pools[0].state, State::Offline);
    assert!(s.pools[0].said().contains("PoolDiverged { pool: \"tank\", sides: [Drives { drives: [\"/f/a\", \"/f/c\"] }, Drives { drives: [\"/f/b\", \"/f/d\"] }]"), "{}", s.pools[0].said());
    w.good(import(&["/f/b", "/f/d"], true));
    assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync]);
}

#[test]
fn what_lies_in_the_place_of_a_missing_leg_is_told() {
    let w = usual();
    let mut rest = w.rest;
    rest.drives.get_mut("/f/b").expect("there").blocks.clear();
    let mut w = World::start(rest, 2);
    assert_eq!(w.status().health, State::Degraded);
    assert!(
        w.events()
            .iter()
            .any(|e| e == "pool tank: Pool(ImportMet { what: LabelAbsent { drive: \"/f/b\" } })"),
        "{:#?}",
        w.events()
    );
}

#[test]
fn foreign_labelled_held_small_and_repeated_drives_are_refused_by_name() {
    let mut w = usual();
    let mut more = drives(&["/f/xfs", "/f/x", "/f/small", "/f/coarse", "/f/vhd"]);
    more.drives.get_mut("/f/xfs").expect("made").blocks.insert(0, {
        let mut b = vec![0; 512];
        b[..4].copy_from_slice(b"XFSB");
        b
    });
    more.drives.get_mut("/f/small").expect("made").bytes = 3 * MIB;
    w.rest.drives.extend(more.drives);
    let check = |w: &mut World, a: &str, b: &str| w.refused(create("p2", vec![mirror(a, b)]));
    let (kind, field, words) = check(&mut w, "/f/xfs", "/f/x");
    assert_eq!((kind, field.as_str()), (ErrorKind::Unsafe, "drives"));
    assert!(words.contains("DriveHolds { drive: \"/f/xfs\", holds: Xfs }"), "{words}");
    let vhd = w.rest.drives.get_mut("/f/vhd").expect("made");
    (vhd.bytes, vhd.end) = (80 * MIB, [&b"conectix"[..], &[0; 504]].concat());
    let (kind, _, words) = check(&mut w, "/f/vhd", "/f/x");
    assert!(
        kind == ErrorKind::Unsafe && words.contains("DriveHolds { drive: \"/f/vhd\", holds: Vhd }"),
        "{words}"
    );
    let (kind, _, words) = check(&mut w, "/f/a", "/f/x");
    assert!(
        kind == ErrorKind::Conflict && words.contains("DriveInPool { drive: \"/f/a\", pool: \"tank\" }"),
        "{words}"
    );
    let (_, _, words) = check(&mut w, "/f/small", "/f/x");
    assert!(words.contains("DriveTooSmall { drive: \"/f/small\""), "{words}");
    w.rest.drives.get_mut("/f/coarse").expect("made").block_bytes = 4096;
    let mut fine = create("p2", vec![mirror("/f/x", "/f/coarse")]);
    if let Order::PoolCreate { block_bytes, .. } = &mut fine {
        *block_bytes = Some(512);
    }
    let (_, field, words) = w.refused(fine);
    assert!(field == "block_bytes" && words.contains("BlockTooSmall"), "{words}");
    let (_, _, words) = check(&mut w, "/f/x", "/f/x");
    assert!(words.contains("DriveNamedTwice { drive: \"/f/x\" }"), "{words}");
    let (_, _, words) = check(&mut w, "/f/x", "/f/nowhere");
    assert!(words.contains("drive: \"/f/nowhere\", fault: Machine { fault: Missing }"), "{words}");
    assert_eq!(w.open.len(), 4, "what was refused is let go of");
    let (_, field, _) = w.refused(create(
        "p2",
        vec![ArraySpec {
            layout: crate::order::ArrayLayout::Mirror,
            drives: vec!["/f/x".into()],
            weight: None,
        }],
    ));
    assert_eq!(field, "arrays");
    let (kind, field, _) = w.refused(tank());
    assert_eq!((kind, field.as_str()), (ErrorKind::Conflict, "name"));
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    let (kind, _, words) = w.refused(create("p2", vec![mirror("/f/a", "/f/x")]));
    assert!(
        kind == ErrorKind::Unsafe && words.contains("DriveLabelled { drive: \"/f/a\", pool: \"tank\""),
        "{words}"
    );
}

#[test]
fn mirrors_that_the_memory_has_no_room_for_are_refused_and_nothing_has_changed() {
    let mut w = World::start(four(), 1);
    w.mirrors_max = 1;
    let (kind, field, message) = w.refused(tank());
    assert_eq!((kind, field.as_str()), (ErrorKind::NoSpace, "memory"), "{message}");
    assert!(message.contains("MemoryFullForMirrors { mirrors_max: 1, mirrors: 2,"), "{message}");
    assert!(w.status().pools.is_empty() && w.layout.arrays.is_empty());
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    let more = vec![mirror("/f/c", "/f/d")];
    let (kind, ..) = w.refused(Order::PoolAdd { pool: "tank".into(), arrays: more.clone(), force: false });
    assert_eq!((kind, w.layout.arrays.len()), (ErrorKind::NoSpace, 1));
    w.mirrors_max = 2;
    w.good(Order::PoolAdd { pool: "tank".into(), arrays: more, force: false });
    // At the next start there is less memory: the pool stays away, with the reason.
    let mut w = World::power_on(w.rest, 2, u64::MAX);
    w.mirrors_max = 1;
    w.run();
    assert!(w.ready.is_some() && w.layout.arrays.is_empty());
    let reasons = w.status().reasons;
    assert!(reasons.iter().any(|r| r.said().contains("MemoryFullForMirrors")), "{reasons:?}");
}

/// They are imported side by side, and each asks for memory: a shard that was asked by one for less than another had
/// been promised gave that back, and panicked when the layout came.
#[test]
fn pools_that_come_up_together_are_promised_memory_one_after_the_other() {
    let names: Vec<String> = (0..6).map(|i| format!("/f/{i}")).collect();
    let mut w = World::start(drives(&names.iter().map(String::as_str).collect::<Vec<_>>()), 1);
    for i in 0..3 {
        w.good(create(&format!("p{i}"), vec![mirror(&names[2 * i], &names[2 * i + 1])]));
    }
    let mut w = w.crash(2);
    assert_eq!((w.layout.arrays.len(), w.mirrors_kept), (3, [3; SHARDS as usize]));
    assert_eq!(w.status().health, State::Optimal);
    // Where there is memory for two alone, two come up, and the third says why it does not.
    let mut w = World::power_on(w.rest, 3, u64::MAX);
    w.mirrors_max = 2;
    w.run();
    assert_eq!(w.layout.arrays.len(), 2);
    let reasons = w.status().reasons;
    assert!(reasons.len() == 1 && reasons[0].said().contains("MemoryFullForMirrors"), "{reasons:?}");
}

#[test]
fn wrong_sizes_names_and_numbers_are_refused_with_their_field_and_change_nothing() {
    let mut w = usual();
    let before = (w.rest.files.clone(), format!("{:?}", w.layout.volumes));
    let mut field = |order: Order| w.refused(order).1;
    assert_eq!(field(volume("v", 0)), "bytes");
    assert_eq!(field(volume("v", u64::MAX)), "bytes");
    assert_eq!(field(volume("v", 1 << 40)), "bytes");
    assert_eq!(field(volume("v", 4097)), "bytes");
    assert_eq!(field(volume("a/b", 4096)), "name");
    assert_eq!(field(volume("vm1", 4096)), "name");
    assert_eq!(
        field(Order::VolumeResize {
            volume: "tank/vm1".into(),
            bytes: 4096,
            force: false,
            disconnect: false
        }),
        "bytes"
    );
    assert_eq!(
        field(Order::VolumeRemove { volume: "tank/vm1".into(), force: false, disconnect: false }),
        "volume"
    );
    assert_eq!(
        field(Order::VolumeRemove { volume: "vm1".into(), force: false, disconnect: false }),
        "volume"
    );
    assert_eq!(
        field(Order::VolumeRemove { volume: "no/vm1".into(), force: false, disconnect: false }),
        "volume"
    );
    assert_eq!(field(export()), "host");
    assert_eq!(field(Order::Export { volume: "tank/vm1".into(), host: "who".into(), lun: None }), "host");
    assert_eq!(field(host()), "name");
    assert_eq!(field(Order::HostRemove { name: "esx1".into(), force: false, disconnect: false }), "name");
    let short = Some(Some(Secret(b"short".to_vec())));
    let settings = HostSettings { chap_secret: short, ..HostSettings::default() };
    assert_eq!(field(Order::HostSet { name: "esx1".into(), settings, disconnect: false }), "chap_secret");
    let address = "10.0.0.1:99".parse().expect("an address");
    assert_eq!(
        field(Order::PortalAdd { protocol: Protocol::Nvme, address, moves: None, head: None }),
        "address"
    );
    assert_eq!(
        field(Order::PortalRemove { protocol: Protocol::Nvme, address, disconnect: false }),
        "address"
    );
    assert!(w.events().iter().all(|e| !e.contains("10.0.0.1:99")), "who asked was told, and nobody else");
    let events = |mut files: BTreeMap<String, Vec<u8>>| {
        files.remove("events");
        files
    };
    assert_eq!(
        (events(w.rest.files.clone()), format!("{:?}", w.layout.volumes)),
        (events(before.0), before.1)
    );
    assert!(w.view.portals.is_empty());
}

#[test]
fn volumes_grow_shrink_change_names_and_go() {
    let mut w = usual();
    let bytes = |w: &World| w.layout.volumes[0].blocks * 4096;
    let id = w.layout.volumes[0].id;
    w.good(Order::VolumeResize {
        volume: "tank/vm1".into(),
        bytes: 30 * MIB,
        force: false,
        disconnect: false,
    });
    assert_eq!((bytes(&w), w.layout.volumes[0].id), (30 * MIB, id));
    w.good(Order::VolumeResize { volume: "tank/vm1".into(), bytes: 5 * MIB, force: true, disconnect: false });
    w.good(Order::VolumeRename { volume: "tank/vm1".into(), name: "web".into() });
    assert_eq!((bytes(&w), w.view.hosts[0].exports[0].name.as_str()), (5 * MIB, "tank/web"));
    let cap = |iops_max, mbps_max| Order::VolumeCaps {
        volume: "tank/web".into(),
        caps: crate::order::VolumeCaps { iops_max, mbps_max, weight: None },
    };
    w.good(cap(Some(5000), None));
    w.good(cap(None, Some(200)));
    let shown = &w.status().volumes[0];
    assert_eq!((shown.iops_max, shown.mbps_max), (5000, 200));
    assert_eq!((w.layout.volumes[0].caps.iops_max, w.layout.volumes[0].caps.mbps_max), (5000, 200));
    let (kind, field, _) = w.refused(cap(Some(9), None));
    assert_eq!((kind, field.as_str()), (ErrorKind::Invalid, "iops_max"));
    let weigh = |n| Order::VolumeCaps {
        volume: "tank/web".into(),
        caps: crate::order::VolumeCaps { weight: Some(n), ..Default::default() },
    };
    w.good(weigh(300));
    assert_eq!((w.status().volumes[0].weight, w.layout.volumes[0].weight), (300, 300));
    assert_eq!(w.layout.volumes[0].caps.iops_max, 5000);
    for n in [0, 1001] {
        let (kind, field, _) = w.refused(weigh(n));
        assert_eq!((kind, field.as_str()), (ErrorKind::Invalid, "weight"));
    }
    w.good(cap(Some(0), None));
    assert_eq!(w.layout.volumes[0].caps, crate::admission::caps::Caps { iops_max: 0, mbps_max: 200 });
    w.good(Order::VolumeRemove { volume: "tank/web".into(), force: true, disconnect: false });
    assert!(w.layout.volumes.is_empty() && w.view.hosts[0].exports.is_empty());
    let used = w.status().pools[0].used_bytes;
    assert!(used > 0, "its last writes may still be at the drives");
    w.pass(20);
    assert_eq!(w.status().pools[0].used_bytes, 0);
}

#[test]
fn a_full_state_disk_refuses_and_changes_nothing() {
    let mut w = usual();
    w.rest.disk_full = true;
    let settings =
        HostSettings { iqns: Some(vec!["iqn.1998-01.com.example:h2".into()]), ..HostSettings::default() };
    let (kind, _, words) = w.refused(Order::HostAdd { name: "h2".into(), settings });
    assert!(
        kind == ErrorKind::NotReady && words.contains("NothingDurable") && words.contains("NoSpace"),
        "{words}"
    );
    assert_eq!(w.view.hosts.len(), 1);
}

#[test]
fn a_pool_that_the_state_directory_cannot_take_leaves_its_drives_free() {
    // Nothing fits; the witness does, and the list of pools does not.
    for (full, refused, why) in [(true, None, "NothingDurable"), (false, Some("pools"), "StateNoSpace")] {
        let mut w = World::start(four(), 1);
        (w.rest.disk_full, w.rest.refused) = (full, refused);
        let (_, _, words) = w.refused(tank());
        assert!(words.contains(why), "{words}");
        assert!(w.open.is_empty() && w.status().pools.is_empty() && w.layout.arrays.is_empty());
        assert!(w.rest.files.keys().all(|name| !name.starts_with("witness-")), "{:?}", w.rest.files.keys());
        (w.rest.disk_full, w.rest.refused) = (false, None);
        w.good(tank());
        assert_eq!(w.crash(2).status().health, State::Optimal);
    }
}

#[test]
fn a_state_file_that_cannot_be_read_is_named_and_kept() {
    let mut w = usual();
    let cut = w.rest.files["hosts"][..150].to_vec();
    w.rest.files.insert("hosts".into(), cut.clone());
    let mut w = w.crash(2);
    let notices = w.ready.clone().expect("it comes up all the same");
    let (file, path, why) = ("hosts".to_string(), "/s/hosts".to_string(), FileFault::NoEnd);
    let notice = RecordNotice::FileUnreadable { file: file.clone(), path: path.clone(), why: why.clone() };
    assert!(notices.contains(&notice.into()), "{notices:?}");
    assert!(w.view.hosts.is_empty());
    let status = w.status();
    let told = crate::order::Cause::from(RecordCause::FileUnreadable { file, path, why });
    assert!(status.health == State::Degraded && status.reasons.iter().any(|r| r.cause == told), "{status:?}");
    // Nor does the next order write over what may hold everybody's secrets.
    let settings =
        HostSettings { iqns: Some(vec!["iqn.1998-01.com.example:h2".into()]), ..HostSettings::default() };
    let (kind, _, words) = w.refused(Order::HostAdd { name: "h2".into(), settings });
    assert!(
        kind == ErrorKind::Conflict
            && words.contains("FileNotWrittenOver { why: Record(FileUnreadable { file: \"hosts\""),
        "{words}"
    );
    assert_eq!(w.rest.files["hosts"], cut);
}

#[test]
fn an_identity_that_is_damaged_or_gone_is_told_by_status_and_a_first_start_has_nothing_to_tell() {
    let mut w = usual();
    let told = |w: &mut World| w.status().reasons.iter().any(|r| r.said().contains("file: \"identity\""));
    assert!(!told(&mut w));
    let name = w.status().system.nqn;
    let good = w.rest.files["identity"].clone();
    for damaged in [&b"uuid = 1"[..], b""] {
        w.rest.files.insert("identity".into(), damaged.to_vec());
        w = w.crash(2);
        let status = w.status();
        assert!(status.reasons.iter().any(|r| r.said().contains("file: \"identity\"")));
        assert_eq!(w.rest.files["identity"], damaged);
    }
    w.rest.files.insert("identity".into(), good);
    w = w.crash(3);
    assert_eq!((told(&mut w), w.status().system.nqn), (false, name));
    assert_ne!(w.status().pools[0].state, State::Offline);
    w.rest.files.remove("identity");
    w = w.crash(4);
    assert!(told(&mut w));
    // The pool says that another system has it, which nobody could release it from: its own name comes first.
    let status = w.status();
    assert_eq!((status.health, status.pools[0].state), (State::Offline, State::Offline));
    let first = crate::order::Cause::from(RecordCause::IdentityMissing { file: "identity".into() });
    assert_eq!(status.reasons[0].cause, first, "{:?}", status.reasons);
}

#[test]
fn legs_that_may_differ_after_a_crash_are_made_the_same() {
    let mut w = World::start(four(), 1);
    w.good(tank());
    w.rest.forget_bitmaps(&["/f/c", "/f/d"]);
    let mut w = w.crash(2);
    assert_eq!((w.layout.arrays[0].unclean, w.layout.arrays[0].dirty.count()), (false, 0));
    let second = w.layout.arrays[1].clone();
    assert!(second.unclean && second.dirty.count() == second.geometry.regions());
    assert_eq!(w.status().health, State::Rebuilding);
    let array = second.id;
    let told = |w: &mut World, event: &LegEvent| {
        let event = event.clone().into();
        w.happened_to("pool tank").iter().filter(|e| **e == event).count()
    };
    let bytes = u64::from(second.geometry.regions()) * second.geometry.region_bytes;
    let begin = LegEvent::MirrorCompares { mirror: "mirror-1".into(), bytes };
    let end = LegEvent::MirrorCompared { mirror: "mirror-1".into(), bytes, seconds: 11 };
    assert_eq!(told(&mut w, &begin), 1, "{:?}", w.events());
    // How far that is: from the first look on, with a rate.
    for shard in 0..SHARDS {
        let progress =
            array::Progress { crash_left: 12 * MIB, crash_total: 16 * MIB, ..array::Progress::default() };
        w.scrubs.insert((shard, array), (array::Scrub::default(), progress));
    }
    w.now = w.now + base::Duration::from_secs(4);
    let s = w.status();
    let resync = s.pools[0].arrays[1].resync.clone().expect("its legs are made the same");
    assert_eq!((resync.leg, resync.partial, s.pools[0].arrays[0].resync.clone()), (None, false, None));
    assert_eq!((resync.done_bytes, resync.total_bytes), (8 * MIB, 32 * MIB));
    assert_eq!((resync.rate, resync.seconds_left), (2 * MIB, Some(12)));
    w.scrubs.clear();
    w.pass(7);
    assert_eq!(told(&mut w, &end), 0);
    for shard in 0..SHARDS {
        w.note(shard, array, Note::CrashClean { epoch: 1 });
    }
    w.run();
    assert_eq!(w.log.iter().filter(|l| l.starts_with("clean")).count(), 2);
    assert_eq!(told(&mut w, &end), 1, "{:?}", w.events());
    assert_eq!(w.status().health, State::Optimal);
}

#[test]
fn a_comparison_is_timed_from_when_its_shards_were_told_of_it() {
    let mut w = World::start(four(), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b"), mirror("/f/c", "/f/d")]));
    w.rest.forget_bitmaps(&["/f/a", "/f/b", "/f/c", "/f/d"]);
    let mut w = w.crash(2);
    let compared = |w: &mut World, array: usize, seconds: u64| {
        let array = w.layout.arrays[array].id;
        w.pass(seconds);
        for shard in 0..SHARDS {
            w.note(shard, array, Note::CrashClean { epoch: 1 });
        }
        w.run();
    };
    compared(&mut w, 0, 35);
    compared(&mut w, 1, 7);
    let told: Vec<String> = w.events().into_iter().filter(|e| e.contains("mirror-")).collect();
    let story = [
        "pool tank: Leg(MirrorCompares { mirror: \"mirror-0\", bytes: 77594624 })",
        "pool tank: Leg(MirrorCompares { mirror: \"mirror-1\", bytes: 77594624 })",
        "pool tank: Leg(MirrorCompared { mirror: \"mirror-0\", bytes: 77594624, seconds: 35 })",
        "pool tank: Leg(MirrorCompared { mirror: \"mirror-1\", bytes: 77594624, seconds: 42 })",
    ];
    assert_eq!(told, story);
}

#[test]
fn a_pool_grows_by_a_zone_and_can_be_destroyed() {
    let mut rest = four();
    rest.drives.extend(drives(&["/f/e"]).drives);
    let mut w = World::start(rest, 1);
    w.good(tank());
    w.good(volume("vm1", 100 * MIB));
    let before = w.status().pools[0].bytes;
    let single =
        ArraySpec { layout: crate::order::ArrayLayout::Single, drives: vec!["/f/e".into()], weight: None };
    w.good(Order::PoolAdd { pool: "tank".into(), arrays: vec![single], force: true });
    assert!(w.status().pools[0].bytes > before);
    w.good(volume("vm2", 60 * MIB));
    let mut w = w.crash(2);
    assert_eq!((w.layout.arrays.len(), w.layout.volumes.len()), (3, 2));
    let (kind, ..) = w.refused(Order::PoolDestroy { pool: "tank".into(), force: false, disconnect: false });
    assert_eq!(kind, ErrorKind::Unsafe);
    w.good(Order::PoolDestroy { pool: "tank".into(), force: true, disconnect: false });
    w.good(tank());
}

#[test]
fn a_shaped_drive_is_seen_and_a_gone_one_is_lost_and_returns() {
    let mut w = usual();
    let shape = Shape { gone: true, ..Shape::default() };
    w.good(Order::DriveShape { drive: "/f/b".into(), shape: shape.clone() });
    assert_eq!(
        w.status().drives.iter().find(|d| d.path == "/f/b").and_then(|d| d.shape.clone()),
        Some((&shape).into())
    );
    // The next configuration cannot be written there: the leg is put out.
    w.good(volume("vm2", 5 * MIB));
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    w.good(Order::DriveShape { drive: "/f/b".into(), shape: Shape::default() });
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    synced(&mut w, 1);
    let w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    assert_eq!(w.layout.volumes.len(), 2);
}

#[test]
fn a_drive_given_with_a_shape_has_it_until_the_daemon_ends_and_its_own_name() {
    let mut w = World::start(four(), 1);
    let singles = |drives: &[&str]| {
        let single = |d: &&str| ArraySpec { drives: vec![d.to_string()], ..ArraySpec::default() };
        drives.iter().map(single).collect::<Vec<_>>()
    };
    let make = |drives: &[&str]| create("tank", singles(drives));
    let (kind, field, words) = w.refused(make(&["shape:mbps-max=fast@/f/a", "/f/b"]));
    assert_eq!((kind, field.as_str()), (ErrorKind::Invalid, "drives"));
    assert!(words.contains("ValueInvalid { option: \"mbps-max\", value: \"fast\""), "{words}");
    let (.., words) = w.refused(make(&["shape:mbps-max=1@/f/a", "/f/a"]));
    assert!(words.contains("DriveNamedTwice { drive: \"/f/a\" }"), "{words}");
    w.good(make(&["shape:mbps-max=7@/f/a", "/f/b"]));
    let shapes = |s: &Status| s.drives.iter().map(|d| (d.path.clone(), d.shape.clone())).collect::<Vec<_>>();
    let shape = Shape { mbps_max: 7, ..Shape::default() };
    assert_eq!(shapes(&w.status()), [("/f/a".into(), Some((&shape).into())), ("/f/b".into(), None)]);
    let arrays = singles(&["shape:iops-max=7@/f/a"]);
    let (kind, ..) = w.refused(Order::PoolAdd { pool: "tank".into(), arrays, force: false });
    assert_eq!(kind, ErrorKind::Conflict);
    assert!(w.rest.files.values().all(|f| !String::from_utf8_lossy(f).contains("shape:")));
    let mut w = w.crash(2);
    assert_eq!(shapes(&w.status()), [("/f/a".into(), None), ("/f/b".into(), None)]);
}

#[test]
fn a_slow_leg_is_shown_once_and_stays_in_use() {
    let mut w = World::start(four(), 1);
    w.good(tank());
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    let judged = |leg, verdict| Note::Judged { leg, verdict, epoch };
    for shard in 0..SHARDS {
        w.note(shard, array, judged(1, Verdict::Slow));
    }
    w.run();
    let s = w.status();
    assert_eq!(s.health, State::Optimal);
    assert!(s.pools[0].arrays[0].legs[1].slow && !s.pools[0].arrays[0].legs[0].slow);
    let told = |s: &Status, name: &str| s.events.iter().filter(|e| e.event.name() == name).count();
    assert_eq!(told(&s, "LegSlow"), 1);
    w.note(0, array, judged(1, Verdict::Well));
    assert!(w.status().pools[0].arrays[0].legs[1].slow, "another shard still finds it slow");
    w.note(1, array, judged(1, Verdict::Well));
    let s = w.status();
    assert!(!s.pools[0].arrays[0].legs[1].slow);
    assert_eq!(told(&s, "LegFast"), 1);
    // Nobody reads: the word goes in silence. Reads that say the same again are no news; that it is well is.
    w.note(0, array, judged(1, Verdict::Slow));
    w.note(0, array, judged(1, Verdict::Stale));
    assert!(!w.status().pools[0].arrays[0].legs[1].slow);
    w.note(0, array, judged(1, Verdict::Slow));
    let s = w.status();
    assert!(s.pools[0].arrays[0].legs[1].slow);
    assert_eq!((told(&s, "LegSlow"), told(&s, "LegFast")), (2, 1));
    w.note(0, array, judged(1, Verdict::Stale));
    w.note(0, array, judged(1, Verdict::Well));
    assert_eq!(told(&w.status(), "LegFast"), 2);
    // Reads that stop for good are no end in silence.
    w.note(0, array, judged(1, Verdict::Slow));
    w.note(0, array, judged(1, Verdict::Stale));
    w.pass(30);
    assert_eq!(told(&w.status(), "LegHardlyRead"), 0, "they may go on");
    w.pass(40);
    assert_eq!(told(&w.status(), "LegHardlyRead"), 1);
    w.note(0, array, judged(1, Verdict::Well));
    assert_eq!(told(&w.status(), "LegFast"), 2, "it was closed already");
    // The one beside it goes: what is alone is slower than nobody.
    w.note(0, array, judged(1, Verdict::Slow));
    w.good(Order::DriveFail { drive: "/f/a".into(), force: false });
    let legs = &w.status().pools[0].arrays[0].legs;
    assert_eq!((legs[0].state, legs[1].state, legs[1].slow), (State::Failed, State::Optimal, false));
}

#[test]
fn a_leg_that_every_shard_loses_at_once_is_told_once() {
    let mut w = usual();
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    let before = w.events().len();
    for shard in 0..SHARDS {
        w.note(shard, array, Note::LegFailed { leg: 1, epoch, error: DriveError::Medium });
    }
    w.run();
    assert_eq!(w.events().split_off(before).len(), 1);
    let why = Box::new(LegCause::failed(DriveFault::Medium).into());
    let told = LegEvent::LegOut { pool: "tank".into(), why };
    assert_eq!(w.happened_to("drive /f/b"), [told.into()]);
}

#[test]
fn a_leg_that_is_not_there_is_to_be_attached_and_not_returned() {
    let mut w = usual();
    w.good(Order::Shutdown);
    w.rest.drives.remove("/f/b").expect("it was there");
    let mut w = w.crash(2);
    let s = w.status();
    let reason = s.reasons.iter().find(|r| r.said().contains("/f/b")).expect("it is missed");
    assert!(reason.said().contains("help: Some(Attach { leg: \"/f/b\" })"), "{reason:?}");
    assert!(w.order(Order::DriveReturn { drive: "/f/b".into() }).is_err(), "as it would be told");
}

/// The start's second was cut off, and every event since was up to a second early.
#[test]
fn events_are_told_by_the_wall_clock_to_the_second_and_by_the_monotonic_one() {
    let mut w = usual();
    w.now = w.now + base::Duration::from_millis(200);
    w.good(volume("vm2", 9 * MIB));
    let status = w.status();
    let last = status.events.last().expect("it was made").clone();
    assert_eq!((status.at.0, last.at.0), (1_700_000_001, 1_700_000_001));
    assert_eq!(last.monotonic_ms, Some(w.now.0 / 1_000_000));
    let again = w.crash(2).status().events.into_iter().find(|e| e.number == last.number);
    assert_eq!(again, Some(last), "the log keeps both");
}
