//! Faults of a run: when, which, and what an operator does about them.

use super::options::{Act, Deed, Options, Trouble, Wipe};
use super::{
    ALARM_BOOT, ALARM_DEAL, ALARM_DOOM, ALARM_HEAL, ALARM_LANDED, ALARM_MOVE, ALARM_STOP, ALARM_TROUBLE,
    NOTICED, OldCopy, Run, WRITE_MAX,
};
use crate::access::Access;
use crate::moves;
use crate::world::Crash;
use array::format::{
    BITMAP_AT, CONFIG_AT, CONFIG_BYTES, LABEL_AT, LegState, MEMBERSHIP_AT, MembershipRecord, RECORD_BYTES,
    label_copy_at, newest_label,
};
use base::{Address, Duration};
use head::mail::StewardMail;
use head::order::{Order, State, Status};

/// Effects that a head carries out at most before it falls: a few turns.
const DOOM_EFFECTS: u64 = 40;

/// A head that does not stop in this time is killed: longer than it waits for anything, as systemd's is.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// What a drive held back has landed so long after it went on.
pub(super) const LANDED_AFTER: Duration = Duration::from_millis(50);

/// The head says within this time that a label was overwritten: a look each 5 s, and its turns.
const WIPE_SAID: Duration = Duration::from_secs(8);

/// Lanes go round so often, at most.
const DEALS_MAX: u32 = 60;

impl Run {
    pub(super) fn next_trouble(&mut self) {
        if !self.options.troubles.is_empty() && self.troubles < self.options.troubles_max {
            let mean = self.options.pause.as_micros() as u64;
            let after = Duration::from_micros(self.rng.between(mean / 4, mean * 2));
            self.world.alarm(after, ALARM_TROUBLE);
        }
    }

    pub(super) fn trouble(&mut self) {
        self.troubles += 1;
        self.copy_a_drive();
        let trouble = *self.rng.pick(&self.options.troubles.clone());
        self.world.say(|| format!("trouble: {trouble:?}"));
        match trouble {
            Trouble::Kill | Trouble::PowerCut => {
                self.doom(if trouble == Trouble::Kill { Crash::Killed } else { Crash::PowerCut });
            }
            Trouble::Cut => self.world.cut_one_link(),
            Trouble::Stall => {
                let time = Duration::from_micros(self.rng.between(100, 3_000_000));
                self.stalls = true;
                self.world.stall_one_link(time);
            }
            Trouble::Silence => {
                self.stalls = true;
                self.world.silence_one_link();
            }
            Trouble::Rot => self.rot(),
            Trouble::Stop => self.stop(),
            Trouble::RotMetadata => self.rot_metadata(),
            ill => self.ail(ill),
        }
    }

    /// The head has fallen.
    pub(super) fn fell(&mut self, crash: Crash) {
        let cut = crash == Crash::PowerCut || self.world.now() < self.drained_until;
        self.volume.borrow_mut().head_fell(cut && self.options.volatile);
        self.down = true;
        self.access.iter_mut().for_each(Access::is_unknown);
        let pause = Duration::from_micros(self.rng.between(10, 20_000));
        self.world.alarm(pause, ALARM_BOOT);
        if let Some(disk) = self.copies_at_end.take() {
            self.copy_drive(disk);
        } else {
            self.exchange_at_end(crash);
        }
    }
    fn copy_drive(&mut self, disk: usize) {
        self.copy = Some(OldCopy { disk, contents: self.world.disks[disk].copy(), life: self.lives });
    }
    /// The head has ended. An older copy of a drive takes its place, if the next head can know that: it was made before this one
    /// began to serve, or this one was stopped in order; and what is copied over it comes from the others, which are well.
    fn exchange_at_end(&mut self, crash: Crash) {
        let stopped = core::mem::take(&mut self.stopped_in_order);
        let (lives, ready) = (self.lives, self.ready);
        let is_known = |copy: &mut OldCopy| stopped || ready && copy.life < lives;
        let Some(copy) = self.copy.take_if(is_known) else { return };
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
        self.world.disks[disk].put_copy(contents);
        self.ailed_at = self.world.now();
        self.ailed = true;
    }

