//! Two heads: Asymmetric Namespace Access, and discovery of both heads' portals.

use super::control::{INVALID, RETAIN, await_event, discover, event, get, identify, log, log_sqe, set, text};
use super::*;
use crate::spec::identify as id;
use base::view::PathState::{self, NonOptimized, Optimized};

const ANA: u32 = 0x0c;
const GROUPS_ONLY: u32 = 1 << 8;
const ANA_CHANGED: u32 = 0x000c_0302;

/// A host at `head` of two.
fn host_at(head: u8, paths: [PathState; 2]) -> Talk {
    let mut t = Talk::new();
    t.io.view.head = head;
    t.io.view.paths = Some(paths);
    t.io.view.portals.iter_mut().for_each(|p| p.head = head);
    t.into_admin()
}
fn state(t: &mut Talk) -> u8 {
    log(t, ANA, 32, 4).expect("the group's state")[0]
}
/// Change counts of the log and of its group.
fn counts(t: &mut Talk) -> (u64, u64) {
    let page = log(t, ANA | RETAIN, 0, 32).expect("header and group");
    let of = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"));
    (of(0), of(24))
}
fn differing(a: &[u8], b: &[u8]) -> Vec<(usize, u8, u8)> {
    assert_eq!(a.len(), b.len());
    let all = a.iter().zip(b).enumerate();
    all.filter(|(_, (a, b))| a != b).map(|(at, (a, b))| (at, *a, *b)).collect()
}

#[test]
fn a_head_alone_says_nothing_of_paths() {
    for head in [0, 1] {
        let mut t = Talk::new();
        t.io.view.head = head;
        let mut t = t.into_admin();
        let b = identify(&mut t, 1, 0).expect("identify");
        assert_eq!((b[76], &b[92..96], &b[342..352]), (3, &[0, 1, 0, 0][..], &[0; 10][..]));
        let n: id::Namespace = of(&identify(&mut t, 0, 1).expect("active"));
        assert_eq!(n.anagrpid.get(), 0);
        assert_eq!(log(&mut t, ANA, 0, 32), Err(StatusField::INVALID_LOG_PAGE.dnr()));
        assert_eq!((set(&mut t, 11, 1 << 11), get(&mut t, 11)), (Err(INVALID), Ok(0)));
    }
}

#[test]
fn two_heads_differ_from_one_in_what_concerns_paths_alone() {
    let mut one = Talk::admin();
    for head in [0, 1] {
        let mut two = host_at(head, [Optimized; 2]);
        let of = |t: &mut Talk, cns, nsid| identify(t, cns, nsid).expect("identify");
        assert_eq!(
            differing(&of(&mut one, 1, 0), &of(&mut two, 1, 0)),
            [
                (76, 0b0011, 0b1011), // CMIC
                (93, 0b0001, 0b1001), // OAES bit 11
                (342, 0, 10),         // ANATT
                (343, 0, 0x43),       // ANACAP
                (344, 0, 1),          // ANAGRPMAX
                (348, 0, 1),          // NANAGRPID
            ]
        );
        for nsid in [1, 2] {
            assert_eq!(differing(&of(&mut one, 0, nsid), &of(&mut two, 0, nsid)), [(92, 0, 1)], "ANAGRPID");
            assert_eq!(of(&mut one, 3, nsid), of(&mut two, 3, nsid));
        }
        // A namespace that is not active is in no group.
        assert_eq!(of(&mut two, 0, 3), [0; 4096]);
        assert_eq!(of(&mut one, 2, 0), of(&mut two, 2, 0));
        for (page, bytes) in [(1, 1024), (2, 512), (3, 512), (4, 4096), (5, 4096)] {
            assert_eq!(log(&mut one, page, 0, bytes), log(&mut two, page, 0, bytes), "log page {page}");
        }
        // VS 1.4 knows no structure that is independent of the command set.
        assert_eq!(identify(&mut two, 8, 1), Err(INVALID));
    }
}

#[test]
fn the_log_has_one_group_with_all_namespaces_and_this_heads_state() {
    for (head, paths, state) in [
        (0, [Optimized, NonOptimized], 1),
        (1, [Optimized, NonOptimized], 2),
        (0, [NonOptimized, Optimized], 2),
        (1, [NonOptimized, Optimized], 1),
    ] {
        let mut t = host_at(head, paths);
        let page = log(&mut t, ANA, 0, 64).expect("more than there is");
        let header = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let group = |ids| [1, 0, 0, 0, ids, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, state];
        let rest = [0; 15];
        let ids = [1, 0, 0, 0, 2, 0, 0, 0];
        assert_eq!(page, [&header[..], &group(2), &rest, &ids, &[0; 8]].concat());
        let page = log(&mut t, ANA | GROUPS_ONLY, 0, 64).expect("groups");
        assert_eq!(page, [&header[..], &group(0), &rest, &[0; 16]].concat());
    }
}

