//! What a pool's configuration says beyond arrays, volumes and exports: docs/formats/config.md, "Extras".

use array::format::feature;
use base::Uuid;
use base::codec::{Malformed, Reader, Writer};
use finding::Cause;
use volume::{Caps, Run, WEIGHT, WEIGHTS};

/// Written behind the rest, and only if there is something to say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extras {
    /// Drives that wait to take a failed leg's place, in the order in which they are used.
    pub spares: Vec<SpareRow>,
    /// The pool's scrubs.
    pub scrub: ScrubRow,
    /// Drives that take the places of others.
    pub replacements: Vec<Replacement>,
    /// Volumes that are capped.
    pub caps: Vec<CapsRow>,
    /// Volumes whose weight is not the usual one.
    pub weights: Vec<WeightRow>,
    /// Some space is uncleared, or returned and not yet known to the arrays' maps.
    pub uncleared: Option<Returned>,
    /// Drives that failed, and that nobody has returned or used again since.
    pub failed: Vec<FailedRow>,
}

/// Most drives that a configuration lists as failed: those that are no legs any more are forgotten first.
pub(super) const FAILED_MAX: usize = array::format::DRIVES_MAX;

/// A drive that an order or its errors took out of its mirror.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FailedRow {
    /// The drive, as its label says.
    pub drive: Uuid,
    /// The place where it was last seen.
    pub path: String,
    /// Its serial number, empty if it has none.
    pub serial: String,
    /// The reason, as JSON of the API (docs/api-codes.md).
    pub why: String,
    /// Its operations that failed or were late by then.
    pub errors: u64,
    /// Seconds since 1970-01-01 UTC.
    pub since: u64,
    /// Another drive has its place: it is no leg any more.
    pub removed: bool,
    /// The leg that was a spare and took its place, as long as no other spare was added since; else nil.
    pub spare: Uuid,
}

impl FailedRow {
    /// The reason.
    pub fn cause(&self) -> Cause {
        Cause::of_text(&self.why)
    }

    /// Whether it is a drive with this serial number at this path. Where there is no serial number, the path alone tells.
    pub fn is_like(&self, serial: &str, path: &str) -> bool {
        if self.serial.is_empty() || serial.is_empty() { self.path == path } else { self.serial == serial }
    }
}

/// Space that no host may read as it lies there: docs/formats/uncleared.md.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Returned {
    /// The life of the arrays' maps: the generation of the configuration in which it began.
    pub life: u64,
    /// All free space is returned.
    pub all_free: bool,
    /// Runs of granules that volumes have given back, and that nobody may have before the maps say so.
    pub runs: Vec<Run>,
}

/// A volume's weight, another one than the usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightRow {
    /// The volume.
    pub volume: Uuid,
    /// Its weight.
    pub weight: u16,
}

/// A volume's caps, at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapsRow {
    /// The volume.
    pub volume: Uuid,
    /// What its hosts may start in a second.
    pub caps: Caps,
}

/// A drive that takes another's place: once it is in sync, the other one leaves and loses its label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replacement {
    /// The drive that leaves, or has left.
    pub old: Uuid,
    /// Where it was last seen.
    pub old_path: String,
    /// The drive that comes.
    pub new: Uuid,
}

/// A hot spare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpareRow {
    /// The drive, as its label says.
    pub drive: Uuid,
    /// Where it was last seen.
    pub path: String,
}

/// Scrubs: when, the last one, the one under way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScrubRow {
    /// One begins so many days after the last one ended; 0 for never.
    pub every_days: u32,
    /// The scheduled ones repair.
    pub repair: bool,
    /// The last one that came to its end.
    pub last: Option<LastScrub>,
    /// The one under way.
    pub run: Option<ScrubRun>,
}

/// A scrub that came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastScrub {
    /// Seconds since 1970-01-01 UTC; 0 if none has come to its end, and one that was stopped found something.
    pub ended: u64,
    /// What it found.
    pub found: Found,
}

/// What a scrub found: bytes of array space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Legs differed.
    pub differed: u64,
    /// Of these, written again.
    pub repaired: u64,
    /// They could not be compared.
    pub unreadable: u64,
}

/// A scrub under way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScrubRun {
    /// Seconds since 1970-01-01 UTC.
    pub began: u64,
    /// Legs that differ are made equal.
    pub repair: bool,
    /// The drives that count where nobody knows, one for a mirror.
    pub prefer: Vec<Uuid>,
    /// For each array, the byte from which on it goes on.
    pub at: Vec<u64>,
    /// So far.
    pub found: Found,
}

