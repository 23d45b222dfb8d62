//! Two daemons over the same files: one serves, the other takes over (docs/two-heads.md).

use crate::daemon::{Daemon, Load, curl, until};
use crate::history::{get, known};
use crate::mirrors::{bench, bench_at, data, export};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant, SystemTime};

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").to_string()
}

/// For the link: shards of the two heads meet at the ports behind it. The kernel gives none of these to others, and each process of tests
/// begins elsewhere.
fn link_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let begin = 10_000 + (std::process::id() % 500) as u16 * 40;
    let mut ports = (0..500).map(|_| begin + NEXT.fetch_add(4, Ordering::Relaxed) % 2000);
    let port = ports.find(|port| free(port) && free(&(port + 1))).expect("a free port");
    format!("127.0.0.1:{port}")
}

/// The word for each head, as this daemon knows it: `a leads`, `b follows`.
pub fn heads(daemon: &Daemon) -> Vec<String> {
    let output = daemon.ask(&["head", "ls", "--json"]);
    let Ok(system) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else { return vec![] };
    let word = |h: &serde_json::Value| {
        let ready = if h["ready"] == true { "" } else { ", not ready" };
        format!("{} {}{ready}", h["head"].as_str().unwrap_or(""), h["state"].as_str().unwrap_or(""))
    };
    system["heads"].as_array().map(|all| all.iter().map(word).collect()).unwrap_or_default()
}

/// A system of two over a mirror of two files, exported; the addresses of the portal and of the link.
pub fn system() -> (Daemon, Daemon, [String; 2], (String, String), String) {
    system_of(Daemon::new())
}

/// The same, of a head that has not started yet.
fn system_of(a: Daemon) -> (Daemon, Daemon, [String; 2], (String, String), String) {
    system_of_both(a, Daemon::new())
}

/// The same, of two such heads.
fn system_of_both(mut a: Daemon, mut b: Daemon) -> (Daemon, Daemon, [String; 2], (String, String), String) {
    a.start(&[]);
    b.start(&[]);
    let drives = ["x", "y"].map(|name| a.file(name, 96));
    a.cli(&format!("pool create tank mirror {} {}", drives[0], drives[1]));
    a.cli("volume create tank/v --size 32M");
    let portal = export(&a);
    let link = link_address();
    let long = "n".repeat(100);
    let refused = a.refused(&format!("system create --link {link} --name {long}"));
    assert!(refused.contains("at most 64 bytes"), "{refused}");
    let made = a.json(&format!("system create --link {link} --name left"));
    assert!(
        made["notices"].to_string().contains("127.0.0.1 is an address of the link and of a portal"),
        "{made}"
    );
    let token = made["token"].as_str().expect("a token").to_string();
    let refused = b.refused(&format!("system join {token} --link 127.0.0.1 --name {long}"));
    assert!(refused.contains("at most 64 bytes"), "{refused}");
    b.cli("host add before --iqn iqn.2026-01.test:before");
    let joined = b.cli(&format!("system join {token} --link 127.0.0.1 --name right"));
    assert!(joined.contains("127.0.0.1 is an address of the link"), "{joined}");
    assert!(joined.contains("host before"), "what it had is told: {joined}");
    until("b follows", || heads(&a) == ["a leads", "b follows"] && heads(&b) == ["a leads", "b follows"]);
    (a, b, drives, portal, token)
}

/// Waits for the end of a load, which had no errors and verified a lot; its report.
pub fn without_errors(load: Child) -> serde_json::Value {
    let done = load.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((report["errors"].as_u64(), report["mismatches"].as_u64()), (Some(0), Some(0)), "{report}");
    assert!(report["verified_blocks"].as_u64() > Some(1000), "{report}");
    report
}

/// Whether each head has its portals and some lanes, and hosts are connected to both, as the one that leads says.
fn both_serve(leader: &Daemon) -> bool {
    let status = leader.status();
    let all = |of: &serde_json::Value, good: &dyn Fn(&serde_json::Value) -> bool| {
        of.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(good))
    };
    let serves = |h: &serde_json::Value| {
        h["serves"]["lanes"].as_u64() > Some(0) && h["serves"]["hosts"].as_u64() > Some(0)
    };
    all(&status["portals"], &|p| p["listening"] == true && p["served_by"].is_null())
        && all(&status["cluster"]["heads"], &serves)
        && all(&status["connections"], &|c| c["session"].is_u64() && c["host"].is_string())
}

/// Whether each head has some lanes, as the one that leads says.
fn both_have_lanes(leader: &Daemon) -> bool {
    let status = leader.status();
    let heads = status["cluster"]["heads"].as_array();
    heads.is_some_and(|all| all.iter().all(|h| h["serves"]["lanes"].as_u64() > Some(0)))
}

/// A host that is connected to head b alone is in the way of what would send it away, and is sent away there.
fn a_host_at_the_other_head_is_sent_away([a, b]: [&Daemon; 2], nqn: &str, subsystem: &str) {
    let words = format!("--rw randread --seconds 0 --patience 1 --host-nqn {nqn} --connections 1");
    let mut load = bench_at(&format!("nvme://{}/{subsystem}/0", b.portal("nvme")), &words);
    let connected = || {
        let status = a.status();
        let all = status["connections"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|c| c["host"] == "second" && c["head"] == "b").count()
    };
    until("it reads at head b", || connected() == 2);
    let refused = a.refused("host rm second --force");
    assert!(refused.contains("host second is connected (2 connections)"), "{refused}");
    a.cli("host rm second --force --yes");
    until("it is sent away", || connected() == 0);
    let ended = load.wait().expect("it ends");
    assert!(!ended.success());
    assert!(a.log().lines().chain(b.log().lines()).all(|line| !line.contains("panicked")));
}

