//! Paths between two heads that know each other: what they carry, how they end, how they come back.

use super::rig::*;
use crate::link::tls::{Purpose, client};
use crate::link::{Connection, Connects, Happened, Limits, Listens, NotSent, Settings, Side, Why};
use base::Prng;
use finding::{SystemRefusal, UnreachedFault};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A stream of bytes that follows from its number.
struct Stream(Prng);

impl Stream {
    fn new(number: u64) -> Self {
        Self(Prng::new(number))
    }
    fn take(&mut self, n: usize) -> Vec<u8> {
        // Byte by byte, so that it does not matter in which pieces it is taken.
        (0..n).map(|_| (self.0.next_u64() >> 32) as u8).collect()
    }
}

#[test]
fn megabytes_go_both_ways_at_once_in_pieces_of_any_size() {
    const TOTAL: usize = 12 << 20;
    // What was sent and did not arrive stays below the limit, as the layer above sees to.
    const UNDER_WAY: usize = 4 << 20;
    let pair = Pair::new();
    let ends = [pair.listen(), pair.connect(pair.at[0])];
    let arrived = [AtomicUsize::new(0), AtomicUsize::new(0)];
    std::thread::scope(|scope| {
        let mut hear = Vec::new();
        for (side, end) in ends.into_iter().enumerate() {
            let on = end.up();
            let End { link, events, .. } = end;
            hear.push(events);
            let arrived = &arrived;
            scope.spawn(move || {
                let (mut stream, mut sizes, mut sent) =
                    (Stream::new(side as u64), Prng::new(7 + side as u64), 0);
                while sent < TOTAL {
                    let most = if sizes.chance(1, 2) { 300 } else { 200_000 };
                    let n = (1 + sizes.below(most) as usize).min(TOTAL - sent);
                    link.send(on, stream.take(n)).expect("within the limit");
                    sent += n;
                    while sent - arrived[1 - side].load(Ordering::Relaxed) > UNDER_WAY {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                while arrived.iter().any(|n| n.load(Ordering::Relaxed) < TOTAL) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        for (side, events) in hear.into_iter().enumerate() {
            let arrived = &arrived;
            scope.spawn(move || {
                let (mut expected, mut got) = (Stream::new(1 - side as u64), 0);
                while got < TOTAL {
                    let heard = events.recv_timeout(PATIENCE).expect("bytes come");
                    let Happened::Bytes { bytes, .. } = heard else { panic!("{heard:?}") };
                    assert!((1..=64 << 10).contains(&bytes.len()));
                    assert!(bytes == expected.take(bytes.len()), "side {side}, from byte {got} on");
                    got += bytes.len();
                    arrived[side].store(got, Ordering::Relaxed);
                }
                // Not a byte more.
                assert!(!matches!(
                    events.recv_timeout(Duration::from_millis(20)),
                    Ok(Happened::Bytes { .. })
                ));
            });
        }
    });
}

fn secret(end: &End) -> ([u8; 32], SocketAddr) {
    end.wait("Up", |h| match h {
        Happened::Up { peer_address, secret, .. } => Some((*secret.bytes(), *peer_address)),
        _ => None,
    })
}

#[test]
fn both_ends_of_a_connection_have_a_secret_that_no_other_has() {
    let pair = Pair::new();
    let (a, b) = (pair.listen(), pair.connect(pair.at[0]));
    let (first, (theirs, to)) = (secret(&a), secret(&b));
    assert_eq!(first.0, theirs);
    assert_eq!((first.1.ip(), to), (pair.at[1].ip(), pair.at[0]), "it connects from its own address");
    b.link.close(Connection { path: 0, number: 1 });
    let (second, (theirs, _)) = (secret(&a), secret(&b));
    assert_eq!(second.0, theirs);
    assert_ne!(first.0, second.0);
}

#[test]
fn four_networks_are_four_paths_and_each_goes_alone() {
    let pair = Pair::new();
    let at: Vec<[SocketAddr; 3]> = (0..4).map(|_| addresses()).collect();
    let listens = at.iter().map(|a| Listens { own: a[0], peer: Some(a[1].ip()) }).collect();
    let connects = at.iter().map(|a| Connects { own: a[1].ip(), peer: a[0] }).collect();
    let side = Side::Listens { networks: listens, peer: Some(pair.joiner.fingerprint()), invitation: None };
    let a = End::start(Settings { side, ..pair.listening() }, &pair.runtime);
    let side = Side::Connects { networks: connects, peer: pair.creator.fingerprint() };
    let b = End::start(Settings { side, ..pair.connecting(pair.at[0]) }, &pair.runtime);
    let ups: Vec<Connection> = (0..4).map(|_| a.up()).collect();
    assert_eq!(ups.iter().map(|on| on.path).collect::<std::collections::BTreeSet<_>>().len(), 4);
    for on in (0..4).map(|_| b.up()) {
        b.link.send(on, vec![on.path as u8; 3]).expect("up");
    }
    for _ in 0..4 {
        let (path, bytes) = a.wait("Bytes", |h| match h {
            Happened::Bytes { on, bytes } => Some((on.path, bytes.clone())),
            _ => None,
        });
        assert_eq!(bytes, [path as u8; 3]);
    }
    b.link.close(Connection { path: 2, number: 1 });
    assert_eq!(a.down(), Why::Closed);
    assert_eq!(a.up(), Connection { path: 2, number: 2 }, "the others stay");
    assert_eq!(b.link.send(Connection { path: 4, number: 1 }, vec![1]), Err(NotSent::Down));
}

#[test]
fn ipv6_is_as_good() {
    let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else {
        return eprintln!("SKIPPED: this machine has no IPv6");
    };
    let at = listener.local_addr().expect("an address");
    drop(listener);
    let mut pair = Pair::new();
    pair.at[0] = at;
    pair.at[1] = at;
    let (a, b) = (pair.listen(), pair.connect(at));
    b.link.send(b.up(), b"over IPv6".to_vec()).expect("up");
    assert_eq!(a.bytes(9), b"over IPv6");
}

#[test]
fn it_listens_at_its_own_address_and_no_other() {
    let pair = Pair::new();
    let a = pair.listen();
    let _peer = pair.peer();
    a.up();
    for other in [pair.at[1], pair.at[2], SocketAddr::from(([127, 0, 0, 1], pair.at[0].port()))] {
        assert!(TcpStream::connect(other).is_err(), "{other}");
    }
}

#[test]
fn the_listener_goes_and_comes_and_the_path_with_it() {
    let pair = Pair::new();
    let b = pair.connect(pair.at[0]);
    assert!(matches!(b.unreached(), UnreachedFault::Nobody));
    assert!(b.is_quiet(Duration::from_millis(200)), "the same reason is reported once");
    for round in 1..=3 {
        let a = pair.listen();
        assert_eq!((a.up().number, b.up().number), (1, round));
        let last = a.stop();
        assert!(matches!(last[..], [Happened::Down { why: Why::Stopped, .. }]), "{last:?}");
        assert_eq!(b.down(), Why::Closed, "it said goodbye");
    }
    assert!(matches!(b.unreached(), UnreachedFault::Nobody), "reported anew");
}

#[test]
fn an_address_that_is_not_there_yet_is_waited_for() {
    let pair = Pair::new();
    let holder = std::net::TcpListener::bind(pair.at[0]).expect("free");
    let a = pair.listen();
    assert!(matches!(a.unreached(), UnreachedFault::OwnAddress { .. }));
    drop(holder);
    let b = pair.connect(pair.at[0]);
    assert_eq!((a.up().number, b.up().number), (1, 1));
}

#[test]
fn how_a_peer_went_is_told() {
    let pair = Pair::new();
    let a = pair.listen();
    let mut closes = pair.peer();
    a.up();
    closes.tls.write_all(b"last words").expect("sent");
    closes.tls.conn.send_close_notify();
    closes.tls.flush().expect("sent");
    assert_eq!(a.bytes(10), b"last words");
    assert_eq!(a.down(), Why::Closed);

    let dies = pair.peer();
    a.up();
    // As a kernel does for a process that was killed.
    drop(dies);
    assert_eq!(a.down(), Why::Ended);

    let crashes = pair.peer();
    let on = a.up();
    a.link.send(on, vec![1; 1000]).expect("up");
    // Unread bytes are there when the process dies.
    crashes.tls.sock.peek(&mut [0]).expect("they arrive");
    drop(crashes);
    assert_eq!(a.down(), Why::Reset);

    let mut lies = pair.peer();
    a.up();
    lies.tls
        .sock
        .write_all(&[0x17, 3, 3, 0, 32, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9])
        .expect("sent");
    lies.tls.sock.write_all(&[9; 16]).expect("sent");
    assert!(matches!(a.down(), Why::Broken(_)), "what the key did not make is not taken");
}

#[test]
fn a_newer_connection_takes_the_place_of_the_older() {
    let pair = Pair::new();
    let a = pair.listen();
    let mut old = pair.peer();
    let first = a.up();
    old.tls.write_all(b"old").expect("sent");
    assert_eq!(a.bytes(3), b"old");
    let mut new = pair.peer();
    assert_eq!(a.down(), Why::Replaced);
    let second = a.up();
    assert!(second > first);
    assert_eq!(a.link.send(first, b"late".to_vec()), Err(NotSent::Down));
    a.link.close(first);
    a.link.send(second, b"new".to_vec()).expect("up");
    let mut got = [0; 3];
    new.tls.read_exact(&mut got).expect("sent");
    assert_eq!(&got, b"new", "and not a byte for the older");
    // The older one may say what it likes.
    let _ = old.tls.write_all(b"older");
    new.tls.write_all(b"newer").expect("sent");
    assert_eq!(a.bytes(5), b"newer");
    // Nobody who is not the peer takes its place.
    let stranger = crate::link::Identity::make().expect("made");
    let mut other = Peer::new(pair.at[0], client(&stranger, Purpose::Path, pair.creator.fingerprint()));
    assert!(other.greet((1, 1), 0).is_err());
    a.refused();
    new.tls.write_all(b"still").expect("sent");
    assert_eq!(a.bytes(5), b"still");
}

#[test]
fn a_peer_that_does_not_read_gets_so_much_and_no_more() {
    let mut pair = Pair::new();
    pair.limits.backlog_bytes = 1 << 20;
    let a = pair.listen();
    let _deaf = pair.peer();
    let on = a.up();
    let mut sent = 0usize;
    let refused = loop {
        match a.link.send(on, vec![7; 64 << 10]) {
            Ok(()) => sent += 64 << 10,
            Err(e) => break e,
        }
        assert!(sent < 64 << 20, "somewhere it ends");
        if sent > 8 << 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    assert!(sent >= 1 << 20);
    // Either was reported already, or is.
    assert!(matches!(refused, NotSent::Backlog | NotSent::Down));
    assert_eq!(a.down(), Why::Backlog);
    let _next = pair.peer();
    a.up();
}

#[test]
fn a_peer_that_takes_nothing_is_silent_within_the_time() {
    let mut pair = Pair::new();
    pair.limits.silence = Duration::from_secs(1);
    let a = pair.listen();
    let _deaf = pair.peer();
    let on = a.up();
    // More than the kernel's buffers hold, less than the limit.
    let began = Instant::now();
    a.link.send(on, vec![7; 7 << 20]).expect("within the limit");
    match a.down() {
        Why::Silent => assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn small_pieces_leave_at_once() {
    let pair = Pair::new();
    let (a, b) = (pair.listen(), pair.connect(pair.at[0]));
    let (on_a, on_b) = (a.up(), b.up());
    let began = Instant::now();
    for round in 0..100u8 {
        a.link.send(on_a, vec![round; 100]).expect("up");
        assert_eq!(b.bytes(100), [round; 100]);
        b.link.send(on_b, vec![round; 100]).expect("up");
        assert_eq!(a.bytes(100), [round; 100]);
    }
    // Nagle's algorithm and delayed acknowledgements together would take 40 ms for each.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// What a side says on its connection with this number: the number, then bytes that follow from it.
fn speech(side: u64, number: u64, n: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend(Stream::new(side << 32 | number).take(n));
    bytes
}

/// Checks what a side hears: of each connection a beginning of what the other side said there, and never an older one again.
struct Hears {
    other: u64,
    heard: Vec<u8>,
    last: u64,
    on: Option<Connection>,
}

impl Hears {
    fn new(other: u64) -> Self {
        Self { other, heard: Vec::new(), last: 0, on: None }
    }
    /// Whether all was heard that is said on a connection.
    fn take(&mut self, happened: &Happened, n: usize) -> bool {
        match happened {
            Happened::Up { on, .. } => {
                assert!(self.on.replace(*on).is_none(), "one at a time");
                self.heard.clear();
            }
            Happened::Down { on, .. } => {
                assert_eq!(self.on.take(), Some(*on), "only what is up goes down");
            }
            Happened::Bytes { on, bytes } => {
                assert_eq!(self.on, Some(*on), "bytes of what is not up");
                self.heard.extend(bytes);
                let Some(number) = self.heard.first_chunk().map(|n| u64::from_le_bytes(*n)) else {
                    return false;
                };
                let begins = self.heard.len() == bytes.len();
                assert!(number > self.last || number == self.last && !begins, "{number} after {}", self.last);
                self.last = number;
                let said = speech(self.other, number, n);
                assert!(said.starts_with(&self.heard), "not what was said on connection {number}");
                return self.heard.len() == said.len();
            }
            _ => {}
        }
        false
    }
}

#[test]
fn cut_anywhere_it_comes_back_and_says_nothing_wrong() {
    const SAID: usize = 3000;
    let mut pair = Pair::new();
    pair.limits.reconnect = (Duration::from_millis(1), Duration::from_millis(5));
    let proxy = Proxy::start(pair.at[2], pair.at[0]);
    // The handshake takes some 2,500 bytes both ways together; then both say 3,000.
    let mut cuts: Vec<u64> = (0..9000).step_by(79).chain([1, 2, 5, 6]).collect();
    cuts.reverse();
    proxy.cut_after(cuts.pop());
    let (a, b) = (pair.listen(), pair.connect(pair.at[2]));
    let (mut at_a, mut at_b) = (Hears::new(1), Hears::new(0));
    let (mut seen, mut whole, mut downs) = (0, [false; 2], 0);
    let mut on_b = None;
    let until = Instant::now() + 3 * PATIENCE;
    while whole != [true; 2] || !cuts.is_empty() {
        assert!(Instant::now() < until, "{} cuts are left", cuts.len());
        for (side, end, hears) in [(0, &a, &mut at_a), (1, &b, &mut at_b)] {
            while let Ok(happened) = end.events.recv_timeout(Duration::from_millis(1)) {
                downs += u32::from(matches!(happened, Happened::Down { .. }));
                if let Happened::Up { on, .. } = &happened {
                    on_b = (side == 1).then_some(*on).or(on_b);
                    whole[side as usize] = false;
                    // The path may be cut again already.
                    let _ = end.link.send(*on, speech(side, on.number, SAID));
                }
                whole[side as usize] |= hears.take(&happened, SAID);
            }
        }
        // All was said before the cut.
        if let Some(on) = on_b.filter(|_| whole == [true; 2] && !cuts.is_empty()) {
            b.link.close(on);
        }
        // Each connection has its cut; behind the last one there is none.
        let count = proxy.count.load(Ordering::Relaxed);
        if count > seen {
            seen = count;
            proxy.cut_after(cuts.pop());
        }
    }
    assert!(downs > 50, "only {downs} of the cuts met a path that was up");
}

#[test]
fn a_slow_way_is_a_way_and_one_that_swallows_can_be_closed() {
    let pair = Pair::new();
    let proxy = Proxy::start(pair.at[2], pair.at[0]);
    proxy.plan.lock().expect("unbroken").delay = Duration::from_millis(30);
    let (a, b) = (pair.listen(), pair.connect(pair.at[2]));
    let (on_a, on_b) = (a.up(), b.up());
    b.link.send(on_b, vec![5; 100_000]).expect("up");
    assert_eq!(a.bytes(100_000), [5; 100_000]);

    // From here on nothing reaches b, and its kernel sees nothing wrong: whoever counts heartbeats closes.
    proxy.one_way.store(true, Ordering::Relaxed);
    a.link.send(on_a, vec![6; 1000]).expect("up");
    assert!(b.is_quiet(Duration::from_millis(300)));
    b.link.close(on_b);
    assert_eq!(b.down(), Why::Asked);
    assert_ne!(a.down(), Why::Stopped);
    assert!(matches!(b.unreached(), UnreachedFault::Slow | UnreachedFault::Network { .. }));
    proxy.one_way.store(false, Ordering::Relaxed);
    let (on_a, _) = (a.up(), b.up());
    a.link.send(on_a, vec![8; 10]).expect("up");
    assert_eq!(b.bytes(10), [8; 10]);
}

#[test]
fn networks_that_are_mixed_up_are_told() {
    let pair = Pair::new();
    let at = [addresses(), addresses()];
    let networks = at.iter().map(|a| Listens { own: a[0], peer: None }).collect();
    let side = Side::Listens { networks, peer: Some(pair.joiner.fingerprint()), invitation: None };
    let a = End::start(Settings { side, ..pair.listening() }, &pair.runtime);
    let networks = at.iter().rev().map(|a| Connects { own: a[1].ip(), peer: a[0] }).collect();
    let side = Side::Connects { networks, peer: pair.creator.fingerprint() };
    let b = End::start(Settings { side, ..pair.connecting(pair.at[0]) }, &pair.runtime);
    assert_eq!(b.unreached(), UnreachedFault::OtherNetwork);
    assert!(matches!(a.refused(), crate::link::LinkRefusal::OtherNetwork(0 | 1)));
}

#[test]
fn a_link_of_nothing_of_everything_or_of_the_same_twice_is_refused() {
    let pair = Pair::new();
    let of = |networks: &[(&str, Option<&str>)]| {
        let network = |(own, peer): &(&str, Option<&str>)| Listens {
            own: own.parse().expect("an address"),
            peer: peer.map(|p| p.parse().expect("an address")),
        };
        let networks = networks.iter().map(network).collect();
        let side = Side::Listens { networks, peer: None, invitation: None };
        Settings { side, ..pair.listening() }.check()
    };
    let wrong_number = |networks| -> Result<(), SystemRefusal> {
        Err(SystemRefusal::LinkNetworksInvalid { networks, networks_max: 4 })
    };
    assert_eq!(of(&[("10.0.0.1:5", Some("10.0.0.2")), ("[fd00::1]:5", Some("fd00::2"))]), Ok(()));
    assert_eq!(of(&[]), wrong_number(0));
    assert_eq!(of(&[("10.0.0.1:5", None); 5]), wrong_number(5));
    for all in ["0.0.0.0:5", "[::]:5", "224.0.0.1:5", "255.255.255.255:5", "[fe80::1]:5"] {
        assert!(matches!(of(&[(all, None)]), Err(SystemRefusal::LinkAddressUnusable { .. })), "{all}");
    }
    assert!(matches!(of(&[("10.0.0.1:5", Some("fd00::1"))]), Err(SystemRefusal::LinkFamiliesDiffer { .. })));
    assert!(matches!(of(&[("10.0.0.1:0", None)]), Err(SystemRefusal::LinkPortMissing { .. })));
    assert!(matches!(
        of(&[("10.0.0.1:5", None), ("10.0.0.1:5", None)]),
        Err(SystemRefusal::LinkAddressTwice { .. })
    ));
    let usual = Limits::default();
    assert_eq!((usual.backlog_bytes, usual.reconnect.1), (8 << 20, Duration::from_secs(1)));
}
