//! Assembly: from the records found on drives to what may be used. Pure; refuses to guess. The rules
//! and their reasons are in docs/formats/membership.md, "Assembly"; the numbers below are theirs.

use super::membership::Kin;
use super::{Incarnation, LegState, MemberLeg, MembershipRecord, RecordArray};
use base::{Bug, Uuid, planted};

/// A drive that was found, with its newest good record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The drive, by its label.
    pub drive: Uuid,
    /// Its record; None if neither slot is good.
    pub record: Option<MembershipRecord>,
}

/// What may be done with the drives that were found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(clippy::large_enum_variant)] // one exists at a time
pub enum Verdict {
    /// No drive and no witness has a record.
    Nothing,
    /// Heads went on apart from each other. Nothing is used until the operator chooses a side.
    Diverged(Vec<Side>),
    /// One history.
    Assembled(Assembly),
}

/// One of several histories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// Its latest record: names the side for the override.
    pub incarnation: Incarnation,
    /// How far it went.
    pub counter: u64,
    /// The system that wrote it.
    pub head: Uuid,
    /// Drives whose record is on this side.
    pub drives: Vec<Uuid>,
}

/// One history, and how each array stands in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembly {
    /// The latest record.
    pub record: MembershipRecord,
    /// Drives whose own record is of this history: only their configurations count.
    pub line: Vec<Uuid>,
    /// The arrays, in order.
    pub arrays: Vec<ArrayVerdict>,
}

/// One array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayVerdict {
    /// Its legs, in order.
    pub legs: Vec<LegVerdict>,
    /// Every leg with which a head may have gone on is here: their records need no witness.
    pub complete: bool,
    /// The current legs are known to be the truth. Without it, only the override brings the array up.
    pub proven: bool,
}

impl ArrayVerdict {
    /// Some leg has every acknowledged write, as far as can be known.
    pub fn has_current(&self) -> bool {
        self.legs.contains(&LegVerdict::Current)
    }
}

/// One leg.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LegVerdict {
    /// It was in sync, and has the record, or one behind which nothing was acknowledged.
    Current,
    /// It is there, and must be resynced before it is read.
    Stale {
        /// Everything, not only what the bitmaps mark.
        full: bool,
    },
    /// It is there, and may hold writes that the legs in sync lack: only the operator may have it overwritten.
    Apart,
    /// It was not found.
    Missing {
        /// It was in sync when last heard of.
        in_sync: bool,
    },
}

/// Judges what was found. `me` is this system; `keep` is the override of a divergence: the side whose
/// history counts.
pub fn assemble(
    found: &[Found],
    witness: Option<&MembershipRecord>,
    me: Uuid,
    keep: Option<Incarnation>,
) -> Verdict {
    let sides = sides(found, witness);
    let (record, line) = match (&sides[..], keep) {
        ([], _) => return Verdict::Nothing,
        ([(record, line)], _) => (*record, line.clone()),
        (_, Some(keep)) => match sides.iter().find(|(r, _)| r.incarnation == keep) {
            Some((record, line)) => (*record, line.clone()),
            None => return diverged(&sides),
        },
        (_, None) => return diverged(&sides),
    };
    // Rule 4, second half: whatever happened under this head is in the witness or one step ahead of it.
    let witnessed = witness.is_some_and(|w| match w.kin(record) {
        Kin::Same => true,
        Kin::Ancestor(1) => record.head == me,
        Kin::Ancestor(_) | Kin::TooOld | Kin::Unrelated => false,
    });
    let arrays = record
        .arrays
        .iter()
        .map(|array| {
            let legs: Vec<LegVerdict> = array
                .legs
                .iter()
                .map(|leg| match found.iter().find(|f| f.drive == leg.drive) {
                    None => LegVerdict::Missing { in_sync: leg.state == LegState::InSync },
                    Some(f) => judge(leg.state, f, record),
                })
                .collect();
            // Rule 4, first half.
            let all_found = array.legs.iter().zip(&legs).enumerate().all(|(i, (leg, verdict))| {
                // Every leg that takes part has what is settled: nobody went on without it.
                let may_be_rival = leg.state == LegState::JustOut || array.rivals & 1 << i != 0;
                let rival = may_be_rival && !record.is_settled();
                match leg.state {
                    LegState::InSync => *verdict == LegVerdict::Current,
                    _ => !rival || !matches!(verdict, LegVerdict::Missing { .. }),
                }
            });
            let current = legs.contains(&LegVerdict::Current);
            ArrayVerdict { legs, complete: all_found && current, proven: (all_found || witnessed) && current }
        })
        .collect();
    Verdict::Assembled(Assembly { record: record.clone(), line, arrays })
}

