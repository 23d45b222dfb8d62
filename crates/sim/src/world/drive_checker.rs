//! The drive checker: it checks every operation that a head asks for, and every completion, against the promises. So a
//! broken promise is found where it is broken, not only when a read happens to show it.
//!
//! | promise | rule |
//! | --- | --- |
//! | 2 | writes that overlap are never at one leg at the same time |
//! | 2, 5 | legs that are in sync on record hold the same, from the record on and wherever nothing moves |
//! | 3 | when a host is let in again, none of the writes that it lost with its session is at a drive |
//! | 3 | a write that was answered never starts at a drive; nor one whose host has no connection left at the head |
//! | 4 | data go to a leg in sync only where the region's bit is durable on it |
//! | 4 | a bit goes only when no leg is absent, and every leg has the region, durably |
//! | 5 | when a write is answered, legs that are in sync on record hold the same in its blocks |
//! | 5 | when a write is answered that a leg lacks, each leg in sync has the record that puts that leg out |
//! | 7 | memory that the kernel holds is neither read into twice nor changed |
//! | 7 | a leg that holds a change for longer than its deadline is put out, unless it is the last |
//!
//! It knows what is on record from the records written in this life of the head, and where things lie from the labels.
//! It reads from the drives themselves what they hold, and what they hold durably.
//!
//! Where two heads share drives, what is on record is what the one says that leads (`heads`). An operation of either comes to the checker as
//! it arrives at the drive: what the drive refuses was in vain. From the moment at which its leader writes a head out until a drive is fenced,
//! what comes of it is *late*: it proves nothing, and no rule holds for it but that it meets nothing of others. Behind the fence, that
//! it comes at all breaks a promise.

use super::World;
use super::actor::{Actor, ActorId};
use super::drives::Opened;
use super::heads::Heads;
use crate::disk::Disk;
use crate::registrants::Nexus;
use crate::volume::{Answer, mark_of};
use array::Geometry;
use array::format::{LABEL_AT, LegState, MEMBERSHIP_AT, MembershipRecord, RECORD_BYTES, label_copy_at};
use array::format::{Label, feature};
use base::{Address, DriveError, DriveOp, DriveOpKind, Duration, FenceKind, Instant, Slice, Uuid};
use core::ops::Range;
use head::Deadlines;
use head::steward::Leads;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A change that a drive holds for longer than this was given up: the head's deadline, its next look, and the
/// time in which the loss is decided.
const GIVEN_UP: Duration = Duration::from_millis(4800);
/// The same of two heads, by a clock that is a fifth too slow, and with letters of each to the other.
const GIVEN_UP_BY_TWO: Duration = Duration::from_secs(10);
/// A change that a drive holds for less than this was not given up.
const NOT_GIVEN_UP: Duration = Duration::from_millis(900);
/// The same by a clock that is a fifth too fast.
const NOT_GIVEN_UP_BY_TWO: Duration = Duration::from_millis(720);
/// What a change may take by such a clock.
const DEADLINE_BY_TWO: Duration = Duration::from_millis(2800);
/// A failed operation may make a leg differ until its loss is on record, which takes less than this.
const SETTLED: Duration = Duration::from_secs(2);
/// The same where a head waits for the other one before, or puts it out.
const SETTLED_BY_TWO: Duration = Duration::from_secs(10);
/// What was asked for longer ago than that is over, and its failure settled.
const RECENT: Duration = Duration::from_secs(20);
/// By then the head knows that its state directory is read-only, and has left the witness behind.
const FREEZE_KNOWN: Duration = Duration::from_secs(3);
/// No volume of a world has so many blocks: a stamp that names one rotted, wherever it was copied to since.
const BLOCKS_MOST: u64 = 1 << 32;
/// An operation that is not over after this keeps legs from being compared.
const SLOW: Duration = Duration::from_millis(500);
/// What two turns of machines take at most, beside the letter between them.
const TURN: Duration = Duration::from_millis(1);
/// The first bytes of a block of a bitmap (docs/formats/bitmap.md).
const MAGIC: [u8; 8] = *b"MRBITMAP";
const BLOCK: u64 = array::BITMAP_BLOCK_BYTES as u64;
/// Where two heads vote, beat and try fences (docs/formats/system.md). They go on there whoever is in, and each has blocks of its own.
const SYSTEM_AREA: Range<u64> = 3 << 20..4 << 20;

/// An operation that comes to its drive.
pub(super) struct Asked<'a> {
    pub nth: u64,
    pub actor: ActorId,
    pub op: DriveOp,
    pub place: Opened,
    /// When its head asked for it, and whether a leg of the array was out by then.
    pub at: Instant,
    pub beside_absent: bool,
    /// Its head is gone, and these are the data of a write.
    pub orphan: Option<&'a mut [u8]>,
}

/// An operation that the kernel holds; where two heads share drives: that is at its drive.
struct Held {
    nth: u64,
    server: usize,
    actor: ActorId,
    place: Opened,
    kind: DriveOpKind,
    at: u64,
    len: u64,
    memory: Slice,
    /// When it was asked for, and whether a leg was out by then.
    began: Instant,
    beside_absent: bool,
    /// The head that asked is gone.
    orphan: bool,
    /// What its data looked like when it was asked for.
    looks: u64,
    /// Writes of a host: whose.
    stamp: Option<(u64, u64)>,
    /// Blocks of a bitmap: where, whose, and their bits.
    images: Vec<(u64, Image)>,
    /// Bits that it clears: where, and whose.
    clears: Vec<(u64, Image)>,
    record: Option<Box<MembershipRecord>>,
}

impl Held {
    fn changes(&self) -> bool {
        changes(self.kind)
    }
    fn overlaps(&self, at: u64, len: u64) -> bool {
        self.at < at + len && at < self.at + self.len
    }
}

/// A block of a bitmap: the array, and the bits of its first 64 regions, which are all that worlds have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Image {
    array: Uuid,
    bits: u64,
}

impl Image {
    /// What the beginning of a block says; None if it is none.
    pub fn read(block: &[u8]) -> Option<Self> {
        let array = Uuid(block[16..32].try_into().expect("16 bytes"));
        let bits = u64::from_le_bytes(block[64..72].try_into().expect("8 bytes"));
        (block[..8] == MAGIC).then_some(Self { array, bits })
    }
    /// Whether it is a block of this array, in which this bit is set.
    pub(super) fn has(&self, array: Uuid, bit: u32) -> bool {
        self.array == array && bit < u64::BITS && self.bits >> bit & 1 == 1
    }
}

