//! Planted bugs: mistakes on purpose. If the simulator finds them, it can find real ones.
//!
//! Each breaks one promise of SPECIFICATION.md at one place. Only the feature `planted` compiles them in, and one is
//! chosen by name at run time. Without the feature `planted(…)` is the constant `false`, and the product contains no
//! planted bug. `make mutants` looks for each of them. `make test` builds with the feature too, so that one build serves
//! the tests, which choose no bug, and the quick part of that search.

#[cfg(feature = "planted")]
macro_rules! worlds {
    () => {
        Worlds::Swarm
    };
    ($worlds:ident) => {
        Worlds::$worlds
    };
}

macro_rules! bugs {
    ($($bug:ident promise $promise:literal within $within:literal $(in $worlds:ident)?: $what:literal,)*) => {
        /// A mistake that can be planted.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Bug {
            $(#[doc = $what] $bug,)*
        }

        /// All bugs that can be planted, by promise.
        #[cfg(feature = "planted")]
        pub const BUGS: &[Planted] = &[
            $(Planted {
                bug: Bug::$bug,
                name: stringify!($bug),
                promise: $promise,
                within: $within,
                worlds: worlds!($($worlds)?),
                what: $what,
            },)*
        ];
    };
}

bugs! {
    FlushNowhere promise 1 within 100: "a flush is answered and sent to no drive",
    FlushErrorIgnored promise 1 within 800: "a leg whose flush failed stays in use",
    FuaDropped promise 1 within 100: "FUA is not passed on to the drives",
    ZeroesNotFlushed promise 1 within 3000: "zeroes with FUA are answered without a flush",
    NoRangeLock promise 2 within 100: "overlapping changes do not wait for each other",
    CopyRacesWrite promise 2 within 100: "a resync lets go of the range between its read and its write",
    WriteErrorIgnored promise 2 within 100: "a leg whose write failed stays in use",
    DeallocateUnequal promise 2 within 100: "deallocation is passed to legs that do not all read as zeroes",
    LateWriteFreesRange promise 2 within 1000 in Pairs: "a given-up write on the last leg frees its range",
    RefusedStaysRebuilding promise 2 within 300 in Pairs: "what the last leg refused stays on the leg being rebuilt",
    RefuserStays promise 2 within 0 in Pairs: "a leg that refused what another took stays when that one comes in sync",
    ReadOfRebuilding promise 3 within 600: "a leg that is being rebuilt is read",
    HedgeOfRebuilding promise 3 within 300 in Pairs: "a late read is sent to a leg that is being rebuilt",
    CrashReadWithoutCopy promise 3 within 1500: "a read after a crash is answered before the legs are equal",
    CrashCopyCached promise 3 within 1000 in Power: "what is read after a crash may stay in the drives' caches",
    CrashRegionCached promise 3 within 2000: "a region counts as clean after a crash before the caches are flushed",
    CrashCopySkipsInSync promise 3 within 100: "after a crash legs in sync are not made equal",
    ErrorBeforeRecord promise 3 within 300 in Pairs: "an error is answered before the loss of a leg is on record",
    LoginBeforeWritesEnd promise 3 within 100: "a host's next session begins while writes of its last one are at drives",
    AbortedStarts promise 3 within 100: "a write that waits starts after its abort was answered",
    LostStarts promise 3 within 100: "writes that wait start after their connection was lost",
    ClearedStarts promise 3 within 100 in Volumes: "a write whose piece is being cleared starts after its host took it back",
    ExpiryIgnored promise 3 within 100: "a controller whose keep-alive expires goes on",
    DataBeforeBit promise 4 within 100: "data go to the drives before the region's bit is durable",
    BitClearedBeforeFlush promise 4 within 100: "bits are cleared before the caches are flushed",
    BitClearedDegraded promise 4 within 150: "bits are cleared while a leg is absent",
    BitClearedRebuilding promise 4 within 700: "bits are cleared that a leg being rebuilt needs",
    BitClearedUnclean promise 4 within 300: "bits are cleared of regions that differ since a crash",
    BitMissingOnLeg promise 4 within 600 in Seesaw: "a bit counts as durable that a leg in sync has not got",
    LossNotAwaited promise 5 within 100: "a write is answered before the loss of a leg is on record",
    LossNotRecorded promise 5 within 300: "the loss of a leg is put on no drive",
    RecordedBeforeLegs promise 5 within 100: "a write is answered when the witness alone knows of its loss",
    WitnessOutlives promise 5 within 100 in Frozen: "a write is answered whose loss record an older witness contradicts",
    OlderCopyBelieved promise 5 within 100 in Older: "an older copy of a drive is taken for current after a stop in order",
    StopForgetsUnclean promise 3 within 1000: "legs that differ since a crash are believed after a stop in order",
    OwnBitmapIgnored promise 5 within 300 in Seesaw: "a leg returns without what its own bitmap says",
    SyncedWithoutFlush promise 5 within 2000 in Power: "a leg counts as in sync before its cache is flushed",
    TakenBackEarly promise 5 within 500 in Seesaw: "a leg is taken back while given-up writes may land on it",
    OldConfig promise 6 within 100: "the older of two configuration slots counts",
    RecordNotForced promise 6 within 600: "what the Steward writes may stay in the drives' caches",
    RecordOvertaken promise 6 within 800 in Pairs: "a record is written where one that was given up may still land",
    ChecksumIgnored promise 6 within 1500: "records and bitmaps are believed though their checksums are wrong",
    ReadIntoHeldBuffer promise 7 within 100 in Tight: "a read is answered from a buffer that the kernel may still write",
    HungBufferFree promise 7 within 150: "the buffer of an operation that hangs is used again",
    LoserBufferFree promise 7 within 150: "the buffer of a hedged read's loser is used again",
    NoDeadline promise 7 within 300: "operations of drives have no deadline",
    HungPlaces promise 7 within 1000: "what hangs keeps all places at an array",
    AbortedStands promise 8 within 100: "who is aborted while it waits for a place is forgotten",
    WaitsForHung promise 7 within 100 in Scarce: "writes wait for blocks that a drive keeps as it hangs",
    SilentIsAsked promise 8 within 100 in Scarce: "the last leg is asked again and again while it answers nothing",
    KeptIsAwaited promise 7 within 400 in Scarce: "a write waits for the record of a loss that the Steward has decided against",
    LastLegLost promise 7 within 150 in Pairs: "the last leg in sync is given up",
    KeptForGood promise 8 within 100 in Scarce: "what a drive that hangs keeps of the memory for data is not made up for",
    PeersBehindOwn promise 8 within 0 in Scarce: "commands of other shards wait while the shard's own have all their parts under way",
    NeverCutOff promise 8 within 100 in SlowPeers: "hosts that keep buffers are never cut off",
    LentUncounted promise 8 within 100 in SlowPeers: "buffers that a host holds are not counted",
    UnclearedHandedOut promise 13 within 100 in Volumes: "the space of a removed volume is handed out as it is",
    MarksNotDurable promise 13 within 0 in Volumes: "what is uncleared is only in memory",
    MarksBeforeRecord promise 13 within 0 in Volumes: "space is free before the loss of a leg that lacks its marks is on record",
    EdgesNotZeroed promise 13 within 0 in Volumes: "parts of pieces that are returned keep what they hold",
    PartOfPieceCleared promise 13 within 100 in Volumes: "the first write to a part of a piece leaves the rest as it is",
    ClearedBeforeFlush promise 13 within 150 in Volumes: "a piece counts as cleared while the zeroes may be in a cache only",
    ClearedBeforeRecord promise 13 within 0 in Volumes: "a piece counts as cleared although a leg without the zeroes may be kept",
    ClearedIsOldNews promise 13 within 0 in Volumes: "a shard believes that a region is cleared that was marked since",
    MapMissingOnLeg promise 13 within 0 in Volumes: "a leg that joins gets no map",
    UnclearedIsCompared promise 2 within 0 in Volumes: "a scrub compares what nobody may read",
    DealtByOldBits promise 2 within 300 in Dealt: "an array whose lanes are dealt anew goes by the bits of its import",
    DealtByOldMap promise 13 within 1000 in Dealt: "an array whose lanes are dealt anew goes by what was uncleared at its import",
    DealtUnquiet promise 2 within 300 in Dealt: "lanes are dealt anew while drives are at work for those who had them",
    HaltUnheeded promise 2 within 300 in Dealt: "commands of other shards go on where an array is halted",
    AppliedBeforeDurable promise 14 within 300: "a change counts before anything durable says it",
    WrittenPastApply promise 14 within 100: "something that is decided is changed by no change",
    ChangeLost promise 14 within 100: "a second state does not get a change",
    ChangeRepeated promise 14 within 100: "a second state gets a change twice",
    ChangesReordered promise 14 within 100: "a second state gets two changes in another order",
    ReadBeforeWrite promise 15 within 5000 in Decision: "a head reads the other's block before its own is written",
    AcceptedForgotten promise 15 within 5000 in Decision: "a block does not say what its head accepted",
    FormerLifeForgotten promise 15 within 30000 in Decision: "a head that starts forgets what it promised before",
    OutbidGoesOn promise 15 within 5000 in Decision: "a head goes on although the other has begun a higher ballot",
    SeenIgnored promise 15 within 5000 in Decision: "a head proposes its own record although another is accepted",
    HalfDecides promise 15 within 5000 in Decision: "one vote less than most decides",
    LetInUnfenced promise 16 within 500 in System: "a head is let in again before its former process is shut off every drive",
    AnyLifeIsIn promise 16 within 500 in System: "a head takes the process that it was before for itself",
    OutGoesOn promise 16 within 500 in System: "a head that is out goes on",
    ServedBeforeLastFence promise 16 within 500 in System: "one drive that has confirmed its fence is enough to serve from all",
    FenceTimedOutIsGood promise 16 within 500 in System: "a drive that was asked and has not confirmed counts as fenced",
    ServedUnlooked promise 16 within 8000 in System: "who leads serves although another was decided on while it shut out the one before",
    SilentVoterCounts promise 15 within 500 in System: "the other head's directory counts as having voted when it does not answer",
    FencedGoesOn promise 16 within 500 in System: "a head that most drives refuse goes on",
    LookKeptSecret promise 16 within 500 in System: "a head goes on as before although a look showed it what was decided",
    OverGoesOn promise 16 within 500 in System: "a process that learns that it is out ends what it had begun first",
    SameLifeAgain promise 16 within 500 in System: "a process that was put out is let in again, as the same",
    AcceptedIsNoNews promise 16 within 0 in System: "a look passes over what was accepted in a lower ballot than ours",
    LeadsBehind promise 16 within 500 in System: "a head leads although the other one alone has the latest hosts",
    EpochNotTold promise 16 within 0 in System: "a head does not hear what was decided while the link was cut",
    TakenUnfenced promise 16 within 100 in Heads: "a head takes pools over before the other one is shut off their drives",
    LateFenceIsGood promise 16 within 200 in Heads: "a drive that did not answer its fence in time counts as fenced",
    FirstFenceServes promise 16 within 100 in Heads: "a takeover serves from all drives once one of them has confirmed its fence",
    FencedIsBad promise 16 within 100 in Heads: "a drive that refuses a head that is out counts as one that cannot read its blocks",
    FollowerNotAwaited promise 16 within 500 in Heads: "an order is answered before the follower has what it changed",
    NotLookedAgain promise 16 within 0 in Heads: "records count that were read before the other head was shut out",
    ZeroesUnasked promise 3 within 0 in Heads: "a head that may be shut out answers zeroes without asking a drive",
    ReadsUnseeing promise 16 within 0 in Heads: "a head passes on what it reads long after it has looked whether it still leads",
    MissingLegUnawaited promise 16 within 0 in Heads: "a head goes on at once without a leg that the other one may still read",
    AdmittedUnasked promise 3 within 0 in Heads: "a host is let in though the other head still has writes of it",
    AdmittedUnfenced promise 3 within 0 in Heads: "a host is let in before a head that it was at is shut out",
    LanesUnfenced promise 2 within 0 in Heads: "lanes of a head that is gone are dealt before it is shut out",
    BereftIsClean promise 2 within 400 in Heads: "where a head that is gone was writing legs count as the same",
    ResentAfterAbort promise 3 within 0 in Turns: "a command that its host gave up is sent to the other head again",
    RunByOldMap promise 2 within 500 in Turns: "lanes are dealt while shards of the other head go on, and what they send by the old map is carried out",
    GreetedBeforeEnd promise 2 within 0 in Turns: "commands are sent again while they are still under way there",
    CreditWaits promise 8 within 20 in Full: "a head takes nothing of the other one while its own commands wait for credit there",
    FarLossUnawaited promise 5 within 0 in Heads: "a loss counts before shards of the other head know of it",
    ReadsBereft promise 2 within 0 in Heads: "a head reads where one that is gone was writing before it has compared the legs",
    OtherHoldsOn promise 5 within 0 in Heads: "a leg is taken back while the other head has writes there that it has given up",
    PathIsLeg promise 7 within 20 in Paths: "a drive that one head does not reach any more is lost, although the other one reaches it",
    ResetHereAlone promise 3 within 0 in Heads: "a logical unit reset ends what this head has alone",
    CcrAnsweredEarly promise 3 within 200 in Heads: "a Cross-Controller Reset is answered while commands of that controller are under way",
    CcrHereAlone promise 3 within 200 in Heads: "a Cross-Controller Reset ends what this head has alone",
    ServesUntried promise 16 within 0 in Heads: "shards of the other head use drives on which its fence is being tried",
    EarlyRefused promise 8 within 20 in Turns: "a command that comes before what it is about is refused",
    SyncedByHalf promise 5 within 0 in Heads: "a leg is in sync though nobody copied what a head was to copy that is gone",
    PortalLeavesAlone promise 3 within 0 in Heads: "a portal goes to the other head, and connections that came by it stay",
    PartingUnheeded promise 2 within 0 in Heads: "lanes of a head that goes as they are dealt anew count as quiet",
    OutRecords promise 5 within 0 in Heads: "a head that is out answers what waits for the record of a loss",
    OutHeadVotes promise 16 within 0 in Heads: "the directory of a head that is out votes, so that one drive more stops the other one",
    OldDirectoryLeads promise 16 within 0 in Heads: "a head leads by an older copy of its state directory",
    OutHeadsWitness promise 5 within 0 in Heads: "a leg is believed by the witness of a head that was out",
    OutAnswers promise 16 within 0 in Heads: "a head that is out answers orders",
}

