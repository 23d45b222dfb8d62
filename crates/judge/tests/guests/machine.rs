//! What `topology`, `pool create` and `tune` find on a machine under a real kernel: two NUMA nodes, a switch, links of several
//! speeds. pciutils, hwloc and numactl look at the same machine and must see the same.

use judge::{Head, binary};
use lab::{Kernel, Net, Vm, skipped};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Others that read such a machine, and what they need.
const PACKAGES: &[&str] = &[
    "pciutils",
    "libpci3",
    "numactl",
    "libnuma1",
    "hwloc-nox",
    "libhwloc15",
    "libtinfo6",
    "libudev1",
    "zlib1g",
];

/// Four processors, two to a core, in two sockets with a node each. Node 0 has a bank behind a switch, node 1 a slot of the first generation
/// and one of the fourth.
fn guest(net: &Net, drives: &[PathBuf]) -> Vm {
    let mut builder = Vm::builder("nodes").cpus(4).mem(1536);
    for (option, value) in [
        ("-smp", "4,sockets=2,cores=1,threads=2"),
        ("-object", "memory-backend-ram,id=mem0,size=768M"),
        ("-object", "memory-backend-ram,id=mem1,size=768M"),
        ("-numa", "node,nodeid=0,cpus=0-1,memdev=mem0"),
        ("-numa", "node,nodeid=1,cpus=2-3,memdev=mem1"),
        ("-numa", "dist,src=0,dst=1,val=21"),
        ("-device", "pxb-pcie,id=bank0,bus=pcie.0,bus_nr=32,numa_node=0"),
        ("-device", "pxb-pcie,id=bank1,bus=pcie.0,bus_nr=96,numa_node=1"),
        ("-device", "pcie-root-port,id=root0,bus=bank0,chassis=1,slot=1,x-speed=8,x-width=16"),
        ("-device", "x3130-upstream,id=up0,bus=root0"),
        ("-device", "xio3130-downstream,id=down0,bus=up0,chassis=2,slot=2"),
        ("-device", "xio3130-downstream,id=down1,bus=up0,chassis=3,slot=3"),
        ("-device", "pcie-root-port,id=root1,bus=bank1,chassis=4,slot=4,x-speed=2_5,x-width=4"),
        ("-device", "pcie-root-port,id=root2,bus=bank1,chassis=5,slot=5,x-speed=16,x-width=4"),
    ] {
        builder = builder.machine(option, value);
    }
    for (bus, drive) in ["down0", "down1", "root1", "root2"].iter().zip(drives) {
        builder = builder.nvme_on(bus, drive);
    }
    builder.start(net).expect("a guest")
}

/// What lspci says of a function: its path from the root, and the lines below it.
struct Seen {
    above: Option<String>,
    node: Value,
    max: Value,
    now: Value,
    slot: Option<String>,
}

/// `8GT/s, Width x16, …` as the topology writes it; null if lspci does not know it.
fn lanes(text: &str) -> Value {
    let speed = text.split("GT/s").next().and_then(|t| t.rsplit(' ').next()).unwrap_or_default();
    let generation = ["2.5", "5", "8", "16", "32"].iter().position(|known| *known == speed);
    let width =
        text.split("Width x").nth(1).map(|t| t.chars().take_while(char::is_ascii_digit).collect::<String>());
    match (generation, width.and_then(|w| w.parse::<u8>().ok()).filter(|w| *w > 0)) {
        (Some(generation), Some(width)) => json!({ "generation": generation + 1, "width": width }),
        _ => Value::Null,
    }
}

/// Every function that lspci shows, by its address.
fn lspci(vm: &Vm) -> BTreeMap<String, Seen> {
    let paths = vm.run("lspci -D -PP", 60).expect("lspci").stdout;
    let details = vm.run("lspci -D -vv", 60).expect("lspci").stdout;
    let mut seen = BTreeMap::new();
    for block in details.split("\n\n").filter(|b| !b.trim().is_empty()) {
        let address = block.split_whitespace().next().expect("an address").to_owned();
        let after = |word: &str| block.lines().find_map(|l| l.trim().strip_prefix(word));
        let short = address.trim_start_matches("0000:");
        let path =
            paths.split_whitespace().find(|p| p.rsplit('/').next().is_some_and(|l| l.ends_with(short)));
        let above = path
            .and_then(|p| p.rsplit('/').nth(1))
            .map(|a| format!("0000:{}", a.trim_start_matches("0000:")));
        let slot = block.split("Slot #").nth(1).and_then(|t| t.split(',').next()).map(str::to_owned);
        let node = after("NUMA node: ").and_then(|n| n.parse::<u32>().ok()).map_or(Value::Null, |n| json!(n));
        let link = |word| after(word).map_or(Value::Null, lanes);
        seen.insert(address, Seen { above, node, max: link("LnkCap:"), now: link("LnkSta:"), slot });
    }
    seen
}

