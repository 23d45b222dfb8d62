//! Portals whose addresses move to the head that leads: what is refused, with cause and next command, leaves nothing behind.

use super::*;
use crate::mail::NoAddress;
use base::Duration;
use base::view::Moves;

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

/// What is refused: kind, field, the sentence, and what to do next.
fn refusal(w: &mut World, order: Order) -> (ErrorKind, String, String, String) {
    let r = w.order(order).expect_err("a refusal");
    (r.kind(), r.field.to_string(), r.said(), r.next().expect("what to do next"))
}

#[test]
fn what_cannot_move_is_refused_with_its_cause_and_what_to_do() {
    let mut w = usual();
    let files = w.rest.files.clone();
    let bits = "the prefix has 1 to 32 bits for IPv4, 1 to 128 for IPv6";
    let not_one = "it is not the address of one machine in a subnet of this size";
    let local = "it is good within one machine or on one cable only";
    let (subnet, one, plain) = (
        "the prefix that ip -brief address shows for its subnet",
        "an address of one machine",
        "without --prefix",
    );
    for (address, prefix, why, next) in [
        ("10.1.0.5:4420", 33, bits, subnet),
        ("10.1.0.5:4420", 255, bits, subnet),
        ("10.1.0.5:4420", 0, bits, subnet),
        ("[fd00::5]:4420", 129, bits, subnet),
        ("[fd00::5]:4420", 0, bits, subnet),
        ("0.0.0.0:4420", 24, not_one, one),
        ("[::]:4420", 64, not_one, one),
        // A whole subnet, its broadcast, all routers of one, groups.
        ("10.1.0.0:4420", 24, not_one, one),
        ("10.1.0.255:4420", 24, not_one, one),
        ("255.255.255.255:4420", 32, not_one, one),
        ("[fd00::]:4420", 64, not_one, one),
        ("224.0.0.5:4420", 24, not_one, one),
        ("[ff02::5]:4420", 64, not_one, one),
        ("127.0.0.1:4420", 8, local, plain),
        ("169.254.0.5:4420", 16, local, plain),
        ("[::1]:4420", 128, local, plain),
        ("[fe80::5]:4420", 64, local, plain),
        ("[::ffff:10.1.0.5]:4420", 120, local, plain),
    ] {
        let (kind, field, message, then) = refusal(&mut w, add(address, prefix, None));
        let ip = address.parse::<core::net::SocketAddr>().expect("an address").ip();
        assert_eq!(message, format!("{ip} cannot move from head to head: {why}"), "{address}/{prefix}");
        assert_eq!((kind, field.as_str()), (ErrorKind::Invalid, "prefix"), "{address}/{prefix}");
        assert!(then.contains(next), "{address}/{prefix}: {then}");
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
    let (kind, field, message, next) = refusal(&mut w, add("10.1.0.5:8009", 16, None));
    assert_eq!((kind, field.as_str(), next.as_str()), (ErrorKind::Conflict, "prefix", "millrace portal ls"));
    assert_eq!(message, "portal nvme 10.1.0.5:4420 moves with another prefix or interface than this");
    let (.., message, _) = refusal(&mut w, add("10.1.0.5:8009", 24, Some("eth1")));
    assert_eq!(message, "portal nvme 10.1.0.5:4420 moves with another prefix or interface than this");
    let (_, field, message, _) = refusal(&mut w, add("10.1.0.5:4420", 24, None));
    assert_eq!(
        (field.as_str(), message.as_str()),
        ("address", "there is a portal nvme 10.1.0.5:4420 already")
    );
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
    for (why, cause, then) in [
        (
            NoAddress::NoSubnet,
            "no interface of this machine has another address of its subnet",
            "--interface NAME",
        ),
        (NoAddress::NoInterface, "this machine has no such interface", "ip -brief link"),
        (NoAddress::Foreign, "this machine has it by itself", "without --prefix"),
        (NoAddress::NotAllowed, "the daemon may not configure addresses (CAP_NET_ADMIN)", "CAP_NET_ADMIN"),
        (NoAddress::Other(5), "error 5", "ip -brief address"),
    ] {
        w.no_address.insert("10.1.0.5".parse().expect("an address"), Some(why));
        let (kind, field, message, next) = refusal(&mut w, add("10.1.0.5:4420", 24, Some("eth1")));
        assert_eq!((kind, field.as_str()), (ErrorKind::Conflict, "address"));
        assert!(message.starts_with("10.1.0.5:4420 cannot be listened at: it "), "{message}");
        assert!(message.ends_with(cause) && next.contains(then), "{message}; {next}");
        assert!(w.view.portals.is_empty(), "it is not listened at");
    }
    // The daemon does not answer.
    w.no_address.insert("10.1.0.5".parse().expect("an address"), None);
    let before = w.now;
    let (.., message, next) = refusal(&mut w, add("10.1.0.5:4420", 24, None));
    assert_eq!(message, "10.1.0.5:4420 cannot be listened at: no answer came within a second");
    assert_eq!(next, "millrace portal ls");
    assert!(w.now.since(before) < Duration::from_secs(7));
    // The address was had, and the port is another's: it is let go of once nobody hears of it any more.
    w.no_address.clear();
    let (.., message, next) = refusal(&mut w, add("10.1.0.6:99", 24, None));
    assert!(message.contains("10.1.0.6:99 cannot be listened at") && next.contains("ss -ltnp"), "{message}");
    w.pass(2);
    assert!(w.addresses.is_empty(), "{:?}", w.addresses);
    assert!(w.rest.files == files, "nothing is written down");
    w.good(add("10.1.0.5:4420", 24, None));
    assert_eq!(w.addresses.len(), 1);
}
