//! The door between the Steward and the transport of the link: streams of bytes to the other head, which begin and end.

use base::fence::Process;
use base::view::Interface;
use base::{Duration, Uuid};
use cluster::link::{Do, Fault, VERSION, VERSION_MIN};
use cluster::watch::{End, Times};
use cluster::{HeadNo, SystemRecord};
use core::net::{IpAddr, SocketAddr};
use files::{Whose, kind};
use finding::{Event, LinkFault, OutReason, StateFault, TrialFault};

/// Whether a file of the state directory belongs to a system: a head that leaves the system does not keep it.
pub fn is_left_behind(name: &str) -> bool {
    kind(name).is_some_and(|k| k.whose != Whose::Head)
}

/// What the transport reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerNews {
    /// A network of the link has a connection.
    Up {
        /// Which network.
        path: usize,
        /// Which connection of it: later ones have higher numbers.
        number: u64,
        /// What both ends know, and nobody else (docs/formats/link.md, "Path").
        secret: [u8; 32],
    },
    /// The next bytes of its stream.
    Bytes {
        /// Which network.
        path: usize,
        /// Which connection.
        number: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// It has ended, or none can be had.
    Down {
        /// Which network.
        path: usize,
        /// How.
        end: End,
    },
}

/// What the transport is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerWork {
    /// By which connection of the network that `what` names; of an older one it is forgotten.
    pub number: u64,
    /// What.
    pub what: Do,
}

/// That a head is one of two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemSettings {
    /// The system, whose identity both heads have.
    pub system: Uuid,
    /// Which head this is.
    pub me: HeadNo,
    /// What people call it.
    pub name: String,
    /// Networks of the link, by the addresses of the first head, where it listens.
    pub networks: Vec<SocketAddr>,
    /// This process.
    pub process: Process,
    /// How long what may take.
    pub times: Times,
    /// The shards of a follower take part, and serve hosts (docs/rfcs/0008-both-serve.md).
    pub both_serve: bool,
    /// What the process before said as it was out, and began this one in its place: it had no time to write that down.
    pub said: Option<Event>,
}

/// Why the other head is refused at the link.
pub fn link_fault(why: Fault) -> LinkFault {
    match why {
        Fault::Garbage => LinkFault::Garbage,
        Fault::OtherSystem => LinkFault::OtherSystem,
        Fault::SameHead => LinkFault::SameHead,
        Fault::FormerLife => LinkFault::FormerLife,
        Fault::Version(oldest, newest) => {
            LinkFault::Version { oldest, newest, own_oldest: VERSION_MIN, own_newest: VERSION }
        }
    }
}

/// What is known of a system, from the view of one head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemView {
    /// Which head says this.
    pub me: HeadNo,
    /// What it is.
    pub part: cluster::Part,
    /// What is decided.
    pub record: SystemRecord,
    /// It meets the other one by the link.
    pub linked: bool,
    /// Why it refuses the other one whenever that comes by the link.
    pub refused: Option<LinkFault>,
    /// The other head's heartbeats.
    pub heartbeats: Heartbeats,
    /// Voter drives that it reaches, and that there are.
    pub reaches: (u16, u16),
    /// Drives of pools that there are, as far as it knows.
    pub drives: u16,
    /// How many of them each head reaches; None: not known here.
    pub drives_reached: [Option<u16>; 2],
    /// Drives that the head that follows does not reach, by the path on the head that says this.
    pub unreached: Vec<String>,
    /// It leads and has not seen a majority of the voters for too long: it passes on nothing that it reads.
    pub blind: bool,
    /// Its state directory is an older copy of itself: it does not lead by that.
    pub old_directory: bool,
    /// Since when the other head is out, if this one has put it out.
    pub out: Option<OutSince>,
    /// Why the other head, which is not in, could not follow, as it says itself.
    pub other_lacks: Option<StateFault>,
    /// A file of the state directory that the follower does not get, as it cannot be read or is not whole: its name and its path.
    pub unsent: Option<(String, String)>,
    /// The other head was put out again and again for the same cause: it is not let in before that.
    pub lets_in_after: Option<Duration>,
    /// Of a head that leads while the other one is out: open drives of pools that are known to have fenced that one, and how many are open.
    pub shut_off: Option<(u16, u16)>,
    /// Drives that are not known to have fenced the other head, by path.
    pub late: Vec<String>,
    /// What came of the trials of fences since the follower was let in; files have none.
    pub fences: Vec<FenceTrial>,
    /// Addresses that move, by the head that has them or should: of the head that leads all, of one that follows none. None: not known
    /// here.
    pub addresses: [Option<Vec<SystemAddress>>; 2],
}

/// When the other head's last heartbeat came, milliseconds ago; None: none has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heartbeats {
    /// Of each network of the link: whether it is up, and that.
    pub networks: Vec<(bool, Option<u64>)>,
    /// On the drives.
    pub drives: Option<u64>,
}

/// That the other head was put out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutSince {
    /// When, in seconds since 1970-01-01 UTC; 0 if the clock was not known.
    pub at: u64,
    /// Why.
    pub why: OutReason,
    /// It lived: nothing but the link was cut.
    pub lives: bool,
}

/// An address that moves to the head that leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemAddress {
    /// Which.
    pub ip: IpAddr,
    /// On which interface of this head; None: not on this one, or not known here.
    pub on: Option<Interface>,
    /// Why the head that leads does not have it; None: it has, as far as this one knows.
    pub reason: Option<finding::Cause>,
}

/// What came of the trial of a drive's fence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FenceTrial {
    /// The drive, as the head that leads calls it.
    pub path: String,
    /// What was found.
    pub found: TrialFound,
}

/// What the trial of a fence found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TrialFound {
    /// The other head was shut out, and nothing of it landed afterwards.
    Holds {
        /// How long the drive took to shut it out.
        ms: u64,
    },
    /// It does not hold.
    Fails(TrialFault),
    /// It could not be tried so far.
    NotTried(TrialFault),
}
