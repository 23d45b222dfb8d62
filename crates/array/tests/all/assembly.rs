//! Every history of a mirror up to some length, as crashes leave it: what assembly may make of it.
//!
//! A history is made of steps (a leg is lost, returns, is in sync again, leaves; a drive joins) and of crashes. A step writes a
//! record to every place that it can reach, and is acknowledged behind when all have it; a crash leaves it on
//! any of them, and the head comes up again with some of the legs, which is a record too, that a crash
//! may cut short. Behind a record comes its settled copy, or the next step. In every state so reached any of the places may
//! be all that is found, and a leg may be an older copy of itself.

use array::format::{
    Assembly, Found, LegState, LegVerdict, MemberLeg, MembershipRecord, RecordArray, Verdict, assemble,
};
use base::Uuid;
use std::collections::BTreeSet;

const ME: Uuid = Uuid([1; 16]);

/// Places that hold a record: the legs, a drive of another array, and the witness, in this order.
#[derive(Clone)]
struct World {
    on: Vec<MembershipRecord>,
    /// What the head that is up goes by.
    current: MembershipRecord,
    /// Number of the last write acknowledged, and that each leg has.
    acknowledged: u32,
    has: Vec<u32>,
    /// Every head so far found every leg.
    whole: bool,
    /// The settled copy of the current record is everywhere.
    settled: bool,
    /// What each leg had before, and the earliest record that it may rightly have.
    copies: Vec<Vec<MembershipRecord>>,
    earliest: Vec<u64>,
}

/// The places of a set.
fn members(set: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |i| set & 1 << i != 0)
}
fn drive(place: usize) -> Uuid {
    Uuid([100 + place as u8; 16])
}
fn place(drive: Uuid) -> usize {
    usize::from(drive.0[0] - 100)
}
/// Counter of the latest record that two have in common: all are of one pool.
fn common(a: &MembershipRecord, b: &MembershipRecord) -> u64 {
    let line = |r: &MembershipRecord| {
        let mut line = vec![(r.counter, r.incarnation)];
        line.extend(r.ancestors.iter().zip(1..).filter(|(x, _)| **x != 0).map(|(x, n)| (r.counter - n, *x)));
        line
    };
    let other = line(b);
    line(a).into_iter().find(|x| other.contains(x)).expect("they begin with the same").0
}
fn is_out(state: Option<LegState>) -> bool {
    matches!(state, None | Some(LegState::Out | LegState::JustOut))
}

impl World {
    /// A mirror of `legs`, and so many drives that may join it.
    fn new(legs: usize, more: usize) -> Self {
        let leg = |place| MemberLeg::new(drive(place), LegState::InSync);
        let mirror = RecordArray { epoch: 1, rivals: 0, legs: (0..legs).map(leg).collect() };
        let drives = legs + more;
        let other = RecordArray { epoch: 1, rivals: 0, legs: vec![leg(drives)] };
        let mut record = MembershipRecord::first(Uuid([9; 16]), ME, 1, vec![mirror, other]);
        record.settle();
        Self {
            on: vec![record.clone(); drives + 2],
            current: record,
            acknowledged: 0,
            has: vec![0; drives],
            whole: true,
            settled: true,
            copies: vec![vec![]; drives],
            earliest: vec![1; drives],
        }
    }
    fn legs(&self) -> usize {
        self.has.len()
    }
    /// What a drive is by a record; None for no leg.
    fn state_by(record: &MembershipRecord, leg: usize) -> Option<LegState> {
        record.arrays[0].legs.iter().find(|l| l.drive == drive(leg)).map(|l| l.state)
    }
    fn state(&self, leg: usize) -> Option<LegState> {
        Self::state_by(&self.current, leg)
    }
    fn assemble(&self, places: u32) -> Option<Assembly> {
        let witness = self.legs() + 1;
        let found = |place: usize| Found { drive: drive(place), record: Some(self.on[place].clone()) };
        let drives: Vec<Found> = members(places).filter(|p| *p != witness).map(found).collect();
        let witness = (places & 1 << witness != 0).then(|| &self.on[witness]);
        match assemble(&drives, witness, ME, None) {
            Verdict::Assembled(a) => Some(a),
            Verdict::Diverged(_) => None,
            Verdict::Nothing => panic!("every place has a record"),
        }
    }
    /// A place takes a record.
    fn take(&mut self, place: usize, record: &MembershipRecord) {
        let before = core::mem::replace(&mut self.on[place], record.clone());
        if let Some(copies) = self.copies.get_mut(place) {
            copies.push(before);
        }
    }
    /// Legs that are written, by the current record.
    fn written(&self) -> impl Iterator<Item = usize> {
        (0..self.legs()).filter(|leg| !is_out(self.state(*leg)))
    }
    /// Its records, a line each.
    fn describe(&self) -> String {
        let line = |(place, r): (usize, &MembershipRecord)| {
            let legs: Vec<_> = r.arrays[0].legs.iter().map(|l| l.state).collect();
            format!(
                "\n  {place}: {} of {}, behind {}, settled {}: {legs:?}, rivals {:b}",
                r.incarnation, r.counter, r.ancestors[0], r.settled, r.arrays[0].rivals
            )
        };
        self.on.iter().enumerate().map(line).collect::<String>()
            + &format!("\n  writes {:?} of {}", self.has, self.acknowledged)
    }
    /// What a later step distinguishes one world from another by.
    fn key(&self) -> Vec<u8> {
        let mut key = vec![u8::from(self.whole)];
        let all = || self.on.iter().chain([&self.current]);
        for a in all() {
            key.extend(a.arrays[0].legs.iter().flat_map(|l| [l.drive.0[0], l.state as u8, l.reach]));
            key.extend([a.lag_max() as u8, a.arrays[0].rivals]);
            key.extend(all().map(|b| a.counter - common(a, b)).map(|n| n as u8));
        }
        key.extend(self.has.iter().map(|has| (self.acknowledged - has).min(2) as u8));
        key
    }
}

