//! The life of a head that is one of two: outside, follower, leader.

use crate::mail::{ManagerMail, ShardMail};
use crate::peer::{OutSince, SystemSettings, TrialFound, link_fault};
use crate::steward::context::head::Stop;
use crate::steward::context::system::SystemContext;
use crate::steward::procedures::Procedures;
use base::{Duration, Instant, Uuid};
use cluster::member::{Do, Out};
use cluster::watch::Why;
use cluster::{HeadNo, Part};
use finding::{OutReason, SystemEvent};
use std::cell::Cell;
use std::rc::Rc;

/// How long a takeover waits for a drive that is being opened.
const OPENING_PATIENCE: Duration = Duration::from_millis(100);

/// A head's letter and name.
pub(super) fn name_of(record: &cluster::SystemRecord, head: HeadNo) -> (String, String) {
    (head.letter().to_string(), record.head(head).name.clone())
}

/// `has_not`: what the other head had to keep, and could not.
fn reason_of(why: Why, has_not: Option<&finding::Why>) -> OutReason {
    match why {
        Why::Ended => OutReason::Ended,
        Why::Still { silent } => OutReason::Still { silent_milliseconds: silent.as_millis() as u64 },
        Why::Cut { silent } => OutReason::Cut { silent_milliseconds: silent.as_millis() as u64 },
        Why::Silent => match has_not {
            Some(why) => OutReason::NotKept { why: Box::new(why.clone()) },
            None => OutReason::Unconfirmed,
        },
        Why::Asked => OutReason::Asked,
        Why::LostPath => OutReason::LostPath,
    }
}

