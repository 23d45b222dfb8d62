//! The little world: drives and a state directory in memory, shards that obey at once.

use super::*;
use crate::steward::state::State;
use crate::steward::state::journal::JournalEntry;
use base::view::Moving;
use base::{DriveKind, DriveOpenFault, Duration, StateFault};
use core::net::IpAddr;
use finding::AddressFault;
use std::collections::BTreeSet;

fn unwritable(path: &str) -> StateFault {
    StateFault::ReadOnly { path: path.into() }
}

#[derive(Clone)]
pub(super) struct FakeDrive {
    pub(super) blocks: BTreeMap<u64, Vec<u8>>,
    pub(super) bytes: u64,
    pub(super) held: bool,
    pub(super) zero: bool,
    /// It can give blocks back.
    pub(super) frees: bool,
    pub(super) fails: Option<DriveError>,
    /// What it does not read, in bytes, and how it says so.
    pub(super) unread: Option<(core::ops::Range<u64>, DriveError)>,
    /// It is read, and its file system has no room for what is written.
    pub(super) full: bool,
    pub(super) block_bytes: u32,
    /// It takes operations and does not answer.
    pub(super) hangs: bool,
    /// The kernel neither opens it nor lets go of it.
    pub(super) stuck: bool,
    /// How long it takes for each operation.
    pub(super) slow: Duration,
    /// Its size now, if it was cut off.
    pub(super) cut: Option<u64>,
    /// What its file system has left.
    pub(super) free: Option<u64>,
    /// Its file was made as it was opened, or for a pool that came to nothing.
    pub(super) made: bool,
    /// Where its file's name is.
    pub(super) name: base::FileName,
    /// What lies behind its last whole 4096 bytes.
    pub(super) end: Vec<u8>,
    /// Where its blocks lie, but for itself.
    pub(super) places: Vec<base::Place>,
    /// By what means another head is kept from it.
    pub(super) fence: base::FenceKind,
}

/// What survives a crash.
#[derive(Clone, Default)]
pub(super) struct Rest {
    pub(super) drives: BTreeMap<String, FakeDrive>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) shapes: BTreeMap<String, Shape>,
    pub(super) disk_full: bool,
    /// Nothing can be removed from the state directory either.
    pub(super) read_only: bool,
    /// The one file that its disk has no room for.
    pub(super) refused: Option<&'static str>,
    /// Files whose names begin so can be neither replaced nor removed.
    pub(super) immutable: Option<&'static str>,
}

pub(super) struct World {
    pub(super) rest: Rest,
    pub(super) steward: Steward,
    /// Takes every change, and is equal.
    second: State,
    pub(super) open: BTreeMap<DriveId, String>,
    /// Operations that drives which hang have taken.
    pub(super) hung: Vec<DriveOp>,
    /// Those that slow drives have taken, and when they end.
    pub(super) slow: Vec<(Instant, DriveOp)>,
    /// Opens that the kernel has not ended: of stuck drives.
    pub(super) opening: Vec<(base::Token, DriveId, String)>,
    pub(super) now: Instant,
    pub(super) events: VecDeque<Event<Mail>>,
    pub(super) view: Arc<View>,
    /// Every one that was told, in order.
    pub(super) views: Vec<Arc<View>>,
    pub(super) layout: Arc<Layout>,
    pub(super) answers: BTreeMap<u64, Answered>,
    pub(super) next_order: u64,
    pub(super) log: Vec<String>,
    pub(super) ready: Option<Vec<finding::Notice>>,
    /// When it was told that the head has stopped.
    pub(super) stopped: Option<Instant>,
    /// What every shard says of drives.
    pub(super) figures: Vec<crate::report::DriveReport>,
    /// What one shard says of volumes.
    pub(super) volumes: Vec<(base::VolumeId, crate::report::Counters)>,
    /// What each shard was told to scrub, and how far it says it is.
    pub(super) scrubs: BTreeMap<(u16, ArrayId), (array::Scrub, array::Progress)>,
    /// Shards do not come to rest.
    pub(super) restless: bool,
    /// Drives that somebody holds are candidates.
    pub(super) held_candidates: bool,
    /// Mirrors that each shard has memory for, and those that it keeps memory for: without it it would panic.
    pub(super) mirrors_max: u32,
    /// Shards do not come to mark what is returned.
    pub(super) unmarked: bool,
    pub(super) mirrors_kept: [u32; SHARDS as usize],
    /// Addresses of the system that this machine has, and why it cannot have others; None: nobody answers.
    pub(super) addresses: BTreeSet<IpAddr>,
    pub(super) no_address: BTreeMap<IpAddr, Option<AddressFault>>,
    /// The other head, if this one is one of two.
    pub(super) follower: Option<super::far::Follower>,
    /// Under which number each shard was told last that those of the other head are gone. It does not say that it has parted.
    pub(super) partings: BTreeMap<u16, u32>,
    /// Under which number each was asked last to mark everything, and to meet those of the other head. If they are late, they say that of
    /// the time before when they are asked again.
    marks: BTreeMap<u16, u32>,
    meetings: BTreeMap<u16, u32>,
    pub(super) late: bool,
    /// Effects until the power goes.
    pub(super) effects_left: u64,
    pub(super) effects_done: u64,
}

