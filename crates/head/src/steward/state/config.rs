//! A pool's configuration as it lies on its drives: docs/formats/config.md, "Body".

use crate::steward::state::extras::{CapsRow, Extras, WeightRow};
use access::Grants;
use array::Geometry;
use array::format::{ConfigSlot, Features, Label, feature};
use base::Uuid;
use base::codec::{Malformed, Reader, Writer};
use pool::{Granules, StripeMap};
use std::sync::Arc;
use volume::{Caps, Catalogue, GRANULE_BYTES, Run, WEIGHT};

/// What a pool is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolConfig {
    /// For life.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Block size of new volumes.
    pub block_bytes: u32,
    /// The largest of its drives' smallest writes.
    pub drive_block_bytes: u32,
    /// The system that has it imported; nil once released.
    pub holder: Uuid,
    /// Seconds since 1970-01-01 UTC.
    pub created: u64,
    /// Its arrays, in the map's order.
    pub arrays: Vec<ArrayRow>,
    /// The stripe.
    pub map: Arc<StripeMap>,
    /// Its volumes.
    pub volumes: Catalogue,
    /// Their numbers and hosts.
    pub grants: Grants,
    /// Scrubs.
    pub extras: Extras,
    /// No free space holds anything but what is uncleared or returned.
    pub accounted: bool,
    /// Compat bits of a newer program: they are kept.
    pub newer_compat: u64,
    /// The system of two heads that share its drives: no head that is not of it may take it.
    pub shared: Option<Uuid>,
}

/// An array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayRow {
    /// Mirror; else single.
    pub mirror: bool,
    /// Weight as given or measured.
    pub weight: u32,
    /// Bytes for data.
    pub data_bytes: u64,
    /// Bytes of a bitmap region.
    pub region_bytes: u64,
    /// Its legs.
    pub legs: Vec<LegRow>,
}

/// A leg.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LegRow {
    /// The drive.
    pub drive: Uuid,
    /// Where it was last seen.
    pub path: String,
}

impl ArrayRow {
    /// Whether it has as many legs as such an array can have.
    pub fn has_its_legs(&self) -> bool {
        if !self.mirror { self.legs.len() == 1 } else { (1..=array::PLACES_MAX).contains(&self.legs.len()) }
    }
}

