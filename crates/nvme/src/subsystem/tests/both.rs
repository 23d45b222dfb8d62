//! Our host against our target: they were written independently, and must understand each other.

use super::*;
use crate::host::{Config, Session};
use base::{HostCommand, HostStatus, Slice};

const STAGING: Slice = Slice { at: 0, len: 4096 };
const RINGS: u64 = 4096;
const RING_BYTES: u32 = 8192;
const DATA: Slice = Slice { at: RINGS + 2 * RING_BYTES as u64, len: 1 << 17 };

/// A session, its world, and a target for each of its connections.
struct Pair {
    session: Session,
    host: base::fake::Host,
    targets: Vec<Talk>,
    piece: usize,
    now: Instant,
}

impl Pair {
    fn new(config: Config, piece: usize) -> Self {
        let ring = |i| Slice::new(RINGS + i * u64::from(RING_BYTES), RING_BYTES);
        let host = base::fake::Host::new(&[ring(0), ring(1)], DATA.end());
        let mut session = Session::new(config);
        session.start();
        let mut pair = Self { session, host, targets: vec![], piece, now: Instant(1) };
        pair.settle();
        pair
    }
    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 2 {
            quiet = if self.turn() { 0 } else { quiet + 1 };
        }
        assert_eq!(self.session.error(), None);
        assert!(self.targets.iter().all(|t| t.io.closed.is_none()));
    }
    fn turn(&mut self) -> bool {
        let mut moved = false;
        while self.targets.len() < usize::from(self.session.links_wanted()) {
            let mut talk = Talk::new();
            talk.piece = self.piece;
            self.targets.push(talk);
            self.host.link = self.targets.len() - 1;
            self.session.on_connected(self.host.link as u16, &mut self.host);
            moved = true;
        }
        for link in 0..self.targets.len() {
            self.host.link = link;
            moved |= self.exchange(link);
        }
        self.host.link = 0;
        if !self.targets.is_empty() {
            self.session.on_link0(self.now, &mut self.host);
        }
        moved
    }
    fn exchange(&mut self, link: usize) -> bool {
        let mut moved = false;
        let segments: Vec<Slice> = self.host.outboxes[link].segments().collect();
        let target = &mut self.targets[link];
        for s in segments {
            target.staged.extend(self.host.memory.bytes(s));
            self.host.outboxes[link].on_sent(s.len, |_| ());
            moved = true;
        }
        self.session.on_sent(link as u16, &mut self.host);
        while target.feed() | target.head() {
            moved = true;
        }
        let n = target.io.outbox.pending() as u32;
        let bytes = target.io.sent(n);
        target.target.on_sent(target.now, &mut target.io);
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            moved = true;
            let (place, direct) = match self.session.want(link as u16) {
                Want::Direct(slice) => (slice, true),
                _ => (STAGING, false),
            };
            let n = bytes.len().min(place.len as usize).min(self.piece);
            let place = place.head(n as u32);
            self.host.memory.bytes_mut(place).copy_from_slice(&bytes[..n]);
            if direct {
                self.session.on_direct(link as u16, n as u32, &mut self.host);
            } else {
                self.session.on_bytes(self.now, link as u16, place, &mut self.host);
            }
            bytes = &bytes[n..];
        }
        moved
    }
    fn run(&mut self, op: Op, at: u64, blocks: u32, data: Slice) -> HostStatus {
        let command = HostCommand { id: 77, op, at, blocks, fua: false, data };
        self.host.link = 1;
        assert!(self.session.submit(1, &command, &mut self.host));
        self.settle();
        let (id, status) = self.host.done.pop().expect("it ended");
        assert_eq!((id, self.host.done.len()), (77, 0));
        status
    }
}

#[test]
fn our_host_and_our_target_understand_each_other() {
    for (digests, flow_control, piece) in [
        (false, true, 100_000),
        (true, true, 100_000),
        (true, false, 333),
        (false, false, 1),
        (true, true, 1),
    ] {
        let mut config = Config::new(HOST, [7; 16], NQN);
        config.header_digest = digests;
        config.data_digest = digests;
        config.flow_control = flow_control;
        config.queues = 1;
        let mut pair = Pair::new(config, piece);
        assert!(pair.session.is_ready());
        assert_eq!((pair.session.namespace().block_bytes, pair.session.namespace().blocks), (512, BLOCKS));
        let (from, to) = (DATA.head(1 << 16), DATA.tail(1 << 16));
        // In the capsule and by R2T.
        for (blocks, seed) in [(1, 1), (16, 2), (17, 3), (128, 4)] {
            let bytes = stamp(blocks as usize * 512, seed);
            let (from, to) = (from.head(blocks * 512), to.head(blocks * 512));
            pair.host.memory.bytes_mut(from).copy_from_slice(&bytes);
            assert_eq!(pair.run(Op::Write, 10, blocks, from), HostStatus::Good);
            assert_eq!(pair.run(Op::Compare, 10, blocks, from), HostStatus::Good);
            assert_eq!(pair.run(Op::Read, 10, blocks, to), HostStatus::Good);
            assert_eq!(pair.host.memory.bytes(to), bytes);
            assert_eq!(pair.targets[1].disk[5120..][..bytes.len()], bytes);
        }
        assert_eq!(pair.run(Op::Flush, 0, 0, Slice::default()), HostStatus::Good);
        let none = Slice::default();
        assert_eq!(pair.run(Op::WriteZeroes { deallocate: true }, 10, 8, none), HostStatus::Good);
        assert_eq!(pair.run(Op::Deallocate, 18, 8, none), HostStatus::Good);
        assert!(pair.targets[1].disk[5120..][..8192].iter().all(|b| *b == 0));
        assert!(matches!(pair.run(Op::Read, BLOCKS, 1, to.head(512)), HostStatus::Failed(_)));
        // A namespace that grows is noticed at once.
        let changes = pair.session.changes();
        pair.targets[0].new_view_quietly(|v| v.hosts[0].exports[0].blocks = 9000);
        pair.settle();
        assert_eq!((pair.session.changes(), pair.session.namespace().blocks), (changes + 1, 9000));
    }
}

#[test]
fn our_host_discovers_our_target() {
    let mut pair = Pair::new(Config::new(HOST, [7; 16], DISCOVERY_NQN), 1000);
    pair.settle();
    let found: Vec<_> =
        pair.session.records().iter().map(|r| (r.subtype, r.address.as_str(), r.port.as_str())).collect();
    assert_eq!(found, [(2, "192.168.1.1", "4420"), (2, "10.1.0.1", "4420"), (3, "192.168.1.1", "4420")]);
}
