//! Commands that wait in drives. Little's law holds of each of them too: what is under way in a drive is its rate times
//! its time, and where that time has grown with what is under way, more of it brings nothing.

use super::figure::{Figure, Known};
use super::finding::Finding;
use super::limit::Limit;
use super::view::{FULL, View};
use crate::drive::Drive;

/// What drives have under way.
#[derive(Default)]
pub(super) struct Waiting {
    /// Operations under way in all drives that work for the head, mean.
    pub(super) operations: f64,
    /// These drives.
    pub(super) drives: Vec<String>,
    /// Mean time of an operation, microseconds.
    pub(super) us: f64,
    /// Mean time of an operation where few were under way, as far as that is known.
    pub(super) bare_us: Option<f64>,
    /// Drives whose ability for such a load nobody has measured.
    pub(super) unmeasured: Vec<String>,
}

impl Waiting {
    /// More is under way in the drives than their queues need to be busy, as far as one can tell from outside: flash
    /// works on some commands at a time in one drive, and a disk that turns on one.
    pub(super) fn may_be_full(&self, in_flight: f64) -> bool {
        let deep = self.operations > 8.0 * self.drives.len() as f64 || self.us > 1_000.0;
        !self.unmeasured.is_empty() && self.operations >= in_flight / 2.0 && deep
    }
}

/// What a drive does now, mostly.
struct Work {
    write: bool,
    /// A second.
    rate: f64,
    us: f64,
    bytes: f64,
    under_way: f64,
    /// Hardly any of it is of the other direction.
    pure: bool,
}

fn work(drive: &Drive) -> Option<Work> {
    let a = drive.activity?;
    let under_way = (a.reads * a.read_us.unwrap_or(0.0) + a.writes * a.write_us.unwrap_or(0.0)) / 1e6;
    let write = a.writes > a.reads;
    let (rate, us, moved, other) = if write {
        (a.writes, a.write_us?, a.write_bytes, a.reads)
    } else {
        (a.reads, a.read_us?, a.read_bytes, a.writes)
    };
    (rate > 0.0).then(|| Work { write, rate, us, bytes: moved / rate, under_way, pure: other <= 0.1 * rate })
}

/// Drives that can no more: by what was measured of each alone, or since their operations take far longer than they used
/// to with so many under way.
pub(super) fn saturated(view: &View, out: &mut Vec<Finding>) -> Waiting {
    let m = view.m;
    let mut waiting = Waiting::default();
    let mut full: Vec<(&Drive, Work, Known)> = Vec::new();
    let (mut all_us, mut all_rate, mut bare) = (0.0, 0.0, Vec::new());
    for own in view.after.drives.iter().filter(|d| d.pool.is_some()) {
        let Some(drive) = m.drive_at(&own.path) else { continue };
        let Some(work) = work(drive) else { continue };
        waiting.operations += work.under_way;
        waiting.drives.push(drive.name.clone());
        (all_us, all_rate) = (all_us + work.us * work.rate, all_rate + work.rate);
        let usual = drive.usual[usize::from(work.write)];
        // What an operation took before holds of those of its size.
        let usual = usual.filter(|u| u.bytes <= 2.0 * work.bytes && work.bytes <= 2.0 * u.bytes);
        bare.extend(usual.map(|u| u.us.min(work.us)));
        match m.ability(drive, work.write, work.bytes) {
            Some(most) => {
                if work.pure && work.rate >= FULL * most {
                    full.push((drive, work, Known::Measured { rate: most }));
                }
                continue;
            }
            None => waiting.unmeasured.push(drive.name.clone()),
        }
        let grown = usual.filter(|u| work.us >= 3.0 * u.us && work.under_way >= 4.0);
        if let Some(usual) = grown {
            full.push((drive, work, Known::Before { us: usual.us }));
        }
    }
    waiting.us = if all_rate > 0.0 { all_us / all_rate } else { 0.0 };
    waiting.bare_us = bare.into_iter().reduce(f64::max);
    if full.is_empty() {
        return waiting;
    }
    let who: Vec<String> = full.iter().map(|(d, ..)| d.name.clone()).collect();
    let wait: f64 = full.iter().map(|(_, w, _)| w.under_way).sum();
    let figure = |(drive, work, known_by): &(&Drive, Work, Known)| Figure::DriveWorks {
        drive: drive.name.clone(),
        write: work.write,
        rate: work.rate,
        us: work.us,
        under_way: work.under_way,
        known_by: *known_by,
    };
    let arithmetic = full.iter().take(3).map(figure).collect();
    out.push(Finding::new(Limit::DrivesFull { drives: who.clone(), waiting: wait }, who, arithmetic));
    waiting
}
