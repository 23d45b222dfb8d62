//! Words about drives, legs and spares.

use super::machine::{open_fault, shape_fault};
use super::parts::drive_fault;
use super::signature::signature;
use super::{Said, cause as any_cause, why as any_why};
use base::size::{print, print_free, print_needed};
use finding::{
    DriveArea, DriveFault, DriveHelp, DriveOwner, Instead, LabelFault, LegCause, LegEvent, LegNotice,
    LegRefusal, NewerPart, NotInBay, OldLeg, RecordName, SpareFit, SpareUnfit,
};

/// Why an order was not carried out.
pub fn refusal(f: &LegRefusal) -> Said {
    match f {
        LegRefusal::DriveNameShared { drive, drives } => {
            Said::new(format!("{drives} drives are called {drive}: their UUIDs tell them apart"))
                .then("millrace drive ls --json")
        }
        LegRefusal::SpareIsNoLeg { drive, pool } => {
            Said::new(format!("{drive} is a spare of pool {pool}, and no leg of a mirror")).then(format!(
                "millrace pool show {pool}, or millrace drive rm {drive}, to use it otherwise"
            ))
        }
        LegRefusal::DriveUnknown { drive } => {
            Said::new(format!("there is no drive {drive}")).then("millrace drive ls")
        }
        LegRefusal::DriveInNoPool { drive } => {
            Said::new(format!("{drive} is no drive of an imported pool")).then("millrace drive ls")
        }
        LegRefusal::LegOutAlready { drive } => {
            Said::new(format!("{drive} is out already")).then(format!("millrace drive return {drive}"))
        }
        LegRefusal::LegIsNeeded { drive, mirror, out, removal } => {
            let what = if *mirror { "is the last drive in sync of its mirror" } else { "has no mirror" };
            let next = match out {
                _ if *removal && *mirror => format!("millrace drive replace {drive} NEW"),
                Some(out) => format!("millrace drive return {out}, and this again once it is in sync"),
                None if *mirror => {
                    "millrace status --watch, and this again once the other leg is in sync".into()
                }
                None => format!("millrace drive show {drive}"),
            };
            Said::new(format!("{drive} {what}: without it the pool does not work")).then(next)
        }
        LegRefusal::OtherFileRemoved { drive, removed } => Said::new(format!(
            "the file of {removed} was removed: without {drive} no drive that stays has the data of the mirror, which is lost once the daemon stops"
        ))
        .then(format!(
            "millrace drive replace {removed} NEW, another file, and this again once that is in sync; or --force"
        )),
        LegRefusal::LegBecameLast { drive } => {
            Said::new(format!("{drive} became the last drive in sync meanwhile")).then("millrace status")
        }
        LegRefusal::LegResyncing { drive } => {
            Said::new(format!("{drive} is being resynced already")).then("millrace status")
        }
        LegRefusal::LegWasReplaced { drive, pool } => {
            Said::new(format!("{drive} was a drive of pool {pool} once: another one has taken its place"))
                .then(format!("millrace pool add {pool} spare {drive} --force"))
        }
        LegRefusal::BitmapNotWritten => {
            Said::new("the bitmap of the mirror could not be written: nothing was begun").then("millrace status")
        }
        LegRefusal::DriveNotOpen { drive } => {
            Said::new(format!("{drive} is not open")).then(format!("millrace drive return {drive}"))
        }
        LegRefusal::LegNotReplaceable { drive, pool, mirror } => Said::new(format!(
            "{drive} holds data that is nowhere else: it cannot be replaced"
        ))
        .then(match mirror {
            true => format!("millrace drive replace {drive} NEW, another drive"),
            false => format!("millrace pool show {pool}"),
        }),
        LegRefusal::LegServes { drive, pool } => {
            Said::new(format!("{drive} serves in pool {pool}: there is nothing to replace it by"))
                .then(format!("millrace drive replace {drive} NEW, another drive"))
        }
        LegRefusal::DriveStillBusy { drive, replaces } => Said::new(format!(
            "{drive} still holds operations that were begun before it failed"
        ))
        .then(match replaces {
            true => "millrace drive ls, for another",
            false => "millrace status, and return it once it answers or was unplugged",
        }),
        LegRefusal::DriveBusyOnOther { drive } => Said::new(format!(
            "the other head still has operations at {drive} that were begun before it failed"
        ))
        .then("millrace status, and this again"),
        LegRefusal::LegBeingReplaced { drive, new } => {
            Said::new(format!("{new} takes the place of {drive} already"))
                .then(format!("millrace status --watch, or millrace drive rm {new}, and this again"))
        }
        LegRefusal::LegReplacesAnother { drive, old } => {
            Said::new(format!("{drive} is about to take the place of {old}"))
                .then(format!("millrace drive rm {drive}, then millrace drive replace {old} NEW"))
        }
        LegRefusal::MirrorReplacesOne { mirror } => {
            Said::new(format!("a drive of {mirror} is being replaced, and there is room for one at a time"))
                .then("millrace status --watch")
        }
        LegRefusal::TooManyLegs { drives_max } => {
            Said::new(format!("a pool has at most {drives_max} drives, the new one included"))
                .then("millrace drive rm SPARE, or millrace drive fail OLD, and this again")
        }
        LegRefusal::TooManySpares { drives_max } => {
            Said::new(format!("a pool has at most {drives_max} drives")).then("millrace drive ls")
        }
        LegRefusal::DriveInPool { drive, pool } => {
            Said::new(format!("{drive} is a drive of pool {pool} already")).then("millrace drive ls")
        }
        LegRefusal::DriveIsSpare { drive, pool } => Said::new(format!("{drive} is a spare of pool {pool}"))
            .then(format!("millrace drive rm {drive}, and this again")),
        LegRefusal::MirrorFull { mirror, legs_max, drive, pool } => Said::new(format!(
            "{mirror} has {legs_max} legs, the most there can be"
        ))
        .then(format!("millrace drive replace LEG {drive}, or millrace pool add {pool} spare {drive}")),
        LegRefusal::LegNotForgotten => Said::new("some drive of the pool cannot be told of it yet")
            .then("millrace status, and this again"),
        LegRefusal::DrivesNotOpened { drives } => {
            let each: Vec<String> = drives.iter().map(|d| open_fault(&d.drive, &d.fault)).collect();
            Said::new(each.join("; ")).then("millrace drive ls")
        }
        LegRefusal::ShapeInvalid { fault } => {
            Said::new(shape_fault(fault)).then("millrace drive shape --help")
        }
        LegRefusal::MirrorNotInSync { drive } => {
            Said::new(format!("no other drive of the mirror of {drive} is in sync yet"))
                .then("millrace status")
        }
        LegRefusal::MirrorWithoutSource => {
            Said::new("no other drive of the mirror is there to copy from").then("millrace status")
        }
        LegRefusal::LegTooSmall { drive, bytes, needed_bytes } => Said::new(format!(
            "{drive} has {}, and a drive of the mirror needs {}",
            print_free(*bytes),
            print_needed(*needed_bytes)
        ))
        .then("millrace drive ls"),
        LegRefusal::SpareTooSmall { drive, pool, bytes, needed_bytes } => Said::new(format!(
            "{drive} has {}, and a drive of the smallest mirror of pool {pool} needs {}",
            print_free(*bytes),
            print_needed(*needed_bytes)
        ))
        .then("millrace drive ls"),
        LegRefusal::DriveBlocksTooLarge { drive } => {
            Said::new(format!("{drive} {BLOCKS}")).then("millrace drive ls")
        }
        LegRefusal::MirrorUnknown { pool, mirror, mirrors } => {
            Said::new(format!("pool {pool} has no mirror {mirror}")).then(add_leg(pool, mirrors))
        }
        LegRefusal::PoolWithoutMirror { pool } => {
            Said::new(format!("pool {pool} has no mirror: a single drive gets no second one"))
                .then(format!("millrace pool show {pool}"))
        }
        LegRefusal::MirrorNotNamed { pool, mirrors } => {
            Said::new(format!("pool {pool} has several mirrors ({}): name one", mirrors.join(", ")))
                .then(add_leg(pool, mirrors))
        }
        LegRefusal::MirrorLeftAlone { drive, mirror, pool } => Said::new(format!(
            "without {drive} {mirror} of pool {pool} has one drive in sync: if that fails, its data is lost"
        ))
        .then(format!("millrace drive replace {drive} NEW, or millrace drive rm {drive} --force")),
        LegRefusal::PoolTakesNoSpare { pool } => {
            Said::new(format!("pool {pool} has no mirror: a spare could never stand in for a drive"))
                .then(format!("millrace pool show {pool}"))
        }
        LegRefusal::SpareSilent { spare } => {
            Said::new(format!("{spare} does not answer")).then("millrace status")
        }
        LegRefusal::SpareIsOther { spare } => {
            Said::new(format!("{spare} is another drive now")).then("millrace drive ls")
        }
        LegRefusal::SpareNotThere { spare, why } => {
            Said::new(format!("{spare} is not the spare that was there: {}", any_cause(why).message))
                .then("millrace status")
        }
        LegRefusal::SpareNotBack { spare, why } => {
            Said::new(format!("the spare {spare} is not back: {}", any_cause(why).message))
                .then("millrace status")
        }
        LegRefusal::LegNotBack { leg, why } => {
            Said::new(format!("{leg} is not back: {}", any_cause(why).message))
                .then(format!("free or attach the drive, or millrace drive replace {leg} NEW"))
        }
        LegRefusal::LegNotYetBack { leg } => {
            Said::new(format!("{leg} may not return yet")).then("millrace status")
        }
        LegRefusal::LegLookedFor { leg } => Said::new(format!(
            "{leg} is not back yet: it is looked for every second, and taken back by itself"
        ))
        .then("millrace status"),
        LegRefusal::LegInSync { leg } => {
            Said::new(format!("{leg} is in sync: there is nothing to return")).then("millrace status")
        }
        LegRefusal::DriveShapedAway { drive, hangs } => {
            Said::new(format!("{drive} is shaped to be {}", if *hangs { "hanging" } else { "gone" }))
                .then(clear_shape(drive))
        }
        LegRefusal::LegFileSystemFull { drive } => {
            Said::new(format!("the file system below {drive} is full: what it missed does not fit there"))
                .then(free_space(drive))
        }
        LegRefusal::LegMayNotReturn { drive, pool, why, instead } => {
            let why = any_cause(why);
            let said = Said::new(format!("{drive} cannot return to pool {pool}: {}", why.message));
            match instead {
                Instead::AsItSays => Said { next: why.next, ..said },
                Instead::Overwrite { leg, drive } => said.then(overwrite(leg, drive)),
                Instead::Import { pool, drive } => {
                    said.then(format!("millrace pool import {pool} --drive {drive}"))
                }
                Instead::PutBack { place, drive } if place == drive => {
                    said.then(format!("millrace drive return {place}"))
                }
                Instead::PutBack { place, .. } => {
                    said.then(format!("put it back to {place}, then millrace drive return {place}"))
                }
            }
        }
        LegRefusal::LegFarBehind { drive, records } => Said::new(format!(
            "{} has missed {records} membership records, and must return first",
            drive.as_deref().unwrap_or("a drive")
        ))
        .then("millrace status"),
        LegRefusal::LabelIntact { drive } => {
            Said::new(format!("{drive} has its label: there is nothing to restore")).then("millrace status")
        }
        LegRefusal::LabelOfLegOut { drive } => {
            Said::new(format!("{drive} is out of its mirror: it gets its label when it returns"))
                .then(format!("millrace drive return {drive}"))
        }
        LegRefusal::LabelTakenOver { drive, owner } => {
            Said::new(format!("{drive} {}, which would be overwritten", taken_over(owner)))
                .then(format!("millrace drive restore-label {drive} --yes --force, if that may be lost"))
        }
        LegRefusal::LabelRestoreUnconfirmed { drive, areas } => Said::new(format!(
            "{}: data of {drive} may be damaged, too, and hosts are not told",
            match &areas[..] {
                [] => format!("something else was written to {drive}"),
                lost => format!("something else overwrote {drive}: {} lost", lost_areas(lost)),
            }
        ))
        .then(format!("millrace drive restore-label {drive} --yes, then check what its volumes hold")),
        LegRefusal::LabelNotRestored { drive, fault } => {
            Said::new(format!("the label of {drive} cannot be written: {}", the_drive(fault)))
                .then(format!("dmesg, smartctl -a {drive}"))
        }
        LegRefusal::DriveNotInMachine { drive } => {
            Said::new(format!("there is no drive {drive} in this machine"))
                .then("millrace topology, which lists drives with their slots")
        }
        LegRefusal::DriveWithoutBay { drive, what } => not_in_bay(drive, what),
        LegRefusal::BayWithoutLight { drive, slot } => {
            let place = slot.as_ref().map_or(String::new(), |s| format!(" (slot {s})"));
            Said::new(format!(
                "no light is known for the bay of {drive}{place}: neither an enclosure nor its port nor a hot-plug slot has one"
            ))
            .then(format!("ledctl locate=/dev/{drive}, from the package ledmon"))
        }
        LegRefusal::BayLightStuck { drive, path, error } => {
            Said::new(format!("{path} cannot be written: {error}"))
                .then(format!("sudo millrace drive locate {drive} --on, or --off, on the head"))
        }
    }
}