fn put_found(w: &mut Writer, f: &Found) {
    w.u64(f.differed).u64(f.repaired).u64(f.unreadable);
}

fn get_found(r: &mut Reader<'_>) -> Result<Found, Malformed> {
    Ok(Found { differed: r.u64()?, repaired: r.u64()?, unreadable: r.u64()? })
}

fn get_bool(r: &mut Reader<'_>) -> Result<bool, Malformed> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed),
    }
}

fn put_failed(w: &mut Writer, rows: &[FailedRow]) {
    w.u16(rows.len() as u16);
    for row in rows {
        w.bytes(&row.drive.0).text(&row.path).text(&row.serial).text(&row.why);
        w.u64(row.errors).u64(row.since).u8(u8::from(row.removed)).bytes(&row.spare.0);
    }
}

fn get_failed(r: &mut Reader<'_>) -> Result<Vec<FailedRow>, Malformed> {
    let mut rows: Vec<FailedRow> = vec![];
    for _ in 0..r.u16()? {
        let (drive, path, serial, why) = (Uuid(r.array()?), r.text()?, r.text()?, r.text()?);
        let (errors, since, removed, spare) = (r.u64()?, r.u64()?, get_bool(r)?, Uuid(r.array()?));
        if rows.iter().any(|row| row.drive == drive) {
            return Err(Malformed);
        }
        rows.push(FailedRow { drive, path, serial, why, errors, since, removed, spare });
    }
    if rows.is_empty() || rows.len() > FAILED_MAX { Err(Malformed) } else { Ok(rows) }
}

impl Extras {
    /// Whether there is anything to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
    /// A scrub under way was told the good drives of several mirrors.
    pub fn prefers_several(&self) -> bool {
        self.scrub.run.as_ref().is_some_and(|run| run.prefer.len() > 1)
    }
    /// A drive that failed.
    pub fn failed(&self, drive: Uuid) -> Option<&FailedRow> {
        self.failed.iter().find(|row| row.drive == drive)
    }

    /// A drive has failed, or something else is known of one that has.
    pub(super) fn put_failed(&mut self, row: &FailedRow) {
        match self.failed.iter_mut().find(|known| known.drive == row.drive) {
            Some(known) => known.clone_from(row),
            None => self.failed.push(row.clone()),
        }
        if self.failed.len() > FAILED_MAX {
            let oldest = self.failed.iter().position(|row| row.removed).unwrap_or(0);
            self.failed.remove(oldest);
        }
    }

