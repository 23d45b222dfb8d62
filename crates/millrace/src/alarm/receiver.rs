//! One receiver: what it was told, what waits for it, and when it is sent what. Pure: no clock and no network.

use super::now::Now;
use crate::config::alarm::ReceiverConfig;
use api::{Alarm, AlarmState, ReceiverState, Time, Weight};
use finding::{AlarmFault, SystemEvent};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most alarms that wait for a receiver.
const WAITING_MAX: usize = 200;
/// Most alarms of a message.
const MESSAGE_MAX: usize = 50;
/// How long the first alarm of a message waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// Until a message that failed is sent again, at first; twice as long each time.
const RETRY: Duration = Duration::from_secs(2);
/// The longest of these.
const RETRY_MAX: Duration = Duration::from_secs(300);
/// So many failures in a row make a receiver dead.
const DEAD_AFTER: u32 = 3;

/// A reason that the receiver was told of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Told {
    /// As it was then.
    alarm: Alarm,
    /// When it was told last.
    last: Time,
    /// It took a message that said so.
    heard: bool,
}

/// What is kept over a restart.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    told: BTreeMap<String, Told>,
    waiting: VecDeque<Alarm>,
    lost: u64,
    /// Since when it is dead.
    dead: Option<Time>,
    /// When it took a message last.
    sent: Option<Time>,
}

impl Kept {
    /// The reasons that it was told of.
    pub fn told(&self) -> impl Iterator<Item = &Alarm> {
        self.told.values().map(|t| &t.alarm)
    }
}

/// A receiver.
pub struct Receiver {
    /// Its name in the configuration.
    pub name: String,
    /// What it wants.
    pub config: ReceiverConfig,
    kept: Kept,
    /// So many of the waiting are in the message under way; 0: none is under way.
    sending: usize,
    failures: u32,
    /// Why it did not take the last message.
    fault: Option<AlarmFault>,
    /// Not before this.
    due: Duration,
    changed: bool,
}

impl Receiver {
    /// One with what is kept of it.
    pub fn new(name: String, config: ReceiverConfig, kept: Kept, now: Now) -> Self {
        let failures = if kept.dead.is_some() { DEAD_AFTER } else { 0 };
        let (due, sending, fault) = (now.run, 0, None);
        Self { name, config, kept, sending, failures, fault, due, changed: false }
    }

    /// What is to be kept.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }
    /// Whether that has changed since this was asked last.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
    /// The subject of events about it.
    pub fn subject(&self) -> String {
        format!("alarm {}", self.name)
    }
    /// How it is.
    pub fn state(&self) -> ReceiverState {
        match self.failures {
            0 => ReceiverState::Well,
            _ if self.kept.dead.is_some() => ReceiverState::Dead,
            _ => ReceiverState::Failing,
        }
    }
    /// Why it did not take the last message.
    pub fn fault(&self) -> Option<&AlarmFault> {
        self.fault.as_ref()
    }
    /// When it took a message last.
    pub fn sent(&self) -> Option<Time> {
        self.kept.sent
    }
    /// How many alarms wait, and how many found no room.
    pub fn backlog(&self) -> (u64, u64) {
        (self.kept.waiting.len() as u64, self.kept.lost)
    }

    /// Something happened.
    pub fn on_event(&mut self, now: Now, alarm: &Alarm) {
        // Whoever hears nothing need not be told of that.
        if alarm.subject != self.subject() && self.config.wants(alarm.level, &alarm.code) {
            self.push(now, alarm.clone());
        }
    }
    /// Events were lost on their way to the queue.
    pub fn on_lost(&mut self, n: u64) {
        self.kept.lost += n;
        self.changed |= n > 0;
    }

