//! What limits the head now: two readings of counters and the machine below, in; one sentence, the arithmetic behind it
//! and the next command, out. Says nothing of what was not seen.

use crate::machine::Machine;
use crate::own::{Own, OwnConnection, OwnDrive, OwnPool};
use crate::record::plain_name;
use serde::Serialize;
use std::collections::BTreeMap;

/// What kind of limit. The order is that of importance: what stands first hides what follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Somebody set it.
    Cap,
    /// A link that several drives share passes no more.
    Uplink,
    /// A network port passes no more.
    Port,
    /// A shard has no time left.
    Shard,
    /// All cores together have no time left, whoever uses them.
    Cores,
    /// A core has no time left for the network.
    Softirq,
    /// A drive is slower than those beside it.
    SlowDrive,
    /// A mirror lacks a leg.
    Degraded,
    /// A resync or scrub takes its part.
    Repair,
    /// Writes wait for the bitmap.
    ColdBitmap,
    /// Interrupts take time from a shard.
    Interrupts,
    /// A path of several does nothing, or little.
    Path,
    /// Commands wait in line.
    TooMany,
    /// There is not enough to do at a time.
    TooFew,
    /// Data crosses from node to node.
    FarNode,
}

/// Something that limits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// Of which kind.
    pub kind: Kind,
    /// What it is about: names of pools, drives, hosts; empty for the whole head.
    pub about: Vec<String>,
    /// The limit, one sentence.
    pub sentence: String,
    /// The numbers that it follows from.
    pub arithmetic: Vec<String>,
    /// What to do.
    pub next: String,
}

/// What limits, and what would next.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Explanation {
    /// What is asked of the head now, a sentence.
    pub load: String,
    /// What limits, the most important first.
    pub findings: Vec<Finding>,
    /// What would limit next, and at what rate; empty if that is not known.
    pub next_limit: String,
}

/// From here on a link, a port, a core counts as full.
const FULL: f64 = 0.92;
/// Two of a kind differ from here on.
const APART: f64 = 0.15;
/// Loads below this many commands a second are too small to explain.
const LOAD_MIN: f64 = 50.0;

/// A number as people say it: `157 K`.
pub fn count(n: f64) -> String {
    match n {
        n if n >= 999_500.0 => format!("{:.2} M", n / 1e6),
        n if n >= 9_950.0 => format!("{:.0} K", n / 1e3),
        n if n >= 1_000.0 => format!("{:.1} K", n / 1e3),
        n => format!("{n:.0}"),
    }
}

fn mb(bytes: f64) -> String {
    format!("{:.0} MB/s", bytes / 1e6)
}

fn micros(us: f64) -> String {
    match us {
        us if us >= 9_950.0 => format!("{:.0} ms", us / 1e3),
        us if us >= 100.0 => format!("{us:.0} µs"),
        us => format!("{us:.1} µs"),
    }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

fn names(list: &[String]) -> String {
    match list {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] if all.len() < 4 => format!("{} and {last}", all.join(", ")),
        all => format!("{} and {} more", all[..3].join(", "), all.len() - 3),
    }
}

/// What changed between the readings.
struct View<'a> {
    m: &'a Machine,
    before: &'a Own,
    after: &'a Own,
    seconds: f64,
}

/// A connection's part.
struct Flow<'a> {
    connection: &'a OwnConnection,
    /// Commands a second.
    rate: f64,
    /// Under way, mean of both readings.
    depth: f64,
}

impl<'a> View<'a> {
    fn flows(&self) -> Vec<Flow<'a>> {
        let key = |c: &OwnConnection| (c.host.clone(), c.peer.clone(), c.session, c.queue);
        let before: BTreeMap<_, &OwnConnection> =
            self.before.connections.iter().map(|c| (key(c), c)).collect();
        let flow = |c: &'a OwnConnection| {
            let was = before.get(&key(c))?;
            Some(Flow {
                connection: c,
                rate: c.commands.saturating_sub(was.commands) as f64 / self.seconds,
                depth: (c.in_flight as f64 + was.in_flight as f64) / 2.0,
            })
        };
        // NVMe's queue 0 carries no I/O, and discovery none either.
        let io = |c: &&OwnConnection| c.protocol == "iscsi" || c.protocol == "nvme" && c.queue > 0;
        self.after.connections.iter().filter(io).filter_map(flow).collect()
    }

    /// Commands of all volumes a second: reads, writes, bytes read, bytes written.
    fn volumes(&self) -> [f64; 4] {
        let mut out = [0.0; 4];
        for volume in &self.after.volumes {
            let Some(was) = self.before.volumes.iter().find(|v| v.name == volume.name) else { continue };
            let (a, b) = (&volume.counters, &was.counters);
            for (sum, (now, then)) in out.iter_mut().zip([
                (a.reads, b.reads),
                (a.writes, b.writes),
                (a.read_bytes, b.read_bytes),
                (a.write_bytes, b.write_bytes),
            ]) {
                *sum += now.saturating_sub(then) as f64 / self.seconds;
            }
        }
        out
    }

    /// What the head did to a drive a second: operations, bytes.
    fn drive_rate(&self, drive: &OwnDrive) -> Option<(f64, f64)> {
        let was = self.before.drives.iter().find(|d| d.path == drive.path)?;
        let gone = |now: u64, then: u64| now.saturating_sub(then) as f64 / self.seconds;
        let (a, b) = (&drive.counters, &was.counters);
        Some((
            gone(a.reads, b.reads) + gone(a.writes, b.writes),
            gone(a.read_bytes, b.read_bytes) + gone(a.write_bytes, b.write_bytes),
        ))
    }
}

