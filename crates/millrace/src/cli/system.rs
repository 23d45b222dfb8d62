//! `millrace system` and `millrace head`.

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::screen::Table;
use crate::words;
use api::{Cluster, HeadFence, SystemCreate, SystemCreated, SystemJoin, SystemLeave};
use clap::{Args, Subcommand};
use std::time::{Duration, Instant};

/// How long a head that joined is waited for until it is ready, and how much longer for each drive whose fence is tried.
const READY: Duration = Duration::from_secs(30);
const READY_DRIVE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(200);
/// How long drives are waited for until they have shut a head off.
const SHUT_OFF: Duration = Duration::from_secs(5);

/// Join two heads into one system, or separate them.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Both heads need access to the same drives. Both serve hosts; one leads, and the other takes over if it fails (docs/two-heads.md).

Examples:
  millrace system create --link 10.9.0.1:7400,10.9.1.1:7400  # on one head
  millrace system join TOKEN --link 10.9.0.2,10.9.1.2  # on the other head
  millrace head ls")]
pub enum SystemCommand {
    /// Create a system with this head, and print a token for the second head
    #[command(after_help = "\
The token can be used once, within 24 hours. Run the command again to print a new one.

Examples:
  millrace system create --link 10.9.0.1:7400
  millrace system create --link 10.9.0.1:7400,10.9.1.1:7400 --name shelf-left")]
    Create(CreateArgs),
    /// Join a system as its second head
    #[command(after_help = "\
This head must have no pools. Its hosts and portals are replaced by the system's. The command tests on each drive whether a head can be fenced, reports the results, and waits until this head is ready to take over (at most 30 s, and 2 s for each drive).

Examples:
  millrace system join millrace_join_1_... --link 10.9.0.2,10.9.1.2")]
    Join(JoinArgs),
    /// Leave the system: this head is alone afterwards
    #[command(after_help = "\
The follower leaves first, and keeps no pools, hosts or portals. The other head then leaves with the pools, while its hosts wait a moment. To replace a head that is gone for good, run leave and create on the remaining head, then join on the new one.

Examples:
  millrace system leave")]
    Leave {
        /// Leave without asking the leading head, which is gone or not reachable
        #[arg(long)]
        force: bool,
    },
}

/// What to make.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// Addresses at which the other head reaches this one: one in each network between the heads, none in a network of hosts
    #[arg(long, value_name = "ADDRESS:PORT,...", value_delimiter = ',')]
    link: Vec<String>,
    /// Name of this head [default: the machine's name]
    #[arg(long)]
    name: Option<String>,
}

/// What to join.
#[derive(Args, Debug)]
pub struct JoinArgs {
    /// The token that `millrace system create` printed on the other head
    #[arg(value_name = "TOKEN")]
    token: String,
    /// Addresses of this head, in the order of the other head's
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', required = true)]
    link: Vec<String>,
    /// Name of this head [default: the machine's name]
    #[arg(long)]
    name: Option<String>,
}

/// List the two heads of a system; fence one, or make one lead.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace head ls
  millrace head fence b")]
pub enum HeadCommand {
    /// List both heads, their state, and the link between them
    #[command(after_help = "\
Examples:
  millrace head ls
  millrace head ls --json")]
    Ls,
    /// Fence the other head: shut it off from every drive
    #[command(after_help = "\
A fenced head that is still running restarts as a follower. With file drives, it is killed if it does not let go of them within 2 s.

Examples:
  millrace head fence b
  millrace head fence b --is-off  # you have checked that it is off")]
    Fence {
        /// The head to fence
        #[arg(value_name = "HEAD", value_parser = ["a", "b"])]
        head: String,
        /// Treat it as switched off: you have checked that it is
        #[arg(long)]
        is_off: bool,
    },
    /// Make this head lead, with its older hosts and portals, if the other is gone for good
    #[command(after_help = "\
A head that was fenced does not lead on its own while the other head has newer hosts and portals. Changes made on the other head since then are lost.

Examples:
  millrace head lead --with-old-hosts")]
    Lead {
        /// Confirm that the other head is gone for good, and that you will check hosts and portals
        #[arg(long, required = true)]
        with_old_hosts: bool,
    },
}

