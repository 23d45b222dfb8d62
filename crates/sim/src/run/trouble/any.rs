//! What goes wrong with two heads only in worlds of any fault.

use crate::run::check::WRITE_MAX;
use crate::run::{Alarm, Fault, NOTICED, Run, Trouble, Wipe};
use crate::world::{Crash, Wrong};
use base::{Address, Duration, Instant};

/// Who leads no more is waited for so long before it is looked whether hosts wait, and they wait for so long then.
const NOBODY_YET: Duration = Duration::from_millis(500);
/// See `NOBODY_YET`.
const HOSTS_WAIT: Duration = Duration::from_secs(1);
/// By how much a clock of the day jumps, milliseconds: a second, an hour, more than a year.
const JUMPS_MS: [i64; 3] = [1000, 3_600_000, 400 * 86_400_000];

impl Run {
    pub(super) fn pick_of_any(&mut self, trouble: Trouble, victim: usize) {
        match trouble {
            Trouble::DrivesPower if self.may_lose_power() && self.may_lose_keys() => self.drives_lose_power(),
            Trouble::LoseAllPaths if self.may_lose_all_paths() => {
                let time = self.some_time(8000);
                (0..self.world.disks.len()).for_each(|disk| self.take_path(victim, disk, time));
            }
            Trouble::NobodyLeads if self.may_lose_all_paths() => self.nobody_leads(),
            Trouble::LateFences if self.may_hold_fences() => {
                let time = self.some_time(8000);
                self.happens(Fault::LateFences { server: victim, time });
            }
            // A promise has a condition that is not met now.
            Trouble::DrivesPower | Trouble::LoseAllPaths | Trouble::NobodyLeads | Trouble::LateFences => {}
            Trouble::PauseShard => {
                let machine = Address::Shard(self.rng.below(u64::from(self.options.shards)) as u16);
                let most = *self.rng.pick(&[1000, 8000]);
                let time = Duration::from_millis(self.rng.between(10, most));
                self.happens(Fault::PauseMachine { server: victim, machine, time });
            }
            Trouble::ClockJumps => {
                let by_ms = *self.rng.pick(&JUMPS_MS);
                let by_ms = if self.rng.chance(1, 2) { by_ms } else { -by_ms };
                self.happens(Fault::SetClock { server: victim, by_ms });
            }
            Trouble::SlowDirectory => {
                let slow_us = 1000 << self.rng.between(2, 9);
                let time = self.some_time(12_000);
                self.happens(Fault::SlowDirectory { server: victim, slow_us });
                self.later(time, Alarm::Fault(Fault::SlowDirectory { server: victim, slow_us: 0 }));
            }
            Trouble::Directory(what) => {
                let pick = self.rng.next_u64();
                self.happens(Fault::Directory { server: victim, what, pick });
                let after = Duration::from_millis(self.rng.below(5000));
                let fall = Fault::Fall { server: victim, crash: Crash::Killed };
                self.later(after, Alarm::Fault(fall));
            }
            Trouble::DrivePower if !self.may_lose_keys() => {}
            Trouble::DrivePower | Trouble::Full => self.pick_drive(trouble),
            Trouble::AskFollower => self.happens(Fault::AskFollower),
            // A drive that does not confirm it costs its leg.
            Trouble::FenceFollower if self.may_hold_fences() => self.happens(Fault::FenceFollower),
            Trouble::LeaveAndJoin if self.may_leave() => self.happens(Fault::LeaveAndJoin),
            Trouble::FenceFollower | Trouble::LeaveAndJoin => {}
            Trouble::MoveDrives => self.move_drives(),
            Trouble::Wipe => self.pick_drive_to_wipe(),
            Trouble::OlderCopy => self.pick_older_copy(),
            other => unreachable!("{other:?} is of worlds of one head"),
        }
    }
    /// Some drive that may be ill.
    fn ill_drive(&mut self) -> Option<usize> {
        let disk = self.rng.below(self.world.disks.len() as u64) as usize;
        self.may_ail(disk).then_some(disk)
    }
    /// No other drive falls ill before who leads has noticed what became of this one.
    fn is_noticed_later(&mut self, disk: usize, well: Instant) {
        self.harm.convalescent = (Some(disk), well + WRITE_MAX + NOTICED);
    }
    fn pick_drive_to_wipe(&mut self) {
        let what = *self.rng.pick(&[Wipe::First, Wipe::Second, Wipe::Both, Wipe::Front]);
        let Some(disk) = self.ill_drive() else { return };
        self.happens(Fault::Wipe { disk, what });
        self.is_noticed_later(disk, self.world.now());
    }
    /// The copy that there is takes the place of its drive, if another head has come to serve since it was made.
    fn pick_older_copy(&mut self) {
        let takeovers = self.heads.takeovers;
        let older = self.heads.copy.as_ref().filter(|c| c.takeovers < takeovers).map(|c| c.disk);
        let Some(disk) = older else {
            let disk = self.rng.below(self.world.disks.len() as u64) as usize;
            return self.happens(Fault::Copy { disk });
        };
        let time = self.some_time(8000);
        if self.may_ail(disk) {
            self.happens(Fault::pulled(disk));
            self.is_noticed_later(disk, self.world.now() + time);
            self.later(time, Alarm::Fault(Fault::Exchange { disk }));
            self.later(time, Alarm::Fault(Fault::heals(disk)));
        }
    }
    /// Drives have it back at the same moment.
    fn drives_lose_power(&mut self) {
        let time = self.some_time(8000);
        self.happens(Fault::PullAll);
        self.harm.convalescent = (None, self.world.now() + time + WRITE_MAX + NOTICED);
        for disk in 0..self.world.disks.len() {
            self.later(time, Alarm::Fault(Fault::heals(disk)));
        }
    }
    /// The head that leads stands still, and the other one has no vote but its own.
    fn nobody_leads(&mut self) {
        let Some(leader) = self.leader() else { return };
        let time = Duration::from_millis(self.rng.between(2000, 10_000));
        let kernel = self.rng.chance(1, 2);
        self.happens(Fault::Pause { server: leader, time, kernel });
        if self.world.is_paused(leader).is_none_or(|p| p.until < self.world.now() + time) {
            return;
        }
        self.world.tally.make(Wrong::NobodyLeads);
        for network in 0..self.options.networks {
            self.happens(Fault::CutNetwork { network, to: [true, true], time });
        }
        (0..self.world.disks.len()).for_each(|disk| self.take_path(1 - leader, disk, time));
        self.later(NOBODY_YET, Alarm::Waited(None));
    }
    /// A head has left the system. Its daemon removes what it has of that, and joins as one that has nothing.
    pub(in crate::run) fn has_left(&mut self, server: usize) {
        self.ends(server, Crash::Killed);
        self.world.servers[server].state.clear();
        self.heads.each[server].finds = None;
    }
    /// Whether no command of a host has ended well since there were so many.
    pub(in crate::run) fn look_for_waits(&mut self, before: Option<u64>) {
        let good = self.hosts.good();
        match before {
            None => self.later(HOSTS_WAIT, Alarm::Waited(Some(good))),
            Some(before) if before == good => self.world.tally.meet(Wrong::NobodyLeads),
            Some(_) => {}
        }
    }
}
