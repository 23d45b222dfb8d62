//! Which drives of pools each head reaches, as far as both have said.

use base::{DriveId, Duration, Instant, Uuid};
use std::collections::{BTreeMap, BTreeSet};

/// A drive that the follower does not reach for so long is told of: one that has come to a pool just now is being opened there.
const GRACE: Duration = Duration::from_secs(2);
/// A drive that the follower does not reach for so long need not be tried on it: it has had the time to open it.
const NO_PATH: Duration = Duration::from_secs(10);
/// A drive that does not answer so many looks in a row is not reached.
const SILENCES: u32 = 2;

/// What a drive that the follower does not reach is taken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Lacks {
    /// It is about to be opened there, perhaps.
    Perhaps,
    /// It is not reached, and that was told.
    Told,
    /// The follower has no path to it.
    NoPath,
}

/// A drive that this head has open and the follower does not reach.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Lack {
    path: String,
    since: Instant,
    is: Lacks,
}

/// What became known of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ReachNews {
    /// The follower does not reach it.
    Lost(String),
    /// It does again.
    Back(String),
}

/// What is known of drives that heads reach.
#[derive(Default)]
pub(crate) struct Reach {
    /// What the other head was told since one of both was let in.
    told: Option<BTreeSet<Uuid>>,
    /// What the other head has said since, as far as it counts here.
    other: Option<BTreeSet<Uuid>>,
    /// What it has come to reach since then does not yet count: by which of the things that it said.
    unseen: BTreeMap<Uuid, u64>,
    said: u64,
    /// Of the head that leads.
    lacks: BTreeMap<Uuid, Lack>,
    /// Of a follower: what drives of pools are opened by; and looks in a row that an open one has not answered.
    wanted: BTreeSet<String>,
    silences: BTreeMap<DriveId, u32>,
    /// Of a follower: open drives of which it has asked whether they count, by the numbers of the questions; and those that do.
    asked: BTreeMap<u64, DriveId>,
    counted: BTreeSet<DriveId>,
}

impl Reach {
    /// A head was let in: both say anew what they reach.
    pub fn is_new(&mut self) {
        (self.told, self.other) = (None, None);
        self.unseen.clear();
        self.asked.clear();
        self.counted.clear();
        self.lacks.clear();
    }
    /// This is what this head reaches; true: the other one does not know it.
    pub fn is_news(&mut self, drives: &BTreeSet<Uuid>) -> bool {
        let news = self.told.as_ref() != Some(drives);
        self.told = Some(drives.clone());
        news
    }
    /// The other head says what it reaches. What it did not reach before counts once `has_seen` says so: those drives, each with the number
    /// of what was said.
    pub fn other_says(&mut self, drives: &BTreeSet<Uuid>) -> Vec<(Uuid, u64)> {
        self.said += 1;
        let known = self.other.get_or_insert_default();
        known.retain(|drive| drives.contains(drive));
        self.unseen.retain(|drive, _| drives.contains(drive));
        let new = |drive: &&Uuid| !known.contains(*drive) && !self.unseen.contains_key(*drive);
        let new: Vec<(Uuid, u64)> = drives.iter().filter(new).map(|drive| (*drive, self.said)).collect();
        self.unseen.extend(new.iter().copied());
        new
    }
    /// Whether it is to be looked at a drive that the other head has opened, for that one of the things that it said.
    pub fn is_unseen(&self, drive: Uuid, said: u64) -> bool {
        self.unseen.get(&drive) == Some(&said)
    }
    /// The other head has opened a drive, and what it reads there does not count yet.
    pub fn waits_for_look(&self, drive: Uuid) -> bool {
        self.unseen.contains_key(&drive)
    }
    /// This head reaches the drive, too, or has nothing open there. True: it counts from now on.
    pub fn has_seen(&mut self, drive: Uuid, said: u64) -> bool {
        let seen = self.is_unseen(drive, said);
        if seen {
            self.unseen.remove(&drive);
            self.other.get_or_insert_default().insert(drive);
        }
        seen
    }
    /// It has let go of a drive: it says anew what it reaches once it has opened that again.
    pub fn other_lets_go(&mut self, drive: Uuid) {
        self.unseen.remove(&drive);
        if let Some(drives) = &mut self.other {
            drives.remove(&drive);
        }
    }
    /// This head lets go of a drive that the other one knows that it reaches.
    pub fn lets_go(&mut self) {
        self.told = None;
    }
    /// What it has said, as far as that counts.
    pub fn of_other(&self) -> Option<&BTreeSet<Uuid>> {
        self.other.as_ref()
    }