    /// These reasons stand now, by key.
    pub fn on_standing(&mut self, now: Now, standing: &BTreeMap<&str, &Alarm>) {
        let wanted = |a: &Alarm| self.config.wants(a.level, &a.code);
        let over: Vec<String> = self
            .kept
            .told
            .keys()
            .filter(|key| !standing.get(key.as_str()).is_some_and(|a| wanted(a)))
            .cloned()
            .collect();
        let stays: Vec<(&str, &Alarm)> =
            standing.iter().filter(|(_, a)| wanted(a)).map(|(key, a)| (*key, *a)).collect();
        for key in over {
            self.recover(now, &key);
        }
        for (key, alarm) in stays {
            self.stands(now, key, alarm);
        }
    }

    /// A reason is over, or is not weighty enough any more.
    fn recover(&mut self, now: Now, key: &str) {
        let Some(told) = self.kept.told.remove(key) else { return };
        self.changed = true;
        let says = |a: &Alarm| says_it_stands(a) && super::reasons::key(a) == key;
        let mut later = self.kept.waiting.split_off(self.sending);
        let under_way = self.kept.waiting.iter().any(says);
        later.retain(|a| !says(a));
        self.kept.waiting.append(&mut later);
        // Nobody is told that something is over of which nobody was told.
        if self.config.recovery && (told.heard || under_way) {
            self.push(now, Alarm { state: AlarmState::Recovered, at: now.at, ..told.alarm });
        }
    }

    /// A reason is there.
    fn stands(&mut self, now: Now, key: &str, alarm: &Alarm) {
        let before = self.kept.told.get(key).map(|t| (t.alarm.level, t.last));
        let heard = self.kept.told.get(key).is_some_and(|t| t.heard);
        let state = match before {
            Some((level, last)) if alarm.level <= level => {
                // A clock that was set back must not keep it silent.
                let since = if last > now.at { u64::MAX } else { now.at.0 - last.0 };
                let is_due = since >= self.config.repeat.as_secs();
                let is_free = self.kept.waiting.is_empty() && !self.is_quiet(now, alarm.level);
                (is_due && is_free).then_some(AlarmState::Repeated)
            }
            _ => Some(AlarmState::Raised),
        };
        let last = match (state, before) {
            (None, Some((_, last))) => last,
            _ => now.at,
        };
        let told = Told { alarm: alarm.clone(), last, heard };
        if self.kept.told.get(key) != Some(&told) {
            self.changed = true;
            self.kept.told.insert(key.into(), told);
        }
        if let Some(state) = state {
            self.push(now, Alarm { state, at: now.at, ..alarm.clone() });
        }
    }

    /// This head does not look at reasons any more: the other one leads.
    pub fn forget(&mut self) {
        self.changed |= !self.kept.told.is_empty();
        self.kept.told.clear();
    }

    fn push(&mut self, now: Now, alarm: Alarm) {
        self.changed = true;
        if self.kept.waiting.len() == self.sending && self.failures == 0 {
            self.due = now.run + GATHER;
        }
        if self.kept.waiting.len() >= WAITING_MAX {
            // What is under way stays until it is answered.
            self.kept.waiting.remove(self.sending);
            self.kept.lost += 1;
        }
        self.kept.waiting.push_back(alarm);
    }

    fn is_quiet(&self, now: Now, level: Weight) -> bool {
        level < Weight::Error && self.config.quiet.is_some_and(|quiet| quiet.holds(now.minute))
    }

    /// What to send now, and how many alarms were lost before it. `on_sent` follows.
    pub fn take(&mut self, now: Now) -> Option<(Vec<Alarm>, u64)> {
        if self.sending > 0 || now.run < self.due {
            return None;
        }
        let worst = self.kept.waiting.iter().map(|a| a.level).max()?;
        if self.is_quiet(now, worst) {
            return None;
        }
        self.sending = self.kept.waiting.len().min(MESSAGE_MAX);
        Some((self.kept.waiting.iter().take(self.sending).cloned().collect(), self.kept.lost))
    }

