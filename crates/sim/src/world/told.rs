//! What shards are told, and what they say that they have done: compared, as they say it, with what they know and with what lies on the
//! drives. So what is forgotten, or confirmed too early, is found where that happens, not when a read happens to show it.
//!
//! | a shard says | so |
//! | --- | --- |
//! | this configuration is in force | its arrays are those of the letter. One that was built anew knows every bit that a leg in sync has in its lanes, and exactly the uncleared pieces |
//! | returned space is marked | each whole piece of it is marked on each leg in sync, durably, or zero; the rest is zero |
//! | every region is dirty | its bits are set on each leg in sync, durably |
//! | lanes are the same since a crash; a leg is synced | these legs hold the same there |
//! | nothing of the other head is under way | nothing that came from there waits, and lanes of that head count as different |
//!
//! The Steward keeps nothing of shards that take no part, and nobody counts as parted who has not said so under the last number. Once
//! lanes are dealt anew, and at rests, what both heads know is compared with each other and with the drives.
//!
//! Legs may differ where a change is at a drive or on its way to one, where one failed not long ago, where data rotted and where nobody may
//! read before it is cleared. A drive that is ill, not open as it is there now, or lost to the shard proves nothing.

use super::World;
use super::actor::{ActorId, Body, Books};
use super::directories::Marked;
use crate::registrants::Nexus;
use array::{ArrayBooks, BITMAP_BLOCK_BYTES, LegState, Note, UNCLEARED_AREA_BYTES, UnclearedMap};
use base::{Address, Duration, Instant, Uuid};
use core::ops::Range;
use head::books::{ArrayOnShard, ShardBooks};
use head::layout::{ArrayId, ArrayLayout, Layout};
use head::mail::{Mail, ShardMail, StewardMail};
use head::steward::Leads;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What a Steward has read goes to the shards within this time.
const READ_OF_LATE: Duration = Duration::from_secs(5);

/// Space that was returned: of which array, by which mark, and bytes and lengths in its data space.
type Returned = (ArrayId, u32, Arc<Vec<(u64, u64)>>);

/// What a shard was told in its life, and has said.
#[derive(Default)]
struct OfShard {
    /// Layouts that are on their way, and the one in force.
    sent: VecDeque<Arc<Layout>>,
    layout: Arc<Layout>,
    /// By which map and members it had each array then.
    known: BTreeMap<ArrayId, (u32, u64)>,
    /// What it has not said yet that it is marked.
    returned: Vec<Returned>,
    /// Arrays that are to come to rest, or rest, until another map comes.
    quiesced: BTreeSet<ArrayId>,
    /// The last number under which it has parted.
    parted: u32,
}

/// What was told, and said.
#[derive(Default)]
pub(super) struct Told {
    shards: BTreeMap<ActorId, OfShard>,
    /// The last moment of each server's Steward, and since when the other head is in by it, and whether that has the latest files.
    moments: [Option<u64>; 2],
    has_all: [Option<(u64, bool)>; 2],
    /// It leads, and whether the other head has been out ever since.
    alone: [Option<bool>; 2],
    pub marked: Marked,
    /// Regions of arrays whose bit was set as the process ended that had their lanes: whoever gets those takes them for different.
    remains: BTreeMap<Uuid, BTreeSet<u32>>,
    /// When a change was asked for that goes to no drive; and when a Steward read last in vain.
    nowhere_at: Instant,
    unread_at: Instant,
    broken: Option<String>,
}

impl Told {
    fn breaks(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }
    /// The first thing that was not so.
    pub fn take_broken(&mut self) -> Option<String> {
        self.broken.take()
    }
    /// A change was asked for of a drive that is not open: other legs may get it.
    pub fn nowhere(&mut self, now: Instant) {
        self.nowhere_at = now;
    }
    /// A Steward reads in vain, or for long.
    pub fn unread(&mut self, now: Instant) {
        self.unread_at = now;
    }
    /// A life of these machines is over.
    pub fn falls(&mut self, server: usize, machines: &[ActorId]) {
        self.shards.retain(|id, _| !machines.contains(id));
        self.moments[server] = None;
        self.has_all[server] = None;
        self.alone[server] = None;
        self.marked.forget();
    }
}

/// A leg that counts as in sync, as a head has its drive open.
#[derive(Clone, Copy)]
struct OnDrive {
    disk: usize,
    /// Where its uncleared map begins.
    map_at: u64,
}

fn owns(instance: &ArrayBooks, region: u32) -> bool {
    instance.lanes.of_region(region) == instance.shard
}

