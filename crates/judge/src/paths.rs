//! A Linux host with paths to both heads: the lines that `millrace export` prints set it up, and then it reports its paths.

use crate::until;
use lab::Vm;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What Debian's multipath-tools do as they are installed; the lab's guests have no services.
const AS_INSTALLED: &str = "modprobe -a scsi_dh_alua dm-multipath && multipathd && \
                            for i in $(seq 50); do multipathd show daemon && exit; sleep 0.3; done; exit 1";
/// A line for each controller, policy and disk, then what multipathd knows.
const LOOK: &str = r#"
    for c in /sys/class/nvme/nvme*; do
        echo "nvme $(sed 's/traddr=\([^,]*\).*/\1/' $c/address) $(cat $c/state)" $(cat $c/nvme*c*n*/ana_state)
    done
    for s in /sys/class/nvme-subsystem/*; do echo "policy $(cat $s/iopolicy)"; done
    for d in /sys/block/sd*; do
        s=$(readlink -f $d/device | sed -n 's|.*/session\([0-9]*\)/.*|\1|p')
        echo "disk ${d##*/} $(cat /sys/class/iscsi_connection/connection$s:0/persistent_address)"
    done
    echo maps
    multipathd show maps json
"#;
/// A host and its kernel on a busy machine; only what hangs takes as long.
const PATIENCE: u64 = 180;
/// So many commands show where a host sends them.
const ENOUGH: u64 = 20;
/// The part of a head whose paths are used in turns with those of the other one, per cent.
const FAIR: RangeInclusive<u64> = 30..=70;
/// The priority that ALUA's *active/optimized* has in dm-multipath.
const OPTIMIZED: i64 = 50;

/// Has the guest do what an operator does with the lines that `export` printed for it.
pub fn set_up(vm: &Vm, lines: &[String]) {
    let settle = "udevadm settle".to_owned();
    for line in [&AS_INSTALLED.to_owned()].into_iter().chain(lines).chain([&settle]) {
        vm.run(line, 120).unwrap_or_else(|e| panic!("a line for hosts: {e:#}\n{}", state(vm)));
    }
}

/// The lines that an answer to `export --json` has for hosts.
pub fn lines(exported: &Value) -> Vec<String> {
    let all = exported["commands"].as_array().unwrap_or_else(|| panic!("no commands for hosts: {exported}"));
    all.iter().map(|line| line.as_str().expect("a line").to_owned()).collect()
}

/// The disks by which a guest uses the first volume by NVMe/TCP and the second one by iSCSI, as `status` names them.
pub fn disks(vm: &Vm, status: &Value, volumes: [&str; 2]) -> [String; 2] {
    let uuid = |volume: &str| {
        let all = status["volumes"].as_array().into_iter().flatten();
        let one = all.filter(|v| v["name"] == volume).filter_map(|v| v["uuid"].as_str()).next();
        one.expect("the volume").to_owned()
    };
    let names = [
        format!("/dev/disk/by-id/nvme-uuid.{}", uuid(volumes[0])),
        format!("/dev/mapper/*{}", uuid(volumes[1])),
    ];
    names.map(|name| vm.disk(&name).expect("a disk"))
}

/// Waits until the guest has a path for each protocol to all these addresses, of `volumes` volumes: those that are up are optimized
/// and used in turns, and those that are down are not used.
pub fn wait(vm: &Vm, what: &str, up: &[&str], down: &[&str], volumes: usize) {
    let mut last = Err("nothing was seen".to_owned());
    let mut seen = Paths::default();
    let end = Instant::now() + Duration::from_secs(PATIENCE);
    while last.is_err() {
        if let Some(paths) = Paths::of(vm) {
            seen = paths;
            last = seen.are(up, down, volumes);
        }
        if let Err(why) = &last {
            assert!(Instant::now() < end, "not within {PATIENCE} s: {what}: {why}\n{seen:#?}\n{}", state(vm));
            sleep(Duration::from_millis(500));
        }
    }
}

