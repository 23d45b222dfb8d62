//! Machines that we do not have, built file by file as Linux would show them.

use std::fmt::Write;
use topology::{Recording, hex};

/// Builds a recording.
pub struct Builder {
    pub files: Recording,
    /// Vectors so far: number, device, action, CPUs.
    vectors: Vec<(u32, String, String, String)>,
    cpus: u32,
}

/// A link's end: generation and lanes.
pub type End = (u8, u8);

const NEVER: End = (0, 0);

fn speed(generation: u8) -> &'static str {
    ["Unknown", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe"]
        [usize::from(generation)]
}

/// Configuration space with a PCIe capability of this kind.
fn config(kind: u8, max: End, now: End, slot: u32, aspm: u8) -> String {
    let mut b = [0u8; 256];
    b[6] = 0x10;
    b[0x34] = 0x40;
    b[0x40] = 0x10;
    b[0x42] = 2 | kind << 4;
    b[0x43] = u8::from(slot > 0);
    b[0x44] = 2;
    b[0x48] = 1 << 5;
    b[0x4c..0x50].copy_from_slice(&(u32::from(max.0) | u32::from(max.1) << 4).to_le_bytes());
    b[0x50] = aspm;
    b[0x52..0x54].copy_from_slice(&(u16::from(now.0) | u16::from(now.1) << 4).to_le_bytes());
    b[0x54..0x58].copy_from_slice(&(slot << 19).to_le_bytes());
    hex(&b)
}

/// A health log of a drive of which so many percent of its rated life are used.
pub fn health(celsius: u32, used: u8) -> String {
    let mut page = [0u8; 232];
    page[1..3].copy_from_slice(&(celsius as u16 + 273).to_le_bytes());
    (page[3], page[4], page[5]) = (100, 10, used);
    page[48..52].copy_from_slice(&(u32::from(used) * 1_500_000).to_le_bytes());
    page[128..130].copy_from_slice(&9000u16.to_le_bytes());
    hex(&page)
}

/// Kinds of PCIe functions, as the capability numbers them.
pub const ENDPOINT: u8 = 0;
pub const ROOT: u8 = 4;
pub const UP: u8 = 5;
pub const DOWN: u8 = 6;

impl Builder {
    pub fn new(host: &str, vendor: &str, product: &str, processor: &str) -> Self {
        let mut files = Recording { version: 1, at: "2026-11-22T08:00:00Z".into(), ..Recording::default() };
        files.put("/proc/sys/kernel/hostname", host);
        files.put("/proc/sys/kernel/osrelease", "6.12.9\n");
        files.put("/sys/class/dmi/id/sys_vendor", vendor);
        files.put("/sys/class/dmi/id/product_name", product);
        files.put("/proc/cpuinfo", &format!("model name\t: {processor}\n"));
        Self { files, vectors: Vec::new(), cpus: 0 }
    }

    pub fn put(&mut self, path: &str, content: impl std::fmt::Display) -> &mut Self {
        self.files.put(path, &format!("{content}\n"));
        self
    }

    /// Sockets of one node each; threads of a core are `sockets × cores` apart, as Linux numbers them.
    pub fn cpus(&mut self, sockets: u32, cores: u32, threads: u32, gib_per_node: u64) -> &mut Self {
        let all = sockets * cores;
        self.cpus = all * threads;
        self.put("/sys/devices/system/cpu/online", format!("0-{}", self.cpus - 1));
        self.put("/sys/devices/system/cpu/smt/active", u32::from(threads > 1));
        for cpu in 0..self.cpus {
            let (first, socket) = (cpu % all, cpu % all / cores);
            let siblings: Vec<String> = (0..threads).map(|t| (first + t * all).to_string()).collect();
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
            self.put(&format!("{folder}/topology/physical_package_id"), socket);
            self.put(&format!("{folder}/topology/core_id"), first % cores);
            self.put(&format!("{folder}/topology/thread_siblings_list"), siblings.join(","));
            self.put(&format!("{folder}/cpufreq/scaling_governor"), "powersave");
        }
        for node in 0..sockets {
            let list: Vec<String> = (0..threads)
                .map(|t| format!("{}-{}", node * cores + t * all, (node + 1) * cores - 1 + t * all))
                .collect();
            let folder = format!("/sys/devices/system/node/node{node}");
            self.put(&format!("{folder}/cpulist"), list.join(","));
            let far: Vec<&str> = (0..sockets).map(|n| if n == node { "10" } else { "21" }).collect();
            self.put(&format!("{folder}/distance"), far.join(" "));
            let kib = gib_per_node << 20;
            self.put(
                &format!("{folder}/meminfo"),
                format!("Node {node} MemTotal: {kib} kB\nNode {node} MemFree: {} kB", kib / 2),
            );
        }
        self.put("/proc/meminfo", format!("MemTotal: {} kB", (gib_per_node << 20) * u64::from(sockets)))
    }

