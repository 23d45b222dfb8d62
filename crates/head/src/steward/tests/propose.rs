//! What becomes of a change whose durable write fails, wholly or in part, and of one that is proposed again.

use super::*;
use crate::steward::state::{Change, Edit, Invalid, Pool, State};
use array::format::LegState as Leg;

fn decided(w: &World) -> State {
    w.steward.state().clone()
}
fn pool(state: &State) -> &Pool {
    &state.pools()[0]
}

#[test]
fn a_configuration_that_no_drive_takes_changes_nothing_and_its_generation_is_not_used_again() {
    let mut w = usual();
    let before = decided(&w);
    w.rest.drives.values_mut().for_each(|d| d.full = true);
    let (.., message) = w.refused(volume("second", 8 << 20));
    assert!(message.contains("NoDriveWritten { pool: \"tank\" }"), "{message}");
    assert_eq!(pool(&decided(&w)).config(), pool(&before).config(), "nothing has happened");
    w.rest.drives.values_mut().for_each(|d| d.full = false);
    w.good(volume("second", 8 << 20));
    let after = decided(&w);
    assert!(pool(&after).config().volumes.by_name("second").is_some());
    assert_eq!(
        pool(&after).generation(),
        pool(&before).generation() + 2,
        "above what a drive may have taken"
    );
}

#[test]
fn a_configuration_that_one_drive_takes_has_happened_and_the_other_is_put_out() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/b").expect("it is there").full = true;
    w.good(volume("second", 8 << 20));
    assert!(pool(&decided(&w)).config().volumes.by_name("second").is_some());
    let states =
        |state: &State| pool(state).record().arrays[0].legs.iter().map(|l| l.state).collect::<Vec<_>>();
    assert_eq!(states(&decided(&w)), [Leg::InSync, Leg::JustOut], "that is decided, too");
    let (config, record) = {
        let state = decided(&w);
        (pool(&state).config().clone(), pool(&state).record().clone())
    };
    w.rest.drives.get_mut("/f/b").expect("it is there").full = false;
    let w = w.crash(7);
    let state = decided(&w);
    assert_eq!(pool(&state).config().volumes, config.volumes, "a crash finds it");
    assert!(pool(&state).record().ancestors.contains(&record.incarnation), "and goes on from it");
}

/// One leg took it and is gone. The other one failed to, and is rightly believed: its loss was on no record yet as the head fell.
#[test]
fn a_configuration_that_the_leg_which_is_left_lacks_is_in_the_state_directory() {
    let mut w = usual();
    // One leg of each mirror: a mirror whose legs all have it would bring it along.
    let lacks = ["/f/b", "/f/d"].map(|name| (name.to_string(), w.rest.drives[name].clone()));
    w.good(volume("second", 8 << 20));
    w.good(Order::VolumeRemove { volume: "tank/vm1".into(), force: true, disconnect: true });
    let (before, mut rest) = (decided(&w), w.rest);
    rest.drives.retain(|name, _| !["/f/a", "/f/c"].contains(&name.as_str()));
    rest.drives.extend(lacks);

    let mut w = World::start(rest.clone(), 7);
    w.pass(10);
    let found = decided(&w);
    assert_eq!(pool(&found).config().volumes, pool(&before).config().volumes);
    assert!(pool(&found).generation() > pool(&before).generation(), "what the drive is told is later");
    let mut rest_of_it = w.rest.clone();
    rest_of_it.files.retain(|name, _| !name.starts_with("config-"));
    let mut w = World::start(rest_of_it, 8);
    w.pass(10);
    assert_eq!(pool(&decided(&w)).config().volumes, pool(&before).config().volumes, "it was told");

    // A directory that is older than the drives says nothing: neither of the leg nor of the configuration.
    let mut old = rest.clone();
    old.files.retain(|name, _| !name.starts_with("witness-"));
    let mut w = World::start(old, 9);
    w.pass(10);
    assert!(
        w.status().pools.iter().all(|p| p.state == crate::order::State::Offline),
        "the leg alone proves nothing"
    );
}