impl Procedures {
    /// Works on what is known of the system, if this head is one of two.
    pub(crate) fn in_system<T>(&self, work: impl FnOnce(&mut SystemContext) -> T) -> Option<T> {
        let mut context = self.context_quietly();
        let system = context.system_mut()?;
        self.cx.changed();
        Some(work(system))
    }
    /// From now on this head is one of two; `founds`: of a system that is new.
    pub(crate) async fn enter_system(&self, settings: SystemSettings, founds: bool) {
        self.cx.share();
        let known = self.known_record(settings.system).await;
        {
            let mut context = self.context_mut();
            let (life, seed) = (context.new_incarnation(), context.new_incarnation());
            let blank = !founds && known.1 == cluster::SystemRecord::founding(settings.system).epoch;
            context.enters_system(SystemContext::new(settings, life, seed, known));
            if let Some(system) = context.system_mut().filter(|_| blank) {
                system.tell().on_blank();
                let procedures = self.clone();
                self.cx.spawn(async move { procedures.look_for_system().await });
            }
        }
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.run_member().await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.receive().await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.tell_what_it_lacks().await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.share_connections().await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_reach().await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_far().await });
    }
    /// Waits until this head leads, and every drive that it knows is fenced; None: the head is being stopped.
    pub(crate) async fn stand_by(&self) -> Option<()> {
        let now = self.cx.now();
        {
            let mut context = self.context_mut();
            let Some(system) = context.system_mut() else { return Some(()) };
            let (record, me) = (system.member().known().clone(), system.member().me());
            if let Some(said) = system.take_said() {
                context.happened(now, "system", said);
            }
            if record.head(me).state == cluster::HeadState::Out {
                context.happened(now, "system", SystemEvent::HeadWasPutOut { epoch: record.epoch });
            }
        }
        self.leave_addresses().await;
        let opens = Rc::new(Cell::new(true));
        let (procedures, still) = (self.clone(), opens.clone());
        self.cx.spawn(async move {
            procedures.keep_drives_open().await;
            still.set(false);
            procedures.cx.changed();
        });
        let procedures = self.clone();
        self.cx
            .until(move || {
                let context = procedures.context();
                context.stop != Stop::No || context.system.as_ref().is_some_and(|s| s.part() == Part::Leader)
            })
            .await;
        if self.context().stop != Stop::No {
            return None;
        }
        // A drive that is being opened just now would be held against the pools that are taken next.
        self.cx.until_within(OPENING_PATIENCE, move || !opens.get()).await;
        self.leave_given().await;
        self.fence_standby().await;
        Some(())
    }
    /// All that a leader takes is taken: the other head may be let in once no drive is waited for that it is not shut off.
    pub(crate) fn leads_all(&self) {
        self.let_standby_go();
        self.other_is_shut_out();
        let procedures = self.clone();
        self.cx.spawn(async move {
            let waits = procedures.clone();
            procedures.cx.until(move || !waits.context().waits_behind()).await;
            procedures.in_system(|s| s.tell().on_fenced());
        });
    }

    async fn run_member(&self) {
        loop {
            let now = self.cx.now();
            let at = self.context().system.as_ref().and_then(|s| s.member().next_deadline());
            let Some(at) = at else { return };
            let procedures = self.clone();
            let news = move || procedures.context().system.as_ref().is_some_and(|s| s.has_news());
            self.cx.until_within(at.since(now), news).await;
            self.offer_candidates();
            let now = self.cx.now();
            let dos = self.context_quietly().system_mut().map_or(vec![], |s| s.turn(now));
            for what in dos {
                self.cx.changed();
                self.do_it(now, what);
            }
            self.note_record(now);
            self.note_sight(now);
            self.note_old_directory(now);
        }
    }
    /// A head that starts by an older copy of its state directory says so.
    fn note_old_directory(&self, now: Instant) {
        let Some(Some(epoch)) = self.context_quietly().system_mut().map(SystemContext::news_of_directory)
        else {
            return;
        };
        self.context_mut().happened(now, "system", SystemEvent::StateDirectoryOlder { epoch });
    }
    /// A head that leads and does not see most voters any more says so.
    fn note_sight(&self, now: Instant) {
        let news = self.context_quietly().system_mut().and_then(|s| s.news_of_sight(now));
        match news {
            None => {}
            Some(true) => {
                let Ok(view) = self.system_view() else { return };
                let (reached, drives) = view.reaches;
                let unseen = SystemEvent::VotersUnreached { reached, drives, linked: view.linked };
                self.context_mut().happened(now, "system", unseen);
            }
            Some(false) => self.context_mut().happened(now, "system", SystemEvent::VotersReached),
        }
    }
    /// A leader tells which drives may vote: legs in sync, of different arrays first, and those alone that the follower reaches, too, if there
    /// are some. Else it could not take over while the leader that alone reaches them is away.
    fn offer_candidates(&self) {
        let mut context = self.context_quietly();
        let context = &mut *context;
        let leads = context.system.as_ref().is_some_and(|s| s.part() == Part::Leader);
        if !leads || !context.ready {
            return;
        }
        let mut candidates = vec![];
        // What is not marked as a system's may be cleared where votes lie.
        for pool in context.pools.iter().filter(|p| p.config().shared.is_some()) {
            for (a, array) in pool.arrays.iter().enumerate() {
                for (l, leg) in array.legs.iter().enumerate() {
                    let open = leg.open.as_ref().or(leg.behind.as_ref());
                    let Some(open) = open.filter(|_| !pool.is_out(a, l)) else { continue };
                    candidates.push((l, a, open.label.drive));
                }
            }
        }
        if let Some(system) = context.system.as_ref().filter(|s| s.member().follower_is_in()) {
            let by_both = |(.., drive): &(usize, usize, Uuid)| !system.reached().is_lacked(*drive);
            if candidates.iter().any(by_both) {
                candidates.retain(by_both);
            }
        }
        candidates.sort();
        let drives = candidates.into_iter().map(|(.., drive)| drive).collect();
        if let Some(system) = context.system_mut() {
            system.offers(drives);
        }
    }
    /// Why this head does not take over.
    fn behind(&self, (head, name): (String, String)) -> SystemEvent {
        let flaw = self.context().system.as_ref().and_then(|s| {
            s.tried().told().iter().find_map(|t| match &t.found {
                TrialFound::Fails(why) => Some((t.path.clone(), why.clone())),
                TrialFound::Holds { .. } | TrialFound::NotTried(_) => None,
            })
        });
        match flaw {
            Some((drive, why)) => SystemEvent::HeadOutFenceFails { head, name, drive, why },
            None => SystemEvent::HeadOutBehind { head, name },
        }
    }
    fn reason_of(&self, why: Why) -> OutReason {
        let context = self.context();
        reason_of(why, context.system.as_ref().and_then(SystemContext::has_not))
    }
    /// The other head is out from now on, and why; None: it is in, or nobody knows why not.
    fn note_out(&self, now: Instant, why: Option<Why>) {
        let at = self.context().unix(now);
        let lives = matches!(why, Some(Why::Cut { .. }));
        let out = why.map(|why| OutSince { at, why: self.reason_of(why), lives });
        self.in_system(|s| s.goes_out(out));
    }
    fn do_it(&self, now: Instant, what: Do) {
        let (record, me, epoch) = {
            let context = self.context();
            let member = context.system.as_ref().expect("one of two").member();
            (member.known().clone(), member.me(), member.known().epoch)
        };
        let (head, name) = name_of(&record, me.other());
        let event = |what| self.context_mut().happened(now, "system", what);
        let procedures = self.clone();
        match what {
            Do::Link(work) => {
                if let cluster::link::Do::Close { why, .. } = &work
                    && self.in_system(|s| s.closes(*why)) == Some(true)
                {
                    event(SystemEvent::OtherHeadRefused { head, name, why: link_fault(*why) });
                }
                if let Some(work) = self.context().system.as_ref().and_then(|s| s.work(work)) {
                    self.cx.to_manager(ManagerMail::Peer(work));
                }
            }
            Do::Vote(ask) => self.cx.spawn(async move { procedures.vote(ask).await }),
            Do::VoteFor { number, write } => {
                self.cx.spawn(async move { procedures.vote_for(me, number, write).await })
            }
            Do::Heartbeat { drive, heartbeat } => {
                self.cx.spawn(async move { procedures.heartbeat_on(drive, heartbeat).await })
            }
            Do::Lead { why } => {
                event(match record.head(me.other()).state {
                    cluster::HeadState::None => SystemEvent::HeadLeads { epoch },
                    _ => SystemEvent::HeadLeadsAlone {
                        epoch,
                        head,
                        name,
                        why: why.map(|why| self.reason_of(why)),
                    },
                });
                self.in_system(|s| s.begins_to_lead(now));
                self.note_out(now, why);
                self.cx.to_manager(ManagerMail::Leads(true));
            }
            Do::Sight { until } => {
                self.in_system(|s| s.sees(until));
                self.tell_shards(|| ShardMail::Sight { until });
            }
            Do::Serve => drop(self.in_system(|s| s.may_serve())),
            Do::Follow => {
                self.cx.to_manager(ManagerMail::Leads(false));
                event(SystemEvent::HeadFollows { epoch, head, name });
                self.in_system(|s| s.reach().is_new());
            }
            Do::PutOut { why } => {
                let reason = self.reason_of(why);
                event(SystemEvent::OtherHeadOut { epoch, head, name, why: reason });
                self.note_out(now, Some(why));
                self.far_goes();
                self.cx.spawn(async move { procedures.shut_out().await });
            }
            Do::LetIn => {
                event(SystemEvent::OtherHeadIn { epoch, head, name });
                self.context_mut().addresses.is_news();
                self.note_out(now, None);
                self.far_goes();
                self.in_system(|s| s.reach().is_new());
                self.cx.spawn(async move { procedures.sync_follower(epoch).await });
            }
            Do::End(out) => {
                let why = match out {
                    Out::Decided(epoch) => SystemEvent::HeadOutDecided { epoch },
                    Out::Behind => self.behind((head, name)),
                    Out::Fenced => SystemEvent::HeadOutFenced,
                };
                event(why.clone());
                self.cx.to_manager(ManagerMail::Out(why.into()));
            }
            Do::Upper(bytes) => drop(self.in_system(|s| s.comes(bytes))),
        }
    }
}
