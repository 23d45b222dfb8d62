//! A change is refused or applied, survives as bytes, and two states that took the same ones are equal.

use super::config::tests::sample;
use super::config::{ArrayRow, LegRow};
use super::extras::{FailedRow, Replacement, ScrubRow, ScrubRun, SpareRow};
use super::{Change, Edit, Identity, Invalid, List, PoolRow, State};
use access::{Grant, Host};
use array::format::{LegState, MemberLeg, MembershipRecord, RecordArray};
use base::codec::Malformed;
use base::view::{Moves, Portal, Protocol, Secret};
use base::{HostId, PortalId, Prng, Uuid};
use std::collections::BTreeSet;
use volume::{Caps, Map, Run, Volume};

fn uuid(n: u8) -> Uuid {
    Uuid([n; 16])
}

fn host(name: &str) -> Host {
    Host {
        id: HostId(3),
        name: name.into(),
        nqns: vec![],
        iqns: vec![format!("iqn.1998-01.com.example:{name}")],
        chap_secret: Some(Secret(b"twelve-bytes".to_vec())),
        chap_user: "me".into(),
        mutual_secret: None,
    }
}

fn record(arrays: usize) -> MembershipRecord {
    let leg = |n: usize| MemberLeg::new(uuid(n as u8), LegState::InSync);
    let row = |a: usize| RecordArray { epoch: 1, rivals: 0, legs: vec![leg(2 * a), leg(2 * a + 1)] };
    MembershipRecord::first(sample().uuid, uuid(8), 5, (0..arrays).map(row).collect())
}

fn grant(name: &str, lun: u16) -> Grant {
    Grant::to(&host(name), lun)
}

fn volume(n: u64, name: &str, first: u64) -> Volume {
    let uuid = Uuid::from_random(90 + n, n);
    let map = Map::new(&[Run { first, count: 1 }]).expect("a good map");
    Volume { uuid, naa: volume::naa(uuid), name: name.into(), block_bytes: 4096, bytes: 4 << 20, map }
}

/// A state with one pool of two mirrors and two volumes.
fn state() -> State {
    let mut state = State::default();
    for change in begin() {
        take(&mut state, change);
    }
    state
}

fn begin() -> Vec<Change> {
    vec![
        Change::Identified { identity: Identity { uuid: uuid(8), ..Identity::default() } },
        Change::HostPut { host: host("a") },
        Change::PoolCame { config: sample(), generation: 3, record: record(2) },
    ]
}

fn take(state: &mut State, change: Change) {
    assert_eq!(state.check(&change), Ok(()), "{change:?}");
    let (number, again) = Change::decode(&change.encode(7)).expect("it was just written");
    assert_eq!((number, &again), (7, &change));
    state.apply(again);
}

/// One of each kind of edit, in an order in which each may happen.
fn edits() -> Vec<Edit> {
    let new = volume(1, "new", 9);
    let pool = sample();
    let (a, b) =
        (pool.volumes.by_name("a").expect("it has one").uuid, pool.volumes.by_name("b").expect("and b").uuid);
    let rows = |n: usize| -> Vec<ArrayRow> {
        let leg = |l: u8| LegRow { drive: uuid(100 + l), path: format!("/dev/x{l}") };
        vec![ArrayRow { legs: vec![leg(0), leg(1)], ..pool.arrays[0].clone() }; n]
    };
    let space = pool::ArraySpace { bytes: 64 << 20, weight: 1 };
    let larger = pool.map.append(&[space]).expect("room").into();
    let run =
        ScrubRun { began: 7, repair: true, prefer: vec![uuid(3)], at: vec![1, 2], ..ScrubRun::default() };
    let leg = |n: u8| LegRow { drive: uuid(n), path: format!("/dev/n{n}") };
    vec![
        Edit::Renamed { name: "other".into() },
        Edit::Held { holder: Uuid::default() },
        Edit::DriveBlock { bytes: 4096 },
        Edit::MapsBegun {},
        Edit::VolumePut { volume: new.clone() },
        Edit::Numbered { volume: new.uuid, nsid: 77 },
        Edit::Exported { volume: a, grant: grant("a", 4) },
        Edit::Exported { volume: b, grant: grant("b", 5) },
        Edit::Unexported { volume: b, grant: grant("b", 0) },
        Edit::Capped { volume: a, caps: Caps { iops_max: 100, mbps_max: 0 } },
        Edit::Weighed { volume: a, weight: 300 },
        Edit::Scrubbed { scrub: ScrubRow { every_days: 7, run: Some(run), ..ScrubRow::default() } },
        Edit::VolumeRemoved { volume: b },
        Edit::SpaceReturned { runs: vec![Run { first: 6, count: 2 }] },
        Edit::SpaceFreed { runs: vec![Run { first: 6, count: 2 }] },
        Edit::MapsEnded {},
        Edit::AllReturned {},
        Edit::ArraysAdded { rows: rows(1), map: larger },
        Edit::ArraysRemoved { first: 2, map: pool.map.clone() },
        Edit::LegPut { array: 0, leg: 2, row: leg(50) },
        Edit::LegRemoved { array: 0, leg: 0 },
        Edit::SparePut { row: SpareRow { drive: uuid(60), path: "/dev/s".into() } },
        Edit::SpareRemoved { drive: uuid(60) },
        Edit::ReplacementPut { row: Replacement { old: uuid(70), old_path: "/dev/o".into(), new: uuid(50) } },
        Edit::ReplacementRemoved { old: uuid(70) },
        Edit::FailedPut { row: FailedRow { drive: uuid(90), why: "{}".into(), ..FailedRow::default() } },
        Edit::FailedRemoved { drive: uuid(90) },
        Edit::Shared { system: uuid(80) },
        Edit::Shared { system: Uuid::default() },
    ]
}

