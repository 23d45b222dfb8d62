//! The link between two heads: networks that delay, are cut in one way or both, and whose connections end when a process does.
//!
//! What the daemon's transport does (`millrace::link`) is done here by the world: the second server connects, again and again; the first
//! one listens. Bytes of a connection arrive in order and once, or the connection ends.

use super::{Happening, HeadOrHost, World, Wrong};
use base::{Address, Duration, Event, Instant};
use cluster::link::Do;
use cluster::watch::End;
use head::mail::StewardMail;
use head::peer::{PeerNews, PeerWork};
use std::collections::VecDeque;

/// The server that connects.
const CONNECTS: usize = 1;
/// How often it tries.
const TRY: Duration = Duration::from_millis(100);
/// A kernel that hears nothing of what it has sent for so long gives a connection up (docs/formats/link.md).
const GIVES_UP: Duration = Duration::from_secs(3);

/// What happens on a network of the link.
pub(super) enum PeerHappening {
    /// The server that connects tries to.
    Try,
    /// Bytes arrive.
    Bytes { number: u64, to: usize, bytes: Vec<u8> },
    /// A connection is over for a server.
    Ends { number: u64, to: usize, end: End },
    /// Whether a kernel has lost its patience.
    Stuck { number: u64, since: Instant },
    /// A network is whole again.
    Mended { cuts: u64 },
}

/// One network.
#[derive(Default)]
struct Network {
    /// The last connection.
    number: u64,
    /// For whom it is open.
    open: [bool; 2],
    /// When the last bytes towards each server arrive.
    last: [Instant; 2],
    /// Nothing arrives at this server.
    cut: [bool; 2],
    cuts: u64,
    /// What waits until it is whole again.
    waits: [VecDeque<Vec<u8>>; 2],
    /// Nothing arrived there since then that should have.
    stuck: Option<Instant>,
    /// Longest delay, microseconds.
    slow_us: u64,
    tries: bool,
}

/// All networks of the link.
#[derive(Default)]
pub(super) struct Peers {
    networks: Vec<Network>,
}

