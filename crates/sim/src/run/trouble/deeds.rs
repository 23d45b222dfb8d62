//! Faults happen. Nothing is drawn here but what the world draws: which link, and how much of what is under way.

use super::LANDED_AFTER;
use crate::disk::{Disk, Faults};
use crate::run::check::label;
use crate::run::lives::{Heads, OldCopy};
use crate::run::{Alarm, Fault, Run, Wipe};
use crate::world::{Crash, Pause, Refusal, Wrong};
use array::format::{LABEL_AT, LegState, MEMBERSHIP_AT, MembershipRecord, RECORD_BYTES, label_copy_at};
use base::Duration;
use head::order::{Order, PoolScrub, Status};
use volume::GRANULE_BYTES;

/// The head says within this time that a label was overwritten: a look each 5 s, and its turns.
const WIPE_SAID: Duration = Duration::from_secs(8);
/// Writes that a directory refuses in which there is no room for files: more than there are in that time.
const REFUSED: usize = 10_000;

impl Run {
    pub(in crate::run) fn happens(&mut self, fault: Fault) {
        self.world.say(|| format!("{fault:?}"));
        let now = self.world.now();
        match fault {
            Fault::Doom { server, effects, crash } => {
                // Worlds whose seeds are older than that heads could fall in a row: the last end is the one that counts.
                if self.options.rates.is_empty() {
                    self.world.spare();
                }
                if self.may_doom(server) {
                    self.world.doom(server, None, effects, crash);
                }
            }
            Fault::Fall { server, crash } => self.ends(server, crash),
            Fault::Stop { server } => self.stop(server),
            Fault::Blackout { first } => self.black_out(first),
            Fault::Pause { server, time, kernel } => {
                self.harm.stood_until = self.harm.stood_until.max(now + time);
                self.world.pause(server, Pause { until: now + time, kernel });
            }
            Fault::PauseMachine { server, machine, time } => {
                self.harm.stood_until = self.harm.stood_until.max(now + time);
                self.world.pause_machine(server, machine, now + time);
            }
            Fault::SetClock { server, by_ms } => {
                self.world.tally.make(Wrong::ClockJumps);
                self.world.servers[server].day_ms += by_ms;
            }
            Fault::BreakLink => self.world.cut_one_link(),
            Fault::StallLink { time } => {
                self.harm.stalls = true;
                self.world.stall_one_link(time);
            }
            Fault::SilenceLink => {
                self.harm.stalls = true;
                self.world.silence_one_link();
            }
            Fault::CutNetwork { network, to, time } => self.world.cut_network(network, to, time),
            Fault::SlowNetwork { network, slow_us } => self.world.slow_network(network, slow_us),
            Fault::ResetNetwork { network } => self.world.reset_network(network),
            Fault::Path { server, disk, lost } => {
                self.harm.disturbed_at = now;
                self.world.lose_path(server, disk, lost);
            }
            Fault::Drive { disk, faults } => self.ails(disk, faults),
            Fault::Pull { disk, power } => {
                self.world.disks[disk].faults.hang = false;
                self.harm.pulled = true;
                self.world.unplug(disk, power);
                self.note_ailment(true);
            }
            Fault::PullAll => {
                self.harm.pulled = true;
                self.world.unplug_all();
                self.hosts.volume.borrow_mut().head_fell(self.options.volatile);
                self.note_ailment(true);
            }
            Fault::Rot { disk, sector } => self.rots(disk, sector),
            Fault::Wipe { disk, what } => self.wipe(disk, what),
            Fault::Copy { disk } => self.copy_drive(disk),
            Fault::CopyAtEnd { disk } => self.heads.copies_at_end = Some(disk),
            Fault::Exchange { disk } => self.exchange(disk),
            Fault::Fail { disk } => {
                self.orders.queue.push_back(Order::DriveFail { drive: format!("d{disk}"), force: false });
            }
            Fault::HoldFences { disk, time } => {
                self.harm.held_until = self.harm.held_until.max(now + time);
                self.world.hold_fences_up(disk, time);
            }
            Fault::LateFences { server, time } => {
                self.harm.held_until = self.harm.held_until.max(now + time);
                self.world.fences_are_late(server, time);
            }
            Fault::Freeze { server } => {
                self.harm.froze = true;
                self.world.tally.make(Wrong::FullDirectory);
                self.world.servers[server].frozen_at = Some(now);
            }
            Fault::Refuse { server } => {
                self.world.tally.make(Wrong::FullDirectory);
                let refused = core::iter::repeat_n(Refusal::Refused, REFUSED);
                self.world.servers[server].refuses.extend(refused);
            }
            Fault::SlowDirectory { server, slow_us } => self.world.slow_directory(server, slow_us),
            Fault::Directory { server, what, pick } => self.changes_directory(server, what, pick),
            Fault::Room => self.directories_take(),
            Fault::TurnLanes => self.turn_lanes(),
            Fault::Resize { volume, granules } => {
                let (volume, bytes) = (format!("tank/x{volume}"), granules * GRANULE_BYTES);
                let order = Order::VolumeResize { volume, bytes, force: true, disconnect: true };
                self.orders_once(Wrong::Resize, order);
            }
            Fault::Scrub => {
                let action = PoolScrub::Start { repair: false, prefer: vec![] };
                self.orders_once(Wrong::Scrub, Order::PoolScrub { pool: "tank".into(), action });
            }
            Fault::AskFollower => self.orders.elsewhere = true,
            Fault::FenceFollower => self.orders_once(Wrong::FenceFollower, Order::HeadFence { off: false }),
            Fault::LeaveAndJoin => {
                self.orders_once(Wrong::LeaveAndJoin, Order::HeadRelease { itself: true });
            }
        }
    }

