//! Letters between the machines of one head: shards, Steward, manager.
//!
//! Mail between two machines arrives in the order in which it was written. Nothing else is shared:
//! what must be known everywhere travels as a `View` and a `Layout` that never change once made.

use crate::admission::caps::Cost;
use crate::admission::caps::Kind;
use crate::admission::scheduler::Whose;
use crate::admission::window::Load;
use crate::layout::{ArrayId, Layout};
use crate::order::{Answered, Cause, Event, EventLine, Notice, Order};
use crate::path::far::FarSetup;
use crate::peer::{PeerNews, PeerWork};
use crate::report::ShardReport;
use array::{ArrayCommand, Bitmap, Note, Pace, Scrub};
use base::front::{Close, Intervention};
use base::view::{Interface, Moving, View};
use base::{
    Address, Answer, Ask, ConnectionId, DriveId, Effect, Instant, NetError, PortalId, Slice, Status, VolumeId,
};
use core::net::{IpAddr, SocketAddr};
use finding::{AddressFault, LoginFate};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Names one array command of one shard, across shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlightId(pub u32);

/// A file that was removed from the state directory and cannot be made again, or is not whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unmended {
    /// Its name.
    pub file: String,
    /// Why not.
    pub why: Cause,
}

/// Arrays that a shard keeps scratch memory for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Room {
    /// Arrays with redundancy.
    pub mirrors: u32,
    /// Arrays without.
    pub singles: u32,
}

