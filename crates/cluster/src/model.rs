//! A model of two heads that decide, in every order of their steps: voters fail, heads are killed and start again. A small scenario runs in
//! every order, larger ones in orders from seeds.
//!
//! Only steps with an effect are modelled: a block is written; the blocks are read and the head gets the answer. A delay between that read
//! and its answer is no step: the head then writes, and that write may be late as well.

use crate::decide::{Ask, Decider, Found, Outcome};
use crate::record::{HeadNo, HeadRow, HeadState, SystemRecord, Voter};
use base::{Bug, Prng, Uuid, planted};
use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};

/// How much may happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scenario {
    /// How often each head proposes, in all of its lives.
    pub proposals: [u8; 2],
    /// How often each head is killed, and starts again with the first record.
    pub kills: [u8; 2],
    /// Operations that fail, with the block written or not.
    pub failures: u8,
    /// Records that are decided behind the first one, at most.
    pub epochs: u64,
    /// Head a replaces a voter by its records.
    pub moves_voter: bool,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// States, no two the same.
    pub states: u64,
    /// Most records that were decided in one of them.
    pub decided: usize,
}

/// What is looked at in every order.
pub const SMALL: Scenario =
    Scenario { proposals: [1, 1], kills: [0, 0], failures: 0, epochs: 1, moves_voter: false };

/// What is too much for that, and looked at in orders from seeds.
pub const LARGE: &[Scenario] = &[
    Scenario { proposals: [2, 1], kills: [1, 0], failures: 0, epochs: 1, moves_voter: false },
    Scenario { proposals: [3, 3], kills: [0, 0], failures: 2, epochs: 1, moves_voter: false },
    Scenario { proposals: [4, 3], kills: [2, 1], failures: 1, epochs: 1, moves_voter: false },
    Scenario { proposals: [4, 4], kills: [1, 1], failures: 1, epochs: 3, moves_voter: true },
];

#[derive(Clone, PartialEq, Eq, Hash)]
struct Op {
    head: HeadNo,
    ask: Ask,
    /// What it had was written.
    written: bool,
    /// What was read before that, by mistake.
    early: Option<Found>,
    /// Its head waits for it no more: what it writes may land all the same.
    stale: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    heads: [Decider; 2],
    voters: BTreeMap<Voter, Found>,
    ops: Vec<Op>,
    left: Scenario,
    decided: BTreeMap<u64, SystemRecord>,
}

fn drive(n: u8) -> Voter {
    Voter::Drive(Uuid([n; 16]))
}

/// The record that all begin with.
fn first() -> SystemRecord {
    let row = |since| HeadRow { state: HeadState::In, since, life: 1, ..HeadRow::default() };
    SystemRecord {
        system: Uuid([7; 16]),
        epoch: 1,
        latest: [true, true],
        changed: 0,
        features: 0,
        leader: HeadNo::A,
        heads: [row(1), row(1)],
        voters: vec![drive(1), drive(2), drive(3)],
    }
}

/// What may happen.
#[derive(Clone, Copy)]
enum Choice {
    Propose(HeadNo),
    Kill(HeadNo),
    /// An operation fails, whatever of it was done.
    Fail(usize),
    /// An operation goes on.
    Step(usize),
}

impl World {
    fn new(left: Scenario) -> Self {
        let head = |me| Decider::new(me, 1, first());
        let voters = (1..=4).map(|n| (drive(n), [None, None])).collect();
        Self {
            heads: [head(HeadNo::A), head(HeadNo::B)],
            voters,
            ops: vec![],
            left,
            decided: BTreeMap::new(),
        }
    }