fn changes() -> Vec<Change> {
    let pool = sample().uuid;
    let row = PoolRow { uuid: uuid(40), name: "old".into(), drives: vec!["/dev/q".into()] };
    let next = record(2).next(uuid(8), 6);
    let portal = Portal {
        id: PortalId(0),
        protocol: Protocol::Iscsi,
        address: "[fd00::1]:3260".parse().expect("an address"),
        head: 0,
        moves: Some(Moves { prefix: 64, interface: "eth1".parse().ok() }),
    };
    let mut all = begin();
    all.extend([
        Change::HostPut { host: host("b") },
        Change::HostRemoved { name: "b".into() },
        Change::PortalPut { portal },
        Change::PortalRemoved { id: PortalId(0) },
        Change::PortalsCounted { last: 9 },
        Change::Listed { list: List::Creating, row: row.clone() },
        Change::Unlisted { list: List::Creating, pool: uuid(40) },
        Change::Listed { list: List::Released, row: row.clone() },
        Change::Configured { pool, generation: 4, edits: edits() },
        Change::DriveMoved { pool, drive: uuid(50), path: "/dev/elsewhere".into() },
        Change::Member { record: next },
        Change::PoolLeft { pool },
        Change::PoolAway { row, generation: 2, config: None },
        Change::AwayEnded { pool: uuid(40) },
    ]);
    all
}

#[test]
fn each_kind_of_change_and_edit_can_happen_and_survives_as_bytes() {
    let mut state = State::default();
    for change in changes() {
        take(&mut state, change);
    }
    assert_eq!(state.number(), changes().len() as u64);
    let of_changes: BTreeSet<u8> = changes().iter().map(Change::tag).collect();
    let of_edits: BTreeSet<u8> = edits().iter().map(Edit::tag).collect();
    for (tag, kind) in Change::KINDS {
        assert!(of_changes.contains(tag), "no test has {kind}");
    }
    for (tag, kind) in Edit::KINDS {
        assert!(of_edits.contains(tag), "no test has {kind}");
    }
}

#[test]
fn the_document_has_each_kind_with_its_tag() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/changes.md");
    let text = std::fs::read_to_string(path).expect("docs/formats/changes.md is there");
    for (tag, kind) in Change::KINDS.iter().chain(Edit::KINDS) {
        assert!(
            text.contains(&format!("| {tag} | `{kind}` |")),
            "{kind} is not in the document with tag {tag}"
        );
    }
}

#[test]
fn edits_bring_about_what_they_say() {
    let mut state = state();
    let pool = sample().uuid;
    take(&mut state, Change::Configured { pool, generation: 4, edits: edits() });
    let config = state.pool(pool).expect("it is here").config();
    assert_eq!((state.pool(pool).map(|p| p.generation()), config.name.as_str()), (Some(4), "other"));
    assert_eq!(config.volumes.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["a", "new"]);
    assert_eq!(
        config.arrays[0].legs.iter().map(|l| l.path.as_str()).collect::<Vec<_>>(),
        ["/dev/d1", "/dev/n50"]
    );
    assert!(config.extras.spares.is_empty() && config.extras.replacements.is_empty());
    assert_eq!(config.extras.uncleared.as_ref().map(|u| (u.life, u.all_free)), Some((4, true)));
    assert!(config.accounted && config.is_sound());
}

