//! The in-flight window of an array: how many commands may be under way at a time. Each command holds one credit of the window.
//!
//! Usually the window is as large as the array has room for: a deep queue costs a drive nothing, and equal hosts wait equally long in it.
//! But a light host with one command under way, beside hosts that have thousands, would wait for everything that is at the drive before its
//! own command; so would a host of small commands beside a few large ones. While such a light host is present, the array has only as many
//! credits as keep its drives busy.
//!
//! That number is computed by Little's law, not tried out: the operations that ended in a second, each times the least time that one of its
//! kind and length has taken, are as many as would be under way if none had to wait (`needed`). Both factors are extremes (most work, least
//! time), which other work on the machine moves only to the safe side. The window has `GAIN` times that many credits, as drives are not evenly
//! busy. If less is done than before, the gain grows within a few intervals (the least time was that of a cache, say), up to no limit at
//! all; it shrinks again slowly. If the estimate is wrong, light hosts wait a little longer; throughput is unaffected.
//!
//! Each shard measures an interval (`Window`) and sends the result to the array's home (shard number: the array's modulo the shards). The
//! home concludes for all shards and gives each its part of the credits (`Governor`), by its connections' part of their volumes' weights. What
//! a shard uses is at most two intervals old.

use crate::admission::scheduler::cost_of;
use crate::layout::ArrayId;
use array::COMMANDS_MAX;
use base::{Bug, DriveOpKind, Duration, Instant, VolumeId, planted};

/// Length of an interval: operations are counted this long before anything is concluded.
const WINDOW: Duration = Duration::from_millis(50);
/// A shard that has reported nothing for this long has no load.
const GAP: Duration = Duration::from_millis(200);
/// How long the window stays small after the last command of a light host.
const STAY: Duration = Duration::from_secs(1);
/// A smaller window does not help a command that waits less than this at the drives, nanoseconds,
const SHORT: u64 = 250_000;
/// or less than this many times what operations need.
const LONG: u64 = 3;
/// A command is small if it costs less than the average by at least this factor.
const SMALL: u64 = 8;
/// If light hosts have more than this part of the load, no host is heavy.
const MOST: f32 = 0.75;
/// Credits for each operation that has to be under way: usually, and at most; and the fewest credits of a shard.
const GAIN: f32 = 2.0;
const GAIN_MAX: f32 = 512.0;
const CREDITS_MIN: u32 = 2;
/// The fewest credits where drives answer within a turn: the shard is the limit there, and large batches cost it less for each command.
const CREDITS_SWIFT: u32 = 128;
/// Turns of the shard that an operation lasts at such drives, at most.
const SWIFT: f32 = 1.5;
/// Below this part of what was done before, the gain grows by `GROW`.
const LESS: f32 = 0.92;
const GROW: f32 = 1.5;
/// Intervals until the effect of a change is seen.
const PAUSE: u32 = 3;
/// If the gain has grown this often and no more is done, the lack is not one of credits.
const TRIES: u32 = 3;
/// After this many intervals without need the gain shrinks by `SHRINK`.
const CALM: u32 = 20;
const SHRINK: f32 = 0.85;
/// The most that was done before counts this much less with each interval.
const FADE: f32 = 0.995;
/// At least this many operations of an interval are sampled, if there are as many.
const SAMPLES: u32 = 128;
/// So many volumes may wait for an array before a list of their claims grows.
const CLAIMS_USUAL: usize = 16;
const STRIDE_MAX: u32 = 15;
/// While the window is small, long commands go in pieces of this many bytes: others wait for one piece, not for all.
const PIECE: u64 = 64 << 10;
/// Kinds and lengths: reads and writes, by the power of two of 512 bytes.
const CLASSES: usize = 32;

/// A volume with waiters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Claim {
    /// The volume.
    pub volume: VolumeId,
    /// Its weight.
    pub weight: u16,
    /// Connections that wait for it.
    pub lines: u32,
    /// The answer: its weight on this shard, where it has that part of its connections.
    pub part: f32,
}

