//! Words about records.

use super::Said;
use super::parts::{STATE_DISK, drive_fault, file_fault, list, state_fault};
use crate::words::topology::quoted;
use finding::{
    Cause, FileFault, ListFault, RecordCause, RecordEvent, RecordNotice, RecordRefusal, StateFault, StateFile,
};

/// What helps against a file that was removed.
const RESTORE: &str = "restore it from a copy, then systemctl restart millrace";

/// What helps while a file is being written again.
const AGAIN: &str = "millrace status, in a few seconds: it is being written again";

/// Why an order was not carried out.
pub fn refusal(f: &RecordRefusal) -> Said {
    match f {
        RecordRefusal::StateNoSpace { what } => state_fault(what, &StateFault::NoSpace).into(),
        RecordRefusal::StateFailed { what, fault } => match what {
            // Another head may be asked to lead with the hosts that it has: what helps is its disk.
            StateFile::OldWitness => Said::new(state_fault(what, fault)).then(STATE_DISK),
            _ => state_fault(what, fault).into(),
        },
        RecordRefusal::NothingDurable { fault } => Said::new(format!(
            "nothing was done, as the state directory takes nothing: {}",
            unwritable(fault)
        ))
        .then(STATE_DISK),
        RecordRefusal::OrderUnfinished { order, seconds, waits_for } => {
            let Said { message, next } = waited(waits_for.as_deref());
            let message = format!("{order} is not done after {seconds} s, and goes on: {message}");
            Said { message, next }
        }
        RecordRefusal::FileNotWrittenOver { why } => {
            let Said { message, next } = super::cause(why);
            Said { message: format!("{message}, and is not written over"), next }
        }
        RecordRefusal::FileNotRead { why } => {
            let Said { message, next } = super::cause(why);
            Said { message: format!("{message}, and what it says is not known"), next }
        }
        RecordRefusal::RowNotUnderstood { path, row, field } => {
            Said::new(format!("{path} says of {row} what this version does not understand: {field}"))
                .then("install the version that wrote it")
        }
        RecordRefusal::PortalAddressTaken => "there is a portal at this address already".into(),
        RecordRefusal::NumberTaken => "another one has this name or number already".into(),
        RecordRefusal::ChangeTargetGone => "what was to be changed is gone".into(),
        RecordRefusal::ChangeTargetExists => "it is there already".into(),
        RecordRefusal::ChangedMeanwhile => "something else was changed at the same time".into(),
        RecordRefusal::ChangeInvalid => "this would contradict the rest of the configuration".into(),
        RecordRefusal::ChangeWithoutDrive => "this would leave an array without a good drive".into(),
        RecordRefusal::EarlierChangeMissing => "a change before this one is missing".into(),
    }
}

/// What happened.
pub fn event(f: &RecordEvent) -> String {
    match f {
        RecordEvent::StateUnwritable { fault } => unwritable(fault),
        RecordEvent::LateOrderEnded { order, seconds, refused: None } => {
            format!("{order} is done, after {seconds} s")
        }
        RecordEvent::LateOrderEnded { order, seconds, refused: Some(why) } => {
            format!("{order} was refused after {seconds} s: {}", super::why(why).message)
        }
        RecordEvent::StateWritable => "it can be written again".into(),
        RecordEvent::FileUnreadable { file, path, why } => unread(file, path, why),
        RecordEvent::FileMissing { file, path } => missing(file, path),
        RecordEvent::RowNotUnderstood { path, row, field } => not_understood(path, row, field),
        RecordEvent::FileUnsettled { path, fault } => unsettled(path, fault),
        RecordEvent::IdentityMissing { file } => identity_missing(file),
        RecordEvent::PoolsFound { file, why, pools } => pools_found(file, why, pools),
        RecordEvent::StateOlderThanPool { pool } => older_than_pool(pool),
        RecordEvent::FilesRemoved { files } => removed(files),
        RecordEvent::FilesDamaged { files } => damaged(files),
        RecordEvent::FilesReturned { files } => format!("in its place again: {}", list(files)),
        RecordEvent::FilesRestored { files } => format!("written again: {}", list(files)),
        RecordEvent::FileNotRestored { file, why } => not_restored(file, &super::cause(why).message),
    }
}

