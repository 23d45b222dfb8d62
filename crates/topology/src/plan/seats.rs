//! Where a head should sit on a machine: shards on cores, portals on ports.

use super::finding::SeatReason;
use crate::cpu::Cpu;
use crate::machine::Machine;
use serde::Serialize;

/// A place for a head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Seats {
    /// A core for each shard, the first thread of it.
    pub cores: Vec<u32>,
    /// Ports to listen on, each with its node.
    pub ports: Vec<(String, Option<u32>)>,
    /// Why.
    pub why: Vec<SeatReason>,
}

/// Most shards of a head.
const SHARDS_MAX: usize = 128;
/// Of so many cores of a node one is left to interrupts and to everything else.
const CORES_PER_SPARE: usize = 8;

/// Where a head should sit: on the nodes of the ports that hosts come in by, since what arrives there is worked on there; where
/// ports do not tell theirs, on those of the drives. None if the machine does not say which CPUs are threads of one core.
pub fn seats(m: &Machine) -> Option<Seats> {
    if m.cpus.is_empty() || m.cpus.iter().any(|c| c.siblings.is_empty()) {
        return None;
    }
    let node_of = |device: Option<&String>| m.devices[m.device(device?)?].node;
    let ports: Vec<(String, Option<u32>)> = m
        .ports
        .iter()
        .filter(|p| p.device.is_some() && p.state == "up")
        .map(|p| (p.name.clone(), node_of(p.device.as_ref())))
        .collect();
    let drives: Vec<Option<u32>> =
        m.drives.iter().filter(|d| Machine::is_hardware(d)).map(|d| m.node_of(d)).collect();
    let many = m.nodes.len() > 1;
    let among = |list: &mut dyn Iterator<Item = Option<u32>>| {
        let mut nodes: Vec<u32> = list.flatten().filter(|n| m.nodes.iter().any(|of| of.id == *n)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    let of_ports = among(&mut ports.iter().map(|p| p.1));
    let of_drives = among(&mut drives.iter().copied());
    let mut why = Vec::new();
    let homes = match (many, &of_ports[..], &of_drives[..]) {
        (false, ..) => Vec::new(),
        (true, [], []) => {
            why.push(SeatReason::NodesUnknown);
            m.nodes.iter().map(|n| n.id).collect()
        }
        (true, [], drives) => {
            why.push(SeatReason::WithDrives { nodes: drives.to_vec() });
            drives.to_vec()
        }
        (true, ports, drives) => {
            why.push(SeatReason::WithPorts { nodes: ports.to_vec() });
            let far: Vec<u32> = drives.iter().copied().filter(|n| !ports.contains(n)).collect();
            if !far.is_empty() {
                why.push(SeatReason::DrivesFar { nodes: far });
            }
            ports.to_vec()
        }
    };
    let first = |c: &&Cpu| c.siblings.iter().min() == Some(&c.id);
    let mut cores = Vec::new();
    let mut spare = Vec::new();
    let groups: Vec<Option<u32>> =
        if homes.is_empty() { vec![None] } else { homes.iter().copied().map(Some).collect() };
    for group in groups {
        let here = |c: &&Cpu| group.is_none() || c.node == group;
        let all: Vec<u32> = m.cpus.iter().filter(first).filter(here).map(|c| c.id).collect();
        let kept = if all.len() > 1 { all.len().div_ceil(CORES_PER_SPARE) } else { 0 };
        spare.extend(&all[..kept]);
        cores.extend(&all[kept..]);
    }
    cores.truncate(SHARDS_MAX);
    if cores.is_empty() {
        return None;
    }
    if !spare.is_empty() {
        why.push(SeatReason::CpusLeft { cpus: spare });
    }
    if m.cpus.iter().any(|c| c.siblings.len() > 1) {
        why.push(SeatReason::OneThread);
    }
    Some(Seats { cores, ports, why })
}
