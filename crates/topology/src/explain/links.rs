//! Links that several drives share, and network ports.

use super::figure::{Figure, Waits};
use super::finding::Finding;
use super::limit::{Direction, Limit, Share, SharedLink};
use super::view::{APART, FULL, View};
use crate::record::plain_name;
use crate::status::shape;
use api::{Counters, Drive};

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
        let link = SharedLink::Switch { switch: device.address.trim_start_matches("0000:").into() };
        let passes = device.link.and_then(|l| l.now).map(|l| l.name());
        let each: Vec<(String, f64)> =
            drives.iter().map(|d| (d.0.clone(), if reads { d.1 } else { d.2 })).collect();
        let unfair = unfair(view, &each, reads);
        let poor = unfair.as_ref().map(|(poor, _)| poor.drive.clone());
        let unfair = unfair.map(|(poor, rich)| Figure::LinkPrefers { poor, rich });
        out.push(full_link(link, passes, limit, each, unfair, poor));
    }
    // Links that somebody made by shapes.
    let mut numbers: Vec<u32> =
        view.after.drives.iter().map(|d| shape(d).uplink).filter(|n| *n > 0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let members: Vec<&Drive> = view.after.drives.iter().filter(|d| shape(d).uplink == number).collect();
        let limit = f64::from(shape(members[0]).uplink_mbps) * 1e6;
        let gone = |d: &Drive, of: fn(&Counters) -> u64| {
            let was = view.before.drives.iter().find(|b| b.path == d.path && b.uuid == d.uuid)?;
            Some(of(&d.counters).saturating_sub(of(&was.counters)) as f64 / view.seconds)
        };
        for of in [|c: &Counters| c.read_bytes, |c: &Counters| c.write_bytes] {
            let each: Vec<(String, f64)> = members
                .iter()
                .filter_map(|d| Some((plain_name(&d.path).to_string(), gone(d, of)?)))
                .filter(|(_, moved)| *moved > 0.0)
                .collect();
            let moved: f64 = each.iter().map(|(_, moved)| moved).sum();
            if each.len() < 2 || limit <= 0.0 || moved < FULL * limit {
                continue;
            }
            // How this one divides is written down.
            let shares: Vec<u64> = members.iter().map(|d| u64::from(shape(d).uplink_share.max(1))).collect();
            let unfair = shares.iter().any(|s| *s != shares[0]).then_some(Figure::LinkShares { shares });
            let link = SharedLink::Shapes { number: number.into(), path: members[0].path.clone() };
            out.push(full_link(link, None, limit, each, unfair, None));
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
        let figure = Figure::LinkMoves { link: Some(link.clone()), bytes: moved, most: limit };
        out.push(Finding::new(Limit::LinkFull { drives: filled.clone(), link }, filled, vec![figure]));
    }
}

/// Whether a full link divides unfairly what it passes: a drive with at least as much waiting as another, which takes no
/// more and has to wait far longer for it. A drive that gets less because less is asked of it (its pool, its weight, its
/// host) has less waiting, and says nothing of the link. Gives the drive, and one that does better.
fn unfair(view: &View, each: &[(String, f64)], reads: bool) -> Option<(Waits, Waits)> {
    let mut all: Vec<(&str, f64, f64, f64)> = Vec::new();
    for (name, moved) in each.iter().filter(|(_, moved)| *moved > 0.0) {
        let activity = view.m.drives.iter().find(|d| d.name == *name)?.activity?;
        let (rate, us) =
            if reads { (activity.reads, activity.read_us?) } else { (activity.writes, activity.write_us?) };
        all.push((name, *moved, rate * us / 1e6, us));
    }
    let is_unfair = |poor: &(&str, f64, f64, f64), rich: &(&str, f64, f64, f64)| {
        let waits_longer = poor.2 / poor.1 > 1.5 * rich.2 / rich.1;
        poor.2 >= 1.0 && poor.2 >= rich.2 && poor.1 <= rich.1 * 1.05 && waits_longer
    };
    let poor = all.iter().max_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
    let rich = all.iter().min_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))?;
    let waits = |d: &(&str, f64, f64, f64)| Waits { drive: d.0.to_string(), commands: d.2, us: d.3 };
    is_unfair(poor, rich).then(|| (waits(poor), waits(rich)))
}

/// A link that several drives fill, each with what it moves, bytes a second. `unfair`: how it is known to divide so.
fn full_link(
    link: SharedLink,
    passes: Option<String>,
    limit: f64,
    drives: Vec<(String, f64)>,
    unfair: Option<Figure>,
    poor: Option<String>,
) -> Finding {
    let moved: f64 = drives.iter().map(|(_, moved)| moved).sum();
    let each: Vec<f64> = drives.iter().map(|(_, moved)| *moved).filter(|b| *b > 0.0).collect();
    let (least, most) = each.iter().fold((f64::MAX, 0.0f64), |(a, b), n| (a.min(*n), b.max(*n)));
    let apart = most > 0.0 && (most - least) / most > APART;
    let share = if apart {
        Share::Between { least, most }
    } else {
        Share::Each { bytes: moved / drives.len() as f64 }
    };
    let is_unfair = unfair.is_some();
    let mut arithmetic = vec![Figure::LinkMoves { link: passes, bytes: moved, most: limit }];
    if let Some(why) = unfair {
        arithmetic.extend([why, Figure::WeightsWrong]);
    } else if apart {
        arithmetic.push(Figure::MayBeAskedLess);
    }
    let found = Limit::SharedLinkFull { link, drives: drives.len(), share, unfair: is_unfair, poor };
    Finding::new(found, drives.into_iter().map(|d| d.0).collect(), arithmetic)
}

pub(super) fn ports(view: &View, out: &mut Vec<Finding>) {
    for port in &view.m.ports {
        let Some(limit) = port.payload_bytes() else { continue };
        for (moved, direction) in [(port.rx_bytes, Direction::In), (port.tx_bytes, Direction::Out)] {
            // Linux counts headers as far as Ethernet's; what fills the wire is a little more than payload.
            let Some(moved) = moved.filter(|b| *b >= FULL * limit) else { continue };
            let figure = Figure::PortMoves {
                bytes: moved,
                most: limit,
                speed_mbit: port.speed_mbit.unwrap_or(0),
                mtu: port.mtu.unwrap_or(1500),
            };
            let found = Limit::PortFull { port: port.name.clone(), direction };
            out.push(Finding::new(found, vec![port.name.clone()], vec![figure]));
        }
    }
}