impl World {
    pub(super) fn start(rest: Rest, seed: u64) -> Self {
        let mut w = Self::power_on(rest, seed, u64::MAX);
        w.run();
        assert!(w.ready.is_some(), "the head comes up");
        w
    }
    pub(super) fn power_on(mut rest: Rest, seed: u64, effects: u64) -> Self {
        rest.drives.values_mut().for_each(|d| (d.held, d.made) = (false, false));
        let mut steward = Steward::new(StewardConfig {
            system: None,
            memory: PlainMemory::new(1 << 20, 8 << 20),
            shards: SHARDS,
            entropy: [seed, 2, 3, 4],
            version: "test".into(),
            hold: None,
            notices: vec![],
            state_directory: "/s".into(),
            shapes: rest.shapes.clone(),
        });
        steward.keep_journal();
        Self {
            rest,
            steward,
            second: State::default(),
            open: BTreeMap::new(),
            hung: vec![],
            slow: vec![],
            opening: vec![],
            now: Instant(1_000_000_000),
            events: VecDeque::new(),
            view: Arc::default(),
            views: vec![],
            layout: Arc::default(),
            answers: BTreeMap::new(),
            next_order: 0,
            log: vec![],
            ready: None,
            stopped: None,
            figures: vec![],
            volumes: vec![],
            scrubs: BTreeMap::new(),
            restless: false,
            held_candidates: false,
            mirrors_max: 1000,
            unmarked: false,
            mirrors_kept: [0; SHARDS as usize],
            addresses: BTreeSet::new(),
            no_address: BTreeMap::new(),
            follower: None,
            partings: BTreeMap::new(),
            marks: BTreeMap::new(),
            meetings: BTreeMap::new(),
            late: false,
            effects_left: effects,
            effects_done: 0,
        }
    }
    /// Lets everything happen that follows from what happened; time passes only where somebody waits.
    pub(super) fn run(&mut self) {
        for _ in 0..100_000 {
            let mut fx = vec![];
            while let Some(event) = self.events.pop_front() {
                self.steward.on_event(self.now, event, &mut fx);
            }
            self.steward.end_of_turn(self.now, &mut fx);
            self.replay();
            for effect in fx {
                if self.effects_left == 0 {
                    return;
                }
                self.effects_left -= 1;
                self.effects_done += 1;
                self.carry_out(effect);
            }
            if self.events.is_empty() {
                let waits = self.ready.is_none() || (self.answers.len() as u64) < self.next_order;
                let slow = self.slow.iter().map(|(at, _)| *at);
                match slow.chain(self.steward.next_deadline()).min().filter(|_| waits) {
                    Some(at) => {
                        self.now = self.now.max(at);
                        self.end_slow();
                        self.steward.on_timer(self.now, &mut vec![]);
                    }
                    None => return,
                }
            }
        }
        panic!("the Steward never comes to rest");
    }
    /// A second state takes what was decided, and is equal.
    fn replay(&mut self) {
        for entry in self.steward.take_journal() {
            if let JournalEntry::Applied(bytes) = entry {
                let taken = self.second.replay(&bytes);
                assert_eq!(taken, Ok(()), "a second state takes every change");
            }
        }
        assert!(*self.steward.state() == self.second, "a second state is equal");
    }
    /// What slow drives have done by now.
    fn end_slow(&mut self) {
        let now = self.now;
        for (_, op) in self.slow.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            let result = self.operate(op);
            self.events.push_back(Event::DriveDone { token: op.token, result });
        }
    }
    /// Lets time pass.
    pub(super) fn pass(&mut self, seconds: u64) {
        let end = self.now + base::Duration::from_secs(seconds);
        loop {
            let slow = self.slow.iter().map(|(at, _)| *at);
            let next = slow.chain(self.steward.next_deadline()).min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            self.end_slow();
            self.steward.on_timer(self.now, &mut vec![]);
            self.run();
        }
        self.now = end;
        self.run();
    }
    /// A drive that the kernel neither opened nor let go of is well again.
    pub(super) fn unstick(&mut self, path: &str) {
        self.rest.drives.get_mut(path).expect("there").stuck = false;
        let due = |o: &(base::Token, DriveId, String)| o.2 == path;
        let (now, later): (Vec<_>, Vec<_>) = core::mem::take(&mut self.opening).into_iter().partition(due);
        self.opening = later;
        for (token, drive, spec) in now {
            self.carry_out(Effect::OpenDrive { token, drive, spec, shared: false });
        }
        self.run();
    }
    pub(super) fn events(&mut self) -> Vec<String> {
        let Reply::Events(lines) = self.good(Order::Events { since: 0 }) else { panic!("events") };
        lines.into_iter().map(|e| format!("{}: {}", e.what, e.said())).collect()
    }
    /// What happened to this drive or pool.
    pub(super) fn happened_to(&mut self, what: &str) -> Vec<crate::order::Event> {
        let Reply::Events(lines) = self.good(Order::Events { since: 0 }) else { panic!("events") };
        lines.into_iter().filter(|e| e.what == what).map(|e| e.event).collect()
    }
    pub(super) fn carry_out(&mut self, effect: Effect<Mail>) {
        match effect {
            Effect::OpenDrive { token, drive, spec, .. } => {
                let (spec, made) = match spec.strip_prefix("made:") {
                    Some(path) => (path.to_string(), true),
                    None => (spec, false),
                };
                // `file:PATH?size=…` makes what is missing.
                let (spec, makes) = match spec.strip_prefix("file:") {
                    Some(rest) => match rest.split_once("?size=") {
                        Some((path, _)) => (path.to_string(), true),
                        None => (rest.to_string(), false),
                    },
                    None => (spec, false),
                };
                if makes && !self.rest.drives.contains_key(&spec) {
                    let made = FakeDrive {
                        made: true,
                        frees: true,
                        ..drives(&[&spec]).drives.remove(&spec).expect("it")
                    };
                    self.rest.drives.insert(spec.clone(), made);
                }
                let result = match self.rest.drives.get_mut(&spec) {
                    Some(d) if d.stuck => return self.opening.push((token, drive, spec)),
                    None => Err(base::OpenError::new(&spec, DriveOpenFault::Missing)),
                    Some(d) if d.held => Err(base::OpenError::new(&spec, DriveOpenFault::Locked)),
                    Some(d) => {
                        d.held = true;
                        d.made |= made;
                        self.open.insert(drive, spec.clone());
                        Ok(DriveInfo {
                            bytes: d.bytes,
                            block_bytes: d.block_bytes,
                            made: d.made,
                            reads_zeroes: d.zero,
                            kind: if spec.starts_with("/dev/") { DriveKind::Block } else { DriveKind::File },
                            // As a file's inode, its own is among them.
                            places: core::iter::once(base::Place::whole(spec.clone()))
                                .chain(d.places.clone())
                                .collect(),
                            path: spec,
                            end: d.end.clone(),
                            deallocate_zeroes: d.frees,
                            fence: d.fence,
                            ..DriveInfo::default()
                        })
                    }
                };
                self.events.push_back(Event::DriveOpened { token, result });
            }
            Effect::CloseDrive { drive } => {
                let spec = self.open.remove(&drive).expect("only open drives are closed, and once");
                let d = self.rest.drives.get_mut(&spec).expect("it was open");
                if d.stuck {
                    return;
                }
                d.held = false;
                if d.made && d.blocks.is_empty() {
                    self.rest.drives.remove(&spec);
                }
                self.events.push_back(Event::DriveClosed { drive });
            }
            Effect::InspectDrive { token, drive } => {
                let d = &self.rest.drives[&self.open[&drive]];
                let result = match d.fails {
                    Some(DriveError::Gone) => Err(DriveError::Gone),
                    _ => Ok(base::DriveHealth {
                        bytes: d.cut.unwrap_or(d.bytes),
                        free_bytes: d.free,
                        sparse: d.free.is_some(),
                        name: d.name,
                    }),
                };
                self.events.push_back(Event::DriveInspected { token, result });
            }
            Effect::ShapeDrive { drive, shape } => {
                let d = self.rest.drives.get_mut(&self.open[&drive]).expect("it is open");
                d.fails = shape.gone.then_some(DriveError::Gone);
                if d.hangs && !shape.hang {
                    // What it was asked meanwhile is answered.
                    let asked = core::mem::take(&mut self.hung);
                    let (now, later) = asked.into_iter().partition(|op| op.drive == drive);
                    self.hung = later;
                    self.rest.drives.get_mut(&self.open[&drive]).expect("it is open").hangs = false;
                    let now: Vec<DriveOp> = now;
                    for op in now {
                        self.carry_out(Effect::Drive(op));
                    }
                }
                let d = self.rest.drives.get_mut(&self.open[&drive]).expect("it is open");
                d.hangs = shape.hang;
            }
            Effect::Drive(op) => {
                if self.open.get(&op.drive).is_some_and(|spec| self.rest.drives[spec].hangs) {
                    return self.hung.push(op);
                }
                let slow =
                    self.open.get(&op.drive).map_or(Duration::ZERO, |spec| self.rest.drives[spec].slow);
                if slow > Duration::ZERO {
                    return self.slow.push((self.now + slow, op));
                }
                let result = self.operate(op);
                self.events.push_back(Event::DriveDone { token: op.token, result });
            }
            Effect::State { token, op } => {
                let result = self.state(op);
                self.events.push_back(Event::State { token, result });
            }
            Effect::Mail { to: Address::Shard(n), mail: Mail::Shard(mail) } => self.shard(n, mail),
            Effect::Mail { mail: Mail::Manager(mail), .. } => match *mail {
                ManagerMail::Answered { id, answer } => assert!(self.answers.insert(id, answer).is_none()),
                ManagerMail::Ready { notices } => self.ready = Some(notices),
                ManagerMail::Stopped => self.stopped = Some(self.now),
                ManagerMail::Happened(_) => {}
                ManagerMail::Addresses { number, here, gone } => self.addresses(number, here, &gone),
                // Neighbours and hosts hear of them.
                ManagerMail::Announce(_) => {}
                ManagerMail::Leads(_) => {}
                ManagerMail::Peer(work) => {
                    let sent = self.follower.as_mut().map(|f| f.on_work(work));
                    self.hear_peer(sent.unwrap_or_default());
                }
                ManagerMail::FromPeer(_) | ManagerMail::Out(_) => panic!("nobody says that"),
            },
            Effect::Fence { token, .. } => {
                let result = Ok(base::fence::Fence::File { others: false });
                self.events.push_back(Event::Fenced { token, result });
            }
            other => panic!("{other:?}"),
        }
    }
    /// The link brings what the other head sent.
    pub(super) fn hear_peer(&mut self, sent: Vec<Vec<u8>>) {
        for bytes in sent {
            let news = crate::peer::PeerNews::Bytes { path: 0, number: 1, bytes };
            let mail = StewardMail::Peer(news).into();
            self.events.push_back(Event::Mail { from: Address::Manager, mail });
        }
    }
    /// What the daemon does on the machine's interfaces: all of them have one, `eth0`.
    fn addresses(&mut self, number: u64, here: Vec<Moving>, gone: &[Moving]) {
        self.addresses.retain(|ip| gone.iter().all(|m| m.ip != *ip));
        let mut told = vec![];
        for Moving { ip, .. } in here {
            match self.no_address.get(&ip) {
                Some(Some(why)) => told.push((ip, Err(why.clone()))),
                Some(None) => return,
                None => {
                    self.addresses.insert(ip);
                    told.push((ip, Ok("eth0".parse().expect("a name"))));
                }
            }
        }
        let mail = StewardMail::Addresses { number, here: told, silent: false };
        self.events.push_back(Event::Mail { from: Address::Manager, mail: mail.into() });
    }
    pub(super) fn operate(&mut self, op: DriveOp) -> Result<(), DriveError> {
        let Some(spec) = self.open.get(&op.drive) else { panic!("an operation on a closed drive: {op:?}") };
        let d = self.rest.drives.get_mut(spec).expect("it is open");
        assert!(op.at + op.len <= d.bytes, "beyond the end: {op:?}");
        if let Some(e) = d.fails {
            return Err(e);
        }
        let is_in = |range: &core::ops::Range<u64>| op.at < range.end && range.start < op.at + op.len;
        if let (DriveOpKind::Read, Some((range, e))) = (op.kind, &d.unread)
            && is_in(range)
        {
            return Err(*e);
        }
        if d.full && matches!(op.kind, DriveOpKind::Write) {
            return Err(DriveError::NoSpace);
        }
        let mut at = op.at;
        let blocks = &mut d.blocks;
        match op.kind {
            DriveOpKind::Read => {
                let mut bytes = vec![0u8; op.len as usize];
                for chunk in bytes.chunks_mut(512) {
                    if let Some(b) = blocks.get(&(at / 512)) {
                        chunk.copy_from_slice(b);
                    }
                    at += 512;
                }
                self.steward.dma(op.data, |m| m.copy_from_slice(&bytes)).expect("its own memory");
            }
            DriveOpKind::Write => {
                assert!(op.fua, "metadata is durable when it counts as written");
                let bytes = self.steward.dma(op.data, |m| m.to_vec()).expect("its own memory");
                for chunk in bytes.chunks(512) {
                    blocks.insert(at / 512, chunk.to_vec());
                    at += 512;
                }
            }
            DriveOpKind::WriteZeroes => {
                (op.at / 512..(op.at + op.len) / 512).for_each(|b| drop(blocks.remove(&b)))
            }
            DriveOpKind::Deallocate => {
                (op.at / 512..(op.at + op.len) / 512).for_each(|b| drop(blocks.remove(&b)))
            }
            DriveOpKind::Flush => {}
        }
        Ok(())
    }
    pub(super) fn state(&mut self, op: StateOp) -> Result<Vec<u8>, StateError> {
        let full = self.rest.disk_full;
        let (refused, read_only) = (self.rest.refused, self.rest.read_only);
        let immutable = self.rest.immutable;
        let files = &mut self.rest.files;
        match op {
            StateOp::Write { name, .. } | StateOp::Remove { name }
                if immutable.is_some_and(|prefix| name.starts_with(prefix)) =>
            {
                Err(StateError::Failed(unwritable("/state")))
            }
            StateOp::Look { .. } if read_only => Err(StateError::Failed(unwritable("/state"))),
            StateOp::Look { .. } if full => Err(StateError::NoSpace),
            StateOp::Read { name } => files.get(&name).cloned().ok_or(StateError::Missing),
            StateOp::Write { .. } | StateOp::Append { .. } if full => Err(StateError::NoSpace),
            StateOp::Write { name, .. } if refused == Some(name.as_str()) => Err(StateError::NoSpace),
            StateOp::Write { name, contents } => {
                files.insert(name, contents);
                Ok(vec![])
            }
            StateOp::Append { name, contents, .. } => {
                files.entry(name).or_default().extend(contents);
                Ok(vec![])
            }
            StateOp::Remove { .. } if read_only => Err(StateError::Failed(unwritable("/state"))),
            StateOp::Remove { name } => {
                files.remove(&name);
                Ok(vec![])
            }
            StateOp::Look { .. } | StateOp::List => {
                Ok(files.keys().map(|n| format!("{n}\n")).collect::<String>().into_bytes())
            }
            StateOp::Candidates => {
                let held = self.held_candidates;
                let free = self
                    .rest
                    .drives
                    .iter()
                    .filter(|(name, d)| (held || !d.held) && name.starts_with("/dev/"));
                Ok(free.map(|(name, _)| format!("{name}\n")).collect::<String>().into_bytes())
            }
            StateOp::Clock => Ok(b"1700000000900".to_vec()),
        }
    }
    pub(super) fn shard(&mut self, n: u16, mail: ShardMail) {
        let answer = match mail {
            ShardMail::Configure { view, layout } => {
                assert_eq!(view.generation, layout.generation);
                let kept = self.mirrors_kept[usize::from(n)];
                assert!(mirrors_of(&layout) <= kept, "shard {n} keeps memory for {kept} mirrors alone");
                if n == 0 {
                    self.views.push(view.clone());
                    let old = self.view.portals.clone();
                    for p in view.portals.iter().filter(|p| !old.contains(p)) {
                        let result =
                            if p.address.port() == 99 { Err(base::NetError::InUse) } else { Ok(p.address) };
                        for shard in 0..SHARDS {
                            self.mail(shard, StewardMail::Listening { portal: p.id, result });
                        }
                    }
                    (self.view, self.layout) = (view.clone(), layout);
                }
                self.log.push(format!("configured {n}"));
                StewardMail::Applied { generation: view.generation }
            }
            ShardMail::Quiesce { .. } if self.restless && n == 1 => return,
            ShardMail::Quiesce { array, number } => StewardMail::Quiesced { array, number },
            ShardMail::Halt { array, number } => StewardMail::Halted { array, number },
            ShardMail::Sight { .. } => return,
            ShardMail::Far(setup) => {
                let former = self.meetings.insert(n, setup.meeting);
                let said = if self.late { former } else { Some(setup.meeting) };
                let Some(meeting) = said else { return };
                StewardMail::FarMet { meeting }
            }
            ShardMail::FarGone { number } => {
                self.partings.insert(n, number);
                return;
            }
            ShardMail::Room { number, room } => {
                let mirrors = room.mirrors.min(self.mirrors_max).max(mirrors_of(&self.layout));
                self.mirrors_kept[usize::from(n)] = mirrors;
                let room = crate::mail::Room { mirrors, ..room };
                StewardMail::HasRoom { number, room, mirrors_max: self.mirrors_max }
            }
            ShardMail::Returned { array, marks, ranges, .. } => {
                self.log.push(format!("returned {n} {array} {ranges:?}"));
                if self.unmarked {
                    return;
                }
                self.note(n, array, Note::Returned { marks });
                StewardMail::Note { array, note: Note::AllCleared { marks } }
            }
            ShardMail::AllCleared { array, .. } => return self.log.push(format!("cleared {n} {array}")),
            ShardMail::Resume { array } => return self.log.push(format!("resume {n} {array}")),
            ShardMail::Report => {
                let drives = if n == 0 { self.figures.clone() } else { vec![] };
                let progress = |a: ArrayId| self.scrubs.get(&(n, a)).map_or(Default::default(), |s| s.1);
                let arrays = self.layout.arrays.iter().map(|a| (a.id, progress(a.id))).collect();
                let volumes = if n == 1 { self.volumes.clone() } else { vec![] };
                StewardMail::Reported(Box::new(ShardReport {
                    shard: n,
                    drives,
                    arrays,
                    volumes,
                    ..ShardReport::default()
                }))
            }
            ShardMail::MarkAll { array, number } => {
                let former = self.marks.insert(n, number);
                let said = if self.late { former } else { Some(number) };
                let Some(number) = said else { return };
                StewardMail::Note { array, note: Note::AllDirty { number } }
            }
            ShardMail::Recorded { epoch, .. } => return self.log.push(format!("recorded {n} {epoch}")),
            ShardMail::LossNotOnRecord { array } => return self.log.push(format!("unrecorded {n} {array}")),
            ShardMail::Clean { .. } => return self.log.push(format!("clean {n}")),
            ShardMail::Scrub { array, order: None } => {
                self.scrubs.remove(&(n, array));
                return;
            }
            ShardMail::Scrub { array, order: Some(order) } => {
                let (scrub_total, scrub_from) = (20 * MIB, order.from);
                let progress = array::Progress { scrub_total, scrub_from, ..Default::default() };
                self.scrubs.insert((n, array), (order, progress));
                return;
            }
            ShardMail::Drop { connection, .. } => {
                return self.log.push(format!("drop {}", connection.slot()));
            }
            ShardMail::Intervened { connection, .. } => {
                return self.log.push(format!("done {}", connection.slot()));
            }
            ShardMail::Unmark { .. } | ShardMail::AddDirty { .. } | ShardMail::Answer { .. } => return,
            other => panic!("{other:?}"),
        };
        self.mail(n, answer);
    }
    pub(super) fn mail(&mut self, shard: u16, mail: StewardMail) {
        self.events.push_back(Event::Mail { from: Address::Shard(shard), mail: mail.into() });
    }
    pub(super) fn note(&mut self, shard: u16, array: ArrayId, note: Note) {
        self.mail(shard, StewardMail::Note { array, note });
    }
    pub(super) fn send(&mut self, order: Order) -> u64 {
        let id = self.next_order;
        self.next_order += 1;
        self.events
            .push_back(Event::Mail { from: Address::Manager, mail: StewardMail::Order { id, order }.into() });
        id
    }
    pub(super) fn order(&mut self, order: Order) -> Answered {
        let id = self.send(order);
        self.run();
        self.answers.get(&id).expect("every order is answered").clone()
    }
    pub(super) fn good(&mut self, order: Order) -> Reply {
        let text = format!("{order:?}");
        self.order(order).unwrap_or_else(|r| panic!("{text}: {r:?}"))
    }
    pub(super) fn refused(&mut self, order: Order) -> (ErrorKind, String, String) {
        let r = self.order(order).expect_err("a refusal");
        (r.kind(), r.field.to_string(), r.said())
    }
    pub(super) fn status(&mut self) -> Status {
        match self.good(Order::Status) {
            Reply::Snapshot(s) => *s,
            other => panic!("{other:?}"),
        }
    }
    pub(super) fn legs(&self, array: usize) -> Vec<LegState> {
        self.layout.arrays[array].membership.legs.iter().flatten().map(|l| l.state).collect()
    }
    pub(super) fn crash(self, seed: u64) -> World {
        World::start(self.rest, seed)
    }
}

