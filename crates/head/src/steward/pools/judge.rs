//! What may be done with the drives of a pool that were found: findings for the wrong, the partial and the stale.

use crate::order::{Notice, Refusal};
use crate::steward::context::probe::Probe;
use crate::steward::context::spare::is_spare;
use crate::steward::pools::fit::one_drive;
use crate::steward::pools::unfinished::never_finished;
use crate::steward::procedures::Procedures;
use crate::steward::state::config::{LegRow, PoolConfig};
use crate::steward::words::array_word;
use array::format::{
    Assembly, ConfigSlot, Found, LegState, LegVerdict, MembershipRecord, RecordArray, Verdict, assemble,
};
use base::DriveKind;
use base::Uuid;
use finding::{PoolDoubt, PoolNotice, PoolRefusal, PoolSide};

/// What would be done with the drives of a pool.
pub(crate) struct Judged {
    pub config: PoolConfig,
    pub generation: u64,
    pub record: MembershipRecord,
    pub assembly: Assembly,
    pub notices: Vec<Notice>,
}

impl Procedures {
    /// Judges the drives of a pool. A refusal says what is wrong.
    pub(crate) async fn judge(&self, uuid: Uuid, probes: &[Probe], force: bool) -> Result<Judged, Refusal> {
        let label_name = probes.iter().filter_map(|p| p.good_label()).map(|l| l.pool_name.clone()).next();
        let Some(label_name) = label_name else { return Err(PoolRefusal::PoolWithoutDrives.into()) };
        let label_pool = || label_name.clone();
        for p in probes {
            let label = p.good_label().expect("gathered by label");
            // To import a pool is to write to it: there is no import for reading alone.
            if let Some(newer) = p.newer() {
                let drive = p.info.path.clone();
                return Err(PoolRefusal::PoolNewer { pool: label_pool(), drive, newer }.into());
            }
            let twin = probes
                .iter()
                .find(|q| q.id != p.id && q.good_label().is_some_and(|l| l.drive == label.drive));
            if let Some(q) = twin.filter(|q| q.info.overlaps(&p.info)) {
                let how = one_drive(p, q);
                return Err(PoolRefusal::PoolDrivesAreOne { pool: label_pool(), how }.into());
            }
            if let Some(q) = twin {
                let (drive, other) = (p.info.path.clone(), q.info.path.clone());
                return Err(PoolRefusal::DriveCopied { drive, other }.into());
            }
        }
        let me = self.context().me();
        let mut notices: Vec<Notice> = vec![];
        let witness = match self.read_witness(uuid).await {
            Ok(w) => w,
            Err(why) => {
                let notice: Notice = PoolNotice::WitnessUnreadable { why: Box::new(why) }.into();
                let mut context = self.context_mut();
                // Whatever becomes of the pool: without it a leg may not be proven.
                if !context.notices.contains(&notice) {
                    context.notices.push(notice.clone());
                }
                notices.push(notice);
                None
            }
        };
        // A drive that lost a copy of its label lost other things too: if another leg of its array is
        // whole, everything is copied to it. Alone, it is the best there is.
        let array_of = |p: &Probe| p.good_label().expect("gathered by label").array;
        let believed = |p: &Probe| p.whole || !probes.iter().any(|o| o.whole && array_of(o) == array_of(p));
        // Spares hold nothing of the pool: they neither prove nor disprove anything.
        let legs = probes.iter().filter(|p| p.good_label().is_none_or(|l| !is_spare(l)));
        let found: Vec<Found> = legs
            .map(|p| Found {
                drive: p.good_label().expect("gathered by label").drive,
                record: p.record.as_ref().ok().filter(|_| believed(p)).cloned(),
            })
            .collect();
        let damaged = |p: &Probe| PoolNotice::LabelCopyDamaged { drive: p.info.path.clone() }.into();
        notices.extend(probes.iter().filter(|p| !p.whole).map(damaged));
        let mut verdict = assemble(&found, witness.as_ref(), me, None);
        if force && matches!(verdict, Verdict::Diverged(_)) {
            // The operator means the drives that are here, whatever this head remembers.
            verdict = assemble(&found, None, me, None);
        }
        let mut assembly = match verdict {
            Verdict::Assembled(a) => a,
            Verdict::Nothing => return Err(PoolRefusal::PoolRecordUnreadable { pool: label_pool() }.into()),
            Verdict::Diverged(sides) => {
                let path = |d: &Uuid| {
                    let found = probes.iter().find(|p| p.good_label().is_some_and(|l| l.drive == *d));
                    found.map_or_else(|| d.to_string(), |p| p.info.path.clone())
                };
                let side = |s: &array::format::Side| match s.drives.len() {
                    0 => PoolSide::Remembered,
                    _ => PoolSide::Drives { drives: s.drives.iter().map(path).collect() },
                };
                let sides = sides.iter().map(side).collect();
                return Err(PoolRefusal::PoolDiverged { pool: label_pool(), sides }.into());
            }
        };
        // A drive of another history may have a later configuration: that one is not ours.
        let in_line = |p: &&Probe| p.good_label().is_some_and(|l| assembly.line.contains(&l.drive));
        let configs = probes.iter().filter(in_line).filter_map(|p| {
            let slot = p.config.as_ref().ok()?;
            let standing = standing(&assembly.record, p.good_label()?.drive);
            // A drive may be the only one that was told of arrays when the power went. The others, without it, put it out on
            // record and go on without those arrays.
            let knows = standing != Standing::Out || !has_more_arrays(slot, &assembly.record);
            knows.then_some((slot, standing))
        });
        // Drives that are being added have one that is not later, and that says so. What those wrote that go on without a
        // drive has the generation of what it was told last, which nobody else had: they know better.
        let newest = configs.max_by_key(|(c, standing)| (c.generation, !c.is_unfinished(), *standing));
        let Some((slot, _)) = newest else {
            return Err(PoolRefusal::PoolConfigUnreadable { pool: label_pool() }.into());
        };
        let kept = self.later_kept(slot, uuid, witness.as_ref(), &assembly.record).await;
        let slot = kept.as_ref().unwrap_or(slot);
        let Ok(mut config) = PoolConfig::of_slot(slot) else {
            let generation = slot.generation;
            return Err(PoolRefusal::PoolConfigContradicts { pool: label_pool(), generation }.into());
        };
        if slot.is_unfinished() {
            return Err(never_finished(&label_name, probes));
        }
        if config.holder == me {
            self.check_witness_age(&config.name, witness.as_ref(), &assembly.record);
        }
        // An array whose addition was cut off is in the record and not yet in the configuration.
        let record = &mut assembly.record;
        if record.arrays.len() < config.arrays.len() {
            return Err(PoolRefusal::PoolRecordContradicts { pool: config.name.clone() }.into());
        }
        record.arrays.truncate(config.arrays.len());
        let record = record.clone();
        if config.shared.is_some() && config.shared != self.system() && !force {
            let in_system = self.is_in_system();
            return Err(PoolRefusal::PoolOfOtherSystem { pool: config.name.clone(), in_system }.into());
        }
        // Force overrides all of them: so whoever says it has read them all.
        let mut doubts: Vec<PoolDoubt> = vec![];
        if !config.holder.is_nil() && config.holder != me && !force {
            let (pool, holder) = (config.name.clone(), config.holder.to_string());
            doubts.push(PoolDoubt::NotReleased { pool, holder });
        }
        for i in 0..config.arrays.len() {
            name_legs(&mut config, &record.arrays[i], i);
            match check_array(&config, &record, &mut assembly, i, probes, force) {
                Ok(believed) => notices.extend(believed.map(Notice::from)),
                Err(doubt) => doubts.push(doubt),
            }
        }
        if !doubts.is_empty() {
            return Err(PoolRefusal::PoolDoubtful { pool: config.name, doubts }.into());
        }
        let context = self.context();
        resync_uncounted(&record, &mut assembly, |drive| {
            let probe = probes.iter().find(|p| p.good_label().is_some_and(|l| l.drive == drive));
            let counts = |p: &Probe| context.system.as_ref().is_some_and(|s| s.reached().counts(p.id));
            probe.is_some_and(counts)
        });
        Ok(Judged { config, generation: slot.generation, record, assembly, notices })
    }
}