impl World {
    /// The link has so many networks. It is tried from now on.
    pub fn link_servers(&mut self, networks: usize) {
        for path in 0..networks {
            self.peers.networks.push(Network { tries: true, ..Network::default() });
            self.peer_later(TRY, path, PeerHappening::Try);
        }
    }
    /// A network brings nothing to these servers for a time.
    pub fn cut_network(&mut self, path: usize, to: [bool; 2], time: Duration) {
        self.say(|| format!("network {path} of the link brings nothing to {to:?} for {time:?}"));
        self.tally.make(Wrong::CutNetwork);
        let network = &mut self.peers.networks[path];
        network.cut = to;
        network.cuts += 1;
        let cuts = network.cuts;
        self.is_stuck(path);
        self.stall_network(path, time, GIVES_UP);
        self.peer_later(time, path, PeerHappening::Mended { cuts });
    }
    /// A network is slow from now on: bytes take up to so many microseconds.
    pub fn slow_network(&mut self, path: usize, slow_us: u64) {
        if slow_us > 0 {
            self.tally.make(Wrong::SlowNetwork);
        }
        self.peers.networks[path].slow_us = slow_us;
    }
    /// Its connection is closed by accident.
    pub fn reset_network(&mut self, path: usize) {
        self.tally.make(Wrong::ResetNetwork);
        if self.peers.networks[path].open.contains(&true) {
            self.tally.meet(Wrong::ResetNetwork);
        }
        self.end_connection(path, [Some(End::Lost), Some(End::Lost)]);
        self.cut_network_links(path);
    }
    /// Whether a network brings nothing, to one side or both.
    pub(super) fn network_is_cut(&self, path: usize) -> bool {
        self.peers.networks.get(path).is_none_or(|network| network.cut.contains(&true))
    }
    /// Nothing is wrong with the link.
    pub fn networks_are_well(&self) -> bool {
        self.peers.networks.iter().all(|network| !network.cut.contains(&true) && network.slow_us == 0)
    }
    /// Nothing is wrong with the link any more.
    pub fn mend_networks(&mut self) {
        for path in 0..self.peers.networks.len() {
            self.peers.networks[path].slow_us = 0;
            let cuts = self.peers.networks[path].cuts;
            self.peer_later(Duration::ZERO, path, PeerHappening::Mended { cuts });
        }
    }
    /// What a Steward wants done by the link.
    pub fn peer_work(&mut self, server: usize, work: PeerWork) {
        let PeerWork { number, what } = work;
        let (Do::Send { path, .. } | Do::Close { path, .. }) = &what;
        let path = *path;
        let Some(network) = self.peers.networks.get(path) else { return };
        if network.number != number || !network.open[server] {
            return;
        }
        match what {
            Do::Send { bytes, .. } => self.peer_bytes(path, 1 - server, bytes),
            Do::Close { .. } => {
                self.say(|| format!("server {server} closes network {path} of the link"));
                self.end_connection(path, [None, None]);
                self.peer_ends(path, server, End::Lost);
                if !self.peers.networks[path].cut[1 - server] {
                    self.peer_ends(path, 1 - server, End::Closed);
                } else {
                    // Its kernel hears nothing, and loses its patience.
                    self.peers.networks[path].open[1 - server] = true;
                    self.is_stuck(path);
                }
            }
        }
    }
    /// A process has ended: its kernel says so, if it has power.
    pub(super) fn peer_falls(&mut self, server: usize, power: bool) {
        for path in 0..self.peers.networks.len() {
            let network = &mut self.peers.networks[path];
            network.open[server] = false;
            network.waits[server].clear();
            if !network.open[1 - server] {
                continue;
            }
            if power || network.cut[1 - server] {
                self.is_stuck(path);
            } else {
                self.peer_ends(path, 1 - server, End::Closed);
            }
        }
    }

    fn peer_later(&mut self, after: Duration, path: usize, what: PeerHappening) {
        self.push(self.now + after, Happening::Peer { path, what });
    }
    fn delay_of(&mut self, path: usize) -> Duration {
        let most = self.delivery.link_us.max(self.peers.networks[path].slow_us);
        if most > self.delivery.link_us {
            self.tally.meet(Wrong::SlowNetwork);
        }
        Duration::from_micros(1 + self.rng.below(most))
    }
    /// Bytes go their way.
    fn peer_bytes(&mut self, path: usize, to: usize, bytes: Vec<u8>) {
        let delay = self.delay_of(path);
        let network = &mut self.peers.networks[path];
        let gone = !network.open[to];
        if network.cut[to] || gone {
            if network.cut[to] {
                self.tally.meet(Wrong::CutNetwork);
            }
            network.waits[to].push_back(bytes);
            return self.is_stuck(path);
        }
        let at = (self.now + delay).max(network.last[to]);
        network.last[to] = at;
        let number = network.number;
        self.push(at, Happening::Peer { path, what: PeerHappening::Bytes { number, to, bytes } });
    }
    fn peer_ends(&mut self, path: usize, to: usize, end: End) {
        let delay = self.delay_of(path);
        let network = &mut self.peers.networks[path];
        let at = (self.now + delay).max(network.last[to]);
        let number = network.number;
        self.push(at, Happening::Peer { path, what: PeerHappening::Ends { number, to, end } });
    }
    /// A connection is over at once, and servers hear of it.
    fn end_connection(&mut self, path: usize, ends: [Option<End>; 2]) {
        for (to, end) in ends.into_iter().enumerate() {
            if let Some(end) = end.filter(|_| self.peers.networks[path].open[to]) {
                self.peer_ends(path, to, end);
            }
        }
        let network = &mut self.peers.networks[path];
        network.waits = Default::default();
        network.stuck = None;
    }
    /// From now on some kernel waits for a word of the other one.
    fn is_stuck(&mut self, path: usize) {
        let now = self.now;
        let network = &mut self.peers.networks[path];
        if network.stuck.is_none() && network.open.contains(&true) {
            network.stuck = Some(now);
            let number = network.number;
            self.peer_later(GIVES_UP, path, PeerHappening::Stuck { number, since: now });
        }
    }
    fn send_to_peer(&mut self, server: usize, news: PeerNews) {
        if !self.servers[server].runs || !self.servers[server].linked {
            return;
        }
        let id = self.servers[server].addresses[&Address::Steward];
        let mail = StewardMail::Peer(news).into();
        let event = Event::Mail { from: Address::Manager, mail };
        self.post(id, Duration::from_nanos(1), HeadOrHost::Head(event));
    }

