//! Shards, drives, hosts and a toy Steward in one random order of events.

use super::drives::{BLOCK, Drive, MAP_AT};
use super::memory::Stamps;
use super::oracle::Oracle;
use array::*;
use base::*;
use std::collections::{BTreeMap, VecDeque};

/// Of the uncleared maps.
const LIFE: u64 = 5;

/// What a seed is like.
#[derive(Clone, Debug)]
pub struct Options {
    pub shards: u16,
    pub legs: usize,
    pub volatile: bool,
    pub region_bytes: u64,
    pub regions: u64,
    pub commands: u32,
    pub in_flight: usize,
    pub write_error: u64,
    pub read_error: u64,
    pub timeout: u64,
    pub leg_loss: u64,
    pub crash: u64,
    pub power: u64,
    pub hot_blocks: u64,
    /// The drives were somebody's before.
    pub used: bool,
    /// Space is returned now and then.
    pub returns: u64,
    /// Another head may be let in at the drives.
    pub shared: bool,
}

impl Options {
    pub fn random(rng: &mut Prng) -> Self {
        let often = |rng: &mut Prng, n: u64| if rng.chance(1, 2) { 0 } else { rng.between(1, n) };
        let region_bytes = *rng.pick(&[16 << 10, 64 << 10, 256 << 10]);
        Self {
            shards: rng.between(1, 3) as u16,
            legs: *rng.pick(&[2, 2, 2, 3]),
            volatile: rng.chance(1, 2),
            region_bytes,
            regions: rng.between(3, 40),
            commands: rng.between(40, 250) as u32,
            in_flight: rng.between(1, 24) as usize,
            write_error: if rng.chance(1, 8) { 250 } else { often(rng, 20) },
            read_error: often(rng, 40),
            timeout: often(rng, 25),
            leg_loss: often(rng, 20),
            crash: often(rng, 40),
            power: rng.below(11),
            hot_blocks: rng.between(2, 40),
            used: rng.chance(1, 2),
            returns: often(rng, 40),
            shared: false,
        }
    }
}

#[derive(Clone, Debug)]
enum Letter {
    Membership(Membership),
    Recorded(u64),
    /// Hosts are not served.
    Unready,
    Unrecorded,
    /// Hosts are served again.
    Ready,
    Heal {
        leg: usize,
        at: u64,
        len: u64,
    },
    AddDirty(Bitmap),
    Mark,
    Clean,
    Returned(u32, Vec<(u64, u64)>),
    AllCleared(u32),
    RegionCleared(u32, u32),
}

struct Flying {
    shard: u16,
    tag: u32,
    op: DriveOp,
    begun: u64,
    given_up: bool,
    /// Its command may be over before it.
    held: bool,
}

struct Pending {
    command: ArrayCommand,
    shard: u16,
    start: u64,
    values: Vec<(u64, u64)>,
    buffer: Slice,
    /// Where its host is.
    arrived: u16,
    /// It was under way when hosts there stopped being served.
    unready: bool,
}

/// What a shard's effects go to.
#[derive(Default)]
struct Io {
    ops: Vec<DriveOp>,
    done: Vec<(Ticket, Status)>,
    notes: Vec<Note>,
    replaced: Vec<(Ticket, Slice)>,
    hedges: BTreeMap<Ticket, Slice>,
    /// Buffers of hedges, until their command is answered.
    hedge_buffers: Vec<(Ticket, Slice)>,
    held: Vec<u32>,
    memory: Stamps,
    generous: bool,
}

impl ArrayIo for Io {
    fn drive(&mut self, op: DriveOp) {
        self.ops.push(op);
    }
    fn done(&mut self, ticket: Ticket, status: Status) {
        self.done.push((ticket, status));
    }
    fn zeroes(&mut self, _: Ticket, data: Slice) {
        for i in 0..u64::from(data.len) / BLOCK {
            self.memory.set(data.at + i * BLOCK, 0);
        }
    }
    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.memory.block_bytes(data)
    }
    fn replace_buffer(&mut self, ticket: Ticket, old: Slice) -> Option<Slice> {
        let new = self.generous.then(|| self.memory.allocate(old.len))?;
        self.replaced.push((ticket, new));
        Some(new)
    }
    fn same(&mut self, a: Slice, b: Slice) -> bool {
        let mut blocks = 0..u64::from(a.len) / BLOCK;
        blocks.all(|i| self.memory.get(a.at + i * BLOCK) == self.memory.get(b.at + i * BLOCK))
    }
    fn hedge_buffer(&mut self, ticket: Ticket, old: Slice) -> Option<Slice> {
        let new = self.generous.then(|| self.memory.allocate(old.len))?;
        assert!(self.hedges.insert(ticket, new).is_none(), "a command has one hedge at a time");
        self.hedge_buffers.push((ticket, new));
        Some(new)
    }
    fn answer_from_hedge(&mut self, ticket: Ticket, _: Slice, hedge: Slice, read: bool) -> bool {
        if !read && !self.generous {
            return false;
        }
        assert_eq!(self.hedges.remove(&ticket), Some(hedge));
        self.replaced.push((ticket, hedge));
        true
    }
    fn drop_hedge(&mut self, ticket: Ticket, hedge: Slice) {
        assert_eq!(self.hedges.remove(&ticket), Some(hedge));
    }
    fn hold(&mut self, tag: u32, _: Slice) {
        self.held.push(tag);
    }
}

struct Steward {
    membership: Membership,
    record: Membership,
    reported_recorded: u64,
    confirmed: Vec<u64>,
    joined: [u64; LEGS_MAX],
    synced: [u32; LEGS_MAX],
    clean: u32,
    marking: Option<(usize, u32)>,
    /// Nothing takes the record: so many shards do not serve hosts.
    gave_up: Option<u16>,
    /// Space that is being returned, durably known to be so, the number of that mark, and the shards that have done their part.
    returning: Vec<(u64, u64)>,
    marks: u32,
    marked: u32,
    /// Shards without uncleared pieces since that mark.
    cleared: u32,
}