    /// All that may happen next.
    fn choices(&self) -> Vec<Choice> {
        let mut choices = vec![];
        for head in [HeadNo::A, HeadNo::B] {
            let i = head.index();
            let decider = &self.heads[i];
            let more = decider.known().epoch - 1 < self.left.epochs;
            if self.left.proposals[i] > 0 && !decider.is_busy() && more {
                choices.push(Choice::Propose(head));
            }
            if self.left.kills[i] > 0 && decider.is_busy() {
                choices.push(Choice::Kill(head));
            }
        }
        for (n, op) in self.ops.iter().enumerate() {
            let earlier = &self.ops[..n];
            if earlier.iter().any(|o| o.head == op.head && o.ask.voter == op.ask.voter) {
                continue;
            }
            if self.left.failures > 0 && !op.stale {
                choices.push(Choice::Fail(n));
            }
            choices.push(Choice::Step(n));
        }
        choices
    }
    fn take(mut self, choice: Choice) -> Result<World, String> {
        match choice {
            Choice::Propose(head) => {
                let i = head.index();
                self.left.proposals[i] -= 1;
                let mut record = self.heads[i].known().without(head.other());
                record.features = u16::from(self.left.proposals[i]) << 8 | u16::from(self.left.kills[i]);
                if self.left.moves_voter && head == HeadNo::A {
                    record.voters = vec![drive(2), drive(3), drive(4)];
                }
                self.heads[i].propose(record);
                self.take_asks(head);
                Ok(self)
            }
            Choice::Kill(head) => {
                let i = head.index();
                self.left.kills[i] -= 1;
                self.ops.retain(|op| op.head != head);
                self.heads[i] = Decider::new(head, 2 + u64::from(self.left.kills[i]), first());
                Ok(self)
            }
            Choice::Fail(n) => {
                self.left.failures -= 1;
                self.answer(n, None)
            }
            Choice::Step(n) => self.step(n),
        }
    }
    /// Writes, or reads and reports.
    fn step(mut self, n: usize) -> Result<World, String> {
        let Op { head, ask, written, early, stale } = self.ops[n].clone();
        let blocks = self.voters.get_mut(&ask.voter).expect("it is one of four");
        if ask.write.is_some() && early.is_none() && !stale && planted(Bug::ReadBeforeWrite) {
            self.ops[n].early = Some(blocks.clone());
            return Ok(self);
        }
        if let Some(slot) = ask.write.filter(|_| !written) {
            blocks[head.index()] = Some(slot);
            self.ops[n].written = true;
            if stale {
                self.ops.remove(n);
            }
            return Ok(self);
        }
        let found = early.unwrap_or_else(|| blocks.clone());
        self.answer(n, Some(found))
    }
    fn answer(mut self, n: usize, found: Option<Found>) -> Result<World, String> {
        let op = self.ops.remove(n);
        let outcome = self.heads[op.head.index()].on_done(op.ask.voter, op.ask.round, found);
        self.take_asks(op.head);
        if let Some(Outcome::Decided(record)) = outcome {
            let before = self.decided.entry(record.epoch).or_insert_with(|| (*record).clone());
            if *before != *record {
                let words = "two records of one epoch are decided";
                return Err(format!("{words}, {}: {before:?} and {record:?}", record.epoch));
            }
        }
        Ok(self)
    }
    fn take_asks(&mut self, head: HeadNo) {
        let asks = self.heads[head.index()].asks();
        let round = self.heads[head.index()].round();
        for op in self.ops.iter_mut().filter(|op| op.head == head && op.ask.round != round) {
            op.stale = true;
        }
        self.ops.retain(|op| !op.stale || !op.written && op.ask.write.is_some());
        self.ops.extend(asks.into_iter().map(|ask| Op {
            head,
            ask,
            written: false,
            early: None,
            stale: false,
        }));
        // In which order heads and voters were asked is nothing that differs; in which order one voter was, is.
        self.ops.sort_by_key(|op| (op.head, op.ask.voter));
    }
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(self, &mut hasher);
        hasher.finish()
    }
}

/// Looks at everything that may happen.
///
/// # Errors
/// Two records of one epoch were decided, in words.
pub fn explore(scenario: Scenario) -> Result<Seen, String> {
    let mut known = BTreeSet::new();
    let mut seen = Seen::default();
    let mut stack = vec![World::new(scenario)];
    while let Some(world) = stack.pop() {
        seen.states += 1;
        seen.decided = seen.decided.max(world.decided.len());
        for choice in world.choices() {
            let next = world.clone().take(choice)?;
            if known.insert(next.hash()) {
                stack.push(next);
            }
        }
    }
    Ok(seen)
}

/// Goes one way through a scenario, to its end: how many records were decided.
///
/// # Errors
/// Two records of one epoch were decided, in words.
pub fn walk(scenario: Scenario, seed: u64) -> Result<usize, String> {
    let mut rng = Prng::new(seed);
    let mut world = World::new(scenario);
    loop {
        let choices = world.choices();
        if choices.is_empty() {
            return Ok(world.decided.len());
        }
        world = world.take(*rng.pick(&choices))?;
    }
}
