//! What a plan stands on: drives, what each can, and the parts that their data pass on the way to hosts.

use super::finding::{Part as What, Unknown};
use crate::machine::Machine;
use crate::pci::{Class, Lanes, PortKind};
use crate::record::plain_name;
use crate::status::{LOAD_MIN, Own, shape};
use std::collections::BTreeMap;

/// Bytes of a command by which small ones are counted.
pub(super) const SMALL: f64 = 4096.0;

/// What a drive can: reads and writes, a second. None where nobody knows.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Ability {
    /// Operations.
    pub iops: [Option<f64>; 2],
    /// 10^6 bytes.
    pub mbps: [Option<f64>; 2],
}

impl Ability {
    /// Operations of so many bytes a second, None if nothing is known that limits them.
    pub(super) fn rate(&self, write: bool, bytes: f64) -> Option<f64> {
        let at = usize::from(write);
        let by_bytes = self.mbps[at].map(|mb| mb * 1e6 / bytes);
        match (self.iops[at], by_bytes) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether it is known how many operations of so many bytes it can: the number of small ones, the bytes of large ones.
    pub(super) fn knows(&self, write: bool, bytes: f64) -> bool {
        let at = usize::from(write);
        if bytes <= 4.0 * SMALL { self.iops[at].is_some() } else { self.mbps[at].is_some() }
    }

    /// What has no limit of its own, such as a drive in memory beside any network.
    pub(super) const ANYTHING: Self = Self { iops: [Some(f64::INFINITY); 2], mbps: [Some(f64::INFINITY); 2] };

    /// The lower of both, where one is known.
    pub(super) fn least(self, other: Self) -> Self {
        let min = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let both = |a: [Option<f64>; 2], b: [Option<f64>; 2]| [min(a[0], b[0]), min(a[1], b[1])];
        Self { iops: both(self.iops, other.iops), mbps: both(self.mbps, other.mbps) }
    }
}

/// Something that commands pass.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Part {
    /// What it is.
    pub what: What,
    /// What it can.
    pub ability: Ability,
}

impl Part {
    pub(super) fn link(what: What, mb: f64) -> Self {
        Self { what, ability: Ability { mbps: [Some(mb); 2], ..Ability::default() } }
    }
}

/// A drive at its place.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Drive {
    /// Its name as people say it.
    pub name: String,
    /// What it can by itself.
    pub ability: Ability,
    /// Its own link.
    pub link: Option<Lanes>,
    /// The parts above it that others share.
    pub shared: Vec<usize>,
    /// The switch or bank that it hangs below.
    pub bank: Option<String>,
    /// NUMA node.
    pub node: Option<u32>,
    /// Its part of a link that divides unfairly: index of the part, its share.
    pub share: Option<(usize, f64)>,
    /// It belongs to a pool already.
    pub taken: bool,
    /// Its identity by label, empty without one: drives in memory may be called the same.
    pub uuid: String,
}

impl Drive {
    pub(super) fn new(
        name: String,
        ability: Ability,
        link: Option<Lanes>,
        shared: Vec<usize>,
        bank: Option<String>,
        node: Option<u32>,
    ) -> Self {
        Self { name, ability, link, shared, bank, node, share: None, taken: false, uuid: String::new() }
    }

    /// What it can behind its own link.
    pub(super) fn able(&self) -> Ability {
        let link = self.link.map(Lanes::payload_mb);
        self.ability.least(Ability { mbps: [link; 2], ..Ability::default() })
    }
}

/// What somebody made of a drive; 0 where nothing is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shaped {
    /// Operations a second.
    pub iops_max: u64,
    /// 10^6 bytes a second.
    pub mbps_max: u64,
    /// A link that it shares with all of the same number.
    pub uplink: u64,
    /// 10^6 bytes a second that pass the link each way.
    pub uplink_mbps: u64,
    /// Its part of the link beside the others'.
    pub uplink_share: u64,
}

/// A drive in memory, or one that does nothing: nothing limits it but the head.
pub fn is_memory(path: &str) -> bool {
    path.starts_with("ram:") || path.starts_with("null")
}

/// What the shards of a head under load do, from which follows what they can: for such commands alone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Worked {
    /// Their part.
    part: usize,
    /// These are writes.
    write: bool,
    /// Mean bytes of a command.
    bytes: f64,
}

/// What a limit says of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Says {
    /// So much.
    Exactly,
    /// Not more than so much.
    AtMost,
    /// Nothing.
    Nothing,
}

/// Drives and what they hang on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Site {
    pub(super) drives: Vec<Drive>,
    /// Where each name is among them, the first of it.
    index: BTreeMap<String, usize>,
    pub(super) parts: Vec<Part>,
    /// Parts that every command passes.
    pub(super) common: Vec<usize>,
    /// What is known of the shards from their work.
    pub(super) worked: Option<Worked>,
    /// What is not known.
    pub(super) gaps: Vec<Unknown>,
}

impl Site {
    /// Adds a drive: its place among them.
    pub(super) fn add(&mut self, drive: Drive) -> usize {
        self.index.entry(drive.name.clone()).or_insert(self.drives.len());
        self.drives.push(drive);
        self.drives.len() - 1
    }

