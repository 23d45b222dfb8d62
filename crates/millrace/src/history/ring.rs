//! The steps that are kept of one series: so many as there is room for, the newest ones.

/// Values of one step; NaN where nothing is known.
pub type Row<const W: usize> = [f32; W];

/// Steps of one length, each with `W` values. Steps are counted since 1970: step `n` begins at `n * seconds`.
#[derive(Clone, PartialEq, Debug)]
pub struct Ring<const W: usize> {
    seconds: u64,
    rows: Box<[Row<W>]>,
    /// How many are kept, and the one behind the newest.
    len: usize,
    next: u64,
}

impl<const W: usize> Ring<W> {
    /// One with all the memory that it will need.
    pub fn new(seconds: u64, span_seconds: u64) -> Self {
        let rows = vec![[f32::NAN; W]; (span_seconds / seconds) as usize].into_boxed_slice();
        Self { seconds, rows, len: 0, next: 0 }
    }
    /// Length of a step.
    pub fn seconds(&self) -> u64 {
        self.seconds
    }
    /// The newest step, if there is one.
    pub fn newest(&self) -> Option<u64> {
        self.next.checked_sub(1).filter(|_| self.len > 0)
    }
    /// Bytes that it takes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val::<[Row<W>]>(&self.rows)
    }
    fn slot(&self, step: u64) -> usize {
        (step % self.rows.len() as u64) as usize
    }
    /// Notes a step. Those between it and the newest so far are unknown. Of one that is not newer, the clock was set back: it and
    /// all later ones are forgotten, since they will come once more.
    pub fn put(&mut self, step: u64, row: Row<W>) {
        let kept = self.rows.len() as u64;
        let oldest = self.next - self.len as u64;
        if self.len == 0 || step < oldest || step - oldest >= 2 * kept {
            (self.len, self.next) = (0, step);
        } else if step < self.next {
            self.len = (step - oldest) as usize;
            self.next = step;
        }
        for unknown in self.next..step {
            let slot = self.slot(unknown);
            self.rows[slot] = [f32::NAN; W];
        }
        let slot = self.slot(step);
        self.rows[slot] = row;
        self.len = (self.len as u64 + step + 1 - self.next).min(kept) as usize;
        self.next = step + 1;
    }
    /// Steps that begin at `since` or later, oldest first: the number of the first one, and all rows.
    pub fn since(&self, since: u64) -> (u64, impl ExactSizeIterator<Item = &Row<W>>) {
        let first = since.div_ceil(self.seconds).clamp(self.next - self.len as u64, self.next);
        let len = (self.next - first) as usize;
        (first, (0..len).map(move |i| &self.rows[self.slot(first + i as u64)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(ring: &Ring<1>, since: u64) -> (u64, Vec<Option<f32>>) {
        let (first, rows) = ring.since(since);
        (first, rows.map(|r| Some(r[0]).filter(|x| x.is_finite())).collect())
    }

    #[test]
    fn the_newest_steps_are_kept_and_what_lies_between_is_unknown() {
        let mut ring = Ring::<1>::new(5, 20);
        assert_eq!((ring.newest(), kept(&ring, 0)), (None, (0, vec![])));
        ring.put(100, [1.0]);
        ring.put(102, [3.0]);
        assert_eq!(kept(&ring, 0), (100, vec![Some(1.0), None, Some(3.0)]));
        ring.put(103, [4.0]);
        ring.put(104, [5.0]);
        assert_eq!(kept(&ring, 0), (101, vec![None, Some(3.0), Some(4.0), Some(5.0)]));
        assert_eq!(
            kept(&ring, 103 * 5),
            (103, vec![Some(4.0), Some(5.0)]),
            "a step that begins then is wanted"
        );
        assert_eq!(kept(&ring, 103 * 5 + 1), (104, vec![Some(5.0)]));
        assert_eq!(kept(&ring, 105 * 5), (105, vec![]));
        assert_eq!(kept(&ring, u64::MAX), (105, vec![]));
        // Some time later: only part of what is kept is from before.
        ring.put(107, [8.0]);
        assert_eq!(kept(&ring, 0), (104, vec![Some(5.0), None, None, Some(8.0)]));
        ring.put(1_000_000, [9.0]);
        assert_eq!(kept(&ring, 0), (1_000_000, vec![Some(9.0)]), "all the rest is long ago");
        ring.put(u64::MAX / 5, [1.0]);
        assert_eq!(kept(&ring, 0).1, [Some(1.0)]);
    }

    #[test]
    fn a_clock_that_is_set_back_takes_the_steps_with_it_that_come_again() {
        let mut ring = Ring::<1>::new(1, 4);
        (100..104).for_each(|step| ring.put(step, [step as f32]));
        ring.put(102, [7.0]);
        assert_eq!(kept(&ring, 0), (100, vec![Some(100.0), Some(101.0), Some(7.0)]));
        ring.put(100, [8.0]);
        assert_eq!(kept(&ring, 0), (100, vec![Some(8.0)]));
        ring.put(50, [9.0]);
        assert_eq!((ring.newest(), kept(&ring, 0)), (Some(50), (50, vec![Some(9.0)])));
        ring.put(0, [1.0]);
        assert_eq!(kept(&ring, 0), (0, vec![Some(1.0)]));
    }
}
