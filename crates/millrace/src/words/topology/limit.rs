//! What limits, and what to do about it.

use super::machine::wear;
use super::numbers::{capital, count, mb, micros, names, percent};
use crate::words::Said;
use topology::explain::{Direction, Limit, Share, SharedLink, Slow};

/// What limits.
pub fn limit(limit: &Limit) -> Said {
    match limit {
        Limit::DriveShaped { drive, path, iops_max, mbps_max, latency_us } => {
            let set: Vec<String> = [
                iops_max.map(|n| format!("at most {} operations a second", count(n as f64))),
                mbps_max.map(|n| format!("at most {n} MB/s")),
                latency_us.map(|us| format!("each operation takes {} more", micros(us as f64))),
            ]
            .into_iter()
            .flatten()
            .collect();
            Said::new(format!("Somebody shaped the drive {drive}: {}.", set.join(", and ")))
                .then(format!("millrace drive shape {path} --clear"))
        }
        Limit::VolumeCapped { volume } => Said::new(format!(
            "The volume {volume} is at the limit that somebody set."
        ))
        .then(format!("millrace volume set {volume} --iops-max none --mbps-max none, if it shall have more")),
        Limit::SharedLinkFull { link, drives, share, unfair, poor } => {
            let name = match link {
                SharedLink::Switch { switch } => format!("uplink of switch {switch}"),
                SharedLink::Shapes { number, .. } => format!("link {number}, which somebody made by shapes,"),
            };
            let share = match share {
                Share::Each { bytes } => format!("{} for each", mb(*bytes)),
                Share::Between { least, most } => format!("from {} to {}", mb(*least), mb(*most)),
            };
            let sentence = match unfair {
                true => format!("The {name} is full, and divided unfairly: its {drives} drives get {share}."),
                false => format!("The {name} is full: {drives} drives share it, {share}."),
            };
            Said::new(sentence).then(match (link, poor) {
                (SharedLink::Shapes { path, .. }, _) => {
                    format!("millrace drive shape {path} --clear, and so for the others")
                }
                (SharedLink::Switch { .. }, Some(poor)) => format!(
                    "millrace bench drives --drive {poor}: alone it tells whether the link or the drive is slow"
                ),
                (SharedLink::Switch { .. }, None) => {
                    "millrace topology, for a bank with room: drives there add their own rate".into()
                }
            })
        }
        Limit::LinkFull { drives, link } => Said::new(match &drives[..] {
            [one] => format!("The link of {one} is full: {link}."),
            all => format!("The links of {} drives are full, {link} each: {}.", all.len(), names(all)),
        })
        .then("millrace topology, for slots that can more; else more drives: each adds its own link"),
        Limit::DrivesFull { drives, waiting } => Said::new(match &drives[..] {
            [one] => format!("The drive {one} is the limit: {waiting:.0} commands wait in it."),
            all => format!("The drives are the limit: {waiting:.0} commands wait in {}.", names(all)),
        })
        .then("more drives; more in flight waits longer and brings nothing"),
        Limit::PortFull { port, direction } => {
            let word = match direction {
                Direction::In => "in",
                Direction::Out => "out",
            };
            Said::new(format!("The network port {port} is full ({word})."))
                .then("millrace portal add, on another port, and a path of each host over it")
        }
        Limit::ShardFull { shard: n, head, connections, idle } => {
            let name = capital(&shard(*n, head.as_deref()));
            let others: Vec<String> =
                idle.iter().map(|s| format!("{} ({})", s.shard, percent(s.used))).collect();
            match idle.len() {
                0 => Said::new(format!("{name} has no time left: the processor is the limit."))
                    .then("more cores for shards (cores in head.toml), or fewer, larger commands"),
                _ => Said::new(format!(
                    "{name} has no time left while {} {} half idle: its {connections} connections should be spread.",
                    others.join(", "),
                    if idle.len() == 1 { "is" } else { "are" }
                ))
                .then(
                    "more connections from the host (nvme connect --nr-io-queues), or millrace bench --connections to see",
                ),
            }
        }
        Limit::CoresFull { cores } => Said::new(match cores {
            1 => "The processor is the limit: its only core is busy.".to_string(),
            n => format!("The processor is the limit: all {n} cores of this machine are busy."),
        })
        .then("fewer other programs on this machine (top), or more cores"),
        Limit::NetworkCoreFull { cpu } => {
            Said::new(format!("CPU {cpu} has no time left for the network: one core serves its queue."))
                .then("millrace tune --apply --only interrupts, and more queues (ethtool -L)")
        }
        Limit::DriveSlow { drive, pool, works, why } => {
            let is = if *works { "is slower" } else { "can do less" };
            Said::new(format!("The drive {drive} {is} than the others of {pool}: {}.", slow(why)))
                .then(slow_next(drive, why))
        }
        Limit::MirrorDegraded { array, gone, serve, legs } => {
            Said::new(format!("{array} lacks {}: {serve} of {legs} legs serve its reads.", names(gone)))
                .then("millrace status, for why, and millrace drive return or drive replace")
        }
        Limit::Resync { array } => Said::new(format!("A resync of {array} takes a part of its drives."))
            .then("millrace status --watch: it yields to hosts and ends by itself"),
        Limit::Scrub { pool } => Said::new(format!("A scrub of {pool} takes a part of its drives."))
            .then(format!("millrace pool show {pool}: it yields to hosts and ends by itself")),
        Limit::BitmapCold { array } => {
            Said::new(format!("The bitmap of {array} is cold: writes touch regions that were clean."))
                .then("measure again in a minute: a region that is dirty costs nothing more")
        }
        Limit::ShardInterrupted { shard: n, head, per_second, cpu, own } => {
            let place = match own {
                true => format!("its core, {cpu}"),
                false => format!("CPU {cpu}, a thread of its core"),
            };
            let (name, rate) = (shard(*n, head.as_deref()), count(*per_second));
            Said::new(format!("Interrupts take time from {name}: {rate} a second on {place}."))
                .then("millrace tune --apply --only interrupts")
        }
        Limit::PathIdle { host, paths, address, session } => Said::new(format!(
            "One of {paths} paths of {host} does nothing: {address}, session {session}."
        ))
        .then(
            "on the host: multipath -ll or nvme list-subsys, then millrace tune --for linux for the policy",
        ),
        Limit::PathStarved { host, paths, address, session } => {
            Said::new(format!("One of {paths} paths of {host} is starved: {address}, session {session}."))
                .then(format!("millrace status -v, for the connections of {host}"))
        }
        Limit::Digests { hosts } => {
            let who: Vec<String> = hosts.iter().map(|h| called(h).to_string()).collect();
            Said::new(format!(
                "Shards without time left also compute checksums: {} asked for digests.",
                names(&who)
            ))
            .then(
                "millrace bench with and without --digests tells what they cost here; hosts ask for them when they connect",
            )
        }
        Limit::MoreHostsLess { now, before, in_flight_before, full } => Said::new(format!(
            "More hosts get less: {} have {} commands a second together, {} had {}.",
            now.hosts,
            count(now.rate),
            before.hosts,
            count(before.rate)
        ))
        .then(match full {
            true => "what is full comes first".to_string(),
            false => format!(
                "a shallower queue on each host: {:.0} in flight together gave more",
                in_flight_before.ceil()
            ),
        }),
        Limit::TooManyInFlight { host, in_flight } => Said::new(format!(
            "{} has more in flight than helps: {in_flight:.0} commands, most of which wait in line.",
            called(host)
        ))
        .then("nothing, if its latency does not matter; else a shallower queue on the host"),
        Limit::TooFewInFlight { host, all_seen } => {
            let full = match all_seen {
                true => "nothing else is full",
                false => "nothing else that was seen is full",
            };
            Said::new(format!("{} keeps too few commands in flight: {full}.", called(host)))
                .then("a deeper queue or more jobs on the host: millrace tune --for linux")
        }
        Limit::WaitInDrives { unmeasured } => {
            let drives: Vec<String> = unmeasured.iter().take(2).map(|d| format!("--drive {d}")).collect();
            let more = if unmeasured.len() > 2 { " and so on" } else { "" };
            Said::new(format!(
                "Nothing that was measured is full; most commands wait in the drives, and whether these can more nobody has measured: {}.",
                names(unmeasured)
            ))
            .then(format!(
                "when nothing runs: millrace bench drives {}{more} --json > r.json; then under load millrace explain --measured r.json",
                drives.join(" ")
            ))
        }
        Limit::FarNode { drives } => Said::new(format!(
            "{} hang on a node that no shard runs on: their data crosses to the other socket.",
            names(drives)
        ))
        .then("cores in head.toml, with a shard on that node, then millrace bench"),
    }
}