/// At a takeover: a drive may have lost its power, and what its cache held, before this head opened it as it followed. The head that led has
/// looked at those that count. To the others is copied what these have.
fn resync_uncounted(record: &MembershipRecord, assembly: &mut Assembly, counts: impl Fn(Uuid) -> bool) {
    for (row, array) in record.arrays.iter().zip(&mut assembly.arrays) {
        let current = (0..array.legs.len()).filter(|l| array.legs[*l] == LegVerdict::Current);
        let (counted, others): (Vec<usize>, Vec<usize>) = current.partition(|l| counts(row.legs[*l].drive));
        for leg in others.into_iter().filter(|_| !counted.is_empty()) {
            // What was acknowledged and is not on all legs durably is in the bitmaps.
            array.legs[leg] = LegVerdict::Stale { full: false };
        }
    }
}

/// What a drive is on record, the more believed the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// No leg, or one that was left behind.
    Out,
    /// A leg that came back: it is one on record before it is told what it missed.
    Copied,
    InSync,
}

fn standing(record: &MembershipRecord, drive: Uuid) -> Standing {
    match record.leg(drive).map(|l| l.state) {
        None | Some(LegState::Out | LegState::JustOut) => Standing::Out,
        Some(LegState::InSync) => Standing::InSync,
        Some(LegState::Rebuilding | LegState::RebuildingFull) => Standing::Copied,
    }
}