    /// What became of the message under way, of which `lost` were told as lost: an event, if the receiver died by that, or lives again.
    pub fn on_sent(&mut self, now: Now, lost: u64, sent: Result<(), AlarmFault>) -> Option<SystemEvent> {
        self.changed = true;
        let receiver = self.name.clone();
        let sending = std::mem::take(&mut self.sending);
        match sent {
            Ok(()) => {
                for alarm in self.kept.waiting.drain(..sending).filter(says_it_stands) {
                    if let Some(told) = self.kept.told.get_mut(&super::reasons::key(&alarm)) {
                        told.heard = true;
                    }
                }
                self.kept.lost -= lost;
                self.kept.sent = Some(now.at);
                (self.failures, self.fault, self.due) = (0, None, now.run);
                let dead = self.kept.dead.take()?;
                let seconds = now.at.0.saturating_sub(dead.0);
                Some(SystemEvent::AlarmReceiverWell { receiver, seconds, lost })
            }
            Err(why) => {
                self.failures += 1;
                let wait = RETRY * 2u32.pow((self.failures - 1).min(10));
                self.due = now.run + wait.min(RETRY_MAX);
                self.fault = Some(why.clone());
                if self.failures < DEAD_AFTER || self.kept.dead.is_some() {
                    return None;
                }
                self.kept.dead = Some(now.at);
                Some(SystemEvent::AlarmReceiverDead { receiver, tries: self.failures, why })
            }
        }
    }

    /// It answered to a trial: what waits need not wait for its next time.
    pub fn answered(&mut self, now: Now) {
        self.due = self.due.min(now.run);
    }
}

/// Whether it says that a reason stands.
fn says_it_stands(alarm: &Alarm) -> bool {
    matches!(alarm.state, AlarmState::Raised | AlarmState::Repeated)
}

#[cfg(test)]
mod tests {
    use super::super::reasons::{Reasons, key};
    use super::super::tests::{at, event, reason};
    use super::*;
    use api::{Reason, State};

    /// A receiver whose reasons settle at once.
    struct World {
        receiver: Receiver,
        seconds: u64,
    }

    impl World {
        fn new(config: ReceiverConfig) -> Self {
            Self { receiver: Receiver::new("oncall".into(), config, Kept::default(), at(0)), seconds: 0 }
        }
        fn now(&self) -> Now {
            at(self.seconds)
        }
        fn later(&mut self, seconds: u64) -> &mut Self {
            self.seconds += seconds;
            self
        }
        fn look(&mut self, reasons: &[Reason]) -> &mut Self {
            let mut seen = Reasons::default();
            seen.look(self.now(), reasons);
            let settled = Now { run: self.now().run + super::super::reasons::SETTLE, ..self.now() };
            seen.look(settled, reasons);
            self.receiver.on_standing(self.now(), &seen.standing());
            self
        }
        fn happens(&mut self, level: Weight) -> &mut Self {
            let now = self.now();
            self.receiver.on_event(now, &event(level, now.at));
            self
        }
        /// What is sent now, one word for each alarm; the receiver takes it.
        fn sent(&mut self) -> Vec<String> {
            let now = self.now();
            let Some((alarms, lost)) = self.receiver.take(now) else { return vec![] };
            assert_eq!(self.receiver.on_sent(now, lost, Ok(())), None);
            alarms.iter().map(|a| format!("{} {}", a.level.word(), a.state.word())).collect()
        }
        fn fails(&mut self) -> Option<SystemEvent> {
            let now = self.now();
            let (_, lost) = self.receiver.take(now).expect("a message is due");
            self.receiver.on_sent(now, lost, Err(AlarmFault::TimedOut { seconds: 15 }))
        }
    }

    fn usual() -> ReceiverConfig {
        ReceiverConfig { repeat: Duration::from_secs(3600), ..ReceiverConfig::default() }
    }
    fn degraded() -> [Reason; 1] {
        [reason("tank", "/dev/a", State::Degraded)]
    }

