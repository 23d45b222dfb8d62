//! What limits the head now: two readings of counters and the machine below, in; one sentence, the arithmetic behind it
//! and the next command, out. Says nothing of what was not seen.

mod cores;
mod crowd;
mod drives;
mod hosts;
mod links;
mod scope;
mod waiting;

use self::cores::{cores, digests, shards};
use self::crowd::crowd;
use self::drives::{repairs, slow_drives};
use self::hosts::{depth, far_nodes, next_limit, paths};
use self::links::{own_links, ports, uplinks};
use self::scope::{Scope, drive_called, pool_of};
use self::waiting::saturated;
use crate::machine::Machine;
use crate::own::{Counters, Own, OwnConnection, OwnDrive, OwnVolume};
use crate::record::plain_name;
use serde::Serialize;
use std::collections::BTreeMap;

pub use self::crowd::Crowd;

/// What kind of limit. The order is that of importance: what stands first hides what follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Somebody set it.
    Cap,
    /// A link that several drives share passes no more.
    Uplink,
    /// A drive's own link passes no more.
    Link,
    /// Drives can no more by themselves.
    Drives,
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
    /// Shards compute checksums that hosts asked for.
    Digests,
    /// More hosts together get less than fewer did.
    MoreHosts,
    /// Commands wait in line.
    TooMany,
    /// There is not enough to do at a time.
    TooFew,
    /// Most of what is under way waits in drives of which nobody knows whether they can more.
    InDrives,
    /// Data crosses from node to node.
    FarNode,
}

impl Kind {
    /// Something passes no more: what comes beside it can wait.
    fn is_full(self) -> bool {
        match self {
            Kind::Cap
            | Kind::Uplink
            | Kind::Link
            | Kind::Drives
            | Kind::Port
            | Kind::Shard
            | Kind::Cores
            | Kind::Softirq => true,
            Kind::SlowDrive
            | Kind::Degraded
            | Kind::Repair
            | Kind::ColdBitmap
            | Kind::Interrupts
            | Kind::Path
            | Kind::Digests
            | Kind::MoreHosts
            | Kind::TooMany
            | Kind::TooFew
            | Kind::InDrives
            | Kind::FarNode => false,
        }
    }
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
    /// Limits of what was not asked for.
    pub elsewhere: usize,
}

/// From here on a link, a port, a core counts as full.
const FULL: f64 = 0.92;
/// Two of a kind differ from here on.
const APART: f64 = 0.15;
/// Loads below this many commands a second are too small to explain.
pub(crate) const LOAD_MIN: f64 = 50.0;

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
    /// Between the two.
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

    /// Commands of those volumes a second: reads, writes, bytes read, bytes written.
    fn volumes(&self, which: impl Fn(&OwnVolume) -> bool) -> [f64; 4] {
        let mut out = [0.0; 4];
        for volume in self.after.volumes.iter().filter(|v| which(v)) {
            let Some(was) = self.before.volumes.iter().find(|v| v.name == volume.name) else { continue };
            for (sum, rate) in out.iter_mut().zip(self.rates(&volume.counters, &was.counters)) {
                *sum += rate;
            }
        }
        out
    }

    /// Reads, writes, bytes read and bytes written a second between two counts.
    fn rates(&self, now: &Counters, then: &Counters) -> [f64; 4] {
        [
            (now.reads, then.reads),
            (now.writes, then.writes),
            (now.read_bytes, then.read_bytes),
            (now.write_bytes, then.write_bytes),
        ]
        .map(|(now, then)| now.saturating_sub(then) as f64 / self.seconds)
    }

    /// What `name` itself does: a volume, a pool or a drive reads and writes, of a host only its commands are counted. None
    /// of what has no counters.
    fn own_load(&self, m: &Machine, name: &str) -> Option<String> {
        if self.after.volumes.iter().any(|v| v.name == name) {
            return Some(format!("{name}: {}", words(self.volumes(|v| v.name == name))));
        }
        if self.after.pools.iter().any(|p| p.name == name) {
            return Some(format!("{name}: {}", words(self.volumes(|v| pool_of(v) == name))));
        }
        let at = m.drive_at(name);
        let on = |d: &&OwnDrive| at.is_some_and(|at| plain_name(&d.path) == at.name);
        if let Some(drive) = drive_called(self.after, name).or_else(|| self.after.drives.iter().find(on)) {
            let same = |d: &&OwnDrive| (&d.path, &d.uuid) == (&drive.path, &drive.uuid);
            let was = self.before.drives.iter().find(same)?;
            let rates = self.rates(&drive.counters, &was.counters);
            return Some(format!("{}: {}", plain_name(&drive.path), words(rates)));
        }
        let flows: Vec<f64> =
            self.flows().iter().filter(|f| f.connection.host == name).map(|f| f.rate).collect();
        (!flows.is_empty()).then(|| format!("{name}: {} commands a second.", count(flows.iter().sum())))
    }

    /// What the head did to a drive a second: operations, bytes.
    fn drive_rate(&self, drive: &OwnDrive) -> Option<(f64, f64)> {
        // Drives in memory may have one path, and have labels of their own.
        let same = |d: &&OwnDrive| (&d.path, &d.uuid) == (&drive.path, &drive.uuid);
        let was = self.before.drives.iter().find(same)?;
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
    explained(m, &Scope::everything(), None)
}

