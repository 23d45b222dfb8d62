//! Messages between two heads arrive once and in order, though networks are cut at any byte.

use base::{Prng, Uuid};
use cluster::HeadNo;
use cluster::link::{Do, Fault, Full, Heard, Link, MESSAGE_MAX};
use std::collections::VecDeque;

const SYSTEM: Uuid = Uuid([7; 16]);

/// Two ends, and networks that carry bytes as they like.
struct Pair {
    ends: [Link; 2],
    /// Of each network: bytes on their way to each end, and whether it is up.
    wires: Vec<[VecDeque<u8>; 2]>,
    up: Vec<bool>,
    heard: [Vec<Heard>; 2],
    closed: Vec<Fault>,
}

impl Pair {
    fn new(paths: usize) -> Self {
        let end = |head, life| Link::new(SYSTEM, head, life, 1, paths);
        Self {
            ends: [end(HeadNo::A, 11), end(HeadNo::B, 22)],
            wires: (0..paths).map(|_| Default::default()).collect(),
            up: vec![false; paths],
            heard: Default::default(),
            closed: vec![],
        }
    }
    fn connect(&mut self, path: usize) {
        self.up[path] = true;
        self.wires[path] = Default::default();
        self.ends.iter_mut().for_each(|e| e.on_up(path));
    }
    /// What is under way is lost, at whichever byte.
    fn cut(&mut self, path: usize) {
        self.up[path] = false;
        self.wires[path] = Default::default();
        self.ends.iter_mut().for_each(|e| e.on_down(path));
    }
    fn turn(&mut self) {
        for from in 0..2 {
            for d in self.ends[from].dos() {
                match d {
                    Do::Send { path, bytes } if self.up[path] => self.wires[path][1 - from].extend(bytes),
                    Do::Send { .. } => {}
                    Do::Close { path, why } => {
                        self.closed.push(why);
                        self.cut(path);
                    }
                }
            }
            let heard = self.ends[from].heard();
            self.heard[from].extend(heard);
        }
    }
    fn carry(&mut self, path: usize, to: usize, most: usize) {
        let n = self.wires[path][to].len().min(most);
        let bytes: Vec<u8> = self.wires[path][to].drain(..n).collect();
        self.ends[to].on_bytes(path, &bytes);
        self.turn();
    }
    fn settle(&mut self) {
        self.turn();
        for _ in 0..100 {
            for (path, to) in (0..self.wires.len()).flat_map(|p| [(p, 0), (p, 1)]) {
                self.carry(path, to, usize::MAX);
            }
        }
    }
    fn messages(&self, end: usize) -> Vec<u64> {
        let number = |h: &Heard| match h {
            Heard::Message(m) => m.first_chunk().map(|n| u64::from_le_bytes(*n)),
            _ => None,
        };
        self.heard[end].iter().filter_map(number).collect()
    }
}

#[test]
fn messages_arrive_once_and_in_order_though_networks_are_cut_at_any_byte() {
    let mut cuts = 0;
    for seed in 0..300 {
        let mut rng = Prng::new(seed);
        let mut pair = Pair::new(1 + (seed % 2) as usize);
        let mut sent = [0u64; 2];
        for _ in 0..2000 {
            let path = rng.below(pair.wires.len() as u64) as usize;
            match rng.below(20) {
                0 if pair.up[path] => {
                    cuts += 1;
                    pair.cut(path);
                }
                0..3 if !pair.up[path] => pair.connect(path),
                3..8 => {
                    let end = rng.below(2) as usize;
                    let mut message = sent[end].to_le_bytes().to_vec();
                    message.resize(8 + rng.below(200) as usize, 3);
                    if pair.ends[end].send(message).is_ok() {
                        sent[end] += 1;
                    }
                }
                _ => {
                    let (to, most) = (rng.below(2) as usize, rng.between(1, 300) as usize);
                    pair.carry(path, to, most);
                }
            }
            pair.turn();
        }
        for path in 0..pair.wires.len() {
            if !pair.up[path] {
                pair.connect(path);
            }
        }
        pair.settle();
        assert_eq!(pair.closed, [], "seed {seed}: nobody says anything wrong");
        for end in 0..2 {
            let expected: Vec<u64> = (0..sent[1 - end]).collect();
            assert_eq!(pair.messages(end), expected, "seed {seed}: what end {end} got");
        }
    }
    assert!(cuts > 5000, "networks were cut {cuts} times");
}

