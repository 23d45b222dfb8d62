//! What a layout of drives will give: predicted from what each part of the way passes, before anything is bought or made.
//!
//! A stripe sends each array its share of the commands, so it is as fast as the array that is full first. A write goes to
//! every leg of a mirror; a read to one of them, whichever has least to do, so both legs are used to the full. Links that
//! several drives share pass so much in each direction. The most commands a second that all parts pass together is what is
//! told, with the parts that are full then. Nothing is concluded of what nobody knows.

mod describe;
mod finding;
mod flow;
mod propose;
mod seats;
mod site;

pub use describe::{Bank, Description, Kind, Ports, Shards, site};
pub use finding::{DescriptionError, Full, Gain, Part, Passes, PlanError, SeatReason, Unknown};
pub use propose::{pair, propose};
pub use seats::{Seats, seats};
pub use site::{Shaped, Site, is_memory};

use crate::machine::Machine;
use crate::record::plain_name;
use flow::{Net, SINK, SOURCE, UNLIMITED};
use serde::Serialize;
use site::{Ability, Drive, Says};
use std::collections::BTreeMap;

/// An array of a layout.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Array {
    /// Its drives; several are a mirror's legs.
    pub drives: Vec<String>,
    /// Its part of the stripe beside the others'.
    pub weight: f64,
}

/// Commands of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Load {
    /// Its name.
    pub name: &'static str,
    /// It writes.
    pub write: bool,
    /// Bytes of a command.
    pub bytes: u32,
}

/// What people ask for.
pub const LOADS: [Load; 4] = [
    Load { name: "randread 4k", write: false, bytes: 4 << 10 },
    Load { name: "randwrite 4k", write: true, bytes: 4 << 10 },
    Load { name: "read 128k", write: false, bytes: 128 << 10 },
    Load { name: "write 128k", write: true, bytes: 128 << 10 },
];

/// What a load will do.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Prediction {
    /// The load.
    pub load: Load,
    /// Commands a second; None if nothing is known that limits them.
    pub iops: Option<f64>,
    /// It may be less: what a drive of the layout itself can, or a shard, is not known for this load.
    pub at_most: bool,
    /// 10^6 bytes a second.
    pub mbps: Option<f64>,
    /// What is full then; None if nothing is known that limits it.
    pub limit: Option<Full>,
    /// What would be full next if that were not, and at how many commands a second.
    pub then: Option<(Full, f64)>,
}

/// Where the legs of an array are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Placed {
    /// `mirror-0`, `single-1`.
    pub array: String,
    /// Its drives with their places.
    pub legs: Vec<PlacedLeg>,
    /// The switch or bank that takes all of them away when it fails, if one does.
    pub together: Option<String>,
}

/// Where a leg is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlacedLeg {
    /// The drive.
    pub drive: String,
    /// The switch or bank that it hangs below.
    pub bank: Option<String>,
    /// Its node.
    pub node: Option<u32>,
}

/// A better layout of the same drives.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Better {
    /// Why.
    pub why: Vec<Gain>,
    /// It.
    pub arrays: Vec<Array>,
    /// What it will do.
    pub predictions: Vec<Prediction>,
}

/// What a layout will give.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Plan {
    /// The layout.
    pub arrays: Vec<Array>,
    /// What it will do, in the order of [`LOADS`].
    pub predictions: Vec<Prediction>,
    /// Where the legs are.
    pub placed: Vec<Placed>,
    /// What would be better, if anything is.
    pub better: Option<Better>,
    /// What is not known.
    pub gaps: Vec<Unknown>,
}

impl Site {
    fn find(&self, name: &str) -> Result<&Drive, PlanError> {
        let found = self.position(name).map(|at| &self.drives[at]);
        found.ok_or_else(|| PlanError::NoDrive { drive: plain_name(name).into() })
    }
}

