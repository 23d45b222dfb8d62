//! Load from inside: a shard that is driven without a front end, or drives with nothing above them, by the shard's
//! own thread.
//!
//! ```text
//! main thread ─ Job ─▶ Inner { Shard, Run } ─ News ─▶ main thread
//!                        │  rooms:  direct_submit ─▶ … ─▶ direct_done
//!                        └▶ drives: Effect::Drive ─▶ … ─▶ DriveDone (tokens of its own)
//! ```

use base::machine::Shape;
use base::{
    Command, ConnectionId, Dma, DriveId, DriveInfo, DriveOp, DriveOpKind, Duration, Effect, Effects, Event,
    Histogram, Instant, Machine, Memory, Op, OpenError, Slice, Status, Tag, Token,
};
use head::Shard;
use head::mail::Mail;
use head::path::direct::Place;
use head::path::door::Door;
use load::stamp::Mismatch;
use load::{Pick, Plan, Progress, Workload, stamp};
use std::sync::mpsc::{Receiver, Sender};

/// Where the load is put.
#[derive(Clone, Debug)]
pub enum At {
    /// On drives themselves, all legs of a place written, one in turn read.
    Drives(Vec<Place>),
    /// On the drives of the volume's arrays.
    Bare,
    /// On the volume's arrays, in turn.
    Arrays,
    /// On the volume's pool.
    Pool,
    /// On the volume.
    Volume,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where.
    pub at: At,
    /// Shape of the load: of a plan only this, ramp, time and verification count here.
    pub plan: Plan,
    /// Operations under way.
    pub depth: u16,
}

/// What the main thread asks for.
#[derive(Debug)]
pub enum Ask {
    /// Open this drive, to be used without a pool.
    Open(DriveId, String, Option<Shape>),
    /// Carry this out.
    Run(Box<Job>),
    /// End the run.
    Stop,
}

/// What the main thread is told.
#[derive(Debug)]
pub enum News {
    /// The end of `Ask::Open`.
    Opened(Result<DriveInfo, OpenError>),
    /// How it goes.
    Progress(Progress),
    /// The run cannot be carried out.
    Refused(Refusal),
    /// The run has ended.
    Done(Box<Tally>),
}

/// Why a run cannot be carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no volume to be loaded.
    NoVolume,
    /// So many bytes hold no operation of so many for each shard.
    RegionSmall {
        /// Of the region.
        bytes: u64,
        /// Of an operation.
        io_bytes: u32,
    },
    /// More operations than a shard has room for.
    TooDeep {
        /// How many were wanted.
        depth: u16,
    },
    /// Not enough memory for the data of so many operations.
    NoMemory,
}

/// What a read found instead of what was written.
#[derive(Clone, Debug)]
pub struct WrongByte {
    /// The first byte of it.
    pub at: u64,
    /// What it holds.
    pub holds: Mismatch,
    /// The version that was written.
    pub written: u64,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Length of the measurement.
    pub time: Duration,
    /// Reads: latencies and bytes.
    pub reads: (Histogram, u64),
    /// Writes.
    pub writes: (Histogram, u64),
    /// By path: drives of a bare load, arrays of one on arrays.
    pub paths: Vec<(Histogram, u64)>,
    /// Operations that failed.
    pub errors: u64,
    /// Blocks of 512 bytes found to hold what was written.
    pub verified: u64,
    /// Reads that found something else, and the first of them.
    pub mismatches: u64,
    /// See `mismatches`.
    pub example: Option<WrongByte>,
}

