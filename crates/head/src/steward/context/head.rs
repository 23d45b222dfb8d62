//! The context: all that the Steward knows and decides at one moment.

use crate::layout::{ArrayId, Layout, PoolId};
use crate::mail::Room;
use crate::order::{Event, EventLine, Notice, Order, Refusal, State};
use crate::peer::PeerNews;
use crate::report::ShardReport;
use crate::steward::context::absent::AbsentPool;
use crate::steward::context::addresses::Addresses;
use crate::steward::context::array::ArrayContext;
use crate::steward::context::found::Found;
use crate::steward::context::looks::Looks;
use crate::steward::context::loss::Loss;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::overdue::Overdue;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::context::spare::SpareContext;
use crate::steward::context::system::SystemContext;
use crate::steward::record::texts::protocol_word;
use crate::steward::sessions::arrivals::{Arrivals, PathAt};
use crate::steward::sessions::rejections::Rejections;
use crate::steward::sessions::table::Sessions;
use crate::steward::state::journal::Journal;
use crate::steward::state::{Change, Identity, List, PoolRow, State as Decided};
use crate::steward::status::speed::{Speed, Work};
use crate::steward::status::times::Times;
use access::Hosts;
use array::format::MembershipRecord;
use base::DriveKind;
use base::machine::Shape;
use base::view::{PathState, Portal, System, View};
use base::{
    Bug, ConnectionFault, DriveError, DriveId, DriveInfo, Instant, NetError, PortalId, Prng, Uuid, VolumeId,
    planted, planted_if,
};
use core::net::SocketAddr;
use finding::{Cause, DriveFault, LegEvent, PoolEvent, PoolRefusal, RecordCause, StateFault, VolumeRefusal};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Events that are kept in memory for `status` and `events`.
const EVENTS_KEPT: usize = 1000;
/// Numbers of drives that rest before they are used again.
const FREE_DRIVES: usize = 256;

