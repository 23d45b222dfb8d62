//! Drives: what they are, where they are, how warm, and what they did between two readings.

use crate::gap::Gap;
use crate::health::{self, Health, Silent};
use crate::pci::is_address;
use crate::recording::{Clock, Recording};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What kind of block device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DriveKind {
    /// An NVMe namespace on PCIe.
    Nvme,
    /// An NVMe namespace of another machine.
    Fabrics,
    /// SAS, SATA, USB, iSCSI: Linux' sd.
    Scsi,
    /// A drive that a hypervisor gives us.
    Virtio,
    /// A file.
    Loop,
    /// Memory.
    Zram,
    /// Linux' own: RAID, volumes.
    Mapped,
    /// Anything else.
    Other,
}

impl DriveKind {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            DriveKind::Nvme => "NVMe",
            DriveKind::Fabrics => "NVMe-oF",
            DriveKind::Scsi => "SCSI",
            DriveKind::Virtio => "virtio",
            DriveKind::Loop => "loop",
            DriveKind::Zram => "zram",
            DriveKind::Mapped => "mapped",
            DriveKind::Other => "block",
        }
    }
}

/// Degrees Celsius.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Temperature {
    /// Now.
    pub now: f32,
    /// From here on it may make itself slower.
    pub warning: Option<f32>,
    /// From here on it may stop.
    pub critical: Option<f32>,
}

/// What a drive did between the readings.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Activity {
    /// Reads a second.
    pub reads: f64,
    /// Bytes read a second.
    pub read_bytes: f64,
    /// Writes a second.
    pub writes: f64,
    /// Bytes written a second.
    pub write_bytes: f64,
    /// Mean time of a read, microseconds.
    pub read_us: Option<f64>,
    /// Mean time of a write, microseconds.
    pub write_us: Option<f64>,
    /// Operations under way, mean.
    pub depth: f64,
    /// Part of the time with any operation under way.
    pub busy: f64,
}

/// What operations were before the first reading, since the machine started.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Usual {
    /// Mean time of one, microseconds.
    pub us: f64,
    /// Mean size of one, bytes.
    pub bytes: f64,
}

/// A drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Drive {
    /// Its name, `nvme0n1`.
    pub name: String,
    /// What it is.
    pub kind: DriveKind,
    /// The PCI device behind it.
    pub device: Option<String>,
    /// Its NVMe controller, `nvme0`.
    pub controller: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number, or what stands for it in an anonymous recording.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// The label of its slot.
    pub slot: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// Logical and physical block.
    pub blocks: Option<(u32, u32)>,
    /// Queues in hardware.
    pub queues: u32,
    /// Commands that each of them takes.
    pub queue_depth: Option<u64>,
    /// How warm it is.
    pub temperature: Option<Temperature>,
    /// How it says it is, NVMe alone.
    pub health: Option<Health>,
    /// It is made of these.
    pub slaves: Vec<String>,
    /// What it did.
    pub activity: Option<Activity>,
    /// What its reads and its writes were before that, if there were enough of them.
    pub usual: [Option<Usual>; 2],
}

pub(crate) fn drives(from: &Recording, gaps: &mut Vec<Gap>) -> Vec<Drive> {
    let base = "/sys/block";
    let mut out = Vec::new();
    let mut silent: BTreeMap<Silent, BTreeSet<String>> = BTreeMap::new();
    for name in from.list(base) {
        let file = |file: &str| format!("{base}/{name}/{file}");
        let bytes = from.number(&file("size")).unwrap_or(0).saturating_mul(512);
        // What holds nothing is no drive; `ram0` and the paths of a multipath namespace are not seen by users.
        if bytes == 0 || from.number(&file("hidden")) == Some(1) || is_path(&name) || name.starts_with("ram")
        {
            continue;
        }
        let controller = controller(from, &name);
        let controller_file = |file: &str| {
            let at = format!("/sys/class/nvme/{}/{file}", controller.as_ref()?);
            from.text(&at).map(String::from)
        };
        let path = from.link(&format!("{base}/{name}")).unwrap_or("");
        let device = controller
            .as_ref()
            .and_then(|c| from.link(&format!("/sys/class/nvme/{c}")))
            .into_iter()
            .chain([path])
            .find_map(|p| p.split('/').rfind(|part| is_address(part)))
            .map(String::from);
        let transport = controller_file("transport");
        let local = transport.as_deref().is_none_or(|t| t == "pcie");
        let kind = match name.as_str() {
            n if n.starts_with("nvme") => {
                if local {
                    DriveKind::Nvme
                } else {
                    DriveKind::Fabrics
                }
            }
            n if n.starts_with("sd") => DriveKind::Scsi,
            n if n.starts_with("vd") => DriveKind::Virtio,
            n if n.starts_with("loop") => DriveKind::Loop,
            n if n.starts_with("zram") => DriveKind::Zram,
            n if n.starts_with("md") || n.starts_with("dm-") => DriveKind::Mapped,
            _ => DriveKind::Other,
        };
        let health = controller.as_deref().map_or(Ok(None), |c| health::of(from, c)).unwrap_or_else(|why| {
            silent.entry(why).or_default().extend(controller.clone());
            None
        });
        // Where Linux has no sensor for it, the drive itself still tells its temperature, without limits.
        let felt = health.as_ref().and_then(|h| h.celsius);
        let felt = felt.map(|now| Temperature { now, ..Temperature::default() });
        let own = |f: &str| from.text(&file(&format!("device/{f}"))).map(String::from);
        let block = |f: &str| from.number(&file(f)).and_then(|n| u32::try_from(n).ok());
        out.push(Drive {
            kind,
            device,
            model: controller_file("model").or_else(|| own("model")),
            serial: controller_file("serial")
                .or_else(|| own("serial"))
                .or_else(|| from.text(&file("serial")).map(String::from)),
            firmware: controller_file("firmware_rev").or_else(|| own("rev")),
            slot: None,
            bytes,
            blocks: block("queue/logical_block_size").zip(block("queue/physical_block_size")),
            queues: from.list(&file("mq")).len() as u32,
            queue_depth: controller_file("sqsize")
                .and_then(|t| t.parse::<u64>().ok())
                .map(|n| n.saturating_add(1)),
            temperature: temperature(from, controller.as_deref(), path).or(felt),
            health,
            slaves: from.list(&file("slaves")),
            activity: activity(from, &file("stat")),
            usual: usual(from, &file("stat")),
            controller,
            name,
        });
    }
    for (why, controllers) in silent {
        gaps.push(Gap::HealthUnknown { drives: controllers.len(), why });
    }
    out
}

