//! Sessions: which host is connected how. NVMe controllers and iSCSI sessions of the whole head.
//!
//! Promise 3: a host's Connect or Login is answered only after the writes of the connections that it
//! replaces have ended at the drives. So an answer may have to wait for `Gone` of older connections.

use crate::admission::buffer_quota::has_share;
use crate::mail::{Mail, ShardMail, to_shard};
use crate::steward::sessions::interventions::Interventions;
use base::front::{Close, ControllerLife, Intervention};
use base::view::View;
use base::{Answer, Ask, Bug, ConnectionId, Effects, HostId, PortalId, VolumeId, planted};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod resets;

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
    /// Controller id or TSIH; the two are numbered apart.
    pub id: u16,
    /// Who.
    pub identity: Identity,
    /// The host, once known.
    pub host: Option<HostId>,
    /// The portal of its first connection.
    pub portal: PortalId,
    /// See `portal`.
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
    /// Portals of the other head.
    elsewhere: BTreeSet<PortalId>,
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
    /// Connections of those sessions of a host that `counts`.
    pub fn places_of(&self, host: HostId, counts: impl Fn(&Session) -> bool) -> Vec<Place> {
        let mine = self.all().filter(|s| s.host == Some(host) && counts(s));
        mine.flat_map(|s| s.places.iter().copied()).collect()
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
    /// Portals that are the other head's from now on: hosts that came by them come there, and nothing of theirs begins here any more.
    pub fn on_portals(&mut self, view: &View, fx: &mut Effects<Mail>) {
        let there = view.portals.iter().filter(|p| p.head != view.head);
        self.elsewhere = there.map(|p| p.id).collect();
        if planted(Bug::PortalLeavesAlone) {
            return;
        }
        let gone = |s: &&mut Session| !s.ending && self.elsewhere.contains(&s.portal);
        for session in self.controllers.values_mut().chain(self.sessions.values_mut()).filter(gone) {
            session.ending = true;
            drop_all(&session.places, fx);
        }
    }
    /// The other head is out. What it had sent to these shards may still be at drives: nobody is let in before that is over, as it may be
    /// of somebody who comes here next.
    pub fn parts(&mut self, shards: u16) {
        self.parting = (0..shards).map(far_place).collect();
        self.partings += 1;
        self.interventions.parts(&self.parting);
    }
    /// On this shard it is.
    pub fn has_parted(&mut self, shard: u16, number: u32, fx: &mut Effects<Mail>) {
        if number != self.partings {
            return;
        }
        let place = far_place(shard);
        self.parting.retain(|p| *p != place);
        self.on_gone(place, fx);
    }
    /// A connection asks to be let in.
    pub fn on_ask(&mut self, place: Place, portal: PortalId, ask: Ask, fx: &mut Effects<Mail>) {
        if self.elsewhere.contains(&portal) {
            // It was on the way as the portal went.
            return answer(place, Answer::Unknown, fx);
        }
        match ask {
            Ask::NvmeAdmin { host, nqn, host_id, discovery } => {
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
                    id,
                    identity,
                    host,
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
            Ask::NvmeIo { controller, nqn, host_id, queue } => {
                let found = self.controllers.get_mut(&controller).filter(|s| !s.ending);
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
            Ask::Iscsi { host, initiator, isid, tsih, discovery } => {
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
                    id,
                    identity,
                    host,
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
            let alive = session.is_some();
            answer(w.place, if alive { Answer::Admitted { id: w.id } } else { Answer::Unknown }, fx);
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
    let own = table.values().filter(|s| host.is_some() && s.host == host).count() as u64;
    let left = u64::from(max) - table.len() as u64;
    if own > 0 && !has_share(own, 1, left) {
        return None;
    }
    let next = last.saturating_sub(others);
    let id = (0..max).map(|i| others + (next + i) % max + 1).find(|id| !table.contains_key(id))?;
    *last = id;
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Effect;

    use base::VolumeId;

    pub(super) fn place(n: u32) -> Place {
        Place { shard: 0, connection: ConnectionId::new(n, 0) }
    }
    fn login(tsih: u16) -> Ask {
        let initiator = "iqn.2026-01.test:a".into();
        Ask::Iscsi { host: None, initiator, isid: [1; 6], tsih, discovery: false }
    }
    pub(super) fn admin(id: u8) -> Ask {
        Ask::NvmeAdmin { host: None, nqn: "nqn.a".into(), host_id: [id; 16], discovery: false }
    }
    fn io(queue: u16) -> Ask {
        Ask::NvmeIo { controller: 1, nqn: "nqn.a".into(), host_id: [1; 16], queue }
    }
    #[test]
    fn a_host_that_comes_from_one_head_to_the_other_gets_ids_that_it_never_had() {
        let ids = |index: usize| {
            let (mut s, mut fx) = (Sessions::default(), vec![]);
            s.of_head(index);
            for n in 1..=3 {
                s.on_ask(place(n), PortalId(0), admin(n as u8), &mut fx);
                s.on_ask(place(10 + n), PortalId(0), login(0), &mut fx);
                s.on_gone(place(10 + n), &mut fx);
            }
            // All are given once before the first one comes again.
            for n in 4..=u32::from(CONTROLLERS_MAX) {
                s.on_ask(place(1000 + n), PortalId(0), admin(n as u8), &mut fx);
            }
            s.on_ask(place(1), PortalId(0), admin(0), &mut fx);
            assert!(told(&mut fx).last().is_some_and(|t| t.ends_with("Full")));
            s.on_gone(place(2), &mut fx);
            s.on_ask(place(2), PortalId(0), admin(0), &mut fx);
            let again = told(&mut fx).pop().expect("an answer");
            let controllers: Vec<u16> = s.controllers.keys().copied().collect();
            (again, controllers[0], controllers[controllers.len() - 1], s.last_session)
        };
        assert_eq!(ids(0), ("2 Admitted { id: 2 }".into(), 1, 8192, 3));
        assert_eq!(ids(1), ("2 Admitted { id: 8194 }".into(), 8193, 16_384, 8195));
    }
    /// A controller at place 1, with its first I/O queues at 2 and 3.
    fn with_two_queues() -> (Sessions, Effects<Mail>) {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
        enable(&mut s, 1);
        s.on_ask(place(2), PortalId(0), io(1), &mut fx);
        s.on_ask(place(3), PortalId(0), io(2), &mut fx);
        told(&mut fx);
        (s, fx)
    }
    /// The host enables the controller of this admin queue.
    pub(super) fn enable(s: &mut Sessions, n: u32) -> ControllerLife {
        let mut fx = vec![];
        let id = s.controllers.values().find(|c| c.places[0] == place(n)).map_or(0, |c| c.id);
        let life = ControllerLife { id, uniquifier: 1, random: u64::from(n) };
        s.on_intervene(place(n), 99, Intervention::BeginQueues { life }, &mut fx);
        assert_eq!(told(&mut fx), [format!("{n}: 99 is done, false")]);
        life
    }
    pub(super) fn told(fx: &mut Effects<Mail>) -> Vec<String> {
        let text = |e: Effect<Mail>| match e {
            Effect::Mail { mail: Mail::Shard(ShardMail::Answer { connection, answer }), .. } => {
                format!("{} {answer:?}", connection.slot())
            }
            Effect::Mail { mail: Mail::Shard(ShardMail::Drop { connection, .. }), .. } => {
                format!("drop {}", connection.slot())
            }
            Effect::Mail { mail: Mail::Shard(ShardMail::Obey { connection, what, .. }), .. } => {
                let what = match what {
                    Intervention::AbortCommand { cid, .. } => format!("shall abort {cid}"),
                    Intervention::RetryDelay { enabled } => format!("may delay {enabled}"),
                    Intervention::ClearTasks { .. } => "shall clear".into(),
                    Intervention::BeginQueues { .. }
                    | Intervention::EndQueues
                    | Intervention::ResetController { .. } => "shall not hear of it".into(),
                };
                format!("{} {what}", connection.slot())
            }
            Effect::Mail { mail: Mail::Shard(ShardMail::Intervened { connection, key, yes }), .. } => {
                format!("{}: {key} is done, {yes}", connection.slot())
            }
            other => format!("{other:?}"),
        };
        fx.drain(..).map(text).collect()
    }

    #[test]
    fn a_session_is_reinstated_after_the_writes_of_the_old_one_have_ended() {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        s.on_ask(place(1), PortalId(0), login(0), &mut fx);
        assert_eq!(told(&mut fx), ["1 Admitted { id: 1 }"]);
        s.on_ask(place(2), PortalId(0), login(0), &mut fx);
        assert_eq!(told(&mut fx), ["drop 1"]);
        s.on_gone(place(1), &mut fx);
        assert_eq!(told(&mut fx), ["2 Admitted { id: 2 }"]);
        s.on_ask(place(3), PortalId(0), login(9), &mut fx);
        assert_eq!(told(&mut fx), ["3 Unknown"], "there is no such session to join");
    }

    #[test]
    fn who_waits_also_waits_for_what_begins_to_end_meanwhile() {
        let (mut s, mut fx) = with_two_queues();
        s.on_ending(place(3), false, &mut fx);
        s.on_ask(place(4), PortalId(0), admin(1), &mut fx);
        assert_eq!(told(&mut fx), [""; 0], "it waits for the queue that ends");
        s.on_ending(place(1), false, &mut fx);
        assert_eq!(told(&mut fx), ["drop 2", "drop 3"]);
        s.on_gone(place(1), &mut fx);
        s.on_gone(place(3), &mut fx);
        assert_eq!(told(&mut fx), [""; 0], "writes of the other queue may still be at the drives");
        s.on_gone(place(2), &mut fx);
        assert_eq!(told(&mut fx), ["4 Admitted { id: 2 }"]);
    }

    #[test]
    fn a_lost_queue_takes_the_others_along_but_for_the_admin_queue_and_the_next_connect_waits_for_all() {
        let (mut s, mut fx) = with_two_queues();
        s.on_ending(place(2), true, &mut fx);
        assert_eq!(told(&mut fx), ["drop 3"]);
        s.on_ask(place(4), PortalId(0), admin(1), &mut fx);
        s.on_ask(place(5), PortalId(0), io(1), &mut fx);
        s.on_gone(place(2), &mut fx);
        s.on_ending(place(3), true, &mut fx);
        assert_eq!(told(&mut fx), [""; 0], "what the other queue sent may still be at the drives");
        s.on_gone(place(3), &mut fx);
        assert_eq!(told(&mut fx), ["4 Admitted { id: 2 }", "5 Admitted { id: 1 }"]);
    }

    #[test]
    fn a_queue_that_lives_is_not_replaced_and_one_that_ends_is_waited_for() {
        let (mut s, mut fx) = with_two_queues();
        s.on_ask(place(9), PortalId(0), io(1), &mut fx);
        assert_eq!(told(&mut fx), ["9 Taken"], "and nothing else happens");
        s.on_gone(place(9), &mut fx);
        s.on_ending(place(2), false, &mut fx);
        s.on_ask(place(4), PortalId(0), io(1), &mut fx);
        s.on_ask(place(9), PortalId(0), io(1), &mut fx);
        assert_eq!(told(&mut fx), ["9 Taken"], "the one that waits comes first");
        let abort = Intervention::AbortCommand { queue: 1, cid: 7 };
        s.on_intervene(place(1), 5, abort, &mut fx);
        assert_eq!(told(&mut fx), ["4 shall abort 7"]);
        s.on_gone(place(2), &mut fx);
        assert_eq!(told(&mut fx), ["4 Admitted { id: 1 }"]);
        s.on_gone(place(4), &mut fx);
        assert_eq!(told(&mut fx), ["1: 5 is done, false"], "its commands are over with it");
    }

    #[test]
    fn io_queues_come_only_while_their_controller_is_enabled() {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        let io = || Ask::NvmeIo { controller: 1, nqn: "nqn.a".into(), host_id: [1; 16], queue: 1 };
        s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
        told(&mut fx);
        for _ in 0..2 {
            s.on_ask(place(2), PortalId(0), io(), &mut fx);
            assert_eq!(told(&mut fx), ["2 Disabled"]);
            enable(&mut s, 1);
            s.on_ask(place(2), PortalId(0), io(), &mut fx);
            assert_eq!(told(&mut fx), ["2 Admitted { id: 1 }"]);
            s.on_intervene(place(1), 4, Intervention::EndQueues, &mut fx);
            s.on_gone(place(2), &mut fx);
            assert_eq!(told(&mut fx), ["drop 2", "1: 4 is done, false"]);
        }
    }

    #[test]
    fn what_an_admin_queue_wants_is_done_by_the_queues_of_its_controller() {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        let io =
            |controller, id, queue| Ask::NvmeIo { controller, nqn: "nqn.a".into(), host_id: [id; 16], queue };
        s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
        s.on_ask(place(2), PortalId(0), admin(2), &mut fx);
        enable(&mut s, 1);
        enable(&mut s, 2);
        s.on_ask(place(3), PortalId(0), io(1, 1, 1), &mut fx);
        s.on_ask(place(4), PortalId(0), io(1, 1, 2), &mut fx);
        s.on_ask(place(5), PortalId(0), io(2, 2, 1), &mut fx);
        told(&mut fx);
        s.on_intervene(place(1), 1, Intervention::AbortCommand { queue: 2, cid: 9 }, &mut fx);
        s.on_intervene(place(1), 2, Intervention::AbortCommand { queue: 3, cid: 9 }, &mut fx);
        assert_eq!(told(&mut fx), ["4 shall abort 9", "1: 2 is done, false"]);
        s.on_obeyed(place(4), 3, true, &mut fx);
        assert_eq!(told(&mut fx), ["1: 1 is done, true"]);
        s.on_intervene(place(1), 3, Intervention::RetryDelay { enabled: true }, &mut fx);
        assert_eq!(told(&mut fx), ["3 may delay true", "4 may delay true"]);
        s.on_obeyed(place(3), 5, true, &mut fx);
        assert!(told(&mut fx).is_empty());
        s.on_obeyed(place(4), 5, true, &mut fx);
        assert_eq!(told(&mut fx), ["1: 3 is done, true"]);
        s.on_ask(place(6), PortalId(0), io(1, 1, 3), &mut fx);
        assert_eq!(told(&mut fx), ["6 Admitted { id: 1 }", "6 may delay true"], "as those before it");
        s.on_intervene(place(1), 4, Intervention::EndQueues, &mut fx);
        assert_eq!(told(&mut fx), ["drop 3", "drop 4", "drop 6"]);
        for (n, last) in [(3, false), (6, false), (4, true)] {
            s.on_gone(place(n), &mut fx);
            assert_eq!(told(&mut fx).is_empty(), !last);
        }
        s.on_intervene(place(2), 4, Intervention::EndQueues, &mut fx);
        assert_eq!(told(&mut fx), ["drop 5"]);
        s.on_gone(place(2), &mut fx);
        told(&mut fx);
        s.on_gone(place(5), &mut fx);
        assert!(told(&mut fx).is_empty(), "nobody is left to be told");
        enable(&mut s, 1);
        s.on_ask(place(7), PortalId(0), io(1, 1, 1), &mut fx);
        assert_eq!(told(&mut fx), ["7 Admitted { id: 1 }"], "a reset forgets what was set");
    }

    #[test]
    fn the_tasks_of_a_unit_are_ended_in_all_other_sessions() {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        for n in 1..4 {
            let initiator = format!("iqn.2026-01.test:{n}");
            let ask = Ask::Iscsi { host: None, initiator, isid: [1; 6], tsih: 0, discovery: n == 3 };
            s.on_ask(place(n), PortalId(0), ask, &mut fx);
        }
        s.on_ask(place(4), PortalId(0), admin(1), &mut fx);
        told(&mut fx);
        let reset = Intervention::ClearTasks { units: [VolumeId(1)].into(), reset: true };
        s.on_intervene(place(1), 0, reset, &mut fx);
        assert_eq!(told(&mut fx), ["2 shall clear"], "not a discovery session, nor NVMe");
        s.on_gone(place(2), &mut fx);
        assert_eq!(told(&mut fx), ["1: 0 is done, false"]);
    }

    #[test]
    fn a_reset_at_one_head_is_done_once_both_have_ended_the_tasks() {
        let two_sessions = || {
            let (mut s, mut fx) = (Sessions::default(), vec![]);
            for n in 1..3 {
                let initiator = format!("iqn.2026-01.test:{n}");
                let ask = Ask::Iscsi { host: None, initiator, isid: [1; 6], tsih: 0, discovery: false };
                s.on_ask(place(n), PortalId(0), ask, &mut fx);
            }
            told(&mut fx);
            s.other_serves();
            (s, fx)
        };
        let units: Arc<[VolumeId]> = [VolumeId(1)].into();
        let reset = || Intervention::ClearTasks { units: units.clone(), reset: true };
        let number = |s: &mut Sessions| match &s.take_words()[..] {
            [Word::Clear { number, units: said, reset: true }] if *said == units => *number,
            other => panic!("the other head is told of the reset, and of nothing else: {other:?}"),
        };
        for here_first in [true, false] {
            let (mut s, mut fx) = two_sessions();
            s.on_intervene(place(1), 7, reset(), &mut fx);
            assert_eq!(told(&mut fx), ["2 shall clear"]);
            let there = number(&mut s);
            let here = |s: &mut Sessions, fx: &mut Effects<Mail>| s.on_obeyed(place(2), 1, true, fx);
            match here_first {
                true => here(&mut s, &mut fx),
                false => s.other_has_nothing(there, &mut fx),
            }
            assert_eq!(told(&mut fx), [""; 0], "one of two");
            match here_first {
                true => s.other_has_nothing(there, &mut fx),
                false => here(&mut s, &mut fx),
            }
            assert_eq!(told(&mut fx), ["1: 7 is done, true"]);
        }
        // It goes meanwhile: what it had begun is over once it is shut out.
        let (mut s, mut fx) = two_sessions();
        s.on_intervene(place(1), 7, reset(), &mut fx);
        number(&mut s);
        s.on_obeyed(place(2), 1, true, &mut fx);
        s.other_is_gone();
        assert_eq!(told(&mut fx), ["2 shall clear"]);
        s.other_is_shut_out(&mut fx);
        assert_eq!(told(&mut fx), ["1: 7 is done, true"]);
        // What it had sent here may be at drives even then.
        let (mut s, mut fx) = two_sessions();
        s.on_intervene(place(1), 7, reset(), &mut fx);
        s.on_obeyed(place(2), 1, true, &mut fx);
        s.other_is_gone();
        s.parts(1);
        s.other_is_shut_out(&mut fx);
        s.on_intervene(place(2), 8, reset(), &mut fx);
        s.on_obeyed(place(1), 2, true, &mut fx);
        assert_eq!(told(&mut fx), ["2 shall clear", "1 shall clear"]);
        s.has_parted(0, 1, &mut fx);
        assert_eq!(told(&mut fx), ["1: 7 is done, true", "2: 8 is done, true"]);
        // The other one wants it: all here end, and it is told once they have.
        let (mut s, mut fx) = two_sessions();
        s.clear_for_other(5, units.clone(), true, &mut fx);
        assert_eq!(told(&mut fx), ["1 shall clear", "2 shall clear"]);
        s.on_obeyed(place(1), 1, true, &mut fx);
        assert_eq!(s.take_words(), []);
        s.on_gone(place(2), &mut fx);
        assert_eq!((told(&mut fx), s.take_words()), (vec![], vec![Word::Done { number: 5 }]));
    }

    #[test]
    fn the_end_of_the_admin_queue_ends_the_association_and_the_next_waits_for_it() {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
        let io =
            |controller, id| Ask::NvmeIo { controller, nqn: "nqn.a".into(), host_id: [id; 16], queue: 1 };
        assert_eq!(told(&mut fx), ["1 Admitted { id: 1 }"]);
        enable(&mut s, 1);
        s.on_ask(place(2), PortalId(0), io(1, 1), &mut fx);
        s.on_ask(place(3), PortalId(0), io(1, 2), &mut fx);
        s.on_ask(place(4), PortalId(0), io(7, 1), &mut fx);
        let both = ["2 Admitted { id: 1 }", "3 Unknown", "4 Unknown"];
        assert_eq!(told(&mut fx), both, "host id and controller must fit");
        s.on_ending(place(1), false, &mut fx);
        assert_eq!(told(&mut fx), ["drop 2"]);
        s.on_gone(place(1), &mut fx);
        s.on_ask(place(5), PortalId(0), admin(1), &mut fx);
        assert!(told(&mut fx).is_empty(), "queue 2 may have writes at the drives");
        s.on_gone(place(2), &mut fx);
        assert_eq!(told(&mut fx), ["5 Admitted { id: 2 }"]);
        enable(&mut s, 5);
        s.on_ask(place(6), PortalId(0), io(2, 1), &mut fx);
        assert_eq!(told(&mut fx), ["6 Admitted { id: 2 }"]);
        s.on_ending(place(6), false, &mut fx);
        assert!(told(&mut fx).is_empty(), "an I/O queue goes alone");
        s.on_ask(place(7), PortalId(0), io(2, 1), &mut fx);
        assert!(told(&mut fx).is_empty(), "queue 6 may have writes at the drives");
        s.on_gone(place(6), &mut fx);
        assert_eq!(told(&mut fx), ["7 Admitted { id: 2 }"]);
        s.on_gone(place(7), &mut fx);
        s.on_gone(place(5), &mut fx);
        assert_eq!(s.all().count(), 0);
    }
}
