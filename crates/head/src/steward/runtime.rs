//! Runtime: the Steward's long procedures as `async fn`, on an executor that is as deterministic as a
//! machine.
//!
//! A task waits for completions (drive, state directory), for time, or for a condition. After each
//! event every task is polled, in order of age, until none moves: there are few tasks, and so no waker
//! is needed. What a task waits for changes nothing until it is there. A task may be dropped at any await; what it was doing is redone from durable state.
//!
//! Drive operations have deadlines. One that misses its deadline is over for its task; its buffer stays
//! held until the drive lets go. Until then nothing is written where a change that was given up may still land:
//! drives carry operations out in any order, and a record must not be followed by the one before it.

use crate::admission::buffers::{BUFFER_MAX, Buffers, PAGE};
use crate::mail::{Mail, ManagerMail, ShardMail, to_manager, to_shard};
use base::machine::{Shape, StateError, StateOp};
use base::{
    Bug, DriveError, DriveHealth, DriveId, DriveInfo, DriveKind, DriveOp, DriveOpKind, DriveOpenFault,
    Duration, Effect, Effects, Fence, FenceError, FenceOp, Instant, Memory, OpenError, Slice, Token, planted,
    planted_if,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// How long somebody waits for drives.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For one metadata operation.
    pub op: Duration,
    /// For an open drive to be looked at: some dozen short reads.
    pub look: Duration,
}

impl Patience {
    /// Where hosts wait: a drive that hangs in the middle keeps nobody.
    pub const PROMPT: Self = Self { op: Duration::from_secs(1), look: Duration::from_secs(3) };
    /// Where somebody asked for a drive that serves nobody yet: a busy machine may take seconds for what is done in
    /// parallel on many drives, and that is no reason to refuse them. One that hangs is known by one operation.
    pub const ORDER: Self = Self { op: Duration::from_secs(3), look: Duration::from_secs(10) };
}
/// How long a drive may take to be opened. An open that takes longer is given up: it holds up nobody, and what it opens
/// after all is let go of at once.
pub const OPEN_PATIENCE: Duration = Duration::from_millis(2500);

enum Outcome {
    Drive(Result<(), DriveError>),
    Opened(Result<DriveInfo, OpenError>),
    Inspected(Result<DriveHealth, DriveError>),
    Fenced(Result<Fence, FenceError>),
    State(Result<Vec<u8>, StateError>),
}

/// An open that has not ended.
struct Opening {
    drive: DriveId,
    spec: String,
    /// Nobody waits for it any more.
    given_up: bool,
}

/// An operation that the kernel holds.
#[derive(Clone, Copy)]
struct Held {
    drive: DriveId,
    at: u64,
    len: u64,
    /// It changes what lies there.
    changes: bool,
    buffer: Option<Slice>,
}

struct Inner {
    now: Instant,
    memory: Box<dyn StewardMemory>,
    buffers: Buffers,
    fx: Effects<Mail>,
    tokens: u64,
    done: BTreeMap<u64, Outcome>,
    /// Waits that have ended. Without one a task that has begun does nothing.
    woken: u64,
    /// Operations given up on that the kernel still holds; None: a look from outside, which holds nothing.
    hung: BTreeMap<u64, Option<Held>>,
    opening: BTreeMap<u64, Opening>,
    /// By what the drives that are open were opened, with their paths, and those of which the kernel has not let go yet.
    open: BTreeMap<DriveId, [String; 2]>,
    leaving: BTreeMap<DriveId, [String; 2]>,
    closed: BTreeSet<DriveId>,
    deadlines: BTreeSet<Instant>,
    /// Another head may have our drives, too.
    shared: bool,
    born: Vec<Pin<Box<dyn Future<Output = ()>>>>,
}

/// `Memory` as a trait object: the Steward is a cold edge.
trait StewardMemory {
    fn bytes(&self, s: Slice) -> &[u8];
    fn bytes_mut(&mut self, s: Slice) -> &mut [u8];
}

impl<M: Memory> StewardMemory for M {
    fn bytes(&self, s: Slice) -> &[u8] {
        Memory::bytes(self, s)
    }
    fn bytes_mut(&mut self, s: Slice) -> &mut [u8] {
        Memory::bytes_mut(self, s)
    }
}

