//! Links that several drives share, and network ports.

use super::finding::{Finding, Kind};
use super::view::{APART, FULL, View};
use crate::own::OwnDrive;
use crate::record::plain_name;
use crate::words::{mb, micros, names, percent};

/// What each drive below a switch moves, bytes a second: the greater direction, since a link has one for each.
pub(super) fn below(view: &View, switch: usize) -> Vec<(String, f64, f64)> {
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

pub(super) fn uplinks(view: &View, out: &mut Vec<Finding>) {
    let m = view.m;
    for (at, device) in m.devices.iter().enumerate() {
        let Some(limit) = device.link.and_then(|l| l.payload_mb()).map(|mb| mb * 1e6) else { continue };
        if device.port != crate::pci::PortKind::SwitchUp {
            continue;
        }
        let drives = below(view, at);
        let (read, write) = drives.iter().fold((0.0, 0.0), |(r, w), d| (r + d.1, w + d.2));
        let (moved, reads) = if read >= write { (read, true) } else { (write, false) };
        if drives.len() < 2 || moved < FULL * limit {
            continue;
        }
        let address = device.address.trim_start_matches("0000:");
        let passes = device.link.and_then(|l| l.now).map_or(String::new(), |l| l.name());
        let each: Vec<(String, f64)> =
            drives.iter().map(|d| (d.0.clone(), if reads { d.1 } else { d.2 })).collect();
        let unfair = unfair(view, &each, reads);
        let next = match &unfair {
            Some((poor, _)) => format!(
                "millrace bench drives --drive {poor}: alone it tells whether the link or the drive is slow"
            ),
            None => "millrace topology, for a bank with room: drives there add their own rate".into(),
        };
        let unfair = unfair.map(|(_, why)| why);
        out.push(full_link(&format!("uplink of switch {address}"), &passes, limit, each, unfair, next));
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
            // How this one divides is written down.
            let shares: Vec<u64> = members.iter().map(|d| d.uplink_share.max(1)).collect();
            let unfair = shares.iter().any(|s| *s != shares[0]).then(|| {
                let words: Vec<String> = shares.iter().map(u64::to_string).collect();
                format!("where all of them have work waiting it gives them {}", words.join(":"))
            });
            out.push(full_link(
                &format!("link {number}, which somebody made by shapes,"),
                "it",
                limit,
                each,
                unfair,
                next,
            ));
        }
    }
}

/// Links of one kind that are full.
struct Filled {
    /// `Gen3 x2`.
    link: String,
    /// What passes each, bytes a second.
    limit: f64,
    /// The drive behind each, and what it moves, bytes a second.
    drives: Vec<(String, f64)>,
}

/// Drives that move what their own links pass: each link's name once, with all drives behind such a one.
pub(super) fn own_links(view: &View, out: &mut Vec<Finding>) {
    let m = view.m;
    let mut full: Vec<Filled> = Vec::new();
    for drive in &m.drives {
        let device = drive.device.as_deref().and_then(|a| m.device(a)).map(|at| &m.devices[at]);
        // The link of an HBA is not that of one drive.
        let Some(device) = device.filter(|d| d.class == crate::pci::Class::Nvme) else { continue };
        let Some((link, limit)) = device.link.and_then(|l| Some((l.now?.name(), l.payload_mb()? * 1e6)))
        else {
            continue;
        };
        let Some(moved) = drive.activity.map(|a| f64::max(a.read_bytes, a.write_bytes)) else { continue };
        if moved < FULL * limit {
            continue;
        }
        match full.iter_mut().find(|f| f.link == link) {
            Some(known) => known.drives.push((drive.name.clone(), moved)),
            None => full.push(Filled { link, limit, drives: vec![(drive.name.clone(), moved)] }),
        }
    }
    for Filled { link, limit, drives } in full {
        let filled: Vec<String> = drives.iter().map(|d| d.0.clone()).collect();
        let moved = drives.iter().map(|d| d.1).sum::<f64>() / drives.len() as f64;
        let sentence = match &filled[..] {
            [one] => format!("The link of {one} is full: {link}."),
            all => format!("The links of {} drives are full, {link} each: {}.", all.len(), names(all)),
        };
        out.push(Finding {
            kind: Kind::Link,
            about: filled,
            sentence,
            arithmetic: vec![format!(
                "{} of {} that {link} passes as payload: {}",
                mb(moved),
                mb(limit),
                percent(moved / limit)
            )],
            next: "millrace topology, for slots that can more; else more drives: each adds its own link"
                .into(),
        });
    }
}

/// Whether a full link divides unfairly what it passes: a drive with at least as much waiting as another, which takes no
/// more and has to wait far longer for it. A drive that gets less because less is asked of it (its pool, its weight, its
/// host) has less waiting, and says nothing of the link. Gives the drive, and the reason in words.
fn unfair(view: &View, each: &[(String, f64)], reads: bool) -> Option<(String, String)> {
    let mut all: Vec<(&str, f64, f64, f64)> = Vec::new();
    for (name, moved) in each.iter().filter(|(_, moved)| *moved > 0.0) {
        let activity = view.m.drives.iter().find(|d| d.name == *name)?.activity?;
        let (rate, us) = match reads {
            true => (activity.reads, activity.read_us?),
            false => (activity.writes, activity.write_us?),
        };
        all.push((name, *moved, rate * us / 1e6, us));
    }
    let is_unfair = |poor: &(&str, f64, f64, f64), rich: &(&str, f64, f64, f64)| {
        let waits_longer = poor.2 / poor.1 > 1.5 * rich.2 / rich.1;
        poor.2 >= 1.0 && poor.2 >= rich.2 && poor.1 <= rich.1 * 1.05 && waits_longer
    };
    let poor = all.iter().max_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
    let rich = all.iter().min_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
    is_unfair(poor, rich).then(|| {
        let why = format!(
            "{} has {:.0} commands waiting, {} for each; {} has {:.0}, {} for each",
            poor.0,
            poor.2,
            micros(poor.3),
            rich.0,
            rich.2,
            micros(rich.3)
        );
        (poor.0.to_string(), why)
    })
}

/// A link that several drives fill, each with what it moves, bytes a second. `unfair`: why it is known to divide so.
fn full_link(
    name: &str,
    passes: &str,
    limit: f64,
    drives: Vec<(String, f64)>,
    unfair: Option<String>,
    next: String,
) -> Finding {
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
    let apart = most > 0.0 && (most - least) / most > APART;
    let share = match apart {
        true => format!("from {} to {}", mb(least), mb(most)),
        false => format!("{} for each", mb(moved / n as f64)),
    };
    let sentence = match unfair.is_some() {
        true => format!("The {name} is full, and divided unfairly: its {n} drives get {share}."),
        false => format!("The {name} is full: {n} drives share it, {share}."),
    };
    if let Some(why) = unfair {
        arithmetic.push(why);
        arithmetic.push(
            "weights that were measured on single drives are wrong while the link is full: the slowest drive sets the pace"
                .into(),
        );
    } else if apart {
        arithmetic
            .push("nothing tells that it prefers some: less may be asked of those that get less".into());
    }
    Finding {
        kind: Kind::Uplink,
        about: drives.into_iter().map(|d| d.0).collect(),
        sentence,
        arithmetic,
        next,
    }
}

pub(super) fn ports(view: &View, out: &mut Vec<Finding>) {
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
