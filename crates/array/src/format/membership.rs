//! The membership record: docs/formats/membership.md.

use super::{ARRAYS_MAX, DRIVES_MAX, Fault, Features, RECORD_BYTES, RECORD_LEGS_MAX};
use base::Uuid;
use base::codec::{Malformed, Reader};
use base::record::{HEADER_BYTES, checksum, header, open, seal};

const MAGIC: &[u8; 8] = b"MILLMEMB";
/// Ancestors that a record names.
const ANCESTORS: usize = 32;
/// The longest reach of a leg; no record names so many ancestors.
const REACH_MAX: u8 = u8::MAX;

/// A record's random name; never 0.
pub type Incarnation = u64;

/// What a leg is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LegState {
    /// Failed or missing: it lacks what the others' bitmaps say.
    Out,
    /// The same, and put out by this very record: the one before had it in sync. Whether this record was
    /// completed is known only once there is a next one (which says `Out`).
    JustOut,
    /// It has every acknowledged write.
    InSync,
    /// It is written to and not read; it lacks what the bitmaps say.
    Rebuilding,
    /// The same for a drive that lacks everything, whatever the bitmaps say.
    RebuildingFull,
}

impl LegState {
    /// Whether the leg is out: nothing is written to it.
    pub fn is_out(self) -> bool {
        matches!(self, Self::Out | Self::JustOut)
    }
}

/// A leg in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberLeg {
    /// The drive.
    pub drive: Uuid,
    /// What it is.
    pub state: LegState,
    /// Of a leg that is out: how many records before this one its own may be, so that the bitmaps of the others still say
    /// all that it lacks. `REACH_MAX`: that many or more. 0: nothing is known, and everything is copied.
    pub reach: u8,
}

impl MemberLeg {
    /// A leg that is not out.
    pub fn new(drive: Uuid, state: LegState) -> Self {
        Self { drive, state, reach: 0 }
    }

    /// Puts it out by `record`, its next one. While it was written it had each record back to the settled one, and no bit is
    /// cleared beside a leg that is out.
    fn go_out(&mut self, lag_max: u64) {
        self.state = if self.state == LegState::InSync { LegState::JustOut } else { LegState::Out };
        self.reach = u8::try_from(lag_max).unwrap_or(REACH_MAX);
    }
}

/// An array in a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordArray {
    /// Counter of the last record that changed this array.
    pub epoch: u64,
    /// A bit for each leg that was in sync by a record before this one from the settled one on: a head may
    /// have gone on from it, and know nothing of the records since.
    pub rivals: u8,
    /// Its legs, in order.
    pub legs: Vec<MemberLeg>,
}

/// The legs in sync in all arrays of a pool, and the origin of this knowledge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MembershipRecord {
    /// Feature bits.
    pub features: Features,
    /// The pool.
    pub pool: Uuid,
    /// One more than the parent's; 1 for the first.
    pub counter: u64,
    /// This record's name.
    pub incarnation: Incarnation,
    /// Counter of the latest record of this line that is known to be on every leg that took part; its own
    /// once it is known itself. 0: not known (an older program wrote it), which counts as the parent's.
    pub settled: u64,
    /// The system that wrote it.
    pub head: Uuid,
    /// The arrays may be written; a stop in order clears this.
    pub open: bool,
    /// Names of the records before, newest first; 0 where there was none.
    pub ancestors: [Incarnation; ANCESTORS],
    /// The arrays, in order.
    pub arrays: Vec<RecordArray>,
}

/// How one record stands to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kin {
    /// The same record.
    Same,
    /// So many steps before.
    Ancestor(u64),
    /// Too many steps before for the other to name it.
    TooOld,
    /// Something else.
    Unrelated,
}

impl MembershipRecord {
    /// The first record of a new pool, open.
    pub fn first(pool: Uuid, head: Uuid, incarnation: Incarnation, arrays: Vec<RecordArray>) -> Self {
        assert!(incarnation != 0, "0 names nothing");
        let features = Features::default();
        let ancestors = [0; ANCESTORS];
        Self { features, pool, counter: 1, incarnation, settled: 0, head, open: true, ancestors, arrays }
    }
    /// The next record, the same but for its name and writer. The caller changes it before it is written.
    pub fn next(&self, head: Uuid, incarnation: Incarnation) -> Self {
        assert!(incarnation != 0, "0 names nothing");
        let settled = self.counter - self.lag_max();
        let mut next = Self { counter: self.counter + 1, incarnation, settled, head, ..self.clone() };
        let is_settled = self.is_settled();
        for array in &mut next.arrays {
            let in_sync = array.legs.iter().enumerate().filter(|(_, l)| l.state == LegState::InSync);
            let in_sync = in_sync.map(|(i, _)| 1 << i).sum::<u8>();
            array.rivals = if is_settled { in_sync } else { array.rivals | in_sync };
        }
        next.ancestors.copy_within(..ANCESTORS - 1, 1);
        next.ancestors[0] = self.incarnation;
        for leg in next.arrays.iter_mut().flat_map(|a| &mut a.legs) {
            if leg.state == LegState::JustOut {
                leg.state = LegState::Out;
            }
            if leg.reach > 0 {
                leg.reach = leg.reach.saturating_add(1);
            }
        }
        next
    }

