//! Planted bugs: mistakes on purpose. If the simulator finds them, it can find real ones.
//!
//! Each breaks one promise of SPECIFICATION.md at one place. Only the feature `planted` compiles them in, and one is
//! chosen by name at run time. Without the feature `planted(…)` is the constant `false`, and the product contains no
//! planted bug. `make mutants` looks for each of them. `make test` builds with the feature too, so that one build serves
//! the tests, which choose no bug, and the quick part of that search.
//!
//! A world arms a bug if the bug makes a difference in it. That is counted, so `planted(…)` is asked last, where all else
//! says that the answer counts: `wrong || planted(…)`, `right && !planted(…)`. Where the bug takes another value, that may
//! be the right one as well: `planted_if(…, || other != right)`.
//!
//! Mutants made by rule (docs/rfcs/0018-mutants.md) are chosen and counted here, too. None is in this tree: `mutate`
//! writes them into a copy of it.

#[cfg(feature = "planted")]
mod mutant;
#[cfg(feature = "planted")]
pub use mutant::{compared, counted, cut, flipped, former, held, is_chosen, mutant, skipping};

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
    ($(#[doc = $what:literal] $bug:ident promise $promise:literal within $within:literal $(in $worlds:ident)?,)*) => {
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
                what: $what.trim_ascii(),
            },)*
        ];
    };
}