#[test]
fn a_head_that_started_again_is_reported_and_gets_nothing_of_before() {
    let mut pair = Pair::new(1);
    pair.connect(0);
    pair.settle();
    pair.ends[0].send(1u64.to_le_bytes().into()).expect("room");
    pair.settle();
    pair.cut(0);
    pair.ends[0].send(2u64.to_le_bytes().into()).expect("room");
    pair.ends[1] = Link::new(SYSTEM, HeadNo::B, 33, 1, 1);
    pair.connect(0);
    pair.settle();
    pair.ends[0].send(3u64.to_le_bytes().into()).expect("room");
    pair.ends[1].send(9u64.to_le_bytes().into()).expect("room");
    pair.settle();
    assert_eq!((pair.messages(1), pair.messages(0)), (vec![1, 3], vec![9]));
    let met = |h: &Heard| match h {
        Heard::Met { hello, fresh, .. } => Some((hello.life, *fresh)),
        _ => None,
    };
    assert_eq!(pair.heard[0].iter().filter_map(met).collect::<Vec<_>>(), [(22, true), (33, true)]);
}

/// All of it came, and the network that carried the acknowledgement was cut: nothing else was ever to be sent that could have carried another.
#[test]
fn what_came_is_acknowledged_again_by_the_network_that_is_left() {
    let mut pair = Pair::new(2);
    (0..2).for_each(|path| pair.connect(path));
    pair.settle();
    for number in 0..4u64 {
        pair.ends[0].send([&number.to_le_bytes()[..], &[0; 1000]].concat()).expect("room");
    }
    pair.turn();
    pair.carry(0, 1, usize::MAX);
    assert_eq!((pair.messages(1).len(), pair.ends[0].unacknowledged()), (4, 4 * 1008), "it is on its way");
    pair.cut(0);
    pair.settle();
    assert_eq!((pair.messages(1).len(), pair.ends[0].unacknowledged()), (4, 0));
}

/// Its first word by a slow network arrives once its next process was met by another one: that slow network alone is closed.
#[test]
fn the_late_word_of_a_process_that_is_over_ends_nothing() {
    let mut pair = Pair::new(2);
    pair.connect(0);
    pair.turn();
    let mut late: VecDeque<u8> = pair.wires[0][0].clone();
    // The process that said it has ended, and the next one comes by the other network.
    pair.ends[1] = Link::new(SYSTEM, HeadNo::B, 33, 1, 2);
    pair.up[1] = true;
    pair.ends.iter_mut().for_each(|e| e.on_up(1));
    pair.wires[0] = Default::default();
    pair.settle();
    pair.ends[0].send(1u64.to_le_bytes().to_vec()).expect("room");
    pair.ends[1].send(2u64.to_le_bytes().to_vec()).expect("room");
    pair.settle();
    pair.ends[0].on_bytes(0, &late.drain(..).collect::<Vec<_>>());
    let dos = pair.ends[0].dos();
    assert!(dos.contains(&Do::Close { path: 0, why: Fault::FormerLife }), "{dos:?}");
    assert!(pair.ends[0].is_met(1) && !pair.ends[0].is_met(0));
    pair.ends[0].send(3u64.to_le_bytes().to_vec()).expect("room");
    pair.ends[1].send(4u64.to_le_bytes().to_vec()).expect("room");
    pair.settle();
    assert_eq!((pair.messages(0), pair.messages(1)), (vec![2, 4], vec![1, 3]));
}