/// Carries out one of them.
pub fn run(command: SystemCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        SystemCommand::Create(CreateArgs { link, name }) => {
            let created: SystemCreated = client.post("/system", &SystemCreate { link, name })?;
            Ok(context.show(&created, |created| {
                let mut out = created.token.clone() + "\n";
                for notice in &created.notices {
                    out += &format!("Note: {}\n", notice.message);
                }
                out += "\nNext, on the other head: millrace system join TOKEN --link ADDRESS,...\n";
                out
            }))
        }
        SystemCommand::Leave { force } => {
            client.get::<Cluster>("/system")?;
            // A head that is let go ends at once: its answer may be lost with it.
            match client.act("/system/leave", &SystemLeave { force }) {
                Err(failure) if failure.exit != Exit::Unreachable || !is_alone_soon(context) => {
                    return Err(failure);
                }
                Err(_) | Ok(()) => {}
            }
            Ok(context.done("The daemon starts anew, as a head that is alone.", "millrace status"))
        }
        SystemCommand::Join(JoinArgs { token, link, name }) => {
            let replaced = own_notice(context);
            client.act("/system/join", &SystemJoin { token, link: link.clone(), name })?;
            let (what, fences, next) = joined(await_ready(context))?;
            let notices = replaced.into_iter().chain(link_notices(&link, context)).collect();
            let created = api::Created { notices, ..Default::default() };
            Ok(context.created_with(&created, what, &fences, &[], next))
        }
    }
}

/// What this head has of its own, if anything: it is gone once the head has joined.
fn own_notice(context: &Context) -> Option<api::Noticed> {
    let hosts: Vec<api::Host> = context.client.get("/hosts").unwrap_or_default();
    let portals: Vec<api::Portal> = context.client.get("/portals").unwrap_or_default();
    let hosts: Vec<String> = hosts.into_iter().map(|h| h.name).collect();
    let portals: Vec<String> = portals.iter().map(|p| format!("{} {}", p.protocol, p.address)).collect();
    let has_any = !hosts.is_empty() || !portals.is_empty();
    has_any.then(|| words::noticed(finding::SystemNotice::OwnReplaced { hosts, portals }.into()))
}

/// That hosts come to this head's addresses of the link, if they do.
fn link_notices(link: &[String], context: &Context) -> Vec<api::Noticed> {
    // The portals are those of the system that was joined. If they are not known yet, `portal add` has said it.
    let portals: Vec<api::Portal> = context.client.get("/portals").unwrap_or_default();
    let portals: Vec<_> = portals.iter().map(|p| p.address).collect();
    let ip = |a: &String| a.parse().ok().or_else(|| Some(a.parse::<std::net::SocketAddr>().ok()?.ip()));
    let link: Vec<_> = link.iter().filter_map(ip).collect();
    api::link_notices(&link, &portals).into_iter().map(crate::words::noticed).collect()
}

