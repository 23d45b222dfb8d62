//! The machine that a recording tells of.

use crate::cpu::{self, Cpu, Node, Socket};
use crate::drive::{self, Drive, DriveKind};
use crate::gap::Gap;
use crate::interrupt::{self, Interrupt};
use crate::net::{self, Port};
use crate::pci::{self, Class, Device, PortKind};
use crate::record::{OWN, plain_name};
use crate::recording::{Clock, Recording, members};
use crate::status::Own;
use serde::Serialize;

/// A machine: what is known of it, and by name what is not.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Machine {
    /// Its name.
    pub host: Option<String>,
    /// When it was read.
    pub at: String,
    /// Vendor and product.
    pub product: Option<String>,
    /// The kernel's version.
    pub kernel: Option<String>,
    /// The processor's model.
    pub processor: Option<String>,
    /// It is a guest of a hypervisor.
    pub guest: bool,
    /// Main memory, KiB.
    pub memory_kib: Option<u64>,
    /// Sockets.
    pub sockets: Vec<Socket>,
    /// NUMA nodes.
    pub nodes: Vec<Node>,
    /// CPUs.
    pub cpus: Vec<Cpu>,
    /// PCI devices and ports, by address.
    pub devices: Vec<Device>,
    /// Drives.
    pub drives: Vec<Drive>,
    /// Network ports.
    pub ports: Vec<Port>,
    /// Interrupts.
    pub interrupts: Vec<Interrupt>,
    /// What our head does here.
    pub own: Option<Own>,
    /// The same at the second reading.
    #[serde(skip)]
    pub own_later: Option<Own>,
    /// Seconds between two readings of Linux' counters, if there are two.
    pub seconds: Option<f64>,
    /// Seconds between two readings of the head's status, if there are two.
    pub own_seconds: Option<f64>,
    /// What single drives were measured to do alone.
    #[serde(skip)]
    pub measured: Vec<Measured>,
    /// What hosts did together at another time, with fewer of them.
    #[serde(skip)]
    pub earlier: Option<Crowd>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// What a drive did alone, as somebody measured it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// Its path or name.
    pub drive: String,
    /// It wrote.
    pub write: bool,
    /// Bytes of an operation.
    pub bytes: u32,
    /// Operations a second.
    pub iops: f64,
}

/// What all hosts did together.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Crowd {
    /// Hosts that asked for anything.
    pub hosts: usize,
    /// Commands a second.
    pub rate: f64,
    /// In flight.
    pub in_flight: f64,
    /// Mean bytes of a command.
    pub bytes: f64,
}

impl Machine {
    /// The machine that `from` tells of.
    pub fn of(from: &Recording) -> Self {
        let mut gaps = from.gaps.clone();
        let nodes = cpu::nodes(from);
        let cpus = cpu::cpus(from, &nodes, &mut gaps);
        let devices = pci::devices(from, &mut gaps);
        let mut drives = drive::drives(from, &mut gaps);
        for drive in &mut drives {
            let device = devices.iter().find(|d| Some(&d.address) == drive.device.as_ref());
            // A slot of an HBA is not its drives'.
            drive.slot = device.filter(|d| d.class == Class::Nvme).and_then(|d| d.slot.clone());
        }
        slots_of_enclosures(from, &mut drives);
        let interrupts = interrupt::interrupts(from, &mut gaps);
        let mut machine = Self {
            host: from.text("/proc/sys/kernel/hostname").map(String::from),
            at: from.at.clone(),
            product: product(from),
            kernel: from.text("/proc/sys/kernel/osrelease").map(String::from),
            processor: from.file("/proc/cpuinfo").and_then(|text| {
                let line = text.lines().find(|l| l.starts_with("model name"))?;
                Some(line.split_once(':')?.1.trim().to_string())
            }),
            guest: from.file("/proc/cpuinfo").is_some_and(|t| t.contains("hypervisor")),
            memory_kib: from.file("/proc/meminfo").and_then(|text| {
                let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
                line.split_whitespace().nth(1)?.parse().ok()
            }),
            sockets: cpu::sockets(&cpus),
            nodes,
            cpus,
            devices,
            drives,
            ports: net::ports(from),
            interrupts,
            own: None,
            own_later: None,
            seconds: from.seconds_of(Clock::Counters),
            own_seconds: from.seconds_of(Clock::Status),
            measured: Vec::new(),
            earlier: None,
            gaps,
        };
        machine.read_own(from);
        machine
    }

