//! Words about systems.

use super::Said;
use super::link::{join_denial, join_next, key_fault, key_next, token_fault, token_next, unreached};
use super::machine::errno_words;
use super::machine::unreadable;
use super::parts::{
    STATE_DISK, alarm_fault, count, drive_unshareable, head_called, link_fault, link_next, no_fence_instead,
    not_shut_out, out_reason, trial_fault,
};
use super::record::takes_nothing;
use base::size::print_seconds;
use finding::{Asker, DaemonRight, DaemonThread, SystemCause, SystemEvent, SystemNotice, SystemRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &SystemRefusal) -> Said {
    match f {
        SystemRefusal::Stopping => Said::new("the head is stopping").then("millrace status"),
        SystemRefusal::StoppingNotBegun => Said::new("the head is being stopped: nothing of this was begun")
            .then("this again, once the head serves"),
        SystemRefusal::StoppingGivenUp => {
            Said::new("the head is being stopped: this was given up, and may have been carried out in part")
                .then("millrace status, once the head serves")
        }
        SystemRefusal::OrderGivenUp => "an order under way was given up".into(),
        SystemRefusal::LeaderUnreached => {
            Said::new("this head does not lead, and the one that does is not reached")
                .then("millrace head ls")
        }
        SystemRefusal::AnswerLost => Said::new(
            "the head that leads was asked, and was lost before it answered: whether it was done is not known",
        )
        .then("millrace events"),
        SystemRefusal::NobodyLeads => {
            Said::new("neither head leads now, so nothing can be ordered").then("millrace status")
        }
        SystemRefusal::HeadAlone => Said::new("this head is alone: it is in no system of two")
            .then("millrace system create --link ADDRESS:PORT"),
        SystemRefusal::HeadInSystem => {
            Said::new("this head is one of a system already").then("millrace head ls")
        }
        SystemRefusal::SystemComplete => {
            Said::new("this system has both its heads, so nobody could join by another token").then(
                "millrace system leave, on the head that is to go (here, if the other one is gone for good), \
                 then millrace system create again",
            )
        }
        SystemRefusal::HeadNameTooLong { bytes, bytes_max } => Said::new(format!(
            "the name of a head has at most {bytes_max} bytes, and this one has {bytes}"
        ))
        .then("the same with a shorter --name, or without"),
        SystemRefusal::FirstDecisionFailed => {
            Said::new("the state directory did not take the first decision of the system")
                .then("millrace status")
        }
        SystemRefusal::DriveUnshareable { drive, why, new } => {
            let other = no_fence_instead(why);
            Said::new(drive_unshareable(drive, why)).then(match new {
                true => format!("the same with {other}"),
                false => {
                    format!("millrace drive replace {drive} NEW, where NEW is {other}; then the same again")
                }
            })
        }
        SystemRefusal::OtherHeadIn { head } => {
            Said::new(format!("head {head} is still in the system, and must leave first"))
                .then(format!("millrace system leave, on head {head}; or millrace head fence {head}"))
        }
        SystemRefusal::ReleaseVotersUnreached { head } => {
            Said::new("too few voters are reached").then(is_off(head))
        }
        SystemRefusal::ReleaseDrivesLate { head, drives } => {
            Said::new(format!("{}: not known to be shut off head {head}", drives.join(", ")))
                .then(is_off(head))
        }
        SystemRefusal::OtherHeadThere => {
            Said::new("there is another head in this system").then("millrace head ls")
        }
        SystemRefusal::OtherHeadLeads => {
            Said::new("the other head leads: this one takes over by itself when it must")
                .then("millrace head ls")
        }
        SystemRefusal::LeadVotersUnreached => {
            Said::new("the other head is there, or too few voters are reached").then("millrace head ls")
        }
        SystemRefusal::FenceNotLeading => {
            Said::new("only the head that leads can fence the other one, and this one does not lead")
                .then("millrace head ls")
        }
        SystemRefusal::FenceVotersUnreached => {
            Said::new("too few voters are reached to fence the other head").then("millrace head ls")
        }
        SystemRefusal::SystemUnsupported => "this daemon cannot be a head of a system of two".into(),
        SystemRefusal::LinkAddressInvalid { address, port } => {
            let what = if *port { "with a port, as 10.9.0.1:7400" } else { "as 10.9.0.2" };
            Said::new(format!("link: {address} is not an address {what}")).then("ip -brief address")
        }
        SystemRefusal::LinkNetworksInvalid { networks, networks_max } => {
            let said = format!("a link has 1 to {networks_max} networks, and {networks} were given");
            Said::new(said).then(ADDRESSES)
        }
        SystemRefusal::LinkAddressUnusable { address } => {
            let said = format!("{address} is not the address of one network port, which a link needs");
            Said::new(said).then(ADDRESSES)
        }
        SystemRefusal::LinkFamiliesDiffer { own, address } => {
            Said::new(format!("{own} cannot reach {address}: one is IPv4, the other IPv6")).then(ADDRESSES)
        }
        SystemRefusal::LinkPortMissing { address } => {
            Said::new(format!("{address} has no port, and the other head must know it")).then(ADDRESSES)
        }
        SystemRefusal::LinkAddressTwice { address } => {
            Said::new(format!("two networks of the link have the address {address}")).then(ADDRESSES)
        }
        SystemRefusal::LinkAddressNotBound { address, errno } => {
            let said = format!("the link cannot listen at {address}: {}", errno_words(*errno));
            Said::new(said).then(ADDRESSES)
        }
        SystemRefusal::LinkNotStarted { errno } => {
            format!("the link cannot start: {}", errno_words(*errno)).into()
        }
        SystemRefusal::LinkFileNotWritten { errno } => {
            Said::new(format!("the file link cannot be written: {}", errno_words(*errno))).then(STATE_DISK)
        }
        SystemRefusal::LinkFileNotRemoved { errno } => {
            Said::new(format!("the file link cannot be removed: {}", errno_words(*errno))).then(STATE_DISK)
        }
        SystemRefusal::LinkKeyNotMade { error } => format!("no key can be made for the link: {error}").into(),
        SystemRefusal::LinkKeyUnusable { path, why } => {
            Said::new(format!("{path}: {}", key_fault(why))).then(key_next(path, why))
        }
        SystemRefusal::RandomUnavailable => "the operating system gives no random bytes".into(),
        SystemRefusal::TokenUnusable { why } => Said::new(token_fault(why)).then(token_next(why)),
        SystemRefusal::JoinNetworksDiffer { own, token } => Said::new(format!(
            "the token names {token} link addresses of the other head, and this head has {own}: each network needs both"
        ))
        .then("give this head one link address for each, then `millrace system join` again"),
        SystemRefusal::HeadUnreached { tried } => {
            let tried: Vec<String> =
                tried.iter().map(|t| format!("{}: {}", t.address, unreached(&t.why))).collect();
            Said::new(format!("no head to join is reached: {}", tried.join("; ")))
                .then("on the other head: `millrace status`; then `millrace system join` again here")
        }
        SystemRefusal::JoinDenied { why } => Said::new(join_denial(why)).then(join_next(why)),
        SystemRefusal::JoinUnanswered { address, why } => Said::new(format!(
            "{address} took the request to join, and its answer did not arrive: {}",
            unreached(why)
        ))
        .then("the same `millrace system join` again: a head that was let in is let in again"),
        SystemRefusal::HeadHasPool { pool } => {
            Said::new(format!("this head has pool {pool}: a head that joins must have none"))
                .then(format!("millrace pool release {pool}"))
        }
        SystemRefusal::ReleaseNotLeading => {
            Said::new("this head does not lead, and only the one that does can release the other one")
                .then("millrace head ls")
        }
        SystemRefusal::HeadNotReleased { why } => {
            let why = why
                .as_ref()
                .map_or("the head that leads is not reached".into(), |why| super::why(why).message);
            Said::new(format!("this head was not let go: {why}"))
                .then("millrace head ls; or millrace system leave --force")
        }
        SystemRefusal::HeadUnknown { name, heads } => {
            let all: Vec<String> = heads.iter().map(|h| head_called(&h.head, &h.name)).collect();
            Said::new(format!("head: there is no head {name} in this system, but {}", all.join(" and ")))
                .then("millrace head ls")
        }
        SystemRefusal::ShardsUnreached => {
            Said::new("they cannot be reached at the ports behind that of the link, one for each shard")
                .then("millrace head ls")
        }
        SystemRefusal::LanesNotMoved { pools } => {
            Said::new(format!("pool {} did not come to rest: lanes stay where they are", pools.join(", ")))
                .then("millrace status")
        }
    }
}