    /// Puts a leg out that was written until the record before this one. One that is out already stays as it is.
    pub fn put_out(&mut self, array: usize, leg: usize) {
        let lag_max = self.lag_max();
        let leg = &mut self.arrays[array].legs[leg];
        if !leg.state.is_out() {
            leg.go_out(lag_max);
        }
    }

    /// Whether no head can have gone on from a leg without knowledge of its loss: then its place is free.
    pub fn is_gone(&self, array: usize, leg: usize) -> bool {
        let row = &self.arrays[array];
        let out = row.legs[leg].state.is_out();
        out && row.rivals & 1 << leg == 0
    }
    /// Leaves a leg out that `is_gone`; those behind it move up.
    pub fn remove(&mut self, array: usize, leg: usize) {
        assert!(self.is_gone(array, leg), "who leaves is out, and that is known everywhere");
        let row = &mut self.arrays[array];
        row.legs.remove(leg);
        let below = (1u8 << leg) - 1;
        row.rivals = row.rivals & below | row.rivals >> 1 & !below;
    }

    /// Every leg that takes part has it: this is its settled copy from now on.
    pub fn settle(&mut self) {
        self.settled = self.counter;
    }

    /// Whether this is the settled copy.
    pub fn is_settled(&self) -> bool {
        self.settled == self.counter
    }