/// Explains what limits the head on this machine.
pub fn explain(m: &Machine) -> Explanation {
    let Some(before) = &m.own else {
        return Explanation {
            load: "No head answers here, so there is nothing to explain.".into(),
            ..Explanation::default()
        };
    };
    let (Some(after), Some(seconds)) = (&m.own_later, m.seconds) else {
        return Explanation {
            load: "There is one reading only: rates need two.".into(),
            ..Explanation::default()
        };
    };
    let view = View { m, before, after, seconds };
    let [reads, writes, read_bytes, write_bytes] = view.volumes();
    let rate = reads + writes;
    let mut findings = Vec::new();
    caps(&view, &mut findings);
    uplinks(&view, &mut findings);
    ports(&view, &mut findings);
    shards(&view, rate, &mut findings);
    cores(&view, &mut findings);
    for pool in &after.pools {
        slow_drives(&view, pool, &mut findings);
        repairs(&view, pool, writes, &mut findings);
    }
    paths(&view, &mut findings);
    far_nodes(&view, &mut findings);
    let full = findings.iter().any(|f| {
        matches!(f.kind, Kind::Cap | Kind::Uplink | Kind::Port | Kind::Shard | Kind::Cores | Kind::Softirq)
    });
    // Where no core is left, what a shard could do with more of its own is of no use.
    let next = if findings.iter().any(|f| f.kind == Kind::Cores) { None } else { next_limit(&view, rate) };
    depth(&view, rate, full, next.as_ref(), &mut findings);
    findings.sort_by_key(|f| f.kind);
    let load = match rate {
        r if r < LOAD_MIN => format!("Hardly anything is asked of it: {r:.0} commands a second."),
        _ => format!(
            "{} reads and {} writes a second, {} and {}.",
            count(reads),
            count(writes),
            mb(read_bytes),
            mb(write_bytes)
        ),
    };
    let next_limit = match next {
        Some(n) if rate >= LOAD_MIN => {
            format!("{} at {} commands a second: now {}", n.what, count(n.rate), n.why)
        }
        _ => String::new(),
    };
    Explanation { load, findings, next_limit }
}

fn caps(view: &View, out: &mut Vec<Finding>) {
    for drive in &view.after.drives {
        let Some((ops, bytes)) = view.drive_rate(drive) else { continue };
        let name = plain_name(&drive.path).to_string();
        let near = |now: f64, most: u64| most > 0 && now >= 0.85 * most as f64;
        let (iops, mbps) = (near(ops, drive.iops_max), near(bytes / 1e6, drive.mbps_max));
        if !(iops || mbps || drive.latency_us > 0 && ops > 0.0) {
            continue;
        }
        let set = match (iops, mbps) {
            (true, _) => format!("{} operations a second", count(drive.iops_max as f64)),
            (_, true) => format!("{} MB/s", drive.mbps_max),
            _ => format!("{} µs more for each operation", drive.latency_us),
        };
        out.push(Finding {
            kind: Kind::Cap,
            about: vec![drive.pool.clone(), name.clone(), drive.path.clone()],
            sentence: format!("Somebody shaped the drive {name}: {set}."),
            arithmetic: vec![format!("it does {} operations and {} now", count(ops), mb(bytes))],
            next: format!("millrace drive shape {} --clear", drive.path),
        });
    }
    for volume in &view.after.volumes {
        let Some(was) = view.before.volumes.iter().find(|v| v.name == volume.name) else { continue };
        let gone = |now: u64, then: u64| now.saturating_sub(then) as f64 / view.seconds;
        let (a, b) = (&volume.counters, &was.counters);
        let ops = gone(a.reads, b.reads) + gone(a.writes, b.writes);
        let bytes = gone(a.read_bytes, b.read_bytes) + gone(a.write_bytes, b.write_bytes);
        let near = |now: f64, most: u64| most > 0 && now >= 0.9 * most as f64;
        if near(ops, volume.iops_max) || near(bytes, volume.bytes_max) {
            out.push(Finding {
                kind: Kind::Cap,
                about: vec![volume.name.clone()],
                sentence: format!("The volume {} is at the limit that somebody set.", volume.name),
                arithmetic: [
                    (
                        volume.iops_max,
                        format!("{} of {} commands", count(ops), count(volume.iops_max as f64)),
                    ),
                    (volume.bytes_max, format!("{} of {}", mb(bytes), mb(volume.bytes_max as f64))),
                ]
                .into_iter()
                .filter_map(|(most, words)| (most > 0).then_some(words))
                .collect(),
                next: format!(
                    "millrace volume set {} --iops-max none --mbps-max none, if it shall have more",
                    volume.name
                ),
            });
        }
    }
}

