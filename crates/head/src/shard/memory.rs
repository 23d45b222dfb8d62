//! Memory for data and slots for commands: who gets some now, who waits, and whose turn is next.

use super::Core;
use crate::lending::Purpose;
use crate::limits;
use crate::link::Link;
use crate::request::{Phase, Request};
use base::{Memory, Slice};

impl<M: Memory> Core<M> {
    /// Remembers to look at the link in the end of the turn.
    pub fn touch(&mut self, link: &mut Link) {
        if !link.touched {
            link.touched = true;
            self.touched.push(link.index);
        }
    }
    /// Promises slots for a connection of this depth.
    pub fn admit(&mut self, commands: u32) -> bool {
        if self.promised + commands > limits::REQUESTS_MAX {
            return false;
        }
        self.promised += commands;
        // Twice: an answered command keeps its slot until the kernel has taken the answer, and the
        // host may send the next one meanwhile.
        let need = 2 * self.promised;
        if need > self.requests.capacity() {
            let more = (need - self.requests.capacity()).max(256);
            self.requests.reserve(more);
            self.lending.reserve(self.requests.capacity());
        }
        true
    }
    /// A buffer for a request now, or a place in line.
    pub fn take_or_wait(&mut self, account: u32, index: u32, len: u32, purpose: Purpose) -> Option<Slice> {
        // Nobody overtakes those of his host who wait, or the one whose turn it is.
        let data = if self.may_take(account, len, purpose) { self.take(len, purpose) } else { None };
        match data {
            Some(data) => self.lend(account, index, data, purpose),
            None => {
                self.requests[index].purpose = purpose;
                self.lending.wait(account, purpose, index);
            }
        }
        data
    }
    /// Whether a host may have so much more, without passing anybody who waits.
    #[inline]
    fn may_take(&self, account: u32, len: u32, purpose: Purpose) -> bool {
        self.lending.passes(account, purpose)
            && (self.buffers.is_roomy()
                || self.lending.may(account, purpose, len, self.buffers.left(purpose)))
    }
    /// A buffer that nobody waits for.
    pub fn take_spare(&mut self, account: u32, len: u32) -> Option<Slice> {
        if self.may_take(account, len, Purpose::Asked) { self.buffers.take_spare(len) } else { None }
    }
    fn take(&mut self, len: u32, purpose: Purpose) -> Option<Slice> {
        match purpose {
            Purpose::Asked => self.buffers.take_asked(len),
            Purpose::Unasked => self.buffers.take_inline(len),
        }
    }
    /// The request has this buffer.
    #[inline]
    pub fn lend(&mut self, account: u32, index: u32, data: Slice, purpose: Purpose) {
        let request = &mut self.requests[index];
        (request.buffer, request.purpose, request.phase) = (Some(data), purpose, Phase::Connection);
        self.lending.lend(account, purpose, data.len);
    }
    /// The next one for whom there is memory now: hosts take turns, and who has his share is passed.
    pub(super) fn next_granted(&mut self, purpose: Purpose) -> Option<(u32, Slice)> {
        let last = self.lending.last(purpose);
        while let Some((account, index)) = self.lending.first(purpose) {
            let Phase::Buffer(len) = self.requests[index].phase else {
                panic!("only those who wait are in line")
            };
            if self.lending.may(account, purpose, len, self.buffers.left(purpose)) {
                let data = self.take(len, purpose);
                self.lending.press(purpose, data.is_none());
                let data = data?;
                self.lending.leave(account, purpose, index);
                if self.lending.first(purpose).is_some_and(|(first, _)| first == account) {
                    self.lending.next_turn(account, purpose);
                }
                self.lend(account, index, data, purpose);
                return Some((index, data));
            }
            self.lending.next_turn(account, purpose);
            if account == last {
                break;
            }
        }
        self.lending.press(purpose, false);
        None
    }
    /// A request leaves its line.
    pub fn wait_no_more(&mut self, index: u32) {
        let Request { account, purpose, .. } = self.requests[index];
        self.lending.leave(account, purpose, index);
    }
    /// Ends a request that nobody needs any more.
    pub fn retire(&mut self, link: &mut Link, index: u32) {
        let Request { buffer, second, account, purpose, .. } = self.requests[index];
        self.requests.free(index);
        link.live -= 1;
        if let Some(data) = buffer {
            self.lending.back(account, purpose, data.len);
            self.buffers.release(data);
        }
        if let Some(data) = second {
            self.buffers.release(data);
        }
    }
}
