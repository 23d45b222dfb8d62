//! The scrub of an imported pool, and what the last one found.

use crate::order::Finding;
use crate::steward::state::config::PoolConfig;
use crate::steward::state::extras::ScrubRun;
use crate::steward::status::speed::Speed;
use std::collections::BTreeSet;

/// A scrub of an imported pool, as it is now.
#[derive(Default)]
pub(crate) struct ScrubContext {
    pub run: Option<ScrubRun>,
    /// Under which number shards have it.
    pub number: u32,
    /// Arrays and shards that have done their part.
    pub done: BTreeSet<(usize, u16)>,
    /// What the one under way has found, first things first; and in how many places, since the daemon started.
    pub findings: Vec<Finding>,
    pub places: u64,
    /// What the last one found: that holds until the next one has come to its end.
    pub last_findings: Vec<Finding>,
    pub last_places: u64,
    /// How fast it is.
    pub speed: Speed,
}

impl ScrubContext {
    /// What was found, by the last one and by the one under way, each once.
    pub fn all_findings(&self) -> Vec<Finding> {
        let mut all = self.last_findings.clone();
        let place = |f: &Finding| (f.volume.clone(), f.array, f.at, f.bytes);
        for new in &self.findings {
            match all.iter_mut().find(|old| place(old) == place(new)) {
                Some(old) => *old = new.clone(),
                None => all.push(new.clone()),
            }
        }
        all
    }
    /// In how many places that was: most of those of the one under way are those of the last one.
    pub fn all_places(&self) -> u64 {
        self.places.max(self.last_places).max(self.all_findings().len() as u64)
    }
    /// Shards know nothing of what they have done of this array.
    pub fn begins_anew(&mut self, array: usize) {
        self.done.retain(|(a, _)| *a != array);
    }
    /// Arrays from this one on are gone, with what was found there.
    pub fn forget_arrays(&mut self, first: usize) {
        let stays = |f: &Finding| usize::from(f.array) < first;
        self.findings.retain(stays);
        self.last_findings.retain(stays);
    }
    /// Goes on with what the configuration says.
    pub fn of(config: &PoolConfig) -> Self {
        Self { run: config.extras.scrub.run.clone(), ..Self::default() }
    }
}
