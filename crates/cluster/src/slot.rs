//! A head's block on a voter: docs/formats/system.md, "Slot".

use crate::record::{HeadNo, SystemRecord};
use base::Uuid;
use base::record::{Fault, Features, checksum, header, open, seal};

const MAGIC: &[u8; 8] = b"MILLSLOT";
/// Bytes of a block.
pub const SLOT_BYTES: usize = 4096;
/// Where the two places of a head's blocks lie on a voter drive.
pub const SLOTS_AT: [[u64; 2]; 2] = {
    let at = 3 << 20;
    [[at, at + 4096], [at + 8192, at + 12288]]
};

/// What a head has promised and accepted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    /// Whose it is.
    pub head: HeadNo,
    /// Random name of the process that wrote it.
    pub life: u64,
    /// Which of the two places is newer, and which is written next.
    pub sequence: u64,
    /// The highest ballot that it has begun in the epoch behind `decided`; 0: none.
    pub promised: u64,
    /// What was decided last, as far as it knew.
    pub decided: SystemRecord,
    /// The ballot in which it accepted a record of the next epoch, and that record.
    pub accepted: Option<(u64, SystemRecord)>,
}

impl Slot {
    /// The epoch that is being decided.
    pub fn epoch(&self) -> u64 {
        self.decided.epoch + 1
    }
    /// Which of its two places it goes to.
    pub fn place(&self) -> usize {
        (self.sequence % 2) as usize
    }
    /// The 4096 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let decided = self.decided.to_bytes();
        let (ballot, value) = match &self.accepted {
            Some((ballot, value)) => (*ballot, value.to_bytes()),
            None => (0, vec![]),
        };
        let mut w = header(MAGIC, Features::default());
        w.bytes(&self.decided.system.0).u8(self.head as u8).bytes(&[0; 7]);
        w.u64(self.life).u64(self.sequence).u64(self.epoch()).u64(self.promised).u64(ballot);
        w.u16(decided.len() as u16).u16(value.len() as u16).bytes(&decided).bytes(&value);
        let mut bytes = w.0;
        assert!(bytes.len() <= SLOT_BYTES, "two records fit");
        bytes.resize(SLOT_BYTES, 0);
        seal(&mut bytes);
        bytes
    }
    /// Reads a block of a head.
    ///
    /// # Errors
    /// There is none, it is damaged (a write may have been torn), or of a newer program.
    pub fn decode(head: HeadNo, bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.len() != SLOT_BYTES {
            return Err(Fault::Damaged);
        }
        let opened = open(MAGIC, 0, bytes)?;
        let (features, mut r) = opened.checked(checksum(bytes))?;
        // To vote is to write.
        features.forbids_writing().map_or(Ok(()), |newer| Err(Fault::Newer(newer)))?;
        let mut fields = || {
            let system = Uuid(r.array()?);
            let (number, _) = (r.u8()?, r.bytes(7)?);
            let (life, sequence, epoch, promised, ballot) =
                (r.u64()?, r.u64()?, r.u64()?, r.u64()?, r.u64()?);
            let (decided, value) = (usize::from(r.u16()?), usize::from(r.u16()?));
            let decided = SystemRecord::from_bytes(r.bytes(decided)?)?;
            let value = match value {
                0 => None,
                n => Some(SystemRecord::from_bytes(r.bytes(n)?)?),
            };
            let accepted = value.map(|v| (ballot, v));
            Ok((system, number, epoch, ballot, Self { head, life, sequence, promised, decided, accepted }))
        };
        let (system, number, epoch, ballot, slot) =
            fields().map_err(|_: base::codec::Malformed| Fault::Damaged)?;
        let one_system = |r: &SystemRecord| r.system == system;
        let good = number == head as u8
            && slot.life != 0
            && epoch == slot.epoch()
            && one_system(&slot.decided)
            && ballot <= slot.promised
            && (ballot == 0) == slot.accepted.is_none()
            && slot.accepted.iter().all(|(_, v)| v.epoch == epoch && one_system(v));
        if good { Ok(slot) } else { Err(Fault::Damaged) }
    }
}

