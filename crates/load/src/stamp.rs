//! Stamps: what verified load writes, so that a read shows whose data it is.
//!
//! Every 512 bytes begin with a 32-byte stamp; the other 480 bytes repeat one word derived from it. So
//! each sector identifies which block, which version and which run it belongs to, a torn or
//! misplaced write is seen at sector grain, and no byte is left unchecked.

use base::crc::crc32c;

/// Bytes covered by one stamp; volume blocks are multiples of it.
pub const SECTOR: usize = 512;
const STAMP: usize = 32;
const _: () = assert!(SECTOR.is_multiple_of(STAMP));
const MAGIC: u32 = u32::from_le_bytes(*b"mrst");

/// What a stamp says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The run.
    pub seed: u64,
    /// The sector's number: its byte offset in the volume / 512.
    pub sector: u64,
    /// Counts the writes of this place, from 1.
    pub version: u64,
}

/// What was wrong with a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// All zeroes where written data was expected.
    Zeroes,
    /// A whole stamp that is not the expected one: an old version, another place, another run.
    Other(Stamp),
    /// The expected stamp, but the bytes after it are not the ones that belong to it.
    Body,
    /// No stamp at all.
    Garbage,
}

impl Stamp {
    fn head(&self) -> [u8; STAMP] {
        let mut h = [0; STAMP];
        h[..4].copy_from_slice(&MAGIC.to_le_bytes());
        h[8..16].copy_from_slice(&self.seed.to_le_bytes());
        h[16..24].copy_from_slice(&self.sector.to_le_bytes());
        h[24..].copy_from_slice(&self.version.to_le_bytes());
        let crc = crc32c(&h[8..]);
        h[4..8].copy_from_slice(&crc.to_le_bytes());
        h
    }
    /// What the rest of the sector repeats: one word four times, so that it is moved in large steps.
    fn body(&self) -> [u8; STAMP] {
        let mut x = self.seed ^ self.sector.rotate_left(32) ^ self.version;
        x = (x ^ (x >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (x ^ (x >> 29)).to_le_bytes();
        core::array::from_fn(|i| word[i % 8])
    }
    /// Reads the stamp at the beginning of a sector, if there is one.
    pub fn read(sector: &[u8]) -> Option<Stamp> {
        let word = |at: usize| Some(u64::from_le_bytes(sector.get(at..at + 8)?.try_into().ok()?));
        let (first, s) = (word(0)?, Stamp { seed: word(8)?, sector: word(16)?, version: word(24)? });
        let want = u64::from(crc32c(&sector[8..STAMP])) << 32 | u64::from(MAGIC);
        (first == want).then_some(s)
    }
}

/// Fills `data`, which will lie at byte `at` of the volume, with stamps. Both are multiples of 512.
pub fn fill(data: &mut [u8], at: u64, seed: u64, version: u64) {
    for (i, sector) in data.chunks_exact_mut(SECTOR).enumerate() {
        let stamp = Stamp { seed, sector: at / SECTOR as u64 + i as u64, version };
        sector[..STAMP].copy_from_slice(&stamp.head());
        sector[STAMP..2 * STAMP].copy_from_slice(&stamp.body());
        // Doubling what is there already moves it in few large steps.
        let mut have = STAMP;
        while have < SECTOR - STAMP {
            let n = have.min(SECTOR - STAMP - have);
            sector.copy_within(STAMP..STAMP + n, STAMP + have);
            have += n;
        }
    }
}

/// Checks `data`, read from byte `at` of the volume, against what `fill` wrote there; the error names
/// the byte offset in the volume of the first wrong sector.
pub fn check(data: &[u8], at: u64, seed: u64, version: u64) -> Result<(), (u64, Mismatch)> {
    for (i, sector) in data.chunks_exact(SECTOR).enumerate() {
        let stamp = Stamp { seed, sector: at / SECTOR as u64 + i as u64, version };
        let head_good = sector[..STAMP] == stamp.head();
        // The body repeats itself if it equals itself one step further on.
        let body_good =
            sector[STAMP..2 * STAMP] == stamp.body() && sector[STAMP..SECTOR - STAMP] == sector[2 * STAMP..];
        if head_good && body_good {
            continue;
        }
        let wrong = match Stamp::read(sector) {
            Some(_) if head_good => Mismatch::Body,
            Some(other) => Mismatch::Other(other),
            None if sector.iter().all(|b| *b == 0) => Mismatch::Zeroes,
            None => Mismatch::Garbage,
        };
        return Err((at + (i * SECTOR) as u64, wrong));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_changed_byte_is_seen() {
        let mut data = [0; 1024];
        fill(&mut data, 4096, 7, 3);
        assert_eq!(check(&data, 4096, 7, 3), Ok(()));
        for i in 0..data.len() {
            data[i] ^= 0x20;
            let (at, _) = check(&data, 4096, 7, 3).unwrap_err();
            assert_eq!(at, 4096 + (i as u64 & !511));
            data[i] ^= 0x20;
        }
    }

    #[test]
    fn a_mismatch_says_whose_data_it_is() {
        let mut data = [0; 1024];
        assert_eq!(check(&data, 0, 7, 1), Err((0, Mismatch::Zeroes)));
        fill(&mut data, 8192, 7, 4);
        let (at, wrong) = check(&data, 8192, 7, 5).unwrap_err();
        assert_eq!((at, wrong), (8192, Mismatch::Other(Stamp { seed: 7, sector: 16, version: 4 })));
        data[600] ^= 1;
        assert_eq!(check(&data, 8192, 7, 4), Err((8704, Mismatch::Body)));
        data[3] ^= 1;
        assert_eq!(check(&data, 8192, 7, 4), Err((8192, Mismatch::Garbage)));
    }
}
