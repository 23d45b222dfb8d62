//! Words about hosts.

use super::parts::{connected, count, iqn_fault, not_a_name, nqn_fault, secret_fault, shown};
use super::{Said, connection_fault};
use finding::{HostEvent, HostNotice, HostRefusal, LoginFate};

/// Why an order was not carried out.
pub fn refusal(f: &HostRefusal) -> Said {
    use HostRefusal as R;
    match f {
        R::HostNameInvalid { name } => {
            Said::new(not_a_name(name, "host")).then("the same command with a name such as web1")
        }
        R::HostNameTaken { host } => Said::new(format!("there is a host {host} already"))
            .then(format!("millrace host show {host}, or millrace host set {host} to change it")),
        R::HostUnknown { host } => Said::new(format!("there is no host {host}")).then("millrace host ls"),
        R::TooManyHosts { hosts_max } => {
            Said::new(format!("there are {hosts_max} hosts already, the most there can be"))
                .then("millrace host ls")
        }
        R::HostWithoutNames => Said::new("a host needs an NQN or an IQN, or nobody can connect as it")
            .then("the same command with --nqn NQN, or --iqn IQN, or both"),
        R::TooManyNames { names_max } => {
            Said::new(format!("a host has at most {names_max} names of a kind")).then("millrace host ls")
        }
        R::NqnInvalid { name, why } => {
            Said::new(format!("{} is no NVMe qualified name: {}", shown(name), nqn_fault(why)))
                .then("cat /etc/nvme/hostnqn, on the host")
        }
        R::IqnInvalid { name, why } => {
            Said::new(format!("{} is no iSCSI name: {}", shown(name), iqn_fault(why)))
                .then("cat /etc/iscsi/initiatorname.iscsi, on the host")
        }
        R::NqnTaken { nqn: name, host } | R::IqnTaken { iqn: name, host } => {
            Said::new(format!("{name} belongs to host {host}")).then(format!("millrace host show {host}"))
        }
        R::SecretInvalid { why } => Said::new(format!("the CHAP secret {}", secret_fault(why)))
            .then("openssl rand -hex 12 > FILE, and the same command with it"),
        R::MutualSecretInvalid { why } => Said::new(format!("the mutual CHAP secret {}", secret_fault(why)))
            .then("openssl rand -hex 12 > FILE, and the same command with it"),
        R::ChapUserInvalid { bytes_max } => {
            Said::new(format!("a CHAP user name has 1 to {bytes_max} printable characters"))
                .then("the same command with --chap-user NAME")
        }
        R::LunTaken { lun } => Said::new(format!("LUN {lun} is another volume of this host"))
            .then("the same command without --lun, which takes the lowest free one"),
        R::LunTooLarge { lun, lun_max } => Said::new(format!("LUN {lun} is beyond the largest, {lun_max}"))
            .then("the same command without --lun, which takes the lowest free one"),
        R::NoNumberFree => Said::new("no LUN or namespace id is free").then("millrace volume ls"),
        R::HostHasExports { host, volumes } => {
            let are = if *volumes == 1 { "is" } else { "are" };
            Said::new(format!("{} {are} exported to host {host}", count(*volumes as u64, "volume")))
                .then(format!("millrace host rm {host} --force"))
        }
        R::HostRemoveInUse { force, hosts } => {
            let force = if *force { " --force" } else { "" };
            let name = hosts.first().map_or("", |h| &h.host);
            Said::new(connected(hosts, "would be disconnected"))
                .then(format!("millrace host rm {name}{force} --yes"))
        }
        R::HostNameInUse { hosts } => {
            Said::new(connected(hosts, "would be disconnected: it uses a name that would be removed"))
                .then("the same command with --yes")
        }
        R::HostSecretInUse { hosts } => {
            Said::new(connected(hosts, "would be disconnected: its CHAP settings would change"))
                .then("the same command with --yes")
        }
    }
}