impl Tally {
    /// Adds what another shard counted meanwhile.
    pub fn merge(&mut self, other: &Tally) {
        self.time = self.time.max(other.time);
        for (mine, theirs) in [(&mut self.reads, &other.reads), (&mut self.writes, &other.writes)] {
            mine.0.merge(&theirs.0);
            mine.1 += theirs.1;
        }
        self.paths.resize(self.paths.len().max(other.paths.len()), Default::default());
        for (mine, theirs) in self.paths.iter_mut().zip(&other.paths) {
            mine.0.merge(&theirs.0);
            mine.1 += theirs.1;
        }
        self.errors += other.errors;
        self.verified += other.verified;
        self.mismatches += other.mismatches;
        self.example = self.example.take().or_else(|| other.example.clone());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preparing,
    Ramp,
    Measuring,
    Draining,
}

/// One operation, in as many commands as a host would send.
struct Operation {
    pick: Pick,
    started: Instant,
    /// One buffer for each command.
    data: Vec<Slice>,
    /// Commands, and with several legs drive operations, that have not ended.
    left: u32,
    good: bool,
    path: u16,
}

struct Run {
    job: Job,
    places: Vec<Place>,
    volume: (base::VolumeId, u32),
    workload: Workload,
    operations: Vec<Operation>,
    idle: Vec<u16>,
    phase: Phase,
    started: Instant,
    since: Instant,
    tally: Tally,
    interval: (Histogram, u64, Instant),
    progress_at: Instant,
    turn: u64,
}

/// Tokens of our own drive operations, and of opening drives.
const OURS: u64 = 1 << 63;
/// Most commands of one operation: 4 MiB of at most 1 MiB each.
const PARTS: u32 = 4;

/// A shard with a load generator in its thread.
pub struct Inner<M: Memory> {
    shard: Shard<M>,
    asks: Receiver<Ask>,
    news: Sender<News>,
    /// Which shard, of how many: each has a part of the region.
    part: (u16, u16),
    opening: Option<(DriveId, Option<Shape>)>,
    run: Option<Box<Run>>,
}

impl<M: Memory> Inner<M> {
    /// `asks` is looked at whenever mail comes.
    pub fn new(shard: Shard<M>, part: (u16, u16), asks: Receiver<Ask>, news: Sender<News>) -> Self {
        Self { shard, asks, news, part, opening: None, run: None }
    }

    fn tell(&self, news: News) {
        // Whoever asked may have given up.
        let _ = self.news.send(news);
    }

    fn look(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        while let Ok(ask) = self.asks.try_recv() {
            match ask {
                Ask::Open(drive, spec, shape) => {
                    self.opening = Some((drive, shape));
                    fx.push(Effect::OpenDrive { token: Token(OURS), drive, spec, shared: false });
                }
                Ask::Run(job) => match self.begin(now, *job) {
                    Ok(run) => self.run = Some(Box::new(run)),
                    Err(why) => self.tell(News::Refused(why)),
                },
                Ask::Stop => {
                    if let Some(run) = &mut self.run {
                        run.stop(now);
                    }
                }
            }
        }
    }

    fn begin(&mut self, now: Instant, job: Job) -> Result<Run, Refusal> {
        let bytes = job.plan.io_bytes;
        let own = self.shard.direct_volumes().next();
        let (volume, size) = match (&job.at, own) {
            (At::Drives(_), _) => ((base::VolumeId(0), 512), u64::MAX),
            (_, Some((id, block, blocks))) => ((id, block), blocks * u64::from(block)),
            (_, None) => return Err(Refusal::NoVolume),
        };
        let places = match &job.at {
            At::Drives(places) => places.clone(),
            At::Bare | At::Arrays | At::Pool | At::Volume => self.shard.direct_places(volume.0),
        };
        let smallest = places.iter().map(|p| p.bytes).min().unwrap_or(0);
        let spread = smallest.saturating_mul(places.len() as u64).min(size);
        let all = if job.plan.region_bytes == 0 { spread } else { job.plan.region_bytes.min(spread) };
        let units = all / u64::from(bytes) / u64::from(self.part.1);
        if units == 0 || !bytes.is_multiple_of(volume.1) {
            return Err(Refusal::RegionSmall { bytes: all, io_bytes: bytes });
        }
        let parts = bytes.div_ceil(base::front::TRANSFER_MAX);
        if !self.shard.direct_admit(u32::from(job.depth) * parts) {
            return Err(Refusal::TooDeep { depth: job.depth });
        }
        let mut run = Run {
            workload: Workload::new(&job.plan, units),
            operations: vec![],
            idle: (0..job.depth).rev().collect(),
            phase: if job.plan.prepare { Phase::Preparing } else { Phase::Ramp },
            started: now,
            since: now,
            tally: Tally { paths: vec![Default::default(); paths_of(&job.at, &places)], ..Tally::default() },
            interval: (Histogram::default(), 0, now),
            progress_at: now + job.plan.progress_every,
            turn: 0,
            places,
            volume,
            job,
        };
        let mut noise = base::Prng::new(run.job.plan.seed ^ 0x6461_7461);
        for _ in 0..run.job.depth {
            let mut data = vec![];
            for part in 0..parts {
                let len = part_bytes(bytes, part);
                let Some(buffer) = self.shard.direct_buffer(len) else {
                    run.operations
                        .iter()
                        .flat_map(|o| &o.data)
                        .chain(&data)
                        .for_each(|d| self.shard.direct_release(*d));
                    self.shard.direct_dismiss(u32::from(run.job.depth) * parts);
                    return Err(Refusal::NoMemory);
                };
                self.shard.dma(buffer, &mut |bytes| noise.fill(bytes));
                data.push(buffer);
            }
            let pick = Pick::default();
            run.operations.push(Operation { pick, started: now, data, left: 0, good: true, path: 0 });
        }
        Ok(run)
    }