    /// This head, which leads, has these drives open, by their paths. What is news of the follower.
    pub fn compare(&mut self, now: Instant, here: &BTreeMap<Uuid, String>) -> Vec<ReachNews> {
        let Some(there) = &self.other else { return vec![] };
        let mut news = vec![];
        self.lacks.retain(|uuid, lack| {
            let back = there.contains(uuid);
            if back && lack.is > Lacks::Perhaps {
                news.push(ReachNews::Back(lack.path.clone()));
            }
            // What is no drive of a pool any more is missed by nobody.
            !back && here.contains_key(uuid)
        });
        for (uuid, path) in here.iter().filter(|(uuid, _)| !there.contains(uuid)) {
            let new = || Lack { path: path.clone(), since: now, is: Lacks::Perhaps };
            let lack = self.lacks.entry(*uuid).or_insert_with(new);
            let is = match now.since(lack.since) {
                time if time >= NO_PATH => Lacks::NoPath,
                time if time >= GRACE => Lacks::Told,
                _ => Lacks::Perhaps,
            };
            if lack.is == Lacks::Perhaps && is > Lacks::Perhaps {
                news.push(ReachNews::Lost(lack.path.clone()));
            }
            lack.is = is;
        }
        news
    }
    /// The follower does not reach a drive, and has had the time to open it.
    pub fn is_lacked(&self, drive: Uuid) -> bool {
        self.lacks.get(&drive).is_some_and(|lack| lack.is > Lacks::Perhaps)
    }
    /// The follower has no path to a drive, for some time now.
    pub fn has_no_path(&self, drive: Uuid) -> bool {
        self.lacks.get(&drive).is_some_and(|lack| lack.is == Lacks::NoPath)
    }
    /// Drives that the follower does not reach, by their paths here.
    pub fn lacks(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.lacks.values().filter(|l| l.is > Lacks::Perhaps).map(|l| l.path.clone()).collect();
        all.sort();
        all
    }

    /// By these the drives of all pools are opened.
    pub fn wants(&mut self, specs: BTreeSet<String>) {
        self.wanted = specs;
    }
    pub fn wanted(&self) -> &BTreeSet<String> {
        &self.wanted
    }
    /// A drive was looked at, and answered or not; true: it is not reached any more.
    pub fn is_lost(&mut self, drive: DriveId, answered: bool) -> bool {
        if answered {
            self.silences.remove(&drive);
            return false;
        }
        let silences = self.silences.entry(drive).or_default();
        *silences += 1;
        let lost = *silences >= SILENCES;
        if lost {
            self.silences.remove(&drive);
        }
        lost
    }
    /// Of these open drives, by their labels, those that the other head was told of and not asked whether they count.
    pub fn to_ask(&self, open: impl Iterator<Item = (DriveId, Uuid)>) -> Vec<(DriveId, Uuid)> {
        let is_told = |drive: &Uuid| self.told.as_ref().is_some_and(|told| told.contains(drive));
        let is_asked = |id: &DriveId| self.counted.contains(id) || self.asked.values().any(|of| of == id);
        open.filter(|(id, drive)| is_told(drive) && !is_asked(id)).collect()
    }
    /// The other head is asked whether an open drive counts.
    pub fn asks(&mut self, number: u64, drive: DriveId) {
        self.asked.insert(number, drive);
    }
    /// It has answered.
    pub fn is_answered(&mut self, number: u64, counts: bool) {
        if let Some(drive) = self.asked.remove(&number).filter(|_| counts) {
            self.counted.insert(drive);
        }
    }
    /// The head that leads, or led, has said that an open drive counts.
    pub fn counts(&self, drive: DriveId) -> bool {
        self.counted.contains(&drive)
    }
    /// This head has let go of a drive: its number may be another one's.
    pub fn is_closed(&mut self, drive: DriveId) {
        self.asked.retain(|_, of| *of != drive);
        self.counted.remove(&drive);
    }
    /// Only these are open.
    pub fn only(&mut self, open: &BTreeSet<DriveId>) {
        self.silences.retain(|drive, _| open.contains(drive));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(1_000_000_000 + ms * 1_000_000)
    }
    fn here(drives: &[u8]) -> BTreeMap<Uuid, String> {
        drives.iter().map(|d| (Uuid([*d; 16]), format!("/dev/{d}"))).collect()
    }
    fn there(drives: &[u8]) -> BTreeSet<Uuid> {
        drives.iter().map(|d| Uuid([*d; 16])).collect()
    }
    /// The other head reaches these, and so does this one.
    fn both_reach(reach: &mut Reach, drives: &[u8]) {
        for (drive, said) in reach.other_says(&there(drives)) {
            assert!(reach.has_seen(drive, said));
        }
    }

