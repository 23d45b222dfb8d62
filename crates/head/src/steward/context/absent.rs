//! A pool of this head that is not here.

use crate::layout::PoolId;
use crate::order::Cause;
use crate::steward::state::config::PoolConfig;
use crate::steward::state::{Away, PoolRow};
use base::{Instant, Uuid, VolumeId};
use finding::PoolCause;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pool that was looked for in vain.
pub(crate) struct AbsentPool {
    /// What is decided of it, as `HeadContext::apply` left it.
    away: Arc<Away>,
    /// Why it is not here.
    cause: Cause,
    /// What is kept for its hosts; None if the state directory does not tell, or the pool is another head's now.
    pub kept: Option<Kept>,
    /// What its import waits for at the start.
    pub waits: Waits,
    /// When it is looked whether its drives are back; None while it is being imported. And how often that was done.
    pub look_at: Option<Instant>,
    pub looks: u32,
    /// Since when nothing keeps it away but legs that are there and do not answer.
    pub silent_since: Option<Instant>,
}

impl AbsentPool {
    /// One that is being imported at the start.
    pub fn new(away: Arc<Away>, kept: Option<Kept>) -> Self {
        Self {
            away,
            cause: PoolCause::PoolImporting.into(),
            kept,
            waits: Waits::Nothing,
            look_at: None,
            looks: 0,
            silent_since: None,
        }
    }
    /// It is not here for this reason.
    pub fn is_told(&mut self, cause: impl Into<Cause>) {
        self.cause = cause.into();
    }
    /// Somebody holds drives of it, for this reason; or nobody does.
    pub fn is_held(&mut self, why: Option<PoolCause>) {
        self.waits_for(Waits::Drives, why);
    }
    /// It cannot be taken before drives have confirmed that the other head is shut off them, for this reason; or that is over.
    pub fn is_behind(&mut self, why: Option<PoolCause>) {
        self.waits_for(Waits::Fence, why);
    }
    fn waits_for(&mut self, waits: Waits, why: Option<PoolCause>) {
        self.waits = if why.is_some() { waits } else { Waits::Nothing };
        if let Some(why) = why {
            self.cause = why.into();
        }
    }
    /// Its drives are looked for then.
    pub fn is_looked_for(&mut self, at: Instant) {
        self.look_at = Some(at);
    }
    /// They were, and are once more then.
    pub fn is_looked_for_again(&mut self, at: Instant) {
        self.look_at = Some(at);
        self.looks += 1;
    }
    /// Nothing keeps it away but legs that do not answer; or something else does. Since when that is so.
    pub fn is_silent(&mut self, silent: bool, now: Instant) -> Option<Instant> {
        self.silent_since = silent.then(|| self.silent_since.unwrap_or(now));
        self.silent_since
    }
    /// Hosts are told nothing of it any more.
    pub fn is_elsewhere(&mut self) {
        self.kept = None;
    }
    /// Its name, and where its drives lay.
    pub fn row(&self) -> &PoolRow {
        self.away.row()
    }
    pub fn uuid(&self) -> Uuid {
        self.away.row().uuid
    }
    pub fn name(&self) -> &str {
        &self.away.row().name
    }
    /// Where its drives lay.
    pub fn drives(&self) -> &[String] {
        &self.away.row().drives
    }
    /// What is known of it, with the generation.
    pub fn known(&self) -> Option<(&PoolConfig, u64)> {
        self.away.config()
    }
    /// It is the one that is decided to be away under this UUID.
    pub fn is(&mut self, away: &Arc<Away>) {
        if away.row().uuid == self.uuid() {
            self.away.clone_from(away);
        }
    }
    /// Why it is not here.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }
    /// Why it is not here, and what that means for hosts.
    pub fn cause_for_hosts(&self) -> Cause {
        let volumes = self.known().map_or(0, |(config, _)| config.volumes.iter().len() as u64);
        match volumes {
            0 => self.cause.clone(),
            _ => PoolCause::VolumesKept { why: Box::new(self.cause.clone()), volumes }.into(),
        }
    }
}

/// What an import waits for, while other pools are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// It goes on.
    Nothing,
    /// Somebody holds drives of the pool.
    Drives,
    /// Some array cannot do without a drive that has not confirmed that the other head is shut off it.
    Fence,
}

/// What hosts are told of an absent pool.
pub(crate) struct Kept {
    pub deallocates: bool,
    /// The numbers under which shards know its volumes: they stay at import.
    pub volume_ids: BTreeMap<Uuid, VolumeId>,
}

/// A pool as hosts see it, absent or not.
pub(crate) struct Shown<'a> {
    /// None for an absent one.
    pub id: Option<PoolId>,
    pub config: &'a PoolConfig,
    pub volume_ids: &'a BTreeMap<Uuid, VolumeId>,
    pub ready: bool,
    pub deallocates: bool,
}
