//! The commands of one queue: slots by tag, found again by command identifier.

use crate::spec::{Sqe, StatusField};
use base::{Instant, Slice, Tag};

/// How a command ended, as its completion will say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Completion {
    pub status: StatusField,
    pub dw0: u32,
    pub dw1: u32,
}

impl Completion {
    /// Success that says nothing more.
    pub const GOOD: Completion = Completion { status: StatusField::SUCCESS, dw0: 0, dw1: 0 };

    /// Success with a result.
    pub fn result(dw0: u32) -> Self {
        Self { dw0, ..Self::GOOD }
    }
    /// The command did not do what it asked for.
    pub fn failed(status: StatusField) -> Self {
        Self { status, ..Self::GOOD }
    }
}

/// What a command waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing: the slot is free.
    Free,
    /// Other transfers to end: as much is asked for as may be at a time.
    AwaitingTurn,
    /// A buffer for data that comes (or goes) in data PDUs.
    AwaitingBuffer,
    /// A buffer for the data in its capsule; the connection takes no bytes until then.
    AwaitingCapsuleBuffer,
    /// The rest of its capsule.
    AwaitingCapsule,
    /// Room for its R2T.
    AwaitingR2t,
    /// H2CData for the R2T.
    AwaitingData,
    /// The head.
    Submitted,
    /// Room for its answer.
    AwaitingRoom,
    /// An event (Asynchronous Event Request).
    AwaitingEvent,
    /// The I/O queues of its controller (Abort, Host Behavior Support).
    AwaitingQueues,
}

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub sqe: Sqe,
    pub phase: Phase,
    /// The head knows of this tag.
    pub held: bool,
    /// The host has aborted it: what is not at a drive never starts.
    pub aborted: bool,
    /// Its namespace was taken from the host, and it was aborted for that.
    pub gone: bool,
    /// A data digest was wrong.
    pub corrupt: bool,
    /// The data goes to the host.
    pub gives: bool,
    /// Bytes of data that the command moves.
    pub length: u32,
    /// Bytes of them that have come.
    pub received: u32,
    /// Next range of Dataset Management, or next namespace of a Flush of all.
    pub cursor: u32,
    /// Tag of its transfer, while it awaits data.
    pub ttag: u16,
    pub buffer: Slice,
    pub answer: Completion,
    pub since: Instant,
    indexed: bool,
    next: u16,
}

impl Slot {
    /// What it ends in if it was aborted. On a namespace that is gone it is not to be tried again: the id may stand for another
    /// volume by then.
    pub fn abort_status(&self) -> StatusField {
        if self.gone { StatusField::INVALID_NAMESPACE.dnr() } else { StatusField::ABORT_REQUESTED }
    }
}

const NONE: u16 = u16::MAX;
const _: () = assert!(size_of::<Slot>() <= 136);

/// All commands of one queue. Nothing is allocated after `new`.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    /// The tag that was freed last is taken first: its slot is in the processor's cache.
    free: Vec<u16>,
    /// Chains of slots whose command identifiers end in the same bits.
    heads: Vec<u16>,
}

