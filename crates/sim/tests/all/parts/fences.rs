//! Fences of a world's drives: operations at a drive, operations that arrive, and operations that hang.

use base::machine::Shape;
use base::{
    Address, ConnectionId, Dma, DriveError, DriveId, DriveOp, DriveOpKind, Duration, Effect, Effects, Event,
    Fence, FenceAct, FenceError, FenceKey, FenceKind, FenceOp, Instant, Machine, NoFence, Slice, Token,
};
use head::mail::Mail;
use sim::disk::Disk;
use sim::world::{Delivery, HeadMachine, Step, World};
use std::cell::RefCell;
use std::rc::Rc;

/// What it shall ask for next, and what it got.
#[derive(Default)]
struct State {
    wants: Effects<Mail>,
    opened: bool,
    done: Vec<(u64, Result<(), DriveError>)>,
    fenced: Vec<(u64, Instant, Result<Fence, FenceError>)>,
}

/// A machine that asks for what a test wants.
struct Puppet {
    state: Rc<RefCell<State>>,
    memory: Vec<u8>,
}

impl Machine for Puppet {
    type Mail = Mail;
    fn on_event(&mut self, now: Instant, event: Event<Mail>, _: &mut Effects<Mail>) {
        let mut state = self.state.borrow_mut();
        match event {
            Event::DriveOpened { result, .. } => state.opened = result.is_ok(),
            Event::DriveDone { token, result } => state.done.push((token.0, result)),
            Event::Fenced { token, result } => state.fenced.push((token.0, now, result)),
            other => panic!("unexpected {other:?}"),
        }
    }
    fn on_timer(&mut self, _: Instant, _: &mut Effects<Mail>) {}
    fn end_of_turn(&mut self, _: Instant, fx: &mut Effects<Mail>) {
        fx.append(&mut self.state.borrow_mut().wants);
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn segments(&self, _: ConnectionId, _: usize, _: &mut Vec<Slice>) {}
}

impl Dma for Puppet {
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        with(&mut self.memory[data.at as usize..][..data.len as usize]);
        true
    }
}

impl HeadMachine for Puppet {
    fn at_rest(&self) -> Result<(), String> {
        Ok(())
    }
}

struct Bench {
    world: World,
    state: Rc<RefCell<State>>,
}

const OWN: u64 = 0xa1;
const OTHER: u64 = 0xb1;

fn key(n: u64) -> FenceKey {
    FenceKey::new(n).expect("not zero")
}
fn shut_out(own: u64, victim: u64) -> FenceAct {
    FenceAct::ShutOut { key: key(own), victim: key(victim), process: None }
}

impl Bench {
    fn new(seed: u64, kind: FenceKind) -> Self {
        let mut world = World::new(seed, Delivery { drive_us: 1000, ..Delivery::default() });
        let mut disk = Disk::new("d".into(), 16 << 20, false);
        disk.fence = kind;
        world.disks.push(disk);
        let state = Rc::new(RefCell::new(State::default()));
        let puppet = Puppet { state: Rc::clone(&state), memory: vec![7; 64 << 10] };
        world.put_head(0, Address::Steward, Box::new(puppet), Slice::new(0, 32 << 10));
        let mut bench = Self { world, state };
        bench.want(Effect::OpenDrive { token: Token(0), drive: DriveId(0), spec: "d".into(), shared: false });
        bench.run();
        assert!(bench.state.borrow().opened);
        bench
    }
    fn want(&mut self, effect: Effect<Mail>) {
        self.state.borrow_mut().wants.push(effect);
        let id = self.world.actor_of(0, Address::Steward);
        self.world.nudge(id);
    }
    fn ask(&mut self, token: u64, act: FenceAct, ms: u64) {
        let op = FenceOp { act, limit: Duration::from_millis(ms) };
        self.want(Effect::Fence { token: Token(token), drive: DriveId(0), op });
    }
    fn write(&mut self, token: u64) {
        let (kind, data) = (DriveOpKind::Write, Slice::new(32 << 10, 4096));
        let (drive, token) = (DriveId(0), Token(token));
        self.want(Effect::Drive(DriveOp { drive, kind, at: 4096, len: 4096, data, fua: false, token }));
    }
    fn hang(&mut self, hang: bool) {
        self.want(Effect::ShapeDrive { drive: DriveId(0), shape: Shape { hang, ..Shape::default() } });
    }
    fn run(&mut self) {
        while !matches!(self.world.step(), Step::Quiet) {}
    }
    /// Lets so much time pass, and what happens in it happen.
    fn run_for(&mut self, ms: u64) {
        self.world.alarm(Duration::from_millis(ms), 1);
        while !matches!(self.world.step(), Step::Alarm(_)) {}
    }
    /// By another path, which is another head's.
    fn other(&mut self, act: FenceAct) {
        self.world.disks[0].carry_out_fence(1, act).expect("the other head gets what it wants");
    }
    fn landed(&self) -> bool {
        let mut block = [0; 4096];
        self.world.disks[0].read(4096, &mut block);
        block[0] == 7
    }
    fn fenced(&self) -> Vec<Result<Fence, FenceError>> {
        self.state.borrow().fenced.iter().map(|(_, _, r)| r.clone()).collect()
    }
}

