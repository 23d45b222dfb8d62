//! Portals whose addresses move to the head that leads: what is refused, with cause and next command, leaves nothing behind.

use super::*;
use base::Duration;
use base::view::Moves;
use finding::AddressFault;
use finding::Immovable;

fn add(address: &str, prefix: u8, interface: Option<&str>) -> Order {
    let interface = interface.map(|name| name.parse().expect("a name"));
    let moves = Some(Moves { prefix, interface });
    Order::PortalAdd {
        protocol: Protocol::Nvme,
        address: address.parse().expect("an address"),
        moves,
        head: None,
    }
}

/// What is refused: kind, field, and why.
fn refusal(w: &mut World, order: Order) -> (ErrorKind, &'static str, Why) {
    let r = w.order(order).expect_err("a refusal");
    (r.kind(), r.field, *r.why)
}

#[test]
fn what_cannot_move_is_refused_with_its_cause_and_what_to_do() {
    let mut w = usual();
    let files = w.rest.files.clone();
    use Immovable::{Local, NotOne, Prefix};
    for (address, prefix, why) in [
        ("10.1.0.5:4420", 33, Prefix),
        ("10.1.0.5:4420", 255, Prefix),
        ("10.1.0.5:4420", 0, Prefix),
        ("[fd00::5]:4420", 129, Prefix),
        ("[fd00::5]:4420", 0, Prefix),
        ("0.0.0.0:4420", 24, NotOne),
        ("[::]:4420", 64, NotOne),
        // A whole subnet, its broadcast, all routers of one, groups.
        ("10.1.0.0:4420", 24, NotOne),
        ("10.1.0.255:4420", 24, NotOne),
        ("255.255.255.255:4420", 32, NotOne),
        ("[fd00::]:4420", 64, NotOne),
        ("224.0.0.5:4420", 24, NotOne),
        ("[ff02::5]:4420", 64, NotOne),
        ("127.0.0.1:4420", 8, Local),
        ("169.254.0.5:4420", 16, Local),
        ("[::1]:4420", 128, Local),
        ("[fe80::5]:4420", 64, Local),
        ("[::ffff:10.1.0.5]:4420", 120, Local),
    ] {
        let (kind, field, found) = refusal(&mut w, add(address, prefix, None));
        let ip = address.parse::<core::net::SocketAddr>().expect("an address").ip().to_string();
        assert_eq!(found, PortalRefusal::PortalImmovable { address: ip, why }.into(), "{address}/{prefix}");
        assert_eq!((kind, field), (ErrorKind::Invalid, "prefix"), "{address}/{prefix}");
    }
    // Nobody was asked for an address, and nothing was written.
    assert!(w.addresses.is_empty() && w.view.portals.is_empty());
    assert!(w.rest.files == files);
    // What is good is taken: the smallest subnets have no other addresses than those of machines.
    for (n, (address, prefix)) in
        [("10.1.0.0:1", 31), ("10.1.0.9:1", 32), ("[fd00::]:1", 127)].into_iter().enumerate()
    {
        w.good(add(address, prefix, None));
        assert_eq!((w.addresses.len(), w.view.portals.len()), (n + 1, n + 1));
    }
}

#[test]
fn one_address_moves_in_one_way_whatever_portals_it_has() {
    let mut w = usual();
    w.good(add("10.1.0.5:4420", 24, None));
    let there = || ("nvme".to_string(), "10.1.0.5:4420".to_string());
    for (prefix, interface) in [(16, None), (24, Some("eth1"))] {
        let (protocol, address) = there();
        let why = PortalRefusal::PortalMovesOtherwise { protocol, address }.into();
        let found = refusal(&mut w, add("10.1.0.5:8009", prefix, interface));
        assert_eq!(found, (ErrorKind::Conflict, "prefix", why));
    }
    let (protocol, address) = there();
    let why = PortalRefusal::PortalTaken { protocol, address }.into();
    let found = refusal(&mut w, add("10.1.0.5:4420", 24, None));
    assert_eq!(found, (ErrorKind::Conflict, "address", why));
    w.good(add("10.1.0.5:8009", 24, None));
    // A portal of the machine's own address says nothing of how that one moves.
    let address = "10.1.0.5:3260".parse().expect("an address");
    w.good(Order::PortalAdd { protocol: Protocol::Iscsi, address, moves: None, head: None });
    assert_eq!(w.view.portals.len(), 3);
    let w = w.crash(2);
    assert_eq!(w.view.portals.iter().filter(|p| p.moves.is_some()).count(), 2);
}

#[test]
fn an_address_that_this_machine_cannot_have_is_refused_and_none_is_left_here() {
    let mut w = usual();
    let files = w.rest.files.clone();
    for why in [
        AddressFault::NoSubnet,
        AddressFault::NoInterface,
        AddressFault::Foreign,
        AddressFault::NotAllowed,
        AddressFault::Errno { errno: 5 },
    ] {
        w.no_address.insert("10.1.0.5".parse().expect("an address"), Some(why.clone()));
        let found = refusal(&mut w, add("10.1.0.5:4420", 24, Some("eth1")));
        let address = "10.1.0.5:4420".into();
        let why = PortalRefusal::AddressNotHere { address, why }.into();
        assert_eq!(found, (ErrorKind::Conflict, "address", why));
        assert!(w.view.portals.is_empty(), "it is not listened at");
    }
    // The daemon does not answer.
    w.no_address.insert("10.1.0.5".parse().expect("an address"), None);
    let before = w.now;
    let (.., why) = refusal(&mut w, add("10.1.0.5:4420", 24, None));
    let address = "10.1.0.5:4420".into();
    assert_eq!(why, PortalRefusal::AddressNotConfirmed { address, seconds: 1 }.into());
    assert!(w.now.since(before) < Duration::from_secs(7));
    // The address was had, and the port is another's: it is let go of once nobody hears of it any more.
    w.no_address.clear();
    let (.., why) = refusal(&mut w, add("10.1.0.6:99", 24, None));
    assert!(matches!(why, Why::Portal(PortalRefusal::PortalFailed { .. })), "{why:?}");
    w.pass(2);
    assert!(w.addresses.is_empty(), "{:?}", w.addresses);
    assert!(w.rest.files == files, "nothing is written down");
    w.good(add("10.1.0.5:4420", 24, None));
    assert_eq!(w.addresses.len(), 1);
}
