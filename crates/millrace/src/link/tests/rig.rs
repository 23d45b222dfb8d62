//! What the tests need: a runtime, links whose events can be waited for, a peer made of blocking sockets, and a proxy that cuts.

use crate::link::tls::{Purpose, client};
use crate::link::wire::{self, Greeting, SHORT_BYTES};
use crate::link::{Connects, Happened, Identity, Limits, Link, Listens, Settings, Side};
use base::Uuid;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Longer than anything takes that ends at all.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const SYSTEM: Uuid = Uuid([0x42; 16]);

/// A runtime on a thread of its own, as the daemon has it.
pub fn runtime() -> Handle {
    let (send, received) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        send.send(runtime.handle().clone()).expect("somebody waits");
        runtime.block_on(std::future::pending::<()>());
    });
    received.recv().expect("it starts")
}

/// Loopback addresses that no other test has, with a port that nobody listens at: of the creating head, the joining one, a proxy.
pub fn addresses() -> [SocketAddr; 3] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() * 64;
        let [_, x, y, _] = n.to_be_bytes();
        let net = [127, 1 + x % 250, y, (n % 64 * 4) as u8];
        let ip = |last: u8| IpAddr::from([net[0], net[1], net[2], net[3] | last]);
        let port =
            TcpListener::bind((ip(1), 0)).and_then(|l| l.local_addr()).expect("a loopback address").port();
        let all = [1, 2, 3].map(|last| SocketAddr::new(ip(last), port));
        if all.iter().all(|a| TcpListener::bind(a).is_ok()) {
            return all;
        }
    }
}

/// Limits with which a test takes no longer than it must.
pub fn limits() -> Limits {
    Limits {
        handshake: Duration::from_secs(2),
        accept_gap: Duration::from_millis(1),
        reconnect: (Duration::from_millis(5), Duration::from_millis(40)),
        ..Limits::default()
    }
}

/// A link, and what it reported.
pub struct End {
    pub link: Link,
    pub events: Receiver<Happened>,
    runtime: Handle,
}

impl End {
    pub fn start(settings: Settings, runtime: &Handle) -> Self {
        let (tell, events) = channel();
        let link =
            Link::start(settings, runtime, move |happened| drop(tell.send(happened))).expect("settings");
        Self { link, events, runtime: runtime.clone() }
    }
    /// Nothing happens for so long.
    pub fn is_quiet(&self, time: Duration) -> bool {
        matches!(self.events.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }
    /// The first event from now on of which `of` makes something.
    pub fn wait<T>(&self, what: &str, of: impl Fn(&Happened) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut others = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(happened) => match of(&happened) {
                    Some(found) => return found,
                    None => others.push(format!("{happened:.60?}")),
                },
                Err(_) => panic!("no {what}, but {others:?}"),
            }
        }
    }
    pub fn up(&self) -> crate::link::Connection {
        self.wait("Up", |h| if let Happened::Up { on, .. } = h { Some(*on) } else { None })
    }
    pub fn down(&self) -> crate::link::Why {
        self.wait("Down", |h| if let Happened::Down { why, .. } = h { Some(why.clone()) } else { None })
    }
    pub fn unreached(&self) -> finding::UnreachedFault {
        self.wait("Unreached", |h| match h {
            Happened::Unreached { path: 0 | 1, why } => Some(why.clone()),
            _ => None,
        })
    }
    pub fn refused(&self) -> crate::link::LinkRefusal {
        self.wait("Refused", |h| if let Happened::Refused { why, .. } = h { Some(why.clone()) } else { None })
    }
    /// Bytes of whichever connection, until there are `n`.
    pub fn bytes(&self, n: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < n {
            let more =
                |h: &Happened| if let Happened::Bytes { bytes, .. } = h { Some(bytes.clone()) } else { None };
            all.extend(self.wait("Bytes", more));
        }
        all
    }
    pub fn stop(self) -> Vec<Happened> {
        let (runtime, link) = (self.runtime, self.link);
        runtime.block_on(link.stop());
        self.events.try_iter().collect()
    }
}

/// Two heads on one network.
pub struct Pair {
    pub runtime: Handle,
    pub creator: Identity,
    pub joiner: Identity,
    pub at: [SocketAddr; 3],
    pub limits: Limits,
}

