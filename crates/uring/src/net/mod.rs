//! Connections over sockets: a slot for each, at most one receive and one send in the kernel. The end of a
//! connection is reported only when the kernel holds nothing of it.

pub mod address;
pub mod ethtool;
mod frames;
pub(crate) mod listen;
mod netlink;
pub(crate) mod staging;
mod watch;

use crate::net::listen::Listeners;
use crate::net::staging::{STAGING_BYTES, Staging};
use crate::net::watch::{Peer, Watch};
use crate::region::Region;
use crate::ring::{Done, Kind, Ring};
use base::machine::OWN_SLOTS;
use base::{ConnectionId, Event, Instant, NetError, Slice};
use io_uring::{cqueue, opcode, squeue, types};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Slices in one send; what does not fit is sent by the next.
pub(crate) const SEGMENTS_MAX: usize = 256;
/// So many PDUs are worth a turn.
const WORTH_A_TURN: u32 = 64;
/// Frames made ahead of need; there are never more than sends under way.
const FRAMES: u32 = 128;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Free,
    Connecting,
    Open,
    /// The machine asked for the end; operations are still in the kernel.
    Closing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Receive {
    No,
    /// Wants a staging buffer, and the kernel has none.
    Starved(u32),
    /// Kept back, so that more comes at once: at most so many bytes.
    Kept(u32),
    /// Into a staging buffer, at most so many bytes.
    Staging(u32),
    Direct(Slice),
}

struct Conn {
    id: ConnectionId,
    fd: RawFd,
    /// Its number in the kernel's table of registered files, if it stands there.
    fixed: Option<i32>,
    phase: Phase,
    receive: Receive,
    /// The frame of the send in the kernel.
    frame: Option<u32>,
    /// `Broken` was reported, or a send failed: nothing more is asked of the kernel in that direction.
    broken: bool,
    send_failed: bool,
    /// In `watch`.
    watched: bool,
    /// The last receive emptied the socket: wait for bytes before trying.
    drained: bool,
    /// In the list of free slots.
    listed: bool,
    generation: u32,
    /// Where a Connect in the kernel goes.
    peer: Option<Box<listen::RawAddress>>,
}

impl Conn {
    /// How an operation names its socket.
    fn target(&self) -> (types::Fd, squeue::Flags) {
        match self.fixed {
            Some(number) => (types::Fd(number), squeue::Flags::FIXED_FILE),
            None => (types::Fd(self.fd), squeue::Flags::empty()),
        }
    }
}

/// A send's message header and vector; they stay put while the kernel has them.
struct Frame {
    header: libc::msghdr,
    vector: [libc::iovec; SEGMENTS_MAX],
}

/// A receive that is kept back: about how many PDUs it may bring, and since which turn.
struct Kept {
    slot: u32,
    batch: u32,
    since: u32,
}

/// All connections of one reactor.
pub(crate) struct Net {
    conns: Box<[Conn]>,
    free: Vec<u32>,
    frames: Vec<Box<Frame>>,
    free_frames: Vec<u32>,
    starved: VecDeque<u32>,
    /// Connections whose receives are kept back.
    kept: VecDeque<Kept>,
    turn: u32,
    /// Receives to be asked again in this turn.
    retries: Vec<u32>,
    /// Receives for the kernel. It gets them behind all that somebody waits for: sends and what drives are asked.
    queued: Vec<u32>,
    watch: Watch,
    region: Arc<Region>,
    scratch: Vec<Slice>,
    pub(crate) listeners: Listeners,
    /// Connections rejected because every slot was taken.
    pub(crate) refused: u64,
}

impl Net {
    pub(crate) fn new(connections_max: u32, region: Arc<Region>) -> Self {
        let conn = || Conn {
            id: ConnectionId(0),
            fd: -1,
            fixed: None,
            phase: Phase::Free,
            receive: Receive::No,
            frame: None,
            broken: false,
            send_failed: false,
            watched: false,
            drained: false,
            listed: true,
            generation: 0,
            peer: None,
        };
        // Those behind `connections_max` are never listed: a machine's own connections have them.
        let mut net = Self {
            conns: (0..connections_max + OWN_SLOTS).map(|_| conn()).collect(),
            free: (0..connections_max).rev().collect(),
            frames: Vec::new(),
            free_frames: Vec::new(),
            starved: VecDeque::with_capacity(connections_max as usize),
            kept: VecDeque::with_capacity(connections_max as usize),
            turn: 0,
            retries: Vec::new(),
            queued: Vec::with_capacity(64),
            watch: Watch::default(),
            region,
            scratch: Vec::with_capacity(SEGMENTS_MAX),
            listeners: Listeners::default(),
            refused: 0,
        };
        for _ in 0..FRAMES.min(connections_max) {
            net.add_frame();
        }
        net
    }

