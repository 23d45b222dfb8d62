//! A simulated host: it speaks the real PDUs through `load::Initiator`, and knows what every block may
//! hold.

use crate::failover::{Failover, Other};
use crate::memory::SimMemory;
use crate::oracle::WriteId;
use crate::path::{AGAIN, Copy, Path};
use crate::volume::{Broken, Flush, Read, Volume, Write, stamp};
use base::view::Secret;
use base::{
    ConnectionId, Dma, Duration, Effects, Event, Fault, FaultKind, HostCommand, HostStatus, Instant, Machine,
    Memory, Op, Prng, Slice,
};
use load::{Initiator, State};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Bytes of the longest command, but in worlds of scarce memory.
pub const TRANSFER_MAX: u32 = 128 << 10;
/// Blocks of a short command, at most.
const SHORT_BLOCKS: u64 = 2;
/// A host that has no answer for so long gives its session up and begins another.
const PATIENCE: Duration = Duration::from_secs(25);
/// What a SCSI host gets whose command another one has ended, as its session says it.
const TASK_ABORTED: u32 = 0x40 << 24;
/// What a buffer holds before it is read into.
const UNREAD: u8 = 0xee;

/// What a host does, per seed.
#[derive(Clone, Debug, Default)]
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
    /// Behind so many of 1000 commands all tasks on the volume are ended, those of other hosts too. By SCSI hosts.
    pub clear_permille: u64,
    /// Writes among 1000 that are forced to the medium.
    pub fua_permille: u64,
    /// Zeroes may be forced too: NVMe can say so, SCSI's WRITE SAME cannot.
    pub zeroes_fua: bool,
    /// Of 1000 commands: blocks that need not be kept, and comparisons.
    pub deallocate_permille: u64,
    /// See `deallocate_permille`.
    pub compare_permille: u64,
    /// Longest command, blocks.
    pub blocks_max: u64,
    /// Of 1000 commands: those of one or two blocks, however long others are. They may come in their capsule as a whole.
    pub short_permille: u64,
    /// Longest command, bytes.
    pub transfer_max: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Sessions are dropped without good-bye so many times in a million turns.
    pub reset_ppm: u64,
    /// The same, and their path brings nothing any more, so that the head gets no event: for hosts that have a second one.
    pub lose_ppm: u64,
}

impl Habits {
    /// What a seed gives a host to do.
    pub fn swarm(rng: &mut Prng) -> Self {
        Self {
            commands: 1000,
            depth: rng.between(1, 16) as u32,
            blocks: rng.between(8, 400),
            write_permille: rng.between(200, 800),
            flush_permille: rng.below(60),
            zero_permille: rng.below(60),
            abort_permille: rng.below(30),
            clear_permille: 0,
            fua_permille: rng.below(200),
            zeroes_fua: false,
            deallocate_permille: rng.below(40),
            compare_permille: rng.below(40),
            blocks_max: rng.between(1, 8),
            short_permille: 0,
            transfer_max: TRANSFER_MAX,
            block_bytes: 4096,
            reset_ppm: rng.below(1500),
            lose_ppm: 0,
        }
    }
}

enum Doing {
    Read(Read),
    Compare(Read),
    Write(Write),
    /// A deallocation: advice.
    Advice(Write),
    Flush(Flush),
}

impl Doing {
    /// Its kind, of `KINDS`: a head may be able to carry out one and not another.
    fn kind(&self) -> usize {
        match self {
            Doing::Read(_) | Doing::Compare(_) => 0,
            Doing::Write(_) | Doing::Advice(_) => 1,
            Doing::Flush(_) => 2,
        }
    }
}

struct Slot {
    doing: Doing,
    command: HostCommand,
    began: Instant,
    /// Where it is under way, and since when; None: it is to be sent again.
    under_way: Option<(usize, Instant)>,
    /// Where it was sent before, and may still be carried out.
    copies: Vec<Copy>,
}