    /// The operator has lanes dealt anew.
    pub(in crate::run) fn turn_lanes(&mut self) {
        self.orders_once(Wrong::TurnLanes, Order::LanesTurn);
    }
    /// The operator orders something, unless the same order waits. It is counted as this.
    fn orders_once(&mut self, what: Wrong, order: Order) {
        self.world.tally.make(what);
        if !self.orders.queue.contains(&order) {
            self.orders.queue.push_back(order);
        }
    }

    // ---- drives

    /// This goes wrong with a drive from now on, or nothing does.
    fn ails(&mut self, disk: usize, faults: Faults) {
        self.world.disks[disk].faults = faults;
        faults.wrongs().for_each(|what| self.world.tally.make(what));
        if faults.hang {
            self.hosts.volume.borrow_mut().hangs |= self.last_legs_may_hang();
        }
        self.note_ailment(faults.any());
        if faults.any() {
            return;
        }
        self.later(LANDED_AFTER, Alarm::Landed);
        // Beside a script no operator helps the head.
        if self.options.script.is_empty() {
            self.orders.queue.push_back(Order::DriveReturn { drive: format!("d{disk}") });
            self.snapshot = None;
            self.orders.queue.push_back(Order::Status);
        }
    }
    fn note_ailment(&mut self, ill: bool) {
        self.harm.ailed_at = self.world.now();
        self.harm.disturbed_at = self.world.now();
        self.harm.ailed = true;
        self.harm.loss_not_on_record |= ill && self.world.may_have_loss_not_on_record(self.harm.ailed_at);
    }
    /// Whether writes that were given up may still land on a last leg: what hung has had the time to let them.
    pub(in crate::run) fn look_for_hangs(&mut self) {
        let hangs = self.world.disks.iter().any(|d| d.faults.hang);
        self.hosts.volume.borrow_mut().hangs = hangs && self.last_legs_may_hang();
    }
    /// Not where one drive is ill at a time, and only beside one in sync.
    fn last_legs_may_hang(&self) -> bool {
        self.options.ill_max > 1 || !self.options.script.is_empty()
    }
    /// A bit of a sector changes. A mirror cannot know which leg is right, so reads of a block that a host wrote there may
    /// return either until it is written again.
    fn rots(&mut self, disk: usize, sector: u64) {
        let bytes = self.world.disks[disk].sector;
        let is_data = |(at, len): (u64, u64)| (at..at + len).contains(&(sector * bytes));
        if self.data_space(disk).is_some_and(is_data)
            && let Some(block) = self.block_in(disk, sector)
        {
            self.hosts.volume.borrow_mut().rots(block);
            self.orders.repair.rots(block, disk);
        }
        let world = &mut self.world;
        world.tally.make(Wrong::Rot);
        world.disks[disk].rot(sector * bytes, &mut world.rng);
    }
    /// Something else overwrites a part of a drive in use.
    fn wipe(&mut self, disk: usize, what: Wipe) {
        let record = RECORD_BYTES as u64;
        let copy = (label_copy_at(self.world.disks[disk].bytes), record);
        let Some((data_at, data_bytes)) = self.data_space(disk) else { return };
        let ranges = match what {
            Wipe::First => vec![(LABEL_AT, record)],
            Wipe::Second => vec![copy],
            Wipe::Both => vec![(LABEL_AT, record), copy],
            Wipe::Front => vec![(0, data_at), copy],
            Wipe::Long => vec![(0, data_at + data_bytes / 2), copy],
        };
        for (at, len) in ranges {
            // Until it is noticed hosts may read what is there now.
            for sector in self.world.disks[disk].sectors(data_at, (at + len).saturating_sub(data_at)) {
                if let Some(block) = self.block_in(disk, sector).filter(|_| at < data_at) {
                    self.hosts.volume.borrow_mut().zeroes(block);
                }
            }
            self.world.disks[disk].wipe(at, len);
        }
        self.world.tally.make(Wrong::Wipe);
        self.harm.wiped = Some((disk, self.world.now(), false));
        self.note_ailment(false);
    }

