//! Pool: stripes arrays by weight, and finds the way back.
//!
//! Owns the arithmetic between pool space and array space, and nothing that changes while it serves: a
//! `StripeMap` is made, written down, and replaced by a longer one when arrays are added. Promise: every
//! byte of pool space lies at exactly one byte of one array and the other way round, `locate` is O(1) in
//! the size of the pool, and every stretch of consecutive chunks is shared out by weight, give or take
//! less than two chunks per array. Does not know volumes, hosts or drives.

mod map;
mod pattern;
mod space;

pub use map::{ArrayPart, StripeMap, ZoneInfo};
pub use space::{Granules, NoRoom};

/// Smallest chunk of the stripe, bytes.
pub const CHUNK_BYTES_MIN: u32 = 16 << 10;
/// Largest chunk of the stripe, bytes.
pub const CHUNK_BYTES_MAX: u32 = 4 << 20;
/// Default chunk, bytes.
pub const CHUNK_BYTES_DEFAULT: u32 = 64 << 10;
/// Most arrays of a pool.
pub const ARRAYS_MAX: usize = 128;
/// Largest weight that may be given.
pub const WEIGHT_MAX: u32 = 64;
/// Most entries of a zone's pattern.
pub const PATTERN_MAX: u32 = 512;

/// An array as the stripe sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArraySpace {
    /// Bytes for data.
    pub bytes: u64,
    /// Its share, 1 to `WEIGHT_MAX`.
    pub weight: u32,
}

/// Why there is no such map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolError {
    /// The chunk is not a power of two between `CHUNK_BYTES_MIN` and `CHUNK_BYTES_MAX`.
    Chunk(u32),
    /// No array, or more than `ARRAYS_MAX`.
    Arrays(usize),
    /// A weight outside of 1..=`WEIGHT_MAX`.
    Weight {
        /// Index of the array among those given.
        array: usize,
        /// What was asked for.
        weight: u32,
    },
    /// An array smaller than its weight in chunks.
    TooSmall {
        /// Index of the array among those given.
        array: usize,
    },
}
