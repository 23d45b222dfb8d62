//! Sockets, cores, threads of a core, NUMA nodes; how busy each CPU was between two readings.

use crate::gap::Gap;
use crate::recording::{Recording, members};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A CPU as Linux numbers them: one thread of a core.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Cpu {
    /// Its number.
    pub id: u32,
    /// Its socket.
    pub socket: Option<u32>,
    /// Its core within the socket.
    pub core: Option<u32>,
    /// All threads of its core, itself among them; empty if the machine does not say.
    pub siblings: Vec<u32>,
    /// Its NUMA node.
    pub node: Option<u32>,
    /// What chooses its frequency.
    pub governor: Option<String>,
    /// Part of the time it was not idle between the readings, 0 to 1.
    pub busy: Option<f32>,
    /// Part of the time it served soft interrupts.
    pub softirq: Option<f32>,
    /// Part of the time it served interrupts.
    pub irq: Option<f32>,
    /// Part of the time that the hypervisor gave to somebody else.
    pub steal: Option<f32>,
}

/// A socket.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Socket {
    /// Its number.
    pub id: u32,
    /// Its cores.
    pub cores: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// Its nodes.
    pub nodes: Vec<u32>,
}

/// A NUMA node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// Its memory, KiB.
    pub memory_kib: Option<u64>,
    /// Of that, free.
    pub free_kib: Option<u64>,
    /// How far each node is, 10 for itself.
    pub distances: Vec<u32>,
}

const SYSTEM: &str = "/sys/devices/system";

/// Names such as `cpu12` below a folder, as their numbers, in order.
pub(crate) fn numbered(from: &Recording, folder: &str, stem: &str) -> Vec<u32> {
    let number = |name: String| name.strip_prefix(stem)?.parse().ok();
    let mut out: Vec<u32> = from.list(folder).into_iter().filter_map(number).collect();
    out.sort_unstable();
    out.dedup();
    out
}

pub(crate) fn nodes(from: &Recording) -> Vec<Node> {
    let memory = |id: u32, what: &str| {
        let text = from.file(&format!("{SYSTEM}/node/node{id}/meminfo"))?;
        let line = text.lines().find(|l| l.contains(what))?;
        line.split(what).nth(1)?.split_whitespace().next()?.parse().ok()
    };
    let node = |id: u32| Node {
        id,
        cpus: from.text(&format!("{SYSTEM}/node/node{id}/cpulist")).map_or(Vec::new(), members),
        memory_kib: memory(id, "MemTotal:"),
        free_kib: memory(id, "MemFree:"),
        distances: from
            .text(&format!("{SYSTEM}/node/node{id}/distance"))
            .map_or(Vec::new(), |t| t.split_whitespace().map_while(|d| d.parse().ok()).collect()),
    };
    numbered(from, &format!("{SYSTEM}/node"), "node").into_iter().map(node).collect()
}

pub(crate) fn cpus(from: &Recording, nodes: &[Node], gaps: &mut Vec<Gap>) -> Vec<Cpu> {
    let mut ids = numbered(from, &format!("{SYSTEM}/cpu"), "cpu");
    let online = from.text(&format!("{SYSTEM}/cpu/online")).map(members);
    if let Some(online) = &online {
        // CPUs of which nothing but the number is known are there all the same.
        ids.extend(online);
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| online.binary_search(id).is_ok());
    }
    let node_of: BTreeMap<u32, u32> = nodes.iter().flat_map(|n| n.cpus.iter().map(|c| (*c, n.id))).collect();
    let times = Times::of(from);
    let cpu = |id: u32| {
        let folder = format!("{SYSTEM}/cpu/cpu{id}");
        let topology = |name: &str| from.text(&format!("{folder}/topology/{name}"));
        let siblings = topology("thread_siblings_list").map_or(Vec::new(), members);
        let time = times.get(&id);
        Cpu {
            id,
            // A machine that does not know writes -1.
            socket: topology("physical_package_id").and_then(|t| t.parse().ok()),
            core: topology("core_id").and_then(|t| t.parse().ok()),
            // A list without the CPU itself is nonsense.
            siblings: if siblings.contains(&id) { siblings } else { Vec::new() },
            node: node_of.get(&id).copied(),
            governor: from.text(&format!("{folder}/cpufreq/scaling_governor")).map(String::from),
            busy: time.map(|t| 1.0 - t.idle),
            softirq: time.map(|t| t.softirq),
            irq: time.map(|t| t.irq),
            steal: time.map(|t| t.steal),
        }
    };
    let out: Vec<Cpu> = ids.into_iter().map(cpu).collect();
    if out.is_empty() {
        gaps.push(Gap::CpusUnknown);
    } else {
        let silent = out.iter().filter(|c| c.siblings.is_empty()).count();
        if silent > 0 {
            gaps.push(Gap::SiblingsUnknown { cpus: silent });
        }
    }
    out
}