/// What must be copied to a leg that comes back to a pool in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    /// What the bitmaps of the legs in sync mark.
    Partial,
    /// Everything.
    Full,
    /// It went its own way meanwhile, and may hold writes that were acknowledged elsewhere.
    Diverged,
}

/// Judges a drive that is to be a leg again: `own` is the record found on it, `record` the pool's.
pub fn judge_return(own: Option<&MembershipRecord>, drive: Uuid, record: &MembershipRecord) -> Return {
    let Some(own) = own else { return Return::Full };
    match own.kin(record) {
        Kin::Same | Kin::Ancestor(_) if was_source(own, drive, record) => Return::Diverged,
        Kin::Same | Kin::Ancestor(_) if lacks_unmarked(own, drive, record) => Return::Full,
        Kin::Same | Kin::Ancestor(_) => Return::Partial,
        Kin::TooOld if was_left_behind(own, drive, record) => Return::Full,
        Kin::Unrelated if is_cut_short(own, record) => Return::Full,
        Kin::TooOld | Kin::Unrelated => Return::Diverged,
    }
}

/// Whether a leg that is out or rebuilding may lack more than the bitmaps of the others say: it lacked everything, or its own
/// record is older than any that it can rightly have, and bits were cleared since.
fn lacks_unmarked(own: &MembershipRecord, drive: Uuid, record: &MembershipRecord) -> bool {
    let steps = match own.kin(record) {
        Kin::Same => 0,
        Kin::Ancestor(n) => n,
        Kin::TooOld | Kin::Unrelated => return true,
    };
    let Some(leg) = record.leg(drive) else { return true };
    let reach = match leg.state {
        LegState::Out | LegState::JustOut => u64::from(leg.reach),
        LegState::InSync | LegState::Rebuilding | LegState::RebuildingFull => record.lag_max(),
    };
    let was_full = own.leg(drive).is_none_or(|l| l.state == LegState::RebuildingFull);
    was_full || steps > reach && !planted(Bug::OlderLegByBitmap)
}

/// Whether those that are in sync today in a leg's mirror all were so by its own record, however old that is: nothing was
/// answered with this leg that they lack. Other mirrors may have lost and taken back whom they would meanwhile.
fn was_left_behind(own: &MembershipRecord, drive: Uuid, record: &MembershipRecord) -> bool {
    let Some((_, now)) = mirror_of(own, drive, record) else { return false };
    let mut in_sync = now.legs.iter().filter(|l| l.state == LegState::InSync).peekable();
    let was = |l: &MemberLeg| own.leg(l.drive).is_some_and(|then| then.state == LegState::InSync);
    in_sync.peek().is_some() && in_sync.all(was)
}

/// The mirror of a drive, by its own record and by the pool's.
fn mirror_of<'a>(
    own: &'a MembershipRecord,
    drive: Uuid,
    record: &'a MembershipRecord,
) -> Option<(&'a RecordArray, &'a RecordArray)> {
    let array = own.arrays.iter().position(|a| a.legs.iter().any(|l| l.drive == drive))?;
    Some((&own.arrays[array], record.arrays.get(array)?))
}

/// Whether a leg was in sync, by its own record, when all that are in sync today were out: somebody took those by force, in a
/// pool whose other arrays know the line, and this one may hold writes that they lack.
fn was_source(own: &MembershipRecord, drive: Uuid, record: &MembershipRecord) -> bool {
    let is_out = |l: &MemberLeg| l.state.is_out();
    let Some((then, now)) = mirror_of(own, drive, record) else { return false };
    let itself = then.legs.iter().any(|l| l.drive == drive && l.state == LegState::InSync);
    let mut in_sync = now.legs.iter().filter(|l| l.state == LegState::InSync).peekable();
    let others = in_sync.peek().is_some();
    itself && others && in_sync.all(|l| then.legs.iter().any(|t| t.drive == l.drive && is_out(t)))
}

