//! Findings about two heads, and the head itself.

use crate::{
    AlarmFault, DriveFault, JoinDenial, KeyFault, LinkFault, NoFence, OutReason, ShutOutFault, StateFault,
    TokenFault, TrialFault, TriedAddress, UnreachedFault, Why,
};

refusals! {
    /// Why an order about two heads, and the head itself was not carried out.
    pub enum SystemRefusal {
        /// The head is stopping.
        Stopping = NotReady @ "",
        /// The head is being stopped, and nothing of the order was begun.
        StoppingNotBegun = NotReady @ "",
        /// The head is being stopped, and the order was given up.
        StoppingGivenUp = NotReady @ "",
        /// An order under way was given up as the head was stopped.
        OrderGivenUp = NotReady @ "",
        /// This head does not lead, and the one that does is not reached.
        LeaderUnreached = NotReady @ "",
        /// The request went to the head that leads, and no answer came: it may have been carried out.
        AnswerLost = NotReady @ "",
        /// Neither head leads, so nothing can be ordered.
        NobodyLeads = NotReady @ "",
        /// This head is in no system of two.
        HeadAlone = NotFound @ "",
        /// This head is one of a system already.
        HeadInSystem = Conflict @ "",
        /// The system has both its heads, so that there is no token for another one.
        SystemComplete = Conflict @ "",
        /// The name of a head is too long.
        HeadNameTooLong { bytes: usize, bytes_max: usize } = Invalid @ "name",
        /// The state directory did not take the first decision of the system.
        FirstDecisionFailed = Internal @ "",
        /// Two heads cannot use a drive of a pool.
        DriveUnshareable {
            drive: String,
            why: NoFence,
            /// It is to become one of a pool; else it is one already.
            new: bool,
        } = Conflict @ "",
        /// The other head is still a member: it must leave first.
        OtherHeadIn { head: String } = Conflict @ "",
        /// Too few voters are reached to release the other head.
        ReleaseVotersUnreached { head: String } = NotReady @ "",
        /// Drives are not known to have shut off the other head.
        ReleaseDrivesLate { head: String, drives: Vec<String> } = NotReady @ "",
        /// There is another head in the system.
        OtherHeadThere = Conflict @ "",
        /// The other head leads.
        OtherHeadLeads = Conflict @ "",
        /// The other head is there, or too few voters are reached to lead.
        LeadVotersUnreached = NotReady @ "",
        /// The head that leads puts the other one out, and this one does not lead.
        FenceNotLeading = NotReady @ "",
        /// Too few voters are reached to put the other head out.
        FenceVotersUnreached = NotReady @ "",
        /// This daemon cannot be one of two heads.
        SystemUnsupported = Internal @ "",
        /// This is no address of the link; `port`: one with a port is asked for.
        LinkAddressInvalid { address: String, port: bool } = Invalid @ "link",
        /// A link has another number of networks.
        LinkNetworksInvalid { networks: usize, networks_max: usize } = Invalid @ "link",
        /// This is not the address of one network port.
        LinkAddressUnusable { address: String } = Invalid @ "link",
        /// The two addresses of a network are of different families.
        LinkFamiliesDiffer {
            own: String,
            /// Of the other head.
            address: String,
        } = Invalid @ "link",
        /// The other head must know the port.
        LinkPortMissing { address: String } = Invalid @ "link",
        /// Two networks of the link have the same address.
        LinkAddressTwice { address: String } = Invalid @ "link",
        /// The link cannot listen at an address.
        LinkAddressNotBound { address: String, errno: i32 } = Invalid @ "link",
        /// The thread of the link does not start.
        LinkNotStarted { errno: i32 } = Internal @ "",
        /// The file `link` of the state directory cannot be written.
        LinkFileNotWritten { errno: i32 } = Internal @ "",
        /// The file `link` of the state directory cannot be removed.
        LinkFileNotRemoved { errno: i32 } = Internal @ "",
        /// No key can be made for the link.
        LinkKeyNotMade {
            /// What the maker of keys says.
            error: String,
        } = Internal @ "",
        /// The file of the link's key cannot be used.
        LinkKeyUnusable { path: String, why: KeyFault } = Internal @ "",
        /// The operating system gives no random bytes.
        RandomUnavailable = Internal @ "",
        /// The token by which this head was to join cannot be used.
        TokenUnusable { why: TokenFault } = Invalid @ "token",
        /// The token is of another number of networks than this head has.
        JoinNetworksDiffer { own: usize, token: usize } = Invalid @ "link",
        /// No address of the token leads to the other head.
        HeadUnreached { tried: Vec<TriedAddress> } = NotReady @ "",
        /// The other head does not let this one join.
        JoinDenied { why: JoinDenial } = Conflict @ "",
        /// The other head may have let this one join: its answer did not arrive.
        JoinUnanswered { address: String, why: UnreachedFault } = NotReady @ "",
        /// A head that joins a system has no pool of its own.
        HeadHasPool { pool: String } = Conflict @ "",
        /// The head that leads lets the other one go, and this one does not lead.
        ReleaseNotLeading = NotReady @ "",
        /// The head that leads did not let this one go; without a reason: it is not reached.
        HeadNotReleased { why: Option<Box<Why>> } = Conflict @ "",
        /// The system has no such head.
        HeadUnknown { name: String, heads: Vec<NamedHead> } = NotFound @ "head",
        /// Shards of the other head cannot be reached.
        ShardsUnreached = NotReady @ "link",
        /// Pools did not come to rest, and their lanes stay where they are.
        LanesNotMoved { pools: Vec<String> } = NotReady @ "pool",
    }
}