/// Where a record goes.
#[derive(Clone, Copy)]
struct Reach {
    /// Places that it does not reach.
    away: u32,
    /// Those that have it before the others.
    first: u32,
    /// A head comes up by it.
    opens: bool,
}

#[derive(Default)]
struct Search {
    seen: BTreeSet<Vec<u8>>,
    incarnation: u64,
    /// States looked at, how often a leg was current though two records or more behind, and how often it was an older copy.
    states: u64,
    behind: u64,
    older: u64,
}

impl Search {
    fn next(&mut self, record: &MembershipRecord) -> MembershipRecord {
        self.incarnation += 1;
        record.next(ME, 1000 + self.incarnation)
    }

    /// Any places may be all that is found: never may a leg be proven current that lacks an acknowledged
    /// write. And if nobody ever missed anything, nobody has to say which leg is right.
    fn look(&mut self, w: &World) {
        self.states += 1;
        let all = (1 << w.on.len()) - 1;
        for places in 1..=all {
            let assembly = w.assemble(places);
            if places == all && w.whole {
                let array = &assembly.as_ref().expect("one history").arrays[0];
                assert!(array.proven, "everything is there, and is not believed: {array:?}{}", w.describe());
            }
            let Some(a) = assembly else { continue };
            for (leg, verdict) in a.record.arrays[0].legs.iter().zip(&a.arrays[0].legs) {
                let leg = place(leg.drive);
                let own = w.on[leg].incarnation;
                let near = own == a.record.incarnation || own == a.record.ancestors[0];
                self.behind += u64::from(*verdict == LegVerdict::Current && !near);
                if *verdict == LegVerdict::Current && a.arrays[0].proven {
                    assert_eq!(w.has[leg], w.acknowledged, "leg {leg} of {places:b} in{}", w.describe());
                }
            }
        }
    }

    /// Where a leg is an older copy of itself than it may rightly be, it is not taken for current, nor do bitmaps say what it
    /// lacks, as long as one place knows of the record that is in force.
    fn look_at_copies(&mut self, w: &World) {
        for leg in 0..w.legs() {
            if !w.settled && w.written().any(|l| l == leg) {
                continue;
            }
            for copy in w.copies[leg].iter().filter(|copy| copy.counter < w.earliest[leg]) {
                let mut now = w.clone();
                now.on[leg] = copy.clone();
                let knows =
                    |place: &usize| *place != leg && w.on[*place].incarnation == w.current.incarnation;
                for other in (0..w.on.len()).filter(knows) {
                    let Some(a) = now.assemble(1 << leg | 1 << other) else { continue };
                    let rows = &a.record.arrays[0].legs;
                    let Some(nth) = rows.iter().position(|row| row.drive == drive(leg)) else { continue };
                    self.older += 1;
                    let verdict = a.arrays[0].legs[nth];
                    let refused = matches!(verdict, LegVerdict::Stale { full: true } | LegVerdict::Apart);
                    assert!(
                        refused,
                        "leg {leg}, an older copy of {}, beside {other}: {verdict:?}{}",
                        copy.incarnation,
                        w.describe()
                    );
                }
            }
        }
    }

