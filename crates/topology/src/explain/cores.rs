//! Shards, the cores below them, and what else takes these.

use super::finding::{Finding, Kind};
use super::view::{FULL, View};
use crate::words::{capital, count, micros, names, percent};

pub(super) fn shards(view: &View, rate: f64, out: &mut Vec<Finding>) {
    let m = view.m;
    let busy: Vec<(u64, f64)> =
        view.before.shards.iter().filter_map(|s| Some((s.shard, f64::from(s.busy?)))).collect();
    for shard in &view.before.shards {
        let cpu = shard.core.and_then(|core| m.cpus.iter().find(|c| c.id == core));
        let name = match &view.after.head {
            Some(head) => format!("shard {} of head {head}", shard.shard),
            None => format!("shard {}", shard.shard),
        };
        if let Some(part) = shard.busy.map(f64::from).filter(|b| *b >= FULL) {
            let idle: Vec<String> = busy
                .iter()
                .filter(|(_, b)| *b < 0.5)
                .map(|(s, b)| format!("{s} ({})", percent(*b)))
                .collect();
            let connections = |of: u64| view.after.connections.iter().filter(|c| c.shard == of).count();
            let mut arithmetic = vec![format!("{name} used {} of its core", percent(part))];
            if rate > 0.0 && idle.is_empty() {
                let all: f64 = busy.iter().map(|(_, b)| b).sum();
                arithmetic.push(format!(
                    "{} commands a second on {all:.1} cores: {} for each command",
                    count(rate),
                    micros(all / rate * 1e6)
                ));
            }
            let sentence = match idle.len() {
                0 => format!("{name} has no time left: the processor is the limit."),
                _ => format!(
                    "{name} has no time left while {} {} half idle: its {} connections should be spread.",
                    idle.join(", "),
                    if idle.len() == 1 { "is" } else { "are" },
                    connections(shard.shard)
                ),
            };
            let next = match idle.len() {
                0 => "more cores for shards (cores in head.toml), or fewer, larger commands",
                _ => {
                    "more connections from the host (nvme connect --nr-io-queues), or millrace bench --connections to see"
                }
            };
            out.push(Finding {
                kind: Kind::Shard,
                about: Vec::new(),
                sentence: capital(&sentence),
                arithmetic,
                next: next.into(),
            });
        }
        let Some(cpu) = cpu else { continue };
        // The shard's own sending and receiving is softirq too: only what others' devices raise is a disturbance.
        let threads: Vec<u32> = if cpu.siblings.is_empty() { vec![cpu.id] } else { cpu.siblings.clone() };
        for thread in threads {
            let Some(on) = m.cpus.iter().find(|c| c.id == thread) else { continue };
            let raised: Vec<(String, f64)> = m
                .interrupts
                .iter()
                .filter(|i| i.device.is_some())
                .filter_map(|i| {
                    let rate = i.per_second.as_ref()?.iter().find(|(c, _)| *c == thread)?.1;
                    Some((i.action.clone(), f64::from(rate)))
                })
                .collect();
            let total: f64 = raised.iter().map(|r| r.1).sum();
            let taken = f64::from(on.irq.unwrap_or(0.0)) + f64::from(on.softirq.unwrap_or(0.0));
            // 100 K/s of 1 to 2 µs each is a tenth of a core; a tenth of a core in soft interrupts is one as well.
            if total >= 20_000.0 || total >= 1_000.0 && taken >= 0.10 {
                let most = raised.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |r| r.0.as_str());
                let place = match thread == cpu.id {
                    true => format!("its core, {thread}"),
                    false => format!("CPU {thread}, a thread of its core"),
                };
                out.push(Finding {
                    kind: Kind::Interrupts,
                    about: Vec::new(),
                    sentence: format!(
                        "Interrupts take time from {name}: {} a second on {place}.",
                        count(total)
                    ),
                    arithmetic: vec![format!(
                        "most are of {most}; CPU {thread} spends {} of its time in interrupts",
                        percent(taken)
                    )],
                    next: "millrace tune --apply --only interrupts".into(),
                });
            }
        }
    }
    let shard_cores: Vec<u32> = view.before.shards.iter().filter_map(|s| s.core).collect();
    for cpu in m.cpus.iter().filter(|c| !shard_cores.contains(&c.id)) {
        let Some(part) = cpu.softirq.map(f64::from).filter(|s| *s >= 0.85) else { continue };
        out.push(Finding {
            kind: Kind::Softirq,
            about: Vec::new(),
            sentence: format!("CPU {} has no time left for the network: one core serves its queue.", cpu.id),
            arithmetic: vec![format!("{} of its time in soft interrupts", percent(part))],
            next: "millrace tune --apply --only interrupts, and more queues (ethtool -L)".into(),
        });
    }
}

