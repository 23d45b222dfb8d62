//! What happens next: at drives, by the networks, in state directories.

use super::drive::{Act, Op, Reply, Stage, found};
use super::net::{self, Connection, Item};
use super::{Event, Failure, Input, MS, SECOND, World};
use crate::link;
use crate::record::HeadNo;
use crate::watch::End;
use base::Uuid;

/// A connection on which nothing comes for so long has ended.
const SILENCE: u64 = 3 * SECOND;
/// Between two attempts to connect.
const CONNECT: u64 = 100 * MS;

impl World {
    pub(super) fn happen(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Wake(head, wake) => {
                let machine = &self.heads[head.index()];
                if machine.wake == wake && machine.process.is_some() && machine.paused <= self.now {
                    return self.turn(head);
                }
            }
            Event::Input(head, number, input) => {
                let machine = &mut self.heads[head.index()];
                if machine.process.as_ref().is_none_or(|p| p.number != number) {
                    return Ok(());
                }
                if machine.paused > self.now || !machine.waits.is_empty() {
                    machine.waits.push_back(input);
                } else {
                    return self.take(head, input);
                }
            }
            Event::Start(head) => return self.start(head),
            Event::Pause { head, number, long } => {
                if self.heads[head.index()].processes == number && self.now < super::FAULTS {
                    self.pause(head, long);
                }
            }
            Event::Resume(head, number) => return self.resume(head, number),
            Event::Persist(head, number, record) => {
                let machine = &mut self.heads[head.index()];
                let lives = machine.process.as_ref().is_some_and(|p| p.number == number);
                if lives && record.epoch > machine.record.epoch {
                    machine.record = *record;
                }
            }
            Event::Directory { head, number, of, write, then } => {
                if self.heads[head.index()].process.as_ref().is_some_and(|p| p.number == number) {
                    self.directory_step(head, number, of, write, *then);
                }
            }
            Event::Drive { drive, op } => return self.drive_step(drive, op),
            Event::Write(head, number) => self.write(head, number),
            Event::Candidates(head, number) => {
                if self.heads[head.index()].process.as_ref().is_some_and(|p| p.number == number) {
                    self.candidates(head);
                }
            }
            Event::Arrives { path, id, from, item } => self.arrives(path, id, from, item),
            Event::Up { path, id, head } => {
                if self.nets[path].with(id).is_some_and(|c| c.open[head.index()]) {
                    self.net_input(head, path, net::Event::Up { id });
                }
            }
            Event::Silent { path, id, cut } => {
                let net = &mut self.nets[path];
                if cut.is_none_or(|cuts| cuts == net.cuts && !net.is_whole()) && net.with(id).is_some() {
                    self.lose(path, End::Lost);
                }
            }
            Event::Connect(path) => self.connect(path),
            Event::Cut { path, cuts } => {
                if self.nets[path].cuts == cuts {
                    self.mend(path);
                }
            }
            Event::Fault => self.fault()?,
        }
        Ok(())
    }
    fn resume(&mut self, head: HeadNo, number: u64) -> Result<(), Failure> {
        let machine = &self.heads[head.index()];
        if machine.process.as_ref().is_none_or(|p| p.number != number) || machine.paused > self.now {
            return Ok(());
        }
        self.say(|| format!("{head:?} goes on"));
        // It sees what came first, or first that it is late.
        if self.rng.chance(1, 2) {
            self.turn(head)?;
        }
        while let Some(input) = self.heads[head.index()].waits.pop_front() {
            self.take(head, input)?;
        }
        if self.heads[head.index()].process.is_some() { self.turn(head) } else { Ok(()) }
    }

    fn directory_step(
        &mut self,
        head: HeadNo,
        number: u64,
        of: HeadNo,
        write: Option<Box<crate::Slot>>,
        then: Input,
    ) {
        let slots = &mut self.heads[head.index()].directory;
        if let Some(slot) = write {
            let place = slot.place();
            slots[of.index()][place] = Some(*slot);
            let after = self.rng.between(1, MS);
            self.at(after, Event::Directory { head, number, of, write: None, then: Box::new(then) });
            return;
        }
        let found = Box::new(found(slots));
        let input = match then {
            Input::Directory { voter, op, round, .. } => Input::Directory { voter, op, round, found },
            Input::VotedFor { number, .. } => Input::VotedFor { number, found },
            other => other,
        };
        self.input(head, number, 1, input);
    }

    /// A process asks something of a drive.
    pub(super) fn issue(&mut self, head: HeadNo, drive: Uuid, act: Act) -> u64 {
        let id = self.fresh();
        let process = self.heads[head.index()].processes;
        let after = self.rng.between(MS / 50, 2 * MS);
        let nth = self.drives.iter().position(|d| d.id == drive).expect("one of the drives");
        let due = self.now + after;
        let d = &mut self.drives[nth];
        // A process opens the drive exclusively: not before the operations of a former process here are over.
        let (stage, reply) = if d.is_kept_from(head, process) {
            (Stage::Landed, Reply::Failed)
        } else {
            (Stage::Travels, Reply::Good)
        };
        d.ops.push(Op { id, head, process, act, stage, due, reply });
        self.at(after, Event::Drive { drive: nth, op: id });
        id
    }
    fn drive_step(&mut self, nth: usize, id: u64) -> Result<(), Failure> {
        let now = self.now;
        let Some(op) = self.drives[nth].op(id, now).cloned() else { return Ok(()) };
        let head = op.head;
        let (stage, reply, after) = match op.stage {
            Stage::Travels => self.accept(nth, &op)?,
            Stage::Accepted => self.land(nth, &op)?,
            Stage::Landed => {
                let drive = &mut self.drives[nth];
                drive.ops.retain(|o| o.id != id);
                let reply = match (&op.act, op.reply) {
                    (Act::Vote(_), Reply::Good) => Reply::Found(Box::new(found(&drive.slots))),
                    (Act::Heartbeat(_), Reply::Good) => {
                        Reply::Heartbeat(drive.heartbeats[head.other().index()])
                    }
                    (Act::Register(_) | Act::ShutOut { .. }, Reply::Good) => Reply::Keys(drive.registrants()),
                    (_, reply) => reply,
                };
                self.outcome.refused += u64::from(matches!(reply, Reply::Fenced));
                let input = Input::Drive { drive: drive.id, op: id, reply };
                self.input(head, op.process, 1, input);
                return Ok(());
            }
        };
        let op = self.drives[nth].op(id, now).expect("it is there");
        op.stage = stage;
        op.reply = reply;
        op.due = now + after;
        self.at(after, Event::Drive { drive: nth, op: id });
        Ok(())
    }
    fn accept(&mut self, nth: usize, op: &Op) -> Result<(Stage, Reply, u64), Failure> {
        let slow = self.drives[nth].slow > self.now;
        let drive = &self.drives[nth];
        let soon = self.rng.between(MS / 50, 2 * MS);
        let keys = matches!(op.act, Act::Register(_) | Act::ShutOut { .. });
        if drive.lost[op.head.index()] > self.now {
            return Ok((Stage::Landed, Reply::Failed, self.rng.between(1, 30) * MS));
        }
        if !keys && !drive.takes(op.head) {
            return Ok((Stage::Landed, Reply::Fenced, soon));
        }
        self.stamped(nth, op, "accepted")?;
        let rng = &mut self.rng;
        let usual = rng.between(MS / 10, 20 * MS);
        let after = match op.act {
            Act::Write { .. } if self.swarm.late && rng.chance(1, 20) => rng.between(1, 3000) * MS,
            Act::Write { .. } if self.swarm.any() => rng.between(1, 500) * MS,
            _ if slow => rng.between(100, 900) * MS,
            Act::Register(_) if self.swarm.late && rng.chance(1, 4) => rng.between(20, 900) * MS,
            _ => usual,
        };
        Ok((Stage::Accepted, Reply::Good, after))
    }
    /// What a head wrote that served before this one is neither taken nor carried out.
    fn stamped(&mut self, nth: usize, op: &Op, how: &str) -> Result<(), Failure> {
        let drive = &self.drives[nth];
        match op.act {
            Act::Write { epoch } if epoch < drive.served => {
                let (head, at, served) = (op.head, drive.id, drive.served);
                let words = format!("a value of {head:?}, which serves by epoch {epoch}, is {how} by {at}");
                Err(format!("{words}, from which epoch {served} serves"))
            }
            _ => Ok(()),
        }
    }
    fn land(&mut self, nth: usize, op: &Op) -> Result<(Stage, Reply, u64), Failure> {
        self.stamped(nth, op, "carried out")?;
        let after = self.rng.between(MS / 50, MS);
        let (head, now) = (op.head, self.now);
        let drive = &mut self.drives[nth];
        match &op.act {
            Act::Vote(ask) => {
                if let Some(slot) = &ask.write {
                    drive.slots[head.index()][slot.place()] = Some(slot.clone());
                }
            }
            Act::Heartbeat(heartbeat) => drive.heartbeats[head.index()] = Some(*heartbeat),
            Act::Register(key) => drive.register(head, *key),
            Act::Write { .. } => self.outcome.writes += 1,
            Act::Read => {}
            Act::ShutOut { own, victim } => {
                let fails = self.swarm.fences_fail && self.rng.chance(1, 4);
                if fails && self.rng.chance(1, 2) {
                    return Ok((Stage::Landed, Reply::Failed, after));
                }
                if !drive.preempt(head, *own, *victim) {
                    return Ok((Stage::Landed, Reply::NotRegistered, after));
                }
                if fails {
                    // What the other one has here is not ended; the next attempt does that.
                    return Ok((Stage::Landed, Reply::Failed, after));
                }
                let most = if self.swarm.any() { 200 } else { 50 };
                let after = self.rng.between(1, most) * MS;
                for (id, due) in drive.hasten(head.other(), now, now + after, &mut self.rng) {
                    self.at(due - now, Event::Drive { drive: nth, op: id });
                }
                return Ok((Stage::Landed, Reply::Good, after));
            }
        }
        Ok((Stage::Landed, Reply::Good, after))
    }
    /// The power of a head's machine goes: what it has at drives is lost, or lands whole.
    pub(super) fn lose_ops(&mut self, head: HeadNo) -> Result<(), Failure> {
        for nth in 0..self.drives.len() {
            let ops: Vec<Op> = self.drives[nth].ops.iter().filter(|o| o.head == head).cloned().collect();
            for op in ops.iter().filter(|o| o.stage == Stage::Accepted) {
                if self.rng.chance(1, 2) {
                    self.land(nth, op)?;
                }
            }
            self.drives[nth].ops.retain(|o| o.head != head);
        }
        Ok(())
    }
    /// Tells the leader which drives it reaches, and again after a while.
    pub(super) fn candidates(&mut self, head: HeadNo) {
        let now = self.now;
        let reached = self.drives.iter().filter(|d| d.lost[head.index()] <= now).map(|d| d.id).collect();
        let number = self.heads[head.index()].processes;
        self.input(head, number, 1, Input::Candidates(reached));
        self.at(SECOND, Event::Candidates(head, number));
    }

    pub(super) fn net_input(&mut self, head: HeadNo, path: usize, event: net::Event) {
        if let Some(process) = &self.heads[head.index()].process {
            let number = process.number;
            self.input(head, number, 0, Input::Net(path, event));
        }
    }
    pub(super) fn on_net(&mut self, head: HeadNo, path: usize, event: net::Event) {
        let process = self.heads[head.index()].process.as_mut().expect("it runs");
        let member = &mut process.member;
        let has = &mut process.connections[path];
        match event {
            net::Event::Up { id } => {
                *has = id;
                member.on_up(path);
            }
            net::Event::Bytes { id, bytes } if id == *has => member.on_bytes(path, &bytes),
            net::Event::Down { id, end } if id == *has => {
                *has = 0;
                member.on_down(path, end);
            }
            net::Event::Refused if *has == 0 => member.on_down(path, End::Refused),
            _ => {}
        }
    }
    /// What a member does by the link.
    pub(super) fn link(&mut self, head: HeadNo, what: link::Do) {
        match what {
            link::Do::Send { path, mut bytes } => {
                let has = self.heads[head.index()].process.as_ref().map_or(0, |p| p.connections[path]);
                if self.nets[path].with(has).is_none_or(|c| !c.open[head.index()]) {
                    return;
                }
                if self.rng.chance(1, 8) && bytes.len() > 1 {
                    let at = self.rng.between(1, bytes.len() as u64 - 1) as usize;
                    let rest = bytes.split_off(at);
                    self.send(head, path, &Item::Bytes(bytes));
                    bytes = rest;
                }
                self.send(head, path, &Item::Bytes(bytes));
            }
            link::Do::Close { path, .. } => {
                let now_open = self.nets[path].is_open(head);
                let process = self.heads[head.index()].process.as_mut().expect("it runs");
                let id = core::mem::take(&mut process.connections[path]);
                process.member.on_down(path, End::Lost);
                if now_open && self.nets[path].with(id).is_some() {
                    self.send(head, path, &Item::Closed);
                    self.nets[path].close(head);
                }
            }
        }
    }
    pub(super) fn send(&mut self, from: HeadNo, path: usize, item: &Item) {
        let slow = self.nets[path].slow > self.now;
        let after = if slow { self.rng.between(20, 800) * MS } else { self.rng.between(MS / 20, 2 * MS) };
        if let Some((id, at)) = self.nets[path].send(from, item, self.now + after) {
            self.at(at - self.now, Event::Arrives { path, id, from, item: item.clone() });
        }
    }
    fn arrives(&mut self, path: usize, id: u64, from: HeadNo, item: Item) {
        let to = from.other();
        if self.nets[path].with(id).is_none_or(|c| !c.open[to.index()]) {
            return;
        }
        match item {
            Item::Bytes(bytes) => self.net_input(to, path, net::Event::Bytes { id, bytes }),
            Item::Closed => {
                self.nets[path].close(to);
                self.net_input(to, path, net::Event::Down { id, end: End::Closed });
            }
        }
    }
    /// The connection ends at both ends.
    pub(super) fn lose(&mut self, path: usize, end: End) {
        let Some(c) = self.nets[path].connection.take() else { return };
        for head in [HeadNo::A, HeadNo::B] {
            if c.open[head.index()] {
                self.net_input(head, path, net::Event::Down { id: c.id, end });
            }
        }
    }
    /// A connection on which nothing can be sent ends in a while.
    pub(super) fn will_be_silent(&mut self, path: usize, cut: Option<u64>) {
        if let Some(c) = &self.nets[path].connection {
            let id = c.id;
            self.at(SILENCE, Event::Silent { path, id, cut });
        }
    }
    pub(super) fn mend(&mut self, path: usize) {
        self.say(|| format!("network {path} is whole"));
        let net = &mut self.nets[path];
        net.cut = [false; 2];
        let Some(c) = net.connection.as_mut() else { return };
        for (from, items) in [HeadNo::A, HeadNo::B].into_iter().zip(core::mem::take(&mut c.held)) {
            for item in items {
                self.send(from, path, &item);
            }
        }
    }
    fn connect(&mut self, path: usize) {
        let jitter = self.rng.below(10 * MS);
        self.at(CONNECT + jitter, Event::Connect(path));
        let net = &self.nets[path];
        if !net.is_whole() || net.connection.as_ref().is_some_and(|c| c.open == [true; 2]) {
            return;
        }
        let runs = |h: HeadNo| self.heads[h.index()].process.is_some();
        let heads = [HeadNo::A, HeadNo::B];
        if heads.into_iter().all(runs) {
            if heads.into_iter().any(|h| self.heads[h.index()].paused > self.now) {
                return;
            }
            let id = self.fresh();
            let up = heads.map(|_| self.rng.between(MS / 20, 3 * MS));
            for head in heads {
                self.at(up[head.index()], Event::Up { path, id, head });
            }
            // What a head sends arrives once the other one knows of the connection.
            let last = [self.now + up[1], self.now + up[0]];
            let held = Default::default();
            self.nets[path].connection = Some(Connection { id, open: [true; 2], last, held });
            return;
        }
        for head in heads {
            let (here, there) = (&self.heads[head.index()], &self.heads[head.other().index()]);
            let refused = here.process.is_some() && there.process.is_none() && there.powered;
            if refused && !self.nets[path].is_open(head) {
                self.net_input(head, path, net::Event::Refused);
            }
        }
    }
}
