//! Who is let in over TCP, and what an order leaves in the events.

use super::*;

/// A served API over TCP with the token `0123456789abcdef` and the name `x`; the address, its tokens, and the events that it told.
fn serve_tcp() -> (std::net::SocketAddr, Arc<Access>, Arc<Mutex<Vec<finding::SystemEvent>>>, tempfile::TempDir)
{
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (door, mut calls) = Door::new();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let access = Arc::new(Access {
        tokens: crate::access::Tokens::new(folder.path(), Some("0123456789abcdef")),
        sessions: Default::default(),
        names: vec!["x".into()],
        tcp: Some(address),
        certificate: None,
        backoff: Mutex::default(),
    });
    let events: Arc<Mutex<Vec<finding::SystemEvent>>> = Arc::default();
    let (told, served) = (Arc::clone(&events), Arc::clone(&access));
    std::thread::spawn(move || {
        runtime.block_on(async move {
            tokio::spawn(async move {
                while let Some((order, answer)) = calls.recv().await {
                    if let Order::Happened { event } = &order {
                        told.lock().expect("no panic").push((**event).clone());
                    }
                    let _ = answer.send(obedient(&order));
                }
            });
            let process = Process { access: Some(Arc::clone(&served)), ..Process::default() };
            let router = router(Api::new(door, Arc::new(process)));
            crate::http::serve(listener, router, limits(), Remote(served)).await;
        });
    });
    (address, access, events, folder)
}

/// The status, the header and the body of an answer over TCP.
fn whole(address: std::net::SocketAddr, line: &str, headers: &str, body: &str) -> (u16, String, String) {
    let mut stream = std::net::TcpStream::connect(address).expect("connected");
    let length = body.len();
    let request =
        format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let status = answer.split(' ').nth(1).expect("a status line").parse().expect("a number");
    let (header, body) = answer.split_once("\r\n\r\n").expect("a body");
    (status, header.into(), body.into())
}

/// The status and the body of an answer over TCP.
fn over_tcp(address: std::net::SocketAddr, line: &str, headers: &str) -> (u16, String) {
    let (status, _, body) = whole(address, line, headers, "");
    (status, body)
}

#[test]
fn the_token_is_asked_for_over_tcp() {
    let (address, ..) = serve_tcp();
    let status = |header: &str| over_tcp(address, "GET /api/v1/status", &format!("host: x\r\n{header}")).0;
    assert_eq!(status(""), 401);
    assert_eq!(status("authorization: Bearer wrong\r\n"), 401);
    assert_eq!(status("authorization: Basic 0123456789abcdef\r\n"), 401);
    assert_eq!(status("authorization: Bearer 0123456789abcdef\r\n"), 200);
    assert_eq!(status("authorization: Bearer\r\n"), 401);
    assert_eq!(status("authorization: Bearer \u{e9}\r\n"), 401);
}

#[test]
fn rights_hosts_and_origins_are_checked_and_orders_leave_an_event() {
    let (address, access, events, _folder) = serve_tcp();
    let add = |name: &str, rights| {
        let secret = crate::access::new_secret().expect("entropy");
        let add = api::TokenAdd { name: name.into(), rights, expires_seconds: None };
        access.tokens.add(&add, &secret, 1000).expect("made");
        secret
    };
    let (read, full) = (add("monitor", api::Rights::Read), add("ansible", api::Rights::Full));
    let check = |line: &str, secret: &str, more: &str, status: u16, word: &str| {
        let headers = format!("authorization: Bearer {secret}\r\n{more}");
        let (got, body) = over_tcp(address, line, &headers);
        assert!(got == status && body.contains(word), "{line} {more}: {got} {body}");
    };
    let remove = "DELETE /api/v1/portals/nvme/10.0.0.1:4420";
    check("GET /api/v1/status", &read, "host: x\r\n", 200, "health");
    check(remove, &read, "host: x\r\n", 403, "token_read_only");
    check("GET /api/v1/status", &full, "host: evil.example\r\n", 403, "head_name_unknown");
    check(remove, &full, "host: x\r\norigin: https://evil.example\r\n", 403, "origin_foreign");
    check(remove, &full, "host: x\r\norigin: http://x\r\n", 204, "");
    check("DELETE /api/v1/tokens/none", &full, "host: x\r\n", 404, "token_unknown");
    let orders: Vec<String> =
        events.lock().expect("no panic").iter().map(|e| words::event(&e.clone().into())).collect();
    assert_eq!(
        orders,
        [
            "token monitor from 127.0.0.1: DELETE /api/v1/portals/nvme/10.0.0.1:4420: refused (token_read_only)",
            "token ansible from 127.0.0.1: DELETE /api/v1/portals/nvme/10.0.0.1:4420: done",
            "token ansible from 127.0.0.1: DELETE /api/v1/tokens/none: refused (token_unknown)"
        ]
    );
    access.tokens.remove("ansible").expect("removed");
    check("GET /api/v1/status", &full, "host: x\r\n", 401, "token_wrong");
    for _ in 0..4 {
        check("GET /api/v1/status", "guess", "host: x\r\n", 401, "token_wrong");
    }
    check("GET /api/v1/status", &read, "host: x\r\n", 429, "api_throttled");
    let last = events.lock().expect("no panic").last().map(finding::SystemEvent::name);
    assert_eq!(last, Some("ApiAccessThrottled"));
}

