//! The load generator: carries out a plan over its sessions.
//!
//! ```text
//! Connecting ─▶ Preparing ─▶ Ramp ─▶ Measuring ─▶ Draining ─▶ ReadingBack ─▶ Closing ─▶ report
//!              (if asked)                                     (if asked)
//! ```
//!
//! An operation belongs to one session. It is sent again only by that session, after a new login; the target
//! answers the login only when no write of the old one can still land.

use crate::fault::{PlanFault, RunFault, WrongRead};
use crate::initiator::{Config, Down, Initiator, State, VolumeInfo};
use crate::plan::Plan;
use crate::report::{ConnectionFigures, End, Figures, Progress, Report};
use crate::stamp;
use crate::workload::{Pick, Workload};
use base::Histogram;
use base::machine::Dma;
use base::{
    Address, ConnectionId, Duration, Effect, Effects, Event, FaultKind, HostCommand, HostDone, HostStatus,
    Instant, Machine, Memory, Op, Prng, Slice,
};
use std::collections::VecDeque;

/// What the load generator and its manager write to each other.
#[derive(Debug)]
pub enum Mail {
    /// To it: carry this out.
    Start(Box<Plan>),
    /// To it: end the measurement now; the report follows.
    Stop,
    /// From it: the plan cannot be carried out, with the reason. There will be no report.
    Refused(PlanFault),
    /// From it: how it goes, every `progress_every`.
    Progress(Box<Progress>),
    /// From it: the end of the run.
    Done(Box<Report>),
}

/// A load generator as a machine. Runs one plan at a time.
#[derive(Debug)]
pub struct Load<M> {
    memory: M,
    arena: (u64, u64),
    slots_max: u32,
    run: Option<Box<Run>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Connecting,
    Preparing,
    Ramp,
    Measuring,
    Draining,
    ReadingBack,
    Closing,
}

/// One operation: a place to read or write, in as many commands as the target needs.
#[derive(Debug)]
struct Operation {
    pick: Pick,
    started: Instant,
    data: Slice,
    /// Commands that have not ended well yet.
    left: u16,
    /// It was begun by the measurement, not by the ramp.
    measured: bool,
    failed: Option<FaultKind>,
    connection: u16,
}

/// One session and its operations.
#[derive(Debug)]
struct Lane {
    initiator: Initiator,
    operations: Vec<Operation>,
    idle: Vec<u32>,
    /// Operations that pause, and until when.
    resting: VecDeque<(Instant, u32)>,
    /// Commands to be submitted, in order.
    pending: VecDeque<u32>,
    /// Commands to be submitted again later.
    waiting: Vec<(Instant, u32)>,
    reconnect_at: Option<Instant>,
    backoff: Duration,
    down_since: Option<Instant>,
    was_ready: bool,
    connections: Vec<(Histogram, u64)>,
}

#[derive(Debug)]
struct Run {
    plan: Plan,
    manager: Address,
    phase: Phase,
    started: Instant,
    phase_started: Instant,
    measured: Duration,
    info: VolumeInfo,
    workload: Option<Workload>,
    lanes: Vec<Lane>,
    /// Lane of each connection slot.
    lane_of: Vec<u16>,
    /// Blocks of one command, at most.
    part_blocks: u32,
    begun: u64,
    reads: (Histogram, u64),
    writes: (Histogram, u64),
    interval: (Histogram, u64),
    interval_started: Instant,
    progress_at: Option<Instant>,
    look_at: Instant,
    errors: [u64; FaultKind::ALL.len()],
    retries: u64,
    reconnects: u64,
    verified: u64,
    unjudged: u64,
    mismatches: u64,
    not_zero_at: Option<u64>,
    examples: Vec<WrongRead>,
    trouble: Option<Down>,
    end: End,
}

/// How often operations that take too long are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
const EXAMPLES_MAX: usize = 8;
/// Low bits of a command's id are its number within the operation.
const PART_BITS: u32 = 8;

