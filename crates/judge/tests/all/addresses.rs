//! Addresses that move: two servers and a host with networks of their own, on one switch.

use judge::load::{self, Load, NQN};
use judge::{Head, until};
use lab::{Net, skipped};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PEER: &str = env!("CARGO_BIN_EXE_peer");
/// The addresses of the system: IPv4 and IPv6.
const MOVING: [&str; 2] = ["10.1.0.50", "fd00::50"];
/// How soon a host knows that a connection is over.
const SOON: Duration = Duration::from_secs(2);

/// Two servers on a switch and a link, and a host on the switch.
struct Site {
    a: Head,
    b: Head,
    host: Net,
    _switch: Net,
}

fn run(net: &Net, script: &str) -> String {
    net.run(script, Duration::from_secs(10)).unwrap_or_else(|e| panic!("{e:#}")).stdout
}

/// Own addresses of the nth server; IPv6 goes with the link of a card.
fn own(n: u8) -> String {
    format!(
        "ip link set eth0 up; ip addr replace 10.1.0.{n}/24 dev eth0; ip addr replace fd00::{n}/64 dev eth0 nodad"
    )
}

/// A system of two whose portals move: `a` leads, `b` is started without these capabilities.
fn site(name: &str, without: Option<&'static str>) -> Site {
    let switch = Net::new().expect("a network");
    run(&switch, "ip link add br0 type bridge; ip link set br0 up");
    let nets = [1, 2, 3].map(|n| {
        let net = switch.beside().expect("a network");
        run(&net, &format!("ip link add eth0 type veth peer name p{n} netns {}", switch.id()));
        run(&switch, &format!("ip link set p{n} master br0 up"));
        run(&net, &own(n));
        net
    });
    let [a, b, host] = nets;
    run(&a, &format!("ip link add lnk type veth peer name lnk netns {}", b.id()));
    for (net, n) in [(&a, 1), (&b, 2)] {
        run(net, &format!("ip link set lnk up; ip addr add 10.9.0.{n}/24 dev lnk"));
    }
    let mut a = Head::within(Arc::new(a), &format!("{name}-a"));
    let mut b = Head::within(Arc::new(b), &format!("{name}-b"));
    if let Some(these) = without {
        b.do_without(these);
    }
    a.start();
    b.start();
    let [x, y] = ["x", "y"].map(|drive| a.file(drive, 96 << 20));
    a.cli(&format!("pool create tank mirror {x} {y}"));
    load::volumes(&a, "16M", "16M");
    for (protocol, port) in [("nvme", 4420), ("iscsi", 3260)] {
        a.cli(&format!("portal add {protocol} {}:{port} --prefix 24", MOVING[0]));
        a.cli(&format!("portal add {protocol} [{}]:{port} --prefix 64", MOVING[1]));
    }
    a.lead(&b, ["10.9.0.1", "10.9.0.2"]);
    Site { a, b, host, _switch: switch }
}

/// A connection of the host on which nothing is said.
struct Idle {
    name: String,
    child: Child,
    over: Receiver<(Instant, String)>,
}

