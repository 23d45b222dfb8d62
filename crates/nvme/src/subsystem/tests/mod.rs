//! Whole conversations with a target, byte by byte, over a head made of plain memory.

mod aborts;
mod ana;
mod block;
mod both;
mod control;
mod faults;
mod login;
mod resets;

use super::{Connection, ConnectionConfig, OUTBOX_BYTES};
use crate::pdu::{Decoder, DigestReader, Digests, Header, IcReq, Incoming, Receiver, Transfer, encode};
use crate::spec::fabrics::property;
use crate::spec::{
    ConnectData, ConnectFields, Cqe, DISCOVERY_NQN, PropertyFields, Sgl, Sqe, StatusField, admin,
};
use base::crc::crc32c;
use base::fake::{Head, carry_out};
use base::front::Close;
use base::view::{Export, Host, Portal, Protocol, System, View};
use base::{
    Answer, Ask, Command, Duration, FrontIo, HostId, Instant, Memory, Op, PortalId, Status, Uuid, VolumeId,
    Want,
};
use std::collections::VecDeque;
use zerocopy::{FromBytes, IntoBytes};

const NQN: &str = "nqn.2026-01.io.millrace:system";
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:aaaa";
const STRANGER: &str = "nqn.2014-08.org.nvmexpress:uuid:bbbb";
const BOTH: Digests = Digests { header: true, data: true };
const NONE: Digests = Digests { header: false, data: false };
const BLOCKS: u64 = 4096;

fn export(nsid: u32, block_bytes: u32) -> Export {
    Export {
        nsid,
        lun: nsid as u16,
        volume: VolumeId(nsid * 10),
        name: format!("tank/v{nsid}"),
        uuid: Uuid([nsid as u8; 16]),
        nguid: [nsid as u8 + 100; 16],
        naa: [0; 16],
        block_bytes,
        blocks: BLOCKS,
        deallocate: true,
        ready: true,
    }
}

fn portal(id: u32, protocol: Protocol, address: &str) -> Portal {
    Portal { id: PortalId(id), protocol, address: address.parse().expect("an address"), head: 0, moves: None }
}

/// A portal on every address.
fn usual() -> Portal {
    portal(0, Protocol::Nvme, "0.0.0.0:4420")
}

fn view() -> View {
    View {
        generation: 7,
        system: System {
            nqn: NQN.into(),
            serial: "SERIAL".into(),
            model: "Millrace".into(),
            firmware: "0.1".into(),
            ..System::default()
        },
        portals: vec![
            portal(0, Protocol::Nvme, "0.0.0.0:4420"),
            portal(1, Protocol::Discovery, "0.0.0.0:8009"),
            portal(2, Protocol::Iscsi, "0.0.0.0:3260"),
            portal(3, Protocol::Nvme, "10.1.0.1:4420"),
            portal(4, Protocol::Nvme, "127.0.0.1:4421"),
        ],
        hosts: vec![Host {
            id: HostId(3),
            name: "esx1".into(),
            nqns: vec![HOST.into()],
            exports: vec![export(1, 512), export(2, 4096)],
            ..Host::default()
        }],
        ..View::default()
    }
}

/// What came back: a header, its data, whether its data digest was right.
#[derive(Clone, PartialEq, Debug)]
struct Reply {
    header: Header,
    data: Vec<u8>,
}

/// A host without any sense, and a head, around one connection.
struct Talk {
    target: Connection,
    io: Head,
    now: Instant,
    digests: Digests,
    hpda: u8,
    decoder: Decoder,
    /// Bytes for the target that it has not taken.
    staged: VecDeque<u8>,
    /// Most bytes of one piece, in either direction.
    piece: usize,
    replies: VecDeque<Reply>,
    came: Vec<u8>,
    /// Commands stay with the head until the test releases them.
    hold: bool,
    /// Buffers stay with the head until the test releases them.
    hold_grants: bool,
    /// What it wants of I/O queues waits until the test answers it; else they say this.
    hold_interventions: bool,
    yes: bool,
    /// Nothing is sent until the test says so.
    stuck: bool,
    answer: Option<Answer>,
    disk: Vec<u8>,
    done: Vec<Command>,
    cid: u16,
}

