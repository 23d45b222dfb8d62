//! Messages between two members, each in one message of the link: docs/formats/link.md, "Messages".

use crate::decide::Found;
use crate::record::{HeadNo, SystemRecord, short_name};
use crate::slot::{SLOT_BYTES, Slot};
use base::codec::{Malformed, Reader, Writer};

const JOIN: u8 = 1;
const RECORD: u8 = 2;
const VOTE: u8 = 3;
const VOTED: u8 = 4;
const UPPER: u8 = 5;
const PART: u8 = 6;
const LACKS: u8 = 7;

/// Bytes of a reason in `Lacks`, at most.
const LACKS_MAX: usize = 4096;

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// The sender is not in, and asks to be let in. Who it is, the link has said.
    Join {
        /// What people call it.
        name: String,
    },
    /// This is decided.
    Record(Box<SystemRecord>),
    /// Please do this in your state directory, where I have no other way to.
    Vote {
        /// Comes back.
        round: u64,
        /// The sender's block, to be written before both are read.
        write: Option<Box<Slot>>,
    },
    /// What was found there; None: it failed.
    Voted {
        /// From `Vote`.
        round: u64,
        /// The block of each head.
        found: Option<Box<Found>>,
    },
    /// The sender is not in, and could not follow: why, in the words of the layer above; empty: it could. Of a head that never said this,
    /// nothing is known.
    Lacks(Vec<u8>),
    /// Of the layer above: the last part of what it says, or all of it.
    Upper(Vec<u8>),
    /// Of the layer above: a part of what it says; `Part` or `Upper` goes on with it.
    Part(Vec<u8>),
}

impl Message {
    /// Its bytes; `from` sends it.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Message::Join { name } => {
                w.u8(JOIN).text(name);
            }
            Message::Record(record) => {
                w.u8(RECORD).bytes(&record.to_bytes());
            }
            Message::Vote { round, write } => {
                w.u8(VOTE).u64(*round);
                if let Some(slot) = write {
                    w.bytes(&slot.encode());
                }
            }
            Message::Voted { round, found } => {
                w.u8(VOTED).u64(*round).u8(u8::from(found.is_some()));
                for slot in found.iter().flat_map(|f| f.iter()) {
                    w.u8(u8::from(slot.is_some()));
                    if let Some(slot) = slot {
                        w.bytes(&slot.encode());
                    }
                }
            }
            Message::Lacks(why) => {
                w.u8(LACKS).bytes(why);
            }
            Message::Upper(bytes) => {
                w.u8(UPPER).bytes(bytes);
            }
            Message::Part(bytes) => {
                w.u8(PART).bytes(bytes);
            }
        }
        w.0
    }
    /// Reads what `from` sent.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(from: HeadNo, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader(bytes);
        let slot = |r: &mut Reader, head| -> Result<Slot, Malformed> {
            Slot::decode(head, r.bytes(SLOT_BYTES)?).map_err(|_| Malformed)
        };
        let message = match r.u8()? {
            // It comes from outside, and goes into a record.
            JOIN => Message::Join { name: short_name(&r.text()?) },
            RECORD => return SystemRecord::from_bytes(r.0).map(|r| Message::Record(Box::new(r))),
            VOTE => {
                let round = r.u64()?;
                let write = if r.0.is_empty() { None } else { Some(Box::new(slot(&mut r, from)?)) };
                Message::Vote { round, write }
            }
            VOTED => {
                let round = r.u64()?;
                let found = match r.u8()? {
                    0 => None,
                    _ => {
                        let mut found = [None, None];
                        for (head, place) in [HeadNo::A, HeadNo::B].into_iter().zip(&mut found) {
                            if r.u8()? == 1 {
                                *place = Some(slot(&mut r, head)?);
                            }
                        }
                        Some(Box::new(found))
                    }
                };
                Message::Voted { round, found }
            }
            LACKS if r.0.len() <= LACKS_MAX => return Ok(Message::Lacks(r.0.to_vec())),
            UPPER => return Ok(Message::Upper(r.0.to_vec())),
            PART => return Ok(Message::Part(r.0.to_vec())),
            _ => return Err(Malformed),
        };
        if r.0.is_empty() { Ok(message) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn a_message_is_read_as_it_was_written_and_one_cut_short_is_none() {
        let slot = |head| Slot {
            head,
            life: 9,
            sequence: 4,
            promised: 5,
            decided: record(5),
            accepted: Some((3, record(6))),
        };
        let (a, b) = (slot(HeadNo::A), slot(HeadNo::B));
        for message in [
            Message::Join { name: "b".into() },
            Message::Record(Box::new(record(5))),
            Message::Vote { round: 7, write: None },
            Message::Vote { round: 7, write: Some(Box::new(b.clone())) },
            Message::Voted { round: 7, found: None },
            Message::Voted { round: 7, found: Some(Box::new([None, Some(b.clone())])) },
            Message::Voted { round: 7, found: Some(Box::new([Some(a), Some(b)])) },
        ] {
            let bytes = message.encode();
            assert_eq!(Message::decode(HeadNo::B, &bytes), Ok(message));
            for n in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
                // A question without a block is a shorter one.
                let good = Message::decode(HeadNo::B, &bytes[..n]);
                assert!(good.is_err() || matches!(good, Ok(Message::Vote { write: None, .. })), "cut at {n}");
            }
        }
        for why in [vec![], vec![7; LACKS_MAX]] {
            let lacks = Message::Lacks(why);
            assert_eq!(Message::decode(HeadNo::B, &lacks.encode()), Ok(lacks));
        }
        let longer = Message::Lacks(vec![7; LACKS_MAX + 1]).encode();
        assert_eq!(Message::decode(HeadNo::B, &longer), Err(Malformed));
        let long = Message::Join { name: "n".repeat(100) }.encode();
        assert_eq!(Message::decode(HeadNo::B, &long), Ok(Message::Join { name: "n".repeat(64) }));
        assert_eq!(Message::decode(HeadNo::A, &[UPPER, 1]), Ok(Message::Upper(vec![1])));
        assert_eq!(Message::decode(HeadNo::A, &[PART, 1]), Ok(Message::Part(vec![1])));
        assert_eq!(Message::decode(HeadNo::A, &[]), Err(Malformed));
    }
}
