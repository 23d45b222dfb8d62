//! Queues of block devices.

use super::setting::{List, Verdict};
use super::what::{Value, What};
use crate::drive::DriveKind;
use crate::machine::Machine;
use std::collections::BTreeSet;

/// A queue's attributes: file, what it is, wanted.
const BLOCK: [(&str, What, &str); 6] = [
    ("scheduler", What::Scheduler, "none"),
    ("nomerges", What::Merging, "2"),
    ("rq_affinity", What::Completion, "2"),
    ("add_random", What::Entropy, "0"),
    ("rotational", What::Rotational, "0"),
    ("wbt_lat_usec", What::WriteThrottling, "0"),
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
        .filter(|d| {
            if !own.is_empty() {
                own.contains(d.name.as_str())
            } else {
                matches!(d.kind, DriveKind::Nvme | DriveKind::Virtio) && !in_use(out, m, &d.name)
            }
        })
        .map(|d| d.name.as_str())
        .collect();
    for (file, what, wanted) in BLOCK {
        let paths: Vec<(String, String)> =
            drives.iter().map(|d| (d.to_string(), format!("/sys/block/{d}/queue/{file}"))).collect();
        out.files(&what, &paths, |v| v == wanted, wanted);
    }
    depth(out, m, &drives);
    shown(out, &drives);
    let polls = out.from.number("/sys/module/nvme/parameters/poll_queues");
    if let Some(polls) = polls.filter(|_| m.drives.iter().any(|d| d.kind == DriveKind::Nvme)) {
        let verdict = if polls > 0 { Verdict::Good } else { Verdict::Advice };
        out.put(What::PollQueues, Value::Number(polls), Value::Measured, verdict);
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
        let good = |v: &str| v.parse::<u64>().is_ok_and(|n| n >= depth);
        out.files(&What::CommandsPerQueue, &paths, good, &depth.to_string());
    }
}

/// What is worth knowing of drives, and nobody's to change here.
fn shown(out: &mut List, drives: &[&str]) {
    for (file, what, wanted) in [
        ("io_poll", What::Polling, Value::Measured),
        ("io_timeout", What::TimeOut, Value::Known),
        ("write_cache", What::WriteCache, Value::AsTheDriveSays),
    ] {
        let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
        for drive in drives {
            let Some(found) = out.from.text(&format!("/sys/block/{drive}/queue/{file}")) else { continue };
            match rows.iter_mut().find(|r| r.0 == found) {
                Some(row) => row.1.push(drive.to_string()),
                None => rows.push((found, vec![drive.to_string()])),
            }
        }
        for (found, owners) in rows {
            out.put(what.clone(), Value::Text(found.into()), wanted.clone(), Verdict::Shown);
            out.settings.last_mut().expect("just put").owners = owners;
        }
    }
}
