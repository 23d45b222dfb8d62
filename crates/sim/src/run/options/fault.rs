//! What may go wrong in a world, and what does.

use crate::disk::Faults;
use crate::world::Crash;
use base::{Address, Duration};

/// What has become of a state directory while its head was down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Directory {
    /// A file is damaged, or gone.
    Damaged,
    /// It is an older copy of itself.
    Older,
    /// Nothing is there but the file `link`.
    Empty,
    /// That file is gone: the daemon removes what is there of the system, and its head begins alone.
    Unlinked,
}

/// What kind of trouble a seed makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// A head is killed, between any two effects, and comes back.
    Kill,
    /// A server loses its power, between any two effects, and drives lose it with the only one; those that
    /// two share keep theirs.
    PowerCut,
    /// A link breaks, at once or behind any byte.
    Cut,
    /// A link brings bytes late, up to seconds.
    Stall,
    /// A link brings nothing any more, and nobody gets an event.
    Silence,
    /// A drive takes operations and does not answer for a while.
    Hang,
    /// A drive refuses everything as gone for a while.
    Drop,
    /// A drive is pulled and put back: what was opened stays dead.
    Unplug,
    /// One drive alone loses its power, and what it had not made durable.
    DrivePower,
    /// A drive is slow for a while.
    Slow,
    /// A drive fails writes and flushes for a while.
    WriteErrors,
    /// A drive fails reads for a while.
    ReadErrors,
    /// A drive fails flushes for a while, and nothing else.
    FlushErrors,
    /// A drive has no space for what is written, for a while.
    Full,
    /// A bit of a label, a record, a configuration or a bitmap changes, on one drive of the world: where two
    /// have lost theirs, or one has and the other is away, nobody can be asked to know.
    RotMetadata,
    /// A bit of a volume's data changes on one drive.
    Rot,
    /// The head is stopped in order, and ends. Before the next one begins a drive may be exchanged for an older copy of
    /// itself, where nothing else is ill.
    Stop,
    /// Both servers and all drives lose their power, at nearly the same moment.
    Blackout,
    /// All drives lose their power, and what they had not made durable. Servers keep theirs.
    DrivesPower,
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
    /// The same of a shard of a head.
    PauseShard,
    /// Nobody may lead for 2 s to 10 s: the server of the head that leads stands still, and the other head reaches no
    /// drive that votes.
    NobodyLeads,
    /// A server's clock of the day is set to another time.
    ClockJumps,
    /// A server loses its paths to all drives.
    LoseAllPaths,
    /// All that a head asks of the fences of drives is late.
    LateFences,
    /// The state directory of a server is slow for a while.
    SlowDirectory,
    /// A head is killed, and finds its state directory so.
    Directory(Directory),
    /// A drive shuts nobody out for 10 ms to 8 s, as the reset that belongs to it hangs; and as a rule a head
    /// stands still then, or its Steward.
    HoldFencesUp,
    /// The head that leads is killed while no drive shuts anybody out for so long.
    KillBehindFences(Duration),
    /// The head that follows is killed while this drive shuts nobody out for so long.
    FollowerBehindFence(usize, Duration),
    /// The head that leads is killed while this drive shuts nobody out for so long.
    LeaderBehindFence(usize, Duration),
    /// The state directory of the head that follows takes nothing for so long; or files alone do not fit
    /// there, and what is written to try it does.
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
    /// The head that follows loses its path to this drive, and the one that leads is killed once the other
    /// takes part without the drive.
    KillWithoutPath(usize),
    /// The head that follows is killed, and begins without a path to this drive.
    StartWithoutPath(usize),
    /// No head reaches the other leg of this drive's mirror, and then the head that follows is killed while
    /// the drive shuts nobody out for so long.
    LastLegBehindFence(usize, Duration),
    /// An order has other shards take the lanes of every array, whatever is ill.
    TurnLanes,
    /// An order makes a volume that no host uses smaller or larger.
    Resize,
    /// An order has the legs of every mirror compared.
    Scrub,
    /// The next order goes to the head that follows.
    AskFollower,
    /// An order puts the head that follows out.
    FenceFollower,
    /// The head that follows leaves the system, and another one joins on its server.
    LeaveAndJoin,
    /// Orders replace, add, remove or fail drives, make them spares, and make, resize or remove volumes.
    MoveDrives,
    /// Something else overwrites a label of a drive in use, or all in front of its data.
    Wipe,
    /// A copy of a drive is made; or the drive is pulled, and put back as the copy that was made.
    OlderCopy,
}

impl Trouble {
    /// Whether it makes a drive ill.
    pub(super) fn ails_a_drive(self) -> bool {
        use Trouble::{DrivePower, Drop, FlushErrors, Full, Hang, ReadErrors, Slow, Unplug, WriteErrors};
        matches!(
            self,
            Hang | Drop | Unplug | DrivePower | Slow | WriteErrors | ReadErrors | FlushErrors | Full
        )
    }
    /// Whether nothing is lost when all legs of a mirror have it at once: they only keep everybody waiting.
    pub(super) fn is_patient(self) -> bool {
        matches!(self, Trouble::Hang | Trouble::Drop | Trouble::Slow | Trouble::Unplug)
    }
}

