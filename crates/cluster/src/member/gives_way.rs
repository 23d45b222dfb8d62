//! How a head gives way to ballots of the other one. A ballot on slow drives takes longer than the first pause, so both heads would outbid
//! each other for ever.

use base::{Duration, Instant};

/// The pause of a head that was outbid is not doubled more often.
const OUTBIDS_MOST: u32 = 3;
/// A follower looks again after this when it has seen a ballot that is not over, and so often before it ends that itself.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const SPARED_MOST: u32 = 2;

/// What there was to give way to in this epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GivesWay {
    outbids: u32,
    spared: u32,
    looks_at: Option<Instant>,
}

impl GivesWay {
    /// It was outbid: it tries again after this pause, twice as long each time.
    pub fn outbid(&mut self, first: Duration) -> Duration {
        let pause = first * (1 << self.outbids.min(OUTBIDS_MOST));
        self.outbids += 1;
        pause
    }
    /// A follower has seen a ballot that is not over: whether it leaves the head that leads the time to end it.
    pub fn spares(&mut self, now: Instant) -> bool {
        let spares = self.spared < SPARED_MOST;
        if spares {
            self.spared += 1;
            self.looks_at = Some(now + LOOK_AGAIN);
        }
        spares
    }
    /// It does not look at the voters before this.
    pub fn looks_at(&self) -> Option<Instant> {
        self.looks_at
    }
}
