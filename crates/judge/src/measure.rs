//! Measurements of `make bench` and `make peers`: one load of our own client on its core, the target on another.

use crate::{Head, binary};
use lab::Net;
use serde_json::Value;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where the target runs.
pub const TARGET_CORE: &str = "0";
/// Where the client runs.
pub const CLIENT_CORE: &str = "1";

/// One measurement.
#[derive(Clone, Copy, Default, Debug)]
pub struct Run {
    /// Operations a second.
    pub iops: f64,
    /// 10^6 bytes a second.
    pub mb_per_s: f64,
    /// Mean latency, µs.
    pub mean_us: f64,
    /// Median latency, µs.
    pub p50_us: f64,
    /// 999 of 1000 were faster, µs.
    pub p999_us: f64,
    /// CPU time of the target for each command, ns.
    pub target_ns: f64,
    /// Part of its core that the target kept busy.
    pub target: f64,
    /// Part of its core that the client kept busy.
    pub client: f64,
}

/// How long a measurement takes, seconds.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Load before it that is not counted.
    pub ramp: f64,
    /// The measurement, 0.5 or more.
    pub seconds: f64,
}

/// A head with one shard on the target's core, the pool `tank` on a null drive, and a portal of each protocol.
pub fn head(name: &str) -> Head {
    let mut head = Head::prepare(name);
    head.has_one_shard();
    head.start();
    head.cli("portal add nvme 127.0.0.1:4420");
    head.cli("portal add iscsi 127.0.0.1:3260");
    head.cli("pool create tank null:1T");
    pin(head.pid(), TARGET_CORE);
    head
}

/// Binds every thread of a process to one core, with ordinary priority: real-time priority would starve the machine.
pub fn pin(pid: u32, core: &str) {
    let mut command = Command::new("taskset");
    command.args(["-acp", core, &pid.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("util-linux is there");
}

/// Nanoseconds that a process has run, all its threads together.
pub fn cpu_ns(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts = threads.filter_map(|t| fs::read_to_string(t.path().join("schedstat")).ok());
    texts.filter_map(|t| t.split(' ').next()?.parse::<f64>().ok()).sum()
}

/// Loads the target with process id `target`: a client for each of `urls` (words of `millrace bench` that name a target),
/// all with the load `words`. Rates are summed; latencies are those of the last.
///
/// Errors: a client failed, with what it said.
pub fn load(net: &Net, target: u32, urls: &[String], words: &str, time: Time) -> Result<Run, String> {
    let start = |url: &String| {
        let mut command = net.command(binary());
        command.args(["bench", "--json", "--force", "--region", "1G"]);
        command.args(["--ramp", &time.ramp.to_string(), "--seconds", &time.seconds.to_string()]);
        command.args(words.split_whitespace()).args(url.split_whitespace());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the load starts");
        pin(child.id(), CLIENT_CORE);
        child
    };
    let children: Vec<Child> = urls.iter().map(start).collect();
    // The target may have a thread for each connection, by now.
    std::thread::sleep(Duration::from_secs_f64(0.3 * time.ramp));
    pin(target, TARGET_CORE);
    // The busy shares are taken inside of the measurement.
    std::thread::sleep(Duration::from_secs_f64(0.7 * time.ramp + 0.15));
    let clients = || children.iter().map(|c| cpu_ns(c.id())).sum::<f64>();
    let (before, begin) = ([cpu_ns(target), clients()], Instant::now());
    std::thread::sleep(Duration::from_secs_f64((time.seconds - 0.4).max(0.2)));
    let (after, took) = ([cpu_ns(target), clients()], begin.elapsed().as_nanos() as f64);
    let mut sum = Run::default();
    for child in children {
        let output = child.wait_with_output().expect("the load ends");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if !output.status.success() || report["errors"] != 0 {
            return Err(format!("{words}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let total = |key: &str| report["total"][key].as_f64().expect("a figure");
        sum.iops += total("iops");
        sum.mb_per_s += total("mb_per_s");
        sum.mean_us = total("mean_us");
        sum.p50_us = total("p50_us");
        sum.p999_us = total("p999_us");
    }
    Ok(Run {
        target_ns: (after[0] - before[0]) / (sum.iops * took / 1e9).max(1.0),
        target: (after[0] - before[0]) / took,
        client: (after[1] - before[1]) / took,
        ..sum
    })
}

/// The median of one figure.
pub fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    middle(&runs.iter().map(of).collect::<Vec<_>>())
}

/// The middle value; of an even number the mean of the two middle ones.
pub fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n.is_multiple_of(2) { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 } else { sorted[n / 2] }
}

/// The least and the greatest value, as text.
pub fn spread(values: &[f64], digits: usize) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{low:.digits$}–{high:.digits$}")
}

/// What a row shows of its runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shown {
    /// Operations a second.
    Rate,
    /// Bytes a second.
    Large,
    /// CPU time of the target for each command.
    Cpu,
    /// Mean latency.
    Latency,
    /// One figure of another.
    Ratio,
    /// A part of a core.
    Share,
    /// A count.
    Number,
}

impl Shown {
    /// A figure with its unit.
    pub fn text(self, value: f64) -> String {
        match self {
            Shown::Rate => format!("{:.0} K", value / 1e3),
            Shown::Large => format!("{:.1} GB/s", value / 1e3),
            Shown::Cpu => format!("{value:.0} ns"),
            Shown::Latency => format!("{value:.1} µs"),
            Shown::Ratio => format!("{value:.2}"),
            Shown::Share => format!("{:.2} %", 100.0 * value),
            Shown::Number => format!("{value:.0}"),
        }
    }
    /// The figure that it shows of a run.
    pub fn figure(self, run: &Run) -> f64 {
        match self {
            Shown::Large => run.mb_per_s,
            Shown::Cpu => run.target_ns,
            Shown::Latency => run.mean_us,
            Shown::Rate | Shown::Ratio | Shown::Share | Shown::Number => run.iops,
        }
    }
    /// The median of several runs.
    pub fn of(self, runs: &[Run]) -> String {
        self.text(median(runs, |run| self.figure(run)))
    }
}
