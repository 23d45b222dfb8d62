//! A head's process: its member, and the layer above, which asks drives, shuts out, and serves.

use super::drive::{Act, Reply};
use super::fencing::{Fencing, State};
use super::shut::AGAIN;
use super::{Event, Failure, Input, MS, World};
use crate::member::{Do, Member, NotReached, Part};
use crate::record::{HeadNo, HeadState, SystemRecord, Voter};
use crate::slot::Slot;
use base::{Fence, FenceError, FenceKey, Uuid};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A voter, or a heartbeat on a drive, that does not answer in this time has failed.
const LIMIT: u64 = 500 * MS;
/// A head that most voter drives refuse in so many answers has ended.
const FENCED: u32 = 8;

/// What one voter is asked: one thing at a time.
#[derive(Debug, Default)]
struct Queue {
    waits: VecDeque<crate::decide::Ask>,
    busy: Option<(u64, u64)>,
    /// What is under way was given up; until it is over, the voter has failed.
    given_up: bool,
}

/// What an operation at a drive is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Vote(Voter),
    Heartbeat,
    /// Registration, and what is to follow: a fence's question.
    Register(FenceKey, Option<(FenceKey, u64)>),
    ShutOut(u64),
    Data,
}

/// The fence of one lead, or of one head that was put out.
#[derive(Debug)]
pub(super) struct Work {
    pub fencing: Fencing,
    /// Questions of an older one are no news.
    pub number: u64,
    pub own: FenceKey,
    /// What `on_fenced` was called for last.
    pub reported: BTreeSet<Uuid>,
}

/// What it serves from.
#[derive(Debug)]
pub(super) struct Serving {
    /// The epoch by which it leads.
    pub epoch: u64,
    pub drives: BTreeSet<Uuid>,
}

/// A process.
#[derive(Debug)]
pub(super) struct Process {
    pub number: u64,
    pub member: Member,
    /// The connection that it has by each network, 0 for none.
    pub connections: Vec<u64>,
    pub serving: Option<Serving>,
    /// Since when the follower is in that has all files of this head.
    pub synced: u64,
    votes: BTreeMap<Voter, Queue>,
    heartbeats: BTreeMap<Uuid, (u64, bool)>,
    /// Drives that took a heartbeat once it was in: whether they refused the last one; and how many answers ago most voters do.
    refuse: BTreeMap<Uuid, bool>,
    refused: u32,
    pub purposes: BTreeMap<u64, Purpose>,
    pub work: Option<Work>,
    pub works: u64,
    pub leads: u64,
    /// The key by which it registered on each drive, as far as it knows.
    pub registered: BTreeMap<Uuid, FenceKey>,
    /// Drives on which a key is being changed.
    pub busy: BTreeSet<Uuid>,
    pub follows: Option<FenceKey>,
}

impl Process {
    pub fn new(number: u64, member: Member, networks: usize) -> Self {
        Self {
            number,
            member,
            connections: vec![0; networks],
            serving: None,
            synced: 0,
            votes: BTreeMap::new(),
            heartbeats: BTreeMap::new(),
            refuse: BTreeMap::new(),
            refused: 0,
            purposes: BTreeMap::new(),
            work: None,
            works: 0,
            leads: 0,
            registered: BTreeMap::new(),
            busy: BTreeSet::new(),
            follows: None,
        }
    }
    /// Whether every drive but those that are given up has confirmed its fence.
    pub fn is_fenced(&self) -> bool {
        self.work.as_ref().is_some_and(|w| !w.reported.is_empty())
    }
    /// A drive has refused its heartbeat, or not. A head that is in, and was registered there before, has been shut out.
    fn on_refused(&mut self, drive: Uuid, why: Option<NotReached>) {
        let is_in = matches!(self.member.part(), Part::Follower | Part::Leader);
        let voters: Vec<Uuid> = self.member.known().voters.iter().filter_map(|v| v.drive()).collect();
        self.refuse.retain(|d, _| is_in && voters.contains(d));
        if let Some(refuses) = self.refuse.get_mut(&drive) {
            *refuses = why == Some(NotReached::Fenced);
        } else if is_in && why.is_none() {
            self.refuse.insert(drive, false);
        }
        let most = self.refuse.values().filter(|r| **r).count() * 2 > voters.len();
        self.refused = if most { self.refused + 1 } else { 0 };
    }
    /// The drives of that which have not confirmed it.
    pub fn unconfirmed(&self) -> Option<Uuid> {
        let work = self.work.as_ref()?;
        work.reported.iter().copied().find(|d| work.fencing.state(*d) != Some(State::Confirmed))
    }
}