/// A cookie for who has this token, as a browser keeps it.
fn log_in(address: std::net::SocketAddr, secret: &str) -> String {
    let body = format!("{{\"token\":\"{secret}\"}}");
    let headers = "host: x\r\norigin: http://x\r\n";
    let (status, header, body) = whole(address, "POST /api/v1/session", headers, &body);
    assert_eq!(status, 201, "{body}");
    let set = header.lines().find_map(|l| l.strip_prefix("set-cookie: ")).expect("a cookie");
    let (cookie, rest) = set.split_once("; ").expect("attributes");
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Strict");
    assert_eq!(cookie.len(), "millrace=".len() + 64);
    format!("host: x\r\ncookie: {cookie}\r\n")
}

#[test]
fn a_session_has_the_rights_of_its_token_and_ends_with_it() {
    let (address, access, events, _folder) = serve_tcp();
    let add = |name: &str, rights, life| {
        let secret = crate::access::new_secret().expect("entropy");
        let add = api::TokenAdd { name: name.into(), rights, expires_seconds: life };
        access.tokens.add(&add, &secret, crate::http::access::now_s()).expect("made");
        secret
    };
    let check = |line: &str, headers: &str, status: u16, word: &str| {
        let (got, body) = over_tcp(address, line, headers);
        assert!(got == status && body.contains(word), "{line} {headers}: {got} {body}");
    };
    let own = "origin: http://x\r\n";
    let remove = "DELETE /api/v1/portals/nvme/10.0.0.1:4420";
    let (full, read) = (add("ann", api::Rights::Full, None), add("eve", api::Rights::Read, Some(60)));
    let (ann, eve) = (log_in(address, &full), log_in(address, &read));
    check("GET /api/v1/session", "host: x\r\n", 401, "token_wrong");
    let (_, body) = over_tcp(address, "GET /api/v1/session", &ann);
    let session: api::Session = serde_json::from_str(&body).expect("a session");
    assert_eq!((session.name.as_str(), session.rights), ("ann", api::Rights::Full));
    assert!(session.expires.is_some_and(|t| t.0 > crate::http::access::now_s() + 11 * 3600));
    let (_, body) = over_tcp(address, "GET /api/v1/session", &eve);
    let session: api::Session = serde_json::from_str(&body).expect("a session");
    assert!(
        session.expires.is_some_and(|t| t.0 <= crate::http::access::now_s() + 60),
        "its token ends before"
    );
    let (_, body) =
        over_tcp(address, "GET /api/v1/session", &format!("host: x\r\nauthorization: Bearer {full}\r\n"));
    assert_eq!(body, r#"{"name":"ann","rights":"full"}"#);

    // Orders of a session say where they come from, and are of its rights.
    check(remove, &format!("{ann}{own}"), 204, "");
    check(remove, &ann, 403, "origin_foreign");
    check(remove, &format!("{ann}origin: null\r\n"), 403, "origin_foreign");
    check(remove, &format!("{eve}{own}"), 403, "token_read_only");
    check("GET /api/v1/status", &eve, 200, "health");
    check("GET /api/v1/status", &eve.replace("host: x", "host: evil.example"), 403, "head_name_unknown");
    // Whoever may only read may leave.
    check("DELETE /api/v1/session", &eve, 403, "origin_foreign");
    check("DELETE /api/v1/session", &format!("{eve}{own}"), 204, "");
    check("GET /api/v1/status", &eve, 401, "session_ended");
    // Another token of the same name is another one.
    access.tokens.remove("ann").expect("removed");
    add("ann", api::Rights::Full, None);
    check("GET /api/v1/status", &ann, 401, "session_ended");
    let orders: Vec<String> =
        events.lock().expect("no panic").iter().map(|e| words::event(&e.clone().into())).collect();
    assert_eq!(
        orders,
        [
            "token ann from 127.0.0.1: POST /api/v1/session: done",
            "token eve from 127.0.0.1: POST /api/v1/session: done",
            "token ann from 127.0.0.1: DELETE /api/v1/portals/nvme/10.0.0.1:4420: done",
            "token eve from 127.0.0.1: DELETE /api/v1/portals/nvme/10.0.0.1:4420: refused (token_read_only)",
            "token eve from 127.0.0.1: DELETE /api/v1/session: done"
        ]
    );
}

#[test]
fn wrong_tokens_count_also_where_sessions_begin_and_old_cookies_do_not() {
    let (address, ..) = serve_tcp();
    let begin = |secret: &str, more: &str| {
        let body = format!("{{\"token\":\"{secret}\"}}");
        whole(address, "POST /api/v1/session", &format!("host: x\r\n{more}"), &body)
    };
    let old = "host: x\r\ncookie: millrace=0000\r\n";
    for _ in 0..10 {
        assert_eq!(over_tcp(address, "GET /api/v1/status", old).0, 401);
    }
    assert_eq!(begin("0123456789abcdef", "origin: https://evil.example\r\n").0, 403);
    assert_eq!(begin("0123456789abcdef", "").0, 201);
    for _ in 0..5 {
        assert_eq!(begin("guess", "").0, 401);
    }
    let (status, header, body) = begin("0123456789abcdef", "");
    assert!(
        status == 429 && body.contains("api_throttled") && header.contains("retry-after: "),
        "{header} {body}"
    );
    // The page itself holds nothing to guess.
    assert_eq!(over_tcp(address, "GET /", "host: x\r\n").0, 200);
}

#[test]
fn the_page_is_for_everybody_who_calls_the_head_by_its_name() {
    let (address, ..) = serve_tcp();
    let (status, header, body) = whole(address, "GET /", "host: x\r\n", "");
    assert!(status == 200 && body.contains("<title>Millrace</title>"), "{body}");
    assert!(header.contains("content-security-policy: default-src 'none'; script-src 'self';"), "{header}");
    for path in ["/assets/app.js", "/assets/app.css", "/assets/icon.svg", "/pools/tank"] {
        assert_eq!(over_tcp(address, &format!("GET {path}"), "host: x\r\n").0, 200, "{path}");
    }
    assert_eq!(over_tcp(address, "GET /assets/none.js", "host: x\r\n").0, 404);
    assert_eq!(over_tcp(address, "GET /", "host: evil.example\r\n").0, 403);
    assert_eq!(over_tcp(address, "POST /", "host: x\r\n").0, 401);
    for path in ["/api", "/api/v2/status", "/metrics", "/api/v1/openapi.json"] {
        assert_eq!(over_tcp(address, &format!("GET {path}"), "host: x\r\n").0, 401, "{path}");
    }
    let (_, header, _) = whole(address, "GET /api/v1/status", "host: x\r\n", "");
    assert!(header.contains("cache-control: no-store"), "{header}");
}

#[test]
fn at_the_socket_pages_of_other_sites_meet_the_same_walls() {
    let fake = fake();
    let check = |line: &str, headers: &str, status: u16, word: &str| {
        let (got, body) = raw(&fake, &format!("{line} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n"));
        assert!(got == status && body.contains(word), "{line} {headers}: {got} {body}");
    };
    for host in ["millrace", "x", "localhost:8420", "127.0.0.1:8420", "[::1]:8420"] {
        check("GET /api/v1/status", &format!("host: {host}\r\n"), 200, "health");
    }
    for host in ["evil.example", "evil.example:8420", "127.0.0.1.evil.example"] {
        for line in ["GET /", "GET /api/v1/status", "DELETE /api/v1/pools/tank"] {
            check(line, &format!("host: {host}\r\n"), 403, "head_name_unknown");
        }
    }
    let remove = "DELETE /api/v1/portals/nvme/10.0.0.1:4420";
    let host = "host: localhost:8420\r\n";
    check(remove, host, 204, "");
    check(remove, &format!("{host}origin: http://localhost:8420\r\n"), 204, "");
    for origin in ["https://evil.example", "null", "http://localhost:3000"] {
        check(remove, &format!("{host}origin: {origin}\r\n"), 403, "origin_foreign");
    }
    check("GET /", host, 200, "<title>Millrace</title>");
    check("GET /api/v1/session", host, 200, r#""rights":"full""#);
}

#[test]
fn a_head_that_stops_and_takes_no_event_keeps_no_answer_back() {
    use tower::ServiceExt;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let status = runtime.block_on(async {
        let (door, mut calls) = Door::new();
        tokio::spawn(async move {
            let mut unanswered = vec![];
            while let Some((order, answer)) = calls.recv().await {
                if matches!(order, Order::Happened { .. }) {
                    unanswered.push(answer);
                } else {
                    let _ = answer.send(obedient(&order));
                }
            }
        });
        let request = Request::delete("/api/v1/portals/nvme/10.0.0.1:4420").header("host", "x");
        let mut request = request.body(axum::body::Body::empty()).expect("a request");
        request.extensions_mut().insert(crate::access::Peer::User(0));
        let answer = router(Api::new(door, Arc::default())).oneshot(request);
        let answer = tokio::time::timeout(std::time::Duration::from_secs(1), answer).await;
        answer.expect("it does not wait").expect("an answer").status()
    });
    assert_eq!(status, StatusCode::NO_CONTENT);
}
