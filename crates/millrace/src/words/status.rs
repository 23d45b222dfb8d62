//! Words about what `status` puts together.

use super::leg::{it_is_unfit, spares_unfit};
use super::parts::{count, net_fault};
use super::{Said, cause as any_cause};
use api::{Pool, State, Status};
use base::size::print;
use finding::{Cause, NetFault, StatusCause, StatusNotice, WayBack};

/// A pool's state: one that is optimal may have used up its spares.
pub fn pool_state(pool: &Pool) -> &'static str {
    match (pool.state, pool.no_spare) {
        (State::Optimal, true) => "optimal, no spare",
        (state, _) => state.word(),
    }
}

/// A head's health: one that is optimal may have no spare for the next drive.
pub fn health(status: &Status) -> &'static str {
    let used_up = status.pools.iter().find(|p| p.no_spare).filter(|_| status.health == State::Optimal);
    used_up.map_or(status.health.word(), pool_state)
}

/// Why something is not optimal.
pub fn cause(f: &StatusCause) -> Said {
    match f {
        StatusCause::LegNotOptimal { leg, mirror, why, no_spare_fits, help } => {
            let unfit = if no_spare_fits.is_empty() {
                String::new()
            } else {
                format!("; no spare fits: {}", spares_unfit(no_spare_fits))
            };
            let next = help.as_ref().and_then(|help| way_back(help, why.as_deref()));
            Said { message: format!("{leg} of {mirror}: {}{unfit}", sentence(why)), next }
        }
        StatusCause::MirrorOneLeg { pool, mirror, leg } => {
            Said::new(format!("{mirror}: {leg} is its only drive"))
                .then(format!("millrace pool add {pool} leg DRIVE --to {mirror}"))
        }
        StatusCause::MirrorComparing { mirror } => {
            format!("{mirror}: what may differ between its legs is being made the same").into()
        }
        StatusCause::BlocksUnreadable { array, pieces } => {
            Said::new(format!("{array}: {} could not be read from any drive", count(*pieces, "piece")))
                .then("millrace events")
        }
        StatusCause::SpareShapedAway { spare, why } => {
            let found = why.as_ref().map_or(String::new(), |why| format!(": {}", any_cause(why).message));
            Said::new(format!("its spare {spare} is shaped to be away{found}")).then(format!(
                "millrace drive shape {spare} --clear, then millrace drive return {spare}"
            ))
        }
        StatusCause::SpareUnreadable { spare, why } => Said::new(format!(
            "its spare {spare} cannot be used: {}",
            any_cause(why).message
        ))
        .then(format!(
            "unplug or reset it: once it answers, it is a spare again by itself (millrace drive return {spare}, at once); or millrace drive rm {spare}, to go on without it"
        )),
        StatusCause::SpareElsewhere { spare, why } => {
            Said::new(format!("its spare {spare} is not there: {}", any_cause(why).message)).then(format!(
                "attach it: then it is a spare again by itself; or millrace drive rm {spare}"
            ))
        }
        StatusCause::SpareOverwritten { spare, pool, why } => {
            Said::new(format!("its spare {spare} is no spare any more: {}", any_cause(why).message)).then(format!(
                "millrace drive rm {spare}, then millrace pool add {pool} spare {spare} --force"
            ))
        }
        StatusCause::SpareMissing { spare, pool } => {
            Said::new(format!("its spare {spare} is not there")).then(format!(
                "attach it, or put its file back: then it is a spare again by itself; or millrace drive rm {spare}, then millrace pool add {pool} spare DRIVE"
            ))
        }
        StatusCause::SpareUnhealthy { spare, why } => {
            let why = any_cause(why);
            Said { message: format!("its spare {spare} is not healthy: {}", why.message), next: why.next }
        }
        StatusCause::SpareFitsNone { spare, pool, why } => {
            Said::new(format!("its spare {spare} fits no mirror: {}", it_is_unfit(why))).then(format!(
                "millrace drive rm {spare}, and millrace pool add {pool} spare DRIVE, one that fits"
            ))
        }
        StatusCause::NoSpareLeft { pool, spare, old, seconds } => Said::new(format!(
            "no spare is left: {spare} took the place of {old} {}, and the next drive that fails is not replaced",
            ago(*seconds)
        ))
        .then(format!("replace {old}, and millrace pool add {pool} spare DRIVE")),
        StatusCause::ScrubDiffered { pool, bytes, running } => Said::new(format!(
            "the last scrub found {} in which legs differ, and did not repair them (pool show and events tell where)",
            print(*bytes)
        ))
        .then(if *running {
            format!("millrace pool show {pool}, for how far the one under way is")
        } else {
            format!(
                "millrace pool scrub {pool} --repair --prefer GOOD, or, if they were written since, millrace pool scrub {pool}, or millrace pool scrub {pool} --clear"
            )
        }),
        StatusCause::LossNotOnRecord { why } => Said::new(format!(
            "its volumes are not ready, as a loss cannot be put on record: {}",
            any_cause(why).message
        ))
        .then(WRITABLE),
        StatusCause::PoolNotRecorded { why } => {
            Said::new(format!("its records are not up to date: {}", any_cause(why).message)).then(WRITABLE)
        }
        StatusCause::PoolLossNotOnRecord => "a loss cannot be put on record".into(),
        StatusCause::ArrayNotOptimal { array, why } => format!("{array}: {}", sentence(why)).into(),
        StatusCause::ArrayWithoutLegs => "no drive in sync is there".into(),
        StatusCause::LegOfArray { leg, why } => format!("{leg}: {}", sentence(why)).into(),
        StatusCause::ArrayComparing => "what may differ between its legs is being made the same".into(),
        StatusCause::ArrayOneLeg { leg } => format!("{leg} is its only drive").into(),
        StatusCause::PortalClosed { protocol, address, head, fault, why } => {
            let there = head.as_ref().map_or_else(String::new, |head| format!("on head {head}: "));
            let rm = format!("millrace portal rm {protocol} {address}");
            let (ip, port) = address.rsplit_once(':').unwrap_or((address, ""));
            let ip = ip.trim_matches(['[', ']']);
            // It is tried again by itself.
            let next = match fault {
                Some(NetFault::InUse) => {
                    format!("ss -ltnp sport = :{port}, and stop who listens there, or {rm}")
                }
                Some(NetFault::NoAddress) => format!("ip address, and give this machine {ip}, or {rm}"),
                Some(NetFault::Refused | NetFault::Errno { .. }) | None => rm,
            };
            let again = if fault.is_some() { "; it is tried again" } else { "" };
            Said::new(format!("{there}{}{again}", sentence(why))).then(format!("{there}{next}"))
        }
        StatusCause::PortalFault { fault } => net_fault(fault).into(),
        StatusCause::PortalStopping => "the head is being stopped".into(),
        StatusCause::PortalHeld => "it stays closed until the pools are imported".into(),
        StatusCause::PortalOpening => "it is being opened".into(),
    }
}

