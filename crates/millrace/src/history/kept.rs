//! Everything that is kept: rings of the head, of volumes and of drives.

use super::did::{Adding, Between, Did, HEAD_VALUES, HeadDid, Moment, Sum, VALUES};
use super::file::{self, Block};
use super::ring::Ring;
use base::Uuid;
use head::order::Worked;
use std::collections::BTreeMap;

/// Steps of the head, seconds.
pub const HEAD_STEPS: [u64; 2] = [1, 60];
/// How long each of these is kept, seconds.
const HEAD_SPANS: [u64; 2] = [600, WEEK];
/// Steps of volumes and drives.
pub const STEPS: [u64; 3] = [5, MINUTE, 600];
/// How long each of these is kept.
const SPANS: [u64; 3] = [600, 3600, WEEK];
/// Steps as long as this, and longer ones, are in the file.
pub const MINUTE: u64 = 60;
const WEEK: u64 = 7 * 24 * 3600;
/// Most volumes with a ring.
pub const VOLUMES_MAX: usize = 1024;
/// Most drives with one.
pub const DRIVES_MAX: usize = 256;
/// So much waits for the file at most: beyond it the file is written anew from what is kept.
const UNWRITTEN_MAX: usize = 1 << 20;

/// Whose a series is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Whose {
    /// The head's, or the system's.
    Head,
    /// A volume's.
    Volume(Uuid),
    /// A drive's.
    Drive(Uuid),
}

/// Steps of several lengths of a series, and the step of each that is not over.
pub struct Series<const N: usize, const W: usize, S> {
    /// The shortest ones first.
    pub rings: [Ring<W>; N],
    adding: [Adding<S>; N],
    /// When it did something last, seconds since 1970.
    active: u64,
}

impl<const N: usize, const W: usize, S: Sum<W>> Series<N, W, S> {
    fn new(steps: [u64; N], spans: [u64; N]) -> Self {
        let rings = core::array::from_fn(|i| Ring::new(steps[i], spans[i]));
        Self { rings, adding: core::array::from_fn(|_| Adding::default()), active: 0 }
    }
    /// Notes what was done. Each step that is complete by it goes behind `out` if it belongs into the file. True: one does.
    fn take(&mut self, whose: Whose, between: &Between, did: &S, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        for (ring, adding) in self.rings.iter_mut().zip(&mut self.adding) {
            let seconds = ring.seconds();
            if seconds == 1 {
                // What took longer than a second was the same in each.
                let row = did.row(between.took.as_secs_f64());
                between.seconds().for_each(|second| ring.put(second, row));
            } else if let Some((step, row)) = adding.add(seconds, between, did) {
                ring.put(step, row);
                if seconds >= MINUTE {
                    file::encode(whose, seconds, step, &[row], out);
                }
            }
        }
        out.len() > before
    }
    fn ring(&self, seconds: u64) -> Option<&Ring<W>> {
        self.rings.iter().find(|r| r.seconds() == seconds)
    }
    /// Takes steps that were read from the file.
    fn restore(&mut self, seconds: u64, step: u64, rows: Vec<[f32; W]>) {
        if let Some(ring) = self.rings.iter_mut().find(|r| r.seconds() == seconds) {
            (step..).zip(rows).for_each(|(step, row)| ring.put(step, row));
        }
    }
    /// All blocks for the file, behind `out`.
    fn encode(&self, whose: Whose, out: &mut Vec<u8>) {
        for ring in self.rings.iter().filter(|r| r.seconds() >= MINUTE) {
            let (first, rows) = ring.since(0);
            let rows: Vec<[f32; W]> = rows.copied().collect();
            for (i, part) in rows.chunks(file::ROWS_MAX).enumerate() {
                file::encode(whose, ring.seconds(), first + (i * file::ROWS_MAX) as u64, part, out);
            }
        }
    }
}

impl Series<3, VALUES, Did> {
    /// Goes on with the longest step that was not over at the last restart, from what the minutes of it say.
    fn resume(&mut self) {
        let [_, minutes, long] = &self.rings;
        let (Some(newest), long_seconds) = (minutes.newest(), long.seconds()) else { return };
        let step = newest * MINUTE / long_seconds;
        if long.newest().is_some_and(|known| known >= step) {
            return;
        }
        for row in minutes.since(step * long_seconds).1 {
            if row[0].is_finite() {
                self.adding[2].resume(step, &Did::of_row(row, MINUTE as f64), MINUTE as f64);
            }
        }
    }
}

/// See the module.
pub struct Kept {
    before: Option<Moment>,
    head: Series<2, HEAD_VALUES, HeadDid>,
    things: BTreeMap<Whose, Series<3, VALUES, Did>>,
    /// Blocks for the file.
    unwritten: Vec<u8>,
    /// Some of them are no more.
    rewrite: bool,
}

