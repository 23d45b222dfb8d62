//! What hosts do: their paths, what they keep in flight, and what would be full next if they did more.

use super::figure::{Figure, Part, Unseen};
use super::finding::Finding;
use super::limit::Limit;
use super::links::below;
use super::load::NextLimit;
use super::scope::Scope;
use super::view::{FULL, Flow, View};
use super::waiting::Waiting;
use crate::status::{LOAD_MIN, host as host_of};
use std::collections::BTreeMap;

pub(super) fn paths(view: &View, out: &mut Vec<Finding>) {
    let flows = view.flows();
    let mut hosts: BTreeMap<&str, Vec<&Flow>> = BTreeMap::new();
    for flow in &flows {
        let host = host_of(flow.connection);
        if !host.is_empty() {
            hosts.entry(host).or_default().push(flow);
        }
    }
    for (host, flows) in hosts {
        // A path is where a host comes from: its address without the port, and its session.
        let mut paths: BTreeMap<(String, u16), (f64, f64)> = BTreeMap::new();
        for flow in flows {
            let peer = &flow.connection.peer;
            let address = peer.ip().to_string();
            let sum = paths.entry((address, flow.connection.session.unwrap_or(0))).or_default();
            sum.0 += flow.rate;
            sum.1 += flow.depth;
        }
        let best = paths.values().map(|p| p.0).fold(0.0, f64::max);
        if paths.len() < 2 || best < LOAD_MIN * 4.0 {
            continue;
        }
        for ((address, session), (rate, depth)) in &paths {
            if *rate >= best / 10.0 {
                continue;
            }
            let (paths, address, session) = (paths.len(), address.clone(), u64::from(*session));
            let limit = if *rate < 1.0 && *depth < 0.5 {
                Limit::PathIdle { host: host.into(), paths, address, session }
            } else {
                Limit::PathStarved { host: host.into(), paths, address, session }
            };
            let figure = Figure::PathDoes { rate: *rate, in_flight: *depth, best };
            out.push(Finding::new(limit, vec![host.to_string()], vec![figure]));
        }
    }
}

/// Drives and ports whose node is not that of any shard.
pub(super) fn far_nodes(view: &View, out: &mut Vec<Finding>) {
    let m = view.m;
    if m.nodes.len() < 2 {
        return;
    }
    let node_of = |core: u32| m.cpus.iter().find(|c| c.id == core)?.node;
    let homes: Vec<u32> = view.before.shards.iter().filter_map(|s| node_of(s.core?)).collect();
    if homes.is_empty() {
        return;
    }
    let busy = m.drives.iter().filter(|d| d.activity.is_some_and(|a| a.read_bytes + a.write_bytes > 50e6));
    let far: Vec<String> =
        busy.filter(|d| m.node_of(d).is_some_and(|n| !homes.contains(&n))).map(|d| d.name.clone()).collect();
    if !far.is_empty() {
        let moved: f64 = m
            .drives
            .iter()
            .filter(|d| far.contains(&d.name))
            .filter_map(|d| d.activity.map(|a| a.read_bytes + a.write_bytes))
            .sum();
        let arithmetic = vec![Figure::Crosses { bytes: moved }, Figure::MeasureNodes];
        out.push(Finding::new(Limit::FarNode { drives: far.clone() }, far, arithmetic));
    }
}

/// What fills up next.
pub(super) fn next_limit(view: &View, rate: f64, scope: &Scope) -> Option<NextLimit> {
    let m = view.m;
    let mut all: Vec<(f64, Part)> = Vec::new();
    for shard in &view.before.shards {
        all.extend(shard.busy.map(|b| (f64::from(b), Part::Shard { shard: shard.of.shard.into() })));
    }
    for own in view.after.drives.iter().filter(|d| d.pool.is_some()) {
        let Some(drive) = m.drive_at(&own.path).filter(|d| scope.takes(core::slice::from_ref(&d.name)))
        else {
            continue;
        };
        let Some(a) = drive.activity else { continue };
        for (write, rate, bytes) in [(false, a.reads, a.read_bytes), (true, a.writes, a.write_bytes)] {
            if rate > 0.0
                && let Some(most) = m.ability(drive, write, bytes / rate)
            {
                all.push((rate / most, Part::Drive { drive: drive.name.clone() }));
            }
        }
    }
    for (at, device) in m.devices.iter().enumerate() {
        let Some(limit) = device.link.and_then(|l| l.payload_mb()).map(|mb| mb * 1e6) else { continue };
        let here: Vec<(String, f64, f64)> = match device.port {
            crate::pci::PortKind::SwitchUp => below(view, at),
            crate::pci::PortKind::Endpoint => m
                .drives
                .iter()
                .filter(|d| d.device.as_deref() == Some(&device.address))
                .filter_map(|d| d.activity.map(|a| (d.name.clone(), a.read_bytes, a.write_bytes)))
                .collect(),
            _ => continue,
        };
        let about: Vec<String> = here.iter().map(|d| d.0.clone()).collect();
        if about.is_empty() || !scope.takes(&about) {
            continue;
        }
        let (read, write) = here.iter().fold((0.0, 0.0), |(r, w), d| (r + d.1, w + d.2));
        let part = match here.first() {
            Some(first) if device.port == crate::pci::PortKind::Endpoint => {
                Part::Link { drive: first.0.clone() }
            }
            Some(_) => Part::Uplink { switch: device.address.trim_start_matches("0000:").into() },
            None => continue,
        };
        all.push((f64::max(read, write) / limit, part));
    }
    for port in m.ports.iter().filter(|p| scope.takes(core::slice::from_ref(&p.name))) {
        if let (Some(limit), Some(rx), Some(tx)) = (port.payload_bytes(), port.rx_bytes, port.tx_bytes) {
            all.push((f64::max(rx, tx) / limit, Part::Port { port: port.name.clone() }));
        }
    }
    // What is full already is told as that.
    let (used, part) = all.into_iter().filter(|(p, _)| *p < FULL).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (used > 0.02).then(|| NextLimit { part, rate: rate / used, used, unless_drives: false })
}

