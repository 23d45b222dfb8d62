//! How often something went wrong, and how often it made a difference: both are counted where it takes effect,
//! not where it is picked.

use std::fmt;

/// What goes wrong, as it is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A process is killed; it had operations under way.
    Kill,
    /// A server loses its power; the same.
    PowerCut,
    /// All drives lose their power, and servers with them; something was in a cache, or under way.
    DrivesPowerCut,
    /// All drives do, and servers keep theirs; the same.
    DrivesPower,
    /// A head is stopped in order; it ended so.
    Stop,
    /// A server stands still; something waited for it.
    Pause,
    /// A Steward does; the same.
    PauseSteward,
    /// A shard does; the same.
    PauseShard,
    /// Nobody may lead for a time; no host got an answer for a second.
    NobodyLeads,
    /// A server's clock of the day is set to another time; it was read since.
    ClockJumps,
    /// A network between heads is cut; bytes did not arrive.
    CutNetwork,
    /// It is slow; bytes took longer.
    SlowNetwork,
    /// Its connection is lost; it was open.
    ResetNetwork,
    /// A server loses its path to a drive; an operation failed by it.
    LosePath,
    /// It has lost its paths to all; an operation failed by one.
    LoseAllPaths,
    /// A drive shuts nobody out for a time; a fence waited for it.
    HoldFences,
    /// All that a head asks of fences is late; something was.
    LateFences,
    /// A drive is a file, and a process is killed for its lock; that was waited for.
    FileFence,
    /// A state directory takes nothing, or no files; a write was refused.
    FullDirectory,
    /// A state directory is slow; an operation took longer.
    SlowDirectory,
    /// A head begins with a state directory in which a file is damaged.
    DamagedDirectory,
    /// It begins with an older copy of its state directory.
    OlderDirectory,
    /// It begins with a state directory that is empty but for its file `link`.
    EmptyDirectory,
    /// It begins without its file `link`.
    UnlinkedDirectory,
    /// A link of a host is cut; it was there until then.
    CutLink,
    /// A link of a host stalls; bytes waited.
    StallLink,
    /// A link of a host is silent; bytes went nowhere.
    SilenceLink,
    /// A SCSI host ends all tasks on the volume; a command of another one ended so.
    ClearTasks,
    /// A drive hangs; an operation was held.
    Hang,
    /// A drive is gone; an operation found that.
    Drop,
    /// A drive is pulled; an operation for what was opened before failed.
    Unplug,
    /// A drive alone loses its power; something was in its cache.
    DrivePower,
    /// A drive is slow; an operation took longer.
    Slow,
    /// A drive fails writes; one failed.
    WriteErrors,
    /// A drive fails reads; one failed.
    ReadErrors,
    /// A drive fails flushes; one failed.
    FlushErrors,
    /// A drive has no space; a write failed.
    Full,
    /// A sector rots; one that rotted once was read.
    Rot,
    /// Lanes are to be dealt anew; they were.
    TurnLanes,
    /// A volume is to have another size; it has.
    Resize,
    /// Legs are to be compared; that began.
    Scrub,
    /// An order goes to the head that follows; it was answered.
    AskFollower,
    /// The head that follows is to be put out; it was.
    FenceFollower,
    /// The head that follows leaves the system, and another one joins on its server; it left.
    LeaveAndJoin,
    /// An order is about a drive; it was carried out.
    MoveDrives,
    /// Something of a drive is overwritten; a head has read the label since.
    Wipe,
    /// A drive is exchanged for an older copy of itself; the same.
    OlderCopy,
    /// A drive loses the keys of heads with its power; a fence found none.
    ForgetKeys,
}