    /// Begins operations while there are idle ones. True if a room has something to do.
    fn fill(&mut self, now: Instant, fx: &mut Effects<Mail>) -> bool {
        let Some(run) = &mut self.run else { return false };
        let mut any = false;
        while let Some(index) = run.idle.last().copied() {
            let pick = match run.phase {
                Phase::Preparing => run.workload.next_prepare(),
                Phase::Ramp | Phase::Measuring => run.workload.next_pick(),
                Phase::Draining => None,
            };
            let Some(pick) = pick else { break };
            run.idle.pop();
            run.start(now, index, pick, self.part, &mut self.shard, fx);
            any = true;
        }
        any && !matches!(run.job.at, At::Drives(_) | At::Bare)
    }

    /// Goes on with the run: phases, progress, its end.
    fn advance(&mut self, now: Instant) {
        let Some(run) = &mut self.run else { return };
        run.advance(now);
        let busy = run.idle.len() < run.operations.len();
        if now >= run.progress_at {
            let progress = run.progress(now);
            let _ = self.news.send(News::Progress(progress));
        }
        if run.phase == Phase::Draining && !busy {
            let run = self.run.take().expect("just seen");
            let parts = run.job.plan.io_bytes.div_ceil(base::front::TRANSFER_MAX);
            self.shard.direct_dismiss(u32::from(run.job.depth) * parts);
            run.operations.iter().flat_map(|o| &o.data).for_each(|d| self.shard.direct_release(*d));
            self.tell(News::Done(Box::new(run.tally)));
        }
    }

    fn part_over(&mut self, now: Instant, tag: u64, good: bool, data: Option<Slice>) {
        let Some(run) = &mut self.run else { return };
        let (index, part) = ((tag / u64::from(PARTS)) as usize, (tag % u64::from(PARTS)) as usize);
        let operation = &mut run.operations[index];
        if let Some(data) = data {
            operation.data[part] = data;
        }
        operation.good &= good;
        operation.left -= 1;
        if operation.left == 0 {
            run.over(now, index, &mut self.shard, self.part);
        }
    }
}

/// Figures are kept apart by drive or by array, where the load chooses among them.
fn paths_of(at: &At, places: &[Place]) -> usize {
    match at {
        At::Drives(_) | At::Bare => places.iter().map(|p| p.drives.len()).sum(),
        At::Arrays => places.len(),
        At::Pool | At::Volume => 0,
    }
}

fn part_bytes(bytes: u32, part: u32) -> u32 {
    (bytes - part * base::front::TRANSFER_MAX).min(base::front::TRANSFER_MAX)
}

impl Run {
    /// First byte of a unit among all places, and of its part of the region.
    fn byte_of(&self, unit: u64, (shard, _): (u16, u16)) -> u64 {
        (u64::from(shard) * self.workload.units() + unit) * u64::from(self.job.plan.io_bytes)
    }