    /// How many steps behind this record the own record of a leg in sync may be: records that nobody knew
    /// to be everywhere when this one was written.
    pub fn lag_max(&self) -> u64 {
        if self.settled == 0 { 1 } else { self.counter - self.settled }
    }
    /// The leg of this drive.
    pub fn leg(&self, drive: Uuid) -> Option<&MemberLeg> {
        self.arrays.iter().flat_map(|a| &a.legs).find(|l| l.drive == drive)
    }
    /// How `self` stands to a record that may come after it.
    pub(crate) fn kin(&self, later: &MembershipRecord) -> Kin {
        if self.incarnation == later.incarnation {
            return Kin::Same;
        }
        match later.counter.checked_sub(self.counter) {
            None | Some(0) => Kin::Unrelated,
            Some(n) if n as usize > ANCESTORS => Kin::TooOld,
            Some(n) if later.ancestors[n as usize - 1] == self.incarnation => Kin::Ancestor(n),
            Some(_) => Kin::Unrelated,
        }
    }
    /// The name of this record's line at a counter; None if it is not known.
    fn name_at(&self, counter: u64) -> Option<Incarnation> {
        match self.counter.checked_sub(counter)? {
            0 => Some(self.incarnation),
            n => self.ancestors.get(n as usize - 1).copied().filter(|name| *name != 0),
        }
    }
    /// Counter of the latest record that is of both lines; None if neither names it.
    pub(crate) fn fork(&self, other: &MembershipRecord) -> Option<u64> {
        let last = self.counter.min(other.counter);
        let near = last.saturating_sub(ANCESTORS as u64)..=last;
        near.rev().find(|c| self.name_at(*c).is_some_and(|name| other.name_at(*c) == Some(name)))
    }
    /// Which of the two slots it goes to. The settled copy lies beside the record, so that a torn write leaves that.
    pub fn slot(&self) -> usize {
        ((self.counter + u64::from(self.is_settled())) % 2) as usize
    }
    /// The 4096 bytes.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.arrays.len() <= ARRAYS_MAX && self.drives() <= DRIVES_MAX, "a pool within its limits");
        let mut w = header(MAGIC, self.features);
        w.bytes(&self.pool.0).u64(self.counter).u64(self.incarnation).u64(self.settled).bytes(&self.head.0);
        w.u32(u32::from(self.open)).u16(self.arrays.len() as u16).u16(self.drives() as u16);
        for a in self.ancestors {
            w.u64(a);
        }
        for a in &self.arrays {
            w.u64(a.epoch).u8(a.legs.len() as u8).u8(a.rivals);
        }
        for leg in self.arrays.iter().flat_map(|a| &a.legs) {
            let state = match leg.state {
                LegState::Out => 0,
                LegState::InSync => 1,
                LegState::Rebuilding => 2,
                LegState::RebuildingFull => 3,
                LegState::JustOut => 4,
            };
            w.bytes(&leg.drive.0).u8(state);
        }
        for leg in self.arrays.iter().flat_map(|a| &a.legs) {
            w.u8(leg.reach);
        }
        let mut bytes = w.0;
        assert!(bytes.len() <= RECORD_BYTES, "the limits fit the record");
        bytes.resize(RECORD_BYTES, 0);
        seal(&mut bytes);
        bytes
    }
    /// Reads one slot.
    pub fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let opened = open(MAGIC, 0, bytes)?;
        if bytes.len() != RECORD_BYTES {
            return Err(Fault::Damaged);
        }
        let (features, r) = opened.checked(checksum(bytes))?;
        Self::fields(features, r).map_err(|_| Fault::Damaged)
    }
    fn fields(features: Features, mut r: Reader<'_>) -> Result<Self, Malformed> {
        let pool = Uuid(r.array()?);
        let (counter, incarnation, settled) = (r.u64()?, r.u64()?, r.u64()?);
        let head = Uuid(r.array()?);
        let open = r.u32()? & 1 == 1;
        let (arrays, drives) = (usize::from(r.u16()?), usize::from(r.u16()?));
        let mut ancestors = [0; ANCESTORS];
        for a in &mut ancestors {
            *a = r.u64()?;
        }
        let named = incarnation != 0 && counter != 0 && settled <= counter;
        if arrays == 0 || arrays > ARRAYS_MAX || drives > DRIVES_MAX || !named {
            return Err(Malformed);
        }
        let mut shapes = vec![];
        for _ in 0..arrays {
            let (epoch, legs, rivals) = (r.u64()?, r.u8()?, r.u8()?);
            if legs == 0 || usize::from(legs) > RECORD_LEGS_MAX {
                return Err(Malformed);
            }
            shapes.push((epoch, rivals, legs));
        }
        if shapes.iter().map(|(_, _, legs)| usize::from(*legs)).sum::<usize>() != drives {
            return Err(Malformed);
        }
        let mut out = vec![];
        for (epoch, rivals, legs) in shapes {
            let mut array = RecordArray { epoch, rivals, legs: vec![] };
            for _ in 0..legs {
                let drive = Uuid(r.array()?);
                let state = match r.u8()? {
                    0 => LegState::Out,
                    1 => LegState::InSync,
                    2 => LegState::Rebuilding,
                    3 => LegState::RebuildingFull,
                    4 => LegState::JustOut,
                    _ => return Err(Malformed),
                };
                array.legs.push(MemberLeg::new(drive, state));
            }
            out.push(array);
        }
        for leg in out.iter_mut().flat_map(|a| &mut a.legs) {
            leg.reach = r.u8()?;
        }
        Ok(Self { features, pool, counter, incarnation, settled, head, open, ancestors, arrays: out })
    }
    fn drives(&self) -> usize {
        self.arrays.iter().map(|a| a.legs.len()).sum()
    }
}

const _: () = assert!(
    HEADER_BYTES + 64 + 8 * ANCESTORS + 10 * ARRAYS_MAX + 18 * DRIVES_MAX <= RECORD_BYTES,
    "the largest pool fits the record"
);