impl Table {
    pub fn new(commands_max: u16) -> Self {
        let slot = Slot {
            sqe: Sqe::default(),
            phase: Phase::Free,
            held: false,
            aborted: false,
            gone: false,
            corrupt: false,
            gives: false,
            length: 0,
            received: 0,
            cursor: 0,
            ttag: 0,
            buffer: Slice::default(),
            answer: Completion::GOOD,
            since: Instant(0),
            indexed: false,
            next: NONE,
        };
        Self {
            slots: vec![slot; usize::from(commands_max)],
            free: (0..commands_max).rev().collect(),
            heads: vec![NONE; usize::from(commands_max).next_power_of_two()],
        }
    }
    /// Slots, free or not: tags are below it.
    pub fn len(&self) -> u16 {
        self.slots.len() as u16
    }
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }
    pub fn get(&self, tag: u16) -> Option<&Slot> {
        self.slots.get(usize::from(tag)).filter(|s| s.phase != Phase::Free)
    }
    /// Tags in use, in order.
    pub fn tags(&self) -> impl Iterator<Item = u16> {
        (0..self.slots.len() as u16).filter(|t| self.slots[usize::from(*t)].phase != Phase::Free)
    }
    fn chain(&self, cid: u16) -> usize {
        usize::from(cid) & (self.heads.len() - 1)
    }
    /// The command with this identifier that the host has not been answered yet.
    pub fn find(&self, cid: u16) -> Option<u16> {
        let mut at = self.heads[self.chain(cid)];
        while at != NONE {
            let slot = &self.slots[usize::from(at)];
            if slot.sqe.cid.get() == cid {
                return Some(at);
            }
            at = slot.next;
        }
        None
    }
    /// Takes a slot; it must have room. `duplicate` commands are not found by their identifier.
    pub fn insert(&mut self, sqe: Sqe, now: Instant, duplicate: bool) -> u16 {
        let tag = self.free.pop().expect("the caller asked whether there is room");
        let chain = self.chain(sqe.cid.get());
        let head = self.heads[chain];
        let slot = &mut self.slots[usize::from(tag)];
        *slot = Slot {
            sqe,
            phase: Phase::AwaitingRoom,
            since: now,
            indexed: !duplicate,
            next: if duplicate { NONE } else { head },
            held: false,
            aborted: false,
            gone: false,
            corrupt: false,
            gives: false,
            length: 0,
            received: 0,
            cursor: 0,
            ttag: 0,
            buffer: Slice::default(),
            answer: Completion::GOOD,
        };
        if !duplicate {
            self.heads[chain] = tag;
        }
        tag
    }
    /// The command is answered: the host may use its identifier again, and the tag is free.
    pub fn release(&mut self, tag: u16) {
        let slot = &mut self.slots[usize::from(tag)];
        assert!(slot.phase != Phase::Free, "a slot is freed once");
        slot.phase = Phase::Free;
        self.free.push(tag);
        if !slot.indexed {
            return;
        }
        let (cid, next) = (slot.sqe.cid.get(), slot.next);
        let chain = self.chain(cid);
        if self.heads[chain] == tag {
            self.heads[chain] = next;
            return;
        }
        let mut at = self.heads[chain];
        while self.slots[usize::from(at)].next != tag {
            at = self.slots[usize::from(at)].next;
        }
        self.slots[usize::from(at)].next = next;
    }
}

impl core::ops::Index<u16> for Table {
    type Output = Slot;
    fn index(&self, tag: u16) -> &Slot {
        &self.slots[usize::from(tag)]
    }
}

impl core::ops::IndexMut<u16> for Table {
    fn index_mut(&mut self, tag: u16) -> &mut Slot {
        &mut self.slots[usize::from(tag)]
    }
}

/// The tag as the head knows it.
pub(crate) fn tag(tag: u16) -> Tag {
    Tag(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_identifier_until_they_are_forgotten() {
        let mut table = Table::new(5);
        // Identifiers that share a chain (8 heads), as Linux makes them: generation and tag.
        let cids = [0x1001, 0x2001, 0x3009, 0x0002, 0x4001];
        let tags: Vec<u16> = cids.iter().map(|c| table.insert(Sqe::new(1, *c), Instant(0), false)).collect();
        assert!(!table.has_room());
        for (cid, tag) in cids.iter().zip(&tags) {
            assert_eq!(table.find(*cid), Some(*tag));
        }
        for i in [1, 4, 0, 2, 3] {
            table.release(tags[i]);
            assert_eq!(table.find(cids[i]), None);
        }
        assert_eq!(table.tags().count(), 0);
        let first = table.insert(Sqe::new(1, 7), Instant(0), false);
        let twin = table.insert(Sqe::new(1, 7), Instant(0), true);
        table.release(twin);
        assert_eq!(table.find(7), Some(first));
    }
}
