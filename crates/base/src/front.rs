//! The door between a connection (NVMe/TCP, iSCSI) and the head.
//!
//! A connection is a machine with these inputs, called by the head, none of which waits:
//!
//! - `on_bytes(now, bytes, io) -> usize`: bytes arrived in a staging buffer; returns how many it took.
//!   It takes fewer only if it must wait (for a buffer, an answer, room in the outbox, or a turn that has
//!   room for more: `goes_on`); the head offers the rest again after the next `on_granted`, `on_answer`, `on_done`
//!   or `on_sent`, or in a later turn.
//! - `want() -> Want`: where the next bytes shall go.
//! - `on_direct(now, n, io)`: `n` bytes arrived in the slice of `Want::Direct`.
//! - `on_granted(now, tag, slice, io)`: the buffer that `reserve` could not give at once.
//! - `on_moved(tag, slice)`: before `on_done` of a read: the tag's buffer is this one now, of the same
//!   length; the old one is not to be touched (a hung drive may still write to it).
//! - `on_done(now, tag, status, io)`: a submitted command ended; its buffer is still there. The
//!   connection answers the host and calls `finish`, or submits the tag's next command.
//! - `on_sent(now, io)`: the outbox has more room.
//! - `on_answer(now, answer, io)`: the Steward's answer to `ask`.
//! - `on_intervened(now, key, yes, io)`: what it asked for by `intervene` is done everywhere.
//! - `on_intervention(now, id, what, io)`: another connection asks for something. It is answered by
//!   `io.intervened(id, …)`, once none of the commands that it means can change anything any more.
//! - `on_view(now, io)`: `io.view()` is a new one.
//! - `on_timer(now, io)` and `next_deadline() -> Option<Instant>`.
//!
//! After `close` the connection gets no more inputs.

use crate::view::{LoginName, Principal, View};
use crate::{Command, ConnectionFault, HostId, Slice, VolumeId};
use std::sync::Arc;

/// A command of one connection: an index below the number that `admit` granted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tag(pub u16);

impl Tag {
    /// The tag as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Where a connection wants its next bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// In a staging buffer, any number.
    Staging,
    /// In a staging buffer, at most so many bytes: a header, behind which data are expected that are better
    /// received where they belong than copied.
    Header(u32),
    /// Exactly here (payload): at most `Slice::len` bytes.
    Direct(Slice),
    /// Nowhere: it waits for something else first (back-pressure reaches the peer through TCP).
    Nothing,
}

/// What a connection asks the Steward, one question at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// A host's admin queue: NVMe-oF Connect with queue id 0.
    NvmeAdmin {
        /// What it is let in by; None for a discovery controller of an unknown host.
        principal: Option<Principal>,
        /// Its qualified name.
        nqn: String,
        /// Its 128-bit identifier.
        host_id: [u8; 16],
        /// A discovery controller.
        discovery: bool,
    },
    /// A host's I/O queue.
    NvmeIo {
        /// What it is let in by.
        principal: Option<Principal>,
        /// The controller that it belongs to.
        controller: u16,
        /// Must be the controller's.
        nqn: String,
        /// Must be the controller's.
        host_id: [u8; 16],
        /// Queue id, 1 and up.
        queue: u16,
    },
    /// The end of an iSCSI login.
    Iscsi {
        /// What it was judged by when the login began; None for a discovery session of an unknown host.
        principal: Option<Principal>,
        /// Its iSCSI name.
        initiator: String,
        /// Initiator session id.
        isid: [u8; 6],
        /// Target session handle, 0 for a new session.
        tsih: u16,
        /// A discovery session.
        discovery: bool,
    },
}

impl Ask {
    /// What the connection is let in by.
    pub fn principal(&self) -> Option<Principal> {
        match self {
            Ask::NvmeAdmin { principal, .. }
            | Ask::NvmeIo { principal, .. }
            | Ask::Iscsi { principal, .. } => *principal,
        }
    }

    /// The host, if it is known.
    pub fn host(&self) -> Option<HostId> {
        self.principal().map(|p| p.host)
    }

    /// The name by which it asks.
    pub fn name(&self) -> LoginName<'_> {
        match self {
            Ask::NvmeAdmin { nqn, .. } | Ask::NvmeIo { nqn, .. } => LoginName::Nqn(nqn),
            Ask::Iscsi { initiator, .. } => LoginName::Iqn(initiator),
        }
    }
}

/// The Steward's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Come in. `id` is the controller id (NVMe) or the target session handle (iSCSI). Older
    /// connections of the same identity are closed, and their writes have ended.
    Admitted {
        /// Controller id or TSIH.
        id: u16,
    },
    /// What it was judged by does not hold any more: an order has changed or removed its host or portal.
    Changed,
    /// No such controller or session.
    Unknown,
    /// No more controllers or sessions.
    Full,
    /// The controller of this I/O queue is not enabled.
    Disabled,
    /// The controller has this I/O queue.
    Taken,
}

/// One life of an NVMe controller, from its being enabled to its end: how a host names it to another controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct ControllerLife {
    /// Controller id.
    pub id: u16,
    /// Controller Instance Uniquifier: one more each time it is enabled, never 0.
    pub uniquifier: u8,
    /// Controller Instance Random Number.
    pub random: u64,
}

