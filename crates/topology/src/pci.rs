//! The PCIe tree: ports, switches, devices, and every link with what it does and what both its ends could.

use crate::gap::Gap;
use crate::recording::Recording;
use serde::Serialize;
use std::collections::BTreeMap;

/// A generation of PCIe: what one lane transfers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Speed {
    /// 1 for 2.5 GT/s, 2 for 5, 3 for 8, 4 for 16, 5 for 32, 6 for 64.
    pub generation: u8,
}

/// GT/s of each generation in tenths, and what a lane carries after encoding, MB (10^6 bytes) a second.
const GENERATIONS: [(u32, f64); 6] =
    [(25, 250.0), (50, 500.0), (80, 984.6), (160, 1969.2), (320, 3938.5), (640, 7563.0)];

/// What of the encoded rate carries data, the rest being headers and acknowledgements: 0.832 and 0.825 were measured
/// with 8b/10b encoding (832 of 1,000 and 1,650 of 2,000 MB/s), 0.79 to 0.83 in general.
const SHARE_8B: f64 = 0.83;
const SHARE: f64 = 0.81;

impl Speed {
    /// Of a generation that there is.
    pub fn new(generation: u8) -> Option<Self> {
        (1..=GENERATIONS.len() as u8).contains(&generation).then_some(Self { generation })
    }

    /// From `8.0 GT/s PCIe`; None for `Unknown` and whatever else is no speed.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.split_whitespace().next()?;
        let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
        let tenths = whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(tenth.parse::<u32>().ok()?)?;
        let at = GENERATIONS.iter().position(|(t, _)| *t == tenths)?;
        Self::new(at as u8 + 1)
    }

    /// GT/s as people write them.
    pub fn gts(self) -> String {
        let tenths = GENERATIONS[usize::from(self.generation - 1)].0;
        if tenths.is_multiple_of(10) {
            (tenths / 10).to_string()
        } else {
            format!("{}.{}", tenths / 10, tenths % 10)
        }
    }
}

/// A speed on a number of lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Lanes {
    /// The speed of each.
    #[serde(flatten)]
    pub speed: Speed,
    /// How many, 1 to 32.
    pub width: u8,
}

impl Lanes {
    fn new(speed: Option<Speed>, width: Option<u64>) -> Option<Self> {
        let width = width.filter(|w| (1..=32).contains(w))?;
        Some(Self { speed: speed?, width: width as u8 })
    }

    /// From `Gen3 x4`; None for what is no link.
    pub fn parse(text: &str) -> Option<Self> {
        let (generation, width) = text.trim().split_once(' ')?;
        let number = |text: &str| text.parse::<u8>().ok().filter(|n| text == n.to_string());
        let generation = number(generation.strip_prefix("Gen").or(generation.strip_prefix("gen"))?)?;
        let width = number(width.trim().strip_prefix('x')?)?;
        Self::new(Speed::new(generation), Some(u64::from(width)))
            .filter(|l| l.width.is_power_of_two() || l.width == 12)
    }

    /// What data passes, 10^6 bytes a second, in each direction.
    pub fn payload_mb(self) -> f64 {
        let share = if self.speed.generation <= 2 { SHARE_8B } else { SHARE };
        self.encoded_mb() * share
    }

    /// What the lanes carry after encoding, headers included, 10^6 bytes a second.
    pub fn encoded_mb(self) -> f64 {
        GENERATIONS[usize::from(self.speed.generation - 1)].1 * f64::from(self.width)
    }

    /// `Gen3 x4`.
    pub fn name(self) -> String {
        format!("Gen{} x{}", self.speed.generation, self.width)
    }
}

/// A link: from a port down to the device that it is described at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Link {
    /// What it does now.
    pub now: Option<Lanes>,
    /// What the port above can.
    pub above_max: Option<Lanes>,
    /// What the device below can.
    pub below_max: Option<Lanes>,
}