/// Whether the last leg in sync, which was away for a moment, is as it was: no other head went on from it.
pub fn is_current(own: Option<&MembershipRecord>, record: &MembershipRecord) -> bool {
    match own.map(|own| own.kin(record)) {
        Some(Kin::Same) => true,
        Some(Kin::Ancestor(n)) => n <= record.lag_max(),
        Some(Kin::TooOld | Kin::Unrelated) | None => false,
    }
}

/// Rules 2 and 3.
fn judge(state: LegState, found: &Found, record: &MembershipRecord) -> LegVerdict {
    let Some(own) = &found.record else { return LegVerdict::Stale { full: true } };
    match (state, own.kin(record)) {
        (LegState::InSync, Kin::Same) => LegVerdict::Current,
        (LegState::InSync, Kin::Ancestor(n)) if n <= record.lag_max() => LegVerdict::Current,
        (LegState::InSync, Kin::Ancestor(_) | Kin::TooOld | Kin::Unrelated) => {
            LegVerdict::Stale { full: true }
        }
        (LegState::RebuildingFull, _) => LegVerdict::Stale { full: true },
        (LegState::Out | LegState::JustOut, Kin::Same | Kin::Ancestor(_))
            if was_source(own, found.drive, record) =>
        {
            LegVerdict::Apart
        }
        (LegState::Out | LegState::JustOut | LegState::Rebuilding, Kin::Same | Kin::Ancestor(_)) => {
            LegVerdict::Stale { full: lacks_unmarked(own, found.drive, record) }
        }
        // Too old to be placed: it may have been away through anything, so it starts from nothing.
        (LegState::Out | LegState::JustOut | LegState::Rebuilding, Kin::TooOld | Kin::Unrelated) => {
            LegVerdict::Stale { full: true }
        }
    }
}

/// Rule 1: the records that no other record descends from, with the drives that have each of them.
fn sides<'a>(
    found: &'a [Found],
    witness: Option<&'a MembershipRecord>,
) -> Vec<(&'a MembershipRecord, Vec<Uuid>)> {
    let mut records: Vec<&MembershipRecord> =
        found.iter().filter_map(|f| f.record.as_ref()).chain(witness).collect();
    // Of a record that some have and others have settled, the settled copy counts.
    records.sort_by_key(|r| core::cmp::Reverse(r.settled));
    let mut tips: Vec<&MembershipRecord> = vec![];
    for r in &records {
        let superseded = |later: &&MembershipRecord| {
            comes_before(r, later)
                || went_on(found, r, later) && is_cut_short(r, later) && !went_on(found, later, r)
        };
        if !records.iter().any(superseded) && !tips.iter().any(|t| t.incarnation == r.incarnation) {
            tips.push(r);
        }
    }
    tips.sort_by_key(|t| (core::cmp::Reverse(t.counter), t.incarnation));
    tips.iter()
        .map(|tip| {
            let stands = |r: &MembershipRecord| r.incarnation == tip.incarnation || comes_before(r, tip);
            let drives =
                found.iter().filter(|f| f.record.as_ref().is_some_and(stands)).map(|f| f.drive).collect();
            (*tip, drives)
        })
        .collect()
}

fn comes_before(r: &MembershipRecord, later: &MembershipRecord) -> bool {
    match r.kin(later) {
        Kin::Ancestor(_) => true,
        // Left behind while the others went on: then it still has those in sync that are in sync now. Legs that
        // joined since say nothing; if no other drive is left, nothing can be known.
        Kin::TooOld => {
            let now = later.arrays.iter().flat_map(|a| &a.legs).filter(|l| l.state == LegState::InSync);
            let mut then = now.filter_map(|l| r.leg(l.drive)).peekable();
            then.peek().is_some() && then.all(|old| old.state == LegState::InSync)
        }
        Kin::Same | Kin::Unrelated => false,
    }
}

/// Whether nothing was acknowledged behind the records of a line since it parted from another one: they were cut
/// short by the end of a head, as the settled one is of both lines, and by each array of it some leg was in sync that is
/// in sync by the other: whatever was acknowledged until then is there.
fn is_cut_short(r: &MembershipRecord, other: &MembershipRecord) -> bool {
    let settled = r.counter - r.lag_max();
    r.fork(other).is_some_and(|common| settled <= common)
        && other.arrays.iter().all(|array| {
            let mut now = array.legs.iter().filter(|l| l.state == LegState::InSync);
            now.any(|l| r.leg(l.drive).is_some_and(|then| then.state == LegState::InSync))
        })
}