    fn add_frame(&mut self) {
        // SAFETY: all-zero is a valid msghdr (null pointers, zero lengths) and a valid iovec.
        self.frames.push(unsafe { Box::new(std::mem::zeroed()) });
        self.free_frames.push(self.frames.len() as u32 - 1);
    }

    /// The slot of a connection that is open and not ending.
    fn live(&mut self, id: ConnectionId) -> Option<(u32, &mut Conn)> {
        let conn = self.conns.get_mut(id.slot())?;
        let live = conn.id == id && matches!(conn.phase, Phase::Open);
        live.then_some((id.slot() as u32, conn))
    }

    fn take_free_slot(&mut self) -> Option<u32> {
        while let Some(slot) = self.free.pop() {
            let conn = &mut self.conns[slot as usize];
            conn.listed = false;
            // A machine's own Connect may have taken a listed slot.
            if conn.phase == Phase::Free {
                return Some(slot);
            }
        }
        None
    }

    fn occupy(&mut self, ring: &mut Ring, slot: u32, id: ConnectionId, fd: RawFd, phase: Phase) {
        let conn = &mut self.conns[slot as usize];
        assert!(conn.phase == Phase::Free, "a connection slot is used twice");
        *conn = Conn {
            id,
            fd,
            fixed: ring.register_connection(slot, fd),
            phase,
            receive: Receive::No,
            frame: None,
            broken: false,
            send_failed: false,
            watched: conn.watched,
            drained: true,
            listed: conn.listed,
            generation: conn.generation,
            peer: None,
        };
    }

    /// A listener's accept completed.
    pub(crate) fn on_accept<M>(&mut self, ring: &mut Ring, index: u32, done: Done) -> Option<Event<M>> {
        let wanted = self.listeners.on_accept(ring, index, done);
        if done.result < 0 {
            return None;
        }
        // SAFETY: the kernel has just made this descriptor for us and nobody else knows it.
        let socket = unsafe { OwnedFd::from_raw_fd(done.result) };
        let portal = wanted?;
        let Some(slot) = self.take_free_slot() else {
            // Closed by dropping it: a peer sees the end at once instead of silence.
            self.refused += 1;
            return None;
        };
        let Ok((local, peer)) = listen::prepare(&socket) else {
            // The peer is gone already.
            self.conns[slot as usize].listed = true;
            self.free.push(slot);
            return None;
        };
        let conn = &mut self.conns[slot as usize];
        conn.generation = conn.generation.wrapping_add(1);
        let id = ConnectionId::new(slot, conn.generation);
        self.occupy(ring, slot, id, socket.into_raw_fd(), Phase::Open);
        Some(Event::Accepted { connection: id, portal, local, peer })
    }

    /// `Effect::Connect`.
    pub(crate) fn connect<M>(
        &mut self,
        ring: &mut Ring,
        id: ConnectionId,
        peer: SocketAddr,
    ) -> Option<Event<M>> {
        assert!(id.slot() < self.conns.len(), "a connection's slot is below the limit");
        let socket = match listen::socket_to(peer) {
            Ok(socket) => socket,
            Err(e) => return Some(Event::Connected { connection: id, result: Err(net_error(&e)) }),
        };
        let slot = id.slot() as u32;
        self.occupy(ring, slot, id, socket.into_raw_fd(), Phase::Connecting);
        let conn = &mut self.conns[slot as usize];
        let address = conn.peer.insert(Box::new(listen::RawAddress::from(peer)));
        let connect = opcode::Connect::new(types::Fd(conn.fd), address.pointer(), address.len());
        let entry = connect.build().user_data(Kind::Connect.user(slot));
        // SAFETY: the address stays in the slot, boxed, until the completion.
        unsafe { ring.push(&entry) };
        None
    }

    pub(crate) fn on_connect<M>(&mut self, ring: &mut Ring, slot: u32, done: Done) -> Option<Event<M>> {
        let conn = &mut self.conns[slot as usize];
        conn.peer = None;
        let connection = conn.id;
        if conn.phase == Phase::Closing {
            return self.end_if_idle(ring, slot);
        }
        if done.result < 0 {
            self.free_slot(ring, slot);
            let e = io::Error::from_raw_os_error(-done.result);
            return Some(Event::Connected { connection, result: Err(net_error(&e)) });
        }
        conn.phase = Phase::Open;
        Some(Event::Connected { connection, result: Ok(()) })
    }

