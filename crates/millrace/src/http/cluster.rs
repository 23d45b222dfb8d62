//! The resources of a system of two heads, each answered by the head that is asked.

use super::extract::Body;
use super::{Api, Refused, odd_reply};
use crate::daemon::System;
use crate::words;
use api::{
    Cluster, ErrorBody, Head, HeadAddress, HeadFence, HeadOut, LinkNetwork, LinkRefused, SystemCreate,
    SystemCreated, SystemJoin, SystemLeave,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cluster::{HeadNo, HeadState, Part};
use finding::{LinkFault, NamedHead, SystemCause, SystemRefusal};
use head::order::{Order, Reply};
use head::peer::{FenceTrial, SystemAddress, SystemView, TrialFound};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

type Answer<T> = Result<Json<T>, Refused>;

/// A new token waits no longer for the portals that it is to be told with.
const PORTALS_PATIENCE: Duration = Duration::from_secs(10);

/// The resources below `/api/v1/system`.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(get_system, create_system))
        .routes(routes!(join_system))
        .routes(routes!(fence_head))
        .routes(routes!(lead_head))
        .routes(routes!(leave_system))
        .routes(routes!(release_head))
}

fn system_of(api: &Api) -> Result<&Arc<System>, Refused> {
    api.process.system.as_ref().ok_or_else(|| SystemRefusal::SystemUnsupported.into())
}

/// Addresses of the link, with a port or without, or which of them is none.
fn addresses<T: core::str::FromStr>(texts: &[String], port: bool) -> Result<Vec<T>, Refused> {
    let one = |text: &String| {
        text.parse().map_err(|_| SystemRefusal::LinkAddressInvalid { address: text.clone(), port }.into())
    };
    texts.iter().map(one).collect()
}

fn link_addresses(api: &Api) -> Vec<IpAddr> {
    api.process.system.as_ref().map_or(vec![], |s| s.link_addresses())
}

/// The system of two that this head is one of
#[utoipa::path(get, path = "/system", tag = "system",
    responses((status = 200, description = "As this head knows it", body = Cluster), (status = "default", description = "Why not", body = ErrorBody)))]
async fn get_system(State(api): State<Api>) -> Answer<Cluster> {
    let Reply::System(view) = api.order(Order::System).await? else { return Err(odd_reply()) };
    Ok(Json(cluster(*view, &link_addresses(&api))))
}

/// Make this head the first of a system of two, or print a new token for the second one
#[utoipa::path(post, path = "/system", tag = "system", request_body = SystemCreate,
    responses((status = 201, description = "The token by which the other head joins", body = SystemCreated), (status = "default", description = "Why not", body = ErrorBody)))]
async fn create_system(
    State(api): State<Api>,
    Body(body): Body<SystemCreate>,
) -> Result<(StatusCode, Json<SystemCreated>), Refused> {
    let system = system_of(&api)?;
    let link: Vec<SocketAddr> = addresses(&body.link, true)?;
    let name = System::name(body.name)?;
    // One that was cut off half way goes on.
    let goes_on = !system.has_link();
    let uuid = System::new_uuid()?;
    let (token, settings) = system.prepare(uuid, &link, name)?;
    let mut created =
        SystemCreated { uuid: settings.system.to_string(), token: token.encode(), notices: vec![] };
    if goes_on {
        match api.order(Order::SystemCreate { settings: Box::new(settings) }).await {
            Ok(Reply::Created { notices, .. }) => {
                created.notices = notices.into_iter().map(words::noticed).collect()
            }
            Ok(_) => return Err(odd_reply()),
            Err(e) => {
                // What the Steward has begun is of a system: the same command ends it, or the next start does.
                if api.order(Order::System).await.is_err() {
                    system.undo();
                }
                return Err(e);
            }
        }
        system.leads(true);
        system.start_link()?;
    }
    // What is made is told of, with its token, whatever else goes wrong: also if the Steward does not answer.
    let status = tokio::time::timeout(PORTALS_PATIENCE, api.status()).await;
    let portals = status.ok().and_then(Result::ok).map_or(vec![], |s| s.portals);
    let portals: Vec<SocketAddr> = portals.iter().map(|p| p.address).collect();
    created.notices.extend(api::link_notices(&system.addresses(), &portals).into_iter().map(words::noticed));
    Ok((StatusCode::CREATED, Json(created)))
}

