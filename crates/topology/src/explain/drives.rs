//! Drives that hold others up, mirrors that lack a leg, and work of our own on them.

use super::finding::{Finding, Kind};
use super::view::{APART, View, median};
use crate::drive::Drive;
use crate::health::{Health, Warning};
use crate::own::{LOAD_MIN, OwnPool};
use crate::record::plain_name;
use crate::words::{count, mb, micros, names, percent};

/// A drive of a pool that holds the others up, and why.
pub(super) fn slow_drives(view: &View, pool: &OwnPool, out: &mut Vec<Finding>) {
    let m = view.m;
    let legs: Vec<&crate::own::OwnLeg> = pool.arrays.iter().flat_map(|a| &a.legs).collect();
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
        let shaped = |d: &&crate::own::OwnDrive| d.latency_us > 0 || d.iops_max > 0 || d.mbps_max > 0;
        let mine = |d: &&crate::own::OwnDrive| m.drive_at(&d.path).is_some_and(|d| d.name == drive.name);
        let shaped = view.after.drives.iter().filter(shaped).any(|d| mine(&d));
        if !(narrow || hot.is_some() || (slow_leg || late) && !shaped) {
            continue;
        }
        let mut why = String::new();
        let mut next = "millrace drive show, and millrace drive replace if it stays so".to_string();
        if narrow && let Some(l) = link(drive) {
            let now = l.now.map_or(String::new(), |n| n.name());
            (why, next) = match l.degraded() {
                Some((_, could)) => (
                    format!("its link runs at {now} where both ends can {}", could.name()),
                    "seat it again, then millrace topology".into(),
                ),
                None => {
                    (format!("its slot gives it {now}"), "millrace topology, for a slot that can more".into())
                }
            };
        } else if let Some(heat) = hot {
            why = heat;
            next = "more air, or millrace drive replace".into();
        } else if let Some(worn) = drive.health.as_ref().and_then(Health::worn) {
            why = worn;
            next = format!("millrace drive replace {}", drive.name);
        } else {
            let short = |f: &dyn Fn(&Drive) -> Option<u64>| {
                let usual = median(drives.iter().filter_map(|d| f(d)).map(|n| n as f64).collect())?;
                f(drive).filter(|n| (*n as f64) < usual / 1.9).map(|n| (n, usual))
            };
            if let Some((n, usual)) = short(&|d| Some(u64::from(d.queues)).filter(|n| *n > 0)) {
                why = format!("it has {n} queues where the others have {usual:.0}");
            } else if let Some((n, usual)) = short(&|d| d.queue_depth) {
                why = format!("its queue takes {n} commands where the others' take {usual:.0}");
            }
        }
        let mut arithmetic = Vec::new();
        if let (Some(own), true) = (own_rate, rates.len() == drives.len() && narrow) {
            // A read goes to one leg of an array, so its legs add up; the stripe is as fast as the array that is full first.
            let rate =
                |l: &crate::own::OwnLeg| m.drive_at(&l.path).and_then(link).and_then(|l| l.payload_mb());
            let arrays: Vec<(f64, f64)> = pool
                .arrays
                .iter()
                .map(|a| (a.legs.iter().filter_map(rate).sum(), a.weight.max(1) as f64))
                .collect();
            let sum: f64 = arrays.iter().map(|a| a.0).sum();
            let least = arrays.iter().map(|a| a.0).fold(f64::MAX, f64::min);
            let weights: f64 = arrays.iter().map(|a| a.1).sum();
            let now = arrays.iter().map(|a| a.0 / a.1).fold(f64::MAX, f64::min) * weights;
            let mut words = format!(
                "{} of {} MB/s; reads of {}, {} array{}: a plain stripe gives {} × {least:.0} = {:.0} MB/s, ours by weight {sum:.0}",
                own.round(),
                usual_rate.unwrap_or(0.0).round(),
                pool.name,
                arrays.len(),
                if arrays.len() == 1 { "" } else { "s" },
                arrays.len(),
                least * arrays.len() as f64,
            );
            if now < 0.95 * sum {
                words.push_str(&format!("; as its weights are now, {now:.0}"));
            }
            arithmetic.push(words);
        }
        if let (Some(us), Some(usual)) = (us, usual_us) {
            arithmetic.push(format!(
                "a read takes {}, {} on the drive in the middle",
                micros(us),
                micros(usual)
            ));
        }
        if why.is_empty() {
            why = unexplained(drive, &drives);
        }
        out.push(Finding {
            kind: Kind::SlowDrive,
            about: vec![pool.name.clone(), drive.name.clone()],
            sentence: format!(
                "The drive {} {} than the others of {}: {why}.",
                drive.name,
                if works { "is slower" } else { "can do less" },
                pool.name
            ),
            arithmetic,
            next: next.replace("millrace drive show,", &format!("millrace drive show {},", drive.name)),
        });
    }
}