    /// `Effect::Receive`.
    pub(crate) fn receive(
        &mut self,
        staging: &Staging,
        id: ConnectionId,
        into: Option<Slice>,
        (most, batch): (u32, u32),
    ) {
        let most = most.min(STAGING_BYTES);
        let turn = self.turn;
        let free = staging.has_free() && self.starved.is_empty();
        let comes = self.conns.get(id.slot()).is_some_and(|c| c.id == id && c.phase == Phase::Connecting);
        assert!(!comes, "only a connection that is up brings bytes");
        let Some((slot, conn)) = self.live(id) else { return };
        if conn.broken {
            return;
        }
        assert!(conn.receive == Receive::No, "a connection receives twice at a time");
        match into {
            None if batch > 0 => {
                conn.receive = Receive::Kept(most);
                self.kept.push_back(Kept { slot, batch, since: turn });
            }
            None if !free => {
                conn.receive = Receive::Starved(most);
                self.starved.push_back(slot);
            }
            None => self.start_receive(slot, Receive::Staging(most)),
            Some(slice) => {
                assert!(slice.len > 0, "a receive asks for at least one byte");
                self.start_receive(slot, Receive::Direct(slice));
            }
        }
    }

    fn start_receive(&mut self, slot: u32, how: Receive) {
        self.conns[slot as usize].receive = how;
        self.queued.push(slot);
    }

    /// Gives the kernel the receives that were started since the last call: right before it is entered.
    pub(crate) fn submit_receives(&mut self, ring: &mut Ring) {
        let mut queued = std::mem::take(&mut self.queued);
        for slot in queued.drain(..) {
            let conn = &self.conns[slot as usize];
            let (fd, flags) = conn.target();
            let (recv, flags) = match conn.receive {
                Receive::Staging(most) => {
                    let recv = opcode::Recv::new(fd, std::ptr::null_mut(), most).buf_group(0);
                    (recv, flags | squeue::Flags::BUFFER_SELECT)
                }
                Receive::Direct(s) => {
                    let recv = opcode::Recv::new(fd, self.region.pointer(s), s.len);
                    // All of it in one completion: who asks for a slice knows how much is to come.
                    (recv.flags(libc::MSG_WAITALL), flags)
                }
                Receive::No | Receive::Starved(_) | Receive::Kept(_) => {
                    unreachable!("only real receives are queued")
                }
            };
            // Nothing was left last time: waiting first saves the kernel a failing attempt.
            let recv = if conn.drained { recv.ioprio(IORING_RECVSEND_POLL_FIRST) } else { recv };
            let entry = recv.build().flags(flags).user_data(Kind::Receive.user(slot));
            // SAFETY: the bytes lie in the region, which outlives the ring; the machine (or the kernel, for
            // staging buffers) leaves them alone until the completion, which `Closed` waits for.
            unsafe { ring.push(&entry) };
        }
        self.queued = queued;
    }

    pub(crate) fn on_receive<M>(
        &mut self,
        ring: &mut Ring,
        staging: &mut Staging,
        slot: u32,
        done: Done,
    ) -> Option<Event<M>> {
        let conn = &mut self.conns[slot as usize];
        let how = std::mem::replace(&mut conn.receive, Receive::No);
        let selected = cqueue::buffer_select(done.flags);
        if conn.phase == Phase::Closing {
            if let Some(id) = selected {
                let data = staging.take(id, 0);
                staging.recycle(data);
            }
            return self.end_if_idle(ring, slot);
        }
        let connection = conn.id;
        if -done.result == libc::ENOBUFS
            && let Receive::Staging(most) = how
        {
            conn.receive = Receive::Starved(most);
            conn.drained = false;
            self.starved.push_back(slot);
            staging.ran_out();
            return None;
        }
        if matches!(-done.result, libc::EINTR | libc::EAGAIN) {
            conn.receive = how;
            conn.drained = true;
            self.retries.push(slot);
            return None;
        }
        if done.result <= 0 {
            if let Some(id) = selected {
                let data = staging.take(id, 0);
                staging.recycle(data);
            }
            let reported = std::mem::replace(&mut conn.broken, true);
            return (!reported).then_some(Event::Broken { connection });
        }
        conn.drained = !cqueue::sock_nonempty(done.flags);
        let bytes = done.result as u32;
        let data = match (how, selected) {
            (Receive::Staging(_), Some(id)) => staging.take(id, bytes),
            (Receive::Direct(into), None) => into.head(bytes),
            other => unreachable!("a receive completed as another: {other:?}"),
        };
        Some(Event::Received { connection, data })
    }

