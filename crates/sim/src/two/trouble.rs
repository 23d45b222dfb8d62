//! Faults of a run of two heads, and what an operator does about them.

use super::{
    ALARM_DARK, ALARM_OUT, ALARM_OUTAGE, ALARM_PATH, ALARM_ROOM, ALARM_THEN, ALARM_TROUBLE, Outage, Run,
    Stage, Trouble,
};
use crate::access::Access;
use crate::world::{Crash, Pause, Refusal};
use base::{Address, Duration};
use head::layout::ArrayId;
use head::mail::ShardMail;
use head::order::{HostSettings, Order, State, Status};

/// Effects that a head carries out at most before it falls.
const DOOM_EFFECTS: u64 = 40;
/// Bytes a second that an array of used drives clears by itself.
const SLOW: u64 = 128 << 10;
/// When it is looked again whether a path may be lost.
const OUTAGE_AGAIN: Duration = Duration::from_secs(1);
/// Writes that a directory refuses in which there is no room for files: more than there are in that time.
const REFUSED: usize = 10_000;
/// How long a Steward gets no processor: the first time, how much longer each time, and at most.
const LOAD_FIRST_MS: u64 = 120;
const LOAD_MORE_MS: u64 = 25;
const LOAD_MOST_MS: u64 = 600;
/// After this time a follower takes part without a drive that it has lost.
const TAKES_PART: Duration = Duration::from_secs(18);
/// After this time a leg that nobody reaches is out.
const LEG_OUT: Duration = Duration::from_secs(5);
/// Names of things that come and go.
const NAMES: u64 = 4;

