//! Where the resync of one instance's lanes is.

use crate::bitmap::Bitmap;
use crate::flight::Legs;
use base::Instant;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pass {
    /// Nothing to do.
    Quiet,
    /// Regions are copied.
    Copying,
    /// The targets' caches are flushed; `spoilt` if a leg joined or left meanwhile.
    Flushing { pending: u8, spoilt: bool },
}

/// The region under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current {
    pub(super) local: u32,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) in_flight: u32,
    pub(super) good: bool,
    /// A leg joined meanwhile: what was copied does not count.
    pub(super) void: bool,
    /// Nothing is copied any more: the legs' caches are flushed, or have been.
    pub(super) flushed: bool,
}

/// The resync of one instance's lanes.
#[derive(Debug)]
pub(crate) struct Resync {
    pub(super) pass: Pass,
    /// Rebuilding legs that this pass copies to.
    pub(super) targets: Legs,
    /// Own regions that the targets lack.
    pub(super) need: Bitmap,
    pub(super) cursor: u32,
    pub(super) current: Option<Current>,
    pub(super) failed: bool,
    pub(super) next_at: Instant,
    pub(super) retry_at: Option<Instant>,
    /// Our lanes were reported clean after the crash.
    pub(super) clean_reported: bool,
    /// Bytes of our lanes that might differ between legs in sync when this instance began.
    pub(crate) crash_total: u64,
    /// A step may be possible.
    pub(crate) poke: bool,
    pub(super) total: u64,
    pub(super) done: u64,
}

impl Resync {
    pub(crate) fn new(locals: u32) -> Self {
        Self {
            pass: Pass::Quiet,
            targets: 0,
            need: Bitmap::new(locals),
            cursor: 0,
            current: None,
            failed: false,
            next_at: Instant(0),
            retry_at: None,
            clean_reported: false,
            crash_total: 0,
            poke: false,
            total: 0,
            done: 0,
        }
    }
    /// Whether every rebuilding leg has this region.
    pub(crate) fn has_copied(&self, local: u32) -> bool {
        !self.need.get(local)
    }
}