/// A shard's load of one array in an interval; and the answer of the array's home.
#[derive(Debug)]
pub struct Load {
    /// The array.
    pub array: ArrayId,
    /// Operations that have to be under way here.
    pub needed: f32,
    /// Cost of the operations that ended (`cost`), and of the commands of light hosts that started (`little`).
    pub cost: f32,
    /// See `cost`.
    pub little: f32,
    /// Operations took long, in comparison with what they need.
    pub long: bool,
    /// There were waiters all the time.
    pub full: bool,
    /// Operations end in the turn after the one in which they started.
    pub swift: bool,
    /// The volumes with waiters.
    pub claims: Vec<Claim>,
    /// The answer: credits of this shard,
    pub credits: u32,
    /// which are in force until then.
    pub until: Instant,
}

impl Load {
    fn new(array: ArrayId) -> Self {
        Self {
            array,
            needed: 0.0,
            cost: 0.0,
            little: 0.0,
            long: false,
            full: false,
            swift: false,
            claims: Vec::with_capacity(CLAIMS_USUAL),
            credits: COMMANDS_MAX,
            until: Instant(0),
        }
    }
}

/// The in-flight window of one shard at an array: its credits, and what it measures.
#[derive(Debug)]
pub(crate) struct Window {
    /// Commands that may be under way,
    pub credits: u32,
    /// and usually may.
    usual: u32,
    /// Longest part of a command that goes to a drive at once, bytes.
    pub piece: u64,
    until: Instant,
    /// When the interval ends, and when it began.
    pub end: Instant,
    began: Instant,
    /// Turns of the shard when it began.
    turns: u64,
    /// Operations in it; every `stride`th is sampled.
    ops: u32,
    stride: u32,
    skip: u32,
    seen: u32,
    /// Nanoseconds that the samples took, and would have taken without a wait.
    took: u64,
    least: u64,
    /// Cost of the samples; and of commands of light hosts: light on their connection, in comparison with others at this
    /// array, or as the last in line of a volume, a host or a connection while others wait.
    cost: u64,
    little: u64,
    /// A command that costs no more than this is small beside those of the interval before.
    small: u64,
    /// There were waiters all the time.
    pub full: bool,
    /// The least time of each class, nanoseconds: so far, and in this interval.
    base: [u32; CLASSES],
    lowest: [u32; CLASSES],
    /// None: it is on its way to the array's home and back.
    load: Option<Box<Load>>,
}

fn class(kind: DriveOpKind, len: u64) -> usize {
    let size = (64 - (len >> 9).leading_zeros()).min(15) as usize;
    if kind == DriveOpKind::Read { size } else { 16 + size }
}

