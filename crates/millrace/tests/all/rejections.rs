//! A rejected connection leaves a line and an event, however often it comes, and never a secret.

use crate::daemon::{Daemon, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    stream
}

/// One iSCSI login request (RFC 7143 11.12) in this stage, that wants to go on to the full feature phase.
fn login(stream: &mut TcpStream, stage: u8, keys: &[(&str, &str)]) -> Vec<u8> {
    let mut text: Vec<u8> = keys.iter().flat_map(|(k, v)| format!("{k}={v}\0").into_bytes()).collect();
    let length = (text.len() as u32).to_be_bytes();
    let mut pdu = vec![0u8; 48];
    (pdu[0], pdu[1]) = (0x43, 0x83 | stage << 2);
    pdu[5..8].copy_from_slice(&length[1..]);
    pdu[8..14].copy_from_slice(&[0x80, 0, 0, 1, 0, 0]);
    text.resize(text.len().next_multiple_of(4), 0);
    pdu.extend(text);
    stream.write_all(&pdu).expect("sent");
    let mut answer = vec![0; 48];
    if stream.read_exact(&mut answer).is_err() {
        return vec![];
    }
    let length = u32::from_be_bytes([0, answer[5], answer[6], answer[7]]) as usize;
    let mut text = vec![0; length.next_multiple_of(4)];
    stream.read_exact(&mut text).expect("the text");
    answer.extend(text);
    answer
}

fn nvme_connect(address: &str, subsystem: &str, host: &str) {
    let mut stream = connect(address);
    let mut icreq = vec![0u8; 128];
    (icreq[2], icreq[4]) = (128, 128);
    stream.write_all(&icreq).expect("sent");
    stream.read_exact(&mut [0; 128]).expect("an ICResp");
    // A capsule of 72 bytes with 1024 bytes of data: Fabrics Connect to the admin queue.
    let mut capsule = vec![0u8; 72 + 1024];
    capsule[..8].copy_from_slice(&[4, 0, 72, 72, 0x48, 4, 0, 0]);
    let sqe = &mut capsule[8..72];
    (sqe[0], sqe[1], sqe[4]) = (0x7f, 0x40, 1);
    sqe[32..36].copy_from_slice(&1024u32.to_le_bytes());
    sqe[39] = 0x01;
    sqe[44..46].copy_from_slice(&31u16.to_le_bytes());
    let data = &mut capsule[72..];
    data[..16].fill(7); // a host identifier: without one nobody is asked for names
    data[16..18].copy_from_slice(&[0xff, 0xff]);
    data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
    data[512..512 + host.len()].copy_from_slice(host.as_bytes());
    stream.write_all(&capsule).expect("sent");
    stream.read_exact(&mut [0; 24]).expect("a response");
}

