//! What a thing depends on: a finding is about it if it is about one of these.

use crate::machine::Machine;
use crate::record::plain_name;
use crate::status::{Own, host as host_of};
use api::{Drive, Volume};
use std::collections::BTreeSet;

/// So much of an identity stands for it.
const UUID_BEGIN: usize = 8;

/// Names of pools, volumes, hosts, drives and ports.
pub(super) struct Scope {
    /// None: everything is asked for.
    names: Option<BTreeSet<String>>,
}

impl Scope {
    /// The whole head.
    pub(super) fn everything() -> Self {
        Self { names: None }
    }

    /// What the pool, volume, host, drive or port `name` depends on; None if there is nothing of that name.
    pub(super) fn of(m: &Machine, name: &str) -> Option<Self> {
        let mut names = BTreeSet::new();
        if let Some(drive) = m.drive_at(name) {
            names.insert(drive.name.clone());
        }
        if m.ports.iter().any(|p| p.name == name) {
            names.insert(name.to_string());
        }
        match m.own_later.as_ref().or(m.own.as_ref()) {
            Some(own) => of_head(m, own, name, &mut names),
            // Where no head answers nobody can say that there is no such pool.
            None => names.extend([name.to_string()]),
        }
        (!names.is_empty()).then_some(Self { names: Some(names) })
    }

    /// Whether it depends on one of these. What is about nobody is about everybody.
    pub(super) fn takes(&self, about: &[String]) -> bool {
        let Some(names) = &self.names else { return true };
        about.is_empty() || about.iter().any(|a| names.contains(a))
    }
}

fn of_head(m: &Machine, own: &Own, name: &str, names: &mut BTreeSet<String>) {
    // A drive of a pool waits for the others: each command that is spread over all is as late as the last part of it.
    let drive = drive_called(own, name);
    let pool_of_drive = drive.and_then(|d| d.pool.as_deref());
    let mut pools: BTreeSet<&str> = own
        .pools
        .iter()
        .map(|p| p.name.as_str())
        .filter(|p| *p == name || Some(*p) == pool_of_drive)
        .collect();
    let mut volumes: BTreeSet<&str> =
        own.volumes.iter().filter(|v| pools.contains(pool_of(v))).map(|v| v.name.as_str()).collect();
    let volume = own.volumes.iter().find(|v| v.name == name);
    volumes.extend(volume.map(|v| v.name.as_str()));
    let host = !name.is_empty() && own.connections.iter().any(|c| host_of(c) == name)
        || own.volumes.iter().flat_map(|v| &v.exports).any(|e| e.host.as_deref() == Some(name));
    let mut hosts: BTreeSet<&str> = BTreeSet::new();
    if host {
        hosts.insert(name);
        // A status that does not tell to whom volumes are given leaves all of them possible.
        let its = own.volumes.iter().filter(|v| own.may_use(name, v));
        volumes.extend(its.map(|v| v.name.as_str()));
    }
    let asked: Vec<&Volume> = own.volumes.iter().filter(|v| volumes.contains(v.name.as_str())).collect();
    pools.extend(asked.iter().map(|v| pool_of(v)));
    if !host {
        for host in own.connections.iter().map(host_of).filter(|h| !h.is_empty()) {
            if asked.iter().any(|v| own.may_use(host, v)) {
                hosts.insert(host);
            }
        }
    }
    if let Some(drive) = drive {
        names.extend([drive.path.clone(), plain_name(&drive.path).to_string()]);
    }
    for pool in own.pools.iter().filter(|p| pools.contains(p.name.as_str())) {
        for leg in pool.arrays.iter().flat_map(|a| &a.legs) {
            names.extend([leg.path.clone(), plain_name(&leg.path).to_string()]);
        }
        names.insert(pool.name.clone());
    }
    // Which port a host comes in by is not told: any of them may be its.
    if !hosts.is_empty() || !pools.is_empty() {
        names.extend(m.ports.iter().map(|p| p.name.clone()));
        // A host that nobody knows by name may use anything.
        names.insert(String::new());
    }
    names.extend(volumes.into_iter().chain(hosts).map(String::from));
}

/// A drive of the head's, as `drive ls` and the other drive commands call it: by its path, the end of that, or the beginning
/// of its identity.
pub(super) fn drive_called<'a>(own: &'a Own, name: &str) -> Option<&'a Drive> {
    own.drives.iter().find(|d| {
        let named = d.path == name || d.path.rsplit('/').next() == Some(name);
        !name.is_empty() && named
            || name.len() >= UUID_BEGIN
                && d.uuid.is_some_and(|u| u.to_string().starts_with(&name.to_ascii_lowercase()))
    })
}

/// The pool of a volume, by its name.
pub(super) fn pool_of(volume: &Volume) -> &str {
    volume.name.split('/').next().unwrap_or("")
}