    /// The head says within some seconds that something of a drive was overwritten.
    pub(in crate::run) fn hear_of_wipe(&mut self, snapshot: &Status) -> Result<(), String> {
        let now = self.world.now();
        // What another head said is not of this one's log.
        if self.two() {
            return Ok(());
        }
        let Some((disk, at, said)) = &mut self.harm.wiped else { return Ok(()) };
        let what = format!("drive d{disk}");
        *said |= snapshot.events.iter().filter(|e| e.what == what).any(|e| {
            let said = format!("{:?}", e.event);
            said.contains("LabelRewritten") || said.contains("DriveMetadataLost")
        });
        if !*said && now.since(*at) > WIPE_SAID {
            return Err(format!("label: d{disk} was overwritten, and nobody has said so"));
        }
        Ok(())
    }
    /// The block of the volume whose stamp lies in a sector of a drive.
    pub(in crate::run) fn block_in(&self, disk: usize, sector: u64) -> Option<u64> {
        let disk = &self.world.disks[disk];
        let mut bytes = vec![0; disk.sector as usize];
        disk.read(sector * disk.sector, &mut bytes);
        crate::volume::block_of(&bytes)
    }
    /// Where the data of the drive's array lie on it, if its label can be read.
    pub(in crate::run) fn data_space(&self, disk: usize) -> Option<(u64, u64)> {
        let label = label(&self.world.disks[disk]).ok()?;
        Some((label.data_at, label.data_bytes))
    }

    // ---- older copies of drives

