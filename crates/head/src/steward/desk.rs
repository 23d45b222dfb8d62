//! The desk: all that the Steward knows and decides at one moment.

use crate::layout::{ArrayId, PoolId};
use crate::mail::Room;
use crate::order::{EventLine, Order, Refusal, RefusalKind, State, Weight};
use crate::report::ShardReport;
use crate::steward::health::drives::Probe;
use crate::steward::health::watch::Looks;
use crate::steward::legs::spares::SpareDesk;
use crate::steward::pools::absent::AbsentPool;
use crate::steward::pools::found::Found;
use crate::steward::pools::scrub::ScrubDesk;
use crate::steward::record::files::protocol_word;
use crate::steward::record::lost::Loss;
use crate::steward::record::witness::Witness;
use crate::steward::sessions::rejections::TurnedAway;
use crate::steward::sessions::table::Sessions;
use crate::steward::state::config::{PoolConfig, array_uuid};
use crate::steward::state::journal::Journal;
use crate::steward::state::{Change, Identity, List, Pool, PoolRow, State as Decided};
use crate::steward::status::speed::{Speed, Work};
use crate::steward::status::times::Times;
use access::Hosts;
use array::format::{Incarnation, Label, LegState, MembershipRecord};
use array::{Bitmap, Geometry, UnclearedMap};
use base::machine::Shape;
pub(crate) use base::size::{print as size, print_free as size_there, print_needed as size_needed};
use base::view::{Portal, System};
use base::{Bug, DriveError, DriveId, DriveInfo, Instant, NetError, PortalId, Prng, Uuid, VolumeId, planted};
use core::net::SocketAddr;
use pool::Granules;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use volume::Run;

/// Events that are kept in memory for `status` and `events`.
const EVENTS_KEPT: usize = 1000;
/// Numbers of drives that rest before they are used again.
const FREE_DRIVES: usize = 256;

pub(crate) struct Desk {
    pub shards: u16,
    pub version: String,
    /// What is decided: `state` and `apply`.
    state: Decided,
    /// Its changes, for who keeps a second state.
    pub journal: Journal,
    /// A file of the state directory is being written: the next one waits.
    pub filing: bool,
    pub prng: Prng,
    /// Milliseconds since 1970-01-01 UTC at some instant; None until the clock was read.
    pub clock: Option<(Instant, u64)>,
    pub started: Instant,
    /// Generation of the configuration published last, and that each shard has in force.
    pub generation: u64,
    pub applied: Vec<u64>,
    pub quiesced: BTreeSet<(ArrayId, u16)>,
    /// What shards have said last of the mirrors that they have room for, and most could have.
    pub rooms: Vec<Option<(Room, u32)>>,
    /// Somebody asks them just now; and mirrors that have their memory and are not on the desk yet.
    pub asking_room: bool,
    pub promised: Room,
    pub portals: Vec<PortalDesk>,
    pub pools: Vec<PoolDesk>,
    /// Pools that should be here and are not, with the reason and the next command.
    pub absent: Vec<AbsentPool>,
    /// Block devices that were not there at the start.
    pub appeared: Vec<String>,
    /// The looks at drives.
    pub looks: Looks,
    pub sessions: Sessions,
    pub orders: VecDeque<(Option<u64>, Order)>,
    pub ordering: bool,
    /// Pools that are being imported at this moment.
    pub importing: BTreeSet<Uuid>,
    pub ready: bool,
    /// No pool was imported on purpose: portals stay closed, so that hosts wait for their volumes rather
    /// than learn that there are none.
    pub held: bool,
    /// How far the head is being stopped.
    pub stop: Stop,
    /// An order under way was given up for it.
    pub cut_short: bool,
    pub events: VecDeque<EventLine>,
    pub event_next: u64,
    /// Lines not yet in the log.
    pub unlogged: VecDeque<EventLine>,
    pub notices: Vec<String>,
    /// Files of the state directory that could not be read: not written over, so that somebody can repair them.
    pub unread: Vec<Unread>,
    /// What was lost of the state directory, and that its file of hosts was not there at the start.
    pub losses: Vec<Loss>,
    /// Files of the state directory that are there, as far as the head knows: those that it found or wrote.
    pub files: BTreeSet<String>,
    /// How often each of them was changed.
    pub file_changes: BTreeMap<String, u64>,
    /// Those that somebody removed under the running head, and that were written again.
    pub restored: BTreeSet<String>,
    pub hosts_missing: bool,
    /// Why the state directory takes nothing, if that is so.
    pub unwritable: Option<String>,
    /// The latest figures of each shard, and how often it has told them.
    pub reports: Vec<Option<ShardReport>>,
    pub reported: Vec<u64>,
    /// Where the time of commands went.
    pub times: Times,
    pub shapes: BTreeMap<DriveId, Shape>,
    /// See `StewardConfig::shapes`.
    pub shapes_at_start: BTreeMap<String, Shape>,
    pub last_protocol_errors: BTreeMap<u16, &'static str>,
    /// How fast legs are rebuilt.
    pub speeds: BTreeMap<Work, Speed>,
    pub turned_away: TurnedAway,
    /// What ails drives that stay in use.
    pub ills: BTreeMap<DriveId, Ill>,
    /// Every number that a drive of a pool has had: figures go on when it returns.
    pub lives: BTreeMap<Uuid, BTreeSet<DriveId>>,
    /// What was found at paths at the last look there, while drives of pools were looked for.
    pub found: BTreeMap<String, Found>,
    /// Drives that were legs and have left, with where they lay: newest last.
    pub departed: Vec<(Uuid, String)>,
    /// Spares that took the places of drives, are there still, and were not followed by another spare yet.
    pub stood_in: Vec<StoodIn>,
    /// Numbers of drives that were only looked at, to be used again.
    free_drives: VecDeque<DriveId>,
    ids: Ids,
}