/// What helps against a state directory that cannot be written to.
const WRITABLE: &str = "millrace status -v names the state directory: df -h and ls -ld there; if its file system became read-only, repair it and mount -o remount,rw";

fn sentence(why: &Option<Box<Cause>>) -> String {
    why.as_ref().map(|why| any_cause(why).message).unwrap_or_default()
}

fn way_back(help: &WayBack, why: Option<&Cause>) -> Option<String> {
    Some(match help {
        WayBack::AsTheCauseSays => return why.and_then(|why| any_cause(why).next),
        WayBack::AsFound { why } => return any_cause(why).next,
        WayBack::ReturnOrRemove { leg, shaped } => {
            let first =
                if *shaped { format!("millrace drive shape {leg} --clear, then ") } else { String::new() };
            format!("{first}millrace drive return {leg}, or millrace drive rm {leg}, and replace by another")
        }
        WayBack::ClearShape { leg } => {
            format!("millrace drive shape {leg} --clear, then millrace drive return {leg}")
        }
        WayBack::FreeFileSystem { leg } => format!(
            "free space in the file system of {leg}: it comes back by itself then, or at once by millrace drive return {leg}"
        ),
        WayBack::RestoreSpace { leg } => format!(
            "blockdev --getsize64 {leg}, or lvs if it is a thin volume: give it its space again, then millrace drive return {leg}; or millrace drive replace {leg} NEW"
        ),
        WayBack::Attach { leg } => {
            format!("attach {leg} again: it comes back by itself then, or millrace drive replace {leg} NEW")
        }
        WayBack::Return { leg } => {
            format!("millrace drive return {leg}, or millrace drive replace {leg} NEW")
        }
    })
}

