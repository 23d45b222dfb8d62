//! Words about legs.

use super::Said;
use finding::{LegCause, LegEvent, LegNotice, LegRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &LegRefusal) -> Said {
    use LegRefusal as R;
    match f {
        R::DriveNameShared { drive, drives } => {
            Said::new(format!("{drives} drives are called {drive}: their UUIDs tell them apart"))
                .then("millrace drive ls --json")
        }
        R::SpareIsNoLeg { drive, pool } => {
            Said::new(format!("{drive} is a spare of pool {pool}, and no leg of a mirror")).then(format!(
                "millrace pool show {pool}, or millrace drive rm {drive}, to use it otherwise"
            ))
        }
        R::DriveOfNoPool { drive } => {
            Said::new(format!("{drive} is no drive of an imported pool")).then("millrace drive ls")
        }
        R::LegOutAlready { drive } => {
            Said::new(format!("{drive} is out already")).then(format!("millrace drive return {drive}"))
        }
        R::LegIsNeeded { drive, mirror, out } => {
            let what = if *mirror { "is the last drive in sync of its mirror" } else { "has no mirror" };
            let next = match out {
                Some(out) => format!("millrace drive return {out}, and this again once it is in sync"),
                None if *mirror => {
                    "millrace status --watch, and this again once the other leg is in sync".into()
                }
                None => format!("millrace drive show {drive}"),
            };
            Said::new(format!("{drive} {what}: without it the pool does not work")).then(next)
        }
        R::OtherFileRemoved { drive, removed } => Said::new(format!(
            "the file of {removed} was removed: without {drive} nothing that stays holds what the mirror holds, and it is gone once the daemon stops"
        ))
        .then(format!(
            "millrace drive replace {removed} NEW, another file, and this again once that is in sync; or --force"
        )),
        R::LegBecameLast { drive } => {
            Said::new(format!("{drive} became the last drive in sync meanwhile")).then("millrace status")
        }
        R::LegResyncing { drive } => {
            Said::new(format!("{drive} is being resynced already")).then("millrace status")
        }
        R::LegWasReplaced { drive, pool } => {
            Said::new(format!("{drive} was a drive of pool {pool} once: another one has taken its place"))
                .then(format!("millrace pool add {pool} spare {drive}"))
        }
        R::BitmapNotWritten => {
            Said::new("the bitmap of the mirror could not be written: nothing was begun").then("millrace status")
        }
        R::DriveNotOpen { drive } => {
            Said::new(format!("{drive} is not open")).then(format!("millrace drive return {drive}"))
        }
    }
}

/// What happened.
pub fn event(f: &LegEvent) -> String {
    use LegEvent as E;
    match f {
        E::LegSlow { pool } => format!(
            "it is slow: its reads take far longer than those of the other legs in pool {pool}, which serve most of them now"
        ),
        E::LegFast { pool } => format!("it is as fast as the other legs in pool {pool} again"),
        E::LegHardlyRead { pool } => {
            format!("it was slow, and is hardly read now: nobody knows how fast it is in pool {pool}")
        }
        E::DriveIll { why } => super::cause(why).message,
        E::DriveWell => "it is well again".into(),
    }
}

/// Why something is not optimal.
pub fn cause(f: &LegCause) -> Said {
    match *f {}
}

/// What is worth knowing.
pub fn notice(f: &LegNotice) -> String {
    match *f {}
}