impl<M: Memory> Load<M> {
    /// A generator with nothing to do. `arena` (offset and length in bytes) is its own part of what
    /// `memory` may look at: staging buffers lie elsewhere. It uses connection slots `0..slots_max`.
    pub fn new(memory: M, arena: (u64, u64), slots_max: u32) -> Self {
        Self { memory, arena, slots_max, run: None }
    }
    /// Its memory, for worlds that move the bytes themselves.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }
    /// Whether a plan is being carried out.
    pub fn is_busy(&self) -> bool {
        self.run.is_some()
    }
    /// Bytes of arena and number of slots that a plan needs.
    pub fn needs(plan: &Plan) -> (u64, u32) {
        let mut bytes = 4096;
        for s in &plan.sessions {
            let operations = u64::from(s.io_links()) * u64::from(s.depth());
            bytes += s.memory_bytes() + operations * u64::from(plan.io_bytes).next_multiple_of(4096);
        }
        (bytes, plan.sessions.iter().map(|s| u32::from(s.links())).sum())
    }

    fn start(&mut self, now: Instant, manager: Address, plan: Plan) -> Result<(), PlanFault> {
        if self.run.is_some() {
            return Err(PlanFault::Busy);
        }
        plan.check()?;
        let (bytes, slots) = Self::needs(&plan);
        if bytes > self.arena.1 {
            return Err(PlanFault::Buffers { bytes, there_bytes: self.arena.1 });
        }
        if slots > self.slots_max {
            return Err(PlanFault::Connections { wanted: slots, possible: self.slots_max });
        }
        let mut at = self.arena.0.next_multiple_of(4096);
        let mut rng = Prng::new(plan.seed ^ 0x6461_7461);
        let (mut lanes, mut lane_of) = (vec![], vec![]);
        for (i, config) in plan.sessions.iter().enumerate() {
            let first_slot = lane_of.len() as u32;
            let mut initiator = Initiator::new(config.clone(), first_slot, at);
            at += config.memory_bytes();
            lane_of.extend((0..config.links()).map(|_| i as u16));
            let count = usize::from(config.io_links()) * usize::from(config.depth());
            let mut operations = Vec::with_capacity(count);
            for _ in 0..count {
                let data = Slice::new(at, plan.io_bytes);
                // Without stamps the data never changes; it should at least not be compressible.
                rng.fill(self.memory.bytes_mut(data));
                at += u64::from(plan.io_bytes).next_multiple_of(4096);
                operations.push(Operation {
                    pick: Pick::default(),
                    started: now,
                    data,
                    left: 0,
                    measured: false,
                    failed: None,
                    connection: 0,
                });
            }
            initiator.start(now);
            lanes.push(Lane {
                initiator,
                operations,
                idle: (0..count as u32).rev().collect(),
                resting: VecDeque::with_capacity(count),
                pending: VecDeque::with_capacity(count << PART_BITS.min(4)),
                waiting: Vec::with_capacity(count),
                reconnect_at: None,
                backoff: BACKOFF_MIN,
                down_since: Some(now),
                was_ready: false,
                connections: vec![Default::default(); usize::from(config.io_links())],
            });
        }
        let progress_at = (!plan.progress_every.is_zero()).then(|| now + plan.progress_every);
        self.run = Some(Box::new(Run {
            plan,
            manager,
            phase: Phase::Connecting,
            started: now,
            phase_started: now,
            measured: Duration::ZERO,
            info: VolumeInfo::default(),
            workload: None,
            lanes,
            lane_of,
            part_blocks: 1,
            begun: 0,
            reads: Default::default(),
            writes: Default::default(),
            interval: Default::default(),
            interval_started: now,
            progress_at,
            look_at: now + LOOK_EVERY,
            errors: [0; FaultKind::ALL.len()],
            retries: 0,
            reconnects: 0,
            verified: 0,
            unjudged: 0,
            mismatches: 0,
            not_zero_at: None,
            examples: vec![],
            trouble: None,
            end: End::Completed,
        }));
        Ok(())
    }
}

impl<M: Memory> Machine for Load<M> {
    type Mail = Mail;

