//! TCP and network ports.

use super::setting::{List, Verdict, Write, near};
use super::what::{Value, What};
use crate::machine::Machine;
use crate::net::Port;
use std::collections::BTreeSet;

/// Largest TCP buffers: 100 Gbit/s for 1.3 ms.
const BUFFER: u64 = 16 << 20;

pub(super) fn settings(out: &mut List, m: &Machine) {
    let big = |v: &str| {
        v.split_whitespace().last().and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n >= BUFFER)
    };
    for (what, path) in [
        (What::ReceiveBuffer, "/proc/sys/net/core/rmem_max"),
        (What::SendBuffer, "/proc/sys/net/core/wmem_max"),
    ] {
        // More than enough is not to be lowered.
        let wanted = out.from.number(path).map_or(BUFFER, |found| found.max(BUFFER));
        out.files(&what, &[(String::new(), path.into())], big, &wanted.to_string());
    }
    for (what, path) in [
        (What::TcpReceiveBuffers, "/proc/sys/net/ipv4/tcp_rmem"),
        (What::TcpSendBuffers, "/proc/sys/net/ipv4/tcp_wmem"),
    ] {
        let words: Vec<&str> = out.from.text(path).map_or(Vec::new(), |t| t.split_whitespace().collect());
        if let [least, usual, most] = words[..] {
            let most = most.parse::<u64>().map_or(BUFFER, |found| found.max(BUFFER));
            let wanted = format!("{least} {usual} {most}");
            out.files(&what, &[(String::new(), path.into())], big, &wanted);
        }
    }
    let path = "/proc/sys/net/core/default_qdisc".into();
    out.files(&What::QueueDiscipline, &[(String::new(), path)], |v| v.starts_with("fq"), "fq");
    for port in m.ports.iter().filter(|p| p.state == "up" && p.speed_mbit.is_some_and(|s| s >= 10_000)) {
        let Some(mtu) = port.mtu else { continue };
        let verdict = if mtu >= MTU { Verdict::Good } else { Verdict::Advice };
        out.put(What::Mtu { port: port.name.clone() }, Value::Number(mtu), Value::Number(MTU), verdict);
    }
    for port in m.ports.iter().filter(|p| p.state == "up") {
        coalescing(out, port);
        queues(out, m, port);
        steering(out, m, port);
    }
}

/// Packets of fast ports, bytes: a 4 KiB answer in one of them.
const MTU: u64 = 9000;

/// Longest wait of a packet for its interrupt that a read at depth 1 does not feel, microseconds.
const GATHER_US_MAX: u64 = 16;

/// How long a port gathers packets before it interrupts.
fn coalescing(out: &mut List, port: &Port) {
    let path = format!("/ethtool/{}/rx-usecs", port.name);
    let Some(usecs) = out.from.number(&path) else { return };
    let adaptive = out.from.number(&format!("/ethtool/{}/adaptive-rx", port.name)) == Some(1);
    let what = What::InterruptDelay { port: port.name.clone() };
    if adaptive {
        return out.put(what, Value::Adaptive, Value::Adaptive, Verdict::Good);
    }
    let verdict = if usecs <= GATHER_US_MAX {
        Verdict::Good
    } else {
        Verdict::Change(vec![Write { path, was: usecs.to_string(), value: GATHER_US_MAX.to_string() }])
    };
    out.put(what, Value::Micros(usecs), Value::AtMostMicros(GATHER_US_MAX), verdict);
}

/// Whether a port has a queue for each CPU that may serve it.
fn queues(out: &mut List, m: &Machine, port: &Port) {
    let number = |file: &str| out.from.number(&format!("/ethtool/{}/{file}", port.name));
    let (Some(now), Some(most)) = (number("queues"), number("queues-max")) else { return };
    let cpus = near(m, node_of(m, port)).len() as u64;
    let wanted = most.min(cpus);
    if now == 0 || wanted == 0 {
        return;
    }
    let verdict = if now >= wanted { Verdict::Good } else { Verdict::Advice };
    let what = What::PortQueues { port: port.name.clone() };
    out.put(what, Value::Of { now, most }, Value::Number(now.max(wanted)), verdict);
}

fn node_of(m: &Machine, port: &Port) -> Option<u32> {
    m.devices[m.device(port.device.as_ref()?)?].node
}

