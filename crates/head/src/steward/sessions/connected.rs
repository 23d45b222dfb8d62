//! Hosts that are connected and would lose something by an order: who gives it is told, and says that it is meant.

use crate::order::Refusal;
use crate::report::PathId;
use crate::steward::context::head::HeadContext;
use crate::steward::procedures::Procedures;
use crate::steward::sessions::arrivals::PathAt;
use crate::steward::sessions::table::Identity;
use base::view::Protocol;
use base::{HostId, PortalId, Uuid};
use finding::{ConnectedHost, HostNotice};
use std::collections::BTreeSet;

/// Connections of a host that are not for discovery alone, which is no use of anything.
pub(crate) struct Use<'a> {
    host: HostId,
    portal: PortalId,
    protocol: Protocol,
    connections: usize,
    /// By which name. Of sessions at the other head the protocol is all that is known.
    identity: Option<&'a Identity>,
}

impl Use<'_> {
    /// It is of a protocol, and has one of these names, or may have.
    pub(crate) fn is_by(&self, protocol: Protocol, names: &[&String]) -> bool {
        let name = match self.identity {
            Some(Identity::Controller { nqn, .. }) => Some(nqn),
            Some(Identity::Session { initiator, .. }) => Some(initiator),
            None => None,
        };
        self.protocol == protocol
            && !names.is_empty()
            && name.is_none_or(|one| names.iter().any(|n| n.eq_ignore_ascii_case(one)))
    }
}

impl Procedures {
    /// Hears from the other head who is connected there.
    pub(crate) async fn ask_other_hosts(&self) {
        if self.context().far_shards > 0 {
            self.ask_reports().await;
        }
    }
}

impl HeadContext {
    /// Hosts with connections that `counts`, by name, at either head.
    fn connected(&self, counts: impl Fn(&Use<'_>) -> bool) -> Vec<ConnectedHost> {
        let all: Vec<Use<'_>> = self.uses_here().chain(self.uses_there()).filter(|u| counts(u)).collect();
        let of = |id: HostId| all.iter().filter(|u| u.host == id).map(|u| u.connections as u64).sum();
        let hosts =
            self.hosts().iter().map(|h| ConnectedHost { host: h.name.clone(), connections: of(h.id) });
        let mut hosts: Vec<ConnectedHost> = hosts.filter(|h| h.connections > 0).collect();
        hosts.sort();
        hosts
    }
    /// Paths that have connections of hosts, at either head.
    pub(crate) fn paths_up(&self) -> BTreeSet<PathAt> {
        let path = |u: &Use<'_>| PathId { host: u.host, portal: u.portal };
        let here = self.uses_here().map(|u| (self.own_number(), path(&u)));
        let there = self.uses_there().map(|u| (self.own_number() ^ 1, path(&u)));
        here.chain(there).collect()
    }
    fn uses_here(&self) -> impl Iterator<Item = Use<'_>> {
        self.sessions.all().filter(|s| !s.is_discovery()).filter_map(|s| {
            let protocol = match s.identity {
                Identity::Controller { .. } => Protocol::Nvme,
                Identity::Session { .. } => Protocol::Iscsi,
            };
            let connections = s.places.len();
            Some(Use {
                host: s.host()?,
                portal: s.portal,
                protocol,
                connections,
                identity: Some(&s.identity),
            })
        })
    }
    /// As the other head's shards told last.
    fn uses_there(&self) -> impl Iterator<Item = Use<'_>> {
        let reports = self.reports.iter().flatten().filter(|r| r.shard >= self.own_shards);
        let connections = reports.flat_map(|r| &r.connections);
        let used = connections.filter(|c| c.login.session.is_some() && !c.login.discovery);
        used.filter_map(|c| {
            let protocol = self.portals.iter().find(|p| p.portal.id == c.portal)?.portal.protocol;
            Some(Use { host: c.host?, portal: c.portal, protocol, connections: 1, identity: None })
        })
    }
    /// Exports of volumes (of a pool, to a host) that a name alone opens: pools carry no secrets, so who asked for one on
    /// another head does not ask here.
    pub(crate) fn open_by_name(&self, pool: Option<Uuid>, host: Option<&str>) -> Vec<HostNotice> {
        let hosts = self.hosts().iter().filter(|h| host.is_none_or(|name| name == h.name));
        let bare = hosts.filter(|h| h.chap_secret.is_none() && !h.iqns.is_empty());
        let notice = |h: &access::Host| {
            let configs = self.configs().filter(|c| pool.is_none_or(|p| p == c.uuid));
            let volumes: Vec<String> = configs
                .flat_map(|c| {
                    let mine = c.grants.for_host(h).filter_map(|(v, ..)| c.volumes.by_uuid(v));
                    mine.map(|v| format!("{}/{}", c.name, v.name)).collect::<Vec<_>>()
                })
                .collect();
            (!volumes.is_empty()).then(|| HostNotice::HostWithoutSecret { host: h.name.clone(), volumes })
        };
        bare.filter_map(notice).collect()
    }
    /// Connected hosts (all, or one of them) that see volumes of a pool (all, or one of them).
    pub(crate) fn users_of_volumes(
        &self,
        pool: Uuid,
        volume: Option<Uuid>,
        host: Option<HostId>,
    ) -> Vec<ConnectedHost> {
        let config = self.configs().find(|c| c.uuid == pool);
        let sees = |id: HostId| {
            let of = self.hosts().by_id(id).zip(config);
            of.is_some_and(|(h, c)| c.grants.for_host(h).any(|(v, ..)| volume.is_none_or(|one| one == v)))
        };
        self.connected(|u| host.is_none_or(|one| one == u.host) && sees(u.host))
    }
    /// A host with those of its connections that `counts`, if it has any.
    pub(crate) fn connected_host(
        &self,
        host: HostId,
        counts: impl Fn(&Use<'_>) -> bool,
    ) -> Vec<ConnectedHost> {
        self.connected(|u| u.host == host && counts(u))
    }
    /// Hosts that are connected by a portal.
    pub(crate) fn users_of_portal(&self, portal: PortalId) -> Vec<ConnectedHost> {
        self.connected(|u| u.portal == portal)
    }
}

/// Refuses what these hosts would lose something by, if there are any.
pub(crate) fn refuse_in_use<R: Into<Refusal>>(
    hosts: Vec<ConnectedHost>,
    why: impl FnOnce(Vec<ConnectedHost>) -> R,
) -> Result<(), Refusal> {
    if hosts.is_empty() { Ok(()) } else { Err(why(hosts).into()) }
}