/// The newer of a head's two places. A damaged one is a write that was torn, and was never counted; None: both are empty.
///
/// # Errors
/// Neither can be read, or one is from a newer program.
pub fn newest(places: [Result<Slot, Fault>; 2]) -> Result<Option<Slot>, Fault> {
    match places {
        [Ok(a), Ok(b)] => Ok(Some(if a.sequence > b.sequence { a } else { b })),
        [Err(Fault::Newer(what)), _] | [_, Err(Fault::Newer(what))] => Err(Fault::Newer(what)),
        [Ok(one), _] | [_, Ok(one)] => Ok(Some(one)),
        [Err(Fault::Damaged), Err(Fault::Damaged)] => Err(Fault::Damaged),
        // The very first one was torn.
        [Err(_), Err(_)] => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn slot(sequence: u64) -> Slot {
        let accepted = Some((3, record(6)));
        Slot { head: HeadNo::B, life: 9, sequence, promised: 5, decided: record(5), accepted }
    }

    #[test]
    fn a_block_is_read_as_it_was_written_and_any_other_byte_is_damage() {
        let bytes = slot(4).encode();
        assert_eq!(Slot::decode(HeadNo::B, &bytes), Ok(slot(4)));
        let free = Slot { accepted: None, promised: 0, ..slot(4) };
        assert_eq!(Slot::decode(HeadNo::B, &free.encode()), Ok(free));
        assert_eq!(Slot::decode(HeadNo::A, &bytes), Err(Fault::Damaged), "another head's");
        assert_eq!(Slot::decode(HeadNo::B, &[0; SLOT_BYTES]), Err(Fault::Absent));
        for at in 8..SLOT_BYTES {
            let mut rotten = bytes.clone();
            rotten[at] ^= 1;
            assert_eq!(Slot::decode(HeadNo::B, &rotten), Err(Fault::Damaged), "byte {at}");
        }
    }

    #[test]
    fn fields_that_contradict_each_other_are_damage() {
        let other = |change: &dyn Fn(&mut Slot)| {
            let mut s = slot(4);
            change(&mut s);
            Slot::decode(HeadNo::B, &s.encode()).is_err()
        };
        assert!(other(&|s| s.life = 0), "nobody wrote it");
        assert!(other(&|s| s.promised = 2), "accepted what it has not begun");
        assert!(other(&|s| s.accepted = Some((3, record(7)))), "accepted for another epoch");
        assert!(other(&|s| s.accepted = Some((0, record(6)))), "accepted in no ballot");
        assert!(other(&|s| s.accepted.as_mut().expect("some").1.system = Uuid([1; 16])), "of another system");
    }

    #[test]
    fn a_block_with_features_that_forbid_to_read_or_to_write_is_no_vote() {
        let with = |word: usize| {
            let mut bytes = slot(4).encode();
            bytes[16 + 8 * word + 7] = 0x80;
            seal(&mut bytes);
            Slot::decode(HeadNo::B, &bytes)
        };
        use base::record::Newer::{Incompat, RoCompat};
        assert_eq!(with(0), Ok(slot(4)));
        assert_eq!(with(1), Err(Fault::Newer(RoCompat(1 << 63))));
        assert_eq!(with(2), Err(Fault::Newer(Incompat(1 << 63))));
    }

    #[test]
    fn a_torn_write_leaves_the_place_before_it() {
        let (old, new) = (Ok(slot(4)), Ok(slot(5)));
        assert_eq!(newest([old.clone(), new.clone()]), Ok(Some(slot(5))));
        assert_eq!(newest([new, old.clone()]), Ok(Some(slot(5))));
        assert_eq!(newest([old.clone(), Err(Fault::Damaged)]), Ok(Some(slot(4))));
        assert_eq!(newest([Err(Fault::Absent), old]), Ok(Some(slot(4))));
        assert_eq!(newest([Err(Fault::Absent), Err(Fault::Absent)]), Ok(None));
        assert_eq!(newest([Err(Fault::Damaged), Err(Fault::Absent)]), Ok(None));
        assert_eq!(newest([Err(Fault::Damaged), Err(Fault::Damaged)]), Err(Fault::Damaged));
        let newer = Err(Fault::Newer(base::record::Newer::Incompat(1)));
        assert_eq!(newest([Ok(slot(4)), newer.clone()]), newer.map(Some));
    }
}