/// What each drive below a switch moves, bytes a second: the greater direction, since a link has one for each.
fn below(view: &View, switch: usize) -> Vec<(String, f64, f64)> {
    let m = view.m;
    let ends = m.ends_below(switch);
    let of = |d: &&crate::drive::Drive| {
        let at = d.device.as_deref().and_then(|a| m.device(a));
        at.is_some_and(|at| ends.contains(&at))
    };
    m.drives
        .iter()
        .filter(of)
        .filter_map(|d| d.activity.map(|a| (d.name.clone(), a.read_bytes, a.write_bytes)))
        .filter(|(_, r, w)| r + w > 0.0)
        .collect()
}

fn uplinks(view: &View, out: &mut Vec<Finding>) {
    let m = view.m;
    for (at, device) in m.devices.iter().enumerate() {
        let Some(limit) = device.link.and_then(|l| l.payload_mb()).map(|mb| mb * 1e6) else { continue };
        if device.port != crate::pci::PortKind::SwitchUp {
            continue;
        }
        let drives = below(view, at);
        let (read, write) = drives.iter().fold((0.0, 0.0), |(r, w), d| (r + d.1, w + d.2));
        let (moved, direction) = if read >= write { (read, "reads") } else { (write, "writes") };
        if drives.len() < 2 || moved < FULL * limit {
            continue;
        }
        let address = device.address.trim_start_matches("0000:");
        let passes = device.link.and_then(|l| l.now).map_or(String::new(), |l| l.name());
        let each =
            drives.iter().map(|d| (d.0.clone(), if direction == "reads" { d.1 } else { d.2 })).collect();
        let next = "millrace topology, for a bank with room: drives there add their own rate".into();
        out.push(full_link(&format!("uplink of switch {address}"), &passes, limit, each, next));
    }
    // Links that somebody made by shapes.
    let mut numbers: Vec<u64> = view.after.drives.iter().map(|d| d.uplink).filter(|n| *n > 0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let members: Vec<&OwnDrive> = view.after.drives.iter().filter(|d| d.uplink == number).collect();
        let limit = members[0].uplink_mbps as f64 * 1e6;
        let gone = |d: &OwnDrive, of: fn(&crate::own::Counters) -> u64| {
            let was = view.before.drives.iter().find(|b| b.path == d.path && b.uuid == d.uuid)?;
            Some(of(&d.counters).saturating_sub(of(&was.counters)) as f64 / view.seconds)
        };
        for of in [|c: &crate::own::Counters| c.read_bytes, |c: &crate::own::Counters| c.write_bytes] {
            let each: Vec<(String, f64)> = members
                .iter()
                .filter_map(|d| Some((plain_name(&d.path).to_string(), gone(d, of)?)))
                .filter(|(_, moved)| *moved > 0.0)
                .collect();
            let moved: f64 = each.iter().map(|(_, moved)| moved).sum();
            if each.len() < 2 || limit <= 0.0 || moved < FULL * limit {
                continue;
            }
            let next = format!("millrace drive shape {} --clear, and so for the others", members[0].path);
            out.push(full_link(
                &format!("link {number}, which somebody made by shapes,"),
                "it",
                limit,
                each,
                next,
            ));
        }
    }
}

