//! The target over loopback TCP, judged by initiators that are not ours: libiscsi's tools and qemu-io.

#[path = "../src/node/tests/view.rs"]
mod view;

use base::fake::{Head, carry_out};
use base::front::{Answer, TRANSFER_MAX};
use base::view::{Secret, View};
use base::{FrontIo, Instant, Memory, Status, Want};
use iscsi::node::{Connection, ConnectionConfig, OUTBOX_BYTES};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use view::{INITIATOR, IQN};

const BLOCKS: u64 = 64 << 11; // 64 MiB
const COMMANDS_MAX: u16 = 48;

/// Volumes as bytes, shared by connections.
type Disks = Arc<Mutex<[Vec<u8>; 2]>>;

/// Serves one connection until it ends.
fn serve(mut stream: TcpStream, view: View, disks: Disks) {
    static SESSION: AtomicU16 = AtomicU16::new(1);
    let begin = std::time::Instant::now();
    let now = || Instant(begin.elapsed().as_nanos() as u64);
    let mut head = Head::new(view, OUTBOX_BYTES, COMMANDS_MAX.into(), 2 * TRANSFER_MAX);
    let config = ConnectionConfig {
        local: stream.local_addr().expect("connected"),
        peer: stream.peer_addr().expect("connected"),
        portal: view::portal(),
        seed: 5,
        commands_max: COMMANDS_MAX,
    };
    let mut connection = Connection::new(config);
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    stream.set_nodelay(true).expect("a socket");
    let mut staging = vec![0; 64 << 10];
    let mut unread: Vec<u8> = vec![];
    loop {
        loop {
            if head.outbox.pending() > 0 {
                let bytes = head.sent(head.outbox.pending() as u32);
                if stream.write_all(&bytes).is_err() {
                    return;
                }
                if head.closed.is_none() {
                    connection.on_sent(now(), &mut head);
                }
            } else if head.closed.is_some() {
                return;
            } else if head.asks.pop_front().is_some() {
                let id = SESSION.fetch_add(1, Ordering::Relaxed);
                connection.on_answer(now(), Answer::Admitted { id }, &mut head);
            } else if let Some((tag, command, data)) = head.take_submitted(0) {
                let (at, aborted) = (command.volume.index(), head.take_stopped(tag));
                let data = head.memory.bytes_mut(data);
                let disk = &mut disks.lock().expect("nobody panicked")[at];
                let status =
                    if aborted { Status::Aborted } else { carry_out(disk, [512, 4096][at], &command, data) };
                connection.on_done(now(), tag, status, &mut head);
            } else if !unread.is_empty() && connection.want() != Want::Nothing {
                let n = match connection.want() {
                    Want::Direct(slice) => {
                        let n = unread.len().min(slice.len as usize);
                        head.bytes_mut(slice.head(n as u32)).copy_from_slice(&unread[..n]);
                        connection.on_direct(now(), n as u32, &mut head);
                        n
                    }
                    _ => connection.on_bytes(now(), &unread, &mut head),
                };
                unread.drain(..n.min(unread.len()));
            } else {
                break;
            }
        }
        match stream.read(&mut staging) {
            Ok(0) => return,
            Ok(n) => unread.extend_from_slice(&staging[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if connection.next_deadline().is_some_and(|at| at <= now()) {
                    connection.on_timer(now(), &mut head);
                }
            }
            Err(_) => return,
        }
    }
}

/// Listens on a port of its own and serves everybody who comes, as long as the test runs.
fn target(change: impl Fn(&mut View)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let mut view = view::view(BLOCKS);
    view.hosts[0].iqns.push("iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test".into());
    view.hosts[0].iqns.push("iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test-2".into());
    view.hosts[0].iqns.push("iqn.2010-11.com.github:sahlberg:libiscsi:iscsi-inq".into());
    view.portals[0].address.set_port(port);
    change(&mut view);
    let disk = || vec![0; BLOCKS as usize * 512];
    let disks: Disks = Arc::new(Mutex::new([disk(), disk()]));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), view, disks) = (stream, view.clone(), disks.clone()) else { continue };
            std::thread::spawn(move || serve(stream, view, disks));
        }
    });
    port
}

