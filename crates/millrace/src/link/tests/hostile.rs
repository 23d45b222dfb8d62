//! Those who are not the other head: what they say, how long, and how many they are.

use super::rig::*;
use crate::link::tls::{Purpose, client, server};
use crate::link::{Fingerprint, Happened, Identity, LinkRefusal, Listens, Settings, Side};
use base::Prng;
use finding::UnreachedFault;
use rustls::client::ResolvesClientCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ServerConnection, SignatureScheme};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn another_certificate_gets_no_path_in_either_direction() {
    let pair = Pair::new();
    let a = pair.listen();
    let stranger = Identity::make().expect("made");
    // It knows whom it connects to, and is not known there.
    let stranger =
        Pair { joiner: stranger, runtime: pair.runtime.clone(), creator: pair.creator.clone(), ..pair };
    let b = stranger.connect(stranger.at[0]);
    assert_eq!(a.refused(), LinkRefusal::Certificate);
    assert_eq!(b.unreached(), UnreachedFault::NotKnownThere);
    b.stop();
    // Who answers there is not the one that is pinned.
    let elsewhere = Pair { creator: Identity::make().expect("made"), ..stranger };
    let c = elsewhere.connect(elsewhere.at[0]);
    assert_eq!(c.unreached(), UnreachedFault::NotThePeer);
    assert!(a.stop().iter().all(|h| !matches!(h, Happened::Up { .. })));
}

/// The certificate of `of` with the key of somebody else.
fn stolen(of: &Identity) -> Arc<SingleCertAndKey> {
    let thief = Identity::make().expect("made").certified();
    let shown = of.certified();
    assert_eq!(Fingerprint::of(&shown.cert[0]), of.fingerprint());
    Arc::new(SingleCertAndKey::from(CertifiedKey::new(shown.cert.clone(), thief.key.clone())))
}

/// A configuration with a change.
fn changed(config: &ClientConfig, change: impl FnOnce(&mut ClientConfig)) -> Arc<ClientConfig> {
    let mut config = config.clone();
    change(&mut config);
    Arc::new(config)
}

#[test]
fn the_pinned_certificate_without_its_key_opens_nothing() {
    let pair = Pair::new();
    let a = pair.listen();
    let config = client(&pair.joiner, Purpose::Path, pair.creator.fingerprint());
    let with = stolen(&pair.joiner);
    let mut thief = Peer::new(pair.at[0], changed(&config, |c| c.client_auth_cert_resolver = with));
    assert!(thief.greet((1, 1), 0).is_err());
    assert_eq!(a.refused(), LinkRefusal::Unproven);
    // The same with its own key is let in, so that it was the key.
    let _peer = pair.peer();
    a.up();
}

#[test]
fn a_server_with_the_pinned_certificate_and_without_its_key_is_not_believed() {
    let pair = Pair::new();
    let listener = TcpListener::bind(pair.at[0]).expect("free");
    let mut config = (*server(&pair.creator, Purpose::Path, Some(pair.joiner.fingerprint()))).clone();
    config.cert_resolver = stolen(&pair.creator);
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            let mut tls = ServerConnection::new(Arc::new(config.clone())).expect("a connection");
            while tls.is_handshaking() && tls.complete_io(&mut tcp).is_ok() {}
        }
    });
    let b = pair.connect(pair.at[0]);
    assert_eq!(b.unreached(), UnreachedFault::NotThePeer);
    assert!(b.stop().iter().all(|h| !matches!(h, Happened::Up { .. })));
}

/// Shows no certificate.
#[derive(Debug)]
struct Nothing;

impl ResolvesClientCert for Nothing {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }
    fn has_certs(&self) -> bool {
        false
    }
}

#[test]
fn whoever_shows_no_certificate_is_refused() {
    let pair = Pair::new();
    let a = pair.listen();
    let config = client(&pair.joiner, Purpose::Path, pair.creator.fingerprint());
    let config = changed(&config, |c| c.client_auth_cert_resolver = Arc::new(Nothing));
    assert!(Peer::new(pair.at[0], config).greet((1, 1), 0).is_err());
    assert_eq!(a.refused(), LinkRefusal::Unproven);
}