/// Why something is not optimal.
pub fn cause(f: &RecordCause) -> Said {
    match f {
        RecordCause::StateFailed { what, fault } => Said::new(state_fault(what, fault)).then(STATE_DISK),
        RecordCause::StateUnwritable { fault } => Said::new(unwritable(fault)).then(STATE_DISK),
        RecordCause::OrderUnfinished { order, waits_for } => {
            let Said { message, next } = waited(waits_for.as_deref());
            let message =
                format!("{order} is not done yet, and no other order is carried out meanwhile: {message}");
            Said { message, next }
        }
        RecordCause::WitnessDamaged { file: _, path } => {
            format!("{path} is damaged, and proves no drive of its pool").into()
        }
        RecordCause::RecordNotTaken { why, drives, stale } => {
            let mut message = super::cause(why).message;
            for leg in drives {
                message += &format!("; {}: the drive {}", leg.drive, drive_fault(&leg.fault));
            }
            if *stale {
                message += "; the record that is there can neither be replaced nor removed, and would take the drive that was lost for current after a crash";
            }
            Said::new(message).then(record_next())
        }
        RecordCause::FileUnreadable { file, path, why } => {
            Said::new(unread(file, path, why)).then(unread_next(file, path, why))
        }
        RecordCause::FileMissing { file, path } => {
            Said::new(missing(file, path)).then("restore it from a copy, then systemctl restart millrace")
        }
        RecordCause::RowNotUnderstood { file: _, path, row, field } => {
            Said::new(not_understood(path, row, field)).then("install the version that wrote it")
        }
        RecordCause::FileUnsettled { file: _, path, fault } => {
            Said::new(unsettled(path, fault)).then(STATE_DISK)
        }
        RecordCause::IdentityMissing { file } => Said::new(identity_missing(file)).then(
            "restore it from a copy, then systemctl restart millrace, or, if there is none, millrace pool import NAME --force",
        ),
        RecordCause::FileRemoved { file } => Said::new(removed(std::slice::from_ref(file))).then(AGAIN),
        RecordCause::FileDamaged { file } => Said::new(damaged(std::slice::from_ref(file))).then(AGAIN),
        RecordCause::FileNotRestored { file, why } => {
            Said::new(not_restored(file, &super::cause(why).message)).then(RESTORE)
        }
        RecordCause::DaemonFileNotMade { file, why } => {
            let Said { message, next } = super::cause(why);
            let message = format!("{}, and cannot be made again: {message}", removed(std::slice::from_ref(file)));
            Said { message, next }
        }
        RecordCause::ContentUnknown => "nobody knows what it held".into(),
        RecordCause::WitnessPoolAway => {
            "the pool is away, and only its drives and this file tell which of them has the last writes".into()
        }
        RecordCause::KeptUnknown => "the pool is away, and it was not known what it held".into(),
        RecordCause::NotWritten { why } => {
            let Said { message, next } = super::why(why);
            Said { message: format!("the write was refused: {message}"), next }
        }
        RecordCause::StateDirectoryTaken { pid } => {
            let who = pid.map_or("another daemon".into(), |pid| format!("another daemon (process {pid})"));
            Said::new(format!("{who} has the state directory now"))
                .then("stop one of the two daemons at once: each writes over what the other one wrote")
        }
        RecordCause::LockNotMade { folder, error } => {
            Said::new(format!("{folder}: {error}")).then(format!("ls -ld {folder}"))
        }
        RecordCause::CrashRecordNotMade { path, error } => {
            Said::new(format!("{path}: {error}")).then(format!("ls -l {path}"))
        }
        RecordCause::PoolsFound { file, why, pools } => Said::new(pools_found(file, why, pools)).then(
            "see whether every pool is here: millrace pool ls, and millrace pool import --list; a restart ends this word",
        ),
        RecordCause::HostsMissing { file, hosts } => Said::new(format!(
            "the file {file} was missing, and volumes are exported to hosts that are not known without it: {}; they are not let in",
            list(hosts)
        ))
        .then(format!(
            "restore {file} from a copy, then systemctl restart millrace; or millrace host add, by these names"
        )),
    }
}

