//! The stripe map: zones of pool space, each striped over some of the arrays.
//!
//! ```text
//! pool space  | zone 0: arrays 0 1 2, weights 2 1 1      | zone 1: array 0 | zone 2 (added): 3 4 |
//! chunks        0 1 0 2 | 0 1 0 2 | 0 1 0 2 | …           0 0 0 0 …         3 4 3 4 …
//! ```

use crate::pattern::{pattern, reduce};
use crate::{ARRAYS_MAX, ArraySpace, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, PATTERN_MAX, PoolError, WEIGHT_MAX};
use base::codec::{Malformed, Reader, Writer};
use base::crc::crc32c;

/// Pool space to array space and back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeMap {
    chunk_shift: u32,
    arrays: u16,
    zones: Vec<Zone>,
}

/// What one array gives to one zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayPart {
    /// The array.
    pub array: u16,
    /// Places in the pattern.
    pub weight: u16,
    /// Its first chunk that belongs to the zone.
    pub first_chunk: u64,
}

/// A zone, for `status`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneInfo {
    /// Bytes of pool space.
    pub bytes: u64,
    /// Who takes part.
    pub parts: Vec<ArrayPart>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Zone {
    first_chunk: u64,
    turns: u64,
    chunks: u64,
    /// The pattern's length as a power of two, if it is one: then nothing has to be divided.
    pattern_shift: Option<u32>,
    parts: Vec<ArrayPart>,
    /// For each place: index in `parts`, and how many of that part's places came before.
    pattern: Vec<(u16, u16)>,
    /// For each part: its places, in order.
    places: Vec<Vec<u16>>,
}

impl Zone {
    fn new(first_chunk: u64, turns: u64, parts: Vec<ArrayPart>) -> Self {
        let weights: Vec<u32> = parts.iter().map(|p| u32::from(p.weight)).collect();
        let pattern = pattern(&weights);
        let mut places = vec![Vec::new(); parts.len()];
        for (place, (part, _)) in pattern.iter().enumerate() {
            places[usize::from(*part)].push(place as u16);
        }
        let length = pattern.len() as u64;
        let pattern_shift = length.is_power_of_two().then(|| length.trailing_zeros());
        Self { first_chunk, turns, chunks: turns * length, pattern_shift, parts, pattern, places }
    }
}

