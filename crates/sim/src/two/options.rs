//! The options of a world of two heads, drawn from its seed.

use super::{Cut, Doing, End};
use crate::host::Habits;
use crate::world::{Clock, Delivery};
use base::view::Protocol;
use base::{Duration, Prng};

/// What may go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// A head is killed, between any two effects, and comes back.
    Kill,
    /// A server loses its power. Drives keep theirs.
    PowerCut,
    /// Both servers and all drives lose their power, at nearly the same moment.
    Blackout,
    /// Both heads are killed, one after the other.
    KillBoth,
    /// A server stands still for 10 ms to 30 s, with its kernel or without.
    Pause,
    /// All networks of the link bring nothing, to one server or both.
    CutLink,
    /// The same of one network.
    CutNetwork,
    /// A network is slow.
    SlowNetwork,
    /// The connection of a network is lost.
    ResetNetwork,
    /// A server loses its path to a drive.
    LosePath,
    /// The Steward of a head stands still for 10 ms to 16 s, and its shards go on.
    PauseSteward,
    /// A drive shuts nobody out for 10 ms to 8 s, as the reset that belongs to it hangs; and as a rule a head stands still then, or its
    /// Steward.
    HoldFencesUp,
    /// The head that leads is killed while no drive shuts anybody out for so long.
    KillBehindFences(Duration),
    /// The head that follows is killed while this drive shuts nobody out for so long.
    FollowerBehindFence(usize, Duration),
    /// The head that leads is killed while this drive shuts nobody out for so long.
    LeaderBehindFence(usize, Duration),
    /// The state directory of the head that follows takes nothing for so long; or files alone do not fit there, and what is written to try
    /// it does.
    FullDirectory {
        /// Files alone do not fit.
        files: bool,
        /// For so long.
        time: Duration,
    },
    /// The head that follows is killed.
    KillFollower,
    /// The head that leads, or the one that follows, loses its path to a drive for long.
    LosePathOf {
        /// The one that leads.
        leader: bool,
    },
    /// The Stewards of both heads get no processor for a while, each time for a little longer.
    Load,
    /// The head that leads loses the link and its paths to all drives, for so long.
    Alone(Duration),
    /// The head that follows loses its path to this drive, and the one that leads is killed once the other takes part without the drive.
    KillWithoutPath(usize),
    /// The head that follows is killed, and begins without a path to this drive.
    StartWithoutPath(usize),
    /// No head reaches the other leg of this drive's mirror, and then the head that follows is killed while the drive shuts nobody out for
    /// so long.
    LastLegBehindFence(usize, Duration),
}

/// A head loses its path to a drive for long, and the power of both servers and all drives goes again and again meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// The head that leads loses the path; else the follower.
    pub of_leader: bool,
    /// The drive.
    pub disk: usize,
    /// How long hosts work before.
    pub begins: Duration,
    /// How long the path is lost, if the power does not bring it back.
    pub lost: Duration,
    /// From the loss of the path to the first cut of the power, and from one cut to the next.
    pub dark: Duration,
    /// The path is back when the power is.
    pub back: bool,
}

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

/// A head loses its paths to drives, once both heads are in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// The server. Server 1 follows then.
    pub server: usize,
    /// The drives.
    pub disks: Vec<usize>,
    /// From the loss of one path to that of the next.
    pub apart: Duration,
    /// From the loss of the first path to the return of all.
    pub back: Duration,
}

impl Loss {
    /// One path is lost for `LOST`.
    pub fn of_one(server: usize, disk: usize) -> Self {
        Self { server, disks: vec![disk], apart: Duration::ZERO, back: super::LOST }
    }
    /// No leg of a mirror is reached for long: from one moment on, or first one and then the other. A follower takes part without a drive
    /// once it has lacked that for 10 s, or two for 16 s: so it does before it loses the second one, and before both are back.
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

impl Trouble {
    /// Those that the first worlds had.
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
    const LATER: [Trouble; 2] = [Trouble::PauseSteward, Trouble::HoldFencesUp];
}

/// Everything that a seed decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// Shards of each head.
    pub shards: u16,
    /// Memory of each shard.
    pub shard_bytes: u64,
    /// Mirrors of two legs.
    pub mirrors: usize,
    /// This drive's fence does not hold.
    pub lying: Option<usize>,
    /// A server loses its paths to drives.
    pub loses: Option<Loss>,
    /// No host waits longer than this for a command that ends well; nor for one of each kind (reads, changes, flushes) by each path that
    /// is up.
    pub path_stall_most: Option<Duration>,
    /// A path is lost while the power goes.
    pub outage: Option<Outage>,
    /// Lanes go round so often while both heads serve.
    pub turns: Option<Duration>,
    /// The making or the end of a system is cut off.
    pub cut: Option<Cut>,
    /// Drives have volatile caches.
    pub volatile: bool,
    /// Drives were used before: blocks without a write hold junk, and must read as zeroes. Hosts come to all of the volume, and
    /// write little, so that there is such space to the end.
    pub used: bool,
    /// No host waits longer than this for a command that ends well.
    pub stall_most: Option<Duration>,
    /// Heads are put out so often at most.
    pub outs_most: Option<u32>,
    /// One host each.
    pub hosts: Vec<Protocol>,
    /// Networks of the link.
    pub networks: usize,
    /// The servers' clocks.
    pub clocks: [Clock; 2],
    /// Addresses move to the leader, and hosts of the other head get an event. Else they stay with it until it ends.
    pub addresses_move: bool,
    /// The second head has portals, and every second host goes there.
    pub both: bool,
    /// NVMe hosts have a second path, to the other head. Now and then they lose the first one, and no head gets an event: then they have its
    /// controller ended by way of the second one, and go on there.
    pub failover: bool,
    /// Hosts have a path to each head, and send commands by both in turns. One that is lost with its path is sent again by the other. None loses
    /// a path to a head that lives without an event for that head.
    pub in_turns: bool,
    /// What may go wrong.
    pub troubles: Vec<Trouble>,
    /// An operator takes from hosts what they log in by, or the volume, and gives it back.
    pub access: bool,
    /// One trouble happens, to the head that leads, and no other.
    pub once: bool,
    /// Mean time between troubles.
    pub pause: Duration,
    /// How long hosts work.
    pub work: Duration,
    /// How kind the world is.
    pub delivery: Delivery,
    /// What hosts do.
    pub habits: Habits,
    /// Keep a story.
    pub log: bool,
    /// Tell it on standard error, too.
    pub trace: bool,
}

