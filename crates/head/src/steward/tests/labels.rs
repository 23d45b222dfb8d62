//! Labels of drives in use that somebody writes over: said within seconds, mended where that is safe, and never a stranger's bytes.

use super::*;
use array::format::{BITMAP_AT, CONFIG_AT, LABEL_AT, Label, MEMBERSHIP_AT, label_copy_at, tail_at};
use finding::{Cause, Signature, Written};

/// Somebody writes these bytes to a drive.
fn write(w: &mut World, drive: &str, at: u64, bytes: &[u8]) {
    let blocks = &mut w.rest.drives.get_mut(drive).expect("there").blocks;
    for (i, block) in bytes.chunks(512).enumerate() {
        blocks.insert(at / 512 + i as u64, block.to_vec());
    }
}
fn read(w: &World, drive: &str, at: u64, len: u64) -> Vec<u8> {
    let blocks = &w.rest.drives[drive].blocks;
    let one = |b: u64| blocks.get(&b).cloned().unwrap_or(vec![0; 512]);
    (at / 512..(at + len) / 512).flat_map(one).collect()
}
fn zero(w: &mut World, drive: &str, at: u64, len: u64) {
    write(w, drive, at, &vec![0; len as usize]);
}
/// All in front of the bitmap, and the last MiB, as by `dd` and `blkdiscard`.
fn zero_ends(w: &mut World, drive: &str) {
    let bytes = w.rest.drives[drive].bytes;
    zero(w, drive, 0, BITMAP_AT);
    zero(w, drive, tail_at(bytes), MIB);
}
fn label(w: &World, drive: &str) -> [Vec<u8>; 2] {
    let bytes = w.rest.drives[drive].bytes;
    [LABEL_AT, label_copy_at(bytes)].map(|at| read(w, drive, at, 4096))
}
fn cause_of(w: &mut World, drive: &str) -> Option<Cause> {
    w.status().drives.into_iter().find(|d| d.path == drive).expect("listed").cause
}
fn overwritten(drive: &str, written: Written, last: bool) -> Option<Cause> {
    Some(LegCause::DriveOverwrittenInUse { drive: drive.into(), written, last }.into())
}
fn restore(drive: &str, force: bool, disconnect: bool) -> Order {
    Order::DriveRestoreLabel { drive: drive.into(), force, disconnect }
}
fn one() -> World {
    let mut w = World::start(drives(&["/f/a"]), 1);
    let single =
        ArraySpec { layout: crate::order::ArrayLayout::Single, drives: vec!["/f/a".into()], weight: None };
    w.good(create("tank", vec![single]));
    w.good(volume("vm1", 9 * MIB));
    w
}

#[test]
fn blocks_of_a_label_that_were_overwritten_are_written_again_and_that_is_said() {
    for which in [vec![0], vec![1], vec![0, 1]] {
        let mut w = usual();
        let good = label(&w, "/f/a");
        let places = [LABEL_AT, label_copy_at(w.rest.drives["/f/a"].bytes)];
        for i in &which {
            zero(&mut w, "/f/a", places[*i], 4096);
        }
        w.pass(6);
        assert_eq!(label(&w, "/f/a"), good, "{which:?}");
        assert_eq!(w.status().health, State::Degraded, "it is said until it was looked at once more");
        w.pass(6);
        assert_eq!(w.status().health, State::Optimal);
        let told = w.happened_to("drive /f/a");
        let rewritten = |e: &crate::order::Event| e.said().contains("LabelRewritten");
        assert_eq!(told.iter().filter(|e| rewritten(e)).count(), 1, "{told:?}");
        assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
        assert_eq!(w.crash(2).legs(0), [LegState::InSync, LegState::InSync]);
    }
}

