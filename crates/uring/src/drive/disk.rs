//! Drive operations of one reactor: into the kernel, through shapes, and back exactly once.
//!
//! ```text
//! submit ─▶ shaped? ─▶ Delayed (timer) ─┐
//!    │         └─────▶ Held (hang) ─────┤ shape changed: asked again
//!    └──────────────▶ begin ◀───────────┘
//!                       ├─ Waiting (the drive's depth is reached) ─▶ Kernel ─▶ (Held while hung) ─▶ DriveDone
//!                       └─ in process: ram, null ─▶ DriveDone
//! ```

use crate::drive::shaper::Verdict;
use crate::drive::{Backend, Drive, Drives, drive_error};
use crate::mail::Routes;
use crate::region::{CHUNK_BITS, Region, ZEROES};
use crate::ring::{Done, Kind, Ring};
use base::DriveKind;
use base::{DriveError, DriveId, DriveOp, DriveOpKind, Instant, Slice, Slots, Token};
use io_uring::{opcode, squeue, types};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Slots made ahead of need, and added at a time.
const FLIGHTS: u32 = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Until a time, by a shape.
    Delayed {
        ticket: u64,
    },
    /// Hung before it began.
    Held,
    /// Hung after it had ended like this.
    HeldDone(Result<(), DriveError>),
    /// In the queue of a drive that has enough in the kernel.
    Waiting,
    Kernel,
}

/// An operation that has begun and not been answered.
struct Flight {
    op: DriveOp,
    /// Bytes that are done already.
    done: u64,
    state: State,
    /// The shape decided that it fails.
    outcome: Option<DriveError>,
    /// How the kernel was last asked to zero, for operations that zero.
    way: ZeroWay,
}

/// How a drive is filled with zeroes; the next one is tried if it cannot do the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ZeroWay {
    Range,
    Punch,
    Write,
}

/// A drive as this reactor knows it.
struct Local {
    drive: Arc<Drive>,
    /// Where the kernel finds it: a fixed slot or a descriptor.
    target: i32,
    fixed: bool,
    in_kernel: u32,
    /// All operations, wherever they are.
    in_flight: u32,
    waiting: VecDeque<u32>,
    /// What WriteZeroes and Deallocate begin with: what did not work is not tried again.
    zero_way: ZeroWay,
    free_way: ZeroWay,
    closing: bool,
    /// A file, whose length others can change.
    file: bool,
    /// The reap after which that was last looked at, and whether it was too short then.
    measured: u64,
    cut: bool,
}

impl Local {
    /// Whether the file was cut off before `reap`, which is the last one.
    ///
    /// The kernel does not say: a write behind the new end makes the file longer again, with a hole that
    /// reads as zeroes. But nothing of ours is ever written to its very end (the label is, once, when the drive is
    /// made ours), so a check after the end of an operation sees a cut that came before.
    fn is_cut(&mut self, reap: u64) -> bool {
        let (true, Some(file)) = (self.file, self.drive.file()) else { return false };
        if self.measured != reap {
            self.measured = reap;
            // A length that cannot be asked for says nothing.
            let there = rustix::fs::fstat(file).map_or(u64::MAX, |stat| stat.st_size as u64);
            self.cut = there < self.drive.info.bytes;
        }
        self.cut
    }
}

/// All drive operations of one reactor.
pub(crate) struct Disk {
    drives: Arc<Drives>,
    locals: Vec<Option<Local>>,
    flights: Slots<Flight>,
    timers: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    tickets: u64,
    /// Drives that are let go of after their last operation.
    closings: Vec<DriveId>,
    region: Arc<Region>,
    /// How often completions were taken from the kernel.
    reaps: u64,
}

/// How an operation ended, if this step was its last. Small, where an event is not: null and RAM drives
/// end here in every turn.
type Ended = Option<(Token, Result<(), DriveError>)>;

impl Disk {
    pub(crate) fn new(drives: Arc<Drives>, region: Arc<Region>) -> Self {
        Self {
            drives,
            locals: Vec::new(),
            flights: Slots::with_capacity(FLIGHTS),
            timers: BinaryHeap::new(),
            tickets: 0,
            closings: Vec::new(),
            region,
            reaps: 0,
        }
    }

    fn local(&mut self, ring: &mut Ring, id: DriveId) -> Option<&mut Local> {
        if self.locals.len() <= id.index() {
            self.locals.resize_with(id.index() + 1, || None);
        }
        let slot = &mut self.locals[id.index()];
        if slot.is_none() {
            let drive = self.drives.attach(id)?;
            let fd = drive.fd();
            let file = drive.info.kind == DriveKind::File;
            let fixed = fd.and_then(|fd| ring.register_drive(u32::from(id.0), fd));
            *slot = Some(Local {
                target: fixed.or(fd).unwrap_or(-1),
                fixed: fixed.is_some(),
                drive,
                in_kernel: 0,
                in_flight: 0,
                waiting: VecDeque::new(),
                zero_way: ZeroWay::Range,
                free_way: ZeroWay::Punch,
                closing: false,
                file,
                measured: 0,
                cut: false,
            });
        }
        slot.as_mut().filter(|l| !l.closing)
    }