impl Window {
    pub fn new(array: ArrayId, usual: u32) -> Self {
        Self {
            credits: usual,
            usual,
            piece: u64::MAX,
            until: Instant(0),
            end: Instant(0),
            began: Instant(0),
            turns: 0,
            ops: 0,
            stride: STRIDE_MAX,
            skip: 0,
            seen: 0,
            took: 0,
            least: 0,
            cost: 0,
            little: 0,
            small: 0,
            full: true,
            base: [u32::MAX; CLASSES],
            lowest: [u32::MAX; CLASSES],
            load: Some(Box::new(Load::new(array))),
        }
    }
    /// A command of this cost starts. `little`: it is a light host's.
    #[inline]
    pub fn on_start(&mut self, cost: u64, little: bool) {
        if little || cost <= self.small {
            self.little += cost;
        }
    }
    /// A read or write of a drive has ended well after `took` nanoseconds. `parts`: drives that do the same for one command.
    #[inline(always)]
    pub fn on_op(&mut self, kind: DriveOpKind, len: u64, took: u64, parts: u32) {
        self.ops += 1;
        match self.skip.checked_sub(1) {
            Some(skip) => self.skip = skip,
            None => self.sample(kind, len, took, parts),
        }
    }
    #[inline(never)]
    fn sample(&mut self, kind: DriveOpKind, len: u64, took: u64, parts: u32) {
        self.skip = self.stride - 1;
        let (class, cost) = (class(kind, len), cost_of(len));
        let ns = took.min(u64::from(u32::MAX)) as u32;
        self.base[class] = self.base[class].min(ns.max(1));
        self.lowest[class] = self.lowest[class].min(ns);
        self.seen += 1;
        self.took += took / u64::from(parts);
        self.cost += cost / u64::from(parts);
        self.least += u64::from(self.base[class] / parts);
    }
    /// Time has passed. Commands that hang must not hold all credits: behind them others may wait that another drive could serve.
    pub fn on_scan(&mut self, now: Instant) {
        if self.credits < COMMANDS_MAX && now > self.end + WINDOW && !planted(Bug::HungPlaces) {
            self.set(COMMANDS_MAX);
        }
    }
    fn set(&mut self, credits: u32) {
        self.credits = credits;
        self.piece = if credits < self.usual { PIECE } else { u64::MAX };
    }
    /// The interval is over, after `turns` turns of the shard. Returns the load for the array's home, which `on_credits` takes back.
    #[cold]
    pub fn on_window(&mut self, now: Instant, turns: u64) -> Option<Box<Load>> {
        let span = now.since(self.began);
        let counts = self.end > Instant(0) && span <= GAP && self.seen > 0;
        let mut load = self.load.take_if(|_| counts);
        if let Some(load) = &mut load {
            self.conclude(span.as_nanos() as f32, turns - self.turns, load);
        }
        if now >= self.until {
            self.set(self.usual);
        }
        // Odd, so that it falls into step with no pattern of two.
        let stride = (self.ops / SAMPLES / 2 * 2 + 1).min(STRIDE_MAX);
        self.stride = if counts { stride } else { STRIDE_MAX };
        self.began = now;
        self.end = now + WINDOW;
        self.turns = turns;
        self.ops = 0;
        self.seen = 0;
        self.took = 0;
        self.least = 0;
        self.cost = 0;
        self.little = 0;
        self.full = true;
        self.lowest = [u32::MAX; CLASSES];
        load
    }
    fn conclude(&mut self, span: f32, turns: u64, load: &mut Load) {
        let scale = self.ops as f32 / self.seen as f32;
        if self.took as f32 * scale <= 2.0 * span {
            // There is hardly any load, so this is the time that the drives need now.
            for (base, lowest) in self.base.iter_mut().zip(self.lowest).filter(|(_, l)| *l != u32::MAX) {
                *base += lowest.saturating_sub(*base) / 8;
            }
        }
        self.small = self.cost / u64::from(self.seen) / SMALL;
        load.needed = self.least as f32 * scale / span;
        load.cost = self.cost as f32 * scale;
        load.little = self.little as f32;
        load.long = self.took > SHORT * u64::from(self.seen) && self.took > LONG * self.least;
        load.full = self.full;
        // What starts in a turn ends in the next one at the earliest.
        load.swift = self.took as f32 * turns as f32 <= SWIFT * span * self.seen as f32;
    }
    /// The array's home has answered with this shard's credits.
    pub fn on_credits(&mut self, load: Box<Load>) {
        self.set(load.credits.min(self.usual));
        self.until = load.until;
        self.load = Some(load);
    }
}

/// The last report of one shard.
#[derive(Debug, Default)]
struct Report {
    at: Instant,
    needed: f32,
    cost: f32,
    little: f32,
    long: bool,
    full: bool,
    swift: bool,
    claims: Vec<Claim>,
    credits: u32,
}

/// Concludes for all shards how many commands an array works on.
#[derive(Debug)]
pub(crate) struct Governor {
    shards: Vec<Report>,
    /// When it last did.
    at: Instant,
    /// Operations that have to be under way: smoothed, and the most of it lately.
    needed: f32,
    most: f32,
    gain: f32,
    /// Conclusions since the gain changed; how often it has grown, from what, and what was done then.
    calm: u32,
    grown: u32,
    gain_before: f32,
    needed_before: f32,
    /// The windows are small until then.
    until: Instant,
}