    fn on_event(&mut self, now: Instant, event: Event<Mail>, fx: &mut Effects<Mail>) {
        match event {
            Event::Mail { from, mail: Mail::Start(plan) } => {
                if let Err(why) = self.start(now, from, *plan) {
                    fx.push(Effect::Mail { to: from, mail: Mail::Refused(why) });
                }
            }
            Event::Mail { mail: Mail::Stop, .. } => {
                if let Some(run) = &mut self.run {
                    run.stop(now, End::Stopped);
                }
            }
            Event::Mail { .. } => {}
            Event::Connected { connection, .. }
            | Event::Received { connection, .. }
            | Event::Sent { connection, .. }
            | Event::Broken { connection }
            | Event::Closed { connection } => {
                let lane = self.run.as_mut().and_then(|run| {
                    let lane = *run.lane_of.get(connection.slot())?;
                    run.lanes.get_mut(usize::from(lane))
                });
                if let Some(lane) = lane {
                    lane.initiator.on_event(now, &event, &mut self.memory, fx);
                }
            }
            Event::Accepted { .. }
            | Event::DriveDone { .. }
            | Event::DriveOpened { .. }
            | Event::DriveInspected { .. }
            | Event::Fenced { .. }
            | Event::DriveClosed { .. }
            | Event::Listening { .. }
            | Event::State { .. } => {}
        }
    }
    fn on_timer(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        for lane in self.run.iter_mut().flat_map(|r| &mut r.lanes) {
            lane.initiator.on_timer(now, fx);
        }
    }
    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        let Some(run) = &mut self.run else { return };
        run.turn(now, &mut self.memory, fx);
        if run.phase == Phase::Closing && run.lanes.iter().all(Lane::is_down) {
            let report = Box::new(run.report());
            fx.push(Effect::Mail { to: run.manager, mail: Mail::Done(report) });
            self.run = None;
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        let run = self.run.as_ref()?;
        let phase_end = match run.phase {
            Phase::Ramp => Some(run.phase_started + run.plan.ramp),
            Phase::Measuring if !run.plan.time.is_zero() => Some(run.phase_started + run.plan.time),
            _ => None,
        };
        let lanes = run.lanes.iter().flat_map(|l| {
            // Nothing is sent again before the session is ready.
            let ready = l.initiator.state() == State::Ready;
            let waiting = l.waiting.iter().map(|w| w.0).filter(|_| ready).min();
            let rested = l.resting.front().map(|r| r.0).filter(|_| ready);
            [l.initiator.next_deadline(), l.reconnect_at, waiting, rested]
        });
        lanes.chain([phase_end, run.progress_at, Some(run.look_at)]).flatten().min()
    }
    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        let run = self.run.as_ref().expect("only a run sends");
        let lane = run.lane_of[connection.slot()];
        run.lanes[usize::from(lane)].initiator.segments(connection, max, out);
    }
}

impl<M: Memory> Dma for Load<M> {
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        let (at, len) = self.memory.extent();
        let own = data.at >= at && data.end() <= at + len;
        if own {
            with(self.memory.bytes_mut(data));
        }
        own
    }
}

impl Lane {
    fn is_down(&self) -> bool {
        matches!(self.initiator.state(), State::Down(_) | State::Idle)
    }
    fn is_busy(&self) -> bool {
        self.idle.len() + self.resting.len() < self.operations.len()
    }
    /// Whether another operation may begin. What the target does not grant would only wait here, and its wait
    /// would count as the target's.
    fn has_room(&self) -> bool {
        let (links, depth) = self.initiator.granted();
        self.operations.len() - self.idle.len() < usize::from(links) * usize::from(depth)
    }
}

impl Run {
    fn turn(&mut self, now: Instant, memory: &mut impl Memory, fx: &mut Effects<Mail>) {
        for lane in 0..self.lanes.len() {
            self.lanes[lane].initiator.end_of_turn(now, memory, fx);
            self.take_done(now, lane, memory);
            if self.watch(now, lane) {
                // It connects in this turn, and not when something else happens.
                self.lanes[lane].initiator.end_of_turn(now, memory, fx);
            }
        }
        self.look(now, fx);
        // Operations that end with nothing to be done (a volume that is gone) must not loop here.
        self.advance(now);
        for lane in 0..self.lanes.len() {
            self.fill(now, lane, memory);
            if self.submit(lane, memory) {
                self.lanes[lane].initiator.end_of_turn(now, memory, fx);
            }
        }
        self.advance(now);
        self.report_interval(now, fx);
    }

