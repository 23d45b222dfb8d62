//! What the code of mutants calls. `n` is the number of a place's first mutant; further ones of that place follow it.

use super::{ARMED, CHOSEN, Mistake};

/// Whether this mutant is chosen, uncounted.
pub fn is_chosen(n: u32) -> bool {
    CHOSEN.get() == Some(Mistake::Mutant(n))
}

/// The same. What is true counts as a difference.
pub fn counted(differs: bool) -> bool {
    if differs {
        ARMED.set(ARMED.get() + 1);
    }
    differs
}

/// Whether to leave out what would be done now, or to do it too early.
pub fn mutant(n: u32) -> bool {
    counted(is_chosen(n))
}

/// A comparison. Mutant `n` takes the one beside it, and the next one its opposite.
pub fn compared(n: u32, right: bool, beside: bool) -> bool {
    if mutant(n + 1) { !right } else { right != (is_chosen(n) && counted(right != beside)) }
}

/// A comparison of which the mutant takes the opposite.
pub fn flipped(n: u32, right: bool) -> bool {
    right != mutant(n)
}

/// A condition that holds for the mutant.
pub fn held(n: u32, right: bool) -> bool {
    right || mutant(n)
}

/// A number with one before it.
pub trait Count: Copy {
    /// The one before. Before the first one comes the second: it is another one, too.
    fn former(self) -> Self;
}

macro_rules! counts {
    ($($number:ty)*) => {
        $(impl Count for $number {
            fn former(self) -> Self {
                self.checked_sub(1).unwrap_or(1)
            }
        })*
    };
}
counts! { u8 u16 u32 u64 usize }

impl<T: Count> Count for Option<T> {
    fn former(self) -> Self {
        self.map(T::former)
    }
}

/// A number of which the mutant takes the former one.
pub fn former<T: Count + PartialEq>(n: u32, right: T) -> T {
    if is_chosen(n) && counted(right.former() != right) { right.former() } else { right }
}

/// Elements, of which mutant `n` takes the first alone, and the next one the last alone.
pub fn cut<I: IntoIterator>(n: u32, items: I) -> Cut<I::IntoIter> {
    Cut { items: items.into_iter(), skips: None, first: n, last: Some(n + 1), begun: false }
}

/// Elements, of which mutant `n` skips the first, and the next one takes it alone.
pub fn skipping<I: IntoIterator>(n: u32, items: I) -> Cut<I::IntoIter> {
    Cut { items: items.into_iter(), skips: Some(n), first: n + 1, last: None, begun: false }
}

/// See `cut` and `skipping`.
pub struct Cut<I> {
    items: I,
    skips: Option<u32>,
    first: u32,
    last: Option<u32>,
    begun: bool,
}

impl<I: Iterator> Iterator for Cut<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let first = !core::mem::replace(&mut self.begun, true);
        let Some(Mistake::Mutant(chosen)) = CHOSEN.get() else { return self.items.next() };
        if self.skips == Some(chosen) && first {
            counted(self.items.next().is_some());
        }
        if self.first == chosen && !first {
            counted(self.items.next().is_some());
            return None;
        }
        let mut next = self.items.next()?;
        if self.last == Some(chosen) {
            for behind in self.items.by_ref() {
                counted(true);
                next = behind;
            }
        }
        Some(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.items.size_hint().1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{armed, plant};
    use super::*;

    /// What a place gives with each of its mutants, 7 and those behind it, and how often that differed.
    fn with<T>(n: u32, place: impl Fn() -> T) -> (T, u64) {
        plant(Some(Mistake::Mutant(n)));
        let given = (place(), armed());
        plant(None);
        given
    }

    #[test]
    fn what_is_not_chosen_is_right_and_makes_no_difference() {
        for n in [6, 10] {
            assert_eq!(with(n, || cut(7, 1..4).collect::<Vec<_>>()), (vec![1, 2, 3], 0));
            assert_eq!(with(n, || skipping(7, 1..4).collect::<Vec<_>>()), (vec![1, 2, 3], 0));
            assert_eq!(with(n, || former(7, 5u64)), (5, 0));
            assert_eq!(with(n, || compared(7, true, false)), (true, 0));
            assert_eq!(with(n, || (flipped(7, true), held(7, false), mutant(7))), ((true, false, false), 0));
        }
    }

    #[test]
    fn elements_are_cut_and_count_where_there_are_others() {
        let all = |n, items: core::ops::Range<u32>| with(n, || cut(7, items.clone()).collect::<Vec<_>>());
        assert_eq!(all(7, 1..4), (vec![1], 1));
        assert_eq!(all(8, 1..4), (vec![3], 2));
        for n in [7, 8] {
            assert_eq!(all(n, 1..2), (vec![1], 0), "the only one is all of them");
        }
        let all =
            |n, items: core::ops::Range<u32>| with(n, || skipping(7, items.clone()).collect::<Vec<_>>());
        assert_eq!(all(7, 1..4), (vec![2, 3], 1));
        assert_eq!(all(7, 1..2), (vec![], 1));
        assert_eq!(all(7, 1..1), (vec![], 0));
        assert_eq!(all(8, 1..4), (vec![1], 1));
    }

    #[test]
    fn a_comparison_counts_where_its_neighbour_differs() {
        assert_eq!(with(7, || compared(7, true, false)), (false, 1));
        assert_eq!(with(7, || compared(7, true, true)), (true, 0));
        assert_eq!(with(8, || compared(7, true, true)), (false, 1));
        assert_eq!(with(7, || flipped(7, false)), (true, 1));
    }

    #[test]
    fn a_condition_counts_where_it_did_not_hold() {
        assert_eq!(with(7, || held(7, false)), (true, 1));
        assert_eq!(with(7, || held(7, true)), (true, 0));
    }

    #[test]
    fn a_number_becomes_the_former_one() {
        assert_eq!(with(7, || former(7, 5u32)), (4, 1));
        assert_eq!(with(7, || former(7, 0u64)), (1, 1));
        assert_eq!(with(7, || former(7, Some(2u16))), (Some(1), 1));
        assert_eq!(with(7, || former(7, None::<u64>)), (None, 0));
    }
}