    fn start<M: Memory>(
        &mut self,
        now: Instant,
        index: u16,
        pick: Pick,
        shard_part: (u16, u16),
        shard: &mut Shard<M>,
        fx: &mut Effects<Mail>,
    ) {
        let (io, seed, verify) = (self.job.plan.io_bytes, self.job.plan.seed, self.job.plan.verify);
        let byte = self.byte_of(pick.unit, shard_part);
        let unit = byte / u64::from(io);
        let count = self.places.len() as u64;
        // Places in turn, so that each has an equal part.
        let (place, below) = ((unit % count) as usize, unit / count * u64::from(io));
        self.turn += 1;
        let operation = &mut self.operations[usize::from(index)];
        (operation.pick, operation.started, operation.good) = (pick, now, true);
        operation.left = operation.data.len() as u32;
        let mut offset = 0;
        for (part, data) in operation.data.iter().copied().enumerate() {
            let at = byte + offset;
            if pick.write && verify {
                let version = u64::from(pick.version);
                shard.dma(data, &mut |bytes| stamp::fill(bytes, at, seed, version));
            }
            let tag = u64::from(index) * u64::from(PARTS) + part as u64;
            let fua = self.job.plan.fua && pick.write;
            match &self.job.at {
                At::Drives(_) | At::Bare => {
                    let Place { drives, at, .. } = &self.places[place];
                    let kind = if pick.write { DriveOpKind::Write } else { DriveOpKind::Read };
                    let one = (self.turn / count % drives.len() as u64) as usize;
                    let legs = if pick.write { &drives[..] } else { &drives[one..one + 1] };
                    operation.left += legs.len() as u32 - 1;
                    let before: usize = self.places[..place].iter().map(|p| p.drives.len()).sum();
                    operation.path = (before + if pick.write { 0 } else { one }) as u16;
                    for drive in legs {
                        fx.push(Effect::Drive(DriveOp {
                            drive: *drive,
                            kind,
                            at: at + below + offset,
                            len: u64::from(data.len),
                            data,
                            fua,
                            token: Token(OURS | tag),
                        }));
                    }
                }
                At::Arrays | At::Pool | At::Volume => {
                    let (door, at) = match self.job.at {
                        At::Arrays => (Door::Array(place as u16), below + offset),
                        At::Pool => (Door::Pool, at),
                        _ => (Door::Volume, at),
                    };
                    operation.path = place as u16;
                    let (volume, block) = self.volume;
                    let op = if pick.write { Op::Write } else { Op::Read };
                    let (at, blocks) = (at / u64::from(block), u64::from(data.len / block));
                    let command = Command { volume, op, at, blocks, fua };
                    shard.direct_submit(now, (Tag(tag as u16), door), command, data, fx);
                }
            }
            offset += u64::from(data.len);
        }
    }

    fn over<M: Memory>(&mut self, now: Instant, index: usize, shard: &mut Shard<M>, part: (u16, u16)) {
        let Operation { pick, started, good, path, .. } = self.operations[index];
        self.idle.push(index as u16);
        self.workload.over(pick, good);
        if !good {
            self.tally.errors += 1;
            return;
        }
        let (latency, bytes) = (now.since(started), u64::from(self.job.plan.io_bytes));
        self.interval.0.record(latency);
        self.interval.1 += bytes;
        if self.phase == Phase::Measuring {
            let all = if pick.write { &mut self.tally.writes } else { &mut self.tally.reads };
            all.0.record(latency);
            all.1 += bytes;
            if let Some((histogram, sum)) = self.tally.paths.get_mut(usize::from(path)) {
                histogram.record(latency);
                *sum += bytes;
            }
        }
        if self.job.plan.verify && !pick.write && pick.version != 0 {
            let (seed, mut at) = (self.job.plan.seed, self.byte_of(pick.unit, part));
            for data in &self.operations[index].data {
                let mut found = Ok(());
                let version = u64::from(pick.version);
                shard.dma(*data, &mut |bytes| found = stamp::check(bytes, at, seed, version));
                match found {
                    Ok(()) => self.tally.verified += u64::from(data.len) / 512,
                    Err((byte, wrong)) => {
                        self.tally.mismatches += 1;
                        self.tally.example.get_or_insert(WrongByte {
                            at: byte,
                            holds: wrong,
                            written: version,
                        });
                    }
                }
                at += u64::from(data.len);
            }
        }
    }