/// Where a drive belongs, as its label says.
#[derive(Clone, Copy)]
struct Home {
    drive: Uuid,
    array: usize,
    geometry: Geometry,
}

/// What is known of the drive_checker.
#[derive(Default)]
pub struct DriveChecker {
    held: Vec<Held>,
    homes: Vec<Option<Home>>,
    pub(super) heads: Heads,
    /// The last record that each drive took in this life of the head that leads.
    records: Vec<Option<Box<MembershipRecord>>>,
    /// The last one that its state directory took.
    witness: Option<MembershipRecord>,
    /// The last one that it asked for.
    asked: Option<MembershipRecord>,
    /// When an operation failed last.
    failed_at: Instant,
    /// Changes and flushes that failed of late, or came too late: where, when, and since when they were there.
    failures: Vec<(usize, u64, u64, Instant, Instant)>,
    /// Changes that shards asked for of late: where, and when.
    recent: VecDeque<(usize, u64, u64, Instant)>,
    /// Array and byte of its data space, by block of the volume.
    places: BTreeMap<u64, (usize, u64)>,
    /// When a host's write of a block was first at a drive: copies of it come later.
    first: BTreeMap<(u64, u64), Instant>,
    /// Writes of hosts that must not start from then on: they were answered, or lost with their last connection.
    dead: BTreeMap<u64, Instant>,
    /// Legs were lost or joined since all were last compared.
    moved: bool,
    /// Clearings that a drive of this life of the head did not take, until one of their bits is set again.
    refused: Vec<(usize, u64, Image)>,
    /// When each drive joined as a leg last, to be copied to.
    joined: Vec<Instant>,
    /// Drives that failed to take the last record that they were given in this life of the head.
    untaken: BTreeSet<usize>,
    /// When a drive lost its power alone, and with it what had been written to it before.
    pub(super) drained: BTreeMap<usize, Instant>,
    /// The clearing that was looked at last: it goes to all legs at once.
    cleared: Option<(Instant, usize, u64)>,
    /// Since a head took over.
    taken: Option<Taken>,
    /// The first promise that was broken.
    broken: Option<String>,
}

/// A head took over from one that lives.
struct Taken {
    server: usize,
    /// Drives that the other one may read.
    drives: Vec<usize>,
    /// What that one reads it passes on until then.
    until: Instant,
}

impl DriveChecker {
    fn breaks(&mut self, what: impl FnOnce() -> String) {
        if self.broken.is_none() {
            self.broken = Some(format!("drive_checker: {}", what()));
        }
    }
    fn home(&self, disk: usize) -> Option<&Home> {
        self.homes.get(disk)?.as_ref()
    }
    /// Its head is gone, or written out.
    fn is_late(&self, held: &Held) -> bool {
        held.orphan || self.heads.is_out(held.server)
    }
    /// What is on record is to be learned anew.
    fn forget_records(&mut self) {
        self.records.clear();
        self.refused.clear();
        self.untaken.clear();
        self.witness = None;
        self.asked = None;
        self.moved = true;
    }
    /// What is on record.
    fn record(&self) -> Option<&MembershipRecord> {
        let all = self.records.iter().flatten().map(|r| &**r).chain(&self.witness);
        all.max_by_key(|r| r.counter)
    }
    /// A drive's state as a leg, on record and in the record that is on its way.
    fn states(&self, disk: usize) -> impl Iterator<Item = Option<LegState>> {
        let drive = self.home(disk).map(|h| h.drive);
        let state = move |r: &MembershipRecord| drive.and_then(|d| r.leg(d)).map(|l| l.state);
        [self.record(), self.asked.as_ref()].into_iter().flatten().map(state)
    }
    pub(super) fn in_sync(&self, disk: usize) -> bool {
        self.record().is_some() && self.states(disk).all(|s| s == Some(LegState::InSync))
    }
    /// Whether a drive is a leg that is out, on record or in the record that is on its way.
    fn is_out(&self, disk: usize) -> bool {
        self.states(disk).any(|s| s.is_some_and(LegState::is_out))
    }
    /// Whether a leg of this array is out, as far as shards must know.
    fn has_absent(&self, array: usize) -> bool {
        let out = |l: &array::format::MemberLeg| l.state.is_out();
        self.record().is_some_and(|r| r.arrays.get(array).is_some_and(|a| a.legs.iter().any(out)))
    }
    /// Drives that are legs of this array, on record.
    fn legs(&self, array: usize) -> Vec<usize> {
        let is_leg = |d: &usize| {
            self.home(*d).is_some_and(|h| {
                let state = self.record().and_then(|r| r.leg(h.drive)).map(|l| l.state);
                h.array == array && state.is_some_and(|s| !s.is_out())
            })
        };
        (0..self.homes.len()).filter(is_leg).collect()
    }
    /// A record is asked for: legs that are rebuilding by it, and were not, join.
    fn on_record_asked(&mut self, record: &MembershipRecord, now: Instant) {
        self.moved = true;
        self.joined.resize(self.homes.len().max(self.joined.len()), Instant(0));
        for (disk, home) in self.homes.iter().enumerate() {
            let state = |r: &MembershipRecord| home.and_then(|h| r.leg(h.drive)).map(|l| l.state);
            let was = self.asked.as_ref().and_then(state);
            if state(record) == Some(LegState::Rebuilding) && was != Some(LegState::Rebuilding) {
                self.joined[disk] = now;
            }
        }
        self.asked = Some(record.clone());
    }
    /// A block of a bitmap is on its way to some leg. Clearings of the bits that it sets are history.
    fn set_again(&mut self, at: u64, image: &Image) {
        for (_, place, cleared) in &mut self.refused {
            if *place == at && cleared.array == image.array {
                cleared.bits &= !image.bits;
            }
        }
        self.refused.retain(|(.., cleared)| cleared.bits != 0);
    }
    /// A change of this place failed, or came too late, not long ago.
    pub(super) fn has_failed(&self, disk: usize, at: u64, len: u64) -> bool {
        let there = |(d, from, bytes, ..): &(usize, u64, u64, Instant, Instant)| {
            *d == disk && *from < at + len && at < from + bytes
        };
        self.failures.iter().any(there)
    }
    fn writes_there(&self, disk: usize, at: u64, len: u64) -> bool {
        self.held.iter().any(|h| h.place.disk == disk && h.changes() && h.overlaps(at, len))
    }
}