#[test]
fn plain_text_and_noise_are_closed_and_the_peer_comes_in_all_the_same() {
    let mut pair = Pair::new();
    pair.limits.handshake = Duration::from_secs(1);
    let a = pair.listen();
    let mut random = Prng::new(5);
    let mut noise = vec![0; 100_000];
    random.fill(&mut noise);
    // A record of TLS whose message never ends.
    let endless: Vec<u8> = (0..10u8)
        .flat_map(|i| {
            let mut record = vec![22, 3, 1, 0x3f, 0xff];
            record.extend(if i == 0 { vec![1, 0, 0xff, 0xf0] } else { vec![0; 4] });
            record.resize(5 + 0x3fff, 0);
            record
        })
        .collect();
    let said: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        &noise,
        &endless,
        // An alert, and a hello of version 1.2 without extensions.
        &[21, 3, 3, 0, 2, 2, 40],
        &[22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3],
    ];
    for bytes in said {
        let mut tcp = TcpStream::connect(pair.at[0]).expect("it listens");
        // It may close before all is said.
        let _ = tcp.write_all(bytes);
        assert!(is_closed_within(&mut tcp, Duration::from_secs(5)), "{:?}", &bytes[..10.min(bytes.len())]);
    }
    assert!(matches!(a.refused(), LinkRefusal::NotTls(_)));
    for _ in 0..200 {
        let n = random.below(600) as usize;
        random.fill(&mut noise[..n]);
        if random.chance(1, 2) {
            noise[..3].copy_from_slice(&[22, 3, 1]);
        }
        if let Ok(mut tcp) = TcpStream::connect(pair.at[0]) {
            let _ = tcp.write_all(&noise[..n]);
        }
    }
    let _peer = pair.peer();
    a.up();
}

#[test]
fn so_many_bytes_are_read_before_authentication_and_no_more() {
    let mut pair = Pair::new();
    pair.limits.handshake = PATIENCE;
    let a = pair.listen();
    // A hello that promises 64 KiB, in pieces that all make sense.
    let mut tcp = TcpStream::connect(pair.at[0]).expect("it listens");
    let mut piece = vec![22, 3, 1, 0x10, 0, 1, 0, 0xff, 0x00];
    piece.resize(5 + 0x1000, 0);
    let mut sent = 0;
    while tcp.write_all(&piece).is_ok() {
        sent += piece.len();
        piece[5..9].fill(0);
        std::thread::sleep(Duration::from_millis(20));
        assert!(sent < 60 << 10, "it is closed before rustls itself would have enough");
    }
    assert_eq!(a.refused(), LinkRefusal::TooMuch);
}

#[test]
fn who_says_little_or_nothing_is_closed_in_time() {
    let mut pair = Pair::new();
    pair.limits.handshake = Duration::from_millis(600);
    let a = pair.listen();
    let mut silent = TcpStream::connect(pair.at[0]).expect("it listens");
    let began = Instant::now();
    let mut slow = TcpStream::connect(pair.at[0]).expect("it listens");
    for byte in [22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3, 0] {
        let _ = slow.write_all(&[byte]);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_closed_within(&mut silent, Duration::from_secs(5)));
    assert!(is_closed_within(&mut slow, Duration::from_secs(5)));
    assert!(began.elapsed() >= Duration::from_millis(580), "not before its time");
    assert_eq!([a.refused(), a.refused()], [LinkRefusal::Slow, LinkRefusal::Slow]);
    // Not even the peer may be authenticated and say no more.
    let mut half = Peer::new(pair.at[0], client(&pair.joiner, Purpose::Path, pair.creator.fingerprint()));
    while half.tls.conn.is_handshaking() {
        half.tls.conn.complete_io(&mut half.tls.sock).expect("a handshake");
    }
    assert!(half.tls.read(&mut [0]).is_err(), "closed without a word");
    assert_eq!(a.refused(), LinkRefusal::Slow);
}

