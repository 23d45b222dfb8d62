//! Where the bytes are: pools, arrays and volumes as the data path needs them.
//!
//! Made by the Steward at every change, never changed afterwards, shared by all shards.

use array::{Bitmap, Geometry, Lanes, Membership, UnclearedMap};
use base::{Uuid, VolumeId};
use core::fmt;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A pool of this head; never reused in one life of the head.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct PoolId(pub u16);

/// An array of this head; never reused in one life of the head.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Layout {
    /// The generation of the view that it goes with.
    pub generation: u64,
    /// All pools that are imported.
    pub pools: Vec<PoolLayout>,
    /// All their arrays.
    pub arrays: Vec<ArrayLayout>,
    /// All their volumes.
    pub volumes: Vec<VolumeLayout>,
    /// No pool is here yet, since this head has just begun to lead: hosts' commands wait for the next layout.
    pub waits: bool,
}

/// One pool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PoolLayout {
    /// Its id.
    pub id: PoolId,
    /// For life.
    pub uuid: Uuid,
    /// The stripe.
    #[serde(with = "stripe_map")]
    pub map: Arc<pool::StripeMap>,
    /// Its arrays, in the map's order.
    pub arrays: Vec<ArrayId>,
}

/// One array.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Read once, when a shard first sees the array. Nothing for shards of the other head that have read it.
    pub dirty: Arc<Bitmap>,
    /// The array was not closed by a clean stop: dirty regions may differ between legs.
    pub unclean: bool,
    /// Pieces that were uncleared when the array was assembled. Read once, as `dirty` is.
    pub uncleared: Arc<UnclearedMap>,
    /// Two heads share its drives.
    pub shared: bool,
    /// This head has no path to a leg in use, which the head that leads reaches. Each head finds that out by itself.
    #[serde(skip)]
    pub lacks_path: bool,
}

/// One volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    #[serde(with = "volume_map")]
    pub map: Arc<volume::Map>,
    /// False: commands end in `NotReady`.
    pub ready: bool,
    /// What its hosts may start in a second, at both heads together.
    pub caps: volume::Caps,
    /// The shard, of either head, that counts it.
    pub home: u16,
    /// Its share of what drives do, when volumes compete for them.
    pub weight: u16,
}

impl Layout {
    /// Whether its parts fit together, for whoever did not make it: shards believe a layout.
    pub fn fits(&self) -> bool {
        let array = |id: &ArrayId| self.arrays.iter().filter(|a| a.id == *id).count() == 1;
        // One that is being added lies in no stripe yet, nor does one that is being removed.
        let pool = |p: &PoolLayout| p.arrays.len() >= p.map.arrays() && p.arrays.iter().all(array);
        let volume = |v: &VolumeLayout| {
            let mapped = v.map.granules().saturating_mul(volume::GRANULE_BYTES);
            let there = !v.ready || self.pools.iter().any(|p| p.id == v.pool);
            let bytes = v.blocks.checked_mul(u64::from(v.block_bytes));
            there && [512, 4096].contains(&v.block_bytes) && bytes.is_some_and(|b| b <= mapped)
        };
        let all = self.pools.iter().map(|p| p.arrays.len()).sum::<usize>() == self.arrays.len();
        all && self.arrays.iter().all(ArrayLayout::fits)
            && self.pools.iter().all(pool)
            && self.volumes.iter().all(volume)
    }
}

impl ArrayLayout {
    /// Whether its maps are of its geometry, or left out for whoever has read them.
    fn fits(&self) -> bool {
        let dirty = self.dirty.is_nothing() || self.dirty.len() == self.geometry.regions();
        dirty && self.uncleared.fits(&self.geometry) && self.membership.legs.len() <= array::PLACES_MAX
    }
}

/// A map of a stripe in a letter: the bytes that lie on drives.
mod stripe_map {
    use base::codec::{Reader, Writer};
    use pool::StripeMap;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(map: &Arc<StripeMap>, s: S) -> Result<S::Ok, S::Error> {
        let mut w = Writer::default();
        map.encode(&mut w);
        w.0.serialize(s)
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Arc<StripeMap>, D::Error> {
        let (bytes, bad) = (Vec::<u8>::deserialize(d)?, || D::Error::custom("no StripeMap"));
        let mut r = Reader(&bytes);
        let map = StripeMap::decode(&mut r).map_err(|_| bad())?;
        if r.0.is_empty() { Ok(Arc::new(map)) } else { Err(bad()) }
    }
}

/// The same of a volume.
mod volume_map {
    use base::codec::{Reader, Writer};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;
    use volume::Map;

    pub fn serialize<S: Serializer>(map: &Arc<Map>, s: S) -> Result<S::Ok, S::Error> {
        let mut w = Writer::default();
        map.encode(&mut w);
        w.0.serialize(s)
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Arc<Map>, D::Error> {
        let (bytes, bad) = (Vec::<u8>::deserialize(d)?, || D::Error::custom("no Map"));
        let mut r = Reader(&bytes);
        let map = Map::decode(&mut r).map_err(|_| bad())?;
        if r.0.is_empty() { Ok(Arc::new(map)) } else { Err(bad()) }
    }
}
