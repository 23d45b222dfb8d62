//! Entry points for arbitrary bytes: they must not panic, and their memory is bounded.
//!
//! Used by the tests below with a fixed number of inputs, and by fuzzers for any time. The
//! host's end has its own in [`crate::host::fuzz`].

use crate::pdu::{Decoder, Digests, Header, Receiver};
use crate::spec::fabrics::{ConnectData, ConnectFields, DISCOVERY_NQN};
use crate::spec::{Sgl, Sqe, admin};
use crate::subsystem::{Connection, ConnectionConfig, OUTBOX_BYTES};
use base::fake::Head;
use base::front::{Close, Intervention};
use base::view::{Export, Host, PathState, Portal, Protocol, System, View};
use base::{Answer, Duration, HostId, Instant, Memory, PortalId, Slice, Status, VolumeId, Want};
use zerocopy::IntoBytes;

const NQN: &str = "nqn.fuzz:system";
const HOST: &str = "nqn.fuzz:host";
const BUFFER_BYTES: u32 = 8192;
const TAGS_MAX: usize = 16 + 4;

/// Feeds `data` to a decoder of either end, in pieces.
pub fn decoder(data: &[u8]) {
    let Some((&choice, mut bytes)) = data.split_first() else { return };
    let receiver = if choice & 1 == 0 { Receiver::Controller } else { Receiver::Host };
    let mut decoder = Decoder::new(receiver, 1 << 20);
    decoder.negotiated(Digests { header: choice & 2 != 0, data: choice & 4 != 0 }, choice >> 3);
    let piece = usize::from(choice >> 4) + 1;
    let mut skip = 0;
    while !bytes.is_empty() {
        let (now, rest) = bytes.split_at(piece.min(bytes.len()));
        let skipped = skip.min(now.len());
        skip -= skipped;
        let mut taken = skipped;
        while taken < now.len() {
            match decoder.push(&now[taken..]) {
                Err(_) => {
                    assert!(decoder.quote().len() <= 128);
                    return;
                }
                Ok((n, None)) => {
                    assert!(n == now.len() - taken, "it takes all while it wants more");
                    taken += n;
                }
                Ok((n, Some(incoming))) => {
                    assert!(incoming.data <= 1 << 20, "more data than were allowed");
                    taken += n;
                    let data = incoming.data as usize + if incoming.digest { 4 } else { 0 };
                    let here = data.min(now.len() - taken);
                    taken += here;
                    skip = data - here;
                    if let Header::IcReq(_) | Header::IcResp(_) = incoming.header {
                        decoder.negotiated(Digests::default(), 0);
                    }
                }
            }
        }
        bytes = rest;
    }
}

/// A conversation: the first byte chooses how far the host has come and how the head behaves, the rest is
/// what the host sends.
pub fn connection(data: &[u8]) {
    converse(data);
}

/// Gives the number of block commands that came through, and how the connection ended.
fn converse(data: &[u8]) -> (u32, Option<Close>) {
    let Some((&choice, bytes)) = data.split_first() else { return (0, None) };
    let mut world = World::new(choice);
    let digests = if choice & 4 == 0 { 0 } else { 3 };
    match choice & 3 {
        0 => {}
        1 => world.log_in(digests, 0, NQN),
        2 => world.log_in(digests, 1, NQN),
        _ => world.log_in(digests, 0, DISCOVERY_NQN),
    }
    // Byte by byte costs a turn each: only where there are few.
    let smallest = if bytes.len() < 600 { 1 } else { 300 };
    let piece = [smallest, 500, 1111, 8192][usize::from(choice >> 6)];
    for (i, piece) in bytes.chunks(piece).enumerate() {
        world.feed(piece);
        world.turn(i);
        if world.io.closed.is_some() {
            return (world.done, world.io.closed);
        }
    }
    // Time passes: a connection with half a PDU ends.
    for _ in 0..50 {
        world.turn(usize::MAX);
        world.now = world.now + Duration::from_secs(5);
        if world.io.closed.is_some() {
            return (world.done, world.io.closed);
        }
        if world.target.next_deadline().is_some_and(|d| d <= world.now) {
            world.target.on_timer(world.now, &mut world.io);
        }
    }
    (world.done, world.io.closed)
}

