//! The label: docs/formats/label.md.

use super::{
    ALIGNMENT, BITMAP_AT, CONFIG_AT, CONFIG_BYTES, Fault, Features, MEMBERSHIP_AT, RECORD_BYTES, feature,
    tail_at,
};
use base::Uuid;
use base::codec::Malformed;
use base::record::{checksum, header, open, seal};

const MAGIC: &[u8; 8] = b"MILLRACE";

/// Whose a drive is, and where things lie on it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Label {
    /// Feature bits.
    pub features: Features,
    /// The pool.
    pub pool: Uuid,
    /// The drive's own name.
    pub drive: Uuid,
    /// Size of the drive when it was labelled, bytes.
    pub drive_bytes: u64,
    /// Index of its array in the pool.
    pub array: u32,
    /// Index of its leg in the array.
    pub leg: u32,
    /// Legs of the array.
    pub legs: u32,
    /// Smallest write of the drive, bytes.
    pub block_bytes: u32,
    /// Membership slots.
    pub membership_at: [u64; 2],
    /// Configuration slots.
    pub config_at: [u64; 2],
    /// Bytes of a configuration slot.
    pub config_bytes: u32,
    /// Bytes of one bitmap.
    pub bitmap_bytes: u32,
    /// Bitmaps, one per head.
    pub bitmap_at: [u64; 2],
    /// Data.
    pub data_at: u64,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes of data that one bit of a bitmap stands for.
    pub region_bytes: u64,
    /// When, seconds since 1970-01-01 UTC.
    pub created: u64,
    /// The pool's name then.
    pub pool_name: String,
}

impl Label {
    /// A label with everything in its usual place; identity and data are the caller's to fill in.
    pub fn usual(drive_bytes: u64) -> Self {
        Self {
            drive_bytes,
            membership_at: MEMBERSHIP_AT,
            config_at: CONFIG_AT,
            config_bytes: CONFIG_BYTES as u32,
            bitmap_at: [BITMAP_AT, BITMAP_AT],
            ..Self::default()
        }
    }
    /// The 4096 bytes.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.is_sound(), "a label that nobody would read");
        let mut w = header(MAGIC, self.features);
        w.bytes(&self.pool.0).bytes(&self.drive.0).u64(self.drive_bytes);
        w.u32(self.array).u32(self.leg).u32(self.legs).u32(self.block_bytes);
        w.u64(self.membership_at[0]).u64(self.membership_at[1]).u64(self.config_at[0]).u64(self.config_at[1]);
        w.u32(self.config_bytes).u32(self.bitmap_bytes).u64(self.bitmap_at[0]).u64(self.bitmap_at[1]);
        w.u64(self.data_at)
            .u64(self.data_bytes)
            .u64(self.region_bytes)
            .u64(self.created)
            .text(&self.pool_name);
        let mut bytes = w.0;
        bytes.resize(RECORD_BYTES, 0);
        seal(&mut bytes);
        bytes
    }
    /// Reads one copy.
    pub fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let opened = open(MAGIC, feature::SPARE, bytes)?;
        if bytes.len() != RECORD_BYTES {
            return Err(Fault::Damaged);
        }
        let (features, r) = opened.checked(checksum(bytes))?;
        let label = Self::fields(features, r).map_err(|_| Fault::Damaged)?;
        if label.is_sound() { Ok(label) } else { Err(Fault::Damaged) }
    }
    fn fields(features: Features, mut r: base::codec::Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            features,
            pool: Uuid(r.array()?),
            drive: Uuid(r.array()?),
            drive_bytes: r.u64()?,
            array: r.u32()?,
            leg: r.u32()?,
            legs: r.u32()?,
            block_bytes: r.u32()?,
            membership_at: [r.u64()?, r.u64()?],
            config_at: [r.u64()?, r.u64()?],
            config_bytes: r.u32()?,
            bitmap_bytes: r.u32()?,
            bitmap_at: [r.u64()?, r.u64()?],
            data_at: r.u64()?,
            data_bytes: r.u64()?,
            region_bytes: r.u64()?,
            created: r.u64()?,
            pool_name: r.text()?,
        })
    }
    /// Everything lies on the drive, in order, without overlaps.
    fn is_sound(&self) -> bool {
        let record = RECORD_BYTES as u64;
        let mut ranges = vec![
            (record, record),
            (self.membership_at[0], record),
            (self.membership_at[1], record),
            (self.config_at[0], u64::from(self.config_bytes)),
            (self.config_at[1], u64::from(self.config_bytes)),
            (self.data_at, self.data_bytes),
            (tail_at(self.drive_bytes), ALIGNMENT),
        ];
        if self.bitmap_bytes > 0 {
            ranges.extend(self.bitmap_at.map(|at| (at, u64::from(self.bitmap_bytes))));
        }
        ranges.sort_unstable();
        let mut end = record;
        let in_order = ranges.iter().all(|(at, len)| {
            let starts_after = *at >= end && at.is_multiple_of(record);
            end = at.saturating_add(*len);
            starts_after
        });
        in_order
            && end <= self.drive_bytes
            && self.data_bytes > 0
            && self.legs >= 1
            && self.leg < self.legs
            && matches!(self.block_bytes, 512 | 4096)
            && !self.pool.is_nil()
            && !self.drive.is_nil()
            && self.pool_name.len() <= 255
    }
}

