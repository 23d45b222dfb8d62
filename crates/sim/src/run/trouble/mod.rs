//! What goes wrong: a picker draws when, which and with whom (`one`, `two`, `any`), asks whether it may (`may`), and
//! makes faults of it; deeds make them happen, with any server and drive, and draw nothing.

mod any;
mod deeds;
mod directories;
mod may;
mod one;
mod two;

use super::{Alarm, Run, Trouble};
use base::{Duration, Instant};
use directories::Foreign;

pub(super) use directories::Found;

/// What a drive held back has landed so long after it went on.
pub(super) const LANDED_AFTER: Duration = Duration::from_millis(50);

/// Where each kind has a rate of its own, one in so many troubles is followed by another one within so many
/// microseconds: so faults meet a takeover that has just begun.
const CHAINED: u64 = 4;
/// See `CHAINED`.
const CHAINED_US: u64 = 50_000;

/// What has gone wrong so far.
#[derive(Default)]
pub(super) struct Harm {
    /// Troubles made.
    pub troubles: u32,
    /// Ends of a head alone.
    pub kills: u32,
    /// No drive but this one falls ill before then: a command may meet one ill leg, not two in a row.
    pub convalescent: (Option<usize>, Instant),
    /// Until then a leg that lost its cache may not have been noticed: if the head falls, what was not
    /// flushed may be lost with it (promise 1).
    pub drained_until: Instant,
    /// The head that led fell, or another one came to lead, while that was so, and nobody has served since.
    pub lost_cache: bool,
    /// Links have kept bytes back.
    pub stalls: bool,
    /// When a drive became ill or well last.
    pub ailed_at: Instant,
    /// The state directory took nothing once.
    pub froze: bool,
    /// A drive became ill when it could not be known yet that the state directory takes nothing, which is so still.
    pub loss_not_on_record: bool,
    /// Some drive was ill once.
    pub ailed: bool,
    /// Some drive was pulled, and came back as another.
    pub pulled: bool,
    /// Until then a drive shuts nobody out, and may cost its leg when a head takes over.
    pub held_until: Instant,
    /// Until then a server, or its Steward, stands still, and does not notice what became of drives.
    pub stood_until: Instant,
    /// When something happened last that may cost a leg.
    pub disturbed_at: Instant,
    /// When something was wrong last that commands of two heads may wait for.
    pub unwell_at: Instant,
    /// When a head that leads was asked last that said that all is well.
    pub well_at: Instant,
    /// The state directory that is not what its head left.
    foreign: Option<Foreign>,
    /// A drive of which something was overwritten, when, and whether the head has said so.
    pub wiped: Option<(usize, Instant, bool)>,
}

impl Run {
    /// Troubles begin: any, one after the other, or each kind at a rate of its own.
    pub(super) fn begin_troubles(&mut self) {
        if self.options.rates.is_empty() {
            self.next_trouble();
        }
        for nth in 0..self.options.rates.len() {
            self.next_of_kind(nth);
        }
    }
    pub(super) fn next_trouble(&mut self) {
        if !self.options.troubles.is_empty() && self.harm.troubles < self.options.troubles_max {
            let mean = self.options.pause.as_micros() as u64;
            let after = Duration::from_micros(self.rng.between(mean / 4, mean * 2));
            self.later(after, Alarm::Trouble);
        }
    }
    pub(super) fn trouble(&mut self) {
        self.harm.troubles += 1;
        self.copy_a_drive();
        let trouble = *self.rng.pick(&self.options.troubles);
        self.pick(trouble);
    }
    /// When the next trouble of this kind comes.
    pub(super) fn next_of_kind(&mut self, nth: usize) {
        if self.harm.troubles < self.options.troubles_max {
            let mean = self.options.rates[nth].as_micros() as u64;
            let after = Duration::from_micros(self.rng.between(0, 2 * mean));
            self.later(after, Alarm::Kind(nth));
        }
    }
    /// A trouble of this kind, and now and then another one soon after.
    pub(super) fn trouble_of_kind(&mut self, nth: usize) {
        self.harm.troubles += 1;
        self.copy_a_drive();
        self.pick(self.options.troubles[nth]);
        if self.rng.chance(1, CHAINED) {
            let other = *self.rng.pick(&self.options.troubles);
            let soon = Duration::from_micros(self.rng.below(CHAINED_US));
            self.later(soon, Alarm::Then(other));
        }
    }
    /// Faults are made of a trouble.
    pub(super) fn pick(&mut self, trouble: Trouble) {
        if self.two() { self.pick_for_two(trouble) } else { self.pick_for_one(trouble) }
    }
}