/// Families of the simulator's worlds.
#[cfg(feature = "planted")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Worlds {
    /// Everything that may go wrong, in any mixture.
    Swarm,
    /// The same, where commands wait for memory.
    Tight,
    /// Both legs of one mirror fall ill, side by side.
    Pairs,
    /// Two shards lose different legs of one mirror at the same moment.
    Seesaw,
    /// A leg is lost while the state directory becomes read-only, and is found alone by the next head.
    Frozen,
    /// The head is stopped in order, and a drive exchanged for an older copy of itself.
    Older,
    /// The power goes again and again, and drives have volatile caches.
    Power,
    /// Lanes go from shard to shard.
    Dealt,
    /// Slow peers, which keep buffers, beside one host that works.
    SlowPeers,
    /// Volumes are removed, shrunk and made anew, on used drives.
    Volumes,
    /// Of the least memory, with many hosts.
    Scarce,
    /// Every order of what two heads do to decide on their next record: no seeds.
    Decision,
    /// Two heads that decide, shut each other out and let each other in again.
    System,
    /// Two whole heads over the same drives.
    Heads,
    /// The same, of which one loses its path to a drive.
    Paths,
    /// Two heads whose lanes go round under load.
    Turns,
    /// Two heads that wait for memory of each other.
    Full,
}

/// One of the bugs.
#[cfg(feature = "planted")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planted {
    /// Which.
    pub bug: Bug,
    /// Its name on the command line.
    pub name: &'static str,
    /// The promise of SPECIFICATION.md that it breaks.
    pub promise: u8,
    /// The simulator must find it within so many seeds, from 0. 0: a blind spot, it has not found it yet.
    pub within: u64,
    /// Where it is looked for.
    pub worlds: Worlds,
    /// The mistake, in words.
    pub what: &'static str,
}

/// Whether this mistake is to be made: never, without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn planted(_: Bug) -> bool {
    false
}

#[cfg(feature = "planted")]
thread_local! {
    static CHOSEN: core::cell::Cell<Option<Bug>> = const { core::cell::Cell::new(None) };
}

/// Whether this mistake is to be made by machines of this thread.
#[cfg(feature = "planted")]
pub fn planted(bug: Bug) -> bool {
    CHOSEN.get() == Some(bug)
}

/// From now on machines of this thread make this mistake, or none.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    CHOSEN.set(bug);
}
