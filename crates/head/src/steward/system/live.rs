//! The life of a head that is one of two: outside, follower, leader.

use crate::mail::{ManagerMail, ShardMail};
use crate::order::Weight;
use crate::peer::{OutSince, SystemSettings, TrialFound};
use crate::steward::context::desk::Stop;
use crate::steward::context::system::SystemDesk;
use crate::steward::link_words::{link_fault, link_next};
use crate::steward::office::Office;
use base::{Duration, Instant};
use cluster::member::{Do, Out};
use cluster::watch::Why;
use cluster::{HeadNo, Part};
use std::cell::Cell;
use std::rc::Rc;

/// How long a takeover waits for a drive that is being opened.
const OPENING_PATIENCE: Duration = Duration::from_millis(100);

/// The other head, in words: by its name if it has one.
pub(super) fn name_of(record: &cluster::SystemRecord, head: HeadNo) -> String {
    let row = record.head(head);
    let letter = ["a", "b"][head.index()];
    if row.name.is_empty() { format!("head {letter}") } else { format!("head {letter} ({})", row.name) }
}

fn why_words(why: Why) -> String {
    match why {
        Why::Ended => "its process has ended".into(),
        Why::Still { silent } => {
            format!(
                "the link was silent for {} ms and its heartbeat on the drives stood still",
                silent.as_millis()
            )
        }
        Why::Cut { silent } => format!("the link was silent for {} ms although it lives", silent.as_millis()),
        Why::Silent => "it did not confirm a change within 1 s".into(),
        Why::Asked => "an operator said so".into(),
        Why::LostPath => "it lost its path to a drive that this head reaches".into(),
    }
}

impl Office {
    /// Works on what is known of the system, if this head is one of two.
    pub(crate) fn in_system<T>(&self, work: impl FnOnce(&mut SystemDesk) -> T) -> Option<T> {
        let mut desk = self.desk_quietly();
        let system = desk.system_mut()?;
        self.cx.changed();
        Some(work(system))
    }
    /// From now on this head is one of two.
    pub(crate) async fn enter_system(&self, settings: SystemSettings) {
        self.cx.share();
        let known = self.known_record(settings.system).await;
        {
            let mut desk = self.desk_mut();
            let (life, seed) = (desk.new_incarnation(), desk.new_incarnation());
            desk.enters_system(SystemDesk::new(settings, life, seed, known));
        }
        let office = self.clone();
        self.cx.spawn(async move { office.run_member().await });
        let office = self.clone();
        self.cx.spawn(async move { office.receive().await });
        let office = self.clone();
        self.cx.spawn(async move { office.share_connections().await });
        let office = self.clone();
        self.cx.spawn(async move { office.watch_reach().await });
        let office = self.clone();
        self.cx.spawn(async move { office.watch_far().await });
    }
    /// Waits until this head leads, and every drive that it knows is fenced; None: the head is being stopped.
    pub(crate) async fn stand_by(&self) -> Option<()> {
        let now = self.cx.now();
        {
            let mut desk = self.desk_mut();
            let Some(system) = desk.system_mut() else { return Some(()) };
            let (record, me) = (system.member().known().clone(), system.member().me());
            if let Some(words) = system.take_said() {
                desk.event(now, Weight::Error, "system", words);
            }
            if record.head(me).state == cluster::HeadState::Out {
                let words = format!(
                    "this head was put out by the decision of epoch {}: it starts anew, and asks to be let in",
                    record.epoch
                );
                desk.event(now, Weight::Warning, "system", words);
            }
        }
        self.leave_addresses().await;
        let opens = Rc::new(Cell::new(true));
        let (office, still) = (self.clone(), opens.clone());
        self.cx.spawn(async move {
            office.keep_drives_open().await;
            still.set(false);
            office.cx.changed();
        });
        let office = self.clone();
        self.cx
            .until(move || {
                let desk = office.desk();
                desk.stop != Stop::No || desk.system.as_ref().is_some_and(|s| s.part() == Part::Leader)
            })
            .await;
        if self.desk().stop != Stop::No {
            return None;
        }
        // A drive that is being opened just now would be held against the pools that are taken next.
        self.cx.until_within(OPENING_PATIENCE, move || !opens.get()).await;
        self.leave_given().await;
        self.fence_standby().await;
        Some(())
    }
    /// All that a leader takes is taken: the other head may be let in.
    pub(crate) fn leads_all(&self) {
        self.let_standby_go();
        self.other_is_shut_out();
        self.in_system(|s| s.tell().on_fenced());
    }