/// A handle on the world for procedures; clones are the same. It knows how patient its holder is.
#[derive(Clone)]
pub struct Cx(Rc<RefCell<Inner>>, Patience);

/// The executor; the Steward owns it.
pub struct Runtime {
    cx: Cx,
    tasks: Vec<Pin<Box<dyn Future<Output = ()>>>>,
    extent: (u64, u64),
}

impl Runtime {
    /// An executor without tasks, with memory for its drive operations.
    pub fn new(memory: impl Memory + 'static) -> Self {
        let extent = memory.extent();
        let first = extent.0.next_multiple_of(PAGE);
        let buffers = Buffers::new(first, (extent.0 + extent.1 - first) / PAGE * PAGE);
        let inner = Inner {
            now: Instant(0),
            memory: Box::new(memory),
            buffers,
            fx: vec![],
            tokens: 0,
            done: BTreeMap::new(),
            woken: 0,
            hung: BTreeMap::new(),
            opening: BTreeMap::new(),
            open: BTreeMap::new(),
            leaving: BTreeMap::new(),
            closed: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            shared: false,
            born: vec![],
        };
        Self { cx: Cx(Rc::new(RefCell::new(inner)), Patience::PROMPT), tasks: vec![], extent }
    }
    /// The handle that procedures work with.
    pub fn cx(&self) -> Cx {
        self.cx.clone()
    }
    /// Tells the time; called first in every turn.
    pub fn on_now(&mut self, now: Instant) {
        self.cx.0.borrow_mut().now = now;
    }
    /// A drive operation ended.
    pub fn on_drive_done(&mut self, token: Token, result: Result<(), DriveError>) {
        let mut inner = self.cx.0.borrow_mut();
        match inner.hung.remove(&token.0) {
            Some(held) => {
                if let Some(data) = held.and_then(|h| h.buffer) {
                    inner.buffers.release(data);
                }
            }
            None => {
                inner.done.insert(token.0, Outcome::Drive(result));
            }
        }
    }
    /// A drive was opened, or not. What nobody waits for any more is closed again; if it was not opened, its number is
    /// free, and returned.
    pub fn on_drive_opened(&mut self, token: Token, result: Result<DriveInfo, OpenError>) -> Option<DriveId> {
        let mut inner = self.cx.0.borrow_mut();
        let opening = inner.opening.remove(&token.0).expect("a drive that is opened was asked for");
        match (opening.given_up, result) {
            (false, result) => {
                inner.done.insert(token.0, Outcome::Opened(result));
                None
            }
            (true, Ok(_)) => {
                inner.fx.push(Effect::CloseDrive { drive: opening.drive });
                None
            }
            (true, Err(_)) => Some(opening.drive),
        }
    }
    /// A drive was looked at.
    pub fn on_drive_inspected(&mut self, token: Token, result: Result<DriveHealth, DriveError>) {
        let mut inner = self.cx.0.borrow_mut();
        if inner.hung.remove(&token.0).is_none() {
            inner.done.insert(token.0, Outcome::Inspected(result));
        }
    }
    /// A drive's fence was asked for something.
    pub fn on_fenced(&mut self, token: Token, result: Result<Fence, FenceError>) {
        self.cx.0.borrow_mut().done.insert(token.0, Outcome::Fenced(result));
    }
    /// Nothing of ours is left in the kernel on this drive.
    pub fn on_drive_closed(&mut self, drive: DriveId) {
        let mut inner = self.cx.0.borrow_mut();
        inner.leaving.remove(&drive);
        inner.closed.insert(drive);
    }
    /// An operation on the state directory ended.
    pub fn on_state(&mut self, token: Token, result: Result<Vec<u8>, StateError>) {
        self.cx.0.borrow_mut().done.insert(token.0, Outcome::State(result));
    }
    /// Lets every task go on as far as it can, and hands over what they want done.
    pub fn run(&mut self, fx: &mut Effects<Mail>) {
        let mut poll = Context::from_waker(Waker::noop());
        // Two passes in which nothing moves: a task may have fulfilled what an older one waits for.
        let mut still = 0;
        while still < 2 {
            let (before, woken) = (self.progress(), self.cx.woken());
            let mut born = core::mem::take(&mut self.cx.0.borrow_mut().born);
            let nobody_begins = born.is_empty();
            self.tasks.append(&mut born);
            self.tasks.retain_mut(|task| task.as_mut().poll(&mut poll).is_pending());
            // Everybody waits for the same as before this pass, and would in the next one.
            if nobody_begins && self.cx.woken() == woken {
                break;
            }
            still = if self.progress() == before { still + 1 } else { 0 };
        }
        let mut inner = self.cx.0.borrow_mut();
        let now = inner.now;
        inner.deadlines.retain(|at| *at > now);
        fx.append(&mut inner.fx);
    }
    fn progress(&self) -> (usize, usize, usize, u64, usize) {
        let inner = self.cx.0.borrow();
        (self.tasks.len(), inner.born.len(), inner.fx.len(), inner.tokens, inner.done.len())
    }
    /// When a task wants to go on without an event.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.cx.0.borrow().deadlines.first().copied()
    }
    /// Tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }
    /// Bytes of its memory, for worlds that move bytes themselves.
    pub fn dma<R>(&mut self, data: Slice, with: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let (start, len) = self.extent;
        let inside = start <= data.at && data.end() <= start + len;
        inside.then(|| with(self.cx.0.borrow_mut().memory.bytes_mut(data)))
    }
}

