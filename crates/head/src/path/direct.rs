//! Direct: the flow driven without a front end, from the room that the caller chooses. A benchmark finds out with it
//! what each room costs, and a test reaches a drive by the same way as a host.
//!
//! ```text
//! Door::Volume ─▶ volume ─▶ pool ─▶ array ─▶ drive
//! Door::Pool ────────────▶ pool ─▶ array ─▶ drive
//! Door::Array ─────────────────▶ array ─▶ drive
//! ```
//!
//! A command that comes in further down goes the rest of the way as every other does, with the same limits. Nothing here
//! checks who sends it: none of this can be reached from a network.

use crate::mail::Mail;
use crate::path::door::{Done, Door};
use crate::path::request::{Phase, Request};
use crate::path::stages::UNTIMED;
use crate::shard::{Core, NO_LINK, Shard};
use array::LegState;
use base::{Command, DriveId, Effects, Instant, Memory, Slice, Status, Tag, VolumeId};

/// Where an array keeps its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The drives of its legs in sync.
    pub drives: Vec<DriveId>,
    /// First byte of the data on each of them.
    pub at: u64,
    /// Length of the data, bytes.
    pub bytes: u64,
}

impl<M: Memory> Shard<M> {
    /// Makes room for so many commands at a time. False: there is none.
    pub fn direct_admit(&mut self, commands: u32) -> bool {
        self.core.admit(commands)
    }
    /// Gives that room back.
    pub fn direct_dismiss(&mut self, commands: u32) {
        self.core.promised -= commands;
    }
    /// A page-aligned buffer of `len` bytes, which is the caller's until `direct_release`. None: no memory is left.
    pub fn direct_buffer(&mut self, len: u32) -> Option<Slice> {
        self.core.buffers.take_kept(len)
    }
    /// Gives a buffer back.
    pub fn direct_release(&mut self, data: Slice) {
        self.core.buffers.release(data);
    }
    /// Carries out `command` from `door` on, with all of a buffer of `direct_buffer`. It starts now, or with the
    /// end of the turn, and ends in `direct_done`. At most as many may be under way as were admitted.
    ///
    /// Ends in `OutOfRange` beyond the size of the volume, whatever the door.
    pub fn direct_submit(
        &mut self,
        now: Instant,
        (tag, door): (Tag, Door),
        command: Command,
        data: Slice,
        fx: &mut Effects<Mail>,
    ) {
        // Its memory is the caller's, and counts for no host.
        let mut request = Request::new(NO_LINK, tag, 0, now);
        request.door = door;
        request.phase = Phase::Turn;
        request.buffer = Some(data);
        request.command = command;
        request.data = data;
        let inserted = self.core.requests.insert(request);
        let index = inserted.expect("only as many commands are under way as were admitted");
        if self.core.timing.is_due() {
            self.core.time(index, None, now, now);
        }
        self.core.arrive(now, index, fx);
    }
    /// The next command that has ended. To be asked after `end_of_turn`.
    pub fn direct_done(&mut self) -> Option<Done> {
        self.core.direct.pop_front()
    }
    /// Where the arrays below a volume keep their data, in the pool's order: what a bare load would work on. Empty
    /// if there is no such volume.
    pub fn direct_places(&self, volume: VolumeId) -> Vec<Place> {
        let layout = &self.core.layout;
        let volume = layout.volumes.iter().find(|v| v.id == volume);
        let pool = volume.and_then(|v| layout.pools.iter().find(|p| p.id == v.pool));
        let arrays = pool.iter().flat_map(|p| &p.arrays);
        let arrays = arrays.filter_map(|id| layout.arrays.iter().find(|a| a.id == *id));
        arrays
            .map(|a| Place {
                drives: a.membership.legs.iter().flatten().filter_map(in_sync).collect(),
                at: a.geometry.data_at,
                bytes: a.geometry.data_bytes,
            })
            .collect()
    }
    /// The volumes that it serves, with their blocks' size and number.
    pub fn direct_volumes(&self) -> impl Iterator<Item = (VolumeId, u32, u64)> {
        self.core.layout.volumes.iter().map(|v| (v.id, v.block_bytes, v.blocks))
    }
}