pub(crate) struct HeadContext {
    /// Shards of this head, and those of the other one, behind them, that take part.
    pub own_shards: u16,
    pub far_shards: u16,
    /// By which shards of both heads know each other.
    pub far_secret: [u8; 32],
    /// The number of the last meeting with those, and shards here that have a connection with each of them since.
    pub meeting: u32,
    pub far_met: BTreeSet<u16>,
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
    /// Arrays of which shards have said that they sent nothing of them to others any more, and that they are quiet.
    pub halted: BTreeSet<(ArrayId, u16)>,
    pub quiesced: BTreeSet<(ArrayId, u16)>,
    /// Under which number each array was asked to come to rest last.
    rests: BTreeMap<ArrayId, u32>,
    /// The last number under which shards here were asked for something that they confirm, by this Steward or by the leader before.
    last_number: u32,
    /// From which shard on lanes are dealt.
    pub lanes_turned: u16,
    /// Under which number shards were asked for room last; what they have said to that of the mirrors that they have room for, and most
    /// could have.
    room_number: u32,
    pub rooms: Vec<Option<(Room, u32)>>,
    /// Somebody asks them just now; and mirrors that have their memory and are not in the context yet.
    pub asking_room: bool,
    pub promised: Room,
    pub portals: Vec<PortalContext>,
    /// Those of portals that move.
    pub addresses: Addresses,
    pub pools: Vec<PoolContext>,
    /// Pools that should be here and are not, with the reason.
    pub absent: Vec<AbsentPool>,
    /// Block devices that were not there at the start.
    pub appeared: Vec<String>,
    /// The looks at drives.
    pub looks: Looks,
    pub sessions: Sessions,
    /// The system that this head is one of two of.
    pub system: Option<SystemContext>,
    /// What the link told before that was known.
    early: Vec<PeerNews>,
    pub orders: VecDeque<(Option<u64>, Order)>,
    pub ordering: bool,
    /// The order that is carried out.
    pub under_way: Option<Overdue>,
    /// The order that was not over at its limit.
    pub overdue: Option<Overdue>,
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
    pub notices: Vec<Notice>,
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
    /// Where the state directory is, as operators call it.
    pub state_directory: String,
    /// Rows of its files that this program does not understand, by file.
    pub unknown_rows: BTreeMap<&'static str, Vec<files::UnknownRow>>,
    /// Why the state directory takes nothing, if that is so.
    pub unwritable: Option<StateFault>,
    /// The latest figures of each shard, and how often it has told them.
    pub reports: Vec<Option<ShardReport>>,
    pub reported: Vec<u64>,
    /// How often it has changed which shards have told theirs.
    pub reports_basis: u64,
    /// Where the time of commands went.
    pub times: Times,
    pub shapes: BTreeMap<DriveId, Shape>,
    /// See `StewardConfig::shapes`.
    pub shapes_at_start: BTreeMap<String, Shape>,
    pub last_protocol_errors: BTreeMap<u16, ConnectionFault>,
    /// How fast legs are rebuilt.
    pub speeds: BTreeMap<Work, Speed>,
    /// Of each path: reads, bytes read, writes, bytes written.
    pub path_speeds: BTreeMap<PathAt, [Speed; 4]>,
    /// Which paths of hosts have connections.
    pub arrivals: Arrivals,
    pub rejections: Rejections,
    /// What ails drives that stay in use.
    pub ills: BTreeMap<DriveId, Ill>,
    /// Every number that a drive of a pool has had: figures go on when it returns.
    pub lives: BTreeMap<Uuid, BTreeSet<DriveId>>,
    /// What was found at paths at the last look there, while drives of pools were looked for.
    pub found: BTreeMap<String, Found>,
    /// Drives that were legs and have left, with where they lay: newest last.
    pub departed: Vec<(Uuid, String)>,
    /// Under which numbers shards know volumes and hosts by the former leader's words: they keep them.
    pub former_volumes: BTreeMap<Uuid, VolumeId>,
    pub former_hosts: BTreeMap<String, base::HostId>,
    /// What shards here said of portals while the former leader led.
    pub former_listens: BTreeMap<(PortalId, u16), Result<SocketAddr, NetError>>,
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

pub(crate) struct PortalContext {
    pub portal: Portal,
    /// What each shard said.
    pub results: Vec<Option<Result<SocketAddr, NetError>>>,
    /// Of which head those are.
    pub at: u8,
    /// It is being added: whoever asked for it is told how that went, and nobody else.
    pub tried: bool,
}

impl PortalContext {
    /// It is being added, or was.
    pub fn is_tried(&mut self, tried: bool) {
        self.tried = tried;
    }
    /// So many shards of this head listen there, or are to. Nothing is known of others.
    fn is_at(&mut self, head: u8, shards: u16) {
        if (self.at, self.results.len()) != (head, usize::from(shards)) {
            (self.at, self.results) = (head, vec![None; usize::from(shards)]);
        }
    }
    /// What a shard said.
    pub fn is_told(&mut self, shard: u16, result: Result<SocketAddr, NetError>) {
        self.results[usize::from(shard)] = Some(result);
    }
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
    /// What is wrong.
    pub cause: RecordCause,
}

/// What ails a drive that stays in use, since nothing else has what it has (or it may well recover).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ill {
    pub state: State,
    /// Why, with what helps.
    pub cause: Cause,
}

impl HeadContext {
    /// The record is where it must be. If it is the one in force, it is decided.
    pub fn decide(&mut self, id: PoolId, record: &MembershipRecord) {
        let Some(p) = self.pool(id) else { return };
        if p.record().incarnation != record.incarnation || self.state.pool(p.config().uuid).is_none() {
            return;
        }
        let record = self.pool_mut(id).and_then(PoolContext::take_proposed);
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
        let was_decided = !p.is_proposed();
        let mut settled = p.record().clone();
        settled.settle();
        p.propose(settled.clone());
        if was_decided {
            self.decide(id, &settled);
        }
    }
}

