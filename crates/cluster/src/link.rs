//! What travels between two heads: docs/formats/link.md, "Frames". Streams of bytes come and go, as networks do; messages arrive once, in the
//! order in which they were sent, over whichever network is there.
//!
//! ```text
//!   up ─▶ Hello, and theirs ─▶ messages go by the first network that has met the other; heartbeats go by all
//!                               └─ it ends: what was not acknowledged goes again by the next one that meets
//! ```
//!
//! Each pair of processes numbers its messages from 1. Messages that a former life of a head had not acknowledged are lost;
//! `Heard::Met` reports that. The transport has authenticated the other head; the decoder checks its bytes all the same.

use crate::heartbeat::Heartbeat;
use crate::record::HeadNo;
use base::Uuid;
use base::codec::{Malformed, Reader, Writer};

use std::collections::VecDeque;

/// The version that this program speaks, and the oldest one that it does.
pub const VERSION: u16 = 3;
/// The oldest version that it speaks.
pub const VERSION_MIN: u16 = 3;
/// Longest message, bytes.
pub const MESSAGE_MAX: usize = 1 << 20;
/// Messages that are not acknowledged, bytes at most.
pub const UNACKNOWLEDGED_MAX: usize = 8 << 20;
/// Longest frame behind its length, bytes.
const FRAME_MAX: usize = MESSAGE_MAX + 64;

const HELLO: u8 = 1;
const HEARTBEAT: u8 = 2;
const MESSAGE: u8 = 3;
const ACK: u8 = 4;

/// How a head introduces itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The versions that it speaks, oldest and newest.
    pub versions: (u16, u16),
    /// Its system.
    pub system: Uuid,
    /// Which head it is.
    pub head: HeadNo,
    /// Random name of its process.
    pub life: u64,
    /// The epoch that it knows.
    pub epoch: u64,
    /// The process of ours that it has heard last, 0 for none, and how many messages of that it has.
    pub has: (u64, u64),
}

/// Why a network is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// These bytes are no frame, or one that may not come now.
    Garbage,
    /// It is of another system.
    OtherSystem,
    /// It says that it is the head that we are.
    SameHead,
    /// The process at its other end has ended: there is another one.
    FormerLife,
    /// No version is common: theirs, oldest and newest.
    Version(u16, u16),
}

impl Fault {
    /// Whether the other head is refused for a reason that lasts: it tries again, and is refused again, until an operator acts.
    pub fn lasts(self) -> bool {
        matches!(self, Fault::OtherSystem | Fault::SameHead | Fault::Version(..))
    }
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Do {
    /// Send, behind what was sent by this network before.
    Send {
        /// By which network.
        path: usize,
        /// What.
        bytes: Vec<u8>,
    },
    /// End this network's connection.
    Close {
        /// Which one.
        path: usize,
        /// Why.
        why: Fault,
    },
}

/// What was heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// The other head is there by this network.
    Met {
        /// Which one.
        path: usize,
        /// How it introduced itself.
        hello: Hello,
        /// It is another process than the one before: what was sent to that one, and what that one sent, is over.
        fresh: bool,
    },
    /// It lives.
    Heartbeat {
        /// By which network.
        path: usize,
        /// What it sees.
        heartbeat: Heartbeat,
    },
    /// A message, once and in order.
    Message(Vec<u8>),
}

/// So many processes of the other head are remembered.
const FORMER_MAX: usize = 2;

/// Nothing more is taken, or nothing so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

#[derive(Debug, Default)]
struct Path {
    up: bool,
    met: bool,
    received: Vec<u8>,
    /// Which connection it is, of those of all networks: a process with an earlier one is not a later process.
    since: u64,
}