    /// Starts again what waited for a buffer or was interrupted; once a turn, before the effects.
    pub(crate) fn feed_starved(&mut self, staging: &Staging) {
        while let Some(slot) = self.retries.pop() {
            self.start_receive(slot, self.conns[slot as usize].receive);
        }
        // At most as many as there are: those that find no buffer come back.
        for _ in 0..self.starved.len() {
            if !staging.has_free() {
                return;
            }
            let Some(slot) = self.starved.pop_front() else { return };
            if let Receive::Starved(most) = self.conns[slot as usize].receive {
                self.start_receive(slot, Receive::Staging(most));
            }
        }
    }

    /// Asks for as much as is worth a turn of those who have sent much at a time; the others may send more meanwhile. Of
    /// many connections each would else bring a few PDUs a turn, and cost a receive, a send and a wake-up of its host for these.
    pub(crate) fn ask_some(&mut self, staging: &Staging) {
        self.turn = self.turn.wrapping_add(1);
        self.ask(staging, WORTH_A_TURN);
    }
    /// Nothing else is to be done: asks for all.
    pub(crate) fn ask_all(&mut self, staging: &Staging) {
        self.ask(staging, u32::MAX);
    }
    pub(crate) fn keeps_back(&self) -> bool {
        !self.kept.is_empty()
    }
    fn ask(&mut self, staging: &Staging, mut room: u32) {
        while room > 0
            && let Some(Kept { slot, batch, since }) = self.kept.pop_front()
        {
            room = room.saturating_sub(batch);
            let conn = &mut self.conns[slot as usize];
            let Receive::Kept(most) = conn.receive else { unreachable!("who is closed is kept no more") };
            // Over a turn something has come, as a rule.
            conn.drained &= self.turn.wrapping_sub(since) <= 1;
            if staging.has_free() && self.starved.is_empty() {
                self.start_receive(slot, Receive::Staging(most));
            } else {
                conn.receive = Receive::Starved(most);
                self.starved.push_back(slot);
            }
        }
    }

    /// Whether a send may be started, and how many slices it takes.
    pub(crate) fn may_send(&mut self, id: ConnectionId) -> bool {
        let Some((_, conn)) = self.live(id) else { return false };
        assert!(conn.frame.is_none(), "a connection sends twice at a time");
        !conn.send_failed
    }

    /// `Effect::Send`: what `segments` appends.
    pub(crate) fn send(
        &mut self,
        ring: &mut Ring,
        id: ConnectionId,
        segments: impl FnOnce(usize, &mut Vec<Slice>),
    ) {
        if !self.may_send(id) {
            return;
        }
        self.scratch.clear();
        segments(SEGMENTS_MAX, &mut self.scratch);
        let n = self.scratch.len();
        assert!(0 < n && n <= SEGMENTS_MAX, "a send has between one and {SEGMENTS_MAX} segments, not {n}");
        if self.free_frames.is_empty() {
            self.add_frame();
        }
        let index = self.free_frames.pop().expect("there is one now");
        let frame = &mut self.frames[index as usize];
        for (vector, slice) in frame.vector.iter_mut().zip(&self.scratch) {
            vector.iov_base = self.region.pointer(*slice).cast();
            vector.iov_len = slice.len as usize;
        }
        frame.header.msg_iov = frame.vector.as_mut_ptr();
        frame.header.msg_iovlen = n;
        let slot = id.slot();
        let conn = &mut self.conns[slot];
        conn.frame = Some(index);
        if !conn.watched {
            conn.watched = true;
            self.watch.add(slot as u32);
        }
        let (fd, flags) = conn.target();
        let entry =
            opcode::SendMsg::new(fd, &frame.header).flags(libc::MSG_NOSIGNAL as u32).build().flags(flags);
        // SAFETY: the frame is boxed and not reused until the completion; the bytes lie in the region, and
        // the machine keeps them as they are until `Sent` or `Closed`.
        unsafe { ring.push(&entry.user_data(Kind::Send.user(slot as u32))) };
    }

    pub(crate) fn on_send<M>(&mut self, ring: &mut Ring, slot: u32, done: Done) -> Option<Event<M>> {
        let conn = &mut self.conns[slot as usize];
        let frame = conn.frame.take().expect("a send completed that was under way");
        self.free_frames.push(frame);
        if conn.phase == Phase::Closing {
            return self.end_if_idle(ring, slot);
        }
        let connection = conn.id;
        if done.result > 0 {
            return Some(Event::Sent { connection, bytes: done.result as u32 });
        }
        // A send of at least one byte that took none has failed, whatever the reason.
        conn.send_failed = true;
        let reported = std::mem::replace(&mut conn.broken, true);
        (!reported).then_some(Event::Broken { connection })
    }