/// What shows which addresses a link can have.
const ADDRESSES: &str = "ip -brief address";

/// What helps where the other head cannot be let go.
fn is_off(head: &str) -> String {
    format!("millrace head fence {head} --is-off, if that head is switched off")
}

/// Who sent an order.
fn asker(who: &Asker) -> String {
    match who {
        Asker::ApiToken { name } => format!("token {name}"),
        Asker::LocalUser { name, uid } => format!("user {name} ({uid})"),
        Asker::OtherHead { head } => format!("head {head}"),
    }
}

/// What happened.
pub fn event(f: &SystemEvent) -> String {
    match f {
        SystemEvent::HeadStopped => "the head was stopped cleanly".into(),
        SystemEvent::HeadStoppedUnclean { why } => format!(
            "the head was stopped, and its pools are checked at the next start: {}",
            super::why(why).message
        ),
        SystemEvent::HeadWasPutOut { epoch } => format!(
            "this head was put out by the decision of epoch {epoch}: it restarts, and asks to be let in"
        ),
        SystemEvent::StateDirectoryOlder { epoch } => format!(
            "the state directory is an older copy: it knows nothing of the decision of epoch {epoch}, after which hosts or portals may have changed; this head does not lead without the other one, which has the latest hosts and portals"
        ),
        SystemEvent::VotersUnreached { reached, drives, linked } => format!(
            "this head does not see most of the voters ({reached} of {drives} drives, {} link): the other one may lead, so reads wait, and hosts are told to retry",
            if *linked { "and the" } else { "no" }
        ),
        SystemEvent::VotersReached => "this head reaches most voters again, and nobody else leads".into(),
        SystemEvent::OtherHeadRefused { head, name, why } => format!(
            "{} is refused at the link: {}; {}",
            head_called(head, name),
            link_fault(why),
            link_next(why)
        ),
        SystemEvent::HeadLeads { epoch } => format!("this head leads, epoch {epoch}"),
        SystemEvent::HeadLeadsAlone { epoch, head, name, why } => {
            let because = why.as_ref().map_or(String::new(), |w| format!(": {}", out_reason(w)));
            format!("this head leads, epoch {epoch}; {} is out{because}", head_called(head, name))
        }
        SystemEvent::HeadFollows { epoch, head, name } => {
            format!("this head follows, epoch {epoch}; {} leads", head_called(head, name))
        }
        SystemEvent::OtherHeadOut { epoch, head, name, why } => {
            format!("{} is out, epoch {epoch}: {}", head_called(head, name), out_reason(why))
        }
        SystemEvent::OtherHeadIn { epoch, head, name } => {
            format!("{} is in and follows, epoch {epoch}", head_called(head, name))
        }
        SystemEvent::HeadOutDecided { epoch } => {
            format!("this head is out: the decision of epoch {epoch} says so")
        }
        SystemEvent::HeadOutBehind { head, name } => format!(
            "{}, which led, is gone, and this head does not take over: it does not have all that it needs to lead",
            head_called(head, name)
        ),
        SystemEvent::HeadOutFenceFails { head, name, drive, why } => format!(
            "{}, which led, is gone, and this head does not take over: the fence of {drive} does not hold: {}",
            head_called(head, name),
            trial_fault(why)
        ),
        SystemEvent::HeadOutFenced => "this head is out: most drives refuse it".into(),
        SystemEvent::HeadOutUnended => {
            "what was begun for the head that led does not end: this head starts anew".into()
        }
        SystemEvent::FollowerLacksFile { path, .. } => {
            format!(
                "the follower cannot take over: {path} cannot be read or is not whole, so it does not get it"
            )
        }
        SystemEvent::FollowerReady => "the follower has all that it needs to take over".into(),
        SystemEvent::OtherHeadHasLatest => {
            "the other head has the latest hosts and portals: this one does not lead without it".into()
        }
        SystemEvent::DriveNotShutOff { drive, why } => not_shut_out(drive, why),
        SystemEvent::DriveNotLookedAt { drive, fault } => unreadable(drive, fault),
        SystemEvent::FollowerLacksDrive { head, name, drive } => {
            format!("{} does not reach {drive}: it would take over without it", head_called(head, name))
        }
        SystemEvent::FollowerReachesDrive { head, name, drive } => {
            format!("{} reaches {drive} again", head_called(head, name))
        }
        SystemEvent::FenceFails { drive, why } => format!(
            "the fence of {drive} does not hold: {}; the follower does not take over: replace the drive",
            trial_fault(why)
        ),
        SystemEvent::FenceUntried { drive, why, again_seconds } => format!(
            "the fence of {drive} could not be tried: {}; the follower does not take over before; it is tried again every {again_seconds} s",
            trial_fault(why)
        ),
        SystemEvent::OrderDone { who, from, method, path, refused } => {
            let place = from.as_ref().map_or_else(String::new, |from| format!(" from {from}"));
            let end = refused.as_ref().map_or("done".into(), |code| format!("refused ({code})"));
            format!("{}{place}: {method} {path}: {end}", asker(who))
        }
        SystemEvent::TokenAdded { name, rights, expires } => {
            let end = expires.as_ref().map_or("does not expire".into(), |at| format!("expires {at}"));
            format!("token {name} is made: its rights are {rights}, and it {end}")
        }
        SystemEvent::ApiAccessThrottled { from, failures } => format!(
            "{failures} requests with a wrong token came from {from}: more of them are delayed, each longer, up to 30 s"
        ),
        SystemEvent::HeadServes => "the head serves".into(),
        SystemEvent::FencesHold { drives: 1, least_milliseconds: ms, .. } => {
            format!("the fence of 1 drive was tried: it holds ({ms} ms)")
        }
        SystemEvent::FencesHold { drives, least_milliseconds, most_milliseconds } => format!(
            "the fences of {} were tried: all hold ({least_milliseconds} to {most_milliseconds} ms)",
            count(*drives, "drive")
        ),
        SystemEvent::ShardsStayAway { why } => {
            format!("the other head's shards do not take part: {}", super::why(why).message)
        }
        SystemEvent::ConfigurationLater { known, found, volumes_known, volumes_found } => format!(
            "this head knew configuration {known}, and the drives hold {found}{}: a change was under way; the drives count",
            volumes_only(volumes_known, volumes_found)
        ),
        SystemEvent::ConfigurationEarlier { known, found, volumes_known, volumes_found } => format!(
            "the drives hold configuration {found}, and this head knew {known}{}: the drives count; a drive that has it may be missing: millrace status",
            volumes_only(volumes_known, volumes_found)
        ),
        SystemEvent::ConfigurationDiffers { found, volumes_known, volumes_found } => format!(
            "configuration {found} on the drives is not the one that this head knew{}: the drives count; compare volumes and exports with what you know: millrace volume ls",
            volumes_only(volumes_known, volumes_found)
        ),
        SystemEvent::AlarmReceiverDead { receiver, tries, why } => format!(
            "the receiver {receiver} did not take alarms {tries} times in a row: {}; they wait, and are sent again: millrace alarm test {receiver}",
            alarm_fault(why)
        ),
        SystemEvent::AlarmReceiverWell { receiver, seconds, lost } => {
            let lost = match lost {
                0 => "none was lost".to_string(),
                n => format!("{} found no room and were lost: millrace events has them", count(*n, "alarm")),
            };
            format!("the receiver {receiver} takes alarms again, after {}: {lost}", print_seconds(*seconds))
        }
    }
}