impl Link {
    /// What both ends can; None if that is not known of both.
    pub fn possible(&self) -> Option<Lanes> {
        let (a, b) = (self.above_max?, self.below_max?);
        Some(Lanes { speed: a.speed.min(b.speed), width: a.width.min(b.width) })
    }

    /// It runs at less than both ends can: what it does and what it could.
    pub fn degraded(&self) -> Option<(Lanes, Lanes)> {
        let (now, could) = (self.now?, self.possible()?);
        (now.speed < could.speed || now.width < could.width).then_some((now, could))
    }

    /// The slot gives the device less than it can, and the link has trained as well as the slot allows.
    pub fn held_back_by_slot(&self) -> Option<(Lanes, Lanes)> {
        let (now, above, below) = (self.now?, self.above_max?, self.below_max?);
        let less = above.speed < below.speed || above.width < below.width;
        (less && self.degraded().is_none()).then_some((now, below))
    }

    /// What data passes, 10^6 bytes a second.
    pub fn payload_mb(&self) -> Option<f64> {
        self.now.map(Lanes::payload_mb)
    }
}

/// What a PCI device is in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortKind {
    /// Something at the end of a link, or within the processor.
    Endpoint,
    /// A port of the processor, with a link below it.
    RootPort,
    /// A switch's port towards the processor.
    SwitchUp,
    /// A switch's port towards a device.
    SwitchDown,
    /// Another bridge.
    Bridge,
}

/// What a device does, as far as that matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// An NVMe controller.
    Nvme,
    /// Ethernet, InfiniBand.
    Network,
    /// SAS, RAID, SATA, SCSI, Fibre Channel.
    Hba,
    /// A port or bridge.
    Bridge,
    /// Anything else.
    Other,
}

/// A PCI device or port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Device {
    /// Its address, `0000:3b:00.0`.
    pub address: String,
    /// Index of the port above it.
    pub parent: Option<usize>,
    /// The root complex it belongs to, `pci0000:00`.
    pub root: String,
    /// Its place in the tree.
    pub port: PortKind,
    /// What it does.
    pub class: Class,
    /// `Ethernet`, `NVMe` and so on, empty if that is not known.
    pub class_name: String,
    /// Vendor and device numbers, `8086:2030`.
    pub ids: String,
    /// Its NUMA node.
    pub node: Option<u32>,
    /// Its driver.
    pub driver: Option<String>,
    /// The label of its slot.
    pub slot: Option<String>,
    /// The link above it.
    pub link: Option<Link>,
    /// Largest payload of a packet: set, and possible, bytes.
    pub payload: Option<(u32, u32)>,
    /// Active state power management of the link above: empty for off, `L0s`, `L1`, `L0s L1`.
    pub aspm: Option<String>,
    /// It is a virtual function of the device with this address.
    pub function_of: Option<String>,
}

/// What the PCIe capability in a device's configuration space says.
#[derive(Clone, Copy, Debug, Default)]
struct Capability {
    kind: u8,
    max: Option<Lanes>,
    now: Option<Lanes>,
    payload: (u32, u32),
    aspm: u8,
    slot: Option<u32>,
}

/// Reads the capability from hexadecimal text of configuration space; None without one.
fn capability(hex: &str) -> Option<Capability> {
    let byte = |i: usize| u8::from_str_radix(hex.get(i * 2..i * 2 + 2)?, 16).ok();
    let word = |i: usize| Some(u32::from(byte(i)?) | u32::from(byte(i + 1)?) << 8);
    let long = |i: usize| Some(word(i)? | word(i + 2)? << 16);
    // Status, bit 4: there is a list of capabilities; its first element is named at 34h.
    if byte(6)? & 0x10 == 0 {
        return None;
    }
    let mut at = usize::from(byte(0x34)? & 0xfc);
    // Not more steps than there is room for: a list may be a ring.
    for _ in 0..48 {
        if at < 0x40 {
            return None;
        }
        if byte(at)? == 0x10 {
            let lanes = |speed: u32, width: u32| {
                Lanes::new(Speed::new((speed & 15) as u8), Some(u64::from(width & 63)))
            };
            let (able, control, could, status) =
                (long(at + 4)?, word(at + 8)?, long(at + 12)?, word(at + 18)?);
            return Some(Capability {
                kind: (word(at + 2)? >> 4 & 15) as u8,
                max: lanes(could, could >> 4),
                now: lanes(status, status >> 4),
                payload: (128 << (control >> 5 & 7), 128 << (able & 7)),
                aspm: (word(at + 16)? & 3) as u8,
                // Slot implemented, bit 8 of the flags: the slot's own number.
                slot: (word(at + 2)? & 0x100 != 0)
                    .then(|| long(at + 20).map(|s| s >> 19))
                    .flatten()
                    .filter(|n| *n > 0),
            });
        }
        at = usize::from(byte(at + 1)? & 0xfc);
    }
    None
}

