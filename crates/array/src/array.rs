//! One array on one shard: its state, its door, and what all its machines share.
//!
//! Each machine has a file of its own with an `impl Array`: `read` (balancing, retry, healing), `change` (order,
//! fan-out, loss), `intent` (the bitmap), `resync` (rebuilding legs, crash), and `members` (what the Steward decides).
//!
//! What a machine keeps between calls is in its own `state` module, which this file uses; the machine uses this file.

use crate::bitmap::Bitmap;
use crate::buffers::{BufferId, Buffers};
use crate::door::{
    ArrayCommand, ArrayConfig, ArrayIo, COMMANDS_MAX, Kind, Leg, LegState, Note, OpView, Pace, Progress,
};
use crate::door::{TRANSFER_MAX, Ticket};
use crate::flight::{DriveTag, Flight, Job, Legs, NONE, Owner, Phase, Plan, bit, members};
use crate::geometry::{Geometry, LANES, LEGS_MAX, Lanes, PLACES_MAX};
use crate::hedge::state::{HEDGES_MAX, Hedging};
use crate::intent::state::Intent;
use crate::latency::state::{Judging, Latency};
use crate::local_leg::{LocalLeg, Sets};
use crate::locks::Locks;
use crate::resync::state::Resync;
use crate::scrub::state::Scrubbing;
use crate::uncleared::state::{CLEARS_MAX, Meeting, Uncleared};
use base::{
    Bug, DriveError, DriveId, DriveOp, DriveOpKind, Instant, Slice, Slots, Status, Token, Uuid, planted,
    planted_if,
};
use std::collections::VecDeque;

/// A leg that answers nothing is tried with commands of no more than that.
const TRY_BYTES: u64 = 64 << 10;
/// Heals under way at once; more wait for the next read of the blocks.
pub(crate) const HEALS_MAX: u32 = 4;
/// Flights that are not a host's.
const INTERNAL_MAX: u32 = crate::buffers::PIECES_MAX + HEALS_MAX + CLEARS_MAX + 1;
/// All flights: host commands, twice, since an answered one may wait for a late operation; and ours.
const FLIGHTS_MAX: u32 = 2 * COMMANDS_MAX + INTERNAL_MAX;
/// Operations of one leg: one for each flight, one for each bitmap block, those of the uncleared map, three flushes, hedges.
const LEG_OPS_MAX: u32 = FLIGHTS_MAX + LANES + MAP_OPS_MAX + 3 + HEDGES_MAX + GIVEN_UP_MAX;
/// Writes of blocks of the uncleared map: each has a buffer.
const MAP_OPS_MAX: u32 = crate::buffers::MAP_BUFFERS;
/// Operations of one leg that were given up and hang in the kernel: no command starts while it is so
/// many on a leg in use, so it is never more than this and what was under way.
const GIVEN_UP_MAX: u32 = 2 * COMMANDS_MAX + LANES;

#[inline]
fn view(op: &DriveTag) -> OpView {
    let DriveTag { drive, kind, len, data, since, held, given_up, .. } = *op;
    OpView { drive, kind, len, data, since, held, given_up }
}

/// One array on one shard.
#[derive(Debug)]
pub struct Array {
    pub(crate) uuid: Uuid,
    pub(crate) geometry: Geometry,
    pub(crate) shard: u16,
    pub(crate) lanes: Lanes,
    pub(crate) legs: [LocalLeg; PLACES_MAX],
    sets: Sets,
    pub(crate) epoch: u64,
    pub(crate) recorded: u64,
    /// Nothing takes the record: hosts do not wait for it.
    pub(crate) loss_not_on_record: bool,
    pub(crate) flights: Slots<Flight>,
    pub(crate) commands: u32,
    pub(crate) heals: u32,
    /// Operations that were given up and are not over, on all legs.
    pub(crate) given_up: u32,
    /// With so many of them no more commands are taken, if that is of use.
    given_up_max: u32,
    pub(crate) ops: Slots<DriveTag>,
    pub(crate) locks: Locks,
    pub(crate) ready: VecDeque<u32>,
    /// Flights whose range may stay with a drive that hangs: looked at when no flight is ready.
    rejections: VecDeque<u32>,
    stuck: Vec<u32>,
    pub(crate) buffers: Buffers,
    pub(crate) intent: Intent,
    pub(crate) resync: Resync,
    /// Regions that may differ between legs in sync since a crash (all lanes; ours are taken out as
    /// they are made the same). None: no crash, or over.
    pub(crate) unclean: Option<Bitmap>,
    pub(crate) pace: Pace,
    pub(crate) last_command: Instant,
    pub(crate) started: bool,
    pub(crate) quiescing: bool,
    /// Nothing begins by itself: what lies on the legs is about to be read, and everything built anew from that.
    pub(crate) paused: bool,
    pub(crate) counters: Progress,
    pub(crate) hedging: Hedging,
    pub(crate) scrub: Option<Scrubbing>,
    pub(crate) judging: Judging,
    pub(crate) uncleared: Uncleared,
    /// Another head may be let in at its drives, and this one shut out.
    pub(crate) shared: bool,
}

