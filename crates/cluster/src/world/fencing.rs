//! Which drives of a world have confirmed that a head is shut out: a model of the layer above of a leader, which is in
//! `head`, `steward/system/fence.rs`.
//!
//! A drive has confirmed when no key on it belongs to a head that is out: neither the key of its last life in the system, nor an older
//! one. (A head that is not in and only votes has another key.) All drives are asked at once and in parallel, and again until they confirm.
//! The passing of time never makes a drive count as fenced.

use crate::fence::{AGAIN, ASK, PUT_OUT, stale_key};
use base::fence::Process;
use base::{Bug, Fence, FenceAct, FenceError, FenceKey, FenceOp, Instant, Uuid, planted, planted_if};
use std::collections::BTreeMap;

/// How far a drive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is being asked, since then.
    Asked(Instant),
    /// It did not do it, and is asked again then.
    Waits(Instant),
    /// No head that is out has a key there.
    Confirmed,
}

/// One head is shut off a number of drives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fencing {
    own: FenceKey,
    victim: FenceKey,
    /// The key under which it is in again, once it is.
    again: Option<FenceKey>,
    /// Its process on this machine, for drives that are files; None if it is known to be gone.
    process: Option<Process>,
    began: Instant,
    drives: BTreeMap<Uuid, State>,
    /// Keys of it that were found on drives, other than `victim`.
    older: BTreeMap<Uuid, FenceKey>,
}

