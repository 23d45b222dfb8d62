//! Two heads: target port groups, their states, and discovery of both heads' portals.

use super::login::{send_targets, value};
use super::*;
use base::PortalId;
use base::view::PathState::{self, NonOptimized, Optimized};
use base::view::{Portal, Protocol};

fn portal(id: u32, head: u8, protocol: Protocol, address: &str) -> Portal {
    Portal { id: PortalId(id), protocol, address: address.parse().expect("an address"), head, moves: None }
}

/// Portals of both heads. The connection came to the first one, which is this head's.
fn portals(own: u8) -> Vec<Portal> {
    let other = 1 - own;
    vec![
        portal(0, own, Protocol::Iscsi, "0.0.0.0:3260"),
        portal(1, other, Protocol::Iscsi, "10.0.0.2:3260"),
        portal(2, other, Protocol::Nvme, "10.0.0.2:4420"),
        portal(3, own, Protocol::Iscsi, "10.0.0.1:3260"),
        portal(258, other, Protocol::Iscsi, "[fd00::2]:3260"),
        portal(5, other, Protocol::Iscsi, "0.0.0.0:3260"),
        portal(6, other, Protocol::Iscsi, "[::]:3260"),
    ]
}

fn with_paths(own: u8, paths: Option<[PathState; 2]>) -> Talk {
    let change = |view: &mut View| (view.head, view.portals, view.paths) = (own, portals(own), paths);
    let mut talk = Talk::with(change, OUTBOX_BYTES);
    talk.login(&[]);
    talk.clear_attentions();
    talk
}

fn answer(talk: &mut Talk, cdb: &[u8]) -> Vec<u8> {
    let (response, data) = talk.simple(0, cdb, 255);
    assert_eq!(response.status, 0);
    data
}
/// REPORT TARGET PORT GROUPS.
fn groups(talk: &mut Talk, extended: bool) -> Vec<u8> {
    answer(talk, &[0xa3, if extended { 0x2a } else { 0x0a }, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0])
}
/// Target port, group and name of the port from Device Identification.
fn identification(talk: &mut Talk) -> (u16, u16, String) {
    let page = answer(talk, &[0x12, 1, 0x83, 0, 255, 0]);
    let (mut at, mut found) = (4, (0, 0, String::new()));
    while at < page.len() {
        let (kind, len) = (page[at + 1], usize::from(page[at + 3]));
        let body = &page[at + 4..at + 4 + len];
        match kind {
            0x94 => found.0 = u16::from_be_bytes([body[2], body[3]]),
            0x95 => found.1 = u16::from_be_bytes([body[2], body[3]]),
            0x98 => found.2 = String::from_utf8(body.to_vec()).expect("a name"),
            _ => {}
        }
        at += 4 + len;
    }
    found
}
fn change(talk: &mut Talk, change: impl FnOnce(&mut View)) {
    talk.io.view.generation += 1;
    change(&mut talk.io.view);
    talk.connection.on_view(talk.now, &mut talk.io);
    talk.settle();
}
/// The unit attention that waits at a unit.
fn attention(talk: &mut Talk, lun: u16) -> Option<(u8, u8, u8)> {
    let (response, data) = talk.simple(lun, &[0; 6], 0);
    (response.status != 0).then(|| Talk::sense(&data))
}
const ACCESS_CHANGED: Option<(u8, u8, u8)> = Some((6, 0x2a, 6));

#[test]
fn a_head_alone_has_one_group_with_every_portal() {
    for own in [0, 1] {
        let mut talk = with_paths(own, None);
        let ports =
            [[0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0, 4], [0, 0, 1, 3], [0, 0, 0, 6], [0, 0, 0, 7]].concat();
        let group = [&[0x00, 0x01, 0, 1, 0, 2, 0, 6][..], &ports].concat();
        assert_eq!(groups(&mut talk, false), [&[0, 0, 0, 32][..], &group].concat());
        assert_eq!(groups(&mut talk, true), [&[0, 0, 0, 36, 0x10, 0, 0, 0][..], &group].concat());
        let (port, group, _) = identification(&mut talk);
        assert_eq!((port, group), (1, 1));
        change(&mut talk, |v| v.portals.clear());
        assert_eq!(groups(&mut talk, false), [0, 0, 0, 8, 0, 1, 0, 1, 0, 2, 0, 0]);
        assert_eq!(attention(&mut talk, 0), None);
    }
}

