//! Files that are removed from the state directory or damaged there under a running head.

use super::*;
use crate::mail::Unmended;
use crate::order::Reason;
use finding::{Cause, FileFault, Notice, RecordCause, RecordNotice};

fn told(w: &mut World) -> Vec<Reason> {
    w.status().reasons.into_iter().filter(|r| r.what == "state directory").collect()
}
/// A head as usual, with a portal and a pool that was let go of.
fn all_files() -> World {
    let mut rest = four();
    rest.drives.extend(drives(&["/g/a", "/g/b"]).drives);
    let mut w = World::start(rest, 1);
    w.good(create("gone", vec![mirror("/g/a", "/g/b")]));
    w.good(Order::PoolRelease { pool: "gone".into(), force: false, disconnect: false });
    let portal = Order::PortalAdd {
        protocol: Protocol::Iscsi,
        address: "10.0.0.1:3260".parse().expect("an address"),
        moves: None,
        head: None,
    };
    for order in [tank(), volume("vm1", 9 * MIB), host(), export(), portal] {
        w.good(order);
    }
    w.pass(5);
    w
}

#[test]
fn files_that_are_removed_under_a_running_head_are_told_within_seconds_and_written_again() {
    let names: Vec<String> = all_files().rest.files.keys().cloned().collect();
    assert!(names.len() >= 8, "{names:?}");
    let each = names.iter().map(|n| vec![n.clone()]);
    for gone in each.chain([names.clone()]) {
        let mut w = all_files();
        let before = w.rest.files.clone();
        gone.iter().for_each(|n| drop(w.rest.files.remove(n)));
        w.pass(3);
        let now: Vec<&String> = w.rest.files.keys().collect();
        assert!(names.iter().all(|n| now.contains(&n)), "{gone:?}: {now:?}");
        for (name, bytes) in &before {
            // The log goes on, and the witness is of a later record.
            let same = w.rest.files[name] == *bytes;
            assert!(same || name == "events" || name.starts_with("witness-"), "{name}");
        }
        assert!(w.rest.files["events"].starts_with(&before["events"]), "{gone:?}");
        let s = w.status();
        assert!(s.notices.iter().any(|n| n.notice.name() == "FilesRestored"), "{:?}", s.notices);
        assert_eq!(s.health, State::Optimal, "{gone:?}: {:?}", s.reasons);
        assert!(w.events().iter().any(|e| e.contains("FilesRemoved")));
        // And nothing was lost by it.
        let mut w = w.crash(2);
        assert!(told(&mut w).is_empty(), "{gone:?}: {:?}", told(&mut w));
        let s = w.status();
        assert_eq!((s.health, s.hosts.len(), s.portals.len()), (State::Optimal, 1, 1));
        assert!(w.view.hosts[0].exports[0].ready);
    }
}

/// The files are cut off, and the manager sees it, in two looks before the head gets to it.
fn cut_off(w: &mut World, names: &[&str]) {
    for name in names {
        let file = w.rest.files.get_mut(*name).expect("it is there");
        file.truncate(file.len() / 2);
    }
    let damaged = |name: &&str| {
        let (file, path) = (name.to_string(), format!("/s/{name}"));
        let why = RecordCause::FileUnreadable { file: file.clone(), path, why: FileFault::NoEnd };
        Unmended { file, why: why.into() }
    };
    for _ in 0..2 {
        let failed = names.iter().map(damaged).collect();
        let mail = StewardMail::Renewed { again: vec![], failed };
        w.events.push_back(Event::Mail { from: Address::Manager, mail: mail.into() });
    }
    w.pass(3);
}