impl Run {
    pub(super) fn next_trouble(&mut self) {
        let over = self.options.once && self.troubles > 0;
        if !self.options.troubles.is_empty() && !over {
            let mean = self.options.pause.as_micros() as u64;
            let after = Duration::from_micros(self.rng.between(mean / 4, mean * 2));
            self.world.alarm(after, ALARM_TROUBLE);
        }
    }
    pub(super) fn pause_of_a_start(&mut self) -> Duration {
        Duration::from_millis(self.rng.between(20, 3000))
    }
    /// As often a hundredth of a second as many seconds.
    fn some_time(&mut self, most_ms: u64) -> Duration {
        let most = most_ms >> self.rng.below(11);
        Duration::from_millis(self.rng.between(10.min(most), most.max(11)))
    }
    /// The head that leads, more often than not.
    fn victim(&mut self) -> usize {
        match self.leader() {
            Some(leader) if self.options.once || self.rng.chance(2, 3) => leader,
            Some(leader) => 1 - leader,
            None => self.rng.below(2) as usize,
        }
    }
    pub(super) fn trouble(&mut self) {
        self.troubles += 1;
        let trouble = *self.rng.pick(&self.options.troubles.clone());
        self.happens(trouble);
    }
    /// What follows upon a trouble.
    pub(super) fn then(&mut self) {
        if let Some(trouble) = self.then.take().filter(|_| self.stage == Stage::Working) {
            self.happens(trouble);
        }
    }
    fn happens(&mut self, trouble: Trouble) {
        let victim = self.victim();
        self.world.say(|| format!("trouble: {trouble:?} at server {victim}"));
        let path = self.rng.below(self.options.networks as u64) as usize;
        match trouble {
            Trouble::Kill if self.world.is_paused(victim).is_none() => {
                let effects = self.rng.below(DOOM_EFFECTS) as u32;
                self.world.doom(victim, None, effects, Crash::Killed);
            }
            Trouble::Kill => self.ends(victim, Crash::Killed),
            Trouble::PowerCut => self.ends(victim, Crash::PowerCut),
            Trouble::KillBoth => {
                self.ends(victim, Crash::Killed);
                let effects = self.rng.below(DOOM_EFFECTS) as u32;
                self.world.doom(1 - victim, None, effects, Crash::Killed);
            }
            Trouble::Blackout => self.black_out(victim),
            Trouble::Pause => {
                let until = self.world.now() + self.some_time(30_000);
                let kernel = self.rng.chance(1, 2);
                self.world.pause(victim, Pause { until, kernel });
            }
            Trouble::CutLink => {
                let to = *self.rng.pick(&[[true, true], [true, false], [false, true]]);
                let time = self.some_time(8000);
                for path in 0..self.options.networks {
                    self.world.cut_network(path, to, time);
                }
            }
            Trouble::CutNetwork => {
                let to = *self.rng.pick(&[[true, true], [true, false], [false, true]]);
                let time = self.some_time(8000);
                self.world.cut_network(path, to, time);
            }
            Trouble::SlowNetwork => {
                let slow = self.rng.between(0, 400_000);
                self.world.slow_network(path, slow);
            }
            Trouble::ResetNetwork => self.world.reset_network(path),
            Trouble::LosePath => self.lose_path(victim),
            Trouble::LosePathOf { leader } => self.lose_path(if leader { victim } else { 1 - victim }),
            Trouble::KillFollower => self.ends(1 - victim, Crash::Killed),
            Trouble::PauseSteward => {
                let most = *self.rng.pick(&[1000, 16_000]);
                let until = self.world.now() + Duration::from_millis(self.rng.between(10, most));
                self.world.pause_steward(victim, until);
            }
            Trouble::KillBehindFences(time) => {
                (0..self.world.disks.len()).for_each(|disk| self.world.hold_fences_up(disk, time));
                self.ends(victim, Crash::Killed);
            }
            Trouble::FollowerBehindFence(disk, time) => {
                self.world.hold_fences_up(disk, time);
                self.ends(1 - victim, Crash::Killed);
            }
            Trouble::LeaderBehindFence(disk, time) => {
                self.world.hold_fences_up(disk, time);
                self.ends(victim, Crash::Killed);
            }
            Trouble::FullDirectory { files, time } => {
                let (now, server) = (self.world.now(), &mut self.world.servers[1 - victim]);
                if files {
                    server.refuses.extend(core::iter::repeat_n(Refusal::Refused, REFUSED));
                } else {
                    server.frozen_at = Some(now);
                }
                self.world.alarm(time, ALARM_ROOM);
            }
            Trouble::Load => {
                let most = (LOAD_FIRST_MS + LOAD_MORE_MS * u64::from(self.troubles)).min(LOAD_MOST_MS);
                for server in 0..2 {
                    let until =
                        self.world.now() + Duration::from_millis(self.rng.between(most * 2 / 3, most));
                    self.world.pause_steward(server, until);
                }
            }
            Trouble::Alone(time) => {
                (0..self.options.networks).for_each(|n| self.world.cut_network(n, [true, true], time));
                for disk in 0..self.world.disks.len() {
                    self.world.lose_path(victim, disk, true);
                    self.world.alarm(time, ALARM_PATH + (victim * 10 + disk) as u64);
                }
            }
            Trouble::KillWithoutPath(disk) => {
                self.world.lose_path(1 - victim, disk, true);
                self.follows(Trouble::Kill, TAKES_PART);
            }
            Trouble::StartWithoutPath(disk) => {
                self.ends(1 - victim, Crash::Killed);
                self.world.lose_path(1 - victim, disk, true);
            }
            Trouble::LastLegBehindFence(disk, time) => {
                (0..2).for_each(|server| self.world.lose_path(server, disk ^ 1, true));
                self.follows(Trouble::FollowerBehindFence(disk, time), LEG_OUT);
            }
            Trouble::HoldFencesUp => {
                let disk = self.rng.below(self.world.disks.len() as u64) as usize;
                let time = self.some_time(8000);
                self.world.hold_fences_up(disk, time);
                // Nobody is shut out but for a reason.
                let until = self.world.now() + self.some_time(16_000);
                match self.rng.below(3) {
                    0 => self.world.pause(victim, Pause { until, kernel: true }),
                    1 => self.world.pause_steward(victim, until),
                    _ => {}
                }
            }
        }
    }
    fn follows(&mut self, trouble: Trouble, after: Duration) {
        self.then = Some(trouble);
        self.world.alarm(after, ALARM_THEN);
    }
    /// Both servers and all drives lose their power, this server first.
    fn black_out(&mut self, first: usize) {
        self.ends(first, Crash::PowerCut);
        self.ends(1 - first, Crash::PowerCut);
        self.world.drives_fall();
        self.volume.borrow_mut().head_fell(self.options.volatile);
    }
    /// A head loses its path to a drive for long, once the other one reaches every leg.
    pub(super) fn begin_outage(&mut self) {
        let Some(Outage { of_leader, disk, lost, dark, .. }) = self.options.outage else { return };
        if self.stage != Stage::Working {
            return;
        }
        let well = self.last_look.as_ref().is_some_and(|s| s.health == State::Optimal);
        let Some(leader) = self.leader().filter(|_| well && self.world.has_all_paths()) else {
            return self.world.alarm(OUTAGE_AGAIN, ALARM_OUTAGE);
        };
        let server = if of_leader { leader } else { 1 - leader };
        self.world.say(|| format!("outage: server {server} loses its path to d{disk}"));
        self.world.lose_path(server, disk, true);
        self.world.alarm(lost, ALARM_PATH + (server * 10 + disk) as u64);
        self.world.alarm(dark, ALARM_DARK);
    }
    /// Everything loses its power while a path is lost.
    pub(super) fn power_goes(&mut self) {
        let Some(Outage { dark, back, .. }) = self.options.outage else { return };
        if self.stage != Stage::Working || self.world.has_all_paths() {
            return;
        }
        self.troubles += 1;
        let first = self.rng.below(2) as usize;
        self.world.say(|| "outage: the power goes".into());
        self.black_out(first);
        if back {
            self.world.all_paths_are_back();
        } else {
            self.world.alarm(dark, ALARM_DARK);
        }
    }
    /// Hosts that say so lose their path, and no head gets an event.
    pub(super) fn lose_paths_of_hosts(&mut self) {
        if !self.options.failover {
            return;
        }
        for (host, ledger) in self.hosts.iter().zip(&self.ledgers) {
            let loses = ledger.borrow_mut().loses.take();
            if let Some(port) = loses {
                self.world.silence_path(*host, port);
                ledger.borrow_mut().path_lost = true;
                self.world.nudge(*host);
            }
            ledger.borrow_mut().left_in_silence = self.world.left_in_silence(*host).is_some();
        }
    }
    /// State directories take again what is written there.
    pub(super) fn directories_take(&mut self) {
        for server in &mut self.world.servers {
            server.refuses.clear();
            server.frozen_at = None;
        }
    }
    fn ends(&mut self, server: usize, crash: Crash) {
        if self.world.runs(server) {
            self.world.fall(server, crash);
            let after = self.pause_of_a_start();
            self.fell(server, after);
        }
    }
    /// The process of a head that is out ends, and begins anew.
    pub(super) fn is_out(&mut self, server: usize) {
        if let Some(pause) = self.world.is_paused(server) {
            // Its manager goes on with the rest of it.
            let after = pause.until.since(self.world.now());
            return self.world.alarm(after, ALARM_OUT + server as u64);
        }
        if self.world.runs(server) && core::mem::take(&mut self.out[server]) {
            self.world.fall(server, Crash::Killed);
            let after = Duration::from_millis(self.rng.between(1, 20));
            self.fell(server, after);
        }
    }
    /// One path of one server: a head still reaches every leg in sync.
    fn lose_path(&mut self, server: usize) {
        let well = self.last_look.as_ref().is_some_and(|s| s.health == State::Optimal);
        let disk = self.rng.below(self.world.disks.len() as u64) as usize;
        if well && self.world.has_all_paths() {
            self.world.lose_path(server, disk, true);
            let time = self.some_time(8000);
            self.world.alarm(time, ALARM_PATH + (server * 10 + disk) as u64);
        }
    }
    pub(super) fn path_is_back(&mut self, which: u64) {
        let (server, disk) = ((which / 10) as usize, (which % 10) as usize);
        self.world.lose_path(server, disk, false);
    }
    /// Does what `status` says, as an operator would.
    pub(super) fn nurse(&mut self, snapshot: &Status) {
        if !self.orders.is_empty() || !self.world.has_all_paths() {
            return;
        }
        self.orders.extend(crate::operator::nursing(snapshot));
    }
    /// An operator makes or removes something that must be so after a takeover, too.
    pub(super) fn change_something(&mut self) {
        if !self.orders.is_empty() {
            return;
        }
        let n = self.rng.below(NAMES);
        let order = match self.rng.below(4) {
            0 => Order::VolumeCreate {
                pool: "tank".into(),
                name: format!("x{n}"),
                bytes: 1 << 20,
                block_bytes: None,
            },
            1 => Order::VolumeRemove { volume: format!("tank/x{n}"), force: true, disconnect: true },
            2 => {
                let nqns = vec![format!("nqn.2014-08.com.example:g{n}")];
                let settings = HostSettings { nqns: Some(nqns), ..HostSettings::default() };
                Order::HostAdd { name: format!("g{n}"), settings }
            }
            _ => Order::HostRemove { name: format!("g{n}"), force: true, disconnect: true },
        };
        self.orders.push_back(order);
    }
    /// Arrays of used drives clear as slowly as they can, until faults stop.
    pub(super) fn pace(&mut self) {
        if !self.options.used {
            return;
        }
        let slow = array::Pace { floor: SLOW, ceiling: SLOW, ..Default::default() };
        let pace = if matches!(self.stage, Stage::Calming { .. }) { Default::default() } else { slow };
        for server in (0..2).filter(|s| self.ready.contains(s)) {
            for (shard, array) in
                (0..self.options.shards).flat_map(|s| (0..self.options.mirrors).map(move |a| (s, a)))
            {
                let mail = ShardMail::Pace { array: ArrayId(array as u16), pace };
                self.world.manage(server, Address::Shard(shard), mail);
            }
        }
    }
    /// Faults stop.
    pub(super) fn calm(&mut self) {
        self.world.say(|| "faults stop".into());
        self.stage = Stage::Calming { since: self.world.now() };
        self.world.mend_networks();
        self.world.all_paths_are_back();
        self.world.let_fences_go_on();
        self.directories_take();
        self.pace();
        self.access.iter_mut().for_each(Access::calm);
        self.ledgers.iter().for_each(|l| l.borrow_mut().stop = true);
        self.snapshot = None;
    }
}