/// What a host shares with the script of its world.
#[derive(Default)]
pub struct Ledger {
    /// Writes that it lost with its session, and which are over since it was let in again: until somebody looks.
    pub let_in: BTreeSet<WriteId>,
    /// It gave up a connection that its head still has: the head may have let it in beside what it sent there.
    pub left_in_silence: bool,
    /// Writes that were begun, and not answered.
    pub begun: BTreeSet<WriteId>,
    /// Writes that were answered, well or not, and of which no copy is left: until somebody looks.
    pub over: Vec<WriteId>,
    /// Commands that ended well.
    pub good: u64,
    /// Commands that ended in an error, by its word.
    pub failed: u64,
    /// Commands whose connection was lost.
    pub lost: u64,
    /// Commands that were lost with their connection and sent again by another.
    pub repeated: u64,
    /// Commands that ended well, by the port of the path's portal.
    pub by_port: BTreeMap<u16, u64>,
    /// Sessions that were brought up.
    pub sessions: u64,
    /// Promises broken.
    pub broken: Vec<Broken>,
    /// What targets said when they said no, in the protocol's own numbers too.
    pub refused: BTreeSet<(FaultKind, u32)>,
    /// It got NotReady for its volume, since the last look.
    pub unready: bool,
    /// Every command has ended.
    pub finished: bool,
    /// When the oldest command under way began, wherever it was sent since.
    pub oldest: Option<Instant>,
    /// Longest time that a read took.
    pub slowest_read: Duration,
    /// Longest time that a write or a flush took.
    pub slowest_write: Duration,
    /// When a command last ended well.
    pub last_good: Option<Instant>,
    /// Longest time in which no command ended well, between two that did.
    pub longest_stall: Duration,
    /// Longest time in which no command of a kind ended well by one path, while that was up and some were tried there.
    pub longest_path_stall: Duration,
    /// Its path by a portal of this port is to bring nothing any more; and then it does not.
    pub loses: Option<u16>,
    /// See `loses`.
    pub path_lost: bool,
    /// Controllers that it had another one end, and which were over then.
    pub ended: u64,
    /// How often it had all tasks ended, and commands of its own that another one ended.
    pub clears: u64,
    /// See `clears`.
    pub cleared: u64,
    /// The secret that its operator has told it.
    pub secret: Option<Secret>,
    /// Nothing new is started.
    pub stop: bool,
    /// The same for a while. What is under way goes on.
    pub rests: bool,
    /// What happened, for the log, if it is printed.
    pub log: Option<Vec<String>>,
}

impl Ledger {
    /// A path has carried out no command of a kind for so long.
    fn stalls(&mut self, time: Duration) {
        self.longest_path_stall = self.longest_path_stall.max(time);
    }
    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(line());
        }
    }
}

/// A host.
pub struct Host {
    /// One, or two that take commands in turns.
    paths: Vec<Path>,
    /// The path whose turn it is.
    turn: usize,
    failover: Option<Failover>,
    memory: SimMemory,
    buffers: Vec<Slice>,
    slots: Vec<Option<Slot>>,
    /// Slots of commands that were lost with one of several paths: they are sent again.
    again: VecDeque<usize>,
    volume: Rc<RefCell<Volume>>,
    /// For the script.
    pub ledger: Rc<RefCell<Ledger>>,
    habits: Habits,
    rng: Prng,
    issued: u32,
    /// The target asked for some air.
    pause_until: Instant,
    limbo: Vec<Limbo>,
}