    /// A PCI function below `path`, which is the address of the port above, or the root complex.
    #[allow(clippy::too_many_arguments, reason = "a device has that many properties")]
    pub fn pci(
        &mut self,
        above: &str,
        address: &str,
        class: u32,
        kind: u8,
        max: End,
        now: End,
        slot: u32,
        node: i32,
        ids: (u32, u32),
    ) -> &mut Self {
        let base = if above.starts_with("pci") {
            format!("/sys/devices/{above}")
        } else {
            self.files.link(&format!("/sys/bus/pci/devices/{above}")).expect("made before").to_string()
        };
        let folder = format!("/sys/bus/pci/devices/{address}");
        self.files.put_link(&folder, &format!("{base}/{address}"));
        self.put(&format!("{folder}/class"), format!("0x{class:06x}"));
        self.put(&format!("{folder}/vendor"), format!("0x{:04x}", ids.0));
        self.put(&format!("{folder}/device"), format!("0x{:04x}", ids.1));
        self.put(&format!("{folder}/numa_node"), node);
        if max != NEVER {
            for (name, value) in [("current", now), ("max", max)] {
                self.put(&format!("{folder}/{name}_link_speed"), speed(value.0));
                self.put(&format!("{folder}/{name}_link_width"), value.1);
            }
            self.put(&format!("{folder}/config"), config(kind, max, now, slot, 0));
        }
        self
    }

    /// An NVMe drive at the port `above`, with a queue and a vector for each of the first eight CPUs.
    #[allow(clippy::too_many_arguments, reason = "a drive has that many properties")]
    pub fn nvme(
        &mut self,
        number: u32,
        above: &str,
        address: &str,
        max: End,
        now: End,
        node: i32,
        model: &str,
        gb: u64,
        celsius: u32,
    ) -> &mut Self {
        self.pci(above, address, 0x0001_0802, ENDPOINT, max, now, 0, node, (0x144d, 0xa824));
        self.driver(address, "nvme");
        let path = self.files.link(&format!("/sys/bus/pci/devices/{address}")).expect("made").to_string();
        let controller = format!("/sys/class/nvme/nvme{number}");
        self.files.put_link(&controller, &format!("{path}/nvme/nvme{number}"));
        let queues = self.cpus.min(8);
        for (name, value) in [
            ("model", model.to_string()),
            ("serial", format!("S64GNE0R{:06}", 500_100 + number * 7)),
            ("firmware_rev", "GDC5602Q".into()),
            ("queue_count", (queues + 1).to_string()),
            ("sqsize", "1023".into()),
            ("address", address.into()),
            ("transport", "pcie".into()),
            ("state", "live".into()),
        ] {
            self.put(&format!("{controller}/{name}"), value);
        }
        let sensor = format!("/sys/class/hwmon/hwmon{number}");
        self.files.put_link(&sensor, &format!("{path}/nvme/nvme{number}/hwmon{number}"));
        self.put(&format!("{sensor}/name"), "nvme");
        self.put(&format!("{sensor}/temp1_input"), celsius * 1000 + 850);
        self.put(&format!("{sensor}/temp1_max"), 69850);
        self.put(&format!("{sensor}/temp1_crit"), 79850);
        self.put(&format!("/nvme/nvme{number}/health"), health(celsius, 3 + (number % 5) as u8));
        self.block(
            &format!("nvme{number}n1"),
            &format!("{path}/nvme/nvme{number}/nvme{number}n1"),
            gb,
            queues,
        );
        for queue in 0..=queues {
            let cpu = if queue == 0 { 0 } else { queue - 1 };
            self.vector(address, &format!("nvme{number}q{queue}"), &cpu.to_string());
        }
        self
    }

