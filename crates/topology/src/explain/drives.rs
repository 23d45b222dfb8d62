//! Drives that hold others up, mirrors that lack a leg, and work of our own on them.

use super::figure::Figure;
use super::finding::Finding;
use super::limit::{Limit, Slow};
use super::view::{APART, View, median};
use crate::drive::Drive;
use crate::health::{Health, Warning};
use crate::record::plain_name;
use crate::status::{LOAD_MIN, shape, weight};
use api::{ArrayLayout, Leg, Pool, State};

/// A drive of a pool that holds the others up, and why.
pub(super) fn slow_drives(view: &View, pool: &Pool, out: &mut Vec<Finding>) {
    let m = view.m;
    let legs: Vec<&Leg> = pool.arrays.iter().flat_map(|a| &a.legs).collect();
    let drives: Vec<&Drive> = legs.iter().filter_map(|l| m.drive_at(&l.path)).collect();
    let link = |d: &Drive| m.devices[m.device(d.device.as_deref()?)?].link;
    let rates: Vec<f64> = drives.iter().filter_map(|d| link(d)?.payload_mb()).collect();
    let usual_rate = median(rates.clone());
    let usual_us = median(drives.iter().filter_map(|d| d.activity?.read_us).collect());
    // What the mirror thought of a leg while it had work says nothing of now, if nobody reads.
    let reads_seen = drives.iter().filter_map(|d| d.activity.map(|a| a.reads)).reduce(|a, b| a + b);
    let works = drives.iter().any(|d| d.activity.is_some_and(|a| a.reads + a.writes >= LOAD_MIN));
    for drive in &drives {
        let slow_leg =
            legs.iter().any(|l| l.slow && m.drive_at(&l.path).is_some_and(|d| d.name == drive.name));
        let us = drive.activity.and_then(|a| a.read_us);
        let late =
            us.zip(usual_us).is_some_and(|(us, usual)| us > 2.0 * usual && us > 100.0) && drives.len() > 2;
        // What Linux measured of both now counts for more than what the mirror thought of its legs a while ago.
        let as_fast = us.zip(usual_us).is_some_and(|(us, usual)| us < 1.3 * usual);
        let slow_leg = slow_leg && !as_fast && reads_seen != Some(0.0);
        let own_rate = link(drive).and_then(|l| l.payload_mb());
        let narrow = own_rate.zip(usual_rate).is_some_and(|(own, usual)| own < usual * (1.0 - APART));
        let hot = hot(drive);
        // What somebody did to it on purpose is told as that.
        let shaped = |d: &&api::Drive| {
            let shape = shape(d);
            shape.latency_us > 0 || shape.iops_max > 0 || shape.mbps_max > 0
        };
        let mine = |d: &&api::Drive| m.drive_at(&d.path).is_some_and(|d| d.name == drive.name);
        let shaped = view.after.drives.iter().filter(shaped).any(|d| mine(&d));
        if !(narrow || hot.is_some() || (slow_leg || late) && !shaped) {
            continue;
        }
        let trained = if narrow { link(drive).and_then(|l| Some((l, l.now?))) } else { None };
        let wear = drive.health.as_ref().and_then(Health::worn);
        let why = match (trained, hot, wear) {
            (Some((l, now)), ..) => match l.degraded() {
                Some((_, could)) => Slow::LinkTrainedLow { now: now.name(), could: could.name() },
                None => Slow::SlotNarrow { now: now.name() },
            },
            (None, Some(hot), _) => hot,
            (None, None, Some(wear)) => Slow::Worn { wear },
            (None, None, None) => {
                let short = |f: &dyn Fn(&Drive) -> Option<u64>| {
                    let usual = median(drives.iter().filter_map(|d| f(d)).map(|n| n as f64).collect())?;
                    f(drive).filter(|n| (*n as f64) < usual / 1.9).map(|n| (n, usual))
                };
                if let Some((queues, usual)) = short(&|d| Some(u64::from(d.queues)).filter(|n| *n > 0)) {
                    Slow::FewQueues { queues, usual }
                } else if let Some((commands, usual)) = short(&|d| d.queue_depth) {
                    Slow::ShallowQueue { commands, usual }
                } else {
                    unexplained(drive, &drives)
                }
            }
        };
        let mut arithmetic = Vec::new();
        if let (Some(own), true) = (own_rate, rates.len() == drives.len() && narrow) {
            // A read goes to one leg of an array, so its legs add up; the stripe is as fast as the array that is full first.
            let rate = |l: &Leg| m.drive_at(&l.path).and_then(link).and_then(|l| l.payload_mb());
            let arrays: Vec<(f64, f64)> = pool
                .arrays
                .iter()
                .enumerate()
                .map(|(i, a)| (a.legs.iter().filter_map(rate).sum(), f64::from(weight(pool, i))))
                .collect();
            let sum: f64 = arrays.iter().map(|a| a.0).sum();
            let least = arrays.iter().map(|a| a.0).fold(f64::MAX, f64::min);
            let weights: f64 = arrays.iter().map(|a| a.1).sum();
            let now = arrays.iter().map(|a| a.0 / a.1).fold(f64::MAX, f64::min) * weights;
            arithmetic.push(Figure::PoolReads {
                pool: pool.name.clone(),
                own_mb: own,
                usual_mb: usual_rate.unwrap_or(0.0),
                arrays: arrays.len(),
                slowest_mb: least,
                weighted_mb: sum,
                now_mb: (now < 0.95 * sum).then_some(now),
            });
        }
        if let (Some(us), Some(usual)) = (us, usual_us) {
            arithmetic.push(Figure::ReadTakes { us, usual });
        }
        let (name, of) = (drive.name.clone(), pool.name.clone());
        let about = vec![of.clone(), name.clone()];
        out.push(Finding::new(Limit::DriveSlow { drive: name, pool: of, works, why }, about, arithmetic));
    }
}

