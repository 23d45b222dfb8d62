//! A better layout of the same drives: legs apart, shares that fit.

use super::site::{Ability, Drive, Site};
use super::{Array, Better, Gain, LOADS, PlanError, Prediction, View, predict};
use std::collections::BTreeMap;

/// Largest weight of an array in a stripe.
const WEIGHT_MAX: u32 = 64;
/// A layout is better from here on.
const GAIN: f64 = 0.03;

/// Whole weights in the ratio of these rates, as small as fits within two parts of a hundred.
fn weights(rates: &[f64]) -> Vec<u32> {
    let most = rates.iter().copied().fold(0.0, f64::max);
    if !most.is_finite() || most <= 0.0 {
        return vec![1; rates.len()];
    }
    let with = |scale: u32| -> Vec<u32> {
        let one = |r: &f64| ((r / most * f64::from(scale)).round() as u32).clamp(1, WEIGHT_MAX);
        rates.iter().map(one).collect()
    };
    // A weight that is too large slows all: the array that is full first decides.
    let loss = |w: &[u32]| {
        let rate = w.iter().zip(rates).map(|(w, r)| r / f64::from(*w)).fold(f64::MAX, f64::min);
        1.0 - rate * w.iter().sum::<u32>() as f64 / rates.iter().sum::<f64>()
    };
    (1..=WEIGHT_MAX).map(with).find(|w| loss(w) < 0.02).unwrap_or_else(|| {
        (1..=WEIGHT_MAX).map(with).min_by(|a, b| loss(a).total_cmp(&loss(b))).unwrap_or_default()
    })
}

/// How fast drives are beside each other, where something is known: reads and writes of 128 KiB.
fn speed(d: &Drive) -> f64 {
    let able: Ability = d.able();
    let rate = |write| able.rate(write, f64::from(LOADS[2].bytes));
    match (rate(false), rate(true)) {
        (Some(r), Some(w)) => (r * w).sqrt(),
        (r, w) => r.or(w).unwrap_or(0.0),
    }
}

/// A drive that may become a leg.
struct Candidate<'a> {
    /// Its place in the order in which they were named.
    named: usize,
    drive: &'a Drive,
    /// How fast it is.
    speed: f64,
    /// Its node and switch, as a number.
    place: usize,
}

/// Mirrors of `legs` drives each: the legs of each in different nodes where there are some, else below different
/// switches, and alike in speed. Drives that are left over are named in the second list.
///
/// # Errors
/// A drive is not there.
pub fn pair(
    site: &Site,
    drives: &[String],
    legs: usize,
) -> Result<(Vec<Vec<String>>, Vec<String>), PlanError> {
    // Places, each with how many are left there: a node and what hangs below one switch of it.
    let mut places: BTreeMap<(Option<u32>, Option<&String>), usize> = BTreeMap::new();
    let mut crowd: Vec<usize> = Vec::new();
    let mut left: Vec<Candidate> = Vec::new();
    for (named, name) in drives.iter().enumerate() {
        let drive = site.find(name)?;
        let next = places.len();
        let place = *places.entry((drive.node, drive.bank.as_ref())).or_insert(next);
        crowd.resize(places.len(), 0);
        crowd[place] += 1;
        left.push(Candidate { named, drive, speed: speed(drive), place });
    }
    // Stable: as they were named, among equals.
    left.sort_by(|a, b| b.speed.total_cmp(&a.speed));
    let mut out = Vec::new();
    while left.len() >= legs.max(1) {
        let mut mirror: Vec<Candidate> = Vec::new();
        while mirror.len() < legs.max(1) {
            let fastest = mirror.first().map_or(left[0].speed, |c| c.speed);
            // What matters most comes first: another node, another switch, the same speed, where most are left.
            let near = |c: &Candidate| {
                let with = |same: &dyn Fn(&Drive) -> bool| mirror.iter().filter(|o| same(o.drive)).count();
                let node = with(&|o| o.node.is_some() && o.node == c.drive.node);
                let bank = with(&|o| o.bank.is_some() && o.bank == c.drive.bank);
                let slower = (fastest - c.speed).abs() > fastest * 0.05;
                (node, bank, slower, usize::MAX - crowd[c.place])
            };
            let best = (0..left.len()).min_by_key(|i| (near(&left[*i]), *i)).expect("some are left");
            let chosen = left.remove(best);
            crowd[chosen.place] -= 1;
            mirror.push(chosen);
        }
        out.push(mirror);
    }
    // The order in which they were named is the one in which people look for them.
    let names = |mut list: Vec<Candidate>| {
        list.sort_by_key(|c| c.named);
        list.into_iter().map(|c| drives[c.named].clone()).collect::<Vec<_>>()
    };
    out.sort_by_key(|mirror| mirror.iter().map(|c| c.named).min());
    Ok((out.into_iter().map(names).collect(), names(left)))
}

