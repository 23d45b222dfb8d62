//! Kinds of worlds of two heads over the same drives.

use super::{Cut, Doing, End, Loss, MIB, Options, Outage, Trouble, VOLUME_BYTES};
use crate::host::Habits;
use crate::world::{Clock, Delivery};
use base::view::Protocol;
use base::{Duration, Prng};

/// How long one path is lost that the options name.
const LOST: Duration = Duration::from_secs(6);

/// Troubles that the first worlds had.
const USUAL: [Trouble; 10] = [
    Trouble::Kill,
    Trouble::PowerCut,
    Trouble::Blackout,
    Trouble::KillBoth,
    Trouble::Pause,
    Trouble::CutLink,
    Trouble::CutNetwork,
    Trouble::SlowNetwork,
    Trouble::ResetNetwork,
    Trouble::LosePath,
];
/// Those that came later.
const LATER: [Trouble; 2] = [Trouble::PauseSteward, Trouble::HoldFencesUp];

impl Outage {
    fn drawn(rng: &mut Prng, mirrors: usize) -> Self {
        // A follower takes part without a drive once it has lacked that for 10 s.
        Self {
            of_leader: rng.chance(1, 3),
            disk: rng.below(2 * mirrors as u64) as usize,
            begins: Duration::from_millis(rng.between(200, 3000)),
            lost: Duration::from_secs(rng.between(20, 35)),
            dark: Duration::from_millis(rng.between(12_500, 18_000)),
            back: rng.chance(1, 2),
        }
    }
}

impl Loss {
    /// One path is lost for `LOST`.
    pub fn of_one(server: usize, disk: usize) -> Self {
        Self { server, disks: vec![disk], apart: Duration::ZERO, back: LOST }
    }
    /// No leg of a mirror is reached for long: from one moment on, or first one and then the other. A
    /// follower takes part without a drive once it has lacked that for 10 s, or two for 16 s: so it does
    /// before it loses the second one, and before both are back.
    fn of_mirror(rng: &mut Prng, mirrors: usize) -> Self {
        let mirror = rng.below(mirrors as u64) as usize;
        let mut disks = vec![2 * mirror, 2 * mirror + 1];
        if rng.chance(1, 2) {
            disks.reverse();
        }
        let apart = Duration::from_millis(if rng.chance(1, 2) { rng.between(16_000, 20_000) } else { 0 });
        let back = apart.max(Duration::from_secs(20)) + Duration::from_millis(rng.between(10_000, 14_000));
        Self { server: rng.below(2) as usize, disks, apart, back }
    }
}