/// Volumes that one of both configurations has.
fn volumes_only(known: &[String], found: &[String]) -> String {
    let only = |names: &[String], there: &str| {
        (!names.is_empty()).then(|| format!("volumes only {there}: {}", names.join(", ")))
    };
    let both: Vec<String> =
        only(known, "in the state directory").into_iter().chain(only(found, "on the drives")).collect();
    if both.is_empty() { String::new() } else { format!(" ({})", both.join("; ")) }
}

/// Why something is not optimal.
pub fn cause(f: &SystemCause) -> Said {
    match f {
        SystemCause::HeadStarts => {
            Said::new("this head is starting, and serves nobody yet").then("millrace status, in a moment")
        }
        SystemCause::NotLeadingLinkRefused { why } => {
            Said::new(format!("this head does not lead: {}", link_fault(why))).then(link_next(why))
        }
        SystemCause::NotLeadingYet => Said::new("this head does not lead yet").then("millrace head ls"),
        SystemCause::NotLeadingUnreached { head, name } => {
            Said::new(format!("this head does not lead, and {} is not reached", head_called(head, name)))
                .then("millrace head ls, in a moment")
        }
        SystemCause::NeitherLeads { reached, drives } => {
            Said::new(format!("neither head leads now: this one reaches {reached} of {drives} voter drives"))
                .then("millrace head ls, in a moment")
        }
        SystemCause::NotReadyToLead { head, name } => Said::new(format!(
            "{} is not reached, and this head was not ready to take over",
            head_called(head, name)
        ))
        .then(format!("start head {head}, or millrace head lead --with-old-hosts (if it cannot start any more)")),
        SystemCause::OtherHeadRefused { why } => {
            Said::new(format!("{}: nobody takes over if this one ends", link_fault(why))).then(link_next(why))
        }
        SystemCause::OtherHeadOut { head, name } => {
            Said::new(format!("{} is out; nobody takes over if this one ends", head_called(head, name)))
                .then(format!("systemctl start millrace, on head {head}"))
        }
        SystemCause::OtherHeadPutOut {
            head,
            name,
            since,
            why,
            lives,
            shut_off,
            drives,
            linked,
            lacks,
            pauses,
        } => {
            let why = why.as_ref().map(out_reason);
            let out = is_out(since.as_deref(), why.as_deref(), *shut_off, *drives);
            let kept_out = match (lacks, pauses) {
                (Some(fault), _) => format!("; its state directory takes nothing: {}", takes_nothing(fault)),
                (None, true) => "; it went out again and again for this, and comes back after a pause".into(),
                (None, false) => String::new(),
            };
            let next = match (lacks, pauses, *linked || *lives) {
                (Some(_), ..) => format!("df and dmesg, on head {head}: it comes back once its state directory takes something"),
                (None, true, _) => format!("millrace head ls, or millrace head fence {head} (it may come back at once)"),
                // It comes back by itself, or once the link does, which is told there.
                (None, false, true) => "millrace head ls".into(),
                (None, false, false) => format!("systemctl start millrace, on head {head}"),
            };
            Said::new(format!(
                "{} {out}{kept_out}; nobody takes over if this one ends",
                head_called(head, name)
            ))
            .then(next)
        }
        SystemCause::FollowerNotReady { head, name } => Said::new(format!(
            "{} is not ready to take over yet: nobody takes over if this one ends",
            head_called(head, name)
        ))
        .then("millrace head ls, in a moment"),
        SystemCause::FollowerWithoutFile { head, name, leader, file: _, path } => Said::new(format!(
            "{} is not ready to take over: it does not get {path} of head {leader}, which cannot be read or is not whole",
            head_called(head, name)
        ))
        .then(format!(
            "mend {path} on head {leader}, or, if head {head} has a whole one (millrace state check, there), stop head {leader}, then millrace head lead --with-old-hosts, on head {head}"
        )),
        SystemCause::VotersUnreached => Said::new(
            "this head does not see most of the voters: the other one may lead, so reads wait, and hosts are told to retry",
        )
        .then("mend the link, or the paths to the drives; millrace head ls names the voters that are reached"),
        SystemCause::FollowerLacksDrive { head, name, drive } => Said::new(format!(
            "{} is not ready to take over: it does not reach {drive}, and would go on without it",
            head_called(head, name)
        ))
        .then(format!("millrace head ls, on head {head}")),
        SystemCause::DriveNotShutOff { drive, head } => {
            Said::new(format!("{drive} has not confirmed that the other head is shut out")).then(format!(
                "millrace drive ls, or, if that head is switched off, millrace head fence {head} --is-off"
            ))
        }
        SystemCause::FenceFails { head, name, drive, why } => Said::new(format!(
            "{} does not take over: the fence of {drive} does not hold: {}",
            head_called(head, name),
            trial_fault(why)
        ))
        .then(format!(
            "millrace drive replace {drive} NEW, or mend it, then millrace head fence {head} (it is tried again)"
        )),
        SystemCause::FenceUntried { head, name, drive, why } => Said::new(format!(
            "{} does not take over: the fence of {drive} could not be tried: {}",
            head_called(head, name),
            trial_fault(why)
        ))
        .then("millrace head ls, in a moment"),
        SystemCause::ApiAddressInUse { address, port } => {
            api_deaf(address, "the address is in use").then(format!(
                "ss -ltnp sport = :{port}, and stop who listens there, {OTHER_ADDRESS}"
            ))
        }
        SystemCause::ApiAddressMissing { address, ip } => {
            api_deaf(address, "this machine does not have the address")
                .then(format!("ip address, and give this machine {ip}, {OTHER_ADDRESS}"))
        }
        SystemCause::ApiNotListening { address, error } => {
            api_deaf(address, error).then("another api.tcp in head.toml and a restart")
        }
        SystemCause::HeldBack { crashes, last, path, config } => {
            let config = config.as_ref().map_or(String::new(), |path| format!(" --config {path}"));
            Said::new(format!(
                "the daemon crashed {crashes} times within a minute (last: {last}), so it started with management only, and did not import the pools"
            ))
            .then(format!(
                "millrace pool import POOL, or millrace serve --import{config}, or remove {path} and restart the daemon"
            ))
        }
    }
}

