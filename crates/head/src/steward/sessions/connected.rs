//! Hosts that are connected and would lose something by an order: who gives it is told, and says that it is meant.

use crate::order::{ErrorKind, Refusal};
use crate::steward::context::desk::Desk;
use crate::steward::office::Office;
use crate::steward::sessions::table::Identity;
use crate::steward::words::{count, refuse};
use base::view::Protocol;
use base::{HostId, PortalId, Uuid};

/// A connected host: its name, and how many connections it has.
type Connected = (String, usize);

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

impl Office {
    /// Hears from the other head who is connected there.
    pub(crate) async fn ask_other_hosts(&self) {
        if self.desk().far_shards > 0 {
            self.ask_reports().await;
        }
    }
}

impl Desk {
    /// Hosts with connections that `counts`, by name, at either head.
    fn connected(&self, counts: impl Fn(&Use<'_>) -> bool) -> Vec<Connected> {
        let all: Vec<Use<'_>> = self.uses_here().chain(self.uses_there()).filter(|u| counts(u)).collect();
        let of = |id: HostId| all.iter().filter(|u| u.host == id).map(|u| u.connections).sum();
        let hosts = self.hosts().iter().map(|h| (h.name.clone(), of(h.id)));
        let mut hosts: Vec<Connected> = hosts.filter(|(_, n)| *n > 0).collect();
        hosts.sort();
        hosts
    }
    fn uses_here(&self) -> impl Iterator<Item = Use<'_>> {
        self.sessions.all().filter(|s| !s.is_discovery()).filter_map(|s| {
            let protocol = match s.identity {
                Identity::Controller { .. } => Protocol::Nvme,
                Identity::Session { .. } => Protocol::Iscsi,
            };
            let connections = s.places.len();
            Some(Use { host: s.host?, portal: s.portal, protocol, connections, identity: Some(&s.identity) })
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
    /// another head does not ask here. Sentences.
    pub(crate) fn open_by_name(&self, pool: Option<Uuid>, host: Option<&str>) -> Vec<String> {
        let hosts = self.hosts().iter().filter(|h| host.is_none_or(|name| name == h.name));
        let bare = hosts.filter(|h| h.chap_secret.is_none() && !h.iqns.is_empty());
        let words = |h: &access::Host| {
            let configs = self.configs().filter(|c| pool.is_none_or(|p| p == c.uuid));
            let volumes: Vec<String> = configs
                .flat_map(|c| {
                    let mine = c.grants.for_host(h).filter_map(|(v, ..)| c.volumes.by_uuid(v));
                    mine.map(|v| format!("{}/{}", c.name, v.name)).collect::<Vec<_>>()
                })
                .collect();
            let list = match volumes.len() {
                0 => return None,
                1..=3 => volumes.join(", "),
                n => format!("{} and {} more", volumes[..2].join(", "), n - 2),
            };
            Some(format!(
                "{list}: exported to host {0}, whom its name alone lets in; if another head asked for a secret: millrace host set {0} --chap-secret-file FILE",
                h.name
            ))
        };
        bare.filter_map(words).collect()
    }
    /// Refuses what would take volumes of a pool, all or one of them, from connected hosts (all, or one of them).
    pub(crate) fn check_volumes_unused(
        &self,
        pool: Uuid,
        volume: Option<Uuid>,
        host: Option<HostId>,
        what: &str,
        command: &str,
    ) -> Result<(), Refusal> {
        let config = self.configs().find(|c| c.uuid == pool);
        let sees = |id: HostId| {
            let of = self.hosts().by_id(id).zip(config);
            of.is_some_and(|(h, c)| c.grants.for_host(h).any(|(v, ..)| volume.is_none_or(|one| one == v)))
        };
        let hosts = self.connected(|u| host.is_none_or(|one| one == u.host) && sees(u.host));
        refuse_connected(&hosts, &format!("would lose {what}"), command)
    }
    /// Refuses what would end those connections of a host that `ends` says.
    pub(crate) fn check_host_away(
        &self,
        host: HostId,
        ends: impl Fn(&Use<'_>) -> bool,
        why: &str,
        command: &str,
    ) -> Result<(), Refusal> {
        refuse_connected(&self.connected(|u| u.host == host && ends(u)), why, command)
    }
    /// Refuses what would end the connections of a portal.
    pub(crate) fn check_portal_unused(&self, portal: PortalId, command: &str) -> Result<(), Refusal> {
        refuse_connected(&self.connected(|u| u.portal == portal), "would be sent away", command)
    }
}

/// `what` goes on after the hosts: `would lose volume tank/vm1`.
fn refuse_connected(hosts: &[Connected], what: &str, command: &str) -> Result<(), Refusal> {
    let one = |(name, n): &Connected| format!("{name} ({})", count(*n, "connection"));
    let message = match hosts {
        [] => return Ok(()),
        [(name, n)] => format!("host {name} is connected ({}) and {what}", count(*n, "connection")),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(one).collect();
            format!("hosts {} and {} are connected and {what}", first.join(", "), one(last))
        }
    };
    Err(refuse(ErrorKind::Unsafe, "disconnect", message).then(command))
}