impl Talk {
    fn at(portal: Portal) -> Self {
        Self::sized(portal, 128, 1 << 17, 1 << 21)
    }
    fn sized(portal: Portal, queue_depth_max: u16, buffer_bytes: u32, disk_bytes: usize) -> Self {
        let config = ConnectionConfig {
            local: "192.168.1.1:4420".parse().expect("an address"),
            peer: "192.168.1.9:50000".parse().expect("an address"),
            portal,
            queue_depth_max,
            io_queues_max: 8,
            seed: 1,
        };
        Self {
            target: Connection::new(config),
            io: Head::new(view(), OUTBOX_BYTES, 4, buffer_bytes),
            now: Instant(1_000_000_000),
            digests: NONE,
            hpda: 0,
            decoder: Decoder::new(Receiver::Host, 1 << 20),
            staged: VecDeque::new(),
            piece: usize::MAX,
            replies: VecDeque::new(),
            came: Vec::new(),
            hold: false,
            hold_grants: false,
            hold_interventions: false,
            yes: false,
            stuck: false,
            answer: Some(Answer::Admitted { id: 5 }),
            disk: vec![0; disk_bytes],
            done: Vec::new(),
            cid: 0,
        }
    }
    fn new() -> Self {
        Self::at(usual())
    }
    fn initialized(digests: Digests, hpda: u8) -> Self {
        let mut t = Self::new();
        t.initialize(digests, hpda);
        t
    }
    fn initialize(&mut self, digests: Digests, hpda: u8) {
        self.hpda = hpda;
        self.send(&encode::ic_req(IcReq { pfv: 0, hpda, digests, maxr2t: 0 }));
        let reply = self.reply();
        let Header::IcResp(response) = reply.header else { panic!("{reply:?}") };
        assert_eq!((response.pfv, response.cpda, response.digests), (0, 0, digests));
        assert!(response.maxh2cdata >= 4096);
        self.digests = digests;
    }
    /// An enabled admin queue.
    fn admin() -> Self {
        Self::new().into_admin()
    }
    fn into_admin(self) -> Self {
        let mut t = self;
        t.initialize(NONE, 0);
        assert_eq!(t.connect(connect(0), data(0xffff, NQN, HOST)), StatusField::SUCCESS);
        t.enable();
        t
    }
    fn discovery(host: &str) -> Self {
        let mut t = Self::initialized(NONE, 0);
        assert_eq!(t.connect(connect(0), data(0xffff, DISCOVERY_NQN, host)), StatusField::SUCCESS);
        t.enable();
        t
    }
    /// An I/O queue.
    fn io(digests: Digests, hpda: u8) -> Self {
        let mut t = Self::initialized(digests, hpda);
        assert_eq!(t.connect(connect(1), data(5, NQN, HOST)), StatusField::SUCCESS);
        t
    }
    fn connect(&mut self, mut fields: ConnectFields, data: ConnectData) -> StatusField {
        self.cid += 1;
        fields.cid = self.cid.into();
        self.capsule(&fields.sqe(), data.as_bytes());
        self.cqe().status()
    }
    fn enable(&mut self) {
        assert_eq!(self.set_property(property::CC, 0, u64::from(property::CC_HOST)), StatusField::SUCCESS);
        assert_eq!(self.get_property(property::CSTS, 0), Ok(1));
    }
    fn set_property(&mut self, offset: u32, attrib: u8, value: u64) -> StatusField {
        let mut p = PropertyFields::of(&Sqe::new(admin::FABRICS, 0));
        p.attrib = attrib;
        p.offset = offset.into();
        p.value = value.into();
        self.run(p.sqe()).status()
    }
    fn get_property(&mut self, offset: u32, attrib: u8) -> Result<u64, StatusField> {
        let mut p = PropertyFields::of(&Sqe::new(admin::FABRICS, 0));
        p.fctype = 4;
        p.attrib = attrib;
        p.offset = offset.into();
        let cqe = self.run(p.sqe());
        if cqe.status().is_good() { Ok(cqe.result()) } else { Err(cqe.status()) }
    }