/// A shard by its name.
pub fn shard(shard: u64, head: Option<&str>) -> String {
    head.map_or_else(|| format!("shard {shard}"), |head| format!("shard {shard} of head {head}"))
}

/// A host, known by its name or not.
fn called(host: &str) -> &str {
    if host.is_empty() { "a host" } else { host }
}

/// Why a drive is slow.
fn slow(why: &Slow) -> String {
    match why {
        Slow::LinkTrainedLow { now, could } => {
            format!("its link runs at {now} where both ends can {could}")
        }
        Slow::SlotNarrow { now } => format!("its slot gives it {now}"),
        Slow::Hot { celsius, limit } => {
            format!("it is at {celsius:.0} °C, and from {limit:.0} °C on it makes itself slower")
        }
        Slow::SaysHot { celsius } => {
            format!("it is at {celsius:.0} °C, and says itself that this is too much")
        }
        Slow::Worn { wear: why } => wear(why),
        Slow::FewQueues { queues, usual } => {
            format!("it has {queues} queues where the others have {usual:.0}")
        }
        Slow::ShallowQueue { commands, usual } => {
            format!("its queue takes {commands} commands where the others' take {usual:.0}")
        }
        Slow::NotSeen { used, others_most, throttled_seconds } => {
            let others = others_most.map_or(String::new(), |most| format!(", the others at most {most} %"));
            let heat = match throttled_seconds {
                0 => String::new(),
                s => format!("; heat made it slower for {s} s in its life"),
            };
            format!("why is not seen (it is not hot, and has used {used} % of its rated life{others}{heat})")
        }
        Slow::HealthNotRead => {
            "why is not seen (how worn it is was not read: NVMe drives alone tell it, and to root alone)"
                .into()
        }
    }
}

/// What helps a slow drive.
fn slow_next(drive: &str, why: &Slow) -> String {
    match why {
        Slow::LinkTrainedLow { .. } => "seat it again, then millrace topology".into(),
        Slow::SlotNarrow { .. } => "millrace topology, for a slot that can more".into(),
        Slow::Hot { .. } | Slow::SaysHot { .. } => "more air, or millrace drive replace".into(),
        Slow::Worn { .. } => format!("millrace drive replace {drive}"),
        Slow::FewQueues { .. } | Slow::ShallowQueue { .. } | Slow::NotSeen { .. } | Slow::HealthNotRead => {
            format!("millrace drive show {drive}, and millrace drive replace if it stays so")
        }
    }
}