/// Which label a drive carries, from both copies. `Damaged` if some copy was one of ours and none is good.
pub fn newest_label(first: &[u8], second: &[u8]) -> Result<Label, Fault> {
    match (Label::decode(first), Label::decode(second)) {
        (Ok(label), _) => Ok(label),
        // A newer program's label in front is not overruled by an older copy behind it.
        (Err(Fault::Newer(what)), _) => Err(Fault::Newer(what)),
        (Err(_), Ok(label)) => Ok(label),
        (Err(a), Err(b)) => Err(a.max(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Newer;

    fn label() -> Label {
        Label {
            pool: Uuid::from_random(1, 1),
            drive: Uuid::from_random(2, 2),
            legs: 2,
            leg: 1,
            block_bytes: 512,
            bitmap_bytes: 8192,
            bitmap_at: [BITMAP_AT, BITMAP_AT + 8192],
            data_at: 5 << 20,
            data_bytes: 50 << 20,
            region_bytes: 4 << 20,
            created: 7,
            pool_name: "tank".into(),
            ..Label::usual(64 << 20)
        }
    }

    #[test]
    fn a_label_survives_and_every_changed_bit_is_noticed() {
        let bytes = label().encode();
        assert_eq!(bytes.len(), RECORD_BYTES);
        assert_eq!(Label::decode(&bytes), Ok(label()));
        for i in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[i] ^= 1;
            assert!(Label::decode(&bad).is_err(), "byte {i}");
        }
    }

    #[test]
    fn a_second_copy_helps_and_none_is_distinguished_from_damaged() {
        let (good, none) = (label().encode(), vec![0; RECORD_BYTES]);
        let mut bad = good.clone();
        bad[100] ^= 1;
        assert_eq!(newest_label(&bad, &good), Ok(label()));
        assert_eq!(newest_label(&none, &good), Ok(label()));
        assert_eq!(newest_label(&good, &none), Ok(label()));
        assert_eq!(newest_label(&none, &none), Err(Fault::Absent));
        assert_eq!(newest_label(&none, &bad), Err(Fault::Damaged));
        assert_eq!(newest_label(&[], &[]), Err(Fault::Absent));
    }

    #[test]
    fn a_newer_programs_label_is_not_read_but_named() {
        let mut newer = label();
        newer.features.incompat = 4;
        let unknown = Err(Fault::Newer(Newer::Incompat(4)));
        assert_eq!(Label::decode(&newer.encode()), unknown);
        assert_eq!(newest_label(&newer.encode(), &label().encode()), unknown);
        let mut version = label().encode();
        version[8] = 2;
        assert_eq!(
            Label::decode(&version),
            Err(Fault::Damaged),
            "a bit rotted, or it would have its checksum"
        );
        assert_eq!(newest_label(&version, &label().encode()), Ok(label()));
        seal(&mut version);
        assert_eq!(Label::decode(&version), Err(Fault::Newer(Newer::Version(2))));
    }

    #[test]
    fn offsets_that_overlap_or_lie_outside_are_damage() {
        for change in [
            |l: &mut Label| l.data_at = 4 << 20,
            |l: &mut Label| l.data_bytes = 60 << 20,
            |l: &mut Label| l.data_bytes = u64::MAX,
            |l: &mut Label| l.config_at = [1 << 20, 1 << 20],
            |l: &mut Label| l.membership_at = [4096, 8192],
            |l: &mut Label| l.leg = 2,
            |l: &mut Label| l.block_bytes = 520,
            |l: &mut Label| l.drive = Uuid::default(),
        ] {
            let mut l = label();
            change(&mut l);
            assert!(!l.is_sound());
        }
    }
}