    fn go(&mut self, now: Instant, phase: Phase) {
        (self.phase, self.since) = (phase, now);
    }

    fn stop(&mut self, now: Instant) {
        if self.phase == Phase::Measuring {
            self.tally.time = now.since(self.since);
        }
        self.go(now, Phase::Draining);
    }

    fn advance(&mut self, now: Instant) {
        let busy = self.idle.len() < self.operations.len();
        let elapsed = now.since(self.since);
        match self.phase {
            Phase::Preparing if self.workload.prepared() && !busy => {
                self.workload.rewind();
                self.go(now, Phase::Ramp);
            }
            Phase::Ramp if elapsed >= self.job.plan.ramp => self.go(now, Phase::Measuring),
            Phase::Measuring if elapsed >= self.job.plan.time => self.stop(now),
            // Whatever is wrong, it would be wrong again.
            Phase::Preparing | Phase::Ramp | Phase::Measuring if self.tally.errors > 0 => self.stop(now),
            Phase::Preparing | Phase::Ramp | Phase::Measuring | Phase::Draining => {}
        }
    }

    fn progress(&mut self, now: Instant) -> Progress {
        let plan = &self.job.plan;
        self.progress_at = now + plan.progress_every;
        let figures = load::Figures::of(&self.interval.0, self.interval.1, now.since(self.interval.2));
        self.interval.0.clear();
        (self.interval.1, self.interval.2) = (0, now);
        let elapsed = now.since(self.since).as_secs_f64();
        let of = |all: Duration| (!all.is_zero()).then(|| (elapsed / all.as_secs_f64()).min(1.0));
        let (phase, done) = match self.phase {
            Phase::Preparing => ("preparing", Some(self.workload.position())),
            Phase::Ramp => ("ramp", of(plan.ramp)),
            Phase::Measuring => ("measuring", of(plan.time)),
            Phase::Draining => ("draining", None),
        };
        Progress {
            phase,
            done,
            elapsed: now.since(self.started),
            ops: figures.ops,
            iops: figures.iops,
            mb_per_s: figures.mb_per_s,
            p99_us: figures.p99_us,
            errors: self.tally.errors + self.tally.mismatches,
            ..Progress::default()
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let plan = &self.job.plan;
        let end = match self.phase {
            Phase::Ramp => Some(self.since + plan.ramp),
            Phase::Measuring => Some(self.since + plan.time),
            Phase::Preparing | Phase::Draining => None,
        };
        end.into_iter().chain([self.progress_at]).min()
    }
}

impl<M: Memory> Machine for Inner<M> {
    type Mail = Mail;

    fn on_event(&mut self, now: Instant, event: Event<Mail>, fx: &mut Effects<Mail>) {
        match event {
            Event::DriveDone { token, result } if token.0 & OURS != 0 => {
                self.part_over(now, token.0 & !OURS, result.is_ok(), None);
            }
            Event::DriveOpened { token, result } if token.0 == OURS => {
                let opened = self.opening.take();
                if let (Some((drive, Some(shape))), Ok(_)) = (opened, &result) {
                    fx.push(Effect::ShapeDrive { drive, shape });
                }
                self.tell(News::Opened(result));
            }
            Event::Mail { from, mail } => {
                self.shard.on_event(now, Event::Mail { from, mail }, fx);
                self.look(now, fx);
            }
            other => self.shard.on_event(now, other, fx),
        }
    }

    fn on_timer(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.shard.on_timer(now, fx);
    }

    fn end_of_turn(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        loop {
            self.shard.end_of_turn(now, fx);
            while let Some(done) = self.shard.direct_done() {
                let good = done.status == Status::Good;
                self.part_over(now, u64::from(done.tag.0), good, Some(done.data));
            }
            self.advance(now);
            if !self.fill(now, fx) {
                break;
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let run = self.run.as_ref().and_then(|r| r.next_deadline());
        self.shard.next_deadline().into_iter().chain(run).min()
    }

    fn segments(&self, connection: ConnectionId, max: usize, out: &mut Vec<Slice>) {
        self.shard.segments(connection, max, out);
    }
}
