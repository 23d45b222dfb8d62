//! How long each leg's reads usually take, and which leg a read goes to.
//!
//! For each leg and size class: a running mean, which weighs its queue, and a running high percentile
//! (about the 99th), beyond which a read counts as late (`hedge`). Both follow with a few integer
//! operations for each read. A leg whose mean stands far above the others' gets fewer reads; once a
//! second it gets one all the same, so that its recovery is noticed. So does a leg without any reads so far: a leg
//! that is slow from its first moment always has writes under way, so the other legs are chosen each time.
//!
//! The verdict `Slow` does not use these means, since they never expire. It compares the medians of the reads of the
//! last few seconds, and needs some reads at the leg and at another one. With medians one slow read does not count.
//!
//! ```text
//! Well ▶ two windows say so ▶ Slow ▶ two windows do not, the last one says well ▶ Well
//!                                  └▶ and the last one says nothing ▶ Stale ▶ Slow or Well
//! ```

pub(crate) mod state;

use crate::array::Array;
use crate::door::{ArrayIo, Note, Verdict};
use crate::flight::{Flight, Job, Legs, bit, members};
use crate::local_leg::LocalLeg;
use base::{Duration, Instant};
use state::{CLASSES, Latency, Window, class_of};

/// Reads that begin within this distance of the last one's end count as close.
const CLOSE_BYTES: u64 = 1 << 20;
const _: () =
    assert!(CLOSE_BYTES < 1 << 21 && WEIGHT_MAX <= 64, "they have their place in the key of a choice");
/// Means within this factor of each other count as equal: chance must not starve a leg.
const EQUAL: u64 = 2;
/// Weight of a slow leg's queue, at most.
const WEIGHT_MAX: u64 = 64;
/// A leg that gets fewer reads than others gets one after this time.
const PROBE_AFTER: Duration = Duration::from_secs(1);
/// How often it is looked whether there is a leg of which nothing is known.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A leg of which nothing was known so many times is read next.
const UNKNOWN_TIMES: u8 = 2;
/// Reads are compared in windows of this length. It is several times `PROBE_AFTER`: a leg that is passed by
/// still gets enough of them.
const WINDOW: Duration = Duration::from_secs(5);
/// So many windows in a row must say the same before it is reported.
const WINDOWS: u8 = 2;
/// A leg is slow if the median of its reads is so many steps above another's: more than four times it.
const SLOW_STEPS: usize = 3;
/// Nobody is slow below this step: 4.2 ms.
const SLOW_FLOOR: usize = 22;

impl Array {
    /// A leg in sync, not yet tried by this flight: the one with the least to do, weighed by how long its
    /// reads take; then the one that read near here last; then the one that was asked less often.
    ///
    /// One sequential stream without depth stays at one leg, which reads ahead for it: it would not
    /// get faster by changing legs. As soon as two reads are under way both legs serve.
    pub(crate) fn choose_leg(&mut self, now: Instant, id: u32) -> Option<usize> {
        let Flight { at, len, tried, job, .. } = self.flights[id];
        let barred = match job {
            Job::Heal { leg, .. } => tried | bit(leg),
            Job::Host(_) | Job::Piece | Job::Scrub | Job::Clear | Job::Edge => tried,
        };
        self.choose_among(now, self.in_sync() & !barred, at, len)
    }

    /// The same among these legs.
    pub(crate) fn choose_among(
        &mut self,
        now: Instant,
        candidates: Legs,
        at: u64,
        len: u64,
    ) -> Option<usize> {
        if candidates.count_ones() < 2 {
            return members(candidates).next();
        }
        let class = class_of(len);
        let chosen = match self.choose_of_two(candidates, at, class) {
            Some(leg) => leg,
            None => self.choose_of_unequal(now, candidates, at, class)?,
        };
        let latency = &mut self.legs[chosen].latency;
        latency.picked += 1;
        latency.seen_at = now;
        latency.unknown = 0;
        Some(chosen)
    }

    /// Two legs whose reads take about as long, as those of most mirrors: what `choose_of_unequal` says is then said sooner.
    #[inline]
    fn choose_of_two(&self, candidates: Legs, at: u64, class: usize) -> Option<usize> {
        let first = candidates.trailing_zeros() as usize;
        let others = candidates & candidates.wrapping_sub(1);
        let second = others.trailing_zeros() as usize;
        let (a, b) = (self.legs.get(first)?, self.legs.get(second)?);
        let (low, high) = match (a.latency.mean[class], b.latency.mean[class]) {
            (a, b) if a < b => (a, b),
            (a, b) => (b, a),
        };
        let equal = low == 0 || high <= low.saturating_mul(EQUAL);
        let known = a.latency.unknown.max(b.latency.unknown) < UNKNOWN_TIMES;
        if !equal || !known || others & others.wrapping_sub(1) != 0 {
            return None;
        }
        let key = |leg: &LocalLeg| {
            let distance = at.abs_diff(leg.last_end).min(CLOSE_BYTES);
            let far = if distance == CLOSE_BYTES { 3 } else { 0 };
            (((u64::from(leg.in_flight) + 1) * 4 + far) << 21 | distance, leg.latency.picked)
        };
        Some(if key(b) < key(a) { second } else { first })
    }

