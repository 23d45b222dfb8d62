//! What the thread of the alarms does: it takes events, looks at the health, and has messages sent.

use super::now::Now;
use super::reasons::Reasons;
use super::receiver::{Kept, Receiver};
use super::{kept, send, text};
use crate::config::alarm::ReceiverConfig;
use api::{Alarm, AlarmReceiver, AlarmState, AlarmTested, Alarms, Reason, Status, Time, Weight};
use finding::{AlarmFault, SystemEvent};
use head::order::EventLine;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// How often it is looked whether a message is due.
const TICK: Duration = Duration::from_millis(500);
/// How often the health is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// A head that does not serve so long after its start is looked at all the same.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long an answer to that question is waited for.
const LOOK_PATIENCE: Duration = Duration::from_secs(60);
/// The file is written no more often.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// What the head is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Pools are being imported.
    Starts,
    /// The health counts.
    Serves,
    /// It stops in order: the health counts no more.
    Stops,
    /// The thread is to end.
    Ends,
}

/// A question of an operator.
pub enum Ask {
    /// Try this receiver, or all.
    Test(Option<String>, oneshot::Sender<Option<Vec<AlarmTested>>>),
    /// Who is told, and what stands.
    List(oneshot::Sender<Alarms>),
}

/// What comes to the thread.
pub struct Inbox {
    /// Events of the head.
    pub events: mpsc::Receiver<EventLine>,
    /// Events that found no room.
    pub lost: Arc<AtomicU64>,
    /// Questions of operators.
    pub asks: mpsc::Receiver<Ask>,
    /// What the head is doing.
    pub phase: watch::Receiver<Phase>,
}

/// The head whose alarms these are.
pub trait Head: Send {
    /// Whether it speaks for its system: it is alone, or leads.
    fn leads(&self) -> bool;
    /// How it is; None: it does not say.
    fn status(&self) -> Pin<Box<dyn Future<Output = Option<Status>> + Send>>;
    /// Puts an event into its log.
    fn say(&self, what: String, event: SystemEvent);
}

/// What ended that was begun beside.
enum Done {
    /// The health; None: the head did not answer.
    Looked(Option<Health>),
    /// The message under way to the receiver of this number, with so many told as lost.
    Sent { receiver: usize, lost: u64, answer: Result<String, AlarmFault> },
    /// A trial of it.
    Tried { receiver: usize, taken: bool },
    /// The file.
    Written(Result<(), String>),
}

/// The health of the head.
struct Health {
    reasons: Vec<Reason>,
    serial: String,
}

/// The thread's own.
pub struct Runner {
    head: Box<dyn Head>,
    inbox: Inbox,
    receivers: Vec<Receiver>,
    reasons: Reasons,
    begin: Instant,
    machine: String,
    serial: String,
    looking: bool,
    next_look: Duration,
    folder: PathBuf,
    unwritten: bool,
    writing: bool,
    next_write: Duration,
    /// Writing failed last: that is told once.
    write_failed: bool,
    done: mpsc::UnboundedReceiver<Done>,
    to_done: mpsc::UnboundedSender<Done>,
}

impl Runner {
    /// One that has read what is kept.
    pub fn new(
        configs: BTreeMap<String, ReceiverConfig>,
        folder: &Path,
        head: Box<dyn Head>,
        inbox: Inbox,
    ) -> Self {
        let mut kept = kept::read(folder);
        let begin = Instant::now();
        let now = Now::since(begin);
        let one = |(name, config): (String, ReceiverConfig)| {
            let kept = kept.remove(&name).unwrap_or_default();
            Receiver::new(name, config, kept, now)
        };
        let receivers: Vec<Receiver> = configs.into_iter().map(one).collect();
        let told = receivers.iter().flat_map(|r| r.kept().told().cloned()).collect::<Vec<_>>();
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let (to_done, done) = mpsc::unbounded_channel();
        Self {
            head,
            inbox,
            receivers,
            reasons: Reasons::from_before(told.into_iter(), now),
            begin,
            machine: name.trim().to_string(),
            serial: String::new(),
            looking: false,
            next_look: Duration::ZERO,
            folder: folder.to_path_buf(),
            unwritten: false,
            writing: false,
            next_write: Duration::ZERO,
            write_failed: false,
            done,
            to_done,
        }
    }

