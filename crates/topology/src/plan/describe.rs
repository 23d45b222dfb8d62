//! A machine that somebody thinks of, in a few lines.

use super::finding::{DescriptionError, Part as What};
use super::site::{Ability, Drive, Part, Site};
use crate::net::payload_share;
use crate::pci::Lanes;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Most drives of a description.
const DRIVES_MAX: usize = 1024;

/// A machine as somebody describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Description {
    /// Switches and other things with one link towards the processor.
    pub bank: Vec<Bank>,
    /// Drives.
    pub drive: Vec<Kind>,
    /// Network ports through which hosts come.
    pub port: Vec<Ports>,
    /// The head.
    pub head: Shards,
}

/// Something that several drives hang below.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bank {
    /// Its name.
    pub name: String,
    /// Its link towards the processor, `Gen3 x16`.
    pub link: Option<String>,
    /// What passes that link each way, 10^6 bytes a second, where it is known.
    pub mbps: Option<f64>,
    /// NUMA node.
    pub node: Option<u32>,
}

/// Drives of one kind at one place.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Kind {
    /// Its name; of several, what their names begin with.
    pub name: String,
    /// How many.
    pub count: Option<usize>,
    /// The bank.
    pub bank: Option<String>,
    /// NUMA node, if it hangs in no bank.
    pub node: Option<u32>,
    /// Its link, `Gen3 x4`.
    pub link: Option<String>,
    /// Random reads a second.
    pub read_iops: Option<f64>,
    /// Random writes a second.
    pub write_iops: Option<f64>,
    /// 10^6 bytes read a second.
    pub read_mbps: Option<f64>,
    /// 10^6 bytes written a second.
    pub write_mbps: Option<f64>,
}

/// Network ports of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ports {
    /// How many.
    pub count: Option<usize>,
    /// Megabits a second.
    pub mbit: u64,
    /// Largest packet, bytes.
    pub mtu: Option<u64>,
}

/// The head's shards.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Shards {
    /// How many.
    pub shards: Option<u64>,
    /// Commands of 4 KiB that one of them serves a second.
    pub commands: Option<f64>,
}

fn positive(key: &'static str, of: &str, n: Option<f64>) -> Result<Option<f64>, DescriptionError> {
    match n {
        Some(value) if !value.is_finite() || value <= 0.0 => {
            Err(DescriptionError::NotPositive { key, of: of.into(), value })
        }
        n => Ok(n),
    }
}

fn lanes(of: &str, link: Option<&String>) -> Result<Option<Lanes>, DescriptionError> {
    let parse = |text: &String| {
        let no_link = || DescriptionError::NoLink { of: of.into(), link: text.clone() };
        Lanes::parse(text).ok_or_else(no_link)
    };
    link.map(parse).transpose()
}

/// The place that a description tells of.
///
/// # Errors
/// What is impossible.
pub fn site(from: &Description) -> Result<Site, DescriptionError> {
    let mut site = Site::default();
    let mut banks = Vec::new();
    for bank in &from.bank {
        let what = format!("bank {}", bank.name);
        if banks.iter().any(|(name, _, _)| *name == &bank.name) {
            return Err(DescriptionError::BankTwice { bank: bank.name.clone() });
        }
        let link = lanes(&what, bank.link.as_ref())?;
        let mbps = positive("mbps", &what, bank.mbps)?.or(link.map(Lanes::payload_mb));
        let part = mbps.map(|mb| {
            let link = link.map(|l| l.name());
            site.part(Part::link(What::BankUplink { bank: bank.name.clone(), link }, mb))
        });
        banks.push((&bank.name, part, bank.node));
    }
    let mut names = BTreeSet::new();
    for kind in &from.drive {
        let what = format!("drive {}", kind.name);
        let count = kind.count.unwrap_or(1);
        if count == 0 || site.drives.len() + count > DRIVES_MAX {
            let (drive, most) = (kind.name.clone(), DRIVES_MAX);
            return Err(DescriptionError::DriveCount { drive, count, most });
        }
        let link = lanes(&what, kind.link.as_ref())?;
        let bank =
            match &kind.bank {
                None => None,
                Some(name) => Some(banks.iter().find(|(n, _, _)| *n == name).ok_or_else(|| {
                    DescriptionError::NoBank { drive: kind.name.clone(), bank: name.clone() }
                })?),
            };
        let ability = Ability {
            iops: [
                positive("read-iops", &what, kind.read_iops)?,
                positive("write-iops", &what, kind.write_iops)?,
            ],
            mbps: [
                positive("read-mbps", &what, kind.read_mbps)?,
                positive("write-mbps", &what, kind.write_mbps)?,
            ],
        };
        for i in 0..count {
            let name = if count == 1 { kind.name.clone() } else { format!("{}{i}", kind.name) };
            if !names.insert(name.clone()) {
                return Err(DescriptionError::DriveTwice { drive: name });
            }
            let node = bank.and_then(|(_, _, node)| *node).or(kind.node);
            let shared = bank.and_then(|(_, part, _)| *part).into_iter().collect();
            let place = bank.map(|(name, _, _)| (*name).clone());
            site.add(Drive::new(name, ability, link, shared, place, node));
        }
    }
    let mut sum = 0.0;
    for port in &from.port {
        let (mbit, count) = (port.mbit, port.count.unwrap_or(1));
        if !(1..10_000_000).contains(&mbit) || !(1..=64).contains(&count) {
            return Err(DescriptionError::Port { mbit, count });
        }
        sum += mbit as f64 / 8.0 * payload_share(port.mtu.unwrap_or(1500)) * count as f64;
    }
    site.network(from.port.iter().map(|p| p.count.unwrap_or(1)).sum(), sum);
    let commands = positive("commands", "[head]", from.head.commands)?;
    match (from.head.shards, commands) {
        (Some(0), _) => return Err(DescriptionError::NoShard),
        (Some(n), Some(each)) => {
            site.shards(n, each);
        }
        _ => {}
    }
    Ok(site)
}
