//! What a block may hold: the rule of promises 1 and 3, block by block.
//!
//! A block's history is a list of writes. At any moment a set of them is *possible*: the last answered
//! one, and every one that was under way beside it. A read must return a write that was possible at
//! some moment between its start and its end. Once nothing overlaps any more, a read decides which it is,
//! and from then on only that one is possible. After a power cut, what the last completed Flush or FUA
//! covered, or any later write, is possible again. After any end of the head the first read decides for good: what it
//! finds stays over power cuts too, until somebody writes there.

/// A write, as its stamp names it; 0 is the block's first state, all zeroes.
pub type WriteId = u64;

/// Marks a write of zeroes: what it leaves cannot be distinguished from the first state.
pub const ZEROES: WriteId = 1 << 63;

/// What a block shows after this write.
pub fn shows(id: WriteId) -> u64 {
    if id & ZEROES != 0 { 0 } else { id }
}

/// A read under way: what it may return.
#[derive(Clone, Debug, Default)]
pub struct ReadView {
    allowed: Vec<WriteId>,
    /// Something was written while it was under way, so that it decides nothing.
    disturbed: bool,
}

/// One block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Values that may be current. Never empty.
    possible: Vec<WriteId>,
    /// Writes without an answer whose host may still get one.
    open: Vec<WriteId>,
    /// Values that a power cut may bring back.
    durable: Vec<WriteId>,
    /// Writes that ended without success and may still land: they are under way until their host is let
    /// in again (promise 3), and a write that somebody else ends meanwhile may be the earlier one.
    /// Reads decide nothing.
    unsettled: Vec<WriteId>,
    /// Those of them that were answered, with a failure: they may still land on the last leg, where it
    /// hangs, but what begins after the answer waits for them.
    failed: Vec<WriteId>,
    /// Answered writes that no Flush has covered, each with the values that it replaced.
    unflushed: Vec<(WriteId, Vec<WriteId>)>,
    /// The head has fallen, and no write has begun since.
    fallen: bool,
    readers: u32,
    views: Vec<(u32, ReadView)>,
}

impl Default for Block {
    fn default() -> Self {
        let (possible, durable) = (vec![0], vec![0]);
        let (open, unsettled, failed, unflushed, views) = Default::default();
        Self { possible, open, durable, unsettled, failed, unflushed, fallen: false, readers: 0, views }
    }
}

/// A checker's finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stale {
    /// What the read returned.
    pub found: WriteId,
    /// What it might have returned.
    pub allowed: Vec<WriteId>,
}

