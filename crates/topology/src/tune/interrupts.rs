//! Who takes which interrupt.

use super::setting::{List, Verdict, Write, near, shard_cpus};
use super::what::{Value, What};
use crate::machine::Machine;
use crate::recording::ranges;
use std::collections::BTreeSet;

/// Vectors that are not a queue's.
fn is_queue(action: &str) -> bool {
    !["config", "async", "cmd", "admin", "event", "control", "mgmt", "aeq", "pages"]
        .iter()
        .any(|word| action.contains(word))
}

pub(super) fn settings(out: &mut List, m: &Machine) {
    if out.from.text("/proc/irqbalance/comm").is_some() {
        out.put(What::Irqbalance, Value::Runs, Value::Stopped, Verdict::Advice);
    }
    let shards = shard_cpus(m);
    for port in m.ports.iter().filter(|p| p.state != "down") {
        let Some(address) = &port.device else { continue };
        let node = m.device(address).and_then(|d| m.devices[d].node);
        let queues: Vec<&crate::interrupt::Interrupt> = m
            .interrupts
            .iter()
            .filter(|i| i.device.as_ref() == Some(address) && is_queue(&i.action) && !i.allowed.is_empty())
            .collect();
        let cpus = near(m, node);
        // One queue has one place, and one CPU leaves no choice.
        if queues.len() < 2 || cpus.len() < 2 {
            continue;
        }
        let takes: Vec<u32> = queues.iter().filter_map(|i| i.effective.first().copied()).collect();
        let different: BTreeSet<u32> = takes.iter().copied().collect();
        let crowded = different.len() < queues.len().min(cpus.len());
        let on_shards = takes.iter().filter(|c| shards.contains(c)).count();
        let is_far = |c: &&u32| m.cpus.iter().any(|cpu| cpu.id == **c && node.is_some() && cpu.node != node);
        let far = takes.iter().filter(is_far).count();
        let avoidable = on_shards > 0 && !shards.contains(&cpus[0]);
        let found = Value::QueuesOn {
            queues: queues.len(),
            cpus: different.iter().copied().collect(),
            beside_shards: if avoidable { on_shards } else { 0 },
            far,
        };
        let writes: Vec<Write> = queues
            .iter()
            .zip(cpus.iter().cycle())
            .map(|(i, cpu)| Write {
                path: format!("/proc/irq/{}/smp_affinity_list", i.name),
                was: ranges(&i.allowed),
                value: cpu.to_string(),
            })
            .filter(|w| w.was != w.value)
            .collect();
        let used: Vec<u32> = cpus.iter().copied().take(queues.len()).collect();
        let good = !(crowded || avoidable || far > 0) || writes.is_empty();
        let wanted = if good { Value::AsItIs } else { Value::OneEachOn(used) };
        let verdict = if good { Verdict::Good } else { Verdict::Change(writes) };
        out.put(What::PortInterrupts { port: port.name.clone() }, found, wanted, verdict);
    }
}