    /// Sends a command with in-capsule data.
    fn capsule(&mut self, sqe: &Sqe, data: &[u8]) {
        let mut bytes = encode::command(sqe, data.len() as u32, self.digests, 0).to_vec();
        self.add_data(&mut bytes, data);
        self.send(&bytes);
    }
    fn add_data(&self, bytes: &mut Vec<u8>, data: &[u8]) {
        bytes.extend_from_slice(data);
        if self.digests.data && !data.is_empty() {
            bytes.extend_from_slice(&crc32c(data).to_le_bytes());
        }
    }
    fn h2c(&mut self, t: Transfer, last: bool, data: &[u8]) {
        let mut bytes = encode::h2c_data(t, last, self.digests, 0).to_vec();
        self.add_data(&mut bytes, data);
        self.send(&bytes);
    }
    /// Sends a command without data under the next identifier and takes its completion.
    fn run(&mut self, sqe: Sqe) -> Cqe {
        let cid = self.start(sqe);
        let cqe = self.cqe();
        assert_eq!(cqe.cid.get(), cid);
        cqe
    }
    fn start(&mut self, mut sqe: Sqe) -> u16 {
        self.cid += 1;
        sqe.cid = self.cid.into();
        self.capsule(&sqe, &[]);
        self.cid
    }
    /// A command that gives data: them and the status.
    fn read(&mut self, mut sqe: Sqe, length: u32) -> Result<Vec<u8>, StatusField> {
        sqe.sgl = Sgl::transport(length);
        let cid = self.start(sqe);
        let mut out = Vec::new();
        loop {
            let reply = self.reply();
            match reply.header {
                Header::Data { transfer, last, success } => {
                    assert_eq!((transfer.cccid, transfer.offset as usize), (cid, out.len()));
                    out.extend_from_slice(&reply.data);
                    assert_eq!(last, out.len() == length as usize);
                    if success {
                        return Ok(out);
                    }
                }
                Header::Response(cqe) => {
                    assert_eq!(cqe.cid.get(), cid);
                    return if cqe.status().is_good() { Ok(out) } else { Err(cqe.status()) };
                }
                other => panic!("{other:?}"),
            }
        }
    }
    /// A command whose data travel in the capsule.
    fn write(&mut self, mut sqe: Sqe, data: &[u8]) -> StatusField {
        self.cid += 1;
        sqe.cid = self.cid.into();
        sqe.sgl = Sgl::in_capsule(data.len() as u32);
        self.capsule(&sqe, data);
        self.cqe().status()
    }
    fn r2t(&mut self) -> Transfer {
        let reply = self.reply();
        let Header::R2t(t) = reply.header else { panic!("{reply:?}") };
        t
    }
    fn cqe(&mut self) -> Cqe {
        let reply = self.reply();
        let Header::Response(cqe) = reply.header else { panic!("{reply:?}") };
        cqe
    }
    fn reply(&mut self) -> Reply {
        self.replies.pop_front().unwrap_or_else(|| panic!("no reply; closed: {:?}", self.io.closed))
    }