    fn of(&mut self, id: DriveId) -> &mut Local {
        self.locals[id.index()].as_mut().expect("a drive with operations in flight is attached")
    }

    /// `Effect::Drive`.
    pub(crate) fn submit(&mut self, ring: &mut Ring, now: Instant, op: DriveOp) -> Ended {
        if self.local(ring, op.drive).is_none() {
            return Some((op.token, Err(DriveError::Gone)));
        }
        let local = self.locals[op.drive.index()].as_mut().expect("just seen");
        if let Err(error) = check(&local.drive, &op) {
            return Some((op.token, Err(error)));
        }
        let shaped = local.drive.shaper.is_active();
        if !shaped && in_process(&local.drive.backend, &self.region, &op) {
            return Some((op.token, Ok(())));
        }
        local.in_flight += 1;
        let flight = Flight { op, done: 0, state: State::Waiting, outcome: None, way: ZeroWay::Range };
        let index = match self.flights.insert(flight) {
            Ok(index) => index,
            Err(flight) => {
                self.flights.reserve(FLIGHTS);
                self.flights.insert(flight).unwrap_or_else(|_| unreachable!("slots were just added"))
            }
        };
        if shaped { self.shape(ring, now, index) } else { self.begin(ring, index) }
    }

    fn shape(&mut self, ring: &mut Ring, now: Instant, index: u32) -> Ended {
        let op = self.flights[index].op;
        let verdict = self.of(op.drive).drive.shaper.admit(now, &op);
        let flight = &mut self.flights[index];
        match verdict {
            Verdict::Hold => {
                flight.state = State::Held;
                None
            }
            Verdict::At(at, outcome) => {
                flight.outcome = outcome;
                if at <= now {
                    return self.begin(ring, index);
                }
                self.tickets += 1;
                flight.state = State::Delayed { ticket: self.tickets };
                self.timers.push(Reverse((at, self.tickets, index)));
                None
            }
        }
    }

    /// When `on_timer` is next needed.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The next operation whose delay is over; call until there is none.
    pub(crate) fn on_timer(&mut self, ring: &mut Ring, now: Instant) -> Option<Ended> {
        let Reverse((at, ticket, index)) = *self.timers.peek()?;
        if at > now {
            return None;
        }
        self.timers.pop();
        // After a change of shape a slot may have gone on, or even be another's.
        let still = self.flights.get(index).is_some_and(|f| f.state == State::Delayed { ticket });
        Some(if still { self.begin(ring, index) } else { None })
    }

    /// The shape of a drive changed: what it delays or holds is asked again.
    pub(crate) fn on_shaped(
        &mut self,
        ring: &mut Ring,
        now: Instant,
        id: DriveId,
        out: &mut VecDeque<(Token, Result<(), DriveError>)>,
    ) {
        let of_drive = self.flights.iter().filter(|(_, f)| f.op.drive == id).map(|(i, f)| (i, f.state));
        for (index, state) in of_drive.collect::<Vec<_>>() {
            let ended = match state {
                State::Delayed { .. } | State::Held => self.shape(ring, now, index),
                State::HeldDone(result) => self.end(index, result),
                State::Waiting | State::Kernel => None,
            };
            out.extend(ended);
        }
    }