/// Whether a name is the address of a PCI device: `0000:3b:00.0`, with a domain of up to eight digits.
pub(crate) fn is_address(name: &str) -> bool {
    let Some((domain, rest)) = name.split_once(':') else { return false };
    let hex = |s: &str| s.bytes().all(|b| b.is_ascii_hexdigit());
    let b = rest.as_bytes();
    (4..=8).contains(&domain.len())
        && hex(domain)
        && rest.is_ascii()
        && b.len() == 7
        && (b[2], b[5]) == (b':', b'.')
        && hex(&rest[..2])
        && hex(&rest[3..5])
        && b[6].is_ascii_digit()
}

/// Class codes: base class and subclass.
fn class_of(code: u64) -> (Class, &'static str) {
    match code >> 8 & 0xffff {
        0x0108 => (Class::Nvme, "NVMe"),
        0x0100 => (Class::Hba, "SCSI"),
        0x0104 => (Class::Hba, "RAID"),
        0x0101 | 0x0106 => (Class::Hba, "SATA"),
        0x0107 => (Class::Hba, "SAS"),
        0x0c04 => (Class::Hba, "Fibre Channel"),
        0x0180 => (Class::Hba, "storage"),
        0x0200 => (Class::Network, "Ethernet"),
        0x0207 | 0x0c06 => (Class::Network, "InfiniBand"),
        0x0280 => (Class::Network, "network"),
        0x0600 => (Class::Other, "host bridge"),
        0x0604 | 0x0609 => (Class::Bridge, "bridge"),
        0x0300 | 0x0302 | 0x0380 => (Class::Other, "display"),
        0x0b40 | 0x1200 => (Class::Other, "accelerator"),
        0x0c03 => (Class::Other, "USB"),
        _ => (Class::Other, ""),
    }
}