    /// When [`on_look`](Self::on_look) has something to do.
    pub(crate) fn next_look(&mut self, now: Instant) -> Option<Instant> {
        self.watch.next(now)
    }
    /// Looks, when it is time, whether peers still answer; the connections of those that do not are broken.
    pub(crate) fn on_look<M>(&mut self, now: Instant, broken: &mut impl Extend<Event<M>>) {
        let conns = &mut self.conns;
        self.watch.look(now, |slot| {
            let conn = &mut conns[*slot as usize];
            let peer =
                if conn.phase == Phase::Open && !conn.broken { watch::peer(conn.fd) } else { Peer::HasAll };
            if peer == Peer::Silent {
                conn.broken = true;
                broken.extend([Event::Broken { connection: conn.id }]);
            }
            conn.watched = peer == Peer::Owes;
            conn.watched
        });
    }

    /// `Effect::Close`.
    pub(crate) fn close<M>(&mut self, ring: &mut Ring, id: ConnectionId) -> Option<Event<M>> {
        let conn = self.conns.get_mut(id.slot())?;
        if conn.id != id || !matches!(conn.phase, Phase::Open | Phase::Connecting) {
            return None;
        }
        let slot = id.slot() as u32;
        let connecting = conn.phase == Phase::Connecting;
        conn.phase = Phase::Closing;
        if matches!(conn.receive, Receive::Starved(_)) {
            conn.receive = Receive::No;
            self.starved.retain(|s| *s != slot);
        }
        if matches!(conn.receive, Receive::Kept(_)) {
            conn.receive = Receive::No;
            self.kept.retain(|k| k.slot != slot);
        }
        if let Some(at) = self.queued.iter().position(|s| *s == slot) {
            conn.receive = Receive::No;
            self.queued.remove(at);
        }
        let conn = &self.conns[slot as usize];
        let under_way = [
            (connecting, Kind::Connect),
            (conn.receive != Receive::No, Kind::Receive),
            (conn.frame.is_some(), Kind::Send),
        ];
        // SAFETY: the descriptor is open and ours; shutdown touches no memory.
        unsafe { libc::shutdown(conn.fd, libc::SHUT_RDWR) };
        for (there, kind) in under_way {
            if there {
                let entry = opcode::AsyncCancel::new(kind.user(slot)).build();
                // SAFETY: a cancel points to nothing.
                unsafe { ring.push(&entry.user_data(Kind::Cancel.user(slot))) };
            }
        }
        self.end_if_idle(ring, slot)
    }

    fn end_if_idle<M>(&mut self, ring: &mut Ring, slot: u32) -> Option<Event<M>> {
        let conn = &self.conns[slot as usize];
        if conn.receive != Receive::No || conn.frame.is_some() || conn.peer.is_some() {
            return None;
        }
        let connection = conn.id;
        self.free_slot(ring, slot);
        Some(Event::Closed { connection })
    }

    fn free_slot(&mut self, ring: &mut Ring, slot: u32) {
        let conn = &mut self.conns[slot as usize];
        if let Some(number) = conn.fixed.take() {
            ring.unregister_file(number);
        }
        // SAFETY: the slot owned this descriptor and forgets it here.
        drop(unsafe { OwnedFd::from_raw_fd(std::mem::replace(&mut conn.fd, -1)) });
        conn.phase = Phase::Free;
        if !conn.listed {
            conn.listed = true;
            self.free.push(slot);
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for conn in self.conns.iter().filter(|c| c.fd >= 0) {
            // SAFETY: the slot owns this descriptor, and this is its end.
            drop(unsafe { OwnedFd::from_raw_fd(conn.fd) });
        }
    }
}

/// Wait for readiness before the first attempt (Linux 5.19).
const IORING_RECVSEND_POLL_FIRST: u16 = 1;

/// An error as machines know it.
pub(crate) fn net_error(e: &io::Error) -> NetError {
    match e.raw_os_error() {
        Some(libc::EADDRINUSE) => NetError::InUse,
        Some(libc::EADDRNOTAVAIL) => NetError::NoAddress,
        Some(libc::ECONNREFUSED) => NetError::Refused,
        other => NetError::Other(other.unwrap_or(0)),
    }
}