#[test]
fn a_server_that_says_nothing_is_left_in_time() {
    let mut pair = Pair::new();
    pair.limits.handshake = Duration::from_millis(100);
    let listener = TcpListener::bind(pair.at[0]).expect("free");
    let b = pair.connect(pair.at[0]);
    let _held = listener.accept().expect("it connects");
    assert_eq!(b.unreached(), UnreachedFault::Slow);
}

#[test]
fn a_crowd_of_silent_strangers_costs_a_few_places_and_keeps_nobody_out() {
    let mut pair = Pair::new();
    pair.limits.handshake = PATIENCE;
    let a = pair.listen();
    let mut crowd: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(pair.at[0]).expect("it listens")).collect();
    assert_eq!(a.refused(), LinkRefusal::Crowded);
    let mut peer = pair.peer();
    let on = a.up();
    let open = |crowd: &mut Vec<TcpStream>| {
        crowd
            .iter_mut()
            .filter_map(|tcp| (!is_closed_within(tcp, Duration::from_millis(20))).then_some(()))
            .count()
    };
    assert!(open(&mut crowd) <= pair.limits.unauthenticated);
    // Of forty refusals few were reported, all of the same machine.
    let reported: Vec<(std::net::IpAddr, u64)> = a
        .events
        .try_iter()
        .filter_map(|h| match h {
            Happened::Refused { from, unreported, .. } => Some((from.ip(), unreported)),
            _ => None,
        })
        .collect();
    let here = crowd[0].local_addr().expect("an address").ip();
    assert!(reported.len() <= 8 && reported.iter().all(|(from, _)| *from == here), "{reported:?}");
    // The next one that is reported counts them.
    std::thread::sleep(Duration::from_millis(1100));
    let _ =
        TcpStream::connect(pair.at[0]).and_then(|mut tcp| tcp.write_all(b"no TLS at all, and long enough"));
    let unreported =
        |h: &Happened| if let Happened::Refused { unreported, .. } = h { Some(*unreported) } else { None };
    assert!(a.wait("Refused", unreported) + reported.iter().map(|(_, n)| n).sum::<u64>() >= 20);
    crowd.extend((0..20).filter_map(|_| TcpStream::connect(pair.at[0]).ok()));
    a.link.send(on, b"still there".to_vec()).expect("up");
    let mut got = [0; 11];
    peer.tls.read_exact(&mut got).expect("a path is none of the crowd");
    assert_eq!(&got, b"still there");
}

#[test]
fn another_address_than_the_peers_is_not_listened_to() {
    let pair = Pair::new();
    let side = Side::Listens {
        networks: vec![Listens { own: pair.at[0], peer: Some(pair.at[2].ip()) }],
        peer: Some(pair.joiner.fingerprint()),
        invitation: None,
    };
    let a = End::start(Settings { side, ..pair.listening() }, &pair.runtime);
    // The peer itself, and from the wrong network.
    let b = pair.connect(pair.at[0]);
    assert_eq!(a.refused(), LinkRefusal::Address);
    assert!(matches!(b.unreached(), UnreachedFault::Network { .. }));
}

#[test]
fn a_peer_that_greets_wrongly_is_told_why() {
    let pair = Pair::new();
    let a = pair.listen();
    let config = || client(&pair.joiner, Purpose::Path, pair.creator.fingerprint());
    use crate::link::wire::Unwelcome;
    assert_eq!(Peer::new(pair.at[0], config()).greet((2, 9), 0), Ok(Err(Unwelcome::Version)));
    assert_eq!(a.refused(), LinkRefusal::Version);
    assert_eq!(Peer::new(pair.at[0], config()).greet((1, 1), 3), Ok(Err(Unwelcome::Network)));
    assert_eq!(a.refused(), LinkRefusal::OtherNetwork(3));
    assert_eq!(Peer::new(pair.at[0], config()).greet((2, 1), 0), Ok(Err(Unwelcome::Malformed)));
    assert_eq!(a.refused(), LinkRefusal::Malformed);
    // A protocol that nobody here speaks.
    let other = changed(&config(), |c| c.alpn_protocols = vec![b"http/1.1".to_vec()]);
    assert!(Peer::new(pair.at[0], other).greet((1, 1), 0).is_err());
    assert!(matches!(a.refused(), LinkRefusal::NotTls(_)));
}
