//! Files of the state directory that are not there: nothing is lost unnoticed, and what the others know is used.

use super::*;
use crate::order::Reason;
use crate::steward::record::texts::pools_file;
use finding::{Cause, FileFault, PoolNotice, RecordCause, RecordNotice};

fn file(w: &World, name: &str) -> String {
    String::from_utf8(w.rest.files.get(name).cloned().unwrap_or_default()).expect("text")
}
fn has(w: &World, prefix: &str) -> bool {
    w.rest.files.keys().any(|n| n.starts_with(prefix))
}
/// What is said of the state directory.
fn told(w: &mut World) -> Vec<Reason> {
    w.status().reasons.into_iter().filter(|r| r.what == "state directory").collect()
}
fn release() -> Order {
    Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false }
}
fn stopped() -> Rest {
    let mut w = usual();
    w.good(Order::Shutdown);
    w.rest
}

#[test]
fn pools_that_their_list_does_not_name_are_found_by_what_was_kept_for_the_hosts() {
    for empty in [false, true] {
        let mut rest = stopped();
        if empty {
            drop(rest.files.insert("pools".into(), pools_file("pools", &[], &[])))
        } else {
            drop(rest.files.remove("pools"))
        }
        let mut w = World::start(rest, 2);
        assert!(w.view.hosts[0].exports[0].ready, "its drives are this head's");
        let told = told(&mut w);
        assert!(
            told.len() == 1
                && matches!(&told[0].cause, Cause::Record(RecordCause::PoolsFound { pools, .. }) if *pools == ["tank"]),
            "{told:?}"
        );
        assert!(w.events().iter().any(|e| e.contains("PoolsFound")));
        assert_eq!(w.status().health, State::Degraded);
        assert!(file(&w, "pools").contains("name = \"tank\""), "it is listed again");
        assert_eq!(w.crash(3).status().health, State::Optimal);
    }
}

#[test]
fn a_lost_pool_whose_drives_are_away_is_shown_and_keeps_its_exports() {
    let mut rest = stopped();
    rest.files.remove("pools");
    let away = core::mem::take(&mut rest.drives);
    let mut w = World::start(rest, 2);
    let s = w.status();
    assert_eq!((s.pools[0].name.as_str(), s.pools[0].state), ("tank", State::Offline));
    assert!(!w.view.hosts[0].exports[0].ready && s.hosts[0].exports.len() == 1);
    assert!(s.reasons.iter().any(|r| r.said().contains("away: [\"/f/a\"")));
    w.rest.drives = away;
    w.pass(65);
    assert!(w.view.hosts[0].exports[0].ready, "it is imported by itself");
}

#[test]
fn a_damaged_list_of_pools_is_not_written_over_and_keeps_no_pool_away() {
    let mut rest = stopped();
    rest.files.insert("pools".into(), b"[pool tank]\nname = tank\n".to_vec());
    let damaged = rest.files["pools"].clone();
    rest.drives.extend(drives(&["/f/x", "/f/y"]).drives);
    let mut w = World::start(rest, 2);
    assert!(w.view.hosts[0].exports[0].ready);
    assert!(told(&mut w).iter().any(|r| {
        matches!(&r.cause, Cause::Record(RecordCause::FileUnreadable { file, why: FileFault::NoEnd, .. }) if file == "pools")
    }));
    let destroy = Order::PoolDestroy { pool: "tank".into(), force: true, disconnect: false };
    for order in [create("other", vec![mirror("/f/x", "/f/y")]), release(), destroy] {
        let (kind, _, words) = w.refused(order);
        assert!(kind == ErrorKind::Conflict && words.contains("FileNotWrittenOver"), "{words}");
    }
    w.good(volume("vm2", 5 * MIB));
    assert_eq!(w.rest.files["pools"], damaged);
}

