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

/// The status and the body of an answer over TCP.
fn over_tcp(address: std::net::SocketAddr, line: &str, headers: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(address).expect("connected");
    let request = format!("{line} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let status = answer.split(' ').nth(1).expect("a status line").parse().expect("a number");
    (status, answer.split_once("\r\n\r\n").expect("a body").1.to_string())
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
    assert_eq!(events.lock().expect("no panic").len(), 0, "nothing was ordered");
    check(remove, &full, "host: x\r\norigin: http://x\r\n", 204, "");
    check("DELETE /api/v1/tokens/none", &full, "host: x\r\n", 404, "token_unknown");
    let orders: Vec<String> =
        events.lock().expect("no panic").iter().map(|e| words::event(&e.clone().into())).collect();
    assert_eq!(
        orders,
        [
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