/// Letters to a shard, from the Steward or from another shard. Letters without `skip` travel to the other head (`steward::far::letters`), and
/// come first: serde numbers the others when it writes, and not when it reads.
#[derive(Debug, Serialize, Deserialize)]
pub enum ShardMail {
    /// A new configuration. Once applied (no new operation on a leg that is no longer in the
    /// membership, portals opened and closed, hosts notified), the shard answers `Applied`.
    Configure {
        /// What the front ends know.
        view: Arc<View>,
        /// Where the bytes are. `layout.generation` is `view.generation`.
        layout: Arc<Layout>,
    },
    /// The membership of this epoch is on record on every reachable drive: held answers may go out.
    Recorded {
        /// The array.
        array: ArrayId,
        /// Epoch of the membership.
        epoch: u64,
    },
    /// Nothing takes the record of the membership, and no volume of its pool is ready on any shard: what waits for it
    /// ends in `NotReady` until `Recorded`.
    LossNotOnRecord {
        /// The array.
        array: ArrayId,
    },
    /// The first resync after a crash is complete on all shards: every shard reads locally.
    Clean {
        /// The array.
        array: ArrayId,
    },
    /// Mark every region dirty: a leg that lacks everything is about to join. `Note::AllDirty` follows.
    MarkAll {
        /// The array.
        array: ArrayId,
        /// The note repeats it.
        number: u32,
    },
    /// The bitmap of a returning leg counts, too. Comes before the membership in which the leg rebuilds.
    AddDirty {
        /// The array.
        array: ArrayId,
        /// Regions marked on that leg.
        dirty: Arc<Bitmap>,
    },
    /// That leg does not return: bits may be cleared again.
    Unmark {
        /// The array.
        array: ArrayId,
    },
    /// Space of this array belongs to no volume any more (`Array::on_returned`). `Note::Returned` follows.
    Returned {
        /// The array.
        array: ArrayId,
        /// The life of the uncleared map.
        life: u64,
        /// Which mark this is: it grows with each letter.
        marks: u32,
        /// Byte and length in the array's data space.
        ranges: Arc<Vec<(u64, u64)>>,
    },
    /// No shard has uncleared pieces of this array since this mark.
    AllCleared {
        /// The array.
        array: ArrayId,
        /// The mark.
        marks: u32,
    },
    /// Limits of resync and scrub.
    Pace {
        /// The array.
        array: ArrayId,
        /// From now on.
        pace: Pace,
    },
    /// Begin a scrub, or go on with one; None ends it. `Note::Scrubbed` follows.
    Scrub {
        /// The array.
        array: ArrayId,
        /// What to do.
        order: Option<Scrub>,
    },
    /// End every command on this array, write back what is held, clear bits where allowed, start
    /// nothing any more (the layout already says `ready: false` for its volumes). `Quiesced` follows.
    Quiesce {
        /// The array.
        array: ArrayId,
        /// The answer repeats it.
        number: u32,
    },
    /// Keep scratch memory for this many arrays, including those that are here. `HasRoom` follows.
    Room {
        /// The answer repeats it.
        number: u32,
        /// So many.
        room: Room,
    },
    /// Starts no command of its hosts on this array: new ones wait, as they do for a credit. `Halted` follows when none is left that this
    /// shard has sent to others. Peers' commands go on.
    Halt {
        /// The array.
        array: ArrayId,
        /// The answer repeats it.
        number: u32,
    },
    /// Takes `Halt` and `Quiesce` back: the array cannot come to rest, and its pool goes on serving.
    Resume {
        /// The array.
        array: ArrayId,
    },
    /// Asks for figures. `Reported` follows.
    Report,
    /// An array that is halted is about to leave the layout, and another one takes its place: what waits there goes on by that. `Quiesced`
    /// follows, and nothing of it is begun any more.
    #[serde(skip)]
    Leave {
        /// The array.
        array: ArrayId,
        /// The answer repeats it.
        number: u32,
    },
    /// This head lets go of a drive, as it has no path to it any more. No letter says when it has: the next members, or lanes, do.
    #[serde(skip)]
    PathLost {
        /// As it was opened here.
        drive: DriveId,
    },
    /// The shards of the other head take part from now on, so.
    #[serde(skip)]
    Far(Arc<FarSetup>),
    /// There are none any more, and what was sent to them is done anew. `Parted` follows.
    #[serde(skip)]
    FarGone {
        /// The answer repeats it.
        number: u32,
    },
    /// Until then what drives answer may be passed on to hosts: another head may be about to serve (`cluster::fence::SIGHT`). None: for
    /// ever.
    #[serde(skip)]
    Sight {
        /// By this head's clock.
        until: Option<Instant>,
    },
    /// The answer to a connection's question.
    #[serde(skip)]
    Answer {
        /// The connection.
        connection: ConnectionId,
        /// The answer.
        answer: Answer,
    },
    /// Another connection intervenes in this one. `Obeyed` follows, or this connection's `Gone`.
    #[serde(skip)]
    Obey {
        /// The connection.
        connection: ConnectionId,
        /// Comes back.
        id: u32,
        /// What.
        what: Intervention,
    },
    /// The intervention that this connection asked for is over.
    #[serde(skip)]
    Intervened {
        /// The connection.
        connection: ConnectionId,
        /// From `Intervene`.
        key: u16,
        /// Another connection has done it.
        yes: bool,
    },
    /// End this connection: what is not at a drive never starts. `Gone` follows.
    #[serde(skip)]
    Drop {
        /// The connection.
        connection: ConnectionId,
        /// Shown in `status`.
        why: Close,
    },
    /// Carry out this command on a region of the receiver's.
    #[serde(skip)]
    Run {
        /// The sender's name for it.
        flight: FlightId,
        /// The array.
        array: ArrayId,
        /// The map by which it is the receiver's: `ArrayLayout::map`.
        map: u32,
        /// The command; its data lies in the sender's part of the region.
        command: ArrayCommand,
        /// For whom.
        whose: Whose,
    },
    /// The load of an array in an interval, for the array's home.
    #[serde(skip)]
    Load(Box<Load>),
    /// The answer: the credits of this shard.
    #[serde(skip)]
    Credits(Box<Load>),
    /// It ended.
    #[serde(skip)]
    Ran {
        /// The receiver's name for it.
        flight: FlightId,
        /// How.
        status: Status,
        /// When the drive operation had started that ended it.
        issued: Instant,
        /// Memory of the receiver's to be filled with zeroes: what its read found. Empty if it has its data.
        zeroes: Slice,
    },
    /// This region has no uncleared piece since this mark: commands need not come to its owner.
    #[serde(skip)]
    Cleared {
        /// The array.
        array: ArrayId,
        /// The map by which it is the sender's: `ArrayLayout::map`.
        map: u32,
        /// The region.
        region: u32,
        /// The last mark that the owner knew.
        marks: u32,
    },
    /// Do not start this command if it has not begun. `Ran` follows in any case.
    #[serde(skip)]
    Abort {
        /// The sender's name for it.
        flight: FlightId,
        /// The array.
        array: ArrayId,
    },
    /// Commands of a capped volume wait at the sender, and the receiver has its meter. `Leased` follows.
    #[serde(skip)]
    Lease {
        /// The volume.
        volume: VolumeId,
        /// In which of the two queues they wait.
        kind: Kind,
        /// What they cost.
        cost: Cost,
    },
    /// They may start.
    #[serde(skip)]
    Leased {
        /// As in `Lease`.
        volume: VolumeId,
        /// As in `Lease`.
        kind: Kind,
        /// As in `Lease`.
        cost: Cost,
    },
    /// Blocks of a region of the receiver's could not be read on this leg, and were read on another: write them there anew.
    #[serde(skip)]
    Heal {
        /// The array.
        array: ArrayId,
        /// The map by which it is the receiver's: `ArrayLayout::map`. By another map no shard knows it, and nothing is mended.
        map: u32,
        /// First byte in the data space.
        at: u64,
        /// Bytes.
        len: u64,
        /// The leg.
        leg: usize,
    },
    /// A drive that hangs still uses this memory of the receiver's, although its command is over: keep it.
    #[serde(skip)]
    Hold {
        /// Part of a buffer of the receiver's.
        data: Slice,
    },
    /// The drive has let go of that memory.
    #[serde(skip)]
    Unhold {
        /// As in `Hold`.
        data: Slice,
    },
}