/// What there is to read if something in a guest is not as it should be: what its processes wait for, and what its kernel says.
pub fn state(vm: &Vm) -> String {
    const READ: &str = r"
        ps -eo pid,stat,wchan:24,args | grep -v ' \[' | tail -n 50
        for p in $(pgrep 'millrace|multipath|udev|iscsi|nvme'); do
            for t in /proc/$p/task/*; do echo $p $(cat $t/comm) $(tr '\n' ' ' <$t/stack); done
        done
        nvme list-subsys; timeout 20 multipath -ll; dmesg | tail -n 60";
    vm.try_run(READ, 60).map_or_else(|e| format!("{e:#}"), |o| o.stdout)
}

/// What a guest sees of its paths.
#[derive(Debug, Default)]
struct Paths {
    controllers: Vec<Controller>,
    /// How each NVMe subsystem chooses among them.
    policies: Vec<String>,
    /// The path groups of each map of dm-multipath.
    maps: BTreeMap<String, Vec<Group>>,
}

#[derive(Debug)]
struct Controller {
    address: String,
    state: String,
    /// Of each namespace.
    ana: Vec<String>,
}

#[derive(Debug)]
struct Group {
    selector: String,
    /// The address of each path, whether it is used, and its priority.
    paths: Vec<(String, bool, i64)>,
}

impl Paths {
    fn of(vm: &Vm) -> Option<Paths> {
        let said = vm.try_run(LOOK, 60).ok()?.stdout;
        let (host, maps) = said.split_once("maps\n")?;
        let mut paths = Paths::default();
        let mut disks = BTreeMap::new();
        for line in host.lines() {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["nvme", address, state, ref ana @ ..] => paths.controllers.push(Controller {
                    address: address.into(),
                    state: state.into(),
                    ana: ana.iter().map(|word| (*word).to_owned()).collect(),
                }),
                ["policy", policy] => paths.policies.push(policy.into()),
                ["disk", disk, address] => drop(disks.insert(disk.to_owned(), address.to_owned())),
                _ => {}
            }
        }
        let maps: Value = serde_json::from_str(maps).ok()?;
        for map in maps["maps"].as_array()? {
            let groups = map["path_groups"].as_array()?.iter().map(|group| {
                let each = group["paths"].as_array().into_iter().flatten().map(|path| {
                    let address = disks.get(path["dev"].as_str().unwrap_or_default()).cloned();
                    let is_used = path["dm_st"] == "active" && path["chk_st"] == "ready";
                    (address.unwrap_or_default(), is_used, path["pri"].as_i64().unwrap_or_default())
                });
                let selector = group["selector"].as_str().unwrap_or_default().to_owned();
                Group { selector, paths: each.collect() }
            });
            paths.maps.insert(map["name"].as_str()?.to_owned(), groups.collect());
        }
        Some(paths)
    }

    /// Whether they are as they should be, or what is not.
    fn are(&self, up: &[&str], down: &[&str], volumes: usize) -> Result<(), String> {
        let holds = |is_so: bool, what: &str| if is_so { Ok(()) } else { Err(what.to_owned()) };
        let all = sorted([up, down].concat());
        let addresses = sorted(self.controllers.iter().map(|c| &c.address[..]).collect());
        holds(addresses == all, "an NVMe controller for each address")?;
        for c in &self.controllers {
            if up.contains(&&c.address[..]) {
                holds(c.state == "live", &format!("{} is live", c.address))?;
                let optimized = c.ana.iter().filter(|state| *state == "optimized").count();
                holds(
                    (c.ana.len(), optimized) == (volumes, volumes),
                    &format!("{} is optimized", c.address),
                )?;
            } else {
                holds(c.state != "live", &format!("{} is not live", c.address))?;
            }
        }
        holds(self.policies == ["round-robin"], "NVMe goes round")?;
        holds(self.maps.len() == volumes, "a map for each volume")?;
        for (name, groups) in &self.maps {
            let paths = || groups.iter().flat_map(|g| &g.paths);
            let addresses = sorted(paths().map(|p| &p.0[..]).collect());
            holds(addresses == all, &format!("{name} has a path for each address"))?;
            for (address, is_used, priority) in paths() {
                let should_be = up.contains(&&address[..]);
                holds(*is_used == should_be, &format!("{name} uses {address}: {should_be}"))?;
                holds(!should_be || *priority == OPTIMIZED, &format!("{name}: {address} is optimized"))?;
            }
            let used: Vec<_> = groups.iter().filter(|g| g.paths.iter().any(|p| p.1)).collect();
            holds(used.len() == 1, &format!("{name} uses one group"))?;
            holds(used[0].selector.starts_with("round-robin "), &format!("{name} goes round"))?;
            holds(!down.is_empty() || groups.len() == 1, &format!("{name} has one group"))?;
        }
        Ok(())
    }
}

fn sorted(mut all: Vec<&str>) -> Vec<&str> {
    all.sort_unstable();
    all
}

/// How many commands to volumes a host has sent, by protocol and head, over the connections that it has.
pub type Commands = BTreeMap<(String, String), u64>;

/// As a head's status shows it.
pub fn commands(status: &Value, host: &str) -> Commands {
    let mut sums = Commands::new();
    for connection in status["connections"].as_array().into_iter().flatten() {
        let word = |key: &str| connection[key].as_str().unwrap_or_default().to_owned();
        if connection["host"] == host {
            let count = connection["commands"].as_u64().unwrap_or_default();
            *sums.entry((word("protocol"), word("head"))).or_default() += count;
        }
    }
    sums
}

/// What the host has sent to head a and head b between two looks by this protocol.
fn sent(before: &Commands, after: &Commands, protocol: &str) -> [u64; 2] {
    ["a", "b"].map(|head| {
        let of = |all: &Commands| all.get(&(protocol.into(), head.into())).copied().unwrap_or_default();
        of(after).saturating_sub(of(before))
    })
}

/// Waits until the host sends commands to both heads in turns, by each protocol: there is a stretch of time in which it
/// sends enough and each head gets a fair part. Returns the percentage that head a got then, of NVMe and iSCSI.
///
/// On a busy machine a head's figures may be those of a while ago, and a path may be down for a while: then one head got
/// most in such a stretch, which says nothing. A host that does not use its paths in turns never has a fair one.
pub fn go_to_both(look: impl Fn() -> Commands) -> [u64; 2] {
    let end = Instant::now() + Duration::from_secs(PATIENCE);
    let first = look();
    ["nvme", "iscsi"].map(|protocol| {
        let mut before = first.clone();
        loop {
            let after = look();
            let [a, b] = sent(&before, &after, protocol);
            let (share, enough) = (100 * a / (a + b).max(1), a + b > ENOUGH);
            if enough && FAIR.contains(&share) {
                return share;
            }
            assert!(
                Instant::now() < end,
                "not within {PATIENCE} s by both heads in turns; by {protocol} {a} commands went to head a at last, and \
                 {b} to head b: {before:?}, {after:?}"
            );
            if enough {
                before = after;
            }
            sleep(Duration::from_millis(500));
        }
    })
}

/// Waits until the load of a host is under way: commands come by each of these protocols.
pub fn wait_for_load(protocols: &[&str], look: impl Fn() -> Commands) {
    let mut before = look();
    until("commands of the host's load come", PATIENCE, || {
        let after = look();
        for (from, count) in &after {
            // A connection that was made anew counts from its beginning.
            let least = before.entry(from.clone()).or_default();
            *least = (*least).min(*count);
        }
        let sum = |all: &Commands, protocol: &str| -> u64 {
            all.iter().filter(|(from, _)| from.0 == protocol).map(|(_, count)| count).sum()
        };
        let come = |protocol: &str| sum(&after, protocol).saturating_sub(sum(&before, protocol));
        protocols.iter().copied().all(|protocol| come(protocol) > ENOUGH)
    });
}