/// All devices, sorted by address, each with the port above it.
pub(crate) fn devices(from: &Recording, gaps: &mut Vec<Gap>) -> Vec<Device> {
    let base = "/sys/bus/pci/devices";
    let mut addresses = from.list(base);
    addresses.retain(|a| is_address(a));
    let index: BTreeMap<&str, usize> = addresses.iter().enumerate().map(|(i, a)| (a.as_str(), i)).collect();
    // The parent's path must be the beginning of the child's: so there is no ring, whatever a recording says.
    let parent_of = |address: &str| {
        let path = from.link(&format!("{base}/{address}"))?;
        let mut above = path;
        while let Some((rest, _)) = above.rsplit_once('/') {
            above = rest;
            let name = above.rsplit('/').next().unwrap_or("");
            if let Some(at) = index.get(name)
                && from.link(&format!("{base}/{name}")) == Some(above)
            {
                return Some(*at);
            }
        }
        None
    };
    let slots: BTreeMap<String, String> = from
        .list("/sys/bus/pci/slots")
        .into_iter()
        .filter_map(|label| {
            Some((from.text(&format!("/sys/bus/pci/slots/{label}/address"))?.to_string(), label))
        })
        .collect();
    let mut silent = 0usize;
    let mut own = Vec::new();
    let mut out: Vec<Device> = Vec::new();
    for address in &addresses {
        let file = |name: &str| format!("{base}/{address}/{name}");
        let capability = from.text(&file("config")).and_then(capability);
        let lanes = |speed: &str, width: &str| {
            Lanes::new(from.text(&file(speed)).and_then(Speed::parse), from.number(&file(width)))
        };
        let max = lanes("max_link_speed", "max_link_width").or(capability.and_then(|c| c.max));
        let now = lanes("current_link_speed", "current_link_width").or(capability.and_then(|c| c.now));
        let code = from.number(&file("class"));
        silent += usize::from(code.is_none());
        let (class, class_name) = code.map_or((Class::Other, ""), class_of);
        let path = from.link(&format!("{base}/{address}")).unwrap_or("");
        let root = path.split('/').rfind(|p| p.starts_with("pci")).unwrap_or("").to_string();
        let id = |name: &str| from.number(&file(name)).map_or("?".to_string(), |n| format!("{n:04x}"));
        let slot = || slots.get(address.split('.').next()?).cloned();
        let port = match (class, capability.map(|c| c.kind)) {
            (Class::Bridge, Some(4)) => PortKind::RootPort,
            (Class::Bridge, Some(5)) => PortKind::SwitchUp,
            (Class::Bridge, Some(6)) => PortKind::SwitchDown,
            (Class::Bridge, _) => PortKind::Bridge,
            _ => PortKind::Endpoint,
        };
        own.push((now, max, capability.and_then(|c| c.slot)));
        out.push(Device {
            address: address.clone(),
            parent: parent_of(address),
            root,
            port,
            class,
            class_name: class_name.into(),
            ids: format!("{}:{}", id("vendor"), id("device")),
            node: from.text(&file("numa_node")).and_then(|t| t.parse().ok()),
            driver: from.link_name(&file("driver")).map(String::from),
            slot: from.text(&file("label")).map(String::from).or_else(slot),
            link: None,
            payload: capability.map(|c| c.payload),
            aspm: capability.map(|c| match c.aspm {
                0 => "".into(),
                1 => "L0s".into(),
                2 => "L1".into(),
                _ => "L0s L1".into(),
            }),
            function_of: from.link_name(&file("physfn")).map(String::from),
        });
    }
    ports_by_place(&mut out);
    for i in 0..out.len() {
        let above =
            out[i].parent.filter(|p| matches!(out[*p].port, PortKind::RootPort | PortKind::SwitchDown));
        let (now, below_max, _) = own[i];
        let link = Link {
            // Both ends of a link tell the same; one may be silent.
            now: now.or(above.and_then(|a| own[a].0)),
            above_max: above.and_then(|a| own[a].1),
            below_max,
        };
        // A port's own numbers are those of the link below it, and are told there.
        let own_link = matches!(out[i].port, PortKind::Endpoint | PortKind::SwitchUp);
        let known = link.now.is_some() || link.below_max.is_some();
        out[i].link = (own_link && known && out[i].function_of.is_none()).then_some(link);
        if out[i].slot.is_none()
            && let Some(number) = above.and_then(|a| own[a].2)
        {
            out[i].slot = Some(number.to_string());
        }
    }
    if silent > 0 {
        gaps.push(Gap::ClassUnknown { devices: silent });
    }
    let refused = addresses.iter().any(|a| from.missing(&format!("{base}/{a}/config")).is_some());
    let short = out.iter().any(|d| d.class == Class::Bridge && d.payload.is_none());
    if refused || short {
        gaps.push(Gap::CapabilitiesUnread);
    }
    let unknown = out
        .iter()
        .filter(|d| matches!(d.class, Class::Nvme | Class::Network | Class::Hba))
        .filter(|d| d.function_of.is_none() && d.link.is_none_or(|l| l.now.is_none()))
        .count();
    if unknown > 0 {
        gaps.push(Gap::LinkSpeedUnknown { devices: unknown });
    }
    out
}

