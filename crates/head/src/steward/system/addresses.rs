//! Addresses of the system: the head that leads has them, tells the network, and resets what the head before it had.
//!
//! ```text
//! out, or starting ─▶ addresses away      leads ─▶ addresses here ─▶ portals listen ─▶ neighbours told, old connections reset
//! ```

use super::upper::{CONNECTIONS_MAX, Upper};
use crate::mail::ManagerMail;
use crate::peer::SystemAddress;
use crate::steward::context::addresses::{Whereabouts, moving};
use crate::steward::context::head::HeadContext;
use crate::steward::context::system::SystemContext;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{PORTALS, parse_portals};
use base::view::Moving;
use base::{Duration, Instant};
use cluster::Part;
use core::net::IpAddr;
use finding::{PortalCause, PortalEvent};

/// How long the kernel may take to have an address here.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long portals may take to listen, before the network is told of addresses all the same.
const LISTEN_PATIENCE: Duration = Duration::from_millis(200);
/// Between two lists of connections for the follower.
const SHARE_INTERVAL: Duration = Duration::from_millis(500);
/// How long the end of a connection may take to reach its host, before the address goes.
const LINGER: Duration = Duration::from_secs(1);

impl HeadContext {
    /// Addresses that are to be here while this head leads.
    pub(crate) fn moving(&self) -> Vec<Moving> {
        moving(self.portals.iter().map(|p| &p.portal))
    }
    /// The manager says where addresses are.
    pub(crate) fn on_addresses(
        &mut self,
        now: Instant,
        number: u64,
        here: Vec<(IpAddr, Whereabouts)>,
        silent: bool,
    ) {
        let (changed, hushed) = self.addresses.on_told(number, here, silent);
        for (ip, was, is) in changed {
            // Whoever adds the portal is told himself.
            let tried = self.portals.iter().filter(|p| p.portal.address.ip() == ip).all(|p| p.tried);
            match (was, is) {
                _ if tried => {}
                (_, Err(why)) => {
                    let away = PortalEvent::AddressAway { why };
                    self.happened(now, format!("address {ip}"), away);
                }
                (_, Ok(interface)) => {
                    let here = PortalEvent::AddressHere { interface: interface.as_str().into() };
                    self.happened(now, format!("address {ip}"), here);
                }
            }
        }
        if hushed {
            self.happened(now, "head", PortalEvent::NoRawPackets);
        }
    }
}

impl Procedures {
    /// Addresses that move, by the head that has them or should, as far as it is known here.
    pub(super) fn addresses_of_heads(&self) -> [Option<Vec<SystemAddress>>; 2] {
        let context = self.context();
        let Some(member) = context.system.as_ref().map(SystemContext::member) else { return [None, None] };
        let (record, me, other) = (member.known(), member.me(), member.me().other());
        let own = |m: Moving| {
            let (on, reason) = match context.addresses.whereabouts(m.ip) {
                Some(Ok(interface)) => (Some(*interface), None),
                Some(Err(why)) => (None, Some(PortalCause::AddressFailed { why: why.clone() })),
                None => (None, Some(PortalCause::AddressPending)),
            };
            SystemAddress { ip: m.ip, on, reason: reason.map(Into::into) }
        };
        let told = |m: &Moving| SystemAddress { ip: m.ip, on: None, reason: None };
        let mut all = [None, None];
        all[me.index()] = Some(match member.part() {
            Part::Leader => context.moving().into_iter().map(own).collect(),
            Part::Follower | Part::Outside | Part::Over => vec![],
        });
        all[other.index()] = match member.part() {
            Part::Leader => record.is_in(other).then(Vec::new),
            Part::Follower => Some(context.addresses.of_leader().iter().map(told).collect()),
            Part::Outside | Part::Over => None,
        };
        all
    }
    /// The portals of the head that leads are these from now on.
    pub(super) fn note_portals(&self, contents: &[u8]) {
        if let Ok(read) = parse_portals(contents) {
            self.context_mut().addresses.leader_has(moving(read.value.0.iter()));
        }
    }
    /// This head does not lead yet: what a process before it has left here goes.
    pub(super) async fn leave_addresses(&self) {
        let Ok(Some(bytes)) = self.read_file(PORTALS).await else { return };
        let Ok(read) = parse_portals(&bytes) else { return };
        let gone = moving(read.value.0.iter());
        self.context_mut().addresses.leader_has(gone.clone());
        if !gone.is_empty() {
            self.order_addresses(vec![], gone);
        }
    }
    fn order_addresses(&self, here: Vec<Moving>, gone: Vec<Moving>) -> u64 {
        let number = self.context_mut().addresses.next_order();
        self.cx.to_manager(ManagerMail::Addresses { number, here, gone });
        number
    }
    /// Has all addresses here that portals need, before they are opened.
    /// False: nobody says whether they are.
    pub(crate) async fn take_addresses(&self) -> bool {
        let here = self.context().moving();
        if here.is_empty() {
            return true;
        }
        let number = self.order_addresses(here, vec![]);
        let procedures = self.clone();
        self.cx.until_within(PATIENCE, move || procedures.context().addresses.is_answered(number)).await
    }
    /// Portals are opened: once they listen, neighbours are told, and hosts whose connections were the other head's.
    pub(crate) fn announce_addresses(&self) {
        if self.context().moving().is_empty() {
            return;
        }
        let procedures = self.clone();
        self.cx.spawn(async move {
            let listens = {
                let procedures = procedures.clone();
                move || {
                    let context = procedures.context();
                    let mut moving = context.portals.iter().filter(|p| p.portal.moves.is_some());
                    moving.all(|p| p.results.iter().all(Option::is_some))
                }
            };
            procedures.cx.until_within(LISTEN_PATIENCE, listens).await;
            let old = procedures.in_system(|s| s.take_connections()).unwrap_or_default();
            procedures.cx.to_manager(ManagerMail::Announce(old));
        });
    }
    /// A portal is gone: so is its address, unless another one has it, once its hosts have heard of it.
    pub(crate) fn let_address_go(&self, ip: IpAddr, moves: base::view::Moves) {
        let procedures = self.clone();
        self.cx.spawn(async move {
            procedures.cx.sleep(LINGER).await;
            let here = procedures.context().moving();
            if here.iter().all(|m| m.ip != ip) {
                procedures.order_addresses(here, vec![Moving { ip, moves }]);
            }
        });
    }
    /// While this head leads, the follower knows who is connected to addresses that move.
    pub(super) async fn share_connections(&self) {
        loop {
            let procedures = self.clone();
            self.cx
                .until(move || {
                    let context = procedures.context();
                    let follower = context
                        .system
                        .as_ref()
                        .is_some_and(|s| s.part() == Part::Leader && s.member().follower_is_in());
                    follower && context.addresses.has_news()
                })
                .await;
            let all = {
                let mut context = self.context_quietly();
                let moving = context.moving();
                context.addresses.take_news(&moving, CONNECTIONS_MAX)
            };
            // One that is lost with the link is made good by the next: a follower that is let in is told anew.
            let _ = self.in_system(|s| s.tell().send(Upper::Connections(all).encode()));
            self.cx.sleep(SHARE_INTERVAL).await;
        }
    }
}