#[test]
fn what_comes_after_the_key_was_taken_ends_fenced_and_never_lands() {
    for seed in 0..20 {
        let mut b = Bench::new(seed, FenceKind::Scsi);
        b.ask(1, FenceAct::Register { key: key(OWN) }, 100);
        b.other(FenceAct::Register { key: key(OTHER) });
        b.other(FenceAct::Reserve { key: key(OTHER) });
        b.run();
        b.write(1);
        b.run();
        assert_eq!(b.state.borrow().done, [(1, Ok(()))], "a registrant writes");
        b.other(shut_out(OTHER, OWN));
        b.write(2);
        b.run();
        assert_eq!(b.state.borrow().done[1], (2, Err(DriveError::Fenced)));
        b.ask(2, shut_out(OWN, OTHER), 100);
        b.run();
        assert_eq!(b.fenced()[1], Err(FenceError::NotRegistered), "who is out learns it");
    }
}

#[test]
fn a_preempt_alone_does_not_stop_what_is_at_the_drive() {
    let mut landed = 0;
    for seed in 0..20 {
        let mut b = Bench::new(seed, FenceKind::Nvme);
        b.other(FenceAct::Register { key: key(OTHER) });
        b.write(1);
        // It takes the reservation, and resets nothing.
        b.other(shut_out(OTHER, OWN));
        assert!(!b.landed());
        b.run();
        assert_eq!(b.state.borrow().done, [(1, Ok(()))]);
        landed += u32::from(b.landed());
    }
    assert_eq!(landed, 20);
}

#[test]
fn a_fence_at_a_drive_that_hangs_is_reported_at_its_limit_and_carried_out_later() {
    let mut b = Bench::new(1, FenceKind::Scsi);
    b.hang(true);
    let began = b.world.now();
    b.ask(1, FenceAct::Register { key: key(OWN) }, 50);
    b.ask(2, FenceAct::Look, 30);
    b.run_for(100);
    let reported: Vec<u64> = b.state.borrow().fenced.iter().map(|(token, ..)| *token).collect();
    assert_eq!(reported, [2, 1]);
    assert!(b.fenced().iter().all(|r| *r == Err(FenceError::TimedOut)));
    let last = b.state.borrow().fenced[1].1;
    assert!(last.since(began) < Duration::from_millis(51), "within its limit");
    b.ask(3, FenceAct::Look, 1000);
    b.run_for(1);
    assert_eq!(b.fenced()[2], Err(FenceError::TimedOut), "one is stuck: at once");
    b.hang(false);
    b.run();
    b.ask(4, FenceAct::Look, 50);
    b.run();
    let Ok(Fence::Keys(seen)) = b.fenced().remove(3) else { panic!("a look") };
    assert!(seen.has(key(OWN)), "what was given up was carried out later");
    assert_eq!(b.fenced().len(), 4, "and is reported once");
}

#[test]
fn what_has_no_fence_or_is_not_open_says_so() {
    let mut b = Bench::new(1, FenceKind::None(NoFence::Mapped));
    b.ask(1, FenceAct::Look, 50);
    b.world.unplug(0, false);
    b.ask(2, FenceAct::Look, 50);
    b.run();
    let mut reported = b.fenced();
    reported.sort_by_key(|r| *r != Err(FenceError::None(NoFence::Mapped)));
    assert_eq!(reported, [Err(FenceError::None(NoFence::Mapped)), Err(FenceError::Gone)]);
}