/// A write that failed, or was lost with its session, or of which a copy was: it may land until each copy is over.
struct Limbo {
    write: Write,
    lost: bool,
    copies: Vec<Copy>,
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
        let size = habits.transfer_max as usize;
        let depth = habits.depth;
        assert!(first + u64::from(depth) * size as u64 <= at + bytes, "a host's memory is large enough");
        let buffers = (0..depth)
            .map(|i| Slice::new(first + u64::from(i) * size as u64, size as u32))
            .collect::<Vec<_>>();
        Self {
            paths: vec![Path::new(Initiator::new(config, 0, own))],
            turn: 0,
            failover: None,
            memory: SimMemory::new(at, bytes),
            slots: (0..depth).map(|_| None).collect(),
            buffers,
            volume,
            ledger: Rc::default(),
            habits,
            rng: Prng::new(seed),
            issued: 0,
            again: VecDeque::new(),
            pause_until: Instant(0),
            limbo: vec![],
        }
    }
    /// Memory that a host of this configuration and these habits needs beyond its staging.
    pub fn memory_bytes(config: &load::Config, habits: &Habits) -> u64 {
        config.memory_bytes() + u64::from(habits.depth) * u64::from(habits.transfer_max)
    }

    /// The same with a second path that takes no commands until the first one is lost. Its session has the last `config.memory_bytes()` bytes
    /// of the host's memory.
    pub fn with_failover(mut self, config: load::Config) -> Self {
        self.failover = Some(Failover::new(self.second(config)));
        self
    }
    /// The same with a second path that takes every second command. A command that is lost with its path is sent again by the other one, as
    /// Linux does. Memory: as with a failover.
    pub fn with_second_path(mut self, config: load::Config) -> Self {
        let second = self.second(config);
        self.paths.push(Path::new(second));
        self
    }
    fn second(&self, config: load::Config) -> Initiator {
        let (start, bytes) = self.memory.extent();
        let rings = start + bytes - config.memory_bytes();
        assert!(self.buffers.iter().all(|b| b.end() <= rings), "a host's memory is large enough");
        let slot = u32::from(self.paths[0].initiator.config().links());
        Initiator::new(config, slot, rings)
    }

    fn end_commands(&mut self, path: usize, now: Instant) {
        let port = self.paths[path].initiator.config().peer.port();
        while let Some(done) = self.paths[path].initiator.next_done() {
            let id = done.id as usize;
            let mut slot = self.slots[id].take().expect("a command ends once");
            let since = slot.under_way.map_or(now, |(_, since)| since);
            let stall = self.paths[path].stalls(now, slot.doing.kind(), since, &done.status);
            self.ledger.borrow_mut().stalls(stall);
            let copy = Copy { path, session: self.paths[path].session };
            if done.status == HostStatus::ConnectionLost && self.paths.len() > 1 {
                self.ledger.borrow_mut().note(|| format!("{id} is lost with path {path}"));
                slot.copies.push(copy);
                slot.under_way = None;
                self.slots[id] = Some(slot);
                self.again.push_back(id);
                continue;
            }
            let Slot { began, command: HostCommand { data, .. }, mut copies, .. } = slot;
            let mut ledger = self.ledger.borrow_mut();
            let (took, figures) = (now.since(began), &mut *ledger);
            let slowest = match slot.doing {
                Doing::Read(_) | Doing::Compare(_) => &mut figures.slowest_read,
                Doing::Write(_) | Doing::Advice(_) | Doing::Flush(_) => &mut figures.slowest_write,
            };
            *slowest = took.max(*slowest);
            ledger.note(|| format!("{} ends: {:?}", done.id, done.status));
            let good = done.status == HostStatus::Good;
            match done.status {
                HostStatus::Good => {
                    ledger.good += 1;
                    *ledger.by_port.entry(port).or_default() += 1;
                    let stall = ledger.last_good.replace(now).map_or(Duration::ZERO, |last| now.since(last));
                    ledger.longest_stall = ledger.longest_stall.max(stall);
                }
                HostStatus::ConnectionLost => ledger.lost += 1,
                HostStatus::Failed(fault) => {
                    if fault.kind == FaultKind::NoVolume {
                        self.pause_until = self.pause_until.max(now + AGAIN);
                    }
                    ledger.failed += 1;
                    ledger.refused.insert((fault.kind, fault.raw));
                }
                HostStatus::Retry { after, fault } => {
                    ledger.cleared += u64::from(fault.raw == TASK_ABORTED);
                    ledger.unready |= fault.kind == FaultKind::NotReady;
                    ledger.failed += 1;
                    ledger.refused.insert((fault.kind, fault.raw));
                    self.pause_until = self.pause_until.max(now + after);
                }
            }
            // One of which a copy was lost with another path is not over: that may still start.
            if let Doing::Write(w) = &slot.doing
                && done.status != HostStatus::ConnectionLost
                && ledger.begun.remove(&w.id)
                && copies.is_empty()
            {
                ledger.over.push(w.id);
            }
            let block_bytes = self.habits.block_bytes as usize;
            let mut volume = self.volume.borrow_mut();
            let is_advice = matches!(slot.doing, Doing::Advice(_));
            match slot.doing {
                Doing::Write(w) | Doing::Advice(w) if good => {
                    let late = (!copies.is_empty()).then(|| w.clone());
                    if is_advice {
                        volume.advice_ends(w);
                    } else {
                        volume.answered(&w, began, true);
                        volume.write_ends(w);
                    }
                    // The answer is that of the last copy. Those before it are as good as lost: they may land on what is written next.
                    if let Some(write) = late {
                        volume.write_lost(&write);
                        self.limbo.push(Limbo { write, lost: true, copies });
                    }
                }
                Doing::Write(w) | Doing::Advice(w) => {
                    let lost = done.status == HostStatus::ConnectionLost;
                    if !lost {
                        volume.answered(&w, began, false);
                    }
                    if lost || !copies.is_empty() {
                        volume.write_lost(&w);
                    } else {
                        volume.write_failed(&w);
                    }
                    // One that was answered is over (promise 3), unless it was given up on a leg that may
                    // still let it land; one that was lost is over when its host is let in again.
                    copies.push(copy);
                    self.limbo.push(Limbo { write: w, lost, copies });
                }
                Doing::Flush(f) if good => volume.flush_ends(f),
                Doing::Flush(_) => {}
                Doing::Read(r) => {
                    let data = good.then(|| self.memory.bytes(data));
                    ledger.broken.extend(volume.read_ends(r, data, block_bytes).err());
                }
                Doing::Compare(r) => {
                    let data = self.memory.bytes(data);
                    let ended = match done.status {
                        HostStatus::Good => volume.compare_ends(r, data, block_bytes, true),
                        HostStatus::Failed(Fault { kind: FaultKind::Miscompare, .. }) => {
                            volume.compare_ends(r, data, block_bytes, false)
                        }
                        _ => volume.read_ends(r, None, block_bytes),
                    };
                    ledger.broken.extend(ended.err());
                }
            }
            self.buffers.push(Slice::new(data.at, self.habits.transfer_max));
        }
    }

    /// The next path that takes a command: each in its turn.
    fn next_path(&self) -> Option<usize> {
        let all = self.paths.len();
        (0..all).map(|i| (self.turn + i) % all).find(|p| self.paths[*p].has_room())
    }
    fn begin_commands(&mut self, now: Instant) {
        while let Some(path) = self.next_path().filter(|_| !self.again.is_empty()) {
            let id = self.again.pop_front().expect("looked at above");
            let slot = self.slots[id].as_ref().expect("it is not answered");
            if matches!(slot.doing, Doing::Read(_)) {
                self.memory.bytes_mut(slot.command.data).fill(UNREAD);
            }
            let mut ledger = self.ledger.borrow_mut();
            ledger.repeated += 1;
            ledger.note(|| format!("{id} is sent again by path {path}"));
            drop(ledger);
            self.send(id, path, now);
        }
        let Ledger { stop, rests, .. } = *self.ledger.borrow();
        let stop = stop || rests || now < self.pause_until;
        while !stop
            && self.issued < self.habits.commands
            && let Some(path) = self.next_path()
        {
            let Some(id) = self.slots.iter().position(Option::is_none) else { return };
            let Some(buffer) = self.buffers.pop() else { return };
            self.issued += 1;
            self.begin(now, id, buffer);
            self.send(id, path, now);
            if self.rng.chance(self.habits.abort_permille, 1000) {
                let victim = self.rng.below(self.slots.len() as u64) as u32;
                if let Some((path, _)) = self.slots[victim as usize].as_ref().and_then(|s| s.under_way) {
                    self.paths[path].initiator.abort(victim);
                    self.ledger.borrow_mut().note(|| format!("{victim} shall be aborted"));
                }
            }
            if self.habits.clear_permille > 0 && self.rng.chance(self.habits.clear_permille, 1000) {
                let reset = self.rng.chance(1, 2);
                if self.paths[path].initiator.clear(reset) {
                    let mut ledger = self.ledger.borrow_mut();
                    ledger.clears += 1;
                    ledger.note(|| format!("all tasks shall end, reset: {reset}"));
                }
            }
        }
    }
    /// What is done next.
    fn choose(&mut self) -> Op {
        let habits = &self.habits;
        let dice = self.rng.below(1000);
        let mut below = 0;
        let mut falls = |permille: u64| {
            below += permille;
            dice < below
        };
        if falls(habits.write_permille) {
            Op::Write
        } else if falls(habits.zero_permille) {
            Op::WriteZeroes { deallocate: self.rng.chance(1, 2) }
        } else if falls(habits.flush_permille) {
            Op::Flush
        } else if falls(habits.deallocate_permille) {
            Op::Deallocate
        } else if falls(habits.compare_permille) {
            Op::Compare
        } else {
            Op::Read
        }
    }
    fn begin(&mut self, now: Instant, id: usize, buffer: Slice) {
        let op = self.choose();
        let habits = &self.habits;
        let block_bytes = habits.block_bytes;
        let short = habits.short_permille > 0 && self.rng.chance(habits.short_permille, 1000);
        let most = if short { SHORT_BLOCKS } else { habits.blocks_max };
        let blocks = self.rng.between(1, most.min(habits.blocks)) as u32;
        let at = self.rng.below(habits.blocks - u64::from(blocks) + 1);
        let may_force = match op {
            Op::Write => true,
            Op::WriteZeroes { .. } => habits.zeroes_fua,
            _ => false,
        };
        let fua = may_force && self.rng.chance(habits.fua_permille, 1000);
        let moves = matches!(op, Op::Read | Op::Write | Op::Compare);
        let data = Slice::new(buffer.at, if moves { blocks * block_bytes } else { 0 });
        let (at, blocks) = if op == Op::Flush { (0, 0) } else { (at, blocks) };
        let mut volume = self.volume.borrow_mut();
        let doing = match op {
            Op::Write => Doing::Write(volume.write_starts(at, blocks, fua, false)),
            Op::WriteZeroes { .. } => Doing::Write(volume.write_starts(at, blocks, fua, true)),
            Op::Deallocate => Doing::Advice(volume.write_starts(at, blocks, false, true)),
            Op::Flush => Doing::Flush(volume.flush_starts()),
            Op::Compare => Doing::Compare(volume.read_starts(at, blocks)),
            Op::Read => Doing::Read(volume.read_starts(at, blocks)),
        };
        let bytes = self.memory.bytes_mut(data);
        match &doing {
            Doing::Write(w) if op == Op::Write => {
                self.ledger.borrow_mut().begun.insert(w.id);
                stamp(w.id, at, block_bytes as usize, bytes);
            }
            Doing::Compare(_) => volume.guess(at, block_bytes as usize, bytes),
            // So that a read that fills nothing is noticed.
            Doing::Read(_) => bytes.fill(UNREAD),
            Doing::Write(_) | Doing::Advice(_) | Doing::Flush(_) => {}
        }
        drop(volume);
        self.ledger.borrow_mut().note(|| {
            let name = if let Doing::Write(w) | Doing::Advice(w) = &doing { w.id } else { 0 };
            let forced = if fua { ", forced" } else { "" };
            format!("{id} begins: {op:?} {name} at {at}, {blocks} blocks{forced}")
        });
        let command = HostCommand { id: id as u32, op, at, blocks, fua, data };
        self.slots[id] = Some(Slot { doing, command, began: now, under_way: None, copies: vec![] });
    }
    fn send(&mut self, id: usize, path: usize, now: Instant) {
        let slot = self.slots[id].as_mut().expect("it has begun");
        slot.under_way = Some((path, now));
        let taken = self.paths[path].initiator.submit(&slot.command, &mut self.memory);
        assert!(taken, "there was room");
        self.turn = (path + 1) % self.paths.len();
    }

    /// Since when the command is under way by this path that has waited longest there.
    fn oldest(&self, path: usize) -> Option<Instant> {
        let here = self.slots.iter().flatten().filter_map(|s| s.under_way).filter(|(by, _)| *by == path);
        here.map(|(_, since)| since).min()
    }

    /// Copies that are over land no more.
    fn settle(&mut self, is_over: impl Fn(&Copy) -> bool) {
        for slot in self.slots.iter_mut().flatten() {
            slot.copies.retain(|copy| !is_over(copy));
        }
        let mut volume = self.volume.borrow_mut();
        let all = core::mem::take(&mut self.limbo).into_iter().map(|mut limbo| {
            limbo.copies.retain(|copy| !is_over(copy));
            limbo
        });
        let (over, limbo): (Vec<_>, Vec<_>) = all.partition(|limbo| limbo.copies.is_empty());
        self.limbo = limbo;
        for Limbo { write, lost, .. } in over {
            volume.write_settled(&write);
            self.ledger.borrow_mut().note(|| format!("write {} lands no more", write.id));
            if lost {
                self.ledger.borrow_mut().let_in.insert(write.id);
            }
        }
    }
    /// The failover goes on with what the first path did, if that is over. True: it is to be known soon.
    fn changes_over(&mut self, now: Instant, fx: &mut Effects<()>) -> bool {
        let Some(failover) = &mut self.failover else { return false };
        let first = &mut self.paths[0];
        failover.path.initiator.end_of_turn(now, &mut self.memory, fx);
        failover.path.keep_up(now);
        failover.knows(&first.initiator);
        let is_down = matches!(first.initiator.state(), State::Down(_));
        let other = if is_down { failover.ends_other() } else { Other::Unknown };
        if other == Other::Over {
            let ended = Copy { path: 0, session: first.session };
            first.goes_on_with(&mut failover.path.initiator);
            let mut ledger = self.ledger.borrow_mut();
            ledger.ended += 1;
            ledger.note(|| "the controller of the lost path is over".into());
            drop(ledger);
            self.settle(|copy| *copy == ended);
        }
        let failover = self.failover.as_mut().expect("it was there");
        failover.path.initiator.end_of_turn(now, &mut self.memory, fx);
        other == Other::Ends
    }

    fn count_sessions(&mut self) {
        for path in &mut self.paths {
            self.ledger.borrow_mut().sessions += u64::from(path.counts_session());
        }
    }
    /// A path goes on; its first session begins, or another one.
    fn keep_up(&mut self, path: usize, now: Instant, fx: &mut Effects<()>) {
        self.paths[path].initiator.prove(self.ledger.borrow().secret.as_ref());
        self.paths[path].keep_up(now);
        if self.paths[path].initiator.state() != State::Ready {
            return;
        }
        if self.pause_until <= now {
            self.pause_until = Instant(0);
        }
        if !self.volume.borrow().hangs && !self.ledger.borrow().left_in_silence {
            self.settle(|copy| copy.path == path);
        }
        if self.failover.is_some() && self.rng.chance(self.habits.lose_ppm, 1_000_000) {
            self.ledger.borrow_mut().loses = Some(self.paths[path].initiator.config().peer.port());
        }
        let path_lost = core::mem::take(&mut self.ledger.borrow_mut().path_lost);
        let patient = self.oldest(path).is_none_or(|since| now.since(since) < PATIENCE);
        if !patient || path_lost || self.rng.chance(self.habits.reset_ppm, 1_000_000) {
            self.ledger.borrow_mut().note(|| format!("the session of path {path} is given up"));
            self.paths[path].initiator.reset(fx);
        }
    }
    fn go_on(&mut self, now: Instant, fx: &mut Effects<()>) {
        self.end_turn_of_paths(now, fx);
        if !self.changes_over(now, fx) {
            (0..self.paths.len()).for_each(|path| self.keep_up(path, now, fx));
        }
        loop {
            self.begin_commands(now);
            self.end_turn_of_paths(now, fx);
            // What one path has lost by now goes by the other one at once.
            if self.again.is_empty() || self.next_path().is_none() {
                break;
            }
        }
        let done = self.issued >= self.habits.commands || self.ledger.borrow().stop;
        let oldest = self.slots.iter().flatten().map(|slot| slot.began).min();
        let mut ledger = self.ledger.borrow_mut();
        ledger.oldest = oldest;
        ledger.finished = done && oldest.is_none();
    }
    fn end_turn_of_paths(&mut self, now: Instant, fx: &mut Effects<()>) {
        for path in 0..self.paths.len() {
            self.paths[path].initiator.end_of_turn(now, &mut self.memory, fx);
            self.count_sessions();
            self.end_commands(path, now);
        }
    }
    /// Its sessions, the failover's too.
    fn initiators(&mut self) -> impl Iterator<Item = &mut Initiator> {
        let failover = self.failover.iter_mut().map(|s| &mut s.path.initiator);
        self.paths.iter_mut().map(|p| &mut p.initiator).chain(failover)
    }
}

