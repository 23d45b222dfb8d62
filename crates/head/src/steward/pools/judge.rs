//! What may be done with the drives of a pool that were found: words for the wrong, the partial and the stale.

use crate::order::{ErrorKind, Refusal};
use crate::steward::context::probe::Probe;
use crate::steward::context::spare::is_spare;
use crate::steward::office::Office;
use crate::steward::pools::fit::one_drive;
use crate::steward::pools::unfinished::never_finished;
use crate::steward::state::config::{LegRow, PoolConfig};
use crate::steward::words::{array_word, refuse};
use array::format::{
    Assembly, ConfigSlot, Fault, Found, LegState, LegVerdict, MembershipRecord, RecordArray, Verdict,
    assemble,
};
use base::DriveKind;
use base::Uuid;
use std::collections::BTreeSet;

/// What would be done with the drives of a pool.
pub(crate) struct Judged {
    pub config: PoolConfig,
    pub generation: u64,
    pub record: MembershipRecord,
    pub assembly: Assembly,
    pub notices: Vec<String>,
}

impl Office {
    /// Judges the drives of a pool. A refusal says what is wrong, in words.
    pub(crate) async fn judge(&self, uuid: Uuid, probes: &[Probe], force: bool) -> Result<Judged, Refusal> {
        let label_name = probes.iter().filter_map(|p| p.good_label()).map(|l| l.pool_name.clone()).next();
        let no = |kind, message: String| refuse(kind, "pool", message);
        let Some(label_name) = label_name else {
            return Err(no(ErrorKind::NotFound, "none of its drives was found".into())
                .then("millrace pool import --list --drive DRIVE, if they are files"));
        };
        for p in probes {
            let label = p.good_label().expect("gathered by label");
            let newer = !label.features.writable()
                || [p.record.as_ref().err(), p.config.as_ref().err()].contains(&Some(&Fault::Newer));
            if newer {
                let message =
                    format!("pool {label_name} was written by a newer version of millrace ({})", p.info.path);
                return Err(no(ErrorKind::NotReady, message).then("install that version, or a later one"));
            }
            let twin = probes
                .iter()
                .find(|q| q.id != p.id && q.good_label().is_some_and(|l| l.drive == label.drive));
            if let Some(q) = twin.filter(|q| q.info.overlaps(&p.info)) {
                let next = format!("millrace pool import {label_name}, naming each drive once");
                return Err(no(ErrorKind::Conflict, one_drive(p, q)).then(next));
            }
            if let Some(q) = twin {
                let message = format!(
                    "{} and {} carry the same label: one is a copy of the other",
                    p.info.path, q.info.path
                );
                return Err(no(ErrorKind::Conflict, message).then("take one of them away"));
            }
        }
        let me = self.desk().me();
        let mut notices = vec![];
        let witness = match self.read_witness(uuid).await {
            Ok(w) => w,
            Err(why) => {
                notices.push(why.said());
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
        notices.extend(probes.iter().filter(|p| !p.whole).map(|p| {
            format!(
                "a copy of the label of {} is damaged: part of the drive was overwritten or cut off",
                p.info.path
            )
        }));
        let mut verdict = assemble(&found, witness.as_ref(), me, None);
        if force && matches!(verdict, Verdict::Diverged(_)) {
            // The operator means the drives that are here, whatever this head remembers.
            verdict = assemble(&found, None, me, None);
        }
        let mut assembly = match verdict {
            Verdict::Assembled(a) => a,
            Verdict::Nothing => {
                let message = format!("no drive of pool {} carries a readable membership record", label_name);
                return Err(no(ErrorKind::Internal, message).then(others_first(&label_name)));
            }
            Verdict::Diverged(sides) => {
                let path = |d: &Uuid| {
                    let found = probes.iter().find(|p| p.good_label().is_some_and(|l| l.drive == *d));
                    found.map_or_else(|| d.to_string(), |p| p.info.path.clone())
                };
                let side = |s: &array::format::Side| match s.drives.len() {
                    0 => "what this head remembers".to_string(),
                    _ => s.drives.iter().map(path).collect::<Vec<_>>().join(" "),
                };
                let words: Vec<String> = sides.iter().map(side).collect();
                let message = format!(
                    "pool {} was changed in two places apart from each other: {}",
                    label_name,
                    words.join(" against ")
                );
                let next = format!(
                    "millrace pool import {} --force --drive … (naming the drives of the side to keep)",
                    label_name
                );
                return Err(no(ErrorKind::Unsafe, message).then(next));
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
            return Err(no(
                ErrorKind::Internal,
                format!("no drive of pool {label_name} carries a readable configuration"),
            )
            .then(others_first(&label_name)));
        };
        let Ok(mut config) = PoolConfig::of_slot(slot) else {
            let message = format!(
                "the configuration of pool {label_name} contradicts itself (generation {})",
                slot.generation
            );
            return Err(no(ErrorKind::Internal, message).then(others_first(&label_name)));
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
            return Err(no(
                ErrorKind::Internal,
                format!("membership and configuration of pool {} contradict each other", config.name),
            )
            .then(others_first(&config.name)));
        }
        record.arrays.truncate(config.arrays.len());
        let record = record.clone();
        if config.shared.is_some() && config.shared != self.system() && !force {
            let this = if self.is_in_system() { "of another one" } else { "alone" };
            let message = format!(
                "pool {} is of a system of two heads, and this head is {this}: it cannot know whether another one writes there",
                config.name
            );
            return Err(no(ErrorKind::Unsafe, message).then(format!(
                "the same on a head of that system; or millrace pool import {} --force, once both of its heads are gone",
                config.name
            )));
        }
        let mut objections: Vec<Objection> = vec![];
        if !config.holder.is_nil() && config.holder != me && !force {
            objections.push(Objection::held(&config));
        }
        for i in 0..config.arrays.len() {
            name_legs(&mut config, &record.arrays[i], i);
            match check_array(&config, &record, &mut assembly, i, probes, force) {
                Ok(believed) => notices.extend(believed),
                Err(objection) => objections.push(objection),
            }
        }
        if !objections.is_empty() {
            return Err(refusal(&config.name, objections));
        }
        Ok(Judged { config, generation: slot.generation, record, assembly, notices })
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

/// One thing that speaks against taking a pool. There may be several, and `--force` overrides all of them: so whoever says it
/// has read them all.
struct Objection {
    message: String,
    /// What helps without force.
    first: String,
    /// What `--force` would do here, as the end of the command; None if it would not help.
    force: Option<&'static str>,
}

impl Objection {
    /// Another head has it.
    fn held(config: &PoolConfig) -> Self {
        Self {
            message: format!(
                "pool {} was not released by the system that had it, {}",
                config.name, config.holder
            ),
            first: format!("millrace pool release {} (there)", config.name),
            force: Some(" (here)"),
        }
    }
}

fn refusal(pool: &str, objections: Vec<Objection>) -> Refusal {
    let import = format!("millrace pool import {pool}");
    let firsts: BTreeSet<&str> = objections.iter().map(|o| &*o.first).collect();
    let forces: BTreeSet<Option<&str>> = objections.iter().map(|o| o.force).collect();
    let first = firsts.iter().copied().collect::<Vec<_>>().join(", and ");
    let next = match forces.iter().copied().collect::<Vec<_>>()[..] {
        [None] if !first.starts_with("attach") => first,
        [Some(how)] if firsts.len() == 1 => format!("{first}, or {import} --force{how}"),
        // Where it would not help with all of it, it is no way at all.
        [None, ..] => format!("{first}, then {import}"),
        // Each of these would be overridden, not only the one that somebody had in mind.
        _ => format!(
            "{first}, then {import}; or {import} --force, which overrides all of this (writes that only the others have are lost)"
        ),
    };
    let message = objections.into_iter().map(|o| o.message).collect::<Vec<_>>().join("; and ");
    refuse(ErrorKind::Unsafe, "pool", message).then(next)
}

/// What helps where the drives that are here do not say enough.
fn others_first(pool: &str) -> String {
    format!("attach its other drives, then millrace pool import {pool}")
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

/// Whether an array may be taken, and with `force` makes it so. An objection names the drives; so does what is told when force
/// overrode one: which leg is believed, and where later writes may be.
fn check_array(
    config: &PoolConfig,
    record: &MembershipRecord,
    assembly: &mut Assembly,
    i: usize,
    probes: &[Probe],
    force: bool,
) -> Result<Option<String>, Objection> {
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
    let (name, array) = (&config.name, array_word(config.arrays[i].mirror, i));
    let what = if missing.len() == 1 { "drive is" } else { "drives are" };
    if force && let Some(best) = best.filter(|_| current.is_empty()) {
        verdict.legs[best] = LegVerdict::Current;
        let away = match missing.is_empty() {
            true => String::new(),
            false => format!(" (missing: {})", missing.join(", ")),
        };
        return Ok(Some(format!(
            "{array} of pool {name} was taken by force as {} has it, which lacks later writes: those are lost here{away}",
            path(best)
        )));
    }
    if force && !current.is_empty() {
        return Ok(Some(format!(
            "{array} of pool {name} was taken by force as {} has it, and the {what} missing: {}, which may have later writes: those are lost here",
            current.join(", "),
            missing.join(", ")
        )));
    }
    let attach = format!("attach {}", missing.join(" and "));
    let (message, first, force) = if !current.is_empty() && config.holder.is_nil() {
        // Whoever imports a released pool may lose a leg at once and go on with the other: the one that was lost
        // still says "released". So a leg alone proves nothing, not even where it was released.
        let message = format!(
            "pool {name} was released, and of {array} the {what} missing: {}; another head may have gone on with {}, so nothing proves that {} has the latest writes",
            missing.join(", "),
            if missing.len() == 1 { "it" } else { "them" },
            current.join(", ")
        );
        (message, attach, Some(" (if no other head has had the pool since)"))
    } else if !current.is_empty() {
        let message = format!(
            "of {array} of pool {name} the {what} missing: {}; {} cannot be proven to hold the latest writes",
            missing.join(", "),
            current.join(", ")
        );
        (message, attach, Some(""))
    } else if stale.is_empty() && missing.iter().all(|d| DriveKind::of(d).is_volatile()) {
        let message = format!(
            "of {array} of pool {name} every drive ({}) was in the memory of a daemon that has ended: what they held is gone",
            missing.join(", ")
        );
        (message, format!("millrace pool release {name}, which forgets it"), None)
    } else if stale.is_empty() {
        let message = format!("of {array} of pool {name} the {what} missing: {}", missing.join(", "));
        (message, attach, None)
    } else {
        let here = match (stale.len(), missing.is_empty()) {
            (1, false) => format!("only {} is here, which", stale[0]),
            (_, false) => format!("only {} are here, which", stale.join(", ")),
            (1, true) => format!("{} is here, and", stale[0]),
            (_, true) => format!("{} are here, and", stale.join(", ")),
        };
        let lack = match (best, stale.len()) {
            (None, 1) => "was still being copied and holds no whole copy",
            (None, _) => "were still being copied and hold no whole copy",
            (Some(_), 1) => "lacks later writes",
            (Some(_), _) => "lack later writes",
        };
        let away = match missing.is_empty() {
            true if best.is_some() => {
                "; this head has those on record: these may be older copies of its drives".into()
            }
            true => String::new(),
            false => format!("; the {what} missing: {}", missing.join(", ")),
        };
        let attach = match missing.is_empty() {
            true => "attach the drives that the pool was on last".to_string(),
            false => attach,
        };
        let force = best.map(|_| " (later writes are lost)");
        (format!("of {array} of pool {name} {here} {lack}{away}"), attach, force)
    };
    Err(Objection { message, first, force })
}