impl Pair {
    pub fn new() -> Self {
        let [creator, joiner] = [(); 2].map(|()| Identity::make().expect("made"));
        Self { runtime: runtime(), creator, joiner, at: addresses(), limits: limits() }
    }
    /// Settings of the head that listens; peers of any address are taken.
    pub fn listening(&self) -> Settings {
        let networks = vec![Listens { own: self.at[0], peer: None }];
        let side = Side::Listens { networks, peer: Some(self.joiner.fingerprint()), invitation: None };
        Settings { identity: self.creator.clone(), side, limits: self.limits }
    }
    /// Settings of the head that connects to `to`.
    pub fn connecting(&self, to: SocketAddr) -> Settings {
        let networks = vec![Connects { own: self.at[1].ip(), peer: to }];
        let side = Side::Connects { networks, peer: self.creator.fingerprint() };
        Settings { identity: self.joiner.clone(), side, limits: self.limits }
    }
    pub fn listen(&self) -> End {
        End::start(self.listening(), &self.runtime)
    }
    pub fn connect(&self, to: SocketAddr) -> End {
        End::start(self.connecting(to), &self.runtime)
    }
    /// A peer of blocking sockets with the joining head's key, and welcome.
    pub fn peer(&self) -> Peer {
        let mut peer = Peer::new(self.at[0], client(&self.joiner, Purpose::Path, self.creator.fingerprint()));
        assert_eq!(peer.greet(wire::VERSIONS, 0).map(Result::unwrap), Ok(1));
        peer
    }
}

/// One end of a path, of blocking sockets: it can do what a head would not.
pub struct Peer {
    pub tls: StreamOwned<ClientConnection, TcpStream>,
}

impl Peer {
    pub fn new(to: SocketAddr, config: Arc<ClientConfig>) -> Self {
        let tcp = TcpStream::connect(to).expect("somebody listens");
        tcp.set_read_timeout(Some(PATIENCE)).expect("set");
        let name = rustls::pki_types::ServerName::IpAddress(to.ip().into());
        let tls = ClientConnection::new(config, name).expect("a connection");
        Self { tls: StreamOwned::new(tls, tcp) }
    }
    /// Says what path it is; the answer.
    pub fn greet(&mut self, versions: (u8, u8), path: u8) -> Result<Result<u8, wire::Unwelcome>, String> {
        let mut answer = [0; SHORT_BYTES];
        let said = self.tls.write_all(&Greeting { versions, path }.encode());
        said.and_then(|()| self.tls.read_exact(&mut answer)).map_err(|e| e.to_string())?;
        wire::decode_welcome(&answer).ok_or_else(|| format!("{answer:?}"))
    }
}

/// Whether the other end of `tcp` closes it within `time`, whatever it says before.
pub fn is_closed_within(tcp: &mut TcpStream, time: Duration) -> bool {
    tcp.set_read_timeout(Some(time)).expect("set");
    let until = Instant::now() + time;
    loop {
        match tcp.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) if Instant::now() < until => {}
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return true,
            _ => return false,
        }
    }
}

/// What a proxy does to its connections.
#[derive(Default)]
pub struct Plan {
    /// After so many bytes in either direction a connection is closed.
    pub cut: Option<u64>,
    /// Bytes are handed on so much later.
    pub delay: Duration,
}

/// Stands between the two, and listens at its own address.
pub struct Proxy {
    pub plan: Arc<Mutex<Plan>>,
    /// What goes to the head that connected is swallowed.
    pub one_way: Arc<AtomicBool>,
    /// Connections so far.
    pub count: Arc<AtomicU64>,
}

impl Proxy {
    pub fn start(at: SocketAddr, to: SocketAddr) -> Self {
        let listener = TcpListener::bind(at).expect("its address");
        let proxy = Self { plan: Arc::default(), one_way: Arc::default(), count: Arc::default() };
        let (plan, one_way, count) = (proxy.plan.clone(), proxy.one_way.clone(), proxy.count.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::Relaxed);
                let Ok(far) = TcpStream::connect(to) else { continue };
                let (cut, delay) = {
                    let plan = plan.lock().expect("unbroken");
                    (plan.cut, plan.delay)
                };
                let left = Arc::new(Mutex::new(cut.unwrap_or(u64::MAX)));
                let ends =
                    [(near.try_clone(), far.try_clone(), None), (Ok(far), Ok(near), Some(one_way.clone()))];
                for (from, to, swallow) in ends {
                    let (Ok(from), Ok(to)) = (from, to) else { continue };
                    let left = left.clone();
                    std::thread::spawn(move || pump(from, to, &left, delay, swallow.as_deref()));
                }
            }
        });
        proxy
    }
    pub fn cut_after(&self, bytes: Option<u64>) {
        self.plan.lock().expect("unbroken").cut = bytes;
    }
}

/// Hands bytes on until either end closes, or `left` are through; then both ends are closed.
fn pump(
    mut from: TcpStream,
    mut to: TcpStream,
    left: &Mutex<u64>,
    delay: Duration,
    swallow: Option<&AtomicBool>,
) {
    let mut buffer = [0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        std::thread::sleep(delay);
        let now = {
            let mut left = left.lock().expect("unbroken");
            let now = (*left).min(n as u64);
            *left -= now;
            now as usize
        };
        let swallowed = swallow.is_some_and(|s| s.load(Ordering::Relaxed));
        if !swallowed && to.write_all(&buffer[..now]).is_err() || now < n {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
