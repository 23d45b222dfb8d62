//! Any peer that reaches a port can send any bytes. Other hosts are served meanwhile, at bounded memory.

use judge::{Head, until};
use lab::skipped;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

const PEER: &str = env!("CARGO_BIN_EXE_peer");
const ME: &str = "iqn.2026-01.org.millrace.judge:good";
const PORTS: [&str; 2] = ["127.0.0.1:4420", "127.0.0.1:3260"];

/// A head whose volume `tank/v` is given to a good host.
fn given(name: &str) -> (Head, u64) {
    let head = Head::with_tank(name);
    let lun = head.give("v", "32M", 512, "good", &format!("--iqn {ME}"));
    (head, lun)
}

/// A good host is still served, at once.
fn serves(head: &Head, lun: u64) {
    let image = format!(
        "json:{{\"driver\":\"raw\",\"file\":{{\"driver\":\"iscsi\",\"transport\":\"tcp\",\"portal\":\"127.0.0.1:3260\",\
         \"target\":\"{}\",\"lun\":{lun},\"initiator-name\":\"{ME}\"}}}}",
        head.iqn()
    );
    head.run(&format!("qemu-io -t none -c 'write -P 9 0 1M' -c flush -c 'read -P 9 0 1M' '{image}'"), 30);
}

fn peer(head: &Head, words: &str) -> String {
    head.run(&format!("{PEER} {words}"), 300).text().to_owned()
}

#[test]
fn garbage_ends_in_an_answer_or_a_closed_connection() {
    if skipped("garbage") {
        return;
    }
    let (head, lun) = given("garbage");
    head.wait_for_memory();
    let before = head.memory_mib();
    for port in PORTS {
        let said = peer(&head, &format!("garbage {port} 500"));
        let closed: u64 = said.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a count");
        assert!(closed >= 495, "{port}: {said}: some hang on");
    }
    serves(&head, lun);
    let after = head.memory_mib();
    assert!(after < before + 64, "memory grew from {before} to {after} MiB");
    assert!(head.json("status")["shards"].as_array().is_some_and(|s| !s.is_empty()));
}

#[test]
fn malformed_pdus_are_answered_in_their_protocols_words() {
    if skipped("malformed PDUs") {
        return;
    }
    let (head, lun) = given("malformed");
    let nvme = |hex: &str| peer(&head, &format!("send {} {hex}", PORTS[0]));
    let zeroes = |bytes: usize| "00".repeat(bytes);
    // NVMe/TCP 3.6.2.2: an ICReq of 128 bytes; the answer is an ICResp, and the line stays open.
    let icreq = format!("0000800080000000{}", zeroes(120));
    assert!(nvme(&icreq).starts_with("open 01"), "{}", nvme(&icreq));
    // A PDU type that is none, a header of the wrong length, an impossible length, a version of 9, a
    // command before the handshake: a termination request (type 3) or a closed connection.
    let bad = [
        format!("7700800080000000{}", zeroes(120)),
        format!("0000100080000000{}", zeroes(120)),
        format!("00008000ffffff7f{}", zeroes(120)),
        format!("00008000800000000900{}", zeroes(118)),
        format!("0400480048000000{}", zeroes(64)),
        format!("{icreq}0400480000000080{}", zeroes(64)),
        format!("{icreq}{icreq}"),
    ];
    for hex in bad {
        let answer = nvme(&hex);
        let answer = answer.strip_prefix(if hex.starts_with(&icreq) { "01" } else { "" }).unwrap_or(&answer);
        assert!(!answer.starts_with("open"), "still open after {hex}: {answer}");
    }
    let iscsi = |hex: &str| peer(&head, &format!("send {} {hex}", PORTS[1]));
    // A command before login, an opcode that is none, a data segment of 16 MiB, stages that are none.
    let bad = [
        format!("01800000{}", zeroes(44)),
        format!("3f800000{}", zeroes(44)),
        format!("4387000000ffffff{}", zeroes(40)),
        format!("438b0000{}", zeroes(44)),
        format!("4387000000000004{}41414141", zeroes(40)),
    ];
    for hex in bad {
        assert!(!iscsi(&hex).starts_with("open"), "still open after {hex}");
    }
    serves(&head, lun);
}