/// Parts of the way of which no load was seen: nothing is said of them.
fn unseen(view: &View, waiting: &Waiting) -> Vec<Unseen> {
    let m = view.m;
    let memory = |d: &api::Drive| d.pool.is_none() || crate::plan::is_memory(&d.path);
    let drives = waiting.drives.is_empty() && !view.after.drives.iter().all(memory);
    let ports = !m.ports.iter().any(|p| p.payload_bytes().is_some() && p.tx_bytes.is_some());
    let shards = view.before.shards.iter().all(|s| s.busy.is_none());
    [(drives, Unseen::Drives), (ports, Unseen::Network), (shards, Unseen::Shards)]
        .into_iter()
        .filter_map(|(unseen, part)| unseen.then_some(part))
        .collect()
}

/// Little's law: what is in flight is rate times time.
pub(super) fn depth(
    view: &View,
    rate: f64,
    full: bool,
    waiting: &Waiting,
    next: Option<&NextLimit>,
    out: &mut Vec<Finding>,
) {
    let flows = view.flows();
    let mut hosts: BTreeMap<&str, (f64, f64, usize)> = BTreeMap::new();
    for flow in &flows {
        let sum = hosts.entry(host_of(flow.connection)).or_default();
        sum.0 += flow.rate;
        sum.1 += flow.depth;
        sum.2 += 1;
    }
    let all: f64 = hosts.values().map(|h| h.1).sum();
    if !full && rate >= LOAD_MIN && all >= 0.5 && waiting.may_be_full(all) {
        let figure = Figure::InDrives {
            operations: waiting.operations,
            drives: waiting.drives.len(),
            us: waiting.us,
            in_flight: all,
        };
        let limit = Limit::WaitInDrives { unmeasured: waiting.unmeasured.clone() };
        out.push(Finding::new(limit, waiting.drives.clone(), vec![figure]));
        return;
    }
    let bare = waiting.bare_us.filter(|us| *us < waiting.us).unwrap_or(waiting.us);
    let unseen = unseen(view, waiting);
    for (host, (host_rate, in_flight, connections)) in hosts {
        if host_rate < LOAD_MIN || in_flight < 0.5 {
            continue;
        }
        let us = in_flight / host_rate * 1e6;
        let law = Figure::Little { in_flight, us, rate: host_rate };
        if full {
            // Beyond the knee more commands wait longer and nothing else: what would do is rate times the bare time.
            let bare = bare.max(20.0);
            let enough = (host_rate * bare / 1e6 * 2.0).ceil().max(1.0);
            if us > 4.0 * bare && in_flight > 2.0 * enough && !waiting.drives.is_empty() {
                let limit = Limit::TooManyInFlight { host: host.into(), in_flight };
                let enough = Figure::Enough { bare_us: bare, waits: 1.0 - bare / us, in_flight: enough };
                out.push(Finding::new(limit, vec![host.to_string()], vec![law, enough]));
            }
            continue;
        }
        // With one host, what the head could do more is known from what fills up next; with several each has its part.
        let Some(next) = next.filter(|n| n.rate > 1.3 * rate) else { continue };
        let could = host_rate * next.rate / rate;
        let needs = (could * us / 1e6).ceil();
        let part = next.part.clone();
        let mut arithmetic = vec![law, Figure::Needs { rate: could, part, needs, in_flight, connections }];
        if !unseen.is_empty() {
            arithmetic.push(Figure::NotSeen { parts: unseen.clone() });
        }
        let limit = Limit::TooFewInFlight { host: host.into(), all_seen: unseen.is_empty() };
        out.push(Finding::new(limit, vec![host.to_string()], arithmetic));
    }
}
