//! What the layers above say to each other arrives whole, once and in order, however long it is and however often the link is cut.

use base::fence::Process;
use base::{Duration, Instant, Prng, Uuid};
use cluster::link::Do as LinkDo;
use cluster::member::{Do, Settings};
use cluster::parts::WHOLE_MAX;
use cluster::watch::{End, Times};
use cluster::{HeadNo, Member, SystemRecord};
use std::collections::VecDeque;

const MIB: usize = 1 << 20;

/// Two members that nobody lets decide anything, and one network between them.
struct Pair {
    members: [Member; 2],
    wires: [VecDeque<u8>; 2],
    up: bool,
    now: Instant,
    came: [Vec<Vec<u8>>; 2],
    /// The longest row of bytes on their way.
    most: usize,
}

fn member(head: HeadNo, life: u64) -> Member {
    let process = Process { pid: life as u32, started: life };
    let set = Settings {
        me: head,
        life,
        name: "n".into(),
        process,
        networks: 1,
        times: Times::default(),
        seed: life,
    };
    Member::new(set, SystemRecord::founding(Uuid([7; 16])))
}

impl Pair {
    fn new() -> Self {
        Self {
            members: [member(HeadNo::A, 11), member(HeadNo::B, 22)],
            wires: Default::default(),
            up: false,
            now: Instant(0) + Duration::from_secs(1),
            came: Default::default(),
            most: 0,
        }
    }
    fn connect(&mut self) {
        self.up = true;
        self.members.iter_mut().for_each(|m| m.on_up(0));
    }
    fn cut(&mut self) {
        self.up = false;
        self.wires = Default::default();
        self.members.iter_mut().for_each(|m| m.on_down(0, End::Lost));
    }
    /// One millisecond, in which so many bytes get through each way.
    fn step(&mut self, bytes: usize) {
        self.now = self.now + Duration::from_millis(1);
        for me in 0..2 {
            for what in self.members[me].turn(self.now) {
                match what {
                    Do::Link(LinkDo::Send { bytes, .. }) if self.up => self.wires[1 - me].extend(bytes),
                    Do::Link(LinkDo::Close { why, .. }) => panic!("nobody says anything wrong: {why:?}"),
                    Do::Upper(whole) => self.came[me].push(whole),
                    _ => {}
                }
            }
        }
        for to in 0..2 {
            self.most = self.most.max(self.wires[to].len());
            let n = self.wires[to].len().min(bytes);
            let some: Vec<u8> = self.wires[to].drain(..n).collect();
            self.members[to].on_bytes(0, &some);
        }
    }
}

fn whole(n: usize, seed: u64) -> Vec<u8> {
    let mut rng = Prng::new(seed);
    (0..n).map(|_| rng.below(256) as u8).collect()
}

#[test]
fn five_mebibytes_arrive_whole_though_the_link_is_cut() {
    let mut pair = Pair::new();
    let sent: [Vec<Vec<u8>>; 2] = [
        vec![whole(100, 1), whole(5 * MIB, 2), whole(3, 3), whole(2 * MIB, 4)],
        vec![whole(5 * MIB, 5), vec![], whole(9, 6)],
    ];
    for (member, wholes) in pair.members.iter_mut().zip(&sent) {
        wholes.iter().for_each(|w| member.send(w.clone()).expect("room"));
    }
    let (mut rng, mut cuts) = (Prng::new(9), 0);
    for _ in 0..4000 {
        match (pair.up, rng.below(30)) {
            (true, 0) => {
                cuts += 1;
                pair.cut();
            }
            (false, 0..10) => pair.connect(),
            _ => {}
        }
        pair.step(200 << 10);
    }
    assert!(cuts > 50, "cut {cuts} times");
    let lengths = |all: &[Vec<u8>]| all.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!([0, 1].map(|m| lengths(&pair.came[m])), [lengths(&sent[1]), lengths(&sent[0])]);
    assert!(pair.came[0] == sent[1] && pair.came[1] == sent[0], "other bytes");
    assert!(pair.most < MIB + (300 << 10), "{} bytes were under way: heartbeats wait behind them", pair.most);
}

#[test]
fn another_process_gets_nothing_of_what_was_begun_for_the_one_before() {
    for steps in [5, 20, 50] {
        let mut pair = Pair::new();
        pair.connect();
        pair.members[0].send(whole(5 * MIB, 1)).expect("room");
        pair.members[1].send(whole(5 * MIB, 2)).expect("room");
        (0..steps).for_each(|_| pair.step(64 << 10));
        assert_eq!(pair.came, [const { Vec::<Vec<u8>>::new() }; 2], "neither is there yet");
        pair.cut();
        pair.members[1] = member(HeadNo::B, 33);
        pair.connect();
        (0..4).for_each(|_| pair.step(MIB));
        pair.members[0].send(vec![7; 300 << 10]).expect("room");
        pair.members[1].send(vec![8]).expect("room");
        (0..100).for_each(|_| pair.step(MIB));
        assert!(pair.came == [vec![vec![8]], vec![vec![7; 300 << 10]]], "after {steps} steps");
    }
}

#[test]
fn what_is_longer_than_anything_may_be_is_refused_and_harms_nobody() {
    let mut pair = Pair::new();
    assert!(pair.members[0].send(vec![0; WHOLE_MAX + 1]).is_err());
    pair.connect();
    pair.members[0].send(vec![1]).expect("room");
    (0..20).for_each(|_| pair.step(MIB));
    assert_eq!(pair.came[1], [vec![1]]);
}