#[test]
fn a_missing_identity_is_told_whatever_else_is_missing_and_takes_nothing_away() {
    for also in [&["identity"][..], &["identity", "pools"], &["identity", "pools", "hosts"]] {
        let mut rest = stopped();
        also.iter().for_each(|name| drop(rest.files.remove(*name)));
        let mut w = World::start(rest, 2);
        let told = told(&mut w);
        assert!(
            told.iter().any(|r| r.cause == RecordCause::IdentityMissing { file: "identity".into() }.into()),
            "{told:?}"
        );
        assert!(w.layout.arrays.is_empty() && w.status().pools[0].state == State::Offline);
        assert!(has(&w, "config-") && has(&w, "witness-"));
    }
    let mut w = World::start(Rest::default(), 2);
    assert!(told(&mut w).is_empty(), "a first start has lost nothing");
}

#[test]
fn a_missing_file_of_hosts_is_told_with_those_who_are_not_let_in() {
    let mut rest = stopped();
    rest.files.remove("hosts");
    let mut w = World::start(rest, 2);
    let reasons = told(&mut w);
    let says = |what: &str| reasons.iter().any(|r| r.said().contains(what));
    assert!(
        reasons.len() == 2
            && says("FileMissing")
            && says("HostsMissing")
            && says("iqn.1998-01.com.example:esx1"),
        "{reasons:?}"
    );
    w.pass(70);
    assert!(!has(&w, "hosts"), "nobody but an order makes it anew");
    w.good(host());
    assert!(told(&mut w).is_empty(), "the host is known again, and the file is there");
    assert!(told(&mut w.crash(3)).is_empty());
}

/// It was told as missing until the next start.
#[test]
fn a_missing_file_is_told_until_an_order_writes_it() {
    let mut rest = stopped();
    ["hosts", "portals"].iter().for_each(|name| drop(rest.files.remove(*name)));
    let mut w = World::start(rest, 2);
    let missing = |w: &mut World| {
        let file = |r: Reason| match r.cause {
            Cause::Record(RecordCause::FileMissing { file, .. }) => Some(file),
            _ => None,
        };
        told(w).into_iter().filter_map(file).collect::<Vec<_>>()
    };
    assert_eq!(missing(&mut w), ["hosts", "portals"]);
    w.good(Order::PortalAdd {
        protocol: Protocol::Iscsi,
        address: "10.0.0.1:3260".parse().expect("an address"),
        moves: None,
        head: None,
    });
    assert_eq!(missing(&mut w), ["hosts"]);
    w.good(host());
    assert_eq!(missing(&mut w), [""; 0]);
    assert_eq!(w.status().health, State::Optimal, "{:?}", w.status().reasons);
}

#[test]
fn a_directory_that_was_restored_from_an_old_copy_is_told_and_proves_nothing() {
    let mut w = usual();
    let old = w.rest.files.clone();
    for leg in [1, 3] {
        let array = w.layout.arrays[leg / 2].id;
        let epoch = w.layout.arrays[leg / 2].membership.epoch;
        w.note(1, array, Note::LegFailed { leg: leg % 2, epoch, error: DriveError::Gone });
        w.run();
    }
    w.good(Order::Shutdown);
    let mut rest = w.rest;
    rest.files = old;
    let mut w = World::start(rest.clone(), 2);
    let older: finding::Notice = RecordNotice::StateOlderThanPool { pool: "tank".into() }.into();
    assert_eq!(w.status().notices.iter().filter(|n| n.notice == older).count(), 1);
    assert!(w.events().iter().any(|e| e.contains("StateOlderThanPool")));
    assert_eq!(w.legs(0)[0], LegState::InSync);
    assert_ne!(w.legs(0)[1], LegState::InSync);
    // A leg that went beside one that stayed, with the word of then: the other mirror knows of later changes.
    rest.drives.remove("/f/a");
    let mut w = World::start(rest, 3);
    assert!(w.layout.arrays.is_empty() && w.status().health == State::Offline);
}

