//! Scheduler: which waiter gets the next credit of an array.
//!
//! Deficit round robin (Shreedhar and Varghese, 1995) on three levels: volumes by their weights, the hosts of a volume, the connections of
//! a host. Whoever has the turn may start commands worth its quantum; a command that costs more than is left is paid for in the following
//! rounds. A newcomer goes before the round, once (as in FQ-CoDel, RFC 8290 section 4.1): a host of few commands does not wait for a round
//! of hosts that have many.
//!
//! ```text
//! root ──▶ volume a ──▶ host 1 ──▶ connection ──▶ its commands, first come, first served
//!   │          │           └─────▶ connection
//!   │          └──────▶ host 2 ──▶ connection
//!   └────▶ volume b ──▶ host 1 ──▶ connection
//! ```
//!
//! A node exists while somebody below it waits, and until its next turn after that: its deficit is not forgotten when its line is empty for a
//! moment. Joining, leaving and choosing take constant time, and allocate only when more lines exist than ever before.

use crate::admission::lines::Line;
use crate::admission::window::Claim;
use base::{Slots, VolumeId};
use volume::WEIGHT;

/// What a turn of a node with the usual weight is worth, in cost.
const QUANTUM: u64 = 16 << 10;
/// The same of a connection beside others of its host: answers leave together, and a few by a few cost more.
const QUANTUM_LINE: i64 = 128 << 10;
/// And at least: a large command of little weight must not need many thousand rounds.
const QUANTUM_MIN: i64 = 64;
/// A command without data costs this; a byte costs one.
const FIXED_COST: u64 = 4 << 10;
/// Lines that there is room for from the start.
const LINES: u32 = 64;

const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

/// What a command with so many bytes of data counts.
#[inline]
pub(crate) fn cost_of(bytes: u64) -> u64 {
    FIXED_COST + bytes
}

/// Whose command it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whose {
    /// The volume that it names.
    pub volume: VolumeId,
    /// The host that sent it; all unknown peers count as one.
    pub host: u32,
    /// The shard that it came in at,
    pub shard: u16,
    /// and the index of its connection there.
    pub link: u32,
    /// Its connection has little under way.
    pub little: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Root,
    Volume(VolumeId),
    Host(VolumeId, u32),
    Line { volume: VolumeId, shard: u16, link: u32 },
}

impl Key {
    /// Spread over 32 bits by a multiplication with the golden ratio (Knuth, volume 3, section 6.4).
    #[inline]
    fn hash(self) -> usize {
        let (volume, shard, low) = match self {
            Self::Root => (0, 0, 0),
            Self::Volume(VolumeId(volume)) => (volume, 1 << 16, 0),
            Self::Host(VolumeId(volume), host) => (volume, 2 << 16, host),
            Self::Line { volume: VolumeId(volume), shard, link } => {
                (volume, 3 << 16 | u32::from(shard), link)
            }
        };
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let high = u64::from(volume ^ shard.rotate_left(12));
        ((high << 32 | u64::from(low)).wrapping_mul(GOLDEN) >> 32) as usize
    }
}

/// First and last of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    first: u32,
    last: u32,
}

const EMPTY: Round = Round { first: NONE, last: NONE };

/// In which round of its parent a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stands {
    /// In none.
    Out,
    /// In that of newcomers.
    New,
    Old,
}

#[derive(Debug)]
struct Node {
    key: Key,
    /// The next whose key falls in the same bucket.
    same: u32,
    parent: u32,
    /// What a turn of it is worth.
    quantum: i64,
    /// What it may still start.
    deficit: i64,
    stands: Stands,
    after: u32,
    /// Its children, in turn: newcomers, and the others.
    new: Round,
    old: Round,
    /// Commands that wait below it.
    waiting: u32,
    /// Of a volume: its weight, and its lines that exist.
    weight: u16,
    lines: u32,
    /// Of a connection: who waits.
    line: Line,
}

impl Node {
    fn new(key: Key, parent: u32, weight: u16) -> Self {
        let quantum = match key {
            Key::Line { .. } => QUANTUM_LINE,
            Key::Root | Key::Volume(_) | Key::Host(..) => {
                ((QUANTUM * u64::from(weight) / u64::from(WEIGHT)) as i64).max(QUANTUM_MIN)
            }
        };
        let (stands, after, waiting) = (Stands::Out, NONE, 0);
        Self {
            key,
            same: NONE,
            parent,
            quantum,
            deficit: quantum,
            stands,
            after,
            new: EMPTY,
            old: EMPTY,
            waiting,
            weight,
            lines: 0,
            line: Line::default(),
        }
    }
}