impl PoolConfig {
    /// The bytes for the slots.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.bytes(&self.uuid.0).text(&self.name).u32(self.block_bytes).u32(self.drive_block_bytes);
        w.bytes(&self.holder.0).u64(self.created);
        if let Some(system) = self.shared {
            w.bytes(&system.0);
        }
        w.u16(self.arrays.len() as u16);
        for a in &self.arrays {
            w.u8(u8::from(a.mirror))
                .u32(a.weight)
                .u64(a.data_bytes)
                .u64(a.region_bytes)
                .u8(a.legs.len() as u8);
            for leg in &a.legs {
                w.bytes(&leg.drive.0).text(&leg.path);
            }
        }
        self.map.encode(&mut w);
        self.volumes.encode(&mut w);
        self.grants.encode(&mut w);
        if !self.extras.is_empty() {
            self.extras.encode(&mut w);
        }
        w.0
    }
    /// Reads what `slot` made. Every volume lies in the pool and none on another, or it is malformed.
    pub fn of_slot(slot: &ConfigSlot) -> Result<Self, Malformed> {
        Self::of_body(&slot.body, slot.features.compat, slot.features.incompat)
    }
    /// The same of the body and the feature bits.
    pub fn of_body(body: &[u8], compat: u64, incompat: u64) -> Result<Self, Malformed> {
        let config = Self::decode(body, incompat)?;
        let newer_compat = compat & !feature::ACCOUNTED;
        Ok(Self { accounted: compat & feature::ACCOUNTED != 0, newer_compat, ..config })
    }
    /// Reads what `encode` wrote; the feature bits tell which parts the extras have.
    pub fn decode(bytes: &[u8], incompat: u64) -> Result<Self, Malformed> {
        let mut r = Reader(bytes);
        let uuid = Uuid(r.array()?);
        let name = r.text()?;
        let (block_bytes, drive_block_bytes) = (r.u32()?, r.u32()?);
        let (holder, created) = (Uuid(r.array()?), r.u64()?);
        let shared = if incompat & feature::SHARED != 0 {
            Some(Uuid(r.array()?)).filter(|system| !system.is_nil())
        } else {
            None
        };
        if shared.is_none() && incompat & feature::SHARED != 0 {
            return Err(Malformed);
        }
        let mut arrays = vec![];
        for _ in 0..r.u16()? {
            let (mirror, weight, data_bytes, region_bytes) = (r.u8()?, r.u32()?, r.u64()?, r.u64()?);
            let mut legs = vec![];
            for _ in 0..r.u8()? {
                legs.push(LegRow { drive: Uuid(r.array()?), path: r.text()? });
            }
            let row = ArrayRow { mirror: mirror == 1, weight, data_bytes, region_bytes, legs };
            if mirror > 1 || !row.has_its_legs() {
                return Err(Malformed);
            }
            arrays.push(row);
        }
        let map = Arc::new(StripeMap::decode(&mut r)?);
        let (volumes, grants) = (Catalogue::decode(&mut r)?, Grants::decode(&mut r)?);
        let extras = if r.0.is_empty() { Extras::default() } else { Extras::decode(&mut r, incompat)? };
        let config = Self {
            extras,
            uuid,
            name,
            block_bytes,
            drive_block_bytes,
            holder,
            created,
            arrays,
            map,
            volumes,
            grants,
            accounted: false,
            newer_compat: 0,
            shared,
        };
        if r.0.is_empty() && config.is_sound() { Ok(config) } else { Err(Malformed) }
    }
    /// Whether its parts fit each other: every volume lies in the pool and none on another, each has a number, and what is said of
    /// volumes and arrays is said of those that there are.
    pub fn is_sound(&self) -> bool {
        let is_volume = |uuid: Uuid| self.volumes.by_uuid(uuid).is_some();
        volume::check_name(&self.name).is_ok()
            && self.map.arrays() == self.arrays.len()
            && self.arrays.iter().enumerate().all(|(i, a)| self.map.used_of(i) <= a.data_bytes)
            && self.space().is_some()
            && self.volumes.iter().all(|v| self.grants.of(v.uuid).is_some())
            && self.grants.iter().all(|g| is_volume(g.volume))
            && self.extras.caps.iter().all(|s| is_volume(s.volume))
            && self.extras.weights.iter().all(|s| is_volume(s.volume))
    }
    /// As it is written. What is behind the exports is a feature that older programs must not overlook.
    pub fn slot(&self, generation: u64) -> ConfigSlot {
        let usual = |a: &ArrayRow| !a.mirror || (2..=array::LEGS_MAX).contains(&a.legs.len());
        let legs = !self.extras.replacements.is_empty() || !self.arrays.iter().all(usual);
        let extras = if self.extras.is_empty() { 0 } else { feature::EXTRAS };
        let prefers = if self.extras.prefers_several() { feature::PREFERS } else { 0 };
        let caps = if self.extras.caps.is_empty() { 0 } else { feature::CAPS };
        let weights = if self.extras.weights.is_empty() { 0 } else { feature::WEIGHTS };
        let uncleared = if self.extras.uncleared.is_some() { feature::UNCLEARED } else { 0 };
        let shared = if self.shared.is_some() { feature::SHARED } else { 0 };
        let failed = if self.extras.failed.is_empty() { 0 } else { feature::FAILED };
        let legs = if legs { feature::LEGS } else { 0 };
        let incompat = extras | prefers | caps | weights | uncleared | legs | shared | failed;
        let accounted = if self.accounted { feature::ACCOUNTED } else { 0 };
        let compat = accounted | self.newer_compat;
        let features = Features { compat, incompat, ..Features::default() };
        ConfigSlot { features, generation, body: self.encode() }
    }
    /// A volume's caps.
    pub fn caps_of(&self, volume: Uuid) -> Caps {
        self.extras.caps.iter().find(|row| row.volume == volume).map(|row| row.caps).unwrap_or_default()
    }
    /// Changes them; a volume without caps has no row.
    pub(super) fn set_caps(&mut self, volume: Uuid, caps: Caps) {
        self.extras.caps.retain(|row| row.volume != volume);
        if !caps.none() {
            self.extras.caps.push(CapsRow { volume, caps });
        }
    }
    /// A volume's weight.
    pub fn weight_of(&self, volume: Uuid) -> u16 {
        self.extras.weights.iter().find(|row| row.volume == volume).map_or(WEIGHT, |row| row.weight)
    }
    /// Changes it; a volume of the usual weight has no row.
    pub(super) fn set_weight(&mut self, volume: Uuid, weight: u16) {
        self.extras.weights.retain(|row| row.volume != volume);
        if weight != WEIGHT {
            self.extras.weights.push(WeightRow { volume, weight });
        }
    }
    /// Which granules of the pool its volumes have, and those that are returned; None if two claim the same.
    pub fn space(&self) -> Option<Granules> {
        let mut space = self.volumes_space()?;
        let Some(returned) = &self.extras.uncleared else { return Some(space) };
        if returned.all_free {
            let free: Vec<(u64, u64)> = space.holes().collect();
            free.into_iter().for_each(|(first, count)| assert!(space.claim(first, count), "a hole is free"));
            return returned.runs.is_empty().then_some(space);
        }
        returned.runs.iter().all(|run| space.claim(run.first, run.count)).then_some(space)
    }
    /// Runs that are returned: nobody's, and not yet free.
    pub fn returned(&self) -> Vec<Run> {
        match &self.extras.uncleared {
            None => vec![],
            Some(returned) if returned.all_free => {
                let space = self.volumes_space();
                let holes = space.iter().flat_map(Granules::holes);
                holes.map(|(first, count)| Run { first, count }).collect()
            }
            Some(returned) => returned.runs.clone(),
        }
    }
    fn volumes_space(&self) -> Option<Granules> {
        let mut space = Granules::new(self.map.bytes() / GRANULE_BYTES);
        let mut runs = self.volumes.iter().flat_map(|v| v.map.runs());
        runs.all(|run| space.claim(run.first, run.count)).then_some(space)
    }
    /// For life: marks the bitmap blocks of an array.
    pub fn array_uuid(&self, array: usize) -> Uuid {
        array_uuid(self.uuid, array)
    }
}