/// Settings of the guest as they are: what `tune` may change.
const SETTINGS: &str = "for f in /sys/block/*/queue/{scheduler,nomerges,rq_affinity,add_random,rotational,wbt_lat_usec,nr_requests,io_timeout,write_cache} \
    /proc/sys/vm/swappiness /proc/sys/kernel/numa_balancing /sys/kernel/mm/transparent_hugepage/enabled \
    /proc/sys/net/core/{rmem_max,wmem_max,default_qdisc} /proc/sys/net/ipv4/tcp_{rmem,wmem} \
    /proc/irq/*/smp_affinity_list /sys/class/net/*/queues/*/{rps_cpus,xps_cpus} /sys/module/pcie_aspm/parameters/policy; \
    do echo \"$f: $(cat $f 2>/dev/null)\"; done";

fn json(vm: &Vm, command: &str) -> Value {
    let said = vm.run(command, 120).expect("a command that ends well");
    serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{command}: {e}: {}", said.stdout))
}

#[test]
fn topology_is_what_lspci_lstopo_and_numactl_see_and_tune_puts_back_what_it_changed() {
    if skipped("a machine with nodes and switches") {
        return;
    }
    let Head { dir, .. } = &Head::prepare("machine");
    let drives: Vec<PathBuf> = ["a", "b", "c", "d"].iter().map(|name| dir.join(name)).collect();
    for drive in &drives {
        std::fs::File::create(drive).and_then(|f| f.set_len(96 << 20)).expect("a drive file");
    }
    let net = Net::new().expect("a network");
    let vm = guest(&net, &drives);
    vm.push(&lab::packages(Kernel::V6_1, PACKAGES).expect("packages"), "/tmp/more.tgz").expect("push");
    vm.run("tar -C / -xzf /tmp/more.tgz --keep-directory-symlink --no-same-owner", 60).expect("tar");
    vm.push(binary(), "/usr/bin/millrace").expect("push");

    let ours = json(&vm, "millrace topology --json --seconds 0");
    same_devices(&ours, &lspci(&vm));
    same_nodes(&ours, &vm.run("numactl -H", 60).expect("numactl").stdout);
    same_places(&ours, &vm.run("lstopo-no-graphics --of console", 60).expect("lstopo").stdout);
    same_processors(&ours, &vm.run("lscpu -p=cpu,node,socket,core", 60).expect("lscpu").stdout);

    // What a drive reports comes by a command to it: QEMU's are new, and at 50 °C.
    for drive in ours["drives"].as_array().expect("a list").iter().filter(|d| d["kind"] == "nvme") {
        let health = &drive["health"];
        assert_eq!((&health["used"], &health["celsius"]), (&0.into(), &50.0.into()), "{drive}");
    }

    // Looked at from elsewhere it is the same machine.
    vm.run("millrace topology --seconds 0 --record /tmp/machine.rec --anonymous", 60).expect("a recording");
    if let Some(keep) = std::env::var_os("MILLRACE_KEEP_RECORDING") {
        vm.pull("/tmp/machine.rec", &PathBuf::from(keep)).expect("pull");
    }
    let again = json(&vm, "millrace topology --json --machine /tmp/machine.rec");
    for part in ["devices", "cpus", "nodes"] {
        let stable = |v: &Value| {
            let mut v = v[part].clone();
            for item in v.as_array_mut().expect("a list") {
                for moving in ["free_kib", "busy", "softirq", "irq", "steal"] {
                    item.as_object_mut().expect("an object").remove(moving);
                }
            }
            v
        };
        assert_eq!(stable(&again), stable(&ours), "{part}");
    }
    vm.run("millrace topology --seconds 0 --svg /tmp/machine.svg && grep -q '</svg>' /tmp/machine.svg", 60)
        .expect("a picture");

    legs_apart(&vm);
    tune_and_undo(&vm);
    assert_eq!(vm.warnings().expect("dmesg"), Vec::<String>::new());
}

/// Tree, links now and possible, slots and nodes are those of lspci.
fn same_devices(ours: &Value, theirs: &BTreeMap<String, Seen>) {
    let devices = ours["devices"].as_array().expect("devices");
    assert_eq!(devices.len(), theirs.len(), "as many functions as lspci shows");
    let mut links = 0;
    for device in devices {
        let address = device["address"].as_str().expect("an address");
        let seen = theirs.get(address).unwrap_or_else(|| panic!("lspci does not know {address}"));
        let above =
            device["parent"].as_u64().map(|i| devices[i as usize]["address"].as_str().expect("an address"));
        assert_eq!(above, seen.above.as_deref(), "what is above {address}");
        assert_eq!(device["node"], seen.node, "the node of {address}");
        // Between the ports of a switch there is no link.
        let Some(above) = above.filter(|_| device["port"] != "switch-down") else { continue };
        let link = &device["link"];
        assert_eq!(link["now"], seen.now, "the link above {address}");
        assert_eq!(link["below_max"], seen.max, "what {address} can");
        assert_eq!(link["above_max"], theirs[above].max, "what {above} can");
        if let Some(slot) = &theirs[above].slot {
            assert_eq!(device["slot"].as_str(), Some(slot.as_str()), "the slot of {address}");
        }
        links += usize::from(!link["now"].is_null());
    }
    assert_eq!(links, 5, "a switch and four drives");
}