    async fn run_member(&self) {
        loop {
            let now = self.cx.now();
            let at = self.desk().system.as_ref().and_then(|s| s.member().next_deadline());
            let Some(at) = at else { return };
            let office = self.clone();
            let news = move || office.desk().system.as_ref().is_some_and(|s| s.has_news());
            self.cx.until_within(at.since(now), news).await;
            self.offer_candidates();
            let now = self.cx.now();
            let dos = self.desk_quietly().system_mut().map_or(vec![], |s| s.turn(now));
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
        let Some(Some(epoch)) = self.desk_quietly().system_mut().map(SystemDesk::news_of_directory) else {
            return;
        };
        let words = format!(
            "the state directory is an older copy: it knows nothing of the decision of epoch {epoch}, behind which hosts or portals may have changed; this head does not lead without the other one, which has the latest hosts and portals"
        );
        self.desk_mut().event(now, Weight::Error, "system", words);
    }
    /// A head that leads and does not see most voters any more says so.
    fn note_sight(&self, now: Instant) {
        let news = self.desk_quietly().system_mut().and_then(|s| s.news_of_sight(now));
        match news {
            None => {}
            Some(true) => {
                let Ok(view) = self.system_view() else { return };
                let words = format!(
                    "this head does not see most of the voters ({} of {} drives, {} link): the other one may lead, so reads wait, and hosts are told to come again",
                    view.reaches.0,
                    view.reaches.1,
                    if view.linked { "and the" } else { "no" }
                );
                self.desk_mut().event(now, Weight::Error, "system", words);
            }
            Some(false) => {
                let words = "this head reaches most voters again, and nobody else leads";
                self.desk_mut().event(now, Weight::Note, "system", words.to_string());
            }
        }
    }
    /// A leader tells which drives may vote: legs in sync, of different arrays first.
    fn offer_candidates(&self) {
        let mut desk = self.desk_quietly();
        let desk = &mut *desk;
        let leads = desk.system.as_ref().is_some_and(|s| s.part() == Part::Leader);
        if !leads || !desk.ready {
            return;
        }
        let mut candidates = vec![];
        // What is not marked as a system's may be cleared where votes lie.
        for pool in desk.pools.iter().filter(|p| p.config().shared.is_some()) {
            for (a, array) in pool.arrays.iter().enumerate() {
                for (l, leg) in array.legs.iter().enumerate() {
                    let Some(open) = leg.open.as_ref().filter(|_| !pool.is_out(a, l)) else { continue };
                    candidates.push((l, a, open.label.drive));
                }
            }
        }
        candidates.sort();
        let drives = candidates.into_iter().map(|(.., drive)| drive).collect();
        if let Some(system) = desk.system_mut() {
            system.offers(drives);
        }
    }
    /// Why this head does not take over.
    fn behind_words(&self, other: &str) -> String {
        let flaw = self.desk().system.as_ref().and_then(|s| {
            s.tried().told().iter().find_map(|t| match &t.found {
                TrialFound::Fails(why) => Some(format!("the fence of {} does not hold: {why}", t.path)),
                TrialFound::Holds { .. } | TrialFound::NotTried(_) => None,
            })
        });
        let why = flaw.unwrap_or_else(|| "it has not all that it needs to lead".into());
        format!("{other}, which led, is gone, and this head does not take over: {why}")
    }
    /// The other head is out from now on, and why; None: it is in, or nobody knows why not.
    fn note_out(&self, now: Instant, why: Option<Why>) {
        let at = self.desk().unix(now);
        let lives = matches!(why, Some(Why::Cut { .. }));
        let out = why.map(|why| OutSince { at, why: why_words(why), lives });
        self.in_system(|s| s.goes_out(out));
    }
    fn do_it(&self, now: Instant, what: Do) {
        let (record, me, epoch) = {
            let desk = self.desk();
            let member = desk.system.as_ref().expect("one of two").member();
            (member.known().clone(), member.me(), member.known().epoch)
        };
        let other = name_of(&record, me.other());
        let event = |weight, words: String| self.desk_mut().event(now, weight, "system", words);
        let office = self.clone();
        match what {
            Do::Link(work) => {
                if let cluster::link::Do::Close { why, .. } = &work
                    && self.in_system(|s| s.closes(*why)) == Some(true)
                {
                    event(
                        Weight::Warning,
                        format!("{other} is refused at the link: {}; {}", link_fault(*why), link_next(*why)),
                    );
                }
                if let Some(work) = self.desk().system.as_ref().and_then(|s| s.work(work)) {
                    self.cx.to_manager(ManagerMail::Peer(work));
                }
            }
            Do::Vote(ask) => self.cx.spawn(async move { office.vote(ask).await }),
            Do::VoteFor { round, write } => {
                self.cx.spawn(async move { office.vote_for(me, round, write).await })
            }
            Do::Heartbeat { drive, heartbeat } => {
                self.cx.spawn(async move { office.heartbeat_on(drive, heartbeat).await })
            }
            Do::Lead { why } => {
                let because = why.map_or(String::new(), |w| format!(": {}", why_words(w)));
                match record.head(me.other()).state {
                    cluster::HeadState::None => {
                        event(Weight::Note, format!("this head leads, epoch {epoch}"))
                    }
                    _ => event(
                        Weight::Warning,
                        format!("this head leads, epoch {epoch}; {other} is out{because}"),
                    ),
                }
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
                event(Weight::Note, format!("this head follows, epoch {epoch}; {other} leads"));
                self.in_system(|s| s.reach().is_new());
            }
            Do::PutOut { why } => {
                event(Weight::Warning, format!("{other} is out, epoch {epoch}: {}", why_words(why)));
                self.note_out(now, Some(why));
                self.far_goes();
                self.cx.spawn(async move { office.shut_out().await });
            }
            Do::LetIn => {
                event(Weight::Note, format!("{other} is in and follows, epoch {epoch}"));
                self.desk_mut().addresses.is_news();
                self.note_out(now, None);
                self.far_goes();
                self.in_system(|s| s.reach().is_new());
                self.cx.spawn(async move { office.sync_follower(epoch).await });
            }
            Do::End(out) => {
                let words = match out {
                    Out::Decided(epoch) => format!("this head is out: the decision of epoch {epoch} says so"),
                    Out::Behind => self.behind_words(&other),
                    Out::Fenced => "this head is out: most drives refuse it".to_string(),
                };
                event(Weight::Error, words.clone());
                self.cx.to_manager(ManagerMail::Out(words));
            }
            Do::Upper(bytes) => drop(self.in_system(|s| s.comes(bytes))),
        }
    }
}