/// What is worth knowing.
pub fn notice(f: &RecordNotice) -> String {
    match f {
        RecordNotice::FileUnreadable { file: _, path, why } => file_fault(path, why),
        RecordNotice::LogUnreadable { file, fault } => {
            format!("the log of events: {}", state_fault(&StateFile::Named { file: file.clone() }, fault))
        }
        RecordNotice::LogNotWritten { fault } => state_fault(&StateFile::Log, fault),
        RecordNotice::IdentityMissing { file } => identity_missing(file),
        RecordNotice::IdentityNotWritten { why } => {
            format!("{}; this system will have another name after the next start", super::why(why).message)
        }
        RecordNotice::StateOlderThanPool { pool } => older_than_pool(pool),
        RecordNotice::FilesRestored { files } => {
            let (the_files, were) = named(files);
            format!(
                "{the_files} {were} removed from the state directory or damaged there while the head ran; written again"
            )
        }
    }
}

/// What helps where membership records cannot be written.
fn record_next() -> String {
    format!("{STATE_DISK}; if its file system became read-only, repair it and mount -o remount,rw")
}

/// What an order waits for.
fn waited(cause: Option<&Cause>) -> Said {
    match cause {
        Some(cause) => super::cause(cause),
        None => Said::new("it waits for drives, for the state directory or for hosts' commands")
            .then("millrace status"),
    }
}

fn unwritable(fault: &StateFault) -> String {
    format!(
        "{}: hosts, portals and pools stay as they are, no volume or export can be taken away, and a drive that fails now is on record on the other drives alone",
        takes_nothing(fault)
    )
}

/// Why a state directory takes nothing.
pub fn takes_nothing(fault: &StateFault) -> String {
    match fault {
        StateFault::NoSpace => "its disk is full".to_string(),
        StateFault::Missing => "it is gone".to_string(),
        StateFault::Failed { why } => format!("it cannot be written: {}", super::machine::state_fault(why)),
    }
}

/// A file that could not be read, and what follows.
fn unread(file: &str, path: &str, why: &FileFault) -> String {
    let follows = match file {
        "identity" => "hosts do not know this head until then, and pools of its old name stay away",
        "hosts" => "no host is let in",
        "portals" => "nobody is listened to",
        "pools" => {
            "pools are known by what the other files say of them, and none is made, released or destroyed"
        }
        "released" => "pools that were let go of are found by --drive alone, and none is released",
        "creating" => "drives of pools whose creation was cut off are not freed, and no pool is made",
        "tokens" => "no token lets anybody in",
        "alarms" => "what receivers were told is not kept",
        "format" => "no file that a former version wrote counts",
        "system-record" | "system-slot-0" | "system-slot-1" => "this directory does not vote",
        _ => "what it says is not known",
    };
    format!("{}: {follows}", file_fault(path, why))
}

/// What helps against that. A file that may only be unreadable for a moment is not to be moved away.
fn unread_next(file: &str, path: &str, why: &FileFault) -> String {
    // These are read again once they change. No other is accepted under a running daemon.
    let is_live = ["tokens", "alarms"].contains(&file);
    match why {
        FileFault::State { .. } if is_live => STATE_DISK.into(),
        FileFault::State { .. } => format!("{STATE_DISK}, then systemctl restart millrace"),
        FileFault::Version { .. } | FileFault::FieldUnknown { .. } => {
            "install the version that wrote it".into()
        }
        _ if is_live => mended(path),
        _ => format!("systemctl stop millrace; {}; then systemctl start millrace", mended(path)),
    }
}

/// What makes a file good that is not whole.
pub fn mended(path: &str) -> String {
    let path = quoted(path);
    format!("restore it from a copy, or repair it and accept it: millrace state check --sign {path}")
}

fn missing(file: &str, path: &str) -> String {
    let follows = match file {
        "hosts" => "no host is let in",
        "portals" => "nobody is listened to",
        _ => "what it said is not known",
    };
    format!("{path} was missing at the start: {follows}")
}

fn not_understood(path: &str, row: &str, field: &str) -> String {
    format!(
        "{path} says {field} of {row}, which this version does not know and a newer one wrote: {row} is not used"
    )
}