/// A drive that is no device, and so in no bay.
fn not_in_bay(drive: &str, what: &NotInBay) -> Said {
    match what {
        NotInBay::Memory => Said::new(format!("{drive} is memory of the daemon: there is no bay to light"))
            .then("millrace drive ls"),
        NotInBay::Null => Said::new(format!("{drive} forgets what is written: there is no bay to light"))
            .then("millrace drive ls"),
        NotInBay::File { path, bytes } => Said::new(format!(
            "{drive} is a file of {}: only the drive that its file system lies on is in a bay",
            print(*bytes)
        ))
        .then(format!("df {}, which names that drive", crate::words::topology::quoted(path))),
    }
}

/// Why something is not optimal.
pub fn cause(f: &LegCause) -> Said {
    match f {
        LegCause::DriveFailed { fault, helps } => {
            Said { message: the_drive(fault), next: helps.as_ref().map(drive_help) }
        }
        LegCause::DriveCutOff { bytes, had_bytes, helps } => Said {
            message: format!("the drive has {bytes} bytes now, and had {had_bytes}: it was cut off"),
            next: helps.as_ref().map(drive_help),
        },
        LegCause::LegRecordNotTaken { fault } => {
            format!("it could not take the membership record: {}", the_drive(fault)).into()
        }
        LegCause::LegConfigNotTaken { fault } => {
            format!("it could not take the configuration: {}", the_drive(fault)).into()
        }
        LegCause::LegAheadOfSource { source, fault } => format!(
            "it was being rebuilt, and may hold what its source lacks: drive {source}, the last good leg, {}",
            fault.as_ref().map_or("had been given up, and is needed".into(), drive_fault)
        )
        .into(),
        LegCause::LegOutByHand => "the operator took it out".into(),
        LegCause::LegRemovedByHand => "the operator removed it".into(),
        LegCause::LegPlaceTaken { new } => format!("{new} has taken its place").into(),
        LegCause::LegFullResync => "everything is being copied to it".into(),
        LegCause::LegReplacing { old } => {
            format!("everything is being copied to it; then it takes the place of {old}").into()
        }
        LegCause::LegResync => "what it missed is being copied to it".into(),
        LegCause::DriveTooSmall { leg, path, bytes, needed_bytes, file } => {
            Said::new(too_small(*bytes, *needed_bytes)).then(match file {
                true => format!("truncate -s {needed_bytes} {path}, then millrace drive return {path}"),
                // A loop device learns of the size of its file when it is told to look.
                false if path.starts_with("/dev/loop") => format!(
                    "truncate -s '>{needed_bytes}' $(losetup -nO BACK-FILE {path}), losetup -c {path}, then millrace drive return {path}; or millrace drive replace {leg} NEW"
                ),
                false => format!(
                    "make it {needed_bytes} bytes again (blockdev --getsize64 {path} tells), then millrace drive return {path}; or millrace drive replace {leg} NEW"
                ),
            })
        }
        LegCause::DriveOverwritten { leg, path, holds } => {
            Said::new(format!("what is there now holds {}", signature(*holds))).then(overwrite(leg, path))
        }
        LegCause::DriveUnlabelled { leg, path } => {
            Said::new("what is there now has no label: it is empty, or another").then(overwrite(leg, path))
        }
        LegCause::DriveLabelUnreadable { leg, path, fault } => {
            Said::new(format!("its label is {}", label_fault(fault))).then(overwrite(leg, path))
        }
        LegCause::DriveNewer { leg, path, newer } => Said::new(format!(
            "a newer version of millrace wrote there: {} has {}",
            record_name(&newer.record),
            newer_part(&newer.part)
        ))
        .then(format!("install that version, or a later one; {}", overwrite(leg, path))),
        LegCause::DriveUnreadable { leg, fault } => {
            Said::new(format!("it cannot be read: {}", the_drive(fault))).then(format!(
                "millrace drive return {leg}, once it answers, or millrace drive replace {leg} NEW"
            ))
        }
        LegCause::DriveDiverged { leg, path, pool } => Said::new(
            "it was used apart from the others meanwhile, and may hold later writes than the pool",
        )
        .then(format!(
            "if what {path} holds is right: millrace pool release {pool} --yes, then millrace pool import {pool} --force --drive {path}; if what the pool has now is: millrace drive replace {leg} {path} --force, which overwrites {path}"
        )),
        // By its UUID: another drive may be called by that path.
        LegCause::DriveMoved { uuid, path } => {
            Said::new(format!("it lies at {path} now")).then(format!("millrace drive return {uuid}"))
        }
        LegCause::DriveExchanged { leg, pool } => {
            Said::new(format!("another drive is there now, of pool {pool}")).then(format!(
                "attach the drive that was there, or millrace drive replace {leg} NEW"
            ))
        }
        LegCause::DriveNotFound => "it was not found".into(),
        LegCause::DriveAbsent { path } => format!("{path} is not there, and nowhere else").into(),
        LegCause::DriveUnopened { drive, fault } => open_fault(drive, fault).into(),
        LegCause::DriveLabelOfOther { pool } => {
            format!("it carries the label of another drive, of pool {pool}").into()
        }
        LegCause::DriveLabelElsewhere => "its label says another place in the pool".into(),
        LegCause::PoolGone => "the pool was released meanwhile".into(),
        LegCause::DriveNotCleared { fault } => {
            format!("it could not be cleared for the system: {}", the_drive(fault)).into()
        }
        LegCause::DriveLabelNotWritten { fault } => {
            format!("its label could not be written: {}", the_drive(fault)).into()
        }
        LegCause::DriveLabelOverwritten { drive } => Said::new(
            "something else on this machine overwrote its label, which is written again; the records beside it are whole",
        )
        .then(format!("fuser -v {drive}, or the shell histories, for what writes to it")),
        LegCause::DriveMetadataLost { drive, areas, last, others } => Said::new(format!(
            "something else overwrote it in use: {} lost, so data may be, too{}",
            lost_areas(areas),
            one_is_believed(others.as_deref())
        ))
        .then(match last {
            true => format!(
                "do not stop the daemon; copy what its volumes hold elsewhere, then {}",
                restore_label(drive, others.as_deref(), "--yes")
            ),
            false => format!(
                "fuser -v {drive}, for what writes to it; then millrace drive return {drive}, which copies everything"
            ),
        }),
        LegCause::DriveTakenOver { drive, owner, last, others } => Said::new(format!(
            "something else took it while it was in use: it {}{}",
            taken_over(owner),
            one_is_believed(others.as_deref())
        ))
        .then(match last {
            true => format!(
                "do not stop the daemon; end what writes to {drive}, copy what its volumes hold elsewhere, then {}",
                restore_label(drive, others.as_deref(), "--yes --force")
            ),
            false => format!("end what writes to {drive}; then {}", overwrite(drive, drive)),
        }),
        LegCause::SpareLabelOverwritten { spare, pool, owner } => {
            let now = owner.as_ref().map_or(String::new(), |o| format!(": it {}", taken_over(o)));
            Said::new(format!("its label was overwritten{now}"))
                .then(format!("millrace drive rm {spare}, then millrace pool add {pool} spare DRIVE"))
        }
        LegCause::SpareCutOff { spare, pool, bytes, had_bytes } => {
            Said::new(format!("it was cut off: {bytes} of its {had_bytes} bytes are there")).then(format!(
                "make it {had_bytes} bytes again, or millrace drive rm {spare}, then millrace pool add {pool} spare DRIVE"
            ))
        }
        LegCause::SpareFileMoved { spare } => {
            Said::new("its file is not at its path any more, where it would be looked for").then(mv_back(spare))
        }
        LegCause::SpareFileRemoved => "its file was removed".into(),
        LegCause::DriveSilent { drive, shaped } => {
            Said::new("the drive does not answer at the moment: hosts wait for it").then(match shaped {
                true => clear_shape(drive),
                false => {
                    format!("dmesg, smartctl -a {drive}; it is looked at again every few seconds")
                }
            })
        }
        LegCause::DriveFileMoved { drive } => {
            Said::new("its file is not at its path any more, where the next start looks for it")
                .then(mv_back(drive))
        }
        LegCause::DriveFileRemoved { drive } => Said::new(
            "its file was removed: its data is lost once the daemon stops",
        )
        .then(format!(
            "millrace drive replace {drive} NEW, another file; it serves until everything is copied"
        )),
        LegCause::LastFileRemoved => Said::new(
            "its file was removed, and no other drive has its data, which is lost once the daemon stops",
        )
        .then("do not stop the daemon; copy what its volumes hold elsewhere (millrace volume ls)"),
        LegCause::DriveFileSystemFull { drive, last } => Said::new(format!(
            "the file system below it is full: {}",
            match last {
                true => "writes of new blocks fail",
                false => "the next write of new blocks puts it out of its mirror",
            }
        ))
        .then(free_space(drive)),
        LegCause::DriveThinPoolFull { drive } => {
            Said::new("writes fail for lack of space: it may be a thin volume whose pool is full")
                .then(format!("lvs, or whatever gives {drive} its space: give it more"))
        }
        LegCause::DriveOperationsFailed { drive, fault } => {
            Said::new(format!("operations failed: {}", the_drive(fault))).then(match fault {
                DriveFault::Reserved => {
                    format!("sg_persist -r {drive}, or nvme resv-report {drive}, tells whose key it is")
                }
                _ => format!("dmesg, smartctl -a {drive}; millrace drive ls counts the errors"),
            })
        }
        LegCause::DriveLabelled { drive, pool, uuid, unfinished } => format!(
            "{drive} is labelled as a drive of pool {pool} ({uuid}){}",
            if *unfinished { ", which was never finished and holds nothing" } else { "" }
        )
        .into(),
        LegCause::DriveLabelNewer { drive, part } => {
            format!("{drive} carries a label of a newer version of millrace, with {}", newer_part(part)).into()
        }
        LegCause::DriveLabelDamaged { drive } => format!("{drive} carries a damaged label of millrace").into(),
        LegCause::DriveHolds { drive, holds } => format!("{drive} holds {}", signature(*holds)).into(),
        LegCause::DriveHasFailed { drive, pool, why, errors } => {
            let errors = match errors {
                0 => String::new(),
                1 => ", with 1 error".into(),
                n => format!(", with {n} errors"),
            };
            format!("{drive} has failed in pool {pool}: {}{errors}", any_cause(why).message).into()
        }
    }
}

