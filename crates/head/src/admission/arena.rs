//! One shard's memory for data, divided so that no command waits for ever, however little there is.
//!
//! ```text
//! ┌ inline ────────────┬ large ─────────────┬ second ────────┬ spares ───────────┬ common ─────────────────────┐
//! │ data that come     │ one largest        │ reads of which │ two of inline,    │ rings and scratch; more of  │
//! │ unasked            │ command, asked for │ a leg hangs    │ one of large      │ all but the spares          │
//! └────────────────────┴────────────────────┴────────────────┴───────────────────┴─────────────────────────────┘
//! ```
//!
//! Unsolicited data block their stream until they have a buffer, and data that were asked for may stand
//! behind them. So unsolicited data have memory that nothing else takes, and drives alone free it: a command that holds it never
//! waits for the rest of its data (see `FrontIo::reserve_inline`). Then streams go on, and the data that were asked for
//! arrive. Commands that wait for memory to ask for their data hold none meanwhile, and the first in line
//! fits into `large` at the latest when the one before it there has ended. A read that a leg keeps is asked of another leg, and
//! needs a second buffer at the very moment at which the first one is lost for long: there is one for the largest read.
//!
//! What ends by drives alone does not end while one hangs: the kernel keeps the memory of operations that were given up.
//! `inline` and `large` have spares, which take over when so much is kept that the longest command has no room for good. The
//! last spare waits until nothing has been given up for as long as a drive may take: until then commands may still
//! be on their way to the drive that hangs. Then its leg is out, or is put out, and gets no more. A stream that is blocked cannot
//! wait for that, as nothing is received from its host meanwhile: `inline` has one more spare, which takes over at once.
//!
//! (All memory was once one heap. A write with part of its data unsolicited held memory for those and
//! waited, through its stream, for others that did the same.)

use crate::admission::buffer_quota::Purpose;
use crate::admission::buffers::{BUFFER_MAX, Buffers, PAGE};
use crate::limits::{
    ASKED_SHARE, INLINE_MIN, INLINE_SHARE, INLINE_SPARES, LARGE_SPARES, RINGS_MIN, RINGS_SHARE, SECOND_BYTES,
    SHARD_BYTES_MIN,
};
use base::{Instant, Slice};

/// A part that has a spare.
#[derive(Debug)]
struct Part {
    buffers: Buffers,
    start: u64,
    /// Bytes of the longest that it must have room for.
    longest: u64,
    /// Operations that were given up and keep memory, in each run of that length.
    kept: Vec<u32>,
}

impl Part {
    fn new(start: u64, bytes: u64, longest: u64) -> Self {
        let kept = vec![0; (bytes / longest) as usize];
        Self { buffers: Buffers::new(start, bytes), start, longest, kept }
    }
    /// Whether the longest has no room, whoever else gives his memory back.
    fn is_used_up(&self) -> bool {
        self.kept.iter().all(|n| *n > 0)
    }
    /// Whether no operation that was given up keeps any of it.
    fn is_whole(&self) -> bool {
        self.kept.iter().all(|n| *n == 0)
    }
    /// The count for the run that `data` lies in. None: it lies elsewhere, or where the longest has no room anyway.
    fn count(&mut self, data: Slice) -> Option<&mut u32> {
        let at = data.at.checked_sub(self.start)?;
        self.kept.get_mut((at / self.longest) as usize)
    }
}

/// Spares of which no drive keeps anything.
fn whole(spares: &[Part]) -> usize {
    spares.iter().filter(|s| s.is_whole()).count()
}