    /// Connections that came and went. True: one is made anew.
    fn watch(&mut self, now: Instant, lane: usize) -> bool {
        let patience = self.plan.patience;
        let l = &mut self.lanes[lane];
        match l.initiator.state() {
            State::Ready => {
                if l.down_since.take().is_some() {
                    self.reconnects += u64::from(l.was_ready);
                    l.was_ready = true;
                    l.backoff = BACKOFF_MIN;
                }
                self.info.changes = self.info.changes.max(l.initiator.info().changes);
            }
            State::Down(why) => {
                if self.phase == Phase::Closing {
                    return false;
                }
                let since = *l.down_since.get_or_insert(now);
                self.trouble = Some(why);
                // At first contact a clear No is an answer; later it is a target that is coming back.
                let hopeless = why.is_refusal() && !l.was_ready || now.since(since) >= patience;
                if hopeless {
                    let peer = l.initiator.config().peer;
                    self.stop(now, End::Failed(RunFault::Down { peer, why }));
                    return false;
                }
                match l.reconnect_at {
                    None => {
                        l.reconnect_at = Some(now + l.backoff);
                        l.backoff = (l.backoff * 2).min(BACKOFF_MAX);
                    }
                    Some(at) if at <= now => {
                        l.reconnect_at = None;
                        l.initiator.start(now);
                        return true;
                    }
                    Some(_) => {}
                }
            }
            State::Idle | State::Starting | State::Stopping | State::Closing => {}
        }
        false
    }

    fn take_done(&mut self, now: Instant, lane: usize, memory: &mut impl Memory) {
        while let Some(done) = self.lanes[lane].initiator.next_done() {
            self.on_done(now, lane, done, memory);
        }
    }
    fn on_done(&mut self, now: Instant, lane: usize, done: HostDone, memory: &mut impl Memory) {
        let l = &mut self.lanes[lane];
        let operation = &mut l.operations[(done.id >> PART_BITS) as usize];
        if operation.left == 0 {
            // The run was given up and the operation counted; this is the echo.
            return;
        }
        let patient = now.since(operation.started) < self.plan.patience && self.phase != Phase::Closing;
        match done.status {
            HostStatus::Good => operation.connection = done.connection,
            HostStatus::Retry { after, .. } if patient => {
                self.retries += 1;
                return l.waiting.push((now + after, done.id));
            }
            HostStatus::ConnectionLost if patient => {
                self.retries += 1;
                return l.pending.push_back(done.id);
            }
            HostStatus::Failed(fault) | HostStatus::Retry { fault, .. } => {
                operation.failed = Some(fault.kind)
            }
            HostStatus::ConnectionLost => operation.failed = Some(FaultKind::Transport),
        }
        operation.left -= 1;
        if operation.left == 0 {
            self.over(now, lane, done.id >> PART_BITS, memory);
        }
    }
    /// Every command of an operation has ended.
    fn over(&mut self, now: Instant, lane: usize, index: u32, memory: &mut impl Memory) {
        let l = &mut self.lanes[lane];
        let operation = &l.operations[index as usize];
        let (pick, data) = (operation.pick, operation.data);
        let workload = self.workload.as_mut().expect("operations come from it");
        workload.over(pick, operation.failed.is_none());
        match self.plan.think {
            Duration::ZERO => l.idle.push(index),
            think => l.resting.push_back((now + think, index)),
        }
        if let Some(kind) = operation.failed {
            let at = FaultKind::ALL.iter().position(|k| *k == kind).expect("every kind is in the list");
            self.errors[at] += 1;
            return;
        }
        let latency = now.since(operation.started);
        let bytes = u64::from(data.len);
        self.interval.0.record(latency);
        self.interval.1 += bytes;
        // What ends while the time runs counts, also what the ramp began: else a window of many long operations
        // would miss those that cross its start and those that cross its end.
        let counts = match self.plan.ops_max {
            0 => self.phase == Phase::Measuring,
            _ => operation.measured,
        };
        if counts {
            let c = &mut l.connections[usize::from(operation.connection)];
            let all = if pick.write { &mut self.writes } else { &mut self.reads };
            for (histogram, sum) in [c, all] {
                histogram.record(latency);
                *sum += bytes;
            }
        }
        if self.plan.looks && !pick.write {
            let read = memory.bytes(data).iter().position(|byte| *byte != 0);
            let found = read.map(|offset| self.plan.region_at + pick.unit * bytes + offset as u64);
            self.not_zero_at = self.not_zero_at.into_iter().chain(found).min();
        }
        if self.plan.verify && !pick.write {
            let blocks = bytes / u64::from(self.info.block_bytes);
            if pick.version == 0 {
                self.unjudged += blocks;
                return;
            }
            let at = self.plan.region_at + pick.unit * bytes;
            match stamp::check(memory.bytes(data), at, self.plan.seed, u64::from(pick.version)) {
                Ok(()) => self.verified += blocks,
                Err((at, wrong)) => {
                    self.mismatches += 1;
                    if self.examples.len() < EXAMPLES_MAX {
                        let peer = l.initiator.config().peer;
                        let written = u64::from(pick.version);
                        self.examples.push(WrongRead { peer, at, holds: wrong, written });
                    }
                }
            }
        }
    }