#[test]
fn the_log_is_given_in_parts_and_to_whole_controllers() {
    let mut t = host_at(0, [Optimized; 2]);
    let whole = log(&mut t, ANA, 0, 56).expect("all of it");
    let parts = [0, 8, 16, 48, 52].map(|at| log(&mut t, ANA, at, 4).expect("a part"));
    for (at, part) in [0, 8, 16, 48, 52].into_iter().zip(parts) {
        assert_eq!(part, whole[at..at + 4]);
    }
    assert_eq!(log(&mut t, ANA, 56, 4), Ok(vec![0; 4]));
    assert_eq!(log(&mut t, ANA, 60, 4), Err(INVALID));
    assert_eq!(log(&mut t, ANA | GROUPS_ONLY, 52, 4), Err(INVALID), "groups alone are shorter");
    assert_eq!(log(&mut t, ANA, 2, 4), Err(INVALID));
    // As Linux asks: of all namespaces.
    let mut sqe = log_sqe(ANA, 0, 56);
    sqe.nsid = 0xffff_ffff.into();
    assert_eq!(t.read(sqe, 56), Ok(whole));
    sqe.nsid = 1.into();
    assert_eq!(t.read(sqe, 56), Err(INVALID));
    // What Linux takes memory for: a group, and as many ids as there may be.
    let bytes = 16 + 32 + 4 * 65535;
    let mut large = Talk::sized(usual(), 128, 1 << 20, 0);
    large.io.view.paths = Some([Optimized; 2]);
    assert_eq!(log(&mut large.into_admin(), ANA, 0, bytes).map(|l| l.len()), Ok(bytes as usize));
}

#[test]
fn a_group_without_namespaces_is_not_there() {
    let mut t = host_at(0, [Optimized; 2]);
    assert_eq!(counts(&mut t), (0, 1));
    t.new_view(|v| v.hosts[0].exports.clear());
    assert_eq!(log(&mut t, ANA, 0, 16), Ok([&[1, 0, 0, 0, 0, 0, 0, 0][..], &[0; 8]].concat()));
    assert_eq!(log(&mut t, ANA, 20, 4), Err(INVALID));
    t.new_view(|v| v.hosts[0].exports.push(export(7, 512)));
    assert_eq!(counts(&mut t), (2, 3));
    assert_eq!(log(&mut t, ANA, 48, 4), Ok(vec![7, 0, 0, 0]));
}

#[test]
fn change_counts_grow_with_what_the_log_says() {
    let mut t = host_at(0, [Optimized; 2]);
    assert_eq!(counts(&mut t), (0, 1));
    // Not by what it does not say: other hosts, sizes, names, the other head.
    t.new_view(|v| v.hosts.push(Host::default()));
    t.new_view(|v| v.hosts[0].exports[0].blocks += 1);
    t.new_view(|v| v.paths = Some([Optimized, NonOptimized]));
    assert_eq!(counts(&mut t), (0, 1));
    t.new_view(|v| v.paths = Some([NonOptimized; 2]));
    assert_eq!(counts(&mut t), (1, 2));
    t.new_view(|v| v.hosts[0].exports.push(export(9, 512)));
    assert_eq!(counts(&mut t), (2, 3));
    // Both at once are one change.
    t.new_view(|v| {
        v.paths = Some([Optimized; 2]);
        v.hosts[0].exports.pop();
    });
    assert_eq!(counts(&mut t), (3, 4));
    // A reset begins anew.
    t.set_property(property::CC, 0, 0);
    t.enable();
    assert_eq!(counts(&mut t), (0, 1));
}

#[test]
fn a_state_that_changes_is_reported_once_until_the_log_is_read() {
    for head in [0, 1] {
        let mut t = host_at(head, [Optimized; 2]);
        let to = |t: &mut Talk, own, other| {
            t.new_view(|v| v.paths = Some(if head == 0 { [own, other] } else { [other, own] }));
        };
        assert_eq!((set(&mut t, 11, 1 << 11), get(&mut t, 11)), (Ok(0), Ok(1 << 11)));
        let (first, second) = (await_event(&mut t), await_event(&mut t));
        // The other head's state is not this controller's.
        to(&mut t, Optimized, NonOptimized);
        assert!(t.replies.is_empty());
        to(&mut t, NonOptimized, Optimized);
        assert_eq!(event(&mut t), (first, ANA_CHANGED));
        to(&mut t, Optimized, Optimized);
        assert!(t.replies.is_empty(), "masked");
        assert_eq!(log(&mut t, ANA | RETAIN, 32, 4).expect("state")[0], 1);
        to(&mut t, NonOptimized, Optimized);
        assert!(t.replies.is_empty(), "still masked");
        assert_eq!(state(&mut t), 2);
        assert!(t.replies.is_empty(), "the host knows it");
        to(&mut t, Optimized, Optimized);
        assert_eq!(event(&mut t), (second, ANA_CHANGED));
        assert_eq!(state(&mut t), 1);
    }
}