impl Options {
    /// The options that belong to `seed`: one in four of the worlds in which both heads serve drives with caches has a path that is lost while
    /// the power goes.
    pub fn swarm(seed: u64) -> Self {
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
        let mut troubles: Vec<Trouble> = Trouble::USUAL.into_iter().filter(|_| rng.chance(4, 10)).collect();
        let mut clock = || Clock { rate: rng.between(800, 1200), began: rng.below(1 << 40) };
        let clocks = [clock(), clock()];
        let hosts = (0..2).map(|_| *rng.pick(&[Protocol::Nvme, Protocol::Iscsi])).collect();
        let mut habits = Habits::swarm(&mut rng);
        habits.commands = u32::MAX;
        habits.block_bytes = 4096;
        habits.depth = rng.between(1, 4) as u32;
        habits.reset_ppm = rng.below(200);
        // From sources of their own, so that worlds without them stay what they were.
        let mut later = Prng::new(seed ^ 0x6c61_7465_7201);
        troubles.extend(Trouble::LATER.into_iter().filter(|_| later.chance(1, 4)));
        let options = Self {
            seed,
            shards: rng.between(1, 3) as u16,
            mirrors: rng.between(1, 2) as usize,
            shard_bytes: 27 << 20,
            lying: None,
            loses: None,
            path_stall_most: None,
            outage: None,
            turns: None,
            cut: None,
            volatile: rng.chance(1, 2),
            used: false,
            stall_most: None,
            outs_most: None,
            hosts,
            networks: rng.between(1, 2) as usize,
            clocks,
            addresses_move: rng.chance(1, 2),
            both: Prng::new(seed ^ 0x626f_7468_7301).chance(1, 2),
            failover: false,
            in_turns: false,
            troubles,
            access: false,
            once: false,
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
            log: false,
            trace: false,
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
        self.habits.blocks = (super::VOLUME_BYTES / u64::from(self.habits.block_bytes)) >> rng.below(3);
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
    /// A world in which nothing happens but that a head loses its path to a drive with a volatile cache, and the power goes meanwhile.
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
    /// A world of quick drives in which this happens to the head that leads, once, and else nothing: how long do hosts wait?
    pub fn of_one(seed: u64, trouble: Trouble) -> Self {
        let mut options = Self::powered(seed);
        options.troubles = vec![trouble];
        options.once = true;
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
        options.once = false;
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
    /// The same world in which the head reaches no leg of a mirror. Hosts use a path to each head in turns: what one cannot do the other
    /// can, and so it is done by both.
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
    /// A world in which nothing happens but that the head that leads, or the one that follows, reaches no leg of a mirror for 10 s.
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
    /// A world of long commands, so many at both heads that each waits for memory of the other one: nothing breaks, and all must end.
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
        habits.blocks = super::VOLUME_BYTES / u64::from(habits.block_bytes);
        habits.blocks_max = (256 << 10 << rng.between(1, 2)) / u64::from(habits.block_bytes);
        habits.write_permille = *rng.pick(&[600, 900]);
        habits.depth = rng.between(32, 64) as u32;
        options
    }
    /// A world whose operator changes hosts and exports while hosts log in again and again, at both heads. In half of these worlds heads
    /// fall, too, or lose each other.
    pub fn access(seed: u64) -> Self {
        let mut options = Self::one_path(seed);
        let mut rng = Prng::new(seed ^ 0x6163_6365_7302);
        options.access = true;
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
    /// Whether anything may go wrong.
    pub(super) fn ails(&self) -> bool {
        !self.troubles.is_empty()
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
