//! Words about pools.

mod import;

use super::leg::{newer_part, record_name};
use super::parts::{STATE_DISK, connected, count, drive_fault, file_fault, size, size_free, state_fault};
use super::{Said, cause as cause_said, notice as notice_said, way, why as why_said};
use finding::{
    CutOffWork, Difference, DriveBusy, DriveFault, FailedDrive, Leftovers, OneDrive, PoolCause, PoolEvent,
    PoolNotice, PoolRefusal, PoolSide, StateFile, UnusedSpace, VolumeData, Why,
};
use import::{beside, doubtful, import_fault, label_help, not_found};

/// The verb after these names.
fn is(names: &[String]) -> &'static str {
    if names.len() == 1 { "is" } else { "are" }
}

/// What goes behind a command that was given with `--force`.
fn forced(force: bool) -> &'static str {
    if force { " --force" } else { "" }
}

/// Sentences behind each other.
fn joined<T>(all: &[T], one: impl Fn(&T) -> String) -> String {
    all.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Why an order was not carried out.
pub fn refusal(f: &PoolRefusal) -> Said {
    use PoolRefusal as R;
    match f {
        R::PoolNameInvalid { name } => Said::new(format!(
            "{name} is no name of a pool: a name has 1 to 63 characters of a-z A-Z 0-9 . _ - and begins with a letter or digit"
        ))
        .then("the same command with a name such as tank"),
        R::PoolNameTaken { pool } => {
            Said::new(format!("there is a pool {pool} already")).then("millrace pool ls")
        }
        R::ChunkInvalid { chunk_bytes } => {
            Said::new(format!("a chunk of {chunk_bytes} bytes is not a power of two from 16K to 4M"))
                .then("the same command with --chunk 64K")
        }
        R::PoolBlockInvalid { block_bytes } => {
            Said::new(format!("a pool's block size of {block_bytes} is neither 512 nor 4096"))
                .then("the same command with --block 4096")
        }
        R::PoolBlockTooSmall { drive, drive_block_bytes } => Said::new(format!(
            "a block size of 512 needs drives that take 512-byte writes, and {drive} takes {drive_block_bytes}"
        ))
        .then("the same command with --block 4096, or other drives"),
        R::PoolWithoutArrays => Said::new("a pool needs at least one array")
            .then("millrace pool create NAME mirror DRIVE DRIVE"),
        R::TooManyArrays { arrays_max, drives_max } => {
            format!("a pool has at most {arrays_max} arrays and {drives_max} drives").into()
        }
        R::MirrorSizeInvalid { legs, legs_max } => {
            Said::new(format!("a mirror has 2 to {legs_max} drives, not {legs}"))
                .then("millrace pool create NAME mirror DRIVE DRIVE")
        }
        R::SingleSizeInvalid { legs } => {
            Said::new(format!("a single array has one drive, not {legs}"))
                .then("millrace pool create NAME DRIVE DRIVE")
        }
        R::ArrayWeightInvalid { weight, weight_max } => {
            Said::new(format!("the weight {weight} is not from 1 to {weight_max}"))
                .then("the same command with --weights 1,2 (one for each array)")
        }
        R::ArrayTooSmall { index } => format!("array {index} is too small to be striped").into(),
        R::DriveNamedTwice { drive } => format!("{drive} is named twice").into(),
        R::DriveTooSmallForChunk { drive, bytes, chunk_bytes } => format!(
            "{drive} has {}: too small for the pool's records, a bitmap and one chunk of {}",
            size_free(*bytes),
            size(*chunk_bytes)
        )
        .into(),
        R::DrivesAreOne { how } => Said::new(one_drive(how)).then(match how {
            OneDrive::Paths { .. } => {
                "the same command with one of them, or with the multipath device above both"
            }
            OneDrive::Same { .. } | OneDrive::Overlap { .. } => "millrace drive ls",
        }),
        R::DriveOverlapsPool { drive, other, pool } => Said::new(format!(
            "{drive} and {other} are one drive, or one lies in the other, and {drive} is a drive of pool {pool}"
        ))
        .then("millrace drive ls"),
        R::PoolConfigTooLarge { pool } => {
            format!("the configuration of pool {pool} would not fit its place on the drives").into()
        }
        R::DrivesNotLabelled { drives } => {
            let one = |d: &FailedDrive| {
                format!("{} could not be labelled: the drive {}", d.drive, drive_fault(&d.fault))
            };
            let next = match drives.first() {
                Some(d) if d.file && d.fault == DriveFault::NoSpace => format!("df -h {}", d.drive),
                _ => "millrace drive ls".into(),
            };
            Said::new(joined(drives, one)).then(next)
        }
        R::MeasureFailed { drive, fault } => {
            format!("{drive}: the drive {} while it was measured", drive_fault(fault)).into()
        }
        R::WitnessNotWritten { why } => Said::new(cause_said(why).message).then(STATE_DISK),
        R::PoolDriveNotWritten { drive, fault } => {
            Said::new(format!("{drive} could not be written: the drive {}", drive_fault(fault)))
                .then("millrace drive ls")
        }
        R::PoolGone => "the pool was released or destroyed meanwhile".into(),
        R::NoDriveWritten { pool } => {
            Said::new(format!("no drive of pool {pool} could be written")).then("millrace status")
        }
        R::PoolHasVolumes { pool, volumes } => {
            Said::new(format!("pool {pool} has {}, which would be lost", count(*volumes, "volume")))
                .then(format!("millrace pool destroy {pool} --force"))
        }
        R::DrivesKeepLabels { drives } => joined(drives, |d| {
            format!("{} still carries its label: the drive {}", d.drive, drive_fault(&d.fault))
        })
        .into(),
        R::DriveTooSmall { drive, bytes, needed_bytes } => format!(
            "{drive} has {}, and a drive must have at least {}",
            size_free(*bytes),
            size(*needed_bytes)
        )
        .into(),
        R::DriveBlocksInvalid { drive, block_bytes } => {
            format!("{drive} has blocks of {block_bytes} bytes, neither 512 nor 4096").into()
        }
        R::DrivesHoldData { why } => {
            Said::new(format!("{}; what is there would be lost", joined(why, |c| cause_said(c).message)))
                .then("the same command with --force, or other drives (millrace drive ls)")
        }
        R::MirrorLeavesUnused { drives } => {
            let words: Vec<String> = drives.iter().map(unused).collect();
            Said::new(format!(
                "{}: each drive of a mirror holds as much as its smallest one",
                words.join(", ")
            ))
            .then("the same command with drives of one size, or with --force")
        }
        R::LessRedundant { pool, has, keeps, mirror, drives, mirrors } => {
            less_redundant(pool, (*has, *keeps), *mirror, drives, mirrors)
        }
        R::SeveralObjections { first, others } => {
            let all = core::iter::once(&**first).chain(others).map(|w| why_said(w).message);
            Said::new(all.collect::<Vec<_>>().join("; and ")).then(
                "other drives (millrace drive ls), or the same command with --force, which overrides all of this",
            )
        }
        R::VolumeHoldsData { volume, data, force } => Said::new(match data {
            VolumeData::Unknown => format!("volume {volume} may hold data, which would be lost"),
            VolumeData::Written { bytes } => {
                format!("hosts wrote {} to volume {volume}: its data would be lost", size(*bytes))
            }
            VolumeData::WrittenSinceStart { bytes } => format!(
                "volume {volume} holds data (hosts wrote {} since the daemon started), which would be lost",
                size(*bytes)
            ),
        })
        .then(format!("millrace volume rm {volume}{} --yes", forced(*force))),
        R::MemoryFullForArrays { arrays, memory_bytes_min } => {
            Said::new(format!("the head's memory has no room for the scratch of {arrays} arrays"))
                .then(more_memory(*memory_bytes_min))
        }
        R::MemoryFullForMirrors { mirrors_max, mirrors, memory_bytes_min } => Said::new(format!(
            "the head's memory has room for the scratch of {mirrors_max} mirrors, and these would make {mirrors}"
        ))
        .then(more_memory(*memory_bytes_min)),
        R::MemoryBusy => Said::new(
            "hosts use so much of the head's memory that there is none for another array's scratch",
        )
        .then("this again when they do less"),
        R::PoolWithoutDrives => Said::new("none of its drives was found")
            .then("millrace pool import --list --drive DRIVE, if they are files"),
        R::PoolNewer { pool, drive, newer } => Said::new(format!(
            "pool {pool} was written by a newer version of millrace: {} of {drive} has {}",
            record_name(&newer.record),
            newer_part(&newer.part)
        ))
        .then("install that version, or a later one"),
        R::PoolDrivesAreOne { pool, how } => Said::new(format!("pool {pool}: {}", one_drive(how)))
            .then(format!("millrace pool import {pool}, naming each drive once")),
        R::DriveCopied { drive, other } => {
            Said::new(format!("{drive} and {other} carry the same label: one is a copy of the other"))
                .then("take one of them away")
        }
        R::PoolRecordUnreadable { pool } => {
            Said::new(format!("no drive of pool {pool} carries a readable membership record"))
                .then(others_first(pool))
        }
        R::PoolDiverged { pool, sides } => {
            let side = |s: &PoolSide| match s {
                PoolSide::Drives { drives } => drives.join(" "),
                PoolSide::Remembered => "what this head remembers".into(),
            };
            let sides: Vec<String> = sides.iter().map(side).collect();
            Said::new(format!(
                "pool {pool} was changed in two places apart from each other: {}",
                sides.join(" against ")
            ))
            .then(format!(
                "millrace pool import {pool} --force --drive … (naming the drives of the side to keep)"
            ))
        }
        R::PoolConfigUnreadable { pool } => {
            Said::new(format!("no drive of pool {pool} carries a readable configuration"))
                .then(others_first(pool))
        }
        R::PoolConfigContradicts { pool, generation } => Said::new(format!(
            "the configuration of pool {pool} contradicts itself (generation {generation})"
        ))
        .then(others_first(pool)),
        R::PoolRecordContradicts { pool } => {
            Said::new(format!("membership and configuration of pool {pool} contradict each other"))
                .then(others_first(pool))
        }
        R::PoolUnfinished { pool, drives } => {
            let has = if drives.len() == 1 { "has" } else { "have" };
            Said::new(format!(
                "pool {pool} was never finished: its creation was cut off, and nothing was stored on it ({} {has} its label)",
                drives.join(", ")
            ))
            .then(format!(
                "start the head again that was making it, which frees the drives; or make it anew: millrace pool create {pool} … --force"
            ))
        }
        R::PoolOfOtherSystem { pool, in_system } => {
            let this = if *in_system { "of another one" } else { "alone" };
            Said::new(format!(
                "pool {pool} is of a system of two heads, and this head is {this}: it cannot know whether another one writes there"
            ))
            .then(format!(
                "the same on a head of that system; or millrace pool import {pool} --force, once both of its heads are gone"
            ))
        }
        R::PoolWasReleased { pool, elsewhere } => {
            let by = if *elsewhere { " by another head" } else { "" };
            Said::new(format!("pool {pool} was released{by}, and waits for an order to import it"))
                .then(format!("millrace pool import {pool}"))
        }
        R::PoolDoubtful { pool, doubts } => doubtful(pool, doubts),
        R::PoolImportedAlready { pool } => {
            Said::new(format!("pool {pool} is imported already")).then("millrace status")
        }
        R::VotesNotCleared { drive, fault } => {
            Said::new(format!("{drive}: the drive {}", drive_fault(fault))).then("millrace status")
        }
        R::PoolNameOfOther { pool, uuid, other } => Said::new(format!(
            "pool {uuid} is called {pool}, and that is another pool here, {other}"
        ))
        .then(format!(
            "millrace pool import {uuid} --as NAME; or millrace pool release {pool}, the one here, and this again"
        )),
        R::PoolNameOfAbsent { pool, uuid, other, why } => Said::new(format!(
            "pool {uuid} is called {pool}, and so is a pool of this head that is away, {other}: {}",
            cause_said(why).message
        ))
        .then(format!(
            "millrace pool import {uuid} --as NAME; or millrace pool release {pool}, which forgets the one that is away, and this again"
        )),
        R::NoNumberForPool => "no LUN or namespace id is free for a volume of the pool".into(),
        R::LastNotWritten { drive, fault } => {
            format!("{drive}: it could not be written at import: the drive {}", drive_fault(fault)).into()
        }
        R::PoolNotFound { pool, also, away, in_use } => not_found(pool.as_deref(), also, away, *in_use),
        R::PoolMemoryLost { pool, drives, empty } => {
            let list = drives.join(", ");
            Said::new(match empty {
                true => {
                    format!("its drives ({list}) were those of a daemon that has ended, and kept nothing")
                }
                false => format!(
                    "its drives ({list}) were in the memory of a daemon that has ended: what they held is gone"
                ),
            })
            .then(format!("millrace pool release {pool}, which forgets it"))
        }
        R::SeveralPools { pools } => {
            let first = pools.first().map_or("", String::as_str);
            Said::new(format!("several pools could be meant: {}", pools.join(", ")))
                .then(format!("millrace pool import {first}, or another of them"))
        }
        R::PoolRenamed { name, pool, uuid } => Said::new(format!(
            "the pool that was called {name} here is called {pool} on its drives"
        ))
        .then(format!("millrace pool import {uuid}, or millrace pool import {uuid} --as {name}")),
        R::PoolNotTaken { why, also } => {
            let help = match &**why {
                Why::Pool(R::PoolDoubtful { pool, .. }) => label_help(pool, why, also),
                _ => None,
            };
            Said::new(beside(why_said(why).message, also)).then(help.unwrap_or_else(|| way(why)))
        }
        R::PoolReleaseInUse { pool, force, hosts } => {
            Said::new(connected(hosts, &format!("would lose the volumes of pool {pool}")))
                .then(format!("millrace pool release {pool}{} --yes", forced(*force)))
        }
        R::PoolDestroyInUse { pool, force, hosts } => {
            Said::new(connected(hosts, &format!("would lose the volumes of pool {pool} with their data")))
                .then(format!("millrace pool destroy {pool}{} --yes", forced(*force)))
        }
        R::PoolAbsent { pool, why } => {
            let said = cause_said(why);
            Said { message: format!("pool {pool} is not imported: {}", said.message), next: said.next }
        }
        R::PoolUnknown { pool } => Said::new(format!("there is no pool {pool}")).then("millrace pool ls"),
        R::DriveListed { drive, pool, place, removable } => listed(drive, pool, place.as_deref(), *removable),
        R::PoolInMemory { pool, drives, volumes } => {
            let message = format!("pool {pool} lies in memory ({})", drives.join(", "));
            Said::new(ends_here(message, *volumes)).then(format!("millrace pool release {pool} --force"))
        }
        R::ArrayInMemory { pool, array, drives, others, volumes } => {
            let (drives, others) = (drives.join(", "), others.join(", "));
            let message = format!(
                "what {array} of pool {pool} holds lies in memory alone ({drives}): {others} is not in sync"
            );
            Said::new(ends_here(message, *volumes)).then(format!(
                "millrace status, and this again once {others} is in sync; or millrace pool release {pool} --force"
            ))
        }
        R::ReleaseNotMarked { pool, array, drives } => {
            let one = |d: &FailedDrive| format!("the drive {} {}", d.drive, drive_fault(&d.fault));
            let why: Vec<String> = drives.iter().map(one).collect();
            Said::new(format!(
                "no drive of {array} can be marked as released: {}; pool {pool} stays this head's",
                why.join(", ")
            ))
            .then(format!(
                "attach the drives again, then this; or millrace pool release {pool} --force, and another head that imports it needs --force, too"
            ))
        }
        R::PoolNotAtRest { drive, why, shaped } => {
            let what = match why {
                DriveBusy::HoldsFormer => "still holds operations that were begun before it failed".into(),
                DriveBusy::Silent => "does not answer".into(),
                DriveBusy::Hangs { operations: 1 } => "holds 1 operation that does not end".into(),
                DriveBusy::Hangs { operations } => format!("holds {operations} operations that do not end"),
            };
            Said::new(format!("{drive} {what}: the pool cannot come to rest, and goes on serving")).then(
                match shaped {
                    true => format!("millrace drive shape {drive} --clear, then this again"),
                    false => format!(
                        "unplug or reset {drive}, then this again; or stop the daemon, which ends all it holds"
                    ),
                },
            )
        }
        R::PoolStillBusy { seconds } => {
            Said::new(format!("a drive still holds operations after {seconds} seconds"))
                .then("millrace status -v, for the drive that hangs")
        }
        R::PoolNotClosed { drive, fault } => {
            format!("{drive} could not be marked as closed: the drive {}", drive_fault(fault)).into()
        }
        R::ArrayUnknown { pool, array, arrays } => {
            Said::new(format!("pool {pool} has no array {array}: it has {}", arrays.join(", ")))
                .then(format!("millrace pool show {pool}"))
        }
        R::ArrayNotNamed { pool } => {
            Said::new("no array is named").then(format!("millrace pool show {pool}"))
        }
        R::ArrayIsFirst { pool, array } => {
            Said::new(format!("pool {pool} was created with {array}, which cannot be removed"))
                .then(format!("millrace pool show {pool}"))
        }
        R::ArraysLeaveTogether { pool, arrays, missing, all } => Said::new(format!(
            "{} cannot leave pool {pool} without {}: volumes are striped over arrays that were added together, and what was added last leaves first",
            arrays.join(", "),
            missing.join(", ")
        ))
        .then(format!("millrace pool rm {pool} {}", all.join(" "))),
        R::ArraysHoldData { volumes, arrays } => {
            let first = volumes.first().map_or("", String::as_str);
            Said::new(format!("data of {} lies on {}", volumes.join(", "), arrays.join(", "))).then(format!(
                "millrace volume rm {first}, if its data is not needed or is elsewhere, then this again"
            ))
        }
        R::ArraysHoldReturned { arrays } => Said::new(format!(
            "space of a volume that was removed or has shrunk lies on {}, and is not free yet",
            arrays.join(", ")
        ))
        .then("this again in a few seconds"),
        R::PoolBeingScrubbed { pool } => Said::new(format!("pool {pool} is being scrubbed"))
            .then(format!("millrace pool scrub {pool} --stop, then this again")),
        R::ArraysBeingReplaced { arrays } => {
            Said::new(format!("a drive of {} is being replaced", arrays.join(", ")))
                .then("millrace status --watch, and this again once that is over")
        }
        R::StayingDriveOut { drive, array, pool } => Said::new(format!(
            "{drive} of {array} is away or out: it would not learn which arrays pool {pool} has"
        ))
        .then(format!(
            "millrace drive return {drive}, or millrace drive replace {drive} NEW, and this again"
        )),
        R::ArraysStillBusy { arrays, seconds } => Said::new(format!(
            "a drive of {} still holds operations after {seconds} seconds",
            arrays.join(", ")
        ))
        .then("millrace status -v, for the drive that hangs"),
        R::StayingDriveNotTold { drive, fault } => {
            Said::new(format!("{drive} could not be told of it: the drive {}", drive_fault(fault)))
                .then("millrace status")
        }
        R::NothingToScrub { pool } => {
            Said::new(format!("pool {pool} has no mirror: there is nothing to compare"))
                .then(format!("millrace pool show {pool}"))
        }
        R::NoScrub { pool } => Said::new(format!("pool {pool} is not being scrubbed"))
            .then(format!("millrace pool show {pool}")),
        R::NothingToClear { pool } => Said::new(format!(
            "the last scrub of pool {pool} found nothing, or was cleared already"
        ))
        .then(format!("millrace pool show {pool}")),
        R::PreferWithoutRepair => {
            Said::new("a drive is preferred only where differences are repaired")
                .then("--repair --prefer DRIVE")
        }
        R::PreferUnknown { drive } => {
            Said::new(format!("{drive} is no drive of this pool")).then("millrace drive ls")
        }
        R::PreferTwice { drive, other, array } => {
            Said::new(format!("{other} and {drive} are drives of {array}: name only one of them"))
                .then("millrace drive ls")
        }
        R::UnclearedMapUnreadable { drive, fault } => {
            Said::new(format!("{drive}: its uncleared map: the drive {}", drive_fault(fault)))
                .then("millrace status")
        }
        R::VolumeGone => "the volume is gone".into(),
        R::VolumeJustShrunk { seconds } => Said::new(format!(
            "the volume has just shrunk: writes to what was cut off may be under way for {seconds} seconds"
        ))
        .then("this again then"),
        R::PoolBeingTakenOver => Said::new(
            "the other head is gone, and what it had to do with the pool is being taken over",
        )
        .then("this again in a second"),
    }
}

/// Two names of one drive.
fn one_drive(how: &OneDrive) -> String {
    match how {
        OneDrive::Paths { drive, other, wwid } => {
            format!("{drive} and {other} are two paths to one drive ({wwid}), or to parts of it")
        }
        OneDrive::Same { drive, other } => format!("{drive} and {other} are the same drive"),
        OneDrive::Overlap { drive, other } => {
            format!("{drive} and {other} are one drive, or one lies in the other")
        }
    }
}

/// Space that nobody could use.
fn unused(of: &UnusedSpace) -> String {
    let (unused, bytes) = (size_free(of.unused_bytes), size_free(of.bytes));
    format!("{unused} of the {bytes} of {} would stay unused", of.drive)
}

/// What helps where the head has too little memory.
fn more_memory(memory_bytes_min: u64) -> String {
    format!("memory = \"{}M\" or more in head.toml, a restart, then this again", memory_bytes_min >> 20)
}

/// What helps where the drives that are here do not say enough.
fn others_first(pool: &str) -> String {
    format!("attach its other drives, then millrace pool import {pool}")
}

/// Arrays that keep fewer copies than their pool.
fn less_redundant(
    pool: &str,
    (has, keeps): (u64, u64),
    mirror: bool,
    drives: &[String],
    mirrors: &[Vec<String>],
) -> Said {
    let what = if mirror {
        format!("a mirror of {keeps}")
    } else {
        format!("the single drive {}", drives.join(" "))
    };
    let then = match keeps {
        1 => "if that drive fails, data of volumes is lost".to_string(),
        n => format!("data of volumes is lost if {n} drives fail instead of {has}"),
    };
    let as_mirror = |drives: &Vec<String>| {
        let mut words: Vec<&str> = drives.iter().map(String::as_str).collect();
        words.resize(words.len().max(has as usize), "DRIVE");
        format!("mirror {}", words.join(" "))
    };
    let arrays: Vec<String> = mirrors.iter().map(as_mirror).collect();
    Said::new(format!("pool {pool} keeps {has} copies of everything, and {what} would keep {keeps}: {then}"))
        .then(format!("millrace pool add {pool} {}, or the same command with --force", arrays.join(" ")))
}

/// What follows for volumes of a pool that no other head can import.
fn ends_here(message: String, volumes: u64) -> String {
    let (what, holds) = match volumes {
        1 => ("volume".to_string(), "holds"),
        n => (count(n, "volume"), "hold"),
    };
    format!("{message}: no other head can import it, and what its {what} {holds} is lost")
}

/// A drive that force does not overwrite, with what puts it back.
fn listed(drive: &str, pool: &str, place: Option<&str>, removable: bool) -> Said {
    let back = match place {
        None => format!("millrace pool import {pool} --drive {drive}"),
        Some(place) if place == drive => format!("millrace drive return {place}"),
        Some(place) => format!("put it back to {place}, then millrace drive return {place}"),
    };
    Said::new(format!(
        "{drive} is a drive of pool {pool} of this head: --force does not overwrite such a drive"
    ))
    .then(match place {
        None => format!(
            "{back}; or, if nothing of pool {pool} is wanted any more, millrace pool release {pool}, then the same command with --force"
        ),
        Some(place) if removable => {
            format!("{back}; or millrace drive rm {place}, then the same command with --force")
        }
        Some(_) => back,
    })
}

/// What happened.
pub fn event(f: &PoolEvent) -> String {
    use PoolEvent as E;
    match f {
        E::PoolCreated => "it was created".into(),
        E::ArraysAdded => "arrays were added".into(),
        E::PoolDestroyed => "it was destroyed".into(),
        E::PoolImported { drives, unclean } => {
            let worst = if *unclean { "; it had not been closed cleanly" } else { "" };
            format!("it was imported from {}{worst}", drives.join(", "))
        }
        E::Noticed { notice } => notice_said(notice),
        E::ImportMet { what } => import_fault(what),
        E::LegOlder { pool } => {
            format!("it is of pool {pool}: {}", cause(&PoolCause::LegOlderCopy).message)
        }
        E::LegOutAtImport { pool, why } => format!("it is out of pool {pool}: {}", cause_said(why).message),
        E::PoolReleased => "it was released".into(),
        E::PoolForgotten => "it was forgotten: its drives are away".into(),
        E::ReleaseEnded => "its release had been interrupted, and was completed".into(),
        E::PoolReturned { silent: false } => "its drives are back: it was imported by itself".into(),
        E::PoolReturned { silent: true } => {
            "some of its drives are back, and the others do not answer: it was imported by itself".into()
        }
        E::ConfigNotKept { pool, fault } => state_fault(&StateFile::Kept { pool: Some(pool.clone()) }, fault),
        E::ArraysLeft { arrays, free } => {
            let free =
                if free.is_empty() { String::new() } else { format!(": now free: {}", free.join(", ")) };
            format!("{} left it{free}", arrays.join(", "))
        }
        E::RemovalEnded { free, left } => {
            let mut words = "the removal of arrays had been interrupted, and was completed".to_string();
            if !free.is_empty() {
                words.push_str(&format!(", now free: {}", free.join(", ")));
            }
            if !left.is_empty() {
                words.push_str(&format!("; {} may still have its label: {AGAIN}", left.join(", ")));
            }
            words
        }
        E::CreationEnded => {
            "its creation had been interrupted after everything was written, and was completed".into()
        }
        E::AdditionEnded => "the addition of arrays had been interrupted, and was completed".into(),
        E::WorkUndone { what, drives } => undone(what, drives),
        E::ScrubBegan { repair: true } => "a scrub began: differences are repaired".into(),
        E::ScrubBegan { repair: false } => "a scrub began: differences are reported".into(),
        E::ScrubStopped => "the scrub was stopped".into(),
        E::ScrubCleared => "what the last scrub found was cleared by the operator".into(),
        E::ScrubScheduled { days: 0 } => "it is not scrubbed by schedule any more".into(),
        E::ScrubScheduled { days: 1 } => "it is scrubbed every day".into(),
        E::ScrubScheduled { days } => format!("it is scrubbed every {days} days"),
        E::ScrubFound { volume, array, first_byte, last_byte, what } => {
            let place = match volume {
                Some(name) => format!("volume {name}, bytes {first_byte} to {last_byte}"),
                None => {
                    format!("space of array {array} that no volume has, bytes {first_byte} to {last_byte}")
                }
            };
            format!("{place}: {}", difference(what))
        }
        E::ScrubClean => "the scrub is over: all legs are the same".into(),
        E::ScrubUnreadable { pool, unreadable_bytes, places } => format!(
            "the scrub is over: {unreadable_bytes} bytes could not be read from every leg{}",
            all_places(pool, *places)
        ),
        E::ScrubDiffered { pool, differed_bytes, repaired_bytes, unreadable_bytes, places } => {
            let unreadable = match unreadable_bytes {
                0 => String::new(),
                n => format!(", {n} could not be compared"),
            };
            format!(
                "the scrub is over: legs differed in {differed_bytes} bytes, of which {repaired_bytes} were written again{unreadable}{}",
                all_places(pool, *places)
            )
        }
    }
}

/// What becomes of drives that could not be freed.
const AGAIN: &str = "the next start tries again, and --force takes it all the same";

/// Where all places are that a scrub found, if not all were told.
fn all_places(pool: &str, places: Option<u64>) -> String {
    places.map_or(String::new(), |n| {
        format!("; {n} places in all, the first of them are in millrace pool show {pool}")
    })
}

/// What a scrub found at a place.
pub fn difference(what: &Difference) -> String {
    let name = |drive: &Option<String>| drive.clone().unwrap_or_else(|| "a drive that left".into());
    let names = |drives: &[Option<String>]| drives.iter().map(name).collect::<Vec<_>>().join(", ");
    match what {
        Difference::Unreadable => "it could not be read from every leg".into(),
        Difference::Repaired { drives } => {
            format!("{} differed from the other legs and was written again", names(drives))
        }
        Difference::Differs { drives } => {
            format!("{} differs from the other legs, which agree", names(drives))
        }
        Difference::RepairedAsTold { drives, from } => {
            let (drives, from) = (names(drives), name(from));
            format!("{drives} differed from {from} and was written again from there, as --prefer says")
        }
        Difference::RepairedUnknown { drives, from } => {
            let (drives, from) = (names(drives), name(from));
            format!(
                "{drives} differed from {from} and was written again from there; which one was right cannot be known"
            )
        }
        Difference::Unknown { drives, from } => {
            format!("{} and {} differ; which one is right cannot be known", names(drives), name(from))
        }
    }
}

/// What was undone, and what became of the drives.
fn undone(what: &CutOffWork, drives: &Leftovers) -> String {
    let mut words = match what {
        CutOffWork::Creation => "its creation had been interrupted, and was undone".to_string(),
        CutOffWork::Addition => "arrays were being added to it, and that was undone".to_string(),
    };
    let Leftovers { freed, removed, kept, left } = drives;
    if !freed.is_empty() {
        words.push_str(&format!(": {} {} free again", freed.join(", "), is(freed)));
    }
    if !removed.is_empty() {
        words.push_str(&format!(": {}, made for it, {} removed", removed.join(", "), is(removed)));
    }
    if !kept.is_empty() {
        words.push_str(&format!(
            "; {} {} left: something is in there, without a label of ours",
            kept.join(", "),
            is(kept)
        ));
    }
    if !left.is_empty() {
        words.push_str(&format!(
            "; {} could not be freed and may still have its label: {AGAIN}",
            left.join(", ")
        ));
    }
    words
}

/// Why something is not optimal.
pub fn cause(f: &PoolCause) -> Said {
    use PoolCause as C;
    match f {
        C::PoolImporting => "it is being imported".into(),
        C::PoolDrivesInUse { also } => {
            format!("drives that may be of a pool are in use: {}", joined(also, import_fault)).into()
        }
        C::PoolBehindFence { drives } => {
            format!("it waits until the other head is shut off {}", drives.join(", ")).into()
        }
        C::PoolNotImported { pool, why, also, away, shaped } => {
            let clear: Vec<String> =
                shaped.iter().map(|d| format!("millrace drive shape {d} --clear")).collect();
            let next = match away.is_empty() {
                // What was shaped away is attached already.
                false if !clear.is_empty() => {
                    format!("{}, then millrace pool import {pool}", clear.join(", then "))
                }
                false => format!(
                    "attach {}: then it is imported by itself within a minute, or by millrace pool import {pool}",
                    away.join(" and ")
                ),
                true => label_help(pool, why, also).unwrap_or_else(|| way(why)),
            };
            Said::new(beside(why_said(why).message, also)).then(next)
        }
        C::PoolHeldBack { pool, crashes } => {
            Said::new(crashed(*crashes)).then(format!("millrace pool import {pool}"))
        }
        C::VolumesKept { why, volumes } => {
            let said = cause_said(why);
            let kept = count(*volumes, "volume");
            Said {
                message: format!("{}; hosts see {kept} as not ready", said.message),
                ..said
            }
        }
        C::PoolNotImportable { why } => Said::new(why_said(why).message).then(way(why)),
        C::ImportPreview { pool, clash, notices } => {
            let clash_words = clash.iter().map(|w| why_said(w).message);
            let words: Vec<String> = clash_words.chain(notices.iter().map(notice_said)).collect();
            let next = clash.as_ref().map_or_else(|| format!("millrace pool import {pool}"), |w| way(w));
            Said::new(words.join("; ")).then(next)
        }
        C::LegOlderCopy => {
            "it lacks the last membership record, as an older copy of the drive does: everything is being copied to it"
                .into()
        }
        C::LegMayBeNewer => "it may hold later writes than the pool".into(),
        C::LegNotWritten { fault } => {
            format!("it could not be written at import: the drive {}", drive_fault(fault)).into()
        }
        C::LegStaysBehind => "it lies in the memory of this daemon, and the pool was released".into(),
    }
}

/// Why pools wait for the operator.
fn crashed(times: u64) -> String {
    format!("the daemon crashed {times} times within a minute")
}

/// What is worth knowing.
pub fn notice(f: &PoolNotice) -> String {
    use PoolNotice as N;
    match f {
        N::DrivesBeingCleared => {
            "what the drives held reads as zeroes, and is cleared in the background; the pool can be used at once"
                .into()
        }
        N::FileLargerThanBelow { drive, free_bytes, bytes } => format!(
            "{drive} is sparse, and the file system below it has {} free for its {}: writes of new blocks fail once that is used",
            size_free(*free_bytes),
            size(*bytes)
        ),
        N::DriveSpaceUnused { drive } => unused(drive),
        N::LabelCopyDamaged { drive } => format!(
            "a copy of the label of {drive} is damaged: part of the drive was overwritten or cut off"
        ),
        N::StaleTakenByForce { array, pool, drive, missing } => {
            let away = if missing.is_empty() { String::new() } else { format!(" (missing: {})", missing.join(", ")) };
            format!(
                "{array} of pool {pool} was taken by force as {drive} has it, which lacks later writes: those are lost here{away}"
            )
        }
        N::UnprovenTakenByForce { array, pool, drives, missing } => {
            let what = if missing.len() == 1 { "drive is" } else { "drives are" };
            format!(
                "{array} of pool {pool} was taken by force as {} has it, and the {what} missing: {}, which may have later writes: those are lost here",
                drives.join(", "),
                missing.join(", ")
            )
        }
        N::PoolNamesakeIgnored { pool, uuid, drives } => format!(
            "another pool is called {pool} too ({}), and was left alone: millrace pool import {uuid} --as NAME takes it",
            drives.join(", ")
        ),
        N::FrontWritten { drive } => format!("something wrote to the first 4K of {drive}"),
        N::DriveHasLeft { drive, pool } => {
            format!("{drive} was a drive of pool {pool} once and is not any more")
        }
        N::NamespaceChanged { volume, nsid, was, holder } => {
            format!("volume {volume} has namespace id {nsid} now: {was} is that of {holder} here")
        }
        N::LunChanged { host, pool, lun, was } => {
            format!("host {host} sees a volume of pool {pool} as LUN {lun} now: {was} is taken here")
        }
        N::ArrayLacksDrive { array, drive, why } => format!("{array} lacks {drive}: {}", cause_said(why).message),
        N::SpareUnusable { spare, why } => {
            format!("its spare {spare} cannot be used: {}", cause_said(why).message)
        }
        N::PoolNotListed { why } => {
            format!("the pool is not in the list of pools: {}", why_said(why).message)
        }
        N::PoolInMemory { drives } => format!(
            "it lies in the memory of this daemon ({}): no other head can import it",
            drives.join(", ")
        ),
        N::DriveStaysBehind { drive, array } => format!(
            "{drive} lies in the memory of this daemon and stays behind: {array} has one drive less where the pool is imported; then: millrace drive replace {drive} NEW"
        ),
        N::DriveNotMarked { drive, fault } => {
            format!("{drive} could not be marked as released: the drive {}", drive_fault(fault))
        }
        N::MirrorsNotMarked { pool } => format!(
            "not every mirror is marked as released: another head may have to run millrace pool import {pool} --force"
        ),
        N::DriveKeepsPoolLabel { drive, pool } => {
            format!("{drive} is away or takes no writes: it keeps its label of pool {pool}")
        }
        N::RepairUnknown { arrays } => format!(
            "It is not known which drive of {} is right: differences there are reported and not repaired, unless --prefer names the good drive",
            arrays.join(", ")
        ),
        N::PreferNeedless { drive, array } => {
            format!("{drive} is a drive of {array}, in which the last scrub found no difference")
        }
        N::UnclearedMapDamaged { drive, fault } => {
            format!("the uncleared map of {drive} is damaged, and the drive {}", drive_fault(fault))
        }
        N::UnclearedMapLost { pool, array } => format!(
            "the uncleared map of pool {pool} is damaged on every drive of array {array}: space there that was never written may show what the drives held before"
        ),
        N::WorkUndone { pool, what, drives } => format!("Pool {pool}: {}", undone(what, drives)),
        N::KeptUnreadable { file, why } => format!("{}; {NOT_SEEN}", file_fault(file, why)),
        N::WitnessUnreadable { why } => format!("{}; the next record replaces it", cause_said(why).message),
        N::KeptContradicts { file } => {
            format!("the file {file} of the state directory: it contradicts itself; {NOT_SEEN}")
        }
        N::PoolStaysAway { pool, why } => {
            format!("pool {pool} is not imported: {}", cause_said(why).message)
        }
        N::PoolsHeldBack { crashes } => crashed(*crashes),
    }
}

/// What follows for hosts of a pool of which nothing is kept.
const NOT_SEEN: &str = "hosts do not see the volumes of that pool until it is imported";