/// See `PoolConfig::array_uuid`: the pool's, with the index mixed into its last bytes.
pub fn array_uuid(pool: Uuid, array: usize) -> Uuid {
    let mut uuid = pool;
    let index = (array as u16 + 1).to_be_bytes();
    uuid.0[14] ^= index[0];
    uuid.0[15] ^= index[1];
    uuid
}

/// What a label says of the layout, in the array's words.
pub fn geometry_of(label: &Label) -> Geometry {
    Geometry {
        data_at: label.data_at,
        data_bytes: label.data_bytes,
        region_bytes: label.region_bytes,
        bitmap_at: label.bitmap_at[0],
        bitmap_blocks: label.bitmap_bytes / array::BITMAP_BLOCK_BYTES,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::steward::state::extras::FailedRow;
    use pool::ArraySpace;
    use volume::{Map, Run, Volume};

    pub(crate) fn sample() -> PoolConfig {
        let leg = |n: u64| LegRow { drive: Uuid::from_random(n, n), path: format!("/dev/d{n}") };
        let row = |a: u64| ArrayRow {
            mirror: true,
            weight: 1,
            data_bytes: 64 << 20,
            region_bytes: 1 << 20,
            legs: vec![leg(2 * a), leg(2 * a + 1)],
        };
        let space = ArraySpace { bytes: 64 << 20, weight: 1 };
        let mut volumes = Catalogue::default();
        let mut grants = Grants::default();
        for (n, name) in [(1, "a"), (2, "b")] {
            let uuid = Uuid::from_random(50 + n, n);
            let map = Map::new(&[Run { first: n * 3, count: 2 }]).expect("a good map");
            let naa = volume::naa(uuid);
            volumes.put(Volume { uuid, naa, name: name.into(), block_bytes: 4096, bytes: 5 << 20, map });
            grants.number(uuid, n as u32);
        }
        PoolConfig {
            uuid: Uuid::from_random(9, 9),
            name: "tank".into(),
            block_bytes: 4096,
            drive_block_bytes: 512,
            holder: Uuid::from_random(8, 8),
            created: 5,
            arrays: vec![row(0), row(1)],
            map: Arc::new(StripeMap::new(65536, &[space, space]).expect("a good map")),
            volumes,
            grants,
            extras: Extras::default(),
            accounted: true,
            newer_compat: 0,
            shared: None,
        }
    }

    #[test]
    fn extras_survive_are_a_feature_of_their_own_and_say_nothing_in_one_way_only() {
        use crate::steward::state::extras::{Found, LastScrub, Replacement, ScrubRow, ScrubRun, SpareRow};
        let found = Found { differed: 3, repaired: 2, unreadable: 1 };
        let run = ScrubRun { began: 7, repair: true, prefer: vec![Uuid([3; 16])], at: vec![1, 2], found };
        let last = Some(LastScrub { ended: 9, found });
        let spare = SpareRow { drive: Uuid([5; 16]), path: "/dev/s".into() };
        let scrub = ScrubRow { every_days: 7, repair: true, last, run: Some(run) };
        let extras = Extras { scrub, spares: vec![spare], ..Extras::default() };
        let config = PoolConfig { extras, ..sample() };
        let bytes = config.encode();
        assert_eq!(PoolConfig::of_slot(&config.slot(1)), Ok(config.clone()));
        let without = sample().encode().len();
        for cut in without + 1..bytes.len() {
            assert_eq!(PoolConfig::decode(&bytes[..cut], 0), Err(Malformed), "cut at {cut}");
        }
        assert_eq!(config.slot(1).features.incompat, feature::EXTRAS);
        // The good drives of several mirrors: with replacements and without.
        let mut several = config.clone();
        let run = several.extras.scrub.run.as_mut().expect("one is under way");
        run.prefer = vec![Uuid([3; 16]), Uuid([4; 16])];
        assert_eq!(several.slot(1).features.incompat, feature::EXTRAS | feature::PREFERS);
        for replacements in [0u8, 2] {
            let row = |n: u8| crate::steward::state::extras::Replacement {
                old: Uuid([n + 5; 16]),
                old_path: "/dev/old".into(),
                new: Uuid([n + 7; 16]),
            };
            several.extras.replacements = (0..replacements).map(row).collect();
            assert_eq!(
                PoolConfig::of_slot(&several.slot(1)),
                Ok(several.clone()),
                "{replacements} replacements"
            );
        }
        let accounted = Features { compat: feature::ACCOUNTED, ..Features::default() };
        assert_eq!(sample().slot(1).features, accounted, "an older program reads it until then");
        let mut legs = config.clone();
        let replacement = Replacement { old: Uuid([6; 16]), old_path: "/dev/o".into(), new: Uuid([7; 16]) };
        legs.extras.replacements.push(replacement);
        assert_eq!(PoolConfig::of_slot(&legs.slot(1)), Ok(legs.clone()));
        assert_eq!(legs.slot(1).features.incompat, feature::EXTRAS | feature::LEGS);
        let mut alone = sample();
        alone.arrays[0].legs.truncate(1);
        assert_eq!(PoolConfig::of_slot(&alone.slot(1)), Ok(alone.clone()));
        assert_eq!(alone.slot(1).features.incompat, feature::LEGS);
        let mut none = config.encode();
        none.extend([0; 2]);
        assert_eq!(PoolConfig::decode(&none, 0), Err(Malformed), "what says nothing is not written");
        let mut empty = sample().encode();
        empty.extend([0; 9]);
        assert_eq!(PoolConfig::decode(&empty, 0), Err(Malformed));
    }

    #[test]
    fn caps_survive_beside_every_other_part_and_are_a_feature_while_there_are_any() {
        use crate::steward::state::extras::{Replacement, ScrubRun};
        let volume = |n: usize| sample().volumes.iter().nth(n).expect("it has two").uuid;
        let caps = Caps { iops_max: 5000, mbps_max: 7 };
        let replacement = Replacement { old: Uuid([6; 16]), old_path: "/dev/o".into(), new: Uuid([7; 16]) };
        for (replaces, prefers) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut config = sample();
            config.extras.replacements.extend(replaces.then(|| replacement.clone()));
            let prefer = vec![Uuid([3; 16]), Uuid([4; 16])];
            config.extras.scrub.run = prefers.then(|| ScrubRun { prefer, ..ScrubRun::default() });
            config.set_caps(volume(1), caps);
            config.set_caps(volume(0), Caps { iops_max: 10, mbps_max: 0 });
            let slot = config.slot(1);
            let more = if replaces { feature::LEGS } else { 0 } | if prefers { feature::PREFERS } else { 0 };
            assert_eq!(slot.features.incompat, feature::EXTRAS | feature::CAPS | more);
            assert_eq!(PoolConfig::of_slot(&slot), Ok(config.clone()));
            let whole = slot.body.len();
            for cut in sample().encode().len() + 1..whole {
                let cut = &slot.body[..cut];
                assert_eq!(PoolConfig::decode(cut, slot.features.incompat), Err(Malformed));
            }
            assert!(PoolConfig::decode(&slot.body, feature::EXTRAS).is_err(), "an older program");
            assert_eq!(config.caps_of(volume(1)), caps);
            config.set_caps(volume(0), Caps::default());
            config.set_caps(volume(1), Caps::default());
            assert_eq!(config.slot(1).features.incompat & feature::CAPS, 0);
        }
        let bad = |change: fn(&mut CapsRow)| {
            let mut config = sample();
            config.set_caps(volume(0), caps);
            change(&mut config.extras.caps[0]);
            PoolConfig::of_slot(&config.slot(1)).is_err()
        };
        assert!(!bad(|_| ()));
        assert!(bad(|row| row.volume = Uuid([1; 16])), "no such volume");
        assert!(bad(|row| row.caps = Caps::default()), "a volume without caps has no row");
        let mut twice = sample();
        twice.set_caps(volume(0), caps);
        twice.extras.caps.extend([twice.extras.caps[0]]);
        assert!(PoolConfig::of_slot(&twice.slot(1)).is_err());
    }

    #[test]
    fn weights_survive_beside_caps_and_are_a_feature_while_there_are_any() {
        let volume = |n: usize| sample().volumes.iter().nth(n).expect("it has two").uuid;
        for capped in [false, true] {
            let mut config = sample();
            if capped {
                config.set_caps(volume(1), Caps { iops_max: 5000, mbps_max: 7 });
            }
            config.set_weight(volume(0), 300);
            config.set_weight(volume(1), 1);
            let slot = config.slot(1);
            let caps = if capped { feature::CAPS } else { 0 };
            assert_eq!(slot.features.incompat, feature::EXTRAS | feature::WEIGHTS | caps);
            assert_eq!(PoolConfig::of_slot(&slot), Ok(config.clone()));
            for cut in sample().encode().len() + 1..slot.body.len() {
                assert_eq!(PoolConfig::decode(&slot.body[..cut], slot.features.incompat), Err(Malformed));
            }
            assert!(PoolConfig::decode(&slot.body, feature::EXTRAS | caps).is_err(), "an older program");
            assert_eq!((config.weight_of(volume(0)), config.weight_of(volume(1))), (300, 1));
            config.set_weight(volume(0), WEIGHT);
            config.set_weight(volume(1), WEIGHT);
            assert_eq!(config.slot(1).features.incompat & feature::WEIGHTS, 0);
        }
        let bad = |change: fn(&mut WeightRow)| {
            let mut config = sample();
            config.set_weight(volume(0), 7);
            change(&mut config.extras.weights[0]);
            PoolConfig::of_slot(&config.slot(1)).is_err()
        };
        assert!(!bad(|_| ()));
        assert!(bad(|row| row.volume = Uuid([1; 16])), "no such volume");
        for weight in [0, WEIGHT, 1001] {
            let mut config = sample();
            config.extras.weights.push(WeightRow { volume: volume(0), weight });
            assert!(PoolConfig::of_slot(&config.slot(1)).is_err(), "{weight}");
        }
    }

    #[test]
    fn failed_drives_survive_beside_every_other_part_and_are_a_feature_while_there_are_any() {
        let row = |n: u8| FailedRow {
            drive: Uuid([n; 16]),
            path: format!("/dev/f{n}"),
            serial: "S1".into(),
            why: finding::to_text(&finding::Cause::from(finding::LegCause::LegOutByHand)),
            errors: 7,
            since: 9,
            removed: n == 2,
            spare: Uuid([n; 16]),
        };
        for weighed in [false, true] {
            let mut config = sample();
            if weighed {
                let volume = config.volumes.iter().next().expect("it has two").uuid;
                config.set_weight(volume, 300);
            }
            let before = config.slot(1).body.len();
            config.extras.failed = vec![row(1), row(2)];
            let slot = config.slot(1);
            let weights = if weighed { feature::WEIGHTS } else { 0 };
            assert_eq!(slot.features.incompat, feature::EXTRAS | feature::FAILED | weights);
            assert_eq!(PoolConfig::of_slot(&slot), Ok(config.clone()));
            assert_eq!(config.extras.failed[0].cause(), finding::LegCause::LegOutByHand.into());
            for cut in before + 1..slot.body.len() {
                let cut = PoolConfig::decode(&slot.body[..cut], slot.features.incompat);
                assert_eq!(cut, Err(Malformed));
            }
            let older = PoolConfig::decode(&slot.body, slot.features.incompat & !feature::FAILED);
            assert!(older.is_err(), "an older program");
        }
        let mut twice = sample();
        twice.extras.failed = vec![row(1), row(1)];
        assert!(PoolConfig::of_slot(&twice.slot(1)).is_err());
        let mut many = sample();
        for n in 0..200u32 {
            let drive = Uuid::from_random(u64::from(n), 1);
            many.extras.put_failed(&FailedRow { drive, removed: n != 0, ..row(1) });
        }
        assert_eq!(many.extras.failed.len(), 128);
        assert!(!many.extras.failed[0].removed, "one that is a leg is not forgotten for others");
        assert_eq!(PoolConfig::of_slot(&many.slot(1)), Ok(many));
    }

    #[test]
    fn a_configuration_survives_and_any_cut_is_noticed() {
        let bytes = sample().encode();
        assert_eq!(PoolConfig::of_slot(&sample().slot(1)), Ok(sample()));
        for cut in 0..bytes.len() {
            assert_eq!(PoolConfig::decode(&bytes[..cut], 0), Err(Malformed), "cut at {cut}");
        }
    }

    #[test]
    fn configurations_that_contradict_themselves_are_malformed() {
        let bad = |change: fn(&mut PoolConfig)| {
            let mut c = sample();
            change(&mut c);
            PoolConfig::of_slot(&c.slot(1)).is_err()
        };
        assert!(!bad(|_| ()));
        assert!(bad(|c| c.arrays[0].data_bytes = 1));
        assert!(bad(|c| drop(c.arrays.pop())));
        assert!(bad(|c| c.arrays[0].legs.clear()));
        assert!(bad(|c| {
            let leg = c.arrays[0].legs[0].clone();
            c.arrays[0].legs.resize(6, leg);
        }));
        assert!(bad(|c| c.name = "a/b".into()));
        assert!(bad(|c| c.grants = Grants::default()));
        assert!(
            bad(|c| {
                let mut v = c.volumes.by_name("a").expect("is there").clone();
                v.map = Map::new(&[Run { first: 7, count: 2 }]).expect("a good map");
                c.volumes.put(v);
            }),
            "two volumes on one granule"
        );
        assert!(
            bad(|c| {
                let mut v = c.volumes.by_name("a").expect("is there").clone();
                v.map = Map::new(&[Run { first: 1 << 30, count: 2 }]).expect("a good map");
                c.volumes.put(v);
            }),
            "a volume outside of the pool"
        );
    }

    #[test]
    fn arrays_of_a_pool_have_names_of_their_own() {
        let pool = Uuid::from_random(1, 2);
        assert_ne!(array_uuid(pool, 0), array_uuid(pool, 1));
        assert_ne!(array_uuid(pool, 0), pool);
    }
}