/// Whether a byte of the data space lies in a piece that is uncleared, as its owner knows it.
fn is_uncleared(instance: &ArrayBooks, at: u64) -> bool {
    instance.pieces.contains(&((at / instance.piece_bytes) as u32))
}

// Letters.
impl World {
    /// A machine writes a letter, at the end of its turn.
    pub(super) fn letter_is_written(&mut self, from: ActorId, to: Address, mail: &Mail) {
        match mail {
            Mail::Shard(mail) => self.shard_is_told(from, to, mail),
            Mail::Steward(mail) => self.shard_says(from, mail),
            _ => {}
        }
    }
    fn shard_is_told(&mut self, from: ActorId, to: Address, mail: &ShardMail) {
        let counts = matches!(
            mail,
            ShardMail::Configure { .. }
                | ShardMail::Returned { .. }
                | ShardMail::Quiesce { .. }
                | ShardMail::Resume { .. }
        );
        if !counts {
            return;
        }
        let Some(server) = self.server_of(from) else { return };
        let Some(id) = self.servers[server].addresses.get(&to) else { return };
        let of = self.told.shards.entry(*id).or_default();
        match mail {
            ShardMail::Configure { layout, .. } => of.sent.push_back(layout.clone()),
            ShardMail::Returned { array, marks, ranges, .. } => {
                of.returned.push((*array, *marks, ranges.clone()));
            }
            ShardMail::Quiesce { array, .. } => drop(of.quiesced.insert(*array)),
            ShardMail::Resume { array } => drop(of.quiesced.remove(array)),
            _ => {}
        }
    }
    fn shard_says(&mut self, from: ActorId, mail: &StewardMail) {
        let late = self.server_of(from).is_some_and(|server| self.drive_checker.heads.is_out(server));
        let so = match mail {
            // Whoever has its lanes may have gone on by now.
            StewardMail::Note { .. } if late => return,
            StewardMail::Applied { generation } => self.check_applied(from, *generation),
            StewardMail::Parted { number } => self.check_parted(from, *number),
            StewardMail::Note { array, note } => self.check_note(from, *array, note),
            _ => return,
        };
        if let (Err(what), Some(Address::Shard(shard))) = (so, self.actors[from].address) {
            let server = self.server_of(from).unwrap_or_default();
            self.told.breaks(format!("books: server {server}, shard {shard}: {what}"));
        }
    }
    fn books_of_shard(&self, actor: ActorId) -> Option<ShardBooks> {
        match &self.actors[actor].body {
            Body::Head(machine) => match machine.books()? {
                Books::Shard(books) => Some(*books),
                Books::Steward(_) => None,
            },
            Body::Host(_) => None,
        }
    }
    /// Shards of a server's head: they have the numbers below this, and those of the other head the numbers behind.
    fn own_shards(&self, server: usize) -> u16 {
        let shards = self.servers[server].addresses.keys().filter(|a| matches!(a, Address::Shard(_)));
        shards.count() as u16
    }