    fn read_own(&mut self, from: &Recording) {
        let mut read = |text: Option<&str>| match Own::decode(text?) {
            Ok(own) => Some(own),
            Err(why) => {
                self.gaps.push(why);
                None
            }
        };
        self.own = read(from.file(OWN));
        self.own_later = read(from.later(OWN));
        let Some(own) = &mut self.own else { return };
        let Some(pid) = own.pid else { return };
        let folder = format!("/proc/{pid}/task");
        for task in from.list(&folder) {
            let name = from.text(&format!("{folder}/{task}/comm")).unwrap_or("");
            let Some(number) = name.strip_prefix("shard-").and_then(|n| n.parse::<u64>().ok()) else {
                continue;
            };
            let Some(shard) = own.shards.iter_mut().find(|s| u64::from(s.of.shard) == number) else {
                continue;
            };
            shard.thread = task.parse().ok();
            let allowed = from
                .text(&format!("{folder}/{task}/status"))
                .and_then(|t| t.strip_prefix("Cpus_allowed_list:"));
            let allowed = allowed.map_or(Vec::new(), members);
            // A thread that may run on one core only is bound to it.
            shard.core = (allowed.len() == 1).then(|| allowed[0]);
            let stat = format!("{folder}/{task}/stat");
            let ticks = |text: &str| {
                // The name, in brackets, may hold blanks; user and system time are the 14th and 15th field.
                let mut words = text.rsplit_once(')')?.1.split_whitespace().skip(11);
                let (user, system): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                user.checked_add(system)
            };
            // Nanoseconds on a core, nanoseconds ready and waiting for one, times.
            let delay = |text: &str| text.split_whitespace().nth(1)?.parse::<u64>().ok();
            let file = format!("{folder}/{task}/schedstat");
            let delayed = from.file(&file).and_then(delay).zip(from.later(&file).and_then(delay));
            shard.waited = delayed.zip(from.seconds_of(Clock::Threads)).map(|((before, after), seconds)| {
                (after.saturating_sub(before) as f64 / 1e9 / seconds).clamp(0.0, 1.0) as f32
            });
            let gone = from.file(&stat).and_then(ticks).zip(from.later(&stat).and_then(ticks));
            // Linux counts 100 ticks a second towards user space on every architecture that we run on.
            shard.busy = gone.zip(from.seconds_of(Clock::Threads)).map(|((before, after), seconds)| {
                (after.saturating_sub(before) as f64 / 100.0 / seconds).clamp(0.0, 1.0) as f32
            });
        }
    }

    /// The index of the PCI device with this address.
    pub fn device(&self, address: &str) -> Option<usize> {
        self.devices.binary_search_by(|d| d.address.as_str().cmp(address)).ok()
    }

    /// The drive that a path of the head's means.
    pub fn drive_at(&self, path: &str) -> Option<&Drive> {
        let name = plain_name(path.strip_prefix("block:").unwrap_or(path));
        self.drives.iter().find(|d| d.name == name)
    }

    /// Operations of about so many bytes that a drive was measured to do a second, alone.
    pub(crate) fn ability(&self, drive: &Drive, write: bool, bytes: f64) -> Option<f64> {
        let like = |m: &&Measured| {
            let of = f64::from(m.bytes);
            m.write == write && m.iops > 0.0 && of <= 2.0 * bytes && bytes <= 2.0 * of
        };
        let mut its = self.measured.iter().filter(|m| plain_name(&m.drive) == drive.name);
        its.find(like).map(|m| m.iops)
    }