/// The newest good record of a drive's two slots.
pub fn newest_membership(slots: [&[u8]; 2]) -> Result<MembershipRecord, Fault> {
    match slots.map(MembershipRecord::decode) {
        [Ok(a), Ok(b)] => Ok(if (a.counter, a.settled) >= (b.counter, b.settled) { a } else { b }),
        // The newer program's record is the later one: what this program could still read is history.
        [Err(Fault::Newer(what)), _] | [_, Err(Fault::Newer(what))] => Err(Fault::Newer(what)),
        [Ok(a), Err(_)] | [Err(_), Ok(a)] => Ok(a),
        [Err(a), Err(b)] => Err(a.max(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Newer;

    fn record(arrays: usize, legs: usize) -> MembershipRecord {
        let leg = |a: usize, l: usize| MemberLeg {
            drive: Uuid::from_random(a as u64, l as u64),
            state: [LegState::InSync, LegState::Out, LegState::Rebuilding, LegState::RebuildingFull][l % 4],
            reach: [0, 7, 0, 0][l % 4],
        };
        let arrays = (0..arrays)
            .map(|a| RecordArray {
                epoch: a as u64,
                rivals: a as u8,
                legs: (0..legs).map(|l| leg(a, l)).collect(),
            })
            .collect();
        MembershipRecord::first(Uuid::from_random(9, 9), Uuid::from_random(8, 8), 77, arrays)
    }

    #[test]
    fn a_record_survives_whatever_its_size() {
        for (arrays, legs) in [(1, 1), (2, 2), (32, 4), (128, 1)] {
            let r = record(arrays, legs).next(Uuid::from_random(7, 7), 78);
            assert_eq!(MembershipRecord::decode(&r.encode()), Ok(r));
        }
    }

    #[test]
    fn a_write_torn_at_any_byte_leaves_the_old_or_the_new_record() {
        let old = record(2, 2).next(Uuid::default(), 100);
        let mut new = old.next(Uuid::default(), 101);
        new.arrays[0].legs[0].state = LegState::Out;
        // The slot of the new one holds the one before the old one.
        let older = record(2, 2).encode();
        for cut in 0..=RECORD_BYTES {
            let mut torn = older.clone();
            torn[..cut].copy_from_slice(&new.encode()[..cut]);
            let mut slots = [old.encode(), old.encode()];
            slots[new.slot()] = torn;
            slots[old.slot()] = old.encode();
            let found = newest_membership([&slots[0], &slots[1]]).expect("one of them");
            assert!(found == old || found == new, "cut at {cut}");
            assert_eq!(found == new, new.encode()[cut..] == older[cut..], "cut at {cut}");
        }
    }

    #[test]
    fn the_settled_copy_counts_and_a_torn_one_leaves_the_record() {
        let before = record(2, 2).next(Uuid::default(), 100);
        let record = before.next(Uuid::default(), 101);
        let mut copy = record.clone();
        copy.settle();
        assert_eq!(copy.slot(), before.slot(), "the record stays in its own slot");
        assert_eq!((record.lag_max(), copy.lag_max()), (2, 0));
        for cut in 0..=RECORD_BYTES {
            let mut torn = before.encode();
            torn[..cut].copy_from_slice(&copy.encode()[..cut]);
            let mut slots = [record.encode(), record.encode()];
            slots[copy.slot()] = torn;
            let found = newest_membership([&slots[0], &slots[1]]).expect("one of them");
            assert!(found == record || found == copy, "cut at {cut}");
            assert_eq!(found == copy, copy.encode()[cut..] == before.encode()[cut..], "cut at {cut}");
        }
        let next = copy.next(Uuid::default(), 102);
        assert_eq!(next.slot(), copy.slot(), "the next one leaves the record, too");
    }

    #[test]
    fn a_leg_that_goes_out_reaches_back_to_the_settled_record() {
        let mut first = record(1, 1).next(Uuid::default(), 100);
        first.settle();
        let mut lost = first.next(Uuid::default(), 101);
        lost.put_out(0, 0);
        assert_eq!((lost.arrays[0].legs[0].state, lost.arrays[0].legs[0].reach), (LegState::JustOut, 1));
        let mut later = (0..300).fold(lost, |r, i| r.next(Uuid::default(), 200 + i));
        assert_eq!(
            (later.arrays[0].legs[0].state, later.arrays[0].legs[0].reach),
            (LegState::Out, REACH_MAX)
        );
        later.put_out(0, 0);
        assert_eq!(later.arrays[0].legs[0].state, LegState::Out, "whoever is out stays as it is");
    }

    #[test]
    fn kinship_is_known_by_names_not_by_numbers() {
        let first = record(1, 2);
        let mut line = vec![first.clone()];
        for i in 0..40 {
            line.push(line[i].next(Uuid::default(), 1000 + i as u64));
        }
        assert_eq!(first.kin(&line[1]), Kin::Ancestor(1));
        assert_eq!(first.kin(&line[32]), Kin::Ancestor(32));
        assert_eq!(first.kin(&line[33]), Kin::TooOld);
        assert_eq!(line[1].kin(&first), Kin::Unrelated);
        let other = first.next(Uuid::default(), 5);
        assert_eq!(other.kin(&line[1]), Kin::Unrelated, "the same counter");
        assert_eq!(other.kin(&line[7]), Kin::Unrelated, "a lower counter");
    }

    #[test]
    fn a_changed_bit_or_a_newer_program_is_noticed() {
        let bytes = record(1, 2).encode();
        for i in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[i] ^= 0x80;
            assert!(MembershipRecord::decode(&bad).is_err());
        }
        let newer =
            MembershipRecord { features: Features { incompat: 1, ..Features::default() }, ..record(1, 2) };
        assert_eq!(newest_membership([&newer.encode(), &bytes]), Err(Fault::Newer(Newer::Incompat(1))));
        assert_eq!(newest_membership([&[], &[]]), Err(Fault::Absent));
    }
}