/// What is noted.
pub fn notice(f: &StatusNotice) -> String {
    match f {
        StatusNotice::SpareStandsIn { pool, spare, old, seconds, spares_left } => {
            let left = match spares_left {
                0 => "no spare is left".to_string(),
                n => format!("{} left", count(*n, "spare")),
            };
            format!(
                "Pool {pool}: the spare {spare} took the place of {old} {}, {left}: replace the drive, and millrace pool add {pool} spare DRIVE",
                ago(*seconds)
            )
        }
    }
}

/// How long ago something was.
fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".into(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use finding::{DriveFault, LegCause};

    fn leg_helped_by(help: WayBack) -> Said {
        cause(&StatusCause::LegNotOptimal {
            leg: "/f/b".into(),
            mirror: "mirror-0".into(),
            why: Some(Box::new(LegCause::DriveNotFound.into())),
            no_spare_fits: vec![],
            help: Some(help),
        })
    }

    #[test]
    fn a_leg_that_is_out_is_told_with_what_brings_it_back() {
        let leg = || "/f/b".to_string();
        let attach = leg_helped_by(WayBack::Attach { leg: leg() });
        assert_eq!(attach.message, "/f/b of mirror-0: it was not found");
        let next = |help| leg_helped_by(help).next.expect("a command");
        assert_eq!(
            next(WayBack::ReturnOrRemove { leg: leg(), shaped: true }),
            "millrace drive shape /f/b --clear, then millrace drive return /f/b, or millrace drive rm /f/b, and replace by another"
        );
        assert_eq!(
            next(WayBack::FreeFileSystem { leg: leg() }),
            "free space in the file system of /f/b: it comes back by itself then, or at once by millrace drive return /f/b"
        );
        let space = next(WayBack::RestoreSpace { leg: leg() });
        assert!(space.starts_with("blockdev --getsize64 /f/b, or lvs"), "{space}");
        assert_eq!(
            next(WayBack::Return { leg: leg() }),
            "millrace drive return /f/b, or millrace drive replace /f/b NEW"
        );
        let why = LegCause::DriveTooSmall {
            leg: leg(),
            path: leg(),
            bytes: 40 << 20,
            needed_bytes: 80 << 20,
            file: true,
        };
        let found = next(WayBack::AsFound { why: Box::new(why.into()) });
        assert_eq!(found, "truncate -s 83886080 /f/b, then millrace drive return /f/b");
    }

    #[test]
    fn a_mirror_of_one_leg_names_the_order_that_adds_one() {
        let (pool, mirror, leg) = ("tank".into(), "mirror-0".into(), "/f/n".into());
        assert_eq!(
            cause(&StatusCause::MirrorOneLeg { pool, mirror, leg }),
            Said::new("mirror-0: /f/n is its only drive")
                .then("millrace pool add tank leg DRIVE --to mirror-0")
        );
    }

    /// Nobody is made to overwrite a spare that comes back by itself.
    #[test]
    fn a_spare_that_is_away_is_a_spare_again_by_itself() {
        let (spare, pool) = (|| "/f/s".to_string(), "tank".to_string());
        let fault = DriveFault::TimedOut;
        let why = Box::new(LegCause::DriveUnreadable { leg: spare(), fault }.into());
        for away in [
            StatusCause::SpareMissing { spare: spare(), pool },
            StatusCause::SpareUnreadable { spare: spare(), why },
        ] {
            let said = cause(&away);
            assert!(said.message.starts_with("its spare /f/s "), "{said:?}");
            let next = said.next.expect("something helps");
            assert!(next.contains("a spare again by itself") && !next.contains("--force"), "{next}");
        }
    }

    #[test]
    fn a_spare_that_stands_in_is_told_with_its_time_and_what_is_left() {
        let told = |seconds, spares_left| {
            let (pool, spare, old) = ("tank".into(), "/f/s".into(), "/f/b".into());
            notice(&StatusNotice::SpareStandsIn { pool, spare, old, seconds, spares_left })
        };
        assert_eq!(
            told(7201, 0),
            "Pool tank: the spare /f/s took the place of /f/b 2 h ago, no spare is left: replace the drive, and millrace pool add tank spare DRIVE"
        );
        assert!(told(59, 2).contains("just now, 2 spares left"), "{}", told(59, 2));
    }
}