/// A layout of these drives: mirrors of `legs` each, or single drives, with shares that fit; and what is left over.
///
/// # Errors
/// A drive is not there.
pub fn propose(site: &Site, drives: &[String], legs: usize) -> Result<(Vec<Array>, Vec<String>), PlanError> {
    let (mirrors, rest) = pair(site, drives, legs)?;
    let mut arrays: Vec<Array> = mirrors.into_iter().map(|drives| Array { drives, weight: 1.0 }).collect();
    let weights = fitting(site, &arrays);
    for (array, weight) in arrays.iter_mut().zip(weights) {
        array.weight = f64::from(weight);
    }
    Ok((arrays, rest))
}

/// Shares that fit what each array can, behind links of its own and with its part of unfair ones.
pub(super) fn fitting(site: &Site, arrays: &[Array]) -> Vec<u32> {
    // The network and the shards are the same for all.
    let mut site = site.clone();
    site.common.clear();
    let site = &site;
    // Each alone, yet with what it gets of a link while the others work too.
    let views = [LOADS[2], LOADS[3]].map(|load| (load.write, View::of(site, arrays, load)));
    let alone = |i: usize| {
        let rate = |(write, view): &(bool, View)| {
            let (most, full) = view.alone(i).most(*write);
            (!full.is_empty()).then_some(most)
        };
        match (rate(&views[0]), rate(&views[1])) {
            (Some(r), Some(w)) => Some((r * w).sqrt()),
            (r, w) => r.or(w),
        }
    };
    let rates: Option<Vec<f64>> = (0..arrays.len()).map(alone).collect();
    rates.map_or_else(|| vec![1; arrays.len()], |rates| weights(&rates))
}

/// The same drives, laid out better; None if they are as good as they are.
pub(super) fn better(site: &Site, arrays: &[Array], now: &[Prediction]) -> Option<Better> {
    let mut why = Vec::new();
    let mut new = arrays.to_vec();
    let legs = arrays[0].drives.len();
    if legs > 1 && arrays.iter().all(|a| a.drives.len() == legs) {
        let all: Vec<String> = arrays.iter().flat_map(|a| a.drives.clone()).collect();
        let drive = |name: &String| site.find(name).ok();
        // How many pairs of legs share a switch, or a node.
        let together = |mirrors: &[Vec<String>], same: &dyn Fn(&Drive, &Drive) -> bool| {
            let pairs = |m: &Vec<String>| {
                let d: Vec<&Drive> = m.iter().filter_map(drive).collect();
                (0..d.len())
                    .flat_map(|i| (0..i).map(move |j| (i, j)))
                    .filter(|(i, j)| same(d[*i], d[*j]))
                    .count()
            };
            mirrors.iter().map(pairs).sum::<usize>()
        };
        let bank = |a: &Drive, b: &Drive| a.bank.is_some() && a.bank == b.bank;
        let node = |a: &Drive, b: &Drive| a.node.is_some() && a.node == b.node;
        let before: Vec<Vec<String>> = arrays.iter().map(|a| a.drives.clone()).collect();
        let (after, _) = pair(site, &all, legs).ok()?;
        let (banks, nodes) = (
            (together(&before, &bank), together(&after, &bank)),
            (together(&before, &node), together(&after, &node)),
        );
        if banks.1 < banks.0 {
            why.push(Gain::SwitchesApart { pairs: banks.1, before: banks.0 });
        }
        if nodes.1 < nodes.0 {
            why.push(Gain::NodesApart { pairs: nodes.1, before: nodes.0 });
        }
        if !why.is_empty() {
            for (array, drives) in new.iter_mut().zip(after) {
                array.drives = drives;
            }
        }
    }
    let fitting = fitting(site, &new);
    let mut weighted = new.clone();
    for (array, weight) in weighted.iter_mut().zip(&fitting) {
        array.weight = f64::from(*weight);
    }
    let predictions = |arrays: &[Array]| LOADS.iter().map(|l| predict(site, arrays, *l)).collect::<Vec<_>>();
    let gain = |p: &[Prediction]| {
        let each = p.iter().zip(now).filter_map(|(new, old)| Some((new.iops? / old.iops?, new.load.name)));
        each.fold((1.0, ""), |best, this| if this.0 > best.0 { this } else { best })
    };
    let with = predictions(&weighted);
    let (factor, load) = gain(&with);
    let loses = with
        .iter()
        .zip(now)
        .any(|(new, old)| new.iops.zip(old.iops).is_some_and(|(new, old)| new < old * (1.0 - GAIN)));
    if factor > 1.0 + GAIN && !loses {
        why.push(Gain::Faster { load, factor, weights: fitting });
        return Some(Better { why, arrays: weighted, predictions: with });
    }
    (!why.is_empty()).then(|| Better { why, predictions: predictions(&new), arrays: new })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_small_whole_numbers_that_fit() {
        assert_eq!(weights(&[200.0, 400.0, 400.0]), [1, 2, 2]);
        assert_eq!(weights(&[832.0, 1652.0, 1648.0, 1657.0]), [1, 2, 2, 2]);
        assert_eq!(weights(&[100.0, 100.0]), [1, 1]);
        assert_eq!(weights(&[3.0, 2.0]), [3, 2]);
        assert_eq!(weights(&[]), Vec::<u32>::new());
        let wild = weights(&[1.0, 1000.0]);
        assert!(wild[0] == 1 && wild[1] == 64);
    }
}