/// Runs a tool for at most a minute; None, loudly and never in CI, if it is not installed.
fn tool(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).exists()));
    if !found {
        let test = format!("the iSCSI target, judged by {program}");
        assert!(std::env::var_os("CI").is_none(), "{test} must run in CI, but {program} is not installed");
        // Past the harness, which would keep it for a test that fails.
        writeln!(std::io::stdout(), "SKIPPED {test}: {program} is not installed").ok();
        return None;
    }
    let output =
        Command::new("timeout").arg("60").arg(program).args(arguments).output().expect("timeout runs");
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

fn url(port: u16, lun: u16) -> String {
    format!("iscsi://127.0.0.1:{port}/{IQN}/{lun}")
}

#[test]
fn iscsi_ls_finds_the_target_and_its_units() {
    let port = target(|_| {});
    let at = format!("iscsi://127.0.0.1:{port}");
    let Some((good, text)) = tool("iscsi-ls", &["-s", "-i", INITIATOR, &at]) else { return };
    assert!(good && text.contains(IQN), "{text}");
    assert!(text.contains("Lun:0 ") && text.contains("Lun:16684" /* 300, flat */), "{text}");
    let (_, text) = tool("iscsi-ls", &["-i", "iqn.2026-01.org.example:unknown", &at]).expect("found above");
    assert!(!text.contains(IQN), "an unknown host sees no target: {text}");
}

#[test]
fn iscsi_inq_and_readcapacity16_read_what_we_say() {
    let port = target(|_| {});
    for page in [
        "-e 0 -c 0",
        "-e 1 -c 0x00",
        "-e 1 -c 0x80",
        "-e 1 -c 0x83",
        "-e 1 -c 0xb0",
        "-e 1 -c 0xb1",
        "-e 1 -c 0xb2",
    ] {
        let at = url(port, 0);
        let arguments: Vec<&str> =
            ["-i", INITIATOR].into_iter().chain(page.split(' ')).chain([at.as_str()]).collect();
        let Some((good, text)) = tool("iscsi-inq", &arguments) else { return };
        assert!(good, "{page}: {text}");
    }
    let at = url(port, 300);
    let Some((good, text)) = tool("iscsi-readcapacity16", &["-i", INITIATOR, &at]) else { return };
    assert!(good && text.contains("4096"), "{text}");
}

#[test]
fn chap_lets_the_right_secret_in_and_no_other() {
    let port = target(|view| view.hosts[0].chap_secret = Some(Secret(b"secretsecret".to_vec())));
    for (user, secret, admitted) in
        [(INITIATOR, "secretsecret", true), (INITIATOR, "wrongwrong12", false), ("x", "secretsecret", false)]
    {
        let at = format!("iscsi://{user}%{secret}@127.0.0.1:{port}/{IQN}/0");
        let Some((good, text)) = tool("iscsi-inq", &["-i", INITIATOR, &at]) else { return };
        assert_eq!(good, admitted, "{user} {secret}: {text}");
    }
    let (good, text) = tool("iscsi-inq", &["-i", INITIATOR, &url(port, 0)]).expect("found above");
    assert!(!good, "{text}");
}

#[test]
fn chap_proves_the_target_too_and_headers_carry_digests() {
    let port = target(|view| {
        view.hosts[0].chap_secret = Some(Secret(b"secretsecret".to_vec()));
        view.hosts[0].mutual_secret = Some(Secret(b"terceSterceS".to_vec()));
    });
    for (secret, admitted) in [("terceSterceS", true), ("another.one.", false)] {
        let at = format!(
            "iscsi://{INITIATOR}%secretsecret@127.0.0.1:{port}/{IQN}/0?target_user={IQN}&target_password={secret}&header_digest=crc32c"
        );
        let Some((good, text)) = tool("iscsi-inq", &["-i", INITIATOR, &at]) else { return };
        assert_eq!(good, admitted, "{secret}: {text}");
    }
}