/// What helps where the API does not listen, too.
const OTHER_ADDRESS: &str = "or another api.tcp in head.toml and a restart";

fn api_deaf(address: &str, why: &str) -> Said {
    Said::new(format!("the API cannot listen at api.tcp = {address}: {why}; it is tried again"))
}

/// That a head was put out, behind "head b".
fn is_out(since: Option<&str>, why: Option<&str>, shut_off: u16, drives: u16) -> String {
    let since = since.map_or(String::new(), |at| format!(" since {at}"));
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    format!("is out{since}{why}; it is shut off {shut_off} of {drives} drives")
}

/// That a head was put out, behind "head b".
pub fn head_out(out: &api::HeadOut) -> String {
    let kept_out = match (&out.lacks, out.again_seconds) {
        (Some(fault), _) => {
            format!("; its state directory takes nothing, so it is not let in: {}", takes_nothing(fault))
        }
        (None, Some(seconds)) => format!("; it is let in again in {seconds} s"),
        (None, None) => String::new(),
    };
    is_out(out.since.as_deref(), out.reason.as_deref(), out.shut_off, out.drives) + &kept_out
}

/// What the trial of a fence found, behind "the fence of /dev/sda".
pub fn fence_trial(trial: &api::FenceTrial) -> String {
    let why = || trial.reason.clone().unwrap_or_default();
    match trial.state.as_str() {
        "holds" => format!("holds ({} ms)", trial.took_ms.unwrap_or_default()),
        "fails" => format!("does not hold: {}", why()),
        _ => format!("could not be tried: {}", why()),
    }
}