impl Array {
    /// An array as `config` says. Panics if its parts contradict each other.
    pub fn new(config: ArrayConfig) -> Self {
        let geometry = config.geometry;
        geometry.check();
        assert!(config.membership.legs.len() <= PLACES_MAX, "an array has few legs");
        let mut legs = [LocalLeg {
            leg: None,
            lost: false,
            kept: false,
            missing_since: 0,
            in_flight: 0,
            given_up: 0,
            last_end: 0,
            errors: 0,
            errors_at: Instant(0),
            answered: Instant(0),
            silent: false,
            silent_since: Instant(0),
            try_at: Instant(0),
            latency: Latency::default(),
        }; PLACES_MAX];
        for (local, leg) in legs.iter_mut().zip(&config.membership.legs) {
            local.leg = *leg;
        }
        if geometry.redundant() {
            assert_eq!(config.dirty.len(), geometry.regions(), "a bitmap has a bit for each region");
        } else {
            let present = legs.iter().filter(|l| l.leg.is_some()).count();
            assert!(present <= 1, "an array without redundancy has one leg");
        }
        let place = (config.shard, &config.lanes);
        let intent = Intent::new(&geometry, place, &config.dirty, config.membership.epoch);
        let uncleared = Uncleared::new(
            &geometry,
            &config.uncleared,
            place,
            config.membership.epoch,
            Sets::of(&legs).in_sync,
        );
        let unclean = config.unclean && geometry.redundant() && !config.dirty.is_empty();
        let mut array = Self {
            uuid: config.uuid,
            geometry,
            shard: config.shard,
            lanes: config.lanes,
            legs,
            sets: Sets::of(&legs),
            epoch: config.membership.epoch,
            recorded: config.membership.epoch,
            loss_not_on_record: false,
            flights: Slots::with_capacity(FLIGHTS_MAX),
            commands: 0,
            heals: 0,
            given_up: 0,
            given_up_max: COMMANDS_MAX,
            ops: Slots::with_capacity(LEG_OPS_MAX * PLACES_MAX as u32),
            locks: Locks::new(FLIGHTS_MAX),
            ready: VecDeque::with_capacity(FLIGHTS_MAX as usize),
            rejections: VecDeque::with_capacity(FLIGHTS_MAX as usize),
            stuck: Vec::with_capacity(FLIGHTS_MAX as usize),
            buffers: Buffers::new(config.scratch, geometry.redundant()),
            resync: Resync::new(intent.locals()),
            intent,
            unclean: unclean.then_some(config.dirty),
            pace: Pace::default(),
            last_command: Instant(0),
            started: false,
            quiescing: false,
            paused: false,
            counters: Progress::default(),
            hedging: Hedging::new(),
            scrub: None,
            judging: Judging::default(),
            uncleared,
            shared: config.shared,
        };
        array.resync.crash_total = array.unclean_bytes();
        let rebuilding = array.rebuilding();
        if rebuilding != 0 {
            members(rebuilding).for_each(|leg| array.rewrite_blocks(leg, false));
            array.rewrite_map(rebuilding);
            array.begin_resync(rebuilding);
        }
        array
    }