impl World {
    pub(super) fn process(&mut self, head: HeadNo) -> &mut Process {
        self.heads[head.index()].process.as_mut().expect("only a process that runs is called")
    }
    pub(super) fn runs(&self, head: HeadNo) -> bool {
        self.heads[head.index()].process.is_some()
    }

    /// Something comes to a process that runs.
    pub(super) fn take(&mut self, head: HeadNo, input: Input) -> Result<(), Failure> {
        let now = self.local(head);
        match input {
            Input::Net(path, event) => self.on_net(head, path, event),
            Input::Drive { drive, op, reply } => self.on_reply(head, drive, op, reply)?,
            Input::Directory { voter, op, round, found } => {
                self.on_vote(head, voter, op, round, Some(*found))
            }
            Input::Limit { voter, op, round } => {
                let queue = self.process(head).votes.entry(voter).or_default();
                if queue.busy == Some((op, round)) && !queue.given_up {
                    queue.given_up = true;
                    let waits: Vec<u64> = queue.waits.drain(..).map(|ask| ask.round).collect();
                    for round in [round].into_iter().chain(waits) {
                        self.process(head).member.on_voted(now, voter, round, None);
                    }
                }
            }
            Input::VoteFailed { voter, round } => self.process(head).member.on_voted(now, voter, round, None),
            Input::VotedFor { number, found } => self.process(head).member.on_voted_for(number, Some(*found)),
            Input::HeartbeatLimit { drive, op } => {
                let process = self.process(head);
                if let Some((_, answered @ false)) = process.heartbeats.get_mut(&drive).filter(|b| b.0 == op)
                {
                    *answered = true;
                    process.on_refused(drive, Some(NotReached::Failed));
                    process.member.on_drive(now, drive, Err(NotReached::Failed));
                }
            }
            Input::FenceLimit { drive, number, asked } => {
                let work = self.process(head).work.as_mut().filter(|w| w.number == number);
                if let Some(work) = work.filter(|w| w.fencing.state(drive) == Some(State::Asked(asked))) {
                    work.fencing.on_done(drive, &Err(FenceError::TimedOut), now);
                }
            }
            Input::FenceTime | Input::Nothing => {}
            Input::FollowAgain { drive } => self.follow(head, drive),
            Input::Synced(since) => {
                let (known, other) = (self.process(head).member.known(), head.other());
                if known.is_in(other) && known.head(other).since == since {
                    self.files[other.index()] = self.files[head.index()];
                    self.process(head).synced = since;
                    self.process(head).member.on_synced();
                }
            }
            Input::Candidates(drives) => self.process(head).member.on_candidates(drives),
        }
        self.fence(head);
        self.turn(head)
    }

    /// Lets the member go on, and does what it says.
    pub(super) fn turn(&mut self, head: HeadNo) -> Result<(), Failure> {
        let now = self.local(head);
        let before = self.process(head).member.known().clone();
        let mut over = false;
        for what in self.process(head).member.turn(now) {
            if over {
                return Err(format!("a process that is over does something more: {what:?}"));
            }
            over = matches!(what, Do::End(_));
            self.say(|| match &what {
                Do::Link(_) | Do::Heartbeat { .. } => String::new(),
                Do::Vote(ask) => format!("{head:?} asks {:?} round {}", ask.voter, ask.round),
                other => format!("{head:?} {other:?}"),
            });
            self.carry_out(head, what)?;
        }
        let process = self.process(head);
        let (known, life) = (process.member.known().clone(), process.member.life());
        let voters: Vec<Uuid> = known.voters.iter().filter_map(|v| v.drive()).collect();
        self.process(head).refuse.retain(|d, _| voters.contains(d));
        if known.epoch != before.epoch {
            self.say(|| format!("{head:?} knows {}", words(&known)));
        }
        let fenced = self.process(head).is_fenced();
        let other = head.other();
        let newcomer = known.is_in(other) && known.head(other).life != before.head(other).life;
        if newcomer && known.is_in_as(head, life) && known.leader == head && before.leader == head && !fenced
        {
            return Err(format!("{other:?} is let in before its former process is shut out: {known:?}"));
        }
        let process = self.process(head);
        let is_in = matches!(process.member.part(), Part::Follower | Part::Leader);
        if is_in && process.refused > FENCED {
            return Err(format!("{head:?} goes on although most voter drives refuse it"));
        }
        self.check.decided(&known)?;
        self.check.part(&self.heads[head.index()].process.as_ref().expect("it runs").member)?;
        self.persist(head, known);
        if over {
            let now = self.local(head);
            let member = &mut self.process(head).member;
            let path_down = member.turn(now);
            if !path_down.is_empty() || member.next_deadline().is_some() {
                return Err(format!("a process that is over does something more: {path_down:?}"));
            }
            self.end_process(head);
            let after = self.rng.between(100, 500) * MS;
            self.at(after, Event::Start(head));
            return Ok(());
        }
        self.fence(head);
        self.wake(head);
        Ok(())
    }