/// Join a system as its second head; the daemon starts anew
#[utoipa::path(post, path = "/system/join", tag = "system", request_body = SystemJoin,
    responses((status = 204, description = "It joined, and is let in soon"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn join_system(State(api): State<Api>, Body(body): Body<SystemJoin>) -> Result<StatusCode, Refused> {
    let system = system_of(&api)?;
    let ip = |text: &String| text.parse::<SocketAddr>().map_or_else(|_| text.clone(), |a| a.ip().to_string());
    let link: Vec<String> = body.link.iter().map(ip).collect();
    let own: Vec<IpAddr> = addresses(&link, false)?;
    let name = System::name(body.name)?;
    // First: what else is to be said to a head of a system would send it the wrong way.
    system.is_alone()?;
    let status = api.status().await?;
    if let Some(pool) = status.pools.first() {
        return Err(SystemRefusal::HeadHasPool { pool: pool.name.clone() }.into());
    }
    system.join(&body.token, &own, name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Put the other head out, and shut it off every drive
#[utoipa::path(post, path = "/system/fence", tag = "system", request_body = HeadFence,
    responses((status = 204, description = "It is out"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn fence_head(State(api): State<Api>, Body(body): Body<HeadFence>) -> Result<StatusCode, Refused> {
    api.order(Order::HeadFence { off: body.off }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lead with the hosts and portals that this head has, although the other one has later ones
#[utoipa::path(post, path = "/system/lead", tag = "system",
    responses((status = 204, description = "This head leads"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn lead_head(State(api): State<Api>) -> Result<StatusCode, Refused> {
    api.order(Order::HeadLead).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Leave the system: the daemon starts anew, as a head that is alone
///
/// A follower keeps nothing of the system, the head that leads keeps the pools; that one must be the last.
#[utoipa::path(post, path = "/system/leave", tag = "system", request_body = SystemLeave,
    responses((status = 204, description = "It is alone in a moment"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn leave_system(State(api): State<Api>, Body(body): Body<SystemLeave>) -> Result<StatusCode, Refused> {
    let system = system_of(&api)?;
    let Reply::System(view) = api.order(Order::System).await? else { return Err(odd_reply()) };
    if view.part == Part::Leader {
        api.order(Order::HeadRelease { itself: false }).await?;
        system.forget_peer()?;
        api.order(Order::SystemLeave).await?;
        system.ends()?;
    } else {
        system.leave(body.force).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// What a follower that leaves asks of the head that leads
#[utoipa::path(post, path = "/system/release", tag = "system",
    responses((status = 204, description = "It is let go"), (status = "default", description = "Why not", body = ErrorBody)))]
async fn release_head(State(api): State<Api>) -> Result<StatusCode, Refused> {
    let system = system_of(&api)?;
    let Reply::System(view) = api.order(Order::System).await? else { return Err(odd_reply()) };
    if view.part != Part::Leader {
        return Err(SystemRefusal::ReleaseNotLeading.into());
    }
    api.order(Order::HeadRelease { itself: true }).await?;
    // The answer goes by a connection that is there; no other one is made.
    system.forget_peer()?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where the heads of a system meet, if this is an address of theirs.
pub async fn link_at(api: &Api, address: SocketAddr) -> Result<Option<SocketAddr>, Refused> {
    let Some(system) = api.process.system.as_ref().filter(|s| s.has_link()) else { return Ok(None) };
    // As many as either head has.
    let shards = api.status().await?.shards;
    Ok(system.meets_at(address, shards.iter().map(|s| s.shard + 1).max().unwrap_or_default()))
}

/// The head that was asked, where that one passed a request on to this one.
#[derive(Clone, Copy, Debug)]
pub struct Asked(pub HeadNo);

/// The head that a request names by its letter or its name, or how it is refused.
pub async fn head_named(api: &Api, name: &str) -> Result<HeadNo, Refused> {
    let Reply::System(view) = api.order(Order::System).await? else { return Err(odd_reply()) };
    let there = [HeadNo::A, HeadNo::B].into_iter().filter(|h| view.record.head(*h).state != HeadState::None);
    let (by_letter, by_name) = (
        there.clone().find(|h| h.letter() == name),
        there.clone().find(|h| view.record.head(*h).name == name),
    );
    by_letter.or(by_name).ok_or_else(|| {
        let named = |h| NamedHead { head: HeadNo::letter(h).into(), name: view.record.head(h).name.clone() };
        SystemRefusal::HeadUnknown { name: name.into(), heads: there.map(named).collect() }.into()
    })
}

/// Both heads, and what is wrong with them.
pub async fn of_status(api: &Api) -> Option<(Cluster, Vec<api::Reason>)> {
    let Ok(Reply::System(view)) = api.order(Order::System).await else { return None };
    let unsent = view.unsent.clone();
    let cluster = cluster(*view, &link_addresses(api));
    let reasons = reasons(&cluster, unsent);
    Some((cluster, reasons))
}

/// Adds what each head does for hosts.
pub fn add_served(cluster: &mut Cluster, served: Option<[api::HeadServes; 2]>, portals: &[api::Portal]) {
    for (head, served) in cluster.heads.iter_mut().zip(served.into_iter().flatten()) {
        let listens =
            |p: &&api::Portal| p.listening && p.served_by.as_ref().or(p.head.as_ref()) == Some(&head.head);
        let words = |p: &api::Portal| format!("{} {}", p.protocol, p.address);
        let portals = portals.iter().filter(listens).map(words).collect();
        head.serves = Some(api::HeadServes { portals, ..served });
    }
}

/// Both directories vote, and so few drives that nobody can lead.
fn lacks_votes(cluster: &Cluster) -> bool {
    let (votes, all) = (2 + cluster.voters_reached, 2 + cluster.voters);
    2 * votes <= all
}

/// What is wrong with a system, as one of its heads sees it. `unsent`: a file that the follower does not get, and its path.
fn reasons(cluster: &Cluster, unsent: Option<(String, String)>) -> Vec<api::Reason> {
    let reason = |state, cause: SystemCause| words::reason(api::Reason::new(state, "system", cause));
    let degraded = |cause| reason(api::State::Degraded, cause);
    let is_me = |h: &&Head| h.head == cluster.me;
    let (me, other) = (cluster.heads.iter().find(is_me), cluster.heads.iter().find(|h| !is_me(h)));
    let (Some(me), Some(other)) = (me, other) else { return vec![] };
    let called = || (other.head.clone(), other.name.clone());
    let (head, name) = called();
    let refused = cluster.refused.as_ref().and_then(|r| r.why.clone());
    if me.state != "leads" {
        // Whoever leads tells the rest. This is asked if that one is not reached.
        let cause = match (refused, other.state.as_str(), me.ready) {
            (Some(why), ..) => SystemCause::NotLeadingLinkRefused { why },
            (None, "none", _) => SystemCause::NotLeadingYet,
            (None, ..) if cluster.linked && lacks_votes(cluster) => {
                SystemCause::NeitherLeads { reached: cluster.voters_reached, drives: cluster.voters }
            }
            (None, _, true) => SystemCause::NotLeadingUnreached { head, name },
            (None, _, false) => SystemCause::NotReadyToLead { head, name },
        };
        return vec![reason(api::State::Offline, cause)];
    }
    let mut reasons = vec![];
    let flaws: Vec<_> = cluster.fences.iter().filter(|f| f.state != "holds").collect();
    match (refused, other.state.as_str(), other.ready) {
        (Some(why), ..) => reasons.push(degraded(SystemCause::OtherHeadRefused { why })),
        (None, "out", _) => reasons.push(degraded(match other.out.clone() {
            None => SystemCause::OtherHeadOut { head, name },
            Some(HeadOut { since, why, lives, shut_off, drives, lacks, again_seconds, .. }) => {
                let (linked, pauses) = (cluster.linked, again_seconds.is_some());
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
                }
            }
        })),
        (None, "follows", false) => match unsent {
            Some((file, path)) => {
                let leader = me.head.clone();
                reasons.push(degraded(SystemCause::FollowerWithoutFile { head, name, leader, file, path }));
            }
            None if flaws.is_empty() && cluster.unreached.is_empty() => {
                reasons.push(degraded(SystemCause::FollowerNotReady { head, name }));
            }
            None => {}
        },
        (None, ..) => {}
    }
    if cluster.blind {
        reasons.push(reason(api::State::Offline, SystemCause::VotersUnreached));
    }
    for drive in cluster.unreached.iter().cloned() {
        let (head, name) = called();
        reasons.push(degraded(SystemCause::FollowerLacksDrive { head, name, drive }));
    }
    for drive in cluster.late.iter().cloned() {
        reasons.push(degraded(SystemCause::DriveNotShutOff { drive, head: other.head.clone() }));
    }
    for flaw in flaws {
        let ((head, name), drive) = (called(), flaw.drive.clone());
        let Some(why) = flaw.why.clone() else { continue };
        reasons.push(degraded(match flaw.state.as_str() {
            "fails" => SystemCause::FenceFails { head, name, drive, why },
            _ => SystemCause::FenceUntried { head, name, drive, why },
        }));
    }
    reasons
}

/// As the API tells it.
fn cluster(view: SystemView, link: &[IpAddr]) -> Cluster {
    let SystemView { me, part, record, linked, heartbeats, reaches, blind, late, fences, addresses, .. } =
        view;
    let SystemView { refused, old_directory, drives, drives_reached, unreached, out, shut_off, .. } = view;
    let SystemView { other_lacks, lets_in_after, .. } = view;
    let address = |a: &SystemAddress| HeadAddress {
        address: a.ip.to_string(),
        on: a.on.map(|i| i.as_str().to_string()),
        reason: a.reason.as_ref().map(|c| crate::words::cause(c).message),
    };
    let gone = shut_off.map(|(shut_off, drives)| HeadOut {
        since: out.as_ref().filter(|o| o.at > 0).map(|o| api::Time(o.at).to_string()),
        why: out.as_ref().map(|o| o.why.clone()),
        reason: out.as_ref().map(|o| words::parts::out_reason(&o.why)),
        lives: out.as_ref().is_some_and(|o| o.lives),
        shut_off,
        drives,
        lacks: other_lacks.clone(),
        again_seconds: lets_in_after.map(|after| after.as_secs() + 1),
    });
    let letter = |h: HeadNo| h.letter().to_string();
    let head = |h: HeadNo| {
        let row = record.head(h);
        let leads = record.leader == h;
        let state = match (row.state, h == me, part) {
            (HeadState::None, ..) => "none",
            // In is a process; another one of that head only starts.
            (_, true, Part::Outside) => "starts",
            (_, true, Part::Over) | (HeadState::Out, ..) => "out",
            (HeadState::In | HeadState::Leaving, ..) if leads => "leads",
            (HeadState::In | HeadState::Leaving, ..) => "follows",
        };
        Head {
            head: letter(h),
            name: row.name.clone(),
            state: state.into(),
            since_epoch: row.since,
            out: if state == "out" && h != me { gone.clone() } else { None },
            reaches: drives_reached[h.index()],
            ready: record.has_latest(h)
                && !(h == me && old_directory)
                && (state != "follows" || unreached.is_empty()),
            addresses: addresses[h.index()].as_ref().map(|all| all.iter().map(address).collect()),
            serves: None,
        }
    };
    let network = |(n, (up, heartbeat_ms)): (usize, _)| LinkNetwork {
        address: link.get(n).map_or_else(String::new, ToString::to_string),
        up,
        heartbeat_ms,
    };
    Cluster {
        uuid: record.system.to_string(),
        epoch: record.epoch,
        me: letter(me),
        pid: std::process::id(),
        linked,
        refused: refused.map(link_refused),
        networks: heartbeats.networks.into_iter().enumerate().map(network).collect(),
        heartbeat_on_drives_ms: heartbeats.drives,
        voters: reaches.1,
        voters_reached: reaches.0,
        drives,
        heads: vec![head(HeadNo::A), head(HeadNo::B)],
        unreached,
        blind,
        late,
        fences: fences.into_iter().map(fence_trial).collect(),
    }
}

fn link_refused(why: LinkFault) -> LinkRefused {
    let (reason, next) = (words::parts::link_fault(&why), words::parts::link_next(&why));
    LinkRefused { why: Some(why), reason, next }
}

fn fence_trial(trial: FenceTrial) -> api::FenceTrial {
    let (state, took_ms, why) = match trial.found {
        TrialFound::Holds { ms } => ("holds", Some(ms), None),
        TrialFound::Fails(why) => ("fails", None, Some(why)),
        TrialFound::NotTried(why) => ("untried", None, Some(why)),
    };
    let reason = why.as_ref().map(words::parts::trial_fault);
    api::FenceTrial { drive: trial.path, state: state.into(), took_ms, why, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use finding::{OutReason, TrialFault};

    fn head(letter: &str, state: &str, ready: bool) -> Head {
        let (head, state) = (letter.to_string(), state.to_string());
        Head { name: format!("n{head}"), head, state, ready, ..Head::default() }
    }
    fn fence(drive: &str, state: &str, why: Option<TrialFault>) -> api::FenceTrial {
        api::FenceTrial { drive: drive.into(), state: state.into(), took_ms: None, why, reason: None }
    }
    fn said(me: &str, heads: [Head; 2], fences: Vec<api::FenceTrial>) -> Vec<(String, String)> {
        let cluster = Cluster { me: me.into(), heads: heads.into(), fences, ..Cluster::default() };
        reasons(&cluster, None).into_iter().map(|r| (r.message, r.next.expect("a next command"))).collect()
    }

    #[test]
    fn a_fence_that_does_not_hold_is_the_one_reason_why_nobody_takes_over() {
        let heads = || [head("a", "leads", true), head("b", "follows", false)];
        let fences = vec![fence("/dev/x", "holds", None), fence("/dev/y", "fails", Some(TrialFault::LetIn))];
        let (message, next) = &said("a", heads(), fences)[..][0];
        assert_eq!(
            message,
            "head b (nb) does not take over: the fence of /dev/y does not hold: the drive confirmed that the follower is shut out, and went on to take its writes"
        );
        assert_eq!(
            next,
            "millrace drive replace /dev/y NEW, or mend it, then millrace head fence b (it is tried again)"
        );
        let all = said("a", heads(), vec![fence("/dev/y", "untried", Some(TrialFault::NoFollower))]);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(
            all[0].0.ends_with("the fence of /dev/y could not be tried: there is no follower any more"),
            "{all:?}"
        );
        let all = said("a", heads(), vec![]);
        assert!(all.len() == 1 && all[0].0.contains("is not ready to take over yet"), "{all:?}");
        assert_eq!(said("a", [head("a", "leads", true), head("b", "follows", true)], vec![]), []);
    }
    #[test]
    fn a_head_that_is_out_is_told_with_since_when_and_why_and_one_command() {
        let why = "the link was silent for 312 ms and its heartbeat on the drives stood still";
        let out = HeadOut {
            since: Some("2026-03-01T14:02:11Z".into()),
            why: Some(OutReason::Still { silent_milliseconds: 312 }),
            reason: None,
            lives: false,
            shut_off: 4,
            drives: 4,
            ..HeadOut::default()
        };
        let mut heads = [head("a", "leads", true), Head { out: Some(out), ..head("b", "out", false) }];
        let words = format!(
            "head b (nb) is out since 2026-03-01T14:02:11Z: {why}; it is shut off 4 of 4 drives; nobody takes over if this one ends"
        );
        assert_eq!(
            said("a", heads.clone(), vec![]),
            [(words, "systemctl start millrace, on head b".to_string())]
        );
        heads[1].out.as_mut().expect("it is out").lives = true;
        assert_eq!(said("a", heads.clone(), vec![])[0].1, "millrace head ls");
        let out = heads[1].out.as_mut().expect("it is out");
        (out.lives, out.again_seconds) = (false, Some(8));
        assert_eq!(
            said("a", heads.clone(), vec![])[0].1,
            "millrace head ls, or millrace head fence b (it may come back at once)"
        );
        heads[1].out.as_mut().expect("it is out").lacks = Some(finding::StateFault::NoSpace);
        let (message, next) = said("a", heads, vec![]).remove(0);
        assert!(
            message.contains("; its state directory takes nothing: its disk is full; nobody"),
            "{message}"
        );
        assert!(next.starts_with("df and dmesg, on head b"), "{next}");
        let heads = [head("a", "leads", true), head("b", "out", false)];
        assert_eq!(said("a", heads, vec![])[0].0, "head b (nb) is out; nobody takes over if this one ends");
    }
    /// It was told that the other head is not reached, though the link is up.
    #[test]
    fn while_drives_that_vote_are_away_neither_head_leads() {
        let heads = vec![head("a", "follows", true), head("b", "leads", true)];
        let cluster = |linked, voters_reached| Cluster {
            me: "a".into(),
            heads: heads.clone(),
            linked,
            voters: 3,
            voters_reached,
            ..Cluster::default()
        };
        let said = |cluster: &Cluster| reasons(cluster, None)[0].message.clone();
        assert_eq!(said(&cluster(true, 0)), "neither head leads now: this one reaches 0 of 3 voter drives");
        for other in [cluster(true, 1), cluster(false, 0)] {
            assert!(said(&other).ends_with("is not reached"), "{}", said(&other));
        }
    }
    /// It was to be looked at again in a moment, for as long as the file was damaged.
    #[test]
    fn a_file_that_the_follower_does_not_get_is_the_reason_why_it_is_not_ready() {
        let heads = vec![head("a", "leads", true), head("b", "follows", false)];
        let cluster = Cluster { me: "a".into(), heads, ..Cluster::default() };
        let all = reasons(&cluster, Some(("hosts".into(), "/s/hosts".into())));
        let [reason] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            reason.message,
            "head b (nb) is not ready to take over: it does not get /s/hosts of head a, which cannot be read or is not whole"
        );
        assert_eq!(
            reason.next.as_deref(),
            Some(
                "mend /s/hosts on head a, or, if head b has a whole one (millrace state check, there), stop head a, then millrace head lead --with-old-hosts, on head b"
            )
        );
    }
    #[test]
    fn each_drive_that_the_follower_does_not_reach_is_a_reason() {
        let heads = vec![head("a", "leads", true), head("b", "follows", false)];
        let unreached = vec!["/dev/x".into(), "/dev/y".into()];
        let all = reasons(&Cluster { me: "a".into(), heads, unreached, ..Cluster::default() }, None);
        let words: Vec<&str> = all.iter().map(|r| r.message.as_str()).collect();
        assert_eq!(
            words,
            ["/dev/x", "/dev/y"].map(|d| format!(
                "head b (nb) is not ready to take over: it does not reach {d}, and would go on without it"
            ))
        );
        assert!(all.iter().all(|r| r.state == api::State::Degraded));
    }
    #[test]
    fn a_head_that_does_not_lead_says_what_it_waits_for() {
        for (ready, words) in [(false, "was not ready to take over"), (true, "this head does not lead")] {
            let all = said("b", [head("a", "leads", true), head("b", "starts", ready)], vec![]);
            assert!(all.len() == 1 && all[0].0.contains(words), "{all:?}");
            assert_eq!(all[0].1.contains("head lead --with-old-hosts"), !ready, "{all:?}");
        }
        let all = said("a", [head("a", "starts", true), head("b", "none", false)], vec![]);
        assert_eq!(all, [("this head does not lead yet".to_string(), "millrace head ls".to_string())]);
    }
    #[test]
    fn a_head_that_is_refused_at_the_link_is_told_of_with_what_helps() {
        let heads = || vec![head("a", "out", true), head("b", "leads", true)];
        let refused = Some(link_refused(LinkFault::OtherSystem));
        let said = |me: &str| {
            let cluster =
                Cluster { me: me.into(), heads: heads(), refused: refused.clone(), ..Cluster::default() };
            let all: Vec<_> = reasons(&cluster, None).into_iter().map(|r| (r.message, r.next)).collect();
            all
        };
        let next = Some(words::parts::link_next(&LinkFault::OtherSystem));
        let why = "the other head is of another system";
        assert_eq!(said("a"), [(format!("this head does not lead: {why}"), next.clone())]);
        assert_eq!(said("b"), [(format!("{why}: nobody takes over if this one ends"), next)]);
    }
}