impl Idle {
    fn open(site: &Site, words: &str) -> Idle {
        let mut command = site.host.command(PEER);
        command.arg("idle").args(words.split(' ')).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the peer starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert_eq!(lines.next().and_then(Result::ok).as_deref(), Some("in"), "{words}");
        let (report, over) = channel();
        std::thread::spawn(move || {
            let word = lines.next().and_then(Result::ok).unwrap_or_default();
            report.send((Instant::now(), word)).ok();
        });
        Idle { name: words.into(), child, over }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Idle connections of both protocols to both addresses, which the follower knows.
fn idle(site: &Site) -> Vec<Idle> {
    let nqn = site.a.nqn();
    let words = [
        format!("{}:3260", MOVING[0]),
        format!("[{}]:3260", MOVING[1]),
        format!("{}:4420 {nqn} {NQN}", MOVING[0]),
        format!("[{}]:4420 {nqn} {NQN}", MOVING[1]),
    ];
    let all = words.iter().map(|words| Idle::open(site, words)).collect();
    // The leader reports to the follower twice a second.
    std::thread::sleep(Duration::from_millis(1500));
    all
}

/// The leader's card goes down, so that its machine resets no connection, and its process is killed.
fn cut(site: &mut Site) -> Instant {
    run(&site.a.net, "ip link set eth0 down");
    let at = Instant::now();
    site.a.kill_at_once();
    at
}

/// Addresses of the machine.
fn addresses(net: &Net) -> String {
    run(net, "ip -br addr")
}

/// How long a load has the volume to itself first: what it prepares is not among the commands that it times.
const PREPARES: Duration = Duration::from_secs(5);

/// A load by NVMe/TCP to the IPv4 address, and one by iSCSI to the IPv6 address.
fn loads(site: &Site) -> Vec<Load> {
    let nvme = format!("nvme://{}:4420/{}/1", MOVING[0], site.a.nqn());
    let iscsi = format!("iscsi://[{}]:3260/{}/1", MOVING[1], site.a.iqn());
    let mut all: Vec<Load> = [("nvme", nvme), ("iscsi", iscsi)]
        .iter()
        .map(|(name, url)| {
            let words = format!("{} --rw randrw --bs 4k --qd 4 --prepare", load::names(url));
            Load::start_in(&site.host, &site.b, name, &words)
        })
        .collect();
    std::thread::sleep(PREPARES);
    all.iter_mut().for_each(Load::must_run);
    all
}

/// Ends both loads, which saw no error, and says how long their longest commands took.
fn no_longer_than(loads: Vec<Load>, most_s: f64, reconnects: bool) {
    for (load, name) in loads.into_iter().zip(["NVMe/TCP, IPv4", "iSCSI, IPv6"]) {
        let done = load.finish();
        assert_eq!(done.reconnects > 0, reconnects, "{name}: {} reconnects", done.reconnects);
        let stall = done.read_max_s.max(done.write_max_s);
        println!("{name}: longest command {:.0} ms, {} blocks verified", stall * 1e3, done.verified);
        assert!(stall < most_s, "{name} stood still for {stall} s");
    }
}

#[test]
fn addresses_move_and_hosts_know_at_once_that_their_connections_are_over() {
    if skipped("addresses that move") {
        return;
    }
    let mut site = site("addresses", None);
    let loads = loads(&site);
    let idle = idle(&site);
    let at = cut(&mut site);
    for one in &idle {
        let left = SOON.saturating_sub(at.elapsed());
        let (when, word) = one.over.recv_timeout(left).unwrap_or_else(|_| panic!("{} is not over", one.name));
        assert_eq!(word, "reset", "{}", one.name);
        println!("{} is reset after {} ms", one.name, when.duration_since(at).as_millis());
    }
    let card = run(&site.b.net, "ip -br link show eth0");
    let card = card.split_whitespace().nth(2).expect("NAME STATE MAC");
    for ip in MOVING {
        let entry = run(&site.host, &format!("ip neigh show {ip}"));
        assert!(entry.contains(card), "{entry}, and not {card}");
        assert!(addresses(&site.b.net).contains(ip));
    }
    until("b leads", 10, || site.b.heads() == ["out", "leads"]);
    // The old leader comes again, while the kernel of its machine may still have the addresses.
    run(&site.a.net, &own(1));
    site.a.launch();
    until("a follows", 30, || site.b.heads() == ["follows, ready", "leads"]);
    let there = addresses(&site.a.net);
    assert!(MOVING.iter().all(|ip| !there.contains(ip)), "{there}");
    // A host without notice waits for its own timers.
    no_longer_than(loads, 5.0, true);
}

/// Neither head hears the other one by the link, and both see all drives: the one that leads goes on, as it proposes first.
#[test]
fn addresses_stay_and_hosts_go_on_when_the_link_is_cut() {
    if skipped("a cut link") {
        return;
    }
    let mut site = site("linkless", None);
    let loads = loads(&site);
    run(&site.a.net, "ip link set lnk down");
    until("b is out", 10, || site.a.heads() == ["leads", "out"]);
    let there = addresses(&site.a.net);
    assert!(MOVING.iter().all(|ip| there.contains(ip)), "{there}");
    std::thread::sleep(Duration::from_secs(2));
    // Cards that come back have their addresses again.
    run(&site.a.net, "ip link set lnk up; ip addr replace 10.9.0.1/24 dev lnk");
    // Of drives in files a head is shut off by the end of its process.
    site.b.kill_at_once();
    site.b.launch();
    until("b follows", 30, || site.a.heads() == ["leads", "follows, ready"]);
    no_longer_than(loads, 5.0, false);
}

#[test]
fn without_cap_net_raw_idle_connections_of_hosts_hang() {
    if skipped("addresses that move, without CAP_NET_RAW") {
        return;
    }
    let mut site = site("hushed", Some("-net_raw"));
    let idle = idle(&site);
    let at = cut(&mut site);
    until("b leads", 10, || site.b.heads() == ["out", "leads"] && addresses(&site.b.net).contains(MOVING[0]));
    std::thread::sleep(SOON.saturating_sub(at.elapsed()));
    for one in &idle {
        assert!(one.over.try_recv().is_err(), "{} is over, and nobody can have said so", one.name);
    }
    let events = site.b.cli("events");
    assert_eq!(events.matches("CAP_NET_RAW").count(), 1, "{events}");
    let log = site.b.log();
    assert_eq!(log.matches("network was not told").count(), 1, "{log}");
}