    /// The head is asked to stop. It is ended when it says that it has, or when that takes too long.
    fn stop(&mut self) {
        if !self.down && self.ready && !self.stopping && self.kills < self.options.kills_max {
            self.kills += 1;
            self.stopping = true;
            self.world.manage(0, Address::Steward, StewardMail::Stop);
            self.world.alarm(STOP_PATIENCE, ALARM_STOP);
        }
    }
    /// It has.
    pub(super) fn stopped(&mut self) {
        let crash = if self.rng.chance(1, 2) { Crash::Killed } else { Crash::PowerCut };
        self.stopped_in_order = true;
        self.ends(crash);
    }
    pub(super) fn ends(&mut self, crash: Crash) {
        self.world.fall(0, crash);
        self.fell(crash);
    }
    /// Of some drive a copy is made, for later.
    fn copy_a_drive(&mut self) {
        let Options { troubles, ill_max, moves, .. } = &self.options;
        let rots = troubles.iter().any(|t| matches!(t, Trouble::Rot | Trouble::RotMetadata));
        let wanted = troubles.contains(&Trouble::Stop) && *ill_max == 1 && *moves == 0 && !rots;
        if wanted && !self.down && self.rng.chance(1, 4) {
            let disk = self.rng.below(self.world.disks.len() as u64) as usize;
            self.copy_drive(disk);
        }
    }
    /// Each drive has the same record, in which every leg is in sync; after a stop it is the one that closes the pool.
    fn is_whole(&self, stopped: bool) -> bool {
        let newest = |disk: &crate::disk::Disk| {
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

    fn ail(&mut self, trouble: Trouble) {
        let ill = self.world.disks.iter().filter(|d| d.faults.any()).count();
        let disk = self.rng.below(self.world.disks.len() as u64) as usize;
        let until = if self.options.pairs {
            // As often a millisecond as seconds.
            let most = 200 << self.rng.between(0, 15);
            self.rng.between(100, most)
        } else {
            self.rng.between(100, 8_000_000)
        };
        let until = Duration::from_micros(until);
        let may = match self.options.ill_max {
            1 => {
                let (last, until) = self.convalescent;
                ill == 0 && (disk == last || until < self.world.now()) && self.all_well()
            }
            most => ill < most,
        };
        if !may || self.world.disks[disk].faults.any() {
            return;
        }
        if self.options.seesaw {
            return self.ail_both(disk);
        }
        self.ail_for(trouble, disk, until);
        // At the same moment, so that shards learn of it in different orders.
        let other = disk ^ 1;
        if self.options.pairs && self.rng.chance(1, 2) && !self.world.disks[other].faults.any() {
            let longer = Duration::from_micros(self.rng.between(0, 2_000_000));
            self.ail_for(trouble, other, until + longer);
        }
    }
    /// Both legs of the mirror, at the same moment, each for a time and in a way of its own. Then, often, the head falls
    /// when it has just learnt of it: at once, or when what hangs is given up.
    fn ail_both(&mut self, disk: usize) {
        if self.world.disks.iter().any(|d| d.faults.any()) || self.down {
            return;
        }
        let each = self.rng.chance(3, 4);
        let shard = self.rng.below(u64::from(self.options.shards)) as u16;
        let mail = self.options.delivery.mail_us;
        let mut longest = 0;
        for (i, disk) in [disk, disk ^ 1].into_iter().enumerate() {
            let trouble = *self.rng.pick(&[Trouble::Hang, Trouble::Drop, Trouble::WriteErrors]);
            let micros = match trouble {
                Trouble::Hang => self.rng.between(3_400_000, 7_000_000),
                _ => self.rng.between(1000, 20 * mail),
            };
            longest = longest.max(if trouble == Trouble::Hang { 3_500_000 } else { 0 });
            self.ail_for(trouble, disk, Duration::from_micros(micros));
            if each {
                // Of each drive the queue of another shard.
                let shard = (shard + i as u16) % self.options.shards;
                let actor = self.world.actor_of(0, Address::Shard(shard));
                let faults = &mut self.world.disks[disk].faults;
                faults.only_for = Some(actor);
                faults.write_errors_ppm *= 3;
            }
        }
        if self.rng.chance(1, 2) {
            let after = longest + self.rng.between(0, 4 * mail + 2 * self.options.delivery.drive_us);
            self.world.alarm(Duration::from_micros(after), ALARM_DOOM);
        }
    }
    pub(super) fn doom(&mut self, crash: Crash) {
        if !self.down && self.kills < self.options.kills_max {
            self.kills += 1;
            self.world.doom(0, None, self.rng.below(DOOM_EFFECTS) as u32, crash);
        }
    }
    fn ail_for(&mut self, trouble: Trouble, disk: usize, until: Duration) {
        let slow = self.rng.between(1000, 300_000);
        let faults = &mut self.world.disks[disk].faults;
        match trouble {
            Trouble::Hang => {
                faults.hang = true;
                self.volume.borrow_mut().hangs |= self.last_legs_may_hang();
            }
            Trouble::Drop => faults.gone = true,
            Trouble::Slow => faults.slow_us = slow,
            Trouble::WriteErrors => faults.write_errors_ppm = 300_000,
            Trouble::ReadErrors => faults.read_errors_ppm = 300_000,
            Trouble::FlushErrors => faults.flush_errors_ppm = 1_000_000,
            Trouble::Unplug => self.pull(disk, false),
            Trouble::DrivePower => self.pull(disk, true),
            other => unreachable!("{other:?} makes no drive ill"),
        }
        self.ailed = true;
        self.ailed_at = self.world.now();
        let well = self.world.now() + until;
        self.convalescent = (disk, well + WRITE_MAX);
        if trouble == Trouble::DrivePower {
            self.drained_until = well + NOTICED;
        }
        self.world.say(|| format!("drive d{disk} is ill for {until:?}"));
        self.world.alarm(until, ALARM_HEAL + disk as u64);
    }

    fn pull(&mut self, disk: usize, power: bool) {
        self.pulled = true;
        self.world.unplug(disk, power);
    }

    /// A step of the script.
    pub(super) fn act(&mut self, step: usize) {
        let Act { disk, deed, .. } = self.options.script[step];
        self.world.say(|| format!("drive d{disk}: {deed:?}"));
        let faults = &mut self.world.disks[disk].faults;
        match deed {
            Deed::Hang => {
                faults.hang = true;
                self.volume.borrow_mut().hangs |= self.last_legs_may_hang();
            }
            Deed::Pull => {
                faults.hang = false;
                self.pull(disk, false);
            }
            Deed::Heal => {
                *faults = Default::default();
                self.world.alarm(LANDED_AFTER, ALARM_LANDED);
            }
            Deed::Kill | Deed::PowerCut => {
                let crash = if deed == Deed::Kill { Crash::Killed } else { Crash::PowerCut };
                return self.world.doom(0, None, 0, crash);
            }
            Deed::Freeze | Deed::Thaw => {
                self.world.servers[0].frozen_at = Some(self.world.now()).filter(|_| deed == Deed::Freeze);
                self.froze = true;
                self.loss_not_on_record = false;
                return;
            }
            Deed::Copy => {
                self.copy_drive(disk);
                return;
            }
            Deed::CopyAtEnd => {
                self.copies_at_end = Some(disk);
                return;
            }
            Deed::Exchange => {
                let out = self.world.is_out_on_record(disk);
                if let Some(copy) =
                    self.copy.take_if(|copy| out && copy.disk == disk && copy.life < self.lives)
                {
                    self.put_copy(copy);
                }
                return;
            }
            Deed::Stop => return self.stop(),
            Deed::Fail => {
                self.orders.push_back(Order::DriveFail { drive: format!("d{disk}"), force: false });
                return;
            }
            Deed::Wipe(what) => return self.wipe(disk, what),
        }
        self.ailed_at = self.world.now();
        self.ailed = true;
        self.loss_not_on_record |=
            deed != Deed::Heal && self.world.may_have_loss_not_on_record(self.ailed_at);
    }

    /// A bit of a block that a host wrote changes on one leg. A mirror cannot know which leg is right, so
    /// reads of that block may return either until it is written again.
    fn rot(&mut self) {
        let disk = self.rng.below(self.world.disks.len() as u64) as usize;
        let Some((at, len)) = self.data_space(disk) else { return };
        let sectors = self.world.disks[disk].sectors(at, len);
        if sectors.is_empty() {
            return;
        }
        let sector = *self.rng.pick(&sectors);
        let bytes = self.world.disks[disk].sector;
        let Some(block) = self.block_in(disk, sector) else { return };
        self.volume.borrow_mut().rots(block);
        self.repair.rots(block, disk);
        self.world.say(|| format!("block {block} rots on d{disk}"));
        let world = &mut self.world;
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
                    self.volume.borrow_mut().zeroes(block);
                }
            }
            self.world.disks[disk].wipe(at, len);
        }
        self.wiped = Some((disk, self.world.now(), false));
        self.ailed = true;
        self.ailed_at = self.world.now();
    }

    /// The head says within some seconds that something of a drive was overwritten.
    pub(super) fn hear_of_wipe(&mut self, snapshot: &Status) -> Result<(), String> {
        let now = self.world.now();
        let Some((disk, at, said)) = &mut self.wiped else { return Ok(()) };
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

    /// A bit of what the Steward keeps on a drive changes. Of the label's copies always the same one.
    fn rot_metadata(&mut self) {
        let (seed, drives) = (self.options.seed, self.world.disks.len());
        let disk = seed as usize % drives;
        let record = RECORD_BYTES as u64;
        let copy = label_copy_at(self.world.disks[disk].bytes);
        let label = (if (seed / drives as u64).is_multiple_of(2) { LABEL_AT } else { copy }, record);
        let config = (CONFIG_AT[self.rng.below(2) as usize], CONFIG_BYTES);
        let membership = (MEMBERSHIP_AT[self.rng.below(2) as usize], record);
        let Some((data_at, _)) = self.data_space(disk) else { return };
        let (at, len) = *self.rng.pick(&[label, config, membership, (BITMAP_AT, data_at - BITMAP_AT)]);
        let sectors = self.world.disks[disk].sectors(at, len);
        if sectors.is_empty() {
            return;
        }
        let sector = *self.rng.pick(&sectors);
        self.world.say(|| format!("the metadata in sector {sector} of d{disk} rots"));
        let bytes = self.world.disks[disk].sector;
        let world = &mut self.world;
        world.disks[disk].rot(sector * bytes, &mut world.rng);
    }
    /// The block of the volume whose stamp lies in a sector of a drive.
    pub(super) fn block_in(&self, disk: usize, sector: u64) -> Option<u64> {
        let disk = &self.world.disks[disk];
        let mut bytes = vec![0; disk.sector as usize];
        disk.read(sector * disk.sector, &mut bytes);
        crate::volume::block_of(&bytes)
    }
    /// Where the data of the drive's array lie on it, if its label can be read.
    pub(super) fn data_space(&self, disk: usize) -> Option<(u64, u64)> {
        let disk = &self.world.disks[disk];
        let copies = [LABEL_AT, label_copy_at(disk.bytes)].map(|at| {
            let mut label = vec![0; RECORD_BYTES];
            disk.read(at, &mut label);
            label
        });
        newest_label(&copies[0], &copies[1]).ok().map(|label| (label.data_at, label.data_bytes))
    }

    /// Whether every leg was in sync when last looked at; asks for a new look.
    fn all_well(&mut self) -> bool {
        let moving = self.moving;
        let well = self.snapshot.take().is_some_and(|s| {
            if self.options.moves > 0 {
                // While a drive takes another's place, the old one serves.
                !moving && moves::redundant(&s)
            } else {
                s.health == State::Optimal
            }
        });
        if self.orders.is_empty() {
            self.orders.push_back(Order::Status);
        }
        well
    }

    pub(super) fn heal(&mut self, disk: usize) {
        self.world.say(|| format!("drive d{disk} is well again"));
        self.world.disks[disk].faults = Default::default();
        self.ailed_at = self.world.now();
        self.world.alarm(LANDED_AFTER, ALARM_LANDED);
        self.orders.push_back(Order::DriveReturn { drive: format!("d{disk}") });
        self.snapshot = None;
        self.orders.push_back(Order::Status);
    }

    /// When an operator does something next.
    pub(super) fn next_move(&mut self) {
        if self.options.moves > 0 {
            let after = Duration::from_micros(self.rng.between(1_000, 600_000));
            self.world.alarm(after, ALARM_MOVE);
        }
    }
    /// When lanes are dealt anew.
    pub(super) fn next_deal(&mut self) {
        if let Some(pause) = self.options.deals {
            // Not again and again while a drive hangs.
            let pause =
                if self.deals_tried > self.deals + 5 { pause.max(Duration::from_secs(1)) } else { pause };
            let micros = self.rng.between(100, 2 * pause.as_micros() as u64);
            self.world.alarm(Duration::from_micros(micros), ALARM_DEAL);
        }
    }
    /// Other shards get the lanes of every array, whatever is ill.
    pub(super) fn deal(&mut self) {
        // A leg that lacks everything is copied from the beginning each time.
        if !self.down && self.deals_tried < DEALS_MAX && !self.orders.contains(&Order::LanesTurn) {
            self.deals_tried += 1;
            self.world.say(|| "lanes go round".into());
            self.orders.push_back(Order::LanesTurn);
        }
    }
    /// Drives are replaced, added, removed: while all of them are well, since nobody gives up one beside one that
    /// is ill.
    pub(super) fn move_drives(&mut self) {
        let ill = self.world.disks.iter().any(|d| d.faults.any()) || self.convalescent.1 > self.world.now();
        let busy = self.down || !self.orders.is_empty() || self.waiting.is_some();
        if ill || busy {
            return;
        }
        let Some(snapshot) = self.snapshot.take() else {
            self.orders.push_back(Order::Status);
            return;
        };
        let drives: Vec<String> = self.world.disks.iter().map(|d| d.spec.clone()).collect();
        if self.rng.chance(1, 2)
            && let Some(order) = moves::next_volume(&mut self.rng, &snapshot)
        {
            self.world.say(|| format!("the operator: {order:?}"));
            self.freed.order(self.world.now(), &order, &snapshot);
            self.orders.push_back(order);
        }
        if let Some(order) = moves::next(&mut self.rng, &snapshot, &drives, self.options.mirrors) {
            self.world.say(|| format!("the operator: {order:?}"));
            self.moving = true;
            self.moves += 1;
            self.orders.push_back(order);
        }
        self.orders.push_back(Order::Status);
    }

    /// Whether writes that were given up may still land on a last leg: what hung has had the time to let them.
    pub(super) fn look_for_hangs(&mut self) {
        let hangs = self.world.disks.iter().any(|d| d.faults.hang);
        self.volume.borrow_mut().hangs = hangs && self.last_legs_may_hang();
    }
    /// Not where one drive is ill at a time, and only beside one in sync.
    fn last_legs_may_hang(&self) -> bool {
        self.options.ill_max > 1 || !self.options.script.is_empty()
    }

    /// Does what `status` says, as an operator would: drives that are out are taken back.
    pub(super) fn nurse(&mut self, snapshot: &Status) {
        if self.options.nursed && self.orders.is_empty() {
            // What was failed stays so while there are faults.
            if matches!(self.stage, super::Stage::Calming { .. }) {
                self.orders.extend(crate::operator::nursing(snapshot));
            }
            return;
        }
        if !self.orders.is_empty() || !self.options.script.is_empty() && self.wiped.is_none() {
            return;
        }
        if self.options.moves > 0 {
            let drives: Vec<String> = self.world.disks.iter().map(|d| d.spec.clone()).collect();
            self.orders.extend(moves::mend(snapshot, &drives));
        }
        self.orders.extend(crate::operator::nursing(snapshot));
    }
}