    /// This configuration is in force.
    fn check_applied(&mut self, actor: ActorId, generation: u64) -> Result<(), String> {
        let (Some(server), Some(books)) = (self.server_of(actor), self.books_of_shard(actor)) else {
            return Ok(());
        };
        let of = self.told.shards.entry(actor).or_default();
        of.sent.retain(|layout| layout.generation >= generation);
        let Some(layout) = of.sent.front().filter(|l| l.generation == generation).cloned() else {
            return Ok(());
        };
        of.sent.pop_front();
        of.layout = layout.clone();
        let now = books.arrays.iter().map(|a| (a.id, (a.map, a.epoch)));
        let known = core::mem::replace(&mut of.known, now.collect());
        let is_new = |on: &ArrayOnShard| known.get(&on.id).is_none_or(|(map, _)| *map != on.map);
        let built: BTreeSet<ArrayId> = books.arrays.iter().filter(|on| is_new(on)).map(|on| on.id).collect();
        of.returned.retain(|(id, ..)| !built.contains(id));
        of.quiesced.retain(|id| !built.contains(id));
        for wanted in &layout.arrays {
            let id = wanted.id;
            let Some(on) = books.arrays.iter().find(|on| on.id == id) else {
                return Err(format!("array {id} of configuration {generation} is not there"));
            };
            if (on.map, on.instance.lanes) != (wanted.map, wanted.lanes) {
                return Err(format!(
                    "array {id} has map {}, {:?}, and was told map {}, {:?}",
                    on.map, on.instance.lanes, wanted.map, wanted.lanes
                ));
            }
            let news = known.get(&id) != Some(&(on.map, on.epoch));
            if news && on.lacks_path != wanted.lacks_path {
                let (is, must) = (on.lacks_path, wanted.lacks_path);
                return Err(format!(
                    "array {id}, epoch {}: it lacks a path: {is}, and was told: {must}",
                    on.epoch
                ));
            }
            if built.contains(&id) && !self.drive_checker.heads.is_out(server) {
                self.check_built(server, wanted, &on.instance)?;
                self.check_remains(wanted, &on.instance)?;
            }
        }
        Ok(())
    }
    /// The process of a server ends. What it was writing may be on some legs, and on others not. Of one that is written out that was known
    /// before.
    pub(super) fn keep_remains(&mut self, server: usize) {
        if self.drive_checker.heads.is_out(server) {
            return;
        }
        for actor in self.machines_of(server) {
            let Some(books) = self.books_of_shard(actor) else { continue };
            let Some(of) = self.told.shards.get(&actor) else { continue };
            let mut found = vec![];
            for wanted in of.layout.arrays.iter().filter(|wanted| !of.quiesced.contains(&wanted.id)) {
                let on = books.arrays.iter().find(|on| (on.id, on.map) == (wanted.id, wanted.map));
                found.extend(on.map(|on| (wanted.uuid, on.instance.durable.clone())));
            }
            for (uuid, durable) in found {
                self.told.remains.entry(uuid).or_default().extend(durable.iter());
            }
        }
    }
    /// An array is built anew: what a process left in its lanes that has ended counts as different, where legs may differ.
    fn check_remains(&mut self, wanted: &ArrayLayout, instance: &ArrayBooks) -> Result<(), String> {
        let Some(remains) = self.told.remains.get_mut(&wanted.uuid) else { return Ok(()) };
        let knows = |region: u32| instance.unclean.as_ref().is_some_and(|unclean| unclean.get(region));
        let forgotten = remains.iter().copied().find(|region| owns(instance, *region) && !knows(*region));
        remains.retain(|region| !owns(instance, *region));
        let in_sync = wanted.membership.legs.iter().flatten().filter(|leg| leg.state == LegState::InSync);
        match forgotten.filter(|_| in_sync.count() > 1) {
            Some(region) => Err(format!(
                "array {}, map {}: the bit of region {region} was set as the head ended that had its lane, and it counts as the same on all legs",
                wanted.id, wanted.map
            )),
            None => Ok(()),
        }
    }
    /// Nothing is under way any more that shards of the other head had sent.
    fn check_parted(&mut self, actor: ActorId, number: u32) -> Result<(), String> {
        let (Some(server), Some(books)) = (self.server_of(actor), self.books_of_shard(actor)) else {
            return Ok(());
        };
        self.told.shards.entry(actor).or_default().parted = number;
        if books.far.is_empty() && books.of_far > 0 {
            return Err(format!("it has parted, and {} commands of the other head wait", books.of_far));
        }
        let own = self.own_shards(server);
        for on in books.arrays.iter().filter(|on| on.bereft) {
            let knows = |region| on.instance.unclean.as_ref().is_some_and(|unclean| unclean.get(region));
            let theirs = |region: &u32| on.instance.lanes.of_region(*region) >= own;
            if let Some(region) = (0..on.instance.wanted.len()).filter(theirs).find(|r| !knows(*r)) {
                return Err(format!(
                    "region {region} of array {} was the other head's, which is gone, and counts as the same on all legs",
                    on.id
                ));
            }
        }
        Ok(())
    }
    fn check_note(&mut self, actor: ActorId, array: ArrayId, note: &Note) -> Result<(), String> {
        let counts = matches!(
            note,
            Note::Returned { .. } | Note::AllDirty { .. } | Note::CrashClean { .. } | Note::Synced { .. }
        );
        let Some(server) = self.server_of(actor).filter(|_| counts) else { return Ok(()) };
        let Some(of) = self.told.shards.get_mut(&actor) else { return Ok(()) };
        let layout = of.layout.clone();
        let mut returned = vec![];
        if let Note::Returned { marks } = note {
            let (now, later) = of.returned.drain(..).partition(|(id, of, _)| *id == array && of <= marks);
            (returned, of.returned) = (now, later);
        }
        let Some(books) = self.books_of_shard(actor) else { return Ok(()) };
        let wanted = layout.arrays.iter().find(|a| a.id == array);
        let on = books.arrays.iter().find(|on| on.id == array);
        let Some((wanted, on)) = wanted.zip(on).filter(|(wanted, on)| wanted.map == on.map) else {
            return Ok(());
        };
        let instance = &on.instance;
        let legs = self.legs_here(server, wanted, &instance.lost);
        match note {
            Note::Returned { .. } => self.check_returned(wanted, instance, &legs, &returned),
            Note::AllDirty { .. } => self.check_all_dirty(wanted, instance, &legs),
            Note::CrashClean { .. } => self.check_same(wanted, instance, &legs),
            Note::Synced { leg, .. } => {
                let at = wanted.membership.legs.get(*leg).copied().flatten();
                let disk = at.filter(|_| !instance.lost.contains(leg));
                let disk = disk.and_then(|leg| self.there(server, leg.drive));
                let Some((disk, first)) = disk.zip(legs.first().copied()) else { return Ok(()) };
                let joined = OnDrive { disk, map_at: 0 };
                self.check_same(wanted, instance, &[first, joined])
            }
            _ => Ok(()),
        }
    }
}