/// `nvme0c1n1`, a path of `nvme0n1`.
fn is_path(name: &str) -> bool {
    name.strip_prefix("nvme").is_some_and(|rest| rest.contains('c'))
}

/// The controller of a namespace: the folder above it, or with multipath the one that has a path of that name.
fn controller(from: &Recording, name: &str) -> Option<String> {
    let rest = name.strip_prefix("nvme")?;
    let path = from.link(&format!("/sys/block/{name}")).unwrap_or("");
    let is_controller = |part: &&str| {
        part.strip_prefix("nvme").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    if let Some(found) = path.split('/').find(is_controller) {
        return Some(found.into());
    }
    let (system, namespace) = rest.split_once('n')?;
    let controllers = from.list("/sys/class/nvme");
    let has_path = |c: &&String| {
        let number = c.strip_prefix("nvme").unwrap_or("");
        let path = format!("/sys/class/nvme/{c}/nvme{system}c{number}n{namespace}/size");
        from.file(&path).is_some()
    };
    let found = controllers.iter().find(has_path);
    // A single controller has its subsystem's number nearly always.
    found.cloned().or_else(|| Some(format!("nvme{system}")).filter(|c| controllers.contains(c)))
}

fn temperature(from: &Recording, controller: Option<&str>, path: &str) -> Option<Temperature> {
    for sensor in from.list("/sys/class/hwmon") {
        let base = format!("/sys/class/hwmon/{sensor}");
        let Some(link) = from.link(&base) else { continue };
        let ours = match controller {
            Some(controller) => link.split('/').any(|part| part == controller),
            // SATA: .../target0:0:0/0:0:0:0/hwmon/hwmon1 beside .../0:0:0:0/block/sda
            None => {
                let device = path.split("/block/").next().unwrap_or("");
                !device.is_empty() && device != path && link.starts_with(&format!("{device}/hwmon"))
            }
        };
        let degrees = |file: &str| {
            let text = from.text(&format!("{base}/{file}"))?;
            let milli: i64 = text.parse().ok()?;
            // Drives without a limit tell 65535 kelvins, or -273 degrees.
            (-60_000..200_000).contains(&milli).then_some(milli as f32 / 1000.0)
        };
        if ours && let Some(now) = degrees("temp1_input") {
            return Some(Temperature { now, warning: degrees("temp1_max"), critical: degrees("temp1_crit") });
        }
    }
    None
}

/// Operations below which their mean says little.
const USUAL_MIN: u64 = 1_000;

/// From the first reading of /sys/block/X/stat: reads and writes.
fn usual(from: &Recording, path: &str) -> [Option<Usual>; 2] {
    let text = from.file(path).unwrap_or("");
    let numbers: Vec<u64> = text.split_whitespace().map_while(|w| w.parse().ok()).collect();
    [0, 4].map(|at| {
        let &[ops, _, sectors, ms] = numbers.get(at..at + 4)? else { return None };
        let per = |n: f64| n / ops as f64;
        (ops >= USUAL_MIN && ms > 0)
            .then(|| Usual { us: per(ms as f64 * 1000.0), bytes: per(sectors as f64 * 512.0) })
    })
}

/// From two readings of /sys/block/X/stat.
fn activity(from: &Recording, path: &str) -> Option<Activity> {
    let seconds = from.seconds_of(Clock::Counters)?;
    let numbers =
        |text: &str| -> Vec<u64> { text.split_whitespace().map_while(|w| w.parse().ok()).collect() };
    let (before, after) = (numbers(from.file(path)?), numbers(from.later(path)?));
    let gone = |i: usize| Some(after.get(i)?.saturating_sub(*before.get(i)?) as f64);
    let per = |ms: f64, ops: f64| (ops > 0.0).then_some(ms * 1000.0 / ops);
    let (reads, writes) = (gone(0)?, gone(4)?);
    Some(Activity {
        reads: reads / seconds,
        read_bytes: gone(2)? * 512.0 / seconds,
        writes: writes / seconds,
        write_bytes: gone(6)? * 512.0 / seconds,
        read_us: per(gone(3)?, reads),
        write_us: per(gone(7)?, writes),
        depth: gone(10)? / 1000.0 / seconds,
        busy: (gone(9)? / 1000.0 / seconds).min(1.0),
    })
}
