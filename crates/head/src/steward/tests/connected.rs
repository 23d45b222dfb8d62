//! What connected hosts would lose is told before it is done; a pool that cannot come to rest is not let go of.

use super::*;
use base::view::LoginName;
use base::{Ask, PortalId};
use finding::{ConnectedHost, HostNotice, Notice};

fn portal() -> Order {
    Order::PortalAdd {
        protocol: Protocol::Iscsi,
        address: "10.0.0.1:3260".parse().expect("an address"),
        moves: None,
        head: None,
    }
}
/// One more connection of esx1 by the portal.
fn connect(w: &mut World, slot: u32, discovery: bool) {
    let initiator = "iqn.1998-01.com.example:esx1";
    let ask = Ask::Iscsi {
        principal: w.view.principal(LoginName::Iqn(initiator)),
        initiator: initiator.into(),
        isid: [0, 0, 0, 0, 0, slot as u8],
        tsih: 0,
        discovery,
    };
    let connection = base::ConnectionId(u64::from(slot));
    let peer = "10.0.0.9:40000".parse().expect("an address");
    let portal: PortalId = w.view.portals[0].id;
    w.mail(0, StewardMail::Ask { connection, portal, local: peer, peer, ask });
    w.run();
}
/// Connected hosts that a refusal names.
fn users(why: &Why) -> Vec<ConnectedHost> {
    match why {
        Why::Volume(
            VolumeRefusal::UnexportInUse { hosts, .. }
            | VolumeRefusal::RemoveInUse { hosts, .. }
            | VolumeRefusal::ShrinkInUse { hosts, .. }
            | VolumeRefusal::ShrinkLosesData { hosts, .. },
        )
        | Why::Host(
            HostRefusal::HostRemoveInUse { hosts, .. }
            | HostRefusal::HostSecretInUse { hosts }
            | HostRefusal::HostNameInUse { hosts },
        )
        | Why::Portal(PortalRefusal::PortalInUse { hosts, .. })
        | Why::Pool(
            PoolRefusal::PoolReleaseInUse { hosts, .. } | PoolRefusal::PoolDestroyInUse { hosts, .. },
        ) => hosts.clone(),
        other => panic!("{other:?}"),
    }
}
/// Every order that would send esx1 away, as it is given first.
fn orders(disconnect: bool) -> [Order; 8] {
    let secret = Some(Some(Secret(b"another secret of esx1".to_vec())));
    [
        Order::Unexport { volume: "tank/vm1".into(), host: "esx1".into(), disconnect },
        Order::VolumeRemove { volume: "tank/vm1".into(), force: true, disconnect },
        Order::VolumeResize { volume: "tank/vm1".into(), bytes: MIB, force: true, disconnect },
        Order::HostRemove { name: "esx1".into(), force: true, disconnect },
        Order::HostSet {
            name: "esx1".into(),
            settings: HostSettings { chap_secret: secret, ..HostSettings::default() },
            disconnect,
        },
        Order::PortalRemove {
            protocol: Protocol::Iscsi,
            address: "10.0.0.1:3260".parse().expect("an address"),
            disconnect,
        },
        Order::PoolRelease { pool: "tank".into(), force: false, disconnect },
        Order::PoolDestroy { pool: "tank".into(), force: true, disconnect },
    ]
}

#[test]
fn what_sends_connected_hosts_away_says_which_and_waits_to_be_told_that_it_is_meant() {
    for i in 0..orders(false).len() {
        // Without connections, or with one that only asks what there is, nobody loses anything.
        let mut w = usual();
        w.good(portal());
        connect(&mut w, 1, true);
        w.good(orders(false)[i].clone());

        let mut w = usual();
        w.good(portal());
        connect(&mut w, 1, false);
        connect(&mut w, 2, false);
        let order = orders(false)[i].clone();
        let r = w.order(order.clone()).expect_err("a refusal");
        assert_eq!((r.kind(), r.field), (ErrorKind::Unsafe, "disconnect"), "{order:?}");
        assert_eq!(users(&r.why), [ConnectedHost { host: "esx1".into(), connections: 2 }], "{order:?}");
        let s = w.status();
        assert_eq!((s.volumes.len(), s.hosts.len(), s.portals.len()), (1, 1, 1), "nothing has changed");
        assert_eq!(w.view.hosts[0].exports.len(), 1);
        w.good(orders(true)[i].clone());
    }
    // Who adds a name, or changes nothing that matters, sends nobody away.
    let mut w = usual();
    w.good(portal());
    connect(&mut w, 1, false);
    let settings =
        HostSettings { nqns: Some(vec!["nqn.2014-08.org.example:esx1".into()]), ..HostSettings::default() };
    w.good(Order::HostSet { name: "esx1".into(), settings, disconnect: false });
    // Of another host's volume esx1 loses nothing.
    w.good(volume("vm2", MIB));
    w.good(Order::VolumeRemove { volume: "tank/vm2".into(), force: false, disconnect: false });
}