impl StripeMap {
    /// A map over `arrays`, in their order. Up to `weight - 1` chunks of an array, and what is no whole
    /// chunk, stay unused.
    pub fn new(chunk_bytes: u32, arrays: &[ArraySpace]) -> Result<Self, PoolError> {
        if !chunk_bytes.is_power_of_two() || !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_bytes) {
            return Err(PoolError::Chunk(chunk_bytes));
        }
        Self { chunk_shift: chunk_bytes.trailing_zeros(), arrays: 0, zones: vec![] }.append(arrays)
    }

    /// This map and, behind it, a zone (or several, where sizes differ) over further arrays. What lies
    /// in the present zones stays where it is.
    pub fn append(&self, arrays: &[ArraySpace]) -> Result<Self, PoolError> {
        let first = usize::from(self.arrays);
        if arrays.is_empty() || arrays.len() > ARRAYS_MAX - first {
            return Err(PoolError::Arrays(if arrays.is_empty() { 0 } else { first + arrays.len() }));
        }
        for (i, a) in arrays.iter().enumerate() {
            if a.weight == 0 || a.weight > WEIGHT_MAX {
                return Err(PoolError::Weight { array: i, weight: a.weight });
            }
            if a.bytes >> self.chunk_shift < u64::from(a.weight) {
                return Err(PoolError::TooSmall { array: i });
            }
        }
        let mut map = self.clone();
        map.arrays += arrays.len() as u16;
        let mut used = vec![0u64; arrays.len()];
        let left = |i: usize, used: &[u64]| (arrays[i].bytes >> self.chunk_shift) - used[i];
        let mut active: Vec<usize> = (0..arrays.len()).collect();
        while !active.is_empty() {
            let weights = reduce(&active.iter().map(|i| arrays[*i].weight).collect::<Vec<_>>());
            // Turns that the first array to be full can give.
            let turns = active
                .iter()
                .zip(&weights)
                .map(|(i, w)| left(*i, &used) / u64::from(*w))
                .min()
                .expect("some array is active");
            if turns > 0 {
                let parts = active
                    .iter()
                    .zip(&weights)
                    .map(|(i, w)| ArrayPart {
                        array: (first + i) as u16,
                        weight: *w as u16,
                        first_chunk: used[*i],
                    })
                    .collect();
                map.zones.push(Zone::new(map.chunks(), turns, parts));
            }
            active = active
                .iter()
                .zip(&weights)
                .filter(|(i, w)| {
                    used[**i] += turns * u64::from(**w);
                    left(**i, &used) >= u64::from(**w)
                })
                .map(|(i, _)| *i)
                .collect();
        }
        Ok(map)
    }

    /// This map without the arrays from `first` on and the zones over them, which lie at its end. What lies in the other
    /// zones stays where it is. None if such an array shares a zone with one that stays, or if nothing would stay.
    pub fn cut(&self, first: usize) -> Option<Self> {
        let stays = |z: &Zone| z.parts.iter().all(|p| usize::from(p.array) < first);
        let goes = |z: &Zone| z.parts.iter().all(|p| usize::from(p.array) >= first);
        let zones: Vec<Zone> = self.zones.iter().take_while(|z| stays(z)).cloned().collect();
        let whole = self.zones[zones.len()..].iter().all(goes);
        let some = first < self.arrays() && !zones.is_empty();
        (some && whole).then_some(Self { arrays: first as u16, zones, ..*self })
    }

    /// Where byte `at` of pool space lies: the array, the byte in it, and for how many bytes from there
    /// pool space and array space run in step (the rest of the chunk, or of the zone if it has but one
    /// array). Panics beyond the end.
    #[inline]
    pub fn locate(&self, at: u64) -> (usize, u64, u64) {
        let chunk = at >> self.chunk_shift;
        let offset = at & (self.chunk_bytes() - 1);
        let zone = match &self.zones[..] {
            // Most pools were made at once, of drives of one size.
            [zone] => zone,
            zones => &zones[zones.partition_point(|z| z.first_chunk <= chunk) - 1],
        };
        let inner = chunk - zone.first_chunk;
        assert!(inner < zone.chunks, "byte {at} lies beyond the end of the pool");
        if let [part] = &zone.parts[..] {
            let len = ((zone.chunks - inner) << self.chunk_shift) - offset;
            return (usize::from(part.array), ((part.first_chunk + inner) << self.chunk_shift) + offset, len);
        }
        let length = zone.pattern.len() as u64;
        let turn = match zone.pattern_shift {
            Some(shift) => inner >> shift,
            None => inner / length,
        };
        let place = inner - turn * length;
        let (part, before) = zone.pattern[place as usize];
        let part = &zone.parts[usize::from(part)];
        let array_chunk = part.first_chunk + turn * u64::from(part.weight) + u64::from(before);
        (usize::from(part.array), (array_chunk << self.chunk_shift) + offset, self.chunk_bytes() - offset)
    }

    /// The way back: which byte of pool space lies at byte `at` of `array`, and for how many bytes they
    /// run in step. None where the array's space is not used.
    pub fn locate_back(&self, array: usize, at: u64) -> Option<(u64, u64)> {
        let chunk = at >> self.chunk_shift;
        let offset = at & (self.chunk_bytes() - 1);
        for zone in &self.zones {
            let Some(i) = zone.parts.iter().position(|p| usize::from(p.array) == array) else { continue };
            let (part, weight) = (&zone.parts[i], u64::from(zone.parts[i].weight));
            let Some(inner) = chunk.checked_sub(part.first_chunk) else { continue };
            if inner >= zone.turns * weight {
                continue;
            }
            let length = zone.pattern.len() as u64;
            let place = u64::from(zone.places[i][(inner % weight) as usize]);
            let pool_chunk = zone.first_chunk + inner / weight * length + place;
            let run = if zone.parts.len() == 1 { zone.chunks - inner } else { 1 };
            return Some(((pool_chunk << self.chunk_shift) + offset, (run << self.chunk_shift) - offset));
        }
        None
    }

    /// Where a stretch of pool space lies on the arrays: for each array and zone that has a part in it, the array, its first
    /// byte there and the bytes. `at` and `len` are whole chunks. Panics beyond the end.
    pub fn ranges(&self, at: u64, len: u64) -> Vec<(usize, u64, u64)> {
        let whole = |bytes: u64| bytes & (self.chunk_bytes() - 1) == 0;
        assert!(whole(at) && whole(len) && at + len <= self.bytes(), "a stretch of whole chunks of the pool");
        let (first, end) = (at >> self.chunk_shift, (at + len) >> self.chunk_shift);
        let mut out = vec![];
        for zone in &self.zones {
            let inner =
                |chunk: u64| chunk.clamp(zone.first_chunk, zone.first_chunk + zone.chunks) - zone.first_chunk;
            let (from, to) = (inner(first), inner(end));
            let length = zone.pattern.len() as u64;
            for (part, places) in zone.parts.iter().zip(&zone.places) {
                // Consecutive chunks of the pool lie on consecutive chunks of each array.
                let before = |chunk: u64| {
                    let place = (chunk % length) as u16;
                    chunk / length * u64::from(part.weight) + places.partition_point(|p| *p < place) as u64
                };
                let (a, b) = (part.first_chunk + before(from), part.first_chunk + before(to));
                if a < b {
                    out.push((usize::from(part.array), a << self.chunk_shift, (b - a) << self.chunk_shift));
                }
            }
        }
        out
    }

    /// Bytes of pool space.
    pub fn bytes(&self) -> u64 {
        self.chunks() << self.chunk_shift
    }
    /// The chunk, bytes.
    pub fn chunk_bytes(&self) -> u64 {
        1 << self.chunk_shift
    }
    /// Number of arrays.
    pub fn arrays(&self) -> usize {
        usize::from(self.arrays)
    }
    /// Bytes of `array` that pool space uses: from its start, without gaps.
    pub fn used_of(&self, array: usize) -> u64 {
        let of = |z: &Zone| {
            let part = z.parts.iter().find(|p| usize::from(p.array) == array)?;
            Some(z.turns * u64::from(part.weight))
        };
        self.zones.iter().filter_map(of).sum::<u64>() << self.chunk_shift
    }
    /// The zones, in order.
    pub fn zones(&self) -> Vec<ZoneInfo> {
        self.zones
            .iter()
            .map(|z| ZoneInfo { bytes: z.chunks << self.chunk_shift, parts: z.parts.clone() })
            .collect()
    }
    fn chunks(&self) -> u64 {
        self.zones.iter().map(|z| z.chunks).sum()
    }

    /// Writes the map down (docs/formats/config.md, "stripe map").
    pub fn encode(&self, w: &mut Writer) {
        w.u8(self.chunk_shift as u8).u16(self.arrays).u16(self.zones.len() as u16);
        for zone in &self.zones {
            w.u64(zone.turns).u16(zone.parts.len() as u16);
            for p in &zone.parts {
                w.u16(p.array).u16(p.weight).u64(p.first_chunk);
            }
            w.u32(pattern_check(&zone.pattern));
        }
    }

    /// Reads what `encode` wrote, and checks all of it: a part that overlaps another, a number out of
    /// range or a pattern that this program would lay out differently is malformed.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let chunk_shift = u32::from(r.u8()?);
        if !(CHUNK_BYTES_MIN.trailing_zeros()..=CHUNK_BYTES_MAX.trailing_zeros()).contains(&chunk_shift) {
            return Err(Malformed);
        }
        let arrays = r.u16()?;
        if arrays == 0 || usize::from(arrays) > ARRAYS_MAX {
            return Err(Malformed);
        }
        let mut map = Self { chunk_shift, arrays, zones: vec![] };
        // Every array is used from its start without gaps, so the next zone of it begins where the last ended.
        let mut next = vec![0u64; usize::from(arrays)];
        for _ in 0..r.u16()? {
            let turns = r.u64()?;
            let count = r.u16()?;
            let mut parts: Vec<ArrayPart> = vec![];
            for _ in 0..count {
                let part = ArrayPart { array: r.u16()?, weight: r.u16()?, first_chunk: r.u64()? };
                let rises = parts.last().is_none_or(|p| p.array < part.array);
                if !rises || part.array >= arrays || part.weight == 0 || u32::from(part.weight) > WEIGHT_MAX {
                    return Err(Malformed);
                }
                let used = &mut next[usize::from(part.array)];
                if part.first_chunk != *used {
                    return Err(Malformed);
                }
                *used = turns
                    .checked_mul(u64::from(part.weight))
                    .and_then(|n| used.checked_add(n))
                    .ok_or(Malformed)?;
                if *used > u64::MAX >> (chunk_shift + 8) {
                    return Err(Malformed);
                }
                parts.push(part);
            }
            let sum: u32 = parts.iter().map(|p| u32::from(p.weight)).sum();
            if turns == 0 || parts.is_empty() || sum > PATTERN_MAX + ARRAYS_MAX as u32 {
                return Err(Malformed);
            }
            let zone = Zone::new(map.chunks(), turns, parts);
            if r.u32()? != pattern_check(&zone.pattern) {
                return Err(Malformed);
            }
            map.zones.push(zone);
        }
        if map.zones.is_empty() || next.contains(&0) {
            return Err(Malformed);
        }
        Ok(map)
    }
}

