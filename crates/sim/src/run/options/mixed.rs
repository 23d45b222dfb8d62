//! Worlds in which any fault may happen to any server and drive, each kind at a rate of its own.

use super::{Directory, Options, Trouble};
use base::{Duration, Prng};

/// Of so many worlds one has one head.
const OF_ONE: u64 = 4;
/// Of so many kinds of faults one happens in a world.
const TAKEN: u64 = 4;
/// One of so many worlds is thick: one kind of fault happens in it, so many times as often.
const THICK: u64 = 8;

/// Drives are files in one of so many worlds of two heads.
const FILES: u64 = 8;

/// What may become of the state directory of either.
const DIRECTORIES: [Directory; 4] =
    [Directory::Damaged, Directory::Older, Directory::Empty, Directory::Unlinked];

/// What may happen to two heads over the same drives.
const TO_TWO: [Trouble; 39] = [
    Trouble::Kill,
    Trouble::PowerCut,
    Trouble::Stop,
    Trouble::Blackout,
    Trouble::KillBoth,
    Trouble::Pause,
    Trouble::PauseSteward,
    Trouble::PauseShard,
    Trouble::NobodyLeads,
    Trouble::ClockJumps,
    Trouble::CutLink,
    Trouble::CutNetwork,
    Trouble::SlowNetwork,
    Trouble::ResetNetwork,
    Trouble::LosePath,
    Trouble::LoseAllPaths,
    Trouble::HoldFencesUp,
    Trouble::LateFences,
    Trouble::SlowDirectory,
    Trouble::Cut,
    Trouble::TurnLanes,
    Trouble::Resize,
    Trouble::Scrub,
    Trouble::AskFollower,
    Trouble::FenceFollower,
    Trouble::LeaveAndJoin,
    Trouble::MoveDrives,
    Trouble::Wipe,
    Trouble::OlderCopy,
    Trouble::Hang,
    Trouble::Drop,
    Trouble::Unplug,
    Trouble::DrivePower,
    Trouble::Slow,
    Trouble::WriteErrors,
    Trouble::ReadErrors,
    Trouble::FlushErrors,
    Trouble::Full,
    Trouble::Rot,
];
/// What may happen to a head alone. Its options have lanes that are dealt anew, orders about drives and scrubs
/// beside that.
const TO_ONE: [Trouble; 16] = [
    Trouble::Kill,
    Trouble::PowerCut,
    Trouble::Stop,
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
    Trouble::FlushErrors,
    Trouble::Full,
    Trouble::Rot,
];

/// In one world of so many SCSI hosts end all tasks on the volume, behind so many of 1000 commands.
fn clears(rng: &mut Prng) -> u64 {
    if rng.chance(1, TAKEN) { rng.between(1, 10) } else { 0 }
}

impl Options {
    /// A world in which any fault may happen: of two heads, or, one in four, of one.
    pub fn mixed(seed: u64) -> Self {
        let mut rng = Prng::new(seed ^ 0x006d_6978_6564);
        if rng.chance(1, OF_ONE) { Self::mixed_of_one(seed, rng) } else { Self::mixed_of_two(seed, rng) }
    }
    fn mixed_of_two(seed: u64, mut rng: Prng) -> Self {
        let mut options = Self::powered(seed);
        options.work = Duration::from_secs(rng.between(6, 20));
        options.kills_max = u32::MAX;
        // Else hosts would do much in that time.
        options.delivery.drive_us = options.delivery.drive_us.max(3000);
        let mut all = TO_TWO.to_vec();
        // What somebody left on a used drive has no block that could be known to have rotted, and is cleared so slowly
        // that a drive would not be a leg in time.
        all.retain(|t| !(options.used && matches!(t, Trouble::Rot | Trouble::MoveDrives)));
        options.files = rng.chance(1, FILES);
        options.forgets_keys = rng.chance(1, TAKEN);
        options.habits.clear_permille = clears(&mut rng);
        let mut some_time = |most_ms| Duration::from_millis(rng.between(500, most_ms));
        all.extend([
            Trouble::KillBehindFences(some_time(8000)),
            Trouble::Alone(some_time(8000)),
            Trouble::FullDirectory { files: false, time: some_time(12_000) },
            Trouble::FullDirectory { files: true, time: some_time(12_000) },
        ]);
        all.extend(DIRECTORIES.map(Trouble::Directory));
        let length = options.work;
        options.mix(&all, length, &mut rng);
        options.moves = u32::from(options.troubles.contains(&Trouble::MoveDrives));
        options
    }
    fn mixed_of_one(seed: u64, mut rng: Prng) -> Self {
        let mut options = Self::usual(seed);
        // A leg is left to live on: what refuses or loses something may happen too.
        options.ill_max = 1;
        if rng.chance(1, TAKEN) {
            options.shards = options.shards.max(2);
            options.deals = Some(Duration::from_millis(1 << rng.between(0, 8)));
        }
        // How long hosts take for their commands. Where drives are moved, eight times as long.
        let length = Duration::from_millis(rng.between(500, 4000));
        let length = if options.moves > 0 { length * 8 } else { length };
        options.habits.clear_permille = clears(&mut rng);
        options.mix(&TO_ONE, length, &mut rng);
        if options.moves > 0 && options.troubles.contains(&Trouble::Rot) {
            options.moves = 0;
        }
        options
    }
    /// Takes some of these. The mean time between two of a kind is an eighth of the world's length, or up to four
    /// times less or more.
    fn mix(&mut self, all: &[Trouble], length: Duration, rng: &mut Prng) {
        let thick = rng.chance(1, THICK);
        let mut taken: Vec<Trouble> = all.iter().copied().filter(|_| rng.chance(1, TAKEN)).collect();
        // What rotted differs indeed, and a scrub says so. What is copied because a drive was changed is not known to be
        // what rotted, or not.
        if taken.contains(&Trouble::Rot) {
            use Trouble::{MoveDrives, OlderCopy, Scrub, Wipe};
            taken.retain(|t| !matches!(t, Scrub | MoveDrives | Wipe | OlderCopy));
        }
        // A drive that comes back to its place is not to have left its pool.
        if taken.contains(&Trouble::MoveDrives) {
            taken.retain(|t| !matches!(t, Trouble::Wipe | Trouble::OlderCopy));
        }
        if thick || taken.is_empty() {
            taken = vec![*rng.pick(all)];
        }
        let eighth = length.as_micros() as u64 / if thick { 8 * THICK } else { 8 };
        // As often from a quarter to a half as from twice to four times that.
        let mut mean = || {
            let least = (eighth / 4) << rng.below(4);
            Duration::from_micros(rng.between(least, 2 * least))
        };
        self.rates = taken.iter().map(|_| mean()).collect();
        self.troubles = taken;
    }
}
