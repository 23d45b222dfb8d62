//! Labels of drives in use are overwritten: that is said, mended, or left to the operator.

use super::*;
use array::format::{LABEL_AT, MEMBERSHIP_AT, MembershipRecord, RECORD_BYTES, label_copy_at};
use finding::{Cause, DriveArea, DriveOwner, Signature};

const BYTES: u64 = 80 * MIB + 12345 / 512 * 512;

/// Until a look has come to an end.
const LOOK: u64 = 6;

fn single() -> World {
    let mut w = World::start(four(), 1);
    let alone =
        ArraySpec { layout: crate::order::ArrayLayout::Single, drives: vec!["/f/a".into()], weight: None };
    w.good(create("tank", vec![alone]));
    w
}

fn wipe(w: &mut World, path: &str, at: u64, len: u64) {
    let drive = w.rest.drives.get_mut(path).expect("it is there");
    drive.blocks.retain(|block, _| !(at..at + len).contains(&(block * 512)));
}

fn put(w: &mut World, path: &str, at: u64, bytes: &[u8]) {
    let drive = w.rest.drives.get_mut(path).expect("it is there");
    for (i, chunk) in bytes.chunks(512).enumerate() {
        let mut block = chunk.to_vec();
        block.resize(512, 0);
        drive.blocks.insert(at / 512 + i as u64, block);
    }
}

fn bytes_at(w: &World, path: &str, at: u64) -> Vec<u8> {
    let blocks = &w.rest.drives[path].blocks;
    (0..RECORD_BYTES as u64 / 512)
        .flat_map(|i| blocks.get(&(at / 512 + i)).cloned().unwrap_or(vec![0; 512]))
        .collect()
}

fn has_label(w: &World, path: &str) -> bool {
    let [first, second] = [LABEL_AT, label_copy_at(BYTES)].map(|at| bytes_at(w, path, at));
    array::format::Label::decode(&first).is_ok() && first == second
}

/// What both slots say.
fn records(w: &World, path: &str) -> [Option<MembershipRecord>; 2] {
    MEMBERSHIP_AT.map(|at| MembershipRecord::decode(&bytes_at(w, path, at)).ok())
}

fn count(w: &mut World, word: &str) -> usize {
    w.events().iter().filter(|e| e.contains(word)).count()
}

/// The whole beginning of a drive, and its end.
fn wipe_all(w: &mut World, path: &str) {
    wipe(w, path, 0, BYTES);
}

#[test]
fn a_copy_of_a_label_that_is_overwritten_is_written_again_and_said() {
    for (at, first) in [(LABEL_AT, true), (label_copy_at(BYTES), false)] {
        for mut w in [usual(), single()] {
            wipe(&mut w, "/f/a", at, RECORD_BYTES as u64);
            w.pass(LOOK);
            assert!(has_label(&w, "/f/a"), "at {at}");
            let told = LegEvent::LabelRewritten { pool: "tank".into(), first, second: !first };
            assert!(w.happened_to("drive /f/a").contains(&told.into()), "{:?}", w.events());
            let s = w.status();
            assert_eq!(s.health, State::Degraded);
            assert!(s.reasons[0].said().contains("DriveLabelOverwritten"), "{:?}", s.reasons);
            w.pass(70);
            assert_eq!((w.status().health, count(&mut w, "LabelRewritten")), (State::Optimal, 1));
        }
    }
}

/// Seconds after the start it was said that something on this machine overwrites it.
#[test]
fn a_copy_of_a_label_that_was_damaged_before_the_start_is_written_again_by_the_import() {
    for (at, first) in [(LABEL_AT, true), (label_copy_at(BYTES), false)] {
        for (mut w, path) in [(usual(), "/f/a"), (single(), "/f/a"), (with_spare(), "/f/c")] {
            wipe(&mut w, path, at, RECORD_BYTES as u64);
            let mut w = w.crash(2);
            assert!(has_label(&w, path), "{path} at {at}");
            let told = LegEvent::LabelRewrittenAtImport { pool: "tank".into(), first, second: !first };
            let happened = w.happened_to(&format!("drive {path}"));
            assert!(happened.contains(&told.into()), "{:?}", w.events());
            w.pass(LOOK);
            for wrong in ["DriveLabelOverwritten", "LabelRewritten {", "LegOlder"] {
                assert_eq!(count(&mut w, wrong), 0, "{:?}", w.events());
            }
        }
    }
}