/// What happened.
pub fn event(f: &LegEvent) -> String {
    match f {
        LegEvent::LegSlow { pool } => format!(
            "it is slow: its reads take far longer than those of the other legs in pool {pool}, which serve most of them now"
        ),
        LegEvent::LegFast { pool } => format!("it is as fast as the other legs in pool {pool} again"),
        LegEvent::LegHardlyRead { pool } => {
            format!("it was slow, and is hardly read now: nobody knows how fast it is in pool {pool}")
        }
        LegEvent::LegReplaced { new, old, was } => format!(
            "{new} takes the place of {old}, {}",
            match was {
                OldLeg::Serves => "which serves until everything is copied",
                OldLeg::Out => "which is out",
                OldLeg::Rebuilding => "which was not in sync yet",
            }
        ),
        LegEvent::LegRemoved { leg } => format!("{leg} is no leg of it any more"),
        LegEvent::DriveFreed { pool } => {
            format!("its label of pool {pool} is taken away: it can be used again")
        }
        LegEvent::DriveKeepsLabel { pool, why } => {
            format!("it keeps its label of pool {pool}: {}", any_cause(why).message)
        }
        LegEvent::SpareAdded { spare, fit: None } => format!("{spare} is a spare of it now"),
        LegEvent::SpareAdded { spare, fit: Some(fit) } => {
            format!("{spare} is a spare of it now; it {}", spare_fit(fit))
        }
        LegEvent::SpareRemoved { spare } => format!("{spare} is no spare of it any more"),
        LegEvent::SpareUsed { spare, old } => format!("the spare {spare} takes the place of {old}"),
        LegEvent::SpareNotUsed { spare, why } => {
            format!("the spare {spare} could not be used: {}", any_why(why).message)
        }
        LegEvent::NoSpareFits { leg, mirror, spares } => {
            format!("no spare fits in the place of {leg} in {mirror}: {}", spares_unfit(spares))
        }
        LegEvent::SpareReturned { spare } => format!("its spare {spare} is back"),
        LegEvent::SpareHealthy { spare } => format!("its spare {spare} is healthy again"),
        LegEvent::SpareUnusable { spare, why } => {
            format!("its spare {spare} cannot be used: {}", any_cause(why).message)
        }
        LegEvent::LastLegReturned { pool } => format!("it is back in pool {pool}, and in sync: hosts go on"),
        LegEvent::LabelRewritten { pool, first, second } => format!(
            "something else overwrote {} of its label, of pool {pool}: written again",
            label_copies(*first, *second)
        ),
        LegEvent::LabelRewrittenAtImport { pool, first, second } => format!(
            "the import of pool {pool} found {} of its label damaged: written again",
            label_copies(*first, *second)
        ),
        LegEvent::LabelRestored { pool } => format!(
            "its label and all that pool {pool} keeps on it were written anew by order: data on it may be damaged"
        ),
        LegEvent::LegCutOff { bytes, needed_bytes } => too_small(*bytes, *needed_bytes),
        LegEvent::LegJoined { pool, new, full } => format!(
            "it {} pool {pool}; {} is being copied to it",
            if *new { "is a leg of" } else { "is back in" },
            if *full { "everything" } else { "what it missed" }
        ),
        LegEvent::LegSynced { pool } => format!("it is in sync in pool {pool}"),
        LegEvent::LegOut { pool, why } => {
            format!("it was taken out of pool {pool}: {}", any_cause(why).message)
        }
        LegEvent::LegLeaves { pool, why } => format!("it leaves pool {pool}: {}", any_cause(why).message),
        LegEvent::MirrorCompares { mirror, bytes } => format!(
            "{} of {mirror} may differ between its drives: they are compared and made the same",
            mib(*bytes)
        ),
        LegEvent::MirrorCompared { mirror, bytes, seconds } => {
            format!("the drives of {mirror} are the same again: {} were compared in {seconds} s", mib(*bytes))
        }
        LegEvent::LossNotRecorded { why } => format!(
            "its loss of a drive cannot be put on record anywhere, so its volumes are not ready until it can: {}",
            why.as_ref().map_or("nothing answers".into(), |why| any_cause(why).message)
        ),
        LegEvent::LossRecorded => "its loss is on record, its volumes are ready again".into(),
        LegEvent::PathLostThere => {
            "the other head lost its path to it, and starts over without it: the drive stays in its pool"
                .into()
        }
        LegEvent::PathLostHere => {
            "this head lost its path to it, and the other one reaches it: that one takes over".into()
        }
        LegEvent::DriveErrors { fault } => {
            format!("{}: its mirror answered hosts; drive ls counts the errors", the_drive(fault))
        }
        LegEvent::DriveUnhealthy { why } => format!("it is not healthy: {}", any_cause(why).message),
        LegEvent::DriveHealthy => "it is healthy again".into(),
        LegEvent::FailedForgotten { pool } => {
            format!("it failed in pool {pool}, and is not listed there any more")
        }
    }
}