    fn carry_out(&mut self, head: HeadNo, what: Do) -> Result<(), Failure> {
        let number = self.process(head).number;
        match what {
            Do::Link(what) => self.link(head, what),
            Do::Vote(ask) => self.vote(head, ask),
            Do::VoteFor { number, write } => {
                self.directory(head, head.other(), write, |found| Input::VotedFor { number, found })
            }
            Do::Heartbeat { drive, heartbeat } => {
                if self.process(head).heartbeats.get(&drive).is_some_and(|b| b.0 != 0) {
                    // The one before hangs.
                    self.process(head).heartbeats.entry(drive).and_modify(|b| b.1 = true);
                    let input = Input::HeartbeatLimit { drive, op: 0 };
                    let now = self.local(head);
                    let process = self.process(head);
                    process.on_refused(drive, Some(NotReached::Failed));
                    process.member.on_drive(now, drive, Err(NotReached::Failed));
                    self.input(head, number, 1, input);
                } else {
                    let op = self.issue(head, drive, Act::Heartbeat(heartbeat));
                    self.process(head).purposes.insert(op, Purpose::Heartbeat);
                    self.process(head).heartbeats.insert(drive, (op, false));
                    self.input(head, number, LIMIT, Input::HeartbeatLimit { drive, op });
                }
            }
            Do::Lead { .. } => {
                self.outcome.leads += 1;
                self.process(head).leads = self.process(head).member.known().epoch;
                self.begin_fence(head);
                self.candidates(head);
            }
            Do::PutOut { .. } => {
                self.outcome.put_out += 1;
                self.begin_fence(head);
            }
            Do::LetIn => {
                self.outcome.let_in += 1;
                let known = self.process(head).member.known();
                let key = known.key(head.other());
                let (since, number) = (known.head(head.other()).since, self.process(head).number);
                if let (Some(work), Some(key)) = (&mut self.process(head).work, key) {
                    work.fencing.let_in(key);
                }
                let after = self.rng.between(1, 50) * MS;
                self.input(head, number, after, Input::Synced(since));
            }
            Do::Follow => {
                self.outcome.follows += 1;
                let process = self.process(head);
                process.follows = process.member.known().key(head);
                for drive in self.drives.iter().map(|d| d.id).collect::<Vec<_>>() {
                    self.follow(head, drive);
                }
            }
            Do::Serve => self.serve(head)?,
            Do::End(_) | Do::Upper(_) | Do::Sight { .. } => {}
        }
        Ok(())
    }

    fn vote(&mut self, head: HeadNo, ask: crate::decide::Ask) {
        let (voter, round) = (ask.voter, ask.round);
        let process = self.process(head);
        let number = process.number;
        let queue = process.votes.entry(voter).or_default();
        if queue.given_up {
            return self.input(head, number, 1, Input::VoteFailed { voter, round });
        }
        queue.waits.push_back(ask);
        self.next_vote(head, voter);
    }
    fn next_vote(&mut self, head: HeadNo, voter: Voter) {
        let queue = self.process(head).votes.entry(voter).or_default();
        if queue.busy.is_some() {
            return;
        }
        let Some(ask) = queue.waits.pop_front() else { return };
        let round = ask.round;
        let op = match voter {
            Voter::Drive(drive) => {
                let op = self.issue(head, drive, Act::Vote(Box::new(ask)));
                self.process(head).purposes.insert(op, Purpose::Vote(voter));
                op
            }
            Voter::Directory(_) => {
                let op = self.fresh();
                self.directory(head, head, ask.write, move |found| Input::Directory {
                    voter,
                    op,
                    round,
                    found,
                });
                op
            }
        };
        let process = self.process(head);
        process.votes.entry(voter).or_default().busy = Some((op, round));
        let number = process.number;
        self.input(head, number, LIMIT, Input::Limit { voter, op, round });
    }
    fn on_vote(
        &mut self,
        head: HeadNo,
        voter: Voter,
        op: u64,
        round: u64,
        found: Option<crate::decide::Found>,
    ) {
        let now = self.local(head);
        let process = self.process(head);
        let queue = process.votes.entry(voter).or_default();
        if queue.busy != Some((op, round)) {
            return;
        }
        queue.busy = None;
        if !core::mem::take(&mut queue.given_up) {
            process.member.on_voted(now, voter, round, found);
        }
        self.next_vote(head, voter);
    }
    /// In a head's directory: writes a block of `of`, then reads both.
    fn directory(
        &mut self,
        head: HeadNo,
        of: HeadNo,
        write: Option<Slot>,
        done: impl FnOnce(Box<crate::decide::Found>) -> Input,
    ) {
        let number = self.process(head).number;
        let latency = self.rng.between(MS / 10, 5 * MS);
        let machine = &mut self.heads[head.index()];
        let at = (self.now + latency).max(machine.directory_ready[of.index()] + 1);
        machine.directory_ready[of.index()] = at;
        // What was found is filled in when it is read.
        let then = Box::new(done(Box::default()));
        self.at(at - self.now, Event::Directory { head, number, of, write: write.map(Box::new), then });
    }

