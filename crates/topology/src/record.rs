//! Which files of a machine are worth keeping, and how they are made small and, on request, anonymous.

use crate::recording::{
    CLOCK, Clock, FILE_MAX, FILES_MAX, Missing, Reading, Recording, Source, VERSION, hex,
};
use crate::status::{Named, Own};
use std::collections::BTreeMap;

/// A place whose files are kept. In the folder `*` stands for any name and `#` for a number.
struct Place {
    folder: &'static str,
    files: &'static [&'static str],
    /// The folder itself is a link, and where it leads tells something.
    link: bool,
}

const fn place(folder: &'static str, files: &'static [&'static str]) -> Place {
    Place { folder, files, link: false }
}

const fn linked(folder: &'static str, files: &'static [&'static str]) -> Place {
    Place { folder, files, link: true }
}

/// Everything that is read once.
const PLACES: &[Place] = &[
    place("/proc", &["cpuinfo", "meminfo", "cmdline"]),
    place("/proc/sys/kernel", &["hostname", "numa_balancing", "osrelease"]),
    place("/proc/sys/vm", &["swappiness"]),
    place(
        "/proc/sys/net/core",
        &[
            "rmem_max",
            "wmem_max",
            "netdev_max_backlog",
            "default_qdisc",
            "somaxconn",
            "rps_sock_flow_entries",
        ],
    ),
    place("/proc/sys/net/ipv4", &["tcp_rmem", "tcp_wmem", "tcp_congestion_control"]),
    place("/proc/self", &["limits", "mounts"]),
    place("/sys/class/dmi/id", &["sys_vendor", "product_name", "board_name"]),
    place("/sys/hypervisor", &["type"]),
    place("/sys/kernel/mm/transparent_hugepage", &["enabled", "defrag"]),
    place("/sys/module/pcie_aspm/parameters", &["policy"]),
    place("/sys/module/nvme/parameters", &["poll_queues", "write_queues", "io_queue_depth"]),
    place("/sys/module/nvme_core/parameters", &["io_timeout", "max_retries", "multipath"]),
    place("/sys/devices/system/cpu", &["online", "present", "possible", "isolated"]),
    place("/sys/devices/system/cpu/smt", &["active", "control"]),
    place("/sys/devices/system/cpu/vulnerabilities", &["*"]),
    place("/sys/devices/system/cpu/cpuidle", &["current_driver", "current_governor"]),
    place("/sys/devices/system/cpu/cpu#", &["online"]),
    place(
        "/sys/devices/system/cpu/cpu#/topology",
        &["physical_package_id", "die_id", "core_id", "thread_siblings_list"],
    ),
    place(
        "/sys/devices/system/cpu/cpu#/cpufreq",
        &["scaling_governor", "scaling_driver", "energy_performance_preference"],
    ),
    place("/sys/devices/system/cpu/cpu#/cpuidle/state#", &["name", "latency", "disable"]),
    place("/sys/devices/system/node/node#", &["cpulist", "distance", "meminfo"]),
    linked(
        "/sys/bus/pci/devices/*",
        &[
            "class",
            "vendor",
            "device",
            "numa_node",
            "current_link_speed",
            "current_link_width",
            "max_link_speed",
            "max_link_width",
            "label",
            "config",
        ],
    ),
    linked("/sys/bus/pci/devices/*/driver", &[]),
    linked("/sys/bus/pci/devices/*/physfn", &[]),
    place("/sys/bus/pci/devices/*/msi_irqs", &["#"]),
    place("/sys/bus/pci/slots/*", &["address"]),
    linked(
        "/sys/class/nvme/nvme#",
        &[
            "model",
            "serial",
            "firmware_rev",
            "queue_count",
            "sqsize",
            "numa_node",
            "address",
            "transport",
            "state",
        ],
    ),
    place("/sys/class/nvme/nvme#/nvme#c#n#", &["size"]),
    linked(
        "/sys/class/hwmon/*",
        &["name", "temp1_input", "temp1_max", "temp1_crit", "temp1_label", "temp1_alarm"],
    ),
    linked(
        "/sys/class/net/*",
        &["address", "mtu", "speed", "duplex", "operstate", "carrier", "type", "tx_queue_len"],
    ),
    place("/sys/class/net/*/queues/*", &["rps_cpus", "xps_cpus"]),
    // Not files of the kernel: whoever reads offers what a port's driver tells as if they were.
    place("/ethtool/*", &["rx-usecs", "adaptive-rx", "queues", "queues-max"]),
    // Likewise, and in bytes: what a drive tells of its own health.
    place("/nvme/nvme#", &["health"]),
    place("/proc/irq/#", &["smp_affinity_list", "effective_affinity_list"]),
    place("/sys/class/enclosure/*/*", &["slot", "status", "locate"]),
    linked("/sys/class/enclosure/*/*/device", &[]),
];

/// What is kept of a block device that holds something.
const BLOCK: &[Place] = &[
    linked("", &["size", "hidden", "ro", "removable"]),
    place("/device", &["model", "serial", "rev", "vendor", "state", "wwid"]),
    place(
        "/queue",
        &[
            "scheduler",
            "nomerges",
            "rq_affinity",
            "add_random",
            "rotational",
            "wbt_lat_usec",
            "nr_requests",
            "io_poll",
            "io_poll_delay",
            "io_timeout",
            "write_cache",
            "fua",
            "logical_block_size",
            "physical_block_size",
            "max_sectors_kb",
            "max_hw_sectors_kb",
            "read_ahead_kb",
        ],
    ),
    place("/mq/#", &["cpu_list"]),
    place("/loop", &["backing_file"]),
    linked("/slaves/*", &[]),
];

/// What is read a second time, for rates.
const LIVE: &[Place] = &[
    place("/proc", &["interrupts", "softirqs", "stat"]),
    place(
        "/sys/class/net/*/statistics",
        &[
            "rx_bytes",
            "tx_bytes",
            "rx_packets",
            "tx_packets",
            "rx_dropped",
            "tx_dropped",
            "rx_errors",
            "tx_errors",
        ],
    ),
    place("/sys/block/*", &["stat", "inflight"]),
];

/// The daemon's status in a recording, as JSON.
pub(crate) const OWN: &str = "/millrace/status";

/// Makes a recording from a source, in one or two readings.
pub struct Recorder {
    recording: Recording,
    /// Secrets of the owner and what stands for them.
    names: BTreeMap<String, String>,
    /// The daemon's process.
    pid: Option<u32>,
}

impl Recorder {
    /// Reads everything. `at` says when, in whatever words.
    pub fn begin(source: &mut impl Source, at: &str, anonymous: bool) -> Self {
        let recording = Recording { version: VERSION, anonymous, at: at.into(), ..Recording::default() };
        let mut me = Self { recording, names: BTreeMap::new(), pid: None };
        let mut reading = Reading::default();
        for place in PLACES {
            me.take(source, place.folder, place, &mut reading);
        }
        // How this kernel was built, as far as that changes what it measures of itself.
        if let Some(release) = reading.files.get("/proc/sys/kernel/osrelease").map(|r| r.trim().to_string())
            && is_name(&release)
        {
            me.file(source, &format!("/boot/config-{release}"), &mut reading);
        }
        for name in source.list("/sys/block").into_iter().filter(|n| is_name(n)) {
            let folder = format!("/sys/block/{name}");
            me.file(source, &format!("{folder}/size"), &mut reading);
            // Loop devices and RAM disks that hold nothing are dozens and tell nothing.
            if reading.files.get(&format!("{folder}/size")).is_none_or(|s| s.trim() == "0") {
                continue;
            }
            for place in BLOCK {
                me.take(source, &format!("{folder}{}", place.folder), place, &mut reading);
            }
        }
        // irqbalance moves what somebody has placed: whether it runs matters.
        for pid in source.list("/proc").into_iter().filter(|n| n.bytes().all(|b| b.is_ascii_digit())) {
            let path = format!("/proc/{pid}/comm");
            if source.read(&path).is_ok_and(|comm| comm.trim_ascii() == b"irqbalance") {
                reading.files.insert("/proc/irqbalance/comm".into(), "irqbalance\n".into());
            }
        }
        me.live(source, &mut reading);
        me.recording.first = reading;
        me
    }

    /// Reads again what changes.
    pub fn again(&mut self, source: &mut impl Source) {
        let mut reading = Reading::default();
        self.live(source, &mut reading);
        let since = reading.clock(Clock::Counters).zip(self.recording.first.clock(Clock::Counters));
        reading.ms = since.map_or(0, |(now, then)| now.saturating_sub(then) / 1000).max(1);
        self.recording.second = Some(reading);
    }

    /// Reads what changes, in the same order each time, and notes when each part of it was read: a machine with
    /// thousands of files takes a good part of a second to look through, and a rate over another time is wrong.
    fn live(&mut self, source: &mut impl Source, reading: &mut Reading) {
        let mut clock = format!("{} {}\n", Clock::Counters.word(), source.now_us());
        for place in LIVE {
            self.take(source, place.folder, place, reading);
        }
        let asked = source.now_us();
        let own = source.status();
        // The head answers at some moment of the time that asking took.
        let answered = source.now_us();
        clock.push_str(&format!("{} {}\n", Clock::Status.word(), asked + answered.saturating_sub(asked) / 2));
        self.own(own.as_deref(), source, reading);
        clock.push_str(&format!("{} {}\n", Clock::Threads.word(), source.now_us()));
        self.threads(source, reading);
        reading.files.insert(CLOCK.into(), clock);
    }

    /// The recording.
    pub fn end(self) -> Recording {
        self.recording
    }

    fn own(&mut self, own: Option<&str>, source: &mut impl Source, reading: &mut Reading) {
        if let Some(own) = own {
            let text = Own::reduced(own, self.recording.anonymous, &mut |what, name| match what {
                Named::Path => {
                    let real = source.link(name).unwrap_or_else(|| name.to_string());
                    // A path of a file may tell who somebody is; a device's does not.
                    if real.starts_with("/dev/") { real } else { self.names_of(&real, "file") }
                }
                Named::Pool => self.thing(name, "pool"),
                Named::Volume => self.thing(name, "volume"),
                Named::Host => self.thing(name, "host"),
                Named::Peer => self.thing(name, "peer"),
            });
            self.pid = Own::decode(&text).ok().and_then(|own| own.pid).or(self.pid);
            reading.files.insert(OWN.into(), text);
        }
    }

    fn threads(&mut self, source: &mut impl Source, reading: &mut Reading) {
        let Some(pid) = self.pid else { return };
        self.file(source, &format!("/proc/{pid}/limits"), reading);
        for task in source.list(&format!("/proc/{pid}/task")).into_iter().take(1024) {
            for name in ["comm", "stat", "status", "schedstat"] {
                self.file(source, &format!("/proc/{pid}/task/{task}/{name}"), reading);
            }
        }
    }

    /// Keeps the files of every folder that `folder`, a pattern, stands for.
    fn take(&mut self, source: &mut impl Source, folder: &str, place: &Place, reading: &mut Reading) {
        let Some(star) = folder.split('/').position(|part| part.contains(['*', '#'])) else {
            if place.link
                && let Some(target) = source.link(folder)
            {
                reading.links.insert(folder.into(), target);
            }
            for name in place.files {
                match *name {
                    "*" | "#" => {
                        let names =
                            source.list(folder).into_iter().filter(|n| is_name(n) && matches(name, n));
                        for found in names.collect::<Vec<_>>() {
                            self.file(source, &format!("{folder}/{found}"), reading);
                        }
                    }
                    name => self.file(source, &format!("{folder}/{name}"), reading),
                }
            }
            return;
        };
        let parts: Vec<&str> = folder.split('/').collect();
        let before = parts[..star].join("/");
        let mut names = source.list(&before);
        names.retain(|name| is_name(name) && matches(parts[star], name));
        names.sort();
        for name in names {
            let mut parts: Vec<&str> = parts.clone();
            parts[star] = &name;
            self.take(source, &parts.join("/"), place, reading);
        }
    }

    fn file(&mut self, source: &mut impl Source, path: &str, reading: &mut Reading) {
        if reading.files.len() + reading.missing.len() >= FILES_MAX {
            return;
        }
        match source.read(path) {
            Ok(bytes) => {
                let content = self.tidied(path, &bytes);
                reading.files.insert(path.into(), content);
            }
            // What is not there is the usual case, and is told by its absence.
            Err(Missing::Absent) => {}
            Err(why) => {
                reading.missing.insert(path.into(), why);
            }
        }
    }

    /// A file's content as it is kept: small, text, and without what the owner does not tell.
    fn tidied(&mut self, path: &str, bytes: &[u8]) -> String {
        let name = path.rsplit('/').next().unwrap_or("");
        let bytes = &bytes[..bytes.len().min(FILE_MAX)];
        if name == "config" {
            // The first 256 bytes hold the PCIe capability, and no serial number.
            return hex(&bytes[..bytes.len().min(256)]);
        }
        if path.starts_with("/nvme/") {
            return hex(&bytes[..bytes.len().min(crate::health::USED)]);
        }
        let text = String::from_utf8_lossy(bytes);
        let lines = |keep: &dyn Fn(&str) -> bool| -> String {
            text.lines().filter(|l| keep(l)).map(|l| format!("{l}\n")).collect()
        };
        match path {
            "/proc/cpuinfo" => cpu_lines(&text),
            "/proc/meminfo" => lines(&|l| l.starts_with("Mem") || l.starts_with("HugePages_Total")),
            "/proc/interrupts" | "/proc/softirqs" => squeezed(&text),
            // Where something is mounted is nobody's business, and which drives are in use matters.
            "/proc/self/mounts" => text
                .lines()
                .filter_map(|l| l.split_whitespace().next().filter(|d| plain_name(d) != *d))
                .map(|d| format!("{d}\n"))
                .collect(),
            "/proc/stat" => lines(&|l| l.starts_with("cpu")),
            _ if path.starts_with("/boot/config-") => lines(&|l| l.contains("CONFIG_IRQ_TIME_ACCOUNTING")),
            "/proc/sys/kernel/hostname" => self.secret(&text, "host"),
            // A command line may hold a name or a key.
            "/proc/cmdline" if self.recording.anonymous => text
                .split_whitespace()
                .filter(|w| w.split('=').next().is_some_and(|k| CMDLINE.contains(&k)))
                .collect::<Vec<_>>()
                .join(" "),
            _ if name == "meminfo" => lines(&|l| l.contains(" MemTotal:") || l.contains(" MemFree:")),
            _ if name == "status" && path.starts_with("/proc/") => {
                lines(&|l| l.starts_with("Cpus_allowed_list:"))
            }
            _ => match name {
                "serial" => self.secret(&text, "serial"),
                "wwid" => self.secret(&text, "wwid"),
                "address" if path.starts_with("/sys/class/net/") => self.secret(&text, "mac"),
                "backing_file" => self.secret(&text, "file"),
                _ => text.into_owned(),
            },
        }
    }

    fn secret(&mut self, text: &str, kind: &str) -> String {
        let text = text.trim_end();
        if text.trim().is_empty() { text.to_string() } else { self.names_of(text, kind) }
    }

    /// The same of a name that means something only among its kind: a pool and a host of one name are two things.
    fn thing(&mut self, name: &str, kind: &str) -> String {
        if !self.recording.anonymous {
            return name.to_string();
        }
        let next = self.names.len() + 1;
        self.names.entry(format!("{kind} {name}")).or_insert_with(|| format!("{kind}-{next}")).clone()
    }

    /// `text`, or, in an anonymous recording, a name that stands for it everywhere.
    fn names_of(&mut self, text: &str, kind: &str) -> String {
        if !self.recording.anonymous {
            return text.to_string();
        }
        let next = self.names.len() + 1;
        self.names.entry(text.to_string()).or_insert_with(|| format!("{kind}-{next}")).clone()
    }
}

/// Words of the kernel's command line that an anonymous recording keeps.
const CMDLINE: &[&str] = &[
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "pcie_aspm",
    "mitigations",
    "intel_idle.max_cstate",
    "processor.max_cstate",
    "idle",
    "nosmt",
    "nvme.poll_queues",
    "intel_iommu",
    "amd_iommu",
    "iommu",
    "numa_balancing",
];

/// What matters of /proc/cpuinfo: the model, and whether somebody runs us as a guest.
fn cpu_lines(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().take_while(|l| !l.trim().is_empty()) {
        if line.starts_with("model name") {
            out.push_str(line);
            out.push('\n');
        } else if line.starts_with("flags") && line.split_whitespace().any(|w| w == "hypervisor") {
            out.push_str("flags\t: hypervisor\n");
        }
    }
    out
}

/// A table without the blanks that line its columns up: a tenth of its size where there are hundreds of CPUs.
fn squeezed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() / 2);
    for line in text.lines() {
        for (i, word) in line.split_whitespace().enumerate() {
            if i > 0 {
                out.push(' ');
            }
            out.push_str(word);
        }
        out.push('\n');
    }
    out
}