/// What is worth knowing.
pub fn notice(f: &LegNotice) -> String {
    match f {
        LegNotice::SpareFits { spare, fit } => format!("the spare {spare} {}", spare_fit(fit)),
    }
}

const BLOCKS: &str = "takes no 512-byte writes, and the pool has volumes of 512-byte blocks";

/// For which mirrors a spare cannot stand in.
pub fn spare_fit(fit: &SpareFit) -> String {
    match fit {
        SpareFit::Some { fits, why } => format!("fits {} only: {}", fits.join(", "), it_is_unfit(why)),
        SpareFit::Nowhere { why } => format!("fits no mirror: {}", it_is_unfit(why)),
    }
}

/// Why each of these spares fits nowhere.
pub fn spares_unfit(spares: &[SpareUnfit]) -> String {
    let one = |unfit: &SpareUnfit| {
        let (SpareUnfit::Blocks { spare } | SpareUnfit::TooSmall { spare, .. }) = unfit;
        format!("the spare {spare}: {}", it_is_unfit(unfit))
    };
    spares.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Why a spare does not fit.
pub fn it_is_unfit(why: &SpareUnfit) -> String {
    match why {
        SpareUnfit::Blocks { .. } => format!("it {BLOCKS}"),
        SpareUnfit::TooSmall { mirror, bytes, needed_bytes, .. } => format!(
            "it has {}, and a drive of {mirror} needs {}",
            print_free(*bytes),
            print_needed(*needed_bytes)
        ),
    }
}

/// A kind of record on a drive.
pub fn record_name(record: &RecordName) -> &'static str {
    match record {
        RecordName::Label => "the label",
        RecordName::Membership => "the membership record",
        RecordName::Configuration => "the configuration",
    }
}