impl World {
    /// The first promise that was broken at the drive_checker, if one was.
    pub fn broken_at_surface(&mut self) -> Option<String> {
        self.drive_checker.broken.take().or_else(|| self.told.take_broken())
    }

    // ---- what heads ask for

    /// Whether a leg of the array that a drive is of is out.
    pub(super) fn is_beside_absent(&self, disk: usize) -> bool {
        self.drive_checker.home(disk).is_some_and(|home| self.drive_checker.has_absent(home.array))
    }
    /// An operation for what was opened before the drive was pulled, or of a head that is shut out or has lost its path: it fails, and with it the
    /// record that it has, and the bits that it clears.
    pub(super) fn checker_in_vain(&mut self, asked: &Asked<'_>) {
        let Asked { actor, op, place: Opened { disk, .. }, at, .. } = *asked;
        let (server, is_orphan) = (self.server_of(actor).unwrap_or_default(), asked.orphan.is_some());
        self.steward_reads_in_vain(actor, op.kind, op.at);
        if self.is_shared() && changes(op.kind) && !SYSTEM_AREA.contains(&op.at) {
            self.drive_checker.failed_at = self.now;
            self.note_failure(disk, (op.at, op.len), at);
        }
        // Nobody hears that an operation failed whose head is gone.
        if op.kind != DriveOpKind::Write || is_orphan {
            return;
        }
        let (mut is_record, mut images) = (false, vec![]);
        let look = &mut |bytes: &mut [u8]| {
            is_record = MembershipRecord::decode(bytes).is_ok();
            for (i, block) in bytes.chunks_exact(BLOCK as usize).enumerate() {
                images.extend(Image::read(block).map(|image| (op.at + i as u64 * BLOCK, image)));
            }
        };
        with_memory(&mut self.actors, &self.heads, op.data, look);
        let heads = &self.drive_checker.heads;
        if is_record && heads.lead() == server && !heads.is_out(server) {
            self.drive_checker.untaken.insert(disk);
        }
        let Some(Home { array, .. }) = self.drive_checker.home(disk).copied() else { return };
        if self.drive_checker.has_absent(array) {
            return;
        }
        for (at, image) in images {
            let old = self.disks[disk].images(at).into_iter().flatten().filter(|i| i.array == image.array);
            let bits = old.fold(0, |bits, i| bits | i.bits) & !image.bits;
            self.drive_checker.refused.push((disk, at, Image { array: image.array, bits }));
        }
    }
    /// The Steward that leads reads, and may not get what it wants.
    fn steward_reads_in_vain(&mut self, actor: ActorId, kind: DriveOpKind, at: u64) {
        let leads = self.server_of(actor) == Some(self.drive_checker.heads.lead());
        if kind == DriveOpKind::Read && !self.is_shard(actor) && leads && !SYSTEM_AREA.contains(&at) {
            self.told.unread(self.now);
        }
    }
    /// A change failed, or ended too late, that was asked for at this time.
    fn note_failure(&mut self, disk: usize, (from, len): (u64, u64), asked: Instant) {
        let (now, settled) = (self.now, self.settled());
        let failures = &mut self.drive_checker.failures;
        failures.retain(|(.., at, _)| now.since(*at) < settled);
        failures.push((disk, from, len, now, asked));
    }
    /// A shard has asked for a change of a drive that is not open: other legs may get it.
    pub(super) fn checker_nowhere(&mut self, actor: ActorId, kind: DriveOpKind) {
        if self.is_shared() && self.is_shard(actor) && changes(kind) {
            self.drive_checker.heads.upset(self.now);
            self.told.nowhere(self.now);
        }
    }