/// A change of the rule in `pattern.rs` would move data: this notices it before a byte is read.
fn pattern_check(pattern: &[(u16, u16)]) -> u32 {
    crc32c(&pattern.iter().flat_map(|(part, _)| part.to_le_bytes()).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    const MIB: u64 = 1 << 20;

    fn map(chunk_kib: u32, arrays: &[(u64, u32)]) -> StripeMap {
        let arrays: Vec<_> =
            arrays.iter().map(|(bytes, weight)| ArraySpace { bytes: *bytes, weight: *weight }).collect();
        StripeMap::new(chunk_kib << 10, &arrays).expect("a good map")
    }

    /// Walks the whole pool chunk by chunk and checks that it is a bijection.
    fn check(map: &StripeMap) {
        let chunk = map.chunk_bytes();
        let mut seen = vec![std::collections::BTreeSet::new(); map.arrays()];
        let mut at = 0;
        while at < map.bytes() {
            let (array, there, len) = map.locate(at);
            assert!(len >= chunk && len.is_multiple_of(chunk));
            assert!(seen[array].insert(there / chunk), "chunk {there} of array {array} is used twice");
            assert_eq!(map.locate_back(array, there).map(|(back, _)| back), Some(at));
            assert_eq!(map.locate_back(array, there + 5), Some((at + 5, map.locate(at + 5).2)));
            assert_eq!(map.locate(at + chunk - 1), (array, there + chunk - 1, len - chunk + 1));
            at += chunk;
        }
        for (array, chunks) in seen.iter().enumerate() {
            assert_eq!(chunks.len() as u64 * chunk, map.used_of(array));
            assert_eq!(chunks.last().map_or(0, |c| c + 1), chunks.len() as u64, "no gaps");
            assert_eq!(map.locate_back(array, map.used_of(array)), None);
        }
        assert_eq!(seen.iter().map(|s| s.len() as u64 * chunk).sum::<u64>(), map.bytes());
        let mut w = Writer::default();
        map.encode(&mut w);
        assert_eq!(StripeMap::decode(&mut Reader(&w.0)).as_ref(), Ok(map));
    }

    #[test]
    fn pool_space_and_array_space_are_a_bijection_whatever_the_sizes_and_weights() {
        for seed in 0..150 {
            let mut rng = Prng::new(seed);
            let some = |rng: &mut Prng| -> Vec<ArraySpace> {
                (0..rng.between(1, 6))
                    .map(|_| {
                        let weight = rng.between(1, 7) as u32;
                        ArraySpace { bytes: rng.between(u64::from(weight) << 16, 12 * MIB), weight }
                    })
                    .collect()
            };
            let first = some(&mut rng);
            let map = StripeMap::new(16 << 10 << rng.below(3), &first).expect("a good map");
            check(&map);
            let loss: u64 = first.iter().enumerate().map(|(i, a)| a.bytes - map.used_of(i)).sum();
            let bound: u64 = first.iter().map(|a| u64::from(a.weight) * map.chunk_bytes()).sum();
            assert!(loss < bound, "at most the weight in chunks of each array stays unused");
            let longer = map.append(&some(&mut rng)).expect("a good map");
            check(&longer);
            for at in (0..map.bytes()).step_by(map.chunk_bytes() as usize) {
                assert_eq!(map.locate(at), longer.locate(at), "adding arrays moves nothing");
            }
            assert_eq!(
                longer.cut(map.arrays()).as_ref(),
                Some(&map),
                "what was added can be taken off again"
            );
            assert_eq!((longer.cut(0), longer.cut(longer.arrays())), (None, None));
            for first in 1..longer.arrays() {
                let striped = |z: &Zone| {
                    z.parts.iter().any(|p| usize::from(p.array) < first)
                        && z.parts.iter().any(|p| usize::from(p.array) >= first)
                };
                assert!(longer.cut(first).is_none() || !longer.zones.iter().any(striped), "{first}");
            }
        }
    }

    #[test]
    fn a_mixed_set_gives_the_sum_of_its_members_and_its_rest_is_a_second_zone() {
        // Speeds 3:1 and sizes 2:1: the slow one is not full when the fast one is.
        let map = map(64, &[(6 * MIB, 3), (3 * MIB, 1)]);
        let zones = map.zones();
        assert_eq!(zones.iter().map(|z| z.bytes).collect::<Vec<_>>(), [8 * MIB, MIB]);
        assert_eq!(zones[1].parts, [ArrayPart { array: 1, weight: 1, first_chunk: 32 }]);
        assert_eq!(
            map.locate(8 * MIB + 7),
            (1, 2 * MIB + 7, MIB - 7),
            "a zone of one array runs in step to its end"
        );
    }

    #[test]
    fn a_map_that_cannot_be_is_refused() {
        let a = |bytes, weight| ArraySpace { bytes, weight };
        assert_eq!(StripeMap::new(65535, &[a(MIB, 1)]), Err(PoolError::Chunk(65535)));
        assert_eq!(StripeMap::new(8192, &[a(MIB, 1)]), Err(PoolError::Chunk(8192)));
        assert_eq!(StripeMap::new(8 << 20, &[a(1 << 30, 1)]), Err(PoolError::Chunk(8 << 20)));
        assert_eq!(StripeMap::new(65536, &[]), Err(PoolError::Arrays(0)));
        assert_eq!(StripeMap::new(65536, &[a(MIB, 1); 129]), Err(PoolError::Arrays(129)));
        assert_eq!(StripeMap::new(65536, &[a(MIB, 0)]), Err(PoolError::Weight { array: 0, weight: 0 }));
        assert_eq!(
            StripeMap::new(65536, &[a(MIB, 1), a(MIB, 65)]),
            Err(PoolError::Weight { array: 1, weight: 65 })
        );
        assert_eq!(StripeMap::new(65536, &[a(MIB, 1), a(100_000, 2)]), Err(PoolError::TooSmall { array: 1 }));
    }

    #[test]
    fn a_damaged_map_is_malformed_and_never_a_panic() {
        let mut w = Writer::default();
        map(16, &[(MIB, 2), (2 * MIB, 1), (MIB, 1)]).encode(&mut w);
        for cut in 0..w.0.len() {
            assert_eq!(StripeMap::decode(&mut Reader(&w.0[..cut])), Err(Malformed));
        }
        for i in 0..w.0.len() {
            for bit in 0..8 {
                let mut bytes = w.0.clone();
                bytes[i] ^= 1 << bit;
                if let Ok(map) = StripeMap::decode(&mut Reader(&bytes)) {
                    // The number of turns alone may look plausible: the record's checksum guards it.
                    assert!(map.bytes() > 0);
                }
            }
        }
    }

    #[test]
    fn a_stretch_of_the_pool_lies_on_these_ranges_of_its_arrays() {
        let map = map(64, &[(40 * MIB, 2), (24 * MIB, 1), (24 * MIB, 1), (3 * MIB, 1)]);
        let chunk = map.chunk_bytes();
        for seed in 0..200 {
            let mut rng = Prng::new(seed);
            let chunks = map.bytes() / chunk;
            let first = rng.below(chunks);
            let count = rng.between(1, chunks - first);
            let mut all = std::collections::BTreeSet::new();
            for (array, at, len) in map.ranges(first * chunk, count * chunk) {
                for at in (at..at + len).step_by(chunk as usize) {
                    assert!(all.insert((array, at)), "no chunk twice");
                }
            }
            let expected =
                (first..first + count).map(|c| map.locate(c * chunk)).map(|(array, at, _)| (array, at));
            assert_eq!(all, expected.collect());
        }
    }
}