    /// The head is up: it makes a step, or falls while it makes one.
    fn go(&mut self, w: &World, steps: u32, crashes: u32) {
        if steps == 0 || !self.is_new(w, steps, crashes) {
            return;
        }
        for leg in 0..w.legs() {
            let others = (0..w.legs()).any(|l| l != leg && w.state(l) == Some(LegState::InSync));
            let to = match w.state(leg) {
                Some(LegState::InSync) if others => LegState::JustOut,
                Some(LegState::InSync) => continue,
                Some(LegState::Out | LegState::JustOut) => {
                    self.leave(w, leg, steps, crashes);
                    LegState::Rebuilding
                }
                Some(LegState::Rebuilding | LegState::RebuildingFull) => LegState::InSync,
                None => LegState::Rebuilding,
            };
            let mut next = w.clone();
            let mut record = self.next(&w.current);
            match record.arrays[0].legs.iter().position(|l| l.drive == drive(leg)) {
                Some(nth) if to == LegState::JustOut => record.put_out(0, nth),
                Some(nth) => record.arrays[0].legs[nth] = MemberLeg::new(drive(leg), to),
                None => {
                    record.arrays[0].legs.push(MemberLeg::new(drive(leg), to));
                    // It was labelled with the record before, which does not name it.
                    next.on[leg] = w.current.clone();
                }
            }
            if to == LegState::InSync {
                next.has[leg] = w.acknowledged;
            }
            // Who becomes in sync takes the record behind those that were.
            let first = match to {
                LegState::InSync => {
                    members((1 << w.legs()) - 1).filter(|l| w.state(*l) == Some(to)).map(|l| 1 << l).sum()
                }
                _ => 0,
            };
            if to == LegState::InSync {
                self.refuse(&next, &record, leg, first, steps - 1, crashes);
            }
            self.write(next, record, Reach { away: 0, first, opens: false }, steps - 1, crashes);
        }
    }
    /// A leg does not become in sync, since one of those that must have the record first did not take it (or said
    /// so): the head goes on from a record behind it that takes that back, and is not written by itself.
    fn refuse(
        &mut self,
        w: &World,
        record: &MembershipRecord,
        leg: usize,
        first: u32,
        steps: u32,
        crashes: u32,
    ) {
        for places in (0..=first).filter(|p| p & !first == 0) {
            let mut now = w.clone();
            members(places).for_each(|place| now.take(place, record));
            now.settled = false;
            let before = now.current.arrays[0].clone();
            now.current = self.next(record);
            let row = |l: &&mut MemberLeg| l.drive == drive(leg);
            now.current.arrays[0].legs.iter_mut().find(row).expect("it is a leg").state =
                before.legs.iter().find(|l| l.drive == drive(leg)).expect("it is a leg").state;
            self.go(&now, steps, crashes);
        }
    }
    /// A leg that is out leaves.
    fn leave(&mut self, w: &World, leg: usize, steps: u32, crashes: u32) {
        let mut record = self.next(&w.current);
        let nth = record.arrays[0].legs.iter().position(|l| l.drive == drive(leg)).expect("it is a leg");
        if record.is_gone(0, nth) {
            record.remove(0, nth);
            self.write(w.clone(), record, Reach { away: 0, first: 0, opens: false }, steps - 1, crashes);
        }
    }