impl Cx {
    /// The same handle for somebody who waits as long for drives.
    pub fn with(&self, patience: Patience) -> Self {
        Self(self.0.clone(), patience)
    }
    /// How long its holder waits for drives.
    pub fn patience(&self) -> Patience {
        self.1
    }
    /// The time of this turn.
    pub fn now(&self) -> Instant {
        self.0.borrow().now
    }
    /// Starts a task of its own.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.borrow_mut().born.push(Box::pin(task));
    }
    /// Writes to a shard.
    pub fn to_shard(&self, shard: u16, mail: ShardMail) {
        self.0.borrow_mut().fx.push(to_shard(shard, mail));
    }
    /// Has these things done.
    pub fn carry_out(&self, mut fx: Effects<Mail>) {
        self.0.borrow_mut().fx.append(&mut fx);
    }
    /// Writes to the manager.
    pub fn to_manager(&self, mail: ManagerMail) {
        self.0.borrow_mut().fx.push(to_manager(mail));
    }
    /// Waits until `condition` says so; it is asked whenever anything happened.
    pub async fn until(&self, mut condition: impl FnMut() -> bool) {
        self.wait(|| if condition() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
    /// Waits until `condition` says so, at most so long; false if it never did.
    pub async fn until_within(&self, patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
        let end = self.now() + patience;
        self.0.borrow_mut().deadlines.insert(end);
        self.wait(|| match condition() {
            true => Poll::Ready(true),
            false if self.now() >= end => Poll::Ready(false),
            false => Poll::Pending,
        })
        .await
    }
    /// Waits for some work, and drops it where it waits once `over` says so: then None.
    pub async fn unless<T>(
        &self,
        mut over: impl FnMut() -> bool,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|poll| match work.as_mut().poll(poll) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if over() => {
                self.wakes();
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }
    /// Waits for some work until `end`, and drops it then: None.
    pub async fn until_end<T>(&self, end: Instant, work: impl Future<Output = T>) -> Option<T> {
        self.0.borrow_mut().deadlines.insert(end);
        self.unless(|| self.now() >= end, work).await
    }
    /// Waits.
    pub async fn sleep(&self, time: Duration) {
        self.until_within(time, || false).await;
    }
    /// Claims and opens a drive, within `OPEN_PATIENCE`: a drive that hangs may keep whoever opens it for ever. One that
    /// is still being opened for somebody who gave that up, or let go of by us, is not asked before that is over.
    ///
    /// # Errors
    /// Why not. The number is the caller's again unless `is_opening`.
    pub async fn open(&self, drive: DriveId, spec: &str) -> Result<DriveInfo, OpenError> {
        let (token, end) = (self.token(), self.now() + OPEN_PATIENCE);
        let may_open = || {
            let inner = self.0.borrow();
            let leaves = inner.leaving.values().flatten().any(|s| s == spec);
            !leaves && !inner.opening.values().any(|o| o.given_up && o.spec == spec)
        };
        if !may_open() && !self.until_within(OPEN_PATIENCE, may_open).await {
            return Err(if self.still_holds(spec) { still_held(spec) } else { silent(spec) });
        }
        {
            let mut inner = self.0.borrow_mut();
            // The number may have been another drive's.
            inner.closed.remove(&drive);
            inner.opening.insert(token, Opening { drive, spec: spec.to_owned(), given_up: false });
            let (spec, shared) = (spec.to_owned(), inner.shared);
            inner.fx.push(Effect::OpenDrive { token: Token(token), drive, spec, shared });
            inner.deadlines.insert(end);
        }
        let _asked = Asked { cx: self, drive, token };
        let opened = self.wait(|| {
            let mut inner = self.0.borrow_mut();
            match inner.done.remove(&token) {
                Some(Outcome::Opened(result)) => Poll::Ready(Some(result)),
                Some(_) => unreachable!("tokens are not reused"),
                None if inner.now >= end => Poll::Ready(None),
                None => Poll::Pending,
            }
        });
        let opened = opened.await.unwrap_or_else(|| Err(silent(spec)));
        if let Some(info) = opened.as_ref().ok().filter(|_| DriveKind::of(spec).has_name()) {
            self.0.borrow_mut().open.insert(drive, [spec.to_owned(), info.path.clone()]);
        }
        opened
    }
    /// From now on another head may have the drives that are opened, too.
    pub fn share(&self) {
        self.0.borrow_mut().shared = true;
    }
    /// Asks something of an open drive's fence; the answer comes within its limit.
    pub async fn fence(&self, drive: DriveId, op: FenceOp) -> Result<Fence, FenceError> {
        let token = self.token();
        self.0.borrow_mut().fx.push(Effect::Fence { token: Token(token), drive, op });
        match self.outcome(token).await {
            Outcome::Fenced(result) => result,
            _ => unreachable!("tokens are not reused"),
        }
    }
    /// Whether the kernel is still opening a drive: its number belongs to nobody else yet.
    pub fn is_opening(&self, drive: DriveId) -> bool {
        self.0.borrow().opening.values().any(|o| o.drive == drive)
    }
    /// Looks at an open drive from outside, within `Patience::op`.
    pub async fn inspect(&self, drive: DriveId) -> Result<DriveHealth, DriveError> {
        let token = self.token();
        let end = self.now() + self.1.op;
        {
            let mut inner = self.0.borrow_mut();
            inner.fx.push(Effect::InspectDrive { token: Token(token), drive });
            inner.deadlines.insert(end);
        }
        self.wait(|| {
            let mut inner = self.0.borrow_mut();
            match inner.done.remove(&token) {
                Some(Outcome::Inspected(result)) => Poll::Ready(result),
                Some(_) => unreachable!("tokens are not reused"),
                None if inner.now >= end => {
                    inner.hung.insert(token, None);
                    Poll::Ready(Err(DriveError::TimedOut))
                }
                None => Poll::Pending,
            }
        })
        .await
    }
    /// Lets go of a drive at once; `closed` tells when nothing of ours is left in the kernel.
    pub fn close(&self, drive: DriveId) {
        let mut inner = self.0.borrow_mut();
        if let Some(spec) = inner.open.remove(&drive) {
            inner.leaving.insert(drive, spec);
        }
        inner.fx.push(Effect::CloseDrive { drive });
    }
    /// Whether a drive by this name was let go of, and the kernel still holds something of ours on it.
    pub fn still_holds(&self, name: &str) -> bool {
        self.0.borrow().leaving.values().flatten().any(|s| s == name)
    }
    /// Whether this drive was let go of under this number, and the kernel still holds something of ours on it.
    pub fn leaves(&self, drive: DriveId) -> bool {
        self.0.borrow().leaving.contains_key(&drive)
    }
    /// Whether the end of `close` was reached.
    pub fn closed(&self, drive: DriveId) -> bool {
        self.0.borrow().closed.contains(&drive)
    }
    /// Changes a drive's artificial behaviour.
    pub fn shape(&self, drive: DriveId, shape: Shape) {
        self.0.borrow_mut().fx.push(Effect::ShapeDrive { drive, shape });
    }
    /// Reads `len` bytes (any length, in pieces), each piece within `Patience::op`.
    pub async fn read(&self, drive: DriveId, at: u64, len: usize) -> Result<Vec<u8>, DriveError> {
        let mut out = Vec::with_capacity(len);
        while out.len() < len {
            let n = (len - out.len()).min(PIECE);
            let data = self.buffer(n as u32).await;
            let kind = DriveOpKind::Read;
            let at = at + out.len() as u64;
            let op = DriveOp { drive, kind, at, len: n as u64, data, fua: false, token: Token(0) };
            self.operate(op, Some(data), |bytes| out.extend_from_slice(bytes)).await?;
        }
        Ok(out)
    }
    /// Writes durably (Force Unit Access), in pieces, each within `Patience::op`.
    pub async fn write(&self, drive: DriveId, at: u64, bytes: &[u8]) -> Result<(), DriveError> {
        for (i, piece) in bytes.chunks(PIECE).enumerate() {
            let data = self.buffer(piece.len() as u32).await;
            self.0.borrow_mut().memory.bytes_mut(data).copy_from_slice(piece);
            let (kind, at) = (DriveOpKind::Write, at + (i * PIECE) as u64);
            let op = DriveOp {
                drive,
                kind,
                at,
                len: piece.len() as u64,
                data,
                fua: !planted(Bug::RecordNotForced),
                token: Token(0),
            };
            self.operate(op, Some(data), |_| {}).await?;
        }
        Ok(())
    }
    /// Zeroes on the drive, flushed.
    pub async fn zero(&self, drive: DriveId, at: u64, len: u64) -> Result<(), DriveError> {
        let (kind, data) = (DriveOpKind::WriteZeroes, Slice::default());
        self.operate(DriveOp { drive, kind, at, len, data, fua: false, token: Token(0) }, None, |_| {})
            .await?;
        self.flush(drive).await
    }
    /// The drive forgets the range, where `DriveInfo::deallocate_zeroes`.
    pub async fn deallocate(&self, drive: DriveId, at: u64, len: u64) -> Result<(), DriveError> {
        let (kind, data) = (DriveOpKind::Deallocate, Slice::default());
        self.operate(DriveOp { drive, kind, at, len, data, fua: false, token: Token(0) }, None, |_| {}).await
    }
    /// Everything written before is durable when this ends.
    pub async fn flush(&self, drive: DriveId) -> Result<(), DriveError> {
        let (kind, data) = (DriveOpKind::Flush, Slice::default());
        self.operate(DriveOp { drive, kind, at: 0, len: 0, data, fua: false, token: Token(0) }, None, |_| {})
            .await
    }
    /// Works on the state directory.
    pub async fn state(&self, op: StateOp) -> Result<Vec<u8>, StateError> {
        let token = self.token();
        self.0.borrow_mut().fx.push(Effect::State { token: Token(token), op });
        match self.outcome(token).await {
            Outcome::State(result) => result,
            _ => unreachable!("tokens are not reused"),
        }
    }

    /// Says that shared state changed on which other tasks may wait.
    pub fn changed(&self) {
        self.0.borrow_mut().tokens += 1;
    }

    /// Waits until `asks` has something. Every wait is one of these, or holds some.
    async fn wait<T>(&self, mut asks: impl FnMut() -> Poll<T>) -> T {
        poll_fn(|_| {
            let found = asks();
            if found.is_ready() {
                self.wakes();
            }
            found
        })
        .await
    }
    fn wakes(&self) {
        self.0.borrow_mut().woken += 1;
    }
    fn woken(&self) -> u64 {
        self.0.borrow().woken
    }
    fn token(&self) -> u64 {
        let mut inner = self.0.borrow_mut();
        inner.tokens += 1;
        inner.tokens
    }
    async fn outcome(&self, token: u64) -> Outcome {
        self.wait(|| match self.0.borrow_mut().done.remove(&token) {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        })
        .await
    }
    async fn buffer(&self, len: u32) -> Slice {
        self.wait(|| match self.0.borrow_mut().buffers.take(len) {
            Some(data) => Poll::Ready(data),
            None => Poll::Pending,
        })
        .await
    }
    async fn operate(
        &self,
        mut op: DriveOp,
        buffer: Option<Slice>,
        with: impl FnOnce(&[u8]),
    ) -> Result<(), DriveError> {
        let end = self.now() + self.1.op;
        let changes = !matches!(op.kind, DriveOpKind::Read | DriveOpKind::Flush);
        let held = Held { drive: op.drive, at: op.at, len: op.len, changes, buffer };
        let mut under_way = UnderWay { cx: self, held, token: None };
        let waits = changes && !planted_if(Bug::RecordOvertaken, || !self.is_free(held));
        if waits && !self.has_ended_there(held, end).await {
            return Err(DriveError::TimedOut);
        }
        let token = self.token();
        (op.token, under_way.token) = (Token(token), Some(token));
        {
            let mut inner = self.0.borrow_mut();
            inner.fx.push(Effect::Drive(op));
            inner.deadlines.insert(end);
        }
        let result = self
            .wait(|| {
                let mut inner = self.0.borrow_mut();
                match inner.done.remove(&token) {
                    Some(Outcome::Drive(result)) => Poll::Ready(Some(result)),
                    Some(_) => unreachable!("tokens are not reused"),
                    None if inner.now >= end => Poll::Ready(None),
                    None => Poll::Pending,
                }
            })
            .await;
        let Some(result) = result else { return Err(DriveError::TimedOut) };
        under_way.token = None;
        if let (Ok(()), Some(data)) = (result, buffer) {
            with(self.0.borrow().memory.bytes(data));
        }
        result
    }
    /// Waits until no change that was given up can land any more where another is to go; false if that takes too long.
    async fn has_ended_there(&self, new: Held, end: Instant) -> bool {
        let free = || self.is_free(new);
        if free() {
            return true;
        }
        self.until_within(end.since(self.now()), free).await
    }
    /// Nothing that was given up may still change what lies there.
    fn is_free(&self, new: Held) -> bool {
        let meets = |old: &Held| {
            old.changes && old.drive == new.drive && old.at < new.at + new.len && new.at < old.at + old.len
        };
        !self.0.borrow().hung.values().flatten().any(meets)
    }
}

/// What is said of a drive that is not opened in time.
fn silent(spec: &str) -> OpenError {
    OpenError::new(spec, DriveOpenFault::Silent { milliseconds: OPEN_PATIENCE.as_millis() as u64 })
}

/// What is said of a drive that has not ended what we gave up.
fn still_held(spec: &str) -> OpenError {
    OpenError::new(spec, DriveOpenFault::Busy)
}

/// An open of a task. If it is given up, or its task is, nobody keeps what it opens.
struct Asked<'a> {
    cx: &'a Cx,
    drive: DriveId,
    token: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut inner = self.cx.0.borrow_mut();
        if let Some(opening) = inner.opening.get_mut(&self.token) {
            opening.given_up = true;
        } else if let Some(Outcome::Opened(Ok(_))) = inner.done.remove(&self.token) {
            inner.fx.push(Effect::CloseDrive { drive: self.drive });
        }
    }
}