/// Whether a leg that was in sync by `r` followed another line since that parted from it.
fn went_on(found: &[Found], r: &MembershipRecord, later: &MembershipRecord) -> bool {
    let Some(common) = r.fork(later) else { return false };
    found.iter().any(|f| {
        let in_sync =
            |record: &MembershipRecord| record.leg(f.drive).is_some_and(|l| l.state == LegState::InSync);
        let stands = |own: &MembershipRecord| {
            own.counter > common && (own.incarnation == later.incarnation || comes_before(own, later))
        };
        in_sync(r) && in_sync(later) && f.record.as_ref().is_some_and(stands)
    })
}

fn diverged(sides: &[(&MembershipRecord, Vec<Uuid>)]) -> Verdict {
    let side = |(r, drives): &(&MembershipRecord, Vec<Uuid>)| Side {
        incarnation: r.incarnation,
        counter: r.counter,
        head: r.head,
        drives: drives.clone(),
    };
    Verdict::Diverged(sides.iter().map(side).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use LegState::{InSync, JustOut, Out, Rebuilding, RebuildingFull};

    const ME: Uuid = Uuid([1; 16]);
    const YOU: Uuid = Uuid([2; 16]);

    fn drive(n: u8) -> Uuid {
        Uuid([100 + n; 16])
    }
    fn first(arrays: usize) -> MembershipRecord {
        let leg = |n: usize| MemberLeg::new(drive(n as u8), InSync);
        let arrays = (0..arrays)
            .map(|a| RecordArray { epoch: 1, rivals: 0, legs: vec![leg(2 * a), leg(2 * a + 1)] })
            .collect();
        MembershipRecord::first(Uuid([9; 16]), ME, 1, arrays)
    }
    fn next(
        r: &MembershipRecord,
        head: Uuid,
        incarnation: u64,
        changes: &[(u8, LegState)],
    ) -> MembershipRecord {
        let mut n = r.next(head, incarnation);
        n.settled = r.counter;
        for array in 0..n.arrays.len() {
            for leg in 0..n.arrays[array].legs.len() {
                let row = &n.arrays[array].legs[leg];
                match changes.iter().find(|(d, _)| drive(*d) == row.drive) {
                    Some((_, Out | JustOut)) => n.put_out(array, leg),
                    Some((_, state)) => n.arrays[array].legs[leg] = MemberLeg::new(row.drive, *state),
                    None => {}
                }
            }
        }
        n
    }
    fn found(n: u8, r: &MembershipRecord) -> Found {
        Found { drive: drive(n), record: Some(r.clone()) }
    }
    fn show(v: Verdict) -> String {
        match v {
            Verdict::Nothing => "nothing".into(),
            Verdict::Diverged(sides) => {
                let side = |s: &Side| {
                    format!(
                        "{}:{:?}",
                        s.incarnation,
                        s.drives.iter().map(|d| d.0[0] - 100).collect::<Vec<_>>()
                    )
                };
                format!("diverged {}", sides.iter().map(side).collect::<Vec<_>>().join(" "))
            }
            Verdict::Assembled(a) => {
                let leg = |l: &LegVerdict| match l {
                    LegVerdict::Current => "current",
                    LegVerdict::Stale { full: false } => "stale",
                    LegVerdict::Stale { full: true } => "full",
                    LegVerdict::Apart => "apart",
                    LegVerdict::Missing { in_sync: true } => "missing",
                    LegVerdict::Missing { in_sync: false } => "missing-out",
                };
                let array = |a: &ArrayVerdict| {
                    let legs = a.legs.iter().map(leg).collect::<Vec<_>>().join(",");
                    format!("{legs}{}", if a.proven { "" } else { "?" })
                };
                format!(
                    "{} {}",
                    a.record.incarnation,
                    a.arrays.iter().map(array).collect::<Vec<_>>().join(" ")
                )
            }
        }
    }
    fn check(f: &[Found], witness: Option<&MembershipRecord>, expected: &str) {
        assert_eq!(show(assemble(f, witness, ME, None)), expected);
    }

    #[test]
    fn everything_found_is_everything_used() {
        let r = first(2);
        let all = [found(0, &r), found(1, &r), found(2, &r), found(3, &r)];
        check(&all, Some(&r), "1 current,current current,current");
        check(&all, None, "1 current,current current,current");
        check(&[], None, "nothing");
        check(&[Found { drive: drive(0), record: None }], None, "nothing");
    }

    #[test]
    fn a_missing_leg_is_tolerated_only_where_the_witness_proves_the_other() {
        let r = first(1);
        check(&[found(0, &r)], Some(&r), "1 current,missing");
        check(&[found(0, &r)], None, "1 current,missing?");
        check(&[found(0, &r)], Some(&next(&r, ME, 2, &[(0, Out)])), "2 stale,missing?");
        let open = next(&r, ME, 2, &[]);
        check(&[found(0, &open)], Some(&r), "2 current,missing");
        let theirs = next(&r, YOU, 2, &[]);
        check(&[found(0, &theirs)], Some(&r), "2 current,missing?");
    }

    #[test]
    fn the_leg_that_was_failed_yesterday_is_not_the_truth_today() {
        let r = first(1);
        let lost = next(&r, ME, 2, &[(1, Out)]);
        check(&[found(0, &lost), found(1, &r)], Some(&lost), "2 current,stale");
        check(&[found(0, &lost), found(1, &r)], None, "2 current,stale");
        check(&[found(1, &r)], Some(&lost), "2 missing,stale?");
        check(&[found(1, &r)], None, "1 missing,current?");
    }

    #[test]
    fn another_arrays_drives_remember_too() {
        let r = first(2);
        let lost = next(&r, ME, 2, &[(0, Out)]);
        check(&[found(0, &r), found(2, &lost), found(3, &lost)], None, "2 stale,missing? current,current");
    }

    #[test]
    fn a_crash_while_a_record_is_written_leaves_either_record() {
        let r = first(1);
        let lost = next(&r, ME, 2, &[(1, Out)]);
        for (on0, on1, witness, expected) in [
            (&r, &r, &lost, "2 current,stale"),
            (&lost, &r, &r, "2 current,stale"),
            (&r, &lost, &r, "2 current,stale"),
            (&r, &r, &r, "1 current,current"),
        ] {
            check(&[found(0, on0), found(1, on1)], Some(witness), expected);
        }
        let synced = next(&next(&lost, ME, 3, &[(1, Rebuilding)]), ME, 4, &[(1, InSync)]);
        let rebuilding = next(&lost, ME, 3, &[(1, Rebuilding)]);
        check(&[found(0, &synced), found(1, &rebuilding)], Some(&rebuilding), "4 current,current");
        check(&[found(0, &rebuilding), found(1, &rebuilding)], Some(&rebuilding), "3 current,stale");
    }

    #[test]
    fn a_drive_that_was_being_copied_in_full_starts_again() {
        let r = next(&first(1), ME, 2, &[(1, RebuildingFull)]);
        check(&[found(0, &r), found(1, &r)], None, "2 current,full");
        let lost = next(&r, ME, 3, &[(1, Out)]);
        check(&[found(0, &lost), found(1, &r)], None, "3 current,full");
        let new = Found { drive: drive(1), record: None };
        check(&[found(0, &first(1)), new], Some(&first(1)), "1 current,full");
    }

    #[test]
    fn a_leg_in_sync_that_lost_our_writes_is_not_believed() {
        let r = first(1);
        let later = next(&next(&r, ME, 2, &[]), ME, 3, &[]);
        check(&[found(0, &later), found(1, &r)], Some(&later), "3 current,full");
    }

    #[test]
    fn a_leg_older_than_the_start_is_not_believed_once_the_record_of_it_is_settled() {
        let mut closed = next(&first(1), ME, 2, &[]);
        closed.settle();
        let open = next(&closed, ME, 3, &[]);
        let mut settled = open.clone();
        settled.settle();
        // The head fell before: nothing was answered.
        check(&[found(0, &open), found(1, &closed)], Some(&open), "3 current,current");
        // Behind it: leg 1 is an older copy, wherever the settled one is known.
        check(&[found(0, &settled), found(1, &closed)], Some(&settled), "3 current,full");
        check(&[found(0, &settled), found(1, &closed)], None, "3 current,full?");
        check(&[found(0, &open), found(1, &closed)], Some(&settled), "3 current,full");
        check(&[found(0, &settled), found(1, &open)], Some(&open), "3 current,current");
        // All legs are older: only the state directory can tell.
        check(&[found(0, &closed), found(1, &closed)], Some(&settled), "3 full,full?");
        check(&[found(0, &closed), found(1, &closed)], None, "2 current,current");
    }

    #[test]
    fn a_leg_that_is_out_and_older_than_its_loss_is_copied_in_full() {
        let mut r = first(1);
        r.settle();
        let mut later = next(&r, ME, 2, &[]);
        later.settle();
        let lost = next(&later, ME, 3, &[(1, Out)]);
        let now = next(&lost, ME, 4, &[]);
        check(&[found(0, &now), found(1, &later)], None, "4 current,stale");
        check(&[found(0, &now), found(1, &r)], None, "4 current,full");
        assert_eq!(judge_return(Some(&later), drive(1), &now), Return::Partial);
        assert_eq!(judge_return(Some(&r), drive(1), &now), Return::Full);
        // It returns, and is an older copy of then at the next start.
        let mut joined = next(&now, ME, 5, &[(1, Rebuilding)]);
        joined.settle();
        check(&[found(0, &joined), found(1, &joined)], None, "5 current,stale");
        check(&[found(0, &joined), found(1, &later)], None, "5 current,full");
        // An older program does not say how far back it may be.
        let mut unsaid = now.clone();
        unsaid.arrays[0].legs[1].reach = 0;
        check(&[found(0, &unsaid), found(1, &later)], None, "4 current,full");
    }

    #[test]
    fn two_histories_are_distinguished_by_parentage_and_refused_until_somebody_chooses() {
        let r = first(1);
        let mine = next(&r, ME, 2, &[(1, Out)]);
        let yours = next(&next(&r, YOU, 3, &[(0, Out)]), YOU, 4, &[]);
        let both = [found(0, &mine), found(1, &yours)];
        check(&both, None, "diverged 4:[1] 2:[0]");
        check(&both, Some(&mine), "diverged 4:[1] 2:[0]");
        check(&[found(1, &yours)], Some(&mine), "diverged 4:[1] 2:[]");
        assert_eq!(show(assemble(&both, Some(&mine), ME, Some(2))), "2 current,full");
        assert_eq!(show(assemble(&both, None, ME, Some(4))), "4 full,current");
        assert_eq!(show(assemble(&both, None, ME, Some(99))), "diverged 4:[1] 2:[0]");
    }

    #[test]
    fn a_leg_that_returns_is_judged_by_its_line() {
        let r = first(1);
        let lost = next(&r, ME, 2, &[(1, Out)]);
        let back = |own: Option<&MembershipRecord>| judge_return(own, drive(1), &next(&lost, ME, 3, &[]));
        assert_eq!(back(Some(&r)), Return::Partial);
        assert_eq!(back(Some(&lost)), Return::Partial);
        assert_eq!(back(None), Return::Full);
        // Nobody was out by it: its head fell as it wrote it, and nothing was answered without the other one.
        assert_eq!(back(Some(&next(&r, ME, 9, &[]))), Return::Full);
        // Whoever it was; but not one with a past of its own.
        assert_eq!(back(Some(&next(&r, YOU, 9, &[]))), Return::Full);
        assert_eq!(back(Some(&next(&next(&r, ME, 9, &[]), ME, 10, &[]))), Return::Diverged);
        assert_eq!(back(Some(&next(&r, ME, 9, &[(0, Out)]))), Return::Diverged);
        assert_eq!(back(Some(&next(&r, ME, 9, &[(1, RebuildingFull)]))), Return::Full);
        assert_eq!(back(Some(&next(&r, YOU, 9, &[(0, Out)]))), Return::Diverged);
        let copying = next(&lost, ME, 3, &[(1, RebuildingFull)]);
        assert_eq!(judge_return(Some(&copying), drive(1), &next(&copying, ME, 4, &[(1, Out)])), Return::Full);
    }

    #[test]
    fn a_leg_away_for_long_is_judged_by_its_own_mirror() {
        // Two mirrors: 0 and 1, 2 and 3. First 1 goes, then 3, and then 1 comes back.
        let mut r = first(1);
        let (mut other, epoch) = (r.arrays[0].clone(), r.arrays[0].epoch);
        for (leg, n) in other.legs.iter_mut().zip(2..) {
            leg.drive = drive(n);
        }
        r.arrays.push(RecordArray { epoch, ..other });
        let away = |r: &MembershipRecord| {
            let mut r = next(r, ME, 2, &[]);
            r.arrays[0].legs[1].state = Out;
            r
        };
        let left = away(&r);
        let mut now = (3..40).fold(left.clone(), |r, n| next(&r, ME, n, &[]));
        now.arrays[0].legs[1].state = InSync;
        now.arrays[1].legs[1].state = Out;
        assert_eq!(left.kin(&now), Kin::TooOld);
        assert_eq!(judge_return(Some(&left), drive(3), &now), Return::Full);
        // Not if its own partner was out by its record: it may hold what that one lacks.
        let mut alone = left.clone();
        alone.arrays[1].legs[0].state = Out;
        assert_eq!(judge_return(Some(&alone), drive(3), &now), Return::Diverged);
        // Nor if no drive is left that says so.
        now.arrays[1].legs[0].state = Out;
        assert_eq!(judge_return(Some(&left), drive(3), &now), Return::Diverged);
    }

    #[test]
    fn a_record_that_was_cut_short_is_no_history_of_its_own() {
        let mut line = first(1);
        line.arrays[0].legs.push(MemberLeg::new(drive(2), InSync));
        line.settle();
        // The head fell while it wrote its first record, which leg 1 alone has; the next one came up without it.
        let short = next(&line, ME, 2, &[]);
        let mut now = next(&line, ME, 3, &[(1, JustOut)]);
        assert_eq!(judge_return(Some(&short), drive(1), &now), Return::Full);
        check(&[found(0, &now), found(1, &short), found(2, &now)], Some(&now), "3 current,full,current");
        // It was cut short again, and leg 2 has not got the new one either.
        check(&[found(0, &now), found(1, &short), found(2, &line)], Some(&now), "3 current,full,current");
        // So it is if another leg was being put out, as long as there is one that stayed.
        let loses = next(&line, ME, 4, &[(2, JustOut)]);
        assert_eq!(judge_return(Some(&loses), drive(1), &now), Return::Full);
        // Not if those that are in sync now were out: there may be writes that they lack.
        let alone = next(&line, ME, 5, &[(0, JustOut), (2, JustOut)]);
        assert_eq!(judge_return(Some(&alone), drive(1), &now), Return::Diverged);
        // Nor if something behind the parting was settled.
        let mut settled = short.clone();
        settled.settle();
        let on = next(&settled, ME, 6, &[]);
        now = next(&now, ME, 7, &[]);
        assert_eq!(judge_return(Some(&on), drive(1), &now), Return::Diverged);
        // Without a drive that followed the other line since, neither line counts.
        let other = next(&line, YOU, 8, &[]);
        let both = [found(0, &line), found(1, &short), found(2, &other)];
        assert!(matches!(assemble(&both, None, ME, None), Verdict::Diverged(_)));
    }

    #[test]
    fn a_drive_left_behind_for_long_is_old_and_not_another_history() {
        let r = first(1);
        let mut line = next(&r, ME, 2, &[(1, Out)]);
        for i in 3..60 {
            line = next(&line, ME, i, &[]);
        }
        check(&[found(0, &line), found(1, &r)], Some(&line), "59 current,full");
        // But one that had put the others out went its own way.
        let own_way = next(&r, YOU, 99, &[(0, Out)]);
        check(&[found(0, &line), found(1, &own_way)], Some(&line), "diverged 59:[0] 99:[1]");
        // A drive that joined meanwhile says nothing of it; without a drive from that time it cannot be known.
        let mut joined = line.next(ME, 60);
        joined.arrays[0].legs.push(MemberLeg::new(drive(2), InSync));
        check(&[found(0, &joined), found(1, &r), found(2, &joined)], None, "60 current,full,current");
        check(&[found(0, &joined), found(1, &own_way)], Some(&joined), "diverged 60:[0] 99:[1]");
        joined.arrays[0].legs.remove(0);
        check(&[found(1, &r), found(2, &joined)], None, "diverged 60:[2] 1:[1]");
    }
}
