//! A hot spare of an imported pool.

use crate::steward::context::found::Found;
use crate::steward::context::open::OpenDrive;
use crate::steward::patience::return_after;
use array::format::{Label, feature};
use base::{Instant, Uuid};
use finding::LegCause;

/// A spare of an imported pool.
#[derive(Clone)]
pub(crate) struct SpareContext {
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
    pub ill: Option<LegCause>,
}

impl SpareContext {
    /// Its drive was opened; or not, and that was found instead.
    pub fn comes(&mut self, open: Option<OpenDrive>, found: Option<Found>) {
        self.block_bytes = open.as_ref().map(|o| o.info.block_bytes).or(self.block_bytes);
        if open.is_some() {
            self.look_at = None;
            self.looks = 0;
        }
        self.open = open;
        self.found = found;
        self.ill = None;
    }
    /// Its drive is gone, and is looked for at once.
    pub fn goes(&mut self, now: Instant) {
        self.open = None;
        self.ill = None;
        self.look_at = Some(now);
        self.looks = 0;
    }
    /// It can stand in for nobody, or it can again.
    pub fn is_ill(&mut self, ill: Option<LegCause>) {
        self.ill = ill;
    }
    /// It is looked for once more, the later the more often that was done.
    pub fn is_looked_for(&mut self, now: Instant) {
        self.look_at = Some(now + return_after(self.looks));
        self.looks += 1;
    }
    /// What is open is none of its own any more.
    pub fn let_go(&mut self) {
        self.open = None;
    }
    /// It was not found, and is looked for again.
    pub fn is_due(&self, now: Instant) -> bool {
        self.open.is_none() && self.look_at.is_some_and(|at| at <= now)
    }
    /// Open, if it can stand in for a drive.
    pub fn ready(&self) -> Option<&OpenDrive> {
        self.open.as_ref().filter(|_| self.ill.is_none())
    }
    /// Why it is not ready; None if it is.
    pub fn reason(&self) -> Option<LegCause> {
        match (&self.open, &self.found) {
            (Some(_), _) => self.ill.clone(),
            (None, Some(found)) => Some(found.cause(&self.path)),
            (None, None) => Some(LegCause::DriveNotFound),
        }
    }
}

/// Whether a label is a spare's.
pub(crate) fn is_spare(label: &Label) -> bool {
    label.features.incompat & feature::SPARE != 0
}