#[test]
fn a_leg_whose_records_are_gone_too_is_put_out_and_copied_in_full_on_order_alone() {
    let mut w = usual();
    zero_ends(&mut w, "/f/b");
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert_eq!(cause_of(&mut w, "/f/b"), overwritten("/f/b", Written::Bytes, false));
    assert!(read(&w, "/f/b", 0, BITMAP_AT).iter().all(|b| *b == 0), "nothing is written there by itself");
    w.pass(600);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing], "it does not come back by itself");
    let mut w = w.crash(2);
    w.pass(60);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    let refused = w.refused(restore("/f/b", true, true));
    assert!(refused.2.contains("LabelOfLegOut"), "{refused:?}");
    w.good(Order::DriveReplace { old: "/f/b".into(), new: "/f/b".into(), force: true });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    let resync = w.status().pools[0].arrays[0].resync.clone().expect("it is copied");
    assert!(!resync.partial, "everything is");
}

#[test]
fn what_nothing_else_holds_stays_in_use_with_an_alarm_and_an_order_restores_it() {
    let mut w = one();
    let (good, bytes) = (label(&w, "/f/a"), w.rest.drives["/f/a"].bytes);
    zero_ends(&mut w, "/f/a");
    w.pass(6);
    let told = cause_of(&mut w, "/f/a");
    assert_eq!(told, overwritten("/f/a", Written::Bytes, true));
    assert_eq!(w.status().health, State::Degraded);
    w.pass(60);
    for at in [LABEL_AT, label_copy_at(bytes)] {
        assert!(read(&w, "/f/a", at, 4096).iter().all(|b| *b == 0), "nothing is written by itself");
    }
    let (kind, field, said) = w.refused(restore("/f/a", false, false));
    assert_eq!((kind, field.as_str()), (ErrorKind::Unsafe, "disconnect"), "{said}");
    w.good(restore("/f/a", false, true));
    assert_eq!(label(&w, "/f/a"), good);
    assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
    assert!(
        w.log.iter().any(|l| l.starts_with("rewrite 0")) && w.log.iter().any(|l| l.starts_with("rewrite 1"))
    );
    assert!(w.happened_to("drive /f/a").iter().any(|e| e.said().contains("LabelRestored")));
    let refused = w.refused(restore("/f/a", false, true));
    assert!(refused.2.contains("LabelWhole"), "{refused:?}");
    let mut w = w.crash(2);
    assert_eq!(
        (w.status().health, w.layout.volumes.len()),
        (State::Optimal, 1),
        "the next start finds all of it"
    );
}

#[test]
fn both_legs_at_once_stay_in_use_and_the_orders_that_status_names_mend_them() {
    let mut w = usual();
    for drive in ["/f/a", "/f/b"] {
        zero_ends(&mut w, drive);
    }
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync], "none of them is known to be the better one");
    for drive in ["/f/a", "/f/b"] {
        assert_eq!(cause_of(&mut w, drive), overwritten(drive, Written::Bytes, true));
    }
    w.good(restore("/f/a", false, true));
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing], "there is a sound one now");
    w.good(Order::DriveReplace { old: "/f/b".into(), new: "/f/b".into(), force: true });
    synced(&mut w, 1);
    w.pass(6);
    assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
    let w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
}

#[test]
fn bytes_of_somebody_else_are_an_alarm_and_are_never_written_over_by_itself() {
    let ext4 = || {
        let mut bytes = vec![0x5a; 16384];
        bytes[1024 + 56..1024 + 58].copy_from_slice(b"\x53\xef");
        (0, bytes, Written::Holds { holds: Signature::Ext })
    };
    let other = |w: &World| {
        let bytes = w.rest.drives["/f/a"].bytes;
        let label = Label {
            pool: base::Uuid([7; 16]),
            drive: base::Uuid([8; 16]),
            legs: 1,
            block_bytes: 512,
            data_at: 8 * MIB,
            data_bytes: 16 * MIB,
            region_bytes: MIB,
            pool_name: "other".into(),
            ..Label::usual(bytes)
        };
        (LABEL_AT, label.encode(), Written::Label { pool: "other".into() })
    };
    for which in 0..2 {
        let mut w = one();
        let (at, bytes, written) = if which == 0 { ext4() } else { other(&w) };
        write(&mut w, "/f/a", at, &bytes);
        w.pass(6);
        assert_eq!(cause_of(&mut w, "/f/a"), overwritten("/f/a", written, true));
        // Whatever is decided meanwhile goes elsewhere, or is refused.
        let _ = w.order(volume("vm2", 5 * MIB));
        w.pass(120);
        assert_eq!(read(&w, "/f/a", at, bytes.len() as u64), bytes, "case {which}");
        let (kind, field, said) = w.refused(restore("/f/a", false, true));
        assert_eq!((kind, field.as_str()), (ErrorKind::Unsafe, "force"), "{said}");
        w.good(restore("/f/a", true, true));
        assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
        assert_eq!(w.crash(2).status().health, State::Optimal);
    }
    // A leg that another one stands in for is put out, which is on record elsewhere.
    let mut w = usual();
    let (at, bytes, written) = ext4();
    write(&mut w, "/f/b", at, &bytes);
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    assert_eq!(cause_of(&mut w, "/f/b"), overwritten("/f/b", written, false));
    w.good(volume("vm2", 5 * MIB));
    assert_eq!(read(&w, "/f/b", at, bytes.len() as u64), bytes);
}

