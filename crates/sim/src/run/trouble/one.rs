//! What goes wrong with a head alone.

use crate::disk::Faults;
use crate::run::check::WRITE_MAX;
use crate::run::{Alarm, Fault, NOTICED, Options, Run, Trouble};
use crate::world::Crash;
use array::format::{
    BITMAP_AT, CONFIG_AT, CONFIG_BYTES, LABEL_AT, MEMBERSHIP_AT, RECORD_BYTES, label_copy_at,
};
use base::{Address, Duration};

/// Effects that a head carries out at most before it falls: a few turns.
const DOOM_EFFECTS: u64 = 40;

impl Run {
    pub(super) fn pick_for_one(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Kill => self.doom(Crash::Killed),
            Trouble::PowerCut => self.doom(Crash::PowerCut),
            Trouble::Cut => self.happens(Fault::BreakLink),
            Trouble::Stall => {
                let time = Duration::from_micros(self.rng.between(100, 3_000_000));
                self.happens(Fault::StallLink { time });
            }
            Trouble::Silence => self.happens(Fault::SilenceLink),
            Trouble::Rot => self.pick_data_to_rot(),
            Trouble::RotMetadata => self.pick_metadata_to_rot(),
            Trouble::Stop => self.happens(Fault::Stop { server: 0 }),
            ill => self.pick_drive(ill),
        }
    }
    /// The head falls soon, unless it has fallen often enough.
    pub(in crate::run) fn doom(&mut self, crash: Crash) {
        if self.heads.each[0].up && self.harm.kills < self.options.kills_max {
            self.harm.kills += 1;
            self.dooms(0, crash);
        }
    }
    /// A head falls within a few turns.
    pub(super) fn dooms(&mut self, server: usize, crash: Crash) {
        let effects = self.rng.below(DOOM_EFFECTS) as u32;
        self.happens(Fault::Doom { server, effects, crash });
    }
    /// Of some drive a copy is made, for later. Of two heads the other one goes on with what is exchanged.
    pub(super) fn copy_a_drive(&mut self) {
        let Options { troubles, ill_max, moves, .. } = &self.options;
        let rots = troubles.iter().any(|t| matches!(t, Trouble::Rot | Trouble::RotMetadata));
        let wanted = troubles.contains(&Trouble::Stop) && *ill_max == 1 && *moves == 0 && !rots;
        if wanted && !self.two() && self.heads.each[0].up && self.rng.chance(1, 4) {
            let disk = self.rng.below(self.world.disks.len() as u64) as usize;
            self.happens(Fault::Copy { disk });
        }
    }

    /// A drive falls ill, if it may.
    pub(super) fn pick_drive(&mut self, trouble: Trouble) {
        let disk = self.rng.below(self.world.disks.len() as u64) as usize;
        let until = if self.options.pairs {
            // As often a millisecond as seconds.
            let most = 200 << self.rng.between(0, 15);
            self.rng.between(100, most)
        } else if self.two() {
            // Now and then for so long that any head must have given it up.
            let most = *self.rng.pick(&[1_000_000, 8_000_000, 8_000_000, 24_000_000]);
            self.rng.between(100, most)
        } else {
            self.rng.between(100, 8_000_000)
        };
        let until = Duration::from_micros(until);
        if !self.may_ail(disk) {
            return;
        }
        if self.options.seesaw {
            return self.pick_for_both(disk);
        }
        self.ail_for(trouble, disk, None, until);
        // At the same moment, so that shards learn of it in different orders.
        let other = disk ^ 1;
        if self.options.pairs && self.rng.chance(1, 2) && !self.world.disks[other].faults.any() {
            let longer = Duration::from_micros(self.rng.between(0, 2_000_000));
            self.ail_for(trouble, other, None, until + longer);
        }
    }
    /// Both legs of the mirror, at the same moment, each for a time and in a way of its own. Then, often, the head falls
    /// when it has just learnt of it: at once, or when what hangs is given up.
    fn pick_for_both(&mut self, disk: usize) {
        if self.world.disks.iter().any(|d| d.faults.any()) || !self.heads.each[0].up {
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
            // Of each drive the queue of another shard.
            let shard = (shard + i as u16) % self.options.shards;
            let only_for = each.then(|| self.world.actor_of(0, Address::Shard(shard)));
            self.ail_for(trouble, disk, only_for, Duration::from_micros(micros));
        }
        if self.rng.chance(1, 2) {
            let after = longest + self.rng.between(0, 4 * mail + 2 * self.options.delivery.drive_us);
            self.later(Duration::from_micros(after), Alarm::Doom);
        }
    }
    /// A drive is ill for a time, and one machine alone meets that, or all do.
    fn ail_for(&mut self, trouble: Trouble, disk: usize, only_for: Option<usize>, until: Duration) {
        let slow_us = self.rng.between(1000, 300_000);
        let ill = Faults { only_for, ..Faults::default() };
        // One queue alone writes little.
        let write_errors_ppm = if only_for.is_some() { 900_000 } else { 300_000 };
        let faults = match trouble {
            Trouble::Hang => Faults { hang: true, ..ill },
            Trouble::Drop => Faults { gone: true, ..ill },
            Trouble::Slow => Faults { slow_us, ..ill },
            Trouble::WriteErrors => Faults { write_errors_ppm, ..ill },
            Trouble::ReadErrors => Faults { read_errors_ppm: 300_000, ..ill },
            Trouble::FlushErrors => Faults { flush_errors_ppm: 1_000_000, ..ill },
            Trouble::Full => Faults { full: true, ..ill },
            Trouble::Unplug | Trouble::DrivePower => ill,
            other => unreachable!("{other:?} makes no drive ill"),
        };
        let power = trouble == Trouble::DrivePower;
        let pulled = power || trouble == Trouble::Unplug;
        self.happens(if pulled { Fault::Pull { disk, power } } else { Fault::Drive { disk, faults } });
        let well = self.world.now() + until;
        // That an idle one was pulled is found out by a look alone, and until then the other leg is the last.
        let noticed = if self.two() && pulled { NOTICED } else { Duration::ZERO };
        self.harm.convalescent = (Some(disk), well + WRITE_MAX + noticed);
        if power {
            self.harm.drained_until = well + NOTICED;
        }
        self.later(until, Alarm::Fault(Fault::heals(disk)));
    }

    /// A block of the hosts' data rots.
    pub(super) fn pick_data_to_rot(&mut self) {
        let disk = self.rng.below(self.world.disks.len() as u64) as usize;
        let Some((at, len)) = self.data_space(disk) else { return };
        if let Some(sector) = self.pick_sector(disk, at, len).filter(|s| self.block_in(disk, *s).is_some()) {
            self.happens(Fault::Rot { disk, sector });
        }
    }
    /// Of what the Steward keeps on a drive. Of the label's copies always the same one.
    fn pick_metadata_to_rot(&mut self) {
        let (seed, drives) = (self.options.seed, self.world.disks.len());
        let disk = seed as usize % drives;
        let record = RECORD_BYTES as u64;
        let copy = label_copy_at(self.world.disks[disk].bytes);
        let label = (if (seed / drives as u64).is_multiple_of(2) { LABEL_AT } else { copy }, record);
        let config = (CONFIG_AT[self.rng.below(2) as usize], CONFIG_BYTES);
        let membership = (MEMBERSHIP_AT[self.rng.below(2) as usize], record);
        let Some((data_at, _)) = self.data_space(disk) else { return };
        let (at, len) = *self.rng.pick(&[label, config, membership, (BITMAP_AT, data_at - BITMAP_AT)]);
        if let Some(sector) = self.pick_sector(disk, at, len) {
            self.happens(Fault::Rot { disk, sector });
        }
    }
    /// One that holds something.
    fn pick_sector(&mut self, disk: usize, at: u64, len: u64) -> Option<u64> {
        let sectors = self.world.disks[disk].sectors(at, len);
        if sectors.is_empty() { None } else { Some(*self.rng.pick(&sectors)) }
    }
}