impl Block {
    /// A write begins; returns the values that it will replace: those that cannot land behind it.
    pub fn write_starts(&mut self, id: WriteId) -> Vec<WriteId> {
        self.open.push(id);
        self.fallen = false;
        push(&mut self.durable, id);
        for (_, view) in &mut self.views {
            push(&mut view.allowed, id);
            view.disturbed = true;
        }
        // After a power cut one may be possible whose host still waits, and sends it again by another path.
        let waits = |w: &WriteId| self.open.contains(w);
        let loose = |w: &WriteId| self.unsettled.contains(w) && !self.failed.contains(w);
        self.possible.iter().filter(|w| !waits(w) && !loose(w)).copied().collect()
    }
    /// A write was answered with success; `replaced` is from its start.
    pub fn write_ends(&mut self, id: WriteId, replaced: Vec<WriteId>, durable: bool) {
        self.open.retain(|w| *w != id);
        self.possible.retain(|w| !replaced.contains(w));
        push(&mut self.possible, id);
        self.views.iter_mut().for_each(|(_, view)| view.disturbed = true);
        if durable {
            self.durable.retain(|w| !replaced.contains(w));
        } else {
            self.unflushed.push((id, replaced));
        }
    }
    /// A write was answered with a failure: it may have taken effect, or still may.
    pub fn write_failed(&mut self, id: WriteId) {
        self.write_lost(id);
        push(&mut self.failed, id);
    }
    /// A write ended without an answer: it may have taken effect, or still may.
    pub fn write_lost(&mut self, id: WriteId) {
        self.open.retain(|w| *w != id);
        push(&mut self.possible, id);
        push(&mut self.unsettled, id);
        self.views.iter_mut().for_each(|(_, view)| view.disturbed = true);
    }
    /// Its host was let in again: a write that was lost with the connection has landed or never will.
    pub fn write_settled(&mut self, id: WriteId) {
        self.unsettled.retain(|w| *w != id);
        self.failed.retain(|w| *w != id);
    }
    /// No other write of it is under way, and none may still land.
    pub fn is_quiet_but_for(&self, id: WriteId) -> bool {
        self.open.iter().all(|w| *w == id) && self.unsettled.is_empty()
    }
    /// A Flush begins; returns the writes that it will cover.
    pub fn flush_starts(&self) -> Vec<WriteId> {
        self.unflushed.iter().map(|(id, _)| *id).collect()
    }
    /// A Flush that begins now covers nothing.
    pub fn is_flushed(&self) -> bool {
        self.unflushed.is_empty()
    }
    /// A Flush was answered with success; `covered` is from its start.
    pub fn flush_ends(&mut self, covered: &[WriteId]) {
        let durable = &mut self.durable;
        self.unflushed.retain(|(id, replaced)| {
            let done = covered.contains(id);
            if done {
                durable.retain(|w| !replaced.contains(w));
            }
            !done
        });
    }
    /// A read begins; returns its handle.
    pub fn read_starts(&mut self) -> u32 {
        self.readers += 1;
        let mut allowed = self.possible.clone();
        self.open.iter().for_each(|w| push(&mut allowed, *w));
        let disturbed = !self.open.is_empty() || !self.unsettled.is_empty();
        self.views.push((self.readers, ReadView { allowed, disturbed }));
        self.readers
    }
    /// Whether a read under way can only find `what`.
    pub fn is_certain(&self, handle: u32, what: WriteId) -> bool {
        let (_, view) = self.views.iter().find(|(h, _)| *h == handle).expect("it is under way");
        view.allowed.iter().all(|w| shows(*w) == what)
    }
    /// A read ended with `found`, or without data.
    pub fn read_ends(&mut self, handle: u32, found: Option<WriteId>) -> Result<(), Stale> {
        let i = self.views.iter().position(|(h, _)| *h == handle).expect("a read ends once");
        let (_, view) = self.views.swap_remove(i);
        let Some(found) = found else { return Ok(()) };
        if !view.allowed.iter().any(|w| shows(*w) == found) {
            return Err(Stale { found, allowed: view.allowed });
        }
        let still = self.open.is_empty() && self.unsettled.is_empty();
        if !view.disturbed && still {
            // Nothing moved while it looked: what it saw stays until somebody writes.
            self.possible.retain(|w| shows(*w) == found);
            assert!(!self.possible.is_empty(), "what was allowed and settled is possible");
            if self.fallen {
                self.durable.retain(|w| shows(*w) == found);
                assert!(!self.durable.is_empty(), "what may be there may have been durable");
            }
        }
        Ok(())
    }
    /// The head fell: what is read from now on is made the same on every leg, durably (promise 3).
    pub fn head_fell(&mut self) {
        self.fallen = true;
        self.leader_fell();
    }
    /// One of two heads fell, and the other one goes on: what is read under way may be either of what its writes left.
    pub fn leader_fell(&mut self) {
        self.views.iter_mut().for_each(|(_, view)| view.disturbed = true);
    }
    /// The power was cut: anything since the last flush may be there. The first read decides. Writes
    /// under way stay open until their hosts learn that no answer will come.
    pub fn power_cut(&mut self) {
        for w in self.durable.clone() {
            push(&mut self.possible, w);
            self.views.iter_mut().for_each(|(_, view)| push(&mut view.allowed, w));
        }
        self.views.iter_mut().for_each(|(_, view)| view.disturbed = true);
        self.unflushed.clear();
    }
    /// What may be current.
    pub fn possible(&self) -> &[WriteId] {
        &self.possible
    }
}

fn push(list: &mut Vec<WriteId>, id: WriteId) {
    if !list.contains(&id) {
        list.push(id);
    }
}