    /// Lets go of a drive that is being closed, now or after its last operation.
    pub(crate) fn on_closing<M: Send + 'static>(
        &mut self,
        ring: &mut Ring,
        id: DriveId,
        routes: &Arc<Routes<M>>,
    ) {
        if let Some(Some(local)) = self.locals.get_mut(id.index()) {
            local.closing = true;
            self.closings.push(id);
            self.release_if_idle(ring, id, routes);
        }
    }

    fn release_if_idle<M: Send + 'static>(&mut self, ring: &mut Ring, id: DriveId, routes: &Arc<Routes<M>>) {
        let slot = &mut self.locals[id.index()];
        if slot.as_ref().is_none_or(|l| !l.closing || l.in_flight > 0) {
            return;
        }
        let local = slot.take().expect("just seen");
        self.closings.retain(|c| *c != id);
        if local.fixed {
            ring.unregister_file(local.target);
        }
        self.drives.detach(id, local.drive, routes);
    }

    /// Lets go of drives whose last operation has ended; once a turn.
    pub(crate) fn release_idle<M: Send + 'static>(&mut self, ring: &mut Ring, routes: &Arc<Routes<M>>) {
        for i in (0..self.closings.len()).rev() {
            self.release_if_idle(ring, self.closings[i], routes);
        }
    }

    fn begin(&mut self, ring: &mut Ring, index: u32) -> Ended {
        let flight = &mut self.flights[index];
        if let Some(error) = flight.outcome {
            return self.end(index, Err(error));
        }
        let op = flight.op;
        let local = self.locals[op.drive.index()].as_mut().expect("attached while in flight");
        match &local.drive.backend {
            Backend::Kernel(_) if local.in_kernel >= local.drive.depth => {
                flight.state = State::Waiting;
                local.waiting.push_back(index);
                None
            }
            Backend::Kernel(_) => {
                local.in_kernel += 1;
                self.enter_kernel(ring, index);
                None
            }
            Backend::Ram(_) | Backend::Null => {
                let done = in_process(&local.drive.backend, &self.region, &op);
                assert!(done, "memory is read and written at once");
                self.end(index, Ok(()))
            }
        }
    }

    fn enter_kernel(&mut self, ring: &mut Ring, index: u32) {
        let flight = &mut self.flights[index];
        flight.state = State::Kernel;
        let local = self.locals[flight.op.drive.index()].as_ref().expect("attached while in flight");
        flight.way = if flight.op.kind == DriveOpKind::Deallocate { local.free_way } else { local.zero_way };
        let mut entry = entry_for(flight, local.target, ring.chunks, &self.region);
        if local.fixed {
            entry = entry.flags(squeue::Flags::FIXED_FILE);
        }
        // SAFETY: the memory lies in the region, which outlives the ring, and belongs to this operation
        // until its `DriveDone`; the descriptor stays open while the drive has operations in flight.
        unsafe { ring.push(&entry.user_data(Kind::Drive.user(index))) };
    }

    /// Completions were taken from the kernel; those of drives follow by `on_done`.
    pub(crate) fn on_reaped(&mut self) {
        self.reaps += 1;
    }

    /// A drive operation's step in the kernel completed.
    pub(crate) fn on_done(&mut self, ring: &mut Ring, index: u32, done: Done) -> Ended {
        let flight = &mut self.flights[index];
        assert!(flight.state == State::Kernel, "a drive operation completed that was not in the kernel");
        let local = self.locals[flight.op.drive.index()].as_mut().expect("attached while in flight");
        let Some(result) = advance(flight, local, done.result) else {
            self.enter_kernel(ring, index);
            return None;
        };
        let result = if result.is_ok() && local.is_cut(self.reaps) { Err(DriveError::Cut) } else { result };
        local.in_kernel -= 1;
        let hold = local.drive.shaper.holds();
        if let Some(next) = local.waiting.pop_front() {
            local.in_kernel += 1;
            self.enter_kernel(ring, next);
        }
        if hold {
            self.flights[index].state = State::HeldDone(result);
            return None;
        }
        self.end(index, result)
    }

    fn end(&mut self, index: u32, result: Result<(), DriveError>) -> Ended {
        let flight = self.flights.remove(index);
        self.of(flight.op.drive).in_flight -= 1;
        Some((flight.op.token, result))
    }
}

/// Carries out an operation of a drive that lies in this process. False: it is the kernel's to do.
fn in_process(backend: &Backend, region: &Region, op: &DriveOp) -> bool {
    let len = op.data.len as usize;
    match (backend, op.kind) {
        (Backend::Kernel(_), _) => return false,
        // SAFETY: the slice lies in the region and belongs to this operation until its end.
        (Backend::Ram(ram), DriveOpKind::Read) => unsafe { ram.read(op.at, region.pointer(op.data), len) },
        // SAFETY: as above.
        (Backend::Ram(ram), DriveOpKind::Write) => unsafe { ram.write(op.at, region.pointer(op.data), len) },
        (Backend::Ram(ram), DriveOpKind::WriteZeroes | DriveOpKind::Deallocate) => ram.zero(op.at, op.len),
        // SAFETY: as above.
        (Backend::Null, DriveOpKind::Read) => unsafe { region.pointer(op.data).write_bytes(0, len) },
        (Backend::Ram(_) | Backend::Null, _) => {}
    }
    true
}

/// Whether the drive has these blocks.
fn check(drive: &Drive, op: &DriveOp) -> Result<(), DriveError> {
    let block = u64::from(drive.info.block_bytes);
    let inside = op.at <= drive.info.bytes && op.len <= drive.info.bytes - op.at;
    let whole = op.at.is_multiple_of(block) && op.len.is_multiple_of(block);
    let moves = matches!(op.kind, DriveOpKind::Read | DriveOpKind::Write);
    let sized = op.kind == DriveOpKind::Flush || op.len > 0;
    let matched = !moves || u64::from(op.data.len) == op.len;
    if inside && whole && sized && matched { Ok(()) } else { Err(DriveError::Other(libc::EINVAL)) }
}