#[test]
fn everybody_who_is_refused_is_named_with_the_reason_and_a_loop_is_counted() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    std::fs::write(daemon.path("secret"), "the secret of esx1").expect("written");
    let secret = daemon.path("secret").display().to_string();
    daemon.cli("host add esx1 --iqn iqn.1998-01.com.vmware:esx1");
    daemon.cli(&format!("host set esx1 --chap-secret-file {secret}"));
    daemon.cli("host add bare --iqn iqn.1998-01.com.vmware:bare");
    let (iscsi, nvme) = (daemon.portal("iscsi"), daemon.portal("nvme"));
    let status = daemon.status();
    let target = status["system"]["iqn"].as_str().expect("a name").to_string();
    let subsystem = status["system"]["nqn"].as_str().expect("a name").to_string();
    let names = |me| [("InitiatorName", me), ("TargetName", target.as_str())];

    login(&mut connect(&iscsi), 1, &names("iqn.2026-01.test:stranger"));
    // A known host that proves a wrong secret.
    let mut stream = connect(&iscsi);
    let me = "iqn.1998-01.com.vmware:esx1";
    let mut keys = names(me).to_vec();
    keys.push(("AuthMethod", "CHAP"));
    login(&mut stream, 0, &keys);
    login(&mut stream, 0, &[("CHAP_A", "5")]);
    let proof = format!("0x{}", "5a".repeat(16));
    login(&mut stream, 0, &[("CHAP_N", me), ("CHAP_R", &proof)]);
    // A host that asks for a digest that nobody knows, and one that finds nothing.
    let mut keys = names("iqn.1998-01.com.vmware:bare").to_vec();
    keys.push(("HeaderDigest", "MD5"));
    login(&mut connect(&iscsi), 1, &keys);
    nvme_connect(&nvme, &subsystem, "nqn.2026-01.test:stranger");
    nvme_connect(&nvme, "nqn.2026-01.test:elsewhere", "nqn.2026-01.test:lost");
    connect(&nvme).write_all(&[0x77; 4096]).expect("sent");
    // Names that no host has, and that get an empty list.
    nvme_connect(&nvme, "nqn.2014-08.org.nvmexpress.discovery", "nqn.2026-01.test:seeker");
    login(
        &mut connect(&iscsi),
        1,
        &[("InitiatorName", "iqn.2026-01.test:seeker"), ("SessionType", "Discovery")],
    );

    let expected = [
        "iqn.2026-01.test:stranger (127.0.0.1:",
        "was rejected: an initiator that is not let in",
        "esx1 (127.0.0.1:",
        "was rejected: a wrong CHAP name or secret",
        "bare (127.0.0.1:",
        "was rejected: it asks for a digest other than CRC32C or None",
        "was let in and sees nothing: no volume is exported to it",
        "nqn.2026-01.test:stranger (127.0.0.1:",
        "was rejected: no host has this NQN",
        "was rejected: it asked for another subsystem",
        "was cut off: ",
        "nqn.2026-01.test:seeker (127.0.0.1:",
        "iqn.2026-01.test:seeker (127.0.0.1:",
        "asked for discovery and finds nothing: no host has this name",
    ];
    until("all are told", || {
        let events = daemon.events().join("\n");
        expected.iter().all(|words| events.contains(words))
    });
    until("all are in the log", || {
        let log = daemon.log();
        expected.iter().all(|words| log.contains(words))
    });
    let log = daemon.log();
    assert!(log.contains("WARN") && log.contains(&format!("portal iscsi {iscsi}: ")), "{log}");

    // A login loop: one line, whatever its rate.
    let lines = || (daemon.events().len(), daemon.log().lines().count());
    let before = lines();
    let begin = Instant::now();
    let mut logins = 0;
    while begin.elapsed() < Duration::from_secs(2) {
        login(&mut connect(&iscsi), 1, &names("iqn.2026-01.test:loop"));
        logins += 1;
    }
    std::thread::sleep(Duration::from_millis(200));
    let after = lines();
    assert!(logins > 100, "only {logins} logins in 2 s");
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1), "for {logins} logins:\n{}", daemon.log());
    let everything = daemon.log() + &daemon.events().join("\n") + &daemon.cli("status");
    assert!(!everything.contains("the secret of") && !everything.contains("5a5a5a"), "{everything}");
}

#[test]
fn a_portal_that_cannot_be_opened_is_a_line_and_an_event_and_so_is_its_return() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let address = daemon.portal("iscsi");
    daemon.signal("-TERM");
    let holder = std::net::TcpListener::bind(&address).expect("free now");
    daemon.start(&[]);
    let told = |words: &str| {
        let line = format!("portal iscsi {address}: {words}");
        daemon.events().iter().any(|e| e.starts_with(&line)) && daemon.log().contains(&line)
    };
    until("the portal is told", || told("it cannot be opened: another process listens there"));
    assert!(daemon.log().contains("ERROR"), "{}", daemon.log());
    drop(holder);
    until("the portal is open again", || told("it is open now"));
    let errors = daemon.events().iter().filter(|e| e.contains("cannot be opened")).count();
    assert_eq!(errors, 1, "tried again without a word: {:?}", daemon.events());
}
