//! Two heads, their drives and the link between them, in simulated time and with whatever goes wrong: everything from one seed.
//!
//! ```text
//!   member ◀─ turns, by a clock of its own ─ process ── blocks, heartbeats, keys, values ─▶ drives: slow, lost, who is not registered is refused
//!                                               └────── bytes ─▶ networks: slow, cut one way or both, closed at any byte
//! ```
//!
//! The layer above the member is a small one (`layer.rs`): it shuts out the other head, and serves by writing stamped values. Every step checks
//! the invariants (`check.rs`). At the end the faults stop: then one head must lead and serve, and the other follow.

mod check;
mod drive;
mod faults;
mod fencing;
mod layer;
mod net;
mod shut;
mod steps;

use crate::decide::Found;
use crate::member::{Member, Part, Settings};
use crate::record::{HeadNo, HeadRow, HeadState, SystemRecord, Voter};
use crate::slot::Slot;
use crate::watch::Times;
use base::fence::Process as ProcessName;
use base::{Instant, Prng, Uuid};
use check::Check;
use drive::{Drive, Places, Reply};
use faults::Swarm;
pub use faults::{Calm, Took, calm};
use layer::Process;
use net::Net;
use std::collections::{BTreeMap, VecDeque};

/// A millisecond.
const MS: u64 = 1_000_000;
/// A second.
const SECOND: u64 = 1000 * MS;
/// So long things go wrong.
const FAULTS: u64 = 20 * SECOND;
/// So long it may take until all is well again.
const HEALED: u64 = 10 * SECOND;

/// What went wrong, in words.
type Failure = String;

/// What happened in a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Records that were decided.
    pub epochs: u64,
    /// How often a head began to lead.
    pub leads: u64,
    /// How often one began to serve.
    pub serves: u64,
    /// How often a follower was put out.
    pub put_out: u64,
    /// How often a head was let in.
    pub let_in: u64,
    /// How often one began to follow.
    pub follows: u64,
    /// Values that landed on a drive.
    pub writes: u64,
    /// Operations that a drive refused to a head that was shut out.
    pub refused: u64,
    /// From the end of all faults until all was well, milliseconds.
    pub healed_ms: u64,
}

/// Something comes to a process.
#[derive(Clone, Debug)]
enum Input {
    Net(usize, net::Event),
    Drive {
        drive: Uuid,
        op: u64,
        reply: Reply,
    },
    Directory {
        voter: Voter,
        op: u64,
        round: u64,
        found: Box<Found>,
    },
    VotedFor {
        number: u64,
        found: Box<Found>,
    },
    VoteFailed {
        voter: Voter,
        round: u64,
    },
    Limit {
        voter: Voter,
        op: u64,
        round: u64,
    },
    HeartbeatLimit {
        drive: Uuid,
        op: u64,
    },
    FenceLimit {
        drive: Uuid,
        number: u64,
        asked: Instant,
    },
    FenceTime,
    FollowAgain {
        drive: Uuid,
    },
    Candidates(Vec<Uuid>),
    /// The follower that is in since this epoch has all files.
    Synced(u64),
    Nothing,
}

/// Something happens.
#[derive(Debug)]
enum Event {
    /// A head's process turns because it is time.
    Wake(HeadNo, u64),
    Input(HeadNo, u64, Input),
    Start(HeadNo),
    Pause {
        head: HeadNo,
        number: u64,
        long: u64,
    },
    Resume(HeadNo, u64),
    /// The record that a process knows becomes durable in its directory.
    Persist(HeadNo, u64, Box<SystemRecord>),
    Directory {
        head: HeadNo,
        number: u64,
        of: HeadNo,
        write: Option<Box<Slot>>,
        then: Box<Input>,
    },
    Drive {
        drive: usize,
        op: u64,
    },
    Write(HeadNo, u64),
    Candidates(HeadNo, u64),
    /// Something that a head sent by this connection arrives.
    Arrives {
        path: usize,
        id: u64,
        from: HeadNo,
        item: net::Item,
    },
    Up {
        path: usize,
        id: u64,
        head: HeadNo,
    },
    /// Nothing came for three seconds.
    Silent {
        path: usize,
        id: u64,
        cut: Option<u64>,
    },
    Connect(usize),
    Cut {
        path: usize,
        cuts: u64,
    },
    Fault,
}

