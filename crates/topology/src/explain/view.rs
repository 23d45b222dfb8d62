//! What changed between two readings of a head's counters.

use super::load::{Load, Rates};
use super::scope::{drive_called, pool_of};
use crate::machine::Machine;
use crate::record::plain_name;
use crate::status::{Own, host};
use api::{Connection, Counters, Drive, Protocol, Volume};
use std::collections::BTreeMap;

/// From here on a link, a port, a core counts as full.
pub(super) const FULL: f64 = 0.92;
/// Two of a kind differ from here on.
pub(super) const APART: f64 = 0.15;

/// What changed between the readings.
pub(super) struct View<'a> {
    pub(super) m: &'a Machine,
    pub(super) before: &'a Own,
    pub(super) after: &'a Own,
    /// Between the two.
    pub(super) seconds: f64,
}

/// A connection's part.
pub(super) struct Flow<'a> {
    pub(super) connection: &'a Connection,
    /// Commands a second.
    pub(super) rate: f64,
    /// Under way, mean of both readings.
    pub(super) depth: f64,
}

impl<'a> View<'a> {
    pub(super) fn flows(&self) -> Vec<Flow<'a>> {
        let key = |c: &Connection| (c.host.clone(), c.peer, c.session, c.queue);
        let before: BTreeMap<_, &Connection> = self.before.connections.iter().map(|c| (key(c), c)).collect();
        let flow = |c: &'a Connection| {
            let was = before.get(&key(c))?;
            Some(Flow {
                connection: c,
                rate: c.commands.saturating_sub(was.commands) as f64 / self.seconds,
                depth: (f64::from(c.in_flight) + f64::from(was.in_flight)) / 2.0,
            })
        };
        // NVMe's queue 0 carries no I/O, and discovery none either.
        let io = |c: &&Connection| match c.protocol {
            Protocol::Iscsi => true,
            Protocol::Nvme => c.queue > 0,
            Protocol::Discovery => false,
        };
        self.after.connections.iter().filter(io).filter_map(flow).collect()
    }

    /// What hosts do to those volumes.
    pub(super) fn volumes(&self, which: impl Fn(&Volume) -> bool) -> Rates {
        let mut out = Rates::default();
        for volume in self.after.volumes.iter().filter(|v| which(v)) {
            let Some(was) = self.before.volumes.iter().find(|v| v.name == volume.name) else { continue };
            let its = self.rates(&volume.counters, &was.counters);
            out.reads += its.reads;
            out.writes += its.writes;
            out.read_bytes += its.read_bytes;
            out.write_bytes += its.write_bytes;
        }
        out
    }

    /// What was done between two counts.
    pub(super) fn rates(&self, now: &Counters, then: &Counters) -> Rates {
        let gone = |now: u64, then: u64| now.saturating_sub(then) as f64 / self.seconds;
        Rates {
            reads: gone(now.reads, then.reads),
            writes: gone(now.writes, then.writes),
            read_bytes: gone(now.read_bytes, then.read_bytes),
            write_bytes: gone(now.write_bytes, then.write_bytes),
        }
    }

    /// Commands a second of hosts that come to this head, where there are two.
    pub(super) fn here(&self) -> Option<f64> {
        self.after.head.as_ref()?;
        let commands = |own: &Own| own.shards.iter().map(|s| s.of.commands).sum::<u64>();
        Some(commands(self.after).saturating_sub(commands(self.before)) as f64 / self.seconds)
    }
    /// The load of a system, and what of it comes to the head that is looked at.
    pub(super) fn all_load(&self, rates: Rates) -> Load {
        match (&self.after.head, self.here()) {
            (Some(head), Some(here)) => Load::BothHeads { rates, head: head.clone(), here },
            _ => Load::All { rates },
        }
    }

    /// What `name` itself does: a volume, a pool or a drive reads and writes, of a host only its commands are counted. None
    /// of what has no counters.
    pub(super) fn own_load(&self, m: &Machine, name: &str) -> Option<Load> {
        let of = |name: &str, rates: Rates| Some(Load::Of { name: name.into(), rates });
        if self.after.volumes.iter().any(|v| v.name == name) {
            return of(name, self.volumes(|v| v.name == name));
        }
        if self.after.pools.iter().any(|p| p.name == name) {
            return of(name, self.volumes(|v| pool_of(v) == name));
        }
        let at = m.drive_at(name);
        let on = |d: &&Drive| at.is_some_and(|at| plain_name(&d.path) == at.name);
        if let Some(drive) = drive_called(self.after, name).or_else(|| self.after.drives.iter().find(on)) {
            let same = |d: &&Drive| (&d.path, &d.uuid) == (&drive.path, &drive.uuid);
            let was = self.before.drives.iter().find(same)?;
            return of(plain_name(&drive.path), self.rates(&drive.counters, &was.counters));
        }
        let flows: Vec<f64> =
            self.flows().iter().filter(|f| host(f.connection) == name).map(|f| f.rate).collect();
        (!flows.is_empty()).then(|| Load::OfHost { host: name.into(), rate: flows.iter().sum() })
    }

    /// What the head did to a drive a second: operations, bytes.
    pub(super) fn drive_rate(&self, drive: &Drive) -> Option<(f64, f64)> {
        // Drives in memory may have one path, and have labels of their own.
        let same = |d: &&Drive| (&d.path, &d.uuid) == (&drive.path, &drive.uuid);
        let was = self.before.drives.iter().find(same)?;
        let gone = |now: u64, then: u64| now.saturating_sub(then) as f64 / self.seconds;
        let (a, b) = (&drive.counters, &was.counters);
        Some((
            gone(a.reads, b.reads) + gone(a.writes, b.writes),
            gone(a.read_bytes, b.read_bytes) + gone(a.write_bytes, b.write_bytes),
        ))
    }
}

pub(super) fn median(mut list: Vec<f64>) -> Option<f64> {
    list.sort_by(f64::total_cmp);
    list.get(list.len() / 2).copied()
}