/// It makes itself slower because it is warm, or says that it is too warm.
fn hot(drive: &Drive) -> Option<String> {
    let t = drive.temperature?;
    match t.warning {
        Some(limit) if t.now >= limit => {
            Some(format!("it is at {:.0} °C, and from {limit:.0} °C on it makes itself slower", t.now))
        }
        // The same warning tells of cold.
        _ => drive
            .health
            .as_ref()
            .filter(|h| h.warns(Warning::Temperature) && t.now > 40.0)
            .map(|_| format!("it is at {:.0} °C, and says itself that this is too much", t.now)),
    }
}

/// Nothing that was read is a reason: what was read.
fn unexplained(drive: &Drive, beside: &[&Drive]) -> String {
    let Some(health) = &drive.health else {
        return "why is not seen (how worn it is was not read: NVMe drives alone tell it, and to root alone)"
            .into();
    };
    let others = beside.iter().filter(|d| d.name != drive.name).filter_map(|d| d.health.as_ref());
    let most = others.map(|h| h.used).max();
    let others = most.map_or(String::new(), |most| format!(", the others at most {most} %"));
    let heat = match health.throttled_seconds {
        0 => String::new(),
        s => format!("; heat made it slower for {s} s in its life"),
    };
    format!("why is not seen (it is not hot, and has used {} % of its rated life{others}{heat})", health.used)
}

pub(super) fn repairs(view: &View, pool: &OwnPool, writes: f64, out: &mut Vec<Finding>) {
    let before = view.before.pools.iter().find(|p| p.name == pool.name);
    for (i, array) in pool.arrays.iter().enumerate() {
        let name = format!("{} {}-{i}", pool.name, array.layout);
        if let Some((rate, left)) = array.resync {
            let left = left.map_or(String::new(), |s| format!(", {s} s left"));
            out.push(Finding {
                kind: Kind::Repair,
                about: vec![pool.name.clone()],
                sentence: format!("A resync of {name} takes a part of its drives."),
                arithmetic: vec![format!("{} read and written by it{left}", mb(rate as f64))],
                next: "millrace status --watch: it yields to hosts and ends by itself".into(),
            });
        } else if array.layout == "mirror" && array.state == "degraded" {
            let gone: Vec<String> = array
                .legs
                .iter()
                .filter(|l| l.state != "optimal")
                .map(|l| plain_name(&l.path).to_string())
                .collect();
            let serve = array.legs.len() - gone.len();
            out.push(Finding {
                kind: Kind::Degraded,
                about: vec![pool.name.clone()],
                sentence: format!(
                    "{name} lacks {}: {serve} of {} legs serve its reads.",
                    names(&gone),
                    array.legs.len()
                ),
                arithmetic: vec![format!(
                    "reads of it have {} of what they had",
                    percent(serve as f64 / array.legs.len().max(1) as f64)
                )],
                next: "millrace status, for why, and millrace drive return or drive replace".into(),
            });
        }
        let was = before.and_then(|p| p.arrays.get(i)).map(|a| a.regions_dirty);
        if let Some(was) = was {
            let fresh = array.regions_dirty.saturating_sub(was) as f64 / view.seconds;
            // Each region that becomes dirty costs a durable write of the bitmap before the data.
            if writes > LOAD_MIN && fresh > 0.05 * writes {
                out.push(Finding {
                    kind: Kind::ColdBitmap,
                    about: vec![pool.name.clone()],
                    sentence: format!("The bitmap of {name} is cold: writes touch regions that were clean."),
                    arithmetic: vec![format!(
                        "{} regions a second become dirty under {} writes a second; {} of {} are",
                        count(fresh),
                        count(writes),
                        array.regions_dirty,
                        array.regions
                    )],
                    next: "measure again in a minute: a region that is dirty costs nothing more".into(),
                });
            }
        }
    }
    if let Some(rate) = pool.scrub {
        out.push(Finding {
            kind: Kind::Repair,
            about: vec![pool.name.clone()],
            sentence: format!("A scrub of {} takes a part of its drives.", pool.name),
            arithmetic: vec![format!("{} read by it", mb(rate as f64))],
            next: format!("millrace pool show {}: it yields to hosts and ends by itself", pool.name),
        });
    }
}