impl Default for Kept {
    fn default() -> Self {
        let (head, things) = (Series::new(HEAD_STEPS, HEAD_SPANS), BTreeMap::new());
        Self { before: None, head, things, unwritten: Vec::new(), rewrite: false }
    }
}

/// Each of them as it is and as it was, if it was there.
fn pairs<'a>(
    now: &'a [Worked],
    before: &'a [Worked],
) -> impl Iterator<Item = (&'a Worked, Option<&'a Worked>)> {
    now.iter().enumerate().map(|(i, w)| {
        // They keep their order, but for those that come and go.
        let same = before.get(i).filter(|b| b.uuid == w.uuid);
        (w, same.or_else(|| before.iter().find(|b| b.uuid == w.uuid)))
    })
}

impl Kept {
    /// Takes a reading. True: a step of the head is over that belongs into the file.
    pub fn take(&mut self, now: Moment) -> bool {
        if !now.figures.fresh {
            // The next one will tell what happened since the last good one.
            return false;
        }
        let due = self.before.take().is_some_and(|before| self.compare(&before, &now));
        self.before = Some(now);
        due
    }
    fn compare(&mut self, before: &Moment, now: &Moment) -> bool {
        let Some(between) = Between::of(before, now) else { return false };
        let (was, is) = (&before.figures, &now.figures);
        let mut all = Vec::new();
        for (w, before) in pairs(&is.volumes, &was.volumes) {
            // What was not there before is known from the next reading on.
            let did = before.map(|b| Did::between(b, w));
            all.extend(did);
            self.take_of(Whose::Volume(w.uuid), &between, did.flatten());
        }
        for (w, before) in pairs(&is.drives, &was.drives) {
            let did = before.and_then(|b| Did::between(b, w));
            self.take_of(Whose::Drive(w.uuid), &between, did);
        }
        let Some(did) = HeadDid::between(was, is, all.into_iter()) else { return false };
        if !self.head.take(Whose::Head, &between, &did, &mut self.unwritten) {
            return false;
        }
        if self.unwritten.len() > UNWRITTEN_MAX {
            self.unwritten = Vec::new();
            self.rewrite = true;
        }
        true
    }
    fn take_of(&mut self, whose: Whose, between: &Between, did: Option<Did>) {
        let Some(did) = did else { return };
        if did.is_any() && !self.things.contains_key(&whose) {
            self.make(whose);
        }
        let Some(series) = self.things.get_mut(&whose) else { return };
        if did.is_any() {
            series.active = between.to.as_secs();
        }
        series.take(whose, between, &did, &mut self.unwritten);
    }
    /// A ring for something that has none. The one that did nothing for longest goes, if there are too many.
    fn make(&mut self, whose: Whose) {
        let is_volume = |w: &Whose| matches!(w, Whose::Volume(_));
        let max = if is_volume(&whose) { VOLUMES_MAX } else { DRIVES_MAX };
        let alike = || self.things.iter().filter(|(w, _)| is_volume(w) == is_volume(&whose));
        if alike().count() >= max
            && let Some((oldest, _)) = alike().min_by_key(|(_, s)| s.active)
        {
            let oldest = *oldest;
            self.things.remove(&oldest);
        }
        self.things.entry(whose).or_insert_with(|| Series::new(STEPS, SPANS));
    }
    /// Takes what was read from the file, oldest first.
    pub fn restore(&mut self, block: Block) {
        match block {
            Block::Head { step, rows } => self.head.restore(MINUTE, step, rows),
            Block::Thing { whose, seconds, step, rows } => {
                let newest = (step + rows.len() as u64) * seconds;
                if !self.things.contains_key(&whose) {
                    self.make(whose);
                }
                let Some(series) = self.things.get_mut(&whose) else { return };
                series.active = series.active.max(newest);
                series.restore(seconds, step, rows);
            }
        }
    }
    /// All was read from the file.
    pub fn resume(&mut self) {
        self.things.values_mut().for_each(Series::resume);
    }
    /// What waits for the file; whether it must be written anew. Both are over by that.
    pub fn take_unwritten(&mut self) -> (Vec<u8>, bool) {
        (std::mem::take(&mut self.unwritten), std::mem::take(&mut self.rewrite))
    }
    /// The file could not be written: it is anew the next time.
    pub fn not_written(&mut self) {
        self.rewrite = true;
    }
    /// Whose there are any.
    pub fn all(&self) -> Vec<Whose> {
        std::iter::once(Whose::Head).chain(self.things.keys().copied()).collect()
    }
    /// All blocks of one series, behind `out`.
    pub fn encode(&self, whose: Whose, out: &mut Vec<u8>) {
        match (whose, self.things.get(&whose)) {
            (Whose::Head, _) => self.head.encode(whose, out),
            (_, Some(series)) => series.encode(whose, out),
            (_, None) => {}
        }
    }
    /// The head's steps of this length, if there are any.
    pub fn head(&self, step: u64) -> Option<&Ring<HEAD_VALUES>> {
        self.head.ring(step)
    }
    /// The steps of a volume or drive, if it has ever done anything.
    pub fn thing(&self, whose: Whose, step: u64) -> Option<&Ring<VALUES>> {
        self.things.get(&whose)?.ring(step)
    }
    /// Bytes that all rings take.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let of_head: usize = self.head.rings.iter().map(Ring::bytes).sum();
        let rings =
            self.things.values().map(|s| size_of_val(s) + s.rings.iter().map(Ring::bytes).sum::<usize>());
        of_head + rings.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::did::tests::moment;
    use super::*;

