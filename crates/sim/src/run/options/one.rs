//! Kinds of worlds of one head.

use super::{Act, Fault, MIB, Options, Trouble, VOLUME_BYTES, Wipe};
use crate::host::Habits;
use crate::slow_peer::Habit;
use crate::world::{Crash, Delivery};
use base::view::Protocol;
use base::{Duration, Prng};

/// What may go wrong in usual worlds.
const ALL: [Trouble; 13] = [
    Trouble::Kill,
    Trouble::PowerCut,
    Trouble::Cut,
    Trouble::Stall,
    Trouble::Silence,
    Trouble::Hang,
    Trouble::Drop,
    Trouble::Unplug,
    Trouble::DrivePower,
    Trouble::Slow,
    Trouble::WriteErrors,
    Trouble::ReadErrors,
    Trouble::Rot,
];

/// In one of so many worlds a number that this source draws.
fn one_in(worlds: u64, source: u64, from: u64, to: u64) -> Option<u32> {
    let mut rng = Prng::new(source);
    rng.chance(1, worlds).then(|| rng.between(from, to) as u32)
}

/// A step of a script, so many milliseconds after hosts began.
fn at(millis: u64, fault: Fault) -> Act {
    Act { after: Duration::from_millis(millis), fault }
}

impl Options {
    /// The options that belong to `seed`: each seed is another world, one of twenty a world of older copies,
    /// one of volumes, and one of lanes that are dealt anew.
    pub fn swarm(seed: u64) -> Self {
        let one_of = |n: u64, source: u64| Prng::new(seed ^ source).chance(1, n);
        if one_of(20, 0x6465_616c_7301) {
            return Self::dealt(seed);
        }
        match (one_of(20, 0x6f6c_6465_7201), one_of(20, 0x0076_6f6c_756d_6501)) {
            (true, _) => Self::older(seed),
            (false, true) => Self::volumes(seed),
            (false, false) => Self::usual(seed),
        }
    }
    /// A world in which anything may go wrong, in any mixture.
    pub fn usual(seed: u64) -> Self {
        let mut rng = Prng::new(seed ^ 0x5157_4152_4d01);
        let mut troubles: Vec<Trouble> = ALL.into_iter().filter(|_| rng.chance(3, 10)).collect();
        // From a source of its own, so that worlds without it stay what they were.
        if Prng::new(seed ^ 0x666c_7573_6801).chance(3, 10) {
            troubles.push(Trouble::FlushErrors);
        }
        if Prng::new(seed ^ 0x726f_746d_6574_6101).chance(3, 20) {
            troubles.retain(|t| !t.ails_a_drive());
            troubles.push(Trouble::RotMetadata);
        }
        let ill_max = if rng.chance(3, 4) { 1 } else { 2 };
        if ill_max > 1 {
            troubles.retain(|t| !t.ails_a_drive() || t.is_patient());
        }
        if Prng::new(seed ^ 0x0073_746f_7001).chance(1, 5) {
            troubles.push(Trouble::Stop);
        }
        let protocols = [Protocol::Nvme, Protocol::Iscsi];
        let hosts = (0..2).map(|_| *rng.pick(&protocols)).collect();
        let legs = *rng.pick(&[2, 2, 2, 2, 2, 3, 3, 4]);
        // Copying a drive takes its time: troubles are spread over all of it.
        let rots = troubles.iter().any(|t| matches!(t, Trouble::Rot | Trouble::RotMetadata));
        let moves = ill_max == 1 && !rots && crate::moves::moves_drives(seed);
        let spread = if moves { 8 } else { 1 };
        let grown = Prng::new(seed ^ 0x6772_6f77_6e01).chance(1, 3);
        Self {
            seed,
            heads: 1,
            grown,
            moves: if moves { crate::moves::MOVES } else { 0 },
            shard_bytes: 27 * MIB,
            credits: one_in(2, seed ^ 0x706c_6163_6573, 2, 6).unwrap_or(head::CREDITS),
            flights: head::FLIGHTS,
            turn_pdus: one_in(3, seed ^ 0x0074_7572_6e73, 1, 4).unwrap_or(head::TURN_PDUS),
            shards: rng.between(1, 4) as u16,
            legs,
            mirrors: if legs == 2 { rng.between(1, 2) as usize } else { 1 },
            volatile: rng.chance(1, 2),
            block_bytes: if rng.chance(1, 6) { 512 } else { 4096 },
            deallocate_zeroes: rng.chance(3, 4),
            hosts,
            commands: 1000,
            troubles,
            ill_max,
            pause: Duration::from_millis(rng.between(3, 80) * spread),
            troubles_max: 150,
            kills_max: 12,
            delivery: Delivery {
                drive_us: rng.between(20, 2000),
                link_us: rng.between(10, 500),
                mail_us: *rng.pick(&[1, 3, 30, 300]),
                split_permille: rng.below(300),
                // From a source of its own, as above: in a third of the worlds, up to some milliseconds.
                state_us: *Prng::new(seed ^ 0x7374_6174_6502).pick(&[0, 0, 0, 0, 200, 20_000]),
                late_permille: 0,
            },
            habits: Habits::swarm(&mut rng),
            ..Self::default()
        }
    }
    /// A world whose hosts' volume lies where somebody had data before: on drives that were somebody's, or in
    /// the space of a volume that was removed.
    pub fn volumes(seed: u64) -> Self {
        let mut options = Self::usual(seed);
        let mut rng = Prng::new(seed ^ 0x0076_6f6c_756d_6573);
        // One of both: whoever had a volume on used drives has cleared what he wrote to.
        options.former = rng.chance(2, 3);
        options.used = !options.former;
        options.troubles.retain(|t| *t != Trouble::Rot);
        for trouble in [Trouble::Kill, Trouble::PowerCut] {
            if !options.troubles.contains(&trouble) && rng.chance(1, 2) {
                options.troubles.push(trouble);
            }
        }
        options.moves = 0;
        options.grown = false;
        // Else nearly all is cleared before anything happens.
        options.pace = rng.below(2) * rng.between(1, 8) * MIB;
        // Hosts come to all of it, and often for the first time.
        options.habits.blocks = (VOLUME_BYTES / u64::from(options.block_bytes)) >> rng.below(3);
        options
    }
    /// A world whose lanes go from shard to shard while hosts work and things break.
    pub fn dealt(seed: u64) -> Self {
        let mut options = if seed.is_multiple_of(4) { Self::volumes(seed) } else { Self::usual(seed) };
        let mut rng = Prng::new(seed ^ 0x6465_616c_7302);
        options.shards = rng.between(2, 4) as u16;
        options.deals = Some(Duration::from_millis(1 << rng.between(0, 8)));
        options
    }
    /// A world whose operator changes hosts and exports while hosts log in again and again. In a third of
    /// these worlds commands wait for the volume's cap, so that something is taken from a host while much of
    /// it has not begun.
    pub fn access(seed: u64) -> Self {
        let mut options = Self::calm(seed);
        let mut rng = Prng::new(seed ^ 0x6163_6365_7301);
        options.mirrors = 1;
        options.access = 15;
        let protocols = [Protocol::Nvme, Protocol::Iscsi, Protocol::Iscsi];
        options.hosts = (0..rng.between(1, 3)).map(|_| *rng.pick(&protocols)).collect();
        // They work until the operator has done all that.
        options.commands = u32::MAX;
        options.delivery.drive_us = rng.between(500, 2000);
        options.habits.depth = rng.between(1, 4) as u32;
        options.habits.reset_ppm = *rng.pick(&[1000, 10_000, 100_000]);
        if rng.chance(1, 3) {
            options.iops_max = Some(rng.between(10, 60) as u32);
            options.habits.depth = rng.between(4, 8) as u32;
            options.habits.reset_ppm = 0;
        }
        if rng.chance(1, 3) {
            options.troubles = vec![Trouble::Cut];
        }
        if rng.chance(1, 4) {
            options.troubles.push(Trouble::Kill);
        }
        options
    }
    /// The same world with so little memory that commands wait for it most of the time: the least that
    /// works, or up to half a MiB more. Commands are long, and hosts have many of them.
    pub fn tight(mut self) -> Self {
        let mut rng = Prng::new(self.seed ^ 0x7469_6768_7400);
        self.tight = true;
        self.shard_bytes = self.shard_bytes_min() + rng.below(128) * 4096;
        self.habits.blocks_max = rng.between(8, 32);
        self.habits.blocks = self.habits.blocks.max(64);
        self.habits.depth = rng.between(8, 64) as u32;
        self
    }
    /// A world of the least memory with many hosts, whose commands are as long as any or of a block or two,
    /// so that some come as a whole unasked, some in part, and some on request alone. In half of these worlds
    /// a leg hangs for longer than any host is patient, and keeps what it was given; in half of them a host
    /// has one command under way at a time, a short read, and asks again as soon as it is answered.
    pub fn scarce(seed: u64) -> Self {
        let mut options = Self::calm(seed);
        let mut rng = Prng::new(seed ^ 0x7363_6172_6365);
        options.scarce = true;
        options.flights = one_in(2, seed ^ 0x666c_6967_6874, 4, 40).unwrap_or(head::FLIGHTS);
        options.mirrors = rng.between(1, 2) as usize;
        options.shard_bytes = options.shard_bytes_min() + rng.below(2) * rng.below(128) * 4096;
        options.hosts =
            (0..rng.between(2, 6)).map(|_| *rng.pick(&[Protocol::Nvme, Protocol::Iscsi])).collect();
        options.commands = 300;
        let habits = &mut options.habits;
        habits.transfer_max = 1 << 20;
        habits.blocks = VOLUME_BYTES / u64::from(options.block_bytes);
        habits.blocks_max = (64 << 10 << rng.between(0, 4)) / u64::from(options.block_bytes);
        habits.short_permille = rng.between(100, 900);
        habits.write_permille = *rng.pick(&[300, 600, 900]);
        habits.compare_permille = rng.below(100);
        habits.depth = rng.between(8, 32) as u32;
        habits.reset_ppm = 0;
        if rng.chance(1, 2) {
            let disk = rng.below((options.legs * options.mirrors) as u64) as usize;
            let begins = rng.between(5, 300);
            let ends = begins + rng.between(40_000, 90_000);
            let mut disks = vec![disk];
            if rng.chance(1, 2) {
                options.ill_max = 2;
                disks.push(disk ^ 1);
            }
            for disk in disks {
                options.script.extend([at(begins, Fault::hangs(disk)), at(ends, Fault::heals(disk))]);
            }
        }
        options.looker = rng.chance(1, 2);
        options
    }
    /// A world of one mirror of which both legs fall ill, one beside the other: the last leg in sync refuses what it is
    /// asked, shards lose different legs at the same moment, a leg fails while it is copied from.
    pub fn pairs(seed: u64) -> Self {
        let mut options = Self::usual(seed);
        let mut rng = Prng::new(seed ^ 0x7061_6972_7301);
        options.pairs = true;
        options.moves = 0;
        options.ill_max = 2;
        options.legs = 2;
        options.mirrors = 1;
        options.shards = rng.between(1, 4) as u16;
        let ills = [Trouble::Hang, Trouble::Drop, Trouble::WriteErrors, Trouble::Unplug];
        options.troubles = ills.into_iter().filter(|_| rng.chance(1, 2)).collect();
        if options.troubles.is_empty() {
            options.troubles.push(*rng.pick(&ills));
        }
        if rng.chance(1, 2) {
            options.troubles.push(Trouble::Kill);
        }
        // From one trouble upon the other to one at a time, and from few blocks, each often, to all.
        options.pause = Duration::from_micros(1000 << rng.between(0, 11));
        // Or to each region now and then, so that most writes find its bit not set.
        let most = VOLUME_BYTES / u64::from(options.block_bytes);
        options.habits.blocks = if rng.chance(1, 3) { most } else { 4 << rng.between(0, 8) };
        options.habits.blocks_max = options.habits.blocks_max.min(options.habits.blocks / 2).max(1);
        options
    }
    /// A world of one mirror of which several shards lose different legs at the same moment: the Steward keeps one that
    /// some shard had given up, and nobody else has what was written to the other meanwhile.
    pub fn seesaw(seed: u64) -> Self {
        let mut options = Self::pairs(seed);
        let mut rng = Prng::new(seed ^ 0x7365_6573_6177);
        options.seesaw = true;
        options.shards = rng.between(2, 4) as u16;
        // Which ills it are each leg has from a source of its own.
        options.troubles = vec![Trouble::WriteErrors];
        // As on a machine that has too much to do.
        options.delivery.mail_us = *rng.pick(&[3000, 20_000, 100_000]);
        options.habits.reset_ppm = 0;
        if rng.chance(3, 4) {
            // From the first commands on: most regions are written for the first time, whose bits are not durable yet.
            options.delivery.drive_us = rng.between(5000, 60_000);
            options.pause = Duration::from_millis(rng.between(1, 100));
            options.habits.depth = rng.between(1, 4) as u32;
            options.habits.blocks = VOLUME_BYTES / u64::from(options.block_bytes);
            options.habits.write_permille = 800;
            options.commands = 300;
        } else {
            // Few blocks: what is given up and what comes behind it meet.
            options.delivery.drive_us = rng.between(200, 5000);
            options.pause = Duration::from_millis(rng.between(5, 300));
            options.habits.depth = rng.between(4, 32) as u32;
            options.habits.blocks = 4 << rng.between(0, 5);
        }
        options.habits.blocks_max = options.habits.blocks_max.min(options.habits.blocks / 2).max(1);
        options
    }
    /// A world whose state directory becomes read-only about when a leg is lost. Then the head falls, and that leg is
    /// found first, or alone.
    pub fn frozen(seed: u64) -> Self {
        let mut options = Self::calm(seed);
        let mut rng = Prng::new(seed ^ 0x6672_6f7a_656e);
        options.mirrors = if rng.chance(3, 4) { 1 } else { 2 };
        options.ill_max = 2;
        options.commands = 1500;
        // Slowly, so that hosts are at work throughout, and on few blocks: what was overwritten is missed soon.
        options.delivery.drive_us = rng.between(10_000, 40_000);
        options.habits.depth = rng.between(1, 4) as u32;
        options.habits.blocks = 8 << rng.between(0, 3);
        options.habits.blocks_max = options.habits.blocks_max.min(4);
        options.habits.reset_ppm = 0;
        options.habits.abort_permille = 0;
        let script = &mut options.script;
        let freeze = rng.between(500, 5000);
        let lost = if rng.chance(1, 4) { freeze - rng.below(500) } else { freeze + rng.below(3000) };
        let leg = rng.below(2) as usize;
        let hangs = rng.chance(1, 4);
        let noticed = lost.max(freeze) + if hangs { 4000 } else { 0 };
        let end = noticed + if rng.chance(1, 3) { rng.below(100) } else { rng.between(100, 8000) };
        let back = end + rng.between(5000, 30_000);
        script.push(at(freeze, Fault::Freeze { server: 0 }));
        script.push(at(lost, if hangs { Fault::hangs(leg) } else { Fault::pulled(leg) }));
        // Sometimes the head finds both when it comes again, and sometimes it does not fall.
        if rng.chance(7, 8) {
            let crash = if rng.chance(1, 2) { Crash::Killed } else { Crash::PowerCut };
            script.push(at(end, Fault::fall(crash)));
        }
        if rng.chance(7, 8) {
            script.push(at(end, Fault::pulled(leg ^ 1)));
            script.push(at(back, Fault::heals(leg ^ 1)));
        }
        script.push(at(end, Fault::heals(leg)));
        script.push(at(if rng.chance(3, 4) { end } else { back + rng.below(3000) }, Fault::Room));
        options
    }
    /// A world whose drives have volatile caches, and which loses its power again and again: what was answered, or put
    /// right, before one cut and is only in a cache is missed behind the next.
    pub fn power(seed: u64) -> Self {
        let mut options = Self::usual(seed);
        let mut rng = Prng::new(seed ^ 0x706f_7765_7200);
        options.volatile = true;
        options.moves = 0;
        options.ill_max = 1;
        options.kills_max = 40;
        let others = [Trouble::Drop, Trouble::DrivePower, Trouble::Unplug, Trouble::WriteErrors];
        options.troubles = others.into_iter().filter(|_| rng.chance(1, 3)).collect();
        options.troubles.push(Trouble::PowerCut);
        // From one cut upon the other to such that legs are back in sync between them.
        options.pause = Duration::from_millis(5 << rng.between(0, 7));
        // Few blocks, each often written and often read.
        options.habits.blocks = 8 << rng.between(0, 5);
        options.habits.blocks_max = options.habits.blocks_max.min(options.habits.blocks / 2).max(1);
        options.habits.write_permille = *rng.pick(&[200, 400, 600]);
        // Or as soon as a leg is in sync, before anything else flushes its cache.
        options.cuts_in_sync = rng.chance(1, 2);
        if options.cuts_in_sync {
            options.troubles = vec![Trouble::Drop, Trouble::Unplug];
            options.pause = Duration::from_millis(20 << rng.between(0, 5));
            // What hosts must not lose is durable where it was written; nothing flushes the cache of the leg
            // that lacked it.
            options.habits.fua_permille = 900;
            options.habits.flush_permille = 0;
        }
        options
    }
    /// A world in which a drive is exchanged for an older copy of itself, which lacks what hosts wrote since:
    /// after the head was stopped in order, once or twice; after a head fell, for a copy from before it
    /// began; or while the leg is out.
    pub fn older(seed: u64) -> Self {
        let mut options = Self::calm(seed);
        let mut rng = Prng::new(seed ^ 0x6f6c_6465_7200);
        options.legs = *rng.pick(&[2, 2, 2, 3]);
        options.mirrors = if options.legs == 2 { rng.between(1, 2) as usize } else { 1 };
        options.ill_max = 1;
        options.commands = 1500;
        options.habits.reset_ppm = 0;
        options.habits.abort_permille = 0;
        let blocks = VOLUME_BYTES / u64::from(options.block_bytes);
        // When the copy is made, and how long before the stop, milliseconds.
        let way = rng.below(3);
        let (made, before, again) = if way == 2 || rng.chance(1, 2) {
            // Slowly, and few writes, to all regions: most have no bit set when the copy is made, so that nobody compares
            // them afterwards.
            options.delivery.drive_us = rng.between(50_000, 100_000);
            options.habits.depth = 1;
            options.habits.blocks = blocks;
            // Of a leg that is lost, most bits were cleared since the copy was made.
            options.habits.write_permille = if way == 2 { rng.between(5, 20) } else { rng.between(20, 100) };
            (6000, 6000, 40_000)
        } else {
            // Quickly, to few blocks: the same are read and written all the time.
            options.delivery.drive_us = rng.between(2000, 10_000);
            options.habits.depth = rng.between(1, 8) as u32;
            options.habits.blocks = 8 << rng.between(0, 5);
            (100, 500, 2000)
        };
        options.habits.blocks_max = options.habits.blocks_max.min(4);
        let drives = (options.legs * options.mirrors) as u64;
        let mut since = 0;
        for _ in 0..if way == 0 { rng.between(1, 2) } else { 1 } {
            let copied = since + made + rng.below(before);
            let stopped = copied + 1 + rng.below(before);
            let disk = rng.below(drives) as usize;
            let stop = Fault::Stop { server: 0 };
            let fall = *rng.pick(&[Fault::fall(Crash::Killed), Fault::fall(Crash::PowerCut)]);
            let copy = at(copied, *rng.pick(&[Fault::Copy { disk }, Fault::CopyAtEnd { disk }]));
            // When the next head has come up, and hosts have written.
            let later = stopped + 500 + again / 2 + rng.below(before);
            options.script.extend(match way {
                0 => vec![at(copied, Fault::Copy { disk }), at(stopped, stop)],
                1 => vec![copy, at(stopped, *rng.pick(&[fall, stop])), at(later, fall)],
                _ => vec![
                    copy,
                    at(stopped, fall),
                    at(later, Fault::pulled(disk)),
                    at(later + 4000, Fault::Exchange { disk }),
                    at(later + 4100, Fault::heals(disk)),
                ],
            });
            since = stopped + again;
        }
        options
    }
    /// A world in which an order fails a drive, and the head falls: the next one leaves that drive alone.
    pub fn failed(seed: u64) -> Self {
        let mut options = Self::slow_mirrors(seed);
        let mut rng = Prng::new(seed ^ 0x6661_696c_6564);
        let leg = rng.below(options.legs as u64) as usize;
        let begins = rng.between(200, 4000);
        let ends = [Fault::fall(Crash::Killed), Fault::fall(Crash::PowerCut), Fault::Stop { server: 0 }];
        let falls = *rng.pick(&ends);
        options.script.push(at(begins, Fault::Fail { disk: leg }));
        options.script.push(at(begins + rng.between(100, 3000), falls));
        options
    }
    /// One or two mirrors on slow drives, where an operator does what `status` says.
    fn slow_mirrors(seed: u64) -> Self {
        let mut options = Self::calm(seed);
        let mut rng = Prng::new(seed ^ 0x736c_6f77_6d69);
        options.legs = *rng.pick(&[2, 2, 3]);
        options.mirrors = if options.legs == 2 { rng.between(1, 2) as usize } else { 1 };
        options.ill_max = 1;
        options.nursed = true;
        options.commands = 1000;
        options.delivery.drive_us = rng.between(10_000, 50_000);
        options.habits.depth = rng.between(1, 4) as u32;
        options.habits.blocks = 8 << rng.between(0, 6);
        options.habits.blocks_max = options.habits.blocks_max.min(4);
        options.habits.reset_ppm = 0;
        options.habits.abort_permille = 0;
        options
    }
    /// A world in which something else overwrites the label of a drive in use, or more. Nothing else goes wrong.
    pub fn wiped(seed: u64) -> Self {
        let mut options = Self::calm(seed);
        let mut rng = Prng::new(seed ^ 0x0077_6970_6564);
        options.legs = *rng.pick(&[2, 2, 2, 3]);
        options.mirrors = if options.legs == 2 { rng.between(1, 2) as usize } else { 1 };
        options.ill_max = 1;
        options.habits.reset_ppm = 0;
        options.habits.abort_permille = 0;
        let drives = (options.legs * options.mirrors) as u64;
        let wipe = *rng.pick(&[Wipe::First, Wipe::Second, Wipe::Both, Wipe::Front, Wipe::Long, Wipe::Long]);
        let mut after = rng.between(1, 1500);
        if rng.chance(1, 2) {
            // Slowly, to all regions: most have no bit set when it happens.
            options.delivery.drive_us = rng.between(20_000, 60_000);
            options.habits.depth = rng.between(1, 4) as u32;
            options.habits.blocks = VOLUME_BYTES / u64::from(options.block_bytes);
            after = rng.between(4000, 10_000);
        }
        let disk = rng.below(drives) as usize;
        options.script.push(at(after, Fault::Wipe { disk, what: wipe }));
        options
    }
    /// A world with hosts that ask for much and then give or take nothing, beside one that works.
    pub fn beside_slow_peers(seed: u64) -> Self {
        let mut rng = Prng::new(seed ^ 0x7374_696e_6779);
        let protocols = [Protocol::Nvme, Protocol::Iscsi];
        // Where there are many hosts, none uses up the slots of all.
        let (most, habits): (u64, &[Habit]) = if rng.chance(1, 4) {
            (2, &[Habit::Presumes])
        } else {
            (6, &[Habit::Withholds, Habit::Dribbles, Habit::Deaf, Habit::Presumes])
        };
        let slow_peers: Vec<_> =
            (0..rng.between(1, most)).map(|_| (*rng.pick(&protocols), *rng.pick(habits))).collect();
        Self::beside(seed, *rng.pick(&protocols), &slow_peers)
    }
    /// The same, with these slow peers and one of this protocol that works.
    pub fn beside(seed: u64, good: Protocol, slow_peers: &[(Protocol, Habit)]) -> Self {
        let mut options = Self::calm(seed);
        options.hosts = vec![good];
        options.slow_peers = slow_peers.to_vec();
        options.shards = 1;
        options.mirrors = 1;
        // Those that presume are to run out of slots, not of memory.
        let presumes = slow_peers.iter().any(|(_, habit)| *habit == Habit::Presumes);
        options.shard_bytes = if presumes { 32 * MIB } else { 11 * MIB };
        options.block_bytes = 4096;
        options.habits.depth = 16;
        options.habits.blocks_max = 32;
        options.habits.reset_ppm = 0;
        options.habits.blocks = 400;
        options
    }
    /// A world of this size with nothing wrong in it: what speed is measured by.
    pub fn calm(seed: u64) -> Self {
        let mut options = Self::usual(seed);
        options.legs = 2;
        options.mirrors = 2;
        options.troubles = vec![];
        options.moves = 0;
        options
    }
}