    pub(in crate::run) fn copy_drive(&mut self, disk: usize) {
        let contents = self.world.disks[disk].copy();
        let Heads { lives: life, takeovers, .. } = self.heads;
        self.heads.copy = Some(OldCopy { disk, contents, life, takeovers });
    }
    /// The head has ended. An older copy of a drive takes its place, if the next head can know that: it was
    /// made before this one began to serve, or this one was stopped in order; and what is copied over it
    /// comes from the others, which are well.
    pub(in crate::run) fn exchange_at_end(&mut self, crash: Crash, served: bool) {
        let stopped = core::mem::take(&mut self.heads.stopped_in_order);
        let lives = self.heads.lives;
        let is_known = |copy: &mut OldCopy| stopped || served && copy.life < lives;
        let Some(copy) = self.heads.copy.take_if(is_known) else { return };
        // What the kernel still holds of the drive ends on what was there before.
        if crash == Crash::Killed {
            self.world.unplug(copy.disk, false);
            self.world.disks[copy.disk].faults.gone = false;
        }
        if self.world.disks.iter().all(|d| !d.faults.any()) && self.is_whole(stopped) {
            self.put_copy(copy);
        }
    }
    fn put_copy(&mut self, copy: OldCopy) {
        let OldCopy { disk, contents, .. } = copy;
        self.world.say(|| format!("d{disk} is exchanged for an older copy of itself"));
        self.world.tally.make(Wrong::OlderCopy);
        self.world.disks[disk].put_copy(contents);
        self.note_ailment(false);
    }

    /// A copy of a drive takes its place while its leg is out.
    fn exchange(&mut self, disk: usize) {
        let out = self.world.is_out_on_record(disk);
        let Heads { lives, takeovers, .. } = self.heads;
        // It was made before the pool was opened that is open now.
        let two = self.two();
        let older = |c: &OldCopy| if two { c.takeovers < takeovers } else { c.life < lives };
        let fits = |copy: &mut OldCopy| out && copy.disk == disk && older(copy);
        if let Some(copy) = self.heads.copy.take_if(fits) {
            self.put_copy(copy);
        }
    }
    /// Each drive has the same record, in which every leg is in sync; after a stop it is the one that closes the pool.
    fn is_whole(&self, stopped: bool) -> bool {
        let newest = |disk: &Disk| {
            let slots = MEMBERSHIP_AT.map(|at| {
                let mut bytes = vec![0; RECORD_BYTES];
                disk.read(at, &mut bytes);
                MembershipRecord::decode(&bytes).ok()
            });
            slots.into_iter().flatten().max_by_key(|r| (r.counter, r.settled))
        };
        let records: Vec<_> = self.world.disks.iter().map(newest).collect();
        let first = records.first().cloned().flatten();
        first.is_some_and(|r| {
            let mut legs = r.arrays.iter().flat_map(|a| &a.legs);
            !(r.open && stopped)
                && legs.all(|l| l.state == LegState::InSync)
                && records.iter().flatten().filter(|o| o.incarnation == r.incarnation).count()
                    == records.len()
        })
    }

    // ---- of two heads

    /// Both servers and all drives lose their power, this server first.
    fn black_out(&mut self, first: usize) {
        self.ends(first, Crash::PowerCut);
        self.ends(1 - first, Crash::PowerCut);
        self.world.drives_fall();
        self.hosts.volume.borrow_mut().head_fell(self.options.volatile);
    }
    /// Hosts that say so lose their path, and no head gets an event.
    pub(in crate::run) fn lose_paths_of_hosts(&mut self) {
        if !self.options.failover {
            return;
        }
        for (host, ledger) in self.hosts.actors.iter().zip(&self.hosts.ledgers) {
            let loses = ledger.borrow_mut().loses.take();
            if let Some(port) = loses {
                self.world.silence_path(*host, port);
                ledger.borrow_mut().path_lost = true;
                self.world.nudge(*host);
            }
        }
    }
    /// State directories take again what is written there.
    pub(in crate::run) fn directories_take(&mut self) {
        self.harm.loss_not_on_record = false;
        for server in &mut self.world.servers {
            server.refuses.clear();
            server.frozen_at = None;
        }
        (0..self.options.heads).for_each(|server| self.world.slow_directory(server, 0));
    }
}