/// What a connection wants of other connections of the head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intervention {
    /// Of an I/O queue of its controller: NVMe Abort. The answer is yes if the command was aborted.
    AbortCommand {
        /// Queue id.
        queue: u16,
        /// Command identifier.
        cid: u16,
    },
    /// Of the head: to let I/O queues of its controller in from now on, until `EndQueues`. The controller begins this life.
    BeginQueues {
        /// Which.
        life: ControllerLife,
    },
    /// Of all I/O queues of its controller: their end, and that of every command of theirs (controller
    /// reset and shutdown).
    EndQueues,
    /// Of all I/O queues of its controller: whether completions may carry a Command Retry Delay (ACRE).
    RetryDelay {
        /// As the host wants it.
        enabled: bool,
    },
    /// Of another controller of the same host, at either head: its end, with all its queues and every command of theirs
    /// (Cross-Controller Reset). If there is none that has this life, what there was of it is over.
    ResetController {
        /// Which.
        life: ControllerLife,
    },
    /// Of all other sessions of the iSCSI target: the end of their tasks on these logical units
    /// (CLEAR TASK SET, LOGICAL UNIT RESET, TARGET RESET).
    ClearTasks {
        /// The logical units.
        units: Arc<[VolumeId]>,
        /// It is a reset: a unit attention reports it.
        reset: bool,
    },
}

/// What a connection can do. The head implements it over the kernel and the simulator alike; tests
/// implement it over plain memory.
pub trait FrontIo {
    /// The head's configuration.
    fn view(&self) -> &View;
    /// Reserves command slots for tags `0..commands_max`. Called once, when the queue depth is known.
    ///
    /// # Errors
    /// Why not: there is no more memory for them, or its host has too much already.
    fn admit(&mut self, commands_max: u16) -> Result<(), ConnectionFault>;
    /// A buffer of `len` bytes for `tag`, page-aligned, contents undefined. None: it comes later by
    /// `on_granted`. Until then the tag counts as under way. `len` is at most 1 MiB
    /// (`TRANSFER_MAX`), or twice that for compare, whose second half is the head's.
    fn reserve(&mut self, tag: Tag, len: u32) -> Option<Slice>;
    /// The same for data that come next in the stream unasked (in-capsule, immediate, unsolicited): the
    /// connection reads nothing more until it has the buffer. Part of the memory is kept for these, so
    /// that data that were asked for, and lie behind them in the stream, cannot hold all of it. Hence a connection
    /// that holds such a buffer waits only for the next data in the stream and for the head: before it asks its host
    /// for more data of a command, it gives the buffer back.
    fn reserve_inline(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        self.reserve(tag, len)
    }
    /// A buffer as `reserve` gives, if there is one to spare now. None: nothing has happened, and nothing
    /// comes later.
    fn reserve_spare(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        let _ = (tag, len);
        None
    }
    /// Carries out `command` on the tag's buffer; ends in `on_done`, never at once. `data` is the
    /// part of the buffer that holds the data (empty for commands without).
    fn submit(&mut self, tag: Tag, command: Command, data: Slice);
    /// Whether the connection takes another PDU from its bytes now. It asks once for each, before its first byte, and returns
    /// from `on_bytes` if not: others have their turn first.
    fn goes_on(&mut self) -> bool {
        true
    }
    /// Whether there is a slot for another command: those whose answers the kernel has not taken yet have one, too. If there is
    /// none, `on_sent` follows.
    fn has_slot(&self) -> bool {
        true
    }
    /// The tag is over: its slot and buffer are free at once.
    fn finish(&mut self, tag: Tag);
    /// The tag is over; its buffer is free once what is in the outbox now has been sent.
    fn finish_after_send(&mut self, tag: Tag);
    /// Sends `header`, `data` of the tag's buffer from where they lie, and `trailer` (perhaps empty). The tag
    /// is over; its buffer is free once `data`, of which there must be some, have been sent.
    fn finish_with(&mut self, tag: Tag, header: &[u8], data: Slice, trailer: &[u8]) {
        self.header(header);
        self.payload(data);
        self.header(trailer);
        self.finish_after_send(tag);
    }
    /// The host aborted the tag: what is not yet at a drive never starts. `on_done` still comes, with
    /// `Aborted` or with how it ended. A tag that waits for its buffer ends in `on_done(Aborted)` too.
    fn abort(&mut self, tag: Tag);
    /// Bytes of a buffer of this connection.
    fn bytes(&self, data: Slice) -> &[u8];
    /// Bytes of a buffer of this connection.
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8];
    /// Room for headers and small answers in the outbox, bytes.
    fn room(&self) -> u32;
    /// Sends small pieces (copied). Panics without room.
    fn header(&mut self, bytes: &[u8]);
    /// Sends part of a tag's buffer from where it lies.
    fn payload(&mut self, data: Slice);
    /// Asks the Steward; the answer comes by `on_answer`.
    fn ask(&mut self, ask: Ask);
    /// A peer is rejected: the operator gets the name that it gave (empty if it gave none) and the reason, never a
    /// secret.
    fn refused(&mut self, name: &str, why: ConnectionFault) {
        let _ = (name, why);
    }
    /// Asks other connections to do something; `on_intervened` comes with the same key, once all have.
    fn intervene(&mut self, key: u16, what: Intervention);
    /// Answers `on_intervention`.
    fn intervened(&mut self, id: u32, yes: bool);
    /// Ends the connection after what is in the outbox has been sent (at most `CLOSE_LINGER`).
    fn close(&mut self, why: Close);
}

/// Why a connection was ended from our side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Close {
    /// The host said good-bye.
    Logout,
    /// It broke the protocol; counted, and reported in `status`.
    Protocol(ConnectionFault),
    /// It is not let in.
    Refused(ConnectionFault),
    /// Its keep-alive ran out.
    KeepAlive,
    /// It took too long to log in or to send what it announced.
    Slow,
    /// A newer connection of the same identity took its place, or the operator ended it.
    Replaced,
    /// A command of it can have no answer here: `Status::Withheld`.
    Withheld,
    /// Its host has another controller end it: nothing is left to be said to it.
    Reset,
}

/// Largest data transfer of one command, bytes (MDTS, VPD 0xB0).
pub const TRANSFER_MAX: u32 = 1 << 20;