#[test]
fn hosts_at_both_heads_lose_nothing_when_one_is_killed_and_then_the_other() {
    const NQN: &str = "nqn.2014-08.org.example:second";
    let (mut a, mut b, drives, (portal, target), _) = system();
    b.cli("volume create tank/n --size 16M");
    a.cli(&format!("host add second --nqn {NQN}"));
    a.cli("export tank/n --host second");
    let (iscsi_of_b, nvme) = (b.portal("iscsi"), [a.portal("nvme"), b.portal("nvme")]);
    let subsystem = a.status()["system"]["nqn"].as_str().expect("a name").to_string();
    // Until they are told to end.
    let words = "--rw randrw --force --verify --prepare --read-back --seconds 0 --qd 8 --patience 60";
    let loads = [
        bench(&portal, &target, &format!("{words} --connections 2 --portals {iscsi_of_b}")),
        bench_at(
            &format!("nvme://{}/{subsystem}/0", nvme[0]),
            &format!("{words} --host-nqn {NQN} --connections 4 --portals {}", nvme[1]),
        ),
    ];
    until("both heads serve", || both_serve(&a));
    std::thread::sleep(Duration::from_secs(2));
    a.signal("-KILL");
    until("b leads", || heads(&b) == ["a out, not ready", "b leads"]);
    std::thread::sleep(Duration::from_secs(1));
    a.start(&[]);
    until("both heads serve again", || both_serve(&b));
    std::thread::sleep(Duration::from_secs(2));
    b.signal("-KILL");
    until("a leads", || heads(&a) == ["a leads", "b out, not ready"]);
    std::thread::sleep(Duration::from_secs(1));
    b.start(&[]);
    until("both heads serve once more", || both_serve(&a));
    std::thread::sleep(Duration::from_secs(2));
    for load in loads {
        let id = load.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
        let report = without_errors(load);
        assert!(report["reconnects"].as_u64() > Some(0), "{report}");
        let paths = report["connections"].as_array().expect("a list");
        assert!(paths.iter().all(|path| path["figures"]["ops"].as_u64() > Some(0)), "{report}");
    }
    until("all is well", || a.status()["health"] == "optimal");
    a_host_at_the_other_head_is_sent_away([&a, &b], NQN, &subsystem);
    assert_eq!(b.signal("-TERM").code(), Some(0));
    assert_eq!(a.signal("-TERM").code(), Some(0));
    let first = data(&drives[0]);
    assert!(first.iter().any(|b| *b != 0) && data(&drives[1]) == first, "legs differ");
}

/// Makes a token; its secret.
fn token(daemon: &Daemon, name: &str) -> String {
    daemon.json(&format!("token add {name}"))["secret"].as_str().expect("a secret").to_string()
}

/// The minute that began an hour ago, seconds since 1970.
fn an_hour_ago() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    (now - 3600) / 60 * 60
}

/// What a file of history holds in which a head read once a second in this minute (docs/formats/state.md).
fn history_of(minute: u64) -> Vec<u8> {
    let mut block = [
        b"MRH2".as_slice(),
        &[0; 8],
        &1u32.to_le_bytes(),
        &minute.to_le_bytes(),
        &[0; 16],
        &60u32.to_le_bytes(),
    ]
    .concat();
    block.extend(1f32.to_le_bytes());
    block.resize(44 + 80, 0);
    let sum = base::crc::crc32c(&block[8..]).to_le_bytes();
    block[4..8].copy_from_slice(&sum);
    block
}

/// Files of two state directories: those that are the same in both, and those that are not.
fn compared(a: &Daemon, b: &Daemon) -> [Vec<String>; 2] {
    let files = |d: &Daemon| -> BTreeMap<String, Vec<u8>> {
        let all = std::fs::read_dir(d.path("state")).expect("a folder");
        let all = all.map(|entry| entry.expect("there").path());
        let name = |path: &Path| path.file_name().and_then(|n| n.to_str()).expect("a name").to_string();
        all.filter_map(|path| Some((name(&path), std::fs::read(&path).ok()?))).collect()
    };
    let (a, b) = (files(a), files(b));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let (same, own): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| a.get(*name) == b.get(*name));
    [same, own].map(|names| names.into_iter().cloned().collect())
}

#[test]
fn a_head_that_joins_or_comes_back_keeps_its_tokens_its_certificate_and_its_history() {
    let (a, b) = (Daemon::new(), Daemon::new());
    let ports = [a.with_tls(), b.with_tls()];
    let (mut a, b, ..) = system_of_both(a, b);
    // What the answer is to this secret at this head, by its own certificate.
    let shown = |daemon: &Daemon, port: u16, secret: &str| {
        let ca = daemon.path("state/api-certificate").display().to_string();
        let (bearer, url) =
            (format!("Authorization: Bearer {secret}"), format!("https://127.0.0.1:{port}/api/v1/session"));
        curl(&["--cacert", &ca, "-H", &bearer, &url]).0
    };
    let (kept, lost) = (token(&a, "kept"), token(&a, "lost"));
    let own = token(&b, "own");
    let certificate = std::fs::read(a.path("state/api-certificate")).expect("a file");
    a.signal("-KILL");
    until("b leads", || heads(&b) == ["a out, not ready", "b leads"]);
    // An hour ago it led, and did something.
    let past = history_of(an_hour_ago());
    std::fs::write(a.path("state/history"), &past).expect("written");
    a.start(&[]);
    until("a follows", || heads(&b) == ["a follows", "b leads"]);
    a.cli("token rm lost");
    a.signal("-KILL");
    a.start(&[]);
    until("a follows again", || heads(&a) == ["a follows", "b leads"]);
    for (secret, status) in [(&kept, "200"), (&lost, "401"), (&own, "401")] {
        assert_eq!(shown(&a, ports[0], secret), status);
    }
    for (secret, status) in [(&own, "200"), (&kept, "401"), (&lost, "401")] {
        assert_eq!(shown(&b, ports[1], secret), status);
    }
    assert!(std::fs::read(a.path("state/history")).expect("a file").starts_with(&past));
    assert_eq!(std::fs::read(a.path("state/api-certificate")).expect("a file"), certificate);
    let [same, different] = compared(&a, &b);
    for name in ["identity", "hosts", "portals", "pools"] {
        assert!(same.contains(&name.to_string()), "{name}: {same:?}");
    }
    for name in ["api-certificate", "link", "link-identity", "tokens"] {
        assert!(different.contains(&name.to_string()), "{name}: {different:?}");
    }
}

