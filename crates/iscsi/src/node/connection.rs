//! The stream of one connection: bytes to PDUs, digests, deadlines, and which part of the target a PDU
//! belongs to.
//!
//! ```text
//! Header ─▶ Begin ─┬─────────────▶ Data ─▶ Trailer ─▶ End ─▶ Header
//!        (room for └▶ Grant ────▶─┘ (padding, digest)
//!         answers)   (a buffer)
//! ```

use super::login::{Login, Outcome};
use super::session::{Order, Session};
use super::transfer::Begun;
use super::{
    CONTROL_ROOM, ConnectionConfig, DATA_TIME, DIRECT_BYTES_MIN, IDLE_TIME, LOGIN_TIME, MAX_RECV,
    MAX_RECV_DEFAULT, PING_BYTES_MAX, PING_TIME, TEXT_BYTES_MAX, discovery,
};
use crate::pdu::{
    AHS_BYTES_MAX, BHS_BYTES, Bhs, Counters, DIGEST_BYTES, DataOut, LoginRequest, LoginResponse,
    LogoutRequest, NopIn, NopOut, RESERVED_TAG, Request, ScsiCommand, Stage as LoginStage, TextRequest,
    TextResponse, ahs_len, ahs_segments, data_digest_of, data_len, header_digest, login_status, padding,
    reject_reason,
};
use crate::scsi::{Sense, Work};
use crate::text::{self, LENGTH_RANGE, key};
use base::crc::crc32c_append;
use base::front::{Close, Intervention};
use base::view::LoginName;
use base::{Answer, Ask, Bug, FrontIo, Instant, IscsiFault, Prng, Slice, Status, Tag, Want, planted};

const HEAD_BYTES_MAX: usize = BHS_BYTES + AHS_BYTES_MAX + DIGEST_BYTES;
/// The tag of text exchanges that go on; there is one at a time.
const TEXT_TRANSFER_TAG: u32 = 1;
/// The tag of our pings.
const PING_TRANSFER_TAG: u32 = 2;
/// Logout responses (RFC 7143 11.15.1) that end nothing.
const CID_NOT_FOUND: u8 = 1;
const NO_RECOVERY: u8 = 2;

/// What the stream waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The rest of a header.
    Header,
    /// Room for an answer, or the Steward's answer.
    Begin,
    /// The buffer of this task.
    Grant(u32),
    /// The rest of a data segment.
    Data,
    /// Padding and data digest.
    Trailer,
    /// Nothing: the PDU is whole.
    End,
}

/// Where a data segment goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Destination {
    Nowhere,
    /// Login or text.
    Text,
    Ping,
    /// The rest of this part of a buffer, then nowhere.
    Buffer(Slice),
}

/// What the PDU under way is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Current {
    /// Dropped without an answer.
    Ignored,
    /// Answered with a Reject.
    Rejected(u8),
    Login,
    Text,
    Ping,
    Command(Begun),
    Data(u32),
    /// Everything that has no data to wait for.
    Other,
}

/// What the connection is doing.
#[derive(Debug)]
enum State {
    Login(Box<Login>),
    /// The Steward was asked; the answer to the last login request, and its text.
    Asking(Box<(Login, LoginResponse, Vec<u8>)>),
    Full,
    Closed,
}

/// One iSCSI connection of the target; its inputs are those of `base::front`.
#[derive(Debug)]
pub struct Connection {
    config: ConnectionConfig,
    prng: Prng,
    opened: Option<Instant>,
    state: State,
    session: Session,
    /// The connection id that the initiator gave in its login.
    cid: u16,
    stage: Stage,
    head: [u8; HEAD_BYTES_MAX],
    have: usize,
    data_left: u32,
    destination: Destination,
    crc: u32,
    trailer: [u8; 8],
    trailer_have: usize,
    trailer_need: usize,
    current: Current,
    /// Text or ping data of the PDU under way.
    small: Vec<u8>,
    /// When the last PDU was whole, or waiting began.
    progress: Instant,
    /// When anything was last received.
    heard: Instant,
    pinged: Option<Instant>,
}

