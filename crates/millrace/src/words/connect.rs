//! What a host runs to connect to what is exported to it.

use api::{Host, HostConnect, Portal, Protocol, Status};
use std::net::{IpAddr, SocketAddr};

/// Stands for an address that is not known from here.
const PLACEHOLDER: &str = "ADDRESS";

/// How `host` comes to its volumes. `own`: the address by which this machine reaches others, for portals at all of its addresses.
pub fn how_to_connect(status: &Status, host: &Host, own: Option<IpAddr>) -> HostConnect {
    let mut way = HostConnect::default();
    let (mut unknown, mut here_only) = (false, false);
    for protocol in protocols(host) {
        let of_protocol = || status.portals.iter().filter(|p| p.protocol == protocol);
        let open = |p: &&Portal| p.listening;
        let places: Vec<SocketAddr> = of_protocol().filter(open).map(|p| p.address).collect();
        if places.is_empty() {
            way.next.push(open_portal(protocol));
        }
        here_only |= !places.is_empty() && places.iter().all(|p| p.ip().is_loopback());
        let mut address = |place: &SocketAddr| {
            let address = if place.ip().is_unspecified() {
                own.map_or(PLACEHOLDER.to_string(), |ip| ip.to_string())
            } else {
                place.ip().to_string()
            };
            unknown |= address == PLACEHOLDER;
            (address, place.port())
        };
        let open: Vec<(String, u16)> = places.iter().map(&mut address).collect();
        // Of a system of two heads every portal is a path, also one that is not open here, where it has an address.
        if status.cluster.is_some() && of_protocol().nth(1).is_some() && !open.is_empty() {
            let elsewhere = of_protocol().filter(|p| !p.listening).map(|p| p.address);
            let elsewhere = elsewhere.filter(|p: &SocketAddr| !p.ip().is_unspecified());
            let all: Vec<_> = open.iter().cloned().chain(elsewhere.map(|p| address(&p))).collect();
            way.commands.extend(use_both(protocol, host, &status.system, &all));
            continue;
        }
        for (address, port) in open {
            way.commands.extend(connect(protocol, host, &status.system, &address, port));
        }
    }
    if host.authenticated && !host.iqns.is_empty() {
        way.notes.push("SECRET is the host's CHAP secret; no command shows it.".into());
    }
    if unknown {
        way.notes.push(format!(
            "{PLACEHOLDER} is an address of this machine that the host reaches: ip address lists them."
        ));
    }
    if here_only {
        way.notes.push("A portal at a loopback address is reached from this machine alone.".into());
    }
    way
}

/// The command that opens a portal.
fn open_portal(protocol: Protocol) -> String {
    match protocol {
        Protocol::Iscsi => format!("millrace portal add iscsi {PLACEHOLDER}:3260"),
        Protocol::Nvme | Protocol::Discovery => format!("millrace portal add nvme {PLACEHOLDER}:4420"),
    }
}

/// The protocols that a host has names of.
fn protocols(host: &Host) -> Vec<Protocol> {
    let nvme = (!host.nqns.is_empty()).then_some(Protocol::Nvme);
    nvme.into_iter().chain((!host.iqns.is_empty()).then_some(Protocol::Iscsi)).collect()
}

fn connect(protocol: Protocol, host: &Host, system: &api::System, address: &str, port: u16) -> Vec<String> {
    match protocol {
        Protocol::Nvme | Protocol::Discovery => {
            vec![format!("nvme connect -t tcp -a {address} -s {port} -n {} --ctrl-loss-tmo=-1", system.nqn)]
        }
        Protocol::Iscsi => {
            let place = socket(address, port);
            let node = format!("iscsiadm -m node -T {} -p {place}", system.iqn);
            let find = if host.authenticated {
                format!("{node} -o new")
            } else {
                format!("iscsiadm -m discovery -t sendtargets -p {place}")
            };
            let login = format!("{node} --login");
            [find].into_iter().chain(secrets(host, system, &node)).chain([login]).collect()
        }
    }
}