/// Messages between this process and one of the other head.
#[derive(Debug)]
struct Numbers {
    /// Messages of the other process that came.
    received: u64,
    /// The last of them that was acknowledged.
    acknowledged: u64,
    /// Number of the first message in `unacknowledged`.
    first: u64,
    unacknowledged: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Numbers {
    fn new() -> Self {
        Self { received: 0, acknowledged: 0, first: 1, unacknowledged: VecDeque::new(), bytes: 0 }
    }
}

/// One head's end of the link.
#[derive(Debug)]
pub struct Link {
    system: Uuid,
    me: HeadNo,
    life: u64,
    epoch: u64,
    paths: Vec<Path>,
    /// The process at the other end, 0 before the first.
    theirs: u64,
    /// The version that both speak.
    version: u16,
    numbers: Numbers,
    /// Processes that were met before, with what passed between them and this one, the newest last: the words of one that is over may come
    /// late, and be taken for those of a new one, and then the numbers of the one that lives must still be known.
    former: VecDeque<(u64, Numbers)>,
    /// Connections that came up, and the latest by which `theirs` was met.
    ups: u64,
    met_since: u64,
    /// By which network messages go now.
    active: Option<usize>,
    dos: Vec<Do>,
    heard: Vec<Heard>,
}

impl Link {
    /// The end of a head, with so many networks, all of them down.
    pub fn new(system: Uuid, me: HeadNo, life: u64, epoch: u64, paths: usize) -> Self {
        assert!(life != 0, "0 names no process");
        Self {
            system,
            me,
            life,
            epoch,
            paths: (0..paths).map(|_| Path::default()).collect(),
            theirs: 0,
            version: VERSION,
            numbers: Numbers::new(),
            former: VecDeque::new(),
            ups: 0,
            met_since: 0,
            active: None,
            dos: vec![],
            heard: vec![],
        }
    }
    /// The epoch that later introductions name.
    pub fn knows(&mut self, epoch: u64) {
        self.epoch = epoch;
    }
    /// Whether the other head is met by some network.
    pub fn is_up(&self) -> bool {
        self.active.is_some()
    }
    /// Bytes of messages that are not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.numbers.bytes
    }
    /// Whether the other head is met by this network.
    pub fn is_met(&self, path: usize) -> bool {
        self.paths.get(path).is_some_and(|p| p.met)
    }
    /// The version that both speak, once they have met.
    pub fn version(&self) -> u16 {
        self.version
    }
    /// What is to be done now.
    pub fn dos(&mut self) -> Vec<Do> {
        self.acknowledge();
        core::mem::take(&mut self.dos)
    }
    /// What was heard since the last call.
    pub fn heard(&mut self) -> Vec<Heard> {
        core::mem::take(&mut self.heard)
    }
    /// A network has a connection, a new one if it had one.
    pub fn on_up(&mut self, path: usize) {
        self.end(path);
        self.ups += 1;
        self.paths[path].up = true;
        self.paths[path].since = self.ups;
        let hello = Hello {
            versions: (VERSION_MIN, VERSION),
            system: self.system,
            head: self.me,
            life: self.life,
            epoch: self.epoch,
            has: (self.theirs, self.numbers.received),
        };
        self.put(path, HELLO, |w| hello.write(w));
    }
    /// A network's connection has ended.
    pub fn on_down(&mut self, path: usize) {
        self.end(path);
    }
    /// Sends a message, now or when a network is there.
    ///
    /// # Errors
    /// Too much was not acknowledged, or the message is longer than any may be: nothing is sent.
    pub fn send(&mut self, message: Vec<u8>) -> Result<(), Full> {
        if message.len() > MESSAGE_MAX || self.numbers.bytes + message.len() > UNACKNOWLEDGED_MAX {
            return Err(Full);
        }
        self.numbers.bytes += message.len();
        self.numbers.unacknowledged.push_back(message);
        if let Some(path) = self.active {
            self.put_message(path, self.numbers.unacknowledged.len() - 1);
        }
        Ok(())
    }
    /// Sends a heartbeat by every network on which the other head was met.
    pub fn send_heartbeat(&mut self, heartbeat: &Heartbeat) {
        for path in 0..self.paths.len() {
            if self.paths[path].met {
                self.put(path, HEARTBEAT, |w| heartbeat.write(w));
            }
        }
    }
    /// Bytes came by a network, in order.
    pub fn on_bytes(&mut self, path: usize, bytes: &[u8]) {
        if !self.paths[path].up {
            return;
        }
        self.paths[path].received.extend_from_slice(bytes);
        loop {
            let all = &self.paths[path].received;
            let Some(length) = all.first_chunk().map(|l| u32::from_le_bytes(*l) as usize) else { return };
            if length == 0 || length > FRAME_MAX {
                return self.close(path, Fault::Garbage);
            }
            if all.len() < 4 + length {
                return;
            }
            let frame: Vec<u8> = self.paths[path].received.drain(..4 + length).skip(4).collect();
            if let Err(why) = self.on_frame(path, frame[0], &frame[1..]) {
                return self.close(path, why);
            }
        }
    }

