//! One shard's memory for data, divided so that nobody waits for ever, however little there is.
//!
//! ```text
//! ┌ inline ────────────┬ large ─────────────┬ second ────────┬ common ─────────────────────────────────────┐
//! │ data that come     │ one largest        │ reads of which │ rings and scratch; data that were asked for │
//! │ unasked            │ command, asked for │ a leg hangs    │ or go out; more data that come unasked      │
//! └────────────────────┴────────────────────┴────────────────┴─────────────────────────────────────────────┘
//! ```
//!
//! Data that come unasked block their stream until they have a buffer, and what was asked for may stand
//! behind them. So they have memory that nothing else takes, and what holds it ends by drives alone: it never
//! waits for the rest of its data (see `FrontIo::reserve_inline`). Then streams go on, and what was asked for
//! comes. Commands that wait for memory to ask for their data hold none meanwhile, and the first in line
//! fits into `large` at the latest when the one before it there has ended. A read that a leg keeps is asked of another leg, and
//! needs a second buffer at the very moment at which the first one is lost for long: there is one for the largest read.
//! (All memory was once one heap. A write with part of its data unasked held memory of the first kind and
//! waited, through its stream, for others that did the same.)

use crate::buffers::{BUFFER_MAX, Buffers, PAGE};
use crate::lending::Purpose;
use crate::limits::{
    ASKED_SHARE, INLINE_MIN, INLINE_SHARE, RINGS_MIN, RINGS_SHARE, SECOND_BYTES, SHARD_BYTES_MIN,
};
use base::Slice;

/// The four parts.
#[derive(Debug)]
pub struct Arena {
    inline: Buffers,
    large: Buffers,
    second: Buffers,
    common: Buffers,
    /// Bytes of rings.
    rings: u64,
    /// Bytes of `common` in use, beyond which the rest is for connections and arrays that come later.
    limit: u64,
}

