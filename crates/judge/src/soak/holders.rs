//! Two heads over files, of which something else holds locks when a head is killed: the drives do not confirm that this head is shut off
//! them. Hosts of both heads wait no longer than docs/two-heads.md says, and no error reaches them.

use super::{Rows, compare_legs};
use crate::load::{self, Load, Protocol, Report};
use crate::{Head, until};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::File;
use std::thread::sleep;
use std::time::Duration;

const LINK: [&str; 2] = ["127.0.0.1", "127.0.0.1"];
/// Portals of each head, by NVMe/TCP and by iSCSI.
const PORTS: [[u16; 2]; 2] = [[4420, 3260], [4421, 3261]];
/// So long no drive confirms, where none does.
const HELD: Duration = Duration::from_secs(6);

/// What happens in a round.
struct Round {
    /// The head that leads is killed, or the one that follows.
    leader: bool,
    /// So many of the four drives are held.
    drives: usize,
    /// How long a command may take: what docs/two-heads.md says, and a few seconds more for a busy machine.
    most_s: f64,
    what: &'static str,
}

const ROUNDS: [Round; 3] = [
    Round { leader: false, drives: 1, most_s: 7.0, what: "slowest, follower killed, one drive held" },
    Round { leader: true, drives: 1, most_s: 7.0, what: "slowest, leader killed, one drive held" },
    Round { leader: true, drives: 4, most_s: 16.0, what: "slowest, leader killed, all drives held for 6 s" },
];

/// The two, in the order of their names.
struct Pair([Head; 2]);

impl Pair {
    fn start() -> Pair {
        let a = Head::with_tank("holders-a");
        let mut b = a.beside("holders-b");
        b.start();
        load::volumes(&a, "32M", "32M");
        a.lead(&b, LINK);
        b.cli("portal add nvme 0.0.0.0:4421");
        b.cli("portal add iscsi 0.0.0.0:3261");
        Pair([a, b])
    }
    /// Who leads while the other one is ready; None: it is not so.
    fn leader(&self) -> Option<usize> {
        let of = |i: usize| self.0[i].heads();
        let leads = |i: usize| {
            let mut wanted = ["follows, ready"; 2];
            wanted[i] = "leads";
            wanted
        };
        (0..2).find(|i| (0..2).all(|asked| of(asked) == leads(*i)))
    }
    fn both_are_in(&self) -> usize {
        let mut leads = None;
        until(&format!("both heads are in: {}\n{}", self.0[0].log(), self.0[1].log()), 90, || {
            leads = self.leader();
            leads.is_some()
        });
        leads.expect("just found")
    }
    fn is_whole(&self, head: usize) {
        until("the pool is whole", 90, || self.0[head].health() == "optimal");
    }
    fn loads(&self, round: u32) -> Vec<Load> {
        let start = |(p, protocol, volume): (usize, Protocol, &str)| {
            let target = load::target(&self.0[0], protocol, volume);
            let portal = format!("127.0.0.1:{}", PORTS[1][p]);
            let words = "--rw randrw --mix 50 --bs 4k --qd 4 --connections 2";
            Load::start(
                &self.0[0],
                &format!("{round}-{volume}"),
                &format!("{target} --portals {portal} {words}"),
            )
        };
        [(0, Protocol::Nvme, "v"), (1, Protocol::Iscsi, "w")].map(start).into()
    }
    /// The slowest command of the hosts, seconds, and what they did.
    fn round(&mut self, number: u32, round: &Round) -> (f64, Report) {
        let leads = self.both_are_in();
        self.is_whole(leads);
        let mut loads = self.loads(number);
        sleep(Duration::from_secs(3));
        loads.iter_mut().for_each(Load::must_run);
        let names = ["a", "b", "c", "d"];
        let held: Vec<File> = names[..round.drives]
            .iter()
            .map(|name| {
                let file = File::open(self.0[0].dir.join(name)).expect("a drive");
                fcntl_lock(&file, FlockOperation::NonBlockingLockShared).expect("a lock");
                file
            })
            .collect();
        let goes = if round.leader { leads } else { 1 - leads };
        self.0[goes].kill_at_once();
        sleep(HELD);
        if round.drives == names.len() {
            drop(held);
        } else {
            // Hosts are served while the drive is held.
            until("the other head serves", 20, || self.0[1 - goes].health() == "degraded");
            sleep(Duration::from_secs(2));
            drop(held);
        }
        self.0[goes].launch();
        let leads = self.both_are_in();
        self.is_whole(leads);
        let mut done = Report::default();
        loads.into_iter().for_each(|load| done.add(&load.finish()));
        let slowest = done.read_max_s.max(done.write_max_s);
        println!("{}: {slowest:.2} s", round.what);
        assert!(slowest <= round.most_s, "{}: {slowest:.2} s, not {}", round.what, round.most_s);
        (slowest, done)
    }
}

/// So many rounds, of each kind in turn.
pub fn holders(rounds: u32) -> Rows {
    let mut pair = Pair::start();
    let (mut report, mut slowest) = (Report::default(), vec![0.0_f64; ROUNDS.len()]);
    for number in 0..rounds {
        let kind = number as usize % ROUNDS.len();
        let (took, done) = pair.round(number, &ROUNDS[kind]);
        slowest[kind] = slowest[kind].max(took);
        report.add(&done);
    }
    let leads = pair.both_are_in();
    pair.0[1 - leads].stop();
    until("one leads alone", 30, || pair.0[leads].json("head ls")["heads"][1 - leads]["state"] == "out");
    until("the pool is whole", 60, || pair.0[leads].json("pool show tank")["state"] == "optimal");
    let compared = compare_legs(&mut pair.0[leads]);
    let mut rows = vec![
        ("rounds", format!("{rounds} of two heads over files that something else has locked")),
        ("verified load", format!("{} operations, {} blocks as they should be", report.ops, report.verified)),
    ];
    for (round, took) in ROUNDS.iter().zip(slowest).take(rounds as usize) {
        rows.push((round.what, format!("{took:.2} s")));
    }
    rows.push(("legs", format!("equal: {compared} MiB")));
    rows
}