impl Governor {
    pub fn new(shards: u16) -> Self {
        let mut report = vec![];
        let none = || Report {
            credits: COMMANDS_MAX,
            claims: Vec::with_capacity(CLAIMS_USUAL),
            ..Report::default()
        };
        report.resize_with(usize::from(shards), none);
        Self {
            shards: report,
            at: Instant(0),
            needed: 0.0,
            most: 0.0,
            gain: GAIN,
            calm: 0,
            grown: 0,
            gain_before: GAIN,
            needed_before: 0.0,
            until: Instant(0),
        }
    }
    /// A shard reports its load. The answer is written into `load`.
    pub fn on_load(&mut self, now: Instant, shard: u16, load: &mut Load) {
        let report = &mut self.shards[usize::from(shard)];
        report.at = now;
        report.needed = load.needed;
        report.cost = load.cost;
        report.little = load.little;
        report.long = load.long;
        report.full = load.full;
        report.swift = load.swift;
        report.claims.clear();
        report.claims.extend_from_slice(&load.claims);
        // One conclusion for each interval, at the first report.
        if now.since(self.at) >= WINDOW.saturating_sub(Duration::from_millis(5)) {
            self.conclude(now);
        }
        load.claims.iter_mut().for_each(|c| c.part = self.part_of(c, now));
        load.credits = self.shards[usize::from(shard)].credits;
        load.until = self.until.max(now + GAP);
    }
    fn conclude(&mut self, now: Instant) {
        let fresh = |h: &&Report| h.is_fresh(now);
        if now.since(self.at) > GAP {
            self.needed = 0.0;
        }
        self.at = now;
        let sum = |of: fn(&Report) -> f32| self.shards.iter().filter(fresh).map(of).sum::<f32>();
        let (needed, cost, little) = (sum(|h| h.needed), sum(|h| h.cost), sum(|h| h.little));
        let any = |of: fn(&Report) -> bool| self.shards.iter().filter(fresh).any(of);
        let (long, full) = (any(|h| h.long), any(|h| h.full));
        self.needed = if self.needed == 0.0 { needed } else { self.needed + (needed - self.needed) / 4.0 };
        self.most = (self.most * FADE).max(self.needed);
        let limits = now < self.until;
        if little > 0.0 && little <= MOST * cost && (limits || long) {
            self.until = now + STAY;
        }
        if limits {
            self.adjust(full);
        }
        self.share(now, long);
    }
    /// More gain if less is done than before and somebody waits; less again after a time without need.
    fn adjust(&mut self, full: bool) {
        self.calm += 1;
        if self.calm < PAUSE {
            return;
        }
        if full && self.needed < LESS * self.most {
            if self.grown == 0 {
                self.gain_before = self.gain;
                self.needed_before = self.needed;
            }
            self.gain = (self.gain * GROW).min(GAIN_MAX);
            self.calm = 0;
            self.grown += 1;
            if self.grown > TRIES {
                if self.needed * LESS < self.needed_before {
                    // More credits did not help: there is less work than before.
                    self.gain = self.gain_before;
                    self.most = self.needed;
                }
                self.grown = 0;
            }
        } else if self.calm >= CALM {
            self.gain = (self.gain * SHRINK).max(GAIN);
            self.calm = 0;
            self.grown = 0;
        }
    }
    /// Gives each shard its part of the credits: of few, or of as many as there are.
    fn share(&mut self, now: Instant, long: bool) {
        let parts = |i: usize| self.claimed(i, now);
        let all: f32 = (0..self.shards.len()).map(parts).sum();
        let largest = (0..self.shards.len()).map(parts).fold(0.0, f32::max);
        let here = self.shards.iter().filter(|h| h.is_fresh(now)).count().max(1);
        let few = (now < self.until).then_some(self.most * self.gain);
        for i in 0..self.shards.len() {
            let own = self.claimed(i, now);
            let credits = match few {
                Some(few) if own > 0.0 => few * own / all,
                // It has no waiters, so its load is light.
                Some(few) => few / here as f32,
                // Only where drives are the limit does one shard have what another lacks.
                None if own > 0.0 && long => COMMANDS_MAX as f32 * own / largest,
                None => COMMANDS_MAX as f32,
            };
            let least = if self.shards[i].swift { CREDITS_SWIFT } else { CREDITS_MIN };
            self.shards[i].credits = (credits as u32).clamp(least, COMMANDS_MAX);
        }
    }
    /// What the volumes of which a shard has claims weigh there, in all.
    fn claimed(&self, shard: usize, now: Instant) -> f32 {
        let own = Some(&self.shards[shard]).filter(|h| h.is_fresh(now));
        own.iter().flat_map(|h| &h.claims).map(|c| self.part_of(c, now)).sum()
    }
    /// What a volume weighs on the shard of this claim: its connections there get their part.
    fn part_of(&self, claim: &Claim, now: Instant) -> f32 {
        let all = self.shards.iter().filter(|h| h.is_fresh(now)).flat_map(|h| &h.claims);
        let lines: u32 = all.filter(|c| c.volume == claim.volume).map(|c| c.lines).sum();
        f32::from(claim.weight) * claim.lines as f32 / lines.max(1) as f32
    }
}

impl Report {
    fn is_fresh(&self, now: Instant) -> bool {
        now.since(self.at) <= GAP
    }
}
