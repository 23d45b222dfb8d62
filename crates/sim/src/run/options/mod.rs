//! The options of a world, drawn from its seed, and the kinds of worlds.

mod fault;
mod mixed;
mod one;
mod rows;
mod two;

pub use fault::{Act, Cut, Directory, Doing, End, Fault, Loss, Outage, Trouble, Wipe};
pub use rows::{ROWS, Row};

use crate::host::Habits;
use crate::memory::SimMemory;
use crate::slow_peer::Habit;
use crate::world::{Clock, Delivery, HeadMachine};
use base::Duration;
use base::view::Protocol;
use head::Shard;

pub(super) const MIB: u64 = 1 << 20;
/// The hosts' volume.
pub(super) const VOLUME_BYTES: u64 = 16 * MIB;
/// Bytes a second that an array of used drives clears where there are two heads: so there is something to clear to the end.
const SLOW: u64 = 128 << 10;

/// A kind of worlds: its name, and what a seed decides in it.
pub type Kind = (&'static str, fn(u64) -> Options);

/// All kinds, as `sim` and docs/faults.md name them: of one head, then of two, and of either.
pub const KINDS: [Kind; 26] = [
    ("swarm", Options::swarm),
    ("usual", Options::usual),
    ("tight", |seed| Options::usual(seed).tight()),
    ("pairs", Options::pairs),
    ("seesaw", Options::seesaw),
    ("frozen", Options::frozen),
    ("older", Options::older),
    ("failed", Options::failed),
    ("wiped", Options::wiped),
    ("power", Options::power),
    ("dealt", Options::dealt),
    ("access", Options::access),
    ("volumes", Options::volumes),
    ("scarce", Options::scarce),
    ("slow-peers", Options::beside_slow_peers),
    ("calm", Options::calm),
    ("heads", Options::two_heads),
    ("one-path", Options::one_path),
    ("paths", Options::paths),
    ("outages", Options::outages),
    ("turns", Options::turns),
    ("full", Options::full),
    ("waits", Options::waits),
    ("cuts", Options::cuts),
    ("heads-access", Options::access_at_both),
    ("mixed", Options::mixed),
];

/// The kind of this name.
pub fn kind(name: &str) -> Option<Kind> {
    KINDS.into_iter().find(|(known, _)| *known == name)
}

/// Puts something between the world and a shard: a test that watches it.
pub type Wrap = fn(Shard<SimMemory>) -> Box<dyn HeadMachine>;

/// Everything that a seed decides. What is not said of heads is so for one and for two.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// One head, or two over the same drives.
    pub heads: usize,
    /// Shards of each head.
    pub shards: u16,
    /// Memory of each shard, bytes.
    pub shard_bytes: u64,
    /// The window of an array. In half of the worlds of one head it is small, so that commands wait for it.
    pub credits: u32,
    /// Parts of commands that are under way at a time. In half of the worlds of scarce memory they are few,
    /// so that commands wait for those.
    pub flights: u32,
    /// What a turn takes in of what hosts have sent. In a third of the worlds of one head it is little, so that their bytes
    /// wait for the next one.
    pub turn_pdus: u32,
    /// Legs of each mirror.
    pub legs: usize,
    /// Mirrors.
    pub mirrors: usize,
    /// Drives have volatile caches.
    pub volatile: bool,
    /// Bytes of a block, of drives and volume.
    pub block_bytes: u32,
    /// Deallocated ranges read as zeroes on all drives; if not, on the first only.
    pub deallocate_zeroes: bool,
    /// Drives were used before, and hold data: blocks without a write must read as zeroes. Hosts of two heads
    /// come to all of the volume, and write little, so that there is such space to the end.
    pub used: bool,
    /// One host each.
    pub hosts: Vec<Protocol>,
    /// What hosts do.
    pub habits: Habits,
    /// Commands of each host.
    pub commands: u32,
    /// How long hosts of two heads work.
    pub work: Duration,
    /// How kind the world is.
    pub delivery: Delivery,
    /// What may go wrong.
    pub troubles: Vec<Trouble>,
    /// Mean time between troubles.
    pub pause: Duration,
    /// Mean time between two of each of them, where each has a rate of its own.
    pub rates: Vec<Duration>,
    /// Most troubles (one alone happens to the head that leads), and among them most ends of one head: one
    /// that lives for a few milliseconds at a time gets nowhere, and teaches nothing that the first dozen
    /// lives did not.
    pub troubles_max: u32,
    /// See `troubles_max`.
    pub kills_max: u32,
    /// So often an operator takes from a host what it logs in by, or the volume, and gives it back.
    pub access: u32,
    /// Keep a story.
    pub log: bool,
    /// Tell the whole story at once, as it happens, on standard error.
    pub trace: bool,
    /// Shards as they are, if None.
    pub wrap: Option<Wrap>,

    // ---- worlds of one head
    /// More hosts, with a volume of their own, that keep buffers.
    pub slow_peers: Vec<(Protocol, Habit)>,
    /// They are other sessions of the first host instead.
    pub kin: bool,
    /// Faults that happen in any case; then no operator helps the head.
    pub script: Vec<Act>,
    /// Drives that may be ill at a time. With 1, only while every leg is in sync, so that there is always
    /// a leg to live on; with 2, whole mirrors may be away.
    pub ill_max: usize,
    /// So often an operator moves drives about; of two heads, whether one does.
    pub moves: u32,
    /// The pool has its first mirror alone until nearly all of that is taken; then the others are added. What hosts write
    /// comes to lie on both.
    pub grown: bool,
    /// Commands wait for memory, beside everything else that they wait for.
    pub tight: bool,
    /// The same with many hosts and the longest commands beside short ones; no command waits for longer than
    /// a leg may take.
    pub scarce: bool,
    /// The last host has one command under way at a time, nearly always a short read.
    pub looker: bool,
    /// Both legs of a mirror may be ill, and refuse what they are asked.
    pub pairs: bool,
    /// The legs fall ill at the same moment, each in a way of its own, and letters between shards take long: one shard
    /// loses the one and another the other.
    pub seesaw: bool,
    /// The power goes as soon as a leg is in sync again, in half of the cases.
    pub cuts_in_sync: bool,
    /// Another volume had the space of the hosts' volume before.
    pub former: bool,
    /// Lanes are dealt anew so often, on average.
    pub deals: Option<Duration>,
    /// Cap of the hosts' volume, commands a second.
    pub iops_max: Option<u32>,
    /// See `slow_pace`.
    pub pace: u64,
    /// Beside the script an operator does what `status` says.
    pub nursed: bool,

    // ---- worlds of two heads
    /// Networks of the link.
    pub networks: usize,
    /// The servers' clocks.
    pub clocks: [Clock; 2],
    /// Addresses move to the leader, and hosts of the other head get an event. Else they stay with it until it ends.
    pub addresses_move: bool,
    /// The second head has portals, and every second host goes there.
    pub both: bool,
    /// NVMe hosts have a second path, to the other head. Now and then they lose the first one, and no head
    /// gets an event: then they have its controller ended by way of the second one, and go on there.
    pub failover: bool,
    /// Hosts have a path to each head, and send commands by both in turns. One that is lost with its path is
    /// sent again by the other. None loses a path to a head that lives without an event for that head.
    pub in_turns: bool,
    /// Drives are files: a lock is their fence, and the end of the process that has it.
    pub files: bool,
    /// Drives lose the keys of heads with their power.
    pub forgets_keys: bool,
    /// This drive's fence does not hold.
    pub lying: Option<usize>,
    /// A server loses its paths to drives.
    pub loses: Option<Loss>,
    /// A path is lost while the power goes.
    pub outage: Option<Outage>,
    /// Lanes go round so often while both heads serve.
    pub turns: Option<Duration>,
    /// The making or the end of a system is cut off.
    pub cut: Option<Cut>,
    /// No host waits longer than this for a command that ends well; nor for one of each kind (reads, changes,
    /// flushes) by each path that is up.
    pub path_stall_most: Option<Duration>,
    /// No host waits longer than this for a command that ends well.
    pub stall_most: Option<Duration>,
    /// Heads are put out so often at most.
    pub outs_most: Option<u32>,
}

impl Options {
    /// Least memory of each shard in this world.
    pub fn shard_bytes_min(&self) -> u64 {
        head::limits::shard_bytes_min(self.mirrors as u64)
    }
    /// Bytes that an array's instance copies or clears in a second while there are faults; 0 for what is usual.
    pub(super) fn slow_pace(&self) -> u64 {
        if self.heads == 2 && self.used { SLOW } else { self.pace }
    }
    /// Whether anything may go wrong.
    pub(super) fn ails(&self) -> bool {
        !self.troubles.is_empty()
    }
}