/// Without the capability (it takes root to read it) a bridge is what its place makes it: below the root a root port,
/// below a port a switch's upper end, below that its lower ends.
fn ports_by_place(devices: &mut [Device]) {
    // Parents are decided before children: a child's address need not be greater, its path is longer.
    let mut order: Vec<(usize, usize)> = (0..devices.len()).map(|i| (depth(devices, i), i)).collect();
    order.sort_unstable();
    for (_, i) in order {
        if devices[i].port == PortKind::Bridge {
            devices[i].port = match devices[i].parent.map(|p| devices[p].port) {
                None => PortKind::RootPort,
                Some(PortKind::RootPort | PortKind::SwitchDown) => PortKind::SwitchUp,
                Some(PortKind::SwitchUp) => PortKind::SwitchDown,
                Some(PortKind::Bridge | PortKind::Endpoint) => PortKind::Bridge,
            };
        }
    }
}

/// Ports between a device and its root.
pub(crate) fn depth(devices: &[Device], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(parent) = devices[at].parent {
        depth += 1;
        at = parent;
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_parsed_and_the_unknown_is_not_one() {
        for (text, generation) in [
            ("2.5 GT/s PCIe", 1),
            ("5.0 GT/s PCIe", 2),
            ("8.0 GT/s", 3),
            ("16.0 GT/s PCIe", 4),
            ("32 GT/s", 5),
        ] {
            assert_eq!(Speed::parse(text).map(|s| s.generation), Some(generation), "{text}");
        }
        for text in ["Unknown", "", "0", "99999999999 GT/s", "4294967295.9 GT/s", "8.x GT/s", "-1"] {
            assert_eq!(Speed::parse(text), None, "{text}");
        }
    }

    #[test]
    fn payload_is_what_was_measured() {
        let lanes = |generation, width| Lanes { speed: Speed::new(generation).expect("one"), width };
        for (generation, width, measured) in [(1, 4, 832.0), (2, 4, 1650.0)] {
            let ours = lanes(generation, width).payload_mb();
            assert!((ours / measured - 1.0f64).abs() < 0.01, "{ours} for {measured}");
        }
        for generation in 1..=6 {
            let share = lanes(generation, 4).payload_mb() / lanes(generation, 4).encoded_mb();
            assert!((0.79..=0.83).contains(&share));
        }
    }

    #[test]
    fn addresses_are_told_from_other_names() {
        assert!(is_address("0000:3b:00.0") && is_address("10000:01:1f.7"));
        for name in ["0000:3b:00", "pci0000:00", "0000:3b:00.x", "virtio0", "0000:3é:0.0", ":::.", ""] {
            assert!(!is_address(name), "{name}");
        }
    }

    #[test]
    fn a_capability_is_read_from_configuration_space() {
        let mut bytes = [0u8; 256];
        bytes[6] = 0x10;
        bytes[0x34] = 0x40;
        bytes[0x40..0x42].copy_from_slice(&[0x01, 0x60]);
        bytes[0x60..0x64].copy_from_slice(&[0x10, 0, 0x62, 0x01]);
        bytes[0x64] = 2;
        bytes[0x68] = 1 << 5;
        bytes[0x6c..0x6e].copy_from_slice(&[0x43, 0x08]);
        bytes[0x70] = 2;
        bytes[0x72..0x74].copy_from_slice(&[0x41, 0x00]);
        bytes[0x74..0x78].copy_from_slice(&(17u32 << 19).to_le_bytes());
        let hex = crate::recording::hex(&bytes);
        let c = capability(&hex).expect("there is one");
        assert_eq!((c.kind, c.payload, c.aspm, c.slot), (6, (256, 512), 2, Some(17)));
        assert_eq!(
            (c.max.map(Lanes::name), c.now.map(Lanes::name)),
            (Some("Gen3 x4".into()), Some("Gen1 x4".into()))
        );
        for end in 0..hex.len() {
            let _ = capability(&hex[..end]);
        }
        // A list that is a ring.
        bytes[0x41] = 0x40;
        let ring = crate::recording::hex(&bytes);
        assert!(capability(&ring).is_none());
    }
}