    /// Appends it to a configuration.
    pub fn encode(&self, w: &mut Writer) {
        w.u16(self.spares.len() as u16);
        for spare in &self.spares {
            w.bytes(&spare.drive.0).text(&spare.path);
        }
        let s = &self.scrub;
        w.u32(s.every_days).u8(u8::from(s.repair));
        w.u8(u8::from(s.last.is_some()));
        if let Some(last) = &s.last {
            w.u64(last.ended);
            put_found(w, &last.found);
        }
        w.u8(u8::from(s.run.is_some()));
        if let Some(run) = &s.run {
            let first = run.prefer.first().copied().unwrap_or_default();
            w.u64(run.began).u8(u8::from(run.repair)).bytes(&first.0).u16(run.at.len() as u16);
            run.at.iter().for_each(|at| {
                w.u64(*at);
            });
            put_found(w, &run.found);
        }
        if !self.replacements.is_empty()
            || self.prefers_several()
            || !self.caps.is_empty()
            || !self.weights.is_empty()
            || self.uncleared.is_some()
            || !self.failed.is_empty()
        {
            w.u16(self.replacements.len() as u16);
            for r in &self.replacements {
                w.bytes(&r.old.0).text(&r.old_path).bytes(&r.new.0);
            }
        }
        if let Some(run) = s.run.as_ref().filter(|_| self.prefers_several()) {
            w.u16(run.prefer.len() as u16);
            for drive in &run.prefer {
                w.bytes(&drive.0);
            }
        }
        if !self.caps.is_empty() {
            w.u16(self.caps.len() as u16);
            for row in &self.caps {
                w.bytes(&row.volume.0).u32(row.caps.iops_max).u32(row.caps.mbps_max);
            }
        }
        if !self.weights.is_empty() {
            w.u16(self.weights.len() as u16);
            for row in &self.weights {
                w.bytes(&row.volume.0).u16(row.weight);
            }
        }
        if let Some(returned) = &self.uncleared {
            w.u64(returned.life).u8(u8::from(returned.all_free)).u32(returned.runs.len() as u32);
            for run in &returned.runs {
                w.u64(run.first).u64(run.count);
            }
        }
        if !self.failed.is_empty() {
            put_failed(w, &self.failed);
        }
    }
    /// Reads what `encode` wrote. `incompat` are the feature bits of the slot: they say which parts there are.
    pub fn decode(r: &mut Reader<'_>, incompat: u64) -> Result<Self, Malformed> {
        let has = |bit| incompat & bit != 0;
        let (with_prefers, with_caps, with_weights) =
            (has(feature::PREFERS), has(feature::CAPS), has(feature::WEIGHTS));
        let with_uncleared = has(feature::UNCLEARED);
        let with_failed = has(feature::FAILED);
        let mut spares = vec![];
        for _ in 0..r.u16()? {
            spares.push(SpareRow { drive: Uuid(r.array()?), path: r.text()? });
        }
        let (every_days, repair) = (r.u32()?, get_bool(r)?);
        let last =
            if get_bool(r)? { Some(LastScrub { ended: r.u64()?, found: get_found(r)? }) } else { None };
        let run = if get_bool(r)? {
            let (began, repair, prefer) = (r.u64()?, get_bool(r)?, Uuid(r.array()?));
            let prefer = if prefer.is_nil() { vec![] } else { vec![prefer] };
            let at = (0..r.u16()?).map(|_| r.u64()).collect::<Result<Vec<_>, _>>()?;
            Some(ScrubRun { began, repair, prefer, at, found: get_found(r)? })
        } else {
            None
        };
        let (mut replacements, mut run) = (vec![], run);
        if !r.0.is_empty() {
            let count = r.u16()?;
            let more = with_prefers || with_caps || with_weights || with_uncleared || with_failed;
            if count == 0 && !more {
                return Err(Malformed);
            }
            for _ in 0..count {
                let (old, old_path, new) = (Uuid(r.array()?), r.text()?, Uuid(r.array()?));
                replacements.push(Replacement { old, old_path, new });
            }
        }
        if with_prefers {
            let drives = (0..r.u16()?).map(|_| Ok(Uuid(r.array()?))).collect::<Result<Vec<_>, _>>()?;
            let run = run.as_mut().ok_or(Malformed)?;
            if drives.len() < 2 || drives.first() != run.prefer.first() {
                return Err(Malformed);
            }
            run.prefer = drives;
        }
        let mut capped: Vec<CapsRow> = vec![];
        if with_caps {
            for _ in 0..r.u16()? {
                let (volume, iops_max, mbps_max) = (Uuid(r.array()?), r.u32()?, r.u32()?);
                let row = CapsRow { volume, caps: Caps { iops_max, mbps_max } };
                if row.caps.none() || capped.iter().any(|c| c.volume == volume) {
                    return Err(Malformed);
                }
                capped.push(row);
            }
            if capped.is_empty() {
                return Err(Malformed);
            }
        }
        let mut weights: Vec<WeightRow> = vec![];
        if with_weights {
            for _ in 0..r.u16()? {
                let row = WeightRow { volume: Uuid(r.array()?), weight: r.u16()? };
                let known = weights.iter().any(|w| w.volume == row.volume);
                if known || row.weight == WEIGHT || !WEIGHTS.contains(&row.weight) {
                    return Err(Malformed);
                }
                weights.push(row);
            }
            if weights.is_empty() {
                return Err(Malformed);
            }
        }
        let uncleared = if with_uncleared {
            let (life, all_free) = (r.u64()?, get_bool(r)?);
            let runs = (0..r.u32()?).map(|_| Ok(Run { first: r.u64()?, count: r.u64()? }));
            let runs = runs.collect::<Result<Vec<_>, _>>()?;
            if life == 0 || runs.iter().any(|run| run.count == 0) {
                return Err(Malformed);
            }
            Some(Returned { life, all_free, runs })
        } else {
            None
        };
        let failed = if with_failed { get_failed(r)? } else { vec![] };
        let scrub = ScrubRow { every_days, repair, last, run };
        let extras = Self { spares, scrub, replacements, caps: capped, weights, uncleared, failed };
        // What says nothing is not written: each configuration has one form.
        if extras.is_empty() { Err(Malformed) } else { Ok(extras) }
    }
}