    pub(super) fn checker_asked(&mut self, asked: Asked<'_>) {
        let Asked { nth, actor, op, place, at, beside_absent, orphan } = asked;
        if self.is_shared() && SYSTEM_AREA.contains(&op.at) {
            return;
        }
        let server = self.server_of(actor).unwrap_or_default();
        let mut held = Held {
            nth,
            server,
            actor,
            place,
            kind: op.kind,
            at: op.at,
            len: op.len,
            memory: op.data,
            began: at,
            beside_absent,
            orphan: orphan.is_some(),
            looks: 0,
            stamp: None,
            images: vec![],
            clears: vec![],
            record: None,
        };
        let late = self.drive_checker.is_late(&held);
        let Disk { fence_lies, fence, .. } = self.disks[place.disk];
        // The next process of a head may open a file again, and votes there if nobody tells it who is in.
        let lies = fence_lies || fence == FenceKind::File && !self.is_shard(actor);
        if held.changes() && !lies && self.drive_checker.heads.is_shut_out(server, place.disk) {
            let (disk, at) = (place.disk, op.at);
            self.drive_checker.breaks(|| {
                format!("server {server} is out, and writes to d{disk}, which has shut it out, at byte {at}")
            });
        }
        let by_shard = self.is_shard(actor);
        let sector = self.disks[place.disk].sector;
        let copy_at = label_copy_at(self.disks[place.disk].bytes);
        if op.kind == DriveOpKind::Write {
            let Self { drive_checker, actors, heads, disks, .. } = self;
            let home = drive_checker.home(place.disk).copied();
            let DriveChecker { places, first, dead, .. } = drive_checker;
            let (mut label, mut ghost) = (None, None);
            let mut look = |bytes: &mut [u8]| {
                held.looks = looks(bytes, sector);
                let is_data = |h: &Home| {
                    (h.geometry.data_at..h.geometry.data_at + h.geometry.data_bytes).contains(&op.at)
                };
                let data = home.filter(|h| by_shard && is_data(h));
                match data {
                    Some(home) => {
                        held.stamp = mark_of(bytes);
                        for (i, block) in bytes.chunks(sector as usize).enumerate() {
                            let Some((id, nth)) = mark_of(block) else { continue };
                            let place = op.at - home.geometry.data_at + i as u64 * sector;
                            places.entry(nth).or_insert((home.array, place));
                            first.entry((id, nth)).or_insert_with(|| {
                                // A copy of a block whose stamp rotted is no write of a host.
                                let rotted = || disks.iter().any(|d| d.has_rotted(op.at / sector + i as u64));
                                let over = dead.get(&id).is_some_and(|then| at > *then);
                                let over = over && nth < BLOCKS_MOST && !rotted();
                                ghost = over.then_some((id, nth)).or(ghost);
                                at
                            });
                        }
                    }
                    None => {
                        for (i, block) in bytes.chunks_exact(BLOCK as usize).enumerate() {
                            let at = op.at + i as u64 * BLOCK;
                            held.images.extend(Image::read(block).map(|image| (at, image)));
                        }
                        if MEMBERSHIP_AT.contains(&op.at) && bytes.len() == RECORD_BYTES {
                            held.record = MembershipRecord::decode(bytes).ok().map(Box::new);
                        }
                        if op.at == LABEL_AT || op.at == copy_at {
                            label = Label::decode(bytes).ok();
                        }
                    }
                }
            };
            match orphan {
                Some(bytes) => look(bytes),
                None => with_memory(actors, heads, op.data, &mut look),
            }
            if let Some((id, block)) = ghost.filter(|_| !late) {
                drive_checker.breaks(|| {
                    format!("a ghost write: {id} of block {block} starts, and is over for its host")
                });
            }
            self.learn_home(place.disk, op.at, label);
        }
        if late {
            held.record = None;
        }
        if let Some(record) = &held.record {
            if self.drive_checker.heads.writes(server) {
                self.drive_checker.forget_records();
            }
            self.drive_checker.on_record_asked(record, self.now);
        }
        self.check_meetings(&held);
        if by_shard && held.stamp.is_some() {
            self.check_taken(server, place.disk, at);
        }
        if by_shard && held.changes() {
            let recent = &mut self.drive_checker.recent;
            recent.push_back((place.disk, op.at, op.len, held.began));
            while recent.front().is_some_and(|(.., asked)| held.began.since(*asked) > RECENT) {
                recent.pop_front();
            }
            if !late {
                self.check_bit(&held);
            }
            self.check_clearing(&mut held, !late);
        }
        self.drive_checker.held.push(held);
    }
    /// A head that serves has taken over from one that lives, which may read these drives, and may pass that on until then.
    pub fn checker_takes_over(&mut self, server: usize, drives: Vec<usize>, until: Instant) {
        self.drive_checker.taken = Some(Taken { server, drives, until });
    }
    /// A host's write goes to a drive. Another leg of the mirror is not to be read by a head that is out, and does not know it.
    fn check_taken(&mut self, server: usize, disk: usize, asked: Instant) {
        let Self { drive_checker, disks, .. } = self;
        let array = |d: usize| drive_checker.home(d).map(|home| home.array);
        let Some(taken) = &drive_checker.taken else { return };
        if server != taken.server || asked >= taken.until {
            return;
        }
        let is_read =
            |d: &&usize| **d != disk && array(**d) == array(disk) && disks[**d].is_in((1 - server) as Nexus);
        if let Some(other) = taken.drives.iter().find(is_read).copied() {
            drive_checker.breaks(|| {
                format!(
                    "stale: server {server} has taken over, and writes to d{disk}, while d{other} lets the other head read"
                )
            });
        }
    }
    fn is_shard(&self, actor: ActorId) -> bool {
        matches!(self.actors[actor].address, Some(Address::Shard(_)))
    }
    fn learn_home(&mut self, disk: usize, at: u64, label: Option<Label>) {
        if at != LABEL_AT && at != label_copy_at(self.disks[disk].bytes) {
            return;
        }
        let homes = &mut self.drive_checker.homes;
        homes.resize(self.disks.len().max(homes.len()), None);
        homes[disk] = label.filter(|l| l.features.incompat & feature::SPARE == 0).map(|l| Home {
            drive: l.drive,
            array: l.array as usize,
            geometry: Geometry {
                data_at: l.data_at,
                data_bytes: l.data_bytes,
                region_bytes: l.region_bytes,
                bitmap_at: l.bitmap_at[0],
                bitmap_blocks: l.bitmap_bytes / array::BITMAP_BLOCK_BYTES,
            },
        });
    }

    /// Promises 2 and 7: what meets what the kernel holds.
    fn check_meetings(&mut self, new: &Held) {
        let Self { drive_checker, .. } = self;
        let mut met = None;
        for old in &drive_checker.held {
            let place = old.place == new.place && old.changes() && new.changes();
            if place && old.overlaps(new.at, new.len) {
                met = Some(format!("two writes are at d{} at once, at byte {}", new.place.disk, new.at));
            }
            let memory = old.memory.at < new.memory.end() && new.memory.at < old.memory.end();
            let reads = old.kind == DriveOpKind::Read || new.kind == DriveOpKind::Read;
            if memory && reads && !old.orphan && !new.orphan {
                met = Some(format!("a buffer that d{} holds is used again", old.place.disk));
            }
        }
        if let Some(met) = met {
            drive_checker.breaks(|| met);
        }
    }

    /// Promise 4: the bit is durable before the data, on each leg in sync that gets them.
    fn check_bit(&mut self, new: &Held) {
        let disk = new.place.disk;
        let Some(Home { geometry, .. }) = self.drive_checker.home(disk).copied() else { return };
        let data = new.at >= geometry.data_at && new.at < geometry.data_at + geometry.data_bytes;
        if !data || !geometry.redundant() || !self.drive_checker.in_sync(disk) {
            return;
        }
        let region = geometry.region(new.at - geometry.data_at);
        let (block, bit) = geometry.bit_of(region);
        let at = geometry.bitmap_at + u64::from(block) * BLOCK;
        let has = |image: Option<Image>| image.is_some_and(|i| i.bits >> bit & 1 == 1);
        let drive = &self.disks[disk];
        let [durable, visible] = drive.images(at);
        let there = self.drive_checker.held.iter().filter(|h| h.place.disk == disk).flat_map(|h| &h.images);
        let mut coming = there.filter(|(place, _)| *place == at);
        let sure = has(durable) && has(visible) && coming.all(|(_, image)| has(Some(*image)));
        if !sure && !drive.has_rotted(at / drive.sector) {
            self.drive_checker
                .breaks(|| format!("data go to region {region} of d{disk}, where its bit is not durable"));
        }
    }