    /// Where things lie.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    /// The shard that executes changes at byte `at`. Any shard may, where there is no redundancy and nothing is uncleared: then
    /// this is the shard of the instance itself.
    #[inline]
    pub fn owner(&self, at: u64) -> u16 {
        if self.geometry.redundant() {
            self.geometry.owner_of_region(self.geometry.region(at), &self.lanes)
        } else {
            self.uncleared_owner(at).unwrap_or(self.shard)
        }
    }
    /// The shard that has the lane of byte `at`, with redundancy or without.
    pub fn lane_of(&self, at: u64) -> u16 {
        self.geometry.owner_of_region(self.geometry.region(at), &self.lanes)
    }
    /// Whether a leg in sync is reached from here.
    pub fn reaches_leg(&self) -> bool {
        self.in_sync() != 0
    }
    /// Whether a leg that is not missing lies on this drive.
    pub fn uses(&self, drive: DriveId) -> bool {
        self.present().any(|leg| leg.drive == drive)
    }
    /// Whether a shard below this number has a lane.
    pub fn has_lanes_below(&self, shards: u16) -> bool {
        (0..shards).any(|shard| self.lanes.has(shard))
    }
    /// Whether this instance may read here. If not (the legs may differ since a crash, or pieces are uncleared) the owner does.
    #[inline]
    pub fn read_is_local(&self, at: u64, len: u64) -> bool {
        if self.unclean.is_none() && !self.uncleared.any() || len == 0 {
            return true;
        }
        let (first, last) = (self.geometry.region(at), self.geometry.region(at + len - 1));
        if !self.uncleared_is_local(first, last) {
            return false;
        }
        let Some(unclean) = &self.unclean else { return true };
        (first..=last).all(|region| !unclean.get(region) || self.owns(region))
    }
    /// Whether legs may differ at this byte since a crash, as far as its owner knows, for checkers. Of others' regions: false.
    pub fn is_unclean(&self, at: u64) -> bool {
        let region = self.geometry.region(at);
        self.owns(region) && self.unclean.as_ref().is_some_and(|unclean| unclean.get(region))
    }
    /// Shards from this number on are gone, and may have left their lanes' regions different on legs: reads there are no longer this
    /// instance's. True: they had some.
    pub fn is_bereft_of(&mut self, shards: u16) -> bool {
        if self.lanes.are_below(shards) || !self.geometry.redundant() {
            return false;
        }
        let regions = self.geometry.regions();
        let theirs = |region: &u32| self.lanes.of_region(*region) >= shards;
        let is_known = |region| self.unclean.as_ref().is_some_and(|unclean| unclean.get(region));
        if planted_if(Bug::ReadsBereft, || (0..regions).filter(theirs).any(|region| !is_known(region))) {
            return true;
        }
        let unclean = self.unclean.get_or_insert_with(|| Bitmap::new(regions));
        for region in (0..regions).filter(theirs) {
            let other = || (0..regions).find(theirs).is_some_and(|first| region % LANES != first % LANES);
            if !planted_if(Bug::FirstLaneUnclean, || other() && !unclean.get(region)) {
                unclean.set(region);
            }
        }
        true
    }
    pub(crate) fn owns(&self, region: u32) -> bool {
        self.geometry.owner_of_region(region, &self.lanes) == self.shard
    }

    /// A command. Ends in `ArrayIo::done`, possibly at once.
    pub fn on_command(&mut self, now: Instant, ticket: Ticket, command: ArrayCommand, io: &mut impl ArrayIo) {
        let ArrayCommand { kind, at, len, data, fua } = command;
        if kind == Kind::Flush {
            assert!(at == 0 && len == 0, "a flush has no range");
        } else {
            assert!(len > 0 && at < self.geometry.data_bytes, "a command without a place");
            assert!(len <= self.geometry.data_bytes - at, "a command beyond the end of the array");
            let cut = !self.geometry.redundant() || at + len <= self.geometry.region_end(at);
            assert!(cut, "a command crosses the end of its region");
        }
        if matches!(kind, Kind::Read | Kind::Write) {
            assert!(u64::from(data.len) == len && len <= u64::from(TRANSFER_MAX), "a command has its data");
        }
        assert!(self.commands < COMMANDS_MAX, "an array got more commands than it has room for");
        self.last_command = now;
        let change = !matches!(kind, Kind::Read | Kind::Flush);
        let redundant = self.geometry.redundant();
        if redundant && change {
            assert_eq!(self.owner(at), self.shard, "a change came to a shard that does not own its region");
        }
        let (mut clears, mut zeroes) = (false, false);
        if self.uncleared.any() && kind != Kind::Flush {
            match self.meet_uncleared(kind, at, len) {
                Meeting::Nothing => {}
                // A drive is asked whether this head is still let in there: if it was shut out, others may have written.
                Meeting::Zeroes if self.shared && !planted(Bug::ZeroesUnasked) => zeroes = kind == Kind::Read,
                Meeting::Zeroes => {
                    if kind == Kind::Read {
                        io.zeroes(ticket, data);
                    }
                    return io.done(ticket, Status::Good);
                }
                Meeting::ClearFirst => clears = true,
            }
        }
        let unequal = kind == Kind::Deallocate && !self.present().all(|leg| leg.deallocate_zeroes);
        // A leg that does not read zeroes after a deallocation makes all legs write zeroes, so that they stay equal.
        let kind = if unequal && !planted(Bug::DeallocateUnequal) { Kind::WriteZeroes } else { kind };
        if self.given_up > 0 && self.would_keep(now, len) {
            io.done(ticket, Status::NotReady);
            return;
        }
        let dirty =
            kind == Kind::Read && self.unclean.as_ref().is_some_and(|u| u.get(self.geometry.region(at)));
        if dirty {
            assert_eq!(
                self.owner(at),
                self.shard,
                "a read of a dirty region came to a shard that does not own it"
            );
        }
        let plan = match kind {
            Kind::Read if zeroes => Plan::Read,
            Kind::Read if dirty && !planted(Bug::CrashReadWithoutCopy) => Plan::Copy,
            Kind::Read => return self.read(now, ticket, at, data, io),
            Kind::Flush => Plan::Flush,
            Kind::Write | Kind::WriteZeroes | Kind::Deallocate => Plan::Change,
        };
        self.commands += 1;
        let mut flight = Flight::new(Job::Host(ticket), plan, kind, at, len);
        flight.data = data;
        flight.fua = fua;
        flight.came = now;
        flight.clears = clears;
        flight.zeroes = zeroes;
        let id = self.insert(flight);
        match plan {
            Plan::Flush => self.start_flush(now, id, io),
            Plan::Change if !redundant && !clears => self.start_legs(now, id, io),
            Plan::Change | Plan::Copy => self.queue(id),
            Plan::Read => self.start_read(now, id, io),
            Plan::Scrub => unreachable!("no host asks for a scrub"),
        }
        self.drain(now, io);
    }

