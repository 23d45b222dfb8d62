//! Mail: one in-order queue per machine, wake-ups only for machines that sleep, and the end for the manager.

use base::{
    Address, DriveError, DriveHealth, DriveId, DriveInfo, Fence, FenceError, OpenError, StateError, Token,
};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What arrives in an inbox.
pub(crate) enum Letter<M> {
    /// From another machine or the manager.
    Mail(Address, M),
    /// From the house or another reactor, not for the machine's eyes.
    Control(Control),
}

/// The house's own messages to reactors.
pub(crate) enum Control {
    /// End the thread.
    Stop,
    /// This piece of the region is resident: it can be registered at little cost.
    Resident(usize),
    /// The shape of a drive changed: look at what waits.
    Shaped(DriveId),
    /// A drive is being closed: let go of it after the last operation.
    Closing(DriveId),
    /// An open ended.
    Opened(Token, Result<DriveInfo, OpenError>),
    /// A drive was looked at.
    Inspected(Token, Result<DriveHealth, DriveError>),
    Fenced(Token, Result<Fence, FenceError>),
    /// A close ended.
    Closed(DriveId),
    /// A state operation ended.
    State(Token, Result<Vec<u8>, StateError>),
}

/// One machine's queue.
pub(crate) struct Inbox<M> {
    queue: Mutex<VecDeque<Letter<M>>>,
    /// Something is in the queue; changed under its lock.
    filled: AtomicBool,
    /// The receiver sleeps, or is about to: it must be woken.
    sleeping: AtomicBool,
    /// The receiver is gone.
    closed: AtomicBool,
    /// The receiver's ring reads this.
    pub(crate) wake: OwnedFd,
}

impl<M> Inbox<M> {
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC)?;
        let queue = Mutex::new(VecDeque::with_capacity(1024));
        let no = || AtomicBool::new(false);
        Ok(Self { queue, filled: no(), sleeping: no(), closed: no(), wake })
    }
    fn lock(&self) -> MutexGuard<'_, VecDeque<Letter<M>>> {
        // A panic elsewhere does not make letters wrong.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Delivers everything in `letters`; false (and all of it dropped) if the machine here has ended.
    pub(crate) fn post(&self, letters: &mut Vec<Letter<M>>) -> bool {
        if self.closed.load(Ordering::Relaxed) {
            letters.clear();
            return false;
        }
        {
            let mut queue = self.lock();
            queue.extend(letters.drain(..));
            self.filled.store(true, Ordering::SeqCst);
        }
        // SeqCst on both sides: either we see that it sleeps, or it sees that there is mail.
        if self.sleeping.swap(false, Ordering::SeqCst) {
            let written = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
            assert!(written.is_ok(), "an eventfd takes a small number: {written:?}");
        }
        true
    }
    pub(crate) fn control(&self, control: Control) -> bool {
        self.post(&mut vec![Letter::Control(control)])
    }
    /// Receiver: everything that is there, exchanged for the empty `into`.
    pub(crate) fn take(&self, into: &mut VecDeque<Letter<M>>) {
        if self.is_filled() {
            assert!(into.is_empty(), "the last mail was read");
            let mut queue = self.lock();
            self.filled.store(false, Ordering::SeqCst);
            std::mem::swap(&mut *queue, into);
        }
    }
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::SeqCst)
    }
    /// Receiver: about to sleep. False if there is mail to read first.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        if self.is_filled() {
            self.sleeping.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }
    /// Receiver: awake again.
    pub(crate) fn wake_up(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
    }
    /// Receiver: never reads again.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.lock().clear();
    }
}

/// What letters to the manager are given to: the sender and the letter.
type ToManager<M> = Box<dyn Fn(Address, M) + Send + Sync>;

/// Who lives where.
pub(crate) struct Routes<M> {
    pub(crate) inboxes: Vec<(Address, Arc<Inbox<M>>)>,
    manager: ToManager<M>,
    dropped: AtomicU64,
}

impl<M> Routes<M> {
    pub(crate) fn new(addresses: &[Address], manager: ToManager<M>) -> io::Result<Self> {
        let inboxes = addresses.iter().map(|a| Ok((*a, Arc::new(Inbox::new()?))));
        Ok(Self { inboxes: inboxes.collect::<io::Result<_>>()?, manager, dropped: AtomicU64::new(0) })
    }
    /// The index of an address, if it is a machine of this house.
    pub(crate) fn index(&self, of: Address) -> Option<usize> {
        // Shards are usually listed in order, which makes this one comparison.
        if let Address::Shard(n) = of
            && self.inboxes.get(usize::from(n)).is_some_and(|(a, _)| *a == of)
        {
            return Some(usize::from(n));
        }
        self.inboxes.iter().position(|(a, _)| *a == of)
    }
    pub(crate) fn to_manager(&self, from: Address, mail: M) {
        (self.manager)(from, mail);
    }
    pub(crate) fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
    /// Tells every reactor.
    pub(crate) fn broadcast(&self, control: impl Fn() -> Control) {
        for (_, inbox) in &self.inboxes {
            inbox.control(control());
        }
    }
}

/// The manager's hand: sends mail to machines as `Address::Manager`, from any thread.
pub struct Post<M> {
    pub(crate) routes: Arc<Routes<M>>,
}

impl<M> Clone for Post<M> {
    fn clone(&self) -> Self {
        Self { routes: Arc::clone(&self.routes) }
    }
}

impl<M> Post<M> {
    /// Sends a letter. False if no such machine lives (any more).
    #[must_use = "a letter to nobody is lost"]
    pub fn send(&self, to: Address, mail: M) -> bool {
        let Some(index) = self.routes.index(to) else {
            self.routes.drop_one();
            return false;
        };
        let sent = self.routes.inboxes[index].1.post(&mut vec![Letter::Mail(Address::Manager, mail)]);
        if !sent {
            self.routes.drop_one();
        }
        sent
    }
}