    /// Promise 4: a bit is cleared only when no leg is absent and all have the region, durably; where that is to be judged.
    fn check_clearing(&mut self, new: &mut Held, judged: bool) {
        let disk = new.place.disk;
        let Some(Home { array, geometry, .. }) = self.drive_checker.home(disk).copied() else { return };
        for (at, image) in &new.images {
            self.drive_checker.set_again(*at, image);
            let there =
                self.drive_checker.held.iter().filter(|h| h.place.disk == disk).flat_map(|h| &h.images);
            let coming = there.filter(|(place, _)| place == at).map(|(_, image)| *image);
            let old = self.disks[disk].images(*at).into_iter().flatten().chain(coming);
            let old = old.filter(|i| i.array == image.array).fold(0, |bits, i| bits | i.bits);
            let gone = old & !image.bits;
            if gone == 0 || self.disks[disk].has_rotted(at / self.disks[disk].sector) {
                continue;
            }
            new.clears.push((*at, Image { array: image.array, bits: gone }));
            // What the leg refused to clear before: all legs had these regions durably then, and one that is absent
            // since lacks nothing of them, as no bit of them was set again.
            let again = |(d, place, old): &&(usize, u64, Image)| {
                *d == disk && place == at && old.array == image.array
            };
            let refused = self.drive_checker.refused.iter().filter(again);
            let gone = refused.fold(gone, |gone, (.., old)| gone & !old.bits);
            if gone == 0 || !judged {
                continue;
            }
            // Of one that went out behind what is still on its way, nothing is lost: these bits were as good as gone.
            if new.beside_absent && self.drive_checker.has_absent(array) {
                self.drive_checker.breaks(|| format!("bits are cleared on d{disk} while a leg is absent"));
            }
            let this = Some((self.now, array, *at));
            if core::mem::replace(&mut self.drive_checker.cleared, this) == this {
                continue;
            }
            let block = ((at - geometry.bitmap_at) / BLOCK) as u32;
            let regions = (0..64).filter(|bit| gone >> bit & 1 == 1);
            for region in regions.filter_map(|bit| geometry.region_of_bit(block, bit)) {
                let from = u64::from(region) * geometry.region_bytes;
                let len = geometry.region_end(from) - from;
                self.check_region(array, region, geometry.data_at + from, len);
            }
        }
    }
    fn check_region(&mut self, array: usize, region: u32, at: u64, len: u64) {
        let legs = self.drive_checker.legs(array);
        let shared = self.is_shared();
        let mut found = None;
        for leg in &legs {
            let writes = |h: &Held| h.place.disk == *leg && h.changes() && h.overlaps(at, len);
            let counts = |h: &Held| !shared || !self.drive_checker.is_late(h);
            if self.drive_checker.held.iter().any(|h| writes(h) && counts(h)) {
                found = Some(format!("a write is at d{leg}"));
            }
            if self.disks[*leg].is_cached(at, len) {
                found = Some(format!("d{leg} has not got it durably"));
            }
            if let Some(at) = self.differ(legs[0], *leg, at, len, true) {
                found = Some(format!("d{} and d{leg} differ there, at byte {at}", legs[0]));
            }
        }
        if let Some(found) = found {
            self.drive_checker.breaks(|| format!("the bit of region {region} is cleared, and {found}"));
        }
    }
    /// A byte of the drives at which two legs differ, where nothing rotted.
    fn differ(&self, one: usize, other: usize, at: u64, len: u64, durable: bool) -> Option<u64> {
        let (a, b) = (&self.disks[one], &self.disks[other]);
        let unlike = a.unlike(b, at, len, durable);
        let rotted = |s: &u64| self.disks.iter().any(|d| d.has_rotted(*s));
        // Nobody may read what somebody left there: legs may differ, until it is cleared.
        let junk = |s: &u64| a.is_junk(*s) || b.is_junk(*s);
        unlike.into_iter().find(|s| !rotted(s) && !junk(s)).map(|s| s * a.sector)
    }

    // ---- what the kernel says