    fn kept_of(moments: impl IntoIterator<Item = Moment>) -> Kept {
        let mut kept = Kept::default();
        for moment in moments {
            kept.take(moment);
        }
        kept
    }
    /// First values of all steps.
    fn first<const W: usize>(ring: Option<&Ring<W>>) -> (u64, Vec<Option<f32>>) {
        let (begin, rows) = ring.expect("a ring").since(0);
        (begin, rows.map(|r| Some(r[0]).filter(|x| x.is_finite())).collect())
    }
    const VOLUME: Whose = Whose::Volume(Uuid([1; 16]));
    const DRIVE: Whose = Whose::Drive(Uuid([9; 16]));

    /// A head that is read each second, ten times a second more each time.
    fn busy(seconds: std::ops::Range<u64>) -> impl Iterator<Item = Moment> {
        seconds.map(|s| moment(s as f64 + 0.01, s as f64, 10 * s))
    }

    #[test]
    fn steps_of_all_lengths_come_of_readings_each_second() {
        let kept = kept_of(busy(1200..2401));
        let (begin, seconds) = first(kept.head(1));
        assert_eq!((begin, seconds.len()), (1800, 600));
        assert!(seconds.iter().all(|x| *x == Some(10.0)), "{seconds:?}");
        let minutes = first(kept.head(60));
        assert_eq!(minutes, (20, vec![Some(10.0); 19]), "the last one is not over for all that is known");
        for whose in [VOLUME, DRIVE] {
            let (begin, rates) = first(kept.thing(whose, 5));
            assert_eq!((begin * 5, rates.len()), (1800 - 5, 120));
            assert!(rates.iter().all(|x| *x == Some(10.0)), "{rates:?}");
            assert_eq!(first(kept.thing(whose, 60)), (20, vec![Some(10.0); 19]));
            assert_eq!(first(kept.thing(whose, 600)), (2, vec![Some(10.0)]));
        }
        assert!(kept.head(5).is_none() && kept.thing(VOLUME, 1).is_none());
    }

    #[test]
    fn ten_minutes_in_which_the_daemon_was_killed_go_on_from_their_minutes() {
        let (killed, mut file) = (kept_of(busy(1200..2190)), Vec::new());
        killed.all().into_iter().for_each(|whose| killed.encode(whose, &mut file));
        let mut kept = Kept::default();
        file::decode(&file[..], |block| kept.restore(block)).expect("no file, no failure");
        kept.resume();
        for whose in [VOLUME, DRIVE] {
            assert_eq!(first(kept.thing(whose, 60)), (20, vec![Some(10.0); 16]), "all but the last");
            assert_eq!(first(kept.thing(whose, 600)), (2, vec![Some(10.0)]));
        }
        // It counts from zero, and does nothing for the rest of the time.
        for s in 2200..2402 {
            kept.take(moment(s as f64 + 0.01, s as f64, 0));
        }
        for whose in [VOLUME, DRIVE] {
            let (begin, rates) = first(kept.thing(whose, 600));
            let [Some(before), Some(rate)] = rates[..] else { panic!("{rates:?}") };
            assert!(begin == 2 && before == 10.0 && (6.0..6.5).contains(&rate), "360 of 560 seconds: {rate}");
            let row = kept.thing(whose, 600).expect("a ring").since(0).1.last().expect("a step");
            assert_eq!(row[4], 100_000.0, "how long reads took is said of those that were");
        }
    }

    #[test]
    fn counters_that_go_back_and_readings_that_lack_leave_steps_unknown() {
        let mut all: Vec<Moment> = busy(1000..1010).collect();
        // The head began anew, and so did its counters.
        all.extend((1010..1013).map(|s| moment(s as f64 + 0.01, s as f64, 10 * (s - 1010))));
        // Another shard counts, too.
        all.extend((1013..1016).map(|s| {
            let mut moment = moment(s as f64 + 0.01, s as f64, 10 * s);
            moment.figures.basis = 2;
            moment
        }));
        let (begin, rates) = first(kept_of(all).head(1));
        let known: Vec<bool> = rates.iter().map(Option::is_some).collect();
        assert_eq!(begin, 1000);
        let mut wanted = [true; 15];
        (wanted[9], wanted[12]) = (false, false);
        assert_eq!(known, wanted);
        assert!(rates.iter().flatten().all(|rate| *rate == 10.0), "{rates:?}");
    }