/// What a layout will give at a place.
///
/// # Errors
/// A drive that is not there or is named twice, or an array that cannot be.
pub fn plan(site: &Site, arrays: &[Array]) -> Result<Plan, PlanError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in arrays.iter().flat_map(|a| &a.drives) {
        if !seen.insert(&site.find(name)?.name) {
            return Err(PlanError::DriveTwice { drive: plain_name(name).into() });
        }
    }
    if arrays.is_empty() || arrays.iter().any(|a| a.drives.is_empty() || a.weight <= 0.0) {
        return Err(PlanError::NoArray);
    }
    let predictions: Vec<Prediction> = LOADS.iter().map(|load| predict(site, arrays, *load)).collect();
    let mut gaps = site.gaps.clone();
    let silent: Vec<String> = seen
        .iter()
        .filter_map(|name| site.find(name).ok())
        .filter(|d| LOADS.iter().any(|l| !d.ability.knows(l.write, f64::from(l.bytes))))
        .map(|d| d.name.clone())
        .collect();
    if !silent.is_empty() {
        gaps.push(Unknown::Drives { drives: silent });
    }
    Ok(Plan {
        better: propose::better(site, arrays, &predictions),
        arrays: arrays.to_vec(),
        predictions,
        placed: placed(site, arrays),
        gaps,
    })
}

/// The layouts of a head's pools, with their names; drives are called as they are at the place.
pub fn pools(site: &Site, m: &Machine) -> Vec<(String, Vec<Array>)> {
    let labelled: BTreeMap<&str, &Drive> =
        site.drives.iter().rev().filter(|d| !d.uuid.is_empty()).map(|d| (d.uuid.as_str(), d)).collect();
    let name = |l: &api::Leg| {
        labelled.get(l.uuid.to_string().as_str()).map_or_else(|| l.path.clone(), |d| d.name.clone())
    };
    let array = |pool: &api::Pool, i: usize, a: &api::Array| Array {
        drives: a.legs.iter().map(name).collect(),
        weight: f64::from(crate::status::weight(pool, i)),
    };
    let own = m.own.iter().flat_map(|own| &own.pools);
    own.filter(|p| !p.arrays.is_empty())
        .map(|p| (p.name.clone(), p.arrays.iter().enumerate().map(|(i, a)| array(p, i, a)).collect()))
        .collect()
}

fn placed(site: &Site, arrays: &[Array]) -> Vec<Placed> {
    let one = |(i, array): (usize, &Array)| {
        let drives: Vec<&Drive> = array.drives.iter().filter_map(|d| site.find(d).ok()).collect();
        let leg = |d: &&Drive| PlacedLeg { drive: d.name.clone(), bank: d.bank.clone(), node: d.node };
        let same = |what: &dyn Fn(&Drive) -> Option<String>| {
            let first = what(drives.first()?)?;
            drives.iter().all(|d| what(d).as_ref() == Some(&first)).then_some(first)
        };
        let kind = if drives.len() > 1 { "mirror" } else { "single" };
        let together = same(&|d| d.bank.clone()).filter(|_| drives.len() > 1);
        Placed { array: format!("{kind}-{i}"), legs: drives.iter().map(leg).collect(), together }
    };
    arrays.iter().enumerate().map(one).collect()
}

/// Something that may be full, as seen from one load.
#[derive(Clone)]
struct Limit {
    /// Commands a second.
    most: f64,
    part: Part,
    /// Bytes are what fills it, and not commands.
    weighed: bool,
}

/// What a load does to the parts, and what they pass.
struct View {
    bytes: f64,
    limits: Vec<Limit>,
    /// For each array its share, and for each leg the limits on its way.
    arrays: Vec<(f64, Vec<Vec<usize>>)>,
}