    #[test]
    fn a_drive_that_the_follower_does_not_reach_is_told_once_and_so_is_its_return() {
        let mut reach = Reach::default();
        assert_eq!(reach.compare(at(0), &here(&[1, 2])), [], "nothing is known yet");
        both_reach(&mut reach, &[1]);
        assert_eq!(reach.compare(at(100), &here(&[1, 2])), [], "it may be opening it");
        assert!(reach.lacks().is_empty());
        let lost = [ReachNews::Lost("/dev/2".into())];
        assert_eq!(reach.compare(at(2100), &here(&[1, 2])), lost);
        assert_eq!((reach.compare(at(2600), &here(&[1, 2])), reach.lacks()), (vec![], vec!["/dev/2".into()]));
        both_reach(&mut reach, &[1, 2]);
        assert_eq!(reach.compare(at(3000), &here(&[1, 2])), [ReachNews::Back("/dev/2".into())]);
        assert!(reach.lacks().is_empty());
        // Not long enough to be told of; and what leaves its pool.
        both_reach(&mut reach, &[2]);
        assert_eq!(reach.compare(at(4000), &here(&[1, 2])), []);
        assert_eq!(reach.compare(at(6500), &here(&[2])), []);
        both_reach(&mut reach, &[]);
        assert_eq!(reach.compare(at(7000), &here(&[2])), []);
        both_reach(&mut reach, &[2]);
        assert_eq!(reach.compare(at(8000), &here(&[2])), []);
        assert!(reach.lacks().is_empty());
    }
    /// A drive that lost its power alone has lost what its cache had, and the first head to open it anew does not know that.
    #[test]
    fn a_drive_that_the_other_head_opens_anew_counts_once_this_one_has_looked_at_it() {
        let mut reach = Reach::default();
        both_reach(&mut reach, &[1, 2]);
        assert!(reach.other_says(&there(&[1])).is_empty());
        let [(drive, said)] = reach.other_says(&there(&[1, 2]))[..] else { panic!("one is new") };
        assert!(reach.other_says(&there(&[1, 2])).is_empty(), "it is being looked at");
        assert!(reach.of_other() == Some(&there(&[1])) && reach.waits_for_look(drive));
        // It comes and goes once more meanwhile: that look says nothing.
        reach.other_says(&there(&[1]));
        let [(_, later)] = reach.other_says(&there(&[1, 2]))[..] else { panic!("it is new again") };
        assert!(!reach.has_seen(drive, said) && reach.of_other() == Some(&there(&[1])));
        assert!(reach.has_seen(drive, later) && reach.of_other() == Some(&there(&[1, 2])));
        reach.other_says(&there(&[2]));
        reach.other_says(&there(&[1, 2]));
        reach.other_lets_go(Uuid([1; 16]));
        assert!(!reach.waits_for_look(Uuid([1; 16])));
    }
    #[test]
    fn what_this_head_opens_counts_once_the_other_one_says_so_of_this_very_open() {
        let mut reach = Reach::default();
        let label = Uuid([1; 16]);
        let to_ask = |reach: &Reach, id| reach.to_ask([(DriveId(id), label)].into_iter());
        assert_eq!(to_ask(&reach, 7), [], "it was not told of it yet");
        reach.is_news(&there(&[1]));
        assert_eq!(to_ask(&reach, 7), [(DriveId(7), label)]);
        reach.asks(1, DriveId(7));
        assert_eq!(to_ask(&reach, 7), [], "it was asked");
        reach.is_answered(1, false);
        assert_eq!(to_ask(&reach, 7), [(DriveId(7), label)], "it is asked again");
        reach.asks(2, DriveId(7));
        reach.is_closed(DriveId(7));
        reach.is_answered(2, true);
        assert!(!reach.counts(DriveId(7)), "it was opened anew");
        reach.asks(3, DriveId(7));
        reach.is_answered(3, true);
        assert!(reach.counts(DriveId(7)) && to_ask(&reach, 7).is_empty());
        reach.is_closed(DriveId(7));
        assert!(!reach.counts(DriveId(7)));
    }
    #[test]
    fn what_was_told_is_told_again_to_a_head_that_is_let_in() {
        let mut reach = Reach::default();
        assert!(reach.is_news(&there(&[])) && !reach.is_news(&there(&[])) && reach.is_news(&there(&[1])));
        reach.is_new();
        assert!(reach.is_news(&there(&[1])));
    }
    #[test]
    fn one_look_that_is_not_answered_says_nothing() {
        let mut reach = Reach::default();
        let drive = DriveId(7);
        assert!(!reach.is_lost(drive, false) && !reach.is_lost(drive, true) && !reach.is_lost(drive, false));
        assert!(reach.is_lost(drive, false));
    }
}