/// A link that several drives fill, each with what it moves, bytes a second.
fn full_link(name: &str, passes: &str, limit: f64, drives: Vec<(String, f64)>, next: String) -> Finding {
    let moved: f64 = drives.iter().map(|(_, moved)| moved).sum();
    let each: Vec<f64> = drives.iter().map(|(_, moved)| *moved).filter(|b| *b > 0.0).collect();
    let (least, most) = each.iter().fold((f64::MAX, 0.0f64), |(a, b), n| (a.min(*n), b.max(*n)));
    let mut arithmetic = vec![format!(
        "{} of {} that {passes} passes as payload: {}",
        mb(moved),
        mb(limit),
        percent(moved / limit)
    )];
    let n = drives.len();
    let mut sentence = format!("The {name} is full: {n} drives share it, {} for each.", mb(moved / n as f64));
    if most > 0.0 && (most - least) / most > APART {
        sentence = format!(
            "The {name} is full, and divided unfairly: its {n} drives get from {} to {}.",
            mb(least),
            mb(most)
        );
        arithmetic.push(
            "weights that were measured on single drives are wrong while the link is full: the slowest drive sets the pace"
                .into(),
        );
    }
    Finding {
        kind: Kind::Uplink,
        about: drives.into_iter().map(|d| d.0).collect(),
        sentence,
        arithmetic,
        next,
    }
}

fn ports(view: &View, out: &mut Vec<Finding>) {
    for port in &view.m.ports {
        let Some(limit) = port.payload_bytes() else { continue };
        for (moved, word) in [(port.rx_bytes, "in"), (port.tx_bytes, "out")] {
            // Linux counts headers as far as Ethernet's; what fills the wire is a little more than payload.
            let Some(moved) = moved.filter(|b| *b >= FULL * limit) else { continue };
            out.push(Finding {
                kind: Kind::Port,
                about: vec![port.name.clone()],
                sentence: format!("The network port {} is full ({word}).", port.name),
                arithmetic: vec![format!(
                    "{} of {} that {} Mbit/s with packets of {} bytes carry",
                    mb(moved),
                    mb(limit),
                    port.speed_mbit.unwrap_or(0),
                    port.mtu.unwrap_or(1500)
                )],
                next: "millrace portal add, on another port, and a path of each host over it".into(),
            });
        }
    }
}

fn shards(view: &View, rate: f64, out: &mut Vec<Finding>) {
    let m = view.m;
    let busy: Vec<(u64, f64)> =
        view.before.shards.iter().filter_map(|s| Some((s.shard, f64::from(s.busy?)))).collect();
    for shard in &view.before.shards {
        let cpu = shard.core.and_then(|core| m.cpus.iter().find(|c| c.id == core));
        let name = format!("shard {}", shard.shard);
        if let Some(part) = shard.busy.map(f64::from).filter(|b| *b >= FULL) {
            let idle: Vec<String> = busy
                .iter()
                .filter(|(_, b)| *b < 0.5)
                .map(|(s, b)| format!("{s} ({})", percent(*b)))
                .collect();
            let connections = |of: u64| view.after.connections.iter().filter(|c| c.shard == of).count();
            let mut arithmetic = vec![format!("{name} used {} of its core", percent(part))];
            if rate > 0.0 && idle.is_empty() {
                let all: f64 = busy.iter().map(|(_, b)| b).sum();
                arithmetic.push(format!(
                    "{} commands a second on {all:.1} cores: {} for each command",
                    count(rate),
                    micros(all / rate * 1e6)
                ));
            }
            let sentence = match idle.len() {
                0 => format!("{name} has no time left: the processor is the limit."),
                _ => format!(
                    "{name} has no time left while {} {} half idle: its {} connections should be spread.",
                    idle.join(", "),
                    if idle.len() == 1 { "is" } else { "are" },
                    connections(shard.shard)
                ),
            };
            let next = match idle.len() {
                0 => "more cores for shards (cores in head.toml), or fewer, larger commands",
                _ => {
                    "more connections from the host (nvme connect --nr-io-queues), or millrace bench --connections to see"
                }
            };
            out.push(Finding {
                kind: Kind::Shard,
                about: Vec::new(),
                sentence: capital(&sentence),
                arithmetic,
                next: next.into(),
            });
        }
        let Some(cpu) = cpu else { continue };
        // The shard's own sending and receiving is softirq too: only what others' devices raise is a disturbance.
        let threads: Vec<u32> = if cpu.siblings.is_empty() { vec![cpu.id] } else { cpu.siblings.clone() };
        for thread in threads {
            let Some(on) = m.cpus.iter().find(|c| c.id == thread) else { continue };
            let raised: Vec<(String, f64)> = m
                .interrupts
                .iter()
                .filter(|i| i.device.is_some())
                .filter_map(|i| {
                    let rate = i.per_second.as_ref()?.iter().find(|(c, _)| *c == thread)?.1;
                    Some((i.action.clone(), f64::from(rate)))
                })
                .collect();
            let total: f64 = raised.iter().map(|r| r.1).sum();
            let taken = f64::from(on.irq.unwrap_or(0.0)) + f64::from(on.softirq.unwrap_or(0.0));
            // 100 K/s of 1 to 2 µs each is a tenth of a core; a tenth of a core in soft interrupts is one as well.
            if total >= 20_000.0 || total >= 1_000.0 && taken >= 0.10 {
                let most = raised.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |r| r.0.as_str());
                let place = match thread == cpu.id {
                    true => format!("its core, {thread}"),
                    false => format!("CPU {thread}, a thread of its core"),
                };
                out.push(Finding {
                    kind: Kind::Interrupts,
                    about: Vec::new(),
                    sentence: format!(
                        "Interrupts take time from {name}: {} a second on {place}.",
                        count(total)
                    ),
                    arithmetic: vec![format!(
                        "most are of {most}; CPU {thread} spends {} of its time in interrupts",
                        percent(taken)
                    )],
                    next: "millrace tune --apply --only interrupts".into(),
                });
            }
        }
    }
    let shard_cores: Vec<u32> = view.before.shards.iter().filter_map(|s| s.core).collect();
    for cpu in m.cpus.iter().filter(|c| !shard_cores.contains(&c.id)) {
        let Some(part) = cpu.softirq.map(f64::from).filter(|s| *s >= 0.85) else { continue };
        out.push(Finding {
            kind: Kind::Softirq,
            about: Vec::new(),
            sentence: format!("CPU {} has no time left for the network: one core serves its queue.", cpu.id),
            arithmetic: vec![format!("{} of its time in soft interrupts", percent(part))],
            next: "millrace tune --apply --only interrupts, and more queues (ethtool -L)".into(),
        });
    }
}

