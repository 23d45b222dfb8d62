//! The failover path of a host, to the other head: it takes no commands until the first path is lost.
//!
//! Then its controller ends the controller of the first path (NVMe's Cross-Controller Reset). The host goes on here when that
//! is answered, whether or not the head of the first path has noticed the loss.

use crate::path::Path;
use base::front::ControllerLife;
use load::{Initiator, State};

/// The failover path.
pub struct Failover {
    /// The host exchanges its session for that of the first path.
    pub path: Path,
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
    /// Nothing: no head could be asked, or the answer was no.
    Unknown,
}

impl Failover {
    /// One that has not begun.
    pub fn new(initiator: Initiator) -> Self {
        Self { path: Path::new(initiator), life: None, asked: false }
    }
    /// The first path stands.
    pub fn knows(&mut self, first: &Initiator) {
        if let Some(life) = first.life() {
            self.life = Some(life);
        }
    }
    /// The first path is lost: asks for the end of its controller, once, and says what became of that.
    pub fn ends_other(&mut self) -> Other {
        if let Some(life) = self.life.take() {
            self.asked = self.path.initiator.reset_other(life);
        }
        if !self.asked {
            return Other::Unknown;
        }
        let answer = match self.path.initiator.state() {
            State::Ready => self.path.initiator.take_reset(),
            _ => Some(false),
        };
        self.asked = answer.is_none();
        match answer {
            None => Other::Ends,
            Some(true) => Other::Over,
            Some(false) => Other::Unknown,
        }
    }
}
