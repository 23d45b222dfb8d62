//! Queues of block devices.

use super::setting::{About, Group, List, Verdict};
use crate::drive::DriveKind;
use crate::machine::Machine;
use std::collections::BTreeSet;

/// A queue's attribute: file, name, wanted, why, risk.
type Attribute = (&'static str, &'static str, &'static str, &'static str, &'static str);

const BLOCK: [Attribute; 6] = [
    (
        "scheduler",
        "scheduler",
        "none",
        "flash has no order to keep; a scheduler is a lock and a list between the head and the drive",
        "other users of the same drive are no longer served in turns",
    ),
    (
        "nomerges",
        "merging",
        "2",
        "the head sends whole transfers: looking for neighbours finds none and costs time",
        "other programs that write small pieces in order send more commands",
    ),
    (
        "rq_affinity",
        "completion",
        "2",
        "a command ends on the core that sent it, whose caches hold it",
        "none known",
    ),
    ("add_random", "entropy", "0", "each completion would feed the random generator", "none since Linux 5.6"),
    ("rotational", "rotational", "0", "Linux treats it as a disk with a head to move", "none for flash"),
    (
        "wbt_lat_usec",
        "write throttling",
        "0",
        "Linux holds writes back when reads get slower; the head balances both itself",
        "buffered writers on the same drive can crowd out readers",
    ),
];

pub(super) fn settings(out: &mut List, m: &Machine) {
    let own: BTreeSet<&str> = m
        .own
        .iter()
        .flat_map(|o| &o.pools)
        .flat_map(|p| &p.arrays)
        .flat_map(|a| &a.legs)
        .filter_map(|l| m.drive_at(&l.path))
        .map(|d| d.name.as_str())
        .collect();
    let drives: Vec<&str> = m
        .drives
        .iter()
        .filter(|d| match own.is_empty() {
            false => own.contains(d.name.as_str()),
            // Without a head, every drive of flash may become one of its drives.
            // What carries a file system is somebody else's.
            true => matches!(d.kind, DriveKind::Nvme | DriveKind::Virtio) && !in_use(out, m, &d.name),
        })
        .map(|d| d.name.as_str())
        .collect();
    for (file, name, wanted, why, risk) in BLOCK {
        let paths: Vec<(String, String)> =
            drives.iter().map(|d| (d.to_string(), format!("/sys/block/{d}/queue/{file}"))).collect();
        out.files(
            &About { group: Group::Block, name, of: "drive", why, risk },
            &paths,
            |v| v == wanted,
            wanted,
        );
    }
    depth(out, m, &drives);
    shown(out, &drives);
    let polls = out.from.number("/sys/module/nvme/parameters/poll_queues");
    if let Some(polls) = polls.filter(|_| m.drives.iter().any(|d| d.kind == DriveKind::Nvme)) {
        let about = About {
            group: Group::Block,
            name: "poll queues",
            of: "",
            why: "a shard that polls takes no interrupt: measure whether that pays here",
            risk: "a core that polls is never idle",
        };
        let how = "options nvme poll_queues=N in /etc/modprobe.d, then a restart of the machine".to_string();
        let verdict = if polls > 0 { Verdict::Good } else { Verdict::Advice(how) };
        out.put(&about, "NVMe poll queues".into(), polls.to_string(), "measured".into(), verdict);
    }
}

/// Whether a drive, or a part of it, is mounted or carries another block device.
fn in_use(out: &List, m: &Machine, drive: &str) -> bool {
    let is_it = |device: &str| {
        let name = device.strip_prefix("/dev/").unwrap_or(device);
        let Some(rest) = name.strip_prefix(drive) else { return false };
        // A partition: `nvme0n1p2`, `vda1`; `nvme0n10` is another drive.
        let number =
            if drive.ends_with(|c: char| c.is_ascii_digit()) { rest.strip_prefix('p') } else { Some(rest) };
        rest.is_empty() || number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mounted = out.from.file("/proc/self/mounts").is_some_and(|t| t.lines().any(is_it));
    mounted || m.drives.iter().flat_map(|d| &d.slaves).any(|s| is_it(s))
}

/// Commands that Linux lets wait for a drive, against those that the drive takes.
fn depth(out: &mut List, m: &Machine, drives: &[&str]) {
    let mut takes: Vec<(u64, Vec<(String, String)>)> = Vec::new();
    for drive in m.drives.iter().filter(|d| drives.contains(&d.name.as_str())) {
        // A ring of n entries holds n - 1 commands: a full one would look like an empty one (NVMe Base 3.3.1.5).
        let Some(depth) = drive.queue_depth.filter(|d| *d > 1).map(|d| d - 1) else { continue };
        let row = (drive.name.clone(), format!("/sys/block/{}/queue/nr_requests", drive.name));
        match takes.iter_mut().find(|t| t.0 == depth) {
            Some(t) => t.1.push(row),
            None => takes.push((depth, vec![row])),
        }
    }
    for (depth, paths) in takes {
        let about = About {
            group: Group::Block,
            name: "commands per queue",
            of: "drive",
            why: "the drive takes more at once than Linux sends it",
            risk: "none known",
        };
        let good = |v: &str| v.parse::<u64>().is_ok_and(|n| n >= depth);
        out.files(&about, &paths, good, &depth.to_string());
    }
}

/// What is worth knowing of drives, and nobody's to change here.
fn shown(out: &mut List, drives: &[&str]) {
    for (file, name, wanted, why, risk) in [
        (
            "io_poll",
            "polling",
            "measured",
            "1: the drive has queues without interrupts (see poll queues), which a core that polls can use",
            "",
        ),
        (
            "io_timeout",
            "time-out (ms)",
            "known",
            "the head goes on without a leg that is late long before; until then what hangs is the kernel's, and the leg \
             cannot return",
            "",
        ),
        (
            "write_cache",
            "write cache",
            "as the drive says",
            "a drive that may lose what it answered is flushed for each flush and FUA of a host; drives with power-loss \
             protection say write through",
            "to write \"write through\" here only stops the flushes: a volatile cache then loses answered writes when the power fails",
        ),
    ] {
        let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
        for drive in drives {
            let Some(found) = out.from.text(&format!("/sys/block/{drive}/queue/{file}")) else { continue };
            match rows.iter_mut().find(|r| r.0 == found) {
                Some(row) => row.1.push(drive),
                None => rows.push((found, vec![drive])),
            }
        }
        for (found, owners) in rows {
            let of = match owners[..] {
                [one] => one.to_string(),
                _ => format!("{} drives", owners.len()),
            };
            let about = About { group: Group::Block, name, of: "drive", why, risk };
            out.put(&about, format!("{name} of {of}"), found.into(), wanted.into(), Verdict::Shown);
        }
    }
}