fn unsettled(path: &str, fault: &StateFault) -> String {
    let named = StateFile::Named { file: path.into() };
    format!(
        "{}: after a crash it may say what a refused order wanted, until it is written again",
        state_fault(&named, fault)
    )
}

fn identity_missing(file: &str) -> String {
    format!(
        "the file {file} was missing beside others: this head has a new name, and pools of its old one stay away"
    )
}

fn pools_found(file: &str, why: &ListFault, pools: &[String]) -> String {
    let what = match why {
        ListFault::Unread => "cannot be read",
        ListFault::Missing => "is missing",
        ListFault::Incomplete => "does not name all that this head had",
    };
    let (word, were) = if pools.len() == 1 { ("pool", "was") } else { ("pools", "were") };
    format!("the file {file} {what}: {word} {} {were} found by what was kept for the hosts", list(pools))
}

fn older_than_pool(pool: &str) -> String {
    format!(
        "the state directory is older than pool {pool}: it was restored from a copy, or could not be written when the head crashed; hosts, portals and pools may be older, too"
    )
}

/// Files as the subject of a sentence, with its verb.
fn named(files: &[String]) -> (String, &'static str) {
    let (were, s) = if files.len() == 1 { ("was", "") } else { ("were", "s") };
    (format!("the file{s} {}", list(files)), were)
}

fn removed(files: &[String]) -> String {
    let (the_files, were) = named(files);
    format!("{the_files} {were} removed from the state directory while the head ran")
}

fn damaged(files: &[String]) -> String {
    let (the_files, were) = named(files);
    format!("{the_files} {were} damaged in the state directory while the head ran")
}

fn not_restored(file: &str, why: &str) -> String {
    format!(
        "the file {file} of the state directory was removed or damaged, and cannot be written again: {why}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use finding::FailedLeg;

    #[test]
    fn a_record_that_nothing_takes_names_the_drive_and_what_helps() {
        let witness = RecordCause::StateFailed { what: StateFile::Witness, fault: StateFault::NoSpace };
        let leg = FailedLeg { drive: "/dev/sda".into(), fault: finding::DriveFault::Gone };
        let why = Box::new(witness.into());
        let not_taken = RecordCause::RecordNotTaken { why, drives: vec![leg], stale: true };
        let said = cause(&not_taken);
        assert_eq!(
            said.message,
            "the witness record could not be written: the state directory's disk is full; /dev/sda: the drive is gone; the record that is there can neither be replaced nor removed, and would take the drive that was lost for current after a crash"
        );
        assert!(said.next.is_some_and(|next| next.contains("remount,rw")));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_with_its_path_and_what_follows() {
        let of = |file: &str, why| {
            let path = format!("/var/lib/millrace/{file}");
            cause(&RecordCause::FileUnreadable { file: file.into(), path, why })
        };
        let said = of("hosts", FileFault::Empty);
        assert_eq!(said.message, "/var/lib/millrace/hosts is empty: no host is let in");
        let next = said.next.expect("a way on");
        assert_eq!(
            next,
            "systemctl stop millrace; restore it from a copy, or repair it and accept it: millrace state check --sign /var/lib/millrace/hosts; then systemctl start millrace"
        );
        let next = of("tokens", FileFault::Empty).next.expect("a way on");
        assert!(next.ends_with("--sign /var/lib/millrace/tokens") && !next.contains("systemctl"), "{next}");
        // A good file that cannot be read at this moment stays where it is.
        let fault = StateFault::Failed { why: base::machine::StateFault::NoDirectory };
        for why in FileFault::samples().into_iter().chain([FileFault::State { fault }]) {
            let next = of("tokens", why).next.expect("a way on");
            assert!(!next.contains("mv ") && !next.contains("remove"), "{next}");
        }
    }

    #[test]
    fn files_that_were_removed_are_one_sentence() {
        let files = vec!["hosts".into(), "portals".into()];
        assert_eq!(
            notice(&RecordNotice::FilesRestored { files }),
            "the files hosts, portals were removed from the state directory or damaged there while the head ran; written again"
        );
    }
}