struct World {
    target: Connection,
    io: Head,
    now: Instant,
    staged: Vec<u8>,
    done: u32,
    /// The head is short of buffers.
    poor: bool,
}

impl World {
    fn new(choice: u8) -> Self {
        let export = |nsid| Export {
            nsid,
            volume: VolumeId(nsid),
            block_bytes: 512,
            blocks: 1000,
            deallocate: true,
            ready: true,
            ..Export::default()
        };
        let portal = Portal {
            id: PortalId(0),
            protocol: Protocol::Nvme,
            address: ([0, 0, 0, 0], 4420).into(),
            head: 0,
            moves: None,
        };
        let view = View {
            generation: 1,
            system: System { nqn: NQN.into(), ..System::default() },
            portals: vec![portal],
            hosts: vec![Host {
                id: HostId(1),
                nqns: vec![HOST.into()],
                exports: vec![export(1), export(2)],
                ..Host::default()
            }],
            paths: (choice & 16 != 0).then(Default::default),
            ..View::default()
        };
        let address = ([127, 0, 0, 1], 4420).into();
        let config = ConnectionConfig {
            local: address,
            peer: address,
            portal,
            queue_depth_max: 32,
            io_queues_max: 2,
            seed: 1,
        };
        let mut io = Head::new(view, OUTBOX_BYTES, 3, BUFFER_BYTES);
        let poor = choice & 8 != 0;
        io.withholds_buffers = poor;
        Self { target: Connection::new(config), io, now: Instant(1), staged: Vec::new(), done: 0, poor }
    }
    fn log_in(&mut self, digests: u8, queue: u16, subsystem: &str) {
        let digests = Digests { header: digests & 1 != 0, data: digests & 2 != 0 };
        let request = crate::pdu::IcReq { digests, ..Default::default() };
        self.feed(&crate::pdu::encode::ic_req(request));
        let mut fields = ConnectFields::of(&Sqe::new(admin::FABRICS, 0));
        fields.fctype = 1;
        fields.sgl = Sgl::in_capsule(1024);
        fields.qid = queue.into();
        fields.sqsize = 15.into();
        let data = ConnectData::new([1; 16], if queue == 0 { 0xffff } else { 1 }, subsystem, HOST);
        self.feed(&crate::pdu::encode::command(&fields.sqe(), 1024, digests, 0));
        self.feed(data.as_bytes());
        if digests.data {
            self.feed(&base::crc::crc32c(data.as_bytes()).to_le_bytes());
        }
        self.turn(usize::MAX);
        assert!(self.io.admitted.is_some(), "the fuzzer logs in properly");
        if queue == 0 {
            let mut enable = crate::spec::PropertyFields::of(&Sqe::new(admin::FABRICS, 1));
            enable.offset = crate::spec::fabrics::property::CC.into();
            enable.value = u64::from(crate::spec::fabrics::property::CC_HOST).into();
            self.feed(&crate::pdu::encode::command(&enable.sqe(), 0, digests, 0));
        }
        self.turn(usize::MAX);
    }
    fn feed(&mut self, bytes: &[u8]) {
        self.staged.extend_from_slice(bytes);
        self.offer();
    }
    fn offer(&mut self) {
        while !self.staged.is_empty() && self.io.closed.is_none() {
            let n = match self.target.want() {
                Want::Nothing => return,
                Want::Direct(slice) => {
                    let n = self.staged.len().min(slice.len as usize);
                    let place = Slice::new(slice.at, n as u32);
                    self.io.memory.bytes_mut(place).copy_from_slice(&self.staged[..n]);
                    self.target.on_direct(self.now, n as u32, &mut self.io);
                    n
                }
                Want::Header(most) => {
                    let n = self.staged.len().min(most as usize);
                    self.target.on_bytes(self.now, &self.staged[..n], &mut self.io)
                }
                Want::Staging => self.target.on_bytes(self.now, &self.staged, &mut self.io),
            };
            if n == 0 {
                return;
            }
            self.staged.drain(..n);
        }
    }
    /// The head does some of what it could do; all of it if `i` is the largest number.
    fn turn(&mut self, i: usize) {
        let all = i == usize::MAX;
        for round in 0..if all { 100 } else { 1 } {
            if self.io.closed.is_some() {
                return;
            }
            assert!(self.io.under_way() <= 2 * TAGS_MAX, "more under way than the queue has entries");
            let mut moved = self.io.outbox.pending() > 0;
            if self.io.asks.pop_front().is_some() {
                moved = true;
                self.target.on_answer(self.now, Answer::Admitted { id: 1 }, &mut self.io);
            }
            if let Some((key, _)) = self.io.interventions.pop_front() {
                moved = true;
                self.target.on_intervened(self.now, key, i.is_multiple_of(2), &mut self.io);
            }
            if i % 8 == 3 && self.io.closed.is_none() {
                let what = Intervention::AbortCommand { queue: 1, cid: i as u16 / 8 };
                self.target.on_intervention(self.now, i as u32, &what, &mut self.io);
            }
            if self.io.closed.is_some() {
                return;
            }
            if let Some(tag) = self.io.take_aborted() {
                self.target.on_done(self.now, tag, Status::Aborted, &mut self.io);
            }
            if (!self.poor || all || i.is_multiple_of(3))
                && let Some((tag, slice)) = self.io.grant()
            {
                moved = true;
                self.target.on_granted(self.now, tag, slice, &mut self.io);
            }
            if self.io.closed.is_none()
                && let Some((tag, command, _)) = self.io.take_submitted(0)
            {
                self.done += 1;
                moved = true;
                let status = if command.at.is_multiple_of(7) { Status::NotReady } else { Status::Good };
                self.target.on_done(self.now, tag, status, &mut self.io);
            }
            let n = if all { self.io.outbox.pending() } else { self.io.outbox.pending().min(100) };
            self.io.sent(n as u32);
            if self.io.closed.is_none() {
                self.target.on_sent(self.now, &mut self.io);
            }
            if self.io.closed.is_none() && i % 50 == 49 {
                self.io.view.generation += 1;
                self.io.view.hosts[0].exports[0].blocks += round as u64 + 1;
                let odd = self.io.view.generation % 2 == 1;
                let state = if odd { PathState::Optimized } else { PathState::NonOptimized };
                self.io.view.paths.iter_mut().for_each(|paths| paths[0] = state);
                self.target.on_view(self.now, &mut self.io);
            }
            self.offer();
            if !moved {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::{IcReq, Transfer, encode};
    use crate::spec::nvm;
    use base::Prng;
    use base::crc::crc32c;

    /// PDUs that make sense, mutated now and then, among plain noise.
    fn conversation(random: &mut Prng, out: &mut Vec<u8>) {
        out.clear();
        // Most hosts have logged in, one way or the other.
        let choice = random.next_u64() as u8 & !3 | *random.pick(&[0, 1, 1, 1, 2, 2, 2, 2, 3]);
        out.push(choice);
        let mut commands = 0u16;
        let mut written = None;
        let both = choice & 4 != 0;
        let digests = Digests { header: both, data: both };
        for _ in 0..random.between(1, 12) {
            let from = out.len();
            let cid = random.below(20) as u16 + 2;
            let kind = random.below(100);
            if kind == 0 || choice & 3 == 0 && out.len() == 1 {
                out.extend_from_slice(&encode::ic_req(IcReq { digests, ..IcReq::default() }));
            } else if kind < 3 {
                let noise = random.below(100) as usize;
                out.resize(from + noise, 0);
                random.fill(&mut out[from..]);
            } else if kind < 5 || written.is_some() {
                let length = *random.pick(&[512, 1024, 4096]);
                let offset = *random.pick(&[0, 0, 512, 4096]);
                let ttag = random.below(16) as u16;
                let t = Transfer { cccid: cid, ttag, offset, length };
                let t = written.take().filter(|_| kind >= 10).unwrap_or(t);
                let length = t.length;
                out.extend_from_slice(&encode::h2c_data(t, random.chance(19, 20), digests, 0));
                put(out, &vec![1; length as usize], both);
            } else {
                let io = [
                    nvm::READ,
                    nvm::WRITE,
                    nvm::WRITE,
                    nvm::FLUSH,
                    nvm::COMPARE,
                    nvm::WRITE_ZEROES,
                    nvm::DATASET_MANAGEMENT,
                ];
                let control = [
                    admin::IDENTIFY,
                    admin::GET_LOG_PAGE,
                    admin::SET_FEATURES,
                    admin::GET_FEATURES,
                    admin::ASYNC_EVENT,
                    admin::ABORT,
                    admin::KEEP_ALIVE,
                    admin::CROSS_CONTROLLER_RESET,
                    admin::FABRICS,
                ];
                let opcode = if choice & 3 == 2 { *random.pick(&io) } else { *random.pick(&control) };
                let mut sqe = Sqe::new(opcode, cid);
                sqe.nsid = (*random.pick(&[0, 1, 1, 1, 2, 3, 0xffff_ffff])).into();
                sqe.cdw10 = (random.below(24) as u32 | (random.below(600) as u32) << 16).into();
                sqe.cdw11 = (random.below(8) as u32).into();
                let mut length = *random.pick(&[0, 16, 512, 512, 1024, 4096, 4096, 1 << 20]);
                if choice & 3 == 2 && opcode != nvm::DATASET_MANAGEMENT {
                    let blocks = *random.pick(&[1, 2, 8, 8, 9]);
                    sqe.set_range(random.below(900), blocks);
                    length = if random.chance(9, 10) { blocks * 512 } else { length };
                }
                let capsule = random.chance(1, 2) && length <= 8192 && opcode != nvm::READ;
                if !capsule && matches!(opcode, nvm::WRITE | nvm::COMPARE) && choice & 3 == 2 {
                    written = Some(Transfer { cccid: cid, ttag: commands % 16, offset: 0, length });
                }
                commands += 1;
                sqe.sgl = if capsule { Sgl::in_capsule(length) } else { Sgl::transport(length) };
                let data = if capsule { length } else { 0 };
                out.extend_from_slice(&encode::command(&sqe, data, digests, 0));
                put(out, &vec![0; data as usize], both);
            }
            if random.chance(1, 30) && out.len() > from {
                let at = from + random.below((out.len() - from).min(80) as u64) as usize;
                out[at] ^= 1 << random.below(8);
            }
        }
    }

    fn put(out: &mut Vec<u8>, data: &[u8], digest: bool) {
        out.extend_from_slice(data);
        if digest && !data.is_empty() {
            out.extend_from_slice(&crc32c(data).to_le_bytes());
        }
    }

    #[test]
    fn no_conversation_makes_the_target_panic_or_grow() {
        let mut random = Prng::new(1);
        let mut bytes = Vec::new();
        let (mut done, mut broken, mut slow) = (0, 0, 0);
        for _ in 0..60_000 {
            conversation(&mut random, &mut bytes);
            let (commands, end) = converse(&bytes);
            done += commands;
            match end {
                Some(Close::Protocol(_)) => broken += 1,
                Some(Close::Slow) => slow += 1,
                _ => {}
            }
        }
        // The noise reaches deep enough to mean something.
        assert!(done > 15_000 && broken > 5_000 && slow > 500, "{done} {broken} {slow}");
    }

    #[test]
    fn no_bytes_make_a_decoder_panic() {
        let mut random = Prng::new(2);
        let mut bytes = Vec::new();
        for i in 0..140_000 {
            if i % 2 == 0 {
                conversation(&mut random, &mut bytes);
            } else {
                bytes.resize(random.between(1, 300) as usize, 0);
                random.fill(&mut bytes);
            }
            decoder(&bytes);
        }
    }
}
