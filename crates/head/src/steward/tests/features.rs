//! Feature bits of a newer program (docs/formats/drive.md): each word of each record gets its answer.

use super::*;
use array::format::{
    CONFIG_AT, CONFIG_BYTES, ConfigSlot, Features, LABEL_AT, Label, MEMBERSHIP_AT, MembershipRecord,
    RECORD_BYTES, label_copy_at,
};
use finding::{NewerPart, RecordName};

/// No program knows it yet.
const UNKNOWN: u64 = 1 << 63;
const BITS: &str = "0x8000000000000000";
const ALL: &[&str] = &["/f/a", "/f/b", "/f/c", "/f/d"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Compat,
    RoCompat,
    Incompat,
}

impl Word {
    const ALL: [Word; 3] = [Word::Compat, Word::RoCompat, Word::Incompat];

    fn set(self, features: &mut Features) {
        match self {
            Word::Compat => features.compat |= UNKNOWN,
            Word::RoCompat => features.ro_compat |= UNKNOWN,
            Word::Incompat => features.incompat |= UNKNOWN,
        }
    }

    fn part(self) -> NewerPart {
        match self {
            Word::Compat => unreachable!("it forbids nothing"),
            Word::RoCompat => NewerPart::RoCompat { bits: BITS.into() },
            Word::Incompat => NewerPart::Incompat { bits: BITS.into() },
        }
    }
}

fn records() -> [RecordName; 3] {
    [RecordName::Label, RecordName::Membership, RecordName::Configuration]
}

impl FakeDrive {
    fn bytes_at(&self, at: u64, len: u64) -> Vec<u8> {
        let block = |i: u64| self.blocks.get(&i).cloned().unwrap_or(vec![0; 512]);
        (at / 512..(at + len) / 512).flat_map(block).collect()
    }

    fn put_at(&mut self, at: u64, bytes: &[u8]) {
        for (i, chunk) in bytes.chunks(512).enumerate() {
            self.blocks.insert(at / 512 + i as u64, chunk.to_vec());
        }
    }

    /// A newer program has set this bit in every copy of a record.
    fn sets(&mut self, record: &RecordName, word: Word) {
        let size = self.bytes / 512 * 512;
        match record {
            RecordName::Label => {
                for at in [LABEL_AT, label_copy_at(size)] {
                    let bytes = self.bytes_at(at, RECORD_BYTES as u64);
                    let mut label = Label::decode(&bytes).expect("both copies are good");
                    word.set(&mut label.features);
                    self.put_at(at, &label.encode());
                }
            }
            RecordName::Membership => {
                for at in MEMBERSHIP_AT {
                    let bytes = self.bytes_at(at, RECORD_BYTES as u64);
                    let Ok(mut slot) = MembershipRecord::decode(&bytes) else { continue };
                    word.set(&mut slot.features);
                    self.put_at(at, &slot.encode());
                }
            }
            RecordName::Configuration => {
                for at in CONFIG_AT {
                    let Ok(mut slot) = ConfigSlot::decode(&self.bytes_at(at, CONFIG_BYTES)) else { continue };
                    word.set(&mut slot.features);
                    self.put_at(at, &slot.encode().expect("it fits"));
                }
            }
        }
    }

    /// The features of each copy of a record.
    fn features(&self, record: &RecordName) -> Vec<Features> {
        let size = self.bytes / 512 * 512;
        let block = |at: u64| self.bytes_at(at, RECORD_BYTES as u64);
        match record {
            RecordName::Label => [LABEL_AT, label_copy_at(size)]
                .map(|at| Label::decode(&block(at)).expect("good").features)
                .to_vec(),
            RecordName::Membership => {
                let slot = |at: u64| MembershipRecord::decode(&block(at)).expect("good").features;
                MEMBERSHIP_AT.map(slot).to_vec()
            }
            RecordName::Configuration => {
                let slot =
                    |at: u64| ConfigSlot::decode(&self.bytes_at(at, CONFIG_BYTES)).expect("good").features;
                CONFIG_AT.map(slot).to_vec()
            }
        }
    }
}

