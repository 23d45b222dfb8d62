//! Sessions: which host is connected how. NVMe controllers and iSCSI sessions of the whole head.
//!
//! Promise 3: a host's Connect or Login is answered only after the writes of the connections that it
//! replaces have ended at the drives. So an answer may have to wait for `Gone` of older connections.

use crate::admission::buffer_quota::has_share;
use crate::mail::{Mail, ShardMail, to_shard};
use crate::steward::sessions::interventions::Interventions;
use base::front::{Close, ControllerLife, Intervention};
use base::view::{LoginName, Principal, View};
use base::{Answer, Ask, Bug, ConnectionId, Effects, HostId, PortalId, VolumeId, planted, planted_if};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod resets;
#[cfg(test)]
mod tests;

/// Most NVMe controllers; ids from 1 on, of the second of two heads from 8,193 on.
pub const CONTROLLERS_MAX: u16 = 8192;
/// Most iSCSI sessions; handles likewise.
pub const SESSIONS_MAX: u16 = 8192;

/// A connection of some shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The shard.
    pub shard: u16,
    /// Its connection.
    pub connection: ConnectionId,
}

/// Who a session belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Identity {
    /// An NVMe controller.
    Controller {
        /// Host NQN.
        nqn: String,
        /// Host identifier.
        host_id: [u8; 16],
        /// A discovery controller.
        discovery: bool,
    },
    /// An iSCSI session.
    Session {
        /// Initiator name.
        initiator: String,
        /// Initiator session id.
        isid: [u8; 6],
        /// A discovery session.
        discovery: bool,
    },
}

/// One controller or session.
#[derive(Clone, Debug)]
pub struct Session {
    /// Who.
    pub identity: Identity,
    /// What it was let in by, once its host is known.
    principal: Option<Principal>,
    /// The portal of its first connection.
    pub portal: PortalId,
    /// Admin queue or only connection first, then I/O queues.
    pub places: Vec<Place>,
    /// I/O queues by queue id.
    queues: Vec<(u16, Place)>,
    /// It takes I/O queues: its host has enabled it.
    enabled: bool,
    /// As its host knows it, since it was enabled first.
    life: Option<ControllerLife>,
    /// Its I/O queues may tell a Command Retry Delay.
    retry_delay: bool,
    /// It is being ended: takes no more connections.
    ending: bool,
    /// Connections that have begun to end, while the rest goes on.
    dying: Vec<Place>,
}

/// Stands for all that the other head had sent to a shard: no connection has this number.
fn far_place(shard: u16) -> Place {
    Place { shard, connection: ConnectionId(u64::MAX) }
}

/// Stands for what the other head is asked under this number: whether anything of a host is ending there.
fn asked_place(number: u64) -> Place {
    Place { shard: u16::MAX, connection: ConnectionId(number) }
}
/// Stands for the other head, until it is shut out.
pub(super) const OTHER: Place = Place { shard: u16::MAX, connection: ConnectionId(u64::MAX) };
/// It stands for the other head.
pub(super) fn far_away(place: &Place) -> bool {
    place.shard == u16::MAX
}
/// It stands for no connection of a host.
pub(super) fn stands_for_more(place: &Place) -> bool {
    far_away(place) || *place == far_place(place.shard)
}

/// What is to be said to the other head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// A host of this name has come here: what do you have of it?
    Comes {
        /// The question's number.
        number: u64,
        /// NQN or iSCSI name.
        name: String,
    },
    /// A host here ends the tasks of all others on these logical units.
    Clear {
        /// The number of what it wants.
        number: u64,
        /// The logical units.
        units: Arc<[VolumeId]>,
        /// It is a reset.
        reset: bool,
    },
    /// A host here has its controller there ended.
    Reset {
        /// The number of what it wants.
        number: u64,
        /// Its NQN.
        name: String,
        /// The controller.
        life: ControllerLife,
    },
    /// What you wanted is done.
    Done {
        /// Your number for it.
        number: u64,
    },
}

/// What the other head may have of hosts that come here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Other {
    /// Nothing: it serves no hosts.
    #[default]
    Nothing,
    /// It serves, and says what it has.
    Serves,
    /// It served, and is not shut out yet.
    Gone,
}

