//! What a layout will give, why another one is better, and where a head should sit.

use super::numbers::{count, nodes};
use topology::plan::{DescriptionError, Full, Gain, Part, Passes, PlanError, SeatReason, Unknown};
use topology::ranges;

/// What is full.
pub fn full(full: &Full) -> String {
    let part = &full.part;
    let link = match part {
        Part::DriveLink { link, .. } => format!(", {link}"),
        _ => String::new(),
    };
    let can = match full.passes {
        Passes::Bytes { bytes } => format!("{:.0} MB/s", bytes / 1e6),
        Passes::Commands { commands } => count(commands),
    };
    match (full.others, full.alike) {
        (0, _) => format!("{}{link}: {can}", name(part)),
        (n, true) => format!("{} {}{link}: {can} each", n + 1, several(part)),
        (n, false) => format!("{}{link}: {can}, and {n} more", name(part)),
    }
}

/// A part of the way.
fn name(part: &Part) -> String {
    match part {
        Part::Drive { drive } => drive.clone(),
        Part::DriveLink { drive, .. } => format!("the link of {drive}"),
        Part::DriveShare { drive, of } => format!("what {drive} gets of {}", name(of)),
        Part::Uplink { switch, link } => format!("the uplink of switch {switch}, {link}"),
        Part::HbaLink { hba, link } => format!("the link of HBA {hba}, {link}"),
        Part::BankUplink { bank, link } => {
            let link = link.as_ref().map_or(String::new(), |l| format!(", {l}"));
            format!("the uplink of bank {bank}{link}")
        }
        Part::ShapesLink { number } => format!("link {number} of the shapes"),
        Part::Ports { ports: 1 } => "the network port".into(),
        Part::Ports { ports } => format!("the {ports} network ports"),
        Part::Shards { shards: 1 } => "the shard".into(),
        Part::Shards { shards } => format!("the {shards} shards"),
    }
}

/// What several of its kind are called.
fn several(part: &Part) -> &'static str {
    match part {
        Part::Drive { .. } => "drives",
        Part::DriveLink { .. } => "links of drives",
        Part::DriveShare { .. } => "drives' parts of unfair links",
        Part::Uplink { .. } => "uplinks of switches",
        Part::HbaLink { .. } => "links of HBAs",
        Part::BankUplink { .. } => "uplinks of banks",
        Part::ShapesLink { .. } => "links of the shapes",
        Part::Ports { .. } => "network ports",
        Part::Shards { .. } => "shards",
    }
}

/// That something takes all legs of a mirror away.
pub fn takes_away(bank: &str, legs: usize) -> String {
    let all = if legs == 2 { "both".into() } else { format!("all {legs}") };
    format!("{bank} takes {all} away when it fails")
}

/// Why another layout is better.
pub fn gain(gain: &Gain) -> String {
    match gain {
        Gain::SwitchesApart { pairs: 0, .. } => "no switch takes two legs of a mirror away".into(),
        Gain::SwitchesApart { pairs, before } => {
            format!("{pairs} pairs of legs share a switch, not {before}")
        }
        Gain::NodesApart { pairs: 0, .. } => "the legs of each mirror are in different nodes".into(),
        Gain::NodesApart { pairs, before } => format!("{pairs} pairs of legs share a node, not {before}"),
        Gain::Faster { load, factor, weights } => {
            let list: Vec<String> = weights.iter().map(u32::to_string).collect();
            format!("{load} at {factor:.2} times the rate, with weights {}", list.join(","))
        }
    }
}

/// What is not known.
pub fn unknown(unknown: &Unknown) -> String {
    match unknown {
        Unknown::Network => "the network is not counted: no port's speed is known".into(),
        Unknown::BesideLoad { rate } => format!(
            "what these drives can alone is not known beside load: hosts ask the head for {} commands a second now, and what is measured meanwhile is a lower bound",
            count(*rate)
        ),
        Unknown::ShardsAsTheyServe { write, bytes } => {
            let (these, others) = if *write { ("writes", "reads") } else { ("reads", "writes") };
            format!(
                "the shards are counted as they serve {these} of {:.0} KiB now: larger ones take more of their time, and of smaller ones and of {others} it tells nothing",
                (bytes / 1024.0).max(1.0)
            )
        }
        Unknown::Shards => {
            "the shards are not counted: a head that works tells what they can (plan under a load of reads alone, or of writes alone), a description too"
                .into()
        }
        Unknown::Drives { drives } => {
            let who = match &drives[..] {
                [one] => format!("{one} itself can"),
                all => format!("{} drives themselves can", all.len()),
            };
            let named: Vec<String> =
                drives.iter().take(2).map(|d| format!("--drive {}", quoted(d))).collect();
            let more = if drives.len() > 2 { " and so on" } else { "" };
            format!(
                "what {who} is not known for all loads, so these rates are the most that the way to them passes; measure it: \
                 millrace bench drives {}{more} --json > r.json, then millrace plan --measured r.json",
                named.join(" ")
            )
        }
        Unknown::OtherPools => {
            "each pool is planned as if it worked alone: at once they divide shards, ports and the links that they share"
                .into()
        }
    }
}

/// Why there is no plan.
pub fn plan_error(error: &PlanError) -> String {
    match error {
        PlanError::NoDrive { drive } => format!("there is no drive {drive} there"),
        PlanError::DriveTwice { drive } => format!("the drive {drive} is named twice"),
        PlanError::NoArray => {
            "a layout has one array at least, each with a drive and a weight above 0".into()
        }
    }
}

/// Why a description is of no possible machine.
pub fn description_error(error: &DescriptionError) -> String {
    match error {
        DescriptionError::NotPositive { key, of, value } => {
            format!("{key} of {of} is {value}: it must be above 0")
        }
        DescriptionError::NoLink { of, link } => {
            format!("{of}: there is no link {link:?}: Gen1 to Gen6, x1 to x32, as Gen3 x4")
        }
        DescriptionError::BankTwice { bank } => format!("two banks are called {bank}"),
        DescriptionError::DriveTwice { drive } => format!("two drives are called {drive}"),
        DescriptionError::DriveCount { drive, count, most } => {
            format!("drive {drive}: a count of {count}: it is 1 to {most} for all together")
        }
        DescriptionError::NoBank { drive, bank } => {
            format!("drive {drive} hangs in bank {bank}, and there is no [[bank]] of this name")
        }
        DescriptionError::Port { mbit, count } => {
            format!("a port of {mbit} megabits a second, {count} times: that is impossible")
        }
        DescriptionError::NoShard => "a head has one shard at least".into(),
    }
}

/// Why a head sits where it does.
pub fn seat_reason(reason: &SeatReason) -> String {
    match reason {
        SeatReason::NodesUnknown => "no port and no drive tells its node: shards are on all of them".into(),
        SeatReason::WithDrives { nodes: at } => {
            format!("no port tells its node: shards are where drives are, {}", nodes(at))
        }
        SeatReason::WithPorts { nodes: at } => format!("shards are where the ports are, {}", nodes(at)),
        SeatReason::DrivesFar { nodes: at } => {
            format!("data of drives at {} cross to them: a port there would spare that", nodes(at))
        }
        SeatReason::CpusLeft { cpus } => {
            format!("CPUs {} and their siblings are left to interrupts and everything else", ranges(cpus))
        }
        SeatReason::OneThread => {
            "one thread of each core: the other is measured, not believed (tune --measure)".into()
        }
    }
}

/// A word as a shell takes it: `?` of `file:/a?size=1G` would be looked for among files.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