    pub fn driver(&mut self, address: &str, driver: &str) -> &mut Self {
        self.files.put_link(
            &format!("/sys/bus/pci/devices/{address}/driver"),
            &format!("/sys/bus/pci/drivers/{driver}"),
        );
        self
    }

    pub fn block(&mut self, name: &str, path: &str, gb: u64, queues: u32) -> &mut Self {
        let folder = format!("/sys/block/{name}");
        self.files.put_link(&folder, path);
        self.put(&format!("{folder}/size"), gb * 1_000_000_000 / 512);
        for (file, value) in [
            ("scheduler", "[none] mq-deadline kyber"),
            ("nomerges", "0"),
            ("rq_affinity", "1"),
            ("add_random", "0"),
            ("rotational", "0"),
            ("wbt_lat_usec", "2000"),
            ("nr_requests", "1023"),
            ("io_poll", "0"),
            ("logical_block_size", "512"),
            ("physical_block_size", "4096"),
        ] {
            self.put(&format!("{folder}/queue/{file}"), value);
        }
        for queue in 0..queues {
            self.put(&format!("{folder}/mq/{queue}/cpu_list"), queue);
        }
        self.put(&format!("{folder}/stat"), "100 0 800 10 100 0 800 10 0 20 20 0 0 0 0 0 0")
    }

    #[allow(clippy::too_many_arguments, reason = "a port has that many properties")]
    pub fn nic(
        &mut self,
        name: &str,
        above: &str,
        address: &str,
        max: End,
        now: End,
        node: i32,
        mbit: i64,
        driver: &str,
    ) -> &mut Self {
        self.pci(above, address, 0x0002_0000, ENDPOINT, max, now, 0, node, (0x15b3, 0x1017));
        self.driver(address, driver);
        let path = self.files.link(&format!("/sys/bus/pci/devices/{address}")).expect("made").to_string();
        self.port(name, &format!("{path}/net/{name}"), mbit, 8);
        for queue in 0..8 {
            self.vector(address, &format!("{name}-rx-{queue}"), &format!("0-{}", self.cpus - 1));
        }
        self
    }

    pub fn port(&mut self, name: &str, path: &str, mbit: i64, queues: u32) -> &mut Self {
        let folder = format!("/sys/class/net/{name}");
        self.files.put_link(&folder, path);
        for (file, value) in [
            ("mtu", "1500"),
            ("type", "1"),
            ("operstate", if mbit > 0 { "up" } else { "down" }),
            ("tx_queue_len", "1000"),
        ] {
            self.put(&format!("{folder}/{file}"), value);
        }
        self.put(&format!("{folder}/speed"), mbit);
        for queue in 0..queues {
            self.put(&format!("{folder}/queues/rx-{queue}/rps_cpus"), "0");
            self.put(&format!("{folder}/queues/tx-{queue}/xps_cpus"), "0");
        }
        self
    }

    pub fn vector(&mut self, address: &str, action: &str, cpus: &str) -> &mut Self {
        let number = 40 + self.vectors.len() as u32;
        self.put(&format!("/sys/bus/pci/devices/{address}/msi_irqs/{number}"), "msix");
        self.put(&format!("/proc/irq/{number}/smp_affinity_list"), cpus);
        let first: String = cpus.split(['-', ',']).next().unwrap_or("0").into();
        self.put(&format!("/proc/irq/{number}/effective_affinity_list"), &first);
        self.vectors.push((number, address.into(), action.into(), first));
        self
    }