struct Waiting {
    place: Place,
    id: u16,
    controller: bool,
    /// Connections that must be gone first: of the same host, those that have begun to end until it is answered.
    before: Vec<Place>,
}

/// The registry.
#[derive(Default)]
pub struct Sessions {
    controllers: BTreeMap<u16, Session>,
    sessions: BTreeMap<u16, Session>,
    waiting: Vec<Waiting>,
    interventions: Interventions,
    /// Stand for what the other head had sent to shards here.
    parting: Vec<Place>,
    partings: u32,
    /// What the other head may have of hosts; questions to it that are to be sent, and the number of the last one.
    other: Other,
    words: Vec<Word>,
    asked: u64,
    /// The view that shards were given last.
    view: Arc<View>,
    /// How many ids are the other head's, which come before ours.
    others: u16,
    last_controller: u16,
    last_session: u16,
}

impl Session {
    /// It only asks what there is.
    pub fn is_discovery(&self) -> bool {
        match self.identity {
            Identity::Controller { discovery, .. } | Identity::Session { discovery, .. } => discovery,
        }
    }
    /// Its host, if it is known.
    pub fn host(&self) -> Option<HostId> {
        self.principal.map(|p| p.host)
    }

    /// The name by which its host logged in.
    fn name(&self) -> LoginName<'_> {
        match &self.identity {
            Identity::Controller { nqn, .. } => LoginName::Nqn(nqn),
            Identity::Session { initiator, .. } => LoginName::Iqn(initiator),
        }
    }

    /// Whether its host would be let in now as it was then.
    fn is_admitted(&self, view: &View) -> bool {
        view.admits(self.name(), self.principal) || planted(Bug::LoginOutlives)
    }

    /// Its connections that have begun to end: their writes may still be at the drives.
    fn leaving(&self) -> &[Place] {
        if self.ending { &self.places } else { &self.dying }
    }
}

impl Sessions {
    /// This is the first or the second of two heads. Each has ids of its own: a host that comes to one of them may still
    /// hold a controller of the other, and refuses a second one of that id in the same subsystem.
    pub fn of_head(&mut self, index: usize) {
        debug_assert!(index < 2, "a system has two heads");
        self.others = if index == 0 { 0 } else { CONTROLLERS_MAX.max(SESSIONS_MAX) };
    }
    /// Everything that is connected: controllers, then sessions.
    pub fn all(&self) -> impl Iterator<Item = &Session> {
        self.controllers.values().chain(self.sessions.values())
    }
    /// Connections that wait to be let in; the number of the last parting, and shards that have not parted yet. For checkers.
    pub(in crate::steward) fn counts(&self) -> (u32, u32, Vec<u16>) {
        let parting = self.parting.iter().map(|place| place.shard).collect();
        (self.waiting.len() as u32, self.partings, parting)
    }
    /// Every connection.
    pub fn places(&self) -> Vec<Place> {
        self.all().flat_map(|s| s.places.iter().copied()).collect()
    }