/// From so many CPUs for each queue on, handing packets on in software (RPS) gains more than it costs.
const RPS_CPUS_MIN: usize = 4;

/// Who handles what comes in (RPS), and which queue takes what goes out (XPS).
fn steering(out: &mut List, m: &Machine, port: &Port) {
    let base = format!("/sys/class/net/{}/queues", port.name);
    let files = |stem: &str, file: &str| -> Vec<(String, String)> {
        let mut names: Vec<String> =
            out.from.list(&base).into_iter().filter(|q| q.starts_with(stem)).collect();
        names.sort_by_key(|n| n[stem.len()..].parse::<u32>().unwrap_or(0));
        let one = |q: String| format!("{base}/{q}/{file}");
        names.into_iter().map(one).filter_map(|p| Some((out.from.text(&p)?.to_string(), p))).collect()
    };
    let cpus = near(m, node_of(m, port));
    let receive = files("rx-", "rps_cpus");
    if !receive.is_empty() {
        let spread = cpus.len() / receive.len() >= RPS_CPUS_MIN;
        let wanted: &[u32] = if spread { &cpus } else { &[] };
        let all = receive.into_iter().map(|(was, path)| (was, path, wanted.to_vec())).collect();
        let value = if spread { Value::Cpus(cpus.clone()) } else { Value::Off };
        masks(out, What::PacketsHandedOn { port: port.name.clone(), spread }, all, value);
    }
    let send = files("tx-", "xps_cpus");
    // A driver that has spread its queues knows best; one queue is everybody's.
    if send.len() > 1 && send.iter().all(|(mask, _)| members(mask).is_empty()) {
        let n = send.len();
        let all = send.into_iter().enumerate().map(|(i, (was, path))| {
            let own = m.cpus.iter().enumerate().filter(|(at, _)| at % n == i).map(|(_, c)| c.id).collect();
            (was, path, own)
        });
        masks(out, What::SendQueues { port: port.name.clone() }, all.collect(), Value::QueueEach);
    }
}

/// Files that hold masks of CPUs: as they are, where, and whom they should name.
fn masks(out: &mut List, what: What, files: Vec<(String, String, Vec<u32>)>, wanted: Value) {
    let used: BTreeSet<u32> = files.iter().flat_map(|(was, ..)| members(was)).collect();
    let found = if used.is_empty() { Value::Off } else { Value::Cpus(used.into_iter().collect()) };
    let mut writes = Vec::new();
    for (was, path, cpus) in files {
        // A mask that has no place for a CPU is one of another machine, or damaged.
        let Some(value) = mask(&cpus, &was) else { return };
        if members(&was) != cpus {
            writes.push(Write { path, was, value });
        }
    }
    let verdict = if writes.is_empty() { Verdict::Good } else { Verdict::Change(writes) };
    out.put(what, found, wanted, verdict);
}

/// CPUs in a mask as the kernel writes it: hexadecimal, words of 32 bits between commas, the highest first.
fn members(mask: &str) -> Vec<u32> {
    let words = mask.trim().rsplit(',').map(|w| u32::from_str_radix(w, 16).unwrap_or(0));
    let of =
        |(i, word): (usize, u32)| (0..32).filter(move |b| word >> b & 1 == 1).map(move |b| i as u32 * 32 + b);
    words.enumerate().flat_map(of).collect()
}

/// The mask of some CPUs, as long as `like` is: so the kernel says it afterwards. None if one has no place in it.
fn mask(cpus: &[u32], like: &str) -> Option<String> {
    let shape: Vec<&str> = like.trim().split(',').collect();
    let mut words = vec![0u32; shape.len()];
    for cpu in cpus {
        *words.get_mut(*cpu as usize / 32)? |= 1 << (cpu % 32);
    }
    let text =
        words.iter().rev().zip(&shape).map(|(word, like)| format!("{word:0width$x}", width = like.len()));
    Some(text.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_and_written_as_the_kernel_does() {
        for (cpus, text) in [
            (&[][..], "0"),
            (&[0, 1][..], "3"),
            (&[5][..], "00000020"),
            (&[0, 33, 63][..], "80000002,00000001"),
        ] {
            assert_eq!(members(text), cpus, "{text}");
            assert_eq!(mask(cpus, text).as_deref(), Some(text));
        }
        assert_eq!(mask(&[40], "00"), None, "there is no CPU 40");
        assert!(members("damaged").is_empty());
    }
}