/// Thousands of connections that one peer keeps, until this is dropped.
struct Peers(Child);

impl Peers {
    /// Starts a peer with these words, which ask for 5000; when it says how many there are, most of them must be.
    fn come(head: &Head, words: &str) -> Self {
        let mut command = head.net.command("bash");
        command.args(["-c", &format!("ulimit -n 12000 && exec {PEER} {words}")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the peers");
        let mut said = BufReader::new(child.stdout.take().expect("its output"));
        let peers = Self(child);
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        let count: u64 = line.trim().rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a count");
        assert!(count > 4000, "only {count} of 5000 are there: {words:.60}");
        peers
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn ten_thousand_silent_connections_do_not_stop_a_good_host() {
    if skipped("10,000 connections") {
        return;
    }
    let (head, lun) = given("peers");
    head.wait_for_memory();
    let before = head.memory_mib();
    let peers = PORTS.map(|port| Peers::come(&head, &format!("hold {port} 5000")));
    serves(&head, lun);
    let during = head.memory_mib();
    assert!(during < before + 256, "memory grew from {before} to {during} MiB");
    assert!(head.json("status")["volumes"][0]["name"] == "tank/v");
    drop(peers);
    serves(&head, lun);
    until("the connections are gone", 60, || {
        head.json("status")["connections"].as_array().is_some_and(|all| all.len() < 50)
    });
}

const GOOD_NQN: &str = "nqn.2026-01.org.millrace.judge:good";
const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// ICReq, and a Connect of an admin queue with its data, keep-alive off.
fn nvme_words(subsystem: &str, host: &str) -> [String; 2] {
    let mut connect = vec![0u8; 72 + 1024];
    connect[0] = 4;
    connect[2] = 72;
    connect[3] = 72;
    connect[4..8].copy_from_slice(&(72u32 + 1024).to_le_bytes());
    let (sqe, data) = connect[8..].split_at_mut(64);
    // Fabrics, SGLs, command 1, Connect; 1024 bytes in the capsule; 32 entries.
    sqe[0] = 0x7f;
    sqe[1] = 0x40;
    sqe[2] = 1;
    sqe[4] = 1;
    sqe[33] = 4;
    sqe[39] = 1;
    sqe[44] = 31;
    data[0] = 1;
    data[16] = 0xff;
    data[17] = 0xff;
    data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
    data[512..512 + host.len()].copy_from_slice(host.as_bytes());
    [format!("0000800080000000{}", "00".repeat(120)), hex(&connect)]
}

/// A discovery login in one request.
fn iscsi_word(initiator: &str) -> String {
    let text = format!("InitiatorName={initiator}\0SessionType=Discovery\0");
    let mut login = vec![0u8; 48];
    // Immediate Login; from the operational stage to full feature.
    login[0] = 0x43;
    login[1] = 0x87;
    login[7] = text.len() as u8;
    login[8] = 0x40;
    login.extend_from_slice(text.as_bytes());
    login.resize(login.len().next_multiple_of(4), 0);
    hex(&login)
}

/// While these 10,000 are there, who is known by iSCSI or NVMe is let in and served, and memory does not grow with them.
fn a_good_host_gets_in_beside(name: &str, peers: impl Fn(&Head) -> [[String; 2]; 2]) {
    let head = Head::with_tank(name);
    let lun = head.give("v", "32M", 512, "good", &format!("--iqn {ME} --nqn {GOOD_NQN}"));
    head.wait_for_memory();
    let before = head.memory_mib();
    let words = peers(&head);
    let peers: Vec<Peers> = PORTS
        .iter()
        .zip(&words)
        .map(|(port, words)| Peers::come(&head, &format!("visit {port} 5000 {}", words.join(" ").trim_end())))
        .collect();
    let connect = nvme_words(&head.nqn(), GOOD_NQN).concat();
    for _ in 0..2 {
        serves(&head, lun);
        // ICResp, and the response of Connect: 24 bytes, whose last two are the status.
        let said = peer(&head, &format!("send {} {connect}", PORTS[0]));
        let (header, status) = (said.len().saturating_sub(48), said.len().saturating_sub(4));
        assert!(said.starts_with("open 01"), "{said}");
        assert_eq!((&said[header..header + 2], &said[status..]), ("05", "0000"), "{said}");
    }
    let during = head.memory_mib();
    assert!(during < before + 256, "memory grew from {before} to {during} MiB");
    drop(peers);
    serves(&head, lun);
}

/// 256 MiB of memory, as every head of these tests has, were full of outputs after 3000 of them, and 8191
/// took every controller id.
#[test]
fn ten_thousand_discovery_sessions_of_unknown_hosts_keep_no_known_host_out() {
    if skipped("10,000 discovery sessions") {
        return;
    }
    a_good_host_gets_in_beside("discovery", |_| {
        let iscsi = iscsi_word("iqn.2026-01.org.millrace.judge:nobody");
        [nvme_words(DISCOVERY, "nqn.2026-01.org.millrace.judge:nobody"), [iscsi, String::new()]]
    });
}

/// Anybody can say the name of a host that is known, before he must prove it.
#[test]
fn ten_thousand_connections_of_one_known_name_keep_no_other_host_out() {
    if skipped("10,000 connections of a known name") {
        return;
    }
    a_good_host_gets_in_beside("known-name", |head| {
        let (nqn, iqn) = ("nqn.2026-01.org.millrace.judge:mad", "iqn.2026-01.org.millrace.judge:mad");
        head.cli(&format!("host add mad --nqn {nqn} --iqn {iqn}"));
        [nvme_words(&head.nqn(), nqn), [iscsi_word(iqn), String::new()]]
    });
}

#[test]
fn half_open_slow_and_hasty_peers_are_shown_the_door() {
    if skipped("slow senders and login loops") {
        return;
    }
    let (head, lun) = given("doors");
    for port in PORTS {
        assert_eq!(peer(&head, &format!("login {port} 2000")), "connected 2000");
    }
    serves(&head, lun);
    // Half a header, byte by byte: nobody may hold a place so for ever.
    let mut slow: Vec<_> = PORTS
        .iter()
        .map(|port| {
            let header = if port.ends_with("4420") { "00008000" } else { "43870000" };
            let mut command = head.net.command(PEER);
            command.args(["slow", port, &format!("{header}{}", "00".repeat(200)), "500"]);
            command.stdout(Stdio::piped()).spawn().expect("a slow peer")
        })
        .collect();
    std::thread::sleep(Duration::from_secs(2));
    serves(&head, lun);
    until("slow peers are closed", 90, || {
        slow.iter_mut().all(|peer| peer.try_wait().ok().flatten().is_some())
    });
    until("no connection is left", 60, || {
        head.json("status")["connections"].as_array().is_some_and(|all| all.len() < 5)
    });
    serves(&head, lun);
}

#[test]
fn idle_is_idle() {
    if skipped("an idle head") {
        return;
    }
    let (head, lun) = given("idle");
    serves(&head, lun);
    until("the first resync ends", 120, || head.health() == "optimal");
    let mut command = head.net.command(PEER);
    let mut held = command
        .args(["hold", PORTS[0], "50"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("peers");
    std::thread::sleep(Duration::from_secs(2));
    // 1 % of a core are 10 ticks of 10 ms in 10 s. What wakes on a machine that others keep busy finds its caches cold, and takes longer: who is
    // idle is so in one of three times.
    let used = |_| {
        let before = head.ticks();
        std::thread::sleep(Duration::from_secs(10));
        head.ticks() - before
    };
    let mut times = (0..3).map(used);
    let is_idle = times.any(|used| {
        println!("{used} ticks in 10 s without I/O");
        used < 10
    });
    held.kill().ok();
    held.wait().ok();
    assert!(is_idle);
}
