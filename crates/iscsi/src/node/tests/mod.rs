//! Whole conversations with the target, over a head that is plain memory.

mod bad;
mod data;
mod login;
mod paths;
mod session;
mod view;

use super::{Connection, ConnectionConfig, OUTBOX_BYTES};
use crate::pdu::{
    BHS_BYTES, Bhs, DataIn, DataOut, Framing, LoginRequest, LoginResponse, Response, ScsiCommand,
    ScsiResponse, Stage, ahs_len, data_len, padding,
};
use crate::text;
use base::fake::{Head, carry_out};
use base::front::{Answer, TRANSFER_MAX};
use base::view::View;
use base::{Command, FrontIo, Instant, Memory, Prng, Status, Tag, Want};
use view::{INITIATOR, IQN};

const BLOCKS: u64 = 20_000;
/// As many as there can be commands.
const BUFFERS: u32 = 24;

/// A host that speaks to one connection.
struct Talk {
    connection: Connection,
    io: Head,
    /// The volumes.
    disks: [Vec<u8>; 2],
    now: Instant,
    framing: Framing,
    cmd_sn: u32,
    tag: u32,
    unread: Vec<u8>,
    /// What the Steward says.
    answer: Answer,
    /// Ended commands are reported at once.
    prompt: bool,
    /// The Steward answers.
    answers: bool,
    /// Other sessions do at once what is wanted of them.
    agreeable: bool,
    /// At most so many bytes at a time.
    split: usize,
    /// What came and was not heard yet.
    came: Vec<u8>,
    /// Bytes were sent that the connection does not know of.
    sent: bool,
    /// What the next commands end in, instead of being carried out.
    outcome: Option<Status>,
    /// Commands that have ended.
    log: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq)]
struct Heard {
    response: Response,
    data: Vec<u8>,
}

impl Talk {
    fn new() -> Self {
        Self::with(|_| {}, OUTBOX_BYTES)
    }
    fn with(change: impl Fn(&mut View), ring: u32) -> Self {
        let mut view = view::view(BLOCKS);
        change(&mut view);
        let config = ConnectionConfig {
            local: "127.0.0.1:3260".parse().expect("an address"),
            peer: "127.0.0.1:9".parse().expect("an address"),
            portal: view::portal(),
            seed: 9,
            commands_max: BUFFERS as u16,
        };
        Self {
            connection: Connection::new(config),
            io: Head::new(view, ring, BUFFERS, 2 * TRANSFER_MAX),
            disks: [vec![0; BLOCKS as usize * 512], vec![0; BLOCKS as usize * 512]],
            now: Instant(1),
            framing: Framing::default(),
            cmd_sn: 1,
            tag: 100,
            unread: vec![],
            answer: Answer::Admitted { id: 7 },
            prompt: true,
            answers: true,
            agreeable: true,
            split: usize::MAX,
            came: vec![],
            sent: false,
            outcome: None,
            log: vec![],
        }
    }

    /// Logged in with these operational keys, unit attentions reported.
    fn ready(keys: &[(&str, &str)]) -> Self {
        let mut talk = Self::new();
        talk.login(keys);
        talk.clear_attentions();
        talk
    }
    fn login(&mut self, keys: &[(&str, &str)]) {
        let names = [("InitiatorName", INITIATOR), ("TargetName", IQN)];
        let all: Vec<_> = names.iter().chain(keys).copied().collect();
        let answer = self.login_step(Stage::Operational, Some(Stage::FullFeature), &all);
        assert_eq!((answer.0.status, answer.0.transit, answer.0.tsih), (0, true, 7));
        let on = |key| keys.contains(&(key, "CRC32C"));
        self.framing = Framing { header_digest: on("HeaderDigest"), data_digest: on("DataDigest") };
    }
    fn clear_attentions(&mut self) {
        for lun in [0, 300] {
            let (response, _) = self.simple(lun, &[0; 6], 0);
            assert_eq!(response.status, 2);
        }
    }