/// What of a record this program does not know.
pub fn newer_part(part: &NewerPart) -> String {
    match part {
        NewerPart::Version { version } => format!("version {version}"),
        NewerPart::RoCompat { bits } => format!("unknown ro_compat features, {bits}"),
        NewerPart::Incompat { bits } => format!("unknown incompat features, {bits}"),
    }
}

pub fn label_fault(fault: &LabelFault) -> &'static str {
    match fault {
        LabelFault::Absent => "absent",
        LabelFault::Newer => "written by a newer version of millrace",
        LabelFault::Damaged => "damaged",
    }
}

fn label_copies(first: bool, second: bool) -> &'static str {
    match (first, second) {
        (true, true) => "both copies",
        (true, false) => "the first copy",
        (false, _) => "the second copy",
    }
}

/// What a drive has lost, as the subject of a sentence.
fn lost_areas(areas: &[DriveArea]) -> String {
    let name = |area: &DriveArea| match area {
        DriveArea::Records => "its membership records",
        DriveArea::Configuration => "its configurations",
        DriveArea::End => "what lay at its end",
    };
    match areas.split_last() {
        None => "its label is".into(),
        Some((last, [])) => format!("its label and {} are", name(last)),
        Some((last, rest)) => {
            let rest: String = rest.iter().map(|area| format!(", {}", name(area))).collect();
            format!("its label{rest} and {} are", name(last))
        }
    }
}

