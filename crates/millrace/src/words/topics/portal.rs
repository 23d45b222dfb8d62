//! Words about portals.

use super::Said;
use super::parts::{address_fault, address_next, connected, count, immovable, immovable_next, net_fault};
use finding::{PortalCause, PortalEvent, PortalRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &PortalRefusal) -> Said {
    use PortalRefusal as R;
    let closed = |address: &str, why: &str| Said::new(format!("{address} cannot be opened: {why}"));
    match f {
        R::PortalWithoutPort { address } => {
            Said::new(format!("{address} names no port: hosts must find the same one after every restart"))
                .then("4420 for NVMe/TCP, 8009 for discovery, 3260 for iSCSI")
        }
        R::PortalTaken { protocol, address } => {
            Said::new(format!("there is a portal {protocol} {address} already")).then("millrace portal ls")
        }
        R::AddressNotHere { address, why } => closed(address, &address_fault(why)).then(address_next(why)),
        R::AddressNotConfirmed { address, seconds } => {
            let time = if *seconds == 1 { "a second".into() } else { count(*seconds, "second") };
            closed(address, &format!("no answer came within {time}")).then("millrace portal ls")
        }
        R::PortalFailed { address, why, head } => {
            closed(address, &net_fault(why)).then(look_at_network(head.as_deref()))
        }
        R::PortalOverlaps { address, protocol, other, head } => {
            closed(address, &format!("portal {protocol} {other} listens there"))
                .then(look_at_network(head.as_deref()))
        }
        R::PortalOpenTimedOut { address, seconds, head } => {
            closed(address, &format!("no shard of the daemon answered within {}", count(*seconds, "second")))
                .then(look_at_network(head.as_deref()))
        }
        R::PortalImmovable { address, why } => {
            Said::new(format!("{address} cannot move from head to head: {}", immovable(why)))
                .then(immovable_next(why))
        }
        R::PortalMovesOtherwise { protocol, address } => {
            Said::new(format!("portal {protocol} {address} moves with another prefix or interface than this"))
                .then("millrace portal ls")
        }
        R::PortalUnknown { protocol, address } => {
            Said::new(format!("there is no portal {protocol} {address}")).then("millrace portal ls")
        }
        R::PortalInUse { protocol, address, hosts } => {
            Said::new(connected(hosts, &format!("would be disconnected from portal {protocol} {address}")))
                .then(format!("millrace portal rm {protocol} {address} --yes"))
        }
    }
}

/// What shows why nobody can be listened to; `head`: the other one, which may have the address.
fn look_at_network(head: Option<&str>) -> String {
    match head {
        Some(head) => {
            format!("ip address; ss -ltnp; or, if head {head} has the address, the same with --head {head}")
        }
        None => "millrace portal ls; ip address; ss -ltnp".into(),
    }
}

/// What happened.
pub fn event(f: &PortalEvent) -> String {
    use PortalEvent as E;
    match f {
        E::PortalAdded => "the portal was added".into(),
        E::PortalRemoved => "the portal was removed".into(),
        E::PortalOpen => "it is open now".into(),
        E::PortalClosed { why, on_other } => {
            let on = if *on_other { " on the other head" } else { "" };
            format!("it cannot be opened{on}: {}; it is tried again", net_fault(why))
        }
        E::PortalOfOther => {
            "this head does not have the address: the other one does, and listens there once it is back".into()
        }
        E::AddressAway { why } => address_fault(why),
        E::AddressHere { interface } => format!("it is on {interface} of this machine"),
        E::NoRawPackets => "the daemon may not send packets of its own (CAP_NET_RAW): after a takeover, neighbours find moved addresses and hosts notice ended connections only by their own timers".into(),
    }
}

/// Why something is not optimal.
pub fn cause(f: &PortalCause) -> Said {
    match f {
        PortalCause::AddressFailed { why } => Said::new(address_fault(why)).then(address_next(why)),
        PortalCause::AddressPending => "it is being configured".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use finding::{AddressFault, NetFault};

    #[test]
    fn what_cannot_be_listened_at_says_why_and_what_to_look_at() {
        let address = || "10.1.0.5:4420".to_string();
        let said = |f| {
            let Said { message, next } = refusal(&f);
            (message, next.expect("a command"))
        };
        let (message, next) =
            said(PortalRefusal::AddressNotHere { address: address(), why: AddressFault::NoInterface });
        let closed = "10.1.0.5:4420 cannot be opened";
        assert_eq!(message, format!("{closed}: it cannot move here: this machine has no such interface"));
        assert!(next.contains("--interface"));
        let (message, _) = said(PortalRefusal::AddressNotConfirmed { address: address(), seconds: 1 });
        assert_eq!(message, format!("{closed}: no answer came within a second"));
        let failed = |head: Option<&str>| PortalRefusal::PortalFailed {
            address: address(),
            why: NetFault::NoAddress,
            head: head.map(Into::into),
        };
        let (message, next) = said(failed(None));
        assert_eq!(message, format!("{closed}: the address is not this machine's"));
        assert_eq!(next, "millrace portal ls; ip address; ss -ltnp");
        let next = said(failed(Some("b"))).1;
        assert_eq!(next, "ip address; ss -ltnp; or, if head b has the address, the same with --head b");
    }
}