/// Whether this head is none of a system any more, now or soon: its daemon starts anew.
fn is_alone_soon(context: &Context) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < READY {
        if context.client.get::<api::Status>("/status").is_ok_and(|status| status.cluster.is_none()) {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    false
}

/// Waits until this head, whose daemon starts anew, is ready to take over, or cannot be: what it says last, if anything.
fn await_ready(context: &Context) -> Option<Cluster> {
    let begin = Instant::now();
    let mut last = None;
    loop {
        // While the daemon starts anew nobody answers.
        if let Ok(cluster) = context.client.get::<Cluster>("/system") {
            let me = cluster.heads.iter().find(|h| h.head == cluster.me);
            let ready = me.is_some_and(|h| h.ready && (h.state == "follows" || h.state == "leads"));
            if ready || cluster.fences.iter().any(|f| f.state == "fails") {
                return Some(cluster);
            }
            last = Some(cluster);
        }
        let drives = last.as_ref().map_or(0, |c| c.fences.len() as u32);
        if begin.elapsed() >= READY + READY_DRIVE * drives {
            return last;
        }
        std::thread::sleep(LOOK);
    }
}

/// What is said of a head that joined, what the trials of fences found, and what to do next.
fn joined(cluster: Option<Cluster>) -> Result<(&'static str, String, &'static str), Failure> {
    let Some(cluster) = cluster else {
        let what = "Joined: the daemon starts anew, and does not answer yet.";
        return Ok((what, String::new(), "millrace head ls, in a moment"));
    };
    let flaws: Vec<_> = cluster.fences.iter().filter(|f| f.state == "fails").collect();
    if let Some(first) = flaws.first() {
        let each: Vec<String> =
            flaws.iter().map(|f| format!("the fence of {} {}", f.drive, words::fence_trial(f))).collect();
        let message = format!("this head joined, but does not take over: {}", each.join("; "));
        return Err(Failure::new(Exit::Refused, message).with_next(replace(&cluster, &first.drive)));
    }
    let me = cluster.heads.iter().find(|h| h.head == cluster.me);
    let (what, next) = if me.is_some_and(|h| h.ready) {
        ("Joined: this head follows, and is ready to take over.", "millrace head ls")
    } else {
        ("Joined: this head is not ready to take over yet.", "millrace head ls, and millrace events")
    };
    Ok((what, fence_lines(&cluster), next))
}

/// What to do about a drive whose fence does not hold, on either head. The other head is put out by the one that leads.
fn replace(cluster: &Cluster, drive: &str) -> String {
    let letter = |wanted: &str| cluster.heads.iter().find(|h| h.state == wanted).map_or("HEAD", |h| &h.head);
    let (leads, follows) = (letter("leads"), letter("follows"));
    let there = if cluster.me == leads { String::new() } else { format!(" on head {leads}") };
    format!(
        "millrace drive replace {drive} NEW, or mend it, then millrace head fence {follows}{there} (it is tried again)"
    )
}

/// A line for each drive whose fence was tried.
fn fence_lines(cluster: &Cluster) -> String {
    cluster.fences.iter().map(|f| format!("Fence of {} {}\n", f.drive, words::fence_trial(f))).collect()
}

/// Carries out one of them.
pub fn head(command: HeadCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        HeadCommand::Ls => {
            let mut cluster: Cluster = client.get("/system")?;
            // What each head does for hosts is known to the one that leads, which answers this. Without it the rest is told all the same.
            let status: Option<api::Status> = client.get("/status").ok();
            let theirs = status.and_then(|s| s.cluster).map_or(vec![], |c| c.heads);
            for (head, theirs) in cluster.heads.iter_mut().zip(theirs) {
                head.serves = theirs.serves;
            }
            Ok(context.show(&cluster, |cluster| list(cluster, context)))
        }
        HeadCommand::Lead { with_old_hosts: _ } => {
            client.act("/system/lead", &serde_json::json!({}))?;
            Ok(context.done("This head leads.", "millrace host ls, and millrace portal ls"))
        }
        HeadCommand::Fence { head, is_off } => {
            let cluster: Cluster = client.get("/system")?;
            if cluster.me == head {
                return Err(Failure::usage(format!("this is head {head}, and a head cannot fence itself"))
                    .with_next("systemctl stop millrace"));
            }
            client.act("/system/fence", &HeadFence { off: is_off })?;
            Ok(context.done(await_shut_off(&head, context), "millrace head ls"))
        }
    }
}