/// Checksums over what connections carry, where shards have no time left: they are work that hosts asked for.
pub(super) fn digests(view: &View, out: &mut Vec<Finding>) {
    if !out.iter().any(|f| matches!(f.kind, Kind::Shard | Kind::Cores)) {
        return;
    }
    let flows = view.flows();
    let all: f64 = flows.iter().map(|f| f.rate).sum();
    let with: Vec<_> = flows.iter().filter(|f| f.connection.digests && f.rate > 0.0).collect();
    let share = with.iter().map(|f| f.rate).sum::<f64>() / all;
    if with.is_empty() || share < 0.1 {
        return;
    }
    let mut hosts: Vec<String> = with.iter().map(|f| f.connection.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    let who =
        hosts.iter().map(|h| if h.is_empty() { "a host".into() } else { h.clone() }).collect::<Vec<_>>();
    out.push(Finding {
        kind: Kind::Digests,
        about: hosts,
        sentence: format!("Shards without time left also compute checksums: {} asked for digests.", names(&who)),
        arithmetic: vec![
            format!(
                "{} of {} connections have digests, and carry {} of all commands: a pass over each byte of these",
                with.len(),
                flows.len(),
                percent(share)
            ),
            "TLS is no part of it: no portal of this head offers it".into(),
        ],
        next: "millrace bench with and without --digests tells what they cost here; hosts ask for them when they connect"
            .into(),
    });
}

/// Cores that all work, for shards that have to wait for theirs: other programs, or hosts on the same machine.
pub(super) fn cores(view: &View, out: &mut Vec<Finding>) {
    let busy: Vec<f64> = view.m.cpus.iter().filter_map(|c| c.busy.map(f64::from)).collect();
    if busy.is_empty() || out.iter().any(|f| f.kind == Kind::Shard) {
        return;
    }
    let (all, n) = (busy.iter().sum::<f64>(), busy.len());
    if all < 0.95 * n as f64 {
        return;
    }
    // Others that work only where nobody else wants to (a low priority) fill all cores and cost the head nothing.
    let waited: Vec<f64> = view.before.shards.iter().filter_map(|s| s.waited.map(f64::from)).collect();
    let most = waited.iter().copied().reduce(f64::max);
    if most.is_some_and(|most| most < 0.05) {
        return;
    }
    let own: f64 =
        view.before.shards.iter().filter_map(|s| s.busy.map(f64::from)).fold(0.0, |all, busy| all + busy);
    let sentence = match n {
        1 => "The processor is the limit: its only core is busy.".to_string(),
        _ => format!("The processor is the limit: all {n} cores of this machine are busy."),
    };
    out.push(Finding {
        kind: Kind::Cores,
        about: Vec::new(),
        sentence,
        arithmetic: vec![
            format!("{all:.1} of {n} cores are used: {own:.1} by shards, {:.1} by everything else", (all - own).max(0.0)),
            match most {
                Some(most) => format!("a shard that had work waited up to {} of the time for a core", percent(most)),
                None => "a shard that waits for its core does nothing in that time: its own share says less than it could do".into(),
            },
        ],
        next: "fewer other programs on this machine (top), or more cores".into(),
    });
}