    fn send(&mut self, bytes: &[u8]) {
        self.staged.extend(bytes);
        self.settle();
    }
    /// Lets everything happen that can.
    fn settle(&mut self) {
        loop {
            let mut moved = self.feed();
            moved |= self.head();
            moved |= !self.stuck && self.drain();
            if !moved {
                break;
            }
        }
    }
    fn feed(&mut self) -> bool {
        if self.io.closed.is_some() {
            return false;
        }
        let n = self.staged.len().min(self.piece);
        let want = self.target.want();
        match want {
            Want::Nothing => false,
            _ if n == 0 => false,
            Want::Direct(slice) => {
                let n = n.min(slice.len as usize);
                let bytes: Vec<u8> = self.staged.drain(..n).collect();
                self.io.memory.bytes_mut(slice.head(n as u32)).copy_from_slice(&bytes);
                self.target.on_direct(self.now, n as u32, &mut self.io);
                true
            }
            Want::Staging | Want::Header(_) => {
                let n = if let Want::Header(most) = want { n.min(most as usize) } else { n };
                let bytes: Vec<u8> = self.staged.iter().copied().take(n).collect();
                let taken = self.target.on_bytes(self.now, &bytes, &mut self.io);
                self.staged.drain(..taken);
                taken > 0
            }
        }
    }
    fn head(&mut self) -> bool {
        let mut moved = false;
        if self.io.closed.is_some() {
            return false;
        }
        if !self.io.asks.is_empty()
            && let Some(answer) = self.answer
        {
            self.io.asks.pop_front();
            self.target.on_answer(self.now, answer, &mut self.io);
            moved = true;
        }
        if !self.hold_interventions
            && let Some((key, _)) = self.io.interventions.pop_front()
        {
            self.target.on_intervened(self.now, key, self.yes, &mut self.io);
            moved = true;
        }
        if let Some(tag) = self.io.take_aborted() {
            self.target.on_done(self.now, tag, Status::Aborted, &mut self.io);
            moved = true;
        }
        if !self.hold_grants
            && let Some((tag, slice)) = self.io.grant()
        {
            self.target.on_granted(self.now, tag, slice, &mut self.io);
            moved = true;
        }
        moved | (!self.hold && self.complete(None))
    }
    /// Carries out (or fails) the oldest command.
    fn complete(&mut self, status: Option<Status>) -> bool {
        let Some((tag, command, slice)) = self.io.take_submitted(0) else { return false };
        let status = status.unwrap_or_else(|| self.carry_out(command, slice));
        self.done.push(command);
        self.target.on_done(self.now, tag, status, &mut self.io);
        true
    }
    fn carry_out(&mut self, command: Command, data: base::Slice) -> Status {
        let block_bytes = if command.volume == VolumeId(10) { 512 } else { 4096 };
        carry_out(&mut self.disk, block_bytes, &command, self.io.memory.bytes_mut(data))
    }
    fn drain(&mut self) -> bool {
        let n = self.io.outbox.pending().min(self.piece as u64) as u32;
        let bytes = self.io.sent(n);
        self.came.extend_from_slice(&bytes);
        if n > 0 && self.io.closed.is_none() {
            self.target.on_sent(self.now, &mut self.io);
        }
        while let Some(reply) = self.parse() {
            self.replies.push_back(reply);
        }
        n > 0
    }
    /// The next whole PDU of what came; its digests are checked.
    fn parse(&mut self) -> Option<Reply> {
        if self.came.len() < 8 {
            return None;
        }
        let plen = u32::from_le_bytes(self.came[4..8].try_into().expect("four bytes")) as usize;
        if self.came.len() < plen {
            return None;
        }
        let pdu: Vec<u8> = self.came.drain(..plen).collect();
        let (n, incoming) = self.decoder.push(&pdu).expect("the target speaks well");
        let Incoming { header, data, digest } = incoming.expect("a whole header");
        if let Header::IcResp(response) = header {
            self.decoder.negotiated(response.digests, self.hpda);
        }
        let (data, rest) = pdu[n..].split_at(data as usize);
        if digest {
            assert_eq!(DigestReader::default().push(rest).1, Some(crc32c(data)));
        } else {
            assert!(rest.is_empty());
        }
        Some(Reply { header, data: data.to_vec() })
    }
    fn later(&mut self, time: Duration) {
        self.now = self.now + time;
        while self.io.closed.is_none() && self.target.next_deadline().is_some_and(|d| d <= self.now) {
            self.target.on_timer(self.now, &mut self.io);
        }
        self.settle();
    }
    fn new_view(&mut self, change: impl FnOnce(&mut View)) {
        self.new_view_quietly(change);
        self.settle();
    }
    /// Leaves what the target says about it in its outbox.
    fn new_view_quietly(&mut self, change: impl FnOnce(&mut View)) {
        self.io.view.generation += 1;
        change(&mut self.io.view);
        self.target.on_view(self.now, &mut self.io);
    }
    /// The target ended the connection with a TermReq: its FES and FEI.
    fn term(&mut self) -> (u16, u32) {
        let reply = self.replies.pop_back().expect("a TermReq");
        let Header::Term(term) = reply.header else { panic!("{reply:?}") };
        assert!(matches!(self.io.closed, Some(Close::Protocol(_))), "{:?}", self.io.closed);
        (term.fes, term.fei)
    }
}

fn connect(queue: u16) -> ConnectFields {
    let mut f = ConnectFields::of(&Sqe::new(admin::FABRICS, 0));
    f.fctype = 1;
    f.sgl = Sgl::in_capsule(1024);
    f.qid = queue.into();
    f.sqsize = 31.into();
    f.kato = if queue == 0 { 5000.into() } else { 0.into() };
    f
}

fn data(controller: u16, subsystem: &str, host: &str) -> ConnectData {
    ConnectData::new([9; 16], controller, subsystem, host)
}

fn ranged(opcode: u8, nsid: u32, lba: u64, blocks: u32) -> Sqe {
    let mut sqe = Sqe::new(opcode, 0);
    sqe.nsid = nsid.into();
    sqe.set_range(lba, blocks);
    sqe
}

fn stamp(n: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; n];
    base::Prng::new(seed).fill(&mut out);
    out
}

fn of<T: FromBytes>(bytes: &[u8]) -> T {
    T::read_from_bytes(bytes).expect("the structure's length")
}