    /// Looks for what takes too long, now and then.
    fn look(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_EVERY;
        for l in &mut self.lanes {
            let patience = self.plan.patience;
            let stuck = l.operations.iter().any(|o| o.left > 0 && now.since(o.started) >= patience);
            // A target that never answers is as good as gone; what it holds ends with its connections.
            if stuck && l.initiator.state() == State::Ready {
                l.initiator.reset(fx);
            }
        }
    }

    /// Goes to the next phase when the current one is through.
    fn advance(&mut self, now: Instant) {
        let busy = self.lanes.iter().any(Lane::is_busy);
        let elapsed = now.since(self.phase_started);
        match self.phase {
            Phase::Connecting => {
                if self.lanes.iter().all(|l| l.initiator.state() == State::Ready) {
                    match self.learn() {
                        Ok(()) if self.plan.prepare => self.go(now, Phase::Preparing),
                        Ok(()) => self.go(now, Phase::Ramp),
                        Err(why) => self.stop(now, End::Failed(RunFault::Plan(why))),
                    }
                    self.advance(now);
                }
            }
            Phase::Preparing => {
                let workload = self.workload.as_mut().expect("connected");
                if !busy && workload.prepared() {
                    workload.rewind();
                    self.go(now, Phase::Ramp);
                    self.advance(now);
                }
            }
            Phase::Ramp if elapsed >= self.plan.ramp => {
                self.begun = 0;
                self.go(now, Phase::Measuring);
            }
            Phase::Measuring => {
                let (time, ops) = (self.plan.time, self.plan.ops_max);
                if !time.is_zero() && elapsed >= time || ops > 0 && self.begun >= ops {
                    self.measured = elapsed;
                    self.go(now, Phase::Draining);
                    self.advance(now);
                }
            }
            Phase::Draining if !busy => {
                if self.plan.ops_max > 0 && self.measured > Duration::ZERO {
                    self.measured += elapsed;
                }
                let back = self.plan.read_back && self.plan.verify;
                if let Some(workload) = self.workload.as_mut().filter(|_| back) {
                    workload.rewind();
                    self.go(now, Phase::ReadingBack);
                } else {
                    self.close(now);
                }
            }
            Phase::ReadingBack if !busy => {
                if !self.workload.as_ref().is_some_and(Workload::has_read_back) {
                    self.close(now);
                }
            }
            Phase::Ramp | Phase::Draining | Phase::ReadingBack | Phase::Closing => {}
        }
    }
    fn go(&mut self, now: Instant, phase: Phase) {
        self.phase = phase;
        self.phase_started = now;
    }
    fn close(&mut self, now: Instant) {
        self.go(now, Phase::Closing);
        for l in &mut self.lanes {
            l.reconnect_at = None;
            l.initiator.stop(now);
        }
    }
    /// Ends the run early: it waits for operations under way, unless no session is left.
    fn stop(&mut self, now: Instant, end: End) {
        if self.end == End::Completed {
            self.end = end;
        }
        if self.phase == Phase::Measuring {
            self.measured = now.since(self.phase_started);
        }
        match (&self.end, self.phase) {
            (_, Phase::Closing) => {}
            (End::Failed(_), _) | (_, Phase::Connecting | Phase::ReadingBack) => {
                for l in &mut self.lanes {
                    // After a failure what was under way is lost and counted; each operation once.
                    let failed = matches!(self.end, End::Failed(_));
                    let lost = FaultKind::ALL.iter().position(|k| *k == FaultKind::Transport);
                    for o in &mut l.operations {
                        self.errors[lost.expect("it is in the list")] += u64::from(failed && o.left > 0);
                        o.left = 0;
                    }
                    l.pending.clear();
                    l.waiting.clear();
                    l.idle = (0..l.operations.len() as u32).rev().collect();
                }
                self.close(now);
            }
            _ => self.go(now, Phase::Draining),
        }
    }

