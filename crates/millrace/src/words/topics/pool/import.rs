//! Words about imports: what was found of a pool, and what speaks against it.

use super::{Said, cause_said, is, joined, newer_part};
use crate::words::machine::open_fault;
use finding::{ImportFault, PoolDoubt, PoolRefusal, Why};
use std::collections::BTreeSet;

/// In brackets, what else turned up.
pub(super) fn beside(message: String, also: &[ImportFault]) -> String {
    if also.is_empty() { message } else { format!("{message} ({})", joined(also, import_fault)) }
}

/// Nothing of a pool was found.
pub(super) fn not_found(pool: Option<&str>, also: &[ImportFault], away: &[String], in_use: bool) -> Said {
    let what = pool.map_or("pool".to_string(), |p| format!("drive of pool {p}"));
    let words = if also.is_empty() { String::new() } else { format!(": {}", joined(also, import_fault)) };
    let import = pool.map_or("millrace pool import".into(), |p| format!("millrace pool import {p}"));
    let files = format!("{import} --drive FILE --drive FILE");
    if let Some((pool, help)) = pool.and_then(|p| Some((p, unlabelled(also)?))) {
        let help = help.next(pool);
        let next = if away.is_empty() {
            format!("{files}, if it lies elsewhere, or {help}")
        } else {
            format!("attach {}, then {import}, or {help}", away.join(" and "))
        };
        return Said::new(format!("no {what} was found{words}")).then(next);
    }
    let next = match (away.is_empty(), in_use) {
        (false, _) => format!("attach {}, then {import}; or, where it lies now, {files}", away.join(" and ")),
        // Somebody uses them, and most likely for something else.
        (true, true) => {
            format!("{files}, if it lies in files; or, if it is on one of those in use, once it is let go of")
        }
        (true, false) => format!("{files}, if it lies in files, or millrace pool import --list"),
    };
    Said::new(format!("no {what} was found{words}")).then(next)
}

/// What is the matter with drives that are there, and on which a pool should lie.
enum Unlabelled<'a> {
    /// A newer program wrote their labels.
    Newer,
    /// Nothing is left of their labels.
    Gone(Vec<&'a str>),
}

impl Unlabelled<'_> {
    fn next(&self, pool: &str) -> String {
        match self {
            Self::Newer => "install that version, or a later one".into(),
            Self::Gone(drives) => format!(
                "write back a copy of {}, if there is one, then millrace pool import {pool}, or millrace pool release {pool}, which forgets the pool: nothing else tells where its data lies",
                drives.join(" and ")
            ),
        }
    }
}

fn unlabelled(also: &[ImportFault]) -> Option<Unlabelled<'_>> {
    if also.iter().any(|f| matches!(f, ImportFault::LabelNewer { .. })) {
        return Some(Unlabelled::Newer);
    }
    let gone: Vec<&str> = also.iter().filter_map(ImportFault::without_label).collect();
    (!gone.is_empty()).then_some(Unlabelled::Gone(gone))
}

/// What helps if a pool was not taken as its drives are there without their labels; None if it is another matter.
pub(super) fn label_help(pool: &str, why: &Why, also: &[ImportFault]) -> Option<String> {
    let found = unlabelled(also)?;
    let is_meant = match (why, &found) {
        (Why::Pool(PoolRefusal::PoolWithoutDrives), _) => true,
        // Not if it lacks another drive, too.
        (Why::Pool(PoolRefusal::PoolDoubtful { doubts, .. }), Unlabelled::Gone(gone)) => {
            doubts.iter().all(|doubt| match doubt {
                PoolDoubt::Missing { missing, .. } => missing.iter().all(|m| gone.contains(&m.as_str())),
                _ => false,
            })
        }
        _ => false,
    };
    is_meant.then(|| found.next(pool))
}