    #[test]
    fn what_stands_is_raised_repeated_and_recovers() {
        let mut w = World::new(usual());
        assert!(w.look(&degraded()).sent().is_empty(), "it waits for others");
        assert_eq!(w.later(1).sent(), ["warning raised"]);
        assert!(w.later(3000).look(&degraded()).later(1).sent().is_empty());
        assert_eq!(w.later(599).look(&degraded()).later(1).sent(), ["warning repeated"]);
        assert!(w.later(3000).look(&degraded()).later(1).sent().is_empty(), "an hour from then on");
        assert_eq!(w.look(&[]).later(1).sent(), ["warning recovered"]);
        assert!(w.later(9000).look(&[]).later(1).sent().is_empty());
        // Without a word of recovery.
        let mut w = World::new(ReceiverConfig { recovery: false, ..usual() });
        assert_eq!(w.look(&degraded()).later(1).sent(), ["warning raised"]);
        assert!(w.look(&[]).later(1).sent().is_empty());
    }

    #[test]
    fn what_gets_worse_is_raised_again_and_what_is_not_wanted_is_not_told() {
        let mut w = World::new(usual());
        w.look(&degraded()).later(1).sent();
        let failed = [reason("tank", "/dev/a", State::Failed)];
        assert_eq!(w.look(&failed).later(1).sent(), ["error raised"]);
        assert!(w.look(&degraded()).later(1).sent().is_empty());
        assert_eq!(w.look(&failed).later(1).sent(), ["error raised"]);
        // Who wants errors alone is told that it is no error any more.
        let mut w = World::new(ReceiverConfig { level: Weight::Error, ..usual() });
        assert!(w.look(&degraded()).happens(Weight::Warning).later(1).sent().is_empty());
        assert_eq!(w.look(&failed).later(1).sent(), ["error raised"]);
        assert_eq!(w.look(&degraded()).later(1).sent(), ["error recovered"]);
    }

    #[test]
    fn alarms_travel_together() {
        let mut w = World::new(usual());
        let two = [reason("tank", "/dev/a", State::Degraded), reason("tank", "/dev/b", State::Failed)];
        w.happens(Weight::Error).look(&two).later(1);
        assert_eq!(w.sent(), ["error happened", "warning raised", "error raised"]);
        for _ in 0..120 {
            w.happens(Weight::Error);
        }
        w.later(1);
        assert_eq!([w.sent().len(), w.sent().len(), w.sent().len(), w.sent().len()], [50, 50, 20, 0]);
    }

    #[test]
    fn in_quiet_time_errors_go_out_and_the_rest_waits_for_its_end() {
        // The clock of `at` begins at midnight.
        let mut w = World::new(ReceiverConfig { quiet: "22:00-06:00".parse().ok(), ..usual() });
        assert!(w.look(&degraded()).happens(Weight::Warning).later(3600).sent().is_empty());
        assert!(w.later(3 * 3600).look(&degraded()).later(1).sent().is_empty(), "nothing is repeated");
        w.later(2 * 3600 - 1);
        assert_eq!(w.sent(), ["warning raised", "warning happened"], "six o'clock");
        // The next night: an error takes along what waits.
        w.later(17 * 3600).happens(Weight::Warning).later(1);
        assert!(w.sent().is_empty());
        w.happens(Weight::Error).later(1);
        assert_eq!(w.sent(), ["warning happened", "error happened"]);
        // What is over before the morning is not told.
        w.look(&[]).later(60).look(&degraded()).later(60).look(&[]);
        w.later(8 * 3600);
        assert_eq!(w.sent(), ["warning recovered"]);
    }

