//! Works on the fence of a drive from a shell, for tests: a house with the real reactor that carries out its arguments
//! as steps, in order.
//!
//! ```text
//! fence DRIVE [shared] STEP…
//!   look | register=KEY | reserve=KEY | unregister=KEY        keys are hexadecimal
//!   shutout=OWN,VICTIM[,PID,STARTED]
//!   limit=MS          of the fence's operations from here on (10000)
//!   load=FIRST,BLOCKS,DEPTH   writes with stamps from here on, to blocks of 4 KiB one after the other, again and again
//!   settle            no new writes; waits for those under way
//!   write=BLOCK | read=BLOCK  one operation, waited for
//!   awaited=PATH | touch=PATH | sleep=MS   processes that run at the same time meet by files
//!   awaiterror        waits until a write of the load has failed
//! ```
//!
//! Every step prints one line: ms since the machine's start, the step, how it ended, how long it took. `settle` counts the writes
//! that failed, by error. The program never ends before every operation on the drive is over.

use base::fence::Process;
use base::{
    Address, ConnectionId, DriveError, DriveId, DriveInfo, DriveOp, DriveOpKind, Effect, Effects, Event,
    Fence, FenceAct, FenceError, FenceKey, FenceOp, Instant, Machine, Memory, OpenError, Slice, Token,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use uring::{Config, House, MachineConfig, RegionPart};

const BLOCK: u64 = 4096;
const DEPTH_MAX: u64 = 64;
/// What is not a write of the load.
const ONE: u64 = u64::MAX;

/// Between the shell and the machine.
#[derive(Debug)]
enum Say {
    Open(String, bool),
    Opened(Result<DriveInfo, OpenError>),
    Fence(FenceOp),
    Fenced(Result<Fence, FenceError>),
    Load { first: u64, blocks: u64, depth: u64 },
    Loading,
    Settle,
    Settled(Box<Tally>),
    FirstError,
    One(DriveOpKind, u64),
    Did(Result<u64, DriveError>),
}

/// What became of the load's writes.
#[derive(Clone, Default, Debug)]
struct Tally {
    good: u64,
    /// By error: how many, and when the first ended, ms.
    bad: BTreeMap<String, (u64, u64)>,
    /// When the last good one ended, and the longest, ms.
    last_good: u64,
    longest: u64,
}

/// Fills the drive and asks for its fence.
struct Machinist {
    part: RegionPart,
    /// First block, blocks, depth.
    load: Option<(u64, u64, u64)>,
    started: BTreeMap<u64, Instant>,
    next: u64,
    tally: Tally,
    settling: bool,
    wants_error: bool,
}

impl Machinist {
    fn report(mail: Say) -> Effect<Say> {
        Effect::Mail { to: Address::Manager, mail }
    }
    fn write_one(&mut self, now: Instant, slot: u64, fx: &mut Effects<Say>) {
        let Some((first, blocks, _)) = self.load else { return };
        let n = self.next;
        self.next += 1;
        let data = Slice::new(self.part.extent().0 + slot * BLOCK, BLOCK as u32);
        // Whose it is, and which: a block that lands late is another than it was.
        let stamp = [u64::from(std::process::id()).to_le_bytes(), (n + 1).to_le_bytes()].concat();
        self.part.bytes_mut(data).chunks_exact_mut(16).for_each(|c| c.copy_from_slice(&stamp));
        self.started.insert(slot, now);
        let at = (first + n % blocks) * BLOCK;
        fx.push(operation(DriveOpKind::Write, at, data, slot));
    }
    fn stop(&mut self, fx: &mut Effects<Say>) {
        if self.settling && self.started.is_empty() {
            self.settling = false;
            fx.push(Self::report(Say::Settled(Box::new(core::mem::take(&mut self.tally)))));
        }
    }
}

fn operation(kind: DriveOpKind, at: u64, data: Slice, token: u64) -> Effect<Say> {
    let (drive, token) = (DriveId(0), Token(token));
    Effect::Drive(DriveOp { drive, kind, at, len: BLOCK, data, fua: false, token })
}

fn ms(at: Instant) -> u64 {
    at.0 / 1_000_000
}

impl Machine for Machinist {
    type Mail = Say;
    fn on_event(&mut self, now: Instant, event: Event<Say>, fx: &mut Effects<Say>) {
        match event {
            Event::Mail { mail: Say::Open(spec, shared), .. } => {
                fx.push(Effect::OpenDrive { token: Token(0), drive: DriveId(0), spec, shared });
            }
            Event::DriveOpened { result, .. } => fx.push(Self::report(Say::Opened(result))),
            Event::Mail { mail: Say::Fence(op), .. } => {
                fx.push(Effect::Fence { token: Token(0), drive: DriveId(0), op });
            }
            Event::Fenced { result, .. } => fx.push(Self::report(Say::Fenced(result))),
            Event::Mail { mail: Say::Load { first, blocks, depth }, .. } => {
                self.load = Some((first, blocks, depth.min(DEPTH_MAX)));
                (0..depth.min(DEPTH_MAX)).for_each(|slot| self.write_one(now, slot, fx));
                fx.push(Self::report(Say::Loading));
            }
            Event::Mail { mail: Say::Settle, .. } => {
                self.load = None;
                self.settling = true;
                self.stop(fx);
            }
            Event::Mail { mail: Say::FirstError, .. } => {
                self.wants_error = self.tally.bad.is_empty();
                if !self.wants_error {
                    fx.push(Self::report(Say::FirstError));
                }
            }
            Event::Mail { mail: Say::One(kind, block), .. } => {
                let data = Slice::new(self.part.extent().0 + DEPTH_MAX * BLOCK, BLOCK as u32);
                if kind == DriveOpKind::Write {
                    self.part.bytes_mut(data).fill(block as u8);
                }
                fx.push(operation(kind, block * BLOCK, data, ONE));
            }
            Event::DriveDone { token: Token(ONE), result } => {
                let data = Slice::new(self.part.extent().0 + DEPTH_MAX * BLOCK, 8);
                let head = u64::from_le_bytes(self.part.bytes(data).try_into().expect("eight bytes"));
                fx.push(Self::report(Say::Did(result.map(|()| head))));
            }
            Event::DriveDone { token: Token(slot), result } => {
                let began = self.started.remove(&slot).expect("it was under way");
                self.tally.longest = self.tally.longest.max(now.since(began).as_millis() as u64);
                match result {
                    Ok(()) => {
                        self.tally.good += 1;
                        self.tally.last_good = ms(now);
                    }
                    Err(error) => {
                        let bad = self.tally.bad.entry(format!("{error:?}")).or_insert((0, ms(now)));
                        bad.0 += 1;
                        if core::mem::take(&mut self.wants_error) {
                            fx.push(Self::report(Say::FirstError));
                        }
                    }
                }
                // Who is kept out goes on to try, and not as fast as it is refused.
                if result.is_ok() || self.tally.bad.values().map(|(n, _)| n).sum::<u64>() < 1000 {
                    self.write_one(now, slot, fx);
                }
                self.stop(fx);
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    fn on_timer(&mut self, _: Instant, _: &mut Effects<Say>) {}
    fn end_of_turn(&mut self, _: Instant, _: &mut Effects<Say>) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn segments(&self, _: ConnectionId, _: usize, _: &mut Vec<Slice>) {}
}

/// The shell's side.
struct Shell {
    house: House<Say>,
    letters: Receiver<Say>,
    limit: Duration,
}

impl Shell {
    fn ask(&self, say: Say) -> Say {
        assert!(self.house.post().send(Address::Steward, say), "the machine lives");
        self.letters.recv().expect("an answer")
    }
    fn fence(&self, act: FenceAct) -> String {
        let Say::Fenced(result) = self.ask(Say::Fence(FenceOp { act, limit: self.limit })) else {
            panic!("an answer to Fence")
        };
        match result {
            Ok(Fence::File { others }) => format!("ok others={others}"),
            Ok(Fence::Keys(seen)) => {
                let keys: Vec<String> = seen.keys.iter().map(|k| format!("{:x}", k.get())).collect();
                let held = seen.reservation.map(|r| match r.holder {
                    Some(holder) => format!("{:x} {:?}", holder.get(), r.kind),
                    None => format!("all {:?}", r.kind),
                });
                format!("ok keys={} holder={}", keys.join(","), held.unwrap_or("none".into()))
            }
            Err(error) => format!("error {error:?}"),
        }
    }
    fn step(&mut self, word: &str, values: &[&str]) -> String {
        let number = |i: usize| values[i].parse::<u64>().expect("a number");
        let key = |i: usize| {
            let number = u64::from_str_radix(values[i], 16).expect("a hexadecimal number");
            FenceKey::new(number).expect("a key is not zero")
        };
        match word {
            "look" => self.fence(FenceAct::Look),
            "register" => self.fence(FenceAct::Register { key: key(0) }),
            "reserve" => self.fence(FenceAct::Reserve { key: key(0) }),
            "unregister" => self.fence(FenceAct::Unregister { key: key(0) }),
            "shutout" => {
                let process =
                    (values.len() > 2).then(|| Process { pid: number(2) as u32, started: number(3) });
                self.fence(FenceAct::ShutOut { key: key(0), victim: key(1), process })
            }
            "limit" => {
                self.limit = Duration::from_millis(number(0));
                "ok".into()
            }
            "load" => {
                self.ask(Say::Load { first: number(0), blocks: number(1), depth: number(2) });
                "ok".into()
            }
            "settle" => {
                let Say::Settled(tally) = self.ask(Say::Settle) else { panic!("an answer to Settle") };
                let Tally { good, bad, last_good, longest } = *tally;
                let bad: Vec<String> =
                    bad.iter().map(|(error, (n, at))| format!("{error}:{n}@{at}")).collect();
                format!("ok good={good} last={last_good} longest={longest} bad={}", bad.join(","))
            }
            "awaiterror" => {
                self.ask(Say::FirstError);
                "ok".into()
            }
            "write" | "read" => {
                let kind = if word == "write" { DriveOpKind::Write } else { DriveOpKind::Read };
                match self.ask(Say::One(kind, number(0))) {
                    Say::Did(Ok(head)) => format!("ok {head:x}"),
                    Say::Did(Err(error)) => format!("error {error:?}"),
                    other => panic!("{other:?}"),
                }
            }
            "awaited" => {
                while !Path::new(values[0]).exists() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                "ok".into()
            }
            "touch" => {
                std::fs::write(values[0], "").expect("a file");
                "ok".into()
            }
            "sleep" => {
                std::thread::sleep(Duration::from_millis(number(0)));
                "ok".into()
            }
            _ => panic!("no such step: {word}"),
        }
    }
}

/// The machine's own clock, as tests beside this process read it (/proc/uptime).
fn uptime_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds: f64 = text.split(' ').next().and_then(|t| t.parse().ok()).unwrap_or_default();
    (seconds * 1e3) as u64
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (drive, steps) = arguments.split_first().expect("fence DRIVE [shared] STEP…");
    let shared = steps.first().is_some_and(|s| s == "shared");
    let (to, letters) = channel();
    let machine = MachineConfig { connections_max: 4, ..MachineConfig::new(Address::Steward, 1 << 20) };
    let config = Config { machines: vec![machine], state_dir: None };
    let mut house = House::build(config, move |_, say| {
        let _ = to.send(say);
    })
    .expect("a house");
    let make = |part, _| Machinist {
        part,
        load: None,
        started: BTreeMap::new(),
        next: 0,
        tally: Tally::default(),
        settling: false,
        wants_error: false,
    };
    house.spawn(Address::Steward, make).expect("a machine");
    let mut shell = Shell { house, letters, limit: Duration::from_secs(10) };
    let Say::Opened(opened) = shell.ask(Say::Open(drive.clone(), shared)) else {
        panic!("an answer to Open")
    };
    let own = uring::process::identity();
    let opened = match &opened {
        Ok(info) => format!("ok {:?} {} {}", info.fence, own.pid, own.started),
        Err(error) => format!("error {:?}", error.why),
    };
    println!("{} open {opened}", uptime_ms());
    for step in &steps[usize::from(shared)..] {
        let (word, values) = step.split_once('=').unwrap_or((step, ""));
        let values: Vec<&str> = values.split(',').collect();
        let began = std::time::Instant::now();
        let said = shell.step(word, &values);
        println!("{} {word} {said} took={}", uptime_ms(), began.elapsed().as_millis());
    }
}
