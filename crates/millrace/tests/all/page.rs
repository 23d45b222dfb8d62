//! The page and what it asks, over TCP with TLS and at the socket: who is let in, and who is not.

use crate::daemon::{Daemon, curl};
use std::fs;

const HOST: &str =
    r#"{"name":"esx1","nqns":["nqn.2014-08.org.nvmexpress:uuid:0b8f5b1e-3f0a-4c1d-9a57-5d9d5f1f4a10"]}"#;

#[test]
fn a_page_is_let_in_by_a_token_and_forged_requests_are_not() {
    let mut daemon = Daemon::new();
    let port = daemon.with_tls();
    daemon.start(&[]);
    let secret = |words: &str| daemon.json(words)["secret"].as_str().expect("a secret").to_string();
    let (full, read) = (secret("token add ann"), secret("token add eve --read"));
    let ca = daemon.path("state/api-certificate").display().to_string();
    let url = format!("https://127.0.0.1:{port}");
    let ask = |words: &[&str]| curl(&[&["--cacert", &ca], words].concat());
    let at = |path: &str| format!("{url}{path}");

    // The page is for everybody, and what it may do is little.
    let (status, header, body) = ask(&[&at("/")]);
    assert!(status == "200" && body.contains("<title>"), "{header}");
    for line in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cache-control: no-cache",
    ] {
        assert!(header.contains(line), "{line}: {header}");
    }
    let script = at("/assets/app.js");
    let (status, header, _) = ask(&["--compressed", &script]);
    let tag = header.lines().find_map(|l| l.strip_prefix("etag: ")).expect("an etag").to_string();
    assert!(status == "200" && header.contains("content-type: text/javascript"), "{header}");
    let known = format!("If-None-Match: {tag}");
    assert_eq!(ask(&["--compressed", "-H", &known, &script]).0, "304");

    // What it asks needs a token, which is shown once.
    let (status, _, body) = ask(&[&at("/api/v1/session")]);
    assert!(status == "401" && body.contains("token_wrong"), "{status} {body}");
    let own = format!("Origin: {url}");
    let session = at("/api/v1/session");
    let jar = |name: &str| daemon.path(name).display().to_string();
    let log_in = |secret: &str, jar: &str| {
        let body = format!("{{\"token\":\"{secret}\"}}");
        ask(&["-c", jar, "-H", &own, "-d", &body, &session])
    };
    let (ann, eve) = (jar("ann"), jar("eve"));
    assert_eq!(log_in("guess", &ann).0, "401");
    let (status, header, body) = log_in(&full, &ann);
    assert!(status == "201" && body.contains(r#""name":"ann""#), "{status} {body}");
    for word in ["httponly", "samesite=strict", "secure", "path=/"] {
        assert!(header.contains(word), "{header}");
    }
    assert_eq!(log_in(&read, &eve).0, "201");
    let (status, header, _) = ask(&["-b", &ann, &at("/api/v1/status")]);
    assert!(status == "200" && header.contains("cache-control: no-store"), "{header}");

    // Orders come from the head's own page, under its own name, and from who has the right.
    let hosts = at("/api/v1/hosts");
    let order = |jar: &str, origin: &str| ask(&["-b", jar, "-H", origin, "-d", HOST, &hosts]);
    for forged in ["Origin: https://evil.example", "Origin: null", "X-None: x", &own.replace("https", "http")]
    {
        let (status, _, body) = order(&ann, forged);
        assert!(status == "403" && body.contains("origin_foreign"), "{forged}: {status} {body}");
    }
    let (status, _, body) = order(&eve, &own);
    assert!(status == "403" && body.contains("token_read_only"), "{status} {body}");
    assert_eq!(order(&ann, &own).0, "201");
    let rebound = "Host: evil.example:8420";
    for path in ["/", "/api/v1/status"] {
        let (status, _, body) = ask(&["-b", &ann, "-H", rebound, &at(path)]);
        assert!(status == "403" && body.contains("head_name_unknown"), "{path}: {status} {body}");
    }

    // The machine, as the head sees it.
    let (status, header, body) = ask(&["-b", &eve, &at("/api/v1/topology.svg")]);
    assert!(status == "200" && header.contains("content-type: image/svg+xml"), "{status} {header}");
    assert!(body.starts_with("<svg") && body.trim_end().ends_with("</svg>"), "{body}");
    let json = |path: &str| -> serde_json::Value {
        let (status, _, body) = ask(&["-b", &eve, &at(path)]);
        assert_eq!(status, "200", "{path}: {body}");
        serde_json::from_str(&body).expect("JSON")
    };
    let explained = json("/api/v1/explain");
    assert!(explained["load"]["message"].is_string() && explained["findings"].is_array(), "{explained}");
    let pid = daemon.child.as_ref().expect("it runs").id();
    let found = json("/api/v1/topology");
    assert_eq!(found["own"]["pid"], pid);
    let printed = daemon.json("topology --seconds 0");
    let keys = |v: &serde_json::Value| v.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&found), keys(&printed));
    assert_eq!(found["processor"], printed["processor"]);
    let lights = at("/api/v1/drives/ram:1G/locate");
    let (status, _, body) = ask(&["-b", &ann, "-H", &own, "-d", r#"{"on":true}"#, &lights]);
    assert!(status == "409" && body.contains("drive_without_bay"), "{status} {body}");

    // A session ends by leaving, and with its token.
    assert_eq!(ask(&["-b", &eve, "-X", "DELETE", "-H", &own, &session]).0, "204");
    daemon.cli("token rm ann");
    for jar in [&ann, &eve] {
        let (status, _, body) = ask(&["-b", jar, &at("/api/v1/status")]);
        assert!(status == "401" && body.contains("session_ended"), "{status} {body}");
    }

    // At the socket nobody shows a token, and the walls are the same.
    let socket = daemon.path("api.sock").display().to_string();
    let local = |words: &[&str]| curl(&[&["--unix-socket", &socket], words].concat());
    let (status, header, body) = local(&["http://localhost:8420/"]);
    assert!(status == "200" && body.contains("<title>"), "{status} {header}");
    let (status, _, body) = local(&["http://millrace/api/v1/session"]);
    assert!(status == "200" && body.contains(r#""rights":"full""#), "{status} {body}");
    let (status, _, body) = local(&["http://evil.example:8420/api/v1/status"]);
    assert!(status == "403" && body.contains("head_name_unknown"), "{status} {body}");
    let remove = ["-X", "DELETE", "http://localhost:8420/api/v1/hosts/esx1"];
    let (status, _, body) = local(&[&["-H", "Origin: https://evil.example"], &remove[..]].concat());
    assert!(status == "403" && body.contains("origin_foreign"), "{status} {body}");
    assert_eq!(local(&[&["-H", "Origin: http://localhost:8420"], &remove[..]].concat()).0, "204");

    // Who logged in is on record, and no secret is.
    let events = daemon.events().join("\n");
    assert!(events.contains("token ann from 127.0.0.1: POST /api/v1/session: done"), "{events}");
    let cookie = fs::read_to_string(&ann).expect("a jar");
    let cookie = cookie.lines().last().and_then(|l| l.split('\t').next_back()).expect("a cookie");
    for text in [&events, &daemon.log()] {
        assert!(!text.contains(&full) && !text.contains(cookie), "{text}");
    }
}