#[derive(Default)]
struct Ids {
    drive: u16,
    volume: u32,
    host: u32,
    portal: u16,
    pool: u16,
    array: u16,
}

pub(crate) struct PortalDesk {
    pub portal: Portal,
    /// What each shard said.
    pub results: Vec<Option<Result<SocketAddr, NetError>>>,
    /// It is being added: whoever asked for it is told how that went, and nobody else.
    pub tried: bool,
}

impl PortalDesk {
    /// Why it is not open on some shard.
    pub fn failure(&self) -> Option<NetError> {
        self.results.iter().find_map(|r| r.and_then(Result::err))
    }
    /// What it is called in events.
    pub fn words(&self) -> String {
        format!("portal {} {}", protocol_word(self.portal.protocol), self.portal.address)
    }
}

/// How far the head is being stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Stop {
    /// Nobody asked for it.
    #[default]
    No,
    /// Somebody did, then: orders that come are refused, and the one under way gets a moment.
    Asked(Instant),
    /// Portals are closed and nobody is let in any more, so that no host sees the volumes go.
    Closed,
}

/// A file of the state directory that could not be read, or is not there beside others that are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unread {
    pub file: &'static str,
    /// A sentence.
    pub words: String,
    /// What helps.
    pub next: &'static str,
}

/// A spare took the place of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoodIn {
    pub pool: Uuid,
    pub spare: String,
    /// The leg that it is.
    pub leg: Uuid,
    pub old: String,
    /// Seconds since 1970-01-01 UTC.
    pub at: u64,
}

/// What ails a drive that stays in use, since nothing else has what it has (or it may well recover).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ill {
    pub state: State,
    /// One sentence.
    pub words: String,
    /// What helps.
    pub next: String,
}

/// An imported pool.
pub(crate) struct PoolDesk {
    pub id: PoolId,
    /// What is decided of it, as `Desk::apply` left it; or, while it comes, what it will be.
    state: Arc<Pool>,
    /// The record in force, while it is not known to be where it must be: shards go by it, and nobody is answered.
    proposed: Option<MembershipRecord>,
    /// The generation that was used last, also for a configuration that was refused: whatever comes next is above it.
    pub generation_used: u64,
    /// A configuration is being written: the next one waits.
    pub configuring: bool,
    pub arrays: Vec<ArrayDesk>,
    /// Returned runs to which writes may still be at the drives: they are not marked yet.
    pub resting: Vec<Resting>,
    /// Volumes that have shrunk to a part of a granule: until then writes behind their end may be at the drives.
    pub shrunk: BTreeMap<Uuid, Instant>,
    /// Returned runs that every array has marked: free with the next configuration.
    pub marked: Vec<Run>,
    pub volume_ids: BTreeMap<Uuid, VolumeId>,
    /// Volumes that were made since the pool was imported: what hosts did with them, the shards have counted.
    pub made_here: BTreeSet<Uuid>,
    /// Its volumes answer commands.
    pub serving: bool,
    /// It is being let go of: volumes are gone from the hosts, the keeper stops.
    pub leaving: bool,
    pub wishes: VecDeque<Wish>,
    pub keeping: bool,
    /// The keeper shall wait: an order changes what it works on.
    pub held: bool,
    /// Its hot spares, in the order of its configuration.
    pub spares: Vec<SpareDesk>,
    /// The scrub under way, and what the last one found.
    pub scrub: ScrubDesk,
    /// What lies in the state directory.
    pub witness: Witness,
    /// A leg in sync of each array has the record that the witness has, or a later one. If not, the witness alone may
    /// know of a loss, and it is not removed.
    pub known_on_legs: bool,
    /// Its configuration on some drive, or the witness, could not be written.
    pub trouble: Option<String>,
    /// A record that puts a leg in sync and was not taken, and the name of the one that takes its place on the desk.
    pub refused: Option<(MembershipRecord, Incarnation)>,
    /// Since when the keeper tries to put a record somewhere.
    pub recording: Option<Instant>,
    /// A loss is told by that record: answers wait for it.
    pub losing: bool,
    /// Nothing takes it: the volumes are not ready until something does.
    pub unrecorded: bool,
}

