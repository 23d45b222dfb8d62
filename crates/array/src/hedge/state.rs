//! What one instance knows of its hedged reads, and its pool for them.

use crate::flight::List;
use base::Instant;

/// Hedged reads of one instance whose second operation is not over.
pub(crate) const HEDGES_MAX: u32 = 32;
/// One in so many reads may be hedged, and so many at once after a time without.
pub(super) const CREDIT_FOR_ONE: u32 = 32;
pub(super) const CREDIT_MAX: u32 = HEDGES_MAX * CREDIT_FOR_ONE;

/// The hedging of one instance.
#[derive(Debug)]
pub(crate) struct Hedging {
    /// Operations of reads without a flight, oldest first; linked by `DriveTag::next` and `DriveTag::previous`.
    pub(super) young: List,
    /// Reads beyond the floor, oldest first; linked by `Flight::next` and `Flight::previous`.
    pub(super) reads: List,
    /// Those beyond the floor were looked at; not again before.
    pub(super) next_at: Instant,
    pub(super) credit: u32,
    pub(super) out: u32,
    pub(super) out_bytes: u64,
    pub(crate) sent: u64,
    pub(crate) won: u64,
}

impl Hedging {
    pub(crate) fn new() -> Self {
        Self {
            young: List::EMPTY,
            reads: List::EMPTY,
            next_at: Instant(0),
            credit: CREDIT_MAX,
            out: 0,
            out_bytes: 0,
            sent: 0,
            won: 0,
        }
    }
    /// An operation that held a share of the pool is over in the kernel.
    pub(crate) fn give_back(&mut self, len: u64) {
        self.out -= 1;
        self.out_bytes -= len;
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.young.is_empty() && self.reads.is_empty() && self.out == 0 && self.out_bytes == 0
    }
}