findings! {
    /// Why something about two heads, and the head itself is not optimal.
    pub enum SystemCause {
        /// This head is starting, and serves nobody yet.
        HeadStarts,
        /// This head does not lead: the other one is refused at the link.
        NotLeadingLinkRefused { why: LinkFault },
        /// This head does not lead yet.
        NotLeadingYet,
        /// This head does not lead, and the other one is not reached.
        NotLeadingUnreached { head: String, name: String },
        /// Both heads are there, and neither can lead: most voters are not reached.
        NeitherLeads { reached: u16, drives: u16 },
        /// The other head is not reached, and this one was not ready to take over.
        NotReadyToLead { head: String, name: String },
        /// The other head is refused at the link.
        OtherHeadRefused { why: LinkFault },
        /// The other head is out, for an unknown reason.
        OtherHeadOut { head: String, name: String },
        /// This head has put the other one out.
        OtherHeadPutOut {
            head: String,
            name: String,
            /// As the API prints times.
            since: Option<String>,
            why: Option<OutReason>,
            /// Nothing but the link was cut.
            lives: bool,
            shut_off: u16,
            drives: u16,
            /// Its process is there, by the link.
            linked: bool,
            /// Why its state directory takes nothing, as it says.
            lacks: Option<StateFault>,
            /// It is let in after a pause, as it was put out again and again for the same reason.
            pauses: bool,
        },
        /// The follower is not ready to take over yet.
        FollowerNotReady { head: String, name: String },
        /// The follower is not ready to take over: a file of the leader's state directory cannot be read or is not whole, so it does not get it.
        FollowerWithoutFile { head: String, name: String, leader: String, file: String, path: String },
        /// This head does not see most of the voters.
        VotersUnreached,
        /// The follower does not reach a drive.
        FollowerLacksDrive { head: String, name: String, drive: String },
        /// A drive has not confirmed that the other head is shut out.
        DriveNotShutOff { drive: String, head: String },
        /// The fence of a drive does not hold.
        FenceFails { head: String, name: String, drive: String, why: TrialFault },
        /// The fence of a drive could not be tried.
        FenceUntried { head: String, name: String, drive: String, why: TrialFault },
        /// Another process listens at the address of the API.
        ApiAddressInUse { address: String, port: u16 },
        /// This machine does not have the address of the API.
        ApiAddressMissing { address: String, ip: String },
        /// The API cannot listen at its address.
        ApiNotListening {
            address: String,
            /// As the operating system has it.
            error: String,
        },
        /// The daemon crashed too often, and did not import the pools.
        HeldBack {
            crashes: usize,
            /// The last crash, as it is on record.
            last: String,
            /// The file of the crash record.
            path: String,
            /// The file of the configuration, if it is not the usual one.
            config: Option<String>,
        },
    }
}