/// Letters to the Steward, from shards or from the manager. Letters without `skip` travel to the other head (`steward::far::letters`), and
/// come first: serde numbers the others when it writes, and not when it reads.
#[derive(Debug, Serialize, Deserialize)]
pub enum StewardMail {
    /// This configuration is in force on this shard.
    Applied {
        /// Generation of view and layout.
        generation: u64,
    },
    /// A report of an array.
    Note {
        /// The array.
        array: ArrayId,
        /// What.
        note: Note,
    },
    /// How listening at a portal went.
    Listening {
        /// The portal.
        portal: PortalId,
        /// Address in use, or why not.
        result: Result<SocketAddr, NetError>,
    },
    /// A shard starts nothing on this array, and has nothing of it at other shards.
    Halted {
        /// The array.
        array: ArrayId,
        /// Of what was asked last.
        number: u32,
    },
    /// An array is quiet on this shard.
    Quiesced {
        /// The array.
        array: ArrayId,
        /// Of what was asked last.
        number: u32,
    },
    /// What the shard keeps memory for.
    HasRoom {
        /// Of what was asked.
        number: u32,
        /// As many as were asked for, or fewer.
        room: Room,
        /// Most mirrors that its memory is meant for.
        mirrors_max: u32,
    },
    /// A shard of the other head has been out of reach for too long, or there is no memory for what it sends.
    FarSilent,
    /// Figures.
    Reported(Box<ShardReport>),
    /// After `Far`: there is a connection with every shard of the other head.
    #[serde(skip)]
    FarMet {
        /// Which meeting it was: `FarSetup::meeting`.
        meeting: u32,
    },
    /// After `FarGone`: nothing is under way here any more that shards of the other head had sent.
    #[serde(skip)]
    Parted {
        /// Of the last `FarGone`.
        number: u32,
    },
    /// A connection asks to be let in.
    #[serde(skip)]
    Ask {
        /// The connection.
        connection: ConnectionId,
        /// Where it came in.
        portal: PortalId,
        /// Our address on it.
        local: SocketAddr,
        /// Its address.
        peer: SocketAddr,
        /// The question.
        ask: Ask,
    },
    /// A connection intervenes in others.
    #[serde(skip)]
    Intervene {
        /// The connection.
        connection: ConnectionId,
        /// Comes back in `Intervened`.
        key: u16,
        /// What.
        what: Intervention,
    },
    /// A connection has answered the intervention of another.
    #[serde(skip)]
    Obeyed {
        /// The connection.
        connection: ConnectionId,
        /// From `Obey`.
        id: u32,
        /// Its answer.
        yes: bool,
    },
    /// A connection that asked something has begun to end, by its peer or by this head. `Gone` follows.
    #[serde(skip)]
    Ending {
        /// The connection.
        connection: ConnectionId,
        /// It had commands without an answer, and its host did not log out.
        lost: bool,
    },
    /// A connection is over, and so is every command that it ever sent: none of its writes is left at
    /// a drive. Comes once for each connection that asked something, or broke the protocol before it did.
    #[serde(skip)]
    Gone {
        /// The connection.
        connection: ConnectionId,
        /// Why, if this head ended it.
        why: Option<Close>,
    },
    /// A login was rejected, or a connection broke the protocol or kept others waiting.
    #[serde(skip)]
    LoginOutcome {
        /// Which of these, and why.
        fate: LoginFate,
        /// Where it came in.
        portal: PortalId,
        /// Its address.
        peer: SocketAddr,
        /// The name that it gave; empty if it gave none.
        name: String,
    },
    /// An order of the operator's.
    #[serde(skip)]
    Order {
        /// Comes back with the answer.
        id: u64,
        /// What to do.
        order: Order,
    },
    /// Files of the state directory that the manager keeps itself were removed from outside.
    #[serde(skip)]
    Renewed {
        /// Those that it has made again.
        again: Vec<String>,
        /// Those that it could not make again: all of them. One that is named no more is in its place. And files of the head's
        /// own that are not whole, each second until they are.
        failed: Vec<Unmended>,
    },
    /// Something happened to the manager that belongs in the log.
    #[serde(skip)]
    Said {
        /// What it is about.
        what: String,
        /// What happened.
        event: Event,
    },
    /// The other head of the system, by the link.
    #[serde(skip)]
    Peer(PeerNews),
    /// Takes this to the manager of the other head.
    #[serde(skip)]
    ToPeer(Vec<u8>),
    /// Where addresses of the system are: the answer to `Addresses`, and whenever it changes.
    #[serde(skip)]
    Addresses {
        /// Of the latest `Addresses`.
        number: u64,
        /// Each address that is to be here.
        here: Vec<(IpAddr, Result<Interface, AddressFault>)>,
        /// The daemon has no right to announce them to the network, nor to tell hosts that their connections are over.
        silent: bool,
    },
    /// Clean stop: close connections, quiesce, mark clean. `Stopped` follows within seconds: orders under
    /// way are given up, and drives that hang are not waited for.
    #[serde(skip)]
    Stop,
}