/// What sets the CHAP secrets of the iSCSI records that `node` names.
fn secrets(host: &Host, system: &api::System, node: &str) -> Vec<String> {
    let set = |name: &str, value: &str| format!("{node} -o update -n node.session.auth.{name} -v {value}");
    let mut commands = vec![];
    if host.authenticated {
        let user = match (&host.chap_user[..], &host.iqns[..]) {
            ("", [iqn, ..]) => iqn,
            (user, _) => user,
        };
        commands.push(set("authmethod", "CHAP"));
        commands.push(set("username", user));
        commands.push(set("password", "SECRET"));
    }
    if host.mutual {
        commands.push(set("username_in", &system.iqn));
        commands.push(set("password_in", "MUTUAL-SECRET"));
    }
    commands
}

/// Paths to both heads, in turns. Settings come first: they hold for what connects afterwards.
fn use_both(protocol: Protocol, host: &Host, system: &api::System, portals: &[(String, u16)]) -> Vec<String> {
    let Some((address, port)) = portals.first() else { return vec![] };
    match protocol {
        // Native multipath, which Debian 12 and 13 have switched on, keeps to one path unless it is told otherwise
        // (iopolicy numa). One portal tells of all.
        Protocol::Nvme | Protocol::Discovery => vec![
            format!(
                r#"echo 'ACTION=="add|change", SUBSYSTEM=="nvme-subsystem", ATTR{{model}}=="{}*", ATTR{{iopolicy}}="round-robin"' > /etc/udev/rules.d/71-millrace.rules"#,
                system.model
            ),
            "udevadm control --reload && udevadm trigger -s nvme-subsystem".into(),
            format!("nvme connect-all -t tcp -a {address} -s {port} --reconnect-delay=2 --ctrl-loss-tmo=-1"),
        ],
        Protocol::Iscsi => {
            let node = format!("iscsiadm -m node -T {}", system.iqn);
            let place = |(address, port): &(String, u16)| socket(address, *port);
            let find = if host.authenticated {
                portals.iter().map(|p| format!("{node} -p {} -o new", place(p))).collect()
            } else {
                vec![format!("iscsiadm -m discovery -t sendtargets -p {}", socket(address, *port))]
            };
            let settings = MULTIPATH.map(|line| format!("'{line}'")).join(" ");
            let mut commands = vec![
                format!(
                    r"mkdir -p /etc/multipath/conf.d && printf '%s\n' {settings} > /etc/multipath/conf.d/millrace.conf"
                ),
                "multipathd reconfigure".into(),
            ];
            commands.extend(find);
            commands.extend(secrets(host, system, &node));
            commands.push(format!("{node} --login"));
            commands
        }
    }
}

/// What dm-multipath must be told of our logical units; each word stands alone in its line there.
///
/// - `find_multipaths`: without it no map is made of units that never had one (Debian 12 and 13).
/// - `path_grouping_policy`: Debian 12 (0.9.4) would use one path; from 0.9.6 on (Debian 13) it is found out by ALUA.
/// - `path_selector`: both would go by service time.
/// - `failback`: a head that was non-optimized is used again.
/// - `no_path_retry`: both would fail what comes while no path is there, as in a takeover.
/// - `fast_io_fail_tmo`: both would hold back for 5 s what was sent to a head that is gone, before the other one gets it. 1 is the least.
const MULTIPATH: [&str; 14] = [
    "defaults {",
    "find_multipaths yes",
    "}",
    "devices {",
    "device {",
    r#"vendor "MILLRACE""#,
    r#"product ".*""#,
    "path_grouping_policy group_by_prio",
    r#"path_selector "round-robin 0""#,
    "failback immediate",
    "no_path_retry queue",
    "fast_io_fail_tmo 1",
    "}",
    "}",
];