events! {
    /// What happened to two heads, and the head itself.
    pub enum SystemEvent {
        /// The head was stopped in order.
        HeadStopped = Note,
        /// The head was stopped, and its pools are checked at the next start.
        HeadStoppedUnclean { why: Box<Why> } = Warning,
        /// A decision put this head out while it was away.
        HeadWasPutOut { epoch: u64 } = Warning,
        /// The state directory is an older copy.
        StateDirectoryOlder { epoch: u64 } = Error,
        /// This head does not see most of the voters.
        VotersUnreached {
            /// Drives that vote and are reached.
            reached: u16,
            drives: u16,
            linked: bool,
        } = Error,
        /// This head reaches most voters again.
        VotersReached = Note,
        /// The other head is refused at the link.
        OtherHeadRefused { head: String, name: String, why: LinkFault } = Warning,
        /// This head leads, and there is no other one.
        HeadLeads { epoch: u64 } = Note,
        /// This head leads, and the other one is out.
        HeadLeadsAlone { epoch: u64, head: String, name: String, why: Option<OutReason> } = Warning,
        /// This head follows.
        HeadFollows { epoch: u64, head: String, name: String } = Note,
        /// The other head is out.
        OtherHeadOut { epoch: u64, head: String, name: String, why: OutReason } = Warning,
        /// The other head is in, and follows.
        OtherHeadIn { epoch: u64, head: String, name: String } = Note,
        /// A decision says that this head is out.
        HeadOutDecided { epoch: u64 } = Error,
        /// The other head is gone, and this one does not take over: it is not ready.
        HeadOutBehind { head: String, name: String } = Error,
        /// The other head is gone, and this one does not take over: a fence does not hold.
        HeadOutFenceFails { head: String, name: String, drive: String, why: TrialFault } = Error,
        /// Most drives refuse this head.
        HeadOutFenced = Error,
        /// Operations that were begun for the head that led do not end.
        HeadOutUnended = Error,
        /// The follower is ready to take over.
        FollowerReady = Note,
        /// A file of the leader's state directory cannot be read or is not whole, so the follower does not get it, and cannot take over.
        FollowerLacksFile { file: String, path: String } = Warning,
        /// The other head has the latest hosts and portals.
        OtherHeadHasLatest = Warning,
        /// A drive has not confirmed that the other head is shut out.
        DriveNotShutOff { drive: String, why: ShutOutFault } = Error,
        /// A drive could not be looked at again after the other head was shut out.
        DriveNotLookedAt { drive: String, fault: DriveFault } = Error,
        /// The follower does not reach a drive.
        FollowerLacksDrive { head: String, name: String, drive: String } = Warning,
        /// The follower reaches a drive again.
        FollowerReachesDrive { head: String, name: String, drive: String } = Note,
        /// The fence of a drive does not hold.
        FenceFails { drive: String, why: TrialFault } = Error,
        /// The fence of a drive could not be tried, and is tried again.
        FenceUntried { drive: String, why: TrialFault, again_seconds: u64 } = Error,
        /// The head serves.
        HeadServes = Note,
        /// An order that changes something was carried out or refused.
        OrderDone {
            who: Asker,
            /// From where; null for the socket.
            from: Option<String>,
            method: String,
            path: String,
            /// The code of the refusal; null if it was carried out.
            refused: Option<String>,
        } = Note,
        /// A token of the API was made.
        TokenAdded {
            name: String,
            /// `read` or `full`.
            rights: String,
            /// As the API prints times; null if it does not expire.
            expires: Option<String>,
        } = Note,
        /// Wrong tokens come from an address, and its requests are delayed.
        ApiAccessThrottled { from: String, failures: u32 } = Warning,
        /// The fences of drives were tried, and hold.
        FencesHold { drives: u64, least_milliseconds: u64, most_milliseconds: u64 } = Note,
        /// Shards of the other head do not take part.
        ShardsStayAway { why: Box<Why> } = Warning,
        /// The drives hold a later configuration than this head knew.
        ConfigurationLater {
            known: u64,
            found: u64,
            /// Volumes of the state directory that the drives do not have.
            volumes_known: Vec<String>,
            /// Volumes of the drives that the state directory does not have.
            volumes_found: Vec<String>,
        } = Note,
        /// The drives hold an earlier configuration than this head knew.
        ConfigurationEarlier {
            known: u64,
            found: u64,
            /// Volumes of the state directory that the drives do not have.
            volumes_known: Vec<String>,
            /// Volumes of the drives that the state directory does not have.
            volumes_found: Vec<String>,
        } = Error,
        /// The drives hold another configuration than this head knew, of the same number.
        ConfigurationDiffers {
            found: u64,
            /// Volumes of the state directory that the drives do not have.
            volumes_known: Vec<String>,
            /// Volumes of the drives that the state directory does not have.
            volumes_found: Vec<String>,
        } = Error,
        /// A receiver of alarms did not take several in a row.
        AlarmReceiverDead { receiver: String, tries: u32, why: AlarmFault } = Warning,
        /// A receiver of alarms that was dead took one.
        AlarmReceiverWell {
            receiver: String,
            /// How long it was dead.
            seconds: u64,
            /// Alarms that found no room in its queue.
            lost: u64,
        } = Note,
    }
}

