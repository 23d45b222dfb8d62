//! What one reactor can carry: echo of small messages and reads of drives, in millions a second. Not a
//! test: run it on a quiet machine. `cargo run --release -p uring --example ceiling -- ram:64M`

use base::{
    Address, ConnectionId, DriveId, DriveOp, DriveOpKind, Effect, Effects, Event, Instant, Machine, Memory,
    Slice, Token,
};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;
use uring::{Config, House, MachineConfig, RegionPart};

const DEPTH: u64 = 64;
const SECONDS: u64 = 2;

struct Reader {
    part: RegionPart,
    until: Option<Instant>,
    done: u64,
    blocks: u64,
    spec: Option<String>,
}

impl Reader {
    fn read(&mut self, i: u64, fx: &mut Effects<u64>) {
        let data = Slice::new(self.part.extent().0 + i * 4096, 4096);
        let at = (self.done.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % self.blocks * 4096;
        let (drive, kind, token) = (DriveId(0), DriveOpKind::Read, Token(i));
        fx.push(Effect::Drive(DriveOp { drive, kind, at, len: 4096, data, fua: false, token }));
    }
}

impl Machine for Reader {
    type Mail = u64;
    fn on_event(&mut self, now: Instant, event: Event<u64>, fx: &mut Effects<u64>) {
        match event {
            Event::DriveOpened { result, .. } => {
                self.blocks = result.expect("the drive opens").bytes / 4096;
                self.until = Some(now + Duration::from_secs(SECONDS));
                (0..DEPTH).for_each(|i| self.read(i, fx));
            }
            Event::DriveDone { token, result } => {
                result.expect("reads succeed");
                self.done += 1;
                if self.until.is_some_and(|at| now < at) {
                    self.read(token.0, fx);
                } else if self.until.take().is_some() {
                    fx.push(Effect::Mail { to: Address::Manager, mail: self.done });
                }
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    fn on_timer(&mut self, _: Instant, _: &mut Effects<u64>) {}
    fn end_of_turn(&mut self, _: Instant, fx: &mut Effects<u64>) {
        if let Some(spec) = self.spec.take() {
            fx.push(Effect::OpenDrive { token: Token(0), drive: DriveId(0), spec, shared: false });
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn segments(&self, _: ConnectionId, _: usize, _: &mut Vec<Slice>) {}
}

fn main() {
    for spec in std::env::args().skip(1) {
        let (to, letters) = channel();
        let machines = vec![MachineConfig::new(Address::Shard(0), 1 << 20)];
        let mut house =
            House::build(Config { machines, state_dir: None }, move |_, n| to.send(n).unwrap()).unwrap();
        let given = spec.clone();
        let make = move |part, _| Reader { part, until: None, done: 0, blocks: 1, spec: Some(given) };
        house.spawn(Address::Shard(0), make).unwrap();
        house.make_resident_now();
        let done = letters.recv().unwrap();
        let counters = house.counters(Address::Shard(0)).unwrap();
        let (turns, sleeps) =
            (counters.turns.load(Ordering::Relaxed), counters.sleeps.load(Ordering::Relaxed));
        println!(
            "{spec}: {:.0} K reads/s, {turns} turns, {sleeps} sleeps",
            done as f64 / SECONDS as f64 / 1e3
        );
        house.watch().notices().iter().for_each(|n| println!("  {n:?}"));
        house.stop().unwrap();
    }
    println!("{}", uring::probe());
}