#[test]
fn a_signature_in_front_of_a_whole_label_is_an_alarm() {
    let mut w = usual();
    let mut bytes = vec![0; 4096];
    bytes[..4].copy_from_slice(b"XFSB");
    write(&mut w, "/f/a", 0, &bytes);
    w.pass(6);
    let holds = Signature::Xfs;
    assert_eq!(
        cause_of(&mut w, "/f/a"),
        Some(LegCause::FrontOverwritten { drive: "/f/a".into(), holds }.into())
    );
    assert_eq!(read(&w, "/f/a", 0, 4096), bytes);
    w.good(restore("/f/a", true, true));
    assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
}

#[test]
fn records_alone_that_are_gone_count_as_more_than_the_label() {
    let mut w = usual();
    for at in MEMBERSHIP_AT {
        zero(&mut w, "/f/b", at, 4096);
    }
    w.pass(6);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Missing]);
    w.good(Order::DriveReturn { drive: "/f/b".into() });
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert!(!w.status().pools[0].arrays[0].resync.clone().expect("it is copied").partial);
}

#[test]
fn wherever_the_power_goes_while_a_label_is_restored_the_drive_is_found_or_as_lost_as_before() {
    let mut w = one();
    zero_ends(&mut w, "/f/a");
    w.pass(6);
    let start = w.effects_done;
    let rest = w.rest.clone();
    w.good(restore("/f/a", false, true));
    let effects = w.effects_done - start;
    drop(rest);
    let mut found = 0;
    for cut in (0..effects).step_by(3) {
        let mut w = one();
        zero_ends(&mut w, "/f/a");
        w.pass(6);
        w.effects_left = cut;
        w.send(restore("/f/a", false, true));
        w.run();
        let mut w = w.crash(2);
        w.pass(20);
        let status = w.status();
        let served = !status.pools[0].arrays.is_empty();
        found += u32::from(served);
        assert!(!served || w.layout.volumes.len() == 1, "cut at {cut}");
    }
    assert!(found > 0, "the last cuts come behind the label");
}

#[test]
fn a_spare_whose_label_was_overwritten_is_told_or_mended() {
    let mut rest = four();
    rest.drives.extend(drives(&["/f/s"]).drives);
    let mut w = World::start(rest, 1);
    w.good(tank());
    w.good(Order::SpareAdd { pool: "tank".into(), drive: "/f/s".into(), force: false });
    let good = label(&w, "/f/s");
    zero(&mut w, "/f/s", LABEL_AT, 4096);
    w.pass(6);
    assert_eq!(label(&w, "/f/s"), good);
    w.pass(6);
    assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
    zero(&mut w, "/f/s", 0, CONFIG_AT[0]);
    zero_ends(&mut w, "/f/s");
    w.pass(6);
    assert!(w.status().reasons[0].said().contains("SpareLabelOverwritten"), "{:?}", w.status().reasons);
    assert!(read(&w, "/f/s", LABEL_AT, 4096).iter().all(|b| *b == 0));
}