/// What else turned up as drives were looked for.
pub(super) fn import_fault(f: &ImportFault) -> String {
    match f {
        ImportFault::NotOpened { drive, fault } => open_fault(drive, fault),
        ImportFault::NotItself { drive, why } => format!("{drive}: {}", cause_said(why).message),
        ImportFault::OfOtherPool { drive, pool } => format!("{drive} is a drive of pool {pool}"),
        ImportFault::LabelAbsent { drive } => format!("the label of {drive} is absent"),
        ImportFault::LabelNewer { drive, part } => {
            let part = newer_part(part);
            format!("the label of {drive} is written by a newer version of millrace, with {part}")
        }
        ImportFault::LabelDamaged { drive } => format!("the label of {drive} is damaged"),
        ImportFault::NotThere { drives } => format!("{} {} not there", drives.join(", "), is(drives)),
        ImportFault::MoreInUse { count } => format!("{count} more are in use"),
        ImportFault::OthersInUse { count: 1 } => {
            "1 other drive is in use (millrace pool import --list names it)".into()
        }
        ImportFault::OthersInUse { count } => {
            format!("{count} other drives are in use (millrace pool import --list names them)")
        }
        ImportFault::LookedInVain { drives } => format!("looked for in vain at {}, too", drives.join(", ")),
        ImportFault::NotNamed { drives } => format!(
            "with --force the named drives alone would count, without {}, which may hold later writes",
            drives.join(", ")
        ),
    }
}

/// What speaks against a pool, what helps without force, and what `--force` would do here, as the end of the command;
/// None if it would not help.
fn doubt(d: &PoolDoubt) -> (String, String, Option<&'static str>) {
    let drives_are = |missing: &[String]| if missing.len() == 1 { "a drive is" } else { "drives are" };
    let attach = |missing: &[String]| format!("attach {}", missing.join(" and "));
    match d {
        PoolDoubt::NotReleased { pool, holder } => (
            format!("pool {pool} was not released by the system that had it, {holder}"),
            format!("millrace pool release {pool} (there)"),
            Some(" (here)"),
        ),
        PoolDoubt::ReleasedWithMissing { pool, array, missing, current } => (
            format!(
                "pool {pool} was released, and {} missing from {array}: {}; another head may have gone on with {}, so nothing proves that {} has the latest writes",
                drives_are(missing),
                missing.join(", "),
                if missing.len() == 1 { "it" } else { "them" },
                current.join(", ")
            ),
            attach(missing),
            Some(" (if no other head has had the pool since)"),
        ),
        PoolDoubt::Unproven { pool, array, missing, current } => (
            format!(
                "{} missing from {array} of pool {pool}: {}; {} cannot be proven to hold the latest writes",
                drives_are(missing),
                missing.join(", "),
                current.join(", ")
            ),
            attach(missing),
            Some(""),
        ),
        PoolDoubt::InMemory { pool, array, missing } => (
            format!(
                "every drive of {array} of pool {pool} ({}) was in the memory of a daemon that has ended: what they held is gone",
                missing.join(", ")
            ),
            format!("millrace pool release {pool}, which forgets it"),
            None,
        ),
        PoolDoubt::Missing { pool, array, missing } => (
            format!("{} missing from {array} of pool {pool}: {}", drives_are(missing), missing.join(", ")),
            attach(missing),
            None,
        ),
        PoolDoubt::Stale { pool, array, stale, missing, whole } => {
            let here = match (&stale[..], missing.is_empty()) {
                ([one], false) => format!("only {one} is here, which"),
                (all, false) => format!("only {} are here, which", all.join(", ")),
                ([one], true) => format!("{one} is here, and"),
                (all, true) => format!("{} are here, and", all.join(", ")),
            };
            let lack = match (whole, stale.len()) {
                (false, 1) => "was still being copied and holds no whole copy",
                (false, _) => "were still being copied and hold no whole copy",
                (true, 1) => "lacks later writes",
                (true, _) => "lack later writes",
            };
            let away = match missing.is_empty() {
                true if *whole => {
                    "; this head has those on record: these may be older copies of its drives".into()
                }
                true => String::new(),
                false => format!("; {} missing: {}", drives_are(missing), missing.join(", ")),
            };
            let attach = if missing.is_empty() {
                "attach the drives that the pool was on last".to_string()
            } else {
                attach(missing)
            };
            let force = whole.then_some(" (later writes are lost)");
            (format!("of {array} of pool {pool} {here} {lack}{away}"), attach, force)
        }
    }
}

/// All that speaks against taking a pool. `--force` overrides all of it, so whoever says it has read it all.
pub(super) fn doubtful(pool: &str, doubts: &[PoolDoubt]) -> Said {
    let all: Vec<_> = doubts.iter().map(doubt).collect();
    let import = format!("millrace pool import {pool}");
    let firsts: BTreeSet<&str> = all.iter().map(|(_, first, _)| &**first).collect();
    let forces: BTreeSet<Option<&str>> = all.iter().map(|(.., force)| *force).collect();
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
    let messages: Vec<String> = all.into_iter().map(|(message, ..)| message).collect();
    Said::new(messages.join("; and ")).then(next)
}