impl Desk {
    /// The record is where it must be. If it is the one in force, it is decided.
    pub fn decide(&mut self, id: PoolId, record: &MembershipRecord) {
        let Some(p) = self.pool(id) else { return };
        if p.record().incarnation != record.incarnation || self.state.pool(p.config().uuid).is_none() {
            return;
        }
        let record = self.pool_mut(id).and_then(|p| p.proposed.take());
        if let Some(record) = record {
            self.apply(Change::Member { record });
        }
    }
    /// Every leg that takes part has the record. If it is the one in force, the next one names it as settled.
    pub fn settle(&mut self, id: PoolId, record: &MembershipRecord) {
        let Some(p) = self.pool_mut(id) else { return };
        if p.record().incarnation != record.incarnation {
            return;
        }
        let mut settled = p.record().clone();
        settled.settle();
        let known = p.proposed.is_none();
        p.proposed = Some(settled.clone());
        if known {
            self.decide(id, &settled);
        }
    }
}

/// A run of a volume that was removed or has shrunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resting {
    pub run: Run,
    pub until: Instant,
}

impl PoolDesk {
    /// A pool that comes, with its arrays.
    pub fn coming(
        id: PoolId,
        state: Pool,
        arrays: Vec<ArrayDesk>,
        volume_ids: BTreeMap<Uuid, VolumeId>,
    ) -> Self {
        Self {
            id,
            scrub: ScrubDesk::of(state.config()),
            generation_used: state.generation(),
            state: Arc::new(state),
            proposed: None,
            configuring: false,
            arrays,
            volume_ids,
            spares: vec![],
            resting: vec![],
            shrunk: BTreeMap::new(),
            marked: vec![],
            made_here: BTreeSet::new(),
            serving: false,
            leaving: false,
            wishes: VecDeque::new(),
            keeping: false,
            held: false,
            trouble: None,
            refused: None,
            recording: None,
            losing: false,
            unrecorded: false,
            witness: Witness::Older { behind: 0 },
            known_on_legs: false,
        }
    }
    /// Which granules are given away: those of the volumes in the configuration, and those that rest. Never kept beside
    /// them, so that it cannot say anything else.
    pub fn space(&self) -> Granules {
        self.config().space().expect("volumes of a configuration do not overlap")
    }
    /// Bytes of what is returned: nobody's, and not yet free.
    pub fn resting_bytes(&self) -> u64 {
        self.config().returned().iter().map(|run| run.count * volume::GRANULE_BYTES).sum()
    }
}

pub(crate) struct ArrayDesk {
    pub id: ArrayId,
    pub geometry: Geometry,
    pub dirty: Arc<Bitmap>,
    pub unclean: bool,
    /// When shards were first told of it: from then on they compare what may differ.
    pub compared_since: Option<Instant>,
    /// Shards whose lanes are the same on all legs since the start.
    pub clean: BTreeSet<u16>,
    /// What the maps said at the start; the last mark of returned space since, the shards that have done their part of it, and those
    /// that have no uncleared piece left since then.
    pub uncleared: Arc<UnclearedMap>,
    pub marks: u32,
    pub marked: BTreeSet<u16>,
    pub cleared: BTreeSet<u16>,
    /// Shards that have marked every region dirty, durably.
    pub all_dirty: BTreeSet<u16>,
    pub legs: Vec<LegDesk>,
    pub healed: u64,
    pub medium_lost: u64,
}

pub(crate) struct LegDesk {
    /// The drive's own name.
    pub uuid: Uuid,
    /// Its place in the shards' arrays, as long as it is a leg. The record and the configuration count without gaps.
    pub place: usize,
    pub path: String,
    pub open: Option<OpenDrive>,
    /// Why it is not in sync: one sentence.
    pub reason: String,
    /// It is out, and this is what was found instead.
    pub found: Option<Found>,
    /// Shards that have copied what it lacks.
    pub synced: BTreeSet<u16>,
    /// Epoch in which it joined.
    pub joined: u64,
    /// Everything is copied to it, not only what the bitmaps marked when it went.
    pub full: bool,
    /// Shards whose reads of it take far longer than those of other legs.
    pub slow: BTreeSet<u16>,
    /// An event said that it is slow, and none that it is well again.
    pub told_slow: bool,
    /// No shard finds it slow since then.
    pub quiet_since: Option<Instant>,
    /// When it was put out or missed first, by this head; and what is to be expected of it.
    pub out_since: Option<Instant>,
    pub outlook: Outlook,
    /// `out_since` of when an event told that no spare fits in its place.
    pub told_unfit: Option<Instant>,
    /// When it is tried to take it back, and how often that was done.
    pub return_at: Option<Instant>,
    pub returns: u32,
    /// The last one in sync, gone as it was opened: when it is looked for, and how often it was. And what was opened,
    /// once nobody uses it.
    pub look_at: Option<Instant>,
    pub looks: u32,
    pub dead: Option<DriveId>,
}