    #[inline(never)]
    fn choose_of_unequal(&self, now: Instant, candidates: Legs, at: u64, class: usize) -> Option<usize> {
        // By hand: this may be asked for every read, and the legs are few.
        let mut best = 0;
        for leg in members(candidates) {
            let mean = self.legs[leg].latency.mean[class];
            if mean > 0 && (best == 0 || mean < best) {
                best = mean;
            }
        }
        let limit = best.saturating_mul(EQUAL);
        let (mut chosen, mut least) = (None, (u64::MAX, u64::MAX));
        for leg in members(candidates) {
            let LocalLeg { latency, in_flight, last_end, .. } = &self.legs[leg];
            let mean = latency.mean[class];
            let slow = mean > limit;
            let due = slow && now.since(latency.seen_at) >= PROBE_AFTER || latency.unknown >= UNKNOWN_TIMES;
            let weight = if slow && !due { (mean / best.max(1)).min(WEIGHT_MAX) } else { 1 };
            let distance = at.abs_diff(*last_end).min(CLOSE_BYTES);
            let far = if distance == CLOSE_BYTES { 3 } else { 0 };
            let load = (u64::from(*in_flight) + 1) * 4 * weight + far;
            // From the highest bit on: who is due comes first, then load (below 2^42), then distance.
            let key = (u64::from(!due) << 63 | load << 21 | distance, latency.picked);
            if key < least {
                chosen = Some(leg);
                least = key;
            }
        }
        chosen
    }

    /// A read of `leg` took from `since` to `now`, or longer.
    #[inline]
    pub(crate) fn note_latency(
        &mut self,
        now: Instant,
        leg: usize,
        len: u64,
        since: Instant,
        io: &mut impl ArrayIo,
    ) {
        self.judge_tick(now, io);
        let latency = &mut self.legs[leg].latency;
        let (class, took) = (class_of(len), now.0.saturating_sub(since.0));
        latency.sample(now, class, took);
        latency.window.add(class, took);
        latency.seen_at = now;
        if now >= self.judging.look_at {
            self.judging.look_at = now + LOOK_INTERVAL;
            for leg in members(self.in_sync()) {
                let latency = &mut self.legs[leg].latency;
                let known = latency.mean != [0; CLASSES];
                latency.unknown = if known { 0 } else { latency.unknown.saturating_add(1) };
            }
        }
    }

    /// The end of a window is looked at by itself only while a leg is called slow: that must not stay
    /// when nobody reads any more.
    pub(crate) fn judge_deadline(&self) -> Option<Instant> {
        self.judging.slow.then_some(self.judging.window_end)
    }

    /// Judges the legs by the window that ended, if one did.
    pub(crate) fn judge_tick(&mut self, now: Instant, io: &mut impl ArrayIo) {
        let end = self.judging.window_end;
        if now < end {
            return;
        }
        self.judging.window_end = now + WINDOW;
        // A window that stayed open for long mixes old reads with new ones.
        let recent = now.since(end) < WINDOW;
        self.judge_legs(recent, io);
        for local in &mut self.legs {
            local.latency.window = Window::default();
        }
    }

    /// Says which legs have become slow, are so no more, or can no longer be said to be.
    fn judge_legs(&mut self, recent: bool, io: &mut impl ArrayIo) {
        let in_sync = self.in_sync();
        for leg in 0..self.legs.len() {
            let found = if recent && in_sync & bit(leg) != 0 {
                self.found(leg, in_sync & !bit(leg))
            } else {
                Verdict::Stale
            };
            let epoch = self.epoch;
            let latency = &mut self.legs[leg].latency;
            let accused = found == Verdict::Slow;
            latency.times = if accused == latency.accused { latency.times.saturating_add(1) } else { 1 };
            latency.accused = accused;
            // A leg that was never called slow has nothing to take back.
            let silent =
                latency.reported == found || (latency.reported, found) == (Verdict::Well, Verdict::Stale);
            if !silent && latency.times >= WINDOWS {
                latency.reported = found;
                io.note(Note::Judged { leg, verdict: found, epoch });
            }
        }
        self.judging.slow = self.legs.iter().any(|l| l.latency.reported == Verdict::Slow);
    }

    /// What this window says of a leg beside the others in sync.
    fn found(&self, leg: usize, others: Legs) -> Verdict {
        let mut found = Verdict::Stale;
        for class in 0..CLASSES {
            let median = |leg: usize| self.legs[leg].latency.window.median(class);
            let (Some(own), Some(best)) = (median(leg), members(others).filter_map(median).min()) else {
                continue;
            };
            if own >= SLOW_FLOOR.max(best + SLOW_STEPS) {
                return Verdict::Slow;
            }
            found = Verdict::Well;
        }
        found
    }

    /// The legs have changed: old counts are dropped, and a leg that joined is measured anew.
    pub(crate) fn forget_latency(&mut self, joined: Legs) {
        for (leg, local) in self.legs.iter_mut().enumerate() {
            local.latency.picked = 0;
            if joined & bit(leg) != 0 {
                local.latency = Latency::default();
            }
        }
    }
}
