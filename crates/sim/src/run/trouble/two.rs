//! What goes wrong with two heads.

use crate::run::operator::NAMES;
use crate::run::{Alarm, Fault, Outage, Run, Stage, Trouble};
use crate::world::Crash;
use base::{Address, Duration};
use head::order::State;

/// When it is looked again whether a path may be lost.
const OUTAGE_AGAIN: Duration = Duration::from_secs(1);
/// How long a Steward gets no processor: the first time, how much longer each time, and at most.
const LOAD_FIRST_MS: u64 = 120;
const LOAD_MORE_MS: u64 = 25;
const LOAD_MOST_MS: u64 = 600;
/// After this time a follower takes part without a drive that it has lost.
const TAKES_PART: Duration = Duration::from_secs(18);
/// After this time a leg that nobody reaches is out.
const LEG_OUT: Duration = Duration::from_secs(5);

impl Run {
    /// As often a hundredth of a second as many seconds.
    pub(super) fn some_time(&mut self, most_ms: u64) -> Duration {
        let most = most_ms >> self.rng.below(11);
        Duration::from_millis(self.rng.between(10.min(most), most.max(11)))
    }
    /// To whom networks bring nothing, and for how long.
    fn a_cut(&mut self) -> ([bool; 2], Duration) {
        let to = *self.rng.pick(&[[true, true], [true, false], [false, true]]);
        (to, self.some_time(8000))
    }
    /// The head that leads; where more than one thing happens, more often than not.
    fn victim(&mut self) -> usize {
        match self.leader() {
            Some(leader) if self.options.troubles_max == 1 || self.rng.chance(2, 3) => leader,
            Some(leader) => 1 - leader,
            None => self.rng.below(2) as usize,
        }
    }
    /// Who follows where this one leads; where anything may happen, who follows now, if anybody leads.
    fn follower_of(&self, victim: usize) -> Option<usize> {
        let leader = if self.options.rates.is_empty() { Some(victim) } else { self.leader() };
        leader.map(|leader| 1 - leader)
    }
    pub(super) fn pick_for_two(&mut self, trouble: Trouble) {
        let victim = self.victim();
        self.world.say(|| format!("trouble: {trouble:?} at server {victim}"));
        let network = self.rng.below(self.options.networks as u64) as usize;
        let kill = |server: usize| Fault::Fall { server, crash: Crash::Killed };
        match trouble {
            Trouble::HoldFencesUp | Trouble::KillBehindFences(_) if !self.may_hold_fences() => {}
            Trouble::Alone(_) if !self.may_lose_all_paths() => {}
            Trouble::Kill if self.world.is_paused(victim).is_none() => self.dooms(victim, Crash::Killed),
            Trouble::Kill => self.happens(kill(victim)),
            Trouble::PowerCut => self.happens(Fault::Fall { server: victim, crash: Crash::PowerCut }),
            Trouble::KillBoth => {
                self.happens(kill(victim));
                self.dooms(1 - victim, Crash::Killed);
            }
            Trouble::Blackout => self.happens(Fault::Blackout { first: victim }),
            Trouble::Pause => {
                let time = self.some_time(30_000);
                let kernel = self.rng.chance(1, 2);
                self.happens(Fault::Pause { server: victim, time, kernel });
            }
            Trouble::CutLink => {
                let (to, time) = self.a_cut();
                for network in 0..self.options.networks {
                    self.happens(Fault::CutNetwork { network, to, time });
                }
            }
            Trouble::CutNetwork => {
                let (to, time) = self.a_cut();
                self.happens(Fault::CutNetwork { network, to, time });
            }
            Trouble::SlowNetwork => {
                let slow_us = self.rng.between(0, 400_000);
                self.happens(Fault::SlowNetwork { network, slow_us });
            }
            Trouble::ResetNetwork => self.happens(Fault::ResetNetwork { network }),
            Trouble::LosePath => self.lose_path(victim),
            Trouble::LosePathOf { leader } => self.lose_path(if leader { victim } else { 1 - victim }),
            Trouble::KillFollower => self.happens(kill(1 - victim)),
            Trouble::PauseSteward => {
                let most = *self.rng.pick(&[1000, 16_000]);
                let time = Duration::from_millis(self.rng.between(10, most));
                self.happens(Fault::PauseMachine { server: victim, machine: Address::Steward, time });
            }
            Trouble::KillBehindFences(time) => {
                for disk in 0..self.world.disks.len() {
                    self.happens(Fault::HoldFences { disk, time });
                }
                self.happens(kill(victim));
            }
            Trouble::FollowerBehindFence(disk, time) => {
                self.happens(Fault::HoldFences { disk, time });
                self.happens(kill(1 - victim));
            }
            Trouble::LeaderBehindFence(disk, time) => {
                self.happens(Fault::HoldFences { disk, time });
                self.happens(kill(victim));
            }
            Trouble::FullDirectory { files, time } => {
                let Some(server) = self.follower_of(victim) else { return };
                self.happens(if files { Fault::Refuse { server } } else { Fault::Freeze { server } });
                self.later(time, Alarm::Fault(Fault::Room));
            }
            Trouble::Load => {
                let most = (LOAD_FIRST_MS + LOAD_MORE_MS * u64::from(self.harm.troubles)).min(LOAD_MOST_MS);
                for server in 0..2 {
                    let time = Duration::from_millis(self.rng.between(most * 2 / 3, most));
                    self.happens(Fault::PauseMachine { server, machine: Address::Steward, time });
                }
            }
            Trouble::Alone(time) => {
                for network in 0..self.options.networks {
                    self.happens(Fault::CutNetwork { network, to: [true, true], time });
                }
                (0..self.world.disks.len()).for_each(|disk| self.take_path(victim, disk, time));
            }
            Trouble::KillWithoutPath(disk) => {
                self.happens(Fault::Path { server: 1 - victim, disk, lost: true });
                self.later(TAKES_PART, Alarm::Then(Trouble::Kill));
            }
            Trouble::StartWithoutPath(disk) => {
                self.happens(kill(1 - victim));
                self.happens(Fault::Path { server: 1 - victim, disk, lost: true });
            }
            Trouble::LastLegBehindFence(disk, time) => {
                for server in 0..2 {
                    self.happens(Fault::Path { server, disk: disk ^ 1, lost: true });
                }
                self.later(LEG_OUT, Alarm::Then(Trouble::FollowerBehindFence(disk, time)));
            }
            Trouble::HoldFencesUp => {
                let disk = self.rng.below(self.world.disks.len() as u64) as usize;
                let time = self.some_time(8000);
                self.happens(Fault::HoldFences { disk, time });
                // Nobody is shut out but for a reason.
                let time = self.some_time(16_000);
                match self.rng.below(3) {
                    0 => self.happens(Fault::Pause { server: victim, time, kernel: true }),
                    1 => {
                        self.happens(Fault::PauseMachine { server: victim, machine: Address::Steward, time })
                    }
                    _ => {}
                }
            }
            Trouble::Stop => self.happens(Fault::Stop { server: victim }),
            Trouble::Cut => self.happens(Fault::BreakLink),
            Trouble::TurnLanes => self.happens(Fault::TurnLanes),
            Trouble::Resize => {
                let volume = self.rng.below(NAMES);
                let granules = self.rng.between(1, 3);
                self.happens(Fault::Resize { volume, granules });
            }
            Trouble::Scrub => self.happens(Fault::Scrub),
            Trouble::Rot => self.pick_data_to_rot(),
            Trouble::Hang
            | Trouble::Drop
            | Trouble::Unplug
            | Trouble::Slow
            | Trouble::WriteErrors
            | Trouble::ReadErrors
            | Trouble::FlushErrors => self.pick_drive(trouble),
            other => self.pick_of_any(other, victim),
        }
    }
    /// A head loses its path to a drive for long, once the other one reaches every leg.
    pub(in crate::run) fn begin_outage(&mut self) {
        let Some(Outage { of_leader, disk, lost, dark, .. }) = self.options.outage else { return };
        if self.stage != Stage::Working {
            return;
        }
        let well = self.last_look.as_ref().is_some_and(|s| s.health == State::Optimal);
        let Some(leader) = self.leader().filter(|_| well && self.world.has_all_paths()) else {
            return self.later(OUTAGE_AGAIN, Alarm::Outage);
        };
        let server = if of_leader { leader } else { 1 - leader };
        self.world.say(|| format!("outage: server {server} loses its path to d{disk}"));
        self.take_path(server, disk, lost);
        self.later(dark, Alarm::Dark);
    }
    /// Everything loses its power while a path is lost.
    pub(in crate::run) fn power_goes(&mut self) {
        let Some(Outage { dark, back, .. }) = self.options.outage else { return };
        if self.stage != Stage::Working || self.world.has_all_paths() {
            return;
        }
        self.harm.troubles += 1;
        let first = self.rng.below(2) as usize;
        self.world.say(|| "outage: the power goes".into());
        self.happens(Fault::Blackout { first });
        if back {
            self.world.all_paths_are_back();
        } else {
            self.later(dark, Alarm::Dark);
        }
    }
    /// One path of one server: a head still reaches every leg in sync.
    fn lose_path(&mut self, server: usize) {
        let disk = self.rng.below(self.world.disks.len() as u64) as usize;
        if self.may_lose_path() {
            let time = self.some_time(8000);
            self.take_path(server, disk, time);
        }
    }
    /// A path is lost, and back after this.
    pub(in crate::run) fn take_path(&mut self, server: usize, disk: usize, time: Duration) {
        self.happens(Fault::Path { server, disk, lost: true });
        self.later(time, Alarm::Fault(Fault::Path { server, disk, lost: false }));
    }
}