    /// Another head may be let in at the drives, and this one shut out: no command is answered then that asks no drive. Zeroes of what was
    /// never written could be old news.
    pub fn on_shared(&mut self, shared: bool) {
        self.shared = shared;
    }

    /// Whether a hung drive would keep another command as well. A last leg that has answered nothing since something was
    /// given up there is tried with one short command at a time, after as long again as it has been silent.
    #[cold]
    fn would_keep(&self, now: Instant, len: u64) -> bool {
        if self.given_up >= self.given_up_max && self.keeps_what_it_gets() {
            return true;
        }
        let legs = || members(self.in_sync()).map(|leg| &self.legs[leg]);
        let silent = self.in_sync() != 0 && legs().all(|leg| leg.silent);
        let tries = || len <= TRY_BYTES && legs().all(|leg| leg.in_flight == 0 && now >= leg.try_at);
        silent && !tries() && !planted(Bug::SilentIsAsked)
    }
    fn keeps_what_it_gets(&self) -> bool {
        let given_up = |leg: usize| self.legs[leg].given_up;
        members(self.writable()).any(|leg| given_up(leg) >= COMMANDS_MAX)
            // A leg that hangs beside a good one goes out by itself.
            || self.given_up_max < COMMANDS_MAX && members(self.in_sync()).all(|leg| given_up(leg) > 0)
    }
    /// Memory is missed that drives keep: a leg that keeps some goes out, beside one in sync that keeps none. True if one did.
    pub fn put_out_hung(&mut self, now: Instant, io: &mut impl ArrayIo) -> bool {
        let hung = |leg: &usize| self.legs[*leg].given_up > 0;
        if members(self.in_sync()).all(|leg| hung(&leg)) {
            return false;
        }
        let out = members(self.writable()).filter(hung).fold(0, |legs, leg| legs | bit(leg));
        members(out).for_each(|leg| {
            self.lose(leg, DriveError::TimedOut, io);
        });
        self.drain(now, io);
        out != 0
    }
    /// Whether what drives keep is missed: then an array whose last legs all hang takes no more commands until they let go.
    pub fn spare_memory(&mut self, spare: bool) {
        self.given_up_max = if spare { 1 } else { COMMANDS_MAX };
    }

    /// The end of a drive operation. `TimedOut` means that it was given up and may still be in the
    /// kernel: then `on_drive_late` must follow when it is really over.
    pub fn on_drive_done(
        &mut self,
        now: Instant,
        tag: u32,
        result: Result<(), DriveError>,
        io: &mut impl ArrayIo,
    ) {
        if let Owner::Read(ticket) = self.ops[tag].owner {
            if result.is_ok() {
                return self.read_good(now, ticket, tag, io);
            }
            self.give_flight(tag);
        }
        let DriveTag { owner, leg, buffer, given_up, since, len, kind, share, .. } = self.ops[tag];
        assert!(!given_up, "an operation ended twice");
        self.legs[leg].in_flight -= 1;
        let late = result == Err(DriveError::TimedOut);
        if kind == DriveOpKind::Read && (late || result.is_ok()) {
            self.note_latency(now, leg, len, since, io);
        }
        if share && !late {
            self.hedging.give_back(len);
        }
        if late {
            self.ops[tag].given_up = true;
            self.legs[leg].given_up += 1;
            self.given_up += 1;
            if kind != DriveOpKind::Flush && self.legs[leg].answered < since {
                self.legs[leg].falls_silent(now);
            }
        } else {
            self.legs[leg].answers(now);
            self.ops.free(tag);
            if let Some(buffer) = buffer {
                self.buffers.release(buffer);
            }
        }
        let keeps = match owner {
            Owner::Flight(id) => self.flight_done(now, id, tag, leg, result, io),
            Owner::Loser => {
                if let Err(error) = result {
                    self.count_error(now, leg, error, io);
                }
                false
            }
            Owner::Block(block) => self.block_done(now, block, leg, result, io),
            Owner::Map(block) => self.map_done(now, block, leg, result, io),
            Owner::Clear => self.clear_flushed(now, leg, result, io),
            Owner::Sync => self.sync_flushed(now, leg, result, io),
            Owner::Read(_) => unreachable!("it has a flight now"),
            Owner::Nobody => unreachable!("only operations that were given up belong to nobody"),
        };
        if late && !keeps {
            self.ops[tag].owner = Owner::Nobody;
        }
        self.drain(now, io);
    }

