//! The API over TCP with TLS: a token's rights end where they should, and orders are on record.

use crate::daemon::{Daemon, curl, said};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

#[test]
fn a_token_lets_in_by_tls_as_far_as_it_goes_and_no_longer() {
    let mut daemon = Daemon::new();
    let port = daemon.with_tls();
    daemon.start(&[]);
    let secret = |words: &[&str]| {
        let output = daemon.ask(&[&["--json", "token", "add"], words].concat());
        assert!(output.status.success(), "{}", said(&output).1);
        let added: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        added["secret"].as_str().expect("a secret").to_string()
    };
    let (read, full) = (secret(&["monitor", "--read", "--expires", "1h"]), secret(&["ansible"]));
    let ca = daemon.path("state/api-certificate").display().to_string();
    let url = format!("https://127.0.0.1:{port}");
    let host = format!("{url}/api/v1/hosts");
    let ask = |secret: &str, words: &[&str]| {
        let bearer = format!("Authorization: Bearer {secret}");
        let (status, _, body) = curl(&[&["--cacert", &ca, "-H", &bearer], words].concat());
        (status, body)
    };
    let body =
        r#"{"name":"esx1","nqns":["nqn.2014-08.org.nvmexpress:uuid:0b8f5b1e-3f0a-4c1d-9a57-5d9d5f1f4a10"]}"#;
    assert_eq!(ask(&read, &[&host]).0, "200");
    let (status, text) = ask(&read, &["-d", body, &host]);
    assert!(status == "403" && text.contains("token_read_only"), "{status} {text}");
    let (status, text) = ask(&full, &["-d", body, &host]);
    assert!(status.starts_with('2'), "{status} {text}");
    // What is no TLS harms nobody.
    let mut garbage = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    garbage.set_read_timeout(Some(Duration::from_secs(15))).expect("set");
    garbage.write_all(b"GET /api/v1/status HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    let _ = garbage.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1 2"));
    // The command line, by the fingerprint.
    let tokens = daemon.ask(&["--json", "token", "ls"]);
    let tokens: serde_json::Value = serde_json::from_slice(&tokens.stdout).expect("JSON");
    let fingerprint = tokens["fingerprint"].as_str().expect("a fingerprint");
    let file = daemon.path("secret");
    fs::write(&file, &full).expect("written");
    let elsewhere = |fingerprint: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.env("MILLRACE_TOKEN_FILE", &file).args([
            "--url",
            &url,
            "--fingerprint",
            fingerprint,
            "host",
            "ls",
        ]);
        said(&command.output().expect("it runs"))
    };
    assert_eq!(elsewhere(fingerprint).0, 0);
    let (code, words) = elsewhere(&"00".repeat(32));
    assert!(code == 4 && words.contains(fingerprint), "{words}");
    // Removed, it is refused at once.
    assert!(daemon.ask(&["token", "rm", "ansible"]).status.success());
    let (status, text) = ask(&full, &[&host]);
    assert!(status == "401" && text.contains("token_wrong"), "{status} {text}");
    // Who did what is on record, and no secret is.
    let events = String::from_utf8(daemon.ask(&["events"]).stdout).expect("text");
    let plain = events.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains("token ansible from 127.0.0.1: POST /api/v1/hosts: done"), "{events}");
    assert!(plain.contains("DELETE /api/v1/tokens/ansible: done"), "{events}");
    let log = fs::read_to_string(daemon.path("log")).expect("there");
    for text in [&events, &log, &fs::read_to_string(daemon.path("state/tokens")).expect("there")] {
        assert!(!text.contains(&full) && !text.contains(&read), "{text}");
    }
}