/// A head's machine.
#[derive(Debug)]
struct Machine {
    /// Its clock: what it shows at the beginning, and how much of a thousand units it goes on in a thousand.
    offset: u64,
    rate: u64,
    powered: bool,
    paused: u64,
    waits: VecDeque<Input>,
    process: Option<Process>,
    /// Processes that it has had.
    processes: u64,
    /// Its state directory: both heads' blocks, and what was decided last.
    directory: [Places; 2],
    record: SystemRecord,
    directory_ready: [u64; 2],
    wake: u64,
    fence_time: u64,
}

struct World {
    now: u64,
    sequence: u64,
    next: u64,
    rng: Prng,
    swarm: Swarm,
    queue: BTreeMap<(u64, u64), Event>,
    heads: [Machine; 2],
    drives: Vec<Drive>,
    nets: Vec<Net>,
    check: Check,
    outcome: Outcome,
    /// Who began to serve when, and by which epoch.
    served: Vec<(u64, HeadNo, u64)>,
    /// The last change of hosts in each state directory, and the last that was answered.
    files: [u64; 2],
    answered: u64,
    /// What happened, in words, if it is to be printed.
    story: Option<Vec<String>>,
}

impl World {
    fn new(seed: u64, swarm: Swarm) -> Self {
        let mut rng = Prng::new(seed ^ 0x6d65_6d62);
        let voters = *rng.pick(&[1, 3, 3, 5]);
        let spare = rng.below(3) as u8;
        let drives: Vec<Drive> = (1..=voters + spare).map(Drive::new).collect();
        let mut names = vec![Voter::Directory(HeadNo::A), Voter::Directory(HeadNo::B)];
        names.extend((1..=voters).map(|n| Voter::Drive(Uuid([n; 16]))));
        let row = |life, name: &str| HeadRow {
            state: HeadState::In,
            since: 1,
            life,
            certificate: [0; 32],
            name: name.into(),
        };
        let record = SystemRecord {
            system: Uuid([7; 16]),
            epoch: 1,
            latest: [true, true],
            changed: 0,
            features: 0,
            leader: HeadNo::A,
            heads: [row(1, "a"), row(2, "b")],
            voters: names,
        };
        let machine = |rng: &mut Prng| Machine {
            offset: rng.below(1000) * SECOND,
            rate: if swarm.clocks { rng.between(800, 1200) } else { 1000 },
            powered: true,
            paused: 0,
            waits: VecDeque::new(),
            process: None,
            processes: 0,
            directory: Default::default(),
            record: record.clone(),
            directory_ready: [0; 2],
            wake: 0,
            fence_time: 0,
        };
        let heads = [machine(&mut rng), machine(&mut rng)];
        let nets: Vec<Net> = (0..rng.between(1, 2)).map(|_| Net::default()).collect();
        let mut world = Self {
            now: 0,
            sequence: 0,
            next: 0,
            rng,
            swarm,
            queue: BTreeMap::new(),
            heads,
            drives,
            nets,
            check: Check::default(),
            outcome: Outcome::default(),
            served: vec![],
            files: [0, 0],
            answered: 0,
            story: None,
        };
        for head in [HeadNo::A, HeadNo::B] {
            let after = world.rng.below(500) * MS;
            world.at(after, Event::Start(head));
        }
        for path in 0..world.nets.len() {
            world.at(0, Event::Connect(path));
        }
        if world.swarm.any() {
            world.at(SECOND, Event::Fault);
        }
        world
    }
    fn say(&mut self, words: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            let words = words();
            if !words.is_empty() {
                story.push(format!("{:10.3} {words}", self.now as f64 / MS as f64));
            }
        }
    }
    /// Something happens so much later.
    fn at(&mut self, after: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), event);
    }
    fn input(&mut self, head: HeadNo, number: u64, after: u64, input: Input) {
        self.at(after, Event::Input(head, number, input));
    }
    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
    /// What a head's clock shows.
    fn local(&self, head: HeadNo) -> Instant {
        let machine = &self.heads[head.index()];
        Instant(machine.offset + self.now / 1000 * machine.rate + self.now % 1000 * machine.rate / 1000)
    }
    /// How long a time of a head's clock takes, and a little longer.
    fn real(&self, head: HeadNo, local: u64) -> u64 {
        local * 1000 / self.heads[head.index()].rate + 1001
    }
    fn part(&self, head: HeadNo) -> Option<Part> {
        self.heads[head.index()].process.as_ref().map(|p| p.member.part())
    }

    /// Goes on until then.
    fn run_until(&mut self, end: u64) -> Result<(), Failure> {
        while let Some(entry) = self.queue.first_entry().filter(|e| e.key().0 <= end) {
            let ((now, _), event) = entry.remove_entry();
            self.now = now;
            self.happen(event)?;
        }
        self.now = end;
        Ok(())
    }
    fn start(&mut self, head: HeadNo) -> Result<(), Failure> {
        let life = self.rng.next_u64() | 1;
        let seed = self.rng.next_u64();
        let networks = self.nets.len();
        let machine = &mut self.heads[head.index()];
        if machine.process.is_some() {
            return Ok(());
        }
        machine.powered = true;
        machine.processes += 1;
        let number = machine.processes;
        let settings = Settings {
            me: head,
            life,
            name: if head == HeadNo::A { "a".into() } else { "b".into() },
            process: ProcessName { pid: number as u32, started: number },
            networks,
            times: Times::default(),
            seed,
        };
        let member = Member::new(settings, machine.record.clone());
        let epoch = machine.record.epoch;
        machine.process = Some(Process::new(number, member, networks));
        self.say(|| format!("{head:?} starts as {life:x}, knows {epoch}"));
        self.turn(head)
    }
    /// A process and its connections are gone; what it has at drives goes on.
    fn end_process(&mut self, head: HeadNo) {
        self.heads[head.index()].waits.clear();
        self.heads[head.index()].paused = 0;
        self.heads[head.index()].process = None;
        for path in 0..self.nets.len() {
            if self.nets[path].is_open(head) {
                self.send(head, path, &net::Item::Closed);
                self.nets[path].close(head);
            }
        }
    }
    /// When the process is to turn, if nothing comes.
    fn wake(&mut self, head: HeadNo) {
        let now = self.local(head);
        let Some(process) = &self.heads[head.index()].process else { return };
        let Some(at) = process.member.next_deadline() else { return };
        let after = self.real(head, at.since(now).as_nanos() as u64) + self.rng.below(MS / 5);
        let wake = self.now + after;
        self.heads[head.index()].wake = wake;
        self.at(after, Event::Wake(head, wake));
    }
    fn persist(&mut self, head: HeadNo, known: SystemRecord) {
        let machine = &self.heads[head.index()];
        let process = machine.process.as_ref().expect("it turns");
        if known.epoch > machine.record.epoch {
            let number = process.number;
            let after = if self.swarm.stale { self.rng.between(0, 300) * MS } else { MS };
            self.at(after, Event::Persist(head, number, Box::new(known)));
        }
    }
    /// Whether one head leads and serves, and the other follows, and both know the same.
    fn is_well(&self) -> bool {
        let [a, b] = [&self.heads[0], &self.heads[1]].map(|m| m.process.as_ref());
        let (Some(a), Some(b)) = (a, b) else { return false };
        let (leader, follower) = if a.member.part() == Part::Leader { (a, b) } else { (b, a) };
        leader.member.part() == Part::Leader
            && follower.member.part() == Part::Follower
            && leader.serving.is_some()
            && leader.member.known() == follower.member.known()
    }
    /// Waits until all is well, so long at most: how long it took.
    fn settle(&mut self, most: u64) -> Result<u64, Failure> {
        let began = self.now;
        while !self.is_well() {
            if self.now >= began + most {
                let part = |h: HeadNo| {
                    let process = self.heads[h.index()].process.as_ref();
                    let process = process.map(|p| (p.member.part(), p.serving.is_some(), p.member.known()));
                    format!("{process:?}")
                };
                let (a, b) = (part(HeadNo::A), part(HeadNo::B));
                return Err(format!("it does not become well again: {a}, {b}"));
            }
            self.run_until(self.now + 10 * MS)?;
        }
        Ok(self.now - began)
    }
    fn go(&mut self) -> Result<Outcome, Failure> {
        self.run_until(FAULTS)?;
        self.heal();
        self.outcome.healed_ms = self.settle(HEALED)? / MS;
        self.outcome.epochs = self.check.epochs();
        Ok(self.outcome)
    }
}

/// Lives through the world of a seed.
///
/// # Errors
/// What must not be, in words.
pub fn run(seed: u64) -> Result<Outcome, String> {
    World::new(seed, Swarm::new(seed)).go()
}

/// The same, and what happened.
pub fn story(seed: u64) -> (Result<Outcome, String>, Vec<String>) {
    let mut world = World::new(seed, Swarm::new(seed));
    world.story = Some(vec![]);
    let result = world.go();
    (result, world.story.unwrap_or_default())
}
