//! Where the scrub of one instance is.

use crate::door::Scrub;
use crate::flight::Legs;
use base::Instant;

/// The scrub of one instance.
#[derive(Debug)]
pub(crate) struct Scrubbing {
    pub(super) order: Scrub,
    /// The next piece, and the end of its region.
    pub(super) next: u64,
    pub(super) end: u64,
    /// Bytes of own regions, all of them and those done.
    pub(super) total: u64,
    pub(super) done: u64,
    pub(super) piece: Piece,
    pub(super) next_at: Instant,
    /// The piece is read a second time since it could not be read, or was repaired at this byte.
    pub(super) again: bool,
    pub(super) repaired_at: Option<u64>,
    pub(super) repair: Option<Run>,
}

/// What is read, compared or mended: one piece at a time, as what is to be mended is kept with the scrub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// Nothing: the next one may begin.
    None,
    /// One of this scrub.
    Own,
    /// One of the scrub before this one: what it finds does not count.
    Former,
}

/// Blocks that differ in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) len: u32,
    /// In the piece.
    pub(super) offset: u32,
    pub(super) bad: Legs,
    pub(super) source: usize,
    pub(super) known: bool,
}