    /// Every session is ready for the first time: what the volume is, and whether the plan fits it.
    fn learn(&mut self) -> Result<(), PlanFault> {
        let infos = || self.lanes.iter().map(|l| l.initiator.info());
        let info = infos().next().expect("a plan has sessions");
        if infos().any(|i| (i.block_bytes, i.blocks) != (info.block_bytes, info.blocks)) {
            return Err(PlanFault::SizesDiffer);
        }
        let (block, io) = (info.block_bytes, self.plan.io_bytes);
        if !io.is_multiple_of(block) {
            return Err(PlanFault::IoBlock { bytes: io, block_bytes: block });
        }
        let volume = info.blocks.saturating_mul(u64::from(block));
        let at = self.plan.region_at;
        let rest = volume.saturating_sub(at);
        let length = if self.plan.region_bytes == 0 { rest } else { self.plan.region_bytes };
        if length > rest || !at.is_multiple_of(u64::from(block)) {
            return Err(PlanFault::RegionBeyond { at, bytes: length, volume_bytes: volume });
        }
        let units = length / u64::from(io);
        if units == 0 {
            return Err(PlanFault::RegionSmall { bytes: length, io_bytes: io });
        }
        let transfer = infos().map(|i| i.transfer_max).min().expect("a plan has sessions");
        self.part_blocks = (transfer / block).max(1);
        if (io / block).div_ceil(self.part_blocks) > 1 << PART_BITS {
            return Err(PlanFault::ManyCommands { bytes: io, transfer_bytes: transfer });
        }
        self.info = info;
        self.workload = Some(Workload::new(&self.plan, units));
        Ok(())
    }

    /// Begins operations while slots are idle.
    fn fill(&mut self, now: Instant, lane: usize, memory: &mut impl Memory) {
        let l = &mut self.lanes[lane];
        if l.initiator.state() != State::Ready {
            return;
        }
        let mut i = 0;
        while i < l.waiting.len() {
            if l.waiting[i].0 <= now {
                l.pending.push_back(l.waiting.swap_remove(i).1);
            } else {
                i += 1;
            }
        }
        let pauses = matches!(self.phase, Phase::Ramp | Phase::Measuring);
        while let Some((_, index)) = l.resting.pop_front_if(|(until, _)| *until <= now || !pauses) {
            l.idle.push(index);
        }
        let Some(workload) = &mut self.workload else { return };
        while let Some(&index) = l.idle.last().filter(|_| l.has_room()) {
            let measuring = self.phase == Phase::Measuring;
            let pick = match self.phase {
                Phase::Preparing => workload.next_prepare(),
                Phase::Measuring if self.plan.ops_max > 0 && self.begun >= self.plan.ops_max => None,
                Phase::Ramp | Phase::Measuring => workload.next_pick(),
                Phase::ReadingBack => workload.next_read_back(),
                Phase::Connecting | Phase::Draining | Phase::Closing => None,
            };
            let Some(pick) = pick else { return };
            l.idle.pop();
            self.begun += 1;
            let operation = &mut l.operations[index as usize];
            let parts = (self.plan.io_bytes / self.info.block_bytes).div_ceil(self.part_blocks);
            operation.pick = pick;
            operation.started = now;
            operation.measured = measuring;
            operation.left = parts as u16;
            operation.failed = None;
            if pick.write && self.plan.verify {
                let at = self.plan.region_at + pick.unit * u64::from(self.plan.io_bytes);
                let version = u64::from(pick.version);
                stamp::fill(memory.bytes_mut(operation.data), at, self.plan.seed, version);
            }
            l.pending.extend((0..parts).map(|part| index << PART_BITS | part));
        }
    }
    /// Submits what is pending, as much as the session takes.
    fn submit(&mut self, lane: usize, memory: &mut impl Memory) -> bool {
        let l = &mut self.lanes[lane];
        let (block, mut any) = (self.info.block_bytes, false);
        while let Some(&id) = l.pending.front() {
            let operation = &l.operations[(id >> PART_BITS) as usize];
            let part = id & ((1 << PART_BITS) - 1);
            let from = part * self.part_blocks;
            let blocks = self.part_blocks.min(self.plan.io_bytes / block - from);
            let byte = self.plan.region_at + operation.pick.unit * u64::from(self.plan.io_bytes);
            let command = HostCommand {
                id,
                op: if operation.pick.write { Op::Write } else { Op::Read },
                at: byte / u64::from(block) + u64::from(from),
                blocks,
                fua: self.plan.fua && operation.pick.write,
                data: operation.data.part(from * block, blocks * block),
            };
            if !l.initiator.submit(&command, memory) {
                break;
            }
            l.pending.pop_front();
            any = true;
        }
        any
    }