    /// The other head serves hosts: it is asked about each that comes here. What one has given up there may still be at a drive.
    pub fn other_serves(&mut self) {
        self.other = Other::Serves;
    }
    /// It is gone, and not shut out yet: whoever comes waits for that.
    pub fn other_is_gone(&mut self) {
        if self.other == Other::Nothing {
            return;
        }
        self.other = Other::Gone;
        self.words.clear();
        self.interventions.other_is_gone();
        for w in &mut self.waiting {
            let asked = w.before.iter().any(far_away);
            w.before.retain(|p| !far_away(p));
            w.before.extend(asked.then_some(OTHER));
        }
    }
    /// It is shut out: nothing that it had sent to drives is left.
    pub fn other_is_shut_out(&mut self, fx: &mut Effects<Mail>) {
        if self.other == Other::Gone {
            self.other = Other::Nothing;
            self.on_gone(OTHER, fx);
        }
    }
    /// What is to be said to the other head.
    pub fn take_words(&mut self) -> Vec<Word> {
        let done = self.interventions.take_done().into_iter().map(|number| Word::Done { number });
        self.words.extend(done);
        core::mem::take(&mut self.words)
    }
    /// A host there ends the tasks of all others on these logical units.
    pub fn clear_for_other(
        &mut self,
        number: u64,
        units: Arc<[VolumeId]>,
        reset: bool,
        fx: &mut Effects<Mail>,
    ) {
        let targets = self.with_tasks().into_iter().chain(self.parting.iter().copied()).collect();
        let what = Intervention::ClearTasks { units, reset };
        self.interventions.begin_for_other(number, what, targets, fx);
    }
    /// Connections of hosts that have tasks.
    fn with_tasks(&self) -> Vec<Place> {
        let normal = |s: &&Session| !matches!(s.identity, Identity::Session { discovery: true, .. });
        self.sessions.values().filter(normal).flat_map(|s| s.places.iter().copied()).collect()
    }
    /// What stands for the other head, which is to end tasks, too.
    fn clear_there(&mut self, units: &Arc<[VolumeId]>, reset: bool) -> Option<Place> {
        match self.other {
            Other::Nothing => None,
            Other::Gone => Some(OTHER),
            Other::Serves if planted(Bug::ResetHereAlone) => None,
            Other::Serves => {
                let units = units.clone();
                Some(self.ask_there(|number| Word::Clear { number, units, reset }))
            }
        }
    }
    /// The other head has nothing of that host that is ending.
    pub fn other_has_nothing(&mut self, number: u64, fx: &mut Effects<Mail>) {
        self.on_gone(asked_place(number), fx);
    }
    /// Whether anything of a host is ending here.
    pub fn is_ending(&self, name: &str) -> bool {
        let of = |s: &&Session| match &s.identity {
            Identity::Controller { nqn, .. } => nqn == name,
            Identity::Session { initiator, .. } => initiator.eq_ignore_ascii_case(name),
        };
        self.all().filter(of).any(|s| !s.leaving().is_empty())
    }
    /// What must be heard of the other head before a host is let in.
    fn ask_other(&mut self, name: &str) -> Option<Place> {
        match self.other {
            Other::Nothing => None,
            Other::Gone => (!planted(Bug::AdmittedUnfenced)).then_some(OTHER),
            Other::Serves if planted(Bug::AdmittedUnasked) => None,
            Other::Serves => {
                let name = name.into();
                Some(self.ask_there(|number| Word::Comes { number, name }))
            }
        }
    }
    /// Says that to the other head, by a number of its own: what stands for its answer.
    fn ask_there(&mut self, word: impl FnOnce(u64) -> Word) -> Place {
        self.asked += 1;
        self.words.push(word(self.asked));
        asked_place(self.asked)
    }
    /// A view that shards are about to get. Hosts keep the numbers of what they must prove, or get new ones. Portals that are the
    /// other head's from now on: hosts that came by them come there, and nothing of theirs begins here any more. Everything
    /// else that the view takes away shards end themselves.
    pub fn on_view(&mut self, mut view: View, fx: &mut Effects<Mail>) -> Arc<View> {
        let generation = view.generation;
        for host in &mut view.hosts {
            let before = self.view.host(host.id).filter(|before| before.proves_as(host));
            host.proof_generation = before.map_or(generation, |before| before.proof_generation);
        }
        let there = view.portals.iter().filter(|p| p.head != view.head);
        let elsewhere: BTreeSet<PortalId> = there.map(|p| p.id).collect();
        self.view = Arc::new(view);
        let differs = || self.all().any(|s| !s.ending && elsewhere.contains(&s.portal));
        if !planted_if(Bug::PortalLeavesAlone, differs) {
            self.end_all(|s| elsewhere.contains(&s.portal), fx);
        }
        self.view.clone()
    }