    /// An operation ends next; its memory is still what it was.
    pub(super) fn checker_ends(&mut self, nth: u64) {
        let Some(held) = self.drive_checker.held.iter().find(|h| h.nth == nth) else { return };
        if held.kind != DriveOpKind::Write || held.orphan {
            return;
        }
        let (before, sector) = (held.looks, self.disks[held.place.disk].sector);
        let (memory, mut now) = (held.memory, 0);
        with_memory(&mut self.actors, &self.heads, memory, &mut |bytes| now = looks(bytes, sector));
        if now != before {
            self.drive_checker.breaks(|| "the data of a write change while the kernel holds them".into());
        }
    }
    pub(super) fn checker_ended(&mut self, nth: u64, result: Result<(), DriveError>) {
        let Some(i) = self.drive_checker.held.iter().position(|h| h.nth == nth) else { return };
        let held = self.drive_checker.held.swap_remove(i);
        if result.is_err() {
            self.steward_reads_in_vain(held.actor, held.kind, held.at);
        }
        let (disk, took) = (held.place.disk, self.now.since(held.began));
        let (not_given_up, deadline) = (self.not_given_up(), self.write_deadline());
        let drive_checker = &mut self.drive_checker;
        let counts = !drive_checker.is_late(&held);
        if held.record.is_some() && counts {
            // One that was given up and lands all the same may be older than what the witness has alone since.
            match result {
                Ok(()) if took <= not_given_up => drive_checker.untaken.remove(&disk),
                Ok(()) | Err(_) => drive_checker.untaken.insert(disk),
            };
        }
        if result.is_err() {
            drive_checker.failed_at = self.now;
            drive_checker.moved = true;
            let of_now = held.clears.iter().filter(|_| counts);
            drive_checker.refused.extend(of_now.map(|(at, cleared)| (disk, *at, *cleared)));
        }
        let too_late = held.changes() && took > deadline;
        if too_late || result.is_err() && held.kind != DriveOpKind::Read {
            self.note_failure(disk, (held.at, held.len), held.began);
        }
        let drive_checker = &mut self.drive_checker;
        let counts = counts && held.server == drive_checker.heads.lead();
        if let Some(record) = held.record.filter(|_| counts && result.is_ok()) {
            drive_checker.records.resize_with(self.disks.len().max(drive_checker.records.len()), || None);
            let drive = drive_checker.home(disk).map(|h| h.drive);
            let state = |r: &MembershipRecord| drive.and_then(|d| r.leg(d)).map(|l| l.state);
            let new = state(&record);
            let old = drive_checker.records[disk].replace(record).and_then(|r| state(&r));
            // A record may come late, to a leg that has gone out since.
            let out = drive_checker.is_out(disk);
            if old == Some(LegState::Rebuilding) && new == Some(LegState::InSync) && !out {
                self.check_promoted(disk);
            }
        }
    }
    /// Promises 2 and 5: a leg that is in sync from now on holds what the others hold, but for what moves, or
    /// failed so late that somebody may be put out for it.
    fn check_promoted(&mut self, disk: usize) {
        // Where a head ended, lost its way to a leg or was put out, legs may differ until its lanes are dealt anew.
        if !self.is_settled() {
            return;
        }
        let Some(Home { array, geometry, .. }) = self.drive_checker.home(disk).copied() else { return };
        let Geometry { data_at, data_bytes, .. } = geometry;
        let legs: Vec<usize> = self.legs_in_use(array).into_iter().filter(|d| *d != disk).collect();
        let size = self.disks[disk].sector;
        let (now, mut found) = (self.now, None);
        let (shared, deadline) = (self.is_shared(), self.write_deadline());
        // What a leg was given for longer than that was given up, as if it had failed.
        let given_up = |h: &Held| {
            let late = now.since(h.began) > deadline;
            h.place.disk == disk && h.changes() && !h.orphan && late
        };
        let lost = self.drive_checker.held.iter().any(given_up);
        // The head that leads may hear of what failed at the other one only then.
        let fails = |leg: usize| {
            let joined = self.drive_checker.joined.get(disk).copied();
            let since = |(d, .., then, _): &(usize, u64, u64, Instant, Instant)| {
                (*d == disk || *d == leg) && joined.is_none_or(|joined| *then > joined)
            };
            shared && self.drive_checker.failures.iter().any(since)
        };
        for leg in legs.iter().filter(|leg| self.is_open(disk) && !lost && !fails(**leg)) {
            let moves = |at: u64| {
                // Whoever sees a change fail at the leg writes nothing more to it, and answers nothing until that is on
                // record; what failed before it joined was copied since. Elsewhere what failed may be tried again.
                let failed = |(at_leg, from, len, then, began): &(usize, u64, u64, Instant, Instant)| {
                    // The same follows where the last leg in sync refuses what the one that is being rebuilt took.
                    let either = *at_leg == disk || at_leg == leg;
                    let since =
                        either && self.drive_checker.joined.get(disk).is_none_or(|joined| then > joined);
                    let overlaps = *from < at + size && at < from + len;
                    // What it was not given since differs too; what was the same before it failed is so still.
                    let not_given = |(d, from, len, asked): &(usize, u64, u64, Instant)| {
                        *d != disk && asked >= began && *from < at + size && at < from + len
                    };
                    let lacks = since && (overlaps || self.drive_checker.recent.iter().any(not_given));
                    (lacks || *at_leg != disk && overlaps) && now.since(*then) < self.settled()
                };
                [disk, *leg].into_iter().any(|d| self.changes_at(d, at, size))
                    || self.drive_checker.failures.iter().any(failed)
            };
            let junk = |s: &u64| [disk, *leg].into_iter().any(|d| self.disks[d].is_junk(*s));
            let still =
                |s: &u64| !junk(s) && !moves(s * size) && !self.disks.iter().any(|d| d.has_rotted(*s));
            let unlike = self.disks[disk].unlike(&self.disks[*leg], data_at, data_bytes, false);
            if let Some(sector) = unlike.into_iter().find(still) {
                found = Some((*leg, sector * size));
            }
        }
        if let Some((leg, at)) = found {
            self.drive_checker
                .breaks(|| format!("d{disk} is in sync from now on, and differs from d{leg} at byte {at}"));
        }
    }
    /// Whether a drive's leg is out.
    pub fn is_out_on_record(&self, disk: usize) -> bool {
        self.drive_checker.is_out(disk)
    }
    /// Whether a loss of then can be put on record nowhere yet: the state directory takes nothing, and what lies there
    /// proved the leg still.
    pub fn may_have_loss_not_on_record(&self, then: Instant) -> bool {
        let mut frozen = self.servers.iter().filter_map(|s| s.frozen_at);
        frozen.any(|at| then <= at + FREEZE_KNOWN)
    }
    /// A state directory takes not all that is written there.
    fn directory_ails(&self) -> bool {
        self.servers.iter().any(|s| s.frozen_at.is_some() || !s.refuses.is_empty() || s.slow_us > 0)
    }
    /// Promise 7: a leg that does not answer is put out.
    pub(super) fn checker_hangs(&mut self, nth: u64) {
        let Some(held) = self.drive_checker.held.iter().find(|h| h.nth == nth) else { return };
        let given_up = if self.is_shared() { GIVEN_UP_BY_TWO } else { GIVEN_UP };
        // Who stands still, or comes to lead, decides nothing meanwhile.
        let is_late = self.drive_checker.is_late(held);
        let old = self.now.since(held.began) > given_up && !is_late && self.is_settled();
        let (disk, actor, kind, at) = (held.place.disk, held.actor, held.kind, held.at);
        // It is, but nothing takes that on record.
        let slow = self.servers.iter().any(|s| s.slow_us > 0);
        let loss_not_on_record = slow || self.may_have_loss_not_on_record(held.began);
        self.steward_reads_in_vain(actor, kind, at);
        if !old || loss_not_on_record || kind == DriveOpKind::Read || !self.is_shard(actor) {
            return;
        }
        let Some(home) = self.drive_checker.home(disk).copied() else { return };
        let others = |d: usize| d != disk && self.drive_checker.in_sync(d) && self.is_open(d);
        let last = !self.drive_checker.legs(home.array).into_iter().any(others);
        let others_ill = self.disks.iter().enumerate().any(|(d, x)| d != disk && x.faults.any());
        if self.drive_checker.in_sync(disk) && !last && !others_ill {
            self.drive_checker
                .breaks(|| format!("d{disk} holds a change beyond its deadline, and is a leg still"));
        }
    }
    /// The head of a server is gone; with the power of the drives, or without it.
    pub(super) fn checker_fell(&mut self, server: usize, power: bool) {
        let drive_checker = &mut self.drive_checker;
        drive_checker.held.iter_mut().filter(|h| h.server == server).for_each(|h| h.orphan = true);
        if power {
            drive_checker.held.clear();
        }
        if server == drive_checker.heads.lead() {
            drive_checker.forget_records();
        }
        drive_checker.heads.falls(server, self.now);
        drive_checker.taken = None;
        drive_checker.moved = true;
    }
    /// The drives lose their power, and no head lives.
    pub(super) fn checker_lost_power(&mut self) {
        self.drive_checker.held.clear();
        self.drive_checker.heads.upset(self.now);
    }
    /// A machine says whether its head leads, before anything is done of what it wants.
    pub(super) fn checker_hears(&mut self, actor: ActorId, leads: Option<Leads>) {
        let (Some(leads), Some(server)) = (leads, self.server_of(actor)) else { return };
        if self.drive_checker.heads.hears(server, leads, self.now) {
            self.drive_checker.forget_records();
        }
    }
    /// A drive has shut out whoever is not in: no operation of theirs is at it, and none is let in.
    pub(super) fn checker_confirmed(&mut self, disk: usize) {
        for server in 0..self.servers.len() {
            if !self.disks[disk].is_in(server as Nexus) {
                self.drive_checker.heads.confirms(server, disk);
            }
        }
    }
    /// A file of a state directory was written.
    pub(super) fn checker_state(&mut self, server: usize, name: &str, contents: &[u8]) {
        let heads = &self.drive_checker.heads;
        let counts = server == heads.lead() && !heads.is_out(server);
        if counts && name.starts_with("witness-") {
            self.drive_checker.witness = witness(name, contents);
        }
    }

