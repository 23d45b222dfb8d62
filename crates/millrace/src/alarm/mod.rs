//! Alarms: who is told what goes wrong, and when it is well again ([why](../../../../docs/rfcs/0011-alarms.md)).
//!
//! Owns a thread, its queues and the file `alarms`. Promise: nobody of the head ever waits for it. Does not know what the head
//! decides: it is told events, and looks at the health as any client does.

mod cli;
mod kept;
mod now;
mod reasons;
mod receiver;
mod runner;
mod send;
mod text;

pub use cli::{AlarmCommand, run};
pub use kept::check_kept;
pub use reasons::level_of;
pub use runner::Head;

use crate::config::Config;
use api::{AlarmTested, Alarms};
use head::order::EventLine;
use runner::{Ask, Inbox, Phase, Runner};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Name of the thread: a panic there ends nothing of the head.
pub const THREAD: &str = "alarm";

/// Most events on their way.
const EVENTS_MAX: usize = 1024;
/// Most questions of operators on their way.
const ASKS_MAX: usize = 16;
/// How long the end of the thread is waited for.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// The way to the alarms of this daemon; clones lead to the same.
#[derive(Clone)]
pub struct Handle {
    events: mpsc::Sender<EventLine>,
    lost: Arc<AtomicU64>,
    asks: mpsc::Sender<Ask>,
    phase: Arc<watch::Sender<Phase>>,
}

/// Alarms whose thread does not run yet.
pub struct Prepared {
    handle: Handle,
    inbox: Inbox,
}

/// The alarms of this configuration; None if it names no receiver.
pub fn prepare(config: &Config) -> Option<Prepared> {
    if config.alarm.is_empty() {
        return None;
    }
    let (events, event_inbox) = mpsc::channel(EVENTS_MAX);
    let (asks, ask_inbox) = mpsc::channel(ASKS_MAX);
    let (phase, phase_inbox) = watch::channel(Phase::Starts);
    let lost = Arc::new(AtomicU64::new(0));
    let inbox = Inbox { events: event_inbox, lost: Arc::clone(&lost), asks: ask_inbox, phase: phase_inbox };
    Some(Prepared { handle: Handle { events, lost, asks, phase: Arc::new(phase) }, inbox })
}

impl Prepared {
    /// The way to them.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Starts their thread.
    pub fn start(self, config: &Config, head: Box<dyn Head>) -> std::io::Result<Running> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().thread_name(THREAD).build()?;
        let (receivers, folder) = (config.alarm.clone(), config.state_dir.clone());
        let (ended, is_ended) = std::sync::mpsc::channel::<()>();
        let body = move || {
            let mut runner = Runner::new(receivers, &folder, head, self.inbox);
            // Whoever drops this says that all is written.
            let _ended = ended;
            // A mistake of ours here must not cost the head; what was begun goes on in the next turn.
            while std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(runner.run())))
                .is_err()
            {
                tracing::error!("alarms go on after a panic of their thread");
                std::thread::sleep(Duration::from_secs(1));
            }
        };
        std::thread::Builder::new().name(THREAD.into()).spawn(body)?;
        Ok(Running { handle: self.handle, is_ended })
    }
}

/// The running alarms.
pub struct Running {
    handle: Handle,
    is_ended: std::sync::mpsc::Receiver<()>,
}

impl Running {
    /// The pools are imported: the health says how the head is.
    pub fn serves(&self) {
        let _ = self.handle.phase.send(Phase::Serves);
    }
    /// The head stops in order: what the health says of that is nobody's alarm.
    pub fn stops(&self) {
        let _ = self.handle.phase.send(Phase::Stops);
    }
    /// Has what is to be kept written, and ends the thread.
    pub fn end(self) {
        let _ = self.handle.phase.send(Phase::Ends);
        let _ = self.is_ended.recv_timeout(END_PATIENCE);
    }
}

impl Handle {
    /// Something happened. Never waits: if there is no room, it is counted.
    pub fn on_event(&self, line: &EventLine) {
        if self.events.try_send(line.clone()).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Tries a receiver, or all. None: there is none of that name.
    pub async fn test(&self, name: Option<String>) -> Option<Vec<AlarmTested>> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(Ask::Test(name, answer)).await.ok()?;
        answered.await.ok()?
    }
    /// Who is told, and what stands.
    pub async fn list(&self) -> Alarms {
        let (answer, answered) = oneshot::channel();
        let _ = self.asks.send(Ask::List(answer)).await;
        answered.await.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    //! What the tests of this folder need.

    use super::now::Now;
    use super::*;
    use api::{Alarm, AlarmMessage, AlarmState, Reason, State, Time, Weight};
    use finding::{StatusCause, SystemEvent};

    /// So many seconds after a midnight.
    pub fn at(seconds: u64) -> Now {
        let midnight = 1_795_132_800;
        let minute = (seconds / 60 % 1440) as u16;
        Now { at: Time(midnight + seconds), minute, run: Duration::from_secs(seconds) }
    }

    /// That a leg of a pool is not well.
    pub fn reason(pool: &str, leg: &str, state: State) -> Reason {
        let cause = StatusCause::LegNotOptimal {
            leg: leg.into(),
            mirror: "mirror-0".into(),
            why: None,
            no_spare_fits: vec![],
            help: None,
        };
        crate::words::reason(Reason::new(state, format!("pool {pool}"), cause))
    }

    /// That something happened.
    pub fn event(level: Weight, at: Time) -> Alarm {
        let line = EventLine {
            number: 1,
            at: at.0,
            monotonic: None,
            weight: level,
            what: "pool tank".into(),
            event: finding::PoolEvent::PoolCreated.into(),
        };
        text::of_event(&line)
    }

    /// A message of one alarm.
    pub fn message() -> AlarmMessage {
        let alarm = Alarm {
            state: AlarmState::Raised,
            level: Weight::Error,
            at: "2026-11-20T14:02:11Z".parse().expect("a time"),
            since: None,
            subject: "pool tank".into(),
            code: "leg_not_optimal".into(),
            fields: serde_json::json!({ "leg": "/dev/a" }),
            message: "a leg is out".into(),
            next: Some("millrace drive ls".into()),
        };
        text::message("san1", "M1", vec![alarm], 0)
    }

    #[test]
    fn a_full_channel_counts_and_does_not_wait() {
        let mut config = Config::default();
        assert!(prepare(&config).is_none());
        config.alarm.insert("oncall".into(), Default::default());
        let prepared = prepare(&config).expect("one receiver");
        let line = EventLine {
            number: 1,
            at: 0,
            monotonic: None,
            weight: Weight::Note,
            what: "head".into(),
            event: SystemEvent::HeadServes.into(),
        };
        for _ in 0..EVENTS_MAX + 3 {
            prepared.handle().on_event(&line);
        }
        assert_eq!(prepared.handle.lost.load(Ordering::Relaxed), 3);
    }
}
