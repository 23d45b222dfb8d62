//! More hosts that give less: what a recording of before tells of the same head with fewer of them.

use super::figure::Figure;
use super::finding::Finding;
use super::limit::{Hosts, Limit};
use super::view::View;
use crate::machine::{Crowd, Machine};
use crate::status::{LOAD_MIN, host};
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
            let who = if host(c).is_empty() { c.peer.ip().to_string() } else { host(c).to_string() };
            let sum = hosts.entry(who).or_default();
            *sum = (sum.0 + flow.rate, sum.1 + flow.depth);
        }
        hosts.retain(|_, (rate, _)| *rate >= LOAD_MIN);
        let (rate, in_flight) = hosts.values().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        let all = view.volumes(|_| true);
        let bytes = (all.read_bytes + all.write_bytes) / all.commands();
        (rate >= LOAD_MIN).then_some(Self { hosts: hosts.len(), rate, in_flight, bytes })
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
    let limit = Limit::MoreHostsLess {
        now: Hosts { hosts: now.hosts, rate: now.rate },
        before: Hosts { hosts: then.hosts, rate: then.rate },
        in_flight_before: then.in_flight,
        full: out.iter().any(|f| f.kind.is_full()),
    };
    let arithmetic = vec![Figure::CrowdBefore { crowd: then }, Figure::CrowdNow { crowd: now }];
    out.push(Finding::new(limit, Vec::new(), arithmetic));
}
