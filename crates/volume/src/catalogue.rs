//! The volumes of one pool, as they are written down.

use crate::{BYTES_MAX, GRANULE_BYTES, Map, VOLUMES_MAX, check_block, check_name, check_size};
use base::Uuid;
use base::codec::{Malformed, Reader, Writer};
use finding::VolumeRefusal;

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Volume {
    /// For life.
    pub uuid: Uuid,
    /// For life; see `crate::naa`.
    pub naa: [u8; 16],
    /// Name within the pool.
    pub name: String,
    /// 512 or 4096, for life.
    pub block_bytes: u32,
    /// Size; the map covers it.
    pub bytes: u64,
    /// Where it lies.
    pub map: Map,
}

impl Volume {
    /// Granules that a volume of `bytes` bytes takes.
    pub fn granules_for(bytes: u64) -> u64 {
        bytes.div_ceil(GRANULE_BYTES)
    }
    /// Where the part of its last granule that lies behind its end is in the pool's space: first byte and length. None if its
    /// end is a granule's.
    pub fn tail(&self) -> Option<(u64, u64)> {
        let last = self.map.runs().last()?;
        let end = (last.first + last.count) * GRANULE_BYTES;
        let len = self.map.granules() * GRANULE_BYTES - self.bytes;
        (len > 0).then(|| (end - len, len))
    }
    /// The NVMe identity.
    pub fn nguid(&self) -> [u8; 16] {
        crate::nguid(self.uuid)
    }
}

/// The volumes of one pool, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Catalogue {
    volumes: Vec<Volume>,
}

impl Catalogue {
    /// All volumes, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Volume> {
        self.volumes.iter()
    }
    /// The volume of this name.
    pub fn by_name(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|v| v.name == name)
    }
    /// The volume with this identity.
    pub fn by_uuid(&self, uuid: Uuid) -> Option<&Volume> {
        self.volumes.iter().find(|v| v.uuid == uuid)
    }
    /// Whether a volume could be made so; what its granules cost is for the pool to say.
    pub fn check_new(
        &self,
        name: &str,
        bytes: u64,
        block_bytes: u32,
        drive_block_bytes: u32,
    ) -> Result<(), VolumeRefusal> {
        check_name(name)?;
        check_block(block_bytes, drive_block_bytes)?;
        check_size(bytes, block_bytes)?;
        self.check_free(name)?;
        if self.volumes.len() >= VOLUMES_MAX {
            Err(VolumeRefusal::TooManyVolumes { volumes_max: VOLUMES_MAX })
        } else {
            Ok(())
        }
    }
    /// Whether the name is free.
    pub fn check_free(&self, name: &str) -> Result<(), VolumeRefusal> {
        check_name(name)?;
        if self.by_name(name).is_some() {
            Err(VolumeRefusal::VolumeNameTaken { name: name.to_string() })
        } else {
            Ok(())
        }
    }
    /// Adds a volume, or puts another in the place of the one with its UUID. Panics if another volume
    /// has the name: `check_free` comes first.
    pub fn put(&mut self, volume: Volume) {
        assert!(volume.map.granules() >= Volume::granules_for(volume.bytes), "a map covers its volume");
        self.remove(volume.uuid);
        assert!(self.by_name(&volume.name).is_none(), "names are unique");
        let i = self.volumes.partition_point(|v| v.name < volume.name);
        self.volumes.insert(i, volume);
    }
    /// Takes a volume out.
    pub fn remove(&mut self, uuid: Uuid) -> Option<Volume> {
        let i = self.volumes.iter().position(|v| v.uuid == uuid)?;
        Some(self.volumes.remove(i))
    }
    /// Writes all volumes down (docs/formats/config.md, "volumes").
    pub fn encode(&self, w: &mut Writer) {
        w.u16(self.volumes.len() as u16);
        for v in &self.volumes {
            w.bytes(&v.uuid.0).bytes(&v.naa).text(&v.name).u32(v.block_bytes).u64(v.bytes);
            v.map.encode(w);
        }
    }
    /// Reads what `encode` wrote; duplicates, bad names, sizes and maps that are too short are malformed.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut out = Self::default();
        for _ in 0..r.u16()? {
            let volume = Volume {
                uuid: Uuid(r.array()?),
                naa: r.array()?,
                name: r.text()?,
                block_bytes: r.u32()?,
                bytes: r.u64()?,
                map: Map::decode(r)?,
            };
            let size_is_good =
                volume.bytes <= BYTES_MAX && volume.map.granules() >= Volume::granules_for(volume.bytes);
            if out.check_new(&volume.name, volume.bytes, volume.block_bytes, 512).is_err()
                || out.by_uuid(volume.uuid).is_some()
                || !size_is_good
            {
                return Err(Malformed);
            }
            out.put(volume);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    fn volume(name: &str, n: u64, bytes: u64) -> Volume {
        let uuid = Uuid::from_random(n, n);
        let runs = [Run { first: n * 100, count: Volume::granules_for(bytes) }];
        let map = Map::new(&runs).expect("a good map");
        Volume { uuid, naa: crate::naa(uuid), name: name.into(), block_bytes: 4096, bytes, map }
    }

    #[test]
    fn a_catalogue_survives_being_written_and_any_cut_is_noticed() {
        let mut c = Catalogue::default();
        c.put(volume("b", 1, 4096));
        c.put(volume("a", 2, 9 << 20));
        c.put(Volume { bytes: 5 << 20, ..volume("a", 2, 9 << 20) });
        assert_eq!(c.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let mut w = Writer::default();
        c.encode(&mut w);
        assert_eq!(Catalogue::decode(&mut Reader(&w.0)), Ok(c));
        for cut in 0..w.0.len() {
            assert_eq!(Catalogue::decode(&mut Reader(&w.0[..cut])), Err(Malformed));
        }
    }

    #[test]
    fn bad_records_are_malformed() {
        let encode = |volumes: &[Volume]| {
            let mut w = Writer::default();
            Catalogue { volumes: volumes.to_vec() }.encode(&mut w);
            Catalogue::decode(&mut Reader(&w.0))
        };
        assert_eq!(encode(&[volume("a", 1, 4096), volume("a", 2, 4096)]), Err(Malformed), "name twice");
        assert_eq!(encode(&[volume("a", 1, 4096), volume("b", 1, 4096)]), Err(Malformed), "identity twice");
        assert_eq!(
            encode(&[Volume { bytes: 5 << 20, ..volume("a", 1, 4096) }]),
            Err(Malformed),
            "map too short"
        );
        assert_eq!(encode(&[Volume { block_bytes: 1024, ..volume("a", 1, 4096) }]), Err(Malformed));
        assert_eq!(encode(&[volume("a/b", 1, 4096)]), Err(Malformed));
    }

    #[test]
    fn what_cannot_be_made_says_which_field() {
        let mut c = Catalogue::default();
        c.put(volume("a", 1, 4096));
        let field =
            |name: &str, bytes, block, drive| c.check_new(name, bytes, block, drive).map_err(|e| e.field());
        assert_eq!(field("b", 4096, 4096, 4096), Ok(()));
        assert_eq!(field("a", 4096, 4096, 512), Err("name"));
        assert_eq!(field("", 4096, 4096, 512), Err("name"));
        assert_eq!(field("b", 0, 4096, 512), Err("bytes"));
        assert_eq!(field("b", u64::MAX, 4096, 512), Err("bytes"));
        assert_eq!(field("b", 4095, 4096, 512), Err("bytes"));
        assert_eq!(field("b", 512, 512, 4096), Err("block_bytes"));
        assert_eq!(field("b", 4096, 520, 512), Err("block_bytes"));
    }
}
