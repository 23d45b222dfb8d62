//! Frequency and sleep of cores.

use super::setting::{About, Group, List, Verdict, shard_cpus};
use crate::machine::Machine;

/// A sleep state: its name, how long waking takes in microseconds, whose it is and the file that turns it off.
type Sleep = (String, u64, Vec<(String, String)>);

/// Longest wake-up that is not felt beside a flash read, microseconds.
const WAKE_US_MAX: u64 = 20;

pub(super) fn settings(out: &mut List, m: &Machine) {
    let base = "/sys/devices/system/cpu";
    let shards = shard_cpus(m);
    let governors: Vec<(String, String)> = m
        .cpus
        .iter()
        .map(|c| (format!("CPU {}", c.id), format!("{base}/cpu{}/cpufreq/scaling_governor", c.id)))
        .collect();
    out.files(
        &About {
            group: Group::Cpu,
            name: "governor",
            of: "CPU",
            why: "a core that has clocked down serves the first commands after a pause slowly",
            risk: "more power and heat while idle",
        },
        &governors,
        |g| g == "performance",
        "performance",
    );
    // States are numbered alike on all CPUs, and told by their name.
    let mut deep: Vec<Sleep> = Vec::new();
    for cpu in m.cpus.iter().filter(|c| shards.is_empty() || shards.contains(&c.id)) {
        let folder = format!("{base}/cpu{}/cpuidle", cpu.id);
        for state in out.from.list(&folder) {
            let file = |f: &str| format!("{folder}/{state}/{f}");
            let latency = out.from.number(&file("latency")).unwrap_or(0);
            let name = out.from.text(&file("name")).unwrap_or("?").to_string();
            if latency <= WAKE_US_MAX {
                continue;
            }
            let entry = (format!("CPU {}", cpu.id), file("disable"));
            match deep.iter_mut().find(|d| d.0 == name && d.1 == latency) {
                Some(found) => found.2.push(entry),
                None => deep.push((name, latency, vec![entry])),
            }
        }
    }
    for (name, latency, paths) in deep {
        let before = out.settings.len();
        out.files(
            &About {
                group: Group::Cpu,
                name: "sleep",
                of: "CPU",
                why: "waking from it takes longer than a drive's answer",
                risk: "more power; with few cores awake, less turbo",
            },
            &paths,
            |disabled| disabled == "1",
            "1",
        );
        for setting in &mut out.settings[before..] {
            setting.name = format!("{name} ({latency} µs) {}", setting.name.trim_start_matches("sleep "));
            for text in [&mut setting.found, &mut setting.wanted] {
                *text = if text == "1" { "off".into() } else { "on".into() };
            }
        }
    }
    if m.nodes.len() > 1 {
        out.files(
            &About {
                group: Group::Cpu,
                name: "NUMA balancing",
                of: "",
                why: "it unmaps pages to see who uses them, and the head's memory has its place already",
                risk: "other programs on this machine may lose by it",
            },
            &[(String::new(), "/proc/sys/kernel/numa_balancing".into())],
            |v| v == "0",
            "0",
        );
    }
    if let Some(active) = out.from.text("/sys/devices/system/cpu/smt/active") {
        let found = if active == "1" { "on" } else { "off" };
        let about = About {
            group: Group::Cpu,
            name: "SMT",
            of: "",
            why: "a second thread helps some loads and hurts others: measure both with millrace bench",
            risk: "",
        };
        out.put(&about, "SMT".into(), found.into(), "measured".into(), Verdict::Shown);
    }
    let release = out.from.text("/proc/sys/kernel/osrelease").unwrap_or("");
    if let Some(config) = out.from.text(&format!("/boot/config-{release}")) {
        let cmdline = out.from.text("/proc/cmdline").unwrap_or("");
        let built = config.lines().any(|l| l == "CONFIG_IRQ_TIME_ACCOUNTING=y");
        let on = built && !cmdline.split_whitespace().any(|w| w == "tsc=noirqtime");
        let about = About {
            group: Group::Cpu,
            name: "IRQ time accounting",
            of: "",
            why: "without it, time that interrupts take on a shard's core is counted as the shard's own",
            risk: "",
        };
        let found = if on { "on" } else { "off" };
        out.put(&about, about.name.into(), found.into(), "on, to measure".into(), Verdict::Shown);
    }
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let words: Vec<String> = out
        .from
        .list(folder)
        .iter()
        .filter_map(|v| out.from.text(&format!("{folder}/{v}")).map(String::from))
        .collect();
    if !words.is_empty() {
        let active = words.iter().filter(|w| w.starts_with("Mitigation")).count();
        let open = words.iter().filter(|w| w.starts_with("Vulnerable")).count();
        let about = About {
            group: Group::Cpu,
            name: "mitigations",
            of: "",
            why: "each system call pays for them; whether that is worth it is not ours to say",
            risk: "",
        };
        let found = format!("{active} active, {open} open");
        out.put(&about, "mitigations".into(), found, "your choice".into(), Verdict::Shown);
    }
}