/// All legs of a mirror have lost their labels: whose data counts is the operator's to say.
fn one_is_believed(others: Option<&[String]>) -> String {
    others.map_or(String::new(), |others| {
        format!(
            "; nor has {} its label: the leg that is restored first is believed, and the other is copied from it",
            others.join(" or ")
        )
    })
}

/// How the label of a drive is restored, or that of another leg instead: the same words for each of them.
fn restore_label(drive: &str, others: Option<&[String]>, consent: &str) -> String {
    let Some(others) = others else { return format!("millrace drive restore-label {drive} {consent}") };
    let mut legs: Vec<&str> = others.iter().map(String::as_str).chain([drive]).collect();
    legs.sort_unstable();
    format!(
        "millrace drive restore-label LEG {consent}, with the LEG whose data is to survive: {}",
        legs.join(" or ")
    )
}

fn taken_over(owner: &DriveOwner) -> String {
    match owner {
        DriveOwner::Signature { holds } => format!("holds {} now", signature(*holds)),
        DriveOwner::Pool { pool, uuid } => {
            format!("carries the label of another drive, of pool {pool} ({uuid})")
        }
        DriveOwner::Newer => "carries a label of a newer version of millrace".into(),
    }
}

fn the_drive(fault: &DriveFault) -> String {
    format!("the drive {}", drive_fault(fault))
}