impl Connection {
    /// A connection that was just accepted. Panics if `commands_max` is out of its range.
    pub fn new(config: ConnectionConfig) -> Self {
        assert!((16..1023).contains(&config.commands_max), "commands_max is 16 to 1022");
        Self {
            config,
            prng: Prng::new(config.seed),
            opened: None,
            state: State::Login(Box::new(Login::new())),
            // Tasks need no slots before the login has succeeded.
            session: Session::new(&config, text::Parameters::default(), 0),
            cid: 0,
            stage: Stage::Header,
            head: [0; HEAD_BYTES_MAX],
            have: 0,
            data_left: 0,
            destination: Destination::Nowhere,
            crc: 0,
            trailer: [0; 8],
            trailer_have: 0,
            trailer_need: 0,
            current: Current::Ignored,
            small: Vec::new(),
            progress: Instant::default(),
            heard: Instant::default(),
            pinged: None,
        }
    }

    /// Bytes arrived; how many were taken.
    pub fn on_bytes(&mut self, now: Instant, bytes: &[u8], io: &mut impl FrontIo) -> usize {
        self.start_clock(now);
        self.heard(now);
        self.run(now, bytes, io)
    }

    /// The digests that both sides agreed on: of headers, of data.
    pub fn digests(&self) -> (bool, bool) {
        (self.session.framing.header_digest, self.session.framing.data_digest)
    }
    /// Where the next bytes go.
    pub fn want(&self) -> Want {
        match (self.stage, &self.state) {
            (_, State::Closed) | (Stage::Begin | Stage::Grant(_) | Stage::End, _) => Want::Nothing,
            (Stage::Data, _) => match self.destination {
                Destination::Buffer(rest) if rest.len >= DIRECT_BYTES_MIN => Want::Direct(rest),
                _ => Want::Staging,
            },
            (Stage::Header | Stage::Trailer, _) => Want::Staging,
        }
    }

    /// `n` bytes arrived where `Want::Direct` said.
    pub fn on_direct(&mut self, now: Instant, n: u32, io: &mut impl FrontIo) {
        let Destination::Buffer(rest) = self.destination else {
            unreachable!("direct bytes only come where they were wanted")
        };
        self.heard(now);
        if self.session.framing.data_digest {
            self.crc = crc32c_append(self.crc, io.bytes(rest.head(n)));
        }
        self.destination = Destination::Buffer(rest.tail(n));
        self.data_left -= n;
        self.run(now, &[], io);
    }

    /// A buffer that could not be given at once.
    pub fn on_granted(&mut self, now: Instant, tag: Tag, slice: Slice, io: &mut impl FrontIo) {
        let slot = u32::from(tag.0);
        self.session.granted(slot, slice, io);
        if self.stage == Stage::Grant(slot) {
            self.take_command_data(slot);
            self.progress = now;
        } else {
            self.session.next_data(slot, io);
        }
        self.run(now, &[], io);
    }

    /// The tag's buffer is another one now.
    pub fn on_moved(&mut self, tag: Tag, slice: Slice) {
        self.session.tasks[u32::from(tag.0)].buffer = slice;
    }

    /// A submitted command ended, or a tag that waited for its buffer was given up.
    pub fn on_done(&mut self, now: Instant, tag: Tag, status: Status, io: &mut impl FrontIo) {
        let slot = u32::from(tag.0);
        let held = self.stage == Stage::Grant(slot);
        self.session.done(slot, status, held, io);
        if held {
            self.take_command_data(slot);
            self.progress = now;
        }
        self.run(now, &[], io);
    }

    /// The outbox has more room.
    pub fn on_sent(&mut self, now: Instant, io: &mut impl FrontIo) {
        self.run(now, &[], io);
    }