/// All parts.
#[derive(Debug)]
pub struct Arena {
    inline: Part,
    large: Part,
    second: Buffers,
    inline_spares: [Part; INLINE_SPARES as usize],
    large_spares: [Part; LARGE_SPARES as usize],
    common: Buffers,
    /// When an operation was given up last that keeps some of the memory.
    kept_at: Instant,
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
        let [large, second] = [start + inline, start + inline + BUFFER_MAX];
        let spares = second + SECOND_BYTES;
        let large_spares = spares + INLINE_SPARES * INLINE_MIN;
        let rest = large_spares + LARGE_SPARES * BUFFER_MAX;
        let common = Buffers::new(rest, start + bytes - rest);
        Self {
            inline: Part::new(start, inline, INLINE_MIN),
            large: Part::new(large, BUFFER_MAX, BUFFER_MAX),
            second: Buffers::new(second, SECOND_BYTES),
            inline_spares: core::array::from_fn(|i| {
                Part::new(spares + i as u64 * INLINE_MIN, INLINE_MIN, INLINE_MIN)
            }),
            large_spares: core::array::from_fn(|i| {
                Part::new(large_spares + i as u64 * BUFFER_MAX, BUFFER_MAX, BUFFER_MAX)
            }),
            kept_at: Instant(0),
            rings: 0,
            limit: common.bytes() / ASKED_SHARE.1 * ASKED_SHARE.0,
            common,
        }
    }
    /// A buffer for data that come next in their stream, unasked.
    pub fn take_inline(&mut self, len: u32) -> Option<Slice> {
        self.inline.buffers.take(len).or_else(|| self.take_spare(len))
    }
    /// A buffer for data that will be asked for, or go out.
    pub fn take_asked(&mut self, len: u32) -> Option<Slice> {
        self.take_spare(len).or_else(|| self.large.buffers.take(len))
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
    /// Whether so little is in use that shares need no check.
    #[inline]
    pub fn is_roomy(&self) -> bool {
        self.common.used() <= self.limit / 2
    }
    /// Bytes that are left for this purpose.
    pub fn left(&self, purpose: Purpose) -> u64 {
        let own = match purpose {
            Purpose::Asked => &self.large.buffers,
            Purpose::Unasked => &self.inline.buffers,
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
    /// An operation that has this memory was given up at `now`: the kernel keeps it for a time that nobody knows.
    pub fn keep(&mut self, now: Instant, data: Slice) {
        self.kept_at = now;
        if let Some(count) = self.count(data) {
            *count += 1;
        }
    }
    /// The kernel has let go of it.
    pub fn keep_no_more(&mut self, data: Slice) {
        if let Some(count) = self.count(data) {
            *count -= 1;
        }
        // The first one has more room.
        let bytes = self.inline.buffers.bytes();
        if let Some(first) = self.inline_spares.iter_mut().find(|s| s.buffers.bytes() > bytes && s.is_whole())
        {
            core::mem::swap(&mut self.inline, first);
        }
    }
    /// Somebody waits for memory. Where the longest command has no room for good a spare takes over: the last one if
    /// nothing was given up after `settled`, others if nothing was after `paused`. True if one did.
    pub fn use_spares(&mut self, paused: Instant, settled: Instant) -> bool {
        let kept_at = self.kept_at;
        let replace = |part: &mut Part, spares: &mut [Part]| {
            let last = whole(spares) == 1;
            let since = if last { settled } else { paused };
            let spare =
                spares.iter_mut().find(|s| s.is_whole()).filter(|_| part.is_used_up() && kept_at <= since);
            spare.map(|spare| core::mem::swap(part, spare)).is_some()
        };
        let inline = replace(&mut self.inline, &mut self.inline_spares);
        replace(&mut self.large, &mut self.large_spares) || inline
    }
    /// Whether a last spare takes over now, if nothing was given up after `settled`.
    pub fn needs_last_spare(&self, settled: Instant) -> bool {
        let needs = |part: &Part, spares: &[Part]| part.is_used_up() && whole(spares) == 1;
        let some = needs(&self.inline, &self.inline_spares) || needs(&self.large, &self.large_spares);
        some && self.kept_at <= settled
    }
    /// Whether the last spare is needed or gone: what a drive keeps from now on is missed.
    pub fn is_short_of_spares(&self) -> bool {
        let short = |part: &Part, spares: &[Part]| match whole(spares) {
            0 => true,
            1 => part.is_used_up(),
            _ => false,
        };
        short(&self.inline, &self.inline_spares) || short(&self.large, &self.large_spares)
    }
    fn parts(&self) -> impl Iterator<Item = &Part> {
        [&self.inline, &self.large].into_iter().chain(&self.inline_spares).chain(&self.large_spares)
    }
    fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        let spares = self.inline_spares.iter_mut().chain(&mut self.large_spares);
        [&mut self.inline, &mut self.large].into_iter().chain(spares)
    }
    fn count(&mut self, data: Slice) -> Option<&mut u32> {
        self.parts_mut().filter(|part| part.buffers.contains(data)).find_map(|part| part.count(data))
    }
    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.all().map(Buffers::used).sum()
    }
    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.all().map(Buffers::bytes).sum()
    }
    fn all(&self) -> impl Iterator<Item = &Buffers> {
        self.parts().map(|part| &part.buffers).chain([&self.second, &self.common])
    }
    fn part(&mut self, data: Slice) -> &mut Buffers {
        if self.common.contains(data) {
            &mut self.common
        } else if self.inline.buffers.contains(data) {
            &mut self.inline.buffers
        } else if self.second.contains(data) {
            &mut self.second
        } else if self.large.buffers.contains(data) {
            &mut self.large.buffers
        } else {
            let part = self.parts_mut().find(|part| part.buffers.contains(data));
            &mut part.expect("a buffer of this shard").buffers
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
    fn what_a_drive_keeps_leaves_room_for_the_longest_once_it_asks_for_no_more() {
        for bytes in [SHARD_BYTES_MIN, SHARD_BYTES_MIN + 5 * INLINE_MIN, 32 << 20] {
            let mut arena = Arena::new(PAGE, bytes);
            let (early, late) = (Instant(10), Instant(20));
            let first = arena.inline.buffers.bytes();
            // All there is is at a drive, which hangs: its commands are answered, and the kernel keeps their memory.
            let inline = all(|| arena.take_inline(PAGE as u32));
            let asked = all(|| arena.take_asked(PAGE as u32));
            let mut kept: Vec<Slice> = inline.into_iter().chain(asked).collect();
            assert!(!arena.use_spares(late, late), "what is not kept for good comes back");
            kept.iter().for_each(|data| arena.keep(late, *data));
            assert!(!arena.use_spares(early, early), "others may be on their way to the same drive");
            assert!(arena.take_inline(PAGE as u32).is_none() && arena.take_asked(PAGE as u32).is_none());
            // Streams go on soon, with what may be kept by the same drive once more.
            assert!(arena.use_spares(late, early) && arena.take_asked(PAGE as u32).is_none());
            let again = arena.take_inline(INLINE_MIN as u32).expect("the longest that comes unasked");
            arena.keep(late, again);
            kept.push(again);
            assert!(!arena.use_spares(late, early) && arena.is_short_of_spares());
            assert!(arena.needs_last_spare(late) && !arena.needs_last_spare(early));
            assert!(arena.use_spares(late, late) && arena.is_short_of_spares());
            let inline = arena.take_inline(INLINE_MIN as u32).expect("the longest that comes unasked");
            let asked = arena.take_asked(BUFFER_MAX as u32).expect("the longest that is asked for");
            // Another drive hangs: there is no other spare.
            arena.keep(late, inline);
            assert!(!arena.use_spares(late, late));
            arena.keep_no_more(inline);
            for data in kept {
                arena.keep_no_more(data);
                arena.release(data);
            }
            assert!(!arena.is_short_of_spares());
            [inline, asked].into_iter().for_each(|data| assert!(arena.release(data)));
            assert_eq!(arena.used(), 0);
            let again = all(|| arena.take_inline(PAGE as u32)).len() as u64;
            assert!(again >= first / PAGE && arena.inline.buffers.bytes() == first);
        }
    }

    #[test]
    fn a_drive_that_keeps_a_little_uses_up_no_part_that_has_room_for_the_longest_beside_it() {
        let mut arena = Arena::new(PAGE, 32 << 20);
        let data = arena.take_inline(PAGE as u32).expect("there is memory");
        arena.keep(Instant(1), data);
        assert!(!arena.use_spares(Instant(2), Instant(2)));
        arena.take_inline(INLINE_MIN as u32).expect("beside it");
    }

    #[test]
    #[should_panic(expected = "a shard needs")]
    fn too_little_memory_is_refused_in_words() {
        Arena::new(0, SHARD_BYTES_MIN - PAGE);
    }
}