    /// Where a drive is among them, by its name or its path.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let at = |name: &str| self.index.get(name).copied();
        at(name).or_else(|| at(plain_name(name)))
    }

    pub(super) fn part(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// All network ports together, 10^6 bytes a second each way.
    pub(super) fn network(&mut self, ports: usize, mb: f64) {
        if ports == 0 {
            self.gaps.push(Unknown::Network);
            return;
        }
        let part = self.part(Part::link(What::Ports { ports }, mb));
        self.common.push(part);
    }

    /// What a part says of a load. A shard's time for a command depends on its direction, and grows with its bytes.
    pub(super) fn says(&self, part: usize, write: bool, bytes: f64) -> Says {
        let Some(worked) = self.worked.filter(|w| w.part == part) else { return Says::Exactly };
        match bytes / worked.bytes {
            _ if worked.write != write => Says::Nothing,
            than if than < 0.5 => Says::Nothing,
            than if than <= 2.0 => Says::Exactly,
            _ => Says::AtMost,
        }
    }

    /// Shards, and commands that each serves a second. Gives their part.
    pub(super) fn shards(&mut self, count: u64, each: f64) -> usize {
        let all = Some(count as f64 * each);
        let ability = Ability { iops: [all; 2], ..Ability::default() };
        let part = self.part(Part { what: What::Shards { shards: count }, ability });
        self.common.push(part);
        part
    }

    /// The place that a machine is: its hardware drives, and those of its head.
    pub fn of(m: &Machine) -> Self {
        let mut site = Self::default();
        let mut part_of = vec![None; m.devices.len()];
        for (at, device) in m.devices.iter().enumerate() {
            let shared = matches!(device.port, PortKind::SwitchUp | PortKind::Bridge);
            if let (true, Some(lanes)) = (shared, device.link.and_then(|l| l.now)) {
                let switch = device.address.trim_start_matches("0000:").into();
                let what = What::Uplink { switch, link: lanes.name() };
                part_of[at] = Some(site.part(Part::link(what, lanes.payload_mb())));
            }
        }
        for drive in m.drives.iter().filter(|d| Machine::is_hardware(d)) {
            let device = drive.device.as_deref().and_then(|a| m.device(a));
            let lanes = device.and_then(|at| m.devices[at].link?.now);
            let mut shared: Vec<usize> =
                device.map_or(Vec::new(), |at| m.above(at).filter_map(|p| part_of[p]).collect());
            // An HBA's link is that of all its drives.
            let hba = device.filter(|at| m.devices[*at].class == Class::Hba);
            if let (Some(at), Some(lanes)) = (hba, lanes) {
                let part = part_of[at].get_or_insert_with(|| {
                    let hba = m.devices[at].address.trim_start_matches("0000:").into();
                    site.part(Part::link(What::HbaLink { hba, link: lanes.name() }, lanes.payload_mb()))
                });
                shared.push(*part);
            }
            let link = lanes.filter(|_| hba.is_none());
            let bank = device.and_then(|at| m.bank(at));
            let bank = bank.map(|at| m.devices[at].address.trim_start_matches("0000:").to_string());
            let node = m.node_of(drive);
            site.add(Drive::new(drive.name.clone(), Ability::default(), link, shared, bank, node));
        }
        site.own(m);
        let (mut ports, mut mb) = (0, 0.0);
        for port in m.ports.iter().filter(|p| p.state == "up" && p.device.is_some()) {
            if let Some(bytes) = port.payload_bytes() {
                (ports, mb) = (ports + 1, mb + bytes / 1e6);
            }
        }
        site.network(ports, mb);
        site
    }

    /// What the head tells: drives that only it knows, what somebody made slower, what its shards do now.
    fn own(&mut self, m: &Machine) {
        let Some(own) = &m.own else { return };
        for drive in &own.drives {
            let name = plain_name(&drive.path).to_string();
            let uuid = drive.uuid.map(|u| u.to_string()).unwrap_or_default();
            let at = match m.drive_at(&drive.path).and_then(|d| self.index.get(&d.name).copied()) {
                Some(at) => at,
                None => {
                    let mut new = Drive::new(name, Ability::default(), None, Vec::new(), None, None);
                    // Two in memory may be called the same.
                    if self.index.contains_key(&new.name)
                        && let Some(begin) = uuid.get(..8)
                    {
                        new.name = format!("{} {}", new.name, begin);
                    }
                    self.add(new)
                }
            };
            self.drives[at].taken = drive.pool.is_some();
            self.drives[at].uuid = uuid;
            if is_memory(&drive.path) {
                self.drives[at].ability = Ability::ANYTHING;
            }
            let name = self.drives[at].name.clone();
            let its = shape(drive);
            let [iops_max, mbps_max, uplink, uplink_mbps, uplink_share] =
                [its.iops_max, its.mbps_max, its.uplink, its.uplink_mbps, its.uplink_share].map(u64::from);
            let shape = Shaped { iops_max, mbps_max, uplink, uplink_mbps, uplink_share };
            self.shape(&name, shape);
        }
        // A head under load tells how much its shards can: what they do for the time that they take.
        let (Some(later), Some(seconds)) = (&m.own_later, m.own_seconds) else { return };
        let (mut busy, mut commands) = (0.0, 0.0);
        for shard in &own.shards {
            let Some(after) = later.shards.iter().find(|s| s.of.shard == shard.of.shard) else { continue };
            busy += f64::from(shard.busy.unwrap_or(0.0));
            commands += after.of.commands.saturating_sub(shard.of.commands) as f64 / seconds;
        }
        if commands > LOAD_MIN {
            self.gaps.push(Unknown::BesideLoad { rate: commands });
        }
        let kind = kind_of_load(own, later);
        match kind.filter(|_| busy > 0.2 && commands > 1000.0) {
            Some((write, bytes)) => {
                let part = self.shards(own.shards.len() as u64, commands / busy);
                self.worked = Some(Worked { part, write, bytes });
                self.gaps.push(Unknown::ShardsAsTheyServe { write, bytes });
            }
            None => self.gaps.push(Unknown::Shards),
        }
    }

    /// What was measured of a drive alone takes the place of what was thought of it. False if there is no such drive.
    pub fn measured(&mut self, drive: &str, write: bool, bytes: u32, iops: f64) -> bool {
        let Some(at) = self.index.get(plain_name(drive)) else { return false };
        let drive = &mut self.drives[*at];
        let at = usize::from(write);
        // Small operations are counted, large ones weighed.
        if f64::from(bytes) <= 4.0 * SMALL {
            drive.ability.iops[at] = Some(iops)
        } else {
            drive.ability.mbps[at] = Some(iops * f64::from(bytes) / 1e6)
        }
        true
    }

    /// Adds a drive that the machine does not show, such as a file; drives in memory may be added several times. Gives the
    /// name by which it is known here.
    pub fn know(&mut self, path: &str) -> String {
        let name = plain_name(path);
        let memory = is_memory(path);
        if !memory && self.index.contains_key(name) {
            return name.to_string();
        }
        let mut unique = name.to_string();
        for n in 2.. {
            if !self.index.contains_key(&unique) {
                break;
            }
            unique = format!("{name} ({n})");
        }
        let able = if memory { Ability::ANYTHING } else { Ability::default() };
        self.add(Drive::new(unique.clone(), able, None, Vec::new(), None, None));
        unique
    }

    /// Makes a drive that is known slower, and part of a link that it shares with others of its number.
    pub fn shape(&mut self, drive: &str, shape: Shaped) {
        let Some(at) = self.index.get(drive).copied() else { return };
        let most = |n: u64| (n > 0).then_some(n as f64);
        let able = Ability { iops: [most(shape.iops_max); 2], mbps: [most(shape.mbps_max); 2] };
        self.drives[at].ability = self.drives[at].ability.least(able);
        if shape.uplink == 0 {
            return;
        }
        let what = What::ShapesLink { number: shape.uplink };
        let part = self
            .parts
            .iter()
            .position(|p| p.what == what)
            .unwrap_or_else(|| self.part(Part::link(what, shape.uplink_mbps as f64)));
        let drive = &mut self.drives[at];
        // One link at a time: the last that was said counts.
        let before = drive.share.map(|(part, _)| part);
        drive.shared.retain(|p| Some(*p) != before);
        drive.shared.push(part);
        drive.share = Some((part, shape.uplink_share.max(1) as f64));
        drive.bank.get_or_insert_with(|| format!("link {}", shape.uplink));
    }

    /// Whether a drive is known here, by its name or path.
    pub fn has(&self, drive: &str) -> bool {
        self.position(drive).is_some()
    }

    /// Whether a drive that is known here is in a pool of the head.
    pub fn is_taken(&self, drive: &str) -> bool {
        self.position(drive).is_some_and(|at| self.drives[at].taken)
    }

    /// Names of the drives that are in no pool.
    pub fn free(&self) -> Vec<String> {
        self.drives.iter().filter(|d| !d.taken).map(|d| d.name.clone()).collect()
    }
}

/// What hosts ask for, if nearly all of it is of one direction: whether it writes, and the mean bytes of a command.
fn kind_of_load(before: &Own, after: &Own) -> Option<(bool, f64)> {
    let (mut reads, mut read_bytes, mut writes, mut write_bytes) = (0.0, 0.0, 0.0, 0.0);
    for volume in &after.volumes {
        let Some(was) = before.volumes.iter().find(|v| v.name == volume.name) else { continue };
        let (now, was) = (&volume.counters, &was.counters);
        reads += now.reads.saturating_sub(was.reads) as f64;
        read_bytes += now.read_bytes.saturating_sub(was.read_bytes) as f64;
        writes += now.writes.saturating_sub(was.writes) as f64;
        write_bytes += now.write_bytes.saturating_sub(was.write_bytes) as f64;
    }
    let (write, ops, bytes, other) =
        if writes > reads { (true, writes, write_bytes, reads) } else { (false, reads, read_bytes, writes) };
    (ops > 0.0 && bytes > 0.0 && other <= 0.1 * ops).then(|| (write, bytes / ops))
}
