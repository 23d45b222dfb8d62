//! One path of a host: a session by one portal, started again whenever it ends.

use base::{Duration, HostStatus, Instant};
use load::{Initiator, State};

/// A session that is down is begun anew after this.
pub const AGAIN: Duration = Duration::from_millis(5);

/// One path.
pub struct Path {
    /// Its session.
    pub initiator: Initiator,
    /// Counts sessions that came up.
    pub session: u64,
    was_up: bool,
    retry_at: Option<Instant>,
    /// By kind: since when no command has ended well here, if the last one did not.
    fails_since: [Option<Instant>; KINDS],
}

/// Kinds of commands that a path may carry out or not.
pub const KINDS: usize = 3;

/// A change that was sent by a path, and not answered there: it may still land, once, whatever became of the same command by another path.
///
/// A host may rely on this: once it is let in, at either head, nothing is under way of what had begun to end before it came (promise 3;
/// docs/two-heads.md, "Hosts that lost a path"). So the copy is over when the path that lost it has its next session. The answer to the second copy
/// says nothing of the first: until then that may land on what was written since, as with any target whose paths are lost under Linux's multipath.
/// Neither does a session of the other path, which may have come before the head of this one knew of the loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    /// The path, by its number.
    pub path: usize,
    /// Its session then.
    pub session: u64,
}

impl Path {
    /// One that has not begun.
    pub fn new(initiator: Initiator) -> Self {
        Self { initiator, session: 0, was_up: false, retry_at: None, fails_since: [None; KINDS] }
    }
    /// Whether it takes a command now.
    pub fn has_room(&self) -> bool {
        self.initiator.free() > 0 && self.initiator.has_room()
    }
    /// A session that is up has a number of its own, wherever in a turn it comes up. True: it has come up since the last call.
    pub fn counts_session(&mut self) -> bool {
        let is_up = self.initiator.state() == State::Ready;
        let comes_up = is_up && !self.was_up;
        self.session += u64::from(comes_up);
        self.was_up = is_up;
        if comes_up {
            self.fails_since = [None; KINDS];
        }
        comes_up
    }
    /// A command of this kind has ended that was under way here since then. How long this path, which is up, has carried out none.
    pub fn stalls(&mut self, now: Instant, kind: usize, since: Instant, status: &HostStatus) -> Duration {
        let began = self.fails_since[kind].map_or(since, |first| first.min(since));
        self.fails_since[kind] = matches!(status, HostStatus::Retry { .. }).then_some(began);
        now.since(began)
    }
    /// It goes on with this session, which is up.
    pub fn goes_on_with(&mut self, other: &mut Initiator) {
        core::mem::swap(&mut self.initiator, other);
        self.session += 1;
        self.was_up = true;
    }
    /// Begins its session, or begins it anew.
    pub fn keep_up(&mut self, now: Instant) {
        match self.initiator.state() {
            State::Idle => self.initiator.start(now),
            State::Down(_) => match self.retry_at {
                None => self.retry_at = Some(now + AGAIN),
                Some(at) if at <= now => {
                    self.retry_at = None;
                    self.initiator.start(now);
                }
                Some(_) => {}
            },
            State::Starting | State::Ready | State::Stopping | State::Closing => {}
        }
    }
    /// When it wants to be woken without an event.
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.initiator.next_deadline(), self.retry_at].into_iter().flatten().min()
    }
}
