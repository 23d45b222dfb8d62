//! Faults of a world: a mixture from the seed, or one kind alone.

use super::{Event, Failure, MS, SECOND, World};
use crate::member::Part;
use crate::record::HeadNo;
use crate::watch::End;
use base::Prng;

/// What may go wrong in a world.
#[derive(Clone, Debug, Default)]
pub(super) struct Swarm {
    pub faults: Vec<Fault>,
    /// Clocks go wrong.
    pub clocks: bool,
    /// What a head knows becomes durable late.
    pub stale: bool,
    /// Values and registrations take long at drives.
    pub late: bool,
    pub fences_fail: bool,
    /// Who shuts out is often paused while it does.
    pub pauses_in_fence: bool,
    /// Between two faults, at most.
    pub pace: u64,
}

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    Pause,
    LongPause,
    Crash,
    Power,
    Cut,
    OneWay,
    Flap,
    Close,
    SlowLink,
    Lost,
    SlowDrive,
    CutAll,
    /// An operator wants the other head to be none any more.
    Release,
}

const ALL: &[Fault] = &[
    Fault::Pause,
    Fault::LongPause,
    Fault::Crash,
    Fault::Power,
    Fault::Cut,
    Fault::OneWay,
    Fault::Flap,
    Fault::Close,
    Fault::SlowLink,
    Fault::Lost,
    Fault::SlowDrive,
    Fault::CutAll,
    Fault::Release,
];

impl Swarm {
    pub fn new(seed: u64) -> Self {
        let mut rng = Prng::new(seed);
        let faults: Vec<Fault> = ALL.iter().copied().filter(|_| rng.chance(1, 2)).collect();
        Self {
            faults,
            clocks: rng.chance(1, 2),
            stale: rng.chance(1, 2),
            late: rng.chance(1, 2),
            fences_fail: rng.chance(1, 2),
            pauses_in_fence: rng.chance(1, 3),
            pace: *rng.pick(&[300, 1000, 3000]),
        }
    }
    /// Whether anything goes wrong.
    pub fn any(&self) -> bool {
        self.pace > 0
    }
}

impl World {
    pub(super) fn fault(&mut self) -> Result<(), Failure> {
        if self.now >= super::FAULTS || self.swarm.faults.is_empty() {
            return Ok(());
        }
        let after = self.rng.between(20, self.swarm.pace) * MS;
        self.at(after, Event::Fault);
        let fault = *self.rng.pick(&self.swarm.faults);
        let head = *self.rng.pick(&[HeadNo::A, HeadNo::B]);
        let path = self.rng.below(self.nets.len() as u64) as usize;
        let drive = self.rng.below(self.drives.len() as u64) as usize;
        self.say(|| format!("fault: {fault:?} of {head:?}, network {path} or drive {}", drive + 1));
        let (now, rng) = (self.now, &mut self.rng);
        match fault {
            Fault::Pause => {
                let long = rng.between(10, 3000) * MS;
                self.pause(head, long);
            }
            Fault::LongPause => {
                let long = rng.between(1000, 30_000) * MS;
                self.pause(head, long);
            }
            Fault::Crash => self.crash(head),
            Fault::Power => self.power(head)?,
            Fault::Cut | Fault::OneWay => {
                let both = fault == Fault::Cut;
                let long = rng.between(50, 6000) * MS;
                let one = rng.below(2) as usize;
                self.cut(path, [both || one == 0, both || one == 1], long);
            }
            Fault::Flap => {
                let long = rng.between(50, 600) * MS;
                self.cut(path, [true; 2], long);
            }
            Fault::CutAll => {
                let long = rng.between(200, 8000) * MS;
                for path in 0..self.nets.len() {
                    self.cut(path, [true; 2], long);
                }
            }
            Fault::Close => {
                let end = *rng.pick(&[End::Closed, End::Lost]);
                self.lose(path, end);
            }
            Fault::Release => {
                if self.runs(head) {
                    let process = self.process(head);
                    if process.member.part() == Part::Leader {
                        process.member.release();
                    }
                }
            }
            Fault::SlowLink => self.nets[path].slow = now + rng.between(100, 3000) * MS,
            Fault::Lost => self.drives[drive].lost[head.index()] = now + rng.between(50, 8000) * MS,
            Fault::SlowDrive => self.drives[drive].slow = now + rng.between(100, 4000) * MS,
        }
        Ok(())
    }
    pub(super) fn pause(&mut self, head: HeadNo, long: u64) {
        let until = self.now + long;
        let machine = &mut self.heads[head.index()];
        let Some(number) = machine.process.as_ref().map(|p| p.number) else { return };
        machine.paused = machine.paused.max(until);
        self.at(long, Event::Resume(head, number));
    }
    /// A head begins to shut out the other one.
    pub(super) fn pause_in_fence(&mut self, head: HeadNo) {
        if self.swarm.pauses_in_fence && self.now < super::FAULTS && self.rng.chance(1, 2) {
            let number = self.heads[head.index()].processes;
            let (after, long) = (self.rng.between(1, 400) * MS, self.rng.between(300, 4000) * MS);
            self.at(after, Event::Pause { head, number, long });
        }
    }
    pub(super) fn crash(&mut self, head: HeadNo) {
        if self.heads[head.index()].process.is_some() {
            self.end_process(head);
            let after = self.rng.between(50, 3000) * MS;
            self.at(after, Event::Start(head));
        }
    }
    pub(super) fn power(&mut self, head: HeadNo) -> Result<(), Failure> {
        if !self.heads[head.index()].powered {
            return Ok(());
        }
        let machine = &mut self.heads[head.index()];
        machine.powered = false;
        machine.process = None;
        machine.paused = 0;
        machine.waits.clear();
        self.lose_ops(head)?;
        for path in 0..self.nets.len() {
            // The other side gets no notice.
            self.will_be_silent(path, None);
            self.nets[path].close(head);
        }
        let after = self.rng.between(50, 3000) * MS;
        self.at(after, Event::Start(head));
        Ok(())
    }
    pub(super) fn cut(&mut self, path: usize, cut: [bool; 2], long: u64) {
        let net = &mut self.nets[path];
        net.cuts += 1;
        let cuts = net.cuts;
        net.cut = [net.cut[0] || cut[0], net.cut[1] || cut[1]];
        self.at(long, Event::Cut { path, cuts });
        self.will_be_silent(path, Some(cuts));
    }
    /// Nothing goes wrong any more.
    pub(super) fn heal(&mut self) {
        self.say(|| "nothing goes wrong any more".into());
        self.swarm.faults.clear();
        for path in 0..self.nets.len() {
            self.nets[path].slow = 0;
            self.mend(path);
        }
        for drive in &mut self.drives {
            drive.lost = [0; 2];
            drive.slow = 0;
        }
        self.swarm.late = false;
        self.swarm.fences_fail = false;
        for head in [HeadNo::A, HeadNo::B] {
            let machine = &mut self.heads[head.index()];
            if machine.paused > self.now {
                machine.paused = self.now;
                let number = machine.processes;
                self.at(0, Event::Resume(head, number));
            }
        }
    }
}