/// What is worth knowing.
pub fn notice(f: &SystemNotice) -> String {
    match f {
        SystemNotice::LinkShared { address } => format!(
            "{address} is an address of the link and of a portal: what hosts send there delays heartbeats, so give the link a network of its own"
        ),
        SystemNotice::OwnReplaced { hosts, portals } => {
            let hosts = hosts.iter().map(|host| format!("host {host}"));
            let all: Vec<String> = hosts.chain(portals.iter().map(|p| format!("portal {p}"))).collect();
            format!("the system's hosts and portals have replaced this head's own: {}", all.join(", "))
        }
        SystemNotice::DriveNotShutOff { drive, why } => not_shut_out(drive, why),
        SystemNotice::PoolNotMarked { pool, why } => {
            format!("pool {pool} is not marked as one of two heads: {}", super::why(why).message)
        }
        SystemNotice::RightsMissing { rights, root } => rights_missing(rights, *root),
        SystemNotice::TokenFileOpen { path, mode } => format!(
            "api.token_file = {path} has mode {mode:04o}: others than its owner can use or change the token: chmod 600 {path}"
        ),
        SystemNotice::ShardsShareCores { shards, cores } => format!(
            "{shards} shards share {} and slow each other down: remove shards from head.toml",
            count(*cores, "core")
        ),
        SystemNotice::ShardsFewerThanCores { shards, cores } => format!(
            "{} on {}: memory has no room for more; give the daemon more of it, or set shards in head.toml",
            count(*shards, "shard"),
            count(*cores, "core")
        ),
        SystemNotice::SocketFolderMade { path } => {
            format!("The folder {path} of the socket was not there and was made")
        }
        SystemNotice::OpenFilesLimited { limit, connections } => format!(
            "Only {limit} open files are allowed and {connections} connections may come: raise RLIMIT_NOFILE \
             (LimitNOFILE in the unit)"
        ),
        SystemNotice::ThreadNotBound { thread, core } => {
            let thread = match thread {
                DaemonThread::Shard { number } => format!("shard {number}"),
                DaemonThread::Steward => "the steward".into(),
                DaemonThread::Manager => "the manager".into(),
            };
            format!("The thread of {thread} could not be bound to CPU {core}")
        }
        SystemNotice::MemoryNotResident { bytes, all_bytes, errno } => format!(
            "Only {} of {} MiB of memory could be allocated ahead ({}), the rest is allocated as it is used: configure less \
             (memory in head.toml)",
            bytes >> 20,
            all_bytes >> 20,
            errno_words(*errno)
        ),
        SystemNotice::BuffersNotRegistered { bytes, errno } => format!(
            "Not all buffers are registered with the kernel ({}), so drives cost more CPU: allow {} MiB of locked \
             memory (LimitMEMLOCK=infinity in the unit)",
            errno_words(*errno),
            bytes >> 20
        ),
        SystemNotice::DriveCached { drive, block_bytes } => format!(
            "{drive}: the file system does not do direct I/O in blocks of {block_bytes} bytes, so the page cache is \
             used; put the file on ext4 or XFS, or give a block device"
        ),
    }
}

