//! Volume: carves block devices out of pool space, and keeps what makes each one itself for life.
//!
//! Owns the volume map (runs of pool space, thick), identities, names, sizes, block sizes, caps and weights.
//! Promise: a byte of a volume lies at one byte of pool space, two volumes never share one, and identifiers do
//! not change with name or size. Does not know hosts, arrays or drives, nor who gave it the space.

mod catalogue;
mod map;
mod share;

pub use catalogue::{Catalogue, Volume};
pub use map::{Map, Run};
pub use share::{Caps, WEIGHT, WEIGHTS};

use base::Uuid;
use finding::VolumeRefusal;

/// Pool space is given to volumes in pieces of this many bytes.
pub const GRANULE_BYTES: u64 = 4 << 20;
/// Largest volume, bytes: 1 EiB keeps every sum of offsets far from overflow.
pub const BYTES_MAX: u64 = 1 << 60;
/// Most volumes of a pool.
pub const VOLUMES_MAX: usize = 1024;
/// Most runs of one volume.
pub const RUNS_MAX: usize = 4096;
/// Most bytes of a name.
pub const NAME_MAX: usize = 63;

/// A name of a volume, pool or host: 1 to 63 characters of a-z A-Z 0-9 . _ - that begin with a letter or
/// digit (so that a name is never an option, a path or two words).
pub fn check_name(name: &str) -> Result<(), VolumeRefusal> {
    let good = (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        && name.as_bytes()[0].is_ascii_alphanumeric();
    if good {
        Ok(())
    } else {
        Err(VolumeRefusal::VolumeNameInvalid { name: name.chars().take(NAME_MAX + 1).collect() })
    }
}

/// A size that a volume of this block size can have.
pub fn check_size(bytes: u64, block_bytes: u32) -> Result<(), VolumeRefusal> {
    match bytes {
        0 => Err(VolumeRefusal::SizeZero),
        n if n > BYTES_MAX => Err(VolumeRefusal::SizeTooLarge { bytes }),
        n if !n.is_multiple_of(u64::from(block_bytes)) => {
            Err(VolumeRefusal::SizeNotAligned { bytes, block_bytes })
        }
        _ => Ok(()),
    }
}

/// A block size that a volume on drives with this smallest write can have: no read-modify-write below us.
pub fn check_block(block_bytes: u32, drive_block_bytes: u32) -> Result<(), VolumeRefusal> {
    match block_bytes {
        512 if drive_block_bytes > 512 => Err(VolumeRefusal::BlockTooSmall { drive_block_bytes }),
        512 | 4096 => Ok(()),
        _ => Err(VolumeRefusal::BlockSizeInvalid { block_bytes }),
    }
}

/// The NVMe identity of a volume: its UUID's bytes.
pub fn nguid(uuid: Uuid) -> [u8; 16] {
    uuid.0
}

/// The SCSI identity of a volume: an NAA designator. Without an OUI it is of type 3 (locally assigned,
/// SPC-4 7.8.6.6.4): 8 bytes, the 60 bits after the type are random bits of the UUID; the other 8 bytes
/// are zero and not part of the designator.
pub fn naa(uuid: Uuid) -> [u8; 16] {
    let mut out = [0; 16];
    // Not bytes 6 and 8 of the UUID: version and variant are the same in every one (RFC 9562 4.1, 4.2).
    out[0] = 0x30 | uuid.0[0] & 0x0f;
    out[1..8].copy_from_slice(&uuid.0[9..16]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sizes_and_block_sizes_are_checked() {
        for good in ["a", "vm1", "0.x_Y-z", &"n".repeat(63)] {
            assert_eq!(check_name(good), Ok(()));
        }
        for bad in ["", "-x", ".x", "a/b", "a b", "ä", "a\n", &"n".repeat(64)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert_eq!(check_size(0, 512), Err(VolumeRefusal::SizeZero));
        assert_eq!(check_size(u64::MAX, 512), Err(VolumeRefusal::SizeTooLarge { bytes: u64::MAX }));
        assert_eq!(
            check_size(4096 + 512, 4096),
            Err(VolumeRefusal::SizeNotAligned { bytes: 4608, block_bytes: 4096 })
        );
        assert_eq!(check_size(4096 + 512, 512), Ok(()));
        assert_eq!(check_block(512, 512), Ok(()));
        assert_eq!(check_block(512, 4096), Err(VolumeRefusal::BlockTooSmall { drive_block_bytes: 4096 }));
        assert_eq!(check_block(1024, 512), Err(VolumeRefusal::BlockSizeInvalid { block_bytes: 1024 }));
        assert_eq!(VolumeRefusal::SizeZero.field(), "bytes");
    }

    #[test]
    fn identities_differ_with_the_uuid_and_say_their_type() {
        let (a, b) = (Uuid::from_random(1, 2), Uuid::from_random(1, 3));
        assert_eq!(naa(a)[0] >> 4, 3);
        assert_ne!(naa(a), naa(b));
        assert_eq!(naa(a)[8..], [0; 8]);
        assert_eq!(nguid(a), a.0);
    }
}
