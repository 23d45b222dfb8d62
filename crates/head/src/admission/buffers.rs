//! Buffers: one shard's memory for data, in power-of-two runs of pages (a buddy allocator).
//!
//! A buffer may have several holders: its request, sends, and a drive operation that hangs
//! after its request was answered. It is free when the last of them lets go. Nothing here allocates after
//! `new`; running out is an answer (`None`), and the caller waits in line.
//!
//! Runs that were just freed are not merged at once: a few of each size lie ready, since commands tend to
//! be of one size. When no run is large enough they are merged first.

use base::Slice;

/// Smallest buffer, bytes; every buffer is aligned to it.
pub const PAGE: u64 = 4096;
/// Largest buffer, bytes: a compare of the largest transfer, and what it is compared with.
pub const BUFFER_MAX: u64 = 2 << 20;
const ORDERS: usize = (BUFFER_MAX / PAGE).trailing_zeros() as usize + 1;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Page {
    /// First page of a free run of this order.
    Free(u8),
    /// First page of a buffer of this order, held by so many.
    Held(u8, u16),
    /// First page of a run that lies ready, neither free nor held.
    Ready,
    /// Inside a run.
    Inside,
}

/// Runs of one order that lie ready, at most.
const READY_MAX: usize = 64;

/// Runs of one order that lie ready: the last one put there is the first one taken, as its bytes are
/// likely to be in the processor's cache.
#[derive(Clone, Copy, Debug)]
struct Ready {
    pages: [u32; READY_MAX],
    count: usize,
}

/// The allocator. It knows addresses, not bytes.
#[derive(Debug)]
pub struct Buffers {
    start: u64,
    pages: Vec<Page>,
    // Free runs of each order as doubly linked lists through their first pages.
    first: [u32; ORDERS],
    links: Vec<(u32, u32)>,
    ready: [Ready; ORDERS],
    used_pages: u64,
}

impl Buffers {
    /// Manages `bytes` bytes at `start` of the region; both multiples of `PAGE`.
    pub fn new(start: u64, bytes: u64) -> Self {
        assert!(start.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE), "buffers are page-aligned");
        let count = (bytes / PAGE) as usize;
        let mut this = Self {
            start,
            pages: vec![Page::Inside; count],
            first: [NONE; ORDERS],
            links: vec![(NONE, NONE); count],
            ready: [Ready { pages: [NONE; READY_MAX], count: 0 }; ORDERS],
            used_pages: 0,
        };
        let mut page = 0;
        while page < count {
            let fits = (count - page).ilog2() as usize;
            let aligned = if page == 0 { ORDERS - 1 } else { page.trailing_zeros() as usize };
            let order = fits.min(aligned).min(ORDERS - 1);
            this.put(page as u32, order);
            page += 1 << order;
        }
        this
    }
    /// A buffer of at least `len` bytes (1..=BUFFER_MAX), held once; `Slice::len` is `len`.
    pub fn take(&mut self, len: u32) -> Option<Slice> {
        assert!(len > 0 && u64::from(len) <= BUFFER_MAX, "a buffer of {len} bytes");
        let want = order_of(len);
        let ready = &mut self.ready[want];
        let page = if ready.count > 0 {
            ready.count -= 1;
            ready.pages[ready.count]
        } else {
            match self.split(want) {
                Some(page) => page,
                None => {
                    self.merge_ready();
                    self.split(want)?
                }
            }
        };
        self.pages[page as usize] = Page::Held(want as u8, 1);
        self.used_pages += 1 << want;
        Some(Slice::new(self.start + u64::from(page) * PAGE, len))
    }
    /// One more holds the buffer that `data` lies in.
    pub fn hold(&mut self, data: Slice) {
        let page = self.page_of(data);
        let Page::Held(_, holders) = &mut self.pages[page as usize] else { unreachable!("found as held") };
        *holders += 1;
    }
    /// One holder of the buffer that `data` lies in lets go. True if that freed it.
    pub fn release(&mut self, data: Slice) -> bool {
        let page = self.page_of(data);
        let Page::Held(order, holders) = &mut self.pages[page as usize] else {
            unreachable!("found as held")
        };
        *holders -= 1;
        if *holders > 0 {
            return false;
        }
        let order = usize::from(*order);
        self.used_pages -= 1 << order;
        let ready = &mut self.ready[order];
        if ready.count < READY_MAX {
            ready.pages[ready.count] = page;
            ready.count += 1;
            self.pages[page as usize] = Page::Ready;
        } else {
            self.merge(page, order);
        }
        true
    }
    /// Whether the buffer that `data` lies in has another holder.
    pub fn is_shared(&self, data: Slice) -> bool {
        matches!(self.pages[self.page_of(data) as usize], Page::Held(_, holders) if holders > 1)
    }
    /// A run of this order, cut from a free one.
    fn split(&mut self, want: usize) -> Option<u32> {
        let order = (want..ORDERS).find(|o| self.first[*o] != NONE)?;
        let page = self.first[order];
        self.unlink(page, order);
        for half in (want..order).rev() {
            self.put(page + (1 << half), half);
        }
        Some(page)
    }
    /// Frees all runs that lie ready.
    fn merge_ready(&mut self) {
        for order in 0..ORDERS {
            let Ready { pages, count } = self.ready[order];
            self.ready[order].count = 0;
            pages[..count].iter().for_each(|page| self.merge(*page, order));
        }
    }
    /// Frees a run, together with its neighbours if they are free.
    fn merge(&mut self, mut page: u32, mut order: usize) {
        self.pages[page as usize] = Page::Inside;
        while order + 1 < ORDERS {
            let buddy = page ^ (1 << order);
            if self.pages.get(buddy as usize) != Some(&Page::Free(order as u8)) {
                break;
            }
            self.unlink(buddy, order);
            page &= !(1 << order);
            order += 1;
        }
        self.put(page, order);
    }
    /// Whether `data` lies in the memory managed here.
    pub fn contains(&self, data: Slice) -> bool {
        (self.start..self.start + self.bytes()).contains(&data.at)
    }
    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used_pages * PAGE
    }
    /// Bytes that a buffer of `len` bytes really takes.
    pub fn footprint(len: u32) -> u64 {
        PAGE << order_of(len)
    }
    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// The first page of the buffer that `data` lies in: runs are aligned to their size, so it is
    /// found by clearing low bits.
    fn page_of(&self, data: Slice) -> u32 {
        let at = data.at.checked_sub(self.start).expect("a buffer of this shard") / PAGE;
        let at = u32::try_from(at).expect("a buffer of this shard");
        for order in 0..ORDERS {
            let page = at & !((1u32 << order) - 1);
            match self.pages[page as usize] {
                Page::Held(o, _) if usize::from(o) >= order => return page,
                _ => {}
            }
        }
        panic!("memory at {} is not in use", data.at);
    }
    fn put(&mut self, page: u32, order: usize) {
        self.pages[page as usize] = Page::Free(order as u8);
        let next = self.first[order];
        self.links[page as usize] = (NONE, next);
        if next != NONE {
            self.links[next as usize].0 = page;
        }
        self.first[order] = page;
    }
    fn unlink(&mut self, page: u32, order: usize) {
        let (before, after) = self.links[page as usize];
        match before {
            NONE => self.first[order] = after,
            _ => self.links[before as usize].1 = after,
        }
        if after != NONE {
            self.links[after as usize].0 = before;
        }
        self.pages[page as usize] = Page::Inside;
    }
}

