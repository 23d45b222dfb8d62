//! Configuration slots: docs/formats/config.md. The body is the head's; here it is bytes.

use super::{CONFIG_BYTES, Fault, Features, RECORD_BYTES, feature};
use base::crc::crc32c_append;
use base::record::{HEADER_BYTES, header, open};
use base::{Bug, planted_if};

const MAGIC: &[u8; 8] = b"MILLCONF";
const BODY_AT: usize = 64;

/// A configuration as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigSlot {
    /// Feature bits.
    pub features: Features,
    /// From 1; the newest counts.
    pub generation: u64,
    /// What the head wrote.
    pub body: Vec<u8>,
}

impl ConfigSlot {
    /// Which of the two slots it goes to.
    pub fn slot(&self) -> usize {
        (self.generation % 2) as usize
    }
    /// The same, of a pool that is being made: if every drive has it, the creation of the pool was never finished.
    pub fn unfinished(mut self) -> Self {
        self.features.incompat |= feature::UNFINISHED;
        self
    }
    /// The pool was being made as it was written.
    pub fn is_unfinished(&self) -> bool {
        self.features.incompat & feature::UNFINISHED != 0
    }
    /// The bytes to write, rounded up to 4096; None if the body does not fit a slot.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut w = header(MAGIC, self.features);
        w.u64(self.generation).u32(u32::try_from(self.body.len()).ok()?).bytes(&[0; 12]);
        let mut bytes = w.0;
        bytes.extend_from_slice(&self.body);
        if bytes.len() as u64 > CONFIG_BYTES {
            return None;
        }
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(RECORD_BYTES), 0);
        Some(bytes)
    }
    /// Reads a slot; bytes behind the body do not matter.
    pub fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let mut opened = open(MAGIC, feature::CONFIG, bytes)?;
        let generation = opened.rest.u64().map_err(|_| Fault::Damaged)?;
        let len = opened.rest.u32().map_err(|_| Fault::Damaged)? as usize;
        let whole = bytes.get(..BODY_AT.saturating_add(len)).ok_or(Fault::Damaged)?;
        let (features, _) = opened.checked(checksum(whole))?;
        if generation == 0 {
            return Err(Fault::Damaged);
        }
        Ok(Self { features, generation, body: whole[BODY_AT..].to_vec() })
    }
}

/// How many bytes of a slot must be read to decode it, from its first 4096; None if that is not one.
pub fn config_bytes(first: &[u8]) -> Option<u64> {
    open(MAGIC, feature::CONFIG, first).ok()?;
    let len = u32::from_le_bytes(first.get(48..52)?.try_into().expect("four bytes"));
    let bytes = (BODY_AT as u64 + u64::from(len)).next_multiple_of(RECORD_BYTES as u64);
    (bytes <= CONFIG_BYTES).then_some(bytes)
}

/// The newest good configuration of a drive's two slots.
pub fn newest_config(slots: [&[u8]; 2]) -> Result<ConfigSlot, Fault> {
    match slots.map(ConfigSlot::decode) {
        [Ok(a), Ok(b)] => {
            let first = (a.generation >= b.generation) != planted_if(Bug::OldConfig, || a != b);
            Ok(if first { a } else { b })
        }
        [Err(Fault::Newer(what)), _] | [_, Err(Fault::Newer(what))] => Err(Fault::Newer(what)),
        [Ok(a), Err(_)] | [Err(_), Ok(a)] => Ok(a),
        [Err(a), Err(b)] => Err(a.max(b)),
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    const _: () = assert!(HEADER_BYTES == 40 && BODY_AT == 64);
    let crc = crc32c_append(crc32c_append(0, &bytes[..12]), &[0; 4]);
    crc32c_append(crc, &bytes[16..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(generation: u64, len: usize) -> ConfigSlot {
        ConfigSlot { features: Features::default(), generation, body: vec![generation as u8 + 1; len] }
    }

    #[test]
    fn a_write_torn_at_any_byte_leaves_the_old_or_the_new_configuration() {
        for (older, old, new) in [(9000, 5000, 6000), (10, 20, 30), (3, 9000, 4032)] {
            let (older, old, new) = (slot(1, older), slot(2, old), slot(3, new));
            let (before, after) = (older.encode().expect("fits"), new.encode().expect("fits"));
            let other = old.encode().expect("fits");
            for cut in 0..=after.len() {
                let mut torn = before.clone();
                torn.resize(before.len().max(after.len()), 0);
                torn[..cut].copy_from_slice(&after[..cut]);
                let found = newest_config([&other, &torn]).expect("one of them");
                assert!(found == old || found == new, "cut at {cut}");
                assert_eq!(found == new, cut >= 64 + new.body.len() || torn[..] == after[..], "cut at {cut}");
            }
        }
    }

    #[test]
    fn the_length_to_read_is_known_from_the_first_block() {
        let bytes = slot(1, 9000).encode().expect("fits");
        assert_eq!(config_bytes(&bytes[..4096]), Some(bytes.len() as u64));
        assert_eq!(config_bytes(&[0; 4096]), None);
        let mut huge = bytes.clone();
        huge[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(config_bytes(&huge[..4096]), None);
        assert_eq!(ConfigSlot::decode(&huge), Err(Fault::Damaged));
        assert_eq!(ConfigSlot::decode(&bytes[..70]), Err(Fault::Damaged));
    }

    #[test]
    fn a_configuration_that_does_not_fit_is_not_written() {
        assert_eq!(slot(1, CONFIG_BYTES as usize - 63).encode(), None);
        assert!(slot(1, CONFIG_BYTES as usize - 64).encode().is_some());
    }
}