/// What the kernel is asked next for a flight.
fn entry_for(flight: &Flight, target: i32, fixed: u16, region: &Region) -> squeue::Entry {
    let op = &flight.op;
    let fd = types::Fd(target);
    let at = op.at + flight.done;
    let left = op.len - flight.done;
    match op.kind {
        DriveOpKind::Read => {
            let data = op.data.tail(flight.done as u32);
            let to = region.pointer(data);
            match chunk(data).filter(|n| *n < fixed) {
                Some(chunk) => opcode::ReadFixed::new(fd, to, data.len, chunk).offset(at).build(),
                None => opcode::Read::new(fd, to, data.len).offset(at).build(),
            }
        }
        DriveOpKind::Write => write(fd, op.data.tail(flight.done as u32), at, op.fua, fixed, region),
        DriveOpKind::WriteZeroes | DriveOpKind::Deallocate => match flight.way {
            ZeroWay::Range => allocate(fd, at, left, libc::FALLOC_FL_ZERO_RANGE),
            ZeroWay::Punch => allocate(fd, at, left, libc::FALLOC_FL_PUNCH_HOLE),
            ZeroWay::Write => write(fd, zeroes(left), at, false, fixed, region),
        },
        DriveOpKind::Flush => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
    }
}

fn zeroes(left: u64) -> Slice {
    ZEROES.head(left.min(u64::from(ZEROES.len)) as u32)
}

fn write(fd: types::Fd, data: Slice, at: u64, fua: bool, fixed: u16, region: &Region) -> squeue::Entry {
    let from = region.pointer(data).cast_const();
    let flags = if fua { libc::RWF_DSYNC } else { 0 };
    match chunk(data).filter(|n| *n < fixed) {
        Some(chunk) => opcode::WriteFixed::new(fd, from, data.len, chunk).offset(at).rw_flags(flags).build(),
        None => opcode::Write::new(fd, from, data.len).offset(at).rw_flags(flags).build(),
    }
}

fn allocate(fd: types::Fd, at: u64, len: u64, mode: i32) -> squeue::Entry {
    opcode::Fallocate::new(fd, len).offset(at).mode(mode | libc::FALLOC_FL_KEEP_SIZE).build()
}

/// The piece of the region that holds all of `s`, if one does: as a number of a registered buffer.
fn chunk(s: Slice) -> Option<u16> {
    let first = s.at >> CHUNK_BITS;
    (s.len > 0 && first == (s.end() - 1) >> CHUNK_BITS).then_some(first.min(u64::from(u16::MAX)) as u16)
}

/// What the kernel's answer means: the end, or None if it has to be asked again.
fn advance(flight: &mut Flight, local: &mut Local, result: i32) -> Option<Result<(), DriveError>> {
    let op = flight.op;
    let zeroes = matches!(op.kind, DriveOpKind::WriteZeroes | DriveOpKind::Deallocate);
    if result < 0 {
        return match -result {
            libc::EAGAIN | libc::EINTR => None,
            libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS if zeroes && flight.way != ZeroWay::Write => {
                let next = if flight.way == ZeroWay::Range { ZeroWay::Punch } else { ZeroWay::Write };
                let way = match op.kind {
                    DriveOpKind::Deallocate => &mut local.free_way,
                    _ => &mut local.zero_way,
                };
                // Another operation may have learnt it before.
                *way = (*way).max(next);
                None
            }
            errno => Some(Err(drive_error(errno))),
        };
    }
    if op.kind == DriveOpKind::Flush || zeroes && flight.way != ZeroWay::Write {
        return Some(Ok(()));
    }
    // Whole blocks only: a shortened file ends anywhere, and direct I/O cannot go on from there.
    let moved = u64::from(result as u32);
    flight.done += moved - moved % u64::from(local.drive.info.block_bytes);
    if flight.done == op.len {
        return Some(Ok(()));
    }
    // Nothing moved and no error: it ends here, though it was longer when it was opened.
    let error = if local.file { DriveError::Cut } else { DriveError::Medium };
    (moved < u64::from(local.drive.info.block_bytes)).then_some(Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_over_the_edge_of_a_registered_buffer_is_not_fixed() {
        const EDGE: u64 = 1 << CHUNK_BITS;
        assert_eq!(chunk(Slice::new(0, 4096)), Some(0));
        assert_eq!(chunk(Slice::new(EDGE - 4096, 4096)), Some(0));
        assert_eq!(chunk(Slice::new(EDGE, 4096)), Some(1));
        assert_eq!(chunk(Slice::new(EDGE - 4096, 8192)), None);
    }
}