    fn end_all(&mut self, ends: impl Fn(&Session) -> bool, fx: &mut Effects<Mail>) {
        for session in self.controllers.values_mut().chain(self.sessions.values_mut()) {
            if !session.ending && ends(session) {
                session.ending = true;
                drop_all(&session.places, fx);
            }
        }
    }
    /// The other head is out. What it had sent to these shards may still be at drives: nobody is let in before that is over, as it may be
    /// of somebody who comes here next. They are told under this number, and repeat it.
    #[must_use]
    pub fn parts(&mut self, shards: u16) -> u32 {
        let shards = if shards > 1 && planted(Bug::FirstShardParts) { 1 } else { shards };
        self.parting = (0..shards).map(far_place).collect();
        self.partings += 1;
        self.interventions.parts(&self.parting);
        self.partings
    }
    /// On this shard it is, of all that was there when it was told under this number.
    pub fn has_parted(&mut self, shard: u16, number: u32, fx: &mut Effects<Mail>) {
        let place = far_place(shard);
        let differs = || self.parting.contains(&place);
        if number != self.partings && !planted_if(Bug::PartingOfBefore, differs) {
            return;
        }
        self.parting.retain(|p| *p != place);
        self.on_gone(place, fx);
    }
    /// Whether this head listens at a portal. One that closes its portals shows none, and answers who came before.
    fn listens(&self, portal: PortalId) -> bool {
        self.view.portals.is_empty() || self.view.listens(portal)
    }

    /// A connection asks to be let in.
    pub fn on_ask(&mut self, place: Place, portal: PortalId, ask: Ask, fx: &mut Effects<Mail>) {
        // An order came while it logged in, or while its question was on the way.
        let is_admitted = self.view.admits(ask.name(), ask.principal());
        if !self.listens(portal) || !is_admitted && !planted(Bug::LoginOutlives) {
            return answer(place, Answer::Changed, fx);
        }
        let host = ask.host();
        match ask {
            Ask::NvmeAdmin { principal, nqn, host_id, discovery } => {
                // NVMe lets one host have several controllers (one for each path): none is replaced.
                let ids = (self.others, CONTROLLERS_MAX);
                let Some(id) = free_id(&self.controllers, host, &mut self.last_controller, ids) else {
                    return answer(place, Answer::Full, fx);
                };
                let asked = if discovery { None } else { self.ask_other(&nqn) };
                let identity = Identity::Controller { nqn, host_id, discovery };
                let mut before = self.ending_of(&identity);
                before.extend(asked);
                let session = Session {
                    identity,
                    principal,
                    portal,
                    places: vec![place],
                    queues: vec![],
                    enabled: false,
                    life: None,
                    retry_delay: false,
                    ending: false,
                    dying: vec![],
                };
                self.controllers.insert(id, session);
                self.admit(Waiting { place, id, controller: true, before }, fx);
            }
            Ask::NvmeIo { principal, controller, nqn, host_id, queue } => {
                let found = self.controllers.get_mut(&controller).filter(|s| !s.ending);
                let found = found.filter(|s| s.principal == principal);
                let identity = Identity::Controller { nqn, host_id, discovery: false };
                match found.filter(|s| s.identity == identity) {
                    Some(session) if !session.enabled => answer(place, Answer::Disabled, fx),
                    Some(session) => {
                        let before = session.dying.clone();
                        if session.queues.iter().any(|(q, p)| *q == queue && !before.contains(p)) {
                            return answer(place, Answer::Taken, fx);
                        }
                        session.places.push(place);
                        session.queues.push((queue, place));
                        self.admit(Waiting { place, id: controller, controller: true, before }, fx);
                    }
                    None => answer(place, Answer::Unknown, fx),
                }
            }
            Ask::Iscsi { principal, initiator, isid, tsih, discovery } => {
                let asked = if discovery { None } else { self.ask_other(&initiator) };
                // RFC 7143 6.3.5: the same initiator and ISID replace the session that has them.
                let identity = Identity::Session { initiator, isid, discovery };
                if tsih != 0 && !self.sessions.get(&tsih).is_some_and(|s| s.identity == identity) {
                    return answer(place, Answer::Unknown, fx);
                }
                let mut before = vec![];
                if !discovery {
                    for session in self.sessions.values_mut().filter(|s| s.identity == identity) {
                        before.extend(session.places.iter().copied());
                        if !session.ending {
                            session.ending = true;
                            drop_all(&session.places, fx);
                        }
                    }
                }
                before.extend(asked);
                let ids = (self.others, SESSIONS_MAX);
                let Some(id) = free_id(&self.sessions, host, &mut self.last_session, ids) else {
                    return answer(place, Answer::Full, fx);
                };
                let session = Session {
                    identity,
                    principal,
                    portal,
                    places: vec![place],
                    queues: vec![],
                    enabled: false,
                    life: None,
                    retry_delay: false,
                    ending: false,
                    dying: vec![],
                };
                self.sessions.insert(id, session);
                self.admit(Waiting { place, id, controller: false, before }, fx);
            }
        }
    }