impl Rest {
    /// The bitmaps on these drives rot: everything may differ between their legs.
    pub(super) fn forget_bitmaps(&mut self, names: &[&str]) {
        for name in names {
            let blocks = &mut self.drives.get_mut(*name).expect("there").blocks;
            blocks.retain(|block, _| !(4 * MIB / 512..5 * MIB / 512).contains(block));
        }
    }
}

pub(super) fn mirrors_of(layout: &Layout) -> u32 {
    layout.arrays.iter().filter(|a| a.geometry.redundant()).count() as u32
}
pub(super) fn drives(names: &[&str]) -> Rest {
    let drive = FakeDrive {
        blocks: BTreeMap::new(),
        bytes: 80 * MIB + 12345 / 512 * 512,
        held: false,
        zero: true,
        frees: false,
        fails: None,
        unread: None,
        full: false,
        block_bytes: 512,
        hangs: false,
        stuck: false,
        slow: Duration::ZERO,
        cut: None,
        made: false,
        name: base::FileName::There,
        end: vec![],
        places: vec![],
        free: None,
        fence: base::FenceKind::File,
    };
    Rest { drives: names.iter().map(|n| (n.to_string(), drive.clone())).collect(), ..Rest::default() }
}
pub(super) fn four() -> Rest {
    drives(&["/f/a", "/f/b", "/f/c", "/f/d"])
}
pub(super) fn mirror(a: &str, b: &str) -> ArraySpec {
    ArraySpec { layout: crate::order::ArrayLayout::Mirror, drives: vec![a.into(), b.into()], weight: None }
}
pub(super) fn create(name: &str, arrays: Vec<ArraySpec>) -> Order {
    Order::PoolCreate {
        name: name.into(),
        arrays,
        chunk_bytes: None,
        block_bytes: None,
        measure: false,
        force: false,
    }
}
pub(super) fn tank() -> Order {
    create("tank", vec![mirror("/f/a", "/f/b"), mirror("/f/c", "/f/d")])
}
pub(super) fn volume(name: &str, bytes: u64) -> Order {
    Order::VolumeCreate { pool: "tank".into(), name: name.into(), bytes, block_bytes: None }
}
pub(super) fn host() -> Order {
    let settings = HostSettings {
        iqns: Some(vec!["iqn.1998-01.com.example:esx1".into()]),
        chap_secret: Some(Some(Secret(b"a secret of esx1".to_vec()))),
        ..HostSettings::default()
    };
    Order::HostAdd { name: "esx1".into(), settings }
}
pub(super) fn export() -> Order {
    Order::Export { volume: "tank/vm1".into(), host: "esx1".into(), lun: None }
}
pub(super) fn import(drives: &[&str], force: bool) -> Order {
    Order::PoolImport {
        pool: Some("tank".into()),
        name: None,
        drives: drives.iter().map(|d| d.to_string()).collect(),
        force,
    }
}
/// A head with a pool, a volume, a host and an export.
pub(super) fn usual() -> World {
    let mut w = World::start(four(), 1);
    for order in [tank(), volume("vm1", 9 * MIB), host(), export()] {
        w.good(order);
    }
    w
}
pub(super) fn lose(w: &mut World, leg: usize) {
    let array = w.layout.arrays[0].id;
    let epoch = w.layout.arrays[0].membership.epoch;
    w.note(1, array, Note::LegFailed { leg, epoch, error: DriveError::Gone });
    w.run();
}
pub(super) fn synced(w: &mut World, leg: usize) {
    let (array, epoch) = (w.layout.arrays[0].id, w.layout.arrays[0].membership.epoch);
    for shard in 0..SHARDS {
        w.note(shard, array, Note::Synced { leg, epoch });
    }
    w.run();
}