    /// An operation that was reported as `TimedOut` is really over: the kernel holds nothing of it any
    /// more, and its tag may be used again.
    pub fn on_drive_late(&mut self, now: Instant, tag: u32, io: &mut impl ArrayIo) {
        let DriveTag { owner, leg, buffer, given_up, len, share, .. } = self.ops.remove(tag);
        assert!(given_up, "an operation was late that was never given up");
        self.legs[leg].answers(now);
        if share {
            self.hedging.give_back(len);
        }
        self.legs[leg].given_up -= 1;
        self.given_up -= 1;
        if let Some(buffer) = buffer {
            self.buffers.release(buffer);
        }
        match owner {
            Owner::Flight(id) => self.flight_late(now, id),
            Owner::Block(block) => self.block_late(now, block),
            Owner::Map(block) => self.map_late(block),
            Owner::Clear | Owner::Sync => unreachable!("a flush is not waited for once it was given up"),
            Owner::Read(_) => unreachable!("what failed has a flight"),
            Owner::Loser => unreachable!("what was given up has no owner, unless it may still land"),
            Owner::Nobody => {}
        }
        self.take_back(io);
        self.review(now, io);
        self.resync.poke = true;
        self.kick_blocks(now, io);
        self.drain(now, io);
    }

    /// The host takes a command back: if nothing of it is at a drive it ends in `Aborted` and never
    /// starts; else it runs on. Unknown tickets are over already.
    pub fn on_abort(&mut self, now: Instant, ticket: Ticket, io: &mut impl ArrayIo) {
        // One that was answered keeps its ticket while something of it is late, and the ticket is given out again.
        let is_it = |f: &Flight| f.job == Job::Host(ticket) && f.phase != Phase::AwaitingLate;
        let found = self.flights.iter().find(|(_, f)| is_it(f));
        let Some((id, flight)) = found else { return };
        if matches!(flight.phase, Phase::AwaitingLock | Phase::AwaitingIntent) && planted(Bug::AbortedStarts)
        {
            self.answer(id, Status::Aborted, io);
            // It goes on to its end, and nothing waits for it any more.
            self.flights[id].job = Job::Heal { leg: LEGS_MAX, rest: 0 };
            self.heals += 1;
            return;
        }
        if flight.clears
            && !flight.whole
            && !matches!(flight.phase, Phase::AwaitingLock | Phase::AwaitingIntent)
        {
            // Zeroes are on their way to its piece; its own data never start.
            self.flights[id].aborted = true;
            return;
        }
        match flight.phase {
            Phase::AwaitingLock => {}
            Phase::AwaitingIntent => self.leave_block(id),
            Phase::AwaitingSource
            | Phase::AwaitingScrub
            | Phase::AwaitingLegs
            | Phase::AwaitingCache
            | Phase::AwaitingRecord
            | Phase::AwaitingMap
            | Phase::AwaitingLate => return,
        }
        self.answer(id, Status::Aborted, io);
        self.retire(now, id);
        self.drain(now, io);
    }