    fn on_reply(&mut self, head: HeadNo, drive: Uuid, op: u64, reply: Reply) -> Result<(), Failure> {
        let now = self.local(head);
        let Some(purpose) = self.process(head).purposes.remove(&op) else { return Ok(()) };
        let refused = matches!(reply, Reply::Fenced);
        match purpose {
            Purpose::Data => {}
            Purpose::Vote(voter) => {
                let round = self.process(head).votes.entry(voter).or_default().busy.map_or(0, |b| b.1);
                let found = match reply {
                    Reply::Found(found) => Some(*found),
                    _ => None,
                };
                self.on_vote(head, voter, op, round, found);
            }
            Purpose::Heartbeat => {
                let found = match reply {
                    Reply::Heartbeat(heartbeat) => Ok(heartbeat),
                    Reply::Fenced => Err(NotReached::Fenced),
                    _ => Err(NotReached::Failed),
                };
                let process = self.process(head);
                let (_, answered) = process.heartbeats.remove(&drive).unwrap_or_default();
                if !answered {
                    process.on_refused(drive, found.err());
                    process.member.on_drive(now, drive, found);
                }
            }
            Purpose::Register(key, then) => {
                self.process(head).busy.remove(&drive);
                let good = matches!(reply, Reply::Keys(_));
                if good {
                    self.process(head).registered.insert(drive, key);
                }
                match then {
                    Some((victim, number)) if good => self.shut_out(head, drive, victim, number),
                    Some((_, number)) => self.fenced(head, drive, number, &Err(FenceError::Gone)),
                    None if !good => {
                        let process = self.process(head).number;
                        self.input(head, process, AGAIN, Input::FollowAgain { drive });
                    }
                    None => self.follow(head, drive),
                }
            }
            Purpose::ShutOut(number) => {
                self.process(head).busy.remove(&drive);
                let result = match reply {
                    Reply::Keys(keys) => Ok(Fence::Keys(keys)),
                    Reply::NotRegistered => Err(FenceError::NotRegistered),
                    _ => Err(FenceError::TimedOut),
                };
                if matches!(result, Err(FenceError::NotRegistered)) {
                    // The other one may have shut us out: before we register again, this drive is not served from any more.
                    let process = self.process(head);
                    process.registered.remove(&drive);
                    if let Some(serving) = &mut process.serving {
                        serving.drives.remove(&drive);
                    }
                }
                self.fenced(head, drive, number, &result);
            }
        }
        if refused && self.process(head).member.part() == Part::Outside {
            // A head that is not in votes under a key of its own, which counts as no key too many.
            let key = self.process(head).member.known().key_outside(head);
            self.register(head, drive, key, None);
        }
        Ok(())
    }
}

/// A record, in short.
fn words(record: &SystemRecord) -> String {
    let head = |h: HeadNo| match record.head(h).state {
        HeadState::None => "none".into(),
        HeadState::Out => "out".into(),
        _ => format!("{:x} since {}", record.head(h).life, record.head(h).since),
    };
    let voters: Vec<u8> = record.voters.iter().map(|v| v.drive().map_or(0, |d| d.0[0])).collect();
    let (a, b): (String, String) = (head(HeadNo::A), head(HeadNo::B));
    format!("{}: {:?} leads, a {a}, b {b}, voters {voters:?}", record.epoch, record.leader)
}