// What each does stands behind its name in tables: no capital letter, no full stop.
bugs! {
    /// a flush is answered and sent to no drive
    FlushNowhere promise 1 within 100,
    /// a leg whose flush failed stays in use
    FlushErrorIgnored promise 1 within 800,
    /// FUA is not passed on to the drives
    FuaDropped promise 1 within 100,
    /// zeroes with FUA are answered without a flush
    ZeroesNotFlushed promise 1 within 3000,
    /// overlapping changes do not wait for each other
    NoRangeLock promise 2 within 100,
    /// a resync lets go of the range between its read and its write
    CopyRacesWrite promise 2 within 100,
    /// a leg whose write failed stays in use
    WriteErrorIgnored promise 2 within 100,
    /// deallocation is passed to legs that do not all read as zeroes
    DeallocateUnequal promise 2 within 100,
    /// a given-up write on the last leg frees its range
    LateWriteFreesRange promise 2 within 1000 in Pairs,
    /// what the last leg refused stays on the leg being rebuilt
    RefusedStaysRebuilding promise 2 within 300 in Pairs,
    /// a leg that refused what another took stays when that one comes in sync
    RefuserStays promise 2 within 0 in Pairs,
    /// a leg that is being rebuilt is read
    ReadOfRebuilding promise 3 within 600,
    /// a late read is sent to a leg that is being rebuilt
    HedgeOfRebuilding promise 3 within 300 in Pairs,
    /// a read after a crash is answered before the legs are equal
    CrashReadWithoutCopy promise 3 within 1500,
    /// what is read after a crash may stay in the drives' caches
    CrashCopyCached promise 3 within 1000 in Power,
    /// a region counts as clean after a crash before the caches are flushed
    CrashRegionCached promise 3 within 2000,
    /// after a crash legs in sync are not made equal
    CrashCopySkipsInSync promise 3 within 100,
    /// an error is answered before the loss of a leg is on record
    ErrorBeforeRecord promise 3 within 300 in Pairs,
    /// a host's next session begins while writes of its last one are at drives
    LoginBeforeWritesEnd promise 3 within 100,
    /// a write that waits starts after its abort was answered
    AbortedStarts promise 3 within 100,
    /// writes that wait start after their connection was lost
    LostStarts promise 3 within 100,
    /// a write whose piece is being cleared starts after its host took it back
    ClearedStarts promise 3 within 100 in Volumes,
    /// a controller whose keep-alive expires goes on
    ExpiryIgnored promise 3 within 100,
    /// data go to the drives before the region's bit is durable
    DataBeforeBit promise 4 within 100,
    /// bits are cleared before the caches are flushed
    BitClearedBeforeFlush promise 4 within 100,
    /// bits are cleared while a leg is absent
    BitClearedDegraded promise 4 within 150,
    /// bits are cleared that a leg being rebuilt needs
    BitClearedRebuilding promise 4 within 700,
    /// bits are cleared of regions that differ since a crash
    BitClearedUnclean promise 4 within 300,
    /// a bit counts as durable that a leg in sync has not got
    BitMissingOnLeg promise 4 within 600 in Seesaw,
    /// a write is answered before the loss of a leg is on record
    LossNotAwaited promise 5 within 100,
    /// the loss of a leg is put on no drive
    LossNotRecorded promise 5 within 300,
    /// a write is answered when the witness alone knows of its loss
    RecordedBeforeLegs promise 5 within 100,
    /// a write is answered whose loss record an older witness contradicts
    WitnessOutlives promise 5 within 100 in Frozen,
    /// an older copy of a drive is taken for current
    OlderCopyBelieved promise 5 within 100 in Older,
    /// a leg that was put out and is an older copy than its loss is copied by bitmap
    OlderLegByBitmap promise 5 within 100 in Older,
    /// legs that differ since a crash are believed after a clean stop
    StopForgetsUnclean promise 3 within 1000,
    /// a leg returns without what its own bitmap says
    OwnBitmapIgnored promise 5 within 300 in Seesaw,
    /// nobody looks whether the labels of drives in use are there
    LabelUnwatched promise 5 within 100 in Wiped,
    /// a leg whose label was lost comes back by the bitmaps
    WipedByBitmap promise 2 within 100 in Wiped,
    /// a leg counts as in sync before its cache is flushed
    SyncedWithoutFlush promise 5 within 2000 in Power,
    /// a leg is taken back while given-up writes may land on it
    TakenBackEarly promise 5 within 500 in Seesaw,
    /// an import counts although no leg in sync took both its record and its configuration
    ImportUntaken promise 14 within 0 in Pairs,
    /// a configuration that the state directory alone has beside drives that are away does not count
    KeptIsNoConfig promise 14 within 0 in Pairs,
    /// a leg that failed is taken back at the next start, though nobody returned it
    FailedComesBack promise 6 within 20 in Failed,
    /// the older of two configuration slots counts
    OldConfig promise 6 within 100,
    /// what the Steward writes may stay in the drives' caches
    RecordNotForced promise 6 within 600,
    /// a record is written where one that was given up may still land
    RecordOvertaken promise 6 within 800 in Pairs,
    /// records and bitmaps are believed though their checksums are wrong
    ChecksumIgnored promise 6 within 1500,
    /// a read is answered from a buffer that the kernel may still write
    ReadIntoHeldBuffer promise 7 within 100 in Tight,
    /// the buffer of an operation that hangs is used again
    HungBufferFree promise 7 within 150,
    /// the buffer of a hedged read's loser is used again
    LoserBufferFree promise 7 within 150,
    /// operations of drives have no deadline
    NoDeadline promise 7 within 300,
    /// what hangs keeps all places at an array
    HungPlaces promise 7 within 1000,
    /// who is aborted while it waits for a place is forgotten
    AbortedStands promise 8 within 100,
    /// writes wait for blocks that a drive keeps as it hangs
    WaitsForHung promise 7 within 100 in Scarce,
    /// the last leg is asked again and again while it answers nothing
    SilentIsAsked promise 8 within 500 in Scarce,
    /// a write waits for the record of a loss that the Steward has decided against
    KeptIsAwaited promise 7 within 400 in Scarce,
    /// the last leg in sync is given up
    LastLegLost promise 7 within 150 in Pairs,
    /// what a drive that hangs keeps of the memory for data is not made up for
    KeptForGood promise 8 within 100 in Scarce,
    /// commands of other shards wait while the shard's own have all their parts under way
    PeersBehindOwn promise 8 within 0 in Scarce,
    /// hosts that keep buffers are never cut off
    NeverCutOff promise 8 within 100 in SlowPeers,
    /// buffers that a host holds are not counted
    LentUncounted promise 8 within 100 in SlowPeers,
    /// answers that a host does not take need no slots
    UnsentUncounted promise 8 within 100 in SlowPeers,
    /// a login is let in by what its host had to prove when it began
    LoginOutlives promise 10 within 80 in Access,
    /// a session goes on after what it was let in by was taken away
    SessionOutlives promise 10 within 20 in Access,
    /// commands start on a volume that was taken from their host
    UnexportedStarts promise 10 within 20 in Access,
    /// the space of a removed volume is handed out as it is
    UnclearedHandedOut promise 13 within 100 in Volumes,
    /// what is uncleared is only in memory
    MarksNotDurable promise 13 within 0 in Volumes,
    /// space is free before the loss of a leg that lacks its marks is on record
    MarksBeforeRecord promise 13 within 0 in Volumes,
    /// parts of pieces that are returned keep what they hold
    EdgesNotZeroed promise 13 within 0 in Volumes,
    /// the first write to a part of a piece leaves the rest as it is
    PartOfPieceCleared promise 13 within 100 in Volumes,
    /// a piece counts as cleared while the zeroes may be in a cache only
    ClearedBeforeFlush promise 13 within 150 in Volumes,
    /// a piece counts as cleared although a leg without the zeroes may be kept
    ClearedBeforeRecord promise 13 within 0 in Volumes,
    /// a shard believes that a region is cleared that was marked since
    ClearedIsOldNews promise 13 within 0 in Volumes,
    /// a leg that joins gets no map
    MapMissingOnLeg promise 13 within 0 in Volumes,
    /// a scrub compares what nobody may read
    UnclearedIsCompared promise 2 within 0 in Volumes,
    /// an array whose lanes are dealt anew goes by the bits of its import
    DealtByOldBits promise 2 within 300 in Dealt,
    /// an array whose lanes are dealt anew goes by what was uncleared at its import
    DealtByOldMap promise 13 within 1000 in Dealt,
    /// lanes are dealt anew while drives are at work for those who had them
    DealtUnquiet promise 2 within 300 in Dealt,
    /// commands of other shards go on where an array is halted
    HaltUnheeded promise 2 within 300 in Dealt,
    /// a file that was cut off or changed is read as far as it goes
    CutFileBelieved promise 10 within 100 in Directory,
    /// a file that may have been written although its order was refused is left so
    UnsettledForgotten promise 10 within 100 in Directory,
    /// a change counts before anything durable says it
    AppliedBeforeDurable promise 14 within 300,
    /// something that is decided is changed by no change
    WrittenPastApply promise 14 within 100,
    /// a second state does not get a change
    ChangeLost promise 14 within 100,
    /// a second state gets a change twice
    ChangeRepeated promise 14 within 100,
    /// a second state gets two changes in another order
    ChangesReordered promise 14 within 100,
    /// a head reads the other's block before its own is written
    ReadBeforeWrite promise 15 within 5000 in Decision,
    /// a block does not say what its head accepted
    AcceptedForgotten promise 15 within 5000 in Decision,
    /// a head that starts forgets what it promised before
    FormerLifeForgotten promise 15 within 30000 in Decision,
    /// a head goes on although the other has begun a higher ballot
    OutbidGoesOn promise 15 within 5000 in Decision,
    /// a head proposes its own record although another is accepted
    SeenIgnored promise 15 within 5000 in Decision,
    /// one vote less than most decides
    HalfDecides promise 15 within 5000 in Decision,
    /// a head is let in again before its former process is shut off every drive
    LetInUnfenced promise 16 within 500 in System,
    /// a head that takes over lets go of every drive that does not confirm in time
    FencesGivenUp promise 16 within 100 in Waits,
    /// what is late on a loaded machine is taken for dead as soon as on an idle one
    LoadIsDeath promise 16 within 100 in Waits,
    /// a head that is put out again and again for the same cause is let in again at once each time
    ReturnsAtOnce promise 16 within 100 in Waits,
    /// a leg whose drive does not confirm that the other head is shut off it stays, and its mirror waits
    UnfencedLegStays promise 7 within 100 in Waits,
    /// a mirror is written to at a takeover before all of its drives have confirmed
    LanesBehindFence promise 16 within 100 in Waits,
    /// a head takes the process that it was before for itself
    AnyLifeIsIn promise 16 within 500 in System,
    /// a head that is out goes on
    OutGoesOn promise 16 within 500 in System,
    /// one drive that has confirmed its fence is enough to serve from all
    ServedBeforeLastFence promise 16 within 500 in System,
    /// a drive that was asked and has not confirmed counts as fenced
    FenceTimedOutIsGood promise 16 within 500 in System,
    /// who leads serves although another was decided on while it shut out the one before
    ServedUnlooked promise 16 within 8000 in System,
    /// the other head's directory counts as having voted when it does not answer
    SilentVoterCounts promise 15 within 600 in System,
    /// a head that most drives refuse goes on
    FencedGoesOn promise 16 within 500 in System,
    /// a head goes on as before although a look showed it what was decided
    LookKeptSecret promise 16 within 500 in System,
    /// a process that learns that it is out ends what it had begun first
    OverGoesOn promise 16 within 500 in System,
    /// a process that was put out is let in again, as the same
    SameLifeAgain promise 16 within 500 in System,
    /// a look passes over what was accepted in a lower ballot than ours
    AcceptedIsNoNews promise 16 within 0 in System,
    /// a head leads although the other one alone has the latest hosts
    LeadsBehind promise 16 within 500 in System,
    /// a head does not hear what was decided while the link was cut
    EpochNotTold promise 16 within 0 in System,
    /// a head takes pools over before the other one is shut off their drives
    TakenUnfenced promise 16 within 100 in Heads,
    /// a drive that did not answer its fence in time counts as fenced
    LateFenceIsGood promise 16 within 200 in Heads,
    /// a takeover serves from all drives once one of them has confirmed its fence
    FirstFenceServes promise 16 within 100 in Heads,
    /// a drive that refuses a head that is out counts as one that cannot read its blocks
    FencedIsBad promise 16 within 100 in Heads,
    /// an order is answered before the follower has what it changed
    FollowerNotAwaited promise 16 within 500 in Heads,
    /// records count that were read before the other head was shut out
    NotLookedAgain promise 16 within 0 in Heads,
    /// a head that may be shut out answers zeroes without asking a drive
    ZeroesUnasked promise 3 within 0 in Heads,
    /// a head passes on what it reads long after it has looked whether it still leads
    ReadsUnseeing promise 16 within 0 in Heads,
    /// a head goes on at once without a leg that the other one may still read
    MissingLegUnawaited promise 16 within 0 in Heads,
    /// a host is let in though the other head still has writes of it
    AdmittedUnasked promise 3 within 0 in Heads,
    /// a host is let in before a head that it was at is shut out
    AdmittedUnfenced promise 3 within 0 in Heads,
    /// lanes of a head that is gone are dealt before it is shut out
    LanesUnfenced promise 2 within 0 in Heads,
    /// where a head that is gone was writing legs count as the same
    BereftIsClean promise 2 within 400 in Heads,
    /// a command that its host gave up is sent to the other head again
    ResentAfterAbort promise 3 within 0 in Turns,
    /// lanes are dealt while shards of the other head go on, and what they send by the old map is carried out
    RunByOldMap promise 2 within 500 in Turns,
    /// commands are sent again while they are still under way there
    GreetedBeforeEnd promise 2 within 0 in Turns,
    /// a head takes nothing of the other one while its own commands wait for credit there
    CreditWaits promise 8 within 20 in Full,
    /// a loss counts before shards of the other head know of it
    FarLossUnawaited promise 5 within 0 in Heads,
    /// a head reads where one that is gone was writing before it has compared the legs
    ReadsBereft promise 2 within 0 in Heads,
    /// a leg is taken back while the other head has writes there that it has given up
    OtherHoldsOn promise 5 within 0 in Heads,
    /// a flush is carried out by the head where it arrives, though that does not reach every leg
    FlushHere promise 1 within 30 in Outages,
    /// a flush does not cover a leg that joins while it is under way
    FlushMissesJoined promise 1 within 0 in Power,
    /// a head goes on in its lanes without a leg in sync that it does not reach
    OwnerSkipsUnreached promise 5 within 0 in Heads,
    /// a drive that one head does not reach any more is lost, although the other one reaches it
    PathIsLeg promise 7 within 20 in Paths,
    /// a head reads where it reaches no leg, although the other one reaches all
    ReadsIgnoreReach promise 7 within 100 in Paths,
    /// a logical unit reset ends what this head has alone
    ResetHereAlone promise 3 within 0 in Heads,
    /// a Cross-Controller Reset is answered while commands of that controller are under way
    CcrAnsweredEarly promise 3 within 200 in Heads,
    /// a Cross-Controller Reset ends what this head has alone
    CcrHereAlone promise 3 within 200 in Heads,
    /// shards of the other head use drives on which its fence is being tried
    ServesUntried promise 16 within 0 in Heads,
    /// a command that comes before what it is about is refused
    EarlyRefused promise 8 within 20 in Turns,
    /// a leg is in sync though nobody copied what a head was to copy that is gone
    SyncedByHalf promise 5 within 0 in Heads,
    /// a portal goes to the other head, and connections that came by it stay
    PortalLeavesAlone promise 3 within 0 in Heads,
    /// lanes of a head that goes as they are dealt anew count as quiet
    PartingUnheeded promise 2 within 0 in Heads,
    /// a head that is out answers what waits for the record of a loss
    OutRecords promise 5 within 0 in Heads,
    /// the directory of a head that is out votes, so that one drive more stops the other one
    OutHeadVotes promise 16 within 0 in Heads,
    /// a head leads by an older copy of its state directory
    OldDirectoryLeads promise 16 within 0 in Heads,
    /// a leg is believed by the witness of a head that was out
    OutHeadsWitness promise 5 within 0 in Heads,
    /// a head that is out answers orders
    OutAnswers promise 16 within 0 in Heads,
    /// lanes are dealt anew, and of several arrays only the first goes by what its legs say is uncleared
    FirstMapOnly promise 13 within 100 in Dealt,
    /// a head whose directory knows of no record begins a system of its own at once
    BlankBegins promise 16 within 400 in Mixed,
    /// the shards of the other head count as knowing a pool of which arrays still wait for their fences
    KnownToAll promise 2 within 0 in Mixed,
    /// a shard that is told of another membership goes on by what it reached before
    FormerReach promise 7 within 150 in Mixed,
    /// of a returned range only the first region is marked as uncleared
    FirstRegionMarked promise 13 within 100 in Volumes,
    /// a follower says that it has hosts or portals before it has kept the record that marks their change
    FileBeforeRecord promise 16 within 0 in Mixed,
    /// a follower counts as having all files before it has said so of the last one
    SyncedUnheard promise 16 within 0 in Mixed,
    /// hosts or portals are changed, and no record says who has the latest
    ChangeUnmarked promise 16 within 100 in Heads,
    /// returned space counts as marked while the last block of the map is on its way
    MarkOnItsWay promise 13 within 100 in Volumes,
    /// that an array is at rest counts, though it is said of an attempt before
    RestOfBefore promise 2 within 0 in Mixed,
    /// what a process of the other head has applied counts for the next one
    AppliedStays promise 5 within 100 in Heads,
    /// shards of a head that is gone stay halted for those of the next process
    HaltStays promise 2 within 100 in Turns,
    /// what a drive confirmed as the other head stood before counts
    StandingOfBefore promise 16 within 0 in Mixed,
    /// that nothing of the other head is under way counts, though it is said of when it went before
    PartingOfBefore promise 3 within 0 in Mixed,
    /// of the lanes of a head that is gone only the first counts as different on legs
    FirstLaneUnclean promise 2 within 100 in Heads,
    /// what came early from a far shard stays when its connection ends
    EarlyStays promise 3 within 0 in Mixed,
    /// a command that was at a head which is gone is done anew though its host gave it up
    AbortForgotten promise 3 within 0 in Mixed,
    /// hosts are let in when the first shard has nothing more of a head that is out
    FirstShardParts promise 3 within 100 in Heads,
    /// a fence takes the key of the last process alone, and one of a process before stays
    StaleKeyStays promise 16 within 0 in Mixed,
    /// credit of a read that failed at the other head is not back
    FailedReadCosts promise 8 within 0 in Mixed,
    /// granted memory of a read that is answered as zeroes stays in use
    ZeroedReadStays promise 8 within 0 in Mixed,
    /// granted memory of a command that never began stays in use when its connection ends
    ForgottenStays promise 8 within 100 in Turns,
    /// granted memory of an answer that was being sent stays in use when its connection ends
    HalfSentStays promise 8 within 0 in Mixed,
    /// another shard's command that is taken out of its line still counts as waiting
    TakenStaysCounted promise 8 within 100 in Turns,
    /// slots that were promised to a connection stay promised when it is gone
    PromisedStays promise 8 within 100 in Heads,
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
    /// The state directory of a head alone refuses writes, and its files are damaged between its lives.
    Directory,
    /// The head is stopped in order, and a drive exchanged for an older copy of itself.
    Older,
    /// Something else overwrites the label of a drive in use, or more.
    Wiped,
    /// The power goes again and again, and drives have volatile caches.
    Power,
    /// Lanes go from shard to shard.
    Dealt,
    /// Slow peers, which keep buffers, beside one host that works.
    SlowPeers,
    /// An order fails a drive, and the head falls.
    Failed,
    /// Volumes are removed, shrunk and made anew, on used drives.
    Volumes,
    /// An operator changes hosts while they log in.
    Access,
    /// Of the least memory, with many hosts.
    Scarce,
    /// Every order of what two heads do to decide on their next record: no seeds.
    Decision,
    /// Two heads, and one thing that goes wrong: hosts wait no longer than they may.
    Waits,
    /// Two heads that decide, shut each other out and let each other in again.
    System,
    /// Two whole heads over the same drives.
    Heads,
    /// The same, of which one loses its path to a drive, or to all legs of a mirror.
    Paths,
    /// The same, and the power of everything goes meanwhile.
    Outages,
    /// Two heads whose lanes go round under load.
    Turns,
    /// Two heads that wait for memory of each other.
    Full,
    /// Any fault of two heads may happen, each kind at a rate of its own.
    Mixed,
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
    /// The simulator must find it within so many worlds that arm it, from seed 0. 0: a blind spot, it has not found it yet.
    pub within: u64,
    /// Where it is looked for.
    pub worlds: Worlds,
    /// The mistake: its docstring.
    pub what: &'static str,
}