    #[test]
    fn shards_that_do_not_answer_are_waited_for() {
        let mut all: Vec<Moment> = busy(1000..1010).collect();
        for (i, moment) in all.iter_mut().enumerate().filter(|(i, _)| (4..7).contains(i)) {
            moment.figures.fresh = false;
            moment.figures.volumes[0].counters.reads -= 5 * (i as u64 - 3);
        }
        assert_eq!(first(kept_of(all).head(1)), (1000, vec![Some(10.0); 9]));
        let mut all: Vec<Moment> = busy(1000..1012).collect();
        all[2..9].iter_mut().for_each(|m| m.figures.fresh = false);
        let (_, rates) = first(kept_of(all).head(1));
        assert_eq!(rates.iter().flatten().count(), 3, "too long to say anything of each second: {rates:?}");
    }

    #[test]
    fn a_clock_that_jumps_leaves_steps_unknown() {
        let moments = |jump: i64| {
            let before = busy(100_000..100_100);
            before.chain(
                (100_100..100_110u64).map(move |s| moment((s as i64 + jump) as f64 + 0.01, s as f64, 10 * s)),
            )
        };
        for (jump, begin, len, lacking) in [
            (20, 100_000, 129, 21),
            (-20, 100_000, 89, 0),
            (1_000_000, 1_100_100, 9, 0),
            (-90_000, 10_100, 9, 0),
        ] {
            let (is, rates) = first(kept_of(moments(jump)).head(1));
            assert_eq!((is, rates.len()), (begin, len), "{jump}");
            assert_eq!(rates.iter().filter(|r| r.is_none()).count(), lacking, "{jump}: {rates:?}");
            assert!(rates.iter().flatten().all(|rate| *rate == 10.0), "{jump}: {rates:?}");
        }
    }

    #[test]
    fn what_never_did_anything_has_no_ring_and_what_did_nothing_for_longest_goes() {
        let idle = (1000..1020).map(|s| moment(s as f64 + 0.01, s as f64, 77));
        let mut kept = kept_of(idle);
        assert_eq!(kept.all(), [Whose::Head]);
        assert_eq!(first(kept.head(1)).1, [Some(0.0); 19]);
        let between =
            |s: u64| Between::of(&moment(s as f64, s as f64, 0), &moment(s as f64 + 1.0, s as f64 + 1.0, 0));
        let (before, now) = (moment(0.0, 0.0, 0).figures, moment(1.0, 1.0, 9).figures);
        let did = Did::between(&before.volumes[0], &now.volumes[0]);
        let uuid = |n: u64| Uuid::from_random(n, n);
        for n in 0..2000 {
            let between = between(2000 + n).expect("a second");
            kept.take_of(Whose::Volume(uuid(n)), &between, did);
            kept.take_of(Whose::Volume(uuid(0)), &between, did);
            kept.take_of(Whose::Drive(uuid(n)), &between, did);
        }
        let all = kept.all();
        assert_eq!(all.len(), 1 + VOLUMES_MAX + DRIVES_MAX);
        for (n, stays) in [(0, true), (1, false), (2000 - 1024, false), (2000 - 1023, true), (1999, true)] {
            assert_eq!(all.contains(&Whose::Volume(uuid(n))), stays, "{n}");
        }
    }

    #[test]
    fn a_thousand_volumes_take_less_than_40_mb() {
        let mut kept = Kept::default();
        (0..1000).for_each(|n| kept.make(Whose::Volume(Uuid::from_random(n, n))));
        let bytes = kept.bytes();
        assert!((20_000_000..40_000_000).contains(&bytes), "{bytes}");
        (0..5000).for_each(|n| kept.make(Whose::Volume(Uuid::from_random(n, n))));
        (0..500).for_each(|n| kept.make(Whose::Drive(Uuid::from_random(n, n))));
        assert!(kept.bytes() < 40_000_000, "{}", kept.bytes());
    }

    #[test]
    fn what_waits_for_the_file_is_bounded() {
        let mut kept = kept_of(busy(0..2));
        let mut minutes = 0;
        for s in (60..).step_by(60) {
            // Two readings of each minute.
            for s in [s, s + 1] {
                minutes += u64::from(kept.take(moment(s as f64 + 0.01, s as f64, 10 * s)));
            }
            if kept.rewrite {
                break;
            }
        }
        assert!(minutes > 1000 && kept.unwritten.len() <= UNWRITTEN_MAX, "{minutes}");
        assert!(kept.take_unwritten().1 && !kept.take_unwritten().1);
    }
}
