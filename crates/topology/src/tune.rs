//! What is set on a machine, what a head wants, and why. Decides; changes nothing: each change is a list of writes, with
//! what was there before, for somebody else to carry out and to take back.

use crate::drive::DriveKind;
use crate::machine::Machine;
use crate::recording::{Recording, ranges};
use serde::Serialize;
use std::collections::BTreeSet;

/// What belongs together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Frequency and sleep of cores.
    Cpu,
    /// Who takes which interrupt.
    Interrupts,
    /// Queues of block devices.
    Block,
    /// Memory of the kernel and of the head.
    Memory,
    /// TCP and network ports.
    Network,
    /// Links.
    Pcie,
}

impl Group {
    /// All, in their order.
    pub const ALL: [Group; 6] =
        [Group::Cpu, Group::Interrupts, Group::Block, Group::Memory, Group::Network, Group::Pcie];

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Group::Cpu => "cpu",
            Group::Interrupts => "interrupts",
            Group::Block => "block",
            Group::Memory => "memory",
            Group::Network => "network",
            Group::Pcie => "pcie",
        }
    }
}

/// One file to write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Write {
    /// Its path.
    pub path: String,
    /// What brings back what is there now.
    pub was: String,
    /// What to write.
    pub value: String,
}

/// What is to be done about a setting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As wanted.
    Good,
    /// These writes make it so.
    Change(Vec<Write>),
    /// Somebody has to do it by hand: how.
    Advice(String),
    /// Worth knowing, and nobody's to change here.
    Shown,
}

/// A setting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// Its group.
    pub group: Group,
    /// Its name, with how many devices or CPUs have it.
    pub name: String,
    /// What is set.
    pub found: String,
    /// What a head wants.
    pub wanted: String,
    /// Why, one sentence.
    pub why: &'static str,
    /// What could be worse then.
    pub risk: &'static str,
    /// What is to be done.
    pub verdict: Verdict,
}

/// The choice in `[none] mq-deadline`, or the whole text where nothing is in brackets.
pub fn choice(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text.trim(), |(chosen, _)| chosen.trim())
}

/// Whether a file that offers choices offers this one.
fn offers(text: &str, word: &str) -> bool {
    !text.contains('[') || text.split_whitespace().any(|w| w.trim_matches(['[', ']']) == word)
}

/// Everything that is looked at, group by group.
pub fn settings(m: &Machine, from: &Recording) -> Vec<Setting> {
    let mut out = List { settings: Vec::new(), from };
    cpu(&mut out, m);
    interrupts(&mut out, m);
    block(&mut out, m);
    memory(&mut out, m);
    network(&mut out, m);
    pcie(&mut out, m);
    out.settings.sort_by_key(|s| s.group);
    out.settings
}

struct List<'a> {
    settings: Vec<Setting>,
    from: &'a Recording,
}

/// What one kind of setting is about.
struct About {
    group: Group,
    name: &'static str,
    /// `drive`, `CPU`: what there are several of; empty for one that there is once.
    of: &'static str,
    why: &'static str,
    risk: &'static str,
}

impl List<'_> {
    /// Files that should all hold `wanted`; those that hold the same now are one row.
    fn files(
        &mut self,
        about: &About,
        paths: &[(String, String)],
        good: impl Fn(&str) -> bool,
        wanted: &str,
    ) {
        let mut rows: Vec<(String, Vec<String>, Vec<Write>)> = Vec::new();
        for (owner, path) in paths {
            let Some(text) = self.from.text(path) else { continue };
            if !offers(text, wanted) {
                continue;
            }
            let found = choice(text).split_whitespace().collect::<Vec<_>>().join(" ");
            let write = Write { path: path.clone(), was: found.clone(), value: wanted.into() };
            match rows.iter_mut().find(|r| r.0 == found) {
                Some(row) => {
                    row.1.push(owner.clone());
                    row.2.push(write);
                }
                None => rows.push((found, vec![owner.clone()], vec![write])),
            }
        }
        for (found, owners, writes) in rows {
            let name = match (about.of, &owners[..]) {
                ("", _) => about.name.to_string(),
                (_, [one]) => format!("{} of {one}", about.name),
                (of, all) => format!("{} of {} {of}s", about.name, all.len()),
            };
            let verdict = if good(&found) { Verdict::Good } else { Verdict::Change(writes) };
            self.put(about, name, found, wanted.into(), verdict);
        }
    }

    fn put(&mut self, about: &About, name: String, found: String, wanted: String, verdict: Verdict) {
        let About { group, why, risk, .. } = *about;
        self.settings.push(Setting { group, name, found, wanted, why, risk, verdict });
    }
}