    /// The ports above a device, nearest first.
    pub fn above(&self, device: usize) -> impl Iterator<Item = usize> + '_ {
        core::iter::successors(self.devices.get(device).and_then(|d| d.parent), |at| self.devices[*at].parent)
    }

    /// Whether `device` hangs below `port`.
    pub fn is_below(&self, device: usize, port: usize) -> bool {
        self.above(device).any(|at| at == port)
    }

    /// Devices at the ends of links below a port: drives, network cards and HBAs.
    pub fn ends_below(&self, port: usize) -> Vec<usize> {
        (0..self.devices.len())
            .filter(|d| matches!(self.devices[*d].class, Class::Nvme | Class::Network | Class::Hba))
            .filter(|d| self.devices[*d].function_of.is_none() && self.is_below(*d, port))
            .collect()
    }

    /// The switch above a device that several devices share: its upper port. This is what people call a bank.
    pub fn bank(&self, device: usize) -> Option<usize> {
        self.above(device).find(|at| self.devices[*at].port == PortKind::SwitchUp)
    }

    /// The node of a drive.
    pub fn node_of(&self, drive: &Drive) -> Option<u32> {
        self.devices[self.device(drive.device.as_deref()?)?].node
    }

    /// What limits a link with devices below: what passes it, and the sum of what its devices could move, 10^6 bytes
    /// a second. None if any of that is not known.
    pub fn shared(&self, port: usize) -> Option<(f64, f64)> {
        let uplink = self.devices[port].link?.payload_mb()?;
        let ends = self.ends_below(port);
        let sum: Option<f64> = ends.iter().map(|d| self.devices[*d].link?.payload_mb()).sum();
        (!ends.is_empty()).then_some((uplink, sum?))
    }

    /// Pairs of legs of one mirror that hang on the same switch: pool, array, the two paths, the switch.
    pub fn legs_sharing_a_bank(&self) -> Vec<SharedBank> {
        let mut out = Vec::new();
        for pool in self.own.iter().flat_map(|own| &own.pools) {
            for (index, array) in pool.arrays.iter().enumerate() {
                let bank = |path: &str| {
                    let drive = self.drive_at(path)?;
                    self.bank(self.device(drive.device.as_deref()?)?)
                };
                for (i, a) in array.legs.iter().enumerate() {
                    for b in &array.legs[i + 1..] {
                        if let (Some(x), Some(y)) = (bank(&a.path), bank(&b.path))
                            && x == y
                        {
                            out.push(SharedBank {
                                pool: pool.name.clone(),
                                array: index,
                                legs: [a.path.clone(), b.path.clone()],
                                switch: self.devices[x].address.clone(),
                            });
                        }
                    }
                }
            }
        }
        out
    }

    /// Drives that are made by Linux of others, or of a file: not shown in the tree of hardware.
    pub fn is_hardware(drive: &Drive) -> bool {
        matches!(drive.kind, DriveKind::Nvme | DriveKind::Scsi | DriveKind::Virtio | DriveKind::Other)
    }
}

/// Two legs of one mirror that one switch can take away together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SharedBank {
    /// The pool.
    pub pool: String,
    /// Index of the array.
    pub array: usize,
    /// The legs.
    pub legs: [String; 2],
    /// Address of the switch's upper port.
    pub switch: String,
}

fn product(from: &Recording) -> Option<String> {
    let part = |name: &str| from.text(&format!("/sys/class/dmi/id/{name}"));
    let words: Vec<&str> = [part("sys_vendor"), part("product_name")].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Slots as an enclosure numbers them, for the drives in it.
fn slots_of_enclosures(from: &Recording, drives: &mut [Drive]) {
    let base = "/sys/class/enclosure";
    for enclosure in from.list(base) {
        for component in from.list(&format!("{base}/{enclosure}")) {
            let folder = format!("{base}/{enclosure}/{component}");
            let Some(device) = from.link(&format!("{folder}/device")) else { continue };
            let slot = from.text(&format!("{folder}/slot")).unwrap_or(&component).to_string();
            for drive in drives.iter_mut().filter(|d| d.slot.is_none()) {
                let path = from.link(&format!("/sys/block/{}", drive.name)).unwrap_or("");
                if path.starts_with(&format!("{device}/")) {
                    drive.slot = Some(slot.clone());
                }
            }
        }
    }
}

/// Bytes as drives are sold: powers of 1000.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes / 1000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        1_000_000_000..1_000_000_000_000 => format!("{} GB", bytes / 1_000_000_000),
        _ => format!("{:.2} TB", bytes as f64 / 1e12),
    }
}