    pub(super) fn peer_happens(&mut self, path: usize, what: PeerHappening) {
        match what {
            PeerHappening::Try => {
                let jitter = Duration::from_millis(self.rng.below(30));
                self.peer_later(TRY + jitter, path, PeerHappening::Try);
                self.peer_try(path);
            }
            PeerHappening::Bytes { number, to, bytes } => {
                let network = &mut self.peers.networks[path];
                if network.number != number || !network.open[to] {
                    return;
                }
                if network.cut[to] || !network.waits[to].is_empty() {
                    network.waits[to].push_back(bytes);
                    return self.is_stuck(path);
                }
                self.send_to_peer(to, PeerNews::Bytes { path, number, bytes });
            }
            PeerHappening::Ends { number, to, end } => {
                let network = &mut self.peers.networks[path];
                if network.number == number && network.open[to] {
                    network.open[to] = false;
                    self.send_to_peer(to, PeerNews::Down { path, end });
                }
            }
            PeerHappening::Stuck { number, since } => {
                let network = &self.peers.networks[path];
                if network.number == number && network.stuck == Some(since) {
                    self.end_connection(path, [Some(End::Lost), Some(End::Lost)]);
                }
            }
            PeerHappening::Mended { cuts } => self.peer_mended(path, cuts),
        }
    }
    fn peer_mended(&mut self, path: usize, cuts: u64) {
        let network = &mut self.peers.networks[path];
        if network.cuts != cuts {
            return;
        }
        network.cut = [false; 2];
        let there = network.open == [true, true];
        if there {
            network.stuck = None;
        }
        let waits = core::mem::take(&mut network.waits);
        for (to, waits) in waits.into_iter().enumerate() {
            for bytes in waits.into_iter().filter(|_| there) {
                self.peer_bytes(path, to, bytes);
            }
        }
    }
    /// The second server connects, if it can.
    fn peer_try(&mut self, path: usize) {
        let network = &self.peers.networks[path];
        let [listens, connects] = [1 - CONNECTS, CONNECTS].map(|s| &self.servers[s]);
        let waits = !network.tries || network.open[CONNECTS] || !connects.runs || !connects.linked;
        let stands = |s: usize| self.servers[s].pause.is_some_and(|p| p.until > self.now);
        if waits || network.cut.contains(&true) || !listens.powered || stands(0) || stands(1) {
            return;
        }
        if !listens.runs || !listens.linked {
            return self.send_to_peer(CONNECTS, PeerNews::Down { path, end: End::Refused });
        }
        // The other one may have one that is over, and not know it yet: the newer one takes its place.
        if network.open[1 - CONNECTS] {
            self.send_to_peer(1 - CONNECTS, PeerNews::Down { path, end: End::Lost });
        }
        let network = &mut self.peers.networks[path];
        network.number += 1;
        network.open = [true; 2];
        network.stuck = None;
        network.waits = Default::default();
        network.last = [self.now; 2];
        let number = network.number;
        for server in 0..2 {
            self.send_to_peer(server, PeerNews::Up { path, number, secret: [path as u8 + 1; 32] });
        }
    }
}