    /// A record is written. A crash may come between any two places. A write is acknowledged that only the legs written to have
    /// once it is on record; of a head that comes up once the settled copy is.
    fn write(&mut self, w: World, record: MembershipRecord, reach: Reach, steps: u32, crashes: u32) {
        let Reach { away, first, opens } = reach;
        // Who is out, or no leg, is not there to be written.
        let out: u32 = (0..w.legs()).filter(|l| is_out(World::state_by(&record, *l))).map(|l| 1 << l).sum();
        let reached = ((1 << w.on.len()) - 1) & !away & !out;
        for places in (0..=reached).filter(|p| p & !reached == 0) {
            if places & !first != 0 && places & first != first {
                continue;
            }
            let mut now = w.clone();
            members(places).for_each(|place| now.take(place, &record));
            now.settled = false;
            self.look(&now);
            self.fall(&now, steps, crashes);
            if places == reached {
                now.current = record.clone();
                now.current.settle();
                let written: Vec<usize> = now.written().collect();
                written.into_iter().for_each(|leg| now.earliest[leg] = record.counter);
                if !opens {
                    self.acknowledge(&mut now);
                    self.go(&now, steps, crashes);
                }
                self.settle(now, reached, opens, steps, crashes);
            }
        }
    }
    /// The settled copy of the current record is written to these places.
    fn settle(&mut self, mut w: World, reached: u32, opens: bool, steps: u32, crashes: u32) {
        let copy = w.current.clone();
        for place in members(reached) {
            w.on[place] = copy.clone();
            self.look(&w);
            self.fall(&w, steps, crashes);
        }
        w.settled = true;
        if opens {
            self.acknowledge(&mut w);
        }
        self.look_at_copies(&w);
        self.go(&w, steps, crashes);
    }
    fn acknowledge(&mut self, now: &mut World) {
        now.acknowledged += 1;
        for leg in members((1 << now.legs()) - 1) {
            if now.state(leg) == Some(LegState::InSync) {
                now.has[leg] = now.acknowledged;
            }
        }
        self.look(now);
        self.look_at_copies(now);
    }
    /// The head may fall, and come up with any of the legs.
    fn fall(&mut self, now: &World, steps: u32, crashes: u32) {
        if crashes > 0 {
            for there in 1..1u32 << now.legs() {
                self.restart(now, there, steps, crashes - 1);
            }
        }
    }

    /// A head comes up with the legs that are `there`, and goes on if it may.
    fn restart(&mut self, w: &World, there: u32, steps: u32, crashes: u32) {
        let legs = (1 << w.legs()) - 1;
        let away = legs & !there;
        let mut up = w.clone();
        up.whole &= away == 0;
        if !self.is_new(&up, steps, 100 + crashes * 16 + there) {
            return;
        }
        // Two unfinished records, each of which has the other's drives out, look like two histories: the operator decides.
        let Some(a) = w.assemble(((1 << w.on.len()) - 1) & !away) else { return };
        if !a.arrays[0].proven {
            return;
        }
        let mut record = self.next(&a.record);
        for (leg, verdict) in a.arrays[0].legs.iter().enumerate() {
            let state = match verdict {
                LegVerdict::Current => LegState::InSync,
                LegVerdict::Stale { full: false } => LegState::Rebuilding,
                LegVerdict::Stale { full: true } => LegState::RebuildingFull,
                LegVerdict::Missing { .. } | LegVerdict::Apart => {
                    record.put_out(0, leg);
                    continue;
                }
            };
            let drive = record.arrays[0].legs[leg].drive;
            record.arrays[0].legs[leg] = MemberLeg::new(drive, state);
        }
        let settled = a.record.counter - a.record.lag_max();
        up.earliest.iter_mut().for_each(|earliest| *earliest = settled.min(*earliest));
        up.current = a.record;
        self.write(up, record, Reach { away, first: 0, opens: true }, steps, crashes);
    }

    fn is_new(&mut self, w: &World, steps: u32, crashes: u32) -> bool {
        let mut key = w.key();
        key.extend([steps as u8, crashes as u8]);
        self.seen.insert(key)
    }
}

fn search(legs: usize, more: usize, steps: u32, crashes: u32) {
    let mut search = Search::default();
    search.go(&World::new(legs, more), steps, crashes);
    assert!(search.states > 5000, "{}", search.states);
    assert!(search.older > 1000, "older copies: {}", search.older);
    assert!(search.behind > 1000, "heads that fall one after the other leave legs behind: {}", search.behind);
}

#[test]
fn no_leg_is_proven_current_that_lacks_an_acknowledged_write() {
    search(2, 0, 5, 1);
    search(2, 0, 3, 2);
    search(2, 0, 1, 3);
}

#[test]
fn nor_one_of_three() {
    search(3, 0, 2, 1);
    search(3, 0, 1, 2);
}

#[test]
fn nor_while_drives_join_and_leave() {
    search(2, 1, 3, 1);
    search(2, 1, 1, 2);
}
