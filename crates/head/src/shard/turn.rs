//! How much a shard takes in within one turn, and which connections wait for the next one.
//!
//! A turn takes in what hosts have sent, connection by connection, until it has its number of PDUs. Connections with more then wait in a
//! line, and the next turns go on with it, a limited number of PDUs of each at a time. In between the shard asks the kernel what has
//! happened. So the longest turn is bounded, whatever hosts send, and nobody waits for more than the line.
//!
//! A light connection, such as that of a host that waits for each of its commands, passes the line while others stand there. Turns are short
//! then: what such a host waits for is mostly the turn itself. If there are many light connections, they stand in line like all others.
//!
//! None of this costs anything while a turn can take in everything.

use crate::path::link::Link;
use base::{Duration, Instant};
use std::collections::VecDeque;

/// PDUs that a turn takes in: about half a millisecond of one core.
pub const TURN_PDUS: u32 = 512;
/// The same while light connections are served beside others: less than 0.1 ms.
const TURN_PDUS_SHORT: u32 = 64;
/// PDUs of one connection before it is the others' turn: the most that most queues have under way, so that none of its
/// commands waits for two rounds. A visit may take several turns.
const VISIT_PDUS: u32 = 128;
/// This many bytes in a staging buffer count as another PDU: they are copied.
const PDU_BYTES: u32 = 4096;
/// A connection is light if it has no more commands than this under way, and no more PDUs arrived at a time.
const LITTLE: u32 = 8;
/// PDUs in a turn of light connections, which pass the line.
const PASSING_PDUS: u32 = 256;
/// Turns expect another connection to wait, or to pass the line, for this long after the last one.
const MEMORY: Duration = Duration::from_millis(10);

/// What a turn may still take in.
pub(crate) struct Turn {
    /// PDUs of a turn.
    usual: u32,
    /// How many are left of this turn,
    left: u32,
    /// of those for connections that pass the line,
    passing: u32,
    /// and for the connection that is visited.
    visit: u32,
    given: u32,
    passes: bool,
    /// No connection has waited lately.
    easy: bool,
    waited: Option<Instant>,
    passed: Option<Instant>,
    /// Connections with more to take in.
    line: VecDeque<u32>,
}

