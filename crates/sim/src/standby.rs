//! A second path of a host, to the other head: it takes no commands until the first one is lost.
//!
//! Then its controller has that of the first path ended (NVMe's Cross-Controller Reset), and the host goes on here as soon as
//! that is answered, whether or not the head of the first path has noticed that anything is lost.

use base::front::ControllerLife;
use base::{Duration, Instant};
use load::{Initiator, State};

/// A session that is down is begun anew after this.
pub const AGAIN: Duration = Duration::from_millis(5);

/// The second path.
pub struct Standby {
    /// Its session. The host exchanges it for that of the first path.
    pub initiator: Initiator,
    retry_at: Option<Instant>,
    /// What the controller of the first path was known by.
    life: Option<ControllerLife>,
    asked: bool,
}

/// What is known of the controller of the first path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Other {
    /// It is being ended.
    Ends,
    /// It is over, and so is all that it had under way.
    Over,
    /// Nothing: nobody could be asked, or the answer was no.
    Unknown,
}

impl Standby {
    /// One that has not begun.
    pub fn new(initiator: Initiator) -> Self {
        Self { initiator, retry_at: None, life: None, asked: false }
    }
    /// The first path stands.
    pub fn knows(&mut self, first: &Initiator) {
        if let Some(life) = first.life() {
            self.life = Some(life);
        }
    }
    /// Begins its session, or begins it anew.
    pub fn keep_up(&mut self, now: Instant) {
        match self.initiator.state() {
            State::Idle => self.initiator.start(now),
            State::Down(_) if self.retry_at.is_none() => self.retry_at = Some(now + AGAIN),
            State::Down(_) if self.retry_at.is_some_and(|at| at <= now) => {
                self.retry_at = None;
                self.initiator.start(now);
            }
            _ => {}
        }
    }
    /// The first path is lost: asks for the end of its controller, once, and says what became of that.
    pub fn ends_other(&mut self) -> Other {
        if let Some(life) = self.life.take() {
            self.asked = self.initiator.reset_other(life);
        }
        if !self.asked {
            return Other::Unknown;
        }
        let answer = match self.initiator.state() {
            State::Ready => self.initiator.take_reset(),
            _ => Some(false),
        };
        self.asked = answer.is_none();
        match answer {
            None => Other::Ends,
            Some(true) => Other::Over,
            Some(false) => Other::Unknown,
        }
    }
    /// When it wants to be woken without an event.
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.initiator.next_deadline(), self.retry_at].into_iter().flatten().min()
    }
}