impl View {
    fn of(site: &Site, arrays: &[Array], load: Load) -> Self {
        let bytes = f64::from(load.bytes);
        let all: f64 = arrays.iter().map(|a| a.weight).sum();
        let mut limits = Vec::new();
        let weighed = |a: Ability, most: f64| {
            a.iops[usize::from(load.write)].is_none_or(|iops| iops > most) && a != Ability::default()
        };
        let part_limit = |(at, p): (usize, &site::Part)| {
            let known = site.says(at, load.write, bytes) != Says::Nothing;
            let most = p.ability.rate(load.write, bytes).filter(|_| known).unwrap_or(UNLIMITED);
            let weighed = weighed(p.ability, most);
            Limit { most, part: p.what.clone(), weighed }
        };
        limits.extend(site.parts.iter().enumerate().map(part_limit));
        // A link that divides unfairly gives each drive of this layout its part of it when all work.
        let mut shares = vec![(0.0, f64::NAN, false); site.parts.len()];
        let drives = |a: &Array| a.drives.iter().filter_map(|d| site.find(d).ok()).collect::<Vec<_>>();
        for (part, share) in arrays.iter().flat_map(drives).filter_map(|d| d.share) {
            let (sum, first, unfair) = &mut shares[part];
            *unfair |= !first.is_nan() && *first != share;
            (*sum, *first) = (*sum + share, share);
        }
        let mut out = Vec::new();
        for array in arrays {
            let mut legs = Vec::new();
            for drive in drives(array) {
                let mut way = Vec::new();
                let mut limit = |most: Option<f64>, part: Part, weighed: bool| {
                    if let Some(most) = most {
                        way.push(limits.len());
                        limits.push(Limit { most, part, weighed });
                    }
                };
                let by_itself = drive.ability.rate(load.write, bytes);
                let by_bytes = by_itself.is_some_and(|most| weighed(drive.ability, most));
                limit(by_itself, Part::Drive { drive: drive.name.clone() }, by_bytes);
                let link = drive.link.map(|l| l.payload_mb() * 1e6 / bytes);
                // A link that passes more than the drive can is no news.
                let link = link.filter(|l| by_itself.is_none_or(|d| *l < d));
                let name = drive.link.map_or(String::new(), |l| l.name());
                limit(link, Part::DriveLink { drive: drive.name.clone(), link: name }, true);
                if let Some((part, share)) = drive.share.filter(|(part, _)| shares[*part].2) {
                    let most = site.parts[part].ability.rate(load.write, bytes);
                    let most = most.map(|m| m * share / shares[part].0);
                    let of = Box::new(site.parts[part].what.clone());
                    limit(most, Part::DriveShare { drive: drive.name.clone(), of }, true);
                }
                way.extend(&drive.shared);
                legs.push(way);
            }
            out.push((array.weight / all, legs));
        }
        // A command passes the network and a shard once, however many legs it has.
        if let Some(most) = site.common.iter().map(|p| limits[*p].most).reduce(f64::min)
            && most.is_finite()
        {
            let narrow = site.common.iter().copied().filter(|p| limits[*p].most <= most);
            out.insert(0, (1.0, vec![narrow.collect()]));
        }
        Self { bytes, limits, arrays: out }
    }

    /// The same with one of its arrays, which gets everything, and with no more limits than are on its way.
    fn alone(&self, array: usize) -> Self {
        let mut legs = self.arrays[array].1.clone();
        let mut used: Vec<usize> = legs.iter().flatten().copied().collect();
        used.sort_unstable();
        used.dedup();
        for at in legs.iter_mut().flatten() {
            *at = used.binary_search(at).expect("it is one of them");
        }
        let limits = used.iter().map(|at| self.limits[*at].clone()).collect();
        Self { bytes: self.bytes, limits, arrays: vec![(1.0, legs)] }
    }

    /// Commands a second, and the limits that are full then.
    fn most(&self, write: bool) -> (f64, Vec<usize>) {
        if write { self.most_writes() } else { self.most_reads() }
    }

    fn most_writes(&self) -> (f64, Vec<usize>) {
        let mut use_of = vec![0.0; self.limits.len()];
        for (share, legs) in &self.arrays {
            legs.iter().flatten().for_each(|at| use_of[*at] += share);
        }
        let rate = |at: usize| if use_of[at] > 0.0 { self.limits[at].most / use_of[at] } else { UNLIMITED };
        let most = (0..self.limits.len()).map(rate).fold(UNLIMITED, f64::min);
        let full = (0..self.limits.len()).filter(|at| rate(*at) <= most * 1.000_001);
        (most, if most.is_finite() { full.collect() } else { Vec::new() })
    }