    /// `next_deadline` was reached.
    pub fn on_timer(&mut self, now: Instant, io: &mut impl ArrayIo) {
        self.started = true;
        if self.paused && self.idle() {
            return;
        }
        self.judge_tick(now, io);
        self.hedge_tick(now, io);
        self.kick_blocks(now, io);
        if !self.paused {
            self.clear_tick(now, io);
        }
        self.resync_step(now, io);
        self.scrub_step(now, io);
        self.clear_step(now, io);
        self.drain(now, io);
    }
    /// When `on_timer` wants to be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.started {
            return Some(Instant(0));
        }
        if self.paused {
            return self.paused_deadline();
        }
        let work = [self.clear_deadline(), self.resync_deadline(), self.scrub_deadline()];
        let others = [self.hedge_deadline(), self.judge_deadline(), self.uncleared_deadline()];
        let deadlines = work.into_iter().chain(others);
        deadlines.flatten().min()
    }
    /// Reads that are under way may need another leg.
    #[cold]
    fn paused_deadline(&self) -> Option<Instant> {
        let reads = [self.hedge_deadline(), self.judge_deadline()];
        reads.into_iter().flatten().min().filter(|_| !self.idle())
    }
    /// Limits of the resync from now on.
    pub fn pace(&mut self, pace: Pace) {
        assert!(pace.floor > 0, "a resync without a floor may never end");
        self.pace = pace;
    }
    /// How far the work in the background is.
    pub fn progress(&self) -> Progress {
        let mut progress = self.counters;
        progress.hedges_sent = self.hedging.sent;
        progress.hedges_won = self.hedging.won;
        self.count_intent(&mut progress);
        self.count_resync(&mut progress);
        self.count_scrub(&mut progress);
        self.count_uncleared(&mut progress);
        progress
    }
    /// Nothing is under way: no command, no operation, nothing about to start by itself but timers.
    /// Operations that were given up do not count.
    pub fn idle(&self) -> bool {
        self.commands == 0
            && self.legs.iter().all(|leg| leg.in_flight == 0)
            && self.intent_idle()
            && self.uncleared.idle()
    }
    /// No command is here, and nothing waits for a drive. What waits for a decision about a leg may still do so.
    pub fn is_still(&self) -> bool {
        self.commands == 0 && self.legs.iter().all(|leg| leg.in_flight == 0)
    }
    /// Before a release: resync pauses and bits are cleared without delay. Commands must have ended.
    pub fn quiesce(&mut self, now: Instant, io: &mut impl ArrayIo) {
        self.quiescing = true;
        self.clear_tick(now, io);
        self.drain(now, io);
    }
    /// Before it is built anew: resync and scrub pause. Bits stay as they are.
    pub fn pause(&mut self) {
        self.paused = true;
    }
    /// Nothing begins in the background.
    pub(crate) fn rests(&self) -> bool {
        self.quiescing || self.paused
    }
    /// After `quiesce`: nothing is under way and every bit that may be cleared is.
    pub fn quiesced(&self) -> bool {
        self.idle() && !self.can_clear_more()
    }
    /// Takes `quiesce` and `pause` back: what was under way in the background goes on.
    pub fn resume(&mut self, now: Instant, io: &mut impl ArrayIo) {
        self.quiescing = false;
        self.paused = false;
        self.resync.poke = true;
        self.drain(now, io);
    }
    /// When the host's change came of which this operation is a part; None if it is of something else.
    pub fn change_came(&self, tag: u32) -> Option<Instant> {
        let Owner::Flight(id) = self.ops.get(tag)?.owner else { return None };
        let flight = &self.flights[id];
        let change = matches!((flight.job, flight.plan), (Job::Host(_), Plan::Change));
        change.then_some(flight.came)
    }
    /// Whether this operation's leg is not written any more: nothing has to wait for how it ends.
    pub fn is_on_lost_leg(&self, tag: u32) -> bool {
        self.ops.get(tag).is_some_and(|op| self.writable() & bit(op.leg) == 0)
    }
    /// An operation that has not ended in the kernel.
    #[inline]
    pub fn op(&self, tag: u32) -> OpView {
        view(&self.ops[tag])
    }
    /// All operations that have not ended in the kernel, by tag.
    pub fn ops(&self) -> impl Iterator<Item = (u32, OpView)> {
        self.ops.iter().map(|(tag, op)| (tag, view(op)))
    }
    /// Whether there is no operation in the kernel.
    pub fn has_no_ops(&self) -> bool {
        self.ops.is_empty()
    }
    /// Operations on a leg's drive that have not ended in the kernel, given-up ones included. A leg may
    /// come back only when this is 0 in every instance.
    pub fn ops_on(&self, leg: usize) -> u32 {
        self.ops.iter().filter(|(_, op)| op.leg == leg).count() as u32
    }

    // ---- what the machines share ----

    pub(crate) fn insert(&mut self, flight: Flight) -> u32 {
        self.flights.insert(flight).expect("there is a flight for each command and each of ours")
    }
    /// Puts a change or copy in line for its range.
    #[inline]
    pub(crate) fn queue(&mut self, id: u32) {
        let flight = &mut self.flights[id];
        flight.locked = true;
        let (at, len) = match (flight.clears, flight.job) {
            (true, Job::Host(_)) => self.piece_range(self.flights[id].at),
            _ => (flight.at, flight.len),
        };
        if self.locks.acquire(id, at, len) {
            self.ready.push_back(id);
        } else if self.locks.is_stuck(id) {
            self.rejections.push_back(id);
        }
    }
    /// The range of this flight is not free before a drive that hangs lets go of it: host commands that wait for it are
    /// completed with a retry status.
    #[cold]
    pub(crate) fn stick(&mut self, id: u32) {
        if planted(Bug::WaitsForHung) {
            return;
        }
        let mut waits = core::mem::take(&mut self.stuck);
        self.locks.stick(id, &mut waits);
        self.rejections.extend(&waits);
        self.stuck = waits;
    }
    /// Those that would wait for a drive that hangs: nothing of them has started.
    #[cold]
    fn reject_stuck(&mut self, now: Instant, io: &mut impl ArrayIo) {
        // In their order: who waits for one of them alone goes on.
        while let Some(id) = self.rejections.pop_front() {
            let Some(flight) = self.flights.get(id) else { continue };
            let waits = matches!(flight.job, Job::Host(_)) && flight.phase == Phase::AwaitingLock;
            if waits && !self.locks.held(id) {
                self.over(now, id, Status::NotReady, io);
            }
        }
    }
    /// Runs every flight that has its range, until none is left.
    #[inline]
    pub(crate) fn drain(&mut self, now: Instant, io: &mut impl ArrayIo) {
        loop {
            while let Some(id) = self.ready.pop_front() {
                self.enter_intent(now, id, io);
            }
            if !self.rejections.is_empty() {
                self.reject_stuck(now, io);
                continue;
            }
            if !self.resync.poke {
                return;
            }
            self.resync_step(now, io);
            self.scrub_step(now, io);
            self.clear_step(now, io);
        }
    }
    /// The local of some leg has changed.
    pub(crate) fn legs_changed(&mut self) {
        self.sets = Sets::of(&self.legs);
    }
    /// Legs that are written: in sync or rebuilding, and not lost here.
    pub(crate) fn writable(&self) -> Legs {
        self.sets.writable
    }
    /// Legs that are read.
    pub(crate) fn in_sync(&self) -> Legs {
        self.sets.in_sync
    }
    /// Legs that are written and not yet read.
    pub(crate) fn rebuilding(&self) -> Legs {
        self.sets.rebuilding
    }
    /// Members with a volatile cache, lost here or not.
    pub(crate) fn volatile(&self) -> Legs {
        self.sets.volatile
    }
    fn present(&self) -> impl Iterator<Item = &Leg> {
        self.legs.iter().filter_map(|s| s.leg.as_ref()).filter(|leg| leg.state != LegState::Missing)
    }

    /// Starts an operation on `leg`; `at` is a byte of the drive.
    #[allow(clippy::too_many_arguments)] // One place that builds a DriveOp; each argument is a field.
    #[inline]
    pub(crate) fn submit(
        &mut self,
        now: Instant,
        owner: Owner,
        leg: usize,
        kind: DriveOpKind,
        at: u64,
        len: u64,
        data: Slice,
        fua: bool,
        buffer: Option<BufferId>,
        io: &mut impl ArrayIo,
    ) -> u32 {
        let drive = self.legs[leg].leg.expect("operations go to members").drive;
        assert!(self.writable() & bit(leg) != 0, "an operation for a leg that gets none");
        let tag = || DriveTag::new(now, owner, leg, drive, kind, at, len, data, buffer);
        let tag = self.ops.insert_with(tag).expect("there is a tag for each operation of each flight");
        if let Some(buffer) = buffer {
            self.buffers.hold(buffer);
        }
        self.legs[leg].in_flight += 1;
        io.drive(DriveOp { drive, kind, at, len, data, fua, token: Token(u64::from(tag)) });
        tag
    }
    /// The leg failed an operation. True: it is out of use now (or was before). False: it is the last
    /// one in sync, which is never given up.
    pub(crate) fn lose(&mut self, leg: usize, error: DriveError, io: &mut impl ArrayIo) -> bool {
        if self.writable() & bit(leg) == 0 {
            return true;
        }
        if self.in_sync() == bit(leg) && !planted(Bug::LastLegLost) {
            return false;
        }
        self.legs[leg].lost = true;
        self.legs_changed();
        io.note(Note::LegFailed { leg, epoch: self.epoch, error });
        true
    }
    /// A leg that is being rebuilt may hold what the `last` one in sync failed to take: it is out of use now.
    pub(crate) fn give_up_ahead(
        &mut self,
        leg: usize,
        last: usize,
        error: Option<DriveError>,
        io: &mut impl ArrayIo,
    ) {
        if self.writable() & bit(leg) == 0 {
            return;
        }
        self.legs[leg].lost = true;
        self.legs_changed();
        io.note(Note::LegAhead { leg, epoch: self.epoch, last, error });
    }
    /// Whether every leg that is out of use here is so on record.
    pub(crate) fn losses_are_on_record(&self) -> bool {
        self.sets.lost == 0 && self.sets.gone_since <= self.recorded
    }
    /// Notes on the flight that `leg` does not have it, and so what must be on record before it is
    /// answered.
    pub(crate) fn miss(&mut self, id: u32, leg: usize) {
        let local = &self.legs[leg];
        let gone = local.leg.is_none_or(|l| l.state == LegState::Missing);
        let (lost, since, recorded) = (local.lost, local.missing_since, self.recorded);
        let (kept, epoch) = (local.kept, self.epoch);
        let flight = &mut self.flights[id];
        if lost && !gone && kept && !planted(Bug::KeptIsAwaited) {
            flight.lacks_kept(leg, epoch);
        } else if lost && !gone {
            flight.missed |= bit(leg);
        } else if gone && since > recorded {
            flight.needs_epoch = flight.needs_epoch.max(since);
        }
    }
    /// Notes the legs that a flight, which starts now, does not go to.
    #[inline]
    pub(crate) fn miss_absent(&mut self, id: u32) {
        let Sets { lost, kept, gone_since, .. } = self.sets;
        let flight = &mut self.flights[id];
        flight.missed |= lost & !kept;
        if gone_since > self.recorded {
            flight.needs_epoch = flight.needs_epoch.max(gone_since);
        }
    }
    /// Completes the host command of this flight, unless it is completed already.
    #[inline]
    pub(crate) fn answer(&mut self, id: u32, status: Status, io: &mut impl ArrayIo) {
        let Flight { phase, job, .. } = self.flights[id];
        assert!(phase != Phase::AwaitingLate, "a command was answered twice");
        match job {
            Job::Host(ticket) => {
                self.commands -= 1;
                io.done(ticket, status);
            }
            Job::Piece | Job::Heal { .. } | Job::Scrub | Job::Clear | Job::Edge => {}
        }
    }
    /// Frees the flight's range, and its slot.
    #[inline]
    pub(crate) fn retire(&mut self, now: Instant, id: u32) {
        let Flight { locked, watched, .. } = self.flights[id];
        if locked {
            self.unlock(now, id);
        }
        if watched {
            self.unwatch(id);
        }
        let Flight { pending, late, next, buffer, .. } = self.flights[id];
        assert!(pending == 0 && late == 0 && next == NONE, "a flight ended in the air");
        self.flights.free(id);
        if let Some(buffer) = buffer {
            self.buffers.release(buffer);
        }
    }
    /// Frees the flight's range, if it has one, for those behind it.
    #[inline]
    pub(crate) fn unlock(&mut self, now: Instant, id: u32) {
        let flight = &mut self.flights[id];
        if !core::mem::take(&mut flight.locked) {
            return;
        }
        if let Some(local) = flight.entered {
            self.intent.leave(now, local);
        }
        let ready = &mut self.ready;
        self.locks.release(id, |granted| ready.push_back(granted));
    }

    /// Panics if something that must always be true is not.
    pub fn check_invariants(&self) {
        let hosts = self
            .flights
            .iter()
            .filter(|(_, f)| matches!(f.job, Job::Host(_)) && f.phase != Phase::AwaitingLate);
        let reads = self.ops.iter().filter(|(_, op)| matches!(op.owner, Owner::Read(_)));
        assert_eq!((hosts.count() + reads.count()) as u32, self.commands, "commands are counted");
        assert_eq!(self.sets, Sets::of(&self.legs), "the sets of legs are up to date");
        for (leg, local) in self.legs.iter().enumerate() {
            let live = self.ops.iter().filter(|(_, op)| op.leg == leg && !op.given_up).count();
            assert_eq!(live as u32, local.in_flight, "operations are counted");
        }
        let given_up: u32 = self.legs.iter().map(|leg| leg.given_up).sum();
        assert_eq!(given_up, self.given_up, "operations that were given up are counted");
        assert!(self.recorded <= self.epoch, "what is on record was decided before");
        for (id, flight) in self.flights.iter() {
            let live =
                self.ops.iter().filter(|(_, op)| op.owner == Owner::Flight(id) && !op.given_up).count();
            assert_eq!(live, usize::from(flight.pending), "a flight knows its operations");
            let late = self.ops.iter().filter(|(_, op)| op.owner == Owner::Flight(id) && op.given_up).count();
            assert_eq!(late, usize::from(flight.late), "a flight knows its late operations");
            let changing = matches!(flight.plan, Plan::Change | Plan::Copy) && self.geometry.redundant();
            let at_drives = matches!(flight.phase, Phase::AwaitingSource | Phase::AwaitingLegs);
            if changing && at_drives {
                assert!(flight.locked && self.locks.held(id), "who changes blocks holds them");
            }
            assert!(
                flight.phase != Phase::AwaitingLate || flight.late > 0,
                "late flights wait for something"
            );
        }
        if self.flights.is_empty() {
            assert!(self.locks.is_empty(), "a lock without a flight");
            assert!(self.ready.is_empty());
        }
        if self.flights.is_empty() && self.ops.is_empty() && self.intent_idle() {
            assert!(self.buffers.all_free(), "a buffer leaked");
            assert!(self.hedging.is_empty(), "a share of the pool for hedges leaked");
        }
        self.check_intent();
        self.check_uncleared();
    }
}
