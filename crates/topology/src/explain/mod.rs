//! What limits the head now: two readings of counters and the machine below, in; one sentence, the arithmetic behind it
//! and the next command, out. Says nothing of what was not seen.

mod cores;
mod crowd;
mod drives;
mod finding;
mod hosts;
mod links;
mod scope;
mod view;
mod waiting;

use self::cores::{cores, digests, shards};
use self::crowd::crowd;
use self::drives::{repairs, slow_drives};
use self::hosts::{depth, far_nodes, next_limit, paths};
use self::links::{own_links, ports, uplinks};
use self::scope::Scope;
use self::view::{View, words};
use self::waiting::saturated;
use crate::machine::Machine;
use crate::own::LOAD_MIN;
use crate::record::plain_name;
use crate::words::{mb, micros};
use serde::Serialize;

pub use self::finding::{Finding, Kind};
pub use crate::machine::Crowd;
pub use crate::words::count;

/// What limits, and what would next.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Explanation {
    /// What is asked of the head now, a sentence.
    pub load: String,
    /// What limits, the most important first.
    pub findings: Vec<Finding>,
    /// What would limit next, and at what rate; empty if that is not known.
    pub next_limit: String,
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
    let Some(before) = &m.own else {
        return Explanation {
            load: "No head answers here, so there is nothing to explain.".into(),
            ..Explanation::default()
        };
    };
    let (Some(after), Some(seconds)) = (&m.own_later, m.own_seconds) else {
        return Explanation {
            load: "There is one reading only: rates need two.".into(),
            ..Explanation::default()
        };
    };
    let view = View { m, before, after, seconds };
    let all_volumes = view.volumes(|_| true);
    let [reads, writes, ..] = all_volumes;
    let rate = reads + writes;
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
        None => view.of_heads(words(all_volumes)),
        Some(name) => {
            view.own_load(m, name).unwrap_or_else(|| format!("The whole head: {}", words(all_volumes)))
        }
    };
    let next_limit = match next {
        Some(n) if rate >= LOAD_MIN => {
            let unknown = findings.iter().any(|f| f.kind == Kind::InDrives);
            let unless = if unknown { ", unless the drives are it before" } else { "" };
            format!("{} at {} commands a second: now {}{unless}", n.what, count(n.rate), n.why)
        }
        _ => String::new(),
    };
    Explanation { load, findings, next_limit, elsewhere }
}

fn caps(view: &View, out: &mut Vec<Finding>) {
    for drive in &view.after.drives {
        let Some((ops, bytes)) = view.drive_rate(drive) else { continue };
        let name = plain_name(&drive.path).to_string();
        let near = |now: f64, most: u64| most > 0 && now >= 0.85 * most as f64;
        let (iops, mbps) = (near(ops, drive.iops_max), near(bytes / 1e6, drive.mbps_max));
        if !(iops || mbps || drive.latency_us > 0 && ops > 0.0) {
            continue;
        }
        let set: Vec<String> = [
            iops.then(|| format!("at most {} operations a second", count(drive.iops_max as f64))),
            mbps.then(|| format!("at most {} MB/s", drive.mbps_max)),
            (drive.latency_us > 0)
                .then(|| format!("each operation takes {} more", micros(drive.latency_us as f64))),
        ]
        .into_iter()
        .flatten()
        .collect();
        let set = set.join(", and ");
        out.push(Finding {
            kind: Kind::Cap,
            about: vec![drive.pool.clone(), name.clone(), drive.path.clone()],
            sentence: format!("Somebody shaped the drive {name}: {set}."),
            arithmetic: vec![format!("it does {} operations and {} now", count(ops), mb(bytes))],
            next: format!("millrace drive shape {} --clear", drive.path),
        });
    }
    for volume in &view.after.volumes {
        let Some(was) = view.before.volumes.iter().find(|v| v.name == volume.name) else { continue };
        let gone = |now: u64, then: u64| now.saturating_sub(then) as f64 / view.seconds;
        let (a, b) = (&volume.counters, &was.counters);
        let ops = gone(a.reads, b.reads) + gone(a.writes, b.writes);
        let bytes = gone(a.read_bytes, b.read_bytes) + gone(a.write_bytes, b.write_bytes);
        let near = |now: f64, most: u64| most > 0 && now >= 0.9 * most as f64;
        if near(ops, volume.iops_max) || near(bytes, volume.bytes_max) {
            out.push(Finding {
                kind: Kind::Cap,
                about: vec![volume.name.clone()],
                sentence: format!("The volume {} is at the limit that somebody set.", volume.name),
                arithmetic: [
                    (
                        volume.iops_max,
                        format!("{} of {} commands", count(ops), count(volume.iops_max as f64)),
                    ),
                    (volume.bytes_max, format!("{} of {}", mb(bytes), mb(volume.bytes_max as f64))),
                ]
                .into_iter()
                .filter_map(|(most, words)| (most > 0).then_some(words))
                .collect(),
                next: format!(
                    "millrace volume set {} --iops-max none --mbps-max none, if it shall have more",
                    volume.name
                ),
            });
        }
    }
}
