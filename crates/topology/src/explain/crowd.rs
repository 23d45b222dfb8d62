//! More hosts that give less: what a recording of before tells of the same head with fewer of them.

use super::finding::{Finding, Kind};
use super::view::View;
use crate::machine::{Crowd, Machine};
use crate::own::LOAD_MIN;
use crate::words::{count, micros};
use std::collections::BTreeMap;

/// Rates differ by so much from one moment to the next without a reason.
const LESS: f64 = 0.92;

impl Crowd {
    /// What hosts do on this machine; None without two readings, or if they do hardly anything.
    pub fn of(m: &Machine) -> Option<Self> {
        let (before, after, seconds) = (m.own.as_ref()?, m.own_later.as_ref()?, m.own_seconds?);
        Self::seen(&View { m, before, after, seconds })
    }

    fn seen(view: &View) -> Option<Self> {
        let mut hosts: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for flow in view.flows() {
            let c = flow.connection;
            // A host without a name is where it comes from.
            let who = match c.host.is_empty() {
                true => c.peer.rsplit_once(':').map_or(c.peer.as_str(), |p| p.0).to_string(),
                false => c.host.clone(),
            };
            let sum = hosts.entry(who).or_default();
            *sum = (sum.0 + flow.rate, sum.1 + flow.depth);
        }
        hosts.retain(|_, (rate, _)| *rate >= LOAD_MIN);
        let (rate, in_flight) = hosts.values().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        let [reads, writes, read_bytes, write_bytes] = view.volumes(|_| true);
        let bytes = (read_bytes + write_bytes) / (reads + writes);
        (rate >= LOAD_MIN).then_some(Self { hosts: hosts.len(), rate, in_flight, bytes })
    }

    fn words(&self) -> String {
        format!(
            "{} host{}, {:.0} in flight at {} is {} commands a second",
            self.hosts,
            if self.hosts == 1 { "" } else { "s" },
            self.in_flight,
            micros(self.in_flight / self.rate * 1e6),
            count(self.rate)
        )
    }
}

/// More hosts with as much in flight get less than fewer did. A queue that is full keeps its rate: that it falls says that
/// what waits costs something.
pub(super) fn crowd(view: &View, out: &mut Vec<Finding>) {
    let (Some(then), Some(now)) = (view.m.earlier, Crowd::seen(view)) else { return };
    // Commands of another size are another load. Where hosts keep less in flight than before, less is no wonder.
    let alike = now.bytes < 1.5 * then.bytes && then.bytes < 1.5 * now.bytes;
    let enough = now.in_flight >= then.in_flight;
    if now.hosts <= then.hosts || now.rate >= LESS * then.rate || !alike || !enough {
        return;
    }
    let full = out.iter().find(|f| f.kind.is_full()).map(|f| f.sentence.clone());
    let next = match &full {
        Some(_) => "what is full comes first".to_string(),
        None => format!(
            "a shallower queue on each host: {:.0} in flight together gave more",
            then.in_flight.ceil()
        ),
    };
    out.push(Finding {
        kind: Kind::MoreHosts,
        about: Vec::new(),
        sentence: format!(
            "More hosts get less: {} have {} commands a second together, {} had {}.",
            now.hosts,
            count(now.rate),
            then.hosts,
            count(then.rate)
        ),
        arithmetic: vec![
            format!("before: {}", then.words()),
            format!("now: {}; what was added waits, and the rest with it", now.words()),
        ],
        next,
    });
}
