//! Lines of requests in order, linked through the requests themselves.
//!
//! Joining, leading and leaving from anywhere take constant time and no memory: a request has one `Place`, and
//! stands in one line at a time.

use base::Slots;

/// Nobody.
const NONE: u32 = u32::MAX;

/// Where a request stands in its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    before: u32,
    after: u32,
    stands: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self { before: NONE, after: NONE, stands: false }
    }
}

/// What can stand in a line.
pub(crate) trait Stands {
    fn place(&mut self) -> &mut Place;
}

/// A line: its first and its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    first: u32,
    last: u32,
}

impl Default for Line {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl Line {
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
    /// Who is next.
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }
    /// Who stands behind `index`.
    pub fn behind<T: Stands>(table: &mut Slots<T>, index: u32) -> Option<u32> {
        let after = table.get_mut(index).expect("who stands in a line exists").place().after;
        (after != NONE).then_some(after)
    }
    /// `index` comes last.
    pub fn join<T: Stands>(&mut self, table: &mut Slots<T>, index: u32) {
        let place = table[index].place();
        assert!(!place.stands, "a request stands in one line at a time");
        *place = Place { before: self.last, after: NONE, stands: true };
        match self.last {
            NONE => self.first = index,
            last => table[last].place().after = index,
        }
        self.last = index;
    }
    /// `index` comes first.
    pub fn join_first<T: Stands>(&mut self, table: &mut Slots<T>, index: u32) {
        let place = table[index].place();
        assert!(!place.stands, "a request stands in one line at a time");
        *place = Place { before: NONE, after: self.first, stands: true };
        match self.first {
            NONE => self.last = index,
            first => table[first].place().before = index,
        }
        self.first = index;
    }
    /// `index` leaves this line, wherever it stands.
    pub fn leave<T: Stands>(&mut self, table: &mut Slots<T>, index: u32) {
        let Place { before, after, stands } = core::mem::take(table[index].place());
        assert!(stands, "it stands in this line");
        match before {
            NONE => self.first = after,
            before => table[before].place().after = after,
        }
        match after {
            NONE => self.last = before,
            after => table[after].place().before = before,
        }
    }
    /// The first leaves.
    pub fn next<T: Stands>(&mut self, table: &mut Slots<T>) -> Option<u32> {
        let first = self.first()?;
        self.leave(table, first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Stands for Place {
        fn place(&mut self) -> &mut Place {
            self
        }
    }

    fn table(n: u32) -> Slots<Place> {
        let mut table = Slots::with_capacity(n);
        (0..n).for_each(|_| assert!(table.insert(Place::default()).is_ok()));
        table
    }

    #[test]
    fn a_line_is_first_come_first_served_and_can_be_left_from_anywhere() {
        let mut prng = base::Prng::new(1);
        let (mut table, mut line, mut model) =
            (table(32), Line::default(), std::collections::VecDeque::new());
        for _ in 0..20_000 {
            let who = prng.below(32) as u32;
            match prng.below(4) {
                0 if !model.contains(&who) => {
                    line.join(&mut table, who);
                    model.push_back(who);
                }
                3 if !model.contains(&who) => {
                    line.join_first(&mut table, who);
                    model.push_front(who);
                }
                1 if model.contains(&who) => {
                    line.leave(&mut table, who);
                    model.retain(|x| *x != who);
                }
                2 => assert_eq!(line.next(&mut table), model.pop_front()),
                _ => {}
            }
            assert_eq!(line.first(), model.front().copied());
            assert_eq!(line.is_empty(), model.is_empty());
        }
        let all: Vec<u32> = core::iter::successors(line.first(), |x| Line::behind(&mut table, *x)).collect();
        assert_eq!(all, Vec::from(model));
    }

    #[test]
    #[should_panic(expected = "one line at a time")]
    fn nobody_stands_in_two_lines() {
        let mut table = table(1);
        Line::default().join(&mut table, 0);
        Line::default().join(&mut table, 0);
    }
}
