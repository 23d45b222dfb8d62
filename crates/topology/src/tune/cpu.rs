//! Frequency and sleep of cores.

use super::setting::{List, Verdict, shard_cpus};
use super::what::{Value, What};
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
    out.files(&What::Governor, &governors, |g| g == "performance", "performance");
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
    for (state, latency_us, paths) in deep {
        let before = out.settings.len();
        out.files(&What::Sleep { state, latency_us }, &paths, |disabled| disabled == "1", "1");
        for setting in &mut out.settings[before..] {
            for value in [&mut setting.found, &mut setting.wanted] {
                *value = if *value == Value::Text("1".into()) { Value::Off } else { Value::On };
            }
        }
    }
    if m.nodes.len() > 1 {
        let path = "/proc/sys/kernel/numa_balancing".into();
        out.files(&What::NumaBalancing, &[(String::new(), path)], |v| v == "0", "0");
    }
    let switch = |on: bool| if on { Value::On } else { Value::Off };
    if let Some(active) = out.from.text("/sys/devices/system/cpu/smt/active") {
        out.put(What::Smt, switch(active == "1"), Value::Measured, Verdict::Shown);
    }
    let release = out.from.text("/proc/sys/kernel/osrelease").unwrap_or("");
    if let Some(config) = out.from.text(&format!("/boot/config-{release}")) {
        let cmdline = out.from.text("/proc/cmdline").unwrap_or("");
        let built = config.lines().any(|l| l == "CONFIG_IRQ_TIME_ACCOUNTING=y");
        let on = built && !cmdline.split_whitespace().any(|w| w == "tsc=noirqtime");
        out.put(What::IrqTimeAccounting, switch(on), Value::OnToMeasure, Verdict::Shown);
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
        let found = Value::Mitigations { active, open };
        out.put(What::Mitigations, found, Value::YourChoice, Verdict::Shown);
    }
}
