//! An allocator that counts, for the tests that check "nothing is allocated after start".

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator; counts what a thread allocates while it is watched. A test makes it the
/// `#[global_allocator]`.
pub struct Counting;

impl Counting {
    /// Runs `work`; returns its result and how often it allocated (frees are not counted).
    pub fn watch<R>(work: impl FnOnce() -> R) -> (R, u64) {
        let before = COUNT.get();
        WATCHED.set(true);
        let result = work();
        WATCHED.set(false);
        (result, COUNT.get() - before)
    }
    fn note() {
        if WATCHED.get() {
            COUNT.set(COUNT.get() + 1);
        }
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches only thread-locals
// that need neither initialisation nor destruction, so it never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note();
        // SAFETY: the caller keeps `alloc`'s contract, which is passed on as it is.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::note();
        // SAFETY: as for `alloc`. What the system has as zeroes is not touched.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `System` through `alloc` or `realloc` here.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::note();
        // SAFETY: as for `dealloc`, and the caller keeps `realloc`'s contract.
        unsafe { System.realloc(at, layout, size) }
    }
}