#[test]
fn a_configuration_that_a_leg_and_the_state_directory_lack_is_refused() {
    let mut w = usual();
    let before = decided(&w);
    // A leg of each mirror does not take it, nor does the directory.
    for name in ["/f/b", "/f/d"] {
        w.rest.drives.get_mut(name).expect("it is there").full = true;
    }
    w.rest.disk_full = true;
    let (.., message) = w.refused(volume("second", 8 << 20));
    assert!(message.contains("StateNoSpace"), "{message}");
    assert_eq!(pool(&decided(&w)).config(), pool(&before).config(), "it is not decided");
    w.rest.disk_full = false;
    w.pass(10);
    w.good(volume("second", 8 << 20));
}

#[test]
fn what_a_file_does_not_take_changes_nothing() {
    let mut w = usual();
    let address = "10.0.0.1:3260".parse().expect("an address");
    w.good(Order::PortalAdd { protocol: Protocol::Iscsi, address, moves: None, head: None });
    let before = decided(&w);
    w.rest.disk_full = true;
    let settings = crate::order::HostSettings {
        iqns: Some(vec!["iqn.1998-01.com.example:second".into()]),
        ..Default::default()
    };
    let add = Order::HostAdd { name: "second".into(), settings };
    w.refused(add.clone());
    let portal = w.view.portals[0];
    w.refused(Order::PortalRemove { protocol: portal.protocol, address: portal.address, disconnect: true });
    assert_eq!(decided(&w), before);
    assert!(w.view.portals.contains(&portal), "the portal that was to go is there");
    w.rest.disk_full = false;
    w.good(add);
    assert_eq!(decided(&w).number(), before.number() + 1);
    let after = decided(&w);
    assert!(after.hosts().get("second").is_some());
    let again = decided(&w.crash(9));
    assert_eq!(again.hosts().iter().len(), after.hosts().iter().len(), "a crash finds it");
    assert_eq!(again.portals(), after.portals());
}

#[test]
fn a_change_that_has_happened_is_refused_when_it_is_proposed_again() {
    let w = usual();
    let state = decided(&w);
    let p = pool(&state);
    let again = Change::Configured { pool: p.config().uuid, generation: p.generation(), edits: vec![] };
    assert_eq!(state.check(&again), Err(Invalid::NotLater));
    let spare = || Edit::SparePut {
        row: crate::steward::state::extras::SpareRow { drive: base::Uuid([9; 16]), path: "/f/s".into() },
    };
    let twice = Change::Configured {
        pool: p.config().uuid,
        generation: p.generation() + 1,
        edits: vec![spare(), spare()],
    };
    assert_eq!(state.check(&twice), Err(Invalid::IsThere));
    let mut before = p.record().clone();
    before.counter -= 1;
    assert_eq!(state.check(&Change::Member { record: before }), Err(Invalid::NotLater));
}

#[test]
fn a_change_says_what_it_concerns() {
    let w = usual();
    let state = decided(&w);
    let p = pool(&state);
    let uuid = p.config().uuid;
    let drives: Vec<base::Uuid> = p.config().arrays.iter().flat_map(|a| &a.legs).map(|l| l.drive).collect();
    let configured = Change::Configured { pool: uuid, generation: p.generation() + 1, edits: vec![] };
    let concerned = state.concerned(&configured);
    assert_eq!((concerned.files, concerned.drives), (vec![format!("config-{uuid}")], drives.clone()));
    let concerned = state.concerned(&Change::Member { record: p.record().clone() });
    assert_eq!((concerned.files, concerned.drives), (vec![format!("witness-{uuid}")], drives));
    let concerned = state.concerned(&Change::HostRemoved { name: "x".into() });
    assert_eq!((concerned.files, concerned.drives, concerned.shards), (vec!["hosts".into()], vec![], true));
    for file in concerned_files(&state) {
        assert!(w.rest.files.contains_key(&file), "{file} is a file of the state directory");
    }
}

fn concerned_files(state: &State) -> Vec<String> {
    let p = pool(state);
    let all = [
        Change::Identified { identity: state.identity().clone() },
        Change::PoolLeft { pool: p.config().uuid },
        Change::Member { record: p.record().clone() },
    ];
    all.iter().flat_map(|change| state.concerned(change).files).collect()
}