impl LegDesk {
    pub fn new(uuid: Uuid, place: usize, path: String, open: Option<OpenDrive>, joined: u64) -> Self {
        let (reason, found, synced, slow, told_slow, quiet_since) = Default::default();
        let (full, out_since, outlook, return_at, returns) = Default::default();
        let (look_at, looks, dead, told_unfit) = Default::default();
        Self {
            uuid,
            place,
            path,
            open,
            reason,
            found,
            synced,
            joined,
            full,
            slow,
            told_slow,
            quiet_since,
            out_since,
            outlook,
            told_unfit,
            return_at,
            returns,
            look_at,
            looks,
            dead,
        }
    }
}

#[derive(Clone)]
pub(crate) struct OpenDrive {
    pub id: DriveId,
    pub info: DriveInfo,
    pub label: Label,
}

/// What a pool's keeper shall bring about.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    /// A leg is out.
    Lost { array: usize, leg: usize, why: String, outlook: Outlook },
    /// A leg is there (its drive is open on the desk) and is resynced.
    Joined { array: usize, leg: usize, full: bool, new: bool },
    /// A leg has everything.
    Synced { array: usize, leg: usize },
}

impl Desk {
    pub fn new(shards: u16, entropy: [u64; 4], version: String, notices: Vec<String>) -> Self {
        Self {
            shards,
            version,
            state: Decided::default(),
            journal: Journal::default(),
            filing: false,
            prng: Prng::from_entropy(entropy),
            clock: None,
            started: Instant(0),
            generation: 0,
            applied: vec![0; usize::from(shards)],
            quiesced: BTreeSet::new(),
            rooms: vec![],
            asking_room: false,
            promised: Room::default(),
            portals: vec![],
            pools: vec![],
            absent: vec![],
            appeared: vec![],
            looks: Looks::default(),
            sessions: Sessions::default(),
            orders: VecDeque::new(),
            ordering: false,
            importing: BTreeSet::new(),
            ready: false,
            held: false,
            stop: Stop::default(),
            cut_short: false,
            events: VecDeque::new(),
            event_next: 1,
            unlogged: VecDeque::new(),
            notices,
            unread: vec![],
            losses: vec![],
            files: BTreeSet::new(),
            file_changes: BTreeMap::new(),
            restored: BTreeSet::new(),
            hosts_missing: false,
            unwritable: None,
            reports: vec![None; usize::from(shards)],
            reported: vec![0; usize::from(shards)],
            times: Times::default(),
            shapes: BTreeMap::new(),
            shapes_at_start: BTreeMap::new(),
            last_protocol_errors: BTreeMap::new(),
            speeds: BTreeMap::new(),
            turned_away: TurnedAway::default(),
            ills: BTreeMap::new(),
            lives: BTreeMap::new(),
            found: BTreeMap::new(),
            departed: vec![],
            stood_in: vec![],
            free_drives: VecDeque::new(),
            ids: Ids::default(),
        }
    }

