//! A table of reusable slots: constant time, nothing allocated after `with_capacity` or `reserve`.

/// The end of the list of free slots.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
enum Slot<T> {
    Used(T),
    /// Free, and the next free one behind it.
    Free(u32),
}

impl<T> Slot<T> {
    fn item(&self) -> Option<&T> {
        match self {
            Slot::Used(item) => Some(item),
            Slot::Free(_) => None,
        }
    }
    fn item_mut(&mut self) -> Option<&mut T> {
        match self {
            Slot::Used(item) => Some(item),
            Slot::Free(_) => None,
        }
    }
}

/// Slots of `T`, addressed by index. The last freed is the first reused.
#[derive(Debug)]
pub struct Slots<T> {
    /// The free ones are linked through themselves: taking and freeing one touches nothing else.
    slots: Vec<Slot<T>>,
    first_free: u32,
    used: u32,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<T> Slots<T> {
    /// A table of `n` free slots.
    pub fn with_capacity(n: u32) -> Self {
        let mut s = Self { slots: Vec::new(), first_free: NONE, used: 0 };
        s.reserve(n);
        s
    }
    /// Adds `n` free slots (allocates: control path only).
    pub fn reserve(&mut self, n: u32) {
        let old = self.slots.len() as u32;
        let end = old.checked_add(n).filter(|end| *end < NONE).expect("a table has few slots");
        if n > 0 {
            self.slots.extend((old + 1..end).map(Slot::Free));
            self.slots.push(Slot::Free(self.first_free));
            self.first_free = old;
        }
    }
    /// Puts `item` into a free slot; gives it back if there is none.
    #[inline]
    pub fn insert(&mut self, item: T) -> Result<u32, T> {
        let mut item = Some(item);
        match self.insert_with(|| item.take().expect("it is asked once")) {
            Some(i) => Ok(i),
            None => Err(item.expect("it was not asked")),
        }
    }
    /// Puts what `make` makes into a free slot, where it is made in place; None if there is none.
    #[inline]
    pub fn insert_with(&mut self, make: impl FnOnce() -> T) -> Option<u32> {
        let i = self.first_free;
        let slot = self.slots.get_mut(i as usize)?;
        let Slot::Free(next) = *slot else { unreachable!("the list of free slots has free ones") };
        *slot = Slot::Used(make());
        self.first_free = next;
        self.used += 1;
        Some(i)
    }
    /// Empties slot `i`. Panics if it is empty: then an item was completed twice.
    #[inline]
    pub fn remove(&mut self, i: u32) -> T {
        let slot = &mut self.slots[i as usize];
        assert!(matches!(slot, Slot::Used(_)), "slot is in use");
        let Slot::Used(item) = core::mem::replace(slot, Slot::Free(self.first_free)) else {
            unreachable!("as was asserted")
        };
        self.first_free = i;
        self.used -= 1;
        item
    }
    /// Empties slot `i` and drops its item. Panics if it is empty, as `remove` does.
    #[inline]
    pub fn free(&mut self, i: u32) {
        let slot = &mut self.slots[i as usize];
        assert!(matches!(slot, Slot::Used(_)), "slot is in use");
        *slot = Slot::Free(self.first_free);
        self.first_free = i;
        self.used -= 1;
    }
    /// The item in slot `i`, if any.
    #[inline]
    pub fn get(&self, i: u32) -> Option<&T> {
        self.slots.get(i as usize)?.item()
    }
    /// The item in slot `i`, if any.
    #[inline]
    pub fn get_mut(&mut self, i: u32) -> Option<&mut T> {
        self.slots.get_mut(i as usize)?.item_mut()
    }
    /// Number of slots in use.
    pub fn len(&self) -> u32 {
        self.used
    }
    /// Whether all slots are in use.
    pub fn is_full(&self) -> bool {
        self.first_free == NONE
    }
    /// Whether no slot is in use.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }
    /// Number of slots, used and free.
    pub fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }
    /// The used slots with their indices, in order of index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().enumerate().filter_map(|(i, slot)| slot.item().map(|t| (i as u32, t)))
    }
    /// The used slots with their indices, in order of index.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(i, slot)| slot.item_mut().map(|t| (i as u32, t)))
    }
}

impl<T> core::ops::Index<u32> for Slots<T> {
    type Output = T;
    #[inline]
    fn index(&self, i: u32) -> &T {
        self.slots[i as usize].item().expect("slot is in use")
    }
}

impl<T> core::ops::IndexMut<u32> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, i: u32) -> &mut T {
        self.slots[i as usize].item_mut().expect("slot is in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_bounded() {
        let mut s = Slots::with_capacity(2);
        assert_eq!(s.insert('a'), Ok(0));
        assert_eq!(s.insert('b'), Ok(1));
        assert_eq!(s.insert('c'), Err('c'));
        assert_eq!(s.remove(0), 'a');
        assert_eq!(s.insert('d'), Ok(0));
        assert_eq!(s.iter().map(|(_, c)| *c).collect::<String>(), "db");
    }

    #[test]
    fn slots_that_are_added_are_used_before_those_that_were_free() {
        let mut s = Slots::with_capacity(3);
        assert_eq!((s.insert('a'), s.insert('b'), s.len()), (Ok(0), Ok(1), 2));
        s.free(0);
        s.reserve(2);
        assert_eq!((s.capacity(), s.len(), s.is_full()), (5, 1, false));
        let found: Vec<_> = "cdef".chars().map(|c| s.insert(c)).collect();
        assert_eq!(found, [Ok(3), Ok(4), Ok(0), Ok(2)]);
        assert!(s.is_full() && s.insert('g') == Err('g'));
        assert_eq!(s.get(7), None);
    }

    #[test]
    #[should_panic(expected = "slot is in use")]
    fn what_ends_twice_is_noticed() {
        let mut s = Slots::with_capacity(2);
        let slot = s.insert('a').expect("there is room");
        s.free(slot);
        s.free(slot);
    }
}