#[test]
fn both_copies_are_written_again_beside_records_that_are_there() {
    let mut w = usual();
    for at in [LABEL_AT, label_copy_at(BYTES)] {
        wipe(&mut w, "/f/b", at, RECORD_BYTES as u64);
    }
    // And one record of two, whichever is the settled one.
    wipe(&mut w, "/f/b", MEMBERSHIP_AT[0], RECORD_BYTES as u64);
    w.pass(LOOK);
    assert!(has_label(&w, "/f/b"));
    assert!(records(&w, "/f/b").iter().all(|r| r.as_ref().is_some_and(MembershipRecord::is_settled)));
    assert_eq!(w.legs(0), [LegState::InSync; 2]);
    let w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync; 2], "the next start finds it");
}

#[test]
fn a_leg_that_lost_more_than_its_label_is_out_until_the_operator_returns_it_and_is_copied_in_full() {
    let mut w = usual();
    wipe_all(&mut w, "/f/b");
    w.pass(LOOK);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert!(bytes_at(&w, "/f/b", LABEL_AT).iter().all(|b| *b == 0), "nothing was written there");
    let s = w.status();
    let areas = vec![DriveArea::Records, DriveArea::Configuration];
    let why = LegCause::DriveMetadataLost { drive: "/f/b".into(), areas, last: false, others: None };
    assert!(s.reasons[0].said().contains(&format!("{why:?}")), "{:?}", s.reasons);
    w.pass(3600);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing], "it waits");
    assert_eq!(count(&mut w, "DriveMetadataLost"), 1, "told once");
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert!(has_label(&w, "/f/b"));
    assert_eq!(count(&mut w, "LegJoined { pool: \"tank\", new: false, full: true }"), 1, "{:?}", w.events());
    synced(&mut w, 1);
    w.pass(LOOK);
    assert_eq!((w.legs(0), w.status().health), (vec![LegState::InSync; 2], State::Optimal));
}

/// What is written to a drive after somebody overwrote it does not say that it holds anything.
#[test]
fn records_and_configurations_that_were_written_since_prove_nothing() {
    let mut w = usual();
    w.pass(LOOK);
    wipe_all(&mut w, "/f/b");
    w.good(volume("vm2", 9 * MIB));
    w.good(Order::DriveFail { drive: "/f/c".into(), force: false });
    assert!(records(&w, "/f/b").iter().any(Option::is_some), "there is a record");
    w.pass(LOOK);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert!(bytes_at(&w, "/f/b", LABEL_AT).iter().all(|b| *b == 0), "nothing was written there");
}

#[test]
fn a_crash_in_a_return_after_a_label_was_lost_leaves_a_leg_that_is_copied_in_full() {
    let mut w = usual();
    wipe_all(&mut w, "/f/b");
    w.pass(LOOK);
    let effects = w.effects_done;
    let mut done = w.crash(2);
    drop(done.status());
    assert!(effects > 0);
    // After a restart nothing tells which drive it was.
    let (kind, _, message) = done.refused(Order::DriveReturn { drive: "/f/b".into() });
    assert!(kind == ErrorKind::Conflict && message.contains("LegMayNotReturn"), "{message}");
    done.good(Order::DriveReplace { old: "/f/b".into(), new: "/f/b".into(), force: true });
    assert_eq!(done.legs(0), [LegState::InSync, LegState::Rebuilding]);
}

#[test]
fn the_last_leg_is_left_alone_until_its_label_is_restored_by_order() {
    let mut w = single();
    w.good(volume("vm1", 9 * MIB));
    wipe_all(&mut w, "/f/a");
    w.pass(LOOK);
    assert!(bytes_at(&w, "/f/a", LABEL_AT).iter().all(|b| *b == 0), "nothing was written there");
    let s = w.status();
    assert_eq!(s.health, State::Degraded);
    assert!(s.reasons[0].said().contains("DriveMetadataLost") && s.reasons[0].said().contains("last: true"));
    w.pass(600);
    assert_eq!(count(&mut w, "DriveMetadataLost"), 1, "told once");
    let restore = |yes| Order::LabelRestore { drive: "/f/a".into(), yes, force: false };
    let (kind, field, message) = w.refused(restore(false));
    assert!(
        kind == ErrorKind::Unsafe && field == "yes" && message.contains("LabelRestoreUnconfirmed"),
        "{message}"
    );
    w.good(restore(true));
    assert_eq!((w.status().health, count(&mut w, "LabelRestored")), (State::Optimal, 1));
    let (kind, _, message) = w.refused(restore(true));
    assert!(kind == ErrorKind::Conflict && message.contains("LabelIntact"), "{message}");
    let restored = records(&w, "/f/a");
    assert!(restored[0].is_some() && restored[0] == restored[1], "a torn write leaves one");
    let mut w = w.crash(2);
    let s = w.status();
    assert_eq!(
        (s.health, s.pools.len()),
        (State::Optimal, 1),
        "the next start finds the pool: {:?}",
        s.reasons
    );
    assert!(s.volumes.iter().any(|v| v.name == "tank/vm1"));
}