fn blocks(w: &World) -> Vec<&BTreeMap<u64, Vec<u8>>> {
    w.rest.drives.values().map(|d| &d.blocks).collect()
}

/// A pool with an unknown `ro_compat` bit in its membership records or its configuration was imported, and written.
#[test]
fn an_unknown_feature_is_kept_or_forbids_to_write_or_to_read() {
    for record in records() {
        for word in Word::ALL {
            let mut w = usual();
            w.good(Order::Shutdown);
            let mut rest = w.rest;
            rest.drives.values_mut().for_each(|d| d.sets(&record, word));
            let before: Vec<_> = rest.drives.values().map(|d| d.blocks.clone()).collect();
            let mut w = World::start(rest, 2);
            let what = format!("{record:?} {word:?}");
            if word == Word::Compat {
                assert_eq!(w.status().health, State::Optimal, "{what}");
                // Each slot is written anew, by orders and by the loss of a leg.
                w.good(volume("vm2", MIB));
                w.good(volume("vm3", MIB));
                for leg in [1, 0] {
                    lose(&mut w, leg);
                    w.pass(1);
                    let path = ALL[leg].to_string();
                    w.good(Order::DriveReturn { drive: path });
                    synced(&mut w, leg);
                }
                for name in ALL {
                    let all = w.rest.drives[*name].features(&record);
                    assert!(all.iter().all(|f| f.compat & UNKNOWN != 0), "{what}: {name} {all:?}");
                }
                continue;
            }
            let Err(refusal) = w.order(import(ALL, true)) else { panic!("{what} is imported, by force") };
            match &*refusal.why {
                Why::Pool(PoolRefusal::PoolNewer { newer, .. }) => {
                    assert_eq!((&newer.record, &newer.part), (&record, &word.part()));
                }
                // Nobody can say of what pool it is.
                other => {
                    assert_eq!((&record, word), (&RecordName::Label, Word::Incompat), "{other:?}");
                    let said = format!("{other:?}");
                    assert!(said.contains("LabelNewer") && said.contains(BITS), "{said}");
                }
            }
            assert!(w.status().pools.iter().all(|p| p.state == State::Offline), "{what}");
            assert!(blocks(&w).into_iter().eq(&before), "{what}: nothing was written");
        }
    }
}

/// A leg that a newer program had meanwhile had no record that this one can read, and was overwritten.
#[test]
fn a_leg_that_a_newer_program_had_does_not_return_to_be_overwritten() {
    for record in records() {
        for word in Word::ALL {
            let mut w = usual();
            lose(&mut w, 1);
            w.pass(1);
            w.rest.drives.get_mut("/f/b").expect("there").sets(&record, word);
            let before = w.rest.drives["/f/b"].blocks.clone();
            let back = w.order(Order::DriveReturn { drive: "/f/b".into() });
            let what = format!("{record:?} {word:?}");
            if word == Word::Compat {
                assert!(back.is_ok(), "{what}: {back:?}");
                continue;
            }
            let Why::Leg(LegRefusal::LegMayNotReturn { why, .. }) = *back.expect_err(&what).why else {
                panic!("{what}: another refusal")
            };
            match &*why {
                crate::order::Cause::Leg(LegCause::DriveNewer { newer, .. }) => {
                    assert_eq!((&newer.record, &newer.part), (&record, &word.part()), "{what}");
                }
                other => {
                    assert_eq!((&record, word), (&RecordName::Label, Word::Incompat), "{other:?}");
                    assert!(format!("{other:?}").contains("Newer"), "{other:?}");
                }
            }
            assert_eq!(w.rest.drives["/f/b"].blocks, before, "{what}: nothing was written");
        }
    }
}
