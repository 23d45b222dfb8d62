//! Shards, the cores below them, and what else takes these.

use super::figure::Figure;
use super::finding::{Finding, Kind};
use super::limit::{Limit, ShardUsed};
use super::view::{FULL, View};
use crate::status::{digests as digests_of, host};

pub(super) fn shards(view: &View, rate: f64, out: &mut Vec<Finding>) {
    let m = view.m;
    let busy: Vec<(u64, f64)> =
        view.before.shards.iter().filter_map(|s| Some((s.of.shard.into(), f64::from(s.busy?)))).collect();
    for shard in &view.before.shards {
        let number = u64::from(shard.of.shard);
        let cpu = shard.core.and_then(|core| m.cpus.iter().find(|c| c.id == core));
        let head = view.after.head.clone();
        if let Some(part) = shard.busy.map(f64::from).filter(|b| *b >= FULL) {
            let idle: Vec<ShardUsed> = busy
                .iter()
                .filter(|(_, b)| *b < 0.5)
                .map(|(shard, used)| ShardUsed { shard: *shard, used: *used })
                .collect();
            let mut arithmetic = vec![Figure::ShardUses { shard: number, head: head.clone(), used: part }];
            if rate > 0.0 && idle.is_empty() {
                arithmetic.push(Figure::CommandCosts { rate, cores: busy.iter().map(|(_, b)| b).sum() });
            }
            let connections = view.after.connections.iter().filter(|c| c.shard == shard.of.shard).count();
            let limit = Limit::ShardFull { shard: number, head: head.clone(), connections, idle };
            out.push(Finding::new(limit, Vec::new(), arithmetic));
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
                let limit = Limit::ShardInterrupted {
                    shard: number,
                    head: head.clone(),
                    per_second: total,
                    cpu: thread,
                    own: thread == cpu.id,
                };
                let figure = Figure::InterruptsOf { action: most.into(), cpu: thread, used: taken };
                out.push(Finding::new(limit, Vec::new(), vec![figure]));
            }
        }
    }
    let shard_cores: Vec<u32> = view.before.shards.iter().filter_map(|s| s.core).collect();
    for cpu in m.cpus.iter().filter(|c| !shard_cores.contains(&c.id)) {
        let Some(part) = cpu.softirq.map(f64::from).filter(|s| *s >= 0.85) else { continue };
        let limit = Limit::NetworkCoreFull { cpu: cpu.id };
        out.push(Finding::new(limit, Vec::new(), vec![Figure::SoftirqTakes { used: part }]));
    }
}

/// Checksums over what connections carry, where shards have no time left: they are work that hosts asked for.
pub(super) fn digests(view: &View, out: &mut Vec<Finding>) {
    if !out.iter().any(|f| matches!(f.kind, Kind::Shard | Kind::Cores)) {
        return;
    }
    let flows = view.flows();
    let all: f64 = flows.iter().map(|f| f.rate).sum();
    let with: Vec<_> = flows.iter().filter(|f| digests_of(f.connection) && f.rate > 0.0).collect();
    let share = with.iter().map(|f| f.rate).sum::<f64>() / all;
    if with.is_empty() || share < 0.1 {
        return;
    }
    let mut hosts: Vec<String> = with.iter().map(|f| host(f.connection).to_string()).collect();
    hosts.sort();
    hosts.dedup();
    let on = Figure::DigestsOn { connections: with.len(), of: flows.len(), carry: share };
    let limit = Limit::Digests { hosts: hosts.clone() };
    out.push(Finding::new(limit, hosts, vec![on, Figure::NoTls]));
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
    let waited = most.map_or(Figure::ShardsWaitedUnknown, |most| Figure::ShardsWaited { most });
    let arithmetic = vec![Figure::CoresUsed { used: all, cores: n, shards: own }, waited];
    out.push(Finding::new(Limit::CoresFull { cores: n }, Vec::new(), arithmetic));
}