/// One sentence for all that the kernel does not allow.
fn rights_missing(rights: &[DaemonRight], root: bool) -> String {
    // Without its number.
    let plain = |errno: i32| {
        let text = errno_words(errno);
        text.split(" (os error").next().unwrap_or(&text).to_lowercase()
    };
    let to = |right: &DaemonRight| match right {
        DaemonRight::LockMemory { errno } => format!("lock its memory ({})", plain(*errno)),
        DaemonRight::MoreFiles { files } => format!("open more than {files} files"),
        DaemonRight::RaiseFiles { errno } => format!("raise its limit of open files ({})", plain(*errno)),
        DaemonRight::IoFlusher { errno } => format!("set PR_SET_IO_FLUSHER ({})", plain(*errno)),
    };
    let all: Vec<String> = rights.iter().map(to).collect();
    let list = match all.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => all.concat(),
    };
    // Root in a container, or under a limit: only whoever set the limit can raise it.
    let next = if root {
        "this container or session limits even root; packaging/millrace.service does not"
    } else {
        "start it with systemd, or as root"
    };
    format!("The daemon was not allowed to {list}: {next}")
}

#[cfg(test)]
mod tests {
    use super::super::parts::{link_fault, link_next};
    use super::*;
    use finding::{LinkFault, TrialFault};