impl Arena {
    /// Manages `bytes` bytes at `start` of the region, both multiples of `PAGE`. Panics if it is less than
    /// `limits::SHARD_BYTES_MIN`.
    pub fn new(start: u64, bytes: u64) -> Self {
        assert!(
            bytes >= SHARD_BYTES_MIN,
            "a shard needs {SHARD_BYTES_MIN} bytes of memory for data, and was given {bytes}"
        );
        let inline = INLINE_MIN + (bytes - SHARD_BYTES_MIN) / INLINE_SHARE / PAGE * PAGE;
        let rest = inline + BUFFER_MAX + SECOND_BYTES;
        let common = Buffers::new(start + rest, bytes - rest);
        Self {
            inline: Buffers::new(start, inline),
            large: Buffers::new(start + inline, BUFFER_MAX),
            second: Buffers::new(start + inline + BUFFER_MAX, SECOND_BYTES),
            rings: 0,
            limit: common.bytes() / ASKED_SHARE.1 * ASKED_SHARE.0,
            common,
        }
    }
    /// A buffer for data that come next in their stream, unasked.
    pub fn take_inline(&mut self, len: u32) -> Option<Slice> {
        self.inline.take(len).or_else(|| self.take_spare(len))
    }
    /// A buffer for data that will be asked for, or go out.
    pub fn take_asked(&mut self, len: u32) -> Option<Slice> {
        self.take_spare(len).or_else(|| self.large.take(len))
    }
    /// Another buffer for a read whose first one the kernel keeps.
    pub fn take_second(&mut self, len: u32) -> Option<Slice> {
        self.take_asked(len).or_else(|| self.second.take(len))
    }
    /// A ring for a connection. None: they have their part.
    pub fn take_ring(&mut self, len: u32) -> Option<Slice> {
        let rings = self.rings + Buffers::footprint(len);
        let ring = if rings <= self.rings_max() { self.common.take(len) } else { None }?;
        self.rings = rings;
        Some(ring)
    }
    /// The connection has ended.
    pub fn release_ring(&mut self, ring: Slice) {
        self.rings -= Buffers::footprint(ring.len);
        self.common.release(ring);
    }
    /// Bytes of rings, at most.
    pub fn rings_max(&self) -> u64 {
        (self.common.bytes() / RINGS_SHARE).max(RINGS_MIN)
    }
    /// Bytes that are left for rings.
    pub fn rings_left(&self) -> u64 {
        self.rings_max() - self.rings
    }
    /// A buffer that an array keeps as long as it lives.
    pub fn take_kept(&mut self, len: u32) -> Option<Slice> {
        self.common.take(len)
    }
    /// A buffer for something that can be done without.
    pub fn take_spare(&mut self, len: u32) -> Option<Slice> {
        (self.common.used() + Buffers::footprint(len) <= self.limit).then(|| self.common.take(len)).flatten()
    }
    /// Whether so little is in use that nobody need be asked for his share.
    #[inline]
    pub fn is_roomy(&self) -> bool {
        self.common.used() <= self.limit / 2
    }
    /// Bytes that are left for this purpose.
    pub fn left(&self, purpose: Purpose) -> u64 {
        let own = match purpose {
            Purpose::Asked => &self.large,
            Purpose::Unasked => &self.inline,
        };
        own.bytes() - own.used() + self.limit.saturating_sub(self.common.used())
    }
    /// One more holds the buffer that `data` lies in.
    pub fn hold(&mut self, data: Slice) {
        self.part(data).hold(data);
    }
    /// One holder of the buffer that `data` lies in lets go. True if that freed it.
    pub fn release(&mut self, data: Slice) -> bool {
        self.part(data).release(data)
    }
    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.inline.used() + self.large.used() + self.second.used() + self.common.used()
    }
    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.inline.bytes() + self.large.bytes() + self.second.bytes() + self.common.bytes()
    }
    fn part(&mut self, data: Slice) -> &mut Buffers {
        if self.common.contains(data) {
            &mut self.common
        } else if self.inline.contains(data) {
            &mut self.inline
        } else if self.second.contains(data) {
            &mut self.second
        } else {
            &mut self.large
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(take: impl FnMut() -> Option<Slice>) -> Vec<Slice> {
        core::iter::from_fn(take).collect()
    }

    #[test]
    fn what_was_asked_for_leaves_room_for_what_comes_unasked_and_the_other_way_round() {
        for bytes in [SHARD_BYTES_MIN, SHARD_BYTES_MIN + 3 * PAGE, 32 << 20] {
            let mut arena = Arena::new(PAGE, bytes);
            assert_eq!(arena.bytes(), bytes);
            let asked = all(|| arena.take_asked(PAGE as u32));
            let inline = arena.take_inline(INLINE_MIN as u32).expect("the largest that comes unasked");
            asked.into_iter().for_each(|s| assert!(arena.release(s)));
            arena.release(inline);
            let asked = all(|| arena.take_asked(PAGE as u32));
            let second = arena.take_second(SECOND_BYTES as u32).expect("the largest read whose leg hangs");
            asked.into_iter().chain([second]).for_each(|s| assert!(arena.release(s)));
            let inline = all(|| arena.take_inline(PAGE as u32));
            let asked = arena.take_asked(BUFFER_MAX as u32).expect("the largest that is asked for");
            let ring = arena.take_ring(32 << 10).expect("a new connection");
            inline.into_iter().for_each(|s| assert!(arena.release(s)));
            assert!(arena.release(asked));
            assert_eq!(arena.used(), 32 << 10);
            arena.release_ring(ring);
            let rings = all(|| arena.take_ring(32 << 10));
            assert_eq!(rings.len() as u64, arena.rings_max() / (32 << 10));
        }
    }

    #[test]
    #[should_panic(expected = "a shard needs")]
    fn too_little_memory_is_refused_in_words() {
        Arena::new(0, SHARD_BYTES_MIN - PAGE);
    }
}