/// The one good copy was what the head knew, and the advice was to stop the head.
#[test]
fn files_that_are_damaged_under_a_running_head_are_written_again() {
    let before = all_files().rest.files;
    // Whoever reads the log passes over what is damaged.
    let names: Vec<&str> = before.keys().map(String::as_str).filter(|n| *n != "events").collect();
    for damaged in names.iter().map(std::slice::from_ref).chain([&names[..]]) {
        let mut w = all_files();
        cut_off(&mut w, damaged);
        for name in damaged {
            // The witness is of a later record.
            let same = w.rest.files[*name] == before[*name];
            assert!(same || name.starts_with("witness-"), "{name}");
        }
        let s = w.status();
        assert!(s.notices.iter().any(|n| n.notice.name() == "FilesRestored"), "{:?}", s.notices);
        assert_eq!(s.health, State::Optimal, "{damaged:?}: {:?}", s.reasons);
        let events = w.events();
        let count = |word: &str| events.iter().filter(|e| e.contains(word)).count();
        assert_eq!((count("FilesDamaged"), count("FilesRestored")), (1, 1), "{damaged:?}");
        // And nothing was lost by it.
        let mut w = w.crash(2);
        assert!(told(&mut w).is_empty(), "{damaged:?}: {:?}", told(&mut w));
        let s = w.status();
        assert_eq!((s.health, s.hosts.len(), s.portals.len()), (State::Optimal, 1, 1));
        assert!(w.view.hosts[0].exports[0].ready);
    }
}

#[test]
fn a_file_that_was_damaged_at_the_start_is_not_written_again() {
    let mut w = all_files();
    w.rest.files.get_mut("hosts").expect("it is there").truncate(20);
    let mut w = w.crash(2);
    cut_off(&mut w, &["hosts"]);
    w.pass(70);
    assert_eq!(w.rest.files["hosts"].len(), 10);
    assert!(!w.events().iter().any(|e| e.contains("FilesDamaged")));
    let unread = |r: &Reason| matches!(r.cause, Cause::Record(RecordCause::FileUnreadable { .. }));
    assert!(told(&mut w).iter().any(unread));
}

#[test]
fn what_the_head_removes_itself_was_not_removed_by_others() {
    let mut w = all_files();
    for order in [
        Order::Unexport { volume: "tank/vm1".into(), host: "esx1".into(), disconnect: true },
        Order::PoolRelease { pool: "tank".into(), force: false, disconnect: true },
        import(&["/f/a", "/f/b", "/f/c", "/f/d"], false),
        Order::PoolDestroy { pool: "tank".into(), force: true, disconnect: true },
    ] {
        w.good(order);
        w.pass(3);
    }
    assert!(told(&mut w).is_empty() && !w.events().iter().any(|e| e.contains("FilesRemoved")));
}

#[test]
fn the_witness_of_a_pool_that_is_away_is_told_and_not_made_up() {
    let mut w = usual();
    w.good(Order::Shutdown);
    let mut rest = w.rest;
    rest.drives.clear();
    let mut w = World::start(rest, 2);
    let gone: Vec<String> = w.rest.files.keys().filter(|n| n.contains('-')).cloned().collect();
    assert_eq!(gone.len(), 2, "a witness and what is kept");
    let before = w.rest.files.clone();
    gone.iter().for_each(|n| drop(w.rest.files.remove(n)));
    w.pass(3);
    let told = told(&mut w);
    let [Reason { cause: Cause::Record(RecordCause::FileNotRestored { file, why }), .. }] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(file.starts_with("witness-"), "{told:?}");
    assert_eq!(**why, RecordCause::WitnessPoolAway.into());
    for name in gone {
        assert_eq!(w.rest.files.get(&name), before.get(&name).filter(|_| name.starts_with("config-")));
    }
}

#[test]
fn a_witness_that_is_damaged_while_its_pool_is_away_is_told_and_not_made_up() {
    let mut w = usual();
    w.good(Order::Shutdown);
    let mut w = World::start(Rest { drives: BTreeMap::new(), ..w.rest }, 2);
    let witness = w.rest.files.keys().find(|n| n.starts_with("witness-")).expect("there").clone();
    cut_off(&mut w, &[&witness]);
    let why = Box::new(RecordCause::WitnessPoolAway.into());
    let causes: Vec<Cause> = told(&mut w).into_iter().map(|r| r.cause).collect();
    assert_eq!(causes, [RecordCause::FileNotRestored { file: witness, why }.into()]);
}

/// The rule of docs/formats/membership.md: what proves a leg never outlives a loss that it does not know of.
#[test]
fn a_leg_that_is_lost_while_the_witness_is_away_is_on_record_in_the_new_one() {
    let mut w = usual();
    w.pass(5);
    let witness = w.rest.files.keys().find(|n| n.starts_with("witness-")).expect("there").clone();
    w.rest.files.remove(&witness);
    lose(&mut w, 0);
    w.pass(3);
    assert!(w.rest.files.contains_key(&witness));
    let mut rest = w.rest;
    rest.drives.remove("/f/b");
    let mut w = World::start(rest, 3);
    assert!(w.layout.arrays.is_empty() && w.status().health == State::Offline, "/f/a was put out");
}