/// What tests read of findings.
pub(super) trait Told {
    /// The variant with its fields.
    fn said(&self) -> String;
}

macro_rules! printed {
    ($($type:ty),+) => {
        $( impl Told for $type {
            fn said(&self) -> String {
                format!("{self:?}")
            }
        } )+
    };
}
printed!(finding::Why, finding::Cause, finding::Event, finding::Notice);

impl Told for crate::order::Refusal {
    fn said(&self) -> String {
        self.why.said()
    }
}

impl Told for crate::order::Reason {
    fn said(&self) -> String {
        self.cause.said()
    }
}

impl Told for crate::order::EventLine {
    fn said(&self) -> String {
        self.event.said()
    }
}

macro_rules! told {
    ($($type:ident),+) => {
        $( impl Told for crate::order::$type {
            fn said(&self) -> String {
                self.cause.as_ref().map(|c| c.said()).unwrap_or_default()
            }
        } )+
    };
}
told!(Drive, Pool, Array, Leg, Spare, Portal);

impl Told for api::Event {
    fn said(&self) -> String {
        self.event.said()
    }
}

impl Told for api::Noticed {
    fn said(&self) -> String {
        self.notice.said()
    }
}

impl Told for crate::order::Importable {
    fn said(&self) -> String {
        self.cause.as_ref().map(|c| c.said()).unwrap_or_default()
    }
}