/// It makes itself slower because it is warm, or says that it is too warm.
fn hot(drive: &Drive) -> Option<Slow> {
    let t = drive.temperature?;
    match t.warning {
        Some(limit) if t.now >= limit => Some(Slow::Hot { celsius: t.now, limit }),
        // The same warning tells of cold.
        _ => {
            let says = drive.health.as_ref().is_some_and(|h| h.warns(Warning::Temperature));
            (says && t.now > 40.0).then_some(Slow::SaysHot { celsius: t.now })
        }
    }
}

/// Nothing that was read is a reason: what was read.
fn unexplained(drive: &Drive, beside: &[&Drive]) -> Slow {
    let Some(health) = &drive.health else { return Slow::HealthNotRead };
    let others = beside.iter().filter(|d| d.name != drive.name).filter_map(|d| d.health.as_ref());
    let (used, throttled_seconds) = (health.used, health.throttled_seconds);
    Slow::NotSeen { used, others_most: others.map(|h| h.used).max(), throttled_seconds }
}

pub(super) fn repairs(view: &View, pool: &Pool, writes: f64, out: &mut Vec<Finding>) {
    let before = view.before.pools.iter().find(|p| p.name == pool.name);
    for (i, array) in pool.arrays.iter().enumerate() {
        let name = format!("{} {}-{i}", pool.name, array.layout.word());
        let mut put = |limit, figure| out.push(Finding::new(limit, vec![pool.name.clone()], vec![figure]));
        if let Some(resync) = &array.resync {
            let figure = Figure::ResyncMoves { bytes: resync.rate as f64, seconds_left: resync.seconds_left };
            put(Limit::Resync { array: name.clone() }, figure);
        } else if array.layout == ArrayLayout::Mirror && array.state == State::Degraded {
            let gone: Vec<String> = array
                .legs
                .iter()
                .filter(|l| l.state != State::Optimal)
                .map(|l| plain_name(&l.path).to_string())
                .collect();
            let legs = array.legs.len();
            let serve = legs - gone.len();
            let part = serve as f64 / legs.max(1) as f64;
            let limit = Limit::MirrorDegraded { array: name.clone(), gone, serve, legs };
            put(limit, Figure::ReadsLeft { part });
        }
        let was = before.and_then(|p| p.arrays.get(i)).map(|a| a.regions_dirty);
        if let Some(was) = was {
            let fresh = array.regions_dirty.saturating_sub(was) as f64 / view.seconds;
            // Each region that becomes dirty costs a durable write of the bitmap before the data.
            if writes > LOAD_MIN && fresh > 0.05 * writes {
                let (dirty, regions) = (array.regions_dirty, array.regions);
                let figure = Figure::RegionsDirtied { fresh, writes, dirty, regions };
                put(Limit::BitmapCold { array: name }, figure);
            }
        }
    }
    if pool.scrub.running {
        let limit = Limit::Scrub { pool: pool.name.clone() };
        let figure = Figure::ScrubMoves { bytes: pool.scrub.rate as f64 };
        out.push(Finding::new(limit, vec![pool.name.clone()], vec![figure]));
    }
}