/// Whether a configuration has arrays that are not on record.
fn has_more_arrays(slot: &ConfigSlot, record: &MembershipRecord) -> bool {
    PoolConfig::of_slot(slot).is_ok_and(|c| c.arrays.len() > record.arrays.len())
}

/// The record decides who is a leg; the configuration knows where each was last seen. They differ if a leg
/// was joining or leaving when the power went.
fn name_legs(config: &mut PoolConfig, record: &RecordArray, i: usize) {
    let mut known: Vec<(Uuid, String)> =
        config.arrays[i].legs.iter().map(|l| (l.drive, l.path.clone())).collect();
    known.extend(config.extras.replacements.iter().map(|r| (r.old, r.old_path.clone())));
    let row = |drive: Uuid| {
        let path = known.iter().find(|(d, _)| *d == drive).map_or_else(|| drive.to_string(), |k| k.1.clone());
        LegRow { drive, path }
    };
    config.arrays[i].legs = record.legs.iter().map(|l| row(l.drive)).collect();
}

/// Whether an array may be taken, and with `force` makes it so. A doubt names the drives; so does what is told when force
/// overrode one: which leg is believed, and where later writes may be.
fn check_array(
    config: &PoolConfig,
    record: &MembershipRecord,
    assembly: &mut Assembly,
    i: usize,
    probes: &[Probe],
    force: bool,
) -> Result<Option<PoolNotice>, PoolDoubt> {
    let row: &RecordArray = &record.arrays[i];
    let path = |l: usize| {
        let probe = probes.iter().find(|p| p.good_label().is_some_and(|x| x.drive == row.legs[l].drive));
        probe.map_or_else(|| config.arrays[i].legs[l].path.clone(), |p| p.info.path.clone())
    };
    let verdict = &mut assembly.arrays[i];
    // What this head remembers of a pool that was released says nothing of what others did with it since.
    let proven = if config.holder.is_nil() { verdict.complete } else { verdict.proven };
    if verdict.has_current() && proven {
        return Ok(None);
    }
    // The leg with the latest record of its own is the truth, if the operator says so. One that was still being copied
    // holds no whole copy: nobody can take that.
    let own = |l: &usize| {
        let probe = probes.iter().find(|p| p.good_label().is_some_and(|x| x.drive == row.legs[*l].drive));
        let record = probe.and_then(|p| p.record.as_ref().ok())?;
        let was = record.leg(row.legs[*l].drive)?.state;
        (was == LegState::InSync).then_some(record.counter)
    };
    let best = (0..row.legs.len()).filter(|l| own(l).is_some()).max_by_key(|l| own(l));
    let legs = &verdict.legs;
    let missing: Vec<String> =
        (0..legs.len()).filter(|l| matches!(legs[*l], LegVerdict::Missing { .. })).map(path).collect();
    let stale: Vec<String> =
        (0..legs.len()).filter(|l| matches!(legs[*l], LegVerdict::Stale { .. })).map(path).collect();
    let current: Vec<String> =
        (0..legs.len()).filter(|l| legs[*l] == LegVerdict::Current).map(path).collect();
    let (pool, array) = (config.name.clone(), array_word(config.arrays[i].mirror, i));
    if force && let Some(best) = best.filter(|_| current.is_empty()) {
        verdict.legs[best] = LegVerdict::Current;
        return Ok(Some(PoolNotice::StaleTakenByForce { array, pool, drive: path(best), missing }));
    }
    if force && !current.is_empty() {
        return Ok(Some(PoolNotice::UnprovenTakenByForce { array, pool, drives: current, missing }));
    }
    Err(if !current.is_empty() && config.holder.is_nil() {
        // Whoever imports a released pool may lose a leg at once and go on with the other: the one that was lost
        // still says "released". So a leg alone proves nothing, not even where it was released.
        PoolDoubt::ReleasedWithMissing { pool, array, missing, current }
    } else if !current.is_empty() {
        PoolDoubt::Unproven { pool, array, missing, current }
    } else if !stale.is_empty() {
        PoolDoubt::Stale { pool, array, stale, missing, whole: best.is_some() }
    } else if missing.iter().all(|d| DriveKind::of(d).is_volatile()) {
        PoolDoubt::InMemory { pool, array, missing }
    } else {
        PoolDoubt::Missing { pool, array, missing }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use array::format::MemberLeg;

    /// The head that led ended before it had looked at a drive that this one had opened anew.
    #[test]
    fn a_leg_that_does_not_count_is_copied_to_from_one_that_does() {
        let (pool, me) = (Uuid([9; 16]), Uuid([8; 16]));
        let drive = |n: u8| Uuid([n; 16]);
        let leg = |n: u8| MemberLeg::new(drive(n), LegState::InSync);
        let array = |a: u8, b: u8| RecordArray { epoch: 1, rivals: 0, legs: vec![leg(a), leg(b)] };
        let record = MembershipRecord::first(pool, me, 1, vec![array(1, 2), array(3, 4)]);
        let found: Vec<Found> =
            (1..=4).map(|n| Found { drive: drive(n), record: Some(record.clone()) }).collect();
        let judged = |counted: &[u8]| -> Vec<Vec<LegVerdict>> {
            let Verdict::Assembled(mut assembly) = assemble(&found, None, me, None) else {
                panic!("it is one")
            };
            resync_uncounted(&record, &mut assembly, |drive| counted.contains(&drive.0[0]));
            assembly.arrays.into_iter().map(|a| a.legs).collect()
        };
        let (current, copied) = (LegVerdict::Current, LegVerdict::Stale { full: false });
        assert_eq!(judged(&[1, 2, 3, 4]), [[current; 2]; 2]);
        assert_eq!(judged(&[1, 3, 4]), [[current, copied], [current, current]]);
        assert_eq!(judged(&[2]), [[copied, current], [current, current]], "nothing better is there");
        assert_eq!(judged(&[]), [[current; 2]; 2], "nobody led before");
    }
}