/// The waiters of one array on one shard.
#[derive(Debug)]
pub(crate) struct Scheduler {
    nodes: Slots<Node>,
    /// The first node of each bucket of keys: a power of two, at least as many as there is room for nodes.
    buckets: Vec<u32>,
    /// The last line of each connection of this shard: where to look first.
    hints: Vec<u32>,
    shard: u16,
    waiting: u32,
}

impl Scheduler {
    pub fn new(shard: u16) -> Self {
        let mut nodes = Slots::with_capacity(2 * LINES);
        let root = nodes.insert(Node::new(Key::Root, NONE, WEIGHT));
        assert!(matches!(root, Ok(ROOT)), "the first slot is the first to be taken");
        Self { nodes, buckets: vec![NONE; 2 * LINES as usize], hints: vec![], shard, waiting: 0 }
    }
    #[inline]
    fn bucket(&self, key: Key) -> usize {
        key.hash() & (self.buckets.len() - 1)
    }
    /// The node with this key. None: there is no such node now.
    fn by_key(&self, key: Key) -> Option<u32> {
        let mut at = self.buckets[self.bucket(key)];
        while at != NONE {
            let node = &self.nodes[at];
            if node.key == key {
                return Some(at);
            }
            at = node.same;
        }
        None
    }
    /// A node can be found by its key from now on.
    fn file(&mut self, index: u32) {
        let bucket = self.bucket(self.nodes[index].key);
        self.nodes[index].same = core::mem::replace(&mut self.buckets[bucket], index);
    }
    /// And no more.
    fn unfile(&mut self, index: u32) {
        let Node { key, same, .. } = self.nodes[index];
        let bucket = self.bucket(key);
        if self.buckets[bucket] == index {
            self.buckets[bucket] = same;
            return;
        }
        let mut at = self.buckets[bucket];
        while self.nodes[at].same != index {
            at = self.nodes[at].same;
        }
        self.nodes[at].same = same;
    }
    /// Twice the room.
    fn grow(&mut self) {
        self.nodes.reserve(self.nodes.capacity());
        self.buckets.clear();
        self.buckets.resize(self.nodes.capacity() as usize, NONE);
        for index in 0..self.nodes.capacity() {
            if index != ROOT && self.nodes.get(index).is_some() {
                self.file(index);
            }
        }
    }
    /// Commands that wait.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }
    /// The line of `whose` connection for this volume, which a command joins next.
    pub fn line_of(&mut self, whose: Whose, weight: u16) -> u32 {
        let key = Key::Line { volume: whose.volume, shard: whose.shard, link: whose.link };
        let own = whose.shard == self.shard;
        if own
            && let Some(hint) = self.hints.get(whose.link as usize).copied()
            && self.nodes.get(hint).is_some_and(|n| n.key == key)
        {
            return hint;
        }
        let line = match self.by_key(key) {
            Some(line) => line,
            None => {
                let volume = self.node(Key::Volume(whose.volume), ROOT, weight);
                let host = self.node(Key::Host(whose.volume, whose.host), volume, WEIGHT);
                self.nodes[volume].lines += 1;
                self.node(key, host, WEIGHT)
            }
        };
        // Connections without a shard's index (a benchmark's) have no hint.
        if own && whose.link != NONE {
            let link = whose.link as usize;
            if self.hints.len() <= link {
                self.hints.resize(link + 1, NONE);
            }
            self.hints[link] = line;
        }
        line
    }
    fn node(&mut self, key: Key, parent: u32, weight: u16) -> u32 {
        if let Some(index) = self.by_key(key) {
            return index;
        }
        if self.nodes.len() == self.nodes.capacity() {
            self.grow();
        }
        let inserted = self.nodes.insert(Node::new(key, parent, weight));
        let index = inserted.expect("room was made");
        self.file(index);
        index
    }
    /// The commands of a line.
    pub fn line(&mut self, line: u32) -> &mut Line {
        &mut self.nodes[line].line
    }
    /// Whether a line is one of commands that came in at this shard.
    pub fn is_own(&self, line: u32) -> bool {
        matches!(self.nodes[line].key, Key::Line { shard, .. } if shard == self.shard)
    }
    /// A command has joined a line.
    pub fn joined(&mut self, line: u32) {
        self.waiting += 1;
        let mut at = line;
        while at != ROOT {
            let node = &mut self.nodes[at];
            node.waiting += 1;
            let parent = node.parent;
            if node.stands == Stands::Out {
                node.stands = Stands::New;
                self.push(parent, at, Stands::New);
            }
            at = parent;
        }
    }
    /// A command has left a line. True: it was the last waiter of the connection, the host or the volume, while others wait.
    pub fn left(&mut self, line: u32) -> bool {
        self.waiting -= 1;
        let (mut at, mut last) = (line, false);
        while at != ROOT {
            let node = &mut self.nodes[at];
            node.waiting -= 1;
            last |= node.waiting == 0;
            at = node.parent;
        }
        last && self.waiting > 0
    }
    /// A command of a line has started, which costs that much.
    pub fn charge(&mut self, line: u32, cost: u64) {
        let mut at = line;
        while at != ROOT {
            let node = &mut self.nodes[at];
            node.deficit -= cost as i64;
            at = node.parent;
        }
    }
    /// The volumes with waiters, and their lines.
    pub fn claims(&self, out: &mut Vec<Claim>) {
        out.clear();
        let root = &self.nodes[ROOT];
        for round in [root.new, root.old] {
            let mut child = round.first;
            while child != NONE {
                let Node { key, weight, lines, waiting, after, .. } = self.nodes[child];
                if let Key::Volume(volume) = key
                    && waiting > 0
                {
                    out.push(Claim { volume, weight, lines, part: 0.0 });
                }
                child = after;
            }
        }
    }
    /// What volumes weigh on this shard.
    pub fn set_parts(&mut self, claims: &[Claim]) {
        for claim in claims {
            if let Some(volume) = self.by_key(Key::Volume(claim.volume)) {
                let quantum = QUANTUM as f32 * claim.part / f32::from(WEIGHT);
                self.nodes[volume].quantum = (quantum as i64).max(QUANTUM_MIN);
            }
        }
    }
    /// The line whose first command is next. None: there are no waiters.
    pub fn next(&mut self) -> Option<u32> {
        if self.waiting() == 0 {
            return None;
        }
        let mut at = ROOT;
        loop {
            at = self.child(at);
            if matches!(self.nodes[at].key, Key::Line { .. }) {
                return Some(at);
            }
        }
    }
    /// Some line of another shard in which somebody waits: for when no command of this one can start. That is rare, and
    /// all lines are looked at.
    #[cold]
    pub fn next_of_peers(&self) -> Option<u32> {
        let of_peer = |node: &&Node| matches!(node.key, Key::Line { shard, .. } if shard != self.shard);
        let mut lines = self.nodes.iter().filter(|(_, node)| node.waiting > 0);
        lines.find(|(_, node)| of_peer(node)).map(|(line, _)| line)
    }
    /// The child whose turn it is; somebody waits below one of them.
    fn child(&mut self, of: u32) -> u32 {
        loop {
            let Node { new, old, .. } = &self.nodes[of];
            let from = if new.first != NONE { Stands::New } else { Stands::Old };
            let first = if new.first != NONE { new.first } else { old.first };
            let node = &mut self.nodes[first];
            if node.deficit <= 0 {
                node.deficit += node.quantum;
            } else if node.waiting > 0 {
                return first;
            } else if from == Stands::Old {
                self.pop(of, Stands::Old);
                self.remove(first);
                continue;
            }
            self.pop(of, from);
            self.nodes[first].stands = Stands::Old;
            self.push(of, first, Stands::Old);
        }
    }
    /// Removes a node and its children, none of which has waiters.
    fn remove(&mut self, index: u32) {
        self.unfile(index);
        let Node { key, new, old, .. } = self.nodes.remove(index);
        if let Key::Line { volume, .. } = key
            && let Some(volume) = self.by_key(Key::Volume(volume))
        {
            self.nodes[volume].lines -= 1;
        }
        for round in [new, old] {
            let mut child = round.first;
            while child != NONE {
                let after = self.nodes[child].after;
                self.remove(child);
                child = after;
            }
        }
    }
    fn push(&mut self, parent: u32, child: u32, to: Stands) {
        self.nodes[child].after = NONE;
        let last = self.round(parent, to).last;
        match last {
            NONE => self.round(parent, to).first = child,
            last => self.nodes[last].after = child,
        }
        self.round(parent, to).last = child;
    }
    fn pop(&mut self, parent: u32, from: Stands) {
        let first = self.round(parent, from).first;
        let after = self.nodes[first].after;
        let round = self.round(parent, from);
        round.first = after;
        if after == NONE {
            round.last = NONE;
        }
    }
    fn round(&mut self, parent: u32, which: Stands) -> &mut Round {
        let node = &mut self.nodes[parent];
        match which {
            Stands::New => &mut node.new,
            Stands::Old => &mut node.old,
            Stands::Out => panic!("who is in no round is not looked for in one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::lines::{Place, Stands};
    use std::collections::BTreeMap;

    struct Waiter {
        place: Place,
        whose: Whose,
        cost: u64,
    }

    impl Stands for Waiter {
        fn place(&mut self) -> &mut Place {
            &mut self.place
        }
    }

    struct World {
        scheduler: Scheduler,
        waiters: Slots<Waiter>,
        had: BTreeMap<(u32, u32, u32), u64>,
        order: Vec<u32>,
    }

    fn whose(volume: u32, host: u32, link: u32) -> Whose {
        Whose { volume: VolumeId(volume), host, shard: 0, link, little: false }
    }

    impl World {
        fn new() -> Self {
            let waiters = Slots::with_capacity(100_000);
            Self { scheduler: Scheduler::new(0), waiters, had: BTreeMap::new(), order: vec![] }
        }
        fn join(&mut self, whose: Whose, weight: u16, bytes: u64) {
            let waiter = Waiter { place: Place::default(), whose, cost: cost_of(bytes) };
            let Ok(index) = self.waiters.insert(waiter) else { panic!("there is room") };
            let line = self.scheduler.line_of(whose, weight);
            self.scheduler.line(line).join(&mut self.waiters, index);
            self.scheduler.joined(line);
        }
        fn serve(&mut self) -> Option<Whose> {
            let line = self.scheduler.next()?;
            let index = self.scheduler.line(line).next(&mut self.waiters).expect("somebody waits there");
            let _ = self.scheduler.left(line);
            let Waiter { whose, cost, .. } = self.waiters.remove(index);
            self.scheduler.charge(line, cost);
            *self.had.entry((whose.volume.0, whose.host, whose.link)).or_default() += cost;
            self.order.push(whose.link);
            Some(whose)
        }
        /// Each of these flows keeps so many commands of so many bytes in line, `rounds` are served.
        fn run(&mut self, flows: &[(Whose, u16, u64, u32)], rounds: u32) {
            for (whose, weight, bytes, depth) in flows {
                (0..*depth).for_each(|_| self.join(*whose, *weight, *bytes));
            }
            for _ in 0..rounds {
                let served = self.serve().expect("somebody waits");
                let (whose, weight, bytes, _) = *flows.iter().find(|f| f.0 == served).expect("of these");
                self.join(whose, weight, bytes);
            }
        }
        fn of(&self, mut which: impl FnMut(u32, u32, u32) -> bool) -> f64 {
            self.had.iter().filter(|((v, h, l), _)| which(*v, *h, *l)).map(|(_, had)| *had as f64).sum()
        }
    }

    fn near(a: f64, b: f64, percent: f64) {
        assert!((a / b - 1.0).abs() * 100.0 <= percent, "{a} and {b}");
    }

    #[test]
    fn equal_lines_have_equal_shares_whatever_the_size_of_their_commands() {
        let mut w = World::new();
        let flows = [
            (whose(1, 1, 1), 100, 4096, 128),
            (whose(1, 1, 2), 100, 1 << 20, 8),
            (whose(1, 1, 3), 100, 512, 1),
        ];
        w.run(&flows, 60_000);
        let all = w.of(|_, _, _| true);
        for link in 1..=3 {
            near(w.of(|_, _, l| l == link), all / 3.0, 2.0);
        }
    }

    #[test]
    fn volumes_then_hosts_then_connections_have_equal_shares() {
        let mut w = World::new();
        let mut flows = vec![(whose(1, 1, 0), 100, 4096, 4), (whose(2, 1, 0), 100, 4096, 32)];
        flows.extend((1..=8).map(|link| (whose(1, 2, link), 100, 4096, 64)));
        w.run(&flows, 40_000);
        let all = w.of(|_, _, _| true);
        near(w.of(|v, _, _| v == 2), all / 2.0, 2.0);
        near(w.of(|v, h, _| (v, h) == (1, 1)), all / 4.0, 2.0);
        for link in 1..=8 {
            near(w.of(|v, h, l| (v, h, l) == (1, 2, link)), all / 32.0, 5.0);
        }
    }

    #[test]
    fn weights_of_volumes_are_kept() {
        let mut w = World::new();
        let flows = [
            (whose(1, 1, 1), 100, 4096, 64),
            (whose(2, 1, 1), 300, 4096, 64),
            (whose(3, 1, 1), 1, 65536, 64),
        ];
        w.run(&flows, 100_000);
        let first = w.of(|v, _, _| v == 1);
        near(w.of(|v, _, _| v == 2), 3.0 * first, 2.0);
        near(w.of(|v, _, _| v == 3), first / 100.0, 20.0);
    }

    #[test]
    fn who_comes_now_and_then_goes_before_the_round_of_those_who_have_much() {
        let mut w = World::new();
        let flows: Vec<_> = (1..=64).map(|link| (whose(1, 1, link), 100, 4096, 128)).collect();
        w.run(&flows, 1000);
        for _ in 0..100 {
            w.join(whose(1, 2, 99), 100, 4096);
            let before = w.order.len();
            while w.serve().is_some_and(|s| s.link != 99) {}
            assert!(w.order.len() - before <= 4, "it waited for {} others", w.order.len() - before - 1);
            (0..5).for_each(|_| assert!(w.serve().is_some()));
        }
    }

    #[test]
    fn who_leaves_and_comes_back_at_once_has_no_more_for_it() {
        let mut w = World::new();
        (0..30_000).for_each(|_| w.join(whose(1, 1, 1), 100, 4096));
        let mut had = 0;
        for _ in 0..10_000 {
            // One command of 64 KiB at a time, the next one as soon as it has started.
            if w.scheduler.waiting() as usize == w.waiters.iter().filter(|(_, x)| x.whose.link == 1).count() {
                w.join(whose(1, 1, 2), 100, 65536);
            }
            had += u32::from(w.serve().expect("many wait").link == 2);
        }
        near(f64::from(had) * cost_of(65536) as f64, w.of(|_, _, l| l == 1), 15.0);
    }

    #[test]
    fn any_order_of_joining_leaving_and_serving_loses_nobody_and_leaves_nothing() {
        let mut prng = base::Prng::new(3);
        let mut w = World::new();
        let mut inside: Vec<(u32, u32)> = vec![];
        for _ in 0..50_000 {
            match prng.below(5) {
                0 | 1 => {
                    let who = whose(prng.below(5) as u32, prng.below(3) as u32, prng.below(20) as u32);
                    let who = Whose { shard: prng.below(2) as u16, ..who };
                    let waiter = Waiter { place: Place::default(), whose: who, cost: prng.below(1 << 20) };
                    let Ok(index) = w.waiters.insert(waiter) else { continue };
                    let line = w.scheduler.line_of(who, 1 + prng.below(1000) as u16);
                    assert_eq!(w.scheduler.is_own(line), who.shard == 0);
                    w.scheduler.line(line).join(&mut w.waiters, index);
                    w.scheduler.joined(line);
                    inside.push((index, line));
                }
                2 if !inside.is_empty() => {
                    let (index, line) = inside.swap_remove(prng.below(inside.len() as u64) as usize);
                    w.scheduler.line(line).leave(&mut w.waiters, index);
                    w.scheduler.left(line);
                    w.waiters.remove(index);
                }
                _ => {
                    let waited = inside.len();
                    if let Some(line) = w.scheduler.next() {
                        let index = w.scheduler.line(line).next(&mut w.waiters).expect("somebody waits");
                        w.scheduler.left(line);
                        let cost = w.waiters.remove(index).cost;
                        w.scheduler.charge(line, cost);
                        inside.retain(|x| x.0 != index);
                    }
                    assert_eq!(inside.len(), waited.saturating_sub(1));
                }
            }
            assert_eq!(w.scheduler.waiting() as usize, inside.len());
        }
        while w.serve().is_some() {}
        assert!(w.scheduler.nodes.len() <= 1 + 5 + 5 * 3 + 5 * 2 * 20, "{} nodes", w.scheduler.nodes.len());
    }
    #[test]
    fn more_lines_than_there_was_room_for_are_found_and_served_once_each() {
        let mut w = World::new();
        let lines = 20 * LINES;
        for link in 0..lines {
            w.join(whose(link % 7, link % 3, link), WEIGHT, 4096);
            let found =
                w.scheduler.nodes.iter().skip(1).all(|(i, node)| w.scheduler.by_key(node.key) == Some(i));
            assert!(found, "each of {link} is found by its key");
        }
        for _ in 0..lines {
            w.serve().expect("somebody waits");
            let found =
                w.scheduler.nodes.iter().skip(1).all(|(i, node)| w.scheduler.by_key(node.key) == Some(i));
            assert!(found, "those who are left are found");
        }
        assert!(w.serve().is_none());
        w.order.sort_unstable();
        assert_eq!(w.order, (0..lines).collect::<Vec<_>>());
    }
}