#[test]
fn a_file_that_cannot_be_written_again_degrades_the_head_until_somebody_helps() {
    let mut w = all_files();
    w.rest.files.remove("hosts");
    w.rest.refused = Some("hosts");
    w.pass(3);
    let told = told(&mut w);
    assert_eq!(told.len(), 1, "{told:?}");
    let not_restored =
        |c: &RecordCause| matches!(c, RecordCause::FileNotRestored { file, .. } if file == "hosts");
    assert!(matches!(&told[0].cause, Cause::Record(c) if not_restored(c)), "{told:?}");
}

/// A sentence for each file filled the screen.
#[test]
fn files_that_are_removed_one_after_the_other_are_one_note() {
    let mut w = all_files();
    for name in ["hosts", "portals", "hosts"] {
        w.rest.files.remove(name);
        w.pass(3);
    }
    let notes = w
        .status()
        .notices
        .into_iter()
        .map(|n| n.notice)
        .filter(|n| n.name() == "FilesRestored")
        .collect::<Vec<_>>();
    let files = vec!["hosts".to_string(), "portals".to_string()];
    assert_eq!(notes, [Notice::from(RecordNotice::FilesRestored { files })]);
    let events = w.events();
    let count = |words: &str| events.iter().filter(|e| e.contains(words)).count();
    assert_eq!(
        (count(r#"FilesRemoved { files: ["hosts"] }"#), count(r#"FilesRestored { files: ["hosts"] }"#)),
        (2, 2)
    );
}

#[test]
fn what_the_daemon_keeps_in_the_directory_itself_is_told_as_other_files_are() {
    let mut w = all_files();
    let renewed = |w: &mut World, again: &[&str], failed: Option<RecordCause>| {
        let unmended = |why: RecordCause| Unmended { file: "lock".into(), why: why.into() };
        let mail = StewardMail::Renewed {
            again: again.iter().map(|f| f.to_string()).collect(),
            failed: failed.map(unmended).into_iter().collect(),
        };
        w.events.push_back(Event::Mail { from: Address::Manager, mail: mail.into() });
        w.pass(1);
    };
    renewed(&mut w, &["lock", "crashes"], None);
    let s = w.status();
    assert!(
        s.notices.iter().any(|n| {
            n.notice
                == crate::order::Notice::from(RecordNotice::FilesRestored {
                    files: vec!["crashes".into(), "lock".into()],
                })
        }),
        "{:?}",
        s.notices
    );
    assert_eq!(s.health, State::Optimal);
    let away = || RecordCause::LockNotMade { folder: "/s".into(), error: "no such file".into() };
    let taken = RecordCause::StateDirectoryTaken { pid: None };
    renewed(&mut w, &[], Some(taken.clone()));
    let why = Box::new(Cause::from(taken));
    let not_made = Cause::from(RecordCause::DaemonFileNotMade { file: "lock".into(), why });
    // Whatever else is tried again once the directory takes something: nobody but the daemon can make this.
    for _ in 0..2 {
        let told = told(&mut w);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].cause, not_made);
        w.pass(70);
    }
    renewed(&mut w, &["lock"], None);
    assert!(told(&mut w).is_empty());
    // A directory that was away for a moment, and is put back as it was: nobody had to make anything.
    renewed(&mut w, &[], Some(away()));
    assert_eq!(told(&mut w).len(), 1);
    renewed(&mut w, &["crashes"], Some(away()));
    assert_eq!(told(&mut w).len(), 1, "it is not healed yet");
    renewed(&mut w, &[], None);
    assert!(told(&mut w).is_empty());
}

#[test]
fn what_the_manager_says_is_in_the_log() {
    let mut w = all_files();
    let why = finding::AlarmFault::TimedOut { seconds: 15 };
    let dead = finding::SystemEvent::AlarmReceiverDead { receiver: "oncall".into(), tries: 3, why };
    let mail = StewardMail::Said { what: "alarm oncall".into(), event: dead.clone().into() };
    w.events.push_back(Event::Mail { from: Address::Manager, mail: mail.into() });
    w.pass(1);
    assert_eq!(w.happened_to("alarm oncall"), [crate::order::Event::from(dead)]);
}
