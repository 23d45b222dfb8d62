//! A hot spare of an imported pool.

use crate::steward::context::found::Found;
use crate::steward::context::open::OpenDrive;
use base::{Instant, Uuid};

/// A spare of an imported pool.
#[derive(Clone)]
pub(crate) struct SpareDesk {
    pub uuid: Uuid,
    pub path: String,
    /// None: it was not found, or is not what it was.
    pub open: Option<OpenDrive>,
    pub found: Option<Found>,
    /// Its smallest write, bytes: None if it was not seen in this life of the head.
    pub block_bytes: Option<u32>,
    /// When it is looked whether one that was not found is back; None if it is open, or could not be used. And how often
    /// that was done.
    pub look_at: Option<Instant>,
    pub looks: u32,
    /// Why it can stand in for nobody although it is open, and what helps.
    pub ill: Option<SpareIll>,
}

/// See `SpareDesk::ill`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SpareIll {
    /// The end of a sentence that names the spare.
    pub words: String,
    pub next: String,
}

impl SpareDesk {
    /// It was not found, and is looked for again.
    pub fn is_due(&self, now: Instant) -> bool {
        self.open.is_none() && self.look_at.is_some_and(|at| at <= now)
    }
    /// Open, if it can stand in for a drive.
    pub fn ready(&self) -> Option<&OpenDrive> {
        self.open.as_ref().filter(|_| self.ill.is_none())
    }
    /// Why it is not ready: one sentence, empty if it is.
    pub fn reason(&self) -> String {
        match (&self.open, &self.found) {
            (Some(_), _) => self.ill.as_ref().map_or(String::new(), |ill| ill.words.clone()),
            (None, Some(found)) => found.words(),
            (None, None) => "it was not found".into(),
        }
    }
}