    fn on_frame(&mut self, path: usize, kind: u8, body: &[u8]) -> Result<(), Fault> {
        let mut r = Reader(body);
        let garbage = |_: Malformed| Fault::Garbage;
        match (kind, self.paths[path].met) {
            (HELLO, false) => {
                let hello = Hello::read(&mut r).map_err(garbage)?;
                self.meet(path, hello)?;
            }
            (HEARTBEAT, true) => {
                let heartbeat = Heartbeat::read(&mut r).map_err(garbage)?;
                if heartbeat.system != self.system
                    || heartbeat.head == self.me
                    || heartbeat.life != self.theirs
                {
                    return Err(Fault::Garbage);
                }
                self.heard.push(Heard::Heartbeat { path, heartbeat });
            }
            (MESSAGE, true) => {
                let (number, ack) = (r.u64().map_err(garbage)?, r.u64().map_err(garbage)?);
                self.on_ack(ack)?;
                // One that came by another network before is no news; one behind a gap cannot be.
                if number > self.numbers.received + 1 || number == 0 {
                    return Err(Fault::Garbage);
                }
                if number == self.numbers.received + 1 {
                    self.numbers.received = number;
                    self.heard.push(Heard::Message(r.0.to_vec()));
                }
                r.0 = &[];
            }
            (ACK, true) => {
                let ack = r.u64().map_err(garbage)?;
                self.on_ack(ack)?;
            }
            _ => return Err(Fault::Garbage),
        }
        if r.0.is_empty() { Ok(()) } else { Err(Fault::Garbage) }
    }
    fn meet(&mut self, path: usize, hello: Hello) -> Result<(), Fault> {
        let (oldest, newest) = hello.versions;
        if hello.system != self.system {
            return Err(Fault::OtherSystem);
        }
        if hello.head == self.me {
            return Err(Fault::SameHead);
        }
        if oldest > newest || newest < VERSION_MIN || oldest > VERSION {
            return Err(Fault::Version(oldest, newest));
        }
        if hello.life == 0 {
            return Err(Fault::Garbage);
        }
        self.version = newest.min(VERSION);
        let (fresh, since) = (hello.life != self.theirs, self.paths[path].since);
        if fresh && since < self.met_since {
            // A process is met that came later: this is the word of one that is over.
            return Err(Fault::FormerLife);
        }
        self.met_since = self.met_since.max(since);
        if fresh {
            // Others of its networks may still be those of its former life.
            for other in 0..self.paths.len() {
                if other != path && self.paths[other].met {
                    self.paths[other] = Path::default();
                    self.dos.push(Do::Close { path: other, why: Fault::FormerLife });
                }
            }
            self.active = None;
            self.turn_to(hello.life);
        }
        if hello.has.0 == self.life {
            self.on_ack(hello.has.1)?;
        }
        self.paths[path].met = true;
        self.heard.push(Heard::Met { path, hello, fresh });
        if self.active.is_none() {
            self.go_by(path);
        }
        Ok(())
    }
    /// The process at the other end is this one from now on. What waits for the first one is for whoever comes; what another one did not get,
    /// this one is not to be taken up as if nothing had happened.
    fn turn_to(&mut self, life: u64) {
        let before = core::mem::replace(&mut self.theirs, life);
        if before == 0 {
            return;
        }
        let known = self.former.iter().position(|(l, _)| *l == life).and_then(|i| self.former.remove(i));
        let numbers = known.map_or_else(Numbers::new, |(_, numbers)| numbers);
        if self.former.len() == FORMER_MAX {
            self.former.pop_front();
        }
        self.former.push_back((before, core::mem::replace(&mut self.numbers, numbers)));
    }
    fn on_ack(&mut self, ack: u64) -> Result<(), Fault> {
        if ack >= self.numbers.first + self.numbers.unacknowledged.len() as u64 {
            return Err(Fault::Garbage);
        }
        while self.numbers.first <= ack {
            let message = self.numbers.unacknowledged.pop_front().expect("it is one of them");
            self.numbers.bytes -= message.len();
            self.numbers.first += 1;
        }
        Ok(())
    }
    /// From now on messages go by this network: all that is not acknowledged goes again. So does what was acknowledged by the network
    /// before: that may have been lost with it, and the other end has room for so much less until it hears of it.
    fn go_by(&mut self, path: usize) {
        self.active = Some(path);
        self.numbers.acknowledged = 0;
        for nth in 0..self.numbers.unacknowledged.len() {
            self.put_message(path, nth);
        }
    }
    fn put_message(&mut self, path: usize, nth: usize) {
        let (number, ack) = (self.numbers.first + nth as u64, self.numbers.received);
        self.numbers.acknowledged = ack;
        let message = self.numbers.unacknowledged[nth].clone();
        self.put(path, MESSAGE, |w| {
            w.u64(number).u64(ack).bytes(&message);
        });
    }
    fn acknowledge(&mut self) {
        if let Some(path) = self.active.filter(|_| self.numbers.acknowledged < self.numbers.received) {
            let ack = self.numbers.received;
            self.numbers.acknowledged = ack;
            self.put(path, ACK, |w| {
                w.u64(ack);
            });
        }
    }
    fn put(&mut self, path: usize, kind: u8, body: impl FnOnce(&mut Writer)) {
        let mut w = Writer::default();
        w.u32(0).u8(kind);
        body(&mut w);
        let length = (w.0.len() - 4) as u32;
        w.0[..4].copy_from_slice(&length.to_le_bytes());
        self.dos.push(Do::Send { path, bytes: w.0 });
    }
    fn close(&mut self, path: usize, why: Fault) {
        self.dos.push(Do::Close { path, why });
        self.end(path);
    }
    fn end(&mut self, path: usize) {
        self.paths[path] = Path::default();
        self.dos.retain(|d| !matches!(d, Do::Send { path: p, .. } if *p == path));
        if self.active == Some(path) {
            self.active = None;
            if let Some(next) = self.paths.iter().position(|p| p.met) {
                self.go_by(next);
            }
        }
    }
}

impl Hello {
    fn write(&self, w: &mut Writer) {
        w.u16(self.versions.0).u16(self.versions.1).bytes(&self.system.0).u8(self.head as u8);
        w.u64(self.life).u64(self.epoch).u64(self.has.0).u64(self.has.1);
    }
    fn read(r: &mut Reader) -> Result<Self, Malformed> {
        let versions = (r.u16()?, r.u16()?);
        let system = Uuid(r.array()?);
        let head = HeadNo::from_number(r.u8()?).ok_or(Malformed)?;
        let (life, epoch) = (r.u64()?, r.u64()?);
        let has = (r.u64()?, r.u64()?);
        // A later version may say more.
        r.0 = &[];
        Ok(Self { versions, system, head, life, epoch, has })
    }
}