    /// Goes on until the thread is to end.
    pub async fn run(&mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let phase = *self.inbox.phase.borrow_and_update();
            if phase == Phase::Ends {
                return self.end();
            }
            let now = Now::since(self.begin);
            self.look(now, phase);
            self.send(now);
            self.write(now);
            tokio::select! {
                _ = tick.tick() => {}
                changed = self.inbox.phase.changed() => {
                    if changed.is_err() {
                        return self.end();
                    }
                }
                Some(line) = self.inbox.events.recv() => self.on_event(&line),
                Some(ask) = self.inbox.asks.recv() => self.on_ask(ask),
                Some(done) = self.done.recv() => self.on_done(done),
            }
        }
    }

    fn on_event(&mut self, line: &EventLine) {
        let (now, alarm) = (Now::since(self.begin), text::of_event(line));
        let lost = self.inbox.lost.swap(0, Ordering::Relaxed);
        for receiver in &mut self.receivers {
            receiver.on_lost(lost);
            receiver.on_event(now, &alarm);
        }
    }

    /// Asks for the health, if it is time.
    fn look(&mut self, now: Now, phase: Phase) {
        let counts = phase == Phase::Serves || phase == Phase::Starts && now.run >= START_PATIENCE;
        if !counts || self.looking || now.run < self.next_look {
            return;
        }
        if !self.head.leads() {
            self.reasons = Reasons::default();
            self.receivers.iter_mut().for_each(Receiver::forget);
            self.next_look = now.run + LOOK;
            return;
        }
        self.looking = true;
        let (status, done) = (self.head.status(), self.to_done.clone());
        tokio::spawn(async move {
            let asked = tokio::spawn(status);
            let found = tokio::time::timeout(LOOK_PATIENCE, asked).await;
            let status = found.ok().and_then(Result::ok).flatten();
            let health = status.map(|s| Health { reasons: s.reasons, serial: s.system.serial });
            let _ = done.send(Done::Looked(health));
        });
    }

    /// Has messages sent that are due.
    fn send(&mut self, now: Now) {
        for (number, receiver) in self.receivers.iter_mut().enumerate() {
            let Some((alarms, lost)) = receiver.take(now) else { continue };
            let message = text::message(&self.machine, &self.serial, alarms, lost);
            let (config, done) = (receiver.config.clone(), self.to_done.clone());
            tokio::spawn(async move {
                // Whatever becomes of it: the receiver waits for this answer.
                let sent = tokio::spawn(async move { send::send(&config, &message).await }).await;
                let answer = sent.unwrap_or_else(|e| Err(AlarmFault::BrokenOff { error: e.to_string() }));
                let _ = done.send(Done::Sent { receiver: number, lost, answer });
            });
        }
    }

    fn on_done(&mut self, done: Done) {
        let now = Now::since(self.begin);
        match done {
            Done::Looked(health) => {
                self.looking = false;
                self.next_look = now.run + LOOK;
                // An orderly stop may have begun meanwhile.
                let stops = matches!(*self.inbox.phase.borrow(), Phase::Stops | Phase::Ends);
                if let Some(health) = health.filter(|_| !stops && self.head.leads()) {
                    self.serial = health.serial;
                    self.reasons.look(now, &health.reasons);
                    let standing = self.reasons.standing();
                    self.receivers.iter_mut().for_each(|r| r.on_standing(now, &standing));
                }
            }
            Done::Sent { receiver, lost, answer } => {
                let receiver = &mut self.receivers[receiver];
                if let Err(why) = &answer {
                    let why = crate::words::parts::alarm_fault(why);
                    tracing::debug!("{}: {why}", receiver.subject());
                }
                if let Some(event) = receiver.on_sent(now, lost, answer.map(drop)) {
                    self.head.say(receiver.subject(), event);
                }
            }
            Done::Tried { receiver, taken } => {
                if taken {
                    self.receivers[receiver].answered(now);
                }
            }
            Done::Written(written) => {
                self.writing = false;
                self.on_written(written);
            }
        }
    }

    fn on_ask(&mut self, ask: Ask) {
        match ask {
            Ask::List(answer) => {
                let _ = answer.send(self.list());
            }
            Ask::Test(name, answer) => self.test(name.as_deref(), answer),
        }
    }

    fn list(&self) -> Alarms {
        let one = |r: &Receiver| {
            let (waiting, lost) = r.backlog();
            AlarmReceiver {
                name: r.name.clone(),
                kind: kind(&r.config).into(),
                level: r.config.level,
                state: r.state(),
                reason: r.fault().map(crate::words::parts::alarm_fault).unwrap_or_default(),
                sent: r.sent(),
                waiting,
                lost,
            }
        };
        let standing = self.reasons.standing().into_values().cloned().collect();
        Alarms { receivers: self.receivers.iter().map(one).collect(), standing }
    }

    /// Sends a trial past the queues.
    fn test(&self, name: Option<&str>, answer: oneshot::Sender<Option<Vec<AlarmTested>>>) {
        let at = Now::since(self.begin).at;
        let is_named = |(_, r): &(usize, &Receiver)| name.is_none_or(|name| r.name == name);
        let chosen: Vec<(usize, &Receiver)> = self.receivers.iter().enumerate().filter(is_named).collect();
        if chosen.is_empty() {
            let _ = answer.send(None);
            return;
        }
        let mut trials = Vec::new();
        for (number, receiver) in chosen {
            let message = text::message(&self.machine, &self.serial, vec![trial(at)], 0);
            let (name, config) = (receiver.name.clone(), receiver.config.clone());
            let done = self.to_done.clone();
            trials.push(tokio::spawn(async move {
                let begin = Instant::now();
                let sent = send::send(&config, &message).await;
                let _ = done.send(Done::Tried { receiver: number, taken: sent.is_ok() });
                let milliseconds = begin.elapsed().as_millis() as u64;
                let (taken, kind) = (sent.is_ok(), kind(&config).to_string());
                let answer = sent.unwrap_or_else(|why| crate::words::parts::alarm_fault(&why));
                AlarmTested { name, kind, taken, answer, milliseconds }
            }));
        }
        tokio::spawn(async move {
            let mut all = Vec::new();
            for trial in trials {
                all.extend(trial.await.ok());
            }
            let _ = answer.send(Some(all));
        });
    }

    /// Has the file written, if there is something new.
    fn write(&mut self, now: Now) {
        for receiver in &mut self.receivers {
            self.unwritten |= receiver.take_changed();
        }
        if !self.unwritten || self.writing || now.run < self.next_write {
            return;
        }
        (self.unwritten, self.writing) = (false, true);
        self.next_write = now.run + WRITE_INTERVAL;
        let (folder, kept, done) = (self.folder.clone(), self.kept(), self.to_done.clone());
        // A state directory that hangs holds up this file alone.
        tokio::task::spawn_blocking(move || done.send(Done::Written(kept::write(&folder, kept))));
    }

    fn kept(&self) -> BTreeMap<String, Kept> {
        self.receivers.iter().map(|r| (r.name.clone(), r.kept().clone())).collect()
    }

    fn on_written(&mut self, written: Result<(), String>) {
        if let (Err(why), false) = (&written, self.write_failed) {
            tracing::warn!("a restart tells again what is not well, since it is not kept: {why}");
        }
        self.write_failed = written.is_err();
        // Once the directory can be written again, it has what is known.
        self.unwritten |= written.is_err();
    }

    fn end(&mut self) {
        while let Ok(line) = self.inbox.events.try_recv() {
            self.on_event(&line);
        }
        let written = kept::write(&self.folder, self.kept());
        self.on_written(written);
    }
}

/// What a trial says.
fn trial(at: Time) -> Alarm {
    Alarm {
        state: AlarmState::Test,
        level: Weight::Note,
        at,
        since: None,
        subject: "alarm".into(),
        code: "test".into(),
        fields: serde_json::Value::Null,
        message: "somebody tries this receiver, and nothing is wrong".into(),
        next: None,
    }
}

/// What a receiver is.
fn kind(config: &ReceiverConfig) -> &'static str {
    config.target().map_or("", |target| target.word())
}