    /// A connection has begun to end; its commands may still be at the drives. Who comes next with the
    /// same identity waits for it. An admin queue takes its I/O queues along. An I/O queue that is `lost`, with commands
    /// that nobody gave up, takes the others along, as its host takes their commands for lost, too (NVMe Base 3.1.1);
    /// the admin queue stays even then: a host that says good-bye closes I/O queues first, and then shuts down over that
    /// (docs/faults.md).
    pub fn on_ending(&mut self, place: Place, lost: bool, fx: &mut Effects<Mail>) {
        for table in [&mut self.controllers, &mut self.sessions] {
            for session in table.values_mut().filter(|s| !s.ending && s.places.contains(&place)) {
                let is_news = !session.dying.contains(&place);
                if is_news {
                    session.dying.push(place);
                }
                if session.places.first() != Some(&place) {
                    if lost && is_news {
                        let lives = |p: &Place| !session.dying.contains(p);
                        let others: Vec<Place> =
                            session.queues.iter().map(|(_, p)| *p).filter(lives).collect();
                        drop_all(&others, fx);
                        session.dying.extend(others);
                    }
                    continue;
                }
                session.ending = true;
                let others: Vec<Place> = session.places.iter().copied().filter(|p| *p != place).collect();
                drop_all(&others, fx);
            }
        }
        // Nor is anybody let in who asked before that.
        for i in 0..self.waiting.len() {
            let w = &self.waiting[i];
            let table = if w.controller { &self.controllers } else { &self.sessions };
            let Some(own) = table.get(&w.id) else { continue };
            let same = table.values().filter(|s| s.identity == own.identity && s.places.contains(&place));
            let more: Vec<Place> = same.flat_map(Session::leaving).copied().collect();
            let w = &mut self.waiting[i];
            for p in more.into_iter().filter(|p| *p != w.place) {
                if !w.before.contains(&p) {
                    w.before.push(p);
                }
            }
        }
    }

    /// A connection is over, and so are its commands.
    pub fn on_gone(&mut self, place: Place, fx: &mut Effects<Mail>) {
        self.on_ending(place, false, fx);
        self.waiting.retain(|w| w.place != place);
        for table in [&mut self.controllers, &mut self.sessions] {
            for session in table.values_mut() {
                session.places.retain(|p| *p != place);
                session.queues.retain(|(_, p)| *p != place);
                session.dying.retain(|p| *p != place);
            }
            table.retain(|_, s| !s.places.is_empty());
        }
        for w in &mut self.waiting {
            w.before.retain(|p| *p != place);
        }
        let (ready, waiting) =
            core::mem::take(&mut self.waiting).into_iter().partition(|w| w.before.is_empty());
        self.waiting = waiting;
        for w in ready {
            self.admit(w, fx);
        }
        self.interventions.on_gone(place, fx);
    }