pub(crate) fn sockets(cpus: &[Cpu]) -> Vec<Socket> {
    let mut out: BTreeMap<u32, (Socket, BTreeSet<u32>)> = BTreeMap::new();
    for cpu in cpus {
        let Some(id) = cpu.socket else { continue };
        let (socket, cores) = out.entry(id).or_default();
        socket.id = id;
        socket.cpus.push(cpu.id);
        if let Some(node) = cpu.node.filter(|n| !socket.nodes.contains(n)) {
            socket.nodes.push(node);
        }
        // The threads of a core are told by the machine; a CPU that does not tell is a core of its own.
        cores.insert(cpu.siblings.first().copied().unwrap_or(cpu.id));
    }
    out.into_values().map(|(socket, cores)| Socket { cores: cores.len() as u32, ..socket }).collect()
}

/// What part of the time a CPU did what.
pub(crate) struct Times {
    idle: f32,
    irq: f32,
    softirq: f32,
    steal: f32,
}

impl Times {
    fn of(from: &Recording) -> BTreeMap<u32, Times> {
        match (from.file("/proc/stat"), from.later("/proc/stat")) {
            (Some(first), Some(second)) => Self::between(first, second),
            _ => BTreeMap::new(),
        }
    }
    /// By CPU, out of two readings of /proc/stat.
    fn between(first: &str, second: &str) -> BTreeMap<u32, Times> {
        let lines = |text: &str| -> BTreeMap<u32, Vec<u64>> {
            let line = |line: &str| {
                let mut words = line.split_whitespace();
                let id = words.next()?.strip_prefix("cpu")?.parse().ok()?;
                Some((id, words.map_while(|w| w.parse().ok()).collect()))
            };
            text.lines().filter_map(line).collect()
        };
        let (first, second) = (lines(first), lines(second));
        let mut out = BTreeMap::new();
        for (id, after) in second {
            let Some(before) = first.get(&id) else { continue };
            // user nice system idle iowait irq softirq steal; the guests' are within user.
            let gone = |i: usize| -> u64 {
                let at = |list: &[u64]| list.get(i).copied().unwrap_or(0);
                at(&after).saturating_sub(at(before))
            };
            let total: u64 = (0..8).fold(0, |sum: u64, i| sum.saturating_add(gone(i)));
            if total == 0 {
                continue;
            }
            let part = |n: u64| (n as f64 / total as f64).clamp(0.0, 1.0) as f32;
            out.insert(
                id,
                Times {
                    idle: part(gone(3).saturating_add(gone(4))),
                    irq: part(gone(5)),
                    softirq: part(gone(6)),
                    steal: part(gone(7)),
                },
            );
        }
        out
    }
}

/// The part of all CPUs' time, 0 to 1, that was used between two readings of /proc/stat, by whomever; None if they tell
/// nothing.
pub fn cores_busy(before: &str, after: &str) -> Option<f64> {
    let all = Times::between(before, after);
    let idle: f64 = all.values().map(|t| f64::from(t.idle)).sum();
    (!all.is_empty()).then(|| 1.0 - idle / all.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_use_of_cores_is_what_is_neither_idle_nor_waiting() {
        let before = "cpu  200 0 50 800 50\ncpu0 100 0 50 800 50 0 0 0 0 0\ncpu1 100 0 0 0 0\n";
        let after = "cpu  390 0 50 805 55\ncpu0 190 0 50 805 55 0 0 0 0 0\ncpu1 200 0 0 0 0\n";
        assert!(cores_busy(before, after).is_some_and(|part| (part - 0.95).abs() < 1e-6));
        assert_eq!(cores_busy(before, before), None);
        assert_eq!(cores_busy("", "intr 1 2 3\n"), None);
    }
}