#[test]
fn each_head_of_two_is_a_group_with_its_portals_and_its_state() {
    let first = [[0, 0, 0, 1], [0, 0, 0, 4]].concat();
    let second = [[0, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 6], [0, 0, 0, 7]].concat();
    for (paths, states) in [
        ([Optimized, Optimized], [0, 0]),
        ([NonOptimized, Optimized], [1, 0]),
        ([Optimized, NonOptimized], [0, 1]),
        ([NonOptimized, NonOptimized], [1, 1]),
    ] {
        for own in [0, 1] {
            let mut talk = with_paths(own, Some(paths));
            let [a, b] = if own == 0 { [&first, &second] } else { [&second, &first] };
            let group = |id: u8, ports: &[u8]| {
                let state = states[usize::from(id) - 1];
                [&[state, 0x03, 0, id, 0, 2, 0, ports.len() as u8 / 4], ports].concat()
            };
            let both = [group(1, a), group(2, b)].concat();
            assert_eq!(groups(&mut talk, false), [&[0, 0, 0, 40][..], &both].concat());
            assert_eq!(groups(&mut talk, true), [&[0, 0, 0, 44, 0x10, 0, 0, 0][..], &both].concat());
            // Whichever format, the allocation length cuts.
            let cut = answer(&mut talk, &[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0]);
            assert_eq!(cut, [&[0, 0, 0, 40][..], &both[..8]].concat());
            let (r, data) = talk.simple(0, &[0xa3, 0x4a, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0], 255);
            assert_eq!((r.status, Talk::sense(&data)), (2, (5, 0x24, 0)), "a format that is not there");
            let group = u16::from(own) + 1;
            assert_eq!(identification(&mut talk).0, 1, "relative target port");
            assert_eq!(identification(&mut talk).1, group, "target port group");
            let inquiry = answer(&mut talk, &[0x12, 0, 0, 0, 96, 0]);
            assert_eq!(inquiry[5], 0x10, "TPGS: implicit");
        }
    }
}

#[test]
fn a_group_without_portals_is_not_listed() {
    let mut talk = with_paths(0, Some([Optimized, NonOptimized]));
    change(&mut talk, |v| v.portals.retain(|p| p.head == 0));
    assert_eq!(groups(&mut talk, false), [0, 0, 0, 16, 0, 3, 0, 1, 0, 2, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4]);
    assert_eq!(attention(&mut talk, 0), None, "portals are no states");
    change(&mut talk, |v| v.portals.clear());
    assert_eq!(groups(&mut talk, true), [0, 0, 0, 4, 0x10, 0, 0, 0]);
}

#[test]
fn a_state_that_changes_is_reported_at_every_unit_once() {
    for own in [0, 1] {
        let mut talk = with_paths(own, Some([Optimized; 2]));
        for paths in [[Optimized, NonOptimized], [NonOptimized, Optimized], [NonOptimized; 2]] {
            change(&mut talk, |v| v.paths = Some(paths));
            for lun in [0, 300] {
                assert_eq!((attention(&mut talk, lun), attention(&mut talk, lun)), (ACCESS_CHANGED, None));
            }
            change(&mut talk, |v| v.hosts[0].name = "other".into());
            assert_eq!(attention(&mut talk, 0), None);
        }
        // What changed and changed back is reported, and once.
        change(&mut talk, |v| v.paths = Some([Optimized; 2]));
        change(&mut talk, |v| v.paths = Some([NonOptimized; 2]));
        assert_eq!((attention(&mut talk, 0), attention(&mut talk, 0)), (ACCESS_CHANGED, None));
        // A second head that comes or goes changes no state as such.
        let mut talk = with_paths(own, None);
        change(&mut talk, |v| v.paths = Some([Optimized; 2]));
        assert_eq!(attention(&mut talk, 0), None);
        change(&mut talk, |v| v.paths = None);
        assert_eq!(attention(&mut talk, 300), None);
    }
}

#[test]
fn attentions_are_reported_one_after_the_other() {
    let mut talk = with_paths(0, Some([Optimized; 2]));
    change(&mut talk, |v| {
        v.paths = Some([NonOptimized, Optimized]);
        v.hosts[0].exports[0].blocks += 1;
        let mut more = v.hosts[0].exports[0].clone();
        more.lun = 5;
        v.hosts[0].exports.push(more);
    });
    let reported: Vec<_> = std::iter::from_fn(|| attention(&mut talk, 0)).collect();
    assert_eq!(reported, [(6, 0x2a, 6), (6, 0x2a, 9), (6, 0x3f, 0x0e)]);
    // A login begins with what is true by then.
    let mut talk = Talk::with(|view| view.paths = Some([NonOptimized; 2]), OUTBOX_BYTES);
    talk.login(&[]);
    let reported: Vec<_> = std::iter::from_fn(|| attention(&mut talk, 0)).collect();
    assert_eq!(reported, [(6, 0x29, 0)]);
}

#[test]
fn discovery_and_login_name_portals_by_the_same_tags() {
    let mut talk = Talk::with(|view| (view.head, view.portals) = (1, portals(1)), OUTBOX_BYTES);
    talk.io.view.paths = Some([Optimized; 2]);
    // Which address of the other head stands for "all" is not known here.
    let found = send_targets(&mut talk, INITIATOR, "All");
    let expected = [
        format!("TargetName={IQN}"),
        "TargetAddress=127.0.0.1:3260,1".into(),
        "TargetAddress=10.0.0.2:3260,2".into(),
        "TargetAddress=10.0.0.1:3260,4".into(),
        "TargetAddress=[fd00::2]:3260,259".into(),
    ];
    assert_eq!(found.split_terminator('\0').collect::<Vec<_>>(), expected);
    let mut talk = with_paths(1, Some([Optimized; 2]));
    let name = format!("{IQN},t,0x0001");
    assert!(identification(&mut talk).2.starts_with(&name));
    let mut talk = Talk::with(|view| (view.head, view.portals) = (1, portals(1)), OUTBOX_BYTES);
    let names = [("InitiatorName", INITIATOR), ("TargetName", IQN)];
    let (_, pairs) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &names);
    assert_eq!(value(&pairs, "TargetPortalGroupTag"), Some("1"));
}