    /// One login request and its answer.
    fn login_step(
        &mut self,
        current: Stage,
        next: Option<Stage>,
        keys: &[(&str, &str)],
    ) -> (LoginResponse, Vec<(String, String)>) {
        let mut data = vec![];
        for (key, value) in keys {
            text::put(&mut data, key, value);
        }
        let request = LoginRequest {
            transit: next.is_some(),
            current,
            next: next.unwrap_or(Stage::Security),
            isid: [0x40, 1, 2, 3, 4, 5],
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 50,
            ..LoginRequest::default()
        };
        self.send(request.encode(), &data);
        let Some(Heard { response: Response::Login(response), data }) = self.hear() else {
            panic!("no login response; closed: {:?}", self.io.closed)
        };
        let pairs = text::pairs(&data).map(|p| p.expect("pairs"));
        (response, pairs.map(|p| (p.key.to_owned(), p.value.to_owned())).collect())
    }

    fn send(&mut self, bhs: Bhs, data: &[u8]) {
        let mut bytes = vec![];
        self.framing.put(&mut bytes, bhs, data);
        self.feed(&bytes);
    }

    /// Gives bytes to the connection as the head would, and lets the head work.
    fn feed(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            if self.io.closed.is_some() {
                return;
            }
            if self.answers && self.io.asks.pop_front().is_some() {
                self.connection.on_answer(self.now, self.answer, &mut self.io);
            } else if self.agreeable && !self.io.interventions.is_empty() {
                let (key, _) = self.io.interventions.pop_front().expect("there is one");
                self.connection.on_intervened(self.now, key, true, &mut self.io);
            } else if self.prompt && !self.io.submitted.is_empty() {
                self.end_one();
            } else if self.take_sent() {
                self.sent = false;
                self.connection.on_sent(self.now, &mut self.io);
            } else {
                let n = self.unread.len().min(self.split);
                let took = match self.connection.want() {
                    _ if n == 0 => 0,
                    Want::Nothing => 0,
                    Want::Direct(slice) => {
                        let n = n.min(slice.len as usize);
                        self.io.bytes_mut(slice.head(n as u32)).copy_from_slice(&self.unread[..n]);
                        self.connection.on_direct(self.now, n as u32, &mut self.io);
                        n
                    }
                    Want::Staging | Want::Header(_) => {
                        self.connection.on_bytes(self.now, &self.unread[..n], &mut self.io)
                    }
                };
                self.unread.drain(..took);
                if took == 0 && self.io.outbox.pending() == 0 && (self.io.asks.is_empty() || !self.answers) {
                    return;
                }
            }
        }
    }
    /// Takes what is in the outbox; whether the connection gets an event that something was sent.
    fn take_sent(&mut self) -> bool {
        let n = self.io.outbox.pending() as u32;
        let bytes = self.io.sent(n);
        self.came.extend_from_slice(&bytes);
        self.sent |= n > 0;
        self.sent
    }
    /// Carries out the oldest command: its tag and how it ended.
    fn carry_out(&mut self) -> (Tag, Status) {
        let (tag, command, data) = self.io.take_submitted(0).expect("a command runs");
        self.log.push(command);
        if self.io.take_stopped(tag) {
            return (tag, Status::Aborted);
        }
        let volume = command.volume.index();
        let status = self.outcome.unwrap_or_else(|| {
            let data = self.io.memory.bytes_mut(data);
            carry_out(&mut self.disks[volume], [512, 4096][volume], &command, data)
        });
        (tag, status)
    }
    fn end_one(&mut self) {
        let (tag, status) = self.carry_out();
        self.connection.on_done(self.now, tag, status, &mut self.io);
    }
    fn grant_one(&mut self) {
        let (tag, slice) = self.io.grant().expect("a tag waits");
        self.connection.on_granted(self.now, tag, slice, &mut self.io);
        self.settle();
    }

    /// The next PDU from the target; its digests are checked.
    fn hear(&mut self) -> Option<Heard> {
        self.take_sent();
        let out = &self.came;
        if out.len() < BHS_BYTES {
            assert!(out.is_empty(), "half a PDU");
            return None;
        }
        let bhs: Bhs = out[..BHS_BYTES].try_into().expect("a header");
        assert_eq!(ahs_len(&bhs), 0);
        let (head, len) = (self.framing.header_len(0), data_len(&bhs) as usize);
        let data = out[head..head + len].to_vec();
        let whole = head + len + self.framing.trailer_len(len as u32);
        let mut again = vec![];
        self.framing.put(&mut again, bhs, &data);
        assert_eq!(again, out[..whole], "digests and padding are right");
        self.came.drain(..whole);
        Some(Heard { response: Response::decode(&bhs).expect("a target's PDU"), data })
    }
    fn hear_all(&mut self) -> Vec<Heard> {
        core::iter::from_fn(|| self.hear()).collect()
    }

    fn command(&mut self, lun: u16, cdb: &[u8], expected: u32) -> ScsiCommand {
        let mut c = ScsiCommand {
            last: true,
            attribute: 1,
            lun: crate::scsi::lun_field(lun),
            task_tag: self.tag,
            expected,
            cmd_sn: self.cmd_sn,
            ..ScsiCommand::default()
        };
        c.cdb[..cdb.len()].copy_from_slice(cdb);
        self.tag += 1;
        self.cmd_sn += 1;
        c
    }

    /// A command that reads or has no data: its response (made of the last Data-In if need be) and data.
    fn simple(&mut self, lun: u16, cdb: &[u8], expected: u32) -> (ScsiResponse, Vec<u8>) {
        let mut c = self.command(lun, cdb, expected);
        c.read = expected > 0;
        self.send(c.encode(), &[]);
        self.answer_of(c.task_tag)
    }
    fn answer_of(&mut self, task_tag: u32) -> (ScsiResponse, Vec<u8>) {
        let mut data: Vec<u8> = vec![];
        loop {
            let Some(heard) = self.hear() else { panic!("no answer; closed: {:?}", self.io.closed) };
            match heard.response {
                Response::DataIn(DataIn { status, residual, offset, task_tag: of, counters, .. }) => {
                    assert_eq!((of, offset as usize), (task_tag, data.len()));
                    data.extend_from_slice(&heard.data);
                    if let Some(status) = status {
                        let response =
                            ScsiResponse { status, residual, counters, task_tag, ..ScsiResponse::default() };
                        return (response, data);
                    }
                }
                Response::ScsiResponse(response) => {
                    assert_eq!(response.task_tag, task_tag);
                    return (response, heard.data);
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn data_out(&mut self, task_tag: u32, transfer_tag: u32, sn: u32, offset: u32, last: bool, data: &[u8]) {
        let pdu = DataOut { last, lun: 0, task_tag, transfer_tag, data_sn: sn, offset, ..DataOut::default() };
        self.send(pdu.encode(), data);
    }
    /// Sense key, additional code and qualifier of a CHECK CONDITION's data.
    fn sense(data: &[u8]) -> (u8, u8, u8) {
        assert_eq!((data.len(), data[1]), (20, 18));
        (data[4], data[14], data[15])
    }
    fn no_leaks(&self) {
        assert_eq!(self.io.under_way(), 0, "every tag is free when nothing is under way");
    }
}

fn read10(at: u32, blocks: u16) -> [u8; 10] {
    let (a, b) = (at.to_be_bytes(), blocks.to_be_bytes());
    [0x28, 0, a[0], a[1], a[2], a[3], 0, b[0], b[1], 0]
}
fn write10(at: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = read10(at, blocks);
    cdb[0] = 0x2a;
    cdb
}
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    Prng::new(seed).fill(&mut out);
    out
}
fn padded(len: u32) -> usize {
    (len + padding(len)) as usize
}