/// Address and port, as a URL has them.
fn socket(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn told(status: &Status, own: Option<IpAddr>) -> HostConnect {
        how_to_connect(status, &status.hosts[0], own)
    }

    pub(crate) fn portal(protocol: Protocol, address: &str, listening: bool) -> Portal {
        Portal {
            protocol,
            address: address.parse().expect("an address"),
            listening,
            cause: None,
            reason: String::new(),
            connections: 0,
            head: None,
            served_by: None,
            prefix: None,
            interface: None,
            on: None,
        }
    }

    fn status(portals: &[(Protocol, &str, bool)], host: Host) -> Status {
        let mut status = crate::words::say::status(Default::default());
        (status.system.nqn, status.system.iqn) = ("nqn.a".into(), "iqn.a".into());
        status.portals =
            portals.iter().map(|(p, address, listening)| portal(*p, address, *listening)).collect();
        status.hosts = vec![host];
        status
    }
    fn host(nqns: &[&str], iqns: &[&str]) -> Host {
        let all = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
        let (nqns, iqns) = (all(nqns), all(iqns));
        Host { name: "web1".into(), nqns, iqns, ..Host::default() }
    }

    #[test]
    fn a_host_is_told_the_commands_of_its_own_protocols_by_every_open_portal() {
        let portals = [
            (Protocol::Nvme, "10.0.0.1:4420", true),
            (Protocol::Nvme, "[fd00::1]:4420", true),
            (Protocol::Nvme, "10.9.9.9:4420", false),
            (Protocol::Discovery, "10.0.0.1:8009", true),
            (Protocol::Iscsi, "0.0.0.0:3260", true),
            (Protocol::Iscsi, "[fd00::1]:3260", true),
        ];
        let way = |host, own| told(&status(&portals, host), own);
        let nvme = way(host(&["nqn.host"], &[]), None);
        assert_eq!(
            nvme.commands,
            [
                "nvme connect -t tcp -a 10.0.0.1 -s 4420 -n nqn.a --ctrl-loss-tmo=-1",
                "nvme connect -t tcp -a fd00::1 -s 4420 -n nqn.a --ctrl-loss-tmo=-1"
            ]
        );
        assert!(nvme.next.is_empty() && nvme.notes.is_empty());
        let iscsi = way(host(&[], &["iqn.host"]), Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7))));
        assert_eq!(
            iscsi.commands,
            [
                "iscsiadm -m discovery -t sendtargets -p 10.0.0.7:3260",
                "iscsiadm -m node -T iqn.a -p 10.0.0.7:3260 --login",
                "iscsiadm -m discovery -t sendtargets -p [fd00::1]:3260",
                "iscsiadm -m node -T iqn.a -p [fd00::1]:3260 --login"
            ]
        );
        let mutual = Host { authenticated: true, mutual: true, ..host(&[], &["iqn.host"]) };
        let secret = way(mutual, Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7))));
        let auth = "iscsiadm -m node -T iqn.a -p 10.0.0.7:3260 -o update -n node.session.auth.";
        for (nth, set) in
            ["authmethod -v CHAP", "username -v iqn.host", "password -v SECRET", "username_in -v iqn.a"]
                .iter()
                .enumerate()
        {
            assert_eq!(secret.commands[nth + 1], format!("{auth}{set}"));
        }
        assert!(secret.commands[6].ends_with("--login") && secret.notes[0].contains("no command shows it"));
        // Without a way out of this machine nobody knows its address from here.
        let unknown = way(host(&[], &["iqn.host"]), None);
        assert!(unknown.commands[0].ends_with("-p ADDRESS:3260"), "{unknown:?}");
        assert!(unknown.notes[0].contains("ip address lists them"), "{unknown:?}");
        assert_eq!(way(host(&["nqn.host"], &["iqn.host"]), None).commands.len(), 6);
    }

    #[test]
    fn a_host_of_two_heads_is_told_to_use_their_paths_in_turns() {
        let portals = [
            (Protocol::Nvme, "10.0.0.2:4420", false),
            (Protocol::Nvme, "10.0.0.1:4420", true),
            (Protocol::Iscsi, "0.0.0.0:3260", true),
            (Protocol::Iscsi, "[fd00::2]:3260", false),
            (Protocol::Iscsi, "0.0.0.0:3261", false),
        ];
        let own = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)));
        let way = |portals: &[_], host| {
            let mut status = status(portals, host);
            (status.cluster, status.system.model) = (Some(Default::default()), "Millrace".into());
            told(&status, own)
        };
        let nvme = way(&portals, host(&["nqn.host"], &[]));
        assert_eq!(
            nvme.commands,
            [
                r#"echo 'ACTION=="add|change", SUBSYSTEM=="nvme-subsystem", ATTR{model}=="Millrace*", ATTR{iopolicy}="round-robin"' > /etc/udev/rules.d/71-millrace.rules"#,
                "udevadm control --reload && udevadm trigger -s nvme-subsystem",
                "nvme connect-all -t tcp -a 10.0.0.1 -s 4420 --reconnect-delay=2 --ctrl-loss-tmo=-1",
            ]
        );
        let iscsi = way(&portals, host(&[], &["iqn.host"]));
        assert_eq!(
            iscsi.commands,
            [
                r#"mkdir -p /etc/multipath/conf.d && printf '%s\n' 'defaults {' 'find_multipaths yes' '}' 'devices {' 'device {' 'vendor "MILLRACE"' 'product ".*"' 'path_grouping_policy group_by_prio' 'path_selector "round-robin 0"' 'failback immediate' 'no_path_retry queue' 'fast_io_fail_tmo 1' '}' '}' > /etc/multipath/conf.d/millrace.conf"#,
                "multipathd reconfigure",
                "iscsiadm -m discovery -t sendtargets -p 10.0.0.7:3260",
                "iscsiadm -m node -T iqn.a --login",
            ]
        );
        assert!(nvme.notes.is_empty() && iscsi.notes.is_empty() && iscsi.next.is_empty());
        // With a secret there is no discovery: each path is named, also that of the other head.
        let secret = way(&portals, Host { authenticated: true, ..host(&[], &["iqn.host"]) });
        assert_eq!(
            secret.commands[2..],
            [
                "iscsiadm -m node -T iqn.a -p 10.0.0.7:3260 -o new",
                "iscsiadm -m node -T iqn.a -p [fd00::2]:3260 -o new",
                "iscsiadm -m node -T iqn.a -o update -n node.session.auth.authmethod -v CHAP",
                "iscsiadm -m node -T iqn.a -o update -n node.session.auth.username -v iqn.host",
                "iscsiadm -m node -T iqn.a -o update -n node.session.auth.password -v SECRET",
                "iscsiadm -m node -T iqn.a --login",
            ]
        );
        // One portal, whose address moves, is one path; and one that is not open is none.
        let one = way(&portals[1..3], host(&["nqn.host"], &["iqn.host"]));
        assert_eq!(
            (one.commands.len(), one.commands[0].as_str()),
            (3, "nvme connect -t tcp -a 10.0.0.1 -s 4420 -n nqn.a --ctrl-loss-tmo=-1")
        );
        let shut = way(&[portals[0], portals[0]], host(&["nqn.host"], &[]));
        assert_eq!(
            (shut.commands.len(), shut.next),
            (0, vec!["millrace portal add nvme ADDRESS:4420".to_string()])
        );
    }

    /// The line is long, and what it writes must be what multipathd reads: a word and its value in each line.
    #[test]
    fn the_settings_of_multipath_come_out_line_by_line() {
        let portals = [(Protocol::Iscsi, "10.0.0.1:3260", true), (Protocol::Iscsi, "10.0.0.2:3260", true)];
        let mut status = status(&portals, host(&[], &["iqn.host"]));
        status.cluster = Some(Default::default());
        let line = told(&status, None).commands[0].clone();
        let (_, print) = line.split_once("&& ").expect("two commands");
        let (print, file) = print.rsplit_once(" > ").expect("into a file");
        assert_eq!(file, "/etc/multipath/conf.d/millrace.conf");
        let out = std::process::Command::new("sh").arg("-c").arg(print).output().expect("a shell");
        let text = String::from_utf8(out.stdout).expect("text");
        assert_eq!(text.lines().collect::<Vec<_>>(), MULTIPATH);
    }

    #[test]
    fn without_a_portal_of_its_protocol_the_next_command_opens_one() {
        let portals = [(Protocol::Nvme, "127.0.0.1:4420", true)];
        let way = |host| told(&status(&portals, host), None);
        let iscsi = way(host(&[], &["iqn.host"]));
        let opens = vec!["millrace portal add iscsi ADDRESS:3260".to_string()];
        assert_eq!((iscsi.commands.len(), &iscsi.next), (0, &opens));
        let both = way(host(&["nqn.host"], &["iqn.host"]));
        assert_eq!((both.commands.len(), &both.next), (1, &opens));
        assert!(both.notes[0].contains("this machine alone"), "{both:?}");
    }
}