/// A drive operation of a task. If it is given up, or its task is, the kernel still holds what it holds.
struct UnderWay<'a> {
    cx: &'a Cx,
    held: Held,
    /// None: the kernel has not got it yet, or no more.
    token: Option<u64>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut inner = self.cx.0.borrow_mut();
        match self.token.filter(|token| inner.done.remove(token).is_none()) {
            Some(token) => drop(inner.hung.insert(token, Some(self.held))),
            None => {
                if let Some(data) = self.held.buffer {
                    inner.buffers.release(data);
                }
            }
        }
    }
}

/// Metadata moves in pieces of at most this many bytes.
const PIECE: usize = 256 << 10;
const _: () = assert!(PIECE as u64 <= BUFFER_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steward::join::Boxed;
    use base::memory::PlainMemory;
    use std::cell::Cell;

    fn runtime() -> Runtime {
        Runtime::new(PlainMemory::new(1 << 20, 1 << 20))
    }

    #[test]
    fn a_task_goes_on_when_its_operation_ends() {
        let mut rt = runtime();
        let (cx, got) = (rt.cx(), Rc::new(Cell::new(0)));
        let seen = got.clone();
        cx.clone().spawn(async move {
            let bytes = cx.read(DriveId(3), 4096, 8192).await.expect("read");
            seen.set(bytes.len());
        });
        let mut fx = vec![];
        rt.run(&mut fx);
        let [Effect::Drive(op)] = fx.as_slice() else { panic!("one operation: {fx:?}") };
        assert_eq!((op.drive, op.at, op.len), (DriveId(3), 4096, 8192));
        rt.on_drive_done(op.token, Ok(()));
        rt.run(&mut vec![]);
        assert_eq!((got.get(), rt.tasks()), (8192, 0));
    }

    #[test]
    fn an_operation_that_hangs_is_given_up_and_its_memory_comes_back_later() {
        let mut rt = runtime();
        let (cx, end) = (rt.cx(), Rc::new(Cell::new(None)));
        let seen = end.clone();
        cx.clone().spawn(async move { seen.set(Some(cx.write(DriveId(0), 0, &[1; 4096]).await)) });
        let mut fx = vec![];
        rt.run(&mut fx);
        let Some(Effect::Drive(op)) = fx.pop() else { panic!("an operation") };
        rt.on_now(Instant(0) + Patience::PROMPT.op);
        rt.run(&mut fx);
        assert_eq!(end.get(), Some(Err(DriveError::TimedOut)));
        assert_eq!(rt.cx.0.borrow().buffers.used(), 4096);
        rt.on_drive_done(op.token, Ok(()));
        assert_eq!(rt.cx.0.borrow().buffers.used(), 0);
    }

    #[test]
    fn the_memory_of_an_operation_whose_task_was_dropped_comes_back_with_it() {
        let mut rt = runtime();
        let (cx, stop) = (rt.cx(), Rc::new(Cell::new(false)));
        let over = stop.clone();
        cx.clone().spawn(async move {
            cx.unless(|| over.get(), cx.write(DriveId(0), 0, &[1; 4096])).await;
        });
        let mut fx = vec![];
        rt.run(&mut fx);
        let Some(Effect::Drive(op)) = fx.pop() else { panic!("an operation") };
        stop.set(true);
        rt.run(&mut fx);
        assert_eq!((rt.tasks(), rt.cx.0.borrow().buffers.used()), (0, 4096));
        rt.on_drive_done(op.token, Ok(()));
        assert_eq!(rt.cx.0.borrow().buffers.used(), 0);
    }

    #[test]
    fn nothing_is_written_where_a_write_that_was_given_up_may_still_land() {
        let mut rt = runtime();
        let (cx, ended) = (rt.cx(), Rc::new(RefCell::new(vec![])));
        let write = |at: u64, name: &'static str| {
            let (cx, ended) = (cx.clone(), ended.clone());
            cx.clone().spawn(async move {
                let result = cx.write(DriveId(0), at, &[1; 4096]).await;
                ended.borrow_mut().push((name, result));
            });
        };
        let turn = |rt: &mut Runtime, ms: u64| {
            let mut fx = vec![];
            rt.on_now(Instant(ms * 1_000_000));
            rt.run(&mut fx);
            let op = |e: Effect<Mail>| if let Effect::Drive(op) = e { Some(op) } else { None };
            fx.into_iter().filter_map(op).collect::<Vec<_>>()
        };
        write(8192, "old");
        let old = turn(&mut rt, 0)[0];
        assert!(turn(&mut rt, 1000).is_empty());
        write(8192, "impatient");
        write(4096, "elsewhere");
        let there = turn(&mut rt, 1001);
        assert_eq!(there.iter().map(|op| op.at).collect::<Vec<_>>(), [4096]);
        rt.on_drive_done(there[0].token, Ok(()));
        assert!(turn(&mut rt, 2001).is_empty());
        write(8192, "patient");
        assert!(turn(&mut rt, 2500).is_empty());
        rt.on_drive_done(old.token, Ok(()));
        let new = turn(&mut rt, 2501);
        assert_eq!(new.iter().map(|op| op.at).collect::<Vec<_>>(), [8192]);
        rt.on_drive_done(new[0].token, Ok(()));
        turn(&mut rt, 2502);
        let late = Err(DriveError::TimedOut);
        let all = [("old", late), ("impatient", late), ("elsewhere", Ok(())), ("patient", Ok(()))];
        assert_eq!(*ended.borrow(), all);
        assert_eq!(rt.cx.0.borrow().buffers.used(), 0);
    }

    #[test]
    fn a_condition_that_another_task_fulfils_is_seen_in_the_same_turn() {
        let mut rt = runtime();
        let (cx, flag, order) = (rt.cx(), Rc::new(Cell::new(false)), Rc::new(RefCell::new(vec![])));
        let (f, o, c) = (flag.clone(), order.clone(), cx.clone());
        cx.spawn(async move {
            c.until(|| f.get()).await;
            o.borrow_mut().push("first");
        });
        let (o, c) = (order.clone(), cx.clone());
        cx.spawn(async move {
            c.sleep(Duration::from_millis(5)).await;
            o.borrow_mut().push("second");
            flag.set(true);
        });
        rt.run(&mut vec![]);
        assert_eq!(rt.next_deadline(), Some(Instant(5_000_000)));
        rt.on_now(Instant(5_000_000));
        rt.run(&mut vec![]);
        assert_eq!(*order.borrow(), ["second", "first"]);
    }

    #[test]
    fn a_turn_in_which_nothing_is_over_asks_each_condition_once() {
        let mut rt = runtime();
        let (cx, asked) = (rt.cx(), Rc::new(Cell::new([0; 3])));
        let asks = |which: usize| {
            let asked = asked.clone();
            move || {
                let mut all = asked.get();
                all[which] += 1;
                asked.set(all);
                false
            }
        };
        let (c, never) = (cx.clone(), asks(0));
        cx.spawn(async move { c.until(never).await });
        let (c, never) = (cx.clone(), asks(1));
        cx.spawn(async move {
            let _ = c.until_within(Duration::from_secs(9), never).await;
        });
        let (c, never) = (cx.clone(), asks(2));
        cx.spawn(async move {
            let _ = c.unless(never, c.read(DriveId(0), 0, 4096)).await;
        });
        rt.run(&mut vec![]);
        asked.set([0; 3]);
        rt.on_now(Instant(1));
        rt.run(&mut vec![]);
        assert_eq!((asked.get(), rt.tasks()), ([1; 3], 3));
    }

    #[test]
    fn what_a_task_does_after_any_wait_is_seen_in_the_same_turn() {
        const END: Instant = Instant(1_000_000_000);
        let ends: [fn(&Cx) -> Boxed<'_, ()>; 5] = [
            |cx| Box::pin(cx.sleep(Duration::from_secs(1))),
            |cx| Box::pin(cx.until(move || cx.now() >= END)),
            |cx| {
                Box::pin(async move {
                    let _ = cx.until_end(END, cx.until(|| false)).await;
                })
            },
            |cx| {
                Box::pin(async move {
                    let _ = cx.write(DriveId(0), 0, &[1; 4096]).await;
                })
            },
            |cx| {
                Box::pin(async move {
                    let _ = cx.inspect(DriveId(0)).await;
                })
            },
        ];
        for (nth, end) in ends.into_iter().enumerate() {
            let mut rt = runtime();
            let (cx, flag, seen) = (rt.cx(), Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
            let (c, f, s) = (cx.clone(), flag.clone(), seen.clone());
            cx.spawn(async move {
                c.until(|| f.get()).await;
                s.set(true);
            });
            let c = cx.clone();
            cx.spawn(async move {
                end(&c).await;
                flag.set(true);
                c.sleep(Duration::from_secs(60)).await;
            });
            rt.run(&mut vec![]);
            assert!(!seen.get(), "wait {nth}");
            rt.on_now(END);
            rt.run(&mut vec![]);
            assert!(seen.get(), "wait {nth}");
        }
    }
}
