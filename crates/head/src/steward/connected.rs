//! Hosts that are connected and would lose something by an order: who gives it is told, and says that it is meant.

use super::desk::{Desk, count, refuse};
use super::sessions::Session;
use crate::order::{Refusal, RefusalKind};
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
        let hosts = self.hosts.iter().map(|h| (h.name.clone(), connections(h.id)));
        let mut hosts: Vec<Connected> = hosts.filter(|(_, n)| *n > 0).collect();
        hosts.sort();
        hosts
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
            let of = self.hosts.by_id(id).zip(config);
            of.is_some_and(|(h, c)| c.grants.for_host(h).any(|(v, ..)| volume.is_none_or(|one| one == v)))
        };
        let hosts = self.connected(|s| s.host.is_some_and(|id| host.is_none_or(|one| one == id) && sees(id)));
        refuse_connected(&hosts, &format!("would lose {what}"), command)
    }
    /// Refuses what would end the connections of a host.
    pub(crate) fn check_host_away(&self, host: HostId, why: &str, command: &str) -> Result<(), Refusal> {
        refuse_connected(&self.connected(|s| s.host == Some(host)), why, command)
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
