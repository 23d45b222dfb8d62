//! Array: keeps the legs of a mirror identical and answers from any leg in sync.
//!
//! Owns the layout of the data space and the bitmap, write order, fan-out, read balancing, retry and
//! healing, the write-intent bitmap, resync, and the formats of what we write on drives. Promise: a
//! `Good` write is on every leg in sync, and each leg that lacks it is on record as missing. Does not
//! know volumes, hosts, sockets or time. The rules are in `docs/mirror.md`.

mod array;
mod bitmap;
mod books;
mod buffers;
mod change;
mod door;
mod flight;
pub mod format;
mod geometry;
mod hedge;
mod intent;
mod latency;
mod local_leg;
mod locks;
mod members;
mod read;
mod resync;
mod scrub;
mod uncleared;
mod writing;

pub use array::Array;
pub use bitmap::{Bitmap, BitmapError, decode_block, encode, encode_block, merge};
pub use books::ArrayBooks;
pub use door::{
    ArrayCommand, ArrayConfig, ArrayIo, COMMANDS_MAX, Kind, Leg, LegState, Membership, Note, OpView, Pace,
    Progress, SCRATCH_BYTES, SINGLE_SCRATCH_BYTES, Scrub, TRANSFER_MAX, Ticket, Verdict,
};
pub use geometry::{
    BITMAP_BLOCK_BYTES, BITMAP_HEADER_BYTES, BITS_PER_BLOCK, Geometry, LANES, LEGS_MAX, Lanes, PLACES_MAX,
    REGION_BYTES_MIN, REGIONS_MAX,
};
pub use uncleared::{Mend, Merged, UNCLEARED_AREA_BYTES, UNCLEARED_MAGIC, UnclearedMap};