    /// What Linux would tell of the other settings, as distributions ship them.
    pub fn settings(&mut self) -> &mut Self {
        for (path, value) in [
            ("/proc/sys/kernel/numa_balancing", "1"),
            ("/proc/sys/vm/swappiness", "60"),
            ("/proc/sys/net/core/rmem_max", "212992"),
            ("/proc/sys/net/core/wmem_max", "212992"),
            ("/proc/sys/net/core/netdev_max_backlog", "1000"),
            ("/proc/sys/net/core/default_qdisc", "pfifo_fast"),
            ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456"),
            ("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
            ("/sys/module/pcie_aspm/parameters/policy", "[default] performance powersave powersupersave"),
            ("/sys/module/nvme/parameters/poll_queues", "0"),
            ("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines"),
            ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected"),
        ] {
            self.put(path, value);
        }
        self
    }

    /// The table of interrupts, the daemon's status, and the recording.
    pub fn end(mut self) -> Recording {
        let cpus = self.cpus.min(64);
        let mut table: String = (0..cpus).map(|c| format!("CPU{c} ")).collect();
        for (number, address, action, cpu) in &self.vectors {
            let counts: String =
                (0..cpus).map(|c| if c.to_string() == *cpu { "1000 " } else { "0 " }).collect();
            write!(table, "\n{number}: {counts}IR-PCI-MSIX-{address} 0-edge {action}").expect("a string");
        }
        self.put("/proc/interrupts", table);
        self.files
    }
}

/// Two sockets, a bank of 20 slots behind a switch at each, 12 drives in each; a pool whose last mirror has both
/// legs in one bank. The drives have two ports, the other of which goes to the other head: two lanes each.
pub fn two_sockets() -> Recording {
    let mut b = Builder::new("head-a", "Vendor", "Twin 2U40", "Some Xeon Gold 6226R CPU @ 2.90GHz");
    b.cpus(2, 16, 2, 192).settings();
    for (node, bus, up) in [(0, 0x16u32, 0x17u32), (1, 0x85, 0x86)] {
        let (root, port) = (format!("pci0000:{bus:02x}"), format!("0000:{bus:02x}:00.0"));
        let (switch, below) = (format!("0000:{up:02x}:00.0"), up + 1);
        b.pci(&root, &port, 0x060400, ROOT, (3, 16), (3, 16), 0, node, (0x8086, 0x2030));
        b.pci(&port, &switch, 0x060400, UP, (3, 16), (3, 16), 0, node, (0x10b5, 0x8796));
        for slot in 0..20u32 {
            let down = format!("0000:{below:02x}:{slot:02x}.0");
            let drive = slot < 12;
            let now = if drive { (3, 2) } else { (1, 0) };
            let label = slot + 1 + 20 * node as u32;
            b.pci(&switch, &down, 0x060400, DOWN, (3, 4), now, label, node, (0x10b5, 0x8796));
            if drive {
                let at = format!("0000:{:02x}:00.0", below + 1 + slot);
                let number = slot + 12 * node as u32;
                b.nvme(number, &down, &at, (3, 2), now, node, "EXAMPLE DP 3.84TB", 3841, 38 + slot % 5);
            }
        }
        let (root, port) = (format!("pci0000:{:02x}", bus + 0x30), format!("0000:{:02x}:00.0", bus + 0x30));
        b.pci(&root, &port, 0x060400, ROOT, (3, 16), (3, 16), 0, node, (0x8086, 0x2030));
        for function in 0..2 {
            let at = format!("0000:{:02x}:00.{function}", bus + 0x31);
            let name = format!("ens{}f{function}np{function}", node + 1);
            let speed = if function == 0 { 100_000 } else { -1 };
            b.nic(&name, &port, &at, (3, 16), (3, 16), node, speed, "mlx5_core");
        }
    }
    let leg = |n: u32| format!(r#"{{"path":"/dev/nvme{n}n1","state":"optimal"}}"#);
    let mirror = |a: u32, c: u32| {
        format!(r#"{{"layout":"mirror","state":"optimal","legs":[{},{}],"regions":1000}}"#, leg(a), leg(c))
    };
    let mirrors = [mirror(0, 12), mirror(1, 13), mirror(2, 14), mirror(3, 4)].join(",");
    let shards: Vec<String> = (0..4).map(|n| format!(r#"{{"shard":{n},"connections":2}}"#)).collect();
    let own = format!(
        r#"{{"daemon":{{"pid":900,"version":"0.1.0"}},"health":"optimal","pools":[{{"name":"tank","state":"optimal",
        "arrays":[{mirrors}]}}],"shards":[{}]}}"#,
        shards.join(",")
    )
    .replace('\n', " ");
    b.put("/millrace/status", own);
    for (shard, core) in [(0, 2), (1, 3), (2, 18), (3, 19)] {
        let task = format!("/proc/900/task/{}", 901 + shard);
        b.put(&format!("{task}/comm"), format!("shard-{shard}"));
        b.put(&format!("{task}/status"), format!("Cpus_allowed_list:\t{core}"));
    }
    b.end()
}