    /// What is decided.
    pub fn state(&self) -> &Decided {
        &self.state
    }
    /// Takes a change that was checked and is durable. There is no other way to change what is decided.
    pub fn apply(&mut self, change: Change) {
        if let Err(why) = self.state.check(&change) {
            // Rather as it was than something that contradicts itself.
            debug_assert!(false, "{change:?} was not checked: {why:?}");
            return;
        }
        let pool = change.pool();
        self.journal.applied(self.state.number() + 1, &change);
        self.state.apply(change);
        if planted(Bug::WrittenPastApply) && self.state.number() == 12 {
            self.state.written_past_apply();
        }
        if let Some(uuid) = pool {
            let away = self.state.away().iter().filter(|a| a.row().uuid == uuid);
            away.for_each(|away| self.absent.iter_mut().for_each(|p| p.is(away)));
        }
        let Some(now) = pool.and_then(|uuid| self.state.pool(uuid)) else { return };
        for p in self.pools.iter_mut().filter(|p| p.state.config().uuid == now.config().uuid) {
            p.state.clone_from(now);
        }
    }
    /// A pool that was away is forgotten.
    pub fn forget_absent(&mut self, pool: Uuid) {
        self.absent.retain(|p| p.uuid() != pool);
        let change = Change::AwayEnded { pool };
        if self.state.check(&change).is_ok() {
            self.apply(change);
        }
    }
    /// A leg or a spare of a pool has another path.
    pub fn moved(&mut self, id: PoolId, drive: Uuid, path: &str) {
        let Some(p) = self.pool(id) else { return };
        let pool = p.config().uuid;
        let change = Change::DriveMoved { pool, drive, path: path.into() };
        if self.state.check(&change).is_ok() {
            self.apply(change);
        }
    }
    /// The system that this head is.
    pub fn me(&self) -> Uuid {
        self.state.identity().uuid
    }
    /// What hosts are told of it.
    pub fn system(&self) -> System {
        let Identity { uuid, nqn, iqn, serial } = self.state.identity().clone();
        let firmware = self.version.chars().take(8).collect();
        System { uuid, nqn, iqn, serial, model: "Millrace".into(), firmware }
    }
    /// Who may come.
    pub fn hosts(&self) -> &Hosts {
        self.state.hosts()
    }
    /// Pools that are being made, or whose drives could not be freed after they were not.
    pub fn creating(&self) -> &[PoolRow] {
        self.state.list(List::Creating)
    }
    /// Pools that were let go of, and where their drives lay.
    pub fn released(&self) -> &[PoolRow] {
        self.state.list(List::Released)
    }
    /// How a drive at this place behaves: `open`, or as it will when it is opened.
    pub fn shape_of(&self, open: Option<&OpenDrive>, path: &str) -> Option<&Shape> {
        match open {
            Some(open) => self.shapes.get(&open.id),
            None => self.shapes_at_start.get(path),
        }
    }
    pub fn new_uuid(&mut self) -> Uuid {
        Uuid::from_random(self.prng.next_u64(), self.prng.next_u64())
    }
    /// A record's name.
    pub fn new_incarnation(&mut self) -> u64 {
        self.prng.next_u64().max(1)
    }
    pub fn new_drive(&mut self) -> DriveId {
        // Not at once: who waits for the end of the drive before must have seen it.
        if self.free_drives.len() > FREE_DRIVES {
            return self.free_drives.pop_front().expect("there are many");
        }
        self.ids.drive = self.ids.drive.checked_add(1).expect("drives of pools are fewer than 65535");
        DriveId(self.ids.drive)
    }
    /// Nobody uses this number any more. One under which shards count stays with its drive.
    pub fn free_drive(&mut self, id: DriveId) {
        if !self.lives.values().any(|ids| ids.contains(&id)) {
            self.free_drives.push_back(id);
        }
    }
    /// Notes under which numbers the drives of pools are used.
    pub fn note_lives(&mut self) {
        let legs = self.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
        for (uuid, id) in legs.filter_map(|l| Some((l.uuid, l.open.as_ref()?.id))) {
            self.lives.entry(uuid).or_default().insert(id);
        }
    }
    /// Operations on a drive that failed or were late, and how the last of them failed.
    pub fn errors_of(&self, id: DriveId) -> (u64, Option<DriveError>) {
        let figures = self.reports.iter().flatten().flat_map(|r| &r.drives).filter(|d| d.drive == id);
        figures.fold((0, None), |(n, last), d| (n + d.counters.errors + d.timeouts, d.last_error.or(last)))
    }
    /// Notes what ails a drive, or that nothing does; tells when that changed.
    pub fn set_ill(&mut self, now: Instant, id: DriveId, path: &str, ill: Option<Ill>) {
        let what = format!("drive {path}");
        match (self.ills.get(&id), ill) {
            (was, Some(is)) if was != Some(&is) => {
                self.event(now, Weight::Error, what, is.words.clone());
                self.ills.insert(id, is);
            }
            (Some(_), None) => {
                self.ills.remove(&id);
                self.event(now, Weight::Note, what, "it is well again");
            }
            _ => {}
        }
    }
    pub fn new_volume(&mut self) -> VolumeId {
        self.ids.volume += 1;
        VolumeId(self.ids.volume)
    }
    pub fn new_host(&mut self) -> base::HostId {
        self.ids.host += 1;
        base::HostId(self.ids.host)
    }
    /// A number that no portal has, and that none had for as long as possible: hosts know a portal by it
    /// (NVMe port id, portal group tag and relative port are this + 1, from 1 to 65535).
    pub fn new_portal(&mut self) -> PortalId {
        loop {
            self.ids.portal = self.ids.portal.checked_add(1).unwrap_or(1);
            let id = PortalId(u32::from(self.ids.portal) - 1);
            if self.portals.iter().all(|p| p.portal.id != id) {
                return id;
            }
        }
    }
    /// The number that was given to a portal last; 0 before the first.
    pub fn last_portal(&self) -> u16 {
        self.ids.portal
    }
    /// Numbers after this one are given next.
    pub fn portal_given_last(&mut self, number: u16) {
        self.ids.portal = number;
    }
    /// A portal on the desk; `publish` makes the shards listen.
    pub fn put_portal(&mut self, portal: Portal) {
        let results = vec![None; usize::from(self.shards)];
        self.portals.push(PortalDesk { portal, results, tried: false });
    }
    pub fn new_pool(&mut self) -> PoolId {
        self.ids.pool += 1;
        PoolId(self.ids.pool)
    }
    pub fn new_array(&mut self) -> ArrayId {
        self.ids.array += 1;
        ArrayId(self.ids.array)
    }
    /// Seconds since 1970-01-01 UTC; 0 while the clock is unknown.
    pub fn unix(&self, now: Instant) -> u64 {
        self.clock.map_or(0, |(at, unix_ms)| (unix_ms + now.since(at).as_millis() as u64) / 1000)
    }
    pub fn event(
        &mut self,
        now: Instant,
        weight: Weight,
        what: impl Into<String>,
        message: impl Into<String>,
    ) {
        let line = EventLine {
            number: self.event_next,
            at: self.unix(now),
            monotonic: Some(now),
            weight,
            what: what.into(),
            message: message.into(),
        };
        self.event_next += 1;
        self.unlogged.push_back(line.clone());
        self.keep_event(line);
    }
    pub fn keep_event(&mut self, line: EventLine) {
        self.events.push_back(line);
        if self.events.len() > EVENTS_KEPT {
            self.events.pop_front();
        }
    }
    pub fn pool(&self, id: PoolId) -> Option<&PoolDesk> {
        self.pools.iter().find(|p| p.id == id)
    }
    pub fn pool_mut(&mut self, id: PoolId) -> Option<&mut PoolDesk> {
        self.pools.iter_mut().find(|p| p.id == id)
    }
    /// The pool of this name, or a refusal.
    pub fn pool_named(&self, name: &str) -> Result<&PoolDesk, Refusal> {
        self.pools.iter().find(|p| p.config().name == name && !p.leaving).ok_or_else(|| {
            let absent = self.absent.iter().find(|p| p.name() == name);
            match absent {
                Some(p) => refuse(
                    RefusalKind::NotReady,
                    "pool",
                    format!("pool {name} is not imported: {}", p.reason),
                )
                .then_try(p.next.clone()),
                None => refuse(RefusalKind::NotFound, "pool", format!("there is no pool {name}"))
                    .then("millrace pool ls"),
            }
        })
    }
    /// Splits `pool/volume` and finds both.
    pub fn volume_named(&self, name: &str) -> Result<(PoolId, Uuid), Refusal> {
        let Some((pool_name, volume)) = name.split_once('/') else {
            let message = format!("{name:?} is no volume: volumes are named POOL/VOLUME");
            return Err(refuse(RefusalKind::Invalid, "volume", message).then("millrace volume ls"));
        };
        let pool = self.pool_named(pool_name).map_err(|r| Refusal { field: Some("volume".into()), ..r })?;
        let volume = pool.config().volumes.by_name(volume).ok_or_else(|| {
            refuse(RefusalKind::NotFound, "volume", format!("there is no volume {name}"))
                .then("millrace volume ls")
        })?;
        Ok((pool.id, volume.uuid))
    }
    /// A leg by its drive's path or UUID.
    pub fn leg_named(&self, drive: &str) -> Option<(PoolId, usize, usize)> {
        let uuid: Option<Uuid> = drive.parse().ok();
        for p in &self.pools {
            for (a, array) in p.arrays.iter().enumerate() {
                for (l, leg) in array.legs.iter().enumerate() {
                    let canonical = leg.open.as_ref().is_some_and(|o| o.info.path == drive);
                    if leg.path == drive || canonical || uuid == Some(leg.uuid) {
                        return Some((p.id, a, l));
                    }
                }
            }
        }
        None
    }
    /// How many legs and spares have this path or UUID. A drive that is missing is called by the path that it had last, and
    /// another may lie there today.
    pub fn drives_called(&self, drive: &str) -> usize {
        let uuid: Option<Uuid> = drive.parse().ok();
        let legs = self.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
        let spares = self.pools.iter().flat_map(|p| &p.spares);
        let names = legs.map(|l| (&l.path, l.uuid)).chain(spares.map(|s| (&s.path, s.uuid)));
        names.filter(|(path, u)| *path == drive || uuid == Some(*u)).count()
    }
    /// An order was carried out: of spares that are no legs any more nothing is told.
    pub fn forget_stand_ins(&mut self) {
        let pools = &self.pools;
        self.stood_in.retain(|s| {
            let pool = pools.iter().find(|p| p.config().uuid == s.pool);
            let mut legs = pool.into_iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
            legs.any(|l| l.uuid == s.leg)
        });
    }
    /// A drive was looked at.
    pub fn note_found(&mut self, probe: &Probe) {
        let found = Found::of(probe);
        self.found.retain(|_, f| found.drive().is_none() || f.drive() != found.drive());
        self.found.insert(found.path().into(), found);
    }
    /// A drive is there and could not be looked at.
    pub fn note_mute(&mut self, path: String, words: String) {
        self.found.insert(path.clone(), Found::Mute { path, words });
    }
    /// What was found of a drive that should be at this path and cannot be used.
    pub fn found_for(&self, drive: Uuid, path: &str) -> Option<Found> {
        let itself = self.found.values().find(|f| f.drive() == Some(drive));
        match itself {
            Some(Found::Drive { drive, path, .. }) => {
                Some(Found::Moved { drive: *drive, path: path.clone() })
            }
            Some(_) => itself.cloned(),
            None => self.found.get(path).cloned(),
        }
    }
    /// A leg has left: its figures stay with the place where its drive lay.
    pub fn departs(&mut self, leg: Option<(Uuid, String)>) {
        const REMEMBERED: usize = 64;
        self.departed.extend(leg);
        if self.departed.len() > REMEMBERED {
            self.departed.remove(0);
        }
    }
    /// Operations that failed or were late on drives that were at this path and have left their pools.
    pub fn errors_of_departed(&self, path: &str) -> u64 {
        let drives = self.departed.iter().filter(|(_, at)| *at == path);
        let ids = drives.filter_map(|(uuid, _)| self.lives.get(uuid)).flatten();
        ids.map(|id| self.errors_of(*id).0).sum()
    }
    /// A spare by its drive's path or UUID.
    pub fn spare_named(&self, drive: &str) -> Option<(PoolId, SpareDesk)> {
        let uuid: Option<Uuid> = drive.parse().ok();
        let mut spares = self.pools.iter().flat_map(|p| p.spares.iter().map(|s| (p.id, s)));
        let found = spares.find(|(_, s)| s.path == drive || uuid == Some(s.uuid));
        found.map(|(id, s)| (id, s.clone()))
    }
    /// Which of the drives that we hold has blocks of this one, too: its path and pool.
    pub fn overlapping(&self, info: &DriveInfo) -> Option<(&str, &str)> {
        self.pools.iter().find_map(|p| {
            let legs = p.arrays.iter().flat_map(|a| &a.legs).filter_map(|l| l.open.as_ref());
            let mut open = legs.chain(p.spares.iter().filter_map(|s| s.open.as_ref()));
            // A spare that takes a place is opened beside itself; who names a drive of ours by its own name is told elsewhere.
            let found = open.find(|o| o.info.path != info.path && o.info.overlaps(info))?;
            Some((found.info.path.as_str(), p.config().name.as_str()))
        })
    }
    /// The pool of a drive that we hold, by its path or specification.
    pub fn holds(&self, spec: &str) -> Option<String> {
        let path = crate::steward::health::shaped::bare(spec);
        if crate::steward::pools::released::anonymous(path) {
            return None;
        }
        if let Some((id, _)) = self.spare_named(path).filter(|(_, s)| s.open.is_some()) {
            return self.pool(id).map(|p| p.config().name.clone());
        }
        let mut legs = self.pools.iter().flat_map(|p| {
            p.arrays
                .iter()
                .flat_map(|a| &a.legs)
                .filter_map(move |l| Some((&p.config().name, l.open.as_ref()?, &l.path)))
        });
        legs.find(|(_, open, at)| open.info.path == path || *at == path).map(|(pool, ..)| pool.clone())
    }
}