// What lies on drives.
impl World {
    /// Legs in sync of an array, as a head was told of them, whose drives it has open and that are not lost to a shard.
    fn legs_here(&self, server: usize, wanted: &ArrayLayout, lost: &[usize]) -> Vec<OnDrive> {
        let legs = wanted.membership.legs.iter().enumerate();
        let legs = legs.filter_map(|(place, leg)| {
            let leg = leg.filter(|leg| leg.state == LegState::InSync && !lost.contains(&place))?;
            Some(OnDrive { disk: self.there(server, leg.drive)?, map_at: leg.map_at })
        });
        legs.collect()
    }
    /// Every leg that is in sync by the members is among these.
    fn are_all(wanted: &ArrayLayout, legs: &[OnDrive]) -> bool {
        let in_sync = wanted.membership.legs.iter().flatten().filter(|leg| leg.state == LegState::InSync);
        in_sync.count() == legs.len()
    }
    /// Whether a region's bit is set on a leg; None if that block rotted.
    fn bit_on(&self, leg: OnDrive, wanted: &ArrayLayout, region: u32, durable: bool) -> Option<bool> {
        let disk = &self.disks[leg.disk];
        let (block, bit) = wanted.geometry.bit_of(region);
        let at = wanted.geometry.bitmap_at + u64::from(block) * u64::from(BITMAP_BLOCK_BYTES);
        let [kept, visible] = disk.images(at);
        let image = if durable { kept } else { visible };
        let has = image.is_some_and(|image| image.has(wanted.uuid, bit));
        (!disk.has_rotted(at / disk.sector)).then_some(has)
    }
    /// The uncleared pieces by the maps of these legs, in the lanes of an instance; None if a block rotted.
    fn pieces_on(
        &self,
        legs: &[OnDrive],
        wanted: &ArrayLayout,
        instance: &ArrayBooks,
    ) -> Option<BTreeSet<u32>> {
        let mut areas = vec![];
        for leg in legs {
            let disk = &self.disks[leg.disk];
            let all = disk.sectors(leg.map_at, UNCLEARED_AREA_BYTES);
            if all.into_iter().any(|sector| disk.has_rotted(sector)) {
                return None;
            }
            let mut area = vec![0; UNCLEARED_AREA_BYTES as usize];
            disk.read(leg.map_at, &mut area);
            areas.push(area);
        }
        let areas: Vec<Option<&[u8]>> = areas.iter().map(|area| Some(area.as_slice())).collect();
        let map = UnclearedMap::merge(&wanted.geometry, wanted.uuid, instance.life, &areas).map;
        let region = |piece: u32| wanted.geometry.region(u64::from(piece) * instance.piece_bytes);
        Some(map.pieces().filter(|piece| owns(instance, region(*piece))).collect())
    }
    /// No Steward has read in vain of late, nor stood still while it read: what lies on the legs they know.
    fn reads_well(&self, server: usize) -> bool {
        let of_late = |at: Instant| at > Instant(0) && self.now < at + READ_OF_LATE;
        let stood = self.servers.iter().any(|server| {
            let alone = server.standing.values().copied();
            alone.chain(server.pause.map(|pause| pause.until)).any(of_late)
        });
        let ill = self.disks.iter().any(|disk| disk.faults.any());
        self.runs(server) && !stood && !ill && !of_late(self.told.unread_at)
    }
    /// An instance that is built anew knows what the legs in sync say of its lanes.
    fn check_built(&self, server: usize, wanted: &ArrayLayout, instance: &ArrayBooks) -> Result<(), String> {
        if !self.reads_well(server) {
            return Ok(());
        }
        let legs = self.legs_here(server, wanted, &[]);
        self.check_bits(wanted, instance, &legs)?;
        if World::are_all(wanted, &legs) { self.check_pieces(wanted, instance, &legs) } else { Ok(()) }
    }
    /// It knows every bit that a leg in sync has in its lanes.
    fn check_bits(
        &self,
        wanted: &ArrayLayout,
        instance: &ArrayBooks,
        legs: &[OnDrive],
    ) -> Result<(), String> {
        if !wanted.geometry.redundant() {
            return Ok(());
        }
        let unknown = |region: &u32| owns(instance, *region) && !instance.wanted.get(*region);
        for region in (0..wanted.geometry.regions()).filter(unknown) {
            let set = |leg: &&OnDrive| self.bit_on(**leg, wanted, region, false) == Some(true);
            if let Some(leg) = legs.iter().find(set) {
                return Err(format!(
                    "array {}, map {}: the bit of region {region} is set on d{}, and its owner does not know it",
                    wanted.id, wanted.map, leg.disk
                ));
            }
        }
        Ok(())
    }
    /// It knows exactly the uncleared pieces that all legs in sync together say are in its lanes.
    fn check_pieces(
        &self,
        wanted: &ArrayLayout,
        instance: &ArrayBooks,
        legs: &[OnDrive],
    ) -> Result<(), String> {
        if instance.life == 0 || legs.is_empty() {
            return Ok(());
        }
        let Some(on_legs) = self.pieces_on(legs, wanted, instance) else { return Ok(()) };
        let known: BTreeSet<u32> = instance.pieces.iter().copied().collect();
        let (id, map) = (wanted.id, wanted.map);
        if let Some(piece) = on_legs.difference(&known).next() {
            return Err(format!(
                "array {id}, map {map}: piece {piece} is uncleared on legs, and its owner does not know it: {} pieces there, {} here",
                on_legs.len(),
                known.len()
            ));
        }
        match known.difference(&on_legs).next() {
            Some(piece) => Err(format!(
                "array {id}, map {map}: piece {piece} is cleared on every leg, and its owner takes it for uncleared: {} pieces there, {} here",
                on_legs.len(),
                known.len()
            )),
            None => Ok(()),
        }
    }
    /// Returned space in its lanes: each whole piece is marked on each leg, or zero, and so is each part of one.
    fn check_returned(
        &self,
        wanted: &ArrayLayout,
        instance: &ArrayBooks,
        legs: &[OnDrive],
        returned: &[Returned],
    ) -> Result<(), String> {
        let (geometry, bytes) = (&wanted.geometry, instance.piece_bytes);
        let ranges: Vec<Range<u64>> =
            returned.iter().flat_map(|(.., ranges)| ranges.iter()).map(|(at, len)| *at..at + len).collect();
        for leg in legs.iter().filter(|_| !ranges.is_empty()) {
            let Some(marked) = self.pieces_on(&[*leg], wanted, instance) else { continue };
            let disk = &self.disks[leg.disk];
            for range in &ranges {
                for piece in range.start / bytes..range.end.div_ceil(bytes) {
                    let whole = piece * bytes..((piece + 1) * bytes).min(geometry.data_bytes);
                    let part = whole.start.max(range.start)..whole.end.min(range.end);
                    let other = !owns(instance, geometry.region(whole.start));
                    if other || part == whole && marked.contains(&(piece as u32)) {
                        continue;
                    }
                    let all = disk.sectors(geometry.data_at + part.start, part.end - part.start);
                    let left = |sector: &u64| !disk.is_zero(*sector) && !disk.has_rotted(*sector);
                    if let Some(sector) = all.into_iter().find(left) {
                        return Err(format!(
                            "array {}: byte {} of d{} is of returned space, and neither zero nor, durably, in a piece that is marked",
                            wanted.id,
                            sector * disk.sector,
                            leg.disk
                        ));
                    }
                }
            }
        }
        Ok(())
    }
    /// The bits of all regions in its lanes are set on each leg, durably.
    fn check_all_dirty(
        &self,
        wanted: &ArrayLayout,
        instance: &ArrayBooks,
        legs: &[OnDrive],
    ) -> Result<(), String> {
        let regions = if wanted.geometry.redundant() { wanted.geometry.regions() } else { 0 };
        for region in (0..regions).filter(|region| owns(instance, *region)) {
            let clear = |leg: &&OnDrive| self.bit_on(**leg, wanted, region, true) == Some(false);
            if let Some(leg) = legs.iter().find(clear) {
                return Err(format!(
                    "array {}: every region is marked, and the bit of region {region} is not durable on d{}",
                    wanted.id, leg.disk
                ));
            }
        }
        Ok(())
    }
    /// These legs hold the same in the lanes of an instance.
    fn check_same(
        &self,
        wanted: &ArrayLayout,
        instance: &ArrayBooks,
        legs: &[OnDrive],
    ) -> Result<(), String> {
        let known = |region: u32, at: u64| !owns(instance, region) || is_uncleared(instance, at);
        for pair in legs.windows(2) {
            let pair = [pair[0].disk, pair[1].disk];
            if let Some((region, at)) = self.unequal(pair, wanted, known) {
                return Err(format!(
                    "array {}: region {region} is the same on d{} and d{}, and they differ at byte {at}",
                    wanted.id, pair[0], pair[1]
                ));
            }
        }
        Ok(())
    }
    /// A region in which two legs differ, and where on their drives, for no reason. `known`: of a region, and of a byte of the data space, that
    /// they may differ there.
    fn unequal(
        &self,
        pair: [usize; 2],
        wanted: &ArrayLayout,
        known: impl Fn(u32, u64) -> bool,
    ) -> Option<(u32, u64)> {
        let [a, b] = pair.map(|disk| &self.disks[disk]);
        let recent = self.now.since(self.told.nowhere_at) < self.settled();
        if a.faults.any() || b.faults.any() || recent && self.told.nowhere_at > Instant(0) {
            return None;
        }
        let data_at = wanted.geometry.data_at;
        a.unlike(b, data_at, wanted.geometry.data_bytes, false).into_iter().find_map(|sector| {
            let at = sector * a.sector;
            let region = wanted.geometry.region(at - data_at);
            let moves = |disk: usize| {
                self.changes_at(disk, at, a.sector) || self.drive_checker.has_failed(disk, at, a.sector)
            };
            let excused = known(region, at - data_at)
                || a.is_junk(sector)
                || b.is_junk(sector)
                || self.disks.iter().any(|d| d.has_rotted(sector))
                || pair.into_iter().any(moves);
            (!excused).then_some((region, at))
        })
    }
}