/// Four drives of one model, one of which sits in a slot of the first generation.
pub fn gen1_slot() -> Recording {
    let mut b = Builder::new("bench", "Vendor", "Workstation", "Some CPU 8 cores");
    b.cpus(1, 8, 1, 64).settings();
    for n in 0..4u32 {
        let (port, at) = (format!("0000:00:{:02x}.0", n + 1), format!("0000:{:02x}:00.0", n + 1));
        let slot = if n == 0 { (1, 4) } else { (2, 4) };
        b.pci("pci0000:00", &port, 0x060400, ROOT, slot, slot, n + 1, -1, (0x8086, 0x1901));
        b.nvme(n, &port, &at, (3, 4), slot, -1, "EXAMPLE PRO 512GB", 512, 41 + n);
    }
    b.pci("pci0000:00", "0000:00:1c.0", 0x060400, ROOT, (2, 1), (1, 1), 0, -1, (0x8086, 0xa294));
    b.nic("enp6s0", "0000:00:1c.0", "0000:06:00.0", (1, 1), (1, 1), -1, 1000, "e1000e");
    b.end()
}

/// A laptop: cores of two kinds, one drive that is warm, a wireless card.
pub fn laptop() -> Recording {
    let mut b = Builder::new("laptop", "Vendor", "Thin 14", "Some Mobile CPU");
    b.cpus(1, 12, 1, 32).settings();
    for core in 0..4 {
        for thread in 0..2 {
            let cpu = core * 2 + thread;
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
            b.put(&format!("{folder}/thread_siblings_list"), format!("{}-{}", core * 2, core * 2 + 1));
            b.put(&format!("{folder}/core_id"), core * 4);
        }
    }
    b.pci("pci0000:00", "0000:00:06.0", 0x060400, ROOT, (4, 4), (4, 4), 0, -1, (0x8086, 0xa74d));
    b.nvme(0, "0000:00:06.0", "0000:01:00.0", (4, 4), (4, 4), -1, "EXAMPLE 1TB OEM", 1024, 71);
    b.pci("pci0000:00", "0000:00:14.3", 0x028000, ENDPOINT, NEVER, NEVER, 0, -1, (0x8086, 0x51f0));
    b.pci("pci0000:00", "0000:00:02.0", 0x030000, ENDPOINT, NEVER, NEVER, 0, -1, (0x8086, 0xa7a0));
    b.port("wlp0s20f3", "/sys/devices/pci0000:00/0000:00:14.3/net/wlp0s20f3", -1, 4);
    b.end()
}