impl PoolDesk {
    /// What is decided of it.
    pub fn state(&self) -> &Pool {
        &self.state
    }
    /// What it is.
    pub fn config(&self) -> &PoolConfig {
        self.state.config()
    }
    /// Generation of the configuration on the drives.
    pub fn generation(&self) -> u64 {
        self.state.generation()
    }
    /// The membership record in force.
    pub fn record(&self) -> &MembershipRecord {
        self.proposed.as_ref().unwrap_or(self.state.record())
    }
    /// The next record is in force. It is decided once it is where it must be (`Desk::decide`).
    pub fn propose(&mut self, record: MembershipRecord) {
        self.proposed = Some(record);
    }
    /// The change that brings it.
    pub fn comes(&self) -> Change {
        let (config, generation) = (self.config().clone(), self.generation());
        Change::PoolCame { config, generation, record: self.record().clone() }
    }
    /// A pool that comes is another than it was thought to become.
    pub fn comes_as(&mut self, state: Pool) {
        self.state = Arc::new(state);
    }
    /// The state of a leg, as it is on record. One that is about to join is not there yet.
    pub fn leg_state(&self, array: usize, leg: usize) -> LegState {
        // Who looked at an array that was removed meanwhile finds nobody there.
        let row = self.record().arrays.get(array).and_then(|row| row.legs.get(leg));
        row.map_or(LegState::Out, |l| l.state)
    }
    /// Whether a leg is being resynced.
    pub fn rebuilds(&self, array: usize, leg: usize) -> bool {
        matches!(self.leg_state(array, leg), LegState::Rebuilding | LegState::RebuildingFull)
    }
    /// Whether a leg gets nothing.
    pub fn is_out(&self, array: usize, leg: usize) -> bool {
        matches!(self.leg_state(array, leg), LegState::Out | LegState::JustOut)
    }
    /// Legs that get metadata: those that take part and whose drive is open.
    pub fn reachable(&self) -> Vec<(usize, usize, OpenDrive)> {
        let mut out = vec![];
        for (a, array) in self.arrays.iter().enumerate() {
            for (l, leg) in array.legs.iter().enumerate() {
                let takes_part = !matches!(self.leg_state(a, l), LegState::Out | LegState::JustOut);
                if let Some(open) = leg.open.as_ref().filter(|_| takes_part) {
                    out.push((a, l, open.clone()));
                }
            }
        }
        out
    }
    /// Whether the leg is the only one of its array in sync.
    pub fn is_last(&self, array: usize, leg: usize) -> bool {
        let legs = self.record().arrays.get(array).map_or(&[][..], |row| &row.legs);
        let in_sync = |i: &usize| legs[*i].state == LegState::InSync;
        leg < legs.len() && in_sync(&leg) && (0..legs.len()).filter(in_sync).count() == 1
    }
    /// Every array can answer.
    pub fn complete(&self) -> bool {
        (0..self.arrays.len()).all(|a| {
            let legs = self.arrays[a].legs.iter().enumerate();
            legs.filter(|(l, leg)| leg.open.is_some() && self.leg_state(a, *l) == LegState::InSync).count()
                > 0
        })
    }
    pub fn array_uuid(&self, array: usize) -> Uuid {
        array_uuid(self.config().uuid, array)
    }
    pub fn drive_path(&self, array: usize, leg: usize) -> &str {
        &self.arrays[array].legs[leg].path
    }
}