/// What happened.
pub fn event(f: &HostEvent) -> String {
    use HostEvent as E;
    match f {
        E::HostAdded => "the host was added".into(),
        E::HostChanged => "the host was changed".into(),
        E::HostRemoved => "the host was removed".into(),
        E::Rejected { name, address, fate } => {
            let (what, why) = login_fate(fate);
            format!("{} {what}: {why}", who(name, address))
        }
        E::RejectedAgain { name, address, fate, times, seconds } => {
            let (what, why) = login_fate(fate);
            format!("{} {what} {} in {seconds} s: {why}", who(name, address), count(*times, "more time"))
        }
        E::OthersRejected { times, seconds } => {
            format!("{times} further logins were rejected in {seconds} s")
        }
        E::HostPathConnected { protocol, portal, head } => {
            format!("it is connected over {}", path(protocol, portal, head))
        }
        E::HostPathLeft { protocol, portal, head, paths_left } => {
            let left = match paths_left {
                0 => "it has no path left".to_string(),
                n => format!("it has {} left", count(*n, "path")),
            };
            format!("its last connection over {} ended: {left}", path(protocol, portal, head))
        }
        E::HostPathFlaps { protocol, portal, head, times, seconds, up } => {
            let (path, times) = (path(protocol, portal, head), count(*times, "more time"));
            let now = if *up { "connected" } else { "not connected" };
            format!("its path over {path} came or left {times} in {seconds} s, and is {now} now")
        }
        E::HostPathsChanged { times, seconds } => {
            format!("other paths of hosts came or left {} in {seconds} s", count(*times, "time"))
        }
    }
}

/// A portal, and the head that serves it.
fn path(protocol: &str, portal: &str, head: &Option<String>) -> String {
    let head = head.as_ref().map_or(String::new(), |head| format!(" at head {head}"));
    format!("{protocol} {portal}{head}")
}

/// What became of somebody, and why.
fn login_fate(fate: &LoginFate) -> (&'static str, &'static str) {
    match fate {
        LoginFate::Rejected { why } => ("was rejected", connection_fault::fault(*why)),
        LoginFate::CutOff { why } => ("was cut off", connection_fault::fault(*why)),
        LoginFate::SeesNothing => ("was let in and sees nothing", "no volume is exported to it"),
        LoginFate::FindsNothing => ("asked for discovery and finds nothing", "no host has this name"),
    }
}

fn who(name: &str, address: &str) -> String {
    if name.is_empty() { address.to_string() } else { format!("{name} ({address})") }
}

/// What is worth knowing.
pub fn notice(f: &HostNotice) -> String {
    match f {
        HostNotice::HostWithoutSecret { host, volumes } => {
            let list = match volumes.len() {
                0..=3 => volumes.join(", "),
                n => format!("{} and {} more", volumes[..2].join(", "), n - 2),
            };
            format!(
                "{list}: exported to host {host}, which needs no secret here; if another head required one: millrace host set {host} --chap-secret-file FILE"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_rejected_is_named_with_the_cause() {
        let fate = || LoginFate::Rejected { why: base::IscsiFault::SecretWrong.into() };
        let rejected = |name: &str, fate| {
            event(&HostEvent::Rejected { name: name.into(), address: "10.0.0.1:9".into(), fate })
        };
        assert_eq!(rejected("iqn.a", fate()), "iqn.a (10.0.0.1:9) was rejected: a wrong CHAP name or secret");
        assert_eq!(
            rejected("", LoginFate::FindsNothing),
            "10.0.0.1:9 asked for discovery and finds nothing: no host has this name"
        );
        let (name, address) = ("iqn.a".into(), "10.0.0.1".into());
        assert_eq!(
            event(&HostEvent::RejectedAgain { name, address, fate: fate(), times: 60_000, seconds: 60 }),
            "iqn.a (10.0.0.1) was rejected 60000 more times in 60 s: a wrong CHAP name or secret"
        );
    }

    #[test]
    fn names_that_would_not_stand_out_are_quoted() {
        let said = |name: &str| refusal(&HostRefusal::HostNameInvalid { name: name.into() }).message;
        assert!(said("a/b").starts_with("a/b is no name of a host: "));
        assert!(said("a b").starts_with("\"a b\" is no name of a host: "));
        assert!(said("").starts_with("\"\" is no name of a host: "));
        assert!(said("a\n").starts_with("\"a\\n\" is no name of a host: "));
    }
}