    /// A connection wants something of others.
    pub fn on_intervene(&mut self, asker: Place, key: u16, what: Intervention, fx: &mut Effects<Mail>) {
        let there = match &what {
            Intervention::ClearTasks { units, reset } => self.clear_there(units, *reset),
            _ => None,
        };
        let reset = match &what {
            Intervention::ResetController { life } => self.reset(asker, *life, fx),
            _ => vec![],
        };
        let tasks = self.with_tasks();
        let mut own = self.controllers.values_mut().filter(|s| s.places.first() == Some(&asker));
        let targets: Vec<Place> = match (&what, own.next()) {
            (Intervention::AbortCommand { queue, .. }, Some(s)) => {
                // The newest, if an older one of this id is about to end.
                s.queues.iter().rev().find(|(q, _)| q == queue).map(|(_, p)| *p).into_iter().collect()
            }
            (Intervention::BeginQueues { life }, Some(s)) => {
                (s.enabled, s.life) = (true, Some(*life));
                vec![]
            }
            (Intervention::EndQueues, Some(s)) => {
                (s.enabled, s.retry_delay) = (false, false);
                let queues: Vec<Place> = s.queues.iter().map(|(_, p)| *p).collect();
                drop_all(&queues, fx);
                queues
            }
            (Intervention::RetryDelay { enabled }, Some(s)) => {
                s.retry_delay = *enabled;
                s.queues.iter().map(|(_, p)| *p).collect()
            }
            (Intervention::ClearTasks { .. }, _) => {
                let parting = self.parting.iter().copied();
                tasks.into_iter().filter(|p| *p != asker).chain(parting).chain(there).collect()
            }
            (Intervention::ResetController { .. }, _) => reset,
            // The asker's session has ended meanwhile.
            (
                Intervention::AbortCommand { .. }
                | Intervention::BeginQueues { .. }
                | Intervention::EndQueues
                | Intervention::RetryDelay { .. },
                None,
            ) => vec![],
        };
        self.interventions.begin(asker, key, what, targets, fx);
    }
    /// A connection has done what was asked of it.
    pub fn on_obeyed(&mut self, place: Place, id: u32, yes: bool, fx: &mut Effects<Mail>) {
        self.interventions.on_obeyed(place, id, yes, fx);
    }

    /// Connections of the same host that end: their writes may still be at the drives.
    fn ending_of(&self, identity: &Identity) -> Vec<Place> {
        let same = self.controllers.values().filter(|s| s.identity == *identity);
        same.flat_map(Session::leaving).copied().collect()
    }
    fn admit(&mut self, mut w: Waiting, fx: &mut Effects<Mail>) {
        let news = |p: &&Place| !w.before.contains(p);
        let parting: Vec<Place> = self.parting.iter().filter(news).copied().collect();
        w.before.extend(parting);
        if w.before.is_empty() {
            let table = if w.controller { &self.controllers } else { &self.sessions };
            let session = table.get(&w.id).filter(|s| !s.ending);
            // An order may have come while it waited.
            let what = match session {
                Some(s) if s.is_admitted(&self.view) => Answer::Admitted { id: w.id },
                Some(_) => Answer::Changed,
                None => Answer::Unknown,
            };
            answer(w.place, what, fx);
            if session.is_some_and(|s| s.retry_delay) {
                let what = Intervention::RetryDelay { enabled: true };
                self.interventions.tell(w.place, what, fx);
            }
        } else {
            self.waiting.push(w);
        }
    }
}

/// Answers what a connection asked.
pub(in crate::steward) fn answer(place: Place, answer: Answer, fx: &mut Effects<Mail>) {
    let mail = ShardMail::Answer { connection: place.connection, answer };
    fx.push(to_shard(place.shard, mail));
}

fn drop_all(places: &[Place], fx: &mut Effects<Mail>) {
    for p in places {
        let mail = ShardMail::Drop { connection: p.connection, why: Close::Replaced };
        fx.push(to_shard(p.shard, mail));
    }
}

/// The next free id after the last one given, of so many behind those of the other head: ids are not reused soon. None if
/// there is none, or if the host has its share (see `shard::accept`).
fn free_id(
    table: &BTreeMap<u16, Session>,
    host: Option<HostId>,
    last: &mut u16,
    (others, max): (u16, u16),
) -> Option<u16> {
    let own = table.values().filter(|s| host.is_some() && s.host() == host).count() as u64;
    let left = u64::from(max) - table.len() as u64;
    if own > 0 && !has_share(own, 1, left) {
        return None;
    }
    let next = last.saturating_sub(others);
    let id = (0..max).map(|i| others + (next + i) % max + 1).find(|id| !table.contains_key(id))?;
    *last = id;
    Some(id)
}