/// The same, taken for a new process as its connection was reported late: whoever lives goes on where it was as soon as it comes again.
#[test]
fn a_process_that_was_taken_for_over_goes_on_where_it_was() {
    let mut pair = Pair::new(2);
    pair.connect(0);
    pair.ends[0].send(1u64.to_le_bytes().to_vec()).expect("room");
    pair.settle();
    // What another process says by the second network, whose connection comes up here only now.
    let mut other = Link::new(SYSTEM, HeadNo::B, 21, 1, 2);
    other.on_up(1);
    let [Do::Send { bytes, .. }] = &other.dos()[..] else { panic!("it introduces itself") };
    pair.ends[0].on_up(1);
    pair.ends[0].on_bytes(1, bytes);
    pair.turn();
    assert_eq!(pair.closed, [Fault::FormerLife]);
    pair.ends[0].on_down(1);
    pair.closed.clear();
    pair.connect(0);
    pair.settle();
    pair.ends[0].send(2u64.to_le_bytes().to_vec()).expect("room");
    pair.ends[1].send(3u64.to_le_bytes().to_vec()).expect("room");
    pair.settle();
    assert_eq!((pair.messages(0), pair.messages(1), &pair.closed[..]), (vec![3], vec![1, 2], &[][..]));
}

#[test]
fn what_is_no_frame_closes_its_network_alone() {
    let hello = |system: Uuid, head: HeadNo| {
        let mut other = Link::new(system, head, 5, 1, 1);
        other.on_up(0);
        match other.dos().remove(0) {
            Do::Send { bytes, .. } => bytes,
            other => panic!("{other:?}"),
        }
    };
    let mut older = hello(SYSTEM, HeadNo::B);
    older[5..9].fill(0);
    let mut newer = hello(SYSTEM, HeadNo::B);
    newer[5..9].fill(9);
    let cases: Vec<(Vec<u8>, Fault)> = vec![
        (vec![0; 4], Fault::Garbage),
        (vec![255; 4], Fault::Garbage),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Fault::Garbage),
        (vec![1, 0, 0, 0, 77], Fault::Garbage),
        (vec![9, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0], Fault::Garbage),
        (hello(Uuid([8; 16]), HeadNo::B), Fault::OtherSystem),
        (hello(SYSTEM, HeadNo::A), Fault::SameHead),
        (older, Fault::Version(0, 0)),
        (newer, Fault::Version(0x909, 0x909)),
        // One that has met says it again, or acknowledges what nobody sent.
        ([hello(SYSTEM, HeadNo::B), hello(SYSTEM, HeadNo::B)].concat(), Fault::Garbage),
        ([hello(SYSTEM, HeadNo::B), vec![9, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0]].concat(), Fault::Garbage),
    ];
    for (bytes, why) in cases {
        let mut link = Link::new(SYSTEM, HeadNo::A, 11, 1, 1);
        link.on_up(0);
        link.on_bytes(0, &bytes);
        assert!(link.dos().contains(&Do::Close { path: 0, why }), "{bytes:?}: {why:?}");
        assert!(!link.is_up());
    }
}

#[test]
fn a_head_that_takes_nothing_costs_bounded_memory() {
    let mut link = Link::new(SYSTEM, HeadNo::A, 11, 1, 1);
    let sent = (0..100).take_while(|_| link.send(vec![0; MESSAGE_MAX]).is_ok()).count();
    assert_eq!((sent, link.send(vec![0; MESSAGE_MAX])), (8, Err(Full)));
    // What is too long comes from above, and is no reason to end.
    let mut link = Link::new(SYSTEM, HeadNo::A, 11, 1, 1);
    assert_eq!((link.send(vec![0; MESSAGE_MAX + 1]), link.unacknowledged()), (Err(Full), 0));
}
