//! Memory for data and slots for commands: which request gets some now, which waits, and whose turn is next.

use super::Core;
use crate::admission::buffer_quota::{Holder, Purpose};
use crate::limits;
use crate::path::link::{Link, SLOTS_EACH};
use crate::path::request::Phase;
use crate::path::stages::UNTIMED;
use crate::report::PathId;
use base::{Instant, Memory, Op, Slice, Status};

impl<M: Memory> Core<M> {
    /// Remembers to look at the link in the end of the turn.
    pub fn touch(&mut self, link: &mut Link) {
        if !link.touched {
            link.touched = true;
            self.touched.push(link.index);
        }
    }
    /// Slots for commands that may still be promised.
    pub fn slots_left(&self) -> u32 {
        limits::REQUESTS_MAX - self.promised
    }
    /// Promises slots for a connection of this depth.
    pub fn admit(&mut self, commands: u32) -> bool {
        if commands > self.slots_left() {
            return false;
        }
        self.promised += commands;
        let need = SLOTS_EACH * self.promised;
        if need > self.requests.capacity() {
            let more = (need - self.requests.capacity()).max(256);
            self.requests.reserve(more);
            self.quota.reserve(self.requests.capacity());
        }
        true
    }
    /// Times a command that has come at `came` and has all that it needs.
    #[cold]
    pub fn time(&mut self, index: u32, path: Option<PathId>, came: Instant, now: Instant) {
        let request = &mut self.requests[index];
        let write = match request.command.op {
            Op::Read => Some(false),
            Op::Write => Some(true),
            Op::Compare | Op::WriteZeroes { .. } | Op::Deallocate | Op::Flush => None,
        };
        request.timed = self.timing.begin((request.command.volume, path), write, came, now);
    }
    /// A buffer for a connection's next request. None: it has to wait.
    #[inline]
    pub fn take_in_turn(&mut self, who: Holder, len: u32, purpose: Purpose) -> Option<Slice> {
        // It passes neither waiting ones of its own connection nor the host whose turn it is.
        let data = if self.may_take(who, len, purpose) { self.take(len, purpose) } else { None }?;
        self.quota.take(who, purpose, data.len);
        Some(data)
    }
    /// Puts a request in line for its buffer.
    #[cold]
    pub fn wait_for_memory(&mut self, index: u32) {
        let request = &self.requests[index];
        self.quota.wait(request.holder(), request.purpose, index);
        if self.exhausted {
            self.wait_no_more(index);
            self.end(index, Status::NotReady);
        }
    }
    /// Whether a connection may have `len` more bytes without passing anybody whose turn is earlier.
    #[inline]
    fn may_take(&self, who: Holder, len: u32, purpose: Purpose) -> bool {
        self.quota.passes(who, purpose) && (self.buffers.is_roomy() || self.has_share(who, len, purpose))
    }
    fn has_share(&self, who: Holder, len: u32, purpose: Purpose) -> bool {
        let left = self.buffers.left(purpose);
        self.quota.host_may(who, purpose, len, left) && self.quota.link_may(who, purpose, len, left)
    }
    /// A buffer that nobody waits for, for a connection's next request.
    pub fn take_spare(&mut self, who: Holder, len: u32) -> Option<Slice> {
        let data = if self.may_take(who, len, Purpose::Asked) { self.buffers.take_spare(len) } else { None }?;
        self.quota.take(who, Purpose::Asked, data.len);
        Some(data)
    }
    fn take(&mut self, len: u32, purpose: Purpose) -> Option<Slice> {
        match purpose {
            Purpose::Asked => self.buffers.take_asked(len),
            Purpose::Unasked => self.buffers.take_inline(len),
        }
    }
    /// The request that waited has this buffer.
    fn give_buffer(&mut self, index: u32, data: Slice, purpose: Purpose) {
        let request = &mut self.requests[index];
        request.buffer = Some(data);
        request.purpose = purpose;
        request.phase = Phase::Connection;
        self.quota.take(request.holder(), purpose, data.len);
    }
    /// The next request for which there is memory: hosts take turns, and a host that has its share is passed.
    pub(super) fn next_granted(&mut self, purpose: Purpose) -> Option<(u32, Slice)> {
        let last = self.quota.last(purpose);
        while let Some((Holder { account, .. }, _)) = self.quota.first(purpose) {
            if let Some((who, index, len)) = self.next_of_host(account, purpose) {
                let data = self.take(len, purpose);
                self.quota.press(purpose, data.is_none());
                let data = data?;
                self.quota.leave(who, purpose, index);
                self.quota.granted(who, purpose);
                self.give_buffer(index, data, purpose);
                return Some((index, data));
            }
            self.quota.next_turn(account, purpose);
            if account == last {
                break;
            }
        }
        self.quota.press(purpose, false);
        None
    }
    /// The first connection of this host that may have what it waits for: its request, and the bytes that it needs.
    fn next_of_host(&mut self, account: u32, purpose: Purpose) -> Option<(Holder, u32, u32)> {
        let left = self.buffers.left(purpose);
        let last = self.quota.last_link(account, purpose);
        // A connection that is not reached now is first the next time, after 500 ms (`HOST_DEADLINE_CHECK`) at the latest.
        for _ in 0..limits::LOOKS_MAX {
            let (who, index) = self.quota.first(purpose).expect("it waits");
            let Phase::Buffer(len) = self.requests[index].phase else {
                panic!("only requests that wait are in line")
            };
            if !self.quota.host_may(who, purpose, len, left) {
                return None;
            }
            if self.quota.link_may(who, purpose, len, left) {
                return Some((who, index, len));
            }
            self.quota.next_link(who, purpose);
            if who.link == last {
                return None;
            }
        }
        None
    }
    /// A request leaves its line.
    pub fn wait_no_more(&mut self, index: u32) {
        let request = &self.requests[index];
        self.quota.leave(request.holder(), request.purpose, index);
    }
    /// Ends a request that nobody needs any more.
    /// `answered`: when its host had the answer, if it got one.
    pub fn retire(&mut self, link: &mut Link, index: u32, answered: Option<Instant>) {
        let request = &self.requests[index];
        let (who, purpose) = (request.holder(), request.purpose);
        let (buffer, second) = (request.buffer, request.second());
        if request.timed != UNTIMED {
            let well = request.status == Status::Good;
            self.timing.end(request.timed, answered.filter(|_| well));
        }
        self.requests.free(index);
        link.live -= 1;
        if let Some(data) = buffer {
            self.quota.give_back(who, purpose, data.len);
            self.buffers.release(data);
        }
        if let Some(data) = second {
            self.buffers.release(data);
        }
    }
}