impl Turn {
    /// Turns of so many PDUs.
    pub fn new(usual: u32) -> Self {
        assert!(usual > 0, "a turn takes in something");
        Self {
            usual,
            left: usual,
            passing: 0,
            visit: 0,
            given: 0,
            passes: false,
            easy: true,
            waited: None,
            passed: None,
            line: VecDeque::with_capacity(64),
        }
    }
    /// There are so many connections.
    pub fn reserve(&mut self, connections: u32) {
        self.line.reserve((connections as usize).saturating_sub(self.line.len()));
    }
    /// Whether a connection waits for the next turn.
    #[inline]
    pub fn is_over_full(&self) -> bool {
        !self.line.is_empty()
    }
    /// A turn begins.
    #[inline]
    pub fn begin(&mut self, now: Instant) {
        self.left = self.usual;
        self.passing = PASSING_PDUS.min(self.usual);
        if !self.easy {
            self.begin_pressed(now);
        }
    }
    fn begin_pressed(&mut self, now: Instant) {
        let of_late = |at: Option<Instant>| at.is_some_and(|at| now.since(at) < MEMORY);
        if of_late(self.passed) {
            self.left = self.usual.min(TURN_PDUS_SHORT);
        }
        self.easy = self.line.is_empty() && !of_late(self.waited);
    }
    /// Whether this turn takes in what a connection has sent; if not, the connection joins the line.
    #[inline]
    pub fn visit(&mut self, now: Instant, link: &mut Link) -> bool {
        if self.easy && self.left > 0 {
            self.give(link);
            return true;
        }
        self.visit_pressed(now, link)
    }
    #[inline(never)]
    fn visit_pressed(&mut self, now: Instant, link: &mut Link) -> bool {
        if link.in_line {
            return false;
        }
        let little = link.live <= LITTLE && link.came_last <= LITTLE;
        if little {
            self.passed = Some(now);
        }
        if little && self.passing > 0 {
            self.given = self.passing.min(LITTLE);
            self.passes = true;
            self.visit = self.given;
        } else if self.left > 0 && self.line.is_empty() {
            self.give(link);
        } else {
            self.wait(now, link);
            return false;
        }
        true
    }
    /// Goes on with a visit, or begins one.
    #[inline]
    fn give(&mut self, link: &mut Link) {
        if link.visit_left == 0 {
            link.visit_left = VISIT_PDUS;
        }
        self.given = self.left.min(link.visit_left);
        self.passes = false;
        self.visit = self.given;
    }
    fn wait(&mut self, now: Instant, link: &mut Link) {
        self.easy = false;
        self.waited = Some(now);
        link.in_line = true;
        // A connection whose visit was cut off by the end of the turn is the first in the next one.
        match link.visit_left {
            0 => self.line.push_back(link.index),
            _ => self.line.push_front(link.index),
        }
    }
    /// The next connection in line, while the turn has room. If it still exists, `come` is called next.
    pub fn next(&mut self) -> Option<u32> {
        if self.left == 0 { None } else { self.line.pop_front() }
    }
    /// The visit of the next connection in line begins; false: it no longer stood there.
    pub fn come(&mut self, link: &mut Link) -> bool {
        let stood = core::mem::take(&mut link.in_line);
        if stood {
            self.give(link);
        }
        stood
    }
    /// How many PDUs the world should collect of a connection; 0: it is light, and does not wait for more.
    #[inline]
    pub fn batch(&self, link: &Link) -> u32 {
        if link.came_last > LITTLE { link.came_last } else { 0 }
    }
    /// Another PDU: whether it is taken in now.
    #[inline]
    pub fn take(&mut self) -> bool {
        let some = self.visit > 0;
        self.visit -= u32::from(some);
        some
    }
    /// So many bytes were taken.
    #[inline]
    pub fn took(&mut self, bytes: u32) {
        self.visit = self.visit.saturating_sub(bytes / PDU_BYTES);
    }
    /// The visit is over. `more`: something is left that the connection has sent.
    #[inline]
    pub fn leave(&mut self, now: Instant, link: &mut Link, more: bool) {
        let used = self.given - self.visit;
        // Earlier batches count less and less.
        if used > 0 {
            link.came_last = used.max(link.came_last - link.came_last.div_ceil(8));
        }
        let budget = if self.passes { &mut self.passing } else { &mut self.left };
        *budget = budget.saturating_sub(used);
        let all = self.passes || !more || self.visit > 0;
        link.visit_left = if all { 0 } else { link.visit_left - used };
        if more && self.visit == 0 {
            self.wait(now, link);
        }
        self.visit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::accept::tests::{NOW, NQN, NVME, STAGING, World};
    use super::*;
    use base::{ConnectionId, Effect, Event, Machine, Memory, Slice};

    /// Keep Alive commands, which are answered at once, one behind the other.
    fn pings(count: u16) -> Vec<u8> {
        let capsule = |cid: u16| {
            let mut pdu = [0; 72];
            pdu[0] = 4;
            pdu[2] = 72;
            pdu[4] = 72;
            pdu[8] = 0x18;
            pdu[9] = 0x40;
            pdu[10..12].copy_from_slice(&cid.to_le_bytes());
            pdu
        };
        (0..count).flat_map(|cid| capsule(100 + cid)).collect()
    }
    /// A response capsule.
    const ANSWER: u64 = 24;

    struct ManyHosts {
        world: World,
        hosts: Vec<ConnectionId>,
        now: Instant,
        staged: u32,
    }

    impl ManyHosts {
        /// Hosts whose admin queues take 32 commands, at a shard with turns of so many PDUs.
        fn new(hosts: usize, turn_pdus: u32) -> Self {
            let mut world = World::with_turns(64 << 20, turn_pdus);
            let hosts = (0..hosts).map(|_| world.log_in(NVME, NQN, 32)).collect();
            let now = NOW + Duration::from_secs(1);
            Self { world, hosts, now, staged: 0 }
        }
        /// Pings come from a host, if bytes of it are asked for; nobody looks at them yet.
        fn comes(&mut self, host: usize, count: u16) {
            let index = self.world.shard.index_of(self.hosts[host]).expect("it is connected");
            if self.world.shard.connections[index].link.receiving.is_none() {
                return;
            }
            let bytes = pings(count);
            let data = Slice::new(STAGING + u64::from(self.staged), bytes.len() as u32);
            self.staged += data.len;
            self.world.shard.staging_mut().bytes_mut(data).copy_from_slice(&bytes);
            let event = Event::Received { connection: self.hosts[host], data };
            self.world.shard.on_event(self.now, event, &mut vec![]);
        }
        /// A turn; what each host is answered in it.
        fn turn(&mut self) -> Vec<u64> {
            self.now = self.now + Duration::from_micros(1);
            let mut fx = vec![];
            if self.world.shard.next_deadline().is_some_and(|at| at <= self.now) {
                self.world.shard.on_timer(self.now, &mut fx);
            }
            self.world.shard.end_of_turn(self.now, &mut fx);
            let sends = fx.into_iter().filter_map(|effect| match effect {
                Effect::Send { connection } => Some(connection),
                _ => None,
            });
            let mut answers = vec![0; self.hosts.len()];
            for connection in sends {
                let mut parts = vec![];
                self.world.shard.segments(connection, 64, &mut parts);
                let bytes: u32 = parts.iter().map(|p| p.len).sum();
                let host = self.hosts.iter().position(|h| *h == connection).expect("it is a host");
                answers[host] += u64::from(bytes) / ANSWER;
                self.world.shard.on_event(self.now, Event::Sent { connection, bytes }, &mut vec![]);
            }
            answers
        }
        fn has_more(&self) -> bool {
            self.world.shard.next_deadline().is_some_and(|at| at <= self.now)
        }
    }

    #[test]
    fn a_turn_takes_in_so_much_and_the_next_ones_follow_at_once() {
        let mut many = ManyHosts::new(10, 64);
        (0..10).for_each(|host| many.comes(host, 31));
        let (mut turns, mut sum) = (0, [0; 10]);
        loop {
            let answers = many.turn();
            turns += 1;
            // Who comes anew passes the line once, with as many again in all.
            assert!(answers.iter().sum::<u64>() <= 128, "turn {turns}: {answers:?}");
            sum.iter_mut().zip(answers).for_each(|(sum, n)| *sum += n);
            if !many.has_more() {
                break;
            }
        }
        assert_eq!((sum, turns), ([31; 10], 4));
        // Nobody stands in line: what comes is taken in again.
        many.comes(3, 31);
        assert_eq!(many.turn()[3], 31);
    }

    #[test]
    fn who_has_little_passes_the_line_and_the_line_goes_on() {
        let mut many = ManyHosts::new(41, 64);
        (0..40).for_each(|host| many.comes(host, 31));
        let (mut turns, mut others) = (0, many.turn().iter().sum::<u64>());
        while many.has_more() {
            many.comes(40, 1);
            let answers = many.turn();
            turns += 1;
            assert_eq!(answers[40], 1, "turn {turns}");
            others += answers[..40].iter().sum::<u64>();
        }
        assert!(others == 40 * 31 && turns <= 20, "{others} in {turns} turns");
    }

    #[test]
    fn many_with_little_do_not_stop_the_others() {
        let mut many = ManyHosts::new(200, 64);
        for host in 0..8 {
            many.comes(host, 31);
        }
        let (mut turns, mut others) = (0, many.turn().iter().sum::<u64>());
        while others < 8 * 31 {
            many.staged = 64 << 10;
            (8..200).for_each(|host| many.comes(host, 1));
            let answers = many.turn();
            others += answers[..8].iter().sum::<u64>();
            turns += 1;
            assert!(turns < 10, "{others}");
        }
    }

    #[test]
    fn who_stands_in_line_may_go() {
        let mut many = ManyHosts::new(6, 8);
        (0..6).for_each(|host| many.comes(host, 31));
        many.turn();
        for host in 0..6 {
            let connection = many.hosts[host];
            many.world.shard.on_event(many.now, Event::Broken { connection }, &mut vec![]);
            many.turn();
            many.world.shard.on_event(many.now, Event::Closed { connection }, &mut vec![]);
        }
        for _ in 0..10 {
            many.turn();
        }
        assert!(!many.has_more());
        assert_eq!(many.world.shard.connections(), 0);
        assert!(many.world.shard.idle());
    }
}