/// All of them, in their order.
const ALL: [Wrong; 48] = [
    Wrong::Kill,
    Wrong::PowerCut,
    Wrong::DrivesPowerCut,
    Wrong::DrivesPower,
    Wrong::Stop,
    Wrong::Pause,
    Wrong::PauseSteward,
    Wrong::PauseShard,
    Wrong::NobodyLeads,
    Wrong::ClockJumps,
    Wrong::CutNetwork,
    Wrong::SlowNetwork,
    Wrong::ResetNetwork,
    Wrong::LosePath,
    Wrong::LoseAllPaths,
    Wrong::HoldFences,
    Wrong::LateFences,
    Wrong::FileFence,
    Wrong::FullDirectory,
    Wrong::SlowDirectory,
    Wrong::DamagedDirectory,
    Wrong::OlderDirectory,
    Wrong::EmptyDirectory,
    Wrong::UnlinkedDirectory,
    Wrong::CutLink,
    Wrong::StallLink,
    Wrong::SilenceLink,
    Wrong::ClearTasks,
    Wrong::Hang,
    Wrong::Drop,
    Wrong::Unplug,
    Wrong::DrivePower,
    Wrong::Slow,
    Wrong::WriteErrors,
    Wrong::ReadErrors,
    Wrong::FlushErrors,
    Wrong::Full,
    Wrong::Rot,
    Wrong::TurnLanes,
    Wrong::Resize,
    Wrong::Scrub,
    Wrong::AskFollower,
    Wrong::FenceFollower,
    Wrong::LeaveAndJoin,
    Wrong::MoveDrives,
    Wrong::Wipe,
    Wrong::OlderCopy,
    Wrong::ForgetKeys,
];

/// The counts of one world.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    made: [u64; ALL.len()],
    met: [u64; ALL.len()],
}

// Arrays of so many have no default of their own.
impl Default for Tally {
    fn default() -> Self {
        Self { made: [0; ALL.len()], met: [0; ALL.len()] }
    }
}

impl Tally {
    /// It goes wrong.
    pub fn make(&mut self, what: Wrong) {
        self.made[what as usize] += 1;
    }
    /// It made a difference.
    pub fn meet(&mut self, what: Wrong) {
        self.met[what as usize] += 1;
    }
    /// It went wrong and made a difference so often, as somebody else has counted.
    pub fn add(&mut self, what: Wrong, made: u64, met: u64) {
        self.made[what as usize] += made;
        self.met[what as usize] += met;
    }
    /// How often it went wrong.
    pub fn made(&self, what: Wrong) -> u64 {
        self.made[what as usize]
    }
    /// How often it made a difference.
    pub fn met(&self, what: Wrong) -> u64 {
        self.met[what as usize]
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = ALL.into_iter().map(|what| (what, (self.made(what), self.met(what))));
        f.debug_map().entries(rows.filter(|(_, counts)| *counts != (0, 0))).finish()
    }
}

/// The counts of many worlds.
pub struct Table {
    sum: Tally,
    /// Worlds in which it made a difference.
    worlds: [u64; ALL.len()],
}

impl Default for Table {
    fn default() -> Self {
        Self { sum: Tally::default(), worlds: [0; ALL.len()] }
    }
}

impl Table {
    /// One more world.
    pub fn add(&mut self, tally: &Tally) {
        for what in ALL {
            self.sum.made[what as usize] += tally.made(what);
            self.sum.met[what as usize] += tally.met(what);
            self.worlds[what as usize] += u64::from(tally.met(what) > 0);
        }
    }
    /// The rows of a table: each fault, how often it was made and met, and in how many worlds it was met.
    pub fn rows(&self) -> impl Iterator<Item = String> {
        ALL.into_iter().map(move |what| {
            let made = self.sum.made(what);
            let met = self.sum.met(what);
            let worlds = self.worlds[what as usize];
            format!("| {what:?} | {made} | {met} | {worlds} |")
        })
    }
    /// What was never made, or never made a difference.
    pub fn never(&self) -> Vec<Wrong> {
        ALL.into_iter().filter(|what| self.sum.made(*what) == 0 || self.sum.met(*what) == 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Table, Tally, Wrong};

    #[test]
    fn each_has_a_place_of_its_own() {
        assert!(ALL.into_iter().enumerate().all(|(place, what)| what as usize == place));
    }

    #[test]
    fn what_made_no_difference_in_any_world_is_named() {
        let (mut table, mut tally) = (Table::default(), Tally::default());
        for what in ALL.into_iter().filter(|what| *what != Wrong::Rot) {
            tally.make(what);
            if what != Wrong::Hang {
                tally.meet(what);
            }
        }
        table.add(&tally);
        table.add(&Tally::default());
        assert_eq!(table.never(), [Wrong::Hang, Wrong::Rot]);
        let kill = table.rows().next().expect("a row");
        assert_eq!(kill, "| Kill | 1 | 1 | 1 |");
    }
}