pub struct World {
    rng: Prng,
    /// Who has which lane, in each life dealt anew from a source of its own, so that seeds stay what they were.
    lanes: Lanes,
    dealing: Prng,
    options: Options,
    geometry: Geometry,
    uuid: Uuid,
    now: Instant,
    time: u64,
    pub trace: u64,
    shards: Vec<Array>,
    letters: Vec<VecDeque<Letter>>,
    notes: Vec<VecDeque<Note>>,
    /// By DriveId. The drive of leg `i` stands in `leg_drive[i]`.
    drives: Vec<Drive>,
    leg_drive: Vec<usize>,
    flying: Vec<Flying>,
    pending: BTreeMap<Ticket, Pending>,
    steward: Steward,
    oracle: Oracle,
    io: Io,
    scratch: Vec<Slice>,
    next_ticket: u64,
    next_value: u64,
    calm: bool,
    /// Sometimes nothing takes the record for long.
    gives_up: bool,
    /// Shards that do not serve hosts.
    unready: Vec<bool>,
    logs: bool,
    crash_at: Option<u64>,
    pub crashes: u32,
    pub losses: u32,
    pub gave_up: u32,
    pub returned: u32,
    /// Blocks in which one leg holds something else, behind everybody's back; and what a scrub said of them.
    rotten: BTreeMap<u64, usize>,
    found: BTreeMap<u64, bool>,
    pub scrubbed: u32,
    /// Hedges sent and won, of lives that ended in a crash too.
    pub hedges: (u64, u64),
    pub answered: BTreeMap<&'static str, u32>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = Prng::new(seed);
        let mut options = Options::random(&mut rng);
        // Seeds that found something stay as they were.
        options.shared = (400..600).contains(&seed);
        Self { gives_up: seed % 4 == 1, ..Self::with(rng, options) }
    }
    pub fn with(mut rng: Prng, options: Options) -> Self {
        let data_bytes = options.regions * options.region_bytes - rng.below(3) * BLOCK;
        let geometry = Geometry {
            data_at: 1 << 20,
            data_bytes,
            region_bytes: options.region_bytes,
            bitmap_at: 4096 * 7,
            bitmap_blocks: 16,
        };
        geometry.check();
        let uuid = Uuid::from_random(7, 8);
        let mut io = Io::default();
        let scratch = (0..options.shards).map(|_| io.memory.allocate(SCRATCH_BYTES)).collect();
        let mut drives = Vec::new();
        for _ in 0..options.legs {
            let mut drive = Drive::new(geometry, options.volatile && rng.chance(4, 5), rng.chance(3, 4));
            encode(&geometry, uuid, &Bitmap::new(geometry.regions()), &mut drive.bitmap);
            if options.used {
                drive = drive.used(drives.len() as u64);
                drive.map = UnclearedMap::all(&geometry, LIFE).encode(&geometry, uuid);
            }
            drives.push(drive);
        }
        let membership = Membership { epoch: 1, legs: Vec::new() };
        let steward = Steward {
            record: membership.clone(),
            membership,
            reported_recorded: 1,
            confirmed: Vec::new(),
            joined: [0; LEGS_MAX],
            synced: [0; LEGS_MAX],
            clean: 0,
            marking: None,
            gave_up: None,
            returning: Vec::new(),
            marks: 0,
            marked: 0,
            cleared: 0,
        };
        let dealing = Prng::new(rng.clone().next_u64());
        let mut world = Self {
            lanes: Lanes::dealt(options.shards),
            dealing,
            oracle: Oracle::new(data_bytes / BLOCK),
            leg_drive: (0..options.legs).collect(),
            rng,
            geometry,
            uuid,
            now: Instant(1_000_000_000),
            time: 1,
            trace: 0,
            shards: Vec::new(),
            letters: Vec::new(),
            notes: Vec::new(),
            drives,
            flying: Vec::new(),
            pending: BTreeMap::new(),
            steward,
            io,
            scratch,
            next_ticket: 1,
            next_value: 1,
            calm: false,
            gives_up: false,
            unready: Vec::new(),
            crashes: 0,
            crash_at: None,
            logs: std::env::var_os("MODEL_LOG").is_some(),
            losses: 0,
            gave_up: 0,
            returned: 0,
            rotten: BTreeMap::new(),
            found: BTreeMap::new(),
            scrubbed: 0,
            hedges: (0, 0),
            answered: BTreeMap::new(),
            options,
        };
        let legs = (0..world.options.legs).map(|leg| Some(world.leg(leg, LegState::InSync))).collect();
        world.steward.membership.legs = legs;
        world.steward.record = world.steward.membership.clone();
        let uncleared =
            if world.options.used { UnclearedMap::all(&geometry, LIFE) } else { UnclearedMap::none() };
        world.boot(Bitmap::new(geometry.regions()), uncleared, false);
        world
    }
    fn leg(&self, leg: usize, state: LegState) -> Leg {
        let drive = self.leg_drive[leg];
        Leg {
            drive: DriveId(drive as u16),
            state,
            volatile_cache: self.drives[drive].volatile,
            deallocate_zeroes: self.drives[drive].deallocate_zeroes,
            map_at: MAP_AT,
        }
    }
    fn say(&mut self, text: impl FnOnce() -> String) {
        if self.logs {
            eprintln!("{} {}", self.time, text());
        }
    }
    fn boot(&mut self, dirty: Bitmap, uncleared: UnclearedMap, unclean: bool) {
        let shards = self.options.shards;
        self.lanes = if self.dealing.chance(1, 2) {
            Lanes::dealt(shards)
        } else {
            Lanes::new(core::array::from_fn(|_| self.dealing.below(u64::from(shards)) as u16))
        };
        self.shards = (0..shards)
            .map(|shard| {
                Array::new(ArrayConfig {
                    uuid: self.uuid,
                    geometry: self.geometry,
                    membership: self.steward.membership.clone(),
                    shard,
                    lanes: self.lanes,
                    scratch: self.scratch[usize::from(shard)],
                    dirty: dirty.clone(),
                    unclean,
                    uncleared: uncleared.clone(),
                    shared: self.options.shared,
                })
            })
            .collect();
        self.io.hedges.clear();
        self.io.hedge_buffers.clear();
        self.unready = vec![false; usize::from(shards)];
        self.letters = vec![VecDeque::new(); usize::from(shards)];
        self.notes = vec![VecDeque::new(); usize::from(shards)];
        let epoch = self.steward.membership.epoch;
        self.steward.confirmed = vec![epoch; usize::from(shards)];
        self.steward.reported_recorded = epoch;
        self.steward.joined = [epoch; LEGS_MAX];
        self.steward.synced = [0; LEGS_MAX];
        self.steward.clean = 0;
        self.steward.marking = None;
        self.steward.gave_up = None;
        self.steward.marks = 0;
        self.steward.marked = 0;
        self.steward.cleared = 0;
        // What was being returned is returned anew.
        if !self.steward.returning.is_empty() {
            self.mark();
        }
    }
    fn mark(&mut self) {
        self.steward.marks += 1;
        self.steward.marked = 0;
        self.steward.cleared = 0;
        let (marks, ranges) = (self.steward.marks, self.steward.returning.clone());
        self.broadcast(&Letter::Returned(marks, ranges));
    }
    fn overlaps_returning(&self, at: u64, len: u64) -> bool {
        self.steward.returning.iter().any(|(from, bytes)| at < from + bytes && *from < at + len)
    }
    /// A volume goes: its space is nobody's. Nothing of it is under way.
    fn return_space(&mut self) {
        let blocks = self.geometry.data_bytes / BLOCK;
        let ranges: Vec<(u64, u64)> = (0..self.rng.between(1, 3))
            .map(|_| {
                let at = self.rng.below(blocks);
                (at * BLOCK, self.rng.between(1, (blocks - at).min(64)) * BLOCK)
            })
            .collect();
        let mut apart: Vec<(u64, u64)> = vec![];
        for (at, len) in ranges {
            let free = |(from, bytes): &(u64, u64)| at + len <= *from || from + bytes <= at;
            let idle = |p: &Pending| free(&(p.command.at, p.command.len));
            let landed = |f: &Flying| {
                let drive = &self.drives[f.op.drive.index()];
                let data = f.op.kind != DriveOpKind::Flush && !drive.is_bitmap(&f.op);
                !data || free(&(f.op.at - self.geometry.data_at, f.op.len))
            };
            if apart.iter().all(free) && self.pending.values().all(idle) && self.flying.iter().all(landed) {
                apart.push((at, len));
            }
        }
        if !apart.is_empty() {
            self.say(|| format!("returned: {apart:?}"));
            self.steward.returning = apart;
            self.mark();
        }
    }
    fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    // ---- effects ----

    fn settle(&mut self, shard: usize) {
        for op in core::mem::take(&mut self.io.ops) {
            self.check_op(shard, &op);
            let begun = self.drives[op.drive.index()].now();
            self.trace = self.trace.rotate_left(7) ^ op.at ^ (op.kind as u64) << 40 ^ op.token.0;
            self.say(|| {
                format!(
                    "shard {shard} drive {} {:?} {}+{} tag {}",
                    op.drive, op.kind, op.at, op.len, op.token.0
                )
            });
            self.flying.push(Flying {
                shard: shard as u16,
                tag: op.token.0 as u32,
                op,
                begun,
                given_up: false,
                held: false,
            });
        }
        for tag in core::mem::take(&mut self.io.held) {
            let held = self.flying.iter_mut().find(|f| usize::from(f.shard) == shard && f.tag == tag);
            held.expect("an operation under way").held = true;
        }
        for (ticket, buffer) in core::mem::take(&mut self.io.replaced) {
            self.pending.get_mut(&ticket).expect("a command under way").buffer = buffer;
        }
        for (ticket, status) in core::mem::take(&mut self.io.done) {
            self.finish(ticket, status);
        }
        for note in core::mem::take(&mut self.io.notes) {
            self.say(|| format!("shard {shard} {note:?}"));
            self.notes[shard].push_back(note);
        }
        if self.time.is_multiple_of(16) {
            self.shards[shard].check_invariants();
        }
    }
    /// Rules that each operation must obey.
    fn check_op(&self, shard: usize, op: &DriveOp) {
        let drive = &self.drives[op.drive.index()];
        let area = if op.at >= MAP_AT {
            MAP_AT + UNCLEARED_AREA_BYTES
        } else {
            self.geometry.data_at + self.geometry.data_bytes
        };
        assert!(op.at.checked_add(op.len).is_some_and(|end| end <= area));
        for other in &self.flying {
            let same = usize::from(other.shard) == shard && u64::from(other.tag) == op.token.0;
            assert!(!same, "a tag was used again while the kernel holds it");
            let (a, b) = (op.data, other.op.data);
            let shared = a.at < b.end() && b.at < a.end();
            assert!(
                !(shared && (other.given_up || other.held)),
                "memory was used again while the kernel holds it"
            );
        }
        let writes = !matches!(op.kind, DriveOpKind::Read | DriveOpKind::Flush);
        if !writes {
            return;
        }
        for other in &self.flying {
            let both = other.op.drive == op.drive
                && !matches!(other.op.kind, DriveOpKind::Read | DriveOpKind::Flush);
            assert!(
                !(both && other.op.at < op.at + op.len && op.at < other.op.at + other.op.len),
                "overlapping writes at one drive: {op:?} and {:?} of shard {}",
                other.op,
                other.shard
            );
        }
        if drive.is_bitmap(op) {
            return;
        }
        // Promise 4, seen from the drive: whoever is in sync says that the region is dirty.
        let region = self.geometry.region(op.at - self.geometry.data_at);
        assert_eq!(self.geometry.owner_of_region(region, &self.lanes) as usize, shard);
        let in_sync = self
            .steward
            .membership
            .legs
            .iter()
            .flatten()
            .any(|leg| leg.drive == op.drive && leg.state == LegState::InSync);
        if in_sync {
            let (block, bit) = self.geometry.bit_of(region);
            let at = block as usize * 4096 + 64 + (bit / 8) as usize;
            assert!(
                drive.bitmap[at] >> (bit % 8) & 1 == 1,
                "a write to region {region} before its bit is durable"
            );
        }
    }
    fn finish(&mut self, ticket: Ticket, status: Status) {
        let Pending { command, start, values, buffer, unready, .. } =
            self.pending.remove(&ticket).expect("answered once");
        let unread = unready && command.kind == Kind::Read && status == Status::Good;
        let status = if unread { Status::NotReady } else { status };
        let now = self.tick();
        // Whoever is still at a drive with memory of this command keeps it.
        let hedge_buffers = &mut self.io.hedge_buffers;
        for f in self.flying.iter().filter(|f| f.op.kind == DriveOpKind::Read) {
            let mine = f.op.data == command.data || hedge_buffers.contains(&(ticket, f.op.data));
            assert!(!mine || f.given_up || f.held, "a drive reads into memory that is free");
        }
        hedge_buffers.retain(|(t, _)| *t != ticket);
        self.say(|| format!("{ticket:?} {status:?}"));
        self.trace = self.trace.rotate_left(5) ^ ticket.0;
        let durable = command.fua || !self.drives.iter().any(|d| d.volatile);
        let word = match status {
            Status::Good => "good",
            Status::Medium => "medium",
            Status::NotReady => "not ready",
            Status::Aborted => "aborted",
            other => unreachable!("an array does not answer {other:?}"),
        };
        *self.answered.entry(word).or_default() += 1;
        match command.kind {
            Kind::Read if status == Status::Good => {
                let held = self.flying.iter().any(|f| f.op.kind == DriveOpKind::Read && f.op.data == buffer);
                assert!(!held, "a read was answered from a buffer that the kernel still holds");
                for i in 0..command.len / BLOCK {
                    let value = self.io.memory.get(buffer.at + i * BLOCK);
                    let all = !self.drives.iter().any(|d| d.volatile);
                    // A write that failed because its only leg hangs may still land there.
                    let block = command.at / BLOCK + i;
                    let hangs = self.flying.iter().any(|f| {
                        let drive = &self.drives[f.op.drive.index()];
                        let writes = !matches!(f.op.kind, DriveOpKind::Read | DriveOpKind::Flush);
                        f.given_up
                            && writes
                            && !drive.is_bitmap(&f.op)
                            && drive.blocks(&f.op).contains(&block)
                    });
                    self.oracle.read(block, value, start, now, all, !hangs);
                }
            }
            Kind::Read => {}
            Kind::Flush if status == Status::Good => self.oracle.flushed(start),
            Kind::Flush => {}
            Kind::Write | Kind::WriteZeroes | Kind::Deallocate => {
                for (block, value) in values {
                    match status {
                        Status::Good => self.oracle.good(block, value, start, now, durable),
                        Status::Aborted => self.oracle.aborted(block, value, start),
                        _ => self.oracle.failed(block, value, start, now),
                    }
                }
            }
        }
    }

    // ---- events ----

    fn host_command(&mut self) {
        let blocks = self.geometry.data_bytes / BLOCK;
        let hot = self.options.hot_blocks.min(blocks);
        let at =
            if self.rng.chance(3, 4) { self.rng.below(hot) * (blocks / hot) } else { self.rng.below(blocks) }
                * BLOCK;
        let room = self.geometry.region_end(at) - at;
        let len = (self.rng.between(1, 8) * BLOCK).min(room);
        let kind = match self.rng.below(20) {
            0..8 => Kind::Read,
            8..16 => Kind::Write,
            16 => Kind::WriteZeroes,
            17 => Kind::Deallocate,
            _ => Kind::Flush,
        };
        let (at, len) = if kind == Kind::Flush { (0, 0) } else { (at, len) };
        self.command(kind, at, len);
    }
    fn command(&mut self, kind: Kind, at: u64, len: u64) {
        let arrived = self.rng.below(u64::from(self.options.shards)) as u16;
        if kind != Kind::Flush && self.overlaps_returning(at, len) {
            return;
        }
        let home = &self.shards[usize::from(arrived)];
        let len = if kind == Kind::Flush { len } else { home.cut(at, len) };
        if self.unready[usize::from(arrived)] {
            return;
        }
        let shard = match kind {
            Kind::Flush => arrived,
            Kind::Read if self.shards[usize::from(arrived)].read_is_local(at, len) => arrived,
            _ => self.shards[usize::from(arrived)].owner(at),
        };
        let has_data = matches!(kind, Kind::Read | Kind::Write);
        let data = if has_data { self.io.memory.allocate(len as u32) } else { Slice::default() };
        let fua = self.rng.chance(1, 5);
        let command = ArrayCommand { kind, at, len, data, fua };
        let start = self.tick();
        let mut values = Vec::new();
        if !matches!(kind, Kind::Read | Kind::Flush) {
            for i in 0..len / BLOCK {
                let value = if kind == Kind::Write { self.next_value } else { 0 };
                self.next_value += 1;
                if kind == Kind::Write {
                    self.io.memory.set(data.at + i * BLOCK, value);
                }
                values.push((at / BLOCK + i, value));
                self.oracle.begin(at / BLOCK + i, value, start);
            }
        }
        if kind == Kind::Read
            && shard != arrived
            && let Some((region, marks)) = self.shards[usize::from(shard)].cleared_region(at)
        {
            self.letters[usize::from(arrived)].push_back(Letter::RegionCleared(region, marks));
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.say(|| format!("{ticket:?} {kind:?} {at}+{len} fua {fua} on {shard}: {values:?}"));
        self.pending
            .insert(ticket, Pending { command, shard, start, values, buffer: data, arrived, unready: false });
        self.io.generous = self.rng.chance(3, 4);
        self.shards[usize::from(shard)].on_command(self.now, ticket, command, &mut self.io);
        self.settle(usize::from(shard));
    }
    fn complete(&mut self, i: usize) {
        let (gone, given_up) = (self.drives[self.flying[i].op.drive.index()].gone, self.flying[i].given_up);
        let timeout = !gone && !given_up && !self.calm && self.rng.chance(self.options.timeout, 400);
        if timeout {
            self.flying[i].given_up = true;
            let Flying { shard, tag, .. } = self.flying[i];
            self.say(|| format!("shard {shard} tag {tag} timed out"));
            self.io.generous = self.rng.chance(3, 4);
            let shard = usize::from(shard);
            self.shards[shard].on_drive_done(self.now, tag, Err(DriveError::TimedOut), &mut self.io);
            self.settle(shard);
            return;
        }
        let Flying { shard, tag, op, begun, given_up, .. } = self.flying.remove(i);
        let drive = &mut self.drives[op.drive.index()];
        let bitmap = drive.is_bitmap(&op);
        let is_read = op.kind == DriveOpKind::Read;
        let chance = if is_read { self.options.read_error } else { self.options.write_error };
        let fails = !self.calm && self.rng.chance(chance, if is_read { 200 } else { 1500 });
        let result = if drive.gone || given_up && self.rng.chance(1, 3) || fails {
            if is_read && !drive.gone && !bitmap && self.rng.chance(1, 2) {
                drive.bad.extend(drive.blocks(&op).take(1));
            }
            if op.kind != DriveOpKind::Flush && !is_read && !drive.gone {
                drive.apply(&op, begun, &mut self.io.memory, Some(&mut self.rng)).expect("writes apply");
            }
            Err(if drive.gone { DriveError::Gone } else { DriveError::Medium })
        } else {
            drive.apply(&op, begun, &mut self.io.memory, None)
        };
        self.say(|| format!("shard {shard} tag {tag} {result:?} late {given_up}"));
        let at = usize::from(shard);
        if given_up {
            self.shards[at].on_drive_late(self.now, tag, &mut self.io);
        } else {
            self.shards[at].on_drive_done(self.now, tag, result, &mut self.io);
        }
        self.settle(at);
    }
    fn deliver(&mut self, shard: usize) {
        let Some(letter) = self.letters[shard].pop_front() else { return };
        self.say(|| format!("shard {shard} gets {letter:?}"));
        let array = &mut self.shards[shard];
        match letter {
            Letter::Membership(m) => {
                array.on_membership(self.now, &m, &mut self.io);
                self.steward.confirmed[shard] = m.epoch;
            }
            Letter::Recorded(epoch) => array.on_recorded(self.now, epoch, &mut self.io),
            Letter::Unready => {
                self.unready[shard] = true;
                let mine = self.pending.values_mut().filter(|p| usize::from(p.arrived) == shard);
                mine.for_each(|p| p.unready = true);
                if let Some(heard) = &mut self.steward.gave_up {
                    *heard += 1;
                    if *heard == self.options.shards {
                        self.broadcast(&Letter::Unrecorded);
                    }
                }
                return;
            }
            Letter::Unrecorded => {
                self.gave_up += 1;
                array.on_loss_not_on_record(self.now, &mut self.io);
            }
            Letter::Ready => self.unready[shard] = false,
            Letter::Heal { leg, at, len } => array.on_heal(self.now, leg, at, len, &mut self.io),
            Letter::AddDirty(dirty) => array.add_dirty(self.now, &dirty, &mut self.io),
            Letter::Mark => array.mark_all_dirty(self.now, 1, &mut self.io),
            Letter::Clean => array.on_clean(self.now, &mut self.io),
            Letter::Returned(marks, ranges) => {
                array.on_returned(self.now, (LIFE, marks), &ranges, &mut self.io)
            }
            Letter::AllCleared(marks) => array.on_all_cleared(marks),
            Letter::RegionCleared(region, marks) => array.on_region_cleared(region, marks),
        }
        self.settle(shard);
    }
    fn timers(&mut self) {
        for shard in 0..self.shards.len() {
            if self.shards[shard].next_deadline().is_some_and(|d| d <= self.now) {
                self.shards[shard].on_timer(self.now, &mut self.io);
                self.settle(shard);
            }
        }
    }

    // ---- the toy Steward ----

    fn broadcast(&mut self, letter: &Letter) {
        for letters in &mut self.letters {
            letters.push_back(letter.clone());
        }
    }
    fn change(&mut self, leg: usize, state: LegState) {
        let new = self.leg(leg, state);
        self.steward.membership.epoch += 1;
        self.steward.membership.legs[leg] = Some(new);
        self.steward.synced[leg] = 0;
        if state == LegState::Rebuilding {
            self.steward.joined[leg] = self.steward.membership.epoch;
        }
        let membership = self.steward.membership.clone();
        self.broadcast(&Letter::Membership(membership));
    }
    fn state(&self, leg: usize) -> LegState {
        self.steward.membership.legs[leg].map_or(LegState::Missing, |l| l.state)
    }
    fn fail_leg(&mut self, leg: usize) {
        let in_sync = (0..self.options.legs).filter(|l| self.state(*l) == LegState::InSync);
        let last = self.state(leg) == LegState::InSync && in_sync.count() == 1;
        if self.state(leg) != LegState::Missing && !last {
            self.losses += 1;
            self.change(leg, LegState::Missing);
        }
    }
    fn hear(&mut self, shard: usize) {
        let Some(note) = self.notes[shard].pop_front() else { return };
        match note {
            Note::LegFailed { leg, epoch, .. } | Note::LegAhead { leg, epoch, .. } => {
                if epoch >= self.steward.joined[leg] {
                    self.fail_leg(leg);
                }
            }
            Note::Synced { leg, epoch } => {
                if self.state(leg) == LegState::Rebuilding && epoch >= self.steward.joined[leg] {
                    self.steward.synced[leg] |= 1 << shard;
                    if self.steward.synced[leg].count_ones() == u32::from(self.options.shards) {
                        self.change(leg, LegState::InSync);
                        // The moment in which everything rests on the new leg.
                        if !self.calm && self.options.crash > 0 && self.rng.chance(1, 2) {
                            self.crash_at = Some(self.time + self.rng.below(120));
                        }
                    }
                }
            }
            Note::CrashClean { .. } => {
                self.steward.clean |= 1 << shard;
                if self.steward.clean.count_ones() == u32::from(self.options.shards) {
                    self.broadcast(&Letter::Clean);
                }
            }
            Note::AllDirty { .. } => {
                if let Some((leg, heard)) = &mut self.steward.marking {
                    *heard |= 1 << shard;
                    let leg = *leg;
                    if heard.count_ones() == u32::from(self.options.shards) {
                        self.steward.marking = None;
                        let new = Drive::new(self.geometry, self.options.volatile, true);
                        let number = self.drives.len() as u64;
                        self.drives.push(if self.options.used { new.used(number) } else { new });
                        self.leg_drive[leg] = self.drives.len() - 1;
                        self.change(leg, LegState::Rebuilding);
                    }
                }
            }
            Note::Heal { at, len, leg } => {
                let owner = self.shards[0].owner(at);
                self.letters[usize::from(owner)].push_back(Letter::Heal { leg, at, len });
            }
            Note::Mismatch { at, len, bad, source, known, repair } => {
                for block in at / BLOCK..(at + len) / BLOCK {
                    let rotten = self.rotten.get(&block);
                    let leg = rotten.unwrap_or_else(|| panic!("a false alarm in block {block}"));
                    assert_eq!(known, self.options.legs > 2);
                    assert!(!known || bad == 1 << leg, "block {block}: {leg} is rotten, not {bad:b}");
                    assert!(known || source == 0, "the first leg counts where nobody knows");
                    self.found.insert(block, repair);
                }
            }
            Note::Scrubbed { .. } => self.scrubbed += 1,
            Note::Returned { marks } => {
                if marks == self.steward.marks {
                    self.steward.marked |= 1 << shard;
                }
                let all = self.steward.marked.count_ones() == u32::from(self.options.shards);
                if all && !self.steward.returning.is_empty() {
                    let now = self.tick();
                    self.returned += 1;
                    for (at, len) in core::mem::take(&mut self.steward.returning) {
                        (at / BLOCK..(at + len) / BLOCK).for_each(|block| self.oracle.returned(block, now));
                    }
                }
            }
            Note::AllCleared { marks } => {
                if marks == self.steward.marks {
                    self.steward.cleared |= 1 << shard;
                    if self.steward.cleared.count_ones() == u32::from(self.options.shards) {
                        self.broadcast(&Letter::AllCleared(marks));
                    }
                }
            }
            Note::Healed { .. } | Note::MediumLost { .. } | Note::Judged { .. } | Note::Unreadable { .. } => {
            }
        }
    }
    fn record(&mut self) {
        self.steward.record = self.steward.membership.clone();
    }
    fn report_recorded(&mut self) {
        let epoch = self.steward.confirmed.iter().copied().min().unwrap_or(0).min(self.steward.record.epoch);
        if epoch > self.steward.reported_recorded {
            self.steward.reported_recorded = epoch;
            self.broadcast(&Letter::Recorded(epoch));
            if self.steward.gave_up.take().is_some() {
                self.broadcast(&Letter::Ready);
            }
        }
    }
    /// Nothing takes the record: no host is served, no read that is under way is answered, and only when all shards
    /// have said so, what waits for the record is.
    fn give_up_record(&mut self) {
        self.steward.gave_up = Some(0);
        self.broadcast(&Letter::Unready);
    }
    /// Takes a missing leg back, or a new drive in its place.
    fn readd(&mut self) {
        let missing: Vec<usize> =
            (0..self.options.legs).filter(|l| self.state(*l) == LegState::Missing).collect();
        let Some(leg) = missing.first().copied() else { return };
        if self.steward.marking.is_some() {
            return;
        }
        let epoch = self.steward.membership.epoch;
        let drained = self.shards.iter().all(|s| s.ops_on(leg) == 0)
            && !self.flying.iter().any(|f| f.op.drive.index() == self.leg_drive[leg])
            && self.steward.confirmed.iter().all(|c| *c == epoch);
        if !drained {
            return;
        }
        // A drive that is not on record is a new one, whatever it holds.
        if self.steward.membership.legs[leg].is_none() || self.rng.chance(1, 4) {
            if self.rng.chance(1, 2) {
                // Its drive leaves for good before the new one comes.
                self.steward.membership.epoch += 1;
                self.steward.membership.legs[leg] = None;
                // Instances clear bits from here on, so it must not come back as a member after a crash.
                self.record();
                let membership = self.steward.membership.clone();
                self.broadcast(&Letter::Membership(membership));
            }
            self.steward.marking = Some((leg, 0));
            self.broadcast(&Letter::Mark);
        } else {
            let drive = self.leg_drive[leg];
            self.drives[drive].gone = false;
            let (dirty, _) = merge(&self.geometry, self.uuid, &[Some(&self.drives[drive].bitmap)]);
            self.broadcast(&Letter::AddDirty(dirty));
            self.change(leg, LegState::Rebuilding);
        }
    }
    fn count_life(&mut self) {
        for progress in self.shards.iter().map(Array::progress) {
            self.hedges.0 += progress.hedges_sent;
            self.hedges.1 += progress.hedges_won;
        }
    }
    fn crash(&mut self) {
        self.count_life();
        self.crashes += 1;
        self.crash_at = None;
        let now = self.tick();
        let power = self.rng.chance(self.options.power, 10);
        self.say(|| format!("crash, power cut {power}"));
        // What was at the drives lands wholly, in part, or not at all.
        let mut order: Vec<Flying> = core::mem::take(&mut self.flying);
        while !order.is_empty() {
            let i = self.rng.below(order.len() as u64) as usize;
            let flying = order.swap_remove(i);
            let drive = &mut self.drives[flying.op.drive.index()];
            let writes = !matches!(flying.op.kind, DriveOpKind::Read | DriveOpKind::Flush);
            if writes && !drive.gone && self.rng.chance(2, 3) {
                let part = if self.rng.chance(1, 2) { Some(&mut self.rng) } else { None };
                drive.apply(&flying.op, flying.begun, &mut self.io.memory, part).expect("writes apply");
            }
        }
        self.io.ops.clear();
        self.oracle.crash(now, power);
        for drive in &mut self.drives {
            if power {
                drive.power_cut(&mut self.rng);
            }
        }
        self.pending.clear();
        // The record under way may or may not have landed.
        if self.rng.chance(1, 2) {
            self.record();
        }
        self.steward.membership = self.steward.record.clone();
        for leg in 0..self.options.legs {
            if let Some(member) = self.steward.membership.legs[leg] {
                self.leg_drive[leg] = member.drive.index();
            }
        }
        // Promise 1: a drive may die together with the crash, as long as one in sync is left.
        let in_sync: Vec<usize> =
            (0..self.options.legs).filter(|l| self.state(*l) == LegState::InSync).collect();
        let dying =
            if in_sync.len() > 1 && self.rng.chance(1, 3) { Some(*self.rng.pick(&in_sync)) } else { None };
        self.steward.membership.epoch += 1;
        for leg in 0..self.options.legs {
            if dying == Some(leg) {
                let drive = self.leg_drive[leg];
                self.drives[drive].gone = true;
                self.steward.membership.legs[leg] = Some(self.leg(leg, LegState::Missing));
            }
        }
        self.record();
        let bitmaps: Vec<Option<&[u8]>> = (0..self.options.legs)
            .filter(|l| self.state(*l) == LegState::InSync)
            .map(|l| Some(&self.drives[self.leg_drive[l]].bitmap[..]))
            .collect();
        let (mut dirty, _) = merge(&self.geometry, self.uuid, &bitmaps);
        let maps: Vec<Option<&[u8]>> = (0..self.options.legs)
            .filter(|l| self.state(*l) == LegState::InSync)
            .map(|l| Some(&self.drives[self.leg_drive[l]].map[..]))
            .collect();
        let merged = UnclearedMap::merge(&self.geometry, self.uuid, LIFE, &maps);
        let in_sync = (0..self.options.legs).filter(|l| self.state(*l) == LegState::InSync);
        let in_sync: Vec<usize> = in_sync.map(|l| self.leg_drive[l]).collect();
        for mend in &merged.mends {
            let map = &mut self.drives[in_sync[mend.leg]].map;
            map[mend.at as usize..][..mend.bytes.len()].copy_from_slice(&mend.bytes);
        }
        // A rebuilding leg stays a member without being taken back anew: what it says counts now.
        for leg in (0..self.options.legs).filter(|l| self.state(*l) == LegState::Rebuilding) {
            let own = Some(&self.drives[self.leg_drive[leg]].bitmap[..]);
            dirty.union(&merge(&self.geometry, self.uuid, &[own]).0);
        }
        self.say(|| format!("dirty: {:?}", dirty.iter().collect::<Vec<_>>()));
        self.boot(dirty, merged.map, true);
    }

    // ---- the run ----

    pub fn step(&mut self) {
        self.tick();
        if !self.calm && self.crash_at.is_some_and(|at| self.time >= at) {
            self.crash();
        }
        if self.rng.chance(1, 3) {
            self.now = self.now + Duration::from_micros(self.rng.below(200));
        } else if self.rng.chance(1, 60) {
            self.now = self.now + Duration::from_millis(self.rng.below(3000));
        }
        self.timers();
        match self.rng.below(100) {
            0..20
                if !self.calm
                    && self.next_ticket <= u64::from(self.options.commands)
                    && self.pending.len() < self.options.in_flight =>
            {
                self.host_command();
            }
            20..65 if !self.flying.is_empty() => {
                let i = self.rng.below(self.flying.len() as u64) as usize;
                // What was given up takes its time.
                if !self.flying[i].given_up || self.calm || self.rng.chance(1, 8) {
                    self.complete(i);
                }
            }
            65..78 => {
                let shard = self.rng.below(u64::from(self.options.shards)) as usize;
                self.deliver(shard);
            }
            78..88 => {
                let shard = self.rng.below(u64::from(self.options.shards)) as usize;
                self.hear(shard);
            }
            88..91 => self.record(),
            91..94 => self.report_recorded(),
            94 if !self.calm => {
                if let Some(ticket) = self.pending.keys().nth(self.rng.below(20) as usize).copied() {
                    let shard = usize::from(self.pending[&ticket].shard);
                    self.shards[shard].on_abort(self.now, ticket, &mut self.io);
                    self.settle(shard);
                }
            }
            95 if !self.calm && self.rng.chance(self.options.leg_loss, 60) => {
                let leg = self.rng.below(self.options.legs as u64) as usize;
                let alive = (0..self.options.legs)
                    .filter(|l| !self.drives[self.leg_drive[*l]].gone && self.state(*l) == LegState::InSync);
                if self.state(leg) != LegState::InSync || alive.count() > 1 {
                    let drive = self.leg_drive[leg];
                    self.drives[drive].gone = true;
                    self.say(|| format!("leg {leg} is gone"));
                    if self.rng.chance(1, 3) {
                        self.fail_leg(leg);
                    }
                }
            }
            95 if self.gives_up
                && self.steward.gave_up.is_none()
                && self.steward.reported_recorded < self.steward.membership.epoch
                && self.steward.confirmed.iter().all(|c| *c == self.steward.membership.epoch) =>
            {
                self.give_up_record();
            }
            99 => {
                let shard = self.rng.below(u64::from(self.options.shards)) as usize;
                let from = self.rng.below(self.options.regions) * self.options.region_bytes;
                let repair = self.rng.chance(1, 2);
                // Sometimes it is ended in the middle; sometimes it begins anew.
                let order =
                    self.rng.chance(2, 3).then_some(Scrub { from, repair, prefer: None, ..Scrub::default() });
                if !self.calm && self.rng.chance(1, 2) {
                    self.shards[shard].scrub(self.now, order, &mut self.io);
                    self.settle(shard);
                }
            }
            96..98 if self.calm || self.rng.chance(1, 10) => self.readd(),
            98 if !self.calm && self.rng.chance(self.options.crash, 100) => self.crash(),
            98 if !self.calm
                && self.steward.returning.is_empty()
                && self.rng.chance(self.options.returns, 60) =>
            {
                self.return_space();
            }
            _ => {}
        }
    }
    fn over(&self) -> bool {
        self.pending.is_empty()
            && self.flying.is_empty()
            && self.notes.iter().all(|n| n.is_empty())
            && self.letters.iter().all(|l| l.is_empty())
            && (0..self.options.legs).all(|leg| self.state(leg) == LegState::InSync)
            && self.steward.record.epoch == self.steward.membership.epoch
            && self.steward.returning.is_empty()
            && self.shards.iter().all(|s| {
                let progress = s.progress();
                s.quiesced() && (progress.dirty_regions, progress.uncleared) == (0, 0)
            })
    }
    pub fn run(&mut self) {
        let mut steps = 0;
        while self.next_ticket <= u64::from(self.options.commands) && steps < 60_000 {
            steps += 1;
            self.step();
        }
        // Faults stop; everything must converge.
        self.calm = true;
        for leg in 0..self.options.legs {
            let drive = self.leg_drive[leg];
            if self.drives[drive].gone && self.state(leg) != LegState::Missing {
                self.drives[drive].gone = false;
            }
            self.drives[drive].bad.clear();
        }
        let mut steps = 0u64;
        while !self.over() {
            steps += 1;
            if steps.is_multiple_of(50) {
                self.now = self.now + Duration::from_millis(700);
            }
            self.step();
            if steps.is_multiple_of(20) {
                let bad: Vec<usize> = self.leg_drive.clone();
                bad.into_iter().for_each(|d| self.drives[d].bad.clear());
            }
            assert!(steps < 200_000, "does not converge: {}", self.why());
        }
        self.count_life();
        self.check_end();
        self.scrub_rot();
    }
    /// Legs rot while nobody looks: a scrub finds every block of it and nothing else, and mends it.
    fn scrub_rot(&mut self) {
        let blocks = self.geometry.data_bytes / BLOCK;
        for _ in 0..self.rng.between(1, 6) {
            let block = self.rng.below(blocks);
            let leg = self.rng.below(self.options.legs as u64) as usize;
            if self.rotten.insert(block, leg).is_none() {
                self.drives[self.leg_drive[leg]].durable[block as usize] = u64::MAX - block;
            } else {
                self.rotten.remove(&block);
                let well = self.drives[self.leg_drive[(0..self.options.legs)
                    .find(|l| self.drives[self.leg_drive[*l]].durable[block as usize] != u64::MAX - block)
                    .expect("one leg is well")]]
                .durable[block as usize];
                for leg in 0..self.options.legs {
                    self.drives[self.leg_drive[leg]].durable[block as usize] = well;
                }
            }
        }
        for repair in [false, true] {
            self.found.clear();
            self.scrubbed = 0;
            for shard in 0..self.shards.len() {
                let order = Some(Scrub { repair, prefer: Some(0), ..Scrub::default() });
                self.shards[shard].scrub(self.now, order, &mut self.io);
                self.settle(shard);
            }
            let mut steps = 0;
            while self.scrubbed < u32::from(self.options.shards) || !self.over() {
                steps += 1;
                self.now = self.now + Duration::from_millis(if steps % 50 == 0 { 700 } else { 0 });
                self.step();
                assert!(steps < 200_000, "a scrub does not end: {}", self.why());
            }
            let rotten: Vec<u64> = self.rotten.keys().copied().collect();
            assert_eq!(self.found.keys().copied().collect::<Vec<_>>(), rotten);
            assert!(self.found.values().all(|r| *r == repair));
        }
        for block in 0..blocks {
            let values: Vec<u64> = self.leg_drive.iter().map(|d| self.drives[*d].value(block)).collect();
            assert!(values.windows(2).all(|w| w[0] == w[1]), "block {block} was not mended: {values:?}");
            let mended = self.options.legs > 2 || !self.rotten.contains_key(&block);
            assert!(!mended || values[0] != u64::MAX - block, "block {block} was mended from the wrong leg");
        }
    }
    fn why(&self) -> String {
        format!(
            "pending {:?}, flying {}, legs {:?}, record {} of {}, progress {:?}, deadlines {:?}",
            self.pending.keys().collect::<Vec<_>>(),
            self.flying.len(),
            (0..self.options.legs).map(|l| self.state(l)).collect::<Vec<_>>(),
            self.steward.record.epoch,
            self.steward.membership.epoch,
            self.shards.iter().map(|s| (s.idle(), s.progress())).collect::<Vec<_>>(),
            self.shards.iter().map(|s| s.next_deadline()).collect::<Vec<_>>(),
        )
    }
    fn check_end(&mut self) {
        for block in 0..self.geometry.data_bytes / BLOCK {
            let values: Vec<u64> = self.leg_drive.iter().map(|d| self.drives[*d].value(block)).collect();
            let durable: Vec<u64> =
                self.leg_drive.iter().map(|d| self.drives[*d].durable[block as usize]).collect();
            assert!(values.windows(2).all(|w| w[0] == w[1]), "block {block}: legs differ: {values:?}");
            assert_eq!(values, durable, "block {block}: bits are cleared, but a cache holds data");
            let now = self.tick();
            assert!(self.oracle.allowed(block, values[0], now), "block {block} holds {}", values[0]);
        }
        for drive in &self.leg_drive {
            let (dirty, bad) = merge(&self.geometry, self.uuid, &[Some(&self.drives[*drive].bitmap)]);
            assert!(dirty.is_empty() && bad == 0, "a bitmap is not clear at the end");
        }
    }
    pub fn options(&self) -> &Options {
        &self.options
    }
}