fn same_nodes(ours: &Value, numactl: &str) {
    let nodes = ours["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 2);
    let list = |v: &Value| v.as_array().expect("a list").iter().map(Value::to_string).collect::<Vec<_>>();
    for (i, node) in nodes.iter().enumerate() {
        let row = |word: String| {
            let line = numactl.lines().find_map(|l| l.trim().strip_prefix(&word).map(str::to_owned));
            let line = line.unwrap_or_else(|| panic!("'{word}' in {numactl}"));
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(list(&node["cpus"]), row(format!("node {i} cpus:")));
        assert_eq!(list(&node["distances"]), row(format!("{i}:")));
        let mib = node["memory_kib"].as_u64().expect("a size") / 1024;
        assert_eq!(mib.to_string(), row(format!("node {i} size:"))[0]);
    }
}

/// Each drive is below the package whose node we give it.
fn same_places(ours: &Value, lstopo: &str) {
    let mut package = None;
    let mut found = 0;
    for line in lstopo.lines() {
        if let Some(n) = line.trim().strip_prefix("NUMANode L#") {
            package = n.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
        } else if line.starts_with("  HostBridge") {
            package = None;
        } else if let Some(name) = line.split("Block(Disk) \"").nth(1).and_then(|t| t.split('"').next()) {
            let drive = ours["drives"].as_array().expect("drives").iter().find(|d| d["name"] == name);
            let device = drive.and_then(|d| d["device"].as_str()).expect("a device");
            let device = ours["devices"].as_array().expect("devices").iter().find(|d| d["address"] == device);
            assert_eq!(device.expect("a device")["node"].as_u64(), package, "{name} in {lstopo}");
            found += 1;
        }
    }
    assert_eq!(found, 4, "{lstopo}");
}

fn same_processors(ours: &Value, lscpu: &str) {
    let theirs: Vec<Vec<u64>> = lscpu
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split(',').map(|n| n.parse().expect("a number")).collect())
        .collect();
    let cpus = ours["cpus"].as_array().expect("processors");
    assert_eq!(cpus.len(), theirs.len());
    for (cpu, row) in cpus.iter().zip(&theirs) {
        let number = |name: &str| cpu[name].as_u64();
        assert_eq!(
            [number("id"), number("node"), number("socket")],
            [Some(row[0]), Some(row[1]), Some(row[2])]
        );
        // lscpu numbers cores through the machine, we as the kernel does, within their socket: who shares one is what counts.
        let with: Vec<u64> = theirs.iter().filter(|r| r[3] == row[3]).map(|r| r[0]).collect();
        let siblings: Vec<u64> =
            cpu["siblings"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
        assert_eq!(siblings, with, "who shares the core of CPU {}", row[0]);
    }
}

/// `mirrors` of all four drives: each with a leg in either node, and it says so.
fn legs_apart(vm: &Vm) {
    vm.run(
        "mkdir -p /var/lib/millrace /run/millrace; printf 'shards = 1\nmemory = \"64M\"\n' >/etc/head.toml
        setsid /usr/bin/millrace serve --config /etc/head.toml >>/tmp/log 2>&1 </dev/null &
        for i in $(seq 400); do millrace status >/dev/null 2>&1 && exit 0; sleep 0.2; done; cat /tmp/log; exit 1",
        300,
    )
    .expect("the daemon starts");
    let said = vm
        .run("millrace pool create tank mirrors /dev/nvme0n1 /dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1", 60)
        .expect("a pool")
        .stdout;
    let mirrors: Vec<&str> = said.lines().filter(|l| l.trim().starts_with("mirror-")).collect();
    assert_eq!(mirrors.len(), 2, "{said}");
    for mirror in mirrors {
        assert!(mirror.contains("node 0") && mirror.contains("node 1"), "it says where the legs are: {said}");
    }
    let own = json(vm, "millrace topology --json --seconds 0")["own"].clone();
    assert_eq!(own["drives"].as_array().map(Vec::len), Some(4), "drawn into the machine: {own}");
}

/// `--apply` changes the kernel's settings, a daemon that is gone changes nothing of that, and `--undo` leaves them as they were.
fn tune_and_undo(vm: &Vm) {
    let settings = || vm.run(SETTINGS, 60).expect("settings").stdout;
    let before = settings();
    let wanted: Vec<(String, String)> = json(vm, "millrace tune --json --seconds 0")
        .as_array()
        .expect("settings")
        .iter()
        .filter_map(|s| s["verdict"]["change"].as_array())
        .flatten()
        .map(|c| (c["path"].as_str().expect("a path").into(), c["value"].as_str().expect("a value").into()))
        .collect();
    assert!(wanted.len() > 20, "{wanted:?}");
    vm.run("millrace tune --apply", 120).expect("apply");
    assert_ne!(settings(), before);
    vm.run("pkill millrace", 30).expect("the daemon ends");
    vm.run("millrace tune --undo", 120).expect("undo");
    assert_eq!(settings(), before, "as it was");
}