/// Cores that all work, for shards that have to wait for theirs: other programs, or hosts on the same machine.
fn cores(view: &View, out: &mut Vec<Finding>) {
    let busy: Vec<f64> = view.m.cpus.iter().filter_map(|c| c.busy.map(f64::from)).collect();
    if busy.is_empty() || out.iter().any(|f| f.kind == Kind::Shard) {
        return;
    }
    let (all, n) = (busy.iter().sum::<f64>(), busy.len());
    if all < 0.95 * n as f64 {
        return;
    }
    let own: f64 = view.before.shards.iter().filter_map(|s| s.busy.map(f64::from)).sum();
    let sentence = match n {
        1 => "The processor is the limit: its only core is busy.".to_string(),
        _ => format!("The processor is the limit: all {n} cores of this machine are busy."),
    };
    out.push(Finding {
        kind: Kind::Cores,
        about: Vec::new(),
        sentence,
        arithmetic: vec![
            format!("{all:.1} of {n} cores are used: {own:.1} by shards, {:.1} by everything else", (all - own).max(0.0)),
            "a shard that waits for its core does nothing in that time: its own share says less than it could do".into(),
        ],
        next: "fewer other programs on this machine (top), or more cores".into(),
    });
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

fn median(mut list: Vec<f64>) -> Option<f64> {
    list.sort_by(f64::total_cmp);
    list.get(list.len() / 2).copied()
}

/// A drive of a pool that holds the others up, and why.
fn slow_drives(view: &View, pool: &OwnPool, out: &mut Vec<Finding>) {
    let m = view.m;
    let legs: Vec<&crate::own::OwnLeg> = pool.arrays.iter().flat_map(|a| &a.legs).collect();
    let drives: Vec<&crate::drive::Drive> = legs.iter().filter_map(|l| m.drive_at(&l.path)).collect();
    let link = |d: &crate::drive::Drive| m.devices[m.device(d.device.as_deref()?)?].link;
    let rates: Vec<f64> = drives.iter().filter_map(|d| link(d)?.payload_mb()).collect();
    let usual_rate = median(rates.clone());
    let usual_us = median(drives.iter().filter_map(|d| d.activity?.read_us).collect());
    for drive in &drives {
        let slow_leg =
            legs.iter().any(|l| l.slow && m.drive_at(&l.path).is_some_and(|d| d.name == drive.name));
        let us = drive.activity.and_then(|a| a.read_us);
        let late =
            us.zip(usual_us).is_some_and(|(us, usual)| us > 2.0 * usual && us > 100.0) && drives.len() > 2;
        // What Linux measured of both now counts for more than what the mirror thought of its legs a while ago.
        let as_fast = us.zip(usual_us).is_some_and(|(us, usual)| us < 1.3 * usual);
        let slow_leg = slow_leg && !as_fast;
        let own_rate = link(drive).and_then(|l| l.payload_mb());
        let narrow = own_rate.zip(usual_rate).is_some_and(|(own, usual)| own < usual * (1.0 - APART));
        let hot =
            drive.temperature.and_then(|t| Some((t.now, t.warning?))).filter(|(now, limit)| now >= limit);
        if !(slow_leg || late || narrow || hot.is_some()) {
            continue;
        }
        let mut why = String::new();
        let mut next = "millrace drive show, and millrace drive replace if it stays so".to_string();
        if narrow && let Some(l) = link(drive) {
            let now = l.now.map_or(String::new(), |n| n.name());
            (why, next) = match l.degraded() {
                Some((_, could)) => (
                    format!("its link runs at {now} where both ends can {}", could.name()),
                    "seat it again, then millrace topology".into(),
                ),
                None => {
                    (format!("its slot gives it {now}"), "millrace topology, for a slot that can more".into())
                }
            };
        } else if let Some((now, limit)) = hot {
            why = format!("it is at {now:.0} °C, and from {limit:.0} °C on it makes itself slower");
            next = "more air, or millrace drive replace".into();
        } else {
            let short = |f: &dyn Fn(&crate::drive::Drive) -> Option<u64>| {
                let usual = median(drives.iter().filter_map(|d| f(d)).map(|n| n as f64).collect())?;
                f(drive).filter(|n| (*n as f64) < usual / 1.9).map(|n| (n, usual))
            };
            if let Some((n, usual)) = short(&|d| Some(u64::from(d.queues)).filter(|n| *n > 0)) {
                why = format!("it has {n} queues where the others have {usual:.0}");
            } else if let Some((n, usual)) = short(&|d| d.queue_depth) {
                why = format!("its queue takes {n} commands where the others' take {usual:.0}");
            }
        }
        let mut arithmetic = Vec::new();
        if let (Some(own), true) = (own_rate, rates.len() == drives.len() && narrow) {
            let sum: f64 = rates.iter().sum();
            let least = rates.iter().copied().fold(f64::MAX, f64::min);
            arithmetic.push(format!(
                "{} of {} MB/s; the {} drives of {} could read {} MB/s: a plain stripe gives {} × {:.0} = {:.0}, ours by weight {:.0}",
                own.round(),
                usual_rate.unwrap_or(0.0).round(),
                rates.len(),
                pool.name,
                sum.round(),
                rates.len(),
                least,
                least * rates.len() as f64,
                sum
            ));
        }
        if let (Some(us), Some(usual)) = (us, usual_us) {
            arithmetic.push(format!(
                "a read takes {}, {} on the drive in the middle",
                micros(us),
                micros(usual)
            ));
        }
        let why = if why.is_empty() { "why is not seen; its wear is not read".into() } else { why };
        out.push(Finding {
            kind: Kind::SlowDrive,
            about: vec![pool.name.clone(), drive.name.clone()],
            sentence: format!("The drive {} is slower than the others of {}: {why}.", drive.name, pool.name),
            arithmetic,
            next: next.replace("millrace drive show,", &format!("millrace drive show {},", drive.name)),
        });
    }
}

fn repairs(view: &View, pool: &OwnPool, writes: f64, out: &mut Vec<Finding>) {
    let before = view.before.pools.iter().find(|p| p.name == pool.name);
    for (i, array) in pool.arrays.iter().enumerate() {
        let name = format!("{} {}-{i}", pool.name, array.layout);
        if let Some((rate, left)) = array.resync {
            let left = left.map_or(String::new(), |s| format!(", {s} s left"));
            out.push(Finding {
                kind: Kind::Repair,
                about: vec![pool.name.clone()],
                sentence: format!("A resync of {name} takes a part of its drives."),
                arithmetic: vec![format!("{} read and written by it{left}", mb(rate as f64))],
                next: "millrace status --watch: it yields to hosts and ends by itself".into(),
            });
        } else if array.layout == "mirror" && array.state == "degraded" {
            let gone: Vec<String> = array
                .legs
                .iter()
                .filter(|l| l.state != "optimal")
                .map(|l| plain_name(&l.path).to_string())
                .collect();
            let serve = array.legs.len() - gone.len();
            out.push(Finding {
                kind: Kind::Degraded,
                about: vec![pool.name.clone()],
                sentence: format!(
                    "{name} lacks {}: {serve} of {} legs serve its reads.",
                    names(&gone),
                    array.legs.len()
                ),
                arithmetic: vec![format!(
                    "reads of it have {} of what they had",
                    percent(serve as f64 / array.legs.len().max(1) as f64)
                )],
                next: "millrace status, for why, and millrace drive return or drive replace".into(),
            });
        }
        let was = before.and_then(|p| p.arrays.get(i)).map(|a| a.regions_dirty);
        if let Some(was) = was {
            let fresh = array.regions_dirty.saturating_sub(was) as f64 / view.seconds;
            // Each region that becomes dirty costs a durable write of the bitmap before the data.
            if writes > LOAD_MIN && fresh > 0.05 * writes {
                out.push(Finding {
                    kind: Kind::ColdBitmap,
                    about: vec![pool.name.clone()],
                    sentence: format!("The bitmap of {name} is cold: writes touch regions that were clean."),
                    arithmetic: vec![format!(
                        "{} regions a second become dirty under {} writes a second; {} of {} are",
                        count(fresh),
                        count(writes),
                        array.regions_dirty,
                        array.regions
                    )],
                    next: "measure again in a minute: a region that is dirty costs nothing more".into(),
                });
            }
        }
    }
    if let Some(rate) = pool.scrub {
        out.push(Finding {
            kind: Kind::Repair,
            about: vec![pool.name.clone()],
            sentence: format!("A scrub of {} takes a part of its drives.", pool.name),
            arithmetic: vec![format!("{} read by it", mb(rate as f64))],
            next: format!("millrace pool show {}: it yields to hosts and ends by itself", pool.name),
        });
    }
}

fn paths(view: &View, out: &mut Vec<Finding>) {
    let flows = view.flows();
    let mut hosts: BTreeMap<&str, Vec<&Flow>> = BTreeMap::new();
    for flow in &flows {
        if !flow.connection.host.is_empty() {
            hosts.entry(&flow.connection.host).or_default().push(flow);
        }
    }
    for (host, flows) in hosts {
        // A path is where a host comes from: its address without the port, and its session.
        let mut paths: BTreeMap<(String, u64), (f64, f64)> = BTreeMap::new();
        for flow in flows {
            let peer = &flow.connection.peer;
            let address = peer.rsplit_once(':').map_or(peer.as_str(), |p| p.0).to_string();
            let sum = paths.entry((address, flow.connection.session)).or_default();
            sum.0 += flow.rate;
            sum.1 += flow.depth;
        }
        let best = paths.values().map(|p| p.0).fold(0.0, f64::max);
        if paths.len() < 2 || best < LOAD_MIN * 4.0 {
            continue;
        }
        for ((address, session), (rate, depth)) in &paths {
            if *rate >= best / 10.0 {
                continue;
            }
            let (word, next) = match *rate < 1.0 && *depth < 0.5 {
                true => (
                    "does nothing",
                    "on the host: multipath -ll or nvme list-subsys, then millrace tune --for linux for the policy".to_string(),
                ),
                false => ("is starved", format!("millrace status -v, for the connections of {host}")),
            };
            out.push(Finding {
                kind: Kind::Path,
                about: vec![host.to_string()],
                sentence: format!(
                    "One of {} paths of {host} {word}: {address}, session {session}.",
                    paths.len()
                ),
                arithmetic: vec![format!(
                    "{} commands a second, {depth:.0} in flight; the best of its paths has {}",
                    count(*rate),
                    count(best)
                )],
                next,
            });
        }
    }
}

/// Drives and ports whose node is not that of any shard.
fn far_nodes(view: &View, out: &mut Vec<Finding>) {
    let m = view.m;
    if m.nodes.len() < 2 {
        return;
    }
    let node_of = |core: u32| m.cpus.iter().find(|c| c.id == core)?.node;
    let homes: Vec<u32> = view.before.shards.iter().filter_map(|s| node_of(s.core?)).collect();
    if homes.is_empty() {
        return;
    }
    let busy = m.drives.iter().filter(|d| d.activity.is_some_and(|a| a.read_bytes + a.write_bytes > 50e6));
    let far: Vec<String> =
        busy.filter(|d| m.node_of(d).is_some_and(|n| !homes.contains(&n))).map(|d| d.name.clone()).collect();
    if !far.is_empty() {
        let moved: f64 = m
            .drives
            .iter()
            .filter(|d| far.contains(&d.name))
            .filter_map(|d| d.activity.map(|a| a.read_bytes + a.write_bytes))
            .sum();
        out.push(Finding {
            kind: Kind::FarNode,
            about: far.clone(),
            sentence: format!(
                "{} hang on a node that no shard runs on: their data crosses to the other socket.",
                names(&far)
            ),
            arithmetic: vec![
                format!("{} cross", mb(moved)),
                "for small blocks the home socket can be the crowded one: measure local, remote and unbound"
                    .into(),
            ],
            next: "cores in head.toml, with a shard on that node, then millrace bench".into(),
        });
    }
}

/// What fills up next.
struct Next {
    what: String,
    why: String,
    /// Commands a second at which it is full.
    rate: f64,
}

fn next_limit(view: &View, rate: f64) -> Option<Next> {
    let m = view.m;
    let mut all: Vec<(f64, String)> = Vec::new();
    for shard in &view.before.shards {
        all.extend(shard.busy.map(|b| (f64::from(b), format!("shard {}", shard.shard))));
    }
    for (at, device) in m.devices.iter().enumerate() {
        let Some(limit) = device.link.and_then(|l| l.payload_mb()).map(|mb| mb * 1e6) else { continue };
        let here: Vec<(String, f64, f64)> = match device.port {
            crate::pci::PortKind::SwitchUp => below(view, at),
            crate::pci::PortKind::Endpoint => m
                .drives
                .iter()
                .filter(|d| d.device.as_deref() == Some(&device.address))
                .filter_map(|d| d.activity.map(|a| (d.name.clone(), a.read_bytes, a.write_bytes)))
                .collect(),
            _ => continue,
        };
        let (read, write) = here.iter().fold((0.0, 0.0), |(r, w), d| (r + d.1, w + d.2));
        let name = match here.first() {
            Some(first) if device.port == crate::pci::PortKind::Endpoint => {
                format!("the link of {}", first.0)
            }
            Some(_) => format!("the uplink of switch {}", device.address.trim_start_matches("0000:")),
            None => continue,
        };
        all.push((f64::max(read, write) / limit, name));
    }
    for port in &m.ports {
        if let (Some(limit), Some(rx), Some(tx)) = (port.payload_bytes(), port.rx_bytes, port.tx_bytes) {
            all.push((f64::max(rx, tx) / limit, format!("the network port {}", port.name)));
        }
    }
    let (part, what) = all.into_iter().filter(|(p, _)| p.is_finite()).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (part > 0.02).then(|| Next { what, why: percent(part.min(1.0)), rate: rate / part.min(1.0) })
}

/// Little's law: what is in flight is rate times time.
fn depth(view: &View, rate: f64, full: bool, next: Option<&Next>, out: &mut Vec<Finding>) {
    let flows = view.flows();
    let mut hosts: BTreeMap<&str, (f64, f64, usize)> = BTreeMap::new();
    for flow in &flows {
        let sum = hosts.entry(&flow.connection.host).or_default();
        sum.0 += flow.rate;
        sum.1 += flow.depth;
        sum.2 += 1;
    }
    let drive_us = {
        let active: Vec<(f64, f64)> = view
            .m
            .drives
            .iter()
            .filter_map(|d| d.activity)
            .filter(|a| a.reads > 0.0)
            .filter_map(|a| Some((a.reads, a.read_us?)))
            .collect();
        let (ops, time) = active.iter().fold((0.0, 0.0), |(n, t), (reads, us)| (n + reads, t + reads * us));
        (ops > 0.0).then(|| time / ops)
    };
    for (host, (host_rate, in_flight, connections)) in hosts {
        if host_rate < LOAD_MIN || in_flight < 0.5 {
            continue;
        }
        let us = in_flight / host_rate * 1e6;
        let name = if host.is_empty() { "a host" } else { host };
        let law =
            format!("{in_flight:.0} in flight at {} is {} commands a second", micros(us), count(host_rate));
        if full {
            // Beyond the knee more commands wait longer and nothing else: what would do is rate times the bare time.
            let bare = drive_us.unwrap_or(100.0).max(20.0);
            let enough = (host_rate * bare / 1e6 * 2.0).ceil().max(1.0);
            if us > 4.0 * bare && in_flight > 2.0 * enough && drive_us.is_some() {
                out.push(Finding {
                    kind: Kind::TooMany,
                    about: vec![host.to_string()],
                    sentence: format!("{name} has more in flight than helps: {in_flight:.0} commands, most of which wait in line."),
                    arithmetic: vec![
                        law,
                        format!("a drive answers within {}, so {} waits; {enough:.0} in flight would give the same rate", micros(bare), percent(1.0 - bare / us)),
                    ],
                    next: "nothing, if its latency does not matter; else a shallower queue on the host".into(),
                });
            }
            continue;
        }
        // With one host, what the head could do more is known from what fills up next; with several each has its part.
        let Some(next) = next.filter(|n| n.rate > 1.3 * rate) else { continue };
        let could = host_rate * next.rate / rate;
        let needs = (could * us / 1e6).ceil();
        out.push(Finding {
            kind: Kind::TooFew,
            about: vec![host.to_string()],
            sentence: format!("{name} keeps too few commands in flight: nothing else is full."),
            arithmetic: vec![
                law,
                format!(
                    "to reach {} (where {} is full) this host needs {needs:.0}; it has {in_flight:.0} on {connections} connection{}",
                    count(could),
                    next.what,
                    if connections == 1 { "" } else { "s" }
                ),
            ],
            next: "a deeper queue or more jobs on the host: millrace tune --for linux".into(),
        });
    }
}
