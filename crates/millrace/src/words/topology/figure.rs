//! The numbers that a limit follows from.

use super::limit::shard;
use super::load::part;
use super::numbers::{count, mb, micros, percent, plural};
use topology::explain::{Crowd, Figure, Known, Unseen};

/// A step of the arithmetic behind a limit.
pub fn figure(figure: &Figure) -> String {
    match figure {
        Figure::DriveDoes { operations, bytes } => {
            format!("it does {} operations and {} now", count(*operations), mb(*bytes))
        }
        Figure::CommandsOfCap { commands, most } => {
            format!("{} of {} commands", count(*commands), count(*most as f64))
        }
        Figure::BytesOfCap { bytes, most } => format!("{} of {}", mb(*bytes), mb(*most as f64)),
        Figure::LinkMoves { link, bytes, most } => format!(
            "{} of {} that {} passes as payload: {}",
            mb(*bytes),
            mb(*most),
            link.as_deref().unwrap_or("it"),
            percent(bytes / most)
        ),
        Figure::LinkPrefers { poor, rich } => format!(
            "{} has {:.0} commands waiting, {} for each; {} has {:.0}, {} for each",
            poor.drive,
            poor.commands,
            micros(poor.us),
            rich.drive,
            rich.commands,
            micros(rich.us)
        ),
        Figure::LinkShares { shares } => {
            let words: Vec<String> = shares.iter().map(u64::to_string).collect();
            format!("where all of them have work waiting it gives them {}", words.join(":"))
        }
        Figure::WeightsWrong => {
            "weights that were measured on single drives are wrong while the link is full: the slowest drive sets the pace"
                .into()
        }
        Figure::MayBeAskedLess => {
            "nothing tells that it prefers some: less may be asked of those that get less".into()
        }
        Figure::PortMoves { bytes, most, speed_mbit, mtu } => format!(
            "{} of {} that {speed_mbit} Mbit/s with packets of {mtu} bytes carry",
            mb(*bytes),
            mb(*most)
        ),
        Figure::DriveWorks { drive, write, rate, us, under_way, known_by } => {
            let why = match known_by {
                Known::Measured { rate: most } => {
                    format!("{} was measured alone: {}", count(*most), percent(rate / most))
                }
                Known::Before { us } => format!("before this it took {} in the mean", micros(*us)),
            };
            format!(
                "{drive}: {} {} a second, {} each with {under_way:.0} under way; {why}",
                count(*rate),
                if *write { "writes" } else { "reads" },
                micros(*us)
            )
        }
        Figure::ShardUses { shard: n, head, used } => {
            format!("{} used {} of its core", shard(*n, head.as_deref()), percent(*used))
        }
        Figure::CommandCosts { rate, cores } => format!(
            "{} commands a second on {cores:.1} cores: {} for each command",
            count(*rate),
            micros(cores / rate * 1e6)
        ),
        Figure::InterruptsOf { action, cpu, used } => {
            format!("most are of {action}; CPU {cpu} spends {} of its time in interrupts", percent(*used))
        }
        Figure::SoftirqTakes { used } => format!("{} of its time in soft interrupts", percent(*used)),
        Figure::DigestsOn { connections, of, carry } => format!(
            "{connections} of {of} connections have digests, and carry {} of all commands: a pass over each byte of these",
            percent(*carry)
        ),
        Figure::NoTls => "TLS is no part of it: no portal of this head offers it".into(),
        Figure::CoresUsed { used, cores, shards } => format!(
            "{used:.1} of {cores} cores are used: {shards:.1} by shards, {:.1} by everything else",
            (used - shards).max(0.0)
        ),
        Figure::ShardsWaited { most } => {
            format!("a shard that had work waited up to {} of the time for a core", percent(*most))
        }
        Figure::ShardsWaitedUnknown => {
            "a shard that waits for its core does nothing in that time: its own share says less than it could do"
                .into()
        }
        Figure::CrowdBefore { crowd: then } => format!("before: {}", crowd(then)),
        Figure::CrowdNow { crowd: now } => {
            format!("now: {}; what was added waits, and the rest with it", crowd(now))
        }
        Figure::PoolReads { pool, own_mb, usual_mb, arrays, slowest_mb, weighted_mb, now_mb } => {
            let now = now_mb.map_or(String::new(), |now| format!("; as its weights are now, {now:.0}"));
            format!(
                "{} of {} MB/s; reads of {pool}, {arrays} array{}: a plain stripe gives {arrays} × {slowest_mb:.0} = {:.0} MB/s, ours by weight {weighted_mb:.0}{now}",
                own_mb.round(),
                usual_mb.round(),
                plural(*arrays),
                slowest_mb * *arrays as f64
            )
        }
        Figure::ReadTakes { us, usual } => {
            format!("a read takes {}, {} on the drive in the middle", micros(*us), micros(*usual))
        }
        Figure::ResyncMoves { bytes, seconds_left } => {
            let left = seconds_left.map_or(String::new(), |s| format!(", {s} s left"));
            format!("{} read and written by it{left}", mb(*bytes))
        }
        Figure::ReadsLeft { part } => format!("reads of it have {} of what they had", percent(*part)),
        Figure::RegionsDirtied { fresh, writes, dirty, regions } => format!(
            "{} regions a second become dirty under {} writes a second; {dirty} of {regions} are",
            count(*fresh),
            count(*writes)
        ),
        Figure::ScrubMoves { bytes } => format!("{} read by it", mb(*bytes)),
        Figure::PathDoes { rate, in_flight, best } => format!(
            "{} commands a second, {in_flight:.0} in flight; the best of its paths has {}",
            count(*rate),
            count(*best)
        ),
        Figure::Crosses { bytes } => format!("{} cross", mb(*bytes)),
        Figure::MeasureNodes => {
            "for small blocks the home socket can be the crowded one: measure local, remote and unbound".into()
        }
        Figure::InDrives { operations, drives, us, in_flight } => format!(
            "{operations:.0} under way in {drives} drive{}, {} each; hosts keep {in_flight:.0} in flight",
            plural(*drives),
            micros(*us)
        ),
        Figure::Little { in_flight, us, rate } => {
            format!("{in_flight:.0} in flight at {} is {} commands a second", micros(*us), count(*rate))
        }
        Figure::Enough { bare_us, waits, in_flight } => format!(
            "a drive answers within {}, so {} waits; {in_flight:.0} in flight would give the same rate",
            micros(*bare_us),
            percent(*waits)
        ),
        Figure::Needs { rate, part: full, needs, in_flight, connections } => format!(
            "to reach {} (where {} is full) this host needs {needs:.0}; it has {in_flight:.0} on {connections} connection{}",
            count(*rate),
            part(full),
            plural(*connections)
        ),
        Figure::NotSeen { parts } => {
            let words: Vec<&str> = parts.iter().map(|p| unseen(*p)).collect();
            format!("no load was seen of {}: nothing is said of it", words.join(" and "))
        }
    }
}

fn unseen(part: Unseen) -> &'static str {
    match part {
        Unseen::Drives => "the drives",
        Unseen::Network => "the network",
        Unseen::Shards => "the shards",
    }
}

fn crowd(c: &Crowd) -> String {
    format!(
        "{} host{}, {:.0} in flight at {} is {} commands a second",
        c.hosts,
        plural(c.hosts),
        c.in_flight,
        micros(c.in_flight / c.rate * 1e6),
        count(c.rate)
    )
}