/// A guest in which nothing can be seen of the machine below.
pub fn guest() -> Recording {
    let mut b = Builder::new("vm", "QEMU", "Standard PC (Q35 + ICH9, 2009)", "QEMU Virtual CPU");
    b.cpus(1, 2, 1, 4);
    b.put("/proc/cpuinfo", "model name\t: QEMU Virtual CPU\nflags\t: hypervisor");
    for n in 0..2u32 {
        let at = format!("0000:00:{:02x}.0", n + 3);
        let class = if n == 0 { 0x010000 } else { 0x020000 };
        b.pci("pci0000:00", &at, class, ENDPOINT, NEVER, NEVER, 0, -1, (0x1af4, 0x1001 - n));
        b.driver(&at, "virtio-pci");
    }
    b.block("vda", "/sys/devices/pci0000:00/0000:00:03.0/virtio0/block/vda", 20, 1);
    b.port("eth0", "/sys/devices/pci0000:00/0000:00:04.0/virtio1/net/eth0", -1, 1);
    b.vector("0000:00:03.0", "virtio0-req.0", "0-1");
    b.end()
}

/// Four sockets with drives at their own ports, one of which has trained with two of its four lanes; the network is
/// at one node only.
pub fn four_sockets() -> Recording {
    let mut b = Builder::new("big", "Vendor", "Quad 4U", "Some Xeon Platinum 8380H");
    b.cpus(4, 28, 2, 384).settings();
    for node in 0..4u32 {
        for n in 0..3u32 {
            let bus = 0x10 + node * 0x40 + n;
            let (root, port) = (format!("pci0000:{bus:02x}"), format!("0000:{bus:02x}:02.0"));
            let at = format!("0000:{:02x}:00.0", bus + 0x10);
            let number = node * 3 + n;
            let now = if number == 7 { (4, 2) } else { (4, 4) };
            b.pci(&root, &port, 0x060400, ROOT, (4, 4), now, number + 1, node as i32, (0x8086, 0x347a));
            b.nvme(number, &port, &at, (4, 4), now, node as i32, "EXAMPLE U.2 7.68TB", 7681, 35);
        }
    }
    b.pci("pci0000:d8", "0000:d8:00.0", 0x060400, ROOT, (3, 16), (3, 8), 0, 3, (0x8086, 0x347a));
    b.nic("ens9", "0000:d8:00.0", "0000:d9:00.0", (3, 8), (3, 8), 3, 25_000, "ice");
    b.end()
}