    /// Each array gets its share; its legs divide that as they can. The rate is lowered to what the narrowest cut
    /// passes until all of it comes through.
    fn most_reads(&self) -> (f64, Vec<usize>) {
        let finite: f64 = self.limits.iter().map(|l| l.most).filter(|m| m.is_finite()).sum();
        let smallest = self.arrays.iter().map(|(share, _)| *share).fold(1.0, f64::min);
        let mut rate = (finite + 1.0) / smallest;
        let mut full = Vec::new();
        for _ in 0..64 {
            let mut net = Net::new();
            let parts: Vec<(usize, usize)> = self
                .limits
                .iter()
                .map(|limit| {
                    let (from, to) = (net.node(), net.node());
                    net.edge(from, to, limit.most);
                    (from, to)
                })
                .collect();
            let mut sources = Vec::new();
            for (share, legs) in &self.arrays {
                let array = net.node();
                net.edge(SOURCE, array, share * rate);
                sources.push((array, *share));
                for way in legs {
                    let end = way.iter().fold(array, |at, limit| {
                        net.edge(at, parts[*limit].0, UNLIMITED);
                        parts[*limit].1
                    });
                    net.edge(end, SINK, UNLIMITED);
                }
            }
            let wanted = rate * sources.iter().map(|(_, share)| share).sum::<f64>();
            let (passed, reached) = net.fill(wanted);
            if passed >= wanted * (1.0 - 1e-9) {
                break;
            }
            let cut: Vec<usize> =
                (0..parts.len()).filter(|at| reached[parts[*at].0] && !reached[parts[*at].1]).collect();
            let behind: f64 = sources.iter().filter(|(at, _)| reached[*at]).map(|(_, share)| share).sum();
            let sum: f64 = cut.iter().map(|at| self.limits[*at].most).sum();
            rate = sum / behind;
            full = cut;
        }
        if full.is_empty() { (UNLIMITED, full) } else { (rate, full) }
    }

    /// The limits that are full.
    fn full(&self, full: &[usize]) -> Full {
        let first = &self.limits[full[0]];
        let like = |at: &usize| {
            let l = &self.limits[*at];
            let kind = core::mem::discriminant::<Part>;
            kind(&l.part) == kind(&first.part) && (l.most - first.most).abs() <= first.most * 0.001
        };
        let passes = if first.weighed {
            Passes::Bytes { bytes: first.most * self.bytes }
        } else {
            Passes::Commands { commands: first.most }
        };
        Full { part: first.part.clone(), passes, others: full.len() - 1, alike: full.iter().all(like) }
    }
}

fn predict(site: &Site, arrays: &[Array], load: Load) -> Prediction {
    let mut view = View::of(site, arrays, load);
    let (rate, full) = view.most(load.write);
    if full.is_empty() {
        return Prediction { load, iops: None, at_most: true, mbps: None, limit: None, then: None };
    }
    let limit = Some(view.full(&full));
    for at in &full {
        view.limits[*at].most = UNLIMITED;
    }
    let (next, behind) = view.most(load.write);
    let then = (!behind.is_empty() && next > rate * 1.000_1).then(|| (view.full(&behind), next));
    let bytes = f64::from(load.bytes);
    let silent = |name: &String| site.find(name).is_ok_and(|d| !d.ability.knows(load.write, bytes));
    // What every command passes, and of which less is known than what this load takes of it, may be full before.
    let vague = |part: &usize| site.says(*part, load.write, bytes) != Says::Exactly;
    let at_most = arrays.iter().flat_map(|a| &a.drives).any(silent) || site.common.iter().any(vague);
    Prediction { load, iops: Some(rate), at_most, mbps: Some(rate * bytes / 1e6), limit, then }
}
