//! A simulated host: it speaks the real PDUs through `load::Initiator`, and knows what every block may
//! hold.

use crate::memory::SimMemory;
use crate::volume::{Broken, Flush, Read, Volume, Write, stamp};
use base::{
    ConnectionId, Dma, Duration, Effects, Event, FaultKind, HostCommand, HostStatus, Instant, Machine,
    Memory, Op, Prng, Slice,
};
use load::{Initiator, State};
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of one block.
pub const BLOCK: usize = 4096;
/// Most blocks of one command.
pub const BLOCKS_MAX: u32 = 32;

/// What a host does, per seed.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Commands in all.
    pub commands: u32,
    /// Under way at a time.
    pub depth: u32,
    /// Blocks that it works on.
    pub blocks: u64,
    /// Of 1000 commands: writes, flushes, zeroes, aborts of a random command.
    pub write_permille: u64,
    /// See `write_permille`.
    pub flush_permille: u64,
    /// See `write_permille`.
    pub zero_permille: u64,
    /// See `write_permille`.
    pub abort_permille: u64,
    /// Writes among 1000 that are forced to the medium.
    pub fua_permille: u64,
    /// Longest command, blocks.
    pub blocks_max: u64,
    /// Sessions are dropped without good-bye so many times in a million turns.
    pub reset_ppm: u64,
}

enum Doing {
    Read(Read),
    Write(Write),
    Flush(Flush),
}

struct Slot {
    doing: Doing,
    data: Slice,
}

/// What a host shares with the script of its world.
#[derive(Default)]
pub struct Ledger {
    /// Commands that ended well.
    pub good: u64,
    /// Commands that ended in an error, by its word.
    pub failed: u64,
    /// Commands whose connection was lost.
    pub lost: u64,
    /// Sessions that were brought up.
    pub sessions: u64,
    /// Promises broken.
    pub broken: Vec<Broken>,
    /// Every command has ended.
    pub finished: bool,
    /// Longest time that a read took.
    pub slowest_read: Duration,
    /// Longest time that a write or a flush took.
    pub slowest_write: Duration,
    /// Nothing new is started.
    pub stop: bool,
    /// What happened, for the story, if anybody wants it.
    pub told: Option<Vec<String>>,
}

impl Ledger {
    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push(line());
        }
    }
}

/// A host.
pub struct Host {
    initiator: Initiator,
    memory: SimMemory,
    buffers: Vec<Slice>,
    slots: Vec<Option<(Slot, Instant)>>,
    volume: Rc<RefCell<Volume>>,
    /// For the script.
    pub ledger: Rc<RefCell<Ledger>>,
    habits: Habits,
    rng: Prng,
    issued: u32,
    retry_at: Option<Instant>,
    /// Writes of sessions that were lost: they may land until the next session is up.
    limbo: Vec<Write>,
}

impl Host {
    /// A host with memory `[at, at + bytes)`, of which the first `staging` bytes are the world's.
    pub fn new(
        config: load::Config,
        habits: Habits,
        memory: (u64, u64),
        staging: u64,
        volume: Rc<RefCell<Volume>>,
        seed: u64,
    ) -> Self {
        let (at, bytes) = memory;
        let own = at + staging;
        let rings = config.memory_bytes();
        let first = own + rings;
        let size = BLOCKS_MAX as usize * BLOCK;
        let depth = habits.depth;
        assert!(first + u64::from(depth) * size as u64 <= at + bytes, "a host's memory is large enough");
        let buffers = (0..depth)
            .map(|i| Slice::new(first + u64::from(i) * size as u64, size as u32))
            .collect::<Vec<_>>();
        Self {
            initiator: Initiator::new(config, 0, own),
            memory: SimMemory::new(at, bytes),
            slots: (0..depth).map(|_| None).collect(),
            buffers,
            volume,
            ledger: Rc::default(),
            habits,
            rng: Prng::new(seed),
            issued: 0,
            retry_at: None,
            limbo: vec![],
        }
    }
    /// Memory that a host of this configuration and depth needs beyond its staging.
    pub fn memory_bytes(config: &load::Config, depth: u32) -> u64 {
        config.memory_bytes() + u64::from(depth) * u64::from(BLOCKS_MAX) * BLOCK as u64
    }

    fn end_commands(&mut self, now: Instant) {
        while let Some(done) = self.initiator.next_done() {
            let (slot, began) = self.slots[done.id as usize].take().expect("a command ends once");
            let mut ledger = self.ledger.borrow_mut();
            let (took, figures) = (now.since(began), &mut *ledger);
            let slowest = match slot.doing {
                Doing::Read(_) => &mut figures.slowest_read,
                Doing::Write(_) | Doing::Flush(_) => &mut figures.slowest_write,
            };
            *slowest = took.max(*slowest);
            ledger.tell(|| format!("{} ends: {:?}", done.id, done.status));
            let good = done.status == HostStatus::Good;
            match done.status {
                HostStatus::Good => ledger.good += 1,
                HostStatus::ConnectionLost => ledger.lost += 1,
                HostStatus::Failed(_) | HostStatus::Retry { .. } => ledger.failed += 1,
            }
            let mut volume = self.volume.borrow_mut();
            match slot.doing {
                Doing::Write(w) if good => volume.write_ends(w),
                Doing::Write(w) => {
                    volume.write_lost(&w);
                    match done.status {
                        HostStatus::ConnectionLost => self.limbo.push(w),
                        // Promise 3: it has landed, in whole or in part, or it never will.
                        HostStatus::Failed(f) if f.kind == FaultKind::Aborted => volume.write_settled(&w),
                        HostStatus::Good | HostStatus::Failed(_) | HostStatus::Retry { .. } => {}
                    }
                }
                Doing::Flush(f) if good => volume.flush_ends(f),
                Doing::Flush(_) => {}
                Doing::Read(r) => {
                    let data = good.then(|| self.memory.bytes(slot.data));
                    if let Err(broken) = volume.read_ends(r, data, BLOCK) {
                        ledger.broken.push(broken);
                    }
                }
            }
            self.buffers.push(slot.data);
        }
    }