#[test]
fn charts_of_the_head_that_follows_show_the_system() {
    let (a, b, drives, (portal, target), _) = system();
    let load = Load(bench(&portal, &target, "--rw randrw --force --seconds 60 --qd 4 --patience 60"));
    let drive = format!("history/drives/{}", drives[0].replace('/', "%2F"));
    let writes = |daemon: &Daemon, path: &str| known(&get(daemon, path).1, "/writes");
    for path in ["history", "history/volumes/tank/v", "history/volumes/tank/v?step=5", &drive] {
        for head in [&a, &b] {
            until(path, || writes(head, path).iter().any(|rate| *rate > 0.0));
        }
    }
    for head in [&a, &b] {
        let (status, idle) = get(head, "history/volumes/tank/no");
        assert!(status == 404 && idle["error"]["code"] == "volume_unknown", "{idle}");
    }
    drop(load);
}

#[test]
fn the_head_that_serves_is_killed_under_load_and_comes_back_as_follower() {
    let (mut a, mut b, drives, (portal, target), _) = system();
    // The follower answers as the one that leads does, and carries out orders by it.
    b.cli("volume create tank/w --size 8M");
    assert!(a.cli("volume ls").contains("tank/w"));
    let load = bench(
        &portal,
        &target,
        "--rw randrw --force --verify --prepare --read-back --seconds 8 --qd 8 --patience 60",
    );
    std::thread::sleep(Duration::from_secs(2));
    a.signal("-KILL");
    until("b leads", || heads(&b) == ["a out, not ready", "b leads"]);
    a.start(&[]);
    until("a follows", || heads(&b) == ["a follows", "b leads"]);
    // And back again, while the load goes on.
    std::thread::sleep(Duration::from_secs(1));
    b.signal("-KILL");
    until("a leads", || heads(&a) == ["a leads", "b out, not ready"]);
    b.start(&[]);
    until("b follows", || heads(&a) == ["a leads", "b follows"]);
    without_errors(load);
    until("the legs are equal", || a.status()["health"] == "optimal");
    let told = a.events();
    assert!(told.iter().any(|e| e.contains("this head leads, epoch") && e.contains("is out: ")), "{told:#?}");
    // The follower first: the other one goes on, and then goes in order.
    assert_eq!(b.signal("-TERM").code(), Some(0));
    until("b is out", || heads(&a) == ["a leads", "b out, not ready"]);
    until("it is told since when, why, and where it is shut off", || {
        let told = a.reasons().join("\n");
        ["head b (right) is out since 20", "Z: ", "; it is shut off 2 of 2 drives; nobody takes over"]
            .iter()
            .all(|part| told.contains(part))
    });
    assert!(a.cli("head ls").contains("Head b is out since 20"));
    assert_eq!(a.signal("-TERM").code(), Some(0));
    let first = data(&drives[0]);
    assert!(first.iter().any(|b| *b != 0) && data(&drives[1]) == first, "legs differ");
}