/// Something that goes wrong, and with whom. Whoever picks one draws; nothing is drawn any more when it happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // Each variant says what its fields are.
pub enum Fault {
    /// The head of a server falls before it has carried out so many more effects.
    Doom { server: usize, effects: u32, crash: Crash },
    /// It falls at once.
    Fall { server: usize, crash: Crash },
    /// It is stopped in order, and comes back.
    Stop { server: usize },
    /// Both servers and all drives lose their power, this server first.
    Blackout { first: usize },
    /// A server stands still for so long, with its kernel or without.
    Pause { server: usize, time: Duration, kernel: bool },
    /// A machine of its head does, and the others go on.
    PauseMachine { server: usize, machine: Address, time: Duration },
    /// Its clock of the day is set so many milliseconds from what it is.
    SetClock { server: usize, by_ms: i64 },
    /// A link of a host breaks, at once or behind any byte.
    BreakLink,
    /// A link of a host brings nothing for so long.
    StallLink { time: Duration },
    /// A link of a host brings nothing any more, and nobody gets an event.
    SilenceLink,
    /// A network between heads brings nothing to these servers for so long.
    CutNetwork { network: usize, to: [bool; 2], time: Duration },
    /// Bytes on it take up to so long from now on.
    SlowNetwork { network: usize, slow_us: u64 },
    /// Its connection is lost.
    ResetNetwork { network: usize },
    /// A server loses its path to a drive, or has it back.
    Path { server: usize, disk: usize, lost: bool },
    /// This goes wrong with a drive from now on; or it is well again, as another one if it was pulled.
    Drive { disk: usize, faults: Faults },
    /// What a drive holds ends in errors, and it is gone; and what it had not made durable, if its power goes, too.
    Pull { disk: usize, power: bool },
    /// All drives lose their power, and what they had not made durable.
    PullAll,
    /// A bit of a sector of a drive changes.
    Rot { disk: usize, sector: u64 },
    /// Something else on the machine overwrites a part of a drive.
    Wipe { disk: usize, what: Wipe },
    /// A copy of a drive is made. It is put in its place when the head has been stopped, or when a later one
    /// than this falls, if all legs were in sync then.
    Copy { disk: usize },
    /// The same, when the head ends next.
    CopyAtEnd { disk: usize },
    /// A drive was pulled, and its leg is out: the copy, made before this head began, is put in its place.
    Exchange { disk: usize },
    /// An order fails a drive.
    Fail { disk: usize },
    /// A drive shuts no head out for so long.
    HoldFences { disk: usize, time: Duration },
    /// Nothing that a head asks of the fences of drives begins before so long.
    LateFences { server: usize, time: Duration },
    /// The state directory of a server takes nothing.
    Freeze { server: usize },
    /// Files do not fit there, and what is written to try it does.
    Refuse { server: usize },
    /// What is done there takes up to so long from now on.
    SlowDirectory { server: usize, slow_us: u64 },
    /// It is so when the server's head begins next. Which file is damaged, and how, `pick` says.
    Directory { server: usize, what: Directory, pick: u64 },
    /// All state directories take again what is written there.
    Room,
    /// An order deals all lanes anew.
    TurnLanes,
    /// An order gives a volume that no host uses so many granules.
    Resize { volume: u64, granules: u64 },
    /// An order compares the legs of every mirror.
    Scrub,
    /// The next order goes to the head that follows.
    AskFollower,
    /// An order puts that head out.
    FenceFollower,
    /// That head leaves the system, and another one joins on its server.
    LeaveAndJoin,
}

impl Fault {
    /// A drive takes operations, and answers none.
    pub fn hangs(disk: usize) -> Self {
        Fault::Drive { disk, faults: Faults { hang: true, ..Faults::default() } }
    }
    /// A drive is gone, and comes back as another one.
    pub fn pulled(disk: usize) -> Self {
        Fault::Pull { disk, power: false }
    }
    /// A drive is well again.
    pub fn heals(disk: usize) -> Self {
        Fault::Drive { disk, faults: Faults::default() }
    }
    /// The head of a server alone falls before its next effect.
    pub fn fall(crash: Crash) -> Self {
        Fault::Doom { server: 0, effects: 0, crash }
    }
}

/// What is overwritten of a drive in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wipe {
    /// The label's first copy.
    First,
    /// Its second copy.
    Second,
    /// Both.
    Both,
    /// All in front of the data.
    Front,
    /// The same, and data.
    Long,
}

/// A step of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Act {
    /// When, since hosts began.
    pub after: Duration,
    /// What.
    pub fault: Fault,
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

/// What is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// `system create`.
    Create,
    /// `system leave` of the last head, after the other one was there and left.
    Leave,
}

/// How.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The process ends.
    Killed,
    /// Servers and drives lose their power.
    PowerCut,
    /// The process ends, and the file `link` of its state directory is gone: it starts alone.
    LinkLost,
}

/// Where the making or the end of a system is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Of what.
    pub doing: Doing,
    /// Effects of the Steward until then. An order that is over before is not cut off.
    pub after: u32,
    /// How.
    pub end: End,
    /// A leg is away meanwhile.
    pub away: Option<usize>,
}
