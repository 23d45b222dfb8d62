//! TCP and network ports.

use super::setting::{About, Group, List, Verdict, Write, near};
use crate::machine::Machine;
use crate::net::Port;
use crate::recording::ranges;
use std::collections::BTreeSet;

/// Largest TCP buffers: 100 Gbit/s for 1.3 ms.
const BUFFER: u64 = 16 << 20;

pub(super) fn settings(out: &mut List, m: &Machine) {
    let big = |v: &str| {
        v.split_whitespace().last().and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n >= BUFFER)
    };
    let buffers = About {
        group: Group::Network,
        name: "",
        of: "",
        why: "a connection sends no more than this before it is acknowledged: bandwidth times delay",
        risk: "more memory in connections that are slow to be acknowledged",
    };
    for (name, path) in [
        ("largest receive buffer", "/proc/sys/net/core/rmem_max"),
        ("largest send buffer", "/proc/sys/net/core/wmem_max"),
    ] {
        let about = About { name, ..buffers };
        // More than enough is not to be lowered.
        let wanted = out.from.number(path).map_or(BUFFER, |found| found.max(BUFFER));
        out.files(&about, &[(String::new(), path.into())], big, &wanted.to_string());
    }
    for (name, path) in [
        ("TCP receive buffers", "/proc/sys/net/ipv4/tcp_rmem"),
        ("TCP send buffers", "/proc/sys/net/ipv4/tcp_wmem"),
    ] {
        let words: Vec<&str> = out.from.text(path).map_or(Vec::new(), |t| t.split_whitespace().collect());
        if let [least, usual, most] = words[..] {
            let most = most.parse::<u64>().map_or(BUFFER, |found| found.max(BUFFER));
            let wanted = format!("{least} {usual} {most}");
            out.files(&About { name, ..buffers }, &[(String::new(), path.into())], big, &wanted);
        }
    }
    out.files(
        &About {
            group: Group::Network,
            name: "queue discipline",
            of: "",
            why: "the packets of many connections take turns, and each is sent at its own pace",
            risk: "holds for ports that come up later",
        },
        &[(String::new(), "/proc/sys/net/core/default_qdisc".into())],
        |v| v.starts_with("fq"),
        "fq",
    );
    for port in m.ports.iter().filter(|p| p.state == "up" && p.speed_mbit.is_some_and(|s| s >= 10_000)) {
        let Some(mtu) = port.mtu else { continue };
        let about = About {
            group: Group::Network,
            name: "MTU",
            of: "",
            why: "a 4 KiB answer in one packet instead of three costs both ends less",
            risk: "every switch and host on the way must agree, or connections hang on large packets",
        };
        let how =
            format!("ip link set {} mtu 9000, after the switches and together with the hosts", port.name);
        let verdict = if mtu >= 9000 { Verdict::Good } else { Verdict::Advice(how) };
        out.put(&about, format!("MTU of {}", port.name), mtu.to_string(), "9000".into(), verdict);
    }
    for port in m.ports.iter().filter(|p| p.state == "up") {
        coalescing(out, port);
        queues(out, m, port);
        steering(out, m, port);
    }
}

/// Longest wait of a packet for its interrupt that a read at depth 1 does not feel, microseconds.
const GATHER_US_MAX: u64 = 16;

/// How long a port gathers packets before it interrupts.
fn coalescing(out: &mut List, port: &Port) {
    let path = format!("/ethtool/{}/rx-usecs", port.name);
    let Some(usecs) = out.from.number(&path) else { return };
    let adaptive = out.from.number(&format!("/ethtool/{}/adaptive-rx", port.name)) == Some(1);
    let about = About {
        group: Group::Network,
        name: "",
        of: "",
        why: "at depth 1 each command waits so long before the head hears of it",
        risk: "more interrupts under load: where their cores are full, measure",
    };
    let name = format!("interrupt delay of {}", port.name);
    let wanted = format!("at most {GATHER_US_MAX} µs");
    if adaptive {
        return out.put(&about, name, "adaptive".into(), "adaptive".into(), Verdict::Good);
    }
    let verdict = match usecs <= GATHER_US_MAX {
        true => Verdict::Good,
        false => {
            Verdict::Change(vec![Write { path, was: usecs.to_string(), value: GATHER_US_MAX.to_string() }])
        }
    };
    out.put(&about, name, format!("{usecs} µs"), wanted, verdict);
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
    let about = About {
        group: Group::Network,
        name: "",
        of: "",
        why: "a queue is served by one core at a time",
        risk: "the link goes down for a moment; hosts reconnect",
    };
    let how = format!("ethtool -L {} combined {wanted}", port.name);
    let verdict = if now >= wanted { Verdict::Good } else { Verdict::Advice(how) };
    let wanted = if now >= wanted { now } else { wanted };
    out.put(
        &about,
        format!("queues of {}", port.name),
        format!("{now} of {most}"),
        wanted.to_string(),
        verdict,
    );
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
        let about = About {
            group: Group::Network,
            name: "",
            of: "",
            why: match spread {
                true => "few queues: one core would do the work of TCP for all connections",
                false => "there are queues enough: handing packets on costs an interrupt between cores",
            },
            risk: "none known",
        };
        let wanted: &[u32] = if spread { &cpus } else { &[] };
        let all = receive.into_iter().map(|(was, path)| (was, path, wanted.to_vec())).collect();
        let words = if spread { format!("CPUs {}", ranges(&cpus)) } else { "off".into() };
        masks(out, &about, format!("packets handed on (RPS) of {}", port.name), all, &words);
    }
    let send = files("tx-", "xps_cpus");
    // A driver that has spread its queues knows best; one queue is everybody's.
    if send.len() > 1 && send.iter().all(|(mask, _)| members(mask).is_empty()) {
        let about = About {
            group: Group::Network,
            name: "",
            of: "",
            why: "a core that has a queue of its own to send from shares no lock with others",
            risk: "none known",
        };
        let n = send.len();
        let all = send.into_iter().enumerate().map(|(i, (was, path))| {
            let own = m.cpus.iter().enumerate().filter(|(at, _)| at % n == i).map(|(_, c)| c.id).collect();
            (was, path, own)
        });
        masks(
            out,
            &about,
            format!("queues to send from (XPS) of {}", port.name),
            all.collect(),
            "a queue each",
        );
    }
}

/// Files that hold masks of CPUs: as they are, where, and whom they should name.
fn masks(out: &mut List, about: &About, name: String, files: Vec<(String, String, Vec<u32>)>, wanted: &str) {
    let used: BTreeSet<u32> = files.iter().flat_map(|(was, ..)| members(was)).collect();
    let found = match used.is_empty() {
        true => "off".to_string(),
        false => format!("CPUs {}", ranges(&used.into_iter().collect::<Vec<_>>())),
    };
    let mut writes = Vec::new();
    for (was, path, cpus) in files {
        // A mask that has no place for a CPU is one of another machine, or damaged.
        let Some(value) = mask(&cpus, &was) else { return };
        if members(&was) != cpus {
            writes.push(Write { path, was, value });
        }
    }
    let verdict = if writes.is_empty() { Verdict::Good } else { Verdict::Change(writes) };
    out.put(about, name, found, wanted.into(), verdict);
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
