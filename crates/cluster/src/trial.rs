//! The trial of a drive's fence: a head that is shut off the drive writes until it is refused, and what lies there afterwards shows whether
//! the fence holds. Where it writes, and what: docs/formats/system.md, "Trial".
//!
//! ```text
//! the newcomer writes stamps ──▶ is shut out ──▶ what lies there ──▶ a pause ──▶ the same lies there: the fence holds
//! ```

/// Where stamps are written: no data, no votes and no heartbeats lie there.
pub const TRIAL_AT: u64 = (3 << 20) + (32 << 10);
/// Length of a stamp.
pub const STAMP_BYTES: usize = 4096;
/// Stamps beside each other, each written by one command at a time.
pub const PLACES: usize = 8;
/// Length of all of them.
pub const TRIAL_BYTES: usize = PLACES * STAMP_BYTES;

const MAGIC: [u8; 8] = *b"MILLTRY1";

/// Which trial: the life of the head that writes, and the number that the one that leads gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trial {
    /// Of the process that writes.
    pub life: u64,
    /// One more each time.
    pub number: u64,
}

impl Trial {
    /// The stamp that is written `count`th.
    pub fn stamp(self, count: u64) -> Vec<u8> {
        let mut stamp = Vec::with_capacity(STAMP_BYTES);
        // The count is in each sector, so that one that lands in part is seen, too.
        while stamp.len() < STAMP_BYTES {
            stamp.extend(MAGIC);
            for word in [self.life, self.number, count] {
                stamp.extend(word.to_le_bytes());
            }
        }
        stamp
    }
    fn is_of(self, stamp: &[u8]) -> bool {
        let word = |at: usize| stamp.get(at..at + 8);
        word(0) == Some(&MAGIC)
            && word(8) == Some(&self.life.to_le_bytes())
            && word(16) == Some(&self.number.to_le_bytes())
    }
    /// What a trial shows, from what lay there once the fence had confirmed, and some time later; `refused`: the head that was shut out says
    /// that the drive refused it in the end.
    ///
    /// # Errors
    /// The fence does not hold.
    pub fn judge(self, at_once: &[u8], later: &[u8], refused: bool) -> Result<(), Flaw> {
        let comes_here = |lies: &[u8]| lies.chunks(STAMP_BYTES).any(|stamp| self.is_of(stamp));
        match (at_once == later, refused) {
            // What is taken all the time lands late, too.
            (_, false) if comes_here(later) => Err(Flaw::LetIn),
            (false, _) => Err(Flaw::Landed),
            (true, true) if comes_here(at_once) => Ok(()),
            (true, _) => Err(Flaw::Elsewhere),
        }
    }
}

/// Why a fence does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// Something of the head that was shut out landed after the drive had confirmed.
    Landed,
    /// Nothing of what that head wrote lies there: it writes to another drive.
    Elsewhere,
    /// The drive went on to take its commands.
    LetIn,
    /// And it does not show the head that leads that the other one is registered.
    NotShared,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heartbeat::{HEARTBEAT_BYTES, HEARTBEATS_AT};
    use crate::slot::{SLOT_BYTES, SLOTS_AT};

    const TRIAL: Trial = Trial { life: 77, number: 3 };

    /// What a drive holds of these stamps, by place.
    fn area(stamps: &[(usize, Trial, u64)]) -> Vec<u8> {
        let mut area = vec![0; TRIAL_BYTES];
        for (place, trial, count) in stamps {
            area[place * STAMP_BYTES..][..STAMP_BYTES].copy_from_slice(&trial.stamp(*count));
        }
        area
    }

    #[test]
    fn a_fence_holds_where_stamps_lie_and_none_comes_later() {
        let lies = area(&[(0, TRIAL, 9), (5, TRIAL, 12)]);
        assert_eq!(TRIAL.judge(&lies, &lies, true), Ok(()));
    }
    #[test]
    fn a_stamp_that_comes_after_the_fence_fails_the_trial() {
        let before = area(&[(0, TRIAL, 9), (5, TRIAL, 12)]);
        let later = area(&[(0, TRIAL, 9), (5, TRIAL, 17)]);
        assert_eq!(TRIAL.judge(&before, &later, true), Err(Flaw::Landed));
        // One sector of it is enough.
        let mut torn = before.clone();
        torn[5 * STAMP_BYTES + 3584..6 * STAMP_BYTES].copy_from_slice(&TRIAL.stamp(13)[3584..]);
        assert_eq!(TRIAL.judge(&before, &torn, true), Err(Flaw::Landed));
    }
    #[test]
    fn stamps_that_are_not_seen_are_another_drives() {
        let other = Trial { life: 78, ..TRIAL };
        let former = Trial { number: 2, ..TRIAL };
        for lies in [vec![0; TRIAL_BYTES], vec![], area(&[(0, other, 9), (1, former, 9)])] {
            for refused in [true, false] {
                assert_eq!(TRIAL.judge(&lies, &lies, refused), Err(Flaw::Elsewhere));
            }
        }
    }
    #[test]
    fn who_is_not_refused_is_not_shut_out() {
        let lies = area(&[(0, TRIAL, 9)]);
        for later in [&lies, &area(&[(0, TRIAL, 30)])] {
            assert_eq!(TRIAL.judge(&lies, later, false), Err(Flaw::LetIn));
        }
    }
    #[test]
    fn stamps_lie_beside_votes_and_heartbeats() {
        let end = TRIAL_AT + TRIAL_BYTES as u64;
        for at in SLOTS_AT.into_iter().flatten() {
            assert!(at + SLOT_BYTES as u64 <= TRIAL_AT || at >= end);
        }
        for at in HEARTBEATS_AT {
            assert!(at + HEARTBEAT_BYTES as u64 <= TRIAL_AT || at >= end);
        }
        assert!(TRIAL_AT > 3 << 20 && end <= 4 << 20);
    }
}