    fn report_interval(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if self.progress_at.is_none_or(|at| at > now) {
            return;
        }
        self.progress_at = Some(now + self.plan.progress_every);
        let interval = now.since(self.interval_started);
        let figures = Figures::of(&self.interval.0, self.interval.1, interval);
        let elapsed = now.since(self.phase_started).as_secs_f64();
        let ready = self.lanes.iter().filter(|l| l.initiator.state() == State::Ready).count();
        let of = |total: f64| (total > 0.0).then(|| (elapsed / total).min(1.0));
        let (phase, done) = match self.phase {
            Phase::Connecting => ("connecting", None),
            Phase::Preparing => ("preparing", self.workload.as_ref().map(Workload::position)),
            Phase::Ramp => ("ramp", of(self.plan.ramp.as_secs_f64())),
            Phase::Measuring if self.plan.time.is_zero() && self.plan.ops_max > 0 => {
                ("measuring", Some(self.begun as f64 / self.plan.ops_max as f64))
            }
            Phase::Measuring => ("measuring", of(self.plan.time.as_secs_f64())),
            Phase::Draining => ("draining", None),
            Phase::ReadingBack => ("reading back", self.workload.as_ref().map(Workload::position)),
            Phase::Closing => ("closing", None),
        };
        let progress = Progress {
            phase,
            done,
            elapsed: now.since(self.started),
            ready: ready as u16,
            sessions: self.lanes.len() as u16,
            ops: figures.ops,
            iops: figures.iops,
            mb_per_s: figures.mb_per_s,
            p99_us: figures.p99_us,
            errors: self.error_count(),
            retries: self.retries,
            reconnects: self.reconnects,
            verified_blocks: self.verified,
            trouble: self.trouble.filter(|_| ready < self.lanes.len()),
        };
        self.interval.0.clear();
        self.interval.1 = 0;
        self.interval_started = now;
        fx.push(Effect::Mail { to: self.manager, mail: Mail::Progress(Box::new(progress)) });
    }
    fn error_count(&self) -> u64 {
        self.errors.iter().sum::<u64>() + self.mismatches
    }
    fn report(&self) -> Report {
        let first: &Config = self.lanes[0].initiator.config();
        let figures = |f: &(Histogram, u64)| Figures::of(&f.0, f.1, self.measured);
        let mut total = self.reads.clone();
        total.0.merge(&self.writes.0);
        total.1 += self.writes.1;
        let kinds = FaultKind::ALL.iter().copied().zip(self.errors).filter(|(_, n)| *n > 0);
        let granted = || self.lanes.iter().map(|l| l.initiator.granted());
        let block = u64::from(self.info.block_bytes);
        let mut connections = vec![];
        for (session, l) in self.lanes.iter().enumerate() {
            for (connection, c) in l.connections.iter().enumerate() {
                connections.push(ConnectionFigures {
                    session: session as u16,
                    connection: connection as u16,
                    peer: l.initiator.config().peer.to_string(),
                    figures: figures(c),
                });
            }
        }
        Report {
            end: self.end.clone(),
            protocol: first.protocol(),
            target: first.target_name().into(),
            block_bytes: self.info.block_bytes,
            volume_bytes: self.info.blocks.saturating_mul(block),
            region_bytes: self.workload.as_ref().map_or(0, |w| w.units() * u64::from(self.plan.io_bytes)),
            depth: granted().map(|(_, depth)| depth).min().unwrap_or(0),
            depth_asked: first.depth(),
            connections_open: granted().map(|(links, _)| links).sum(),
            time: self.measured,
            reads: figures(&self.reads),
            writes: figures(&self.writes),
            total: figures(&total),
            errors_by_kind: kinds.collect(),
            errors: self.error_count(),
            retries: self.retries,
            reconnects: self.reconnects,
            verified_blocks: self.verified,
            unjudged_blocks: self.unjudged,
            mismatches: self.mismatches,
            mismatch_examples: self.examples.clone(),
            not_zero_at: self.not_zero_at,
            connections,
        }
    }
}
