//! Which drives vote on the next record: the leader chooses them among drives that are legs in sync.

use crate::record::{HeadNo, HeadState, SystemRecord, Voter};
use base::{Bug, Uuid, planted};

/// The voters that `record` should have, if `me` leads by it: both directories and an odd number of drives, or, while the other head is
/// out, the own directory and an even number. Of `drives`, the best first, those that vote already are kept. Sorted, as records have them.
pub(crate) fn of(record: &SystemRecord, me: HeadNo, drives: &[Uuid]) -> Vec<Voter> {
    let heads = [HeadNo::A, HeadNo::B].into_iter().filter(|h| record.head(*h).state != HeadState::None);
    let mut voters: Vec<Voter> = heads.map(Voter::Directory).collect();
    if voters.len() < 2 {
        return voters;
    }
    // The directory of a head that is out does not answer: with it among few voters, one drive that fails would be most of the others.
    let out = record.head(me.other()).state == HeadState::Out;
    let alone = out && drives.len() >= 2 && !planted(Bug::OutHeadVotes);
    if alone {
        voters.retain(|v| *v == Voter::Directory(me));
    }
    let most = match (alone, drives.len()) {
        (true, 2 | 3) => 2,
        (true, _) => 4,
        (false, n @ (0..=2)) => n.min(1),
        (false, 3 | 4) => 3,
        (false, _) => 5,
    };
    let votes = |d: &&Uuid| record.voters.contains(&Voter::Drive(**d));
    let (old, new) = (drives.iter().filter(votes), drives.iter().filter(|d| !votes(d)));
    voters.extend(old.chain(new).take(most).map(|d| Voter::Drive(*d)));
    voters.sort();
    voters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn drives(n: u8) -> Vec<Uuid> {
        (1..=n).map(|i| Uuid([i; 16])).collect()
    }
    fn names(voters: &[Voter]) -> String {
        let one = |v: &Voter| match v {
            Voter::Directory(head) => ["a ", "b "][head.index()].to_string(),
            Voter::Drive(uuid) => format!("{} ", uuid.0[0]),
        };
        voters.iter().map(one).collect::<String>().trim_end().into()
    }

    #[test]
    fn an_odd_number_votes_whoever_is_in_and_however_many_drives_there_are() {
        let none = SystemRecord { voters: vec![], ..record(5) };
        let out = none.without(HeadNo::B);
        for (n, both, alone) in [
            (0, "a b", "a b"),
            (1, "a b 1", "a b 1"),
            (2, "a b 1", "a 1 2"),
            (3, "a b 1 2 3", "a 1 2"),
            (4, "a b 1 2 3", "a 1 2 3 4"),
            (5, "a b 1 2 3 4 5", "a 1 2 3 4"),
            (9, "a b 1 2 3 4 5", "a 1 2 3 4"),
        ] {
            assert_eq!(names(&of(&none, HeadNo::A, &drives(n))), both, "{n} drives");
            assert_eq!(names(&of(&out, HeadNo::A, &drives(n))), alone, "{n} drives, b is out");
        }
        let single = out.removed(HeadNo::B);
        assert_eq!(names(&of(&single, HeadNo::A, &drives(9))), "a");
    }

    #[test]
    fn a_drive_that_votes_is_kept_before_better_ones() {
        // Drive 9 votes in this record.
        let voters = of(&record(5), HeadNo::A, &drives(9));
        assert_eq!(names(&voters), "a b 1 2 3 4 9");
        assert_eq!(
            names(&of(&record(5), HeadNo::A, &drives(8))),
            "a b 1 2 3 4 5",
            "it is no leg in sync any more"
        );
    }
}