findings! {
    /// What is worth knowing of two heads, and the head itself.
    pub enum SystemNotice {
        /// An address of the link is one of a portal, too: what hosts send there delays heartbeats.
        LinkShared { address: String },
        /// The head that joined had hosts and portals of its own: those of the system have replaced them.
        OwnReplaced { hosts: Vec<String>, portals: Vec<String> },
        /// A drive has not confirmed that the other head is shut out.
        DriveNotShutOff { drive: String, why: ShutOutFault },
        /// A pool could not be marked as one of the system's.
        PoolNotMarked { pool: String, why: Box<Why> },
        /// The kernel does not allow the daemon what a busy head needs; `root`: not even as root.
        RightsMissing { rights: Vec<DaemonRight>, root: bool },
        /// Others than its owner can read or write the file of the API's token.
        TokenFileOpen { path: String, mode: u32 },
        /// Several shards share a core.
        ShardsShareCores { shards: u64, cores: u64 },
        /// Memory has no room for a shard on each core.
        ShardsFewerThanCores { shards: u64, cores: u64 },
        /// The folder of the socket was made.
        SocketFolderMade { path: String },
        /// The limit of open files is below the connections that may come.
        OpenFilesLimited { limit: u64, connections: u64 },
        /// A thread could not be bound to its core.
        ThreadNotBound { thread: DaemonThread, core: u64 },
        /// Not all of the memory could be made resident ahead.
        MemoryNotResident { bytes: u64, all_bytes: u64, errno: i32 },
        /// Not all buffers are registered with the kernel.
        BuffersNotRegistered { bytes: u64, errno: i32 },
        /// The file system below a drive does no direct I/O.
        DriveCached { drive: String, block_bytes: u32 },
    }
}

findings! {
    /// Who sent an order to the API.
    pub enum Asker {
        /// Whoever has a token.
        ApiToken { name: String },
        /// A user of this machine, at the socket.
        LocalUser { name: String, uid: u32 },
        /// The other head itself.
        OtherHead { head: String },
    }
}

findings! {
    /// What the daemon asks of the kernel.
    pub enum DaemonRight {
        /// To lock its memory.
        LockMemory { errno: i32 },
        /// To open more files than this.
        MoreFiles { files: u64 },
        /// To raise its limit of open files.
        RaiseFiles { errno: i32 },
        /// To write back for its own machine without waiting for itself.
        IoFlusher { errno: i32 },
    }
}

findings! {
    /// A thread of the daemon.
    pub enum DaemonThread {
        /// A shard.
        Shard { number: u16 },
        /// The steward.
        Steward,
        /// The manager.
        Manager,
    }
}

impl From<base::Address> for DaemonThread {
    fn from(address: base::Address) -> Self {
        match address {
            base::Address::Shard(number) => DaemonThread::Shard { number },
            base::Address::Steward => DaemonThread::Steward,
            base::Address::Manager => DaemonThread::Manager,
        }
    }
}

/// A head of a system.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NamedHead {
    /// `a` or `b`.
    pub head: String,
    /// What people call it.
    pub name: String,
}

impl crate::Sample for NamedHead {
    fn sample(_: &str) -> Self {
        Self { head: "a".into(), name: "left".into() }
    }
}