    #[test]
    fn each_head_says_which_versions_the_other_has_and_which_one_is_to_be_updated() {
        let version = |oldest, newest| LinkFault::Version { oldest, newest, own_oldest: 1, own_newest: 1 };
        let (newer, older) = (version(2, 3), version(0, 0));
        assert_eq!(
            link_fault(&newer),
            "the other head speaks versions 2 to 3 of the link, and this one version 1"
        );
        assert_eq!(
            link_next(&newer),
            "update Millrace on this head to a release that speaks version 2 of the link"
        );
        assert_eq!(link_fault(&older), "the other head speaks version 0 of the link, and this one version 1");
        assert_eq!(
            link_next(&older),
            "update Millrace on the other head to a release that speaks version 1 of the link"
        );
    }

    #[test]
    fn a_takeover_that_a_fence_prevents_names_the_drive_and_why() {
        let why = TrialFault::LetIn;
        let said = SystemEvent::HeadOutFenceFails {
            head: "a".into(),
            name: "left".into(),
            drive: "/dev/sda".into(),
            why,
        };
        assert_eq!(
            event(&said),
            "head a (left), which led, is gone, and this head does not take over: the fence of /dev/sda does not hold: the drive confirmed that the follower is shut out, and went on to take its writes"
        );
    }

    #[test]
    fn a_configuration_that_differs_is_told_with_the_volumes() {
        let later = SystemEvent::ConfigurationLater {
            known: 7,
            found: 8,
            volumes_known: vec!["a".into()],
            volumes_found: vec!["new".into()],
        };
        assert_eq!(
            event(&later),
            "this head knew configuration 7, and the drives hold 8 (volumes only in the state directory: a; volumes only on the drives: new): a change was under way; the drives count"
        );
    }
}