/// What happens once in a world that is calm otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Calm {
    /// Nothing, for a minute.
    Nothing,
    /// The leader's process is killed.
    Kill,
    /// The leader's process is paused for ten seconds.
    Pause,
    /// The leader's machine loses its power.
    Power,
    /// All networks of the link are cut for ten seconds.
    Cut,
}

/// How that went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Took {
    /// Until the follower served (or, when the link was cut, either head had gone on alone), milliseconds.
    pub over_ms: u64,
    /// From when it could come back until all was well again, milliseconds.
    pub back_ms: u64,
    /// How often a head began to lead, or put the other one out, where nothing happened.
    pub changes: u64,
}

/// Lives through a calm world in which one thing happens.
///
/// # Errors
/// What must not be, in words.
pub fn calm(seed: u64, what: Calm) -> Result<Took, String> {
    let mut world = World::new(seed, Swarm { clocks: !seed.is_multiple_of(4), ..Swarm::default() });
    world.go_calm(what)
}

impl World {
    fn go_calm(&mut self, what: Calm) -> Result<Took, Failure> {
        self.settle(10 * SECOND)?;
        let after = self.rng.between(2000, 3000) * MS;
        self.run_until(self.now + after)?;
        let before = self.outcome;
        let mut took = Took::default();
        if what == Calm::Nothing {
            self.run_until(self.now + 60 * SECOND)?;
            let after = self.outcome;
            took.changes = after.leads + after.put_out - before.leads - before.put_out;
            return Ok(took);
        }
        let began = self.now;
        let leader = HeadNo::from_number(u8::from(self.part(HeadNo::B) == Some(Part::Leader)));
        let leader = leader.expect("0 or 1");
        match what {
            Calm::Kill => self.crash(leader),
            Calm::Pause => self.pause(leader, 10 * SECOND),
            Calm::Power => self.power(leader)?,
            Calm::Cut => {
                for path in 0..self.nets.len() {
                    self.cut(path, [true; 2], 10 * SECOND);
                }
            }
            Calm::Nothing => {}
        }
        let serves = self.served.len();
        while self.served.len() == serves {
            if self.now > began + 10 * SECOND {
                return Err(format!("nobody goes on alone after {what:?} of {leader:?}"));
            }
            self.run_until(self.now + MS)?;
        }
        took.over_ms = (self.served[serves].0 - began) / MS;
        // It comes back once it runs again, and the link is there.
        let mut back = self.now;
        match what {
            Calm::Pause | Calm::Cut => {
                back = began + 10 * SECOND;
                self.run_until(back)?;
            }
            _ => {
                while self.heads[leader.index()].process.is_none() && self.now < began + 10 * SECOND {
                    self.run_until(self.now + MS)?;
                    back = self.now;
                }
            }
        }
        self.settle(10 * SECOND)?;
        took.back_ms = (self.now - back) / MS;
        Ok(took)
    }
}