impl Fencing {
    /// Begins now; every drive is asked with the first `due`.
    pub fn new(
        (own, victim): (FenceKey, FenceKey),
        process: Option<Process>,
        drives: impl IntoIterator<Item = Uuid>,
        now: Instant,
    ) -> Self {
        assert!(own != victim, "a head does not shut itself out");
        let drives = drives.into_iter().map(|d| (d, State::Waits(now))).collect();
        Self { own, victim, again: None, process, began: now, drives, older: BTreeMap::new() }
    }
    /// The head is in again, under this key: drives that have not confirmed leave that one alone.
    pub fn let_in(&mut self, key: FenceKey) {
        self.again = Some(key);
    }
    /// Drives that are to be asked now, and what.
    pub fn due(&mut self, now: Instant) -> Vec<(Uuid, FenceOp)> {
        let mut asked = vec![];
        for (drive, state) in &mut self.drives {
            if matches!(state, State::Waits(at) if *at <= now) {
                *state = State::Asked(now);
                let victim = self.older.get(drive).copied().unwrap_or(self.victim);
                let act = FenceAct::ShutOut { key: self.own, victim, process: self.process };
                asked.push((*drive, FenceOp { act, limit: ASK }));
            }
        }
        asked
    }
    /// A drive was asked. That it did as it was asked says nothing by itself: the keys that are there now do.
    pub fn on_done(&mut self, drive: Uuid, result: &Result<Fence, FenceError>, now: Instant) {
        let Some(state) = self.drives.get_mut(&drive).filter(|s| **s != State::Confirmed) else { return };
        let fenced = match result {
            Ok(Fence::Keys(there)) => {
                let older = stale_key(there, self.victim, self.again);
                if let Some(older) = older.filter(|_| there.has(self.own)) {
                    // The drive did as it was asked, and there is more to do: at once.
                    self.older.insert(drive, older);
                    *state = State::Waits(now);
                    return;
                }
                there.has(self.own)
            }
            Ok(Fence::File { others }) => !others,
            Err(FenceError::TimedOut) => planted(Bug::FenceTimedOutIsGood),
            Err(_) => false,
        };
        *state = if fenced { State::Confirmed } else { State::Waits(now + AGAIN) };
    }
    /// How far a drive is; None for one that is not to be fenced.
    pub fn state(&self, drive: Uuid) -> Option<State> {
        self.drives.get(&drive).copied()
    }
    /// Whether all that lies on these drives may be served.
    pub fn confirmed(&self, drives: impl IntoIterator<Item = Uuid>) -> bool {
        let drives = drives.into_iter().map(|d| self.state(d) == Some(State::Confirmed));
        let confirmed: Vec<bool> = drives.collect();
        let (all, any) = (!confirmed.contains(&false), confirmed.contains(&true));
        if planted_if(Bug::ServedBeforeLastFence, || any != all) { any } else { all }
    }
    /// Drives that have not confirmed.
    pub fn late(&self) -> Vec<Uuid> {
        self.drives.iter().filter(|(_, s)| **s != State::Confirmed).map(|(d, _)| *d).collect()
    }
    /// Drives that have not confirmed by now although their time is over: legs on them are to be put out, but for a last one.
    pub fn overdue(&self, now: Instant) -> Vec<Uuid> {
        if now.since(self.began) >= PUT_OUT { self.late() } else { vec![] }
    }
    /// When `due` or `overdue` has something new.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let again = self.drives.values().filter_map(|s| match s {
            State::Waits(at) => Some(*at),
            _ => None,
        });
        let over = self.began + PUT_OUT;
        again.chain((over > now && !self.late().is_empty()).then_some(over)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use base::fence::Registrants;

    const OWN: u64 = 0xa1;
    const VICTIM: u64 = 0x8000_00b1;
    const FAILED: Result<Fence, FenceError> = Err(FenceError::TimedOut);

    fn key(n: u64) -> FenceKey {
        FenceKey::new(n).expect("not zero")
    }
    fn keys(there: &[u64]) -> Result<Fence, FenceError> {
        let keys = there.iter().map(|n| key(*n)).collect();
        Ok(Fence::Keys(Registrants { keys, ..Registrants::default() }))
    }

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }
    fn drive(n: u8) -> Uuid {
        Uuid([n; 16])
    }
    fn begun(drives: u8) -> Fencing {
        let mut f = Fencing::new((key(OWN), key(VICTIM)), None, (1..=drives).map(drive), at(0));
        let all: Vec<Uuid> = f.due(at(0)).iter().map(|(drive, _)| *drive).collect();
        assert_eq!(all, (1..=drives).map(drive).collect::<Vec<_>>(), "all at once");
        assert_eq!(f.due(at(1)), vec![], "and once");
        f
    }

    #[test]
    fn the_keys_that_are_there_say_whether_a_drive_is_fenced() {
        let mut f = begun(5);
        f.on_done(drive(1), &keys(&[OWN]), at(5));
        f.on_done(drive(2), &keys(&[OWN, VICTIM]), at(5));
        // Nobody is registered: it forgot us, too, and would take anybody.
        f.on_done(drive(3), &keys(&[]), at(5));
        f.on_done(drive(4), &FAILED, at(5));
        f.on_done(drive(5), &Ok(Fence::File { others: false }), at(5));
        assert_eq!(f.late(), [drive(2), drive(3), drive(4)]);
        assert!(f.confirmed([drive(1)]) && !f.confirmed([drive(1), drive(2)]) && !f.confirmed([drive(9)]));
    }

    #[test]
    fn a_drive_that_does_not_confirm_is_asked_again_and_never_believed() {
        let mut f = begun(2);
        f.on_done(drive(1), &keys(&[OWN]), at(5));
        let mut asked = 1;
        f.on_done(drive(2), &FAILED, at(200));
        for ms in 201..60_000 {
            for (drive, _) in f.due(at(ms)) {
                asked += 1;
                f.on_done(drive, &FAILED, at(ms + 199));
            }
        }
        assert!(asked > 100, "it was asked {asked} times");
        assert_eq!(
            (f.late(), f.overdue(at(2499)), f.overdue(at(2500))),
            (vec![drive(2)], vec![], vec![drive(2)])
        );
        f.on_done(drive(2), &keys(&[OWN, 0xc1]), at(60_000));
        assert_eq!((f.late(), f.overdue(at(60_001)), f.next_deadline(at(60_001))), (vec![], vec![], None));
    }

    #[test]
    fn an_older_key_of_the_victim_is_taken_away_too_and_those_that_may_be_there_are_left() {
        let (older, outside, again) = (VICTIM - 3, 0x8000_0000, VICTIM + 5);
        let mut f = begun(1);
        f.on_done(drive(1), &keys(&[OWN, older]), at(5));
        assert_eq!(f.late(), [drive(1)]);
        let due = f.due(at(5));
        let act = FenceAct::ShutOut { key: key(OWN), victim: key(older), process: None };
        assert_eq!(due, [(drive(1), FenceOp { act, limit: ASK })]);
        f.on_done(drive(1), &keys(&[OWN, again]), at(6));
        assert_eq!(f.late(), [drive(1)], "it is not in");
        f.let_in(key(again));
        f.due(at(6));
        f.on_done(drive(1), &keys(&[OWN, outside, again]), at(7));
        assert!(f.confirmed([drive(1)]));
    }

    #[test]
    fn one_that_is_confirmed_stays_so() {
        let mut f = begun(2);
        f.on_done(drive(1), &keys(&[OWN]), at(5));
        f.on_done(drive(1), &FAILED, at(6));
        assert!(f.confirmed([drive(1)]));
        assert_eq!((f.late(), f.next_deadline(at(8))), (vec![drive(2)], Some(at(2500))));
    }
}
