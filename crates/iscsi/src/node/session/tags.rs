//! Which task has an initiator task tag.

use crate::pdu::RESERVED_TAG;

const NONE: u16 = u16::MAX;

/// Slots by task tag: chains of slots whose tags fall together. Nothing is allocated after `new`.
#[derive(Debug)]
pub(crate) struct TaskTags {
    /// The tag of each slot, `RESERVED_TAG` if it is free, and the next slot of its chain.
    slots: Vec<(u32, u16)>,
    heads: Vec<u16>,
}

impl TaskTags {
    /// Room for `slots` tasks, fewer than 2^15.
    pub fn new(slots: u16) -> Self {
        let heads = vec![NONE; usize::from(slots.next_power_of_two())];
        Self { slots: vec![(RESERVED_TAG, NONE); usize::from(slots)], heads }
    }
    /// Initiators count in the low bits or, byte for byte the other way round, in the high ones: the highest bits of the
    /// product depend on all of them.
    fn chain(&self, task_tag: u32) -> usize {
        let product = u64::from(task_tag.wrapping_mul(0x9e37_79b1));
        ((product * self.heads.len() as u64) >> 32) as usize
    }
    /// The slot of a task; a reserved tag names none.
    pub fn find(&self, task_tag: u32) -> Option<u32> {
        let mut at = *self.heads.get(self.chain(task_tag))?;
        while at != NONE {
            let (tag, next) = self.slots[usize::from(at)];
            if tag == task_tag {
                return Some(u32::from(at));
            }
            at = next;
        }
        None
    }
    /// A task begins in a free slot, with a tag that no other has.
    pub fn insert(&mut self, task_tag: u32, slot: u32) {
        let chain = self.chain(task_tag);
        let head = core::mem::replace(&mut self.heads[chain], slot as u16);
        self.slots[slot as usize] = (task_tag, head);
    }
    /// A task is over.
    pub fn remove(&mut self, task_tag: u32, slot: u32) {
        let (_, next) = core::mem::replace(&mut self.slots[slot as usize], (RESERVED_TAG, NONE));
        let chain = self.chain(task_tag);
        let mut at = self.heads[chain];
        if u32::from(at) == slot {
            self.heads[chain] = next;
            return;
        }
        while u32::from(self.slots[usize::from(at)].1) != slot {
            at = self.slots[usize::from(at)].1;
        }
        self.slots[usize::from(at)].1 = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_found_by_tag_until_they_are_over_in_any_order() {
        let tags: [fn(u32) -> u32; 5] =
            [|i| i, |i| i << 24, |i| i * 8, |i| 0x1000_0000 | i, |i| i.wrapping_mul(0x9e37_79b1)];
        for tag in tags {
            let mut table = TaskTags::new(129);
            for round in 0..3 {
                (0..129).for_each(|i| table.insert(tag(i), i));
                for gone in 0..129 {
                    let slot = (gone * 50 + round) % 129;
                    assert_eq!(table.find(tag(slot)), Some(slot));
                    table.remove(tag(slot), slot);
                    assert_eq!(table.find(tag(slot)), None);
                }
            }
            assert_eq!(table.find(RESERVED_TAG), None);
        }
    }

    #[test]
    fn tags_as_initiators_give_them_make_short_chains() {
        let tags: [fn(u32) -> u32; 4] = [|i| i, |i| i << 24, |i| i << 24 | 0x10, |i| 0x8000_0000 + i];
        for tag in tags {
            let table = TaskTags::new(128);
            let mut chains = [0; 128];
            (0..128).for_each(|i| chains[table.chain(tag(i))] += 1);
            assert!(chains.iter().all(|n| *n <= 4), "{chains:?}");
        }
    }
}
