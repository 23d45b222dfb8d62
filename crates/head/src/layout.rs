//! Where the bytes are: pools, arrays and volumes as the data path needs them.
//!
//! Made by the Steward at every change, never changed afterwards, shared by all shards.

use array::{Bitmap, Geometry, Lanes, Membership, UnclearedMap};
use base::{Uuid, VolumeId};
use core::fmt;
use std::sync::Arc;

/// A pool of this head; never reused in one life of the head.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PoolId(pub u16);

/// An array of this head; never reused in one life of the head.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ArrayId(pub u16);

impl ArrayId {
    /// The id as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for ArrayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Everything that the data path knows.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The generation of the view that it goes with.
    pub generation: u64,
    /// All pools that are imported.
    pub pools: Vec<PoolLayout>,
    /// All their arrays.
    pub arrays: Vec<ArrayLayout>,
    /// All their volumes.
    pub volumes: Vec<VolumeLayout>,
}

/// One pool.
#[derive(Clone, Debug)]
pub struct PoolLayout {
    /// Its id.
    pub id: PoolId,
    /// For life.
    pub uuid: Uuid,
    /// The stripe.
    pub map: Arc<pool::StripeMap>,
    /// Its arrays, in the map's order.
    pub arrays: Vec<ArrayId>,
}

/// One array.
#[derive(Clone, Debug)]
pub struct ArrayLayout {
    /// Its id.
    pub id: ArrayId,
    /// For life: the pool's UUID and the array's index make it, and mark its bitmap blocks.
    pub uuid: Uuid,
    /// Where things lie on each of its drives.
    pub geometry: Geometry,
    /// Legs, with the epoch of the last change.
    pub membership: Membership,
    /// Which shard changes what. Read once, as `dirty` is, for each `map`.
    pub lanes: Lanes,
    /// Grows by one whenever lanes, and with them `dirty`, `unclean` and `uncleared`, are others: a shard that has halted the array builds it
    /// anew then (docs/rfcs/0008-both-serve.md).
    pub map: u32,
    /// Regions that were dirty when the array was assembled (all of them, if a leg lacks everything).
    /// Read once, when a shard first sees the array.
    pub dirty: Arc<Bitmap>,
    /// The array was not closed in order: dirty regions may differ between legs.
    pub unclean: bool,
    /// Pieces that were uncleared when the array was assembled. Read once, as `dirty` is.
    pub uncleared: Arc<UnclearedMap>,
    /// Two heads share its drives.
    pub shared: bool,
}

/// One volume.
#[derive(Clone, Debug)]
pub struct VolumeLayout {
    /// Its id, as in the view's exports.
    pub id: VolumeId,
    /// Its pool.
    pub pool: PoolId,
    /// 512 or 4096.
    pub block_bytes: u32,
    /// Size in blocks.
    pub blocks: u64,
    /// Where it lies in the pool.
    pub map: Arc<volume::Map>,
    /// False: commands end in `NotReady`.
    pub ready: bool,
    /// What its hosts may start in a second.
    pub caps: crate::admission::caps::Caps,
    /// Its part of what drives do, beside that of others, when they are the limit.
    pub weight: u16,
}