/// A new CHAP secret was said to send NVMe hosts away, too. Shards end the sessions (`shard::letters`).
#[test]
fn only_sessions_that_a_change_of_their_host_concerns_are_named() {
    let nqn = "nqn.2014-08.org.example:esx1";
    let both = HostSettings { nqns: Some(vec![nqn.into()]), ..HostSettings::default() };
    let secret =
        |s: &str| HostSettings { chap_secret: Some(Some(Secret(s.into()))), ..HostSettings::default() };
    let user = HostSettings { chap_user: Some("me".into()), ..HostSettings::default() };
    let none = HostSettings { nqns: Some(vec![]), ..HostSettings::default() };
    let other =
        HostSettings { iqns: Some(vec!["iqn.1998-01.com.example:b".into()]), ..HostSettings::default() };
    let set = |settings: &HostSettings, disconnect| Order::HostSet {
        name: "esx1".into(),
        settings: settings.clone(),
        disconnect,
    };
    for (settings, connections) in [(secret("another secret of esx1"), 1), (user, 1), (other, 1), (none, 2)] {
        let mut w = usual();
        w.good(portal());
        w.good(set(&both, false));
        connect(&mut w, 1, false);
        let portal = w.view.portals[0].id;
        for slot in [2, 3] {
            let principal = w.view.principal(LoginName::Nqn(nqn));
            let ask = Ask::NvmeAdmin { principal, nqn: nqn.into(), host_id: [slot; 16], discovery: false };
            let connection = base::ConnectionId(u64::from(slot));
            let peer = "10.0.0.9:40001".parse().expect("an address");
            w.mail(0, StewardMail::Ask { connection, portal, local: peer, peer, ask });
        }
        w.run();
        let r = w.order(set(&settings, false)).expect_err("a refusal");
        assert_eq!(r.kind(), ErrorKind::Unsafe);
        assert_eq!(users(&r.why), [ConnectedHost { host: "esx1".into(), connections }]);
        w.good(set(&settings, true));
    }
}

#[test]
fn a_pool_with_a_drive_that_does_not_answer_is_not_released_and_goes_on() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/c").expect("there").hangs = true;
    let told = w.views.len();
    for order in [
        Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false },
        Order::PoolDestroy { pool: "tank".into(), force: true, disconnect: false },
    ] {
        let (kind, _, words) = w.refused(order);
        assert_eq!(kind, ErrorKind::NotReady);
        assert_eq!(words, "Pool(PoolNotAtRest { drive: \"/f/c\", why: Silent, shaped: false })");
    }
    assert_eq!(w.views.len(), told, "hosts have noticed nothing");
    w.rest.drives.get_mut("/f/c").expect("there").hangs = false;
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    // One that was put out may still hold what it was given.
    let mut w = usual();
    lose(&mut w, 1);
    let hung = w.open.iter().find(|(_, spec)| *spec == "/f/b").map(|(id, _)| *id).expect("it is open");
    w.figures =
        vec![crate::report::DriveReport { drive: hung, hung: 2, ..crate::report::DriveReport::default() }];
    let (_, _, words) =
        w.refused(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    assert!(words.contains("drive: \"/f/b\", why: Hangs { operations: 2 }"), "{words}");
}