/// What may be expected of a leg that is out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Outlook {
    /// It is gone or silent, and may come back.
    #[default]
    MayReturn,
    /// It answers and refuses.
    Broken,
    /// The operator took it out, and will say when it comes back.
    ByHand,
    /// It leaves the pool.
    Leaves,
}

/// A drive that answers and refuses does not come back by itself; one that is gone or silent may.
pub(crate) fn outlook(error: DriveError) -> Outlook {
    match error {
        DriveError::Medium | DriveError::Other(_) => Outlook::Broken,
        DriveError::Gone | DriveError::TimedOut | DriveError::NoSpace | DriveError::Cut => Outlook::MayReturn,
    }
}

/// What a drive did, after "the drive".
pub(crate) fn error_words(error: DriveError) -> String {
    match error {
        DriveError::Medium => "failed to read or write blocks".into(),
        DriveError::Gone => "is gone".into(),
        DriveError::NoSpace => "has no space left (the file system below it is full)".into(),
        DriveError::Cut => "was cut off (its file is shorter than it was)".into(),
        DriveError::TimedOut => "did not answer in time".into(),
        // EPERM from a device that may not be written, EROFS from the file system below a file.
        DriveError::Other(errno @ (1 | 30)) => format!("is read-only (error {errno})"),
        DriveError::Other(errno) => format!("failed with error {errno}"),
    }
}