impl Machine for Host {
    type Mail = ();
    fn on_event(&mut self, now: Instant, event: Event<()>, fx: &mut Effects<()>) {
        let Self { paths, failover, memory, .. } = self;
        let failover = failover.iter_mut().map(|s| &mut s.path);
        for path in paths.iter_mut().chain(failover) {
            if path.initiator.on_event(now, &event, memory, fx) {
                break;
            }
        }
        self.count_sessions();
    }
    fn on_timer(&mut self, now: Instant, fx: &mut Effects<()>) {
        for initiator in self.initiators() {
            if initiator.next_deadline().is_some_and(|at| at <= now) {
                initiator.on_timer(now, fx);
            }
        }
    }
    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<()>) {
        self.go_on(now, fx);
    }
    fn next_deadline(&self) -> Option<Instant> {
        let ready = |path: &usize| self.paths[*path].initiator.state() == State::Ready;
        let ready = (0..self.paths.len()).filter(ready);
        let patience = ready.clone().filter_map(|path| self.oldest(path)).map(|since| since + PATIENCE);
        let pause = ready.map(|_| self.pause_until).filter(|until| *until > Instant(0));
        let failover = self.failover.iter().map(|s| &s.path);
        let paths = self.paths.iter().chain(failover).filter_map(Path::next_deadline);
        paths.chain(patience).chain(pause).min()
    }
    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        let failover = self.failover.iter().map(|s| &s.path);
        let owner = self.paths.iter().chain(failover).find(|p| p.initiator.owns(connection));
        owner.expect("a connection is a path's").initiator.segments(connection, max, out);
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