fn drive_help(help: &DriveHelp) -> String {
    match help {
        DriveHelp::ClearShape { drive } => clear_shape(drive),
        DriveHelp::Attach { drive } => format!("attach {drive} again; hosts wait for it"),
        DriveHelp::AwaitSpare { spare } => format!(
            "dmesg, smartctl -a {spare}; once it answers, it is a spare again by itself; or millrace drive rm {spare}"
        ),
        DriveHelp::Restore { drive } => {
            format!("millrace volume ls, and restore what lay at the end of {drive}")
        }
    }
}

fn clear_shape(drive: &str) -> String {
    format!("millrace drive shape {drive} --clear")
}

fn free_space(drive: &str) -> String {
    format!("free some space: df {drive}")
}

fn mv_back(path: &str) -> String {
    format!("mv the file back to {path}")
}

fn overwrite(leg: &str, drive: &str) -> String {
    format!("millrace drive replace {leg} {drive} --force (copies everything to it)")
}

fn too_small(bytes: u64, needed: u64) -> String {
    format!("it is too small: {bytes} of its {needed} bytes are there")
}

fn add_leg(pool: &str, mirrors: &[String]) -> String {
    match mirrors.first() {
        Some(mirror) => format!("millrace pool add {pool} leg DRIVE --to {mirror}"),
        None => format!("millrace pool show {pool}"),
    }
}

/// Bytes as people say them.
fn mib(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests;
