//! Rests in the middle of a world: after some faults, once all is well again, hosts begin nothing until nothing is under way. What was given
//! must be back then, and both heads, the drives and the directories must agree. So that is asked for more than once a world.

use super::{Alarm, Run, quiet};
use base::{Duration, Instant};
use head::order::State;

/// Faults between two rests, at least.
const EVERY: u32 = 4;
/// Rests of a world.
const MOST: u32 = 3;
/// How often it is looked whether something is under way.
const LOOK: Duration = Duration::from_millis(5);
/// How long hosts wait for a rest. Then they go on without one.
const PATIENCE: Duration = Duration::from_millis(300);
/// Heads know what became of each other so long after something happened.
const SETTLED: Duration = Duration::from_secs(1);

/// The rests of a world.
#[derive(Default)]
pub(super) struct Rests {
    /// Rests begun, and the faults that there were by the last one.
    begun: u32,
    troubles: u32,
    /// Hosts begin nothing since then.
    since: Option<Instant>,
    /// How often nothing was under way.
    pub had: u32,
    /// Nothing was under way at the last look.
    still: bool,
    /// It is to be looked again.
    pub due: bool,
}

impl Run {
    /// All is well, as far as the head that leads has said, and nothing has happened that it may not know yet.
    fn may_rest(&self) -> bool {
        let well = self.last_look.as_ref().is_some_and(|s| s.health == State::Optimal && quiet(s));
        let up = self.heads.each.iter().all(|head| head.up && !head.out && !head.stopping);
        let reached = self.drives_are_well() && self.world.has_all_paths();
        well && up && reached && self.follower_has_all() && self.world.heads_are_settled(SETTLED)
    }
    /// Two heads rest where each kind of fault has a rate of its own.
    pub(super) fn rest_if_due(&mut self) {
        let Rests { begun, troubles, since, had, .. } = self.rest;
        let due = since.is_none() && begun < MOST && self.harm.troubles >= troubles + EVERY;
        if self.options.rates.is_empty() || !due || !self.may_rest() {
            return;
        }
        self.world.say(|| "hosts begin nothing until nothing is under way".into());
        let (now, troubles) = (self.world.now(), self.harm.troubles);
        self.rest = Rests { begun: begun + 1, troubles, since: Some(now), had, ..Rests::default() };
        self.hosts.rest(true);
        self.later(LOOK, Alarm::Rest);
    }
    /// Whether there is a rest: then what must be so is checked, and hosts go on.
    pub(super) fn look_at_rest(&mut self) -> Result<(), String> {
        let Some(since) = self.rest.since else { return Ok(()) };
        let still = self.may_rest() && self.rests().is_ok();
        // Twice, so that no letter between machines is overlooked.
        let rests = core::mem::replace(&mut self.rest.still, still) && still;
        if rests {
            self.check_books()?;
            self.leader().map_or(Ok(()), |leader| self.world.check_known(leader))?;
        }
        if !rests && self.world.now().since(since) < PATIENCE {
            self.later(LOOK, Alarm::Rest);
            return Ok(());
        }
        self.world.say(|| format!("hosts go on; nothing was under way: {rests}"));
        self.rest.had += u32::from(rests);
        self.rest.since = None;
        self.hosts.rest(false);
        for host in self.hosts.actors.clone() {
            self.world.nudge(host);
        }
        Ok(())
    }
}