/// What a drive did, after "the drive". A block device has no file system below it.
fn did(info: &DriveInfo, error: DriveError) -> String {
    match error {
        DriveError::NoSpace if info.kind == "block" => NO_SPACE_BLOCK.into(),
        _ => error_words(error),
    }
}

/// Why a drive did not take its label, and the command that shows more.
pub(crate) fn not_labelled(info: &DriveInfo, error: DriveError) -> (String, String) {
    let path = &info.path;
    let next = match error {
        DriveError::NoSpace if info.kind == "file" => format!("df -h {path}"),
        _ => "millrace drive ls".into(),
    };
    (format!("{path} could not be labelled: the drive {}", did(info, error)), next)
}

impl OpenDrive {
    /// What it did, after "the drive".
    pub(crate) fn did(&self, error: DriveError) -> String {
        did(&self.info, error)
    }
}

/// Writes behind the end of a block device fail so, and those that a thin volume has no block for.
pub(crate) const NO_SPACE_BLOCK: &str =
    "has no space left (it became smaller than it was, or is a thin volume whose pool is full)";

/// `n` things: `1 volume`, `2 volumes`.
pub(crate) fn count(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// The same of a number that is counted for long.
pub(crate) fn count_of(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// An array as `status` names it: `mirror-0`, `single-3`.
pub(crate) fn array_word(mirror: bool, index: usize) -> String {
    format!("{}-{index}", if mirror { "mirror" } else { "single" })
}

/// A refusal about a field, with the command that shows what there is of such things.
pub(crate) fn refuse(kind: RefusalKind, field: &str, message: impl Into<String>) -> Refusal {
    let next = match (kind, field) {
        (RefusalKind::Internal, _) | (_, "") => "millrace events, or journalctl -u millrace -n 20",
        (_, "drive" | "drives" | "old" | "new" | "prefer") => "millrace drive ls",
        (_, "host" | "nqns" | "iqns" | "chap_user" | "chap_secret" | "mutual_secret") => "millrace host ls",
        (_, "volume" | "bytes" | "lun") => "millrace volume ls",
        (_, "address") => "millrace portal ls",
        (_, "pool" | "arrays" | "weight" | "chunk_bytes" | "block_bytes") => "millrace pool ls",
        (..) => "millrace status",
    };
    let field = (!field.is_empty()).then(|| field.to_string());
    Refusal { kind, field, message: message.into(), next: Some(next.into()) }
}

impl Refusal {
    /// The command that helps.
    pub(crate) fn then(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
    /// The command that helps, if there is one.
    pub(crate) fn then_try(self, next: Option<String>) -> Self {
        Self { next: next.or(self.next), ..self }
    }
}