#[test]
fn what_may_not_happen_is_refused() {
    let state = state();
    let pool = sample().uuid;
    let a = sample().volumes.by_name("a").expect("it has one").uuid;
    let one = |edit: Edit| state.check(&Change::Configured { pool, generation: 4, edits: vec![edit] });
    assert_eq!(one(Edit::VolumePut { volume: volume(1, "x", 4) }), Err(Invalid::Unsound), "b lies there");
    assert_eq!(one(Edit::VolumePut { volume: volume(1, "a", 20) }), Err(Invalid::Taken));
    assert_eq!(
        one(Edit::VolumePut { volume: volume(1, "x", 20) }),
        Err(Invalid::Unsound),
        "it has no number"
    );
    assert_eq!(one(Edit::Numbered { volume: a, nsid: 2 }), Err(Invalid::Taken));
    assert_eq!(one(Edit::VolumeRemoved { volume: uuid(1) }), Err(Invalid::NotThere));
    assert_eq!(one(Edit::LegRemoved { array: 7, leg: 0 }), Err(Invalid::NotThere));
    assert_eq!(
        one(Edit::LegPut { array: 0, leg: 3, row: sample().arrays[0].legs[0].clone() }),
        Err(Invalid::NotThere)
    );
    assert_eq!(one(Edit::ArraysRemoved { first: 1, map: sample().map }), Err(Invalid::Unsound));
    let stale = Change::Configured { pool, generation: 3, edits: vec![] };
    assert_eq!(state.check(&stale), Err(Invalid::NotLater));
    assert_eq!(state.check(&Change::Member { record: record(1) }), Err(Invalid::Members), "an array less");
    let mut dead = record(2).next(uuid(8), 6);
    dead.arrays[1].legs.iter_mut().for_each(|l| l.state = LegState::Out);
    assert_eq!(state.check(&Change::Member { record: dead }), Err(Invalid::Members), "nobody in sync");
    assert_eq!(state.check(&Change::HostRemoved { name: "x".into() }), Err(Invalid::NotThere));
    let came = Change::PoolCame { config: sample(), generation: 9, record: record(2) };
    assert_eq!(state.check(&came), Err(Invalid::IsThere));
    let mut other = sample();
    other.uuid = uuid(77);
    let mut theirs = record(2);
    theirs.pool = other.uuid;
    let came = |config| Change::PoolCame { config, generation: 1, record: theirs.clone() };
    assert_eq!(state.check(&came(other.clone())), Err(Invalid::Taken), "the name is another's");
    other.name = "second".into();
    assert_eq!(state.check(&came(other)), Err(Invalid::Taken), "namespace ids are another's");
}

#[test]
fn a_second_state_notices_what_it_is_not_told_is_told_twice_or_too_early() {
    let all: Vec<Vec<u8>> = (1..).zip(changes()).map(|(n, change)| change.encode(n)).collect();
    let replay = |bytes: &[Vec<u8>]| {
        let mut second = State::default();
        bytes.iter().try_for_each(|b| second.replay(b)).map(|()| second)
    };
    let second = replay(&all).expect("in their order");
    let mut first = State::default();
    changes().into_iter().for_each(|change| take(&mut first, change));
    assert_eq!(second, first);
    for at in 1..all.len() - 1 {
        let (mut less, mut twice, mut swapped) = (all.clone(), all.clone(), all.clone());
        less.remove(at);
        twice.insert(at, all[at].clone());
        swapped.swap(at, at + 1);
        for wrong in [less, twice, swapped] {
            assert_eq!(replay(&wrong), Err(Invalid::NotNext), "at {at}");
        }
    }
    assert_eq!(replay(&[vec![1, 2, 3]]), Err(Invalid::Unsound));
}

#[test]
fn any_bytes_are_refused_or_a_sound_state() {
    let mut prng = Prng::from_entropy([1, 2, 3, 4]);
    let examples: Vec<Vec<u8>> = changes().iter().map(|c| c.encode(1)).collect();
    for _ in 0..20_000 {
        let mut bytes = examples[prng.below(examples.len() as u64) as usize].clone();
        for _ in 0..=prng.below(3) {
            let at = 10 + prng.below(bytes.len() as u64 - 10) as usize;
            bytes[at] = match prng.below(3) {
                0 => prng.next_u64() as u8,
                1 => bytes[at].wrapping_add(1),
                _ => 0xff,
            };
        }
        let Ok((_, change)) = Change::decode(&bytes) else { continue };
        let mut state = state();
        if state.check(&change).is_ok() {
            assert_eq!(Change::decode(&change.encode(1)).map(|(_, c)| c), Ok(change.clone()));
            state.apply(change);
            assert!(state.pools().iter().all(|p| p.config().is_sound()));
        }
    }
    for bytes in &examples {
        for cut in 0..bytes.len() {
            assert_eq!(Change::decode(&bytes[..cut]).err(), Some(Malformed), "cut at {cut}");
        }
    }
}