    #[test]
    fn a_dead_receiver_is_an_event_once_and_loses_nothing() {
        let mut w = World::new(usual());
        w.happens(Weight::Error).later(1);
        assert_eq!(w.fails(), None);
        assert_eq!(w.receiver.state(), ReceiverState::Failing);
        assert!(w.receiver.take(w.now()).is_none(), "it waits");
        w.later(2).happens(Weight::Error);
        assert_eq!(w.fails(), None);
        let dead = w.later(4).fails();
        assert!(matches!(&dead, Some(SystemEvent::AlarmReceiverDead { tries: 3, .. })), "{dead:?}");
        assert_eq!(w.receiver.state(), ReceiverState::Dead);
        // It is not told of itself.
        let own = Alarm { subject: "alarm oncall".into(), ..event(Weight::Error, w.now().at) };
        w.receiver.on_event(w.now(), &own);
        for _ in 0..10 {
            assert_eq!(w.later(300).fails(), None);
        }
        // After a restart, too.
        let kept = serde_json::to_string(w.receiver.kept()).expect("plain data");
        let kept: Kept = serde_json::from_str(&kept).expect("its own");
        assert_eq!(&kept, w.receiver.kept());
        w.receiver = Receiver::new("oncall".into(), usual(), kept, w.now());
        assert_eq!(w.receiver.state(), ReceiverState::Dead);
        let (alarms, lost) = w.receiver.take(w.now()).expect("at once");
        assert_eq!((alarms.len(), lost), (2, 0));
        let well = w.receiver.on_sent(w.now(), lost, Ok(()));
        assert_eq!(
            well,
            Some(SystemEvent::AlarmReceiverWell { receiver: "oncall".into(), seconds: 3000, lost: 0 })
        );
        let later = w.later(600).now();
        assert!(w.receiver.take(later).is_none());
    }

    #[test]
    fn a_full_queue_loses_the_oldest_and_says_how_many() {
        let mut w = World::new(usual());
        w.happens(Weight::Error).later(1);
        let (under_way, told) = w.receiver.take(w.now()).expect("a message");
        assert_eq!((under_way.len(), told), (1, 0));
        for _ in 0..WAITING_MAX + 4 {
            w.happens(Weight::Warning);
        }
        assert_eq!(w.receiver.backlog(), (WAITING_MAX as u64, 5));
        assert_eq!(w.receiver.on_sent(w.now(), told, Ok(())), None);
        let later = w.later(1).now();
        let (next, lost) = w.receiver.take(later).expect("a message");
        assert_eq!((next.len(), lost), (MESSAGE_MAX, 5));
        assert_eq!(w.receiver.on_sent(w.now(), lost, Ok(())), None);
        assert_eq!(w.receiver.backlog(), ((WAITING_MAX - 1 - MESSAGE_MAX) as u64, 0));
    }

    #[test]
    fn what_goes_while_its_alarm_is_under_way_recovers() {
        let mut w = World::new(usual());
        w.look(&degraded()).later(1);
        let (alarms, lost) = w.receiver.take(w.now()).expect("a message");
        assert_eq!(alarms[0].state, AlarmState::Raised);
        w.look(&[]);
        assert_eq!(w.receiver.on_sent(w.now(), lost, Ok(())), None);
        assert_eq!(w.later(1).sent(), ["warning recovered"]);
    }

    #[test]
    fn a_restart_and_a_clock_set_back_do_not_silence_what_stands() {
        let mut w = World::new(usual());
        w.look(&degraded()).later(1).sent();
        let kept = w.receiver.kept().clone();
        assert_eq!(kept.told().map(key).count(), 1);
        w.receiver = Receiver::new("oncall".into(), usual(), kept, w.now());
        assert!(w.look(&degraded()).later(1).sent().is_empty(), "it was told");
        let back = Now { at: Time(w.now().at.0 - 86_400), ..w.now() };
        let mut seen = Reasons::default();
        seen.look(at(0), &degraded());
        seen.look(at(5), &degraded());
        w.receiver.on_standing(back, &seen.standing());
        assert_eq!(w.later(1).sent(), ["warning repeated"]);
        // Whoever leads no more forgets it without a word.
        w.receiver.forget();
        assert!(w.look(&[]).later(1).sent().is_empty());
    }
}
