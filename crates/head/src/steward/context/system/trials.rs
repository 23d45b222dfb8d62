//! Trials of fences: what the head that leads knows of those that it makes, and a follower of the one that is made on it.

use crate::peer::{FenceTrial, TrialFound};
use crate::steward::system::Said;
use base::Uuid;
use std::collections::BTreeMap;

/// What is known of trials.
#[derive(Default)]
pub(crate) struct Trials {
    /// Of the head that leads: the trial that it began last, and what was said of that.
    begun: u64,
    said: Option<Said>,
    /// What each drive's trial found since the follower was let in.
    found: BTreeMap<Uuid, FenceTrial>,
    /// Of a follower: the trial that goes on.
    runs: Option<u64>,
    /// Of a follower: it has registered with the drives under the key that it has since it was let in.
    registered: bool,
    /// Of a follower: what the head that leads says that it found.
    told: Vec<FenceTrial>,
}

impl Trials {
    /// The number of a new trial.
    pub fn begins(&mut self) -> u64 {
        (self.begun, self.said) = (self.begun + 1, None);
        self.begun
    }
    /// The follower says something of a trial.
    pub fn on_said(&mut self, number: u64, said: Said) {
        if number == self.begun {
            self.said = Some(said);
        }
    }
    /// What it has said since somebody asked.
    pub fn has_said(&self) -> bool {
        self.said.is_some()
    }
    pub fn take_said(&mut self) -> Option<Said> {
        self.said.take()
    }
    /// A follower was let in.
    pub fn is_new(&mut self) {
        self.found.clear();
    }
    /// A drive was tried. True: nobody knew that.
    pub fn found(&mut self, drive: Uuid, trial: FenceTrial) -> bool {
        let same = self.found.get(&drive) == Some(&trial);
        self.found.insert(drive, trial);
        !same
    }
    pub fn of(&self, drive: Uuid) -> Option<&TrialFound> {
        self.found.get(&drive).map(|t| &t.found)
    }
    /// Drives that are none of the pools' any more are forgotten. True: there were some.
    pub fn only(&mut self, drives: &[Uuid]) -> bool {
        let before = self.found.len();
        self.found.retain(|drive, _| drives.contains(drive));
        self.found.len() < before
    }
    /// All that was found, by the drive's path; by the head that leads.
    pub fn all(&self) -> Vec<FenceTrial> {
        let mut all: Vec<FenceTrial> = self.found.values().cloned().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// A trial is made on this head.
    pub fn runs(&mut self, number: u64) {
        self.runs = Some(number);
    }
    /// It is over.
    pub fn ends(&mut self, number: u64) {
        self.runs = self.runs.filter(|n| *n != number);
    }
    pub fn is_running(&self, number: u64) -> bool {
        self.runs == Some(number)
    }
    /// It has registered with every drive that is open.
    pub fn is_registered(&mut self, registered: bool) {
        self.registered = registered;
    }
    pub fn may_run(&self) -> bool {
        self.registered
    }
    /// What the head that leads found.
    pub fn is_told(&mut self, all: Vec<FenceTrial>) {
        self.told = all;
    }
    pub fn told(&self) -> &[FenceTrial] {
        &self.told
    }
}