/// Letters to the manager, from the Steward.
#[derive(Debug)]
pub enum ManagerMail {
    /// Its answer.
    Answered {
        /// From the order.
        id: u64,
        /// How it went.
        answer: Answered,
    },
    /// The pools are imported (or the Steward has said why not): the head serves.
    Ready {
        /// What the operator should read.
        notices: Vec<Notice>,
    },
    /// By the link, to the other head of the system.
    Peer(PeerWork),
    /// From the manager of the other head.
    FromPeer(Vec<u8>),
    /// This head leads from now on, or does not.
    Leads(bool),
    /// This process is out of its system, for this reason: it ends at once, and answers nobody any more.
    Out(Event),
    /// Which addresses of the system this machine is to have, and which not; `StewardMail::Addresses` follows.
    Addresses {
        /// Grows by one each time.
        number: u64,
        /// These are to be here from now on, and are kept here.
        here: Vec<Moving>,
        /// These are taken away, if this head put them here.
        gone: Vec<Moving>,
    },
    /// The portals listen at the addresses that are here: announce them to neighbours, and reset these connections (this head's address,
    /// the host's), which the previous leader had.
    Announce(Vec<(SocketAddr, SocketAddr)>),
    /// Something happened: for the daemon's log.
    Happened(Box<EventLine>),
    /// Everything is written and closed.
    Stopped,
}

/// A letter, as it travels between machines. `to_shard`, `to_steward` and `to_manager` write it, so that no machine gets a letter that
/// is for another. Rare letters are boxed: an event and an effect of the data path are as large as the largest one.
#[derive(Debug)]
pub enum Mail {
    /// For a shard.
    Shard(ShardMail),
    /// For the Steward.
    Steward(Box<StewardMail>),
    /// For the manager.
    Manager(Box<ManagerMail>),
}

/// Writes to a shard.
#[inline]
pub fn to_shard(shard: u16, mail: ShardMail) -> Effect<Mail> {
    Effect::Mail { to: Address::Shard(shard), mail: Mail::Shard(mail) }
}
/// Writes to the Steward.
#[inline]
pub fn to_steward(mail: StewardMail) -> Effect<Mail> {
    Effect::Mail { to: Address::Steward, mail: mail.into() }
}
/// Writes to the manager.
#[inline]
pub fn to_manager(mail: ManagerMail) -> Effect<Mail> {
    Effect::Mail { to: Address::Manager, mail: mail.into() }
}

#[cfg(test)]
impl Mail {
    /// What a test that plays the Steward takes.
    pub(crate) fn for_steward(&self) -> Option<&StewardMail> {
        match self {
            Mail::Steward(mail) => Some(mail),
            Mail::Shard(_) | Mail::Manager(_) => None,
        }
    }
}

impl From<ShardMail> for Mail {
    fn from(mail: ShardMail) -> Self {
        Self::Shard(mail)
    }
}

impl From<StewardMail> for Mail {
    fn from(mail: StewardMail) -> Self {
        Self::Steward(Box::new(mail))
    }
}

impl From<ManagerMail> for Mail {
    fn from(mail: ManagerMail) -> Self {
        Self::Manager(Box::new(mail))
    }
}