/// Names that can be part of a path here.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != "." && name != ".."
}

/// Whether `name` is what `pattern` stands for.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once(['*', '#']) {
        None => pattern == name,
        Some((head, tail)) => {
            let Some(rest) = name.strip_prefix(head) else { return false };
            if pattern.as_bytes()[head.len()] == b'*' {
                return tail.is_empty()
                    || (0..=rest.len()).any(|i| rest.is_char_boundary(i) && matches(tail, &rest[i..]));
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && matches(tail, &rest[digits..])
        }
    }
}

/// A device's name without what stands before it: `/dev/disk/by-id/x` stays, `/dev/nvme0n1` becomes `nvme0n1`.
pub fn plain_name(path: &str) -> &str {
    match path.strip_prefix("/dev/") {
        Some(name) if !name.contains('/') => name,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, yes) in [
            ("cpu#", "cpu12", true),
            ("cpu#", "cpufreq", false),
            ("cpu#", "cpu1x", false),
            ("nvme#c#n#", "nvme0c12n1", true),
            ("nvme#c#n#", "nvme0n1", false),
            ("*", "anything", true),
            ("rx-*", "rx-0", true),
            ("rx-*", "tx-0", false),
        ] {
            assert_eq!(matches(pattern, name), yes, "{pattern} {name}");
        }
    }

    /// A folder in memory, a head that answers, and a clock by which every look at something takes so many
    /// microseconds.
    struct Tree {
        files: BTreeMap<&'static str, &'static str>,
        status: Option<&'static str>,
        look_us: u64,
        now_us: u64,
    }

    impl Source for Tree {
        fn read(&mut self, path: &str) -> Result<Vec<u8>, Missing> {
            self.now_us += self.look_us;
            match self.files.get(path) {
                Some(&"REFUSED") => Err(Missing::Refused),
                Some(text) => Ok(text.as_bytes().to_vec()),
                None => Err(Missing::Absent),
            }
        }
        fn list(&mut self, path: &str) -> Vec<String> {
            let prefix = format!("{path}/");
            let name = |p: &&str| Some(p.strip_prefix(&prefix)?.split('/').next()?.to_string());
            let mut names: Vec<String> = self.files.keys().filter_map(name).collect();
            names.dedup();
            names
        }
        fn link(&mut self, path: &str) -> Option<String> {
            self.files.get(path)?.strip_prefix("-> ").map(String::from)
        }
        fn status(&mut self) -> Option<String> {
            self.status.map(String::from)
        }
        fn now_us(&mut self) -> u64 {
            self.now_us
        }
    }

    fn tree() -> Tree {
        let files = BTreeMap::from([
            (
                "/proc/cpuinfo",
                "processor\t: 0\nmodel name\t: Some CPU\nflags\t: fpu hypervisor\n\nprocessor\t: 1\n",
            ),
            ("/proc/interrupts", "      CPU0   CPU1\n  24:     1      0  IO-APIC  ttyS0\n"),
            ("/proc/sys/kernel/hostname", "secret-host\n"),
            ("/proc/77/comm", "irqbalance\n"),
            ("/proc/self/mounts", "/dev/nvme0n1p2 /srv/mine ext4 rw 0 0\nsysfs /sys sysfs rw 0 0\n"),
            ("/sys/block/loop0/size", "0\n"),
            ("/sys/block/loop0/queue/nomerges", "0\n"),
            ("/sys/block/nvme0n1/size", "1000\n"),
            ("/sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n"),
            ("/sys/class/nvme/nvme0", "-> /sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0"),
            ("/sys/class/nvme/nvme0/serial", "S123456  \n"),
            ("/sys/bus/pci/devices/0000:00:01.0/config", "REFUSED"),
        ]);
        Tree { files, status: None, look_us: 0, now_us: 7 }
    }

    #[test]
    fn what_matters_is_kept_and_empty_devices_are_not() {
        let mut recorder = Recorder::begin(&mut tree(), "now", false);
        recorder.again(&mut tree());
        let got = recorder.end();
        assert_eq!(got.text("/sys/block/nvme0n1/queue/scheduler"), Some("[none] mq-deadline"));
        assert_eq!(got.file("/sys/block/loop0/queue/nomerges"), None);
        assert_eq!(got.file("/proc/interrupts"), Some("CPU0 CPU1\n24: 1 0 IO-APIC ttyS0\n"));
        assert_eq!(got.later("/proc/interrupts"), Some("CPU0 CPU1\n24: 1 0 IO-APIC ttyS0\n"));
        assert_eq!(got.file("/proc/cpuinfo"), Some("model name\t: Some CPU\nflags\t: hypervisor\n"));
        assert_eq!(got.file("/proc/self/mounts"), Some("/dev/nvme0n1p2\n"));
        assert_eq!(got.missing("/sys/bus/pci/devices/0000:00:01.0/config"), Some(Missing::Refused));
        assert_eq!(got.text("/proc/irqbalance/comm"), Some("irqbalance"));
        assert_eq!(Recording::decode(got.encode().as_bytes()), Ok(got));
    }

    #[test]
    fn each_counter_has_the_time_of_its_own_reading() {
        let mut tree = tree();
        tree.status = Some(r#"{"daemon":{"pid":77},"volumes":[]}"#);
        tree.files.insert("/proc/stat", "cpu0 1 2 3 4\n");
        tree.look_us = 100_000;
        let mut recorder = Recorder::begin(&mut tree, "now", false);
        tree.now_us += 1_000_000;
        // What was slow the first time is in the cache the second.
        tree.look_us = 1_000;
        recorder.again(&mut tree);
        let got = recorder.end();
        let clock = |which: Clock| got.seconds_of(which).expect("two readings");
        let (counters, status) = (clock(Clock::Counters), clock(Clock::Status));
        assert!(counters - status > 0.2, "{counters} s for counters, {status} s for the status");
        assert!(status > 1.0 && got.seconds().expect("two") > status);
        assert_eq!(Recording::decode(got.encode().as_bytes()), Ok(got));
        // A recording of before has one time for everything.
        let mut old = Recording::default();
        old.put_later(2_000, "/proc/stat", "");
        assert_eq!(old.seconds_of(Clock::Status), Some(2.0));
        // A clock that says nonsense is none.
        for nonsense in ["status x", "status 0", "status 99999999999999999999", ""] {
            old.put(CLOCK, "status 5\n");
            old.put_later(2_000, CLOCK, nonsense);
            assert_eq!(old.seconds_of(Clock::Status), Some(2.0), "{nonsense}");
        }
    }

    #[test]
    fn an_anonymous_recording_has_no_serials_or_names() {
        let mut tree = tree();
        tree.status = Some(
            r#"{"drives":[{"path":"/srv/mine","serial":"S123456","model":"M"}],
            "system":{"serial":"XYZ"},"hosts":[{"name":"bob"}],"connections":[{"host":"bob","peer":"10.0.0.9:1"}]}"#,
        );
        let text = Recorder::begin(&mut tree, "now", true).end().encode();
        for word in ["S123456", "secret-host", "XYZ", "bob", "10.0.0.9", "/srv/mine"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        assert!(text.contains("serial-"), "{text}");
    }

    #[test]
    fn pools_and_volumes_have_other_names_in_an_anonymous_recording_and_keep_them() {
        let own = r#"{"drives":[{"path":"/dev/sda","pool":"payroll"}],
            "pools":[{"name":"payroll","scrub":{"findings":[{"volume":"payroll/db","what":"/srv/mine differs"}]}}],
            "volumes":[{"name":"payroll/db","size":1},{"name":"payroll/log"}]}"#;
        let mut tree = tree();
        tree.status = Some(own);
        let mut recorder = Recorder::begin(&mut tree, "now", true);
        recorder.again(&mut tree);
        let recording = recorder.end();
        let text = recording.encode();
        for word in ["payroll", "/db", "/log", "/srv/mine"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        let (first, second) = (recording.file(OWN).expect("kept"), recording.later(OWN).expect("kept"));
        assert_eq!(first, second, "the same name stands for the same thing");
        let own = Own::decode(first).expect("a status");
        let pool = &own.pools[0].name;
        assert_eq!(own.drives[0].pool.as_ref(), Some(pool));
        let volumes: Vec<&str> = own.volumes.iter().map(|v| v.name.as_str()).collect();
        assert!(
            volumes.iter().all(|v| v.starts_with(&format!("{pool}/volume-"))) && volumes[0] != volumes[1]
        );
    }
}