/// CPUs of the head's shards and the threads beside them, as far as they are bound.
fn shard_cpus(m: &Machine) -> BTreeSet<u32> {
    let cores: Vec<u32> = m.own.iter().flat_map(|o| &o.shards).filter_map(|s| s.core).collect();
    let with_siblings = |core: &u32| {
        let siblings = m.cpus.iter().find(|c| c.id == *core).map_or(Vec::new(), |c| c.siblings.clone());
        siblings.into_iter().chain([*core])
    };
    cores.iter().flat_map(with_siblings).collect()
}

/// A sleep state: its name, how long waking takes in microseconds, whose it is and the file that turns it off.
type Sleep = (String, u64, Vec<(String, String)>);

/// Longest wake-up that is not felt beside a flash read, microseconds.
const WAKE_US_MAX: u64 = 20;

fn cpu(out: &mut List, m: &Machine) {
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

/// Vectors that are not a queue's.
fn is_queue(action: &str) -> bool {
    !["config", "async", "cmd", "admin", "event", "control", "mgmt", "aeq", "pages"]
        .iter()
        .any(|word| action.contains(word))
}

fn interrupts(out: &mut List, m: &Machine) {
    if out.from.text("/proc/irqbalance/comm").is_some() {
        let about = About {
            group: Group::Interrupts,
            name: "irqbalance",
            of: "",
            why: "it moves interrupts while the head runs, also onto the shards' cores",
            risk: "interrupts of other devices stay where they are",
        };
        let how = "systemctl disable --now irqbalance".to_string();
        out.put(&about, "irqbalance".into(), "runs".into(), "stopped".into(), Verdict::Advice(how));
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
        let near = |c: &&crate::cpu::Cpu| node.is_none() || c.node == node;
        let first = |c: &&crate::cpu::Cpu| c.siblings.first().is_none_or(|f| *f == c.id);
        let all: Vec<u32> = m.cpus.iter().filter(near).filter(first).map(|c| c.id).collect();
        let mut cpus: Vec<u32> = all.iter().copied().filter(|c| !shards.contains(c)).collect();
        if cpus.is_empty() {
            cpus = all;
        }
        // One queue has one place, and one CPU leaves no choice.
        if queues.len() < 2 || cpus.len() < 2 {
            continue;
        }
        let takes: Vec<u32> = queues.iter().filter_map(|i| i.effective.first().copied()).collect();
        let different: BTreeSet<u32> = takes.iter().copied().collect();
        let crowded = different.len() < queues.len().min(cpus.len());
        let on_shards = takes.iter().filter(|c| shards.contains(c)).count();
        let far = takes.iter().filter(|c| m.cpus.iter().any(|cpu| cpu.id == **c && !near(&cpu))).count();
        let avoidable = on_shards > 0 && !shards.contains(&cpus[0]);
        let mut found = format!(
            "{} queues on CPUs {}",
            queues.len(),
            ranges(&different.iter().copied().collect::<Vec<_>>())
        );
        if avoidable {
            found.push_str(&format!(", {on_shards} beside shards"));
        }
        if far > 0 {
            found.push_str(&format!(", {far} on another node"));
        }
        let about = About {
            group: Group::Interrupts,
            name: "queues",
            of: "",
            why: "an interrupt on a shard's core stops the shard, and several queues on one core are one queue",
            risk: "irqbalance, if it runs, moves them again",
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
        let wanted = format!("one each, on CPUs {}", ranges(&used));
        let good = !(crowded || avoidable || far > 0) || writes.is_empty();
        let verdict = if good { Verdict::Good } else { Verdict::Change(writes) };
        out.put(&about, format!("interrupts of {}", port.name), found, wanted, verdict);
    }
}

/// A queue's attribute: file, name, wanted, why, risk.
type Attribute = (&'static str, &'static str, &'static str, &'static str, &'static str);

const BLOCK: [Attribute; 6] = [
    (
        "scheduler",
        "scheduler",
        "none",
        "flash has no order to keep; a scheduler is a lock and a list between the head and the drive",
        "other users of the same drive are no longer served in turns",
    ),
    (
        "nomerges",
        "merging",
        "2",
        "the head sends whole transfers: looking for neighbours finds none and costs time",
        "other programs that write small pieces in order send more commands",
    ),
    (
        "rq_affinity",
        "completion",
        "2",
        "a command ends on the core that sent it, whose caches hold it",
        "none known",
    ),
    ("add_random", "entropy", "0", "each completion would feed the random generator", "none since Linux 5.6"),
    ("rotational", "rotational", "0", "Linux treats it as a disk with a head to move", "none for flash"),
    (
        "wbt_lat_usec",
        "write throttling",
        "0",
        "Linux holds writes back when reads get slower; the head balances both itself",
        "buffered writers on the same drive can crowd out readers",
    ),
];

fn block(out: &mut List, m: &Machine) {
    let own: BTreeSet<&str> = m
        .own
        .iter()
        .flat_map(|o| &o.pools)
        .flat_map(|p| &p.arrays)
        .flat_map(|a| &a.legs)
        .filter_map(|l| m.drive_at(&l.path))
        .map(|d| d.name.as_str())
        .collect();
    let drives: Vec<&str> = m
        .drives
        .iter()
        .filter(|d| match own.is_empty() {
            false => own.contains(d.name.as_str()),
            // Without a head, every drive of flash may become one of its drives.
            true => matches!(d.kind, DriveKind::Nvme | DriveKind::Virtio),
        })
        .map(|d| d.name.as_str())
        .collect();
    for (file, name, wanted, why, risk) in BLOCK {
        let paths: Vec<(String, String)> =
            drives.iter().map(|d| (d.to_string(), format!("/sys/block/{d}/queue/{file}"))).collect();
        out.files(
            &About { group: Group::Block, name, of: "drive", why, risk },
            &paths,
            |v| v == wanted,
            wanted,
        );
    }
    let polls = out.from.number("/sys/module/nvme/parameters/poll_queues");
    if let Some(polls) = polls.filter(|_| m.drives.iter().any(|d| d.kind == DriveKind::Nvme)) {
        let about = About {
            group: Group::Block,
            name: "poll queues",
            of: "",
            why: "a shard that polls takes no interrupt: measure whether that pays here",
            risk: "a core that polls is never idle",
        };
        let how = "options nvme poll_queues=N in /etc/modprobe.d, then a restart of the machine".to_string();
        let verdict = if polls > 0 { Verdict::Good } else { Verdict::Advice(how) };
        out.put(&about, "NVMe poll queues".into(), polls.to_string(), "measured".into(), verdict);
    }
}

/// A limit of the head's process: soft value, None for unlimited.
fn limit(text: &str, name: &str) -> Option<Option<u64>> {
    let rest = text.lines().find_map(|l| l.strip_prefix(name))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

/// What the head needs at least: open files, and memory that stays.
const FILES_MIN: u64 = 65_536;

fn memory(out: &mut List, m: &Machine) {
    out.files(
        &About {
            group: Group::Memory,
            name: "swappiness",
            of: "",
            why: "memory that a head waits for must not lie on a disk",
            risk: "with little memory the page cache shrinks first",
        },
        &[(String::new(), "/proc/sys/vm/swappiness".into())],
        |v| v.parse::<u64>().is_ok_and(|n| n <= 10),
        "1",
    );
    out.files(
        &About {
            group: Group::Memory,
            name: "transparent huge pages",
            of: "",
            why: "making them without being asked stops programs for milliseconds",
            risk: "programs that live by them and do not ask get slower",
        },
        &[(String::new(), "/sys/kernel/mm/transparent_hugepage/enabled".into())],
        |v| v == "madvise" || v == "never",
        "madvise",
    );
    let Some(pid) = m.own.as_ref().and_then(|o| o.pid) else { return };
    let Some(text) = out.from.file(&format!("/proc/{pid}/limits")) else { return };
    let rows = [
        (
            "Max locked memory",
            "locked memory of the head",
            None,
            "unlimited",
            "LimitMEMLOCK=infinity in its unit, then a restart of the head",
            "buffers that the kernel may not pin are copied or refused",
        ),
        (
            "Max open files",
            "open files of the head",
            Some(FILES_MIN),
            "65536",
            "LimitNOFILE=1048576 in its unit, then a restart of the head",
            "each connection is a file",
        ),
    ];
    for (line, name, least, wanted, how, why) in rows {
        let Some(found) = limit(text, line) else { continue };
        let about = About { group: Group::Memory, name, of: "", why, risk: "none" };
        let good = found.is_none() || least.is_some_and(|least| found.is_some_and(|n| n >= least));
        let verdict = if good { Verdict::Good } else { Verdict::Advice(how.into()) };
        let found = found.map_or("unlimited".to_string(), |n| n.to_string());
        out.put(&about, name.into(), found, wanted.into(), verdict);
    }
}

/// Largest TCP buffers: 100 Gbit/s for 1.3 ms.
const BUFFER: u64 = 16 << 20;

fn network(out: &mut List, m: &Machine) {
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
        out.files(&about, &[(String::new(), path.into())], big, &BUFFER.to_string());
    }
    for (name, path) in [
        ("TCP receive buffers", "/proc/sys/net/ipv4/tcp_rmem"),
        ("TCP send buffers", "/proc/sys/net/ipv4/tcp_wmem"),
    ] {
        let words: Vec<&str> = out.from.text(path).map_or(Vec::new(), |t| t.split_whitespace().collect());
        if let [least, usual, _] = words[..] {
            let wanted = format!("{least} {usual} {BUFFER}");
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
}

fn pcie(out: &mut List, m: &Machine) {
    let links = m.devices.iter().filter(|d| d.link.is_some_and(|l| l.now.is_some())).count();
    if links > 0 {
        out.files(
            &About {
                group: Group::Pcie,
                name: "link power (ASPM)",
                of: "",
                why: "a link that has gone to sleep wakes for the first command after a pause",
                risk: "more power and heat, which warm drives do not need",
            },
            &[(String::new(), "/sys/module/pcie_aspm/parameters/policy".into())],
            |v| v == "performance",
            "performance",
        );
    }
    let small: Vec<&crate::pci::Device> = m
        .devices
        .iter()
        .filter(|d| d.class == crate::pci::Class::Nvme && d.payload.is_some_and(|(set, able)| set < able))
        .filter(|d| {
            let above = d.parent.and_then(|p| m.devices[p].payload);
            above.is_some_and(|(_, able)| d.payload.is_some_and(|(set, _)| set < able))
        })
        .collect();
    if let Some((set, able)) = small.first().and_then(|d| d.payload) {
        let about = About {
            group: Group::Pcie,
            name: "",
            of: "",
            why: "larger packets have fewer headers: some per cent of a link's payload",
            risk: "devices that talk to each other directly must agree",
        };
        let how = "pci=pcie_bus_perf on the kernel's command line, then a restart of the machine".to_string();
        let name = format!("packet size of {} drives", small.len());
        out.put(&about, name, format!("{set}"), format!("up to {able}"), Verdict::Advice(how));
    }
}