/// Whether this mistake is to be made: never, without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn planted(_: Bug) -> bool {
    false
}

/// Whether this mistake is to be made, and makes a difference here: never, without the feature.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub fn planted_if(_: Bug, _: impl FnOnce() -> bool) -> bool {
    false
}

/// What is wrong in worlds of a thread.
#[cfg(feature = "planted")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A planted bug.
    Bug(Bug),
    /// A mutant, by its number in this build.
    Mutant(u32),
}

#[cfg(feature = "planted")]
thread_local! {
    static CHOSEN: core::cell::Cell<Option<Mistake>> = const { core::cell::Cell::new(None) };
    static ARMED: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Whether this mistake is to be made by machines of this thread. If so, it counts as a difference.
#[cfg(feature = "planted")]
pub fn planted(bug: Bug) -> bool {
    planted_if(bug, || true)
}

/// Whether this mistake is to be made by machines of this thread, and makes a difference here. If so, it counts as one.
#[cfg(feature = "planted")]
pub fn planted_if(bug: Bug, differs: impl FnOnce() -> bool) -> bool {
    counted(CHOSEN.get() == Some(Mistake::Bug(bug)) && differs())
}

/// From now on machines of this thread make this mistake, or none. It has made no difference yet.
#[cfg(feature = "planted")]
pub fn plant(mistake: Option<Mistake>) {
    CHOSEN.set(mistake);
    ARMED.set(0);
}

/// How often the mistake has made a difference in this thread since it was planted.
#[cfg(feature = "planted")]
pub fn armed() -> u64 {
    ARMED.get()
}

#[cfg(test)]
#[cfg(feature = "planted")]
mod tests {
    use super::*;

    #[test]
    fn a_bug_is_armed_where_it_is_planted_and_makes_a_difference() {
        plant(Some(Mistake::Bug(Bug::FlushNowhere)));
        assert!(!planted(Bug::FuaDropped) && !planted_if(Bug::FuaDropped, || true));
        assert!(!planted_if(Bug::FlushNowhere, || false));
        assert_eq!(armed(), 0);
        assert!(planted(Bug::FlushNowhere) && planted_if(Bug::FlushNowhere, || true));
        assert_eq!(armed(), 2);
        plant(Some(Mistake::Bug(Bug::FlushNowhere)));
        assert_eq!(armed(), 0, "it was planted anew");
        plant(None);
        assert!(!planted(Bug::FlushNowhere));
    }

    #[test]
    fn nobody_asks_for_the_difference_that_another_bug_makes() {
        plant(Some(Mistake::Bug(Bug::FlushNowhere)));
        planted_if(Bug::FuaDropped, || unreachable!("it is not planted"));
        plant(None);
    }
}