/// The drive was there, and was to be attached.
#[test]
fn a_pool_whose_only_drive_lost_its_label_before_the_start_says_so() {
    let mut w = single();
    w.good(volume("vm1", 9 * MIB));
    wipe_all(&mut w, "/f/a");
    let mut w = w.crash(2);
    let s = w.status();
    let why = "also: [LabelAbsent { drive: \"/f/a\" }], away: []";
    assert!(s.health == State::Offline && s.reasons[0].said().contains(why), "{:?}", s.reasons);
    for (drives, force) in [(vec![], false), (vec!["/f/a".to_string()], true)] {
        let import = Order::PoolImport { pool: Some("tank".into()), name: None, drives, force };
        let (kind, _, message) = w.refused(import);
        assert!(kind == ErrorKind::NotFound && message.contains(why), "{message}");
    }
}

/// `labelgone.sh`: nothing was said, and the pool was gone at the next start.
#[test]
fn where_both_legs_lost_their_labels_neither_is_put_out_and_one_is_restored_then_copied() {
    let mut w = usual();
    for path in ["/f/a", "/f/b"] {
        wipe(&mut w, path, 0, 4 * MIB);
        wipe(&mut w, path, 78 * MIB, 2 * MIB + 12288);
    }
    w.pass(LOOK);
    assert_eq!(w.legs(0), [LegState::InSync; 2], "nothing better is left");
    assert_eq!(w.status().health, State::Degraded);
    assert_eq!(count(&mut w, "DriveMetadataLost"), 2, "{:?}", w.events());
    for other in ["/f/a", "/f/b"] {
        let choice = format!("others: Some([{other:?}])");
        assert_eq!(count(&mut w, &choice), 1, "the operator chooses: {:?}", w.events());
    }
    w.good(Order::LabelRestore { drive: "/f/a".into(), yes: true, force: false });
    // The look of the order found one leg well, and left the other to the look after it: that one was said to be healthy.
    assert_eq!(w.status().health, State::Degraded);
    w.pass(LOOK);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    let told = w.happened_to("drive /f/b");
    assert!(!told.contains(&LegEvent::DriveHealthy.into()), "{told:?}");
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    synced(&mut w, 1);
    w.pass(LOOK);
    assert_eq!((w.legs(0), w.status().health), (vec![LegState::InSync; 2], State::Optimal));
    let mut w = w.crash(2);
    assert_eq!((w.legs(0), w.status().health), (vec![LegState::InSync; 2], State::Optimal));
}

#[test]
fn what_somebody_else_wrote_is_said_and_never_overwritten_unasked() {
    // A RAID of the kernel has its superblock where our label is.
    let md = 0xa92b_4efcu32.to_le_bytes();
    let holds = Signature::Md;
    let mut w = single();
    put(&mut w, "/f/a", LABEL_AT, &md);
    w.pass(120);
    let (owner, drive) = (DriveOwner::Signature { holds }, || "/f/a".to_string());
    let why = LegCause::DriveTakenOver { drive: drive(), owner: owner.clone(), last: true, others: None };
    let s = w.status();
    assert!(
        s.health == State::Degraded && s.reasons[0].said().contains(&format!("{why:?}")),
        "{:?}",
        s.reasons
    );
    assert_eq!(bytes_at(&w, "/f/a", LABEL_AT)[..4], md, "it is as it was");
    let (kind, field, _) = w.refused(Order::LabelRestore { drive: drive(), yes: true, force: false });
    assert_eq!((kind, field), (ErrorKind::Unsafe, "force".to_string()));
    w.good(Order::LabelRestore { drive: drive(), yes: true, force: true });
    assert!(has_label(&w, "/f/a"));
    let mut w = usual();
    put(&mut w, "/f/b", LABEL_AT, &md);
    w.pass(120);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert_eq!(bytes_at(&w, "/f/b", LABEL_AT)[..4], md, "it is as it was");
    let (_, _, message) = w.refused(Order::DriveReturn { drive: "/f/b".into() });
    assert!(message.contains("LegMayNotReturn"), "{message}");
    assert_eq!(bytes_at(&w, "/f/b", LABEL_AT)[..4], md, "it is as it was");
    let restore = Order::LabelRestore { drive: "/f/b".into(), yes: true, force: true };
    assert!(w.refused(restore).2.contains("LabelOfLegOut"));
}