    /// The Steward's answer to our question.
    pub fn on_answer(&mut self, now: Instant, answer: Answer, io: &mut impl FrontIo) {
        let State::Asking(asking) = core::mem::replace(&mut self.state, State::Closed) else {
            unreachable!("an answer comes only after a question")
        };
        let (login, mut response, text) = *asking;
        let slots = if login.discovery { 0 } else { self.config.commands_max };
        let name = LoginName::Iqn(&login.initiator);
        let changed = !io.view().admits(name, login.principal) && !planted(Bug::LoginOutlives);
        let admitted = match if changed { Answer::Changed } else { answer } {
            Answer::Admitted { id } => match io.admit(slots) {
                Ok(()) => Ok(id),
                Err(why) => Err((login_status::OUT_OF_RESOURCES, why)),
            },
            // The initiator may try again, and is judged anew.
            Answer::Changed => Err((login_status::UNAVAILABLE, IscsiFault::ChangedMeanwhile.into())),
            Answer::Unknown => Err((login_status::NO_SESSION, IscsiFault::NoSession.into())),
            Answer::Full => Err((login_status::OUT_OF_RESOURCES, IscsiFault::SessionsFull.into())),
            Answer::Disabled | Answer::Taken => unreachable!("an answer to an NVMe queue"),
        };
        match admitted {
            Ok(id) => {
                response.tsih = id;
                response.transit = true;
                response.next = LoginStage::FullFeature;
                let mut session = Session::new(&self.config, login.parameters, slots);
                session.stat_sn = self.session.stat_sn;
                session.exp_cmd_sn = self.session.exp_cmd_sn;
                session.discovery = login.discovery;
                session.principal = login.principal;
                session.max_recv = if login.declared_max_recv { MAX_RECV } else { MAX_RECV_DEFAULT };
                session.refresh(true, io);
                self.send_login(response, &text, io);
                session.stat_sn = self.session.stat_sn;
                session.initiator = login.initiator;
                self.session = session;
                self.state = State::Full;
                self.progress = now;
                self.heard = now;
                self.run(now, &[], io);
            }
            Err((status, why)) => {
                response.status = status;
                response.transit = false;
                response.next = LoginStage::Security;
                self.send_login(response, &[], io);
                io.refused(&login.initiator, why);
                self.close(Close::Refused(why), io);
            }
        }
    }

    /// Another session has ended the tasks on some units.
    pub fn on_intervention(&mut self, now: Instant, id: u32, what: &Intervention, io: &mut impl FrontIo) {
        let Intervention::ClearTasks { units, reset } = what else {
            unreachable!("not an intervention for an iSCSI session")
        };
        let receiving = self.receiving();
        self.session.clear(id, units, *reset, receiving, io);
        self.run(now, &[], io);
    }

    /// The task whose command is just coming in.
    fn receiving(&self) -> Option<u32> {
        match (self.stage, self.current) {
            (Stage::Header | Stage::Begin, _) => None,
            (_, Current::Command(Begun::Task { slot, .. })) => Some(slot),
            _ => None,
        }
    }

    /// Other sessions have done their part of a task management function.
    pub fn on_intervened(&mut self, now: Instant, key: u16, _: bool, io: &mut impl FrontIo) {
        self.session.intervened(usize::from(key));
        self.run(now, &[], io);
    }

    /// The view is a new one.
    pub fn on_view(&mut self, now: Instant, io: &mut impl FrontIo) {
        if !matches!(self.state, State::Full) {
            return;
        }
        let (name, principal) = (LoginName::Iqn(&self.session.initiator), self.session.principal);
        if !io.view().admits(name, principal) && !planted(Bug::SessionOutlives) {
            return self.close(Close::Replaced, io);
        }
        let receiving = self.receiving();
        self.session.refresh(false, io);
        self.session.end_tasks_of_gone_units(receiving, io);
        self.run(now, &[], io);
    }

    /// A deadline has come.
    pub fn on_timer(&mut self, now: Instant, io: &mut impl FrontIo) {
        self.start_clock(now);
        if self.next_deadline().is_none_or(|at| now < at) {
            return;
        }
        match self.state {
            State::Closed => {}
            State::Login(_) | State::Asking(_) => self.close(Close::Slow, io),
            State::Full if self.waits_for_peer() && now >= self.progress + DATA_TIME => {
                self.close(Close::Slow, io);
            }
            State::Full => match self.pinged {
                Some(_) => self.close(Close::KeepAlive, io),
                None => {
                    self.pinged = Some(now);
                    // Without room the host is not reading, and that shows in the same time.
                    if io.room() >= CONTROL_ROOM / 2 {
                        let counters = self.session.counters();
                        let ping = NopIn {
                            task_tag: RESERVED_TAG,
                            transfer_tag: PING_TRANSFER_TAG,
                            counters,
                            ..NopIn::default()
                        };
                        self.session.send(ping.encode(), &[], io);
                    }
                }
            },
        }
    }

