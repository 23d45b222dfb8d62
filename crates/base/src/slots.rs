//! A table of reusable slots: constant time, nothing allocated after `with_capacity` or `reserve`.

/// Slots of `T`, addressed by index. The last freed is the first reused.
#[derive(Debug)]
pub struct Slots<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<T> Slots<T> {
    /// A table of `n` free slots.
    pub fn with_capacity(n: u32) -> Self {
        let mut s = Self { items: Vec::new(), free: Vec::new() };
        s.reserve(n);
        s
    }
    /// Adds `n` free slots (allocates: control path only).
    pub fn reserve(&mut self, n: u32) {
        let old = self.items.len() as u32;
        self.items.extend((0..n).map(|_| None));
        self.free.reserve(self.items.len());
        self.free.extend((old..old + n).rev());
    }
    /// Puts `item` into a free slot; gives it back if there is none.
    pub fn insert(&mut self, item: T) -> Result<u32, T> {
        match self.free.pop() {
            Some(i) => {
                self.items[i as usize] = Some(item);
                Ok(i)
            }
            None => Err(item),
        }
    }
    /// Empties slot `i`. Panics if it is empty: somebody completed twice.
    pub fn remove(&mut self, i: u32) -> T {
        let item = self.items[i as usize].take().expect("slot is in use");
        self.free.push(i);
        item
    }
    /// Empties slot `i` of an item that nobody needs any more. Panics if it is empty, as `remove` does.
    pub fn free(&mut self, i: u32) {
        let item = &mut self.items[i as usize];
        assert!(item.is_some(), "slot is in use");
        *item = None;
        self.free.push(i);
    }
    /// The item in slot `i`, if any.
    pub fn get(&self, i: u32) -> Option<&T> {
        self.items.get(i as usize)?.as_ref()
    }
    /// The item in slot `i`, if any.
    pub fn get_mut(&mut self, i: u32) -> Option<&mut T> {
        self.items.get_mut(i as usize)?.as_mut()
    }
    /// Number of slots in use.
    pub fn len(&self) -> u32 {
        (self.items.len() - self.free.len()) as u32
    }
    /// Whether all slots are in use.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }
    /// Whether no slot is in use.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.items.len()
    }
    /// Number of slots, used and free.
    pub fn capacity(&self) -> u32 {
        self.items.len() as u32
    }
    /// The used slots with their indices, in order of index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.items.iter().enumerate().filter_map(|(i, t)| t.as_ref().map(|t| (i as u32, t)))
    }
    /// The used slots with their indices, in order of index.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.items.iter_mut().enumerate().filter_map(|(i, t)| t.as_mut().map(|t| (i as u32, t)))
    }
}

impl<T> core::ops::Index<u32> for Slots<T> {
    type Output = T;
    fn index(&self, i: u32) -> &T {
        self.items[i as usize].as_ref().expect("slot is in use")
    }
}

impl<T> core::ops::IndexMut<u32> for Slots<T> {
    fn index_mut(&mut self, i: u32) -> &mut T {
        self.items[i as usize].as_mut().expect("slot is in use")
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
}