/// A head of two shards under load, read twice: with two hosts, or with four that get less together. One of the four asked for
/// digests, and one has a second path that does next to nothing.
pub fn loaded(hosts: u64) -> Recording {
    let mut b = Builder::new("head-b", "Vendor", "Flat 1U4", "Some CPU 8 cores");
    b.cpus(1, 8, 1, 64).settings();
    for n in 0..4u32 {
        let (port, at) = (format!("0000:00:{:02x}.0", n + 1), format!("0000:{:02x}:00.0", n + 1));
        b.pci("pci0000:00", &port, 0x060400, ROOT, (3, 4), (3, 4), n + 1, -1, (0x8086, 0x1901));
        b.nvme(n, &port, &at, (3, 4), (3, 4), -1, "EXAMPLE PRO 512GB", 512, 41 + n);
    }
    b.pci("pci0000:00", "0000:00:1c.0", 0x060400, ROOT, (3, 8), (3, 8), 0, -1, (0x8086, 0xa294));
    b.nic("enp6s0", "0000:00:1c.0", "0000:06:00.0", (3, 8), (3, 8), -1, 25_000, "ice");
    let (each, busy) = if hosts == 2 { (200_000, 70) } else { (70_000, 99) };
    let all = each * hosts;
    let status = |later: bool| {
        let gone = |n: u64| if later { n } else { 0 };
        let connection = |host: u64, path: u64, rate: u64, in_flight: u64| {
            let (session, digest) = (host * 2 + path, hosts > 2 && host == 3);
            format!(
                r#"{{"host":"esx{host}","protocol":"nvme","peer":"10.0.{path}.{host}:40000","shard":{},"session":{session},"queue":1,"commands":{},"in_flight":{in_flight},"data_digest":{digest}}}"#,
                host % 2,
                gone(rate)
            )
        };
        let mut connections: Vec<String> = (1..=hosts).map(|host| connection(host, 1, each, 64)).collect();
        if hosts > 2 {
            connections.push(connection(4, 2, 12, 8));
        }
        let mirror = |a: u32| {
            format!(
                r#"{{"layout":"mirror","state":"optimal","legs":[{{"path":"/dev/nvme{a}n1","state":"optimal"}},{{"path":"/dev/nvme{}n1","state":"optimal"}}],"regions":1000}}"#,
                a + 1
            )
        };
        let drives: Vec<String> = (0..4)
            .map(|n| {
                format!(
                    r#"{{"path":"/dev/nvme{n}n1","pool":"tank","role":"leg","counters":{{"reads":{},"read_bytes":{}}}}}"#,
                    gone(all / 4),
                    gone(all * 1024)
                )
            })
            .collect();
        format!(
            r#"{{"daemon":{{"pid":900,"version":"0.1.0"}},"health":"optimal","drives":[{}],"pools":[{{"name":"tank","state":"optimal","arrays":[{},{}]}}],"volumes":[{{"name":"tank/vm","counters":{{"reads":{},"read_bytes":{}}}}}],"connections":[{}],"shards":[{{"shard":0,"commands":{}}},{{"shard":1,"commands":{}}}]}}"#,
            drives.join(","),
            mirror(0),
            mirror(2),
            gone(all),
            gone(all * 4096),
            connections.join(","),
            gone(all / 2),
            gone(all / 2)
        )
    };
    b.put("/millrace/status", status(false));
    for shard in 0..2u32 {
        let task = format!("/proc/900/task/{}", 901 + shard);
        b.put(&format!("{task}/comm"), format!("shard-{shard}"));
        b.put(&format!("{task}/status"), format!("Cpus_allowed_list:\t{}", 2 + shard));
    }
    let mut recording = b.end();
    recording.put_later(1000, "/millrace/status", &format!("{}\n", status(true)));
    for shard in 0..2u32 {
        // User and system time are the 14th and 15th field, in hundredths of a second.
        let stat = |ticks: u32| {
            format!("{} (shard-{shard}) R 1 900 900 0 -1 0 0 0 0 0 {ticks} 0 0 0\n", 901 + shard)
        };
        let path = format!("/proc/900/task/{}/stat", 901 + shard);
        recording.put(&path, &stat(5000));
        recording.put_later(1000, &path, &stat(5000 + busy));
    }
    for drive in 0..4 {
        // 95 µs a read.
        let stat = |reads: u64| {
            format!("{reads} 0 {} {} 0 0 0 0 0 1000 {}\n", reads * 8, reads * 95 / 1000, reads * 95 / 1000)
        };
        let path = format!("/sys/block/nvme{drive}n1/stat");
        recording.put(&path, &stat(1_000_000));
        recording.put_later(1000, &path, &stat(1_000_000 + all / 4));
    }
    recording
}

/// The machine on which this was written first: a guest of a small hypervisor, as it was recorded there.
pub fn recorded() -> Recording {
    Recording::decode(include_bytes!("../../machines/recorded.rec")).expect("a recording")
}

/// A QEMU guest with two nodes, a switch with two drives in one and two root ports in the other, as Linux 6.1 showed it and the judge's test
/// of such a machine recorded it.
pub fn nodes() -> Recording {
    Recording::decode(include_bytes!("../../machines/nodes.rec")).expect("a recording")
}

/// All of them, with the names under which they are kept.
pub fn all() -> Vec<(&'static str, Recording)> {
    vec![
        ("two-sockets", two_sockets()),
        ("gen1-slot", gen1_slot()),
        ("laptop", laptop()),
        ("guest", guest()),
        ("four-sockets", four_sockets()),
        ("two-hosts", loaded(2)),
        ("four-hosts", loaded(4)),
    ]
}