impl HeadContext {
    pub fn new(shards: u16, entropy: [u64; 4], version: String, notices: Vec<Notice>) -> Self {
        Self {
            own_shards: shards,
            far_shards: 0,
            far_secret: [0; 32],
            meeting: 0,
            far_met: BTreeSet::new(),
            version,
            state: Decided::default(),
            journal: Journal::default(),
            filing: false,
            prng: Prng::from_entropy(entropy),
            clock: None,
            started: Instant(0),
            generation: 0,
            applied: vec![0; usize::from(shards)],
            halted: BTreeSet::new(),
            quiesced: BTreeSet::new(),
            rests: BTreeMap::new(),
            last_number: 0,
            lanes_turned: 0,
            room_number: 0,
            rooms: vec![],
            asking_room: false,
            promised: Room::default(),
            portals: vec![],
            addresses: Addresses::default(),
            pools: vec![],
            absent: vec![],
            appeared: vec![],
            looks: Looks::default(),
            sessions: Sessions::default(),
            system: None,
            early: vec![],
            orders: VecDeque::new(),
            ordering: false,
            under_way: None,
            overdue: None,
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
            state_directory: String::new(),
            unknown_rows: BTreeMap::new(),
            unwritable: None,
            reports: vec![None; usize::from(shards)],
            reported: vec![0; usize::from(shards)],
            reports_basis: 0,
            times: Times::default(),
            shapes: BTreeMap::new(),
            shapes_at_start: BTreeMap::new(),
            last_protocol_errors: BTreeMap::new(),
            speeds: BTreeMap::new(),
            path_speeds: BTreeMap::new(),
            arrivals: Arrivals::default(),
            rejections: Rejections::default(),
            ills: BTreeMap::new(),
            lives: BTreeMap::new(),
            found: BTreeMap::new(),
            departed: vec![],
            former_volumes: BTreeMap::new(),
            former_hosts: BTreeMap::new(),
            former_listens: BTreeMap::new(),
            free_drives: VecDeque::new(),
            ids: Ids::default(),
        }
    }

