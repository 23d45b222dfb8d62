//! Hosts that are connected and would lose something by an order: who gives it is told, and says that it is meant.

use crate::order::{Refusal, RefusalKind};
use crate::steward::context::desk::Desk;
use crate::steward::sessions::table::Session;
use crate::steward::words::{count, refuse};
use base::{HostId, Uuid};

/// A connected host: its name, and how many connections it has.
type Connected = (String, usize);

impl Desk {
    /// Hosts with connections of sessions that `counts`, by name. Discovery alone is no use of anything.
    fn connected(&self, counts: impl Fn(&Session) -> bool) -> Vec<Connected> {
        let connections = |id: HostId| -> usize {
            let mine = self.sessions.all().filter(|s| s.host == Some(id) && !s.is_discovery() && counts(s));
            mine.map(|s| s.places.len()).sum()
        };
        let hosts = self.hosts().iter().map(|h| (h.name.clone(), connections(h.id)));
        let mut hosts: Vec<Connected> = hosts.filter(|(_, n)| *n > 0).collect();
        hosts.sort();
        hosts
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
        let hosts = self.connected(|s| s.host.is_some_and(|id| host.is_none_or(|one| one == id) && sees(id)));
        refuse_connected(&hosts, &format!("would lose {what}"), command)
    }
    /// Refuses what would end those sessions of a host that `ends` says.
    pub(crate) fn check_host_away(
        &self,
        host: HostId,
        ends: impl Fn(&Session) -> bool,
        why: &str,
        command: &str,
    ) -> Result<(), Refusal> {
        refuse_connected(&self.connected(|s| s.host == Some(host) && ends(s)), why, command)
    }
    /// Refuses what would end the connections of a portal.
    pub(crate) fn check_portal_unused(&self, portal: base::PortalId, command: &str) -> Result<(), Refusal> {
        refuse_connected(&self.connected(|s| s.portal == portal), "would be sent away", command)
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
    Err(refuse(RefusalKind::Unsafe, "disconnect", message).then(command))
}