fn order_of(len: u32) -> usize {
    // The bits of the last page's number: so many doublings make a run of them all.
    (u32::BITS - (len.saturating_sub(1) / PAGE as u32).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn buffers_never_overlap_and_all_come_back() {
        for seed in 0..50 {
            let mut rng = Prng::new(seed);
            let bytes = PAGE * rng.between(1, 3000);
            let mut buffers = Buffers::new(8 * PAGE, bytes);
            let mut held: Vec<(Slice, u32)> = vec![];
            for _ in 0..2000 {
                if rng.chance(3, 5) {
                    let bits = rng.between(1, 21);
                    let len = 1 + rng.below(1 << bits) as u32;
                    if let Some(s) = buffers.take(len) {
                        assert!(s.at >= 8 * PAGE && s.end() <= 8 * PAGE + bytes && s.at.is_multiple_of(PAGE));
                        assert!(held.iter().all(|(o, _)| o.end() <= s.at || s.end() <= o.at));
                        held.push((s, 1));
                    }
                } else if !held.is_empty() {
                    let i = rng.below(held.len() as u64) as usize;
                    let (s, holders) = &mut held[i];
                    let part = s.part(s.len / 2, 1.min(s.len - s.len / 2));
                    if rng.chance(1, 4) {
                        buffers.hold(part);
                        *holders += 1;
                    } else {
                        *holders -= 1;
                        assert_eq!(buffers.release(part), *holders == 0);
                        if *holders == 0 {
                            held.swap_remove(i);
                        }
                    }
                }
            }
            for (s, holders) in held {
                for _ in 0..holders {
                    buffers.release(s);
                }
            }
            assert_eq!(buffers.used(), 0);
            assert_eq!(buffers.bytes(), bytes);
            if bytes >= 2 * BUFFER_MAX {
                assert!(buffers.take(BUFFER_MAX as u32).is_some(), "runs were merged again");
            }
        }
    }

    #[test]
    fn running_out_is_an_answer() {
        let mut buffers = Buffers::new(0, 4 * PAGE);
        let a = buffers.take(3 * PAGE as u32).expect("there is room");
        assert_eq!(buffers.take(1), None);
        assert!(buffers.release(a));
        assert!(buffers.take(1).is_some());
    }
}