    /// When `on_timer` wants to be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Closed | State::Asking(_) => None,
            // Before the first input the time is not known: ask for it.
            State::Login(_) => Some(self.opened.map_or(Instant::default(), |at| at + LOGIN_TIME)),
            State::Full => {
                let alive = match self.pinged {
                    Some(at) => at + PING_TIME,
                    None => self.heard + IDLE_TIME,
                };
                match self.stage {
                    // It is we who keep the host waiting.
                    Stage::Grant(_) => None,
                    _ if self.waits_for_peer() => Some(alive.min(self.progress + DATA_TIME)),
                    _ => Some(alive),
                }
            }
        }
    }

    fn start_clock(&mut self, now: Instant) {
        if self.opened.is_none() {
            self.opened = Some(now);
            self.heard = now;
            self.progress = now;
        }
    }

    fn heard(&mut self, now: Instant) {
        if self.have == 0 && self.session.data_waits == 0 {
            self.progress = now;
        }
        self.heard = now;
        self.pinged = None;
    }

    /// The host has begun or announced something and is to go on with it.
    fn waits_for_peer(&self) -> bool {
        let begun = match self.stage {
            Stage::Header => self.have > 0,
            Stage::Data | Stage::Trailer => true,
            Stage::Begin | Stage::Grant(_) | Stage::End => false,
        };
        begun || self.session.data_waits > 0
    }

    fn close(&mut self, why: Close, io: &mut impl FrontIo) {
        self.state = State::Closed;
        io.close(why);
    }

    fn broken(&mut self, why: IscsiFault, io: &mut impl FrontIo) {
        self.close(Close::Protocol(why.into()), io);
    }

    /// Goes as far as bytes, room and buffers allow; how many bytes were taken.
    fn run(&mut self, now: Instant, bytes: &[u8], io: &mut impl FrontIo) -> usize {
        let mut used = 0;
        loop {
            // Before the full feature phase there are no tasks, and after its end none any more.
            if self.session.has_ready() && matches!(self.state, State::Full) {
                self.session.pump(io);
                if let Some(why) = self.session.closing {
                    self.close(why, io);
                }
            }
            if matches!(self.state, State::Closed) {
                return bytes.len();
            }
            let stage = self.stage;
            if stage == Stage::Header && used == bytes.len() {
                return used;
            }
            let taken = self.step(now, &bytes[used..], io);
            used += taken;
            if taken == 0 && self.stage == stage {
                return used;
            }
        }
    }

    /// One step of the stream.
    fn step(&mut self, now: Instant, bytes: &[u8], io: &mut impl FrontIo) -> usize {
        match self.stage {
            Stage::Header => {
                let n = self.take_header(bytes, io);
                // Most PDUs are a header and nothing else, and wait for nothing.
                if self.stage == Stage::Begin && self.data_left == 0 && matches!(self.state, State::Full) {
                    self.begin_with_room(io);
                    if self.stage == Stage::Data
                        && self.trailer_need == 0
                        && matches!(self.state, State::Full)
                    {
                        self.over(now, io);
                    }
                }
                n
            }
            Stage::Begin => {
                self.begin_with_room(io);
                0
            }
            Stage::Grant(_) => 0,
            Stage::Data => {
                let n = bytes.len().min(self.data_left as usize);
                self.take_data(&bytes[..n], io);
                if self.data_left == 0 {
                    self.stage = if self.trailer_need > 0 { Stage::Trailer } else { Stage::End };
                }
                n
            }
            Stage::Trailer => {
                let n = bytes.len().min(self.trailer_need - self.trailer_have);
                self.trailer[self.trailer_have..self.trailer_have + n].copy_from_slice(&bytes[..n]);
                self.trailer_have += n;
                if self.trailer_have == self.trailer_need {
                    self.stage = Stage::End;
                }
                n
            }
            Stage::End => {
                self.over(now, io);
                0
            }
        }
    }

    /// Begins with a PDU once every answer that it can cause at once has room, and a command has a slot.
    fn begin_with_room(&mut self, io: &mut impl FrontIo) {
        if !matches!(self.state, State::Asking(_)) && io.room() >= CONTROL_ROOM && io.has_slot() {
            self.begin(io);
        }
    }

    /// A PDU is whole; the next one may come.
    fn over(&mut self, now: Instant, io: &mut impl FrontIo) {
        self.stage = Stage::Header;
        self.have = 0;
        self.progress = now;
        self.end(io);
    }

    fn bhs(&self) -> Bhs {
        *self.head.first_chunk().expect("the length is that of a header")
    }

    fn take_header(&mut self, bytes: &[u8], io: &mut impl FrontIo) -> usize {
        if self.have == 0 && !bytes.is_empty() && !io.goes_on() {
            return 0;
        }
        let framing = self.session.framing;
        let need = if self.have < BHS_BYTES { BHS_BYTES } else { framing.header_len(ahs_len(&self.bhs())) };
        let n = bytes.len().min(need - self.have);
        self.head[self.have..self.have + n].copy_from_slice(&bytes[..n]);
        self.have += n;
        if self.have < BHS_BYTES {
            return n;
        }
        let bhs = self.bhs();
        let whole = framing.header_len(ahs_len(&bhs));
        if self.have < whole {
            return n;
        }
        let covered = BHS_BYTES + ahs_len(&bhs);
        // RFC 7143 7.8: after a bad header nothing of the stream can be believed.
        if framing.header_digest
            && header_digest(&self.head[..covered], &[]) != self.head[covered..covered + 4]
        {
            self.broken(IscsiFault::HeaderDigest, io);
            return n;
        }
        let max = if self.session.max_recv == 0 { MAX_RECV_DEFAULT } else { self.session.max_recv };
        if data_len(&bhs) > max {
            self.broken(IscsiFault::SegmentLong, io);
            return n;
        }
        self.data_left = data_len(&bhs);
        self.trailer_need = framing.trailer_len(self.data_left);
        self.trailer_have = 0;
        self.crc = 0;
        self.small.clear();
        self.stage = Stage::Begin;
        n
    }

    fn take_data(&mut self, bytes: &[u8], io: &mut impl FrontIo) {
        self.data_left -= bytes.len() as u32;
        if self.session.framing.data_digest {
            self.crc = crc32c_append(self.crc, bytes);
        }
        match self.destination {
            Destination::Nowhere => {}
            Destination::Buffer(rest) if rest.len == 0 => {}
            Destination::Text => self.small.extend_from_slice(bytes),
            Destination::Ping => {
                let n = bytes.len().min(PING_BYTES_MAX - self.small.len());
                self.small.extend_from_slice(&bytes[..n]);
            }
            Destination::Buffer(rest) => {
                let n = bytes.len().min(rest.len as usize);
                io.bytes_mut(rest.head(n as u32)).copy_from_slice(&bytes[..n]);
                self.destination = Destination::Buffer(rest.tail(n as u32));
            }
        }
    }

    /// A header is whole and its answer has room: what is it, and where do its data go?
    fn begin(&mut self, io: &mut impl FrontIo) {
        let bhs = self.bhs();
        self.destination = Destination::Nowhere;
        self.stage = Stage::Data;
        let request = Request::decode(&bhs);
        if matches!(self.state, State::Login(_)) {
            // RFC 7143 6.3: before the full feature phase there are logins only.
            let Ok(Request::Login(_)) = request else {
                return self.broken(IscsiFault::NotALogin, io);
            };
            self.destination = Destination::Text;
            self.current = Current::Login;
            return;
        }
        let Ok(request) = request else {
            self.current = Current::Rejected(reject_reason::NOT_SUPPORTED);
            return;
        };
        let number = match request {
            Request::ScsiCommand(p) => Some((p.cmd_sn, p.immediate)),
            Request::TaskManagement(p) => Some((p.cmd_sn, p.immediate)),
            Request::Text(p) => Some((p.cmd_sn, p.immediate)),
            Request::Logout(p) => Some((p.cmd_sn, p.immediate)),
            Request::NopOut(p) => Some((p.cmd_sn, p.immediate)),
            Request::DataOut(_) | Request::Snack(_) | Request::Login(_) => None,
        };
        if let Some((cmd_sn, immediate)) = number {
            match self.session.order(cmd_sn, immediate) {
                Order::Take => {}
                Order::Ignore => {
                    self.current = Current::Ignored;
                    return;
                }
                Order::Gap => return self.broken(IscsiFault::CommandGap, io),
            }
        }
        self.current = match request {
            // RFC 7143 4.3: a discovery session knows texts, pings and logout.
            Request::ScsiCommand(_) | Request::TaskManagement(_) | Request::DataOut(_)
                if self.session.discovery =>
            {
                Current::Rejected(reject_reason::PROTOCOL_ERROR)
            }
            Request::ScsiCommand(p) => return self.begin_command(&p, io),
            Request::DataOut(p) => match self.session.begin_data(&p) {
                Ok(Some((slot, place))) => {
                    self.destination = Destination::Buffer(place);
                    Current::Data(slot)
                }
                Ok(None) => Current::Ignored,
                Err(why) => return self.broken(why, io),
            },
            Request::Text(p) if self.small_text(&p) => {
                self.destination = Destination::Text;
                Current::Text
            }
            Request::Text(_) => Current::Rejected(reject_reason::OUT_OF_RESOURCES),
            Request::NopOut(_) => {
                self.destination = Destination::Ping;
                Current::Ping
            }
            Request::Login(_) => Current::Rejected(reject_reason::PROTOCOL_ERROR),
            Request::TaskManagement(_) | Request::Logout(_) | Request::Snack(_) => Current::Other,
        };
    }

    fn small_text(&self, p: &TextRequest) -> bool {
        self.session.text_in.len() + p.data_len as usize <= TEXT_BYTES_MAX
    }

    fn begin_command(&mut self, p: &ScsiCommand, io: &mut impl FrontIo) {
        let ahs = &self.head[BHS_BYTES..BHS_BYTES + ahs_len(&self.bhs())];
        let (odd, cut) = (!ahs.is_empty(), ahs_segments(ahs).any(|s| s.is_err()));
        if cut {
            return self.broken(IscsiFault::AhsCutOff, io);
        }
        let begun = self.session.begin_command(p, odd, io);
        self.current = match begun {
            Begun::Reject(reason) => Current::Rejected(reason),
            Begun::Instant(_) | Begun::Task { .. } => Current::Command(begun),
        };
        if let Begun::Task { slot, waits } = begun {
            if waits {
                self.stage = Stage::Grant(slot);
            } else {
                self.take_command_data(slot);
            }
        }
    }

    /// The buffer of the command under way is there (or will never be): its data may come.
    fn take_command_data(&mut self, slot: u32) {
        let place = self.session.place_of(slot, 0, self.data_left);
        self.destination = Destination::Buffer(place);
        self.stage = Stage::Data;
    }

    /// A PDU is whole.
    fn end(&mut self, io: &mut impl FrontIo) {
        let bhs = self.bhs();
        let len = data_len(&bhs);
        let digest = &self.trailer[padding(len) as usize..];
        let intact = !self.session.framing.data_digest
            || len == 0
            || digest[..DIGEST_BYTES] == self.padded_digest(len)[..];
        if !intact {
            // RFC 7143 7.8: say that the data were broken; what they belonged to fails.
            self.session.reject(reject_reason::DATA_DIGEST, &bhs, io);
        }
        match self.current {
            Current::Ignored => {}
            Current::Rejected(reason) => {
                if intact {
                    self.session.reject(reason, &bhs, io);
                }
            }
            Current::Command(Begun::Instant(work)) => {
                let failed = (!intact).then_some(Sense::CRC);
                let work = if intact { work } else { Work::Good };
                self.session.answer_now(&ScsiCommand::decode(&bhs), work, failed, io);
            }
            Current::Command(Begun::Task { slot, .. }) => {
                if !intact {
                    self.session.fail(slot, Sense::CRC);
                }
                self.session.command_received(slot, len, io);
            }
            Current::Command(Begun::Reject(_)) => unreachable!("kept as a reject"),
            Current::Data(slot) => {
                if !intact {
                    self.session.fail(slot, Sense::CRC);
                }
                self.session.data_received(slot, &DataOut::decode(&bhs), io);
            }
            Current::Login => self.login(&LoginRequest::decode(&bhs), io),
            Current::Text | Current::Ping if !intact => {}
            Current::Text => self.text(&TextRequest::decode(&bhs), io),
            Current::Ping => self.ping(&NopOut::decode(&bhs), &bhs, io),
            Current::Other => self.other(&bhs, io),
        }
    }

    /// RFC 7143 11.2.4: the digest covers the padding as it was sent.
    fn padded_digest(&self, len: u32) -> [u8; 4] {
        let pad = &self.trailer[..padding(len) as usize];
        if pad.iter().all(|b| *b == 0) {
            data_digest_of(self.crc, len)
        } else {
            crc32c_append(self.crc, pad).to_le_bytes()
        }
    }

    fn other(&mut self, bhs: &Bhs, io: &mut impl FrontIo) {
        match Request::decode(bhs) {
            Ok(Request::TaskManagement(p)) => {
                if !self.session.manage(&p, io) {
                    self.session.reject(reject_reason::TOO_MANY_IMMEDIATE, bhs, io);
                }
            }
            Ok(Request::Logout(p)) => self.logout(&p, bhs, io),
            _ => self.session.snack(bhs, io),
        }
    }

    /// RFC 7143 11.14: with one connection, closing it closes the session.
    fn logout(&mut self, p: &LogoutRequest, bhs: &Bhs, io: &mut impl FrontIo) {
        match p.reason {
            // The session's one connection is this one: there is no other to be closed.
            1 if p.cid != self.cid => self.session.refuse_logout(p.task_tag, CID_NOT_FOUND, io),
            0 | 1 => {
                if !self.session.logout(p.task_tag, io) {
                    self.session.reject(reject_reason::TOO_MANY_IMMEDIATE, bhs, io);
                }
            }
            // Removal for recovery is of higher error recovery levels.
            2 => self.session.refuse_logout(p.task_tag, NO_RECOVERY, io),
            _ => self.session.reject(reject_reason::INVALID_FIELD, bhs, io),
        }
    }

    /// RFC 7143 11.18: a ping is sent back; an answer to ours, or to nothing, is not.
    fn ping(&mut self, p: &NopOut, bhs: &Bhs, io: &mut impl FrontIo) {
        if p.task_tag == RESERVED_TAG {
            return;
        }
        if p.transfer_tag != RESERVED_TAG {
            return self.session.reject(reject_reason::INVALID_FIELD, bhs, io);
        }
        let n = self.small.len().min(self.session.parameters.peer_max_recv as usize);
        let counters = self.session.advance();
        let answer = NopIn {
            lun: p.lun,
            task_tag: p.task_tag,
            transfer_tag: RESERVED_TAG,
            counters,
            data_len: n as u32,
        };
        self.session.send(answer.encode(), &self.small[..n], io);
    }

    /// RFC 7143 11.10: texts of the full feature phase.
    fn text(&mut self, p: &TextRequest, io: &mut impl FrontIo) {
        let s = &mut self.session;
        if p.transfer_tag == RESERVED_TAG {
            // A new exchange; the one before, if any, is given up.
            s.text_in.clear();
            s.text_out.clear();
        }
        s.text_in.extend_from_slice(&self.small);
        let asks_for_rest = !s.text_out.is_empty();
        if !p.continues && !asks_for_rest {
            let whole = core::mem::take(&mut s.text_in);
            let mut out = Vec::new();
            for pair in text::pairs(&whole) {
                let Ok(pair) = pair else {
                    return self.broken(IscsiFault::TextPairs, io);
                };
                match pair.key {
                    // Appendix C: in a normal session a host may ask for its own target only.
                    key::SEND_TARGETS if pair.value == "All" && !s.discovery => {
                        text::put(&mut out, pair.key, text::REJECT);
                    }
                    key::SEND_TARGETS => {
                        let known = s.host().is_some_and(|id| io.view().host(id).is_some());
                        discovery::send_targets(pair.value, known, io.view(), &self.config, &mut out);
                    }
                    key::MAX_RECV_DATA_SEGMENT_LENGTH => {
                        match text::number(pair.value).filter(|n| LENGTH_RANGE.contains(n)) {
                            Some(n) => s.parameters.peer_max_recv = n as u32,
                            None => text::put(&mut out, pair.key, text::REJECT),
                        }
                    }
                    key::INITIATOR_ALIAS => {}
                    _ => text::put(&mut out, pair.key, text::NOT_UNDERSTOOD),
                }
                // What is said back is no longer than a few times what was asked.
                if out.len() > 4 * TEXT_BYTES_MAX {
                    return self.broken(IscsiFault::TextLong, io);
                }
            }
            s.text_out = out;
        }
        let n = s.text_out.len().min(s.parameters.peer_max_recv as usize).min(CONTROL_ROOM as usize / 2);
        let more = n < s.text_out.len();
        let last = p.last && !more && !p.continues;
        let counters = s.advance();
        let response = TextResponse {
            last,
            continues: more,
            lun: 0,
            task_tag: p.task_tag,
            transfer_tag: if last { RESERVED_TAG } else { TEXT_TRANSFER_TAG },
            counters,
            data_len: n as u32,
        };
        s.send(response.encode(), &s.text_out[..n], io);
        s.text_out.drain(..n);
    }

    fn login(&mut self, request: &LoginRequest, io: &mut impl FrontIo) {
        let State::Login(login) = &mut self.state else {
            unreachable!("logins are dispatched while logging in only")
        };
        let first = login.first.is_none();
        let current = request.current;
        let mut text = Vec::new();
        let outcome =
            login.on_request(request, &self.small, &self.config, io.view(), &mut self.prng, &mut text);
        if first {
            // RFC 7143 4.2.2: the first login begins both numberings.
            self.session.stat_sn = request.exp_stat_sn;
        }
        // Logins are immediate: the first command after them has the same number.
        self.session.exp_cmd_sn = request.cmd_sn;
        if let Some(why) = login.declined.take() {
            io.refused(&login.initiator, why.into());
        }
        let mut response = LoginResponse {
            current,
            isid: request.isid,
            tsih: request.tsih,
            task_tag: request.task_tag,
            ..LoginResponse::default()
        };
        match outcome {
            Outcome::Reply { transit } => {
                response.transit = transit;
                response.next = request.next;
                self.send_login(response, &text, io);
            }
            Outcome::Fail(status, why) => {
                io.refused(&login.initiator, why.into());
                response.status = status;
                self.send_login(response, &[], io);
                self.close(Close::Refused(why.into()), io);
            }
            Outcome::Finish => {
                self.cid = request.cid;
                let ask = Ask::Iscsi {
                    principal: login.principal,
                    initiator: login.initiator.clone(),
                    isid: request.isid,
                    tsih: request.tsih,
                    discovery: login.discovery,
                };
                let State::Login(login) = core::mem::replace(&mut self.state, State::Closed) else {
                    unreachable!("matched above")
                };
                self.state = State::Asking(Box::new((*login, response, text)));
                io.ask(ask);
            }
        }
    }

    fn send_login(&mut self, mut response: LoginResponse, text: &[u8], io: &mut impl FrontIo) {
        let Counters { exp_cmd_sn, max_cmd_sn, .. } = self.session.counters();
        response.counters = Counters { stat_sn: self.session.stat_sn, exp_cmd_sn, max_cmd_sn };
        if response.status == login_status::SUCCESS {
            self.session.stat_sn = self.session.stat_sn.wrapping_add(1);
        }
        self.session.send(response.encode(), text, io);
    }
}