// What both heads know.
impl World {
    /// The Steward of one of two heads has had a turn.
    pub(super) fn steward_has_moved(&mut self, id: ActorId) {
        let (Some(server), Some(Address::Steward)) = (self.actors[id].server, self.actors[id].address) else {
            return;
        };
        if !self.is_shared() || self.fell.is_some() {
            return;
        }
        let Body::Head(machine) = &self.actors[id].body else { return };
        let Some(steward) = machine.steward() else { return };
        let (leads, partings) = (steward.leads(), steward.partings());
        let (stray, moment) = (steward.stray(), steward.moment().filter(|_| leads.is_some()));
        if let Some((what, shard, shards)) = stray {
            self.told.breaks(format!(
                "books: server {server}, the Steward: {shards} shards take part, and it has something of shard {shard}: {what}"
            ));
        }
        self.check_partings(server, partings);
        if let Some(leads) = leads {
            let alone = &mut self.told.alone[server];
            *alone = Some(alone.unwrap_or(true) && !leads.other_is_in);
        }
        let has_all = leads.filter(|leads| leads.other_is_in);
        let has_all = has_all.map(|leads| (leads.other_since, leads.other_has_latest));
        let before = core::mem::replace(&mut self.told.has_all[server], has_all);
        if let Some((since, true)) = has_all
            && before == Some((since, false))
            && self.is_lead(server)
        {
            self.check_latest(1 - server, since);
        }
        if moment.is_some() && moment != self.told.moments[server] && self.is_lead(server) {
            if self.told.moments[server].replace(moment.unwrap_or_default()).is_none() {
                self.check_taken_over(server);
            }
            if let Err(what) = self.check_known(server) {
                self.told.breaks(what);
            }
        }
    }
    /// What a head goes by, if it is one of two and leads.
    pub(super) fn leads(&self, server: usize) -> Option<Leads> {
        match &self.actors[*self.servers[server].addresses.get(&Address::Steward)?].body {
            Body::Head(machine) => machine.leads(),
            Body::Host(_) => None,
        }
    }
    /// No newer record says that another head leads.
    fn is_lead(&self, server: usize) -> bool {
        let heads = &self.drive_checker.heads;
        heads.lead() == server && !heads.is_out(server)
    }
    /// Whoever counts as parted has said so under the last number.
    fn check_partings(&mut self, server: usize, (number, parting): (u32, Vec<u16>)) {
        for shard in (0..self.own_shards(server)).filter(|shard| number > 0 && !parting.contains(shard)) {
            let id = self.actor_of(server, Address::Shard(shard));
            let said = self.told.shards.get(&id).map_or(0, |of| of.parted);
            if said != number {
                self.told.breaks(format!(
                    "books: server {server}: shard {shard} counts as parted, number {number}, and has said {said}"
                ));
            }
        }
    }
    /// A head has come to lead, and its pools are here: no drive that it uses lets the other head in, if that has been out since.
    fn check_taken_over(&mut self, server: usize) {
        let other = 1 - server;
        let alone = self.told.alone[server] == Some(true) && self.drive_checker.heads.is_out(other);
        let layout = self.layout_of(server).filter(|_| alone);
        let arrays = layout.iter().flat_map(|layout| &layout.arrays);
        let legs = arrays.flat_map(|wanted| self.legs_here(server, wanted, &[]));
        let lets_in = |disk: &usize| self.disks[*disk].is_in(other as Nexus) && !self.disks[*disk].fence_lies;
        if let Some(disk) = legs.map(|leg| leg.disk).find(lets_in) {
            self.told.breaks(format!(
                "fence: server {server} has come to lead, and uses d{disk}, which lets server {other} in, which is out"
            ));
        }
    }
    /// Whoever has the latest hosts and portals by the record durably knows that it is in.
    fn check_latest(&mut self, server: usize, since: u64) {
        let known = self.durable_record(server).map(|record| record.heads[server].since);
        if known.is_none_or(|known| known < since) {
            self.told.breaks(format!(
                "books: server {server} has all files since epoch {since} by the record, and its own directory knows of {known:?}"
            ));
        }
    }
    /// Where legs in sync differ, whoever has the lanes knows it: after lanes were dealt anew, or a head came to lead. What is under way at
    /// a head that is out proves nothing.
    ///
    /// # Errors
    /// A byte at which they differ, and who does not know it.
    pub fn check_known(&self, leader: usize) -> Result<(), String> {
        let standing = (0..self.servers.len()).any(|server| self.stands(server));
        let layout = self.layout_of(leader).filter(|_| !standing);
        let Some(layout) = layout else { return Ok(()) };
        let all = self.shards_of(&[0, 1]);
        let own = self.own_shards(leader);
        for wanted in layout.arrays.iter().filter(|wanted| wanted.geometry.redundant()) {
            let on = |books: &'_ ShardBooks| books.arrays.iter().find(|on| on.id == wanted.id).cloned();
            let all: Vec<(usize, u16, ArrayOnShard)> =
                all.iter().filter_map(|(s, books)| Some((*s, books.shard, on(books)?))).collect();
            let lost: Vec<usize> = all.iter().flat_map(|(.., on)| on.instance.lost.iter().copied()).collect();
            let mut legs = self.legs_here(leader, wanted, &lost);
            legs.retain(|leg| self.drive_checker.in_sync(leg.disk) && self.is_shut_to_all_out(leg.disk));
            let owner = |region: u32| {
                let shard = wanted.lanes.of_region(region);
                let (server, shard) = match shard.checked_sub(own) {
                    None => (leader, shard),
                    Some(far) => (1 - leader, far),
                };
                let is = |(s, n, on): &&(usize, u16, ArrayOnShard)| {
                    (*s, *n, on.map) == (server, shard, wanted.map) && !self.drive_checker.heads.is_out(*s)
                };
                all.iter().find(is).map(|(.., on)| on)
            };
            // Nobody who lives has it, or whoever has it knows.
            let known = |region: u32, at: u64| {
                owner(region).is_none_or(|on| {
                    let unclean = on.instance.unclean.as_ref().is_some_and(|unclean| unclean.get(region));
                    unclean || on.bereft || is_uncleared(&on.instance, at)
                })
            };
            for pair in legs.windows(2) {
                let pair = [pair[0].disk, pair[1].disk];
                if let Some((region, at)) = self.unequal(pair, wanted, known) {
                    return Err(format!(
                        "books: array {}, map {}: d{} and d{} differ in region {region}, at byte {at}, and shard {} does not know it",
                        wanted.id,
                        wanted.map,
                        pair[0],
                        pair[1],
                        wanted.lanes.of_region(region)
                    ));
                }
            }
        }
        Ok(())
    }
    /// No head that is out may still write there.
    fn is_shut_to_all_out(&self, disk: usize) -> bool {
        let heads = &self.drive_checker.heads;
        (0..self.servers.len()).all(|server| !heads.is_out(server) || heads.is_shut_out(server, disk))
    }
    /// What the shards of a head have in force.
    fn layout_of(&self, server: usize) -> Option<Arc<Layout>> {
        let id = self.servers[server].addresses.get(&Address::Shard(0))?;
        self.told.shards.get(id).map(|of| of.layout.clone())
    }
    /// All that know of an array know the same, and what lies on the legs in sync. To be asked when nothing is under way.
    ///
    /// # Errors
    /// What is not so.
    pub fn check_maps(&self, leader: usize, servers: &[usize]) -> Result<(), String> {
        let Some(layout) = self.layout_of(leader) else { return Ok(()) };
        let all = self.shards_of(servers);
        for wanted in &layout.arrays {
            let on = |books: &'_ ShardBooks| books.arrays.iter().find(|on| on.id == wanted.id).cloned();
            let all: Vec<(usize, u16, ArrayOnShard)> =
                all.iter().filter_map(|(s, books)| Some((*s, books.shard, on(books)?))).collect();
            self.check_alike(leader, wanted, &all)?;
            for (server, shard, on) in &all {
                let so = self.check_at_rest(*server, wanted, on);
                so.map_err(|what| format!("books: server {server}, shard {shard}: {what}"))?;
            }
        }
        Ok(())
    }
    /// Instances of an array go by the same map, and the owner of each lane is one of them.
    fn check_alike(
        &self,
        leader: usize,
        wanted: &ArrayLayout,
        all: &[(usize, u16, ArrayOnShard)],
    ) -> Result<(), String> {
        let id = wanted.id;
        for (server, shard, on) in all {
            let (own, other) = (self.own_shards(*server), self.own_shards(leader));
            // As this head numbers shards of both.
            let number = |shard: u16| match shard.checked_sub(other) {
                _ if *server == leader => shard,
                None => own + shard,
                Some(here) => here,
            };
            let lanes = wanted.lanes.renumbered(number);
            if (on.map, on.instance.lanes, on.bereft) != (wanted.map, lanes, false) {
                return Err(format!(
                    "books: server {server}, shard {shard}: array {id} has map {}, {:?}, nobody's: {}; the head that leads has map {}, {lanes:?}",
                    on.map, on.instance.lanes, on.bereft, wanted.map
                ));
            }
        }
        for lane in 0..array::LANES {
            let shard = wanted.lanes.of_region(lane);
            let owner = match shard.checked_sub(self.own_shards(leader)) {
                None => (leader, shard),
                Some(far) => (1 - leader, far),
            };
            if !all.iter().any(|(server, shard, _)| (*server, *shard) == owner) {
                return Err(format!(
                    "books: lane {lane} of array {id} is of shard {} of server {}, which has no such array",
                    owner.1, owner.0
                ));
            }
        }
        // Others hold at least what the owner does. What was returned since they may not have heard of yet.
        for (server, shard, on) in all {
            let may_have = |piece: &u32| {
                let region = wanted.geometry.region(u64::from(*piece) * on.instance.piece_bytes);
                let mark = (on.instance.life, on.instance.marks);
                let lacks = |(.., o): &&(usize, u16, ArrayOnShard)| {
                    (o.instance.life, o.instance.marks) == mark && !o.instance.uncleared.get(region)
                };
                all.iter().find(lacks).map(|(s, n, _)| (region, *s, *n))
            };
            if let Some((region, s, n)) = on.instance.pieces.iter().find_map(may_have) {
                return Err(format!(
                    "books: region {region} of array {id} has uncleared pieces at server {server}, shard {shard}, and none for server {s}, shard {n}"
                ));
            }
        }
        Ok(())
    }
    fn check_at_rest(&self, server: usize, wanted: &ArrayLayout, on: &ArrayOnShard) -> Result<(), String> {
        let instance = &on.instance;
        let Some(layout) = self.layout_of(server) else { return Ok(()) };
        // By the numbers of this head.
        let Some(here) = layout.arrays.iter().find(|a| a.id == wanted.id) else {
            return Err(format!("array {} is in no configuration of it", wanted.id));
        };
        let legs = self.legs_here(server, here, &instance.lost);
        if !World::are_all(here, &legs) {
            return Ok(());
        }
        let lacks = here.lanes.has(instance.shard) && on.lacks_path;
        if lacks && here.membership.legs.iter().flatten().all(|leg| self.there(server, leg.drive).is_some()) {
            return Err(format!("array {} lacks a path, and has lanes and all drives", wanted.id));
        }
        self.check_bits(here, instance, &legs)?;
        self.check_pieces(here, instance, &legs)?;
        let durable = |region: &u32| wanted.geometry.redundant() && instance.durable.get(*region);
        for region in (0..instance.durable.len()).filter(durable) {
            let clear = |leg: &&OnDrive| self.bit_on(**leg, here, region, true) == Some(false);
            if let Some(leg) = legs.iter().find(clear) {
                return Err(format!(
                    "array {}: the bit of region {region} counts as durable, and is not on d{}",
                    wanted.id, leg.disk
                ));
            }
        }
        Ok(())
    }
}