#[test]
fn a_pool_that_does_not_come_to_rest_serves_again_and_keeps_its_keeper() {
    let mut w = usual();
    w.restless = true;
    let (kind, _, words) =
        w.refused(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    assert_eq!((kind, &*words), (ErrorKind::NotReady, "Pool(PoolStillBusy { seconds: 30 })"));
    assert!(w.view.hosts[0].exports[0].ready);
    assert_eq!(w.log.iter().filter(|l| l.starts_with("resume")).count(), 2 * usize::from(SHARDS));
    let s = w.status();
    assert_eq!((s.pools.len(), s.health), (1, State::Optimal), "{:?}", s.reasons);
    // Losses are still put on record.
    lose(&mut w, 1);
    assert_eq!(w.legs(0)[1], LegState::Missing);
    let mut w = w.crash(2);
    assert_eq!(w.status().health, State::Rebuilding, "it returns at the start");
    w.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
}

#[test]
fn a_head_that_is_stopped_while_a_drive_hangs_keeps_its_arrays_to_the_end() {
    let mut w = usual();
    w.restless = true;
    let r = w.order(Order::Shutdown).expect_err("not in order");
    assert_eq!(r.kind(), ErrorKind::NotReady);
    assert_eq!(w.layout.arrays.len(), 2, "shards that are at work on an array keep it");
    let told = |e: &String| e.starts_with("head: ") && e.contains("HeadStoppedUnclean");
    assert!(w.events().iter().any(told), "{:#?}", w.events());
    let mut w = w.crash(2);
    assert_eq!((w.status().health, w.view.hosts[0].exports[0].ready), (State::Optimal, true));
}

#[test]
fn exports_that_a_name_alone_opens_are_told_where_a_pool_comes_from_another_head() {
    let notices = |reply: Reply| match reply {
        Reply::Created { notices, .. } => notices,
        other => panic!("{other:?}"),
    };
    let all = ["/f/a", "/f/b", "/f/c", "/f/d"];
    let mut there = usual();
    there.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    assert_eq!(notices(there.good(import(&all, false))), [], "its own head has the secrets still");
    there.good(Order::PoolRelease { pool: "tank".into(), force: false, disconnect: false });
    let mut w = World::start(Rest { files: BTreeMap::new(), ..there.rest }, 7);
    let bare = |name: &str, nqns: &[&str], secret: bool| Order::HostAdd {
        name: name.into(),
        settings: HostSettings {
            iqns: Some(vec!["iqn.1998-01.com.example:esx1".into()]),
            nqns: Some(nqns.iter().map(|n| n.to_string()).collect()),
            chap_secret: secret.then(|| Some(Secret(b"a secret of esx1".to_vec()))),
            ..HostSettings::default()
        },
    };
    assert_eq!(notices(w.good(bare("esx1", &[], false))), []);
    let told = HostNotice::HostWithoutSecret { host: "esx1".into(), volumes: vec!["tank/vm1".into()] };
    assert_eq!(notices(w.good(import(&all, false))), [Notice::from(told)]);
    w.good(Order::HostRemove { name: "esx1".into(), force: true, disconnect: false });
}

/// It was refused for the data, and given again with --force for the hosts.
#[test]
fn a_volume_that_shrinks_under_connected_hosts_is_asked_for_once() {
    let shrink =
        |force, disconnect| Order::VolumeResize { volume: "tank/vm1".into(), bytes: MIB, force, disconnect };
    let mut w = usual();
    w.good(portal());
    let r = w.order(shrink(false, false)).expect_err("data would be lost");
    assert_eq!(users(&r.why), [], "nobody is connected");
    connect(&mut w, 1, false);
    let r = w.order(shrink(false, false)).expect_err("data would be lost");
    assert_eq!((r.kind(), r.field), (ErrorKind::Unsafe, "bytes"));
    assert!(matches!(*r.why, Why::Volume(VolumeRefusal::ShrinkLosesData { .. })), "{r:?}");
    assert_eq!(users(&r.why), [ConnectedHost { host: "esx1".into(), connections: 1 }]);
    let r = w.order(shrink(false, true)).expect_err("data would be lost");
    assert_eq!(users(&r.why), [], "that was answered");
    w.good(shrink(true, true));
}

#[test]
fn who_knows_a_secret_is_answered_and_the_secret_is_not() {
    let mut w = usual();
    let mut check = |chap: Option<&str>, mutual: Option<&str>| {
        let secret = |text: Option<&str>| text.map(|text| Secret(text.as_bytes().to_vec()));
        let (chap_secret, mutual_secret) = (secret(chap), secret(mutual));
        match w.good(Order::HostCheck { name: "esx1".into(), chap_secret, mutual_secret }) {
            Reply::HostChecked(checked) => (checked.chap_secret, checked.mutual_secret),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(check(Some("a secret of esx1"), None), (true, false));
    assert_eq!(check(Some("a secret of esx2"), Some("a secret of esx1")), (false, false));
    // What is not asked about, or is not there, is not the same.
    assert_eq!(check(None, None), (false, false));
    let unknown = Order::HostCheck { name: "who".into(), chap_secret: None, mutual_secret: None };
    assert_eq!(w.refused(unknown).0, ErrorKind::NotFound);
}

#[test]
fn a_path_that_comes_or_leaves_is_one_event_however_many_connections_it_has() {
    use crate::order::Event;
    use finding::HostEvent;

    let mut w = usual();
    w.good(portal());
    connect(&mut w, 1, true);
    connect(&mut w, 2, false);
    connect(&mut w, 3, false);
    w.pass(1);
    let (protocol, portal) = ("iscsi".to_string(), "10.0.0.1:3260".to_string());
    let came =
        HostEvent::HostPathConnected { protocol: protocol.clone(), portal: portal.clone(), head: None };
    let told = |w: &mut World| {
        let all = w.happened_to("host esx1").into_iter();
        all.filter(|e| matches!(e, Event::Host(e) if !matches!(e, HostEvent::HostAdded))).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut w), [Event::Host(came.clone())]);
    let goes = |w: &mut World, slot: u64| {
        w.mail(0, StewardMail::Gone { connection: base::ConnectionId(slot), why: None });
        w.run();
        w.pass(1);
    };
    goes(&mut w, 2);
    goes(&mut w, 1);
    assert_eq!(told(&mut w).len(), 1, "another connection is left");
    goes(&mut w, 3);
    let left = HostEvent::HostPathLeft { protocol, portal, head: None, paths_left: 0 };
    assert_eq!(told(&mut w), [Event::Host(came), Event::Host(left)]);
}