/// Explains what limits the pool, volume, host, drive or port `name`: all that it depends on. None if there is nothing of
/// that name.
pub fn explain_one(m: &Machine, name: &str) -> Option<Explanation> {
    Scope::of(m, name).map(|scope| explained(m, &scope, Some(name)))
}

fn explained(m: &Machine, scope: &Scope, name: Option<&str>) -> Explanation {
    let Some(before) = &m.own else {
        return Explanation {
            load: "No head answers here, so there is nothing to explain.".into(),
            ..Explanation::default()
        };
    };
    let (Some(after), Some(seconds)) = (&m.own_later, m.own_seconds) else {
        return Explanation {
            load: "There is one reading only: rates need two.".into(),
            ..Explanation::default()
        };
    };
    let view = View { m, before, after, seconds };
    let all_volumes = view.volumes(|_| true);
    let [reads, writes, ..] = all_volumes;
    let rate = reads + writes;
    let mut findings = Vec::new();
    caps(&view, &mut findings);
    uplinks(&view, &mut findings);
    own_links(&view, &mut findings);
    let waiting = saturated(&view, &mut findings);
    ports(&view, &mut findings);
    shards(&view, rate, &mut findings);
    cores(&view, &mut findings);
    digests(&view, &mut findings);
    for pool in &after.pools {
        slow_drives(&view, pool, &mut findings);
        repairs(&view, pool, writes, &mut findings);
    }
    paths(&view, &mut findings);
    far_nodes(&view, &mut findings);
    crowd(&view, &mut findings);
    let full = findings.iter().any(|f| f.kind.is_full());
    // Where no core is left, what a shard could do with more of its own is of no use.
    let cores_full = findings.iter().any(|f| f.kind == Kind::Cores);
    let next = if cores_full { None } else { next_limit(&view, rate, scope) };
    depth(&view, rate, full, &waiting, next.as_ref(), &mut findings);
    findings.sort_by_key(|f| f.kind);
    let all = findings.len();
    findings.retain(|f| scope.takes(&f.about));
    let elsewhere = all - findings.len();
    let load = match name {
        None => words(all_volumes),
        Some(name) => {
            view.own_load(m, name).unwrap_or_else(|| format!("The whole head: {}", words(all_volumes)))
        }
    };
    let next_limit = match next {
        Some(n) if rate >= LOAD_MIN => {
            let unknown = findings.iter().any(|f| f.kind == Kind::InDrives);
            let unless = if unknown { ", unless the drives are it before" } else { "" };
            format!("{} at {} commands a second: now {}{unless}", n.what, count(n.rate), n.why)
        }
        _ => String::new(),
    };
    Explanation { load, findings, next_limit, elsewhere }
}

/// Reads, writes, bytes read and bytes written a second.
fn words([reads, writes, read_bytes, write_bytes]: [f64; 4]) -> String {
    match reads + writes {
        r if r < LOAD_MIN => format!("Hardly anything is asked of it: {r:.0} commands a second."),
        _ => format!(
            "{} reads and {} writes a second, {} and {}.",
            count(reads),
            count(writes),
            mb(read_bytes),
            mb(write_bytes)
        ),
    }
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
        let set: Vec<String> = [
            iops.then(|| format!("at most {} operations a second", count(drive.iops_max as f64))),
            mbps.then(|| format!("at most {} MB/s", drive.mbps_max)),
            (drive.latency_us > 0)
                .then(|| format!("each operation takes {} more", micros(drive.latency_us as f64))),
        ]
        .into_iter()
        .flatten()
        .collect();
        let set = set.join(", and ");
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

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

fn median(mut list: Vec<f64>) -> Option<f64> {
    list.sort_by(f64::total_cmp);
    list.get(list.len() / 2).copied()
}