/// Waits until every drive has shut off a head that was put out, for some seconds; what came of it.
fn await_shut_off(head: &str, context: &Context) -> String {
    let begin = Instant::now();
    loop {
        let cluster = context.client.get::<Cluster>("/system").ok();
        let (over, words) = shut_off(cluster.as_ref(), head);
        if over || begin.elapsed() >= SHUT_OFF {
            return words;
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether nothing is waited for any more, and how far it is.
fn shut_off(cluster: Option<&Cluster>, letter: &str) -> (bool, String) {
    let head = cluster.and_then(|c| c.heads.iter().find(|h| h.head == letter));
    let unknown =
        (false, format!("Head {letter} is out. How many drives have shut it off is not known here."));
    match head {
        None => unknown,
        // It is let in again only by a head that has shut it off everywhere.
        Some(h) if h.state != "out" => {
            (true, format!("Head {letter} was put out and shut off every drive; it is back already."))
        }
        Some(h) => match &h.out {
            None => unknown,
            Some(out) if out.shut_off >= out.drives => (
                true,
                format!("Head {letter} is out, and shut off {} of {} drives.", out.shut_off, out.drives),
            ),
            Some(out) => {
                let words = format!(
                    "Head {letter} is out, but after {} s shut off only {} of {} drives; the others are asked again and again.",
                    SHUT_OFF.as_secs(),
                    out.shut_off,
                    out.drives
                );
                (false, words)
            }
        },
    }
}

fn list(cluster: &Cluster, context: &Context) -> String {
    let columns = ["HEAD", "NAME", "STATE", "TAKES OVER", "SINCE EPOCH", "REACHES DRIVES", ">HOSTS", "LANES"];
    let serves = cluster.heads.iter().any(|h| h.serves.is_some());
    let mut table = Table::new(&columns[..if serves { 8 } else { 6 }]);
    for head in &cluster.heads {
        let reaches = head.reaches.map_or("-".to_string(), |n| format!("{n} of {}", cluster.drives));
        let ready = match (head.state.as_str(), head.ready) {
            ("leads", _) => "leads",
            ("follows", true) => "ready",
            ("follows", false) => "not yet",
            _ => "no",
        };
        let here = if head.head == cluster.me { " (this)" } else { "" };
        let hosts = head.serves.as_ref().map(|s| [s.hosts.to_string().into(), lanes(s).into()]);
        let first = [
            format!("{}{here}", head.head).into(),
            head.name.clone().into(),
            head.state.clone().into(),
            ready.to_string().into(),
            head.since_epoch.to_string().into(),
            reaches.into(),
        ];
        table.row(first.into_iter().chain(hosts.into_iter().flatten()));
    }
    let mut out = table.print(context.terminal, 0);
    out += &format!(
        "\nEpoch {}; head {} reaches {} of {} voter drives.\n",
        cluster.epoch, cluster.me, cluster.voters_reached, cluster.voters
    );
    out += &heartbeat_lines(cluster);
    out += &state_lines(cluster);
    out += &portal_lines(cluster);
    out += &address_lines(cluster);
    for head in &cluster.heads {
        if let Some(gone) = &head.out {
            out += &format!("Head {} {}.\n", head.head, words::head_out(gone));
        }
    }
    for path in &cluster.unreached {
        let follows = cluster.heads.iter().find(|h| h.state == "follows").map_or("", |h| &h.head);
        out += &format!("Head {follows} does not reach {path}, and would take over without it.\n");
    }
    for path in &cluster.late {
        out += &format!("{path} has not confirmed that the other head is shut out\n");
    }
    out += &fence_lines(cluster);
    if let Some(flaw) = cluster.fences.iter().find(|f| f.state == "fails") {
        out += &format!("\n{}", context.terminal.next(&replace(cluster, &flaw.drive)));
    }
    out
}

/// How many lanes a head has, in words.
fn lanes(serves: &api::HeadServes) -> String {
    match serves.lanes {
        0 => "none".into(),
        lanes if lanes == serves.lanes_all => "all".into(),
        lanes => format!("{lanes} of {}", serves.lanes_all),
    }
}

/// Where each head listens, as far as that is known here.
fn portal_lines(cluster: &Cluster) -> String {
    let known = cluster.heads.iter().filter(|h| h.state != "none");
    let known = known.filter_map(|h| Some((&h.head, &h.serves.as_ref()?.portals)));
    let one = |(head, portals): (&String, &Vec<String>)| {
        if portals.is_empty() {
            format!("Head {head} listens nowhere.\n")
        } else {
            format!("Head {head} listens at {}.\n", portals.join(", "))
        }
    };
    known.map(one).collect()
}

/// Why this head does not lead and does not follow; nothing if it does.
fn state_lines(cluster: &Cluster) -> String {
    if let Some(refused) = &cluster.refused {
        return format!("The link is closed: {}. Next: {}\n", refused.reason, refused.next);
    }
    let me = cluster.heads.iter().find(|h| h.head == cluster.me);
    if me.is_none_or(|h| h.state != "starts" || h.ready) {
        return String::new();
    }
    let other = if cluster.me == "a" { "b" } else { "a" };
    format!(
        "This head was not ready to take over from head {other}: start head {other}. If it cannot start any more: millrace head lead --with-old-hosts\n"
    )
}

/// Each way by which the other head is heard, and when it was last; nothing where there is no other head.
fn heartbeat_lines(cluster: &Cluster) -> String {
    let Some(other) = cluster.heads.iter().find(|h| h.head != cluster.me && h.state != "none") else {
        return String::new();
    };
    let heard = |ms: Option<u64>| match ms {
        Some(ms) => format!("last heartbeat of head {} {ms} ms ago", other.head),
        None => format!("no heartbeat of head {} so far", other.head),
    };
    let one = |n: &api::LinkNetwork| {
        let state = if n.up { "up" } else { "down" };
        format!("Link at {}: {state}, {}.\n", n.address, heard(n.heartbeat_ms))
    };
    let link: String = cluster.networks.iter().map(one).collect();
    format!("{link}Drives: {}.\n", heard(cluster.heartbeat_on_drives_ms))
}

/// Which addresses that move each head has; nothing where there are none.
fn address_lines(cluster: &Cluster) -> String {
    let all = |h: &api::Head| h.addresses.clone().unwrap_or_default();
    if cluster.heads.iter().all(|h| all(h).is_empty()) {
        return String::new();
    }
    let mut out = String::new();
    for head in cluster.heads.iter().filter(|h| h.state != "none") {
        let letter = &head.head;
        let (away, here): (Vec<_>, Vec<_>) = all(head).into_iter().partition(|a| a.reason.is_some());
        let one = |a: &api::HeadAddress| match &a.on {
            Some(on) => format!("{} on {on}", a.address),
            None => a.address.clone(),
        };
        match (&head.addresses, here.is_empty()) {
            (None, _) => out += &format!("Which addresses head {letter} has is not known here.\n"),
            (Some(_), true) if away.is_empty() => {
                out += &format!("Head {letter} has no address of the system.\n")
            }
            (Some(_), true) => {}
            (Some(_), false) => {
                let here: Vec<String> = here.iter().map(one).collect();
                out += &format!("Head {letter} has {}.\n", here.join(", "));
            }
        }
        for a in &away {
            let why = a.reason.as_deref().unwrap_or_default();
            out += &format!("Head {letter} does not have {}: {why}\n", a.address);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Head, HeadAddress};

    fn lines(heads: [(&str, Option<Vec<HeadAddress>>); 2]) -> String {
        let head = |(i, (state, addresses)): (usize, (&str, _))| Head {
            head: ["a", "b"][i].into(),
            state: state.into(),
            addresses,
            ..Head::default()
        };
        let heads = heads.into_iter().enumerate().map(head).collect();
        address_lines(&Cluster { heads, ..Cluster::default() })
    }
    fn address(ip: &str, on: Option<&str>, reason: Option<&str>) -> HeadAddress {
        HeadAddress { address: ip.into(), on: on.map(Into::into), reason: reason.map(Into::into) }
    }

    #[test]
    fn each_network_and_the_drives_are_told_with_the_last_heartbeat() {
        let heads = |state: &str| {
            let head =
                |head: &str, state: &str| Head { head: head.into(), state: state.into(), ..Head::default() };
            vec![head("a", "leads"), head("b", state)]
        };
        let network =
            |address: &str, up, heartbeat_ms| api::LinkNetwork { address: address.into(), up, heartbeat_ms };
        let mut cluster = Cluster {
            me: "a".into(),
            heads: heads("follows"),
            networks: vec![network("10.9.0.1", true, Some(43)), network("10.9.1.1", false, None)],
            heartbeat_on_drives_ms: Some(180),
            ..Cluster::default()
        };
        assert_eq!(
            heartbeat_lines(&cluster),
            "Link at 10.9.0.1: up, last heartbeat of head b 43 ms ago.\n\
             Link at 10.9.1.1: down, no heartbeat of head b so far.\n\
             Drives: last heartbeat of head b 180 ms ago.\n"
        );
        cluster.heads = heads("none");
        assert_eq!(heartbeat_lines(&cluster), "");
    }
    #[test]
    fn each_head_is_told_with_the_addresses_that_it_has() {
        let four = address("10.1.0.5", Some("eth1"), None);
        let six = address("fd00::5", Some("eth1"), None);
        let away = address("10.2.0.5", None, Some("it cannot move here: this machine has no such interface"));
        assert_eq!(
            lines([("leads", Some(vec![four, six, away.clone()])), ("follows", Some(vec![]))]),
            "Head a has 10.1.0.5 on eth1, fd00::5 on eth1.\n\
             Head a does not have 10.2.0.5: it cannot move here: this machine has no such interface\n\
             Head b has no address of the system.\n"
        );
        // As the follower knows it; and what nobody knows.
        let told = address("10.1.0.5", None, None);
        let said = lines([("follows", Some(vec![])), ("leads", Some(vec![told]))]);
        assert_eq!(said, "Head a has no address of the system.\nHead b has 10.1.0.5.\n");
        let said = lines([("leads", Some(vec![away])), ("out", None)]);
        assert!(said.starts_with("Head a does not have 10.2.0.5: it"), "{said}");
        assert!(said.ends_with("Which addresses head b has is not known here.\n"), "{said}");
        // Nothing moves.
        assert_eq!(lines([("leads", Some(vec![])), ("follows", Some(vec![]))]), "");
        let alone = lines([("leads", Some(vec![address("10.1.0.5", Some("eth1"), None)])), ("none", None)]);
        assert_eq!(alone, "Head a has 10.1.0.5 on eth1.\n");
    }
    #[test]
    fn each_head_is_told_with_its_portals_and_its_lanes() {
        let head = |head: &str, state: &str, portals: &[&str], lanes| Head {
            head: head.into(),
            state: state.into(),
            serves: Some(api::HeadServes {
                portals: portals.iter().map(|p| p.to_string()).collect(),
                hosts: 2,
                commands: 7,
                lanes,
                lanes_all: 16,
            }),
            ..Head::default()
        };
        let two = ["nvme 10.0.0.1:4420", "iscsi 10.0.0.1:3260"];
        let heads = vec![head("a", "leads", &two, 8), head("b", "follows", &[], 8)];
        let mut cluster = Cluster { me: "a".into(), heads, ..Cluster::default() };
        assert_eq!(
            portal_lines(&cluster),
            "Head a listens at nvme 10.0.0.1:4420, iscsi 10.0.0.1:3260.\nHead b listens nowhere.\n"
        );
        let said = |lanes| {
            let serves = api::HeadServes { lanes, lanes_all: 16, ..api::HeadServes::default() };
            super::lanes(&serves)
        };
        assert_eq!([0, 8, 16].map(said), ["none", "8 of 16", "all"]);
        // A head that there is not, and what is not known.
        cluster.heads[1].state = "none".into();
        cluster.heads[0].serves = None;
        assert_eq!(portal_lines(&cluster), "");
    }
    #[test]
    fn a_head_that_is_put_out_is_waited_for_until_every_drive_has_shut_it_off() {
        let said = |state: &str, shut_off: Option<(u16, u16)>| {
            let out =
                shut_off.map(|(shut_off, drives)| api::HeadOut { shut_off, drives, ..Default::default() });
            let head = Head { head: "b".into(), state: state.into(), out, ..Head::default() };
            super::shut_off(Some(&Cluster { heads: vec![head], ..Cluster::default() }), "b")
        };
        assert_eq!(said("out", Some((4, 4))), (true, "Head b is out, and shut off 4 of 4 drives.".into()));
        let (over, words) = said("out", Some((0, 4)));
        assert!(!over && words.contains("after 5 s shut off only 0 of 4 drives"), "{words}");
        let (over, words) = said("follows", None);
        assert!(over && words.ends_with("shut off every drive; it is back already."), "{words}");
        assert!(!said("out", None).0 && !super::shut_off(None, "b").0);
    }
    #[test]
    fn a_head_that_is_refused_at_the_link_is_told_of_and_not_to_be_started() {
        let head =
            |head: &str, state: &str| Head { head: head.into(), state: state.into(), ..Head::default() };
        let refused = api::LinkRefused {
            why: None,
            reason: "it speaks another version".into(),
            next: "update it".into(),
        };
        let mut cluster = Cluster {
            me: "b".into(),
            heads: vec![head("a", "leads"), head("b", "starts")],
            refused: Some(refused),
            ..Cluster::default()
        };
        let said = state_lines(&cluster);
        assert_eq!(said, "The link is closed: it speaks another version. Next: update it\n");
        cluster.refused = None;
        assert!(state_lines(&cluster).contains("start head a"));
    }
}