    /// All shards that take part: they have the numbers below this.
    pub fn shards(&self) -> u16 {
        self.own_shards + self.far_shards
    }
    /// What is known of those of the other head.
    pub fn far<'a, T>(&self, all: &'a [T]) -> impl Iterator<Item = &'a T> + use<'a, T> {
        all.iter().skip(usize::from(self.own_shards))
    }
    /// So many of them, the first ones, know this array.
    pub fn shards_of(&self, array: ArrayId) -> u16 {
        let pool = self.pools.iter().find(|p| p.arrays.iter().any(|a| a.id == array));
        pool.map_or(self.own_shards, |p| p.shards)
    }
    /// These arrays are to come to rest: what shards say under another number than this is of an attempt before, which was taken back.
    pub fn asks_for_rest(&mut self, arrays: &[ArrayId]) -> u32 {
        self.halted.retain(|(array, _)| !arrays.contains(array));
        self.quiesced.retain(|(array, _)| !arrays.contains(array));
        let number = self.next_number();
        self.rests.extend(arrays.iter().map(|array| (*array, number)));
        number
    }
    /// Shards are asked for something that they confirm: under a number that nothing else has.
    pub fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }
    /// The leader has asked shards here under this number: what they say to that may come when this head leads.
    pub fn leader_asks(&mut self, number: u32) {
        self.last_number = self.last_number.max(number);
    }
    /// Whether an array was asked to come to rest under this number, and not again since.
    pub fn is_asked(&self, array: ArrayId, number: u32) -> bool {
        self.rests.get(&array) == Some(&number) || planted(Bug::RestOfBefore)
    }
    /// Whether all of them have said that they sent nothing of these arrays to others any more.
    pub fn are_halted(&self, arrays: &[ArrayId]) -> bool {
        arrays.iter().all(|a| {
            let are_halted = |shards: u16| (0..shards).all(|s| self.halted.contains(&(*a, s)));
            are_halted(self.shards_of(*a)) || planted_if(Bug::RunByOldMap, || are_halted(self.own_shards))
        })
    }
    /// Whether all of them have said that these arrays are quiet.
    pub fn are_quiet(&self, arrays: &[ArrayId]) -> bool {
        arrays.iter().all(|a| (0..self.shards_of(*a)).all(|s| self.quiesced.contains(&(*a, s))))
    }
    /// A shard has this configuration in force.
    pub fn has_applied(&mut self, shard: u16, generation: u64) {
        let applied = &mut self.applied[usize::from(shard)];
        *applied = generation.max(*applied);
    }
    /// A shard has told its figures.
    pub fn has_reported(&mut self, report: ShardReport) {
        let slot = usize::from(report.shard);
        if self.reports[slot].replace(report).is_none() {
            self.reports_basis += 1;
        }
        self.reported[slot] += 1;
    }
    /// Shards here got this of the former leader: what this one makes has numbers behind those.
    pub fn has_seen(&mut self, view: &View, layout: &Layout) {
        self.generation = self.generation.max(view.generation);
        let exports = view.hosts.iter().flat_map(|h| &h.exports);
        self.former_volumes = exports.map(|e| (e.uuid, e.volume)).collect();
        self.former_hosts = view.hosts.iter().map(|h| (h.name.clone(), h.id)).collect();
        let ids = &mut self.ids;
        let hosts = view.hosts.iter().map(|h| h.id.0);
        ids.host = ids.host.max(hosts.max().unwrap_or(0));
        ids.volume = ids.volume.max(layout.volumes.iter().map(|v| v.id.0).max().unwrap_or(0));
        ids.pool = ids.pool.max(layout.pools.iter().map(|p| p.id.0).max().unwrap_or(0));
        ids.array = ids.array.max(layout.arrays.iter().map(|a| a.id.0).max().unwrap_or(0));
    }
    /// Shards of the other head take part from now on. They owe no answer to what was said before, and know no pool.
    pub fn far_comes(&mut self, shards: u16, secret: [u8; 32]) {
        (self.far_shards, self.far_secret) = (shards, secret);
        self.meeting = self.next_number();
        self.far_met.clear();
        let all = usize::from(self.shards());
        self.applied.resize(all, self.generation);
        self.reports.resize(all, None);
        self.reported.resize(all, 0);
    }
    /// A shard here has a connection with each of them. One of a meeting before says nothing of this one.
    pub fn has_met(&mut self, shard: u16, meeting: u32) {
        if meeting == self.meeting {
            self.far_met.insert(shard);
        }
    }
    /// What is sent to them of the pools that they know is read there, once for each map.
    pub fn far_reads(&mut self) {
        let own = self.own_shards;
        let known = self.pools.iter_mut().filter(|p| p.shards > own);
        known.flat_map(|p| &mut p.arrays).for_each(ArrayContext::far_reads);
    }
    /// They do not any more: all that they have said is forgotten, and nobody waits for them.
    pub fn far_goes(&mut self, now: Instant) {
        self.far_shards = 0;
        let own = self.own_shards;
        let all = usize::from(own);
        if !planted_if(Bug::AppliedStays, || self.applied.len() > all) {
            self.applied.truncate(all);
        }
        self.reports.truncate(all);
        self.reports_basis += 1;
        self.reported.truncate(all);
        self.rooms.truncate(all);
        self.arrivals.may_differ();
        if !planted_if(Bug::HaltStays, || self.halted.iter().any(|(_, shard)| *shard >= own)) {
            self.halted.retain(|(_, shard)| *shard < own);
        }
        self.quiesced.retain(|(_, shard)| *shard < own);
        self.pools.iter_mut().for_each(|p| p.far_goes(now, own));
    }

    /// These block devices were not there at the start.
    pub fn appear(&mut self, devices: Vec<String>) {
        self.appeared = devices;
    }
    /// No pool is imported on purpose; or somebody has said that they shall be.
    pub fn hold(&mut self, held: bool) {
        self.held = held;
    }
    /// This head is one of two.
    pub fn enters_system(&mut self, mut system: SystemContext) {
        self.early.drain(..).for_each(|news| system.on_peer(news));
        self.sessions.of_head(system.member().me().index());
        self.system = Some(system);
    }
    /// Something of the link. Its transport may be up before the Steward has read who it is.
    pub fn on_peer(&mut self, news: PeerNews) {
        match &mut self.system {
            Some(system) => system.on_peer(news),
            None => self.early.push(news),
        }
    }
    pub fn system_mut(&mut self) -> Option<&mut SystemContext> {
        self.system.as_mut()
    }
    /// The open drives of all legs and spares.
    pub fn open_drives(&self) -> impl Iterator<Item = &OpenDrive> {
        let legs = self.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
        let spares = self.pools.iter().flat_map(|p| &p.spares);
        legs.filter_map(|l| l.open.as_ref()).chain(spares.filter_map(|s| s.open.as_ref()))
    }
    /// Whether a drive is a leg's or a spare's.
    pub fn is_open(&self, id: DriveId) -> bool {
        self.open_drives().any(|o| o.id == id)
    }
    /// The head is up.
    pub fn is_ready(&mut self) {
        self.ready = true;
    }
    /// An order is carried out, or none is.
    pub fn orders(&mut self, ordering: bool) {
        self.ordering = ordering;
    }
    /// This order is carried out, or none is.
    pub fn is_under_way(&mut self, order: Option<Overdue>) {
        self.under_way = order;
    }
    /// An order that keeps others from going on is not over at its limit, or it is over now.
    pub fn is_overdue(&mut self, order: Option<Overdue>) {
        self.overdue = order;
    }

    /// Whether there is an order that may be carried out.
    pub fn has_next_order(&self) -> bool {
        self.next_order_at().is_some()
    }

    /// The next order that may be carried out.
    pub fn next_order(&mut self) -> Option<(Option<u64>, Order)> {
        let at = self.next_order_at()?;
        self.orders.remove(at)
    }

    /// While an order is overdue, what this head asks of itself waits.
    fn next_order_at(&self) -> Option<usize> {
        let may = |(id, order): &(Option<u64>, Order)| {
            self.overdue.is_none() || id.is_some() || matches!(order, Order::Shutdown)
        };
        self.orders.iter().position(may)
    }

    /// The head is being stopped so far.
    pub fn stops(&mut self, stop: Stop) {
        self.stop = stop;
    }
    /// An order under way was given up for that.
    pub fn cuts_short(&mut self, cut: bool) {
        self.cut_short |= cut;
    }
    /// A file of the state directory is being written, or none is.
    pub fn files(&mut self, filing: bool) {
        self.filing = filing;
    }
    /// The file of hosts was not there at the start, and others were.
    pub fn misses_hosts(&mut self, missing: bool) {
        self.hosts_missing = missing;
    }
    /// The path of a file of the state directory.
    pub fn state_path(&self, file: &str) -> String {
        format!("{}/{file}", self.state_directory)
    }

    /// Rows of a file that are not understood.
    pub fn keep_unknown(&mut self, file: &'static str, rows: Vec<files::UnknownRow>) {
        self.unknown_rows.insert(file, rows);
    }

    /// The head begins, at this moment of the clock in milliseconds.
    pub fn starts(&mut self, now: Instant, unix_ms: Option<u64>) {
        self.clock = unix_ms.map(|ms| (now, ms));
        self.started = now;
    }
    /// Why the state directory takes nothing, if that is so.
    pub fn is_unwritable(&mut self, why: Option<StateFault>) {
        self.unwritable = why;
    }
    /// The shards are about to be told of a new view and layout.
    pub fn next_view(&mut self) {
        self.generation += 1;
    }
    /// Somebody asks the shards for room.
    pub fn asks_room(&mut self) {
        self.asking_room = true;
        self.rooms = vec![None; usize::from(self.shards())];
    }
    /// They are told for how much, under this number: none has answered. What says another number answers a question before.
    pub fn tells_room(&mut self) -> u32 {
        self.rooms.fill(None);
        self.room_number = self.next_number();
        self.room_number
    }
    /// A shard has answered: so much, of so many mirrors at most.
    pub fn has_room(&mut self, shard: u16, number: u32, room: (Room, u32)) {
        if number == self.room_number
            && let Some(answer) = self.rooms.get_mut(usize::from(shard))
        {
            *answer = Some(room);
        }
    }
    /// He has his answer.
    pub fn room_asked(&mut self) {
        self.asking_room = false;
    }
    /// So much more memory is kept for arrays that come.
    pub fn promises(&mut self, more: Room) {
        self.promised.mirrors += more.mirrors;
        self.promised.singles += more.singles;
    }
    /// They are here, or do not come.
    pub fn keeps_promise(&mut self, room: Room) {
        self.promised.mirrors -= room.mirrors;
        self.promised.singles -= room.singles;
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
        if self.state.number() == 12 && planted(Bug::WrittenPastApply) {
            self.state.written_past_apply();
        }
        if let Some(uuid) = pool {
            let away = self.state.away().iter().filter(|a| a.row().uuid == uuid);
            away.for_each(|away| self.absent.iter_mut().for_each(|p| p.is(away)));
        }
        let Some(now) = pool.and_then(|uuid| self.state.pool(uuid)) else { return };
        self.pools.iter_mut().for_each(|p| p.is(now));
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
    /// The system that this head is, or is one of two of.
    pub fn me(&self) -> Uuid {
        self.state.identity().uuid
    }
    /// Which of two heads this is; 0 for one alone.
    pub fn own_number(&self) -> u8 {
        self.system.as_ref().map_or(0, |s| s.member().me().index() as u8)
    }
    /// The number of the head that a shard belongs to.
    pub fn head_with(&self, shard: u16) -> u8 {
        if shard < self.own_shards { self.own_number() } else { self.own_number() ^ 1 }
    }
    /// Shards of the other head take part, and know every pool: its portals are open.
    pub fn far_serves(&self) -> bool {
        let knows = |p: &PoolContext| p.leaving || p.shards > self.own_shards;
        self.far_shards > 0 && self.pools.iter().all(knows)
    }
    /// Which head listens at a portal: its own, or this one, while the other does not serve. An address that moves is at the head that
    /// leads.
    pub fn head_of(&self, portal: &Portal) -> u8 {
        if self.far_serves() && portal.moves.is_none() { portal.head } else { self.own_number() }
    }
    /// The shards are about to be told who listens where.
    pub fn place_portals(&mut self) {
        for i in 0..self.portals.len() {
            let head = self.head_of(&self.portals[i].portal);
            let shards = if head == self.own_number() { self.own_shards } else { self.far_shards };
            self.portals[i].is_at(head, shards);
        }
    }
    /// How well each head reaches volumes; None: there is one.
    pub fn paths(&self) -> Option<[PathState; 2]> {
        let member = self.system.as_ref()?.member();
        let two = member.known().head(member.me().other()).state != cluster::HeadState::None;
        let arrays = || self.pools.iter().flat_map(|p| &p.arrays);
        let has_lanes = |own: bool| {
            arrays().any(|a| (0..array::LANES).any(|l| (a.lanes.of_region(l) < self.own_shards) == own))
        };
        let state = |own: bool| {
            if has_lanes(own) || !self.far_serves() { PathState::Optimized } else { PathState::NonOptimized }
        };
        let me = self.own_number();
        two.then(|| [0, 1].map(|head| state(head == me)))
    }
    /// What hosts are told of it.
    pub fn shown_system(&self) -> System {
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
    /// Shards here use these drives of the leader's pools. They may go on with the number of one that is closed, and so it is no other
    /// drive's.
    pub fn note_given(&mut self, drives: &BTreeMap<DriveId, Uuid>) {
        let open = |uuid: &Uuid| Some((*uuid, self.system.as_ref()?.open_drive(*uuid)?));
        let given: Vec<(Uuid, DriveId)> = drives.values().filter_map(open).collect();
        for (uuid, id) in given {
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
                self.happened(now, what, LegEvent::DriveUnhealthy { why: Box::new(is.cause.clone()) });
                self.ills.insert(id, is);
            }
            (Some(_), None) => {
                self.ills.remove(&id);
                self.happened(now, what, LegEvent::DriveHealthy);
            }
            _ => {}
        }
    }
    /// The number under which shards knew this volume by the former leader's words, or a new one.
    pub fn volume_number(&mut self, volume: Uuid) -> VolumeId {
        self.former_volumes.get(&volume).copied().unwrap_or_else(|| self.new_volume())
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
    /// A portal in the context; `publish` makes the shards listen.
    pub fn put_portal(&mut self, portal: Portal) {
        let told = |shard| self.former_listens.get(&(portal.id, shard)).copied();
        let results = (0..self.own_shards).map(told).collect();
        self.portals.push(PortalContext { portal, results, at: self.own_number(), tried: false });
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
    /// Something happened to `what`.
    pub fn happened(&mut self, now: Instant, what: impl Into<String>, event: impl Into<Event>) {
        let event = event.into();
        let line = EventLine {
            number: self.event_next,
            at: self.unix(now),
            monotonic: Some(now),
            weight: event.weight(),
            what: what.into(),
            event,
        };
        self.event_next += 1;
        self.unlogged.push_back(line.clone());
        self.keep_event(line);
    }
    /// Something worth knowing turned up.
    pub fn noticed(&mut self, now: Instant, what: impl Into<String>, notice: Notice) {
        self.happened(now, what, PoolEvent::Noticed { notice: Box::new(notice) });
    }
    /// An event that is not new to the log.
    pub fn keep_event(&mut self, line: EventLine) {
        self.event_next = self.event_next.max(line.number + 1);
        self.events.push_back(line);
        if self.events.len() > EVENTS_KEPT {
            self.events.pop_front();
        }
    }
    pub fn pool(&self, id: PoolId) -> Option<&PoolContext> {
        self.pools.iter().find(|p| p.id == id)
    }
    pub fn pool_mut(&mut self, id: PoolId) -> Option<&mut PoolContext> {
        self.pools.iter_mut().find(|p| p.id == id)
    }
    /// The pool of this name, or a refusal.
    pub fn pool_named(&self, name: &str) -> Result<&PoolContext, Refusal> {
        self.pools.iter().find(|p| p.config().name == name && !p.leaving).ok_or_else(|| {
            let absent = self.absent.iter().find(|p| p.name() == name);
            let pool = name.to_string();
            match absent {
                Some(p) => PoolRefusal::PoolAbsent { pool, why: Box::new(p.cause().clone()) }.into(),
                None => PoolRefusal::PoolUnknown { pool }.into(),
            }
        })
    }
    /// Splits `pool/volume` and finds both.
    pub fn volume_named(&self, name: &str) -> Result<(PoolId, Uuid), Refusal> {
        let Some((pool_name, volume)) = name.split_once('/') else {
            return Err(VolumeRefusal::VolumeNameHasNoPool { name: name.into() }.into());
        };
        let pool = self.pool_named(pool_name).map_err(|r| r.about("volume"))?;
        let missing = || VolumeRefusal::VolumeUnknown { volume: name.into() };
        let volume = pool.config().volumes.by_name(volume).ok_or_else(missing)?;
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
    /// A drive was looked at.
    pub fn note_found(&mut self, probe: &Probe) {
        self.finds(Found::of(probe));
    }
    /// The same of a drive that has not confirmed that the other head is shut off it.
    pub fn note_not_shut_out(&mut self, probe: &Probe) {
        let found = Found::of(probe);
        let (drive, path) = (found.drive(), found.path().to_string());
        self.finds(drive.map_or(found, |drive| Found::NotShutOut { drive, path }));
    }
    fn finds(&mut self, found: Found) {
        self.found.retain(|_, f| found.drive().is_none() || f.drive() != found.drive());
        self.found.insert(found.path().into(), found);
    }
    /// A drive is there and could not be looked at.
    pub fn note_mute(&mut self, path: String, fault: DriveFault) {
        self.found.insert(path.clone(), Found::Mute { path, fault });
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
    pub fn spare_named(&self, drive: &str) -> Option<(PoolId, SpareContext)> {
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
        if !DriveKind::of(path).has_name() {
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
