//! What limits the head now: two readings of counters and the machine below, in; one sentence, the arithmetic behind it
//! and the next command, out. Says nothing of what was not seen.

mod cores;
mod crowd;
mod drives;
mod figure;
mod finding;
mod hosts;
mod limit;
mod links;
mod load;
mod scope;
mod view;
mod waiting;

use self::cores::{cores, digests, shards};
use self::crowd::crowd;
use self::drives::{repairs, slow_drives};
use self::hosts::{depth, far_nodes, next_limit, paths};
use self::links::{own_links, ports, uplinks};
use self::scope::Scope;
use self::view::View;
use self::waiting::saturated;
use crate::machine::Machine;
use crate::record::plain_name;
use crate::status::{LOAD_MIN, shape};
use serde::Serialize;

pub use self::figure::{Figure, Known, Part, Unseen, Waits};
pub use self::finding::{Finding, Kind};
pub use self::limit::{Direction, Hosts, Limit, ShardUsed, Share, SharedLink, Slow};
pub use self::load::{Load, NextLimit, Rates};
pub use crate::machine::Crowd;

/// What limits, and what would next.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Explanation {
    /// What is asked of the head now.
    pub load: Load,
    /// What limits, the most important first.
    pub findings: Vec<Finding>,
    /// What would limit next, and at what rate, if that is known.
    pub next_limit: Option<NextLimit>,
    /// Limits of what was not asked for.
    pub elsewhere: usize,
}

/// Explains what limits the head on this machine.
pub fn explain(m: &Machine) -> Explanation {
    explained(m, &Scope::everything(), None)
}

/// Explains what limits the pool, volume, host, drive or port `name`: all that it depends on. None if there is nothing of
/// that name.
pub fn explain_one(m: &Machine, name: &str) -> Option<Explanation> {
    Scope::of(m, name).map(|scope| explained(m, &scope, Some(name)))
}

fn explained(m: &Machine, scope: &Scope, name: Option<&str>) -> Explanation {
    let Some(before) = &m.own else { return Explanation::default() };
    let (Some(after), Some(seconds)) = (&m.own_later, m.own_seconds) else {
        return Explanation { load: Load::OneReading, ..Explanation::default() };
    };
    let view = View { m, before, after, seconds };
    let rates = view.volumes(|_| true);
    let (rate, writes) = (rates.commands(), rates.writes);
    let mut findings = Vec::new();
    caps(&view, &mut findings);
    uplinks(&view, &mut findings);
    own_links(&view, &mut findings);
    let waiting = saturated(&view, &mut findings);
    ports(&view, &mut findings);
    shards(&view, view.here().unwrap_or(rate), &mut findings);
    cores(&view, &mut findings);
    digests(&view, &mut findings);
    for pool in &after.pools {
        slow_drives(&view, pool, &mut findings);
        repairs(&view, pool, writes, &mut findings);
    }
    paths(&view, &mut findings);
    far_nodes(&view, &mut findings);
    crowd(&view, &mut findings);
    let full = findings.iter().any(|f| f.kind.is_full());
    // Where no core is left, what a shard could do with more of its own is of no use.
    let cores_full = findings.iter().any(|f| f.kind == Kind::Cores);
    let next = if cores_full { None } else { next_limit(&view, rate, scope) };
    depth(&view, rate, full, &waiting, next.as_ref(), &mut findings);
    findings.sort_by_key(|f| f.kind);
    let all = findings.len();
    findings.retain(|f| scope.takes(&f.about));
    let elsewhere = all - findings.len();
    let load = match name {
        None => view.all_load(rates),
        Some(name) => view.own_load(m, name).unwrap_or(Load::WholeHead { rates }),
    };
    let unless_drives = findings.iter().any(|f| f.kind == Kind::InDrives);
    let next_limit = next.filter(|_| rate >= LOAD_MIN).map(|n| NextLimit { unless_drives, ..n });
    Explanation { load, findings, next_limit, elsewhere }
}

fn caps(view: &View, out: &mut Vec<Finding>) {
    for drive in &view.after.drives {
        let Some((ops, bytes)) = view.drive_rate(drive) else { continue };
        let name = plain_name(&drive.path).to_string();
        let near = |now: f64, most: u32| most > 0 && now >= 0.85 * f64::from(most);
        let shape = shape(drive);
        let (iops, mbps) = (near(ops, shape.iops_max), near(bytes / 1e6, shape.mbps_max));
        if !(iops || mbps || shape.latency_us > 0 && ops > 0.0) {
            continue;
        }
        let limit = Limit::DriveShaped {
            drive: name.clone(),
            path: drive.path.clone(),
            iops_max: iops.then_some(shape.iops_max.into()),
            mbps_max: mbps.then_some(shape.mbps_max.into()),
            latency_us: (shape.latency_us > 0).then_some(shape.latency_us.into()),
        };
        let about = vec![drive.pool.clone().unwrap_or_default(), name, drive.path.clone()];
        out.push(Finding::new(limit, about, vec![Figure::DriveDoes { operations: ops, bytes }]));
    }
    for volume in &view.after.volumes {
        let Some(was) = view.before.volumes.iter().find(|v| v.name == volume.name) else { continue };
        let gone = |now: u64, then: u64| now.saturating_sub(then) as f64 / view.seconds;
        let (a, b) = (&volume.counters, &was.counters);
        let ops = gone(a.reads, b.reads) + gone(a.writes, b.writes);
        let bytes = gone(a.read_bytes, b.read_bytes) + gone(a.write_bytes, b.write_bytes);
        let near = |now: f64, most: u64| most > 0 && now >= 0.9 * most as f64;
        let (iops_max, bytes_max) = (u64::from(volume.iops_max), u64::from(volume.mbps_max) * 1_000_000);
        if near(ops, iops_max) || near(bytes, bytes_max) {
            let commands = Figure::CommandsOfCap { commands: ops, most: iops_max };
            let moved = Figure::BytesOfCap { bytes, most: bytes_max };
            let set = [(iops_max, commands), (bytes_max, moved)];
            let arithmetic = set.into_iter().filter_map(|(most, figure)| (most > 0).then_some(figure));
            let limit = Limit::VolumeCapped { volume: volume.name.clone() };
            out.push(Finding::new(limit, vec![volume.name.clone()], arithmetic.collect()));
        }
    }
}