    fn begin_commands(&mut self, now: Instant) {
        let stop = self.ledger.borrow().stop;
        while !stop && self.issued < self.habits.commands && self.initiator.free() > 0 {
            let Some(id) = self.slots.iter().position(Option::is_none) else { return };
            let Some(buffer) = self.buffers.pop() else { return };
            self.issued += 1;
            let (rng, habits) = (&mut self.rng, &self.habits);
            let blocks = rng.between(1, habits.blocks_max.min(habits.blocks)) as u32;
            let at = rng.below(habits.blocks - u64::from(blocks) + 1);
            let dice = rng.below(1000);
            let fua = rng.chance(habits.fua_permille, 1000);
            let mut volume = self.volume.borrow_mut();
            let (op, doing) = if dice < habits.write_permille {
                (Op::Write, Doing::Write(volume.write_starts(at, blocks, fua, false)))
            } else if dice < habits.write_permille + habits.zero_permille {
                let op = Op::WriteZeroes { deallocate: rng.chance(1, 2) };
                (op, Doing::Write(volume.write_starts(at, blocks, false, true)))
            } else if dice < habits.write_permille + habits.zero_permille + habits.flush_permille {
                (Op::Flush, Doing::Flush(volume.flush_starts()))
            } else {
                (Op::Read, Doing::Read(volume.read_starts(at, blocks)))
            };
            let full = buffer;
            let len = if matches!(op, Op::Read | Op::Write) { blocks * BLOCK as u32 } else { 0 };
            let data = Slice::new(full.at, len);
            if let Doing::Write(w) = &doing
                && op == Op::Write
            {
                stamp(w.id, at, BLOCK, self.memory.bytes_mut(data));
            }
            let blocks = if op == Op::Flush { 0 } else { blocks };
            let at = if op == Op::Flush { 0 } else { at };
            let command = HostCommand { id: id as u32, op, at, blocks, fua: fua && op == Op::Write, data };
            drop(volume);
            self.ledger.borrow_mut().tell(|| {
                let name = if let Doing::Write(w) = &doing { w.id } else { 0 };
                format!("{id} begins: {op:?} {name} at {at}, {blocks} blocks")
            });
            let taken = self.initiator.submit(&command, &mut self.memory);
            assert!(taken, "there was room");
            self.slots[id] = Some((Slot { doing, data: Slice::new(full.at, data.len) }, now));
            if self.rng.chance(self.habits.abort_permille, 1000) {
                let victim = self.rng.below(self.slots.len() as u64) as u32;
                if self.slots[victim as usize].is_some() {
                    self.initiator.abort(victim);
                    self.ledger.borrow_mut().tell(|| format!("{victim} shall be aborted"));
                }
            }
        }
    }

    fn go_on(&mut self, now: Instant, fx: &mut Effects<()>) {
        self.initiator.end_of_turn(now, &mut self.memory, fx);
        self.end_commands(now);
        match self.initiator.state() {
            State::Idle => self.initiator.start(now),
            State::Down(_) => match self.retry_at {
                None => self.retry_at = Some(now + Duration::from_millis(5)),
                Some(at) if at <= now => {
                    self.retry_at = None;
                    self.initiator.start(now);
                }
                Some(_) => {}
            },
            State::Ready => {
                let mut volume = self.volume.borrow_mut();
                self.limbo.drain(..).for_each(|w| volume.write_settled(&w));
                drop(volume);
                if self.rng.chance(self.habits.reset_ppm, 1_000_000) {
                    self.initiator.reset(fx);
                } else {
                    self.begin_commands(now);
                }
            }
            State::Starting | State::Stopping | State::Closing => {}
        }
        self.initiator.end_of_turn(now, &mut self.memory, fx);
        self.end_commands(now);
        let done = self.issued >= self.habits.commands || self.ledger.borrow().stop;
        let idle = self.slots.iter().all(Option::is_none);
        self.ledger.borrow_mut().finished = done && idle;
    }
}

impl Machine for Host {
    type Mail = ();
    fn on_event(&mut self, now: Instant, event: Event<()>, fx: &mut Effects<()>) {
        let before = self.initiator.state();
        self.initiator.on_event(now, &event, &mut self.memory, fx);
        if before != State::Ready && self.initiator.state() == State::Ready {
            self.ledger.borrow_mut().sessions += 1;
        }
    }
    fn on_timer(&mut self, now: Instant, fx: &mut Effects<()>) {
        if self.initiator.next_deadline().is_some_and(|at| at <= now) {
            self.initiator.on_timer(now, fx);
        }
    }
    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<()>) {
        self.go_on(now, fx);
    }
    fn next_deadline(&self) -> Option<Instant> {
        [self.initiator.next_deadline(), self.retry_at].into_iter().flatten().min()
    }
    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        self.initiator.segments(connection, max, out);
    }
}

impl Dma for Host {
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        let (start, bytes) = self.memory.extent();
        let inside = start <= data.at && data.end() <= start + bytes;
        if inside {
            with(self.memory.bytes_mut(data));
        }
        inside
    }
}
