//! The legs as one instance sees them, and the sets of legs that follow from that.

use crate::door::{Leg, LegState};
use crate::flight::{Legs, bit};
use crate::latency::state::Latency;
use base::{Duration, Instant};

/// A leg that answers nothing is not tried before so long.
const TRY_MIN: Duration = Duration::from_secs(1);

/// A leg as this instance sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalLeg {
    /// None: no such member.
    pub(crate) leg: Option<Leg>,
    /// It failed here, and the Steward has not decided yet: as good as Missing.
    pub(crate) lost: bool,
    /// The Steward keeps it although it was lost here: it is used again once nothing can land there.
    pub(crate) kept: bool,
    /// The membership that took it out, if one did.
    pub(crate) missing_since: u64,
    /// Operations under way.
    pub(crate) in_flight: u32,
    /// Operations that were given up and are not over.
    pub(crate) given_up: u32,
    /// When something ended there last.
    pub(crate) answered: Instant,
    /// Nothing has ended there since something was given up: since when, and when it is tried.
    pub(crate) silent: bool,
    pub(crate) silent_since: Instant,
    pub(crate) try_at: Instant,
    /// Where the last read ended, for locality.
    pub(crate) last_end: u64,
    /// Read errors, weighted; forgotten slowly.
    pub(crate) errors: u32,
    /// When `errors` was last brought up to date.
    pub(crate) errors_at: Instant,
    /// How long its reads take.
    pub(crate) latency: Latency,
}

impl LocalLeg {
    /// Something ended there.
    #[inline]
    pub(crate) fn answers(&mut self, now: Instant) {
        self.answered = now;
        self.silent = false;
    }
    /// Something was given up there, and nothing has ended since it began.
    #[cold]
    pub(crate) fn falls_silent(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.silent, true) {
            self.silent_since = now;
        }
        self.try_at = now + now.since(self.silent_since).max(TRY_MIN);
    }
}

/// What follows from the legs' local, kept at hand for every command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sets {
    pub(crate) writable: Legs,
    pub(crate) in_sync: Legs,
    pub(crate) rebuilding: Legs,
    pub(crate) volatile: Legs,
    /// Members that are lost here: their loss is in no membership yet, or never will be.
    pub(crate) lost: Legs,
    /// Those of them that the Steward keeps: their loss is never on record.
    pub(crate) kept: Legs,
    /// The last membership that took a leg out that is still out.
    pub(crate) gone_since: u64,
}

impl Sets {
    pub(crate) fn of(legs: &[LocalLeg]) -> Self {
        let mut sets = Self::default();
        for (i, local) in legs.iter().enumerate() {
            let Some(leg) = local.leg.filter(|leg| leg.state != LegState::Missing) else {
                sets.gone_since = sets.gone_since.max(local.missing_since);
                continue;
            };
            sets.volatile |= if leg.volatile_cache { bit(i) } else { 0 };
            if local.lost {
                sets.lost |= bit(i);
                sets.kept |= if local.kept { bit(i) } else { 0 };
                continue;
            }
            sets.writable |= bit(i);
            match leg.state {
                LegState::InSync => sets.in_sync |= bit(i),
                LegState::Rebuilding => sets.rebuilding |= bit(i),
                LegState::Missing => unreachable!("passed over"),
            }
        }
        sets
    }
}