#[test]
fn namespaces_that_come_and_go_are_no_change_of_access() {
    let mut t = host_at(0, [Optimized; 2]);
    assert_eq!(set(&mut t, 11, 1 << 11), Ok(0));
    await_event(&mut t);
    t.new_view(|v| v.hosts[0].exports.push(export(9, 512)));
    t.new_view(|v| v.hosts[0].exports.clear());
    assert!(t.replies.is_empty());
    // A host without namespaces keeps what it read last.
    t.new_view(|v| v.paths = Some([NonOptimized; 2]));
    assert_eq!(event(&mut t).1, ANA_CHANGED);
    // A host that did not ask gets no event.
    let mut t = host_at(0, [Optimized; 2]);
    assert_eq!(set(&mut t, 11, 1 << 8), Ok(0));
    await_event(&mut t);
    t.new_view(|v| v.paths = Some([NonOptimized; 2]));
    assert!(t.replies.is_empty());
    // Both notices have their turns.
    let mut t = host_at(0, [Optimized; 2]);
    assert_eq!(set(&mut t, 11, 1 << 8 | 1 << 11), Ok(0));
    await_event(&mut t);
    await_event(&mut t);
    t.new_view(|v| {
        v.hosts[0].exports[0].blocks += 1;
        v.paths = Some([NonOptimized; 2]);
    });
    assert_eq!((event(&mut t).1, event(&mut t).1), (0x0004_0002, ANA_CHANGED));
}

#[test]
fn a_controller_keeps_what_it_said_of_itself() {
    let controller = |t: &mut Talk| identify(t, 1, 0).expect("identify");
    // A second head comes: hosts hear of it when they connect next.
    let mut t = Talk::admin();
    let before = controller(&mut t);
    t.new_view(|v| v.paths = Some([NonOptimized; 2]));
    assert_eq!(controller(&mut t), before);
    assert_eq!(log(&mut t, ANA, 0, 32), Err(StatusField::INVALID_LOG_PAGE.dnr()));
    assert_eq!(set(&mut t, 11, 1 << 11), Err(INVALID));
    // It goes: this head is the best that there is.
    let mut t = host_at(1, [Optimized, NonOptimized]);
    assert_eq!(set(&mut t, 11, 1 << 11), Ok(0));
    await_event(&mut t);
    let before = controller(&mut t);
    t.new_view(|v| v.paths = None);
    assert_eq!(event(&mut t).1, ANA_CHANGED);
    assert_eq!((controller(&mut t), state(&mut t)), (before, 1));
}

#[test]
fn discovery_shows_the_portals_of_both_heads() {
    let mut t = Talk::new();
    t.io.view.head = 1;
    t.io.view.paths = Some([Optimized; 2]);
    // Those of the usual view are the other head's now.
    let own = |id, address| Portal { head: 1, ..portal(id, Protocol::Nvme, address) };
    t.io.view.portals.extend([own(5, "0.0.0.0:4420"), own(6, "10.1.0.2:4420")]);
    t.initialize(NONE, 0);
    assert_eq!(t.connect(connect(0), data(0xffff, DISCOVERY_NQN, HOST)), StatusField::SUCCESS);
    t.enable();
    let found = |t: &mut Talk| {
        let (header, entries) = discover(t);
        assert_eq!(header.records.get(), entries.len() as u64);
        let entries = entries.iter().filter(|e| e.subtype == 2);
        entries.map(|e| (e.portid.get(), text(&e.traddr).to_owned())).collect::<Vec<_>>()
    };
    let expected = |all: &[(u16, &str)]| all.iter().map(|(id, at)| (*id, at.to_string())).collect::<Vec<_>>();
    // Which address stands for "all" at the other head is not known here.
    assert_eq!(found(&mut t), expected(&[(4, "10.1.0.1"), (6, "192.168.1.1"), (7, "10.1.0.2")]));
    let b = identify(&mut t, 1, 0).expect("identify");
    assert_eq!((b[76], &b[92..96], &b[342..352]), (0, &[0, 0, 0, 0x80][..], &[0; 10][..]));
    assert_eq!(log(&mut t, ANA, 0, 32), Err(StatusField::INVALID_LOG_PAGE.dnr()));
    assert_eq!(set(&mut t, 11, 1 << 31), Ok(0));
    let first = await_event(&mut t);
    t.new_view(|v| v.paths = Some([NonOptimized; 2]));
    assert!(t.replies.is_empty(), "states are no business of discovery");
    // A portal of the other head goes, comes, and comes here.
    t.new_view(|v| v.portals.retain(|p| p.id != PortalId(3)));
    assert_eq!(event(&mut t), (first, 0x0070_f002));
    assert_eq!(found(&mut t), expected(&[(6, "192.168.1.1"), (7, "10.1.0.2")]));
    await_event(&mut t);
    t.new_view(|v| v.portals.push(portal(8, Protocol::Nvme, "10.1.0.8:4420")));
    assert_eq!(event(&mut t).1, 0x0070_f002);
    assert_eq!(found(&mut t).last(), Some(&(9, "10.1.0.8".to_string())));
    await_event(&mut t);
    t.new_view(|v| v.portals.last_mut().expect("one").head = 1);
    assert!(t.replies.is_empty(), "it is reached as before");
}