#[test]
fn the_label_of_another_leg_is_somebody_elses() {
    let mut w = usual();
    let other = bytes_at(&w, "/f/a", LABEL_AT);
    put(&mut w, "/f/b", LABEL_AT, &other);
    w.pass(LOOK);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert_eq!(bytes_at(&w, "/f/b", LABEL_AT), other);
    assert_eq!(count(&mut w, "DriveTakenOver"), 1, "{:?}", w.events());
    assert!(matches!(w.status().reasons[0].cause, Cause::Status(_)));
}

#[test]
fn an_end_that_differs_from_the_other_legs_is_lost() {
    let mut w = usual();
    put(&mut w, "/f/a", 78 * MIB, &[7; 4096]);
    let data_end = {
        let label = array::format::Label::decode(&bytes_at(&w, "/f/a", LABEL_AT)).expect("its label");
        label.data_at + label.data_bytes
    };
    // What hosts wrote last lies on both legs; one of them loses its end.
    for path in ["/f/a", "/f/b"] {
        put(&mut w, path, data_end - 4096, &[9; 4096]);
    }
    wipe(&mut w, "/f/b", data_end - 8192, BYTES);
    w.pass(LOOK);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert!(w.status().reasons[0].said().contains("areas: [End]"), "{:?}", w.status().reasons);
}

#[test]
fn a_signature_in_front_of_a_label_that_is_whole_is_somebody_elses_too() {
    let mut w = usual();
    // A file system of small blocks begins so.
    let mut ext = vec![0; 512];
    ext[56..58].copy_from_slice(b"\x53\xef");
    put(&mut w, "/f/b", 1024, &ext);
    w.pass(LOOK);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert_eq!(count(&mut w, "DriveTakenOver"), 1, "{:?}", w.events());
    let mut after = World::start(w.rest.clone(), 2);
    for w in [&mut w, &mut after] {
        let (_, _, message) = w.refused(Order::DriveReturn { drive: "/f/b".into() });
        assert!(message.contains("LegMayNotReturn"), "{message}");
        assert_eq!(bytes_at(w, "/f/b", 1024)[..512], ext, "it is as it was");
        // Nobody needs it, and yet it may have been written to.
        wipe(w, "/f/b", 0, LABEL_AT);
        w.good(Order::DriveReturn { drive: "/f/b".into() });
        assert_eq!(count(w, "LegJoined { pool: \"tank\", new: false, full: true }"), 1, "{:?}", w.events());
        synced(w, 1);
        w.pass(LOOK);
        assert_eq!((w.legs(0), w.status().health), (vec![LegState::InSync; 2], State::Optimal));
    }
}

#[test]
fn records_that_are_gone_beside_a_label_that_is_whole_are_lost() {
    let mut w = usual();
    for at in MEMBERSHIP_AT {
        wipe(&mut w, "/f/b", at, RECORD_BYTES as u64);
    }
    w.pass(LOOK);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert!(w.status().reasons[0].said().contains("areas: [Records]"), "{:?}", w.status().reasons);
}

fn with_spare() -> World {
    let mut w = World::start(drives(&["/f/a", "/f/b", "/f/c"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    w.good(Order::SpareAdd { pool: "tank".into(), drive: "/f/c".into(), force: false });
    w
}

#[test]
fn a_copy_of_a_spares_label_is_written_again() {
    for at in [LABEL_AT, label_copy_at(BYTES)] {
        let mut w = with_spare();
        wipe(&mut w, "/f/c", at, RECORD_BYTES as u64);
        w.pass(LOOK);
        assert!(has_label(&w, "/f/c"), "at {at}");
        assert_eq!(count(&mut w, "LabelRewritten"), 1, "{:?}", w.events());
        assert_eq!(w.status().health, State::Optimal);
    }
}

#[test]
fn a_spare_whose_label_is_overwritten_can_stand_in_for_nobody_and_says_so() {
    for owner in [None, Some(DriveOwner::Signature { holds: Signature::Md })] {
        let mut w = with_spare();
        wipe_all(&mut w, "/f/c");
        if owner.is_some() {
            put(&mut w, "/f/c", LABEL_AT, &0xa92b_4efcu32.to_le_bytes());
        }
        let was = w.rest.drives["/f/c"].blocks.clone();
        w.pass(120);
        assert_eq!(w.status().health, State::Degraded);
        let why = LegCause::SpareLabelOverwritten { spare: "/f/c".into(), pool: "tank".into(), owner };
        assert_eq!(count(&mut w, &format!("{why:?}")), 1, "{:?}", w.events());
        assert_eq!(w.rest.drives["/f/c"].blocks, was, "nothing was written there");
    }
}