impl Options {
    /// The options that belong to `seed`: one in four of the worlds in which both heads serve drives with
    /// caches has a path that is lost while the power goes.
    pub fn two_heads(seed: u64) -> Self {
        let mut options = Self::powered(seed);
        let mut outage = Prng::new(seed ^ 0x6f75_7461_6701);
        if options.both && options.volatile && outage.chance(1, 4) {
            options = options.with_outage(&mut outage);
        }
        options
    }
    /// The same world without that: half of the worlds in which both heads serve have hosts that use paths in turns.
    pub fn powered(seed: u64) -> Self {
        let mut options = Self::one_path(seed);
        let mut turns = Prng::new(seed ^ 0x7475_726e_7301);
        if options.both && !options.failover && turns.chance(3, 4) {
            options.in_turns = true;
            options.habits.reset_ppm = turns.between(100, 2000);
        }
        options
    }
    /// The same world with hosts that send all commands by one path, as all did once.
    pub fn one_path(seed: u64) -> Self {
        let mut rng = Prng::new(seed ^ 0x0074_776f_6f70_7473);
        let mut troubles: Vec<Trouble> = USUAL.into_iter().filter(|_| rng.chance(4, 10)).collect();
        let mut clock = || Clock { rate: rng.between(800, 1200), began: rng.below(1 << 40) };
        let clocks = [clock(), clock()];
        let hosts = (0..2).map(|_| *rng.pick(&[Protocol::Nvme, Protocol::Iscsi])).collect();
        let mut habits = Habits::swarm(&mut rng);
        habits.depth = rng.between(1, 4) as u32;
        habits.reset_ppm = rng.below(200);
        // From sources of their own, so that worlds without them stay what they were.
        let mut later = Prng::new(seed ^ 0x6c61_7465_7201);
        troubles.extend(LATER.into_iter().filter(|_| later.chance(1, 4)));
        let options = Self {
            seed,
            heads: 2,
            shards: rng.between(1, 3) as u16,
            legs: 2,
            mirrors: rng.between(1, 2) as usize,
            shard_bytes: 27 * MIB,
            credits: head::CREDITS,
            flights: head::FLIGHTS,
            turn_pdus: head::TURN_PDUS,
            block_bytes: 4096,
            deallocate_zeroes: true,
            volatile: rng.chance(1, 2),
            hosts,
            commands: u32::MAX,
            networks: rng.between(1, 2) as usize,
            clocks,
            addresses_move: rng.chance(1, 2),
            both: Prng::new(seed ^ 0x626f_7468_7301).chance(1, 2),
            troubles,
            troubles_max: u32::MAX,
            ill_max: 1,
            pause: Duration::from_millis(rng.between(200, 3000)),
            work: Duration::from_secs(rng.between(5, 15)),
            delivery: Delivery {
                drive_us: rng.between(500, 4000),
                link_us: rng.between(50, 500),
                mail_us: *rng.pick(&[1, 3, 30]),
                split_permille: rng.below(100),
                state_us: *rng.pick(&[0, 200, 5000]),
                late_permille: *rng.pick(&[0, 0, 2, 20]),
            },
            habits,
            ..Self::default()
        };
        let mut former = Prng::new(seed ^ 0x6675_6c6c_7501);
        let mut options = if former.chance(1, 3) { options.on_used_drives(&mut former) } else { options };
        // Worlds that failed once (tests) are none of these, and stay what they were.
        let mut paths = Prng::new(seed ^ 0x7061_7468_e7c2);
        if options.both && paths.chance(1, 3) {
            options.failover = true;
            options.habits.lose_ppm = paths.between(100, 2000);
        }
        options
    }
    /// The same world on used drives. Hosts go to the other head now and then, while one goes on with a head that is out:
    /// what that one takes for never written may be written elsewhere by now.
    fn on_used_drives(mut self, rng: &mut Prng) -> Self {
        self.used = true;
        self.habits.blocks = (VOLUME_BYTES / u64::from(self.block_bytes)) >> rng.below(3);
        self.habits.write_permille = rng.between(30, 200);
        self.habits.reset_ppm = rng.below(1500);
        self.addresses_move &= rng.chance(1, 2);
        self.troubles.retain(|t| *t != Trouble::PauseSteward && rng.chance(1, 2));
        self.troubles.push(Trouble::PauseSteward);
        self
    }
    /// Hosts work on until the path is back.
    fn with_outage(mut self, rng: &mut Prng) -> Self {
        let outage = Outage::drawn(rng, self.mirrors);
        self.work = self.work.max(outage.begins + outage.lost + Duration::from_secs(2));
        self.habits.flush_permille = self.habits.flush_permille.max(20);
        // Else hosts would do much in that time.
        self.delivery.drive_us = self.delivery.drive_us.max(3000);
        self.outage = Some(outage);
        self
    }
    /// A world in which nothing happens but that a head loses its path to a drive with a volatile cache, and
    /// the power goes meanwhile.
    pub fn outages(seed: u64) -> Self {
        let mut options = Self::powered(seed);
        options.troubles.clear();
        options.both = true;
        options.volatile = true;
        options.used = false;
        options.habits.reset_ppm = 0;
        let mut rng = Prng::new(seed ^ 0x6f75_7461_6702);
        options.work = Duration::ZERO;
        options.with_outage(&mut rng)
    }
    /// A world of quick drives in which this happens to the head that leads, once, and else nothing: how long
    /// do hosts wait?
    pub fn of_one(seed: u64, trouble: Trouble) -> Self {
        let mut options = Self::powered(seed);
        options.troubles = vec![trouble];
        options.troubles_max = 1;
        options.addresses_move = true;
        options.used = false;
        options.habits.reset_ppm = 0;
        options.failover = false;
        options.habits.lose_ppm = 0;
        options.pause = Duration::from_secs(1);
        let quick = Delivery { drive_us: 500, late_permille: 0, split_permille: 0, ..options.delivery };
        options.delivery = quick;
        options
    }
    /// One thing goes wrong from which hosts have to wait, and each trouble says how long at most.
    pub fn waits(seed: u64) -> Self {
        let mut rng = Prng::new(seed ^ 0x7761_6974_7301);
        let held = Duration::from_millis(rng.between(5000, 8000));
        let (trouble, most) = match seed % 5 {
            // What is held up as long as that, and then a takeover.
            0 => (Trouble::KillBehindFences(held), held + Duration::from_millis(1500)),
            // The leg of that drive is put out after 2.5 s.
            1 => {
                let (disk, follower) = (rng.below(2) as usize, seed % 10 == 1);
                let trouble =
                    if follower { Trouble::FollowerBehindFence } else { Trouble::LeaderBehindFence };
                (trouble(disk, held), Duration::from_millis(3500))
            }
            2 => return Self::full_directory(seed, true),
            3 => return Self::full_directory(seed, false),
            _ => return Self::loaded(seed),
        };
        Self { stall_most: Some(most), both: true, ..Self::of_one(seed, trouble) }
    }
    /// Both machines are ever more loaded: turns of both Stewards are late, and no head is put out for that.
    fn loaded(seed: u64) -> Self {
        let mut options = Self::of_one(seed, Trouble::Load);
        options.troubles_max = u32::MAX;
        options.both = true;
        options.pause = Duration::from_millis(600);
        options.work = Duration::from_secs(20);
        options.delivery.drive_us = 20_000;
        options.outs_most = Some(0);
        options
    }
    /// The follower cannot keep what it is told for a while: it does not come and go all the time.
    fn full_directory(seed: u64, files: bool) -> Self {
        let time = Duration::from_secs(20);
        let mut options = Self::of_one(seed, Trouble::FullDirectory { files, time });
        options.both = true;
        options.work = Duration::from_secs(25);
        // Else hosts would do much in that time.
        options.delivery.drive_us = 20_000;
        // At once, then after 2, 4 and 8 s; or not before the directory takes something.
        options.outs_most = Some(if files { 6 } else { 2 });
        options
    }
    /// A world in which nothing happens but that one head loses its path to a drive for a while: no leg may be lost.
    /// In half of these worlds it reaches no leg of a mirror.
    pub fn paths(seed: u64) -> Self {
        let mut options = Self::powered(seed);
        options.troubles.clear();
        options.both = true;
        options.used = false;
        options.habits.reset_ppm = 0;
        let mut rng = Prng::new(seed ^ 0x7061_7468_7301);
        let (server, disk) = (rng.below(2) as usize, rng.below(2 * options.mirrors as u64) as usize);
        options.loses = Some(Loss::of_one(server, disk));
        options.work = Duration::from_secs(rng.between(5, 15));
        options.delivery.late_permille = 0;
        options.delivery.split_permille = 0;
        let mut mirror = Prng::new(seed ^ 0x7061_7468_7302);
        if mirror.chance(1, 2) { options.without_mirror(&mut mirror) } else { options }
    }
    /// The same world in which the head reaches no leg of a mirror. Hosts use a path to each head in turns:
    /// what one cannot do the other can, and so it is done by both.
    fn without_mirror(mut self, rng: &mut Prng) -> Self {
        let loss = Loss::of_mirror(rng, self.mirrors);
        self.work = loss.back + Duration::from_secs(2);
        self.loses = Some(loss);
        self.in_turns = true;
        self.failover = false;
        if rng.chance(2, 3) {
            self.hosts.fill(Protocol::Iscsi);
        }
        let habits = &mut self.habits;
        habits.lose_ppm = 0;
        habits.write_permille = habits.write_permille.min(400);
        habits.flush_permille = 60;
        // Else hosts would do much in that time.
        self.delivery.drive_us = self.delivery.drive_us.max(3000);
        // A host that is told that a volume is not ready waits for 10 s by NVMe.
        let most = if self.hosts.contains(&Protocol::Nvme) { 15 } else { 5 };
        self.path_stall_most = Some(Duration::from_secs(most));
        self
    }
    /// A world in which nothing happens but that the head that leads, or the one that follows, reaches no leg
    /// of a mirror for 10 s.
    pub fn without_legs(seed: u64, leader: bool) -> Self {
        let mut options = Self::paths(seed).without_mirror(&mut Prng::new(seed ^ 0x7061_7468_7303));
        let (server, back) = (usize::from(!leader), Duration::from_secs(10));
        options.loses = Some(Loss { server, disks: vec![0, 1], apart: Duration::ZERO, back });
        options.work = Duration::from_secs(12);
        options
    }
    /// A world in which lanes go round again and again under load at both heads, while connections between them break.
    pub fn turns(seed: u64) -> Self {
        let mut options = Self::powered(seed);
        options.troubles = vec![Trouble::ResetNetwork, Trouble::SlowNetwork];
        options.shards = options.shards.max(2);
        options.used = false;
        options.both = true;
        let mut rng = Prng::new(seed ^ 0x7475_726e_7301);
        options.turns = Some(Duration::from_millis(rng.between(5, 60)));
        options.pause = Duration::from_millis(rng.between(20, 300));
        options.work = Duration::from_secs(4);
        options.habits.blocks = options.habits.blocks.min(200);
        options.habits.write_permille = 600;
        options
    }
    /// A world of long commands, so many at both heads that each waits for memory of the other one: nothing
    /// breaks, and all must end.
    pub fn full(seed: u64) -> Self {
        let mut options = Self::powered(seed);
        options.troubles.clear();
        options.both = true;
        options.used = false;
        options.failover = false;
        let mut rng = Prng::new(seed ^ 0x6675_6c6c_6832);
        options.in_turns = true;
        options.shards = rng.between(1, 3) as u16;
        options.mirrors = 1;
        options.work = Duration::from_secs(3);
        options.shard_bytes = (16 << 20) + rng.below(2) * (8 << 20);
        options.hosts = (0..5).map(|_| *rng.pick(&[Protocol::Nvme, Protocol::Iscsi])).collect();
        let habits = &mut options.habits;
        habits.reset_ppm = 0;
        habits.lose_ppm = 0;
        habits.transfer_max = 1 << 20;
        habits.blocks = VOLUME_BYTES / u64::from(habits.block_bytes);
        habits.blocks_max = (256 << 10 << rng.between(1, 2)) / u64::from(habits.block_bytes);
        habits.write_permille = *rng.pick(&[600, 900]);
        habits.depth = rng.between(32, 64) as u32;
        options
    }
    /// A world whose operator changes hosts and exports while hosts log in again and again, at both heads. In
    /// half of these worlds heads fall, too, or lose each other.
    pub fn access_at_both(seed: u64) -> Self {
        let mut options = Self::one_path(seed);
        let mut rng = Prng::new(seed ^ 0x6163_6365_7302);
        options.access = u32::MAX;
        options.both = true;
        options.used = false;
        options.failover = false;
        options.habits.lose_ppm = 0;
        options.in_turns = rng.chance(1, 3);
        options.hosts =
            (0..rng.between(2, 3)).map(|_| *rng.pick(&[Protocol::Nvme, Protocol::Iscsi])).collect();
        options.habits.reset_ppm = *rng.pick(&[1000, 10_000, 50_000]);
        options.habits.blocks = 200;
        let ails = rng.chance(1, 2);
        let all = [Trouble::Kill, Trouble::CutLink, Trouble::SlowNetwork, Trouble::ResetNetwork];
        options.troubles = all.into_iter().filter(|_| ails && rng.chance(1, 2)).collect();
        // A head that is out, and lives, may go on for a while at a drive that has not confirmed it.
        if ails && Prng::new(seed ^ 0x6163_6365_7303).chance(1, 3) {
            options.troubles.push(Trouble::HoldFencesUp);
        }
        options.delivery.late_permille = 0;
        options
    }
    /// A world in which nothing happens but that a system is made, or ends, and is cut off somewhere.
    pub fn cuts(seed: u64) -> Self {
        let mut rng = Prng::new(seed ^ 0x6375_7473_7301);
        let doing = *rng.pick(&[Doing::Create, Doing::Leave]);
        let end = *rng.pick(&[End::Killed, End::PowerCut, End::LinkLost]);
        Self::of_cut(seed, Cut { doing, after: rng.below(120) as u32, end, away: None })
    }
    /// A world in which nothing happens but that a system is made, or ends, and is cut off.
    pub fn of_cut(seed: u64, cut: Cut) -> Self {
        let mut options = Self::powered(seed);
        options.troubles.clear();
        options.cut = Some(cut);
        options.mirrors = 2;
        options.shards = 1;
        options.networks = 1;
        options.both = false;
        options.failover = false;
        options.in_turns = false;
        options.volatile = true;
        options.hosts.truncate(1);
        options.habits.depth = 4;
        options.habits.blocks = 40;
        options.habits.reset_ppm = 0;
        options.habits.write_permille = 300;
        options.delivery = Delivery { late_permille: 0, split_permille: 0, ..options.delivery };
        options
    }
}