#[test]
fn qemu_io_writes_and_reads_back_with_verification() {
    let port = target(|_| {});
    for (lun, digest) in [(0, "crc32c"), (300, "none")] {
        let image = format!(
            "driver=raw,file.driver=iscsi,file.transport=tcp,file.portal=127.0.0.1:{port},file.target={IQN},file.lun={lun},file.initiator-name={INITIATOR},file.header-digest={digest}"
        );
        let commands = [
            "write -P 0xa5 0 4M",
            "write -P 0x3c 4k 1M",
            "read -P 0xa5 0 4k",
            "read -P 0x3c 4k 1M",
            "read -P 0xa5 2M 2M",
            "write -z 1M 1M",
            "read -P 0 1M 1M",
            "discard 2M 1M",
            "writev -P 0x11 63M 512k 512k",
            "read -P 0x11 63M 1M",
            "flush",
        ];
        let mut arguments = vec!["--image-opts", image.as_str()];
        for command in &commands {
            arguments.extend(["-c", command]);
        }
        let Some((good, text)) = tool("qemu-io", &arguments) else { return };
        assert!(good && !text.contains("failed") && !text.contains("rror"), "{text}");
    }
}

/// Runs groups of iscsi-test-cu on both units; every test must pass or be skipped by the tool itself,
/// which it does where the target does not offer a command.
fn conformance(groups: &[&str]) {
    for lun in [0, 300] {
        let port = target(|_| {});
        let at = url(port, lun);
        for group in groups {
            let mut arguments = vec!["-d", "-f", "-n", "-t", group, &at];
            if group.contains("MultipathIO") {
                arguments.push(&at);
            }
            let Some((good, text)) = tool("iscsi-test-cu", &arguments) else { return };
            // Total, ran, passed, failed. The tool writes [FAILED] also where a test wants a failure.
            let counts: Vec<u32> = text
                .lines()
                .find_map(|line| line.trim().strip_prefix("tests "))
                .map(|line| line.split_whitespace().filter_map(|n| n.parse().ok()).collect())
                .unwrap_or_default();
            let [_, ran, passed, failed, ..] = counts[..] else { panic!("{group}: no counts in\n{text}") };
            assert!(good && ran > 0 && passed == ran && failed == 0, "{group}:\n{text}");
        }
    }
}

#[test]
fn iscsi_test_cu_reads() {
    conformance(&["ALL.Read6", "ALL.Read10", "ALL.Read12", "ALL.Read16", "ALL.Prefetch10", "ALL.Prefetch16"]);
}

#[test]
fn iscsi_test_cu_writes() {
    conformance(&["ALL.Write10", "ALL.Write12", "ALL.Write16"]);
    conformance(&["ALL.WriteVerify10", "ALL.WriteVerify12", "ALL.WriteVerify16"]);
}

#[test]
fn iscsi_test_cu_compares_zeroes_and_unmaps() {
    conformance(&["ALL.Verify10", "ALL.Verify12", "ALL.Verify16", "ALL.Unmap"]);
    conformance(&["ALL.WriteSame10", "ALL.WriteSame16"]);
    // The third of the group writes 257 blocks at once, which of 4096 bytes are more than our largest transfer.
    conformance(&["ALL.GetLBAStatus.Simple", "ALL.GetLBAStatus.BeyondEol"]);
}

#[test]
fn iscsi_test_cu_asks_what_we_are() {
    conformance(&["ALL.Inquiry", "ALL.Mandatory", "ALL.ModeSense6", "ALL.NoMedia", "ALL.TestUnitReady"]);
    conformance(&["ALL.ReadCapacity10", "ALL.ReadCapacity16", "ALL.ReportSupportedOpcodes", "ALL.ReadOnly"]);
    conformance(&["ALL.StartStopUnit", "ALL.PreventAllow", "ALL.Reserve6", "ALL.PrinReadKeys"]);
}

#[test]
fn iscsi_test_cu_breaks_iscsi_itself() {
    conformance(&["ALL.iSCSIcmdsn", "ALL.iSCSIdatasn", "ALL.iSCSIResiduals", "ALL.iSCSITMF"]);
    // MultipathIO.Reset wants a reset to be noticed by other sessions, which a connection cannot see.
    conformance(&["ALL.MultipathIO.Simple"]);
}