/// It was told by the log alone.
#[test]
fn a_damaged_witness_is_named_until_the_next_start() {
    let mut rest = stopped();
    let file = rest.files.keys().find(|n| n.starts_with("witness-")).expect("it is there").clone();
    rest.files.get_mut(&file).expect("it is there").truncate(40);
    let mut w = World::start(rest, 2);
    assert!(w.rest.files[&file].len() > 40, "the first record replaces it");
    let damaged = RecordCause::WitnessDamaged { path: format!("/s/{file}"), file };
    let notice: finding::Notice = PoolNotice::WitnessUnreadable { why: Box::new(damaged.into()) }.into();
    let s = w.status();
    assert_eq!(s.health, State::Optimal, "every leg is here: {:?}", s.reasons);
    assert_eq!(s.notices.iter().filter(|n| n.notice == notice).count(), 1, "{:?}", s.notices);
    assert!(w.crash(3).status().notices.iter().all(|n| n.notice != notice));
}

/// It said that there is no such host, and advised to add one, which was refused.
#[test]
fn what_cannot_be_read_is_not_said_to_be_missing() {
    let mut rest = stopped();
    for name in ["hosts", "portals"] {
        rest.files.get_mut(name).expect("it is there").truncate(20);
    }
    let mut w = World::start(rest, 2);
    let (host, disconnect) = (|| "esx1".to_string(), true);
    let address = "10.0.0.1:3260".parse().expect("an address");
    for (file, order) in [
        ("hosts", Order::HostSet { name: host(), settings: HostSettings::default(), disconnect }),
        ("hosts", Order::HostCheck { name: host(), chap_secret: None, mutual_secret: None }),
        ("hosts", Order::HostRemove { name: host(), force: true, disconnect }),
        ("hosts", export()),
        ("hosts", Order::Unexport { volume: "tank/vm1".into(), host: host(), disconnect }),
        ("portals", Order::PortalRemove { protocol: Protocol::Iscsi, address, disconnect }),
    ] {
        let (kind, _, words) = w.refused(order);
        let told = format!("FileNotRead {{ why: Record(FileUnreadable {{ file: \"{file}\"");
        assert!(kind == ErrorKind::Conflict && words.contains(&told), "{words}");
    }
}

/// Orders after the usual ones, cut off after every effect: what is there at the next start is what was before, or
/// what was asked for, and nothing is called lost.
fn cut(orders: &[Order], check: impl Fn(&mut World, bool, u64)) {
    let (begin, end) = {
        let mut w = usual();
        let begin = w.effects_done;
        orders.iter().for_each(|o| drop(w.good(o.clone())));
        (begin, w.effects_done)
    };
    for n in begin..=end {
        let mut w = World::power_on(four(), 1, n);
        w.run();
        for order in [tank(), volume("vm1", 9 * MIB), host(), export()].iter().chain(orders) {
            w.send(order.clone());
            w.run();
        }
        let done = w.answers.len() == 4 + orders.len();
        let mut w = w.crash(2);
        assert!(told(&mut w).is_empty(), "cut after effect {n}: {:?}", told(&mut w));
        check(&mut w, done, n);
    }
}

#[test]
fn an_import_that_is_cut_off_has_happened_or_not() {
    cut(&[release(), import(&[], false)], |w, done, n| {
        let there = !w.status().pools.is_empty();
        assert!(there || !done, "cut after effect {n}");
        if !there {
            w.good(import(&[], false));
        }
        assert_eq!(w.status().health, State::Optimal, "cut after effect {n}");
    });
}

#[test]
fn a_pool_that_is_made_or_destroyed_leaves_nothing_that_is_called_lost() {
    let destroy = Order::PoolDestroy { pool: "tank".into(), force: true, disconnect: false };
    cut(&[destroy], |w, done, n| {
        assert!(!done || w.status().pools.is_empty() && !has(w, "config-"), "cut after effect {n}");
    });
    for n in World::start(four(), 1).effects_done.. {
        let mut w = World::power_on(four(), 1, n);
        w.run();
        w.send(tank());
        w.run();
        let (answered, over) = (!w.answers.is_empty(), w.effects_left > 0);
        let mut w = w.crash(2);
        assert!(told(&mut w).is_empty(), "cut after effect {n}: {:?}", told(&mut w));
        assert!(!answered || w.status().pools.len() == 1, "cut after effect {n}");
        if over {
            break;
        }
    }
}