#[test]
fn a_head_that_was_stopped_for_seconds_is_out_when_it_goes_on() {
    let (mut a, b, _, (portal, target), _) = system();
    let load = bench(
        &portal,
        &target,
        "--rw randrw --force --verify --prepare --read-back --seconds 6 --qd 4 --patience 60",
    );
    std::thread::sleep(Duration::from_secs(2));
    let id = a.child.as_ref().expect("it runs").id().to_string();
    let send = |signal: &str| Command::new("kill").args([signal, &id]).status().expect("kill runs");
    assert!(send("-STOP").success());
    until("b leads", || heads(&b) == ["a out, not ready", "b leads"]);
    std::thread::sleep(Duration::from_secs(2));
    // On files it was killed by the other one, which no signal undoes.
    let _ = send("-CONT");
    let ended = a.child.take().expect("it ran").wait().expect("ours");
    assert!(!ended.success());
    a.start(&[]);
    until("a follows", || heads(&b) == ["a follows", "b leads"]);
    let done = load.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn both_start_after_a_power_cut_and_one_of_them_alone_when_its_hosts_are_the_latest() {
    let (mut a, mut b, ..) = system();
    a.signal("-KILL");
    b.signal("-KILL");
    b.child = Some(b.command().spawn().expect("it runs"));
    a.start(&[]);
    let one = |all: &[String]| all == ["a leads", "b follows"] || all == ["a follows", "b leads"];
    until("one leads", || one(&heads(&a)) && one(&heads(&b)));
    a.cli("host add later --iqn iqn.2026-01.test:later");
    // b is out; what it keeps of hosts is not the latest once it is put out.
    b.signal("-KILL");
    until("a leads alone", || heads(&a) == ["a leads", "b out, not ready"]);
    a.cli("host add latest --iqn iqn.2026-01.test:latest");
    a.signal("-KILL");
    b.child = Some(b.command().spawn().expect("it runs"));
    until("b waits", || {
        heads(&b) == ["a out", "b starts, not ready"] || heads(&b) == ["a leads", "b starts, not ready"]
    });
    std::thread::sleep(Duration::from_secs(3));
    assert!(b.cli("head ls").contains("--with-old-hosts"));
    assert!(b.cli("status").contains("was not ready to take over"), "{}", b.cli("status"));
    a.start(&[]);
    until("a leads, and b follows", || heads(&a) == ["a leads", "b follows"]);
    assert!(a.cli("host ls").contains("latest"));
    // A state directory of last week leads nobody, whatever it says of itself.
    let (state, old) = (b.path("state"), b.path("old"));
    replace(&state, &old);
    b.signal("-KILL");
    until("a leads alone again", || heads(&a) == ["a leads", "b out, not ready"]);
    b.start(&[]);
    until("b follows again", || heads(&a) == ["a leads", "b follows"]);
    // Nor does one of a moment ago, from since it was let in and before hosts changed.
    let younger = b.path("younger");
    replace(&state, &younger);
    a.cli("host add newest --iqn iqn.2026-01.test:newest");
    for (times, copy) in [old, younger].iter().enumerate() {
        a.signal("-KILL");
        b.signal("-KILL");
        replace(copy, &state);
        b.child = Some(b.command().spawn().expect("it runs"));
        let says = || b.log().matches("the state directory is an older copy").count() > times;
        until("b says that it is old", says);
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(heads(&b).last().map(String::as_str), Some("b starts, not ready"));
        a.start(&[]);
        until("a leads, and b follows it", || heads(&a) == ["a leads", "b follows"]);
        assert!(a.cli("host ls").contains("newest") && b.cli("host ls").contains("newest"));
    }
    // What it has now is the latest: it needs nobody.
    a.signal("-KILL");
    b.signal("-KILL");
    b.start(&[]);
    until("b leads alone", || heads(&b) == ["a out, not ready", "b leads"]);
    assert!(b.cli("host ls").contains("newest"));
}

#[test]
fn a_head_that_is_alone_goes_on_when_the_drive_that_votes_fails() {
    let (a, mut b, drives, ..) = system();
    b.signal("-TERM");
    until("a leads alone", || heads(&a) == ["a leads", "b out, not ready"]);
    let ended = |e: &String| e.contains("head b (right) is out") && e.contains("its process has ended");
    assert!(a.events().iter().any(ended), "{:?}", a.events());
    let voters = || serde_json::from_slice::<serde_json::Value>(&a.ask(&["head", "ls", "--json"]).stdout);
    until("both drives vote", || voters().is_ok_and(|system| system["voters"] == 2));
    a.cli(&format!("drive fail {}", drives[0]));
    until("one drive votes", || voters().is_ok_and(|system| system["voters"] == 1));
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!((heads(&a)[0].as_str(), a.status()["health"].as_str()), ("a leads", Some("degraded")));
    a.cli("host add later --iqn iqn.2026-01.test:later");
}

/// What a follower does not get it does not have: it is not ready, and would let in by its old files. (A leader that could not read its
/// own file took it for one that was removed.)
#[test]
fn a_follower_that_lacks_a_file_which_the_leader_cannot_read_is_not_ready() {
    let (a, mut b, ..) = system();
    b.signal("-TERM");
    until("b is out", || heads(&a) == ["a leads", "b out, not ready"]);
    let hosts = a.path("state/hosts");
    let whole = std::fs::read(&hosts).expect("a file");
    std::fs::File::options().write(true).open(&hosts).and_then(|f| f.set_len(70 << 20)).expect("too long");
    b.start(&[]);
    until("it is said", || a.events().iter().any(|e| e.contains("the follower cannot take over: ")));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(heads(&a), ["a leads", "b follows, not ready"]);
    let reasons = a.status()["reasons"].to_string();
    assert!(
        reasons.contains("follower_without_file") && !reasons.contains("follower_not_ready"),
        "{reasons}"
    );
    std::fs::write(&hosts, whole).expect("written");
    until("b has all", || heads(&a) == ["a leads", "b follows"]);
}

/// Heads boot before the drives that vote: whoever asks is told at once that nobody leads. (A request went to and fro between both for
/// ever, and a few took half a core.)
#[test]
fn while_nobody_leads_a_request_ends_at_once_and_says_so() {
    let (mut a, mut b, first, ..) = system();
    let mut drives = first.to_vec();
    for names in [["p", "q"], ["r", "s"]] {
        let more = names.map(|name| a.file(name, 96));
        a.cli(&format!("pool add tank mirror {} {}", more[0], more[1]));
        drives.extend(more);
    }
    let voters = || serde_json::from_slice::<serde_json::Value>(&a.ask(&["head", "ls", "--json"]).stdout);
    until("most votes are of drives", || voters().is_ok_and(|system| system["voters"].as_u64() > Some(2)));
    a.signal("-KILL");
    b.signal("-KILL");
    let away = |drive: &String| format!("{drive}.away");
    drives.iter().for_each(|drive| std::fs::rename(drive, away(drive)).expect("moved"));
    a.start(&[]);
    b.start(&[]);
    until("the heads meet", || {
        a.log().contains("of the link is up") && b.log().contains("of the link is up")
    });
    for _ in 0..3 {
        for head in [&a, &b] {
            let began = Instant::now();
            let refused = head.refused("volume ls");
            assert!(refused.contains("neither head leads now"), "{refused}");
            assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
            let status = head.ask(&["status"]).stdout;
            assert!(String::from_utf8_lossy(&status).contains("neither head leads now"));
            assert!(head.ask(&["events"]).status.success());
        }
    }
    drives.iter().for_each(|drive| std::fs::rename(away(drive), drive).expect("moved"));
    until("both heads have lanes", || [&a, &b].into_iter().any(both_have_lanes));
}

#[test]
fn a_token_is_good_once_and_a_third_head_is_refused() {
    let (a, mut b, _, _, token) = system();
    let memory = a.refused("pool create more mirror ram:300M ram:300M");
    assert!(memory.contains("cannot be used by two heads"), "{memory}");
    assert!(memory.contains("Next: the same with a drive that both heads reach"), "{memory}");
    // An address that this server does not have may be the other one's.
    let refused = a.refused("portal add nvme 192.0.2.9:4420");
    assert!(refused.contains("if head b has the address, the same with --head b"), "{refused}");
    a.cli("portal add nvme 192.0.2.9:4420 --head b");
    let trouble = "portal nvme 192.0.2.9:4420: on head b: the address is not this machine's";
    until("the other one does not have it either", || a.reasons().iter().any(|r| r.contains(trouble)));
    a.cli("portal rm nvme 192.0.2.9:4420");
    until("that is over", || a.status()["health"] == "optimal");
    assert!(a.refused("portal add nvme 127.0.0.1:1 --head c").contains("head a (left) and head b (right)"));
    // The head that is asked listens, whichever leads.
    let address = b.portal("nvme");
    let of = |daemon: &Daemon| {
        let all = daemon.json("portal ls");
        let row =
            all.as_array().and_then(|all| all.iter().find(|p| p["address"] == address.as_str()).cloned());
        row.is_some_and(|p| p["head"] == "b" && p["listening"] == true && p["served_by"].is_null())
    };
    until("head b listens", || of(&a) && of(&b));
    let told = a.json("head ls")["heads"].clone();
    assert_eq!(told[1]["serves"]["portals"], serde_json::json!([format!("nvme {address}")]), "{told}");
    assert!(b.cli("head ls").contains(&format!("Head b listens at nvme {address}.")));
    let mut c = Daemon::new();
    c.start(&[]);
    let refused = c.refused(&format!("system join {token} --link 127.0.0.1"));
    assert!(refused.contains("has both its heads") && refused.contains("system leave"), "{refused}");
    // Nor is there another token, as long as there is the second head.
    let refused = a.refused("system create");
    assert!(refused.contains("has both its heads") && refused.contains("system leave"), "{refused}");
    let refused = a.refused(&format!("system join {token} --link 127.0.0.1"));
    assert!(refused.contains("one of a system already") && !refused.contains("release"), "{refused}");
    let said = a.cli(&format!("portal add nvme {}", free_address()));
    assert_eq!(said.matches("127.0.0.1 is an address of the link").count(), 1, "{said}");
    let mut forged = token.clone();
    forged.pop();
    assert!(c.refused(&format!("system join {forged} --link 127.0.0.1")).contains("token"));
    assert!(b.refused(&format!("system join {token} --link 127.0.0.1")).contains("already"));
    assert!(a.refused("head fence a").contains("cannot fence itself"));
    assert!(c.refused("head ls").contains("alone"));
    // Garbage at the link's port harms nobody.
    let link = std::fs::read_to_string(a.path("state/link")).expect("the file of the link");
    let link: serde_json::Value = serde_json::from_str(&link).expect("JSON");
    let address = link["own"][0].as_str().expect("an address");
    let (ip, port) = address.rsplit_once(':').expect("a port");
    let behind = format!("{ip}:{}", port.parse::<u16>().expect("a port") + 1);
    for (head, place) in [(&a, address), (&b, address), (&a, &behind)] {
        let refused = head.refused(&format!("portal add nvme {place}"));
        assert!(refused.contains(&format!("the heads meet at {address}")), "{refused}");
    }
    for _ in 0..8 {
        use std::io::Write;
        if let Ok(mut s) = std::net::TcpStream::connect(address) {
            let _ = s.write_all(&[0x16, 3, 1, 0xff, 0xff, 0, 1, 2, 3]);
        }
    }
    let said = a.cli("head fence b");
    assert!(said.contains("shut off 2 of 2 drives") || said.contains("back already"), "{said}");
    // On files the head that leads kills a process that is not fast enough to end by itself.
    let mut killed = false;
    until("b is let in again, as a new process", || {
        if b.child.as_mut().expect("it runs").try_wait().expect("ours").is_some() {
            killed = true;
            b.child = Some(b.command().spawn().expect("it runs"));
        }
        heads(&a) == ["a leads", "b follows"]
    });
    // Asked at the follower, both heads tell what they said.
    let told = b.json("events");
    let told: Vec<String> =
        told.as_array().expect("a list").iter().map(|e| format!("{} {}", e["head"], e["message"])).collect();
    let own = if killed { r#""b" "this head follows"# } else { r#""b" "this head is out: the decision of"# };
    for words in [r#""a" "head b (right) is out, epoch"#, own] {
        assert!(told.iter().any(|e| e.starts_with(words)), "{words}: {told:#?}");
    }
    assert!(a.events().iter().all(|e| !e.contains("this head is out")));
}

#[test]
fn what_is_longer_than_a_message_reaches_the_other_head() {
    use std::fmt::Write as _;
    use std::io::{Read, Write as _};
    let a = Daemon::new();
    let mut hosts = String::new();
    for host in 0..330 {
        let _ = writeln!(hosts, "[host h{host}]");
        for name in 0..16 {
            let filler = "x".repeat(180);
            let _ = writeln!(hosts, "nqn = nqn.2014-08.org.example:{host}-{name}-{filler}");
            let _ = writeln!(hosts, "iqn = iqn.1998-01.org.example:{host}-{name}-{filler}");
        }
    }
    assert!(hosts.len() > 2 << 20, "{}", hosts.len());
    std::fs::create_dir(a.path("state")).expect("made");
    std::fs::write(a.path("state/hosts"), hosts).expect("written");
    let (a, b, ..) = system_of(a);
    let file = |d: &Daemon| std::fs::read(d.path("state/hosts")).expect("a file");
    assert!(file(&a).len() > 2 << 20 && file(&a) == file(&b), "{} and {}", file(&a).len(), file(&b).len());
    // And as it changes.
    b.cli("host add late --nqn nqn.2014-08.org.example:late");
    assert!(file(&a) == file(&b) && String::from_utf8_lossy(&file(&b)).contains("\nname = \"late\"\n"));
    // A request that doubles on its way: JSON in JSON.
    let body = format!("{{\"name\": \"{}\"}}", "\\\"".repeat(400 << 10));
    let mut socket = std::os::unix::net::UnixStream::connect(b.path("api.sock")).expect("it listens");
    let head = format!(
        "POST /api/v1/hosts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(&[head.as_bytes(), body.as_bytes()].concat()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert_eq!(heads(&a), ["a leads", "b follows"]);
}

/// Whether this daemon serves, and is in no system.
fn is_alone(daemon: &Daemon) -> bool {
    let told = daemon.ask(&["head", "ls"]);
    let words = String::from_utf8_lossy(&told.stderr).into_owned();
    !daemon.path("state/link").exists()
        && words.contains("alone")
        && daemon.ask(&["volume", "ls"]).status.success()
}

/// Puts a copy of a state directory in its place.
fn replace(from: &std::path::Path, to: &std::path::Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        if entry.file_type().is_ok_and(|t| t.is_file()) {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
}

#[test]
fn a_system_is_left_by_both_heads_and_one_that_remembers_it_harms_nobody() {
    let (a, mut b, drives, (portal, target), _) = system();
    let (state, old) = (b.path("state"), b.path("old"));
    replace(&state, &old);
    let load = bench(
        &portal,
        &target,
        "--rw randrw --force --verify --prepare --read-back --seconds 12 --qd 4 --patience 60",
    );
    assert!(a.refused("system leave").contains("head b is still in the system, and must leave first"));
    until("both heads have lanes", || both_have_lanes(&a));
    b.cli("system leave");
    until("b is none of it", || heads(&a) == ["a leads", "b none, not ready"]);
    until("b is alone", || is_alone(&b));
    assert_eq!(
        b.child.as_mut().expect("it runs").try_wait().expect("ours"),
        None,
        "the same process goes on"
    );
    assert!(!b.cli("volume ls").contains("tank/v") && !state.join("link").exists());
    assert_eq!(b.status()["health"], "optimal", "{:?}", b.reasons());
    assert!(!state.join("system-record").exists() && b.status()["system"] != a.status()["system"]);
    // Another one joins, by another token; and leaves.
    let token = a.json("system create")["token"].as_str().expect("a token").to_string();
    b.cli(&format!("system join {token} --link 127.0.0.1"));
    until("b follows", || heads(&a) == ["a leads", "b follows"]);
    b.cli("system leave");
    until("b is none of it", || heads(&a) == ["a leads", "b none, not ready"]);
    let created = a.json("system create");
    a.cli("system leave");
    let begun = std::time::Instant::now();
    while !is_alone(&a) {
        assert!(begun.elapsed() < Duration::from_secs(30), "a is not alone: {}", a.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(a.cli("volume ls").contains("tank/v") && !a.path("state/system-record").exists());
    let done = load.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // What b was last week: it finds nothing to lead, neither while a is alone nor beside another system.
    until("b has left, too", || is_alone(&b));
    b.signal("-TERM");
    for alone in [true, false] {
        if !alone {
            let again = a.json(&format!("system create --link {}", link_address()));
            assert_ne!(again["uuid"], created["uuid"], "a system has its name alone");
        }
        replace(&old, &state);
        b.child = Some(b.command().spawn().expect("it runs"));
        std::thread::sleep(Duration::from_secs(4));
        assert!(!heads(&b).contains(&"b leads".to_string()), "{:?}", heads(&b));
        assert_eq!(a.status()["health"], "optimal", "{alone}: {}", b.log());
        b.signal("-KILL");
    }
    let mut verified = bench(&portal, &target, "--rw randrw --force --verify --seconds 1 --qd 4");
    assert!(verified.wait().expect("it ends").success());
    let mut a = a;
    assert_eq!(a.signal("-TERM").code(), Some(0));
    assert_eq!(data(&drives[0]), data(&drives[1]), "legs differ");
}

#[test]
fn an_operator_has_a_head_lead_with_old_hosts_or_says_that_the_other_one_is_off() {
    let (mut a, mut b, drives, ..) = system();
    // Drives enough that most of the voters are there without that pool's.
    for pool in ["more", "third"] {
        let [first, second] = ["1", "2"].map(|leg| a.file(&format!("{pool}{leg}"), 96));
        a.cli(&format!("pool create {pool} mirror {first} {second}"));
    }
    b.signal("-KILL");
    until("a leads alone", || heads(&a) == ["a leads", "b out, not ready"]);
    let said = a.cli("head fence b --is-off");
    assert!(said.contains("Head b is out, and shut off 6 of 6 drives."), "{said}");
    a.cli("host add latest --iqn iqn.2026-01.test:latest");
    // What b remembers of this pool is old from now on: the other drive alone is current, and is away when b starts.
    a.cli(&format!("drive fail {}", drives[0]));
    // Another drive votes in its place by then.
    std::thread::sleep(Duration::from_secs(4));
    a.signal("-KILL");
    let away = format!("{}.away", drives[1]);
    std::fs::rename(&drives[1], &away).expect("it was there");
    b.child = Some(b.command().spawn().expect("it runs"));
    until("b waits", || heads(&b).last().is_some_and(|h| h == "b starts, not ready"));
    std::thread::sleep(Duration::from_secs(3));
    b.cli("head lead --with-old-hosts");
    until("b leads", || heads(&b) == ["a out, not ready", "b leads"]);
    until("b serves", || b.ask(&["host", "ls"]).status.success());
    let said = b.cli("head ls");
    assert!(said.contains("is out since ") && said.contains("an operator said so"), "{said}");
    assert!(!b.cli("host ls").contains("latest"));
    until("the old leg alone is not believed", || b.status()["health"] == "offline");
    std::fs::rename(&away, &drives[1]).expect("it was there");
    until("the pool comes with its current leg", || b.ask(&["pool", "show", "tank"]).status.success());
    assert!(b.cli("volume ls").contains("tank/v"));
    // The other one can start after all: what it has counts no more.
    a.start(&[]);
    until("a follows", || heads(&b) == ["a follows", "b leads"]);
    assert!(!a.cli("host ls").contains("latest"));
}

/// What a head tells Prometheus.
fn metrics(daemon: &Daemon) -> String {
    use std::io::{Read, Write as _};
    let mut socket = std::os::unix::net::UnixStream::connect(daemon.path("api.sock")).expect("it listens");
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("version=0.0.4"), "{answer}");
    answer
}

#[test]
fn metrics_of_either_head_tell_of_the_system_and_whether_somebody_would_take_over() {
    let (mut a, mut b, _, (portal, _), _) = system();
    until("both heads have lanes", || both_have_lanes(&a));
    let at_b = b.portal("iscsi");
    until("b listens", || {
        a.status()["portals"].as_array().is_some_and(|p| p.iter().all(|p| p["listening"] == true))
    });
    for (asked, head) in [(&a, "a"), (&b, "b")] {
        let told = metrics(asked);
        for sample in [
            format!("answered_by{{head=\"a\",asked=\"{head}\"}} 1"),
            "health{state=\"optimal\"} 1".into(),
            "volume_bytes{volume=\"tank/v\"} 33554432".into(),
            format!("portal_up{{head=\"a\",protocol=\"iscsi\",portal=\"{portal}\"}} 1"),
            format!("portal_up{{head=\"b\",protocol=\"iscsi\",portal=\"{at_b}\"}} 1"),
            "head_state{head=\"b\",state=\"follows\"} 1".into(),
            "head_ready{head=\"a\"} 1".into(),
            "head_ready{head=\"b\"} 1".into(),
            "link_up 1".into(),
            "head_lanes{head=\"b\"} 8".into(),
        ] {
            assert!(told.contains(&format!("\nmillrace_{sample}\n")), "{sample} at {head}: {told}");
        }
    }
    b.signal("-KILL");
    until("b is out", || heads(&a) == ["a leads", "b out, not ready"]);
    let told = metrics(&a);
    for sample in ["head_state{head=\"b\",state=\"out\"} 1", "head_ready{head=\"b\"} 0", "link_up 0"] {
        assert!(told.contains(&format!("\nmillrace_{sample}\n")), "{sample}: {told}");
    }
    // One that reaches nobody tells of itself.
    a.signal("-KILL");
    b.child = Some(b.command().spawn().expect("it runs"));
    until("b waits", || heads(&b).last().is_some_and(|h| h == "b starts, not ready"));
    let told = metrics(&b);
    for sample in
        ["answered_by{head=\"b\",asked=\"b\"} 1", "head_ready{head=\"b\"} 0", "health{state=\"offline\"} 1"]
    {
        assert!(told.contains(&format!("\nmillrace_{sample}\n")), "{sample}: {told}");
    }
}

#[test]
fn a_drive_that_the_follower_does_not_reach_is_told_by_the_head_that_leads() {
    let (a, mut b, drives, ..) = system();
    until("each head reaches both drives", || {
        let all = [a.json("head ls"), b.json("head ls")];
        all.iter().all(|s| {
            s["drives"] == 2 && s["heads"].as_array().is_some_and(|h| h.iter().all(|h| h["reaches"] == 2))
        })
    });
    for head in [&a, &b] {
        until("it was seen on the drives", || head.json("head ls")["heartbeat_on_drives_ms"].is_u64());
        let told = head.json("head ls");
        let network = &told["networks"][0];
        assert!(network["up"] == true && network["address"] == "127.0.0.1", "{told}");
        for ms in [&network["heartbeat_ms"], &told["heartbeat_on_drives_ms"]] {
            assert!(ms.as_u64().is_some_and(|ms| ms < 10_000), "{told}");
        }
    }
    b.signal("-KILL");
    let away = format!("{}.away", drives[1]);
    std::fs::rename(&drives[1], &away).expect("it is there");
    b.child = Some(b.command().spawn().expect("it runs"));
    let not_ready = ["a leads", "b follows, not ready"];
    until("b is not ready", || {
        let reason = format!("head b (right) is not ready to take over: it does not reach {}", drives[1]);
        heads(&a) == not_ready
            && heads(&b) == not_ready
            && a.status()["reasons"].to_string().contains(&reason)
    });
    assert_eq!(a.status()["health"], "degraded");
    let told = a.json("head ls");
    assert_eq!(
        (&told["heads"][0]["reaches"], &told["heads"][1]["reaches"]),
        (&2.into(), &1.into()),
        "{told}"
    );
    assert_eq!(told["unreached"][0], drives[1].as_str(), "{told}");
    std::fs::rename(&away, &drives[1]).expect("it is there");
    until("b is ready", || heads(&a) == ["a leads", "b follows"] && heads(&b) == ["a leads", "b follows"]);
    until("all is well", || a.status()["health"] == "optimal");
    let told = a.events();
    for words in ["does not reach", "reaches"] {
        let words = format!("head b (right) {words} {}", drives[1]);
        assert!(told.iter().any(|e| e.contains(&words)), "{words}: {told:#?}");
    }
}

/// CPU time that a daemon and its threads have used, in ticks of the kernel, 100 in a second.
fn ticks(daemon: &Daemon) -> u64 {
    let id = daemon.child.as_ref().expect("it runs").id();
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    // utime and stime, fields 14 and 15 of all.
    fields[11..13].iter().map(|f| f.parse::<u64>().expect("ticks")).sum()
}

/// Two heads without hosts: heartbeats by the link and on the drives are all that they do. Figures for docs/performance.md:
/// `IDLE_SECONDS=60 cargo test --release -p millrace --test all idle -- --nocapture`.
#[test]
fn two_idle_heads_use_little_cpu_time() {
    let seconds = std::env::var("IDLE_SECONDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    // What is not optimised takes longer.
    let most = if cfg!(debug_assertions) { 8.0 } else { 1.0 };
    let (a, b, ..) = system();
    let mut alone = Daemon::new();
    alone.start(&[]);
    let drives = ["x", "y"].map(|name| alone.file(name, 96));
    alone.cli(&format!("pool create tank mirror {} {}", drives[0], drives[1]));
    std::thread::sleep(Duration::from_secs(2));
    let all = [("leader", &a), ("follower", &b), ("single head", &alone)];
    let before = all.map(|(_, d)| ticks(d));
    std::thread::sleep(Duration::from_secs(seconds));
    for ((name, daemon), before) in all.into_iter().zip(before) {
        let percent = (ticks(daemon) - before) as f64 / seconds as f64;
        println!("{name}: {percent:.2} % of a core");
        assert!(percent < most, "{name}: {percent:.2} % of a core");
    }
}

/// Something else has locked these drives: they do not confirm that a head is shut off them.
fn lock(drives: &[String]) -> Vec<std::fs::File> {
    let one = |drive: &String| {
        let file = std::fs::File::open(drive).expect("a drive");
        rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockShared).expect("a lock");
        file
    };
    drives.iter().map(one).collect()
}

/// A pool as a head knows it; null while nobody leads.
fn pool(daemon: &Daemon, name: &str) -> serde_json::Value {
    let said = daemon.ask(&["pool", "ls", "--json"]).stdout;
    let pools: Vec<serde_json::Value> = serde_json::from_slice(&said).unwrap_or_default();
    pools.into_iter().find(|p| p["name"] == name).unwrap_or_default()
}

/// A system of two with further pools of a mirror each, and all is well.
fn system_with(pools: &[&str]) -> (Daemon, Daemon, [String; 2]) {
    let (a, b, drives, ..) = system();
    for name in pools {
        let [p, q] = ["p", "q"].map(|leg| a.file(&format!("{name}-{leg}"), 96));
        a.cli(&format!("pool create {name} mirror {p} {q}"));
        a.cli(&format!("volume create {name}/v --size 32M"));
    }
    until("all is well", || a.status()["health"] == "optimal" && heads(&a) == ["a leads", "b follows"]);
    (a, b, drives)
}

/// A drive that does not confirm that the head which led is shut off it keeps its own mirror, for 2.5 s, and no other one.
#[test]
fn a_takeover_behind_a_drive_that_does_not_confirm_keeps_no_other_mirror() {
    let (mut a, b, drives) = system_with(&["other"]);
    let held = lock(&drives[..1]);
    let killed = Instant::now();
    a.signal("-KILL");
    until("the other pool is served", || pool(&b, "other")["state"] == "optimal");
    let other = killed.elapsed();
    until("the mirror is served without that leg", || {
        let leg = &pool(&b, "tank")["arrays"][0]["legs"][0];
        leg["state"] == "offline" && leg["cause"]["code"] == "drive_unopened"
    });
    println!("the other pool after {other:?}, that of the drive after {:?}", killed.elapsed());
    assert!(other < Duration::from_millis(1500), "{other:?}");
    drop(held);
    a.start(&[]);
    until("the leg is back, and the other head", || {
        b.status()["health"] == "optimal" && heads(&b) == ["a follows", "b leads"]
    });
}

/// The last leg in sync cannot be put out: hosts are told that the volumes are not ready, whichever head is dead, and why.
#[test]
fn a_pool_whose_last_leg_does_not_confirm_is_not_ready_until_it_does() {
    let (mut a, b, _) = system_with(&["other", "last"]);
    // No more than one of them votes.
    let drives = ["p", "q"].map(|leg| a.path(&format!("last-{leg}")).display().to_string());
    let waits = |pool: &serde_json::Value| {
        let text = pool.to_string();
        pool["state"] == "offline" && text.contains("pool_behind_fence") && text.contains("is shut off")
    };
    // First the one that leads, then the one that follows.
    for _ in 0..2 {
        let held = lock(&drives);
        a.signal("-KILL");
        until("the pool waits", || waits(&pool(&b, "last")));
        for name in ["tank", "other"] {
            until("others are served", || pool(&b, name)["state"] == "optimal");
        }
        std::thread::sleep(Duration::from_secs(3));
        assert!(waits(&pool(&b, "last")), "as long as it takes");
        drop(held);
        until("it is served", || pool(&b, "last")["state"] != "offline");
        a.start(&[]);
        until("all is well, and each head has half of the lanes", || {
            let status = b.status();
            let half = |h: &serde_json::Value| {
                let [own, all] = ["lanes", "lanes_all"].map(|n| h["serves"][n].as_u64());
                own.is_some_and(|own| all == Some(2 * own))
            };
            let even = status["cluster"]["heads"].as_array().is_some_and(|all| all.iter().all(half));
            status["health"] == "optimal" && heads(&b) == ["a follows", "b leads"] && even
        });
    }
}
