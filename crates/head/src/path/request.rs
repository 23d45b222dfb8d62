//! What a shard remembers: requests (host's command to answer), and flights (one command of one array). Drive
//! operations stand in the tables of the arrays that asked for them, until the kernel's completion: they live
//! differently long, since a host can be answered while a hung leg still holds memory.

use crate::admission::buffer_quota::{Holder, Purpose};
use crate::admission::lines::{Place, Stands};
use crate::admission::scheduler::Whose;
use crate::layout::ArrayId;
use crate::mail::FlightId;
use crate::path::door::Door;
use crate::path::stages::UNTIMED;
use array::{ArrayCommand, OpView};
use base::{Command, Instant, Slice, Status, Tag, Token, VolumeId};

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// A buffer of so many bytes.
    Buffer(u32),
    /// Its connection: data to come, or the answer to go.
    Connection,
    /// Its volume's rate (`rate_limit`).
    RateLimit,
    /// Its turn to start.
    Turn,
    /// Its flights.
    Flights,
    /// It is over: its connection takes the status next.
    Completed,
    /// The kernel to take its last bytes.
    Sending,
}

/// A host's command, from its arrival until its buffer is free.
#[derive(Debug)]
pub(crate) struct Request {
    /// Index of the connection; `NO_LINK` for what came in directly.
    pub link: u32,
    pub tag: Tag,
    /// Where it came in.
    pub door: Door,
    pub phase: Phase,
    /// In the line that it waits in.
    pub place: Place,
    pub buffer: Option<Slice>,
    /// Who holds the buffer, and what for.
    pub account: u32,
    pub purpose: Purpose,
    pub command: Command,
    /// The part of the buffer that holds the command's data.
    pub data: Slice,
    /// Compare reads into this, the end of its buffer.
    pub compare: Option<Slice>,
    /// What few requests have.
    pub detour: Option<Box<Detour>>,
    /// `buffer` is another one than the connection was granted.
    pub moved: bool,
    /// Its command was checked, `length` and `compare` are set.
    pub begun: bool,
    /// Bytes of the command handed to arrays, of `length`. A Flush counts arrays instead.
    pub cursor: u64,
    pub length: u64,
    /// The array at which it waits for a credit, and the line there.
    pub waits_at: Option<ArrayId>,
    pub line: u32,
    /// Its connection has little under way.
    pub little: bool,
    /// Parts of it that have not ended.
    pub flights: u32,
    /// It is at this array as a whole, without a flight.
    pub whole: Option<ArrayId>,
    pub status: Status,
    pub aborted: bool,
    /// A part of it was at a head that is out, or found no leg: it is done again, whole.
    pub again: bool,
    /// A part of it may still be at drives, by a head that is out and not known to be fenced. Until that is over, the answer that it was
    /// aborted is held.
    pub bereft: bool,
    /// It is a read that found no leg here. The other head does it where it has the lane. Elsewhere it is tried here again, not before
    /// this time.
    pub unreached: Option<Instant>,
    /// A far shard has sent a part of it back: far shards get it page by page.
    pub in_pages: bool,
    /// Its number among those that are timed, or `UNTIMED`.
    pub timed: u16,
    pub started: Instant,
}

/// The memory of a request for which a drive is late.
#[derive(Debug, Default)]
pub(crate) struct Detour {
    /// The next buffer for what is read, of the same size: some drive still holds the first one and may write
    /// to it after the answer. What was read there (`seconds`: offset and length) is there already.
    pub second: Option<Slice>,
    pub seconds: Vec<(u32, u32)>,
    /// A buffer of the same size into which some part of a late read comes from another leg, too.
    pub hedge: Option<Slice>,
}

impl Stands for Request {
    fn place(&mut self) -> &mut Place {
        &mut self.place
    }
}

impl Request {
    /// A request of this connection, which has a tag and nothing else yet.
    #[inline]
    pub fn new(link: u32, tag: Tag, account: u32, now: Instant) -> Self {
        Self {
            link,
            tag,
            door: Door::Volume,
            phase: Phase::Connection,
            place: Place::default(),
            buffer: None,
            account,
            purpose: Purpose::Asked,
            command: Command { volume: VolumeId(0), op: base::Op::Flush, at: 0, blocks: 0, fua: false },
            data: Slice::default(),
            compare: None,
            detour: None,
            moved: false,
            begun: false,
            cursor: 0,
            length: 0,
            waits_at: None,
            line: 0,
            little: false,
            flights: 0,
            whole: None,
            status: Status::Good,
            aborted: false,
            again: false,
            bereft: false,
            unreached: None,
            in_pages: false,
            timed: UNTIMED,
            started: now,
        }
    }
    /// The holder of its buffer.
    #[inline]
    pub fn holder(&self) -> Holder {
        Holder { account: self.account, link: self.link }
    }
    /// How a part of it has ended. If that was `Moved`, the request is done anew, whole, once its other parts are over.
    #[inline]
    pub fn takes(&mut self, status: Status) {
        self.again |= status == Status::Moved;
        self.status = worse(self.status, if status == Status::Moved { Status::Good } else { status });
    }
    /// What its reads fill.
    pub fn read_into(&self) -> Option<Slice> {
        self.compare.or(self.buffer)
    }
    pub fn detour(&mut self) -> &mut Detour {
        self.detour.get_or_insert_default()
    }
    /// See `Detour::second`.
    pub fn second(&self) -> Option<Slice> {
        self.detour.as_ref()?.second
    }
    /// See `Detour::hedge`.
    pub fn hedge(&self) -> Option<Slice> {
        self.detour.as_ref()?.hedge
    }
}

/// The owner of a flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Request(u32),
    Peer {
        shard: u16,
        flight: FlightId,
    },
    /// A far shard whose connection is over: nobody is answered.
    Gone {
        far: u16,
        pairing: u32,
        data: Slice,
    },
}

/// A flight has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landed {
    pub flight: u32,
    pub status: Status,
    /// When the drive operation had started that ended it; this turn, if none did.
    pub issued: Instant,
}

/// One command of one array.
#[derive(Debug)]
pub(crate) struct Flight {
    pub owner: Owner,
    pub array: ArrayId,
    /// The shard that carries it out, if it is another.
    pub at: Option<u16>,
    /// A peer's memory that its read would fill with zeroes.
    pub zeroes: Slice,
}

/// Another shard's command that waits for a credit of its array.
#[derive(Debug)]
pub(crate) struct Parked {
    pub shard: u16,
    pub flight: FlightId,
    pub array: ArrayId,
    pub map: u32,
    pub command: ArrayCommand,
    pub whose: Whose,
    /// In the line that it waits in, and which that is.
    pub place: Place,
    pub line: u32,
}

impl Stands for Parked {
    fn place(&mut self) -> &mut Place {
        &mut self.place
    }
}

/// A drive operation that the kernel has not let go of, of an array that is gone. Most were given up.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub token: Token,
    pub op: OpView,
}

/// The worse of two endings: an error hides a success, the first error stays; and what has no answer in one part has none.
pub(crate) fn worse(a: Status, b: Status) -> Status {
    if a == Status::Good || b == Status::Withheld { b } else { a }
}
