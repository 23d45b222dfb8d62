//! What a block may hold, by promises 1 and 3.
//!
//! Every write of a block is a value with a beginning and an end (its answer). A value is out of date
//! when a write that began after its end was acknowledged. At a power cut only acknowledged writes that
//! a Flush or FUA covered keep that power. A read while no write is under way fixes the value: it
//! counts as an acknowledged write of what it returned; a durable one, if nothing was written there
//! since a crash.

#[derive(Clone, Copy, Debug)]
struct Entry {
    value: u64,
    start: u64,
    end: u64,
    acknowledged: bool,
    durable: bool,
    /// Nobody wrote it: a read found it.
    found: bool,
}

const OPEN: u64 = u64::MAX;

pub struct Oracle {
    blocks: Vec<Vec<Entry>>,
    /// When the last crash was.
    crashed: u64,
}

impl Oracle {
    pub fn new(blocks: u64) -> Self {
        let first = Entry { value: 0, start: 0, end: 0, acknowledged: true, durable: true, found: false };
        Self { blocks: vec![vec![first]; blocks as usize], crashed: 0 }
    }
    pub fn begin(&mut self, block: u64, value: u64, now: u64) {
        let entry = Entry { value, start: now, end: OPEN, acknowledged: false, durable: false, found: false };
        self.blocks[block as usize].push(entry);
    }
    fn open(&mut self, block: u64, value: u64, start: u64) -> usize {
        let entries = &self.blocks[block as usize];
        entries.iter().rposition(|e| e.value == value && e.start == start).expect("it began")
    }
    pub fn good(&mut self, block: u64, value: u64, start: u64, now: u64, durable: bool) {
        let i = self.open(block, value, start);
        let entry = &mut self.blocks[block as usize][i];
        entry.end = now;
        entry.acknowledged = true;
        entry.durable = durable;
    }
    pub fn failed(&mut self, block: u64, value: u64, start: u64, now: u64) {
        let i = self.open(block, value, start);
        self.blocks[block as usize][i].end = now;
    }
    /// It never started: nobody may ever see it.
    pub fn aborted(&mut self, block: u64, value: u64, start: u64) {
        let i = self.open(block, value, start);
        self.blocks[block as usize].remove(i);
    }
    /// The space of this block was returned: whoever has it next reads zeroes.
    pub fn returned(&mut self, block: u64, now: u64) {
        let zero = Entry { value: 0, start: now, end: now, acknowledged: true, durable: true, found: false };
        self.blocks[block as usize] = vec![zero];
    }
    pub fn flushed(&mut self, began: u64) {
        for entry in self.blocks.iter_mut().flatten() {
            if entry.acknowledged && entry.end < began {
                entry.durable = true;
            }
        }
    }
    pub fn crash(&mut self, now: u64, power: bool) {
        self.crashed = now;
        for entry in self.blocks.iter_mut().flatten() {
            if entry.end == OPEN {
                entry.end = now;
            }
            if power {
                entry.acknowledged &= entry.durable;
            }
        }
    }
    pub fn allowed(&self, block: u64, value: u64, began: u64) -> bool {
        let entries = &self.blocks[block as usize];
        let outdated = |e: &Entry| entries.iter().any(|y| y.acknowledged && y.start > e.end && y.end < began);
        entries.iter().any(|e| e.value == value && !outdated(e))
    }
    pub fn read(&mut self, block: u64, value: u64, began: u64, now: u64, durable: bool, fixes: bool) {
        assert!(
            self.allowed(block, value, began),
            "block {block}: read {value} (from {began} to {now}), but the history is {:#?}",
            self.blocks[block as usize]
        );
        let entries = &mut self.blocks[block as usize];
        if fixes && entries.iter().all(|e| e.end < began) {
            let crashed = self.crashed;
            let durable = durable || entries.iter().all(|e| e.found || e.start < crashed);
            let last = entries.last().expect("never empty");
            if last.value == value && last.acknowledged && (last.durable || !durable) {
                return;
            }
            entries.push(Entry { value, start: began, end: now, acknowledged: true, durable, found: true });
        }
    }
}