fn in_sync(leg: &array::Leg) -> Option<DriveId> {
    match leg.state {
        LegState::InSync => Some(leg.drive),
        LegState::Rebuilding | LegState::Missing => None,
    }
}

impl<M: Memory> Core<M> {
    /// A command without a connection has ended.
    pub fn complete_direct(&mut self, now: Instant, index: u32) {
        let Request { tag, status, data, timed, .. } = self.requests[index];
        let second = self.requests[index].second();
        if timed != UNTIMED {
            self.timing.end(timed, (status == Status::Good).then_some(now));
        }
        self.requests.free(index);
        if let Some(second) = second {
            self.buffers.release(second);
        }
        self.direct.push_back(Done { tag, status, data });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{ArrayId, ArrayLayout, Layout, PoolId, PoolLayout, VolumeLayout};
    use crate::mail::ShardMail;
    use crate::{Deadlines, ShardConfig};
    use array::{Bitmap, Geometry, Leg, Membership};
    use base::memory::PlainMemory;
    use base::view::View;
    use base::{Address, DriveOp, DriveOpKind, Effect, Event, Machine, Op, Uuid};
    use std::sync::Arc;

    const VOLUME: VolumeId = VolumeId(1);
    const CHUNK: u32 = 64 << 10;
    const START: u64 = 1 << 20;
    const BYTES: u64 = 16 << 20;
    /// Where the volume begins in its pool, in granules.
    const FIRST: u64 = 3;
    const NOW: Instant = Instant(1);

    /// Two mirrors of two striped, and a volume that does not begin at the pool's beginning.
    fn shard() -> Shard<PlainMemory> {
        let mut shard = Shard::new(ShardConfig {
            id: 0,
            shards: 1,
            memory: PlainMemory::new(START, BYTES as usize),
            staging: PlainMemory::new(1 << 32, 4096),
            seed: 1,
            deadlines: Deadlines::default(),
            extents: vec![(START, BYTES)],
            connections_max: 1,
            credits: crate::CREDITS,
            turn_pdus: crate::TURN_PDUS,
            flights: crate::FLIGHTS,
        });
        let geometry = Geometry::plan(true, 64 << 10, 1 << 34, u64::from(CHUNK)).expect("large enough");
        let leg = |drive: u16| Leg {
            drive: DriveId(drive),
            state: LegState::InSync,
            volatile_cache: false,
            deallocate_zeroes: true,
            map_at: 1 << 40,
        };
        let array = |i: u16| ArrayLayout {
            id: ArrayId(i),
            uuid: Uuid([i as u8 + 1; 16]),
            geometry,
            membership: Membership { epoch: 1, legs: vec![Some(leg(2 * i)), Some(leg(2 * i + 1))] },
            lanes: array::Lanes::dealt(1),
            map: 1,
            dirty: Arc::new(Bitmap::new(geometry.regions())),
            unclean: false,
            uncleared: Default::default(),
            shared: false,
            lacks_path: false,
        };
        let space = pool::ArraySpace { bytes: geometry.data_bytes, weight: 1 };
        let blocks = 4 * volume::GRANULE_BYTES / 4096;
        let layout = Layout {
            generation: 1,
            pools: vec![PoolLayout {
                id: PoolId(1),
                uuid: Uuid([9; 16]),
                map: Arc::new(pool::StripeMap::new(CHUNK, &[space, space]).expect("a map")),
                arrays: vec![ArrayId(0), ArrayId(1)],
            }],
            arrays: vec![array(0), array(1)],
            volumes: vec![VolumeLayout {
                id: VOLUME,
                pool: PoolId(1),
                block_bytes: 4096,
                blocks,
                map: Arc::new(volume::Map::new(&[volume::Run { first: FIRST, count: 4 }]).expect("a map")),
                ready: true,
                home: 0,
                caps: volume::Caps::default(),
                weight: volume::WEIGHT,
            }],
            waits: false,
        };
        let mail = ShardMail::Room { number: 1, room: crate::mail::Room { mirrors: 2, singles: 0 } };
        shard.on_event(NOW, Event::Mail { from: Address::Steward, mail: mail.into() }, &mut vec![]);
        let mail = ShardMail::Configure { view: Arc::new(View::default()), layout: Arc::new(layout) };
        shard.on_event(NOW, Event::Mail { from: Address::Steward, mail: mail.into() }, &mut vec![]);
        shard.end_of_turn(NOW, &mut vec![]);
        shard
    }

    /// Runs a command to its end with drives that answer at once; what was asked of them, and how it ended.
    fn run(shard: &mut Shard<PlainMemory>, door: Door, op: Op, at: u64, blocks: u64) -> (Vec<DriveOp>, Done) {
        let data = shard.direct_buffer(blocks as u32 * 4096).expect("memory");
        let command = Command { volume: VOLUME, op, at, blocks, fua: false };
        let (mut asked, mut fx): (_, Effects<Mail>) = (vec![], vec![]);
        shard.direct_submit(NOW, (Tag(7), door), command, data, &mut fx);
        loop {
            shard.end_of_turn(NOW, &mut fx);
            let ops: Vec<DriveOp> = fx
                .drain(..)
                .filter_map(|e| match e {
                    Effect::Drive(op) => Some(op),
                    _ => None,
                })
                .collect();
            for op in &ops {
                shard.on_event(NOW, Event::DriveDone { token: op.token, result: Ok(()) }, &mut fx);
            }
            asked.extend(ops);
            if let Some(done) = shard.direct_done() {
                shard.direct_release(done.data);
                assert!(shard.idle() && shard.direct_done().is_none());
                return (asked, done);
            }
        }
    }

    fn places(ops: &[DriveOp]) -> Vec<(DriveId, u64, u64)> {
        let data = ops.iter().filter(|op| op.len > 0 && op.kind != DriveOpKind::Flush);
        let mut places: Vec<_> = data.map(|op| (op.drive, op.at, op.len)).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn the_same_bytes_are_reached_through_every_door() {
        let mut shard = shard();
        assert!(shard.direct_admit(1));
        let (chunk, data_at) = (u64::from(CHUNK), shard.direct_places(VOLUME)[0].at);
        // Two arrays of equal weight: chunks lie on them in turn.
        let expected = |pool_at: u64| {
            let (row, column) = (pool_at / chunk / 2, (pool_at / chunk % 2) as u16);
            let at = data_at + row * chunk + pool_at % chunk;
            [2 * column, 2 * column + 1].map(|drive| (DriveId(drive), at, 4096))
        };
        // Beside the data there may be a bit of the bitmap to be written.
        let reached = |asked: &[DriveOp], legs: [(DriveId, u64, u64); 2]| {
            let places = places(asked);
            assert!(legs.iter().all(|leg| places.contains(leg)), "{legs:?}: {places:?}");
        };
        for at in [0, 5, chunk / 4096, 3 * chunk / 4096 + 2] {
            let (asked, done) = run(&mut shard, Door::Volume, Op::Write, at, 1);
            assert_eq!((done.tag, done.status), (Tag(7), Status::Good));
            reached(&asked, expected(FIRST * volume::GRANULE_BYTES + at * 4096));
            reached(&run(&mut shard, Door::Pool, Op::Write, at, 1).0, expected(at * 4096));
            for array in 0..2 {
                let legs =
                    [2 * array, 2 * array + 1].map(|drive| (DriveId(drive), data_at + at * 4096, 4096));
                reached(&run(&mut shard, Door::Array(array), Op::Write, at, 1).0, legs);
            }
        }
    }

    #[test]
    fn a_timed_write_shows_what_its_bitmap_and_its_slowest_leg_took() {
        let mut shard = shard();
        assert!(shard.direct_admit(1));
        let data_at = shard.direct_places(VOLUME)[0].at;
        let us = base::Duration::from_micros;
        let mut write = |from: Instant| {
            let data = shard.direct_buffer(4096).expect("memory");
            let command = Command { volume: VOLUME, op: Op::Write, at: 0, blocks: 1, fua: false };
            let (mut now, mut fx, mut due) = (from, Effects::<Mail>::new(), vec![]);
            shard.direct_submit(from, (Tag(7), Door::Volume), command, data, &mut fx);
            loop {
                shard.end_of_turn(now, &mut fx);
                for effect in fx.drain(..) {
                    let Effect::Drive(op) = effect else { continue };
                    let took =
                        if op.at < data_at { us(50) } else { us(100 + 30 * u64::from(op.drive.0 % 2)) };
                    due.push((now + took, op.token));
                }
                if let Some(done) = shard.direct_done() {
                    shard.direct_release(done.data);
                    break now;
                }
                due.sort_unstable_by_key(|(at, token)| (*at, token.0));
                let (at, token) = due.remove(0);
                now = at;
                shard.on_event(now, Event::DriveDone { token, result: Ok(()) }, &mut fx);
            }
        };
        let mut now = NOW;
        for _ in 0..1000 {
            now = write(now);
        }
        let (timed, ops) = shard.core_mut().timing.take();
        // The first one is always timed, and it alone met a cold bitmap.
        assert_eq!((timed[0].volume, timed[0].write), (VOLUME, true));
        assert_eq!(timed[0].ns, [0, 0, 50_000, 130_000, 0]);
        assert!(timed[1..].iter().all(|t| t.ns == [0, 0, 0, 130_000, 0]), "{timed:?}");
        assert!((8..=30).contains(&timed.len()), "one in {}: {}", crate::path::stages::ONE_IN, timed.len());
        // Both legs of the first array, each with its own time.
        assert!((16..=60).contains(&ops.len()), "{}", ops.len());
        let is_own = |op: &crate::path::stages::TimedOp| match op.drive.0 {
            0 => op.ns == 100_000 || op.ns == 50_000,
            _ => op.ns == 130_000 || op.ns == 50_000,
        };
        assert!(ops.iter().all(is_own), "{ops:?}");
        assert!(
            [0, 1].iter().all(|leg| ops.iter().any(|op| op.drive.0 == *leg)),
            "a step of two meets one leg"
        );
        assert!(shard.idle(), "no stamp is left behind");
        assert_eq!(shard.core_mut().timing.take(), (vec![], vec![]), "what was taken is taken once");
    }

    #[test]
    fn what_a_drive_keeps_of_an_array_that_is_gone_ends_without_it() {
        let mut shard = shard();
        assert!(shard.direct_admit(1));
        let data = shard.direct_buffer(4096).expect("memory");
        let command = Command { volume: VOLUME, op: Op::Read, at: 0, blocks: 1, fua: false };
        let (mut hung, mut done, mut now, mut fx) = (None, None, NOW, Effects::<Mail>::new());
        shard.direct_submit(NOW, (Tag(7), Door::Volume), command, data, &mut fx);
        // The first drive asked does not answer before its deadline, all others do.
        while now < NOW + base::Duration::from_secs(3) {
            shard.end_of_turn(now, &mut fx);
            for effect in core::mem::take(&mut fx) {
                let Effect::Drive(op) = effect else { continue };
                match hung {
                    None => hung = Some(op.token),
                    Some(_) => {
                        let event = Event::DriveDone { token: op.token, result: Ok(()) };
                        shard.on_event(now, event, &mut fx);
                    }
                }
            }
            done = done.or(shard.direct_done());
            now = now + base::Duration::from_millis(20);
            shard.on_timer(now, &mut fx);
        }
        assert_eq!(done.expect("another leg has read it").status, Status::Good);
        let layout = Layout { generation: 2, ..Layout::default() };
        let mail = ShardMail::Configure { view: Arc::new(View::default()), layout: Arc::new(layout) };
        shard.on_event(now, Event::Mail { from: Address::Steward, mail: mail.into() }, &mut fx);
        shard.end_of_turn(now, &mut fx);
        assert!(shard.arrays().next().is_none() && !shard.idle(), "the kernel has an operation of it");
        let used = shard.buffers_used();
        let event = Event::DriveDone { token: hung.expect("a drive was asked"), result: Ok(()) };
        shard.on_event(now, event, &mut fx);
        assert!(shard.idle() && shard.buffers_used() < used, "its memory is free");
    }

    /// A loss that is on record nowhere: what a read finds meanwhile may be taken back by a crash.
    #[test]
    fn a_read_that_was_under_way_when_its_volume_became_unready_shows_nothing() {
        for (op, ended) in [(Op::Read, Status::NotReady), (Op::Write, Status::Good)] {
            let mut shard = shard();
            assert!(shard.direct_admit(2));
            let data = shard.direct_buffer(4096).expect("memory");
            let command = Command { volume: VOLUME, op, at: 0, blocks: 1, fua: false };
            let mut fx = Effects::<Mail>::new();
            shard.direct_submit(NOW, (Tag(7), Door::Volume), command, data, &mut fx);
            shard.end_of_turn(NOW, &mut fx);
            let mut layout = (*shard.core.layout).clone();
            layout.generation = 2;
            layout.volumes[0].ready = false;
            let mail = ShardMail::Configure { view: Arc::new(View::default()), layout: Arc::new(layout) };
            shard.on_event(NOW, Event::Mail { from: Address::Steward, mail: mail.into() }, &mut fx);
            let mut done = None;
            while done.is_none() {
                for effect in core::mem::take(&mut fx) {
                    if let Effect::Drive(op) = effect {
                        shard.on_event(NOW, Event::DriveDone { token: op.token, result: Ok(()) }, &mut fx);
                    }
                }
                shard.end_of_turn(NOW, &mut fx);
                done = shard.direct_done();
            }
            assert_eq!(done.map(|d| d.status), Some(ended), "{op:?}");
        }
    }

    #[test]
    fn what_is_read_after_the_last_look_at_the_voters_waits_for_the_next_one_or_is_withheld() {
        let second = base::Duration::from_secs(1);
        for (op, looks, ended) in [
            (Op::Read, true, (Status::Good, 2)),
            (Op::Read, false, (Status::Withheld, 4)),
            // What is changed counts once it is on the legs, and nobody learns from that what they held.
            (Op::Write, false, (Status::Good, 2)),
        ] {
            let mut shard = shard();
            assert!(shard.direct_admit(1));
            let (mut now, mut fx) = (NOW, Effects::<Mail>::new());
            let sight = |until: Instant| {
                let mail = ShardMail::Sight { until: Some(until) };
                Event::Mail { from: Address::Steward, mail: mail.into() }
            };
            shard.on_event(now, sight(NOW + second), &mut fx);
            let data = shard.direct_buffer(4096).expect("memory");
            let command = Command { volume: VOLUME, op, at: 0, blocks: 1, fua: false };
            shard.direct_submit(now, (Tag(7), Door::Volume), command, data, &mut fx);
            shard.end_of_turn(now, &mut fx);
            // The drives answer a second behind the look's time; the next look is over half a second later.
            now = now + 2 * second;
            let mut done = None;
            for half in 0..10 {
                while let Some(at) = fx.iter().position(|e| matches!(e, Effect::Drive(_))) {
                    let Effect::Drive(op) = fx.remove(at) else { unreachable!("it is one") };
                    shard.on_event(now, Event::DriveDone { token: op.token, result: Ok(()) }, &mut fx);
                    shard.end_of_turn(now, &mut fx);
                }
                assert!(op != Op::Read || half > 0 || shard.direct_done().is_none(), "it waits");
                if half == 1 && looks {
                    shard.on_event(now, sight(now + second), &mut fx);
                }
                if shard.next_deadline().is_some_and(|at| at <= now) {
                    shard.on_timer(now, &mut fx);
                }
                shard.end_of_turn(now, &mut fx);
                if let Some(end) = shard.direct_done() {
                    done = Some((end.status, now.since(NOW).as_secs()));
                    break;
                }
                now = now + second / 2;
            }
            assert_eq!(done, Some(ended), "{op:?}, {looks}");
        }
    }

    #[test]
    fn a_read_is_cut_at_chunks_by_the_pool_and_not_by_the_array() {
        let mut shard = shard();
        assert!(shard.direct_admit(1));
        let blocks = 2 * u64::from(CHUNK) / 4096;
        assert_eq!(places(&run(&mut shard, Door::Pool, Op::Read, 0, blocks).0).len(), 2);
        assert_eq!(places(&run(&mut shard, Door::Array(1), Op::Read, 0, blocks).0).len(), 1);
    }

    #[test]
    fn what_is_beyond_the_volume_is_refused_at_every_door() {
        let mut shard = shard();
        assert!(shard.direct_admit(1));
        let (_, _, blocks) = shard.direct_volumes().next().expect("a volume");
        for door in [Door::Volume, Door::Pool, Door::Array(0)] {
            let (asked, done) = run(&mut shard, door, Op::Read, blocks, 1);
            assert_eq!((asked.len(), done.status), (0, Status::OutOfRange));
        }
    }
}