    // ---- how long things take

    /// What failed before is on record.
    pub(super) fn settled(&self) -> Duration {
        if self.is_shared() { SETTLED_BY_TWO } else { SETTLED }
    }
    fn not_given_up(&self) -> Duration {
        if self.is_shared() { NOT_GIVEN_UP_BY_TWO } else { NOT_GIVEN_UP }
    }
    fn write_deadline(&self) -> Duration {
        if self.is_shared() { DEADLINE_BY_TWO } else { Deadlines::default().write }
    }
    /// Of two heads, none was put out, let in or ended of late.
    fn is_settled(&self) -> bool {
        !self.is_shared() || self.drive_checker.heads.are_settled(self.now, SETTLED_BY_TWO)
    }
    /// Whether a change of this place is at a drive, or on its way there.
    pub fn changes_at(&self, disk: usize, at: u64, len: u64) -> bool {
        self.drive_checker.writes_there(disk, at, len) || self.is_on_its_way(disk, at, len)
    }

    // ---- what hosts see

    /// Promises 3 and 5: changes were answered, and nobody else is at these blocks.
    pub fn checker_answered(&mut self, answers: &[Answer]) {
        /// An array, its legs in use, and those of them whose records do not know that another is out.
        type Known = (usize, Vec<usize>, Vec<(usize, usize)>);
        let mut known: Option<Known> = None;
        let shared = self.is_shared();
        if shared && self.directory_ails() {
            return;
        }
        // A command that failed where there are two heads may have been begun by one that is gone.
        let upset_at = self.drive_checker.heads.upset_at();
        let counts = |a: &&Answer| a.began > upset_at && (!shared || a.failed.is_none());
        for answer in answers.iter().filter(counts) {
            // What was refused before it came to a drive says nothing of the drives: legs may differ since a crash.
            let begun = |id| self.drive_checker.first.contains_key(&(id, answer.block));
            // A write that got a retry status, as the loss can be put on record nowhere, is not read until it is on record.
            let loss_not_on_record = self.may_have_loss_not_on_record(answer.began);
            if answer.failed.is_some_and(|id| !begun(id) || loss_not_on_record) {
                continue;
            }
            let Some((array, at)) = self.drive_checker.places.get(&answer.block).copied() else { continue };
            if known.as_ref().is_none_or(|(a, ..)| *a != array) {
                let legs = self.legs_in_use(array);
                let unaware = self.unaware(array, &legs);
                known = Some((array, legs, unaware));
            }
            let Some((_, legs, unaware)) = &known else { continue };
            let Some(first) = legs.first().copied() else { continue };
            let home = self.drive_checker.home(first).expect("a leg has a label");
            let (at, len) = (home.geometry.data_at + at, self.disks[first].sector);
            let rotted = self.disks.iter().any(|d| d.has_rotted(at / len));
            // Zeroes that were written where nobody may read what lies there are answered without the drives.
            let junk = |d: &usize| self.disks[*d].is_junk(at / len);
            let lacks = |(leg, out): &&(usize, usize)| {
                let had = self.drive_checker.drained.get(out).is_some_and(|at| answer.began <= *at);
                !rotted
                    && !had
                    && ![leg, out].into_iter().any(junk)
                    && !self.disks[*leg].agrees(&self.disks[*out], at / len)
                    && !self.changes_at(*leg, at, len)
            };
            if let Some((leg, out)) = unaware.iter().find(lacks).copied() {
                let block = answer.block;
                self.drive_checker.breaks(|| {
                    format!("block {block} was answered, d{out} lacks it, and the record on d{leg} has d{out} in sync")
                });
            }
            let other = legs.iter().find(|d| !self.disks[first].agrees(&self.disks[**d], at / len));
            let moves = |other| {
                rotted
                    || [first, other].iter().any(junk)
                    || [first, other].into_iter().any(|d| self.changes_at(d, at, len))
            };
            if let Some(other) = other.copied().filter(|other| !moves(*other)) {
                let block = answer.block;
                self.drive_checker.breaks(|| {
                    format!("block {block} was answered: d{first} and d{other}, in sync on record, differ at byte {at}")
                });
            }
        }
    }
    /// Legs that are in sync on record, and there.
    fn legs_in_use(&self, array: usize) -> Vec<usize> {
        let in_sync = |d: usize| {
            let state =
                self.drive_checker.record().zip(self.drive_checker.home(d)).and_then(|(r, h)| r.leg(h.drive));
            state.is_some_and(|l| l.state == LegState::InSync)
        };
        self.drive_checker.legs(array).into_iter().filter(|d| in_sync(*d) && self.is_open(*d)).collect()
    }
    /// Legs in use whose own record has another drive in sync that is so no more, each with that drive; but for those
    /// that failed to take the record: for the last one in sync the witness has it.
    fn unaware(&self, array: usize, legs: &[usize]) -> Vec<(usize, usize)> {
        let Some(newest) = self.drive_checker.record() else { return vec![] };
        let in_sync = |r: &MembershipRecord, disk: usize| {
            let leg = self.drive_checker.home(disk).filter(|h| h.array == array).and_then(|h| r.leg(h.drive));
            leg.is_some_and(|l| l.state == LegState::InSync)
        };
        let not_given_up = self.not_given_up();
        let given_up = |leg: usize| {
            let old = |h: &Held| {
                h.place.disk == leg && h.record.is_some() && self.now.since(h.began) > not_given_up
            };
            self.drive_checker.held.iter().any(old)
        };
        let mut found = vec![];
        for leg in legs.iter().copied().filter(|leg| !self.drive_checker.untaken.contains(leg)) {
            let Some(own) = self.drive_checker.records.get(leg).and_then(|r| r.as_deref()) else { continue };
            if own.counter < newest.counter && !given_up(leg) {
                let out = (0..self.disks.len()).filter(|d| in_sync(own, *d) && !in_sync(newest, *d));
                found.extend(out.map(|out| (leg, out)));
            }
        }
        found
    }
    /// Promise 3: a host is let in again. The writes that it lost with its last session have ended, but for
    /// those that were given up, and those at legs that are out on record: nobody reads there, and a leg is taken back only when
    /// nothing is left at it.
    pub fn checker_let_in(&mut self, host: ActorId, lost: &BTreeSet<u64>) {
        // A host may have several controllers, so the head lets it in beside one whose loss it cannot know of yet.
        if self.left_in_silence(host).is_some() {
            return;
        }
        let out: Vec<bool> = (0..self.disks.len()).map(|d| self.drive_checker.is_out(d)).collect();
        let not_given_up = self.not_given_up();
        let Self { drive_checker, now, disks, .. } = self;
        let is_lost = |h: &&Held| {
            let copy = |key| drive_checker.first.get(&key).is_some_and(|first| *first < h.began);
            h.stamp.is_some_and(|key| lost.contains(&key.0) && !copy(key))
        };
        let fresh = |h: &&Held| {
            let hangs = disks[h.place.disk].faults.hang;
            !drive_checker.is_late(h) && now.since(h.began) < not_given_up && !hangs
        };
        let counts = |h: &&Held| is_lost(h) && fresh(h) && !out[h.place.disk];
        let found = drive_checker.held.iter().find(counts).map(|h| h.place.disk);
        if let Some(disk) = found {
            drive_checker.breaks(|| format!("a host is let in while a write that it lost is at d{disk}"));
        }
    }
    /// Promise 3: these writes were answered to their hosts, and start at no drive from now on.
    pub fn checker_over(&mut self, writes: impl Iterator<Item = u64>) {
        let now = self.now;
        self.drive_checker.dead.extend(writes.map(|id| (id, now)));
    }
    /// Promise 3: the head closed the last connection of the host of these writes. What is not at a drive by then never
    /// starts, once the word of it has come to the shards of their blocks.
    pub fn checker_cut_off(&mut self, writes: impl Iterator<Item = u64>) {
        let reported = self.now + Duration::from_micros(self.delivery.mail_us) + TURN;
        self.drive_checker.dead.extend(writes.map(|id| (id, reported)));
    }
    /// Promise 2: every leg is in sync, as the head says. They hold the same then, wherever nothing moves.
    pub fn checker_look(&mut self) {
        let slow = |h: &Held| h.changes() && self.now.since(h.began) > SLOW;
        let heads = &self.drive_checker.heads;
        let upset = self.is_shared()
            && (self.directory_ails()
                || heads.is_any_out()
                || self.is_late_on_its_way(SLOW)
                || !self.is_settled());
        let restless = self.now.since(self.drive_checker.failed_at.max(heads.upset_at())) < self.settled()
            || upset
            || self.drive_checker.held.iter().any(slow)
            || self.disks.iter().enumerate().any(|(d, x)| x.faults.any() || !self.is_open(d));
        if !self.drive_checker.moved || restless {
            return;
        }
        self.drive_checker.moved = false;
        let arrays = self.drive_checker.record().map_or(0, |r| r.arrays.len());
        for array in 0..arrays {
            let legs = self.legs_in_use(array);
            let Some(home) = legs.first().and_then(|d| self.drive_checker.home(*d)).copied() else {
                continue;
            };
            let Geometry { data_at, data_bytes, .. } = home.geometry;
            for leg in &legs[1..] {
                let (a, b) = (&self.disks[legs[0]], &self.disks[*leg]);
                let unlike = a.unlike(b, data_at, data_bytes, false);
                let still = |s: &u64| {
                    let at = s * a.sector;
                    let junk = a.is_junk(*s) || b.is_junk(*s);
                    !junk
                        && !self.disks.iter().any(|d| d.has_rotted(*s))
                        && !legs.iter().any(|d| self.changes_at(*d, at, a.sector))
                };
                if let Some(sector) = unlike.into_iter().find(still) {
                    let (first, at) = (legs[0], sector * a.sector);
                    self.drive_checker
                        .breaks(|| format!("d{first} and d{leg} are in sync, and differ at byte {at}"));
                }
            }
        }
    }
    /// Whether every array has a leg that is in sync on record, and well, whether the head has it open or not.
    pub fn has_good_legs(&self) -> bool {
        let arrays = self.drive_checker.record().map_or(0, |r| r.arrays.len());
        let well = |d: usize| !self.disks[d].faults.any() && self.drive_checker.in_sync(d);
        arrays > 0 && (0..arrays).all(|a| self.drive_checker.legs(a).into_iter().any(well))
    }
}

fn changes(kind: DriveOpKind) -> bool {
    !matches!(kind, DriveOpKind::Read | DriveOpKind::Flush)
}

fn with_memory(actors: &mut [Actor], heads: &[ActorId], data: Slice, with: &mut dyn FnMut(&mut [u8])) {
    let found = heads.iter().any(|id| actors[*id].try_dma(data, with));
    assert!(found, "drives work on memory of heads");
}

/// The record in a witness file, without the zeroes behind it.
fn witness(name: &str, file: &[u8]) -> Option<MembershipRecord> {
    let files::content::Record { record } = files::open(name, file).ok()?;
    let mut record = base::codec::unhex(&record)?;
    record.resize(RECORD_BYTES, 0);
    MembershipRecord::decode(&record).ok()
}

/// A number for what data look like: the beginning of every third sector.
fn looks(bytes: &[u8], sector: u64) -> u64 {
    bytes.chunks(sector as usize).step_by(3).fold(0, |sum, sector| {
        let word = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("8 bytes"));
        (sum ^ word(0)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23) ^ word(8)
    })
}
